"""Strict JSON: every kind of fault, which of two comes first, and agreement with the standard library on good text."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.core.strictjson import LEDGER_ROW, MAX_INT_DIGITS, RECORD, JsonFault, Limits, loads, max_depth

TINY = Limits(max_bytes=64, max_depth=3, refuse_overflow=True)


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "invalid"),
        (b"{", "invalid"),
        (b'{"a":1}x', "invalid"),
        (b"{'a':1}", "invalid"),
        (b'{"a":01}', "invalid"),
        (b'{"a":+1}', "invalid"),
        (b'{"a":.5}', "invalid"),
        (b'{"a":"\x01"}', "invalid"),
        (b'"\\x41"', "invalid"),
        (b"\xef\xbb\xbf{}", "invalid"),
        (b'"\xff"', "invalid"),
        (b'"\xed\xa0\x80"', "invalid"),
        (b"[NaN]", "number"),
        (b"[Infinity]", "number"),
        (b"[-Infinity]", "number"),
        (b"[1e400]", "number"),
        (b"[-1e400]", "number"),
        (b'{"a":1,"a":1}', "duplicate_key"),
        (b'{"a":1,"\\u0061":2}', "duplicate_key"),
        (b'{"o":{"a":1,"a":2}}', "duplicate_key"),
        (b"[[[[1]]]]", "depth"),
        (b" " * 65, "size"),
        (b'"\\ud800"', "surrogate"),
        (b'{"\\udc00":1}', "surrogate"),
        (b'"\\ude00\\ud83d"', "surrogate"),
    ],
)
def test_each_fault_has_its_kind(data: bytes, kind: str) -> None:
    with pytest.raises(JsonFault) as caught:
        loads(data, TINY)
    assert caught.value.kind == kind


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b" \t\r\n{} \n", {}),
        (b'{"a":{"a":{}}}', {"a": {"a": {}}}),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b'"[[[[{{{{"', "[[[[{{{{"),
        (b"[1e308, -0, -0.0]", [1e308, 0, -0.0]),
        (b"true", True),
    ],
)
def test_honest_twins_are_read(data: bytes, value: Any) -> None:
    assert loads(data, TINY) == value


def test_a_fault_inside_an_object_comes_before_its_repeated_name() -> None:
    with pytest.raises(JsonFault) as caught:
        loads(b'{"a":1,"a":NaN}', TINY)
    assert caught.value.kind == "number"
    with pytest.raises(JsonFault) as caught:
        loads(b'[{"a":1,"a":2},NaN]', TINY)
    assert caught.value.kind == "duplicate_key"


def test_integers_keep_their_digits_up_to_the_limit() -> None:
    digits = "9" * MAX_INT_DIGITS
    assert loads(f"[{digits},-{digits}]".encode(), LEDGER_ROW) == [int(digits), -int(digits)]
    with pytest.raises(JsonFault) as caught:
        loads(f"[{digits}9]".encode(), LEDGER_ROW)
    assert caught.value.kind == "invalid"


def test_overflow_is_refused_only_where_the_limits_say_so() -> None:
    assert loads(b"[1e400]", RECORD) == [math.inf]
    with pytest.raises(JsonFault):
        loads(b"[" + b"9" * 400 + b".0]", LEDGER_ROW)


def test_depth_counts_containers_and_not_brackets_in_strings() -> None:
    assert max_depth(b'[{"[[[":["\\"[["]}]', 100) == 3
    loads(b"[" * 100 + b"]" * 100, LEDGER_ROW)
    with pytest.raises(JsonFault) as caught:
        loads(b"[" * 101 + b"]" * 101, LEDGER_ROW)
    assert caught.value.kind == "depth"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=25,
)


@given(JSON, st.booleans())
def test_good_text_is_read_as_the_standard_library_reads_it(value: Any, ascii_only: bool) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return  # an unpaired surrogate drawn by the strategy cannot be written raw
    if any(0xD800 <= ord(char) <= 0xDFFF for char in json.dumps(value, ensure_ascii=False)):
        with pytest.raises(JsonFault):
            loads(data, RECORD)
        return
    assert repr(loads(data, RECORD)) == repr(json.loads(text))


def _bent(data: bytes, at: int, byte: int) -> bytes:
    at %= len(data)
    return data[:at] + bytes([byte]) + data[at + 1 :]


TEXT = JSON.map(lambda value: json.dumps(value).encode())
HOSTILE = st.one_of(
    st.binary(max_size=80), TEXT, st.builds(_bent, TEXT, st.integers(0, 500), st.sampled_from(b'0"a,[] {}e.-\\'))
)

_accepted = {"good": 0, "all": 0}


@given(HOSTILE)
def _feed(data: bytes) -> None:
    _accepted["all"] += 1
    try:
        loads(data, LEDGER_ROW)
        _accepted["good"] += 1
    except JsonFault:
        pass


def test_hostile_bytes_are_read_or_refused_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    _feed()
    with capsys.disabled():
        print(f" accept rate {_accepted['good']}/{_accepted['all']}", end="")
    assert _accepted["good"] > _accepted["all"] // 10
