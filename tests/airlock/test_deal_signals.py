"""Deals on the ledger: what each message becomes, that recording is done once, and that both tell the same states."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deals.moves import happy, jsonl, message, mutated, random_lines
from support.airlock import IDENTITY
from support.houses import DatabaseHouse
from support.ledgers import fresh
from support.postgres import needs_postgres
from troth.airlock.deal_record import Recorded, record
from troth.airlock.deal_signals import expected_state
from troth.core.errors import Refused
from troth.deals.run import replay
from troth.deals.transcript import Entry, read_entry, split_lines
from troth.stores import importing
from troth.stores.jsonl import JsonlStore

PERSON = "human:reviewer"
END = {"step": 99, "end": True}


def reading(data: bytes) -> Callable[[], Iterator[tuple[bytes, Entry]]]:
    return lambda: ((raw, read_entry(raw, number)) for number, raw in enumerate(split_lines(data), 1))


def recorded(store: JsonlStore, data: bytes, **options: Any) -> Recorded:
    return record(store, reading(data), PERSON, **options)


def told(store: JsonlStore) -> list[tuple[str, str, str]]:
    """(operation, kind, actor) of each row behind the transcript's own."""
    return [(row.value["op"], row.value["payload"]["kind"], row.value["actor"]) for row in store.read().rows][1:]


def closes(store: JsonlStore) -> list[str]:
    found = [row.value["payload"] for row in store.read().rows]
    return [one["meta"]["deal"]["state"] for one in found if one["kind"] == "deal_close"]


@pytest.fixture
def store(tmp_path: Path) -> JsonlStore:
    return fresh(tmp_path)


OFFERED = [("capture", "observation", "system:deal-c"), ("commit", "commitment", "system:deal-c")]
ACCEPTED = [*OFFERED, ("claim", "claim", "system:deal-a")]
HELD = [*ACCEPTED, ("annotate", "deal_hold", "system:deal-c")]
SHOWN = [*HELD, ("capture", "evidence", "system:deal-a"), ("submit", "submission", "system:deal-a")]
CLOSED = ("annotate", "deal_close", "system:deal-machine")
LOGGED = ("annotate", "deal_log", "system:deal-machine")
ILLEGAL = ("annotate", "deal_illegal", "system:deal-machine")
REOPENED = ("reopen", "reopen", "system:deal-machine")


def verdict(result: str) -> list[tuple[int, dict[str, Any]]]:
    lines = happy("Verdict")
    lines[-1][1]["result"] = result
    return lines


KINDS: dict[str, tuple[list[Any], list[tuple[str, str, str]], str, str | None]] = {
    "settled": (
        happy(),
        [*SHOWN, ("approve", "approval", "system:deal-k"), ("annotate", "deal_settle", "system:deal-c"), CLOSED],
        "Closed:settled", "closed",
    ),
    "withheld": (
        [*happy("Verdict"), END],
        [*SHOWN, ("approve", "approval", "system:deal-k"), CLOSED],
        "Closed:breached(C:withhold_payout_after_pass)", "closed",
    ),
    "failed": (
        verdict("fail"), [*SHOWN, ("reopen", "reopen", "system:deal-k"), CLOSED], "Closed:breached(A:fail)", "claimed",
    ),
    "inconclusive": (
        verdict("inconclusive"), [*SHOWN, ("reopen", "reopen", "system:deal-k"), CLOSED], "Closed:inconclusive",
        "claimed",
    ),
    "no verdict": ([*happy("Disclosure"), END], [*SHOWN, REOPENED, CLOSED], "Closed:inconclusive", "claimed"),
    "waits": (happy("Disclosure"), SHOWN, "", "in_review"),
    "ghost": ([*happy("EscrowHold"), END], [*HELD, CLOSED], "Closed:breached(A:ghost)", "claimed"),
    "rejected": (
        [*happy("Offer"), (0, message(2, "Reject"))],
        [*OFFERED, ("annotate", "deal_reject", "system:deal-a"), CLOSED],
        "Closed:rejected", "open",
    ),
    "refused": (
        [*happy("EscrowHold"), (0, message(9, "Refuse"))],
        [*HELD, ("release", "release", "system:deal-a"), CLOSED],
        "Closed:refused", "open",
    ),
    "expired": ([*happy("Accept"), END], [*ACCEPTED, CLOSED], "Closed:expired", "claimed"),
    "silent mutation": (
        [*happy("Accept"), (0, message(9, "Offer", expires_steps=4))],
        [*ACCEPTED, ILLEGAL, CLOSED], "Closed:protocol_error", "claimed",
    ),
    "illegal in review": (
        [*happy("Disclosure"), (0, message(9, "Settle"))],
        [*SHOWN, ILLEGAL, REOPENED, CLOSED], "Closed:protocol_error", "claimed",
    ),
    "hold before accept": (
        [*happy("Offer"), (0, message(9, "EscrowHold"))],
        [*OFFERED, ILLEGAL, CLOSED], "Closed:breached(C:hold_without_accept)", "open",
    ),
    "no such offer": (
        [(0, message(1, "Accept"))], [("capture", "observation", "system:deal-machine"), CLOSED],
        "Closed:protocol_error", None,
    ),
    "accused": (
        [*happy("EscrowHold"), (0, message(9, "BreachNotice"))],
        [*HELD, ("annotate", "deal_notice", "system:deal-c"), CLOSED, LOGGED],
        "Closed:breached(A:fake_disclosure)", "claimed",
    ),
    "late": (
        [*happy("Offer"), (0, message(2, "Reject")), (0, message(9, "Accept"))],
        [*OFFERED, ("annotate", "deal_reject", "system:deal-a"), CLOSED, LOGGED], "Closed:rejected", "open",
    ),
    "out of channel": ([(0, message(1, "Offer", channel="chat"))], [LOGGED], "", None),
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_each_message_becomes_the_signal_that_it_amounts_to(store: JsonlStore, name: str) -> None:
    lines, rows, end, state = KINDS[name]
    done = recorded(store, jsonl(*lines))
    assert told(store) == rows
    assert closes(store) == ([end] if end else [])
    assert [one[3] for one in done.deals] == ([state] if done.deals else [])
    assert done.agree
    assert store.verify().ok
    for row in store.read().rows:
        assert row.value["payload"]["meta"]["deal"]["labels"] == ["experimental", "non-transfer"]


def test_superseding_closes_one_and_begins_another(store: JsonlStore) -> None:
    data = jsonl(*happy("Offer", "off_0"), (1, message(9, "OfferSupersede")))
    recorded(store, data)
    assert told(store) == [*OFFERED, CLOSED, *OFFERED]
    assert closes(store) == ["Closed:superseded"]


def test_no_text_of_a_disclosure_is_recorded_and_no_mark_of_the_oracle(store: JsonlStore) -> None:
    lines = happy()
    lines[0][1].update({"deceptive_alt": True, "deceptive_alt_kind": "forged_honesty"})
    lines[3][1].update({"artifacts": {"transcript": "the secret"}, "claims": ["another secret"]})
    recorded(store, jsonl(*lines))
    marked = Path(store.location).read_text()
    assert "secret" not in marked
    assert "deceptive" not in marked
    honest = fresh(Path(store.location).parent / "twin")
    del lines[0][1]["deceptive_alt"], lines[0][1]["deceptive_alt_kind"]
    recorded(honest, jsonl(*lines))
    digest = [row.value["payload"]["meta"]["deal"].get("message_sha256") for row in honest.read().rows]
    assert [row.value["payload"]["meta"]["deal"].get("message_sha256") for row in store.read().rows] == digest


def test_hostile_names_are_made_harmless(store: JsonlStore) -> None:
    odd = "off\x1b[2J\u202e" + "x" * 5000
    lines = [(step, one | {"offer_id": odd}) for step, one in happy()]
    half = jsonl((0, message(1, "Accept") | {"offer_id": "x"})).replace(b'"x"', b'"\\ud800"')
    done = recorded(store, half + jsonl(*[(0, one | {"msg_id": f"n{at}"}) for at, (_, one) in enumerate(lines)]))
    assert done.agree
    assert {state for _, state, _, _ in done.deals} == {"Closed:settled", "Closed:protocol_error"}
    assert all(row.value["payload"]["body"].isprintable() for row in store.read().rows)


def test_recording_again_writes_nothing(store: JsonlStore) -> None:
    data = jsonl(*happy(), END)
    first = recorded(store, data)
    again = recorded(store, data)
    assert (again.report.imported, again.report.present) == (0, first.report.imported)
    assert (again.head, again.transcript, again.deals) == (first.head, first.transcript, first.deals)
    assert recorded(store, data.removesuffix(b"\n")).report.imported == 0


def test_a_transcript_that_grew_goes_on(store: JsonlStore, tmp_path: Path) -> None:
    lines = [jsonl(line) for line in [*happy(), (9, message(20, "Accept"))]]
    for upto in (1, 4, len(lines)):
        done = recorded(store, b"".join(lines[:upto]))
        assert done.agree
    whole = fresh(tmp_path / "whole")
    assert recorded(whole, b"".join(lines)).report.refused_count == 0
    assert told(store) == told(whole)
    (commitment,) = store.read().state.commitments.values()
    assert commitment.state == "closed"


def test_two_continuations_of_one_transcript_cannot_both_be(store: JsonlStore) -> None:
    start = jsonl(*happy("Accept"))
    recorded(store, start)
    recorded(store, start + jsonl(*happy("EscrowHold")[2:]))
    before = Path(store.location).read_bytes()
    with pytest.raises(Refused) as fault:
        recorded(store, start + jsonl((0, message(3, "Refuse"))))
    assert fault.value.code == "E_DEAL_FORKED"
    assert Path(store.location).read_bytes() == before


def test_two_transcripts_with_the_same_ids_are_two(store: JsonlStore) -> None:
    recorded(store, jsonl(*happy()))
    done = recorded(store, jsonl(*happy("Offer"), (1, message(2, "Reject"))))
    assert done.agree
    assert Counter(one.state for one in store.read().state.commitments.values()) == {"closed": 1, "open": 1}


def test_a_file_that_is_no_transcript_writes_nothing(store: JsonlStore) -> None:
    with pytest.raises(Refused) as fault:
        recorded(store, jsonl(*happy()) + b"{")
    assert fault.value.code == "E_TRANSCRIPT_UNREADABLE"
    assert len(store.read().rows) == 0


def test_dry_run_writes_nothing(store: JsonlStore) -> None:
    done = recorded(store, jsonl(*happy()), dry_run=True)
    assert (done.report.written, done.report.imported) == (False, 10)
    assert len(store.read().rows) == 0


class _Killed(BaseException):
    """The process ended here."""


@pytest.mark.parametrize("after", [1, 3, 6, 11])
def test_what_was_cut_off_is_taken_up(
    store: JsonlStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    monkeypatch.setattr(importing, "GROUP", 3)
    data = jsonl(*random_lines(random.Random(9), 40), {"step": 999, "end": True})
    groups = 0

    def killed(_: int) -> None:
        nonlocal groups
        groups += 1
        if groups == after:
            raise _Killed

    with pytest.raises(_Killed):
        recorded(store, data, progress=killed)
    there = len(store.read().rows)
    assert there == 3 * after
    done = recorded(store, data)
    assert done.report.present == there
    whole = fresh(tmp_path / "whole")
    recorded(whole, data)
    assert told(store) == told(whole)
    assert done.agree


@needs_postgres
def test_a_ledger_in_a_database_holds_deals_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fresh(tmp_path / "w")
    monkeypatch.chdir(tmp_path / "w")
    store = DatabaseHouse().open()
    done = record(store, reading(jsonl(*happy(), END)), PERSON)
    assert (done.report.imported, done.agree, done.ok) == (10, True, True)
    assert record(store, reading(jsonl(*happy(), END)), PERSON).report.imported == 0
    file = fresh(tmp_path / "file")
    recorded(file, jsonl(*happy(), END))
    assert [(row.value["op"], row.value["source_key"]) for row in store.read().rows] == [
        (row.value["op"], row.value["source_key"]) for row in file.read().rows
    ]


def test_a_row_that_the_constitution_refuses_is_told_and_those_on_it_too(store: JsonlStore) -> None:
    assert store.space is not None
    roles = "actors: [{id: '*', role: some}]\npermissions: {some: [capture, commit, annotate]}"
    (store.space.folder / "genesis.key").write_text(IDENTITY + roles + "\n")
    done = recorded(store, jsonl(*happy()))
    codes = {one.fault.code for one in done.report.refused}
    assert "E_PERMISSION_DENIED" in codes
    assert not done.agree
    assert store.verify().ok


def check_agreement(store: JsonlStore, seed: int, bent: bool) -> int:
    """Record a random transcript; the ledger verifies, nothing is refused, and the states agree."""
    rng = random.Random(seed)
    lines = [jsonl(line) for line in random_lines(rng, 40)]
    if bent:
        lines = [mutated(rng, line) + b"\n" if rng.random() < 0.2 else line for line in map(_value, lines)]  # type: ignore[misc]  # a line or a value
        lines = [line if isinstance(line, bytes) else jsonl(line) for line in lines]
    data = b"".join(lines)
    try:
        run = replay(entry for _, entry in reading(data)())
    except Refused:
        return 0
    done = recorded(store, data)
    assert done.report.refused_count == 0, [one.as_json() for one in done.report.refused]
    assert done.agree
    assert done.ok
    state = store.read().state
    for (_, end, commitment, there), deal in zip(done.deals, run.deals.values(), strict=True):
        assert (end, there) == (deal.state, expected_state(deal))
        assert (commitment is None) == ("Offered" not in deal.history)
    ends = [deal.state for deal in run.deals.values() if deal.closed]
    rows = [row.value for row in store.read().rows]
    mine = [row for row in rows if row["source_key"].startswith(f"deal:{done.transcript}:")]
    assert sorted(ends) == sorted(
        row["payload"]["meta"]["deal"]["state"] for row in mine if row["payload"]["kind"] == "deal_close"
    )
    events = [row["payload"]["meta"]["deal"]["event"] for row in mine if row["payload"]["kind"] == "deal_log"]
    assert events == [one.event for one in run.log]
    assert state.anomalies == []
    return len(run.deals)


def _value(line: bytes) -> Any:
    return read_entry(line.removesuffix(b"\n")).value


def test_random_transcripts_and_the_ledger_tell_the_same(store: JsonlStore) -> None:
    assert sum(check_agreement(store, seed, seed % 2 == 1) for seed in range(40)) > 60
    assert store.verify().ok


@pytest.mark.slow
def test_many_random_transcripts_and_the_ledger_tell_the_same(tmp_path: Path) -> None:
    deals = 0
    for batch in range(8):
        store = fresh(tmp_path / str(batch))
        deals += sum(check_agreement(store, 1000 * (batch + 1) + seed, seed % 2 == 1) for seed in range(100))
        assert store.verify().ok
    assert deals > 1200
