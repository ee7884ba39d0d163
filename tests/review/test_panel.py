"""Panels: what may merge, and the laws of it: no finding lost, made up, or merged without the host's word."""

from __future__ import annotations

import copy
import itertools
import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from review.documents import artifact, document
from troth.core.canonical import record_bytes
from troth.core.errors import Refused
from troth.review.artifact import Artifact
from troth.review.pages import html, markdown
from troth.review.panel import MOST, Candidate, Seat, Source, candidates, merged, seating, unreviewed
from troth.review.report import report
from troth.review.run import begun, result
from troth.review.shapes import SEVERITIES
from troth.review.validate import validate

FAILED = {"code": "timeout", "message": "No answer came."}
ANCHORS = (
    {"type": "section", "heading": "Cost"},
    {"type": "section", "heading": "Risk"},
    {"type": "file_range", "path": "memo.md", "line_start": 1},
)


def finding(number: int, category: str | None, anchors: list[int], severity: str, claim: str) -> dict[str, Any]:
    return {
        "id": f"F{number:03d}", "severity": severity, "claim": claim, "recommendation": "Change it.",
        "confidence": "low", **({"category": category} if category else {}),
        "evidence": [
            {"anchor": ANCHORS[anchor], "observation": f"{claim}, at {anchor}", "grounding": "artifact_observed"}
            for anchor in anchors
        ],
    }  # fmt: skip


def review(name: str, findings: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "schema_version": "1.0", "review_id": f"rev-{name}", "summary": "Looked at.", "findings": findings,
        "artifact": {"kind": "decision", "revision": artifact().revision},
        "assessment": "needs_attention" if findings else "approve", **more,
    }  # fmt: skip


def seat(name: str, findings: list[dict[str, Any]] | None = None, provider: str | None = None, **more: Any) -> Seat:
    held = None if findings is None else review(name, findings, **more)
    return Seat(name, "scripted", "undetermined", provider, held, None if held is not None else FAILED)


def two() -> list[Seat]:
    return [
        seat("a", [finding(1, "cost", [0], "low", "A1"), finding(2, "risk", [1], "high", "A2")], "x.example"),
        seat("b", [finding(1, "cost", [0, 2], "critical", "B1"), finding(2, "cost", [1], "low", "B2")], "y.example"),
    ]


A1, A2, B1, B2 = Source("a", "F001"), Source("a", "F002"), Source("b", "F001"), Source("b", "F002")


def sound(value: dict[str, Any]) -> None:
    assert validate(json.dumps(value).encode(), artifact=artifact()).violations == ()


# --- who sits ---


def test_five_sit_and_the_others_are_named() -> None:
    names = [f"r{number}" for number in range(7)]
    held = seating(names)
    assert (len(held.kept), held.dropped) == (MOST, ("r5", "r6")) == (5, ("r5", "r6"))
    assert seating(names, 7).dropped == ()
    value = merged(two(), review_id="p", dropped=held.dropped)
    assert value["extensions"]["panel"]["dropped"] == ["r5", "r6"]
    assert sum("was not asked" in text for text in value["limitations"]) == 2
    for bad in ([], ["a"], ["a", "a"]):
        with pytest.raises(Refused):
            seating(bad)


# --- what may merge ---


def test_candidates_have_an_equal_category_and_an_identical_anchor() -> None:
    assert candidates(two()) == (Candidate(A1, B1),)
    nameless = copy.deepcopy(two())
    for held in nameless:
        for entry in held.review["findings"]:  # type: ignore[index]  # each has one
            entry.pop("category")
    assert candidates(nameless) == ()
    alone = seat("a", [finding(1, "cost", [0], "low", "A1"), finding(2, "cost", [0], "low", "A2")])
    assert candidates([alone, seat("b", [])]) == ()


def test_nothing_merges_unless_the_host_says_so() -> None:
    apart = merged(two(), review_id="p")
    assert [entry["claim"] for entry in apart["findings"]] == ["A1", "A2", "B1", "B2"]
    one = merged(two(), [(B1, A1)], review_id="p")
    assert [entry["id"] for entry in one["findings"]] == ["F001", "F002", "F003"]
    first = one["findings"][0]
    assert (first["severity"], first["claim"]) == ("critical", "B1")
    assert [entry["observation"] for entry in first["evidence"]] == ["A1, at 0", "B1, at 0", "B1, at 2"]
    held = one["extensions"]["panel"]
    assert [(part["seat"], part["claim"], part["severity"]) for part in held["sources"]["F001"]] == [
        ("a", "A1", "low"), ("b", "B1", "critical"),
    ]  # fmt: skip
    for value in (apart, one):
        sound(value)


@pytest.mark.parametrize("pair", [(A1, B2), (A2, B1), (A1, A2), (A1, Source("c", "F001")), (A1, A1)])
def test_what_never_merges(pair: tuple[Source, Source]) -> None:
    assert len(merged(two(), [(A1, B1)], review_id="p")["findings"]) == 3
    with pytest.raises(Refused) as refused:
        merged(two(), [pair], review_id="p")
    assert refused.value.code == "E_PANEL_MERGE"


def test_a_chain_of_confirmations_is_none() -> None:
    seats = [seat(name, [finding(1, "cost", [0], "low", name)]) for name in "abc"]
    a, b, c = (Source(name, "F001") for name in "abc")
    assert len(merged(seats, [(a, b), (b, c), (a, c)], review_id="p")["findings"]) == 1
    with pytest.raises(Refused) as refused:
        merged(seats, [(a, b), (b, c)], review_id="p")
    assert refused.value.detail == ["a:F001", "c:F001"]
    twice = [seats[0], seat("b", [finding(1, "cost", [0], "low", "b1"), finding(2, "cost", [0], "low", "b2")])]
    with pytest.raises(Refused):
        merged(twice, [(a, b), (a, Source("b", "F002"))], review_id="p")


# --- breadth ---


def test_agreement_is_breadth_and_no_tier_is_averaged() -> None:
    held = merged(two(), [(A1, B1)], review_id="p")["extensions"]["panel"]
    assert held["breadth"]["F001"]["reviewers"] == 2
    assert held["breadth"]["F001"]["providers"] == ["x.example", "y.example"]
    assert "not proof" in held["breadth"]["F001"]["means"]
    assert held["breadth"]["F002"]["means"] == "raised by one reviewer"
    assert [entry["tier"] for entry in held["seats"]] == ["undetermined"] * 2
    assert "tier" not in held
    same = [Seat(one.name, one.backend, one.tier, "x.example", one.review) for one in two()]
    told = merged(same, [(A1, B1)], review_id="p")
    assert told["extensions"]["panel"]["breadth"]["F001"]["means"].startswith("no corroboration")
    assert "no corroboration" in markdown(report(told))


def test_alternatives_travel_apart_and_unverified() -> None:
    seats = [seat("a", [], extensions={"alternatives": ["Rent instead."]}), seat("b", [])]
    value = merged(seats, review_id="p")
    assert value["extensions"]["panel"]["alternatives"] == [{"seat": "a", "text": "Rent instead.", "verified": False}]
    assert value["findings"] == []
    assert "Rent" not in json.dumps({**value, "extensions": {}})
    told = report(value)
    assert told.alternatives == ("a: Rent instead.",)
    assert told.members == ("a: scripted, undetermined, 0 findings", "b: scripted, undetermined, 0 findings")
    for text in (markdown(told).replace("\\", ""), html(told)):
        assert "Suggested instead, not verified" in text
        assert "a: Rent instead." in text
    evil = "<script>x</script> [x](javascript:x)"
    nasty = merged([seat(evil, [], extensions={"alternatives": [evil]}), seat("b")], review_id="p")
    assert "<script>" not in html(report(nasty)) + markdown(report(nasty)).replace("\\<", "")
    assert "b: scripted, undetermined, failed" in report(nasty).members
    assert report(document("response")).members == ()


# --- what is undone ---


@pytest.mark.parametrize(
    ("seats", "assessment", "undone"),
    [
        ([seat("a", []), seat("b", [])], "approve", 0),
        ([seat("a", []), seat("b")], "unable_to_assess", 1),
        ([*two(), seat("c")], "needs_attention", 1),
        ([*two(), seat("c", [], assessment="unable_to_assess", limitations=["No text."])], "needs_attention", 1),
        (two(), "needs_attention", 0),
    ],
)
def test_a_failed_member_makes_the_run_incomplete(seats: list[Seat], assessment: str, undone: int) -> None:
    value = merged(seats, review_id="p")
    sound(value)
    assert value["assessment"] == assessment
    assert len(unreviewed(value)) == undone
    document_ = result(begun(value, artifact()), "rec")
    wanted = "incomplete" if undone or value["findings"] else "converged"
    assert document_["outcome"] == wanted
    for text in unreviewed(value):
        assert text in document_["limitations"]


SCOPE = {"requested": ["All."], "excluded": ["The annex."], "assumptions": ["Prices hold."]}


def test_what_a_member_left_out_or_took_for_granted_is_not_lost() -> None:
    value = merged([seat("a", []), seat("b", [], scope=SCOPE)], review_id="p")
    sound(value)
    assert value["limitations"][1:] == ["b: Not asked for: The annex.", "b: Assumed: Prices hold."]
    assert merged([seat("a", []), seat("b", [])], review_id="p")["limitations"] == value["limitations"][:1]


def test_no_answer_and_other_artifacts_are_no_panel() -> None:
    other = copy.deepcopy(two())
    other[1].review["artifact"]["revision"] = Artifact([("a", b"b")]).revision  # type: ignore[index]  # it has one
    for seats in ([seat("a"), seat("b")], other, two()[:1], [two()[0], two()[0]]):
        with pytest.raises(Refused) as refused:
            merged(seats, review_id="p")
        assert refused.value.code == "E_PANEL_SEATS"


def test_a_reviewer_cannot_pass_for_a_panel() -> None:
    fake = {"seats": [{"outcome": "failed", "seat": "x"}, 7], "breadth": {"F001": {"reviewers": 9, "of": 9}}}
    value = document("response")
    value["extensions"] = {"panel": fake, "chunks": [{"outcome": "failed"}, "x"]}
    assert unreviewed(value) == ()
    assert report(value).findings[0].breadth is None
    value["producer"]["backend"] = "panel"
    assert len(unreviewed(value)) == 1
    value["extensions"]["panel"] = {"seats": "x", "breadth": ["F001"]}
    assert unreviewed(value) == ()
    assert report(value).findings[0].breadth is None


# --- the laws ---

FINDINGS = st.lists(
    st.tuples(
        st.sampled_from([None, "cost", "risk"]),
        st.lists(st.sampled_from([0, 1, 2]), min_size=1, max_size=2),
        st.sampled_from(SEVERITIES),
    ),
    max_size=3,
)


@settings(suppress_health_check=[HealthCheck.filter_too_much], deadline=None, max_examples=80)
@given(st.lists(st.one_of(st.none(), FINDINGS), min_size=2, max_size=4), st.data())
def test_the_laws_of_merging(panel: list[Any], data: st.DataObject) -> None:
    seats = [
        seat(
            f"s{number}",
            None if held is None else [finding(n, *entry, f"s{number} claims {n}") for n, entry in enumerate(held, 1)],
        )
        for number, held in enumerate(panel)
    ]
    assume(any(one.review is not None for one in seats))
    possible = list(candidates(seats))
    confirmed = data.draw(st.lists(st.sampled_from(possible), unique=True)) if possible else []
    originals = {
        Source(one.name, entry["id"]): entry
        for one in seats
        if one.review is not None
        for entry in one.review["findings"]
    }
    before = copy.deepcopy(seats)
    pairs = {frozenset(pair) for pair in confirmed}
    try:
        value = merged(seats, confirmed, review_id="p")
    except Refused as refused:
        one, other = (Source.parse(text) for text in refused.detail)
        assert frozenset((one, other)) not in pairs
        return
    assert seats == before
    sound(value)
    sources = {name: [Source(part["seat"], part["finding_id"]) for part in held]
               for name, held in value["extensions"]["panel"]["sources"].items()}  # fmt: skip
    assert Counter(itertools.chain.from_iterable(sources.values())) == Counter(list(originals))
    assert [entry["id"] for entry in value["findings"]] == list(sources)
    for entry in value["findings"]:
        group = [originals[source] for source in sources[entry["id"]]]
        for pair in itertools.combinations(sources[entry["id"]], 2):
            assert frozenset(pair) in pairs
        wanted = Counter(record_bytes(part) for one in group for part in one["evidence"])
        assert Counter(record_bytes(part) for part in entry["evidence"]) == wanted
        assert entry["severity"] == min((one["severity"] for one in group), key=SEVERITIES.index)
        assert entry["claim"] in [one["claim"] for one in group]
        assert {one.get("category") for one in group} == {entry.get("category")}
