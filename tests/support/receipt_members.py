"""Whole members made in memory, honest unless told otherwise; written without the project's own writers.

A `Draft` holds the values of every record. Members that say ``AUTO`` are filled in when the draft is sealed, so that
an edit before sealing gives a member whose digests all agree, and an edit after it one whose digests do not.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable
from typing import Any

AUTO = "auto"
"""Stands for a digest that sealing computes."""

FILES = {
    "contract": "contract.json",
    "tree": "tree.json",
    "observation": "observation.json",
    "capability": "capability.json",
    "grade": "grade.json",
    "claims": "claims.json",
    "launch": "launch.json",
    "launch_receipt": "launch-receipt.json",
}
CHECKS = {
    "protected_paths/v1": ("protected-paths", ("contract", "capability", "observation", "tree"), True),
    "acceptance_observed/v1": ("acceptance", ("contract", "tree", "grade"), False),
    "tool_claim_match/v1": ("tool-claims", ("claims", "capability", "observation"), True),
}
STEMS = tuple(stem for stem, _, _ in CHECKS.values())
PINNED = ("observation", "tree", "grade")
CORE = ("contract", "tree", "observation", "capability", "grade", "claims")
MUTATIONS = ("write", "create", "rename", "link", "unlink", "truncate", "chmod")

SCOPE = {"id": "scope-1", "start": "2026-03-01T10:00:00Z", "end": "2026-03-01T11:00:00Z"}
TEST = ["python", "-m", "pytest", "-q"]
LINT = ["ruff", "check", "."]


def sha(data: bytes | str) -> str:
    """Digest of bytes, or of a text's UTF-8."""
    return hashlib.sha256(data if isinstance(data, bytes) else data.encode()).hexdigest()


def tree_digest(files: dict[str, str]) -> str:
    """The tree digest, by the letter."""
    return sha("".join(f"{files[path]}  {path}\n" for path in sorted(files, key=lambda path: path.encode())))


def dump(value: Any) -> bytes:
    """The layout of the published records."""
    return (json.dumps(value, indent=2, sort_keys=True) + "\n").encode()


def at(second: int) -> str:
    """An instant of the run."""
    return f"2026-03-01T10:{second // 60:02}:{second % 60:02}Z"


def event(step: int, kind: str, **more: Any) -> dict[str, Any]:
    """An event whose id and time follow its step."""
    return {"id": f"e{step}", "type": kind, "step": step, "time": at(step), **more}


class Draft:
    """The values of one run's records, and what its case and policy say."""

    def __init__(self) -> None:
        origin = {"claim_id": "claim-1", "invocation_id": "run-1", "vantage": "independent", "witness_scope": "PEER"}
        observer = {**origin, "producer": "observer"}
        tests = {"tests/test_a.py": sha("test a"), "tests/sub/test_b.py": sha("test b")}
        self.values: dict[str, Any] = {
            "contract": {
                "schema_version": "probity-done-contract/v1",
                "contract_id": "contract-1",
                "task": "make it work",
                "protected_paths": [
                    {"path": "tests", "kind": "directory", "sha256": tree_digest(tests), "exclude": ["cache"]},
                    {"path": "setup.cfg", "kind": "file", "sha256": sha("cfg")},
                ],
                "acceptance": [{"id": "unit", "argv": TEST}, {"id": "lint", "argv": LINT}],
                "adequacy": {"mutants": 4, "killed": 3},
            },
            "tree": {
                "schema_version": "probity-tree/v1",
                "tree_sha256": AUTO,
                "files": {"src/app.py": sha("app"), "setup.cfg": sha("cfg"), "tests/cache/x": sha("x"), **tests},
                **observer,
            },
            "observation": {
                "schema_version": "probity-observation/v2",
                "scope": dict(SCOPE),
                "coverage": "complete",
                "events": [
                    event(1, "write", path="src/app.py"),
                    event(2, "exec", argv=TEST, exit=0),
                    event(3, "write", path="tests/cache/x", origin="e2"),
                    event(4, "exec", argv=LINT, exit=0),
                ],
                **observer,
            },
            "capability": {
                "schema_version": "probity-capabilities/v1",
                "claim_id": "claim-1",
                "invocation_id": "run-1",
                "producer": "observer",
                "visible_event_types": ["exec", *MUTATIONS],
            },
            "grade": {
                "schema_version": "probity-acceptance-grade/v1",
                "contract_sha256": AUTO,
                "tree_sha256": AUTO,
                "results": [{"id": "unit", "argv": TEST, "exit": 0}, {"id": "lint", "argv": LINT, "exit": 0}],
                **origin,
                "producer": "verifier",
            },
            "claims": {
                "schema_version": "probity-tool-claims/v1",
                "claim_id": "claim-1",
                "invocation_id": "run-1",
                "producer": "transcript",
                "claims": [{"id": "c1", "argv": LINT, "exit": 0}],
            },
            "launch": {
                "schema_version": "probity-launch/v1",
                "backend": "docker",
                "image": "image",
                "image_id": "sha256:1",
                "runtime_version": "1",
                "strace_version": "6",
                "container_argv": ["run", "image"],
                "trace_expression": "trace=all",
                "tracer_flags": ["-f"],
                "tracer_uid_separated": True,
                "agent_argv": ["agent"],
                "agent_uid": 1000,
                "env": {"LANG": "C"},
                "network": False,
                "container_workspace": "/workspace",
                "start_tarball_sha256": sha("start"),
                "observer_source_sha256": sha("observer"),
                "timeout_seconds": 60,
            },
            "launch_receipt": {
                "schema_version": "probity-launch-receipt/v1",
                "claim_id": "claim-1",
                "invocation_id": "run-1",
                "producer": "observer",
                "witnessScope": "PEER",
                "launch_sha256": AUTO,
                "trace_expression": "trace=all",
                "watch_list": [],
                "start_tarball_sha256": sha("start"),
                "tree_sha256": AUTO,
                "coverage": "complete",
                "container_exit": 0,
                "agent_exit": None,
                "timed_out": False,
                "transcript_sha256": sha("transcript"),
                "trace_sha256": sha("trace"),
                "observation_sha256": AUTO,
                "capability_sha256": AUTO,
                "sensors": {
                    "s1_inotify": {"overflow": False, "watch_failures": []},
                    "s2_strace": {"tracer": "complete", "escapes": [], "unresolved": 0, "unparsed_lines": 0},
                    "s3_tree": {"tree_sha256": AUTO, "files": 5},
                    "join": {"unattributed": []},
                    "external_effects": [],
                },
                "doesNotAssert": ["anything else"],
            },
        }
        self.text: dict[str, bytes] = {}
        """Bytes that replace a record's value, by record kind."""
        self.observed_party = "agent"
        self.policy_edits: list[tuple[str, Callable[[Any, Any], Any]]] = []
        """(stem or "*", edit(case, policy)): applied when the cases and policies are written."""
        self.with_launch = False
        """Whether launch records are there and the receipt names them."""

    # --- small edits that tests share ---

    def add_events(self, *events: dict[str, Any]) -> Draft:
        """Append events."""
        self.values["observation"]["events"] += events
        return self

    def claim(self, *claims: dict[str, Any]) -> Draft:
        """Replace the claims."""
        self.values["claims"]["claims"] = list(claims)
        return self

    def external(self) -> Draft:
        """Say EXTERNAL in every record and pin."""
        for kind in PINNED:
            self.values[kind]["witness_scope"] = "EXTERNAL"
        self.values["launch_receipt"]["witnessScope"] = "EXTERNAL"
        return self

    def launched(self) -> Draft:
        """Add the launch records and name them."""
        self.with_launch = True
        return self

    # --- sealing ---

    def _fill(self, digests: dict[str, str], kind: str) -> Any:
        value = copy.deepcopy(self.values[kind])
        if not isinstance(value, dict):
            return value
        tree = self.tree_sha256()
        if kind == "tree" and value.get("tree_sha256") == AUTO:
            value["tree_sha256"] = tree
        if kind == "grade":
            if value.get("contract_sha256") == AUTO:
                value["contract_sha256"] = digests["contract"]
            if value.get("tree_sha256") == AUTO:
                value["tree_sha256"] = tree
        if kind == "launch_receipt":
            for name in ("launch", "observation", "capability", "tree"):
                if value.get(f"{name}_sha256") == AUTO:
                    value[f"{name}_sha256"] = digests[name]
            sensor = value["sensors"].get("s3_tree") if isinstance(value.get("sensors"), dict) else None
            if isinstance(sensor, dict) and sensor.get("tree_sha256") == AUTO:
                sensor["tree_sha256"] = tree
        return value

    def tree_sha256(self) -> str:
        """The tree digest the records should name."""
        try:
            value = self.values["tree"]
            return value["tree_sha256"] if value["tree_sha256"] != AUTO else tree_digest(value["files"])
        except (TypeError, KeyError, AttributeError, UnicodeEncodeError):
            return sha("no tree")

    def records(self) -> dict[str, bytes]:
        """File name -> bytes of every record."""
        digests: dict[str, str] = {}
        written = {}
        for kind, name in FILES.items():
            if kind in ("launch", "launch_receipt") and not self.with_launch:
                continue
            data = self.text[kind] if kind in self.text else dump(self._fill(digests, kind))
            written[name] = data
            digests[kind] = sha(data)
        return written

    def seal(self) -> dict[str, bytes]:
        """The member without a receipt: records, cases and policies."""
        files = self.records()
        for claim_type, (stem, roles, scoped) in CHECKS.items():
            case: Any = {"schema_version": "probity-case/v1", "case_id": "claim-1", "artifacts": {}}
            asked: dict[str, Any] = {
                "claim_type": claim_type,
                "invocation_id": "run-1",
                "observed_party": self.observed_party,
            }
            if scoped:
                asked["scope"] = dict(SCOPE)
            policy: Any = {
                "schema_version": "probity-policy/v1",
                "assessments": {"claim-1": asked},
                "witnesses": {},
            }
            for role in roles:
                data = files[FILES[role]]
                case["artifacts"][f"{role}-file"] = {"path": FILES[role], "sha256": sha(data), "length": len(data)}
                asked[f"{role}_witness"] = f"{role}-pin"
                pin: dict[str, Any] = {"artifact": f"{role}-file", "sha256": sha(data), "authority": "the tests"}
                if role in PINNED:
                    value = self.values[role]
                    external = isinstance(value, dict) and value.get("witness_scope") == "EXTERNAL"
                    pin |= {
                        "producer": "verifier" if role == "grade" else "observer",
                        "vantage": "independent",
                        "witness_scope": "EXTERNAL" if external else "PEER",
                    }
                policy["witnesses"][f"{role}-pin"] = pin
            for wanted, edit in self.policy_edits:
                if wanted in ("*", stem):
                    edit(case, policy)
            files[f"{stem}.case.json"] = dump(case)
            files[f"{stem}.policy.json"] = dump(policy)
        return files

    def statement(self) -> dict[str, bytes]:
        """A member of the contract corpus."""
        contract = self.records()["contract.json"]
        try:
            predicate = json.loads(contract)
        except ValueError:
            predicate = {}
        return {"contract.json": contract, "statement.json": dump(contract_statement(contract, predicate))}


def contract_statement(contract: bytes, predicate: Any) -> dict[str, Any]:
    """A Statement over a contract."""
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "contract.json", "digest": {"sha256": sha(contract)}}],
        "predicateType": "https://w3id.org/agent-evidence/predicate/v1/done-contract",
        "predicate": predicate,
    }


def receipt_value(draft: Draft, files: dict[str, bytes], result: dict[str, Any]) -> dict[str, Any]:
    """A receipt that states the result of the member without one."""
    kinds = [*CORE, "launch", "launch_receipt"] if draft.with_launch else CORE
    try:
        effects = json.loads(files["launch-receipt.json"])["sensors"]["external_effects"]
    except (KeyError, TypeError, ValueError):
        effects = []
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"name": "workspace-tree", "digest": {"sha256": draft.tree_sha256()}}],
        "predicateType": "https://w3id.org/agent-evidence/predicate/v1/done-receipt",
        "predicate": {
            "schema_version": "probity-done-receipt/v1",
            "claim_id": "claim-1",
            "invocation_id": "run-1",
            "records": {kind: {"sha256": sha(files[FILES[kind]])} for kind in kinds},
            "checks": [{"claim_type": name, **result["checks"][name]} for name in CHECKS],
            "verdict": result["done"],
            "external_effects": effects,
            "verifier": {"id": "urn:example:verifier"},
        },
    }


SUPPORTED = {"decision": "supported", "vantage": "independent", "witness_scope": "PEER"}
HONEST = {
    "checks": {
        "protected_paths/v1": {**SUPPORTED, "reason": "protected_paths_untouched"},
        "acceptance_observed/v1": {**SUPPORTED, "reason": "acceptance_passed_in_verifier"},
        "tool_claim_match/v1": {**SUPPORTED, "reason": "tool_claims_matched"},
    },
    "done": {**SUPPORTED, "reason": "done_checks_supported"},
}
"""The result of an unedited draft without a receipt."""
