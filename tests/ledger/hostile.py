"""Hostile JSON: literals and spellings that any reader of rows must take as the reference does, or not at all."""

from __future__ import annotations

import json
import math
import random
import struct
from typing import Any

import orjson
from hypothesis import strategies as st

LINK = "0" * 64


def same(left: Any, right: Any) -> bool:
    """Equality that tells 1 from 1.0 from True, and 0.0 from -0.0, and sees the order of members."""
    return repr(left) == repr(right)


def wrap(payload: str, more: str = "") -> bytes:
    """Put a literal in the place of a row's payload, and ``more`` behind its last member."""
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


def all_escaped(name: str) -> str:
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
                out.append(all_escaped(char)[1:-1])
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
