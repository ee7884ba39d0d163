"""Concepts as captures, compared with an independent reading (ledger spec §13 [D47] [D48])."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference import okf_model as model
from tests.support.ledgers import fresh

from troth.core.errors import Refused
from troth.knowledge.bundle import read_bundle
from troth.knowledge.concept import Concept
from troth.knowledge.ingest import ingest, plan
from troth.ledger.operations import Candidate

PATHS = ["a.md", "b.md", "deep/c.md", "deep/er/d.md", "e f.md".replace(" ", "-"), "index.md", "deep/log.md", "gone.md"]
some_paths = st.lists(st.sampled_from(PATHS), max_size=3)


@st.composite
def meanings(draw: st.DrawFn) -> dict[str, model.Meant]:
    chosen = draw(st.lists(st.sampled_from(PATHS[:5]), unique=True, max_size=4))
    return {
        path: model.Meant(
            path,
            relations=draw(st.dictionaries(st.sampled_from(list(model.TYPES)), some_paths.filter(bool), max_size=3)),
            links=draw(some_paths),
            cited=draw(some_paths),
            decay=draw(st.none() | st.integers(1, 400)),
            words=draw(st.sampled_from(["Words.", "Other words.", "A third text."])),
            relative=draw(st.booleans()),
        )
        for path in chosen
    }


@settings(max_examples=40, deadline=None)
@given(st.lists(meanings(), min_size=1, max_size=3))
def test_ids_keys_and_edges_are_those_of_the_model(versions: list[dict[str, model.Meant]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = fresh(Path(folder))
        expected = model.Ledger()
        for bundle in versions:
            concepts = [Concept(path, model.written(meant)) for path, meant in bundle.items()]
            planned = [item.outcome for item in plan("kb", concepts, store.read().state)]
            done = ingest(store, "kb", concepts, "human:reviewer")
            assert [item.outcome for item in done] == planned
            expected.ingest("kb", bundle)
            assert {item.outcome for item in ingest(store, "kb", concepts, "human:reviewer")} <= {"present"}
        rows = [row.value for row in store.read().rows]
        assert len(rows) == len(expected.rows)
        for row, (identifier, key, edges, decay) in zip(rows, expected.rows, strict=True):
            assert identifier is None or row["id"] == identifier
            assert row["source_key"] == key
            assert [(edge["type"], edge["targetId"]) for edge in row.get("relations", [])] == edges
            assert row.get("trust") == (None if decay is None else {"decayHalfLifeDays": decay})
            assert (row["payload"]["kind"], row["syncScope"]) == ("concept", "local")
        assert store.verify().ok
        store.close()


def test_declared_level_is_no_confidence(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    data = b"---\ntype: finding\ntags: [a, b]\nx-mentu: {trust: {level: 0.9, decay: 30}}\n---\nIt holds.\n"
    ingest(store, "kb", [Concept("a.md", data)], "human:reviewer")
    snapshot = store.read(trust=True)
    row = snapshot.rows[0].value
    assert row["trust"] == {"decayHalfLifeDays": 30}
    assert row["payload"]["tags"] == ["a", "b"]
    okf = row["payload"]["meta"]["okf"]
    assert okf["declared"] == {"trust_level": 0.9}
    assert okf["frontmatter"]["x-mentu"] == {"trust": {"level": 0.9, "decay": 30}}
    told = snapshot.trust.standing(row["id"])
    assert (told.asserted, told.half_life_days) == (0.5, 30)


def test_no_bundle_is_rejected(tmp_path: Path) -> None:
    """What has no type is untyped, an empty body is the path, and what no row can hold stops nothing else."""
    root = tmp_path / "kb"
    root.mkdir()
    (root / "blank.md").write_bytes(b"---\ntype: x\n---\n \n")
    (root / "broken.md").write_bytes(b"---\n[\n---\ntext\n")
    (root / "huge.md").write_bytes(b"\xc3\xa9" * (1 << 19))
    (root / "none.md").write_bytes(b"text \xff\x00\n")
    store = fresh(tmp_path / "w")
    done = ingest(store, "kb", list(read_bundle(root).concepts.values()), "human:reviewer")
    assert [(item.path, item.outcome, item.type) for item in done] == [
        ("blank.md", "added", "x"),
        ("broken.md", "added", "untyped"),
        ("huge.md", "refused", "untyped"),
        ("none.md", "added", "untyped"),
    ]
    bodies = [row.value["payload"]["body"] for row in store.read().rows]
    assert bodies == ["blank.md", "text\n", "text \ufffd\x00\n"]
    assert store.read().rows[1].value["payload"]["meta"]["okf"]["frontmatter"] is None


def test_only_ingest_may_write_its_relations(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    candidate = Candidate(
        "capture", "human:reviewer", {"body": "b"}, relations=[{"type": "okf_link", "targetId": "mem_12345678"}]
    )
    with pytest.raises(Refused, match="okf_link"):
        store.append(candidate)
    assert store.append(candidate, okf_ingest=True)["relations"][0]["type"] == "okf_link"
