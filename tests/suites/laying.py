"""Fetching a published archive by its hash, and laying it out as the project a developer has."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from suites.suites import Suite

PINS = Path(__file__).with_name("pins")
"""What the rows need beside their archives, by hash: one lock of Python packages, one of node's for each row."""

_SECONDS = 900


def _command(
    words: Sequence[str | Path], folder: Path, more: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(
        list(map(str, words)), cwd=folder, capture_output=True, text=True, check=False, timeout=_SECONDS,
        env=own | (more or {}),
    )  # fmt: skip


def done(words: Sequence[str | Path], folder: Path, more: Mapping[str, str] | None = None) -> None:
    """Run a command that has to work, with ``more`` in its environment."""
    ended = _command(words, folder, more)
    assert ended.returncode == 0, f"{words}: {ended.stdout[-2000:]}{ended.stderr[-2000:]}"


def _python(suite: Suite, folder: Path) -> None:
    pinned = folder / "pinned.txt"
    pinned.write_text(f"{suite.name}=={suite.version} --hash=sha256:{suite.sha256}\n")
    _command(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--require-hashes",
         "-r", pinned, "-d", folder], folder,
    )  # fmt: skip


def _npm(suite: Suite, folder: Path) -> None:
    if shutil.which("npm") and shutil.which("node"):
        _command(["npm", "pack", "--silent", f"{suite.name}@{suite.version}"], folder)


def _debian(suite: Suite, folder: Path) -> None:
    """Fetch a package, of sources or a library's, with apt, from the places that the machine's binaries come from."""
    if not all(map(shutil.which, ("apt-get", suite.ecosystem))):
        return
    library = suite.package.startswith("lib")
    kind, words = ("deb", ["download"]) if library else ("deb-src", ["source", "--download-only"])
    for part in ("lists/partial", "sources"):
        (folder / part).mkdir(parents=True)
    for path in Path("/etc/apt/sources.list.d").glob("*.sources"):
        text = re.sub(r"(?m)^Types:.*$", f"Types: {kind}", path.read_text(encoding="utf-8"))
        (folder / "sources" / path.name).write_text(text, encoding="utf-8")
    options = [
        "-o", "Dir::Etc::sourcelist=/dev/null", "-o", f"Dir::Etc::sourceparts={folder / 'sources'}",
        "-o", f"Dir::State::lists={folder / 'lists'}", "-o", "APT::Sandbox::User=root",
    ]  # fmt: skip
    _command(["apt-get", *options, "update"], folder)
    _command(["apt-get", *options, *words, suite.package], folder)


_FETCH = {"python": _python, "npm": _npm, "make": _debian, "cargo": _debian, "go": _debian}
"""How an ecosystem's own client brings the archive into a folder."""


def fetch(suite: Suite, folder: Path) -> Path:
    """Bring the pinned archive into a folder; without an index the test is skipped, unless the network is promised."""
    _FETCH[suite.ecosystem](suite, folder)
    for path in folder.iterdir():
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == suite.sha256:
            return path
    if os.environ.get("TROTH_NETWORK") == "1":
        pytest.fail(f"the archive of {suite.name} {suite.version} could not be fetched")
    pytest.skip(f"no index within reach has {suite.name} {suite.version}")


def unpack(archive: Path, target: Path) -> None:
    """Unpack an archive without the one folder that it holds; of a package of Debian's, that of the crate in it."""
    laid = target.parent / "unpacked"
    if archive.suffix == ".deb":
        done(["dpkg-deb", "-x", archive, laid], target.parent)
        laid = laid / "usr" / "share" / "cargo" / "registry"
    else:
        with tarfile.open(archive) as tar:
            # The hash is pinned; the filter is there where this Python has it.
            tar.extractall(laid, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (inner,) = laid.iterdir()
    inner.rename(target)


def spoil(suite: Suite, workspace: Path) -> None:
    """Put the fault in that is to be mended."""
    path = workspace / suite.edit.file
    text = path.read_text(encoding="utf-8")
    assert text.count(suite.edit.published) == 1, suite.edit
    path.write_text(text.replace(suite.edit.published, suite.edit.spoilt), encoding="utf-8")


def _git(workspace: Path, *words: str) -> None:
    done(["git", "-c", "user.name=t", "-c", "user.email=t@invalid", "-c", "commit.gpgsign=false", *words], workspace)


def _environment(suite: Suite, workspace: Path) -> None:
    """Make the Python environment: pip takes all, and what builds need, from wheels whose hashes are pinned."""
    environment = Path(os.path.normpath(workspace / suite.environment))
    wheels = workspace.parent / "wheels"
    done([sys.executable, "-m", "venv", environment], workspace)
    pip = environment / "bin" / "pip"
    done(
        [pip, "download", "-q", "--no-deps", "--only-binary", ":all:", "--require-hashes", "-r", PINS / "python.txt",
         "-d", wheels], workspace,
    )  # fmt: skip
    known = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels)}
    if suite.needs:
        done([pip, "install", "-q", *suite.needs], workspace, known)
    if suite.installed:
        done([pip, "install", "-q", "--no-deps", "-e", "."], workspace, known)


def _modules(suite: Suite, workspace: Path) -> None:
    """Install the pinned packages of node that a row needs; its own list of those for developers is not looked at."""
    folder = workspace.parent / "modules"
    shutil.copytree(PINS / suite.name, folder)
    done(["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"], folder)
    (folder / "node_modules").rename(workspace / "node_modules")


def lay_out(suite: Suite, archive: Path, workspace: Path) -> None:
    """Make the project: its files, its environment, and two commits, tagged ``published`` and ``spoilt``."""
    unpack(archive, workspace)
    if suite.environment:
        _environment(suite, workspace)
    if suite.ecosystem == "npm":
        _modules(suite, workspace)
    for words in suite.prepare:
        done(words, workspace)
    _git(workspace, "init", "-q")
    (workspace / ".git" / "info" / "exclude").write_text(".mentu\n.venv\nnode_modules\n")
    _git(workspace, "add", "-A", "-f", "--", ".", ":!.venv", ":!node_modules")
    _git(workspace, "commit", "-q", "-m", "as published")
    _git(workspace, "tag", "published")
    spoil(suite, workspace)
    _git(workspace, "commit", "-q", "-a", "-m", "spoilt")
    _git(workspace, "tag", "spoilt")


def put_back(workspace: Path) -> None:
    """Make the workspace what it was when the contract was sealed; what git leaves out is no agent's work here."""
    _git(workspace, "reset", "-q", "--hard", "spoilt")
    _git(workspace, "clean", "-q", "-f", "-d")
