"""0.3-proxy through the front door: opted into, refused by v0.2, drawn, its betrayals told."""

from __future__ import annotations

from pathlib import Path

import pytest

from deals.moves import happy, jsonl, message
from support.frontdoor import troth

STATES = {
    "honest": ("Closed:settled", 0),
    "declines": ("Closed:declined", 3),
    "withholds": ("Closed:breached(P:withholds)", 1),
    "short": ("Closed:breached(P:withholds)", 1),
    "pays_another": ("Closed:breached(P:pays_another)", 1),
    "colludes": ("Closed:breached(P:colludes)", 1),
}


@pytest.mark.parametrize("name", STATES)
def test_a_deal_with_a_trustee_is_read_only_where_it_is_asked_for(tmp_path: Path, name: str) -> None:
    played = troth("deal", "proxy", name, "--out", "p.jsonl", "--json", cwd=tmp_path)
    assert played.exit == 0
    assert (played.json["protocol"], played.json["deals"]["off_1"]["state"]) == ("0.3-proxy", STATES[name][0])
    checked = troth("deal", "check", "p.jsonl", "--protocol", "0.3-proxy", "--json", cwd=tmp_path)
    assert (checked.json["deals"]["off_1"]["state"], checked.exit) == STATES[name]
    assert sum(checked.json["balances"].values()) == 0
    plain = troth("deal", "check", "p.jsonl", "--json", cwd=tmp_path)
    assert plain.exit == 1
    assert plain.json["deals"]["off_1"]["illegal"] == {"line": 1, "code": "malformed"}
    assert set(plain.json["balances"]) == {"C", "A", "E"}
    assert "is read with --protocol 0.3-proxy" in plain.err


def test_in_words_and_drawn(tmp_path: Path) -> None:
    played = troth("deal", "proxy", "short", "--out", "p.jsonl", cwd=tmp_path)
    assert "ours, not the source's" in played.out
    assert "experimental, non-transfer" in played.out
    told = troth("deal", "check", "p.jsonl", "--protocol", "0.3-proxy", cwd=tmp_path)
    assert "[deliver_mismatch]" in told.out
    assert "P trustee" in troth("deal", "show", "p.jsonl", "--protocol", "0.3-proxy", cwd=tmp_path).out
    assert "Entrusted" in troth("deal", "machine", "--protocol", "0.3-proxy", "--mermaid", cwd=tmp_path).out
    assert "Entrusted" not in troth("deal", "machine", "--mermaid", cwd=tmp_path).out


@pytest.mark.parametrize(
    ("words", "code"),
    [(["nobody"], "E_TRUSTEE_UNKNOWN"), (["honest", "--out", "there"], "E_TRANSCRIPT_EXISTS"), ([], "E_USAGE")],
)
def test_refusals(tmp_path: Path, words: list[str], code: str) -> None:
    (tmp_path / "there").write_text("mine")
    done = troth("deal", "proxy", *words, "--json", cwd=tmp_path)
    assert (done.exit, done.json["error"]["code"]) == (2, code)
    assert (tmp_path / "there").read_text() == "mine"


def test_a_v02_transcript_is_told_of_no_other_protocol(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_bytes(jsonl(*happy("Offer"), (0, message(2, "Accept") | {"x": 1})))
    done = troth("deal", "check", "t.jsonl", cwd=tmp_path)
    assert "0.3-proxy" not in done.err + done.out


@pytest.mark.parametrize("name", STATES)
def test_a_deal_with_a_trustee_on_the_ledger(tmp_path: Path, name: str) -> None:
    assert troth("init", cwd=tmp_path).exit == 0
    troth("deal", "proxy", name, "--out", "p.jsonl", cwd=tmp_path)
    words = ["deal", "record", "p.jsonl", "--protocol", "0.3-proxy", "--as", "human:reviewer", "--json"]
    done = troth(*words, cwd=tmp_path)
    assert (done.exit, done.json["agree"], done.json["refused_count"]) == (0, True, 0)
    (deal,) = done.json["deals"]
    assert (deal["state"], deal["ledger_state"]) == (STATES[name][0], "claimed" if name == "declines" else "closed")
    assert troth("verify", cwd=tmp_path).exit == 0
    assert "system:deal-p" in troth("log", "-n", "50", cwd=tmp_path).out


def test_a_disclosure_to_a_trusted_deal_is_judged(tmp_path: Path) -> None:
    troth("deal", "proxy", "honest", "--out", "p.jsonl", cwd=tmp_path)
    path = tmp_path / "p.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:5]))
    done = troth("deal", "judge", "p.jsonl", "--protocol", "0.3-proxy", "--json", cwd=tmp_path)
    assert (done.exit, done.json["state"]) == (0, "Settling")
    assert troth("deal", "judge", "p.jsonl", cwd=tmp_path).exit == 2
