"""Readers' warnings (ledger spec §2, §8), and that every stable word has its sentence."""

from __future__ import annotations

from typing import Any

import pytest

from ledger.building import Ledger, reviewed
from troth.ledger.chain import ChainReader
from troth.ledger.codes import CODES, DETAILS, FAULTS, WARNINGS
from troth.ledger.remarks import Remarks

SEEN = "mem_00000001"


def remarks(envelope: dict[str, Any], op: str = "capture", workspace: str | None = "w") -> list[str]:
    """Return the warnings about a second row with these members."""
    ledger = Ledger()
    ledger.add("capture")
    ledger.add(op, envelope=envelope)
    found, reader = Remarks(workspace), ChainReader()
    reader.feed_all([ledger.data], found.apply)
    assert all(warning.line == 2 for warning in found.warnings)
    return [warning.warning for warning in found.warnings]


@pytest.mark.parametrize(
    ("envelope", "expected"),
    [
        ({}, []),
        ({"workspace": "v"}, ["workspace_differs"]),
        ({"workspace": None}, []),
        ({"id": "op_00000009"}, ["id_prefix"]),
        ({"ts": "2026-01-01T00:00:09+00:00"}, ["offset_timestamp"]),
        ({"ts": "2026-01-01T00:00:09.000000001Z"}, []),
        ({"ts": "2026-13-01T00:00:09Z"}, ["bad_timestamp"]),
        ({"ts": 5}, ["bad_timestamp"]),
        ({"ts": None}, []),
        ({"ts": "2025-12-31T23:59:59Z"}, ["time_backwards"]),
        ({"ts": "2026-01-01T00:00:01Z"}, []),
        ({"relations": [{"type": "hugs", "targetId": SEEN}]}, ["relation_type"]),
        ({"relations": [{"type": name, "targetId": SEEN} for name in ("cites", "okf_link", "supports")]}, []),
        ({"relations": "x"}, []),
        ({"trace": {"parent": [SEEN], "causalDepth": 1}}, []),
        ({"trace": {"parent": [SEEN]}}, []),
        ({"trace": {"parent": [SEEN], "causalDepth": 2}}, ["causal_depth"]),
        ({"trace": {"parent": [SEEN], "causalDepth": True}}, ["causal_depth"]),
        ({"trace": {"causalDepth": 1}}, ["causal_depth"]),
        ({"trace": {"parent": [5], "causalDepth": 0}}, []),
        ({"observationLevel": "explicit"}, []),
        ({"observationLevel": "deductive"}, ["level_premises"]),
        ({"observationLevel": "inductive", "sourceIds": [SEEN]}, []),
        ({"observationLevel": "contradiction"}, ["level_premises", "level_contradiction"]),
        (
            {
                "observationLevel": "contradiction",
                "sourceIds": [SEEN],
                "relations": [{"type": "contradicts", "targetId": SEEN}],
            },
            [],
        ),
    ],
)
def test_remarks(envelope: dict[str, Any], expected: list[str]) -> None:
    assert remarks(envelope) == expected


def test_without_a_configuration_no_workspace_is_wrong() -> None:
    assert remarks({"workspace": "v"}, workspace=None) == []


def test_a_good_ledger_draws_no_remark() -> None:
    found, reader = Remarks("w"), ChainReader()
    reader.feed_all([reviewed().data], found.apply)
    assert found.warnings == []


def test_every_word_has_one_sentence() -> None:
    assert len(CODES) == 11
    for table in (CODES, DETAILS, FAULTS, WARNINGS):
        for word, sentence in table.items():
            assert word
            assert sentence.endswith(".")
            assert sentence[0].isupper()
            assert "\n" not in sentence
