"""Who plays the chunks of a sweep: this process, others on this machine, or a Dask cluster.

Each way yields (chunk, rows) as they are finished, in any order, with a bounded number under way. A worker that is
killed costs the chunk that it was at: another plays it.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Generator, Iterable
from typing import TYPE_CHECKING, Any, Final

from troth import __version__
from troth.core.errors import Refused
from troth.lab.sweeps import play_chunk

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

AHEAD: Final = 2
"""Chunks per worker that may be under way or waiting to be kept; this bounds the memory."""

FRUITLESS: Final = 5
"""Times in a row that workers die without a finished chunk, after which the sweep gives up."""

CONNECT_SECONDS: Final = 20


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def here(form: bytes, chunks: Iterable[int]) -> Generator[tuple[int, bytes]]:
    """Play them in this process."""
    for chunk in chunks:
        yield chunk, play_chunk(form, chunk)


# Processes -----------------------------------------------------------------------------------------------------------


def _begin() -> None:
    """Prepare a worker: an interrupt is its parent's to handle, and it ends when its parent does."""
    import threading
    from multiprocessing import connection, parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:

        def follow() -> None:
            connection.wait([parent.sentinel])
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()


def _pool(jobs: int) -> ProcessPoolExecutor:
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    # A fresh interpreter each: the library behind the rows has threads, which a fork would not take along.
    return ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=_begin)


def processes(form: bytes, chunks: Iterable[int], jobs: int) -> Generator[tuple[int, bytes]]:
    """Play them in ``jobs`` processes of this machine.

    Raises:
        Refused: ``E_SWEEP_WORKER``.
    """
    from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait

    waiting = deque(chunks)
    fruitless = 0
    while waiting:
        pool = _pool(jobs)
        running: dict[Future[bytes], int] = {}
        try:
            while waiting or running:
                while waiting and len(running) < AHEAD * jobs:
                    chunk = waiting.popleft()
                    running[pool.submit(play_chunk, form, chunk)] = chunk
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    payload = future.result()
                    fruitless = 0
                    yield running.pop(future), payload
        except BrokenExecutor:
            # A worker was killed. Whatever was under way is played again.
            fruitless += 1
            if fruitless >= FRUITLESS:
                raise Refused(
                    "E_SWEEP_WORKER",
                    f"the processes ended {fruitless} times in a row without finishing a chunk",
                    remedy="Give the machine more memory, or make `chunk` smaller.",
                ) from None
            waiting.extendleft(sorted(running.values(), reverse=True))
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


# Cluster -------------------------------------------------------------------------------------------------------------


def _on_cluster(version: str, form: bytes, chunk: int) -> bytes:
    """Play one chunk on a worker of a cluster, which must run the same version."""
    if version != __version__:
        raise ValueError(f"a worker has version {__version__}, not {version}")
    return play_chunk(form, chunk)


def cluster(form: bytes, chunks: Iterable[int], address: str, jobs: int) -> Generator[tuple[int, bytes]]:
    """Play them on a Dask cluster: the one at ``address``, or with ``local`` one that is started for it.

    Args:
        form: the sweep's canonical form.
        chunks: which ones.
        address: of the scheduler (``tcp://HOST:PORT``, ``tls://…``), or ``local``.
        jobs: workers of a local one.

    Raises:
        Refused: ``E_SWEEP_CLUSTER``.
    """
    import logging
    from contextlib import ExitStack

    try:
        import distributed
    except ImportError:
        raise _refused("Dask is not installed", "Install the extra `cluster`.") from None

    dask: Any = distributed  # its functions have no types
    with ExitStack() as stack:
        try:
            where: Any = address
            if address == "local":
                where = stack.enter_context(
                    dask.LocalCluster(
                        n_workers=jobs, threads_per_worker=1, processes=True, host="127.0.0.1",
                        dashboard_address=None, silence_logs=logging.CRITICAL,
                    )
                )  # fmt: skip
            client = stack.enter_context(dask.Client(where, timeout=CONNECT_SECONDS, set_as_default=False))
            workers = len(client.scheduler_info(n_workers=-1)["workers"])
        except (OSError, TimeoutError, ValueError) as fault:
            raise _refused(f"no cluster answers at {address[:200]!r}: {fault}", "Name its scheduler.") from None
        waiting = deque(chunks)
        numbers: dict[str, int] = {}

        def submit() -> Any:
            chunk = waiting.popleft()
            future = client.submit(_on_cluster, __version__, form, chunk, pure=False, retries=2)
            numbers[future.key] = chunk
            return future

        first = [submit() for _ in range(min(len(waiting), AHEAD * max(workers, jobs)))]
        ready = dask.as_completed(first, loop=client.loop)
        for future in ready:
            try:
                payload: bytes = future.result()
            except dask.KilledWorker:
                raise _refused(
                    "workers die one after another", "Give them more memory, or make `chunk` smaller."
                ) from None
            except Exception as fault:
                # Whatever a worker could not do comes back as its own error, of any class.
                raise _refused(
                    f"a worker cannot play deals: {type(fault).__name__}: {str(fault)[:300]}",
                    "Every worker needs the same release of this program and its extra `lab`.",
                ) from None
            chunk = numbers.pop(future.key)
            future.release()
            if waiting:
                ready.add(submit())
            yield chunk, payload


def _refused(why: str, remedy: str) -> Refused:
    return Refused("E_SWEEP_CLUSTER", why, remedy=remedy)
