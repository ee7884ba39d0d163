"""A reviewer's program under supervision: every end, and nothing left behind (Impasse §9)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path

import pytest

from support.processes import assert_gone
from troth.backends.protocol import ENDS
from troth.backends.supervise import CAPTURE_BYTES, Supervised, supervise


def run(code: str, tmp_path: Path, fed: bytes = b"", **limits: float) -> Supervised:
    environment = {"PATH": os.environ["PATH"], "PLACE": str(tmp_path)}
    return supervise([sys.executable, "-I", "-S", "-c", code], fed, cwd=tmp_path, environment=environment, **limits)


def test_a_program_ends_by_itself(tmp_path: Path) -> None:
    done = run("import sys; print(sys.stdin.read()[::-1]); print('on the side', file=sys.stderr)", tmp_path, b"abc")
    assert (done.end, done.exit, done.stdout, done.stderr) == ("completed", 0, b"cba\n", b"on the side\n")
    assert (done.sent, done.received, done.cut, done.held) == (3, 4 + 12, False, False)


def test_a_failure_is_completed_too(tmp_path: Path) -> None:
    done = run("raise SystemExit(3)", tmp_path)
    assert (done.end, done.exit) == ("completed", 3)
    done = run("import os; os.kill(os.getpid(), 9)", tmp_path)
    assert (done.end, done.exit) == ("completed", -9)


def test_a_large_input_and_a_large_output_do_not_wait_for_each_other(tmp_path: Path) -> None:
    code = "import sys\nfor line in sys.stdin.buffer: sys.stdout.buffer.write(line)"
    fed = b"x" * 99 + b"\n"
    done = run(code, tmp_path, fed * 30_000)
    assert done.end == "completed"
    assert done.stdout == fed * 30_000
    assert done.sent == 3_000_000


def test_who_reads_no_input_still_ends(tmp_path: Path) -> None:
    done = run("print('done')", tmp_path, b"x" * 3_000_000)
    assert (done.end, done.exit, done.stdout) == ("completed", 0, b"done\n")
    assert done.sent < 3_000_000


def test_a_flood_is_drained_and_only_its_beginning_kept(tmp_path: Path) -> None:
    code = "import os\nb = b'0123456789abcdef' * 4096\nfor _ in range(800): os.write(1, b)\nos.write(2, b)"
    done = run(code, tmp_path)
    assert (done.end, done.exit, done.cut) == ("completed", 0, True)
    assert done.stdout == (b"0123456789abcdef" * 500_000)[:CAPTURE_BYTES]
    assert done.received == 801 * 65_536


@pytest.mark.parametrize(
    ("limits", "end"), [({"wall": 1.0, "idle": 9.0}, "wall_timeout"), ({"wall": 9.0, "idle": 1.0}, "idle_timeout")]
)
def test_a_program_that_hangs_is_ended(tmp_path: Path, limits: dict[str, float], end: str) -> None:
    done = run("print('begun', flush=True)\nimport time; time.sleep(60)", tmp_path, **limits)
    assert (done.end, done.exit, done.stdout) == (end, None, b"begun\n")
    assert end in ENDS


def test_who_goes_on_speaking_is_not_idle(tmp_path: Path) -> None:
    code = "import time\nfor _ in range(12): print('.', flush=True); time.sleep(0.2)"
    done = run(code, tmp_path, idle=2.0, wall=20.0)
    assert (done.end, done.exit) == ("completed", 0)


def test_a_term_handler_may_put_its_house_in_order(tmp_path: Path) -> None:
    code = """
import os, pathlib, signal, sys, time
place = pathlib.Path(os.environ["PLACE"])
def leave(*_):
    (place / "tidy").write_text("yes")
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
print("ready", flush=True)
time.sleep(60)
"""
    done = run(code, tmp_path, wall=1.0)
    assert done.end == "wall_timeout"
    assert (tmp_path / "tidy").read_text() == "yes"


def test_who_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    code = """
import os, pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(os.environ["PLACE"], "pid").write_text(str(os.getpid()))
time.sleep(60)
"""
    done = run(code, tmp_path, wall=1.5, grace=0.2)
    assert done.end == "wall_timeout"
    assert_gone(int((tmp_path / "pid").read_text()))


GRANDCHILD = """
import os, pathlib, signal, subprocess, sys, time
code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, start_new_session=ESCAPES)
child.stdout.readline()
pathlib.Path(os.environ["PLACE"], "pid").write_text(str(child.pid))
print("answer", flush=True)
"""


def test_a_grandchild_does_not_survive_a_clean_exit(tmp_path: Path) -> None:
    done = run(GRANDCHILD.replace("ESCAPES", "False"), tmp_path)
    assert (done.end, done.exit, done.stdout, done.held) == ("completed", 0, b"answer\n", False)
    assert_gone(int((tmp_path / "pid").read_text()))


def test_a_grandchild_does_not_survive_a_timeout(tmp_path: Path) -> None:
    code = GRANDCHILD.replace("ESCAPES", "False") + "time.sleep(60)"
    done = run(code, tmp_path, wall=1.5, grace=0.3)
    assert done.end == "wall_timeout"
    assert_gone(int((tmp_path / "pid").read_text()))


def test_who_left_the_group_is_not_waited_for_and_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troth.backends.supervise.REAP_SECONDS", 0.5)
    code = """
import os, pathlib, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
pathlib.Path(os.environ["PLACE"], "pid").write_text(str(child.pid))
print("answer", flush=True)
"""
    done = run(code, tmp_path)
    pid = int((tmp_path / "pid").read_text())
    try:
        assert (done.end, done.exit, done.stdout, done.held) == ("completed", 0, b"answer\n", True)
        os.kill(pid, 0)
    finally:
        os.kill(pid, signal.SIGKILL)


def test_what_cannot_be_killed_is_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troth.backends.supervise.REAP_SECONDS", 0.2)
    monkeypatch.setattr("troth.backends.supervise._others_alive", lambda group: True)
    done = run("pass", tmp_path)
    assert (done.end, done.exit) == ("termination_failed", None)


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    done = supervise([str(tmp_path / "none")], b"", cwd=tmp_path, environment={})
    assert (done.end, done.exit) == ("spawn_error", None)
    assert done.why == "No such file or directory"


def test_it_gets_the_environment_it_is_given_and_a_session_of_its_own(tmp_path: Path) -> None:
    code = "import os; print(os.getpid() == os.getsid(0), sorted(os.environ))"
    done = supervise([sys.executable, "-c", code], b"", cwd=tmp_path, environment={"ONLY": "this", "LC_ALL": "C"})
    assert done.stdout == b"True ['LC_ALL', 'ONLY']\n"


def test_an_interruption_leaves_nothing_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written, real, interrupted = tmp_path / "pid", time.sleep, threading.Event()

    def sleep(seconds: float) -> None:
        if not interrupted.is_set() and written.exists() and written.read_text():
            interrupted.set()
            raise KeyboardInterrupt
        real(seconds)

    monkeypatch.setattr("troth.backends.supervise.time", types.SimpleNamespace(monotonic=time.monotonic, sleep=sleep))
    code = "import os, time\nopen(os.environ['PLACE'] + '/pid', 'w').write(str(os.getpid()))\ntime.sleep(60)"
    with pytest.raises(KeyboardInterrupt):
        run(code, tmp_path)
    assert_gone(int(written.read_text()))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_it_ends_with_us_when_we_are_told_to_end(tmp_path: Path, number: signal.Signals) -> None:
    inner = "import os, time; print(os.getpid(), file=open('pid', 'w'), flush=True); time.sleep(60)"
    code = f"""
import sys
from pathlib import Path
from troth.backends.supervise import supervise
supervise([sys.executable, "-c", {inner!r}], b"", cwd=Path.cwd(), environment={{}})
"""
    ours = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, stderr=subprocess.DEVNULL)
    written = tmp_path / "pid"
    until = time.monotonic() + 30
    while not (written.exists() and written.read_text().endswith("\n")) and time.monotonic() < until:
        time.sleep(0.02)
    ours.send_signal(number)
    assert ours.wait(30) != 0
    assert_gone(int(written.read_text()))


def test_no_thread_and_no_descriptor_stays(tmp_path: Path) -> None:
    def open_now() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    run("print(1)", tmp_path)
    before, threads = open_now(), threading.active_count()
    for _ in range(5):
        run("print(1)", tmp_path, b"x" * 100_000)
        run("import time; time.sleep(9)", tmp_path, wall=0.05, grace=0.5)
    assert (open_now(), threading.active_count()) == (before, threads)
