"""The reviewer behind the ``claude`` command line (Impasse §9).

``claude --print`` gets the instruction as its whole system prompt, from a file of this call, and the artifact between
two lines with a nonce on standard input. It has no tools, no servers of tools, no settings of user or project, and
works in an empty folder. The answer is the ``result`` of the JSON envelope; one marked as an error fails on exit 0 too.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from troth.backends.asking import code_of_status, failure_of
from troth.backends.commandline import (
    CommandLine,
    Scratch,
    answer_of,
    environment_of,
    is_on,
    last_words,
    not_completed,
    short,
    whole,
)
from troth.backends.extraction import invalid
from troth.backends.instruction import Enclosed
from troth.backends.protocol import MOST_MESSAGE, Answer, Failure, Request
from troth.backends.supervise import CAPTURE_BYTES, Supervised, supervise
from troth.core.strictjson import JsonFault, Limits, loads
from troth.core.words import printable
from troth.review.formats import heard

DRIVEN: Final = "2.1.197"
"""The version that the slow tests drove last."""

API: Final = "https://api.anthropic.com"
PROVIDER: Final = "anthropic"

EFFORTS: Final = ("low", "medium", "high", "xhigh")
SPEEDS: Final = ("standard",)

FLAGS: Final = (
    "--print", "--output-format", "--tools", "--disallowedTools", "--strict-mcp-config", "--permission-mode",
    "--setting-sources", "--no-session-persistence", "--disable-slash-commands", "--no-chrome",
    "--system-prompt-file", "--model", "--effort",
)  # fmt: skip
"""Every flag that is used."""

DENIED: Final = (
    "Bash", "BashOutput", "KillShell", "Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "Glob", "Grep", "LS",
    "WebFetch", "WebSearch", "Task", "Agent", "Skill", "SlashCommand", "TodoWrite", "mcp__*",
)  # fmt: skip
"""Tools that are denied by name as well, should the empty list of tools ever not be empty."""

KEYS: Final = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN")
"""Variables with a key or token of this provider; with one of them nothing of the user's own folder is needed."""

QUIET: Final = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_MAX_RETRIES": "0",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
}
"""What is set in every call: nothing but the call itself leaves, and asking again is our decision (§6)."""

SWITCHES: Final = (
    "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_GATEWAY",
)  # fmt: skip
ADDRESSES: Final = (
    "ANTHROPIC_BASE_URL", "CLAUDE_CODE_API_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL",
    "ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL", "ANTHROPIC_FOUNDRY_BASE_URL",
    "ANTHROPIC_FOUNDRY_RESOURCE", "ANTHROPIC_AWS_BASE_URL", "ANTHROPIC_UNIX_SOCKET",
)  # fmt: skip
"""Variables that route the program elsewhere: by being on, or by holding another address than the provider's."""

_ENVELOPE: Final = Limits(max_bytes=CAPTURE_BYTES, max_depth=64, refuse_overflow=False, surrogates=True)
_MOST_SETTINGS: Final = 1 << 22


class Claude(CommandLine):
    """The ``claude`` command line.

    Args:
        around: our environment.
        url: another service that speaks the same protocol; ``None`` for the provider's own.
        providers: suffix of a host -> provider, from the user's settings (§10).
        managed: folders in which an administrator's settings stand.

    Raises:
        Refused: ``E_ENDPOINT`` for an address that is none.
    """

    name = "claude"
    own_endpoint = API
    own_provider = PROVIDER
    efforts = EFFORTS
    speeds = SPEEDS

    def __init__(
        self,
        around: Mapping[str, str] | None = None,
        url: str | None = None,
        *,
        providers: Mapping[str, str] | None = None,
        managed: tuple[Path, ...] = (Path("/etc/claude-code"), Path("/Library/Application Support/ClaudeCode")),
    ) -> None:
        super().__init__(around, url, providers=providers)
        self._managed = managed

    def _called(self, program: str, request: Request, enclosed: Enclosed, folders: Scratch) -> Answer:
        told = enclosed.instruction.encode()
        prompt = folders.own / "instruction"
        with os.fdopen(os.open(prompt, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(told)
        # A login is never shown to a service that is not its own.
        keys = KEYS if self._url is None else KEYS[:2]
        environment = environment_of(self._around, (*keys, "CLAUDE_CONFIG_DIR"), folders.temporary) | QUIET
        if self._url is not None or any(self._around.get(key) for key in keys):
            home = folders.own / "home"
            home.mkdir(mode=0o700)
            environment["CLAUDE_CONFIG_DIR"] = str(home)
        if self._url is not None:
            environment["ANTHROPIC_BASE_URL"] = self._url
        done = supervise(
            [program, *self.arguments(request, prompt)],
            enclosed.payload,
            cwd=folders.work,
            environment=environment,
            wall=request.wall,
            idle=request.idle,
        )
        return _read(request, done, len(told))

    def arguments(self, request: Request, prompt: Path) -> list[str]:
        """Return the arguments of a call.

        Args:
            request: what is asked.
            prompt: the file with the instruction.
        """
        return [
            "--print", "--output-format", "json", "--tools", "", "--disallowedTools", ",".join(DENIED),
            "--strict-mcp-config", "--permission-mode", "default", "--setting-sources", "",
            "--no-session-persistence", "--disable-slash-commands", "--no-chrome",
            "--system-prompt-file", str(prompt),
            *(["--model", request.model] if request.model is not None else []),
            *(["--effort", request.effort] if request.effort is not None else []),
        ]  # fmt: skip

    # --- routes ---

    def _routed_elsewhere(self) -> str | None:
        for name, value in self._around.items():
            if _routes(name, value) and not (name == "ANTHROPIC_BASE_URL" and self._url is not None):
                return f"{name} sends claude elsewhere; name that service yourself: claude@URL"
        home = Path(self._around.get("HOME") or "/")
        own = self._around.get("CLAUDE_CONFIG_DIR")
        files = [Path(own or home / ".claude") / "settings.json", Path(own or home) / ".claude.json"]
        for folder in self._managed:
            files += [folder / "managed-settings.json", *sorted((folder / "managed-settings.d").glob("*.json"))]
        return next((why for why in map(_route_in, files) if why is not None), None)


def _routes(name: str, value: str) -> bool:
    if name in SWITCHES:
        return is_on(value)
    return name in ADDRESSES and bool(value) and value.rstrip("/") != API


def _route_in(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            text = file.read(_MOST_SETTINGS)
    except OSError:
        return None
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return f"{path} cannot be read, so where claude would send is not known"
    set_there = held.get("env") if isinstance(held, dict) else None
    for name, value in set_there.items() if isinstance(set_there, dict) else ():
        if _routes(name, str(value)):
            return f"{path} sends claude elsewhere by {name}"
    return None


# --- the answer ---


def _read(request: Request, done: Supervised, instruction: int) -> Answer:
    envelope = _envelope(done.stdout)
    usage, models = envelope.get("usage"), envelope.get("modelUsage")
    tokens = None
    if isinstance(usage, dict):
        counted = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        tokens = sum(whole(usage.get(name)) for name in counted)
    # Two models were at work where a second one helped; which of them answered is then not known.
    named = next(iter(models)) if isinstance(models, dict) and len(models) == 1 else None
    return answer_of(
        request,
        not_completed(done) or _result(done, envelope),
        done,
        resolved=short(named),
        tokens=tokens,
        request_id=short(envelope.get("session_id")),
        also_sent=instruction,
    )


def _envelope(text: bytes) -> dict[str, Any]:
    try:
        held = loads(text.strip(), _ENVELOPE)
    except JsonFault:
        return {}
    return held if isinstance(held, dict) and held.get("type", "result") == "result" else {}


def _result(done: Supervised, envelope: dict[str, Any]) -> bytes | Failure:
    session = short(envelope.get("session_id"))
    result = envelope.get("result")
    if envelope.get("is_error", False) is not False or envelope.get("subtype", "success") != "success":
        told = heard(result) if isinstance(result, str) else str(envelope.get("subtype"))
        message = f"the reviewer reported an error: {printable(told, 300)}"
        status = envelope.get("api_error_status")
        code = "backend_error"
        if isinstance(status, int) and not isinstance(status, bool):
            code = code_of_status(status)
        return failure_of(code, message, session)
    if done.exit != 0:
        return failure_of("backend_error", last_words(done), session)
    if done.cut:
        return invalid(f"the reviewer wrote more than {CAPTURE_BYTES} bytes", oversized=True)
    if not isinstance(result, str):
        return invalid("the reviewer's output is no envelope with a result")
    if envelope.get("stop_reason") == "max_tokens":
        return invalid("the answer was cut off at the model's limit of length")
    message_bytes = result.encode("utf-8", "surrogatepass")
    if len(message_bytes) > MOST_MESSAGE:
        return invalid(f"the final message has {len(message_bytes)} bytes; {MOST_MESSAGE} are taken", oversized=True)
    return message_bytes
