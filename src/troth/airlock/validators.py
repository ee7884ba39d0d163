"""The validators that the specification names, and those of the settings (ledger spec §11 [D42], §16).

A validator is a function from what was submitted to one :class:`Result`. It decides nothing: what a tier makes of the
answers stands in :mod:`troth.airlock.tiers`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from troth.airlock.pinned import NotSo, decided, examined, is_run, short
from troth.airlock.tiers import Result
from troth.core.digests import sha256_hex
from troth.core.errors import TrothError
from troth.core.words import printable

if TYPE_CHECKING:
    from troth.ledger.genesis import Tier
    from troth.receipts.verify import Examination
    from troth.stores.workspace import Config, Workspace

MAX_REASON: Final = 400
"""Characters of a reason."""

SEVERE: Final = frozenset({"high", "critical"})
"""Severities of a finding that stand in the way of ``safety`` while accepted and not resolved."""


@dataclass(frozen=True, slots=True)
class Submitted:
    """What validators are asked about.

    Ids are the ledger's. ``row`` is the submit row and ``evidence_row`` the row it names, as parsed. ``workspace`` is
    where runs and commands are found; ``None`` for a ledger without one. ``rejected_by`` is the reopening, by somebody
    else than the submitter, that stands between the evidence and the submission.
    """

    commitment: str
    submission: str
    evidence: str
    actor: str
    tier: Tier
    row: Mapping[str, Any]
    evidence_row: Mapping[str, Any]
    workspace: Workspace | None
    rejected_by: str | None = None


class Validator(Protocol):
    """Answers for one name."""

    def __call__(self, submitted: Submitted) -> Result:
        """Return the answer; a :class:`TrothError` counts as failed, with its sentence."""


# --- technical -----------------------------------------------------------------------------------------------------


def technical(submitted: Submitted) -> Result:
    """Pass when the evidence names a done receipt that verifies with verdict ``supported`` ([D42]).

    Nothing is taken from the row but where to look: the run's folder is read, the receipt must have the digest that was
    captured, name this commitment and its run, and come out valid and supported when it is computed anew, judged by our
    own pins of who observes and who grades.
    """
    try:
        run, digest = _named_run(submitted.evidence_row)
        found = _verified(submitted, run, digest)
    except NotSo as why:
        return Result("technical", "failed", str(why))
    assert found.done is not None
    facts = {"run": run, "receipt_sha256": digest, "done": found.done.as_json()}
    if found.done.decision != "supported":
        return Result("technical", "failed", f"the receipt of {run} says {decided(found)}", facts)
    return Result("technical", "passed", f"the receipt of {run} verifies: supported", facts)


def _named_run(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the run and the digest of the receipt that an evidence row names."""
    payload = row.get("payload")
    meta = payload.get("meta") if isinstance(payload, Mapping) else None
    meta = meta if isinstance(meta, Mapping) else {}
    run, digest = meta.get("run"), meta.get("receipt_sha256")
    if "receipt" not in meta:
        raise NotSo("the evidence names no done receipt")
    # The folder follows from the run's id alone, so that no row can lead elsewhere.
    if not is_run(run) or meta["receipt"] != f".mentu/runs/{run}/receipt.json":
        raise NotSo("the evidence names a receipt that is not in the folder of a run of this workspace")
    if not isinstance(digest, str):
        raise NotSo("the evidence does not say which receipt it means: receipt_sha256 is missing")
    return run, digest


def _verified(submitted: Submitted, run: str, digest: str) -> Examination:
    if submitted.workspace is None:
        raise NotSo("this ledger stands in no workspace, so no run's folder can be read")
    if submitted.rejected_by is not None:
        raise NotSo(f"the evidence is from before {submitted.rejected_by} reopened the commitment; run it again")
    return examined(
        submitted.workspace.folder / "runs" / run,
        run,
        digest,
        claim_id=submitted.commitment,
        observed_party=submitted.actor,
        what="this commitment",
    )


# --- safety --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a review: its id, severity, state (``accepted``, ``resolved``, …), as the review settled it."""

    id: str
    severity: str
    state: str


@dataclass(frozen=True, slots=True)
class ReviewOutcome:
    """What a review came to: its id, the digest of the payload it looked at, its outcome, and its findings.

    ``tier`` is how independent of the host the reviewer was, where that is on record. ``scripted`` tells that no model
    was asked: the answers stood in a file.
    """

    review: str
    artifact: str
    outcome: str
    findings: Sequence[Finding]
    tier: str | None = None
    scripted: bool = False


class ReviewFinder(Protocol):
    """Finds reviews; implemented where they are kept."""

    def find(self, review: str, submitted: Submitted) -> ReviewOutcome | None:
        """Return the review of that id, verified against its own records, or ``None`` when none is on record."""


def safety(submitted: Submitted, finder: ReviewFinder) -> Result:
    """Pass when a review of the same revision is ``converged`` with no accepted severe finding unresolved ([D42]).

    The review is the one that the submission's ``meta.review`` names, and of the same revision when its payload digest
    equals ``meta.artifact`` (§16).
    """
    payload = submitted.row.get("payload")
    meta = payload.get("meta") if isinstance(payload, Mapping) else None
    meta = meta if isinstance(meta, Mapping) else {}
    named, artifact = meta.get("review"), meta.get("artifact")
    if not isinstance(named, str) or not named:
        return Result("safety", "failed", "no review is on record: the submission names none (meta.review)")
    if not isinstance(artifact, str) or not artifact:
        return Result("safety", "failed", "the submission does not say which revision was reviewed (meta.artifact)")
    found = finder.find(named, submitted)
    if found is None or found.review != named:
        return Result("safety", "failed", f"no review is on record under the name {short(named)}")
    facts: dict[str, Any] = {"review": found.review, "artifact": found.artifact, "outcome": found.outcome}
    facts |= {"tier": found.tier} if found.tier is not None else {}
    facts |= {"scripted": True} if found.scripted else {}
    if found.artifact != artifact:
        return Result("safety", "failed", f"the review {short(named)} is of another revision", facts)
    if found.outcome != "converged":
        return Result("safety", "failed", f"the review {short(named)} is {short(found.outcome)}", facts)
    severe = [one.id for one in found.findings if one.severity in SEVERE and one.state == "accepted"]
    if severe:
        shown = ", ".join(map(short, severe[:5])) + (f" and {len(severe) - 5} more" if len(severe) > 5 else "")
        return Result("safety", "failed", f"severe findings are accepted and not resolved: {shown}", facts)
    # A reviewer that is no independent one is never told as if it were (Impasse spec, §13).
    told = [short(found.tier).replace("_", " ")] if found.tier is not None else []
    told += ["answers from a file, read by no model"] if found.scripted else []
    whose = f" ({'; '.join(told)})" if told else ""
    return Result("safety", "passed", f"the review {short(named)} converged{whose}", facts)


# --- intent --------------------------------------------------------------------------------------------------------


def intent(submitted: Submitted) -> Result:
    """Wait: it is a person's approval and never passes by itself ([D42])."""
    return Result("intent", "waiting", "a person has to approve")


# --- names ---------------------------------------------------------------------------------------------------------


def command(name: str, argv: Sequence[str], *, sandboxed: bool = False) -> Validator:
    """Return the validator that runs a command of the settings."""

    def run(submitted: Submitted) -> Result:
        from troth.airlock.commands import run_in_sandbox, run_validator, told_of

        if submitted.workspace is None:
            return Result(name, "failed", "this ledger stands in no workspace, so no command can run in it")
        told = {
            "TROTH_VALIDATOR": name,
            "TROTH_TIER": str(submitted.tier.number),
            "TROTH_COMMITMENT": submitted.commitment,
            "TROTH_SUBMISSION": submitted.submission,
            "TROTH_EVIDENCE": submitted.evidence,
        }
        start = run_in_sandbox if sandboxed else run_validator
        passed, reason, facts = told_of(start(argv, submitted.workspace.root, told))
        # The settings leave no trace of their own: which command answered is recorded, its arguments (which may hold a
        # secret) by their digest.
        facts |= {"command": printable(argv[0], MAX_REASON), "argv_sha256": sha256_hex(json.dumps(list(argv)).encode())}
        facts |= {"sandboxed": sandboxed}
        return Result(name, "passed" if passed else "failed", printable(reason, MAX_REASON), facts)

    return run


def _unknown(name: str) -> Validator:
    reason = f"no validator is called {short(name)}: map it to a command in config.yaml (validators)"
    return lambda submitted: Result(name, "failed", reason)


def validator_of(name: str, config: Config, finder: ReviewFinder) -> Validator:
    """Return the validator of a name: the settings' command, else the specification's, else one that fails."""
    built_in: dict[str, Validator] = {
        "technical": technical,
        "safety": lambda submitted: safety(submitted, finder),
        "intent": intent,
    }
    if name in config.validators:
        return command(name, config.validators[name], sandboxed=name in config.sandboxed)
    return built_in.get(name) or _unknown(name)


def answer(name: str, submitted: Submitted, config: Config, finder: ReviewFinder) -> Result:
    """Return one validator's answer; what it could not find out has failed, with the reason."""
    try:
        return validator_of(name, config, finder)(submitted)
    except TrothError as fault:
        return Result(name, "failed", printable(f"{fault.code}: {fault.message}", MAX_REASON))
