"""Whether observing works on this machine, and what mends it when it does not.

Facts are gathered by trying the real thing (a traced ``true`` in a sandbox); a pure function turns them into what is
missing. ``troth doctor`` shows the list, and a run refuses with the same words.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from troth.core.errors import Refused

PACKAGES: Final[Mapping[str, str]] = {"strace": "strace", "bwrap": "bubblewrap"}
"""Programs that observing needs: name of the program -> name of the Debian package that brings it."""

SANDBOX_PROBE: Final = (
    "bwrap", "--unshare-user", "--uid", "1000", "--gid", "1000", "--disable-userns", "--unshare-pid", "--unshare-ipc",
    "--unshare-uts", "--unshare-net", "--cap-drop", "ALL", "--die-with-parent", "--ro-bind", "/", "/",
    "--proc", "/proc", "--dev", "/dev", "--", "true",
)  # fmt: skip
"""A sandbox of the kind a run uses, around a program that does nothing."""

TRACER_PROBE: Final = (
    "strace", "-f", "--seccomp-bpf", "-e", "trace=execve", "-o", "/dev/null", "--", "true",
)  # fmt: skip
"""The tracer as a run uses it, around a program that does nothing."""

KNOBS: Final = (
    "kernel/unprivileged_userns_clone",
    "kernel/apparmor_restrict_unprivileged_userns",
    "kernel/yama/ptrace_scope",
    "user/max_user_namespaces",
)
"""Kernel settings below ``/proc/sys`` that can forbid a sandbox or a tracer."""

CONTAINER_COMMAND: Final = 'docker run --rm -it --privileged -v "$PWD":"$PWD" -w "$PWD" debian:stable bash'

CONTAINER_OPTIONS: Final = (
    "--cap-add SYS_PTRACE --security-opt seccomp=unconfined --security-opt apparmor=unconfined "
    "--security-opt systempaths=unconfined"
)
"""What a container of Docker's or Podman's needs beyond its defaults for a sandbox and a tracer in it."""

APPARMOR_PROFILE: Final = "abi <abi/4.0>, profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }"
"""What lets bubblewrap alone make user namespaces where AppArmor keeps them from programs without a profile."""

_PROBE_SECONDS: Final = 20


@dataclass(frozen=True, slots=True)
class Missing:
    """One thing that stands in the way.

    Args:
        code: stable word for programs.
        what: one sentence for a person: what was found.
        remedy: the command that mends it, or a sentence when no command can.
    """

    code: str
    what: str
    remedy: str

    def as_json(self) -> dict[str, str]:
        """Return the three members."""
        return {"code": self.code, "what": self.what, "remedy": self.remedy}


@dataclass(frozen=True, slots=True)
class Probe:
    """How a probe ended: exit status and what it said on stderr; ``exit`` is ``None`` when it never answered."""

    exit: int | None
    said: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What was found on this machine.

    Args:
        system: the kernel's name, ``Linux`` or another.
        programs: name -> path, for those of ``PACKAGES`` that are installed.
        sandbox: the sandbox's probe, ``None`` when its program is not installed.
        tracer: the tracer's probe, ``None`` when its program is not installed.
        together: both around each other, ``None`` unless each works alone.
        knobs: kernel setting -> value, for those that exist.
        in_container: whether this looks like the inside of a container.
        filtered: whether a filter of system calls (seccomp) lies over this process.
        is_root: whether commands need no ``sudo`` here.
    """

    system: str
    programs: Mapping[str, str] = field(default_factory=dict)
    sandbox: Probe | None = None
    tracer: Probe | None = None
    together: Probe | None = None
    knobs: Mapping[str, str] = field(default_factory=dict)
    in_container: bool = False
    filtered: bool = False
    is_root: bool = False

    def as_root(self, command: str) -> str:
        """Return the command as one has to type it here."""
        return command if self.is_root else f"sudo {command}"


def _probe(argv: Sequence[str]) -> Probe:
    try:
        done = subprocess.run(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=_PROBE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as fault:
        return Probe(None, str(fault))
    return Probe(done.returncode, done.stderr.decode("utf-8", "replace").strip())


def _works(probe: Probe | None) -> bool:
    return probe is not None and probe.exit == 0


def gather() -> Facts:
    """Look at this machine: programs, kernel settings, and the probes really run (well under a second)."""
    system = platform.system()
    if system != "Linux":
        return Facts(system)
    programs = {name: path for name in PACKAGES if (path := shutil.which(name)) is not None}
    knobs: dict[str, str] = {}
    for name in KNOBS:
        try:
            knobs[name] = (Path("/proc/sys") / name).read_text("ascii").strip()
        except (OSError, ValueError):
            continue
    sandbox = _probe(SANDBOX_PROBE) if "bwrap" in programs else None
    tracer = _probe(TRACER_PROBE) if "strace" in programs else None
    both = (*TRACER_PROBE[:-1], *SANDBOX_PROBE) if _works(sandbox) and _works(tracer) else None
    return Facts(
        system=system,
        programs=programs,
        sandbox=sandbox,
        tracer=tracer,
        together=_probe(both) if both else None,
        knobs=knobs,
        in_container=any(Path(mark).exists() for mark in ("/.dockerenv", "/run/.containerenv")),
        filtered=_filtered(),
        is_root=os.geteuid() == 0,
    )


def _filtered() -> bool:
    try:
        words = Path("/proc/self/status").read_text("ascii", "replace").split()
    except OSError:
        return False
    return "Seccomp:" in words[:-1] and words[words.index("Seccomp:") + 1] == "2"


def diagnose(facts: Facts) -> list[Missing]:
    """Return what is missing, in the order in which it is best mended; empty when observing works."""
    if facts.system != "Linux":
        return [
            Missing(
                "not-linux",
                f"Observing and grading need Linux; this is {facts.system or 'an unknown system'}.",
                f"Work in a Linux container: {CONTAINER_COMMAND}",
            )
        ]
    found: list[Missing] = []
    absent = [name for name in PACKAGES if name not in facts.programs]
    if absent:
        packages = " ".join(PACKAGES[name] for name in absent)
        found.append(
            Missing(
                "program",
                f"Not installed: {', '.join(absent)}.",
                facts.as_root(f"apt-get install {packages}"),
            )
        )
    if facts.sandbox is not None and not _works(facts.sandbox):
        found.append(_sandbox_fault(facts, facts.sandbox))
    if facts.tracer is not None and not _works(facts.tracer):
        found.append(_tracer_fault(facts, facts.tracer))
    if facts.together is not None and not _works(facts.together):
        found.append(
            Missing(
                "together",
                f"A traced sandbox does not start: {_first_line(facts.together)}",
                _by_surroundings(facts),
            )
        )
    return found


def _first_line(probe: Probe) -> str:
    return probe.said.splitlines()[0][:300] if probe.said else f"exit {probe.exit}, and no word why."


def _by_surroundings(facts: Facts) -> str:
    if facts.in_container and facts.filtered:
        return (
            f"The container's filter of system calls is in the way: start it with {CONTAINER_OPTIONS}, "
            f"or with all rights: {CONTAINER_COMMAND}"
        )
    if facts.in_container:
        return f"Start the container with more rights: {CONTAINER_COMMAND}"
    return "Run troth outside whatever confines this shell (a seccomp filter, AppArmor, SELinux)."


def _sandbox_fault(facts: Facts, probe: Probe) -> Missing:
    said = _first_line(probe)
    if "nknown option" in probe.said:
        return Missing(
            "sandbox-old",
            f"This bubblewrap is too old; 0.8 or newer is needed: {said}",
            facts.as_root("apt-get install bubblewrap (from Debian 12 or newer)"),
        )
    remedy = _by_surroundings(facts)
    if facts.knobs.get("user/max_user_namespaces") == "0":
        remedy = facts.as_root("sysctl -w user.max_user_namespaces=15000")
    elif facts.knobs.get("kernel/unprivileged_userns_clone") == "0":
        remedy = facts.as_root("sysctl -w kernel.unprivileged_userns_clone=1")
    elif facts.knobs.get("kernel/apparmor_restrict_unprivileged_userns") == "1":
        remedy = (
            f"{facts.as_root('sysctl -w kernel.apparmor_restrict_unprivileged_userns=0')}   (for bubblewrap alone: "
            f"write {APPARMOR_PROFILE!r} to /etc/apparmor.d/bwrap, and {facts.as_root('systemctl reload apparmor')})"
        )
    elif "uid map" in probe.said:
        remedy = (
            "This user's numbers cannot be mapped (see /proc/self/uid_map): work as a user of the machine, "
            f"or in a container with more rights: {CONTAINER_COMMAND}"
        )
    return Missing("user-namespaces", f"A sandbox does not start (user namespaces): {said}", remedy)


def _tracer_fault(facts: Facts, probe: Probe) -> Missing:
    said = _first_line(probe)
    if "unrecognized option" in probe.said or "invalid" in probe.said:
        return Missing(
            "tracer-old",
            f"This strace is too old; 5.9 or newer is needed: {said}",
            facts.as_root("apt-get install strace (from Debian 11 or newer)"),
        )
    remedy = _by_surroundings(facts)
    if facts.knobs.get("kernel/yama/ptrace_scope") == "3":
        remedy = (
            "kernel.yama.ptrace_scope is 3, which forbids tracing until the next start: "
            "take it out of /etc/sysctl.d and restart the machine"
        )
    elif facts.knobs.get("kernel/yama/ptrace_scope") == "2" and not facts.is_root:
        remedy = facts.as_root("sysctl -w kernel.yama.ptrace_scope=1")
    return Missing("ptrace", f"Tracing does not work (ptrace): {said}", remedy)


def observer_ready() -> list[Missing]:
    """Return what keeps this machine from observing and grading; empty when both work."""
    return diagnose(gather())


def refusal(missing: Sequence[Missing]) -> Refused:
    """Return the one error with which a run or a grading refuses; ``missing`` must not be empty.

    The code is ``E_OBSERVER_MISSING``; ``detail`` holds every missing thing.
    """
    first = missing[0]
    more = f" ({len(missing) - 1} more: see `troth doctor`.)" if len(missing) > 1 else ""
    return Refused(
        "E_OBSERVER_MISSING",
        first.what,
        remedy=f"Mend it with: {first.remedy}{more}" if first.code != "not-linux" else first.remedy,
        detail=[entry.as_json() for entry in missing],
    )


def require_observer() -> None:
    """Refuse where observing cannot work.

    Raises:
        Refused: as :func:`refusal` says.
    """
    missing = observer_ready()
    if missing:
        raise refusal(missing)
