"""Sections 2 to 4 of the done-records spec, literally: files, strict JSON, value kinds and the records.

Part of the yardstick reader; `receipt_reader` says what it is for and gives the result of a member.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final


class ReadFault:
    """The type of the mark for a directory entry that cannot be read safely (section 2)."""


READ_FAULT: Final = ReadFault()
"""In the files given to the reader: the entry is a link, not a regular file, too large or not examinable."""

LARGEST_FILE: Final = 16_777_216
MUTATIONS: Final = ("write", "create", "rename", "link", "unlink", "truncate", "chmod")
Files = Mapping[str, "bytes | ReadFault"]
Json = Any


class Broken(Exception):
    """A rule is broken; whether that refuses or invalidates is the caller's to say (section 1)."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class Refused(Exception):
    """The member is refused: only the code is reported."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def need(holds: bool, code: str) -> None:
    """Break with `code` unless the rule holds."""
    if not holds:
        raise Broken(code)


# --- Section 2: files -------------------------------------------------------------------------------------


def read(files: Files, name: str, on_fault: str) -> bytes | None:
    """The stored bytes, None when absent; a read fault refuses with `on_fault`."""
    if name not in files:
        return None
    found = files[name]
    if isinstance(found, ReadFault) or len(found) > LARGEST_FILE:
        raise Refused(on_fault)
    return found


# --- Section 3: strict JSON and value kinds ---------------------------------------------------------------


def strict_json(prefix: str, raw: bytes) -> Json:
    """Section 3, first paragraph. The two hooks run where the spec says a fault counts as met."""

    def closing_brace(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
        names = [name for name, _ in pairs]
        need(len(set(names)) == len(names), f"{prefix}_json_duplicate_key")
        return dict(pairs)

    def word(_token: str) -> None:
        raise Broken(f"{prefix}_json_number")

    try:
        # The text form refuses a byte order mark by itself. Open: nesting and integers too large to parse are
        # `json_invalid`; an unpaired surrogate written as an escape is kept as it is.
        return json.loads(raw.decode("utf-8"), object_pairs_hook=closing_brace, parse_constant=word)
    except (ValueError, RecursionError):
        raise Broken(f"{prefix}_json_invalid") from None


def has_members(value: Json, required: str, optional: str = "") -> bool:
    """*members {…}*: names given as words; every required one, none outside the list."""
    if not isinstance(value, dict):
        return False
    must, may = set(required.split()), set(optional.split())
    return must <= set(value) <= must | may


def is_text(value: Json) -> bool:
    return isinstance(value, str) and value != ""


def is_digest(value: Json) -> bool:
    return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None


def is_instant(value: Json) -> bool:
    shape = "([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})Z"
    found = re.fullmatch(shape, value) if isinstance(value, str) else None
    if found is None:
        return False
    try:
        # Open: the year 0000 names no date of this calendar.
        datetime(*(int(part) for part in found.groups()))  # noqa: DTZ001 - only whether it is a real date
    except ValueError:
        return False
    return True


def is_integer(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_count(value: Json) -> bool:
    return is_integer(value) and value >= 0


def is_exit(value: Json) -> bool:
    return is_integer(value) and -255 <= value <= 255


def is_argv(value: Json) -> bool:
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(word, str) for word in value) and value[0] != ""


def is_path(value: Json) -> bool:
    # Leading and trailing slashes are empty segments.
    if not is_text(value) or "\0" in value:
        return False
    return all(segment not in ("", ".", "..") for segment in value.split("/"))


def distinct(values: Sequence[Json]) -> bool:
    return all(value not in values[:at] for at, value in enumerate(values))


def file_digest(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()


def tree_digest(entries: Mapping[str, str]) -> str:
    # Open: an unpaired surrogate in a path is written the way UTF-8 would write it, so that it has some bytes.
    lines = sorted((path.encode("utf-8", "surrogatepass"), digest) for path, digest in entries.items())
    whole = b"".join(digest.encode("ascii") + b"  " + path + b"\n" for path, digest in lines)
    return hashlib.sha256(whole).hexdigest()


ORIGIN: Final = "claim_id invocation_id producer vantage witness_scope"


def origin_rules(prefix: str, value: Json) -> None:
    for name in ("claim_id", "invocation_id", "producer"):
        need(is_text(value[name]), f"{prefix}_{name}")
    need(value["vantage"] in ("independent", "self_reported"), f"{prefix}_vantage")
    need(value["witness_scope"] in ("PEER", "EXTERNAL"), f"{prefix}_witness_scope")


def scope_rules(prefix: str, scope: Json) -> None:
    need(has_members(scope, "id start end"), f"{prefix}_scope_fields")
    need(is_text(scope["id"]), f"{prefix}_scope_id")
    need(is_instant(scope["start"]), f"{prefix}_scope_instant")
    need(is_instant(scope["end"]), f"{prefix}_scope_instant")
    need(scope["start"] <= scope["end"], f"{prefix}_scope_order")


def coverage_rules(prefix: str, value: Json) -> None:
    need(value in ("complete", "incomplete", "unknown"), f"{prefix}_coverage")


# --- Section 4: records -----------------------------------------------------------------------------------


def begin(prefix: str, version: str, raw: bytes, required: str, optional: str = "") -> dict[str, Json]:
    """How each record begins."""
    value = strict_json(prefix, raw)
    need(has_members(value, "schema_version " + required, optional), f"{prefix}_fields")
    need(value["schema_version"] == version, f"{prefix}_schema_unsupported")
    return value


def contract(raw: bytes) -> dict[str, Json]:
    """Section 4.1."""
    digests = "heldout_split_sha256 mutant_set_sha256 authority_sha256"
    needed = "contract_id protected_paths acceptance adequacy"
    value = begin("contract", "probity-done-contract/v1", raw, needed, "task " + digests)
    # 1
    need(is_text(value["contract_id"]), "contract_id")
    if "task" in value:
        need(is_text(value["task"]), "contract_task")
    for name in digests.split():
        if name in value:
            need(is_digest(value[name]), "contract_digest_malformed")
    # 2
    need(isinstance(value["protected_paths"], list), "contract_protected_paths_type")
    for entry in value["protected_paths"]:
        need(has_members(entry, "path kind sha256", "exclude"), "contract_protected_path_fields")
        need(is_path(entry["path"]), "contract_protected_path_not_normalized")
        need(entry["kind"] in ("file", "directory"), "contract_protected_kind")
        need(is_digest(entry["sha256"]), "contract_digest_malformed")
        if "exclude" in entry:
            names = entry["exclude"]
            need(entry["kind"] == "directory", "contract_exclude_invalid")
            need(isinstance(names, list) and names != [], "contract_exclude_invalid")
            need(all(is_text(name) for name in names), "contract_exclude_invalid")
            need(distinct(names), "contract_exclude_invalid")
            need(all(name not in (".", "..") for name in names), "contract_exclude_invalid")
            need(all("/" not in name and "\0" not in name for name in names), "contract_exclude_invalid")
    # 3
    need(distinct([entry["path"] for entry in value["protected_paths"]]), "contract_protected_duplicate")
    # 4
    need(isinstance(value["acceptance"], list) and value["acceptance"] != [], "contract_acceptance_empty")
    seen: list[str] = []
    for entry in value["acceptance"]:
        need(has_members(entry, "id argv"), "contract_acceptance_fields")
        need(is_text(entry["id"]), "contract_acceptance_id")
        need(is_argv(entry["argv"]), "contract_acceptance_argv")
        need(entry["id"] not in seen, "contract_acceptance_duplicate_id")
        seen.append(entry["id"])
    # 5
    adequacy = value["adequacy"]
    need(has_members(adequacy, "mutants killed"), "contract_adequacy_fields")
    need(is_count(adequacy["mutants"]) and is_count(adequacy["killed"]), "contract_adequacy_count")
    need(adequacy["killed"] <= adequacy["mutants"], "contract_adequacy_overcount")
    return value


def tree(raw: bytes) -> dict[str, Json]:
    """Section 4.2."""
    value = begin("tree", "probity-tree/v1", raw, "tree_sha256 files " + ORIGIN)
    origin_rules("tree", value)
    need(isinstance(value["files"], dict), "tree_files_type")
    for name, digest in value["files"].items():
        need(is_path(name), "tree_path_not_normalized")
        need(is_digest(digest), "tree_digest_malformed")
    need(is_digest(value["tree_sha256"]), "tree_digest_malformed")
    need(value["tree_sha256"] == tree_digest(value["files"]), "tree_digest_mismatch")
    return value


def observation(raw: bytes) -> dict[str, Json]:
    """Section 4.3."""
    value = begin("observation", "probity-observation/v2", raw, "scope coverage " + ORIGIN, "events gaps")
    # 1
    origin_rules("observation", value)
    scope_rules("observation", value["scope"])
    scope = value["scope"]
    # 2
    coverage_rules("observation", value["coverage"])
    # 3
    if value["coverage"] == "incomplete":
        gaps = value.get("gaps")
        need(isinstance(gaps, list) and gaps != [], "observation_gaps_required")
    else:
        need("gaps" not in value, "observation_gaps_unexpected")
    # 4
    for gap in value.get("gaps", []):
        need(has_members(gap, "start end"), "observation_gap_fields")
        need(is_instant(gap["start"]), "observation_gap_instant")
        need(gap["start"] >= scope["start"], "observation_gap_outside_scope")
        need(is_instant(gap["end"]), "observation_gap_instant")
        need(gap["start"] < gap["end"] <= scope["end"], "observation_gap_outside_scope")
    # 5
    need(isinstance(value.get("events", []), list), "observation_events_type")
    events = value.get("events", [])
    ids: set[str] = set()
    execs: set[str] = set()
    last_step = -1
    for event in events:
        event_rules(event, scope, ids, execs, last_step)
        ids.add(event["id"])
        if event["type"] == "exec":
            execs.add(event["id"])
        last_step = event["step"]
    return value


def event_rules(event: Json, scope: Json, ids: set[str], execs: set[str], last_step: int) -> None:
    """Section 4.3, rule 5: one event, given the ids, exec ids and step of those before it."""
    # 5.1
    fields = has_members(event, "id type time step", "path target argv exit origin")
    need(fields, "observation_event_fields")
    # 5.2
    need(is_text(event["id"]), "observation_event_id")
    need(is_text(event["type"]), "observation_event_type")
    need(is_count(event["step"]), "observation_step")
    # 5.3  Open: an origin that is no string is unknown.
    if "origin" in event:
        known = isinstance(event["origin"], str) and event["origin"] in execs
        need(known, "observation_origin_unknown")
    if event["type"] == "exec":
        # 5.4
        need("argv" in event and is_argv(event["argv"]), "observation_exec_argv")
        if "exit" in event:
            need(is_exit(event["exit"]), "observation_exec_exit")
        need("path" not in event and "target" not in event, "observation_exec_path")
    else:
        # 5.5
        need("argv" not in event and "exit" not in event, "observation_argv_on_file_event")
        if event["type"] in MUTATIONS:
            need("path" in event, "observation_path_required")
        if "path" in event:
            need(is_path(event["path"]), "observation_path_not_normalized")
        if "target" in event:
            need(event["type"] in ("rename", "link"), "observation_target_unexpected")
            need(is_path(event["target"]), "observation_path_not_normalized")
    # 5.6
    need(is_instant(event["time"]), "observation_event_instant")
    need(event["id"] not in ids, "observation_event_duplicate_or_outside")
    within = scope["start"] <= event["time"] <= scope["end"]
    need(within, "observation_event_duplicate_or_outside")
    need(event["step"] > last_step, "observation_steps_not_increasing")


def capability(raw: bytes) -> dict[str, Json]:
    """Section 4.4."""
    needed = "claim_id invocation_id producer visible_event_types"
    value = begin("capability", "probity-capabilities/v1", raw, needed)
    for name in ("claim_id", "invocation_id", "producer"):
        need(is_text(value[name]), f"capability_{name}")
    types = value["visible_event_types"]
    need(isinstance(types, list) and all(is_text(one) for one in types), "capability_types")
    need(distinct(types), "capability_types_duplicate")
    return value


def grade(raw: bytes) -> dict[str, Json]:
    """Section 4.5."""
    needed = "contract_sha256 tree_sha256 results " + ORIGIN
    value = begin("grade", "probity-acceptance-grade/v1", raw, needed)
    origin_rules("grade", value)
    need(is_digest(value["contract_sha256"]), "grade_digest_malformed")
    need(is_digest(value["tree_sha256"]), "grade_digest_malformed")
    need(isinstance(value["results"], list), "grade_results_type")
    seen: list[str] = []
    for result in value["results"]:
        need(has_members(result, "id argv exit"), "grade_result_fields")
        need(is_text(result["id"]), "grade_result_id")
        need(is_argv(result["argv"]), "grade_result_argv")
        need(is_exit(result["exit"]), "grade_result_exit")
        need(result["id"] not in seen, "grade_result_duplicate_id")
        seen.append(result["id"])
    return value


def claims(raw: bytes) -> dict[str, Json]:
    """Section 4.6."""
    value = begin("claims", "probity-tool-claims/v1", raw, "claim_id invocation_id producer claims")
    for name in ("claim_id", "invocation_id", "producer"):
        need(is_text(value[name]), f"claims_{name}")
    need(isinstance(value["claims"], list), "claims_type")
    seen: list[str] = []
    for entry in value["claims"]:
        need(has_members(entry, "id argv", "exit"), "claims_entry_fields")
        need(is_text(entry["id"]), "claims_entry_id")
        need(is_argv(entry["argv"]), "claims_entry_argv")
        if "exit" in entry:
            need(is_exit(entry["exit"]), "claims_entry_exit")
        need(entry["id"] not in seen, "claims_duplicate_id")
        seen.append(entry["id"])
    return value


def launch(raw: bytes) -> dict[str, Json]:
    """Section 4.7."""
    needed = (
        "backend image image_id runtime_version strace_version container_argv trace_expression tracer_flags"
        " tracer_uid_separated agent_argv agent_uid env network container_workspace start_tarball_sha256"
        " observer_source_sha256 timeout_seconds"
    )
    value = begin("launch", "probity-launch/v1", raw, needed)
    need(value["backend"] in ("docker", "apptainer", "bubblewrap"), "launch_backend")
    texts = "image image_id runtime_version strace_version trace_expression container_workspace"
    for name in texts.split():
        need(is_text(value[name]), f"launch_{name}")
    for name in ("container_argv", "tracer_flags", "agent_argv"):
        need(is_argv(value[name]), f"launch_{name}")
    need(isinstance(value["tracer_uid_separated"], bool), "launch_types")
    need(isinstance(value["network"], bool), "launch_types")
    need(is_integer(value["agent_uid"]), "launch_types")
    need(is_integer(value["timeout_seconds"]), "launch_types")
    need(isinstance(value["env"], dict), "launch_types")
    need(is_digest(value["start_tarball_sha256"]), "launch_digest_malformed")
    need(is_digest(value["observer_source_sha256"]), "launch_digest_malformed")
    return value


def launch_receipt(raw: bytes) -> dict[str, Json]:
    """Section 4.8."""
    digests = (
        "launch_sha256 start_tarball_sha256 tree_sha256 transcript_sha256 trace_sha256 observation_sha256"
        " capability_sha256"
    )
    needed = (
        "claim_id invocation_id producer witnessScope trace_expression watch_list coverage container_exit"
        " agent_exit timed_out sensors doesNotAssert " + digests
    )
    value = begin("launch_receipt", "probity-launch-receipt/v1", raw, needed)
    # 1
    for name in ("claim_id", "invocation_id", "producer"):
        need(is_text(value[name]), f"launch_receipt_{name}")
    need(value["witnessScope"] in ("PEER", "EXTERNAL"), "launch_receipt_witness_scope")
    coverage_rules("launch_receipt", value["coverage"])
    for name in digests.split():
        need(is_digest(value[name]), "launch_receipt_digest_malformed")
    need(isinstance(value["timed_out"], bool), "launch_receipt_types")
    need(isinstance(value["watch_list"], list), "launch_receipt_types")
    for name in ("container_exit", "agent_exit"):
        need(value[name] is None or is_integer(value[name]), "launch_receipt_types")
    # 2
    sensors = value["sensors"]
    fields = has_members(sensors, "s1_inotify s2_strace s3_tree join external_effects")
    need(fields, "launch_receipt_sensors_fields")
    for name in ("s1_inotify", "s2_strace", "join"):
        need(isinstance(sensors[name], dict), "launch_receipt_sensors")
    need(sensors["s2_strace"].get("tracer") in ("complete", "lost"), "launch_receipt_sensors")
    s3 = sensors["s3_tree"]
    need(has_members(s3, "tree_sha256", "files symlinks special"), "launch_receipt_sensors_fields")
    need(is_digest(s3["tree_sha256"]), "launch_receipt_sensors")
    need(isinstance(sensors["external_effects"], list), "launch_receipt_sensors")
    # 3
    for effect in sensors["external_effects"]:
        need(has_members(effect, "type time", "paths address"), "launch_receipt_effect_fields")
        need(is_text(effect["type"]), "launch_receipt_effect")
        need(is_instant(effect["time"]), "launch_receipt_effect")
        need(("paths" in effect) != ("address" in effect), "launch_receipt_effect")
        if "paths" in effect:
            paths = effect["paths"]
            need(isinstance(paths, list) and paths != [], "launch_receipt_effect")
            need(all(is_text(path) for path in paths), "launch_receipt_effect")
        else:
            need(is_text(effect["address"]), "launch_receipt_effect")
    return value


def reports_lost_event(sensors: Json) -> bool:
    """Section 4.8, last paragraph. A Python false value is exactly the list of empty ones given there."""
    s1, s2, join = sensors["s1_inotify"], sensors["s2_strace"], sensors["join"]
    if s2["tracer"] == "lost":
        return True
    if s1.get("overflow") or s1.get("watch_failures"):
        return True
    if s2.get("escapes") or s2.get("unresolved") or s2.get("unparsed_lines"):
        return True
    return bool(join.get("unattributed"))
