"""Kinds of text in review documents: date-times, URIs, ids, digests, and what of a text can be seen (§4, §9)."""

from __future__ import annotations

import re
from typing import Final

_DATE_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))\Z", re.ASCII
)
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DAY: Final = 86_400

_UNHEARD: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""What is removed before anything a reviewer wrote is displayed (§9)."""

FINDING_ID: Final = re.compile(r"F[0-9]{3,}\Z")
DIGEST: Final = re.compile(r"sha256:[0-9A-Fa-f]{64}\Z")
SHA256: Final = re.compile(r"[0-9A-Fa-f]{64}\Z")

# RFC 3986, Appendix A: a URI with its scheme; possessive, so that no text makes it back-track.
_PCHAR: Final = r"(?:[A-Za-z0-9\-._~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})"
_DEC: Final = r"(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
_IPV4: Final = rf"{_DEC}\.{_DEC}\.{_DEC}\.{_DEC}"
_URI: Final = re.compile(
    rf"""[A-Za-z][A-Za-z0-9+\-.]*:
    (?:
      //(?:(?:[A-Za-z0-9\-._~!$&'()*+,;=:]|%[0-9A-Fa-f]{{2}})*@)?
        (?:\[(?P<literal>[0-9A-Fa-f:.]+|[Vv][0-9A-Fa-f]+\.[A-Za-z0-9\-._~!$&'()*+,;=:]+)\]
          |(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{{2}})*)
        (?::[0-9]*)?
        (?:/{_PCHAR}*+)*+
      |/(?:{_PCHAR}++(?:/{_PCHAR}*+)*+)?
      |{_PCHAR}++(?:/{_PCHAR}*+)*+
      |
    )
    (?:\?(?:{_PCHAR}|[/?])*+)?
    (?:\#(?:{_PCHAR}|[/?])*+)?\Z""",
    re.VERBOSE,
)


def heard(text: str) -> str:
    """Return the text without the control characters that are removed before display; tab, LF and CR stay (§9)."""
    return _UNHEARD.sub("", text)


def is_visible(text: str) -> bool:
    """Tell whether the text still holds a character that is no white space once control characters are gone."""
    return any(not char.isspace() for char in heard(text))


def is_finding_id(text: str) -> bool:
    """Tell whether the whole text is ``F`` and three or more ASCII digits."""
    return FINDING_ID.match(text) is not None


def is_digest(text: str) -> bool:
    """Tell whether the text is ``sha256:`` and 64 hexadecimal digits of any case."""
    return DIGEST.match(text) is not None


def is_sha256(text: str) -> bool:
    """Tell whether the text is 64 hexadecimal digits of any case."""
    return SHA256.match(text) is not None


def instant(text: str) -> tuple[int, str] | None:
    """Return an RFC 3339 date-time as something that sorts by time, or ``None`` where it is none.

    The first part counts seconds in UTC from the first day of the year 0, the second holds the digits of the fraction.
    A leap second stands only at 23:59:60 UTC and sorts behind 23:59:59.
    """
    found = _DATE_TIME.match(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(found[group]) for group in range(1, 7))
    if not (1 <= month <= 12 and 1 <= day <= _days_of(year, month) and hour < 24 and minute < 60 and second <= 60):
        return None
    shift = 0
    if found[8] is not None:
        hours, minutes = int(found[9]), int(found[10])
        if hours > 23 or minutes > 59:
            return None
        shift = (hours * 60 + minutes) * (60 if found[8] == "+" else -60)
    whole = (_day_number(year, month, day) * _DAY) + hour * 3600 + minute * 60 + min(second, 59) - shift
    fraction = found[7] or ""
    if second == 60:
        if whole % _DAY != _DAY - 1:
            return None
        fraction = "~" + fraction  # sorts behind every fraction of the second before
    return whole, fraction.rstrip("0")


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _days_of(year: int, month: int) -> int:
    return 29 if month == 2 and _is_leap(year) else _DAYS[month - 1]


def _day_number(year: int, month: int, day: int) -> int:
    before = year - 1
    leaps = before // 4 - before // 100 + before // 400
    return year * 365 + leaps + sum(_days_of(year, earlier) for earlier in range(1, month)) + day


def is_uri(text: str) -> bool:
    """Tell whether the text is an absolute URI of RFC 3986: with a scheme, and every character allowed."""
    found = _URI.match(text)
    if found is None:
        return False
    literal = found["literal"]
    return literal is None or literal[0] in "vV" or _is_ipv6(literal)


def _is_ipv6(text: str) -> bool:
    head, gap, tail = text.partition("::")
    if "::" in tail or tail.startswith(":"):
        return False
    groups = (head.split(":") if head else []) + (tail.split(":") if tail else [])
    width = 0
    for number, group in enumerate(groups):
        if re.fullmatch(r"[0-9A-Fa-f]{1,4}", group):
            width += 1
        elif number == len(groups) - 1 and re.fullmatch(_IPV4, group) and (tail or not gap):
            width += 2
        else:
            return False
    return width <= 7 if gap else width == 8
