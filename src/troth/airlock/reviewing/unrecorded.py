"""A review of which nothing is kept: asked, stamped, validated, told, and gone (§11)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from troth.airlock.reviewing.running import Asking, Taken, Wanted, artifact_of, check_means, check_text, stamped
from troth.airlock.reviewing.session import Limits
from troth.backends.asking import ask
from troth.backends.protocol import Backend, Request
from troth.core.instants import Clock, format_instant, system_clock
from troth.review.machine import Spent


@dataclass(frozen=True, slots=True)
class Told:
    """What a reviewer answered, or why there is no answer; ``unresolved`` names evidence that points nowhere."""

    document: Mapping[str, Any] | None
    failure: Mapping[str, Any] | None
    unresolved: tuple[str, ...] = ()


def ask_unrecorded(wanted: Wanted, backend: Backend, asking: Asking | None = None, clock: Clock = system_clock) -> Told:
    """Ask for a review and keep nothing: no folder, no payload, and no digest among the metrics.

    Raises:
        Refused: as :func:`troth.airlock.reviewing.running.set_up` does before it makes a folder.
    """
    artifact = artifact_of(wanted.members, wanted.kind)
    check_text(wanted)
    limits: Limits = wanted.limits
    check_means(limits.bounds, Spent(), len(artifact.payload) + len(wanted.instruction.encode()))
    wall = min(limits.wall, limits.deadline)
    request = Request(
        wanted.instruction, artifact.payload, wanted.model, wanted.effort, wanted.speed, wall=wall,
        idle=min(limits.idle, wall),
    )  # fmt: skip
    mark = partial(
        stamped, artifact, review_id="unrecorded", kind=wanted.kind, backend=wanted.backend["name"],
        created=format_instant(clock()),
    )  # fmt: skip

    def judge(document: dict[str, Any]) -> str | None:
        found = mark(document)
        return found if isinstance(found, str) else None

    asked = (asking or ask)(backend, request, wanted="response", judge=judge, bounds=limits.bounds, spent=Spent())
    if asked.document is None:
        failure = asked.answer.failure
        assert failure is not None
        return Told(None, failure.as_json())
    found = mark(asked.document, {"model": asked.answer.model, "request_id": asked.answer.request_id})
    assert isinstance(found, Taken)
    return Told(found.value, None, found.unresolved)
