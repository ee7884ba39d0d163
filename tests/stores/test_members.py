"""Member folders on a disk: regular files only, no links, never beyond the folder (done records §2, §11)."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path

import pytest

from troth.core.errors import Refused
from troth.receipts.member import MAX_BYTES, ReadFault
from troth.stores import members
from troth.stores.members import FolderMember


@pytest.fixture(params=[True, False], ids=["relative-open", "portable"])
def at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both ways of opening: relative to an open folder, and the one for systems that cannot."""
    monkeypatch.setattr(members, "_AT", request.param and members._AT)
    return bool(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "member"
    (made / "deep" / "down").mkdir(parents=True)
    (made / "a.json").write_bytes(b"a")
    (made / "deep" / "down" / "b.json").write_bytes(b"b")
    (tmp_path / "outside.json").write_bytes(b"outside")
    return made


@pytest.mark.usefixtures("at")
class TestReading:
    def test_files_and_absence(self, folder: Path) -> None:
        member = FolderMember(folder)
        assert member.read("a.json") == b"a"
        assert member.read("deep/down/b.json") == b"b"
        assert member.read("b.json") is None
        assert member.read("deep/b.json") is None
        assert member.read("nowhere/b.json") is None
        # A file has no entries: what would lie beneath it is absent.
        assert member.read("a.json/b.json") is None
        (folder / "empty.json").touch()
        assert member.read("empty.json") == b""

    @pytest.mark.parametrize(
        "name", ["../outside.json", "/etc/hostname", "deep/../a.json", "./a.json", "", "a\0", "a//b"]
    )
    def test_no_name_leaves_the_folder(self, folder: Path, name: str) -> None:
        with pytest.raises(ReadFault):
            FolderMember(folder).read(name)

    def test_links_are_faults(self, folder: Path) -> None:
        (folder / "link.json").symlink_to(folder / "a.json")
        (folder / "dangling.json").symlink_to(folder / "nothing")
        (folder / "out.json").symlink_to("../outside.json")
        (folder / "loop.json").symlink_to("loop.json")
        (folder / "linked").symlink_to("deep", target_is_directory=True)
        for name in ("link.json", "dangling.json", "out.json", "loop.json", "linked/down/b.json"):
            with pytest.raises(ReadFault):
                FolderMember(folder).read(name)

    def test_hard_links_are_files(self, folder: Path) -> None:
        os.link(folder / "a.json", folder / "hard.json")
        assert FolderMember(folder).read("hard.json") == b"a"

    def test_what_is_no_regular_file_is_a_fault_and_does_not_block(self, folder: Path, tmp_path: Path) -> None:
        os.mkfifo(folder / "pipe.json")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(os.path.relpath(folder / "socket.json"))
            for name in ("pipe.json", "socket.json", "deep"):
                with pytest.raises(ReadFault):
                    FolderMember(folder).read(name)

    def test_size(self, folder: Path) -> None:
        with (folder / "big.json").open("wb") as file:
            file.truncate(MAX_BYTES)
        data = FolderMember(folder).read("big.json")
        assert data is not None
        assert len(data) == MAX_BYTES
        with (folder / "big.json").open("ab") as file:
            file.write(b"x")
        with pytest.raises(ReadFault, match="more than"):
            FolderMember(folder).read("big.json")

    def test_names_too_long_to_exist_are_faults(self, folder: Path) -> None:
        with pytest.raises(ReadFault):
            FolderMember(folder).read("x" * 5000)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
    def test_unreadable_files_are_faults(self, folder: Path) -> None:
        (folder / "a.json").chmod(0)
        with pytest.raises(ReadFault):
            FolderMember(folder).read("a.json")


def test_a_file_that_grows_while_it_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What fstat said no longer holds: the file is read to its end, and no further than the limit."""
    straight = os.fstat

    class Shrunk:
        def __init__(self, found: os.stat_result, size: int) -> None:
            self.st_mode = found.st_mode
            self.st_size = size

    for size in (0, 1, 50):
        (folder / "a.json").write_bytes(b"0123456789")
        monkeypatch.setattr(os, "fstat", lambda fd, size=size: Shrunk(straight(fd), size))
        assert FolderMember(folder).read("a.json") == b"0123456789"
    (folder / "a.json").write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(ReadFault, match="more than"):
        FolderMember(folder).read("a.json")


def test_the_folder_itself_may_be_a_link_and_must_be_there(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(folder, target_is_directory=True)
    assert FolderMember(tmp_path / "alias").read("a.json") == b"a"
    for missing in (tmp_path / "nothing", folder / "a.json", "a\0"):
        with pytest.raises(Refused) as caught:
            FolderMember(missing)
        assert caught.value.code == "E_MEMBER_MISSING"


def test_names_with_a_drive_or_backslash_are_refused_where_they_mean_something(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(members, "_AT", False)
    for name in ("..\\outside.json", "C:x", "a.json:stream"):
        with pytest.raises(ReadFault):
            FolderMember(folder).read(name)


def test_nothing_stays_open(folder: Path) -> None:
    (folder / "link").symlink_to("deep")
    before = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    for name in ("a.json", "deep/down/b.json", "deep/nothing/b.json", "link/down/b.json", "deep"):
        with contextlib.suppress(ReadFault):
            FolderMember(folder).read(name)
    after = len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").is_dir() else 0
    assert before == after


class TestChange:
    def test_a_folder_at_rest(self, folder: Path) -> None:
        member = FolderMember(folder)
        assert not member.changed()
        for name in ("a.json", "deep/down/b.json", "none.json"):
            member.read(name)
        (folder / "deep" / "unread.json").touch()
        assert not member.changed()

    @pytest.mark.parametrize("change", ["overwritten", "replaced", "gone", "come", "beneath", "folder"])
    def test_a_folder_that_was_written_to(self, folder: Path, change: str) -> None:
        member = FolderMember(folder)
        for name in ("a.json", "deep/down/b.json", "none.json"):
            member.read(name)
        if change == "overwritten":
            (folder / "a.json").write_bytes(b"aa")
        elif change == "replaced":
            (folder.parent / "outside.json").replace(folder / "a.json")
        elif change == "gone":
            (folder / "a.json").unlink()
        elif change == "come":
            (folder / "none.json").touch()
        elif change == "beneath":
            (folder / "deep" / "down" / "b.json").write_bytes(b"bb")
        else:
            folder.rename(folder.with_name("moved"))
        assert member.changed()
