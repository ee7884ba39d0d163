"""``troth capture --check``: a command is run, measured, and recorded as what it was (ledger spec §9, §14)."""

from __future__ import annotations

from pathlib import Path

from support.ledgers import fingerprint
from support.shell import Shell, troth

__all__ = ["troth"]


def test_a_check_is_run_without_a_shell_and_measured(tmp_path: Path, troth: Shell) -> None:
    first = troth("capture", "seen").id
    said = troth("capture", "ok", "--refs", first, "--json", "--check", "--", "echo", "$HOME; false")
    assert said.exit == 0
    assert "$HOME; false" in said.err
    answer = said.json
    trust = answer["signal"]["trust"]
    assert trust["verification"] == "machine_verified"
    chain = dict(entry.split(":") for entry in trust["chain"])
    assert list(chain) == [
        "exit_code",
        "test_pass_rate",
        "context_utilization",
        "loop_complete",
        "duration_reasonable",
        "no_errors",
        "evidence_depth",
    ]
    assert (chain["exit_code"], chain["context_utilization"], chain["evidence_depth"]) == ("1.0", "0.0", "0.4")
    assert answer["check"]["argv"] == ["echo", "$HOME; false"]
    assert answer["signal"]["payload"]["meta"]["check"]["exit"] == 0


def test_a_failing_check_is_recorded_as_what_it_is(troth: Shell) -> None:
    answer = troth("capture", "no", "--json", "--check", "--", "false").json
    assert answer["signal"]["trust"]["verification"] == "unverified"
    assert answer["check"]["exit"] == 1
    said = troth("capture", "no", "--check", "--", "false")
    assert said.exit == 0
    assert "exit 1" in said.out


def test_test_counts_come_from_the_report_the_run_wrote(tmp_path: Path, troth: Shell) -> None:
    report = "<testsuites><testsuite><testcase/><testcase><failure/></testcase><testcase><skipped/></testcase>"
    script = f"printf '%s' '{report}<testcase/><testcase/></testsuite></testsuites>' > report.xml"
    words = ["capture", "x", "--json", "--check", "--", "sh", "-c", script, "--junitxml=report.xml"]
    answer = troth(*words).json
    assert answer["check"]["tests"] == {"passed": 3, "run": 4}
    assert "test_pass_rate:0.75" in answer["signal"]["trust"]["chain"]
    stale = troth("capture", "x", "--json", "--check", "--", "true", "--junitxml", "none.xml").json
    assert "tests" not in stale["check"]


def test_checks_that_cannot_be(tmp_path: Path, troth: Shell) -> None:
    before = fingerprint(tmp_path)
    assert "E_USAGE" in troth("capture", "x", "--check").err
    assert "E_USAGE" in troth("capture", "x", "--", "true").err
    assert "cannot be started" in troth("capture", "x", "--check", "--", "/no/such/program").err
    in_vain = troth("capture", "x", "--kind", "finding", "--check", "--", "touch", "ran")
    assert "E_CITATION_REQUIRED" in in_vain.err
    assert not (tmp_path / "ran").exists()
    assert fingerprint(tmp_path) == before


def test_a_torn_tail_is_no_obstacle_to_a_check(tmp_path: Path, troth: Shell) -> None:
    troth("capture", "seen")
    with (tmp_path / ".mentu" / "ledger.jsonl").open("ab") as file:
        file.write(b"half")
    assert troth("capture", "ok", "--check", "--", "true").exit == 0
    assert troth("verify").exit == 0
