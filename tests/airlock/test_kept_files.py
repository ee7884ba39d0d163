"""States that lie in files of ours: what somebody bent is refused with its code, and what was saved comes back."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from troth.airlock import pushing
from troth.airlock.hooking import STATE_VERSION, Memory, Session
from troth.airlock.runs import STATE, Runs, RunState, record_of
from troth.airlock.sealed import read_seal
from troth.airlock.sealings import Sealing, latest_known
from troth.cli.contract_common import seal_beside
from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.hooks.settings import change_codex
from troth.ledger.replay import Replay
from troth.ledger.rows import row_of

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


def test_a_record_of_a_run_is_what_was_kept_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_bytes(b'{"grade": {"runs": []}}')
    assert record_of(tmp_path, "report.json", "grade") == {"grade": {"runs": []}}
    for bent in (b"", b"[]", b"{}", b'{"grade": 1}', DEEP, b'{"grade": {}, "grade": {}}'):
        path.write_bytes(bent)
        with pytest.raises(Refused, match=r"report\.json is not what was kept"):
            record_of(tmp_path, "report.json", "grade")
    path.unlink()
    with pytest.raises(Refused) as told:
        record_of(tmp_path, "report.json")
    assert told.value.code == "E_RUN_UNREADABLE"


LISTED = b"100644 blob " + b"1" * 40 + b"\ta b.py\x00120000 blob " + b"2" * 40 + b"\tlink\0"


@pytest.mark.parametrize(
    ("tree", "contents"),
    [(LISTED, b""), (LISTED, b"1" * 40 + b" missing\n"), (LISTED, b"1" * 40 + b" blob 9\nx = 1\n"),
     (LISTED, b"1" * 40 + b" blob -3\nx\n"), (LISTED, b"2" * 40 + b" blob 1\nx\n"), (LISTED, b"1" * 40 + b" blob x\n"),
     (LISTED, b"1" * 40 + b" tree 1\nx\n"), (b"100644\ta\0", b"1" * 40 + b" blob 1\nx\n")],
)  # fmt: skip
def test_what_git_does_not_give_whole_is_refused(tree: bytes, contents: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    said = {"ls-tree": tree, "cat-file": contents}
    monkeypatch.setattr(pushing, "_git", lambda _, *words, **__: said[words[0]])
    with pytest.raises(Refused, match="git has no content"):
        pushing.committed_files(Path(), "HEAD")
    said.update({"ls-tree": LISTED, "cat-file": b"1" * 40 + b" blob 6\nx = 1\n\n"})
    assert pushing.committed_files(Path(), "HEAD") == {"a b.py": sha256_hex(b"x = 1\n")}


def test_a_report_of_sealing_that_is_nested_without_end_is_none(tmp_path: Path) -> None:
    (tmp_path / "seal.json").write_bytes(DEEP)
    assert seal_beside(tmp_path / "contract.json", "0") is None
    with pytest.raises(Refused, match="no JSON object"):
        read_seal(tmp_path / "contract.json")


@pytest.mark.parametrize("text", ["x = ", "x = " + "9" * 5000, "x = " + "[" * 5000])
def test_a_configuration_of_codex_that_cannot_be_read_is_refused_as_it_is(text: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(Refused, match="no TOML"):
        change_codex(path, ["troth"])
    assert path.read_text() == text


@pytest.mark.parametrize("payload", [None, "x", [], {}, {"meta": "x"}])
def test_a_row_that_holds_no_sealing_tells_of_none(payload: Any) -> None:
    value = {"id": "mem_1", "op": "capture", "ts": "2026-03-01T10:00:00Z", "actor": "human:a", "workspace": "w"}
    meta = {"contract_sha256": "1" * 64, "seal_sha256": "2" * 64, "sealed": "2026-03-01T09:00:00Z"}
    key = {"source_key": f"sealing:{'1' * 64}:x"}

    def known(held: dict[str, Any]) -> Sealing | None:
        row, run = row_of(1, {**value, **key, **held}), Replay()
        run.apply(row)
        snapshot: Any = SimpleNamespace(state=run.state, rows=SimpleNamespace(at_line=lambda _: row))
        return latest_known(snapshot, "1" * 64)

    assert known({} if payload is None else {"payload": payload}) is None
    found = known({"payload": {"body": "x", "meta": meta}})
    assert found is not None
    assert found.seal_sha256 == "2" * 64


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
