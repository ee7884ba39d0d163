"""The table of readers: every door at which bytes of an agent, a reviewer, another ledger or a stranger come in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fuzz.engine import Reader
from fuzz.readers import backends, kept, ledger, observer, others, projects, receipts, reviews

READERS: Final[Sequence[Reader]] = (
    *receipts.READERS,
    *observer.READERS,
    *projects.READERS,
    *ledger.READERS,
    *reviews.READERS,
    *backends.READERS,
    *kept.READERS,
    *others.READERS,
)
