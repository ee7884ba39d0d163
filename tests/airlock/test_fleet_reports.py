"""Reports of a fleet: what others wrote stays text in every format, and each format is what its readers expect."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import jsonschema_rs
import pytest

from receipts.test_receipt import sealed
from support.receipt_members import dump
from troth.airlock.fleet_reports import COLUMNS, TEXT_LIMIT, as_csv, as_junit, as_parquet, as_sarif, cells, put_report
from troth.airlock.fleet_reports import require_place as require
from troth.airlock.fleets import Row, check_one, faulty
from troth.core.errors import Busy, Refused

HOSTILE = [
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(A1)",
    " =1+1",
    "\t=1+1",
    "\r=1+1",
    "\uff1d1+1",
    'quote"comma,semi;colon',
    "line\nfeed\r\n",
    "\x1b[31mred\x1b]0;title\x07",
    "\x00\x01\x0b\x7f\x85\u2028",
    "\ufffe\uffff\ud800\udfff\udcff",
    "]]></failure><script>alert(1)</script>&amp;&lol;",
    "<!DOCTYPE x [<!ENTITY lol 'x'>]>",
    "\u202egnp.exe",
    "{{7*7}}${7*7}`id`",
    "long" * 10_000,
    "",
]


def row(member: str = "runs/a", **more: Any) -> Row:
    made = Row(member, "contradicted", "protected_path_mutated", "does_not_hold", "receipt", {})
    return made._replace(**more)


def hostile_rows() -> list[Row]:
    rows = [row(text or ".", claim_id=text, invocation_id=text, verifier=text) for text in HOSTILE]
    rows += [faulty(text, Refused("E_MEMBER_MISSING", text, remedy=text)) for text in HOSTILE]
    return [*rows, row("good", verdict="supported", reason="done_checks_supported", standing="holds")]


def whole(pieces: Any) -> bytes:
    return b"".join(pieces)


# --- CSV ---


def test_csv_says_what_the_cells_say() -> None:
    rows = hostile_rows()
    text = whole(as_csv(rows)).decode("utf-8")
    table = list(csv.reader(io.StringIO(text, newline=""), strict=True))
    assert tuple(table[0]) == COLUMNS
    assert len(table) == len(rows) + 1
    for line, made in zip(table[1:], rows, strict=True):
        assert len(line) == len(COLUMNS)
        for told, cell in zip(line, cells(made), strict=True):
            assert told in (cell, f"'{cell}")
            assert not re.match(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20\t\r]", told)
            assert told == "" or told.isprintable()
            assert len(told) <= TEXT_LIMIT * 6
    assert table[1][0].startswith("'=")
    assert table[-1][0] == "good"


def test_a_large_table_comes_in_pieces() -> None:
    pieces = list(as_csv([row(f"runs/{number}") for number in range(3000)]))
    assert len(pieces) > 1
    assert whole(pieces).count(b"\r\n") == 3001


def test_cells_of_a_real_member(tmp_path: Path) -> None:
    for name, data in sealed().items():
        (tmp_path / name).write_bytes(data)
    made = dict(zip(COLUMNS, cells(check_one(str(tmp_path), None)), strict=True))
    assert made["verdict"] == "supported"
    assert made["meaning"] == "All three checks are supported."
    assert made["witness_scope"] == "PEER"
    assert (made["acceptance_observed"], made["tool_claim_match_reason"]) == ("supported", "tool_claims_matched")
    assert len(made["receipt_sha256"]) == 64


# --- JUnit ---


def test_junit_is_xml_that_counts_right() -> None:
    rows = [
        *hostile_rows(),
        row("x", verdict="not_established", standing="not_established", reason="grade_tree_unbound"),
    ]
    suites = ElementTree.fromstring(whole(as_junit(rows)))
    (suite,) = suites
    assert (suites.tag, suite.tag) == ("testsuites", "testsuite")
    cases = list(suite)
    assert {case.tag for case in cases} == {"testcase"}
    failures = [case for case in cases if case.find("failure") is not None]
    errors = [case for case in cases if case.find("error") is not None]
    assert suite.get("tests") == str(len(cases)) == str(len(rows))
    assert suite.get("failures") == str(len(failures)) == str(len(HOSTILE) + 1)
    assert suite.get("errors") == str(len(errors)) == str(len(HOSTILE))
    for case in cases:
        assert case.get("name")
        assert case.get("classname", "").startswith("troth.receipt.")
        for element in case:
            assert element.tag in ("failure", "error")
            assert not list(element)
    assert len(cases[-2]) == 0
    assert failures[0].find("failure").get("type") == "protected_path_mutated"  # type: ignore[union-attr]  # found above


# --- SARIF ---


def closed(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        "additionalProperties": False,
    }


TEXT = closed({"text": {"type": "string", "minLength": 1}})
SARIF = closed(
    {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "items": closed(
                {
                    "tool": closed(
                        {
                            "driver": closed(
                                {
                                    "name": {"const": "troth"},
                                    "version": {"type": "string"},
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": closed(
                                            {
                                                "id": {"type": "string"},
                                                "shortDescription": TEXT,
                                                "help": TEXT,
                                                "helpUri": {"type": "string", "format": "uri"},
                                            }
                                        ),
                                    },
                                }
                            )
                        }
                    ),
                    "invocations": {
                        "type": "array",
                        "items": closed({"executionSuccessful": {"type": "boolean"}, "exitCode": {"type": "integer"}}),
                    },
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "results": {
                        "type": "array",
                        "items": closed(
                            {
                                "kind": {"enum": ["pass", "fail"]},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": TEXT,
                                "locations": {
                                    "type": "array",
                                    "minItems": 1,
                                    "items": closed(
                                        {
                                            "physicalLocation": closed(
                                                {
                                                    "artifactLocation": closed(
                                                        {"uri": {"type": "string", "format": "uri-reference"}}
                                                    ),
                                                    "region": closed({"startLine": {"type": "integer", "minimum": 1}}),
                                                }
                                            )
                                        }
                                    ),
                                },
                                "partialFingerprints": {
                                    "type": "object",
                                    "additionalProperties": {"type": "string"},
                                },
                                "properties": {"type": "object"},
                            },
                            {"ruleId": {"type": "string"}, "ruleIndex": {"type": "integer", "minimum": 0}},
                        ),
                    },
                }
            ),
        },
    }
)
"""What the published schema says of the members that are written here (SARIF 2.1.0 §3.13-3.58)."""
LOG = jsonschema_rs.validator_for(SARIF, validate_formats=True)


@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize("rows", [[], hostile_rows()], ids=["none", "hostile"])
def test_sarif_is_a_log(rows: list[Row], passes: bool) -> None:
    log = json.loads(whole(as_sarif(rows, 1, passes=passes)))
    LOG.validate(log)
    (run,) = log["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    shown = [made for made in rows if passes or made.standing != "holds"]
    assert len(run["results"]) == len(shown)
    for result, made in zip(run["results"], shown, strict=True):
        assert rules[result["ruleIndex"]] == result["ruleId"] == made.reason
        assert (result["kind"] == "pass") == (result["level"] == "none") == (made.standing == "holds")
    assert set(rules) == {made.reason for made in shown}


def test_the_schema_refuses_what_is_no_log() -> None:
    log = json.loads(whole(as_sarif([row()], 1)))
    log["runs"][0]["results"][0]["level"] = "fatal"
    assert not LOG.is_valid(log)


@pytest.mark.parametrize(
    ("member", "place", "uri"),
    [
        ("runs/a", None, "runs/a/receipt.json"),
        ("runs/a", "tree.json", "runs/a/tree.json"),
        ("runs/a", "../../etc/passwd", "runs/a/receipt.json"),
        ("runs/a b%?#", None, "runs/a%20b%25%3F%23/receipt.json"),
        ("javascript:alert(1)", None, "javascript%3Aalert%281%29/receipt.json"),
        ("runs/\udcff", None, "runs/%FF/receipt.json"),
        ("runs/\ud800", None, "runs/%3F/receipt.json"),
    ],
)
def test_where_a_result_is(member: str, place: str | None, uri: str) -> None:
    log = json.loads(whole(as_sarif([row(member, place=place)], 1)))
    located = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert located == uri


def test_where_a_result_of_an_absolute_name_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def located(member: Path) -> str:
        log = json.loads(whole(as_sarif([row(str(member))], 1)))
        return str(log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"])

    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert located(tmp_path / "here" / "a") == "a/receipt.json"
    assert unquote(located(tmp_path / "there")) == f"file://{tmp_path}/there/receipt.json"


def test_fingerprints_tell_members_and_reasons_apart() -> None:
    rows = [row("a"), row("b"), row("a", reason="grade_tree_unbound"), row("a\udcff"), row("a\ud800"), row("a")]
    results = json.loads(whole(as_sarif(rows, 1)))["runs"][0]["results"]
    marks = [result["partialFingerprints"]["member/v1"] for result in results]
    assert len(set(marks)) == 5
    assert marks[0] == marks[5]


# --- Parquet ---


def test_parquet_holds_the_cells() -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = hostile_rows()
    data = whole(as_parquet(rows))
    table = parquet.read_table(io.BytesIO(data))
    assert tuple(table.column_names) == COLUMNS
    assert [tuple(line.values()) for line in table.to_pylist()] == [cells(made) for made in rows]
    assert whole(as_parquet(rows)) == data
    assert parquet.read_table(io.BytesIO(whole(as_parquet([])))).num_rows == 0


def test_parquet_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(Refused) as caught:
        whole(as_parquet([]))
    assert caught.value.code == "E_USAGE"
    assert "tables" in str(caught.value)


# --- places ---


def test_a_report_goes_to_a_file_that_is_no_record(tmp_path: Path) -> None:
    member = tmp_path / "member"
    member.mkdir()
    (member / "receipt.json").write_bytes(dump({}))
    (tmp_path / "link.csv").symlink_to(member / "receipt.json")
    (tmp_path / "around").symlink_to(member)
    (tmp_path / "old.csv").touch()
    for name in ("new.csv", "old.csv"):
        require(str(tmp_path / name), [str(member), str(tmp_path / "gone")])
    for name in ("member/receipt.json", "around/new.csv", "link.csv", "member", "no/where.csv", "old.csv/x", "a\0"):
        with pytest.raises(Refused) as caught:
            require(str(tmp_path / name), [str(member)])
        assert caught.value.code == "E_FLEET_REPORT"


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "report.csv"
    target.write_bytes(b"old")

    def torn() -> Any:
        yield b"half"
        raise OSError(28, "No space left on device")

    with pytest.raises(Refused) as caught:
        put_report(str(target), torn())
    assert caught.value.code == "E_FLEET_REPORT"
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.csv"]
    put_report(str(target), [b"n", b"ew"])
    assert target.read_bytes() == b"new"


def test_a_busy_folder_is_an_error_of_the_suite() -> None:
    made = faulty("a", Busy("E_MEMBER_CHANGED", "it was written to", remedy="Wait."))
    (case,) = ElementTree.fromstring(whole(as_junit([made])))[0]
    error = case.find("error")
    assert error is not None
    assert error.text == "it was written to Wait."
