"""What every store of a ledger does, in the same words: passed by the JSON Lines file and by PostgreSQL."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference import merkle_model
from stores.test_concurrency import PROCESSES, Worker
from support.houses import DatabaseHouse, FileHouse, House, bytes_of, copy_into, row
from support.ledgers import START, counting, ticking
from support.postgres import needs_postgres
from troth.core.errors import Busy, DoesNotHold, Refused, TrothError
from troth.core.notes import ED25519, Signer
from troth.ledger.checkpoint import check_consistency, check_inclusion
from troth.ledger.codes import CODES
from troth.ledger.importing import chained
from troth.ledger.operations import Candidate
from troth.stores.checkpoints import Anchors, consistency, create, prove
from troth.stores.protocol import LedgerStore, Note
from troth.stores.snapshot import Snapshot

KINDS = ["jsonl", pytest.param("postgres", marks=needs_postgres)]
_NUMBERS = itertools.count()

Make = Callable[[], House]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Make new houses of one kind."""
    if request.param == "jsonl":
        return lambda: FileHouse(tmp_path / f"house {next(_NUMBERS)}")
    return DatabaseHouse


@pytest.fixture
def house(make: Make) -> House:
    return make()


@pytest.fixture
def store(house: House) -> LedgerStore:
    return house.open()


def capture(body: str = "seen", actor: str = "human:reviewer") -> Candidate:
    return Candidate("capture", actor, {"body": body})


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
    value = store.append(capture())
    assert b"".join(store.lines()) == bytes_of(value)
    for one in (store, house.open()):
        assert (one.verify().summary(), one.verify().ok) == ("1/1 verified", True)
        assert [other.value for other in one.read().rows] == [value]


def test_the_old_bytes_stay_the_first_ones(store: LedgerStore) -> None:
    before = b""
    for number in range(5):
        store.append(capture(f"n {number}"))
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


def furnished(house: House) -> LedgerStore:
    store = house.open()
    store.append(Candidate("capture", "human:reviewer", {"body": "seen"}, id="mem_00000001", source_key="key-1"))
    for name in ("cmt_00000002", "cmt_00000003"):
        store.append(Candidate("commit", "human:reviewer", {"body": "b", "source": "mem_00000001"}, id=name))
        row(store, "claim", commitment=name)
    row(store, "close", commitment="cmt_00000003", evidence="mem_00000001")
    return store


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
        for ask in (lambda s=one: s.append(capture()), lambda s=one: s.rehearse(lambda _: capture())):
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
    store.append(capture(), seen=head)
    assert notes == []
    store.append(capture(), seen=head)
    assert [note.code for note in notes if isinstance(note, Note)] == ["blind_write"]
    assert len(store.read().rows) == 3


def test_append_with_decides_while_nobody_else_can_write(house: House) -> None:
    store, other = house.open(), house.open(wait_seconds=0.05)
    name = work(store)

    def build(snapshot: Snapshot) -> Candidate:
        with pytest.raises(Busy) as caught:
            other.append(capture())
        assert (caught.value.code, caught.value.exit_code) == ("E_BUSY", 75)
        assert other.read().head == snapshot.head == snapshot.verification.head
        assert [one.id for one in snapshot.rows] == [one.id for one in other.read().rows]
        assert snapshot.state.commitments[name].state == "open"
        return Candidate("claim", "agent:worker", {"body": "x", "commitment": name})

    store.append_with(build)
    assert store.read().state.commitments[name].owner == "agent:worker"
    other.append(capture())
    assert other.verify().ok


def test_an_error_of_whoever_decides_leaves_the_ledger_free(house: House) -> None:
    store, other = house.open(), house.open(wait_seconds=0.05)

    def build(_: Snapshot) -> Candidate:
        raise ZeroDivisionError

    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            store.append_with(build)
        row(other, "capture")
    store.append(capture())
    assert (store.verify().ok, len(store.read().rows)) == (True, 3)


def test_measured_trust_is_written_and_supplied_trust_is_not(store: LedgerStore) -> None:
    value = store.append(capture(), engine_trust={"confidence": 0.5, "chain": ["exit_code:1.0"]})
    assert value["trust"]["confidence"] == 0.5
    value = store.append_with(lambda _: (capture(), {"confidence": 0.25}))
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


# The same in both ----------------------------------------------------------------------------------------------

_STEPS = st.sampled_from(
    ["capture", "commit", "claim", "release", "submit", "approve", "reopen", "close", "annotate", "explode", "again"]
)
_STEP = st.tuples(_STEPS, st.sampled_from(["agent:worker", "agent:rival", "human:reviewer"]), st.integers(0, 3))


def _candidate(op: str, actor: str, which: int, store: LedgerStore) -> Candidate:
    """Return a candidate that names rows of this ledger, or nearly."""
    state = store.read().state
    commits = list(state.commitments) or ["cmt_00000000"]
    signals = list(state.signals) or ["mem_00000000"]
    payload: dict[str, Any] = {"body": f"{op} {which}"}
    if op in ("claim", "release", "submit", "approve", "reopen", "close"):
        payload["commitment"] = commits[-1 - which % len(commits)]
    if op == "commit":
        payload["source"] = signals[-1 - which % len(signals)]
    if op in ("submit", "close"):
        payload["evidence"] = signals[which % len(signals)]
    if op == "annotate":
        payload["target"] = signals[which % len(signals)]
    if op == "again":
        return Candidate("capture", actor, payload, source_key=f"key-{which}")
    return Candidate(op, actor, payload)


def _told(store: LedgerStore, op: str, actor: str, which: int) -> Any:
    """Return the row, or what the refusal says."""
    try:
        return store.append(_candidate(op, actor, which, store))
    except TrothError as fault:
        return (fault.code, fault.detail, fault.message, fault.exit_code)


@needs_postgres
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(_STEP, min_size=1, max_size=18))
def test_the_same_candidates_give_the_same_bytes(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, int]]
) -> None:
    houses: list[House] = [FileHouse(tmp_path_factory.mktemp("pair") / "house"), DatabaseHouse()]
    stores = [house.open(clock=ticking(), random_hex=counting()) for house in houses]
    for store in stores:
        store.workspace = "w"
    for step in steps:
        first, second = (_told(store, *step) for store in stores)
        assert first == second
    assert list(stores[0].lines()) == list(stores[1].lines())
    for one, other in ((stores[0], stores[1]), (houses[0].open(), houses[1].open())):
        assert one.verify() == other.verify()
        assert one.read().head == other.read().head
        assert one.read().state.digest() == other.read().state.digest()
        assert [r.value for r in one.read().rows] == [r.value for r in other.read().rows]
        assert leaves(one) == leaves(other)
        assert standings(one) == standings(other)


def leaves(store: LedgerStore) -> list[bytes]:
    """Return the leaves of the ledger's Merkle tree."""
    found: list[bytes] = []
    store.verify(leaves=found.extend)
    return found


def standings(store: LedgerStore) -> list[Any]:
    """Return the confidence of every signal."""
    snapshot = store.read(trust=True)
    return [snapshot.trust.standing(name) for name in snapshot.state.signals]


@needs_postgres
@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (1, b"seen", b"sEen"),
        (3, b'"prevHash":"', b'"prevHash":"f'),
        (4, b'"hash":"', b'"hash":"0'),
        (5, b"{", b"["),
        (2, b'"id":"cmt_00000002"', b'"id":"mem_00000001"'),
        (6, b"}", b"}\r"),
        (6, b'"op":"close"', b'"op":"closed"'),
        (1, b'"payload"', b'"payload":1,"payload"'),
    ],
)
def test_the_same_damage_is_the_same_fault(tmp_path: Path, line: int, old: bytes, new: bytes) -> None:
    houses: list[House] = [FileHouse(tmp_path / "house"), DatabaseHouse()]
    furnished(houses[0])
    copy_into(houses[1], [raw[:-1] for raw in houses[0].open().lines()])
    for one in houses:
        one.change(line, lambda raw: raw.replace(old, new, 1) if new != b"}\r" else raw + b"\r")
    file, database = (one.open().verify() for one in houses)
    assert file.warnings == database.warnings
    assert (file.verified, file.total, file.head) == (database.verified, database.total, database.head)
    # A changed stored hash changes the head, and the database remembers its own.
    own = [fault for fault in database.faults if fault not in file.faults]
    assert [fault.fault for fault in own] == (["head_mismatch"] if file.head != furnished_head(houses[0]) else [])
    assert [fault for fault in database.faults if fault not in own] == list(file.faults)
    assert houses[0].open().read().state.digest() == houses[1].open().read().state.digest()


def furnished_head(house: House) -> str:
    """Return the head of the furnished ledger when it is sound."""
    assert isinstance(house, FileHouse)
    sound = FileHouse(Path(house.where).with_name("sound"))
    return furnished(sound).verify().head


# Many rows in one go -------------------------------------------------------------------------------------------


def _builds(*candidates: Candidate) -> list[Callable[[Snapshot], Candidate]]:
    return [lambda _, candidate=candidate: candidate for candidate in candidates]  # type: ignore[misc]  # bound at once


def none_refused(answers: Sequence[object]) -> bool:
    return not any(isinstance(answer, Refused) for answer in answers)


def test_many_rows_are_judged_by_those_before_them(house: House) -> None:
    store, other = house.open(), house.open(random_hex=lambda count: "ee" * count)
    source, work_id = "mem_0a0a0a0a", "cmt_0b0b0b0b"
    answers = store.append_many(
        _builds(
            Candidate("capture", "agent:worker", {"body": "a"}, id=source, source_key="k"),
            Candidate("commit", "agent:worker", {"body": "b", "source": source}, id=work_id),
            Candidate("claim", "agent:worker", {"body": "m", "commitment": work_id}),
            Candidate("claim", "agent:rival", {"body": "m", "commitment": work_id}),
            Candidate("capture", "agent:rival", {"body": "c"}, source_key="k"),
            Candidate("capture", "agent:rival", {"body": ""}),
            Candidate("capture", "agent:rival", {"body": "d"}),
        )
    )
    told = [answer.code if isinstance(answer, Refused) else answer["op"] for answer in answers]
    assert told[:3] == ["capture", "commit", "claim"]
    assert told[3:] == ["E_ALREADY_CLAIMED", "E_DUPLICATE_ID", "E_CONSTRAINT_VIOLATED", "capture"]
    assert answers[4].detail == source  # type: ignore[union-attr]  # the refusal
    assert b"".join(store.lines()) == b"".join(bytes_of(row) for row in answers if isinstance(row, dict))
    for one in (store, other):
        assert one.read().verification.summary() == "4/4 verified"
        assert one.read().state.digest() == house.open().read().state.digest()
    row(store, "capture")
    assert other.verify().summary() == "5/5 verified"


def test_of_many_rows_all_or_none_where_that_is_asked(house: House) -> None:
    store = house.open()
    row(store, "capture")
    before = b"".join(store.lines())
    answers = store.append_many(_builds(capture("a"), capture(""), capture("b")), keep=none_refused)
    assert [isinstance(answer, Refused) for answer in answers] == [False, True, False]
    assert b"".join(store.lines()) == before
    assert len(store.read().rows) == 1
    assert not any(
        isinstance(answer, Refused) for answer in store.append_many(_builds(capture("a")), keep=none_refused)
    )
    assert store.append_many([]) == []
    assert [isinstance(answer, Refused) for answer in store.append_many(_builds(capture("")))] == [True]
    assert store.verify().summary() == house.open().verify().summary() == "2/2 verified"


def test_many_rows_are_the_same_as_one_after_the_other(make: Make) -> None:
    candidates = [Candidate("capture", "agent:worker", {"body": f"{n}"}, workspace="w") for n in range(40)]
    one, many = (make().open(clock=lambda: START) for _ in range(2))
    for candidate in candidates:
        one.append(candidate)
    many.append_many(_builds(*candidates[:25]))
    many.append_many(_builds(*candidates[25:]))
    assert b"".join(one.lines()) == b"".join(many.lines())
    assert one.verify().head == many.verify().head == many.read().head


def test_many_rows_are_not_added_to_a_broken_ledger(house: House) -> None:
    store = house.open()
    row(store, "capture")
    house.change(1, lambda raw: raw.replace(b'"body":"b"', b'"body":"c"'))
    with pytest.raises(DoesNotHold):
        house.open().append_many(_builds(capture()))


def test_a_stale_head_is_told_once_for_many_rows(house: House) -> None:
    notes: list[str] = []
    store = house.open(notify=notes.append)
    store.append_many(_builds(capture(), capture()), seen=store.read().head)
    assert notes == []
    store.append_many(_builds(capture(), capture()), seen="0" * 64)
    assert [note.split(":")[0] for note in notes] == ["blind_write"]


def test_an_error_among_many_rows_writes_none_of_them(house: House) -> None:
    store = house.open()
    builds: list[Any] = [*_builds(capture()), lambda _: 1 / 0]
    with pytest.raises(ZeroDivisionError):
        store.append_many(builds)
    assert b"".join(store.lines()) == b""
    row(store, "capture")
    assert store.verify().summary() == house.open().verify().summary() == "1/1 verified"
