"""Two hosts and a database: network namespaces with links of their own, which can be cut. Needs root."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from stores.test_concurrency import Worker
from support.postgres import DURABLE, Server, needs_postgres, own_server, until
from troth.stores.opening import open_store
from troth.stores.postgres.creating import create_ledger

HOSTS = 2
_NAMES = itertools.count()


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


def _may() -> str | None:
    """Tell why there can be no namespaces here."""
    if sys.platform != "linux" or os.geteuid() != 0 or shutil.which("ip") is None:
        return "network namespaces need Linux, root and the program ip"
    name = f"troth{os.getpid()}t"
    try:
        _ip("netns", "add", name)
        _ip("netns", "del", name)
    except (OSError, subprocess.SubprocessError) as fault:
        return f"no network namespace can be made here: {fault}"
    return None


_WHY_NOT = _may()

pytestmark = [needs_postgres, pytest.mark.skipif(_WHY_NOT is not None, reason=_WHY_NOT or "")]


@dataclass
class Net:
    """A server's namespace with one link to each host's. Host N reaches the server at ``address(N)``."""

    name: str
    server: Server | None = None

    def host(self, number: int) -> list[str]:
        """Return what a command on that host begins with."""
        return ["ip", "netns", "exec", f"{self.name}h{number}"]

    def address(self, number: int) -> str:
        """Return where that host finds the server."""
        return f"10.231.{number}.1"

    def link(self, number: int, state: str) -> None:
        """Cut a host's link (``down``) or mend it (``up``)."""
        _ip("-n", f"{self.name}s", "link", "set", f"s{number}", state)

    def where(self, number: int, database: str) -> str:
        """Return the ledger's address on that host; a link that says nothing for a second counts as broken."""
        return (
            f"postgresql://postgres@{self.address(number)}/{database}?tcp_user_timeout=1000&sslmode=disable&workspace=w"
        )


@pytest.fixture(scope="module")
def net() -> Iterator[Net]:
    made = Net(f"tr{os.getpid()}n{next(_NAMES)}")
    spaces = [f"{made.name}s", *(f"{made.name}h{number}" for number in range(HOSTS))]
    try:
        for space in spaces:
            _ip("netns", "add", space)
            _ip("-n", space, "link", "set", "lo", "up")
        for number in range(HOSTS):
            here, there = f"{made.name}s", f"{made.name}h{number}"
            _ip("-n", here, "link", "add", f"s{number}", "type", "veth", "peer", "name", "e0", "netns", there)
            _ip("-n", here, "addr", "add", f"{made.address(number)}/24", "dev", f"s{number}")
            _ip("-n", there, "addr", "add", f"10.231.{number}.2/24", "dev", "e0")
            _ip("-n", here, "link", "set", f"s{number}", "up")
            _ip("-n", there, "link", "set", "e0", "up")
        listening = ",".join(made.address(number) for number in range(HOSTS))
        with own_server(
            DURABLE, host=listening, prefix=("ip", "netns", "exec", spaces[0]), trusted="10.231.0.0/16"
        ) as server:
            made.server = server
            yield made
    finally:
        for space in spaces:
            subprocess.run(["ip", "netns", "del", space], check=False, capture_output=True, timeout=20)


class Remote(Worker):
    """A worker on a host."""

    def __init__(self, net: Net, host: int, *words: str) -> None:
        self.prefix = net.host(host)
        super().__init__(*words)


def _fresh(net: Net) -> tuple[str, str]:
    """Make a ledger; return its database and its address on this machine."""
    assert net.server is not None
    database = net.server.database()
    where = f"{net.server.address(database)}&workspace=w"
    create_ledger(where)[0].close()
    return database, where


def test_two_hosts_race_and_nothing_is_lost_or_doubled(net: Net) -> None:
    database, where = _fresh(net)
    each = 25
    workers = [
        Remote(net, number % HOSTS, "many", net.where(number % HOSTS, database), f"worker {number}", str(each))
        for number in range(4)
    ]
    for worker in workers:
        assert worker.hear() == "ready"
    for worker in workers:
        worker.tell("go")
    ids = [identifier for worker in workers for identifier in worker.hear()]
    for worker in workers:
        worker.end()
    store = open_store(where)
    assert (store.verify().ok, store.verify().verified) == (True, 4 * each)
    assert Counter(one.id for one in store.read().rows) == Counter(ids)


def test_of_two_hosts_that_claim_one_commitment_exactly_one_wins(net: Net) -> None:
    from support.houses import row

    database, where = _fresh(net)
    store = open_store(where)
    workers = [
        Remote(net, number, "claims", net.where(number, database), f"agent:h{number}") for number in range(HOSTS)
    ]
    for worker in workers:
        assert worker.hear() == "ready"
    for _ in range(10):
        name = row(store, "commit", source=row(store, "capture"))
        for worker in workers:
            worker.tell(name)
        answers = [worker.hear() for worker in workers]
        assert sorted("id" in answer for answer in answers) == [False, True]
        assert [answer["code"] for answer in answers if "code" in answer] == ["E_ALREADY_CLAIMED"]
    for worker in workers:
        worker.end()
    assert store.verify().ok


@pytest.mark.parametrize("cuts", [1, pytest.param(4, marks=pytest.mark.slow)])
def test_a_link_is_cut_in_mid_append_while_the_other_host_goes_on(net: Net, cuts: int) -> None:
    database, where = _fresh(net)
    each = 100 * cuts
    workers = [
        Remote(net, number, "stubborn", net.where(number, database), f"worker {number}", str(each), "2")
        for number in range(HOSTS)
    ]
    heard: list[list[dict[str, Any]]] = [[] for _ in workers]

    def listen(number: int) -> None:
        while (said := workers[number].hear()) != "done":
            heard[number].append(said)

    for worker in workers:
        assert worker.hear() == "ready"
        worker.tell("go")
    ears = [threading.Thread(target=listen, args=(number,)) for number in range(HOSTS)]
    for ear in ears:
        ear.start()
    for turn in range(cuts):
        until(lambda part=turn + 1: len(heard[0]) >= each * part // (cuts + 2))
        net.link(0, "down")
        time.sleep(2.5)  # longer than a silent link is waited for, so that both ends give up
        net.link(0, "up")
    for ear in ears:
        ear.join(120)
        assert not ear.is_alive()
    for worker in workers:
        worker.end()
    answers = [answer for said in heard for answer in said]
    codes = {answer["code"] for answer in answers if "code" in answer}
    assert codes <= {"E_STORE_LOST", "E_OUTCOME_UNKNOWN", "E_BUSY"}
    store = open_store(where)
    assert store.verify().ok
    found = Counter(one.value["payload"]["body"] for one in store.read().rows)
    assert max(found.values()) == 1
    assert {answer["body"] for answer in answers if "ack" in answer} <= set(found)
    refused = {answer["body"] for answer in answers if answer.get("code") in ("E_STORE_LOST", "E_BUSY")}
    assert refused & set(found) == set()
    assert sum("ack" in answer for answer in answers) == HOSTS * each
