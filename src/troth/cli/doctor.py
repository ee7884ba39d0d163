"""``troth doctor``: what this machine lacks, each with the command that mends it."""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
from typing import Any, Final

import click

from troth import __version__
from troth.cli.answer import coloured, emit_json, printable, say

_PROGRAMS: Final = (
    # (program, arguments that print its version, what it is for)
    ("strace", "--version", "watches what an agent does"),
    ("bwrap", "--version", "keeps an agent and a grading in a sandbox"),
    ("git", "--version", "optional: reads a revision that is named as a reference; many agents use it"),
)


def _version(path: str, argument: str) -> str | None:
    try:
        done = subprocess.run([path, argument], capture_output=True, stdin=subprocess.DEVNULL, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return lines[0].strip() if lines else None


def examine() -> dict[str, Any]:
    """Return everything the doctor knows, as the object that ``--json`` prints."""
    from troth.cli.contract_common import workspace_above
    from troth.observer import room
    from troth.observer.ready import observer_ready
    from troth.stores import gitfiles
    from troth.stores.workspace import here

    programs: dict[str, Any] = {}
    for name, argument, _ in _PROGRAMS:
        path = shutil.which(name)
        programs[name] = None if path is None else {"path": path, "version": _version(path, argument)}
    missing = [entry.as_json() for entry in observer_ready()]
    return {
        "ok": not missing,
        "troth": __version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "programs": programs,
        "missing": missing,
        "tight": [entry.as_json() for entry in room.tight(room.gather(workspace_above(here())))],
        "merge_driver": gitfiles.driver_here(),
    }


@click.command(
    "doctor",
    epilog="Exit codes: 0 observing and grading work here, 1 something is missing. Example: troth doctor --json",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def doctor_cmd(as_json: bool) -> int:
    """Tell what this machine lacks, and the command that mends it."""
    found = examine()
    status = 0 if found["ok"] else 1
    if as_json:
        emit_json(found)
        return status
    say(f"troth {found['troth']}, Python {found['python']} ({sys.prefix}), {found['platform']}")
    for name, _, purpose in _PROGRAMS:
        entry = found["programs"][name]
        told = "not installed" if entry is None else printable(entry["version"] or entry["path"])
        say(f"  {name:<8}{told}  ({purpose})")
    if found["merge_driver"] is not None and not found["merge_driver"]["configured"]:
        say("Merging ledgers with git: " + coloured("not known to this clone", "yellow"))
        say(f"    {found['merge_driver']['remedy']}")
    say("Ledger and receipt checking: " + coloured("ready", "green"))
    for entry in found["tight"]:
        say(coloured("Tight: ", "yellow") + printable(entry["what"]))
        say(f"    {printable(entry['remedy'])}")
    if found["ok"]:
        say("Observing and grading: " + coloured("ready", "green"))
        return status
    say("Observing and grading: " + coloured("not ready", "red"))
    for entry in found["missing"]:
        say(f"  {printable(entry['what'])}")
        say(f"    {printable(entry['remedy'])}")
    return status
