"""YAML written byte for byte as it must be: quoted text, and literal blocks that give back exactly what went in."""

from __future__ import annotations

import json
import re
from typing import Final

_UNFIT: Final = re.compile("[\x7f-\xa0\ud800-\udfff\u2028\u2029\ufeff\ufffe\uffff]")
_LITERAL: Final = re.compile("[\t\n\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*")


def quoted(text: str) -> str:
    """Return the text in double quotes, on one line."""
    return _UNFIT.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(text, ensure_ascii=False))


def literal(text: str) -> str | None:
    """Return the text as what stands behind ``name: `` in a mapping at the left margin, ending with a line feed.

    ``None`` when YAML cannot represent it so: carriage returns, other line breaks, control characters, no final
    line feed.
    """
    if not text.endswith("\n") or _LITERAL.fullmatch(text) is None:
        return None
    lines = text[:-1].split("\n")
    return "|2+\n" + "".join(f"  {line}\n" if line else "\n" for line in lines)
