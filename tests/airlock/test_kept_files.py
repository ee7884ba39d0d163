"""States that lie in files of ours: what somebody bent is refused with its code, and what was saved comes back."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from troth.airlock.hooking import STATE_VERSION, Memory, Session
from troth.airlock.runs import STATE, Runs, RunState
from troth.core.canonical import record_bytes
from troth.core.errors import Refused

TOLD = {"sentence": "All holds.", "lines": ["a"], "missing": [{"check": "c", "reason": "r"}]}
RUN = RunState(
    "run_1", "cmt_1", "agent:a", ("make",), "0" * 64, "receipted", "2026-03-01T10:00:00Z", decision="supported",
    options={"timeout": 5}, measured={"claims": 1}, told=TOLD, stop={"action": "continue", "reason": "x"},
)  # fmt: skip
DEEP = b'{"a":' * 5000 + b"1" + b"}" * 5000


def run_folder(tmp_path: Path) -> tuple[Runs, Path]:
    runs = Runs(tmp_path)
    runs.folder.mkdir()
    runs.create(RUN, {})
    return runs, runs.path("run_1") / STATE


def test_a_run_comes_back_as_it_was_saved(tmp_path: Path) -> None:
    runs, _ = run_folder(tmp_path)
    assert runs.load("run_1") == RUN
    fresh = RunState("run_2", "c", "agent:a", (), "0", "started", "2026-03-01T10:00:00Z")
    runs.create(fresh, {})
    assert runs.load("run_2") == fresh
    assert [run.id for run in runs.states()] == ["run_1", "run_2"]


@pytest.mark.parametrize(
    "bent",
    [{"started": 5}, {"argv": [1]}, {"argv": "make"}, {"options": []}, {"told": {}}, {"told": {"sentence": 1}},
     {"told": {**TOLD, "missing": ["x"]}}, {"stop": {"action": 1}}, {"stop": {}}, {"measured": "x"}, {"stage": "new"},
     {"stage": []}, {"id": "run_2"}, {"more": 1}, {"decision": 1}],
)  # fmt: skip
def test_a_bent_state_of_a_run_is_refused(bent: dict[str, Any], tmp_path: Path) -> None:
    runs, path = run_folder(tmp_path)
    path.write_bytes(json.dumps({**json.loads(path.read_bytes()), **bent}).encode())
    with pytest.raises(Refused, match="cannot be read") as told:
        runs.load("run_1")
    assert told.value.code == "E_RUN_UNREADABLE"
    assert runs.states() == []


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'"x"', DEEP, b'{"id": 1e999}', b"\xff"])
def test_a_state_that_is_none_is_refused(data: bytes, tmp_path: Path) -> None:
    runs, path = run_folder(tmp_path)
    path.write_bytes(data)
    with pytest.raises(Refused, match="cannot be read"):
        runs.load("run_1")


SESSION = Session(1, ("tests",), {"a.py": "00"}, ("a.py",), 2)
LAST = {
    "schema_version": STATE_VERSION, "source": "claude-code", "tree_sha256": "0" * 64, "done": {}, "sentence": "x",
    "stop_decision": {"action": "continue", "reason": "r"},
}  # fmt: skip


def test_a_session_comes_back_and_a_bent_one_is_refused(tmp_path: Path) -> None:
    memory = Memory(tmp_path, tmp_path)
    memory.keep("s", SESSION)
    assert memory.session("s") == SESSION
    assert memory.session("other") == Session()
    (path,) = tmp_path.glob("session-*.json")
    value = asdict(SESSION)
    for bent in (
        {"replans": "1"}, {"replans": True}, {"told": "x"}, {"named": [1]}, {"baseline": []}, {"baseline": {"a": 1}},
        {"commands": -1}, {"more": 1},
    ):  # fmt: skip
        path.write_bytes(record_bytes({**value, **bent}))
        with pytest.raises(Refused, match="cannot be read"):
            memory.session("s")
    for data in (b"", b"[]", DEEP, b'{"told": "\\ud800"}'):
        path.write_bytes(data)
        with pytest.raises(Refused, match="cannot be read"):
            memory.session("s")


def test_a_last_decision_that_somebody_bent_is_none(tmp_path: Path) -> None:
    memory = Memory(tmp_path, tmp_path)
    path = tmp_path / "last.json"
    path.write_bytes(record_bytes(LAST))
    assert memory.last() == LAST
    for bent in ({"stop_decision": {}}, {"stop_decision": "x"}, {"sentence": 1}, {"done": []}, {"schema_version": "y"}):
        path.write_bytes(record_bytes({**LAST, **bent}))
        assert memory.last() == {}
    path.write_bytes(DEEP)
    assert memory.last() == {}
