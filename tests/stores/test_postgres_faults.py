"""The connection breaks at every message, the server dies: nothing acknowledged is lost, nothing doubled."""

from __future__ import annotations

import itertools
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from stores.test_concurrency import Worker
from support.houses import DatabaseHouse, row
from support.postgres import DURABLE, Server, needs_postgres, new_folder, own_server, shared_server, until
from support.proxy import Fault, Proxy
from troth.core.errors import Busy, NotEstablished, TrothError
from troth.ledger.operations import Candidate
from troth.stores.opening import open_store
from troth.stores.postgres.creating import create_ledger
from troth.stores.protocol import LedgerStore
from troth.stores.snapshot import Snapshot

pytestmark = needs_postgres

_BODIES = itertools.count()


@pytest.fixture
def house() -> DatabaseHouse:
    return DatabaseHouse()


@pytest.fixture
def proxy(house: DatabaseHouse) -> Iterator[Proxy]:
    folder = new_folder()
    made = Proxy(folder, shared_server().folder)
    yield made
    made.close()
    shutil.rmtree(folder, ignore_errors=True)


def through(proxy: Proxy, house: DatabaseHouse, wait: float = 10) -> LedgerStore:
    """Open the house's ledger by way of the proxy."""
    return open_store(house.where.replace(str(shared_server().folder), str(proxy.folder)), wait_seconds=wait)


def once(at: int, fault: Fault) -> Callable[[bytes, bytes], Fault | None]:
    """Return a plan that names the fault at the message of that number."""
    numbers = itertools.count()
    return lambda kind, message: fault if next(numbers) == at else None


def at_commit(fault: Fault) -> Callable[[bytes, bytes], Fault | None]:
    """Return a plan that names the fault at the COMMIT."""
    return lambda kind, message: fault if b"COMMIT\0" in message else None


def attempt(store: LedgerStore) -> tuple[str, TrothError | None]:
    """Append a row with a body of its own; return the body and how it was refused."""
    body = f"body {next(_BODIES)}"
    try:
        store.append(Candidate("capture", "agent:worker", {"body": body}))
    except TrothError as fault:
        return body, fault
    return body, None


def bodies(house: DatabaseHouse) -> Counter[str]:
    """Return what is recorded, read by another connection; the chain must be sound."""
    store = house.open()
    assert store.verify().ok
    found = Counter(one.value["payload"]["body"] for one in store.read().rows)
    store.close()
    return found


_FAULTS = [Fault("drop"), Fault("half"), Fault("lose"), Fault("lose", answer=1), Fault("lose", answer=40)]


def test_the_connection_breaks_at_every_message(house: DatabaseHouse, proxy: Proxy) -> None:
    store = through(proxy, house)
    row(store, "capture")
    proxy.seen.clear()
    assert attempt(store)[1] is None
    messages = len(proxy.seen)
    assert messages >= 10
    outcomes: Counter[str] = Counter()
    for at, fault in itertools.product(range(messages), _FAULTS):
        proxy.fault = once(at, fault)
        body, refusal = attempt(store)
        assert proxy.fault is None
        if refusal is None:
            assert bodies(house)[body] == 1, (at, fault)
        else:
            assert isinstance(refusal, Busy), (at, fault, refusal)
            assert (refusal.code, refusal.detail, refusal.exit_code) == ("E_STORE_LOST", "not_recorded", 75)
            assert bodies(house)[body] == 0, (at, fault)
        outcomes["done" if refusal is None else "refused"] += 1
        body, refusal = attempt(store)  # and it goes on
        assert refusal is None
    assert max(bodies(house).values()) == 1
    assert min(outcomes["done"], outcomes["refused"]) > 5


@pytest.mark.parametrize("answer", [0, 1, 5, 13])
def test_a_commit_whose_answer_is_lost_is_found(house: DatabaseHouse, proxy: Proxy, answer: int) -> None:
    store = through(proxy, house)
    row(store, "capture")
    proxy.fault = at_commit(Fault("lose", answer=answer))
    body, refusal = attempt(store)
    assert (proxy.fault, refusal) == (None, None)
    assert bodies(house)[body] == 1
    assert attempt(store)[1] is None
    assert len(store.read().rows) == 3


@pytest.mark.parametrize("how", ["drop", "half"])
def test_a_commit_that_never_arrived_is_refused(house: DatabaseHouse, proxy: Proxy, how: str) -> None:
    store = through(proxy, house)
    proxy.fault = at_commit(Fault(how))
    body, refusal = attempt(store)
    assert isinstance(refusal, Busy)
    assert refusal.code == "E_STORE_LOST"
    assert bodies(house)[body] == 0


def test_a_commit_that_arrives_late_is_waited_for(house: DatabaseHouse, proxy: Proxy) -> None:
    store = through(proxy, house)
    proxy.fault = at_commit(Fault("late", seconds=0.4))
    body, refusal = attempt(store)
    assert refusal is None
    assert bodies(house)[body] == 1


def test_a_transaction_left_behind_is_waited_for(house: DatabaseHouse, proxy: Proxy) -> None:
    store = through(proxy, house)
    proxy.fault = at_commit(Fault("orphan", seconds=0.4))
    body, refusal = attempt(store)
    assert isinstance(refusal, Busy)
    assert refusal.code == "E_STORE_LOST"
    assert bodies(house)[body] == 0


def test_what_nobody_can_tell_is_not_told(house: DatabaseHouse, proxy: Proxy) -> None:
    store = through(proxy, house, wait=0.3)
    row(store, "capture")

    def plan(kind: bytes, message: bytes) -> Fault | None:
        if b"COMMIT\0" not in message:
            return None
        proxy.refuse()
        return Fault("lose")

    proxy.fault = plan
    body, refusal = attempt(store)
    assert isinstance(refusal, NotEstablished)
    assert (refusal.code, refusal.exit_code) == ("E_OUTCOME_UNKNOWN", 3)
    assert bodies(house)[body] == 1  # in this case
    proxy.listen()
    assert attempt(store)[1] is None
    assert len(store.read().rows) == 3


def test_a_whole_ledger_whose_commit_is_lost_is_found(house: DatabaseHouse, proxy: Proxy) -> None:
    source = DatabaseHouse().open()
    for _ in range(3):
        row(source, "capture")
    values = [one.value for one in source.read().rows]
    store = through(proxy, house)
    proxy.fault = at_commit(Fault("drop"))
    with pytest.raises(Busy):
        store.fill(values)
    assert len(store.read().rows) == 0
    proxy.fault = at_commit(Fault("lose"))
    store.fill(values)
    assert list(store.lines()) == list(source.lines())


# Ended by the server -------------------------------------------------------------------------------------------


def _end(house: DatabaseHouse) -> int:
    """End every other connection to this database; return how many there were."""
    with psycopg.connect(house.base, autocommit=True) as conn:
        return len(
            conn.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'troth'"
            ).fetchall()
        )


def test_a_connection_ended_while_idle_is_replaced_unnoticed(house: DatabaseHouse) -> None:
    store = house.open()
    row(store, "capture")
    assert _end(house) >= 1
    assert attempt(store)[1] is None
    _end(house)
    assert len(store.read().rows) == 2
    _end(house)
    assert store.verify().ok
    _end(house)
    assert [one.line for one in store.read().rows] == [1, 2]


def test_a_connection_ended_in_mid_append_records_nothing(house: DatabaseHouse) -> None:
    store = house.open()
    row(store, "capture")

    def build(_: Snapshot) -> Candidate:
        assert _end(house) >= 1
        return Candidate("capture", "agent:worker", {"body": "never"})

    with pytest.raises(Busy) as caught:
        store.append_with(build)
    assert (caught.value.code, caught.value.detail) == ("E_STORE_LOST", "not_recorded")
    assert bodies(house)["never"] == 0
    assert attempt(store)[1] is None


def test_no_other_connection_takes_the_place_of_the_one_that_holds_the_ledger(house: DatabaseHouse) -> None:
    store, other = house.open(), house.open(random_hex=lambda count: "cd" * count)
    row(store, "capture")

    def build(snapshot: Snapshot) -> Candidate:
        _end(house)
        with pytest.raises(Busy):
            list(snapshot.rows)  # by now the store knows
        row(other, "capture")  # nobody holds the ledger any more
        for ask in (lambda: list(snapshot.rows), store.verify, store.ruling):
            with pytest.raises(Busy):
                ask()
        return Candidate("capture", "agent:worker", {"body": "never"})

    with pytest.raises(Busy) as caught:
        store.append_with(build)
    assert (caught.value.code, caught.value.detail) == ("E_STORE_LOST", "not_recorded")
    assert bodies(house) == {"b": 2}
    assert attempt(store)[1] is None


@pytest.fixture(scope="module")
def durable() -> Iterator[Server]:
    with own_server(DURABLE) as server:
        yield server


def test_a_connection_ended_in_mid_commit_is_found_out(durable: Server) -> None:
    """A standby that never answers keeps the COMMIT waiting; the row is on this server's disk by then."""
    where = f"{durable.address(durable.database())}&workspace=w"
    store = create_ledger(where)[0]
    row(store, "capture")
    with psycopg.connect(durable.address("postgres"), autocommit=True) as conn:

        def standby(name: str) -> None:
            conn.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{name}'".encode())
            conn.execute("SELECT pg_reload_conf()")
            until(lambda: conn.execute("SHOW synchronous_standby_names").fetchone() == (name,))

        waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND application_name = 'troth'"
        ended: list[int] = []

        def end_it() -> None:
            deadline = time.monotonic() + 30
            while not (found := conn.execute(waiting).fetchall()) and time.monotonic() < deadline:
                time.sleep(0.01)
            for (pid,) in found:
                conn.execute("SELECT pg_terminate_backend(%s)", (pid,))
                ended.append(pid)
            standby("")

        standby("nobody")
        helper = threading.Thread(target=end_it)
        helper.start()
        bodies_ = []
        while helper.is_alive():  # the setting reaches the server's processes one after the other
            body, refusal = attempt(store)
            assert refusal is None
            bodies_.append(body)
        helper.join()
    assert len(ended) == 1
    found = Counter(one.value["payload"]["body"] for one in store.read().rows)
    assert [found[body] for body in bodies_] == [1] * len(bodies_)
    assert store.verify().ok


@pytest.mark.parametrize("crashes", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_the_server_dies_and_comes_back_while_two_processes_append(durable: Server, crashes: int) -> None:
    where = f"{durable.address(durable.database())}&workspace=w"
    create_ledger(where)[0].close()
    each = 60 * crashes
    workers = [Worker("stubborn", where, f"worker {number}", str(each)) for number in range(2)]
    for worker in workers:
        assert worker.hear() == "ready"
        worker.tell("go")
    heard: list[list[dict[str, str]]] = [[], []]

    def listen(number: int) -> None:
        while (said := workers[number].hear()) != "done":
            heard[number].append(said)

    ears = [threading.Thread(target=listen, args=(number,)) for number in range(2)]
    for ear in ears:
        ear.start()
    for turn in range(crashes):
        until(lambda part=turn + 1: min(len(said) for said in heard) >= each * part // (crashes + 2))
        durable.kill()
        durable.start()
    for ear in ears:
        ear.join()
    for worker in workers:
        worker.end()
    answers = [answer for said in heard for answer in said]
    acknowledged = [answer["body"] for answer in answers if "ack" in answer]
    lost = [answer for answer in answers if "code" in answer]
    assert {answer["code"] for answer in lost} <= {"E_STORE_LOST", "E_BUSY", "E_OUTCOME_UNKNOWN"}
    store = open_store(where)
    assert store.verify().ok
    found = Counter(one.value["payload"]["body"] for one in store.read().rows)
    assert max(found.values()) == 1
    assert set(acknowledged) <= set(found)
    refused = {answer["body"] for answer in lost if answer["code"] != "E_OUTCOME_UNKNOWN"}
    assert refused & set(found) == set()
    assert len(acknowledged) >= each


def test_a_server_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    store = open_store(f"postgresql:///x?host={tmp_path}&workspace=w")
    for ask in (store.read, store.verify, lambda: store.append(Candidate("capture", "agent:worker", {"body": "x"}))):
        with pytest.raises(Busy) as caught:
            ask()
        assert (caught.value.code, caught.value.exit_code) == ("E_STORE_LOST", 75)
    assert os.listdir(tmp_path) == []
