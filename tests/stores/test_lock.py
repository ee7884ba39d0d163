"""The write lock: exclusive between processes, threads and stores; dropped at death; never removed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from troth.core.errors import Busy, Refused
from troth.stores.lock import WriteLock

HOLDER = """
import sys, time
from pathlib import Path
from troth.stores.lock import WriteLock
with WriteLock(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def _holder(path: Path) -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"held\n"
    return process


def test_another_process_holding_it_means_busy(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    process = _holder(path)
    try:
        with pytest.raises(Busy) as caught, WriteLock(path, 0.05):
            pytest.fail("the lock was taken twice")
        assert caught.value.exit_code == 75
        assert caught.value.code == "E_BUSY"
    finally:
        process.communicate(b"")
    with WriteLock(path, 0.05):
        assert path.exists()


def test_a_killed_holder_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    process = _holder(path)
    process.kill()
    process.wait()
    process.communicate()
    with WriteLock(path, 5):
        pass
    assert path.exists()


def test_a_waiting_writer_gets_it_when_it_is_free(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    order: list[str] = []
    waiting = threading.Event()

    def wait() -> None:
        waiting.set()
        with WriteLock(path, 10):
            order.append("second")

    with WriteLock(path):
        other = threading.Thread(target=wait)
        other.start()
        waiting.wait(5)
        order.append("first")
    other.join(10)
    assert order == ["first", "second"]


def test_two_openings_in_one_process_exclude_each_other(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with WriteLock(path), pytest.raises(Busy), WriteLock(path, 0.01):
        pytest.fail("the lock was taken twice")


def test_an_error_inside_releases_it(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with pytest.raises(ZeroDivisionError), WriteLock(path):
        _ = 1 / 0
    with WriteLock(path, 0.01):
        pass


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_shares_no_lock(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    with WriteLock(path):
        child = os.fork()
        if child == 0:
            try:
                with WriteLock(path, 0.01):
                    os._exit(1)
            except Busy:
                os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_lock_file_that_was_replaced_is_opened_anew(tmp_path: Path) -> None:
    path = tmp_path / ".lock"
    mine = WriteLock(path, 0.01)
    with mine:
        pass
    path.unlink()
    with WriteLock(path, 0.01), pytest.raises(Busy), mine:
        pytest.fail("two writers met at different files")


def test_a_lock_is_used_again_and_again(tmp_path: Path) -> None:
    mine = WriteLock(tmp_path / ".lock", 0.01)
    for _ in range(3):
        with mine, pytest.raises(Busy), WriteLock(tmp_path / ".lock", 0):
            pytest.fail("the lock was taken twice")
    mine.close()
    with mine:
        pass


def test_a_missing_folder_and_a_link_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused) as caught, WriteLock(tmp_path / "gone" / ".lock"):
        pytest.fail("there is no folder")
    assert caught.value.code == "E_NO_WORKSPACE"
    link = tmp_path / ".lock"
    link.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused) as caught, WriteLock(link):
        pytest.fail("a link was followed")
    assert caught.value.code == "E_NOT_REGULAR"
    assert not (tmp_path / "elsewhere").exists()
