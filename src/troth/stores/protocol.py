"""What a store of a ledger is: the few operations that every face uses, whatever holds the rows.

:class:`troth.stores.jsonl.JsonlStore` keeps them in a JSON Lines file, the default and the form of exchange,
:class:`troth.stores.postgres.store.PostgresStore` in a database. Both hold the same bytes of each row, so hashes,
heads and faults are the same; one suite of tests is passed by both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from troth.core.errors import Refused
    from troth.ledger.chain import Verification
    from troth.ledger.genesis import Genesis
    from troth.ledger.governance import Ruling
    from troth.ledger.leaves import Leaves
    from troth.ledger.operations import Candidate
    from troth.stores.index import Summary
    from troth.stores.snapshot import Snapshot
    from troth.stores.waiting import Build
    from troth.stores.workspace import Config, Workspace


class Note(str):
    """A sentence for a person about something that happened on the way, with a stable ``code``."""

    __slots__ = ("code",)
    code: str

    def __new__(cls, code: str, text: str) -> Note:
        """Return the sentence."""
        note = super().__new__(cls, text)
        note.code = code
        return note


def moved_on(head: str) -> Note:
    """Return what is told of a row that was decided on when the ledger had another head (ledger spec §7)."""
    return Note("blind_write", f"blind_write: the ledger moved on; its head is {head}")


Notify = Callable[[str], None]
"""Takes sentences for a person, each a :class:`Note`."""

Progress = Callable[[int, int], None]
"""Told how much is done and how much there is, now and then; the unit is the store's own."""


Keep = Callable[[Sequence["dict[str, Any] | Refused"]], bool]
"""Decides, of the answers to many rows, whether they are written."""


def keep_all(_: object) -> bool:
    """Keep whatever was accepted."""
    return True


def quiet(_: str) -> None:
    """Take a sentence and tell nobody."""


def no_progress(_: int, __: int) -> None:
    """Take a measure and show nothing."""


class LedgerStore(Protocol):
    """One ledger, open.

    ``workspace`` is the name written into new rows (``None``: the newest row's), ``unhashed_prefix`` the exact
    number of unhashed rows permitted (``None``: any), ``space`` the local workspace folder, if there is one, and
    ``config`` its settings. ``location`` names the ledger in messages and holds no secret.
    """

    workspace: str | None
    unhashed_prefix: int | None
    config: Config
    space: Workspace | None
    notify: Notify

    @property
    def location(self) -> str:
        """Return what names the ledger in messages."""

    def verify(
        self,
        *,
        expect_head: str | None = None,
        expect_rows: int | None = None,
        workers: int | None = None,
        progress: Progress = no_progress,
        leaves: Leaves | None = None,
    ) -> Verification:
        """Verify every row from the first on; nothing remembered is used (ledger spec §4, Verifier).

        ``leaves`` takes the leaf of every well-formed row, in order (:mod:`troth.ledger.leaves`).
        """

    def read(self, *, trust: bool = False) -> Snapshot:
        """Return what the ledger says now: verified and replayed; faults are told in its verification.

        ``trust`` announces that the snapshot will be asked for confidence, so that all is done in one pass.
        """

    def summary(self) -> Summary:
        """Return what ``status`` tells."""

    def append(
        self,
        candidate: Candidate,
        *,
        engine_trust: dict[str, Any] | None = None,
        seen: str | None = None,
        okf_ingest: bool = False,
    ) -> dict[str, Any]:
        """Append one row and return it, complete, once it is durable (ledger spec §5)."""

    def append_with(
        self,
        build: Build,
        *,
        seen: str | None = None,
        okf_ingest: bool = False,
    ) -> dict[str, Any]:
        """Append the row that ``build`` decides on while nobody else can write."""

    def append_many(
        self,
        builds: Sequence[Build],
        *,
        okf_ingest: bool = False,
        keep: Keep = keep_all,
        seen: str | None = None,
    ) -> list[dict[str, Any] | Refused]:
        """Append the rows that each of ``builds`` decides on, in order, durable together before the answer.

        Each is judged by the state that those before it leave. For every one the row comes back, or why it was
        refused; a refusal stops no other. ``keep`` is told the answers once all are judged, and unless it says yes
        nothing is written at all.
        """

    def ruling(self) -> Ruling:
        """Return what governs the ledger now: no genesis key, a valid one, or an invalid one and why."""

    def genesis(self) -> Genesis | None:
        """Return the key in force, ``None`` where there is none; an invalid one is raised (ledger spec §11)."""

    def rehearse(self, build: Callable[[Snapshot], Candidate]) -> None:
        """Refuse what :meth:`append_with` would refuse now; nothing is locked, written or promised."""

    def lines(self) -> Iterator[bytes]:
        """Yield the ledger's bytes as they stand in a JSON Lines file; joined, they are that file.

        Each piece is a line with its LF. The last line of a file may lack it, and of a line too long to be a row
        several pieces come.
        """

    def fill(self, rows: Sequence[dict[str, Any]]) -> None:
        """Write complete, chained rows into a ledger that holds none, all of them or nothing (``E_NOT_EMPTY``)."""

    def load(self, lines: Iterable[bytes]) -> Verification:
        """Write a whole ledger's lines, without LF, into one that holds none, once they verify (``E_NOT_EMPTY``)."""

    def repair_tail(self) -> Path | None:
        """Set a torn last line aside and return where it went; refused where no line can be torn."""

    def close(self) -> None:
        """Close what is open; the next use opens it again."""
