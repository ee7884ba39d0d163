"""``troth deal record`` through the front door: what it writes is seen by every command of the ledger."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from deals.moves import happy, jsonl, message
from support.frontdoor import troth
from support.ledgers import environment


@pytest.fixture
def house(tmp_path: Path) -> Path:
    assert troth("init", "--workspace", "w", cwd=tmp_path).exit == 0
    return tmp_path


def test_a_deal_is_seen_with_everything_else(house: Path) -> None:
    path = house / "deal.jsonl"
    path.write_bytes(jsonl(*happy("Disclosure")))
    done = troth("deal", "record", path, "--as", "human:reviewer", "--json", cwd=house)
    assert (done.exit, done.json["recorded"], done.json["agree"]) == (0, 7, True)
    assert done.json["labels"] == ["experimental", "non-transfer"]
    (deal,) = done.json["deals"]
    assert (deal["state"], deal["ledger_state"]) == ("Adjudicating", "in_review")
    assert troth("verify", cwd=house).exit == 0
    (waits,) = troth("queue", "--json", cwd=house).json["waiting"]
    assert waits["commitment"] == deal["commitment"]
    shown = troth("show", deal["commitment"], cwd=house)
    assert (shown.exit, "system:deal-a" in shown.out) == (0, True)
    assert "experimental" in shown.out
    assert troth("deal", "judge", path, cwd=house).exit == 0
    again = troth("deal", "record", path, "--as", "human:reviewer", cwd=house)
    assert again.exit == 0
    assert "1 signals recorded, 7 already present" in again.out
    assert "experimental, non-transfer" in again.out
    assert troth("queue", "--json", cwd=house).json["waiting"] == []
    assert "system:deal-k  approve" in troth("log", cwd=house).out


def test_dry_run_and_refusals_write_nothing(house: Path) -> None:
    ledger = house / ".mentu" / "ledger.jsonl"
    path = house / "deal.jsonl"
    path.write_bytes(jsonl(*happy()))
    dry = troth("deal", "record", path, "--as", "human:reviewer", "--dry-run", cwd=house)
    assert (dry.exit, "10 signals would be recorded" in dry.out) == (0, True)
    path.write_bytes(path.read_bytes() + b"{")
    torn = troth("deal", "record", path, "--as", "human:reviewer", "--json", cwd=house)
    assert (torn.exit, torn.json["error"]["code"]) == (2, "E_TRANSCRIPT_UNREADABLE")
    assert ledger.read_bytes() == b""
    path.write_bytes(jsonl(*happy("Accept")))
    assert troth("deal", "record", path, "--as", "human:reviewer", cwd=house).exit == 0
    path.write_bytes(jsonl(*happy("Accept"), (0, message(3, "Reject"))))
    assert troth("deal", "record", path, "--as", "human:reviewer", cwd=house).exit == 0
    before = ledger.read_bytes()
    path.write_bytes(jsonl(*happy("EscrowHold")))
    fork = troth("deal", "record", path, "--as", "human:reviewer", "--json", cwd=house)
    assert (fork.exit, fork.json["error"]["code"]) == (2, "E_DEAL_FORKED")
    assert ledger.read_bytes() == before


def test_what_somebody_decided_meanwhile_is_told(house: Path) -> None:
    path = house / "deal.jsonl"
    path.write_bytes(jsonl(*happy("Disclosure")))
    deal = troth("deal", "record", path, "--as", "human:reviewer", "--json", cwd=house).json["deals"][0]
    assert troth("approve", deal["commitment"], "--as", "human:reviewer", cwd=house).exit == 0
    path.write_bytes(jsonl(*happy()))
    done = troth("deal", "record", path, "--as", "human:reviewer", "--json", cwd=house)
    assert (done.exit, done.json["refused_count"]) == (2, 1)
    assert done.json["refused"][0]["code"] == "E_ALREADY_CLOSED"
    assert troth("verify", cwd=house).exit == 0


def test_killed_on_the_way_it_goes_on(house: Path) -> None:
    """The process ends at once, wherever it is; what is on the disk then is a good beginning."""
    lines = [line for number in range(400) for line in happy(offer_id=f"off_{number}", start=10 * number)]
    path = house / "deals.jsonl"
    path.write_bytes(jsonl(*lines))
    ledger = house / ".mentu" / "ledger.jsonl"
    words = [sys.executable, "-m", "troth", "deal", "record", str(path), "--as", "human:reviewer"]
    process = subprocess.Popen(words, cwd=house, env=environment(), stdout=subprocess.DEVNULL)
    while process.poll() is None and ledger.stat().st_size == 0:
        time.sleep(0.002)
    process.kill()
    process.wait()
    there = ledger.read_bytes().count(b"\n")  # what the last write left torn is set aside by the next writer
    done = troth("deal", "record", path, "--as", "human:reviewer", "--json", cwd=house)
    assert (done.exit, done.json["agree"], done.json["recorded"] + done.json["present"]) == (0, True, 400 * 9 + 1)
    assert done.json["present"] == there
    assert {deal["ledger_state"] for deal in done.json["deals"]} == {"closed"}
    assert troth("verify", cwd=house).exit == 0
