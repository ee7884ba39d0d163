"""Programs drawn at random that fork, ignore, stop, flood and close: each ends, and nothing of them is left."""

from __future__ import annotations

import os
import random
import sys
from collections import Counter
from pathlib import Path

import pytest

from troth.backends.protocol import ENDS
from troth.backends.supervise import CAPTURE_BYTES, supervise

pytestmark = pytest.mark.slow

STEPS = {
    "forks": "os.fork() or children.append(1)",
    "forks a tree": "os.fork(); os.fork()",
    "orphans": "(os.fork() or (os.fork() or time.sleep(60)) or os._exit(0))",
    "ignores": "[signal.signal(n, signal.SIG_IGN) for n in (15, 1, 2, 13)]",
    "stops itself": "os.kill(os.getpid(), signal.SIGSTOP)",
    "stops a child": "(lambda p: os.kill(p, signal.SIGSTOP) if p else time.sleep(60))(os.fork())",
    "floods": "[os.write(1, b'x' * 65536) for _ in range(200)]",
    "floods stderr": "[os.write(2, b'x' * 65536) for _ in range(200)]",
    "closes outputs": "os.close(1), os.close(2)",
    "closes its input": "os.close(0)",
    "reads": "sys.stdin.buffer.read(1 << 20)",
    "sleeps": "time.sleep(60)",
    "dies": "os.kill(os.getpid(), random.choice([9, 11, 15, 6]))",
    "exits": "os._exit(random.randrange(3))",
    "a thread": "__import__('threading').Thread(target=time.sleep, args=(60,)).start()",
    "a new program": "os.execv(sys.executable, [sys.executable, '-IS', '-c', 'import time; time.sleep(60)'])",
}
"""What a program may do next."""


def marked(marker: str) -> list[int]:
    """Return the processes that live with the marker in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (entry / "environ").read_bytes():
                state = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0]
                if state not in (b"Z", b"X"):
                    found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_nothing_of_any_program_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(27)
    ends: Counter[str] = Counter()
    for number in range(120):
        steps = [chance.choice(list(STEPS)) for _ in range(chance.randint(1, 6))]
        code = "import os, random, signal, sys, time\nchildren = []\n" + "\n".join(STEPS[step] for step in steps)
        marker = f"TROTH_TRIAL={os.getpid()}-{number}-"
        name, _, value = marker.partition("=")
        done = supervise(
            [sys.executable, "-IS", "-c", code],
            b"y" * chance.choice([0, 10, 3_000_000]),
            cwd=tmp_path,
            environment={name: value},
            wall=chance.choice([0.3, 0.6]),
            idle=chance.choice([0.2, 5.0]),
            grace=chance.choice([0.05, 0.3]),
        )
        assert marked(marker) == [], steps
        assert len(done.stdout) <= CAPTURE_BYTES
        assert len(done.stderr) <= CAPTURE_BYTES
        assert done.end in ENDS
        assert done.end != "termination_failed", steps
        assert not done.held, steps
        assert (done.exit is None) is (done.end != "completed")
        ends[done.end] += 1
    with capsys.disabled():
        print(f"\nprograms under supervision: {dict(ends)}")
    assert {"completed", "wall_timeout", "idle_timeout"} <= set(ends)


def test_the_search_for_what_is_left_can_find_something(tmp_path: Path) -> None:
    import subprocess

    marker = f"TROTH_TRIAL={os.getpid()}-twin-"
    child = subprocess.Popen(
        [sys.executable, "-IS", "-c", "print(1, flush=True); import time; time.sleep(60)"],
        env=dict([marker.split("=", 1)]),
        stdout=subprocess.PIPE,
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        assert marked(marker) == [child.pid]
    finally:
        child.kill()
        child.communicate()
    assert marked(marker) == []
