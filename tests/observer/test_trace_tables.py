"""The tables of calls: the tracer takes them, they do not overlap, and nothing that changes files is untraced."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.tracing import traced
from troth.core.errors import Refused
from troth.observer.addresses import addresses
from troth.observer.processes import is_persistent_shell
from troth.observer.syscalls import (
    ESCAPES,
    FORMS,
    NETWORK,
    NO_EFFECT,
    PROCESS,
    SIGNALS,
    UNTRACED,
    strace_argv,
    strace_version,
    trace_expression,
)
from troth.observer.trace import split_call

NEWER_OR_ELSEWHERE = {
    "arm_fadvise64_64", "cacheflush", "cachestat", "clone2", "fchmodat2", "file_getattr", "file_setattr",
    "futex_requeue", "futex_wait", "futex_wake", "getxattrat", "io_submit_time64", "listmount", "listxattrat",
    "lsm_get_self_attr", "lsm_list_modules", "lsm_set_self_attr", "map_shadow_stack", "mseal", "open_tree_attr",
    "removexattrat", "riscv_flush_icache", "rseq_slice_yield", "setxattrat", "statmount", "sync_file_range2",
    "uretprobe",
}  # fmt: skip
"""Names that not every version of the tracer, or not every architecture, knows."""


def test_the_tables_do_not_overlap() -> None:
    tables = [NO_EFFECT, ESCAPES, PROCESS, NETWORK, frozenset(SIGNALS), frozenset(FORMS)]
    for position, one in enumerate(tables):
        for other in tables[position + 1 :]:
            assert one & other == frozenset()


def test_nothing_that_has_an_effect_is_left_untraced() -> None:
    untraced = {name.encode() for name in UNTRACED}
    assert untraced <= NO_EFFECT
    expression = trace_expression()
    assert expression.startswith("trace=!")
    left_out = set(expression.removeprefix("trace=!").replace("?", "").split(","))
    assert left_out == {*UNTRACED, "ioctl"}
    assert set(trace_expression(ioctl=True).removeprefix("trace=!").replace("?", "").split(",")) == set(UNTRACED)


def test_no_name_means_a_whole_class_of_calls_to_the_tracer() -> None:
    """The old spelling of a class has no mark, and leaves out calls that nobody named."""
    assert not {"desc", "file", "ipc", "memory", "network", "process", "signal"} & set(UNTRACED)


def test_the_argument_vector_ends_in_options(tmp_path: Path) -> None:
    words = strace_argv(tmp_path / "t")
    assert words[0] == "strace"
    assert words[words.index("-o") + 1] == str(tmp_path / "t")
    assert {"-f", "-y", "--seccomp-bpf", "--relative-timestamps=ns"} <= set(words)


def test_a_missing_tracer_is_refused() -> None:
    with pytest.raises(Refused, match="strace is not installed") as refused:
        strace_version("no-such-tracer")
    assert refused.value.code == "E_OBSERVER_MISSING"


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (["bash"], True),
        (["-bash"], True),
        (["bash", "-i"], True),
        (["bash", "--norc", "-l"], True),
        (["bash", "--rcfile", "x", "-i"], True),
        (["bash", "-s", "argument"], True),
        (["bash", "-"], True),
        (["sh", "-e", "-o", "pipefail"], True),
        (["sh", "-eo", "pipefail"], True),
        (["bash", "/dev/stdin"], True),
        (["fish", "--login"], True),
        (["bash", "-c", "ls"], False),
        (["bash", "-lc", "ls"], False),
        (["bash", "-l", "-c", "ls"], False),
        (["bash", "-eo", "pipefail", "script"], False),
        (["bash", "script"], False),
        (["sh", "-x", "script"], False),
        (["bash", "--", "script"], False),
        (["fish", "--command=ls"], False),
        (["python3"], False),
        ([], True),
    ],
)
def test_which_shells_read_commands(words: list[str], want: bool) -> None:
    name = (words[0].lstrip("-") if words else "sh").encode()
    assert is_persistent_shell(b"/usr/bin/" + name, [word.encode() for word in words]) is want


@pytest.mark.parametrize(
    ("words", "want"),
    [
        (["busybox", "sh"], True),
        (["sh"], True),
        (["busybox", "sh", "-c", "x"], False),
        (["busybox", "ls"], False),
        (["ls"], False),
    ],
)
def test_busybox_is_the_shell_it_is_called(words: list[str], want: bool) -> None:
    assert is_persistent_shell(b"/bin/busybox", [word.encode() for word in words]) is want


class TestWithTheTracer:
    pytestmark = traced

    def test_it_has_a_version(self) -> None:
        assert strace_version()[0].isdigit()

    def test_it_takes_the_expression_and_filters_in_the_kernel(self, tmp_path: Path) -> None:
        for ioctl in (False, True):
            done = subprocess.run(
                [*strace_argv(tmp_path / "t", ioctl=ioctl), "/bin/true"], capture_output=True, text=True, check=False
            )
            assert (done.returncode, done.stderr) == (0, "")

    def test_it_knows_the_names(self) -> None:
        tables = NO_EFFECT | ESCAPES | PROCESS | NETWORK | frozenset(SIGNALS) | frozenset(FORMS)
        names = {name.decode() for name in tables} | set(UNTRACED)
        known = sorted(names - NEWER_OR_ELSEWHERE)
        # Without the question mark an unknown name is an error, so a misspelt one cannot hide.
        done = subprocess.run(
            ["strace", "-e", "trace=" + ",".join(known), "-o", "/dev/null", "/bin/true"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.stderr == ""


@pytest.mark.parametrize(
    ("text", "want"),
    [
        (
            'connect(3<s>, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("10.0.0.1")}, 16) = 0',
            ["inet:10.0.0.1:80"],
        ),
        (
            "connect(3<s>, {sa_family=AF_INET6, sin6_port=htons(443), sin6_flowinfo=htonl(0), "
            'inet_pton(AF_INET6, "::1", &sin6_addr), sin6_scope_id=0}, 28) = 0',
            ["inet6:[::1]:443"],
        ),
        ('connect(3<s>, {sa_family=AF_UNIX, sun_path="/a\\"b"}, 9) = 0', ['unix:/a"b']),
        ('connect(3<s>, {sa_family=AF_UNIX, sun_path=@"x"}, 4) = 0', ["unix:@x"]),
        ('connect(3<s>, {sa_family=AF_UNSPEC, sa_data=""}, 16) = 0', []),
        ("connect(3<s>, {sa_family=AF_NETLINK, nl_pid=0, nl_groups=00000000}, 12) = 0", []),
        ("connect(3<s>, {sa_family=AF_VSOCK, svm_cid=2}, 16) = 0", ["vsock:{sa_family=AF_VSOCK, svm_cid=2}"]),
        ('sendto(3<s>, "sa_family=AF_INET, sin_port=htons(1)", 5, 0, NULL, 0) = 5', []),
        (
            'sendto(3<s>, "x", 1, 0, {sa_family=AF_INET, sin_port=htons(53), sin_addr=inet_addr("1.1.1.1")}, 16) = 1',
            ["inet:1.1.1.1:53"],
        ),
        ('sendmsg(3<s>, {msg_name={sa_family=AF_UNIX, sun_path="/d"}, msg_namelen=5, msg_iov=[]}, 0) = 1', ["unix:/d"]),
        ("sendmsg(3<s>, {msg_name=NULL, msg_namelen=0, msg_iov=[]}, 0) = 1", []),
    ],
)
def test_addresses(text: str, want: list[str]) -> None:
    call = split_call(text.encode())
    assert call is not None
    assert addresses(call.name, call) == want
