"""Reviews run in a process of the test's own: a reviewer that answers from a list, and a document it may give."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from troth.airlock.reviewing.running import Wanted, send_review, set_up
from troth.airlock.reviewing.session import Limits, Session
from troth.backends.asking import Asked, ask
from troth.backends.protocol import Answer, Failure, Request
from troth.stores.reviews import Reviews

MEMO = b"""# Moving the queue

## Cost

It costs 40 euros a month and saves 200.

## Risk

There is no risk.
"""


class Reviewer:
    """A reviewer that says what stands in a list, one after the other, and the last again and again."""

    name = "scripted"
    kind = "scripted"
    endpoint = "scripted:test"
    provider = None
    sandboxed = False

    def __init__(self, *said: bytes | Failure | Mapping[str, Any]) -> None:
        self.said = list(said)
        self.requests: list[Request] = []

    def usable(self) -> str | None:
        """Nothing is missing."""
        return None

    def ask(self, request: Request) -> Answer:
        """Say the next thing."""
        self.requests.append(request)
        said = self.said.pop(0) if len(self.said) > 1 else self.said[0]
        failure = said if isinstance(said, Failure) else None
        text = None
        if not isinstance(said, Failure):
            text = said if isinstance(said, bytes) else json.dumps(said).encode()
        return Answer(
            text, failure, "completed", "model-1", "requested", len(request.payload), len(text or b""), None, 1.5, 1,
            text is not None, None,
        )  # fmt: skip


asking = partial(ask, sleep=lambda _: None)
"""Asks without waiting."""


def finding(number: int, claim: str = "The saving has no source.", **edits: Any) -> dict[str, Any]:
    """Return a finding about the memo."""
    return {
        "id": f"F{number:03d}",
        "severity": "high",
        "claim": claim,
        "evidence": [
            {
                "anchor": {"type": "text_quote", "quote": "saves 200", "section": "Cost"},
                "observation": "The number stands alone.",
                "grounding": "artifact_observed",
            }
        ],
        "recommendation": "Name the invoice.",
        "confidence": "high",
        **edits,
    }


def response(*findings: Mapping[str, Any], assessment: str | None = None, **edits: Any) -> dict[str, Any]:
    """Return what a reviewer answers; the ids in it are its own and worth nothing."""
    return {
        "schema_version": "1.0",
        "review_id": "theirs",
        "artifact": {"kind": "other", "revision": {"algorithm": "sha256", "value": "0" * 64}},
        "assessment": assessment or ("needs_attention" if findings else "approve"),
        "summary": "Looked at.",
        "findings": list(findings),
        **edits,
    }


def reply(finding_id: str, decision: str = "substantiate", **edits: Any) -> dict[str, Any]:
    """Return what a reviewer answers to a contest."""
    evidence = {
        "anchor": {"type": "section", "heading": "Risk"}, "observation": "Nothing is said.", "grounding": "inferred",
    }  # fmt: skip
    return {
        "finding_id": finding_id,
        "decision": decision,
        "position": "It stands." if decision == "substantiate" else "It does not.",
        "evidence": [evidence] if decision == "substantiate" else [],
        **edits,
    }


def started(
    folder: Path,
    reviewer: Reviewer,
    members: Mapping[str, bytes] | None = None,
    *,
    limits: Limits | None = None,
    asking: Callable[..., Asked] = asking,
    **edits: Any,
) -> Session:
    """Return a run whose review was sent to the reviewer."""
    session = set_up(
        Reviews(folder / "reviews"),
        Wanted(
            list((members or {"memo.md": MEMO}).items()),
            "decision",
            {"asked": "scripted:test", "name": "scripted", "kind": "scripted", "endpoint": "scripted:test",
             "provider": None, "sandboxed": False},
            "Look closely.",
            "agent:host",
            limits=limits or Limits(),
            **edits,
        ),
    )  # fmt: skip
    send_review(session, reviewer, asking)
    return session
