"""``troth deal judge``: the checker's verdict on a disclosure, written into the transcript."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.cli.deal_protocol import made_by, protocol_option
from troth.core.errors import Refused

if TYPE_CHECKING:
    from troth.deals.checker import Judged
    from troth.deals.run import Deal, Run

EXITS: Final = {"pass": 0, "fail": 1, "inconclusive": 3}
_COLOURS: Final = {"pass": "green", "fail": "red", "inconclusive": "yellow"}
_MARKS: Final = {True: "holds", False: "fails", None: "open"}


@click.command("judge")
@click.argument("transcript", type=click.Path(path_type=Path))
@click.option("--offer", "offer_id", metavar="ID", help="Which deal. Default: the one that waits for a verdict.")
@click.option(
    "--receipts",
    type=click.Path(path_type=Path),
    metavar="FOLDER",
    help="Where done receipts are looked for: a folder that holds runs' folders. Default: .mentu/runs of the workspace "
    "here.",
)
@click.option("--step", type=click.IntRange(min=0), metavar="N", help="When. Default: the step of the last line.")
@click.option("--dry-run", is_flag=True, help="Tell the verdict and write nothing.")
@protocol_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def judge_cmd(  # noqa: PLR0917 - click calls it by name
    transcript: Path,
    offer_id: str | None,
    receipts: Path | None,
    step: int | None,
    dry_run: bool,
    protocol: str,
    as_json: bool,
) -> int:
    """Judge a disclosure by its offer's checklist alone and append the Verdict to the transcript, as K.

    \b
    An item with the predicate done_receipt asks for a piece of work:
      {"id": "work", "predicate": "done_receipt", "path": "artifacts.receipt",
       "claim_id": "cmt_...", "contract_sha256": "..."}
    and the artifact names the receipt:
      {"run": "run_...", "receipt_sha256": "..."}
    It holds when the receipt verifies by our own pins, is about that work, and is supported.

    Exit status: 0 pass, 1 fail, 3 inconclusive; 2 refused, and nothing was written.

    Example: troth deal judge transcript.jsonl --offer off_1 --receipts .mentu/runs
    """
    from troth.airlock.deals import find_judgeable, judged
    from troth.deals.run import replay
    from troth.stores.transcripts import opened

    folder = receipts if receipts is not None else _own_runs()
    with opened(transcript) as file:
        run = replay(file.entries(), run=made_by(protocol)())
        deal = find_judgeable(run, offer_id)
        found = judged(run, deal, folder)
        line = _verdict(run, deal, found, run.now if step is None else step)
        if not dry_run:
            file.append(line)
    if as_json:
        emit_json(_answer(deal, found, written=not dry_run))
    else:
        _tell(deal, found, written=not dry_run)
    return EXITS[found.result]


def _own_runs() -> Path | None:
    from troth.stores.workspace import find_workspace, here

    try:
        return find_workspace(here()).folder / "runs"
    except Refused:
        return None


def _verdict(run: Run, deal: Deal, found: Judged, step: int) -> bytes:
    """Let K say its verdict and return the line.

    Raises:
        Refused: ``E_DEAL_STATE`` when it would come too late.
    """
    from troth.deals.writing import Scribe

    if step < run.now:
        raise Refused("E_USAGE", f"--step {step} lies before the transcript's last line, at step {run.now}")
    scribe = Scribe.after(run)
    body = {"result": found.result, "notes": found.notes(), "checklist_results": found.as_json()}
    scribe.say(step, "K", "Verdict", {"offer_id": deal.offer_id, **body})
    if deal.verdict is None:
        raise Refused(
            "E_DEAL_STATE",
            f"at step {step} the verdict comes too late: the deal is {printable(deal.state, 80)}",
            remedy="A verdict follows on a disclosure, in its step or the next.",
        )
    return scribe.lines[-1]


def _answer(deal: Deal, found: Judged, *, written: bool) -> dict[str, Any]:
    from troth.deals.codes import LABELS, NON_CLAIMS_REF

    return {
        "labels": list(LABELS),
        "non_claims": NON_CLAIMS_REF,
        "offer_id": deal.offer_id,
        "result": found.result,
        "checklist_results": found.as_json(),
        "reasons": [{"id": name, "why": why} for name, why in found.reasons],
        "state": deal.state,
        "written": written,
    }


def _tell(deal: Deal, found: Judged, *, written: bool) -> None:
    from troth.deals.codes import LABELS, NON_CLAIMS_REF

    say(f"{', '.join(LABELS)} ({NON_CLAIMS_REF})")
    say(f"{printable(deal.offer_id, 200)}: {coloured(found.result, _COLOURS[found.result])}")
    reasons = dict(found.reasons)
    for name, ok in found.results:
        why = f": {printable(reasons[name], 400)}" if name in reasons else ""
        say(f"  {printable(name, 80)}  {_MARKS[ok]}{why}")
    note("troth: the verdict was written" if written else "troth: nothing was written")
