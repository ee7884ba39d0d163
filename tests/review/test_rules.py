"""Every rule: a document that breaks it alone, a valid twin, and the level it belongs to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from review.documents import DOCUMENTS, RULES, artifact, document, edited, ids, judged
from support.shared import conformance, needs_shared
from troth.core.errors import Refused
from troth.review.reader import MAX_BYTES, read_decisions
from troth.review.rules import RULES as KNOWN
from troth.review.validate import read_review, validate

TEXT_RULES = {"json-text", "duplicate-member"}


def raw(name: str) -> bytes:
    return json.dumps(document(name)).encode()


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_documents_are_valid(name: str) -> None:
    report = judged({"of": name}, document(name), {})
    assert report.violations == ()
    assert report.verdict == "valid"
    assert report.kind == name


@pytest.mark.parametrize("row", RULES, ids=ids(RULES))
def test_a_broken_rule_is_named_alone_and_in_its_place(row: dict[str, Any]) -> None:
    report = judged(row, edited(document(row["of"]), row), row)
    assert [(told.rule, told.path) for told in report.violations] == [(row["rule"], row["at"])]
    assert report.violations[0].message
    assert report.verdict == "invalid"


@pytest.mark.parametrize(
    "row", [row for row in RULES if "twin" in row], ids=ids([row for row in RULES if "twin" in row])
)
def test_the_twin_is_valid(row: dict[str, Any]) -> None:
    assert judged(row, edited(document(row["of"]), row["twin"]), row["twin"]).violations == ()


@pytest.mark.parametrize("row", RULES, ids=ids(RULES))
def test_the_published_level_applies_what_schemas_say(row: dict[str, Any]) -> None:
    report = judged(row, edited(document(row["of"]), row), row, published=True)
    ours_alone = not KNOWN[row["rule"]].published or {
        # Published schemas ask only that what must be there is there.
        "escalation-presence": row.get("set", {}) != {},
        "failure-presence": "$.failure" in row.get("set", {}),
    }.get(row["rule"], False)
    # A rejection or an outcome that other rules of ours speak of is no matter of theirs.
    assert [told.rule for told in report.violations] == ([] if ours_alone else [row["rule"]])
    assert report.unchecked == ()


def test_every_rule_has_a_vector() -> None:
    assert {row["rule"] for row in RULES} | TEXT_RULES == set(KNOWN)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda data: data + b" {}", "a second value"),
        (lambda data: data[:-1], "cut short"),
        (lambda data: data.replace(b'"queue"', b'"\xff"'), "no UTF-8"),
        (lambda data: b"\xef\xbb\xbf" + data, "a byte order mark"),
        (lambda data: data.replace(b"true", b"NaN"), "NaN"),
        (lambda data: data.replace(b"true", b"-Infinity"), "an infinity"),
        (lambda data: data.replace(b"true", b"1e999"), "beyond a double"),
        (lambda data: data.replace(b"true", b'"\\ud800"'), "half a pair"),
        (lambda data: data.replace(b"true", b"[" * 61 + b"]" * 61), "65 deep"),
        (lambda data: data.replace(b"true", b"[" * 100_000), "very deep"),
    ],
)
def test_what_is_no_json_is_told_alone(spoil: Any, why: str) -> None:
    report = validate(spoil(raw("response")), artifact=artifact())
    assert [(told.rule, told.path) for told in report.violations] == [("json-text", "$")], why
    assert report.kind == "response"


def test_64_deep_is_json() -> None:
    # extensions, example and the list stand in the root: four containers
    assert validate(raw("response").replace(b"true", b"[" * 60 + b"]" * 60)).rules == ()


@pytest.mark.parametrize(
    ("old", "new", "at"),
    [
        (b'"summary": ', b'"summary": "", "summary": ', "$.summary"),
        (b'"summary": ', b'"summary": "x", "summary": 7, "summary": ', "$.summary"),
        (b'"severity": "critical"', b'"severity": "critical", "severity": "none"', "$.findings[1].severity"),
        (b'"assessment": "needs_attention"', b'"assessment": "approve", "assessment": "approve"', "$.assessment"),
        (b'"anything": ', b'"anything": 1, "anything": ', "$.extensions.example.anything"),
        (b'"line_end": 3', b'"line_end": 3, "line_end": 1', "$.findings[1].evidence[0].anchor.line_end"),
    ],
)
def test_a_repeated_member_is_told_alone(old: bytes, new: bytes, at: str) -> None:
    data = raw("response")
    assert data.count(old) == 1
    report = validate(data.replace(old, new), artifact=artifact())
    assert [(told.rule, told.path) for told in report.violations] == [("duplicate-member", at)]


def test_a_repeated_member_hides_no_other_fault() -> None:
    data = raw("response").replace(b'"summary": ', b'"summary": "", "summary": ').replace(b'"low"', b'"tiny"', 1)
    assert set(validate(data).rules) == {"duplicate-member", "enum-value"}
    assert validate(data, published=True).rules == ("enum-value",)
    assert validate(data[:-1]).rules == ("json-text",)


def test_independent_faults_are_all_told() -> None:
    value = edited(
        document("reconciliation"),
        {"set": {"$.items[1].state": "done", "$.rounds_used": -1, "$.x": 1}, "delete": ["$.items[0].resolution"]},
    )
    assert sorted(validate(json.dumps(value).encode()).rules) == [
        "enum-value", "minimum", "resolution-text", "unknown-member",
    ]  # fmt: skip


# --- kinds ---


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"items": 1}', "reconciliation"),
        ('{"reconciliation_id": 1, "findings": []}', "reconciliation"),
        ('{"findings": 1}', "response"),
        ('{"assessment": 1}', "response"),
        ('{"assessment" : ', "response"),
    ],
)
def test_a_document_tells_its_kind(text: str, kind: str) -> None:
    assert validate(text.encode()).kind == kind
    assert validate(text.encode(), kind="response").kind == kind


@pytest.mark.parametrize("text", ["{}", "[]", "7", "", "# a memo", '{"extensions": {"findings": 1}}'])
def test_what_tells_no_kind_needs_it_named(text: str) -> None:
    with pytest.raises(Refused) as refused:
        validate(text.encode())
    assert refused.value.code == "E_REVIEW_KIND"
    for kind in ("response", "reconciliation"):
        report = validate(text.encode(), kind=kind)
        assert report.kind == kind
        assert report.violations


def test_too_large_a_file_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        validate(b" " * (MAX_BYTES + 1))
    assert refused.value.code == "E_REVIEW_TOO_LARGE"


# --- what was not given ---


def test_what_needs_more_than_the_document_is_told_as_unchecked() -> None:
    alone = validate(raw("response"))
    assert alone.violations == ()
    assert {entry["rule"] for entry in alone.unchecked} == {
        "revision-artifact", "quote-in-artifact", "section-in-artifact", "quote-occurrence", "path-in-artifact",
        "line-in-file", "symbol-in-file", "pointer-resolves", "excerpt-in-artifact", "digest-in-artifact", "locator",
    }  # fmt: skip
    given = validate(raw("response"), artifact=artifact())
    assert [(entry["rule"], entry["path"]) for entry in given.unchecked] == [
        ("pointer-resolves", "$.findings[3].evidence[1].anchor.pointer"),
        ("locator", "$.findings[4].evidence[0].anchor.locator"),
    ]
    rest = {entry["rule"] for entry in validate(raw("reconciliation")).unchecked}
    assert {"review-id-match", "revision-match", "unknown-finding", "finding-coverage", "revision-artifact"} <= rest


def test_a_review_that_is_not_valid_is_nothing_to_be_held_against() -> None:
    assert read_review(raw("response")) == document("response")
    for data in (raw("reconciliation"), json.dumps(edited(document("response"), {"delete": ["$.summary"]})).encode()):
        with pytest.raises(Refused) as refused:
            read_review(data)
        assert refused.value.code == "E_REVIEW_UNFIT"


def test_the_record_of_decisions() -> None:
    lines = b'{"finding_id": "F001"}\n{"finding_id": "F002", "ruling": "x"}\n{"finding_id": "F002", "ruling": "y"}\n'
    assert read_decisions(lines) == {"F001": {"finding_id": "F001"}, "F002": {"finding_id": "F002", "ruling": "y"}}
    assert read_decisions(b"") == {}
    for bad in (b"{}\n", b'{"finding_id": 1}', b'\n{"finding_id": "F001"}', b"[]"):
        with pytest.raises(Refused) as refused:
            read_decisions(bad)
        assert refused.value.code == "E_DECISIONS_UNREADABLE"


# --- documents of others ---


@needs_shared
def test_published_documents_give_their_declared_results() -> None:
    seen = 0
    for folder, verdict in (("valid", "valid"), ("invalid", "invalid")):
        for path in sorted(conformance("review", folder).glob("*.json")):
            report = validate(path.read_bytes(), published=True)
            assert report.verdict == verdict, path.name
            assert len(report.violations) == (verdict == "invalid")
            assert report.kind == ("response" if "reviewer-response" in path.name else "reconciliation")
            seen += 1
    assert seen >= 6
