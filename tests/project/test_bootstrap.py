"""The set-up script: what it asks for, what it does once, and what it recovers from; without a network.

A stand-in for Python makes a make-believe environment and notes what was asked of it; everything else is the
script itself in a checkout whose path has a space.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the set-up script is for a POSIX shell")

TOOLS = [
    "sh",
    "cat",
    "uname",
    "tr",
    "dirname",
    "mkdir",
    "rm",
    "env",
    "tail",
    "sleep",
    "chmod",
    "cp",
    "flock",
    "grep",
    "tee",
]

PYTHON = """#!/bin/sh
# Only what touches the network or takes long is pretended.
case "$*" in
"-m venv --clear .venv")
    echo venv >>"$NOTES"
    rm -rf .venv
    sleep "${SLOW:-0}"
    mkdir -p .venv/bin
    cp "$0" .venv/bin/python
    ;;
"-m pip"*)
    echo "pip ${PIP_FAILS:+failed}" >>"$NOTES"
    if [ -n "${PIP_FAILS:-}" ]; then exit 9; fi
    ;;
*) exec "$REAL_PYTHON" "$@" ;;
esac
"""

FAKE_ID = "#!/bin/sh\necho ${WHO:-0}\n"
FAKE_APT = '#!/bin/sh\necho "apt-get $*" >>"$NOTES"\nexit ${APT_EXIT:-0}\n'
FAKE_SUDO = '#!/bin/sh\necho "sudo" >>"$NOTES"\nexec "$@"\n'


@dataclass
class Checkout:
    root: Path
    bin: Path
    notes: Path

    def program(self, name: str, text: str = "#!/bin/sh\nexit 0\n") -> None:
        path = self.bin / name
        path.write_text(text)
        path.chmod(0o755)

    def start(self, kind: str, **variables: str) -> subprocess.Popen[str]:
        environment = {
            "PATH": str(self.bin), "NOTES": str(self.notes), "REAL_PYTHON": sys.executable, "HOME": str(self.root),
            "POSTGRES": str(self.bin), "POSTGRES_ETC": str(self.bin.parent / "etc"),
            **variables,
        }  # fmt: skip
        return subprocess.Popen(
            ["sh", "scripts/bootstrap.sh", kind],
            cwd=self.root, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, kind: str, **variables: str) -> tuple[int, str]:
        process = self.start(kind, **variables)
        said, errors = process.communicate(timeout=60)
        assert said == ""  # what it has to say is no output of the program that runs next
        return process.returncode, errors

    def noted(self) -> list[str]:
        notes = self.notes.read_text().splitlines() if self.notes.exists() else []
        self.notes.unlink(missing_ok=True)
        return [note.strip() for note in notes]


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root = tmp_path / "a check out"
    (root / "locks").mkdir(parents=True)
    shutil.copytree(ROOT / "scripts", root / "scripts", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    for name in ("core.txt", "dev.txt"):
        shutil.copy(ROOT / "locks" / name, root / "locks")
    here = Checkout(root, tmp_path / "bin", tmp_path / "notes")
    here.bin.mkdir()
    for tool in TOOLS:
        if found := shutil.which(tool):
            (here.bin / tool).symlink_to(os.path.realpath(found))
    here.program("id", FAKE_ID)
    here.program("python3", PYTHON)
    here.program("strace")
    here.program("bwrap")
    here.program("apt-get", FAKE_APT)
    here.program("initdb")
    here.program("postgres")
    return here


@pytest.mark.parametrize("arguments", [[], ["everything"]])
def test_wrong_words_are_refused_with_the_usage(arguments: list[str], checkout: Checkout) -> None:
    done = subprocess.run(
        ["sh", "scripts/bootstrap.sh", *arguments], cwd=checkout.root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "usage: sh scripts/bootstrap.sh core|dev" in done.stderr


def test_the_second_run_does_nothing(checkout: Checkout) -> None:
    assert checkout.run("core")[0] == 0
    assert checkout.noted() == ["venv", "pip", "pip"]
    assert checkout.run("core") == (0, "")
    assert checkout.noted() == []


def test_the_development_set_up_serves_the_core_as_well(checkout: Checkout) -> None:
    assert checkout.run("core")[0] == 0
    assert checkout.run("dev")[0] == 0
    assert checkout.noted() == ["venv", "pip", "pip", "pip", "pip"]
    assert checkout.run("core") == (0, "")
    assert checkout.noted() == []


@pytest.mark.parametrize("name", ["pyproject.toml", "locks/core.txt"])
def test_a_changed_lock_or_project_is_installed_again_into_the_same_environment(name: str, checkout: Checkout) -> None:
    checkout.run("core")
    checkout.noted()
    with (checkout.root / name).open("a") as file:
        file.write("\n# changed\n")
    assert checkout.run("core")[0] == 0
    assert checkout.noted() == ["pip", "pip"]


def test_an_interrupted_install_is_no_ready_one(checkout: Checkout) -> None:
    status, _ = checkout.run("core", PIP_FAILS="1")
    assert status == 9
    assert checkout.noted() == ["venv", "pip failed"]
    assert checkout.run("core")[0] == 0
    assert checkout.noted() == ["pip", "pip"]
    assert checkout.run("core") == (0, "")


def test_a_half_made_environment_is_made_anew(checkout: Checkout) -> None:
    (checkout.root / ".venv" / "bin").mkdir(parents=True)
    (checkout.root / ".venv" / "bin" / "python").symlink_to("/nonexistent/python")
    assert checkout.run("core")[0] == 0
    assert checkout.noted() == ["venv", "pip", "pip"]


def test_a_moved_checkout_is_set_up_anew(checkout: Checkout) -> None:
    checkout.run("core")
    checkout.noted()
    checkout.root = checkout.root.rename(checkout.root.with_name("moved"))
    assert checkout.run("core")[0] == 0
    assert checkout.noted() == ["venv", "pip", "pip"]


@pytest.mark.skipif(shutil.which("flock") is None, reason="two at once are kept apart by flock, which is not here")
def test_two_at_once_set_up_one_environment(checkout: Checkout) -> None:
    both = [checkout.start("core", SLOW="1") for _ in range(2)]
    answers = [process.communicate(timeout=60)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0], answers
    assert checkout.noted() == ["venv", "pip", "pip"]


def test_a_plain_user_is_told_the_one_command_and_nothing_is_done(checkout: Checkout) -> None:
    (checkout.bin / "strace").unlink()
    (checkout.bin / "bwrap").unlink()
    status, said = checkout.run("core", WHO="1000")
    assert status == 2
    commands = [line.strip() for line in said.splitlines() if line.startswith("    ")]
    assert commands == ["apt-get update && apt-get install -y --no-install-recommends strace bubblewrap"]
    assert checkout.noted() == []
    assert not (checkout.root / ".venv").exists()


@pytest.mark.parametrize(("who", "before"), [("0", []), ("1000", ["sudo"])])
def test_root_or_a_yes_installs_what_is_missing(who: str, before: list[str], checkout: Checkout) -> None:
    (checkout.bin / "strace").unlink()
    checkout.program("sudo", FAKE_SUDO)
    status, said = checkout.run("core", WHO=who, YES="1" if who != "0" else "")
    assert status == 0, said
    assert checkout.noted() == [
        *before, "apt-get update -qq", *before, "apt-get install -y --no-install-recommends strace -qq",
        "venv", "pip", "pip",
    ]  # fmt: skip


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(("who", "before"), [("0", []), ("1000", ["sudo"])])
def test_the_tests_get_the_programs_of_a_server_and_no_server(
    who: str, before: list[str], there: bool, checkout: Checkout
) -> None:
    (checkout.bin / "initdb").unlink()
    checkout.program("sudo", FAKE_SUDO)
    etc = checkout.bin.parent / "etc"
    if there:
        etc.mkdir()
    assert checkout.run("core", WHO=who)[0] == 0  # the program alone does not need it
    assert checkout.noted() == ["venv", "pip", "pip"]
    status, said = checkout.run("dev", WHO=who, YES="1")
    assert status == 0, said
    setting = [] if there else before * 2
    assert checkout.noted() == [
        *before, "apt-get update -qq", *setting, *before,
        "apt-get install -y --no-install-recommends postgresql -qq", "pip", "pip",
    ]  # fmt: skip
    settings = list(etc.rglob("*.conf"))
    assert [path.read_text() for path in settings] == ([] if there else ["create_main_cluster = false\n"])


def test_the_programs_of_a_server_where_debian_puts_them_are_enough(checkout: Checkout) -> None:
    (checkout.bin / "initdb").unlink()
    (checkout.bin / "17" / "bin").mkdir(parents=True)
    shutil.copy(checkout.bin / "bwrap", checkout.bin / "17" / "bin" / "initdb")
    assert checkout.run("dev")[0] == 0
    assert "apt-get update -qq" not in checkout.noted()


def test_a_plain_user_is_told_one_command_for_the_server_too(checkout: Checkout) -> None:
    (checkout.bin / "strace").unlink()
    (checkout.bin / "initdb").unlink()
    status, said = checkout.run("dev", WHO="1000")
    assert status == 2
    commands = [line.strip() for line in said.splitlines() if line.startswith("    ")]
    place = checkout.bin.parent / "etc" / "createcluster.d"
    assert commands == [
        f"apt-get update && mkdir -p {place} && echo 'create_main_cluster = false' >{place}/tests.conf && "
        "apt-get install -y --no-install-recommends strace postgresql"
    ]
    assert not place.exists()


def test_a_yes_without_sudo_is_told_the_command(checkout: Checkout) -> None:
    (checkout.bin / "strace").unlink()
    status, said = checkout.run("core", WHO="1000", YES="1")
    assert status == 2
    assert said.count("apt-get update && apt-get install") == 1


def test_a_failing_package_manager_is_not_passed_over(checkout: Checkout) -> None:
    (checkout.bin / "bwrap").unlink()
    status, _ = checkout.run("core", APT_EXIT="100")
    assert status == 100
    assert not (checkout.root / ".venv").exists()


def test_without_apt_the_programs_are_named(checkout: Checkout) -> None:
    (checkout.bin / "bwrap").unlink()
    (checkout.bin / "apt-get").unlink()
    status, said = checkout.run("core")
    assert status == 2
    assert said.rstrip().endswith(": bubblewrap")


def test_other_systems_are_not_asked_for_programs_of_linux(checkout: Checkout) -> None:
    for name in ("strace", "bwrap", "uname"):
        (checkout.bin / name).unlink()
    checkout.program("uname", "#!/bin/sh\necho Darwin\n")
    assert checkout.run("core")[0] == 0


def test_an_old_python_is_told_apart_from_none(checkout: Checkout) -> None:
    checkout.program("python3", '#!/bin/sh\n[ "$1" = --version ] && echo "Python 3.9.2" && exit\nexit 1\n')
    status, said = checkout.run("core")
    assert status == 2
    assert "Python 3.11 or newer is needed; found: Python 3.9.2." in said
    (checkout.bin / "python3").unlink()
    status, said = checkout.run("core")
    assert status == 2
    assert "found: no python3." in said


def test_a_newer_python_beside_an_old_one_is_taken(checkout: Checkout) -> None:
    checkout.program("python3", "#!/bin/sh\nexit 1\n")
    checkout.program("python3.12", PYTHON)
    assert checkout.run("core")[0] == 0
    assert checkout.noted() == ["venv", "pip", "pip"]


def test_a_python_without_its_venv_module_asks_for_the_package(checkout: Checkout) -> None:
    lacking = PYTHON.replace('case "$*" in\n', 'case "$*" in\n*ensurepip*) exit 1 ;;\n')
    checkout.program("python3", lacking)
    status, said = checkout.run("core", WHO="1000")
    assert status == 2
    assert f"install -y --no-install-recommends python3.{sys.version_info[1]}-venv" in said
