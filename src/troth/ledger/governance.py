"""What a store appends under its write lock: the events that are due, then the row asked for (§5, §6, §11).

The same pure function for every store. The key's bytes come in, rows go out; nothing is read or written here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from troth.core.errors import Refused, TrothError
from troth.core.ids import RandomHex, new_id
from troth.ledger.chain import Verification, Warning_
from troth.ledger.cutover import AUTHOR as CUTOVER
from troth.ledger.cutover import Prefix, cutover_payload
from troth.ledger.fields import ID_PREFIX
from troth.ledger.genesis_event import AUTHOR, KIND, event_meta, event_of
from troth.ledger.operations import Candidate, admit
from troth.ledger.replay import State
from troth.ledger.trust import WEIGHTS

if TYPE_CHECKING:
    from troth.ledger.genesis import Genesis


@dataclass(frozen=True, slots=True)
class Ruling:
    """What governs a ledger: no key (both ``None``), a valid one, or an invalid one and why.

    ``remarks`` are warnings about a key that is in force (such as an unverified signature).
    """

    genesis: Genesis | None = None
    error: TrothError | None = None
    remarks: tuple[Warning_, ...] = ()

    @property
    def weights(self) -> dict[str, float]:
        """Return the weights that asserted confidence is measured with now."""
        return dict(WEIGHTS if self.genesis is None else self.genesis.weights)

    @property
    def half_life_days(self) -> int | None:
        """Return the half-life that the key gives to measured rows, ``None`` where it gives none."""
        return None if self.genesis is None else self.genesis.half_life_days

    def in_force(self) -> Genesis | None:
        """Return the key in force, ``None`` where there is none.

        Raises:
            TrothError: why the key is invalid.
        """
        if self.error is not None:
            raise self.error
        return self.genesis

    def warnings(self) -> list[Warning_]:
        """Return what a reader is warned of; an invalid key stops no reading (§11)."""
        if self.error is None:
            return list(self.remarks)
        return [Warning_(None, None, "genesis_invalid", f"nothing can be recorded: {self.error}")]


NO_KEY: Final = Ruling()


def ruling_of(
    key: bytes | None,
    *,
    file: str | None = None,
    signature: bytes | None = None,
    signers: Sequence[str] = (),
) -> Ruling:
    """Return what the bytes of a key amount to; ``None`` is no key.

    Args:
        key: the whole file.
        file: its name, for the place in a refusal.
        signature: the signed note beside the key, if there is one.
        signers: the public keys of which one must have signed, each as ``NAME+ID+BASE64``; with none of them no
            signature is needed.
    """
    if key is None and not signers:
        return NO_KEY
    # Imported here: a ledger without a key should not pay for it.
    from troth.ledger.genesis import parse_genesis
    from troth.ledger.genesis_signature import check_signature

    try:
        unverified = check_signature(key, signature, signers, file)
        if key is None:
            return NO_KEY
        return Ruling(parse_genesis(key, file), remarks=(unverified,) if unverified is not None else ())
    except Refused as fault:
        return Ruling(error=fault)


def govern(
    candidate: Candidate,
    state: State,
    ruling: Ruling,
    *,
    chain_ok: bool | Verification,
    head_hash: str,
    workspace: str,
    now: datetime,
    random_hex: RandomHex,
    engine_trust: dict[str, Any] | None = None,
    okf_ingest: bool = False,
    prefix: Prefix | None = None,
) -> list[dict[str, Any]]:
    """Return the rows to append, in order, each linked to the one before it; the row asked for is the last.

    A refused operation appends nothing, no event either. The arguments are those of
    :func:`troth.ledger.operations.admit`; ``prefix`` is the unhashed rows that no hashed one follows yet.

    Raises:
        DoesNotHold, Refused: as :func:`troth.ledger.operations.admit`.
    """
    row = admit(
        candidate,
        state,
        chain_ok=chain_ok,
        head_hash=head_hash,
        workspace=workspace,
        now=now,
        random_hex=random_hex,
        engine_trust=engine_trust,
        genesis_error=ruling.error,
        constitution=ruling.genesis,
        okf_ingest=okf_ingest,
    )
    rows: list[dict[str, Any]] = []
    taken = {row["id"]}
    for author, payload in _events_due(state, ruling, prefix):
        # The id is drawn here: the row that follows has one already.
        name = new_id(ID_PREFIX["capture"], lambda name: name in state.signals or name in taken, random_hex)
        taken.add(name)
        event = admit(
            Candidate("capture", author, payload, id=name),
            state,
            chain_ok=chain_ok,
            head_hash=rows[-1]["hash"] if rows else head_hash,
            workspace=workspace,
            now=now,
            random_hex=random_hex,
        )
        rows.append(event)
    if rows:
        # A row's hash leaves its link out (§3), so linking it anew changes nothing else.
        row["prevHash"] = rows[-1]["hash"]
    return [*rows, row]


class Told(NamedTuple):
    """What a person is told about an event that was written: a stable code and a sentence."""

    code: str
    text: str


def told_of(event: Mapping[str, Any]) -> Told:
    """Return what is told about a row that :func:`govern` put before the one asked for."""
    code = "cutover_event" if event["actor"] == CUTOVER else "genesis_event"
    return Told(code, f"{code}: {event['payload']['body']}; {event['id']} records it")


def _events_due(state: State, ruling: Ruling, prefix: Prefix | None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield author and payload of each event due; what stands right behind the unhashed rows comes first (§6)."""
    if prefix is not None:
        yield CUTOVER, cutover_payload(prefix)
    genesis = _event_due(state, ruling)
    if genesis is not None:
        yield AUTHOR, genesis


def _event_due(state: State, ruling: Ruling) -> dict[str, Any] | None:
    """Return the payload of the event that the next append is preceded by, ``None`` when the last one still holds.

    A key that was removed leaves a trace too: an event without digest, with the usual weights.
    """
    genesis, last = ruling.genesis, state.genesis
    if genesis is None:
        if last is None:
            return None
        body, meta = "No genesis key is in force any more", event_meta(None)
    else:
        body = f"Genesis key in force: {genesis.identity.name}"[:200]
        meta = event_meta(genesis.sha256, genesis.weights, genesis.half_life_days)
    payload = {"body": body, "kind": KIND, "meta": meta}
    # Compared whole: a row that names the key's digest beside other weights would speak for it falsely.
    return None if last == event_of({"op": "capture", "actor": AUTHOR, "payload": payload}) else payload
