"""``troth deal run | suite | b3 | report``: the laboratory of deals in one command each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.cli.deal_check import labelled, word
from troth.cli.deal_protocol import protocol_option
from troth.cli.progress import Countdown
from troth.core.errors import Place, Refused

if TYPE_CHECKING:
    from troth.deals.run import Run
    from troth.lab.inference import Results, Tested
    from troth.lab.measures import Rule
    from troth.lab.suites.plan import Suite
    from troth.lab.suites.playing import Result


def _options(command: Callable[..., int]) -> Callable[..., int]:
    """Add what the commands that play share."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object: the report, and the folder."),
        click.option(
            "--out", type=click.Path(path_type=Path), help="The run's folder; by default named after the run."
        ),
        click.option("--runs", type=int, help="Deals of each arm; by default as many as the suite says."),
        click.option("--seed", type=int, default=1, show_default=True, help="The seed from which everything derives."),
    ):
        command = option(command)
    return command


@click.command("run")
@click.option("--c", "c", default="honest", show_default=True, help="C's policy, such as withholding.")
@click.option("--a", "a", default="cooperative", show_default=True, help="A's policy, such as rational(belief=0.5).")
@click.option("--k", "k", default="honest", show_default=True, help="K's policy, such as noisy(0.1,0.05).")
@click.option("--amount", type=int, default=10, show_default=True, help="Points offered; 0 for object options alone.")
@click.option("--object", "objects", multiple=True, help="An object option by its id; may be repeated.")
@click.option("--deadline-steps", type=int, default=5, show_default=True, help="Steps from the hold to disclose in.")
@click.option("--expires-steps", type=int, default=3, show_default=True, help="Steps for which the offer stands.")
@click.option("--forged", help="Forge deals: forged_hold, forged_honesty or doctored_transcript_ready.")
@click.option("--forged-rate", type=float, default=1.0, show_default=True, help="How often deals are forged.")
@click.option("--series", type=int, default=1, show_default=True, help="Deals in a row with the same agent.")
@click.option("--policies", is_flag=True, help="List the policies and what each does, and play nothing.")
@_options
def run_cmd(
    *,
    c: str,
    a: str,
    k: str,
    amount: int,
    objects: tuple[str, ...],
    deadline_steps: int,
    expires_steps: int,
    forged: str | None,
    forged_rate: float,
    series: int,
    policies: bool,
    seed: int,
    runs: int | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Play deals by policies and a seed, one unless --runs says more, and keep them in a folder.

    The same seed gives the same bytes on every machine. Exit status: 0 every deal settled, 1 one is breached or ended
    in a protocol error, 3 any other end.

    Example: troth deal run --c withholding --a "rational(belief=0.8,reserve=4)" --seed 7
    """
    from troth.lab.playing import Setting
    from troth.lab.suites.consideration import OBJECTS
    from troth.lab.suites.single import single
    from troth.lab.view import Terms

    if policies:
        return _tell_policies(as_json)
    known = {one["id"]: one["desc"] for one in OBJECTS}
    options = tuple({"id": name, "desc": known.get(name, "Granted in-sim")} for name in objects)
    if not all(
        0 <= number <= limit for number, limit in ((amount, 2**53 - 1), (deadline_steps, 100), (expires_steps, 100))
    ):
        raise Refused("E_USAGE", "an amount below 0, or a clock that is not from 0 to 100 steps", remedy="See --help.")
    terms = Terms(amount, options, None, deadline_steps, expires_steps)
    suite = single(Setting(c, a, k, terms, forged=forged, forged_rate=forged_rate, series=series))
    from troth.deals.answer import exit_status

    statuses: list[int] = []
    played = _played(suite, seed, runs, lambda result: statuses.append(exit_status(result.scribe.run)))
    _keep([(played, out or Path(f"run-seed{seed}-{runs or suite.deals}"))], None, as_json=as_json)
    return statuses[0]


def _tell_policies(as_json: bool) -> int:
    from troth.lab.policies import POLICIES, described

    listed = {party: dict(described(party)) for party in POLICIES}
    if as_json:
        emit_json(listed)
        return 0
    for party, rows in listed.items():
        say(party)
        formatter = click.HelpFormatter(width=100)
        with formatter.indentation():
            formatter.write_dl(list(rows.items()))
        say(formatter.getvalue().rstrip("\n"))
    return 0


@click.command("suite")
@click.argument("name")
@protocol_option
@click.option("--half-width", type=float, help="As many runs as keep every share's interval within ± this.")
@click.option("--rule", type=click.Path(path_type=Path), help="A falsification rule, TOML; else the built-in one.")
@_options
def suite_cmd(
    *,
    name: str,
    half_width: float | None,
    rule: Path | None,
    protocol: str,
    seed: int,
    runs: int | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Run a suite, or all of them in the protocol's order, and write a folder with transcript and report.

    \b
    NAME: F1 to F7, F-D′ (typed F-D', fd or f-d-prime too), B3, or all.
    F8 is of 0.3-proxy alone, and part of all there and nowhere else.

    The template is kept, revised or retired by a rule fixed before the run and printed with the report.

    Exit status: 0 every deal showed what the protocol must show, 1 one did not.

    Example: troth deal suite fd --runs 200 --seed 1
    """
    from troth.lab.suites import PROTOCOLS, find

    fixed = _rule(rule)
    if half_width is not None:
        from troth.lab.power import deals_for_half_width

        runs = _planned(runs, deals_for_half_width(half_width), "--half-width")
    if name.strip().lower() == "all":
        base = out or Path(f"suites-seed{seed}{f'-{runs}' if runs else ''}")
        plays = [(_played(suite, seed, runs), base / _ascii(suite.id)) for suite in PROTOCOLS[protocol].values()]
        return _keep(plays, fixed, as_json=as_json, together=base)
    suite = find(name, protocol)
    folder = out or Path(f"{_ascii(suite.id)}-seed{seed}-{runs or suite.deals}")
    return _keep([(_played(suite, seed, runs), folder)], fixed, as_json=as_json)


@click.command("b3")
@click.option("--difference", type=float, help="As many pairs as find this difference of shares with --power.")
@click.option("--power", type=float, help="The chance of finding it.  [default: 0.8]")
@_options
def b3_cmd(
    *,
    difference: float | None,
    power: float | None,
    seed: int,
    runs: int | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Offer the same agent points, object options, and both, in pairs, and compare acceptance and disclosure.

    Exit status: 0 every deal kept to its terms, 1 one did not.

    Example: troth deal b3 --difference 0.05 --power 0.9 --seed 1
    """
    from troth.lab.suites import SUITES

    suite = SUITES["B3"]
    if difference is not None:
        from troth.lab.power import pairs_for_difference

        pairs = pairs_for_difference(difference, 0.8 if power is None else power, comparisons=len(suite.pairings))
        runs = _planned(runs, pairs, "--difference")
    elif power is not None:
        raise Refused("E_USAGE", "--power without a difference to find", remedy="Give --difference as well.")
    folder = out or Path(f"b3-seed{seed}-{runs or suite.deals}")
    return _keep([(_played(suite, seed, runs), folder)], None, as_json=as_json)


@click.command("report")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--quick", is_flag=True, help="Check records against the transcript alone; do not play again.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def report_cmd(folder: Path, quick: bool, as_json: bool) -> int:
    """Check a run's folder against its own transcript, play it again from its seed, and tell what it holds.

    Exit status: 0 every byte is as it must be, 1 something in the folder is not, 2 it is no run's folder.

    Example: troth deal report f1-seed1-400
    """
    from troth.deals.codes import LABELS
    from troth.lab.folders import check

    with Countdown("playing again", "deals") as progress:
        found = check(folder, again=not quick, progress=progress)
    left = sorted({one.version for one in found.runs if one.again is None})
    why = "not asked for" if quick else f"made by version {', '.join(printable(one, 40) for one in left)}"
    if as_json:
        note(f"troth: {labelled()}")
        emit_json(
            {
                "labels": list(LABELS),
                "folder": str(folder),
                "runs": [{"suite": one.suite.id, "seed": one.seed, "deals": one.deals} for one in found.runs],
                "played_again": not left,
                "faults": [{"file": name, "says": says} for name, says in found.faults],
            }
        )
        return 1 if found.faults else 0
    say(labelled())
    for name, says in found.faults:
        say(coloured(f"{printable(name, 200)} {says}", "red"))
    if not found.faults:
        say(
            "The records are what the transcript comes to; report and plots were not looked at."
            if left
            else "Every file is what its transcript comes to, and what the seed gives again."
        )
    if left:
        say(f"Not played again: {why}.")
    for one in found.runs:
        if one.again is not None:
            _tell(one.again)
    return 1 if found.faults else 0


# What they share -----------------------------------------------------------------------------------------------------


def _played(
    suite: Suite, seed: int, runs: int | None, also: Callable[[Result], None] = lambda result: None
) -> Callable[[], Result]:
    """Return what plays a suite when it is its turn, so that one suite's deals are in memory at a time."""
    from troth.lab.suites.playing import play_suite

    def play() -> Result:
        with Countdown(f"playing {suite.id}", "deals") as progress:
            result = play_suite(suite, seed, runs, progress)
        also(result)
        return result

    return play


def _planned(runs: int | None, planned: int, option: str) -> int:
    if runs is not None:
        raise Refused("E_USAGE", f"both --runs and {option} say how many", remedy="Give one of them.")
    return planned


def _rule(path: Path | None) -> Rule:
    from troth.lab.falsification import LARGEST, built_in, read_rule

    if path is None:
        return built_in()

    try:
        with path.open("rb") as file:
            return read_rule(file.read(LARGEST + 1), path.name)
    except OSError as fault:
        raise Refused(
            "E_RULE_MALFORMED",
            f"the rule cannot be read: {fault.strerror or fault}",
            remedy="Name a TOML file.",
            place=Place(file=str(path)),
        ) from None


def _keep(
    plays: list[tuple[Callable[[], Result], Path]],
    rule: Rule | None,
    *,
    as_json: bool,
    together: Path | None = None,
) -> int:
    """Play suites, write their folders, tell what was found, and return the exit status."""
    from troth.lab.falsification import applicable
    from troth.lab.folders import files_of, inferred, joined, refuse_taken, write

    for _, folder in plays:
        refuse_taken(folder)
    if as_json:
        note(f"troth: {labelled()}")
    else:
        say(labelled())
    inferences: list[Results] = []
    written: list[dict[str, object]] = []
    holds = True
    for play, folder in plays:
        result = play()
        inference = inferred(result)
        own = None if rule is None else applicable(rule, [result.suite.id])
        new = write(folder, files_of(result, own, inference))
        holds = holds and result.holds
        inferences.append(inference)
        written.append({"folder": str(folder), "written": new})
        if not as_json:
            _tell(inference, result.scribe.run)
            say(f"{'written' if new else 'the same bytes stand in'}: {printable(str(folder), 400)}")
    if rule is not None:
        rule = applicable(rule, [inference.report.suite for inference in inferences])
    if together is not None:
        joined(together, inferences, rule)
    from troth.lab.report import report_value

    if as_json:
        emit_json({**report_value(inferences, rule), "folders": written})
        return 0 if holds else 1
    if rule is not None:
        decided = report_value(inferences, rule)["falsification"]
        say(f"template: {decided['word']} ({printable(decided['sentence'], 300)})")
    if together is not None:
        say(f"one page of all: {printable(str(together / 'report.html'), 400)}")
    return 0 if holds else 1


def _tell(inference: Results, run: Run | None = None) -> None:
    from troth.lab.measures import Rate

    report = inference.report
    say()
    say(f"{report.suite}  {report.title}: {report.deals:,} deal{'s' * (report.deals != 1)}, seed {report.seed}")
    if run is not None and report.deals == 1:
        for deal in run.deals.values():
            say(f"  {printable(' -> '.join(deal.history[:-1]), 300)} -> {word(deal.state)}")
    for arm in report.arms:
        say(f"  {arm.name}: {arm.sentence}")
        for one in inference.measured:
            if one.arm is not arm:
                continue
            found, rate = one.estimate, isinstance(one.named.measure, Rate)
            value = "none such" if found.value is None else f"{found.value:.4g}"
            interval = "" if found.low is None or found.high is None else f" [{found.low:.4g}, {found.high:.4g}]"
            truth = "" if one.named.truth is None else f"  truth {one.named.truth:.4g}"
            say(f"    {one.named.name:<21} {value}{interval}{'' if rate else f' {one.named.unit}'}{truth}")
    for tested in inference.tested:
        compared = tested.comparison
        say(f"  {compared.first} against {compared.second}, {compared.measure}: {_difference(tested, inference)}")
    for line in report.findings:
        say(f"  {line}")
    for demand in report.demands:
        if not demand.holds:
            say(
                coloured(
                    f"  NOT SHOWN in {demand.n - demand.k} of {demand.n} deals of {demand.arm}: {demand.sentence}",
                    "red",
                )
            )
    if all(one.holds for one in report.demands):
        say(f"  shown in every deal: {len(report.demands)} demands of {len(report.arms)} arms")


def _difference(tested: Tested, inference: Results) -> str:
    found, p = tested.compared.difference, tested.adjusted
    if p is None or found.value is None:
        return "no difference to test"
    interval = "" if found.low is None or found.high is None else f" [{found.low:.4g}, {found.high:.4g}]"
    # Beyond what a double holds a chance is small and not nothing.
    chance = "p < 1e-300" if p < 1e-300 else f"p {p:.3g}"
    return f"difference {found.value:.4g}{interval}, {chance} ({inference.correction})"


def _ascii(suite: str) -> str:
    from troth.lab.folders import folder_name

    return folder_name(suite)
