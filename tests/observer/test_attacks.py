"""An agent that remounts, reads homes, lists the ledger, signals the tracer: it gets nowhere, whoever started it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import inotify_simple
import orjson
import pytest

import troth
from support.observing import needs_observer

pytestmark = [needs_observer, pytest.mark.observer]
HERE = Path(__file__).parent
SYSTEM_PYTHON = "/usr/bin/python3"
ORDINARY = 54321


def _other_python() -> bool:
    """Tell whether the system's Python could not load the packages that this one uses."""
    if not Path(SYSTEM_PYTHON).exists():
        return True
    asked = subprocess.run(
        [SYSTEM_PYTHON, "-c", "import sys; print(sys.version_info[:2])"], capture_output=True, text=True, check=False
    )
    return asked.stdout.strip() != str(tuple(sys.version_info[:2]))


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that any user can reach."""
    folder = Path("/var/tmp") / f"troth-attack-{os.getpid()}"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def attack(place: Path, prefix: list[str], owner: int) -> str:
    workspace, private, home = place / "workspace", place / "private", place / "home"
    for folder in (workspace, private, home, workspace / ".mentu"):
        folder.mkdir()
    private.chmod(0o700)
    (workspace / ".mentu" / "ledger.jsonl").write_text("{}\n")
    (home / "key").write_text("secret")
    shutil.copy(HERE / "attacks.py", workspace)
    shutil.copy(HERE / "drive_attack.py", place)
    # The program and what it needs, readable by everybody, wherever the project itself stands.
    library = place / "library"
    shutil.copytree(Path(troth.__file__).parent, library / "troth", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(Path(orjson.__file__).parent, library / "orjson", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(inotify_simple.__file__, library)
    if owner:
        for folder, _, names in os.walk(place):
            for path in (folder, *(os.path.join(folder, name) for name in names)):
                os.lchown(path, owner, owner)
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        done = subprocess.run(
            [*prefix, SYSTEM_PYTHON, "-B", str(place / "drive_attack.py"), str(workspace), str(private)],
            capture_output=True, text=True, check=False, timeout=120, cwd=place, stdin=subprocess.DEVNULL,
            env={
                "PATH": "/usr/bin:/bin", "PYTHONPATH": str(library), "OTHER_HOME": str(home), "SSH_AUTH_SOCK": "/x",
                "OPEN_PORT": str(server.getsockname()[1]), "AWS_SECRET_ACCESS_KEY": "x", "SUDO_USER": "x",
            },
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(_other_python(), reason="the system's own Python is another version than this one")
@pytest.mark.parametrize("who", ["root", "ordinary"])
def test_the_agent_gets_nowhere(place: Path, who: str) -> None:
    if os.geteuid() != 0:
        if who == "root":
            pytest.skip("not started as root")
        prefix, owner = [], 0
    elif who == "root":
        prefix, owner = [], 0
    else:
        setpriv = shutil.which("setpriv")
        assert setpriv is not None
        prefix = [setpriv, f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups"]
        owner = ORDINARY
    out = attack(place, prefix, owner)
    assert "end" in out.splitlines()
    assert [line for line in out.splitlines() if line.startswith("GOT")] == []
    expected = 0 if who == "root" else (ORDINARY if os.geteuid() == 0 else os.geteuid())
    # Refused attempts count for nothing: the record of this run is complete.
    assert f"uid {expected} exit 0 faults []" in out


def test_the_attempts_would_succeed_outside(tmp_path: Path) -> None:
    """The honest twin: the same program, unconfined, gets somewhere; so the test above can fail."""
    (tmp_path / ".mentu").mkdir()
    (tmp_path / ".mentu" / "ledger.jsonl").write_text("{}\n")
    (tmp_path / "key").write_text("secret")
    probe = (
        "import os\n"
        "key = open(os.environ['OTHER_HOME'] + '/key').read()\n"
        "print(bool(os.listdir('.mentu')), key, os.path.isdir('/sys/kernel'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe],
        cwd=tmp_path,
        env={"OTHER_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["True", "secret", "True"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root meets folders that its sandbox cannot pass")
def test_root_is_told_which_folder_of_another_user_is_closed(place: Path) -> None:
    from troth.core.errors import Refused
    from troth.observer.confine import run_confined
    from troth.observer.contract_source import RunLimits
    from troth.observer.sandbox import SandboxSpec, toolchain

    closed = place / "closed"
    workspace = closed / "workspace"
    workspace.mkdir(parents=True)
    private = place / "private"
    private.mkdir(mode=0o700)
    spec = SandboxSpec(
        workspace=workspace, inside="/w", private=private, environment={"PATH": "/usr/bin:/bin"}, read_only=toolchain()
    )
    assert run_confined(spec, ["true"], RunLimits(seconds=20)).exit == 0
    os.chown(closed, ORDINARY, ORDINARY)
    closed.chmod(0o700)
    with pytest.raises(Refused) as caught:
        run_confined(spec, ["true"], RunLimits(seconds=20))
    assert caught.value.code == "E_SANDBOX_UNREACHABLE"
    assert str(closed) in str(caught.value)
    closed.chmod(0o711)
    assert run_confined(spec, ["true"], RunLimits(seconds=20)).exit == 0
