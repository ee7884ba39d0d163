"""The page of the suites: the table, and what the runs on it came to. Run as a program, it writes the page anew."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from suites.suites import Suite
from suites.table import SUITES

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "suites.md"
RESULTS = Path(__file__).with_name("results")
MARK = "<!-- written by tests/suites/page.py: everything below -->\n"


def result_of(suite: Suite) -> dict[str, Any] | None:
    """Return what the last recorded run of a suite came to."""
    path = RESULTS / f"{suite.name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def tables() -> str:
    """Return the tables of the page."""
    lines = ["| project | archive, SHA-256 | tests | traits |", "| --- | --- | --- | --- |"]
    for suite in SUITES:
        found = result_of(suite) or {}
        traits = ", ".join(sorted(suite.traits)) or "-"
        count = found.get("tests")
        told = "-" if count is None else f"{count:,}"
        lines.append(f"| {suite.name} {suite.version} ({suite.ecosystem}) | `{suite.sha256}` | {told} | {traits} |")
    lines += ["", "| project | mended and said so, twice | cheat | caught as |", "| --- | --- | --- | --- |"]
    for suite in SUITES:
        found = result_of(suite) or {"honest": ["-"], "cheat": {"reason": "-"}}
        honest = ", ".join(found["honest"])
        lines.append(f"| {suite.name} | {honest} | {suite.cheat.kind} | `{found['cheat']['reason']}` |")
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the whole page: what stands above the mark, and the tables."""
    text = PAGE.read_text(encoding="utf-8")
    above, mark, _ = text.partition(MARK)
    assert mark, "the page has lost its mark"
    return above + MARK + "\n" + tables()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
