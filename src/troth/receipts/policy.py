"""The consumer's case and policy (done records §6): what a check is asked about, and which records it may believe."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from troth.core.errors import Place
from troth.receipts.kinds import (
    SCOPES,
    VANTAGES,
    Broken,
    Record,
    Shape,
    is_digest,
    is_integer,
    is_path,
    is_text,
    require_scope,
    shape,
)
from troth.receipts.member import MAX_BYTES, ReadFault
from troth.receipts.reader import MemberReader

PINNED: Final = ("observation", "tree", "grade")
"""Roles whose origin a policy pins."""

CASE: Final = shape("schema_version case_id artifacts")
POLICY: Final = shape("schema_version witnesses assessments")
ARTIFACT: Final = shape("path sha256 length")
PIN: Final = shape("artifact sha256 authority")
ORIGIN_PIN: Final = shape("artifact sha256 authority producer vantage witness_scope")


class CheckKind(NamedTuple):
    """One check: its claim type, the stem of its files, its roles in order, whether it is asked about a scope."""

    claim_type: str
    stem: str
    roles: tuple[str, ...]
    scoped: bool
    assessment: Shape
    case_file: str
    policy_file: str
    witness_members: tuple[str, ...]
    """The assessment's ``R_witness`` members, in role order."""


def _kind(claim_type: str, stem: str, roles: str, *, scoped: bool) -> CheckKind:
    names = tuple(roles.split())
    witnesses = tuple(f"{role}_witness" for role in names)
    members = " ".join(("claim_type invocation_id observed_party", *witnesses))
    return CheckKind(
        claim_type,
        stem,
        names,
        scoped,
        shape(f"{members} scope" if scoped else members),
        f"{stem}.case.json",
        f"{stem}.policy.json",
        witnesses,
    )


PROTECTED_PATHS: Final = "protected_paths/v1"
ACCEPTANCE_OBSERVED: Final = "acceptance_observed/v1"
TOOL_CLAIM_MATCH: Final = "tool_claim_match/v1"

CHECKS: Final = {
    kind.claim_type: kind
    for kind in (
        _kind(PROTECTED_PATHS, "protected-paths", "contract capability observation tree", scoped=True),
        _kind(ACCEPTANCE_OBSERVED, "acceptance", "contract tree grade", scoped=False),
        _kind(TOOL_CLAIM_MATCH, "tool-claims", "claims capability observation", scoped=True),
    )
}
"""Claim type -> check, in the order of §7."""

ALL_CHECKS: Final = tuple(CHECKS)

POLICY_FILES: Final = tuple(name for kind in CHECKS.values() for name in (kind.case_file, kind.policy_file))
"""The six files in which a consumer says what it asks and whom it believes."""


class Bound(NamedTuple):
    """A role bound to a file of the member. ``pin`` is the policy's word about it, past its rules."""

    role: str
    path: str
    pin: Record
    available: bool


class Seen(NamedTuple):
    """A role as an earlier check of the same member bound it, so that equal words are not held to the rules again."""

    entry: Record
    bound: Bound

    def same(self, pin: Any, artifacts: Record) -> bool:
        """Tell whether pin and case entry are those of before; both hold nothing but text, and one integer."""
        if pin != self.bound.pin:
            return False
        entry = artifacts.get(pin["artifact"])
        # Equality does not tell true or 1.0 from 1.
        return entry is not None and entry == self.entry and is_integer(entry["length"])


class Assessment(NamedTuple):
    """What one check is asked, past all rules of §6."""

    case_id: str
    invocation_id: str
    observed_party: str
    scope: Record | None
    bound: dict[str, Bound]

    def in_context(self, record: Record) -> bool:
        """Tell whether a record names this claim and run and, where it says a scope, this scope (§6)."""
        return bool(
            record["claim_id"] == self.case_id
            and record["invocation_id"] == self.invocation_id
            and ("scope" not in record or record["scope"] == self.scope)
        )

    def independent(self, role: str, record: Record) -> bool:
        """Tell whether record and pin make this record independent of the observed party (§6)."""
        pin = self.bound[role].pin
        return bool(
            record["vantage"] == pin["vantage"] == "independent"
            and record["producer"] == pin["producer"]
            and record["producer"] != self.observed_party
        )


def _read_pair(reader: MemberReader, kind: CheckKind) -> tuple[Any, Any]:
    try:
        case_bytes = reader.read(kind.case_file)
    except ReadFault:
        raise Broken("case_unreadable") from None
    try:
        policy_bytes = reader.read(kind.policy_file)
    except ReadFault:
        raise Broken("policy_unreadable") from None
    if case_bytes is None or policy_bytes is None:
        raise Broken("case_missing")
    return reader.parsed(kind.case_file, case_bytes, "case"), reader.parsed(kind.policy_file, policy_bytes, "policy")


def _require_artifact(name: str, entry: Any) -> None:
    """Apply the rules of a case's entry (§6, *Binding one role*, step 3)."""
    if not ARTIFACT.holds(entry):
        raise Broken("case_artifact_fields", f"$.artifacts[{name!r}]")
    if not is_text(entry["path"]):
        raise Broken("case_artifact_path", f"$.artifacts[{name!r}].path")
    if not is_path(entry["path"]):
        raise Broken("case_artifact_path_not_normalized", f"$.artifacts[{name!r}].path")
    if not is_digest(entry["sha256"]):
        raise Broken("case_artifact_digest_malformed", f"$.artifacts[{name!r}].sha256")
    if not is_integer(entry["length"]) or not 0 <= entry["length"] <= MAX_BYTES:
        raise Broken("case_artifact_length", f"$.artifacts[{name!r}].length")


def _bind(
    reader: MemberReader, role: str, witness: str, *, witnesses: Record, artifacts: Record, seen: dict[str, Seen]
) -> Bound:
    """Bind one role (§6, *Binding one role*, steps 1-6)."""
    if witness not in witnesses:
        raise Broken("policy_witness_unknown", f"$.witnesses[{witness!r}]")
    pin = witnesses[witness]
    before = seen.get(role)
    if before is not None and before.same(pin, artifacts):
        return before.bound
    pinned = role in PINNED
    if not (ORIGIN_PIN if pinned else PIN).holds(pin):
        raise Broken("policy_witness_fields", f"$.witnesses[{witness!r}]")
    artifact = pin["artifact"]
    if not is_text(artifact):
        raise Broken("policy_witness_artifact", f"$.witnesses[{witness!r}].artifact")
    if artifact not in artifacts:
        raise Broken("case_artifact_unknown", f"$.witnesses[{witness!r}].artifact")
    if not is_digest(pin["sha256"]):
        raise Broken("policy_witness_digest_malformed", f"$.witnesses[{witness!r}].sha256")
    if not is_text(pin["authority"]):
        raise Broken("policy_witness_authority", f"$.witnesses[{witness!r}].authority")

    entry = artifacts[artifact]
    _require_artifact(artifact, entry)
    path, digest = entry["path"], entry["sha256"]
    try:
        data = reader.read(path)
    except ReadFault:
        raise Broken("case_artifact_unsafe", f"$.artifacts[{artifact!r}]") from None
    if data is not None and (len(data) != entry["length"] or reader.digest(path) != digest):
        raise Broken("case_artifact_binding_mismatch", f"$.artifacts[{artifact!r}]")

    if pinned:
        if not is_text(pin["producer"]):
            raise Broken("policy_witness_producer", f"$.witnesses[{witness!r}].producer")
        if pin["vantage"] not in VANTAGES:
            raise Broken("policy_witness_vantage", f"$.witnesses[{witness!r}].vantage")
        if pin["witness_scope"] not in SCOPES:
            raise Broken("policy_witness_scope", f"$.witnesses[{witness!r}].witness_scope")
    bound = Bound(role, path, pin, data is not None and digest == pin["sha256"])
    seen[role] = Seen(entry, bound)
    return bound


def assess(reader: MemberReader, kind: CheckKind, seen: dict[str, Seen] | None = None) -> Assessment:
    """Read a check's case and policy from the member and bind its roles (§6).

    Args:
        reader: the member.
        kind: the check.
        seen: what earlier checks of this member bound, by role; added to.

    Raises:
        Broken: the first rule broken; the member is refused with its code.
    """
    try:
        return _assess(reader, kind, {} if seen is None else seen)
    except Broken as fault:
        path = (fault.place.path if fault.place else None) or "$"
        in_policy = path.startswith(("$.witnesses", "$.assessments", "$.scope")) or "policy" in fault.code
        fault.place = Place(file=kind.policy_file if in_policy else kind.case_file, path=path)
        raise


def _assess(reader: MemberReader, kind: CheckKind, seen: dict[str, Seen]) -> Assessment:
    case, policy = _read_pair(reader, kind)
    if not CASE.holds(case):
        raise Broken("case_fields")
    if not POLICY.holds(policy):
        raise Broken("policy_fields")
    if case["schema_version"] != "probity-case/v1" or policy["schema_version"] != "probity-policy/v1":
        raise Broken("case_schema_unsupported", "$.schema_version")
    case_id, artifacts, witnesses = case["case_id"], case["artifacts"], policy["witnesses"]
    if not is_text(case_id):
        raise Broken("case_id", "$.case_id")
    if type(artifacts) is not dict or type(witnesses) is not dict:
        raise Broken("case_objects")

    assessments = policy["assessments"]
    if type(assessments) is not dict or case_id not in assessments:
        raise Broken("policy_assessment_missing", "$.assessments")
    asked = assessments[case_id]
    place = "$.assessments"
    if not kind.assessment.holds(asked):
        raise Broken("policy_assessment_fields", place)
    if asked["claim_type"] != kind.claim_type:
        raise Broken("policy_claim_type_unsupported", f"{place}.claim_type")
    if not is_text(asked["invocation_id"]):
        raise Broken("policy_invocation_id", f"{place}.invocation_id")
    if kind.scoped:
        require_scope(asked["scope"], "policy")
    if not is_text(asked["observed_party"]):
        raise Broken("policy_observed_party", f"{place}.observed_party")

    for member in kind.witness_members:
        if not is_text(asked[member]):
            raise Broken(f"policy_{member}", f"$.assessments.{member}")
    named = [asked[member] for member in kind.witness_members]
    if len(set(named)) != len(named):
        raise Broken("policy_witness_shared", place)
    bound = {
        role: _bind(reader, role, witness, witnesses=witnesses, artifacts=artifacts, seen=seen)
        for role, witness in zip(kind.roles, named, strict=True)
    }
    if len({role.pin["artifact"] for role in bound.values()}) != len(bound):
        raise Broken("policy_artifact_shared", "$.witnesses")
    return Assessment(
        case_id, asked["invocation_id"], asked["observed_party"], asked["scope"] if kind.scoped else None, bound
    )
