"""``troth export`` and ``troth verify --set`` at the command line (ledger spec §8 Sync)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ledger.genesis_keys import IDENTITY
from support.frontdoor import troth as front_door
from support.houses import DatabaseHouse
from support.postgres import needs_postgres
from support.shell import Shell, make_shell
from troth.ledger.operations import Candidate
from troth.stores.opening import open_store
from troth.stores.protocol import LedgerStore

FEDERATION = "federation: {enabled: true, sync_target: 'https://example.org/sync', workspaces: [peer]}\n"


@pytest.fixture
def troth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    """Run commands in a new workspace."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROTH_ACTOR", "agent:worker")
    shell = make_shell(capfd)
    assert shell("init", "--workspace", "shop").exit == 0
    return shell


def put(key: str, root: Path) -> None:
    (root / ".mentu" / "genesis.key").write_text(IDENTITY + key)


def add(store: LedgerStore, op: str, scope: str | None, **payload: Any) -> str:
    candidate = Candidate(op, "human:reviewer", {"body": f"{op} by name", **payload}, syncScope=scope)
    return str(store.append(candidate)["id"])


def fill(store: LedgerStore) -> list[str]:
    """Add a row of every scope, one that is narrowed, and return their ids."""
    seen = add(store, "capture", "cloud", meta={"path": "planted"})
    work = add(store, "commit", "full", source=seen)
    note = add(store, "annotate", "anonymous", target=work, meta={"path": "planted"})
    local = add(store, "capture", None)
    held = add(store, "annotate", "cloud", target=local)
    return [seen, work, note, local, held]


def ids(text: str | bytes) -> list[str]:
    return [json.loads(line)["id"] for line in text.splitlines()]


def test_from_the_key_to_the_recipient(tmp_path: Path) -> None:
    def run(*words: str | Path, status: int = 0) -> str:
        said = front_door(*words, cwd=tmp_path)
        assert said.exit == status, said
        return said.out

    run("init")
    put(FEDERATION, tmp_path)
    seen, work, note, *_ = fill(open_store(tmp_path))
    assert ids(run("export", "--to", "peer")) == [seen, work]
    assert "2 of 6 rows for workspace peer, unmodified, in peer.jsonl" in run(
        "export", "--to", "peer", "-o", "peer.jsonl"
    )
    assert "1 of 6 rows" in run("export", "--cloud", "-o", "cloud.jsonl")
    assert ids((tmp_path / "cloud.jsonl").read_bytes()) == [seen]
    said = front_door("export", "--anonymous", "-o", "open.jsonl", cwd=tmp_path)
    assert "free_text" in said.err
    bare = (tmp_path / "open.jsonl").read_bytes()
    assert ids(bare) == [note]
    for absent in (b"planted", b"human:reviewer", b"prevHash", b'"hash"', b"meta"):
        assert absent not in bare
    assert run("verify", "--set", "peer.jsonl").startswith("2/2 verified")
    assert run("verify", "--set", "open.jsonl", status=3).startswith("0/1 verified, 1 unverifiable")
    assert "cannot be told" in run("verify", "--set", "peer.jsonl")
    broken = (tmp_path / "peer.jsonl").read_bytes().replace(b"capture by name", b"capture by game")
    (tmp_path / "peer.jsonl").write_bytes(broken)
    assert "content_mismatch" in run("verify", "--set", "peer.jsonl", status=1)
    rows = run("export", "--to", "peer")
    told = front_door("verify", "--set", "-", "--json", cwd=tmp_path, stdin=rows)
    assert (told.exit, told.json["verified"], told.json["ok"]) == (0, 2, True)


def test_each_refusal_and_its_allowed_twin(troth: Shell, tmp_path: Path) -> None:
    def code(*words: str | Path) -> str | None:
        said = troth("export", *words, "--json")
        if said.exit == 0:
            return None
        assert said.exit == 2, said
        return str(said.json["error"]["code"])

    dry = "--dry-run"
    for words in (("--to", "peer"), ("--cloud",), ("--anonymous",)):
        (tmp_path / ".mentu" / "genesis.key").unlink(missing_ok=True)
        assert code(*words, dry) == "E_FEDERATION_OFF"
        put("", tmp_path)
        assert code(*words, dry) == "E_FEDERATION_OFF"
        put(FEDERATION.replace("true", "false"), tmp_path)
        assert code(*words, dry) == "E_FEDERATION_OFF"
        put("federation: {enabled: true}\n", tmp_path)
        assert code(*words, dry) == ("E_NO_PEER" if words != ("--anonymous",) else None)
        put("federation: 1\n", tmp_path)
        assert code(*words, dry) == "E_CONSTRAINT_VIOLATED"
        put(FEDERATION, tmp_path)
        assert code(*words, dry) is None
    assert code("--to", "other", dry) == "E_NO_PEER"
    assert code(dry) == "E_USAGE"
    assert code("--to", "peer", "--cloud", dry) == "E_USAGE"
    assert code("--to", "peer") == "E_USAGE"  # rows and an answer on one stdout
    assert troth("export", "--to", "peer").exit == 0
    assert troth("export", "--to", "peer", "--force").exit == 2
    assert code("--to", "peer", "-o", "a") is None
    assert code("--to", "peer", "-o", "a") == "E_NOT_EMPTY"
    assert code("--to", "peer", "-o", "a", "--force") is None
    assert code("--to", "peer", "-o", ".mentu/ledger.jsonl", "--force") == "E_USAGE"
    assert code("--to", "peer", "-o", "no/where") == "E_UNREADABLE"
    assert code("--whole", "b", dry) == code("--whole", "b", "-o", "c") == "E_USAGE"
    assert code("--whole", "b") is None
    assert code("--whole", "b") == "E_NOT_EMPTY"
    assert code("--whole", "b", "--force") is None
    assert troth("verify", "--set", "a", "--json").exit == 0
    for more in (["b"], ["--remarks"], ["--repair-tail"], ["--expect-head", "0" * 64], ["--store", "."]):
        assert troth("verify", "--set", "a", *more, "--json").json["error"]["code"] == "E_USAGE"
    assert troth("verify", "--set", "absent", "--json").json["error"]["code"] == "E_NO_LEDGER"
    assert troth("verify", "--set", ".", "--json").json["error"]["code"] == "E_NOT_REGULAR"


def test_a_dry_run_counts_and_tells_why_rows_stay(troth: Shell, tmp_path: Path) -> None:
    put(FEDERATION, tmp_path)
    *_, local, held = fill(open_store(tmp_path))
    said = troth("export", "--to", "peer", "--dry-run")
    assert said.exit == 0
    assert said.out.splitlines() == [
        "2 of 6 rows for workspace peer, unmodified",
        "Effective scopes: local 3, anonymous 1, full 1, cloud 1",
        "Stay: 2 are local themselves",
        "Stay: 1 name a row that does not go there",
        "Stay: 1 have a scope that does not lead there",
        f"  {held}  cloud, narrowed to local by {local}",
    ]
    told = troth("export", "--to", "peer", "--dry-run", "--json").json
    assert (told["out"], told["rows"], told["form"], told["file"]) == (2, 6, "row", None)
    assert told["stay"] == {"own": 2, "named": 1, "audience": 1}
    assert [one["warning"] for one in told["warnings"]] == ["free_text"]
    assert not list(tmp_path.glob("*.jsonl"))


def test_an_empty_ledger_and_one_where_all_stays(troth: Shell, tmp_path: Path) -> None:
    put(FEDERATION, tmp_path)
    assert "0 of 0 rows for anybody, anonymous" in troth("export", "--anonymous", "-o", "a").out
    assert (tmp_path / "a").read_bytes() == b""
    assert troth("capture", "seen").exit == 0
    said = troth("export", "--anonymous")
    assert (said.exit, said.out) == (0, "")
    assert "0 of 2 rows" in said.err
    assert "free_text" not in said.err


def test_a_broken_ledger(troth: Shell, tmp_path: Path) -> None:
    put(FEDERATION, tmp_path)
    fill(open_store(tmp_path))
    ledger = tmp_path / ".mentu" / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b"capture by name", b"capture by game"))
    said = troth("export", "--to", "peer", "-o", "a", "--json")
    assert (said.exit, said.json["error"]["code"]) == (1, "E_CHAIN_BROKEN")
    assert not (tmp_path / "a").exists()
    assert troth("export", "--whole", "copy").exit == 1
    assert (tmp_path / "copy").read_bytes() == ledger.read_bytes()


def test_a_whole_copy_is_what_store_dump_makes(troth: Shell, tmp_path: Path) -> None:
    fill(open_store(tmp_path))
    first, second = troth("export", "--whole", "a", "--json").json, troth("store", "dump", "b", "--json").json
    assert {**first, "to": "b"} == second
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert troth("verify", "a", "--json").json["head"] == first["head"]


def test_names_that_would_drive_a_terminal(troth: Shell, tmp_path: Path) -> None:
    put('federation: {enabled: true, workspaces: ["a\\e[31m\\u202e"]}\n', tmp_path)
    said = troth("export", "--to", "a\x1b[31m\u202e", "--dry-run")
    assert said.exit == 0, said
    assert "\x1b" not in said.out
    assert "\u202e" not in said.out


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_stdout_that_takes_nothing(tmp_path: Path) -> None:
    front_door("init", cwd=tmp_path)
    put(FEDERATION, tmp_path)
    fill(open_store(tmp_path))
    import subprocess
    import sys

    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "troth", "export", "--to", "peer"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 70
    assert b"E_OUTPUT" in done.stderr


@needs_postgres
def test_a_ledger_in_a_database(tmp_path: Path) -> None:
    house = DatabaseHouse()
    store = house.open()
    seen, work, *_ = fill(store)
    said = front_door("export", "--to", "peer", "--store", house.where, cwd=tmp_path)
    assert (said.exit, said.out) == (2, "")
    assert "E_FEDERATION_OFF" in said.err
    (tmp_path / "genesis.key").write_text(IDENTITY + FEDERATION)
    assert front_door("store", "genesis", "genesis.key", "--store", house.where, cwd=tmp_path).exit == 0
    said = front_door("export", "--to", "peer", "--store", house.where, cwd=tmp_path)
    assert said.exit == 0, said
    assert ids(said.out) == [seen, work]
    assert front_door("verify", "--set", "-", cwd=tmp_path, stdin=said.out).exit == 0
    assert front_door("export", "--whole", "copy", "--store", house.where, cwd=tmp_path).exit == 0
    assert (tmp_path / "copy").read_bytes() == b"".join(store.lines())
