"""The reader against a literal yardstick, over thousands of mutated members; and what a bent rule would look like."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipts.mutate import mutated
from reference.receipt_reader import check as yardstick
from reference.receipt_records import READ_FAULT
from support.receipt_members import CHECKS
from troth.receipts import checks, launch, policy, records
from troth.receipts.member import MappingMember, ReadFault
from troth.receipts.verify import check_member

EACH = 25
"""Members of one example: the cost of drawing is spread over them."""


def ours(files: Mapping[str, bytes], names: Any) -> dict[str, Any]:
    return check_member(MappingMember(files), names)


def compare(seed: int, count: int = EACH) -> Counter[str]:
    """Hold both readers against each other over members of one seed; return what the results came to."""
    chance = random.Random(seed)
    seen: Counter[str] = Counter()
    for number in range(count):
        files, names = mutated(chance, ours)
        mine, theirs = ours(files, names), yardstick(files, names)
        assert mine == theirs or open_corner(mine, files), (seed, number, names, files)
        seen[outcome(mine)] += 1
    return seen


def open_corner(mine: Mapping[str, Any], files: Mapping[str, bytes]) -> bool:
    """Tell whether a difference is the one left open (§11): is a path with an unpaired surrogate a path? Ours: no."""
    return outcome(mine).endswith("path_not_normalized") and any(b"\\ud8" in data for data in files.values())


def outcome(result: Mapping[str, Any]) -> str:
    """Name a result by its code, reason or verdict."""
    if "refused" in result:
        return str(result["refused"])
    for name in ("receipt", "contract"):
        if name in result and "code" in result[name]:
            return str(result[name]["code"])
    if "done" in result:
        return f"{next(iter(result))} {result['done']['reason']}"
    return " ".join(answer["reason"] for answer in result.get("checks", {}).values()) or "contract valid"


@settings(max_examples=80, deadline=None)
@given(st.integers(min_value=0, max_value=2**48))
def test_both_readers_agree_on_mutated_members(seed: int) -> None:
    compare(seed)


def test_mutated_members_reach_many_rules(capsys: pytest.CaptureFixture[str]) -> None:
    """A differential test over members that are all refused for one reason would show nothing."""
    seen: Counter[str] = Counter()
    for seed in range(30):
        seen += compare(seed)
    total = seen.total()
    judged = sum(count for name, count in seen.items() if " " in name or name in checks_reasons())
    with capsys.disabled():
        print(f" [{total} members: {judged / total:.0%} reach a verdict, {len(seen)} different results]", end="")
    assert judged > total / 8
    assert len(seen) > 120


def checks_reasons() -> set[str]:
    from troth.receipts.reasons import DECISIONS

    return set(DECISIONS)


class Unreadable:
    def __init__(self, files: Mapping[str, bytes], name: str) -> None:
        self._files = files
        self._name = name

    def read(self, name: str) -> bytes | None:
        if name == self._name:
            raise ReadFault(name, "made unreadable by a test")
        return self._files.get(name)


@settings(max_examples=30, deadline=None)
@given(st.integers(min_value=0, max_value=2**48))
def test_both_readers_agree_on_unreadable_entries(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(10):
        files, names = mutated(chance, ours)
        name = chance.choice([*files, "receipt.json", "launch.json", "launch-receipt.json", "statement.json"])
        if names is None and name == "receipt.json":
            continue
        mine = check_member(Unreadable(files, name), names)
        theirs = yardstick({**files, name: READ_FAULT}, names)
        assert mine == theirs or open_corner(mine, files), (seed, name)


def caught(count: int = 60) -> bool:
    """Tell whether the comparison finds a difference."""
    try:
        for seed in range(count):
            compare(seed)
    except AssertionError:
        return True
    return False


def _no_target(observation: Any, guard: Any) -> Any:
    for event in observation.get("events", ()):
        if event["type"] in records.MUTATIONS and (entry := guard.protecting(event["path"])) is not None:
            yield event, event["path"], entry


BENT: list[tuple[Any, str, Any]] = [
    (checks, "_CLAIM_TYPES", records.MUTATIONS),
    (checks, "mutations_of_protected", _no_target),
    (launch, "LOSSES", launch.LOSSES[1:]),
    (policy, "PINNED", ("observation", "tree")),
    (checks, "CONTRADICTING", {"unmatched": "tool_claim_unmatched", "stale": "tool_claim_precedes_last_edit"}),
]


@pytest.mark.parametrize(("module", "name", "bent"), BENT, ids=[name for _, name, _ in BENT])
def test_a_bent_rule_is_caught(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, bent: Any) -> None:
    monkeypatch.setattr(module, name, bent)
    assert caught()


def test_an_unbent_reader_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    unchanged: Callable[..., Any] = checks.mutations_of_protected
    monkeypatch.setattr(checks, "mutations_of_protected", unchanged)
    assert not caught(5)
    assert set(checks.RUN) == set(CHECKS)
