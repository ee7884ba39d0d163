"""The genesis key of a ledger in a database: the last one enacted, parsed once for the same bytes (ledger spec §11)."""

from __future__ import annotations

from collections.abc import Sequence

from troth.ledger.governance import NO_KEY, Ruling, ruling_of
from troth.stores.postgres.driver import speaking
from troth.stores.postgres.session import Session


class Constitution:
    """The keys of one workspace; the one with the highest number counts.

    Args:
        session: the workspace.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: tuple[bytes | None, bytes | None] | None = None
        self._ruling = NO_KEY

    def ruling(self, signers: Sequence[str]) -> Ruling:
        """Return what governs now.

        Args:
            signers: the public keys of which one must have signed the key, from the settings.

        Raises:
            Refused, Busy: the database cannot be asked.
        """
        session = self._session
        with session.threads, speaking(session.address):
            conn = session.connected()
            query = "SELECT data, signature FROM troth.constitutions WHERE workspace = %s ORDER BY number DESC LIMIT 1"
            key = conn.execute(query, (session.id,)).fetchone() or (None, None)
            if key != self._known:
                self._ruling = ruling_of(key[0], file=session.address.shown, signature=key[1], signers=signers)
                self._known = key
            return self._ruling

    def enact(self, key: bytes | None, signature: bytes | None, signers: Sequence[str]) -> bool:
        """Put a key in force, or with ``None`` remove it; return whether anything changed.

        Raises:
            Refused: ``E_CONSTRAINT_VIOLATED`` (``genesis_invalid``) for an invalid key, ``E_STORE_REFUSED``.
            NotEstablished: ``E_OUTCOME_UNKNOWN``; doing it again does no harm.
        """
        ruling_of(key, signature=signature, signers=signers).in_force()
        with self._session.threads, self._session.writing() as held:
            conn = self._session.current()
            query = "SELECT number, data, signature FROM troth.constitutions WHERE workspace = %s ORDER BY number DESC"
            last = conn.execute(query, (held.id,)).fetchone() or (0, None, None)
            if last[1:] == (key, signature):
                return False
            conn.execute(
                "INSERT INTO troth.constitutions (workspace, number, data, signature) VALUES (%s, %s, %s, %s)",
                (held.id, last[0] + 1, key, signature),
            )
            self._session.commit_unmarked()
            return True
