"""The tables of system calls, and the tracer's argument vector (done records §13.3).

Deny by default: the trace expression is a negation. Everything is traced except ``UNTRACED``, calls that can
neither change a file, start a program, open a connection, nor change what a later name or descriptor means in a
way that the tracer's own annotations do not show. Of the traced calls, ``FORMS`` change files, ``PROCESS`` start
and end programs and move the working directory, ``NETWORK`` reach out, ``SIGNALS`` are told when they were aimed
at what the sandbox shields, ``ESCAPES`` can act unseen once they have succeeded, ``NO_EFFECT`` are known and
harmless, and any other call that succeeds is *unresolved*: coverage is lost.

Three frequent calls were weighed. ``mmap``, ``munmap`` and ``mremap`` are traced: a shared mapping writes without a
call, and could last be written when it ends, wherever it has been moved. ``mprotect`` is not:
a shared mapping made without write permission of a file that was opened for reading and writing is reported as
unresolved instead. ``ioctl`` is not traced
unless asked: it doubles the cost of every file opened by an interpreter; ``callfilter`` takes the requests that
change a file out of the sandbox instead.
Identifiers are not translated by the tracer (``--decode-pids``): it reads the whole process table for every new
process, which makes a program start five times as slow; ``processes.Lineage`` works them out instead.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from troth.core.errors import Refused

STRING_LIMIT: Final = 16384
"""Bytes of one string the tracer prints. A longer argument of a command leaves its ``exec`` unresolved."""

_UNTRACED: Final = """
read pread64 readv preadv preadv2 close close_range lseek _llseek readahead fadvise64 fadvise64_64 arm_fadvise64_64
stat lstat fstat stat64 lstat64 fstat64 newfstatat fstatat64 statx statfs fstatfs statfs64 fstatfs64 ustat
access faccessat faccessat2 readlink readlinkat getdents getdents64 getcwd
getxattr lgetxattr fgetxattr listxattr llistxattr flistxattr getxattrat listxattrat
dup dup2 dup3 fcntl fcntl64 pipe pipe2 socket socketpair accept accept4 listen shutdown
getsockname getpeername getsockopt setsockopt recv recvfrom recvmsg recvmmsg recvmmsg_time64
fsync fdatasync sync syncfs sync_file_range sync_file_range2 flock umask
brk mprotect pkey_mprotect pkey_alloc pkey_free madvise msync mincore mlock mlock2 munlock mlockall
munlockall membarrier mbind set_mempolicy get_mempolicy cachestat mseal
poll ppoll ppoll_time64 select pselect6 pselect6_time64 _newselect
epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 eventfd eventfd2
inotify_init inotify_init1 inotify_add_watch inotify_rm_watch
signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime timerfd_settime64 timerfd_gettime64
timer_create timer_settime timer_gettime timer_getoverrun timer_delete timer_settime64 timer_gettime64
futex futex_time64 futex_waitv futex_wait futex_wake futex_requeue set_robust_list get_robust_list rseq
set_tid_address sched_yield sched_getaffinity sched_setaffinity sched_getparam sched_setparam sched_getscheduler
sched_setscheduler sched_getattr sched_setattr sched_get_priority_max sched_get_priority_min sched_rr_get_interval
nanosleep clock_nanosleep clock_nanosleep_time64 clock_gettime clock_gettime64 clock_getres clock_getres_time64
gettimeofday time times alarm setitimer getitimer pause restart_syscall getcpu
rt_sigaction rt_sigprocmask rt_sigreturn rt_sigpending rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64
sigaltstack sigreturn sigaction sigprocmask sigsuspend
pidfd_open
wait4 waitid waitpid exit exit_group
getpid gettid getppid getuid geteuid getgid getegid getresuid getresgid getgroups getpgrp getpgid getsid
getuid32 geteuid32 getgid32 getegid32 getresuid32 getresgid32 getgroups32 setpgid setsid
getrlimit ugetrlimit setrlimit prlimit64 getrusage getpriority setpriority ioprio_get ioprio_set
sysinfo uname getrandom prctl arch_prctl set_thread_area get_thread_area capget
"""

UNTRACED: Final = tuple(_UNTRACED.split())
"""Calls that are not traced. Not every architecture or version of the tracer knows each of them.

``signal`` is not among them: the tracer would take the name for all calls that have to do with signals.
"""


def _table(*names: str) -> frozenset[bytes]:
    return frozenset(name.encode() for text in names for name in text.split())


NO_EFFECT: Final = _table(
    _UNTRACED,
    """
    memfd_create memfd_secret name_to_handle_at process_madvise process_mrelease process_vm_readv kcmp
    setuid setgid setreuid setregid setresuid setresgid setfsuid setfsgid setgroups capset personality
    setuid32 setgid32 setreuid32 setregid32 setresuid32 setresgid32 setfsuid32 setfsgid32 setgroups32
    fanotify_init fanotify_mark landlock_create_ruleset landlock_add_rule landlock_restrict_self
    add_key request_key keyctl shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl
    mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr
    io_setup io_destroy io_getevents io_pgetevents io_cancel tee vmsplice remap_file_pages
    modify_ldt map_shadow_stack set_mempolicy_home_node migrate_pages move_pages fspick statmount listmount
    lsm_get_self_attr lsm_set_self_attr lsm_list_modules file_getattr uretprobe rseq_slice_yield
    signal sysfs syslog lookup_dcookie riscv_flush_icache cacheflush get_kernel_syms query_module vhangup nice ssetmask
    sgetmask sigpending
    """,
)
"""Calls, traced or not, that are known to have no effect an observation is about."""

ESCAPES: Final = _table(
    """
    io_uring_setup io_uring_enter io_uring_register ptrace process_vm_writev pidfd_getfd userfaultfd bpf
    mount umount umount2 move_mount open_tree open_tree_attr fsopen fsmount fsconfig mount_setattr pivot_root chroot
    setns kexec_load kexec_file_load init_module finit_module delete_module create_module swapon swapoff acct
    quotactl quotactl_fd reboot iopl ioperm perf_event_open
    """,
)
"""Calls after whose success something can happen that the trace does not show. A failed one is only *refused*."""

Kind = Literal[
    "open", "creat", "write", "truncate", "create", "special", "rename", "link", "symlink", "unlink", "chmod",
    "acl", "times", "mmap", "munmap", "mremap", "bind", "ioctl", "aio",
]  # fmt: skip
"""What a call that changes files does; one function of ``mutations`` each."""


@dataclass(frozen=True, slots=True)
class Form:
    """Where the arguments of a call stand.

    Attributes:
        kind: what the call does.
        path: index of the (first) name, or -1.
        folder: index of the descriptor the name is relative to, or -1 (the working directory).
        descriptor: index of the descriptor that is changed, or -1.
        flags: index of the flags, or -1.
        second: index of the second name (of a rename or link), or -1; a descriptor of its own stands before it
            where ``folder`` is given.
        follow: whether a symbolic link in the last place is followed.
    """

    kind: Kind
    path: int = -1
    folder: int = -1
    descriptor: int = -1
    flags: int = -1
    second: int = -1
    follow: bool = False


FORMS: Final[dict[bytes, Form]] = {
    b"open": Form("open", path=0, flags=1),
    b"openat": Form("open", folder=0, path=1, flags=2),
    b"openat2": Form("open", folder=0, path=1, flags=2),
    b"open_by_handle_at": Form("open", flags=2),
    b"creat": Form("creat", path=0),
    **{name: Form("write", descriptor=0) for name in _table("write pwrite64 writev pwritev pwritev2")},
    b"sendfile": Form("write", descriptor=0),
    b"sendfile64": Form("write", descriptor=0),
    b"copy_file_range": Form("write", descriptor=2),
    b"splice": Form("write", descriptor=2),
    b"fallocate": Form("write", descriptor=0),
    b"truncate": Form("truncate", path=0, follow=True),
    b"truncate64": Form("truncate", path=0, follow=True),
    b"ftruncate": Form("truncate", descriptor=0),
    b"ftruncate64": Form("truncate", descriptor=0),
    b"mkdir": Form("create", path=0),
    b"mkdirat": Form("create", folder=0, path=1),
    b"mknod": Form("special", path=0, flags=1),
    b"mknodat": Form("special", folder=0, path=1, flags=2),
    b"rename": Form("rename", path=0, second=1),
    b"renameat": Form("rename", folder=0, path=1, second=3),
    b"renameat2": Form("rename", folder=0, path=1, second=3, flags=4),
    b"link": Form("link", path=0, second=1),
    b"linkat": Form("link", folder=0, path=1, second=3, flags=4),
    b"symlink": Form("symlink", path=1, second=0),
    b"symlinkat": Form("symlink", folder=1, path=2, second=0),
    b"unlink": Form("unlink", path=0),
    b"unlinkat": Form("unlink", folder=0, path=1),
    b"rmdir": Form("unlink", path=0),
    b"chmod": Form("chmod", path=0, follow=True),
    b"fchmod": Form("chmod", descriptor=0),
    b"fchmodat": Form("chmod", folder=0, path=1, follow=True),
    b"fchmodat2": Form("chmod", folder=0, path=1, flags=3, follow=True),
    # Of the extended attributes only access lists change what can be done with a file.
    b"setxattr": Form("acl", path=0, second=1, follow=True),
    b"lsetxattr": Form("acl", path=0, second=1),
    b"fsetxattr": Form("acl", descriptor=0, second=1),
    b"removexattr": Form("acl", path=0, second=1, follow=True),
    b"lremovexattr": Form("acl", path=0, second=1),
    b"fremovexattr": Form("acl", descriptor=0, second=1),
    b"setxattrat": Form("acl", folder=0, path=1, flags=2, second=3, follow=True),
    b"removexattrat": Form("acl", folder=0, path=1, flags=2, second=3, follow=True),
    b"file_setattr": Form("chmod", folder=0, path=1, follow=True),
    # These change neither content nor mode, and move a file's change time: what the join has to be told of.
    **{name: Form("times", path=0, follow=True) for name in _table("utime utimes chown chown32")},
    **{name: Form("times", folder=0, path=1, flags=3, follow=True) for name in _table("utimensat utimensat_time64")},
    **{name: Form("times", descriptor=0) for name in _table("fchown fchown32")},
    **{name: Form("times", path=0) for name in _table("lchown lchown32")},
    b"futimesat": Form("times", folder=0, path=1, follow=True),
    b"fchownat": Form("times", folder=0, path=1, flags=4, follow=True),
    b"mmap": Form("mmap", descriptor=4),
    b"mmap2": Form("mmap", descriptor=4),
    b"munmap": Form("munmap"),
    b"mremap": Form("mremap"),
    b"bind": Form("bind"),
    b"ioctl": Form("ioctl", descriptor=0),
    b"io_submit": Form("aio"),
    b"io_submit_time64": Form("aio"),
}
"""Calls that change files."""

CLONES: Final = _table("clone clone2 clone3 fork vfork")
PROCESS: Final = CLONES | _table("execve execveat chdir fchdir unshare seccomp")
NETWORK: Final = _table("connect sendto sendmsg sendmmsg send")

SIGNALS: Final[dict[bytes, int]] = {
    b"kill": 1, b"tkill": 1, b"tgkill": 2, b"rt_sigqueueinfo": 1, b"rt_tgsigqueueinfo": 2, b"pidfd_send_signal": 1,
}  # fmt: skip
"""Calls that send a signal, and which argument names it.

They have no effect that an observation is about; one that finds no such process, or the one that holds the sandbox, may
have been meant for what watches.
"""

UNNAMED_NO_EFFECT: Final = frozenset(
    b"syscall_%#x" % number
    # cachestat, map_shadow_stack, futex_wake, futex_wait, futex_requeue, statmount, listmount, lsm_get_self_attr,
    # lsm_set_self_attr, lsm_list_modules, mseal, getxattrat, listxattrat, file_getattr
    for number in (451, 453, 454, 455, 456, 457, 458, 459, 460, 461, 462, 464, 465, 468)
)
"""Harmless calls newer than the tracer, as it then prints them; these numbers are the same on every architecture."""

IOCTL_WRITES: Final = _table(
    """
    FICLONE FICLONERANGE FIDEDUPERANGE BTRFS_IOC_CLONE BTRFS_IOC_CLONE_RANGE FS_IOC_RESVSP FS_IOC_RESVSP64
    FS_IOC_UNRESVSP FS_IOC_UNRESVSP64 FS_IOC_ZERO_RANGE XFS_IOC_RESVSP XFS_IOC_RESVSP64 XFS_IOC_UNRESVSP
    XFS_IOC_UNRESVSP64 XFS_IOC_ZERO_RANGE XFS_IOC_ALLOCSP XFS_IOC_FREESP XFS_IOC_SWAPEXT XFS_IOC_EXCHANGE_RANGE
    XFS_IOC_ALLOCSP64 XFS_IOC_FREESP64
    """,
)
"""Requests of ``ioctl`` that change a file's content, where ``ioctl`` is traced."""


def trace_expression(*, ioctl: bool = False) -> str:
    """Return the value of the tracer's ``-e``: every call except ``UNTRACED`` (and ``ioctl`` unless asked for).

    ``?`` lets a version or architecture that does not know a name pass over it.
    """
    names = UNTRACED if ioctl else (*UNTRACED, "ioctl")
    return "trace=!" + ",".join(f"?{name}" for name in names)


def strace_argv(trace_file: Path, *, ioctl: bool = False) -> list[str]:
    """Return the tracer's argument vector, to be followed by the sandbox's.

    Args:
        trace_file: where the trace is written; outside of everything the agent can reach.
        ioctl: trace ``ioctl`` as well (costly), for file systems that share extents between files.
    """
    return [
        "strace", "-f", "--seccomp-bpf", "-y", "--relative-timestamps=ns", "-s", str(STRING_LIMIT),
        "-o", str(trace_file), "-e", trace_expression(ioctl=ioctl),
        # Contents of scattered writes and of messages are of no use here, and long; nor are times.
        "-e", "verbose=!" + ",".join(("writev", "pwritev", "pwritev2", "vmsplice", "process_vm_readv",
                                      "process_vm_writev", "?utime", "?utimes", "?futimesat", "utimensat")),
    ]  # fmt: skip


def strace_version(program: str = "strace") -> str:
    """Return the tracer's version, such as ``6.1``.

    Raises:
        Refused: ``E_OBSERVER_MISSING`` when it is not installed or does not answer.
    """
    try:
        answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        answer = None
    words = answer.stdout.split() if answer is not None and answer.returncode == 0 else []
    if "version" not in words[:-1]:
        raise Refused("E_OBSERVER_MISSING", "strace is not installed", remedy="Run: apt-get install strace")
    return words[words.index("version") + 1]
