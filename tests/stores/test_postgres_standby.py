"""A server that only reads, and one that takes too long: refused with the way out, nothing recorded."""

from __future__ import annotations

import psycopg
import pytest

from support.houses import DatabaseHouse, row
from support.postgres import needs_postgres, own_server
from troth.core.errors import Busy, Refused
from troth.ledger.operations import Candidate
from troth.stores.postgres import session
from troth.stores.postgres.creating import create_ledger

pytestmark = needs_postgres

ROW = Candidate("capture", "agent:worker", {"body": "x"})


@pytest.mark.slow
def test_a_standby_is_read_and_takes_rows_once_it_is_promoted() -> None:
    with own_server() as server:
        where = f"{server.address(server.database())}&workspace=w"
        store = create_ledger(where)[0]
        row(store, "capture")
        server.stop()
        signal = server.folder / "data" / "standby.signal"
        signal.touch()
        signal.chmod(0o644)
        server.start()
        assert len(store.read().rows) == 1
        assert store.verify().ok
        with pytest.raises(Refused) as caught:
            store.append(ROW)
        assert (caught.value.code, caught.value.detail) == ("E_STORE_READ_ONLY", "not_recorded")
        assert caught.value.place is not None
        assert "target_session_attrs=read-write" in str(caught.value.remedy)
        with psycopg.connect(server.address("postgres"), autocommit=True) as conn:
            assert conn.execute("SELECT pg_promote(true, 60)").fetchone() == (True,)
        store.append(ROW)
        assert len(store.read().rows) == 2
        assert store.verify().ok
        store.close()


def test_a_statement_that_takes_too_long_records_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    house = DatabaseHouse()
    store = house.open()
    row(store, "capture")
    with psycopg.connect(house.where.split("&workspace=")[0], autocommit=True) as conn:
        conn.execute(
            "CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_sleep(60); RETURN NEW; END $$"
        )
        conn.execute("CREATE TRIGGER a_slow BEFORE INSERT ON troth.rows FOR EACH ROW EXECUTE FUNCTION public.slow()")
        with monkeypatch.context() as patch:
            patch.setattr(session, "_WRITING", session._WRITING.replace(f"{session.STATEMENT_SECONDS}s", "500ms"))
            with pytest.raises(Busy) as caught:
                store.append(ROW)
        assert caught.value.code == "E_BUSY"
        assert "took too long" in caught.value.message
        conn.execute("DROP TRIGGER a_slow ON troth.rows")
    assert len(store.read().rows) == 1
    store.append(ROW)
    assert store.verify().ok
