"""What the agents that people have need of the machine to work in the sandbox, and no more: a table, with reasons.

A login is mounted read-only into the private home, where the agent keeps everything else it writes; it is lent only
where no variable holds a key. Records name the file and the variables, never what is in them. Settings of the user are
not handed in: they can name programs, servers and further credentials.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from troth.core.strictjson import JsonFault, Limits, loads
from troth.observer.sandbox import HOME

_MOST_LOGIN: Final = 1 << 20
_LOGIN_LIMITS: Final = Limits(max_bytes=_MOST_LOGIN, max_depth=32, refuse_overflow=False, surrogates=True)
_SHORTEST_SECRET: Final = 12
"""Characters of a text in a login that is looked for in what is recorded; shorter ones are words."""


@dataclass(frozen=True, slots=True)
class Login:
    """A file with a login: its folder in the user's home (or where ``variable`` says), its name, and why."""

    folder: str
    name: str
    variable: str
    why: str


@dataclass(frozen=True, slots=True)
class Profile:
    """One agent.

    ``keys`` are variables with a credential of its own, any of which makes the login needless; ``variables`` are handed
    on beside them where they are set; ``settings`` are set inside; ``files`` are written into the private home. Each is
    there for the reason that stands with it. ``transcript`` is where it says what it ran (``sources.parse_source``).
    """

    name: str
    network: str
    keys: Mapping[str, str] = field(default_factory=dict)
    login: Login | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    files: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    transcript: str = "auto"
    told: tuple[str, ...] = ()


PROFILES: Final[Mapping[str, Profile]] = {
    item.name: item
    for item in (
        Profile(
            "claude",
            network="the model's service",
            keys={
                "ANTHROPIC_API_KEY": "a key of the service",
                "ANTHROPIC_AUTH_TOKEN": "a token of a gateway",
                "CLAUDE_CODE_OAUTH_TOKEN": "a login as a token",
            },
            login=Login(".claude", ".credentials.json", "CLAUDE_CONFIG_DIR", "the login that `claude` stored"),
            variables={"ANTHROPIC_BASE_URL": "where the service is", "ANTHROPIC_MODEL": "which model"},
            settings={
                "DISABLE_AUTOUPDATER": ("1", "the program stays what it is"),
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": ("1", "nothing but the work itself leaves"),
            },
            files={".claude.json": ('{"hasCompletedOnboarding": true}\n', "it asks no questions of a first start")},
        ),
        Profile(
            "codex",
            network="the model's service",
            keys={"CODEX_API_KEY": "a key of the service; codex takes no other variable"},
            login=Login(".codex", "auth.json", "CODEX_HOME", "the login that `codex` stored"),
            variables={"OPENAI_BASE_URL": "where the service is"},
            files={
                ".codex/config.toml": (
                    "check_for_update_on_startup = false\n[analytics]\nenabled = false\n"
                    "[features]\nshell_snapshot = false\n",
                    "nothing but the work itself leaves, and no shell is started whose arguments no trace shows whole",
                )
            },
            told=(
                "codex's own sandbox cannot be nested in this one, so its commands need "
                "--sandbox danger-full-access: what it may reach is what this sandbox shows",
            ),
        ),
        Profile(
            "aider",
            network="the model's service",
            keys={
                "OPENAI_API_KEY": "a key of the service", "ANTHROPIC_API_KEY": "a key of the service",
                "GEMINI_API_KEY": "a key of the service", "DEEPSEEK_API_KEY": "a key of the service",
                "OPENROUTER_API_KEY": "a key of the service",
            },
            variables={
                "OPENAI_API_BASE": "where the service is", "AIDER_MODEL": "which model",
            },
            settings={
                "AIDER_ANALYTICS_DISABLE": ("true", "nothing but the work itself leaves"),
                "AIDER_CHECK_UPDATE": ("false", "the program stays what it is"),
                "AIDER_CHAT_HISTORY_FILE": (f"{HOME}/history.md", "a line of it is no edit of the work"),
                "AIDER_INPUT_HISTORY_FILE": (f"{HOME}/input", "a line of it is no edit of the work"),
            },
            transcript="aider:~/history.md",
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Granted:
    """What a run gets by its profile; empty without one.

    ``lent`` are host files and the places at which they stand inside, read-only; ``read_only`` host paths of the
    program; ``links`` the names by which it is called, as (target, place); ``transcripts`` where it says what it ran.
    """

    network: bool = False
    env: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    lent: tuple[tuple[Path, str], ...] = ()
    read_only: tuple[Path, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    transcripts: tuple[str, ...] = ()
    told: tuple[str, ...] = ()

    def hidden_texts(self) -> dict[str, str]:
        """Return the texts of the lent logins that no record may hold; a name of ours to each."""
        found: dict[str, str] = {}
        for path, _ in self.lent:
            texts = _texts(_bounded(path))
            found |= {f"{path.name.upper()}_TOKEN_{index}": text for index, text in enumerate(texts)}
        return found


def _bounded(path: Path) -> Any:
    try:
        with open(path, "rb") as file:
            return loads(file.read(_MOST_LOGIN), _LOGIN_LIMITS)
    except (OSError, JsonFault):
        return None


def _texts(value: Any) -> Iterator[str]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str) and len(item) >= _SHORTEST_SECRET and not any(char.isspace() for char in item):
            yield item
        elif isinstance(item, dict):
            pending += item.values()
        elif isinstance(item, list):
            pending += item


def _installed(program: str, path: str) -> tuple[list[Path], list[tuple[str, str]], str | None]:
    """Return what of the host a program needs: folders, links, and the interpreter that its first line asks for."""
    found = program if "/" in program else shutil.which(program, path=path)
    if found is None:
        return [], [], None
    place, real = os.path.abspath(found), Path(os.path.realpath(found))
    roots = [_package_of(real)]
    links = [(str(real), place)] if str(real) != place else []
    interpreter = None
    try:
        with open(real, "rb") as file:
            first = file.read(200).split(b"\n", 1)[0]
    except OSError:
        first = b""
    if first.startswith(b"#!"):
        words = first[2:].decode("utf-8", "replace").split()
        asked = words[1:2] if words[:1] == ["/usr/bin/env"] else words[:1]
        interpreter = asked[0] if asked else None
    return roots, links, interpreter


def _package_of(real: Path) -> Path:
    """Return what a program's file belongs to: the folder of its packages, its environment, or the file itself."""
    for folder in real.parents:
        if folder.name == "node_modules" or (folder / "pyvenv.cfg").is_file():
            return folder
    return real


def _system(path: Path) -> bool:
    return any(path.is_relative_to(top) for top in ("/usr", "/bin", "/sbin", "/lib", "/lib64"))


def grant(name: str | None, program: str, *, environment: Mapping[str, str], home: Path) -> Granted:
    """Return what the named profile gives to a run of ``program``.

    Args:
        name: a name of ``PROFILES``, or ``None``.
        program: the first word of the agent's argument vector.
        environment: our own variables.
        home: the user's home.
    """
    if name is None:
        return Granted()
    profile = PROFILES[name]
    told = list(profile.told)
    keys = [key for key in profile.keys if environment.get(key)]
    lent: list[tuple[Path, str]] = []
    if profile.login is not None and not keys:
        own = environment.get(profile.login.variable)
        file = (Path(own) if own else home / profile.login.folder) / profile.login.name
        if file.is_file():
            lent.append((file, f"{HOME}/{profile.login.folder}/{profile.login.name}"))
    if not keys and not lent:
        told.append(f"{name} has neither a key ({', '.join(profile.keys)}) nor a stored login here")
    roots: list[Path] = []
    links: list[tuple[str, str]] = []
    asked: str | None = program
    while asked is not None and len(roots) < 3:
        more, named, asked = _installed(asked, environment.get("PATH", ""))
        roots += [path for path in more if path not in roots]
        links += [link for link in named if not _system(Path(link[1]))]
    read_only = tuple(path for path in roots if not _system(path))
    shown = [link for link in links if not any(Path(link[1]).is_relative_to(path) for path in read_only)]
    return Granted(
        network=True,
        env=tuple(keys + [variable for variable in profile.variables if environment.get(variable)]),
        settings={setting: value for setting, (value, _) in profile.settings.items()},
        files={path: text for path, (text, _) in profile.files.items()},
        lent=tuple(lent),
        read_only=read_only,
        links=tuple(shown),
        transcripts=(profile.transcript,),
        told=tuple(told),
    )


def table() -> list[tuple[str, str, str]]:
    """Return what every profile gives: its name, what, and why."""
    rows: list[tuple[str, str, str]] = []
    for profile in PROFILES.values():
        rows.append((profile.name, "network", profile.network))
        rows += [(profile.name, variable, why) for variable, why in profile.keys.items()]
        if profile.login is not None:
            rows.append((profile.name, f"~/{profile.login.folder}/{profile.login.name}", profile.login.why))
        rows += [(profile.name, variable, why) for variable, why in profile.variables.items()]
        rows += [(profile.name, f"{setting}={value}", why) for setting, (value, why) in profile.settings.items()]
        rows += [(profile.name, f"a new {path}", why) for path, (_, why) in profile.files.items()]
    return rows
