"""Limits of the kernel that cost coverage, and memory: each with what mends it, and nothing where there is room."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from troth.cli.main import main
from troth.observer import room
from troth.observer.room import INSTANCES, QUEUED, WATCHES, Room, tight

ROOMY = Room({WATCHES: 65_536, INSTANCES: 128, QUEUED: 16_384}, folders=5_000, memory=8 << 30)


def test_what_kernels_come_with_is_room_enough() -> None:
    assert tight(ROOMY) == []
    assert tight(Room()) == [], "what is not known is not complained of"
    assert tight(replace(ROOMY, folders=None)) == []


@pytest.mark.parametrize(
    ("found", "code", "remedy"),
    [
        ({"settings": {WATCHES: 8_192}, "folders": 20_000}, "inotify-watches",
         "sudo sysctl -w fs.inotify.max_user_watches=65536"),
        ({"settings": {WATCHES: 65_536}, "folders": 90_000}, "inotify-watches",
         "sudo sysctl -w fs.inotify.max_user_watches=182048"),
        ({"settings": {WATCHES: 8_192}, "folders": 20_000, "is_root": True}, "inotify-watches",
         "sysctl -w fs.inotify.max_user_watches=65536"),
        ({"settings": {INSTANCES: 8}}, "inotify-instances", "sudo sysctl -w fs.inotify.max_user_instances=512"),
        ({"settings": {QUEUED: 1_024}}, "inotify-queue", "sudo sysctl -w fs.inotify.max_queued_events=65536"),
        ({"memory": 300 << 20}, "memory",
         "Free memory, raise the container's limit, or lower memory_mb under [limits] in the contract."),
    ],
)  # fmt: skip
def test_what_is_too_small_is_told_with_what_mends_it(found: dict[str, Any], code: str, remedy: str) -> None:
    (told,) = tight(replace(ROOMY, **found))
    assert (told.code, told.remedy) == (code, remedy)


def test_folders_are_counted_as_they_are_watched(tmp_path: Path) -> None:
    for name in ("a/b", ".git/objects/aa", ".mentu/runs", "c"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "a")
    assert room.gather(tmp_path).folders == 4
    assert room.gather(None).folders is None


def test_the_doctor_tells_it_and_it_keeps_nobody_from_anything(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("troth.observer.ready.observer_ready", list)
    monkeypatch.setattr(room, "gather", lambda workspace: replace(ROOMY, settings={INSTANCES: 8}))
    assert main(["doctor"]) == 0
    assert "Tight: The kernel lets a user have 8 queues" in capsys.readouterr().out
    assert main(["doctor", "--json"]) == 0
    assert [entry["code"] for entry in json.loads(capsys.readouterr().out)["tight"]] == ["inotify-instances"]
