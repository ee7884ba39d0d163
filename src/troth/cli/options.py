"""Options that many commands share, and the two things they stand for: which ledger, and who acts."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from troth.cli.answer import note, printable
from troth.core.errors import Refused

if TYPE_CHECKING:
    from datetime import datetime

    from troth.stores.protocol import LedgerStore
    from troth.stores.workspace import Workspace

_F = TypeVar("_F", bound=Callable[..., Any])

ACTOR_VARIABLE = "TROTH_ACTOR"


class Seconds(click.FloatRange):
    """A time in seconds within a range, and a finite one: ``nan`` is within every range and no time at all."""

    name = "seconds"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the number, or fail as a range does."""
        found: float = super().convert(value, param, ctx)
        if not math.isfinite(found):
            self.fail(f"{value} is no time.", param, ctx)
        return found


WEEK = 604_800
"""Longest time that a call or a run of a review is given, in seconds."""


def json_option(command: _F) -> _F:
    """Add ``--json``."""
    return click.option("--json", "as_json", is_flag=True, help="Print one JSON object on stdout.")(command)


def store_option(command: _F) -> _F:
    """Add ``--store``, also written ``--ledger``."""
    return click.option(
        "--store",
        "--ledger",
        "store",
        metavar="PATH|URL",
        help="Another ledger: a file, a folder that holds .mentu, or postgresql://HOST/DATABASE?workspace=NAME. "
        "Default: searched for upward from here.",
    )(command)


def actor_option(command: _F) -> _F:
    """Add ``--as``, also written ``--actor``."""
    return click.option(
        "--as",
        "--actor",
        "actor",
        metavar="ACTOR",
        help="Who acts: human:NAME, agent:NAME, system:NAME or an e-mail address. Default: TROTH_ACTOR, then the "
        "workspace's settings, then human:<login>.",
    )(command)


def seen_option(command: _F) -> _F:
    """Add ``--seen``."""
    return click.option(
        "--seen",
        metavar="HEAD",
        help="The head digest you acted on; if the ledger moved on since, a blind_write warning says so.",
    )(command)


def writing_options(command: _F) -> _F:
    """Add what every command that appends a row takes."""
    return json_option(store_option(actor_option(seen_option(command))))


def reading_options(command: _F) -> _F:
    """Add what every command that reads takes."""
    return json_option(store_option(command))


def trust_options(command: _F) -> _F:
    """Add ``--key``, whom to trust, and ``--quorum``."""
    command = click.option(
        "--quorum",
        type=click.IntRange(0),
        default=0,
        metavar="N",
        help="How many of the witnesses named with --key must have signed.",
    )(command)
    return click.option(
        "--key",
        "keys",
        multiple=True,
        metavar="KEY",
        help="Whom to trust: NAME+ID+BASE64, a file of such lines (./FILE), or the name of one of your own keys. "
        "Repeatable.",
    )(command)


def at_option(command: _F) -> _F:
    """Add ``--at``, which makes an answer that depends on time reproducible; see :func:`reading_instant`."""
    return click.option(
        "--at",
        metavar="INSTANT",
        help="Answer as of this instant, YYYY-MM-DDTHH:MM:SSZ, instead of now. Rows written later still count.",
    )(command)


def reading_instant(at: str | None, option: str = "--at") -> datetime:
    """Return the instant that an option names, else the machine's present one.

    Raises:
        Refused: ``E_USAGE`` when it is no real UTC date and time.
    """
    from troth.core.instants import parse_instant, system_clock

    if at is None:
        return system_clock()
    instant = parse_instant(at)
    if instant is None:
        raise Refused(
            "E_USAGE",
            f"{option} takes an instant, not {printable(at, 80)!r}",
            remedy="Write it like 2026-04-02T10:30:00Z.",
        )
    return instant


class Notes(list[tuple[str, str]]):
    """Collects (code, text) of what happened on the way; each is also told on stderr at once."""

    def __call__(self, text: str) -> None:
        """Take one note."""
        self.append((getattr(text, "code", "note"), text))
        note(f"troth: {printable(text)}")

    def as_json(self) -> list[dict[str, str]]:
        """Return the notes in the form of warnings."""
        return [{"warning": code, "message": text} for code, text in self]


def progress_note() -> Callable[[str], None]:
    """Return what tells progress on stderr where a person looks at it, and nobody otherwise."""
    return (lambda text: note(f"troth: {text}")) if sys.stderr.isatty() else (lambda _: None)


def open_ledger(where: str | None, notes: Notes | None = None) -> LedgerStore:
    """Open the ledger that ``--store`` names, or the one found upward from the current folder.

    Raises:
        Refused: there is none, or its settings cannot be read.
    """
    from troth.stores import opening

    return opening.open_store(where, notify=Notes() if notes is None else notes)


def open_store(where: str | None, notes: Notes | None = None) -> tuple[Workspace | None, LedgerStore]:
    """Open the ledger as :func:`open_ledger` does, and return its workspace too; a bare file has none."""
    store = open_ledger(where, notes)
    return store.space, store


def acting(actor: str | None, store: LedgerStore) -> str:
    """Return who acts: the option, else ``TROTH_ACTOR``, else the workspace's settings, else ``human:<login>``.

    Raises:
        Refused: ``E_USAGE`` when none of them says.
    """
    return _actor(actor, store.config.actor)


def actor_of(actor: str | None, workspace: Workspace) -> str:
    """Return who acts, as :func:`acting` does."""
    return _actor(actor, workspace.config().actor)


def actor_without(actor: str | None) -> str:
    """Return who acts outside of a workspace, as :func:`acting` does."""
    return _actor(actor, None)


def _actor(named: str | None, configured: str | None) -> str:
    if named is not None:
        return named
    return os.environ.get(ACTOR_VARIABLE) or configured or f"human:{_login()}"


def _login() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        raise Refused("E_USAGE", "this machine does not say who you are", remedy="Name the actor with --as.") from None
