"""Limits on a graded command: what passes one is ended and told, what stays below is left alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

import troth
from support.observing import needs_observer
from troth.observer import confine
from troth.observer.commands import Bench, CommandRun, run_command
from troth.observer.contract_source import RunLimits
from troth.observer.groups import Ceiling, Group, make_group

pytestmark = [needs_observer, pytest.mark.observer]

MIB = 1 << 20
ORDINARY = 54321
LIMITS = RunLimits(
    seconds=30, memory_bytes=200 * MIB, processes=40, output_bytes=MIB // 4, file_bytes=16 * MIB
)  # fmt: skip

Run = Callable[[str], CommandRun]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run a Python program on an empty copy within ``LIMITS``."""

    def go(program: str) -> CommandRun:
        copy = tmp_path / f"copy{len(os.listdir(tmp_path))}"
        copy.mkdir()
        return run_command(Bench(inside="/work/place", limits=LIMITS), copy, ["python3", "-S", "-c", program])

    return go


CHILD = "import subprocess, sys\nsubprocess.run([sys.executable, '-S', '-c', {!r}])\n"
HOG = "held = bytearray(400 << 20)"
FILES = (
    "kept = []\n"
    "for at in range({}):\n"
    "    kept.append(open(f'{}{{at}}', 'wb'))\n"
    "    kept[-1].write(bytes(12 << 20)); kept[-1].flush()\n"
    "    {}\n"
    "import time; time.sleep({})\n"
)
FORKS = (
    "import os, time\nfor _ in range({}):\n    if os.fork() == 0:\n"
    "        {}\n        time.sleep({})\n        os._exit(0)\n"
    "time.sleep({})\n"
)
MECHANISMS = {
    # name: the program that passes a limit, why it is ended, the same that stays below
    "fork bomb": ("import os\nwhile True: os.fork()", "too_many_processes", FORKS.format(20, "pass", 0.2, 0.3)),
    "each in a session of its own": (
        FORKS.format(60, "os.setsid()", 20, 20), "too_many_processes", FORKS.format(20, "os.setsid()", 0.2, 0.3),
    ),
    "output": (
        "import sys\nwhile True: sys.stdout.write('x' * 65536)", "too_much_output", "print('x' * (2 << 20))",
    ),
    "many files": (FILES.format(12, "f", "pass", 20), "too_much_written", FILES.format(3, "f", "pass", 0.5)),
    "files without a name": (
        FILES.format(12, "f", "import os; os.unlink(f'f{at}')", 20), "too_much_written",
        FILES.format(3, "f", "import os; os.unlink(f'f{at}')", 0.5),
    ),
    "files in memory": (
        FILES.format(9, "/dev/shm/f", "pass", 20), "too_much_written", FILES.format(3, "/dev/shm/f", "pass", 0.5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MECHANISMS)
def test_what_passes_a_limit_is_ended_and_what_stays_below_is_not(run: Run, name: str) -> None:
    beyond, why, below = MECHANISMS[name]
    ended = run(beyond)
    assert (ended.ended, ended.ended_itself, ended.passed) == (why, False, False)
    assert ended.seconds < LIMITS.seconds
    left_alone = run(below)
    assert (left_alone.ended, left_alone.exit) == (None, 0), left_alone.output


@pytest.mark.parametrize("program", [HOG, CHILD.format(HOG)], ids=["itself", "a child of its"])
def test_a_memory_hog_gets_no_pass(run: Run, program: str) -> None:
    hog = run(program + "\nraise SystemExit(1)")
    assert not hog.passed
    if "control group" in hog.enforced["memory"]:
        assert hog.ended == "out_of_memory"
    assert run(program.replace("400", "60")).passed


def test_memory_is_limited_for_all_processes_together(run: Run) -> None:
    if make_group(Ceiling(MIB, 8)) is None:
        pytest.skip("no control group can be made here: memory is limited for each process by itself")
    part = "held = bytearray(60 << 20)"
    assert run(FORKS.format(8, part, 20, 20)).ended == "out_of_memory"
    assert run(FORKS.format(2, part, 0.2, 0.4)).passed


def test_without_a_group_resource_limits_hold(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confine, "make_group", lambda ceiling: None)
    monkeypatch.setattr(confine, "scopes_work", lambda: False)
    hog = run(HOG)
    assert (hog.exit, hog.ended) == (1, None)
    assert b"MemoryError" in hog.output
    assert hog.enforced["memory"] == "RLIMIT_DATA of each process"
    assert "control group" not in " ".join(hog.enforced.values())
    assert run(FORKS.format(60, "os.setsid()", 20, 20)).ended == "too_many_processes"
    assert run(HOG.replace("400", "60")).passed


def test_no_group_is_left_behind(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Group] = []

    def make(ceiling: Ceiling) -> Group | None:
        group = make_group(ceiling)
        if group is not None:
            made.append(group)
        return group

    monkeypatch.setattr(confine, "make_group", make)
    for program in ("pass", HOG, MECHANISMS["fork bomb"][0]):
        run(program)
    if not made:
        pytest.skip("no control group can be made here")
    assert len(made) == 3
    assert [folder for group in made for _, folder in group._folders if folder.exists()] == []


def test_the_first_process_is_out_of_reach(run: Run) -> None:
    """Nothing inside can end it, or write to the descriptor through which it tells the program's exit."""
    told = run(
        "import os\n"
        "os.kill(1, 9)\n"
        "for number in range(3, 20):\n"
        "    try:\n"
        "        with open(f'/proc/1/fd/{number}', 'w') as file: file.write('{\"exit\": 0}\\n')\n"
        "        print('wrote', number)\n"
        "    except OSError: pass\n"
        "    try: os.write(number, b'{\"exit\": 0}\\n'); print('held', number)\n"
        "    except OSError: pass\n"
        "try: open('/proc/1/mem', 'rb'); print('read it')\n"
        "except OSError: pass\n"
        "open('/proc/self/fd/1', 'w').write('own output\\n')\n"
        "raise SystemExit(3)\n"
    )
    assert (told.exit, told.output) == (3, b"own output\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root starts programs as somebody else")
def test_an_ordinary_user_is_held_as_well() -> None:
    """A user who may make no group: resource limits hold, counted for a real unprivileged user."""
    asked = subprocess.run(["/usr/bin/python3", "-V"], capture_output=True, text=True, check=False)
    if asked.stdout.split(".")[:2] != [f"Python {sys.version_info[0]}", str(sys.version_info[1])]:
        pytest.skip("the system's own Python is another version than this one")
    place = Path("/var/tmp") / f"troth-limits-{os.getpid()}"
    try:
        shutil.copytree(Path(troth.__file__).parent, place / "troth", ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(Path(orjson.__file__).parent, place / "orjson")
        shutil.copy(Path(__file__).parent / "drive_limits.py", place)
        (place / "scratch").mkdir()
        subprocess.run(["chown", "-R", f"{ORDINARY}:{ORDINARY}", str(place)], check=True)
        done = subprocess.run(
            ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "/usr/bin/python3", "-B",
             str(place / "drive_limits.py"), str(place / "scratch")],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(place)}, cwd=place, capture_output=True, text=True,
            check=False, timeout=120,
        )  # fmt: skip
    finally:
        shutil.rmtree(place, ignore_errors=True)
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert {line[0] for line in told} == {ORDINARY}
    assert [line[1:4] for line in told] == [
        ["below", None, 0], ["memory", None, 1], ["forks", "too_many_processes", -9], ["first", None, 1],
    ]  # fmt: skip


def test_what_the_first_process_says_is_taken_by_name_and_type() -> None:
    honest = b'{"started": true}\n{"exit": 3, "left": ["sh"], "strayed": 1}\n'
    assert confine._told(honest) == {"started": True, "exit": 3, "left": ["sh"], "strayed": 1}
    deep = b'{"a":' * 5000 + b"1" + b"}" * 5000
    for bent in (b"3", b"[]", b"null", deep, b'{"exit": "3", "left": 1, "strayed": true, "more": 1}', b"\xff"):
        assert confine._told(bent) == {}
        assert confine.child_pid(bent) is None
    assert confine.child_pid(b'{"child-pid": true}\n{"child-pid": -1}\n{"child-pid": 42}') == 42
