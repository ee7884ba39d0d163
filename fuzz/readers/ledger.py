"""Readers of ledgers, genesis keys, checkpoints, proofs, other programs' rows and settings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from fuzz import seeds
from fuzz.engine import Answer, Reader
from fuzz.readers.common import YAML, asserted
from troth.core import notes, strictjson
from troth.core.errors import Refused
from troth.ledger import chain, checkpoint, fastpath, foreign, genesis, importing
from troth.ledger.hashing import row_hash
from troth.ledger.rows import parse_row


def _row(data: bytes) -> None:
    """The quick path gives the reference path's row and hash, or none."""
    quick, plain = fastpath.quick(data), fastpath.plain(data)
    value = parse_row(data)
    if quick is not None:
        asserted(repr(quick[0]) == repr(value) and quick[1] == row_hash(value), "the quick path differs")
    if plain is not None:
        asserted(repr(plain) == repr(value), "the plain path differs")


def _rows(data: bytes) -> None:
    """As `_row`, and a row that the reference refuses must not be taken by the quick path."""
    try:
        _row(data)
    except Refused:
        asserted(fastpath.quick(data) is None and fastpath.plain(data) is None, "the quick path takes a refused row")
        raise


def _ledger(data: bytes) -> Answer:
    """Verification and replay of a whole file, given at once and in small pieces."""
    from troth.ledger.replay import Replay

    reader, run = chain.ChainReader(), Replay()
    reader.feed_all([data], run.apply)
    found = reader.finish()
    pieces = chain.verify_lines(data[at : at + 700] for at in range(0, len(data), 700))
    asserted(
        (found.faults, found.warnings, found.verified) == (pieces.faults, pieces.warnings, pieces.verified),
        "pieces give another answer",
    )
    return found.faults[0].fault if found.faults else None


def _genesis(data: bytes) -> None:
    genesis.parse_genesis(data)


def _note(data: bytes) -> None:
    from ledger.test_checkpoint import KEY

    notes.open_note(data, [KEY])


def _checkpoint(data: bytes) -> None:
    from ledger.test_checkpoint import KEY

    checkpoint.read_checkpoint(data, [KEY])


def _proof(data: bytes) -> None:
    from ledger.test_checkpoint import KEY

    proof = checkpoint.parse_proof(data)
    if isinstance(proof, checkpoint.InclusionProof):
        checkpoint.check_inclusion(proof, [KEY])
    else:
        checkpoint.check_consistency(proof, [KEY])


def _stamp(data: bytes) -> Answer:
    from troth.stores.timestamps import decoded

    return None if decoded(data).status == 0 else "not_granted"


def _foreign(fields: foreign.Fields) -> Callable[[bytes], Answer]:
    def entry(data: bytes) -> None:
        value = strictjson.loads(data, strictjson.LEDGER_ROW)
        foreign.detect(value if isinstance(value, dict) else None, fields)
        foreign.candidate_of(value, fields, "agent:mender")

    return entry


def _v1(data: bytes) -> None:
    value = parse_row(data)
    importing.refuse_unfit(value)
    list(importing.chained([value]))


def _git_log(data: bytes) -> None:
    """What `git log` printed, whole and in pieces, and the rows that are made of it."""
    from troth.ledger.commits import commits
    from troth.ledger.replay import State

    pieces = commits(data[at : at + 7] for at in range(0, len(data), 7)) if len(data) < 3000 else None
    for commit in commits([data]):
        asserted(pieces is None or next(pieces) == commit, "pieces give another commit")
        commit.candidate("agent:mender", State())


def _signature(data: bytes) -> None:
    from ledger.test_checkpoint import KEY
    from troth.ledger.genesis_signature import check_signature

    check_signature(b"key", data, [str(KEY)])


def _signatures() -> list[bytes]:
    from ledger.test_checkpoint import SIGNER, WITNESSES
    from troth.core.notes import sign_note
    from troth.ledger.genesis_signature import signed_text

    return [sign_note(signed_text(b"key"), who, at=1_700_000_000).encode() for who in ([SIGNER], [SIGNER, *WITNESSES])]


def _config(data: bytes) -> None:
    from troth.stores.workspace import parse_config

    parse_config(data, Path("config.yaml"))


def _genesis_seeds() -> list[bytes]:
    from ledger.genesis_keys import IDENTITY, WHOLE

    return [*seeds.files("genesis.key"), IDENTITY.encode(), WHOLE.encode()]


_V1: Final = (
    b'{"id":"mem_1","op":"capture","ts":"2026-01-01T00:00:00Z","actor":"human:a","workspace":"w","payload":{"body":"x"}}',
    b'{"id":"op_2","op":"link","ts":"2026-01-01T00:00:00Z","actor":"human:a","payload":{"source":"mem_1","meta":{"k":1}}}',
)
_FOREIGN: Final = (
    b'{"source_key":"k1","body":"seen","kind":"observation","ts":"2026-01-01T00:00:00Z","actor":"human:a"}',
    b'{"id":7,"text":"seen","when":1760000000,"who":"human:a","more":[1,2]}',
    b'{"op":"annotate","source_key":"k","payload":{"body":"x","target":"mem_1"}}',
)
_NOTES: Final = ("troth.core.notes", "troth.ledger.checkpoint")

_CONFIG: Final = b"""workspace: shop
actor: human:reviewer
unhashed_prefix: 0
validators:
  technical: [python3, check.py]
  safety: {run: [make, check], sandbox: true}
genesis_signers: []
"""

_LOG: Final = (
    b"1" * 40
    + b"\0\0A. Writer\0a@example.com\0002026-03-01T10:00:00+01:00\0001772355600\0Begin\n\nWith a body.\n\0"
    + b"2" * 40
    + b"\0"
    + b"1" * 40
    + b" "
    + b"3" * 40
    + b"\0B\0b@x\0002026-03-02T10:00:00Z\0001772442000\0\0",
    b"4" * 40 + b"\0\0\xff\0\0x\0-1\0m\0",
)

READERS: Final = (
    Reader("ledger/row", _rows, seeds.rows, ("troth.ledger.fastpath", "troth.ledger.rows", "troth.ledger.hashing")),
    Reader("ledger/file", _ledger, seeds.ledgers, ("troth.ledger.chain", "troth.ledger.fields"), few=40),
    Reader("ledger/genesis", _genesis, _genesis_seeds,
           ("troth.ledger.yamltree", "troth.ledger.genesis_sections", "troth.ledger.genesis"), YAML, few=16),
    Reader("ledger/note", _note, seeds.notes, ("troth.core.notes",)),
    Reader("ledger/checkpoint", _checkpoint, seeds.notes, _NOTES),
    Reader("ledger/proof", _proof, seeds.proofs, (*_NOTES, "troth.ledger.merkle")),
    Reader("ledger/timestamp", _stamp, lambda: seeds.files("*.tsr"), ("troth.stores.timestamps",)),
    Reader("ledger/import", _foreign(foreign.Fields()), lambda: [*_FOREIGN, *seeds.rows()[:4]],
    ("troth.ledger.foreign",)),
    Reader("ledger/import-mapped", _foreign(foreign.Fields("text", "id", "who", "when", "mail:")), lambda: _FOREIGN,
           ("troth.ledger.foreign",)),
    Reader("ledger/import-v1", _v1, lambda: _V1, ("troth.ledger.importing",)),
    Reader("ledger/git-log", _git_log, lambda: _LOG, ("troth.ledger.commits",), (b"\0", b"\0" * 7, b"9" * 20)),
    Reader("ledger/genesis-signature", _signature, _signatures, ("troth.ledger.genesis_signature", "troth.core.notes")),
    Reader("ledger/config", _config, lambda: [_CONFIG], ("troth.stores.workspace",), YAML, few=40),
)  # fmt: skip
