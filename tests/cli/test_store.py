"""``troth store`` and ``--store postgresql://…``: a ledger in a database at the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.frontdoor import troth as front_door
from support.houses import row
from support.observing import needs_observer
from support.postgres import needs_postgres, shared_server
from support.project import HONEST, Project, project, sealed_project
from support.shell import Shell, make_shell
from troth.stores.opening import open_store
from troth.stores.postgres.creating import create_ledger

__all__ = ["project", "sealed_project"]

GENESIS = "genesis:\n"  # a key that is invalid, whatever the rules of keys say


@pytest.fixture
def empty() -> str:
    """The address of an empty database."""
    server = shared_server()
    return server.address(server.database())


@pytest.fixture
def troth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    """Run commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROTH_ACTOR", "agent:worker")
    return make_shell(capfd)


@needs_postgres
def test_the_front_door(empty: str, tmp_path: Path) -> None:
    where = f"{empty}&workspace=shop"
    assert front_door("init", "--store", where, cwd=tmp_path).exit == 0
    said = front_door("capture", "seen", "--store", where, "--as", "agent:worker", cwd=tmp_path)
    assert (said.exit, said.err) == (0, "")
    said = front_door("verify", "--store", where, cwd=tmp_path)
    assert said.out.startswith("1/1 verified")
    said = front_door("status", "--store", "postgresql://u:hidden@127.0.0.1:1/x", cwd=tmp_path)
    assert (said.exit, said.out) == (75, "")
    assert "E_STORE_LOST" in said.err
    assert "hidden" not in said.err


@needs_postgres
def test_a_ledger_in_a_database_from_beginning_to_end(empty: str, tmp_path: Path, troth: Shell) -> None:
    where = f"{empty}&workspace=shop"

    def run(*words: str, status: int = 0) -> Any:
        said = troth(*words, "--json")
        assert said.exit == status, said
        return said.json

    assert run("status", "--store", where, status=2)["error"]["code"] == "E_STORE_SCHEMA"
    assert run("init", "--store", where)["created"] == ["schema", "workspace"]
    assert run("init", "--store", where)["created"] == []
    assert run("init", "x", "--store", where, status=2)["error"]["code"] == "E_USAGE"
    assert run("status", "--store", f"{empty}#other", status=2)["error"]["code"] == "E_NO_LEDGER"
    source = run("capture", "seen", "--store", where)["id"]
    work = run("commit", "mend it", "--source", "@last", "--store", where)["id"]
    run("claim", work[:9], "--store", where)
    run("submit", work, "--evidence", source, "--store", where)
    run("approve", work, "--as", "human:reviewer", "--store", where)
    told = run("status", "--store", where)
    assert [(one["id"], one["state"]) for one in told["commitments"]] == [(work, "closed")]
    assert told["workspace"] == "shop"
    assert run("show", work, "--store", where)["commitment"]["owner"] == "agent:worker"
    assert len(run("log", "-n", "2", "--store", where)["signals"]) == 2
    found = run("verify", where)
    assert run("verify", where, "--expect-head", f"{found['head']}:{found['hashed']}")["ok"]
    assert run("verify", where, "--repair-tail", status=2)["error"]["code"] == "E_UNSUPPORTED"

    assert run("store", "dump", "copy.jsonl", "--store", where)["head"] == found["head"]
    assert run("store", "dump", "copy.jsonl", "--store", where, status=2)["error"]["code"] == "E_NOT_EMPTY"
    assert run("verify", "copy.jsonl")["head"] == found["head"]
    run("init", "--store", f"{empty}#second")
    assert run("store", "load", "copy.jsonl", "--store", f"{empty}#second")["head"] == found["head"]
    assert run("store", "load", "copy.jsonl", "--store", f"{empty}#second", status=2)["error"]["code"] == "E_NOT_EMPTY"
    assert run("store", "migrate", "--store", where)["applied"] == []
    assert "GRANT INSERT ON troth.rows" in run("store", "roles", "--writer", "w")["sql"]
    assert run("store", "roles", "--writer", 'x"; DROP', status=2)["error"]["code"] == "E_USAGE"

    run("init")
    config = tmp_path / ".mentu" / "config.yaml"
    config.write_text(f"{config.read_text()}store: {where}\n")
    assert run("status")["head"] == found["head"]
    assert run("status", "--store", str(tmp_path))["head"] == found["head"]
    assert run("status", "--store", str(tmp_path / ".mentu" / "ledger.jsonl"))["total"] == 0
    run("capture", "more")
    assert run("verify", "--store", where)["total"] == found["total"] + 1
    config.write_text("store: nowhere\n")
    assert run("status", status=2)["error"]["code"] == "E_CONFIG"


@needs_postgres
def test_words_for_people(empty: str, troth: Shell) -> None:
    where = f"{empty}&workspace=shop"
    for words, said in (
        (("init", "--store", where), "Created schema, workspace"),
        (("init", "--store", where), "there already; nothing was changed"),
        (("status", "--store", where), "No commitments yet."),
        (("log", "--store", where), "No rows yet."),
        (("store", "migrate", "--store", where), "nothing was missing"),
        (("store", "roles"), "CREATE ROLE"),
        (("store", "dump", "a.jsonl", "--store", where), "0/0 verified"),
        (("store", "load", "a.jsonl", "--store", where), "0 rows loaded"),
        (("store", "genesis", "--remove", "--store", where), "Nothing was changed."),
    ):
        answer = troth(*words)
        assert answer.exit == 0, answer
        assert said in answer.out
    assert "needs a ledger in a database" in troth("store", "load", "a.jsonl", "--store", "a.jsonl").err
    assert troth("store", "genesis", "--store", where).exit == 2


@needs_postgres
def test_the_genesis_key_of_a_database_governs_every_machine(empty: str, tmp_path: Path, troth: Shell) -> None:
    where = f"{empty}&workspace=shop"
    (tmp_path / "bad.key").write_text(GENESIS)
    said = troth("init", "--store", where, "--genesis", "bad.key", "--json")
    assert (said.exit, said.json["error"]["detail"]) == (2, "genesis_invalid")
    (tmp_path / "made").mkdir()
    troth("init", "made")
    troth("genesis", "init", "--store", "made")
    key = tmp_path / "made" / ".mentu" / "genesis.key"
    assert key.exists()
    said = troth("init", "--store", where, "--genesis", str(key), "--json")
    assert said.json["created"] == ["schema", "workspace", "genesis.key"], said
    stores = [open_store(where), open_store(where)]
    assert all(store.genesis() is not None for store in stores)
    row(stores[0], "capture", "human:reviewer")
    rows = stores[1].read().rows
    assert [one.value["actor"] for one in rows] == ["system:genesis", "human:reviewer"]
    row(stores[1], "capture", "human:reviewer")
    assert (len(stores[0].read().rows), stores[0].verify().ok) == (3, True)
    said = troth("store", "genesis", "--remove", "--store", where, "--json")
    assert said.json["changed"] is True
    assert stores[0].genesis() is None
    row(stores[0], "capture", "human:reviewer")
    assert [one.value["actor"] for one in stores[0].read().rows][3:] == ["system:genesis", "human:reviewer"]
    assert stores[0].verify().ok


@needs_postgres
@needs_observer
@pytest.mark.observer
def test_a_run_whose_ledger_is_in_a_database(project: Project, empty: str) -> None:
    where = f"{empty}&workspace=shop"
    create_ledger(where)
    config = project.root / ".mentu" / "config.yaml"
    config.write_text(f"{config.read_text()}store: {where}\n")
    before = (project.root / ".mentu" / "ledger.jsonl").read_bytes()
    _, commitment = project.commit()
    answer = project.run(commitment, HONEST)
    assert answer.exit == 0, answer
    store = open_store(where)
    rows = store.read().rows
    assert [one.op for one in rows] == ["capture", "commit", "claim", "capture", "submit"]
    assert [one.value["actor"] for one in rows][3:] == ["system:witness", "agent:worker"]
    assert store.read().state.commitments[commitment].state == "in_review"
    assert project.troth("approve", commitment, "--as", "human:reviewer").exit == 0
    assert (store.verify().ok, store.read().state.commitments[commitment].state) == (True, "closed")
    assert (project.root / ".mentu" / "ledger.jsonl").read_bytes() == before
