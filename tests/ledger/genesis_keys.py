"""Genesis keys for tests: one that says everything, and small ones."""

from __future__ import annotations

from troth.ledger.genesis import Genesis, parse_genesis

IDENTITY = "identity: {name: workshop, owner: human:reviewer}\n"

WHOLE = """\
identity:
  name: workshop
  owner: team:core
  created: 2026-01-01
  description: Everything a key may say.
  x-note: ours
x-own: {anything: [1, 2]}
actors:
  - {id: "human:*", role: lead}
  - {id: human:guest, role: reader}
  - {id: "agent:*", role: worker}
  - {id: "agent:*", role: noter}
  - {id: "agent:trusted-*", role: lead}
  - {id: system:witness, role: noter}
permissions:
  lead: "*"
  worker: [capture, claim, release, submit, close]
  noter: [capture, annotate]
  reader: [annotate]
constraints:
  claim: {require_claim: true}
  close: {require_evidence: true}
  commit: {require_tags: true}
  approve: {allow_self: false}
  security:
    require_approval: true
    approvers: ["human:lead-*", "reviewer@example.org"]
trust:
  weights:
    exit_code: 0.3
    test_pass_rate: 0.3
    context_utilization: 0
    loop_complete: 0.1
    duration_reasonable: 0.1
    no_errors: 0.1
    evidence_depth: 0.1
  decay:
    default_half_life_days: 30
validation:
  tiers:
    tier_1: {auto_close: true, validators: [technical]}
    tier_2: {auto_close: true, review_window: 24h, validators: [technical, safety]}
    tier_3: {auto_close: false, require_human: true, validators: [technical, safety, intent]}
  classification:
    - {match: {tags: [routine, docs]}, tier: tier_1}
    - {match: {tags: [security]}, tier: tier_3}
    - {default: tier_2}
federation:
  enabled: true
  sync_target: https://example.org/sync
  workspaces: [other]
"""


def key(text: str) -> Genesis:
    """Return the key of an identity and further sections."""
    return parse_genesis((IDENTITY + text).encode())
