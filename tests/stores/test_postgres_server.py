"""The tests' own server: an ordinary user's, on a socket alone, shared, and gone when the last one is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from support.ledgers import environment
from support.postgres import needs_postgres, own_server, shared_server

TESTS = Path(__file__).resolve().parents[1]

_USER = """
import sys, time
from support.postgres import shared_server
print(shared_server().folder, flush=True)
sys.stdin.readline()
"""

pytestmark = needs_postgres


def _someone(run: str) -> tuple[subprocess.Popen[str], Path]:
    env = environment(PYTEST_XDIST_TESTRUNUID=run)
    env["PYTHONPATH"] = os.pathsep.join([str(TESTS), env["PYTHONPATH"]])
    one = subprocess.Popen(
        [sys.executable, "-c", _USER], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert one.stdout is not None
    return one, Path(one.stdout.readline().strip())


def _gone(folder: Path) -> bool:
    deadline = time.monotonic() + 30
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    return not folder.exists()


def test_it_is_an_ordinary_user_s_and_on_a_socket_alone() -> None:
    server = shared_server()
    with psycopg.connect(server.address("postgres")) as conn:
        assert conn.execute("SHOW listen_addresses").fetchone() == ("",)
        assert conn.execute("SELECT pg_postmaster_start_time() < now()").fetchone() == (True,)
    (owner,) = {path.stat().st_uid for path in (server.folder / "data", server.folder / "data" / "PG_VERSION")}
    assert owner != 0


def test_processes_of_one_session_share_it_and_the_last_one_ends_it() -> None:
    run = f"shared-{os.getpid()}"
    first, folder = _someone(run)
    second, same = _someone(run)
    assert folder == same != shared_server().folder
    first.communicate("go\n", timeout=30)
    with psycopg.connect(f"postgresql://postgres@/postgres?host={folder}") as conn:
        assert conn.execute("SELECT 1").fetchone() == (1,)
    os.kill(second.pid, signal.SIGKILL)  # as a crash would
    second.communicate()
    assert _gone(folder)


def test_a_server_dies_with_whoever_started_it() -> None:
    with own_server() as server:
        folder = server.folder
        assert server.answers()
    assert not folder.exists()
