"""A writer killed around each system call, failing disks and short writes: what was acknowledged is there."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.ledgers import capture, environment, fresh
from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.ledger.genesis_event import event_of
from troth.stores.importing import read_v1
from troth.stores.jsonl import JsonlStore

WORKER = Path(__file__).with_name("worker.py")
FRAGMENT = b'{"id":"mem_half","op":"capt'

CHANGING = frozenset(
    {"openat", "flock", "write", "fsync", "fdatasync", "ftruncate", "rename", "link", "linkat", "mkdir", "unlink"}
)
"""Calls that change what is on the disk or who may; around these a writer is killed in every run of the tests."""

LOOKING = frozenset({"read", "pread64", "lseek", "newfstatat", "fstat", "lstat", "close"})
"""The rest of what an append does; killed around these too in the slow run."""

_CALL = re.compile(r"^(?:\d+ +)?(\w+)\(")


def _strace_works() -> bool:
    if shutil.which("strace") is None:
        return False
    probe = ["strace", "-f", "--seccomp-bpf", "-e", "trace=write", "-o", "/dev/null", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


needs_strace = pytest.mark.skipif(not _strace_works(), reason="needs strace and leave to trace")


@dataclass(frozen=True)
class Ended:
    """How a worker ended: what it said, and whether it was killed."""

    said: list[object]
    killed: bool
    told: str = ""

    @property
    def acked(self) -> list[str]:
        """The ids it acknowledged."""
        return [line["ack"] for line in self.said if isinstance(line, dict) and "ack" in line]


def _run(words: list[str], *strace: str) -> Ended:
    # Not with --seccomp-bpf, under which strace 6.1 injects errors but delivers no signals.
    prefix = ["strace", "-f", *strace] if strace else []
    done = subprocess.run(
        [*prefix, sys.executable, str(WORKER), *words],
        capture_output=True,
        env=environment(PYTHONHASHSEED="0", PYTHONDONTWRITEBYTECODE="1"),
        check=False,
        timeout=60,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    return Ended(said, done.returncode in (-9, 137), done.stderr.decode(errors="replace"))


def _calls(words: list[str], names: frozenset[str], log: Path) -> list[tuple[str, int]]:
    """Return (call, how many of that name since the process began) between `begin` and the last word."""
    ended = _run(words, "-o", str(log), "-e", f"trace={','.join(sorted(CHANGING | LOOKING))}")
    assert len(ended.said) == 2
    counts: Counter[str] = Counter()
    found: list[tuple[str, int]] = []
    inside = False
    for line in log.read_text(errors="replace").splitlines():
        match = _CALL.match(line)
        if match is None:
            continue
        counts[match[1]] += 1
        spoken = match[1] == "write" and 'write(1, "' in line
        if inside and match[1] in names:
            found.append((match[1], counts[match[1]]))
        if spoken:
            if inside:
                return found
            inside = True
    raise AssertionError("the worker said nothing")


def _killing(name: str, number: int) -> tuple[str, ...]:
    return ("-o", "/dev/null", "-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={number}")


def _check_append(root: Path, before: bytes, acked: list[str]) -> None:
    """The old rows stand first, all that was acknowledged is there, and the next append works."""
    ledger = root / ".mentu" / "ledger.jsonl"
    assert ledger.read_bytes().startswith(before)
    store = JsonlStore.open(root)
    acked.append(capture(store, "next"))
    ids = [row.id for row in store.read().rows]
    assert store.verify().ok
    assert len(ids) == len(set(ids))
    assert set(acked) <= set(ids)


@needs_strace
@pytest.mark.parametrize(
    "names", [CHANGING, pytest.param(LOOKING, marks=pytest.mark.slow)], ids=["changing", "looking"]
)
def test_a_writer_killed_around_each_call_of_an_append(tmp_path: Path, names: frozenset[str]) -> None:
    root = tmp_path / "space"
    store = fresh(root)
    ledger = store.ledger_file
    acked = [capture(store)]

    def tear() -> bytes:
        whole = ledger.read_bytes()
        with ledger.open("ab") as file:
            file.write(FRAGMENT)
        return whole

    tear()
    words = ["once", str(root), "body"]
    calls = _calls(words, names, tmp_path / "trace")
    killed = 0
    for name, number in calls:
        before = tear()
        ended = _run(words, *_killing(name, number))
        killed += ended.killed
        acked += ended.acked
        _check_append(root, before, acked)
    # Every call was reached, the last word (`write` to stdout) included, and each time the writer died there.
    assert killed == len(calls)
    assert names is LOOKING or {"openat", "flock", "write", "fsync", "ftruncate"} <= {name for name, _ in calls}
    aside = [path.read_bytes() for path in root.glob(".mentu/torn-*")]
    assert aside.count(FRAGMENT) >= len(calls)
    assert set(aside) <= {FRAGMENT[:length] for length in range(len(FRAGMENT) + 1)}


@needs_strace
def test_a_writer_killed_around_each_call_of_a_group_leaves_the_first_of_them_or_none(tmp_path: Path) -> None:
    root = tmp_path / "space"
    store = fresh(root)
    acked = [capture(store)]
    key = root / ".mentu" / "genesis.key"

    def change(turn: int) -> bytes:
        key.write_text(f"identity: {{name: n, owner: human:reviewer}} # {turn}\n")
        whole = store.ledger_file.read_bytes()
        with store.ledger_file.open("ab") as file:
            file.write(FRAGMENT)
        return whole

    change(0)
    words = ["group", str(root), "body"]
    calls = _calls(words, CHANGING, tmp_path / "trace")
    for turn, (name, number) in enumerate(calls, 1):
        before = change(turn)
        ended = _run([*words[:2], f"turn {turn}"], *_killing(name, number))
        assert ended.killed
        acked += [one for group in ended.acked for one in group]
        _check_append(root, before, acked)
        bodies = [row.value["payload"]["body"] for row in store.read().rows]
        mine = [body for body in bodies if body.startswith(f"turn {turn} ")]
        assert mine == [f"turn {turn} {n}" for n in range(3)][: len(mine)]
        assert len(mine) in (0, 3), "one call writes them"
    assert {"write", "fsync", "ftruncate"} <= {name for name, _ in calls}


@needs_strace
@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
def test_a_group_that_a_disk_does_not_take_is_not_there(tmp_path: Path, error: str) -> None:
    root = tmp_path / "space"
    store = fresh(root)
    capture(store)
    before = store.ledger_file.read_bytes()
    number = _ledger_call(root, "write", tmp_path / "log")
    store.ledger_file.write_bytes(before)
    ended = _run(["group", str(root), "b"], "-e", "trace=write", "-e", f"inject=write:error={error}:when={number}")
    assert ended.acked == []
    assert store.ledger_file.read_bytes() == before
    assert len(_run(["group", str(root), "b"]).acked[0]) == 3
    assert JsonlStore.open(root).verify().verified == 4


@needs_strace
def test_a_writer_killed_around_each_call_of_an_append_under_a_new_key(tmp_path: Path) -> None:
    root = tmp_path / "space"
    store = fresh(root)
    acked = [capture(store)]
    key = root / ".mentu" / "genesis.key"

    def change(turn: int) -> bytes:
        key.write_text(f"identity: {{name: n, owner: human:reviewer}} # {turn}\n")
        return store.ledger_file.read_bytes()

    change(0)
    words = ["once", str(root), "body"]
    calls = _calls(words, frozenset({"flock", "write", "fsync"}), tmp_path / "trace")
    for turn, (name, number) in enumerate(calls, 1):
        before = change(turn)
        ended = _run(words, *_killing(name, number))
        acked += ended.acked
        _check_append(root, before, acked)
        # The event of this key stands once, whether the row behind it came with it or not.
        told = [found.sha256 for row in store.read().rows if (found := event_of(row.value)) is not None]
        assert told.count(sha256_hex(key.read_bytes())) == 1
        assert told[-1] == sha256_hex(key.read_bytes())
    assert {"write", "fsync"} <= {name for name, _ in calls}


@needs_strace
def test_an_init_killed_around_each_call_can_be_run_again(tmp_path: Path) -> None:
    calls = _calls(["init", str(_folder(tmp_path / "learn"))], CHANGING, tmp_path / "trace")
    assert {"mkdir", "link", "fsync"} <= {name for name, _ in calls} | {name.removesuffix("at") for name, _ in calls}
    for turn, (name, number) in enumerate(calls):
        root = _folder(tmp_path / f"space{turn}")
        assert _run(["init", str(root)], *_killing(name, number)).killed
        mentu = root / ".mentu"
        # Whatever stands there stands there whole.
        if (mentu / "AGENTS.md").exists():
            assert (mentu / "AGENTS.md").read_text() == "text\n"
        if (mentu / "ledger.jsonl").exists():
            assert {"config.yaml", "AGENTS.md", ".lock"} <= {entry.name for entry in mentu.iterdir()}
        else:
            with pytest.raises(Refused):
                JsonlStore.open(root).read()
        store = fresh(root)
        assert store.unhashed_prefix == 0
        capture(store)
        assert store.verify().ok


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


@pytest.mark.slow
@needs_strace
def test_an_import_killed_around_each_call_brings_all_rows_or_none(tmp_path: Path) -> None:
    old = tmp_path / "old.jsonl"
    row = {"op": "capture", "ts": "2020-01-01T00:00:00Z", "actor": "human:reviewer", "payload": {"body": "x"}}
    old.write_text("".join(json.dumps({"id": f"mem_{number:08d}", **row}) + "\n" for number in range(50)))
    fresh(tmp_path / "learn")
    calls = _calls(["import", str(tmp_path / "learn"), str(old)], CHANGING, tmp_path / "trace")
    for turn, (name, number) in enumerate(calls):
        root = tmp_path / f"space{turn}"
        fresh(root)
        assert _run(["import", str(root), str(old)], *_killing(name, number)).killed
        store = JsonlStore.open(root)
        rows = len(store.read().rows)
        assert rows in (0, 50)
        if rows == 0:
            store.fill(read_v1(old))
        assert store.verify().verified == 50


# Disks that fail ------------------------------------------------------------------------------------------------


def _ledger_call(root: Path, name: str, log: Path) -> int:
    """Return which call of that name is the one on the ledger, for an append to a sound file."""
    words = ["once", str(root), "body"]
    assert _run(words, "-y", "-o", str(log), "-e", f"trace={name}").acked
    lines = [line for line in log.read_text(errors="replace").splitlines() if _CALL.match(line)]
    return next(number for number, line in enumerate(lines, 1) if f"<{root}/.mentu/ledger.jsonl>" in line)


@needs_strace
@pytest.mark.parametrize(
    ("name", "error", "undone"),
    [("write", "ENOSPC", True), ("write", "EIO", True), ("fsync", "EIO", True), ("fsync", "EIO", False)],
)
def test_a_failing_disk_is_told_and_the_next_append_works(tmp_path: Path, name: str, error: str, undone: bool) -> None:
    root = tmp_path / "space"
    store = fresh(root)
    acked = [capture(store)]
    number = _ledger_call(root, name, tmp_path / "trace")
    before = store.ledger_file.read_bytes()
    traced = name if undone else f"{name},ftruncate"
    faults = ["-e", f"trace={traced}", "-e", f"inject={name}:error={error}:when={number}"]
    if not undone:
        faults += ["-e", "inject=ftruncate:error=EIO"]
    ended = _run(["once", str(root), "lost"], "-o", "/dev/null", *faults)
    assert (ended.acked, ended.killed) == ([], False)
    if undone:
        assert store.ledger_file.read_bytes() == before
    _check_append(root, before, acked)


def test_a_short_write_is_taken_back(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    store = fresh(tmp_path)
    capture(store)
    before = store.ledger_file.read_bytes()
    ended = _run(["limited", str(tmp_path), "100"])
    refusal = ended.said[0]
    assert isinstance(refusal, dict)
    assert refusal["code"] == "E_WRITE_FAILED"
    after = store.ledger_file.read_bytes()
    assert after.startswith(before)
    assert [row.id for row in store.read().rows][1:] == ended.acked
    assert store.verify().ok
    assert not list(tmp_path.glob(".mentu/torn-*"))


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    where = tmp_path / "disk"
    where.mkdir()
    mount = shutil.which("mount")
    if mount is None or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("needs root to mount a small file system")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(where)], capture_output=True, check=False
    )
    if made.returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        yield where
    finally:
        subprocess.run(["umount", str(where)], check=True)


def test_a_full_disk(tiny_disk: Path) -> None:
    store = fresh(tiny_disk)
    acked: list[str] = []
    with pytest.raises(Refused) as caught:
        acked.extend(capture(store, f"{number} " + "x" * 700) for number in range(1000))
    assert caught.value.code == "E_WRITE_FAILED"
    assert "No space left" in str(caught.value)
    assert acked
    assert [row.id for row in store.read().rows] == acked
    assert store.verify().ok
    other = JsonlStore.open(tiny_disk)
    for attempt in (store, other):
        with pytest.raises(Refused):
            capture(attempt, "x" * 9000)
    (tiny_disk / ".mentu" / "AGENTS.md").unlink()
    acked.append(capture(store, "room again"))
    assert [row.id for row in other.read().rows] == acked
    store.close()
    other.close()


@needs_strace
def test_the_row_is_synced_before_the_answer(tmp_path: Path) -> None:
    root = tmp_path / "space"
    fresh(root)
    log = tmp_path / "trace"
    command = [sys.executable, "-m", "troth", "capture", "seen", "--as", "human:reviewer"]
    done = subprocess.run(
        ["strace", "-f", "--seccomp-bpf", "-y", "-o", str(log), "-e", "trace=write,fsync,fdatasync", *command],
        cwd=root,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    identifier = done.stdout.split()[0]
    lines = log.read_text(errors="replace").splitlines()
    ledger = f"<{root}/.mentu/ledger.jsonl>"
    written = [at for at, line in enumerate(lines) if "write(" in line and ledger in line]
    synced = [at for at, line in enumerate(lines) if "sync(" in line and ledger in line and line.endswith(" = 0")]
    answered = [at for at, line in enumerate(lines) if "write(1<" in line and identifier in line]
    assert len(written) == 1
    assert written[0] < synced[0] < answered[0]
