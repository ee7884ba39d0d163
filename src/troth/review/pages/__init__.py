"""Reports as pages: Markdown, and HTML that loads nothing, runs nothing and links nowhere (§11).

Whatever a reviewer, a host or an artifact wrote is text: in HTML everything is escaped and a Content-Security-Policy
allows one style sheet, the page's own, by its digest; in Markdown every mark of that language stands behind a
backslash, and quoted text stands in a fence longer than any within it.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, Final

from troth.core.words import printable
from troth.review.formats import heard

if TYPE_CHECKING:
    from jinja2 import Template

    from troth.review.context import Passage
    from troth.review.report import Report, Told

_MARKS: Final = re.compile(r"([\\`*_{}\[\]()<>#+\-.!|~&:@/=^$\"'])")
_TICKS: Final = re.compile(r"`+")
_LINE: Final = 400


# --- HTML -----------------------------------------------------------------------------------------------------------


@functools.cache
def _page() -> tuple[Template, str, str]:
    import base64
    import hashlib
    from importlib.resources import files

    from jinja2 import Environment, StrictUndefined

    here = files(__package__)
    style = here.joinpath("report.css").read_text(encoding="utf-8")
    digest = "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=False)
    environment.filters["shown"] = lambda text: printable(heard(text).replace("\t", "    "), _LINE)
    return environment.from_string(here.joinpath("report.html").read_text(encoding="utf-8")), style, digest


def html(report: Report) -> str:
    """Return the report as one HTML page that stands alone."""
    from markupsafe import Markup

    template, style, digest = _page()
    # The style is a file of ours, and a style element takes no escapes.
    return template.render(report=report, style=Markup(style), style_digest=digest) + "\n"  # noqa: S704 - see above


# --- Markdown -------------------------------------------------------------------------------------------------------


def escaped(text: Any) -> str:
    """Return a text as Markdown that reads as that very text, on one line."""
    return _MARKS.sub(r"\\\1", " ".join(str(text).split()))


def fenced(text: str) -> str:
    """Return a text as a block of code; nothing within can end it."""
    longest = max((len(found) for found in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def markdown(report: Report) -> str:
    """Return the report as Markdown (CommonMark, with one table)."""
    parts = [f"# {escaped(report.title)}", f"**{report.outcome}** {escaped(report.says)}"]
    parts.append("\n".join(f"- {name}: {escaped(text)}" for name, text in report.head))
    parts += [f"> {escaped(text)}" for text in report.notices]
    parts.append(f"Reviewer: {escaped(report.summary)}")
    rows = report.tally.rows()
    if report.members:
        parts.append("## Members")
        parts.append("\n".join(f"- {escaped(text)}" for text in report.members))
    parts.append("## Tally")
    parts.append(
        "\n".join(
            (
                "| raised | " + " | ".join(words for words, _ in rows) + " |",
                "| --- |" + " --- |" * len(rows),
                f"| {report.tally.raised} | " + " | ".join(str(number) for _, number in rows) + " |",
            )
        )
    )
    parts.append(f"{report.tally.as_text()}.")
    parts.append("## Open questions")
    parts += [f"- {told.id}: {escaped(told.question or '')}" for told in report.open] or ["None."]
    parts.append("## Findings")
    for told in report.findings:
        parts += _finding(told)
    if not report.findings:
        parts.append("None.")
    if report.alternatives:
        parts.append("## Suggested instead, not verified")
        parts.append("\n".join(f"- {escaped(text)}" for text in report.alternatives))
    parts.append("## Limits")
    parts.append("\n".join(f"- {escaped(text)}" for text in report.limits))
    return "\n\n".join(parts) + "\n"


def _finding(told: Told) -> list[str]:
    category = f", {escaped(told.category)}" if told.category else ""
    breadth = f"; {escaped(told.breadth)}" if told.breadth else ""
    parts = [
        f"### {told.id}, {told.end.replace('_', ' ')}",
        f"**{escaped(told.claim)}**",
        f"{told.severity}, confidence {told.confidence}{category}{breadth}",
    ]
    if told.impact:
        parts.append(f"Impact: {escaped(told.impact)}")
    for held in told.evidence:
        source = f" Source: {escaped(held.source)}" if held.source else ""
        observed = f"{escaped(held.observation)} ({held.grounding}){source}"
        parts.append(f"Evidence, {held.state}: {escaped(held.place)}")
        parts.append(f"> {observed}")
        parts += [f"> {escaped(fault)}" for fault in held.faults]
        parts += [fenced(_passage(place)) for place in held.passages]
    parts.append(f"Recommended: {escaped(told.recommendation)}")
    parts.append("\n".join(f"- {escaped(words)}" for words in told.verification) or "No verification.")
    for name, text in (
        ("Host", told.host_position),
        ("Reviewer", told.reviewer_position),
        ("Dispute", told.dispute),
        ("Question", told.question),
        ("Resolution", told.resolution),
    ):
        if text:
            parts.append(f"{name}: {escaped(text)}")
    if told.steps:
        parts.append("Back and forth:")
        parts.append("\n".join(f"{number}. {_step(step)}" for number, step in enumerate(told.steps, 1)))
    if told.decisions:
        parts.append("Decided by the operator:")
        parts.append("\n".join(f"{number}. {_step(step)}" for number, step in enumerate(told.decisions, 1)))
    return parts


def _step(step: Any) -> str:
    return f"{escaped(step.time)} {escaped(step.actor)} ({step.role}): {escaped(step.words)}"


def _passage(place: Passage) -> str:
    def shown(text: str) -> str:
        return printable(heard(text).replace("\t", "    "), _LINE)

    return "\n".join(
        [shown(place.path)]
        + [f"{'>' if line.anchored else ' '} {line.number:>4}  {shown(line.text)}" for line in place.lines]
    )
