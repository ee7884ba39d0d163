"""What the airlock made of a submission, in words: the same for `submit`, `run`, `queue` and `show`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from troth.cli.answer import coloured, printable
from troth.core.words import lasting

if TYPE_CHECKING:
    from troth.airlock.validating import Report

COLOURS: Final = {"passed": "green", "failed": "red", "waiting": "yellow"}

_CAME: Final[Mapping[str, str]] = {
    "closed": "closed",
    "waiting": "waits",
    "failed": "stays in review",
    "superseded": "superseded",
    "stopped": "not decided",
}


def answer_line(answer: Mapping[str, Any]) -> str:
    """Return a validator's answer, ``{validator, result, reason}``, as one line."""
    result = str(answer["result"])
    marked = coloured(printable(result, 20), COLOURS.get(result, "yellow"))
    return f"{printable(str(answer['validator']), 80)} {marked}: {printable(str(answer['reason']), 400)}"


def report_lines(report: Report) -> list[str]:
    """Return lines for a person; none where the key defines no tiers, and a submission simply waits."""
    if report.tier is None and report.outcome == "waiting":
        return []
    lines = [answer_line(one.as_json()) for one in report.results]
    tier = f"tier {report.tier}: " if report.tier is not None else ""
    text = f"{tier}{_CAME[report.outcome]}: {printable(report.because, 1000)}"
    if report.approval is not None:
        text += f" ({report.approval})"
    lines.append(text)
    if report.disputable_until is not None:
        lines.append(
            f"can be disputed until {report.disputable_until}: troth reopen {printable(report.commitment, 80)}"
        )
    if report.outcome == "stopped":
        lines.append(f"take it up with: troth queue run {printable(report.commitment, 80)}")
    return lines


def decision_line(decided: Mapping[str, Any]) -> str:
    """Return what was decided about a submission, by whom and after how long."""
    seconds = decided["seconds"]
    after = f" after {lasting(seconds)}" if seconds is not None and seconds >= 0 else ""
    about = printable(str(decided["submission"]), 80)
    return f"{about} {decided['decision']} by {printable(str(decided['by']), 80)}{after}"
