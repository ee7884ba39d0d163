"""Where the laboratory's randomness comes from: named draws by SHA-256, and nothing else.

A draw is a function of five things and of no order: the run's seed, the suite, the index of the deal, who draws, and
the name of what is drawn. Derivation, version 1::

    text  = "troth-lab-1|SEED|SUITE|INDEX|WHO|NAME"         (UTF-8, numbers in decimal)
    draw  = (first 8 bytes of SHA-256(text), big-endian) >> 11, divided by 2^53      in [0, 1)

The arm is not among them: the arms of a suite share their draws (common random numbers), so that deal 17 of one arm is
the twin of deal 17 of another, and arms are compared in pairs.
"""

from __future__ import annotations

import hashlib
from typing import Final

VERSION: Final = "troth-lab-1"
_SCALE: Final = 2.0**-53


def draw(seed: int, suite: str, index: int, who: str, name: str) -> float:
    """Return the draw of that name, in [0, 1)."""
    text = f"{VERSION}|{seed}|{suite}|{index}|{who}|{name}"
    return (int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big") >> 11) * _SCALE
