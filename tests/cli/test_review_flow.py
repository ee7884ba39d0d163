"""Whole reviews through the front door, with a reviewer whose answers stand in a file."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from support.frontdoor import Answer, troth
from support.observing import needs_observer
from support.reviewing import MEMO, finding, reply, response
from troth.cli.main import main

APPROVE = ("--approve", "scripted:reviewer")


class Desk:
    """A workspace with a memo and a reviewer's script, and the commands on it."""

    def __init__(self, folder: Path, *answers: Mapping[str, Any]) -> None:
        self.folder = folder
        self.env = {"HOME": str(folder / "home"), "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": "", "NO_COLOR": "1",
                    "TROTH_ACTOR": "agent:host", "IMPASSE_HOST": "", "CLAUDECODE": ""}  # fmt: skip
        (folder / "home").mkdir()
        self.work = folder / "work"
        self.work.mkdir()
        (self.work / "memo.md").write_bytes(MEMO)
        self.script(*answers)
        assert self("init").exit == 0

    def script(self, *answers: Mapping[str, Any]) -> None:
        """Give the reviewer other answers."""
        (self.work / "reviewer.json").write_text(json.dumps({"answers": list(answers)}))

    def __call__(self, *words: str, stdin: str = "") -> Answer:
        """Run a command within this process, as it would be in one of its own."""
        out, err = io.StringIO(), io.StringIO()
        given = io.TextIOWrapper(io.BytesIO(stdin.encode()))
        with (
            contextlib.chdir(self.work), mock.patch.dict(os.environ, self.env), mock.patch.object(sys, "stdin", given),
            contextlib.redirect_stdout(out), contextlib.redirect_stderr(err),
        ):  # fmt: skip
            status = main(list(words))
        return Answer(status, out.getvalue(), err.getvalue())

    def start(self, *words: str, **given: Any) -> Answer:
        """Have the memo reviewed."""
        return self(
            "review", "start", "memo.md", "--kind", "decision", "--backend", "scripted:reviewer.json", *words, **given
        )

    def ok(self, *words: str) -> Any:
        """Run a command of a review and return its answer."""
        answer = (
            self("review", *words, "--json")
            if "--" not in words
            else self("review", *words[: words.index("--")], "--json", *words[words.index("--") :])
        )
        assert answer.exit == 0, answer.out + answer.err
        return answer.json


def says(value: Any, to: str = "review", **more: Any) -> dict[str, Any]:
    return {"to": to, "json": value, **more}


THREE = says(response(finding(1), finding(2, "There is no invoice."), finding(3, "Wait for spring.")))


def test_a_review_from_start_to_the_question(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE, says(reply("F002"), "rebuttal"))
    denied = desk.start()
    assert denied.exit == 2
    assert "consent_denied" in denied.err
    assert not (desk.work / ".mentu" / "reviews").exists()
    dry = desk.start("--dry-run", "--json")
    assert (dry.exit, dry.json["sent"], dry.json["consent"]["basis"]) == (0, False, None)
    assert dry.json["manifest"]["members"][0]["bytes"] == len(MEMO)
    begun = desk.start(*APPROVE)
    assert begun.exit == 3
    assert begun.out.index("payload sha256") < begun.out.index("needs attention")
    assert "not established" in begun.out
    assert desk.ok("next")["finding"]["id"] == "F001"
    assert desk.ok("triage", "F001", "checkable")["state"] == "evidence_verification"
    refused = desk("review", "accept", "F001", "--json")
    assert (refused.exit, refused.json["error"]["code"], refused.json["error"]["detail"]) == (
        2, "E_REVIEW_BASIS", "verified",
    )  # fmt: skip
    belied = desk("review", "verify", "F001", "--method", "artifact-inspection", "--result", "supports",
                  "--detail", "There is none.", "--absent", "saves", "--json")  # fmt: skip
    assert (belied.exit, belied.json["error"]["code"]) == (2, "E_REVIEW_CHECK")
    made = desk.ok("verify", "F001", "--method", "artifact-inspection", "--result", "supports", "--detail",
                   "No source is named.", "--absent", "invoice")  # fmt: skip
    assert made["recorded"]
    assert desk.ok("resolve", "F001", "--done", "The invoice is named.")["state"] == "resolved"
    desk.ok("triage", "F003", "judgment", "--kind", "value_or_priority_tradeoff")
    desk.ok("escalate", "F003", "--question", "Now or in spring?", "--position", "Now.", "--unverifiable", "It weighs.")
    desk.ok("triage", "F002", "checkable")
    desk.ok("contest", "F002", "--position", "It is attached.", "--unverifiable", "The attachment is not here.")
    brought = desk.ok("rebut", "F002")
    assert brought["news"]
    assert brought["finding"]["new_evidence"][0]["waiting"]
    ended = desk.ok("escalate", "F002", "--question", "Is there an invoice?")
    assert ended["outcome"] == "deadlocked"
    assert not ended["success"]
    status = desk("review", "status")
    assert status.exit == 4
    assert "A person must decide." in status.out
    result = json.loads((desk.work / ".mentu/reviews/memo/reconciliation.json").read_bytes())
    assert [item["escalation"]["stop_reason"] for item in result["items"] if item["state"] == "deadlocked"] == [
        "round_limit", "operator_authority_required",
    ]  # fmt: skip
    checked = desk.ok("recheck")
    assert [again["state"] for again in checked["checked"]] == ["same"]
    validated = troth(
        "review", "validate", ".mentu/reviews/memo/reconciliation.json", "--review",
        ".mentu/reviews/memo/response.json", "--artifact", "memo.md=.mentu/reviews/memo/payload",
        cwd=desk.work, env=desk.env,
    )  # fmt: skip
    assert validated.exit == 0
    for path in (desk.work / ".mentu" / "reviews").rglob("*"):
        assert stat.S_IMODE(path.lstat().st_mode) == (0o700 if path.is_dir() else 0o600)


FAILURES = ("backend_error", "rate_limited", "auth_error", "timeout", "consent_denied", "artifact_unavailable",
            "cancelled")  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [{"failure": code} for code in FAILURES]
    + [{"text": "VERDICT: APPROVE"}, {"text": ""}, {"flood": 50_000_000}, {"end": "wall_timeout"},
       says({"schema_version": "1.0", "reconciliation_id": "r", "review_id": "memo", "outcome": "converged",
             "items": []})],
    ids=str,
)  # fmt: skip
def test_a_reviewer_that_failed_never_approves(tmp_path: Path, answer: dict[str, Any]) -> None:
    desk = Desk(tmp_path, answer)
    begun = desk.start(*APPROVE)
    assert begun.exit == 3
    assert "outcome     failed: The review failed; nothing was established." in begun.out
    status = desk("review", "status", "--json")
    assert (status.exit, status.json["outcome"], status.json["success"]) == (3, "failed", False)
    assert desk("review", "next").exit == 2
    assert desk("review", "finish").exit == 3


def test_an_approval_is_a_success(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says(response()))
    assert desk.start(*APPROVE).exit == 0
    assert desk("review", "status").exit == 0
    assert desk("review", "list", "--open", "--json").json == {"reviews": []}


def test_a_hostile_answer_does_no_harm(tmp_path: Path) -> None:
    nasty = "\x1b]0;owned\x07\x1b[2J<script>alert(1)</script>\u202e"
    entry = {**finding(1)["evidence"][0], "observation": nasty}
    answer = response(finding(1, nasty, evidence=[entry], recommendation=nasty), review_id="../../../escape",
                      summary=nasty)  # fmt: skip
    desk = Desk(tmp_path, says(answer))
    begun = desk.start(*APPROVE)
    shown = desk("review", "next")
    for told in (begun, shown, desk("review", "next", "--json"), desk("review", "status", "--json")):
        assert told.exit in (0, 3)
        assert not {"\x1b", "\x07", "\u202e"} & set(told.out + told.err)
    assert [path.name for path in (desk.work / ".mentu" / "reviews").glob("[!.]*")] == ["memo"]
    kept = json.loads((desk.work / ".mentu/reviews/memo/response.json").read_bytes())
    assert kept["review_id"] == "memo"
    verdict = json.loads((desk.work / ".mentu/reviews/memo/validation.json").read_bytes())
    assert verdict["supplied"]["review_id"] == "../../../escape"


def test_an_anchor_that_points_nowhere_is_flagged(tmp_path: Path) -> None:
    lost = {**finding(1)["evidence"][0], "anchor": {"type": "text_quote", "quote": "saves 300"}}
    desk = Desk(tmp_path, says(response(finding(1, evidence=[lost]))))
    assert "1 pieces of evidence point nowhere" in desk.start(*APPROVE).out
    shown = desk("review", "next")
    assert "[unresolved]" in shown.out
    assert "rests on your own verification alone" in shown.out


def test_runs_are_named_listed_and_forgotten(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says(response(finding(1))))
    for words in ((), ("--id", "Ärger/../x")):
        assert desk.start(*APPROVE, *words).exit == 3
    ids = [entry["review_id"] for entry in desk.ok("list")["reviews"]]
    assert ids[0] == "memo"
    assert ids[1].startswith("-rger-..-x-")
    assert desk.ok("next", "--review", "mem")["review_id"] == "memo"
    assert desk("review", "next", "--review", "../memo").exit == 2
    # What is suggested names the run when it is not the last one.
    told = desk.ok("triage", "F001", "checkable", "--review", "memo")
    assert all("--review memo" in step["command"] for step in told["next"])
    assert desk.ok("forget", "memo")["gone"]
    assert not (desk.work / ".mentu/reviews/memo").exists()
    assert desk("review", "forget", "memo").exit == 2
    assert desk.ok("prune", "--days", "1") == {"removed": [], "kept": [], "dry_run": False}
    run = desk.work / ".mentu/reviews" / ids[1] / "run.json"
    run.write_text(run.read_text().replace('"created":"20', '"created":"19'))
    assert desk.ok("prune", "--days", "1")["removed"] == [ids[1]]


def test_prune_keeps_what_waits_for_the_operator(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says(response(finding(1))))
    desk.start(*APPROVE)
    desk.ok("triage", "F001", "judgment", "--kind", "policy_or_authority_required")
    desk.ok("escalate", "F001", "--question", "May we?", "--position", "No.", "--unverifiable", "It is policy.")
    run = desk.work / ".mentu/reviews/memo/run.json"
    run.write_text(run.read_text().replace('"created":"20', '"created":"19'))
    assert desk.ok("prune", "--days", "30")["kept"] == [
        {"review_id": "memo", "why": "1 of its questions wait for the operator"}
    ]
    assert desk.ok("prune", "--days", "30", "--even-open")["removed"] == ["memo"]


def test_outside_a_workspace_runs_stand_in_the_users_folder(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says(response()))
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "memo.md").write_bytes(MEMO)
    script = f"scripted:{desk.work}/reviewer.json"
    begun = troth("review", "start", "memo.md", "--kind", "decision", "--backend", script, *APPROVE,
                  cwd=alone, env=desk.env)  # fmt: skip
    assert begun.exit == 0, begun.err
    assert (tmp_path / "home/.local/state/troth/reviews/memo/run.json").is_file()


def test_several_files_and_standard_input(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says(response()))
    (desk.work / "src").mkdir()
    for name in ("b.py", "a.py"):
        (desk.work / "src" / name).write_text(f"# {name}\n")
    (desk.work / "src" / "link.py").symlink_to("/etc/passwd")
    begun = desk("review", "start", "src", "-", "n.md=memo.md", "--kind", "code", "--backend", "scripted:reviewer.json",
                 *APPROVE, "--json", stdin="a diff\n")  # fmt: skip
    assert begun.exit == 0, begun.out
    assert [member["path"] for member in begun.json["members"]] == ["n.md", "src/a.py", "src/b.py", "stdin"]
    link = desk("review", "start", "src/link.py", "--kind", "code", "--backend", "scripted:reviewer.json", *APPROVE)
    assert (link.exit, "symbolic link" in link.err) == (2, True)


def shot(desk: Desk, finding_id: str, command: str, folder: Path) -> None:
    """Do what was suggested on a copy of the run: it must not be refused."""
    reviews = desk.work / ".mentu" / "reviews"
    shutil.copytree(reviews, folder, symlinks=True)
    filled = {"COMMAND…": "true", "RESULT": "supports", "TEXT": "Some words.", "WHY": "It is so.",
              "WHY-THIS-GOVERNS": "It is stronger."}  # fmt: skip
    words = [filled.get(word, word) for word in command.split()[2:]]
    try:
        answer = desk("review", *words, *(APPROVE if words[0] == "rebut" else ()))
        assert answer.exit == 0, (finding_id, command, answer.err)
    finally:
        shutil.rmtree(reviews)
        shutil.move(folder, reviews)


@needs_observer
@pytest.mark.observer
def test_what_is_suggested_is_legal(tmp_path: Path) -> None:
    answers = [says(reply(name), "rebuttal", finding=f'"id":"{name}"') for name in ("F001", "F003")]
    desk = Desk(tmp_path, THREE, *answers)
    desk.start(*APPROVE, "--rounds", "2")
    inspect = ("--method", "artifact-inspection", "--detail", "Looked.")
    way = [
        (),
        ("triage", "F001", "checkable"),
        ("triage", "F003", "judgment", "--kind", "value_or_priority_tradeoff"),
        ("verify", "F001", *inspect, "--result", "supports"),
        ("verify", "F001", *inspect, "--result", "contradicts"),
        ("contest", "F001", "--position", "No."),
        ("rebut", "F001"),
        ("verify", "F001", *inspect, "--result", "inconclusive"),
        ("contest", "F001", "--position", "Still no."),
        ("rebut", "F001"),
        ("contest", "F003", "--position", "No.", "--unverifiable", "It weighs."),
    ]
    tried = set()
    for number, words in enumerate(way):
        if words:
            desk.ok(*words)
        for name in ("F001", "F003"):
            found = desk.ok("next", name)["finding"]
            for step in found["next"]:
                key = (found["state"], found["label"], step["command"])
                if key in tried or " decide" in step["command"]:
                    continue
                tried.add(key)
                shot(desk, name, step["command"], tmp_path / f"copy{number}")
    verbs = {command.split()[2] for _, _, command in tried}
    assert verbs == {"triage", "verify", "accept", "resolve", "reject", "contest", "rebut", "escalate"}


def test_what_is_not_to_be_kept_is_not(tmp_path: Path) -> None:
    desk = Desk(tmp_path, THREE)
    before = sorted(path for path in tmp_path.rglob("*") if "metrics" not in path.name)
    told = desk.start(*APPROVE, "--no-record", "--json")
    assert (told.exit, told.json["recorded"], told.json["success"]) == (3, False, False)
    assert [entry["id"] for entry in told.json["document"]["findings"]] == ["F001", "F002", "F003"]
    raw = desk.start(*APPROVE, "--raw", "--json")
    assert (raw.exit, set(raw.json["document"])) == (3, {"unverified", "findings"})
    assert "UNVERIFIED findings of a reviewer, no review." in desk.start(*APPROVE, "--raw").out
    assert desk.start("--raw").exit == 2  # without consent nothing leaves either
    desk.script(says(response()))
    assert desk.start(*APPROVE, "--no-record").exit == 3
    desk.script({"failure": "timeout"})
    assert "failed: timeout" in desk.start(*APPROVE, "--no-record").out
    after = sorted(path for path in tmp_path.rglob("*") if "metrics" not in path.name)
    assert set(after) - set(before) <= {
        tmp_path / "home" / name for name in (".local", ".local/state", ".local/state/troth")
    }


def test_a_self_review_is_what_it_is(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    own = desk.work / "own.json"
    own.write_text(json.dumps(response(finding(1))))
    words = ("review", "start", "memo.md", "--kind", "decision", "--self-review", "own.json", "--json")
    refused = desk(*words)
    assert (refused.exit, refused.json["error"]["code"]) == (2, "E_SELF_REVIEW")
    # Claude on a surface that can start no program, on a machine without any reviewer.
    desk.env |= {"CLAUDE_SURFACE": "chat", "PATH": str(tmp_path / "nothing"), "OPENAI_API_KEY": "",
                 "ANTHROPIC_API_KEY": ""}  # fmt: skip
    code = desk(*words[:4], "code", *words[5:])
    assert (code.exit, code.json["error"]["code"]) == (2, "E_SELF_REVIEW")
    made = desk(*words)
    assert made.exit == 3, made.out
    assert made.json["independence"]["tier"] == "self_review"
    assert made.json["independence"]["notices"][0].startswith("SELF-REVIEW")
    assert made.json["backend"]["kind"] == "self"
    assert "SELF-REVIEW" in desk("review", "status").out
    desk.ok("triage", "F001", "checkable")
    desk.ok("contest", "F001", "--position", "No.", "--unverifiable", "Nothing can.")
    nobody = desk("review", "rebut", "F001", "--json")
    assert (nobody.exit, nobody.json["error"]["code"]) == (2, "E_SELF_REVIEW")


def test_a_command_killed_while_it_waits_is_taken_up(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {**THREE, "delay": 60})
    words = [sys.executable, "-m", "troth", "review", "start", "memo.md", "--kind", "decision", "--backend",
             "scripted:reviewer.json", *APPROVE]  # fmt: skip
    waiting = subprocess.Popen(words, cwd=desk.work, env={**os.environ, **desk.env}, stdout=subprocess.DEVNULL)
    calls = desk.work / ".mentu/reviews/memo/calls.jsonl"
    while waiting.poll() is None and not (calls.is_file() and calls.read_bytes()):
        time.sleep(0.01)
    waiting.kill()
    assert waiting.wait() == -signal.SIGKILL
    assert desk("review", "status").exit == 3
    assert desk("review", "next").exit == 2
    desk.script(THREE)
    taken = desk("review", "resume", "--json")
    assert (taken.exit, taken.json["stage"]) == (3, "open")
    assert taken.json["mended"] == ["the reviewer was asked again"]
    assert taken.json["spent"]["seconds"] >= 300  # what was lost may have taken all that it was allowed
    assert len(calls.read_bytes().splitlines()) == 3
    assert desk("review", "resume", "--json").json["mended"] == []


def test_a_deadline_ends_a_call(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {**THREE, "delay": 60})
    begun = desk.start(*APPROVE, "--deadline", "1", "--json")
    assert begun.exit == 3
    assert begun.json["failure"]["code"] == "timeout"
    assert begun.json["exhausted"] == "deadline"


def test_no_rounds_means_no_rebuttal(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says(response(finding(1))))
    desk.start(*APPROVE, "--rounds", "0")
    desk.ok("triage", "F001", "checkable")
    desk.ok("contest", "F001", "--position", "No.", "--unverifiable", "Nothing can.")
    refused = desk("review", "rebut", "F001", "--json")
    assert (refused.exit, refused.json["error"]["detail"]) == (2, "round")
    assert desk.ok("escalate", "F001", "--question", "Does it stand?")["outcome"] == "deadlocked"


def test_what_looks_like_a_secret_is_told_before_it_leaves(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says(response()))
    (desk.work / "memo.md").write_text("aws_access_key_id = AKIA" + "ABCDEFGHIJKLMNOP"[::-1] + "\n")
    told = desk.start("--dry-run", "--json")
    assert told.json["warnings"][0]["member"] == "memo.md"
    assert "looks like a secret" in told.err


def test_a_lens_that_is_no_text(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says(response()))
    for lens in ("\udcff", " "):
        assert desk.start(*APPROVE, "--lens", lens).exit == 2
    assert desk.start(*APPROVE, "--lens", "Look for costs.").exit == 0
    assert "Look for costs." in (desk.work / ".mentu/reviews/memo/instruction").read_text()


def test_an_operators_confirmation_is_not_an_agents(tmp_path: Path) -> None:
    desk = Desk(tmp_path, says(response(finding(1))))
    desk.start(*APPROVE)
    desk.ok("triage", "F001", "checkable")
    words = ("verify", "F001", "--method", "operator-confirmation", "--result", "supports", "--detail", "Asked.")
    denied = desk("review", *words, "--json")
    assert (denied.exit, denied.json["error"]["code"]) == (2, "E_REVIEW_ROLE")
    assert desk.ok(*words, "--as", "human:reviewer")["recorded"]
