"""The records of a run (done records §4.1-4.6): each rule in its order, the first broken one named.

Every function takes a value that is already strict JSON and returns it as a record, or raises `Broken`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from troth.core import digests
from troth.core.digests import tree_digest
from troth.receipts.kinds import (
    COVERAGES,
    Broken,
    Record,
    Shape,
    is_argv,
    is_count,
    is_digest,
    is_exit,
    is_instant,
    is_path,
    is_text,
    require_digest,
    require_names,
    require_origin,
    require_scope,
    shape,
)

MUTATIONS: Final = frozenset({"write", "create", "rename", "link", "unlink", "truncate", "chmod"})
"""Event types that change a file (§4.3); every other name is allowed and is none."""

TWO_ENDED: Final = ("rename", "link")
"""Event types that may carry a ``target``."""

_ORIGIN_NAMES: Final = "claim_id invocation_id producer vantage witness_scope"

CONTRACT: Final = shape(
    "schema_version contract_id protected_paths acceptance adequacy",
    "task heldout_split_sha256 mutant_set_sha256 authority_sha256",
)
PROTECTED: Final = shape("path kind sha256", "exclude")
ACCEPTANCE: Final = shape("id argv")
ADEQUACY: Final = shape("mutants killed")
TREE: Final = shape(f"schema_version tree_sha256 files {_ORIGIN_NAMES}")
OBSERVATION: Final = shape(f"schema_version scope coverage {_ORIGIN_NAMES}", "events gaps")
GAP: Final = shape("start end")
EVENT: Final = shape("id type time step", "path target argv exit origin")
CAPABILITY: Final = shape("schema_version claim_id invocation_id producer visible_event_types")
GRADE: Final = shape(f"schema_version contract_sha256 tree_sha256 results {_ORIGIN_NAMES}")
RESULT: Final = shape("id argv exit")
CLAIMS: Final = shape("schema_version claim_id invocation_id producer claims")
CLAIM: Final = shape("id argv", "exit")


def begin(value: Any, prefix: str, members: Shape, version: str) -> Record:
    """Apply the two rules that every record begins with: its members, its version."""
    if not members.holds(value):
        raise Broken(f"{prefix}_fields")
    if value["schema_version"] != version:
        raise Broken(f"{prefix}_schema_unsupported", "$.schema_version")
    record: Record = value
    return record


def _exclude_holds(entry: Record) -> bool:
    names = entry["exclude"]
    if entry["kind"] != "directory" or type(names) is not list or not names:
        return False
    if not all(is_text(name) for name in names) or len(set(names)) != len(names):
        return False
    return not any(name in (".", "..") or "/" in name or "\0" in name for name in names)


def contract(value: Any) -> Record:
    """Apply §4.1, ``probity-done-contract/v1``."""
    record = begin(value, "contract", CONTRACT, "probity-done-contract/v1")
    if not is_text(record["contract_id"]):
        raise Broken("contract_id", "$.contract_id")
    if "task" in record and not is_text(record["task"]):
        raise Broken("contract_task", "$.task")
    for name in ("heldout_split_sha256", "mutant_set_sha256", "authority_sha256"):
        if name in record:
            require_digest(record, name, "contract_digest_malformed")

    entries = record["protected_paths"]
    if type(entries) is not list:
        raise Broken("contract_protected_paths_type", "$.protected_paths")
    for index, entry in enumerate(entries):
        if not PROTECTED.holds(entry):
            raise Broken("contract_protected_path_fields", f"$.protected_paths[{index}]")
        if not is_path(entry["path"]):
            raise Broken("contract_protected_path_not_normalized", f"$.protected_paths[{index}].path")
        if entry["kind"] not in ("file", "directory"):
            raise Broken("contract_protected_kind", f"$.protected_paths[{index}].kind")
        if not is_digest(entry["sha256"]):
            raise Broken("contract_digest_malformed", f"$.protected_paths[{index}].sha256")
        if "exclude" in entry and not _exclude_holds(entry):
            raise Broken("contract_exclude_invalid", f"$.protected_paths[{index}].exclude")
    if len({entry["path"] for entry in entries}) != len(entries):
        raise Broken("contract_protected_duplicate", "$.protected_paths")

    commands = record["acceptance"]
    if type(commands) is not list or not commands:
        raise Broken("contract_acceptance_empty", "$.acceptance")
    taken: set[str] = set()
    for index, command in enumerate(commands):
        if not ACCEPTANCE.holds(command):
            raise Broken("contract_acceptance_fields", f"$.acceptance[{index}]")
        if not is_text(command["id"]):
            raise Broken("contract_acceptance_id", f"$.acceptance[{index}].id")
        if not is_argv(command["argv"]):
            raise Broken("contract_acceptance_argv", f"$.acceptance[{index}].argv")
        if command["id"] in taken:
            raise Broken("contract_acceptance_duplicate_id", f"$.acceptance[{index}].id")
        taken.add(command["id"])

    adequacy = record["adequacy"]
    if not ADEQUACY.holds(adequacy):
        raise Broken("contract_adequacy_fields", "$.adequacy")
    if not (is_count(adequacy["mutants"]) and is_count(adequacy["killed"])):
        raise Broken("contract_adequacy_count", "$.adequacy")
    if adequacy["killed"] > adequacy["mutants"]:
        raise Broken("contract_adequacy_overcount", "$.adequacy.killed")
    return record


def tree(value: Any) -> Record:
    """Apply §4.2, ``probity-tree/v1``."""
    record = begin(value, "tree", TREE, "probity-tree/v1")
    require_origin(record, "tree")
    files = record["files"]
    if type(files) is not dict:
        raise Broken("tree_files_type", "$.files")
    for path, digest in files.items():
        if not is_path(path):
            raise Broken("tree_path_not_normalized", "$.files")
        if not digests.is_digest(digest):
            raise Broken("tree_digest_malformed", f"$.files[{path!r}]")
    require_digest(record, "tree_sha256", "tree_digest_malformed")
    if record["tree_sha256"] != tree_digest(files):
        raise Broken("tree_digest_mismatch", "$.tree_sha256")
    return record


def _gaps(record: Record) -> None:
    if record["coverage"] != "incomplete":
        if "gaps" in record:
            raise Broken("observation_gaps_unexpected", "$.gaps")
        return
    gaps = record.get("gaps")
    if type(gaps) is not list or not gaps:
        raise Broken("observation_gaps_required", "$.gaps")
    first, last = record["scope"]["start"], record["scope"]["end"]
    for index, gap in enumerate(gaps):
        if not GAP.holds(gap):
            raise Broken("observation_gap_fields", f"$.gaps[{index}]")
        start, end = gap["start"], gap["end"]
        if not is_instant(start):
            raise Broken("observation_gap_instant", f"$.gaps[{index}].start")
        if start < first:
            raise Broken("observation_gap_outside_scope", f"$.gaps[{index}].start")
        if not is_instant(end):
            raise Broken("observation_gap_instant", f"$.gaps[{index}].end")
        if not start < end <= last:
            raise Broken("observation_gap_outside_scope", f"$.gaps[{index}].end")


def _events(events: list[Any], first: str, last: str) -> None:
    """Apply §4.3 rule 5 to every event in turn; ``first`` and ``last`` are the ends of the scope."""
    ids: set[str] = set()
    runs: set[str] = set()
    previous = -1
    allowed = EVENT.allowed
    for index, event in enumerate(events):
        if type(event) is not dict or not allowed.issuperset(event):
            raise Broken("observation_event_fields", f"$.events[{index}]")
        try:
            name, kind, time, step = event["id"], event["type"], event["time"], event["step"]
        except KeyError:
            raise Broken("observation_event_fields", f"$.events[{index}]") from None
        if type(name) is not str or not name:
            raise Broken("observation_event_id", f"$.events[{index}].id")
        if type(kind) is not str or not kind:
            raise Broken("observation_event_type", f"$.events[{index}].type")
        if type(step) is not int or step < 0:
            raise Broken("observation_step", f"$.events[{index}].step")
        if "origin" in event and (type(event["origin"]) is not str or event["origin"] not in runs):
            raise Broken("observation_origin_unknown", f"$.events[{index}].origin")
        if kind == "exec":
            if not is_argv(event.get("argv")):
                raise Broken("observation_exec_argv", f"$.events[{index}].argv")
            if "exit" in event and not is_exit(event["exit"]):
                raise Broken("observation_exec_exit", f"$.events[{index}].exit")
            if "path" in event or "target" in event:
                raise Broken("observation_exec_path", f"$.events[{index}]")
        else:
            if "argv" in event or "exit" in event:
                raise Broken("observation_argv_on_file_event", f"$.events[{index}]")
            if "path" in event:
                if not is_path(event["path"]):
                    raise Broken("observation_path_not_normalized", f"$.events[{index}].path")
            elif kind in MUTATIONS:
                raise Broken("observation_path_required", f"$.events[{index}]")
            if "target" in event:
                if kind not in TWO_ENDED:
                    raise Broken("observation_target_unexpected", f"$.events[{index}].target")
                if not is_path(event["target"]):
                    raise Broken("observation_path_not_normalized", f"$.events[{index}].target")
        if not is_instant(time):
            raise Broken("observation_event_instant", f"$.events[{index}].time")
        if name in ids or not first <= time <= last:
            raise Broken("observation_event_duplicate_or_outside", f"$.events[{index}]")
        if step <= previous:
            raise Broken("observation_steps_not_increasing", f"$.events[{index}].step")
        ids.add(name)
        if kind == "exec":
            runs.add(name)
        previous = step


def observation(value: Any) -> Record:
    """Apply §4.3, ``probity-observation/v2``."""
    record = begin(value, "observation", OBSERVATION, "probity-observation/v2")
    require_origin(record, "observation")
    scope = record["scope"]
    require_scope(scope, "observation")
    if record["coverage"] not in COVERAGES:
        raise Broken("observation_coverage", "$.coverage")
    _gaps(record)
    events = record.get("events", [])
    if type(events) is not list:
        raise Broken("observation_events_type", "$.events")
    _events(events, scope["start"], scope["end"])
    return record


def capability(value: Any) -> Record:
    """Apply §4.4, ``probity-capabilities/v1``."""
    record = begin(value, "capability", CAPABILITY, "probity-capabilities/v1")
    require_names(record, "capability")
    types = record["visible_event_types"]
    if type(types) is not list or not all(is_text(name) for name in types):
        raise Broken("capability_types", "$.visible_event_types")
    if len(set(types)) != len(types):
        raise Broken("capability_types_duplicate", "$.visible_event_types")
    return record


def grade(value: Any) -> Record:
    """Apply §4.5, ``probity-acceptance-grade/v1``."""
    record = begin(value, "grade", GRADE, "probity-acceptance-grade/v1")
    require_origin(record, "grade")
    for name in ("contract_sha256", "tree_sha256"):
        require_digest(record, name, "grade_digest_malformed")
    results = record["results"]
    if type(results) is not list:
        raise Broken("grade_results_type", "$.results")
    taken: set[str] = set()
    for index, result in enumerate(results):
        if not RESULT.holds(result):
            raise Broken("grade_result_fields", f"$.results[{index}]")
        if not is_text(result["id"]):
            raise Broken("grade_result_id", f"$.results[{index}].id")
        if not is_argv(result["argv"]):
            raise Broken("grade_result_argv", f"$.results[{index}].argv")
        if not is_exit(result["exit"]):
            raise Broken("grade_result_exit", f"$.results[{index}].exit")
        if result["id"] in taken:
            raise Broken("grade_result_duplicate_id", f"$.results[{index}].id")
        taken.add(result["id"])
    return record


def claims(value: Any) -> Record:
    """Apply §4.6, ``probity-tool-claims/v1``."""
    record = begin(value, "claims", CLAIMS, "probity-tool-claims/v1")
    require_names(record, "claims")
    entries = record["claims"]
    if type(entries) is not list:
        raise Broken("claims_type", "$.claims")
    taken: set[str] = set()
    for index, entry in enumerate(entries):
        if not CLAIM.holds(entry):
            raise Broken("claims_entry_fields", f"$.claims[{index}]")
        if not is_text(entry["id"]):
            raise Broken("claims_entry_id", f"$.claims[{index}].id")
        if not is_argv(entry["argv"]):
            raise Broken("claims_entry_argv", f"$.claims[{index}].argv")
        if "exit" in entry and not is_exit(entry["exit"]):
            raise Broken("claims_entry_exit", f"$.claims[{index}].exit")
        if entry["id"] in taken:
            raise Broken("claims_duplicate_id", f"$.claims[{index}].id")
        taken.add(entry["id"])
    return record


RULES: Final[dict[str, Callable[[Any], Record]]] = {
    "contract": contract,
    "tree": tree,
    "observation": observation,
    "capability": capability,
    "grade": grade,
    "claims": claims,
}
"""Record kind -> its rules."""
