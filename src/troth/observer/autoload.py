"""Names that a test runner or the interpreter loads by itself, and where they are sealed (done records §13.4). Pure.

A file of such a name changes what is graded by its mere appearance, so a contract seals it wherever the runner would
read it: as it is where it exists, as absent where it does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from troth.core.digests import EMPTY
from troth.observer.protected import Entry
from troth.observer.runners import Runner
from troth.receipts.protection import directory_digest

EVERYWHERE: Final = ("conftest.py", "pytest.ini", "setup.cfg", "tox.ini", "sitecustomize.py", "usercustomize.py")
"""Sealed as absent at the workspace's root whatever the runner."""

PYTEST_SETTINGS: Final = (
    "pytest.ini",
    ".pytest.ini",
    "pytest.toml",
    ".pytest.toml",
    "pyproject.toml",
    "tox.ini",
    "setup.cfg",
)
"""Where pytest reads its settings, in a test path's folder or any parent of it."""

SHADOWS: Final[Mapping[Runner, tuple[str, ...]]] = {
    # `python -m` puts the current folder before everything: a file of the runner's own name replaces the runner.
    "pytest": ("pytest.py", "pytest", "_pytest", "pluggy.py", "pluggy", "iniconfig.py", "iniconfig"),
    "unittest": ("unittest.py", "unittest"),
    "node": (),
    "npm": (),
    "go": (),
    "cargo": (),
    "other": (),
}

DIRECTS: Final[Mapping[Runner, tuple[str, ...]]] = {
    # Which compiler is taken, and what stands in for the test programs; another module in place of one that is used.
    "cargo": (".cargo/config.toml", ".cargo/config", "rust-toolchain", "rust-toolchain.toml"),
    "go": ("go.work",),
}
"""Settings that a runner reads at the workspace's root and that decide what it runs."""

BYTECODE: Final = "__pycache__"

PLUGIN_LISTS: Final = "entry_points.txt"
"""The file of a package's metadata that makes pytest import plugins, wherever it stands on the interpreter's path."""

METADATA: Final = (".egg-info", ".dist-info")
"""Endings, in any case, of the folders that the interpreter takes for a package's metadata."""

_ENVIRONMENT_MARK: Final = "pyvenv.cfg"
_MODULES: Final = "node_modules"
_MOST_CONFTEST_PLACES: Final = 200


def _parents(path: str) -> list[str]:
    """Return the folders above a path, from the root (``""``) down."""
    parts = path.split("/")[:-1]
    return ["", *("/".join(parts[: count + 1]) for count in range(len(parts)))]


def is_metadata(segment: str) -> bool:
    """Tell whether a name is that of a package's metadata folder."""
    return segment.lower().endswith(METADATA)


def names_plugins(path: str) -> bool:
    """Tell whether what stands at a path can make a runner load plugins: a list of them, or a link to metadata."""
    folder, _, name = path.rpartition("/")
    return is_metadata(name) or (name == PLUGIN_LISTS and is_metadata(folder.rpartition("/")[2]))


def folders_of(files: Iterable[str]) -> set[str]:
    """Return every folder that holds one of the files, and their parents; the root is ``""``."""
    found: set[str] = set()
    for path in files:
        while path:
            path = path.rpartition("/")[0]  # noqa: PLW2901 - climbing is the point
            if path in found:
                break
            found.add(path)
    return found | {""}


def test_places(argv: Sequence[str], files: Collection[str], folders: Collection[str]) -> tuple[set[str], bool]:
    """Return the folders a runner reads for the paths its vector names, and whether it names any."""
    places: set[str] = set()
    named = False
    for word in argv[1:]:
        path = word.split("::", 1)[0].removeprefix("./").rstrip("/")
        if path in files or (path and path in folders):
            named = True
            places.update(_parents(path))
            if path in folders:
                places.add(path)
    return places, named


def _under(place: str, name: str) -> str:
    return f"{place}/{name}" if place else name


def names_to_seal(
    commands: Iterable[tuple[Sequence[str], Runner]],
    files: Mapping[str, str],
    protected: Sequence[Entry],
) -> list[str]:
    """Return the paths to seal beside what the contract protects by name, sorted.

    Args:
        commands: the acceptance vectors and the runner each starts.
        files: the start tree.
        protected: the entries that the contract names itself; what they cover needs no sealing of its own.
    """
    folders = folders_of(files)
    wanted = set(EVERYWHERE)
    settings_matter = False
    for argv, runner in commands:
        settings_matter = settings_matter or runner != "unittest"
        wanted.update((*SHADOWS[runner], *DIRECTS.get(runner, ())))
        if runner != "pytest":
            continue
        places, named = test_places(argv, files, folders)
        places |= {place for entry in protected for place in _parents(entry.path)} | {""}
        for place in places:
            wanted.update(_under(place, name) for name in PYTEST_SETTINGS)
        if not named:
            # Without a path pytest walks the whole workspace and loads every conftest it meets.
            places |= set(sorted(folder for folder in folders if not _hidden(folder))[:_MOST_CONFTEST_PLACES])
        wanted.update(_under(place, "conftest.py") for place in places)
    if settings_matter:
        wanted.add("pyproject.toml")
    else:
        # unittest reads none of these: one that exists is an ordinary file of the task.
        wanted -= {name for name in ("setup.cfg", "tox.ini", "pytest.ini", "conftest.py") if name in files}
    # A package of the runner's name that is there already is the project's own (the project may be that runner).
    present = {name for shadows in SHADOWS.values() for name in shadows if name in files or name in folders}
    return sorted(name for name in wanted - present if not any(entry.covers(name) for entry in protected))


def _hidden(folder: str) -> bool:
    return any(part.startswith(".") or part in ("node_modules", BYTECODE) for part in folder.split("/") if part)


def environments(files: Iterable[str]) -> list[str]:
    """Return the folders of the tree that hold what the commands run with: Python environments, and node's modules.

    A start-up module or a ``*.pth`` of the one, a test runner in the other, decides what is graded.
    """
    found: set[str] = set()
    for path in files:
        folder, _, name = path.rpartition("/")
        if name == _ENVIRONMENT_MARK and folder:
            found.add(folder)
        parts = folder.split("/")
        if _MODULES in parts:
            found.add("/".join(parts[: parts.index(_MODULES) + 1]))
    return sorted(found)


def sealed_entries(names: Iterable[str], files: Mapping[str, str], open_names: Collection[str]) -> list[Entry]:
    """Return the entries that seal the names as the tree has them: a file by its digest, an absent one by nothing's."""
    return [
        Entry(name, "file", files[name]) if name in files else Entry(name, "directory", EMPTY)
        for name in names
        if name not in open_names and not any(path.startswith(name + "/") for path in files)
    ]


def environment_entries(
    files: Mapping[str, str], protected: Sequence[Entry], open_names: Collection[str]
) -> list[Entry]:
    """Return the entries that seal the tree's environments (:func:`environments`) whole, but for bytecode."""
    return [
        Entry(folder, "directory", directory_digest(folder, (BYTECODE,), files), (BYTECODE,))
        for folder in environments(files)
        if folder not in open_names and not any(entry.covers(folder) for entry in protected)
    ]
