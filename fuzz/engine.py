"""The loop: mutate, read, judge the answer, keep what reaches new edges, shrink what a reader does not survive."""

from __future__ import annotations

import hashlib
import mmap
import random
import re
import resource
import signal
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from fuzz.edges import Edges
from fuzz.mutate import MAX_INPUT, Mutator, Seed, seed_of
from troth.core.errors import Busy, Defect, TrothError

Answer = str | None
"""``None``: accepted; a word: refused without an exception, for readers that answer so."""

HANG: Final = 10
"""Processor seconds that one input may take."""

MEMORY: Final = 1 << 30
"""Bytes of address space that a reader may take above what the process had before."""

TRACED: Final = 1500
"""How many inputs of a run are traced, besides those with a new answer."""

_CODE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_./-]*")
_DIGITS: Final = re.compile(r"[0-9]+")
_KEPT: Final = 400
_ANSWERS: Final = 4000
_SHRINKS: Final = 3000


@dataclass(frozen=True, slots=True)
class Reader:
    """One door for foreign bytes.

    Args:
        name: how it is called here: room and what is read.
        entry: reads the bytes; an exception that is no coded refusal is a fault.
        seeds: gives real inputs.
        modules: whose edges are counted.
        words: text that its grammar knows besides.
        few: inputs of the quick pass; fewer where one costs much.
    """

    name: str
    entry: Callable[[bytes], Answer]
    seeds: Callable[[], Sequence[bytes]]
    modules: tuple[str, ...]
    words: tuple[bytes, ...] = ()
    few: int = 150


@dataclass(slots=True)
class Found:
    """An input that a reader did not survive."""

    what: str
    data: bytes
    trace: str = ""


@dataclass(slots=True)
class Result:
    """What a run of one reader came to."""

    name: str
    inputs: int = 0
    accepted: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    reached: int = 0
    possible: int = 0
    kept: int = 0
    seconds: float = 0.0
    slowest: float = 0.0
    slowest_size: int = 0
    grown: int = 0
    """Kibibytes that the peak of memory grew by."""
    faults: list[Found] = field(default_factory=list)


class Hang(BaseException):
    """One input took more processor time than any may; no reader catches it."""


class _Watch:
    """Ticks once a processor second, and ends an input that has not changed for `HANG` ticks."""

    def __init__(self) -> None:
        self.input = 0
        self._last = -1
        self._ticks = 0

    def tick(self, _: int, __: Any) -> None:
        self._ticks = self._ticks + 1 if self.input == self._last else 0
        self._last = self.input
        if self._ticks >= HANG:
            self._ticks = 0
            raise Hang

    @contextmanager
    def on(self) -> Iterator[None]:
        before = signal.signal(signal.SIGPROF, self.tick)
        signal.setitimer(signal.ITIMER_PROF, 1, 1)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)


@contextmanager
def bounded_memory() -> Iterator[None]:
    """Let the process take no more than `MEMORY` beyond what it has: more is a MemoryError, which is a fault."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    try:
        now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        yield
        return
    resource.setrlimit(resource.RLIMIT_AS, (now + MEMORY, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def place_of(fault: BaseException) -> str:
    """Return what an exception is and where it came from, so that two of one cause are one."""
    frames = traceback.extract_tb(fault.__traceback__)
    where = frames[-1] if frames else None
    return f"{type(fault).__name__} at {Path(where.filename).name}:{where.lineno}" if where else type(fault).__name__


def ask(entry: Callable[[bytes], Answer], data: bytes) -> tuple[str | None, str, BaseException | None]:
    """Return the answer's code (``None``: accepted), where it points, and an exception that no reader may raise."""
    try:
        return entry(data), "", None
    except (Defect, Busy) as fault:
        return fault.code, "", fault
    except TrothError as fault:
        place = fault.place
        if not _CODE.fullmatch(fault.code):
            return fault.code, "", fault
        return fault.code, place.path or "" if place else "", None
    except (Exception, Hang) as fault:
        return None, "", fault


def shrunk(entry: Callable[[bytes], Answer], data: bytes, what: str) -> bytes:
    """Return a smaller input with the same fault: stretches are taken away as long as it stays."""
    tries, size = 0, max(1, len(data) // 2)
    while size and tries < _SHRINKS:
        place, better = 0, False
        while place < len(data) and tries < _SHRINKS:
            made = data[:place] + data[place + size :]
            tries += 1
            fault = ask(entry, made)[2]
            if fault is not None and place_of(fault) == what:
                data, better = made, True
            else:
                place += size
        if not better:
            size //= 2
    return data


def fuzz(reader: Reader, inputs: int, seed: int, current: mmap.mmap | None = None) -> Result:
    """Feed a reader; the same arguments make the same inputs.

    Args:
        reader: the door.
        inputs: how many, the unchanged seeds among them.
        seed: of the chance.
        current: shared memory of ``MAX_INPUT + 16`` bytes that holds the input being read, for whoever watches.
    """
    chance = random.Random(f"{reader.name} {seed}")  # noqa: S311 - to be repeated, not to be unforeseeable
    pool: list[Seed] = [seed_of(data) for data in dict.fromkeys(reader.seeds())]
    if not pool:
        raise ValueError(f"{reader.name} has no seeds")
    start_pool = [one.data for one in pool]
    edges = Edges(reader.modules)
    good: list[Seed] = []
    mutator = Mutator(chance, pool, good, reader.words)
    result = Result(reader.name, possible=len(edges.possible))
    entry, codes, watch = reader.entry, result.codes, _Watch()
    answers: set[tuple[str | None, str]] = set()
    known: set[str] = set()
    every = max(1, inputs // TRACED)
    clock = time.process_time
    begun, peak = clock(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def follow(data: bytes) -> None:
        """Read once more under the tracer; what reaches new edges becomes a seed."""
        (code, _, fault), more = edges.call(lambda: ask(entry, data))
        if more and fault is None and number >= len(start_pool) and len(pool) < _KEPT and len(data) < 1 << 16:
            pool.append(seed_of(data))
            if code is None:
                good.append(pool[-1])
            result.kept += 1

    with watch.on():
        for number in range(inputs):
            data = start_pool[number] if number < len(start_pool) else mutator.make()
            watch.input = number
            if current is not None:
                current[:16] = b"%16d" % len(data)
                current[16 : 16 + len(data)] = data
            then = clock()
            code, path, fault = ask(entry, data)
            took = clock() - then
            if took > result.slowest:
                result.slowest, result.slowest_size = took, len(data)
            if fault is not None:
                what = place_of(fault)
                codes[f"!{what}"] += 1
                if what not in known:
                    known.add(what)
                    trace = "".join(traceback.format_exception(fault))
                    smaller = data if isinstance(fault, Hang) else shrunk(entry, data, what)
                    result.faults.append(Found(what, smaller, trace))
                continue
            if code is None:
                result.accepted += 1
                if number < len(start_pool):
                    good.append(pool[number])
            else:
                codes[code] += 1
            if number % every == 0 or number < len(start_pool):
                follow(data)
            elif code is not None and len(answers) < _ANSWERS:
                key = (code, _DIGITS.sub("0", path[:80]))
                if key not in answers:
                    answers.add(key)
                    follow(data)
    result.inputs = inputs
    result.seconds = clock() - begun
    result.reached = len(edges.reached)
    result.grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    return result


def kept(folder: Path, name: str, found: Found) -> Path:
    """Write an offending input and its trace; return where."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name.replace('/', '-')}-{hashlib.sha256(found.data).hexdigest()[:12]}"
    path = folder / f"{stem}.bin"
    path.write_bytes(found.data)
    (folder / f"{stem}.txt").write_text(f"{found.what}\n\n{found.trace}", encoding="utf-8", errors="replace")
    return path


__all__ = ["MAX_INPUT", "Answer", "Found", "Reader", "Result", "bounded_memory", "fuzz", "kept"]
