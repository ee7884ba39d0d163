"""An agent that tries to get out. It prints one line for every attempt that got somewhere, then "end".

Started as the agent of a run; needs nothing but the standard library.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys

libc = ctypes.CDLL(None, use_errno=True)
MS_REMOUNT, MS_BIND = 32, 4096
workspace = os.getcwd()


def got(what):
    print("GOT", what, flush=True)


def attempt(what, action):
    try:
        if action():
            got(what)
    except (OSError, subprocess.SubprocessError, ValueError):
        pass


def mounts():
    for target in (b"/", b"/usr", workspace.encode() + b"/.mentu", b"/proc/sys"):
        if libc.mount(b"none", target, None, MS_REMOUNT | MS_BIND, None) == 0:
            got(f"remount {target!r}")
        if libc.mount(b"tmpfs", target, b"tmpfs", 0, None) == 0:
            got(f"mount over {target!r}")
        if libc.umount2(target, 2) == 0:
            got(f"umount {target!r}")


def write(path):
    with open(path, "w") as file:
        return file.write("x")


def namespaces():
    for flag in (0x10000000, 0x00020000, 0x20000000):  # user, mount, pid
        if libc.unshare(flag) == 0:
            got(f"unshare {flag:#x}")
    if libc.chroot(b"/tmp") == 0:
        got("chroot")


def tracer():
    # The tracer is no process of this namespace; whatever is here may be signalled, nothing of it judges.
    for name in os.listdir("/proc"):
        if name.isdigit():
            with open(f"/proc/{name}/comm") as file:
                if file.read().strip() == "strace":
                    got(f"sees the tracer as {name}")
    status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
    for name in ("CapEff", "CapPrm", "CapBnd", "CapInh", "CapAmb"):
        if int(status[name], 16):
            got(f"{name} {status[name]}")
    if int(status["NoNewPrivs"]) != 1:
        got("may gain privileges")


attempt("root directory is writable", lambda: write("/breakout"))
attempt("/usr is writable", lambda: write("/usr/breakout"))
attempt("/etc is writable", lambda: write("/etc/breakout"))
for folder, folders, names in os.walk("/proc"):
    folders[:] = [name for name in folders if not name.isdigit() and name not in ("self", "thread-self")]
    for name in names:
        # Opened and not written: a test must not change the machine it proves safe.
        path = os.path.join(folder, name)
        attempt(f"opens {path} to write", lambda path=path: os.close(os.open(path, os.O_WRONLY)) is None)
attempt("ledger folder lists", lambda: os.listdir(".mentu"))
attempt("ledger folder is writable", lambda: write(".mentu/ledger.jsonl"))
attempt("ledger folder can be renamed", lambda: os.rename(".mentu", "moved") is None)
attempt("ledger folder can be removed", lambda: os.rmdir(".mentu") is None)
for home in ("/root", os.environ["OTHER_HOME"]):
    attempt(f"other home {home}", lambda home=home: open(os.path.join(home, "key")).read())
for path in ("/etc/shadow", "/etc/ssl/private", "/sys/kernel", "/var/lib"):
    attempt(f"reads {path}", lambda path=path: os.listdir(path) if os.path.isdir(path) else open(path).read())
attempt("sees more of /run than its claims", lambda: set(os.listdir("/run")) - {"troth"})
attempt("network", lambda: socket.create_connection(("127.0.0.1", int(os.environ["OPEN_PORT"])), 1))
attempt("signals the launcher", lambda: os.kill(int(os.environ["LAUNCHER"]), signal.SIGTERM) is None)
attempt("parent's parent", lambda: os.getppid() not in (0, 1) and os.kill(os.getppid(), 0) is None)
for variable in ("SUDO_USER", "SSH_AUTH_SOCK", "AWS_SECRET_ACCESS_KEY"):
    attempt(f"variable {variable}", lambda variable=variable: variable in os.environ)
mounts()
namespaces()
tracer()
try:
    os.kill(1, signal.SIGKILL)  # the sandbox's own first process: the kernel keeps it from its children
except OSError:
    pass
print("end", flush=True)
sys.exit(0)
