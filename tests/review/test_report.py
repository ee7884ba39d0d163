"""Reports: the tally sums exactly, the course of each finding is told, and nothing that others wrote is markup."""

from __future__ import annotations

import base64
import copy
import hashlib
import html as entities
import itertools
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from review.documents import artifact, document, edited, files
from review.playing import came_to, go, played
from troth.review.artifact import Artifact
from troth.review.decisions import ruled, ruling_event
from troth.review.pages import escaped, html, markdown
from troth.review.report import About, Report, report, tally
from troth.review.run import Run, applied
from troth.review.shapes import FINAL_STATES

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)>", "</bdi></p></article><h1>Approved</h1>",
    "](javascript:alert(1)) [x](https://evil.example) ![i](https://evil.example/i.png)", "{{ 7*7 }}{% raw %}",
    "```\n# Approved\n```\n~~~", "https://evil.example www.evil.example <https://evil.example>", "| a | b |\n| - | - |",
    "\u001b[2Jgone \u202eesrever\u202c \u0000", "1. one\n- two\n> three\n=====\n***\n&lt;b&gt; &#60;i&#62;",
    "\" onmouseover=\"x\" '", "    code\n\ttab", "$x$ \\(y\\) :smile: ^up^ ~~gone~~ [^1] [ ] a\\",
)  # fmt: skip

ABOUT = About("scripted", "scripted:x", "m-1", "resolved", "undetermined", ("The host is not known.",))


def decided_run() -> tuple[Run, dict[str, Any], list[dict[str, Any]]]:
    run = played()
    after = ruled(
        came_to(run), "F005", question="Does it stand?", ruling="It does.", time="2026-03-02T09:00:00Z",
        actor="human:lead", channel="terminal",
    )  # fmt: skip
    return applied(run, ruling_event(run, after.line)), after.document, [after.line]


def of(run: Run, **more: Any) -> Report:
    return report(document("response"), came_to(run), artifact=artifact(), records=run.records, about=ABOUT, **more)


# --- the tally ---


def test_the_tally_counts_each_end() -> None:
    counted = tally(document("response"), came_to(played()))
    assert counted == (5, 1, 1, 1, 1, 1, 0, 0)
    _, after, _ = decided_run()
    assert tally(document("response"), after) == (5, 1, 1, 1, 1, 0, 1, 0)
    assert tally(document("response"), None) == (5, 0, 0, 0, 0, 0, 0, 5)
    assert counted.as_text().startswith("5 raised = 1 resolved by models + 1 accepted")


@given(st.lists(st.sampled_from([*FINAL_STATES, "decided", None]), min_size=5, max_size=5), st.booleans())
def test_the_tally_always_sums(ends: list[str | None], stray: bool) -> None:
    items: list[dict[str, Any]] = [
        {"finding_id": f"F00{number}", "state": "resolved", "escalation": {}}
        if end == "decided"
        else {"finding_id": f"F00{number}", "state": end}
        for number, end in enumerate(ends, 1)
        if end is not None
    ]
    if stray:
        items.append({"finding_id": "F999", "state": "accepted"})
    counted = tally(document("response"), {"items": items})
    assert counted.raised == 5 == sum(number for _, number in counted.rows())
    assert counted.not_reconciled == ends.count(None)
    assert counted.decided_by_operator == ends.count("decided")


# --- what is told ---


def test_a_report_tells_the_course_of_each_finding() -> None:
    run, after, lines = decided_run()
    told = report(document("response"), after, artifact=artifact(), records=run.records, decisions=lines, about=ABOUT)
    assert (told.outcome, told.success, told.open) == ("converged", True, ())
    head = dict(told.head)
    assert head["backend"] == "scripted"
    assert head["model"] == "m-1 (resolved)"
    assert head["independence"] == "undetermined"
    assert head["revision"].endswith(artifact().digest)
    withdrawn = told.findings[3]
    assert [step.role for step in withdrawn.steps][-2:] == ["reviewer", "host"]
    assert any("answered, withdraws: Right." in step.words for step in withdrawn.steps)
    last = told.findings[4]
    assert last.end == "decided_by_operator"
    assert last.resolution == "It does."
    (decision,) = last.decisions
    assert decision.actor == "human:lead"
    assert "Ruled: It does." in decision.words
    for text in (markdown(told), html(told)):
        for part in ("human:lead", "Ruled", "It does", "The host is not known", "saving is not backed"):
            assert part in text.replace("\\", "")


def test_open_questions_and_limits_are_told() -> None:
    told = of(played())
    assert [asked.id for asked in told.open] == ["F005"]
    assert (told.success, told.says) == (False, "A person must decide.")
    assert any("Not asked for: wording" in text for text in told.limits)
    assert "- F005: Does F005 stand?" in markdown(told)
    alone = report(document("response"))
    assert (alone.outcome, alone.success) == ("not reconciled", False)
    assert any("No finding was checked" in text for text in alone.limits)
    assert any("no review" in text for text in report(document("response"), about=About(raw=True)).limits)
    assert any(
        "no independent" in text for text in report(document("response"), about=About(tier="self_review")).limits
    )


@pytest.mark.parametrize("outcome", ["converged", "deadlocked", "incomplete", "failed"])
def test_nothing_but_converged_looks_like_a_success(outcome: str) -> None:
    failure = {"failure": {"code": "timeout", "message": "No answer."}} if outcome == "failed" else {}
    told = report(document("response"), {**came_to(played()), "outcome": outcome, **failure})
    assert told.success is (outcome == "converged")
    assert ('class="outcome good"' in html(told)) is told.success
    assert f"**{outcome}**" in markdown(told)


def test_an_anchor_that_leads_nowhere_is_flagged() -> None:
    review = edited(document("response"), {"set": {"$.findings[0].evidence[0].anchor.section": "Nowhere"}})
    told = report(review, artifact=artifact())
    assert told.findings[0].evidence[0].state == "unresolved"
    assert "section-in-artifact" in html(told)
    assert told.findings[1].evidence[0].passages


# --- nothing is markup ---


class Skeleton(HTMLParser):
    """The tags and attributes of a page, without its text."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[Any] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))

    def handle_endtag(self, tag: str) -> None:
        self.found.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        self.text.append(data)

    def handle_comment(self, data: str) -> None:
        self.found.append("comment")

    def handle_decl(self, decl: str) -> None:
        self.found.append(decl)

    def handle_pi(self, data: str) -> None:
        self.found.append("pi")


def skeleton(page: str) -> list[Any]:
    parser = Skeleton()
    parser.feed(page)
    parser.close()
    return parser.found


def tokens(text: str, preset: str) -> list[Any]:
    parser = MarkdownIt(preset)
    return [
        (token.type, [child.type for child in token.children if not child.type.startswith("text")])
        if token.children
        else token.type
        for token in parser.parse(text)
    ]


def filled(write: Callable[[str], str]) -> Report:
    """Return a report in which every text that others wrote is what ``write`` makes of its name."""
    run, after, lines = decided_run()
    review = document("response")
    review["findings"][1]["impact"] = "x"
    documents = (review, after, lines, [copy.deepcopy(dict(record)) for record in run.records])
    for value in documents:
        _fill(value, write)
    about = About(
        *(write(name) for name in ("backend", "endpoint", "model")), "requested", "undetermined", (write("n"),)
    )
    # Before the headings of a Markdown member an open fence would rightly hide them.
    members = {
        name: data + write(name).encode() if name.endswith(".md") else write(name).encode() + b"\n" + data
        for name, data in files().items()
    }
    return report(review, after, artifact=Artifact(members.items()), records=documents[3], decisions=lines, about=about)


_FREE = frozenset(
    {
        "claim", "observation", "recommendation", "impact", "category", "summary", "detail", "host_position",
        "reviewer_position", "resolution", "operator_question", "question", "ruling", "reason", "title", "author",
        "uri", "published_at", "position", "unverifiable", "actor", "locator", "review_id", "reconciliation_id",
    }
)  # fmt: skip


def _fill(value: Any, write: Callable[[str], str]) -> None:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name in _FREE and isinstance(inner, str):
                value[name] = write(name)
            elif name in ("limitations", "excluded", "assumptions"):
                value[name] = [write(f"{name}{number}") for number, _ in enumerate(inner)]
            else:
                _fill(inner, write)
    elif isinstance(value, list):
        for inner in value:
            _fill(inner, write)


@pytest.mark.parametrize("evil", HOSTILE)
def test_hostile_text_changes_no_structure(evil: str) -> None:
    lines = evil.count("\n")
    plain = filled(lambda name: "\n".join(["word"] * (lines + 1)) + f" {name}")
    bad = filled(lambda name: f"{evil} {name}")
    assert skeleton(html(bad)) == skeleton(html(plain))
    for preset in ("commonmark", "gfm-like"):
        assert tokens(markdown(bad), preset) == tokens(markdown(plain), preset)
    page = html(bad)
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page + markdown(bad))


def test_the_test_of_structure_can_fail() -> None:
    plain, bad = html(filled(lambda name: name)), html(filled(lambda name: f"<b>{name}"))
    assert skeleton(plain) == skeleton(bad)
    assert skeleton(plain) != skeleton(entities.unescape(bad))
    assert tokens("a <b>", "commonmark") != tokens("a b", "commonmark")


def test_the_policy_allows_nothing_but_the_pages_own_style() -> None:
    page = html(of(played()))
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    found = skeleton(page)
    names = {entry[0] for entry in found if isinstance(entry, tuple)}
    assert not names & {"script", "img", "iframe", "object", "embed", "link", "form", "input", "svg", "base"}
    attributes = set(itertools.chain.from_iterable(dict(entry[1]) for entry in found if isinstance(entry, tuple)))
    assert not any(name.startswith("on") or name in ("src", "style") for name in attributes)
    hrefs = [dict(entry[1])["href"] for entry in found if isinstance(entry, tuple) and "href" in dict(entry[1])]
    assert hrefs == ["#F005"]


@given(st.text(st.characters(exclude_categories=("Cs",)), max_size=40))
def test_escaped_text_reads_as_itself(text: str) -> None:
    wanted = " ".join(text.split())
    parser = MarkdownIt("commonmark")
    inline = [token for token in parser.parse(f"x {escaped(text)} x") if token.type == "inline"]
    shown = "".join(child.content for token in inline for child in token.children or ())
    assert " ".join(shown.replace("\ufffd", "\0").split()) == " ".join(f"x {wanted} x".split())


def test_a_host_may_not_be_left_out_of_the_course() -> None:
    run = go(played(), "F005", "resolved", {"question": "Q?", "ruling": "R."}, "operator")
    told = of(run)
    for finding in told.findings:
        assert len(finding.steps) == sum(record["finding_id"] == finding.id for record in run.records)
