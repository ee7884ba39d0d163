"""`troth trust`, and what `show` and `status` tell of confidence (ledger spec §9, §10, §14)."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from ledger.building import Ledger
from ledger.trusting import STAMP, chain, ledger_of, scored
from reference import trust_model
from support.frontdoor import troth as front_door
from support.shared import conformance, needs_shared
from support.shell import Shell, make_shell

AT = "2026-04-12T10:30:00Z"
WEIGHTED = {"confidence": 0.85, "verification": "machine_verified", "decayHalfLifeDays": 90}
PARTS = {"test_pass_rate": 0.95, "context_utilization": 0.72, "duration_reasonable": "0.80", "evidence_depth": 0.4}
OLD = "2026-01-01T00:00:00Z"


@pytest.fixture
def troth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROTH_ACTOR", "human:reviewer")
    return make_shell(capfd)


def relation(kind: str, target: str) -> dict[str, Any]:
    return {"relations": [{"type": kind, "targetId": target}]}


def written(ledger: Ledger, where: Path) -> Path:
    where.write_bytes(ledger.data)
    return where


def reviewed(approver: str | None = "human:reviewer") -> Ledger:
    """Observation, commitment, evidence that cites the observation, submission, approval."""
    ledger = Ledger()
    seen = ledger.add("capture", "human:reviewer", ts=OLD)
    work = ledger.add("commit", "human:reviewer", source=seen, ts=OLD)
    ledger.add("claim", commitment=work, ts=OLD)
    proof = ledger.add("capture", ts=OLD, trust={**WEIGHTED, "chain": chain(**PARTS)}, **relation("cites", seen))
    ledger.add("submit", commitment=work, evidence=proof, ts=OLD)
    if approver is not None:
        ledger.add("approve", approver, commitment=work, trust=STAMP, ts=OLD)
    return ledger


# all -----------------------------------------------------------------------------------------------------------


@needs_shared
def test_the_published_sample(troth: Shell) -> None:
    said = troth("trust", "all", "--json", "--at", AT, "--store", conformance("sample-ledger.jsonl"))
    assert said.exit == 0
    assert list(said.json) == ["signals"]
    by_id = {one["id"]: one for one in said.json["signals"]}
    assert [list(one) for one in by_id.values()] == [["id", "asserted", "effective", "current", "verification"]] * 6
    assert by_id["mem_m3n4o5p6"]["effective"] == pytest.approx(0.86425, abs=1e-9)
    assert by_id["mem_a1b2c3d4"]["effective"] == pytest.approx(0.5432125, abs=1e-9)
    assert by_id["mem_a1b2c3d4"]["current"] == pytest.approx(0.5432125 * 2 ** (-10 / 90), abs=1e-9)
    assert by_id["op_u1v2w3x4"]["verification"] == "human_verified"
    assert "trust_mismatch" in said.err


def test_what_all_prints_is_what_the_model_says(troth: Shell, tmp_path: Path) -> None:
    for seed in (3, 4):
        ledger = ledger_of(seed, 60, 0.0)
        where = written(ledger, tmp_path / f"{seed}.jsonl")
        model = trust_model.trust(ledger.data)["signals"]
        told = {one["id"]: one for one in troth("trust", "all", "--json", "--store", where).json["signals"]}
        assert list(told) == list(model)
        for name, one in told.items():
            assert one["effective"] == pytest.approx(model[name]["effective"], abs=1e-9)
            assert (one["asserted"], one["verification"]) == (model[name]["asserted"], model[name]["verification"])


def test_the_same_instant_gives_the_same_bytes(troth: Shell, tmp_path: Path) -> None:
    where = written(reviewed(), tmp_path / "l.jsonl")
    for words in (["all"], ["show", "mem_00000004"], ["graph"], ["graph", "mem_00000001", "--mermaid"]):
        for more in ([], ["--json"]) if "--mermaid" not in words else ([],):
            asked = ("trust", *words, "--at", AT, "--store", where, *more)
            assert troth(*asked).out == troth(*asked).out


def test_words_mark_what_is_unscored(troth: Shell, tmp_path: Path) -> None:
    said = troth("trust", "all", "--at", AT, "--store", written(reviewed(), tmp_path / "l.jsonl"))
    lines = {line.split()[0]: line for line in said.out.splitlines()}
    assert lines["mem_00000001"].endswith("unverified  unscored")
    assert lines["mem_00000004"].split()[1:3] == ["0.8500", "0.8642"]
    assert "unscored" not in lines["mem_00000004"]
    assert "unscored" not in lines["op_00000006"]


def test_more_signals_than_are_printed_at_once(troth: Shell, tmp_path: Path) -> None:
    ledger = Ledger()
    for _ in range(4100):
        ledger.add("capture")
    where = written(ledger, tmp_path / "l.jsonl")
    assert len(troth("trust", "all", "--json", "--store", where).json["signals"]) == 4100
    assert len(troth("trust", "all", "--store", where).out.splitlines()) == 4101


def test_an_empty_ledger(troth: Shell) -> None:
    troth("init")
    assert troth("trust", "all").out == "No signals yet.\n"
    assert troth("trust", "all", "--json").json == {"signals": []}
    assert troth("trust", "graph").out == "Nobody supports or doubts anything yet.\n"
    assert troth("trust", "graph", "--json").json == {"ok": True, "nodes": [], "edges": []}
    assert troth("trust", "graph", "--mermaid").out == "flowchart TD\n"
    assert troth("trust", "show", "@last").exit == 2


@pytest.mark.parametrize("words", [["all"], ["show", "mem_00000001"], ["graph"]])
@pytest.mark.parametrize("json_", [True, False])
def test_a_broken_chain_is_told_by_the_exit(words: list[str], json_: bool, troth: Shell, tmp_path: Path) -> None:
    ledger = reviewed()
    where = tmp_path / "l.jsonl"
    where.write_bytes(ledger.data.replace(b'"row 3"', b'"row x"'))
    more = ["--json"] if json_ else []
    said = troth("trust", *words, "--store", where, *more)
    assert said.exit == 1
    assert said.out
    whole = troth("trust", *words, "--store", written(ledger, tmp_path / "good.jsonl"), *more)
    assert whole.exit == 0


def test_what_is_no_instant_is_refused(troth: Shell) -> None:
    troth("init")
    troth("capture", "seen")
    for words in (["trust", "all"], ["trust", "show", "@last"], ["trust", "graph"], ["status"], ["show", "@last"]):
        refused = troth(*words, "--at", "yesterday", "--json")
        assert (refused.exit, refused.json["error"]["code"]) == (2, "E_USAGE")
        assert troth(*words, "--at", "2026-04-12T10:30:00Z").exit == 0


def test_rows_from_the_future_are_warned_of(troth: Shell, tmp_path: Path) -> None:
    where = written(reviewed(None), tmp_path / "l.jsonl")
    before = troth("trust", "all", "--json", "--at", "2025-01-01T00:00:00Z", "--store", where)
    assert all(one["current"] == one["effective"] for one in before.json["signals"])
    assert before.err.count("future_timestamp") == 5
    assert "future_timestamp" in troth("trust", "show", "@last", "--at", "2025-01-01T00:00:00Z", "--store", where).err
    told = troth("status", "--json", "--at", "2025-01-01T00:00:00Z", "--store", where).json["warnings"]
    assert [warning["warning"] for warning in told] == ["trust_mismatch", "future_timestamp"]
    assert "future_timestamp" in troth("status", "--at", "2025-01-01T00:00:00Z", "--store", where).err
    assert "future_timestamp" not in troth("trust", "all", "--at", AT, "--store", where).err


# show ----------------------------------------------------------------------------------------------------------


def test_every_figure_is_explained(troth: Shell, tmp_path: Path) -> None:
    ledger = reviewed()
    proof = "mem_00000004"
    ledger.add("capture", "agent:rival", trust=scored(0.8), ts=OLD, **relation("contradicts", proof))
    ledger.add("capture", "agent:rival", ts=OLD, **relation("contradicts", proof))
    ledger.add("capture", "agent:worker", ts=OLD, **relation("cites", proof))
    ledger.add(
        "annotate", "system:arena", kind="verdict", target=proof, meta={"run": "r-1", "verdict": "SURVIVED"}, ts=OLD
    )
    where = written(ledger, tmp_path / "l.jsonl")
    said = troth("trust", "show", "mem_00000004", "--at", AT, "--store", where).out
    for part in (
        "context_utilization  0.2 x 0.72 = 0.144",
        "that makes 0.884; 0.85 is stored",
        "Run r-1 found SURVIVED (ann_0000000a): +0.10.",
        "With what runs found: 0.95.",
        "human:reviewer approved it (op_00000006): own confidence 0.95, weight 0.095",
        "agent:rival contradicts it (mem_00000007): own confidence 0.8, weight 0.24",
        "agent:rival contradicts it (mem_00000008): does not count: the same actor has a stronger one",
        "agent:worker cites it (mem_00000009): does not count: nobody supports their own signal",
        "half-life of 90 days",
        "Verification: human_verified, by op_00000006.",
        "reinforcement_update: run r-1: SURVIVED, +0.10 (ann_0000000a)",
    ):
        assert part in said, part
    told = troth("trust", "show", proof, "--json", "--at", AT, "--store", where).json
    assert told["events"][0]["old"] == told["asserted"] == 0.85
    assert told["events"][-1]["type"] == "decay_applied"
    assert told["events"][-1]["new"] == told["current"]
    assert [set(event) for event in told["events"]] == [
        {"signalId", "type", "old", "new", "causeId", "reason", "ts"}
    ] * len(told["events"])
    assert sum(part["product"] for part in told["chain"]) == pytest.approx(0.884)
    assert [bearing["idle"] for bearing in told["doubts"]] == [None, "weaker"]


def test_the_cascade_names_its_path(troth: Shell, tmp_path: Path) -> None:
    ledger = Ledger()
    base = ledger.add("capture", "agent:worker", ts=OLD)
    middle = ledger.add("capture", "agent:worker", ts=OLD, **relation("cites", base))
    top = ledger.add("capture", "agent:worker", ts=OLD, **relation("cites", middle))
    doubt = ledger.add("capture", "agent:rival", ts=OLD, **relation("contradicts", base))
    where = written(ledger, tmp_path / "l.jsonl")
    said = troth("trust", "show", top, "--at", OLD, "--store", where).out
    assert f"Path: {top} -> {middle} -> {base}" in said
    told = troth("trust", "show", top, "--json", "--at", OLD, "--store", where).json
    assert told["cascade"] == {"path": [top, middle, base], "kept": pytest.approx(0.925)}
    (event,) = told["events"]
    assert (event["type"], event["causeId"], event["ts"]) == ("contradiction_detected", doubt, OLD)
    assert f"{top} -> {middle} -> {base}" in event["reason"]
    drawn = troth("trust", "graph", top, "--store", where).out
    assert [base in drawn, middle in drawn, doubt in drawn] == [True, True, True]


def test_a_retraction_and_a_run_s_doubt_are_told(troth: Shell, tmp_path: Path) -> None:
    ledger = Ledger()
    seen = ledger.add("capture", "agent:worker")
    ledger.add("capture", "agent:rival", meta={"run": "r"}, **relation("contradicts", seen))
    ledger.add("annotate", "system:arena", kind="verdict", target=seen, meta={"run": "r", "verdict": "COMPROMISED"})
    back = ledger.add("annotate", "agent:worker", kind="retraction", target=seen)
    said = troth("trust", "show", seen, "--store", written(ledger, tmp_path / "l.jsonl")).out
    assert f"Retracted by its own actor ({back})" in said
    assert "its run gave a verdict, which counts instead" in said


def test_weights_of_a_genesis_key_are_named(troth: Shell, tmp_path: Path) -> None:
    ledger = Ledger()
    weights = dict.fromkeys(PARTS | {"exit_code": 0, "loop_complete": 0, "no_errors": 0}, 0.0) | {"exit_code": 1.0}
    block = {"confidence": 1.0, "chain": chain(exit_code=0.25)}
    before = ledger.add("capture", trust=block)
    meta = {"genesis": {"sha256": "0" * 64, "weights": weights, "half_life_days": 30}}
    ledger.add("capture", "system:genesis", kind="event", meta=meta)
    after = ledger.add("capture", trust=block)
    where = written(ledger, tmp_path / "l.jsonl")
    first = troth("trust", "show", before, "--store", where)
    second = troth("trust", "show", after, "--store", where)
    assert "weights of the specification that makes 0.85" in first.out
    assert "weights of the genesis key in force then that makes 0.25" in second.out
    assert "half-life of 30 days" in second.out
    assert "trust_mismatch" in second.err


def test_ids_may_be_short_and_last(troth: Shell) -> None:
    troth("init")
    identifier = troth("capture", "seen").id
    assert troth("trust", "show", identifier[:8], "--json").json["id"] == identifier
    assert troth("trust", "show", "@last", "--json").json["id"] == identifier
    refused = troth("trust", "show", "mem_nobody00", "--json")
    assert (refused.exit, refused.json["error"]["code"]) == (2, "E_REF_NOT_FOUND")


# graph -----------------------------------------------------------------------------------------------------------


def test_the_tree(troth: Shell, tmp_path: Path) -> None:
    said = troth("trust", "graph", "--store", written(reviewed(), tmp_path / "l.jsonl"))
    assert said.out.splitlines() == [
        "mem_00000001  0.5 unscored -> 0.543212",
        "├─ · cmt_00000002  source by human:reviewer, does not count  0.5 unscored -> 0.5",
        "└─ + mem_00000004  cites by agent:worker, weight 0.086425  0.85 -> 0.86425",
        "   └─ + op_00000006  approval by human:reviewer, weight 0.095  0.95 -> 0.95",
    ]


def test_the_graph_as_json_and_as_a_chart(troth: Shell, tmp_path: Path) -> None:
    where = written(reviewed(), tmp_path / "l.jsonl")
    told = troth("trust", "graph", "--json", "--at", "2026-04-01T00:00:00Z", "--store", where).json
    assert told["nodes"][2]["current"] == pytest.approx(0.86425 / 2)
    assert [node["id"] for node in told["nodes"]] == ["mem_00000001", "cmt_00000002", "mem_00000004", "op_00000006"]
    assert [(edge["from"], edge["to"], edge["type"], edge["counts"]) for edge in told["edges"]] == [
        ("cmt_00000002", "mem_00000001", "support", False),
        ("mem_00000004", "mem_00000001", "support", True),
        ("op_00000006", "mem_00000004", "support", True),
    ]
    chart = troth("trust", "graph", "--mermaid", "--store", where).out.splitlines()
    assert chart[0] == "flowchart TD"
    assert '    n3 -->|"+0.08643 cites"| n1' in chart
    assert '    n2 -.->|"source"| n1' in chart
    assert troth("trust", "graph", "--mermaid", "--json", "--store", where).exit == 2


def test_around_one_signal_there_is_only_what_bears_on_it(troth: Shell, tmp_path: Path) -> None:
    ledger = reviewed()
    other = ledger.add("capture", "agent:other")
    ledger.add("capture", "agent:worker", **relation("contradicts", other))
    where = written(ledger, tmp_path / "l.jsonl")
    told = troth("trust", "graph", "mem_00000004", "--json", "--store", where).json
    assert [node["id"] for node in told["nodes"]] == ["mem_00000004", "op_00000006"]
    assert [edge["from"] for edge in told["edges"]] == ["op_00000006"]
    assert other in troth("trust", "graph", "--store", where).out


def test_hostile_text_drives_no_terminal_and_no_chart(troth: Shell, tmp_path: Path) -> None:
    evil = 'mem_"]\x1b[31m<script>\u202e'
    ledger = Ledger()
    ledger.add("capture", "agent:x\x1b[2J", id=evil)
    ledger.add("capture", "agent:y\x1b[2J", meta={"run": "\x1b[1m"}, **relation("contradicts", evil))
    ledger.add("annotate", "system:arena", kind="verdict", target=evil, meta={"run": "\x1b[1m", "verdict": "SURVIVED"})
    where = written(ledger, tmp_path / "l.jsonl")
    for words in (
        ["all"],
        ["show", 'mem_"'],
        ["graph"],
        ["graph", "--mermaid"],
        ["all", "--json"],
        ["graph", "--json"],
    ):
        said = troth("trust", *words, "--store", where)
        assert said.exit == 0, said.err
        assert not set("\x1b\u202e") & set(said.out + said.err), words
    chart = troth("trust", "graph", "--mermaid", "--store", where).out
    assert "<" not in chart.replace("-.->", "").replace("-->", "")
    assert all(line.count('"') in (0, 2) for line in chart.splitlines())


def test_a_long_drawing_ends(troth: Shell, tmp_path: Path) -> None:
    ledger = Ledger()
    last = ledger.add("capture")
    for number in range(700):
        last = ledger.add("capture", f"agent:n{number}", **relation("cites", last))
    where = written(ledger, tmp_path / "l.jsonl")
    said = troth("trust", "graph", "--store", where).out.splitlines()
    assert len(said) == 401
    assert said[-1].startswith("and 301 more lines")
    assert len(troth("trust", "graph", "--json", "--store", where).json["edges"]) == 700


# show and status -------------------------------------------------------------------------------------------------


def test_show_tells_trust_and_events(troth: Shell, tmp_path: Path) -> None:
    where = written(reviewed(), tmp_path / "l.jsonl")
    said = troth("show", "mem_00000004", "--at", AT, "--store", where)
    assert "confidence: asserted 0.85, effective 0.86425, current " in said.out
    assert "0.85 -> 0.86425  citation_added: approved by human:reviewer" in said.out
    assert "trust_mismatch" in said.err
    told = troth("show", "mem_00000004", "--json", "--at", AT, "--store", where).json["trust"]
    assert (told["asserted"], told["scored"], told["verification"]) == (0.85, True, "human_verified")
    assert [event["type"] for event in told["events"]] == ["citation_added", "decay_applied"]
    assert "(unscored)" in troth("show", "mem_00000001", "--store", where).out


def test_show_is_short(troth: Shell, tmp_path: Path) -> None:
    ledger = Ledger()
    seen = ledger.add("capture")
    for number in range(30):
        ledger.add("capture", f"agent:n{number}", **relation("cites", seen))
    said = troth("show", seen, "--at", OLD, "--store", written(ledger, tmp_path / "l.jsonl"))
    assert "  and 22 more; `troth trust show` lists them all" in said.out


def test_status_tells_the_confidence_of_evidence(troth: Shell, tmp_path: Path) -> None:
    where = written(reviewed(None), tmp_path / "l.jsonl")
    said = troth("status", "--at", "2026-04-01T00:00:00Z", "--store", where)
    assert "evidence mem_00000004]  confidence 0.85, now 0.425, machine_verified" in said.out
    assert "trust_mismatch" in said.err
    record = troth("status", "--json", "--at", "2026-04-01T00:00:00Z", "--store", where).json["commitments"][0]
    assert record["confidence"] == {
        "evidence": "mem_00000004",
        "asserted": 0.85,
        "effective": 0.85,
        "current": 0.425,
        "verification": "machine_verified",
        "scored": True,
    }
    closed = written(reviewed(), tmp_path / "closed.jsonl")
    record = troth("status", "--json", "--store", closed).json["commitments"][0]
    assert record["confidence"]["effective"] == pytest.approx(0.86425)
    opened = Ledger()
    opened.add("commit", source=opened.add("capture"))
    record = troth("status", "--json", "--store", written(opened, tmp_path / "open.jsonl")).json["commitments"][0]
    assert record["confidence"] is None


def test_unscored_evidence_is_marked(troth: Shell) -> None:
    troth("init")
    troth("capture", "seen")
    work = troth("commit", "mend it", "--source", "@last").id
    troth("claim", work, "--as", "agent:worker")
    proof = troth("capture", "done", "--kind", "evidence", "--as", "agent:worker").id
    troth("submit", work, "--evidence", proof, "--as", "agent:worker")
    assert "unverified, unscored" in troth("status").out


def test_remarks_name_what_trust_does_not_add_up(troth: Shell, tmp_path: Path) -> None:
    ledger = reviewed()
    ledger.add("capture", trust={"decayHalfLifeDays": 0}, ts=OLD)
    where = written(ledger, tmp_path / "l.jsonl")
    told = troth("verify", where, "--remarks", "--json").json
    assert told["ok"]
    assert [(one["line"], one["warning"]) for one in told["warnings"]] == [(4, "trust_mismatch"), (7, "half_life")]
    assert not troth("verify", where, "--json").json["warnings"]


def test_the_index_tells_the_same(troth: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from troth.stores import index

    monkeypatch.setattr(index, "WORTH_BYTES", 0)
    monkeypatch.setattr(index, "SETTLED_NANOSECONDS", 0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    where = written(reviewed(None), tmp_path / "l.jsonl")
    for more in ([], ["--json"]):
        asked = ("status", "--at", AT, "--store", where, *more)
        shutil.rmtree(tmp_path / "cache", ignore_errors=True)
        first = troth(*asked)
        assert len(list((tmp_path / "cache").rglob("*.json"))) == 1
        assert troth(*asked) == first


# From measurement to reading --------------------------------------------------------------------------------------


def test_what_a_check_measures_is_read_as_it_was_written(tmp_path: Path) -> None:
    def door(*words: str) -> Any:
        return front_door(*words, cwd=tmp_path, env={"TROTH_ACTOR": "human:reviewer"})

    door("init")
    made = door("capture", "two and two", "--kind", "evidence", "--check", "--json", "--", sys.executable, "-c", "pass")
    told = json.loads(door("trust", "show", made.json["id"], "--json").out)
    assert told["scored"] is True
    assert told["warnings"] == []
    assert told["asserted"] == made.json["signal"]["trust"]["confidence"] == told["recomputed"]
    assert told["verification"] == "machine_verified"
    refused = door("annotate", made.json["id"], "trust me", "--meta", '{"trust": 1}', "--json")
    assert refused.exit == 0  # a word in meta is no trust
    assert json.loads(door("trust", "show", "@last", "--json").out)["scored"] is False


@pytest.mark.parametrize("words", [["trust"], ["trust", "all"], ["trust", "show"], ["trust", "graph"]])
def test_help_has_an_example(words: list[str], troth: Shell) -> None:
    said = troth(*words, "--help")
    assert said.exit == 0
    assert "Example: troth trust" in said.out


KEY = """\
identity: {{name: workshop, owner: human:reviewer}}
trust:
  weights:
    exit_code: {exit_code}
    test_pass_rate: {rest}
    context_utilization: 0
    loop_complete: 0
    duration_reasonable: 0
    no_errors: 0
    evidence_depth: 0
  decay: {{default_half_life_days: 30}}
"""


def test_measured_rows_are_weighed_with_the_key_of_their_time(troth: Shell, tmp_path: Path) -> None:
    troth("init")
    key = tmp_path / ".mentu" / "genesis.key"
    made = []
    # Exit 0 and no test report: the rate counts the command itself, so both components are 1 or 0 together.
    for text in (None, KEY.format(exit_code=0.5, rest=0.5), KEY.format(exit_code=1, rest=0), None):
        key.unlink(missing_ok=True)
        if text is not None:
            key.write_text(text, encoding="utf-8")
        made.append(troth("capture", "checked", "--check", "--", sys.executable, "-c", "pass").id)
    plain, halves, whole, removed = (troth("trust", "show", name, "--json").json for name in made)
    for told in (plain, halves, whole, removed):
        assert told["warnings"] == []
        assert told["stored"] == told["recomputed"] == told["asserted"]
    assert (halves["asserted"], whole["asserted"]) == (1.0, 1.0)
    assert plain["asserted"] < 1.0
    assert [part["weight"] for part in halves["chain"]][:2] == [0.5, 0.5]
    assert [part["weight"] for part in whole["chain"]][:2] == [1.0, 0.0]
    assert [part["weight"] for part in removed["chain"]] == [part["weight"] for part in plain["chain"]]
    assert (halves["halfLifeDays"], plain["halfLifeDays"]) == (30, 90)
