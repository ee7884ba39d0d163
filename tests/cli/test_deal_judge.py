"""``troth deal judge`` through the front door: the verdict is computed, told, and written into the transcript."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from deals.moves import happy, jsonl, message
from support.frontdoor import troth
from troth.stores.transcripts import opened

ITEM = {"id": "goal", "predicate": "claim_regex", "pattern": "hidden_(goal|aim)"}


def disclosed(folder: Path, *claims: str, items: tuple[dict[str, Any], ...] = (ITEM,), tail: bytes = b"") -> Path:
    lines = happy("Disclosure")
    lines[0][1]["obligation"]["checklist"] = list(items)
    lines[-1][1]["claims"] = list(claims)
    path = folder / "deal.jsonl"
    path.write_bytes(jsonl(*lines) + tail)
    return path


@pytest.mark.parametrize(
    ("claims", "items", "result", "status", "state"),
    [
        (["the hidden_aim"], (ITEM,), "pass", 0, "Settling"),
        (["nothing"], (ITEM,), "fail", 1, "Closed:breached(A:fail)"),
        (["x"], (ITEM | {"pattern": "("},), "inconclusive", 3, "Closed:inconclusive"),
        (["hidden_goal"], (ITEM, {"id": "odd", "predicate": "unheard"}), "inconclusive", 3, "Closed:inconclusive"),
    ],
)
def test_the_verdict_is_written_as_k_says_it(
    tmp_path: Path, claims: list[str], items: tuple[dict[str, Any], ...], result: str, status: int, state: str
) -> None:
    path = disclosed(tmp_path, *claims, items=items)
    before = path.read_bytes()
    dry = troth("deal", "judge", path, "--dry-run", "--json", cwd=tmp_path)
    assert (dry.exit, dry.json["result"], dry.json["written"]) == (status, result, False)
    assert path.read_bytes() == before
    done = troth("deal", "judge", path, "--offer", "off_1", "--json", cwd=tmp_path)
    assert (done.exit, done.json["result"], done.json["state"]) == (status, result, state)
    assert done.json["labels"] == ["experimental", "non-transfer"]
    assert path.read_bytes().startswith(before)
    line = json.loads(path.read_bytes()[len(before) :])
    assert line["msg"]["from"] == "K"
    assert line["msg"]["result"] == result
    assert [one["id"] for one in line["msg"]["checklist_results"]] == [item["id"] for item in items]
    assert line["msg"]["notes"] == "; ".join(f"{one['id']}: {one['why']}" for one in done.json["reasons"])
    checked = troth("deal", "check", path, "--json", cwd=tmp_path).json["deals"]["off_1"]
    assert (checked["state"], checked["illegal"]) == (state, None)


def test_in_words(tmp_path: Path) -> None:
    done = troth("deal", "judge", disclosed(tmp_path, "x", items=(ITEM, ITEM | {"pattern": "("})), cwd=tmp_path)
    assert done.exit == 3
    assert "experimental, non-transfer" in done.out
    assert "no pattern: missing )" in done.out
    assert "was written" in done.err


def test_a_line_without_its_end_gets_one_first(tmp_path: Path) -> None:
    path = disclosed(tmp_path, "hidden_goal")
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert troth("deal", "judge", path, cwd=tmp_path).exit == 0
    assert troth("deal", "check", path, "--json", cwd=tmp_path).json["deals"]["off_1"]["state"] == "Settling"


@pytest.mark.parametrize(
    ("words", "tail", "code"),
    [
        (["--step", "9"], b"", "E_DEAL_STATE"),
        (["--offer", "off_2"], b"", "E_DEAL_UNKNOWN"),
        ([], jsonl((0, message(9, "Verdict"))), "E_DEAL_UNKNOWN"),
        (["--offer", "off_1"], jsonl((0, message(9, "Verdict"))), "E_DEAL_STATE"),
        ([], jsonl({"step": 0, "end": True}), "E_DEAL_STATE"),
        (["--step", "0"], jsonl((1, message(9, "Accept", offer_id="off_2"))), "E_USAGE"),
        ([], b"{", "E_TRANSCRIPT_UNREADABLE"),
    ],
)
def test_a_refusal_writes_nothing(tmp_path: Path, words: list[str], tail: bytes, code: str) -> None:
    path = disclosed(tmp_path, "hidden_goal", tail=tail)
    before = path.read_bytes()
    done = troth("deal", "judge", path, *words, "--json", cwd=tmp_path)
    assert (done.exit, done.json["error"]["code"]) == (2, code)
    assert path.read_bytes() == before


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    path = disclosed(tmp_path, "hidden_goal")
    with opened(path):
        busy = troth("deal", "judge", path, "--json", cwd=tmp_path)
        assert (busy.exit, busy.json["error"]["code"]) == (75, "E_BUSY")
        assert troth("deal", "check", path, cwd=tmp_path).exit == 3  # whoever reads need not wait
    assert troth("deal", "judge", path, cwd=tmp_path).exit == 0


def test_a_long_checklist_makes_no_line_that_nobody_reads(tmp_path: Path) -> None:
    items = tuple({"id": "x", "predicate": "unheard"} for _ in range(20_000))
    path = disclosed(tmp_path, "hidden_goal", items=items)
    assert troth("deal", "judge", path, cwd=tmp_path).exit == 3
    assert len(json.loads(path.read_bytes().splitlines()[-1])["msg"]["notes"]) == 4000
    assert troth("deal", "check", path, cwd=tmp_path).exit == 3


@pytest.mark.parametrize(("name", "code"), [("nowhere", "E_TRANSCRIPT_UNREADABLE"), ("link", "E_NOT_REGULAR")])
def test_no_transcript(tmp_path: Path, name: str, code: str) -> None:
    (tmp_path / "link").symlink_to(disclosed(tmp_path, "hidden_goal"))
    done = troth("deal", "judge", name, "--json", cwd=tmp_path)
    assert (done.exit, done.json["error"]["code"]) == (2, code)
    assert not (tmp_path / "nowhere").exists()
