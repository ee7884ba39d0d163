"""The throw-away index: used only while nothing changed, and without any say in what is true."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.ledgers import capture, commitment, fingerprint, fresh
from troth.ledger.operations import Candidate
from troth.stores import index
from troth.stores.index import Everything, Summary, cache_folder
from troth.stores.jsonl import JsonlStore


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own, for ledgers of any size and age."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(index, "cache_folder", lambda: tmp_path / "cache" / "troth")
    monkeypatch.setattr(index, "WORTH_BYTES", 0)
    monkeypatch.setattr(index, "SETTLED_NANOSECONDS", 0)
    return tmp_path / "cache"


@pytest.fixture
def store(tmp_path: Path, cache: Path) -> JsonlStore:
    """A ledger with a commitment in each state, a row without effect and a self-approval."""
    store = fresh(tmp_path / "space")

    def add(op: str, commitment: str, **payload: str) -> None:
        store.append(Candidate(op, "agent:worker", {"body": "x", "commitment": commitment, **payload}))

    commitment(store, "open")
    claimed, reviewed, closed = (commitment(store, name) for name in ("claimed", "reviewed", "closed"))
    evidence = capture(store, "done")
    for identifier in (claimed, reviewed, closed):
        add("claim", identifier)
    for identifier in (reviewed, closed):
        add("submit", identifier, evidence=evidence)
    add("approve", closed)
    capture(store, "nobody cares")
    return store


def _reading(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    reads: list[int] = []
    real = JsonlStore.read
    monkeypatch.setattr(JsonlStore, "read", lambda self, **more: (reads.append(1), real(self, **more))[1])
    return reads


def _facts(summary: Summary) -> tuple[object, ...]:
    whole = summary.everything()
    assert isinstance(whole, Everything)
    return (
        summary.verification,
        summary.live,
        summary.closed,
        summary.anomalies,
        summary.anomaly_count,
        summary.notes,
        summary.uncommitted,
        whole.commitments,
        whole.anomalies,
        summary.evidence,
        whole.evidence,
    )


def test_an_unchanged_ledger_is_not_read(store: JsonlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    reads = _reading(monkeypatch)
    first = _facts(JsonlStore.open(store.ledger_file).summary())
    assert reads == [1]
    second = _facts(JsonlStore.open(store.ledger_file).summary())
    assert reads == [1]
    assert second == first
    assert [record.state for record in second[1]] == ["open", "claimed", "in_review"]
    assert second[2] == 1
    assert [note.warning for note in second[5]] == ["self_approval"]


def _append(store: JsonlStore) -> None:
    capture(store)


def _touch(store: JsonlStore) -> None:
    os.utime(store.ledger_file)


def _edit_and_set_the_time_back(store: JsonlStore) -> None:
    found = store.ledger_file.stat()
    data = store.ledger_file.read_bytes().replace(b"nobody cares", b"NOBODY CARES")
    with store.ledger_file.open("r+b") as file:
        file.write(data)
    os.utime(store.ledger_file, ns=(found.st_atime_ns, found.st_mtime_ns))


def _replace(store: JsonlStore) -> None:
    copy = store.ledger_file.with_name("copy")
    copy.write_bytes(store.ledger_file.read_bytes())
    copy.replace(store.ledger_file)


def _configure(store: JsonlStore) -> None:
    store.ledger_file.with_name("config.yaml").write_text("workspace: w\nunhashed_prefix: 3\n")


@pytest.mark.parametrize("change", [_append, _touch, _edit_and_set_the_time_back, _replace, _configure])
def test_any_change_makes_it_worthless(store: JsonlStore, change: object, monkeypatch: pytest.MonkeyPatch) -> None:
    before = store.summary()
    assert callable(change)
    change(store)
    reads = _reading(monkeypatch)
    found = JsonlStore.open(store.ledger_file).summary()
    assert reads == [1]
    expected = change in (_touch, _replace)
    assert (_facts(found) == _facts(before)) is expected
    assert found.verification == JsonlStore.open(store.ledger_file).verify()


def test_what_was_made_too_soon_after_a_change_does_not_count(
    store: JsonlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "SETTLED_NANOSECONDS", 3_600_000_000_000)
    reads = _reading(monkeypatch)
    for _ in range(2):
        JsonlStore.open(store.ledger_file).summary()
    assert reads == [1, 1]


@pytest.mark.parametrize("garbage", [b"", b"{", b"[]\n", b"{}\n{}", b"\xff\n", b'{"key":[]}\n'])
def test_garbage_is_passed_over(store: JsonlStore, cache: Path, garbage: bytes) -> None:
    first = _facts(store.summary())
    (path,) = cache.rglob("*.json")
    path.write_bytes(garbage)
    assert _facts(JsonlStore.open(store.ledger_file).summary()) == first


def test_a_broken_ledger_has_none(store: JsonlStore, cache: Path) -> None:
    with store.ledger_file.open("ab") as file:
        file.write(b"malformed\n")
    assert not JsonlStore.open(store.ledger_file).summary().verification.ok
    assert list(cache.rglob("*.json")) == []


def test_verify_never_looks_at_it(store: JsonlStore, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.summary()
    monkeypatch.setattr(index, "load", lambda *_: pytest.fail("the index was used"))
    assert JsonlStore.open(store.ledger_file).verify().ok


def test_it_stands_in_the_cache_alone_and_may_be_deleted(store: JsonlStore, cache: Path) -> None:
    before = fingerprint(store.ledger_file.parent)
    first = _facts(store.summary())
    assert fingerprint(store.ledger_file.parent) == before
    (path,) = cache.rglob("*.json")
    assert path.stat().st_mode & 0o077 == 0
    path.unlink()
    assert _facts(JsonlStore.open(store.ledger_file).summary()) == first


def test_a_cache_that_cannot_be_written_costs_nothing(
    store: JsonlStore, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.write_text("a file stands here")
    assert store.summary().closed == 1
    monkeypatch.setattr(index, "cache_folder", lambda: None)
    assert store.summary().closed == 1


def test_small_ledgers_have_none(store: JsonlStore, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "WORTH_BYTES", 1 << 20)
    store.summary()
    assert not cache.exists()


def test_where_the_cache_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(index.sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", "/c")
    assert cache_folder() == Path("/c/troth")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", "/h")
    assert cache_folder() == Path("/h/.cache/troth")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("HOME")
    assert cache_folder() is None
