"""Ledgers cut, dropped from, swapped, spliced, rewritten and forked in every place: what plain verification cannot see,
and that a checkpoint sees it.

Every attack is made by somebody who owns the file and the key, and mends every hash and link behind him. The baseline
is told beside: for most attacks ``verify`` alone finds nothing, because a hash covers its row and not its history.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.building import ZERO, Ledger, lines, plain_hash
from reference import merkle_model as model
from troth.cli.main import main
from troth.core.errors import DoesNotHold, Refused
from troth.core.notes import COSIGNATURE, ED25519, Signer, sign_note
from troth.ledger.checkpoint import Checkpoint, read_checkpoint
from troth.stores.checkpoints import Anchors, create
from troth.stores.jsonl import JsonlStore
from troth.stores.witness import cosign
from troth.stores.workspace import create_workspace

SIGNER = Signer("example.com/ledger", ED25519, bytes(range(32)))
WITNESS = Signer("example.com/witness", COSIGNATURE, bytes(range(32, 64)))
KEY = SIGNER.verifier

COVERED = 7
"""Rows when the checkpoint was made."""

TODAY = 9
"""Rows now."""

Rows = list[dict[str, Any]]


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def honest(count: int = TODAY) -> Rows:
    """A whole piece of work, then observations: as many rows as asked for, the first of them always the same."""
    ledger = Ledger()
    seen = ledger.add("capture", "human:reviewer", body="checkout fails")
    work = ledger.add("commit", "human:reviewer", source=seen)
    ledger.add("claim", commitment=work)
    proof = ledger.add("capture", kind="evidence", body="12 passed")
    ledger.add("submit", commitment=work, evidence=proof)
    ledger.add("approve", "human:reviewer", commitment=work)
    while len(ledger.rows) < count:
        ledger.add("capture", "human:reviewer")
    return ledger.rows[:count]


def mended(rows: Rows) -> Rows:
    """Return the rows with every hash and link as a verifier wants them."""
    done: Rows = []
    last = ZERO
    for row in rows:
        linked = {**row, "prevHash": last}
        linked["hash"] = last = plain_hash(linked)
        done.append(linked)
    return done


def stranger(number: int, body: str = "put in") -> dict[str, Any]:
    return {
        "id": f"mem_{0xF0000000 + number:08x}",
        "op": "capture",
        "ts": "2026-01-01T00:00:59Z",
        "actor": "human:reviewer",
        "workspace": "w",
        "payload": {"body": body},
    }


HONEST = honest()


# What an owner can do to the file: (what, the rows afterwards) -------------------------------------------------------


def cuts() -> Iterator[tuple[str, Rows]]:
    for left in range(COVERED):
        yield f"cut to {left}", HONEST[:left]
        regrown = HONEST[:left] + [stranger(number) for number in range(TODAY - left)]
        yield f"cut to {left} and grown again", mended(regrown)


def drops() -> Iterator[tuple[str, Rows]]:
    for count in range(1, COVERED):
        for at in range(COVERED - count + 1):
            yield f"{count} dropped at {at}", mended(HONEST[:at] + HONEST[at + count :])


def swaps() -> Iterator[tuple[str, Rows]]:
    for one, other in itertools.combinations(range(TODAY), 2):
        if one < COVERED:
            rows = list(HONEST)
            rows[one], rows[other] = rows[other], rows[one]
            yield f"{one} and {other} swapped", mended(rows)
    for at, to in itertools.permutations(range(COVERED), 2):
        rows = list(HONEST)
        rows.insert(to, rows.pop(at))
        yield f"{at} moved to {to}", mended(rows)
    yield "all turned round", mended(HONEST[::-1])


def splices() -> Iterator[tuple[str, Rows]]:
    for count in (1, 2, 5):
        for at in range(COVERED):
            more = [stranger(number) for number in range(count)]
            yield f"{count} put in at {at}", mended(HONEST[:at] + more + HONEST[at:])
            yield f"{count} put in for as many at {at}", mended(HONEST[:at] + more + HONEST[at + count :])


def changes() -> Iterator[tuple[str, Rows]]:
    for at in range(COVERED):
        row = HONEST[at]
        other: dict[str, Any] = {
            "id": row["id"][:4] + "0123456f",
            "ts": "2026-02-02T00:00:00Z",
            "actor": "agent:rival",
            "workspace": "v",
            "payload": {**row["payload"], "body": "never said"},
            "x_more": 1,
        }
        for name, value in other.items():
            yield f"{name} of {at}", mended([*HONEST[:at], {**row, name: value}, *HONEST[at + 1 :]])


def rewritten() -> Iterator[tuple[str, Rows]]:
    for count in range(TODAY + 4):
        yield f"{count} rows of another story", mended([stranger(number) for number in range(count)])
    later = [{**row, "ts": row["ts"].replace("2026", "2025")} for row in HONEST]
    yield "the same a year earlier", mended(later)
    yield "no hash left", [{name: row[name] for name in row if name not in ("hash", "prevHash")} for row in HONEST]


def forks() -> Iterator[tuple[str, Rows]]:
    for common in range(COVERED):
        for count in range(1, 5):
            yield (
                f"{count} others from {common} on",
                mended(HONEST[:common] + [stranger(number, "other branch") for number in range(count)]),
            )


def empties() -> Iterator[tuple[str, Rows]]:
    yield "an empty file", []


UNSEEN = {
    "cut": cuts,
    "drop": drops,
    "swap": swaps,
    "splice": splices,
    "change": changes,
    "rewrite": rewritten,
    "fork": forks,
    "empty": empties,
}


def checkpoint_of(rows: Rows, size: int) -> bytes:
    entries = [model.row_entry(plain_hash(row), row["prevHash"]) for row in rows[:size]]
    return sign_note(Checkpoint("w", size, model.mth(entries)).text(), [SIGNER]).encode()


def look(path: Path, rows: Rows, anchor: bytes) -> tuple[set[str], set[str]]:
    """Return the faults that plain verification finds, and those that the checkpoint adds."""
    path.write_bytes(lines(rows))
    store = JsonlStore.open(path)
    plain = {fault.fault for fault in store.verify(workers=1).faults}
    anchors = Anchors([(Path("c"), read_checkpoint(anchor, [KEY]))])
    found = anchors.judge(store.verify(workers=1, leaves=anchors.take))
    assert anchors.established
    return plain, {fault.fault for fault in found.faults} - plain


@pytest.mark.parametrize("kind", UNSEEN)
def test_what_plain_verification_cannot_see_a_checkpoint_sees(kind: str, tmp_path: Path) -> None:
    anchor = checkpoint_of(HONEST, COVERED)
    seen = 0
    for what, rows in UNSEEN[kind]():
        plain, added = look(tmp_path / "ledger", rows, anchor)
        assert plain == set(), f"{what}: the baseline was thought blind to it"
        expected = "checkpoint_ahead" if len(rows) < COVERED else "checkpoint_mismatch"
        assert added == {expected}, what
        seen += 1
    print(f"\n{kind}: {seen} of {seen} seen with the checkpoint, 0 without")
    assert seen


def test_honest_growth_is_never_accused(tmp_path: Path) -> None:
    rows = honest(30)
    accepted = 0
    for covered in range(len(rows) + 1):
        anchor = checkpoint_of(rows, covered)
        for count in range(covered, len(rows) + 1):
            assert look(tmp_path / "ledger", rows[:count], anchor) == (set(), set())
            accepted += 1
    print(f"\nhonest growth: {accepted} of {accepted} accepted")


def test_what_stands_behind_the_checkpoint_is_not_covered(tmp_path: Path) -> None:
    """The limit, told plainly: rows newer than the newest checkpoint are as blind as before."""
    anchor = checkpoint_of(HONEST, COVERED)
    for rows in (
        HONEST[:COVERED],
        HONEST[: COVERED + 1],
        mended(HONEST[:COVERED] + HONEST[COVERED:][::-1]),
        mended([*HONEST[:COVERED], stranger(1), *HONEST[COVERED:]]),
    ):
        assert look(tmp_path / "ledger", rows, anchor) == (set(), set())
        assert rows == HONEST or look(tmp_path / "ledger", rows, checkpoint_of(HONEST, TODAY))[1] != set()


def test_what_the_chain_sees_by_itself_is_told_as_before(tmp_path: Path) -> None:
    anchor = checkpoint_of(HONEST, COVERED)
    for at in range(COVERED):
        changed = [*HONEST[:at], {**HONEST[at], "actor": "agent:rival"}, *HONEST[at + 1 :]]
        plain, added = look(tmp_path / "ledger", changed, anchor)
        assert "content_mismatch" in plain
        assert added == {"checkpoint_mismatch"}
        if at > 0:
            dropped = HONEST[:at] + HONEST[at + 1 :]
            plain, added = look(tmp_path / "ledger", dropped, anchor)
            assert plain == {"missing_ancestor"}
            assert added == {"checkpoint_mismatch"}
            relinked = [*HONEST[:at], {**HONEST[at], "prevHash": ZERO}, *HONEST[at + 1 :]]
            plain, added = look(tmp_path / "ledger", relinked, anchor)
            assert plain == {"link_mismatch"}
            assert added == {"checkpoint_mismatch"}
        doubled = HONEST[: at + 1] + HONEST[at:]
        plain, added = look(tmp_path / "ledger", mended(doubled), anchor)
        assert plain == {"duplicate_id"}
        assert added == ({"checkpoint_mismatch"} if at + 1 < COVERED else set())


def test_a_fault_behind_the_checkpoint_is_no_fault_of_it(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    path.write_bytes(lines(HONEST) + b"{\n" + b'{"torn')
    anchors = Anchors([(Path("c"), read_checkpoint(checkpoint_of(HONEST, COVERED), [KEY]))])
    found = anchors.judge(JsonlStore.open(path).verify(leaves=anchors.take))
    assert [fault.fault for fault in found.faults] == ["malformed", "torn_tail"]


POOL = mended([stranger(number, f"row {number % 3}") for number in range(8)])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=st.permutations(range(8)).flatmap(lambda order: st.integers(0, 8).map(lambda count: order[:count])),
    after=st.permutations(range(8)).flatmap(lambda order: st.integers(0, 8).map(lambda count: order[:count])),
    common=st.integers(0, 8),
    covered=st.integers(0, 8),
)
def test_a_checkpoint_accepts_exactly_the_ledgers_that_begin_with_its_rows(
    tmp_path: Path, before: list[int], after: list[int], common: int, covered: int
) -> None:
    after = before[:common] + [number for number in after if number not in before[:common]]
    covered = min(covered, len(before))
    ours, theirs = mended([POOL[number] for number in before]), mended([POOL[number] for number in after])
    plain, added = look(tmp_path / "ledger", theirs, checkpoint_of(ours, covered))
    assert plain == set()
    assert (added == set()) == (after[:covered] == before[:covered])
    assert ("checkpoint_ahead" in added) == (len(after) < covered)


# Forks and witnesses -------------------------------------------------------------------------------------------------


def a_workspace(root: Path, rows: Rows) -> JsonlStore:
    root.mkdir(parents=True)
    create_workspace(root, name="w", agents_text="t\n")
    (root / ".mentu" / "ledger.jsonl").write_bytes(lines(rows))
    return JsonlStore.open(root)


def test_a_witness_signs_one_side_of_a_fork_only(tmp_path: Path) -> None:
    refused = accepted = 0
    for common in range(COVERED):
        for count in range(1, 5):
            place = tmp_path / f"{common}-{count}"
            ours = a_workspace(place / "ours", HONEST)
            others = a_workspace(
                place / "others",
                mended(HONEST[:common] + [stranger(number, "other branch") for number in range(count)]),
            )
            witness = Signer(f"example.com/w{common}-{count}", COSIGNATURE, bytes([common, count]) * 16)
            first = create(ours, SIGNER).path
            cosign(first, witness, keys=[KEY], at=1, store=ours)
            accepted += 1
            fork = create(others, SIGNER).path
            before = fork.read_bytes()
            with pytest.raises((DoesNotHold, Refused)) as caught:
                cosign(fork, witness, keys=[KEY], at=2, store=others)
            assert caught.value.code in ("E_CHECKPOINT_FORK", "E_CHECKPOINT_OLDER")
            longer = a_workspace(
                place / "longer",
                mended(HONEST[:common] + [stranger(number, "other branch") for number in range(TODAY + 2 - common)]),
            )
            with pytest.raises(DoesNotHold, match="E_CHECKPOINT_FORK"):
                cosign(create(longer, SIGNER).path, witness, keys=[KEY], at=2, store=longer)
            assert fork.read_bytes() == before
            refused += 2
            # Whoever was given the other side sees it by the checkpoint that the witness did sign.
            signed = read_checkpoint(first.read_bytes(), [KEY])
            for store in (others, longer):
                anchors = Anchors([(first, signed)])
                assert not anchors.judge(store.verify(leaves=anchors.take)).ok
    print(f"\nforks: {refused} of {refused} refused, {accepted} honest ones signed")


def test_the_owner_is_warned_before_he_signs_a_fork_himself(tmp_path: Path) -> None:
    store = a_workspace(tmp_path / "w", HONEST)
    create(store, SIGNER)
    for rows in (HONEST[:4], mended([*HONEST[:3], *HONEST[4:]]), []):
        store.ledger_file.write_bytes(lines(rows))
        with pytest.raises(DoesNotHold, match="E_CHECKPOINT_FORK"):
            create(JsonlStore.open(tmp_path / "w"), SIGNER)
    store.ledger_file.write_bytes(lines(honest(12)))
    assert create(JsonlStore.open(tmp_path / "w"), SIGNER).signed.checkpoint.size == 12


# The front door ------------------------------------------------------------------------------------------------------


def ask(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any]:
    status = main([*words, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_the_command_line_tells_each_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = a_workspace(tmp_path / "w", HONEST)
    file = tmp_path / "c"
    file.write_bytes(checkpoint_of(HONEST, COVERED))
    words = ["verify", "--store", str(tmp_path / "w"), "--checkpoint", str(file)]
    status, told = ask(capsys, *words, "--key", str(KEY))
    assert (status, told["ok"], told["anchored"]) == (0, True, True)
    [one] = told["checkpoints"]
    assert (one["size"], one["extends"], one["established"], one["unknown"]) == (COVERED, True, True, 0)
    assert [name["name"] for name in one["signed_by"]] == ["example.com/ledger"]
    status, told = ask(capsys, *words)
    assert (status, told["ok"], told["anchored"]) == (3, True, False)
    assert told["checkpoints"][0]["unknown"] == 1
    for make in UNSEEN.values():
        what, rows = next(make())
        store.ledger_file.write_bytes(lines(rows))
        status, told = ask(capsys, *words, "--key", str(KEY))
        assert (status, told["ok"]) == (1, False), what
        assert {fault["fault"] for fault in told["faults"]} - {"unhashed_count"} <= {
            "checkpoint_ahead", "checkpoint_mismatch",
        }  # fmt: skip
        assert told["checkpoints"][0]["extends"] is False
    store.ledger_file.unlink()
    status, told = ask(capsys, *words, "--key", str(KEY))
    assert (status, told["error"]["code"]) == (2, "E_NO_LEDGER")
    bent = file.read_bytes().replace(b"w\n7\n", b"w\n6\n")
    store.ledger_file.write_bytes(lines(HONEST))
    file.write_bytes(bent)
    status, told = ask(capsys, *words, "--key", str(KEY))
    assert (status, told["error"]["code"]) == (1, "E_NOTE_SIGNATURE")
    assert told["error"]["place"]["file"] == str(file)


def test_several_cores_see_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from troth.stores import lines as line_reader
    from troth.stores import parallel

    monkeypatch.setattr(parallel, "SHARE_BYTES", 1500)
    monkeypatch.setattr(line_reader, "CHUNK", 700)
    rows = honest(60)
    path = tmp_path / "ledger"
    path.write_bytes(lines(rows))
    for size in (0, 1, 37, 60):
        anchors = Anchors([(Path("c"), read_checkpoint(checkpoint_of(rows, size), [KEY]))])
        assert anchors.judge(JsonlStore.open(path).verify(workers=2, leaves=anchors.take)).ok
