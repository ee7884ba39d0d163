"""A review where others rely on it: verified against its own records before `safety` reads it, and told as signals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from support.airlock import PERSON, committed, one_tier, submit, workspace
from support.ledgers import START
from support.reviewing import Reviewer, finding, response, started
from troth.airlock.deciding import decide, questions
from troth.airlock.review_signals import record
from troth.airlock.reviewing import finishing, host
from troth.airlock.reviewing.session import Session
from troth.airlock.reviews import proven
from troth.airlock.validating import Airlock, Report
from troth.airlock.validators import ReviewOutcome, safety
from troth.backends.protocol import Failure
from troth.core.canonical import record_bytes
from troth.core.errors import Refused, TrothError
from troth.stores.jsonl import JsonlStore
from troth.stores.reviews import DECISIONS, EVENTS, RECONCILIATION, RESPONSE, RUN, ReviewFolder

SAFETY = one_tier(auto_close=True, validators=["safety"])
HOST = "agent:host"
KIND = "value_or_priority_tradeoff"


def house(root: Path) -> JsonlStore:
    return workspace(root, SAFETY, {}, clock=lambda: START)


def reviewed(root: Path, *findings: Any, **edits: Any) -> Session:
    return started(root / ".mentu", Reviewer(response(*findings)), id="memo", **edits)


def settled(session: Session, *ends: str) -> Session:
    """Bring each finding to an end: accepted, resolved, rejected, deadlocked, or left alone."""
    with session.folder.exclusively():
        for number, end in enumerate(ends, 1):
            name = f"F{number:03d}"
            if end == "open":
                continue
            if end == "deadlocked":
                host.triage(session, name, "judgment", KIND, HOST)
                held = host.escalation(session, name, question=f"Does {name} stand?", position="It does not.")
                host.conclude(
                    session, name, "deadlocked", {"escalation": held}, HOST, unverifiable="A question of taste."
                )
                continue
            host.triage(session, name, "checkable", None, HOST)
            result = "contradicts" if end == "rejected" else "supports"
            verification = {"method": "artifact_inspection", "result": result, "detail": "Read."}
            host.verify(session, name, verification, HOST)
            host.conclude(session, name, end, {"resolution": "Mended."} if end == "resolved" else {}, HOST)
        finishing.settle(session)
    return session


def asked(store: JsonlStore, review: str, artifact: str) -> Report:
    return Airlock(store).take(submit(store, committed(store), review=review, artifact=artifact))


# --- what safety reads ---

ENDS: dict[str, tuple[list[Any], tuple[str, ...], str, str]] = {
    "approved": ([], (), "closed", "converged"),
    "resolved": ([finding(1)], ("resolved",), "closed", "converged"),
    "rejected": ([finding(1)], ("rejected",), "closed", "converged"),
    "accepted": ([finding(1)], ("accepted",), "failed", "not resolved: F001"),
    "one_of_two": ([finding(1), finding(2)], ("resolved", "accepted"), "failed", "not resolved: F002"),
    "minor": ([finding(1, severity="low")], ("accepted",), "closed", "converged"),
    "deadlocked": ([finding(1)], ("deadlocked",), "failed", "is deadlocked"),
    "not_reconciled": ([finding(1)], ("open",), "failed", "no result yet"),
}


@pytest.mark.parametrize("name", ENDS)
def test_a_review_closes_a_commitment_only_as_it_came_out(tmp_path: Path, name: str) -> None:
    findings, ends, outcome, words = ENDS[name]
    store = house(tmp_path)
    session = settled(reviewed(tmp_path, *findings), *ends)
    report = asked(store, session.id, session.artifact.digest)
    (answer,) = report.results
    assert report.outcome == outcome, answer
    assert words in answer.result.reason


@pytest.mark.parametrize("tier", ["self_review", "same_provider", "cross_provider"])
def test_whose_review_it_was_is_told(tmp_path: Path, tier: str) -> None:
    store = house(tmp_path)
    session = settled(reviewed(tmp_path, finding(1), independence={"tier": tier, "notices": []}), "resolved")
    (answer,) = asked(store, session.id, session.artifact.digest).results
    said = f"{tier.replace('_', ' ')}; answers from a file, read by no model"
    assert answer.result.reason == f"the review memo converged ({said})"
    assert answer.result.facts["tier"] == tier
    assert answer.result.facts["scripted"] is True


def test_only_answers_from_a_file_are_called_that() -> None:
    outcome = ReviewOutcome("memo", "0" * 64, "converged", (), "cross_provider")
    row = {"payload": {"meta": {"review": "memo", "artifact": "0" * 64}}}
    found = safety(mock.Mock(row=row), mock.Mock(find=mock.Mock(return_value=outcome)))
    assert (found.result, found.reason) == ("passed", "the review memo converged (cross provider)")
    assert "scripted" not in found.facts


def test_a_decision_of_the_operator_lets_it_close(tmp_path: Path) -> None:
    store = house(tmp_path)
    session = settled(reviewed(tmp_path, finding(1)), "deadlocked")
    assert asked(store, session.id, session.artifact.digest).outcome == "failed"
    with session.folder.exclusively():
        after = decide(session, "F001", "It does not stand.", actor=PERSON, channel="command")
    assert after["outcome"] == "converged"
    assert asked(store, session.id, session.artifact.digest).outcome == "closed"


def test_failed_and_unable_reviews_never_close(tmp_path: Path) -> None:
    store = house(tmp_path)
    failed = started(tmp_path / ".mentu", Reviewer(Failure("timeout", "No answer came.", True)), id="failed")
    assert "is failed" in asked(store, "failed", failed.artifact.digest).results[0].result.reason
    unable = response(assessment="unable_to_assess", limitations=["It is no text."])
    lame = started(tmp_path / ".mentu", Reviewer(unable), id="lame")
    report = asked(store, "lame", lame.artifact.digest)
    assert (report.outcome, "is incomplete" in report.results[0].result.reason) == ("failed", True)


def test_another_revision_and_another_name_do_not_count(tmp_path: Path) -> None:
    store = house(tmp_path)
    session = settled(reviewed(tmp_path, finding(1)), "resolved")
    assert asked(store, session.id, session.artifact.digest).outcome == "closed"
    assert "another revision" in asked(store, session.id, "ab" * 32).results[0].result.reason
    for name in ("none", "../reviews/memo", "memo/", "", ".", "@last"):
        report = asked(store, name or "x", session.artifact.digest)
        assert "no review is on record" in report.results[0].result.reason


# --- what does not verify ---


def edit(folder: Path, name: str, act: Callable[[Any], Any]) -> None:
    path = folder / name
    value = json.loads(path.read_bytes())
    path.write_bytes(record_bytes(act(value) or value))


def edit_line(folder: Path, name: str, number: int, act: Callable[[Any], Any]) -> None:
    lines = (folder / name).read_bytes().splitlines(keepends=True)
    value = json.loads(lines[number])
    lines[number] = record_bytes(act(value) or value)
    (folder / name).write_bytes(b"".join(lines))


def drop_line(folder: Path, name: str, number: int) -> None:
    lines = (folder / name).read_bytes().splitlines(keepends=True)
    del lines[number]
    (folder / name).write_bytes(b"".join(lines))


def resolve_by_hand(folder: Path) -> None:
    def act(value: Any) -> None:
        value["items"][1] |= {"state": "resolved", "resolution": "Mended elsewhere."}

    edit(folder, RECONCILIATION, act)


def converge_by_hand(folder: Path) -> None:
    def act(value: Any) -> None:
        item = value["items"][2]
        item |= {"state": "resolved", "resolution": "Fine."}
        value["outcome"] = "converged"

    edit(folder, RECONCILIATION, act)


def soften(value: Any) -> None:
    value["findings"][1]["severity"] = "low"


def approve(value: Any) -> None:
    value |= {"assessment": "approve", "findings": []}


FORGERIES: dict[str, Callable[[Path], Any]] = {
    "item_resolved": resolve_by_hand,
    "outcome_converged": converge_by_hand,
    "severity_softened": lambda folder: edit(folder, RESPONSE, soften),
    "approved": lambda folder: edit(folder, RESPONSE, approve),
    "payload": lambda folder: (folder / "payload").write_bytes(b"# Another memo\n"),
    "another_digest": lambda folder: edit(folder, RUN, lambda v: v["revision"].update(value="ab" * 32)),
    "answer": lambda folder: (folder / "raw" / "answer-001-1").write_bytes(b"{}"),
    "no_answer": lambda folder: shutil.rmtree(folder / "raw"),
    "no_calls": lambda folder: (folder / "calls.jsonl").unlink(),
    "event_gone": lambda folder: drop_line(folder, EVENTS, -1),
    "event_changed": lambda folder: edit_line(
        folder, EVENTS, -1, lambda v: v.update(actor="human:other", role="operator")
    ),
    "decision_gone": lambda folder: (folder / DECISIONS).write_bytes(b""),
    "decision_changed": lambda folder: edit_line(folder, DECISIONS, 0, lambda v: v.update(ruling="Yes.")),
    "decision_by_an_agent": lambda folder: [
        edit_line(folder, DECISIONS, 0, lambda v: v.update(actor="agent:host")),
        edit_line(folder, EVENTS, -1, lambda v: v.update(actor="agent:host")),
    ],
    "response_gone": lambda folder: (folder / RESPONSE).unlink(),
    "not_json": lambda folder: (folder / RECONCILIATION).write_bytes(b"{"),
    "rounds": lambda folder: edit(folder, RECONCILIATION, lambda v: v.update(rounds_used=1)),
}


def three(root: Path) -> Session:
    session = settled(reviewed(root, finding(1), finding(2), finding(3)), "resolved", "resolved", "deadlocked")
    with session.folder.exclusively():
        decide(session, "F003", "It does not stand.", actor=PERSON, channel="command")
    return session


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_folder_does_not_count(tmp_path: Path, name: str) -> None:
    store = house(tmp_path)
    session = three(tmp_path)
    artifact = session.artifact.digest
    assert asked(store, session.id, artifact).outcome == "closed"
    FORGERIES[name](session.folder.path)
    report = asked(store, session.id, artifact)
    assert report.outcome == "failed"
    assert "E_REVIEW_UNVERIFIED" in report.results[0].result.reason
    with pytest.raises(TrothError):
        proven(session.folder)


def test_an_accepted_finding_is_not_resolved_by_hand(tmp_path: Path) -> None:
    store = house(tmp_path)
    session = settled(reviewed(tmp_path, finding(1), finding(2)), "resolved", "accepted")
    assert "not resolved: F002" in asked(store, session.id, session.artifact.digest).results[0].result.reason
    resolve_by_hand(session.folder.path)
    assert "E_REVIEW_UNVERIFIED" in asked(store, session.id, session.artifact.digest).results[0].result.reason


def test_a_review_of_another_id_or_behind_a_link_is_not_found(tmp_path: Path) -> None:
    store = house(tmp_path)
    session = settled(reviewed(tmp_path, finding(1)), "resolved")
    reviews = session.folder.path.parent
    shutil.copytree(session.folder.path, reviews / "copy")
    assert asked(store, "copy", session.artifact.digest).outcome == "failed"
    (reviews / "link").symlink_to(session.folder.path)
    assert asked(store, "link", session.artifact.digest).outcome == "failed"
    assert asked(store, session.id, session.artifact.digest).outcome == "closed"


# --- the operator's questions ---


def test_only_a_person_decides_and_sees_all_before(tmp_path: Path) -> None:
    house(tmp_path)
    session = settled(reviewed(tmp_path, finding(1), finding(2)), "deadlocked", "deadlocked")
    assert [one.finding_id for one in questions(session)] == ["F001", "F002"]
    for actor in (HOST, "system:validator"):
        with pytest.raises(Refused) as refused:
            decide(session, "F001", "No.", actor=actor, channel="command")
        assert refused.value.code == "E_REVIEW_ROLE"
    assert not session.folder.has(DECISIONS)
    with session.folder.exclusively():
        decide(session, "F001", "No.", actor=PERSON, channel="command")
    assert [one.finding_id for one in questions(Session(session.folder))] == ["F002"]
    edit(session.folder.path, RECONCILIATION, lambda v: v["items"].pop())
    with pytest.raises(Refused) as refused:
        questions(Session(session.folder))
    assert refused.value.code == "E_REVIEW_VIEW"


def test_a_run_that_is_still_at_work_is_asked_about_too(tmp_path: Path) -> None:
    house(tmp_path)
    session = settled(reviewed(tmp_path, finding(1), finding(2)), "deadlocked", "open")
    assert not session.finished
    assert [one.finding_id for one in questions(session)] == ["F001"]
    with session.folder.exclusively():
        after = decide(session, "F001", "No.", actor=PERSON, channel="command")
        assert after["outcome"] == "incomplete"
        settled_later = Session(session.folder)
        host.triage(settled_later, "F002", "checkable", None, HOST)
        host.verify(settled_later, "F002", {"method": "artifact_inspection", "result": "supports"}, HOST)
        host.conclude(settled_later, "F002", "resolved", {"resolution": "Done."}, HOST)
    assert proven(session.folder).reconciliation["outcome"] == "converged"


def test_a_correction_is_kept_with_what_stood_before(tmp_path: Path) -> None:
    house(tmp_path)
    session = three(tmp_path)
    with session.folder.exclusively():
        with pytest.raises(Refused):
            decide(session, "F003", "It stands.", actor=PERSON, channel="command")
        after = decide(session, "F003", "It stands.", actor=PERSON, channel="command", reason="The auditor asked.")
    text = after["items"][2]["resolution"]
    assert text.startswith("It stands. [Corrected ")
    assert "It does not stand." in text
    assert len(session.folder.lines(DECISIONS).splitlines()) == 2
    assert len(session.folder.names("archive")) >= 1
    assert proven(session.folder).reconciliation == after


def test_a_crash_behind_the_line_of_a_decision_is_made_up_for(tmp_path: Path) -> None:
    from troth.airlock.reviewing.resuming import resume

    house(tmp_path)
    session = settled(reviewed(tmp_path, finding(1), finding(2)), "deadlocked", "deadlocked")
    with session.folder.exclusively():
        events, document = session.folder.read(EVENTS), session.folder.read(RECONCILIATION)
        decide(session, "F001", "No.", actor=PERSON, channel="command")
        done = session.folder.read(RECONCILIATION)
        for name, data in ((EVENTS, events), (RECONCILIATION, document)):
            session.folder.write(name, data)  # as if the power had gone before these were written
        with pytest.raises(TrothError):
            proven(session.folder)
        resume(Session(session.folder))
    assert session.folder.read(RECONCILIATION) == done
    assert proven(session.folder).reconciliation["outcome"] == "deadlocked"


@pytest.mark.parametrize("effects", range(5))
def test_a_decision_is_recorded_whole_or_taken_up(
    tmp_path: Path, effects: int, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    from troth.airlock.reviewing.resuming import resume

    house(tmp_path)
    session = settled(reviewed(tmp_path, finding(1)), "deadlocked")
    count = 0

    def dying(name: str) -> Any:
        real = getattr(ReviewFolder, name)

        def act(self: ReviewFolder, *words: Any) -> Any:
            nonlocal count
            count += 1
            if count > effects:
                raise KeyboardInterrupt
            return real(self, *words)

        return act

    with monkeypatch.context() as patched:
        for name in ("append", "write"):
            patched.setattr(ReviewFolder, name, dying(name))
        try:
            with session.folder.exclusively():
                decide(session, "F001", "No.", actor=PERSON, channel="command")
        except KeyboardInterrupt:
            pass
    with session.folder.exclusively():
        resume(Session(session.folder))
    outcome = proven(session.folder).reconciliation["outcome"]
    assert outcome == ("converged" if effects else "deadlocked")  # once its line is there, it counts
    assert len(session.folder.lines(DECISIONS).splitlines()) == (1 if effects else 0)


def test_any_byte_that_changed_is_noticed(tmp_path: Path) -> None:
    house(tmp_path)
    session = three(tmp_path)
    assert proven(session.folder)
    for name in ("payload", "raw/answer-001-1", RESPONSE, RECONCILIATION, DECISIONS):
        path = session.folder.path / name
        data = path.read_bytes()
        for at in range(0, len(data), max(1, len(data) // 25)):
            path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
            with pytest.raises(TrothError):
                proven(session.folder)
        path.write_bytes(data)
    assert proven(session.folder)


# --- signals ---


def rows_of(store: JsonlStore) -> list[dict[str, Any]]:
    return [row.value for row in store.read().rows]


def test_a_run_is_told_row_by_row(tmp_path: Path) -> None:
    store = house(tmp_path)
    about = committed(store)
    session = three(tmp_path)
    written = record(session, store, about)
    assert all(entry.new for entry in written)
    rows = {entry.key: next(row for row in rows_of(store) if row["id"] == entry.row) for entry in written}
    artifact = rows["artifact"]
    assert (artifact["op"], artifact["payload"]["kind"]) == ("capture", "observation")
    assert artifact["payload"]["meta"]["artifact"] == session.artifact.digest
    assert artifact["payload"]["refs"] == [about]
    first = rows["F001"]
    assert first["payload"]["kind"] == "finding"
    assert first["trace"]["parent"] == [artifact["id"]]
    assert first["relations"] == [{"type": "cites", "targetId": artifact["id"]}]
    assert first["payload"]["meta"]["evidence"][0]["anchor"]["quote"] == "saves 200"
    evidence = [row for row in rows.values() if row["payload"]["kind"] == "evidence"]
    assert [row["relations"] for row in evidence] == [
        [{"type": "cites", "targetId": rows[name]["id"]}] for name in ("F001", "F002")
    ]
    kinds = [row["payload"]["kind"] for row in rows.values()]
    assert kinds.count("triage") == 2
    assert kinds.count("escalation") == kinds.count("decision") == kinds.count("review") == 1
    decision = next(row for row in rows.values() if row["payload"]["kind"] == "decision")
    assert decision["payload"]["target"] == rows["F003"]["id"]
    assert decision["payload"]["meta"]["by"] == PERSON
    assert decision["payload"]["meta"]["question"] == "Does F003 stand?"
    result = next(row for row in rows.values() if row["payload"]["kind"] == "review")
    assert result["payload"]["meta"]["outcome"] == "converged"
    assert not any("trust" in row for row in rows.values())
    assert store.read().verification.ok


def test_recording_again_writes_only_what_came_since(tmp_path: Path) -> None:
    store = house(tmp_path)
    session = settled(reviewed(tmp_path, finding(1), finding(2)), "rejected", "deadlocked")
    first = record(session, store)
    before = len(rows_of(store))
    again = record(Session(session.folder), store)
    assert [entry.row for entry in again] == [entry.row for entry in first]
    assert not any(entry.new for entry in again)
    assert len(rows_of(store)) == before
    with session.folder.exclusively():
        decide(session, "F002", "No.", actor=PERSON, channel="command")
    later = [entry.key.partition(":")[0] for entry in record(Session(session.folder), store) if entry.new]
    assert later == ["decision", "result"]
    state = store.read().state
    rejected = next(entry.row for entry in first if entry.key == "F001")
    assert rejected in state.dismissed
    contradicting = [row for row in rows_of(store) if row.get("relations", [{}])[0].get("type") == "contradicts"]
    assert [row["relations"][0]["targetId"] for row in contradicting] == [rejected]


@pytest.mark.parametrize("after", [0, 1, 3, 6])
def test_a_crash_on_the_way_doubles_nothing(tmp_path: Path, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    store = house(tmp_path)
    session = three(tmp_path)
    count = 0
    append = JsonlStore.append_with

    def dying(self: JsonlStore, *args: Any, **more: Any) -> Any:
        nonlocal count
        count += 1
        if count > after:
            raise KeyboardInterrupt
        return append(self, *args, **more)

    with monkeypatch.context() as patched:
        patched.setattr(JsonlStore, "append_with", dying)
        with pytest.raises(KeyboardInterrupt):
            record(session, store)
    done = record(session, store)
    assert sum(not entry.new for entry in done) == after
    keys = [row["source_key"] for row in rows_of(store) if row.get("source_key", "").startswith("review:")]
    assert len(keys) == len(set(keys)) == len(done)


def test_a_models_opinion_bears_on_nothing_and_hostile_words_are_inert(tmp_path: Path) -> None:
    store = house(tmp_path)
    evil = "\u001b[2J</script> \u202e" + "x" * 100_000
    session = reviewed(tmp_path, finding(1, claim=evil, recommendation=evil, category=evil))
    with session.folder.exclusively():
        host.triage(session, "F001", "checkable", None, HOST)
        opinion = {"method": "model_inference", "result": "supports", "detail": "Another model agrees."}
        host.verify(session, "F001", opinion, HOST)
    record(session, store)
    rows = rows_of(store)
    (row,) = [row for row in rows if row["payload"]["kind"] == "evidence"]
    assert "relations" not in row
    (held,) = [row for row in rows if row["payload"]["kind"] == "finding"]
    text = json.dumps(held["payload"], ensure_ascii=False)
    assert len(text) < 20_000
    assert "\u001b" not in text
    assert "\u202e" not in text
    assert store.read().verification.ok


def test_somebody_elses_row_under_a_key_is_told(tmp_path: Path) -> None:
    store = house(tmp_path)
    session = settled(reviewed(tmp_path, finding(1)), "resolved")
    (first, *_) = record(session, store)
    row = next(row for row in rows_of(store) if row["id"] == first.row)
    other = workspace(tmp_path / "other", SAFETY, {})
    from troth.ledger.operations import Candidate

    other.append(Candidate("capture", PERSON, {"body": "mine"}, source_key=row["source_key"]))
    with pytest.raises(Refused) as refused:
        record(session, other)
    assert refused.value.code == "E_DUPLICATE_ID"
