"""Rows that anybody may have written, whatever stands in them: nothing falls over, and nothing closes by them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.airlock import IDENTITY, WORKER, committed, one_tier, submit, workspace
from troth.airlock.history import rows_about, validations_in
from troth.airlock.queue import queue_of
from troth.airlock.tiers import Result
from troth.airlock.validating import Airlock, Report
from troth.airlock.validators import Submitted, safety, technical
from troth.ledger.genesis import Tier, parse_genesis
from troth.ledger.operations import Candidate

AT = datetime(2026, 6, 1, tzinfo=UTC)

words = st.sampled_from(
    ["technical", "passed", "failed", "waiting", "run_0badcafe", ".mentu/runs/run_0badcafe/receipt.json", "",
     "\x1b[31m", "../x", "0" * 64, "rev-1", "x" * 3000]
)  # fmt: skip
values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)
NAMES = ["validator", "result", "reason", "submission", "commitment", "run", "receipt", "receipt_sha256", "decision",
         "review", "artifact", "facts"]  # fmt: skip
metas = st.dictionaries(st.sampled_from(NAMES), values, max_size=8)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(metas, metas, metas, st.booleans())
def test_whatever_stands_in_meta(tmp_path: Path, evidence: Any, note: Any, submission: Any, named: bool) -> None:
    root = tmp_path / str(len(list(tmp_path.iterdir())))
    store = workspace(root, one_tier(auto_close=True, validators=["technical", "safety"]), {})
    commitment = committed(store)
    shown = store.append(Candidate("capture", WORKER, {"body": "done", "kind": "evidence", "meta": evidence}))["id"]
    submitted = submit(store, commitment, shown, **{f"m{name}": value for name, value in submission.items()})
    if named:  # and as close to a real answer as can be
        note = {**note, "submission": submitted, "validator": "technical"}
    store.append(
        Candidate(
            "annotate", "system:validator", {"body": "passed", "kind": "validation", "target": submitted, "meta": note},
            source_key=f"validation:{submitted}:technical:1",
        )
    )  # fmt: skip
    report = Airlock(store).take(submitted)
    assert report.outcome == "failed"
    assert len(report.results) == 2  # both were really asked
    snapshot = store.read()
    assert snapshot.state.commitments[commitment].state == "in_review"
    queue = queue_of(snapshot, store.genesis(), at=AT)
    (waiting,) = queue.waiting
    assert waiting.risks
    json.dumps(queue.as_json()).encode()
    answers = validations_in(rows_about(snapshot.rows, commitment))
    assert [one["validator"] for one in answers if one["counts"]][-2:] == ["technical", "safety"]


@settings(max_examples=300, deadline=None)
@given(values, values)
def test_validators_answer_whatever_the_rows_hold(row: Any, evidence: Any) -> None:
    rows = [{"payload": {"meta": one}} if isinstance(one, dict) else {"payload": one} for one in (row, evidence)]

    class Raising:
        def find(self, review: str, submitted: Submitted) -> None:
            assert isinstance(review, str)

    submitted = Submitted("cmt_00000001", "op_00000001", "mem_00000001", WORKER, Tier(1), rows[0], rows[1], None)
    for answered in (technical(submitted), safety(submitted, Raising())):
        assert isinstance(answered, Result)
        assert answered.result == "failed"
        assert answered.reason


def test_reports_are_json() -> None:
    report = Report("cmt_00000001", "op_00000001", None, (), "waiting", "an approval is needed")
    assert json.loads(json.dumps(report.as_json()))["outcome"] == "waiting"
    assert parse_genesis(IDENTITY.encode()).tiers == {}
