"""``troth hook``: the installed command lines, called with the JSON that the tools send, and git with a real push."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.frontdoor import Answer, troth
from support.observing import needs_observer
from support.project import HONEST, Project, project, sealed_project
from troth.airlock.hook_claims import hear, rollout_of
from troth.receipts.deciding import EXAMPLE

__all__ = ["project", "sealed_project"]
SESSION = "5c1d9b9e-0f0a-4d5e-9a3b-2f4f3f8f7b11"


class Hooked:
    """A project with the hook of Claude Code installed, and a home of its own."""

    def __init__(self, project: Project, home: Path, *more: str) -> None:
        self.project = project
        self.env = {name: str(home / name) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME")}
        self.settings = project.root / ".claude" / "settings.local.json"
        self.installed = self.troth("hook", "claude-code", "install", "--contract", project.contract, *more)

    def troth(self, *words: str | Path, **options: Any) -> Answer:
        return self.project.troth(*words, env=self.env, **options)

    def event(self, name: str, **members: Any) -> Answer:
        """Call the installed command line as Claude Code does: through a shell, with JSON on stdin."""
        command = json.loads(self.settings.read_text())["hooks"][name][0]["hooks"][0]["command"]
        base = {
            "session_id": SESSION,
            "transcript_path": f"/tmp/projects/{SESSION}.jsonl",
            "cwd": str(self.project.root),
            "permission_mode": "default",
            "hook_event_name": name,
        }
        done = subprocess.run(
            ["/bin/sh", "-c", command],
            cwd=self.project.root,
            env={**os.environ, **self.env},
            input=json.dumps({**base, **members}),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def stop(self, again: bool = False) -> Answer:
        return self.event("Stop", stop_hook_active=again, last_assistant_message="All done.", background_tasks=[])

    def status(self) -> tuple[int, Any]:
        answer = self.troth("hook", "status", "--json")
        return answer.exit, answer.json


@pytest.fixture
def hooked(project: Project, tmp_path: Path) -> Hooked:
    return Hooked(project, tmp_path / "home")


def mend(project: Project) -> None:
    app = project.root / "src" / "app.py"
    app.write_text(app.read_text().replace("return value", "return 2 * value"))


# --- Claude Code ---


@pytest.mark.observer
@needs_observer
def test_a_stop_is_answered_by_what_the_verifier_finds(hooked: Hooked) -> None:
    assert hooked.installed.exit == 0, hooked.installed
    assert hooked.status()[0] == 1
    sent_back = []
    for turn in range(4):
        answer = hooked.stop(again=turn > 0)
        assert (answer.exit, answer.err) == (0, "")
        sent_back.append(answer.json)
    # Sent back as often as the table allows, then left to a person: never a success.
    assert [said.get("decision") for said in sent_back] == ["block", "block", "block", None]
    assert "test_double" in sent_back[0]["reason"]
    assert "as often as the table allows" in sent_back[3]["systemMessage"]
    assert hooked.status()[0] == 4
    # A new chain of stops is counted anew, and work that was mended is not sent back.
    assert hooked.stop().json["decision"] == "block"
    mend(hooked.project)
    assert hooked.status()[1]["error"]["code"] == "E_HOOK_UNDECIDED"  # the tree changed since
    answer = hooked.stop(again=True)
    assert "decision" not in answer.json
    exit_status, last = hooked.status()
    assert (exit_status, last["done"]["decision"]) == (4, "not_established")
    # Its receipt is one like any other, says what the table decided, and is no supported one.
    (member,) = Path(hooked.env["XDG_STATE_HOME"]).glob("troth/hooks/*/last")
    assert troth("receipt", "verify", member, cwd=member).exit == 3
    predicate = json.loads((member / "receipt.json").read_bytes())["predicate"]
    assert predicate["stop_decision"]["action"] == "escalate"
    assert (member.stat().st_mode & 0o077, (member / "receipt.json").stat().st_mode & 0o077) == (0, 0)


@pytest.mark.slow
@pytest.mark.observer
@needs_observer
def test_a_table_that_stops_stops(project: Project, tmp_path: Path) -> None:
    table = tmp_path / "stop.toml"
    table.write_text(EXAMPLE.replace('action = "replan"', 'action = "stop"'))
    hooked = Hooked(project, tmp_path / "home", "--table", str(table))
    said = hooked.stop().json
    assert said["continue"] is False
    assert "exit 1" in said["stopReason"]
    assert hooked.status()[0] == 1
    # A table that was broken since decides nothing, and what stood there does not count any more.
    table.write_text("broken")
    answer = hooked.stop()
    assert (answer.exit, answer.out) == (1, "")
    assert "nothing counts as done" in answer.err


def test_protected_paths_are_told_when_they_change(hooked: Hooked) -> None:
    assert hooked.event("SessionStart", source="startup").out == ""
    used = {"tool_name": "Write", "tool_response": {"type": "update"}}
    inside = {"file_path": str(hooked.project.root / "src" / "app.py"), "content": "x = 1\n"}
    assert hooked.event("PostToolUse", tool_input=inside, **used).out == ""
    tests = hooked.project.root / "tests" / "test_app.py"
    honest = tests.read_text()
    tests.write_text("")
    shell = {"tool_name": "Bash", "tool_input": {"command": "echo > tests/test_app.py"}, "tool_response": {}}
    first = hooked.event("PostToolUse", **shell).json
    assert first["decision"] == "block"
    assert "tests" in first["reason"]
    assert hooked.event("PostToolUse", **shell).out == ""  # told once
    subagent = {"agent_id": "a1", "agent_type": "general-purpose"}
    assert hooked.event("SubagentStop", stop_hook_active=False, **subagent).json["decision"] == "block"
    assert hooked.event("SubagentStop", stop_hook_active=True, **subagent).out == ""
    # The work is judged without running anything: there is nothing to grade with.
    said = hooked.stop().json
    assert said["decision"] == "block"
    assert "protected" in said["reason"].lower()
    tests.write_text(honest)
    assert hooked.event("SubagentStop", stop_hook_active=False, **subagent).out == ""
    assert hooked.event("PostToolUse", **shell).out == ""


@pytest.mark.slow
@pytest.mark.observer
@needs_observer
def test_what_no_event_named_is_told(hooked: Hooked) -> None:
    hooked.event("SessionStart", source="startup")
    named = hooked.project.root / "src" / "named.py"
    named.write_text("x = 1\n")
    hooked.event("PostToolUse", tool_name="Write", tool_input={"file_path": str(named)}, tool_response={})
    for name in ("a.py", "b.py", "c.py"):  # a subagent whose events never came
        (hooked.project.root / "src" / name).write_text("y = 2\n")
    said = hooked.stop().json["reason"]
    assert "changed and named by no event (0 commands were): src/a.py, src/b.py, src/c.py" in said
    assert "src/named.py" not in said


@pytest.mark.parametrize(
    "data",
    [
        "", "{", "[]", '{"hook_event_name": "Stop"}', '{"hook_event_name": 1, "session_id": "x"}',
        '{"hook_event_name": "Stop", "session_id": ""}', '{"hook_event_name": "Stop", "session_id": "x"} x',
        '{"hook_event_name": "Stop", "session_id": "x", "stop_hook_active": "no"}',
        '{"hook_event_name": "Stop", "session_id": "x", "session_id": "y"}', "\udcff",
    ],
)  # fmt: skip
def test_input_that_is_none_judges_nothing(data: str) -> None:
    from troth.core.errors import Refused
    from troth.hooks.claude_code import read_event

    with pytest.raises(Refused) as fault:
        read_event(data.encode("utf-8", "surrogateescape"))
    assert fault.value.code == "E_HOOK_INPUT"
    assert read_event(b'{"hook_event_name": "Stop", "session_id": "x", "new": {"a": 1}}').again is False


def test_a_hook_that_fails_counts_for_nothing(hooked: Hooked) -> None:
    (hooked.project.contract / "contract.json").write_bytes(b"{}")
    for answer in (hooked.stop(), hooked.event("PostToolUse", tool_input={})):
        # Not 2: Claude Code would send the agent back with our fault, which it cannot mend.
        assert (answer.exit, answer.out) == (1, "")
        assert "nothing was judged" in answer.err
    assert hooked.status()[1]["error"]["code"] == "E_HOOK_UNDECIDED"


def test_a_contract_that_was_changed_is_no_contract(hooked: Hooked) -> None:
    file = hooked.project.contract / "contract.json"
    value = json.loads(file.read_bytes())
    value["protected_paths"] = []
    file.write_text(json.dumps(value))
    answer = hooked.stop()
    assert (answer.exit, "E_HOOK_CONTRACT" in answer.err) == (1, True)


def test_another_report_of_sealing_is_none_either(hooked: Hooked) -> None:
    """Another one of the same contract would have the same words judged by other tools, or give them no time."""
    seal = hooked.project.contract / "seal.json"
    sealed = seal.read_bytes()
    for other in (json.dumps({**json.loads(sealed), "sealed": "2020-01-01T00:00:00Z"}).encode(), None):
        seal.unlink() if other is None else seal.write_bytes(other)
        answer = hooked.stop()
        assert (answer.exit, "E_HOOK_CONTRACT" in answer.err) == (1, True)


def test_another_folder_is_none_of_its_business(hooked: Hooked, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (hooked.project.root / "tests" / "test_app.py").write_text("")
    assert hooked.event("SubagentStop", cwd=str(other), stop_hook_active=False).out == ""
    assert hooked.event("SubagentStop", stop_hook_active=False).json["decision"] == "block"
    assert hooked.event("SessionStart", hook_event_name="Unheard").out == ""


def test_installing_changes_nothing_else(project: Project, tmp_path: Path) -> None:
    settings = project.root / ".claude" / "settings.local.json"
    settings.parent.mkdir()
    before = (
        b'{"env":{"A":"\xc3\xa9"},\r\n  "hooks" : {"Stop":[ {"hooks":[{"type":"command","command":"echo"}]} ]} }\r\n'
    )
    settings.write_bytes(before)
    settings.chmod(0o640)
    hooked = Hooked(project, tmp_path / "home")
    assert hooked.installed.exit == 0
    groups = json.loads(settings.read_bytes())["hooks"]
    assert sorted(groups) == ["PostToolUse", "SessionStart", "Stop", "SubagentStop"]
    assert groups["Stop"][0]["hooks"][0]["command"] == "echo"
    again = hooked.troth("hook", "claude-code", "install", "--contract", project.contract, "--json")
    assert again.json == {"changed": False, "file": str(settings)}
    assert hooked.troth("hook", "claude-code", "uninstall").exit == 0
    assert settings.read_bytes() == before
    assert settings.stat().st_mode & 0o777 == 0o640
    assert hooked.troth("hook", "claude-code", "uninstall", "--json").json["changed"] is False


def test_a_broken_or_linked_settings_file(project: Project, tmp_path: Path) -> None:
    settings = project.root / ".claude" / "settings.local.json"
    settings.parent.mkdir()
    settings.write_text("{,}")
    hooked = Hooked(project, tmp_path / "home", "--json")
    assert (hooked.installed.exit, hooked.installed.json["error"]["code"]) == (2, "E_HOOK_SETTINGS")
    assert settings.read_text() == "{,}"
    # A link to where somebody keeps settings stays a link.
    kept = tmp_path / "dotfiles.json"
    kept.write_text("{}\n")
    settings.unlink()
    settings.symlink_to(kept)
    assert Hooked(project, tmp_path / "home").installed.exit == 0
    assert settings.is_symlink()
    assert "hooks" in json.loads(kept.read_text())
    assert hooked.troth("hook", "claude-code", "uninstall").exit == 0
    assert kept.read_text() == "{}\n"


def test_links_hide_no_change(hooked: Hooked, tmp_path: Path) -> None:
    """A protected file or folder that is reached through a link is not what was sealed, whatever the link shows."""
    asked = {"stop_hook_active": False}
    root = hooked.project.root
    assert hooked.event("SubagentStop", **asked).out == ""
    kept = tmp_path / "kept"
    shutil.copytree(root / "tests", kept)
    (root / "tests" / "test_app.py").unlink()
    (root / "tests" / "test_app.py").symlink_to(kept / "test_app.py")
    assert hooked.event("SubagentStop", **asked).json["decision"] == "block"
    shutil.rmtree(root / "tests")
    (root / "tests").symlink_to(kept)
    assert hooked.event("SubagentStop", **asked).json["decision"] == "block"
    (root / "tests").unlink()
    shutil.copytree(kept, root / "tests")
    assert hooked.event("SubagentStop", **asked).out == ""


def test_odd_names_are_no_fault(hooked: Hooked) -> None:
    root = hooked.project.root
    for path in ("\ud800", f"{root}/\ud800.py", f"{root}/a\0b", f"{root}/../x", "", f"{root}/ok.py"):
        answer = hooked.event("PostToolUse", tool_name="Write", tool_input={"file_path": path}, tool_response={})
        assert (answer.exit, answer.out, answer.err) == (0, "", "")
    (state,) = Path(hooked.env["XDG_STATE_HOME"]).glob("troth/hooks/*/session-*.json")
    assert json.loads(state.read_bytes())["named"] == ["ok.py"]
    assert hooked.event("PostToolUse", cwd="/a\0b").exit == 1


def session(path: Path, *commands: str) -> str:
    """Write the session's file as Claude Code does, and return where it lies."""
    rows: list[dict[str, Any]] = []
    for number, command in enumerate(commands):
        use = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {"command": command}}
        answer = {"type": "tool_result", "tool_use_id": f"t{number}", "content": "OK"}
        rows.append({"type": "assistant", "sessionId": SESSION, "message": {"content": [use]}})
        rows.append({"type": "user", "sessionId": SESSION, "message": {"content": [answer]}, "toolUseResult": {}})
        rows[-1]["toolUseResult"]["stdout"] = "OK"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.observer
@needs_observer
def test_an_agent_that_says_what_its_session_does_not_bear_out_is_sent_back(hooked: Hooked, tmp_path: Path) -> None:
    mend(hooked.project)
    last = "Mended.\n\n- `npm test` passes\n"
    none, ran = session(tmp_path / "none.jsonl", "ls"), session(tmp_path / "ran.jsonl", "ls", "npm test")
    cheat = hooked.event("Stop", stop_hook_active=False, last_assistant_message=last, transcript_path=none).json
    assert cheat["decision"] == "block"
    assert "npm test is said to have passed, and the session has no call that could have run it" in cheat["reason"]
    exit_status, told = hooked.status()
    assert (exit_status, told["stop_decision"]["action"]) == (1, "replan")
    assert told["done"]["decision"] == "not_established", "nobody watched: no check comes to more by it"
    honest = hooked.event("Stop", stop_hook_active=True, last_assistant_message=last, transcript_path=ran).json
    assert "decision" not in honest
    assert hooked.status()[0] == 4
    (member,) = Path(hooked.env["XDG_STATE_HOME"]).glob("troth/hooks/*/last")
    claims = json.loads((member / "claims.json").read_bytes())["claims"]
    assert [(entry["argv"], entry["exit"]) for entry in claims] == [(["ls"], 0), (["npm", "test"], 0)]
    assert troth("receipt", "check", member, "--json", cwd=member).json["receipt"] == {"verdict": "valid"}


def test_a_sessions_file_that_is_none_claims_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = session(tmp_path / "real.jsonl", "ls")
    assert [entry["argv"] for entry in hear(real, "claude-code").entries] == [["ls"]]
    (tmp_path / "link").symlink_to(real)
    os.mkfifo(tmp_path / "pipe")
    for path in ("link", "pipe", ".", "absent"):
        heard = hear(str(tmp_path / path), "claude-code", last="`pytest` passes")
        assert (heard.entries, heard.belied, len(heard.notes)) == ((), (), 1)
    for word in ("relative.jsonl", "/" + "x" * 5000, "/a\0b", ""):
        assert hear(word, "claude-code", last="`pytest` passes").belied == ()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert "somebody else's" in hear(real, "claude-code").notes[0]


def test_codexs_record_of_a_session_is_found_by_its_name_alone(tmp_path: Path) -> None:
    name = "01a230bb-7ce5-79a2-9dff-0d4564381fdd"
    day = tmp_path / "sessions" / "2026" / "12" / "01"
    day.mkdir(parents=True)
    file = day / f"rollout-2026-12-01T08-32-03-{name}.jsonl"
    file.write_text("")
    assert rollout_of(name, tmp_path) == str(file)
    for other in ("../x", "", None, 7, "01a230bb", "*" * 36):
        assert rollout_of(other, tmp_path) is None
    (tmp_path / "sessions" / file.name).write_text("")
    assert rollout_of(name, tmp_path) is None, "two of them are none"


# --- Codex ---


@pytest.mark.slow
@pytest.mark.observer
@needs_observer
def test_codex_notifies(project: Project, tmp_path: Path) -> None:
    home = tmp_path / "home"
    env = {"XDG_STATE_HOME": str(home / "state"), "CODEX_HOME": str(home / "codex"), "HOME": str(home)}
    config = home / "codex" / "config.toml"
    config.parent.mkdir(parents=True)
    config.write_text('model = "x"\n')
    assert project.troth("hook", "codex", "install", "--contract", project.contract, env=env).exit == 0
    import tomllib

    words = tomllib.loads(config.read_text())["notify"]
    turn = {
        "type": "agent-turn-complete", "thread-id": "b5f6c1c2", "turn-id": "12345", "cwd": str(project.root),
        "input-messages": ["Mend double()."], "last-assistant-message": "Done; `$(touch x)`",
    }  # fmt: skip

    def notify(*last: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*words, *last], cwd=project.root, env={**os.environ, **env}, capture_output=True, text=True, check=False
        )

    told = notify(json.dumps(turn))
    assert (told.returncode, "replan" in told.stderr) == (0, True)
    assert project.troth("hook", "status", env=env).exit == 1
    mend(project)
    assert notify(json.dumps(turn)).returncode == 0
    assert project.troth("hook", "status", env=env).exit == 4
    assert notify("{").returncode == 1
    assert notify().returncode == 1
    assert project.troth("hook", "status", env=env).exit == 1  # one that failed counts for nothing
    assert project.troth("hook", "codex", "uninstall", env=env).exit == 0
    assert config.read_text() == 'model = "x"\n'
    config.write_text('notify = ["other"]\n')
    answer = project.troth("hook", "codex", "install", "--contract", project.contract, "--json", env=env)
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_HOOK_TAKEN")


# --- git ---


def git(root: Path, *words: str, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    base = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@b"}
    return subprocess.run(
        ["git", *words],
        cwd=root,
        env={**os.environ, **base, **(env or {})},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def repository(project: Project, tmp_path: Path) -> tuple[Project, dict[str, str]]:
    home = tmp_path / "home"
    env = {name: str(home / name) for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME")}
    assert git(tmp_path, "init", "--bare", "-q", "remote.git").returncode == 0
    assert git(project.root, "init", "-q", "-b", "main").returncode == 0
    (project.root / ".gitignore").write_text("__pycache__/\n.mentu/\n")
    assert git(project.root, "add", ".").returncode == 0
    assert git(project.root, "commit", "-qm", "start").returncode == 0
    git(project.root, "remote", "add", "origin", str(tmp_path / "remote.git"))
    assert project.troth("hook", "git", "install", env=env).exit == 0
    return project, env


@pytest.mark.slow
@pytest.mark.observer
@needs_observer
def test_only_what_a_receipt_speaks_for_is_pushed(repository: tuple[Project, dict[str, str]]) -> None:
    project, env = repository

    def push(*more: str) -> subprocess.CompletedProcess[str]:
        return git(project.root, "push", "-q", "origin", *more, env=env)

    refused = push("main")
    assert refused.returncode != 0
    assert "E_PUSH_REFUSED" in refused.stderr
    assert "no run's receipt is about the files of this commit" in refused.stderr
    assert project.run(None, HONEST).exit == 0
    assert push("main").returncode != 0  # what is committed is not what was judged
    git(project.root, "commit", "-qam", "mended")
    done = push("main")
    assert done.returncode == 0, done.stderr
    assert "goes by the receipt of run_" in done.stderr
    # One more change, however small, is another tree; and a ref that is deleted needs no receipt.
    (project.root / "docs" / "notes.txt").write_text("more\n")
    git(project.root, "commit", "-qam", "more")
    assert push("main").returncode != 0
    assert push("HEAD~1:refs/heads/other").returncode == 0
    assert push("--delete", "other").returncode == 0
    # A receipt that was changed since speaks for nothing.
    git(project.root, "reset", "-q", "--hard", "HEAD~1")
    (receipt,) = (project.root / ".mentu" / "runs").glob("run_*/receipt.json")
    receipt.write_bytes(receipt.read_bytes().replace(b"done_checks_supported", b"tool_claims_matched"))
    refused = push("HEAD:refs/heads/third")
    assert refused.returncode != 0
    assert "E_STOP_NO_VERDICT" in refused.stderr


def test_a_hook_of_somebody_else_is_left(repository: tuple[Project, dict[str, str]]) -> None:
    project, env = repository
    hook = project.root / ".git" / "hooks" / "pre-push"
    assert os.access(hook, os.X_OK)
    assert project.troth("hook", "git", "uninstall", env=env).exit == 0
    assert not hook.exists()
    hook.write_text("#!/bin/sh\nexit 0\n")
    for verb in ("install", "uninstall"):
        answer = project.troth("hook", "git", verb, "--json", env=env)
        assert (answer.exit, answer.json["error"]["code"]) == (2, "E_HOOK_TAKEN")
    assert hook.read_text() == "#!/bin/sh\nexit 0\n"


@pytest.mark.parametrize("data", ["x", "refs/heads/main abc refs/heads/main def", "a b c", "\x00"])
def test_what_git_does_not_send_pushes_nothing(data: str, repository: tuple[Project, dict[str, str]]) -> None:
    project, env = repository
    answer = project.troth("hook", "git", "run", "--root", project.root, "origin", "url", env=env, stdin=data)
    assert (answer.exit, "E_HOOK_INPUT" in answer.err) == (1, True)
    assert project.troth("hook", "git", "run", "--root", project.root, env=env, stdin="").exit == 0


def test_installed_words_survive_a_shell(project: Project, tmp_path: Path) -> None:
    odd = tmp_path / "a b'$(touch pwned)\"; x"
    shutil.copytree(project.root, odd)
    hooked = Hooked(Project(odd, odd / ".mentu" / "contracts" / "double"), tmp_path / "home")
    command = json.loads(hooked.settings.read_text())["hooks"]["Stop"][0]["hooks"][0]["command"]
    assert str(odd) in shlex.split(command)
    (odd / "tests" / "test_app.py").write_text("")
    assert hooked.event("SubagentStop", stop_hook_active=False).json["decision"] == "block"
    assert not list(odd.glob("pwned*"))


def test_any_input_gets_a_coded_answer() -> None:
    """Events of any shape are read or refused; nothing else comes out."""
    import random

    from receipts.mutate import spoil
    from troth.core.errors import Refused
    from troth.hooks.claude_code import read_event

    chance = random.Random(6)
    event = json.dumps(
        {"hook_event_name": "PostToolUse", "session_id": "s", "cwd": "/x", "stop_hook_active": True,
         "tool_name": "Edit", "tool_input": {"file_path": "/x/a.py", "old_string": "\u00e9"},
         "tool_response": {"ok": [1, 2.5, None]}}
    ).encode()  # fmt: skip
    read = 0
    for _ in range(3000):
        try:
            read += read_event(spoil(event, chance)).session != ""
        except Refused as fault:
            assert fault.code == "E_HOOK_INPUT"  # noqa: PT017 - the loop goes on
    assert 300 < read < 2900
