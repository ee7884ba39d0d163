"""The operator's commands through the front door: without a terminal, and in one of our own."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.airlock import PERSON, one_tier, workspace
from support.frontdoor import Answer, troth
from support.inside import troth_inside
from support.reviewing import Reviewer, finding, response, started
from troth.airlock.reviewing import finishing, host
from troth.airlock.reviewing.session import Session
from troth.backends.protocol import Failure

HOST = "agent:host"
KIND = "value_or_priority_tradeoff"
SAFETY = one_tier(auto_close=True, validators=["safety"])


def house(root: Path, *ends: str, name: str = "memo") -> Session:
    """A workspace with a run whose findings came to these ends."""
    if not (root / ".mentu").exists():
        workspace(root, SAFETY, {})
    findings = [finding(number, f"Claim {number} of the reviewer.") for number, _ in enumerate(ends, 1)]
    session = started(root / ".mentu", Reviewer(response(*findings)), id=name)
    with session.folder.exclusively():
        for number, end in enumerate(ends, 1):
            one = f"F{number:03d}"
            if end == "deadlocked":
                host.triage(session, one, "judgment", KIND, HOST)
                held = host.escalation(session, one, question=f"Question {number}?", position=f"Host on {number}.")
                host.conclude(session, one, "deadlocked", {"escalation": held}, HOST, unverifiable="A matter of taste.")
            else:
                host.triage(session, one, "checkable", None, HOST)
                host.verify(
                    session, one, {"method": "artifact_inspection", "result": "supports", "detail": "Read."}, HOST
                )
                host.conclude(session, one, end, {"resolution": "Mended."} if end == "resolved" else {}, HOST)
        finishing.settle(session)
    return session


def run(root: Path, *words: str) -> Answer:
    return troth_inside("review", *words, cwd=root, env={"TROTH_ACTOR": PERSON})


# --- without a terminal ---


def test_questions_are_shown_whole_and_decided_one_by_one(tmp_path: Path) -> None:
    house(tmp_path, "deadlocked", "resolved", "deadlocked")
    shown = run(tmp_path, "decide", "--json")
    assert shown.exit == 4
    assert [one["finding_id"] for one in shown.json["open"]] == ["F001", "F003"]
    for one in shown.json["open"]:
        assert {"claim", "evidence", "verification", "host_position", "reviewer_position", "question"} <= one.keys()
    told = run(tmp_path, "decide")
    assert told.exit == 4
    for part in ("Claim 1 of the reviewer.", "Host on 1.", "Question 1?", "saves 200", "A matter of taste.", "HOST"):
        assert part in " ".join(told.out.split())
    first = run(tmp_path, "decide", "--finding", "F001", "--ruling", "Save now.", "--json")
    assert (first.exit, first.json["open"], first.json["outcome"]) == (4, ["F003"], "deadlocked")
    assert first.json["decision"]["actor"] == PERSON
    assert first.json["decision"]["channel"] == "command"
    last = run(tmp_path, "decide", "--finding", "F003", "--ruling", "Wait.", "--channel", "conversation", "--json")
    assert (last.exit, last.json["open"], last.json["success"]) == (0, [], True)
    assert last.json["decision"]["channel"] == "conversation"
    assert run(tmp_path, "decide", "--json").json["open"] == []


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["--finding", "F002", "--ruling", "No."], "E_REVIEW_DECISION"),
        (["--finding", "F009", "--ruling", "No."], "E_REVIEW_DECISION"),
        (["--finding", "F001", "--ruling", " "], "E_REVIEW_DECISION"),
        (["--finding", "F001", "--ruling", "No.", "--as", "agent:host"], "E_REVIEW_ROLE"),
        (["--finding", "F001", "--ruling", "No \udcff."], "E_NOT_TEXT"),
        (["--finding", "F001", "--ruling", "No.", "--question", "So \udcff?"], "E_NOT_TEXT"),
        (["--finding", "F001", "--ruling", "x" * 5000], "E_REVIEW_DECISION"),
        (["--finding", "F001", "--ruling", "No.", "--as", "nobody"], "E_USAGE"),
        (["--finding", "F001"], "E_USAGE"),
        (["--ruling", "No."], "E_USAGE"),
        (["--reason", "No."], "E_USAGE"),
        (["none"], "E_REVIEW_UNKNOWN"),
    ],
)
def test_what_is_refused_leaves_no_trace(tmp_path: Path, words: list[str], code: str) -> None:
    session = house(tmp_path, "deadlocked", "resolved")
    before = {path.name: path.read_bytes() for path in session.folder.path.iterdir() if path.is_file()}
    answer = run(tmp_path, "decide", *words, "--json")
    assert (answer.exit, answer.json["error"]["code"]) == (2, code)
    assert {path.name: path.read_bytes() for path in session.folder.path.iterdir() if path.is_file()} == before
    assert run(tmp_path, "decide", "--finding", "F001", "--ruling", "No.").exit == 0


@pytest.mark.parametrize("same", ["memo:F001", "memo:F001=", "=memo:F001", "memo\udcff:F001=memo:F001", "a=b=c"])
def test_what_is_no_pair(tmp_path: Path, same: str) -> None:
    house(tmp_path, "resolved")
    house(tmp_path, "resolved", name="other")
    answer = run(tmp_path, "merge", "memo", "other", "--same", same, "--json")
    assert answer.exit == 2
    assert answer.json["error"]["code"] in ("E_USAGE", "E_PANEL_MERGE")
    assert run(tmp_path, "merge", "memo", "other", "--id", "both").exit == 3


def test_a_broken_record_refuses_the_whole_view(tmp_path: Path) -> None:
    session = house(tmp_path, "deadlocked", "deadlocked")
    assert run(tmp_path, "decide").exit == 4
    path = session.folder.path / "reconciliation.json"
    value = json.loads(path.read_bytes())
    del value["items"][1]["escalation"]["operator_question"]
    path.write_text(json.dumps(value))
    answer = run(tmp_path, "decide")
    assert answer.exit == 2
    assert "E_REVIEW_VIEW" in answer.err
    assert "Claim 1" not in answer.out
    value["review_id"] = "another"
    path.write_text(json.dumps(value))
    assert run(tmp_path, "decide", "--json").exit == 2


def test_a_correction_needs_a_reason(tmp_path: Path) -> None:
    house(tmp_path, "deadlocked")
    decide = ("decide", "--finding", "F001", "--ruling")
    assert run(tmp_path, *decide, "Save now.").exit == 0
    assert run(tmp_path, *decide, "Wait.").exit == 2
    answer = run(tmp_path, *decide, "Wait.", "--reason", "Winter came.", "--json")
    assert answer.exit == 0
    report = run(tmp_path, "report").out.replace("\\", "")
    assert "Wait. [Corrected" in report
    assert "Winter came." in report


def test_open_lists_what_waits(tmp_path: Path) -> None:
    house(tmp_path, "resolved", name="done")
    assert run(tmp_path, "open").exit == 0
    house(tmp_path, "deadlocked", name="stuck")
    answer = run(tmp_path, "open", "--json")
    assert answer.exit == 4
    assert [(one["review"], [asked["question"] for asked in one["open"]]) for one in answer.json["reviews"]] == [
        ("stuck", ["Question 1?"])
    ]
    assert "troth review decide stuck" in run(tmp_path, "open").out
    assert run(tmp_path, "decide", "stuck", "--finding", "F001", "--ruling", "No.").exit == 0
    assert run(tmp_path, "open").exit == 0


def test_reports(tmp_path: Path) -> None:
    house(tmp_path, "accepted", "deadlocked")
    answer = run(tmp_path, "report")
    assert answer.exit == 4
    assert "2 raised = 0 resolved by models + 1 accepted" in answer.out
    page = run(tmp_path, "report", "--format", "html", "--out", "page.html")
    assert page.exit == 4
    text = (tmp_path / "page.html").read_text()
    assert text.startswith("<!doctype html>")
    assert "Content-Security-Policy" in text
    assert run(tmp_path, "report", "--out", "page.html").exit == 2
    assert (tmp_path / "page.html").read_text() == text
    told = run(tmp_path, "report", "--json").json
    assert (told["outcome"], told["success"], told["tally"]["raised"]) == ("deadlocked", False, 2)


def test_a_failed_run_has_a_report_that_says_so(tmp_path: Path) -> None:
    workspace(tmp_path, SAFETY, {})
    started(tmp_path / ".mentu", Reviewer(Failure("timeout", "No answer <b>came</b>.", True)), id="memo")
    told = run(tmp_path, "report", "--json")
    assert (told.exit, told.json["outcome"], told.json["success"]) == (3, "failed", False)
    for form in ("md", "html"):
        text = run(tmp_path, "report", "--format", form).out
        assert "timeout" in text
        assert "No valid response came" in text
        assert "<b>" not in text
    assert run(tmp_path, "decide").exit == 2
    assert run(tmp_path, "open").exit == 0
    assert run(tmp_path, "record").exit == 2


def test_a_run_is_recorded_once(tmp_path: Path) -> None:
    house(tmp_path, "resolved")
    first = run(tmp_path, "record", "--json")
    assert first.exit == 0
    assert all(row["new"] for row in first.json["rows"])
    again = run(tmp_path, "record", "--json")
    assert [row["row"] for row in again.json["rows"]] == [row["row"] for row in first.json["rows"]]
    assert not any(row["new"] for row in again.json["rows"])
    assert run(tmp_path, "record", "--about", "cmt_00000000").exit == 2
    assert troth("verify", cwd=tmp_path).exit == 0


# --- a submission that rests on a review ---


def submitted(root: Path, review: str) -> Answer:
    env = {"TROTH_ACTOR": "agent:worker"}
    for words in (
        ("capture", "seen"), ("commit", "mend it", "--source", "@last"), ("claim", "@last"),
        ("capture", "done", "--kind", "evidence"),
    ):  # fmt: skip
        assert troth_inside(*words, cwd=root, env=env).exit == 0
    rows = [json.loads(line) for line in (root / ".mentu" / "ledger.jsonl").read_text().splitlines()]
    commitment = [row["id"] for row in rows if row["op"] == "commit"][-1]
    return troth_inside(
        "submit", commitment, "--evidence", rows[-1]["id"], "--review", review, "--json", cwd=root, env=env
    )  # fmt: skip


def test_safety_reads_the_review_that_a_submission_names(tmp_path: Path) -> None:
    session = house(tmp_path, "accepted", name="bad")
    house(tmp_path, "resolved", name="good")
    refused = submitted(tmp_path, "bad")
    assert refused.exit == 0
    assert refused.json["signal"]["payload"]["meta"] == {"review": "bad", "artifact": session.artifact.digest}
    assert refused.json["airlock"]["outcome"] == "failed"
    assert "not resolved: F001" in refused.json["airlock"]["results"][0]["reason"]
    closed = submitted(tmp_path, "good")
    assert closed.json["airlock"]["outcome"] == "closed"
    assert submitted(tmp_path, "none").exit == 2


# --- in a terminal ---


class Terminal:
    """A command in a pseudo-terminal of 120 columns: what it wrote, and keys for it."""

    def __init__(self, root: Path, *words: str) -> None:
        import fcntl
        import struct
        import termios

        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 120, 0, 0))
        env = {**os.environ, "TROTH_ACTOR": PERSON, "NO_COLOR": "1", "TERM": "xterm"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "troth", "review", *words],
            cwd=root,
            env=env,
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self.text = self.ahead = ""

    def until(self, what: str, seconds: float = 30) -> str:
        """Read until a text appears behind what was read before, and return what was read."""
        end = time.monotonic() + seconds
        while what not in self.ahead:
            if time.monotonic() > end or not select.select([self.master], [], [], end - time.monotonic())[0]:
                raise AssertionError(f"no {what!r} in {self.ahead!r}")
            try:
                data = os.read(self.master, 1 << 16)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"ended without {what!r}: {self.ahead!r}")
            self.ahead += data.decode(errors="replace")
        seen, what, self.ahead = self.ahead.partition(what)
        self.text += seen + what
        return seen + what

    def press(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def end(self) -> int:
        self.text += self.ahead
        try:
            while data := os.read(self.master, 1 << 16):
                self.text += data.decode(errors="replace")
        except OSError:
            pass
        os.close(self.master)
        return self.process.wait(timeout=60)


def lines_of(session: Session) -> list[dict[str, Any]]:
    return [json.loads(line) for line in session.folder.lines("decisions.jsonl").splitlines()]


def test_the_operator_walks_the_questions(tmp_path: Path) -> None:
    session = house(tmp_path, "deadlocked", "deadlocked", "deadlocked", "deadlocked")
    at = Terminal(tmp_path, "decide")
    shown = at.until("Key")
    for part in ("question 1 of 4", "Claim 1 of the reviewer.", "Question: Question 1?", "quote saves", "taste"):
        assert part in shown
    assert re.search(r"^REVIEWER +\| HOST\r?$", shown, re.MULTILINE)  # side by side
    at.press("x\n")  # no such key
    at.until("Key")
    at.press("h\n")
    at.until("Because")
    at.press("\n")  # taken back
    at.until("Key")
    at.press("h\n")
    at.until("Because")
    at.press("It is cheap.\n")
    at.until("question 2 of 4")
    at.until("Key")
    at.press("r\n")
    at.until("Because")
    at.press("It is dear.\n")
    at.until("question 3 of 4")
    at.until("Key")
    at.press("o\n")
    at.until("Your ruling")
    at.press("Half of it.\n")
    at.until("Because")
    at.press("Both have a point.\n")
    at.until("question 4 of 4")
    at.until("Key")
    at.press("s\n")
    assert at.end() == 4
    assert "open        F004" in at.text
    found = lines_of(session)
    assert [line["finding_id"] for line in found] == ["F001", "F002", "F003"]
    assert found[0]["ruling"] == "The host is right: Host on 1. Because: It is cheap."
    assert found[1]["ruling"].startswith("The reviewer is right: ")
    assert found[2]["ruling"] == "Half of it. Because: Both have a point."
    assert {(line["channel"], line["actor"]) for line in found} == {("terminal", PERSON)}
    last = Terminal(tmp_path, "decide")
    last.until("Key")
    last.press("h\n")
    last.until("Because")
    last.press("Enough.\n")
    assert last.end() == 0
    assert "converged" in last.text


def test_stopping_keeps_what_was_decided(tmp_path: Path) -> None:
    session = house(tmp_path, "deadlocked", "deadlocked")
    at = Terminal(tmp_path, "decide")
    at.until("Key")
    at.press("q\n")
    assert at.end() == 4
    assert lines_of(session) == []


def test_what_changed_while_a_person_thought_is_not_decided(tmp_path: Path) -> None:
    session = house(tmp_path, "deadlocked")
    at = Terminal(tmp_path, "decide")
    at.until("Key")
    assert run(tmp_path, "decide", "--finding", "F001", "--ruling", "Decided elsewhere.").exit == 0
    at.press("h\n")
    at.until("Because")
    at.press("Too late.\n")
    assert at.end() == 0
    assert "nothing was recorded" in at.text
    assert [line["ruling"] for line in lines_of(session)] == ["Decided elsewhere."]


def test_a_reviewers_escapes_do_not_reach_the_terminal(tmp_path: Path) -> None:
    workspace(tmp_path, SAFETY, {})
    evil = "\u001b[2J\u001b]0;gone\u0007 \u202eesrever <b>bold</b>"
    session = started(tmp_path / ".mentu", Reviewer(response(finding(1, evil, recommendation=evil))), id="memo")
    with session.folder.exclusively():
        host.triage(session, "F001", "judgment", KIND, HOST)
        held = host.escalation(session, "F001", question=evil, position=evil)
        host.conclude(session, "F001", "deadlocked", {"escalation": held}, HOST, unverifiable=evil)
        finishing.settle(session)
    at = Terminal(tmp_path, "decide")
    shown = at.until("Key")
    at.press("q\n")
    at.end()
    assert "\u001b" not in shown
    assert "\u202e" not in shown
    for words in (("decide",), ("decide", "--json"), ("open",), ("report",), ("report", "--format", "html")):
        answer = run(tmp_path, *words)
        assert not re.search("[\u001b\u0007\u202e]", answer.out + answer.err)
