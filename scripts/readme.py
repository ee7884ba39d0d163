#!/usr/bin/env python3
"""Write the table of the demo into README.md, from a real run of the demo.

scripts/readme.py [--check]     --check: say whether the table in README.md is what the demo shows, and change nothing
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- demo: made by `make readme` -->\n", "<!-- /demo -->\n"


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the demo's rows as a Markdown table; the version of Python is left out, since it differs by machine."""
    lines = ["| agent | claimed | the records establish | because | ledger |", "| --- | --- | --- | --- | --- |"]
    for row in rows:
        because = re.sub(r"python3\.\d+/", "python3.*/", row["sentence"]).replace("|", "\\|")
        cells = (f"{row['agent']}: {row['does']}", row["claimed"], f"**{row['decision']}**", because, row["ledger"])
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def with_table(text: str, shown: str) -> str:
    """Return README's text with the table in its place.

    Raises:
        ValueError: when the two marks are not there.
    """
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError("README.md has lost the marks of the demo's table")
    return f"{head}{begin}\n{shown}\n{end}{tail}"


def main() -> int:
    """Run the demo and write or compare the table."""
    done = subprocess.run([sys.executable, "-m", "troth", "demo", "--json"], capture_output=True, text=True, check=True)
    text = README.read_text(encoding="utf-8")
    now = with_table(text, table(json.loads(done.stdout)["rows"]))
    if "--check" in sys.argv[1:]:
        return 0 if now == text else 1
    README.write_text(now, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
