"""From what was seen to records: each reason for incomplete coverage, its gap, the join, and what a tree leaves out."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from troth.core.errors import Refused
from troth.observer.events import TraceReport
from troth.observer.journal import Event
from troth.observer.records import Origin, coverage_faults, interval_end, observation_record, unattributed
from troth.observer.tree import Snapshot, snapshot
from troth.receipts import records
from troth.receipts.strict import parse

START = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
ORIGIN = Origin("cmt_00000001", "run_00000001", START, START + timedelta(seconds=60))
CLEAN = TraceReport(
    events=(Event("e1", "write", "2026-03-01T12:00:05Z", 1, path="a"),),
    effects=(),
    refused=(),
    escapes=(),
    unresolved=(),
    unparsed_lines=0,
    tracer="complete",
    git_mutations=0,
    names_not_utf8=(),
    root_exit=0,
    commands=0,
    truncated_after=None,
)
TREE = Snapshot({"a": "0" * 64})


# --- coverage (§13.3) ---

LOWERING: list[tuple[str, dict[str, Any], tuple[str, ...], Snapshot]] = [
    ("ends before", {"tracer": "lost"}, (), TREE),
    ("unseen: io_uring_setup", {"escapes": ("io_uring_setup",)}, (), TREE),
    ("effect is not known: sysfs", {"unresolved": ("sysfs",)}, (), TREE),
    ("2 lines", {"unparsed_lines": 2}, (), TREE),
    ("more events", {"truncated_after": "2026-03-01T12:00:05Z"}, (), TREE),
    ("does not explain: b and 1 more", {}, ("b", "c"), TREE),
    ("not UTF-8: \\xff", {"names_not_utf8": ("\\xff",)}, (), TREE),
    ("not UTF-8: \\xfe", {}, (), replace(TREE, not_utf8=("\\xfe",))),
    ("could not be read afterwards: d", {}, (), replace(TREE, unreadable=("d",))),
]


@pytest.mark.parametrize(("words", "change", "join", "after"), LOWERING, ids=[case[0] for case in LOWERING])
def test_each_reason_alone_lowers_coverage_and_is_said(
    words: str, change: dict[str, Any], join: tuple[str, ...], after: Snapshot
) -> None:
    (fault,) = coverage_faults(replace(CLEAN, **change), join, after)
    assert words in fault


def test_what_costs_no_coverage() -> None:
    harmless = replace(CLEAN, refused=("open",), git_mutations=9, root_exit=1, effects_omitted=3)
    assert coverage_faults(harmless, (), replace(TREE, special=("pipe",), symlinks={"l": "a"})) == ()


def written(report: TraceReport, faults: tuple[str, ...]) -> dict[str, Any]:
    data = observation_record(ORIGIN, report, faults)
    assert records.observation(parse(data, "observation"))  # the readers' own rules
    found: dict[str, Any] = json.loads(data)
    return found


def test_a_complete_record_has_no_gap_and_an_incomplete_one_has_its_gap() -> None:
    whole = {"start": "2026-03-01T12:00:00Z", "end": "2026-03-01T12:01:00Z"}
    assert written(CLEAN, ())["coverage"] == "complete"
    assert "gaps" not in written(CLEAN, ())
    lost = written(replace(CLEAN, tracer="lost"), ("the trace ends early",))
    assert (lost["coverage"], lost["gaps"]) == ("incomplete", [whole])
    # Where nothing but the record's size cut the events, what stands before the cut is seen whole.
    cut = replace(CLEAN, truncated_after="2026-03-01T12:00:05Z")
    assert written(cut, ("more events than fit",))["gaps"] == [whole | {"start": "2026-03-01T12:00:05Z"}]
    assert written(cut, ("more events than fit", "and a name"))["gaps"] == [whole]


@pytest.mark.parametrize("seconds", [0.0, 0.2, 1.0, 59.000001])
def test_an_interval_has_room_for_a_gap_and_holds_its_end(seconds: float) -> None:
    begin = START + timedelta(milliseconds=700)
    end = begin + timedelta(seconds=seconds)
    rounded = interval_end(begin, end)
    assert rounded.microsecond == 0
    assert rounded >= end
    assert rounded >= begin.replace(microsecond=0) + timedelta(seconds=1)


# --- the join (§13.3) ---


def touched(*events: tuple[str, str, str | None]) -> TraceReport:
    made = (
        Event(f"e{step}", kind, "2026-03-01T12:00:05Z", step, path=path, target=target)
        for step, (kind, path, target) in enumerate(events, 1)
    )
    return replace(CLEAN, events=tuple(made))


def test_a_change_that_no_mutation_names_is_left_over() -> None:
    before = Snapshot(
        {"same": "1", "edited": "1", "gone": "1", "moved": "1"}, symlinks={"link": "same"}, special=("old-pipe",)
    )
    after = Snapshot(
        {"same": "1", "edited": "2", "new": "1", "here": "1"}, symlinks={"link": "other"}, special=("new-pipe",)
    )
    everything = ("edited", "gone", "here", "link", "moved", "new", "new-pipe", "old-pipe")
    assert unattributed(before, after, touched()) == everything
    assert unattributed(before, before, touched()) == ()
    events = touched(
        ("write", "edited", None),
        ("unlink", "gone", None),
        ("rename", "moved", "here"),
        ("create", "new", None),
        ("unlink", "old-pipe", None),
        ("create", "new-pipe", None),
        ("link", "same", "link"),
    )
    assert unattributed(before, after, events) == ()
    assert unattributed(before, after, touched(("read", "edited", None), ("open", "new", None))) == everything


# --- the tree (§13.2, §13.9) ---


def test_what_is_no_part_of_the_tree_and_what_is_only_reported(tmp_path: Path) -> None:
    for name in ("a", ".git/config", ".mentu/ledger.jsonl", "sub/.git/config", "sub/.mentu"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "link").symlink_to("a")
    (tmp_path / "folder-link").symlink_to("/etc")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        found = snapshot(tmp_path)
    assert list(found.files) == ["a", "sub/.git/config", "sub/.mentu"]
    assert found.symlinks == {"folder-link": "/etc", "link": "a"}
    assert found.special == ("pipe", "socket")


def test_a_workspace_of_too_many_files_is_refused_and_the_largest_folders_are_named(tmp_path: Path) -> None:
    for folder, count in (("packages", 6), ("src", 2)):
        (tmp_path / folder).mkdir()
        for number in range(count):
            (tmp_path / folder / str(number)).write_text("")
    assert len(snapshot(tmp_path, max_files=8).files) == 8
    with pytest.raises(Refused) as refusal:
        snapshot(tmp_path, max_files=7)
    assert refusal.value.code == "E_TREE_TOO_LARGE"
    assert "packages (" in refusal.value.message
    assert "--allow-read" in (refusal.value.remedy or "")


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "t").write_text("other"),
        lambda root: ((root / "t").unlink(), (root / "t").symlink_to("kept")),
        lambda root: (root / "new").write_text("text"),
    ],
)
def test_a_digest_kept_from_an_earlier_look_never_hides_a_change(tmp_path: Path, change: Callable[[Path], Any]) -> None:
    (tmp_path / "t").write_text("text")
    (tmp_path / "kept").write_text("kept")
    before = snapshot(tmp_path)
    assert snapshot(tmp_path, before=before).digest == before.digest
    change(tmp_path)
    assert snapshot(tmp_path, before=before) == snapshot(tmp_path)
    assert snapshot(tmp_path, before=before).digest != before.digest
