"""What a run came to, in sentences for a person: the facts by name, what was missing, and the command that mends it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from troth.core.words import command_line, printable
from troth.receipts.explain import stories
from troth.receipts.telling import because, missing, told_fact, verdict
from troth.receipts.verify import Examination

MAX_LINES: Final = 40
MAX_SHOWN: Final = 3_000
"""Characters shown of the end of what one command printed."""

MAX_SHOWN_LINES: Final = 40
MAX_NAMES: Final = 5
"""Names shown of one kind; the rest are counted."""


@dataclass(frozen=True, slots=True)
class Told:
    """A verdict in one sentence, the facts behind it, and for each open check which record was missing and why."""

    sentence: str
    lines: tuple[str, ...]
    missing: tuple[Mapping[str, str], ...]

    def as_json(self) -> dict[str, Any]:
        """Return the members that a run's state keeps."""
        return {"sentence": self.sentence, "lines": list(self.lines), "missing": [dict(item) for item in self.missing]}


def tell_run(found: Examination, measured: Mapping[str, Any], report: Mapping[str, Any]) -> Told:
    """Tell a run.

    Args:
        found: the reader's examination of the run's folder.
        measured: what the observer measured (``run.json``).
        report: the grader's side report.
    """
    open_points = tuple(_explained(point, measured, report) for point in missing(found))
    sentence = verdict(found)
    if found.done is not None and found.done.decision == "not_established" and open_points:
        first = next((point for point in open_points if point["reason"] == found.done.reason), open_points[0])
        sentence = first["why"]
    differing = [printable(str(told), 600) for told in measured.get("totals_differ", ())]
    if differing:
        sentence = f"{sentence} The totals differ: {differing[0]}."
    lines = [*_about_agent(measured), *_about_checks(found, open_points), *about_grade(report)]
    if len(lines) > MAX_LINES:
        lines[MAX_LINES:] = [f"and {len(lines) - MAX_LINES} more; see: troth receipt verify"]
    return Told(sentence, tuple(lines), open_points)


def _explained(point: Mapping[str, str], measured: Mapping[str, Any], report: Mapping[str, Any]) -> Mapping[str, str]:
    """Say of an open check what the records have no member for: why coverage is incomplete, why a result is missing."""
    why = point["why"]
    faults = measured.get("coverage_faults") or ()
    if point["reason"] == "observation_coverage_unestablished" and faults:
        why = f"The observation is incomplete: {printable(str(faults[0]), 300)}."
        if len(faults) > 1:
            why = f"{why[:-1]} (and {len(faults) - 1} more reasons)."
    if point["reason"] == "acceptance_result_missing":
        without = [command for command in report.get("commands", ()) if command.get("why")]
        if without:
            first = without[0]
            why = f"Acceptance command {printable(first['id'], 80)!r} has no result: {first['words']}{_exits(first)}."
    return {**point, "why": why}


def _exits(command: Mapping[str, Any]) -> str:
    """Return the exits of repeated runs that do not agree."""
    exits = [run.get("exit") for run in command.get("runs", ())]
    return f" (exits {', '.join(map(str, exits))})" if len(set(exits)) > 1 else ""


def _about_agent(measured: Mapping[str, Any]) -> list[str]:
    lines = []
    if measured.get("timed_out"):
        lines.append(f"the agent was ended after {measured['timeout']:g} seconds")
    if measured.get("interrupted"):
        lines.append("the agent was interrupted")
    elif measured.get("agent_exit"):
        lines.append(f"the agent itself ended with exit {measured['agent_exit']}")
    if not measured.get("claims"):
        lines.append("the agent claimed nothing")
    lines += [
        f"line {number} of the claims is no claim: {printable(str(why), 200)}" if number else printable(str(why), 200)
        for number, why in measured.get("claim_lines_refused", ())
    ]
    secrets = measured.get("secrets") or {}
    if secrets.get("sentence") and not secrets["cut"]:
        lines.append(f"{printable(secrets['sentence'], 400)}: in the records too, since --redact was not given")
    lines += [printable(str(note), 300) for note in measured.get("claim_notes", ())]
    lines += [f"the totals differ: {printable(str(told), 600)}" for told in measured.get("totals_differ", ())]
    lines += [f"not seen whole: {printable(str(fault), 300)}" for fault in measured.get("coverage_faults", ())]
    return lines


def _about_checks(found: Examination, open_points: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the facts of every check that is not supported."""
    why = {point["claim_type"]: point for point in open_points}
    lines = []
    for story in stories(found):
        if story["decision"] == "supported":
            continue
        name = story["claim_type"]
        if name in why:
            lines.append(f"{name}: not established, for want of the {why[name]['record']} record: {why[name]['why']}")
        else:
            lines.append(f"{name}: contradicted: {because(story)}")
        lines += [f"  {line}" for fact in story["facts"][:MAX_NAMES] for line in told_fact(fact)]
        left = len(story["facts"]) - MAX_NAMES + story.get("facts_left_out", 0)
        if left > 0:
            lines.append(f"  and {left} more")
    return lines


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(printable(name, 120) for name in names[:MAX_NAMES])
    return shown + (f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else "")


def about_grade(report: Mapping[str, Any]) -> list[str]:
    """Return what the grader noticed and the receipt has no member for (done records §13.5)."""
    lines = []
    if report.get("put_back"):
        lines.append(f"put back before grading: {_names(report['put_back'])}")
    if report.get("plugin_lists_put_back"):
        lines.append(f"a package's list of plugins, put back before grading: {_names(report['plugin_lists_put_back'])}")
    if report.get("bytecode_dropped"):
        dropped = _names(report["bytecode_dropped"])
        lines.append(f"bytecode in the place of a source, not sealed and left out of grading: {dropped}")
    if report.get("hides_a_standard_module"):
        hidden = _names(report["hides_a_standard_module"])
        lines.append(f"stands in the way of a module of Python's own: {hidden}")
    for command in report.get("commands", ()):
        lines.append(_about_command(command))
        against = command.get("against_sealed") or {}
        if against.get("fewer"):
            lines.append(
                f"  {against['fewer']} fewer tests ran than at sealing "
                f"({against['executed_now']} instead of {against['executed_at_sealing']})"
            )
        if against.get("not_executed_now"):
            lines.append(f"  passed at sealing, not run now: {_names(against['not_executed_now'])}")
        for name, outcomes in list((command.get("flaky") or {}).items())[:MAX_NAMES]:
            lines.append(f"  flaky: {printable(name, 120)} ({', '.join(map(printable, outcomes))})")
        left = {name for run in command.get("runs", ()) for name in run.get("left_running", ())}
        if left:
            lines.append(f"  left running, and ended with the sandbox: {_names(sorted(left))}")
        failing = next((run.get("failing") for run in command.get("runs", ()) if run.get("failing")), None)
        if failing:
            lines.append(f"  failing: {_names(failing)}")
    return lines


def _about_command(command: Mapping[str, Any]) -> str:
    tests = command.get("tests") or {}
    counts = ", ".join(
        f"{tests[name]} {word}"
        for name, word in (("executed", "tests run"), ("passed", "passed"), ("skipped", "skipped"))
        if tests.get(name) is not None
    )
    ended = (
        f"exit {command['exit']}" if command.get("why") is None else f"no result: {command['words']}{_exits(command)}"
    )
    counted = f" ({counts})" if counts else ""
    return f"graded {printable(command['id'], 80)}: {command_line(command['argv'], 200)}: {ended}{counted}"


def ends_of_output(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the last lines that each command without a passing result printed: whoever is to mend it has to see them.

    They are the program's own bytes as text; whoever shows them makes control characters visible.
    """
    for command in report.get("commands", ()):
        run = next((run for run in command.get("runs", ()) if run.get("exit") != 0), None)
        if run is None and command.get("why") is not None:
            run = next(iter(command.get("runs", ())), None)
        if run is None or not run.get("output"):
            continue
        printed = str(run["output"])[-MAX_SHOWN:].splitlines()[-MAX_SHOWN_LINES:]
        yield f"the end of what {command['id']} printed:"
        yield from printed


def whole_output(report: Mapping[str, Any]) -> list[str]:
    """Return what the commands printed, line by line, each run under a line that names it."""
    lines: list[str] = []
    for command in report["commands"]:
        for at, run in enumerate(command["runs"], 1):
            ended = f"exit {run['exit']}" if run["ended_itself"] else "ended"
            cut = f", cut from {run['output_bytes']} bytes" if run["output_cut"] else ""
            lines.append(f"--- {command['id']}, run {at} of {len(command['runs'])}: {ended}{cut}")
            lines += run["output"].splitlines()
    return lines


def tell_grade(found: Examination, report: Mapping[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Return what a grade without a run comes to in one sentence, and a line for each command."""
    open_points = [_explained(point, {}, report) for point in missing(found)]
    (story,) = stories(found)
    sentence = open_points[0]["why"] if open_points else because(story)
    return sentence, tuple(about_grade(report))
