"""A small file of the user's own: whole or not at all, one writer at a time, nobody else's."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest

from troth.core.errors import Refused
from troth.stores import privatefile
from troth.stores.privatefile import PrivateFile

POSIX = pytest.mark.skipif(os.name == "nt", reason="modes and links of a POSIX system")


def file(folder: Path) -> PrivateFile:
    return PrivateFile(folder / "own" / "grants.json", 100, "the file of grants")


def test_written_and_read(tmp_path: Path) -> None:
    held = file(tmp_path)
    assert held.read() is None
    held.change(lambda data: b"one" if data is None else b"wrong")
    held.change(lambda data: (data or b"") + b" two")
    assert held.read() == b"one two"
    assert sorted(path.name for path in held.path.parent.iterdir()) == ["grants.json", "grants.json.lock"]


@POSIX
def test_nobody_else_s_business(tmp_path: Path) -> None:
    held = file(tmp_path)
    mask = os.umask(0)
    try:
        held.change(lambda data: b"one")
    finally:
        os.umask(mask)
    assert stat.S_IMODE(held.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(held.path.parent.stat().st_mode) == 0o700


@POSIX
@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_that_others_may_write_is_not_believed(tmp_path: Path, mode: int) -> None:
    held = file(tmp_path)
    held.change(lambda data: b"one")
    held.path.chmod(mode)
    for use in (held.read, lambda: held.change(lambda data: b"two")):
        with pytest.raises(Refused) as refused:
            use()
        assert refused.value.code == "E_KEY_OPEN"
    held.path.chmod(0o644)
    assert held.read() == b"one"


@POSIX
def test_links_folders_and_pipes_are_refused(tmp_path: Path) -> None:
    held = file(tmp_path)
    held.path.parent.mkdir(mode=0o700)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"granted")

    def link() -> None:
        held.path.symlink_to(elsewhere)

    def dangling() -> None:
        held.path.symlink_to(tmp_path / "nowhere")

    for put in (link, dangling, held.path.mkdir, lambda: os.mkfifo(held.path)):
        put()
        for use in (held.read, lambda: held.change(lambda data: b"two")):
            with pytest.raises(Refused) as refused:
                use()
            assert refused.value.code == "E_NOT_REGULAR"
        held.path.rmdir() if held.path.is_dir() and not held.path.is_symlink() else held.path.unlink()
    assert elsewhere.read_bytes() == b"granted"
    assert not (tmp_path / "nowhere").exists()


def test_of_a_file_too_long_no_more_is_read_than_shows_it(tmp_path: Path) -> None:
    held = file(tmp_path)
    held.change(lambda data: b"x" * 5000)
    assert held.read() == b"x" * 101


def test_what_fails_leaves_the_old_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held = file(tmp_path)
    held.change(lambda data: b"one")

    def broken(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    def wrong(_: bytes | None) -> bytes:
        raise ValueError("a fault in the change")

    with pytest.raises(ValueError, match="fault"):
        held.change(wrong)
    with monkeypatch.context() as patched:
        patched.setattr(privatefile, "replace_whole", broken)
        with pytest.raises(Refused, match="No space left"):
            held.change(lambda data: b"two")
    assert held.read() == b"one"
    held.change(lambda data: b"three")
    assert held.read() == b"three"


def test_two_writers_lose_nothing(tmp_path: Path) -> None:
    path = file(tmp_path)
    path.change(lambda data: b"")

    def add() -> None:
        mine = file(tmp_path)
        for _ in range(10):
            mine.change(lambda data: (data or b"") + b"x")

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read() == b"x" * 40
