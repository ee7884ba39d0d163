"""The genesis key's form: everything it may say, everything that is refused, each with line, path and remedy."""

from __future__ import annotations

import pytest

from ledger.genesis_keys import IDENTITY, WHOLE, key
from troth.core.digests import sha256_hex
from troth.ledger.genesis import (
    Entry,
    Federation,
    GenesisInvalid,
    Identity,
    TagRule,
    Tier,
    check_genesis,
    parse_genesis,
)
from troth.ledger.trust import WEIGHTS


def test_everything_a_key_may_say() -> None:
    genesis = parse_genesis(WHOLE.encode())
    assert genesis.sha256 == sha256_hex(WHOLE.encode())
    assert genesis.identity == Identity("workshop", "team:core", "2026-01-01", "Everything a key may say.")
    assert genesis.actors is not None
    assert genesis.actors[0] == Entry("human:*", "lead", 9)
    assert genesis.permissions is not None
    assert len(genesis.permissions["lead"]) == 9
    assert genesis.permissions["reader"] == {"annotate"}
    assert genesis.constraints.require_tags
    assert not genesis.constraints.allow_self
    assert genesis.constraints.tags == {"security": TagRule(True, ("human:lead-*", "reviewer@example.org"))}
    assert genesis.weights["exit_code"] == 0.3
    assert genesis.half_life_days == 30
    assert genesis.tiers == {
        1: Tier(1, True),
        2: Tier(2, True, 86400, False, ("technical", "safety")),
        3: Tier(3, False, None, True, ("technical", "safety", "intent")),
    }
    assert genesis.default_tier == 2
    assert genesis.federation == Federation(True, "https://example.org/sync", ("other",))
    assert genesis.remarks == ()


def test_the_least_a_key_may_say() -> None:
    genesis = key("")
    assert genesis.weights == WEIGHTS
    assert genesis.half_life_days is None
    assert genesis.tier_of(["security"]) is None
    assert genesis.permits("agent:anybody", "approve")


def test_what_is_wrong_is_named_with_line_path_and_remedy() -> None:
    text = IDENTITY + 'actors:\n  - {id: "agent:*", role: worker}\n  - {id: "human:*", role: led}\npermissions:\n'
    text += "  worker: [capture, clam]\n  lead: '*'\n"
    with pytest.raises(GenesisInvalid) as caught:
        parse_genesis(text.encode(), "genesis.key")
    fault = caught.value
    assert (fault.code, fault.detail) == ("E_CONSTRAINT_VIOLATED", "genesis_invalid")
    assert fault.place is not None
    assert (fault.place.file, fault.place.line, fault.place.path) == ("genesis.key", 4, "$.actors[1].role")
    assert [(one.line, one.path) for one in fault.findings] == [
        (4, "$.actors[1].role"),
        (6, "$.permissions.worker[1]"),
    ]
    assert all(one.message and one.remedy for one in fault.findings)
    assert check_genesis(text.replace("led}", "lead}").replace("clam", "claim").encode())[1] == []
