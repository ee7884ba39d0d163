"""How faults, warnings and rows without effect are told to a person."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from troth.cli.answer import coloured, note, printable, say

if TYPE_CHECKING:
    from troth.ledger.chain import Verification, Warning_
    from troth.ledger.replay import Anomaly

WARNINGS_SHOWN: Final = 20
"""Warnings printed one by one for a person; --json has them all."""


def tell_broken(found: Verification) -> bool:
    """Tell a broken chain on stderr, and whether it is sound."""
    if not found.ok:
        first = found.faults[0]
        where = f"line {first.line}: " if first.line is not None else ""
        note(
            f"troth: the ledger does not verify: {len(found.faults)} fault(s), the first is {where}{first.fault}. "
            "`troth verify` lists them all."
        )
    return found.ok


def tell_warnings(warnings: Iterable[Warning_]) -> None:
    """Tell warnings about the ledger as a whole on stderr."""
    for warning in warnings:
        note(f"warning: {finding_line(warning.line, warning.id, warning.warning, warning.message)}")


def finding_line(line: int | None, identifier: str | None, name: str, message: str) -> str:
    """Return the line for a fault or a warning."""
    where = f"line {line}" if line is not None else "ledger"
    return f"{where}  {printable(identifier or '-', 80)}  {name}: {printable(message, 400)}"


def tell_anomalies(few: Iterable[Anomaly], count: int) -> None:
    """Tell the first of ``count`` rows without effect."""
    few = list(few)
    if not count:
        return
    say(coloured(f"Rows without effect ({count})", "yellow"))
    for anomaly in few:
        say(f"  line {anomaly.line}  {printable(anomaly.id or '-', 80)}  {reason_of(anomaly)}")
    if count > len(few):
        say(f"  and {count - len(few)} more; --json lists them all")


def reason_of(anomaly: Anomaly) -> str:
    """Return the code of a row without effect, with its detail."""
    # A detail may be another row's id, and those are whatever somebody wrote into the file.
    return anomaly.code + (f" ({printable(anomaly.detail, 80)})" if anomaly.detail else "")
