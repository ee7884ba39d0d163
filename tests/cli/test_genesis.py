"""`troth genesis`, and what a key does at the front door."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ledger.genesis_keys import IDENTITY, WHOLE
from support import frontdoor
from support.ledgers import fingerprint
from support.shell import Shell, make_shell
from troth.ledger.codes import RULES
from troth.ledger.genesis import parse_genesis

BROKEN = "identity: {name: n}\nactors: []\nvalidation: {tiers: {tier_4: {}}}\n"
"""Wrong on every line."""

PLACES = [(1, "$.identity.owner"), (2, "$.actors"), (3, "$.validation.tiers.tier_4")]


@pytest.fixture
def troth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    """Run commands in a fresh workspace, as a reviewer unless told otherwise."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROTH_ACTOR", "human:reviewer")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    shell = make_shell(capfd)
    assert shell("init", "--workspace", "w").exit == 0
    return shell


def put(text: str) -> None:
    Path(".mentu/genesis.key").write_text(text)


# init ----------------------------------------------------------------------------------------------------------


def test_the_template_is_valid_as_it_stands_and_never_overwrites(troth: Shell, tmp_path: Path) -> None:
    said = troth("genesis", "init")
    assert said.exit == 0
    assert "genesis validate" in said.out
    text = Path(".mentu/genesis.key").read_bytes()
    genesis = parse_genesis(text)
    assert (genesis.identity.name, genesis.identity.owner) == ("w", "human:reviewer")
    assert genesis.remarks == ()
    assert genesis.permits("agent:any", "submit")
    assert not genesis.permits("agent:any", "approve")
    assert genesis.permits("system:witness", "capture")
    assert troth("genesis", "validate").exit == 0
    before = fingerprint(tmp_path)
    again = troth("genesis", "init", "--json")
    assert (again.exit, again.json["error"]["code"]) == (2, "E_GENESIS_EXISTS")
    assert fingerprint(tmp_path) == before


@pytest.mark.parametrize(
    "actor", ["human:O'Brien", 'human:"q"', "a@example.org", "human:é\U0001f600", "human:{x}", "human:#1"]
)
def test_the_template_of_odd_names_is_valid(troth: Shell, actor: str) -> None:
    said = troth("genesis", "init", "draft.key", "--as", actor, "--json")
    assert said.exit == 0
    assert parse_genesis(Path("draft.key").read_bytes()).identity.owner == actor
    assert troth("genesis", "init", "bad.key", "--as", "human:a b").exit == 2
    assert not Path("bad.key").exists()


def test_the_commented_parts_of_the_template_are_valid_too(troth: Shell) -> None:
    troth("genesis", "init", "draft.key")
    lines = Path("draft.key").read_text().splitlines()
    opened = []
    for line in lines:
        bare = line.lstrip()
        sample = bare.removeprefix("# ")
        known = ("trust:", "  ", "federation:", "commit:", "approvers:")
        opened.append(line.replace("# ", "", 1) if bare.startswith("#") and sample.startswith(known) else line)
    genesis = parse_genesis("\n".join(opened).encode())
    assert genesis.half_life_days == 90
    assert genesis.federation.enabled
    assert genesis.constraints.require_tags
    assert genesis.constraints.tags["security"].approvers == ("human:lead-*",)


def test_init_with_a_key_validates_before_it_writes_anything(troth: Shell, tmp_path: Path) -> None:
    Path("draft.key").write_text(BROKEN)
    Path("fresh").mkdir()
    before = fingerprint(tmp_path)
    said = troth("init", "fresh", "--genesis", "draft.key", "--json")
    assert said.exit == 2
    error = said.json["error"]
    assert (error["code"], error["detail"]) == ("E_CONSTRAINT_VIOLATED", "genesis_invalid")
    assert error["place"] == {"file": "draft.key", "line": 1, "path": "$.identity.owner"}
    assert troth("init", "fresh", "--genesis", "absent.key").exit == 2
    assert fingerprint(tmp_path) == before
    Path("draft.key").write_text(WHOLE)
    said = troth("init", "fresh", "--genesis", "draft.key")
    assert said.exit == 0
    assert "genesis.key" in said.out
    assert Path("fresh/.mentu/genesis.key").read_text() == WHOLE
    Path("draft.key").write_text(IDENTITY)
    said = troth("init", "fresh", "--genesis", "draft.key")
    assert said.exit == 0
    assert "keeps its genesis key" in said.err
    assert Path("fresh/.mentu/genesis.key").read_text() == WHOLE


# validate ------------------------------------------------------------------------------------------------------


def test_validate_names_every_problem(troth: Shell, tmp_path: Path) -> None:
    Path("draft.key").write_text(BROKEN)
    said = troth("genesis", "validate", "draft.key")
    assert said.exit == 1
    for line, path in PLACES:
        assert f"draft.key:{line} {path}: " in said.out
    found = troth("genesis", "validate", "draft.key", "--json")
    assert found.exit == 1
    assert [(one["line"], one["path"]) for one in found.json["problems"]] == PLACES
    assert all(one["message"] and one["remedy"] for one in found.json["problems"])
    assert not found.json["ok"]
    Path("draft.key").write_text(WHOLE)
    said = troth("genesis", "validate", "draft.key", "--json")
    assert (said.exit, said.json["ok"], said.json["problems"]) == (0, True, [])
    assert troth("genesis", "validate", "draft.key").out == "draft.key: valid\n"


@pytest.mark.parametrize("words", [["validate"], ["validate", "absent.key"], ["validate", "."], ["validate", "a", "b"]])
def test_validate_of_what_cannot_be_read(troth: Shell, words: list[str]) -> None:
    assert troth("genesis", *words).exit == 2


def test_remarks_do_not_make_a_key_invalid(troth: Shell) -> None:
    put(IDENTITY + "constraints: {close: {require_evidence: false}}\n")
    said = troth("genesis", "validate")
    assert said.exit == 0
    assert "remark: " in said.err
    assert len(troth("genesis", "validate", "--json").json["remarks"]) == 1


def test_hostile_names_drive_no_terminal(troth: Shell) -> None:
    put(IDENTITY + 'constraints: {"\\e[31m\\u202e": {require: 1}}\n"\\a": 1\n')
    for words in (["genesis", "validate"], ["genesis", "show"], ["status"], ["capture", "x"]):
        said = troth(*words)
        text = said.out + said.err
        assert text.replace("\n", "").isprintable()


# show ----------------------------------------------------------------------------------------------------------


def test_show_tells_the_key_and_whether_it_is_recorded(troth: Shell) -> None:
    assert "no genesis key" in troth("genesis", "show").out
    assert troth("genesis", "show", "--json").json["key"] is None
    put(WHOLE)
    said = troth("genesis", "show")
    assert said.exit == 0
    for words in ("workshop, owned by team:core", "agent:trusted-*: lead", "tier_2: closes by itself", "half-life 30"):
        assert words in said.out
    assert "not recorded this key yet" in said.out
    told = troth("genesis", "show", "--json").json
    assert told["key"]["trust"]["half_life_days"] == 30
    assert told["key"]["tiers"]["tier_2"]["review_window"] == 86400
    assert told["key"]["classification"]["default"] == "tier_2"
    assert told["recorded"] is None
    said = troth("capture", "seen")
    assert "genesis_event" in said.err
    assert "has recorded this key" in troth("genesis", "show").out
    assert troth("genesis", "show", "--json").json["recorded"] == told["key"]["sha256"]
    Path(".mentu/genesis.key").unlink()
    assert "record of its removal" in troth("genesis", "show").out
    troth("capture", "seen")
    assert "removal" not in troth("genesis", "show").out


def test_show_of_an_invalid_key_names_its_problems(troth: Shell) -> None:
    put(BROKEN)
    said = troth("genesis", "show")
    assert said.exit == 1
    for line, path in PLACES:
        assert path in said.err
        assert str(line) in said.err
    said = troth("genesis", "show", "--json")
    assert said.exit == 1
    assert len(said.json["problems"]) == 3
    assert said.json["error"]["detail"] == "genesis_invalid"


# explain -------------------------------------------------------------------------------------------------------


def _committed(troth: Shell, *tags: str) -> str:
    source = troth("capture", "seen", "--as", "human:lead-a").id
    chosen = [word for tag in tags for word in ("--tag", tag)]
    return troth("commit", "mend it", "--source", source, *chosen, "--as", "human:lead-a").id


def test_explain_tells_entry_roles_rule_and_code(troth: Shell) -> None:
    put(WHOLE)
    said = troth("genesis", "explain", "human:guest", "approve")
    assert said.exit == 0
    assert "the entry human:guest gives reader; none of these may approve" in said.out
    assert "answer: E_PERMISSION_DENIED" in said.out
    said = troth("genesis", "explain", "agent:a", "close", "--tag", "security")
    assert "the entry agent:* gives worker, noter; worker may close" in said.out
    assert "rule of the tag security: require_approval" in said.out
    assert "tier by match: security: tier_3" in said.out
    assert "answer: E_CONSTRAINT_VIOLATED (require_approval)" in said.out
    told = troth("genesis", "explain", "agent:a", "close", "--tag", "docs", "--json").json
    assert (told["code"], told["tier"], told["roles"]) == (None, "tier_1", ["worker", "noter"])
    assert told["conditions"]
    assert troth("genesis", "explain", "system:validator", "approve", "--tag", "docs", "--json").json["permitted"]
    assert troth("genesis", "explain", "agent:a", "destroy").exit == 2
    assert troth("genesis", "explain", "agent:a", "close", "--commitment", "cmt_00000000").exit == 2


def test_explain_of_a_commitment_is_the_answer_that_is_given(troth: Shell) -> None:
    put(WHOLE)
    work = _committed(troth, "security")
    evidence = troth("capture", "done", "--as", "agent:a").id
    told = troth("genesis", "explain", "agent:a", "claim", "--commitment", work, "--json").json
    assert (told["code"], told["commitment"]) == (None, work)
    assert troth("claim", work, "--as", "agent:a").exit == 0
    told = troth("genesis", "explain", "agent:a", "close", "--commitment", "@last", "--json").json
    given_ = troth("close", work, "--evidence", evidence, "--as", "agent:a", "--json").json["error"]
    assert (told["code"], told["detail"]) == (given_["code"], given_["detail"])
    assert given_["detail"] == "require_approval"
    assert "genesis explain" in given_["remedy"]
    assert RULES["require_approval"] in given_["remedy"]
    told = troth("genesis", "explain", "agent:b", "submit", "--commitment", work[:8], "--json").json
    assert told["code"] == "E_NOT_OWNER"


def test_explain_without_a_key(troth: Shell) -> None:
    assert "no genesis key" in troth("genesis", "explain", "agent:a", "close").out
    assert troth("genesis", "explain", "agent:a", "close", "--json").json["permitted"] is True
    put(BROKEN)
    assert troth("genesis", "explain", "agent:a", "close").exit == 2


# diff ----------------------------------------------------------------------------------------------------------


def test_diff_tells_what_would_be_decided_otherwise(troth: Shell) -> None:
    draft = Path("draft.key")
    draft.write_text(IDENTITY + "actors: [{id: 'human:*', role: r}]\npermissions: {r: '*'}\n")
    said = troth("genesis", "diff", "draft.key")
    assert said.exit == 0
    assert "actors: *: loses capture, commit" in said.out
    assert "human:*" not in said.out
    put(WHOLE)
    draft.write_text(WHOLE + "# a remark\n")
    assert "what it decides is the same" in troth("genesis", "diff", "draft.key").out
    draft.write_text(WHOLE)
    assert troth("genesis", "diff", "draft.key").out == "The same key.\n"
    changed = WHOLE.replace("review_window: 24h", "review_window: 1h").replace("allow_self: false", "allow_self: true")
    changed = changed.replace("reader: [annotate]", "reader: [annotate, approve]").replace(
        "tags: [security]", "tags: [s]"
    )
    draft.write_text(changed)
    found = troth("genesis", "diff", "draft.key", "--json").json["changes"]
    assert {(one["section"], one["what"]) for one in found} == {
        ("actors", "human:guest"),
        ("constraints", "approve.allow_self"),
        ("tiers", "tier_2: review_window"),
        ("classification", "tag security"),
        ("classification", "tag s"),
    }
    assert "actors: human:guest: gains approve" in troth("genesis", "diff", "draft.key").out
    draft.write_text(BROKEN)
    assert troth("genesis", "diff", "draft.key").exit == 2


# sign ----------------------------------------------------------------------------------------------------------


def test_a_signed_key_from_end_to_end(troth: Shell) -> None:
    put(WHOLE.replace("  commit: {require_tags: true}\n", ""))
    public = troth("key", "new", "example.org/owner").out.strip()
    config = Path(".mentu/config.yaml")
    config.write_text(config.read_text() + f"genesis_signers: ['{public}']\n")
    refused = troth("capture", "seen", "--json")
    assert (refused.exit, refused.json["error"]["detail"]) == (2, "genesis_invalid")
    assert troth("genesis", "validate").exit == 1
    assert troth("genesis", "validate", "--json").json["signature"]["detail"] == "genesis_invalid"
    said = troth("genesis", "sign", "--key", "example.org/owner")
    assert (said.exit, said.err) == (0, "")
    assert troth("genesis", "validate").exit == 0
    assert troth("capture", "seen").exit == 0
    put(WHOLE)
    assert troth("capture", "seen").exit == 2
    assert troth("genesis", "sign", "--json").json["signatures"] == 1
    assert troth("capture", "seen").exit == 0


def test_sign_refuses_an_invalid_key_and_a_witness(troth: Shell) -> None:
    put(BROKEN)
    troth("key", "new", "example.org/owner")
    assert troth("genesis", "sign").exit == 2
    put(IDENTITY)
    troth("key", "new", "example.org/witness", "--witness")
    said = troth("genesis", "sign", "--key", "example.org/witness", "--json")
    assert (said.exit, said.json["error"]["code"]) == (2, "E_KEY_KIND")
    said = troth("genesis", "sign")
    assert said.exit == 0
    assert "genesis_signers" in said.err
    assert any(one["warning"] == "genesis_unverified" for one in troth("status", "--json").json["warnings"])


# at the front door ---------------------------------------------------------------------------------------------


def test_reading_goes_on_under_an_invalid_key_with_a_warning(troth: Shell) -> None:
    seen = troth("capture", "seen").id
    put(BROKEN)
    for words in (["status"], ["show", seen], ["log"], ["verify"]):
        said = troth(*words)
        assert said.exit == 0
        assert "warning: " in said.err
        assert "genesis_invalid" in said.err
        found = troth(*words, "--json").json["warnings"]
        assert [one["warning"] for one in found if one["warning"].startswith("genesis")] == ["genesis_invalid"]
    for words in (["capture", "x"], ["commit", "x", "--source", seen], ["annotate", seen, "x"], ["claim", "@last"]):
        said = troth(*words, "--json")
        assert said.exit == 2
        if words[0] != "claim":
            assert said.json["error"]["place"]["line"] == 1
    put(IDENTITY)
    for words in (["status"], ["show", seen], ["log"], ["verify"]):
        assert "genesis" not in troth(*words).err


def test_weights_and_half_life_of_the_key_measure_a_check(troth: Shell) -> None:
    argv = ["--check", "--", sys.executable, "-c", "pass"]
    usual = troth("capture", "seen", "--json", *argv).json["signal"]["trust"]
    assert "decayHalfLifeDays" not in usual
    put(
        IDENTITY + "trust: {weights: {exit_code: 1, test_pass_rate: 0, context_utilization: 0, loop_complete: 0, "
        "duration_reasonable: 0, no_errors: 0, evidence_depth: 0}, decay: {default_half_life_days: 14}}\n"
    )
    weighed = troth("capture", "seen", "--json", *argv).json["signal"]["trust"]
    assert weighed["confidence"] == 1.0
    assert weighed["decayHalfLifeDays"] == 14
    failed = troth("capture", "seen", "--json", "--check", "--", sys.executable, "-c", "raise SystemExit(1)")
    assert failed.json["signal"]["trust"]["confidence"] == 0.0
    assert usual["confidence"] not in (0.0, 1.0)


def test_an_agent_under_a_key_in_a_process_of_its_own(tmp_path: Path) -> None:
    def ask(*words: str, **more: Any) -> frontdoor.Answer:
        return frontdoor.troth(*words, cwd=tmp_path, **more)

    (tmp_path / "team.key").write_text(WHOLE)
    assert ask("init", "--genesis", "team.key").exit == 0
    source = ask("capture", "the cart fails", "--as", "human:lead-a", "--json").json["id"]
    assert ask("commit", "mend it", "--source", source, "--as", "human:lead-a").exit == 2
    work = ask("commit", "mend it", "--source", source, "--tag", "security", "--as", "human:lead-a", "--json").json[
        "id"
    ]
    assert ask("claim", work, "--as", "agent:a").exit == 0
    assert ask("reopen", work, "--as", "agent:a", "--json").json["error"]["code"] == "E_PERMISSION_DENIED"
    evidence = ask("capture", "done", "--kind", "evidence", "--as", "agent:a", "--json").json["id"]
    assert ask("submit", work, "--evidence", evidence, "--as", "agent:a").exit == 0
    for actor, detail in (("human:b", "approvers"), ("agent:trusted-x", "approvers"), ("human:lead-b", None)):
        said = ask("approve", work, "--as", actor, "--json")
        assert said.exit == (0 if detail is None else 2)
        assert detail is None or said.json["error"]["detail"] == detail
    rows = [json.loads(line) for line in (tmp_path / ".mentu/ledger.jsonl").read_text().splitlines()]
    assert rows[0]["actor"] == "system:genesis"
    assert ask("verify").exit == 0
