"""Verifying a member (done records §9): receipt, checks, contract, and the shape of the result.

The first broken rule gives the only code. A rule marked **R** in the spec refuses the member (`Broken` reaches the
door); any other makes the receipt invalid (`_Invalid`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from troth.core.errors import Refused
from troth.receipts.checks import RUN, Answer, done_verdict
from troth.receipts.kinds import Broken, Record, is_digest, is_text, shape
from troth.receipts.launch import reported_losses
from troth.receipts.member import (
    CORE_RECORDS,
    FILES,
    LAUNCH_RECORDS,
    RECEIPT_FILE,
    STATEMENT_FILE,
    Member,
    ReadFault,
)
from troth.receipts.policy import ALL_CHECKS, CHECKS, POLICY_FILES, Assessment, Seen, assess
from troth.receipts.reader import MemberReader
from troth.receipts.statements import (
    DONE_RECEIPT,
    is_sha256_entry,
    read_contract_statement,
    require_statement,
)
from troth.receipts.strict import parse

RECEIPT_VERSION: Final = "probity-done-receipt/v1"
PREDICATE: Final = shape(
    "schema_version claim_id invocation_id records checks verdict external_effects verifier",
    "policy verifier_isolation stop_decision",
)
VERIFIER: Final = shape("id")
POLICY_MEMBER: Final = shape("table_sha256")
STOP_DECISION: Final = shape("action reason")
STOP_ACTIONS: Final = ("continue", "replan", "escalate", "stop")

_VERIFIER_ID: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:\S+\Z")
_NAMED: Final = (frozenset(CORE_RECORDS), frozenset(CORE_RECORDS + LAUNCH_RECORDS))

Door = Literal["receipt", "checks", "contract"]


class _Invalid(Exception):
    """A verdict on its way to the result; no error."""

    def __init__(self, code: str, detail: str | None = None) -> None:
        super().__init__(code)
        self.code = code
        self.detail = detail


@dataclass(slots=True)
class Examination:
    """Everything one verification found out: the result and what it was reached from.

    ``result`` is the spec's own shape (§9, *Result of a member*). ``fault`` is the broken rule behind a refusal or
    an invalid contract, with its place; ``code`` is the code of whatever is wrong, and ``detail`` says what it was
    found on. ``answers`` and ``asked`` hold the checks that were run, by claim type.
    """

    reader: MemberReader
    door: Door = "checks"
    result: dict[str, Any] = field(default_factory=dict)
    fault: Broken | None = None
    code: str | None = None
    detail: str | None = None
    asked: dict[str, Assessment] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    done: Answer | None = None
    effects: list[Record] = field(default_factory=list)
    receipt: Record | None = None


def check_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return claim types for names given in full or without ``/v1``, repeats dropped, order kept.

    Raises:
        Refused: ``E_CHECK_UNKNOWN``.
    """
    found: dict[str, None] = {}
    for name in names:
        claim_type = name if name in CHECKS else f"{name}/v1"
        if claim_type not in CHECKS:
            raise Refused(
                "E_CHECK_UNKNOWN",
                f"no check is called {name!r}",
                remedy=f"The checks are {', '.join(ALL_CHECKS)}.",
            )
        found[claim_type] = None
    return tuple(found)


def _run_checks(found: Examination, names: Sequence[str]) -> None:
    """Run the named checks in order (§7); from here the result shows them."""
    seen: dict[str, Seen] = {}
    for name in names:
        asked = assess(found.reader, CHECKS[name], seen)
        found.asked[name] = asked
        found.answers[name] = RUN[name](found.reader, asked)


def _external_effects(reader: MemberReader) -> list[Record]:
    """Return the effects outside the workspace, or none when there is no launch receipt (§8).

    Raises:
        Broken: ``member_unreadable``, or a rule of §4.8.
    """
    name = FILES["launch_receipt"]
    try:
        if reader.read(name) is None:
            return []
    except ReadFault:
        raise Broken("member_unreadable") from None
    effects: list[Record] = reader.record("launch_receipt", name)["sensors"]["external_effects"]
    return effects


def _derive(found: Examination) -> Answer:
    """Derive the done verdict from all three checks and the effects found so far (§8)."""
    return done_verdict([found.answers[name] for name in ALL_CHECKS], found.effects)


# --- the receipt (§9) ---


def _require_predicate(predicate: Any) -> Record:
    """Rule 2: members and values, in the spec's order."""
    if not PREDICATE.holds(predicate):
        raise _Invalid("receipt_predicate_fields")
    if predicate["schema_version"] != RECEIPT_VERSION:
        raise _Invalid("receipt_schema_unsupported")
    if not is_text(predicate["claim_id"]) or not is_text(predicate["invocation_id"]):
        raise _Invalid("receipt_predicate_malformed")
    verifier = predicate["verifier"]
    if not VERIFIER.holds(verifier) or type(verifier["id"]) is not str or _VERIFIER_ID.match(verifier["id"]) is None:
        raise _Invalid("receipt_verifier_malformed")
    if "policy" in predicate:
        policy = predicate["policy"]
        if not POLICY_MEMBER.holds(policy) or not is_digest(policy["table_sha256"]):
            raise _Invalid("receipt_predicate_malformed")
    if "verifier_isolation" in predicate:
        isolation = predicate["verifier_isolation"]
        if type(isolation) is not dict or type(isolation.get("contract_sha256")) is not str:
            raise _Invalid("receipt_isolation_malformed")
    if "stop_decision" in predicate:
        stop = predicate["stop_decision"]
        if not STOP_DECISION.holds(stop) or stop["action"] not in STOP_ACTIONS or not is_text(stop["reason"]):
            raise _Invalid("receipt_stop_decision_malformed")
    named: Record = predicate
    return named


def _require_records(reader: MemberReader, predicate: Record) -> Record:
    """Rules 3 and 4: the records are named as they should be, are there, and have the named digests."""
    records = predicate["records"]
    if (
        type(records) is not dict
        or records.keys() not in _NAMED
        or not all(is_sha256_entry(entry) for entry in records.values())
    ):
        raise _Invalid("receipt_records_shape")
    isolation = predicate.get("verifier_isolation")
    if isolation is not None and isolation["contract_sha256"] != records["contract"]["sha256"]:
        raise _Invalid("receipt_isolation_contract_differs")
    for kind, entry in records.items():
        name = FILES[kind]
        try:
            data = reader.read(name)
        except ReadFault:
            raise Broken("member_unreadable") from None
        if data is None:
            raise _Invalid("receipt_record_missing", name)
        if reader.digest(name) != entry["sha256"]:
            raise _Invalid("receipt_record_digest_mismatch", name)
    named: Record = records
    return named


def _require_launch(reader: MemberReader, predicate: Record, tree: Record, observation: Record) -> None:
    """Rule 6: launch and launch receipt parse, and say what the other records say."""
    reader.record("launch", FILES["launch"])
    launch_receipt = reader.record("launch_receipt", FILES["launch_receipt"])
    if any(launch_receipt[name] != predicate[name] for name in ("claim_id", "invocation_id")):
        raise _Invalid("receipt_launch_context_mismatch")
    if launch_receipt["launch_sha256"] != reader.digest(FILES["launch"]):
        raise _Invalid("receipt_launch_digest_unbound")
    for kind in ("observation", "capability", "tree"):
        if launch_receipt[f"{kind}_sha256"] != reader.digest(FILES[kind]):
            raise _Invalid("receipt_launch_records_unbound", FILES[kind])
    if launch_receipt["sensors"]["s3_tree"]["tree_sha256"] != tree["tree_sha256"]:
        raise _Invalid("receipt_launch_tree_unbound")
    scope = launch_receipt["witnessScope"]
    if not scope == tree["witness_scope"] == observation["witness_scope"]:
        raise _Invalid("receipt_launch_scope_differs")
    if launch_receipt["coverage"] != observation["coverage"]:
        raise _Invalid("receipt_launch_coverage_differs")
    losses = reported_losses(launch_receipt) if observation["coverage"] == "complete" else []
    if losses:
        raise _Invalid("receipt_launch_coverage_overstated", ", ".join(losses))


def _examine_receipt(found: Examination, data: bytes) -> None:
    """Apply the rules of §9 in order.

    Raises:
        _Invalid: the receipt is invalid.
        Broken: the member is refused.
    """
    reader = found.reader
    # (1) The Statement. A fault here is the receipt's own, so it does not refuse the member.
    try:
        statement = require_statement(reader.parsed(RECEIPT_FILE, data, "receipt"), "receipt", DONE_RECEIPT)
    except Broken as fault:
        raise _Invalid(fault.code, fault.detail) from None
    # (2) The predicate.
    predicate = _require_predicate(statement["predicate"])
    found.receipt = statement
    # (3, 4) The records it names.
    records = _require_records(reader, predicate)
    # (5) Tree and observation; the subject.
    tree = reader.record("tree", FILES["tree"])
    observation = reader.record("observation", FILES["observation"])
    if statement["subject"][0]["digest"]["sha256"] != tree["tree_sha256"]:
        raise _Invalid("receipt_subject_unbound")
    # (6) The launch records, when named.
    if "launch" in records:
        _require_launch(reader, predicate, tree, observation)
    # (7) Effects outside the workspace, named or not.
    found.effects = _external_effects(reader)
    if predicate["external_effects"] != found.effects:
        raise _Invalid("receipt_external_effects_differ")
    # (8) The checks, computed again.
    _run_checks(found, ALL_CHECKS)
    found.done = _derive(found)
    if type(predicate["checks"]) is not list:
        raise _Invalid("receipt_predicate_malformed")
    if predicate["checks"] != checks_member(found.answers):
        raise _Invalid("receipt_check_not_recomputed")
    # (9) The verdict, derived again.
    if predicate["verdict"] != found.done.as_json():
        raise _Invalid("receipt_verdict_not_derived")


def checks_member(answers: dict[str, Answer]) -> list[dict[str, str]]:
    """Return what a receipt's ``checks`` must equal (§9 rule 8)."""
    return [{"claim_type": name, **answers[name].as_json()} for name in ALL_CHECKS]


def read_receipt(data: bytes) -> Record:
    """Return a receipt's Statement, past rules 1 and 2 of §9 alone.

    This is **not** a verification: it shows what a receipt says, true or not.

    Raises:
        Broken: the first rule broken.
    """
    statement = require_statement(parse(data, "receipt"), "receipt", DONE_RECEIPT)
    try:
        _require_predicate(statement["predicate"])
    except _Invalid as invalid:
        raise Broken(invalid.code, "$.predicate") from None
    return statement


# --- the member ---


def _door(reader: MemberReader, checks: Sequence[str] | None) -> Door:
    """Decide what a member without a receipt is read as.

    The caller's checks decide (§9); the corpus of contracts names none, and its members hold a Statement in the
    place of cases and policies.
    """
    asked = (
        POLICY_FILES
        if checks is None
        else [name for check in checks for name in (CHECKS[check].case_file, CHECKS[check].policy_file)]
    )
    if any(_there(reader, name) for name in asked):
        return "checks"
    if _there(reader, STATEMENT_FILE) or (checks is None and _there(reader, FILES["contract"])):
        return "contract"
    return "checks"


def _there(reader: MemberReader, name: str) -> bool:
    try:
        return reader.read(name) is not None
    except ReadFault:
        return True


def _examine(found: Examination, checks: Sequence[str] | None) -> None:
    reader = found.reader
    try:
        receipt = reader.read(RECEIPT_FILE)
    except ReadFault:
        found.door = "receipt"
        raise Broken("member_unreadable") from None
    if receipt is not None:
        found.door = "receipt"
        verdict: dict[str, str] = {"verdict": "valid"}
        try:
            _examine_receipt(found, receipt)
        except _Invalid as invalid:
            found.code, found.detail = invalid.code, invalid.detail
            verdict = {"verdict": "invalid", "code": invalid.code}
        found.result = {"receipt": verdict}
        if found.done is not None:
            found.result["checks"] = {name: answer.as_json() for name, answer in found.answers.items()}
            found.result["done"] = found.done.as_json()
        return

    found.door = _door(reader, checks)
    if found.door == "contract":
        try:
            read_contract_statement(reader)
        except Broken as fault:
            if fault.code.startswith("member_"):
                raise
            found.fault, found.code = fault, fault.code
            found.result = {"contract": {"verdict": "invalid", "code": fault.code}}
        else:
            found.result = {"contract": {"verdict": "valid"}}
        return

    names = ALL_CHECKS if checks is None else checks
    _run_checks(found, names)
    found.result = {"checks": {name: answer.as_json() for name, answer in found.answers.items()}}
    if len(found.answers) == len(ALL_CHECKS):
        found.effects = _external_effects(reader)
        found.done = _derive(found)
        found.result["done"] = found.done.as_json()


Standing = Literal["holds", "does_not_hold", "refused", "not_established"]


def standing(result: Mapping[str, Any]) -> Standing:
    """Return what a result comes to, whatever its shape.

    ``holds``: a valid contract, a supported verdict under a valid receipt or none, or checks that are all supported.
    ``does_not_hold``: anything invalid or contradicted. ``refused`` and ``not_established``: as they say.
    """
    if "refused" in result:
        return "refused"
    for name in ("contract", "receipt"):
        if name in result and result[name]["verdict"] != "valid":
            return "does_not_hold"
    decisions = (
        [result["done"]["decision"]]
        if "done" in result
        else [check["decision"] for check in result.get("checks", {}).values()]
    )
    if "contradicted" in decisions:
        return "does_not_hold"
    return "not_established" if "not_established" in decisions else "holds"


def headline(result: Mapping[str, Any]) -> tuple[str, str]:
    """Return a result's verdict in one word and its reason, to be counted by.

    The word is ``refused``, ``invalid``, ``valid`` (a contract Statement; it has no reason) or the decision of the done
    verdict. Where only some checks were asked for, it is the first that is contradicted, else the first that is not
    established, else the first.
    """
    if "refused" in result:
        return "refused", result["refused"]
    for name in ("contract", "receipt"):
        if name in result and result[name]["verdict"] != "valid":
            return "invalid", result[name]["code"]
    if "contract" in result:
        return "valid", ""
    answers = [result["done"]] if "done" in result else list(result["checks"].values())
    for decision in ("contradicted", "not_established"):
        for answer in answers:
            if answer["decision"] == decision:
                return decision, answer["reason"]
    return answers[0]["decision"], answers[0]["reason"]


def examine(member: Member, checks: Sequence[str] | None = None) -> Examination:
    """Verify a member and return the result with what it was reached from.

    Args:
        member: the run's files.
        checks: claim types to run, in this order, when there is no receipt; ``None`` means all three, or the
            done-contract Statement when that is what the member holds.

    Raises:
        Refused: ``E_CHECK_UNKNOWN``. Nothing that stands in the member raises.
    """
    found = Examination(MemberReader(member))
    named = None if checks is None else check_names(checks)
    try:
        _examine(found, named)
    except Broken as fault:
        found.fault, found.code = fault, fault.code
        found.result = {"refused": fault.code}
    return found


def check_member(member: Member, checks: Sequence[str] | None = None) -> dict[str, Any]:
    """Verify a member and return its result in the shape of §9, *Result of a member*.

    One of ``{"refused": code}``, ``{"contract": …}``, ``{"receipt": …}`` with ``checks`` and ``done`` once they were
    run, or ``{"checks": …}`` with ``done`` when all three were asked for.

    Args:
        member: the run's files.
        checks: as in `examine`.

    Raises:
        Refused: ``E_CHECK_UNKNOWN``. Nothing that stands in the member raises.
    """
    return examine(member, checks).result
