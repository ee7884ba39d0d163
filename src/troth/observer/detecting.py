"""What a project's own files say about how its tests are run, and what has to stay as it is for them to mean anything.

Each runner is a row of ``RUNNERS``: signs in the files, never a run. Everything proposed carries the reason for it.
"""

from __future__ import annotations

import configparser
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from troth.core.words import printable
from troth.observer.autoload import folders_of
from troth.observer.project import Project, beneath, table, tops

Kind = Literal["protect", "absent", "tools", "command"]

MOST_FILES: Final = 300
"""Single test files that are proposed; with more, a contract that names folders is the better one."""


@dataclass(frozen=True, slots=True)
class Proposed:
    """One proposal: what to protect, what must not appear, tools, or a command (``what`` is then its id), and why."""

    kind: Kind
    what: str
    why: str
    argv: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Runner:
    """A test runner: how it is recognised, and what belongs to it.

    ``find`` yields what is proposed; nothing when the runner is not this project's. ``settings`` are files and folders
    that decide how the tests run; ``absent`` are names that would decide it by appearing.
    """

    name: str
    find: Callable[[Project], Iterator[Proposed]]
    settings: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()


TEST_FOLDERS: Final = frozenset({"test", "tests", "__tests__", "spec", "e2e"})

_TEST_FILE: Final = re.compile(
    r"(?:test_[^/]*|[^/]*_test)\.py|[^/]*_test\.go|[^/]*[.](?:test|spec)\.[cm]?[jt]sx?", re.DOTALL
)

_CI: Final = (
    ".github", ".gitlab-ci.yml", ".circleci", ".travis.yml", "azure-pipelines.yml", "bitbucket-pipelines.yml",
    "Jenkinsfile", ".buildkite", ".drone.yml", ".woodpecker.yml", "appveyor.yml", ".ci", ".pre-commit-config.yaml",
    "noxfile.py",
)  # fmt: skip

_PYTEST_SIGN: Final = re.compile(r"^(?:import pytest\b|from pytest\b|(?:async )?def test_)", re.MULTILINE)
_UNITTEST_SIGN: Final = re.compile(r"^(?:import unittest\b|from unittest\b)", re.MULTILINE)
_TARGET: Final = re.compile(r"^(test|check|tests)[ \t]*::?(?!:?:?=)", re.MULTILINE)
_NO_TEST: Final = "no test specified"
_MOST_LOOKED_AT: Final = 200

MAKEFILES: Final = ("GNUmakefile", "makefile", "Makefile")
"""In the order in which make looks for them."""


# --- Python ---


def _python_tests(project: Project) -> list[str]:
    found = [path for path in sorted(project.files) if path.endswith(".py") and _TEST_FILE.fullmatch(_name(path))]
    return found[:_MOST_LOOKED_AT]


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def _python(project: Project) -> tuple[str, str]:
    """Return the interpreter's name in a command, and what to tell of it."""
    for path in (".venv/bin/python", "venv/bin/python"):
        # Environments are not listed; a link to the system's interpreter is what one usually holds there.
        if (project.root / path.split("/", 1)[0] / "pyvenv.cfg").is_file() and (project.root / path).exists():
            return path, f", with the environment in {path.split('/', maxsplit=1)[0]}"
    return "python", ""


def _ini(project: Project, path: str) -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser(strict=False)
    text = project.text(path)
    if text is not None:
        try:
            parser.read_string(text)
        except configparser.Error:
            project.told.append(f"{path!r} is not readable as settings, so nothing was taken from it")
    return parser


def _pytest_settings(project: Project) -> tuple[str, list[str]] | None:
    """Return where pytest's settings stand and the test paths they name; ``None`` without such settings."""
    tool = table(project.toml("pyproject.toml"), "tool", "pytest")
    if tool:
        options = table(tool, "ini_options") or tool
        return "pyproject.toml has a [tool.pytest] table", _words(options.get("testpaths"))
    for path, section in (
        ("pytest.ini", "pytest"), (".pytest.ini", "pytest"), ("tox.ini", "pytest"), ("setup.cfg", "tool:pytest"),
    ):  # fmt: skip
        if path in project.files:
            parser = _ini(project, path)
            if path.endswith("pytest.ini") or parser.has_section(section):
                return f"{path} is its settings", _words(parser.get(section, "testpaths", fallback=None))
    for path in ("pytest.toml", ".pytest.toml"):
        if path in project.files:
            return f"{path} is its settings", _words(table(project.toml(path), "pytest").get("testpaths"))
    return None


def _words(value: object) -> list[str]:
    if isinstance(value, str):
        return value.split()
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _plain(project: Project, paths: Iterable[str]) -> list[str]:
    """Return the test paths that are here, as a command may name them: none reads as an option."""
    cleaned = [path.removeprefix("./").rstrip("/") for path in paths]
    return [path for path in cleaned if path and not path.startswith("-") and project.has(path)]


def _python_sign(project: Project, sign: re.Pattern[str]) -> str | None:
    return next((path for path in _python_tests(project) if sign.search(project.beginning(path))), None)


def _find_pytest(project: Project) -> Iterator[Proposed]:
    settings = _pytest_settings(project)
    conftest = next((path for path in sorted(project.files) if _name(path) == "conftest.py"), None)
    if settings is not None:
        why, paths = settings
    elif conftest is not None:
        why, paths = f"{conftest} is a file of pytest", []
    else:
        found = _python_sign(project, _PYTEST_SIGN)
        if found is None:
            return
        why, paths = f"{found} has tests written for it", []
    python, where = _python(project)
    named = _plain(project, paths) or tops(
        path for path in project.folders if path in TEST_FOLDERS and _holds(project, path)
    )
    yield Proposed("command", "pytest", why + where, (python, "-m", "pytest", "-q", *named))


def _holds(project: Project, folder: str) -> bool:
    return any(path.startswith(folder + "/") for path in _python_tests(project))


def _find_unittest(project: Project) -> Iterator[Proposed]:
    if next(_find_pytest(project), None) is not None:
        return  # pytest runs these tests too
    found = _python_sign(project, _UNITTEST_SIGN)
    if found is None:
        return
    python, where = _python(project)
    folder = found.split("/", 1)[0] if "/" in found else "."
    named: tuple[str, ...] = ()
    if folder != "." and not folder.startswith("-"):
        package = f"{folder}/__init__.py" in project.files
        named = ("-s", folder, *(("-t", ".") if package else ()))
    yield Proposed(
        "command", "unittest", f"{found} has tests written for it" + where,
        (python, "-m", "unittest", "discover", "-q", *named),
    )  # fmt: skip
    if not _name(found).startswith("test"):
        project.told.append(f"unittest's own search takes files named test*.py, and {found!r} is none")


# --- JavaScript, Rust, Go, make ---


def _find_npm(project: Project) -> Iterator[Proposed]:
    script = table(project.json("package.json"), "scripts").get("test")
    if not isinstance(script, str) or not script.strip() or _NO_TEST in script:
        return
    locks = {"pnpm-lock.yaml": "pnpm", "yarn.lock": "yarn", "bun.lock": "bun", "bun.lockb": "bun"}
    lock = next((name for name in locks if name in project.files), None)
    program = locks[lock] if lock is not None else "npm"
    why = f"package.json has a script 'test': {printable(script, 80)}"
    yield Proposed("command", program, why + (f"; {lock} is {program}'s" if lock else ""), (program, "test"))


_VENDORED: Final = "vendor"
_FETCHED_CRATES: Final = re.compile(r'^source = "(?:registry|sparse|git)\+', re.MULTILINE)
_FETCHED_MODULES: Final = re.compile(r"^require\b", re.MULTILINE)


def _held(project: Project, folder: str) -> bool:
    """Tell whether a folder is there whose files are not listed, since others wrote them."""
    path = project.root / folder
    return path.is_dir() and not path.is_symlink()


def fetches(project: Project) -> dict[str, str]:
    """Return the programs that build with what they have fetched into a folder of the user's, and the sign of it."""
    signs = {"cargo": ("Cargo.lock", _FETCHED_CRATES), "go": ("go.mod", _FETCHED_MODULES)}
    return {
        program: f"{name} names what {program} has fetched there"
        for program, (name, sign) in signs.items()
        if not _held(project, _VENDORED) and sign.search(project.text(name) or "")
    }


def _find_cargo(project: Project) -> Iterator[Proposed]:
    if "Cargo.toml" not in project.files:
        return
    locked = ("--locked",) if "Cargo.lock" in project.files else ()
    if _held(project, _VENDORED):
        yield Proposed("protect", _VENDORED, "is what the tests are built with")
    # The sandbox has no network: what cargo would fetch has to be vendored or fetched before.
    yield Proposed("command", "cargo", "Cargo.toml is a package's", ("cargo", "test", "--quiet", "--offline", *locked))
    project.told.append("tests within src/*.rs lie in files that the task changes, so no path protects them")


def _find_go(project: Project) -> Iterator[Proposed]:
    if "go.mod" not in project.files:
        return
    if _held(project, _VENDORED):
        yield Proposed("protect", _VENDORED, "is what the tests are built with")
    else:
        yield Proposed("absent", _VENDORED, "go would build with what is in it")
    # As events, each test is counted by its name; what is printed otherwise names packages only.
    yield Proposed("command", "go", "go.mod is a module's", ("go", "test", "-json", "./..."))
    project.told.append("a new *_test.go beside the code is not protected, and a TestMain in it decides go's exit")


def makefile(project: Project) -> str | None:
    """Return the Makefile that make would take."""
    return next((name for name in MAKEFILES if name in project.files), None)


def _find_make(project: Project) -> Iterator[Proposed]:
    path = makefile(project)
    text = project.text(path) if path is not None else None
    found = _TARGET.search(text) if text is not None else None
    if path is None or found is None:
        return
    yield Proposed("command", "make", f"{path} has a rule for {found[1]}", ("make", found[1]))
    for name in MAKEFILES[: MAKEFILES.index(path)]:
        yield Proposed("absent", name, f"make would take it before {path}")


_NODE_SETTINGS: Final = (
    "jest.config", "vitest.config", "vite.config", "playwright.config", "ava.config", ".mocharc", "karma.conf",
    "cypress.config", "babel.config",
)  # fmt: skip

_NODE_ENDINGS: Final = ("js", "cjs", "mjs", "ts", "mts", "json", "yml", "yaml")

# The order is that of the proposal; make comes last, since it counts only where nothing else was found.
RUNNERS: Final[tuple[Runner, ...]] = (
    Runner(
        "pytest", _find_pytest,
        ("pyproject.toml", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "setup.cfg",
         "conftest.py", "noxfile.py"),
        ("src/sitecustomize.py", "src/usercustomize.py", "src/conftest.py"),
    ),
    Runner("unittest", _find_unittest, (), ("src/sitecustomize.py", "src/usercustomize.py")),
    Runner(
        "npm", _find_npm,
        ("package.json", "package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "pnpm-workspace.yaml",
         "yarn.lock", "bun.lock", "bun.lockb", "bunfig.toml", ".npmrc", ".yarnrc.yml",
         *(f"{name}.{end}" for name in _NODE_SETTINGS for end in _NODE_ENDINGS),
         ".babelrc", ".taprc", ".nycrc", "jest.setup.js", "jest.setup.ts"),
        ("jest.config.js", "jest.config.ts", "vitest.config.js", "vitest.config.ts", "vitest.workspace.ts",
         ".mocharc.js", ".mocharc.json", ".npmrc"),
    ),
    Runner(
        "cargo", _find_cargo,
        ("Cargo.toml", "Cargo.lock", "build.rs", "rust-toolchain", "rust-toolchain.toml", ".cargo",
         ".config/nextest.toml"),
        ("build.rs", "rust-toolchain", "rust-toolchain.toml", ".cargo"),
    ),
    Runner("go", _find_go, ("go.mod", "go.sum", "go.work", "go.work.sum"), ("go.work",)),
    Runner("make", _find_make, MAKEFILES, ()),
)  # fmt: skip

INNER_MARKS: Final[Mapping[str, str]] = {
    "pyproject.toml": "pytest or unittest", "package.json": "npm", "Cargo.toml": "cargo", "go.mod": "go",
}  # fmt: skip
"""What in a folder below says that a project of its own stands there."""


@dataclass(frozen=True, slots=True)
class Detected:
    """Everything that was found: the proposals in order, what a person should know, and :func:`fetches`."""

    proposed: tuple[Proposed, ...]
    told: tuple[str, ...]
    fetches: Mapping[str, str] = field(default_factory=dict)

    def of(self, kind: Kind) -> list[Proposed]:
        """Return the proposals of one kind."""
        return [item for item in self.proposed if item.kind == kind]


def _test_paths(project: Project) -> Iterator[Proposed]:
    folders = tops(path for path in project.folders if _name(path) in TEST_FOLDERS)
    filled = folders_of(project.files)
    used = [folder for folder in folders if folder in filled]
    covered = frozenset(used)
    if len(used) > MOST_FILES:
        project.told.append(f"{len(used)} folders hold tests; only the first {MOST_FILES} are proposed")
    for folder in used[:MOST_FILES]:
        yield Proposed("protect", folder, "holds tests")
    loose = [path for path in sorted(project.files) if not beneath(path, covered)]
    single = [path for path in loose if _TEST_FILE.fullmatch(_name(path))]
    if len(single) > MOST_FILES:
        project.told.append(
            f"{len(single)} test files stand outside of test folders; the first {MOST_FILES} are proposed"
        )
    for path in single[:MOST_FILES]:
        yield Proposed("protect", path, "is a test file")
    for path in loose:
        if _name(path) == "conftest.py":
            yield Proposed("protect", path, "pytest loads it for every test beside and below it")
    for path in sorted(project.links):
        if (_name(path) in TEST_FOLDERS or _TEST_FILE.fullmatch(_name(path))) and not beneath(path, covered):
            project.told.append(f"{path!r} is a symbolic link, which no contract can protect; name what it points to")


def _settings(project: Project, runners: Iterable[Runner]) -> Iterator[Proposed]:
    for runner in runners:
        for name in project.has(*runner.settings):
            yield Proposed("protect", name, f"decides what {runner.name} runs")
        for name in runner.absent:
            parent = name.rpartition("/")[0]
            if not project.has(name) and name not in project.links and (not parent or parent in project.folders):
                yield Proposed("absent", name, f"{runner.name} or its interpreter would load it")
        if runner.name == "make":
            for name in sorted(path for path in project.files if path.endswith(".mk") and "/" not in path):
                yield Proposed("protect", name, "is what a Makefile includes")
    for name in project.has(*_CI):
        yield Proposed("protect", name, "decides what is run for every change")


def detect(project: Project) -> Detected:
    """Return what a project's files propose, each path and command once, the first reason kept."""
    found: dict[tuple[Kind, str], Proposed] = {}
    runners: list[Runner] = []
    commands: list[Proposed] = []
    for runner in RUNNERS:
        made = list(runner.find(project))
        if made and runner.name == "make" and commands:
            # A Makefile's rule most often starts what was found already, with a set-up that needs a network before it.
            project.told.append(f"{made[0].why}, which was not taken beside the others: {' '.join(made[0].argv)}")
        elif made:
            runners.append(runner)
            commands += made
    for item in (*_test_paths(project), *_settings(project, runners), *commands):
        found.setdefault((item.kind, item.what), item)
    protected = frozenset(tops(item.what for item in found.values() if item.kind == "protect"))
    kept = [
        item
        for item in found.values()
        if item.kind == "command"
        or (item.kind == "protect" and item.what in protected)
        or (item.kind == "absent" and not beneath(item.what, protected))
    ]
    told = list(project.told)
    if not commands:
        told.append(_nothing(project))
    return Detected(tuple(kept), tuple(dict.fromkeys(told)), fetches(project))


def _nothing(project: Project) -> str:
    inner = sorted(
        {path.split("/", 1)[0]: mark for path in project.files for mark in INNER_MARKS if _is_inner(path, mark)}.items()
    )
    if inner:
        named = ", ".join(f"{folder} ({mark})" for folder, mark in inner[:5])
        return f"no runner was recognised here; projects of their own stand in {named}: name their folder"
    return "no runner was recognised; write the command whose passing counts into the file"


def _is_inner(path: str, mark: str) -> bool:
    return path.count("/") == 1 and path.endswith("/" + mark)


def as_json(detected: Detected) -> dict[str, Any]:
    """Return the proposals as one JSON object."""
    return {
        "commands": [{"id": item.what, "argv": list(item.argv), "why": item.why} for item in detected.of("command")],
        "protect": [{"path": item.what, "why": item.why} for item in detected.of("protect")],
        "must_not_appear": [{"path": item.what, "why": item.why} for item in detected.of("absent")],
        "tools": [{"path": item.what, "why": item.why} for item in detected.of("tools")],
        "told": list(detected.told),
    }
