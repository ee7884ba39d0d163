"""Every fault and warning of the verifier, its policies and its counting (ledger spec §4, §6, §16)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.building import ZERO, Ledger, head_of, line, lines, plain_hash, reviewed, verify_and_replay
from troth.ledger.chain import BLOCK_BYTES, ChainReader, Verification, split_lines, verify_lines
from troth.ledger.codes import FAULTS, WARNINGS
from troth.ledger.rows import MAX_ROW_BYTES
from troth.ledger.seen import SeenDigests, compact_id

PADDED = Ledger()
for _ in range(3):
    PADDED.add("capture")


def faults(found: Verification) -> list[tuple[int | None, str]]:
    return [(fault.line, fault.fault) for fault in found.faults]


def warnings(found: Verification) -> list[tuple[int | None, str]]:
    return [(warning.line, warning.warning) for warning in found.warnings]


def pieces(ledger: Ledger) -> list[bytes]:
    return [line(row) for row in ledger.rows]


def relinked(row: dict[str, Any], link: Any) -> dict[str, Any]:
    return {**row, "prevHash": link}  # the hash does not cover the link


def test_the_empty_ledger() -> None:
    found = verify_lines(b"")
    assert found.ok
    assert found.summary() == "0/0 verified"
    assert found.head == ZERO
    assert found.last_hash == ZERO
    assert found.warnings == ()


def test_a_good_ledger() -> None:
    ledger = reviewed()
    found = verify_lines(ledger.data)
    assert found.ok
    assert found.warnings == ()
    assert found.summary() == "6/6 verified"
    assert found.head == head_of(row["hash"] for row in ledger.rows)
    assert found.last_hash == ledger.rows[-1]["hash"]
    assert found.hashed == 6


@pytest.mark.parametrize(
    "bad",
    [
        b"{",
        b"null",
        b"5",
        b"[]",
        b'"text"',
        b"{}x",
        b"{} {}",
        b" ",
        b"\t",
        b"   ",
        b"\x00",
        b"\xff",
        b'{"a":"\xc3"}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":"\xf5\x80\x80\x80"}',
        b'{"a":1,"a":1}',
        b'{"p":{"a":1,"a":2}}',
        b'{"p":[[{"a":1,"\\u0061":2}]]}',
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":1e999}',
        b'{"a":"\\ud800"}',
        b'{"\\udc00":1}',
        b'{"a":' + b"1" * 4301 + b"}",
        b'{"a":' + b"[" * 100 + b"]" * 100 + b"}",
        b"{'a':1}",
        b'{"a":1,}',
        b'{"a":01}',
        b'{"a":"\t"}',
        b"\xef\xbb\xbf{}",
        b"{}\xef\xbb\xbf",
        b"{}\r\r" + b"x",
        b'{"hash":"' + b"a" * 64 + b'"}',
        b'{"hash":"' + b"a" * 64 + b'","prevHash":null}',
        b'{"hash":"' + b"a" * 64 + b'","prevHash":""}',
        b'{"hash":5}',
        b'{"a":"' + b"x" * (MAX_ROW_BYTES - 7) + b'"}',
    ],
    ids=range(37),
)
def test_malformed(bad: bytes) -> None:
    first, second = pieces(PADDED)[:2]
    found = verify_lines(first + bad + b"\n" + second)
    assert faults(found) == [(2, "malformed")]
    assert found.summary() == "2/3 verified"
    # The same bytes at the end without a line feed are a torn write.
    torn = verify_lines(first + bad)
    assert faults(torn) == [(2, "torn_tail")]
    assert torn.torn_tail
    assert torn.summary() == "1/2 verified"
    assert not found.torn_tail


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":"' + b"x" * (MAX_ROW_BYTES - 8) + b'"}',
        b'{"a":' + b"1" * 4300 + b"}",
        b'{"a":' + b"[" * 99 + b"]" * 99 + b"}",
        b'{"a":"\xef\xbb\xbf"}',
        b'{"a":"\\ud83d\\ude00"}',
        b' {"a" : [1e308, -0.0, 5e-400] } ',
        b'{"prevHash":"x"}',
        b'{"hash":null}',
        b'{"hash":"","prevHash":"x"}',
        b"{}\r",
    ],
)
def test_just_within_the_limits(text: bytes) -> None:
    found = verify_lines(text + b"\n", unhashed_prefix=1)
    assert found.ok
    assert found.total == found.unhashed == 1


def test_the_limit_counts_neither_carriage_return_nor_line_feed() -> None:
    row = b'{"a":"' + b"x" * (MAX_ROW_BYTES - 8) + b'"}'
    assert len(row) == MAX_ROW_BYTES
    assert verify_lines(row + b"\r\n").ok
    assert verify_lines(b"\xef\xbb\xbf" + row + b"\r\n").ok
    assert faults(verify_lines(row + b" \n")) == [(1, "malformed")]


def test_an_endless_line_is_malformed_and_the_rest_goes_on() -> None:
    first, second = pieces(PADDED)[:2]
    chunks = [first, *[b"x" * 100_000] * 30, b"y\n", second]
    found = verify_lines(chunks)
    assert faults(found) == [(2, "malformed")]
    assert found.summary() == "2/3 verified"


def test_torn_tail_in_the_middle_of_a_character() -> None:
    data = lines([*PADDED.rows[:2]]) + line({"a": "é"})[:-4]
    found = verify_lines(data)
    assert faults(found) == [(3, "torn_tail")]


def test_an_unterminated_row_is_a_row() -> None:
    found = verify_lines(PADDED.data[:-1])
    assert found.ok
    assert found.summary() == "3/3 verified"
    assert warnings(found) == [(3, "unterminated")]
    assert not found.torn_tail
    bad = {**PADDED.rows[2], "actor": "human:other"}
    assert faults(verify_lines(lines([*PADDED.rows[:2], bad])[:-1])) == [(3, "content_mismatch")]


def test_byte_order_mark() -> None:
    found = verify_lines(b"\xef\xbb\xbf" + PADDED.data)
    assert found.ok
    assert warnings(found) == [(1, "bom")]
    first, second = pieces(PADDED)[:2]
    assert faults(verify_lines(first + b"\xef\xbb\xbf" + second)) == [(2, "malformed")]
    assert faults(verify_lines(b"\xef\xbb\xbf\xef\xbb\xbf" + first)) == [(1, "malformed")]
    assert verify_lines(b"\xef\xbb\xbf").summary() == "0/0 verified"
    assert warnings(verify_lines(b"\xef\xbb\xbf\n")) == [(1, "bom"), (1, "blank_line")]


def test_carriage_returns() -> None:
    found = verify_lines(PADDED.data.replace(b"\n", b"\r\n"))
    assert found.ok
    assert warnings(found) == [(1, "carriage_return"), (2, "carriage_return"), (3, "carriage_return")]
    # One is stripped; what is left of two is white space of JSON.
    assert verify_lines(PADDED.data.replace(b"\n", b"\r\r\n")).ok
    assert warnings(verify_lines(b"\r\n")) == [(1, "carriage_return"), (1, "blank_line")]
    assert faults(verify_lines(b"\r\r\n")) == [(1, "malformed")]


def test_blank_lines_count_as_lines_and_not_as_rows() -> None:
    first, second, third = pieces(PADDED)
    found = verify_lines(b"\n" + first + b"\n\n" + second + third)
    assert found.ok
    assert found.summary() == "3/3 verified"
    assert warnings(found) == [(1, "blank_line"), (3, "blank_line"), (4, "blank_line")]
    changed = line({**PADDED.rows[1], "ts": "x"})
    assert faults(verify_lines(b"\n" + first + b"\n\n" + changed)) == [(5, "content_mismatch")]


def test_duplicate_id() -> None:
    ledger = Ledger()
    ledger.add("capture", id="mem_00000001")
    ledger.add("capture", id="mem_00000002")
    ledger.add("capture", id="mem_00000001")
    found = verify_lines(ledger.data)
    assert faults(found) == [(3, "duplicate_id")]
    assert found.faults[0].id == "mem_00000001"
    assert found.summary() == "2/3 verified"


def test_duplicate_ids_of_any_length_and_of_unhashed_rows() -> None:
    for name in ("m", "m" * 72, "m" * 73, "m" * 5000, "é" * 80):
        ledger = Ledger()
        ledger.put({"id": name, "op": "capture", "payload": {}}, hashed=False)
        ledger.add("capture", id=name)
        ledger.add("capture", id=name + "x")
        ledger.add("capture", id=name)
        assert faults(verify_lines(ledger.data)) == [(2, "duplicate_id"), (4, "duplicate_id")]


def test_content_mismatch_alone_leaves_the_chain_as_stored() -> None:
    rows = [*PADDED.rows]
    rows[1] = {**rows[1], "actor": "human:other"}
    found = verify_lines(lines(rows))
    assert faults(found) == [(2, "content_mismatch")]
    assert found.head == head_of(row["hash"] for row in rows)


def test_missing_ancestor_and_link_mismatch() -> None:
    one, two, three = PADDED.rows
    assert faults(verify_lines(lines([relinked(one, "a" * 64)]))) == [(1, "missing_ancestor")]
    assert faults(verify_lines(lines([one, relinked(two, "a" * 64)]))) == [(2, "missing_ancestor")]
    assert faults(verify_lines(lines([one, relinked(two, ZERO)]))) == [(2, "link_mismatch")]
    assert faults(verify_lines(lines([one, two, relinked(three, one["hash"])]))) == [(3, "link_mismatch")]
    assert faults(verify_lines(lines([one, relinked(two, two["hash"])]))) == [(2, "missing_ancestor")]
    assert faults(verify_lines(lines([one, relinked(two, three["hash"]), three]))) == [(2, "missing_ancestor")]
    assert faults(verify_lines(lines([two, three]))) == [(1, "missing_ancestor")]
    assert faults(verify_lines(lines([one, three]))) == [(2, "missing_ancestor")]
    assert faults(verify_lines(lines([one, three, two]))) == [(2, "missing_ancestor"), (3, "link_mismatch")]


def test_a_malformed_row_has_no_stored_hash() -> None:
    one, two, three = pieces(PADDED)
    broken = two.replace(b'"payload":{', b'"payload":{{')
    assert faults(verify_lines(one + broken + three)) == [(2, "malformed"), (3, "missing_ancestor")]
    assert faults(verify_lines(broken + one)) == [(1, "malformed")]


def test_the_weakness_that_the_head_digest_closes() -> None:
    """Deleting a row and relinking its successor passes every other check."""
    one, _, three = PADDED.rows
    shorter = lines([one, relinked(three, one["hash"])])
    head = verify_lines(PADDED.data).head
    assert verify_lines(shorter).ok
    found = verify_lines(shorter, expect_head=head)
    assert faults(found) == [(None, "head_mismatch")]
    assert found.summary() == "2/2 verified"


def test_expected_heads() -> None:
    heads = [head_of(row["hash"] for row in PADDED.rows[:count]) for count in range(4)]
    assert verify_lines(PADDED.data, expect_head=heads[3]).ok
    assert not verify_lines(PADDED.data, expect_head=heads[2]).ok
    for count in range(4):
        assert verify_lines(PADDED.data, expect_head=heads[count], expect_rows=count).ok
    cut = verify_lines(lines(PADDED.rows[:2]), expect_head=heads[3], expect_rows=3)
    assert faults(cut) == [(None, "head_mismatch")]
    assert "cut: 2 hashed rows where 3" in cut.faults[0].message
    changed = verify_lines(PADDED.data, expect_head=heads[2], expect_rows=3)
    assert faults(changed) == [(None, "head_mismatch")]
    assert "changed" in changed.faults[0].message
    assert faults(verify_lines(b"", expect_head=heads[3])) == [(None, "head_mismatch")]


def test_two_faults_of_one_row_are_told_in_order_and_cost_one_row() -> None:
    one, two, _ = PADDED.rows
    bad = {**two, "id": one["id"], "prevHash": "b" * 64}
    found = verify_lines(lines([one, bad]))
    assert faults(found) == [(2, "duplicate_id"), (2, "content_mismatch"), (2, "missing_ancestor")]
    assert found.summary() == "1/2 verified"


def v1(number: int) -> dict[str, Any]:
    return {"id": f"mem_{number:08d}", "op": "capture", "payload": {"body": "old"}}


def with_prefix(count: int) -> Ledger:
    ledger = Ledger()
    for number in range(count):
        ledger.put(v1(number + 90_000), hashed=False)
    ledger.add("capture")
    ledger.add("capture")
    return ledger


def test_an_unhashed_prefix() -> None:
    data = with_prefix(3).data
    found = verify_lines(data)
    assert found.ok
    assert found.summary() == "2/5 verified, 3 unhashed"
    assert warnings(found) == [(None, "unhashed_prefix")]
    assert verify_lines(data, unhashed_prefix=3).warnings == ()
    for allowed in (0, 2, 4):
        assert faults(verify_lines(data, unhashed_prefix=allowed)) == [(None, "unhashed_count")]
    assert verify_lines(lines([v1(1), v1(2)]), unhashed_prefix=2).ok
    assert faults(verify_lines(PADDED.data, unhashed_prefix=1)) == [(None, "unhashed_count")]


def test_stripping_every_hash_is_noticed_by_the_setting() -> None:
    stripped = [{k: v for k, v in row.items() if k not in ("hash", "prevHash")} for row in PADDED.rows]
    assert faults(verify_lines(lines(stripped), unhashed_prefix=0)) == [(None, "unhashed_count")]


@pytest.mark.parametrize("form", [{}, {"hash": None}, {"hash": ""}, {"hash": "", "prevHash": "a" * 64}])
def test_unhashed_after_cutover(form: dict[str, Any]) -> None:
    one, two, three = PADDED.rows
    found = verify_lines(lines([one, {**v1(77), **form}, two, three]), unhashed_prefix=0)
    # The row behind it is right when it links to the last hashed row, and it does not count towards the prefix.
    assert faults(found) == [(2, "unhashed_after_cutover")]
    assert found.summary() == "3/4 verified"
    assert found.head == head_of(row["hash"] for row in PADDED.rows)


@pytest.mark.parametrize("odd", ["A" * 64, "a" * 63, "x", 5, 5.0, True, [1], {"a": 1}, False, 0, [], "é"])
def test_odd_hashes_are_compared_as_they_stand(odd: Any) -> None:
    one, two, three = PADDED.rows
    wrong = {**one, "hash": odd}
    found = verify_lines(lines([wrong, relinked(two, odd), three]))
    assert faults(found) == [(1, "content_mismatch")]
    found = verify_lines(lines([wrong, two, relinked(three, odd)]))
    assert faults(found) == [(1, "content_mismatch"), (2, "missing_ancestor"), (3, "link_mismatch")]
    found = verify_lines(lines([one, relinked(two, odd)]))
    assert faults(found) == [(2, "missing_ancestor")]


def test_odd_hashes_are_not_confused_with_each_other() -> None:
    one, two, _ = PADDED.rows
    for stored, link in ((1, True), (1, 1.0), ("1", 1), ([1], [1.0]), ("a" * 64, "A" * 64), (0, False)):
        found = verify_lines(lines([{**one, "hash": stored}, relinked(two, link)]))
        assert faults(found) == [(1, "content_mismatch"), (2, "missing_ancestor")]


def test_stored_zeros_are_no_predecessor_to_link_to() -> None:
    one, two, _ = PADDED.rows
    found = verify_lines(lines([{**one, "hash": ZERO}, relinked(two, ZERO)]))
    assert faults(found) == [(1, "content_mismatch"), (2, "link_mismatch")]


@pytest.mark.parametrize(
    "change",
    [
        {"op": "destroy"},
        {"op": None},
        {"op": 5},
        {"id": None},
        {"id": ""},
        {"payload": None},
        {"payload": []},
    ],
)
def test_an_odd_envelope_is_a_warning(change: dict[str, Any]) -> None:
    one = PADDED.rows[0]
    row = {**one, **change}
    row["hash"] = plain_hash(row)
    found = verify_lines(line(row))
    assert found.ok
    assert found.summary() == "1/1 verified"
    assert warnings(found) == [(1, "envelope")]


def test_operations_of_version_1_are_known() -> None:
    ledger = Ledger()
    for op in ("link", "dismiss", "triage"):
        ledger.add(op)
    assert verify_lines(ledger.data).warnings == ()


def test_a_reader_can_go_on_after_it_answered() -> None:
    reader = ChainReader(unhashed_prefix=0)
    seen = []
    for raw in pieces(PADDED):
        row = reader.feed(raw[:-1])
        assert row is not None
        seen.append((row.line, row.id, row.op, row.hash))
        assert reader.finish().verified == len(seen)
    assert seen == [(n, row["id"], "capture", row["hash"]) for n, row in enumerate(PADDED.rows, 1)]
    assert reader.feed(b"", terminated=False) is None
    assert reader.finish() == verify_lines(PADDED.data, unhashed_prefix=0)


@settings(max_examples=120, deadline=None)
@given(st.data())
def test_chunks_make_no_difference(data: st.DataObject) -> None:
    whole = data.draw(
        st.sampled_from(
            [
                reviewed().data,
                with_prefix(2).data[:-1],
                b"\xef\xbb\xbf" + PADDED.data.replace(b"\n", b"\r\n"),
                PADDED.data + b"\n\n{" + b"x" * 300,
                b"\n" * 40,
                b"x" * 50,
            ]
        )
    )
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=12)))
    chunks = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    assert verify_lines(chunks) == verify_lines(whole)
    expected = whole.split(b"\n")
    rest = expected.pop()
    assert list(split_lines(chunks)) == [(piece, True) for piece in expected] + ([(rest, False)] if rest else [])


def test_blocks_larger_than_one_are_joined() -> None:
    ledger = Ledger()
    for number in range(700):
        ledger.add("capture", body="x" * (number % 900))
    assert len(ledger.data) > 4 * BLOCK_BYTES
    found, state = verify_and_replay(ledger.data)
    assert found.summary() == "700/700 verified"
    assert found.head == head_of(row["hash"] for row in ledger.rows)
    assert [signal.line for signal in state.signals.values()] == list(range(1, 701))
    third = head_of(row["hash"] for row in ledger.rows[:233])
    assert verify_lines(ledger.data, expect_head=third, expect_rows=233).ok
    rows = [*ledger.rows]
    rows[500] = {**rows[500], "id": rows[2]["id"]}
    rows[500]["hash"] = plain_hash(rows[500])
    rows[501] = relinked(rows[501], rows[500]["hash"])
    assert faults(verify_lines(lines(rows))) == [(501, "duplicate_id")]
    del rows[300]
    assert faults(verify_lines(lines(rows))) == [(301, "missing_ancestor"), (500, "duplicate_id")]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 400), max_size=1500))
def test_seen_digests_is_a_set(numbers: list[int]) -> None:
    ours, plain = SeenDigests(), set()
    for position, number in enumerate(numbers):
        digest = number.to_bytes(32, "big")
        ours.add(digest)
        plain.add(digest)
        if position % 7 == 0:
            asked = ((number * 31 + position) % 401).to_bytes(32, "big")
            assert (asked in ours) == (asked in plain)
    assert all(((n.to_bytes(32, "big") in ours) == (n.to_bytes(32, "big") in plain)) for n in range(401))


def test_compact_ids_are_never_confused() -> None:
    names = ["m" * n for n in (1, 72, 73, 74, 1000)]
    assert len({compact_id(name) for name in names}) == len(names)


def test_every_name_is_explained_and_reachable() -> None:
    reached: set[str] = set()
    warned: set[str] = set()
    one, two, _ = PADDED.rows
    for data, settings_ in [
        (b"{\n{", {}),
        (lines([one, one, relinked({**two, "ts": "x"}, "b" * 64), v1(1)]), {"unhashed_prefix": 3, "expect_head": ZERO}),
        (b"\xef\xbb\xbf\r\n" + lines([v1(1), {**one, "op": "x"}])[:-1], {}),
    ]:
        found = verify_lines(data, **settings_)
        reached |= {fault.fault for fault in found.faults}
        warned |= {warning.warning for warning in found.warnings}
    assert reached == {name for name in FAULTS if not name.startswith("checkpoint_")}  # those need a checkpoint
    assert warned == {"bom", "carriage_return", "blank_line", "unterminated", "envelope", "unhashed_prefix"}
    assert warned < set(WARNINGS)


def test_the_answer_as_json() -> None:
    answer = verify_lines(b"{").as_json()
    assert json.loads(json.dumps(answer)) == answer
    assert answer["ok"] is False
    assert answer["faults"][0]["fault"] == "torn_tail"
    assert answer["torn_tail"] is True
