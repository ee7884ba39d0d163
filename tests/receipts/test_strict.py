"""The fast JSON reader answers as the strict one, or not at all (done records §3)."""

from __future__ import annotations

import json
import random
from typing import Any

import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from receipts.mutate import spoil
from support.receipt_members import Draft
from troth.core.strictjson import max_depth
from troth.receipts import strict
from troth.receipts.kinds import Broken
from troth.receipts.strict import LIMITS, parse, parse_strict


def outcome(reader: Any, data: bytes) -> Any:
    """Return what a reader makes of the bytes: the value, written so that types show, or the code."""
    try:
        return "value", repr(reader(data, "p"))
    except Broken as fault:
        return "fault", fault.code


HOSTILE = [
    b'{"a":1,"a":1}',
    b'{"a":1,"a" :1}',
    b'{"a" :1,"b":"\\":"}',
    b'{"a":1,"a":":x"}',
    b'{"\\u0061":1,"a":2}',
    b'{"a":{"b":1,"b":1}}\n',
    b'{\n  "a": 1,\n  "a": 1\n}\n',
    b'{\n  "a": 1\n}\n\n',
    b"18446744073709551615",
    b"18446744073709551616",
    b"-9223372036854775809",
    b"[1E400]",
    b"1e5",
    b"1.0",
    b"-0",
    b"-0.0",
    b"0.1e1",
    b"[NaN]",
    b"[nan]",
    b"-Infinity",
    b"\xef\xbb\xbf{}",
    b"{} ",
    b" {}",
    b"{}\x00",
    b'"\\ud800"',
    b'"\\udc00\\ud800"',
    b'"\\ud83d\\ude00"',
    b'"\xed\xa0\x80"',
    b'"\x7f"',
    b'"\t"',
    b"[1,]",
    b"",
    b"\n",
    b"{",
    b"[" * 254 + b"]" * 254,
    b"[" * 255 + b"]" * 255,
    b"[" * 2000 + b"]" * 2000,
    b'{"a":' * 254 + b"1" + b"}" * 254,
    b'{"a":' * 255 + b"1" + b"}" * 255,
    b"1" * 4300,
    b"1" * 4301,
    b'{"a":NaN,"a":1}',
    b'{"a":1,"a":1,}',
    b'{"__proto__":1,"":2,"":3}',
    "\u2028\u00e9".encode(),
]


@pytest.mark.parametrize("data", HOSTILE)
def test_both_readers_agree_on_hostile_bytes(data: bytes) -> None:
    assert outcome(parse, data) == outcome(parse_strict, data)


def test_the_hostile_list_is_mixed() -> None:
    kinds = {outcome(parse_strict, data)[1] if outcome(parse_strict, data)[0] == "fault" else "" for data in HOSTILE}
    assert kinds == {"", "p_json_invalid", "p_json_number", "p_json_duplicate_key"}


def test_depth_is_counted_alike_by_both() -> None:
    """The fast writer goes 254 deep and no deeper; the strict reader's limit is the same."""
    deep = b"[" * LIMITS.max_depth + b"]" * LIMITS.max_depth
    assert orjson.dumps(orjson.loads(deep)) == deep
    assert outcome(parse, deep)[0] == "value"
    assert outcome(parse, b"[" + deep + b"]") == ("fault", "p_json_invalid")
    # Brackets inside strings are not depth.
    assert outcome(parse, json.dumps("[" * 1000).encode())[0] == "value"
    assert outcome(parse_strict, json.dumps(['"[\\' * 1000] * 300).encode())[0] == "value"


@given(st.binary(max_size=60))
@example(b'"\\')
@example(b'[{"[[":[]}]')
def test_depth_by_runs_is_depth_by_bytes(data: bytes) -> None:
    deepest = depth = 0
    in_string = escaped = False
    for byte in data:
        if in_string:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                in_string = False
        elif byte == 0x22:
            in_string = True
        elif byte in b"[{":
            depth += 1
            deepest = max(deepest, depth)
        elif byte in b"]}":
            depth -= 1
    assert max_depth(data, 1000) == deepest
    assert max_depth(data, 2) == min(deepest, 3)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.integers(min_value=2**63 - 2, max_value=2**64 + 2)
    | st.floats(allow_nan=True)
    | st.text(alphabet=st.characters(), max_size=6)
    | st.sampled_from([":", '":', '\\":', "\u0000", "\ud800", "a"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None)
@given(VALUES, st.sampled_from([None, 1, 2]), st.booleans(), st.booleans(), st.sampled_from(["", "\n", " ", "\n\n"]))
def test_both_readers_agree_on_written_values(
    value: Any, indent: int | None, escaped: bool, compact: bool, end: str
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escaped, separators=(",", ":") if compact else None) + end
    data = text.encode("utf-8", "surrogatepass")
    assert outcome(parse, data) == outcome(parse_strict, data)


@settings(max_examples=300, deadline=None)
@given(st.integers(min_value=0, max_value=2**40))
def test_both_readers_agree_on_spoilt_records(seed: int) -> None:
    chance = random.Random(seed)
    data = chance.choice(list(Draft().launched().records().values()))
    if chance.random() < 0.5:
        data = json.dumps(json.loads(data), separators=(",", ":")).encode()
    for _ in range(chance.choice([1, 1, 2, 3])):
        data = spoil(data, chance)
    assert outcome(parse, data) == outcome(parse_strict, data)


@pytest.mark.parametrize("kind", list(Draft().values))
def test_published_and_own_layouts_take_the_fast_way(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from troth.core.canonical import record_bytes

    data = Draft().launched().records()
    name = {"launch_receipt": "launch-receipt"}.get(kind, kind)
    own = record_bytes(json.loads(data[f"{name}.json"]))
    expected = json.loads(own)

    def forbidden(data: bytes, prefix: str) -> Any:
        raise AssertionError("the strict reader was asked")

    monkeypatch.setattr(strict, "parse_strict", forbidden)
    assert parse(data[f"{name}.json"], kind) == expected
    assert parse(own, kind) == expected
    with pytest.raises(AssertionError):
        parse(own.replace(b":", b" :", 1), kind)


def test_a_fault_says_what_was_wrong() -> None:
    with pytest.raises(Broken) as caught:
        parse(b'{"a":1,"a":1}', "tree")
    assert caught.value.code == "tree_json_duplicate_key"
    assert "'a'" in str(caught.value.detail)
