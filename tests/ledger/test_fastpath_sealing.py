"""What a writer makes on the quick path is what the reference path makes, or nothing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.hostile import LINK, names, same, scalars, values
from troth.core.canonical import row_bytes
from troth.ledger import fastpath
from troth.ledger.hashing import row_hash
from troth.ledger.rows import parse_row
from troth.ledger.values import unportable


@settings(max_examples=300, deadline=None)
@given(values)
def test_a_sealed_row_is_the_reference_path_s(payload: Any) -> None:
    row = {"id": "mem_1", "op": "capture", "prevHash": LINK, "payload": payload, "é/\x7f": "é/\x7f"}
    if unportable(row) is not None:
        return
    line = fastpath.sealed(row)
    SEALED["refused" if line is None else "sealed"] += 1
    if line is None:
        assert fastpath._tiny_fixed(orjson.dumps(row)) or fastpath._tiny_scientific(orjson.dumps(row))
        return
    assert list(row)[-1] == "hash"
    assert row["prevHash"] == LINK
    assert row["hash"] == row_hash({**row, "hash": ""}) == row_hash(parse_row(line))
    assert line == row_bytes(row)
    assert same(parse_row(line), row)


SEALED: Counter[str] = Counter()


def test_most_rows_are_sealed() -> None:
    print(dict(SEALED))
    assert not SEALED or SEALED["sealed"] > 0.5 * SEALED.total()


class Odd(dict[str, Any]):
    """A mapping that is none of JSON's, and yet holds what JSON holds."""


@dataclass
class Agrees:
    """Claims to equal everything."""

    name: str = "x"

    def __eq__(self, _: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # it equals what has another hash


@settings(max_examples=400, deadline=None)
@given(
    st.recursive(
        scalars
        | st.floats()
        | st.integers(2**53 - 2, 2**53 + 2)
        | st.characters(categories=["Cs"])
        | st.sampled_from([(), (1,), b"x", {1: 2}, {"\ud800": 1}, datetime(2026, 1, 1, tzinfo=UTC), UUID(int=1)])
        | st.builds(Agrees),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3).map(Odd),
        max_leaves=6,
    ),
    st.integers(0, 101),
)
def test_quickly_portable_means_portable(value: Any, depth: int) -> None:
    if depth > 95:
        for _ in range(depth):
            value = [value]
    quickly = fastpath.portable(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("troth.ledger.values.portable", fastpath._never_portable)
        closely = unportable(value) is None
    PORTABLE[f"{quickly} {closely}"] += 1
    assert closely or not quickly


PORTABLE: Counter[str] = Counter()


def test_portability_was_told_both_ways() -> None:
    print(dict(PORTABLE))
    if PORTABLE:
        assert PORTABLE["True True"] > 0.1 * PORTABLE.total()
        assert PORTABLE["False False"] > 0.1 * PORTABLE.total()
