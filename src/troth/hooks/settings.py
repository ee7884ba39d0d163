"""Installing hooks: the settings of Claude Code, the configuration of Codex, a git repository's ``pre-push``.

Every other byte of a file is kept, and uninstalling gives back the bytes of before. What somebody else put where a hook
would have to stand is left alone and told.
"""

from __future__ import annotations

import json
import os
import shlex
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from troth.core.errors import Place, Refused
from troth.core.strictjson import JsonFault, Limits, loads
from troth.hooks.jsontext import appended, parse_spans, without
from troth.stores.durable import create_whole, os_fault, read_regular, replace_whole

MAX_SETTINGS: Final = 1 << 20
"""Longest settings file that is changed, in bytes."""

EVENTS: Final = ("SessionStart", "PostToolUse", "SubagentStop", "Stop")
"""The events of Claude Code that the hook asks for."""

MARK: Final = " hook claude-code run "
"""What an entry of ours holds in its command."""

SECONDS: Final = 600
"""How long Claude Code waits for the hook; a hook that takes longer is ended and does not count."""

_LIMITS: Final = Limits(max_bytes=MAX_SETTINGS, max_depth=64, refuse_overflow=False, surrogates=True)
_CODEX_MARK: Final = "  # troth hook codex\n"
_GIT_MARK: Final = "# written by: troth hook git install\n"


def _refused(path: Path, message: str, remedy: str) -> Refused:
    return Refused("E_HOOK_SETTINGS", message, place=Place(file=str(path)), remedy=remedy)


def _read(path: Path) -> str | None:
    """Return a settings file as text, line ends as they are; ``None`` when there is none."""
    if not path.exists():
        return None
    data = read_regular(path, MAX_SETTINGS, "E_HOOK_SETTINGS", "the settings file")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise _refused(path, "the settings file is not UTF-8", "Mend it, then try again.") from None


def _write(path: Path, text: str | None) -> None:
    """Write, make or remove a settings file; its mode stays what it was."""
    try:
        if text is None:
            path.unlink()
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o600
        replace_whole(path, text.encode("utf-8"), mode)
    except OSError as fault:
        raise os_fault("E_HOOK_SETTINGS", fault, path, "the settings file cannot be written") from None


def _real(path: Path) -> Path:
    """Return where a settings file really lies, so that a link to it stays one."""
    return Path(os.path.realpath(path))


# --- Claude Code ---


def _ours(element: Any) -> bool:
    hooks = element.get("hooks") if isinstance(element, dict) else None
    return (
        isinstance(hooks, list)
        and len(hooks) == 1
        and isinstance(hooks[0], dict)
        and isinstance(hooks[0].get("command"), str)
        and MARK in hooks[0]["command"]
    )


def _group(command: str) -> str:
    return json.dumps({"hooks": [{"type": "command", "command": command, "timeout": SECONDS}]}, ensure_ascii=False)


def _fresh(command: str) -> str:
    """Return the settings file that is made where there is none."""
    return "{" + f'\n  "hooks": {_events(command, EVENTS)}\n' + "}\n"


def _events(command: str, names: Sequence[str]) -> str:
    rows = ",\n".join(f"    {_event(name, command)}" for name in names)
    return "{\n" + rows + "\n  }"


def _event(name: str, command: str) -> str:
    return f"{json.dumps(name)}: [\n      {_group(command)}\n    ]"


def claude_text(text: str | None, command: str | None) -> str | None:
    """Return a settings file's text with our entries for a command, or without any where ``command`` is ``None``.

    Args:
        text: what is there; ``None`` for no file.
        command: the command line that Claude Code is to call.

    Returns:
        The text; ``None`` for no file: it held nothing but what was installed.

    Raises:
        ValueError: it is no JSON object of settings.
    """
    if text is None:
        return None if command is None else _fresh(command)
    bare = _claude_removed(text)
    if command is None:
        return bare
    if bare is None:
        return _fresh(command)
    root = parse_spans(bare)
    hooks = root.member("hooks")
    if hooks is None:
        return appended(bare, root, f'"hooks": {_events(command, EVENTS)}', "  ")
    for name in EVENTS:
        node = parse_spans(bare).member("hooks")
        assert node is not None
        event = node.member(name)
        if event is None:
            bare = appended(bare, node, _event(name, command), "    ")
        else:
            bare = appended(bare, event, _group(command), "      ")
    return bare


def _claude_removed(text: str) -> str | None:
    try:
        loads(text.encode("utf-8", "surrogatepass"), _LIMITS)
    except JsonFault as fault:
        raise ValueError(fault.message) from None
    root = parse_spans(text)
    if root.kind != "object":
        raise ValueError("settings are a JSON object")
    hooks = root.member("hooks")
    if hooks is not None and (hooks.kind != "object" or any(value.kind != "array" for _, _, value in hooks.items)):
        raise ValueError("hooks is an object of arrays")
    bare = without(text, _ours, ("hooks",))
    # A file that was made here holds nothing more: what is left of it is its two lines.
    return None if text.startswith('{\n  "hooks": {\n') and bare == "{\n  \n}\n" else bare


def install_claude(path: Path, command: str) -> bool:
    """Put our entries into a settings file of Claude Code; tell whether anything had to be changed.

    Raises:
        Refused: ``E_HOOK_SETTINGS``; nothing was changed.
    """
    return _changed_claude(path, command)


def uninstall_claude(path: Path) -> bool:
    """Take our entries out of a settings file of Claude Code; tell whether there were any.

    Raises:
        Refused: ``E_HOOK_SETTINGS``; nothing was changed.
    """
    return _changed_claude(path, None)


def _changed_claude(path: Path, command: str | None) -> bool:
    where = _real(path)
    before = _read(where)
    try:
        after = claude_text(before, command)
    except (ValueError, RecursionError) as fault:
        raise _refused(
            path, f"the settings file is no JSON of settings: {fault}", "Mend it, then try again; nothing was changed."
        ) from None
    if after == before:
        return False
    _write(where, after)
    return True


# --- Codex ---


def codex_text(text: str | None, words: Sequence[str] | None) -> str | None:
    """Return a configuration's text with our ``notify``, or without it where ``words`` is ``None``.

    Raises:
        ValueError: no TOML.
        LookupError: another program is notified already.
    """
    lines = (text or "").splitlines(keepends=True)
    bare = "".join(line for line in lines if not (line.startswith("notify = ") and line.endswith(_CODEX_MARK)))
    if words is None:
        return None if bare == "" and lines else text if text is None else bare
    if "notify" in tomllib.loads(bare):
        raise LookupError("notify")
    # A key of the whole file stands before the first table.
    return f"notify = {json.dumps(list(words))}{_CODEX_MARK}{bare}"


def change_codex(path: Path, words: Sequence[str] | None) -> bool:
    """Put our ``notify`` into Codex's configuration, or take it out; tell whether anything had to be changed.

    Raises:
        Refused: ``E_HOOK_SETTINGS``, ``E_HOOK_TAKEN``; nothing was changed.
    """
    where = _real(path)
    before = _read(where)
    try:
        after = codex_text(before, words)
    except (ValueError, RecursionError) as fault:
        raise _refused(path, f"the configuration is no TOML: {fault}", "Mend it, then try again.") from None
    except LookupError:
        raise Refused(
            "E_HOOK_TAKEN",
            "Codex notifies another program already, and takes one only",
            place=Place(file=str(path)),
            remedy="Let that program call ours with the same last word.",
        ) from None
    if after == before:
        return False
    _write(where, after)
    return True


# --- git ---


def git_script(words: Sequence[str]) -> str:
    """Return the script that stands as ``pre-push``."""
    return f'#!/bin/sh\n{_GIT_MARK}exec {shlex.join(words)} "$@"\n'


def install_git(path: Path, words: Sequence[str]) -> bool:
    """Write ``pre-push``; tell whether anything had to be changed.

    Raises:
        Refused: ``E_HOOK_TAKEN``: another hook stands there; ``E_HOOK_SETTINGS``.
    """
    script = git_script(words)
    there = _read(path)
    if there == script:
        return False
    if there is not None and _GIT_MARK not in there:
        raise Refused(
            "E_HOOK_TAKEN",
            "a pre-push hook stands there already",
            place=Place(file=str(path)),
            remedy=f'Call ours from it, with the same words and input: {shlex.join(words)} "$@"',
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if there is not None:
            replace_whole(path, script.encode(), 0o755)
        else:
            create_whole(path, script.encode(), 0o755)
    except OSError as fault:
        raise os_fault("E_HOOK_SETTINGS", fault, path, "the hook cannot be written") from None
    return True


def uninstall_git(path: Path) -> bool:
    """Remove the ``pre-push`` that was written here; tell whether there was one.

    Raises:
        Refused: ``E_HOOK_TAKEN``: it is somebody else's.
    """
    there = _read(path)
    if there is None:
        return False
    if _GIT_MARK not in there:
        raise Refused(
            "E_HOOK_TAKEN", "the pre-push hook is somebody else's", place=Place(file=str(path)), remedy="It was left."
        )
    _write(path, None)
    return True
