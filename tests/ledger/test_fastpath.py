"""The quick path gives the reference path's answer or none, whatever the bytes."""

from __future__ import annotations

import importlib.util
import json
import math
import random
import struct
from collections import Counter
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.building import Ledger, plain_hash, reviewed
from ledger.hostile import HOSTILE, LINK, NUMBERS, OBJECTS, TEXTS, Writer, all_escaped, same, values, wrap
from troth.core.strictjson import JsonFault
from troth.ledger import chain, fastpath
from troth.ledger.chain import ChainReader, verify_lines
from troth.ledger.fastpath import plain, quick, stretch
from troth.ledger.hashing import canonical_row, row_hash
from troth.ledger.rows import parse_row


def reference(raw: bytes) -> tuple[dict[str, Any], str] | None:
    try:
        value = parse_row(raw)
    except JsonFault:
        return None
    return value, row_hash(value)


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
            for spelled in (json.dumps(name), json.dumps(name, ensure_ascii=False), all_escaped(name)):
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


# A library that is not as it was --------------------------------------------------------------------------------------


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


# Whole ledgers -----------------------------------------------------------------------------------------------------


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
