"""A transcript as lanes: in the terminal, as a Mermaid sequence diagram, as one page of HTML.

All three draw the same steps. Text of the parties is never markup: the page escapes it and loads nothing.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from troth.core.words import printable
from troth.deals import proxy
from troth.deals.codes import EVENTS, ILLEGAL, LABELS, NON_CLAIMS, NON_CLAIMS_REF
from troth.deals.messages import DEAL_SHAPED
from troth.deals.run import DEFAULT_CLOCKS, Clocks, Move, Run
from troth.deals.transcript import Entry

LANES: Final = ("C", "A", "K", "E")
TRUSTED: Final = (*LANES, "P")
"""The lanes of 0.3-proxy."""

NAMES: Final = {"C": "counterparty", "A": "agent", "K": "checker", "E": "escrow", "P": "trustee"}
WIDTH: Final = 15
"""Columns between two lanes in the terminal."""


class Drawn(NamedTuple):
    """One step of the drawing.

    ``line`` is ``None`` for silence (a timer that fired). ``sender`` and ``to`` are role letters, and empty where the
    line is no message that says so. ``states`` are the deals that it moved, with the state reached.
    """

    line: int | None
    step: int
    sender: str
    to: tuple[str, ...]
    what: str
    about: str
    states: tuple[tuple[str, str], ...]
    remark: str


def lanes_of(run: Run) -> tuple[str, ...]:
    """Return the role letters of a run's protocol, in the order in which they are drawn."""
    return LANES if run.protocol == Run.protocol else TRUSTED


def draw(lines: Iterable[Entry], clocks: Clocks = DEFAULT_CLOCKS, made: type[Run] = Run) -> tuple[list[Drawn], Run]:
    """Replay a transcript and return each step of its drawing, and the run, which is one of the class ``made``.

    Raises:
        Refused: ``E_TRANSCRIPT_UNREADABLE``, from whoever reads the lines.
    """
    trace: list[Move] = []
    run = made(clocks, trace)
    steps: list[Drawn] = []
    for entry in lines:
        told = len(run.log)
        trace.clear()
        run.take(entry)
        steps.extend(
            Drawn(None, move.step, "", (), "silence", "", ((move.offer_id, move.state),), "")
            for move in trace
            if move.line is None
        )
        moves = [move for move in trace if move.line is not None]
        remark = run.log[-1].event if len(run.log) > told else ""
        for move in moves:
            illegal = run.deals[move.offer_id].illegal
            if illegal is not None and illegal.line == run.line:
                remark = illegal.code
        steps.append(_drawn(run, entry.value, tuple((move.offer_id, move.state) for move in moves), remark))
    return steps, run


def _drawn(run: Run, value: Any, moves: tuple[tuple[str, str], ...], remark: str) -> Drawn:
    message = value.get("msg") if isinstance(value, dict) else None
    if not isinstance(message, dict):
        what = "end" if isinstance(value, dict) and value.get("end") is True else "?"
        return Drawn(run.line, run.now, "", (), what, "", moves, remark)
    kind, sender, to = message.get("type"), message.get("from"), message.get("to")
    heard = to if isinstance(to, list) else [to]
    lanes = lanes_of(run)
    about = message.get("offer_id")
    return Drawn(
        run.line,
        run.now,
        sender if sender in lanes else "",
        tuple(lane for lane in lanes if lane in heard and lane != sender),
        kind if isinstance(kind, str) else "?",
        f"{about if isinstance(about, str) else '?'}{_detail(message)}",
        moves,
        remark,
    )


def _detail(message: dict[str, Any]) -> str:
    kind = message.get("type")
    if kind == "EscrowHold":
        return f" {message.get('amount')} points"
    if kind == "Deliver":
        return f" {message.get('amount')} points to {message.get('beneficiary')}"
    if kind == "Verdict":
        return f" {message.get('result')}"
    if kind == "BreachNotice":
        return f" {message.get('party')}:{message.get('mode')}"
    if kind in DEAL_SHAPED:
        consideration = message.get("consideration")
        cash = consideration.get("cash_sim") if isinstance(consideration, dict) else None
        return f" {cash.get('amount')} points" if isinstance(cash, dict) else ""
    return ""


def _sayings(step: Drawn) -> list[str]:
    """Return what happened in words: the moves, then why it was illegal or logged."""
    told = [f"{name}: {state}" for name, state in step.states]
    return [*told, *([step.remark] if step.remark else [])]


def label() -> str:
    """Return the line of labels that stands over every drawing."""
    return f"{', '.join(LABELS)} ({NON_CLAIMS_REF})"


# Terminal ------------------------------------------------------------------------------------------------------------


def lanes(steps: Iterable[Drawn], limit: int = 60, roles: Sequence[str] = LANES) -> list[str]:
    """Return the lines of the drawing for a terminal; text of the parties is cut at ``limit`` and made harmless."""
    margin = " " * 12
    bars = "".join("|".ljust(WIDTH) for _ in roles)
    lines = [
        f"{'line  step':<12}" + "".join(f"{lane} {NAMES[lane]}"[: WIDTH - 1].ljust(WIDTH) for lane in roles).rstrip()
    ]
    for step in steps:
        head = f"{'' if step.line is None else step.line:>4}{step.step:>6}  "
        said = printable(f"{step.what} {step.about}".rstrip(), limit)
        drawn = _arrow(step, roles) if step.sender else bars
        lines.append(f"{head}{drawn} {said}".rstrip())
        lines.extend(f"{margin}{bars}   {printable(saying, limit * 2)}" for saying in _sayings(step))
    return lines


def _arrow(step: Drawn, roles: Sequence[str]) -> str:
    at = roles.index(step.sender)
    targets = [roles.index(lane) for lane in step.to]
    row = list("".join("|".ljust(WIDTH) for _ in roles))
    for target in targets:
        left, right = sorted((at, target))
        for column in range(left * WIDTH + 1, right * WIDTH):
            row[column] = "-"
    for target in targets:
        row[target * WIDTH - (1 if target > at else -1)] = ">" if target > at else "<"
    row[at * WIDTH] = "o"
    return "".join(row)


# Mermaid -------------------------------------------------------------------------------------------------------------


def mermaid(steps: Iterable[Drawn], roles: Sequence[str] = LANES) -> str:
    """Return the drawing as a Mermaid sequence diagram."""
    last = roles[-1]
    lines = ["sequenceDiagram"]
    lines += [f"    participant {lane} as {lane} {NAMES[lane]}" for lane in roles]
    lines.append(f"    Note over C,{last}: {_plain(label())}")
    for step in steps:
        said = _plain(f"{step.step} {step.what} {step.about}".rstrip())
        if step.sender and step.to:
            lines += [f"    {step.sender}->>{lane}: {said}" for lane in step.to]
        elif step.sender:
            lines.append(f"    Note over {step.sender}: {said}")
        else:
            lines.append(f"    Note over C,{last}: {said}")
        lines += [f"    Note over C,{last}: {_plain(saying)}" for saying in _sayings(step)]
    return "\n".join(lines) + "\n"


_ORDINARY: Final = frozenset(" _-.:,()/+")


def _plain(text: str, limit: int = 120) -> str:
    """Return text as Mermaid takes it: anything but letters, digits and a few signs as a character's number."""
    cut = printable(text, limit)
    return "".join(
        char if (char.isascii() and char.isalnum()) or char in _ORDINARY else f"#{ord(char)};" for char in cut
    )


# HTML ----------------------------------------------------------------------------------------------------------------

_STYLE: Final = """\
body{font:15px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#1a1a1a;background:#fff}
.labels{border:2px solid #1a1a1a;padding:.4rem .8rem;font-weight:600}
table{border-collapse:collapse;width:100%;margin:1rem 0}
th,td{border-bottom:1px solid #bbb;padding:.3rem .5rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}
td.lane{text-align:center;border-left:1px dotted #888;width:5rem}
.said{font-family:ui-monospace,monospace}
.wrong{font-weight:600;text-decoration:underline}
"""


def page(steps: Iterable[Drawn], run: Run) -> str:
    """Return the drawing as one page of HTML that needs nothing else and runs nothing."""
    rows = []
    roles = lanes_of(run)
    for step in steps:
        cells = "".join(f'<td class="lane">{_sign(step, lane, roles)}</td>' for lane in roles)
        said = _text(f"{step.what} {step.about}".rstrip())
        told = "".join(f"<br>{_text(f'{name}: {state}')}" for name, state in step.states)
        why = {**EVENTS, **ILLEGAL, **proxy.ILLEGAL}.get(step.remark, "")
        wrong = f'<br><span class="wrong">{_text(step.remark)}</span> {_text(why)}' if step.remark else ""
        rows.append(
            f"<tr><td>{'' if step.line is None else step.line}</td><td>{step.step}</td>{cells}"
            f'<td><span class="said">{said}</span>{told}{wrong}</td></tr>'
        )
    heads = "".join(f"<th>{lane} {NAMES[lane]}</th>" for lane in roles)
    ends = "".join(f"<li>{_text(deal.offer_id)}: {_text(deal.state)}</li>" for deal in run.deals.values())
    points = ", ".join(f"{party} {points:+d}" for party, points in run.escrow.balances().items())
    claims = "".join(f"<li>{_text(claim)}</li>" for claim in NON_CLAIMS)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>Deal transcript ({_text(', '.join(LABELS))})</title><style>{_STYLE}</style></head><body>\n"
        f'<h1>Deal transcript</h1><p class="labels">{_text(", ".join(LABELS))}: '
        '<a href="#non-claims">what this does not claim</a></p>\n'
        f"<h2>How it ended</h2><ul>{ends or '<li>no deal</li>'}</ul><p>Points (sim): {points}</p>\n"
        f"<h2>Messages</h2><table><thead><tr><th>line</th><th>step</th>{heads}<th>what</th></tr></thead>\n<tbody>"
        + "\n".join(rows)
        + f'</tbody></table>\n<h2 id="non-claims">Non-claims</h2><p>{_text(NON_CLAIMS_REF)}</p><ol>{claims}</ol>\n'
        "</body></html>\n"
    )


def _sign(step: Drawn, lane: str, roles: Sequence[str]) -> str:
    if lane == step.sender:
        return "&#9679;"
    if lane in step.to:
        return "&#9654;" if not step.sender or roles.index(lane) > roles.index(step.sender) else "&#9664;"
    return ""


def _text(text: str) -> str:
    return html.escape(printable(text, 400), quote=True)
