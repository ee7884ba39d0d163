"""`troth queue`, and what `submit` and `show` tell about the airlock: through the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from support.airlock import KEY, PERSON, WORKER, in_review, one_tier, settle, submit
from support.airlock import workspace as made
from support.ledgers import environment
from support.processes import assert_gone
from support.shell import Shell, make_shell
from troth.airlock.queue import RISK_WORDS, RISKS
from troth.airlock.validating import Airlock
from troth.core.instants import format_instant
from troth.ledger.operations import Candidate

PASS, FAIL = ["true"], ["sh", "-c", "echo why; exit 3"]


@pytest.fixture
def troth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    """Run commands in a fresh workspace, as the worker unless told otherwise."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROTH_ACTOR", WORKER)
    shell = make_shell(capfd)
    assert shell("init", "--workspace", "w").exit == 0
    return shell


def claimed(troth: Shell, *tags: str, body: str = "mend it") -> tuple[str, str]:
    """A claimed commitment and evidence for it."""
    seen = troth("capture", "seen", "--as", PERSON).id
    words = [word for tag in tags for word in ("--tag", tag)]
    commitment = troth("commit", body, "--source", seen, *words, "--as", PERSON).id
    assert troth("claim", commitment).exit == 0
    return commitment, troth("capture", "done", "--kind", "evidence").id


def submitted(troth: Shell, *tags: str, body: str = "mend it") -> tuple[str, dict[str, Any]]:
    commitment, evidence = claimed(troth, *tags, body=body)
    answer = troth("submit", commitment, "--evidence", evidence, "--json")
    assert answer.exit == 0, answer
    return commitment, answer.json


def queue(troth: Shell, *words: str) -> dict[str, Any]:
    answer = troth("queue", *words, "--json")
    assert answer.exit == 0, answer
    found: dict[str, Any] = answer.json
    return found


def entry(troth: Shell, commitment: str, *words: str) -> dict[str, Any]:
    (found,) = [one for one in queue(troth, *words)["waiting"] if one["commitment"] == commitment]
    return dict(found)


# --- submit ------------------------------------------------------------------------------------------------------


def test_submit_tells_what_the_airlock_made_of_it(troth: Shell, tmp_path: Path) -> None:
    settle(tmp_path, KEY, {"suite": PASS})
    commitment, told = submitted(troth)
    airlock = told["airlock"]
    assert (airlock["tier"], airlock["outcome"], airlock["commitment"]) == (2, "closed", commitment)
    assert [(one["validator"], one["result"]) for one in airlock["results"]] == [("suite", "passed")]
    assert airlock["approval"].startswith("op_")
    assert airlock["disputable_until"]
    commitment, evidence = claimed(troth)
    said = troth("submit", commitment, "--evidence", evidence)
    assert said.exit == 0
    assert "suite passed: the command ended with exit 0" in said.out
    assert "tier 2: closed: every validator of tier_2 passed (op_" in said.out
    assert f"troth reopen {commitment}" in said.out


@pytest.mark.parametrize(("tag", "suite", "outcome"), [("other", FAIL, "failed"), ("security", PASS, "waiting")])
def test_a_submission_that_waits_is_no_failure_of_the_command(
    troth: Shell, tmp_path: Path, tag: str, suite: list[str], outcome: str
) -> None:
    settle(tmp_path, KEY, {"suite": suite})
    commitment, told = submitted(troth, tag)  # exit status 0
    assert told["airlock"]["outcome"] == outcome
    state = {one["id"]: one["state"] for one in troth("status", "--json").json["commitments"]}
    assert state[commitment] == "in_review"


def test_without_tiers_submit_says_what_it_always_said(troth: Shell) -> None:
    commitment, evidence = claimed(troth)
    said = troth("submit", commitment, "--evidence", evidence)
    assert (said.exit, len(said.out.splitlines())) == (0, 1)
    _, told = submitted(troth)
    assert (told["airlock"]["tier"], told["airlock"]["results"], told["airlock"]["outcome"]) == (None, [], "waiting")


def test_a_submission_may_name_a_review(troth: Shell, tmp_path: Path) -> None:
    settle(tmp_path, one_tier(auto_close=True, validators=["safety"]))
    commitment, evidence = claimed(troth)
    meta = json.dumps({"review": "rev-1", "artifact": "ab" * 32})
    told = troth("submit", commitment, "--evidence", evidence, "--meta", meta, "--json").json
    assert told["signal"]["payload"]["meta"]["review"] == "rev-1"
    assert told["airlock"]["results"][0]["reason"] == "no review is on record under the name rev-1"


def test_a_refused_submission_asks_nobody(troth: Shell, tmp_path: Path) -> None:
    settle(tmp_path, KEY, {"suite": ["sh", "-c", "touch asked"]})
    commitment, evidence = claimed(troth)
    answer = troth("submit", commitment, "--evidence", evidence, "--as", "agent:rival", "--json")
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_NOT_OWNER")
    assert not (tmp_path / "asked").exists()
    assert troth("submit", commitment, "--evidence", evidence).exit == 0
    assert (tmp_path / "asked").exists()


def test_hostile_words_of_a_validator_drive_no_terminal(troth: Shell, tmp_path: Path) -> None:
    script = "import sys; sys.stdout.buffer.write(b'\\x1b]0;owned\\x07\\x1b[31m\\xe2\\x80\\xaered\\xff'); sys.exit(1)"
    settle(tmp_path, KEY, {"suite": [sys.executable, "-c", script]})
    commitment, evidence = claimed(troth, body="fix \x1b[2J it")
    said = [troth("submit", commitment, "--evidence", evidence), troth("queue"), troth("show", commitment)]
    said.append(troth("queue", "run", commitment))
    for one in said:
        assert one.exit == 0
        assert "\x1b" not in one.out + one.err
        assert "\u202e" not in one.out + one.err
        assert "red" in one.out


# --- queue -------------------------------------------------------------------------------------------------------


def test_an_empty_queue_says_so(troth: Shell) -> None:
    assert troth("queue").out == "Nothing waits.\n"
    assert troth("queue", "--mine", "--as", PERSON).out == f"Nothing waits for {PERSON}.\n"
    found = queue(troth)
    assert [found[name] for name in ("waiting", "groups", "reopened", "disputable")] == [[], [], [], []]


def test_it_tells_what_waits_for_whom_why_and_what_to_type(troth: Shell, tmp_path: Path) -> None:
    settle(tmp_path, KEY, {"suite": FAIL})
    commitment, told = submitted(troth, "security")
    found = entry(troth, commitment)
    assert (found["tier"], found["submitter"], found["submission"]) == (3, WORKER, told["id"])
    assert [(one["validator"], one["result"]) for one in found["validators"]] == [
        ("suite", "failed"), ("intent", "waiting"),
    ]  # fmt: skip
    assert found["validators"][0]["reason"] == "the command ended with exit 3: why"
    assert found["waits_for"] == "somebody to look at what did not pass: suite"
    assert found["who"] == {
        "anyone": True, "patterns": None, "without": [], "approvers": [], "human": True, "not": WORKER,
    }  # fmt: skip
    assert found["risks"] == ["person_demanded", "validator_failed"]
    assert found["evidence"]["body"] == "done"
    assert found["commands"] == [
        f"troth queue run {commitment}",
        f"troth approve {commitment} --submission {told['id']}",
        f"troth reopen {commitment} --reason TEXT",
    ]
    text = troth("queue").out
    for words in ("tier 3", "why", "any person but not agent:worker", "the tier demands a person", *found["commands"]):
        assert words in text
    # What is told to be typed works.
    assert troth(*found["commands"][1].split()[1:], "--as", PERSON).exit == 0
    assert queue(troth)["waiting"] == []


WHO = [
    # (sections of the key beside the tier, tags, phrase)
    ("", (), "anyone but not agent:worker"),
    ("constraints: {approve: {allow_self: true}}\n", (), "anyone"),
    (
        "constraints: {money: {approvers: ['human:lead-*']}}\n",
        ("money",),
        "anyone but not agent:worker; only human:lead-*",
    ),
    (
        "actors: [{id: 'human:*', role: lead}, {id: human:guest, role: guest}, {id: 'agent:*', role: worker}]\n"
        "permissions: {lead: '*', guest: [capture], worker: [capture, claim, submit, annotate]}\n",
        (),
        "human:* but not human:guest or agent:worker",
    ),
    (
        "actors: [{id: '*', role: all}]\npermissions: {all: [capture, commit, claim, submit, annotate]}\n",
        (),
        "nobody: no role of the key may approve it",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("sections", "tags", "words"), WHO)
def test_who_may_decide_is_read_from_the_key(
    troth: Shell, tmp_path: Path, sections: str, tags: tuple[str, ...], words: str
) -> None:
    settle(tmp_path, one_tier(validators=["suite"]) + sections, {"suite": PASS})
    commitment, _ = submitted(troth, *tags)
    assert f"who: {words}\n" in troth("queue").out
    assert entry(troth, commitment)["waits_for"] == "an approval"


def test_without_a_key_anyone_may_and_mine_leaves_out_ones_own(troth: Shell) -> None:
    commitment, _ = submitted(troth)
    assert entry(troth, commitment)["who"]["anyone"] is True
    assert queue(troth, "--mine", "--as", WORKER)["waiting"] == []
    assert [one["commitment"] for one in queue(troth, "--mine", "--as", PERSON)["waiting"]] == [commitment]


@pytest.mark.parametrize(
    ("actor", "sees"), [(PERSON, True), (WORKER, False), ("agent:rival", False), ("reviewer@example.org", True)]
)
def test_mine_is_what_the_key_lets_one_decide(troth: Shell, tmp_path: Path, actor: str, sees: bool) -> None:
    settle(tmp_path, KEY, {"suite": PASS})
    commitment, _ = submitted(troth, "security")
    assert [one["commitment"] for one in queue(troth, "--mine", "--as", actor)["waiting"]] == [commitment] * sees
    answer = troth("approve", commitment, "--as", actor)
    assert (answer.exit == 0) == sees  # the queue says what the write says


def test_many_of_one_harmless_kind_stand_together_and_risky_ones_alone_and_first(tmp_path: Path, troth: Shell) -> None:
    """A hundred wait: ninety of one kind, ten that somebody has to look at."""
    store = made(tmp_path, KEY.replace("auto_close: true}", "validators: [suite]}"), {"suite": PASS})
    for number in range(100):
        tags = ("docs",) if number % 10 else ("security",)
        _, submission = in_review(store, *tags)
        Airlock(store).take(submission)
    found = queue(troth)
    assert len(found["waiting"]) == 100
    (group,) = found["groups"]
    assert (group["tier"], group["tags"], len(group["commitments"])) == (1, ["docs"], 90)
    assert all(one["tags"] == ["security"] and one["risks"] for one in found["waiting"][:10])
    assert all(one["evidence"]["id"] for one in found["waiting"])
    text = troth("queue").out
    assert text.index("security") < text.index("90 of one kind")
    assert "and 80 more; --all lists them" in text
    assert troth("queue", "--all").out.count("      evidence mem_") == 90


def test_a_group_is_approved_as_it_was_shown_and_never_otherwise(troth: Shell, tmp_path: Path) -> None:
    settle(tmp_path, one_tier(validators=["suite"]), {"suite": PASS})
    members = [submitted(troth, "docs")[0] for _ in range(3)]
    (group,) = queue(troth)["groups"]
    assert group["commitments"] == members
    assert group["command"] in troth("queue").out
    words = group["command"].split()[1:]
    late, told = submitted(troth, "docs")
    answer = troth(*words, "--as", PERSON, "--json")  # it is another group now
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_GROUP_UNKNOWN")
    assert len(queue(troth)["waiting"]) == 4
    assert troth("approve", late, "--submission", told["id"], "--as", PERSON).exit == 0
    own = troth(*words, "--json")  # by whoever submitted them: each is refused, none is approved
    assert own.exit == 2
    assert [one["error"]["detail"] for one in own.json["refused"]] == ["allow_self"] * 3
    said = troth(*words, "--as", PERSON, "--comment", "typos", "--json")
    assert said.exit == 0
    assert [one["commitment"] for one in said.json["approved"]] == members
    assert all(one["evidence"]["body"] == "done" for one in said.json["approved"])
    signal_ = troth("show", said.json["approved"][0]["id"], "--json").json["signal"]["payload"]
    assert (signal_["comment"], signal_["meta"]["group"]) == ("typos", group["id"])
    assert signal_["meta"]["submission"].startswith("op_")
    assert queue(troth)["waiting"] == []
    assert troth(*words, "--as", PERSON, "--json").json["error"]["code"] == "E_GROUP_UNKNOWN"


def test_decisions_and_how_long_they_took_are_told(tmp_path: Path, troth: Shell) -> None:
    now = [datetime(2026, 3, 1, tzinfo=UTC)]
    store = made(tmp_path, None, clock=lambda: now[0])
    commitment, first = in_review(store)
    now[0] += timedelta(minutes=90)
    store.append(Candidate("reopen", PERSON, {"body": "no", "commitment": commitment}))
    second = submit(store, commitment)
    now[0] += timedelta(seconds=40)
    approved = store.append(Candidate("approve", PERSON, {"body": "yes", "commitment": commitment}))["id"]
    found = troth("show", commitment, "--json").json["decisions"]
    assert [(one["submission"], one["decision"], one["seconds"]) for one in found] == [
        (first, "reopened", 5400.0), (second, "approved", 40.0),
    ]  # fmt: skip
    assert (found[1]["by"], found[1]["row"]) == (PERSON, approved)
    text = troth("show", commitment).out
    assert f"decided: {first} reopened by {PERSON} after 1.5 h\n" in text
    assert f"decided: {second} approved by {PERSON} after 40 s\n" in text


def test_every_risk_has_words_and_a_case(tmp_path: Path, troth: Shell) -> None:
    assert RISKS.keys() == RISK_WORDS.keys()
    settle(tmp_path, KEY, {"suite": FAIL})
    commitment, _ = submitted(troth)
    assert entry(troth, commitment)["risks"] == ["validator_failed"]
    troth("reopen", commitment, "--as", PERSON)
    settle(tmp_path, KEY.replace("tier_2: {auto_close: true, review_window: 24h", "tier_2: {"
           ).replace("tier_2: {, ", "tier_2: {"), {"suite": PASS})  # fmt: skip
    meta = json.dumps({"run": "run_0badcafe", "decision": "not_established"})
    evidence = troth("capture", "maybe", "--kind", "evidence", "--meta", meta).id
    assert troth("submit", commitment, "--evidence", evidence).exit == 0
    assert entry(troth, commitment)["risks"] == ["reopened_before", "receipt_not_supported"]
    person, _ = submitted(troth, "security")
    assert entry(troth, person)["risks"] == ["person_demanded"]
    plain, _ = submitted(troth)
    assert entry(troth, plain)["risks"] == []


def test_reopened_work_waits_for_its_owner(troth: Shell) -> None:
    commitment, _ = submitted(troth)
    assert troth("reopen", commitment, "--reason", "it fails on a clean checkout", "--as", PERSON).exit == 0
    (found,) = queue(troth)["reopened"]
    assert (found["commitment"], found["owner"], found["by"]) == (commitment, WORKER, PERSON)
    assert found["reason"] == "it fails on a clean checkout"
    assert len(queue(troth, "--mine", "--as", WORKER)["reopened"]) == 1
    assert queue(troth, "--mine", "--as", PERSON)["reopened"] == []
    assert "it fails on a clean checkout" in troth("queue").out


def test_a_closing_is_listed_while_it_can_be_disputed(tmp_path: Path, troth: Shell) -> None:
    closed = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=23)
    store = made(tmp_path, clock=lambda: closed)
    commitment, submission = in_review(store)
    assert Airlock(store).take(submission).outcome == "closed"
    (found,) = queue(troth)["disputable"]
    until = format_instant(closed + timedelta(hours=24))
    assert (found["commitment"], found["until"], found["tier"]) == (commitment, until, 2)
    assert until in troth("queue").out
    assert len(queue(troth, "--at", until)["disputable"]) == 1
    assert queue(troth, "--at", format_instant(closed + timedelta(hours=24, seconds=1)))["disputable"] == []
    assert troth(*found["command"].split()[1:], "--as", PERSON).exit == 0


def test_the_front_door_refuses_a_dispute_after_the_window(tmp_path: Path, troth: Shell) -> None:
    closed = datetime.now(UTC) - timedelta(hours=25)
    store = made(tmp_path, clock=lambda: closed)
    commitment, submission = in_review(store)
    assert Airlock(store).take(submission).outcome == "closed"
    answer = troth("reopen", commitment, "--reason", "late", "--as", PERSON, "--json")
    assert (answer.exit, answer.json["error"]["detail"]) == (2, "review_window_passed")
    assert queue(troth)["disputable"] == []
    settle(tmp_path, KEY.replace("24h", "2d"))
    assert troth("reopen", commitment, "--reason", "in time", "--as", PERSON).exit == 0


def test_an_invalid_key_is_told_and_the_queue_still_read(troth: Shell, tmp_path: Path) -> None:
    commitment, _ = submitted(troth)
    settle(tmp_path, "nonsense: [")
    said = troth("queue")
    assert said.exit == 0
    assert commitment in said.out
    assert "genesis_invalid" in said.err
    assert troth("queue", "run", "--json").json["error"]["detail"] == "genesis_invalid"


def test_a_torn_last_line_is_no_obstacle(troth: Shell, tmp_path: Path) -> None:
    settle(tmp_path, KEY, {"suite": FAIL})
    commitment, _ = submitted(troth)
    settle(tmp_path, None, {"suite": PASS})
    with open(tmp_path / ".mentu" / "ledger.jsonl", "ab") as file:
        file.write(b'{"id":"mem_')
    assert troth("queue", "run", commitment, "--json").json["reports"][0]["outcome"] == "closed"
    assert troth("verify").exit == 0


def test_a_broken_chain_is_told_and_gives_exit_one(troth: Shell, tmp_path: Path) -> None:
    commitment, _ = submitted(troth)
    file = tmp_path / ".mentu" / "ledger.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"seen"', b'"SEEN"'))
    said = troth("queue")
    assert said.exit == 1
    assert commitment in said.out
    assert troth("queue", "--json").json["ok"] is False
    answer = troth("queue", "run", "--json")
    assert (answer.exit, answer.json["error"]["code"]) == (1, "E_CHAIN_BROKEN")


def test_another_ledger_is_named_with_store(troth: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commitment, _ = submitted(troth)
    other = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    other.mkdir()
    monkeypatch.chdir(other)
    assert troth("queue").exit == 2
    assert entry(troth, commitment, "--store", str(tmp_path))["commitment"] == commitment
    for words in (("queue", "--store", str(tmp_path), "run"), ("queue", "run", "--store", str(tmp_path))):
        assert troth(*words).exit == 0


def test_a_ledger_file_without_a_workspace_has_a_queue_too(tmp_path: Path, troth: Shell) -> None:
    submitted(troth)
    bare = tmp_path / "bare.jsonl"
    bare.write_bytes((tmp_path / ".mentu" / "ledger.jsonl").read_bytes())
    assert len(queue(troth, "--store", str(bare))["waiting"]) == 1


# --- queue run ---------------------------------------------------------------------------------------------------


def test_run_takes_up_what_waits(troth: Shell, tmp_path: Path) -> None:
    settle(tmp_path, KEY, {"suite": FAIL})
    first, _ = submitted(troth)
    second, _ = submitted(troth)
    settle(tmp_path, None, {"suite": PASS})
    said = troth("queue", "run", first[:9])
    assert said.exit == 0
    assert "closed: every validator of tier_2 passed" in said.out
    (report,) = troth("queue", "run", "--json").json["reports"]
    assert (report["commitment"], report["outcome"]) == (second, "closed")
    assert troth("queue", "run").out == "Nothing waits for a validator.\n"
    assert len(queue(troth)["disputable"]) == 2


@pytest.mark.parametrize(
    ("word", "code", "detail"),
    [("cmt_00000000", "E_REF_NOT_FOUND", "absent"), ("mem_00000000", "E_REF_NOT_FOUND", "absent")],
)
def test_run_refuses_what_is_no_commitment(troth: Shell, word: str, code: str, detail: str) -> None:
    error = troth("queue", "run", word, "--json").json["error"]
    assert (error["code"], error["detail"]) == (code, detail)


def test_run_refuses_what_is_not_in_review(troth: Shell, tmp_path: Path) -> None:
    commitment, _ = claimed(troth)
    error = troth("queue", "run", commitment, "--json").json["error"]
    assert (error["code"], error["detail"]) == ("E_CONSTRAINT_VIOLATED", "bad_state")
    assert "claimed, not in review" in error["message"]


def test_run_without_tiers_says_so(troth: Shell) -> None:
    commitment, _ = submitted(troth)
    assert "defines no tiers" in troth("queue", "run").out
    assert "waits: an approval is needed" in troth("queue", "run", commitment).out


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_process_killed_while_a_validator_works_leaves_it_in_review(
    troth: Shell, tmp_path: Path, number: signal.Signals
) -> None:
    script = (
        "import os, time\nopen('asking', 'w').write(str(os.getpid()))\nos.rename('asking', 'asked')\ntime.sleep(60)\n"
    )
    settle(tmp_path, KEY, {"suite": [sys.executable, "-c", script]})
    commitment, evidence = claimed(troth)
    process = subprocess.Popen(
        [sys.executable, "-m", "troth", "submit", commitment, "--evidence", evidence],
        cwd=tmp_path, env=environment(TROTH_ACTOR=WORKER), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    for _ in range(1500):
        if (tmp_path / "asked").exists():
            break
        time.sleep(0.02)
    os.kill(process.pid, number)
    process.wait(30)
    asked = int((tmp_path / "asked").read_text())
    if number == signal.SIGKILL:
        os.kill(asked, signal.SIGKILL)  # nobody is left to end it
    assert_gone(asked)
    found = entry(troth, commitment)
    assert [one["result"] for one in found["validators"]] == ["unasked"]
    assert found["waits_for"] == "its validators, which were not asked to the end: suite"
    assert found["commands"][0] == f"troth queue run {commitment}"
    settle(tmp_path, None, {"suite": PASS})
    (report,) = troth("queue", "run", "--json").json["reports"]
    assert report["outcome"] == "closed"
    assert queue(troth)["waiting"] == []


def test_a_pass_that_did_not_come_to_close_is_told_and_taken_up(tmp_path: Path, troth: Shell) -> None:
    store = made(tmp_path, one_tier(validators=["suite"]))
    commitment, submission = in_review(store)
    assert Airlock(store).take(submission).outcome == "waiting"
    settle(tmp_path, one_tier(auto_close=True, validators=["suite"]))
    assert entry(troth, commitment)["waits_for"] == "its closing: every validator passed"
    assert troth("queue", "run", commitment).exit == 0
    assert queue(troth)["waiting"] == []


def test_a_validator_that_decides_itself_is_overruled_by_nobody(troth: Shell, tmp_path: Path) -> None:
    """A command that reopens and submits anew while it works: its own pass is stale, and it starts no further one."""
    script = (
        "import json, os, subprocess, sys\n"
        "def troth(*words):\n"
        "    done = subprocess.run([sys.executable, '-m', 'troth', *words, '--json'], capture_output=True, text=True,\n"
        "                          env={**os.environ, 'PYTHONPATH': PATH})\n"
        "    return json.loads(done.stdout)\n"
        "made = os.environ['TROTH_COMMITMENT']\n"
        "troth('reopen', made, '--as', 'human:reviewer')\n"
        "told = troth('submit', made, '--evidence', os.environ['TROTH_EVIDENCE'], '--as', 'agent:worker')\n"
        "open('told.json', 'w').write(json.dumps(told))\n"
    )
    path = environment()["PYTHONPATH"]
    settle(tmp_path, KEY, {"suite": [sys.executable, "-c", f"PATH = {path!r}\n{script}"]})
    commitment, told = submitted(troth)
    within = json.loads((tmp_path / "told.json").read_text())
    assert within["airlock"]["outcome"] == "stopped"
    assert told["airlock"]["outcome"] == "superseded"
    assert within["id"] in told["airlock"]["because"]
    assert entry(troth, commitment)["submission"] == within["id"]
    settle(tmp_path, None, {"suite": PASS})
    assert troth("queue", "run", commitment, "--json").json["reports"][0]["outcome"] == "closed"


# --- show --------------------------------------------------------------------------------------------------------


def test_show_tells_the_answers_and_which_count(troth: Shell, tmp_path: Path) -> None:
    settle(tmp_path, KEY, {"suite": FAIL})
    commitment, first = submitted(troth)
    settle(tmp_path, None, {"suite": PASS})
    assert troth("queue", "run", commitment).exit == 0
    found = troth("show", commitment, "--json").json
    assert [(one["result"], one["counts"]) for one in found["validations"]] == [("failed", False), ("passed", True)]
    assert {one["submission"] for one in found["validations"]} == {first["id"]}
    assert [row["op"] for row in found["history"]] == ["claim", "submit", "annotate", "annotate", "approve"]
    text = troth("show", commitment).out
    assert "validator suite passed: the command ended with exit 0\n" in text
    assert "validator suite failed" not in text
    troth("reopen", commitment, "--as", PERSON)
    settle(tmp_path, None, {"suite": FAIL})
    evidence = troth("capture", "done", "--kind", "evidence").id
    troth("submit", commitment, "--evidence", evidence)
    found = troth("show", commitment, "--json").json
    assert [one["counts"] for one in found["validations"]] == [False, False, True]


def test_show_of_anything_else_has_no_answers(troth: Shell) -> None:
    seen = troth("capture", "seen").id
    assert troth("show", seen, "--json").json["validations"] == []


# --- decided -----------------------------------------------------------------------------------------------------


def test_what_was_decided_can_be_looked_at_later(troth: Shell) -> None:
    assert troth("queue", "decided").out == "Nothing was decided yet.\n"
    first, _ = submitted(troth)
    second, _ = submitted(troth, body="mend the other")
    assert troth("approve", first, "--as", PERSON).exit == 0
    assert troth("reopen", second, "--reason", "no \x1b[31mtest\x1b[0m", "--as", PERSON).exit == 0
    answer = troth("queue", "decided", "--json").json
    assert [(one["commitment"], one["decision"]) for one in answer["decisions"]] == [
        (first, "approved"),
        (second, "reopened"),
    ]
    assert answer["actors"][0] | {"median_waited": 0} == {
        "by": PERSON, "approved": 1, "reopened": 1, "median_waited": 0, "hasty": 1,
    }  # fmt: skip
    said = troth("queue", "decided", "--last", "1")
    assert said.exit == 0
    assert f"{second}  reopened by {PERSON}" in said.out
    assert "hasty" in said.out
    assert "and 1 before these" in said.out
    assert "\x1b" not in said.out
    assert troth("queue", "decided", "--by", WORKER).out == "Nothing of that was decided.\n"
    assert troth("queue", "decided", "--since", "2999-01-01T00:00:00Z", "--json").json["decisions"] == []
    refused = troth("queue", "decided", "--since", "soon", "--json")
    assert (refused.exit, refused.json["error"]["code"]) == (2, "E_USAGE")
    assert "--since" in refused.json["error"]["message"]
