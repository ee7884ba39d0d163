"""Members found by walking: runs of workspaces, corpora; no link followed, nothing passed over in silence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from troth.core.errors import Refused
from troth.stores import corpora
from troth.stores.corpora import MARKS, find_members


def laid(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")


def beneath(root: Path, *named: str) -> list[str]:
    found = find_members([str(root / name) for name in named or ("",)])
    return [os.path.relpath(member, root) for member in found.members]


def test_members_are_found_in_order_of_names_and_not_entered(tmp_path: Path) -> None:
    laid(
        tmp_path,
        "b/receipt.json", "b/inner/receipt.json", "a/deep/er/statement.json", "a/acceptance.policy.json/of/no/matter",
        "c/notes.txt", "d/other.json", ".hidden/receipt.json",
    )  # fmt: skip
    assert beneath(tmp_path) == [".hidden", "a", "b"]
    assert beneath(tmp_path, "b", "a") == ["b", "a"]


@pytest.mark.parametrize("mark", sorted(MARKS))
def test_every_mark_makes_a_member_whatever_it_is(tmp_path: Path, mark: str) -> None:
    laid(tmp_path, f"plain/{mark}", "nothing/observation.json")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / mark).symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder" / mark).mkdir(parents=True)
    assert beneath(tmp_path) == ["folder", "linked", "plain"]


def test_of_a_workspace_only_its_runs_are_entered(tmp_path: Path) -> None:
    laid(
        tmp_path,
        "shop/.mentu/runs/run_2/receipt.json", "shop/.mentu/runs/run_1/receipt.json",
        "shop/.mentu/reviews/r/statement.json", "shop/tests/planted/receipt.json",
        "corpus/case/receipt.json",
    )  # fmt: skip
    assert beneath(tmp_path) == ["corpus/case", "shop/.mentu/runs/run_1", "shop/.mentu/runs/run_2"]
    # Named, the planted one is looked at: naming it is the caller's choice.
    assert beneath(tmp_path, "shop/tests") == ["shop/tests/planted"]
    assert beneath(tmp_path, "shop/.mentu/runs/run_1") == ["shop/.mentu/runs/run_1"]


def test_runs_without_a_receipt_are_counted(tmp_path: Path) -> None:
    laid(tmp_path, ".mentu/runs/run_1/receipt.json", ".mentu/runs/run_2/run.json", ".mentu/runs/run_3/run.json")
    found = find_members([str(tmp_path)])
    assert (len(found.members), found.pending) == (1, 2)
    # Named itself, such a run is a member that lacks everything.
    named = str(tmp_path / ".mentu/runs/run_2")
    assert find_members([named]).members == [named]


def test_what_holds_nothing_is_itself_the_member(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    laid(tmp_path, "records/tree.json", "file")
    for name in ("empty", "records", "missing", "file"):
        assert beneath(tmp_path, name) == [name]


@pytest.mark.parametrize("names", [[".mentu/ledger.jsonl"], [".mentu/runs/run_1/run.json"]])
def test_a_workspace_without_a_receipt_is_told(tmp_path: Path, names: list[str]) -> None:
    laid(tmp_path, *names)
    found = find_members([str(tmp_path)])
    assert [fault.code for fault in found.faults.values()] == ["E_FLEET_EMPTY"]
    assert found.members == [str(tmp_path)]


def test_links_are_not_followed_beneath_what_was_named(tmp_path: Path) -> None:
    laid(tmp_path, "elsewhere/x/receipt.json", "runs/a/receipt.json")
    (tmp_path / "runs" / "out").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "runs" / "loop").symlink_to(tmp_path / "runs")
    (tmp_path / "runs" / "dangling").symlink_to(tmp_path / "nothing")
    found = find_members([str(tmp_path / "runs")])
    assert [Path(member).name for member in found.members] == ["a"]
    assert found.links == 2
    # A name that is given may be a link.
    assert beneath(tmp_path, "runs/out") == ["runs/out/x"]
    laid(tmp_path, "shop/src/app.py", "shop/receipts/receipt.json")
    (tmp_path / "shop" / ".mentu").mkdir()
    (tmp_path / "shop" / ".mentu" / "runs").symlink_to(tmp_path / "elsewhere")
    assert find_members([str(tmp_path / "shop")]).faults[str(tmp_path / "shop")].code == "E_FLEET_EMPTY"


def test_a_folder_is_taken_once(tmp_path: Path) -> None:
    laid(tmp_path, "runs/a/receipt.json", "runs/b/receipt.json")
    (tmp_path / "also").symlink_to(tmp_path / "runs" / "a")
    named = [str(tmp_path / name) for name in ("also", "runs", "runs/b", "runs/../runs/a", "also")]
    found = find_members(named)
    assert found.members == [named[0], str(tmp_path / "runs" / "b")]
    assert found.again == 4
    assert found.faults == {}


def test_a_folder_that_cannot_be_listed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    laid(tmp_path, "a/receipt.json", "closed/x/receipt.json", "z/receipt.json")
    listed = os.scandir

    def scandir(path: str) -> object:
        if path.endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return listed(path)

    monkeypatch.setattr(corpora.os, "scandir", scandir)
    found = find_members([str(tmp_path)])
    assert [Path(member).name for member in found.members] == ["a", "closed", "z"]
    assert [(Path(path).name, fault.code) for path, fault in found.faults.items()] == [("closed", "E_FLEET_UNREADABLE")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root lists everything")
def test_a_closed_folder_is_told(tmp_path: Path) -> None:
    laid(tmp_path, "closed/x/receipt.json")
    (tmp_path / "closed").chmod(0)
    try:
        assert [fault.code for fault in find_members([str(tmp_path)]).faults.values()] == ["E_FLEET_UNREADABLE"]
    finally:
        (tmp_path / "closed").chmod(0o700)


def test_too_deep_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpora, "MAX_DEPTH", 3)
    laid(tmp_path, "1/2/3/receipt.json", "one/two/three/four/receipt.json")
    found = find_members([str(tmp_path)])
    assert [os.path.relpath(member, tmp_path) for member in found.members] == ["1/2/3", "one/two/three"]
    assert [os.path.relpath(path, tmp_path) for path in found.faults] == ["one/two/three"]


def test_too_many_entries_are_refused(tmp_path: Path) -> None:
    laid(tmp_path, *(f"{number}/receipt.json" for number in range(10)))
    assert len(find_members([str(tmp_path)], limit=20).members) == 10
    with pytest.raises(Refused) as caught:
        find_members([str(tmp_path)], limit=19)
    assert caught.value.code == "E_FLEET_TOO_LARGE"


def test_names_that_are_not_text(tmp_path: Path) -> None:
    raw = os.fsencode(tmp_path) + b"/\xff\n\x1b[31m"
    os.mkdir(raw)
    laid(Path(os.fsdecode(raw)), "receipt.json")
    assert find_members([str(tmp_path)]).members == [os.fsdecode(raw)]
