"""Where compilers stand that a user keeps in a home, and the packages that were fetched for them.

What rustup puts into the search path are stand-ins: the programs stand in a toolchain elsewhere in the home, which its
settings name. They are read, and no program is asked. What a build would fetch, and without a network cannot, stands in
a store; one that is named among a contract's tools is found inside where its program looks for it (``places``).
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

RUSTUP: Final = "rustup"
_MOST: Final = 1 << 16
"""Bytes of a settings file that is read."""

_STORES: Final[Sequence[tuple[str, tuple[str, ...], str]]] = (
    # name of the folder, one of the names in it, and where its program looks for it below the home
    ("registry", ("cache", "src"), ".cargo/registry"),
    ("git", ("checkouts",), ".cargo/git"),
    ("mod", ("cache/download",), "go/pkg/mod"),
)


def _table(path: Path) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            return tomllib.loads(file.read(_MOST).decode())
    except (OSError, ValueError):
        return {}


def _first_line(path: Path) -> str:
    try:
        with open(path, "rb") as file:
            return file.read(_MOST).decode("utf-8", "replace").strip().partition("\n")[0]
    except OSError:
        return ""


def _asked_for(workspace: Path, settings: Mapping[str, Any], environ: Mapping[str, str]) -> Iterator[Any]:
    """Yield the toolchains that may be meant, the nearest first, as rustup looks for them."""
    yield environ.get("RUSTUP_TOOLCHAIN", "")
    overrides = settings.get("overrides")
    for folder in (workspace, *workspace.parents):
        yield overrides.get(str(folder), "") if isinstance(overrides, dict) else ""
        for name in ("rust-toolchain", "rust-toolchain.toml"):
            named = _table(folder / name).get("toolchain")
            yield named.get("channel", "") if isinstance(named, dict) else ""
        yield _first_line(folder / "rust-toolchain")
    yield settings.get("default_toolchain", "")


def rust_toolchain(workspace: Path, *, home: Path, environ: Mapping[str, str] | None = None) -> Path | None:
    """Return the folder of the toolchain whose cargo a user of rustup gets in a workspace, if it is installed."""
    known = os.environ if environ is None else environ
    rustup = Path(known.get("RUSTUP_HOME") or home / ".rustup")
    for name in _asked_for(workspace, _table(rustup / "settings.toml"), known):
        if name == "":
            continue
        if not isinstance(name, str) or "/" in name or name.startswith((".", "[")):
            return None
        # A channel is written without the machine's name: "stable" for "stable-x86_64-unknown-linux-gnu".
        found = sorted((rustup / "toolchains").glob(f"{_plain(name)}-[!0-9]*"))
        exact = rustup / "toolchains" / name
        return next((path for path in (exact, *found) if (path / "bin" / "cargo").is_file()), None)
    return None


def _plain(name: str) -> str:
    return "".join(f"[{char}]" if char in "*?[" else char for char in name)


def fetched(program: str, *, home: Path, environ: Mapping[str, str] | None = None) -> list[Path]:
    """Return the stores in which this machine has what cargo or go has fetched."""
    known = os.environ if environ is None else environ
    if program == "cargo":
        cargo = Path(known.get("CARGO_HOME") or home / ".cargo")
        candidates = [cargo / "registry", cargo / "git"]
    elif program == "go":
        first = known.get("GOPATH", "").partition(os.pathsep)[0]
        candidates = [Path(known.get("GOMODCACHE") or (Path(first) if first else home / "go") / "pkg" / "mod")]
    else:
        return []
    return [path for path in candidates if path.is_absolute() and _place_of(path) is not None]


def _place_of(tool: Path) -> str | None:
    for name, inner, place in _STORES:
        if tool.name == name and any((tool / each).is_dir() for each in inner):
            return place
    return None


def places(tools: Iterable[Path], home: str) -> tuple[tuple[str, str], ...]:
    """Return the links with which the stores among the tools are found inside, as (target, place).

    Args:
        tools: the folders that are shown.
        home: the path of the home inside.
    """
    found: dict[str, str] = {}
    for tool in tools:
        place = _place_of(tool)
        if place is not None:
            found.setdefault(f"{home}/{place}", str(tool))
    return tuple((target, place) for place, target in found.items())
