"""Whole observations of small programs: what the records say, and when they say that something was missed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.observing import needs_observer
from support.watching import Watch, watch, workspace
from troth.core.errors import Refused
from troth.receipts import records
from troth.receipts.strict import parse

__all__ = ["watch", "workspace"]
pytestmark = [needs_observer, pytest.mark.observer]


def test_an_edit_is_one_write_and_the_record_is_complete(watch: Watch) -> None:
    seen = watch("open('src/app.py', 'a').write('X = 2\\n')")
    assert seen.exit == 0
    assert seen.changes == [("write", "src/app.py")]
    assert seen.complete, seen.observed.coverage_faults
    assert seen.effects == []


def test_nothing_done_is_nothing_recorded(watch: Watch) -> None:
    seen = watch("pass")
    assert seen.changes == []
    assert seen.complete


def test_every_record_passes_the_readers_rules(watch: Watch) -> None:
    seen = watch("import subprocess; subprocess.run(['true']); open('n', 'w').write('1')")
    files = seen.observed.files
    for name, rule in (
        ("tree", records.tree),
        ("observation", records.observation),
        ("capability", records.capability),
        ("claims", records.claims),
    ):
        assert rule(parse(files[f"{name}.json"], name))
    from troth.receipts import launch

    assert launch.launch(parse(files["launch.json"], "launch"))
    assert launch.launch_receipt(parse(files["launch-receipt.json"], "launch_receipt"))


def test_edit_then_revert_leaves_the_tree_and_not_the_record_unchanged(watch: Watch) -> None:
    seen = watch(
        "old = open('tests/test_app.py').read()\n"
        "open('tests/test_app.py', 'w').write('pass')\n"
        "open('tests/test_app.py', 'w').write(old)\n"
    )
    assert seen.observed.before.digest == seen.observed.after.digest
    assert {change[1] for change in seen.changes} == {"tests/test_app.py"}


def test_the_ledger_folder_is_not_there_for_the_agent(watch: Watch) -> None:
    seen = watch("import os, sys; sys.exit(len(os.listdir('.mentu')))")
    assert seen.exit == 0
    denied = watch("open('.mentu/ledger.jsonl', 'w').write('x')")
    assert denied.exit == 1
    assert denied.launch_receipt["sensors"]["s2_strace"]["refused"]
    assert denied.changes == []


def test_changes_in_git_are_counted_and_are_no_events(watch: Watch, workspace: Path) -> None:
    (workspace / ".git").mkdir()
    seen = watch("open('.git/verifier', 'w').write('x')")
    assert (seen.changes, seen.effects) == ([], [])
    assert seen.launch_receipt["sensors"]["s2_strace"]["git_mutations"] > 0
    assert seen.complete


def test_home_and_tmp_are_effects_outside_with_the_agents_own_paths(watch: Watch) -> None:
    seen = watch(
        "import pathlib; pathlib.Path.home().joinpath('sitecustomize.py').write_text('')\n"
        "open('/tmp/scratch', 'w').write('x')"
    )
    paths = {path for effect in seen.effects for path in effect["paths"]}
    assert paths == {"/home/agent/sitecustomize.py", "/tmp/scratch"}


def test_claims_are_read_from_the_file_named_in_the_environment(watch: Watch) -> None:
    seen = watch(
        "import json, os\n"
        "f = open(os.environ['TROTH_CLAIMS'], 'a')\n"
        "for status in (1, 0): f.write(json.dumps({'argv': ['make', 'test'], 'exit': status}) + '\\n')\n"
        "f.write('no claim at all\\n')"
    )
    assert seen.claims["claims"] == [{"id": "c1", "argv": ["make", "test"], "exit": 0}]
    assert [line for line, _ in seen.observed.gathered.claims.refused] == [3]
    assert seen.effects == []


def test_a_harness_can_keep_the_claims_outside(watch: Watch, tmp_path: Path) -> None:
    own = tmp_path / "claims.jsonl"
    own.write_text('{"argv": ["make"]}\n')
    seen = watch("import os, sys; sys.exit('TROTH_CLAIMS' in os.environ)", claims_file=own)
    assert seen.exit == 0
    assert seen.claims["claims"] == [{"id": "c1", "argv": ["make"]}]


def test_a_time_limit_ends_everything_and_is_said(watch: Watch) -> None:
    nap = f"600.{os.getpid()}"  # other runs of these tests may be under way
    seen = watch(f"import subprocess, time; subprocess.Popen(['sleep', '{nap}']); time.sleep(600)", timeout=1.5)
    assert seen.observed.launched.timed_out
    assert seen.launch_receipt["timed_out"] is True
    assert seen.exit == -signal.SIGKILL
    assert seen.complete, seen.observed.coverage_faults
    assert not _processes_named(f"sleep {nap}")


def _processes_named(words: str) -> list[str]:
    wanted = b"".join(word.encode() + b"\0" for word in words.split())
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with contextlib.suppress(OSError):
                if (folder / "cmdline").read_bytes() == wanted:
                    found.append(folder.name)
    return found


def test_of_an_output_without_an_end_no_more_than_the_cap_is_kept(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("troth.observer.launch.MAX_TRANSCRIPT", 5000)
    short = watch("print('x' * 4999)")
    assert short.launch_receipt["transcript_sha256"] == hashlib.sha256(b"x" * 4999 + b"\n").hexdigest()
    assert not short.observed.launched.transcript_cut
    long = watch("for _ in range(40): print('x' * 1500)")
    assert long.launch_receipt["transcript_sha256"] == hashlib.sha256((b"x" * 1500 + b"\n") * 3).hexdigest()
    assert long.observed.launched.transcript_cut
    assert (long.exit, long.complete) == (0, True)  # nothing rests on it unless the agent's claims are read there
    assert long.observed.gathered.notes == ("of what the agent printed only the first 4503 bytes were kept",)
    endless = watch("print('x' * 1000000)")
    assert endless.launch_receipt["transcript_sha256"] == hashlib.sha256().hexdigest()


def test_a_background_process_does_not_outlive_the_run(watch: Watch) -> None:
    nap = f"601.{os.getpid()}"
    watch(f"import subprocess; subprocess.Popen(['sleep', '{nap}'], start_new_session=True)")
    assert not _processes_named(f"sleep {nap}")


def test_the_environment_is_fresh_and_what_is_handed_on_stands_in_no_record(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_OF_MINE", "hunter2-value")
    monkeypatch.setenv("OTHER_SECRET", "not-handed-on")
    expected = hashlib.sha256(b"hunter2-value").hexdigest()
    script = (
        "import hashlib, os, sys\n"
        "found = hashlib.sha256(os.environ.get('SECRET_OF_MINE', '').encode()).hexdigest()\n"
        f"sys.exit((found != {expected!r}) + ('OTHER_SECRET' in os.environ) * 2)"
    )
    seen = watch(script, env=("SECRET_OF_MINE",))
    assert seen.exit == 0
    assert seen.launch["env"]["SECRET_OF_MINE"] == {"handed_on": True}
    assert not [name for name, data in seen.observed.files.items() if b"hunter2-value" in data]


def test_no_network_unless_asked(watch: Watch) -> None:
    script = (
        "import socket, sys\ns = socket.socket()\ntry: s.connect(('127.0.0.1', PORT))\nexcept OSError: sys.exit(7)\n"
    )
    import socket

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        script = script.replace("PORT", str(server.getsockname()[1]))
        assert watch(script).exit == 7
        seen = watch(script, network=True)
        assert seen.exit == 0
        assert [effect["address"] for effect in seen.effects] == [f"inet:127.0.0.1:{server.getsockname()[1]}"]


def test_further_folders_can_be_read_or_written(watch: Watch, tmp_path: Path) -> None:
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "data").write_text("d")
    write = f"open({str(extra / 'new')!r}, 'w').write('x')"
    assert watch(f"open({str(extra / 'data')!r})").exit == 1
    assert watch(f"open({str(extra / 'data')!r}).read(); {write}", allow_read=(extra,)).exit == 1
    seen = watch(write, allow_write=(extra,))
    assert seen.exit == 0
    assert {path for effect in seen.effects for path in effect["paths"]} == {str(extra / "new")}


def test_a_program_that_is_not_there_is_refused(watch: Watch) -> None:
    with pytest.raises(Refused) as caught:
        watch("", argv=["no-such-program-here"])
    assert caught.value.code == "E_AGENT_NOT_STARTED"


def test_a_system_folder_is_no_workspace(tmp_path: Path) -> None:
    from troth.observer.observe import check_workspace

    for folder in ("/", "/usr", "/etc/ssl", "/tmp"):
        with pytest.raises(Refused) as caught:
            check_workspace(Path(folder))
        assert caught.value.code == "E_WORKSPACE_UNFIT"
    check_workspace(tmp_path)


# --- what must lower coverage ---------------------------------------------------------------------------------------


def test_a_name_that_is_not_utf8_lowers_coverage(watch: Watch) -> None:
    assert watch("open('src/ÿ', 'w').write('x')").complete
    seen = watch("open(b'src/\\xff', 'w').write('x')")
    assert not seen.complete
    assert "\\xff" in seen.launch_receipt["sensors"]["s2_strace"]["names_not_utf8"][0]


def test_names_with_newlines_quotes_and_spaces_are_kept_exactly(watch: Watch) -> None:
    name = "a \"b\"\n'c' <d> = 3 \\ é"
    seen = watch(f"open({name!r}, 'w').write('x')")
    assert {change[1] for change in seen.changes} == {name}
    assert seen.complete


def test_a_tracer_that_is_killed_ends_the_sandbox_and_lowers_coverage(watch: Watch, workspace: Path) -> None:
    from troth.observer import observe as module

    original = module.launch

    def launch_and_shoot(*args: object, on_start: Callable[[int], None], **options: object) -> object:
        def shoot(pid: int) -> None:
            child = os.fork()
            if child == 0:
                try:
                    time.sleep(1.0)
                    os.kill(pid, signal.SIGKILL)
                finally:
                    os._exit(0)  # whatever happens, a child must not go on with the other tests
            on_start(pid)

        return original(*args, on_start=shoot, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "launch", launch_and_shoot)
        seen = watch(
            "import time\n"
            "open('early', 'w').write('x')\n"
            "for i in range(300):\n"
            "    time.sleep(0.1)\n"
            "    open('late', 'a').write('x')"
        )
    assert not seen.complete
    assert seen.launch_receipt["sensors"]["s2_strace"]["tracer"] == "lost"
    assert seen.observed.seconds < 20
    size = (workspace / "late").stat().st_size if (workspace / "late").exists() else 0
    time.sleep(0.3)
    assert ((workspace / "late").stat().st_size if size else 0) == size


def test_a_trace_that_does_not_fit_on_the_disk_lowers_coverage(watch: Watch, tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("mounting a small disk needs root")
    small = tmp_path / "private0"
    small.mkdir(mode=0o700)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "tmpfs", str(small)], check=True)
    try:
        small_private = small
        from troth.observer.observe import Request, observe

        workspace_folder = tmp_path / "workspace"
        observed = observe(
            Request(
                workspace=workspace_folder,
                argv=[sys.executable, "-c", "for i in range(4000): open(f'f{i % 9}', 'w').write(str(i))"],
                claim_id="cmt_00000001",
                invocation_id="run_00000001",
                private=small_private,
                protects=lambda path: False,
                show=None,
                timeout=60,
            )
        )
    finally:
        subprocess.run(["umount", "-l", str(small)], check=True)
    observation = json.loads(observed.files["observation.json"])
    assert observation["coverage"] == "incomplete"
    assert observed.coverage_faults


@pytest.mark.parametrize("known", [True, False])
def test_a_call_that_no_table_knows_lowers_coverage_when_it_succeeds(watch: Watch, known: bool) -> None:
    """One harmless call, made to succeed by the tracer itself, with and without its entry in the tables."""
    from troth.observer import launch as launching
    from troth.observer import reading

    original = launching.strace_argv

    def injecting(trace_file: Path) -> list[str]:
        words = original(trace_file)
        return [words[0], "-e", "inject=sysfs:retval=0", *words[1:]]

    sysfs = 139
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(launching, "strace_argv", injecting)
        if not known:
            patch.setattr(reading, "_CLASS", {k: v for k, v in reading._CLASS.items() if k != b"sysfs"})
        seen = watch(f"import ctypes; ctypes.CDLL(None).syscall({sysfs}, 0, 0, 0)")
    assert seen.exit == 0
    assert seen.complete is known
    assert bool(seen.launch_receipt["sensors"]["s2_strace"]["unresolved"]) is not known


def test_io_uring_set_up_is_an_escape_and_lowers_coverage(watch: Watch) -> None:
    seen = watch("import ctypes; ctypes.CDLL(None).syscall(425, 8, ctypes.create_string_buffer(256))")
    sensor = seen.launch_receipt["sensors"]["s2_strace"]
    if sensor["escapes"]:
        assert not seen.complete
    else:  # a kernel without it: the attempt failed and counts for nothing
        assert any("io_uring_setup" in line for line in sensor["refused"])
        assert seen.complete


def test_a_clone_of_extents_is_refused_before_it_changes_a_file(watch: Watch) -> None:
    seen = watch(
        "import errno, fcntl, sys\n"
        "file = open('src/app.py', 'r+')\n"
        "try: fcntl.ioctl(file, 0x40305839, b'\\0' * 48)\n"
        "except OSError as fault: sys.exit(fault.errno != errno.EOPNOTSUPP)\n"
        "sys.exit(9)"
    )
    assert seen.exit == 0
    assert seen.changes == []
    assert seen.complete


@pytest.mark.parametrize("terminal", [False, True])
def test_a_signal_to_its_own_group_ends_the_agent_and_not_the_witness(watch: Watch, terminal: bool) -> None:
    seen = watch("import os, signal\nopen('src/app.py', 'a').write('#')\nos.kill(0, signal.SIGKILL)", terminal=terminal)
    assert seen.exit == -signal.SIGKILL
    assert seen.changes == [("write", "src/app.py")]
    assert seen.complete, seen.observed.coverage_faults


def test_a_script_that_ends_its_own_group_is_an_ordinary_script(watch: Watch) -> None:
    seen = watch("", argv=["sh", "-c", "trap 'trap - TERM; kill 0' EXIT; sleep 30 & echo x > made"])
    assert ("create", "made") in seen.changes
    assert seen.complete, seen.observed.coverage_faults
    assert seen.observed.seconds < 20


def test_the_terminal_is_the_agents_own(watch: Watch) -> None:
    seen = watch(
        "import os, sys\n"
        "tty = os.open('/dev/tty', os.O_RDWR)\n"
        "sys.exit(not (os.isatty(0) and os.tcgetpgrp(tty) == os.getpgrp() and os.getsid(0) == os.getpid()))",
        terminal=True,
    )
    assert seen.exit == 0
    assert seen.complete


def test_what_can_hold_secrets_is_owner_only_whatever_the_umask(watch: Watch, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        watch("print('x')", keep_trace=True)
    finally:
        os.umask(before)
    private = tmp_path / "private0"
    assert {name: (private / name).stat().st_mode & 0o777 for name in ("trace", "transcript", "claims.jsonl")} == {
        "trace": 0o600,
        "transcript": 0o600,
        "claims.jsonl": 0o600,
    }


def test_our_input_reaches_the_agent_and_cannot_be_written(tmp_path: Path, watch: Watch) -> None:
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("do this\n")
    script = (
        "import os, sys\n"
        "said = sys.stdin.read()\n"
        "try: os.write(os.open('/proc/self/fd/0', os.O_WRONLY | os.O_NONBLOCK), b'OWNED')\n"
        "except OSError: pass\n"
        "sys.exit(said != 'do this\\n')"
    )
    before = os.dup(0)
    own = os.open(prompt, os.O_RDWR)
    try:
        os.dup2(own, 0)
        seen = watch(script)
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(own)
    assert seen.exit == 0
    assert prompt.read_text() == "do this\n"
    assert seen.effects == []


@pytest.mark.parametrize("part", [0.0, 0.5, 0.9])
def test_a_trace_that_was_cut_lowers_coverage(watch: Watch, part: float) -> None:
    from troth.observer import observe as module

    original = module.read_trace

    def cut(trace_file: Path, **options: object) -> object:
        os.truncate(trace_file, int(trace_file.stat().st_size * part))
        return original(trace_file, **options)

    script = "for i in range(20): open(f'f{i}', 'w').write('x')"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "read_trace", cut)
        seen = watch(script)
    assert not seen.complete
    assert seen.launch_receipt["sensors"]["s2_strace"]["tracer"] == "lost"
    # What the tree shows and the trace does not is told by name.
    assert seen.launch_receipt["sensors"]["join"]["unattributed"]
    assert watch(script.replace("'x'", "'y'")).complete
