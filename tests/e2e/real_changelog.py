"""The list of changes that a published archive carries, as lines to import."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

_RELEASE = re.compile(r"[0-9][0-9A-Za-z.\-]*\Z")


def entries(project: str, lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield an object for each entry: the key is project, release and position from the file's start."""
    release, position, text = "", 0, ""
    found: dict[str, str] | None = None
    for line in lines:
        text = line.rstrip("\n")
        if text.startswith("* "):
            position += 1
            found = {"key": f"{project}:{release}:{position}", "subject": text[2:].strip() or "-", "release": release}
            yield found
        elif _RELEASE.match(text):
            release = text


def as_lines(objects: Iterable[dict[str, str]]) -> str:
    """Return JSON Lines."""
    return "".join(json.dumps(one) + "\n" for one in objects)
