"""The failure suites and B3: what is played, what is measured, what the protocol must show (§5, source §3.10, §6).

Each suite is data: arms with the policies that play them, measures with their truth where it has a closed form, and
demands that hold for every single deal or do not. :mod:`~troth.lab.suites.playing` plays them.
"""

from __future__ import annotations

import difflib
from typing import Final

from troth.core.errors import Refused
from troth.lab.suites import breaches, checking, consideration, deception, poisoning, trust
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

PROTOCOLS: Final[dict[str, dict[str, Suite]]] = {"0.2": SUITES, trust.SUITE.protocol: {trust.SUITE.id: trust.SUITE}}
"""Version of the protocol -> its suites; F8 is of none but our own."""

_ALIASES: Final = {"fd": "F-D′", "fdprime": "F-D′", "fd'": "F-D′", "fd′": "F-D′", "fd’": "F-D′"}


def find(name: str, protocol: str = "0.2") -> Suite:
    """Return the suite of that name: its id in any case; ``F-D'``, ``fd`` and ``f-d-prime`` for F-D′.

    Args:
        name: as above.
        protocol: a version in :data:`PROTOCOLS`; the suites of others are not found.

    Raises:
        KeyError: no such version.
        Refused: ``E_USAGE``, naming the nearest.
    """
    folded = name.strip().lower().replace("-", "").replace("_", "")
    suites = PROTOCOLS[protocol]
    for id_, suite in suites.items():
        if folded == id_.lower().replace("-", "") or _ALIASES.get(folded) == id_:
            return suite
    if folded == "f8" and protocol == "0.2":
        raise Refused(
            "E_USAGE",
            "F8, a trustee who betrays, is deferred by the protocol and absent from its version 0.2",
            remedy=f"It is played in a protocol of ours: troth deal suite f8 --protocol {trust.SUITE.protocol}",
        )
    near = difflib.get_close_matches(name.upper(), suites, n=2)
    hint = f" Did you mean {' or '.join(near)}?" if near else ""
    raise Refused(
        "E_USAGE", f"There is no suite {name[:80]!r}.{hint}", remedy=f"Suites: {', '.join(suites)}.", detail=near
    )
