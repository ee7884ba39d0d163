"""The database driver: found when it is needed, its faults told in this program's words."""

from __future__ import annotations

import ipaddress
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from troth.core.errors import Busy, Place, Refused, TrothError
from troth.stores.postgres.address import Address

if TYPE_CHECKING:
    import psycopg

CONNECT_SECONDS: Final = 10
"""How long the driver tries one address, where ``connect_timeout`` does not say otherwise."""

PING_SECONDS: Final = 2
"""How long it takes at most to tell a server that refuses us from one that is not there."""

_BUSY: Final = {
    "55P03": "another writer has held the ledger too long",
    "40001": "another transaction was at work on the same rows",
    "40P01": "another transaction was at work on the same rows",
    "57014": "the database took too long",
    "53300": "the database has no connection left",
}
_UNPROVEN: Final = (
    "certificate verify failed", "does not match host name", "root certificate file", "does not support SSL",
    "certificate authentication", "no encryption", "SSL error: ",
)  # fmt: skip
"""What the driver says when a server does not prove who it is, or one of the two will not encrypt."""

_NO_SCHEMA: Final = frozenset({"42P01", "3F000", "42883", "42703"})
_LOST: Final = ("08", "57P", "25P03", "25P04")
_NOT_DURABLE: Final = ("53", "58", "54", "XX")


def load() -> Any:
    """Return the module ``psycopg``.

    Raises:
        Refused: ``E_NO_DRIVER`` where it is not installed.
    """
    try:
        import psycopg
    except ImportError as fault:
        raise Refused(
            "E_NO_DRIVER",
            f"a ledger in PostgreSQL needs the package psycopg ({fault})",
            remedy="Install it with: pip install 'troth[postgres]'",
        ) from None
    return psycopg


def connect(address: Address, deadline: float | None = None) -> psycopg.Connection[Any]:
    """Return a new connection on which every statement is its own transaction unless it says BEGIN.

    Args:
        address: where to.
        deadline: try again until this instant of the monotonic clock; by default a server that is not there is
            told at once.

    Raises:
        Busy: ``E_STORE_LOST``, nobody answers or the server is starting or stopping.
        Refused: ``E_STORE_REFUSED`` when the server answers and lets us not in, ``E_USAGE`` for bad parameters.
    """
    psycopg = load()
    again = True
    while True:
        try:
            return psycopg.connect(  # type: ignore[no-any-return]  # the module is loaded late, so its types are lost
                address.conninfo, autocommit=True, prepare_threshold=None, **_defaults(address)
            )
        except psycopg.OperationalError as fault:
            up = _unproven(fault) or _is_up(address)
            # A server that was starting a moment ago may be up by now, so its refusal counts the second time.
            if not (up and again) and (up or deadline is None or time.monotonic() > deadline):
                raise _not_connected(address, fault, up) from None
            again = not up
            if not up:
                time.sleep(0.05)
        except psycopg.Error:
            # The driver repeats what it could not read, and that may be a part of a password.
            raise Refused(
                "E_USAGE", "the driver does not understand the address of the database", place=_place(address)
            ) from None


def _defaults(address: Address) -> dict[str, Any]:
    from psycopg.conninfo import conninfo_to_dict

    said = conninfo_to_dict(address.conninfo)
    given = {"application_name": "troth", "connect_timeout": CONNECT_SECONDS, "client_encoding": "UTF8"}
    return {name: value for name, value in (given | proof_demanded(said, os.environ)).items() if name not in said}


def proof_demanded(said: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, str]:
    """Return the TLS parameters of an address that says nothing of them.

    libpq's own default speaks in the clear with whoever answers. To another machine that is not enough: its server has
    to prove its name, by an authority of this system, or that of ``~/.postgresql/root.crt`` where there is one.

    Args:
        said: the parameters of the address.
        environment: where libpq looks for what the address does not say.
    """
    decided = {"sslmode", "service"} & said.keys() or {"PGSSLMODE", "PGSERVICE"} & environment.keys()
    # Where a number stands beside a name, libpq goes to the number: both have to be this machine's.
    places = [
        place
        for member, variable in (("host", "PGHOST"), ("hostaddr", "PGHOSTADDR"))
        for place in str(said.get(member) or environment.get(variable) or "").split(",")
    ]
    if decided or all(map(_on_this_machine, places)):
        return {}
    own = Path(environment.get("HOME", "/")) / ".postgresql" / "root.crt"
    by_file = "sslrootcert" in said or "PGSSLROOTCERT" in environment or own.exists()
    return {"sslmode": "verify-full"} | ({} if by_file else {"sslrootcert": "system"})


def _on_this_machine(host: str) -> bool:
    if host in ("", "localhost") or host.startswith(("/", "@")):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _unproven(fault: Exception) -> bool:
    return any(words in str(fault) for words in _UNPROVEN)


def _is_up(address: Address) -> bool:
    """Tell whether a server answers and takes connections, whoever asks."""
    from psycopg import Error, conninfo, pq

    try:
        asked = conninfo.make_conninfo(address.conninfo, connect_timeout=PING_SECONDS)
    except Error:
        return False
    return pq.PGconn.ping(asked.encode()) == pq.Ping.OK


def _not_connected(address: Address, fault: Exception, up: bool) -> TrothError:
    said = address.scrubbed(str(fault))
    if _unproven(fault):
        return Refused(
            "E_STORE_REFUSED",
            f"the database's server did not prove who it is, or will not encrypt: {said}",
            place=_place(address),
            remedy="Name its authority's certificate with sslrootcert=FILE and the host by the certificate's name; "
            "sslmode=disable in the address speaks in the clear.",
        )
    if up:
        return Refused(
            "E_STORE_REFUSED",
            f"the database does not let us in: {said}",
            place=_place(address),
            remedy="See that user, password and database are right.",
        )
    return Busy(
        "E_STORE_LOST",
        f"the database cannot be reached: {said}",
        place=_place(address),
        remedy="Try again when it is there.",
        detail="not_recorded",
    )


@contextmanager
def speaking(address: Address) -> Iterator[None]:
    """Turn the driver's faults into refusals; nothing is known to be recorded when one of them leaves here."""
    psycopg = load()
    try:
        yield
    except psycopg.Error as fault:
        raise told(address, fault) from None


def told(address: Address, fault: psycopg.Error) -> TrothError:
    """Return what a fault of the driver means."""
    state = fault.sqlstate
    said = address.scrubbed(fault.diag.message_primary or str(fault))
    place = _place(address)
    if state is None or state.startswith(_LOST):
        return Busy(
            "E_STORE_LOST",
            f"the connection to the database broke: {said}",
            place=place,
            remedy="Nothing was recorded; try again.",
            detail="not_recorded",
        )
    if state in _BUSY:
        return Busy("E_BUSY", f"{_BUSY[state]}: {said}", place=place, remedy="Try again.")
    if state == "25006" or (state == "0A000" and "during recovery" in said):
        return Refused(
            "E_STORE_READ_ONLY",
            f"the database takes no rows now; it is a standby, or set to be read only: {said}",
            place=place,
            remedy="Nothing was recorded. Name the primary, or all servers with target_session_attrs=read-write.",
            detail="not_recorded",
        )
    if state in _NO_SCHEMA:
        return Refused(
            "E_STORE_SCHEMA",
            f"the database does not hold what a ledger needs: {said}",
            place=place,
            remedy="Set it up with: troth init --store URL",
        )
    if state.startswith(_NOT_DURABLE):
        return Refused("E_WRITE_FAILED", f"the database could not do it: {said}", place=place, detail=state)
    return Refused("E_STORE_REFUSED", f"the database refuses: {said}", place=place, detail=state)


def _place(address: Address) -> Place:
    return Place(file=address.shown)
