"""Random keys and random operations, the product against an independent model of keys over the model of the ledger."""

from __future__ import annotations

import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.building import ZERO
from reference import genesis_model, ledger_admission, ledger_bytes
from troth.core.canonical import row_bytes
from troth.core.errors import TrothError
from troth.ledger.fields import OPS
from troth.ledger.genesis import Genesis, matches, parse_genesis
from troth.ledger.genesis_diff import changes
from troth.ledger.governance import Ruling, govern
from troth.ledger.operations import Candidate
from troth.ledger.replay import Replay
from troth.ledger.rows import row_of

ACTORS = (
    "human:lead-one", "human:guest", "agent:a", "agent:ab", "agent:trusted-b", "system:validator", "system:witness",
    "reviewer@example.org", "system:genesis",
)  # fmt: skip
PATTERNS = (
    *ACTORS,
    "*",
    "agent:*",
    "agent:a*",
    "agent:trusted-*",
    "human:*",
    "human:lead-*",
    "system:*",
    "r*",
    "team:core",
)
TAGS = ("security", "routine", "docs", "submit")
WINDOWS = ("0s", "90s", "45m", "24h", "3d")
FITTING = {
    "open": ("claim",),
    "claimed": ("submit", "submit", "close", "release"),
    "in_review": ("approve", "approve", "approve", "reopen"),
    "closed": ("reopen",),
}
OUTCOMES: Counter[str] = Counter()


def some(source: random.Random, of: tuple[str, ...], least: int, most: int) -> list[str]:
    return source.sample(of, source.randint(least, min(most, len(of))))


def key_of(source: random.Random) -> dict[str, Any]:
    """Return a random valid key as data; sections come and go."""
    key: dict[str, Any] = {"identity": {"name": "n", "owner": "human:lead-one"}}
    if source.random() < 0.5:
        roles = some(source, ("lead", "worker", "reader"), 1, 3)
        key["permissions"] = {role: source.choice(["*", some(source, OPS, 0, 8), list(OPS)]) for role in roles}
        key["actors"] = [
            {"id": source.choice(PATTERNS), "role": source.choice(roles)} for _ in range(source.randint(0, 7))
        ]
        if source.random() < 0.6:
            key["actors"].insert(source.randint(0, len(key["actors"])), {"id": "*", "role": roles[0]})
    if source.random() < 0.8:
        rules = {
            "claim": {"require_claim": True},
            "close": {"require_evidence": True},
            "commit": {"require_tags": source.random() < 0.5},
            "approve": {"allow_self": source.random() < 0.5},
        }
        constraints: dict[str, Any] = {op: rules[op] for op in some(source, tuple(rules), 0, 4)}
        for tag in some(source, TAGS, 0, 2):
            constraints[tag] = {"require_approval": source.random() < 0.5}
            if source.random() < 0.4:
                constraints[tag]["approvers"] = some(source, PATTERNS, 1, 3)
        key["constraints"] = dict(source.sample(sorted(constraints.items()), len(constraints)))
    if source.random() < 0.75:
        names = some(source, ("tier_1", "tier_2", "tier_3"), 0, 3)
        tiers = {}
        for name in names:
            tiers[name] = {"auto_close": source.random() < 0.6}
            tiers[name]["require_human"] = not tiers[name]["auto_close"] and source.random() < 0.5
            if source.random() < 0.5:
                tiers[name]["review_window"] = source.choice(WINDOWS)
        classification: list[dict[str, Any]] = []
        if names:
            classification = [
                {"match": {"tags": some(source, TAGS, 1, 2)}, "tier": source.choice(names)}
                for _ in range(source.randint(0, 3))
            ]
            if source.random() < 0.5:
                classification.insert(source.randint(0, len(classification)), {"default": source.choice(names)})
        key["validation"] = {"tiers": tiers, "classification": classification}
    return key


class World:
    """A ledger that grows by what is admitted."""

    def __init__(self, source: random.Random, key: dict[str, Any]) -> None:
        self.source, self.key = source, key
        self.genesis: Genesis = parse_genesis(json.dumps(key).encode())
        self.rows: list[dict[str, Any]] = []
        self.replay = Replay()
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    @property
    def data(self) -> bytes:
        return b"".join(row_bytes(row) + b"\n" for row in self.rows)

    def ids(self, op: str) -> list[str]:
        return [row["id"] for row in self.rows if row["op"] == op]

    def candidate(self) -> dict[str, Any]:
        """Return an operation that mostly has its place: what can be refused for its state is tested elsewhere."""
        source = self.source
        captures, commits = self.ids("capture"), self.ids("commit")
        actor = source.choice(ACTORS)
        if not captures or source.random() < 0.1:
            return {"op": "capture", "actor": actor, "payload": {"body": "b", **self.tags()}}
        if not commits or source.random() < 0.15:
            payload = {"body": "b", "source": source.choice(captures), **self.tags()}
            return {"op": "commit", "actor": actor, "payload": payload}
        payload = {"body": "b", "commitment": source.choice(commits)}
        record = self.replay.state.commitments[payload["commitment"]]
        op = source.choice(FITTING[record.state] if source.random() < 0.9 else OPS[2:8])
        if record.owner is not None and op in ("submit", "close", "release") and source.random() < 0.9:
            actor = record.owner
        if op in ("submit", "close"):
            payload["evidence"] = source.choice(captures)
        if op == "close" and source.random() < 0.25:
            payload["duplicate_of"] = source.choice(commits)
        if op == "approve" and source.random() < 0.6:
            actor = source.choice([record.submission.actor if record.submission else actor, "system:validator"])
        return {"op": op, "actor": actor, "payload": payload}

    def tags(self) -> dict[str, Any]:
        found = some(self.source, TAGS, 0, 2)
        return {"tags": found} if found else {}

    def ask(self, candidate: dict[str, Any], ruling: Ruling) -> tuple[str, str | None] | None:
        """Compare nothing; append what is admitted."""
        numbers = iter(range(len(self.rows) + 1, len(self.rows) + 9))
        try:
            rows = govern(
                Candidate.of(candidate),
                self.replay.state,
                ruling,
                chain_ok=True,
                head_hash=self.rows[-1]["hash"] if self.rows else ZERO,
                workspace="w",
                now=self.now,
                random_hex=lambda count: f"{next(numbers):0{2 * count}x}",
            )
        except TrothError as refusal:
            return refusal.code, refusal.detail
        for row in rows:
            self.rows.append(row)
            self.replay.apply(row_of(len(self.rows), row))
        return None


def walk(seed: int, steps: int) -> World:
    """Grow a ledger under a random key, without one at times, and compare every answer."""
    source = random.Random(seed)
    world = World(source, key_of(source))
    for _ in range(steps):
        world.now += timedelta(seconds=source.choice([0, 1, 60, 3600, 86400, 86400 * 2]))
        governed = source.random() < 0.9
        candidate = world.candidate()
        before, data = list(world.rows), world.data
        mine = world.ask(candidate, Ruling(world.genesis) if governed else Ruling())
        plain = ledger_admission.admit(data, candidate, "w", world.now)
        theirs = genesis_model.answer(world.key, before, candidate, world.now, plain) if governed else plain
        assert mine == theirs, (candidate, world.key)
        OUTCOMES["admitted" if mine is None else f"{mine[0]} {mine[1]}"] += 1
    assert not world.replay.state.anomalies
    assert not ledger_bytes.verify(world.data)["faults"]
    return world


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(5, 40))
def test_random_keys_and_operations(seed: int, steps: int) -> None:
    walk(seed, steps)


@pytest.mark.slow
@settings(max_examples=1500, deadline=None)
@given(st.integers(0, 2**32), st.integers(10, 60))
def test_many_random_keys_and_operations(seed: int, steps: int) -> None:
    walk(seed, steps)


def test_the_comparison_reached_every_rule() -> None:
    if not OUTCOMES:
        pytest.skip("the tests before were not run in this process")
    for seed in range(60):
        walk(seed, 35)
    print(dict(sorted(OUTCOMES.items())))
    for rule in (
        "require_tags", "allow_self", "approvers", "require_approval", "require_human", "auto_close",
        "review_window_passed", "bad_state",
    ):  # fmt: skip
        assert OUTCOMES[f"E_CONSTRAINT_VIOLATED {rule}"], rule
    assert OUTCOMES["E_PERMISSION_DENIED None"]
    assert OUTCOMES["admitted"] > 200


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32))
def test_permissions_and_tiers_of_random_keys(seed: int) -> None:
    source = random.Random(seed)
    key = key_of(source)
    genesis = parse_genesis(json.dumps(key).encode())
    for actor in (*ACTORS, "agent:", "Agent:a", "human:lead-", "nobody", "*", "agent:*"):
        for op in OPS:
            assert genesis.permits(actor, op) == genesis_model.permitted(key, actor, op)
    for _ in range(8):
        tags = some(source, (*TAGS, "other"), 0, 4)
        tier = genesis.tier_of(tags)
        assert (tier.name if tier is not None else None) == genesis_model.tier_name(key, set(tags))


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(0, 2**32))
def test_keys_without_a_change_told_decide_alike(one: int, two: int) -> None:
    """What `changes` passes over is not decided otherwise, for anybody."""
    source = random.Random(one)
    first = key_of(source)
    second = dict(first)
    other = key_of(random.Random(two))
    for name in source.sample(("constraints", "validation"), source.randint(0, 2)):
        second.pop(name, None)
        second |= {name: other[name]} if name in other else {}
    if "actors" in second and source.random() < 0.5:
        second["actors"] = source.sample(second["actors"], source.randint(0, len(second["actors"])))
    old, new = (parse_genesis(json.dumps(key).encode()) for key in (first, second))
    told = {(change.section, change.what) for change in changes(old, new)}
    assert not changes(old, old)
    assert {(change.section, change.what) for change in changes(new, old)} == told
    for actor in (*ACTORS, "x@y", "agent:zz"):
        if [old.permits(actor, op) for op in OPS] != [new.permits(actor, op) for op in OPS]:
            assert any(section == "actors" and matches(what, actor) for section, what in told)
    for tag in TAGS:
        if old.tier_of([tag]) != new.tier_of([tag]):
            assert any(section in ("tiers", "classification") for section, _ in told)


WRONG = {
    "roles_of": lambda key, actor: [entry["role"] for entry in key["actors"] if genesis_model.fits(entry["id"], actor)],
    "permitted": genesis_model.by_entries,
    "tags_about": lambda rows, commitment: set(
        next(row for row in rows if row["id"] == commitment)["payload"].get("tags", [])
    ),
    "seconds": lambda window: 10**9,
    "is_a_person": lambda actor: True,
    "tier_name": lambda key, tags: None,
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_model_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(genesis_model, name, WRONG[name])
    with pytest.raises(AssertionError):
        [walk(seed, 30) for seed in range(300)]
