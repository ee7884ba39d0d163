"""The receipt of a run, read where it lies and judged by our own pins of who observes and who grades."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.core.words import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from troth.receipts.verify import Examination

PRODUCERS: Final[Mapping[str, str]] = {
    "observation": "troth-observer",
    "tree": "troth-observer",
    "grade": "troth-verifier",
}
"""Who makes the records of a run here: the observer's and the grader's own names, on systems that lack them too."""

_RUN: Final = re.compile(r"run_[0-9a-z]{8,64}\Z")


class NotSo(Exception):
    """Why a receipt does not carry what it is shown for: a sentence without its full stop."""


class NotThere(NotSo):
    """The receipt or its folder is not there or cannot be read, so that nothing can be said about it."""


def is_run(value: object) -> TypeGuard[str]:
    """Tell whether a value is a run's id: the name of a folder that leads nowhere else."""
    return isinstance(value, str) and _RUN.match(value) is not None


def examined(folder: Path, run: str, digest: str, *, claim_id: str, observed_party: str, what: str) -> Examination:
    """Return the examination of a run's receipt, which is valid, about this claim and made in this run.

    Args:
        folder: the run's own.
        run: its id.
        digest: SHA-256 of the receipt that is meant, in lowercase hexadecimal.
        claim_id: what the receipt must be about.
        observed_party: who worked; no record by that party is believed.
        what: how reasons call the claim, such as ``this commitment``.

    Raises:
        NotThere: there is nothing to read.
        NotSo: there is, and it does not hold.
    """
    from troth.receipts.kinds import Broken
    from troth.receipts.member import RECEIPT_FILE, MappingMember, OverlaidMember, ReadFault
    from troth.receipts.pinning import ConsumerPins, consumer_files
    from troth.receipts.policy import POLICY_FILES
    from troth.receipts.reader import MemberReader
    from troth.receipts.verify import examine
    from troth.stores.members import FolderMember

    if folder.is_symlink():
        raise NotThere(f"the folder of {run} is a symbolic link")
    try:
        # One reader for everything: the bytes that were digested are the bytes that are judged.
        once = MemberReader(FolderMember(folder))
        receipt = once.read(RECEIPT_FILE)
    except ReadFault as fault:
        raise NotThere(f"the receipt of {run} cannot be read: {fault.message}") from None
    except Refused:
        raise NotThere(f"the folder of {run} is not there, so nothing can be verified") from None
    if receipt is None:
        raise NotThere(f"the folder of {run} holds no receipt")
    if sha256_hex(receipt) != digest:
        raise NotSo(f"the receipt of {run} is not the one that was captured: its digest differs")
    pins = ConsumerPins(observed_party=observed_party, producers=PRODUCERS, claim_id=claim_id, invocation_id=run)
    try:
        ours = consumer_files(once, pins)
    except Broken as fault:
        raise NotSo(f"the records of {run} cannot be judged: {_sentence(fault.code)}") from None
    found = examine(OverlaidMember(once, MappingMember(ours), frozenset(POLICY_FILES)))
    if "refused" in found.result or found.result["receipt"]["verdict"] != "valid":
        # Under our own pins a record about something else shows as a check that comes out otherwise.
        other = _other_claim(once, claim_id, run, what)
        raise NotSo(other or f"the receipt of {run} does not verify: {_sentence(found.code or '')}")
    predicate = (found.receipt or {})["predicate"]
    if (predicate["claim_id"], predicate["invocation_id"]) != (claim_id, run):
        raise NotSo(f"the receipt of {run} is about {short(predicate['claim_id'])}, not about {what}")
    return found


def _other_claim(reader: Any, claim_id: str, run: str, what: str) -> str | None:
    """Say it when the records of a run speak of another claim or run."""
    try:
        record = reader.record("observation", "observation.json")
    except (Refused, LookupError):
        return None
    if record["claim_id"] != claim_id:
        return f"the records of {run} are about {short(record['claim_id'])}, not about {what}"
    if record["invocation_id"] != run:
        return f"the records in the folder of {run} are those of {short(record['invocation_id'])}"
    return None


def _sentence(code: str) -> str:
    from troth.receipts.reasons import sentence

    return f"{code}: {sentence(code)}".rstrip(".")


def decided(found: Examination) -> str:
    """Return the verdict of an examination in words."""
    assert found.done is not None
    return f"{found.done.decision.replace('_', ' ')} ({found.done.reason})"


def short(value: Any) -> str:
    """Return a value of a record for a reason: harmless, at most 80 characters."""
    return printable(str(value), 80)
