"""The nine operations: each command appends one signal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.options import Notes, acting, open_ledger, progress_note, writing_options
from troth.core.errors import Refused

if TYPE_CHECKING:
    from troth.ledger.operations import Candidate
    from troth.stores.check import Measured
    from troth.stores.protocol import LedgerStore
    from troth.stores.snapshot import Snapshot

_F = TypeVar("_F", bound=Callable[..., Any])

_DONE: Final = {
    "capture": "captured",
    "commit": "committed",
    "claim": "claimed",
    "release": "released",
    "submit": "submitted, now in review:",
    "approve": "approved",
    "reopen": "reopened",
    "close": "closed",
    "annotate": "noted on",
}


def describing_options(command: _F) -> _F:
    """Add what a capture or a note may say about itself."""
    for option in reversed(
        (
            click.option("--kind", metavar="K", help="A lowercase label, such as evidence, finding or learning."),
            click.option("--refs", "--ref", "refs", multiple=True, metavar="ID", help="Cites this row as a parent."),
            click.option("--parent", "parents", multiple=True, metavar="ID", help="Names a parent without citing it."),
            click.option("--contradicts", multiple=True, metavar="ID", help="Disputes this row."),
            click.option("--extends", multiple=True, metavar="ID", help="Builds upon this row."),
            click.option("--refines", multiple=True, metavar="ID", help="Improves this row."),
            click.option("--tag", "tags", multiple=True, metavar="T", help="A tag."),
            click.option("--level", metavar="L", help="explicit, deductive, inductive or contradiction."),
            click.option("--premise", "premises", multiple=True, metavar="ID", help="A row it is derived from."),
            click.option("--entity", "entities", multiple=True, metavar="TEXT", help="What it is about."),
            click.option("--domain", "domains", multiple=True, metavar="TEXT", help="The field it belongs to."),
            click.option("--intent", metavar="TEXT", help="What it is for."),
            click.option("--source-key", metavar="KEY", help="A key of its origin, unique in the ledger."),
            click.option("--scope", metavar="S", help="How far it may travel: local, anonymous, full or cloud."),
            click.option("--meta", metavar="JSON", help="An object with further facts."),
        )
    ):
        command = option(command)
    return command


@click.command(
    "capture",
    epilog='Example: troth capture "suite after the fix" --kind evidence --refs @last --check -- python -m pytest -q',
)
@click.argument("body")
@click.argument("argv", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND...]")
@click.option("--check", is_flag=True, help="Run COMMAND (no shell) and measure how far its result can be trusted.")
@describing_options
@writing_options
def capture_cmd(body: str, argv: tuple[str, ...], check: bool, **options: Any) -> int:
    """Record an observation, or a piece of evidence (--kind evidence)."""
    if argv and not check:
        raise Refused("E_USAGE", "a command to run needs --check before the --")
    if check and not argv:
        raise Refused("E_USAGE", "--check needs a command behind --")
    return _append("capture", {}, options, body=body, check=argv)


@click.command("commit", epilog='Example: troth commit "Fix the empty cart checkout" --source mem_a1b2c3d4 --tag bug')
@click.argument("body")
@click.option("--source", required=True, metavar="ID", help="The observation behind it.")
@click.option("--tag", "tags", multiple=True, metavar="T", help="A tag.")
@click.option("--source-key", metavar="KEY", help="A key of its origin, unique in the ledger.")
@click.option("--meta", metavar="JSON", help="An object with further facts.")
@writing_options
def commit_cmd(body: str, source: str, **options: Any) -> int:
    """Create an obligation from an observation."""
    return _append("commit", {"source": source}, options, body=body)


@click.command("claim", epilog="Example: troth claim cmt_e5f6g7h8 --as agent:worker")
@click.argument("commitment", metavar="ID")
@click.option("--body", metavar="TEXT", help="A remark.")
@writing_options
def claim_cmd(commitment: str, body: str | None, **options: Any) -> int:
    """Take responsibility for a commitment; when somebody else has it, say who."""
    return _append("claim", {"commitment": commitment}, options, body=body)


@click.command("release", epilog='Example: troth release cmt_e5f6g7h8 --reason "needs a key I do not have"')
@click.argument("commitment", metavar="ID")
@click.option("--reason", metavar="TEXT", help="What stopped you.")
@writing_options
def release_cmd(commitment: str, reason: str | None, **options: Any) -> int:
    """Give a claimed commitment back, and clear its unfinished runs."""
    from troth.airlock.runs import Runs

    space = open_ledger(options["store"]).space
    if space is None:
        return _append("release", {"commitment": commitment}, options, words=reason)
    with Runs(space.folder).clearing() as clearing:
        status = _append("release", {"commitment": commitment}, options, words=reason, before=clearing.of)
        for run in clearing.clear():
            note(f"troth: {run} was cleared")
    return status


@click.command("submit", epilog="Example: troth submit cmt_e5f6g7h8 --evidence mem_m3n4o5p6")
@click.argument("commitment", metavar="ID")
@click.option("--evidence", required=True, metavar="ID", help="The capture or note that shows it is done.")
@click.option("--summary", metavar="TEXT", help="What was done.")
@click.option("--review", metavar="ID", help="The review it rests on; which revision that looked at is filled in.")
@click.option("--meta", metavar="JSON", help="An object with further facts.")
@writing_options
def submit_cmd(commitment: str, evidence: str, summary: str | None, review: str | None, **options: Any) -> int:
    """Request closure with evidence; the commitment waits in review.

    Where the genesis key defines tiers, the validators of the commitment's tier answer at once, and a tier that closes
    by itself closes when all of them passed. Whatever they say, the submission stands, with exit status 0.
    """
    named = {"commitment": commitment, "evidence": evidence}
    meta = _rests_on(review, options) if review is not None else None
    return _append("submit", named, options, words=summary, meta=meta, after=_through_airlock)


def _rests_on(review: str, options: Mapping[str, Any]) -> dict[str, str]:
    from troth.airlock.reviews import cited

    space = open_ledger(options["store"]).space
    if space is None:
        raise Refused("E_NO_WORKSPACE", "this ledger stands in no workspace, so no review is kept beside it")
    if _meta(options.get("meta")).keys() & {"review", "artifact"}:
        raise Refused("E_USAGE", "--review and --meta name the review both")
    return cited(space, review)


def _through_airlock(ledger: LedgerStore, row: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    from troth.airlock.validating import Airlock
    from troth.cli.airlock import report_lines

    report = Airlock(ledger, tell=progress_note()).take(row["id"])
    return {"airlock": report.as_json()}, report_lines(report)


@click.command("approve", epilog="Example: troth approve cmt_e5f6g7h8 --as human:reviewer")
@click.argument("commitment", metavar="ID")
@click.option("--comment", metavar="TEXT", help="A remark.")
@click.option("--evidence", metavar="ID", help="The evidence you looked at; refused when another one was submitted.")
@click.option("--submission", metavar="ID", help="The submission you looked at; refused when there is a newer one.")
@writing_options
def approve_cmd(
    commitment: str, comment: str | None, evidence: str | None, submission: str | None, **options: Any
) -> int:
    """Accept a submission: the commitment closes with its evidence."""
    named = {"commitment": commitment} | ({"evidence": evidence} if evidence is not None else {})
    meta = {"submission": submission} if submission is not None else None
    return _append("approve", named, options, words=comment, meta=meta)


@click.command("reopen", epilog='Example: troth reopen cmt_e5f6g7h8 --reason "the suite fails on a clean checkout"')
@click.argument("commitment", metavar="ID")
@click.option("--reason", metavar="TEXT", help="What is wrong with it.")
@writing_options
def reopen_cmd(commitment: str, reason: str | None, **options: Any) -> int:
    """Reject a submission, or dispute a closed commitment; it goes back to its owner."""
    return _append("reopen", {"commitment": commitment}, options, words=reason)


@click.command("close", epilog="Example: troth close cmt_e5f6g7h8 --duplicate-of cmt_11112222")
@click.argument("commitment", metavar="ID")
@click.option("--evidence", metavar="ID", help="The capture or note that shows it is done.")
@click.option("--duplicate-of", metavar="ID", help="The commitment that stands for this one.")
@click.option("--body", metavar="TEXT", help="A remark.")
@writing_options
def close_cmd(commitment: str, evidence: str | None, duplicate_of: str | None, body: str | None, **options: Any) -> int:
    """Resolve a commitment of your own directly, or close it as a duplicate."""
    named = {"commitment": commitment}
    if evidence is not None:
        named["evidence"] = evidence
    if duplicate_of is not None:
        named["duplicate_of"] = duplicate_of
    return _append("close", named, options, body=body)


@click.command("annotate", epilog='Example: troth annotate mem_a1b2c3d4 "seen on the staging host too"')
@click.argument("target", metavar="ID")
@click.argument("body")
@describing_options
@writing_options
def annotate_cmd(target: str, body: str, **options: Any) -> int:
    """Attach a note to any signal; it never changes a commitment's state."""
    return _append("annotate", {"target": target}, options, body=body)


@click.command("retract", epilog='Example: troth retract mem_a1b2c3d4 "read from the wrong host"')
@click.argument("target", metavar="ID")
@click.argument("reason")
@writing_options
def retract_cmd(target: str, reason: str, **options: Any) -> int:
    """Say that a signal no longer stands: a note of kind retraction.

    Nothing is taken out. A row of your own is worth nothing from then on; one of somebody else is put in doubt.
    """
    return _append("annotate", {"target": target}, options | {"kind": "retraction"}, body=reason)


def _append(
    op: str,
    named: Mapping[str, str],
    options: Mapping[str, Any],
    *,
    body: str | None = None,
    words: str | None = None,
    check: Sequence[str] = (),
    meta: Mapping[str, Any] | None = None,
    before: Callable[[str], None] = lambda _: None,
    after: Callable[[LedgerStore, Mapping[str, Any]], tuple[dict[str, Any], list[str]]] = lambda *_: ({}, []),
) -> int:
    """Append one signal and tell its id.

    ``before`` is called with the commitment it is about; ``after`` with the row, and returns what there is to tell
    beside it, as members and as lines.
    """
    from troth.stores.requests import Request, candidate_of

    notes = Notes()
    ledger = open_ledger(options["store"], notes)
    request = Request(
        op=op,
        actor=acting(options["actor"], ledger),
        body=body,
        words=words,
        kind=options.get("kind"),
        named=named,
        refs=options.get("refs", ()),
        parents=options.get("parents", ()),
        relations=[
            (kind, target) for kind in ("contradicts", "extends", "refines") for target in options.get(kind, ())
        ],
        premises=options.get("premises", ()),
        tags=options.get("tags", ()),
        level=options.get("level"),
        scope=options.get("scope"),
        source_key=options.get("source_key"),
        meta=dict(meta or {}) | _meta(options.get("meta")),
        semantic=_semantic(options),
    )

    measured: Measured | None = None
    if check:
        from troth.stores.check import run_check

        # Whoever runs a long check should learn before it, not after it, that nothing can be recorded.
        ledger.rehearse(lambda snapshot: candidate_of(request, snapshot.state))
        measured = run_check(check)
        request = replace(request, meta={**(request.meta or {}), "check": measured.as_meta()})

    def build(snapshot: Snapshot) -> tuple[Candidate, dict[str, Any] | None]:
        candidate = candidate_of(request, snapshot.state)
        before(candidate.payload.get("commitment", ""))
        if measured is None:
            return candidate, None
        parents = candidate.trace["parent"] if candidate.trace else []
        ruling = ledger.ruling()
        depth = snapshot.state.depth_of(parents)
        return candidate, measured.trust(depth, weights=ruling.weights, half_life_days=ruling.half_life_days)

    row = ledger.append_with(build, seen=options["seen"])
    members, lines = after(ledger, row)
    _tell(row, measured, notes, as_json=options["as_json"], members=members)
    for line in () if options["as_json"] else lines:
        say(f"  {line}")
    return 0


def _tell(
    row: dict[str, Any], measured: Measured | None, notes: Notes, *, as_json: bool, members: Mapping[str, Any]
) -> None:
    payload = row["payload"]
    if as_json:
        answer = {"id": row["id"], "op": row["op"], "hash": row["hash"], "signal": row, "warnings": notes.as_json()}
        answer |= members
        if measured is not None:
            answer["check"] = measured.as_meta()
        emit_json(answer)
        return
    about = printable(payload.get("commitment") or payload.get("target") or "", 80)
    say(f"{row['id']}  {_DONE[row['op']]} {about}".rstrip() + f"  by {printable(row['actor'], 80)}")
    if measured is not None:
        ended = "stopped at its time limit" if measured.exit is None else f"exit {measured.exit}"
        say(f"  check: {ended} after {measured.seconds:.1f} s; confidence {row['trust']['confidence']}")


def _meta(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    from troth.core.strictjson import LEDGER_ROW, JsonFault, loads

    try:
        value = loads(text.encode("utf-8", "surrogateescape"), LEDGER_ROW)
    except JsonFault as fault:
        raise Refused("E_USAGE", f"--meta is no JSON: {fault.message}") from None
    if not isinstance(value, dict):
        raise Refused("E_USAGE", "--meta takes a JSON object")
    return value


def _semantic(options: Mapping[str, Any]) -> dict[str, Any]:
    members = {
        "entities": list(options.get("entities", ())),
        "intent": options.get("intent"),
        "domain": list(options.get("domains", ())),
    }
    return {name: value for name, value in members.items() if value}
