"""Checks what no file of the project may contain, and prints each finding as ``file:line: what``.

Run from anywhere: ``python scripts/check_text.py``. Exit 0 when clean, 1 when not. Looks at the files that git
tracks or would track. The rules are data; adding one is adding a line.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

# Written in pieces, so that this file does not hold what it forbids.
_HOSTS = [
    ("py" + "pi", "org"), ("python" + "hosted", "org"), ("python" + "hosted", "com"), ("deb" + "ian", "org"),
    ("npm" + "js", "org"), ("npm" + "js", "com"), ("yarn" + "pkg", "com"), ("crates", "io"), ("ub" + "untu", "com"),
]  # fmt: skip
_PLACES = [
    ("", "work", "main"), ("", "work", "shared"), ("", "work", "plan"), ("", "work", ".library"),
    ("", "tmp", "venv"), ("", "root", ".py" + "env"), ("", "opt", "wheels"), ("", "home", "runner"),
]  # fmt: skip

RULES: list[tuple[str, re.Pattern[str], re.Pattern[str]]] = [
    # (what is wrong, names of the files it concerns, what finds it in one line)
    (
        "names a package registry's host",
        re.compile(r""),
        re.compile("|".join(rf"\b{re.escape('.'.join(host))}\b" for host in _HOSTS), re.IGNORECASE),
    ),
    (
        "names a path of somebody's machine",
        re.compile(r""),
        re.compile("|".join(re.escape("/".join(place)) + r"(?![\w-])" for place in _PLACES)),
    ),
    (
        "a lock names an address",
        re.compile(r"^locks/"),
        re.compile(r"://|^\s*--?(?:index|extra|find|i\b|f\b)"),
    ),
    (
        "a type exemption without a code or a reason, which stands behind a second #",
        re.compile(r"\.pyi?$"),
        re.compile(r"#\s*type:\s*ig" + r"nore(?!\[[a-z0-9-]+(?:,\s*[a-z0-9-]+)*\]\s*#.*\w{3})"),
    ),
    (
        "a lint exemption without a code or a reason, which stands behind a dash",
        re.compile(r"\.pyi?$"),
        re.compile(r"#\s*no" + r"qa(?!:\s*[A-Z]+[0-9]+(?:,\s*[A-Z]+[0-9]+)*\s*[-#].*\w{3})", re.IGNORECASE),
    ),
    (
        "work left undone; finish it, or write down the limit",
        re.compile(r"\.(?:py|sh|md|toml|txt)$|^Makefile$|^\.ci/"),
        re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b"),
    ),
]

# Files whose bytes are others' own (published vectors, licence text) or that exist to hold bad examples.
_EXEMPT = re.compile(r"^LICENSE$|^tests/(?:[^/]+/)*(?:vectors|data|fixtures)/")


def tracked_files(root: Path) -> list[str]:
    """Return the names of the files that git tracks or would track, with ``/`` between the parts.

    Without git: every file outside the folders that ``.gitignore`` names.
    """
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=root, capture_output=True, check=True,
        ).stdout.decode().split("\0")  # fmt: skip
    except (FileNotFoundError, subprocess.CalledProcessError):
        listed = list(_walk(root))
    return sorted(name for name in listed if name and (root / name).is_file())


def _walk(root: Path) -> Iterator[str]:
    lines = (root / ".gitignore").read_text(encoding="utf-8").split()
    ignored = {line.rstrip("/") for line in lines if line.endswith("/")} | {".git"}
    suffixes = tuple(line.removeprefix("*") for line in lines if line.startswith("*"))
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name not in ignored]
        where = Path(folder).relative_to(root)
        yield from ((where / name).as_posix() for name in files if not name.endswith(suffixes))


def findings(name: str, text: str) -> Iterator[str]:
    """Yield one line for each thing in this file that should not be there."""
    if _EXEMPT.search(name):
        return
    rules = [(what, pattern) for what, files, pattern in RULES if files.search(name)]
    for number, line in enumerate(text.splitlines(), 1):
        for what, pattern in rules:
            if pattern.search(line):
                yield f"{name}:{number}: {what}"


def main() -> int:
    """Check every file."""
    names = tracked_files(ROOT)
    found = [
        finding
        for name in names
        for finding in findings(name, (ROOT / name).read_text(encoding="utf-8", errors="replace"))
    ]
    for finding in found:
        print(finding)
    print(f"{len(names)} files read, {len(found)} findings", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
