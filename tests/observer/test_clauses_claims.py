"""The claims file: the last claim of each command counts, and a line that is no claim claims nothing (§13.12)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.observer import claims as module
from troth.observer.claims import read_claims


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_a_failing_run_before_the_fix_and_the_passing_one_after_it_are_one_claim() -> None:
    found = read_claims(lines({"argv": ["t"], "exit": 1}, {"argv": ["lint"]}, {"argv": ["t"], "exit": 0}))
    assert found.entries == ({"id": "c1", "argv": ["lint"]}, {"id": "c2", "argv": ["t"], "exit": 0})
    assert (found.lines, found.refused) == (3, ())


def test_words_of_a_command_are_compared_exactly() -> None:
    found = read_claims(lines({"argv": ["t", "-q"]}, {"argv": ["t", "-q", ""]}, {"argv": ["t -q"]}))
    assert len(found.entries) == 3


@pytest.mark.parametrize(
    "line",
    [
        b"no json", b"[]", b"{}", b'{"argv": []}', b'{"argv": [""]}', b'{"argv": "t"}', b'{"argv": ["t", 1]}',
        b'{"argv": ["t"], "exit": true}', b'{"argv": ["t"], "exit": 256}', b'{"argv": ["t"], "exit": 1.0}',
        b'{"argv": ["t"], "exit": null}', b'{"argv": ["t"], "cwd": "/"}', b'{"argv": ["t"], "argv": ["u"]}', b"\xff",
    ],
)  # fmt: skip
def test_a_line_that_is_no_claim_is_listed_and_hides_no_other(line: bytes) -> None:
    good = lines({"argv": ["t"], "exit": 0})
    found = read_claims(good + line + b"\n\n" + lines({"argv": ["u"]}))
    assert [entry["argv"] for entry in found.entries] == [["t"], ["u"]]
    assert [number for number, _ in found.refused] == [2]


def test_what_lies_beyond_the_limit_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    data = lines({"argv": ["t"]}, {"argv": ["u"]})
    monkeypatch.setattr(module, "MAX_BYTES", len(lines({"argv": ["t"]})))
    found = read_claims(data)
    assert [entry["argv"] for entry in found.entries] == [["t"]]
    assert [number for number, _ in found.refused] == [0]


@given(st.lists(st.sampled_from([b'{"argv":["t"]}', b'{"argv":["u"],"exit":3}', b"x", b"", b"\x00"]) | st.binary()))
def test_any_bytes_are_answered(parts: list[bytes]) -> None:
    found = read_claims(b"\n".join(parts))
    vectors = [tuple(entry["argv"]) for entry in found.entries]
    assert len(set(vectors)) == len(vectors)
    assert found.lines >= len(vectors)
