"""What a tier makes of its validators' answers (ledger spec §11 [D41] [D42]). The effects stand in `validating`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from troth.ledger.genesis import Tier

Mark = Literal["passed", "failed", "waiting"]
"""A validator's answer. ``waiting`` is neither: it is a person's to give."""

Standing = Literal["failed", "waiting", "passed", "nothing"]
"""What all answers of a tier come to; ``nothing``: the tier asks no validator."""


@dataclass(frozen=True, slots=True)
class Result:
    """One validator's answer: its name, the answer, one sentence that says why, and facts beside it (plain JSON)."""

    validator: str
    result: Mark
    reason: str
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Close:
    """Every validator passed and the tier closes by itself: ``system:validator`` approves."""

    validators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WaitForPerson:
    """Somebody decides. ``validators`` are those that wait for a person; none when it is the tier that does."""

    validators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """``validators`` did not pass; the submission stays in review, where a person may still decide."""

    validators: tuple[str, ...]


Outcome = Close | WaitForPerson | Failed

_OUTCOMES: Final[Mapping[tuple[Standing, bool], type[Close] | type[WaitForPerson] | type[Failed]]] = {
    # (what the answers come to, whether the tier closes by itself)
    ("passed", True): Close,
    ("passed", False): WaitForPerson,
    ("waiting", True): WaitForPerson,
    ("waiting", False): WaitForPerson,
    ("failed", True): Failed,
    ("failed", False): Failed,
    ("nothing", True): WaitForPerson,  # the key's rules allow no such tier; nothing closes unchecked all the same
    ("nothing", False): WaitForPerson,
}

_GRAVITY: Final[Sequence[Mark]] = ("failed", "waiting", "passed")


def marks(tier: Tier, results: Iterable[Result]) -> dict[str, Mark]:
    """Return the answer that counts for each of the tier's validators.

    The gravest of several; one that did not answer has failed. Answers that the tier does not ask for count nothing.
    """
    given: dict[str, set[Mark]] = {name: set() for name in tier.validators}
    for result in results:
        if result.validator in given:
            given[result.validator].add(result.result)
    return {name: next((mark for mark in _GRAVITY if mark in held), "failed") for name, held in given.items()}


def closes_itself(tier: Tier) -> bool:
    """Tell whether a tier closes without a person; one that demands a person never does."""
    return tier.auto_close and not tier.require_human


def outcome(tier: Tier, results: Iterable[Result]) -> Outcome:
    """Return what becomes of a submission in this tier."""
    held = marks(tier, results)
    standing: Standing = next((mark for mark in _GRAVITY if mark in held.values()), "nothing")
    verdict = _OUTCOMES[standing, closes_itself(tier)]
    named = () if (verdict is WaitForPerson and standing != "waiting") else tuple(held)
    return verdict(tuple(name for name in named if held[name] == standing))
