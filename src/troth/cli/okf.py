"""``troth okf``: knowledge bundles read, linted, written, ingested, projected, walked."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.cli.options import Notes, acting, json_option, open_ledger, store_option, writing_options
from troth.core.errors import Refused

if TYPE_CHECKING:
    from troth.knowledge.bundle import Bundle
    from troth.knowledge.query import Knowledge, Walk

_FOLDER = click.Path(path_type=Path)


@click.group("okf", epilog="Example: troth okf lint knowledge")
def okf_cmd() -> None:
    """Read, check and use knowledge bundles: folders of Markdown concepts."""


def _bundle(folder: Path) -> Bundle:
    from troth.knowledge.bundle import read_bundle

    return read_bundle(folder)


def _name(folder: Path, named: str | None) -> str:
    name = named if named is not None else folder.resolve().name
    if not name or any(char in name for char in ":#\n") or any("\ud800" <= char <= "\udfff" for char in name):
        raise Refused("E_USAGE", "a bundle's name is text without : and #", remedy="Name it with --bundle.")
    return name


@okf_cmd.command("lint", epilog="Example: troth okf lint knowledge --type decision --type finding")
@click.argument("folder", type=_FOLDER)
@click.option("--type", "types", multiple=True, metavar="T", help="A known type; with none, every type is known.")
@json_option
def lint_cmd(folder: Path, types: tuple[str, ...], as_json: bool) -> int:
    """Report everything about a bundle; only a missing or empty type is an error (exit 1)."""
    from troth.knowledge.lint import lint

    bundle = _bundle(folder)
    findings = lint(bundle, types)
    errors = sum(finding.severity == "error" for finding in findings)
    if as_json:
        emit_json(
            {
                "folder": str(folder),
                "concepts": len(bundle.concepts),
                "errors": errors,
                "warnings": len(findings) - errors,
                "findings": [finding.as_json() for finding in findings],
            }
        )
        return 1 if errors else 0
    for finding in findings:
        where = finding.file if finding.line is None else f"{finding.file}:{finding.line}"
        mark = coloured("error", "red") if finding.severity == "error" else coloured("warning", "yellow")
        say(f"{printable(where)}: {mark} {finding.code}: {finding.message}")
    if not bundle.concepts:
        say("The folder holds no concepts.")
    else:
        say(f"{_count(len(bundle.concepts), 'concept')}, {_count(errors, 'error')}, "
            f"{_count(len(findings) - errors, 'warning')}")  # fmt: skip
    return 1 if errors else 0


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


@okf_cmd.command("ingest", epilog="Example: troth okf ingest knowledge --bundle handbook --as human:reviewer")
@click.argument("folder", type=_FOLDER)
@click.option("--bundle", "name", metavar="NAME", help="The bundle's name in ids and keys; default: the folder's.")
@click.option("--dry-run", is_flag=True, help="Tell what would be appended, and append nothing.")
@writing_options
def ingest_cmd(
    folder: Path,
    *,
    name: str | None,
    dry_run: bool,
    store: str | None,
    actor: str | None,
    seen: str | None,
    as_json: bool,
) -> int:
    """Append one capture for each concept whose content the ledger does not hold yet, with typed edges."""
    from troth.cli.progress import Progress
    from troth.knowledge.ingest import ADDED, CHANGED, PRESENT, REFUSED, ingest, plan

    bundle, notes = _bundle(folder), Notes()
    named = _name(folder, name)
    ledger = open_ledger(store, notes)
    concepts = list(bundle.concepts.values())
    if dry_run:
        outcomes = plan(named, concepts, ledger.read().state)
    else:
        with Progress("ingesting") as progress:
            outcomes = ingest(ledger, named, concepts, acting(actor, ledger), progress=progress, seen=seen)
    counts = {word: sum(item.outcome == word for item in outcomes) for word in (ADDED, CHANGED, PRESENT, REFUSED)}
    if as_json:
        emit_json(
            {
                "bundle": named,
                "dry_run": dry_run,
                **counts,
                "concepts": [item.as_json() for item in outcomes],
                "skipped": [{"file": gap.path, "why": gap.why} for gap in bundle.skipped],
                "warnings": notes.as_json(),
            }
        )
        return 0
    for item in outcomes:
        if item.outcome != PRESENT:
            reason = f": {printable(item.reason, 200)}" if item.reason is not None else ""
            say(f"{item.outcome:<8} {item.id or '-':<20} {printable(item.path)} ({printable(item.type, 60)}){reason}")
    for gap in bundle.skipped:
        note(f"troth: {printable(gap.path)} was not read: {gap.why}")
    if not outcomes:
        say("The folder holds no concepts.")
        return 0
    would = "would be " if dry_run else ""
    say(f"{printable(named)}: {counts[ADDED]} {would}added, {counts[CHANGED]} {would}changed, "
        f"{counts[PRESENT]} present already, {counts[REFUSED]} refused")  # fmt: skip
    return 0


@okf_cmd.command("project", epilog="Example: troth okf project notes ../notes-okf")
@click.argument("source", type=_FOLDER, metavar="SRC")
@click.argument("out", type=_FOLDER, metavar="OUT")
@click.option("--namespace", metavar="NAME", help="The first part of derived ids; default: the source's name.")
@click.option("--force", is_flag=True, help="Replace an earlier projection; nothing else is ever replaced.")
@json_option
def project_cmd(source: Path, out: Path, namespace: str | None, force: bool, as_json: bool) -> int:
    """Derive a bundle from a foreign corpus; the source stays as it is and can be recovered byte for byte."""
    from troth.cli.progress import Progress
    from troth.knowledge.project import project

    with Progress("projecting") as progress:
        done = project(source, out, namespace=namespace, force=force, progress=progress)
    if as_json:
        emit_json({"source": str(source), "out": str(out), **done.as_json()})
        return 0
    for gap in done.skipped:
        note(f"troth: {printable(gap.path)} was not projected: {gap.why}")
    for file, name in done.unresolved:
        note(f"troth: {printable(file)}: {printable(name, 120)} names nothing in the corpus; it stays in x-source")
    counts = f"{_count(done.concepts, 'concept')} projected, {_count(done.copied, 'other file')} copied"
    say(f"{counts} to {printable(str(out))}")
    say(f"source unchanged: {done.digest}")
    return 0


@okf_cmd.command("restore", epilog="Example: troth okf restore ../notes-okf recovered")
@click.argument("projection", type=_FOLDER, metavar="OUT")
@click.argument("target", type=_FOLDER, metavar="[DEST]", required=False)
@json_option
def restore_cmd(projection: Path, target: Path | None, as_json: bool) -> int:
    """Recover the source of a projection into a new folder; without one, only check that it can be."""
    from troth.knowledge.project import restore

    files, digest = restore(projection, target)
    if as_json:
        emit_json({"files": files, "source_sha256": digest, "target": None if target is None else str(target)})
        return 0
    what = "can be recovered" if target is None else f"recovered to {printable(str(target))}"
    say(f"{_count(files, 'file')} {what}; source {digest}")
    return 0


@okf_cmd.command("query", epilog='Example: troth okf query knowledge "empty cart checkout"')
@click.argument("words", nargs=-1, required=True, metavar="[FOLDER] TEXT|CONCEPT")
@click.option("--in-ledger", is_flag=True, help="Ask what was ingested into the ledger instead of a folder.")
@click.option("--bundle", "name", metavar="NAME", help="With --in-ledger: only this bundle.")
@click.option("--limit", type=click.IntRange(1), default=5, show_default=True, help="Most concepts that a text finds.")
@store_option
@json_option
def query_cmd(
    words: tuple[str, ...], *, in_ledger: bool, name: str | None, limit: int, store: str | None, as_json: bool
) -> int:
    """Find concepts by path, id or words, with what they build upon; superseded ones are dropped, tensions shown."""
    from troth.knowledge.query import Knowledge, ingested

    if in_ledger or store is not None:
        text = " ".join(words)
        snapshot = open_ledger(store).read()
        sources = ingested(snapshot.rows, name)
        broken = not snapshot.verification.ok
    else:
        if len(words) < 2:
            raise Refused("E_USAGE", "a folder and a concept or text are needed", remedy="Or ask with --in-ledger.")
        folder, text = Path(words[0]), " ".join(words[1:])
        sources = {_name(folder, name): Knowledge(_bundle(folder).concepts)}
        broken = False
    answers = [answer for label, found in sources.items() for answer in _answers(label, found, text, limit)]
    if as_json:
        emit_json({"query": text, "results": [_walk_json(*answer) for answer in answers]})
    elif not answers:
        say("Nothing was found.")
    else:
        for answer in answers:
            _tell_walk(*answer)
    if broken:
        note("troth: the ledger does not verify; `troth verify` tells where")
    return 1 if broken else 0


def _answers(
    label: str, knowledge: Knowledge, text: str, limit: int
) -> Iterable[tuple[str, Knowledge, Walk, int | None]]:
    named = knowledge.find(text)
    if named is not None:
        return [(label, knowledge, knowledge.walk(named), None)]
    return [(label, knowledge, knowledge.walk(path), score) for path, score in knowledge.search(text, limit)]


def _walk_json(label: str, knowledge: Knowledge, walk: Walk, score: int | None) -> dict[str, Any]:
    return {
        "bundle": label,
        **knowledge.describe(walk.path),
        "score": score,
        "superseded_by": list(walk.superseded_by),
        "foundations": [
            {**knowledge.describe(item.path), "depth": item.depth, "of": item.of} for item in walk.foundations
        ],
        "dropped": [{"path": path, "superseded_by": list(by)} for path, by in walk.stale.items()],
        "tensions": [tension.as_json() for tension in walk.tensions],
    }


def _tell_walk(label: str, knowledge: Knowledge, walk: Walk, score: int | None) -> None:
    def line(path: str) -> str:
        told = knowledge.describe(path)
        if "missing" in told:
            return f"{printable(path)} (not in the bundle)"
        declared = f", declared {told['declared']:g}" if "declared" in told else ""
        identifier = f"  {printable(told['id'])}" if "id" in told else ""
        return (
            f"{printable(path)}  {printable(told['title'], 120)} ({printable(told['type'], 60)}{declared}){identifier}"
        )

    say(f"{printable(label)}: {line(walk.path)}")
    for newer in walk.superseded_by:
        say(f"  superseded by {line(newer)}")
    for item in walk.foundations:
        say(f"{'  ' * item.depth}extends {line(item.path)}")
    for path, by in walk.stale.items():
        say(f"  dropped {printable(path)}: superseded by {', '.join(map(printable, by))}")
    for tension in walk.tensions:
        say(f"  tension {printable(tension.path)} {tension.how} {printable(tension.other)}")


@okf_cmd.command(
    "new", epilog='Example: troth okf new knowledge/decisions/cart.md --type decision --title "Empty carts"'
)
@click.argument("path", type=_FOLDER)
@click.option("--type", "kind", required=True, metavar="T", help="What kind of concept it is.")
@click.option("--title", metavar="TEXT", help="Its title.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="A tag.")
@json_option
def new_cmd(path: Path, kind: str, title: str | None, tags: tuple[str, ...], as_json: bool) -> int:
    """Write a new concept with its frontmatter and the customary headings."""
    from troth.knowledge.edit import new_concept, write_concept
    from troth.knowledge.paths import is_concept

    if not is_concept(path.name):
        raise Refused("E_USAGE", "a concept's file ends in .md and is neither index.md nor log.md")
    if not kind.strip():
        raise Refused("E_USAGE", "a type is not empty")
    write_concept(path, new_concept(kind, title, list(tags)))
    if as_json:
        emit_json({"path": str(path), "type": kind})
    else:
        say(f"wrote {printable(str(path))}")
    return 0


@okf_cmd.command("set", epilog="Example: troth okf set knowledge/decisions/cart.md type decision")
@click.argument("path", type=_FOLDER)
@click.argument("field")
@click.argument("value")
@json_option
def set_cmd(path: Path, field: str, value: str, as_json: bool) -> int:
    """Set one field of a concept's frontmatter to a text; every other byte stays."""
    from troth.knowledge.edit import set_field

    changed = set_field(path, field, value)
    if as_json:
        emit_json({"path": str(path), "field": field, "changed": changed})
    else:
        say(f"{'set' if changed else 'unchanged'} {printable(field)} in {printable(str(path))}")
    return 0


@okf_cmd.command("twin", epilog="Example: troth okf twin knowledge --check")
@click.argument("folder", type=_FOLDER)
@click.option(
    "--check", is_flag=True, help="Write nothing; exit 1 when a twin is stale, missing or none of its concept."
)
@json_option
def twin_cmd(folder: Path, check: bool, as_json: bool) -> int:
    """Write the twin of each concept: what it says, as JSON beside it."""
    from troth.knowledge.twin import check_twins, write_twins

    bundle = _bundle(folder)
    states = check_twins(bundle) if check else write_twins(bundle)
    bad = [item for item in states if item.state not in ("fresh", "written")]
    if as_json:
        emit_json({"folder": str(folder), "twins": [item.as_json() for item in states]})
        return 1 if bad else 0
    for item in states:
        if item.state != "fresh":
            say(f"{item.state:<8} {printable(item.twin)} ({printable(item.path)})")
    say(
        f"{_count(len(states), 'twin')}, {len(bad)} not as they should be"
        if states
        else "The folder holds no concepts."
    )
    return 1 if bad else 0
