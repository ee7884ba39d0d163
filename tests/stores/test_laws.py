"""Laws of an open store: whatever happens in whatever order, it knows what a fresh reading knows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.ledgers import counting, ticking
from troth.core.errors import TrothError
from troth.ledger.operations import Candidate
from troth.stores import ledgerfile, replayedfile
from troth.stores.jsonl import JsonlStore
from troth.stores.workspace import create_workspace

_STEPS = st.sampled_from(
    ["capture", "commit", "claim", "submit", "release", "approve", "refused", "read", "head", "tear", "unend", "blank"]
)


class Play:
    """Two stores on one ledger, and what becomes of it."""

    def __init__(self, root: Path) -> None:
        create_workspace(root, name="w", agents_text="x")
        digits = counting()
        self.stores = [JsonlStore.open(root, clock=ticking(), random_hex=digits) for _ in range(2)]
        self.file = self.stores[0].ledger_file
        self.acked: list[str] = []
        self.captures: list[str] = []
        self.commits: list[str] = []

    def step(self, name: str, store: JsonlStore) -> None:
        """Do one thing; the old bytes stay the first ones, a torn tail excepted."""
        before = self.file.read_bytes()
        if name == "tear":
            if before.endswith(b"\n") or not before:
                self.file.write_bytes(before + b'{"torn')
        elif name == "unend":
            if before.endswith(b"}\n"):
                self.file.write_bytes(before[:-1])
        elif name == "blank":
            if before.endswith(b"\n"):
                self.file.write_bytes(before + b"\n")
        elif name == "read":
            store.read()
        elif name == "head":
            store.append_with(lambda seen: self.noting(seen.head))
        else:
            self.append(name, store)
        after = self.file.read_bytes()
        if name != "unend":
            assert after.startswith(before.removesuffix(b'{"torn'))

    def noting(self, head: str) -> Candidate:
        """Return a candidate that records the head it was decided on."""
        return Candidate("capture", "agent:worker", {"body": head})

    def append(self, name: str, store: JsonlStore) -> None:
        """Ask for a row and remember whether it was acknowledged."""
        payload: dict[str, str] = {"body": name}
        if name == "commit":
            payload["source"] = self.captures[-1] if self.captures else "mem_00000000"
        elif name in ("claim", "submit", "release", "approve"):
            payload["commitment"] = self.commits[-1] if self.commits else "cmt_00000000"
        if name == "submit":
            payload["evidence"] = self.captures[-1] if self.captures else "mem_00000000"
        op = {"refused": "explode"}.get(name, name)
        try:
            row = store.append(Candidate(op, "agent:worker", payload))
        except TrothError:
            return
        self.acked.append(row["id"])
        {"capture": self.captures, "commit": self.commits}.get(name, []).append(row["id"])


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(_STEPS, st.integers(0, 1)), max_size=14))
def test_an_open_store_knows_what_a_fresh_reading_knows(steps: list[tuple[str, int]]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        for module in (ledgerfile, replayedfile):
            patch.setattr(module, "RE_READ_SECONDS", 0)
        play = Play(Path(folder))
        for name, which in steps:
            play.step(name, play.stores[which])
            fresh = JsonlStore.open(play.file).read()
            for store in play.stores:
                snapshot = store.read()
                assert snapshot.verification == fresh.verification == store.verify()
                assert snapshot.state.digest() == fresh.state.digest()
                assert [row.value for row in snapshot.rows] == [row.value for row in fresh.rows]
        known = [row.id for row in JsonlStore.open(play.file).read().rows]
        assert [identifier for identifier in known if identifier in set(play.acked)] == play.acked
