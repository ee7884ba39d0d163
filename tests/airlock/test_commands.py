"""A validator that is a command: what it sees, how long it may go on, and what becomes of what it starts."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from support.observing import needs_observer
from support.processes import assert_gone
from troth.airlock.commands import TAIL_BYTES, run_in_sandbox, run_validator, told_of

PYTHON = sys.executable


def python(script: str) -> list[str]:
    return [PYTHON, "-c", script]


def test_exit_zero_passes_and_any_other_does_not(tmp_path: Path) -> None:
    assert told_of(run_validator(["true"], tmp_path, {}))[:2] == (True, "the command ended with exit 0")
    passed, reason, facts = told_of(run_validator(python("print('why'); raise SystemExit(3)"), tmp_path, {}))
    assert (passed, reason) == (False, "the command ended with exit 3: why")
    assert facts["exit"] == 3


def test_it_runs_in_the_folder_without_a_shell(tmp_path: Path) -> None:
    ended = run_validator([*python("import os, sys; print(os.getcwd(), sys.argv[1:])"), "$HOME; rm *"], tmp_path, {})
    assert ended.last_line == f"{tmp_path} ['$HOME; rm *']"


def test_the_environment_is_small_and_says_what_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_TOKEN", "secret")
    told = {"TROTH_COMMITMENT": "cmt_00000001"}
    ended = run_validator(python("import os; print(sorted(os.environ))"), tmp_path, told)
    assert "SOME_API_TOKEN" not in ended.last_line
    assert "TROTH_COMMITMENT" in ended.last_line
    assert "PATH" in ended.last_line


def test_nothing_is_inherited_and_nothing_stands_on_its_input(tmp_path: Path) -> None:
    with open(tmp_path / "kept", "wb") as file:
        os.set_inheritable(file.fileno(), True)
        script = (
            "import os, sys\n"
            f"try:\n    os.fstat({file.fileno()}); print('inherited')\nexcept OSError:\n    print('closed')\n"
            "print(repr(sys.stdin.read()), os.getsid(0) == os.getpid())\n"
        )
        ended = run_validator(python(script), tmp_path, {})
    assert ended.tail.decode().split("\n")[:2] == ["closed", "'' True"]


def test_what_hangs_is_ended_with_everything_it_started(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True); time.sleep(600)\n"
    )
    ended = run_validator(python(script), tmp_path, {}, time_limit=1.0)
    assert ended.exit is None
    passed, reason, _ = told_of(ended)
    assert (passed, reason) == (False, "the command was ended after 1 seconds")
    assert_gone(int(ended.tail.split()[0]))


def test_what_goes_on_in_the_background_is_ended_and_holds_nobody_up(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        "print(child.pid, flush=True)\n"
    )
    ended = run_validator(python(script), tmp_path, {}, time_limit=60.0)
    assert ended.exit == 0
    assert_gone(int(ended.last_line))


def test_what_left_its_group_holds_nobody_up(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'], start_new_session=True)\n"
        "print(child.pid, flush=True)\n"
    )
    ended = run_validator(python(script), tmp_path, {}, time_limit=30.0)
    os.kill(int(ended.last_line), signal.SIGKILL)
    assert ended.exit == 0


def test_a_flood_is_read_and_forgotten(tmp_path: Path) -> None:
    script = "import sys\nfor _ in range(64): sys.stdout.write('x' * 65536)\nprint('\\nend')"
    ended = run_validator(python(script), tmp_path, {})
    assert (ended.exit, ended.last_line) == (0, "end")
    assert ended.written > 64 * 65536
    assert len(ended.tail) <= TAIL_BYTES


def test_an_endless_flood_is_ended(tmp_path: Path) -> None:
    ended = run_validator(python("while True: print('x' * 65536)"), tmp_path, {}, output_limit=1 << 20)
    assert told_of(ended)[1] == "the command was ended after it wrote 1048576 bytes"
    assert told_of(ended)[0] is False


def test_what_dies_does_not_pass(tmp_path: Path) -> None:
    ended = run_validator(python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), tmp_path, {})
    assert told_of(ended)[:2] == (False, "the command was ended by signal 9")


@pytest.mark.parametrize("argv", [["no-such-program-anywhere"], ["./missing"], ["tr\0ue"]])
def test_what_cannot_be_started_does_not_pass(argv: list[str], tmp_path: Path) -> None:
    passed, reason, _ = told_of(run_validator(argv, tmp_path, {}))
    assert not passed
    assert reason.startswith("the command could not be started: ")


def test_output_that_is_no_text_is_told_as_text(tmp_path: Path) -> None:
    ended = run_validator(
        python("import sys; sys.stdout.buffer.write(b'\\xff\\x1b[31mred'); sys.exit(1)"), tmp_path, {}
    )
    told_of(ended)[1].encode()  # no half of a pair, nothing that no UTF-8 could carry
    assert "red" in told_of(ended)[1]


@needs_observer
@pytest.mark.observer
class TestInTheSandbox:
    """Where the settings say so: a copy of the tree, and nothing else of this machine."""

    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        root = tmp_path / "workspace"
        (root / ".mentu").mkdir(parents=True)
        (root / ".mentu" / "ledger.jsonl").write_text("{}\n")
        (root / "src").mkdir()
        (root / "src" / "app.py").write_text("VALUE = 1\n")
        (tmp_path / "secret").write_text("secret")
        return root

    def test_it_sees_the_tree_at_its_own_place(self, root: Path) -> None:
        script = "import os; print(os.getcwd(), os.environ['TROTH_TIER'], open('src/app.py').read())"
        ended = run_in_sandbox(python(script), root, {"TROTH_TIER": "2"})
        assert told_of(ended)[0]
        assert ended.tail.decode().split() == [str(root), "2", "VALUE", "=", "1"]

    def test_what_it_writes_is_forgotten_and_the_record_out_of_reach(self, root: Path) -> None:
        script = (
            "import os\n"
            "open('src/app.py', 'w').write('VALUE = 2')\n"
            "for name in ('.mentu/ledger.jsonl', '../secret'):\n"
            "    try:\n        open(name).read(); print('read', name)\n    except OSError:\n        print('no', name)\n"
            "try:\n    open('.mentu/ledger.jsonl', 'a'); print('wrote')\nexcept OSError:\n    print('refused')\n"
        )
        ended = run_in_sandbox(python(script), root, {})
        assert ended.tail.decode().split("\n")[:3] == ["no .mentu/ledger.jsonl", "no ../secret", "refused"]
        assert (root / "src" / "app.py").read_text() == "VALUE = 1\n"
        assert (root / ".mentu" / "ledger.jsonl").read_text() == "{}\n"

    def test_its_exit_decides(self, root: Path) -> None:
        assert told_of(run_in_sandbox(["true"], root, {}))[0]
        assert told_of(run_in_sandbox(python("print('why'); raise SystemExit(3)"), root, {}))[:2] == (
            False, "the command ended with exit 3: why",
        )  # fmt: skip

    def test_what_hangs_is_ended(self, root: Path) -> None:
        ended = run_in_sandbox(python("import time; time.sleep(600)"), root, {}, time_limit=1.0)
        assert told_of(ended)[:2] == (False, "the command was ended after 1 seconds")

    def test_what_cannot_be_started_does_not_pass(self, root: Path) -> None:
        assert told_of(run_in_sandbox(["no-such-program"], root, {}))[0] is False


@needs_observer
@pytest.mark.observer
def test_in_the_sandbox_no_program_is_looked_up_where_an_agent_could_put_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "workspace"
    planted = root / ".venv" / "bin" / "checker"
    planted.parent.mkdir(parents=True)
    planted.write_text("#!/bin/sh\necho planted\n")
    planted.chmod(0o755)
    (root / "app.txt").write_text("x")
    for name in ("true", "test"):
        (planted.parent / name).write_text("#!/bin/sh\necho planted\n")
        (planted.parent / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted.parent}:.:{os.environ['PATH']}")
    monkeypatch.chdir(root)
    assert run_in_sandbox(["true"], root, {}).tail == b""
    assert run_in_sandbox(["test", "-e", "absent"], root, {}).exit == 1, "the system's own, which tells the truth"
    assert told_of(run_in_sandbox(["checker"], root, {}))[0] is False
    # Named by its folder, it is what the operator asked for.
    assert run_in_sandbox([".venv/bin/checker"], root, {}).tail == b"planted\n"
