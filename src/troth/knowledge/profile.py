"""The ``x-mentu`` profile: its fields, all optional, and what is wrong with them (ledger spec §13)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

KEY: Final = "x-mentu"
RELATIONS: Final = ("extends", "supersedes", "reinforces", "constrains", "balances_with")
"""The relations of the profile, in the order their edges are written."""

TENSIONS: Final = ("constrains", "balances_with")
TWIN: Final = ".twin.json"

_WORD: Final = r"[A-Za-z0-9][A-Za-z0-9_-]*"
_ID: Final = re.compile(rf"{_WORD}:{_WORD}\.[A-Za-z0-9][A-Za-z0-9._-]*")
_DNA: Final = re.compile(r"[A-Za-z0-9]+-[A-Za-z0-9]+-[A-Za-z0-9]+--[A-Za-z0-9]+(?:-[A-Za-z0-9]+)*--[A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class Profile:
    """The fields that are well formed. ``level`` is declared by the concept itself and never measured ([D48])."""

    id: str | None = None
    stage: int | None = None
    level: float | None = None
    decay: int | None = None
    twin: str | None = None
    relations: dict[str, tuple[str, ...]] = field(default_factory=dict)


def is_id(value: Any) -> bool:
    """Tell whether a value is ``namespace:type.slug``."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def _is_stage(value: Any) -> bool:
    return type(value) is int and 1 <= value <= 5


def _is_level(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1


def _is_decay(value: Any) -> bool:
    return type(value) is int and value >= 1


def _is_dna(value: Any) -> bool:
    return isinstance(value, str) and _DNA.fullmatch(value) is not None


def _is_twin(value: Any) -> bool:
    return isinstance(value, str) and value.endswith(TWIN) and len(value) > len(TWIN)


def _is_paths(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) and item.strip() for item in value)


_FIELDS: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "id": (is_id, "`namespace:type.slug`"),
    "filename_dna": (_is_dna, "`parent-sub-type--slug--id`"),
    "stage": (_is_stage, "a whole number from 1 to 5"),
    "twin": (_is_twin, f"the path of a `{TWIN}` file"),
}
_TRUST: Final[dict[str, tuple[Callable[[Any], bool], str]]] = {
    "level": (_is_level, "a number from 0 to 1"),
    "decay": (_is_decay, "a whole number of days from 1"),
}


def read_profile(values: Mapping[str, Any]) -> tuple[Profile, list[tuple[str, str]]]:
    """Return the profile of a frontmatter, and for each field of another form its path and what it should be."""
    raw = values.get(KEY)
    if raw is None:
        return Profile(), []
    if not isinstance(raw, dict):
        return Profile(), [(KEY, "x-mentu is a mapping of names to values")]
    wrong: list[tuple[str, str]] = []
    good: dict[str, Any] = {}

    def look(names: Mapping[str, Any], rules: Mapping[str, tuple[Callable[[Any], bool], str]], path: str) -> None:
        for name, value in names.items():
            if value is None:
                continue
            if name not in rules:
                wrong.append((f"{path}.{name}", f"{name} is no field of the profile"))
            elif rules[name][0](value):
                good[name] = value
            else:
                wrong.append((f"{path}.{name}", f"{name} is {rules[name][1]}"))

    look({name: value for name, value in raw.items() if name not in ("trust", "relations")}, _FIELDS, KEY)
    for name, rules in (("trust", _TRUST), ("relations", dict.fromkeys(RELATIONS, (_is_paths, "a list of paths")))):
        inner = raw.get(name)
        if isinstance(inner, dict):
            look(inner, rules, f"{KEY}.{name}")
        elif inner is not None:
            wrong.append((f"{KEY}.{name}", f"{name} is a mapping of names to values"))
    relations: dict[str, tuple[str, ...]] = {name: tuple(good[name]) for name in RELATIONS if name in good}
    level = good.get("level")
    profile = Profile(
        id=good.get("id"),
        stage=good.get("stage"),
        level=float(level) if level is not None else None,
        decay=good.get("decay"),
        twin=good.get("twin"),
        relations=relations,
    )
    return profile, wrong
