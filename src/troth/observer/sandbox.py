"""The sandbox: a user namespace with an unprivileged uid, no capabilities and only the system it needs.

What it sees: ``/usr`` and a few files of ``/etc`` read-only, the toolchain folders named, the workspace at its own
path, a private ``/tmp`` and a private throw-away home. No other home, no keys, no ``/run``, no ``/sys``, and by default
no network. It cannot create further user namespaces, so it cannot win capabilities back.
"""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused

HOME: Final = "/home/agent"
"""Where the private home stands inside."""

CLAIMS: Final = "/run/troth/claims.jsonl"
"""Where an agent appends its claims (named in ``TROTH_CLAIMS``)."""

HOSTNAME: Final = "sandbox"
"""What the machine is called inside."""

UID: Final = 1000
"""User and group id inside."""

_ETC: Final = (
    "alternatives", "ca-certificates", "debian_version", "host.conf", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
    "locale.alias", "localtime", "mime.types", "nsswitch.conf", "os-release", "protocols", "services", "shells",
    "ssl/certs", "ssl/openssl.cnf", "timezone", "terminfo", "magic",
)  # fmt: skip
"""Files of ``/etc`` that programs need and that hold no secret (``ssl/private`` is not among them)."""

_ETC_NETWORK: Final = ("hosts", "resolv.conf", "gai.conf")

_KEPT_VARIABLES: Final = (
    "PATH",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TERM",
    "COLORTERM",
    "TZ",
    "NO_COLOR",
    "LINES",
    "COLUMNS",
)

CACHES: Final[Mapping[str, str]] = {
    # A cache written into the workspace would make other runs' claims stale (done records §13.11). Bytecode is not
    # written at all: a bytecode prefix mirrors `site-packages` into its paths, which readers take for a grader path.
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTEST_ADDOPTS": "-o cache_dir=/tmp/.cache/pytest",
    "MYPY_CACHE_DIR": "/tmp/.cache/mypy",  # noqa: S108 - the sandbox's own private folder
    "RUFF_CACHE_DIR": "/tmp/.cache/ruff",  # noqa: S108 - the sandbox's own private folder
    "COVERAGE_FILE": "/tmp/.cache/coverage",  # noqa: S108 - the sandbox's own private folder
    "HYPOTHESIS_STORAGE_DIRECTORY": "/tmp/.cache/hypothesis",  # noqa: S108 - the sandbox's own private folder
    "XDG_CACHE_HOME": "/tmp/.cache",  # noqa: S108 - the sandbox's own private folder
    "npm_config_cache": "/tmp/.cache/npm",  # noqa: S108 - the sandbox's own private folder
    "PIP_CACHE_DIR": "/tmp/.cache/pip",  # noqa: S108 - the sandbox's own private folder
    "UV_CACHE_DIR": "/tmp/.cache/uv",  # noqa: S108 - the sandbox's own private folder
    "GOCACHE": "/tmp/.cache/go",  # noqa: S108 - the sandbox's own private folder
    # Cargo also runs, unbuilt, what lies in a target folder with the right times: an agent's would be graded.
    "CARGO_TARGET_DIR": "/tmp/.cache/cargo",  # noqa: S108 - the sandbox's own private folder
}


@dataclass(frozen=True, slots=True)
class SandboxSpec:
    """What one sandbox is made of.

    Args:
        workspace: host folder the program works in, mounted writable.
        inside: absolute path at which it stands inside.
        private: host folder, owner-only, for the sandbox's home, tmp and generated files; ``prepare`` fills it.
        environment: the environment inside (see ``base_environment``), shown in argument vectors and records.
        secrets: further variables whose values are shown nowhere.
        read_only: further host paths mounted read-only at their own places.
        writable: further host paths mounted writable at their own places.
        network: share the host's network.
        claims: host file mounted writable at ``CLAIMS``.
        shown: further host folders and files with the paths at which they are mounted read-only.
        emptied: folders within what is shown in whose place an empty one stands, to which may be written.
        links: symbolic links that are made inside, as (target, place).
    """

    workspace: Path
    inside: str
    private: Path
    environment: Mapping[str, str]
    secrets: Mapping[str, str] = field(default_factory=dict)
    read_only: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    network: bool = False
    claims: Path | None = None
    shown: tuple[tuple[Path, str], ...] = ()
    emptied: tuple[Path, ...] = ()
    links: tuple[tuple[str, str], ...] = ()
    hidden: tuple[str, ...] = field(default=(".mentu",))


def toolchain() -> tuple[Path, ...]:
    """Return the folders outside ``/usr`` that the running Python needs: its environment and its base."""
    found: list[Path] = []
    for prefix in (sys.prefix, sys.base_prefix):
        path = Path(prefix).resolve()
        if path != Path("/usr") and Path("/usr") not in path.parents and path not in found:
            found.append(path)
    return tuple(found)


def base_environment(
    *,
    caches: bool = True,
    claims: bool = False,
    source: Mapping[str, str] | None = None,
    programs: Sequence[str] = (),
) -> dict[str, str]:
    """Return a fresh environment: a few harmless variables, the private home, and caches out of the workspace.

    Args:
        caches: point well-known caches at the private temporary folder.
        claims: name the claims file.
        source: where values come from; the process's own environment by default.
        programs: folders that are searched for programs before all others.
    """
    origin = os.environ if source is None else source
    result = {name: origin[name] for name in _KEPT_VARIABLES if name in origin}
    own = str(Path(sys.executable).parent)
    path = result.get("PATH", "/usr/local/bin:/usr/bin:/bin")
    # The environment this program runs in brings the `python` that tests are run with.
    result["PATH"] = ":".join((*programs, path if own in path.split(":") else f"{own}:{path}"))
    result |= {"HOME": HOME, "USER": "agent", "LOGNAME": "agent", "TMPDIR": "/tmp", "SHELL": "/bin/sh"}  # noqa: S108 - private inside
    if caches:
        result |= CACHES
    if claims:
        result["TROTH_CLAIMS"] = CLAIMS
    return result


def bwrap_version() -> str:
    """Return bubblewrap's own version line.

    Raises:
        Refused: ``E_OBSERVER_MISSING`` when it is not installed.
    """
    program = shutil.which("bwrap")
    if program is None:
        raise Refused("E_OBSERVER_MISSING", "bubblewrap is not installed", remedy="Run: apt-get install bubblewrap")
    answer = subprocess.run([program, "--version"], capture_output=True, text=True, check=False, timeout=20)
    return answer.stdout.strip() or "bubblewrap"


def closed_to_root(path: Path) -> Path | None:
    """Return the first folder on the way to ``path`` that the sandbox of a run started by root cannot pass.

    In its user namespace root has no capabilities over the system's files: a folder of somebody else that is closed to
    others stays closed. Nothing is closed to anybody else who could name the path at all.
    """
    if os.geteuid() != 0:
        return None
    for folder in (*reversed(path.parents), path):
        try:
            info = folder.stat()
        except OSError:
            return None
        if info.st_uid != 0 and stat.S_ISDIR(info.st_mode) and not info.st_mode & 0o001:
            return folder
    return None


def require_reachable(paths: Iterable[Path]) -> None:
    """Refuse what root's sandbox could not mount.

    Raises:
        Refused: ``E_SANDBOX_UNREACHABLE`` naming the folder that is closed.
    """
    for path in paths:
        folder = closed_to_root(path)
        if folder is not None:
            owner = folder.stat().st_uid
            raise Refused(
                "E_SANDBOX_UNREACHABLE",
                f"root's sandbox cannot reach {path}: {folder} is closed to others and belongs to user {owner}",
                remedy="Run troth as that user, or keep the workspace and troth itself elsewhere.",
                place=Place(str(folder)),
            )


def prepare(spec: SandboxSpec) -> None:
    """Make the private folders and files that the sandbox mounts.

    Raises:
        Refused: ``E_SANDBOX_UNREACHABLE`` when root's sandbox could not pass a folder on the way to a mount.
    """
    require_reachable((spec.workspace, spec.private, *spec.read_only, *spec.writable))
    for name in ("home", "tmp", "etc"):
        (spec.private / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    (spec.private / "tmp").chmod(0o700)
    (spec.private / "etc" / "passwd").write_text(
        f"root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nagent:x:{UID}:{UID}:agent:{HOME}:/bin/sh\n",
        encoding="utf-8",
    )
    (spec.private / "etc" / "group").write_text(f"root:x:0:\nagent:x:{UID}:\n", encoding="utf-8")
    (spec.private / "etc" / "hosts").write_text(f"127.0.0.1 localhost {HOSTNAME}\n::1 localhost\n", encoding="utf-8")


def _root_arguments(spec: SandboxSpec) -> list[str]:
    arguments = [
        "--unshare-user", "--uid", str(UID), "--gid", str(UID), "--disable-userns",
        "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
        "--hostname", HOSTNAME, "--cap-drop", "ALL", "--die-with-parent",
    ]  # fmt: skip
    if not spec.network:
        arguments.append("--unshare-net")
    arguments += ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            arguments += ["--symlink", os.readlink(path), str(path)]
        elif path.is_dir():
            arguments += ["--ro-bind", str(path), str(path)]
    for name in (*_ETC, *(_ETC_NETWORK if spec.network else ())):
        path = Path("/etc", name)
        if path.exists():
            arguments += ["--ro-bind", str(path), str(path)]
    return arguments


def _proc_arguments() -> list[str]:
    """Return what covers the parts of ``/proc`` that are not about processes.

    The kernel asks there for a user id, not for a capability: to it, the sandbox of a run that root started is root
    still, and could rewrite ``/proc/sys/kernel/core_pattern``. ``/proc/sys`` is left to read; other folders are
    emptied, files that not everybody may read are blank, and those that could be written are read-only.
    """
    arguments: list[str] = []
    for entry in sorted(os.scandir("/proc"), key=lambda item: item.name):
        if entry.name.isdigit() or entry.is_symlink():
            continue
        if entry.name == "sys":
            arguments += ["--ro-bind", entry.path, entry.path]
        elif entry.is_dir(follow_symlinks=False):
            arguments += ["--tmpfs", entry.path, "--remount-ro", entry.path]
        else:
            mode = entry.stat(follow_symlinks=False).st_mode
            if not mode & 0o004:
                arguments += ["--ro-bind", "/dev/null", entry.path]
            elif mode & 0o222:
                arguments += ["--ro-bind", entry.path, entry.path]
    return arguments


def bwrap_argv(spec: SandboxSpec, argv: Sequence[str], *, extra: Sequence[str] = ()) -> list[str]:
    """Return the whole argument vector of bubblewrap that runs ``argv`` in this sandbox.

    ``extra`` stands before the program (for example ``--info-fd``).
    """
    private = spec.private
    arguments = ["bwrap", *_root_arguments(spec)]
    arguments += ["--ro-bind", str(private / "etc" / "passwd"), "/etc/passwd"]
    arguments += ["--ro-bind", str(private / "etc" / "group"), "/etc/group"]
    if not spec.network:
        # Without it not even the loopback interface, which is there, could be found by its name.
        arguments += ["--ro-bind", str(private / "etc" / "hosts"), "/etc/hosts"]
    arguments += ["--proc", "/proc", *_proc_arguments(), "--dev", "/dev"]
    arguments += ["--bind", str(private / "tmp"), "/tmp"]  # noqa: S108 - the sandbox's own private folder
    arguments += ["--bind", str(private / "home"), HOME]
    for path in spec.read_only:
        arguments += ["--ro-bind", str(path), str(path)]
    for path in spec.emptied:
        arguments += ["--tmpfs", str(path)]
    for path in spec.writable:
        arguments += ["--bind", str(path), str(path)]
    arguments += ["--bind", str(spec.workspace), spec.inside]
    for path in toolchain():
        # An environment in the workspace is what the witness itself is loaded from.
        if path in spec.read_only and _beneath(str(path), spec.inside):
            arguments += ["--ro-bind", str(path), str(path)]
    for name in spec.hidden:
        hidden = spec.workspace / name
        if hidden.is_dir() and not hidden.is_symlink():
            where = f"{spec.inside.rstrip('/')}/{name}"
            arguments += ["--tmpfs", where, "--remount-ro", where]
    if spec.claims is not None:
        arguments += ["--bind", str(spec.claims), CLAIMS]
    for path, place in spec.shown:
        arguments += ["--ro-bind", str(path), place]
    for target, place in spec.links:
        arguments += ["--symlink", target, place]
    arguments += ["--remount-ro", "/", "--chdir", spec.inside, "--clearenv"]
    for name, value in sorted(spec.environment.items()):
        arguments += ["--setenv", name, value]
    return [*arguments, *extra, "--", *argv]


def sees(spec: SandboxSpec, path: str) -> bool:
    """Tell whether what stands at an absolute host path stands at the same path inside."""
    hidden = [os.path.join(spec.inside, name) for name in spec.hidden]
    if any(_beneath(path, name) for name in hidden):
        return False
    system = ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", *(f"/etc/{name}" for name in _ETC)]
    named = [str(root) for root in (*spec.read_only, *spec.writable)]
    own = [spec.inside] if spec.inside == str(spec.workspace) else []
    called = [place for _, place in spec.links]
    return any(_beneath(path, root) for root in (*system, *named, *own, *called))


def _beneath(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")


def program_seen(spec: SandboxSpec, name: str) -> bool:
    """Tell whether a program's name leads inside to a file that can be executed; a path is relative to the workspace.

    It is found, as a shell would, in the folders of the sandbox's own ``PATH``.
    """
    folders = [spec.inside] if "/" in name else spec.environment.get("PATH", "").split(":")
    for folder in folders:
        found = os.path.normpath(os.path.join(spec.inside, folder, name))
        real = os.path.realpath(found)
        if sees(spec, found) and sees(spec, real) and os.path.isfile(real) and os.stat(real).st_mode & 0o111:
            return True
    return False


def root_digest(spec: SandboxSpec) -> str:
    """Return the digest of the sandbox's root description (the ``image`` of a launch record, done records §13.7)."""
    described = {
        "root": _root_arguments(spec),
        "read_only": [str(path) for path in spec.read_only],
        "writable": [str(path) for path in spec.writable],
        "network": spec.network,
        "hidden": list(spec.hidden),
    }
    return sha256_hex(record_bytes(described))


def child_pid(status: bytes) -> int | None:
    """Return the host pid of the sandbox's first process from bubblewrap's JSON status lines."""
    import json

    for line in status.splitlines():
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and type(value.get("child-pid")) is int and value["child-pid"] > 0:
            return int(value["child-pid"])
    return None
