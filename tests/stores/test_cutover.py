"""The cutover event: what the first row after unhashed ones says of them, in both stores (ledger spec §6 [D24])."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.genesis_keys import IDENTITY
from stores.test_crash import _calls, _killing, _run, needs_strace
from support.houses import FileHouse, House, Make, copy_into, make, row
from support.ledgers import capture, fresh
from troth.core.canonical import row_bytes
from troth.core.errors import DoesNotHold, Refused
from troth.ledger.chain import verify_lines
from troth.ledger.cutover import Prefix, cutover_of, cutover_payload
from troth.ledger.genesis_event import event_of
from troth.ledger.hashing import row_hash
from troth.ledger.operations import Candidate
from troth.stores.protocol import LedgerStore

__all__ = ["make"]


def v1(number: int, **more: Any) -> bytes:
    """Return a line of version 1."""
    value = {"id": f"mem_old{number:05}", "op": "capture", "ts": "2026-01-01T00:00:00Z", "actor": "human:reviewer"}
    return json.dumps({**value, "payload": {"body": f"é{number}"}, **more}, ensure_ascii=False).encode()


def prefixed(make: Make, lines: list[bytes], *, key: str | None = None) -> House:
    """Return a new ledger of these lines, whose settings permit any prefix."""
    made = make()
    if isinstance(made, FileHouse):
        made.file.with_name("config.yaml").write_text("workspace: w\n")
        if key is not None:
            made.file.with_name("genesis.key").write_text(key)
    copy_into(made, lines)
    return made


def events(store: LedgerStore) -> list[Prefix]:
    return [found for one in store.read().rows if (found := cutover_of(one.value)) is not None]


def test_the_event_stands_right_behind_the_prefix_and_once(make: Make) -> None:
    notes: list[Any] = []
    made = prefixed(make, [v1(1), v1(2)])
    store = made.open(notify=notes.append)
    before = b"".join(store.lines())
    ids = [row(store, "capture"), row(store, "capture"), row(made.open(), "capture")]
    after = b"".join(store.lines())
    assert after.startswith(before)
    rows = list(store.read().rows)
    assert [one.id for one in rows][3:] == ids
    assert cutover_of(rows[2].value) == Prefix(2, hashlib.sha256(before).hexdigest())
    assert (rows[2].value["actor"], rows[2].value["prevHash"]) == ("system:cutover", "0" * 64)
    assert len(events(store)) == 1
    assert [note.code for note in notes] == ["cutover_event"]
    found = store.verify()
    assert (found.ok, found.unhashed, found.verified) == (True, 2, 4)
    assert "cutover_mismatch" not in {warning.warning for warning in found.warnings}
    assert store.verify() == made.open().verify()


def test_without_unhashed_rows_there_is_no_event(make: Make) -> None:
    store = make().open()
    row(store, "capture")
    assert events(store) == []


def test_a_refused_row_brings_no_event(make: Make) -> None:
    store = prefixed(make, [v1(1)]).open()
    with pytest.raises(Refused):
        row(store, "claim", commitment="cmt_00000000")
    assert len(store.read().rows) == 1
    row(store, "capture")
    assert len(events(store)) == 1


def test_both_events_at_once_each_linked_to_the_one_before(tmp_path: Path) -> None:
    key = IDENTITY + "actors: [{id: 'agent:worker', role: r}]\npermissions: {r: [capture]}\n"
    store = prefixed(lambda: FileHouse(tmp_path / "h"), [v1(1)], key=key).open()
    with pytest.raises(Refused) as caught:
        row(store, "capture", "agent:rival")
    assert caught.value.code == "E_PERMISSION_DENIED"
    row(store, "capture")
    rows = [one.value for one in store.read().rows]
    assert cutover_of(rows[1]) is not None
    assert event_of(rows[2]) is not None
    assert len({one["id"] for one in rows}) == len(rows) == 4
    assert store.verify().ok


def test_a_ledger_with_hashed_rows_already_gets_none(tmp_path: Path) -> None:
    store = prefixed(lambda: FileHouse(tmp_path / "h"), [v1(1)]).open()
    one: dict[str, Any] = {**json.loads(v1(2)), "workspace": "w", "prevHash": "0" * 64}
    one["hash"] = row_hash(one)
    with open(store.location, "ab") as file:
        file.write(row_bytes(one) + b"\n")
    row(store, "capture")
    assert events(store) == []
    assert store.verify().ok


def test_a_prefix_that_is_not_the_configured_one_blocks_the_row_and_its_event(tmp_path: Path) -> None:
    made = prefixed(lambda: FileHouse(tmp_path / "h"), [v1(1)])
    settings_file = made.file.with_name("config.yaml")  # type: ignore[attr-defined]  # a house of files
    settings_file.write_text("workspace: w\nunhashed_prefix: 2\n")
    with pytest.raises(DoesNotHold):
        row(made.open(), "capture")
    assert events(made.open()) == []
    settings_file.write_text("workspace: w\nunhashed_prefix: 1\n")
    row(made.open(), "capture")
    assert [found.rows for found in events(made.open())] == [1]


_LINE = st.sampled_from([b"", b"\r", v1(0) + b"\r"]) | st.integers(1, 5).map(v1)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=st.lists(_LINE, max_size=6, unique=True), bom=st.booleans(), ended=st.booleans(), cut=st.integers(1, 70))
def test_the_digest_is_that_of_the_file_before_the_first_hashed_row(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], bom: bool, ended: bool, cut: int
) -> None:
    made = FileHouse(tmp_path_factory.mktemp("cut") / "h")
    made.file.with_name("config.yaml").write_text("workspace: w\n")
    data = (b"\xef\xbb\xbf" if bom else b"") + b"\n".join(lines) + (b"\n" if ended else b"")
    made.file.write_bytes(data)
    rows = sum(1 for line in lines if len(line) > 1)
    store = made.open()
    row(store, "capture")
    after = made.file.read_bytes()
    assert after.startswith(data)
    if not rows:
        assert events(store) == []
        return
    start = after.index(b'{"id":"mem_', len(data))
    assert events(store) == [Prefix(rows, hashlib.sha256(after[:start]).hexdigest())]
    whole = verify_lines(after)
    assert whole == verify_lines(after[at : at + cut] for at in range(0, len(after), cut))
    assert whole.ok
    assert "cutover_mismatch" not in {warning.warning for warning in whole.warnings}


def _warned(data: bytes) -> bool:
    found = verify_lines(data)
    assert found.ok
    return "cutover_mismatch" in {warning.warning for warning in found.warnings}


def test_a_prefix_other_than_the_one_told_is_warned_of(tmp_path: Path) -> None:
    made = prefixed(lambda: FileHouse(tmp_path / "h"), [v1(1), v1(2)])
    row(made.open(), "capture")
    lines = b"".join(made.open().lines()).splitlines(keepends=True)
    assert not _warned(b"".join(lines))
    first, second, *rest = lines
    changed = [
        [second, *rest],
        rest,  # all of it stripped: the event is the first row of the file
        [second, first, *rest],
        [first, second.replace(b"2", b"3"), *rest],
        [first, second, v1(9) + b"\n", *rest],
        [first, second, b"\n", *rest],
        [*rest[:1]],
    ]
    for other in changed:
        assert _warned(b"".join(other))
    # The same row written in other bytes still speaks.
    spelt = rest[0].replace(b'"system:cutover"', b'"\\u0073ystem:cutover"')
    assert _warned(b"".join([first, spelt, *rest[1:]]))
    assert not _warned(b"".join([first, second, spelt, *rest[1:]]))


@pytest.mark.parametrize(
    "change",
    [
        {"actor": "human:reviewer"}, {"op": "annotate"}, {"kind": "note"}, {"meta": {}}, {"meta": {"cutover": 1}},
        {"rows": "1"}, {"rows": True}, {"rows": -1}, {"sha256": "A" * 64}, {"sha256": None},
    ],
)  # fmt: skip
def test_what_is_no_event(change: dict[str, Any]) -> None:
    payload = cutover_payload(Prefix(1, "a" * 64))
    value: dict[str, Any] = {"op": "capture", "actor": "system:cutover", "payload": payload}
    assert cutover_of(value) == Prefix(1, "a" * 64)
    for name, item in change.items():
        place = value if name in value else payload if name in payload else payload["meta"]["cutover"]
        place[name] = item
    assert cutover_of(value) is None


def test_a_row_by_the_same_name_later_on_says_nothing(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    capture(store)
    store.append(Candidate("capture", "system:cutover", cutover_payload(Prefix(7, "a" * 64))))
    assert store.verify().warnings == ()


@needs_strace
def test_a_writer_killed_around_each_call_leaves_one_event_at_most(tmp_path: Path) -> None:
    root = tmp_path / "space"
    file = fresh(root).ledger_file
    file.with_name("config.yaml").write_text("workspace: w\n")
    old = v1(1) + b"\n" + v1(2) + b"\n"
    file.write_bytes(old)
    words = ["once", str(root), "body"]
    calls = _calls(words, frozenset({"flock", "write", "fsync"}), tmp_path / "trace")
    assert {"write", "fsync"} <= {name for name, _ in calls}
    for name, number in calls:
        file.write_bytes(old)
        ended = _run(words, *_killing(name, number))
        store = fresh(root)
        capture(store)
        rows = list(store.read().rows)
        assert file.read_bytes().startswith(old)
        assert [at for at, one in enumerate(rows) if cutover_of(one.value) is not None] == [2]
        assert set(ended.acked) <= {one.id for one in rows}
        assert events(store) == [Prefix(2, hashlib.sha256(old).hexdigest())]
        assert store.verify().ok
