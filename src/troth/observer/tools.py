"""Tool folders: what the acceptance commands need that stands neither in the system nor in the workspace.

A virtual environment beside the workspace, a node under a prefix of its own, the Python that an environment was made
with. They are named when a contract is sealed and stand in its side report with a digest of what is in them; a run and
a grade show exactly these, read-only, and refuse when they are no longer what was sealed.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from troth.core.digests import sha256_hex, tree_digest
from troth.core.errors import Place, Refused
from troth.observer.copies import CACHES, is_cache
from troth.observer.folders import walk
from troth.observer.sandbox import toolchain
from troth.observer.toolchains import RUSTUP, rust_toolchain
from troth.observer.tree import Snapshot, snapshot

CHANGED: Final = "E_TOOLS_CHANGED"
UNFIT: Final = "E_TOOLS_UNFIT"

MAX_FILES: Final = 1_000_000
"""Files a tool folder may have: no record lists them, so only time bounds it."""

MAX_BYTECODE_FOLDERS: Final = 3_500
"""Folders of bytecode that can be hidden: each takes two of the 9,000 words that bubblewrap takes."""

MARK: Final = "pyvenv.cfg"
"""The file that makes a folder a Python environment."""

_SYSTEM: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_NEVER: Final = frozenset(
    {"/", "/boot", "/dev", "/etc", "/home", "/media", "/mnt", "/opt", "/proc", "/root", "/run", "/srv", "/sys", "/var"}
)
"""Folders that no sandbox shows whole."""

_STATE: Final = ("/dev", "/etc", "/proc", "/run", "/sys")
"""Folders of which no sandbox shows any part as tools."""

_MOST_LINKS: Final = 16


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool folder: the absolute path at which commands find it, and the digest of its files and links."""

    path: Path
    sha256: str
    files: int

    @property
    def words(self) -> str:
        """Return it in words for a person."""
        return f"{self.path}: {self.files:,} file{'' if self.files == 1 else 's'}, digest {self.sha256}"

    def as_json(self) -> dict[str, Any]:
        """Return it as a seal and a grade's report carry it."""
        return {"path": str(self.path), "sha256": self.sha256, "files": self.files}


def is_system(path: Path) -> bool:
    """Tell whether every sandbox shows the path already."""
    return any(path.is_relative_to(top) for top in _SYSTEM)


def unfit(path: Path, workspace: Path, home: Path) -> str | None:
    """Return why a folder cannot be shown to an agent as tools, or ``None``.

    Both what the path says and where its links lead are looked at: a whole home, the workspace or what holds one of
    them, and a folder of the system's state are none.
    """
    real = path.resolve()
    if not real.is_dir():
        return "is not a folder"
    for each in (path, real):
        if (
            str(each) in _NEVER
            or each == Path(tempfile.gettempdir())
            or any(each.is_relative_to(top) for top in _STATE)
        ):
            return "is a folder of the system's own"
        if home.is_relative_to(each) or home.resolve().is_relative_to(each):
            return "holds a home"
        if workspace.is_relative_to(each):
            return "holds the workspace"
        if each.is_relative_to(workspace):
            return "lies in the workspace, where the agent works"
    return None


def bases_of(environment: Path) -> list[Path]:
    """Return the prefixes outside of the system in which a Python environment's interpreter really stands.

    Every step of the way from its ``bin/python`` counts: an installer puts a name for a series between the two.
    """
    found: list[Path] = []
    link = environment / "bin" / "python"
    for _ in range(_MOST_LINKS):
        if not link.is_symlink():
            break
        link = Path(os.path.normpath(link.parent / os.readlink(link)))
        for prefix in (link.parent.parent, link.resolve().parent.parent):
            whole = any(prefix.glob("lib/python3*")) if prefix.is_dir() else False
            if whole and not (is_system(prefix) or prefix.is_relative_to(environment) or prefix in found):
                found.append(prefix)
    return found


def named_folders(names: Sequence[str], workspace: Path, file: str, *, home: Path | None = None) -> list[Path]:
    """Return the folders that a contract file names as tools, absolute; those of the system are left out.

    Args:
        names: absolute, relative to the workspace, or beginning with ``~/``.
        workspace: the folder that is sealed.
        file: the contract file, for the place of a refusal.
        home: the user's home.

    Raises:
        Refused: ``E_TOOLS_UNFIT`` for one that is absent, holds a home or the workspace, or lies in the workspace.
    """
    own = home if home is not None else Path.home()
    found: list[Path] = []
    for index, name in enumerate(names):
        text = str(own / name[2:]) if name.startswith("~/") else name
        path = Path(os.path.normpath(workspace / text))
        if is_system(path) or path in found:
            continue
        why = unfit(path, workspace, own)
        if why is not None:
            raise Refused(
                UNFIT, f"tools[{index}] {why}: {name!r}",
                remedy="Name the environment or the prefix itself, outside of the workspace. What the workspace holds "
                "is sealed with it and needs no naming.",
                place=Place(file, path=f"tools[{index}]"),
            )  # fmt: skip
        found.append(path)
    return found


def with_bases(
    named: Sequence[Path], environments: Iterable[str], workspace: Path, *, home: Path | None = None
) -> list[Path]:
    """Return the named folders and the Pythons that they and the workspace's own environments were made with.

    The Python that troth itself runs on is left out: every sandbox shows it.
    """
    own = home if home is not None else Path.home()
    found = list(named)
    for environment in (*named, *(workspace / name for name in environments)):
        for base in bases_of(environment):
            shown = any(base.is_relative_to(path) for path in (*found, *toolchain()))
            if not shown and unfit(base, workspace, own) is None:
                found.append(base)
    return found


def unread(path: Path) -> frozenset[str]:
    """Return the names at the top of a tool folder that are left out of its digest.

    Rust's documentation is most of a toolchain, and nothing that a command runs.
    """
    return frozenset({"share"} if (path / _RUST).is_dir() else ())


def _digest(tree: Snapshot) -> str:
    """Return the tree digest of files and links, without the bytecode that whoever uses the folder leaves in it.

    A link in the place of a folder of bytecode is none: it stands in the digest.
    """
    files = {name: digest for name, digest in tree.files.items() if not is_cache(name)}
    links = {
        name: sha256_hex(text.encode()) for name, text in tree.symlinks.items() if not is_cache(name.rpartition("/")[0])
    }
    return tree_digest({**files, **links})


def _read(path: Path) -> Tool:
    tree = snapshot(path, outside=unread(path), max_files=MAX_FILES, max_bytes=None)
    return Tool(path, _digest(tree), sum(not is_cache(name) for name in tree.files))


def unsealed_folders(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the folders within tool folders that no digest holds and no command is shown: bytecode, documentation.

    Raises:
        Refused: ``E_TOOLS_UNFIT``: there are more than a sandbox can be told of.
    """
    found: list[Path] = []
    for path in paths:
        beside = unread(path)
        found += [path / name for name in sorted(beside) if (path / name).is_dir()]
        for folder, names, _ in walk(str(path)):
            if folder == str(path):
                names[:] = [name for name in names if name not in beside]
            found += [Path(folder, name) for name in names if name in CACHES]
            names[:] = [name for name in names if name not in CACHES]
        if len(found) > MAX_BYTECODE_FOLDERS:
            raise Refused(
                UNFIT, f"the tools in {path} hold more than {MAX_BYTECODE_FOLDERS:,} folders of bytecode",
                remedy="Remove them, they are only a cache: find DIR -name __pycache__ -prune -exec rm -r {} +",
                place=Place(str(path)),
            )  # fmt: skip
    return tuple(found)


def read_tools(paths: Iterable[Path]) -> tuple[Tool, ...]:
    """Return each folder with the digest of what is in it now.

    Raises:
        Refused: ``E_TREE_UNREADABLE`` for one that cannot be listed.
    """
    return tuple(map(_read, paths))


def tools_of(seal: Mapping[str, Any] | None) -> tuple[Tool, ...]:
    """Return the tools that a contract's side report names; none without a report.

    Raises:
        Refused: ``E_SEAL_MALFORMED``: they are not what sealing wrote.
    """
    items = (seal or {}).get("tools", [])
    try:
        tools = tuple(Tool(Path(item["path"]), item["sha256"], item["files"]) for item in items)
        whole = all(tool.path.is_absolute() and isinstance(tool.sha256, str) for tool in tools)
    except (TypeError, KeyError):
        whole = False
    if not whole:
        raise Refused(
            "E_SEAL_MALFORMED", "the report beside the contract names tools that are none",
            remedy="Seal it anew with: troth contract seal FILE.toml",
        )  # fmt: skip
    return tools


def require_tools(tools: Sequence[Tool], *, writable: Sequence[Path] = ()) -> tuple[Path, ...]:
    """Return the folders of sealed tools, which are still what was sealed and which nobody watched can write.

    Args:
        tools: what the seal names.
        writable: folders that the agent may write to.

    Raises:
        Refused: ``E_TOOLS_UNFIT`` for one that the agent could write; ``E_TOOLS_CHANGED`` for one that is gone or holds
            something else.
    """
    for tool in tools:
        real = tool.path.resolve()
        for open_path in writable:
            if real.is_relative_to(open_path.resolve()) or open_path.resolve().is_relative_to(real):
                raise Refused(
                    UNFIT, f"the agent may write to {open_path}, and what it is judged with stands in {tool.path}",
                    remedy="Take that --allow-write away.", place=Place(str(tool.path)),
                )  # fmt: skip
        now = _read(tool.path).sha256 if tool.path.is_dir() else None
        if now != tool.sha256:
            raise Refused(
                CHANGED,
                f"the tools in {tool.path} are {'gone' if now is None else 'no longer what was sealed'}",
                remedy="Put them back, or seal the contract anew with the tools as they are.",
                place=Place(str(tool.path)),
                detail={"sealed": tool.sha256, "found": now},
            )
    return tuple(tool.path for tool in tools)


_RUST: Final = "lib/rustlib"
_WHOLE: Final = (MARK, "conda-meta", "bin/node", _RUST, "pkg/tool")
"""What tells that a folder is an environment or a prefix of its own, and not one where a user keeps this and that."""


def prefix_of(program: str, workspace: Path, *, home: Path | None = None) -> Path | None:
    """Return the environment or prefix in which this machine finds a program that no sandbox shows by itself.

    ``None`` for a program of the system, of the workspace or of troth's own environment, and where what it stands in is
    no environment.
    """
    found = shutil.which(program) if "/" not in program else None
    if found is None:
        return None
    own = home if home is not None else Path.home()
    place = Path(os.path.abspath(found))
    if place.resolve().name == RUSTUP:
        return rust_toolchain(workspace, home=own)
    for prefix in (place.parent.parent, place.resolve().parent.parent):
        if is_system(prefix) or any(prefix.is_relative_to(path) for path in (workspace, *toolchain())):
            return None
        if any((prefix / name).exists() for name in _WHOLE) and unfit(prefix, workspace, own) is None:
            return prefix
    return None


def elsewhere(program: str, workspace: Path) -> str:
    """Return where this machine has a program that the sandbox does not show, as the end of a sentence; or nothing."""
    try:
        found = shutil.which(program)
    except ValueError:
        return ""  # a NUL, or no UTF-8
    if found is None:
        return ""
    place = Path(os.path.abspath(found)).parent
    prefix = prefix_of(program, workspace) or (place.parent if place.name == "bin" else place)
    return f"; it stands at {found}, which no sandbox shows until the contract has tools = [{json.dumps(str(prefix))}]"


def search_path(tools: Sequence[Path]) -> list[str]:
    """Return the folders with the tools' programs, which come first where programs are looked up by name."""
    return [str(path / "bin") for path in tools if (path / "bin").is_dir()]
