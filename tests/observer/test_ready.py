"""Whether observing works: each thing that can be missing, and the command that mends it."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from troth.cli import doctor
from troth.cli.main import main
from troth.core.errors import Refused
from troth.observer import ready
from troth.observer.ready import Facts, Missing, Probe, diagnose, refusal

FINE = Probe(0)
GOOD = Facts(
    system="Linux",
    programs={"strace": "/usr/bin/strace", "bwrap": "/usr/bin/bwrap"},
    sandbox=FINE,
    tracer=FINE,
    together=FINE,
    knobs={"user/max_user_namespaces": "63000", "kernel/yama/ptrace_scope": "1"},
)
DENIED = Probe(1, "bwrap: No permissions to create new namespace\nmore words")


def test_a_machine_where_everything_works_misses_nothing() -> None:
    assert diagnose(GOOD) == []


@pytest.mark.parametrize("system", ["Darwin", "Windows", ""])
def test_another_system_gets_one_sentence_and_the_way_out(system: str) -> None:
    (missing,) = diagnose(Facts(system))
    assert missing.code == "not-linux"
    assert missing.what.count(".") == 1
    assert "Linux container" in missing.remedy


@pytest.mark.parametrize(
    ("facts", "code", "remedy"),
    [
        (
            replace(GOOD, programs={"bwrap": "/usr/bin/bwrap"}, tracer=None, together=None),
            "program",
            "sudo apt-get install strace",
        ),
        (
            Facts("Linux", is_root=True),
            "program",
            "apt-get install strace bubblewrap",
        ),
        (
            replace(GOOD, sandbox=DENIED, together=None, knobs={"user/max_user_namespaces": "0"}),
            "user-namespaces",
            "sudo sysctl -w user.max_user_namespaces=15000",
        ),
        (
            replace(GOOD, sandbox=DENIED, together=None, knobs={"kernel/unprivileged_userns_clone": "0"}),
            "user-namespaces",
            "sudo sysctl -w kernel.unprivileged_userns_clone=1",
        ),
        (
            replace(GOOD, sandbox=DENIED, together=None, knobs={"kernel/apparmor_restrict_unprivileged_userns": "1"}),
            "user-namespaces",
            "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0   (for bubblewrap alone: write "
            "'abi <abi/4.0>, profile bwrap /usr/bin/bwrap flags=(unconfined) { userns, }' to /etc/apparmor.d/bwrap, "
            "and sudo systemctl reload apparmor)",
        ),
        (
            replace(GOOD, sandbox=DENIED, together=None, in_container=True, filtered=True),
            "user-namespaces",
            f"The container's filter of system calls is in the way: start it with {ready.CONTAINER_OPTIONS}, "
            f"or with all rights: {ready.CONTAINER_COMMAND}",
        ),
        (
            replace(GOOD, sandbox=Probe(1, "bwrap: setting up uid map: Permission denied"), together=None),
            "user-namespaces",
            "This user's numbers cannot be mapped (see /proc/self/uid_map): work as a user of the machine, "
            f"or in a container with more rights: {ready.CONTAINER_COMMAND}",
        ),
        (
            replace(GOOD, tracer=Probe(1, "no"), together=None, knobs={"kernel/yama/ptrace_scope": "2"}),
            "ptrace",
            "sudo sysctl -w kernel.yama.ptrace_scope=1",
        ),
        (
            replace(GOOD, sandbox=DENIED, together=None, in_container=True),
            "user-namespaces",
            f"Start the container with more rights: {ready.CONTAINER_COMMAND}",
        ),
        (
            replace(GOOD, sandbox=Probe(1, "bwrap: Unknown option --disable-userns"), together=None),
            "sandbox-old",
            "sudo apt-get install bubblewrap (from Debian 12 or newer)",
        ),
        (
            replace(GOOD, tracer=Probe(1, "strace: unrecognized option '--decode-pids=pidns'"), together=None),
            "tracer-old",
            "sudo apt-get install strace (from Debian 11 or newer)",
        ),
        (
            replace(GOOD, tracer=Probe(1, "strace: PTRACE: Operation not permitted"), together=None, in_container=True),
            "ptrace",
            f"Start the container with more rights: {ready.CONTAINER_COMMAND}",
        ),
        (
            replace(GOOD, together=Probe(None, "timed out")),
            "together",
            "Run troth outside whatever confines this shell (a seccomp filter, AppArmor, SELinux).",
        ),
    ],
)
def test_each_thing_missing_is_named_with_what_mends_it(facts: Facts, code: str, remedy: str) -> None:
    (missing,) = diagnose(facts)
    assert (missing.code, missing.remedy) == (code, remedy)
    assert "\n" not in missing.what


def test_tracing_that_is_locked_until_the_next_start_says_so() -> None:
    facts = replace(
        GOOD, tracer=Probe(1, "strace: Operation not permitted"), together=None, knobs={"kernel/yama/ptrace_scope": "3"}
    )
    (missing,) = diagnose(facts)
    assert "ptrace_scope is 3" in missing.remedy


def test_a_probe_that_says_nothing_still_makes_a_sentence() -> None:
    (missing,) = diagnose(replace(GOOD, sandbox=Probe(1), together=None))
    assert missing.what.endswith("exit 1, and no word why.")


def test_several_things_are_all_told_in_order() -> None:
    facts = replace(GOOD, sandbox=DENIED, tracer=Probe(1, "no"), together=None)
    found = diagnose(facts)
    assert [entry.code for entry in found] == ["user-namespaces", "ptrace"]
    error = refusal(found)
    assert isinstance(error, Refused)
    assert error.exit_code == 2
    assert error.code == "E_OBSERVER_MISSING"
    assert error.message == found[0].what
    assert error.remedy is not None
    assert "1 more" in error.remedy
    assert [entry["code"] for entry in error.detail] == ["user-namespaces", "ptrace"]


def test_a_program_that_is_not_there_is_found_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(ready.platform, "system", lambda: "Linux")
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = ready.gather()
    assert facts.programs == {}
    assert facts.sandbox is facts.tracer is facts.together is None
    assert [entry.code for entry in diagnose(facts)] == ["program"]


@pytest.mark.skipif(sys.platform == "win32", reason="stand-ins are shell scripts")
def test_a_sandbox_that_fails_is_tried_and_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, text in {"bwrap": "echo 'bwrap: not allowed' >&2; exit 1", "strace": "exit 0"}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(ready.platform, "system", lambda: "Linux")
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = ready.gather()
    assert facts.sandbox == Probe(1, "bwrap: not allowed")
    assert facts.tracer == FINE
    assert facts.together is None  # nothing to learn from both when one fails alone
    assert [entry.code for entry in diagnose(facts)] == ["user-namespaces"]


@pytest.mark.observer
@pytest.mark.skipif(shutil.which("strace") is None or shutil.which("bwrap") is None, reason="strace and bubblewrap")
def test_the_probes_are_ones_that_these_programs_understand() -> None:
    facts = ready.gather()
    for probe in (facts.sandbox, facts.tracer):
        assert probe is not None
        assert "option" not in probe.said


SOMETHING = Missing("program", "Not installed: strace.", "sudo apt-get install strace")


@pytest.mark.parametrize(("missing", "status"), [([], 0), ([SOMETHING], 1)])
def test_the_doctor_tells_the_same_words(
    missing: list[Missing], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ready, "observer_ready", lambda: missing)
    assert main(["doctor"]) == status
    said = capsys.readouterr().out
    assert ("not ready" in said) is bool(missing)
    for entry in missing:
        assert f"  {entry.what}\n    {entry.remedy}\n" in said
    assert main(["doctor", "--json"]) == status
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is not bool(missing)
    assert told["missing"] == [entry.as_json() for entry in missing]
    assert set(told["programs"]) == {"strace", "bwrap", "git"}


def test_the_doctor_survives_a_program_that_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "git").write_bytes(b"\x7fnot a program")
    (tmp_path / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(ready, "observer_ready", lambda: [SOMETHING])
    found = doctor.examine()
    assert found["programs"]["strace"] is None
    if sys.platform != "win32":
        assert found["programs"]["git"] == {"path": str(tmp_path / "git"), "version": None}
