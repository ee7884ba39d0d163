"""Anchors in the exact bytes: lines, quotes, sections, digests, pointers; and what `show` makes of them."""

from __future__ import annotations

import random
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference import review_anchors as model
from troth.core.errors import Refused
from troth.review.anchors import pointed, resolve
from troth.review.artifact import Artifact, is_member_path
from troth.review.context import MOST_LINES, shown
from troth.review.paths import followed
from troth.review.sections import headings


def of(**members: bytes) -> Artifact:
    return Artifact((name.replace("__", "."), data) for name, data in members.items())


def rules(anchor: dict[str, Any], artifact: Artifact) -> list[str]:
    return [fault.rule for fault in resolve(anchor, artifact).faults]


def text_of(anchor: dict[str, Any], artifact: Artifact) -> list[str]:
    return [(artifact.members[s.path].text or "")[s.start : s.end] for s in resolve(anchor, artifact).spans]


def digest(text: str) -> str:
    return "sha256:" + sha256(text.encode()).hexdigest()


# --- the artifact ---


def test_a_single_member_is_its_bytes_and_several_are_framed() -> None:
    assert of(a=b"x\r\n").payload == b"x\r\n"
    both = of(b=b"two", a=b"one\n")
    assert both.payload == b"--- impasse-file 4 a\none\n\n--- impasse-file 3 b\ntwo\n"
    assert both.digest == sha256(both.payload).hexdigest()
    assert list(Artifact([("\uffee", b""), ("\U00010000", b""), ("z", b"")]).members) == ["z", "\uffee", "\U00010000"]


@pytest.mark.parametrize("path", ["", "/a", "a/", "a//b", "./a", "../a", "a/..", "a\0b", "\ud800"])
def test_paths_that_name_no_member(path: str) -> None:
    with pytest.raises(Refused):
        Artifact([(path, b"")])
    assert is_member_path("a/b.c/..d/.e")


def test_an_artifact_has_members_each_once() -> None:
    for members in ([], [("a", b""), ("a", b"")]):
        with pytest.raises(Refused) as refused:
            Artifact(members)
        assert refused.value.code == "E_ARTIFACT_MEMBER"


# --- lines ---


@pytest.mark.parametrize(
    ("data", "count"),
    [(b"", 0), (b"\n", 1), (b"a", 1), (b"a\n", 1), (b"a\n\n", 2), (b"a\r\nb", 2), (b"a\rb", 1), (b"a\x0bb\x85", 0)],
)
def test_lines_end_at_lf(data: bytes, count: int) -> None:
    artifact = of(a=data)
    for line in range(1, 4):
        anchor = {"type": "file_range", "path": "a", "line_start": line}
        assert rules(anchor, artifact) == ([] if line <= count else ["line-in-file"])


def test_a_range_is_its_lines() -> None:
    artifact = of(a=b"one\r\ntwo\nthree")
    anchor = {"type": "file_range", "path": "a", "line_start": 2, "line_end": 3}
    assert text_of(anchor, artifact) == ["two\nthree"]
    assert text_of({"type": "file_range", "path": "a", "line_start": 1}, artifact) == ["one\n"]
    assert text_of({"type": "file_range", "path": "a", "symbol": "ne\r\nt"}, artifact) == ["ne\nt"]


# --- sections ---

MARKDOWN = """# Top #
intro
## Sub **bold**
text

### Deep
deep
## Next
end
```
## Code
```
> ## Quoted
####### seven
Set
---
last
"""


def test_sections_of_markdown() -> None:
    artifact = of(m__md=MARKDOWN.encode())
    found = [heading.text for heading in headings(MARKDOWN)]
    assert found == ["Top", "Sub **bold**", "Deep", "Next", "Quoted"]
    section = {"type": "section", "heading": "Sub **bold**"}
    assert text_of(section, artifact) == ["text\n\n### Deep\ndeep\n"]
    assert text_of({**section, "heading": "Deep"}, artifact) == ["deep\n"]
    for heading in ("Code", "top", "intro", "Set", "Sub bold"):
        assert rules({**section, "heading": heading}, artifact) == ["section-in-artifact"]


def test_sections_of_plain_text_and_of_the_first_member() -> None:
    artifact = of(b__txt=b"Head\nrest b\n", a__txt=b"x\n  Head \r\nrest a\nHead\nmore")
    assert text_of({"type": "section", "heading": "Head"}, artifact) == ["rest a\nHead\nmore"]
    assert text_of({"type": "section", "heading": "Head", "path": "b.txt"}, artifact) == ["rest b\n"]
    assert rules({"type": "section", "heading": " Head", "path": "b.txt"}, artifact) == ["section-in-artifact"]
    assert rules({"type": "section", "heading": "head"}, artifact) == ["section-in-artifact"]
    assert text_of({"type": "section", "heading": "more", "path": "a.txt"}, artifact) == [""]


# --- quotes and digests ---


def test_quotes_count_without_overlap_and_across_members_in_order() -> None:
    artifact = of(b=b"aa", a=b"aaaa\r\naaa")
    quote = {"type": "text_quote", "quote": "aa"}
    assert len(text_of(quote, artifact)) == 4
    for occurrence in range(1, 6):
        told = rules({**quote, "occurrence": occurrence}, artifact)
        assert told == ([] if occurrence <= 4 else ["quote-occurrence"])
    assert rules({**quote, "quote": "a\r\na"}, artifact) == []
    assert rules({**quote, "quote": "a aa"}, artifact) == ["quote-in-artifact"]
    assert rules({**quote, "quote": "A"}, artifact) == ["quote-in-artifact"]


def test_a_quote_is_held_to_its_section() -> None:
    artifact = of(m__md=b"# A\nx\n## B\ny\n# C\nz\nx\n")
    for section, quote, good in (("A", "y", True), ("B", "x", False), ("C", "x", True), ("A", "z", False)):
        anchor = {"type": "text_quote", "quote": quote, "section": section}
        assert rules(anchor, artifact) == ([] if good else ["quote-in-artifact"])


@pytest.mark.parametrize(
    ("text", "good"),
    [("a\r\nb\r\n\r\nc\r\n", True), ("a\nb\n\nc\n", True), ("a", True), ("a\nb", True), ("c", True), ("a\nb\n", False),
     ("b\n\nc", False), ("x", False)],
)  # fmt: skip
def test_digests_of_members_lines_and_paragraphs(text: str, good: bool) -> None:
    artifact = of(a=b"a\r\nb\r\n\r\nc\r\n")
    told = rules({"type": "text_quote", "digest": digest(text).upper().replace("SHA256", "sha256")}, artifact)
    assert told == ([] if good else ["digest-in-artifact"])


def test_digests_of_sections_and_within_them() -> None:
    artifact = of(m__md=b"# A\n\none\ntwo\n\n# B\none\n")
    for text in ("\none\ntwo\n\n", "one\ntwo", "one"):
        assert rules({"type": "text_quote", "digest": digest(text)}, artifact) == []
    within = {"type": "text_quote", "digest": digest("two"), "section": "B"}
    assert rules(within, artifact) == ["digest-in-artifact"]
    assert rules({**within, "section": "A"}, artifact) == []
    twice = {"type": "text_quote", "digest": digest("one"), "occurrence": 2}
    assert rules(twice, artifact) == []
    assert rules({**twice, "occurrence": 3}, artifact) == ["quote-occurrence"]


def test_what_is_no_text_holds_no_text() -> None:
    artifact = of(a=b"\xffquote")
    assert rules({"type": "text_quote", "quote": "quote"}, artifact) == ["quote-in-artifact"]
    assert rules({"type": "file_range", "path": "a", "line_start": 1}, artifact) == ["line-in-file"]
    assert rules({"type": "text_quote", "digest": "sha256:" + sha256(b"\xffquote").hexdigest()}, artifact) == []


# --- pointers ---


@pytest.mark.parametrize(
    ("pointer", "value"),
    [("", {"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, "01": 2}), ("/foo/0", "bar"), ("/", 0), ("/a~1b", 1),
     ("/m~0n", 8), ("/01", 2)],
)  # fmt: skip
def test_pointers_lead_as_rfc_6901_says(pointer: str, value: Any) -> None:
    document = {"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, "01": 2}
    assert pointed(pointer, document) == value


@pytest.mark.parametrize("pointer", ["/foo/-", "/foo/00", "/foo/2", "/foo/-1", "/foo/0/x", "foo", "/m~n", "/m~2", "/x"])
def test_pointers_that_lead_nowhere(pointer: str) -> None:
    with pytest.raises(LookupError):
        pointed(pointer, {"foo": ["bar", "baz"], "m~n": 8})


def test_a_pointer_needs_a_member_that_is_json() -> None:
    anchor = {"type": "structured_path", "pointer": "/x"}
    assert rules(anchor, of(a=b"no json", b=b'{"x": null}')) == []
    for data in (b"no json", b'{"x": NaN}', b"[" * 100_000, b"\xff", b'{"y": 1}'):
        assert rules(anchor, of(a=data)) == ["pointer-resolves"]


@pytest.mark.parametrize(
    ("kind", "pointer", "value"),
    [("yaml_path", "hosts[1].name", "b"), ("field_path", "$.hosts[0]['name']", "a"),
     ("yaml_path", "/hosts/1/name", "b"), ("xpath", "//host[2]/@name", ["y"]),
     ("xpath", "count(//host)", [2.0]), ("xpath", "//host[1]", ['<host name="x" />']),
     ("yaml_path", "hosts[2]", None), ("yaml_path", "hosts.name", None), ("yaml_path", "hosts[1].name.x", None),
     ("xpath", "//nothing", None), ("xpath", "//[", None), ("xpath", "for $i in 1 to 9 return $i", None),
     ("xpath", "doc('a.xml')", None), ("yaml_path", "a b]", None)],
)  # fmt: skip
def test_paths_of_other_formats_are_followed_and_not_judged(kind: str, pointer: str, value: Any) -> None:
    artifact = of(a__xml=b'<l><host name="x"/><host name="y"/></l>', b__yaml=b"hosts:\n- name: a\n- name: b\n")
    anchor = {"type": "structured_path", "pointer": pointer, "format": kind}
    assert rules(anchor, artifact) == []
    assert resolve(anchor, artifact).unchecked
    found = followed(anchor, artifact)
    assert (found[1] if found else None) == value
    assert shown(anchor, artifact).state == "unchecked"


def test_what_could_grow_without_bound_is_not_followed() -> None:
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
    assert followed({"pointer": "/x", "format": "xpath"}, of(a=bomb)) is None
    assert followed({"pointer": "b[0]", "format": "yaml_path"}, of(a=b"a: &x [1]\nb: [*x]\n")) is None
    assert followed({"pointer": "b[0]", "format": "yaml_path"}, of(a=b"a: &-x [1]\nb: [*-x ]\n")) is None
    assert followed({"pointer": "x" * 2000, "format": "yaml_path"}, of(a=b"x: 1")) is None
    assert followed({"pointer": "a", "format": "yaml_path"}, of(a=b"a: " + b"[" * 200 + b"]" * 200)) is None
    many = of(a=b"<a>" + b"<b/>" * 300 + b"</a>")
    assert followed({"pointer": "count(//b)", "format": "xpath"}, many) == ("a", [300.0])
    assert followed({"pointer": "//*[//*[//*]]", "format": "xpath"}, many) is None


def test_keys_that_are_no_texts_are_shown_as_texts() -> None:
    artifact = of(a=b'a: {2026-01-01: 1, ? [2, 3] : 4}\nb: "\\ud800"\n')
    for pointer, value in (("a", '{"2026-01-01": 1, "(2, 3)": 4}'), ("b", '"\\ud800"')):
        found = shown({"type": "structured_path", "pointer": pointer, "format": "yaml_path"}, artifact)
        assert found.value == f"a: {value}"


# --- what is shown ---


def test_a_place_is_shown_with_what_stands_around_it() -> None:
    artifact = of(a="\n".join(str(number) for number in range(1, 101)).encode())
    told = shown({"type": "file_range", "path": "a", "line_start": 50}, artifact)
    (place,) = told.passages
    assert [(line.number, line.anchored) for line in place.lines] == [
        (48, False), (49, False), (50, True), (51, False), (52, False),
    ]  # fmt: skip
    whole = shown({"type": "file_range", "path": "a"}, artifact).passages[0]
    assert len(whole.lines) == MOST_LINES
    assert whole.left_out == 100 - MOST_LINES
    assert shown({"type": "generic", "locator": "x"}, artifact).state == "unchecked"
    lost = shown({"type": "generic", "locator": "x", "excerpt": "nowhere"}, artifact)
    assert (lost.state, [fault.rule for fault in lost.faults]) == ("unresolved", ["excerpt-in-artifact"])


# --- random anchors against an independent reading ---

WORDS = ["a", "b", "aa", "# a", "## b", "\n", "\n\n", "\r\n", "a\n", "x", " ", "#", "é"]
COUNTS = {True: 0, False: 0}


def random_anchor(chance: random.Random) -> dict[str, Any]:
    word = chance.choice(["a", "b", "aa", "a\nb", "x", "a\r\n", "é", "# a"])
    anchor: dict[str, Any]
    match chance.randrange(4):
        case 0:
            anchor = {"type": "file_range", "path": chance.choice(["a", "b", "c"])}
            if chance.random() < 0.7:
                anchor["line_start"] = chance.randrange(1, 5)
                if chance.random() < 0.5:
                    anchor["line_end"] = anchor["line_start"] + chance.randrange(3)
            if chance.random() < 0.3:
                anchor["symbol"] = word
        case 1:
            anchor = {"type": "text_quote", "quote": word}
            if chance.random() < 0.4:
                anchor["section"] = chance.choice(["a", "b", "x"])
            if chance.random() < 0.4:
                anchor["occurrence"] = chance.randrange(1, 4)
        case 2:
            anchor = {"type": "section", "heading": chance.choice(["a", "b", "x", "aa"])}
            if chance.random() < 0.4:
                anchor["path"] = chance.choice(["a", "b", "c"])
        case _:
            anchor = {"type": "generic", "locator": "l", "excerpt": word}
    return anchor


@settings(max_examples=150, deadline=None)
@given(st.integers(min_value=0, max_value=2**48))
def test_both_readings_of_anchors_agree(seed: int) -> None:
    chance = random.Random(seed)
    members = {name: "".join(chance.choice(WORDS) for _ in range(chance.randrange(10))).encode() for name in ("a", "b")}
    for _ in range(10):
        anchor = random_anchor(chance)
        mine = rules(anchor, Artifact(members.items()))
        assert mine == model.broken(anchor, members), (anchor, members)
        COUNTS[not mine] += 1


def test_both_verdicts_of_anchors_occurred() -> None:
    print(f"anchors: resolved {COUNTS[True]} of {sum(COUNTS.values())}")
    assert COUNTS[True] > 0
    assert COUNTS[False] > 0
