"""The stores beside each other: the same rows are the same bytes, the same damage is the same fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.houses import DatabaseHouse, FileHouse, House, copy_into, furnished
from support.ledgers import counting, ticking
from support.postgres import needs_postgres
from troth.core.errors import TrothError
from troth.ledger.operations import Candidate
from troth.stores.protocol import LedgerStore

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
