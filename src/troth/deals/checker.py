"""K's work: the predicates of a checklist, judged on a disclosure (§4).

An item is true, false, or ``None`` where it cannot be evaluated: an unknown predicate, parameters that are not as they
must be, or a helper that is not at hand. One ``None`` makes the verdict inconclusive; it never passes. Why an item is
not true is told where there is more to tell than that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from troth.core.digests import is_digest, sha256_hex
from troth.deals.snapshots import canonical

Ok: TypeAlias = bool | None
Item: TypeAlias = Mapping[str, Any]


class Told(NamedTuple):
    """An answer with its reason, a sentence without its full stop."""

    ok: Ok
    why: str


ReceiptPredicate: TypeAlias = Callable[[Any, Item], Ok | Told]
"""Judges an artifact that names a done receipt and its records, with the item; true only when the receipt verifies and
its verdict is ``supported``. What cannot be evaluated may also be a ``ValueError`` with the reason."""
Search: TypeAlias = Callable[[str, str], Ok]
"""Tells whether a pattern is found in a text, in linear time; ``None`` or a ``ValueError`` with the reason for what
cannot be searched."""


class Helpers(NamedTuple):
    """What the checker is handed in: what it cannot do without the world, or without a library of its own."""

    done_receipt: ReceiptPredicate | None = None
    search: Search | None = None


NO_HELPERS: Final = Helpers()
_MISSING: Final = object()


class Disclosed(NamedTuple):
    """What A disclosed."""

    artifacts: Mapping[str, Any]
    claims: Sequence[str]


def artifact_of(item: Item, artifacts: Mapping[str, Any]) -> Any:
    """Return the artifact that an item's dotted ``path`` leads to; ``None`` when it leads to none."""
    found = _artifact(item, Disclosed(artifacts, ()))
    return None if found is _MISSING else found


def _artifact(item: Item, disclosed: Disclosed) -> Any:
    """Return the artifact that the item's dotted ``path`` leads to; ``None`` for no path, ``_MISSING`` for nothing."""
    path = item.get("path")
    if type(path) is not str:
        return None
    first, *rest = path.split(".")
    if first != "artifacts" or not rest or "" in rest:
        return None
    value: Any = disclosed.artifacts
    for name in rest:
        if not isinstance(value, Mapping) or name not in value:
            return _MISSING
        value = value[name]
    return _MISSING if value is None else value


def _artifact_present(item: Item, disclosed: Disclosed, _: Helpers) -> Ok:
    found = _artifact(item, disclosed)
    return None if found is None else found is not _MISSING and found != ""


def _claim_contains(item: Item, disclosed: Disclosed, _: Helpers) -> Ok:
    needle = item.get("needle")
    if type(needle) is not str or not needle:
        return None
    return any(needle in claim for claim in disclosed.claims)


def _artifact_sha256(item: Item, disclosed: Disclosed, _: Helpers) -> Ok:
    found, wanted = _artifact(item, disclosed), item.get("sha256")
    if found is None or not is_digest(wanted):
        return None
    if found is _MISSING:
        return False
    return sha256_hex(found.encode("utf-8")) == wanted if type(found) is str else None


def _json_equals(item: Item, disclosed: Disclosed, _: Helpers) -> Ok:
    pointer = item.get("pointer")
    if type(pointer) is not str or "value" not in item or (pointer and not pointer.startswith("/")):
        return None
    value: Any = {"artifacts": disclosed.artifacts, "claims": list(disclosed.claims)}
    for token in pointer.split("/")[1:]:
        if re.search("~(?![01])", token):
            return None
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping) and name in value:
            value = value[name]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]{0,9}", name) and int(name) < len(value):
            value = value[int(name)]
        else:
            return False
    return canonical(value) == canonical(item["value"])


def _claim_regex(item: Item, disclosed: Disclosed, helpers: Helpers) -> Ok:
    pattern = item.get("pattern")
    if type(pattern) is not str:
        return None
    if helpers.search is None:
        raise ValueError("no linear-time engine for claim_regex is at hand")
    found = [helpers.search(pattern, claim) for claim in disclosed.claims] or [helpers.search(pattern, "") and False]
    return None if None in found else any(found)


def _done_receipt(item: Item, disclosed: Disclosed, helpers: Helpers) -> Ok | Told:
    found = _artifact(item, disclosed)
    if found is None:
        return None
    if helpers.done_receipt is None:
        raise ValueError("nobody who reads done receipts is at hand")
    return False if found is _MISSING else helpers.done_receipt(found, item)


PREDICATES: Final[dict[str, Callable[[Item, Disclosed, Helpers], Ok | Told]]] = {
    "artifact_present": _artifact_present,
    "claim_contains": _claim_contains,
    "artifact_sha256": _artifact_sha256,
    "json_equals": _json_equals,
    "claim_regex": _claim_regex,
    "done_receipt": _done_receipt,
}
"""Name -> predicate. The first two are the source's; the others are additions, each opted into by its name."""


MAX_NOTES: Final = 4000
"""Longest notes of a verdict, in characters: a checklist may be long, and a line of a transcript has its limit."""


class Judged(NamedTuple):
    """The verdict's ``result`` and ``checklist_results``, in the offer's order; ``reasons`` of some items by id."""

    result: Literal["pass", "fail", "inconclusive"]
    results: tuple[tuple[str, Ok], ...]
    reasons: tuple[tuple[str, str], ...] = ()

    def as_json(self) -> list[dict[str, Any]]:
        """Return ``checklist_results`` as a Verdict holds them."""
        return [{"id": name, "ok": ok} for name, ok in self.results]

    def notes(self) -> str:
        """Return the reasons as a Verdict's ``notes``, at most :data:`MAX_NOTES` characters."""
        notes = "; ".join(f"{name}: {why}" for name, why in self.reasons)
        return notes if len(notes) <= MAX_NOTES else f"{notes[: MAX_NOTES - 1]}…"


def judge(
    checklist: Sequence[Item], artifacts: Mapping[str, Any], claims: Sequence[str], helpers: Helpers = NO_HELPERS
) -> Judged:
    """Judge a disclosure by its checklist alone (§4)."""
    disclosed = Disclosed(artifacts, claims)
    told = [(item["id"], _judge(item, disclosed, helpers)) for item in checklist]
    results = tuple([(name, one.ok) for name, one in told])
    found = [ok for _, ok in results]
    if found and all(found):
        return Judged("pass", results)
    reasons = tuple([(name, one.why) for name, one in told if one.why and not one.ok])
    return Judged("inconclusive" if not found or None in found else "fail", results, reasons)


def _judge(item: Item, disclosed: Disclosed, helpers: Helpers) -> Told:
    predicate = PREDICATES.get(item["predicate"])
    if predicate is None:
        return Told(None, "the predicate is not known here")
    try:
        found = predicate(item, disclosed, helpers)
    except UnicodeError:
        return Told(None, "text that UTF-8 cannot carry")
    except ValueError as fault:
        return Told(None, str(fault))  # a value nested too deep to compare, or what a helper says
    return found if type(found) is Told else _PLAIN[found]  # type: ignore[index]  # else an answer without words


_PLAIN: Final[dict[Ok, Told]] = {
    True: Told(True, ""),
    False: Told(False, ""),
    None: Told(None, "the item's parameters do not fit its predicate"),
}
