"""The document in what a reviewer said (Impasse §9, Extraction)."""

from __future__ import annotations

import json
import random
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth.backends.extraction import balanced, extract
from troth.backends.protocol import MOST_MESSAGE, Failure

REVIEW: dict[str, Any] = {"schema_version": "1.0", "assessment": "approve", "findings": [], "summary": "a } in it {{"}
TEXT = json.dumps(REVIEW).encode()


def failed(message: bytes, **more: Any) -> Failure:
    found = extract(message, **more)
    assert isinstance(found, Failure)
    assert (found.code, found.retryable) == ("invalid_response", True)
    return found


@pytest.mark.parametrize(
    "message",
    [
        TEXT,
        b"\n\t " + TEXT + b"\r\n\n",
        b"```json\n" + TEXT + b"\n```",
        b"```\n" + TEXT + b"```\n",
        b"~~~~ json\n" + TEXT + b"\n~~~~",
        b"Here is my review.\n\n" + TEXT + b"\n\nI hope it helps. {}",
        b"Here it is:\n```json\n" + TEXT + b"\n```\nDone.",
        b"\xef\xbb\xbf" + TEXT,
        b"```json " + TEXT + b" ```",
        b"\xff\xfe broken before " + TEXT + b" and \xff after",
    ],
)
def test_a_document_is_found(message: bytes) -> None:
    assert extract(message) == REVIEW


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (b"", "empty"),
        (b" \n\t ", "empty"),
        (b"```json\n```", "empty"),
        (b"VERDICT: APPROVE", "no JSON object"),
        (b"{", "no JSON object"),
        (TEXT[:-1], "no JSON object"),
        (b'{"summary": "an open string }', "no JSON object"),
        (b"the set {a, b} and " + TEXT, "cannot be read"),
        (b'{"findings": [], "findings": []}', "cannot be read"),
        (b'{"findings": [NaN]}', "cannot be read"),
        (b"[" + TEXT + b"]", "not a reviewer's response"),
        (b"null", "not a reviewer's response"),
        (b'"approve"', "not a reviewer's response"),
        (b'{"verdict": "approve"}', "not a reviewer's response"),
        (b'{"items": [], "reconciliation_id": "r", "outcome": "converged"}', "not a reviewer's response"),
        (b'{"findings": [], "items": []}', "not a reviewer's response"),
        (b'{"finding_id": "F001", "decision": "withdraw"}', "not a reviewer's response"),
        (b"{} " + TEXT, "not a reviewer's response"),
        (b'{"findings": ["\\ud800"]}', "cannot be read"),
    ],
)
def test_what_is_no_response_fails(message: bytes, says: str) -> None:
    assert says in failed(message).message


def test_a_reply_is_wanted_in_a_rebuttal() -> None:
    reply = {"finding_id": "F001", "decision": "withdraw", "position": "gone", "evidence": []}
    assert extract(json.dumps(reply).encode(), "rebuttal") == reply
    assert "not a reviewer's reply" in failed(TEXT, wanted="rebuttal").message


def test_size_excess_is_marked() -> None:
    at_limit = TEXT + b" " * (MOST_MESSAGE - len(TEXT))
    assert extract(at_limit) == REVIEW
    found = failed(at_limit + b" ")
    assert found.oversized
    assert not failed(b"").oversized


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"findings":[', b"[{"])
@pytest.mark.parametrize("depth", [65, 10_000, 190_000])
def test_deep_nesting_fails_and_crashes_nothing(opening: bytes, depth: int) -> None:
    closing = b"".join(b"]" if char == 91 else b"}" for char in reversed(opening) if char in b"[{")
    failed(opening * depth + b"1" + closing * depth)
    failed(opening * depth)
    failed(b"so " + opening * depth + b'"')


def test_nesting_within_the_limit_is_read() -> None:
    value = {**REVIEW, "extensions": json.loads("[" * 60 + "]" * 60)}
    assert extract(json.dumps(value).encode()) == value


@pytest.mark.parametrize(
    "message",
    [
        b"```\n" + b" " * 1_900_000,
        b'{"' + b"\\" * 1_900_000,
        b'"' * 1_999_999,
        b"{" + b'"a' * 900_000,
        b"`" * 1_999_999,
    ],
)
def test_no_text_takes_more_than_one_pass(message: bytes) -> None:
    failed(message)


WORDS = st.text('{}[]"\\`:,\n ab\u00e9\u0000', max_size=30)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(
    value=VALUES,
    before=st.text('abc .:\n`"]}', max_size=20),
    after=st.text(max_size=30),
    indent=st.sampled_from([None, 1]),
)
def test_any_document_is_found_among_prose(value: Any, before: str, after: str, indent: int | None) -> None:
    document = {"findings": value}
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    assert extract((before + text + after).encode("utf-8", "replace")) == document


def plainly_balanced(text: str) -> str | None:
    """Walk the characters one by one: what the expression must find."""
    start = text.find("{")
    if start < 0:
        return None
    depth, inside, skip = 0, False, False
    for place in range(start, len(text)):
        char = text[place]
        if skip:
            skip = False
        elif inside:
            skip, inside = char == "\\", char != '"'
        elif char == '"':
            inside = True
        elif char in "{}":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return text[start : place + 1]
    return None


@settings(max_examples=300, deadline=None)
@given(st.text('{}[]"\\a', max_size=60))
def test_the_balanced_partner_is_the_one_a_plain_walk_finds(text: str) -> None:
    expected = plainly_balanced(text)
    assert balanced(text.encode()) == (None if expected is None else expected.encode())


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_end_in_a_document_or_a_failure(message: bytes) -> None:
    found = extract(message)
    assert isinstance(found, Failure) or {"findings", "assessment"} & set(found)


@pytest.mark.slow
def test_mutated_answers_never_raise(capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(20270)
    tokens = re.findall(rb'"[^"]*"|.', TEXT, re.DOTALL)
    seeds = [TEXT, b"```json\n" + TEXT + b"\n```", b"Here: " + TEXT + b" done"]
    taken = 0
    rounds = 60_000
    for _ in range(rounds):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 4)):
            place = chance.randrange(len(data) + 1)
            match chance.randrange(4):
                case 0:
                    data[place : place + 1] = bytes([chance.randrange(256)])
                case 1:
                    del data[place : place + chance.randint(1, 8)]
                case 2:
                    data[place:place] = chance.choice(tokens)
                case _:
                    data[place:place] = chance.choice([b"{", b"}", b'"', b"\\", b"```", b"\n"])
        found = extract(bytes(data))
        if isinstance(found, dict):
            taken += 1
            assert {"findings", "assessment"} & set(found)
            assert not {"items", "reconciliation_id"} & set(found)
        else:
            assert found.code == "invalid_response"
    with capsys.disabled():
        print(f"\nextraction fuzz: {taken} of {rounds} mutated answers taken ({taken / rounds:.1%})")
    assert 0 < taken < rounds
