"""``troth receipt sign`` and ``verify --key``: the real commands over folders, honest and forged."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from cli.test_receipt import Run, contradicted, laid
from receipts.faults import put
from receipts.test_receipt import sealed
from troth.cli.main import main

ALICE, BOB, WITNESS = "example.com/alice", "example.com/bob", "example.com/witness"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run one command line in this process; return exit status and both outputs."""

    def call(*words: str | Path) -> tuple[int, str, str]:
        status = main([str(word) for word in words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call


@pytest.fixture
def keys(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Make three keys of a user and return their public halves."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = {}
    for name in (ALICE, BOB, WITNESS):
        status, out, _ = run("key", "new", name, *(["--witness"] if name == WITNESS else []))
        assert status == 0
        made[name] = out.strip()
    return made


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return laid(tmp_path / "member", sealed())


def test_a_signed_receipt_is_verified(run: Run, keys: dict[str, str], folder: Path, tmp_path: Path) -> None:
    status, out, _ = run("receipt", "sign", folder, "--key", ALICE, "--json")
    assert status == 0
    assert json.loads(out)["signed"] == [{"keyid": "+".join(keys[ALICE].split("+")[:2]), "role": "approver"}]
    assert run("receipt", "sign", folder, "--key", WITNESS)[0] == 0
    status, out, _ = run("receipt", "verify", folder, "--key", keys[ALICE], "--key", WITNESS, "--json")
    assert status == 0
    said = json.loads(out)
    assert said["result"]["receipt"] == {"verdict": "valid"}
    assert [(one["name"], one["role"]) for one in said["signatures"]["verified"]] == [
        (ALICE, "approver"),
        (WITNESS, "witness"),
    ]
    file = tmp_path / "trusted"
    file.write_text(f"# whom we trust\n{keys[ALICE]}\n{keys[BOB]}\n")
    status, out, _ = run("receipt", "verify", folder, "--key", str(file), "--threshold", "1")
    assert status == 0
    assert "signed    by example.com/alice as approver" in out
    assert "1 signature(s) by signers that are not trusted" in out
    # Without --key nobody looks, and that is said.
    status, out, _ = run("receipt", "verify", folder)
    assert status == 0
    assert "not checked" in out


def test_the_threshold_and_the_roles(run: Run, keys: dict[str, str], folder: Path) -> None:
    assert run("receipt", "sign", folder, "--key", ALICE, "--key", WITNESS)[0] == 0
    asked = ("receipt", "verify", folder, "--key", ALICE, "--key", BOB, "--key", WITNESS)
    status, _, err = run(*asked, "--threshold", "2")
    assert (status, "E_ENVELOPE_THRESHOLD" in err) == (3, True)
    assert run(*asked, "--threshold", "1", "--quorum", "1")[0] == 0
    assert run("receipt", "sign", folder, "--key", BOB)[0] == 0
    assert run(*asked, "--threshold", "2")[0] == 0
    assert run("receipt", "verify", folder, "--threshold", "1")[0] == 2
    assert run(*asked, "--threshold", "3")[0] == 2


def test_an_unknown_signer_is_unverified(run: Run, keys: dict[str, str], folder: Path) -> None:
    assert run("receipt", "sign", folder, "--key", BOB)[0] == 0
    status, out, _ = run("receipt", "verify", folder, "--key", ALICE, "--json")
    assert (status, json.loads(out)["error"]["code"]) == (3, "E_ENVELOPE_UNVERIFIED")


def test_a_changed_type_is_invalid_before_anything_is_read(run: Run, keys: dict[str, str], folder: Path) -> None:
    assert run("receipt", "sign", folder, "--key", ALICE)[0] == 0
    envelope = json.loads((folder / "receipt.dsse.json").read_bytes())
    envelope["payloadType"] = "application/vnd.in-toto.v2+json"
    (folder / "receipt.dsse.json").write_text(json.dumps(envelope))
    (folder / "receipt.json").unlink()
    status, out, _ = run("receipt", "verify", folder, "--key", ALICE, "--json")
    assert (status, json.loads(out)["error"]["code"]) == (1, "E_ENVELOPE_TYPE")


def test_the_signed_receipt_is_the_one_that_is_judged(run: Run, keys: dict[str, str], folder: Path) -> None:
    assert run("receipt", "sign", folder, "--key", ALICE)[0] == 0
    honest = (folder / "receipt.json").read_bytes()
    (folder / "receipt.json").unlink()
    assert run("receipt", "verify", folder, "--key", ALICE)[0] == 0  # the payload is all it takes
    (folder / "receipt.json").write_bytes(honest.replace(b"claim-1", b"claim-2"))
    status, out, _ = run("receipt", "verify", folder, "--key", ALICE, "--json")
    assert (status, json.loads(out)["error"]["code"]) == (1, "E_ENVELOPE_OTHER")
    assert run("receipt", "sign", folder, "--key", ALICE)[0] == 1  # nor is a signature put under two receipts
    # A forger who takes records and receipt along still has no signature over them.
    forged = laid(folder.parent / "forged", sealed(contradicted()))
    (forged / "receipt.dsse.json").write_bytes((folder / "receipt.dsse.json").read_bytes())
    (forged / "receipt.json").unlink()
    assert run("receipt", "verify", forged, "--key", ALICE)[0] == 1


def test_only_a_valid_receipt_is_signed(run: Run, keys: dict[str, str], tmp_path: Path) -> None:
    bad = laid(tmp_path / "bad", sealed(edit=put("_type", "x")))
    status, out, _ = run("receipt", "sign", bad, "--key", ALICE, "--json")
    assert (status, json.loads(out)["error"]["code"]) == (1, "receipt_type_wrong")
    assert not (bad / "receipt.dsse.json").exists()
    # A contradicted verdict, correctly stated, is signed; its status stays what it is.
    told = laid(tmp_path / "told", sealed(contradicted()))
    assert run("receipt", "sign", told, "--key", ALICE)[0] == 0
    assert run("receipt", "verify", told, "--key", ALICE)[0] == 1


def test_what_is_missing_is_refused(run: Run, keys: dict[str, str], folder: Path) -> None:
    status, out, _ = run("receipt", "verify", folder, "--key", ALICE, "--json")
    assert (status, json.loads(out)["error"]["code"]) == (2, "E_ENVELOPE_MISSING")
    assert run("receipt", "sign", folder, "--key", "nobody")[0] == 2
    elsewhere = folder.parent / "elsewhere.json"
    assert run("receipt", "sign", folder, "--key", ALICE, "--out", elsewhere)[0] == 0
    assert run("receipt", "verify", folder, "--key", ALICE, "--envelope", elsewhere)[0] == 0
    (folder / "receipt.dsse.json").symlink_to(elsewhere)
    status, out, _ = run("receipt", "verify", folder, "--key", ALICE, "--json")
    assert (status, json.loads(out)["error"]["code"]) == (2, "read_fault")


def test_many_folders_are_each_asked_for_signatures(run: Run, keys: dict[str, str], tmp_path: Path) -> None:
    many = tmp_path / "many"
    for name in ("both", "one", "none", "bent", "bare"):
        laid(many / name, sealed())
    for name, signers in (("both", (ALICE, BOB)), ("one", (ALICE,)), ("bent", (ALICE,)), ("bare", (ALICE, BOB))):
        assert run("receipt", "sign", many / name, *(part for key in signers for part in ("--key", key)))[0] == 0
    (many / "bent" / "receipt.json").write_bytes((many / "bent" / "receipt.json").read_bytes() + b" ")
    (many / "bare" / "receipt.json").unlink()

    def told(*words: str) -> tuple[int, dict[str, object]]:
        table = tmp_path / "table.csv"
        status, out, _ = run("receipt", "check", many, "--csv", table, "--json", *words)
        rows = {Path(row["member"]).name: row for row in map(json.loads, out.splitlines())}
        signed = {Path(row["member"]).name: row["signed"] for row in csv.DictReader(table.read_text().splitlines())}
        codes = {name: row["error"]["code"] if "error" in row else row.get("signatures") for name, row in rows.items()}
        return status, {name: (signed[name], codes[name]) for name in rows}

    status, unasked = told()
    lies = {"checked": False, "envelope": True, "bundle": False}
    assert unasked["one"] == ("signed, not checked", lies)
    assert unasked["none"] == ("", None)
    status, asked = told("--key", keys[ALICE])
    assert status == 2
    assert asked["one"][0] == "signed by 1 approver(s)"
    assert asked["bare"][0] == "signed by 1 approver(s)"
    assert asked["none"] == ("unsigned", "E_ENVELOPE_MISSING")
    assert asked["bent"] == ("not signed as asked", "E_ENVELOPE_OTHER")
    _, two = told("--key", keys[ALICE], "--key", keys[BOB], "--threshold", "2")
    assert (two["both"][0], two["one"][1]) == ("signed by 2 approver(s)", "E_ENVELOPE_THRESHOLD")
    status, out, err = run("receipt", "check", many / "both", many / "one")
    assert (status, "4 receipts" in err, out.count("signed, not checked")) == (0, False, 2)
    assert "2 receipts are signed, and it was not checked by whom" in err
    assert run("receipt", "check", many, "--threshold", "1")[0] == 2
    assert run("receipt", "check", many / "both", many / "one", "--key", keys[ALICE])[0] == 0
