"""Many members checked at once: each gives a row, whatever is wrong with it, and none stops the others.

The rows come in the order of the members and are the same from one process and from many. A process that dies costs
the share it was at: its members are checked again in processes of their own, and one that ends these too gets a row
that says so.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from troth.core.errors import Busy, Defect, Place, TrothError
from troth.receipts.bundles import BUNDLE_FILE
from troth.receipts.demands import ROLES
from troth.receipts.envelopes import ENVELOPE_FILE
from troth.receipts.kinds import Broken
from troth.receipts.member import FILES, RECEIPT_FILE, MappingMember, Member, OverlaidMember
from troth.receipts.policy import POLICY_FILES
from troth.receipts.reader import MemberReader
from troth.receipts.signing import as_signed
from troth.receipts.verify import Examination, examine, headline, standing
from troth.stores.members import FolderMember
from troth.stores.workers import cores, follow_parent

if TYPE_CHECKING:
    from concurrent.futures import Future, ProcessPoolExecutor

    from troth.receipts.bundles import Vouched
    from troth.receipts.demands import Demand, Signers
    from troth.receipts.pinning import ConsumerPins

    _Vouch = Callable[[bytes], Vouched]
    _Asked = tuple[Sequence[str] | None, ConsumerPins | None, Demand | None, _Vouch | None]

__all__ = ["CODES", "Row", "check_all", "check_one", "cores", "faulty", "has_bundle"]

CODES: Final[dict[str, str]] = {
    "E_MEMBER_CHANGED": "The folder was written to while it was read, time and again; check it when it rests.",
    "E_FLEET_WORKER": "The process that checked the folder ended, and so did those that tried again.",
    "E_FLEET_REPORT": "The report cannot be written to that place; the message says why.",
}
"""Codes of checking many members -> what they mean."""

SHARE: Final = 32
"""Members that a process takes at once."""

_AHEAD: Final = 4
"""Shares per process that are under way or wait to be told; this bounds the memory."""

_LOOKS: Final = 3
"""Times that a member which changes under the reader is read."""

_ALLOCATIONS: Final = 50_000
"""Objects made beyond those given back, after which cycles are looked for."""

_TRIES: Final = 2
"""Processes that one member may end before it is given up."""


_POLICY_FILES: Final = frozenset(POLICY_FILES)
_FILES: Final = frozenset(FILES.values())


class Row(NamedTuple):
    """What one member came to.

    ``verdict`` is ``supported``, ``contradicted``, ``not_established``, ``valid``, ``invalid``, ``refused`` or
    ``error``; ``reason`` the code behind it. ``standing`` is that of :func:`troth.receipts.verify.standing`, or
    ``error``; then ``error`` is the error as JSON and ``exit_status`` its class's. ``kind`` says what the member was
    read as: ``receipt``, ``checks`` or ``contract``. ``place`` is the file that broke a rule, where one did. ``signed``
    tells of signatures in words, empty where none lie there and nobody asked; ``signers`` has them as JSON.
    """

    member: str
    verdict: str
    reason: str
    standing: str
    kind: str = ""
    result: Mapping[str, Any] | None = None
    error: Mapping[str, Any] | None = None
    exit_status: int = 0
    place: str | None = None
    claim_id: str | None = None
    invocation_id: str | None = None
    verifier: str | None = None
    receipt_sha256: str | None = None
    signed: str = ""
    signers: Mapping[str, Any] | None = None


SIGNED: Final = "signed, not checked"
"""What is told of signatures where nobody says whom to trust."""

UNSIGNED: Final = "unsigned"


def faulty(member: str, fault: TrothError) -> Row:
    """Return the row of a member about which nothing can be said."""
    return Row(member, "error", fault.code, "error", error=fault.as_json()["error"], exit_status=fault.exit_code)


def has_bundle(member: str) -> bool:
    """Tell whether something lies in the place of a sigstore bundle, about which an instance would be asked."""
    return os.path.lexists(f"{member}/{BUNDLE_FILE}")


def check_one(
    member: str,
    names: Sequence[str] | None,
    pins: ConsumerPins | None = None,
    demand: Demand | None = None,
    vouch: _Vouch | None = None,
) -> Row:
    """Check one member folder, again when it changed while it was read; raise nothing.

    Args:
        member: the folder.
        names: claim types to run where there is no receipt; ``None`` for all three.
        pins: whom the caller believes; ``None`` judges by the case and policy that lie in the folder.
        demand: whose signatures the caller asks for; a member whose envelope and bundle do not meet it is an error.
        vouch: asks a sigstore instance about a bundle, where identities are asked for.
    """
    try:
        return _checked(member, (names, pins, demand, vouch))
    except TrothError as fault:
        return faulty(member, fault)
    except Exception as fault:  # whatever it is, the others are still to be checked
        return faulty(
            member,
            Defect(
                "E_DEFECT",
                f"{type(fault).__name__}: {fault}",
                remedy="This is a fault of troth itself.",
                place=Place(file=member),
            ),
        )


def _checked(member: str, asked: _Asked) -> Row:
    names, pins, demand, vouch = asked
    for _ in range(_LOOKS):
        folder = FolderMember(member)
        seen: Member = folder
        signers = None
        if demand is not None:
            try:
                seen, signers = as_signed(folder, demand, vouch=vouch)
            except TrothError as fault:
                if folder.changed():
                    continue
                missing = fault.code in {"E_ENVELOPE_MISSING", "E_BUNDLE_MISSING"}
                return faulty(member, fault)._replace(signed=UNSIGNED if missing else "not signed as asked")
        found = examine(seen, names) if pins is None else _by_pins(seen, names, pins)
        word = standing(found.result)
        # What holds rests on the bytes that were read. What does not may be a folder half written.
        if word != "holds" and folder.changed():
            continue
        return _with_signatures(_row(member, found, word), signers)
    raise Busy(
        "E_MEMBER_CHANGED",
        "the folder was written to while it was read",
        remedy="Check it again when whoever writes there has finished.",
        place=Place(file=member),
    )


def _with_signatures(row: Row, signers: Signers | None) -> Row:
    """Return the row with what is known of signatures; unasked, that they lie there is all."""
    if signers is not None:
        counted = ", ".join(f"{signers.count(role)} {role}(s)" for role in ROLES if signers.count(role))
        return row._replace(signed=f"signed by {counted}", signers={"checked": True, **signers.as_json()})
    lies = {
        what: os.path.lexists(f"{row.member}/{file}")
        for what, file in (("envelope", ENVELOPE_FILE), ("bundle", BUNDLE_FILE))
    }
    return row._replace(signed=SIGNED, signers={"checked": False, **lies}) if any(lies.values()) else row


def _by_pins(folder: Member, names: Sequence[str] | None, pins: ConsumerPins) -> Examination:
    """Examine a member by the caller's pins; one without the six records, or with a broken one, is refused."""
    from troth.receipts.pinning import consumer_files

    try:
        files = consumer_files(folder, pins)
    except Broken as fault:
        return Examination(MemberReader(folder), "checks", {"refused": fault.code}, fault=fault, code=fault.code)
    return examine(OverlaidMember(folder, MappingMember(files), _POLICY_FILES), names)


def _row(member: str, found: Examination, word: str) -> Row:
    verdict, reason = headline(found.result)
    fault = found.fault
    place = fault.place.file if fault is not None and fault.place is not None else None
    if place is None and found.detail in _FILES:
        place = found.detail
    if found.door != "receipt":
        return Row(member, verdict, reason, word, found.door, found.result, None, 0, place)
    digest = None if reason == "member_unreadable" else found.reader.digest(RECEIPT_FILE)
    if found.receipt is None:
        return Row(member, verdict, reason, word, "receipt", found.result, None, 0, place, None, None, None, digest)
    predicate = found.receipt["predicate"]
    return Row(
        member, verdict, reason, word, "receipt", found.result, None, 0, place,
        predicate["claim_id"], predicate["invocation_id"], predicate["verifier"]["id"], digest,
    )  # fmt: skip


def check_share(members: Sequence[str], asked: _Asked) -> list[Row]:
    """Check some members, one after the other."""
    import gc

    # Parsing makes many objects and hardly a cycle: looking for these less often saves a tenth of the time.
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], _ALLOCATIONS), *before[1:])
    try:
        return [check_one(member, *asked) for member in members]
    finally:
        gc.set_threshold(*before)


class _Worker:
    """A process of a pool: what is asked is handed to it once, and what was made ready for it is kept."""

    asked: _Asked = (None, None, None, None)

    @classmethod
    def begin(cls, asked: _Asked) -> None:
        cls.asked = asked
        follow_parent()

    @classmethod
    def check(cls, members: Sequence[str]) -> list[Row]:
        return check_share(members, cls.asked)


def check_all(
    members: Sequence[str],
    names: Sequence[str] | None,
    jobs: int,
    pins: ConsumerPins | None = None,
    demand: Demand | None = None,
    *,
    vouch: _Vouch | None = None,
) -> Iterator[Row]:
    """Yield a row for each member, in order.

    Args:
        members: folders.
        names: as in :func:`check_one`.
        jobs: processes to share the work among; few members are checked in this one.
        pins, demand, vouch: as in :func:`check_one`; what ``vouch`` has made ready is made once a process at most.
    """
    asked = (names, pins, demand, vouch)
    shares = [members[at : at + SHARE] for at in range(0, len(members), SHARE)]
    jobs = min(jobs, len(shares))
    if jobs > 1:
        yield from _shared(shares, asked, jobs)
    else:
        for share in shares:
            yield from check_share(share, asked)


def _shared(shares: Sequence[Sequence[str]], asked: _Asked, jobs: int) -> Iterator[Row]:
    from concurrent.futures import BrokenExecutor

    waiting: deque[tuple[Sequence[str], Future[list[Row]] | None]] = deque()
    pool = _pool(jobs, asked)
    usable = pool is not None
    try:
        for share in [*shares, *[()] * (jobs * _AHEAD)]:  # the empty ones drain what waits
            if share:
                if not usable and pool is not None:
                    pool.shutdown(wait=True, cancel_futures=True)
                    pool = _pool(jobs, asked)
                    usable = pool is not None
                try:
                    waiting.append((share, pool.submit(_Worker.check, share) if pool is not None else None))
                except (BrokenExecutor, OSError):
                    usable = False
                    waiting.append((share, None))
                if len(waiting) < jobs * _AHEAD:
                    continue
            if not waiting:
                return
            oldest, answer = waiting.popleft()
            try:
                rows = answer.result() if answer is not None else None
            except (BrokenExecutor, OSError):
                rows, usable = None, False
            yield from _apart(oldest, asked) if rows is None else rows
    finally:
        if pool is not None:
            pool.shutdown(wait=True, cancel_futures=True)


def _apart(share: Sequence[str], asked: _Asked) -> Iterator[Row]:
    """Check a share at which a process ended: once more as a whole, then each member by itself."""
    rows = _in_one(share, asked)
    if rows is not None:
        yield from rows
        return
    for member in share:
        for _ in range(_TRIES):
            rows = _in_one([member], asked)
            if rows is not None:
                yield from rows
                break
        else:
            yield faulty(
                member,
                Defect(
                    "E_FLEET_WORKER",
                    "the processes that checked the folder ended before they had an answer",
                    remedy="Look at it alone with `troth receipt verify`, and give it more memory.",
                    place=Place(file=member),
                ),
            )


def _in_one(share: Sequence[str], asked: _Asked) -> list[Row] | None:
    """Check a share in a process of its own; ``None`` when that ended."""
    from concurrent.futures import BrokenExecutor

    pool = _pool(1, asked)
    if pool is None:  # no further process can be had: then here
        return check_share(share, asked)
    with pool:
        try:
            return pool.submit(_Worker.check, share).result()
        except (BrokenExecutor, OSError):
            return None


def _pool(jobs: int, asked: _Asked) -> ProcessPoolExecutor | None:
    """Return processes to hand shares to, or ``None`` on a machine that has none to give."""
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_all_start_methods, get_context

    # Fork is at hand at once; where it does not exist, the others import this module first.
    context = get_context("fork" if "fork" in get_all_start_methods() else None)
    try:
        return ProcessPoolExecutor(jobs, mp_context=context, initializer=_Worker.begin, initargs=(asked,))
    except (OSError, ImportError, NotImplementedError):
        return None
