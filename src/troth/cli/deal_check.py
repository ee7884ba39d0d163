"""``troth deal check | show | machine``: transcripts of simulated deals, and the machine behind them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import click

from troth.cli.answer import coloured, emit_json, emit_json_text, note, printable, say
from troth.cli.deal_protocol import PROXY, made_by, protocol_option
from troth.core.errors import Place, Refused

if TYPE_CHECKING:
    from troth.deals.run import Deal, Run
    from troth.deals.transcript import Entry

_COLOURS: Final = {"settled": "green", "breached": "red", "protocol_error": "red"}


def labelled() -> str:
    from troth.deals.codes import LABELS, NON_CLAIMS_REF

    return f"{', '.join(LABELS)}: a simulated deal shows nothing about the world ({NON_CLAIMS_REF})"


def _lines(path: str) -> Iterator[bytes]:
    from pathlib import Path

    from troth.deals.transcript import MAX_LINE_BYTES

    try:
        with Path(path).open("rb") as file:
            while line := file.readline(MAX_LINE_BYTES + 2):
                yield line
    except OSError as fault:
        raise Refused(
            "E_TRANSCRIPT_UNREADABLE",
            f"the transcript cannot be read: {fault.strerror or fault}",
            remedy="Name a file of JSON Lines.",
            place=Place(file=path),
        ) from None


def _entries(path: str) -> Iterator[Entry]:
    from troth.deals.transcript import entries

    try:
        yield from entries(_lines(path))
    except Refused as fault:
        if fault.place is not None and fault.place.file is None:
            fault.place = Place(path, fault.place.line, fault.place.path)
        raise


def _emit(value: Any) -> None:
    """Print one JSON object; text with unpaired surrogates, which no terminal takes, as escapes."""
    import orjson

    try:
        emit_json_text(orjson.dumps(value).decode("utf-8"))
    except TypeError:
        say(json.dumps(value))


@click.command("check")
@click.argument("transcript", type=click.Path())
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object: deals, log and balances.")
@protocol_option
def check_cmd(transcript: str, protocol: str, as_json: bool) -> int:
    """Replay a transcript that someone wrote and tell how each of its deals ended, and why.

    \b
    A transcript is JSON Lines: {"step": n, "msg": {...}}, and at its end optionally {"step": n, "end": true}.

    A transcript of 0.3-proxy is read as such only when --protocol says so: to v0.2 its messages are malformed.

    Exit status: 0 every deal settled, 1 one is breached or ended in a protocol error, 2 the file cannot be read as JSON
    Lines, 3 any other end, or a deal that is open.

    Example: troth deal check transcript.jsonl --json
    """
    from troth.deals.answer import answer, exit_status
    from troth.deals.run import replay

    run = replay(_entries(transcript), run=made_by(protocol)())
    if any(_is_marked(deal) for deal in run.deals.values()):
        note(f"troth: an offer has members of protocol {PROXY}, which is read with --protocol {PROXY}")
    if as_json:
        note(f"troth: {labelled()}")
        _emit(answer(run))
    else:
        _tell(run)
    return exit_status(run)


def _is_marked(deal: Deal) -> bool:
    """Tell whether a deal is malformed by a member that offers have in the other protocol."""
    told = (deal.illegal.told or "") if deal.illegal is not None and deal.illegal.code == "malformed" else ""
    return told in [f"$.{member}: unknown member" for member in ("protocol", "trust", "breach_P")]


def _tell(run: Run) -> None:
    from troth.deals import proxy
    from troth.deals.codes import EVENTS, ILLEGAL

    told_of = {**ILLEGAL, **proxy.ILLEGAL}
    say(labelled())
    if not run.deals:
        say("No deal: the transcript makes no offer.")
    for deal in run.deals.values():
        say()
        say(f"{printable(deal.offer_id, 200)}: {word(deal.state)}")
        say(f"  {printable(' -> '.join(deal.history))}")
        if deal.illegal is not None:
            line, code, told = deal.illegal
            say(f"  line {line}: {told_of[code]} [{code}]" + (printable(f" {told}", 300) if told else ""))
    if run.log:
        say()
    for line, event in run.log:
        say(f"line {line}: {EVENTS[event]} [{event}]")
    _points(run)


def _points(run: Run) -> None:
    say()
    say("points  " + "  ".join(f"{party} {points:+d}" for party, points in run.escrow.balances().items()))


def word(state: str) -> str:
    end = state.removeprefix("Closed:").partition("(")[0]
    return coloured(printable(state, 300), _COLOURS.get(end, "yellow"))


@click.command("show")
@click.argument("transcript", type=click.Path())
@click.option("--mermaid", "drawn", is_flag=True, help="Print a Mermaid sequence diagram.")
@click.option("--html", "as_page", is_flag=True, help="Print one page of HTML that needs nothing else.")
@click.option("--json", "as_json", is_flag=True, help="Print the steps and the final record as one JSON object.")
@protocol_option
def show_cmd(transcript: str, protocol: str, drawn: bool, as_page: bool, as_json: bool) -> int:
    """Draw a transcript as lanes, one for each role, with what every message did.

    Exit status: 0 drawn, whatever the deals came to; 2 the file cannot be read as JSON Lines.

    Example: troth deal show transcript.jsonl --html > deal.html
    """
    from troth.deals import show as drawing
    from troth.deals.answer import final_record

    if drawn + as_page + as_json > 1:
        raise Refused("E_USAGE", "more than one of --mermaid, --html and --json was given", remedy="Name one of them.")
    steps, run = drawing.draw(_entries(transcript), made=made_by(protocol))
    if as_json:
        _emit({"steps": [step._asdict() for step in steps], "final": final_record(run)})
    elif drawn:
        say(drawing.mermaid(steps, drawing.lanes_of(run)).rstrip("\n"))
    elif as_page:
        say(drawing.page(steps, run).rstrip("\n"))
    else:
        say(drawing.label())
        for line in drawing.lanes(steps, roles=drawing.lanes_of(run)):
            say(line)
        if not steps:
            say("The transcript is empty.")
        _points(run)
    return 0


@click.command("machine")
@click.option("--mermaid", "drawn", is_flag=True, help="Draw it as a Mermaid state diagram.")
@click.option("--json", "as_json", is_flag=True, help="Print the tables as one JSON object.")
@protocol_option
def machine_cmd(protocol: str, drawn: bool, as_json: bool) -> int:
    """Tell the machine of a deal: what each message does in each state, and what happens in silence.

    Example: troth deal machine --mermaid
    """
    if protocol == "0.2":
        from troth.deals import machine as tables
    else:
        from troth.deals import proxy as tables  # type: ignore[no-redef]  # another module with the same names
    if drawn and as_json:
        raise Refused("E_USAGE", "--mermaid and --json were both given", remedy="Name one of them.")
    if drawn:
        say(tables.mermaid().rstrip("\n"))
    elif as_json:
        emit_json(
            {
                "speakers": {kind: sorted(roles) for kind, roles in tables.SPEAKERS.items()},
                "table": {
                    state: {column: cell._asdict() for column, cell in cells.items()}
                    for state, cells in tables.TABLE.items()
                },
                "timers": {state: timer._asdict() for state, timer in tables.TIMERS.items()},
            }
        )
    else:
        for state in tables.STATES:
            say(state)
            for column, cell in tables.TABLE[state].items():
                if cell.code not in ("type_for_state", "unknown_offer"):
                    say(f"  {column:<24}{cell.to}" + (f"  [{cell.code}]" if cell.code else ""))
            if state in tables.TIMERS:
                timer = tables.TIMERS[state]
                say(f"  {'(silence)':<24}{timer.to}  {timer.steps} after {timer.since}")
        say("Any other message closes an open deal as Closed:protocol_error; a closed deal stays as it is.")
    return 0
