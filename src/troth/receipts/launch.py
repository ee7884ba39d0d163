"""Launch and launch receipt (done records §4.7-4.8): how the run was started, and what the sensors reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from troth.receipts.kinds import (
    COVERAGES,
    SCOPES,
    Broken,
    Record,
    is_argv,
    is_digest,
    is_instant,
    is_integer,
    is_text,
    require_digest,
    require_names,
    shape,
)
from troth.receipts.records import begin

LAUNCH: Final = shape(
    "schema_version backend image image_id runtime_version strace_version container_argv trace_expression"
    " tracer_flags tracer_uid_separated agent_argv agent_uid env network container_workspace"
    " start_tarball_sha256 observer_source_sha256 timeout_seconds"
)
BACKENDS: Final = ("docker", "apptainer", "bubblewrap")
"""What a launch may name; ``bubblewrap`` is ours, and a reader of the published formats refuses it (§4.7)."""

_LAUNCH_TEXTS: Final = (
    "image",
    "image_id",
    "runtime_version",
    "strace_version",
    "trace_expression",
    "container_workspace",
)
_LAUNCH_ARGVS: Final = ("container_argv", "tracer_flags", "agent_argv")

LAUNCH_RECEIPT: Final = shape(
    "schema_version claim_id invocation_id producer witnessScope launch_sha256 trace_expression watch_list"
    " start_tarball_sha256 tree_sha256 coverage container_exit agent_exit timed_out transcript_sha256"
    " trace_sha256 observation_sha256 capability_sha256 sensors doesNotAssert"
)
_RECEIPT_DIGESTS: Final = (
    "launch_sha256",
    "start_tarball_sha256",
    "tree_sha256",
    "transcript_sha256",
    "trace_sha256",
    "observation_sha256",
    "capability_sha256",
)
SENSORS: Final = shape("s1_inotify s2_strace s3_tree join external_effects")
TREE_SENSOR: Final = shape("tree_sha256", "files symlinks special")
EFFECT: Final = shape("type time", "paths address")

LOSSES: Final = (
    ("s1_inotify", "overflow"),
    ("s1_inotify", "watch_failures"),
    ("s2_strace", "escapes"),
    ("s2_strace", "unresolved"),
    ("s2_strace", "unparsed_lines"),
    ("join", "unattributed"),
)
"""Sensor members that report a lost event when present and not empty (§4.8)."""


def launch(value: Any) -> Record:
    """Apply §4.7, ``probity-launch/v1``."""
    record = begin(value, "launch", LAUNCH, "probity-launch/v1")
    if record["backend"] not in BACKENDS:
        raise Broken("launch_backend", "$.backend")
    for name in _LAUNCH_TEXTS:
        if not is_text(record[name]):
            raise Broken(f"launch_{name}", f"$.{name}")
    for name in _LAUNCH_ARGVS:
        if not is_argv(record[name]):
            raise Broken(f"launch_{name}", f"$.{name}")
    if (
        type(record["tracer_uid_separated"]) is not bool
        or type(record["network"]) is not bool
        or not is_integer(record["agent_uid"])
        or not is_integer(record["timeout_seconds"])
        or type(record["env"]) is not dict
    ):
        raise Broken("launch_types")
    for name in ("start_tarball_sha256", "observer_source_sha256"):
        require_digest(record, name, "launch_digest_malformed")
    return record


def _effect_holds(effect: Record) -> bool:
    if not is_text(effect["type"]) or not is_instant(effect["time"]):
        return False
    if ("paths" in effect) == ("address" in effect):
        return False
    if "address" in effect:
        return is_text(effect["address"])
    paths = effect["paths"]
    return type(paths) is list and bool(paths) and all(is_text(path) for path in paths)


def _sensors(sensors: Any) -> None:
    if not SENSORS.holds(sensors):
        raise Broken("launch_receipt_sensors_fields", "$.sensors")
    if any(type(sensors[name]) is not dict for name in ("s1_inotify", "s2_strace", "join")):
        raise Broken("launch_receipt_sensors", "$.sensors")
    if sensors["s2_strace"].get("tracer") not in ("complete", "lost"):
        raise Broken("launch_receipt_sensors", "$.sensors.s2_strace.tracer")
    if not TREE_SENSOR.holds(sensors["s3_tree"]):
        raise Broken("launch_receipt_sensors_fields", "$.sensors.s3_tree")
    if not is_digest(sensors["s3_tree"]["tree_sha256"]):
        raise Broken("launch_receipt_sensors", "$.sensors.s3_tree.tree_sha256")
    if type(sensors["external_effects"]) is not list:
        raise Broken("launch_receipt_sensors", "$.sensors.external_effects")
    for index, effect in enumerate(sensors["external_effects"]):
        place = f"$.sensors.external_effects[{index}]"
        if not EFFECT.holds(effect):
            raise Broken("launch_receipt_effect_fields", place)
        if not _effect_holds(effect):
            raise Broken("launch_receipt_effect", place)


def launch_receipt(value: Any) -> Record:
    """Apply §4.8, ``probity-launch-receipt/v1``."""
    record = begin(value, "launch_receipt", LAUNCH_RECEIPT, "probity-launch-receipt/v1")
    require_names(record, "launch_receipt")
    if record["witnessScope"] not in SCOPES:
        raise Broken("launch_receipt_witness_scope", "$.witnessScope")
    if record["coverage"] not in COVERAGES:
        raise Broken("launch_receipt_coverage", "$.coverage")
    for name in _RECEIPT_DIGESTS:
        require_digest(record, name, "launch_receipt_digest_malformed")
    exits = (record["container_exit"], record["agent_exit"])
    if (
        type(record["timed_out"]) is not bool
        or type(record["watch_list"]) is not list
        or not all(code is None or is_integer(code) for code in exits)
    ):
        raise Broken("launch_receipt_types")
    _sensors(record["sensors"])
    return record


RULES: Final[dict[str, Callable[[Any], Record]]] = {"launch": launch, "launch_receipt": launch_receipt}
"""Record kind -> its rules."""


def reported_losses(record: Record) -> list[str]:
    """Return which members of a launch receipt's sensors report a lost event (§4.8); none is an empty list.

    Only emptiness counts, not type: runs carry the same member as a count or as an array.
    """
    sensors = record["sensors"]
    found = ["s2_strace.tracer"] if sensors["s2_strace"]["tracer"] == "lost" else []
    return found + [f"{sensor}.{name}" for sensor, name in LOSSES if sensors[sensor].get(name)]
