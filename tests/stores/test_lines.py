"""Reading physical lines: exact offsets, bounded memory, a digest of what is whole."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.stores import lines as lines_module
from troth.stores.lines import KEPT, PrefixDigest, blocks, physical_lines


def _blocks(path: Path, start: int = 0, digest: PrefixDigest | None = None) -> list[tuple[int, bytes, bool]]:
    fd = os.open(path, os.O_RDONLY)
    try:
        return list(blocks(fd, start, digest))
    finally:
        os.close(fd)


def _lines(path: Path, start: int = 0) -> list[tuple[bytes, bool]]:
    fd = os.open(path, os.O_RDONLY)
    try:
        return list(physical_lines(fd, start))
    finally:
        os.close(fd)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lines") / "file"


@given(
    data=st.lists(st.sampled_from([b"a", b"\n", b"bc", b"\r\n", b"\xff", b""]), max_size=40).map(b"".join),
    chunk=st.integers(1, 7),
)
def test_lines_are_those_of_a_split_whatever_the_chunk(scratch: Path, data: bytes, chunk: int) -> None:
    scratch.write_bytes(data)
    expected = data.split(b"\n")
    rest = expected.pop()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lines_module, "CHUNK", chunk)
        digest = PrefixDigest()
        found = _blocks(scratch, 0, digest)
        lines = _lines(scratch)
    assert [raw for raw, whole in lines if whole] == expected
    assert [raw for raw, whole in lines if not whole] == ([rest] if rest else [])
    offset = 0
    for after, block, whole in found:
        assert data[offset:after] == block + b"\n" * whole
        offset = after
    assert offset == len(data)
    assert digest.digest() == hashlib.sha256(data[: len(data) - len(rest)]).digest()


@given(st.lists(st.binary(max_size=30), max_size=10), st.data())
def test_the_digest_continues_over_several_scans(scratch: Path, parts: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(part.replace(b"\n", b"") + b"\n" for part in parts)
    cut = data.draw(st.integers(0, len(whole)))
    digest = PrefixDigest()
    scratch.write_bytes(whole[:cut])
    _blocks(scratch, 0, digest)
    digest.settle()
    covered = whole.rfind(b"\n", 0, cut) + 1
    assert digest.digest() == hashlib.sha256(whole[:covered]).digest()
    scratch.write_bytes(whole)
    _blocks(scratch, covered, digest)
    assert digest.digest() == hashlib.sha256(whole).digest()


def test_a_line_of_any_length_costs_bounded_memory(scratch: Path) -> None:
    with scratch.open("wb") as file:
        file.write(b"first\n")
        for _ in range(24):
            file.write(b"x" * (1 << 20))
        file.write(b"\nlast\n")
    import tracemalloc

    tracemalloc.start()
    lengths = [len(raw) for raw, _ in _lines(scratch)]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert lengths == [5, KEPT, 4]
    assert _blocks(scratch)[-1][0] == scratch.stat().st_size
    assert peak < 8 << 20


def test_a_scan_may_start_at_any_line(scratch: Path) -> None:
    scratch.write_bytes(b"one\ntwo\nthree")
    assert _lines(scratch, 4) == [(b"two", True), (b"three", False)]
    assert _blocks(scratch, 4) == [(8, b"two", True), (13, b"three", False)]
    assert _lines(scratch, 13) == []
