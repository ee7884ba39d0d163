"""A contract as a person writes it: a small TOML file, read strictly.

The whole form::

    task = "make the header parser accept folded lines"   # optional
    contract_id = "folded-lines"                           # optional: file name and short digest of the file
    seal_names = true                                      # seal the names a test runner loads by itself
    leave_open = ["pyproject.toml"]                        # of those names, the ones the task may touch
    must_not_appear = [".mocharc.js"]                      # further names that are sealed as absent
    tools = ["../venv"]                                    # folders outside of the workspace that the commands need

    [[protect]]
    path = "tests"
    exclude = ["snapshots"]                                # segments below it that are not protected

    [[acceptance]]
    id = "suite"
    argv = ["python", "-m", "pytest", "-q", "tests"]

    [adequacy]
    mutants_in = ["src"]                                   # default: every unprotected source file
    max = 40                                               # mutants that are run

    [limits]                                               # of one acceptance command
    seconds = 600
    memory_mb = 4096
    processes = 512
    output_mb = 4
    file_mb = 1024
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused

CODE: Final = "E_CONTRACT_SOURCE"

MAX_SOURCE: Final = 1 << 20
"""Bytes a contract file may have."""

DEFAULT_MUTANTS: Final = 40
MAX_MUTANTS: Final = 100_000

_MIB: Final = 1 << 20
_OUTSIDE: Final = (".git", ".mentu")
_TOML_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class Protect:
    """One path to protect; ``exclude`` holds the segments below it that are not."""

    path: str
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Acceptance:
    """One acceptance command."""

    id: str
    argv: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What one acceptance command may use. ``memory_bytes`` is per process, ``output_bytes`` what is kept of it."""

    seconds: float = 600
    memory_bytes: int = 4096 * _MIB
    processes: int = 512
    output_bytes: int = 4 * _MIB
    file_bytes: int = 1024 * _MIB

    def as_json(self) -> dict[str, Any]:
        """Return the limits as a seal carries them."""
        return {
            "seconds": self.seconds,
            "memory_bytes": self.memory_bytes,
            "processes": self.processes,
            "output_bytes": self.output_bytes,
            "file_bytes": self.file_bytes,
        }

    @classmethod
    def from_json(cls, value: object) -> RunLimits:
        """Read what ``as_json`` wrote; a member that is missing or no positive number keeps its default."""
        if not isinstance(value, dict):
            return cls()
        known = cls().as_json()
        kept = {
            name: value[name] if name == "seconds" else int(value[name])
            for name in known
            if isinstance(value.get(name), int | float) and not isinstance(value[name], bool) and value[name] > 0
        }
        return cls(**{**known, **kept})


@dataclass(frozen=True, slots=True)
class ContractSource:
    """A contract file after the door: paths are normalized, ids distinct, argument vectors well formed."""

    file: str
    contract_id: str
    acceptance: tuple[Acceptance, ...]
    task: str | None = None
    protect: tuple[Protect, ...] = ()
    seal_names: bool = True
    leave_open: tuple[str, ...] = ()
    must_not_appear: tuple[str, ...] = ()
    tools: tuple[str, ...] = ()
    mutants_in: tuple[str, ...] | None = None
    mutants_max: int = DEFAULT_MUTANTS
    limits: RunLimits = field(default_factory=RunLimits)
    sha256: str = ""


class _Reader:
    """One table of the file: takes its keys one by one and refuses what is left."""

    def __init__(self, file: str, path: str, value: object) -> None:
        self.file = file
        self.path = path
        if not isinstance(value, dict):
            raise self.refused(None, "is not a table", "Write it as a table with the keys of the documentation.")
        self.left: dict[str, Any] = dict(value)
        self.known: list[str] = []

    def place(self, key: str | None) -> Place:
        parts = [part for part in (self.path, key) if part]
        return Place(self.file, path=".".join(parts) or "$")

    def refused(self, key: str | None, found: str, remedy: str) -> Refused:
        place = self.place(key)
        return Refused(CODE, f"{place.path} {found}", remedy=remedy, place=place)

    def take(self, key: str, read: Callable[[_Reader, str, Any], Any], *, required: bool = False) -> Any:
        self.known.append(key)
        if key not in self.left:
            if required:
                raise self.refused(key, "is missing", f"Add {key} = … there.")
            return None
        return read(self, key, self.left.pop(key))

    def end(self) -> None:
        if self.left:
            key = min(self.left)
            raise self.refused(key, "is not a key of a contract", f"The keys here are {', '.join(self.known)}.")


def _text(reader: _Reader, key: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise reader.refused(key, "is not a text of one or more characters", f'Write {key} = "…".')
    return value


def _flag(reader: _Reader, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise reader.refused(key, "is neither true nor false", f"Write {key} = true or {key} = false.")
    return value


def _number(lowest: float, highest: float, *, whole: bool = True) -> Callable[[_Reader, str, Any], Any]:
    def read(reader: _Reader, key: str, value: Any) -> Any:
        kinds = int if whole else (int, float)
        if isinstance(value, bool) or not isinstance(value, kinds) or not lowest <= value <= highest:
            kind = "whole number" if whole else "number"
            raise reader.refused(key, f"is no {kind} from {lowest:g} to {highest:g}", f"Write {key} = {highest:g}.")
        return value

    return read


def workspace_path_fault(path: str) -> str | None:
    """Return what keeps a text from being a path inside a workspace (done records §3, *path*), or ``None``."""
    if not path:
        return "is empty"
    if "\0" in path:
        return "holds a NUL"
    if path.startswith("/") or re.match(r"[A-Za-z]:[\\/]", path):
        return "is absolute"
    segments = path.split("/")
    if ".." in segments:
        return "climbs out of its folder"
    if "" in segments or "." in segments:
        return "has an empty or '.' segment"
    return None


def _path(reader: _Reader, key: str, value: object) -> str:
    text = _text(reader, key, value)
    # One slash at the end is how people write a folder; the record knows no such form.
    text = text[:-1] if len(text) > 1 and text.endswith("/") else text
    fault = workspace_path_fault(text)
    if fault is not None:
        raise reader.refused(key, f"{fault}: {text!r}", "Write it relative to the workspace, as in 'tests/unit'.")
    if any(char in text for char in "*?"):
        raise reader.refused(
            key, f"is a pattern: {text!r}", "Name the folder itself; everything beneath it is protected."
        )
    if text.split("/", 1)[0] in _OUTSIDE:
        raise reader.refused(key, f"is no part of the tree: {text!r}", "Leave .git and .mentu out.")
    return text


def _array(reader: _Reader, key: str, value: object) -> list[Any]:
    if not isinstance(value, list):
        raise reader.refused(key, "is not an array", f"Write {key} = […].")
    return value


def _paths(reader: _Reader, key: str, value: object) -> tuple[str, ...]:
    return tuple(_path(reader, f"{key}[{index}]", item) for index, item in enumerate(_array(reader, key, value)))


def _folders(reader: _Reader, key: str, value: object) -> tuple[str, ...]:
    found = tuple(_text(reader, f"{key}[{index}]", item) for index, item in enumerate(_array(reader, key, value)))
    for index, item in enumerate(found):
        if not item.isprintable():
            raise reader.refused(f"{key}[{index}]", f"is no path: {item!r}", 'Write it as in "../venv".')
    return found


def _segments(reader: _Reader, key: str, value: object) -> tuple[str, ...]:
    found: list[str] = []
    for index, item in enumerate(_array(reader, key, value)):
        where = f"{key}[{index}]"
        segment = _text(reader, where, item)
        if segment in (".", "..") or "/" in segment or "\0" in segment:
            raise reader.refused(where, f"is not one segment of a path: {segment!r}", "Write one name, no slash.")
        if segment in found:
            raise reader.refused(where, f"stands twice: {segment!r}", "Write each name once.")
        found.append(segment)
    return tuple(found)


def _argv(reader: _Reader, key: str, value: object) -> tuple[str, ...]:
    remedy = 'Write each argument by itself, as in ["python", "-m", "pytest", "-q"].'
    if not isinstance(value, list) or not value:
        raise reader.refused(key, "is not an array of one or more texts", remedy)
    for index, item in enumerate(value):
        if not isinstance(item, str) or "\0" in item:
            raise reader.refused(f"{key}[{index}]", "is not a text without NUL", remedy)
    if not value[0]:
        raise reader.refused(f"{key}[0]", "is empty, and it names the program", remedy)
    return tuple(value)


def _tables(reader: _Reader, key: str, value: object) -> list[_Reader]:
    return [_Reader(reader.file, f"{key}[{index}]", item) for index, item in enumerate(_array(reader, key, value))]


def _table(reader: _Reader, key: str, value: object) -> _Reader:
    return _Reader(reader.file, key, value)


def _limits(table: _Reader | None) -> RunLimits:
    if table is None:
        return RunLimits()
    standard = RunLimits()
    seconds = table.take("seconds", _number(0.1, 86_400, whole=False))
    memory = table.take("memory_mb", _number(16, 1 << 20))
    processes = table.take("processes", _number(1, 100_000))
    output = table.take("output_mb", _number(1, 1024))
    file = table.take("file_mb", _number(1, 1 << 20))
    table.end()
    return RunLimits(
        seconds=seconds or standard.seconds,
        memory_bytes=memory * _MIB if memory else standard.memory_bytes,
        processes=processes or standard.processes,
        output_bytes=output * _MIB if output else standard.output_bytes,
        file_bytes=file * _MIB if file else standard.file_bytes,
    )


def _default_id(file: str, digest: str) -> str:
    stem = _UNSAFE.sub("-", Path(file).stem).strip("-.") or "contract"
    return f"{stem}-{digest[:8]}"


def folder_name(contract_id: str) -> str:
    """Return a folder name for a contract: its id where that is a harmless name, else a shortened one."""
    safe = _UNSAFE.sub("-", contract_id).strip("-.")[:80]
    return safe if safe == contract_id else f"{safe or 'contract'}-{sha256_hex(contract_id.encode())[:8]}"


def parse_source(data: bytes, file: str) -> ContractSource:
    """Parse the bytes of a contract file.

    Args:
        data: the file's bytes.
        file: its name, for the default id and for the place of a refusal.

    Raises:
        Refused: ``E_CONTRACT_SOURCE`` with the file and the path of the key, and what to write instead.
    """
    import tomllib

    if len(data) > MAX_SOURCE:
        raise Refused(
            CODE,
            f"the contract has {len(data)} bytes, more than {MAX_SOURCE}",
            remedy="A contract names folders, not every file.",
            place=Place(file),
        )
    try:
        value: Mapping[str, Any] = tomllib.loads(data.decode("utf-8"))
    except UnicodeDecodeError as fault:
        raise Refused(
            CODE, f"byte {fault.start} is not UTF-8", remedy="Save the file as UTF-8.", place=Place(file)
        ) from None
    except tomllib.TOMLDecodeError as fault:
        found = _TOML_LINE.search(str(fault))
        raise Refused(
            CODE,
            f"not readable as TOML: {_TOML_LINE.sub('', str(fault)).strip()}",
            remedy="Mend that line; `troth contract seal --help` shows a whole contract.",
            place=Place(file, line=int(found[1]) if found else None),
        ) from None
    except (RecursionError, ValueError):
        raise Refused(
            CODE, "nesting or a number too large to read", remedy="Write plain tables.", place=Place(file)
        ) from None
    digest = sha256_hex(data)
    root = _Reader(file, "", value)
    task = root.take("task", _text)
    contract_id = root.take("contract_id", _text)
    seal_names = root.take("seal_names", _flag)
    leave_open = root.take("leave_open", _paths)
    must_not_appear = root.take("must_not_appear", _paths) or ()
    tools = root.take("tools", _folders) or ()
    protect = _read_protect(root)
    acceptance = _read_acceptance(root)
    adequacy = root.take("adequacy", _table)
    mutants_in = mutants_max = None
    if adequacy is not None:
        mutants_in = adequacy.take("mutants_in", _paths)
        mutants_max = adequacy.take("max", _number(0, MAX_MUTANTS))
        adequacy.end()
    limits = _limits(root.take("limits", _table))
    root.end()
    return ContractSource(
        file=file,
        contract_id=contract_id or _default_id(file, digest),
        acceptance=acceptance,
        task=task,
        protect=protect,
        seal_names=True if seal_names is None else seal_names,
        leave_open=leave_open or (),
        must_not_appear=tuple(dict.fromkeys(must_not_appear)),
        tools=tuple(dict.fromkeys(tools)),
        mutants_in=mutants_in,
        mutants_max=DEFAULT_MUTANTS if mutants_max is None else mutants_max,
        limits=limits,
        sha256=digest,
    )


def _read_protect(root: _Reader) -> tuple[Protect, ...]:
    entries: list[Protect] = []
    for table in root.take("protect", _tables) or []:
        path = table.take("path", _path, required=True)
        exclude = table.take("exclude", _segments) or ()
        table.end()
        if any(path == known.path for known in entries):
            raise table.refused("path", f"is protected twice: {path!r}", "Write each path once.")
        entries.append(Protect(path, exclude))
    return tuple(entries)


def _read_acceptance(root: _Reader) -> tuple[Acceptance, ...]:
    commands: list[Acceptance] = []
    for table in root.take("acceptance", _tables, required=True):
        identity = table.take("id", _text, required=True)
        argv = table.take("argv", _argv, required=True)
        table.end()
        if any(identity == known.id for known in commands):
            raise table.refused("id", f"stands twice: {identity!r}", "Give every command an id of its own.")
        commands.append(Acceptance(identity, argv))
    if not commands:
        raise root.refused("acceptance", "is empty", 'Add [[acceptance]] with id = "…" and argv = […].')
    return tuple(commands)


def read_source(path: Path) -> ContractSource:
    """Read and parse a contract file.

    Raises:
        Refused: ``E_CONTRACT_SOURCE`` when it cannot be read or breaks a rule.
    """
    try:
        # A pipe or a device would never end; a contract is a plain file.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            data = file.read(MAX_SOURCE + 1) or b""
    except OSError as fault:
        raise Refused(
            CODE,
            f"the contract cannot be read: {fault.strerror or fault}",
            remedy="Name a TOML file with at least one [[acceptance]] table.",
            place=Place(str(path)),
        ) from None
    return parse_source(data, str(path))
