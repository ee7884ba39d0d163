"""The throw-away index: what a large, sound ledger amounted to when it was last read, kept in the user's cache folder.

It is used only while the ledger's identity is what it was (of a file: device, inode, size, modification and change
times; of a ledger in a database: its lines and its head digest), and deleting it changes nothing but time. What an
unchanged identity cannot show, it cannot show either: somebody who sets the clock, writes to the disk beneath the file
system, or switches the database's guards off. ``troth verify`` never uses it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import orjson

from troth import __version__
from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.ledger.chain import Verification, Warning_
from troth.ledger.confidence import Standing, Trust
from troth.ledger.replay import Anomaly, Commitment, Note, Submission
from troth.stores.durable import open_regular
from troth.stores.memory import Identity
from troth.stores.memory import identity as file_identity
from troth.stores.snapshot import Snapshot

WORTH_BYTES: Final = 1 << 20
"""A smaller ledger is read as quickly as an index."""

SETTLED_NANOSECONDS: Final = 2_000_000_000
"""Clocks of file systems are coarse: a change right after the last one may leave the times as they were, so an index
counts only when it was made this long after the ledger's last change."""

_MOST_WARNINGS: Final = 1000
_COMMITMENT: Final = tuple(field.name for field in fields(Commitment))
_TAGS: Final = _COMMITMENT.index("tags")
_SUBMISSION: Final = _COMMITMENT.index("submission")
_FORMAT: Final = [3, __version__, list(_COMMITMENT), list(Standing._fields)]

_DAMAGED: Final = (ValueError, KeyError, TypeError, IndexError, AttributeError)

FEW: Final = 20
"""Rows without effect that a summary has at hand."""


@dataclass(frozen=True, slots=True)
class Everything:
    """All commitments and all rows without effect, in file order, and what each commitment's evidence is worth."""

    commitments: Mapping[str, Commitment]
    anomalies: Iterable[Anomaly]
    evidence: Mapping[str, Standing]


@dataclass(frozen=True, slots=True)
class Summary:
    """What ``status`` tells.

    ``live`` holds the commitments that are not closed, in file order, ``closed`` counts the others. ``anomalies``
    holds the first :data:`FEW` of ``anomaly_count`` rows without effect, ``notes`` what replay and the reading of
    trust remarked. ``evidence`` tells what the evidence of live commitments is worth. ``uncommitted`` counts the
    observations that no commitment names and nobody dismissed. ``everything`` gives the whole, which of a large ledger
    takes a moment.
    """

    verification: Verification
    live: list[Commitment]
    closed: int
    anomalies: list[Anomaly]
    anomaly_count: int
    notes: list[Note]
    uncommitted: int
    evidence: Mapping[str, Standing]
    everything: Callable[[], Everything]


def evidence_of(record: Commitment) -> str | None:
    """Return the id of what a commitment closed with or waits in review with."""
    return record.submission.evidence if record.submission is not None else record.evidence


def worth(records: Iterable[Commitment], trust: Trust) -> dict[str, Standing]:
    """Return what the evidence of commitments is worth, by the evidence's id."""
    named = dict.fromkeys(filter(None, map(evidence_of, records)))
    return {name: trust.standing(name) for name in named if name in trust}


def summary_of(snapshot: Snapshot) -> Summary:
    """Return the summary of a replayed ledger."""
    state, trust = snapshot.state, snapshot.trust
    live = [record for record in state.commitments.values() if record.state != "closed"]
    remarked = [Note(found.line or 0, found.id, found.warning, found.message) for found in trust.warnings]
    return Summary(
        verification=snapshot.verification,
        live=live,
        closed=len(state.commitments) - len(live),
        anomalies=state.anomalies[:FEW],
        anomaly_count=len(state.anomalies),
        notes=sorted([*state.notes, *remarked], key=lambda found: found.line),
        uncommitted=sum(1 for name in state.uncommitted() if state.signals[name].kind == "observation"),
        evidence=worth(live, trust),
        everything=lambda: Everything(state.commitments, state.anomalies, worth(state.commitments.values(), trust)),
    )


class Covered(NamedTuple):
    """What a summary is about.

    ``name`` names the ledger, ``identity`` is what tells that it is unchanged, ``unhashed_prefix`` the setting it was
    read with, and ``changed`` the time of its last change, as far as times are part of the identity (nanoseconds).
    """

    name: bytes
    identity: tuple[int | str, ...]
    unhashed_prefix: int | None
    changed: int | None


def file_covered(ledger: Path, identity: Identity, unhashed_prefix: int | None) -> Covered | None:
    """Return what a summary of a ledger file is about, ``None`` for a file too small to be worth one."""
    if identity[2] < WORTH_BYTES:
        return None
    return Covered(os.fsencode(ledger), identity, unhashed_prefix, max(identity[3], identity[4]))


def load(covered: Covered, otherwise: Callable[[], Everything]) -> Summary | None:
    """Return the summary of an unchanged ledger, if there is one.

    ``otherwise`` reads the ledger itself, for when what stands behind the summary turns out to be damaged.
    """
    path = _path(covered.name)
    if path is None:
        return None
    try:
        with _opened(path) as file, _no_collecting():
            own = file_identity(file.fileno())
            line = file.readline()
            rest = _Rest(path, own, len(line))
            brief = orjson.loads(line)
            if brief["key"] != _key(covered):
                return None
            if covered.changed is not None and brief["made"] - covered.changed < SETTLED_NANOSECONDS:
                return None
            return _summary(brief, rest, otherwise)
    except (Refused, OSError, *_DAMAGED):
        # Whatever is wrong with it, the ledger says the same.
        return None


def _opened(path: Path) -> BinaryIO:
    # No link is followed and no pipe waited for.
    return os.fdopen(open_regular(path, os.O_RDONLY, "E_UNREADABLE", "the index"), "rb")


@contextlib.contextmanager
def _no_collecting() -> Iterator[None]:
    """Keep the collector still: nothing that is read is garbage, and looking for some takes longer than reading."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class _Rest(NamedTuple):
    """Where the part of an index lies that few ask for; the file is only ever replaced, never changed."""

    path: Path
    identity: Identity
    start: int

    def read(self) -> bytes:
        """Return its bytes; raises ``ValueError`` when another index stands there now."""
        with _opened(self.path) as file:
            if file_identity(file.fileno()) != self.identity:
                raise ValueError("replaced")
            file.seek(self.start)
            return file.read()


def save(covered: Covered, summary: Summary) -> None:
    """Keep the summary of a sound ledger; does nothing where that is not possible."""
    found = summary.verification
    path = _path(covered.name)
    if path is None or not found.ok or len(found.warnings) > _MOST_WARNINGS:
        return
    whole = summary.everything()
    brief = {
        "key": _key(covered),
        "made": time.time_ns(),
        "verification": found.as_json(),
        "live": [commitment_values(record) for record in summary.live],
        "closed": summary.closed,
        "anomalies": [_anomaly(found) for found in summary.anomalies],
        "anomaly_count": summary.anomaly_count,
        "notes": [[found.line, found.id, found.warning, found.message] for found in summary.notes],
        "uncommitted": summary.uncommitted,
        "evidence": _stored(summary.evidence),
    }
    rest = {
        "commitments": [commitment_values(record) for record in whole.commitments.values()],
        "anomalies": [_anomaly(found) for found in whole.anomalies],
        "evidence": _stored(whole.evidence),
    }
    temp = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError, orjson.JSONEncodeError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            with os.fdopen(os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(orjson.dumps(brief) + b"\n" + orjson.dumps(rest))
            temp.replace(path)
        finally:
            temp.unlink(missing_ok=True)


def cache_folder() -> Path | None:
    """Return the folder for what may be deleted at any time, ``None`` where the machine names none."""
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local, "troth", "cache") if local else None
    named = os.environ.get("XDG_CACHE_HOME")
    if named and Path(named).is_absolute():
        return Path(named, "troth")
    home = os.environ.get("HOME")
    if not home or not Path(home).is_absolute():
        return None
    return Path(home, "Library", "Caches", "troth") if sys.platform == "darwin" else Path(home, ".cache", "troth")


def _path(name: bytes) -> Path | None:
    folder = cache_folder()
    return folder / "ledgers" / f"{sha256_hex(name)}.json" if folder is not None else None


def _key(covered: Covered) -> list[Any]:
    return [_FORMAT, covered.name.hex(), list(covered.identity), covered.unhashed_prefix]


def commitment_members() -> str:
    """Return the members of a commitment, by which what was kept by another version is told."""
    return " ".join(_COMMITMENT)


def commitment_values(record: Commitment) -> list[Any]:
    """Return a commitment as JSON holds it, for :func:`commitment_of`."""
    values = [getattr(record, name) for name in _COMMITMENT]
    if record.submission is not None:
        values[_SUBMISSION] = list(record.submission)
    return values


def _anomaly(found: Anomaly) -> list[Any]:
    return [found.line, found.id, found.code, found.detail]


def commitment_of(values: list[Any]) -> Commitment:
    """Return the commitment that was kept."""
    values[_TAGS] = tuple(values[_TAGS])
    if values[_SUBMISSION] is not None:
        values[_SUBMISSION] = Submission(*values[_SUBMISSION])
    return Commitment(*values)


def _stored(evidence: Mapping[str, Standing]) -> dict[str, list[Any]]:
    return {name: list(standing) for name, standing in evidence.items()}


def _standings(stored: dict[str, list[Any]]) -> dict[str, Standing]:
    return {name: Standing(*values) for name, values in stored.items()}


def _everything(rest: _Rest, otherwise: Callable[[], Everything]) -> Everything:
    try:
        with _no_collecting():
            stored = orjson.loads(rest.read())
            commitments = {values[0]: commitment_of(values) for values in stored["commitments"]}
            anomalies = [Anomaly(*values) for values in stored["anomalies"]]
            return Everything(commitments, anomalies, _standings(stored["evidence"]))
    except (Refused, OSError, *_DAMAGED):
        return otherwise()


def must_be_counts(*values: Any) -> None:
    """Refuse what stands in the place of a count and is none.

    Raises:
        TypeError: somebody bent it.
    """
    if not all(type(value) is int and value >= 0 for value in values):
        raise TypeError("no count")


def verification_of(told: Mapping[str, Any], *, torn_tail: bool) -> Verification:
    """Return what was found in a sound ledger, as it was kept.

    Raises:
        KeyError, TypeError: somebody bent it.
    """
    must_be_counts(told["verified"], told["total"], told["unhashed"], told["hashed"])
    prefix = told["prefix_sha256"]
    if (
        not isinstance(told["head"], str)
        or not isinstance(told["last_hash"], str)
        or not isinstance(prefix, str | None)
    ):
        raise TypeError("no digest")
    return Verification(
        verified=told["verified"],
        total=told["total"],
        unhashed=told["unhashed"],
        hashed=told["hashed"],
        faults=(),
        warnings=tuple(Warning_(**warning) for warning in told["warnings"]),
        head=told["head"],
        last_hash=told["last_hash"],
        torn_tail=torn_tail,
        prefix_sha256=prefix,
    )


def _summary(brief: dict[str, Any], rest: _Rest, otherwise: Callable[[], Everything]) -> Summary:
    must_be_counts(brief["closed"], brief["anomaly_count"], brief["uncommitted"])
    return Summary(
        verification=verification_of(brief["verification"], torn_tail=False),
        live=[commitment_of(values) for values in brief["live"]],
        closed=brief["closed"],
        anomalies=[Anomaly(*values) for values in brief["anomalies"]],
        anomaly_count=brief["anomaly_count"],
        notes=[Note(*values) for values in brief["notes"]],
        uncommitted=brief["uncommitted"],
        evidence=_standings(brief["evidence"]),
        everything=lambda: _everything(rest, otherwise),
    )
