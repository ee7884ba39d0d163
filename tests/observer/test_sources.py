"""Where transcripts are looked for, and that nothing but an agent's own regular files is read."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from support.observing import needs_observer
from support.watching import Watch, watch, workspace
from troth.core.errors import Refused
from troth.observer.claims import Claims
from troth.observer.sources import REPORT, Places, gather, open_beneath, parse_source

__all__ = ["watch", "workspace"]

SAMPLES = Path(__file__).parent / "transcripts"
NONE = Claims(entries=(), lines=0)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    for name in ("home", "workspace"):
        (tmp_path / name).mkdir()
    (tmp_path / "printed").write_text("hello\n")
    return Places(home=tmp_path / "home", output=tmp_path / "printed", workspace=tmp_path / "workspace")


def put(path: Path, sample: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes((SAMPLES / sample).read_bytes())


def formats(places: Places, *words: str) -> list[str]:
    report = gather([parse_source(word) for word in words], places, NONE, []).report
    return [source["format"] for source in report["sources"]]


def test_auto_looks_where_the_tools_write(places: Places) -> None:
    assert formats(places, "auto") == []
    notes = gather([parse_source("auto")], places, NONE, []).notes
    assert notes == ("no transcript was found where the known tools write them",)
    put(places.home / ".claude/projects/-srv-shop/s.jsonl", "claude-code-subagent/session.jsonl")
    put(places.home / ".claude/projects/-srv-shop/s/subagents/agent-1.jsonl", "claude-code-subagent/subagent.jsonl")
    put(places.home / ".claude/projects/notes.txt", "claude-code/session.jsonl")
    put(places.home / ".codex/sessions/2026/12/rollout-1.jsonl", "codex-rollout/rollout.jsonl")
    put(places.home / ".codex/sessions/2026/12/other.jsonl", "codex-rollout/rollout.jsonl")
    assert formats(places, "auto") == ["claude-code", "claude-code", "codex-rollout"]


def test_events_on_the_output_count_where_no_file_tells_the_same(places: Places) -> None:
    put(places.output, "claude-stream/stream.jsonl")
    assert formats(places, "auto") == ["claude-stream"]
    put(places.home / ".codex/sessions/rollout-1.jsonl", "codex-rollout/rollout.jsonl")
    assert formats(places, "auto") == ["codex-rollout", "claude-stream"]
    put(places.home / ".claude/projects/p/s.jsonl", "claude-code/session.jsonl")
    assert formats(places, "auto") == ["claude-code", "codex-rollout"]
    assert formats(places, "claude-stream:-", "claude-stream:-") == ["claude-stream"]


def test_a_path_is_of_the_home_the_workspace_or_this_machine(places: Places, tmp_path: Path) -> None:
    put(places.home / "log.jsonl", "codex-exec/events.jsonl")
    put(places.workspace / "in.jsonl", "codex-exec/events.jsonl")
    put(tmp_path / "kept.jsonl", "codex-exec/events.jsonl")
    for path in ("~/log.jsonl", str(places.workspace / "in.jsonl"), str(tmp_path / "kept.jsonl")):
        assert formats(places, f"codex-exec:{path}") == ["codex-exec"]
        assert formats(places, f"auto:{path}") == ["codex-exec"]


def test_what_is_not_there_is_told_and_claims_nothing(places: Places) -> None:
    found = gather([parse_source("plain:~/no.md")], places, NONE, [])
    assert found.claims.entries == ()
    assert found.notes == ("the transcript plain:~/no.md cannot be read: No such file or directory",)


def test_no_link_leads_out_of_the_home(places: Places, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    put(secret / "projects/p/s.jsonl", "claude-code/session.jsonl")
    (places.home / ".claude").symlink_to(secret)
    (places.home / "direct.jsonl").symlink_to(secret / "projects/p/s.jsonl")
    (places.workspace / "way").symlink_to(secret)
    os.mkfifo(places.home / "pipe")
    assert formats(places, "auto") == []
    for path in ("~/.claude/projects/p/s.jsonl", "~/direct.jsonl", "~/pipe", "~/../secret/projects/p/s.jsonl",
                 f"{places.workspace}/way/projects/p/s.jsonl"):  # fmt: skip
        found = gather([parse_source(f"claude-code:{path}")], places, NONE, [])
        assert (found.claims.entries, len(found.notes)) == ((), 1), path
    # The twin without a link is read.
    (places.home / ".claude").unlink()
    put(places.home / ".claude/projects/p/s.jsonl", "claude-code/session.jsonl")
    assert formats(places, "auto") == ["claude-code"]
    with open_beneath(places.home, ".claude/projects/p/s.jsonl") as stream:
        assert stream.read(1) == b"{"


@pytest.mark.parametrize("word", ["", "claude-code", "word:x", "auto:", ":x", "plain:"])
def test_what_names_no_transcript_is_refused(word: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_source(word)
    assert caught.value.code == "E_TRANSCRIPT_FORMAT"


def test_an_unknown_version_and_unread_lines_are_told(places: Places) -> None:
    text = '{"type":"session_meta","payload":{"cli_version":"9.9.9"}}\nnot json\n'
    (places.home / "r.jsonl").write_text(text)
    notes = gather([parse_source("codex-rollout:~/r.jsonl")], places, NONE, []).notes
    assert notes[0].endswith("of codex 9.9.9: 0 runs reported as done")
    assert notes[1] == "  it tells version 9.9.9; its reader was tried with 0.171.0"
    assert notes[2].startswith("  not read: line 2: ")


# --- in a run ---

SUBAGENTS = """
import json, subprocess
def run(command, outer):
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    use = {"type": "tool_use", "id": command, "name": "Bash", "input": {"command": command}}
    answer = {"type": "tool_result", "tool_use_id": command, "content": done.stdout, "is_error": False}
    if outer is not None:
        for kind, block in (("assistant", use), ("user", answer)):
            print(json.dumps({"type": kind, "session_id": "s", "parent_tool_use_id": outer or None,
                              "message": {"content": [block]}}))
run("wc -l src/app.py", "")
"""


@needs_observer
@pytest.mark.observer
def test_a_subagent_that_records_nothing_is_seen_all_the_same(watch: Watch) -> None:
    """Three files change in a subagent whose records never come: observed, and nothing is claimed of it."""
    silent = "".join(f"run('echo {name} > src/{name}.py', None)\n" for name in "abc")
    seen = watch(SUBAGENTS + silent + "run('cat src/a.py src/b.py', 'task')\n", transcripts=("auto",), terminal=False)
    assert {path for kind, path, *_ in seen.changes if kind == "create"} == {"src/a.py", "src/b.py", "src/c.py"}
    report: dict[str, Any] = json.loads(seen.observed.files[REPORT])
    assert [(run["claimed"], run.get("left_out"), run.get("by")) for run in report["runs"]] == [
        ("wc -l src/app.py", "of_its_time", None), ("cat src/a.py src/b.py", None, "task"),
    ]  # fmt: skip
    assert [claim["argv"] for claim in seen.claims["claims"]] == [["cat", "src/a.py", "src/b.py"]]


TOLD = """
import json, subprocess
for command in (%r, "true"):
    done = subprocess.run(["bash", "-c", command])
    item = {"id": command, "type": "command_execution", "command": "bash -lc " + repr(command), "exit_code": 0}
    print(json.dumps({"type": "item.completed", "item": item}), flush=True)
"""
KEY = "sk-" + "q8Zr2" * 9


@needs_observer
@pytest.mark.observer
@pytest.mark.parametrize("redact", [False, True])
def test_a_credential_in_what_was_said_is_cut_with_the_records(watch: Watch, redact: bool) -> None:
    command = f"export API_TOKEN={KEY}; echo --token {KEY} | cat"
    seen = watch(TOLD % command, transcripts=("codex-exec:-",), terminal=False, redact=redact)
    assert seen.observed.secrets["sentence"]
    held = {name: KEY in data.decode() for name, data in seen.observed.files.items()}
    assert held[REPORT] is not redact
    assert any(held.values()) is not redact, held


# Transcripts of which only a beginning is known ----------------------------------------------------------------------

CHECK = ["pytest", "-q"]
RAN = [
    {"id": "e1", "type": "exec", "step": 1, "argv": CHECK, "exit": 0},
    {"id": "e2", "type": "write", "step": 2, "path": "src/app.py"},
    {"id": "e3", "type": "exec", "step": 3, "argv": CHECK, "exit": 0},
]
EARLY = RAN[:2]
"""A check, and an edit after it."""


def ends_of(places: Places, text: str, events: list[dict[str, Any]], kept: int | None) -> tuple[list[str], int, bool]:
    """What becomes of what stands in the output: why each is left out, how many claims are recorded, what is lost."""
    places.output.write_text(text)
    known = Places(places.home, places.output, places.workspace, kept)
    found = gather([parse_source("auto:-")], known, NONE, events)
    left = [run.get("left_out", "") for run in found.report["runs"]]
    return left, len(found.claims.entries), bool(found.lost)


def test_what_stands_before_a_cut_is_nobodys_last_word(places: Places) -> None:
    log = "```console\n$ pytest -q\n[exit 0]\n```\n"
    # Whole, it is the agent's word on what it leaves, and an edit came after it. Behind a cut it may be said again.
    assert ends_of(places, log, EARLY, None) == ([""], 1, False)
    assert ends_of(places, log, EARLY, len(log)) == (["of_its_time"], 0, True)
    # What ran and was not edited after stands; still nobody knows what else was said.
    assert ends_of(places, log, RAN, len(log)) == ([""], 1, True)
    # What nothing bears out stands as well, and is contradicted without the rest.
    made_up = log.replace("pytest -q", "ruff check .")
    assert ends_of(places, made_up, RAN, len(made_up)) == ([""], 1, False)


def test_a_last_message_before_a_cut_is_not_the_last(places: Places) -> None:
    put(places.output, "claude-stream/stream.jsonl")
    stream = places.output.read_text()
    told = {}
    for kept in (None, len(stream)):
        known = Places(places.home, places.output, places.workspace, kept)
        found = gather([parse_source("auto")], known, NONE, [])
        told[kept] = found.notes
        assert [source.get("cut", False) for source in found.report["sources"]] == [kept is not None]
    assert told[len(stream)][0] == f"of what the agent printed only the first {len(stream)} bytes were kept"
    assert any("not read: only the first" in note for note in told[len(stream)])
    assert not any("kept" in note for note in told[None])


@pytest.mark.parametrize("bound", ["MAX_BYTES", "MAX_SAID"])
def test_a_file_that_is_not_read_to_its_end_is_cut_too(
    bound: str, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = "```console\n" + "$ pytest -q\n[exit 0]\n" * 3 + "```\n"
    assert ends_of(places, log, RAN, None) == (["superseded", "superseded", ""], 1, False)
    monkeypatch.setattr(f"troth.observer.transcripts.common.{bound}", 2)
    assert ends_of(places, log, RAN, None)[2] is True


def test_a_claims_file_that_is_not_read_to_its_end(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    line = '{"argv": ["pytest", "-q"], "exit": 0}\n'
    places.output.write_text(line * 3)
    monkeypatch.setattr("troth.observer.claims.MAX_BYTES", len(line))
    monkeypatch.setattr("troth.observer.transcripts.neutral.MAX_BYTES", len(line))
    found = gather([parse_source("claims:-")], places, NONE, RAN)
    assert (len(found.claims.entries), len(found.lost)) == (1, 1)


@pytest.mark.observer
@needs_observer
def test_a_run_whose_claims_were_cut_is_not_seen_whole(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troth.observer.launch.MAX_TRANSCRIPT", 5000)
    said = "import subprocess; subprocess.run(['ls']); print('```console\\n$ ls\\n[exit 0]\\n```')"
    whole = watch(said, transcripts=("plain:-",))
    assert (len(whole.claims["claims"]), whole.complete) == (1, True)
    padded = watch(f"{said}; print('\\n' * 6000); print('all 4985 tests pass')", transcripts=("plain:-",))
    assert (len(padded.claims["claims"]), padded.complete) == (1, False)
    assert padded.observed.coverage_faults == ("what was said in plain:- is not known to its end",)
    # A claim that nothing bears out is contradicted all the same.
    lied = watch(f"{said.replace('$ ls', '$ pytest')}; print('\\n' * 6000)", transcripts=("plain:-",))
    assert (len(lied.claims["claims"]), lied.complete) == (1, True)
