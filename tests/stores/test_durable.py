"""Durable bytes: whole files or none, short writes continued, failures cut back, links refused."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from troth.core.errors import Refused
from troth.stores import durable
from troth.stores.durable import (
    WriteFailed,
    append_durably,
    copy_range_durably,
    create_whole,
    open_regular,
    read_regular,
    replace_whole,
)


def _appending(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_APPEND)


def test_append_adds_exactly_the_bytes_in_one_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old\n")
    calls: list[int] = []
    real = os.write

    def counting(fd: int, data: bytes) -> int:
        calls.append(len(data))
        return real(fd, data)

    monkeypatch.setattr(os, "write", counting)
    fd = _appending(path)
    append_durably(fd, b"new\n", 4, path)
    os.close(fd)
    assert path.read_bytes() == b"old\nnew\n"
    assert calls == [4]


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"")
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))
    fd = _appending(path)
    append_durably(fd, b"0123456789\n", 0, path)
    os.close(fd)
    assert path.read_bytes() == b"0123456789\n"


@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_a_failure_cuts_the_file_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old\n")
    real_write, real_sync = os.write, os.fsync
    state = {"calls": 0}

    def write(fd: int, data: bytes) -> int:
        state["calls"] += 1
        if state["calls"] == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real_write(fd, bytes(data)[:2] if failing == "write" else data)

    def sync(fd: int) -> None:
        if failing == "fsync" and not state.get("failed"):
            state["failed"] = 1
            raise OSError(errno.EIO, "Input/output error")
        real_sync(fd)

    monkeypatch.setattr(os, "write", write)
    monkeypatch.setattr(os, "fsync", sync)
    fd = _appending(path)
    with pytest.raises(WriteFailed) as caught:
        append_durably(fd, b"new\n", 4, path)
    os.close(fd)
    assert path.read_bytes() == b"old\n"
    assert caught.value.code == "E_WRITE_FAILED"
    assert caught.value.detail in (errno.ENOSPC, errno.EIO)
    assert "Nothing was added" in str(caught.value)


def test_a_failure_that_cannot_be_undone_is_admitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old\n")

    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", broken)
    monkeypatch.setattr(os, "ftruncate", broken)
    fd = _appending(path)
    with pytest.raises(WriteFailed, match="failed too"):
        append_durably(fd, b"new\n", 4, path)
    os.close(fd)
    assert path.read_bytes().startswith(b"old\n")


def test_create_whole_never_touches_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert create_whole(path, b"first")
    assert not create_whole(path, b"second")
    assert path.read_bytes() == b"first"
    link = tmp_path / "dangling"
    link.symlink_to(tmp_path / "nowhere")
    assert not create_whole(link, b"third")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["dangling", "file"]


def test_create_whole_leaves_nothing_when_the_disk_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        create_whole(tmp_path / "file", b"bytes")
    assert list(tmp_path.iterdir()) == []


def test_create_whole_works_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_links(*_: object, **__: object) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_links)
    assert create_whole(tmp_path / "file", b"bytes")
    assert (tmp_path / "file").read_bytes() == b"bytes"
    assert len(list(tmp_path.iterdir())) == 1


def test_replace_whole_swaps_or_leaves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    replace_whole(path, b"new")
    assert path.read_bytes() == b"new"

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        replace_whole(path, b"newer")
    assert path.read_bytes() == b"new"
    assert len(list(tmp_path.iterdir())) == 1


def test_copy_range_keeps_names_that_are_taken(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(b"0123456789")
    fd = os.open(source, os.O_RDONLY)
    copy_range_durably(fd, 3, 7, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == b"3456"
    with pytest.raises(FileExistsError):
        copy_range_durably(fd, 0, 2, tmp_path / "copy")
    os.close(fd)
    assert (tmp_path / "copy").read_bytes() == b"3456"


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.mkdir()


def _link(path: Path) -> None:
    target = path.with_name("target")
    target.write_bytes(b"")
    path.symlink_to(target)


@pytest.mark.parametrize(
    ("make", "code", "words"),
    [
        (None, "E_ABSENT", "is not there"),
        (_fifo, "E_NOT_REGULAR", "not a regular file"),
        (_folder, "E_NOT_REGULAR", "not a regular file"),
        (_link, "E_NOT_REGULAR", "symbolic link"),
    ],
)
def test_only_regular_files_are_opened(tmp_path: Path, make: object, code: str, words: str) -> None:
    path = tmp_path / "thing"
    if callable(make):
        make(path)
    with pytest.raises(Refused, match=words) as caught:
        open_regular(path, os.O_RDONLY, "E_ABSENT", "the file")
    assert caught.value.code == code
    assert caught.value.place is not None
    assert caught.value.place.file == str(path)


def test_a_file_that_changes_kind_underneath_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "thing"
    path.write_bytes(b"")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    real = os.open
    monkeypatch.setattr(durable.os, "open", lambda _path, flags: real(fifo, flags))
    with pytest.raises(Refused, match="not a regular file"):
        open_regular(path, os.O_RDONLY, "E_ABSENT", "the file")


def test_read_regular_has_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_regular(path, 5, "E_ABSENT", "the file") == b"12345"
    with pytest.raises(Refused) as caught:
        read_regular(path, 4, "E_ABSENT", "the file")
    assert caught.value.code == "E_TOO_LARGE"
