"""Value kinds, member sets, origin and scope rules (done records §3), and the exception of a broken rule."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final, NamedTuple

from troth.core import digests
from troth.core.errors import Place, Refused
from troth.core.instants import parse_instant

Record = dict[str, Any]
"""A JSON object as parsed; once past its rules it may be read without further tests."""

VANTAGES: Final = ("independent", "self_reported")
SCOPES: Final = ("PEER", "EXTERNAL")
COVERAGES: Final = ("complete", "incomplete", "unknown")

ORIGIN: Final = ("claim_id", "invocation_id", "producer", "vantage", "witness_scope")
"""The origin members (§3)."""

MAX_EXIT: Final = 255


class Broken(Refused):
    """The first rule a record, case, policy or statement breaks, by its code.

    Args:
        code: the spec's own.
        path: JSON path of what broke it.
    """

    def __init__(self, code: str, path: str = "$") -> None:
        from troth.receipts.reasons import sentence

        super().__init__(code, sentence(code), place=Place(path=path))


class Shape(NamedTuple):
    """The member set of an object: every required name, and none outside ``allowed``."""

    required: frozenset[str]
    allowed: frozenset[str]

    def holds(self, value: object) -> bool:
        """Tell whether the value is an object with these members (§3 *members*)."""
        if type(value) is not dict:
            return False
        required = self.required
        if len(value) == len(required):  # as many, and none that is not required
            return required.issuperset(value)
        return value.keys() >= required and self.allowed.issuperset(value)


def shape(required: str, optional: str = "") -> Shape:
    """Build a member set from names divided by white space."""
    needed = frozenset(required.split())
    return Shape(needed, needed | frozenset(optional.split()))


SCOPE_SHAPE: Final = shape("id start end")


def is_text(value: object) -> bool:
    """*text*: a string of one or more characters."""
    return type(value) is str and value != ""


def is_integer(value: object) -> bool:
    """*integer*: a number token without fraction or exponent; never a boolean."""
    return type(value) is int


def is_count(value: object) -> bool:
    """*count*: an integer of at least 0."""
    return type(value) is int and value >= 0


def is_exit(value: object) -> bool:
    """*exit*: an integer from -255 to 255."""
    return type(value) is int and -MAX_EXIT <= value <= MAX_EXIT


def is_argv(value: object) -> bool:
    """*argv*: a non-empty array of strings, the first not empty."""
    if type(value) is not list or not value or value[0] == "":
        return False
    for word in value:  # noqa: SIM110 - a generator costs more than these short lists
        if type(word) is not str:
            return False
    return True


@lru_cache(maxsize=4096)
def _reads_as_digest(text: str) -> bool:
    return digests.is_digest(text)


def is_digest(value: object) -> bool:
    """*digest*: 64 characters from ``0-9a-f``. Remembered, since a member names each digest several times."""
    return type(value) is str and _reads_as_digest(value)


@lru_cache(maxsize=4096)
def _names_an_instant(text: str) -> bool:
    return parse_instant(text, fraction=False, offset=False) is not None


def is_instant(value: object) -> bool:
    """*instant*: ``YYYY-MM-DDTHH:MM:SSZ``, a real date and time. Two of them compare as strings."""
    return type(value) is str and len(value) == 20 and _names_an_instant(value)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def is_path(value: object) -> bool:
    """*path*: text with no NUL, no leading or trailing slash, no empty, ``.`` or ``..`` segment.

    An unpaired surrogate is no part of a path either: no file name can hold one, nor can it be hashed (§11).
    """
    if type(value) is not str:
        return False
    framed = f"/{value}/"
    return (
        "//" not in framed
        and "/./" not in framed
        and "/../" not in framed
        and "\0" not in value
        and (value.isascii() or _encodable(value))
    )


def same_json(left: Any, right: Any) -> bool:
    """Tell whether two parsed values are the same JSON value.

    Numbers are compared by value, so that ``1`` is ``1.0``; ``true`` is no number (§11 leaves both open).
    """
    if type(left) is bool or type(right) is bool:
        return left is right
    if type(left) is dict and type(right) is dict:
        return left.keys() == right.keys() and all(same_json(value, right[name]) for name, value in left.items())
    if type(left) is list and type(right) is list:
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


def require_names(record: Record, prefix: str) -> None:
    """Apply the rules of ``claim_id``, ``invocation_id`` and ``producer``: text, ``P_`` and the name."""
    for name in ("claim_id", "invocation_id", "producer"):
        if not is_text(record[name]):
            raise Broken(f"{prefix}_{name}", f"$.{name}")


def require_origin(record: Record, prefix: str) -> None:
    """Apply the origin rules (§3)."""
    require_names(record, prefix)
    if record["vantage"] not in VANTAGES:
        raise Broken(f"{prefix}_vantage", "$.vantage")
    if record["witness_scope"] not in SCOPES:
        raise Broken(f"{prefix}_witness_scope", "$.witness_scope")


def require_scope(value: Any, prefix: str) -> None:
    """Apply the scope rules (§3) to the value of a member ``scope``."""
    if not SCOPE_SHAPE.holds(value):
        raise Broken(f"{prefix}_scope_fields", "$.scope")
    if not is_text(value["id"]):
        raise Broken(f"{prefix}_scope_id", "$.scope.id")
    for name in ("start", "end"):
        if not is_instant(value[name]):
            raise Broken(f"{prefix}_scope_instant", f"$.scope.{name}")
    if value["end"] < value["start"]:
        raise Broken(f"{prefix}_scope_order", "$.scope.end")


def require_digest(record: Record, name: str, code: str) -> None:
    """Require that a member is a digest."""
    if not is_digest(record[name]):
        raise Broken(code, f"$.{name}")
