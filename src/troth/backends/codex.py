"""The reviewer behind the ``codex`` command line (Impasse §9).

``codex exec`` gets everything on standard input: the instruction, then the artifact between two lines with a nonce. It
works in an empty folder, with a read-only sandbox, without the user's configuration and, by settings of ours, without a
shell or any other tool: a read-only sandbox would still let it read what else lies on the disk. Its home is a folder of
this call, to which only the login is lent. The answer is the file of the final message; the events on standard output
tell failures and tokens. Its schema option is not used: it does not take the schema of a response.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from troth.backends.asking import code_of_status, failure_of
from troth.backends.commandline import (
    CommandLine,
    Scratch,
    answer_of,
    environment_of,
    last_words,
    not_completed,
    short,
    whole,
)
from troth.backends.extraction import invalid
from troth.backends.instruction import Enclosed
from troth.backends.protocol import MOST_MESSAGE, Answer, Failure, Request
from troth.backends.supervise import Supervised, supervise
from troth.core.strictjson import JsonFault, Limits, loads
from troth.core.words import printable
from troth.review.formats import heard

DRIVEN: Final = "0.171.0"
"""The version that the slow tests drove last."""

API: Final = "https://api.openai.com"
CHATGPT: Final = "https://chatgpt.com"
PROVIDER: Final = "openai"

FLAGS: Final = (
    "--json", "--color", "--output-last-message", "--sandbox", "--ephemeral", "--skip-git-repo-check",
    "--ignore-user-config", "--ignore-rules", "--cd", "--config", "--model",
)  # fmt: skip
"""Every flag that is used."""

SETTINGS: Final = (
    'model_provider="openai"',
    'web_search="disabled"',
    "project_doc_max_bytes=0",
    "analytics.enabled=false",
    "check_for_update_on_startup=false",
    "include_environment_context=false",
    "skills.include_instructions=false",
    *(
        f"features.{name}=false"
        for name in (
            "shell_tool", "unified_exec", "shell_snapshot", "code_mode_host", "view_image", "daemon_auto_start",
            "multi_agent", "apps", "plugins", "remote_plugin", "hooks", "goals", "memories", "sleep_tool",
            "image_generation", "browser_use", "computer_use", "skill_search", "tool_suggest",
        )
    ),
)  # fmt: skip
"""Settings of every call. One that a version does not know is ignored by it, with a notice."""

_LINE: Final = Limits(max_bytes=1 << 23, max_depth=64, refuse_overflow=False, surrogates=True)
_STATUS: Final = re.compile(r"(?:exceeded retry limit, last status:|unexpected status) ([1-5][0-9]{2})\b")
_LOGIN: Final = "auth.json"
_SERVICES: Final = {"apikey": API, "chatgpt": CHATGPT, "chatgptauthtokens": CHATGPT}
"""Kind of a stored login, in lower case -> the service that it is for."""
_MOST_SETTINGS: Final = 1 << 20


class Codex(CommandLine):
    """The ``codex`` command line.

    Args:
        around: our environment.
        url: another service that speaks the same protocol; ``None`` for the provider's own.
        providers: suffix of a host -> provider, from the user's settings (§10).
        rules: let rules of the repository apply; the operator's choice (§9 [D32]).

    Raises:
        Refused: ``E_ENDPOINT`` for an address that is none.
    """

    name = "codex"
    own_endpoint = API
    own_provider = PROVIDER
    sandboxed = True

    def __init__(
        self,
        around: Mapping[str, str] | None = None,
        url: str | None = None,
        *,
        providers: Mapping[str, str] | None = None,
        rules: bool = False,
    ) -> None:
        super().__init__(around, url, providers=providers)
        self._rules = rules
        self.endpoint = self._service() or self.endpoint

    def _called(self, program: str, request: Request, enclosed: Enclosed, folders: Scratch) -> Answer:
        final = folders.own / "final-message"
        home = folders.own / "home"
        home.mkdir(mode=0o700)
        environment = environment_of(self._around, (), folders.temporary) | {"CODEX_HOME": str(home)}
        key = self._key()
        if key is not None:
            environment["CODEX_API_KEY"] = key
        else:
            self._lend_login(home)
        done = supervise(
            [program, *self.arguments(request, folders.work, final)],
            enclosed.instruction.encode() + b"\n" + enclosed.payload,
            cwd=folders.work,
            environment=environment,
            wall=request.wall,
            idle=request.idle,
        )
        if key is None:
            self._take_login_back(home)
        return _read(request, done, _bounded(final))

    def arguments(self, request: Request, work: Path, final: Path) -> list[str]:
        """Return the arguments of a call.

        Args:
            request: what is asked.
            work: the empty working directory.
            final: the file that takes the final message.
        """
        settings = list(SETTINGS)
        if self._url is not None:
            settings.append(f"openai_base_url={json.dumps(self._url)}")
        if request.effort is not None:
            settings.append(f'model_reasoning_effort="{request.effort}"')
        if request.speed == "fast":
            settings.append('service_tier="fast"')
        return [
            "exec", "--json", "--color", "never", "--output-last-message", str(final), "--sandbox", "read-only",
            "--ephemeral", "--skip-git-repo-check", "--ignore-user-config",
            *([] if self._rules else ["--ignore-rules"]),
            "--cd", str(work),
            *(word for setting in settings for word in ("--config", setting)),
            *(["--model", request.model] if request.model is not None else []),
            "-",
        ]  # fmt: skip

    # --- login and routes ---

    @property
    def _home(self) -> Path:
        own = self._around.get("CODEX_HOME")
        return Path(own) if own else Path(self._around.get("HOME") or "/") / ".codex"

    def _key(self) -> str | None:
        """Return the key from the environment: its own variable first, the provider's where there is no login."""
        own = self._around.get("CODEX_API_KEY")
        if own:
            return own
        general = self._around.get("OPENAI_API_KEY")
        return general if general and not self._login_counts() else None

    def _login_counts(self) -> bool:
        """Tell whether there is a stored login for this call; it is never shown to a service that is not its own."""
        return self._url is None and (self._home / _LOGIN).is_file()

    def _service(self) -> str | None:
        """Return where the call goes by its key or login; ``None`` for a login of a kind that is not known.

        A login to ChatGPT is served elsewhere than a key.
        """
        if self._url is not None:
            return self.endpoint
        if self._key() is not None or not self._login_counts():
            return API
        try:
            held = json.loads(_text(self._home / _LOGIN) or "{}")
        except (ValueError, RecursionError):
            return None
        if not isinstance(held, dict):
            return None
        mode = held.get("auth_mode")
        if mode is None:
            return API if held.get("OPENAI_API_KEY") or not held.get("tokens") else CHATGPT
        return _SERVICES.get(str(mode).lower())

    def _lend_login(self, home: Path) -> None:
        if self._login_counts():
            with contextlib.suppress(OSError):
                (home / _LOGIN).symlink_to((self._home / _LOGIN).absolute())

    def _take_login_back(self, home: Path) -> None:
        """Keep a login that the program renewed by putting another file in the place of the one that was lent."""
        lent, stored = home / _LOGIN, self._home / _LOGIN
        with contextlib.suppress(OSError):
            if lent.is_symlink() or not self._login_counts():
                return
            data = _bounded(lent, _MOST_SETTINGS)
            if isinstance(data, bytes) and data:
                beside = stored.with_name(f".{_LOGIN}.troth-{os.getpid()}")
                with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                    file.write(data)
                    file.flush()
                    os.fsync(file.fileno())
                beside.replace(stored)

    def _routed_elsewhere(self) -> str | None:
        if self._url is not None:
            return None
        if self._service() != self.endpoint:
            return "the stored login of codex is of a kind that is not known, or changed after its endpoint was told"
        base = self._around.get("OPENAI_BASE_URL")
        if base and not _same(base, API):
            return f"OPENAI_BASE_URL sends codex elsewhere; name that service yourself: codex@{printable(base, 200)}"
        for path in (
            self._home / "config.toml",
            self._home / "managed_config.toml",
            Path("/etc/codex/config.toml"),
            Path("/etc/codex/managed_config.toml"),
        ):
            why = _route_in(path)
            if why is not None:
                return why
        return None


def _route_in(path: Path) -> str | None:
    import tomllib

    text = _text(path)
    if text is None:
        return None
    try:
        held = tomllib.loads(text)
    except (ValueError, RecursionError):  # no TOML, a number too long, nested too deep
        return f"{path} cannot be read, so where codex would send is not known"
    provider = held.get("model_provider", PROVIDER)
    if provider != PROVIDER:
        return f"{path} sends codex to the provider {printable(str(provider), 60)!r}, not to {PROVIDER}"
    for name, own in (("openai_base_url", API), ("chatgpt_base_url", CHATGPT)):
        address = held.get(name)
        if address is not None and not _same(str(address), own):
            return f"{path} sends codex elsewhere by {name}"
    return None


def _same(address: str, own: str) -> bool:
    return address == own or address.startswith(own + "/")


def _text(path: Path) -> str | None:
    """Return a settings file as text; ``None`` where there is none."""
    try:
        with path.open("rb") as file:
            return file.read(_MOST_SETTINGS).decode("utf-8", "replace")
    except OSError:
        return None


# --- the answer ---


def _bounded(path: Path, most: int = MOST_MESSAGE) -> bytes | None:
    """Return a file that the program wrote, one byte more than ``most`` at the longest; no link, no pipe."""
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    with os.fdopen(fd, "rb") as file:
        return file.read(most + 1)


def _read(request: Request, done: Supervised, message: bytes | None) -> Answer:
    events = _Events(done.stdout)
    return answer_of(
        request,
        not_completed(done) or events.failure or _final(done, message),
        done,
        tokens=events.tokens,
        request_id=events.thread,
    )


def _final(done: Supervised, message: bytes | None) -> bytes | Failure:
    if done.exit != 0:
        return failure_of("backend_error", last_words(done))
    if message is None or not message.strip():
        return invalid("the reviewer ended without a final message")
    if len(message) > MOST_MESSAGE:
        return invalid(f"the final message has more than {MOST_MESSAGE} bytes", oversized=True)
    return message


class _Events:
    """What the lines on standard output tell: a failed turn, tokens, the thread's id. Notices tell nothing."""

    def __init__(self, lines: bytes) -> None:
        self.failure: Failure | None = None
        self.tokens: int | None = None
        self.thread: str | None = None
        for line in lines.splitlines():
            try:
                event = loads(line, _LINE)
            except JsonFault:
                continue
            if isinstance(event, dict):
                self._take(event)

    def _take(self, event: dict[str, Any]) -> None:
        match event.get("type"):
            case "thread.started":
                self.thread = short(event.get("thread_id"))
            case "turn.completed":
                usage = event.get("usage")
                if isinstance(usage, dict):
                    self.tokens = whole(usage.get("input_tokens")) + whole(usage.get("output_tokens"))
            case "turn.failed":
                error = event.get("error")
                said = error.get("message") if isinstance(error, dict) else None
                told = heard(said) if isinstance(said, str) else "without a reason"
                # The event is the program's own; the status stands at the beginning of its sentence.
                status = _STATUS.match(told)
                message = f"the reviewer's turn failed: {printable(told, 300)}"
                code = code_of_status(int(status[1])) if status else "backend_error"
                self.failure = failure_of(code, message, self.thread)
