"""A PostgreSQL server of the tests' own: a new cluster in a temporary folder, on a unix socket, by an ordinary user.

One server serves all worker processes of a session. Whoever comes first starts it; a process of its own, the keeper,
holds it as long as a session is there and removes it afterwards, however the session ended. ``python postgres.py``
is that keeper.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

START_SECONDS = 60
OWNER = "postgres"  # of the cluster: a superuser

LOCKED = "locked"  # a user who needs a password, where a test makes one; all others need none

QUICK = ("fsync=off", "full_page_writes=off", "synchronous_commit=off", "shared_buffers=32MB", "max_connections=60")
DURABLE = ("fsync=on", "shared_buffers=32MB", "max_connections=60")


def programs() -> Path | None:
    """Return the folder of the newest server's programs: Debian's place, else the search path's."""
    found = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()]
    if found:
        return max(found, key=lambda path: [int(piece) for piece in path.parent.name.split(".") if piece.isdigit()])
    named = shutil.which("initdb")
    return Path(named).parent if named and shutil.which("postgres", path=str(Path(named).parent)) else None


def _missing() -> str | None:
    if sys.platform == "win32":
        return "the server of the tests is started by POSIX means"
    if programs() is None:
        return "there is no PostgreSQL server here (Debian's package is postgresql)"
    try:
        import psycopg
    except ImportError as fault:
        return f"the package psycopg is missing: {fault}"
    del psycopg
    return None


MISSING = _missing()

if MISSING and os.environ.get("CI"):
    raise RuntimeError(f"the tests of the database must run here: {MISSING}")

needs_postgres = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
"""Marks a test that talks to a real server."""


def _user() -> dict[str, Any]:
    """Return how a process becomes an ordinary user: the server does not run as root."""
    if os.geteuid() != 0:
        return {}
    import pwd  # not there on every system these tests are collected on

    entry = pwd.getpwnam("nobody")
    return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}


@dataclass
class Server:
    """One cluster. ``folder`` holds its socket and its data.

    ``host`` lists addresses to listen at as well, ``trusted`` is the network that may come in there, and ``prefix`` a
    command that starts the server.
    """

    folder: Path
    settings: tuple[str, ...] = QUICK
    port: int = 5432
    host: str | None = None
    trusted: str | None = None
    prefix: tuple[str, ...] = ()
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def create(self) -> None:
        """Make the cluster."""
        folder = programs()
        assert folder is not None
        words = ["-D", str(self.folder / "data"), "-U", OWNER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run(
            [str(folder / "initdb"), *words],
            check=True, capture_output=True, cwd=self.folder, env=_environment(), **_user(),
        )  # fmt: skip
        rules = self.folder / "data" / "pg_hba.conf"
        rules.write_text(f"local all {LOCKED} scram-sha-256\n{rules.read_text()}")
        if self.trusted is not None:
            with rules.open("a") as file:
                file.write(f"host all all {self.trusted} trust\n")

    def start(self) -> None:
        """Start the server and wait until it answers."""
        folder = programs()
        assert folder is not None
        words = [*self._started_by(), str(folder / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder)]
        settings = {"listen_addresses": self.host or "", "port": str(self.port), "log_min_messages": "fatal"}
        for name, value in (*settings.items(), *(pair.split("=", 1) for pair in self.settings)):
            words += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                words, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment(),
                start_new_session=True, **({} if self.prefix else _user()),
            )  # fmt: skip
        deadline = time.monotonic() + START_SECONDS
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server did not start: {(self.folder / 'log').read_text()[-2000:]}")
            time.sleep(0.02)

    def _started_by(self) -> list[str]:
        """Return what comes before the server's program: the prefix, which may need root, then what takes root away.

        The server dies with the process that started it, however that ended.
        """
        words = list(self.prefix)
        if shutil.which("setpriv"):
            words += ["setpriv", "--pdeathsig", "KILL"]
            if self.prefix and (user := _user()):
                words += [f"--reuid={user['user']}", f"--regid={user['group']}", "--clear-groups"]
            words.append("--")
        return words

    def answers(self) -> bool:
        """Tell whether it takes connections."""
        import psycopg

        with contextlib.suppress(psycopg.Error):
            psycopg.connect(self.address("postgres")).close()
            return True
        return False

    def address(self, database: str, user: str = OWNER, **more: str) -> str:
        """Return the address of a database, for libpq."""
        extra = "".join(f"&{name}={value}" for name, value in more.items())
        return f"postgresql://{user}@/{database}?host={self.folder}&port={self.port}{extra}"

    def database(self) -> str:
        """Make an empty database and return its name."""
        import psycopg

        name = f"t{secrets.token_hex(6)}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as conn:
            conn.execute(f"CREATE DATABASE {name}".encode())
        return name

    def kill(self) -> None:
        """End it as a loss of power would: all of its processes at once, nothing is written any more."""
        assert self.process is not None
        data = self.folder / "data"
        self.process.send_signal(signal.SIGSTOP)  # so that no further ones are started
        for pid in (*_working_in(data), self.process.pid):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait()
        self.process = None
        deadline = time.monotonic() + 20
        while _working_in(data):
            if time.monotonic() > deadline:
                raise RuntimeError("a process of the server outlived it")
            time.sleep(0.01)
        (data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        """End it in order."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
            self.process = None


def _working_in(data: Path) -> list[int]:
    """Return the processes of the server of that cluster: they all work in its folder, and nobody else does."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):
            if entry.readlink() == data:
                found.append(int(entry.parent.name))
    return found


def _environment() -> dict[str, str]:
    return {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "TZ": "UTC"}


def until(condition: Callable[[], object], seconds: float = 120) -> None:
    """Wait until it holds; a test that waits in vain fails."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.005)


def new_folder() -> Path:
    """Return a new folder that the server's user owns; short, because a socket's path is."""
    folder = Path(tempfile.mkdtemp(prefix="troth-pg-", dir="/tmp"))
    user = _user()
    if user:
        os.chown(folder, user["user"], user["group"])
        folder.chmod(0o755)
    return folder


@contextlib.contextmanager
def own_server(settings: tuple[str, ...] = QUICK, **options: Any) -> Iterator[Server]:
    """Give one test a server of its own, which it may end as it likes."""
    server = Server(new_folder(), settings, **options)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(server.folder, ignore_errors=True)


# The server that a session shares ----------------------------------------------------------------------------------


def _place() -> Path:
    """Return the folder in which the processes of one session find each other."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", f"alone-{os.getpid()}")
    return Path(tempfile.gettempdir(), f"troth-pg-{os.getuid()}-{run}")


_SHARED: list[tuple[Server, int]] = []


def shared_server() -> Server:
    """Return the session's server, started by whoever asks first; every process holds it until it ends."""
    if not _SHARED:
        import fcntl

        place = _place()
        place.mkdir(mode=0o700, exist_ok=True)
        # A shared lock on this file says that somebody is there; the keeper waits for an exclusive one.
        users = os.open(place / "users", os.O_RDWR | os.O_CREAT, 0o600)
        fcntl.flock(users, fcntl.LOCK_SH)
        with (place / "starting").open("w") as starting:
            fcntl.flock(starting, fcntl.LOCK_EX)
            told = place / "server.json"
            if not told.exists():
                keeper = subprocess.Popen(
                    [sys.executable, __file__, str(place)],
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True,
                )  # fmt: skip
                assert keeper.stdout is not None
                if keeper.stdout.readline() != b"ready\n":
                    raise RuntimeError("the shared server did not start")
                keeper.stdout.close()
                _KEEPERS.append(keeper)
            found = json.loads(told.read_text())
        _SHARED.append((Server(Path(found["folder"])), users))
    return _SHARED[0][0]


_KEEPERS: list[subprocess.Popen[bytes]] = []


def _keep(place: Path) -> None:
    """Run the shared server until nobody holds it, then remove every trace of it."""
    import fcntl

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # it ends with its users and not before
    with own_server() as server:
        told = place / "server.json"
        told.with_suffix(".new").write_text(json.dumps({"folder": str(server.folder)}))
        told.with_suffix(".new").rename(told)
        os.write(1, b"ready\n")
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        users = os.open(place / "users", os.O_RDWR)
        fcntl.flock(users, fcntl.LOCK_EX)
    shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    _keep(Path(sys.argv[1]))
