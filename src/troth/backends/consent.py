"""Consent: nothing leaves until a person agreed that it goes to that address (Impasse §9).

Consent is given for a key (:mod:`troth.backends.endpoint`), which names a place and nothing else. It blocks by default.
Asked in this order, and the first that names the key exactly counts:

1. the approval of one run (an option of its command);
2. the approval of one process and what it starts (:data:`VARIABLE`, keys apart by spaces or commas);
3. a stored grant, given under the notice that is in force.

The store is a file of the user's own, outside every workspace, so that nothing that is reviewed can grant anything.
What is in it is taken whole or not at all: a file that is not what is written here is an empty one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from troth.backends.endpoint import named_key
from troth.core.errors import Refused
from troth.core.instants import parse_instant

VARIABLE: Final = "TROTH_REVIEW_CONSENT"
"""Names the keys that one process may send to."""

NOTICE_VERSION: Final = 1
"""Of :data:`NOTICE`. A grant that was given under another one counts no longer."""

NOTICE: Final = (
    "The whole artifact and the instruction are sent to this address. Who runs it may keep them and use them as its "
    "terms say; what was sent cannot be called back. Each run shows what is sent before it leaves."
)

MOST_BYTES: Final = 1 << 20
"""Largest file of grants read."""

MOST_GRANTS: Final = 1000

Basis = Literal["run", "process", "stored"]


class PrivateFile(Protocol):
    """A file that only its owner reads and writes."""

    def read(self) -> bytes | None:
        """Return its bytes, ``None`` where there is none."""
        ...

    def change(self, change: Callable[[bytes | None], bytes]) -> None:
        """Replace its bytes by what ``change`` makes of them, all at once and one writer at a time."""
        ...


@dataclass(frozen=True, slots=True)
class Grant:
    """A stored consent: for which key, under which notice, since when (an instant as text)."""

    key: str
    notice: int
    at: str

    @property
    def in_force(self) -> bool:
        """Tell whether it was given under the notice of today."""
        return self.notice == NOTICE_VERSION

    def as_json(self) -> dict[str, Any]:
        """Return the members that the store keeps."""
        return {"key": self.key, "notice": self.notice, "at": self.at}


def parse_grants(data: bytes | None) -> dict[str, Grant]:
    """Return the grants of a store by key; a store that is absent or malformed in any place holds none."""
    if data is None or len(data) > MOST_BYTES:
        return {}
    try:
        value = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict) or set(value) != {"grants"} or not isinstance(value["grants"], list):
        return {}
    found: dict[str, Grant] = {}
    for entry in value["grants"]:
        grant = _grant(entry)
        if grant is None or grant.key in found:
            return {}
        found[grant.key] = grant
    return found


def _grant(entry: object) -> Grant | None:
    if not isinstance(entry, dict) or set(entry) != {"key", "notice", "at"}:
        return None
    key, notice, at = entry["key"], entry["notice"], entry["at"]
    if not isinstance(key, str) or not isinstance(at, str) or not isinstance(notice, int) or isinstance(notice, bool):
        return None
    try:
        if named_key(key) != key or parse_instant(at) is None:
            return None
    except Refused:
        return None
    return Grant(key, notice, at)


def grants_bytes(grants: Mapping[str, Grant]) -> bytes:
    """Return the bytes of a store that holds the grants, by key."""
    entries = [grants[key].as_json() for key in sorted(grants)]
    return (json.dumps({"grants": entries}, indent=1) + "\n").encode()


class ConsentStore:
    """The user's stored grants.

    Args:
        file: where they lie.
    """

    def __init__(self, file: PrivateFile) -> None:
        self._file = file

    def grants(self) -> dict[str, Grant]:
        """Return the grants by key, those of older notices as well.

        Raises:
            Refused: the file is a symbolic link, or others may write it.
        """
        return parse_grants(self._file.read())

    def grant(self, key: str, at: str) -> Grant:
        """Agree that anything is sent to the key from now on, and return the grant.

        Args:
            key: as :func:`troth.backends.endpoint.named_key` returns it.
            at: the present instant as text.

        Raises:
            Refused: ``E_ENDPOINT``; and as :meth:`grants`.
        """
        if named_key(key) != key:
            raise Refused("E_ENDPOINT", f"consent is given for {named_key(key)}, not for {key}")
        made = Grant(key, NOTICE_VERSION, at)

        def added(data: bytes | None) -> bytes:
            held = parse_grants(data)
            held[key] = made
            if len(held) > MOST_GRANTS:
                raise Refused("E_ENDPOINT", f"there are {MOST_GRANTS} grants already", remedy="Revoke some.")
            return grants_bytes(held)

        self._file.change(added)
        return made

    def revoke(self, keys: Iterable[str]) -> list[str]:
        """Take grants back and return the keys that there were grants for; ``keys`` as the store has them.

        Raises:
            Refused: as :meth:`grants`.
        """
        wanted = list(dict.fromkeys(keys))
        gone: list[str] = []

        def without(data: bytes | None) -> bytes:
            held = parse_grants(data)
            gone.extend(key for key in wanted if held.pop(key, None) is not None)
            return grants_bytes(held)

        self._file.change(without)
        return gone


@dataclass(frozen=True, slots=True)
class Consent:
    """Whether something may be sent to a key: what says so, or ``None`` and why not."""

    key: str
    basis: Basis | None
    reason: str

    @property
    def given(self) -> bool:
        """Tell whether it may be sent."""
        return self.basis is not None

    def as_json(self) -> dict[str, Any]:
        """Return the members that a record of a run keeps."""
        return {"key": self.key, "basis": self.basis, "reason": self.reason}


def consent(
    key: str, *, approved: Iterable[str], environment: Mapping[str, str], grants: Mapping[str, Grant]
) -> Consent:
    """Return whether anything may be sent to the key, in the order of this module's text.

    Args:
        key: of the backend.
        approved: the keys that this run's command names, as they were written.
        environment: of the process.
        grants: as :meth:`ConsentStore.grants` returns them.
    """
    if any(one == key for one in approved):
        return Consent(key, "run", "approved for this run")
    if key in environment.get(VARIABLE, "").replace(",", " ").split():
        return Consent(key, "process", f"approved for this process by {VARIABLE}")
    grant = grants.get(key)
    if grant is None:
        return Consent(key, None, "nobody agreed that anything is sent there")
    if not grant.in_force:
        return Consent(key, None, f"the grant is under notice {grant.notice}, and notice {NOTICE_VERSION} is in force")
    return Consent(key, "stored", f"granted on {grant.at}")


def denied(found: Consent) -> Refused:
    """Return the refusal of a run that may send nothing."""
    return Refused(
        "consent_denied",
        f"nothing is sent to {found.key}: {found.reason}",
        remedy=f"A person agrees for good with `troth review consent grant {found.key}`, for one run with "
        f"--approve {found.key}.",
    )
