"""The page of the fuzzing room: what the recorded runs came to. Run as a program, it writes the page anew."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "src"), str(ROOT / "tests")]

from fuzz.readers import READERS  # noqa: E402 - the paths come first

PAGE = ROOT / "docs" / "fuzzing.md"
RESULTS = ROOT / "fuzz" / "results"
MARK = "<!-- written by fuzz/page.py: everything below -->\n"
MILLION = 1_000_000


def results() -> list[dict[str, Any]]:
    """Return what the last recorded run of each reader came to, in the order of the table of readers."""
    held = {name: RESULTS / f"{name.replace('/', '-')}.json" for name in (reader.name for reader in READERS)}
    return [json.loads(path.read_bytes()) for path in held.values() if path.exists()]


def row(found: dict[str, Any]) -> str:
    """Return a reader's line of the table."""
    rate = found["accepted"] / found["inputs"]
    cells = (
        f"`{found['name']}`", f"{found['inputs']:,}", f"{rate:.1%}", f"{found['reached']} of {found['possible']}",
        str(len(found["codes"])), f"{found['inputs'] / found['seconds']:,.0f}",
        f"{1000 * found['slowest']:,.0f} ms for {found['slowest_size']:,} bytes",
    )  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def table() -> str:
    """Return what stands below the mark."""
    found = results()
    million = [f"`{one['name']}`" for one in found if one["inputs"] >= MILLION]
    untold = [f"`{reader.name}`" for reader in READERS if reader.name not in {one["name"] for one in found}]
    inputs = sum(one["inputs"] for one in found)
    lines = [
        f"Recorded are {len(found)} of {len(READERS)} readers, {inputs:,} inputs together.",
        "",
        f"With a million inputs: {', '.join(million) or 'none'}.",
        "",
        "| reader | inputs | accepted | edges | distinct codes | inputs a second | slowest |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        *map(row, found),
    ]
    if untold:
        lines += ["", f"Of these no long run is recorded, the quick pass alone feeds them: {', '.join(untold)}."]
    return "\n".join(lines) + "\n"


def page() -> str:
    """Return the whole page: what stands above the mark, and the table."""
    above, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    if not mark:
        raise ValueError("the page has lost its mark")
    return above + MARK + "\n" + table()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
