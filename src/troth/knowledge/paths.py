"""Where a link of a bundle leads: pure text, no file is asked (ledger spec §13)."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

ENDINGS: Final = (".md", ".markdown")
RESERVED: Final = frozenset({"index.md", "log.md"})
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


class Escapes(Exception):
    """The link leads out of the bundle."""


def is_markdown(path: str) -> bool:
    """Tell whether a path is a Markdown file's."""
    return path.lower().endswith(ENDINGS)


def is_reserved(path: str) -> bool:
    """Tell whether a path is an index or a log, which are no concepts, in any folder."""
    return path.rpartition("/")[2] in RESERVED


def is_concept(path: str) -> bool:
    """Tell whether a path is a concept's."""
    return is_markdown(path) and not is_reserved(path)


def resolve_link(target: str, source: str) -> str | None:
    """Return the path, from the bundle's root, that a Markdown link leads to.

    ``None``: another place (a URL), or the same file (a fragment alone).

    Args:
        target: the destination as written; percent escapes, a query and a fragment are understood.
        source: the path of the file it stands in.

    Raises:
        Escapes: it leads out of the bundle.
    """
    if _SCHEME.match(target) or target.startswith("//"):
        return None
    plain = target.partition("#")[0].partition("?")[0]
    return resolve_path(unquote(plain), source) if plain else None


def resolve_path(target: str, source: str) -> str | None:
    """Return the path, from the bundle's root, that a path of a relation names; ``None`` when it names nothing.

    Raises:
        Escapes: it leads out of the bundle.
    """
    parts: list[str] = [] if target.startswith("/") else source.split("/")[:-1]
    for part in target.split("/"):
        if part == "..":
            if not parts:
                raise Escapes(target)
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts) or None
