"""Secrets in what is about to leave: a warning with member, line and kind, never the secret itself.

The patterns are those of the `detect-secrets` library, used in memory and without its network checks. A warning, no
gate: patterns miss secrets, and take other things for them. Left out are the library's two detectors that take any
digest and any public address for one. Comments by which a text asks to be passed over are not heeded: the text may be
anybody's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from troth.core.words import printable

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin

MOST_TOLD: Final = 100
"""Most places told of one scan."""

LONGEST: Final = 2000
"""Longest piece of a line looked at in one go, in characters; longer lines are looked at in pieces that overlap."""

_OVERLAP: Final = 400
_LEFT_OUT: Final = frozenset({"HexHighEntropyString", "IPPublicDetector"})


@dataclass(frozen=True, slots=True, order=True)
class Suspicion:
    """A place that looks like a secret: the member, its line from 1, what kind of secret it looks like."""

    member: str
    line: int
    kind: str

    def as_json(self) -> dict[str, Any]:
        """Return the members in which it is told."""
        return {"member": self.member, "line": self.line, "kind": self.kind}

    def __str__(self) -> str:
        return f"{printable(self.member, 200)}:{self.line}: {self.kind}"


def suspicions(pieces: Iterable[tuple[str, bytes]]) -> list[Suspicion]:
    """Return the places that look like secrets, each kind once a line, the first :data:`MOST_TOLD` of them.

    Args:
        pieces: what is to leave: name and bytes of each member, and of whatever else somebody wrote.
    """
    plugins = _plugins()
    found: list[Suspicion] = []
    for member, data in pieces:
        named = _as_named(member)
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            kinds = sorted({kind for part in _parts(line) for kind in _kinds(plugins, named, part)})
            found += [Suspicion(member, number, kind) for kind in kinds]
            if len(found) >= MOST_TOLD:
                return found[:MOST_TOLD]
    return found


def _plugins() -> list[BasePlugin]:
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    classes: Mapping[str, type[BasePlugin]] = get_mapping_from_secret_type_to_class()
    return [one() for _, one in sorted(classes.items()) if one.__name__ not in _LEFT_OUT]


def _as_named(member: str) -> str:
    """Return the name by whose end the library tells how values are written: in .env files without quotes."""
    name = PurePosixPath(member).name.lower()
    return "settings.ini" if name == ".env" or name.startswith(".env.") or name.endswith(".env") else name


def _parts(line: str) -> Iterator[str]:
    if len(line) <= LONGEST:
        yield line
        return
    for start in range(0, len(line), LONGEST - _OVERLAP):
        yield line[start : start + LONGEST]


def _kinds(plugins: list[BasePlugin], named: str, line: str) -> Iterator[str]:
    for plugin in plugins:
        for secret in plugin.analyze_line(filename=named, line=line, line_number=0):
            if secret.secret_value and not _harmless(secret.secret_value, line, plugin):
                yield plugin.secret_type


def _harmless(secret: str, line: str, plugin: BasePlugin) -> bool:
    """Tell whether the library's own judgement takes a find for none: counting-up text, ids, templates, references."""
    from detect_secrets.filters import heuristic

    return bool(
        heuristic.is_sequential_string(secret)
        or heuristic.is_potential_uuid(secret)
        or heuristic.is_likely_id_string(secret, line, plugin)
        or heuristic.is_templated_secret(secret)
        or heuristic.is_prefixed_with_dollar_sign(secret)
        or heuristic.is_indirect_reference(line)
        or heuristic.is_not_alphanumeric_string(secret)
    )
