"""``troth deal record`` through the front door: what it writes is seen by every command of the ledger."""

from __future__ import annotations

from pathlib import Path

import pytest

from deals.moves import happy, jsonl, message
from support.frontdoor import troth


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
