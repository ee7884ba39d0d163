"""Verification of a large ledger on several cores, with the same answer as on one.

What a stretch of lines amounts to depends on its bytes alone (:func:`troth.ledger.fastpath.stretch`), so other
processes look at stretches and this one joins them in file order. A stretch with anything to report is looked at
again here, line by line.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from troth.ledger.chain import ChainReader
from troth.ledger.fastpath import Stretch, stretch
from troth.stores.durable import O_CLOEXEC, O_NOFOLLOW
from troth.stores.lines import blocks
from troth.stores.workers import follow_parent

if TYPE_CHECKING:
    from concurrent.futures import Future

WORTH_BYTES: Final = 32 << 20
"""A smaller file is verified before other processes have started."""

SHARE_BYTES: Final = 4 << 20
"""What one process takes at once."""

_WAITING: Final = 3
"""Shares per process that may be under way or waiting to be joined; this bounds the memory."""


class _Share(NamedTuple):
    path: str
    identity: tuple[int, int]
    start: int
    end: int


class _Found(NamedTuple):
    """A stretch in the form that travels cheaply between processes; ``hashes`` is empty when it is no stretch."""

    after: int
    first_link: str
    hashes: str
    ids: str


def feed_shares(
    chain: ChainReader, fd: int, path: Path, end: int, *, workers: int, progress: Callable[[int, int], None]
) -> int:
    """Feed whole lines up to the last LF before ``end`` and return the offset reached.

    Args:
        chain: takes every line.
        fd: the open ledger, for what has to be looked at here.
        path: where other processes open it; one that finds another file there leaves its share to this one.
        end: bytes to cover at most.
        workers: processes to start.
        progress: told bytes done and bytes in all, after each share.

    Raises:
        OSError: the ledger cannot be read.
    """
    found = os.fstat(fd)
    identity = (found.st_dev, found.st_ino)
    shares = (_Share(str(path), identity, start, stop) for start, stop in _ranges(fd, end))
    waiting: deque[tuple[_Share, Future[list[_Found]] | None]] = deque()
    reached = 0
    with _helpers(workers) as submit:
        for share in shares:
            waiting.append((share, submit(share)))
            if len(waiting) >= workers * _WAITING:
                reached = _join(chain, fd, *waiting.popleft())
                progress(reached, end)
        while waiting:
            reached = _join(chain, fd, *waiting.popleft())
            progress(reached, end)
    return reached


@contextmanager
def _helpers(workers: int) -> Iterator[Callable[[_Share], Future[list[_Found]] | None]]:
    """Yield what hands a share to another process, or answers ``None`` when this one must look at it.

    A machine may have no shared memory for semaphores, no room for further processes, or end one that takes much
    memory. Verification then takes longer, and that is all.
    """
    from concurrent.futures import BrokenExecutor, ProcessPoolExecutor
    from multiprocessing import active_children, get_all_start_methods, get_context

    # Fork is at hand at once; where it does not exist, the others import this module first.
    context = get_context("fork" if "fork" in get_all_start_methods() else None)
    others = set(active_children())
    try:
        pool = ProcessPoolExecutor(workers, mp_context=context, initializer=follow_parent)
    except (OSError, ImportError, NotImplementedError):
        yield lambda _: None
        return
    usable = True

    def submit(share: _Share) -> Future[list[_Found]] | None:
        nonlocal usable
        try:
            return pool.submit(_examine, share) if usable else None
        except (BrokenExecutor, OSError):
            usable = False
            return None

    with pool:
        yield submit
    if not usable:
        for half_started in set(active_children()) - others:  # nobody else would ever end them
            half_started.kill()


def _ranges(fd: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield consecutive ranges that end behind an LF."""
    start = 0
    while start < end:
        probe = min(start + SHARE_BYTES, end)
        stop = _behind_lf(fd, probe, end)
        if stop is None:
            # No LF any more: what precedes the probe may still hold some.
            os.lseek(fd, start, os.SEEK_SET)
            cut = os.read(fd, probe - start).rfind(b"\n")
            if cut >= 0:
                yield start, start + cut + 1
            return
        yield start, stop
        start = stop


def _behind_lf(fd: int, offset: int, end: int) -> int | None:
    """Return the first offset from ``offset - 1`` on that stands behind an LF."""
    offset -= 1
    while offset < end:
        os.lseek(fd, offset, os.SEEK_SET)
        piece = os.read(fd, min(1 << 16, end - offset))
        if not piece:
            return None
        at = piece.find(b"\n")
        if at >= 0:
            return offset + at + 1
        offset += len(piece)
    return None


def _examine(share: _Share) -> list[_Found]:
    """Look at one share, in another process."""
    fd = os.open(share.path, os.O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
    try:
        found = os.fstat(fd)
        if (found.st_dev, found.st_ino) != share.identity:
            return []
        return [_packed(after, stretch(block, False)) for after, block, _ in blocks(fd, share.start, end=share.end)]
    finally:
        os.close(fd)


def _packed(after: int, seen: Stretch | None) -> _Found:
    if seen is None:
        return _Found(after, "", "", "")
    ids = "\n".join(seen.ids)
    if ids.count("\n") != len(seen.ids) - 1:
        return _Found(after, "", "", "")
    return _Found(after, seen.first_link, "".join(seen.hashes), ids)


def _unpacked(found: _Found) -> Stretch | None:
    if not found.hashes:
        return None
    hashes = found.hashes
    return Stretch(
        found.first_link, [hashes[at : at + 64] for at in range(0, len(hashes), 64)], found.ids.split("\n"), []
    )


def _join(chain: ChainReader, fd: int, share: _Share, answer: Future[list[_Found]] | None) -> int:
    """Join what was found in a share to the chain; return where it ends."""
    offset = share.start
    for found in _answered(answer):
        seen = _unpacked(found)
        if seen is None or not chain.hashed or not chain.join(seen):  # the first one is looked at whole
            _look(chain, fd, offset, found.after)
        offset = found.after
    if offset < share.end:
        _look(chain, fd, offset, share.end)
    return share.end


def _answered(answer: Future[list[_Found]] | None) -> list[_Found]:
    """Return what another process found, nothing when none did: then all of the share is looked at here."""
    from concurrent.futures import BrokenExecutor

    try:
        return answer.result() if answer is not None else []
    except (BrokenExecutor, OSError):
        return []


def _look(chain: ChainReader, fd: int, start: int, end: int) -> None:
    for _, block, _ in blocks(fd, start, end=end):
        chain.feed_block(block, stretch(block, False))
