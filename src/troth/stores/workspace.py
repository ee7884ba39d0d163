"""The workspace: a folder with ``.mentu`` inside, and the settings in ``.mentu/config.yaml`` (ledger spec §1 [D1])."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from troth.core.errors import Place, Refused
from troth.core.strictjson import has_unpaired_surrogate
from troth.stores.durable import create_whole, os_fault, read_regular, sync_folder

FOLDER: Final = ".mentu"
LEDGER: Final = "ledger.jsonl"
CONFIG: Final = "config.yaml"
AGENTS: Final = "AGENTS.md"
GENESIS: Final = "genesis.key"
LOCK: Final = ".lock"

CONFIG_LIMIT: Final = 1 << 18
"""Longest ``config.yaml`` read, in bytes: settings, never data."""

_NAME: Final = re.compile(r"\S{1,128}\Z")
_NO_WORKSPACE: Final = "Create one with `troth init`, or name a ledger with --store."


@dataclass(frozen=True, slots=True)
class Config:
    """Local settings.

    ``workspace`` is the name written into rows, ``actor`` the default actor, ``unhashed_prefix`` the exact number
    of unhashed rows permitted (``None``: any), ``validators`` name -> argument vector, ``genesis_signers`` the public
    keys of which one must have signed the genesis key. ``other`` holds the
    members that belong to other parts of the tool, as parsed. ``sandboxed`` names the validators that run in a sandbox.
    """

    workspace: str | None = None
    actor: str | None = None
    unhashed_prefix: int | None = None
    validators: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    other: Mapping[str, Any] = field(default_factory=dict)
    genesis_signers: tuple[str, ...] = ()
    sandboxed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Workspace:
    """A folder that holds ``.mentu``, and where things stand in it."""

    root: Path

    @property
    def folder(self) -> Path:
        """Return ``.mentu``."""
        return self.root / FOLDER

    @property
    def ledger(self) -> Path:
        """Return the ledger file."""
        return self.folder / LEDGER

    @property
    def lock(self) -> Path:
        """Return the write lock."""
        return self.folder / LOCK

    @property
    def config_file(self) -> Path:
        """Return the settings file."""
        return self.folder / CONFIG

    @property
    def agents_file(self) -> Path:
        """Return the instructions for agents."""
        return self.folder / AGENTS

    @property
    def genesis_file(self) -> Path:
        """Return the optional constitution."""
        return self.folder / GENESIS

    def config(self) -> Config:
        """Read the settings; a missing file gives the defaults.

        Raises:
            Refused: ``E_CONFIG`` when the file cannot be understood.
        """
        return read_config(self.config_file)


def here() -> Path:
    """Return the current folder.

    Raises:
        Refused: ``E_NO_FOLDER`` when it was removed.
    """
    try:
        return Path.cwd()
    except OSError as fault:
        raise os_fault(
            "E_NO_FOLDER", fault, Path(), "the current folder is gone", "Change to one that exists."
        ) from None


def absolute(path: Path) -> Path:
    """Return the path from the root on, without ``..``.

    Raises:
        Refused: as :func:`here`.
    """
    return Path(os.path.abspath(path if path.is_absolute() else here() / path))


def find_workspace(start: Path) -> Workspace:
    """Return the workspace of a folder: itself or the nearest folder above it that holds ``.mentu``.

    Raises:
        Refused: ``E_NO_WORKSPACE`` when there is none, ``E_NOT_REGULAR`` when ``.mentu`` is no plain folder.
    """
    start = absolute(start)
    for candidate in (start, *start.parents):
        folder = candidate / FOLDER
        if os.path.lexists(folder):
            return _checked(Workspace(candidate))
    raise Refused(
        "E_NO_WORKSPACE",
        f"no {FOLDER} folder in this folder or above it",
        place=Place(file=str(start)),
        remedy=_NO_WORKSPACE,
    )


def workspace_at(root: Path) -> Workspace:
    """Return the workspace of exactly this folder, which may also be the ``.mentu`` folder itself.

    Raises:
        Refused: as :func:`find_workspace`.
    """
    root = absolute(root)
    if root.name == FOLDER and os.path.isdir(root):
        return _checked(Workspace(root.parent))
    if not os.path.lexists(root / FOLDER):
        raise Refused("E_NO_WORKSPACE", f"no {FOLDER} folder there", place=Place(file=str(root)), remedy=_NO_WORKSPACE)
    return _checked(Workspace(root))


def _checked(found: Workspace) -> Workspace:
    # A link could lead into a place that the watched agent can write.
    if found.folder.is_symlink():
        raise Refused(
            "E_NOT_REGULAR",
            f"{FOLDER} is a symbolic link",
            place=Place(file=str(found.folder)),
            remedy="Name the folder it leads to with --store.",
        )
    if not found.folder.is_dir():
        raise Refused("E_NOT_REGULAR", f"{FOLDER} is not a folder", place=Place(file=str(found.folder)))
    return found


def read_config(path: Path) -> Config:
    """Read a settings file; an absent one gives the defaults.

    Raises:
        Refused: ``E_CONFIG`` with one line that says what is wrong and where.
    """
    if not os.path.lexists(path):
        return Config()
    return parse_config(read_regular(path, CONFIG_LIMIT, "E_CONFIG", "config.yaml"), path)


def parse_config(data: bytes, path: Path) -> Config:
    """Parse settings: a YAML 1.2 mapping, repeated keys refused.

    Raises:
        Refused: ``E_CONFIG``.
    """
    value = _yaml(data, path)
    if value is None:
        return Config()
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise _config_fault(path, "the settings are not a mapping of names")
    known = dict(value)
    name = known.pop("workspace", None)
    if name is not None and not is_workspace_name(name):
        raise _config_fault(path, "`workspace` is text of 1 to 128 characters without white space", "$.workspace")
    actor = known.pop("actor", None)
    if actor is not None and not isinstance(actor, str):
        raise _config_fault(path, "`actor` is text such as human:NAME", "$.actor")
    prefix = known.pop("unhashed_prefix", None)
    if prefix is not None and (type(prefix) is not int or prefix < 0):
        raise _config_fault(path, "`unhashed_prefix` is a number of rows, 0 or more", "$.unhashed_prefix")
    validators: dict[str, tuple[str, ...]] = {}
    sandboxed = set()
    for label, value in _mapping(known.pop("validators", None), path).items():
        argv = value
        if isinstance(value, dict):
            if value.keys() - {"run", "sandbox"} or not isinstance(value.get("sandbox", False), bool):
                raise _config_fault(path, "a validator has `run` and `sandbox: true|false`", f"$.validators.{label}")
            argv = value.get("run")
            if value.get("sandbox"):
                sandboxed.add(label)
        if not isinstance(argv, list) or not argv or not all(isinstance(word, str) for word in argv):
            raise _config_fault(path, "a validator is a list of words: program and arguments", f"$.validators.{label}")
        validators[label] = tuple(argv)
    signers = known.pop("genesis_signers", None)
    if signers is not None and not (isinstance(signers, list) and all(isinstance(key, str) for key in signers)):
        raise _config_fault(path, "`genesis_signers` is a list of public keys, NAME+ID+BASE64", "$.genesis_signers")
    return Config(name, actor, prefix, validators, known, tuple(signers or ()), frozenset(sandboxed))


def _mapping(value: Any, path: Path) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        raise _config_fault(path, "`validators` maps names to lists of words", "$.validators")
    return value


def _yaml(data: bytes, path: Path) -> Any:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as fault:
        raise _config_fault(path, f"byte {fault.start} is not UTF-8") from None
    import warnings

    # Imported here: a command that reads no settings should not pay for it.
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # such as an anchor used twice, which YAML allows
            return YAML(typ="safe", pure=True).load(text)
    except MarkedYAMLError as fault:
        line = fault.problem_mark.line + 1 if fault.problem_mark is not None else None
        problem = " ".join((fault.problem or "not YAML").split())
        raise _config_fault(path, problem, line=line) from None
    except (YAMLError, ValueError, TypeError, AttributeError, LookupError, RecursionError) as fault:
        # ruamel.yaml lets some construction errors through as they are: an impossible date, an unhashable key, `!!int`
        # of nothing.
        raise _config_fault(path, " ".join(str(fault).split()) or "not YAML") from None


def _config_fault(path: Path, message: str, where: str | None = None, line: int | None = None) -> Refused:
    return Refused(
        "E_CONFIG",
        message,
        place=Place(file=str(path), line=line, path=where),
        remedy="Correct the file, or remove it to use the defaults.",
    )


def is_workspace_name(value: object) -> bool:
    """Tell whether the value may name a workspace in a row (ledger spec §2)."""
    return isinstance(value, str) and _NAME.match(value) is not None and not has_unpaired_surrogate(value)


def name_for(root: Path) -> str:
    """Return a workspace name made from the folder's own name."""
    name = re.sub(r"\s+", "-", root.name)[:128]
    return name if is_workspace_name(name) and name.isprintable() else "default"


def create_workspace(
    root: Path, *, name: str | None, agents_text: str, key: Mapping[str, bytes] | None = None
) -> tuple[Workspace, list[str]]:
    """Create what a workspace lacks; never touch what is there.

    Args:
        root: a folder, made when its parent is there; ``.mentu`` itself stands for the one that holds it.
        name: the name written into rows; by default made from the folder's name.
        agents_text: content of ``AGENTS.md``.
        key: content of the genesis key and its signature, by file name, found valid before.

    Returns:
        The workspace, and the names of the files created (none when it was complete).

    Raises:
        Refused: ``E_USAGE`` for a bad name, ``E_NO_FOLDER`` when the folder is absent, ``E_NOT_REGULAR``,
            ``E_UNREADABLE`` when it cannot be written.
    """
    root = absolute(root)
    if name is not None and not (is_workspace_name(name) and name.isprintable()):
        raise Refused("E_USAGE", "a workspace name has 1 to 128 printable characters and no white space")
    if not os.path.lexists(root) and root.name != FOLDER and os.path.isdir(root.parent):
        _make_folder(root)
    if not os.path.isdir(root):
        raise Refused("E_NO_FOLDER", "the folder is not there", place=Place(file=str(root)))
    space = Workspace(root.parent if root.name == FOLDER else root)
    if os.path.lexists(space.folder):
        _checked(space)
    files = (
        # The lock is made here so that a refused command changes nothing; the ledger comes last, and while it is
        # missing no command takes the workspace for a complete one.
        (space.config_file, config_text(name or name_for(space.root)).encode()),
        (space.agents_file, agents_text.encode()),
        *((space.folder / name, data) for name, data in (key or {}).items()),
        (space.lock, b""),
        (space.ledger, b""),
    )
    try:
        if not space.folder.exists():
            space.folder.mkdir(exist_ok=True)
            sync_folder(space.root)
        return space, [path.name for path, data in files if create_whole(path, data)]
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, space.folder, "the workspace cannot be created") from None


def _make_folder(root: Path) -> None:
    try:
        root.mkdir()
        sync_folder(root.parent)
    except FileExistsError:
        return  # somebody else was quicker
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, root, "the folder cannot be made") from None


def config_text(name: str) -> str:
    """Return the settings that ``init`` writes."""
    import json

    return (
        "# Local settings of this workspace.\n"
        # A JSON string of printable characters is a YAML string with the same meaning.
        f"workspace: {json.dumps(name, ensure_ascii=False)}\n"
        "# Default actor of this machine, used when neither --as nor TROTH_ACTOR is given.\n"
        "# actor: human:NAME\n"
        "# Exact number of rows without a hash that may stand before the first hashed one.\n"
        "unhashed_prefix: 0\n"
    )
