"""Workspaces with tiers, and runs' folders made without running anything: what the airlock is tested with."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from support.ledgers import START, fresh
from support.receipt_members import Draft
from troth.airlock.evidence import evidence_row
from troth.ledger.operations import Candidate
from troth.receipts.writing import build_receipt, self_pin
from troth.stores.jsonl import JsonlStore
from troth.stores.protocol import LedgerStore

IDENTITY = "identity: {name: w, owner: human:reviewer}\n"
WORKER = "agent:worker"
PERSON = "human:reviewer"

KEY = (
    IDENTITY
    + """
validation:
  tiers:
    tier_1: {auto_close: true}
    tier_2: {auto_close: true, review_window: 24h, validators: [suite]}
    tier_3: {require_human: true, validators: [suite, intent]}
  classification:
    - {match: {tags: [docs]}, tier: tier_1}
    - {match: {tags: [security]}, tier: tier_3}
    - {default: tier_2}
"""
)
"""Tier 1 asks for a receipt, tiers 2 and 3 for the command `suite`."""


def one_tier(**fields: Any) -> str:
    """A key whose only tier has these fields, in YAML's flow style."""
    return IDENTITY + f"validation: {{tiers: {{tier_1: {json.dumps(fields)}}}}}\n"


def settle(root: Path, key: str | None = KEY, validators: Mapping[str, Sequence[str]] | None = None) -> None:
    """Write key and validators into a workspace."""
    folder = root / ".mentu"
    if key is not None:
        (folder / "genesis.key").write_text(key)
    if validators is not None:
        (folder / "config.yaml").write_text(json.dumps({"workspace": "w", "validators": dict(validators)}))


def workspace(
    root: Path, key: str | None = KEY, validators: Mapping[str, Sequence[str]] | None = None, **options: Any
) -> JsonlStore:
    """The store of a fresh workspace with a key, commands for validators, and a predictable clock."""
    fresh(root)
    settle(root, key, validators if validators is not None else {"suite": ["true"]})
    options.setdefault("clock", lambda: START)
    return JsonlStore.open(root, **options)


def committed(store: LedgerStore, *tags: str, by: str = WORKER) -> str:
    """A commitment with these tags, claimed."""
    source = store.append(Candidate("capture", PERSON, {"body": "seen"}))["id"]
    made = store.append(Candidate("commit", PERSON, {"body": "mend it", "source": source, "tags": list(tags)}))["id"]
    store.append(Candidate("claim", by, {"body": "mine", "commitment": made}))
    return str(made)


def shown(store: LedgerStore, by: str = WORKER) -> str:
    """A piece of evidence without a receipt."""
    return str(store.append(Candidate("capture", by, {"body": "done", "kind": "evidence"}))["id"])


def submit(store: LedgerStore, commitment: str, evidence: str | None = None, by: str = WORKER, **meta: Any) -> str:
    """A submit row, as the operation alone makes it: nothing is validated."""
    payload: dict[str, Any] = {"body": "done", "commitment": commitment, "evidence": evidence or shown(store, by)}
    if meta:
        payload["meta"] = meta
    return str(store.append(Candidate("submit", by, payload))["id"])


def in_review(store: LedgerStore, *tags: str) -> tuple[str, str]:
    """A commitment in review with evidence that is a mere word; (commitment, submission)."""
    commitment = committed(store, *tags)
    return commitment, submit(store, commitment)


def run_folder(
    root: Path,
    run: str,
    commitment: str,
    *,
    edit: Callable[[Draft], Any] = lambda _: None,
    producers: tuple[str, str] = ("troth-observer", "troth-verifier"),
    invocation: str | None = None,
) -> str:
    """Make the folder of a run, by hand but as `troth run` leaves it; return the receipt's digest."""
    draft = Draft()
    for kind, value in draft.values.items():
        if "claim_id" in value:
            value["claim_id"], value["invocation_id"] = commitment, invocation or run
        if value.get("producer") == "observer":
            value["producer"] = producers[0]
        if value.get("producer") == "verifier":
            value["producer"] = producers[1]
        if kind == "claims":
            value["producer"] = "troth-transcript"
    edit(draft)
    files = draft.records()
    scope = draft.values["observation"]["scope"]
    pinned = self_pin(
        files, claim_id=commitment, invocation_id=invocation or run, scope=scope, observed_party=WORKER,
        authority="the tests",
    )  # fmt: skip
    receipt = build_receipt({**files, **pinned}, verifier_id="urn:example:verifier")
    folder = root / ".mentu" / "runs" / run
    folder.mkdir(parents=True)
    for name, data in {**files, **pinned, "receipt.json": receipt}.items():
        (folder / name).write_bytes(data)
    return hashlib.sha256(receipt).hexdigest()


def failing(draft: Draft) -> None:
    """Let an acceptance command fail: the receipt is valid and says contradicted."""
    draft.values["grade"]["results"][0]["exit"] = 1


def captured(store: LedgerStore, run: str, commitment: str, digest: str, /, **meta: Any) -> str:
    """The evidence row of a run, as `troth run` writes it; `meta` changes members of its meta."""
    row = evidence_row(
        run_id=run,
        commitment=commitment,
        source=store.read().state.commitments[commitment].source,
        agent=WORKER,
        verdict={"decision": "supported", "reason": "done_checks_supported"},
        sentence="Every check is supported.",
        receipt_sha256=digest,
        sealing={},
    )
    row.payload["meta"].update(meta)
    row.payload["meta"] = {name: value for name, value in row.payload["meta"].items() if value is not None}
    return str(store.append(row)["id"])


def validations(store: LedgerStore) -> list[dict[str, Any]]:
    """The answers on record: payload.meta of each, with id and target."""
    found = []
    for row in store.read().rows:
        payload = row.value["payload"]
        if row.value["op"] == "annotate" and payload.get("kind") == "validation":
            found.append({**payload["meta"], "id": row.id, "target": payload["target"], "actor": row.value["actor"]})
    return found


def approvals(store: LedgerStore) -> list[dict[str, Any]]:
    """The approve rows."""
    return [row.value for row in store.read().rows if row.value["op"] == "approve"]
