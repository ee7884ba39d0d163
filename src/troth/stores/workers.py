"""Worker processes: how many are worth having, and how one is prepared."""

from __future__ import annotations

import os
import signal
import threading


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def follow_parent() -> None:
    """Prepare a worker process of a pool: an interrupt is its parent's to handle, and it ends when its parent does."""
    from multiprocessing import connection, parent_process

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:

        def follow() -> None:
            connection.wait([parent.sentinel])
            os._exit(1)

        threading.Thread(target=follow, daemon=True).start()
