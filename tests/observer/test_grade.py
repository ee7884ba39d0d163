"""Grading real trees in a real sandbox: what a grade says, what is a result and what is none, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from observer.grading import BROKEN, CASE, PYTEST, TESTS, UNITTEST, Ground, ground, output, results, why
from support.observing import needs_observer
from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.observer.contract_source import RunLimits
from troth.observer.tree import snapshot

__all__ = ["ground"]
pytestmark = [needs_observer, pytest.mark.observer]


def test_an_honest_tree_gets_a_whole_record(ground: Ground) -> None:
    ground.seal(UNITTEST, PYTEST)
    made = ground.grade(producer="a-verifier")
    assert json.loads(made.record) == {
        "schema_version": "probity-acceptance-grade/v1",
        "claim_id": "com_1",
        "invocation_id": "run_1",
        "producer": "a-verifier",
        "vantage": "independent",
        "witness_scope": "PEER",
        "contract_sha256": sha256_hex(ground.contract),
        "tree_sha256": snapshot(ground.final).digest,
        "results": [
            {"id": "c0", "argv": list(UNITTEST), "exit": 0},
            {"id": "c1", "argv": list(PYTEST), "exit": 0},
        ],
    }
    assert [command["tests"]["passed"] for command in made.report["commands"]] == [2, 2]
    assert [command["tests"]["source"] for command in made.report["commands"]] == ["report", "report"]
    assert made.report["put_back"] == []


def test_a_failing_test_is_a_result(ground: Ground) -> None:
    ground.seal(UNITTEST, PYTEST)
    ground.write("app.py", BROKEN)
    made = ground.grade()
    assert results(made) == {"c0": 1, "c1": 1}
    assert made.report["commands"][1]["runs"][0]["failing"] == ["tests.test_app.T::test_two"]


def test_the_isolation_report_has_exactly_its_members(ground: Ground) -> None:
    ground.seal(UNITTEST)
    found = ground.grade(limits=RunLimits(seconds=7, processes=33), repeats=1).isolation
    assert set(found) == {
        "contract_sha256", "network", "root", "uid", "capabilities", "reset_paths", "environment", "limits",
        "interpreter", "repeats",
    }  # fmt: skip
    assert (found["network"], found["root"], found["capabilities"]) == ("none", "read_only", "none")
    assert found["contract_sha256"] == sha256_hex(ground.contract)
    assert found["reset_paths"] == ["conftest.py", "tests"]
    assert (found["limits"]["seconds"], found["limits"]["processes"]) == (7, 33)
    assert set(found["limits"]["enforced_by"]) == {
        "seconds", "memory", "file", "written", "output", "processes",
    }  # fmt: skip
    interpreter = found["interpreter"]
    assert sha256_hex(Path(interpreter["path"]).read_bytes()) == interpreter["sha256"]
    assert "PATH" in found["environment"]


def test_what_the_isolation_report_says_is_so(ground: Ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET", "hush")
    probe = (
        "import os, socket\n"
        "facts = [os.getuid(), sorted(os.environ), open('/proc/self/status').read().split('CapEff:')[1].split()[0]]\n"
        "for path in ('/usr/x', '/x', '/etc/x'):\n"
        "    try: open(path, 'w'); facts.append('WROTE ' + path)\n"
        "    except OSError: pass\n"
        "try: socket.create_connection(('192.0.2.1', 80), 1); facts.append('CONNECTED')\n"
        "except OSError: pass\n"
        f"print(facts, os.listdir('/home/agent'), os.path.exists({str(tmp_path / 'near')!r}))\n"
    )
    (tmp_path / "near").write_text("beside the workspace, in the host's own temporary folder\n")
    ground.seal(("python3", "-c", probe))
    made = ground.grade()
    said = output(made)
    assert results(made) == {"c0": 0}
    assert said.startswith("[1000, ")
    assert "'0000000000000000'" in said
    assert "WROTE" not in said
    assert "CONNECTED" not in said
    assert "A_SECRET" not in said
    for name in made.isolation["environment"]:
        assert f"'{name}'" in said
    assert said.rstrip().endswith("[] False")


def test_a_server_on_the_loopback_interface_is_found_by_its_names(ground: Ground) -> None:
    probe = (
        "import socket\n"
        "for name in ('localhost', '127.0.0.1', socket.gethostname()):\n"
        "    with socket.create_server((name, 0)) as server:\n"
        "        socket.create_connection((name, server.getsockname()[1]), 5).close()\n"
        "try: socket.getaddrinfo('host.example', 80); raise SystemExit(1)\n"
        "except OSError: pass\n"
    )
    ground.seal(("python3", "-c", probe))
    made = ground.grade()
    assert results(made) == {"c0": 0}, output(made)


# --- no result, and results ---


def test_a_syntax_error_is_a_failing_result(ground: Ground) -> None:
    ground.seal(PYTEST, UNITTEST)
    ground.write("app.py", "def one(:\n")
    made = ground.grade()
    assert results(made) == {"c0": 2, "c1": 1}
    assert made.report["commands"][0]["tests"]["executed"] == 0


SKIPPED = "import pytest\n@pytest.mark.skip\ndef test_a(): pass\n"
NOTHING = {
    "none chosen": ((*PYTEST, "-k", "nosuch"), TESTS),
    "all skipped": (PYTEST, SKIPPED),
    "all expected to fail": (PYTEST, "import pytest\n@pytest.mark.xfail\ndef test_a(): assert 0\n"),
    "only collected": ((*PYTEST, "--collect-only"), TESTS),
    "own report, all skipped": ((*PYTEST, "--junitxml=/tmp/own.xml"), SKIPPED),
    "unittest, all skipped": (UNITTEST, CASE + "    @unittest.skip('x')\n    def test_a(self): pass\n"),
    "unittest, none there": (UNITTEST, "import unittest\n"),
    "gone at once": (PYTEST, "import os\nos._exit(0)\n"),
    "unittest, gone at once": (UNITTEST, "import os\nos._exit(0)\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTHING)
def test_where_no_test_ran_there_is_no_result(ground: Ground, name: str) -> None:
    argv, tests = NOTHING[name]
    ground.write("tests/test_app.py", tests)
    ground.seal(argv)
    made = ground.grade()
    assert results(made) == {}
    assert why(made) == "nothing_executed"
    assert made.report["commands"][0]["words"]
    assert made.report["commands"][0]["exit"] is None


def test_a_program_that_is_no_test_runner_is_judged_by_its_exit(ground: Ground) -> None:
    ground.seal(
        ("true",), ("sh", "-c", "exit 5"), ("sh", "-c", "kill -9 $$"), ("python3", "-c", "print('Ran 0 tests')")
    )
    made = ground.grade()
    assert results(made) == {"c0": 0, "c1": 5, "c2": -9, "c3": 0}
    assert made.report["commands"][0]["tests"] == {"executed": None, "passed": None, "source": "unknown"}


def test_runs_that_disagree_are_no_result_and_both_are_shown(ground: Ground) -> None:
    # A coin: the name of the report that is asked for differs at random from run to run.
    coin = "import os; raise SystemExit(int(os.environ['PYTEST_ADDOPTS'][-5], 16) % 2)"
    ground.seal(("python3", "-c", coin), ("true",))
    made = ground.grade(repeats=20)
    assert results(made) == {"c1": 0}
    assert why(made) == "runs_disagree"
    assert {run["exit"] for run in made.report["commands"][0]["runs"]} == {0, 1}
    assert len(made.report["commands"][1]["runs"]) == 20
    assert made.isolation["repeats"] == 20


def test_every_run_has_a_copy_of_its_own(ground: Ground) -> None:
    ground.seal(("sh", "-c", "test ! -e left && touch left tests/left"), ("sh", "-c", "test ! -e left"))
    made = ground.grade(repeats=2)
    assert [run["exit"] for command in made.report["commands"] for run in command["runs"]] == [0, 0, 0, 0]


def test_what_the_verifier_ends_is_no_result(ground: Ground) -> None:
    bomb = "import os, time\nfor _ in range(40):\n    os.fork() or (time.sleep(30), os._exit(0))\ntime.sleep(30)\n"
    ground.seal(("sleep", "30"), ("python3", "-c", bomb), ("no-such-program",))
    made = ground.grade(limits=RunLimits(seconds=1, processes=20))
    assert results(made) == {}
    assert why(made, 0) == "timed_out"
    assert why(made, 1) in ("too_many_processes", "timed_out")
    assert why(made, 2) == "not_started"


def test_limits_hold(ground: Ground) -> None:
    ground.seal(
        ("python3", "-c", "bytearray(600 << 20)"),
        ("python3", "-c", "open('big', 'wb').write(bytes(3 << 20))"),
        ("python3", "-c", "print('x' * 5_000_000)"),
    )
    small = RunLimits(seconds=20, memory_bytes=200 << 20, file_bytes=1 << 20, output_bytes=1 << 20)
    made = ground.grade(limits=small)
    found = results(made)
    if "control group" in made.isolation["limits"]["enforced_by"]["memory"]:
        assert (found.get("c0"), why(made, 0)) == (None, "out_of_memory")
    else:
        assert found["c0"] == 1
        assert "MemoryError" in output(made, 0)
    assert found["c1"] != 0
    assert found["c2"] == 0
    cut = made.report["commands"][2]["runs"][0]
    assert cut["output_cut"]
    assert cut["output_bytes"] == 5_000_001
    assert cut["output_sha256"] == sha256_hex(b"x" * 5_000_000 + b"\n")
    assert len(cut["output"]) < 100_000
    wide = ground.grade()
    assert results(wide) == {"c0": 0, "c1": 0, "c2": 0}


def test_what_a_command_leaves_running_is_ended_and_told(ground: Ground) -> None:
    ground.seal(("sh", "-c", "setsid sleep 60 & exit 0"), ("sh", "-c", "sleep 0.01 & wait"))
    made = ground.grade()
    assert results(made) == {"c0": 0, "c1": 0}
    runs = [command["runs"][0] for command in made.report["commands"]]
    assert [(run["left_running"], run["left_its_session"]) for run in runs] == [(["sleep"], 1), ([], 0)]
    assert max(run["seconds"] for run in runs) < 50


def test_a_script_that_names_no_interpreter_is_one_for_the_shell(ground: Ground) -> None:
    ground.write("check", "exit $1\n").chmod(0o755)
    ground.write("empty", "").chmod(0o644)
    ground.seal(("./check", "0"), ("./check", "4"), ("./empty",))
    made = ground.grade()
    assert results(made) == {"c0": 0, "c1": 4}
    assert why(made, 2) == "not_started"


def test_a_status_is_the_programs_own(ground: Ground) -> None:
    """What ends with 137 was not killed, and what prints the words of our own programs was started."""
    ground.seal(
        ("sh", "-c", "exit 137"), ("sh", "-c", "kill -9 $$"),
        ("sh", "-c", "echo 'bwrap: no'; exit 1"), ("sh", "-c", "false | true"),
    )  # fmt: skip
    assert results(ground.grade()) == {"c0": 137, "c1": -9, "c2": 1, "c3": 0}


# --- what is graded ---


def test_another_tree_than_the_recorded_one_refuses(ground: Ground) -> None:
    ground.seal(("true",))
    digest = snapshot(ground.final).digest
    ground.write("late.py", "x = 1\n")
    with pytest.raises(Refused) as caught:
        ground.grade(tree_sha256=digest)
    assert caught.value.code == "E_GRADE_TREE_DIFFERS"


def test_a_start_that_is_not_the_sealed_one_refuses(ground: Ground) -> None:
    ground.seal(("true",))
    (ground.start / "tests" / "test_app.py").write_text("pass\n")
    with pytest.raises(Refused) as caught:
        ground.grade()
    assert caught.value.code == "E_START_DIFFERS"


def test_a_malformed_contract_refuses_by_its_own_code(ground: Ground) -> None:
    ground.seal(("true",))
    ground.contract = ground.contract.replace(b'"killed":1', b'"killed":9')
    with pytest.raises(Refused) as caught:
        ground.grade()
    assert caught.value.code == "contract_adequacy_overcount"


def test_the_copy_stands_at_the_path_it_is_told(ground: Ground) -> None:
    ground.seal(("pwd",))
    assert output(ground.grade()) == f"{ground.final}\n"
    assert output(ground.grade(inside="/somewhere/else")) == "/somewhere/else\n"


def test_git_and_the_ledger_are_not_in_the_copy_and_empty_folders_are(ground: Ground) -> None:
    ground.seal(("ls", "-A"))
    ground.write(".git/config", "x")
    ground.write(".mentu/ledger.jsonl", "x")
    (ground.final / "out").mkdir()
    assert output(ground.grade()).split() == ["app.py", "out", "tests"]
