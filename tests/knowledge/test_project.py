"""Projection: nothing of the source changes, everything of it can be recovered (ledger spec §13 [D49])."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.ledgers import fingerprint

import troth.knowledge.project as module
from troth.core.errors import DoesNotHold, Refused
from troth.knowledge.bundle import read_bundle
from troth.knowledge.concept import Concept
from troth.knowledge.frontmatter import read_yaml, split
from troth.knowledge.lint import lint
from troth.knowledge.project import Corpus, derived, project, projected, restore, restored

VECTORS = Path(__file__).parent / "vectors"
PIECES = [
    b"---\n", b"--- \r\n", b"...\n", b"---", b"\xef\xbb\xbf", b"\r\n", b"\r", b"\n", b"\n\n", b"\t", b"  ", b"   \n",
    b"# a comment\n", b"a: &x 1\n",
    b"b: *x\n", b"c: |\n  text\n", b"status: accepted\n", b"id: A 1\n", b"id: \"q\\n\"\n",
    b"parent: other\n", b"results: [other.md, gone]\n", b"title: 'it''s'\n", b"tags: [a, \"b: c\"]\n", b"\xc2\x85",
    b"\xe2\x80\xa8", b"\xff\xfe", b"\x00", b"x-source: |\n  old\n", b"```\n", b"# Head\n", b"[l](other.md)\n",
    b"## Citations\n", b"\xf0\x9f\x98\x80\n", b"\xef\xbf\xbf", b"\x7f", b"? [a]\n", b"%YAML 1.1\n", b"!!x y\n",
]  # fmt: skip
hostile = st.lists(st.sampled_from(PIECES) | st.binary(max_size=6), max_size=12).map(b"".join)
fronted = st.tuples(
    st.sampled_from([b"---\n", b"\xef\xbb\xbf---\r\n", b"--- \n"]), hostile, st.just(b"---\n"), hostile
).map(b"".join)
OTHER = Concept("d/other.md", b"---\nid: other\n---\n")


@settings(max_examples=250, deadline=None)
@given(hostile | fronted)
def test_what_was_projected_gives_the_original_back(data: bytes) -> None:
    concept = Concept("d/one.md", data)
    fields, cited, _ = derived(concept, Corpus({"d/one.md": concept, OTHER.path: OTHER}), "ns")
    out = projected(concept, fields, cited)
    assert restored(out) == data
    read = Concept("d/one.md", out)
    assert read.front.problem is None
    assert read.type == "d"
    assert split(out).body.startswith(concept.parts.body)


def test_text_stays_readable_and_all_else_is_base64() -> None:
    def encoding(data: bytes) -> object:
        concept = Concept("a.md", data)
        out = projected(concept, *derived(concept, Corpus({}), "n")[:2])
        return read_yaml(split(out).yaml or b"").values["x-source-encoding"]

    assert encoding(b"---\n# why\na: &x [1,   2]  \n\tb\n\n\n---\nbody") == "text"
    assert encoding("---\nname: \u00e9\U0001f600\n---\n".encode()) == "text"
    assert {encoding(b"---\r\na: 1\r\n---\r\n"), encoding(b"---\na: \xff\n---\n"), encoding(b"body\n")} == {"base64"}
    assert encoding("---\na: \u0085\u2028\n---\n".encode()) == "base64"


def test_every_field_is_derived() -> None:
    data = b"---\nid: RFC 7\nstatus: Verified\nparent: '[[base]]'\nresults: [runs/r 1.md, nowhere]\n---\nText"
    items = {path: Concept(path, b"") for path in ("design/base.md", "runs/r 1.md")} | {
        "design/x.md": Concept("design/x.md", data)
    }
    fields, cited, lost = derived(items["design/x.md"], Corpus(items), "My Notes")
    out = Concept("design/x.md", projected(items["design/x.md"], fields, cited))
    assert (out.type, out.profile.id, out.profile.level) == ("design", "my-notes:design.rfc-7", 0.8)
    assert (out.targets("extends"), out.targets("cites"), lost) == (["design/base.md"], ["runs/r 1.md"], ["nowhere"])
    assert not out.malformed
    for status, level in (("open", 0.5), ("draft", 0.5), ("rejected", 0.2), ("failed", 0.2), ("odd", None)):
        one = Concept("a.md", f"---\nstatus: {status}\n---\n".encode())
        done = Concept("a.md", projected(one, *derived(one, Corpus({}), "n")[:2]))
        assert done.profile.level == level


def test_a_corpus_and_back(tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    for number, data in enumerate(sorted(VECTORS.glob("*.md"))):
        (source / "sub" / f"{number}-{data.name}").write_bytes(data.read_bytes())
    (source / "crlf.md").write_bytes(b"\xef\xbb\xbf---\r\na: 1 # why\r\n---\r\n\tx \r\n")
    (source / "picture.png").write_bytes(b"\x89PNG\r\n")
    (source / "index.md").write_bytes(b"# Index\n[a](crlf.md)\n")
    (source / "link.md").symlink_to("crlf.md")
    before = fingerprint(source)
    done = project(source, tmp_path / "out")
    assert fingerprint(source) == before
    assert [gap.why for gap in done.skipped] == ["symlink"]
    assert not [finding for finding in lint(read_bundle(tmp_path / "out")) if finding.severity == "error"]
    assert restore(tmp_path / "out", tmp_path / "back") == (done.concepts + done.copied, done.digest)
    del before["link.md"]
    assert fingerprint(tmp_path / "back") == before


def test_where_a_projection_may_stand(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.md").write_text("text\n")
    (tmp_path / "inside").symlink_to(source)
    for bad in (source, source / "out", tmp_path, tmp_path / "inside" / "out"):
        with pytest.raises(Refused) as refusal:
            project(source, bad, force=True)
        assert refusal.value.code == "E_OKF_INSIDE"
    (tmp_path / "taken").mkdir()
    for force in (False, True):
        with pytest.raises(Refused) as refusal:
            project(source, tmp_path / "taken", force=force)
        assert refusal.value.code == "E_OKF_EXISTS"
    project(source, tmp_path / "out")
    with pytest.raises(Refused):
        project(source, tmp_path / "out")
    (source / "b.md").write_text("text\n")
    assert project(source, tmp_path / "out", force=True).concepts == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["inside", "out", "source", "taken"]


def test_a_source_that_changes_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "a.md").write_text("text\n")
    put = module.put

    def meddling(root: Path, path: str, data: bytes) -> None:
        put(root, path, data)
        (source / "a.md").write_text("other\n")

    monkeypatch.setattr(module, "put", meddling)
    with pytest.raises(DoesNotHold) as fault:
        project(source, tmp_path / "out")
    assert fault.value.code == "E_OKF_SOURCE_CHANGED"
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_changed_projection_is_told(tmp_path: Path) -> None:
    source, out = tmp_path / "source", tmp_path / "out"
    source.mkdir()
    (source / "a.md").write_text("---\nid: 1\n---\ntext\n")
    project(source, out)
    good = (out / "a.md").read_bytes()
    for bad in (good.replace(b"id: 1", b"id: 2"), good.replace(b"text\n", b"texT\n"), b"", good[:-1]):
        (out / "a.md").write_bytes(bad)
        with pytest.raises((Refused, DoesNotHold)) as fault:
            restore(out, tmp_path / "back")
        assert fault.value.code == "E_OKF_NOT_PROJECTED"
        assert not (tmp_path / "back").exists()
    (out / "a.md").write_bytes(good)
    assert restore(out, None)[0] == 1
    manifest = out / ".okf-projection.json"
    text = manifest.read_text()
    for broken in ("[", "{}", text.replace('"a.md"', '"../a.md"'), text.replace("true", "1")):
        manifest.write_text(broken)
        with pytest.raises(Refused):
            restore(out, tmp_path / "back")


@pytest.mark.slow
def test_the_markdown_of_this_machine_and_back(tmp_path: Path) -> None:
    """Other people's files: the project's own papers, and whatever the installed packages brought along."""
    source = tmp_path / "source"
    shutil.copytree(Path(__file__).parents[2] / "docs", source / "docs")
    for number, path in enumerate(sorted(Path(sys.prefix).rglob("*.md"))):
        shutil.copyfile(path, source / f"{number}-{path.name}")
    before = fingerprint(source)
    done = project(source, tmp_path / "out")
    assert done.concepts > 20
    assert fingerprint(source) == before
    restore(tmp_path / "out", tmp_path / "back")
    assert fingerprint(tmp_path / "back") == before


def test_many_tags_are_projected() -> None:
    concept = Concept("a.md", b"---\ntags: [" + b"a, " * 19_990 + b"a]\n---\n")
    out = projected(concept, *derived(concept, Corpus({}), "n")[:2])
    assert restored(out) == concept.data
