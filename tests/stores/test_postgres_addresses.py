"""Addresses of a database: what they mean, and that nothing secret of them is ever said."""

from __future__ import annotations

import builtins
import json
import sys
from collections import Counter
from typing import Any

import psycopg
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from support.postgres import LOCKED, needs_postgres, shared_server
from troth.core.errors import Busy, Refused, TrothError
from troth.stores.opening import open_store
from troth.stores.postgres.address import parse_address
from troth.stores.postgres.creating import create_ledger


@pytest.fixture
def empty() -> str:
    """The address of an empty database."""
    server = shared_server()
    return server.address(server.database())


@pytest.mark.parametrize(
    ("text", "conninfo", "workspace", "shown"),
    [
        ("postgresql://h/d?workspace=w", "postgresql://h/d", "w", "postgresql://h/d?workspace=w"),
        ("postgres://h/d#w", "postgresql://h/d", "w", "postgresql://h/d?workspace=w"),
        ("postgresql://", "postgresql://", None, "postgresql://"),
        (
            "postgresql://u:p%40ss@h:1,i:2/d?sslmode=verify-full&workspace=a%2Fb&sslpassword=q",
            "postgresql://u:p%40ss@h:1,i:2/d?sslmode=verify-full&sslpassword=q",
            "a/b",
            "postgresql://u@h:1,i:2/d?workspace=a/b",
        ),
        (
            "postgresql:///d?host=/run/x&user=u&password=secret",
            "postgresql:///d?host=/run/x&user=u&password=secret",
            None,
            "postgresql:///d?host=/run/x&user=u",
        ),
    ],
)
def test_addresses(text: str, conninfo: str, workspace: str | None, shown: str) -> None:
    found = parse_address(text)
    assert (found.conninfo, found.workspace, found.shown) == (conninfo, workspace, shown)


@pytest.mark.parametrize(
    "text",
    [
        "postgresql:/h/secret", "postgres:secret", "postgresql://u:sec@ret@h/d", "postgresql://h/d?secret",
        "postgresql://h/d?workspace=", "postgresql://h/d?workspace=a%20b", "postgresql://h/d?workspace=a#b",
        "postgresql://h/d?workspace=%00", "postgresql://h /secret", "postgresql://[secret/d",
        "postgresql://h/d?workspace=" + "w" * 129,
    ],
)  # fmt: skip
def test_addresses_that_are_none(text: str) -> None:
    with pytest.raises(Refused) as caught:
        open_store(text)
    assert caught.value.code == "E_USAGE"
    assert "secret" not in str(caught.value)


_SECRET = st.text(st.sampled_from("abcXYZ019-_.~!*"), min_size=6, max_size=20)


@settings(deadline=None)
@given(_SECRET, st.sampled_from(["postgresql://u:{}@127.0.0.1:1/d", "postgresql://127.0.0.1:1/d?password={}",
                                 "postgresql://u:{}@127.0.0.1:1/d?nosuch=1", "postgresql://u:{}@/d?host=/nowhere",
                                 "postgresql://127.0.0.1:1/d?sslpassword={}&port=x"]))  # fmt: skip
def test_a_password_is_never_said(secret: str, form: str) -> None:
    secret = f"pw{secret}"
    store = open_store(form.format(secret))
    assert secret not in repr(store) + store.location + repr(getattr(store, "address", ""))
    with pytest.raises(TrothError) as caught:
        store.read()
    assert secret not in str(caught.value) + json.dumps(caught.value.as_json())
    assert isinstance(caught.value, Busy) or caught.value.code == "E_USAGE"


@needs_postgres
def test_a_server_that_answers_and_refuses_is_told_apart(empty: str) -> None:
    for where in (empty.replace("postgres@", "nobody_here@"), empty.replace("@/t", "@/nosuch")):
        with pytest.raises(Refused) as caught:
            open_store(where).read()
        assert (caught.value.code, caught.value.exit_code) == ("E_STORE_REFUSED", 2)


@needs_postgres
def test_a_wrong_password_is_refused_and_not_repeated(empty: str) -> None:
    create_ledger(empty, "w")
    with psycopg.connect(empty, autocommit=True) as conn:
        conn.execute(f"DROP ROLE IF EXISTS {LOCKED}".encode())
        conn.execute(f"CREATE ROLE {LOCKED} SUPERUSER LOGIN PASSWORD 'right/one'".encode())
    form = empty.replace("postgres@", f"{LOCKED}{{}}@") + "&workspace=w"
    try:
        assert open_store(form.format(":right%2Fone")).verify().ok
        assert open_store(form.format("") + "&password=right%2Fone").verify().ok
        for given_ in (":wrong%2Fone", ""):
            with pytest.raises(Refused) as caught:
                open_store(form.format(given_)).read()
            assert caught.value.code == "E_STORE_REFUSED"
            assert "wrong" not in str(caught.value)
    finally:
        with psycopg.connect(empty, autocommit=True) as conn:
            conn.execute(f"DROP OWNED BY {LOCKED}".encode())
            conn.execute(f"DROP ROLE {LOCKED}".encode())


_PIECES = st.sampled_from(
    ["postgresql://", "postgres:", "u", ":", "@", "p%40", "h", ",", "/", "d", "?", "&", "#", "=", "workspace", "w", "%",
     "[", "]", " ", "\x00", "é", "sslmode=require"]
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@example("?postgresql://workspace=")
@given(st.lists(_PIECES, max_size=14).map("".join) | st.text(max_size=30))
def test_any_text_is_an_address_or_refused(text: str) -> None:
    try:
        found = parse_address(f"postgresql://{text}")
    except Refused as fault:
        READ["refused" if fault.code == "E_USAGE" else fault.code] += 1
    else:
        handed_on = found.conninfo.partition("?")[2].split("&")
        assert "workspace" not in {piece.partition("=")[0] for piece in handed_on}
        assert parse_address(found.shown).workspace == found.workspace
        READ["read"] += 1


READ: Counter[str] = Counter()


def test_the_reader_of_addresses_read_some() -> None:
    if READ:
        assert set(READ) == {"read", "refused"}
        assert min(READ.values()) > 20


def test_without_the_driver_the_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def lacking(name: str, *more: Any) -> Any:
        if name == "psycopg":
            raise ImportError("No module named 'psycopg'")
        return real(name, *more)

    monkeypatch.delitem(sys.modules, "psycopg", raising=False)
    monkeypatch.setattr(builtins, "__import__", lacking)
    with pytest.raises(Refused) as caught:
        open_store("postgresql://h/d")
    assert caught.value.code == "E_NO_DRIVER"
    assert "pip install 'troth[postgres]'" in str(caught.value)
