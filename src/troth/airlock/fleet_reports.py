"""The rows of a fleet as CSV, JUnit XML, SARIF 2.1.0 and Parquet.

Names of folders, ids and messages come from others. In every format they are text without control characters or
halves of pairs (:func:`troth.core.words.printable`), at most :data:`TEXT_LIMIT` characters; in CSV none begins as a
formula does.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from troth import __version__
from troth.core.errors import Place, Refused
from troth.core.words import printable
from troth.receipts.policy import ALL_CHECKS
from troth.receipts.reasons import REASONS, sentence
from troth.receipts.remedies import remedy
from troth.stores.durable import replace_from

if TYPE_CHECKING:
    from troth.airlock.fleets import Row

TEXT_LIMIT: Final = 4000
"""Characters of one value from outside."""

COLUMNS: Final = (
    "member", "kind", "verdict", "reason", "meaning", "place", "claim_id", "invocation_id", "verifier",
    "receipt_sha256", "witness_scope",
    *(f"{name.partition('/')[0]}{end}" for name in ALL_CHECKS for end in ("", "_reason")), "signed",
)  # fmt: skip
"""Columns of the tables; all are text, empty where there is nothing to say."""

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final = {"holds": "none", "not_established": "warning"}


def meaning(row: Row) -> str:
    """Return the reason of a row in a sentence."""
    if row.error is not None:
        return str(row.error["message"])
    return sentence(row.reason) if row.reason else "The contract Statement is valid."


def _text(value: object) -> str:
    return "" if value is None else printable(str(value), TEXT_LIMIT)


def cells(row: Row) -> tuple[str, ...]:
    """Return the values of a row, by :data:`COLUMNS`."""
    result = row.result or {}
    checks = result.get("checks", {})
    answers = [checks.get(name, {}) for name in ALL_CHECKS]
    return tuple(
        map(
            _text,
            (
                row.member, row.kind, row.verdict, row.reason, meaning(row), row.place, row.claim_id,
                row.invocation_id, row.verifier, row.receipt_sha256, result.get("done", {}).get("witness_scope"),
                *(answer.get(name) for answer in answers for name in ("decision", "reason")), row.signed,
            ),
        )
    )  # fmt: skip


# --- CSV ---

_FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Beginnings that a spreadsheet takes for a formula, also as wide characters."""


def _cell(text: str) -> str:
    """Return a cell that is not computed: an apostrophe, which spreadsheets take for "text", before what would be."""
    return f"'{text}" if text.lstrip().startswith(_FORMULA) else text


def as_csv(rows: Iterable[Row]) -> Iterator[bytes]:
    """Yield a table with a header line: RFC 4180, UTF-8."""
    page = io.StringIO()
    table = csv.writer(page)
    table.writerow(COLUMNS)
    for row in rows:
        table.writerow(map(_cell, cells(row)))
        if page.tell() > _PAGE:
            yield page.getvalue().encode()
            page.seek(0)
            page.truncate()
    yield page.getvalue().encode()


_PAGE: Final = 1 << 16
"""Characters that are written at once."""

# --- JUnit ---

_FAILED: Final = {"does_not_hold": "failure", "refused": "error", "error": "error", "not_established": "failure"}


def as_junit(rows: Sequence[Row]) -> Iterator[bytes]:
    """Yield one test suite: a case a member, a failure where it does not hold, an error where nothing can be said.

    What is not established is a failure too: whoever reads the report asks whether the work is done.
    """
    counts = Counter(_FAILED.get(row.standing, "") for row in rows)
    totals = f'tests="{len(rows)}" failures="{counts["failure"]}" errors="{counts["error"]}"'
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="troth" {totals}>\n'.encode()
    yield f'<testsuite name="troth receipt check" {totals} skipped="0" time="0">\n'.encode()
    for row in rows:
        kind = quoteattr(f"troth.receipt.{row.kind or 'folder'}")
        case = f"<testcase classname={kind} name={_attribute(row.member or '.')}"
        failed = _FAILED.get(row.standing)
        if failed is None:
            yield f'{case} time="0"/>\n'.encode()
            continue
        told = f"{row.verdict.replace('_', ' ')}: {meaning(row)}"
        what = " ".join(filter(None, (meaning(row), row.place and f"({row.place})", _remedy(row))))
        yield (
            f'{case} time="0"><{failed} type={_attribute(row.reason)} message={_attribute(told)}>'
            f"{escape(_text(what))}</{failed}></testcase>\n"
        ).encode()
    yield b"</testsuite>\n</testsuites>\n"


def _attribute(text: str) -> str:
    return quoteattr(_text(text))


def _remedy(row: Row) -> str:
    if row.error is not None:
        return str(row.error.get("remedy", ""))
    return remedy(row.reason)


# --- SARIF ---


def as_sarif(rows: Sequence[Row], exit_status: int, *, passes: bool = False) -> Iterator[bytes]:
    """Yield a SARIF 2.1.0 log: a rule a reason, a result a member that does not hold.

    Args:
        rows: the members.
        exit_status: of the whole command.
        passes: whether members that hold are results too, of the kind ``pass``.
    """
    shown = [row for row in rows if passes or row.standing != "holds"]
    codes = sorted({row.reason for row in shown if row.reason})
    numbers = {code: index for index, code in enumerate(codes)}
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "troth", "version": __version__, "rules": [_rule(code) for code in codes]}},
        "invocations": [
            {"executionSuccessful": not any(row.standing == "error" for row in rows), "exitCode": exit_status}
        ],
        "columnKind": "unicodeCodePoints",
    }
    head = _json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})
    yield head.removesuffix("}]}").encode() + b', "results": [\n'
    before = ""
    for row in shown:
        yield (before + _json(_result(row, numbers))).encode()
        before = ",\n"
    yield b"\n]}]}\n"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True)


def _rule(code: str) -> dict[str, Any]:
    short = REASONS.get(code) or f"See: troth help codes {code}"
    return {
        "id": code,
        "shortDescription": {"text": _text(short)},
        "help": {"text": _text(remedy(code))},
        "helpUri": f"urn:troth:code:{code}",
    }


def _result(row: Row, numbers: dict[str, int]) -> dict[str, Any]:
    holds = row.standing == "holds"
    told = f"{row.verdict.replace('_', ' ')}: {meaning(row)}"
    result: dict[str, Any] = {
        "kind": "pass" if holds else "fail",
        "level": _LEVELS.get(row.standing, "error"),
        "message": {"text": _text(told)},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": _uri(row)},
                    "region": {"startLine": 1},
                }
            }
        ],
        "partialFingerprints": {"member/v1": _fingerprint(row)},
        "properties": {"member": _text(row.member), "verdict": row.verdict},
    }
    if row.reason:
        result |= {"ruleId": row.reason, "ruleIndex": numbers[row.reason]}
    return result


def _fingerprint(row: Row) -> str:
    told = os.fsencode(row.member) if _of_system(row.member) else row.member.encode("utf-8", "backslashreplace")
    return hashlib.sha256(told + b"\0" + row.reason.encode()).hexdigest()


def _of_system(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _uri(row: Row) -> str:
    """Return where it is: relative to the folder that the command ran in when it lies beneath it."""
    name = row.place if row.place is not None and "/" not in row.place else None
    if name is None:
        name = {"receipt": "receipt.json", "contract": "statement.json"}.get(row.kind, "")
    path = Path(row.member) / name
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    if not _of_system(str(path)):
        return quote(path.as_posix(), errors="replace")
    return path.as_uri() if path.is_absolute() else quote(os.fsencode(path.as_posix()))


# --- Parquet ---


def as_parquet(rows: Sequence[Row]) -> Iterator[bytes]:
    """Yield the table as Parquet, one row group; the same release of the library gives the same bytes.

    Raises:
        Refused: ``E_USAGE`` when the extra `tables` is not installed.
    """
    try:
        import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
        import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
    except ImportError:
        raise Refused("E_USAGE", "pyarrow is not installed", remedy="Install the extra `tables`.") from None
    columns = list(zip(*map(cells, rows), strict=True)) or [()] * len(COLUMNS)
    schema = pa.schema([(name, pa.string()) for name in COLUMNS])
    table = pa.table([pa.array(values, pa.string()) for values in columns], schema=schema)
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    yield sink.getvalue().to_pybytes()


# --- files ---


def require_place(path: str, members: Iterable[str]) -> None:
    """Require that a report can go to a place, before the work is done.

    Raises:
        Refused: ``E_FLEET_REPORT``: no folder to write into, something else than a file there, or a member's folder.
    """
    target = Path(path)
    place = Place(file=path)
    remedy_told = "Name a file in a folder that can be written, outside the folders that are checked."
    try:
        parent = target.parent.stat()
        if not stat.S_ISDIR(parent.st_mode) or not os.access(target.parent, os.W_OK):
            raise Refused("E_FLEET_REPORT", "no file can be made there", remedy=remedy_told, place=place)
        try:
            there = target.lstat()
        except FileNotFoundError:
            pass
        else:
            if not stat.S_ISREG(there.st_mode):
                raise Refused("E_FLEET_REPORT", "what stands there is no file", remedy=remedy_told, place=place)
        identity = parent.st_dev, parent.st_ino
        for member in members:
            try:
                found = Path(member).stat()
            except (OSError, ValueError):
                continue
            if (found.st_dev, found.st_ino) == identity:
                raise Refused(
                    "E_FLEET_REPORT", "the report would lie in a folder of records", remedy=remedy_told, place=place
                )
    except (OSError, ValueError) as fault:
        raise Refused(
            "E_FLEET_REPORT", f"{getattr(fault, 'strerror', None) or fault}", remedy=remedy_told, place=place
        ) from None


def put_report(path: str, pieces: Iterable[bytes]) -> None:
    """Write a report whole or not at all.

    Raises:
        Refused: ``E_FLEET_REPORT``; what stood there before is untouched.
    """
    try:
        replace_from(Path(path), pieces)
    except (OSError, ValueError) as fault:
        raise Refused(
            "E_FLEET_REPORT",
            f"the report could not be written: {getattr(fault, 'strerror', None) or fault}",
            remedy="Make room, or name another place; the check itself is done.",
            place=Place(file=path),
        ) from None
