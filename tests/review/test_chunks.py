"""Chunks: whole files of code, each once; no finding lost, made up or merged; what cannot have been seen is said."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from troth.core.errors import Refused
from troth.review.anchors import resolve
from troth.review.artifact import Artifact
from troth.review.chunks import STATEMENTS, Chunk, Plan, assembled, planned
from troth.review.pages import html, markdown
from troth.review.panel import unreviewed
from troth.review.report import report
from troth.review.run import begun, result
from troth.review.shapes import ARTIFACT_KINDS, SEVERITIES
from troth.review.validate import validate

FAILED = {"code": "timeout", "message": "No answer came."}
FILES = {"a.py": b"x = 1\ny = 2\n", "b.py": b"# Cost\nx = 1\n", "lib/c.py": b"z = 3\nx = 1\n"}


def plan(most: int = 20) -> Plan:
    return planned(Artifact(FILES.items()), "code", most)


def finding(number: int, anchor: dict[str, Any], severity: str = "low", claim: str = "It is wrong.") -> dict[str, Any]:
    return {
        "id": f"F{number:03d}", "severity": severity, "claim": claim, "recommendation": "Change it.",
        "confidence": "low",
        "evidence": [{"anchor": anchor, "observation": "See.", "grounding": "artifact_observed"}],
    }  # fmt: skip


def review(chunk: Chunk, findings: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    value = {
        "schema_version": "1.0", "review_id": f"rev-{chunk.id}", "summary": "Looked at.", "findings": findings,
        "artifact": {"kind": "code", "revision": chunk.artifact.revision},
        "assessment": "needs_attention" if findings else "approve", **more,
    }  # fmt: skip
    assert validate(json.dumps(value).encode(), artifact=chunk.artifact).violations == ()
    return value


def sound(value: dict[str, Any], whole: Artifact) -> None:
    assert validate(json.dumps(value).encode(), artifact=whole).violations == ()


# --- the plan ---


@pytest.mark.parametrize("kind", ARTIFACT_KINDS)
def test_only_code_is_cut(kind: str) -> None:
    if kind == "code":
        assert planned(Artifact(FILES.items()), kind).manifest()
        return
    with pytest.raises(Refused) as refused:
        planned(Artifact(FILES.items()), kind)
    assert refused.value.code == "E_CHUNKS_KIND"


def test_files_stay_whole() -> None:
    assert [chunk.members for chunk in plan().chunks] == [("a.py",), ("b.py",), ("lib/c.py",)]
    assert [chunk.members for chunk in plan(1000).chunks] == [("a.py", "b.py", "lib/c.py")]
    assert planned(Artifact([("a.py", b"12345")]), "code", 5).chunks[0].artifact.payload == b"12345"
    with pytest.raises(Refused) as refused:
        planned(Artifact([("a.py", b"123456")]), "code", 5)
    assert refused.value.code == "E_CHUNKS_PLAN"


@settings(deadline=None, max_examples=40)
@given(
    st.dictionaries(st.from_regex(r"[a-c]{1,3}(/[a-c]{1,2})?\.py", fullmatch=True), st.binary(max_size=40), min_size=1),
    st.integers(40, 200),
)
def test_every_member_is_in_exactly_one_chunk_and_fits(files: dict[str, bytes], most: int) -> None:
    whole = Artifact(files.items())
    held = planned(whole, "code", most)
    assert [(path, member.data) for chunk in held.chunks for path, member in chunk.artifact.members.items()] == [
        (path, member.data) for path, member in whole.members.items()
    ]
    assert all(len(chunk.artifact.payload) <= most for chunk in held.chunks)
    told = held.manifest()
    assert told["artifact"]["digest"] == f"sha256:{whole.digest}"
    assert [entry["digest"] for entry in told["chunks"]] == [f"sha256:{chunk.artifact.digest}" for chunk in held.chunks]
    assert sum(len(entry["members"]) for entry in told["chunks"]) == len(files)


# --- the parent ---


def test_the_parent_tells_what_was_not_seen() -> None:
    held = plan()
    reviews = {chunk.id: review(chunk, []) for chunk in held.chunks}
    reviews["c02"] = review(held.chunks[1], [], limitations=["a.py was not there."])
    value = assembled(held, reviews, review_id="whole")
    sound(value, held.artifact)
    assert value["assessment"] == "approve"
    assert value["artifact"]["revision"] == held.artifact.revision
    assert [set(entry) >= {"id", "members", "digest", "outcome"} for entry in value["extensions"]["chunks"]] == [
        True
    ] * 3
    assert value["limitations"] == [*STATEMENTS, "Seam of c02 (b.py): a.py was not there."]
    done = result(begun(value, held.artifact), "rec")
    assert done["outcome"] == "converged"
    told = report(value, done, artifact=held.artifact)
    assert told.members == ("c01 (a.py): approve", "c02 (b.py): approve", "c03 (lib/c.py): approve")
    for text in (markdown(told).replace("\\", ""), html(told)):
        for statement in value["limitations"]:
            assert statement in text


def test_what_a_chunks_reviewer_left_out_is_a_seam() -> None:
    held = plan()
    reviews = {chunk.id: review(chunk, []) for chunk in held.chunks}
    assert assembled(held, reviews, review_id="whole")["limitations"] == list(STATEMENTS)
    scope = {"excluded": ["Names."], "assumptions": ["It is called once."]}
    reviews["c02"] = review(held.chunks[1], [], scope=scope)
    value = assembled(held, reviews, review_id="whole")
    sound(value, held.artifact)
    assert value["limitations"][len(STATEMENTS) :] == [
        "Seam of c02 (b.py): Not asked for: Names.",
        "Seam of c02 (b.py): Assumed: It is called once.",
    ]


def test_a_finding_about_what_its_reviewer_did_not_see_is_named() -> None:
    held = plan()
    anchor = {"type": "file_range", "path": "b.py", "line_start": 1}
    entry = {"anchor": anchor, "observation": "It is odd.", "grounding": "artifact_observed"}
    raised = {"id": "F001", "severity": "low", "claim": "Odd.", "evidence": [entry], "recommendation": "Look.",
              "confidence": "low"}  # fmt: skip
    for number, told in ((1, []), (0, ["F001 points at what the reviewer of c01 did not see."])):
        reviews = {chunk.id: review(chunk, []) for chunk in held.chunks}
        chunk = held.chunks[number]
        reviews[chunk.id] = {**reviews[chunk.id], "assessment": "needs_attention", "findings": [raised]}
        value = assembled(held, reviews, review_id="whole")
        sound(value, held.artifact)
        assert value["limitations"][len(STATEMENTS) :] == told
        assert [one["evidence"][0]["anchor"] for one in value["findings"]] == [anchor]


def test_a_failed_chunk_is_named_and_the_run_incomplete() -> None:
    held = plan()
    first, second, third = held.chunks
    value = assembled(
        held, {first.id: review(first, []), third.id: review(third, [])}, {second.id: FAILED}, review_id="w"
    )
    sound(value, held.artifact)
    assert value["assessment"] == "unable_to_assess"
    (told,) = unreviewed(value)
    assert "c02" in told
    assert "b.py" in told
    done = result(begun(value, held.artifact), "rec")
    assert done["outcome"] == "incomplete"
    assert told in done["limitations"]
    found = review(first, [finding(1, {"type": "file_range", "path": "a.py"})])
    value = assembled(held, {first.id: found, third.id: review(third, [])}, {second.id: FAILED}, review_id="w")
    assert value["assessment"] == "needs_attention"
    assert len(unreviewed(value)) == 1
    unable = review(second, [], assessment="unable_to_assess", limitations=["No."])
    value = assembled(
        held, {first.id: review(first, []), second.id: unable, third.id: review(third, [])}, review_id="w"
    )
    assert value["assessment"] == "unable_to_assess"
    assert len(unreviewed(value)) == 1


def test_a_plan_and_its_reviews_fit_or_are_refused() -> None:
    held = plan()
    reviews = {chunk.id: review(chunk, []) for chunk in held.chunks}
    assert assembled(held, reviews, review_id="w")["findings"] == []
    lacking = {name: value for name, value in reviews.items() if name != "c02"}
    swapped = {**reviews, "c02": reviews["c01"]}
    for bad, failed in (
        (lacking, {}),
        (reviews, {"c02": FAILED}),
        ({**reviews, "c09": reviews["c01"]}, {}),
        (swapped, {}),
    ):
        with pytest.raises(Refused) as refused:
            assembled(held, bad, failed, review_id="w")
        assert refused.value.code == "E_CHUNKS_PLAN"


def test_an_anchor_means_the_same_place_in_the_whole() -> None:
    held = plan()
    third = held.chunks[2]
    anchors = [
        {"type": "text_quote", "quote": "x = 1", "occurrence": 1},
        {"type": "text_quote", "quote": "z = 3"},
        {"type": "generic", "locator": "there", "excerpt": "x = 1"},
        {"type": "file_range", "path": "lib/c.py", "line_start": 2, "line_end": 2},
        {"type": "section", "heading": "z = 3"},
    ]
    reviews = {chunk.id: review(chunk, []) for chunk in held.chunks}
    reviews[third.id] = review(third, [finding(number, anchor) for number, anchor in enumerate(anchors, 1)])
    value = assembled(held, reviews, review_id="w")
    sound(value, held.artifact)
    assert held.artifact.members["a.py"].data.startswith(b"x = 1")
    for entry, anchor in zip(value["findings"], anchors, strict=True):
        (place,) = resolve(entry["evidence"][0]["anchor"], held.artifact).spans
        (meant,) = resolve(anchor, third.artifact).spans
        assert place.path == meant.path == "lib/c.py"
        assert place.start <= meant.start <= meant.end <= place.end
    sources = value["extensions"]["chunk_sources"]
    assert [("anchors" in sources[entry["id"]]) for entry in value["findings"]] == [True, False, True, False, False]
    assert sources["F001"]["anchors"] == {"0": anchors[0]}
    assert value["findings"][0]["evidence"][0]["anchor"] == anchors[3] | {"type": "file_range"}


# --- the laws ---


@settings(deadline=None, max_examples=40)
@given(
    st.lists(
        st.one_of(st.none(), st.lists(st.sampled_from(SEVERITIES), max_size=3)), min_size=3, max_size=3,
    )
)  # fmt: skip
def test_the_laws_of_synthesis(raised: list[Any]) -> None:
    held = plan()
    reviews, failures = {}, {}
    for chunk, severities in zip(held.chunks, raised, strict=True):
        if severities is None:
            failures[chunk.id] = FAILED
            continue
        anchor = {"type": "file_range", "path": chunk.members[0], "line_start": 1}
        found = [finding(n, anchor, severity, f"{chunk.id} {n}") for n, severity in enumerate(severities, 1)]
        reviews[chunk.id] = review(chunk, found)
    value = assembled(held, reviews, failures, review_id="w")
    sound(value, held.artifact)
    sources = value["extensions"]["chunk_sources"]
    assert [entry["id"] for entry in value["findings"]] == list(sources)
    named = Counter((part["chunk"], part["finding_id"]) for part in sources.values())
    assert named == Counter((name, entry["id"]) for name, one in reviews.items() for entry in one["findings"])
    for entry in value["findings"]:
        source = sources[entry["id"]]
        (own,) = (one for one in reviews[source["chunk"]]["findings"] if one["id"] == source["finding_id"])
        assert {**entry, "id": own["id"]} == own
    order = [SEVERITIES.index(entry["severity"]) for entry in value["findings"]]
    assert order == sorted(order)
    wanted = "needs_attention" if value["findings"] else "unable_to_assess" if failures else "approve"
    assert value["assessment"] == wanted
    assert len(unreviewed(value)) == len(failures)
    assert (result(begun(value, held.artifact), "r")["outcome"] == "converged") == (wanted == "approve")
