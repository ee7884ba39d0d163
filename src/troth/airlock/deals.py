"""K's helpers and K's work on a transcript: done receipts as a predicate, a verdict by the checklist (deal rules §4).

The checker is pure; here it is handed what reads receipts and the engine that searches claims.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from troth.airlock.pinned import NotSo, NotThere, decided, examined, is_run, short
from troth.core.digests import is_digest
from troth.core.errors import Refused
from troth.core.words import printable
from troth.deals.checker import Helpers, Judged, Told, artifact_of, judge
from troth.deals.run import Deal, Run

if TYPE_CHECKING:
    from troth.deals.checker import Item
    from troth.receipts.verify import Examination

MAX_RECEIPTS: Final = 32
"""Receipts that are verified for one verdict."""

_MEMBERS: Final = frozenset({"run", "receipt_sha256"})
_NOT_ONE: Final = (
    "the artifact names no done receipt: it is an object with run, the id of a run, and receipt_sha256, the receipt's "
    "SHA-256, and nothing else"
)


class ReceiptJudge:
    """Judges artifacts that name done receipts: ``{"run": "run_…", "receipt_sha256": "…"}``.

    The item of the checklist says which work it asks for: ``claim_id``, the commitment that the run was made for, and
    ``contract_sha256``, the digest of the sealed contract that was graded by. Without both it is not known whose work
    and which work is meant, and nothing passes.

    Args:
        receipts: the folder that holds the runs' folders.
        agent: the name of A, none of whose own records is believed.
        spent: runs whose receipt passed in another deal -> that deal.
    """

    def __init__(self, receipts: Path, agent: str, spent: Mapping[str, str]) -> None:
        self._receipts = receipts
        self._agent = agent
        self._spent = spent
        self._known: dict[tuple[str, str, str], Examination | NotSo] = {}

    def __call__(self, artifact: Any, item: Item) -> Told:
        """Judge one artifact; true when the receipt verifies by our own pins, is about that work, and supported."""
        claim_id, contract = item.get("claim_id"), item.get("contract_sha256")
        if not isinstance(claim_id, str) or not claim_id or not is_digest(contract):
            raise ValueError("the item does not say which work it asks for: claim_id and contract_sha256")
        if not isinstance(artifact, dict) or artifact.keys() != _MEMBERS:
            return Told(False, _NOT_ONE)
        run, digest = artifact["run"], artifact["receipt_sha256"]
        # The folder follows from the run's id alone, so that no artifact can lead elsewhere.
        if not is_run(run) or not is_digest(digest):
            return Told(False, _NOT_ONE)
        if run in self._spent:
            return Told(False, f"the receipt of {run} passed in {short(self._spent[run])} already")
        found = self._examined(run, digest, claim_id)
        if isinstance(found, NotThere):
            raise ValueError(str(found))  # noqa: TRY004 - not a wrong type: an answer that is none
        if isinstance(found, NotSo):
            return Told(False, str(found))
        assert found.done is not None
        assert found.receipt is not None
        if found.receipt["predicate"]["records"]["contract"]["sha256"] != contract:
            return Told(False, f"the receipt of {run} is by another contract than the checklist names")
        if found.done.decision != "supported":
            return Told(False, f"the receipt of {run} says {decided(found)}")
        return Told(True, f"the receipt of {run} verifies: supported")

    def _examined(self, run: str, digest: str, claim_id: str) -> Examination | NotSo:
        """Return the examination of a receipt, or why there is none; each is made once.

        Raises:
            ValueError: more than :data:`MAX_RECEIPTS` are asked for.
        """
        asked = (run, digest, claim_id)
        if asked not in self._known:
            if len(self._known) >= MAX_RECEIPTS:
                raise ValueError(f"more than {MAX_RECEIPTS} receipts to verify for one verdict")
            try:
                self._known[asked] = examined(
                    self._receipts / run,
                    run,
                    digest,
                    claim_id=claim_id,
                    observed_party=self._agent,
                    what="the commitment that the checklist names",
                )
            except NotSo as why:
                self._known[asked] = why
        return self._known[asked]


def helpers_for(run: Run, deal: Deal, receipts: Path | None) -> Helpers:
    """Return what the checker is handed for one deal; without a folder no receipt can be evaluated."""
    from troth.lab.regexes import Searcher

    assert deal.offer is not None
    judge_receipts = ReceiptJudge(receipts, deal.offer.counterparties.A, _spent(run, deal)) if receipts else None
    return Helpers(done_receipt=judge_receipts, search=Searcher())


def _spent(run: Run, but: Deal) -> dict[str, str]:
    """Return the runs whose receipts passed in other deals of this transcript, each with its deal."""
    spent: dict[str, str] = {}
    for deal in run.deals.values():
        if deal is but or deal.offer is None or deal.verdict is None or deal.verdict.result != "pass":
            continue
        spent.update(dict.fromkeys(runs_named(deal), deal.offer_id))
    return spent


def runs_named(deal: Deal) -> list[str]:
    """Return the runs whose receipts a deal's disclosure shows, each once."""
    if deal.offer is None or deal.disclosure is None:
        return []
    items = [item for item in deal.offer.obligation.checklist if item["predicate"] == "done_receipt"]
    shown = [artifact_of(item, deal.disclosure.artifacts) for item in items]
    return list(dict.fromkeys(one["run"] for one in shown if isinstance(one, dict) and is_run(one.get("run"))))


def find_judgeable(run: Run, offer_id: str | None) -> Deal:
    """Return the deal that waits for its verdict.

    Raises:
        Refused: ``E_DEAL_UNKNOWN``, or ``E_DEAL_STATE`` when it waits for none.
    """
    waiting = [deal for deal in run.deals.values() if deal.state == "Adjudicating"]
    if offer_id is None:
        if len(waiting) != 1:
            raise Refused(
                "E_DEAL_UNKNOWN",
                f"{len(waiting)} deals of the transcript wait for a verdict",
                remedy="Name the deal with --offer." if waiting else "A verdict follows on a disclosure.",
            )
        deal = waiting[0]
    elif offer_id not in run.deals:
        raise Refused("E_DEAL_UNKNOWN", f"the transcript has no deal {printable(offer_id, 80)}")
    else:
        deal = run.deals[offer_id]
    if deal.state != "Adjudicating" or run.ended:
        ended = ", and the transcript has ended" if run.ended else ""
        raise Refused(
            "E_DEAL_STATE",
            f"{printable(deal.offer_id, 80)} waits for no verdict: it is {printable(deal.state, 80)}{ended}",
            remedy="A verdict follows on a disclosure, in its step or the next.",
        )
    return deal


def judged(run: Run, deal: Deal, receipts: Path | None) -> Judged:
    """Return K's verdict on a deal that waits for one, by its checklist alone.

    Args:
        run: the transcript so far.
        deal: one of its deals, with a disclosure.
        receipts: the folder of runs' folders, if there is one.
    """
    assert deal.offer is not None
    assert deal.disclosure is not None
    told = deal.disclosure
    return judge(deal.offer.obligation.checklist, told.artifacts, told.claims, helpers_for(run, deal, receipts))
