"""The operator's part on documents bent at random: refused or complete, and never a crash."""

from __future__ import annotations

import json
import random
from typing import Any

from review.documents import artifact, document
from review.mutate import mutated
from review.playing import came_to, played
from review.test_panel import A1, B1, two
from troth.core.canonical import record_bytes
from troth.core.errors import Refused
from troth.review.decisions import open_questions, read_lines, ruled
from troth.review.pages import html, markdown
from troth.review.panel import merged, unreviewed
from troth.review.report import report
from troth.review.run import begun, result
from troth.review.validate import validate

TIMES = 300
GIVEN = {"time": "2026-03-02T09:00:00Z", "actor": "human:lead", "channel": "terminal"}


def bent(chance: random.Random, value: Any) -> Any:
    return mutated(chance, json.loads(json.dumps(value)), chance.randint(1, 3))


def test_a_view_is_refused_or_complete() -> None:
    chance = random.Random(8)
    reasons = {"F005": "No source."}
    shown = 0
    for _ in range(TIMES):
        review, reconciliation = document("response"), came_to(played())
        if chance.random() < 0.5:
            review = bent(chance, review)
        else:
            reconciliation = bent(chance, reconciliation)
        try:
            asked = open_questions(
                record_bytes(review), record_bytes(reconciliation), artifact(), unverifiable=reasons
            )  # fmt: skip
        except Refused:
            continue
        for one in asked:
            shown += 1
            assert one.finding["claim"].strip()
            assert one.evidence
            assert one.verification or one.unverifiable
            assert one.host_position.strip()
            assert one.reviewer_position.strip()
            after = ruled(reconciliation, one.finding_id, question=one.question, ruling="Yes.", **GIVEN)
            data = record_bytes(after.document)
            told = validate(data, artifact=artifact(), review=review, decided={one.finding_id: after.line})
            assert told.violations == ()
    assert shown > 20  # some stay valid, or nothing was tried


def test_every_valid_document_has_a_report() -> None:
    chance = random.Random(11)
    written = 0
    for _ in range(TIMES):
        review, reconciliation = bent(chance, document("response")), bent(chance, document("reconciliation"))
        if validate(record_bytes(review)).violations:
            review = document("response")
        if validate(record_bytes(reconciliation)).violations:
            reconciliation = None
        told = report(review, reconciliation, artifact=artifact())
        assert told.tally.raised == sum(number for _, number in told.tally.rows())
        assert markdown(told).endswith("\n")
        assert "</html>" in html(told)
        written += 1
    assert written == TIMES


def test_extensions_of_any_form_break_nothing() -> None:
    chance = random.Random(12)
    whole = merged(two(), [(A1, B1)], review_id="p")
    for _ in range(TIMES):
        value = {**whole, "extensions": bent(chance, whole["extensions"])}
        for backend in ("panel", "chunks"):
            value["producer"] = {"backend": backend}
            told = result(begun(value, artifact()), "rec")
            assert all(text in told["limitations"] for text in unreviewed(value))
            assert html(report(value, told))


def test_lines_of_any_form_are_read_or_refused() -> None:
    chance = random.Random(13)
    line = record_bytes(ruled(came_to(played()), "F005", question="So?", ruling="Yes.", **GIVEN).line)
    refused = 0
    for _ in range(TIMES):
        data = bytearray(line)
        for _ in range(chance.randint(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        try:
            (found,) = read_lines(bytes(data))
        except Refused:
            refused += 1
        else:
            assert all(isinstance(text, str) and text for text in found.values())
    assert 0 < refused < TIMES
