"""Run folders: reproduced byte for byte, checked from their own transcript, and found out when tampered with."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.frontdoor import troth
from troth.cli.main import main
from troth.core.errors import Refused
from troth.deals.codes import LABELS
from troth.lab.folders import check, files_of, write
from troth.lab.playing import Setting
from troth.lab.suites import find
from troth.lab.suites.playing import play_suite
from troth.lab.suites.single import single


@pytest.fixture(scope="module")
def files() -> dict[str, bytes]:
    return files_of(play_suite(find("F1"), 5, 3))


@pytest.fixture
def folder(tmp_path: Path, files: dict[str, bytes]) -> Path:
    made = tmp_path / "f1"
    assert write(made, files)
    return made


def test_what_lies_in_a_folder(folder: Path, files: dict[str, bytes]) -> None:
    assert {"run.json", "transcript.jsonl", "final.json", "outcomes.jsonl", "report.json", "report.html"} <= set(files)
    for name, data in files.items():
        assert (folder / name).read_bytes() == data
    offers = sorted((folder / "offers").iterdir())
    assert len(offers) == 12
    final = json.loads(files["final.json"])
    snapshots = {one for deal in final["deals"].values() for one in deal["snapshots"]}
    assert {path.stem for path in offers} == snapshots
    assert all(hashlib.sha256(path.read_bytes()).hexdigest() == path.stem for path in offers)
    for name in ("run.json", "final.json", "report.json"):
        assert json.loads(files[name])["labels"] == list(LABELS)
    assert all(label in files["report.html"].decode() for label in LABELS)
    rows = [json.loads(line) for line in files["outcomes.jsonl"].splitlines()]
    assert [row["labels"] for row in rows] == [", ".join(LABELS)] * 12


def test_played_again_it_is_the_same(folder: Path, files: dict[str, bytes]) -> None:
    assert files_of(play_suite(find("F1"), 5, 3)) == files
    found = check(folder)
    assert found.faults == ()
    assert found.runs[0].again is not None
    assert check(folder, again=False).runs[0].again is None
    assert not write(folder, files)


def test_nothing_is_overwritten(folder: Path, files: dict[str, bytes]) -> None:
    other = files_of(play_suite(find("F1"), 6, 3))
    with pytest.raises(Refused) as told:
        write(folder, other)
    assert told.value.code == "E_RUN_FOLDER_EXISTS"
    assert check(folder).faults == ()
    (folder.parent / "file").write_text("mine")
    with pytest.raises(Refused):
        write(folder.parent / "file", files)
    assert (folder.parent / "file").read_text() == "mine"
    assert sorted(path.name for path in folder.parent.iterdir()) == ["f1", "file"]


def edited(name: str, change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def tamper(folder: Path) -> None:
        path = folder / name
        data = path.read_bytes()
        assert change(data) != data
        path.write_bytes(change(data))

    return tamper


def row(change: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    return edited("outcomes.jsonl", change)


WITHHELD = b'"breached(C:withhold_payout_after_pass)"'


def an_offer(folder: Path) -> Path:
    return min((folder / "offers").iterdir())


RECORDS = {
    "a row says it settled": (row(lambda data: data.replace(WITHHELD, b'"settled"', 1)), "outcomes.jsonl"),
    "a row is paid": (row(lambda data: data.replace(b'"paid":0', b'"paid":10', 1)), "outcomes.jsonl"),
    "a row less": (row(lambda data: data[: data.rindex(b"\n", 0, -1) + 1]), "outcomes.jsonl"),
    "a row that is none": (row(lambda data: b"[1]\n" + data.partition(b"\n")[2]), "outcomes.jsonl"),
    "the final record": (edited("final.json", lambda data: data.replace(b'"paid":0', b'"paid":9', 1)), "final.json"),
    "a message more": (
        edited("transcript.jsonl", lambda data: data.replace(b'"amount":10', b'"amount":11', 1)), "final.json",
    ),
    "no transcript": (lambda folder: (folder / "transcript.jsonl").unlink(), "transcript.jsonl"),
    "a torn transcript": (edited("transcript.jsonl", lambda data: data[:-9]), "transcript.jsonl"),
    "no final record": (lambda folder: (folder / "final.json").unlink(), "final.json"),
    "an offer's bytes": (lambda folder: an_offer(folder).write_bytes(b"{}"), "offers/"),
    "an offer less": (lambda folder: an_offer(folder).unlink(), "offers/"),
    "an offer more": (lambda folder: (folder / "offers" / f"{'0' * 64}.json").write_bytes(b"{}"), "offers/"),
}  # fmt: skip
"""What the folder's own transcript shows."""

OTHERS = {
    "the report": (edited("report.json", lambda data: data.replace(b'"k":3', b'"k":2', 1)), "report.json"),
    "the page": (edited("report.html", lambda data: data + b"<!-- -->"), "report.html"),
    "what only the oracle knows": (
        edited("outcomes.jsonl", lambda data: data.replace(b'"loss_a":10', b'"loss_a":0', 1)), "outcomes.jsonl",
    ),
    "a file more": (lambda folder: (folder / "notes.txt").write_bytes(b"x"), "notes.txt"),
    "a plot less": (lambda folder: min((folder / "plots").iterdir()).unlink(), "plots/"),
    "another seed": (edited("run.json", lambda data: data.replace(b'"seed":5', b'"seed":6')), "run.json"),
}  # fmt: skip
"""What playing again shows."""


@pytest.mark.parametrize("what", [*RECORDS, *OTHERS])
def test_a_folder_tampered_with_is_found(what: str, folder: Path) -> None:
    tamper, where = {**RECORDS, **OTHERS}[what]
    tamper(folder)
    quick = [name for name, _ in check(folder, again=False).faults]
    assert any(name.startswith(where) for name in quick) == (what in RECORDS)
    if what == "another seed":
        assert check(folder).faults  # everything differs but the recipe, which is what is played
    elif what not in RECORDS:
        assert [name for name, _ in check(folder).faults if name.startswith(where)]


def test_a_forged_deal_that_is_called_real(tmp_path: Path) -> None:
    made = files_of(play_suite(single(Setting(forged="forged_hold")), 1, 2))
    made["outcomes.jsonl"] = made["outcomes.jsonl"].replace(b'"real":false', b'"real":true')
    write(tmp_path / "run", made)
    (fault,) = check(tmp_path / "run", again=False).faults
    assert fault == ("outcomes.jsonl", "row 1 calls a forged deal real")


@pytest.mark.parametrize(
    "recipe", [b"", b"[]", b"{}", b'{"schema":"urn:troth:lab:run:1","seed":1,"deals":1,"suite":"../../etc"}',
               b'{"schema":"urn:troth:lab:run:1","suites":["../f1"]}',
               b'{"schema":"urn:troth:lab:run:1","seed":1,"deals":1,"suite":"run","setting":{"c":1}}',
               b'{"schema":"urn:troth:lab:run:1","seed":1,"deals":1,"suite":"F1","rule":{"criteria":[{"x":1}]}}'],
)  # fmt: skip
def test_recipes_that_are_none(recipe: bytes, folder: Path) -> None:
    (folder / "run.json").write_bytes(recipe)
    with pytest.raises(Refused) as told:
        check(folder)
    assert told.value.code == "E_RUN_FOLDER"


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_links_and_pipes_are_not_followed(folder: Path) -> None:
    (folder / "final.json").unlink()
    (folder / "final.json").symlink_to("/etc/passwd")
    with pytest.raises(Refused, match="cannot be read"):
        check(folder)
    (folder / "final.json").unlink()
    os.mkfifo(folder / "final.json")
    with pytest.raises(Refused, match="no plain file"):
        check(folder)


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(["deal", *words])
    return status, capsys.readouterr().out


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_run_and_report_in_one_command_each(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("run", "--c", "withholding", "--object", "welfare_review", "--seed", "3", "--out", "one")
    status, out = said(capsys, *words, "--json")
    assert status == 1
    value = json.loads(out)
    assert value["labels"] == list(LABELS)
    assert value["folders"] == [{"folder": "one", "written": True}]
    assert value["suites"][0]["command"] == "troth deal run --c withholding --object welfare_review --seed 3 --runs 1"
    assert said(capsys, "check", "one/transcript.jsonl")[0] == 1
    assert said(capsys, "report", "one")[0] == 0
    status, out = said(capsys, *words)
    assert status == 1
    assert "the same bytes stand in: one" in out
    assert all(label in out for label in LABELS)
    (here / "one" / "final.json").write_bytes(b"{}")
    status, out = said(capsys, "report", "one", "--json", "--quick")
    assert status == 1
    assert json.loads(out)["faults"] == [{"file": "final.json", "says": "is not what the transcript comes to"}]


def test_suite_and_b3(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out = said(capsys, "suite", "f3", "--runs", "5", "--seed", "2")
    assert status == 0
    assert "shown in every deal" in out
    assert "f3-seed2-5" in out
    status, out = said(capsys, "b3", "--runs", "30", "--json")
    assert status == 0
    value = json.loads(out)["suites"][0]
    assert [arm["name"] for arm in value["arms"]] == ["cash", "object", "both"]
    assert len(value["comparisons"]) == 6
    assert all(one["holds"] for one in value["demands"])
    assert (here / "b3-seed1-30" / "report.html").is_file()


@pytest.mark.parametrize(
    "words",
    [
        ("run", "--a", "rationale"), ("run", "--forged", "truth"), ("run", "--amount", "-1"), ("suite", "F9"),
        ("suite", "F8"), ("suite", "F1", "--runs", "0"), ("suite", "F1", "--seed", "-1"), ("report", "nowhere"),
        ("suite", "F1", "--rule", "nowhere.toml"), ("run", "--expires-steps", "101"),
    ],
)  # fmt: skip
def test_refusals(words: tuple[str, ...], here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out = said(capsys, *words, "--json")
    assert status == 2
    assert json.loads(out)["error"]["code"].startswith("E_")
    assert list(here.iterdir()) == []


def test_policies_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(json.loads(said(capsys, "run", "--policies", "--json")[1])) == {"C", "A", "K"}
    out = said(capsys, "run", "--policies")[1]
    assert "withholding" in out
    assert "colludes_with" in out


@pytest.mark.slow
def test_all_suites_on_one_page(tmp_path: Path) -> None:
    done = troth("deal", "suite", "all", "--runs", "20", "--out", "all", cwd=tmp_path, timeout=600)
    assert done.exit == 0, done.err
    assert troth("deal", "report", "all", cwd=tmp_path, timeout=600).exit == 0
    (tmp_path / "all" / "report.html").write_text("better")
    found = troth("deal", "report", "all", "--json", cwd=tmp_path, timeout=600)
    assert found.json["faults"] == [{"file": "report.html", "says": "holds other bytes"}]


def test_a_place_that_is_taken_is_refused_before_anything_is_played(
    tmp_path: Path, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def never(*_: object) -> None:
        raise AssertionError

    with monkeypatch.context() as patched:
        patched.setattr("troth.lab.suites.playing.play_suite", never)
        (tmp_path / "file").write_text("mine")
        (tmp_path / "folder").mkdir()
        (tmp_path / "link").symlink_to(tmp_path / "folder")
        for name in ("file", "folder", "link"):
            assert main(["deal", "suite", "f1", "--runs", "3", "--out", str(tmp_path / name)]) == 2
            assert "E_RUN_FOLDER_EXISTS" in capsys.readouterr().err
        assert (tmp_path / "file").read_text() == "mine"
    # and the honest twin: the folder of the very same run may stand there
    assert main(["deal", "run", "--out", str(tmp_path / "again")]) == 0
    assert main(["deal", "run", "--out", str(tmp_path / "again")]) == 0
    assert "the same bytes stand in" in capsys.readouterr().out


def test_the_folder_of_a_sweep_is_told_from_that_of_a_run(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "swept").mkdir()
    (tmp_path / "swept" / "sweep.json").write_text("{}")
    with pytest.raises(Refused, match="folder of a sweep"):
        check(tmp_path / "swept")
    (folder / "sweep.json").write_text("{}")
    assert check(folder, again=True).faults == (("sweep.json", "does not belong there"),)
