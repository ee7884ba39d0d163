"""Mutation of text by its spans: values, members, names and lines are changed where they stand, without parsing again.

One pass over a seed finds where its tokens stand; each mutation then costs a few slices. That keeps the structure of
JSON, JSON Lines, TOML, YAML and line formats alike, and a million inputs within minutes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

MAX_INPUT: Final = 1 << 18
"""Longest input that is made, in bytes."""

MAX_SPANS: Final = 6000

Span = tuple[int, int]

_TOKEN: Final = re.compile(rb'"(?:[^"\\\n]|\\.)*"|[{}\[\]:,=]|[^\s{}\[\]:,="]+')
_INSIDE: Final = re.compile(rb"[0-9]+|[A-Za-z]+")

WORDS: Final = (
    b"null", b"true", b"false", b"0", b"-0", b"1", b"-1", b"2", b"255", b"256", b"1.0", b"0.5", b"-0.0", b"1e5",
    b"1e400",
    b"-1e400", b"5e-324", b"NaN", b"Infinity", b"-Infinity", b"9007199254740993", b"18446744073709551616",
    b"-9223372036854775809", b"9" * 40, b"9" * 4301, b"01", b"1.", b"0x10", b"1_000", b'""', b'" "', b'"."', b'".."',
    b'"/"', b'"../../x"', b'"a/b"', b'"/etc/x"', b'"\\u0000"', b'"\\ud800"', b'"\\udc00\\ud800"', b'"\xc3\xa9"',
    b'"e\xcc\x81"', b'"\xe2\x80\xae"', b'"\xf0\x9f\x98\x80"', b'"' + b"x" * 300 + b'"', b'"' + b"0" * 64 + b'"',
    b'"2026-01-01T00:00:00Z"', b'"2026-02-30T00:00:00Z"', b'"9999-12-31T23:59:60Z"', b'"*"', b'"$"', b'"\\n"', b"{}",
    b"[]",
    b"[[]]", b"[{}]", b'{"":null}', b'{"a":1,"a":1}', b"'", b"~", b"''", b"|", b">", b"&a", b"*a", b"!!str", b"---",
    b"...",
    b"%", b"$(", b"`", b"<<", b"#", b"\\", b";", b"&&", b"2026-01-01", b"12:30:45",
)  # fmt: skip
"""Values that mean something somewhere, and near misses of them."""

BYTES: Final = (
    b"\x00", b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xe2\x80\xa8", b"\xc2\x85", b"\r", b"\n",
    b"\r\n", b"\t",
    b" ", b'"',
    b"\\", b",", b":", b"{", b"}", b"[", b"]", b"=", b"'", b"\\u0022", b"\x1b[0m", b"\x7f", b"\x0b",
    b"\xf4\x90\x80\x80",
)  # fmt: skip


class Seed(NamedTuple):
    """A base input and where its tokens stand."""

    data: bytes
    values: list[Span]
    """Whole values: tokens, and containers from bracket to bracket."""
    members: list[Span]
    """Members of an object with their name, and elements of an array."""
    names: list[Span]
    lines: list[Span]


def seed_of(data: bytes) -> Seed:
    """Return the base input with its spans; text that is no JSON gives words and lines."""
    values: list[Span] = []
    members: list[Span] = []
    names: list[Span] = []
    stack: list[tuple[int, int]] = []
    begin = -1
    last: Span | None = None
    for match in _TOKEN.finditer(data):
        start, end = match.span()
        first = data[start]
        if first in b"{[":
            stack.append((start, start if begin < 0 else begin))
            begin = -1
        elif first in b"}]":
            if stack:
                opened, of = stack.pop()
                values.append((opened, end))
                members.append((of, end))
            begin = -1
        elif first in b":=":
            if last is not None and values and values[-1] == last:
                names.append(values.pop())
                if members and members[-1][1] == last[1]:
                    members.pop()
                begin = last[0]
        elif first == 0x2C:
            begin = -1
        else:
            last = (start, end)
            values.append(last)
            members.append((start if begin < 0 else begin, end))
            begin = -1
        if len(values) > MAX_SPANS:
            break
    lines, place = [], 0
    for line in data.splitlines(keepends=True)[:MAX_SPANS]:
        lines.append((place, place + len(line)))
        place += len(line)
    return Seed(
        data, values or [(0, len(data))], members or [(0, len(data))], names or values or [(0, 0)], lines or [(0, 0)]
    )


class Mutator:
    """Makes inputs from a pool of seeds; the same chance makes the same inputs.

    Args:
        chance: where every choice comes from.
        pool: the seeds; the caller may add to it.
        good: those of them that were accepted: every other input begins with one, so that it gets past the door.
        words: what this reader's grammar knows besides, as text.
    """

    def __init__(self, chance: random.Random, pool: list[Seed], good: list[Seed], words: Sequence[bytes] = ()) -> None:
        self._random = chance.random
        self._pool = pool
        self._good = good
        self._words = (*WORDS, *words)

    def _below(self, number: int) -> int:
        return int(self._random() * number)

    def make(self) -> bytes:
        """Return one input: a seed with one to four changes."""
        pool = self._good if self._good and self._random() < 0.5 else self._pool
        seed = pool[self._below(len(pool))]
        changes = (1, 1, 1, 1, 2, 2, 3, 4)[self._below(8)]
        if changes == 1:
            return self._changed(seed.data, *self._edit(seed))
        # From the right to the left, so that a place stays where it was.
        edits = sorted((self._edit(seed) for _ in range(changes)), key=lambda edit: edit[:2], reverse=True)
        data, limit = seed.data, len(seed.data)
        for start, end, new in edits:
            if end <= limit:
                data = self._changed(data, start, end, new)
                limit = start
        return data

    @staticmethod
    def _changed(data: bytes, start: int, end: int, new: bytes) -> bytes:
        made = data[:start] + new + data[end:]
        return made if len(made) <= MAX_INPUT else made[:MAX_INPUT]

    def _edit(self, seed: Seed) -> tuple[int, int, bytes]:
        move = self._below(20)
        if move < 9:
            return self._value(seed, move)
        if move < 13:
            return self._member(seed, move)
        if move < 16:
            return self._line(seed, move)
        return self._raw(seed, move)

    def _value(self, seed: Seed, move: int) -> tuple[int, int, bytes]:
        data, values = seed.data, seed.values
        start, end = values[self._below(len(values))]
        if move < 2:
            return start, end, self._words[self._below(len(self._words))]
        if move < 4:
            other = seed if move == 2 else self._pool[self._below(len(self._pool))]
            begin, stop = other.values[self._below(len(other.values))]
            return start, end, other.data[begin:stop]
        if move == 4 and self._below(4) == 0:
            depth = (1, 2, 40, 110, 260, 1100, 20_000)[self._below(7)]
            left, right = (b"[", b"]") if self._below(2) else (b'{"a":', b"}")
            return start, end, left * depth + data[start:end] + right * depth
        # Inside of a token: a number moves by one, a letter changes, something stands in between.
        old = data[start:end]
        cut = self._below(len(old) + 1)
        found = _INSIDE.search(old, cut) or _INSIDE.search(old)
        if found is None or move == 4:
            return start + cut, start + cut, BYTES[self._below(len(BYTES))]
        place, text = start + found.start(), found[0]
        if text.isdigit() and len(text) < 30:
            return place, start + found.end(), b"%d" % max(0, int(text) + (-1, 1, 1, 10, 1000)[self._below(5)])
        if move == 5:
            return place, start + found.end(), text.swapcase()
        if move == 6:
            return place, start + found.end(), text[: self._below(len(text))]
        if move == 7:
            word = self._words[self._below(len(self._words))]
            return place, start + found.end(), word.strip(b'"')
        return place, place + 1, bytes((33 + self._below(94),))

    def _member(self, seed: Seed, move: int) -> tuple[int, int, bytes]:
        data = seed.data
        start, end = seed.members[self._below(len(seed.members))]
        if move == 9:  # taken away, with one comma
            after, before = end, start
            while data[after : after + 1].isspace():
                after += 1
            if data[after : after + 1] == b",":
                return start, after + 1, b""
            while data[before - 1 : before].isspace():
                before -= 1
            return (before - 1 if data[before - 1 : before] == b"," else start), end, b""
        if move == 10:  # twice
            return end, end, b"," + data[start:end]
        if move == 11:  # another beside it
            other = self._pool[self._below(len(self._pool))]
            begin, stop = other.members[self._below(len(other.members))]
            return end, end, b"," + other.data[begin:stop]
        start, end = seed.names[self._below(len(seed.names))]
        begin, stop = seed.names[self._below(len(seed.names))]
        return start, end, data[begin:stop]

    def _line(self, seed: Seed, move: int) -> tuple[int, int, bytes]:
        data, lines = seed.data, seed.lines
        start, end = lines[self._below(len(lines))]
        if move == 13:
            return start, end, b""
        if move == 14:
            return end, end, data[start:end] * (1, 1, 2, 50)[self._below(4)]
        other = self._pool[self._below(len(self._pool))]
        begin, stop = other.lines[self._below(len(other.lines))]
        return end, end, other.data[begin:stop]

    def _raw(self, seed: Seed, move: int) -> tuple[int, int, bytes]:
        size = len(seed.data)
        cut = self._below(size + 1)
        if move == 16:
            return cut, cut, BYTES[self._below(len(BYTES))]
        length = (1, 1, 2, 8, 64)[self._below(5)]
        if move == 17:
            return cut, min(size, cut + length), b""
        if move == 18:
            return cut, min(size, cut + 1), bytes((self._below(256),))
        if self._below(3) == 0:
            return cut, size, b""
        return cut, cut, seed.data[cut : cut + length] * (1, 1, 3, 200)[self._below(4)]
