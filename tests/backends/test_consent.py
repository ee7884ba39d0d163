"""Consent: blocked unless a key is named exactly, in the protocol's order; a store is taken whole or not at all."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.backends.consent import (
    MOST_BYTES,
    MOST_GRANTS,
    NOTICE_VERSION,
    VARIABLE,
    ConsentStore,
    Grant,
    consent,
    denied,
    grants_bytes,
    parse_grants,
)
from troth.core.errors import Refused

KEY = "https://api.openai.com"
AT = "2026-01-02T03:04:05Z"
GRANT = Grant(KEY, NOTICE_VERSION, AT)


class Memory:
    """A file in memory."""

    def __init__(self, data: bytes | None = None) -> None:
        self.data = data

    def read(self) -> bytes | None:
        return self.data

    def change(self, change: Callable[[bytes | None], bytes]) -> None:
        self.data = change(self.data)


def basis(approved: list[str], environment: str | None, grants: dict[str, Grant]) -> str | None:
    held = {VARIABLE: environment} if environment is not None else {}
    return consent(KEY, approved=approved, environment=held, grants=grants).basis


@pytest.mark.parametrize(("run", "process", "stored"), list(itertools.product([False, True], repeat=3)))
def test_the_order(run: bool, process: bool, stored: bool) -> None:
    expected = "run" if run else "process" if process else "stored" if stored else None
    assert basis([KEY] if run else [], KEY if process else None, {KEY: GRANT} if stored else {}) == expected


INEXACT = [
    "https://api.openai.com/", "https://API.openai.com", "api.openai.com", "https://api.openai.com:443", "https://",
    "https://api.openai.co", "https://api.openai.com.evil.example", "*", "1", "true", "yes", "all", "", " ",
    "http://api.openai.com", "https://openai.com", f"{KEY}x",
]  # fmt: skip


@pytest.mark.parametrize("named", INEXACT)
def test_only_the_exact_key_counts(named: str) -> None:
    assert basis([named], None, {}) is None
    assert basis([], named, {}) is None
    assert basis([], None, {named: Grant(named, NOTICE_VERSION, AT)}) is None


@pytest.mark.parametrize("text", [KEY, f"https://a.example,{KEY}", f" https://a.example\n{KEY}\t", f"{KEY},"])
def test_several_keys_for_one_process(text: str) -> None:
    assert basis([], text, {}) == "process"


@pytest.mark.parametrize("notice", [0, NOTICE_VERSION + 1, -1])
def test_a_grant_under_another_notice_counts_no_longer(notice: int) -> None:
    found = consent(KEY, approved=[], environment={}, grants={KEY: Grant(KEY, notice, AT)})
    assert not found.given
    assert f"notice {notice}" in found.reason


def test_what_is_denied_says_how_to_agree() -> None:
    found = consent(KEY, approved=[], environment={}, grants={})
    refusal = denied(found)
    assert refusal.code == "consent_denied"
    assert refusal.exit_code == 2
    assert f"consent grant {KEY}" in (refusal.remedy or "")
    assert found.as_json() == {"key": KEY, "basis": None, "reason": found.reason}


# --- the store -----------------------------------------------------------------------------------------------------


def test_granting_and_revoking() -> None:
    store = ConsentStore(Memory())
    assert store.grants() == {}
    assert store.grant(KEY, AT) == GRANT
    store.grant("http://localhost:11434", AT)
    store.grant("scripted:answers.json", AT)
    assert list(store.grants()) == ["http://localhost:11434", KEY, "scripted:answers.json"]
    assert store.revoke([KEY, KEY, "https://never.example"]) == [KEY]
    assert KEY not in store.grants()
    assert store.revoke([KEY]) == []


@pytest.mark.parametrize("key", ["https://API.openai.com", "https://api.openai.com/v1", "http://a.example", "*"])
def test_only_a_key_is_granted(key: str) -> None:
    file = Memory()
    with pytest.raises(Refused) as refused:
        ConsentStore(file).grant(key, AT)
    assert refused.value.code == "E_ENDPOINT"
    assert file.data is None


def test_a_store_does_not_grow_without_end() -> None:
    keys = [f"scripted:{number}" for number in range(MOST_GRANTS)]
    file = Memory(grants_bytes({key: Grant(key, NOTICE_VERSION, AT) for key in keys[1:]}))
    store = ConsentStore(file)
    store.grant(keys[0], AT)
    assert len(store.grants()) == MOST_GRANTS
    with pytest.raises(Refused):
        store.grant(KEY, AT)
    store.grant(keys[5], AT)  # anew, which is no more
    assert KEY not in store.grants()


GOOD: dict[str, Any] = {"grants": [GRANT.as_json()]}
SPOILT: list[Any] = [
    b"", b"{", b"\xff", b"null", b"[]", b'{"grants": null}', b"[" * 100_000,
    {"grants": {}}, {"grants": [], "more": 1}, {**GOOD, "version": 1},
    {"grants": [GRANT.as_json(), None]},
    {"grants": [GRANT.as_json(), GRANT.as_json()]},
    {"grants": [{**GRANT.as_json(), "extra": 1}]},
    {"grants": [{"key": KEY, "notice": 1}]},
    {"grants": [{**GRANT.as_json(), "key": "https://API.openai.com"}]},
    {"grants": [{**GRANT.as_json(), "key": "https://u:p@api.openai.com"}]},
    {"grants": [{**GRANT.as_json(), "key": 5}]},
    {"grants": [{**GRANT.as_json(), "notice": True}]},
    {"grants": [{**GRANT.as_json(), "notice": "1"}]},
    {"grants": [{**GRANT.as_json(), "at": "yesterday"}]},
    {"grants": [{**GRANT.as_json(), "at": None}]},
    # one that is sound beside one that is not counts no more either
    {"grants": [GRANT.as_json(), {**GRANT.as_json(), "key": "*"}]},
]  # fmt: skip


@pytest.mark.parametrize("spoilt", SPOILT)
def test_a_malformed_store_is_an_empty_one(spoilt: Any) -> None:
    data = spoilt if isinstance(spoilt, bytes) else json.dumps(spoilt).encode()
    assert parse_grants(data) == {}
    file = Memory(data)
    ConsentStore(file).grant("http://localhost:1", AT)
    assert list(parse_grants(file.data)) == ["http://localhost:1"]


def test_the_twin_is_read() -> None:
    assert parse_grants(json.dumps(GOOD).encode()) == {KEY: GRANT}
    assert parse_grants(None) == {}
    assert parse_grants(json.dumps(GOOD).encode() + b" " * MOST_BYTES) == {}


@given(
    st.dictionaries(
        st.sampled_from([KEY, "http://localhost:1", "scripted:a", "https://[2001:db8::1]:8443"]),
        st.integers(0, 9),
        max_size=4,
    )
)
def test_what_is_written_is_read_again(notices: dict[str, int]) -> None:
    grants = {key: Grant(key, notice, AT) for key, notice in notices.items()}
    assert parse_grants(grants_bytes(grants)) == grants
