"""Many members at once: the same rows from one process and from many; nothing that is wrong with one stops another."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from multiprocessing import get_all_start_methods
from pathlib import Path
from typing import Any

import pytest

from receipts.faults import put
from receipts.test_receipt import sealed, stated, value
from support.receipt_members import Draft, event
from support.shared import conformance, needs_shared
from troth.airlock import fleets
from troth.airlock.fleets import Row, check_all, check_one
from troth.receipts.member import MAX_BYTES
from troth.receipts.pinning import read_pins
from troth.receipts.verify import check_member, headline, standing
from troth.stores.corpora import find_members
from troth.stores.members import FolderMember

needs_fork = pytest.mark.skipif("fork" not in get_all_start_methods(), reason="the stand-ins travel by fork")


def laid(folder: Path, files: dict[str, bytes]) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return str(folder)


def mutated() -> Draft:
    return Draft().add_events(event(5, "write", path="tests/test_a.py", origin="e4"))


KINDS: list[tuple[str, Callable[[], dict[str, bytes]], tuple[str, str, str, str]]] = [
    ("good", sealed, ("receipt", "supported", "done_checks_supported", "holds")),
    ("bad", lambda: sealed(mutated()), ("receipt", "contradicted", "protected_path_mutated", "does_not_hold")),
    (
        "open",
        lambda: sealed(value("observation", put("coverage", "unknown"))(Draft())),
        ("receipt", "not_established", "observation_coverage_unestablished", "not_established"),
    ),
    ("false", lambda: sealed(edit=put("_type", "x")), ("receipt", "invalid", "receipt_type_wrong", "does_not_hold")),
    (
        "torn",
        lambda: sealed(value("tree", put("files", []))(Draft())),
        ("receipt", "refused", "tree_files_type", "refused"),
    ),
    ("contract", stated, ("contract", "valid", "", "holds")),
    (
        "other contract",
        lambda: stated(put("predicate", {})),
        ("contract", "invalid", "statement_predicate_differs", "does_not_hold"),
    ),
    ("without", lambda: Draft().seal(), ("checks", "supported", "done_checks_supported", "holds")),
    ("empty", dict, ("checks", "refused", "case_missing", "refused")),
]


def of(row: Row) -> tuple[str, str, str, str]:
    return row.kind, row.verdict, row.reason, row.standing


@pytest.fixture
def many(tmp_path: Path) -> list[str]:
    """A few shares of every kind."""
    made = {name: files() for name, files, _ in KINDS}
    return [laid(tmp_path / f"{number:03} {name}", made[name]) for number in range(9) for name in made]


@pytest.mark.parametrize(("files", "told"), [case[1:] for case in KINDS], ids=[case[0] for case in KINDS])
def test_each_kind(tmp_path: Path, files: Any, told: Any) -> None:
    folder = laid(tmp_path / "m", files())
    row = check_one(folder, None)
    assert of(row) == told
    assert row.result == check_member(FolderMember(folder))
    assert (row.receipt_sha256 is None) == ("receipt.json" not in files())
    assert (row.claim_id, row.invocation_id) == (
        ("claim-1", "run-1") if told[0] == "receipt" and told[2] != "receipt_type_wrong" else (None, None)
    )


def test_the_file_at_fault_is_named(tmp_path: Path) -> None:
    files = sealed(value("tree", put("files", []))(Draft()))
    assert check_one(laid(tmp_path / "a", files), None).place == "tree.json"
    changed = {**sealed(), "grade.json": b"{}"}
    row = check_one(laid(tmp_path / "b", changed), None)
    assert (row.reason, row.place) == ("receipt_record_digest_mismatch", "grade.json")


def test_checks_without_a_receipt(tmp_path: Path) -> None:
    folder = laid(tmp_path / "m", mutated().seal())
    assert of(check_one(folder, ("tool_claim_match/v1",)))[1:3] == ("supported", "tool_claims_matched")
    assert of(check_one(folder, ("tool_claim_match/v1", "protected_paths/v1")))[1:3] == (
        "contradicted",
        "protected_path_mutated",
    )


def test_many_processes_give_the_rows_of_one(many: list[str]) -> None:
    alone = list(check_all(many, None, 1))
    assert [row.member for row in alone] == many
    assert [of(row) for row in alone] == [case[2] for case in KINDS] * 9
    for jobs in (2, 3):
        assert list(check_all(many, None, jobs)) == alone
    assert list(check_all([], None, 2)) == []


def test_a_machine_without_further_processes(many: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    alone = list(check_all(many, None, 1))
    monkeypatch.setattr(fleets, "_pool", lambda jobs, asked: None)
    assert list(check_all(many, None, 2)) == alone


def test_a_missing_folder_and_a_fault_of_ours_are_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = laid(tmp_path / "good", sealed())
    row = check_one(str(tmp_path / "nothing"), None)
    assert (row.standing, row.verdict, row.reason, row.exit_status) == ("error", "error", "E_MEMBER_MISSING", 2)
    assert check_one("a\0b", None).reason == "E_MEMBER_MISSING"

    def examine(member: Any, names: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr(fleets, "examine", examine)
    row = check_one(good, None)
    assert (row.reason, row.exit_status) == ("E_DEFECT", 70)


def test_files_that_are_none_stop_nothing(tmp_path: Path) -> None:
    def with_receipt(name: str) -> Path:
        return Path(laid(tmp_path / name, {**sealed(), "receipt.json": b""})) / "receipt.json"

    pipe, folder, loop, large, deep, wide = map(with_receipt, ("1pipe", "2dir", "3loop", "4large", "5deep", "6wide"))
    for path in (pipe, folder, loop):
        path.unlink()
    os.mkfifo(pipe)
    folder.mkdir()
    loop.symlink_to(loop)
    with large.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    deep.write_bytes(b"[" * 200_000 + b"]" * 200_000)
    wide.write_bytes(b"[" + b"9" * 100_000 + b"]")
    laid(tmp_path / "7good", sealed())
    members = find_members([str(tmp_path)]).members
    assert [Path(member).name for member in members] == ["1pipe", "2dir", "3loop", "4large", "5deep", "6wide", "7good"]
    assert [row.reason for row in check_all(members * 6, None, 2)] == [
        *["member_unreadable"] * 4,
        *["receipt_json_invalid"] * 2,
        "done_checks_supported",
    ] * 6


PINS = {"observed_party": "agent", "producers": {"observation": "observer", "tree": "observer", "grade": "verifier"}}


def test_by_pins(tmp_path: Path) -> None:
    def came_to(files: dict[str, bytes], pins: Any) -> list[tuple[str, str]]:
        laid(tmp_path / "m", files)
        rows = list(check_all([str(tmp_path / "m")] * 70, None, 2, read_pins(pins)))
        return sorted({(row.verdict, row.reason) for row in rows})

    other = {**PINS, "producers": {**PINS["producers"], "tree": "somebody"}}  # type: ignore[dict-item]  # a table
    assert came_to(sealed(), PINS) == [("supported", "done_checks_supported")]
    # Another producer's tree establishes nothing, so the receipt states what these pins do not give.
    assert came_to(sealed(), other) == [("invalid", "receipt_check_not_recomputed")]
    assert came_to({**sealed(), "tree.json": b"{}"}, PINS) == [("invalid", "receipt_record_digest_mismatch")]
    assert came_to({**sealed(), "observation.json": b"{}"}, PINS) == [("refused", "observation_fields")]
    # A policy of the folder's own has no say.
    assert came_to({**sealed(), "acceptance.policy.json": b"{"}, PINS) == [("supported", "done_checks_supported")]
    (tmp_path / "m" / "claims.json").unlink()
    row = check_one(str(tmp_path / "m"), None, read_pins(PINS))
    assert (row.verdict, row.reason) == ("refused", "receipt_record_missing")


# --- folders that change ---


class Writing:
    """Stands where a member is read, and writes to the folder between two of its files, a number of times."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, write: Callable[[], None], times: int) -> None:
        self.left = times
        read = FolderMember.read

        def reading(member: FolderMember, name: str) -> bytes | None:
            data = read(member, name)
            if name == "contract.json" and self.left:
                self.left -= 1
                write()
            return data

        monkeypatch.setattr(FolderMember, "read", reading)


@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "overwritten"])
def test_a_folder_half_written_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: bool) -> None:
    old, new = sealed(mutated()), sealed()
    folder = Path(laid(tmp_path / "m", {**old, "observation.json": b"{}"}))

    def write() -> None:
        for name, data in new.items():
            if replaced:
                (folder / f"{name}.new").write_bytes(data)
                (folder / f"{name}.new").replace(folder / name)
            else:
                (folder / name).write_bytes(data)

    Writing(monkeypatch, write, 1)
    assert of(check_one(str(folder), None)) == ("receipt", "supported", "done_checks_supported", "holds")


def test_a_folder_that_never_rests_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(laid(tmp_path / "m", {**sealed(), "grade.json": b"{}"}))
    count = iter(range(100))

    def write() -> None:
        (folder / f"more{next(count)}").touch()

    Writing(monkeypatch, write, 99)
    row = check_one(str(folder), None)
    assert (row.standing, row.reason, row.exit_status) == ("error", "E_MEMBER_CHANGED", 75)


def test_what_holds_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = Path(laid(tmp_path / "m", sealed()))
    writing = Writing(monkeypatch, (folder / "more").touch, 99)
    assert check_one(str(folder), None).standing == "holds"
    assert writing.left == 98


# --- processes that die ---


@needs_fork
def test_a_process_that_is_killed_costs_nothing(
    many: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = list(check_all(many, None, 1))
    once, parent, checked = tmp_path / "once", os.getpid(), check_one

    def dying(member: str, *asked: Any) -> Row:
        if member == many[40] and os.getpid() != parent and not once.exists():
            once.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return checked(member, *asked)

    monkeypatch.setattr(fleets, "check_one", dying)
    assert list(check_all(many, None, 2)) == alone
    assert once.exists()


@needs_fork
def test_a_member_that_ends_every_process_is_told_and_the_others_are_checked(
    many: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = list(check_all(many, None, 1))
    parent, checked = os.getpid(), check_one

    def dying(member: str, *asked: Any) -> Row:
        if member == many[40]:
            assert os.getpid() != parent
            os.kill(os.getpid(), signal.SIGKILL)
        return checked(member, *asked)

    monkeypatch.setattr(fleets, "check_one", dying)
    rows = list(check_all(many, None, 2))
    assert (rows[40].member, rows[40].reason, rows[40].exit_status) == (many[40], "E_FLEET_WORKER", 70)
    assert rows[:40] + rows[41:] == alone[:40] + alone[41:]


# --- real corpora ---


@needs_shared
def test_published_members_by_walking() -> None:
    found = find_members([str(conformance("receipts"))])
    assert len(found.members) >= 48
    rows = list(check_all(found.members, None, 2))
    for row in rows:
        expected = check_member(FolderMember(row.member))
        assert row.result == expected
        assert (row.verdict, row.reason) == headline(expected)
        assert row.standing == standing(expected)
