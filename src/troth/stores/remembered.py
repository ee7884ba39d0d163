"""What a large, sound ledger file replayed to, kept in the user's cache folder for the next process.

Two files. The *table* (:mod:`troth.stores.keptstate`) holds the state that the ledger's beginning came to, and the
digest of that beginning. The *note* says which identity the file had when somebody last had read it all. The table is
believed while the identity is what the note or the table says, or while the ledger still begins with those bytes; the
rows behind it are verified and replayed as ever. Deleting both changes nothing but time, and ``troth verify`` never
uses them. What an unchanged identity cannot show is said in :mod:`troth.stores.index`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import orjson

from troth.stores import index, keptstate
from troth.stores import memory as memories
from troth.stores.durable import O_CLOEXEC, read_regular
from troth.stores.keptstate import EXPECTED, Kept, Unusable
from troth.stores.memory import Identity, Memory, identity

_NOTE_BYTES: Final = 1 << 16
_CHUNK: Final = 1 << 20


def recall(ledger: Path, fd: int, found: Identity, unhashed_prefix: int | None) -> Memory | None:
    """Return what is remembered of the ledger's beginning, ``None`` when there is nothing or it does not hold."""
    path = keptstate.place_of(os.fsencode(ledger))
    if path is None or found[2] < memories.REMEMBERED_BYTES:
        return None
    kept = keptstate.opened(path, _key(ledger, unhashed_prefix))
    if kept is None:
        return None
    with contextlib.suppress(*EXPECTED):
        about = kept.about
        if 0 < about["size"] <= found[2]:
            noted = _is_noted(_note_of(path), about, found)
            if noted or _digest(fd, about["size"]) == about["digest"]:
                # What was believed by its bytes is worth a note of its identity.
                return _memory_of(kept, unhashed_prefix, found, noted=noted)
    kept.database.close()
    return None


def keep(ledger: Path, fd: int, memory: Memory, unhashed_prefix: int | None) -> None:
    """Keep what a memory knows: in a note, or in another table when the one it began with covers too little.

    Nothing is kept of a ledger that is small, unsound, or not as the memory left it. An open ledger is noted again when
    it has grown as much again as at the last time, so that many rows cost little.
    """
    path = keptstate.place_of(os.fsencode(ledger))
    if path is None or memory.identity is None or memory.size != memory.identity[2]:
        return
    kept = memory.kept
    known = 0 if kept is None else kept.count
    memory.due = max(memory.count + 1, 2 * memory.count - max(known, memory.begun))
    with contextlib.suppress(*EXPECTED):
        if not memory.verification(fd).ok:
            return
        if kept is None or memory.count >= keptstate.next_due(kept.count):
            about = _about(ledger, fd, memory, unhashed_prefix)
            keptstate.write(path, memory.replay.state, about)
            memory.due = keptstate.next_due(memory.count)
        else:
            _write_note(_note_of(path), kept.stamp, memory.identity)


def _key(ledger: Path, unhashed_prefix: int | None) -> str:
    return repr((os.fsencode(ledger), unhashed_prefix))


def _about(ledger: Path, fd: int, memory: Memory, unhashed_prefix: int | None) -> dict[str, Any]:
    about = keptstate.about_of(
        _key(ledger, unhashed_prefix),
        memory.replay.state,
        memory.verification(fd),
        line=memory.line,
        count=memory.count,
    )
    digest = _digest(fd, memory.size)
    if identity(fd) != memory.identity:
        raise Unusable
    return about | {
        "identity": repr(memory.identity),
        "made": time.time_ns(),
        "size": memory.size,
        "digest": digest,
        "starts": memory.starts.tobytes(),
        "lines": memory.lines.tobytes(),
    }


def _memory_of(kept: Kept, unhashed_prefix: int | None, found: Identity, *, noted: bool) -> Memory:
    about = kept.about
    memory = Memory(unhashed_prefix, digest=False)
    memory.resume(kept, unhashed_prefix, about["size"])
    memory.due = kept.count + noted
    memory.starts.frombytes(about["starts"])
    memory.lines.frombytes(about["lines"])
    if about["size"] == found[2]:
        memory.identity = found
    return memory


# The ledger's beginning ------------------------------------------------------------------------------------------


def _note_of(path: Path) -> Path:
    return path.with_suffix(".note")


def _is_noted(path: Path, about: Mapping[str, Any], found: Identity) -> bool:
    """Tell whether the file's identity is one that it had when it was read whole, and clocks have moved on since."""
    if _is_settled(about, found):
        return True
    try:
        keptstate.must_be_ours(path)
        noted = orjson.loads(read_regular(path, _NOTE_BYTES, "E_UNREADABLE", "the note"))
        return bool(noted["stamp"] == about["stamp"] and _is_settled(noted, found))
    except EXPECTED:
        return False


def _is_settled(said: Mapping[str, Any], found: Identity) -> bool:
    return bool(said["identity"] == repr(found) and said["made"] - max(found[3], found[4]) >= index.SETTLED_NANOSECONDS)


def _digest(fd: int, size: int) -> bytes:
    """Return the digest of the file's first bytes."""
    os.lseek(fd, 0, os.SEEK_SET)
    digest = hashlib.sha256()
    while size:
        chunk = os.read(fd, min(size, _CHUNK))
        if not chunk:
            raise Unusable
        digest.update(chunk)
        size -= len(chunk)
    return digest.digest()


def _write_note(path: Path, stamp: str, found: Identity) -> None:
    temp = path.with_name(f"{path.name}.{secrets.token_hex(6)}")
    try:
        with os.fdopen(os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | O_CLOEXEC, 0o600), "wb") as file:
            file.write(orjson.dumps({"stamp": stamp, "identity": repr(found), "made": time.time_ns()}))
        temp.replace(path)
    finally:
        temp.unlink(missing_ok=True)
