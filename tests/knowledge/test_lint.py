"""What lint says: one kind of error, everything else warns (ledger spec §13 [D46])."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import troth.knowledge.bundle as reading
from troth.core.errors import Refused
from troth.knowledge.bundle import read_bundle
from troth.knowledge.codes import ERRORS, FINDINGS
from troth.knowledge.concept import Concept
from troth.knowledge.frontmatter import read_yaml, split
from troth.knowledge.lint import lint
from troth.knowledge.profile import read_profile
from troth.knowledge.twin import twin_bytes


def codes(root: Path, files: dict[str, bytes], *types: str) -> list[tuple[str, str, int | None]]:
    for path, data in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(data)
    found = lint(read_bundle(root), types)
    return [(finding.file, finding.code, finding.line) for finding in found]


@pytest.mark.parametrize(
    ("front", "line"),
    [
        (b"title: x\n", 1),
        (b"title: x\ntype:\n", 3),
        (b"type: ''\n", 2),
        (b"type: '  '\n", 2),
        (b"type: []\n", 2),
        (b"", 1),
        (b"- a\n", 2),
        (b"a: 1\na: 2\n", 3),
        (b"a: [\n", 3),
        (b"a: \x01\n", 2),
    ],
)
def test_a_missing_or_empty_type_is_the_error(tmp_path: Path, front: bytes, line: int) -> None:
    found = codes(tmp_path, {"index.md": b"[a](a.md)\n", "a.md": b"---\n" + front + b"---\ntext\n"})
    assert [item[:2] for item in found] == [("a.md", "no_type")]
    assert found[0][2] in (line, 2)


@pytest.mark.parametrize("front", [b"type: x\n", b"type: x # why\n", b"type: >-\n  x\n", b"x-own: 1\ntype: x\n"])
def test_a_type_is_enough(tmp_path: Path, front: bytes) -> None:
    assert codes(tmp_path, {"index.md": b"[a](a.md)\n", "a.md": b"---\n" + front + b"---\ntext\n"}) == []


def test_everything_else_warns(tmp_path: Path) -> None:
    index = b"---\nokf_version: '9.9'\ntypes: [x]\n---\n" + b"".join(
        b"[l](%s.md)\n" % name for name in (b"a", b"b", b"c", b"d", b"e", b"f", b"g")
    )
    files = {
        "index.md": index,
        "a.md": b"text\n",
        "b.md": b"---\ntype: x\n",
        "c.md": b"---\ntype: y\nowner: z\n---\n[g](gone.md) [u](https://example.org/n.md) [o](../../out.md)\n",
        "d.md": b"---\ntype: 7\n---\n\xff\n",
        "e.md": b"---\ntype: x\nx-mentu:\n  stage: 6\n  relations:\n    extends: [/f.md]\n---\n",
        "f.md": b"---\ntype: x\n---\n## Citations\n- [n](never.md)\n",
        "g.md": b"x" * ((1 << 20) + 1),
        "sub/h.md": b"---\ntype: x\n---\n[self](h.md)\n",
    }
    (tmp_path / "l.md").symlink_to("a.md")
    os.mkfifo(tmp_path / "p.md")
    (tmp_path / os.fsdecode(b"\xff.md")).write_bytes(b"")
    deep = tmp_path.joinpath(*["n"] * 41)
    deep.mkdir(parents=True)
    found = codes(tmp_path, files)
    assert sorted(found, key=str) == sorted(
        [
            ("a.md", "no_frontmatter", 1),
            ("b.md", "unclosed_frontmatter", 1),
            ("c.md", "unknown_type", 2),
            ("c.md", "unknown_key", 3),
            ("c.md", "broken_link", 5),
            ("c.md", "link_escapes", 5),
            ("d.md", "not_utf8", None),
            ("d.md", "type_not_text", 2),
            ("e.md", "malformed_profile", 4),
            ("e.md", "no_back_reference", 6),
            ("f.md", "dangling_citation", 5),
            ("g.md", "too_large", None),
            ("index.md", "unknown_version", 2),
            ("l.md", "symlink", None),
            ("/".join("n" * 41), "too_deep", None),
            ("p.md", "not_regular", None),
            ("sub/h.md", "orphan", None),
            ("?.md", "odd_name", None),
        ],
        key=str,
    )
    assert [item[0] for item in found] == sorted(item[0] for item in found)
    assert {code for _, code, _ in found} == set(FINDINGS)
    assert not set(FINDINGS) & set(ERRORS)


def test_the_walk_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MAX_FILES", 2)
    for name in "ab":
        (tmp_path / name).write_text("")
    read_bundle(tmp_path)
    (tmp_path / "c").write_text("")
    with pytest.raises(Refused) as refusal:
        read_bundle(tmp_path)
    assert refusal.value.code == "E_OKF_LIMIT"
    for bad in (tmp_path / "gone", tmp_path / "a"):
        with pytest.raises(Refused) as refusal:
            read_bundle(bad)
        assert refusal.value.code == "E_OKF_FOLDER"
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "x.md").write_text("")


@pytest.mark.parametrize(
    ("profile", "good"),
    [
        ({"id": "team:decision.empty-cart"}, True),
        ({"id": "decision.empty-cart"}, False),
        ({"filename_dna": "shop-cart-decision--empty-cart--0007"}, True),
        ({"filename_dna": "empty-cart"}, False),
        ({"stage": 1}, True),
        ({"stage": 5}, True),
        ({"stage": 0}, False),
        ({"stage": True}, False),
        ({"trust": {"level": 0, "decay": 1}}, True),
        ({"trust": {"level": 1.0}}, True),
        ({"trust": {"level": 1.1}}, False),
        ({"trust": {"level": True}}, False),
        ({"trust": {"decay": 0}}, False),
        ({"trust": {"decay": 1.5}}, False),
        ({"trust": 1}, False),
        ({"relations": {"extends": ["/a.md"]}}, True),
        ({"relations": {"extends": "/a.md"}}, False),
        ({"relations": {"likes": ["/a.md"]}}, False),
        ({"relations": []}, False),
        ({"twin": "a.twin.json"}, True),
        ({"twin": "a.json"}, False),
        ({"other": 1}, False),
        ([], False),
        (None, True),
    ],
)
def test_the_profile(profile: object, good: bool) -> None:
    assert (read_profile({"x-mentu": profile})[1] == []) is good


def test_aliases_are_counted_each_time() -> None:
    bomb = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
        b"%c: &%c [%s]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(9)
    )
    assert "aliases" in (read_yaml(bomb).problem or "")
    assert read_yaml(b"a: &a [*a]\n").problem is not None
    assert read_yaml(b"[" * 3000).problem is not None
    assert read_yaml(b"a: &x [1, 2]\nb: *x\n").values == {"a": [1, 2], "b": [1, 2]}


def test_values_are_plain_and_dates_stay_as_written() -> None:
    text = b"d: 2020-01-02\nn: 12\nf: .5\nh: 0x1F\nb: true\nz: ~\ni: .inf\nl: 99999999999999999999\ns: '1'\n"
    expected = {"d": "2020-01-02", "n": 12, "f": 0.5, "h": "0x1F", "b": True, "z": None, "i": ".inf"}
    assert read_yaml(text).values == {**expected, "l": "99999999999999999999", "s": "1"}


PIECES = [
    b"---\n", b"...\n", b"type: x\n", b"a: [1]\n", b"# H\n", b"## Citations\n", b"[l](m.md)\n", b"\r\n", b": ", b"- ",
    b"x-mentu: {relations: {extends: [/b.md]}}\n", b"[r]: /q%20r.md\n", b"[r]\n", b"> ", b"```\n", b"&a *a\n",
]  # fmt: skip
ACCEPTED: list[bool] = []


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=14).map(b"".join), st.booleans())
def _read_anything(data: bytes, fronted: bool) -> None:
    data = b"---\ntype: x\n---\n" + data if fronted else data
    parts = split(data)
    assert parts.head + parts.body == data
    concept = Concept("d/a.md", data)
    assert concept.edges() == concept.edges()
    assert twin_bytes(concept) == twin_bytes(Concept("d/a.md", data))
    ACCEPTED.append(parts.yaml is not None and concept.front.problem is None)


def test_any_bytes_are_read_and_many_are_accepted() -> None:
    ACCEPTED.clear()
    _read_anything()
    assert sum(ACCEPTED) > len(ACCEPTED) / 20
    assert not all(ACCEPTED)


def test_where_links_lead() -> None:
    body = (
        b"---\ntype: x\n---\n# T\n[q](/c%20d.md#x) ![i](z.png) <https://e.org/a.md> [m](mailto:a@b) [f](#here)\n"
        b"```\n[no](no.md)\n```\n## Citations:\n- [c](../e.md?v=1)\n### Below\n[u]\n\n"
        b"## Next\n[o](./o.md)\n\n[u]: g.md\n"
    )
    concept = Concept("a/b.md", body)
    assert [(lead.how, lead.target, lead.line) for lead in concept.leads] == [
        ("cites", "e.md", 10),
        ("cites", "a/g.md", 12),
        ("link", "c d.md", 5),
        ("link", "a/o.md", 15),
    ]
    assert [section.title for section in concept.outline.sections] == ["T", "Citations:", "Below", "Next"]


def test_brackets_without_end_cost_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("troth.knowledge.frontmatter.compose", lambda _: pytest.fail("it was parsed"))
    assert read_yaml(b"a: " + b"[" * 5000).problem == "nested too deeply"
