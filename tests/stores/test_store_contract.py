"""What every store of a ledger does, in the same words: passed by the JSON Lines file and by PostgreSQL."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reference import merkle_model
from stores.test_concurrency import PROCESSES, Worker
from support.houses import (
    House,
    Make,
    bytes_of,
    furnished,
    house,
    make,
    observation,
    row,
)
from support.ledgers import counting
from troth.core.errors import Busy, DoesNotHold, Refused
from troth.core.notes import ED25519, Signer
from troth.ledger.checkpoint import check_consistency, check_inclusion
from troth.ledger.codes import CODES
from troth.ledger.importing import chained
from troth.ledger.operations import Candidate
from troth.stores.checkpoints import Anchors, consistency, create, prove
from troth.stores.protocol import LedgerStore, Note
from troth.stores.snapshot import Snapshot

__all__ = ["house", "make"]


@pytest.fixture
def store(house: House) -> LedgerStore:
    return house.open()


def work(store: LedgerStore) -> str:
    return row(store, "commit", "human:reviewer", source=row(store, "capture"))


# Reading -------------------------------------------------------------------------------------------------------


def test_an_empty_ledger_is_read_and_verified(store: LedgerStore) -> None:
    found = store.verify()
    assert (found.summary(), found.ok, found.head) == ("0/0 verified", True, "0" * 64)
    snapshot = store.read()
    assert (len(snapshot.rows), list(snapshot.rows), snapshot.rows[:]) == (0, [], [])
    assert b"".join(store.lines()) == b""
    assert store.summary().live == []


def test_rows_are_appended_and_acknowledged(house: House, store: LedgerStore) -> None:
    value = store.append(observation())
    assert b"".join(store.lines()) == bytes_of(value)
    for one in (store, house.open()):
        assert (one.verify().summary(), one.verify().ok) == ("1/1 verified", True)
        assert [other.value for other in one.read().rows] == [value]


def test_the_old_bytes_stay_the_first_ones(store: LedgerStore) -> None:
    before = b""
    for number in range(5):
        store.append(observation(f"n {number}"))
        after = b"".join(store.lines())
        assert after.startswith(before)
        assert after.count(b"\n") == number + 1
        before = after


def test_rows_are_found_from_either_end_and_by_line(house: House) -> None:
    store = house.open()
    ids = [row(store, "capture") for _ in range(150)]
    rows = house.open().read().rows
    assert [one.id for one in rows] == ids
    assert [rows[at].id for at in (0, 3, -1, -150, 149, 80)] == [ids[at] for at in (0, 3, -1, -150, 149, 80)]
    for wanted in (slice(None), slice(-20, None), slice(2, 9), slice(10, 0, -3), slice(149, 150), slice(5, 5)):
        assert [one.id for one in rows[wanted]] == ids[wanted]
    assert rows.at_line(77).id == ids[76]
    for bad in (150, -151):
        with pytest.raises(IndexError):
            rows[bad]
    for line in (0, 151):
        with pytest.raises(KeyError):
            rows.at_line(line)


def test_a_snapshot_does_not_see_later_rows(store: LedgerStore) -> None:
    row(store, "capture")
    rows = store.read().rows
    row(store, "capture")
    assert (len(rows), len(list(rows)), len(rows[-5:]), rows[-1].line) == (1, 1, 1, 1)


def test_a_summary_tells_what_replay_gives(store: LedgerStore) -> None:
    first, second = work(store), work(store)
    row(store, "claim", commitment=second)
    summary = store.summary()
    assert [(record.id, record.state) for record in summary.live] == [(first, "open"), (second, "claimed")]
    assert (summary.closed, summary.anomaly_count, summary.uncommitted) == (0, 0, 0)
    assert summary.verification == store.verify()
    assert list(summary.everything().commitments) == [first, second]


def test_an_open_store_sees_what_others_write(house: House) -> None:
    digits = counting()
    stores = [house.open(random_hex=digits) for _ in range(3)]
    written = []
    for turn in range(9):
        written.append(row(stores[turn % 2], "capture"))
        assert [one.id for one in stores[(turn * 2) % 3].read().rows] == written
    assert all(one.verify().ok for one in stores)


def test_a_ledger_is_read_while_it_is_verified(house: House) -> None:
    row(house.open(), "capture")
    store = house.open(random_hex=lambda count: "cd" * count)
    seen: list[int] = []
    found = store.verify(progress=lambda done, total: seen.append(len(store.read().rows)))
    assert found.ok
    assert set(seen) == {1}
    row(store, "capture")
    assert store.verify().total == 2


def test_a_closed_store_opens_again(store: LedgerStore) -> None:
    row(store, "capture")
    store.close()
    store.close()
    row(store, "capture")
    store.close()
    assert len(store.read().rows) == 2


@pytest.mark.parametrize("text", ["\x00", "\u2028", "😀" * 300, "\\", "a/b", "\x7f", "'; DROP TABLE troth.rows; --"])
def test_any_text_comes_back_as_it_was(house: House, text: str) -> None:
    store = house.open()
    value = store.append(
        Candidate(
            "capture", "human:reviewer", {"body": f"x{text}", "meta": {text: [text]}}, source_key=f"k{text}"[:500]
        )
    )
    again = house.open()
    assert [one.value for one in again.read().rows] == [value]
    with pytest.raises(Refused) as caught:
        again.append(Candidate("capture", "human:reviewer", {"body": "x"}, source_key=value["source_key"]))
    assert (caught.value.code, caught.value.detail) == ("E_DUPLICATE_ID", value["id"])


def test_rows_of_another_writer_are_taken_as_they_are(store: LedgerStore) -> None:
    long = "x" * 20_000
    members = {"op": "capture", "ts": "2026-01-01T00:00:00Z", "actor": "human:reviewer", "payload": {"body": "x"}}
    rows = [{**members, "id": f"{long}{number}", "source_key": "the same"} for number in range(3)]
    store.fill(list(chained(rows)))
    assert (store.verify().ok, store.verify().verified) == (True, 3)
    assert [one.id for one in store.read().rows] == [f"{long}{number}" for number in range(3)]
    with pytest.raises(Refused) as caught:
        store.append(Candidate("capture", "human:reviewer", {"body": "x"}, source_key="the same"))
    assert (caught.value.code, caught.value.detail) == ("E_DUPLICATE_ID", f"{long}0")


# Refusals: every code of §5 ------------------------------------------------------------------------------------


def _refusals() -> dict[str, tuple[str, Any, Candidate]]:
    """Return name -> (code, detail, candidate) in the ledger that `furnished` makes."""

    def of(op: Any, actor: Any = "agent:worker", **more: Any) -> Candidate:
        members = {name[1:]: more.pop(name) for name in list(more) if name.startswith("_")}
        return Candidate(op, actor, {"body": "b", **more}, **members)

    constraint = "E_CONSTRAINT_VIOLATED"
    return {
        "op": ("E_INVALID_OP", None, of("explode")),
        "no body": ("E_MISSING_FIELD", "body", Candidate("capture", "agent:worker", {})),
        "no source": ("E_MISSING_FIELD", "source", of("commit")),
        "no actor": ("E_MISSING_FIELD", "actor", of("capture", None)),
        "blank body": (constraint, "bad_value", Candidate("capture", "agent:worker", {"body": " "})),
        "trust": (constraint, "trust_self_reported", of("capture", _trust={"confidence": 1})),
        "id": ("E_DUPLICATE_ID", None, of("capture", _id="mem_00000001")),
        "source_key": ("E_DUPLICATE_ID", "mem_00000001", of("capture", _source_key="key-1")),
        "citation": ("E_CITATION_REQUIRED", None, of("capture", kind="finding")),
        "absent": ("E_REF_NOT_FOUND", "absent", of("claim", commitment="cmt_99999999")),
        "kind": ("E_REF_NOT_FOUND", "wrong_kind", of("claim", commitment="mem_00000001")),
        "state": (constraint, "bad_state", of("approve", commitment="cmt_00000002")),
        "closed": ("E_ALREADY_CLOSED", None, of("claim", commitment="cmt_00000003")),
        "claimed": ("E_ALREADY_CLAIMED", None, of("claim", "agent:rival", commitment="cmt_00000002")),
        "owner": ("E_NOT_OWNER", None, of("release", "agent:rival", commitment="cmt_00000002")),
    }


def test_every_refusal_has_its_code_and_changes_nothing(house: House) -> None:
    store = furnished(house)
    before = b"".join(store.lines())
    for name, (code, detail, candidate) in _refusals().items():
        for ask in (lambda one=candidate: store.append(one), lambda one=candidate: store.rehearse(lambda _: one)):
            with pytest.raises(Refused) as caught:
                ask()
            assert (name, caught.value.code, caught.value.detail) == (name, code, detail)
    assert b"".join(store.lines()) == before
    told = {code for code, _, _ in _refusals().values()}
    assert told == set(CODES) - {"E_CHAIN_BROKEN", "E_PERMISSION_DENIED"}
    row(store, "claim", commitment="cmt_00000002")  # the owner may say so again
    assert store.verify().ok


def test_a_changed_row_blocks_every_append(house: House) -> None:
    store = furnished(house)
    house.change(2, lambda raw: raw.replace(b'"body":"b"', b'"body":"c"'))
    for one in (house.open(), house.open()):
        for ask in (lambda s=one: s.append(observation()), lambda s=one: s.rehearse(lambda _: observation())):
            with pytest.raises(DoesNotHold) as caught:
                ask()
            assert caught.value.code == "E_CHAIN_BROKEN"
    faults = house.open().verify().faults
    assert [(fault.line, fault.id, fault.fault) for fault in faults] == [(2, "cmt_00000002", "content_mismatch")]
    assert [one.line for one in house.open().read().rows] == list(range(1, 7))
    assert store.workspace is not None


def test_a_row_taken_out_is_found(house: House) -> None:
    furnished(house)
    house.remove(3)
    faults = [(fault.line, fault.fault) for fault in house.open().verify().faults]
    assert (3, "missing_ancestor") in faults


def test_a_row_cut_off_the_end_is_found_by_whoever_remembers_the_head(house: House) -> None:
    before = furnished(house).verify()
    house.remove(6)
    found = house.open().verify(expect_head=before.head, expect_rows=before.hashed)
    assert "head_mismatch" in [fault.fault for fault in found.faults]
    assert any("cut" in fault.message for fault in found.faults)


def test_the_expected_head_is_compared(store: LedgerStore) -> None:
    row(store, "capture")
    head = store.read().head
    row(store, "capture")
    assert store.verify(expect_head=head, expect_rows=1).ok
    assert not store.verify(expect_head=head).ok
    assert [fault.fault for fault in store.verify(expect_head=head).faults] == ["head_mismatch"]


def test_checkpoints_and_proofs_are_of_the_rows_and_not_of_the_store(house: House, tmp_path: Path) -> None:
    signer = Signer("example.com/ledger", ED25519, bytes(range(32)))
    store = furnished(house)
    first = create(store, signer, origin="w", out=tmp_path / "first")
    values = [one.value for one in store.read().rows]
    entries = [merkle_model.row_entry(value["hash"], value["prevHash"]) for value in values]
    assert first.signed.checkpoint.root == merkle_model.mth(entries)
    for number, value in enumerate(values):
        proven = check_inclusion(prove(store, value["id"], first.path), [signer.verifier])
        assert (proven.index, proven.row.value) == (number, value)
    row(store, "capture")
    second = create(store, signer, origin="w", out=tmp_path / "second")
    grown = check_consistency(consistency(store, first.path, second.path), [signer.verifier])
    assert (grown.old.checkpoint.size, grown.new.checkpoint.size) == (len(values), len(values) + 1)
    house.remove(len(values) + 1)
    for made, faults in ((first, set()), (second, {"checkpoint_ahead"})):
        anchors = Anchors([(made.path, made.signed)])
        found = anchors.judge(house.open().verify(leaves=anchors.take))
        # A database remembers its head beside the rows, and sees that too.
        assert {fault.fault for fault in found.faults} - {"head_mismatch"} == faults


# Deciding while nobody else can write --------------------------------------------------------------------------


def test_a_stale_head_is_told_and_does_not_stop_the_row(house: House) -> None:
    notes: list[str] = []
    store = house.open(notify=notes.append)
    row(store, "capture")
    head = store.read().head
    store.append(observation(), seen=head)
    assert notes == []
    store.append(observation(), seen=head)
    assert [note.code for note in notes if isinstance(note, Note)] == ["blind_write"]
    assert len(store.read().rows) == 3


def test_append_with_decides_while_nobody_else_can_write(house: House) -> None:
    store, other = house.open(), house.open(wait_seconds=0.05)
    name = work(store)

    def build(snapshot: Snapshot) -> Candidate:
        with pytest.raises(Busy) as caught:
            other.append(observation())
        assert (caught.value.code, caught.value.exit_code) == ("E_BUSY", 75)
        assert other.read().head == snapshot.head == snapshot.verification.head
        assert [one.id for one in snapshot.rows] == [one.id for one in other.read().rows]
        assert snapshot.state.commitments[name].state == "open"
        return Candidate("claim", "agent:worker", {"body": "x", "commitment": name})

    store.append_with(build)
    assert store.read().state.commitments[name].owner == "agent:worker"
    other.append(observation())
    assert other.verify().ok


def test_an_error_of_whoever_decides_leaves_the_ledger_free(house: House) -> None:
    store, other = house.open(), house.open(wait_seconds=0.05)

    def build(_: Snapshot) -> Candidate:
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            store.append_with(build)
        row(other, "capture")
    store.append(observation())
    assert (store.verify().ok, len(store.read().rows)) == (True, 3)


def test_measured_trust_is_written_and_supplied_trust_is_not(store: LedgerStore) -> None:
    value = store.append(observation(), engine_trust={"confidence": 0.5, "chain": ["exit_code:1.0"]})
    assert value["trust"]["confidence"] == 0.5
    value = store.append_with(lambda _: (observation(), {"confidence": 0.25}))
    assert value["trust"]["confidence"] == 0.25
    assert store.verify().ok


# Whole ledgers -------------------------------------------------------------------------------------------------


def test_a_ledger_is_filled_once(make: Make) -> None:
    source, target = make().open(), make().open()
    for _ in range(5):
        row(source, "capture")
    values = [one.value for one in source.read().rows]
    target.fill(values)
    assert list(target.lines()) == list(source.lines())
    assert target.verify() == source.verify()
    with pytest.raises(Refused) as caught:
        target.fill(values)
    assert caught.value.code == "E_NOT_EMPTY"
    row(target, "capture", kind="evidence")
    assert target.verify().summary() == "6/6 verified"


# Many at once --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("each", [12, pytest.param(250, marks=pytest.mark.slow)])
def test_eight_processes_append_and_nothing_is_lost_or_doubled(house: House, each: int) -> None:
    workers = [Worker("many", house.where, f"worker {number}", str(each)) for number in range(PROCESSES)]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.tell("go")
    ids = [identifier for worker in workers for identifier in worker.hear()]
    for worker in workers:
        worker.end()
    assert len(set(ids)) == len(ids) == PROCESSES * each
    store = house.open()
    assert (store.verify().ok, store.verify().verified) == (True, len(ids))
    rows = store.read().rows
    assert Counter(one.id for one in rows) == Counter(ids)
    bodies = Counter(one.value["payload"]["body"] for one in rows)
    assert bodies == Counter(f"worker {number} {turn}" for number in range(PROCESSES) for turn in range(each))


@pytest.mark.parametrize("rounds", [4, pytest.param(50, marks=pytest.mark.slow)])
def test_of_eight_that_claim_one_commitment_exactly_one_wins(house: House, rounds: int) -> None:
    store = house.open()
    actors = [f"agent:w{number}" for number in range(PROCESSES)]
    workers = [Worker("claims", house.where, actor) for actor in actors]
    for worker in workers:
        assert worker.hear() == "ready"
    for _ in range(rounds):
        name = work(store)
        for worker in workers:
            worker.tell(name)
        answers = dict(zip(actors, [worker.hear() for worker in workers], strict=True))
        winners = [actor for actor, answer in answers.items() if "id" in answer]
        assert len(winners) == 1
        assert store.read().state.commitments[name].owner == winners[0]
        for actor, answer in answers.items():
            if actor != winners[0]:
                assert answer["code"] == "E_ALREADY_CLAIMED"
                assert winners[0] in answer["message"]
    for worker in workers:
        worker.end()
    assert (store.verify().ok, store.verify().total) == (True, rounds * 3)
    assert store.read().state.anomalies == []


def test_readers_never_see_half_a_ledger(house: House) -> None:
    workers = [Worker("many", house.where, f"worker {number}", "20") for number in range(2)]
    for worker in workers:
        assert worker.hear() == "ready"
        worker.tell("go")
    reader = house.open()
    counts = []
    while not counts or counts[-1] < 40:
        snapshot = reader.read()
        assert snapshot.verification.ok
        counts.append(len(snapshot.rows))
    assert counts == sorted(counts)
    for worker in workers:
        worker.hear()
        worker.end()
