"""The locks: pinned, hashed, without an address, and covering what pyproject.toml asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)\s*(?:;\s*(.*?))?\s*\\$")
HASH = re.compile(r"^    --hash=sha256:[0-9a-f]{64}( \\)?$")


ENVIRONMENTS = [
    {"python_version": version, "python_full_version": f"{version}.7", "sys_platform": platform}
    for version in ("3.11", "3.12", "3.13", "3.14")
    for platform in ("linux", "darwin", "win32")
]
"""Where a lock is to serve. A package may be pinned once for some of them and once for others."""


def read_pins(name: str) -> list[tuple[str, Version, Marker | None]]:
    """Return the pins of a lock, having read every line of it as what it must be."""
    pins: list[tuple[str, Version, Marker | None]] = []
    hashed: set[str] = set()
    for line in (ROOT / "locks" / name).read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        if match := PIN.match(line):
            marker = Marker(match[3]) if match[3] else None
            pins.append((canonicalize_name(match[1]), Version(match[2]), marker))
            continue
        assert HASH.match(line), f"{name}: {line!r} is neither a pin nor a hash"
        hashed.add(str(pins[-1][:2]))
    assert hashed == {str(pin[:2]) for pin in pins}, "a package without a hash"
    return pins


def read_lock(name: str, environment: dict[str, str] = ENVIRONMENTS[0]) -> dict[str, Version]:
    """Return the pins of a lock that count in an environment."""
    pins: dict[str, Version] = {}
    for package, version, marker in read_pins(name):
        if marker is None or marker.evaluate({**default_environment(), **environment}):
            assert package not in pins, f"{package} is pinned twice for {environment}"
            pins[package] = version
    return pins


def asked(group: str) -> list[Requirement]:
    """Return what pyproject.toml asks for in a group, groups within it included."""
    found: list[Requirement] = []
    for entry in PROJECT["dependency-groups"][group]:
        found += asked(entry["include-group"]) if isinstance(entry, dict) else [Requirement(entry)]
    return found


CORE = [Requirement(entry) for entry in PROJECT["project"]["dependencies"]]
SIGSTORE = [Requirement(entry) for entry in PROJECT["project"]["optional-dependencies"]["sigstore"]]


@pytest.mark.parametrize(
    ("lock", "requirements"),
    [
        ("core.txt", [*CORE, *asked("build")]),
        ("sigstore.txt", [*CORE, *asked("build"), *SIGSTORE]),
        ("dev.txt", [*CORE, *asked("dev")]),
    ],
)
@pytest.mark.parametrize("environment", ENVIRONMENTS, ids=lambda found: "-".join(found.values()))
def test_a_lock_covers_what_is_asked_for(
    lock: str, requirements: list[Requirement], environment: dict[str, str]
) -> None:
    pins = read_lock(lock, environment)
    for requirement in requirements:
        if requirement.marker is not None and not requirement.marker.evaluate({**default_environment(), **environment}):
            continue
        pinned = pins.get(canonicalize_name(requirement.name))
        assert pinned is not None, f"{requirement.name} is not in {lock}: run `make lock`"
        assert requirement.specifier.contains(pinned), f"{pinned} is not {requirement}: run `make lock`"


def test_the_development_lock_holds_the_very_pins_of_the_core() -> None:
    core, more, dev = read_lock("core.txt"), read_lock("sigstore.txt"), read_lock("dev.txt")
    assert {name: more.get(name) for name in core} == core
    assert {name: dev.get(name) for name in more} == more
    assert set(dev) > set(more) > set(core)


def test_the_core_brings_no_tool_of_development() -> None:
    tools = {canonicalize_name(entry.name) for entry in asked("dev")} - {
        canonicalize_name(entry.name) for entry in asked("build")
    }
    assert tools & set(read_lock("core.txt")) == set()


@pytest.mark.parametrize("lock", ["core.txt", "sigstore.txt", "dev.txt"])
def test_a_lock_says_how_it_is_made_and_names_no_address(lock: str) -> None:
    text = (ROOT / "locks" / lock).read_text(encoding="utf-8")
    assert text.startswith("# Made by `make lock`")
    assert "://" not in text
    assert "index" not in text


def test_every_dependency_says_why_it_is_there() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lines = re.findall(r'^    "[A-Za-z0-9_.-]+[><=][^"]*",.*$', text, re.MULTILINE)
    assert len(lines) >= len(CORE) + 6
    assert [line for line in lines if not re.search(r'",\s+# \w{3,}', line)] == []
