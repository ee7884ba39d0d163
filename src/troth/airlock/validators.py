"""The validators that the specification names, and those of the settings (ledger spec §11 [D42], §16).

A validator is a function from what was submitted to one :class:`Result`. It decides nothing: what a tier makes of the
answers stands in :mod:`troth.airlock.tiers`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from troth.airlock.tiers import Result
from troth.core.digests import sha256_hex
from troth.core.errors import Refused, TrothError
from troth.core.words import printable

if TYPE_CHECKING:
    from troth.ledger.genesis import Tier
    from troth.receipts.verify import Examination
    from troth.stores.workspace import Config, Workspace

MAX_REASON: Final = 400
"""Characters of a reason."""

PRODUCERS: Final[Mapping[str, str]] = {
    "observation": "troth-observer",
    "tree": "troth-observer",
    "grade": "troth-verifier",
}
"""Who makes the records of a run here: the observer's and the grader's own names, on systems that lack them too."""

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

_RUN: Final = re.compile(r"run_[0-9a-z]{8,64}\Z")


class _NotSo(Exception):
    """Why a receipt does not carry a submission; becomes a reason."""


def technical(submitted: Submitted) -> Result:
    """Pass when the evidence names a done receipt that verifies with verdict ``supported`` ([D42]).

    Nothing is taken from the row but where to look: the run's folder is read, the receipt must have the digest that was
    captured, name this commitment and its run, and come out valid and supported when it is computed anew, judged by our
    own pins of who observes and who grades.
    """
    try:
        run, digest = _named_run(submitted.evidence_row)
        found = _verified(submitted, run, digest)
    except _NotSo as why:
        return Result("technical", "failed", str(why))
    assert found.done is not None
    facts = {"run": run, "receipt_sha256": digest, "done": found.done.as_json()}
    if found.done.decision != "supported":
        return Result("technical", "failed", f"the receipt of {run} says {_decision(found)}", facts)
    return Result("technical", "passed", f"the receipt of {run} verifies: supported", facts)


def _named_run(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the run and the digest of the receipt that an evidence row names."""
    payload = row.get("payload")
    meta = payload.get("meta") if isinstance(payload, Mapping) else None
    meta = meta if isinstance(meta, Mapping) else {}
    run, digest = meta.get("run"), meta.get("receipt_sha256")
    if "receipt" not in meta:
        raise _NotSo("the evidence names no done receipt")
    # The folder follows from the run's id alone, so that no row can lead elsewhere.
    if not isinstance(run, str) or _RUN.match(run) is None or meta["receipt"] != f".mentu/runs/{run}/receipt.json":
        raise _NotSo("the evidence names a receipt that is not in the folder of a run of this workspace")
    if not isinstance(digest, str):
        raise _NotSo("the evidence does not say which receipt it means: receipt_sha256 is missing")
    return run, digest


def _verified(submitted: Submitted, run: str, digest: str) -> Examination:
    from troth.receipts.kinds import Broken
    from troth.receipts.member import RECEIPT_FILE, MappingMember, OverlaidMember, ReadFault
    from troth.receipts.pinning import ConsumerPins, consumer_files
    from troth.receipts.policy import POLICY_FILES
    from troth.receipts.reader import MemberReader
    from troth.receipts.reasons import sentence
    from troth.receipts.verify import examine
    from troth.stores.members import FolderMember

    if submitted.workspace is None:
        raise _NotSo("this ledger stands in no workspace, so no run's folder can be read")
    if submitted.rejected_by is not None:
        raise _NotSo(f"the evidence is from before {submitted.rejected_by} reopened the commitment; run it again")
    folder = submitted.workspace.folder / "runs" / run
    if folder.is_symlink():
        raise _NotSo(f"the folder of {run} is a symbolic link")
    try:
        # One reader for everything: the bytes that were digested are the bytes that are judged.
        once = MemberReader(FolderMember(folder))
        receipt = once.read(RECEIPT_FILE)
    except ReadFault as fault:
        raise _NotSo(f"the receipt of {run} cannot be read: {fault.message}") from None
    except Refused:
        raise _NotSo(f"the folder of {run} is not there, so nothing can be verified") from None
    if receipt is None:
        raise _NotSo(f"the folder of {run} holds no receipt")
    if sha256_hex(receipt) != digest:
        raise _NotSo(f"the receipt of {run} is not the one that was captured: its digest differs")
    pins = ConsumerPins(
        observed_party=submitted.actor,
        producers=PRODUCERS,
        claim_id=submitted.commitment,
        invocation_id=run,
    )
    try:
        ours = consumer_files(once, pins)
    except Broken as fault:
        raise _NotSo(f"the records of {run} cannot be judged: {_sentence(sentence, fault.code)}") from None
    found = examine(OverlaidMember(once, MappingMember(ours), frozenset(POLICY_FILES)))
    if "refused" in found.result or found.result["receipt"]["verdict"] != "valid":
        # Under our own pins a record about something else shows as a check that comes out otherwise.
        other = _other_claim(once, submitted, run)
        raise _NotSo(other or f"the receipt of {run} does not verify: {_sentence(sentence, found.code or '')}")
    predicate = (found.receipt or {})["predicate"]
    if (predicate["claim_id"], predicate["invocation_id"]) != (submitted.commitment, run):
        raise _NotSo(f"the receipt of {run} is about {_short(predicate['claim_id'])}, not about this commitment")
    return found


def _other_claim(reader: Any, submitted: Submitted, run: str) -> str | None:
    """Say it when the records of a run speak of another commitment or run."""
    try:
        record = reader.record("observation", "observation.json")
    except (Refused, LookupError):
        return None
    if record["claim_id"] != submitted.commitment:
        return f"the records of {run} are about {_short(record['claim_id'])}, not about this commitment"
    if record["invocation_id"] != run:
        return f"the records in the folder of {run} are those of {_short(record['invocation_id'])}"
    return None


def _sentence(sentence: Callable[[str], str], code: str) -> str:
    return f"{code}: {sentence(code)}".rstrip(".")


def _decision(found: Examination) -> str:
    assert found.done is not None
    return f"{found.done.decision.replace('_', ' ')} ({found.done.reason})"


def _short(value: Any) -> str:
    return printable(str(value), 80)


# --- safety --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding of a review: its id, severity, state (``accepted``, ``resolved``, …), as the review settled it."""

    id: str
    severity: str
    state: str


@dataclass(frozen=True, slots=True)
class ReviewOutcome:
    """What a review came to: its id, the digest of the payload it looked at, its outcome, and its findings."""

    review: str
    artifact: str
    outcome: str
    findings: Sequence[Finding]


class ReviewFinder(Protocol):
    """Finds reviews; implemented where they are kept."""

    def find(self, review: str, submitted: Submitted) -> ReviewOutcome | None:
        """Return the review of that id, verified against its own records, or ``None`` when none is on record."""


class NoReviews:
    """The finder of a house without reviews."""

    def find(self, review: str, submitted: Submitted) -> ReviewOutcome | None:
        """Return nothing."""
        return None


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
        return Result("safety", "failed", f"no review is on record under the name {_short(named)}")
    facts = {"review": found.review, "artifact": found.artifact, "outcome": found.outcome}
    if found.artifact != artifact:
        return Result("safety", "failed", f"the review {_short(named)} is of another revision", facts)
    if found.outcome != "converged":
        return Result("safety", "failed", f"the review {_short(named)} is {_short(found.outcome)}", facts)
    severe = [one.id for one in found.findings if one.severity in SEVERE and one.state == "accepted"]
    if severe:
        shown = ", ".join(map(_short, severe[:5])) + (f" and {len(severe) - 5} more" if len(severe) > 5 else "")
        return Result("safety", "failed", f"severe findings are accepted and not resolved: {shown}", facts)
    return Result("safety", "passed", f"the review {_short(named)} converged", facts)


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
    reason = f"no validator is called {_short(name)}: map it to a command in config.yaml (validators)"
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
