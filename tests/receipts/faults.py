"""One way, at least, to break every rule of the done-record rules, as data: code -> edit of an honest draft.

`RECORD_FAULTS` break a record (§4), `POLICY_FAULTS` a case or policy (§6), `RECEIPT_FAULTS` a receipt (§9),
`STATEMENT_FAULTS` a contract Statement (§5); `ALLOWED` are the nearest edits that break nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from support.receipt_members import LINT, TEST, event, sha

Edit = Callable[[Any], Any]


def put(path: str, new: Any) -> Edit:
    """Return an edit that sets the member at a dotted path; numbers are positions in arrays."""

    def edit(value: Any) -> Any:
        value = copy.deepcopy(value)
        *parents, last = path.split(".")
        holder = value
        for part in parents:
            holder = holder[int(part)] if isinstance(holder, list) else holder[part]
        holder[int(last) if isinstance(holder, list) else last] = copy.deepcopy(new)
        return value

    return edit


def drop(path: str) -> Edit:
    """Return an edit that removes the member at a dotted path."""

    def edit(value: Any) -> Any:
        value = copy.deepcopy(value)
        *parents, last = path.split(".")
        holder = value
        for part in parents:
            holder = holder[int(part)] if isinstance(holder, list) else holder[part]
        del holder[int(last) if isinstance(holder, list) else last]
        return value

    return edit


def push(path: str, *new: Any) -> Edit:
    """Return an edit that appends to the array at a dotted path."""

    def edit(value: Any) -> Any:
        value = copy.deepcopy(value)
        holder = value
        for part in path.split("."):
            holder = holder[int(part)] if isinstance(holder, list) else holder[part]
        holder.extend(copy.deepcopy(list(new)))
        return value

    return edit


def chain(*edits: Edit) -> Edit:
    """Return edits one after the other."""

    def edit(value: Any) -> Any:
        for step in edits:
            value = step(value)
        return value

    return edit


def whole(new: Any) -> Edit:
    """Return an edit that replaces the value."""
    return lambda _value: copy.deepcopy(new)


Fault = tuple[str, str, Edit]
"""(code, kind of record, edit)"""


def _origin(kind: str) -> list[Fault]:
    return [
        *_names(kind),
        (f"{kind}_vantage", kind, put("vantage", "PEER")),
        (f"{kind}_vantage", kind, put("vantage", ["independent"])),
        (f"{kind}_witness_scope", kind, put("witness_scope", "independent")),
        (f"{kind}_witness_scope", kind, put("witness_scope", {})),
    ]


def _names(kind: str) -> list[Fault]:
    names = ("claim_id", "invocation_id", "producer")
    return [
        *((f"{kind}_{name}", kind, put(name, "")) for name in names),
        *((f"{kind}_{name}", kind, put(name, 1)) for name in names),
    ]


def _begin(kind: str) -> list[Fault]:
    return [
        (f"{kind}_fields", kind, whole([])),
        (f"{kind}_fields", kind, put("more", 1)),
        (f"{kind}_fields", kind, drop("schema_version")),
        (f"{kind}_schema_unsupported", kind, put("schema_version", "probity-other/v1")),
        (f"{kind}_schema_unsupported", kind, put("schema_version", None)),
    ]


def _event(**change: Any) -> Edit:
    """Append one event, a sound write but for the change; ``None`` removes a member."""
    made = {**event(9, "write", path="src/z.py"), **change}
    return push("events", {name: value for name, value in made.items() if value is not None})


DIGEST = "0" * 64
NOT_DIGESTS = (DIGEST[:-1], DIGEST + "0", "A" * 64, DIGEST[:-1] + "\n", 0, "٠" * 64)
NOT_PATHS = ("", "/a", "a/", "a//b", ".", "..", "a/./b", "a/..", "a\0b", 1, None, "a/\ud800")
NOT_INSTANTS = (
    "2026-02-30T10:00:01Z",
    "2026-03-01T10:00:60Z",
    "2026-03-01T24:00:00Z",
    "2026-03-01T10:00:01+00:00",
    "2026-03-01T10:00:01.0Z",
    "2026-03-01 10:00:01Z",
    "2026-03-01T10:00:01Z\n",
    "٢026-03-01T10:00:01Z",
    1,
    None,
)
NOT_ARGVS = ([], [""], ["a", 1], "a", None, [None])
NOT_EXITS = (256, -256, True, 1.0, "0", None)

_GAPS = chain(
    put("coverage", "incomplete"), put("gaps", [{"start": "2026-03-01T10:00:00Z", "end": "2026-03-01T10:30:00Z"}])
)

RECORD_FAULTS: list[Fault] = [
    # 4.1
    *_begin("contract"),
    ("contract_id", "contract", put("contract_id", "")),
    ("contract_task", "contract", put("task", "")),
    ("contract_task", "contract", put("task", None)),
    *(
        ("contract_digest_malformed", "contract", put(name, value))
        for name in ("heldout_split_sha256", "mutant_set_sha256", "authority_sha256")
        for value in NOT_DIGESTS
    ),
    ("contract_protected_paths_type", "contract", put("protected_paths", {})),
    ("contract_protected_path_fields", "contract", put("protected_paths.0", "tests")),
    ("contract_protected_path_fields", "contract", put("protected_paths.0.more", 1)),
    ("contract_protected_path_fields", "contract", drop("protected_paths.1.sha256")),
    *(
        ("contract_protected_path_not_normalized", "contract", put("protected_paths.1.path", path))
        for path in NOT_PATHS
    ),
    ("contract_protected_kind", "contract", put("protected_paths.1.kind", "symlink")),
    ("contract_protected_kind", "contract", put("protected_paths.1.kind", ["file"])),
    *(("contract_digest_malformed", "contract", put("protected_paths.1.sha256", value)) for value in NOT_DIGESTS),
    ("contract_exclude_invalid", "contract", put("protected_paths.1.exclude", ["cache"])),
    *(
        ("contract_exclude_invalid", "contract", put("protected_paths.0.exclude", value))
        for value in ([], ["a", "a"], [""], ["."], [".."], ["a/b"], ["a\0"], [1], ["a", ["b"]], "cache", None, {"a": 1})
    ),
    ("contract_protected_duplicate", "contract", put("protected_paths.1.path", "tests")),
    ("contract_acceptance_empty", "contract", put("acceptance", [])),
    ("contract_acceptance_empty", "contract", put("acceptance", {"id": "a"})),
    ("contract_acceptance_fields", "contract", put("acceptance.1", [])),
    ("contract_acceptance_fields", "contract", put("acceptance.1.exit", 0)),
    ("contract_acceptance_id", "contract", put("acceptance.1.id", "")),
    *(("contract_acceptance_argv", "contract", put("acceptance.1.argv", value)) for value in NOT_ARGVS),
    ("contract_acceptance_duplicate_id", "contract", put("acceptance.1.id", "unit")),
    ("contract_adequacy_fields", "contract", put("adequacy", [])),
    ("contract_adequacy_fields", "contract", drop("adequacy.killed")),
    *(("contract_adequacy_count", "contract", put("adequacy.mutants", value)) for value in (-1, True, 4.0, "4", None)),
    ("contract_adequacy_count", "contract", put("adequacy.killed", False)),
    ("contract_adequacy_overcount", "contract", put("adequacy.killed", 5)),
    # 4.2
    *_begin("tree"),
    *_origin("tree"),
    ("tree_files_type", "tree", put("files", [])),
    *(
        ("tree_path_not_normalized", "tree", put("files", {path: DIGEST}))
        for path in NOT_PATHS
        if isinstance(path, str)
    ),
    *(("tree_digest_malformed", "tree", put("files", {"a": value})) for value in NOT_DIGESTS),
    *(("tree_digest_malformed", "tree", put("tree_sha256", value)) for value in NOT_DIGESTS),
    ("tree_digest_mismatch", "tree", put("tree_sha256", DIGEST)),
    # 4.3
    *_begin("observation"),
    *_origin("observation"),
    ("observation_scope_fields", "observation", put("scope", None)),
    ("observation_scope_fields", "observation", drop("scope.id")),
    ("observation_scope_id", "observation", put("scope.id", "")),
    *(("observation_scope_instant", "observation", put("scope.start", value)) for value in NOT_INSTANTS),
    *(("observation_scope_instant", "observation", put("scope.end", value)) for value in NOT_INSTANTS),
    ("observation_scope_order", "observation", put("scope.end", "2026-03-01T09:59:59Z")),
    ("observation_coverage", "observation", put("coverage", "full")),
    ("observation_coverage", "observation", put("coverage", ["complete"])),
    ("observation_gaps_required", "observation", put("coverage", "incomplete")),
    ("observation_gaps_required", "observation", chain(_GAPS, put("gaps", []))),
    ("observation_gaps_required", "observation", chain(_GAPS, put("gaps", {}))),
    ("observation_gaps_required", "observation", chain(_GAPS, put("gaps", {"start": "x"}))),
    ("observation_gaps_required", "observation", chain(_GAPS, put("gaps", "all"))),
    ("observation_gaps_unexpected", "observation", chain(_GAPS, put("coverage", "unknown"))),
    ("observation_gaps_unexpected", "observation", put("gaps", None)),
    ("observation_gap_fields", "observation", chain(_GAPS, put("gaps.0", "all"))),
    ("observation_gap_fields", "observation", chain(_GAPS, put("gaps.0.why", "?"))),
    *(("observation_gap_instant", "observation", chain(_GAPS, put("gaps.0.start", value))) for value in NOT_INSTANTS),
    *(("observation_gap_instant", "observation", chain(_GAPS, put("gaps.0.end", value))) for value in NOT_INSTANTS),
    *(
        ("observation_gap_outside_scope", "observation", chain(_GAPS, put(f"gaps.0.{end}", value)))
        for end, value in (
            ("start", "2026-03-01T09:59:59Z"),
            ("start", "2026-03-01T10:30:00Z"),
            ("start", "2026-03-01T10:30:01Z"),
            ("end", "2026-03-01T11:00:01Z"),
        )
    ),
    ("observation_events_type", "observation", put("events", None)),
    ("observation_events_type", "observation", put("events", {})),
    ("observation_event_fields", "observation", put("events.0", "write")),
    ("observation_event_fields", "observation", _event(more=1)),
    ("observation_event_fields", "observation", _event(time=None)),
    ("observation_event_id", "observation", _event(id="")),
    ("observation_event_id", "observation", _event(id=9)),
    ("observation_event_type", "observation", _event(type="")),
    ("observation_event_type", "observation", _event(type=["exec"])),
    *(("observation_step", "observation", _event(step=value)) for value in (-1, True, 9.0, "9")),
    *(
        ("observation_origin_unknown", "observation", _event(origin=value))
        for value in ("e1", "e9", "nobody", "", 2, ["e2"], {})
    ),
    ("observation_origin_unknown", "observation", put("events.0.origin", None)),
    ("observation_origin_unknown", "observation", put("events.0.origin", "e2")),
    *(("observation_exec_argv", "observation", _event(type="exec", path=None, argv=value)) for value in NOT_ARGVS),
    *(("observation_exec_exit", "observation", put("events.1.exit", value)) for value in NOT_EXITS),
    ("observation_exec_path", "observation", _event(type="exec", argv=["a"])),
    ("observation_exec_path", "observation", _event(type="exec", argv=["a"], path=None, target="b")),
    ("observation_argv_on_file_event", "observation", _event(argv=["a"])),
    ("observation_argv_on_file_event", "observation", _event(exit=0)),
    *(
        ("observation_path_required", "observation", _event(type=kind, path=None))
        for kind in ("write", "create", "rename", "link", "unlink", "truncate", "chmod")
    ),
    *(("observation_path_not_normalized", "observation", _event(path=path)) for path in NOT_PATHS if path is not None),
    ("observation_path_not_normalized", "observation", put("events.0.path", None)),
    ("observation_path_not_normalized", "observation", _event(type="read", path="../a")),
    ("observation_path_not_normalized", "observation", _event(type="rename", target="/a")),
    ("observation_target_unexpected", "observation", _event(target="a")),
    ("observation_target_unexpected", "observation", _event(type="read", target="a")),
    *(("observation_event_instant", "observation", _event(time=value)) for value in NOT_INSTANTS if value is not None),
    ("observation_event_duplicate_or_outside", "observation", _event(id="e1")),
    ("observation_event_duplicate_or_outside", "observation", _event(time="2026-03-01T09:59:59Z")),
    ("observation_event_duplicate_or_outside", "observation", _event(time="2026-03-01T11:00:01Z")),
    ("observation_steps_not_increasing", "observation", _event(step=4)),
    ("observation_steps_not_increasing", "observation", _event(step=0)),
    # 4.4
    *_begin("capability"),
    *_names("capability"),
    *(
        ("capability_types", "capability", put("visible_event_types", value))
        for value in ("exec", None, [""], [1], ["a", "a", 1], {})
    ),
    ("capability_types_duplicate", "capability", push("visible_event_types", "exec")),
    # 4.5
    *_begin("grade"),
    *_origin("grade"),
    *(
        ("grade_digest_malformed", "grade", put(name, value))
        for name in ("contract_sha256", "tree_sha256")
        for value in NOT_DIGESTS
    ),
    ("grade_results_type", "grade", put("results", {})),
    ("grade_result_fields", "grade", drop("results.0.exit")),
    ("grade_result_fields", "grade", put("results.0", None)),
    ("grade_result_id", "grade", put("results.0.id", "")),
    *(("grade_result_argv", "grade", put("results.0.argv", value)) for value in NOT_ARGVS),
    *(("grade_result_exit", "grade", put("results.0.exit", value)) for value in NOT_EXITS),
    ("grade_result_duplicate_id", "grade", put("results.1.id", "unit")),
    # 4.6
    *_begin("claims"),
    *_names("claims"),
    ("claims_type", "claims", put("claims", {})),
    ("claims_entry_fields", "claims", put("claims.0", [])),
    ("claims_entry_fields", "claims", put("claims.0.output", "12 passed")),
    ("claims_entry_id", "claims", put("claims.0.id", "")),
    *(("claims_entry_argv", "claims", put("claims.0.argv", value)) for value in NOT_ARGVS),
    *(("claims_entry_exit", "claims", put("claims.0.exit", value)) for value in NOT_EXITS),
    ("claims_duplicate_id", "claims", push("claims", {"id": "c1", "argv": TEST})),
    # 4.7
    *_begin("launch"),
    ("launch_backend", "launch", put("backend", "podman")),
    ("launch_backend", "launch", put("backend", ["docker"])),
    *(
        (f"launch_{name}", "launch", put(name, value))
        for name in (
            "image",
            "image_id",
            "runtime_version",
            "strace_version",
            "trace_expression",
            "container_workspace",
        )
        for value in ("", None)
    ),
    *(
        (f"launch_{name}", "launch", put(name, value))
        for name in ("container_argv", "tracer_flags", "agent_argv")
        for value in NOT_ARGVS
    ),
    *(
        ("launch_types", "launch", put(name, value))
        for name, value in (
            ("tracer_uid_separated", 1),
            ("network", "false"),
            ("network", None),
            ("agent_uid", True),
            ("agent_uid", 1.0),
            ("timeout_seconds", "no"),
            ("env", []),
            ("env", None),
        )
    ),
    *(
        ("launch_digest_malformed", "launch", put(name, value))
        for name in ("start_tarball_sha256", "observer_source_sha256")
        for value in NOT_DIGESTS
    ),
    # 4.8
    *_begin("launch_receipt"),
    *_names("launch_receipt"),
    ("launch_receipt_witness_scope", "launch_receipt", put("witnessScope", "peer")),
    ("launch_receipt_coverage", "launch_receipt", put("coverage", "partial")),
    *(
        ("launch_receipt_digest_malformed", "launch_receipt", put(f"{name}_sha256", "x"))
        for name in ("launch", "start_tarball", "tree", "transcript", "trace", "observation", "capability")
    ),
    *(
        ("launch_receipt_types", "launch_receipt", put(name, value))
        for name, value in (
            ("timed_out", "no"),
            ("timed_out", 0),
            ("watch_list", {}),
            ("container_exit", "0"),
            ("agent_exit", False),
            ("agent_exit", 0.0),
        )
    ),
    ("launch_receipt_sensors_fields", "launch_receipt", put("sensors", [])),
    ("launch_receipt_sensors_fields", "launch_receipt", drop("sensors.join")),
    ("launch_receipt_sensors_fields", "launch_receipt", put("sensors.s3_tree", [])),
    ("launch_receipt_sensors_fields", "launch_receipt", put("sensors.s3_tree.more", 1)),
    *(
        ("launch_receipt_sensors", "launch_receipt", put(f"sensors.{name}", value))
        for name, value in (
            ("s1_inotify", []),
            ("s2_strace", None),
            ("join", 0),
            ("s2_strace", {}),
            ("s2_strace.tracer", "died"),
            ("s2_strace.tracer", ["lost"]),
            ("s3_tree.tree_sha256", "x"),
            ("external_effects", {}),
        )
    ),
    *(
        ("launch_receipt_effect_fields", "launch_receipt", put("sensors.external_effects", [value]))
        for value in ("write", {"type": "write"}, {"type": "write", "time": "2026-03-01T10:00:01Z", "path": "/tmp/a"})
    ),
    *(
        (
            "launch_receipt_effect",
            "launch_receipt",
            put("sensors.external_effects", [{"type": "write", "time": "2026-03-01T10:00:01Z", **change}]),
        )
        for change in (
            {},
            {"paths": ["/tmp/a"], "address": "192.0.2.1:80"},
            {"paths": []},
            {"paths": [""]},
            {"paths": ["/tmp/a", 1]},
            {"paths": "/tmp/a"},
            {"paths": None},
            {"address": ""},
            {"address": 80},
            {"type": "", "paths": ["/tmp/a"]},
            {"type": 1, "paths": ["/tmp/a"]},
            {"time": "now", "paths": ["/tmp/a"]},
        )
    ),
]

ALLOWED: list[tuple[str, Edit]] = [
    ("contract", drop("task")),
    ("contract", put("task", "\ud800")),
    (
        "contract",
        chain(*(put(name, DIGEST) for name in ("heldout_split_sha256", "mutant_set_sha256", "authority_sha256"))),
    ),
    ("contract", put("protected_paths", [])),
    ("contract", put("protected_paths.0.exclude", ["cache", "a.b", "..."])),
    ("contract", push("protected_paths", {"path": "Tests", "kind": "file", "sha256": DIGEST})),
    ("contract", push("protected_paths", {"path": "a b/...", "kind": "directory", "sha256": DIGEST})),
    ("contract", put("acceptance.0.argv", ["a", "", "\ud800"])),
    ("contract", put("adequacy", {"mutants": 0, "killed": 0})),
    ("contract", put("adequacy", {"mutants": 10**30, "killed": 10**30})),
    ("tree", put("files", {})),
    ("tree", chain(put("vantage", "self_reported"), put("witness_scope", "EXTERNAL"))),
    ("tree", put("files", {"é/日本": DIGEST, "a": sha("b"), "a b": DIGEST, "a/..b": DIGEST})),
    ("observation", drop("events")),
    ("observation", put("events", [])),
    ("observation", put("coverage", "unknown")),
    ("observation", _GAPS),
    ("observation", chain(_GAPS, put("gaps.0", {"start": "2026-03-01T10:00:00Z", "end": "2026-03-01T11:00:00Z"}))),
    ("observation", chain(drop("events"), put("scope.end", "2026-03-01T10:00:00Z"))),
    ("observation", _event(type="read", path=None)),
    ("observation", _event(type="read", path="tests/test_a.py")),
    ("observation", _event(type="rename", target="b")),
    ("observation", _event(type="link")),
    ("observation", _event(type="exec", path=None, argv=["a", ""])),
    ("observation", _event(type="exec", path=None, argv=["a"], exit=-255, origin="e2")),
    ("observation", _event(origin="e4", time="2026-03-01T11:00:00Z", step=10**20)),
    ("observation", _event(time="2026-03-01T10:00:00Z")),
    ("capability", put("visible_event_types", [])),
    ("capability", push("visible_event_types", "read")),
    ("grade", put("results", [])),
    ("grade", put("results.0.exit", -255)),
    ("grade", put("results.0.exit", 255)),
    ("claims", put("claims", [])),
    ("claims", drop("claims.0.exit")),
    ("claims", put("claims.0.argv", LINT[:1])),
    ("launch", put("backend", "apptainer")),
    ("launch", put("backend", "bubblewrap")),
    ("launch", chain(put("agent_uid", -1), put("timeout_seconds", 0), put("env", {}), put("network", True))),
    ("launch_receipt", chain(put("container_exit", None), put("agent_exit", -9), put("timed_out", True))),
    ("launch_receipt", chain(put("trace_expression", None), put("doesNotAssert", 1.5), put("watch_list", [{}]))),
    ("launch_receipt", put("sensors.s3_tree.symlinks", None)),
    ("launch_receipt", put("sensors.s1_inotify", {"anything": {"at": ["all"]}})),
    (
        "launch_receipt",
        put(
            "sensors.external_effects", [{"type": "connect", "time": "2026-03-01T10:00:01Z", "address": "192.0.2.1:80"}]
        ),
    ),
]
"""Edits next to a rule that break none: (kind, edit)."""

JSON_FAULTS: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("json_invalid", lambda data: b"\xef\xbb\xbf" + data),
    ("json_invalid", lambda data: data[:-3]),
    ("json_invalid", lambda data: data + b"x"),
    ("json_invalid", lambda data: b""),
    ("json_invalid", lambda data: data.replace(b"{", b"{,", 1)),
    ("json_invalid", lambda data: data.replace(b"{", b'{"\xff": 1, ', 1)),
    ("json_invalid", lambda data: data.replace(b"{", b'{"\xed\xa0\x80": 1, ', 1)),
    ("json_invalid", lambda data: data.replace(b"{", b'{"a": 01, ', 1)),
    ("json_invalid", lambda data: data.replace(b"{", b'{"a\n": 1, ', 1)),
    ("json_invalid", lambda data: b"[" * 100_000),
    ("json_invalid", lambda data: b"[" * 500 + b"]" * 500),
    ("json_invalid", lambda data: b"1" * 5000),
    # The object's closing brace is where a repeated name counts as met, so the fault inside comes first.
    ("json_invalid", lambda data: b'{"a": 1, "a": 2, x}'),
    ("json_number", lambda data: data.replace(b"{", b'{"a": NaN, ', 1)),
    ("json_number", lambda data: data.replace(b"{", b'{"a": [Infinity], ', 1)),
    ("json_number", lambda data: data.replace(b"{", b'{"a": -Infinity, ', 1)),
    ("json_number", lambda data: b'{"a": 1, "a": NaN}'),
    ("json_number", lambda data: b"NaN x"),
    ("json_duplicate_key", lambda data: data.replace(b"{", b'{"schema_version": 1, "schema_version": 1, ', 1)),
    ("json_duplicate_key", lambda data: data.replace(b"{", b'{"a": {"b": 1, "\\u0062": 1}, ', 1)),
    ("json_duplicate_key", lambda data: data.replace(b"{", b'{"a": [{"" : 1, "":1}], ', 1)),
    ("json_duplicate_key", lambda data: b'{"a": {"b": 1, "b": 2}, "c": NaN}'),
]
"""(code without its prefix, edit of the bytes of a file)."""
