"""The genesis key's form: everything it may say, everything that is refused, each with line, path and remedy."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
from troth.ledger.yamltree import MAX_BYTES, MAX_DEPTH, MAX_FINDINGS


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


ROLES = "actors: [{id: 'human:*', role: lead}]\n"
ALL = "permissions: {lead: '*'}\n"
TIERS = "validation: {tiers: {tier_1: {}, tier_3: {}}, classification: ["

INVALID = [
    # (what stands behind the identity, on lines from 2; the first place told; what may stand instead)
    ("identity: {name: m, owner: o}\n", (2, "$.identity"), ""),
    ("x-a: 1\nx-a: 2\n", (3, "$.x-a"), "x-a: 1\nx-b: 2\n"),
    ("x-a: {b: 1, b: 2}\n", (2, "$.x-a.b"), "x-a: {b: 1, c: 2}\n"),
    ("x-a: &here 1\n", (2, "$.x-a"), "x-a: 1\n"),
    ("x-a: *here\n", (2, "$.x-a"), "x-a: '*here'\n"),
    ("actors:\n  - {id: *, role: lead}\n" + ALL, (3, "$.actors[0]"), "actors:\n  - {id: '*', role: lead}\n" + ALL),
    ("x-a: !role lead\n", (2, "$.x-a"), "x-a: lead\n"),
    ("x-a: !!python/name:os.system x\n", (2, "$.x-a"), "x-a: !!str x\n"),
    ("x-a: ! 1\n", (2, "$.x-a"), "x-a: 1\n"),
    ("x-a: !!int one\n", (2, "$.x-a"), "x-a: !!int 1\n"),
    ("x-a: !!set {a, b}\n", (2, "$.x-a"), "x-a: [a, b]\n"),
    ("<<: {a: 1}\n", (2, '$["<<"]'), "x-a: {'<<': 1}\n"),
    ("x-a: {1: one}\n", (2, '$.x-a["1"]'), "x-a: {'1': one}\n"),
    ("x-a: {true: one}\n", (2, "$.x-a.true"), "x-a: {yes: one}\n"),
    ("x-a: {~: one}\n", (2, '$.x-a["~"]'), "x-a: {'~': one}\n"),
    ("x-a: {? [a, b] : one}\n", (2, "$.x-a"), "x-a: {? a : one}\n"),
    ("---\nx-a: 1\n", (2, "$"), "x-a: 1\n"),
    ("x-a: [1\n", (3, "$.x-a[1]"), "x-a: [1]\n"),
    ("x-a: 1\n  x-b: 2\n", (3, "$"), "x-a: 1\nx-b: 2\n"),
    ("\tx-a: 1\n", (2, "$"), "x-a: 1\n"),
    ('x-a: "\\ud800"\n', (2, "$.x-a"), 'x-a: "\\u00e9"\n'),
    ("x-a: \x01\n", (2, "$"), 'x-a: "\\x01"\n'),
    (f"x-a: {'9' * 50}\n", (2, "$.x-a"), f"x-a: {'9' * 30}\n"),
    (
        "x-a: " + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "\n",
        (2, "$.x-a" + "[0]" * (MAX_DEPTH - 1)),
        "x-a: [[[[[[1]]]]]]\n",
    ),
    ("actor: []\n", (2, "$.actor"), "x-actor: []\n"),
    ("actors: [{id: human:*, role: lead}]\n", (2, "$.actors"), "actors: [{id: 'human:*', role: lead}]\n" + ALL),
    (ALL, (2, "$.permissions"), ALL + ROLES),
    ("actors: [{id: 'a*b', role: lead}]\n" + ALL, (2, "$.actors[0].id"), "actors: [{id: 'ab*', role: lead}]\n" + ALL),
    ("actors: [{id: '**', role: lead}]\n" + ALL, (2, "$.actors[0].id"), "actors: [{id: '*', role: lead}]\n" + ALL),
    ("actors: [{id: 'human:a b', role: lead}]\n" + ALL, (2, "$.actors[0].id"), ROLES + ALL),
    ("actors: [{id: '', role: lead}]\n" + ALL, (2, "$.actors[0].id"), ROLES + ALL),
    ("actors: [{id: 7, role: lead}]\n" + ALL, (2, "$.actors[0].id"), ROLES + ALL),
    ("actors: [{role: lead}]\n" + ALL, (2, "$.actors[0].id"), ROLES + ALL),
    ("actors: [{id: 'human:*'}]\n" + ALL, (2, "$.actors[0].role"), ROLES + ALL),
    ("actors: [{id: 'human:*', role: [lead]}]\n" + ALL, (2, "$.actors[0].role"), ROLES + ALL),
    (
        "actors: [{id: 'human:*', role: lead, may: 1}]\n" + ALL,
        (2, "$.actors[0].may"),
        "actors: [{id: 'human:*', role: lead, x-may: 1}]\n" + ALL,
    ),
    ("actors: {id: 'human:*', role: lead}\n" + ALL, (2, "$.actors"), ROLES + ALL),
    ("actors: [human]\n" + ALL, (2, "$.actors[0]"), ROLES + ALL),
    ("actors:\n" + ALL, (2, "$.actors"), "actors: []\n" + ALL),
    (ROLES + "permissions: {led: '*'}\n", (2, "$.actors[0].role"), ROLES + ALL),
    (
        ROLES + "permissions: {lead: [destroy]}\n",
        (3, "$.permissions.lead[0]"),
        ROLES + "permissions: {lead: [close]}\n",
    ),
    (ROLES + "permissions: {lead: ['*']}\n", (3, "$.permissions.lead[0]"), ROLES + ALL),
    (ROLES + "permissions: {lead: all}\n", (3, "$.permissions.lead"), ROLES + "permissions: {lead: []}\n"),
    (ROLES + "permissions: [lead]\n", (2, "$.actors[0].role"), ROLES + ALL),
    (
        "constraints: {approve: {allow_other: true}}\n",
        (2, "$.constraints.approve.allow_other"),
        "constraints: {approve: {allow_self: true}}\n",
    ),
    (
        "constraints: {commit: {require_claim: true}}\n",
        (2, "$.constraints.commit.require_claim"),
        "constraints: {claim: {require_claim: true}}\n",
    ),
    (
        "constraints: {close: {require_evidence: yes}}\n",
        (2, "$.constraints.close.require_evidence"),
        "constraints: {close: {require_evidence: true}}\n",
    ),
    (
        "constraints: {security: {require_aproval: true}}\n",
        (2, "$.constraints.security.require_aproval"),
        "constraints: {security: {require_approval: true}}\n",
    ),
    (
        "constraints: {submit: {require_evidence: true}}\n",
        (2, "$.constraints.submit.require_evidence"),
        "constraints: {submit: {require_approval: true}}\n",
    ),
    (
        "constraints: {security: {require_approval: true, approvers: []}}\n",
        (2, "$.constraints.security.approvers"),
        "constraints: {security: {require_approval: true, approvers: ['human:*']}}\n",
    ),
    (
        "constraints: {security: {approvers: ['*:lead']}}\n",
        (2, "$.constraints.security.approvers[0]"),
        "constraints: {security: {require_approval: true, approvers: ['human:lead']}}\n",
    ),
    (
        "constraints: {security: {approvers: }}\n",
        (2, "$.constraints.security.approvers"),
        "constraints: {security: {}}\n",
    ),
    ("constraints: {security: true}\n", (2, "$.constraints.security"), "constraints: {security: {}}\n"),
    ("trust: {weights: {exit_code: 1}}\n", (2, "$.trust.weights.test_pass_rate"), "trust: {}\n"),
    (
        "trust: {decay: {default_half_life_days: 0}}\n",
        (2, "$.trust.decay.default_half_life_days"),
        "trust: {decay: {default_half_life_days: 1}}\n",
    ),
    (
        "trust: {decay: {default_half_life_days: 1.0}}\n",
        (2, "$.trust.decay.default_half_life_days"),
        "trust: {decay: {default_half_life_days: 365}}\n",
    ),
    (
        "trust: {decay: {default_half_life_days: true}}\n",
        (2, "$.trust.decay.default_half_life_days"),
        "trust: {decay: {}}\n",
    ),
    (
        f"trust: {{decay: {{default_half_life_days: {2**53}}}}}\n",
        (2, "$.trust.decay.default_half_life_days"),
        f"trust: {{decay: {{default_half_life_days: {2**53 - 1}}}}}\n",
    ),
    ("validation: {tiers: {tier_0: {}}}\n", (2, "$.validation.tiers.tier_0"), "validation: {tiers: {tier_1: {}}}\n"),
    ("validation: {tiers: {tier_4: {}}}\n", (2, "$.validation.tiers.tier_4"), "validation: {tiers: {tier_3: {}}}\n"),
    (
        "validation: {tiers: {tier_1: {auto_close: true, require_human: true}}}\n",
        (2, "$.validation.tiers.tier_1.auto_close"),
        "validation: {tiers: {tier_1: {auto_close: false, require_human: true}}}\n",
    ),
    (
        "validation: {tiers: {tier_1: {auto_close: true, validators: []}}}\n",
        (2, "$.validation.tiers.tier_1.validators"),
        "validation: {tiers: {tier_1: {auto_close: false, validators: []}}}\n",
    ),
    (
        "validation: {tiers: {tier_1: {review_window: 24}}}\n",
        (2, "$.validation.tiers.tier_1.review_window"),
        "validation: {tiers: {tier_1: {auto_close: true, review_window: 24h}}}\n",
    ),
    (
        "validation: {tiers: {tier_1: {review_window: 1.5h}}}\n",
        (2, "$.validation.tiers.tier_1.review_window"),
        "validation: {tiers: {tier_1: {auto_close: true, review_window: 90m}}}\n",
    ),
    (
        "validation: {tiers: {tier_1: {review_window: 24 h}}}\n",
        (2, "$.validation.tiers.tier_1.review_window"),
        "validation: {tiers: {tier_1: {auto_close: true, review_window: 0s}}}\n",
    ),
    (
        "validation: {tiers: {tier_1: {review_window: 1w}}}\n",
        (2, "$.validation.tiers.tier_1.review_window"),
        "validation: {tiers: {tier_1: {auto_close: true, review_window: 7d}}}\n",
    ),
    (
        "validation: {tiers: {tier_1: {review_window: 99999999d}}}\n",
        (2, "$.validation.tiers.tier_1.review_window"),
        "validation: {tiers: {tier_1: {auto_close: true, review_window: 36500d}}}\n",
    ),
    (
        "validation: {tiers: {tier_1: {validators: technical}}}\n",
        (2, "$.validation.tiers.tier_1.validators"),
        "validation: {tiers: {tier_1: {validators: [technical]}}}\n",
    ),
    (
        "validation: {tiers: {tier_1: {validators: [' ']}}}\n",
        (2, "$.validation.tiers.tier_1.validators[0]"),
        "validation: {tiers: {tier_1: {validators: [own]}}}\n",
    ),
    (TIERS + "{default: tier_2}]}\n", (2, "$.validation.classification[0].default"), TIERS + "{default: tier_3}]}\n"),
    (TIERS + "{default: strict}]}\n", (2, "$.validation.classification[0].default"), TIERS + "{default: 3}]}\n"),
    (
        TIERS + "{default: tier_1}, {default: tier_1}]}\n",
        (2, "$.validation.classification[1]"),
        TIERS + "{default: tier_1}]}\n",
    ),
    (
        TIERS + "{default: tier_1, tier: tier_1}]}\n",
        (2, "$.validation.classification[0]"),
        TIERS + "{default: tier_1}]}\n",
    ),
    (
        TIERS + "{match: {tags: [a]}}]}\n",
        (2, "$.validation.classification[0]"),
        TIERS + "{match: {tags: [a]}, tier: tier_1}]}\n",
    ),
    (TIERS + "{tier: tier_1}]}\n", (2, "$.validation.classification[0]"), TIERS + "{match: {tags: [a]}, tier: 1}]}\n"),
    (TIERS + "{match: {tags: []}, tier: tier_1}]}\n", (2, "$.validation.classification[0].match.tags"), TIERS + "]}\n"),
    (TIERS + "{match: {tags: a}, tier: tier_1}]}\n", (2, "$.validation.classification[0].match.tags"), TIERS + "]}\n"),
    (TIERS + "{match: {kind: a}, tier: tier_1}]}\n", (2, "$.validation.classification[0].match.kind"), TIERS + "]}\n"),
    (
        "validation: {classification: [{default: tier_1}]}\n",
        (2, "$.validation.classification[0].default"),
        "validation: {}\n",
    ),
    ("federation: {enabled: 1}\n", (2, "$.federation.enabled"), "federation: {enabled: false}\n"),
    ("federation: {workspaces: ['a b']}\n", (2, "$.federation.workspaces[0]"), "federation: {workspaces: [ab]}\n"),
    ("federation: {sync_target: [a]}\n", (2, "$.federation.sync_target"), "federation: {sync_target: null}\n"),
]


@pytest.mark.parametrize(("wrong", "where", "right"), INVALID)
def test_each_refusal_names_its_place_and_has_a_twin_that_is_read(wrong: str, where: Any, right: str) -> None:
    genesis, findings = check_genesis((IDENTITY + wrong).encode("utf-8", "surrogatepass"))
    assert genesis is None
    assert (findings[0].line, findings[0].path) == where
    assert findings[0].message
    assert findings[0].remedy
    twin, none = check_genesis((IDENTITY + right).encode())
    assert none == []
    assert twin is not None


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (b"", (1, "$")),
        (b"# nothing\n", (1, "$")),
        (b"[]", (1, "$")),
        (b"key", (1, "$")),
        (b"null", (1, "$")),
        (b"{}", (1, "$.identity")),
        (b"identity:\n", (1, "$.identity")),
        (b"identity: {}\n", (1, "$.identity.name")),
        (b"identity: {name: n}\n", (1, "$.identity.owner")),
        (b"identity: {name: '  ', owner: o}\n", (1, "$.identity.name")),
        (b"identity: {name: n, owner: o, created: {}}\n", (1, "$.identity.created")),
        (b"identity: {name: n, owner: 2026-01-01, born: now}\n", (1, "$.identity.born")),
        (b"%YAML 1.1\n---\nidentity: {name: n, owner: o}\n", (2, "$")),
        (b"%TAG ! tag:example.org,2000:\n---\nidentity: {name: n, owner: o}\n", (2, "$")),
        (b"identity: {name: n, owner: o}\n# \xff\n", (2, "$")),
        (b"identity: {name: n, owner: o}\n" + b"#" * MAX_BYTES, (1, "$")),
    ],
)
def test_what_is_no_key_at_all(text: bytes, where: Any) -> None:
    genesis, findings = check_genesis(text)
    assert genesis is None
    assert (findings[0].line, findings[0].path) == where


@pytest.mark.parametrize(
    "text",
    [
        b"%YAML 1.2\n---\nidentity: {name: n, owner: o}\n...\n",
        b"\xef\xbb\xbfidentity: {name: n, owner: o}\n",
        b"identity: {name: n, owner: o, created: 2026-01-01, description: null, x-: 1}\n",
        b"identity: {name: n, owner: o}\r\nx-a: 1\r\n",
        b"identity:\n  name: |\n    n\n  owner: >-\n    o\n",
        b"identity: {name: n, owner: o}\n" + b"#" * (MAX_BYTES - 30),
        b'{"identity": {"name": "n", "owner": "o"}}',
    ],
)
def test_other_ways_to_write_a_key(text: bytes) -> None:
    genesis, findings = check_genesis(text)
    assert findings == []
    assert genesis is not None


def test_all_problems_are_told_in_the_order_of_the_lines_and_not_without_end() -> None:
    many = IDENTITY + "".join(f"unknown{number}: 1\n" for number in range(3))
    many += "trust: {weights: {exit_code: 2}}\n"
    lines = [found.line for found in check_genesis(many.encode())[1]]
    assert lines == [2, 3, 4, 5, 5, 5, 5, 5, 5, 5]
    endless = IDENTITY + "".join("x-a: &a 1\n" for _ in range(1000))
    assert len(check_genesis(endless.encode())[1]) <= MAX_FINDINGS


def _weights(**changed: Any) -> str:
    shown = ", ".join(f"{name}: {value}" for name, value in {**WEIGHTS, **changed}.items())
    return f"trust: {{weights: {{{shown}}}}}\n"


@pytest.mark.parametrize(
    ("changed", "valid"),
    [
        ({}, True),
        ({"exit_code": 0.2 + 9e-7}, True),
        ({"exit_code": 0.2 + 2e-6}, False),
        ({"exit_code": 0.4, "test_pass_rate": 0}, True),
        ({"exit_code": 0.5, "test_pass_rate": -0.1}, False),
        ({"exit_code": 1.2, "test_pass_rate": -0.8}, False),
        ({"exit_code": ".nan"}, False),
        ({"exit_code": ".inf"}, False),
        ({"exit_code": "true"}, False),
        ({"exit_code": "'0.2'"}, False),
        ({"exit_code": "2e-1"}, True),
        ({"other": 0}, False),
    ],
)
def test_weights_are_seven_from_0_to_1_and_sum_to_1(changed: dict[str, Any], valid: bool) -> None:
    assert (check_genesis((IDENTITY + _weights(**changed)).encode())[0] is not None) == valid


@pytest.mark.parametrize(
    "text",
    [
        ROLES + "permissions: {lead: '*', idle: []}\n",
        "actors: []\npermissions: {}\n",
        "actors: [{id: team:core, role: lead}]\n" + ALL,
        "constraints: {close: {require_evidence: false}}\n",
        "constraints: {submit: {require_approval: true}}\n",
        "constraints: {security: {approvers: ['human:*']}}\n",
        "validation: {tiers: {tier_1: {auto_close: true, validators: [technical, intent]}}}\n",
        "validation: {tiers: {tier_1: {review_window: 1h}}}\n",
    ],
)
def test_what_is_valid_and_odd_is_remarked(text: str) -> None:
    genesis = key(text)
    assert len(genesis.remarks) == 1
    assert genesis.remarks[0].line >= 2
    assert genesis.remarks[0].remedy


# --- hostile text

PIECES = [
    IDENTITY, ROLES, ALL, TIERS, "]}\n", "x-a: ", "- ", "{", "}", "[", "]", ": ", ", ", "&a ", "*a ", "!t ", "!!str ",
    "'", '"', "\n", "  ", "|\n", ">-\n", "%YAML 1.2\n", "---\n", "...\n", "<<: ", "? ", "~", "true", "1e400", "0x1F",
    "0o17", "\t", "\x00", "\x85", "\u2028", "\ufeff", "é", "\U0001f600", "trust: {}\n",
    "constraints: {a: {}}\n", "federation: {enabled: true}\n", "# note\n", "\\ud800", "\r\n",
]  # fmt: skip

ACCEPTED = {"read": 0, "refused": 0}


@settings(max_examples=400, deadline=None)
@given(st.data())
def test_hostile_text_is_refused_in_order_or_read(data: st.DataObject) -> None:
    how = data.draw(st.sampled_from(["pieces", "cut", "bytes"]))
    if how == "pieces":
        text = IDENTITY * data.draw(st.booleans()) + "".join(data.draw(st.lists(st.sampled_from(PIECES), max_size=8)))
        raw = text.encode()
    else:
        whole = WHOLE.encode()
        start = data.draw(st.integers(0, len(whole)))
        end = data.draw(st.integers(start, min(len(whole), start + 12)))
        new = b"" if how == "cut" else data.draw(st.binary(max_size=4) | st.sampled_from([p.encode() for p in PIECES]))
        raw = whole[:start] + new + whole[end:]
    genesis, findings = check_genesis(raw)
    assert (genesis is None) == bool(findings)
    ACCEPTED["refused" if genesis is None else "read"] += 1
    for found in findings:
        assert (
            1
            <= found.line
            <= raw.count(b"\n") + raw.count(b"\r") + raw.count("\u2028".encode()) + raw.count(b"\xc2\x85") + 1
        )
        assert found.path.startswith("$")
        assert found.message.isprintable()
        assert found.remedy.isprintable()
    assert (genesis, findings) == check_genesis(raw)


def test_hostile_texts_were_read_too() -> None:
    total = sum(ACCEPTED.values())
    if not total:
        pytest.skip("the test before was not run in this process")
    print(f"{ACCEPTED['read']} of {total} hostile texts were read")
    assert ACCEPTED["read"] > total * 0.05
    assert ACCEPTED["refused"] > total * 0.2


LARGE = [
    b"[" * 60000, b"{a: " * 16000, b"- " * 30000, b"? " * 30000, b"'" * 60001, b"a: b\n" * 13000, b"&a " * 20000,
    b'"\\x' * 20000, b"!" * 60000, b"a" * 60000 + b": 1", b"*a\n" * 20000, b"|\n" * 20000, b"#\n" * 30000,
    b"\r" * 60000,
]  # fmt: skip


@pytest.mark.parametrize("raw", LARGE)
def test_large_hostile_texts_are_refused(raw: bytes) -> None:
    genesis, findings = check_genesis(raw)
    assert genesis is None
    assert findings


def test_names_that_are_told_are_made_harmless() -> None:
    hostile = (
        IDENTITY + "actors: [{id: 'human:*', role: lead}]\npermissions: {\"lea\\ufeffd\": '*', \"le\\e[31mad\": '*'}\n"
    )
    _, findings = check_genesis(hostile.encode())
    assert [found.path for found in findings] == ["$.actors[0].role"]
    assert "\\ufeff" in findings[0].remedy
    assert all(found.message.isprintable() and found.remedy.isprintable() for found in findings)
