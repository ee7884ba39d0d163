"""What an append in an open store asks of the system: counted, so that no further call comes in unseen."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from stores.test_crash import needs_strace
from support.ledgers import environment, fresh

SCRIPT = """
import os, sys
from troth.ledger.operations import Candidate
from troth.stores.jsonl import JsonlStore

store = JsonlStore.open(sys.argv[1])
asked = Candidate("capture", "agent:worker", {"body": "text", "kind": "evidence"})
for _ in range(3):
    store.append(asked)
if sys.argv[2] == "replaced":
    os.rename(store.lock_file, str(store.lock_file) + ".old")
os.write(1, b"begin")
store.append(asked)
os.write(1, b"done")
"""

LOOKS = frozenset({"stat", "lstat", "fstat", "newfstatat", "statx"})
"""What a look at a file is called differs from system to system."""

MEMORY = frozenset({"brk", "mmap", "munmap", "mremap", "madvise"})

STEADY = Counter(
    {
        "getpid": 1,  # is this still the process that opened the lock?
        "flock": 2,
        "look": 4,  # at the lock file, the ledger and the place of the key; at what was written
        "getrandom": 1,  # for the id
        "write": 1,
        "fsync": 1,
    }
)


def calls_of_an_append(root: Path, log: Path, mode: str) -> Counter[str]:
    """Return the calls of the fourth append of a process."""
    done = subprocess.run(
        ["strace", "-o", str(log), sys.executable, "-c", SCRIPT, str(root), mode],
        capture_output=True,
        env=environment(),
        check=True,
        timeout=60,
    )
    assert done.stdout == b"begindone"
    text = log.read_text(errors="replace")
    inside = text[text.index('write(1, "begin"') : text.index('write(1, "done"')].splitlines()[1:]
    names = [found[1] for line in inside if (found := re.match(r"(\w+)\(", line))]
    return Counter("look" if name in LOOKS else name for name in names if name not in MEMORY)


@needs_strace
def test_an_append_in_an_open_store_makes_ten_calls(tmp_path: Path) -> None:
    fresh(tmp_path / "space").close()
    assert calls_of_an_append(tmp_path / "space", tmp_path / "log", "steady") == STEADY


@needs_strace
@pytest.mark.slow
def test_a_lock_file_that_was_moved_away_costs_more(tmp_path: Path) -> None:
    """The count tells a difference: the lock is opened anew where writers that come later meet."""
    fresh(tmp_path / "space").close()
    found = calls_of_an_append(tmp_path / "space", tmp_path / "log", "replaced")
    assert found["openat"] == 1
    assert found > STEADY
