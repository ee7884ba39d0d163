"""The walk of a commitment on the command line, and how its state is shown: in words, as JSON, with an exit status."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.ledgers import environment
from support.shell import WRITING, Said, Shell, troth
from troth.cli.main import COMMANDS, main

__all__ = ["troth"]
OWN = (*WRITING, "init", "status", "show", "log", "verify", "import")


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


def test_the_environment_of_tests_imports_this_package() -> None:
    assert Path(environment()["PYTHONPATH"].split(":")[0], "troth").is_dir()
    assert Said(0, "mem_x captured\n", "").id == "mem_x"
