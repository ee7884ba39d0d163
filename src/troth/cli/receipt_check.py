"""``troth receipt check``: the result of one member folder, or of thousands."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import click

from troth.cli.answer import note, printable, say, worst
from troth.cli.progress import Countdown
from troth.cli.receipt_common import COLOURS, EXITS, checks_option, emit, in_short, read_pin_file, word
from troth.cli.receipt_signers import SignatureWords, Trust, trust_of, trust_options
from troth.core.errors import Refused, TrothError

if TYPE_CHECKING:
    from troth.airlock.fleets import Row
    from troth.receipts.pinning import ConsumerPins
    from troth.stores.corpora import Found

VERDICTS: Final = ("supported", "contradicted", "not_established", "valid", "invalid", "refused", "error")

_LISTED: Final = 40
"""Members that a person is shown one by one; more are counted."""

_PINNED: Final = "Judged by your own pins."
_SELF_PINNED: Final = "Each is judged by the policy in its own folder (self-pinned); --pin FILE judges by yours."


@click.command("check")
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=click.Path())
@checks_option
@click.option(
    "--pin",
    "pin_file",
    type=click.Path(),
    metavar="FILE",
    help="Judge by your own pins, as `troth receipt verify` does; a folder without the six records is then refused.",
)
@trust_options
@click.option("--jobs", type=click.IntRange(1, 256), metavar="N", help="Processes. Default: one for each core.")
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(VERDICTS),
    metavar="VERDICT",
    help="Show and write members of this verdict alone: " + ", ".join(VERDICTS) + ". Repeatable. The counts and the "
    "exit status are still those of all.",
)
@click.option("--explain", is_flag=True, help="Say what each reason means and what to do about it.")
@click.option("--csv", "csv_file", metavar="FILE", help="Write a table: a line a member.")
@click.option("--parquet", "parquet_file", metavar="FILE", help="Write the same table as Parquet (extra `tables`).")
@click.option("--junit", "junit_file", metavar="FILE", help="Write a test report: a case a member.")
@click.option("--sarif", "sarif_file", metavar="FILE", help="Write a SARIF 2.1.0 log: a result a member that fails.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON, one line a member.")
def check_cmd(  # noqa: PLR0917 - click calls it by name
    folders: tuple[str, ...],
    names: tuple[str, ...],
    pin_file: str | None,
    signatures: SignatureWords,
    jobs: int | None,
    only: tuple[str, ...],
    explain: bool,
    csv_file: str | None,
    parquet_file: str | None,
    junit_file: str | None,
    sarif_file: str | None,
    as_json: bool,
) -> int:
    """Give the result of member folders, in the shape a reader is compared by.

    A DIR is a member folder, or holds some: runs of workspaces (`.mentu/runs`) and corpora of receipts are found by
    walking, without following links. Every member is checked, whatever is wrong with another. With --key,
    --certificate-identity or --signers every folder is asked for signatures, as `troth receipt verify` does.

    \b
    Exit status: 0 receipt valid and done supported (or the checks asked for, or a contract statement valid),
    1 invalid or contradicted, 2 refused, 3 not established; for several members the first of 70, 75, 2, 1, 3, 0 that
    occurs.

    \b
    Example: troth receipt check . --csv receipts.csv --explain
             troth receipt check . --signers signers.toml --trusted-root trusted_root.json
    """
    from troth.airlock.fleets import has_bundle
    from troth.receipts.verify import check_names
    from troth.stores.corpora import find_members

    wanted = check_names(names) if names else None
    pins = read_pin_file(pin_file) if pin_file is not None else None
    trust = trust_of(signatures)
    found = find_members(folders)
    files = {"csv": csv_file, "parquet": parquet_file, "junit": junit_file, "sarif": sarif_file}
    reports = {kind: path for kind, path in files.items() if path is not None}
    _require_places(reports, found)
    single = len(folders) == 1 and found.members == [folders[0]]
    page = _Page(single=single, as_json=as_json, only=only, many=len(found.members) > _LISTED)
    if trust is not None and trust.instance is not None and any(map(has_bundle, found.members)):
        trust.instance.ready()  # once, before there are workers; what it cannot do is no fault of a folder
    rows = _checked(found, (wanted, pins, trust), jobs, page, whole=bool(reports))
    if single and rows[0].error is not None and not as_json and not reports:
        raise _Told(rows[0])
    status = worst(_exit(row) for row in rows)
    page.end(rows, found, explain=explain, told=_PINNED if pins is not None else _SELF_PINNED)
    _write(reports, [row for row in rows if not only or row.verdict in only], status, passes=bool(only))
    return status


def _exit(row: Row) -> int:
    return row.exit_status if row.error is not None else EXITS[row.standing]


class _Told(TrothError):
    """The error of the only member, as it came."""

    def __init__(self, row: Row) -> None:
        from troth.core.errors import Place

        error = dict(row.error or {})
        place = error.get("place")
        super().__init__(
            error["code"],
            error["message"],
            remedy=error.get("remedy"),
            place=Place(**place) if place else None,
            detail=error.get("detail"),
        )
        self.exit_code = row.exit_status  # type: ignore[misc]  # the status is that of the error's own class


def _checked(
    found: Found,
    asked: tuple[Sequence[str] | None, ConsumerPins | None, Trust | None],
    jobs: int | None,
    page: _Page,
    *,
    whole: bool,
) -> list[Row]:
    """Check all members and tell each as it comes; keep their results only when they are wanted ``whole``."""
    from troth.airlock.fleets import check_all, faulty
    from troth.stores.workers import cores

    readable = [member for member in found.members if member not in found.faults]
    wanted, pins, trust = asked
    demand, vouch = (trust.demand, trust.instance) if trust is not None else (None, None)
    checked = iter(check_all(readable, wanted, jobs if jobs is not None else cores(), pins, demand, vouch=vouch))
    rows: list[Row] = []
    # Lines that go to the terminal themselves would stand among the bar's.
    with nullcontext(_untold) if page.to_terminal else Countdown("checking", "folders") as progress:
        progress(0, len(found.members))
        for member in found.members:
            fault = found.faults.get(member)
            row = faulty(member, fault) if fault is not None else next(checked)
            page.row(row)
            rows.append(row if whole else row._replace(result=None))
            progress(len(rows), len(found.members))
    return rows


def _untold(done: int, total: int) -> None:
    """Take how far it has come, and show nothing."""


class _Page:
    """What is printed: a line a member as JSON, or lines and a table for a person."""

    def __init__(self, *, single: bool, as_json: bool, only: Sequence[str], many: bool) -> None:
        self._single = single
        self._as_json = as_json
        self._only = only
        self._many = many
        self._lines: list[str] = []
        self._left_out = 0
        self.to_terminal = as_json and sys.stdout.isatty()

    def row(self, row: Row) -> None:
        """Tell one member."""
        if self._only and row.verdict not in self._only:
            return
        if self._as_json:
            told: dict[str, Any] = dict(row.result) if row.result is not None else {"error": row.error}
            if row.signers is not None:
                told["signatures"] = row.signers
            emit(told if self._single else {"member": row.member, **told})
            return
        if self._single and row.error is not None:
            return
        if self._many and not self._only and row.standing == "holds":
            return
        if len(self._lines) >= _LISTED:
            self._left_out += 1
        elif row.result is not None:
            signed = f"; {row.signed}" if row.signed else ""
            self._lines.append(f"{printable(row.member)}: {in_short(row.result)}{signed}")
        else:
            error = row.error or {}
            told_error = f"{error['code']}: {error['message']}. {error.get('remedy') or ''}".strip()
            self._lines.append(f"{printable(row.member)}: {printable(told_error)}")

    def end(self, rows: Sequence[Row], found: Found, *, explain: bool, told: str) -> None:
        """Tell the counts, what was left out, and the reasons."""
        put: Callable[[str], None] = note if self._as_json else say
        for line in self._lines:
            say(line)
        if not self._as_json and not self._single:
            if self._left_out:
                say(f"… and {self._left_out:,} more; --json, --csv and --only tell them")
            if self._lines:
                say()
            for line in _table(rows):
                say(line)
            say(told)
        if explain:
            for line in _explained(rows):
                put(line)
        for line in _asides(rows, found):
            note(line)


def _table(rows: Sequence[Row]) -> Iterator[str]:
    """Yield the counts by verdict and reason, the largest first."""
    counts = Counter((row.verdict, row.reason) for row in rows)
    width = max(7, len(f"{len(rows):,}"))
    order = sorted(counts.items(), key=lambda item: (VERDICTS.index(item[0][0]), -item[1], item[0][1]))
    yield f"{'members':>{width}}   share  {'verdict':<16} reason"
    for (verdict, reason), count in order:
        coloured = word(verdict) if verdict in COLOURS else verdict
        gap = " " * (16 - len(verdict))
        yield f"{count:>{width},} {count / len(rows):>7.1%}  {coloured}{gap} {reason or '-'}"
    yield f"{len(rows):>{width},}          in all"


def _explained(rows: Sequence[Row]) -> Iterator[str]:
    from troth.cli.helptext import tables
    from troth.receipts.remedies import remedy

    meanings = {code: told for table in tables().values() for code, told in table.items()}
    for reason in sorted({row.reason for row in rows if row.reason}):
        yield ""
        yield reason
        yield f"  {meanings.get(reason, reason)}"
        own = next((row.error for row in rows if row.reason == reason and row.error is not None), None)
        yield f"  What to do: {printable(own.get('remedy') or '') if own is not None else remedy(reason)}"


def _asides(rows: Sequence[Row], found: Found) -> Iterator[str]:
    """Yield what the rows do not show."""
    if found.pending:
        yield f"{found.pending:,} of the runs have no receipt and were passed over; `troth runs` tells more"
    if found.links:
        yield f"{found.links:,} links to folders were not followed"
    if found.again:
        yield f"{found.again:,} folders were named or met again and checked once"
    unchecked = sum(row.signers is not None and not row.signers["checked"] for row in rows)
    if unchecked:
        yield f"{unchecked:,} receipts are signed, and it was not checked by whom: --key or --signers tells"
    copies = Counter(row.receipt_sha256 for row in rows if row.receipt_sha256 is not None)
    doubled = sum(count for count in copies.values() if count > 1)
    if doubled:
        yield f"{doubled:,} receipts are byte for byte that of another folder: one run counts once"


def _require_places(reports: dict[str, str], found: Found) -> None:
    if not reports:
        return
    from pathlib import Path

    from troth.airlock.fleet_reports import require_place

    if len({Path(path).absolute() for path in reports.values()}) != len(reports):
        raise Refused("E_USAGE", "two reports would go to one file", remedy="Name a file for each.")
    for path in reports.values():
        require_place(path, found.members)


def _write(reports: dict[str, str], rows: Sequence[Row], status: int, *, passes: bool) -> None:
    if not reports:
        return
    from troth.airlock import fleet_reports

    if "csv" in reports:
        fleet_reports.put_report(reports["csv"], fleet_reports.as_csv(rows))
    if "junit" in reports:
        fleet_reports.put_report(reports["junit"], fleet_reports.as_junit(rows))
    if "sarif" in reports:
        fleet_reports.put_report(reports["sarif"], fleet_reports.as_sarif(rows, status, passes=passes))
    if "parquet" in reports:
        fleet_reports.put_report(reports["parquet"], fleet_reports.as_parquet(rows))
