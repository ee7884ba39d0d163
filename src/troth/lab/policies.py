"""Policies by their words: ``rational(belief=0.5, reserve=4)`` in, the object that behaves so out.

The parties' conduct itself stands in :mod:`~troth.lab.counterparties`, :mod:`~troth.lab.agents` and
:mod:`~troth.lab.checkers`.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from troth.core.errors import Refused
from troth.lab.agents import AGENTS
from troth.lab.checkers import CHECKERS
from troth.lab.counterparties import COUNTERPARTIES
from troth.lab.view import Policy

Party: TypeAlias = Literal["C", "A", "K"]

POLICIES: Final[Mapping[Party, Mapping[str, type[Any]]]] = {"C": COUNTERPARTIES, "A": AGENTS, "K": CHECKERS}
"""Who -> name -> what behaves so."""

CODES: Final[dict[str, str]] = {
    "E_POLICY": "No party of a simulated deal has that policy, or the policy takes no such arguments.",
}
"""Refusals of the laboratory where policies are named."""

_SPEC: Final = re.compile(r"\s*([a-z_]+)\s*(?:\((.*)\))?\s*\Z", re.DOTALL)
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,12})?(?:e-?[0-9]{1,2})?\Z")
_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}\Z")


def make(party: Party, spec: str) -> Policy:
    """Return a fresh policy.

    Args:
        party: whose it is.
        spec: a name, and in parentheses its arguments in order or by name: ``noisy(0.1, 0.05)``,
            ``rational(belief=0.5, reserve=4)``. Arguments are numbers or words.

    Raises:
        Refused: ``E_POLICY``.
    """
    found = _SPEC.match(spec)
    known = POLICIES[party]
    if found is None or found[1] not in known:
        near = difflib.get_close_matches(found[1] if found else spec[:40], known, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise Refused(
            "E_POLICY",
            f"{party} has no policy {spec[:80]!r}.{hint}",
            remedy=f"{party} can be: {', '.join(known)}.",
            detail=near,
        )
    made = known[found[1]]
    ordered: list[Any] = []
    named: dict[str, Any] = {}
    for part in found[2].split(",") if found[2] and found[2].strip() else ():
        name, equals, text = part.partition("=")
        if not equals:
            if named:
                raise _unfit(party, spec, "an argument without a name stands behind one with")
            ordered.append(_value(party, spec, name.strip()))
        elif not _WORD.match(name.strip()) or name.strip() in named:
            raise _unfit(party, spec, f"the name {name.strip()[:40]!r} is no word, or stands twice")
        else:
            named[name.strip()] = _value(party, spec, text.strip())
    try:
        bound = inspect.signature(made).bind(*ordered, **named)
    except TypeError as fault:
        raise _unfit(party, spec, str(fault)) from None
    for name, value in [*bound.arguments.items(), *bound.kwargs.items()]:
        wanted = str(bound.signature.parameters[name].annotation) if name in bound.signature.parameters else "float"
        if not isinstance(value, dict) and not _fits(value, wanted):
            raise _unfit(
                party,
                spec,
                f"{name} is no {'word' if wanted == 'str' else 'whole number' if wanted == 'int' else 'number'}",
            )
    try:
        policy: Policy = made(*ordered, **named)
    except ValueError as fault:
        raise _unfit(party, spec, str(fault)) from None
    policy.spec = found[1] if not (ordered or named) else f"{found[1]}({_told(ordered, named)})"
    return policy


def _value(party: Party, spec: str, text: str) -> float | int | str:
    if _NUMBER.match(text):
        number = float(text)
        return int(text) if text.lstrip("-").isdigit() else number
    if _WORD.match(text):
        return text
    raise _unfit(party, spec, f"{text[:40]!r} is neither a number nor a word")


_CALLED: Final = {"str": "word", "int": "whole number"}


def _fits(value: float | int | str, wanted: str) -> bool:
    if wanted == "str":
        return isinstance(value, str)
    return type(value) is int if wanted == "int" else not isinstance(value, str)


def _told(ordered: list[Any], named: Mapping[str, Any]) -> str:
    return ",".join([*(f"{value}" for value in ordered), *(f"{name}={value}" for name, value in named.items())])


def _unfit(party: Party, spec: str, why: str) -> Refused:
    found = _SPEC.match(spec)
    made = POLICIES[party][found[1]] if found else None
    shown = f"{found[1]}{inspect.signature(made)}" if found and made else spec
    shown = re.sub(r": '[^']*'| -> .*", "", shown)
    return Refused("E_POLICY", f"{party}'s policy {spec[:120]!r}: {why}", remedy=f"Write it as {shown}.")


def described(party: Party) -> list[tuple[str, str]]:
    """Return (name, first line of what it does) of a party's policies."""
    return [(name, (made.__doc__ or "").partition("\n")[0]) for name, made in POLICIES[party].items()]
