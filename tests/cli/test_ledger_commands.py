"""The ledger's commands: what they answer, in words and as JSON, and with which exit status."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from support.ledgers import environment, fingerprint
from support.shared import conformance, needs_shared
from support.shell import Said, Shell, make_shell
from troth.cli.main import COMMANDS, main
from troth.stores.workspace import read_config

SAMPLE_HEAD = "249e77c516acfd718a8a58a08ec969239083de6ff02f109fe48f20a1f9c78219"
WRITING = ("capture", "commit", "claim", "release", "submit", "approve", "reopen", "close", "annotate")
OWN = (*WRITING, "init", "status", "show", "log", "verify", "import")


@pytest.fixture
def troth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    """Run commands in a fresh workspace, as a reviewer unless told otherwise."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROTH_ACTOR", "human:reviewer")
    shell = make_shell(capfd)
    assert shell("init", "--workspace", "w").exit == 0
    return shell


def _commitment(troth: Shell, body: str = "mend it") -> str:
    troth("capture", "seen")
    return troth("commit", body, "--source", "@last").id


def _in_review(troth: Shell) -> tuple[str, str]:
    identifier = _commitment(troth)
    troth("claim", identifier, "--as", "agent:worker")
    evidence = troth("capture", "done", "--kind", "evidence", "--as", "agent:worker").id
    assert troth("submit", identifier, "--evidence", evidence, "--as", "agent:worker").exit == 0
    return identifier, evidence


def _state(troth: Shell, identifier: str) -> dict[str, object]:
    found = [entry for entry in troth("status", "--json").json["commitments"] if entry["id"] == identifier]
    assert len(found) == 1
    return found[0]


# Help ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OWN)
def test_every_command_has_help_with_an_example(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    assert name in COMMANDS
    assert main([name, "--help"]) == 0
    text = capfd.readouterr().out
    assert f"Example: troth {name}" in text
    assert "--json" in text


@pytest.mark.parametrize("name", [*WRITING, "status"])
def test_whoever_acts_can_be_named(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    main([name, "--help"])
    text = capfd.readouterr().out
    assert "--as, --actor" in text
    assert ("--seen" in text) == (name in WRITING)


# init ----------------------------------------------------------------------------------------------------------


def test_init_creates_once_and_says_so(tmp_path: Path, troth: Shell) -> None:
    before = fingerprint(tmp_path)
    again = troth("init", "--workspace", "other")
    assert again.exit == 0
    assert "already" in again.out
    assert "keeps its name" in again.err
    assert fingerprint(tmp_path) == before
    assert set(before) == {
        ".mentu",
        *(f".mentu/{name}" for name in (".lock", "AGENTS.md", "config.yaml", "ledger.jsonl")),
    }
    config = read_config(tmp_path / ".mentu" / "config.yaml")
    assert (config.workspace, config.unhashed_prefix) == ("w", 0)


def test_init_in_another_folder_answers_json(tmp_path: Path, troth: Shell) -> None:
    (tmp_path / "my project").mkdir()
    answer = troth("init", tmp_path / "my project", "--json").json
    assert answer["workspace"] == "my-project"
    assert answer["created"] == ["config.yaml", "AGENTS.md", "ledger.jsonl"]
    assert troth("init", tmp_path / "my project", "--json").json["created"] == []


REQUIRED_OF_THE_TEMPLATE = {
    # clause of the spec's section 15 -> words that carry it
    "append-only and linked": r"append-only.*linked.*hash",
    "actions are logged": r"logged under your name",
    "read this first, then status": r"Read this file first.*troth status",
    "resume own claimed work first": r"Resume your own work.*before taking more",
    "claim before starting": r"Claim before you start",
    "evidence: specific, checkable, linked": r"evidence.*linked to its source.*--refs",
    "submit rather than close, then move on": r"Submit, then move on.*Do not close commitments yourself",
    "reviewers approve or reopen; reopened is its own": r"reopened is yours again.*approve.*reopen",
    "findings, step results and learnings need a parent": r"finding.*step_result.*learning.*parent",
    "no claim of another, no closed item": r"another actor holds.*closed",
    "no finishing without evidence": r"Finish without evidence",
    "no confidence of its own": r"confident.*measured by the tool, never supplied",
    "release with a reason when stuck": r"stuck.*release.*--reason",
    "new problem to capture, commit, claim": r"new problem.*troth capture.*troth commit.*troth claim",
    "good and poor evidence": r"Good evidence.*Poor evidence",
    "command summary": r"## Commands.*\| `troth verify` \|",
    "no private state": r"Keep no private list.*ledger is the truth",
}


@pytest.mark.parametrize("clause", REQUIRED_OF_THE_TEMPLATE)
def test_the_instructions_say_what_the_spec_demands(tmp_path: Path, troth: Shell, clause: str) -> None:
    text = (tmp_path / ".mentu" / "AGENTS.md").read_text()
    assert re.search(REQUIRED_OF_THE_TEMPLATE[clause], text, re.DOTALL), clause


def test_commands_named_in_the_instructions_exist(tmp_path: Path, troth: Shell) -> None:
    text = (tmp_path / ".mentu" / "AGENTS.md").read_text()
    named = set(re.findall(r"\btroth ([a-z]+)", text))
    assert named <= set(COMMANDS)
    assert set(WRITING) - {"close"} <= named


# The walk from observation to closure ----------------------------------------------------------------------------


def test_the_whole_walk(tmp_path: Path, troth: Shell) -> None:
    ledger = tmp_path / ".mentu" / "ledger.jsonl"
    steps = [
        ("capture", "checkout fails on an empty cart"),
        ("commit", "mend the checkout", "--source", "@last", "--tag", "bug"),
        ("claim", "@last", "--as", "agent:worker"),
        ("capture", "cart.py:42 returns early; 14 tests pass", "--kind", "evidence", "--refs", "@last"),
        ("submit", "@last", "--evidence", "@last", "--as", "agent:worker", "--summary", "done"),
        ("reopen", "@last", "--reason", "not on a clean checkout"),
        ("submit", "@last", "--evidence", "@last", "--as", "agent:worker"),
        ("annotate", "@last", "looks right"),
        ("approve", "@last", "--comment", "good"),
    ]
    before = b""
    for step in steps:
        said = troth(*step)
        assert said.exit == 0, said.err
        after = ledger.read_bytes()
        assert after.startswith(before)
        assert after.count(b"\n") == before.count(b"\n") + 1
        before = after
    found = troth("status", "--json").json["commitments"]
    assert [(entry["state"], entry["owner"], entry["reopen_count"]) for entry in found] == [
        ("closed", "agent:worker", 1)
    ]
    assert troth("verify").out.splitlines()[0] == "9/9 verified"
    rows = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert rows[1]["relations"] == [{"type": "cites", "targetId": rows[0]["id"]}]
    assert rows[3]["payload"]["refs"] == [rows[2]["id"]]
    assert rows[3]["trace"] == {"parent": [rows[2]["id"]], "causalDepth": 1}
    assert rows[4]["payload"]["summary"] == "done"
    assert rows[5]["payload"]["reason"] == rows[5]["payload"]["body"] == "not on a clean checkout"
    assert rows[8]["trust"]["verification"] == "human_verified"


def test_the_answer_as_json_is_the_row_itself(tmp_path: Path, troth: Shell) -> None:
    answer = troth("capture", "seen", "--json").json
    row = json.loads((tmp_path / ".mentu" / "ledger.jsonl").read_text())
    assert answer["signal"] == row
    assert (answer["id"], answer["op"], answer["hash"]) == (row["id"], "capture", row["hash"])
    assert answer["warnings"] == []


def test_a_claim_of_another_names_the_holder(troth: Shell) -> None:
    identifier = _commitment(troth)
    assert troth("claim", identifier, "--as", "agent:first").exit == 0
    said = troth("claim", identifier, "--as", "agent:second")
    assert said.exit == 2
    assert "E_ALREADY_CLAIMED" in said.err
    assert "agent:first" in said.err
    error = troth("claim", identifier, "--as", "agent:second", "--json").json["error"]
    assert error["code"] == "E_ALREADY_CLAIMED"
    assert troth("claim", identifier, "--as", "agent:first").exit == 0


def test_release_gives_it_back(troth: Shell) -> None:
    identifier = _commitment(troth)
    troth("claim", identifier, "--as", "agent:worker")
    assert troth("release", identifier, "--reason", "stuck", "--as", "agent:other").exit == 2
    assert troth("release", identifier, "--reason", "stuck", "--as", "agent:worker").exit == 0
    assert _state(troth, identifier)["state"] == "open"


def test_close_directly_and_as_a_duplicate(troth: Shell) -> None:
    first, second = _commitment(troth, "one"), _commitment(troth, "two")
    assert "E_NOT_OWNER" in troth("close", first, "--evidence", "@last").err
    troth("claim", first)
    evidence = troth("capture", "done", "--kind", "evidence").id
    assert "E_MISSING_FIELD" in troth("close", first).err
    assert troth("close", first, "--evidence", evidence).exit == 0
    assert troth("close", second, "--duplicate-of", first).exit == 0
    assert _state(troth, first)["evidence"] == evidence
    duplicate = _state(troth, second)
    assert (duplicate["evidence"], duplicate["duplicate_of"], duplicate["state"]) == (first, first, "closed")


def test_an_approval_of_what_was_looked_at(troth: Shell) -> None:
    identifier, evidence = _in_review(troth)
    assert "bad_state" in troth("approve", identifier, "--submission", "op_00000000").err
    other = troth("capture", "another").id
    assert "bad_state" in troth("approve", identifier, "--evidence", other).err
    submission = _state(troth, identifier)["submission"]
    assert isinstance(submission, dict)
    assert troth("approve", identifier, "--evidence", evidence, "--submission", submission["id"]).exit == 0


def test_findings_need_a_parent(troth: Shell) -> None:
    assert "E_CITATION_REQUIRED" in troth("capture", "found", "--kind", "finding").err
    troth("capture", "seen")
    assert troth("capture", "found", "--kind", "finding", "--parent", "@last").exit == 0
    assert troth("annotate", "@last", "found", "--kind", "learning", "--refs", "@last").exit == 0


def test_everything_a_capture_may_say(troth: Shell) -> None:
    first = troth("capture", "one").id
    words = ["two", "--kind", "note_2", "--refs", first, "--contradicts", first, "--extends", first, "--refines", first]
    words += ["--tag", "a", "--tag", "b", "--level", "contradiction", "--premise", first, "--entity", "cart"]
    words += ["--domain", "bug", "--intent", "mend", "--source-key", "k1", "--scope", "local", "--meta", '{"a":[1]}']
    row = troth("capture", *words, "--json").json["signal"]
    assert row["payload"] == {
        "body": "two",
        "kind": "note_2",
        "tags": ["a", "b"],
        "refs": [first],
        "meta": {"a": [1]},
    }
    assert [relation["type"] for relation in row["relations"]] == ["cites", "contradicts", "extends", "refines"]
    assert row["sourceIds"] == [first]
    assert row["observationLevel"] == "contradiction"
    assert row["semantic"] == {"entities": ["cart"], "intent": "mend", "domain": ["bug"]}
    assert (row["source_key"], row["syncScope"]) == ("k1", "local")
    again = troth("capture", "three", "--source-key", "k1", "--json")
    assert again.exit == 2
    assert again.json["error"]["code"] == "E_DUPLICATE_ID"
    assert again.json["error"]["detail"] == row["id"]


# Ids -----------------------------------------------------------------------------------------------------------


def test_ids_may_be_shortened_while_they_are_unambiguous(troth: Shell) -> None:
    first = _commitment(troth)
    assert troth("claim", first[:7]).exit == 0
    second = _commitment(troth)
    said = troth("show", "cmt_")
    assert said.exit == 2
    assert "E_AMBIGUOUS_ID" in said.err
    assert first in said.err
    assert second in said.err
    assert troth("show", second[:8], "--json").json["signal"]["id"] == second


def test_last_is_the_newest_row_that_fits(troth: Shell) -> None:
    assert "E_REF_NOT_FOUND" in troth("claim", "@last").err
    identifier = _commitment(troth)
    note = troth("annotate", identifier, "a note").id
    assert troth("show", "@last", "--json").json["signal"]["id"] == note
    troth("claim", "@last", "--as", "agent:worker")
    assert _state(troth, identifier)["owner"] == "agent:worker"


# Actors and heads ------------------------------------------------------------------------------------------------


def test_who_acts(tmp_path: Path, troth: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    def actor(*words: str) -> str:
        return str(troth("capture", "seen", "--json", *words).json["signal"]["actor"])

    config = tmp_path / ".mentu" / "config.yaml"
    config.write_text(config.read_text() + "actor: agent:configured\n")
    assert actor("--as", "agent:named") == actor("--actor", "agent:named") == "agent:named"
    assert actor() == "human:reviewer"
    monkeypatch.delenv("TROTH_ACTOR")
    assert actor() == "agent:configured"
    config.write_text("workspace: w\nunhashed_prefix: 0\n")
    monkeypatch.setenv("LOGNAME", "somebody")
    assert actor() == "human:somebody"
    assert "E_MISSING_FIELD" in troth("capture", "x", "--as", "").err
    assert "bad_value" in troth("capture", "x", "--as", "team:one").err


def test_a_stale_head_warns(troth: Shell) -> None:
    head = troth("status", "--json").json["head"]
    first = troth("capture", "one", "--seen", head)
    assert (first.exit, first.err) == (0, "")
    stale = troth("capture", "two", "--seen", head)
    assert stale.exit == 0
    assert "blind_write" in stale.err
    assert [note["warning"] for note in troth("capture", "3", "--seen", head, "--json").json["warnings"]] == [
        "blind_write"
    ]


# status, show, log -----------------------------------------------------------------------------------------------


def test_status_lists_by_state(troth: Shell) -> None:
    empty = troth("status")
    assert "No commitments yet" in empty.out
    waiting, evidence = _in_review(troth)
    held = _commitment(troth, "hold it")
    troth("claim", held, "--as", "agent:other")
    free = _commitment(troth, "free")
    out = troth("status").out
    assert out.index("In review (1)") < out.index("Claimed (1)") < out.index("Open (1)")
    assert evidence in out
    for identifier in (waiting, held, free):
        assert identifier in out
    mine = troth("status", "--mine", "--as", "agent:other").out
    assert held in mine
    assert waiting not in mine
    assert [entry["id"] for entry in troth("status", "--in-review", "--json").json["commitments"]] == [waiting]
    assert "Nothing here" in troth("status", "--mine", "--as", "agent:nobody").out


def test_status_as_json_has_its_shape(troth: Shell) -> None:
    identifier, evidence = _in_review(troth)
    answer = troth("status", "--json").json
    (entry,) = answer["commitments"]
    assert entry["id"] == identifier
    assert {"state", "owner", "evidence", "reopen_count", "submission"} <= entry.keys()
    assert entry["evidence"] is None
    assert entry["submission"]["evidence"] == evidence
    assert answer["anomalies"] == []
    assert answer["head"] == troth("verify", "--json").json["head"]


def _forge(path: Path, op: str, payload: dict[str, str]) -> None:
    from troth.core.canonical import row_bytes
    from troth.ledger.hashing import row_hash

    rows = [json.loads(line) for line in path.read_text().splitlines()]
    row = {"id": "op_forged00", "op": op, "ts": "2026-01-01T00:00:00Z", "actor": "agent:worker", "workspace": "w"}
    row |= {"prevHash": rows[-1]["hash"], "payload": payload}
    with path.open("ab") as file:
        file.write(row_bytes(row | {"hash": row_hash(row)}) + b"\n")


def test_a_raw_append_that_breaks_a_rule_has_no_effect_and_is_told(tmp_path: Path, troth: Shell) -> None:
    identifier = _commitment(troth)
    _forge(tmp_path / ".mentu" / "ledger.jsonl", "approve", {"body": "x", "commitment": identifier})
    answer = troth("status", "--json")
    assert answer.exit == 0
    (anomaly,) = answer.json["anomalies"]
    assert anomaly == {"line": 3, "id": "op_forged00", "code": "E_CONSTRAINT_VIOLATED", "detail": "bad_state"}
    assert "op_forged00" in troth("status").out
    assert _state(troth, identifier)["state"] == "open"
    assert "no effect" in troth("show", "op_forged00").out


def test_show_tells_row_state_and_history(troth: Shell) -> None:
    identifier, evidence = _in_review(troth)
    answer = troth("show", identifier, "--json").json
    assert answer["commitment"]["state"] == "in_review"
    assert [entry["op"] for entry in answer["history"]] == ["claim", "submit"]
    out = troth("show", identifier).out
    assert f"id: {identifier}" in out
    assert "state: in_review" in out
    assert troth("show", evidence, "--json").json["commitment"] is None


def test_log_shows_the_newest_last(troth: Shell) -> None:
    assert "No rows yet" in troth("log").out
    ids = [troth("capture", f"n {number}").id for number in range(5)]
    assert [row["id"] for row in troth("log", "-n", "3", "--json").json["signals"]] == ids[-3:]
    assert [line.split()[3] for line in troth("log", "-n", "2").out.splitlines()] == ids[-2:]


def test_text_from_outside_cannot_drive_a_terminal(troth: Shell) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07 red"
    troth("capture", evil, "--tag", evil, "--source-key", evil)
    troth("commit", evil, "--source", "@last", "--tag", evil)
    for said in (troth("status"), troth("show", "@last"), troth("log"), troth("annotate", "@last", evil)):
        assert said.exit == 0
        assert "\x1b" not in said.out
        assert "\x07" not in said.out
    assert "\\x1b" in troth("log").out


# verify --------------------------------------------------------------------------------------------------------


@needs_shared
def test_the_published_sample_verifies(tmp_path: Path, troth: Shell) -> None:
    sample = conformance("sample-ledger.jsonl")
    said = troth("verify", sample)
    assert said.exit == 0
    assert said.out.splitlines()[0] == "6/6 verified"
    assert SAMPLE_HEAD in said.out
    assert "not anchored" in said.out
    anchored = troth("verify", sample, "--expect-head", f"{SAMPLE_HEAD}:6")
    assert anchored.exit == 0
    assert "not anchored" not in anchored.out
    answer = troth("verify", sample, "--json").json
    assert {"ok", "verified", "total", "faults", "warnings", "head"} <= answer.keys()
    assert (answer["ok"], answer["verified"], answer["total"], answer["head"]) == (True, 6, 6, SAMPLE_HEAD)
    shutil.copyfile(sample, tmp_path / "bare.jsonl")
    assert troth("status", "--store", tmp_path / "bare.jsonl").exit == 0
    assert troth("capture", "more", "--ledger", tmp_path / "bare.jsonl").exit == 0
    assert troth("verify", tmp_path / "bare.jsonl").out.splitlines()[0] == "7/7 verified"


def _five(troth: Shell, root: Path) -> tuple[Path, str]:
    for number in range(5):
        troth("capture", f"n {number}")
    return root / ".mentu" / "ledger.jsonl", str(troth("verify", "--json").json["head"])


def test_one_line_per_fault(tmp_path: Path, troth: Shell) -> None:
    path, _ = _five(troth, tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"n 1", b"n X")
    del lines[3]
    path.write_bytes(b"\n".join(lines))
    said = troth("verify")
    assert said.exit == 1
    assert said.out.splitlines()[0] == "2/4 verified"
    faults = [line for line in said.out.splitlines() if line.startswith("line ")]
    assert [line.split()[1] for line in faults] == ["2", "4"]
    assert "content_mismatch" in faults[0]
    assert "missing_ancestor" in faults[1]
    answer = troth("verify", "--json")
    assert answer.exit == 1
    assert [(fault["line"], fault["fault"]) for fault in answer.json["faults"]] == [
        (2, "content_mismatch"),
        (4, "missing_ancestor"),
    ]
    for name, status in (("status", 1), ("log", 0), ("show", 0)):
        words = [name, "@last"] if name == "show" else [name]
        broken = troth(*words)
        assert broken.exit == status
        assert "does not verify" in broken.err


def test_truncation_is_told_by_a_remembered_head(tmp_path: Path, troth: Shell) -> None:
    path, head = _five(troth, tmp_path)
    whole = path.read_bytes()
    assert troth("verify", "--expect-head", head).exit == 0
    path.write_bytes(b"".join(line + b"\n" for line in whole.split(b"\n")[:3]))
    cut = troth("verify", "--expect-head", f"{head}:5")
    assert cut.exit == 1
    assert re.search(r"head_mismatch: cut: 3 .*5", cut.out)
    assert troth("verify", "--expect-head", head).exit == 1
    unanchored = troth("verify")
    assert unanchored.exit == 0
    assert "not anchored" in unanchored.out
    path.write_bytes(b"")
    empty = troth("verify", "--expect-head", f"{head}:5")
    assert empty.exit == 1
    assert "cut: 0" in empty.out
    assert troth("verify").out.splitlines()[0] == "0/0 verified"
    path.unlink()
    gone = troth("verify")
    assert gone.exit == 2
    assert "E_NO_LEDGER" in gone.err


def test_a_changed_ledger_is_told_from_a_longer_one(tmp_path: Path, troth: Shell) -> None:
    _, head = _five(troth, tmp_path)
    troth("capture", "one more")
    assert troth("verify", "--expect-head", f"{head}:5").exit == 0
    assert troth("verify", "--expect-head", head).exit == 1
    other = tmp_path / "other"
    other.mkdir()
    troth("init", other)
    for number in range(5):
        troth("capture", f"other {number}", "--store", other)
    changed = troth("verify", other / ".mentu" / "ledger.jsonl", "--expect-head", f"{head}:5")
    assert changed.exit == 1
    assert "changed" in changed.out


@pytest.mark.parametrize("text", ["abc", "A" * 64, "0" * 64 + ":", "0" * 64 + ":x", "0" * 63, "0" * 64 + ":-1"])
def test_a_head_that_is_none_is_a_usage_error(troth: Shell, text: str) -> None:
    said = troth("verify", "--expect-head", text)
    assert said.exit == 2
    assert "E_USAGE" in said.err


def test_repair_tail(tmp_path: Path, troth: Shell) -> None:
    path, _ = _five(troth, tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq":5,"par')
    torn = troth("verify")
    assert torn.exit == 1
    assert "line 6" in torn.out
    assert "torn_tail" in torn.out
    assert path.read_bytes() == whole + b'{"seq":5,"par'
    mended = troth("verify", "--repair-tail")
    assert mended.exit == 0
    assert "torn_tail" in mended.err
    assert path.read_bytes() == whole
    path.write_bytes(whole + b"half")
    answer = troth("verify", "--repair-tail", "--json").json
    assert Path(answer["repaired"]).read_bytes() == b"half"
    assert troth("verify", "--repair-tail", "--json").json["repaired"] is None


def test_a_torn_tail_is_told_by_the_next_writer(tmp_path: Path, troth: Shell) -> None:
    path, _ = _five(troth, tmp_path)
    with path.open("ab") as file:
        file.write(b"half")
    said = troth("capture", "next")
    assert said.exit == 0
    assert "torn_tail" in said.err
    assert troth("verify").exit == 0


# capture --check -------------------------------------------------------------------------------------------------


def test_a_check_is_run_without_a_shell_and_measured(tmp_path: Path, troth: Shell) -> None:
    first = troth("capture", "seen").id
    said = troth("capture", "ok", "--refs", first, "--json", "--check", "--", "echo", "$HOME; false")
    assert said.exit == 0
    assert "$HOME; false" in said.err
    answer = said.json
    trust = answer["signal"]["trust"]
    assert trust["verification"] == "machine_verified"
    chain = dict(entry.split(":") for entry in trust["chain"])
    assert list(chain) == [
        "exit_code",
        "test_pass_rate",
        "context_utilization",
        "loop_complete",
        "duration_reasonable",
        "no_errors",
        "evidence_depth",
    ]
    assert (chain["exit_code"], chain["context_utilization"], chain["evidence_depth"]) == ("1.0", "0.0", "0.4")
    assert answer["check"]["argv"] == ["echo", "$HOME; false"]
    assert answer["signal"]["payload"]["meta"]["check"]["exit"] == 0


def test_a_failing_check_is_recorded_as_what_it_is(troth: Shell) -> None:
    answer = troth("capture", "no", "--json", "--check", "--", "false").json
    assert answer["signal"]["trust"]["verification"] == "unverified"
    assert answer["check"]["exit"] == 1
    said = troth("capture", "no", "--check", "--", "false")
    assert said.exit == 0
    assert "exit 1" in said.out


def test_test_counts_come_from_the_report_the_run_wrote(tmp_path: Path, troth: Shell) -> None:
    report = "<testsuites><testsuite><testcase/><testcase><failure/></testcase><testcase><skipped/></testcase>"
    script = f"printf '%s' '{report}<testcase/><testcase/></testsuite></testsuites>' > report.xml"
    words = ["capture", "x", "--json", "--check", "--", "sh", "-c", script, "--junitxml=report.xml"]
    answer = troth(*words).json
    assert answer["check"]["tests"] == {"passed": 3, "run": 4}
    assert "test_pass_rate:0.75" in answer["signal"]["trust"]["chain"]
    stale = troth("capture", "x", "--json", "--check", "--", "true", "--junitxml", "none.xml").json
    assert "tests" not in stale["check"]


def test_checks_that_cannot_be(tmp_path: Path, troth: Shell) -> None:
    before = fingerprint(tmp_path)
    assert "E_USAGE" in troth("capture", "x", "--check").err
    assert "E_USAGE" in troth("capture", "x", "--", "true").err
    assert "cannot be started" in troth("capture", "x", "--check", "--", "/no/such/program").err
    in_vain = troth("capture", "x", "--kind", "finding", "--check", "--", "touch", "ran")
    assert "E_CITATION_REQUIRED" in in_vain.err
    assert not (tmp_path / "ran").exists()
    assert fingerprint(tmp_path) == before


def test_a_torn_tail_is_no_obstacle_to_a_check(tmp_path: Path, troth: Shell) -> None:
    troth("capture", "seen")
    with (tmp_path / ".mentu" / "ledger.jsonl").open("ab") as file:
        file.write(b"half")
    assert troth("capture", "ok", "--check", "--", "true").exit == 0
    assert troth("verify").exit == 0


# import --------------------------------------------------------------------------------------------------------

_WHEN = {"ts": "2020-01-01T00:00:00Z", "actor": "human:reviewer"}
V1: list[dict[str, object]] = [
    {"id": "mem_00000001", "op": "capture", **_WHEN, "payload": {"body": "seen"}},
    {"id": "op_00000002", "op": "triage", **_WHEN, "payload": {"memory": "mem_00000001", "meta": {"a": 1}}},
    {
        "id": "cmt_00000003",
        "op": "commit",
        **_WHEN,
        "payload": {"body": "mend", "source": "mem_00000001"},
        "hash": None,
    },
    {
        "id": "op_00000004",
        "op": "claim",
        "ts": "2020-01-01T00:00:01Z",
        "actor": "agent:worker",
        "payload": {"commitment": "cmt_00000003"},
        "workspace": "old",
        "x_more": [1],
    },
]


def _old(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("\ufeff" + "".join(json.dumps(row) + "\r\n\n" for row in rows), encoding="utf-8")
    return path


def test_import_brings_old_rows_into_an_empty_ledger(tmp_path: Path, troth: Shell) -> None:
    old = _old(tmp_path / "old.jsonl", V1)
    before = old.read_bytes()
    said = troth("import", old)
    assert said.exit == 0, said.err
    assert "4 rows imported" in said.out
    assert old.read_bytes() == before
    assert troth("verify").out.splitlines()[0] == "4/4 verified"
    rows = [json.loads(line) for line in (tmp_path / ".mentu" / "ledger.jsonl").read_text().splitlines()]
    assert rows[1]["op"] == "annotate"
    assert rows[1]["payload"] == {
        "body": "triage",
        "memory": "mem_00000001",
        "meta": {"a": 1, "v1_op": "triage"},
        "kind": "triage",
        "target": "mem_00000001",
    }
    assert [row["workspace"] for row in rows] == ["default", "default", "default", "old"]
    assert rows[3]["payload"]["body"] == "claim"
    assert rows[3]["x_more"] == [1]
    assert _state(troth, "cmt_00000003")["owner"] == "agent:worker"


def test_import_as_json_into_a_new_bare_file(tmp_path: Path, troth: Shell) -> None:
    old = _old(tmp_path / "old.jsonl", V1)
    new = tmp_path / "new.jsonl"
    answer = troth("import", old, "--store", new, "--json").json
    assert (answer["imported"], answer["ok"], answer["anomalies"]) == (4, True, [])
    assert troth("verify", new, "--expect-head", answer["head"]).exit == 0


def test_import_needs_an_empty_ledger(tmp_path: Path, troth: Shell) -> None:
    old = _old(tmp_path / "old.jsonl", V1)
    troth("capture", "here already")
    before = fingerprint(tmp_path)
    assert "E_NOT_EMPTY" in troth("import", old).err
    assert "E_USAGE" in troth("import", tmp_path / ".mentu" / "ledger.jsonl").err
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([V1[0], V1[0]], "twice"),
        ([V1[0] | {"hash": "0" * 64, "prevHash": "0" * 64}], "hashed already"),
        ([{**V1[0], "id": ""}], "no id"),
        ([{**V1[0], "ts": None}], "no ts"),
        ([{**V1[0], "payload": []}], "payload"),
        ([{**V1[1], "payload": {"meta": 1}}], "meta"),
    ],
)
def test_what_cannot_be_imported(tmp_path: Path, troth: Shell, rows: list[dict[str, object]], words: str) -> None:
    old = _old(tmp_path / "old.jsonl", rows)
    before = fingerprint(tmp_path)
    said = troth("import", old)
    assert said.exit == 2
    assert "E_NOT_IMPORTABLE" in said.err
    assert words in said.err
    assert f"{old}:" in said.err
    assert fingerprint(tmp_path) == before


def test_a_malformed_line_is_not_imported(tmp_path: Path, troth: Shell) -> None:
    old = tmp_path / "old.jsonl"
    old.write_text('{"a":1,"a":2}\n')
    assert "E_NOT_IMPORTABLE" in troth("import", old).err
    assert "E_NO_LEDGER" in troth("import", tmp_path / "gone.jsonl").err


def test_the_environment_of_tests_imports_this_package() -> None:
    assert Path(environment()["PYTHONPATH"].split(":")[0], "troth").is_dir()
    assert Said(0, "mem_x captured\n", "").id == "mem_x"
