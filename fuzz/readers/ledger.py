"""Readers of ledgers, genesis keys, checkpoints, proofs, other programs' rows and settings."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Final

from fuzz import seeds
from fuzz.engine import Answer, Reader
from fuzz.readers.common import YAML, asserted
from troth.core import notes, strictjson
from troth.core.errors import Refused
from troth.ledger import chain, checkpoint, fastpath, foreign, genesis, importing
from troth.ledger.hashing import row_hash
from troth.ledger.rows import Row, parse_row, row_of


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


def _told(data: bytes) -> Answer:
    """What is told of the rows of a stranger's ledger, each of them well-formed, whatever it holds.

    Their hashes are not asked: who writes a ledger can give any row a hash that holds.
    """
    rows = _Rows()
    for number, line in enumerate(data.split(b"\n"), 1):
        try:
            value = parse_row(line)
        except Refused:
            continue
        rows.append(row_of(number, value))
    return _everything(rows) if rows else "no_rows"


class _Rows(list[Row]):
    """Rows as a snapshot has them."""

    def at_line(self, line: int) -> Row:
        return next(row for row in self if row.line == line)


@cache
def _governed() -> genesis.Genesis:
    return genesis.parse_genesis(seeds.files("genesis.key")[0])


def _everything(rows: _Rows) -> Answer:
    from troth.airlock import decided, history, queue
    from troth.airlock.sealings import latest_known
    from troth.knowledge.query import ingested
    from troth.ledger.chain import ChainReader
    from troth.ledger.confidence import Trust, collect
    from troth.ledger.graph import graph_of, naming
    from troth.ledger.replay import Replay
    from troth.ledger.search import body_of, facets_of
    from troth.ledger.trust_account import account
    from troth.stores.index import summary_of
    from troth.stores.snapshot import Snapshot

    run = Replay()
    for row in rows:
        run.apply(row)
    state = run.state
    trust = Trust(collect(rows, state), state.signals)
    _ = [*trust.standings(), *trust.warnings, *trust.edges()]
    without = frozenset(found.line for found in state.anomalies)
    graph = graph_of(rows, state.signals, without)
    graph.contradictions()
    verification = ChainReader().finish()
    snapshot: Any = Snapshot(rows, state, lambda: verification, lambda: trust)  # type: ignore[arg-type] # a list will do
    first = {row.id: row for row in reversed(rows) if row.id is not None and row.id in state.signals}
    for name, row in [*first.items()][:6]:
        json.dumps(account(trust, row, _AT).as_json())
        graph.why(row.line, depth=4, rows=20)
        graph.impact(row.line, depth=4, rows=20)
        body_of(row.value)
        facets_of(row.value)
        _ = [*naming(rows, name)]
    for name in [*state.commitments][:4]:
        about = history.rows_about(rows, name)
        history.validations_in(about, without)
        history.decisions_in(about, without)
    for key in (None, _governed()):
        json.dumps(queue.queue_of(snapshot, key, at=_AT, actor="human:a").as_json())
    decided.paces(decided.decisions(snapshot))
    whole = summary_of(snapshot).everything()
    for digest in _SEALED:
        latest_known(snapshot, digest)
    _ = len(whole.commitments), len(whole.evidence)
    for knowledge in ingested(rows, None).values():
        for path in [*knowledge.concepts][:3]:
            json.dumps(knowledge.describe(path))
            knowledge.walk(path)
        knowledge.search("a", 3)
    return "without_effect" if state.anomalies else None


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


def _address(data: bytes) -> None:
    from troth.stores.postgres.address import parse_address

    parse_address(data.decode("utf-8", "surrogateescape"))


def _told_seeds() -> list[bytes]:
    from troth.airlock.sealings import KIND

    recorded = seeds.files("ledger.jsonl")[0].splitlines()
    made = seeds.ledgers()[2].splitlines()
    okf = {"bundle": "b", "path": "a.md", "frontmatter": {"type": "note", "links": ["b.md"], "supersedes": ["b.md"]}}
    sealing = {"contract_sha256": "1" * 64, "seal_sha256": "2" * 64, "sealed": "2026-03-01T09:00:00Z"}
    about = {"op": "capture", "ts": "2026-03-01T10:00:00Z", "actor": "human:a", "workspace": "w"}
    alone = [
        {**about, "id": "mem_1", "payload": {"body": "# A\n\n[b](b.md)", "kind": "concept", "meta": {"okf": okf}}},
        {**about, "id": "mem_2", "source_key": f"{KIND}:{'1' * 64}:x", "payload": {"body": "x", "meta": sealing}},
    ]
    parts = (recorded[:8], recorded[8:16], recorded[-8:], made[:8], made[8:])
    return [*(b"\n".join(part) for part in parts), *(json.dumps(one).encode() for one in alone)]


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

_SEALED: Final = (json.loads(seeds.files("honest/run.json")[0])["contract_sha256"], "1" * 64)
_AT: Final = datetime(2026, 6, 1, tzinfo=UTC)
_ADDRESSES: Final = (
    b"postgresql://writer:pw@db.example:5432/troth?ledger=main&sslmode=verify-full", b"postgresql:///troth?ledger=main",
    b"postgres://[::1]/x",
)  # fmt: skip
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
    Reader("ledger/told", _told, _told_seeds,
           ("troth.ledger.replay", "troth.ledger.machine", "troth.ledger.trust_edges", "troth.ledger.confidence",
            "troth.ledger.graph", "troth.ledger.trust_account", "troth.airlock.queue", "troth.airlock.decided",
            "troth.airlock.history", "troth.knowledge.query"), few=40),
    Reader("ledger/address", _address, lambda: _ADDRESSES, ("troth.stores.postgres.address",)),
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
