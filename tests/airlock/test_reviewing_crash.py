"""A review killed at every durable step is taken up and comes to the same bytes; nothing is verified twice."""

from __future__ import annotations

import os
import re
import signal
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.reviewing import MEMO, Reviewer, asking, finding, reply, response
from troth.airlock.reviewing import checks, finishing, host, viewing
from troth.airlock.reviewing.rebutting import open_round, send_contest
from troth.airlock.reviewing.resuming import resume
from troth.airlock.reviewing.running import Wanted, send_review, set_up
from troth.airlock.reviewing.session import Session
from troth.observer import commands, ready
from troth.observer.commands import CommandRun
from troth.review.machine import PERSISTED
from troth.stores import durable, reviews
from troth.stores.reviews import EVENTS, RECONCILIATION, RUN, Reviews

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the child that is killed is forked")

WHO = "agent:host"
NOW = datetime(2026, 4, 2, 10, 30, tzinfo=UTC)
ARGV = ("grep", "-q", "saves 200", "memo.md")


def clock() -> datetime:
    return NOW


class Watched(Reviewer):
    """Answers by what it is asked, and writes down that it was."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self.log = log

    def ask(self, request: Any) -> Any:
        contest = request.payload != MEMO
        with self.log.open("a") as file:
            file.write("rebuttal\n" if contest else "review\n")
        self.said = [
            reply("F002")
            if contest
            else response(finding(1), finding(2, "No invoice."), finding(3, "Wait for spring."))
        ]
        return super().ask(request)


def opened(root: Path) -> Session | None:
    """Return the run that was set up, if one was; a folder that never was is removed, as a person would."""
    held = Reviews(root / "reviews")
    for folder in held.list():
        if folder.has(RUN):
            return Session(folder, clock)
        held.forget(folder)
    held.sweep()
    return None


def drive(root: Path) -> None:
    """Do all that is left of a review, as a host does that knows nothing but the records."""
    reviewer = Watched(root / "asked")
    session = opened(root)
    if session is None:
        backend = {"asked": "scripted:test", "name": "scripted", "kind": "scripted", "endpoint": "scripted:test",
                   "provider": None, "sandboxed": True}  # fmt: skip
        session = set_up(
            Reviews(root / "reviews"), Wanted([("memo.md", MEMO)], "decision", backend, "Look.", WHO), clock
        )
    with session.folder.exclusively():
        if resume(session).unanswered:
            send_review(session, reviewer, asking)
        while (name := viewing.next_finding(session)) is not None:
            step(session, name, reviewer)


def step(session: Session, name: str, reviewer: Watched) -> None:
    """Take a finding one step further."""
    case = session.case(name)
    if case.state == "reviewed":
        judged = ("judgment", "value_or_priority_tradeoff") if name == "F003" else ("checkable", None)
        host.triage(session, name, *judged, WHO)
    elif name == "F003":
        held = host.escalation(session, name, question="Now, or in spring?", position="Now.")
        host.conclude(session, name, "deadlocked", {"escalation": held}, WHO, unverifiable="It weighs.")
    elif name == "F001":
        ran = checks.run_command(session, ARGV, finding_id=name)
        if not ran.earlier:
            entry = {"method": "command", "result": ran.result, "detail": ran.detail}
            host.verify(session, name, entry, WHO, facts={"run": dict(ran.facts)})
        host.conclude(session, name, "rejected", {}, WHO)
    elif case.state in ("finding_triage", "evidence_verification"):
        entry = {"method": "artifact_inspection", "result": "inconclusive", "detail": "Looked."}
        host.verify(session, name, entry, WHO)
        host.conclude(session, name, "contested", {"host_position": "It is elsewhere."}, WHO)
    elif case.state == "host_response":
        host.conclude(session, name, "contested", {"host_position": "It is elsewhere."}, WHO)
    elif case.reply is None:
        open_round(session, name, WHO)
        send_contest(session, name, reviewer, "Withdraw or not.", asking)
    else:
        entry = {"method": "artifact_inspection", "result": "supports", "detail": "The section is empty."}
        host.verify(session, name, entry, WHO)
        host.conclude(session, name, "resolved", {"resolution": "Risks are named."}, WHO)


RAN = [Path(os.devnull)]
"""Where a command writes down that it ran."""


def fake_run(bench: Any, copy: Path, argv: Any, **_: Any) -> CommandRun:
    """End at once, after what was reviewed was found in its place."""
    with RAN[0].open("a") as file:
        file.write("ran\n")
    assert (copy / "memo.md").read_bytes() == MEMO
    return CommandRun(tuple(argv), commands.recognise(argv), 0, b"", False, 0.0)


class Killer:
    """Counts durable steps and ends this process at one of them, as `kill -9` does; half a write before that."""

    def __init__(self, at: int | None) -> None:
        self.at = at
        self.count = 0

    def reached(self) -> bool:
        self.count += 1
        return self.count == self.at

    @staticmethod
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def around(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def killed(*given: Any, **named: Any) -> Any:
            if self.reached():
                self.die()
            done = act(*given, **named)
            if self.reached():
                self.die()
            return done

        return killed

    def torn(self, act: Callable[[int, bytes], None]) -> Callable[[int, bytes], None]:
        def killed(fd: int, data: bytes) -> None:
            if self.reached():
                os.write(fd, data[: len(data) // 2])
                self.die()
            act(fd, data)
            if self.reached():
                self.die()

        return killed

    def install(self) -> None:
        durable.write_all = self.torn(durable.write_all)
        for module in (durable, reviews):
            module.sync_file = self.around(durable.sync_file)
            module.sync_folder = self.around(durable.sync_folder)
        Path.replace = self.around(Path.replace)
        Path.mkdir = self.around(Path.mkdir)


def in_child(root: Path, at: int | None) -> tuple[bool, int]:
    """Drive in a process of its own, killed at a step; return whether it was, and how many steps it counted."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            RAN[0] = root / "ran"
            killer = Killer(at)
            killer.install()
            drive(root)
            os.write(write, str(killer.count).encode())
            os._exit(0)
        except BaseException:
            import traceback

            traceback.print_exc()
            os._exit(1)
    os.close(write)
    with open(read, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True, 0
    assert os.WEXITSTATUS(status) == 0, "the child failed; its traceback is above"
    return False, int(told)


def result(root: Path) -> dict[str, bytes]:
    session = opened(root)
    assert session is not None
    assert all(case.state in PERSISTED for case in session.started().cases.values())
    names = (RECONCILIATION, "response.json", "validation.json", "payload", RUN)
    held = {name: session.folder.read(name) for name in names}
    # A call whose answer was lost has its number and was paid for; nothing else differs.
    return held | {EVENTS: re.sub(rb'"spent":{[^}]*}|"call":[0-9]+', b"", session.folder.read(EVENTS))}


def check_once(root: Path) -> None:
    """Nothing was verified, replied or decided twice, and nothing was asked or run again but what was lost."""
    session = opened(root)
    assert session is not None
    told = Counter((record["finding_id"], record["event"], str(record["basis"].get("verification")))
                   for record in session.started().records if record["event"] in ("verify", "reply"))  # fmt: skip
    assert set(told.values()) == {1}
    assert len(told) == 4
    asked = Counter((root / "asked").read_text().split())
    lost = sum(call.answer is None for call in session.calls)
    assert sum(asked.values()) <= 2 + max(lost, 0)
    assert len(session.calls) == 2 + lost
    assert (root / "ran").read_text().count("ran") <= 2
    assert finishing.reconciliation(session) == session.folder.read_json(RECONCILIATION)


@pytest.fixture(autouse=True)
def _no_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "run_command", fake_run)
    monkeypatch.setattr(ready, "require_observer", lambda: None)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, bytes], int]:
    """A review that nothing killed: its files, and the number of durable steps."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commands, "run_command", fake_run)
        patch.setattr(ready, "require_observer", lambda: None)
        root = tmp_path_factory.mktemp("whole")
        killed, count = in_child(root, None)
        assert not killed
        check_once(root)
        assert (root / "asked").read_text().split() == ["review", "rebuttal"]
        return result(root), count


def killed_at(root: Path, at: int, expected: dict[str, bytes]) -> None:
    """Kill a review at a step, then let it be taken up: it comes to what one comes to that nothing killed."""
    killed, _ = in_child(root, at)
    assert killed
    again, _ = in_child(root, None)
    assert not again
    check_once(root)
    assert result(root) == expected


def test_the_review_has_steps_to_be_killed_at(whole: tuple[dict[str, bytes], int]) -> None:
    assert whole[1] > 100


@pytest.mark.parametrize("part", range(12))
def test_killed_now_and_then(tmp_path: Path, whole: tuple[dict[str, bytes], int], part: int) -> None:
    expected, count = whole
    killed_at(tmp_path, 1 + part * (count - 1) // 11, expected)


@pytest.mark.slow
def test_killed_at_every_step(tmp_path: Path, whole: tuple[dict[str, bytes], int]) -> None:
    expected, count = whole
    for at in range(1, count + 1):
        root = tmp_path / str(at)
        root.mkdir()
        killed_at(root, at, expected)


@pytest.mark.slow
def test_killed_again_and_again(tmp_path: Path, whole: tuple[dict[str, bytes], int]) -> None:
    expected, _ = whole
    for stride in (61, 83, 97):
        root = tmp_path / str(stride)
        root.mkdir()
        for _ in range(20):
            if not in_child(root, stride)[0]:
                break
        else:
            raise AssertionError("it never came to its end")
        assert result(root) == expected
