"""Verifications that a program does: commands on what was reviewed, in the sandbox, and doing them again."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from support.observing import needs_observer
from support.reviewing import Reviewer, finding, response, started
from troth.airlock.reviewing import checks, host
from troth.airlock.reviewing.checks import recheck, run_command
from troth.airlock.reviewing.session import Session
from troth.core.errors import Refused

CART = b"def total(items):\n    return sum(items)\n"
TEST = b"from cart import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
PYTEST = ("pytest", "-q", "-p", "no:cacheprovider")
WHO = "agent:host"

pytestmark = [needs_observer, pytest.mark.observer]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (root / ".mentu").mkdir(parents=True)
    (root / "cart.py").write_bytes(CART)
    (root / "test_cart.py").write_bytes(TEST)
    return root


def reviewed(work: Path, name: str = "cart.py", data: bytes = CART) -> Session:
    evidence = [{"anchor": {"type": "file_range", "path": name}, "observation": "Sums.", "grounding": "inferred"}]
    answer = response(finding(1, "The total is wrong.", evidence=evidence))
    session = started(work / ".mentu", Reviewer(answer), {name: data}, root=str(work))
    host.triage(session, "F001", "checkable", None, WHO)
    return session


def test_what_was_reviewed_is_judged_and_not_the_working_copy(work: Path) -> None:
    session = reviewed(work)
    (work / "cart.py").write_text("def total(items):\n    return 0\n")
    ran = run_command(session, PYTEST)
    assert (ran.result, ran.facts["exit"]) == ("contradicts", 0)
    assert ran.detail.startswith("pytest -q -p no:cacheprovider: exit 0 (on what was reviewed, in the tree sha256:")
    assert set(ran.facts) >= {"output_sha256", "tree_sha256", "exit"}
    assert (work / "cart.py").read_text().endswith("return 0\n")
    wrong = reviewed(work, data=b"def total(items):\n    return 0\n")
    (work / "cart.py").write_bytes(CART)
    assert run_command(wrong, PYTEST).result == "supports"


def test_the_command_can_change_and_reach_nothing(work: Path) -> None:
    session = reviewed(work)
    before = sorted((path.name, path.read_bytes()) for path in work.iterdir() if path.is_file())
    ran = run_command(session, ("sh", "-c", "echo spoilt > cart.py; ls -a; ls .mentu; true"))
    assert b"run.json" not in ran.output
    assert b"reviews" not in ran.output
    assert sorted((path.name, path.read_bytes()) for path in work.iterdir() if path.is_file()) == before


@pytest.mark.parametrize(
    ("argv", "result", "ended"),
    [
        (("true",), "contradicts", "exit 0"),
        (("false",), "supports", "exit 1"),
        (("sh", "-c", "exit 2"), "inconclusive", "exit 2"),
        (("sh", "-c", "kill -9 $$"), "inconclusive", "signal 9"),
        (("no-such-program",), "inconclusive", "could not be started"),
        (("sleep", "60"), "inconclusive", "was ended by the limit of time"),
        ((*PYTEST, "-k", "nothing"), "inconclusive", "exit 5, and no test ran"),
    ],
)
def test_what_an_end_says(work: Path, argv: tuple[str, ...], result: str, ended: str) -> None:
    ran = run_command(reviewed(work), argv, seconds=30 if argv[0] != "sleep" else 1)
    assert (ran.result, ran.facts["ended"]) == (result, ended)


def test_the_host_says_what_passing_means_and_not_what_came_out(work: Path) -> None:
    session = reviewed(work)
    assert run_command(session, ("grep", "-q", "sum", "cart.py"), passing="supports").result == "supports"
    assert run_command(session, ("grep", "-q", "max", "cart.py"), passing="supports").result == "contradicts"
    told = run_command(session, ("grep", "-q", "max", "cart.py"), passing="supports", failing="inconclusive")
    assert told.result == "inconclusive"


def test_a_link_in_the_tree_leads_nowhere(work: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "cart.py").write_text("outside\n")
    session = reviewed(work, "lib/cart.py")
    (work / "lib").symlink_to(outside)
    ran = run_command(session, ("grep", "-q", "sum", "lib/cart.py"), passing="supports")
    assert ran.result == "supports"
    assert (outside / "cart.py").read_text() == "outside\n"


def test_it_is_not_run_again_on_the_same_tree(work: Path) -> None:
    session = reviewed(work)
    argv = ("sh", "-c", "date +%N; false")
    ran = run_command(session, argv, finding_id="F001")
    entry = {"method": "command", "result": ran.result, "detail": ran.detail}
    assert host.verify(session, "F001", entry, WHO, facts={"run": dict(ran.facts)})
    again = run_command(Session(session.folder), argv, finding_id="F001")
    assert again.earlier
    assert dict(again.facts) == dict(ran.facts)
    (work / "other.py").write_text("")
    assert not run_command(session, argv, finding_id="F001").earlier


def test_recheck_tells_what_differs(work: Path) -> None:
    session = reviewed(work)
    for argv in (PYTEST, ("grep", "-q", "sum", "cart.py")):
        ran = run_command(session, argv)
        entry = {"method": "command", "result": ran.result, "detail": ran.detail}
        host.verify(session, "F001", entry, WHO, facts={"run": dict(ran.facts)})
    assert [again.state for again in recheck(session)] == ["same", "same"]
    # The artifact stands as it was reviewed; what stands around it is another's business.
    (work / "test_cart.py").write_bytes(TEST.replace(b"== 3", b"== 4"))
    tests, grep = recheck(session)
    assert (tests.state, grep.state) == ("differs", "same")
    assert "then it was exit 0" in tests.says
    assert "the tree around the artifact is another now" in grep.says
    assert len(session.case("F001").verification) == 2


def test_without_its_workspace_nothing_is_run(work: Path, tmp_path: Path) -> None:
    session = reviewed(work)
    work.rename(tmp_path / "elsewhere")
    moved = Session(type(session.folder)(tmp_path / "elsewhere" / ".mentu" / "reviews" / session.id))
    with pytest.raises(Refused, match="is gone"):
        run_command(moved, ("true",))


def test_an_artifact_of_no_workspace_stands_alone(tmp_path: Path) -> None:
    session = started(tmp_path, Reviewer(response()), {"memo.md": b"alone\n"})
    ran = run_command(session, ("sh", "-c", "ls -A; cat memo.md"))
    assert ran.output == b"memo.md\nalone\n"
    assert ran.result == "contradicts"


def test_a_word_that_no_record_can_hold(tmp_path: Path) -> None:
    session = started(tmp_path, Reviewer(response()))
    for word in ("\udcff", "a\0b"):
        with pytest.raises(Refused, match="no record can hold it"):
            checks.run_command(session, (sys.executable, word))


def test_no_program_is_looked_up_where_an_author_could_put_one(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted = work / "bin" / "false"
    planted.parent.mkdir()
    planted.write_text("#!/bin/sh\nexit 0\n")
    planted.chmod(0o755)
    monkeypatch.setenv("PATH", f"{planted.parent}:{os.environ['PATH']}")
    session = reviewed(work)
    assert run_command(session, ("false",)).result == "supports"
    assert run_command(session, ("bin/false",)).result == "contradicts", "named by its folder, it is what was asked for"
