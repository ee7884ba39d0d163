"""Sweeps: millions of simulated deals played in chunks, kept one by one, and joined to one table and a summary.

A chunk depends on the configuration and its number alone, so whoever plays it (this process, another, a machine of a
cluster) comes to the same rows, and results are the same bytes whatever happened on the way. Rows are laid down as
Arrow in chunks and as Parquet in the end; the same release of pyarrow writes the same bytes.

Experimental and non-transfer, like every result of the laboratory; the labels stand in the files' metadata.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import msgspec

from troth import __version__
from troth.core.errors import Refused
from troth.deals.checker import NO_HELPERS, Helpers
from troth.deals.codes import LABELS, NON_CLAIMS, NON_CLAIMS_REF
from troth.deals.run import Run
from troth.lab.measures import Rate
from troth.lab.playing import Game
from troth.lab.statistics import wilson
from troth.lab.sweepconfig import Cell, Sweep, SweepConfig

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # ships no types

CODES: Final[dict[str, str]] = {
    "E_SWEEP_BUSY": "Another process plays this sweep in this folder.",
    "E_SWEEP_CHUNK": "A finished part of a sweep is not what was written, or another version of the program made it.",
    "E_SWEEP_CLUSTER": "The cluster cannot be reached, or its workers cannot play deals.",
    "E_SWEEP_FOLDER": "The folder is no sweep's, or cannot be written.",
    "E_SWEEP_OTHER": "The folder holds a sweep with another configuration, or by another version of the program.",
    "E_SWEEP_WORKER": "The processes that play a sweep ended one after another without finishing anything.",
}
"""Refusals of sweeps."""

COLUMNS: Final[tuple[tuple[str, str], ...]] = (
    ("cell", "int32"),
    ("seed", "int64"),
    ("index", "int64"),
    ("counterparty", "string"),
    ("agent", "string"),
    ("offer", "string"),
    ("noise", "string"),
    ("checker", "string"),
    ("offer_kind", "string"),
    ("real", "bool"),
    ("state", "string"),
    ("accepted", "bool"),
    ("disclosed", "bool"),
    ("result", "string"),
    ("satisfied", "bool"),
    ("paid", "int64"),
    ("refunded", "int64"),
    ("loss", "int64"),
    ("steps", "int64"),
    ("note", "string"),
)
"""A row is one deal: its cell and chance, who played what, and what it came to (see ``lab/outcome.py``)."""


def schema(metadata: dict[str, str]) -> pa.Schema:
    """Return the table's schema with labels, non-claims and further metadata."""
    import pyarrow as pa

    marks = {
        "troth.labels": ", ".join(LABELS),
        "troth.non_claims": "\n".join(NON_CLAIMS),
        "troth.non_claims_see": NON_CLAIMS_REF,
        "troth.protocol": Run.protocol,
        "troth.version": __version__,
        **metadata,
    }
    return pa.schema([(name, getattr(pa, f"{kind}_" if kind == "bool" else kind)()) for name, kind in COLUMNS], marks)


# Chunks --------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def sweep_of(form: bytes) -> Sweep:
    """Return the sweep whose canonical form that is."""
    return Sweep(msgspec.json.decode(form, type=SweepConfig))


def play_chunk(form: bytes, chunk: int) -> bytes:
    """Play one chunk and return its rows, as they travel and are kept.

    Args:
        form: the sweep's canonical form.
        chunk: its number, from 0.
    """
    import pyarrow as pa

    sweep = sweep_of(form)
    rows: list[tuple[Any, ...]] = []
    game: tuple[int, Game] | None = None
    for cell, seed, indices in sweep.pieces(chunk):
        if game is None or game[0] != cell.number:
            game = (cell.number, Game(cell.setting, _helpers(cell)))
        _play(game[1], cell, seed, indices, rows)
    made = schema(_marks(sweep, chunk))
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), made, strict=True)]
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, made, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(pa.record_batch(columns, schema=made))
    return bytes(sink.getvalue())


def _helpers(cell: Cell) -> Helpers:
    """Return what the checker of a cell needs.

    Raises:
        ImportError: a checklist asks for a pattern, and there is no engine: rows must not depend on who plays them.
    """
    if any(item["predicate"] == "claim_regex" for item in cell.setting.terms.checklist or ()):
        import re2  # type: ignore[import-untyped]  # noqa: F401 - that it is there is what is asked; it has no types

        from troth.lab.regexes import search

        return Helpers(search=search)
    return NO_HELPERS


def _play(game: Game, cell: Cell, seed: int, indices: range, rows: list[tuple[Any, ...]]) -> None:
    who = (cell.counterparty, cell.agent, cell.offer, cell.noise)
    for index in indices:
        made = game.play(seed, index).outcome
        rows.append(
            (
                cell.number, seed, index, *who, made.k_policy, made.offer_kind, made.real, made.state, made.accepted,
                made.disclosed, made.result, made.satisfied, made.paid, made.refunded, made.loss_a, made.steps,
                made.note,
            )
        )  # fmt: skip


def _marks(sweep: Sweep, chunk: int) -> dict[str, str]:
    return {"troth.sweep": sweep.digest, "troth.chunk": str(chunk)}


def read_chunk(sweep: Sweep, chunk: int, payload: bytes) -> pa.Table:
    """Return a chunk's rows.

    Raises:
        Refused: ``E_SWEEP_CHUNK``, it is not that chunk of this sweep, played by this version.
    """
    import pyarrow as pa

    why = None
    try:
        table: pa.Table = pa.ipc.open_stream(pa.py_buffer(payload)).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as fault:
        why = f"it cannot be read: {fault}"
    else:
        wanted = schema(_marks(sweep, chunk))
        if not table.schema.equals(wanted, check_metadata=True):
            why = "it belongs to another sweep or version"
        elif table.num_rows != sweep.size(chunk):
            why = f"it has {table.num_rows} rows instead of {sweep.size(chunk)}"
    if why is not None:
        raise Refused("E_SWEEP_CHUNK", f"chunk {chunk}: {why}", remedy="Have every machine run the same release.")
    return table


# Joining -------------------------------------------------------------------------------------------------------------


class Tally:
    """What the deals of one cell came to, counted as they go by."""

    __slots__ = ("counts", "ends", "sums")

    def __init__(self) -> None:
        self.ends: Counter[str] = Counter()
        self.counts: Counter[str] = Counter()
        self.sums: Counter[str] = Counter()


_COUNTED: Final = ("real", "accepted", "disclosed", "satisfied", "passed", "false_pass", "false_fail", "settled")
_SUMMED: Final = ("paid", "refunded", "loss", "steps")


def count(table: pa.Table, tallies: dict[int, Tally]) -> None:
    """Add a chunk's rows to the tallies of its cells."""
    import pyarrow.compute as pc  # type: ignore[import-untyped]  # ships no types

    passed, failed = pc.equal(table["result"], "pass"), pc.equal(table["result"], "fail")
    more = {
        "passed": passed,
        "false_pass": pc.and_(passed, pc.invert(table["satisfied"])),
        "false_fail": pc.and_(failed, table["satisfied"]),
        "settled": pc.equal(table["state"], "settled"),
    }
    for name, values in more.items():
        table = table.append_column(name, values)
    summed = [*_COUNTED, *_SUMMED]
    found = table.group_by(["cell", "state"], use_threads=False).aggregate(
        [*((name, "sum") for name in summed), ([], "count_all")]
    )
    for row in found.to_pylist():
        tally = tallies.setdefault(row["cell"], Tally())
        tally.ends[row["state"]] += row["count_all"]
        for name in _COUNTED:
            tally.counts[name] += row[f"{name}_sum"]
        for name in _SUMMED:
            tally.sums[name] += row[f"{name}_sum"]


def write_table(sweep: Sweep, tables: Iterator[pa.Table], sink: Any) -> dict[int, Tally]:
    """Write all chunks, in their order, as one Parquet file; one of them is in memory at a time.

    Args:
        sweep: whose they are.
        tables: the chunks' rows.
        sink: takes the bytes; a file open for writing.

    Returns:
        The tallies by cell.
    """
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types

    tallies: dict[int, Tally] = {}
    made = schema({"troth.sweep": sweep.digest, "troth.config": sweep.form.decode("utf-8")})
    # Everything that a release of the library might choose by itself is chosen here.
    with pq.ParquetWriter(
        sink, made, compression="zstd", compression_level=3, version="2.6", data_page_version="1.0",
        use_dictionary=True, write_statistics=True, store_schema=True, use_compliant_nested_type=True,
    ) as writer:  # fmt: skip
        for table in tables:
            count(table, tallies)
            writer.write_table(table.replace_schema_metadata(made.metadata), row_group_size=sweep.config.chunk)
    return tallies


_SAID: Final = {
    "accepted": "A accepted the offer",
    "disclosed": "A disclosed something",
    "satisfied": "A disclosed the thing itself",
    "settled": "the deal was settled",
    "passed": "K passed the disclosure",
}


def summary(sweep: Sweep, tallies: dict[int, Tally], sha256: str) -> dict[str, Any]:
    """Return the summary: each cell's counts, its rates with Wilson intervals, its points."""
    return {
        "labels": list(LABELS),
        "non_claims": {"see": NON_CLAIMS_REF, "says": list(NON_CLAIMS)},
        "protocol": Run.protocol,
        "version": __version__,
        "config": msgspec.json.decode(sweep.form),
        "config_sha256": sweep.digest,
        "results": {
            "file": "results.parquet",
            "sha256": sha256,
            "rows": sweep.deals,
            "columns": [name for name, _ in COLUMNS],
        },
        "rates": _SAID,
        "cells": [_cell(cell, tallies[cell.number], sweep.per_cell) for cell in sweep.cells],
    }


def _cell(cell: Cell, tally: Tally, deals: int) -> dict[str, Any]:
    disclosed = tally.counts["disclosed"]
    return {
        "cell": cell.number,
        "counterparty": cell.counterparty,
        "agent": cell.agent,
        "offer": cell.offer,
        "noise": cell.noise,
        "deals": deals,
        "forged": deals - tally.counts["real"],
        "ends": dict(sorted(tally.ends.items())),
        "rates": {name: _rate(tally.counts[name], deals) for name in _SAID},
        "checker": {
            "false_pass": _rate(tally.counts["false_pass"], disclosed - tally.counts["satisfied"]),
            "false_fail": _rate(tally.counts["false_fail"], tally.counts["satisfied"]),
        },
        "points": {name: tally.sums[name] for name in ("paid", "refunded", "loss")},
        "steps": tally.sums["steps"],
    }


def _rate(k: int, n: int) -> dict[str, Any]:
    found = wilson(Rate(k, n))
    return {"k": k, "n": n, "value": found.value, "low": found.low, "high": found.high, "method": found.method}


def sha256_of(payload: bytes) -> str:
    """Return the digest by which a chunk is told to be whole."""
    return hashlib.sha256(payload).hexdigest()
