"""Old runs removed; what waits for the operator stays (§11)."""

from __future__ import annotations

from datetime import timedelta

from troth.airlock.panels import is_parent, named_members
from troth.airlock.reviewing.viewing import standing
from troth.core.errors import Busy
from troth.core.instants import Clock, parse_instant, system_clock
from troth.stores.reviews import Reviews

LEAST_DAYS = 1
"""The least age at which a run is removed, in days."""


def prune(
    reviews: Reviews, days: int, *, even_open: bool = False, dry_run: bool = False, clock: Clock = system_clock
) -> tuple[list[str], list[tuple[str, str]]]:
    """Remove the runs that were created at least so many days ago.

    Args:
        reviews: where they are.
        days: the age, at least one.
        even_open: also those with questions that wait for the operator.
        dry_run: remove nothing.
        clock: the present.

    Returns:
        The ids that went, and those that were old enough and stayed, with the reason.

    Raises:
        ValueError: an age of less than a day.
        Refused: ``E_WRITE_FAILED``; what was removed until then is gone.
    """
    if days < LEAST_DAYS:
        raise ValueError("an age of at least one day")
    before = clock() - timedelta(days=days)
    gone: list[str] = []
    spared: list[tuple[str, str]] = []
    if not dry_run:
        reviews.sweep()
    # A merged run rests on its members: it is looked at before them, and while it stays they stay.
    needed: dict[str, str] = {}
    for folder in sorted(reviews.list(), key=lambda each: not is_parent(each)):
        if folder.id in needed:
            spared.append((folder.id, f"the merged review {needed[folder.id]} rests on it"))
            continue
        needed |= dict.fromkeys(named_members(folder), folder.id)
        found = standing(folder, deep=False)
        when = parse_instant(found.created)
        if when is None:
            spared.append((folder.id, "its age cannot be read; `troth review forget` removes it"))
        elif when > before:
            continue
        elif found.stage == "unreadable":
            spared.append((folder.id, "it cannot be read, so it may hold open questions"))
        elif found.open_questions and not even_open:
            spared.append((folder.id, f"{found.open_questions} of its questions wait for the operator"))
        elif dry_run:
            gone.append(folder.id)
            needed = {name: by for name, by in needed.items() if by != folder.id}
        else:
            try:
                with folder.exclusively():
                    reviews.forget(folder)
            except Busy:
                spared.append((folder.id, "a command is at work on it"))
                continue
            gone.append(folder.id)
            needed = {name: by for name, by in needed.items() if by != folder.id}
    return gone, spared
