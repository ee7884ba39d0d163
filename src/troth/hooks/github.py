"""The GitHub Action: inputs from the environment, each receipt decided by the front door, a table as the summary.

Whatever stands in a folder's name or a record was written by others. It reaches `troth` as one word of an argument
vector, the summary as a code span, and the log without anything that a runner takes for a command.

Exit status: 0 every receipt says *continue*; 1 any other decision, an invalid receipt, or none found.
"""

from __future__ import annotations

import glob
import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from troth.core.words import printable

ACTIONS: Final = ("failed", "stop", "escalate", "replan", "continue")
"""From the worst on; what gives no decision has failed."""

MAX_FOLDERS: Final = 1000
_SECONDS: Final = 600
_VALUES: Final = (
    ("TABLE", "--table"),
    ("PINS", "--pin"),
    ("THRESHOLD", "--threshold"),
    ("QUORUM", "--quorum"),
    ("SIGNERS", "--signers"),
    ("TRUSTED_ROOT", "--trusted-root"),
)
"""Inputs that are one value -> the option."""

_LINES: Final = (
    ("KEYS", "--key"),
    ("IDENTITIES", "--certificate-identity"),
    ("ISSUERS", "--certificate-oidc-issuer"),
)
"""Inputs of which each line is a value -> the option."""

_MARK: Final = {
    "continue": "\u2705",
    "replan": "\u21a9\ufe0f",
    "escalate": "\u270b",
    "stop": "\u26d4",
    "failed": "\u274c",
}


def folders_of(text: str) -> list[str]:
    """Return the folders that the lines name, in order and once each; at most a thousand and one.

    A line that names nothing stands for itself, so that what is missing is told and not passed over.
    """
    found: dict[str, None] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        # Path.glob takes no absolute pattern and needs a folder to begin from.
        hits = sorted(glob.glob(line, recursive=True)) if glob.has_magic(line) else [line]  # noqa: PTH207 - see above
        found.update(dict.fromkeys(hits[: MAX_FOLDERS + 1]))
    return list(found)


def options_of(environment: Mapping[str, str]) -> list[str]:
    """Return the options for `troth receipt decide` that the inputs stand for; an empty input stands for none."""

    def lines(name: str) -> list[str]:
        return list(filter(None, map(str.strip, environment.get(f"TROTH_{name}", "").splitlines())))

    words = [f"{option}={line}" for name, option in _LINES for line in lines(name)]
    for name, option in _VALUES:
        value = environment.get(f"TROTH_{name}", "").strip()
        if value:
            words.append(f"{option}={value}")
    return words


def decided(folder: str, options: list[str]) -> dict[str, str]:
    """Return member, decision, reason and action of one folder; ``failed`` for whatever gives none."""
    failed = {"member": folder, "decision": "none", "reason": "E_DEFECT", "action": "failed"}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", "troth", "receipt", "decide", "--json", *options, "--", folder],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
        answer: Any = json.loads(done.stdout)
        if "error" in answer:
            return {**failed, "reason": str(answer["error"]["code"])}
        stop = answer["stop_decision"]
        action = stop["action"]
        # The status and the answer have to say the same.
        if action not in ACTIONS or (action == "continue") != (done.returncode == 0):
            return failed
        return {
            "member": folder,
            "decision": str(answer["done"]["decision"]),
            "reason": str(stop["reason"]),
            "action": action,
        }
    except (OSError, ValueError, KeyError, TypeError, subprocess.TimeoutExpired):
        return failed


def code_span(text: str) -> str:
    """Return a cell of a table in which nothing is markup: a code span, whose own signs are replaced."""
    return "`" + (printable(text, 300).replace("`", "'").replace("|", "\\|").strip() or "-") + "`"


def summary(results: list[dict[str, str]]) -> str:
    """Return the table in Markdown."""
    rows = [f"| {_MARK[one['action']]} {one['action']} | {one['decision'].replace('_', ' ')} | "
            f"{code_span(one['reason'])} | {code_span(one['member'])} |" for one in results]  # fmt: skip
    counts = ", ".join(
        f"{count} {action}" for action in ACTIONS if (count := sum(one["action"] == action for one in results))
    )
    head = ["### Receipts", "", counts or "No receipt was found: nothing is known.", ""]
    return "\n".join(
        [*head, *(["| action | verdict | reason | receipt |", "| --- | --- | --- | --- |", *rows] if rows else []), ""]
    )


def log_line(text: str) -> str:
    """Return a line of the log in which a runner finds no command."""
    return re.sub(":(?=:)", ": ", printable(text, 600)).replace("##[", "# #[")


def main(environment: Mapping[str, str] | None = None) -> int:
    """Run the action and return its exit status."""
    given = os.environ if environment is None else environment
    folders = folders_of(given.get("TROTH_FOLDERS", ""))
    if len(folders) > MAX_FOLDERS:
        print(f"troth: more than {MAX_FOLDERS} folders")  # noqa: T201 - the runner's log
        folders = []
    options = options_of(given)
    results = [decided(folder, options) for folder in folders]
    worst = next((action for action in ACTIONS if any(one["action"] == action for one in results)), "failed")
    for one in results:
        print(log_line(f"troth: {one['action']}: {one['decision']} ({one['reason']}) {one['member']}"))  # noqa: T201 - as above
    if not results:
        print("troth: no receipt was found, so nothing is known")  # noqa: T201 - as above
    _append(given.get("GITHUB_STEP_SUMMARY"), summary(results))
    # JSON in ASCII has no line end of its own, so a value ends where it should.
    _append(given.get("GITHUB_OUTPUT"), f"decision={worst}\nresults={json.dumps(results)}\n")
    return 0 if worst == "continue" else 1


def _append(path: str | None, text: str) -> None:
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(text)


if __name__ == "__main__":
    sys.exit(main())
