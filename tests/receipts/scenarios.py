"""Runs that are dishonest, or badly witnessed, in one point each; shared by the tests of checks and verdict."""

from __future__ import annotations

from typing import Any

from support.receipt_members import CHECKS, Draft, at, sha
from troth.receipts.member import MappingMember
from troth.receipts.verify import check_member

PATHS, ACCEPT, CLAIMS = CHECKS


def run(draft: Draft, *checks: str, files: dict[str, bytes] | None = None) -> dict[str, Any]:
    """Check a draft, or files made from one."""
    return check_member(MappingMember(draft.seal() if files is None else files), checks or None)


def lose(draft: Draft, kind: str) -> Draft:
    """Make a record unavailable: the policies pin other bytes."""

    def edit(_case: Any, policy: Any) -> None:
        if f"{kind}-pin" in policy["witnesses"]:
            policy["witnesses"][f"{kind}-pin"]["sha256"] = "0" * 64

    draft.policy_edits.append(("*", edit))
    return draft


def pin(draft: Draft, kind: str, **change: Any) -> Draft:
    """Change a pin in every policy that has it."""

    def edit(_case: Any, policy: Any) -> None:
        if f"{kind}-pin" in policy["witnesses"]:
            policy["witnesses"][f"{kind}-pin"].update(change)

    draft.policy_edits.append(("*", edit))
    return draft


def lossy(draft: Draft) -> Draft:
    """Let the observer lose events."""
    draft.values["observation"]["coverage"] = "incomplete"
    draft.values["observation"]["gaps"] = [{"start": at(0), "end": at(60)}]
    return draft


def other_tree(draft: Draft) -> Draft:
    """Let the final tree differ from the sealed one under a protected folder."""
    draft.values["tree"]["files"]["tests/test_a.py"] = sha("weaker")
    return draft


def with_effects(draft: Draft, *effects: dict[str, Any]) -> Draft:
    """Add launch records that report effects outside the workspace."""
    draft.launched()
    draft.values["launch_receipt"]["sensors"]["external_effects"] = [
        {"type": "write", "time": at(5), **effect} for effect in effects
    ]
    return draft
