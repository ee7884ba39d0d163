"""Readers of what this program keeps for itself where another process can write: states, memories, tables, reports.

A file of ours that somebody bent is refused like any other, and never believed in part.
"""

from __future__ import annotations

import os
import unittest.mock
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any, Final

from fuzz import seeds
from fuzz.engine import Answer, Reader
from fuzz.readers.common import asserted, folder, written


def _reading(module: Any, data: bytes) -> Any:
    """Let a module's bounded read of a file give these bytes."""
    return unittest.mock.patch.object(module, "read_regular", return_value=data)


def _run_state(data: bytes) -> None:
    from troth.airlock import runs

    with _reading(runs, data):
        state = runs.Runs(Path("/nowhere")).load("run_976e9751")
    sorted([(state.started, state.id), ("2026-01-01T00:00:00Z", "run_1")])
    asserted(all(isinstance(word, str) for word in state.argv), "words that are no texts")
    _ = state.open, state.options.items(), (state.measured or {}).get("secrets")
    if state.told:
        _ = state.told["sentence"] + "", [*state.told["lines"], *state.told["missing"]]
    if state.stop is not None:
        _ = state.stop["action"] + state.stop["reason"]


def _hook_session(data: bytes) -> None:
    from troth.airlock import hooking
    from troth.core.canonical import record_bytes

    def there(*_: str) -> Path:
        return Path("/")

    memory = hooking.Memory(Path("/"), Path("/"))
    with _reading(hooking, data), unittest.mock.patch.object(hooking.Memory, "_session", there):
        state = memory.session("s-1")
    _ = state.replans + state.commands + 1, set(state.named) | set(state.told)
    with _reading(hooking, record_bytes(asdict(state))), unittest.mock.patch.object(hooking.Memory, "_session", there):
        asserted(memory.session("s-1") == state, "what was remembered does not come back")
    if state.baseline is not None:
        sorted(state.baseline.keys() | {"a"})


def _hook_last(data: bytes) -> Answer:
    from troth.airlock import hooking

    with _reading(hooking, data):
        last = hooking.Memory(Path("/"), Path("/")).last()
    if not last:
        return "nothing"
    _ = last["stop_decision"]["action"] + last["sentence"] + last["source"] + last["tree_sha256"], last["done"].items()
    return None


def _seal(data: bytes) -> None:
    """The report of sealing beside a contract: read, asked for its tools, and held to what it is of."""
    import json

    from troth.airlock import sealed
    from troth.observer.tools import tools_of
    from troth.receipts.contract_signing import _is_about

    here = folder("sealed")
    if not (here / sealed.SEAL).exists():
        (here / sealed.SEAL).touch()
    with _reading(sealed, data):
        found = sealed.read_seal(here / sealed.CONTRACT)
    assert found is not None
    tools_of(json.loads(found))
    _is_about(found, b"{}")


def _report(data: bytes) -> Answer:
    """The totals that a run's report holds, which its claims are held against."""
    from troth.airlock import claims

    with unittest.mock.patch.object(claims, "FolderMember") as member:
        member.return_value.read.return_value = data
        found = claims._printed(Path("/nowhere"))
    _ = [printed.settled() for printed in found.values()]
    return None if found else "nothing"


def _git_lists(data: bytes) -> None:
    """What git lists of a commit, and the contents that it gives."""
    from troth.airlock import pushing

    held = seeds.unpacked(data)

    def git(_: Path, *words: str, **__: Any) -> bytes:
        return held.get("tree" if words[0] == "ls-tree" else "contents", b"")

    with unittest.mock.patch.object(pushing, "_git", git):
        pushing.committed_files(Path("/nowhere"), "HEAD")


def _witness(data: bytes) -> None:
    from troth.stores import witness

    witness._remembered(written("witness.json", data))


def _note(data: bytes) -> Answer:
    from troth.stores import remembered

    about = {"stamp": "00" * 16, "identity": "other", "made": 0}
    noted = remembered._is_noted(written("ledger.note", data), about, (1, 2, 3, 4, 5))
    return None if noted else "not_noted"


def _summary(data: bytes) -> Answer:
    """The summary of a ledger, told as `status` tells it."""
    import json

    from troth.stores import index

    def otherwise() -> Any:
        return index.Everything({}, (), {})

    path = written("summary.json", data)
    with unittest.mock.patch.object(index, "_path", return_value=path):
        found = index.load(_covered(), otherwise)
        if found is None:
            return "nothing"
        whole = found.everything()
    json.dumps([found.verification.as_json(), found.closed, len(found.live), len(whole.commitments)])
    return None


def _covered() -> Any:
    from troth.stores import index

    return index.Covered(b"ledger.jsonl", (1, 2, 3), 0, None)


def _table(data: bytes) -> Answer:
    """The table of a large ledger's state, gone through whole."""
    from troth.stores import keptstate

    kept = keptstate.opened(written("ledger.state", data), "key")
    if kept is None:
        return "nothing"
    try:
        try:
            state, _ = kept.state(), kept.chain(0)
        except keptstate.EXPECTED:  # what `recall` takes for a table that cannot be used
            return "damaged"
        for mapping in (
            state.commitments,
            state.signals,
            state.source_keys,
            state.duplicates,
            state.untold,
            state.tags,
        ):
            list(mapping.items())
        _ = list(state.anomalies), list(state.notes), list(state.cited), list(state.dismissed)
        _ = len(state.anomalies), len(state.notes)
    finally:
        kept.database.close()
    return None


@cache
def _replayed() -> Any:
    from troth.ledger.chain import ChainReader
    from troth.ledger.replay import Replay

    reader, run = ChainReader(), Replay()
    reader.feed_all([seeds.files("ledger.jsonl")[0]], run.apply)
    return run.state, reader.finish()


@contextmanager
def _cache_folder() -> Iterator[Path]:
    path = folder("cache")
    with unittest.mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(path)}):
        yield path


def _summary_seeds() -> list[bytes]:
    from troth.ledger.confidence import Trust, collect
    from troth.ledger.rows import parse_row, row_of
    from troth.stores import index
    from troth.stores.snapshot import Snapshot

    state, found = _replayed()
    lines = seeds.files("ledger.jsonl")[0].splitlines()
    rows = [row_of(number, parse_row(line)) for number, line in enumerate(lines, 1)]
    trust = Trust(collect(rows, state), state.signals)
    snapshot: Any = Snapshot(rows, state, lambda: found, lambda: trust)  # type: ignore[arg-type] # a list will do
    with _cache_folder(), unittest.mock.patch("time.time_ns", return_value=10**18):
        index.save(_covered(), index.summary_of(snapshot))
        path = index._path(b"ledger.jsonl")
        assert path is not None
        return [path.read_bytes()]


def _table_seeds() -> list[bytes]:
    from troth.stores import keptstate

    state, found = _replayed()
    path = folder("table") / "seed.state"
    with unittest.mock.patch("secrets.token_hex", lambda size: "0" * 2 * size):
        keptstate.write(path, state, keptstate.about_of("key", state, found, line=found.total, count=found.total))
    return [path.read_bytes()]


def _witness_seeds() -> list[bytes]:
    import json

    from ledger.test_checkpoint import KEY

    return [
        json.dumps({"version": 1, "keys": [str(KEY)], "checkpoint": note.decode()}).encode() for note in seeds.notes()
    ]


def _of_runs(name: str) -> Callable[[], list[bytes]]:
    return lambda: seeds.files(f"*/{name}")


_SESSION: Final = (
    b'{"baseline":{"a.py":"00","tests/b.py":"11"},"commands":2,"named":["a.py"],"replans":1,"told":["tests"]}',
    b'{"baseline":null,"commands":0,"named":[],"replans":0,"told":[]}',
)
_LAST: Final = (
    b'{"schema_version":"troth-hook-state/v1","source":"claude-code","tree_sha256":"00","stop_decision":{"action":"continue",'
    b'"reason":"x","rule":1},"done":{"decision":"supported"},"sentence":"All holds."}',
)
_PRINTED: Final = b'{"printed": {"evt_1": [{"passed": 3, "failed": 0}, {"run": 4}], "evt_2": []}, "grade": {}}'
_LISTED: Final = (("100644", "1", "a.py"), ("100755", "2", "b/c d.sh"), ("120000", "3", "link"))
_GIT: Final = {
    "tree": "".join(f"{mode} blob {blob * 40}\t{name}\0" for mode, blob, name in _LISTED).encode(),
    "contents": b"1" * 40 + b" blob 5\nx = 1\n" + b"2" * 40 + b" blob 3\nls\n\n",
}
_NOTED: Final = (b'{"stamp":"' + b"00" * 16 + b'","identity":"(1, 2, 3, 4, 5)","made":9000000000000}',)

READERS: Final = (
    Reader("kept/run-state", _run_state, _of_runs("run.json"), ("troth.airlock.runs",)),
    Reader("kept/hook-session", _hook_session, lambda: _SESSION, ("troth.airlock.hooking",)),
    Reader("kept/hook-last", _hook_last, lambda: _LAST, ("troth.airlock.hooking",)),
    Reader("kept/seal-report", _seal, _of_runs("seal.json"),
           ("troth.airlock.sealed", "troth.observer.tools", "troth.receipts.contract_signing")),
    Reader("kept/run-report", _report, lambda: [_PRINTED, *_of_runs("report.json")()], ("troth.airlock.claims",)),
    Reader("hooks/git-lists", _git_lists, lambda: [seeds.joined(_GIT)], ("troth.airlock.pushing",),
           (b"\0", b"\t", b" blob ", b" missing\n", b"100644", b"120000")),
    Reader("kept/witness", _witness, _witness_seeds, ("troth.stores.witness", "troth.core.notes")),
    Reader("kept/ledger-note", _note, lambda: _NOTED, ("troth.stores.remembered",)),
    Reader("kept/ledger-summary", _summary, _summary_seeds, ("troth.stores.index",), few=60),
    Reader("kept/ledger-table", _table, _table_seeds, ("troth.stores.keptstate", "troth.stores.kept"), few=60),
)  # fmt: skip
