"""What to do about a verdict: a harness's table turns it into continue, replan, escalate or stop (done receipt, seed).

A table is TOML, read strictly::

    schema_version = "troth-stop-table/v1"

    [[rule]]                                     # the first rule that fits decides
    decision = "contradicted"                    # of the verdict
    reason = ["tool_claim_precedes_last_edit"]   # optional: one of these reasons
    witness_scope = "PEER"                       # optional: a verdict that rests on this scope
    action = "replan"

    [[rule]]
    check = "acceptance_observed/v1"             # decision and reason of this check instead of the verdict's
    decision = "not_established"
    action = "replan"

    [limits]
    replans = 3                                  # so often replan; after that:
    then = "escalate"                            # or "stop"

Every decision has a rule of the verdict without conditions, so that a table always answers; a rule that can never be
reached is refused. One check never says *continue*: only a verdict can. The receipt carries the action, the reason code
that drove it and the digest of the table's bytes; it does not interpret them.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused
from troth.receipts.checks import Answer, Decision
from troth.receipts.kinds import SCOPES
from troth.receipts.policy import ALL_CHECKS
from troth.receipts.reasons import DECISIONS

CODES: Final[dict[str, str]] = {
    "E_STOP_TABLE": "The table of decisions is not what one is written in; the message says where.",
    "E_STOP_TABLE_MISSING": "The table of decisions is not there or cannot be read.",
    "E_STOP_NO_VERDICT": "The folder gives no verdict to decide by: its receipt is invalid, or a record was refused.",
    "E_RECEIPT_SIGNED": "The receipt is signed as it stands, so nothing is written into it any more.",
    "E_RECEIPT_DECIDED": "The receipt carries another decision already; a decision is never overwritten.",
    "E_RECEIPT_CAPTURED": "The receipt is a run's and the ledger names its digest; `troth run --table` decides runs.",
}
"""The refusals of deciding, each with one sentence for people."""

Action = Literal["continue", "replan", "escalate", "stop"]
ACTIONS: Final[tuple[Action, ...]] = get_args(Action)
OUTCOMES: Final[tuple[Decision, ...]] = get_args(Decision)

TABLE_VERSION: Final = "troth-stop-table/v1"

MAX_TABLE_BYTES: Final = 1 << 16
"""Longest table read, in bytes."""

MAX_RULES: Final = 256
MAX_REPLANS: Final = 1000

SUPPORTING: Final = frozenset(
    {"protected_paths_untouched", "acceptance_passed_in_verifier", "tool_claims_matched", "done_checks_supported"}
)
CONTRADICTING: Final = frozenset(
    {
        "protected_path_mutated",
        "protected_path_digest_changed",
        "acceptance_failed_in_verifier",
        "tool_claim_unmatched",
        "tool_claim_precedes_last_edit",
        "tool_claim_exit_mismatch",
        "external_effect_on_grader_path",
    }
)

EXAMPLE: Final = """\
# What to do about a verdict. The first rule that fits decides.
schema_version = "troth-stop-table/v1"

[[rule]]
decision = "supported"
action = "continue"

# An agent that reaches what grades it is not asked again.
[[rule]]
decision = "contradicted"
reason = ["external_effect_on_grader_path"]
action = "stop"

# What the records contradict, the agent is told and sent back to.
[[rule]]
decision = "contradicted"
action = "replan"

# So is a test run without a result: the agent can mend that.
[[rule]]
check = "acceptance_observed/v1"
decision = "not_established"
reason = ["acceptance_result_missing", "acceptance_argv_mismatch"]
action = "replan"

# Whatever else is open, no agent can settle: a person looks at it.
[[rule]]
decision = "not_established"
action = "escalate"

[limits]
replans = 3
then = "escalate"
"""
"""The table that is used where none is named."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One row; ``check`` is ``None`` for the verdict, empty ``reasons`` and no ``scope`` mean any."""

    decision: Decision
    action: Action
    check: str | None = None
    reasons: frozenset[str] = frozenset()
    scope: str | None = None

    @property
    def bare(self) -> bool:
        """Tell whether it fits every verdict of its decision."""
        return self.check is None and not self.reasons and self.scope is None

    def fits(self, verdict: Answer, checks: Mapping[str, Answer]) -> Answer | None:
        """Return the answer that it fits on, else ``None``."""
        answer = verdict if self.check is None else checks.get(self.check)
        if answer is None or answer.decision != self.decision:
            return None
        if self.reasons and answer.reason not in self.reasons:
            return None
        return answer if self.scope is None or answer.scope == self.scope else None


@dataclass(frozen=True, slots=True)
class StopTable:
    """A table past its rules, with the digest of the bytes it was read from."""

    rules: tuple[Rule, ...]
    replans: int
    then: Action
    sha256: str


@dataclass(frozen=True, slots=True)
class StopDecision:
    """What a table says: the action, the reason code that drove it, the row (from 1), and the table's digest.

    ``limited`` tells that the row said *replan* and the limit was reached.
    """

    action: Action
    reason: str
    rule: int
    table_sha256: str
    limited: bool = False

    def member(self) -> dict[str, str]:
        """Return the receipt's ``stop_decision``."""
        return {"action": self.action, "reason": self.reason}

    def as_json(self) -> dict[str, Any]:
        """Return the shape that ``--json`` shows."""
        return {**self.member(), "rule": self.rule, "limited": self.limited, "table_sha256": self.table_sha256}


def decide(table: StopTable, verdict: Answer, checks: Mapping[str, Answer], *, replans: int = 0) -> StopDecision:
    """Return what a table says about a verdict.

    Args:
        table: the harness's.
        verdict: the derived one, never the agent's word.
        checks: the three checks' answers by claim type.
        replans: how often the same work was sent back already.
    """
    for number, rule in enumerate(table.rules, 1):
        answer = rule.fits(verdict, checks)
        if answer is not None:
            limited = rule.action == "replan" and replans >= table.replans
            return StopDecision(
                table.then if limited else rule.action, answer.reason, number, table.sha256, limited=limited
            )
    raise AssertionError("a table past its rules answers every verdict")  # pragma: no cover


# Reading -------------------------------------------------------------------------------------------------------------


def _bad(message: str, path: str = "$") -> Refused:
    return Refused(
        "E_STOP_TABLE",
        message,
        place=Place(path=path),
        remedy="`troth receipt decide --example` prints a table to begin with.",
    )


def read_table(data: bytes) -> StopTable:
    """Return the table that the bytes are.

    Raises:
        Refused: ``E_STOP_TABLE`` with the first rule broken and its place.
    """
    if len(data) > MAX_TABLE_BYTES:
        raise _bad(f"more than {MAX_TABLE_BYTES} bytes")
    try:
        value = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as fault:
        raise _bad(f"no TOML in UTF-8: {fault}") from None
    _members(value, "$", ("schema_version", "rule", "limits"))
    if value["schema_version"] != TABLE_VERSION:
        raise _bad(f"schema_version is {TABLE_VERSION}", "$.schema_version")
    rows, limits = value["rule"], value["limits"]
    if type(rows) is not list or not 0 < len(rows) <= MAX_RULES:
        raise _bad(f"rule is an array of 1 to {MAX_RULES} tables", "$.rule")
    rules = tuple(_rule(row, f"$.rule[{number}]") for number, row in enumerate(rows))
    _require_reachable(rules)
    _members(limits, "$.limits", ("replans", "then"))
    if type(limits["replans"]) is not int or not 0 <= limits["replans"] <= MAX_REPLANS:
        raise _bad(f"replans is an integer from 0 to {MAX_REPLANS}", "$.limits.replans")
    if limits["then"] not in ("escalate", "stop"):
        raise _bad("then is escalate or stop", "$.limits.then")
    return StopTable(rules, limits["replans"], limits["then"], sha256_hex(data))


def _members(value: Any, path: str, required: tuple[str, ...], optional: tuple[str, ...] = ()) -> None:
    if type(value) is not dict:
        raise _bad("a table is asked for", path)
    missing = [name for name in required if name not in value]
    if missing:
        raise _bad(f"{missing[0]} is missing", path)
    unknown = sorted(set(value) - set(required) - set(optional))
    if unknown:
        raise _bad(f"there is no {unknown[0]!r}; known are {', '.join((*required, *optional))}", path)


def _rule(row: Any, path: str) -> Rule:
    _members(row, path, ("decision", "action"), ("reason", "check", "witness_scope"))
    decision, action, check, scope = (row.get(name) for name in ("decision", "action", "check", "witness_scope"))
    if decision not in OUTCOMES:
        raise _bad(f"decision is one of {', '.join(OUTCOMES)}", f"{path}.decision")
    if action not in ACTIONS:
        raise _bad(f"action is one of {', '.join(ACTIONS)}", f"{path}.action")
    if "check" in row and check not in ALL_CHECKS:
        raise _bad(f"check is one of {', '.join(ALL_CHECKS)}", f"{path}.check")
    if check is not None and action == "continue":
        raise _bad("one check cannot say continue; the verdict can", f"{path}.action")
    if "witness_scope" in row and (scope not in SCOPES or decision == "not_established"):
        raise _bad("witness_scope is PEER or EXTERNAL, and nothing open has one", f"{path}.witness_scope")
    return Rule(decision, action, check, _reasons(row, decision, f"{path}.reason"), scope)


def _reasons(row: Mapping[str, Any], decision: str, path: str) -> frozenset[str]:
    if "reason" not in row:
        return frozenset()
    reasons = row["reason"]
    if type(reasons) is not list or not reasons or not all(type(one) is str for one in reasons):
        raise _bad("reason is an array of reason codes", path)
    for reason in reasons:
        if reason not in DECISIONS:
            raise _bad(f"no reason is called {reason!r}; `troth help codes` lists them", path)
        if decision_of(reason) != decision:
            raise _bad(f"{reason} is never the reason of {decision}", path)
    return frozenset(reasons)


def decision_of(reason: str) -> Decision:
    """Return the one decision that a reason code goes with."""
    if reason in SUPPORTING:
        return "supported"
    return "contradicted" if reason in CONTRADICTING else "not_established"


def _require_reachable(rules: tuple[Rule, ...]) -> None:
    """Require that every verdict has an answer and every rule a verdict."""
    settled: set[str] = set()
    for number, rule in enumerate(rules):
        dead = rule.decision in settled if rule.check is None else len(settled) == len(OUTCOMES)
        if dead:
            raise _bad("this rule is never reached: one above it fits whatever it fits", f"$.rule[{number}]")
        if rule.bare:
            settled.add(rule.decision)
    for decision in OUTCOMES:
        if decision not in settled:
            raise _bad(f"no rule without conditions answers {decision}", "$.rule")
