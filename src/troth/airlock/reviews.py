"""Reviews where they are kept, for whoever relies on them: found, and verified against their own records.

Nothing that a review says of itself is taken over. Snapshot, response, events and decisions are read, the
reconciliation is computed from them anew, and it counts only when it is the stored one, byte for byte, and every rule
holds at every level. What that cannot show: somebody who can write the folder can write all of it, true to its own
rules. An agent that works in the sandbox cannot see the folder; the ledger's rows and their checkpoints tell when a
review was there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from troth.airlock.validators import Finding, ReviewOutcome, Submitted
from troth.core.errors import DoesNotHold, Refused, TrothError

if TYPE_CHECKING:
    from troth.airlock.reviewing.session import Session
    from troth.stores.reviews import ReviewFolder
    from troth.stores.workspace import Workspace

CODES: Final[Mapping[str, str]] = {
    "E_REVIEW_UNVERIFIED": "The review's own records do not bear out what it says, so it counts for nothing.",
    "E_REVIEW_UNFINISHED": "The review has no result yet.",
}
"""Why a review that is on record counts for nothing -> what it means."""


@dataclass(frozen=True, slots=True)
class Proven:
    """A review that its own records bear out: the run, and the reconciliation they come to."""

    session: Session
    reconciliation: Mapping[str, Any]

    @property
    def artifact(self) -> str:
        """SHA-256 of the payload that was reviewed."""
        return self.session.artifact.digest


def proven(folder: ReviewFolder) -> Proven:
    """Return a review after everything that it rests on was computed anew.

    1. The snapshot is the payload that ``run.json`` names, member by member.
    2. The response breaks no rule but that anchors may lead nowhere ([D8]), and is what comes of the reviewer's kept
       answer, stamped; that of a panel or of chunks is what its members come to, each of which holds likewise.
    3. Every event is legal and in order, every ruling is a person's, and log and record of decisions tell the same.
    4. The stored reconciliation is the one that these come to, byte for byte.
    5. It breaks no rule at any level, against artifact, review and decisions.

    Raises:
        DoesNotHold: ``E_REVIEW_UNVERIFIED`` with what does not.
        Refused: ``E_REVIEW_UNFINISHED`` for a run without a result.
    """
    from troth.airlock.reviewing import finishing
    from troth.airlock.reviewing.session import Session
    from troth.core.canonical import record_bytes
    from troth.ledger.values import is_human
    from troth.review.decisions import by_finding
    from troth.review.validate import validate
    from troth.stores.reviews import RECONCILIATION

    if not folder.has(RECONCILIATION):
        raise Refused(
            "E_REVIEW_UNFINISHED",
            f"the review {folder.id} has no result yet",
            remedy=f"See: troth review status {folder.id}",
        )
    try:
        session = Session(folder)  # (1), and (3) as far as the machine goes
        _response_holds(session)  # (2)
        lines = finishing.decisions(session)
        strangers = [line["actor"] for line in lines if not is_human(line["actor"])]
        if strangers:
            raise Refused("E_REVIEW_ROLE", f"{strangers[0]} is no person and decided something")
        document = finishing.reconciliation(session)  # (3)
        stored = folder.read(RECONCILIATION)
    except TrothError as fault:
        raise _unverified(folder, f"{fault.code}: {fault.message}") from None
    if stored != record_bytes(document):  # (4)
        raise _unverified(folder, "the stored result is not the one that its records come to")
    report = validate(
        stored,
        kind="reconciliation",
        artifact=session.artifact,
        review=session.response,
        decided=by_finding(lines),
    )
    if report.violations:  # (5)
        broken = report.violations[0]
        raise _unverified(folder, f"the result breaks {broken.rule} at {broken.path}")
    return Proven(session, document)


def _unverified(folder: ReviewFolder, why: str) -> DoesNotHold:
    return DoesNotHold("E_REVIEW_UNVERIFIED", f"the review {folder.id} does not verify: {why}")


def _response_holds(session: Session) -> None:
    """Hold the stored response against the reviewer's own kept answer and against its rules."""
    from troth.airlock.panels import is_parent, members_of, response_of
    from troth.airlock.reviewing.running import heard, taken

    if session.response is None:
        return  # a failed run: its result says so
    if is_parent(session.folder):
        for member in members_of(session):
            if is_parent(member.folder):
                raise Refused("E_REVIEW_UNREADABLE", f"{member.id} is no reviewer's own run")
            _response_holds(member)
        if response_of(session) != session.response:
            raise Refused("E_REVIEW_UNREADABLE", "the stored response is not what its members come to")
        return
    last = next((call for call in reversed(session.calls) if call.purpose == "review"), None)
    if last is None or last.answer is None:
        raise Refused("E_REVIEW_UNREADABLE", "no call to a reviewer is on record that the response came from")
    found = taken(session, heard(session, last, "response"), last.answer)
    if isinstance(found, str):
        raise Refused("E_REVIEW_UNREADABLE", f"the reviewer's answer is no response: {found}")
    if found.value != session.response:
        raise Refused("E_REVIEW_UNREADABLE", "the stored response is not what the reviewer answered")


class RunFolders:
    """Finds reviews in the run folders of a submission's workspace."""

    def find(self, review: str, submitted: Submitted) -> ReviewOutcome | None:
        """Return the review of that id after it was verified, or ``None`` when none is on record.

        Raises:
            DoesNotHold: ``E_REVIEW_UNVERIFIED``; one that does not verify counts as little as none, and says why.
            Refused: ``E_REVIEW_UNFINISHED``.
        """
        if submitted.workspace is None:
            return None
        try:
            folder = _reviews(submitted.workspace).open(review)
        except Refused:
            return None
        found = proven(folder)
        response = found.session.response or {"findings": ()}
        states = {item["finding_id"]: item["state"] for item in found.reconciliation["items"]}
        return ReviewOutcome(
            review=found.session.id,
            artifact=found.artifact,
            outcome=str(found.reconciliation["outcome"]),
            findings=[
                Finding(finding["id"], finding["severity"], states[finding["id"]])
                for finding in response["findings"]
                if finding["id"] in states
            ],
            tier=found.session.setup.independence.get("tier"),
            scripted=_is_scripted(found.session),
        )


def _is_scripted(session: Session) -> bool:
    """Tell whether answers of the review, or of a member that it was merged of, stood in a file."""
    from troth.airlock.panels import is_parent, members_of

    if is_parent(session.folder):
        return any(_is_scripted(member) for member in members_of(session))
    return bool(session.setup.backend["kind"] == "scripted")


def _reviews(workspace: Workspace) -> Any:
    from troth.stores.reviews import FOLDER, Reviews

    return Reviews(workspace.folder / FOLDER)


def cited(workspace: Workspace, word: str) -> dict[str, str]:
    """Return what a submission says of the review that it rests on: its id, and the digest of what was reviewed (§16).

    Args:
        workspace: whose run folders are searched.
        word: an id, what begins only one, or ``@last``.

    Raises:
        Refused: ``E_REVIEW_UNKNOWN``, ``E_AMBIGUOUS_ID``, ``artifact_unavailable``.
    """
    folder = _reviews(workspace).find(word)
    return {"review": folder.id, "artifact": folder.members().digest}
