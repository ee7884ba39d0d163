"""The quick path gives the reference path's answer or none, whatever the bytes."""

from __future__ import annotations

import importlib.util
import json
import math
import random
import struct
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.building import Ledger, plain_hash, reviewed
from troth.core.canonical import row_bytes
from troth.core.strictjson import JsonFault
from troth.ledger import chain, fastpath
from troth.ledger.chain import ChainReader, verify_lines
from troth.ledger.fastpath import plain, quick, stretch
from troth.ledger.hashing import canonical_row, row_hash
from troth.ledger.rows import parse_row
from troth.ledger.values import unportable

LINK = "0" * 64


def reference(raw: bytes) -> tuple[dict[str, Any], str] | None:
    try:
        value = parse_row(raw)
    except JsonFault:
        return None
    return value, row_hash(value)


def same(left: Any, right: Any) -> bool:
    """Equality that tells 1 from 1.0 from True, and 0.0 from -0.0, and sees the order of members."""
    return repr(left) == repr(right)


def plain_agrees(raw: bytes) -> None:
    """A row taken without looking at its hash is the reference path's to the last member and type."""
    found = plain(raw)
    if found is not None:
        assert repr(parse_row(raw)) == repr(found)


def check(raw: bytes) -> str:
    """Compare both paths on one line; return what happened."""
    expected, found = reference(raw), quick(raw)
    plain_agrees(raw)
    if found is None:
        return "refused" if expected is None else "left to the reference"
    assert expected is not None, raw
    assert found[1] == expected[1], raw
    assert same(found[0], expected[0]), raw
    return "quick"


def wrap(payload: str, more: str = "") -> bytes:
    return (
        f'{{"id":"mem_00000001","op":"capture","prevHash":"{LINK}","payload":{payload},"hash":"{LINK}"{more}}}'
    ).encode("utf-8", "surrogatepass")


NUMBERS = [
    "0", "-0", "1", "-1", "01", "1.", ".5", "+1", "1e5", "1E5", "1e+5", "1e-5", "0.0", "-0.0", "-0e0", "0e99",
    "0.00001", "0.0001", "0.000099999", "0.00012345", "1e15", "1e16", "1e17", "1e22", "1e23", "1.5e300", "1e308",
    "1e309", "1e999", "-1e999", "1e-400", "5e-324", "2.5e-324", "100.0", "0.850", "0.85", "1.0", "1.00",
    "9007199254740991", "9007199254740992", "9007199254740993", "9007199254740993.0", "9223372036854775807",
    "9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615",
    "18446744073709551616", "123456789012345678901234567890", "1" * 400, "9" * 4300, "9" * 4301, "-" + "9" * 4300,
    "123456789012345.6", "1234567890123456.7", "12345678901234567.8", "1000000000000000.0", "10000000000000000.0",
    "0.1", "0.30000000000000004", "1.7976931348623157e308", "1.7976931348623159e308", "NaN", "Infinity", "-Infinity",
    "1e+16", "1e+16 ", "1.2345678901234568e+17", "0x10", "1_000", "1e", "1e+", "--1", "1 2", "0" * 50 + "1",
]  # fmt: skip

TEXTS = [
    '""', '"a"', '"/"', '"\\/"', '"a\\/b/"', '"\\u002f"', '"\x7f"', '"\\u007f"', '"\\u007F"', '"é"',
    '"\\u00e9"', '"\\u00E9"', '"\U0001f600"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\ude00"', '"\\ud83dx"',
    '"\\ud83d\\ud83d\\ude00"', '"\ud83d"', '"\\b\\t\\n\\f\\r"', '"\\u0008\\u0009\\u000a\\u000c\\u000d"',
    '"\\u0000"', '"\\u001f"', '"\\u001F"', '"\x00"', '"\x1f"', '"\t"', '"\\\\"', '"\\"', '"\\\\\\""', '"\\x"',
    '"\\u12"', '"\\u 123"', '"\u2028\u2029"', '"\ufeff"', '"\uffff"', '"e-5"', '"3e-5,"', '"0.00001"', '"[[[["',
    '"{{{{"', '"a\\\\é\\\\"', '"\\"é\\""', '"é\\\\\\"\\\\"', '"\\\\u00e9"', '"\\\\\\u00e9"', "'a'", '"a', 'a"',
]  # fmt: skip

OBJECTS = [
    '{"body":"x","body":"x"}',
    '{"body":"x","body":"y"}',
    '{"body":"x", "body":"x"}',
    '{"body":"x","\\u0062ody":"x"}',
    '{"body":"x","bod\\u0079":"x"}',
    '{"a":{"a":1},"b":{"c":1,"c":1}}',
    '{"a":[{"b":1},{"b":1,"b":2}]}',
    '{"a":[[[{"x":0,"x":0}]]]}',
    '{"":1,"":2}',
    '{"":1}',
    '{"\U0001f600":1,"\\ud83d\\ude00":1}',
    '{"\ufb01":1,"\U0001f600":2,"\uffff":3,"z":4}',
    '{"a/b":1,"a\\/b":1}',
    '{"a/b":1,"a":2,"a.b":3}',
    '{"a" :1}',
    '{"a":1 }',
    '{"a":1,}',
    '{"a":1,,"b":2}',
    "{a:1}",
    '{"a":1}\u00a0',
    '{"a":\u00a01}',
    '{"hash":"inner","prevHash":"inner","hash":"inner"}',
    '{"hash":"inner","prevHash":"inner"}',
    "[1,2,]",
    "[,1]",
    "[]",
    "{}",
    "null",
    "true",
    "True",
    "tru",
    "//",
    "/**/1",
    "[" * 98 + "]" * 98,
    "[" * 99 + "]" * 99,
    "[" * 100 + "]" * 100,
    "[" * 101 + "]" * 101,
    "[" * 300 + "]" * 300,
    "[" * 2000 + "]" * 2000,
    '{"a":' * 99 + "1" + "}" * 99,
    '{"a":' * 100 + "1" + "}" * 100,
    "[" + ",".join(["[]"] * 150) + "]",
]


@pytest.mark.parametrize("literal", [*NUMBERS, *TEXTS, *OBJECTS])
def test_every_hostile_literal(literal: str) -> None:
    for payload in (literal, f'{{"m":{literal}}}', f"[{literal}]", f'{{"m":[0,{literal},{{"n":{literal}}}]}}'):
        raw = wrap(payload)
        check(raw)
        check(wrap("1", f',"x_own":{payload}'))
        assert_block_agrees(raw)


def assert_block_agrees(raw: bytes) -> None:
    """A line alone in a block: the block path may take it only as the reference would."""
    assert stretch(raw, False) is None, "its hash is wrong"
    expected, hole = reference(raw), f'"hash":"{LINK}"'.encode()
    if expected is None or raw.count(hole) != 1:
        return
    good = raw.replace(hole, f'"hash":"{expected[1]}"'.encode())
    found = stretch(good, True)
    if found is not None:
        assert found.hashes == [expected[1]]
        assert same(found.values[0], parse_row(good))
        assert verify_lines(good + b"\n").verified == 1


def test_repeated_members_never_pass() -> None:
    """Everywhere in a real row, with any spacing and any spelling of the name."""
    raw = json.dumps(reviewed().rows[3], separators=(",", ":"), ensure_ascii=False)
    value = json.loads(raw)
    tried = 0
    decoder = json.JSONDecoder()
    for position, char in enumerate(raw):
        if char != "{" or not raw.startswith('"', position + 1):
            continue
        inner, end = decoder.raw_decode(raw, position)
        for name, member in inner.items():
            shown = json.dumps(member, separators=(",", ":"), ensure_ascii=False)
            for spelled in (json.dumps(name), json.dumps(name, ensure_ascii=False), _all_escaped(name)):
                for doubled in (f",{spelled}:{shown}", f" , {spelled} : {shown}", f",\t{spelled}:0"):
                    hostile = (raw[: end - 1] + doubled + raw[end - 1 :]).encode()
                    assert json.loads(hostile), "still JSON for a lenient reader"
                    assert quick(hostile) is None
                    assert stretch(hostile, False) is None
                    assert reference(hostile) is None
                    assert [fault.fault for fault in verify_lines(hostile + b"\n").faults] == ["malformed"]
                    tried += 1
    assert tried > 200
    assert value["hash"] == row_hash(value)


def _all_escaped(name: str) -> str:
    units = name.encode("utf-16-be")
    return '"' + "".join(f"\\u{unit:04X}" for (unit,) in struct.iter_unpack(">H", units)) + '"'


scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.integers(-9, 9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e-3, 1e-3),
    st.floats(1e14, 1e18),
    st.text(max_size=12),
    st.text(st.sampled_from('\\"/\u007fé\U0001f600\ufb01a \n\x00e-0.5[{'), max_size=12),
)
names = st.one_of(
    st.text(max_size=5), st.sampled_from(["a", "b", "hash", "prevHash", "id", "a/b", "\ufb01", "\U0001f600", ""])
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=4), max_leaves=14
)


class Writer:
    """Writes JSON in odd but mostly legal ways, and sometimes illegally."""

    def __init__(self, random: random.Random, plain: float) -> None:
        self.random = random
        self.plain = plain

    def odd(self) -> bool:
        return self.random.random() > self.plain

    def space(self) -> str:
        return self.random.choice([" ", "\t", "\r", "  ", "\u00a0", ""]) if self.odd() else ""

    def text(self, text: str) -> str:
        if not self.odd():
            return orjson.dumps(text).decode() if text.isprintable() else json.dumps(text, ensure_ascii=False)
        out = []
        for char in text:
            kind = self.random.randrange(4)
            if kind == 0:
                out.append(_all_escaped(char)[1:-1])
            elif kind == 1 and char == "/":
                out.append("\\/")
            elif kind == 2 and self.odd():
                out.append(char)  # may be illegal
            else:
                out.append(json.dumps(char)[1:-1])
        return f'"{"".join(out)}"'

    def number(self, value: float) -> str:
        if not self.odd():
            return repr(value)
        forms = [repr(value), f"{value}0", f"{value}e0", f"{value}E+0", "-0", "1e-7", "0.00001", "1e400", "-0.0"]
        if math.isfinite(value):
            forms += [
                f"{value:.20f}" if abs(value) < 1e30 else repr(value),
                f"{value:e}" if abs(value) < 1e300 else "0",
            ]
        return self.random.choice(forms)

    def write(self, value: Any) -> str:
        space = self.space
        if value is None or isinstance(value, bool):
            return json.dumps(value)
        if isinstance(value, int | float):
            return self.number(value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return f"[{space()}{','.join(space() + self.write(item) + space() for item in value)}]"
        members = [
            f"{space()}{self.text(name)}{space()}:{space()}{self.write(item)}{space()}" for name, item in value.items()
        ]
        if members and self.random.random() > 0.97:
            members.append(self.random.choice(members))
        return "{" + ",".join(members) + "}"


OUTCOMES: Counter[str] = Counter()


@settings(max_examples=500, deadline=None)
@given(values, values, st.randoms(use_true_random=False), st.sampled_from([1.0, 0.98, 0.7]))
def test_differential_over_hostile_json(payload: Any, own: Any, rng: random.Random, plain: float) -> None:
    writer = Writer(rng, plain)
    row = {"id": "mem_1", "hash": LINK, "op": "capture", "prevHash": LINK, "payload": payload, "x_own": own}
    raw = writer.write(row).encode("utf-8", "surrogatepass")
    OUTCOMES[check(raw)] += 1
    assert_block_agrees(raw)


def test_differential_is_not_vacuous() -> None:
    print(dict(OUTCOMES))
    if OUTCOMES:  # the test before may have been deselected
        for outcome in ("quick", "refused", "left to the reference"):
            assert OUTCOMES[outcome] > 0.05 * OUTCOMES.total(), OUTCOMES


# Classes of hostile JSON, each written on its own, so that none can hide behind another -----------------------------

_ESCAPES = [r"\"", r"\\\\", r"\/", r"\b", r"\f", r"\n", r"\r", r"\t"]
_digits = st.text("0123456789", min_size=1, max_size=12)
_short = st.text(st.characters(codec="utf-8", exclude_characters='"\\', min_codepoint=0x20), max_size=6)


def _unit(code: int, upper: bool) -> str:
    return f"\\u{code:04X}" if upper else f"\\u{code:04x}"


def _nested(depth: int, shape: int) -> str:
    opening, closing = [("[", "]"), ('{"a":', "}"), ('[{"a":', "}]")][shape]
    return opening * depth + "1" + closing * depth


HOSTILE: dict[str, st.SearchStrategy[str]] = {
    "floats": st.floats(allow_nan=False, allow_infinity=False).map(repr)
    | st.builds("{}.{}".format, st.integers(-(10**6), 10**6), _digits),
    "exponents": st.builds(
        "{}{}{}{}{}".format,
        st.integers(-99, 99),
        st.just("") | _digits.map(".{}".format),
        st.sampled_from("eE"),
        st.sampled_from(["", "+", "-"]),
        st.integers(0, 330),
    )
    | st.floats(1e16, 1e308).map(repr),
    "minus zero": st.sampled_from(["-0", "-0.0", "-0e0", "-0E+7", "-0.000", "0", "0.0", "-0.00001"]),
    "big integers": st.integers(-(10**40), 10**40).map(str)
    | st.builds(
        lambda base, near: str(base + near), st.sampled_from([2**53, 2**63, -(2**63), 2**64]), st.integers(-2, 2)
    ),
    "surrogates": st.builds(
        lambda text, units, upper: f'"{text}{"".join(_unit(code, upper) for code in units)}"',
        _short,
        st.lists(st.integers(0xD7F0, 0xE00F) | st.sampled_from([0xD800, 0xDC00, 0xD83D, 0xDE00]), max_size=4),
        st.booleans(),
    )
    | st.characters(min_codepoint=0x10000).map(lambda char: f'"{char}"'),
    "0x7f": st.builds('"{}{}{}"'.format, _short, st.sampled_from(["\x7f", r"\u007f", r"\u007F", "~"]), _short),
    "nesting": st.builds(_nested, st.integers(1, 55) | st.integers(94, 103), st.integers(0, 2)),
    "duplicates": st.builds(
        lambda one, other, apart: f'{{"{one}":1{apart},"{other}":2}}',
        st.sampled_from(["a", r"\u0061", "b", "a/", r"a\/", "\u00e9", r"\u00e9"]),
        st.sampled_from(["a", r"\u0061", "b", "a/", r"a\/", "\u00e9", r"\u00e9"]),
        st.sampled_from(["", ',"c":[{"a":1}]', ',"c":"a"']),
    ),
    "escapes": st.lists(
        st.sampled_from(_ESCAPES) | st.builds(_unit, st.integers(0, 0xFF), st.booleans()) | _short, max_size=5
    ).map(lambda parts: f'"{"".join(parts)}"'),
}
TAKEN: dict[str, Counter[str]] = {name: Counter() for name in HOSTILE}


@pytest.mark.parametrize("kind", HOSTILE)
def test_each_class_of_hostile_json(kind: str) -> None:
    """The quick path agrees or steps aside; what it takes and what it leaves are both there, or this proves nothing."""

    @settings(max_examples=250, deadline=None, database=None)
    @given(HOSTILE[kind], st.integers(0, 2))
    def agree(literal: str, where: int) -> None:
        payload = [literal, f'{{"m":{literal}}}', f'{{"m":[0,{literal}]}}'][where]
        raw = wrap('{"a":1}', f',"x_own":{payload}')
        TAKEN[kind][check(raw)] += 1
        assert_block_agrees(raw)

    agree()
    counted = TAKEN[kind]
    print(f"{kind}: {dict(counted)}")
    assert counted["quick"] > 0.03 * counted.total(), f"the quick path always steps aside: {counted}"
    assert counted["quick"] < counted.total(), f"nothing hostile was made: {counted}"


@settings(max_examples=600, deadline=None)
@given(st.binary(max_size=60) | st.text('{}[]":,\\u0123456789abcdefE+-. \t\ntrulsn', max_size=60).map(str.encode))
def test_arbitrary_bytes(raw: bytes) -> None:
    check(raw)
    check(wrap("0", ",").replace(b",}", b"," + raw + b"}"))


@settings(max_examples=400, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_is_written_as_the_reference_writes_it(number: float) -> None:
    """Also a guard against a serialiser that writes another shortest form where we believe it does not."""
    raw = wrap(orjson.dumps(number).decode())
    found = quick(raw)
    if found is None:
        assert fastpath._tiny_fixed(raw) or fastpath._tiny_scientific(raw)
    else:
        assert found[1] == row_hash(parse_row(raw))


def test_many_doubles() -> None:
    source = random.Random(7)
    for _ in range(60_000):
        number = struct.unpack("<d", source.randbytes(8))[0]
        if math.isfinite(number):
            ours, theirs = orjson.dumps(number), json.dumps(number).encode()
            assert ours == theirs or fastpath._tiny_fixed(ours) or fastpath._tiny_scientific(ours)


@settings(max_examples=300, deadline=None)
@given(st.text())
def test_escaping_whole_texts(text: str) -> None:
    value = {"k" + text: [text, {"\\": text}]}
    plain = json.dumps(value, sort_keys=True, separators=(",", ":"))
    assert fastpath._escaped(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).decode() == plain


def test_usual_rows_are_read_plainly() -> None:
    rows = reviewed().data.splitlines()
    assert [plain(row) for row in rows] == [parse_row(row) for row in rows]
    assert plain(b'{"id":"mem_1","hash":"","prevHash":""}') is not None  # of version 1: no hash is looked at
    assert plain(b'{"id":"mem_1","hash":"x","prevHash":""}') is None
    assert plain(b'["mem_1"]') is None


def test_usual_rows_go_the_quick_way() -> None:
    assert fastpath.QUICK, "the locked orjson is one that the quick path knows"
    for raw in reviewed().data.splitlines():
        assert quick(raw) is not None
    assert stretch(reviewed().data[:-1], True) is not None


def _broken(change: str) -> Any:
    def dumps(value: Any, option: int | None = None) -> bytes:
        out = orjson.dumps(value, option=option)
        match change:
            case "unsorted":
                return orjson.dumps(value)
            case "exponent without plus":
                return out.replace(b"e+", b"e")
            case "slash escaped":
                return out.replace(b"/", b"\\/")
            case "uppercase escapes":
                return out.replace(b"\\u001f", b"\\u001F")
            case "spaces":
                return out.replace(b":", b": ")
            case "utf-16 order":
                if option:
                    units = (
                        sorted(value, key=lambda name: name.encode("utf-16-be")) if isinstance(value, dict) else None
                    )
                    return out if units is None else orjson.dumps({name: value[name] for name in units})
                return out
            case "tiny numbers in full":
                return out.replace(b"1e-7", b"0.0001").replace(b"1e-6", b"0.0001")
            case "short doubles":
                return out.replace(b"9007199254740992.0", b"9007199254740990.0")
        raise AssertionError(change)

    return dumps


@pytest.mark.parametrize(
    "change",
    [
        "unsorted",
        "exponent without plus",
        "slash escaped",
        "uppercase escapes",
        "spaces",
        "utf-16 order",
        "tiny numbers in full",
        "short doubles",
    ],
)
def test_another_serialiser_is_noticed(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fastpath._holds()
    monkeypatch.setattr(fastpath, "_dumps", _broken(change))
    assert not fastpath._trusted()


@pytest.mark.parametrize("accepted", [b'{"a":1,"a":1}', b"18446744073709551616", b"NaN", b'"\\ud800"'])
def test_a_lenient_parser_is_noticed(accepted: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def survives(raw: bytes) -> bool:
        return raw == accepted

    monkeypatch.setattr(fastpath, "_survives", survives)
    assert not fastpath._trusted()


def test_a_raising_serialiser_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def dumps(*_: Any, **__: Any) -> bytes:
        raise TypeError("no")

    monkeypatch.setattr(fastpath, "_dumps", dumps)
    assert not fastpath._trusted()


@pytest.mark.parametrize("changed", ["loads", "dumps"])
def test_a_build_that_behaves_otherwise_disables_the_quick_path_at_import(
    changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module as it is imported beside another build of the library: everything goes the reference path."""
    dumps, loads = orjson.dumps, orjson.loads

    def other_dumps(value: Any, default: Any = None, option: int | None = None) -> bytes:
        return dumps(value, default, option).replace(b"e-", b"E-")

    def other_loads(raw: bytes) -> Any:
        return loads(raw.replace("\uffff".encode(), b"?"))

    monkeypatch.setattr(orjson, changed, other_loads if changed == "loads" else other_dumps)
    spec = importlib.util.find_spec("troth.ledger.fastpath")
    assert spec is not None
    assert spec.loader is not None
    other = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other)
    assert not other.QUICK
    raw = reviewed().data.splitlines()[0]
    assert other.quick(raw) is None
    assert other.plain(raw) is None
    assert other.stretch(raw, True) is None
    assert other.sealed(parse_row(raw)) is None
    assert not other.portable(1)
    assert quick(raw) is not None, "the one in use is not touched"


# What a writer makes -----------------------------------------------------------------------------------------------


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


def both_ways(data: bytes, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    quickly = verify_lines(data)
    with monkeypatch.context() as patch:
        patch.setattr(chain, "quick", fastpath._never)
        patch.setattr(chain, "stretch", fastpath._never)
        slowly = verify_lines(data)
    return quickly, slowly


@settings(max_examples=250, deadline=None)
@given(st.data())
def test_whole_ledgers_verify_alike_without_the_quick_path(data: st.DataObject) -> None:
    ledger = Ledger()
    rng = data.draw(st.randoms(use_true_random=False))
    for _ in range(data.draw(st.integers(0, 8))):
        ledger.add("capture", meta=data.draw(values))
    out = bytearray(ledger.data)
    for _ in range(data.draw(st.integers(0, 3))):
        if not out:
            break
        position = rng.randrange(len(out))
        match rng.randrange(5):
            case 0:
                out[position] = rng.randrange(256)
            case 1:
                del out[position]
            case 2:
                out.insert(position, rng.choice(b' \n\r\t"0a\xff'))
            case 3:
                pieces = bytes(out).splitlines(keepends=True)
                piece = rng.randrange(len(pieces))
                out[:] = b"".join(pieces[:piece] + pieces[piece + 1 :])
            case 4:
                pieces = bytes(out).splitlines(keepends=True)
                piece = rng.choice(pieces)
                pieces.insert(rng.randrange(len(pieces)), piece)
                out[:] = b"".join(pieces)
    monkeypatch = pytest.MonkeyPatch()
    quickly, slowly = both_ways(bytes(out), monkeypatch)
    assert quickly == slowly


def test_line_by_line_and_in_blocks_alike() -> None:
    ledger = Ledger()
    for number in range(300):
        ledger.add("capture", body="é" * (number % 3) + "x" * number)
    ledger.put({"id": "unhashed", "op": "capture", "payload": {}}, hashed=False)
    ledger.add("capture", id=ledger.rows[0]["id"])
    data = ledger.data
    reader = ChainReader()
    for raw in data.split(b"\n")[:-1]:
        reader.feed(raw)
    assert reader.finish() == verify_lines(data)
    assert [fault.fault for fault in reader.finish().faults] == ["unhashed_after_cutover", "duplicate_id"]


def test_the_canonical_bytes_are_the_published_algorithm() -> None:
    for row in reviewed().rows:
        assert row["hash"] == plain_hash(row) == row_hash(row)
        assert canonical_row(row).isascii()
