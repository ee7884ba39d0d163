"""The Merkle tree against the vectors of RFC 6962's reference log, a naive model, and its own proofs bent."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import merkle_model as model
from troth.ledger import merkle
from troth.ledger.merkle import (
    EMPTY_ROOT,
    Frontier,
    RangeRoots,
    consistency_ranges,
    extends,
    holds_leaf,
    inclusion_ranges,
    leaf_hash,
)

# The entries and roots that certificate transparency's own implementations are tested with.
ENTRIES = [
    bytes.fromhex(digits)
    for digits in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
ROOTS = [
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
PATH_0_OF_8 = [
    "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
    "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
    "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
]
LEAVES = [leaf_hash(entry) for entry in ENTRIES]


def _entries(count: int) -> list[bytes]:
    return [number.to_bytes(3, "big") for number in range(count)]


def _leaves(count: int) -> list[bytes]:
    return [leaf_hash(entry) for entry in _entries(count)]


def _path(leaves: list[bytes], ranges: list[merkle.Range]) -> list[bytes]:
    roots = RangeRoots(ranges)
    roots.extend(leaves)
    found = roots.roots()
    return [found[one] for one in ranges]


def test_the_published_roots() -> None:
    frontier = Frontier(range(9))
    frontier.extend(LEAVES)
    assert [frontier.roots[size].hex() for size in range(9)] == ROOTS
    assert ROOTS[0] == EMPTY_ROOT.hex()


def test_the_published_proof() -> None:
    path = _path(LEAVES, inclusion_ranges(0, 8))
    assert [node.hex() for node in path] == PATH_0_OF_8
    assert holds_leaf(LEAVES[0], 0, 8, path, bytes.fromhex(ROOTS[8]))


def test_every_proof_of_every_small_tree_is_the_definitions() -> None:
    entries, leaves = _entries(40), _leaves(40)
    for size in range(1, 41):
        root = model.mth(entries[:size])
        for index in range(size):
            path = _path(leaves, inclusion_ranges(index, size))
            assert path == model.path(index, entries[:size])
            assert holds_leaf(leaves[index], index, size, path, root)
        for old in range(1, size + 1):
            steps = _path(leaves, consistency_ranges(old, size))
            assert steps == model.proof(old, entries[:size])
            assert extends(old, model.mth(entries[:old]), size, root, steps)
        assert consistency_ranges(0, size) == []
        assert extends(0, EMPTY_ROOT, size, root, [])
        assert not extends(0, root, size, root, [])


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 700), max_size=6), st.sets(st.integers(0, 2000), max_size=5))
def test_a_stream_in_pieces_has_the_roots_of_the_whole(pieces: list[int], watch: set[int]) -> None:
    entries = _entries(sum(pieces))
    leaves = [leaf_hash(entry) for entry in entries]
    frontier = Frontier(watch)
    done = 0
    for piece in pieces:
        frontier.extend(leaves[done : done + piece])
        done += piece
        assert frontier.size == done
    assert frontier.root() == model.mth(entries)
    assert frontier.roots == {size: model.mth(entries[:size]) for size in watch if size <= done}


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_proofs_of_larger_trees(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 1500))
    entries = _entries(size)
    leaves = [leaf_hash(entry) for entry in entries]
    index = data.draw(st.integers(0, size - 1))
    old = data.draw(st.integers(1, size))
    ranges = inclusion_ranges(index, size)
    roots = RangeRoots(ranges)
    done = 0
    while done < size:
        piece = data.draw(st.integers(1, 600))
        roots.extend(leaves[done : done + piece])
        done += piece
    found = roots.roots()
    path = [found[one] for one in ranges]
    assert path == model.path(index, entries)
    root = model.mth(entries)
    assert holds_leaf(leaves[index], index, size, path, root)
    steps = _path(leaves, consistency_ranges(old, size))
    assert steps == model.proof(old, entries)
    assert extends(old, model.mth(entries[:old]), size, root, steps)


def test_a_proof_holds_for_no_other_leaf_place_size_or_root() -> None:
    entries, leaves = _entries(24), _leaves(24)
    accepted = refused = 0
    for size in (1, 2, 7, 8, 13, 24):
        root = model.mth(entries[:size])
        for index in range(size):
            path = model.path(index, entries[:size])
            for said_size in range(27):
                for said in range(-1, 27):
                    for leaf in {leaves[index], leaves[(index + 1) % 24]}:
                        holds = holds_leaf(leaf, said, said_size, path, root)
                        right = leaf == leaves[index] and model_says(entries[index], said, said_size, path) == root
                        assert holds == right
                        accepted += holds
                        refused += not holds
            for bent in (path[:-1], path[1:], [*path, root], [root, *path], path[::-1]):
                if bent != path:
                    assert not holds_leaf(leaves[index], index, size, bent, root)
    assert accepted >= 55
    assert refused > 10_000


def model_says(entry: bytes, index: int, size: int, path: list[bytes]) -> bytes | None:
    return model.root_from_path(entry, index, size, path) if 0 <= index < size else None


def test_a_consistency_proof_holds_for_nothing_else() -> None:
    entries = _entries(20)
    for size in range(1, 21):
        root = model.mth(entries[:size])
        for old in range(1, size + 1):
            old_root, steps = model.mth(entries[:old]), model.proof(old, entries[:size])
            assert extends(old, old_root, size, root, steps)
            other = bytes(32)
            assert not extends(old, other, size, root, steps)
            assert not extends(old, old_root, size, other, steps)
            assert not extends(old, old_root, size, root, [*steps, other])
            assert not extends(size + 1, old_root, size, root, steps)
            for at in range(len(steps)):
                assert not extends(old, old_root, size, root, [*steps[:at], other, *steps[at + 1 :]])
                assert not extends(old, old_root, size, root, [*steps[:at], *steps[at + 1 :]])


def test_a_consistency_proof_says_no_more_of_sizes_than_the_definition() -> None:
    """Sizes that share a shape share a proof (4 of 5 and 4 of 8, say): the signed sizes are what tells them apart."""
    entries = _entries(17)
    accepted = refused = 0
    for size in range(1, 18):
        root = model.mth(entries[:size])
        for old in range(1, size + 1):
            old_root, steps = model.mth(entries[:old]), model.proof(old, entries[:size])
            for said_size in range(1, 19):
                for said in range(1, said_size + 1):
                    holds = extends(said, old_root, said_size, root, steps)
                    assert holds == (model.roots_from_proof(said, said_size, old_root, steps) == (old_root, root))
                    accepted += holds
                    refused += not holds
    assert accepted >= 153
    assert refused > 10_000


def test_what_no_tree_has() -> None:
    for index, size in ((0, 0), (5, 5), (-1, 3)):
        with pytest.raises(ValueError, match="leaf"):
            inclusion_ranges(index, size)
    with pytest.raises(ValueError, match="larger"):
        consistency_ranges(3, 2)
    short = RangeRoots(inclusion_ranges(0, 4))
    short.extend(LEAVES[:3])
    with pytest.raises(ValueError, match="ended"):
        short.roots()


def test_memory_grows_with_the_logarithm_of_the_leaves() -> None:
    frontier = Frontier()
    for _ in range(256):
        frontier.extend(LEAVES * 32)
    assert frontier.size == 256 * 256
    assert len(frontier._peaks) == 1
    frontier.extend(LEAVES * 31)
    assert len(frontier._peaks) + len(frontier._tail) <= 16 + 256


@pytest.mark.slow
def test_a_million_leaves_pass_by_in_little_memory() -> None:
    import tracemalloc

    batch = _leaves(500)
    frontier, nodes = Frontier([777_777]), RangeRoots(inclusion_ranges(123_456, 1_000_000))
    tracemalloc.start()
    for _ in range(2000):
        frontier.extend(batch)
        nodes.extend(batch)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert frontier.size == 1_000_000
    assert peak < 1 << 20
    found = nodes.roots()
    path = [found[one] for one in inclusion_ranges(123_456, 1_000_000)]
    assert holds_leaf(batch[123_456 % 500], 123_456, 1_000_000, path, frontier.root())
