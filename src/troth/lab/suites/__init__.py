"""The failure suites and B3: what is played, what is measured, what the protocol must show (§5, source §3.10, §6).

Each suite is data: arms with the policies that play them, measures with their truth where it has a closed form, and
demands that hold for every single deal or do not. :mod:`~troth.lab.suites.playing` plays them.
"""

from __future__ import annotations

import difflib
from typing import Final

from troth.core.errors import Refused
from troth.lab.suites import breaches, checking, consideration, deception, poisoning
from troth.lab.suites.plan import Suite

SUITES: Final[dict[str, Suite]] = {
    suite.id: suite
    for suite in (
        deception.SUITE,
        breaches.F1,
        breaches.F2,
        breaches.F3,
        breaches.F4,
        breaches.F5,
        checking.SUITE,
        poisoning.SUITE,
        consideration.SUITE,
    )
}
"""Id -> suite, in the order in which they are to be run (source §3.10): F-D′ and F1 to F5 first, B3 last."""

_ALIASES: Final = {"fd": "F-D′", "fdprime": "F-D′", "fd'": "F-D′", "fd′": "F-D′", "fd’": "F-D′"}


def find(name: str) -> Suite:
    """Return the suite of that name: its id in any case; ``F-D'``, ``fd`` and ``f-d-prime`` for F-D′.

    Raises:
        Refused: ``E_USAGE``, naming the nearest.
    """
    folded = name.strip().lower().replace("-", "").replace("_", "")
    for id_, suite in SUITES.items():
        if folded == id_.lower().replace("-", "") or _ALIASES.get(folded) == id_:
            return suite
    if folded == "f8":
        raise Refused(
            "E_USAGE",
            "F8, a trustee who betrays, is deferred by the protocol and absent from its version 0.2",
            remedy=f"Suites: {', '.join(SUITES)}.",
        )
    near = difflib.get_close_matches(name.upper(), SUITES, n=2)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise Refused(
        "E_USAGE", f"There is no suite {name[:80]!r}.{hint}", remedy=f"Suites: {', '.join(SUITES)}.", detail=near
    )
