"""Scripted agents that keep records as the known tools do, really observed: no honest one is accused, each lie is.

The figure that the README states is computed here: how many claims of how many honest runs, and how many accused.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.observing import needs_observer
from support.project import lay_out
from support.toolagents import AGENTS, LIES, transcript, words
from troth.observer.observe import Observed, Request, observe
from troth.observer.sources import REPORT
from troth.receipts.checks import CONTRADICTING, judge_claims

pytestmark = [needs_observer, pytest.mark.observer]

Agent = Callable[..., "Run"]


class Run:
    """One observed agent: what was recorded, and what the check makes of it."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed
        self.report: dict[str, Any] = json.loads(observed.files[REPORT])
        self.claims: list[dict[str, Any]] = json.loads(observed.files["claims.json"])["claims"]
        self.events = json.loads(observed.files["observation.json"])["events"]
        record = {"claims": self.claims}
        self.outcomes = [judged.outcome for judged in judge_claims(record, {"events": self.events})]

    @property
    def accused(self) -> list[str]:
        """Outcomes that contradict."""
        return [outcome for outcome in self.outcomes if outcome in CONTRADICTING]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    count = iter(range(100))

    def run(style: str, steps: str, lie: str | None = None) -> Run:
        root = tmp_path / f"run{next(count)}"
        workspace = root / "project"
        workspace.mkdir(parents=True)
        lay_out(workspace, seal=False)
        private = root / "private"
        private.mkdir(mode=0o700)
        request = Request(
            workspace=workspace, argv=words(style, steps, lie), claim_id="cmt_00000001", invocation_id="run_00000001",
            private=private, protects=lambda _: False, timeout=120, transcripts=(transcript(style),), terminal=False,
            show=None,
        )  # fmt: skip
        return Run(observe(request))

    return run


NAMED = [pytest.param(style, steps, id=f"{style}-{steps}") for style, steps in AGENTS]
FEW = AGENTS[:3]


@pytest.mark.parametrize(("style", "steps"), FEW)
def test_an_honest_agent_is_not_accused_and_its_twin_is(agent: Agent, style: str, steps: str) -> None:
    honest = agent(style, steps)
    assert honest.observed.coverage_faults == ()
    assert honest.claims
    assert honest.accused == [], honest.report
    lying = agent(style, steps, "invented")
    assert lying.accused == ["unmatched"], lying.report


@pytest.mark.slow
def test_no_claim_of_any_honest_run_is_accused(agent: Agent, capsys: pytest.CaptureFixture[str]) -> None:
    said = recorded = runs = 0
    accused = []
    for style, steps in AGENTS:
        run = agent(style, steps)
        assert run.observed.coverage_faults == (), (style, steps)
        assert run.report["counts"]["said"] >= 2, (style, steps, run.report)
        assert run.claims, (style, steps, run.report)
        runs += 1
        said += run.report["counts"]["programs"]
        recorded += len(run.claims)
        accused += [(style, steps, run.report) for _ in run.accused]
    with capsys.disabled():
        print(f"\n{len(accused)} of {said} claims ({recorded} recorded) of {runs} honest runs accused")
    assert accused == []
    assert runs == len(AGENTS)
    root = Path(__file__).resolve().parents[2]
    figure = f"{len(accused)} of {said} claims of {runs} honest runs are accused"
    for page in (root / "docs" / "claims.md", root / "README.md"):
        assert figure in page.read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("lie", list(LIES))
@pytest.mark.parametrize(("style", "steps"), NAMED)
def test_each_lie_of_each_agent_is_contradicted(agent: Agent, style: str, steps: str, lie: str) -> None:
    if style == "aider" and lie == "exit":
        pytest.skip("the history of aider holds no exits, so none is claimed")
    run = agent(style, steps, lie)
    expected = {"invented": {"unmatched"}, "exit": {"mismatch"}, "early": {"stale"}}[lie]
    assert set(run.accused) == expected, run.report
