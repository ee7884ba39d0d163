"""An independent reading of anchors, without a Markdown library; texts here hold no fences, quotes or HTML."""

from __future__ import annotations

import re
from typing import Any


def texts(members: dict[str, bytes]) -> dict[str, str]:
    return {name: members[name].decode().replace("\r\n", "\n") for name in sorted(members)}


def lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def atx(line: str) -> tuple[int, str] | None:
    found = re.match(r" {0,3}(#{1,6})(?:[ \t\r]+(.*?))?[ \t\r]*\n?$", line, re.DOTALL)
    if found is None:
        return None
    content = re.sub(r"(?:^|[ \t\r]+)#+[ \t\r]*$", "", found[2] or "")
    return len(found[1]), content.strip()


def section(heading: str, text: str) -> str | None:
    rows = lines(text)
    heads = [(number, atx(row)) for number, row in enumerate(rows)]
    known = [(number, *head) for number, head in heads if head is not None]
    if not known:
        for number, row in enumerate(rows):
            if row.strip() == heading.strip():
                return "".join(rows[number + 1 :])
        return None
    for number, rank, content in known:
        if content == heading.strip():
            end = next((later for later, other, _ in known if later > number and other <= rank), len(rows))
            return "".join(rows[number + 1 : end])
    return None


def count(needle: str, text: str) -> int:
    return text.count(needle.replace("\r\n", "\n"))


def first_section(heading: str, held: dict[str, str]) -> str | None:
    return next((body for text in held.values() if (body := section(heading, text)) is not None), None)


def broken(anchor: dict[str, Any], members: dict[str, bytes]) -> list[str]:
    held = texts(members)
    if "path" in anchor and anchor["path"] not in held:
        return ["path-in-artifact"]
    if anchor["type"] == "file_range":
        text = held[anchor["path"]]
        last = max(anchor.get("line_start", 0), anchor.get("line_end", 0))
        found = ["line-in-file"] if last > len(lines(text)) else []
        return found + (["symbol-in-file"] if "symbol" in anchor and not count(anchor["symbol"], text) else [])
    if anchor["type"] == "section":
        wanted = {anchor["path"]: held[anchor["path"]]} if "path" in anchor else held
        return [] if first_section(anchor["heading"], wanted) is not None else ["section-in-artifact"]
    if anchor["type"] == "generic":
        return [] if any(count(anchor["excerpt"], text) for text in held.values()) else ["excerpt-in-artifact"]
    within = list(held.values())
    if "section" in anchor:
        body = first_section(anchor["section"], held)
        if body is None:
            return ["section-in-artifact"]
        within = [body]
    matches = sum(count(anchor["quote"], text) for text in within)
    if not matches:
        return ["quote-in-artifact"]
    return [] if matches >= anchor.get("occurrence", 1) else ["quote-occurrence"]
