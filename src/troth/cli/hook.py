"""``troth hook``: install, remove and be what agents' tools and git call; every ``run`` answers in its tool's words."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.options import json_option
from troth.cli.receipt_signers import SignatureWords, trust_options
from troth.core.errors import Refused, TrothError

if TYPE_CHECKING:
    from troth.airlock.hooking import Bound

_F = TypeVar("_F", bound=Callable[..., Any])

FAILED: Final = 1
"""Exit status of a hook that judged nothing. Not 2, which Claude Code reads as an answer."""

_RAW: Final = {"ignore_unknown_options": True, "allow_extra_args": True}


@click.group("hook", epilog="Example: troth hook claude-code install --contract .mentu/contracts/empty-cart")
def hook_cmd() -> None:
    """Judge an agent's work whenever its own tool says that it is done.

    A hook is no witness: what it judges is the tree on the disk, and the best it can say is that nothing contradicts.
    `troth run` watches from outside. A hook that is not called, or fails, counts for nothing: see `troth hook status`.
    """


def _root_option(command: _F) -> _F:
    return click.option(
        "--root",
        type=click.Path(path_type=Path, file_okay=False),
        metavar="DIR",
        help="The workspace. Default: the one found upward from here, else this folder.",
    )(command)


def _judging_options(command: _F) -> _F:
    command = click.option(
        "--table",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Your table of decisions. Default: the shipped.",
    )(command)
    return click.option(
        "--contract",
        type=click.Path(path_type=Path),
        required=True,
        help="A sealed contract: contract.json or its folder.",
    )(command)


def _bound_options(command: _F) -> _F:
    """Add what an installed command line carries; all of it is text, so that nothing but a missing value is usage."""
    for name in ("--table", "--seal", "--sha256", "--contract", "--root"):
        command = click.option(name, name.strip("-"), hidden=True)(command)
    return command


def _here() -> Path:
    from troth.stores.workspace import find_workspace, here

    try:
        return find_workspace(here()).root
    except Refused:
        return here()


def _program() -> list[str]:
    """Return the words by which this program is called from anywhere, by nothing that lies in the folder called in."""
    import shutil

    found = shutil.which("troth")
    return [found] if found is not None else [sys.executable, "-P", "-m", "troth"]


def _words(tool: str, root: Path, contract: Path, table: Path | None) -> list[str]:
    """Return the command line to install, after everything that it names was read.

    Raises:
        Refused: a code of the contract or the table.
    """
    from troth.airlock.sealed import read_contract, read_seal
    from troth.airlock.stopping import load_table
    from troth.core.digests import sha256_hex

    file = (contract / "contract.json" if contract.is_dir() else contract).absolute()
    data, _ = read_contract(file)
    seal = read_seal(file)
    load_table(table)
    words = [
        *_program(),
        "hook",
        tool,
        "run",
        "--root",
        str(root),
        "--contract",
        str(file),
        "--sha256",
        sha256_hex(data),
        "--seal",
        sha256_hex(seal) if seal is not None else "",
    ]
    return [*words, "--table", str(table.absolute())] if table is not None else words


def _bound(root: str | None, contract: str | None, sha256: str | None, seal: str | None, table: str | None) -> Bound:
    from troth.airlock.hooking import Bound
    from troth.airlock.stopping import load_table

    if root is None or contract is None or sha256 is None or seal is None:
        raise Refused("E_USAGE", "the hook was called without what it was installed with", remedy="Install it anew.")
    return Bound(Path(root), Path(contract), sha256, seal, load_table(Path(table) if table is not None else None))


def _tell_change(changed: bool, path: Path, done: str, as_json: bool) -> int:
    if as_json:
        emit_json({"changed": changed, "file": str(path)})
    else:
        say(f"{printable(str(path))}: {done if changed else 'nothing to change'}")
    return 0


# --- Claude Code ---


@hook_cmd.group("claude-code", epilog="Example: troth hook claude-code uninstall")
def claude_code() -> None:
    """Send Claude Code back when what it calls done is not."""


def _settings_option(command: _F) -> _F:
    return click.option(
        "--settings",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="The settings file. Default: .claude/settings.local.json in the workspace.",
    )(command)


def _claude_settings(settings: Path | None, root: Path) -> Path:
    return settings if settings is not None else root / ".claude" / "settings.local.json"


@claude_code.command(
    "install",
    epilog="Exit codes: 0 installed, 2 refused. "
    "Example: troth hook claude-code install --contract .mentu/contracts/empty-cart",
)
@_judging_options
@_root_option
@_settings_option
@json_option
def claude_install(contract: Path, table: Path | None, root: Path | None, settings: Path | None, as_json: bool) -> int:
    """Have Claude Code call `troth` when it starts, uses a tool, and stops.

    Nothing else in the settings file is changed, and uninstalling gives back the bytes of before.
    """
    import shlex

    from troth.hooks.settings import install_claude

    root = (root or _here()).resolve()
    path = _claude_settings(settings, root)
    changed = install_claude(path, shlex.join(_words("claude-code", root, contract, table)))
    return _tell_change(changed, path, "the hook is installed", as_json)


@claude_code.command("uninstall", epilog="Example: troth hook claude-code uninstall")
@_root_option
@_settings_option
@json_option
def claude_uninstall(root: Path | None, settings: Path | None, as_json: bool) -> int:
    """Take the hook out of the settings file, and nothing else."""
    from troth.hooks.settings import uninstall_claude

    path = _claude_settings(settings, (root or _here()).resolve())
    return _tell_change(uninstall_claude(path), path, "the hook is removed", as_json)


@claude_code.command(
    "run", context_settings=_RAW, epilog="Example: troth hook claude-code run --root DIR --contract FILE --sha256 HEX"
)
@_bound_options
def claude_run(**bound: str | None) -> int:
    """Be the hook: one event as JSON on stdin, the answer as JSON on stdout.

    Exit status: 0 answered, 1 nothing was judged (Claude Code shows the error and goes on).
    """
    import json

    from troth.hooks.claude_code import MAX_INPUT, answer, failed, read_event

    try:
        event = read_event(sys.stdin.buffer.read(MAX_INPUT + 1))
        said = answer(event, _bound(**bound))
    except (TrothError, OSError) as fault:
        note(failed(fault))
        return FAILED
    if said is not None:
        say(json.dumps(said))  # plain ASCII: nothing in it drives a terminal
    return 0


# --- Codex ---


@hook_cmd.group("codex", epilog="Example: troth hook codex install --contract .mentu/contracts/empty-cart")
def codex() -> None:
    """Judge when Codex says that a turn is complete."""


def _config_option(command: _F) -> _F:
    return click.option(
        "--config",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Codex's configuration. Default: config.toml in CODEX_HOME, else in ~/.codex.",
    )(command)


def _codex_config(config: Path | None) -> Path:
    from troth.hooks.codex import codex_home

    return config if config is not None else codex_home() / "config.toml"


@codex.command(
    "install", epilog="Exit codes: 0 installed, 2 refused. Example: troth hook codex install --contract contract.json"
)
@_judging_options
@_root_option
@_config_option
@json_option
def codex_install(contract: Path, table: Path | None, root: Path | None, config: Path | None, as_json: bool) -> int:
    """Have Codex notify `troth`; it takes one program only, and cannot be sent back by it."""
    from troth.hooks.settings import change_codex

    path = _codex_config(config)
    changed = change_codex(path, _words("codex", (root or _here()).resolve(), contract, table))
    return _tell_change(changed, path, "the hook is installed", as_json)


@codex.command("uninstall", epilog="Example: troth hook codex uninstall")
@_config_option
@json_option
def codex_uninstall(config: Path | None, as_json: bool) -> int:
    """Take our line out of Codex's configuration, and nothing else."""
    from troth.hooks.settings import change_codex

    path = _codex_config(config)
    return _tell_change(change_codex(path, None), path, "the hook is removed", as_json)


@codex.command(
    "run", context_settings=_RAW, epilog="Example: troth hook codex run --root DIR --contract FILE --sha256 HEX JSON"
)
@_bound_options
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def codex_run(words: tuple[str, ...], **bound: str | None) -> int:
    """Be the program that Codex notifies: one JSON object as the last word.

    Exit status: 0 judged or not to be judged, 1 nothing was judged.
    """
    from troth.hooks.codex import notified

    try:
        if not words:
            raise Refused("E_HOOK_INPUT", "no notification was given")
        judged = notified(words[-1], _bound(**bound))
    except (TrothError, OSError) as fault:
        note(f"troth: nothing was judged, so nothing counts as done: {printable(str(fault), 2000)}")
        return FAILED
    if judged is not None:
        note(f"troth: {judged.stop.action}: {printable(judged.sentence, 1000)}")
    return 0


# --- git ---


@hook_cmd.group("git", epilog="Example: troth hook git install")
def git() -> None:
    """Let nothing be pushed that no receipt speaks for."""


def _pre_push(root: Path) -> Path:
    from troth.airlock.pushing import hooks_folder

    return hooks_folder(root) / "pre-push"


@git.command(
    "install",
    epilog="Exit codes: 0 installed, 2 refused. "
    "Example: troth hook git install --table stop.toml --signers signers.toml",
)
@click.option("--table", type=click.Path(path_type=Path), metavar="FILE", help="Your table. Default: the shipped one.")
@trust_options
@_root_option
@json_option
def git_install(table: Path | None, signatures: SignatureWords, root: Path | None, as_json: bool) -> int:
    """Write the repository's pre-push hook; one that stands there already is left alone.

    With --key, --certificate-identity or --signers a receipt speaks for a commit only when it is signed as asked, as
    `troth receipt verify` says. Keys are written into the hook; the table, the list of signers and the trusted root are
    read at each push.
    """
    from troth.airlock.stopping import load_table
    from troth.cli.receipt_signers import lasting
    from troth.hooks.settings import install_git

    load_table(table)
    trusted = lasting(signatures)
    root = (root or _here()).resolve()
    words = [*_program(), "hook", "git", "run", "--root", str(root)]
    words += ["--table", str(table.absolute())] if table is not None else []
    words += trusted
    path = _pre_push(root)
    return _tell_change(install_git(path, words), path, "the hook is installed", as_json)


@git.command("uninstall", epilog="Example: troth hook git uninstall")
@_root_option
@json_option
def git_uninstall(root: Path | None, as_json: bool) -> int:
    """Remove the pre-push hook that was written here, and no other."""
    from troth.hooks.settings import uninstall_git

    path = _pre_push((root or _here()).resolve())
    return _tell_change(uninstall_git(path), path, "the hook is removed", as_json)


@git.command("run", context_settings=_RAW, epilog="Example: troth hook git run --root DIR origin URL")
@click.option("--root", hidden=True)
@click.option("--table", hidden=True)
@trust_options
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def git_run(root: str | None, table: str | None, signatures: SignatureWords, words: tuple[str, ...]) -> int:
    """Be git's pre-push hook: refs on stdin.

    Exit status: 0 push, 1 do not.
    """
    from troth.airlock.pushing import MAX_INPUT, grant, read_pushes
    from troth.airlock.stopping import load_table
    from troth.cli.receipt_signers import trust_of

    try:
        if root is None:
            raise Refused(
                "E_USAGE", "the hook was called without what it was installed with", remedy="Install it anew."
            )
        rules = load_table(Path(table) if table is not None else None)
        pushes = read_pushes(sys.stdin.buffer.read(MAX_INPUT + 1))
        trust = trust_of(signatures)
        believe = None if trust is None else (lambda member: trust.seen(member)[0])
        granted = grant(Path(root), pushes, rules, believe)
    except TrothError as fault:
        note(f"troth: not pushed: {printable(str(fault), 2000)}")
        return FAILED
    for one in granted:
        note(f"troth: {printable(one.push.local)} goes by the receipt of {printable(one.folder.name)}")
    return 0


# --- status ---


@hook_cmd.command(
    "status",
    epilog="Exit codes: 0 continue, 1 not: sent back, stopped, or undecided; 4 a person must decide. "
    "Example: troth hook status",
)
@_root_option
@json_option
def status(root: Path | None, as_json: bool) -> int:
    """Tell what the last hook decided about the tree as it is now.

    Where none was called, the last one failed, or a file changed since, nothing is decided, and that is no success.
    """
    from troth.airlock.hooking import standing_decision

    last = standing_decision((root or _here()).resolve())
    stop = last["stop_decision"]
    if as_json:
        emit_json({name: last[name] for name in ("source", "tree_sha256", "done", "sentence", "stop_decision")})
    else:
        say(f"{stop['action']}: {printable(last['sentence'])} (by the hook of {last['source']})")
    return {"continue": 0, "escalate": 4}.get(stop["action"], 1)
