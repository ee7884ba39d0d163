"""Confidence read from a store: the same whether it was collected while reading, afterwards, or row by row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.building import Ledger, line
from ledger.trusting import ledger_of
from support.ledgers import fresh
from troth.ledger.confidence import Standing, Trust, trust_of
from troth.ledger.operations import Candidate
from troth.ledger.rows import row_of
from troth.stores.jsonl import JsonlStore


def expected(where: Path) -> list[tuple[str, Standing]]:
    rows = [json.loads(raw) for raw in where.read_bytes().splitlines()]
    return list(trust_of(row_of(number, row) for number, row in enumerate(rows, start=1)).standings())


def found(trust: Trust) -> list[tuple[str, Standing]]:
    return list(trust.standings())


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_in_one_pass_and_in_two(tmp_path_factory: pytest.TempPathFactory, seed: int, size: int) -> None:
    where = tmp_path_factory.mktemp("l") / "l.jsonl"
    where.write_bytes(ledger_of(seed, size, 0.1).data)
    together, afterwards = JsonlStore.open(where).read(trust=True), JsonlStore.open(where).read()
    assert found(together.trust) == found(afterwards.trust) == expected(where)
    assert together.trust.warnings == afterwards.trust.warnings
    assert together.trust is together.trust


@pytest.mark.parametrize("trust", [True, False])
def test_an_open_store_goes_on(trust: bool, tmp_path: Path) -> None:
    store = fresh(tmp_path)
    seen = store.append(Candidate("capture", "agent:worker", {"body": "seen"}))["id"]
    for number in range(12):
        actor = f"agent:n{number % 5}"
        relations = [{"type": ("cites", "contradicts")[number % 2], "targetId": seen}]
        row = store.append(Candidate("capture", actor, {"body": "x"}, relations=relations))
        assert found(store.read(trust=trust).trust) == expected(store.ledger_file)
        if number % 3 == 0:
            seen = row["id"]


def test_rows_that_another_process_appended_count(tmp_path: Path) -> None:
    ledger = Ledger()
    seen = ledger.add("capture")
    where = tmp_path / "l.jsonl"
    where.write_bytes(ledger.data)
    store = JsonlStore.open(where)
    assert store.read(trust=True).trust.standing(seen).effective == 0.5
    for _ in range(2):  # the second time the bytes known before are recognised
        ledger.add("capture", f"agent:n{len(ledger.rows)}", relations=[{"type": "cites", "targetId": seen}])
        with where.open("ab") as file:
            file.write(line(ledger.rows[-1]))
        assert found(store.read(trust=True).trust) == expected(where)
    assert store.read().trust.standing(seen).effective == pytest.approx(1 - 0.5 * 0.95**2)


def test_a_last_row_without_line_feed_counts(tmp_path: Path) -> None:
    ledger = Ledger()
    seen = ledger.add("capture")
    ledger.add("capture", "agent:other", relations=[{"type": "cites", "targetId": seen}])
    where = tmp_path / "l.jsonl"
    where.write_bytes(ledger.data.removesuffix(b"\n"))
    assert JsonlStore.open(where).read(trust=True).trust.standing(seen).effective == pytest.approx(0.525)
