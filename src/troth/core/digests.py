"""SHA-256, in lowercase hexadecimal."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Final

ZERO: Final = "0" * 64
"""The link of the first hashed row, and H0 of the head digest."""

EMPTY: Final = hashlib.sha256(b"").hexdigest()
"""Digest of nothing."""

_DIGEST = re.compile(r"[0-9a-f]{64}\Z")


def sha256_hex(data: bytes) -> str:
    """Return the digest of the bytes."""
    return hashlib.sha256(data).hexdigest()


def is_digest(value: object) -> bool:
    """Tell whether the value is a string of exactly 64 characters from ``0-9a-f``."""
    return isinstance(value, str) and _DIGEST.match(value) is not None


def tree_digest(files: Mapping[str, str]) -> str:
    """Return the digest of a map path -> digest (done records §3).

    Paths sorted by their UTF-8 bytes; for each the digest, two spaces, the path, one line feed.
    """
    # Code point order is UTF-8 byte order, so the strings can be sorted as they are.
    return hashlib.sha256("".join([f"{files[path]}  {path}\n" for path in sorted(files)]).encode()).hexdigest()
