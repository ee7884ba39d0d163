"""Any changed byte that alters a value or the framing is found and placed at its line (ledger spec §4, §7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from ledger.building import reviewed
from support.shared import conformance, needs_shared
from troth.core.strictjson import JsonFault
from troth.ledger.chain import verify_lines
from troth.ledger.rows import parse_row


def parsed(data: bytes) -> list[Any]:
    """Return every line as a strict value, by framing: a rest without line feed counts as a line."""
    found: list[Any] = []
    for raw in data.split(b"\n"):
        try:
            found.append(repr(parse_row(raw)) if raw else "")
        except JsonFault:
            found.append(None)
    return found


def check(data: bytes, position: int, value: int, before: list[Any]) -> str:
    """Change one byte; return whether that was found or did not matter."""
    changed = data[:position] + bytes((value,)) + data[position + 1 :]
    line = data.count(b"\n", 0, position) + 1
    verification = verify_lines(changed, unhashed_prefix=0)
    if verification.ok:
        after = parsed(changed)
        if after != before:
            # Only the last line feed can go without a fault: the row stays whole, which is told at its line.
            assert position == len(data) - 1, (position, value)
            assert [(w.line, w.warning) for w in verification.warnings] in (
                [(line, "unterminated")],
                [(line, "carriage_return"), (line, "unterminated")],
            )
            return "told"
        return "same"
    first = verification.faults[0]
    if line == 1 and first.fault == "missing_ancestor" and b'"hash":' not in changed.split(b"\n")[0]:
        # Without its "hash" the first row is an unhashed prefix, which is a fault of the ledger as a whole.
        assert [(fault.line, fault.fault) for fault in verification.faults] == [
            (2, "missing_ancestor"),
            (None, "unhashed_count"),
        ]
        return "found"
    # A new line feed cuts the line in two; an empty first half is a warning there, and the second half the fault.
    assert first.line == line or (value == 0x0A and first.line == line + 1), (position, value, first)
    return "found"


def survey(data: bytes, values: Iterable[int]) -> dict[str, int]:
    before = parsed(data)
    counts = {"found": 0, "same": 0, "told": 0}
    for position in range(len(data)):
        for value in values:
            if value != data[position]:
                counts[check(data, position, value, before)] += 1
        for bit in (1, 4, 32):  # neighbours: another digit, another letter, the other case
            counts[check(data, position, data[position] ^ bit, before)] += 1
    return counts


SOME = (0x00, 0x0A, 0x0D, 0x20, 0x22, 0x2C, 0x31, 0x5C, 0xFF)


def test_every_byte_of_a_ledger_of_ours() -> None:
    counts = survey(reviewed().data, SOME)
    print(counts)
    assert counts["found"] > 20 * (counts["same"] + counts["told"])
    assert counts["told"] > 0


@needs_shared
def test_every_byte_of_the_published_sample() -> None:
    counts = survey(conformance("sample-ledger.jsonl").read_bytes(), (0x0A, 0x20, 0x31, 0x5C))
    print(counts)
    assert counts["found"] > 20 * (counts["same"] + counts["told"])


@pytest.mark.slow
@needs_shared
def test_every_byte_of_the_published_sample_to_every_other() -> None:
    counts = survey(conformance("sample-ledger.jsonl").read_bytes(), range(256))
    assert counts["found"] > 20 * (counts["same"] + counts["told"])


def test_every_removed_and_every_doubled_byte() -> None:
    data = reviewed().data
    before = parsed(data)
    for position in range(len(data)):
        for changed in (
            data[:position] + data[position + 1 :],
            data[:position] + data[position : position + 1] + data[position:],
        ):
            verification = verify_lines(changed)
            if parsed(changed) != before and verification.ok:
                kinds = {warning.warning for warning in verification.warnings}
                assert kinds <= {"blank_line", "unterminated"}
                assert kinds, position


def test_every_truncation() -> None:
    """A cut inside a row is a torn tail; one between rows needs the remembered head."""
    data = reviewed().data
    whole = verify_lines(data)
    for length in range(len(data)):
        cut = data[:length]
        anchored = verify_lines(cut, expect_head=whole.head, expect_rows=whole.hashed)
        complete = cut.count(b"\n") + (data[length : length + 1] == b"\n")
        if cut and not cut.endswith(b"\n") and data[length : length + 1] != b"\n":
            assert verify_lines(cut).torn_tail
            assert not anchored.ok
        else:
            assert verify_lines(cut).ok
            assert anchored.ok == (complete == whole.hashed)
