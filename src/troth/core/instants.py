"""Instants: UTC, written with a ``Z``. Clocks come in as arguments; nothing here is read behind the caller's back."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime

Clock = Callable[[], datetime]
"""Returns the present instant as an aware UTC datetime."""

_INSTANT = re.compile(r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?(Z|\+00:00)\Z", re.ASCII)

_TWO_DIGITS = tuple(f"{number:02d}" for number in range(100))


def system_clock() -> datetime:
    """Return the machine's present instant."""
    return datetime.now(UTC)


def format_instant(instant: datetime) -> str:
    """Return ``YYYY-MM-DDTHH:MM:SSZ``; a fraction of a second is dropped.

    Raises:
        ValueError: for a naive datetime.
    """
    if instant.tzinfo is None:
        raise ValueError("an instant needs a time zone")
    at = instant if instant.tzinfo is UTC else instant.astimezone(UTC)
    century, year = divmod(at.year, 100)
    two = _TWO_DIGITS
    # Joined of parts: what formats numbers is a lot of code to run through for one row after a wait for the disk.
    return f"{two[century]}{two[year]}-{two[at.month]}-{two[at.day]}T{two[at.hour]}:{two[at.minute]}:{two[at.second]}Z"


def parse_instant(text: str, *, fraction: bool = True, offset: bool = True) -> datetime | None:
    """Return the instant, or ``None`` when the text names no real UTC date and time.

    Args:
        text: the candidate.
        fraction: allow 1 to 9 digits of a second (kept to the microsecond).
        offset: allow ``+00:00`` in the place of ``Z``.
    """
    match = _INSTANT.match(text)
    if match is None or (match[7] is not None and not fraction) or (match[8] != "Z" and not offset):
        return None
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    micro = int((match[7] or "0").ljust(6, "0")[:6])
    try:
        return datetime(year, month, day, hour, minute, second, micro, UTC)
    except ValueError:
        return None
