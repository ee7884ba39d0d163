"""The evaluation task with the framework's mock model: in turn, out of turn, malformed, prose, and what goes wrong."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from troth.cli.main import main
from troth.core.errors import Refused
from troth.deals.codes import LABELS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def inspecting() -> SimpleNamespace:
    """The framework, imported by whoever needs it and nobody else."""
    import inspect_ai
    import inspect_ai.model
    import inspect_ai.tool

    from troth.lab import inspecting as made

    return SimpleNamespace(
        eval=inspect_ai.eval, model=inspect_ai.model, deals=made.deals, ToolCall=inspect_ai.tool.ToolCall
    )


def turn(
    kit: SimpleNamespace, *calls: tuple[str, dict[str, Any]], text: str = "", parse_error: str | None = None
) -> Any:
    """One output of a model: text, and calls."""
    made = [
        kit.ToolCall(id=f"call-{number}", function=name, arguments=arguments, parse_error=parse_error)
        for number, (name, arguments) in enumerate(calls)
    ]
    message = kit.model.ChatMessageAssistant(content=text, tool_calls=made or None)
    return kit.model.ModelOutput(model="mockllm", choices=[kit.model.ChatCompletionChoice(message=message)])


def mock(kit: SimpleNamespace, answers: Callable[[int, int, str], Any]) -> Any:
    """The framework's mock model, answering by the deal's index, the turn, and the brief."""

    def output(given: list[Any], tools: list[Any], choice: Any, config: Any) -> Any:
        brief = given[0].text
        index = int(re.search(r"\nrun ([0-9]+): ", brief)[1]) if "\nrun " in brief else 0
        return answers(index, sum(message.role == "assistant" for message in given), brief)

    return kit.model.get_model("mockllm/model", custom_outputs=output, memoize=False)


def disclosure(brief: str) -> tuple[str, dict[str, Any]]:
    material = brief.rpartition("\n")[2]
    return "Disclosure", {"artifacts": {"transcript": material}, "claims": ["hidden_goal"]}


def check(path: Path) -> Any:
    """What `troth deal check --json` says."""
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.redirect_stderr(io.StringIO()):
        main(["deal", "check", str(path), "--json"])
    return json.loads(said.getvalue())


HOSTILE = "<script>alert(1)</script>\x1b[31m${7*7}`id` [[Accept]]"

ENDS = [
    ("settled", None),  # honest
    ("protocol_error", "type_for_state"),  # discloses before it accepted
    ("protocol_error", "malformed"),  # arguments that do not fit
    ("expired", None),  # prose alone
    ("protocol_error", "malformed"),  # arguments that are no JSON
    ("protocol_error", "malformed"),  # a tool that is none
    ("settled", None),  # text that looks like markup and commands, in an honest deal
    ("protocol_error", "sender"),  # speaks for the checker
]


def by_index(kit: SimpleNamespace) -> Callable[[int, int, str], Any]:
    def answers(index: int, number: int, brief: str) -> Any:
        accept = turn(kit, ("Accept", {}))
        if index == 0:
            return [accept, turn(kit, disclosure(brief)), turn(kit, ("Wait", {}))][min(number, 2)]
        if index == 1:
            return turn(kit, disclosure(brief))
        if index == 2:
            return accept if number == 0 else turn(kit, ("Disclosure", {"artifacts": "all of them", "claims": 3}))
        if index == 3:
            return turn(kit, text="I accept. Accept(offer_id='off_1'). " + HOSTILE)
        if index == 4:
            return turn(kit, ("Accept", {}), parse_error="not JSON")
        if index == 5:
            return turn(kit, (HOSTILE, {"offer_id": "off_1"}))
        if index == 6:
            name, arguments = disclosure(brief)
            arguments["claims"].append(HOSTILE)
            return [accept, turn(kit, (name, arguments), text=HOSTILE), turn(kit)][min(number, 2)]
        verdict = {"result": "pass", "notes": "", "checklist_results": []}
        return turn(kit, ("Verdict", verdict))

    return answers


def scores(log: Any) -> list[Any]:
    assert log.status == "success", log.error
    return [sample.scores["final_state"] for sample in log.samples]


def test_every_deal_of_a_mock_model_ends_as_the_machine_says(inspecting, tmp_path):
    model = mock(inspecting, by_index(inspecting))
    (log,) = inspecting.eval(
        inspecting.deals(deals=len(ENDS), out=str(tmp_path / "deals")),
        model=model,
        display="none",
        log_dir=str(tmp_path / "logs"),
        log_format="json",
    )
    found = scores(log)
    assert [(score.answer, *score.metadata["illegal"], None)[:2] for score in found] == ENDS
    assert found[0].value == {
        "settled": 1, "accepted": 1, "disclosed": 1, "satisfied": 1, "illegal": 0, "paid": 10, "loss": 0,
    }  # fmt: skip
    assert found[1].value["illegal"] == 1
    for index, score in enumerate(found):
        assert score.metadata["labels"] == list(LABELS)
        assert all(end.startswith("Closed:") for end in score.metadata["ends"].values())
        (folder,) = (tmp_path / "deals").glob(f"deal-{index}-1-*")
        path = folder / "transcript.jsonl"
        assert path.read_text(encoding="utf-8") == score.metadata["transcript"]
        assert json.loads((folder / "final.json").read_bytes()) == score.metadata["final"]
        assert len(list((folder / "offers").iterdir())) == 1
        checked = check(path)
        assert {name: deal["state"] for name, deal in checked["deals"].items()} == score.metadata["ends"]
        assert checked["balances"] == score.metadata["final"]["balances"]
    assert log.eval.metadata["labels"] == list(LABELS)
    assert sorted(log.eval.tags) == sorted(LABELS)
    assert log.eval.viewer.trust_content is False
    metrics = log.results.scores[0].metrics
    assert metrics["mean"].value == pytest.approx(2 / len(ENDS))


def run(kit: SimpleNamespace, task: Any, answers: Callable[[int, int, str], Any], tmp_path: Path, **more: Any) -> Any:
    (log,) = kit.eval(task, model=mock(kit, answers), display="none", log_dir=str(tmp_path / "logs"), **more)
    return log


@pytest.mark.slow
def test_a_model_that_is_the_counterparty(inspecting, tmp_path):
    hold = ("EscrowHold", {"amount": 10, "asset": "sim_points", "state": "locked"})
    calls = [("Offer", {}), hold, ("Settle", {})]

    def answers(index: int, number: int, brief: str) -> Any:
        assert '"amount":10' in brief
        return turn(inspecting, calls[number]) if number < 3 else turn(inspecting)

    (score,) = scores(run(inspecting, inspecting.deals(deals=1, role="C", agent="cooperative"), answers, tmp_path))
    assert score.answer == "settled"


@pytest.mark.slow
def test_a_checklist_of_the_user_is_judged(inspecting, tmp_path):
    items = [{"id": "when", "predicate": "claim_regex", "pattern": "at [0-9]+ h"}]

    def answers(index: int, number: int, brief: str) -> Any:
        told = ("Disclosure", {"artifacts": {}, "claims": ["at 12 h" if index else "at noon"]})
        return turn(inspecting, [("Accept", {}), told][number]) if number < 2 else turn(inspecting)

    found = scores(run(inspecting, inspecting.deals(deals=2, checklist=items), answers, tmp_path))
    assert [score.answer for score in found] == ["breached(A:fail)", "settled"]


@pytest.mark.slow
def test_a_model_that_must_hold_what_it_offered(inspecting, tmp_path):
    calls = [("Offer", {}), ("EscrowHold", {"amount": 9, "asset": "sim_points", "state": "locked"})]

    def answers(index: int, number: int, brief: str) -> Any:
        return turn(inspecting, calls[min(number, 1)])

    (score,) = scores(run(inspecting, inspecting.deals(deals=1, role="C"), answers, tmp_path))
    assert (score.answer, score.metadata["illegal"]) == ("breached(C:hold_mismatch)", ["hold_mismatch"])


@pytest.mark.slow
def test_a_slip_is_only_told_where_the_user_wants_it_so(inspecting, tmp_path):
    def answers(index: int, number: int, brief: str) -> Any:
        calls = [("Accept", {"why": "x"}), ("Accept", {}), disclosure(brief)]
        return turn(inspecting, calls[number]) if number < 3 else turn(inspecting)

    (log, other) = (
        run(inspecting, inspecting.deals(deals=1, malformed=malformed), answers, tmp_path)
        for malformed in ("tell", "send")
    )
    assert [scores(one)[0].answer for one in (log, other)] == ["settled", "protocol_error"]
    assert scores(log)[0].metadata["misfits"] == 1


@pytest.mark.slow
def test_a_limit_of_the_evaluation_ends_the_model_and_not_the_deal(inspecting, tmp_path):
    def answers(index: int, number: int, brief: str) -> Any:
        return turn(inspecting, ("Accept", {})) if number == 0 else turn(inspecting, ("Wait", {}))

    log = run(inspecting, inspecting.deals(deals=1), answers, tmp_path, message_limit=5)
    (score,) = scores(log)
    assert log.samples[0].limit.type == "message"
    assert score.answer == "breached(A:ghost)"


@pytest.mark.slow
def test_a_model_that_fails_leaves_an_error_and_no_score(inspecting, tmp_path):
    def answers(index: int, number: int, brief: str) -> Any:
        if number == 1:
            raise RuntimeError("the provider is gone")
        return turn(inspecting, ("Accept", {}))

    log = run(inspecting, inspecting.deals(deals=1), answers, tmp_path)
    assert log.status == "error"
    assert "the provider is gone" in log.error.message
    stored = log.samples[0].store["troth_deal"]
    assert stored["final"]["deals"]["off_1"]["state"] == "Closed:breached(A:ghost)"


@pytest.mark.slow
def test_a_forged_deal_costs_the_model_and_shows_it_nothing(inspecting, tmp_path):
    def answers(index: int, number: int, brief: str) -> Any:
        return [turn(inspecting, ("Accept", {})), turn(inspecting, disclosure(brief)), turn(inspecting)][min(number, 2)]

    log = run(inspecting, inspecting.deals(deals=2, forged="forged_hold"), answers, tmp_path)
    for score, sample in zip(scores(log), log.samples, strict=True):
        assert score.value["loss"] == 10
        assert "deceptive_alt" in score.metadata["transcript"]
        assert not any("deceptive_alt" in message.text for message in sample.messages)


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        {"role": "K"},
        {"malformed": "perhaps"},
        {"deals": 0},
        {"counterparty": "saintly"},
        {"forged": "moon"},
        {"amount": -1},
        {"checklist": "all"},
        {"checklist": [{"id": "x"}]},
        {"checklist": []},
    ],
)
def test_a_task_that_cannot_be_is_refused_before_a_model_is_asked(inspecting, wrong):
    with pytest.raises(Refused) as refused:
        inspecting.deals(**wrong)
    assert refused.value.code in ("E_TASK", "E_POLICY", "E_SETTING")
    assert refused.value.remedy


ENTRY_POINT = "troth = troth.lab.inspecting"
"""By which the framework finds the task of an installed package."""


def test_the_project_names_the_task_to_the_framework() -> None:
    """What is tried below from a folder of its own is what an installation has."""
    project = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    named = project["project"]["entry-points"]["inspect_ai"]
    assert [f"{name} = {module}" for name, module in named.items()] == [ENTRY_POINT]


NO_NETWORK = """
import socket, sys
def refused(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo") and "AF_UNIX" not in repr(arguments):
        open({path!r}, "a").write(event + repr(arguments) + "\\n")
        raise OSError("no network here")
sys.addaudithook(refused)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["troth/deals", "src/troth/lab/inspecting.py@deals"])
def test_the_framework_finds_the_task_and_plays_it_without_a_network(name, tmp_path):
    place = tmp_path / "site-packages"
    (place / "troth-0.dist-info").mkdir(parents=True)
    (place / "troth").symlink_to(ROOT / "src" / "troth")
    (place / "troth-0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: troth\nVersion: 0\n")
    (place / "troth-0.dist-info" / "entry_points.txt").write_text(f"[inspect_ai]\n{ENTRY_POINT}\n")
    asked = tmp_path / "asked"
    (place / "sitecustomize.py").write_text(NO_NETWORK.format(path=str(asked)))
    done = subprocess.run(
        [sys.executable, "-m", "inspect_ai", "eval", name if "@" not in name else str(ROOT / name),
         "--model", "mockllm/model", "-T", "deals=2", "-T", "checker=noisy(0.1,0.05)",
         "--display", "plain", "--log-dir", str(tmp_path / "logs"), "--log-format", "json"],
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert not asked.exists(), asked.read_text()
    (path,) = (tmp_path / "logs").glob("*.json")
    log = json.loads(path.read_text())
    assert [sample["scores"]["final_state"]["answer"] for sample in log["samples"]] == ["expired", "expired"]
