"""Which commands are checks: programs whose exit says something about the work as a whole. Pure.

A tool call that was a check and passed is held to the end of the run, as the agent's word on what it leaves. Any other
call (a look at a file, a search, a failing run before the mend) says what happened at its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from troth.observer.runners import module_of, recognise, unwrapped

_ALWAYS: Final = frozenset(
    {
        "mypy", "pyright", "pyre", "flake8", "pylint", "pytype", "bandit", "tox", "nox", "nose2", "jest",
        "vitest", "mocha", "ava", "tap", "eslint", "tsc", "biome", "oxlint", "stylelint", "ctest", "rspec",
        "rubocop", "phpunit", "phpstan", "psalm", "bats", "shellcheck", "hadolint", "golangci-lint",
        "staticcheck", "gotestsum", "ginkgo", "cypress", "playwright", "karma", "make", "gmake", "ninja",
        "just", "rake", "ant", "bazel", "buck2", "detekt", "ktlint", "swiftlint", "credo", "lint", "test",
        "tests", "run-tests", "runtests",
    }
)  # fmt: skip

_WITH: Final[Mapping[str, frozenset[str]]] = {
    # a program -> the words after it that make it a check
    "ruff": frozenset({"check"}),
    "black": frozenset({"--check"}),
    "isort": frozenset({"--check", "--check-only", "-c"}),
    "prettier": frozenset({"--check", "-c", "-l"}),
    "cargo": frozenset({"test", "check", "clippy", "build", "nextest", "t", "b", "c"}),
    "go": frozenset({"test", "vet", "build"}),
    "npm": frozenset({"test", "t", "tst", "run", "run-script"}),
    "yarn": frozenset({"test", "run", "lint", "build", "typecheck"}),
    "pnpm": frozenset({"test", "t", "run", "lint", "build", "typecheck"}),
    "bun": frozenset({"test", "run"}),
    "deno": frozenset({"test", "lint", "check"}),
    "mvn": frozenset({"test", "verify", "package", "install"}),
    "gradle": frozenset({"test", "check", "build"}),
    "gradlew": frozenset({"test", "check", "build"}),
    "mix": frozenset({"test", "credo", "dialyzer"}),
    "swift": frozenset({"test", "build"}),
    "dotnet": frozenset({"test", "build"}),
    "cmake": frozenset({"--build"}),
    "pre-commit": frozenset({"run"}),
}

_LAUNCHERS: Final = frozenset({"npx", "pnpx", "bunx", "uvx"})


def check_kind(argv: Sequence[str]) -> str | None:
    """Return what kind of check a command is, the same for every run of the same checker; None when it is none."""
    rest, module_next = unwrapped(argv)
    if not rest:
        return None
    runner = recognise(argv)
    if runner in ("pytest", "unittest"):
        return runner
    name = rest[0].rsplit("/", 1)[-1]
    words = rest[1:]
    if name in _LAUNCHERS:
        words = [word for word in words if not word.startswith("-")] or [""]
        name, words = words[0], words[1:]
    elif name.startswith("python") or module_next:
        module = module_of(words if not module_next else rest)
        if module is None:
            return None
        name = module
    for suffix in (".sh", ".py", ".js"):
        name = name.removesuffix(suffix)
    if name in _ALWAYS:
        return name
    asked = _WITH.get(name, frozenset()).intersection(words)
    return f"{name} {min(asked)}" if asked else None
