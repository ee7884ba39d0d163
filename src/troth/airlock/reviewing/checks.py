"""What a program can check of a finding: a command in the sandbox, an anchor in the snapshot, a text that is absent.

A command runs on a copy of the working tree in which every member of the artifact is put back as it was reviewed: what
is judged is the snapshot, whatever became of the working copy since (§2 [D5]).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from troth.airlock.reviewing import host
from troth.airlock.reviewing.session import Session
from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.core.words import command_line
from troth.review.anchors import resolve
from troth.review.artifact import Artifact

RESULTS: Final = ("supports", "contradicts", "inconclusive")
_OPPOSITE: Final = {"supports": "contradicts", "contradicts": "supports", "inconclusive": "inconclusive"}
_LIMITS: Final = {
    "too_many_processes": "processes",
    "out_of_memory": "memory",
    "too_much_output": "output",
    "too_much_written": "what it may write",
}
_ALONE: Final = "/review"
"""Where the artifact stands inside the sandbox when it belongs to no workspace."""


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended and what that says of the finding.

    ``facts`` is what is recorded: argument vector, exit, sizes, digests, what passing and failing mean.
    """

    result: str
    detail: str
    facts: Mapping[str, Any]
    output: bytes
    earlier: bool = False


def run_command(
    session: Session,
    argv: Sequence[str],
    *,
    passing: str = "contradicts",
    failing: str | None = None,
    seconds: float | None = None,
    finding_id: str | None = None,
) -> Ran:
    """Run a command in the observer's sandbox and tell what its end says of the finding.

    Exit 0 is passing and exit 1 failing, as test runners and searches have it. Any other end is inconclusive: another
    exit, a signal, our own limit, a test run in which no test ran or whose account belies its exit.

    Args:
        session: the run.
        argv: program and arguments; no shell.
        passing: what passing says: ``supports``, ``contradicts`` or ``inconclusive``.
        failing: what failing says; the opposite of ``passing`` by default.
        seconds: time allowed.
        finding_id: a command that ran for this finding on the very same tree is not run again.

    Raises:
        Refused: ``E_OBSERVER_MISSING``, ``E_SANDBOX_UNREACHABLE``, ``E_NOT_TEXT``, or why the tree cannot be copied.
    """
    from troth.observer.ready import require_observer

    require_observer()
    from troth.observer.commands import Bench, nothing
    from troth.observer.commands import run_command as run_sandboxed
    from troth.observer.tree import snapshot

    if not all(_holds(word) for word in argv):
        raise Refused("E_NOT_TEXT", "a word of the command is no text in UTF-8, so no record can hold it")
    failing = failing or _OPPOSITE[passing]
    root = Path(session.setup.root) if session.setup.root is not None else None
    # Nothing that an author left is found by name before the system's own programs.
    bench = Bench(inside=str(root) if root is not None else _ALONE, trusted=nothing)
    with bench.folder() as scratch:
        copy = scratch / "tree"
        _laid_out(root, session.artifact, copy, scratch / "members")
        tree = snapshot(copy).digest
        if finding_id is not None:
            earlier = host.already_run(session, finding_id, argv, tree)
            if earlier is not None:
                held = earlier["basis"]["verification"]
                return Ran(held["result"], held["detail"], earlier["basis"]["run"], b"", earlier=True)
        done = run_sandboxed(bench, copy, argv, seconds=seconds)
    if not done.started:
        ended, result = "could not be started", "inconclusive"
    elif done.timed_out:
        ended, result = "was ended by the limit of time", "inconclusive"
    elif not done.ended_itself:
        ended, result = f"was ended by the limit of {_LIMITS[done.ended or '']}", "inconclusive"
    else:
        ended = f"exit {done.exit}" if done.exit >= 0 else f"signal {-done.exit}"
        result = {0: passing, 1: failing}.get(done.exit, "inconclusive")
        if done.nothing_executed:
            ended, result = f"{ended}, and no test ran", "inconclusive"
        elif done.belies_exit:
            ended, result = f"{ended}, though tests failed", "inconclusive"
    facts = {
        "argv": list(argv), "exit": done.exit if done.ended_itself else None, "ended": ended, "passing": passing,
        "failing": failing, "output_sha256": sha256_hex(done.output), "output_bytes": len(done.output),
        "output_cut": done.output_cut, "tree_sha256": tree, "seconds": round(done.seconds, 3),
    }  # fmt: skip
    detail = f"{command_line(argv, 1000)}: {ended} (on what was reviewed, in the tree sha256:{tree})"
    return Ran(result, detail, facts, done.output)


def _holds(word: str) -> bool:
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in word


def _laid_out(root: Path | None, artifact: Artifact, copy: Path, aside: Path) -> None:
    """Make a copy of the working tree and put every member in its place as it was reviewed."""
    from troth.observer.copies import copy_workspace, put_back
    from troth.observer.tree import snapshot

    if root is not None:
        if not root.is_dir():
            raise Refused("E_NO_FOLDER", "the folder that the artifact was reviewed in is gone", detail=str(root))
        copy_workspace(root, snapshot(root), copy)
    copy.mkdir(exist_ok=True)
    for member in artifact.members.values():
        held = aside / member.path
        held.parent.mkdir(parents=True, exist_ok=True)
        held.write_bytes(member.data)
        there = copy / member.path
        mode = there.stat().st_mode & 0o777 if there.is_file() and not there.is_symlink() else 0o644
        held.chmod(mode)
        put_back(copy, aside, member.path)  # a link in the way is replaced, never followed


def check_anchor(session: Session, anchor: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts of an inspection that points at a place, after it was found there.

    Raises:
        Refused: ``E_USAGE`` for what is no anchor, ``E_REVIEW_CHECK`` when it resolves nowhere.
    """
    faults = _anchor_faults(anchor)
    if faults:
        raise Refused("E_USAGE", f"that is no anchor: {faults}")
    found = resolve(dict(anchor), session.artifact)
    if found.faults:
        fault = found.faults[0]
        raise Refused("E_REVIEW_CHECK", f"{fault.rule}: {fault.message}", detail=fault.rule)
    return {"anchor": dict(anchor)}


def _anchor_faults(anchor: Any) -> str | None:
    """Return what is wrong with an anchor in itself, judged as one in a reply would be."""
    from troth.core.canonical import record_bytes
    from troth.review.validate import validate

    reply = {
        "finding_id": "F001", "decision": "substantiate", "position": "-",
        "evidence": [{"anchor": anchor, "observation": "-", "grounding": "artifact_observed"}],
    }  # fmt: skip
    report = validate(record_bytes(reply), kind="rebuttal")
    return report.violations[0].message if report.violations else None


def check_absent(session: Session, text: str) -> dict[str, Any]:
    """Return the facts of an inspection that says a text is nowhere in the artifact, after it was looked for.

    Raises:
        Refused: ``E_REVIEW_CHECK`` with the members that hold it.
    """
    holding = holders(session.artifact, text)
    if holding:
        raise Refused("E_REVIEW_CHECK", f"the artifact holds that text, in {', '.join(holding[:5])}", detail=holding)
    return {"absent": text}


def holders(artifact: Artifact, text: str) -> list[str]:
    """Return the members that hold a text, CRLF being LF on both sides."""
    wanted = text.replace("\r\n", "\n")
    return [
        member.path
        for member in artifact.members.values()
        if (wanted in member.text if member.text is not None else wanted.encode() in member.data)
    ]


# --- again ---


@dataclass(frozen=True, slots=True)
class Again:
    """One recorded verification and what it says now; ``state`` is ``same``, ``differs`` or ``unable``."""

    finding_id: str
    recorded: Mapping[str, Any]
    state: str
    says: str

    def as_json(self) -> dict[str, Any]:
        """Return the form of the command's answer."""
        return {
            "finding_id": self.finding_id, "verification": dict(self.recorded), "state": self.state, "says": self.says,
        }  # fmt: skip


def recheck(session: Session, finding_id: str | None = None) -> list[Again]:
    """Do every deterministic verification again, and tell what differs; nothing is recorded.

    Commands run as they did then, anchors and absent texts are looked for in the snapshot. What a person or a model
    said is not asked again.
    """
    found = []
    for record in session.started().records:
        if record["event"] != "verify" or finding_id not in (None, record["finding_id"]):
            continue
        basis = record["basis"]
        again = _again(session, basis)
        if again is not None:
            found.append(Again(record["finding_id"], basis["verification"], *again))
    return found


def _again(session: Session, basis: Mapping[str, Any]) -> tuple[str, str] | None:
    if "run" in basis:
        return _run_again(session, basis["run"], basis["verification"]["result"])
    if "anchor" in basis:
        found = resolve(dict(basis["anchor"]), session.artifact)
        return ("differs", found.faults[0].message) if found.faults else ("same", "the place is there")
    if "absent" in basis:
        held = holders(session.artifact, basis["absent"])
        return ("differs", f"the text stands in {', '.join(held[:5])}") if held else ("same", "the text is absent")
    return None


def _run_again(session: Session, then: Mapping[str, Any], result: str) -> tuple[str, str]:
    try:
        now = run_command(session, then["argv"], passing=then["passing"], failing=then["failing"])
    except Refused as fault:
        return "unable", fault.message
    told = [f"{then['ended']}, as then" if now.facts["ended"] == then["ended"] else
            f"{now.facts['ended']}; then it was {then['ended']}"]  # fmt: skip
    if now.facts["tree_sha256"] != then["tree_sha256"]:
        told.append("the tree around the artifact is another now")
    if now.facts["output_sha256"] != then["output_sha256"]:
        told.append("its output differs")
    return "same" if now.result == result and now.facts["ended"] == then["ended"] else "differs", "; ".join(told)
