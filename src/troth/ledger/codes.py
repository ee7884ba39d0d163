"""Every stable word the ledger answers with, each with one sentence for people (ledger spec §4, §5, §16)."""

from __future__ import annotations

from typing import Final

CODES: Final[dict[str, str]] = {
    "E_INVALID_OP": "The operation is not one of the nine: capture, commit, claim, release, close, submit, "
    "approve, reopen, annotate.",
    "E_MISSING_FIELD": "A field that this operation needs is absent, null or empty.",
    "E_CONSTRAINT_VIOLATED": "A value, a state or a rule of the workspace does not allow the operation; "
    "the detail names which.",
    "E_CHAIN_BROKEN": "The ledger does not verify, so nothing may be appended to it.",
    "E_DUPLICATE_ID": "The id or the source_key is already used; the detail is the id of the row that has it.",
    "E_PERMISSION_DENIED": "The genesis key gives this actor no role that may do this.",
    "E_CITATION_REQUIRED": "A finding, a step result and a learning must cite at least one parent in trace.parent.",
    "E_REF_NOT_FOUND": "A reference names no earlier row, or one of the wrong kind.",
    "E_ALREADY_CLOSED": "The commitment is closed; only reopen moves it.",
    "E_ALREADY_CLAIMED": "The commitment belongs to another actor.",
    "E_NOT_OWNER": "Only the owner of the commitment may do this.",
}
"""The eleven refusals of §5."""

DETAILS: Final[dict[str, str]] = {
    "bad_value": "A field has the wrong type, format or value.",
    "trust_self_reported": "Trust is measured by the engine and never supplied by a caller.",
    "genesis_invalid": "The genesis key of the workspace is invalid and blocks every operation.",
    "bad_state": "The commitment is in a state that does not allow the operation.",
    "absent": "No earlier row has that id.",
    "wrong_kind": "The row of that id comes from an operation that is not permitted here.",
}
"""The stable details that refine a code; rules of a genesis key stand as their own names in :data:`RULES`."""

RULES: Final[dict[str, str]] = {
    "require_tags": "A commitment needs at least one tag.",
    "allow_self": "The submitter may not approve its own submission unless approve.allow_self is true.",
    "approvers": "Commitments with this tag are approved only by those that its section names.",
    "require_approval": "Commitments with this tag are submitted and approved; they are not closed directly.",
    "require_human": "The commitment's tier wants a person's approval: nothing else closes it.",
    "auto_close": "system:validator approves only where the commitment's tier closes automatically.",
    "review_window_passed": "The time to dispute an automatic closing is over; make a new commitment.",
}
"""Rules of a genesis key, each the detail of E_CONSTRAINT_VIOLATED (§11)."""

FAULTS: Final[dict[str, str]] = {
    "malformed": "The line is not one row: no strict UTF-8 JSON object within the limits, or a hash without "
    "a prevHash.",
    "torn_tail": "The last line was cut off while it was written; it was never acknowledged to anyone.",
    "duplicate_id": "An earlier row has the same id.",
    "content_mismatch": "The hash recomputed from the content is not the stored one.",
    "missing_ancestor": "The row links to a hash that no earlier row has, or the first one not to zeros.",
    "link_mismatch": "The row links to an earlier row that is not its predecessor, or to zeros again.",
    "unhashed_after_cutover": "A row without a hash stands after the first hashed row.",
    "unhashed_count": "The number of unhashed rows at the start is not the configured one.",
    "head_mismatch": "The head digest is not the expected one: rows were cut off or changed.",
    "checkpoint_ahead": "A checkpoint covers more rows than the ledger holds: its tail was cut off.",
    "checkpoint_mismatch": "The first rows are not those that a checkpoint was signed over: one was changed, dropped, "
    "put in or moved.",
}
"""What ``verify`` reports as a fault."""

WARNINGS: Final[dict[str, str]] = {
    "bom": "A byte order mark at the start of the file was ignored.",
    "carriage_return": "One carriage return at the end of the line was ignored.",
    "blank_line": "An empty line was skipped.",
    "unterminated": "The last row is whole but lacks its line feed; the next writer adds it.",
    "envelope": "The row has an unknown operation, no id, or a payload that is no object.",
    "unhashed_prefix": "Rows without a hash stand at the start and unhashed_prefix is not configured.",
    "cutover_mismatch": "The first hashed row tells other figures of the unhashed rows than those that stand before it:"
    " they were changed, cut or added to.",
    "workspace_differs": "The row names another workspace than the configuration.",
    "id_prefix": "The prefix of the id does not belong to the operation.",
    "offset_timestamp": "The timestamp says +00:00 where writers say Z.",
    "bad_timestamp": "The timestamp is no real UTC date and time.",
    "time_backwards": "The timestamp is earlier than that of a row before it; order follows the file.",
    "relation_type": "The relation has a type that the ledger does not know.",
    "causal_depth": "The stored causalDepth is not one more than the deepest parent's.",
    "level_premises": "A level other than explicit without sourceIds.",
    "level_contradiction": "The level contradiction without a contradicts relation.",
    "duplicate_reopened": "A commitment was reopened while another stays closed as its duplicate.",
    "self_approval": "The submitter approved the submission.",
    "genesis_invalid": "The genesis key is invalid, so nothing can be recorded until it is mended; reading goes on.",
    "genesis_unverified": "The genesis key carries a signature, and the settings do not say whose it should be.",
    "trust_mismatch": "The stored confidence is not the one its chain gives; the lower of the two is used.",
    "half_life": "The stored half-life is no integer from 1; the default is used.",
    "future_timestamp": "The timestamp lies behind the instant of reading, so the row counts as new.",
}
"""What is reported and does not stop anything."""
