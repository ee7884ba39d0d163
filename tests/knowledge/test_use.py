"""The retrieval walk, fields that are set, twins (ledger spec §13)."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.ledgers import fresh

from troth.core.errors import Refused
from troth.knowledge.bundle import read_bundle
from troth.knowledge.concept import Concept
from troth.knowledge.edit import new_concept, set_field, with_field, write_concept
from troth.knowledge.frontmatter import read_yaml, split
from troth.knowledge.ingest import ingest
from troth.knowledge.query import Knowledge, ingested
from troth.knowledge.twin import check_twins, write_twins


def concept(path: str, text: str = "", **relations: list[str]) -> Concept:
    front = json.dumps({"type": "x", "x-mentu": {"relations": relations}})
    return Concept(path, f"---\n{front}\n---\n{text}".encode())


def a_bundle() -> dict[str, Concept]:
    concepts = [
        concept("top.md", "# Carts\nempty", extends=["/base.md", "/old.md", "/gone.md"]),
        concept("base.md", "# Base\n", extends=["/ground.md", "/top.md"]),
        concept("ground.md", "# Ground\n"),
        concept("old.md", "# Old carts\nempty\n", extends=["/beyond.md"]),
        concept("beyond.md"),
        concept("new.md", supersedes=["/old.md"]),
        concept("rule.md", constrains=["/ground.md"]),
        concept("scale.md", balances_with=["/elsewhere.md"]),
    ]
    return {item.path: item for item in concepts}


def test_foundations_in_superseded_dropped_tensions_shown() -> None:
    knowledge = Knowledge(a_bundle())
    walk = knowledge.walk("top.md")
    assert [(item.path, item.depth, item.missing) for item in walk.foundations] == [
        ("base.md", 1, False),
        ("gone.md", 1, True),
        ("ground.md", 2, False),
    ]
    assert walk.stale == {"old.md": ("new.md",)}
    assert [item.as_json() for item in walk.tensions] == [
        {"path": "rule.md", "how": "constrains", "other": "ground.md"}
    ]
    assert knowledge.walk("old.md").superseded_by == ("new.md",)
    assert knowledge.search("empty carts", 5) == [("top.md", 6)]
    assert knowledge.search("nothing like it", 5) == []
    with pytest.raises(Refused) as refusal:
        knowledge.walk("none.md")
    assert refusal.value.code == "E_OKF_NO_CONCEPT"


def test_the_ledger_gives_the_same_walk(tmp_path: Path) -> None:
    store, concepts = fresh(tmp_path), a_bundle()
    ingest(store, "kb", list(concepts.values()), "human:reviewer")
    concepts["top.md"] = concept("top.md", "# Carts\nempty again", extends=["/base.md"])
    ingest(store, "kb", list(concepts.values()), "human:reviewer")
    found = ingested(store.read().rows, None)
    assert list(found) == ["kb"]
    assert list(ingested(store.read().rows, "other")) == []
    for path in concepts:
        assert found["kb"].walk(path) == Knowledge(concepts).walk(path)
    assert found["kb"].find(found["kb"].ids["top.md"]) == "top.md"
    assert found["kb"].search("again", 1) == [("top.md", 1)]


names = st.sampled_from(["type", "title", "owner", "x-own"])
FRONTS = [
    "type: x\n",
    "# why\ntype:   'x'   # because\ntitle: &t a  b\nowner: *t\n",
    "type: x\r\ntitle: y # z\r\n",
    "title:\ntype: x\nx-own:\n  - 1\n",
    "{type: x, title: y}\n",
    "",
    "type: |\n  long\ntitle: >-\n  folded\n  too\n",
    "odd:    [1,\n  2]\ntype: x",
    'title: "a\\\n  b"\ntype: x\n\n\n# the end\n',
]


def same(one: bytes, other: bytes) -> int:
    """Return how many bytes two texts have in common from the start."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


@settings(max_examples=200, deadline=None)
@given(st.sampled_from(FRONTS), names, st.text(max_size=12), st.sampled_from([b"", b"text\n", b"---\n\xff"]))
def test_a_field_that_is_set_changes_nothing_else(front: str, name: str, value: str, body: bytes) -> None:
    data = b"---\n" + front.encode() + (b"" if front.endswith("\n") or not front else b"\n") + b"---\n" + body
    before = read_yaml(split(data).yaml or b"")
    try:
        changed = with_field(data, name, value)
    except Refused:
        return
    after = read_yaml(split(changed).yaml or b"")
    assert after.values == {**before.values, name: value}
    assert split(changed).body == body
    start = same(data, changed)
    end = same(data[start:][::-1], changed[start:][::-1])
    lost = data[start : len(data) - end]
    assert lost in front.encode().replace(b"#", b"\0"), "a comment was lost"
    if name not in before.values:
        assert lost == b""


def test_comments_stay_where_a_field_is_set() -> None:
    data = b"---\n# why\ntype:   'x'   # because\nx-own: {a: 1}\n---\nbody"
    assert with_field(data, "type", "y: z") == data.replace(b"'x'", b'"y: z"')
    assert with_field(data, "title", "New") == data.replace(b"}\n", b"}\ntitle: New\n")
    assert with_field(b"body", "type", "note") == b"---\ntype: note\n---\nbody"
    for bad, name in ((b"---\ntype: [\n---\n", "type"), (b"---\na: 1\n---\n", "a b"), (b"---\na: [1]\n---\n", "a")):
        with pytest.raises(Refused):
            with_field(bad, name, "x")


def test_a_new_concept(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "a.md"
    write_concept(path, new_concept("true", "A: title", ["b", "no"]))
    read = Concept("a.md", path.read_bytes())
    assert (read.type, read.title, read.tags) == ("true", "A: title", ["b", "no"])
    with pytest.raises(Refused) as refusal:
        write_concept(path, b"")
    assert refusal.value.code == "E_OKF_EXISTS"
    path.chmod(0o600)
    assert set_field(path, "type", "note")
    assert not set_field(path, "type", "note")
    assert path.stat().st_mode & 0o777 == 0o600


def test_twins(tmp_path: Path) -> None:
    def states() -> dict[str, str]:
        return {item.path: item.state for item in check_twins(read_bundle(tmp_path))}

    (tmp_path / "t").mkdir()
    (tmp_path / "a.md").write_text("---\ntype: x\nn: 1\n---\n# H\ntext\n## Schema\nmore\n")
    (tmp_path / "b.md").write_text("---\ntype: x\nx-mentu: {twin: t/b.twin.json}\n---\n")
    (tmp_path / "c.md").write_text("---\ntype: x\nx-mentu: {twin: ../c.twin.json}\n---\n")
    (tmp_path / "d.md").write_text("text\n")
    (tmp_path / "d.twin.json").write_text("{}")
    (tmp_path / "e.md").write_text("text\n")
    (tmp_path / "e.twin.json").symlink_to("a.md")
    assert states() == {"a.md": "missing", "b.md": "missing", "c.md": "outside", "d.md": "invalid", "e.md": "outside"}
    written = {item.path: item.state for item in write_twins(read_bundle(tmp_path))}
    assert written == {"a.md": "written", "b.md": "written", "c.md": "outside", "d.md": "invalid", "e.md": "outside"}
    twin = json.loads((tmp_path / "a.twin.json").read_text())
    assert twin["frontmatter"] == {"type": "x", "n": 1}
    assert [(part["title"], part["first_line"], part["last_line"]) for part in twin["sections"]] == [
        ("H", 5, 8),
        ("Schema", 7, 8),
    ]
    assert (tmp_path / "t" / "b.twin.json").is_file()
    assert (tmp_path / "d.twin.json").read_text() == "{}"
    (tmp_path / "a.md").write_text("---\ntype: y\n---\n")
    assert states()["a.md"] == "stale"
    (tmp_path / "b.md").write_bytes((tmp_path / "b.md").read_bytes())
    assert states()["b.md"] == "fresh"
    (tmp_path / "t" / "b.twin.json").write_text((tmp_path / "t" / "b.twin.json").read_text().replace('"x"', '"z"'))
    assert states()["b.md"] == "invalid"
