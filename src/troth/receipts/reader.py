"""One pass over a member: every file read once, hashed once, parsed once, however often it is asked for."""

from __future__ import annotations

from typing import Any, Final

from troth.core.digests import sha256_hex
from troth.core.errors import Place
from troth.receipts import launch, records
from troth.receipts.kinds import Broken, Record
from troth.receipts.member import Member, ReadFault
from troth.receipts.strict import parse

RULES: Final = {**records.RULES, **launch.RULES}
"""Record kind -> its rules (§4)."""


_UNREAD: Final = object()


class MemberReader:
    """Holds what was read of a member, so that every rule judges the same bytes."""

    def __init__(self, member: Member) -> None:
        self._member = member
        self._bytes: dict[str, object] = {}
        self._digests: dict[str, str] = {}
        self._records: dict[tuple[str, str], Record] = {}

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a file, or ``None`` when it is absent.

        Raises:
            ReadFault: the entry cannot be read safely.
        """
        held = self._bytes.get(name, _UNREAD)
        if held is _UNREAD:
            try:
                held = self._member.read(name)
            except ReadFault as fault:
                held = fault
            self._bytes[name] = held
        if type(held) is bytes or held is None:
            return held
        assert isinstance(held, ReadFault)
        raise held

    def digest(self, name: str) -> str:
        """Return the file digest of a file that is there."""
        digest = self._digests.get(name)
        if digest is None:
            data = self.read(name)
            if data is None:
                raise LookupError(name)
            digest = self._digests[name] = sha256_hex(data)
        return digest

    def parsed(self, name: str, data: bytes, prefix: str) -> Any:
        """Return strict JSON of bytes read from ``name``; a fault carries that name.

        Raises:
            Broken: ``P_json_*`` (§3).
        """
        try:
            return parse(data, prefix)
        except Broken as fault:
            fault.place = Place(file=name)
            raise

    def record(self, kind: str, name: str) -> Record:
        """Return a file that is there as a record of that kind, past its rules (§4).

        Raises:
            Broken: the first rule broken.
        """
        record = self._records.get((kind, name))
        if record is None:
            data = self.read(name)
            if data is None:
                raise LookupError(name)
            value = self.parsed(name, data, kind)
            try:
                record = RULES[kind](value)
            except Broken as fault:
                fault.place = Place(file=name, path=fault.place.path if fault.place else None)
                raise
            self._records[kind, name] = record
        return record
