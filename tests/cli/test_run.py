"""`troth run` through the real command line: verdicts, rows of the ledger, refusals before anything is written."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.ledgers import fingerprint
from support.observing import needs_observer
from support.project import CLAIM, HEAD, HONEST, MEND, RUN, SUITE, Project, agent, project, sealed_project

__all__ = ["project", "sealed_project"]
pytestmark = [needs_observer, pytest.mark.observer]

ODD_NAME = "open(b'src/\\xff', 'w').write('x')\n"
BEND = "open('tests/test_app.py', 'a').write('# bent\\n')\n"


def measured_of(folder: str) -> dict[str, Any]:
    return json.loads((Path(folder) / "run.json").read_text())["measured"]


def by_hand(measured: dict[str, Any], *, passed: float, supported: bool) -> float:
    """Asserted confidence by the letter of ledger spec §9, for a run that ended by itself and a row of depth 1."""
    seconds, timeout = measured["seconds"], measured["timeout"]
    duration = max(0.0, min(1.0, seconds, (timeout - seconds) / (0.2 * timeout)))
    return round(
        0.20 * supported + 0.20 * passed + 0.20 * 0 + 0.15 * 1 + 0.10 * duration + 0.10 * supported + 0.05 * 0.4, 4
    )


# --- the three verdicts --------------------------------------------------------------------------------------------


def test_supported_is_captured_submitted_and_closes_on_approval(project: Project) -> None:
    source, commitment = project.commit()
    answer = project.run(commitment, HONEST)
    assert answer.exit == 0, answer
    result = answer.json
    assert (result["done"]["decision"], result["done"]["reason"]) == ("supported", "done_checks_supported")
    assert result["missing"] == []
    assert "2 tests run, 2 passed" in result["notes"][0]
    claim, evidence, submit = project.rows[2:]
    assert (claim["op"], claim["actor"]) == ("claim", "agent:worker")
    assert (evidence["id"], evidence["op"], evidence["actor"]) == (result["evidence"], "capture", "system:witness")
    assert evidence["payload"]["kind"] == "evidence"
    assert evidence["relations"] == [{"type": "cites", "targetId": source}]
    assert evidence["trace"]["parent"] == [source]
    measured = measured_of(result["folder"])
    assert evidence["trust"]["confidence"] == by_hand(measured, passed=1.0, supported=True)
    assert evidence["trust"]["verification"] == "machine_verified"
    assert [part.split(":")[0] for part in evidence["trust"]["chain"]] == [
        "exit_code", "test_pass_rate", "context_utilization", "loop_complete", "duration_reasonable", "no_errors",
        "evidence_depth",
    ]  # fmt: skip
    assert (submit["op"], submit["actor"], submit["payload"]["evidence"]) == ("submit", "agent:worker", evidence["id"])
    assert project.state_of(commitment)["state"] == "in_review"
    assert project.troth("receipt", "check", result["folder"], "--json").json["receipt"] == {"verdict": "valid"}
    shown = project.troth("show", result["evidence"], "--json").json["signal"]
    assert shown["payload"]["meta"]["receipt"] == str(Path(result["folder"]).relative_to(project.root) / "receipt.json")
    assert project.troth("approve", commitment, "--as", "human:reviewer").exit == 0
    closed = project.state_of(commitment)
    assert (closed["state"], closed["evidence"]) == ("closed", evidence["id"])
    assert project.troth("verify").exit == 0


def test_contradicted_is_captured_annotated_and_not_submitted(project: Project) -> None:
    source, commitment = project.commit()
    answer = project.run(commitment, HEAD + BEND + MEND + RUN + CLAIM)
    assert answer.exit == 1, answer
    result = answer.json
    assert result["sentence"] == "tests/test_app.py was changed during the run."
    assert any("put back before grading: tests/test_app.py" in line for line in result["notes"])
    evidence, note = project.rows[3:]
    assert evidence["relations"] == [{"type": "cites", "targetId": source}]
    assert evidence["trust"]["verification"] == "unverified"
    assert evidence["trust"]["confidence"] == by_hand(measured_of(result["folder"]), passed=1.0, supported=False)
    assert (note["op"], note["actor"], note["payload"]["target"]) == ("annotate", "system:witness", commitment)
    assert "tests/test_app.py was changed during the run." in note["payload"]["body"]
    state = project.state_of(commitment)
    assert (state["state"], state["owner"], state["submission"]) == ("claimed", "agent:worker", None)
    assert project.troth("receipt", "check", result["folder"], "--json").json["receipt"] == {"verdict": "valid"}


def test_a_failing_suite_names_the_command_its_exit_and_the_failing_test(project: Project) -> None:
    answer = project.run(None, HEAD + RUN)
    assert answer.exit == 1
    result = answer.json
    assert result["done"]["reason"] == "acceptance_failed_in_verifier"
    assert "'suite' ended with exit 1" in result["sentence"]
    assert "tests.test_app" in result["sentence"]
    evidence = next(row for row in project.rows if row["id"] == result["evidence"])
    assert evidence["trust"]["confidence"] == by_hand(measured_of(result["folder"]), passed=0.5, supported=False)
    assert "the agent claimed nothing" in result["notes"]


def test_a_stale_claim_names_the_write_and_the_command_that_mends_it(project: Project) -> None:
    answer = project.run(None, HONEST + "open('docs/notes.txt', 'a').write('later')\n")
    assert answer.exit == 1
    result = answer.json
    assert result["done"]["reason"] == "tool_claim_precedes_last_edit"
    assert result["sentence"].startswith("Stale: ")
    assert "then docs/notes.txt was written" in result["sentence"]
    assert any(f"run it again to mend that: {' '.join(SUITE)}" in line for line in result["notes"])
    assert project.run(result["commitment"], HEAD + RUN + CLAIM).exit == 0  # the owner goes on, and it is mended


GOLDEN = """
import sys
open("golden.py", "w").write("import sys\\nprint('4985/4992')\\nsys.exit(1)\\n")
argv = [sys.executable, "golden.py"]
subprocess.run(argv, stdout=subprocess.PIPE)
with open(os.environ["TROTH_CLAIMS"], "a") as claims:
    claims.write(json.dumps({"argv": argv, "exit": EXIT, "totals": "TOTALS"}) + "\\n")
"""


def test_a_claimed_result_differs_in_exit_and_totals_and_both_are_shown(project: Project) -> None:
    cheat = project.run(None, HEAD + MEND + GOLDEN.replace("EXIT", "0").replace("TOTALS", "4966/4966")).json
    assert (cheat["done"]["decision"], cheat["done"]["reason"]) == ("contradicted", "tool_claim_exit_mismatch")
    for shown in ("claimed with exit 0; observed was exit 1", "4966/4966 was claimed of", "which printed 4985/4992"):
        assert shown in cheat["sentence"]
    report = json.loads((Path(cheat["folder"]) / "claims-report.json").read_bytes())
    assert [(one["said"], one["printed"]) for one in report["totals"]] == [
        ({"total": 4966, "passed": 4966}, {"total": 4992, "passed": 4985})
    ]
    again = GOLDEN.replace("EXIT", "1").replace("TOTALS", "4985/4992")
    honest = project.run(cheat["commitment"], HEAD + again).json
    assert honest["done"]["decision"] == "supported"
    assert not any("totals" in line for line in [honest["sentence"], *honest["notes"]])


def test_not_established_says_what_was_missing_and_is_not_submitted(project: Project) -> None:
    _, commitment = project.commit()
    answer = project.run(commitment, HEAD + ODD_NAME + MEND + RUN + CLAIM)
    assert answer.exit == 3, answer
    result = answer.json
    assert result["done"]["decision"] == "not_established"
    assert [(item["claim_type"], item["record"]) for item in result["missing"]] == [
        ("protected_paths/v1", "observation"),
        ("tool_claim_match/v1", "observation"),
    ]
    assert "a name that is not UTF-8" in result["missing"][0]["why"]
    assert "\\xff" in result["sentence"]
    note = project.rows[-1]
    assert (note["op"], note["payload"]["target"]) == ("annotate", commitment)
    assert note["payload"]["meta"]["missing"][0]["record"] == "observation"
    assert "not UTF-8" in note["payload"]["body"]
    assert project.state_of(commitment)["submission"] is None
    evidence = next(row for row in project.rows if row["id"] == result["evidence"])
    assert evidence["trust"]["verification"] == "unverified"


def test_not_established_is_submitted_when_asked(project: Project) -> None:
    _, commitment = project.commit()
    answer = project.run(commitment, HEAD + ODD_NAME + MEND + RUN + CLAIM, "--submit-anyway")
    assert answer.exit == 3
    assert project.state_of(commitment)["submission"]["evidence"] == answer.json["evidence"]
    assert project.rows_of("annotate") == []


def test_contradicted_is_never_submitted_even_when_asked(project: Project) -> None:
    _, commitment = project.commit()
    assert project.run(commitment, HEAD + BEND, "--submit-anyway").exit == 1
    assert project.state_of(commitment)["submission"] is None


def test_a_contract_whose_commands_catch_nothing_establishes_nothing(project: Project) -> None:
    file = project.contract / "contract.json"
    record = json.loads(file.read_text())
    record["adequacy"]["killed"] = 0
    file.write_text(json.dumps(record))
    answer = project.run(None, HONEST)
    assert answer.exit == 3
    assert answer.json["done"]["reason"] == "contract_adequacy_zero"
    assert answer.json["missing"][0]["record"] == "contract"


# --- the commitment ------------------------------------------------------------------------------------------------


def test_new_records_observation_commitment_and_claim_first(project: Project) -> None:
    answer = project.run(None, HONEST)
    assert answer.exit == 0
    seen, made, claim, evidence, submit = project.rows
    assert [row["op"] for row in project.rows] == ["capture", "commit", "claim", "capture", "submit"]
    assert seen["payload"]["body"] == "double() does not double"
    assert made["payload"]["source"] == seen["id"]
    assert made["relations"] == [{"type": "cites", "targetId": seen["id"]}]
    assert claim["payload"]["commitment"] == submit["payload"]["commitment"] == made["id"] == answer.json["commitment"]
    assert evidence["trace"]["parent"] == [seen["id"]]


def test_reopened_work_is_run_again_without_another_claim(project: Project) -> None:
    _, commitment = project.commit()
    first = project.run(commitment, HONEST).json
    assert project.troth("reopen", commitment, "--reason", "look again", "--as", "human:reviewer").exit == 0
    second = project.run(commitment[:8], HEAD + RUN + CLAIM)  # a prefix will do
    assert second.exit == 0, second
    assert second.json["run"] != first["run"]
    state = project.state_of(commitment)
    assert (state["state"], state["reopen_count"]) == ("in_review", 1)
    assert state["submission"]["evidence"] == second.json["evidence"] != first["evidence"]
    assert len(project.rows_of("claim")) == 1


def refused(project: Project, code: str, run: Callable[[], Any], exit_code: int = 2) -> None:
    """Require that a run is refused with this code, in one object, and that nothing at all was changed on the disk."""
    before = fingerprint(project.root)
    answer = run()
    assert answer.exit == exit_code, answer
    assert answer.json["error"]["code"] == code
    assert answer.json["error"]["message"]
    assert fingerprint(project.root) == before


def test_what_the_ledger_would_refuse_is_refused_before_anything_runs(project: Project) -> None:
    _, commitment = project.commit()
    project.troth("claim", commitment, "--as", "agent:other")
    refused(project, "E_ALREADY_CLAIMED", lambda: project.run(commitment, HONEST))
    refused(project, "E_REF_NOT_FOUND", lambda: project.run("cmt_ffffffff", HONEST))
    refused(project, "E_REF_NOT_FOUND", lambda: project.run(project.rows[0]["id"], HONEST))
    _, other = project.commit("a second one")
    refused(project, "E_AMBIGUOUS_ID", lambda: project.run("cmt_", HONEST))
    refused(project, "E_CONSTRAINT_VIOLATED", lambda: project.run(other, HONEST, "--as", "nobody"))
    words = ("--contract", project.contract, "--json", "--as", "agent:worker")
    refused(project, "E_USAGE", lambda: project.troth("run", "--new", "x", *words, "--", other, *agent(HONEST)))
    refused(project, "E_CONSTRAINT_VIOLATED", lambda: project.troth("run", "--new", " ", *words, "--", *agent(HONEST)))
    assert project.troth("close", other, "--duplicate-of", commitment).exit == 0
    refused(project, "E_ALREADY_CLOSED", lambda: project.run(other, HONEST))


def test_a_ledger_that_does_not_verify_takes_no_run(project: Project) -> None:
    _, commitment = project.commit()
    ledger = project.root / ".mentu" / "ledger.jsonl"
    ledger.write_text(ledger.read_text().replace("double() does not double", "double() does", 1))
    refused(project, "E_CHAIN_BROKEN", lambda: project.run(commitment, HONEST), exit_code=1)


def test_words_that_are_missing_or_name_nothing(project: Project) -> None:
    refused(project, "E_USAGE", lambda: project.troth("run", "--json"))
    refused(project, "E_USAGE", lambda: project.troth("run", "cmt_00000000", "--json", "--contract", "x"))
    refused(project, "E_USAGE", lambda: project.troth("run", "--new", "x", "--json", "--", "true"))
    refused(project, "E_RUN_UNKNOWN", lambda: project.troth("run", "--resume", "run_00000000", "--json"))
    words = ("--contract", project.contract, "--json", "--as", "agent:worker", "--")
    for program in ("no-such-program", "./missing", "/root/agent", ".mentu/ledger.jsonl", "src/app.py"):
        refused(project, "E_AGENT_NOT_STARTED", lambda p=program: project.troth("run", "--new", "x", *words, p))
    refused(project, "E_CLAIMS_UNREADABLE", lambda: project.run(None, HONEST, "--claims", "/dev/null"))


# --- the contract --------------------------------------------------------------------------------------------------


def _missing(folder: Path) -> Path:
    return folder / "nowhere"


def _no_contract_in_folder(folder: Path) -> Path:
    (folder / "contract.json").unlink()
    return folder


def _no_json(folder: Path) -> Path:
    (folder / "contract.json").write_text("{")
    return folder


def _another_version(folder: Path) -> Path:
    file = folder / "contract.json"
    file.write_text(file.read_text().replace("probity-done-contract/v1", "probity-done-contract/v9"))
    return folder


def _no_command(folder: Path) -> Path:
    file = folder / "contract.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"acceptance": []}))
    return folder


def _too_large(folder: Path) -> Path:
    os.truncate(folder / "contract.json", (1 << 24) + 1)
    return folder


def _a_link(folder: Path) -> Path:
    (folder / "contract.json").rename(folder / "real.json")
    (folder / "contract.json").symlink_to("real.json")
    return folder


def _a_pipe(folder: Path) -> Path:
    (folder / "contract.json").unlink()
    os.mkfifo(folder / "contract.json")
    return folder


def _bad_seal(folder: Path) -> Path:
    (folder / "seal.json").write_text("[]")
    return folder


def _another_start(folder: Path) -> Path:
    test = folder.parents[2] / "tests" / "test_app.py"
    test.write_text(test.read_text() + "\n")
    return folder


def _planted_where_nothing_may_stand(folder: Path) -> Path:
    (folder.parents[2] / "sitecustomize.py").write_text("")
    return folder


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (_missing, "E_CONTRACT_MISSING"),
        (_no_contract_in_folder, "E_CONTRACT_MISSING"),
        (_no_json, "contract_json_invalid"),
        (_another_version, "contract_schema_unsupported"),
        (_no_command, "contract_acceptance_empty"),
        (_too_large, "E_TOO_LARGE"),
        (_a_link, "E_NOT_REGULAR"),
        (_a_pipe, "E_NOT_REGULAR"),
        (_bad_seal, "E_SEAL_MALFORMED"),
        (_another_start, "E_START_DIFFERS"),
        (_planted_where_nothing_may_stand, "E_START_DIFFERS"),
    ],
)
def test_a_bad_contract_is_one_clear_line_and_changes_nothing(
    project: Project, spoil: Callable[[Path], Path], code: str
) -> None:
    contract = spoil(project.contract)
    before = fingerprint(project.root)
    answer = project.troth("run", "--new", "x", "--contract", contract, "--as", "agent:worker", "--", *agent(HONEST))
    assert answer.exit == 2, answer
    assert answer.out == ""
    (line,) = answer.err.splitlines()
    assert line.startswith(f"troth: {code}")
    assert fingerprint(project.root) == before


def test_the_contract_file_itself_can_be_named(project: Project) -> None:
    answer = project.troth(
        "run", "--new", "x", "--contract", project.contract / "contract.json", "--as", "agent:worker", "--json", "--",
        *agent(HONEST),
    )  # fmt: skip
    assert answer.exit == 0, answer


# --- one run at a time; what is left behind ------------------------------------------------------------------------

SLOW = "import time\nopen('docs/started', 'w').close()\ntime.sleep(300)\n"


def begin(project: Project, script: str, *words: str) -> subprocess.Popen[bytes]:
    """Start a run and wait until its agent works."""
    process = subprocess.Popen(
        [sys.executable, "-m", "troth", "run", "--new", "x", "--contract", str(project.contract),
         "--as", "agent:worker", "--json", *words, "--", *agent(script)],
        cwd=project.root, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while not (project.root / "docs" / "started").exists():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


def sleepers(seconds: str) -> list[str]:
    """Processes of this machine that are an agent with this sleep in its words."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if words.startswith(b"python3\0-c\0") and f"time.sleep({seconds})".encode() in words:
            found.append(entry.name)
    return found


def test_two_runs_at_once_are_refused_and_a_kill_takes_the_agent_along(project: Project) -> None:
    script = SLOW.replace("300", "311")
    process = begin(project, script)
    try:
        (run,) = project.troth("runs", "--json").json["runs"]
        assert (run["stage"], run["under_way"]) == ("started", True)
        second = project.run(None, HONEST)
        assert second.exit == 75
        assert second.json["error"]["code"] == "E_RUN_BUSY"
        assert run["id"] in second.json["error"]["message"]
        assert len(project.rows_of("commit")) == 1
        held = project.troth("release", run["commitment"], "--as", "agent:worker", "--json")
        assert (held.exit, held.json["error"]["code"]) == (75, "E_RUN_BUSY")
        assert project.rows_of("release") == []
        assert "under way" in project.troth("status").out
        assert sleepers("311")
    finally:
        process.kill()
        process.communicate()
    deadline = time.monotonic() + 20
    while sleepers("311") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert sleepers("311") == []
    status = project.troth("status")
    assert f"troth run --resume {run['id']}" in status.out
    assert f"troth release {run['commitment']}" in status.out
    assert project.troth("status", "--json").json["runs"][0]["under_way"] is False
    gone = project.troth("release", run["commitment"], "--as", "agent:worker", "--reason", "it crashed")
    assert gone.exit == 0
    assert f"{run['id']} was cleared" in gone.err
    assert project.troth("status", "--json").json["runs"] == []
    assert project.state_of(run["commitment"])["state"] == "open"
    assert not (project.root / ".mentu" / "runs" / run["id"] / "private").exists()
    assert project.troth("run", "--resume", run["id"], "--json").json["error"]["code"] == "E_RUN_FINISHED"


def test_being_told_to_end_ends_the_agent_too(project: Project) -> None:
    process = begin(project, SLOW.replace("300", "312"))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert sleepers("312") == []


def test_an_interrupt_without_a_terminal_ends_the_agent_and_the_run_is_judged(project: Project) -> None:
    process = begin(project, SLOW.replace("300", "313"))
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    result = json.loads(out)
    assert process.returncode == 1  # the suite fails: nothing was mended
    assert "the agent was interrupted" in result["notes"]
    evidence = next(row for row in project.rows if row["id"] == result["evidence"])
    assert "loop_complete:0.0" in evidence["trust"]["chain"]


def test_the_time_limit_ends_the_agent_and_is_told(project: Project) -> None:
    answer = project.run(None, HEAD + MEND + "import time\ntime.sleep(314)\n", "--timeout", "2")
    assert answer.exit == 0, answer  # what it did before holds: done, and nothing was claimed
    assert "the agent was ended after 2 seconds" in answer.json["notes"]
    evidence = next(row for row in project.rows if row["id"] == answer.json["evidence"])
    assert "loop_complete:0.0" in evidence["trust"]["chain"]
    assert "duration_reasonable:0.0" in evidence["trust"]["chain"]
    assert sleepers("314") == []


# --- options -------------------------------------------------------------------------------------------------------

SPEAK = (
    "import sys\nprint('to stdout', sys.stdout.isatty(), flush=True)\nprint('to stderr', file=sys.stderr, flush=True)\n"
)


def test_the_agents_output_passes_through(project: Project) -> None:
    words = ("run", "--new", "x", "--contract", project.contract, "--as", "agent:worker")
    plain = project.troth(*words, "--", *agent(SPEAK))
    assert plain.exit == 1
    assert "to stdout False" in plain.out
    assert "to stderr" in plain.err
    assert "contradicted: Acceptance command 'suite' ended with exit 1" in plain.out
    project.troth("release", "@last", "--as", "agent:worker")
    as_json = project.troth(*words, "--json", "--", *agent(SPEAK))
    assert set(as_json.json) >= {"done", "sentence", "missing"}  # nothing but the object is on stdout
    assert "to stdout False" in as_json.err
    quiet = project.troth(*words, "--quiet", "--", *agent(SPEAK))
    assert "to std" not in quiet.out + quiet.err


def test_values_handed_on_stand_in_no_record(project: Project) -> None:
    script = (
        HEAD + "import sys\nif os.environ.get('TOKEN_OF_MINE') != 'tr0ub4dor-value': sys.exit(9)\n" + MEND + RUN + CLAIM
    )
    script = script.replace("tr0ub4dor-value", "tr0ub4dor' + '-value")
    answer = project.run(None, script, "--env", "TOKEN_OF_MINE", env={"TOKEN_OF_MINE": "tr0ub4dor-value"})
    assert answer.exit == 0, answer
    held = [path for path in (project.root / ".mentu").rglob("*") if path.is_file()]
    assert len(held) > 10
    assert [path for path in held if b"tr0ub4dor-value" in path.read_bytes()] == []


def test_the_private_folder_is_kept_only_when_asked(project: Project) -> None:
    gone = project.run(None, HONEST).json["folder"]
    assert not (Path(gone) / "private").exists()
    assert Path(gone).stat().st_mode & 0o777 == 0o700
    kept = Path(project.run(None, HONEST, "--keep-trace").json["folder"]) / "private"
    assert kept.stat().st_mode & 0o777 == 0o700
    assert (kept / "trace").stat().st_size > 0


def test_a_harness_may_keep_the_claims_itself(project: Project, tmp_path: Path) -> None:
    own = tmp_path / "claims.jsonl"
    own.write_text(json.dumps({"argv": SUITE, "exit": 0}) + "\nnot json\n" + '{"argv": []}\n')
    answer = project.run(None, HEAD + MEND + RUN, "--claims", own)
    assert answer.exit == 0, answer
    claims = json.loads((Path(answer.json["folder"]) / "claims.json").read_text())["claims"]
    assert claims == [{"argv": SUITE, "exit": 0, "id": "c1"}]
    assert [line.split(" is no claim")[0] for line in answer.json["notes"] if "no claim" in line] == [
        "line 2 of the claims",
        "line 3 of the claims",
    ]


def test_claims_that_never_came_are_told_and_the_run_is_not_lost(project: Project, tmp_path: Path) -> None:
    answer = project.run(None, HEAD + MEND, "--claims", tmp_path / "never.jsonl")
    assert answer.exit == 0
    assert "the agent claimed nothing" in answer.json["notes"]
    assert any("claims file cannot be opened" in line for line in answer.json["notes"])


def test_the_launch_records_are_named_when_asked(project: Project) -> None:
    plain = json.loads((Path(project.run(None, HONEST).json["folder"]) / "receipt.json").read_text())
    assert sorted(plain["predicate"]["records"]) == ["capability", "claims", "contract", "grade", "observation", "tree"]
    named = project.run(None, HEAD + RUN + CLAIM, "--with-launch", "--verifier", "urn:example:mine").json["folder"]
    predicate = json.loads((Path(named) / "receipt.json").read_text())["predicate"]
    assert {"launch", "launch_receipt"} <= set(predicate["records"])
    assert predicate["verifier"] == {"id": "urn:example:mine"}
    assert predicate["verifier_isolation"]["network"] == "none"


def test_an_agent_that_starts_and_leaves_no_records_is_told_on_the_commitment(project: Project) -> None:
    """An interpreter that is not there shows only when the kernel looks for it."""
    script = project.root / "docs" / "agent.sh"
    script.write_text("#!/no/such/interpreter\n")
    script.chmod(0o755)
    answer = project.troth(
        "run", "--new", "x", "--contract", project.contract, "--as", "agent:worker", "--json", "--", "docs/agent.sh"
    )
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_AGENT_NOT_STARTED")
    note = project.rows[-1]
    assert (note["op"], note["actor"]) == ("annotate", "system:witness")
    assert "E_AGENT_NOT_STARTED" in note["payload"]["body"]
    assert project.troth("status", "--json").json["runs"] == []  # nothing is left to clear
    assert "abandoned" in project.troth("runs").out


def test_runs_lists_verdicts(project: Project) -> None:
    assert "No runs yet" in project.troth("runs").out
    run = project.run(None, HONEST).json["run"]
    assert f"{run}  " in project.troth("runs").out
    (listed,) = project.troth("runs", "--json").json["runs"]
    assert (listed["decision"], listed["stage"], listed["under_way"]) == ("supported", "finished", False)
    assert project.troth("runs", "--open", "--json").json["runs"] == []


@pytest.mark.parametrize(
    "words", [["run", "--", "true"], ["runs"], ["grade", "--contract", "x"], ["contract", "check", "x"]], ids=" ".join
)
def test_a_folder_that_is_gone_is_told(tmp_path: Path, words: list[str]) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = "import os, sys\nos.rmdir(os.getcwd())\nfrom troth.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    done = subprocess.run(
        [sys.executable, "-c", script, *words], cwd=gone, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2, done
    assert done.stderr.startswith(("troth: E_NO_FOLDER: ", "troth: E_CONTRACT_MISSING: ")), done.stderr
    assert len(done.stderr.splitlines()) == 1
