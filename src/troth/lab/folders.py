"""Run folders: everything that a run of the laboratory came to, the same bytes on every machine, checked from itself.

A folder holds ``run.json`` (what was played: enough to play it again), ``transcript.jsonl`` (every deal, one after
another, as one legal transcript), ``offers/`` (each offer's byte snapshot under its SHA-256), ``final.json`` (the final
record of the transcript), ``outcomes.jsonl`` (a row for each deal, with what only the oracle knows), ``report.json``,
``report.html`` and ``plots/``. It appears whole or not at all.
"""

from __future__ import annotations

import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from troth import __version__
from troth.core.canonical import record_bytes
from troth.core.errors import Place, Refused
from troth.core.strictjson import Limits, loads
from troth.deals.answer import final_bytes
from troth.deals.codes import LABELS, NON_CLAIMS_REF
from troth.deals.run import Run, replay
from troth.deals.transcript import entries, split_lines
from troth.lab.playing import Setting, come_to
from troth.lab.suites import PROTOCOLS, find
from troth.lab.suites.plan import Suite
from troth.lab.suites.playing import Result, play_suite, report_of
from troth.lab.suites.single import single
from troth.lab.view import Terms

if TYPE_CHECKING:
    from troth.lab.inference import Results
    from troth.lab.measures import Rule

SCHEMA: Final = "urn:troth:lab:run:1"

CODES: Final[dict[str, str]] = {
    "E_RUN_FOLDER": "The folder of a run of the laboratory cannot be read, or is none.",
    "E_RUN_FOLDER_EXISTS": "Something else stands where the run's folder should go.",
    "E_LAB_EXTRA": "Reports of the laboratory need packages that are not installed: the extra `lab`.",
}
"""Refusals of run folders."""

MAX_FILE: Final = 1 << 31
"""Longest file of a folder that is read, in bytes."""
JSON: Final = Limits(max_bytes=1 << 20, max_depth=50, refuse_overflow=True)


# Making --------------------------------------------------------------------------------------------------------------


def recipe_of(result: Result) -> dict[str, Any]:
    """Return what ``run.json`` holds: what was played, from which seed, how often."""
    settings = [arm.setting for arm in result.suite.arms]
    return {
        "schema": SCHEMA,
        "labels": list(LABELS),
        "non_claims": NON_CLAIMS_REF,
        "version": __version__,
        "suite": result.suite.id,
        "protocol": result.suite.protocol,
        "seed": result.seed,
        "deals": result.deals,
        "setting": _setting_json(settings[0]) if result.suite.id == single(settings[0]).id else None,
    }


def _setting_json(setting: Setting) -> dict[str, Any]:
    terms = setting.terms
    return {
        "c": setting.c,
        "a": setting.a,
        "k": setting.k,
        "amount": terms.amount,
        "object_options": [dict(one) for one in terms.object_options],
        "deadline_steps": terms.deadline_steps,
        "expires_steps": terms.expires_steps,
        "forged": setting.forged,
        "forged_rate": setting.forged_rate,
        "series": setting.series,
    }


def inferred(result: Result) -> Results:
    """Return everything that a suite's rows let one say.

    Raises:
        Refused: ``E_LAB_EXTRA``.
    """
    try:
        from troth.lab.inference import infer
    except ImportError as fault:
        raise _extra(fault) from None
    return infer(report_of(result.suite, result.seed, result.deals, result.rows, result.shown))


def files_of(result: Result, rule: Rule | None = None, inference: Results | None = None) -> dict[str, bytes]:
    """Return a run's files by their relative names.

    Args:
        result: a suite played.
        rule: the falsification rule that was fixed before it, if any.
        inference: of the same result, where it is at hand.

    Raises:
        Refused: ``E_LAB_EXTRA``.
    """
    try:
        from troth.lab.report import report_files

        report = report_files(inference or inferred(result), rule)
    except ImportError as fault:
        raise _extra(fault) from None
    run = result.scribe.run
    return {
        "run.json": record_bytes({**recipe_of(result), "rule": None if rule is None else asdict(rule)}),
        "transcript.jsonl": result.scribe.transcript(),
        "final.json": final_bytes(run),
        "outcomes.jsonl": b"".join(
            record_bytes({**row._asdict(), "labels": ", ".join(LABELS)})
            for rows in result.rows.values()
            for row in rows
        ),
        **{f"offers/{name}": body for name, body in _offers(run).items()},
        **report,
    }


def folder_name(suite: str) -> str:
    """Return the name under which a suite's folder stands beside others."""
    return suite.lower().replace("′", "-prime")


def joined(folder: Path, inferences: Sequence[Results], rule: Rule | None) -> None:
    """Write one report of several suites beside their folders, and what they were; it replaces one that stood there.

    Raises:
        Refused: ``E_RUN_FOLDER``, it cannot be written.
    """
    try:
        for name, data in _joined_files(inferences, rule).items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            made = place.with_name(f".{place.name}.{secrets.token_hex(6)}.new")
            made.write_bytes(data)
            made.replace(place)
    except OSError as fault:
        raise _unreadable(folder, f"the report cannot be written: {fault.strerror or fault}") from None


def _joined_files(inferences: Sequence[Results], rule: Rule | None) -> dict[str, bytes]:
    from troth.lab.report import report_files

    recipe = {
        "schema": SCHEMA,
        "labels": list(LABELS),
        "non_claims": NON_CLAIMS_REF,
        "version": __version__,
        "suites": [folder_name(inference.report.suite) for inference in inferences],
        "rule": None if rule is None else asdict(rule),
    }
    return {"run.json": record_bytes(recipe), **report_files(inferences, rule)}


def _extra(fault: ImportError) -> Refused:
    return Refused(
        "E_LAB_EXTRA",
        f"the package {fault.name} is not installed",
        remedy="Install the extra: pip install 'troth[lab]'.",
    )


def _offers(run: Run) -> dict[str, bytes]:
    return {f"{one.sha256}.json": one.body for deal in run.deals.values() for one in deal.snapshots}


def write(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Write a run's folder, which appears whole or not at all.

    Returns:
        Whether it was written; ``False`` when a folder with the very same bytes stands there.

    Raises:
        Refused: ``E_RUN_FOLDER_EXISTS`` when something else stands there; ``E_RUN_FOLDER`` when it cannot be written.
    """
    if os.path.lexists(folder):
        if not folder.is_symlink() and folder.is_dir() and not difference(folder, files):
            return False
        raise _taken(folder)
    made = folder.with_name(f".{folder.name}.{secrets.token_hex(6)}.new")
    try:
        made.mkdir(parents=True)
        for inner in sorted({name.rpartition("/")[0] for name in files} - {""}):
            (made / inner).mkdir(parents=True, exist_ok=True)
        for name, data in files.items():
            (made / name).write_bytes(data)
        made.rename(folder)
    except OSError as fault:
        raise _unreadable(folder, f"the folder cannot be written: {fault.strerror or fault}") from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return True


def refuse_taken(folder: Path) -> None:
    """Refuse, before anything is played, a place where a run's folder cannot come to stand.

    Raises:
        Refused: ``E_RUN_FOLDER_EXISTS``, what stands there is no run's folder.
    """
    if os.path.lexists(folder) and (folder.is_symlink() or not (folder / "run.json").is_file()):
        raise _taken(folder)


def _taken(folder: Path) -> Refused:
    return Refused(
        "E_RUN_FOLDER_EXISTS",
        "another run, or something else, stands there, and nothing is overwritten",
        remedy="Name another folder with --out.",
        place=Place(file=str(folder)),
    )


def difference(folder: Path, files: Mapping[str, bytes]) -> list[tuple[str, str]]:
    """Return (file, what is wrong with it) for whatever in a folder is not as it should be, in the order of names."""
    there = dict(_names(folder))
    faults = [(name, "is missing") for name in files if name not in there]
    for name, path in there.items():
        if name not in files:
            faults.append((name, "does not belong there"))
        elif _read(path, MAX_FILE) != files[name]:
            faults.append((name, "holds other bytes"))
    return sorted(faults)


# Checking ------------------------------------------------------------------------------------------------------------


class Remade(NamedTuple):
    """One run of a folder: what it was, and the same played again.

    ``again`` is what the same run gives again: ``None`` where that was not asked for, or another version made it.
    """

    suite: Suite
    seed: int
    deals: int
    again: Results | None
    version: str


class Checked(NamedTuple):
    """A folder checked: (file, what is wrong) for each fault, and the runs in it."""

    faults: tuple[tuple[str, str], ...]
    runs: tuple[Remade, ...]


def check(
    folder: Path, *, again: bool = True, progress: Callable[[int, int], None] = lambda done, total: None
) -> Checked:
    """Check a run's folder: its records against its own transcript, and all of it against the run played again.

    A folder of several suites is checked suite by suite, and then its one report.

    Raises:
        Refused: ``E_RUN_FOLDER`` when it is none, or its ``run.json`` cannot be read.
    """
    if not folder.is_dir():
        raise _unreadable(folder, "there is no such folder")
    if (folder / "sweep.json").is_file() and not os.path.lexists(folder / "run.json"):
        raise Refused(
            "E_RUN_FOLDER",
            "this is the folder of a sweep",
            remedy="Start the sweep again with the same --out: it looks its chunks through and plays what is missing.",
            place=Place(file=str(folder)),
        )
    recipe = _json(folder, "run.json")
    names = recipe.get("suites")
    if names is None:
        faults, run = _check_one(folder, recipe, again, progress)
        return Checked(tuple(sorted(faults)), (run,))
    known = {folder_name(id_) for suites in PROTOCOLS.values() for id_ in suites}
    if not isinstance(names, list) or not all(isinstance(name, str) and name in known for name in names):
        raise _unreadable(folder, "run.json names no suites")
    every: list[tuple[str, str]] = []
    runs: list[Remade] = []
    for name in names:
        found = check(folder / name, again=again, progress=progress)
        every += [(f"{name}/{file}", says) for file, says in found.faults]
        runs += found.runs
    inferences = [run.again for run in runs if run.again is not None]
    if len(inferences) == len(names):
        wanted = _joined_files(inferences, _rule_of(folder, recipe))
        every += [fault for fault in difference(folder, wanted) if fault[0].split("/")[0] not in names]
    return Checked(tuple(sorted(every)), tuple(runs))


def _check_one(
    folder: Path, recipe: dict[str, Any], again: bool, progress: Callable[[int, int], None]
) -> tuple[list[tuple[str, str]], Remade]:
    suite, seed, deals = _suite_of(folder, recipe)
    rule = _rule_of(folder, recipe)
    there = dict(_names(folder))
    faults = list(_from_transcript(there, suite))
    version = str(recipe.get("version"))
    inference = None
    if again and version == __version__:
        result = play_suite(suite, seed, deals, progress)
        inference = inferred(result)
        named = {name for name, _ in faults}
        faults += [fault for fault in difference(folder, files_of(result, rule, inference)) if fault[0] not in named]
    return faults, Remade(suite, seed, deals, inference, version)


def _rule_of(folder: Path, recipe: Mapping[str, Any]) -> Rule | None:
    from troth.lab.falsification import rule_from_json

    value = recipe.get("rule")
    if value is None:
        return None
    try:
        return rule_from_json(value, "run.json")
    except Refused:
        raise _unreadable(folder, "run.json holds a rule that is none") from None


def _from_transcript(there: Mapping[str, Path], suite: Suite) -> Iterator[tuple[str, str]]:
    if "transcript.jsonl" not in there:
        yield "transcript.jsonl", "is missing"
        return
    try:
        run = replay(entries(split_lines(_read(there["transcript.jsonl"], MAX_FILE))), run=suite.run())
    except Refused as fault:
        yield "transcript.jsonl", f"cannot be read: {fault}"
        return
    if "final.json" not in there:
        yield "final.json", "is missing"
    elif _read(there["final.json"], MAX_FILE) != final_bytes(run):
        yield "final.json", "is not what the transcript comes to"
    wanted = {f"offers/{name}": body for name, body in _offers(run).items()}
    for name in sorted({*wanted, *(one for one in there if one.startswith("offers/"))}):
        if name not in wanted:
            yield name, "is no snapshot of an offer in the transcript"
        elif name not in there:
            yield name, "is missing"
        elif _read(there[name], MAX_FILE) != wanted[name]:
            yield name, "is not the offer's snapshot"
    yield from _rows(there, run)


def _rows(there: Mapping[str, Path], run: Run) -> Iterator[tuple[str, str]]:
    name = "outcomes.jsonl"
    if name not in there:
        yield name, "is missing"
        return
    games: dict[str, list[str]] = {}
    for offer_id in run.deals:
        games.setdefault("_".join(offer_id.split("_")[:2]), []).append(offer_id)
    lines = list(split_lines(_read(there[name], MAX_FILE)))
    if len(lines) != len(games):
        yield name, f"has {len(lines)} rows for {len(games)} deals"
        return
    for number, (line, ids) in enumerate(zip(lines, games.values(), strict=True), 1):
        try:
            row = loads(line, JSON)
        except Refused:
            row = None
        facts = come_to([run.deals[one] for one in ids])
        offer = run.deals[ids[0]].offer
        if not isinstance(row, dict) or any(
            row.get(member) != value or type(row.get(member)) is not type(value)
            for member, value in facts._asdict().items()
            if member not in ("amount", "notes")
        ):
            yield name, f"row {number} is not what its deal came to"
            return
        if offer is not None and offer.deceptive_alt is True and row.get("real") is not False:
            yield name, f"row {number} calls a forged deal real"
            return


def _suite_of(folder: Path, value: Mapping[str, Any]) -> tuple[Suite, int, int]:
    seed, deals, name = value.get("seed"), value.get("deals"), value.get("suite")
    if value.get("schema") != SCHEMA or type(seed) is not int or type(deals) is not int or not isinstance(name, str):
        raise _unreadable(folder, "run.json is no recipe of a run")
    if value.get("setting") is None:
        try:
            return find(name, value.get("protocol", "0.2")), seed, deals
        except (Refused, KeyError, TypeError):
            raise _unreadable(folder, "run.json names no suite") from None
    setting = value["setting"]
    try:
        terms = Terms(
            _whole(setting["amount"]),
            tuple({"id": str(one["id"]), "desc": str(one["desc"])} for one in setting["object_options"]),
            None,
            _whole(setting["deadline_steps"]),
            _whole(setting["expires_steps"]),
        )
        made = Setting(
            str(setting["c"]),
            str(setting["a"]),
            str(setting["k"]),
            terms,
            forged=None if setting["forged"] is None else str(setting["forged"]),
            forged_rate=float(setting["forged_rate"]),
            series=_whole(setting["series"]),
        )
    except (KeyError, TypeError, ValueError):
        raise _unreadable(folder, "run.json holds no setting that can be played") from None
    return single(made), seed, deals


def _whole(value: object) -> int:
    if type(value) is not int or not 0 <= value < 2**53:
        raise ValueError
    return value


def _json(folder: Path, name: str) -> dict[str, Any]:
    data = _read(folder / name, JSON.max_bytes)
    try:
        value = loads(data, JSON)
    except Refused:
        value = None
    if not isinstance(value, dict):
        raise _unreadable(folder, f"{name} is no JSON object")
    return value


def _names(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield (relative name, path) of what lies in a folder and the folders right within it; no link is followed."""
    for entry in sorted(os.scandir(folder), key=lambda one: one.name):
        if entry.is_dir(follow_symlinks=False):
            for inner in sorted(os.scandir(entry.path), key=lambda one: one.name):
                yield f"{entry.name}/{inner.name}", Path(inner.path)
        else:
            yield entry.name, Path(entry.path)


def _read(path: Path, limit: int) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as fault:
        raise _unreadable(path, f"the file cannot be read: {fault.strerror or fault}") from None
    with os.fdopen(fd, "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > limit:
            raise _unreadable(path, "no plain file, or too long a one")
        return file.read(limit)


def _unreadable(path: Path, why: str) -> Refused:
    return Refused("E_RUN_FOLDER", why, remedy="Name the folder of a run.", place=Place(file=str(path)))
