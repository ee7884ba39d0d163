"""0.3-proxy through the front door: opted into, refused by v0.2, drawn, its betrayals told."""

from __future__ import annotations

from pathlib import Path

import pytest

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
