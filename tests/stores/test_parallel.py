"""Several cores give the answer of one, for sound ledgers and for broken ones."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.ledgers import capture, fresh
from troth.stores import lines, parallel
from troth.stores.jsonl import JsonlStore


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    store = fresh(tmp_path_factory.mktemp("sound"))
    for number in range(60):
        capture(store, f"n {number} " + "é/\x7f" * (number % 5))
    return store.ledger_file.read_bytes()


@pytest.fixture
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "SHARE_BYTES", 1500)
    monkeypatch.setattr(lines, "CHUNK", 700)


def _same(path: Path, data: bytes, workers: int = 2) -> None:
    path.write_bytes(data)
    store = JsonlStore.open(path)
    alone = store.verify(workers=1)
    assert store.verify(workers=workers) == alone
    head = alone.head
    assert store.verify(workers=workers, expect_head=head, expect_rows=40) == store.verify(
        workers=1, expect_head=head, expect_rows=40
    )


@pytest.mark.usefixtures("small_shares")
def test_a_sound_ledger(tmp_path: Path, sound: bytes) -> None:
    _same(tmp_path / "ledger", sound, workers=3)
    assert JsonlStore.open(tmp_path / "ledger").verify(workers=2).verified == 60


@pytest.mark.usefixtures("small_shares")
@pytest.mark.parametrize("data", [b"", b"\n", b"x", b"\n\n", b"x" * 5000, b"x" * 5000 + b"\n", b"\xef\xbb\xbf\n"])
def test_odd_files(tmp_path: Path, data: bytes) -> None:
    _same(tmp_path / "ledger", data)


@pytest.mark.usefixtures("small_shares")
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_ledger_with_something_wrong(tmp_path: Path, sound: bytes, data: st.DataObject) -> None:
    broken = bytearray(sound)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(broken) - 1))
        match data.draw(st.sampled_from(["change", "cut", "insert", "repeat", "shorten"])):
            case "change":
                broken[at] = data.draw(st.integers(0, 255))
            case "cut":
                del broken[at : at + data.draw(st.integers(1, 900))]
            case "insert":
                broken[at:at] = data.draw(st.sampled_from([b"\n", b"\r\n", b"{}\n", b"y" * 4000, b"\n\n\n"]))
            case "repeat":
                broken[at:at] = broken[at : at + 700]
            case _:
                del broken[max(at, 1) :]
        if not broken:
            broken = bytearray(b"{")
    _same(tmp_path / "ledger", bytes(broken))


def test_a_file_that_was_replaced_meanwhile_is_looked_at_here(tmp_path: Path, sound: bytes) -> None:
    share = parallel._Share(str(tmp_path / "ledger"), (0, 0), 0, len(sound))
    (tmp_path / "ledger").write_bytes(sound)
    assert parallel._examine(share) == []
