"""What only the database does: guards against change, roles, steps of the schema, addresses without secrets."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.houses import DatabaseHouse, FileHouse, database, furnished, row
from support.postgres import needs_postgres, shared_server
from troth.core.errors import DoesNotHold, Refused
from troth.ledger.importing import chained
from troth.ledger.operations import Candidate
from troth.stores.opening import open_store
from troth.stores.postgres import migrating
from troth.stores.postgres.address import parse_address
from troth.stores.postgres.creating import create_ledger
from troth.stores.postgres.store import PostgresStore


@pytest.fixture
def house() -> DatabaseHouse:
    return DatabaseHouse()


@pytest.fixture
def empty() -> str:
    """The address of an empty database."""
    server = shared_server()
    return server.address(server.database())


def the_store(house: DatabaseHouse) -> PostgresStore:
    store = house.open()
    assert isinstance(store, PostgresStore)
    return store


# Guards --------------------------------------------------------------------------------------------------------

_REFUSED = [
    "UPDATE troth.rows SET raw = 'x'",
    "UPDATE troth.rows SET token = token",
    "DELETE FROM troth.rows",
    "DELETE FROM troth.rows WHERE false",
    "TRUNCATE troth.rows",
    "TRUNCATE troth.workspaces CASCADE",
    "UPDATE troth.workspaces SET lines = 0",
    "UPDATE troth.workspaces SET head = repeat('1', 64)",
    "UPDATE troth.workspaces SET name = 'other'",
    "UPDATE troth.workspaces SET unhashed_prefix = 7",
    "DELETE FROM troth.workspaces",
    "INSERT INTO troth.rows SELECT workspace, line + 7, raw, NULL, NULL, hash, token FROM troth.rows",
    "INSERT INTO troth.rows SELECT workspace, 0, raw, NULL, NULL, hash, token FROM troth.rows",
    "INSERT INTO troth.rows SELECT * FROM troth.rows ON CONFLICT (workspace, line) DO UPDATE SET raw = 'x'",
    "INSERT INTO troth.rows SELECT * FROM troth.rows",
    "INSERT INTO troth.rows SELECT workspace, max(line) OVER () + 1, raw, id, NULL, hash, token"
    " FROM troth.rows LIMIT 1",
    "INSERT INTO troth.rows SELECT workspace, max(line) OVER () + 1, 'a' || '\\x0a'::bytea, NULL, NULL, hash, token"
    " FROM troth.rows LIMIT 1",
    "SET session_replication_role = replica; DELETE FROM troth.rows",
]


@needs_postgres
def test_the_database_itself_refuses_changes_whoever_asks(empty: str) -> None:
    store = create_ledger(f"{empty}&workspace=w")[0]
    row(store, "capture")
    row(store, "capture")
    for statement in _REFUSED:
        before = list(store.lines())
        with psycopg.connect(empty) as conn, pytest.raises(psycopg.IntegrityError):
            conn.execute(statement.encode())
        assert list(store.lines()) == before, statement
        row(store, "capture")
        assert store.verify().ok, statement
    assert len(store.read().rows) == 2 + len(_REFUSED)


@needs_postgres
def test_the_head_is_kept_by_the_database(house: DatabaseHouse) -> None:
    store = furnished(house)
    with psycopg.connect(house.base) as conn:
        query = "SELECT lines, head, last_hash FROM troth.workspaces WHERE name = %s"
        found = conn.execute(query, (house.name,)).fetchone()
    verified = store.verify()
    assert found == (verified.total, verified.head, verified.last_hash)


_ONE = "workspace = (SELECT id FROM troth.workspaces WHERE name = %s)"


@needs_postgres
@pytest.mark.parametrize(
    ("statement", "faults"),
    [
        (f"DELETE FROM troth.rows WHERE line > 4 AND {_ONE}", [(None, "head_mismatch")]),
        (f"DELETE FROM troth.rows WHERE {_ONE}", [(None, "head_mismatch")]),
        (
            f"DELETE FROM troth.rows WHERE line = 3 AND {_ONE}",
            [(4, "missing_ancestor"), (3, "head_mismatch"), (None, "head_mismatch")],
        ),
        (
            f"UPDATE troth.rows SET raw = overlay(raw placing 'sEEn' from position('seen' in raw)) "
            f"WHERE line = 1 AND {_ONE}",
            [(1, "content_mismatch")],
        ),
        ("UPDATE troth.workspaces SET lines = lines + 1 WHERE name = %s", [(None, "head_mismatch")]),
        ("UPDATE troth.workspaces SET head = repeat('0', 64) WHERE name = %s", [(None, "head_mismatch")]),
    ],
)
def test_what_a_superuser_changes_is_found_and_blocks(
    house: DatabaseHouse, statement: str, faults: list[tuple[int | None, str]]
) -> None:
    furnished(house)
    house.run(statement, house.name)
    store = house.open()
    assert [(fault.line, fault.fault) for fault in store.verify().faults] == faults
    snapshot = store.read()
    assert [(fault.line, fault.fault) for fault in snapshot.verification.faults] == faults
    for one in snapshot.rows:  # what is there can still be looked at
        assert snapshot.rows.at_line(one.line).id == one.id
    with pytest.raises(DoesNotHold) as caught:
        row(store, "capture")
    assert caught.value.code == "E_CHAIN_BROKEN"


# Roles ---------------------------------------------------------------------------------------------------------


@needs_postgres
def test_a_writer_appends_and_nothing_else_and_a_reader_reads(empty: str) -> None:
    server = shared_server()
    name = empty.partition("/t")[2].partition("?")[0]
    writer, reader = f"w{name}", f"r{name}"
    owner = create_ledger(f"{empty}&workspace=w")[0]
    with psycopg.connect(empty, autocommit=True) as conn:
        for role in (writer, reader):
            conn.execute(f"CREATE ROLE {role} LOGIN".encode())
        conn.execute(migrating.roles_sql(writer, reader).encode())
        conn.execute(migrating.roles_sql(writer, reader).encode())  # twice does no harm
    database_name = f"t{name}"
    as_writer = server.address(database_name, writer)
    as_reader = server.address(database_name, reader)

    store = open_store(f"{as_writer}&workspace=w")
    row(store, "capture")
    assert store.verify().ok
    reading = open_store(f"{as_reader}&workspace=w")
    assert (reading.verify().ok, len(reading.read().rows), reading.summary().live) == (True, 1, [])
    with pytest.raises(Refused) as caught:
        row(reading, "capture")
    assert (caught.value.code, caught.value.detail) == ("E_STORE_REFUSED", "42501")

    forbidden = [*_REFUSED[:13], "ALTER TABLE troth.rows DISABLE TRIGGER ALL", "DROP TABLE troth.rows"]
    forbidden += ["DROP SCHEMA troth CASCADE", "SET session_replication_role = replica", "CREATE TABLE troth.x (a int)"]
    forbidden += [
        "INSERT INTO troth.constitutions VALUES (1, 1, 'x', NULL)",
        "INSERT INTO troth.workspaces (name) VALUES ('x')",
    ]
    for address in (as_writer, as_reader):
        for statement in forbidden:
            with psycopg.connect(address) as conn, pytest.raises(psycopg.Error) as refused:
                conn.execute(statement.encode())
            assert refused.value.sqlstate in ("42501", "23001", "23514"), statement
    for enacting in (open_store(f"{as_writer}&workspace=w"), reading):
        assert isinstance(enacting, PostgresStore)
        with pytest.raises(Refused) as caught:
            enacting.enact(None, b"signature")
        assert caught.value.code == "E_STORE_REFUSED"
    with pytest.raises(Refused) as caught:
        create_ledger(f"{as_writer}&workspace=another")
    assert caught.value.code == "E_STORE_REFUSED"
    row(owner, "capture")
    assert [fault.fault for fault in owner.verify().faults] == []


@needs_postgres
def test_a_writer_that_writes_nonsense_is_found(house: DatabaseHouse) -> None:
    store = furnished(house)
    house.run(
        "INSERT INTO troth.rows SELECT id, lines + 1, '{}', NULL, NULL, NULL, gen_random_uuid() "
        "FROM troth.workspaces WHERE name = %s",
        house.name,
        guarded=True,
    )
    assert [fault.fault for fault in store.verify().faults] == ["unhashed_after_cutover"]
    with pytest.raises(DoesNotHold):
        row(store, "capture")


# The schema ----------------------------------------------------------------------------------------------------


@needs_postgres
def test_the_schema_is_made_once_and_the_workspace_too(empty: str) -> None:
    assert create_ledger(empty, "w")[1] == ["schema", "workspace"]
    assert create_ledger(empty, "w")[1] == []
    assert create_ledger(f"{empty}#v")[1] == ["workspace"]
    with psycopg.connect(empty) as conn:
        steps = conn.execute("SELECT number, name, digest FROM troth.migrations ORDER BY number").fetchall()
        names = conn.execute("SELECT name FROM troth.workspaces ORDER BY name").fetchall()
    assert steps == [(step.number, step.name, step.digest) for step in migrating.migrations()]
    assert [step.number for step in migrating.migrations()] == list(range(1, len(steps) + 1))
    assert names == [("v",), ("w",)]


@needs_postgres
@pytest.mark.parametrize(
    ("statement", "detail"),
    [
        ("INSERT INTO troth.migrations VALUES (9999, 'future', 'x')", "newer"),
        ("UPDATE troth.migrations SET digest = 'x' WHERE number = 1", "different"),
        ("DELETE FROM troth.migrations", "absent"),
        ("DROP SCHEMA troth CASCADE", "absent"),
    ],
)
def test_a_schema_of_another_version_is_refused(empty: str, statement: str, detail: str) -> None:
    create_ledger(empty, "w")
    with psycopg.connect(empty) as conn:
        conn.execute(statement.encode())
    for ask in ("read", "verify"):
        with pytest.raises(Refused) as caught:
            getattr(open_store(f"{empty}&workspace=w"), ask)()
        assert (caught.value.code, caught.value.detail) == ("E_STORE_SCHEMA", detail)
    if detail in ("newer", "different"):
        with pytest.raises(Refused) as caught:
            create_ledger(empty, "w")
        assert caught.value.detail == detail


@needs_postgres
def test_steps_are_applied_in_order_and_rows_survive(
    empty: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = create_ledger(empty, "w")[0]
    row(store, "capture")
    before = list(store.lines())
    for path in migrating.FOLDER.glob("*.sql"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    number = len(migrating.migrations())
    (tmp_path / f"{number + 1:04}_more.sql").write_text("CREATE TABLE troth.more (a int);")
    (tmp_path / f"{number + 2:04}_still_more.sql").write_text("ALTER TABLE troth.more ADD b int;")
    monkeypatch.setattr(migrating, "FOLDER", tmp_path)
    migrating.migrations.cache_clear()
    try:
        with pytest.raises(Refused) as caught:
            open_store(f"{empty}&workspace=w").read()
        assert (caught.value.code, caught.value.detail) == ("E_STORE_SCHEMA", "older")
        (tmp_path / f"{number + 2:04}_still_more.sql").write_text("ALTER TABLE troth.nothing ADD b int;")
        migrating.migrations.cache_clear()
        address = parse_address(empty)
        with psycopg.connect(empty, autocommit=True) as conn:
            with pytest.raises(psycopg.Error):
                migrating.migrate(address, conn)
            assert len(migrating.applied(conn)) == number  # all steps or none
            (tmp_path / f"{number + 2:04}_still_more.sql").write_text("ALTER TABLE troth.more ADD b int;")
            migrating.migrations.cache_clear()
            assert [step.number for step in migrating.migrate(address, conn)] == [number + 1, number + 2]
            assert migrating.migrate(address, conn) == []
        assert list(open_store(f"{empty}&workspace=w").lines()) == before
    finally:
        migrating.migrations.cache_clear()


def test_the_step_that_databases_have_been_through_is_never_changed() -> None:
    """A changed step would lock everybody out who applied the old one; a new step belongs behind it."""
    known = {step.number: step.digest for step in migrating.migrations()}
    assert list(known) == list(range(1, len(known) + 1))
    assert all(len(digest) == 64 for digest in known.values())


@needs_postgres
def test_eight_set_ups_at_once_make_one(empty: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: create_ledger(empty, "w")[1], range(8)))
    assert sum(one.count("schema") for one in made) == 1
    assert sum(one.count("workspace") for one in made) == 1


# Whole ledgers -------------------------------------------------------------------------------------------------


@needs_postgres
def test_unhashed_rows_and_odd_lines_move_as_they_are(house: DatabaseHouse, tmp_path: Path) -> None:
    members = {"op": "capture", "ts": "2026-01-01T00:00:00Z", "actor": "human:reviewer", "payload": {"body": "é"}}
    old = [json.dumps({**members, "id": f"mem_0000000{number}"}).encode() for number in range(2)]
    new = [json.dumps(value, ensure_ascii=False).encode() for value in chained([{**members, "id": "mem_0000000a"}])]
    lines = [b"\xef\xbb\xbf" + old[0], old[1] + b"\r", b"", new[0], b""]
    store = the_store(house)
    found = store.load(lines)
    assert (found.ok, found.unhashed, found.total) == (True, 2, 3)
    assert b"".join(store.lines()) == b"".join(line + b"\n" for line in lines)
    assert house.open().verify().ok
    assert (store.verify().ok, store.unhashed_prefix) == (True, 2)
    house.run("UPDATE troth.workspaces SET unhashed_prefix = 1 WHERE name = %s", house.name)
    assert [fault.fault for fault in house.open().verify().faults] == ["unhashed_count"]
    assert [fault.fault for fault in house.open().read().verification.faults] == ["unhashed_count"]
    house.run("UPDATE troth.workspaces SET unhashed_prefix = 2 WHERE name = %s", house.name)
    file = FileHouse(tmp_path / "house")
    file.file.write_bytes(b"".join(store.lines()))
    copy = file.open()
    copy.unhashed_prefix = 2
    assert copy.verify() == store.verify()
    assert [one.value for one in copy.read().rows] == [one.value for one in store.read().rows]
    row(store, "capture")
    assert store.verify().total == 4


@needs_postgres
@pytest.mark.parametrize(
    "damage",
    [
        lambda lines: [lines[0], *lines[2:]],
        lambda lines: [*lines, lines[-1]],
        lambda lines: [lines[0].replace(b"seen", b"Seen"), *lines[1:]],
        lambda lines: [*lines, b'{"torn'],
        lambda lines: [*lines, b"x" * (1 << 20)],
    ],
)
def test_a_broken_ledger_is_not_loaded(house: DatabaseHouse, tmp_path: Path, damage: Any) -> None:
    lines = [raw[:-1] for raw in furnished(FileHouse(tmp_path / "house")).lines()]
    store = the_store(house)
    with pytest.raises(DoesNotHold) as caught:
        store.load(damage(lines))
    assert caught.value.code == "E_CHAIN_BROKEN"
    assert store.verify().total == 0
    store.load(lines)
    assert store.verify().total == len(lines)


@needs_postgres
def test_a_large_ledger_moves_in_pieces(house: DatabaseHouse, monkeypatch: pytest.MonkeyPatch) -> None:
    from troth.stores.postgres import whole

    monkeypatch.setattr(whole, "COPY_ROWS", 7)
    members = {
        "op": "capture",
        "ts": "2026-01-01T00:00:00Z",
        "actor": "human:reviewer",
        "payload": {"body": "x" * 3000},
    }
    values = list(chained({**members, "id": f"mem_{number:08}"} for number in range(500)))
    store = the_store(house)
    store.fill(values)
    seen: list[tuple[int, int]] = []
    assert store.verify(progress=lambda done, total: seen.append((done, total))).verified == 500
    assert seen == sorted(seen)
    assert seen[-1] == (500, 500)
    assert [one.id for one in store.read().rows] == [value["id"] for value in values]


@needs_postgres
def test_the_database_of_this_process_is_one(house: DatabaseHouse) -> None:
    assert house.base == database()
    store = the_store(house)
    with pytest.raises(Refused) as caught:
        store.repair_tail()
    assert caught.value.code == "E_UNSUPPORTED"
    assert store.append(Candidate("capture", "human:reviewer", {"body": "x"}))["workspace"] == house.name
