"""Identifiers: a prefix and eight random lowercase hexadecimal digits, drawn from an injected source."""

from __future__ import annotations

import os
from collections.abc import Callable

RandomHex = Callable[[int], str]
"""Returns that many random bytes in lowercase hexadecimal."""


def system_random(count: int) -> str:
    """Draw from the operating system's generator."""
    return os.urandom(count).hex()


def new_id(prefix: str, taken: Callable[[str], bool], random_hex: RandomHex = system_random) -> str:
    """Return ``prefix`` plus eight hexadecimal digits that are not taken yet, drawing again on collision."""
    while True:
        candidate = prefix + random_hex(4)
        if not taken(candidate):
            return candidate
