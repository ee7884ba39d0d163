"""Secrets by the form of what is written: the patterns of the `detect-secrets` library, one line at a time.

Used in memory and without the library's network checks. Comments by which a text asks to be passed over are not heeded:
the text may be anybody's. Patterns miss secrets, and take other things for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin

TAKES_MUCH_FOR_SECRETS: Final = frozenset({"HexHighEntropyString", "IPPublicDetector"})
"""Detectors of the library that take any digest and any public address for a secret."""

LONGEST: Final = 2000
"""Longest piece of a line looked at in one go, in characters; longer lines are looked at in pieces that overlap."""

_OVERLAP: Final = 400


def detectors(left_out: Collection[str] = TAKES_MUCH_FOR_SECRETS) -> Sequence[BasePlugin]:
    """Return the library's detectors, by kind, without those whose class is left out."""
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class

    classes: Mapping[str, type[BasePlugin]] = get_mapping_from_secret_type_to_class()
    return [one() for _, one in sorted(classes.items()) if one.__name__ not in left_out]


def finds(plugins: Sequence[BasePlugin], line: str, *, named: str = "") -> Iterator[tuple[str, str]]:
    """Yield the kind and the text of what looks like a secret in one line.

    Args:
        plugins: what :func:`detectors` returned.
        line: the line, without its end.
        named: the name of the file it is from, by whose end the library tells how values are written.
    """
    for part in _parts(line):
        for plugin in plugins:
            for secret in plugin.analyze_line(filename=named, line=part, line_number=0):
                if secret.secret_value and not _harmless(secret.secret_value, part, plugin):
                    yield plugin.secret_type, secret.secret_value


def _parts(line: str) -> Iterator[str]:
    if len(line) <= LONGEST:
        yield line
        return
    for start in range(0, len(line), LONGEST - _OVERLAP):
        yield line[start : start + LONGEST]


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
