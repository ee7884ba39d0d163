"""The tree on which adequacy is measured: the start itself, a folder, or a revision of the workspace's repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from pathlib import Path
from typing import IO, Any, Final

from troth.core.errors import Place, Refused
from troth.observer.contract_source import workspace_path_fault
from troth.observer.copies import copy_workspace
from troth.observer.tree import snapshot

CODE: Final = "E_REFERENCE"
_GIT_SECONDS: Final = 300
_MODE_BITS: Final = 0o777


def _git(workspace: Path, *words: str, **options: Any) -> subprocess.Popen[bytes]:
    if shutil.which("git") is None:
        raise Refused(CODE, "a revision needs git, which is not installed", remedy="Give a folder, or install git.")
    # A repository's own settings may name programs; none of them is needed to read a commit.
    quiet = ("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "log.showSignature=false")
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}
    return subprocess.Popen(
        ["git", "-C", str(workspace), *quiet, *words], stdin=subprocess.DEVNULL, env=environment, **options
    )


def _commit(workspace: Path, revision: str) -> str:
    process = _git(
        workspace, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    out, err = process.communicate(timeout=_GIT_SECONDS)
    if process.returncode != 0:
        words = err.decode("utf-8", "backslashreplace").strip().splitlines()
        raise Refused(
            CODE,
            f"{revision!r} is neither a folder nor a revision here" + (f": {words[0]}" if words else ""),
            remedy="Name a folder with the finished tree, or a commit of the workspace's repository.",
            place=Place(str(workspace)),
        )
    return out.decode("ascii").strip()


def _unpack(archive: IO[bytes], target: Path) -> None:
    """Unpack files, folders and links; anything else, and any name that leaves the folder, is refused."""
    with tarfile.open(fileobj=archive, mode="r|") as tar:
        for member in tar:
            name = member.name.rstrip("/")
            if member.type == tarfile.XGLTYPE or not name:
                continue
            if workspace_path_fault(name) is not None:
                raise Refused(CODE, f"the revision holds a name that leaves its folder: {name!r}")
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if any(parent.is_symlink() for parent in path.parents if parent != target and target in parent.parents):
                raise Refused(CODE, f"the revision holds a name beneath a link: {name!r}")
            if member.isdir():
                path.mkdir(exist_ok=True)
            elif member.issym():
                path.symlink_to(member.linkname)
            elif member.isreg():
                source = tar.extractfile(member)
                assert source is not None
                with source, open(path, "xb") as file:
                    shutil.copyfileobj(source, file)
                path.chmod(member.mode & _MODE_BITS | 0o600)


def materialise(reference: str | Path, workspace: Path, target: Path) -> dict[str, Any]:
    """Lay out a reference tree in ``target``, which must not exist, and say what it is.

    Args:
        reference: a folder, or a revision of the repository that the workspace lies in (its part of it is taken).
        workspace: the workspace.
        target: where to lay it out, without caches.

    Raises:
        Refused: ``E_REFERENCE`` when it is neither, or holds what cannot be laid out.
    """
    folder = Path(reference)
    if folder.is_dir():
        copy_workspace(folder, snapshot(folder), target)
        return {"kind": "folder"}
    commit = _commit(workspace, str(reference))
    raw = target.with_name(target.name + "-archive")
    raw.mkdir(parents=True)
    process = _git(workspace, "archive", "--format=tar", commit, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    broken: str | None = None
    try:
        with process.stdout, process.stderr:
            try:
                _unpack(process.stdout, raw)
                # What tar leaves unread is padding; git must be able to write it.
                while process.stdout.read(1 << 16):
                    pass
            except tarfile.TarError as fault:
                broken = str(fault)
            words = process.stderr.read(2000).decode("utf-8", "backslashreplace").strip()
    finally:
        # Both pipes are closed: whatever git still writes ends it.
        code = process.wait(timeout=_GIT_SECONDS)
    if code != 0 or broken is not None:
        raise Refused(CODE, f"git could not lay out {commit[:12]}: {words or broken}", place=Place(str(workspace)))
    copy_workspace(raw, snapshot(raw), target)
    shutil.rmtree(raw)
    return {"kind": "revision", "commit": commit}
