"""The kernel filter: what it refuses, what it lets through, and that the kernel takes it."""

from __future__ import annotations

import errno
import os
import struct
import subprocess
from pathlib import Path

import pytest

from support.tracing import PYTHON, STARTED, changes, sandbox, traced
from troth.observer.callfilter import IOCTLS, MACHINES, Machine, call_filter
from troth.observer.events import read_trace
from troth.observer.syscalls import strace_argv

ALLOW, ERROR = 0x7FFF0000, 0x00050000


def decide(program: bytes, *, audit: int, number: int, second: int = 0) -> int:
    """Run a classic BPF program as the kernel would."""
    data = struct.pack("=II Q 6Q", number & 0xFFFFFFFF, audit, 0, 0, second, 0, 0, 0, 0)
    code = list(struct.iter_unpack("=HBBI", program))
    at = value = 0
    while True:
        operation, true, false, constant = code[at]
        at += 1
        match operation:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, constant)
            case 0x54:
                value &= constant
            case 0x15:
                at += true if value == constant else false
            case 0x45:
                at += true if value & constant else false
            case 0x06:
                return constant
            case _:
                raise AssertionError(f"no such instruction: {operation:#x}")


@pytest.mark.parametrize("machine", MACHINES)
def test_what_acts_past_the_tracer_is_refused(machine: Machine) -> None:
    program = call_filter()
    for request in IOCTLS:
        for high in (0, 1 << 32):  # the kernel looks at the low half alone
            answer = decide(program, audit=machine.audit, number=machine.ioctl, second=request | high)
            assert answer == ERROR | errno.EOPNOTSUPP
    for flags in (8, 8 | 1, 8 | 16):
        assert decide(program, audit=machine.audit, number=machine.seccomp, second=flags) == ERROR | errno.EINVAL


@pytest.mark.parametrize("machine", MACHINES)
def test_everything_else_is_let_through(machine: Machine) -> None:
    program = call_filter()
    for number in range(700):
        assert decide(program, audit=machine.audit, number=number) == ALLOW
    for request in (0x5401, 0x5413, 0x541B, 0x80045430, 0x80086601):  # of terminals, of flags
        assert decide(program, audit=machine.audit, number=machine.ioctl, second=request) == ALLOW
    for flags in (0, 1, 2, 4):
        assert decide(program, audit=machine.audit, number=machine.seccomp, second=flags) == ALLOW


def test_an_unknown_machine_is_let_through() -> None:
    assert decide(call_filter(), audit=1, number=16, second=IOCTLS[0]) == ALLOW


class TestInTheSandbox:
    pytestmark = traced

    def test_the_kernel_takes_it_and_honest_programs_do_not_notice(self, tmp_path: Path) -> None:
        workspace = tmp_path / "ws"
        workspace.mkdir()
        source = """
import errno, fcntl, subprocess
with open("a", "w+") as file:
    file.write("text"); file.flush()
    try: fcntl.ioctl(file, 0x40305839, b"\\0" * 48)
    except OSError as fault: assert fault.errno == errno.EOPNOTSUPP
    else: raise SystemExit("not refused")
assert open("a").read() == "text"
subprocess.run(["cp", "a", "b"], check=True)
"""
        argv = [PYTHON, "-S", "-c", source]
        trace = tmp_path / "trace"
        read_end, write_end = os.pipe()
        os.write(write_end, call_filter())
        os.close(write_end)
        done = subprocess.run(
            [*strace_argv(trace), *sandbox(workspace), "--seccomp", str(read_end), "--", *argv],
            capture_output=True, text=True, check=False, pass_fds=(read_end,),
        )  # fmt: skip
        os.close(read_end)
        assert (done.returncode, done.stderr) == (0, "")
        report = read_trace(trace, workspace=str(workspace), started=STARTED, agent_argv=argv, known_paths=[])
        assert (report.escapes, report.unresolved, report.tracer) == ((), (), "complete")
        assert changes(report) == [("create", "a"), ("write", "a"), ("create", "b"), ("write", "b")]
