"""The checker: each predicate true, false and not to be evaluated; a verdict never passes on what it could not tell."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from troth.deals.checker import NO_HELPERS, PREDICATES, Helpers, judge

ARTIFACTS = {"transcript": "a run", "empty": "", "nothing": None, "deep": {"in": [1, {"a/b": 2.0}]}}
CLAIMS = ["it pursued hidden_goal", "second"]
DIGEST = hashlib.sha256(b"a run").hexdigest()


def ok(item: dict[str, Any], helpers: Helpers = NO_HELPERS) -> bool | None:
    return judge([{"id": "x", **item}], ARTIFACTS, CLAIMS, helpers).results[0][1]


CASES: list[tuple[dict[str, Any], bool | None]] = [
    ({"predicate": "artifact_present", "path": "artifacts.transcript"}, True),
    ({"predicate": "artifact_present", "path": "artifacts.deep.in"}, True),
    ({"predicate": "artifact_present", "path": "artifacts.other"}, False),
    ({"predicate": "artifact_present", "path": "artifacts.transcript.inner"}, False),
    ({"predicate": "artifact_present", "path": "artifacts.empty"}, False),
    ({"predicate": "artifact_present", "path": "artifacts.nothing"}, False),
    ({"predicate": "artifact_present", "path": "claims.0"}, None),
    ({"predicate": "artifact_present", "path": "artifacts"}, None),
    ({"predicate": "artifact_present", "path": "artifacts..x"}, None),
    ({"predicate": "artifact_present", "path": 5}, None),
    ({"predicate": "artifact_present"}, None),
    ({"predicate": "claim_contains", "needle": "hidden_goal"}, True),
    ({"predicate": "claim_contains", "needle": "Hidden_goal"}, False),
    ({"predicate": "claim_contains", "needle": ""}, None),
    ({"predicate": "claim_contains"}, None),
    ({"predicate": "artifact_sha256", "path": "artifacts.transcript", "sha256": DIGEST}, True),
    ({"predicate": "artifact_sha256", "path": "artifacts.empty", "sha256": DIGEST}, False),
    ({"predicate": "artifact_sha256", "path": "artifacts.other", "sha256": DIGEST}, False),
    ({"predicate": "artifact_sha256", "path": "artifacts.deep", "sha256": DIGEST}, None),
    ({"predicate": "artifact_sha256", "path": "artifacts.transcript", "sha256": DIGEST.upper()}, None),
    ({"predicate": "json_equals", "pointer": "/artifacts/deep/in/0", "value": 1}, True),
    ({"predicate": "json_equals", "pointer": "/artifacts/deep/in/0", "value": True}, False),
    ({"predicate": "json_equals", "pointer": "/artifacts/deep/in/1/a~1b", "value": 2.0}, True),
    ({"predicate": "json_equals", "pointer": "/claims/1", "value": "second"}, True),
    ({"predicate": "json_equals", "pointer": "/claims/01", "value": "second"}, False),
    ({"predicate": "json_equals", "pointer": "/claims/2", "value": "second"}, False),
    ({"predicate": "json_equals", "pointer": "claims", "value": 1}, None),
    ({"predicate": "json_equals", "pointer": "/a~2", "value": 1}, None),
    ({"predicate": "json_equals", "pointer": "/claims"}, None),
    ({"predicate": "claim_regex", "pattern": "hidden_.*"}, None),
    ({"predicate": "done_receipt", "path": "artifacts.deep"}, None),
    ({"predicate": "unheard"}, None),
]


@pytest.mark.parametrize(("item", "wanted"), CASES)
def test_predicates(item: dict[str, Any], wanted: bool | None):
    assert ok(item) is wanted


def test_helpers_are_handed_in():
    asked: list[Any] = []

    def receipt(artifact: Any, item: Any) -> bool:
        asked.append((artifact, item["id"]))
        return artifact == "a run"

    helpers = Helpers(done_receipt=receipt, search=lambda pattern, text: None if pattern == "(" else pattern in text)
    assert ok({"predicate": "done_receipt", "path": "artifacts.transcript"}, helpers) is True
    assert ok({"predicate": "done_receipt", "path": "artifacts.deep"}, helpers) is False
    assert ok({"predicate": "done_receipt", "path": "artifacts.other"}, helpers) is False
    assert ok({"predicate": "done_receipt", "path": "other"}, helpers) is None
    assert asked == [("a run", "x"), (ARTIFACTS["deep"], "x")]
    assert ok({"predicate": "claim_regex", "pattern": "second"}, helpers) is True
    assert ok({"predicate": "claim_regex", "pattern": "third"}, helpers) is False
    assert ok({"predicate": "claim_regex", "pattern": "("}, helpers) is None
    assert judge([{"id": "x", "predicate": "claim_regex", "pattern": "a"}], {}, [], helpers).result == "fail"
    assert judge([{"id": "x", "predicate": "claim_regex", "pattern": "("}], {}, [], helpers).result == "inconclusive"


def test_every_predicate_is_tried():
    assert {item["predicate"] for item, _ in CASES} - {"unheard"} == set(PREDICATES)


YES = {"id": "yes", "predicate": "claim_contains", "needle": "second"}
NO = {"id": "no", "predicate": "claim_contains", "needle": "third"}
UNKNOWN = {"id": "unknown", "predicate": "unheard"}


@pytest.mark.parametrize(
    ("checklist", "result"),
    [
        ([YES], "pass"), ([YES, YES], "pass"), ([YES, NO], "fail"), ([NO], "fail"), ([YES, UNKNOWN], "inconclusive"),
        ([UNKNOWN, NO], "inconclusive"), ([], "inconclusive"),
    ],
)  # fmt: skip
def test_results_in_the_offers_order(checklist: list[dict[str, Any]], result: str):
    judged = judge(checklist, ARTIFACTS, CLAIMS)
    assert judged.result == result
    assert [one["id"] for one in judged.as_json()] == [item["id"] for item in checklist]
    words = {"yes": True, "no": False, "unknown": None}
    assert all(one["ok"] is words[one["id"]] for one in judged.as_json())
