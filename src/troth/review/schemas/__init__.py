"""The two document schemas, written from the member lists, under ids of our own (§§5, 6).

A part that states a rule of ours, which the schemas published by others do not, names it in ``$comment``. What no
schema can state (L2, L3) is not in them; :func:`troth.review.validate.validate` is the whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

FILES: Final[Mapping[str, str]] = {
    "response": "reviewer-response.v1.json",
    "reconciliation": "reconciliation-result.v1.json",
}


def text(kind: Literal["response", "reconciliation"]) -> bytes:
    """Return the schema of a kind of document: JSON Schema 2020-12, UTF-8."""
    from importlib.resources import files

    return files(__package__).joinpath(FILES[kind]).read_bytes()
