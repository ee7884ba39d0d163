"""``troth key``, ``troth checkpoint`` and ``verify --checkpoint`` through the front door, from making to a stranger."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from support.frontdoor import Answer, troth
from support.ledgers import capture, fresh
from troth.cli.main import main

LOG = "example.com/ledger"
AUDITOR = "example.com/auditor"


class House:
    """A workspace, a user's folders, and what was said."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.root = root
        self.work = root / "work"
        self._capsys = capsys
        self.store = fresh(self.work)
        for number in range(5):
            capture(self.store, f"n {number}")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(root / "config"))
        monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))
        monkeypatch.chdir(self.work)

    def say(self, *words: str | Path) -> tuple[int, str, str]:
        self._capsys.readouterr()
        status = main([str(word) for word in words])
        said = self._capsys.readouterr()
        return status, said.out, said.err

    def ask(self, *words: str | Path) -> tuple[int, Any]:
        status, out, _ = self.say(*words, "--json")
        return status, json.loads(out)

    def key(self, name: str, *more: str) -> str:
        status, told = self.ask("key", "new", name, *more)
        assert status == 0
        return str(told["key"])

    def checkpoint(self, size: int) -> Path:
        return self.work / ".mentu" / "checkpoints" / f"{size}.checkpoint"


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> House:
    return House(tmp_path, monkeypatch, capsys)


def test_from_a_key_to_a_stranger(tmp_path: Path) -> None:
    """The whole way by processes of their own: owner, witness, and somebody with two files and no ledger."""
    fresh(tmp_path / "w")

    def as_(who: str, *words: str | Path, cwd: Path | None = None) -> Answer:
        home = {"XDG_CONFIG_HOME": str(tmp_path / who / "c"), "XDG_STATE_HOME": str(tmp_path / who / "s")}
        return troth(*words, cwd=cwd or tmp_path / "w", env=home)

    for body in ("one", "two", "three"):
        assert as_("owner", "capture", body).exit == 0
    log = as_("owner", "key", "new", LOG).out.strip()
    auditor = as_("auditor", "key", "new", AUDITOR, "--witness").out.strip()
    made = as_("owner", "checkpoint", "create", "-o", "a.checkpoint")
    assert made.exit == 0
    assert "3 rows" in made.out
    signed = as_("auditor", "checkpoint", "cosign", "a.checkpoint", "--key", AUDITOR, "--log-key", log)
    assert signed.exit == 0, signed.err
    proven = as_("owner", "checkpoint", "prove", "@last", "--checkpoint", "a.checkpoint", "-o", "row.tlog-proof")
    assert proven.exit == 0, proven.err
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "row.tlog-proof").write_bytes((tmp_path / "w" / "row.tlog-proof").read_bytes())
    words = ["checkpoint", "verify-proof", "row.tlog-proof", "--key", log, "--key", auditor, "--quorum", "1"]
    told = as_("stranger", *words, cwd=alone)
    assert told.exit == 0, told.err
    assert "Proven: row 3 of 3 of w" in told.out
    assert "three" in told.out
    assert AUDITOR in told.out
    assert as_("stranger", *words[:3], cwd=alone).exit == 3
    bent = (alone / "row.tlog-proof").read_bytes().replace(b"index 2", b"index 1")
    (alone / "row.tlog-proof").write_bytes(bent)
    assert as_("stranger", *words, cwd=alone).exit == 1
    assert as_("owner", "verify", "--checkpoint", "a.checkpoint", "--key", log).exit == 0
    ledger = tmp_path / "w" / ".mentu" / "ledger.jsonl"
    ledger.write_bytes(b"".join(ledger.read_bytes().splitlines(keepends=True)[:-1]))
    assert as_("owner", "verify").exit == 0
    cut = as_("owner", "verify", "--checkpoint", "a.checkpoint", "--key", log)
    assert cut.exit == 1
    assert "checkpoint_ahead" in cut.out


def test_keys_are_made_listed_and_shown(house: House) -> None:
    assert house.say("key", "list") == (0, "No keys yet. Make one with: troth key new NAME\n", "")
    assert house.ask("key", "list") == (0, {"keys": []})
    key = house.key(LOG)
    witness = house.key(AUDITOR, "--witness")
    status, told = house.ask("key", "list")
    assert [(one["name"], one["kind"], one["key"]) for one in told["keys"]] == [
        (AUDITOR, "witness", witness),
        (LOG, "signer", key),
    ]
    status, out, _ = house.say("key", "list")
    assert [line.split("  ")[0] for line in out.splitlines()] == [AUDITOR, LOG]
    assert house.say("key", "show", LOG)[:2] == (0, f"{key}\n")
    status, told = house.ask("key", "show", LOG)
    assert told["key"] == key
    assert "PRIVATE" not in out + str(told)
    assert house.ask("key", "new", LOG)[1]["error"]["code"] == "E_KEY_EXISTS"
    assert house.ask("key", "show", "nobody")[1]["error"]["code"] == "E_KEY_UNKNOWN"
    status, out, err = house.say("key", "new", "third", "-o", house.root / "third")
    assert status == 0
    assert str(house.root / "third") in err
    assert (house.root / "third").read_text().startswith("PRIVATE+KEY+third+")
    assert house.ask("key", "show", house.root / "third")[1]["key"] == out.strip()


def test_a_checkpoint_is_made_once(house: House) -> None:
    assert house.ask("checkpoint", "create")[1]["error"]["code"] == "E_KEY_UNKNOWN"
    key = house.key(LOG)
    status, told = house.ask("checkpoint", "create")
    assert (status, told["origin"], told["size"], told["created"]) == (0, "w", 5, True)
    assert told["signed_by"][0]["key"] == key
    assert Path(told["file"]) == house.checkpoint(5)
    data = house.checkpoint(5).read_bytes()
    assert base64.b64decode(data.split(b"\n")[2]).hex() == told["root"]
    assert house.ask("checkpoint", "create")[1]["created"] is False
    assert house.checkpoint(5).read_bytes() == data
    house.key("second")
    assert house.ask("checkpoint", "create")[1]["error"]["code"] == "E_KEY_UNKNOWN"  # which of the two?
    assert house.ask("checkpoint", "create", "--key", "second")[0] == 0
    assert house.checkpoint(5).read_bytes().startswith(data)  # a signature more, none less
    capture(house.store)
    assert house.ask("checkpoint", "create", "--key", LOG, "-o", house.root / "out")[1]["size"] == 6
    capture(house.store)
    status, told = house.ask("checkpoint", "create", "--key", LOG, "-o", house.root / "out")
    assert (status, told["error"]["code"]) == (2, "E_CHECKPOINT_EXISTS")


def test_what_a_ledger_is_called(house: House) -> None:
    house.key(LOG)
    assert house.ask("checkpoint", "create", "--origin", "a b")[1]["error"]["code"] == "E_USAGE"
    config = house.work / ".mentu" / "config.yaml"
    settings = config.read_text()
    config.write_text(settings + "checkpoint_origin: example.com/house\n")
    assert house.ask("checkpoint", "create")[1]["origin"] == "example.com/house"
    for bad in ("checkpoint_origin: a b\n", "checkpoint_origin: 7\n"):
        config.write_text(settings + bad)
        assert house.ask("checkpoint", "create")[1]["error"]["code"] == "E_CONFIG"
    assert house.ask("checkpoint", "create", "--origin", "x", "-o", house.root / "x")[1]["origin"] == "x"


def test_a_broken_or_shrunken_ledger_is_not_signed(house: House) -> None:
    house.key(LOG)
    assert house.ask("checkpoint", "create")[0] == 0
    ledger = house.store.ledger_file
    whole = ledger.read_bytes()
    ledger.write_bytes(whole + b"{\n")
    assert house.ask("checkpoint", "create")[1]["error"]["code"] == "E_CHAIN_BROKEN"
    ledger.write_bytes(b"".join(whole.splitlines(keepends=True)[:3]))
    status, told = house.ask("checkpoint", "create")
    assert (status, told["error"]["code"]) == (1, "E_CHECKPOINT_FORK")
    ledger.write_bytes(whole)
    assert house.ask("checkpoint", "create")[0] == 0


def test_a_ledger_without_a_workspace_needs_a_file(house: House) -> None:
    house.key(LOG)
    loose = house.root / "loose.jsonl"
    loose.write_bytes(house.store.ledger_file.read_bytes())
    words = ["checkpoint", "create", "--store", loose, "--origin", "loose"]
    assert house.ask(*words)[1]["error"]["code"] == "E_USAGE"
    assert house.ask(*words, "-o", house.root / "c")[1]["size"] == 5
    status, told = house.ask("verify", loose, "--checkpoint", house.root / "c", "--key", LOG)
    assert (status, told["ok"]) == (0, True)


def test_a_witness_signs_growth_and_no_fork(house: House) -> None:
    log = house.key(LOG)
    witness = house.key(AUDITOR, "--witness")
    house.ask("checkpoint", "create", "--key", LOG)
    cosign = ["checkpoint", "cosign", house.checkpoint(5), "--key", AUDITOR]
    assert house.ask(*cosign)[0] == 3
    status, told = house.ask(*cosign, "--log-key", log, "-o", house.root / "cosigned")
    assert (status, told["before"], told["key"]) == (0, None, witness)
    assert house.checkpoint(5).read_bytes() != (house.root / "cosigned").read_bytes()
    status, out, _ = house.say("checkpoint", "verify", house.root / "cosigned", "--key", log, "--key", witness)
    assert status == 0
    assert f"signed by {AUDITOR} (witness" in out
    capture(house.store)
    house.ask("checkpoint", "create", "--key", LOG)
    later = ["checkpoint", "cosign", house.checkpoint(6), "--key", AUDITOR]
    status, told = house.ask(*later)
    assert (status, told["error"]["code"]) == (3, "E_CHECKPOINT_UNPROVEN")
    growth = house.root / "growth"
    status, told = house.ask("checkpoint", "consistency", house.checkpoint(6), house.checkpoint(5), "-o", growth)
    assert (status, told["old"], told["new"]) == (0, 5, 6)
    status, out, _ = house.say(*later, "--proof", growth)
    assert (status, out) == (0, "Signed w at 6 rows (the last one covered 5 rows).\n")
    assert house.ask(*cosign, "--store", house.work)[1]["error"]["code"] == "E_CHECKPOINT_OLDER"
    assert house.say("checkpoint", "verify-proof", growth, "--key", LOG)[0] == 0
    assert house.ask("checkpoint", "verify-proof", growth, "--key", LOG)[1]["new"]["size"] == 6
    assert house.ask("checkpoint", "cosign", house.checkpoint(6), "--key", LOG)[1]["error"]["code"] == "E_KEY_KIND"
    assert house.ask("checkpoint", "create", "--key", AUDITOR)[1]["error"]["code"] == "E_KEY_KIND"


def test_what_is_proven_and_what_is_not(house: House) -> None:
    log = house.key(LOG)
    assert house.ask("checkpoint", "prove", "@last")[1]["error"]["code"] == "E_CHECKPOINT_MISSING"
    house.ask("checkpoint", "create")
    rows = [json.loads(line) for line in house.store.ledger_file.read_bytes().splitlines()]
    for number, row in enumerate(rows):
        status, told = house.ask("checkpoint", "prove", row["id"])
        assert (status, told["index"], told["file"]) == (0, number, f"{row['id']}.tlog-proof")
        status, told = house.ask("checkpoint", "verify-proof", told["file"], "--key", log)
        assert (status, told["signal"], told["index"]) == (0, row, number)
    late = capture(house.store)
    assert house.ask("checkpoint", "prove", late)[1]["error"]["code"] == "E_CHECKPOINT_SHORT"
    assert house.ask("checkpoint", "prove", "mem_ffffffff")[1]["error"]["code"] == "E_REF_NOT_FOUND"
    assert house.ask("checkpoint", "prove", "mem_0")[1]["error"]["code"] == "E_AMBIGUOUS_ID"
    assert house.ask("checkpoint", "prove", rows[0]["id"])[0] == 0  # the same bytes again
    other = house.root / "other"
    other.write_bytes(b"something else\n")
    status, told = house.ask("checkpoint", "prove", rows[0]["id"], "-o", other)
    assert (status, told["error"]["code"]) == (2, "E_CHECKPOINT_EXISTS")
    assert house.ask("checkpoint", "verify-proof", other, "--key", log)[1]["error"]["code"] == "E_PROOF_MALFORMED"
    house.store.ledger_file.write_bytes(house.store.ledger_file.read_bytes().split(b"\n", 1)[1])
    assert house.ask("checkpoint", "prove", rows[3]["id"])[1]["error"]["code"] == "E_CHAIN_BROKEN"


def test_whom_one_trusts_is_a_word_a_file_or_a_setting(house: House) -> None:
    log = house.key(LOG)
    witness = house.key(AUDITOR, "--witness")
    house.ask("checkpoint", "create", "--key", LOG)
    file = house.checkpoint(5)
    verify = ["verify", "--checkpoint", file]
    assert house.ask(*verify)[0] == 3
    listed = house.root / "trusted"
    listed.write_text(f"# the ledger\n{log}\n{witness}\n", encoding="utf-8")
    for word in (log, LOG, str(listed)):
        assert house.ask(*verify, "--key", word)[0] == 0
        assert house.ask("checkpoint", "verify", file, "--key", word)[0] == 0
    assert house.ask(*verify, "--key", str(listed), "--quorum", "1")[0] == 3
    status, told = house.ask("checkpoint", "verify", file, "--key", str(listed), "--quorum", "1")
    assert (status, told["established"], told["lacks"]["code"]) == (3, False, "E_QUORUM")
    house.ask("checkpoint", "cosign", file, "--key", AUDITOR, "--log-key", log)
    assert house.ask(*verify, "--key", str(listed), "--quorum", "1")[0] == 0
    config = house.work / ".mentu" / "config.yaml"
    settings = config.read_text()
    config.write_text(settings + f"checkpoint_keys:\n  - {json.dumps(log)}\n")
    assert house.ask(*verify)[0] == 0
    # Whom one names oneself is not widened by the settings of whoever owns the ledger.
    assert house.ask(*verify, "--key", house.key("somebody"))[0] == 3
    for bad in ("checkpoint_keys: x\n", "checkpoint_keys: [1]\n"):
        config.write_text(settings + bad)
        assert house.ask(*verify)[1]["error"]["code"] == "E_CONFIG"
    config.write_text(settings)
    assert house.ask(*verify, "--key", "x+y+z")[1]["error"]["code"] == "E_KEY_MALFORMED"
    assert house.ask("verify", "--key", log)[1]["error"]["code"] == "E_USAGE"
    assert house.ask("verify", "--checkpoint", house.root / "none")[1]["error"]["code"] == "E_CHECKPOINT_MISSING"
    assert house.ask("verify", "--checkpoint", listed)[1]["error"]["code"] == "E_NOTE_MALFORMED"


def test_what_verify_tells_a_person(house: House) -> None:
    log = house.key(LOG)
    house.ask("checkpoint", "create")
    capture(house.store)
    file = house.checkpoint(5)
    status, out, err = house.say("verify", "--checkpoint", file)
    assert status == 3
    assert "continued: 5 of the 6 rows are covered; signed by nobody who is trusted" in out
    assert "not anchored" in out
    assert "not established" in err
    status, out, err = house.say("verify", "--checkpoint", file, "--key", log)
    assert (status, err) == (0, "")
    assert f"signed by {LOG}" in out
    assert "not anchored" not in out
    rows = house.store.ledger_file.read_bytes().splitlines(keepends=True)
    house.store.ledger_file.write_bytes(b"".join(rows[:4]))
    status, out, _ = house.say("verify", "--checkpoint", file, "--key", log)
    assert status == 1
    assert "checkpoint_ahead: cut: 4 rows where the checkpoint covers 5" in out
    assert house.say("verify", "--checkpoint", file)[0] == 1  # a fault weighs more than a missing signature


def test_a_checkpoint_of_no_rows_anchors_none(house: House) -> None:
    log = house.key(LOG)
    whole = house.store.ledger_file.read_bytes()
    house.store.ledger_file.write_bytes(b"")
    house.ask("checkpoint", "create")
    house.store.ledger_file.write_bytes(whole)
    status, told = house.ask("verify", "--checkpoint", house.checkpoint(0), "--key", log)
    assert (status, told["ok"], told["anchored"]) == (0, True, False)


def test_showing_checks_nothing_and_says_so(house: House) -> None:
    house.key(LOG)
    house.ask("checkpoint", "create")
    status, out, _ = house.say("checkpoint", "show", house.checkpoint(5))
    assert status == 0
    assert f"said to be signed by: {LOG}" in out
    assert "Nothing was checked" in out
    status, told = house.ask("checkpoint", "show", house.checkpoint(5))
    assert (told["size"], [one["name"] for one in told["signatures"]]) == (5, [LOG])
    assert len(told["text_sha256"]) == 64
    hostile = house.root / "hostile"
    text = house.checkpoint(5).read_text(encoding="utf-8").replace("w\n", "w\u202e\u009b31m\n", 1)
    hostile.write_text(text, encoding="utf-8")
    status, out, _ = house.say("checkpoint", "show", hostile)
    assert status == 0
    assert "\u202e" not in out
    assert "\u009b" not in out


def test_timestamps_on_the_command_line(house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rfc3161_client")
    stamps = pytest.importorskip("stores.test_timestamps")
    if stamps.shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    authority = stamps.Authority(tmp_path / "tsa")
    service = stamps.Service(authority)
    try:
        log = house.key(LOG)
        house.ask("checkpoint", "create")
        file = house.checkpoint(5)
        words = ["checkpoint", "timestamp", file]
        assert house.ask(*words)[1]["error"]["code"] == "E_USAGE"
        config = house.work / ".mentu" / "config.yaml"
        config.write_text(config.read_text() + f"timestamp_url: {service.url}\n")
        status, told = house.ask(*words, "--tsa-cert", authority.root)
        assert (status, told["verified"], told["file"]) == (0, True, f"{file}.tsr")
        assert house.ask(*words)[1]["error"]["code"] == "E_CHECKPOINT_EXISTS"
        verify = ["checkpoint", "verify", file, "--key", log]
        status, told = house.ask(*verify)
        assert (status, told["timestamp"]["verified"]) == (3, False)
        status, told = house.ask(*verify, "--tsa-cert", authority.root)
        assert (status, told["timestamp"]["verified"]) == (0, True)
        # A witness that signs later leaves the stamp good: it is of the text.
        house.key(AUDITOR, "--witness")
        house.ask("checkpoint", "cosign", file, "--key", AUDITOR, "--log-key", log)
        assert house.ask(*verify, "--tsa-cert", authority.root)[0] == 0
        capture(house.store)
        house.ask("checkpoint", "create", "--key", LOG)
        other = ["checkpoint", "verify", house.checkpoint(6), "--key", log, "--timestamp", f"{file}.tsr"]
        assert house.ask(*other, "--tsa-cert", authority.root)[1]["error"]["code"] == "E_TIMESTAMP_INVALID"
        assert house.ask("checkpoint", "verify", house.checkpoint(6), "--key", log)[0] == 0
    finally:
        service.close()


@pytest.mark.parametrize("noun", ["key", "checkpoint"])
def test_every_sub_verb_has_help_with_an_example(noun: str, house: House) -> None:
    from troth.cli.main import cli

    status, out, _ = house.say(noun, "--help")
    assert status == 0
    group = cli.get_command(None, noun)  # type: ignore[arg-type]  # the table needs no context
    for name in group.commands:  # type: ignore[union-attr]  # a group
        status, out, _ = house.say(noun, name, "--help")
        assert status == 0
        assert f"Example: troth {noun} {name}" in " ".join(out.split())
