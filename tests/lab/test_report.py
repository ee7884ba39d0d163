"""A report's files: what they say, that they say it in the same bytes, and that nothing in them runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from lab import telling
from lab.telling import hostile_files, report, small
from troth.deals.codes import LABELS, NON_CLAIMS
from troth.lab.inference import infer
from troth.lab.measures import Criterion, Mean, Rate, Rule
from troth.lab.report import command_of, report_files, report_value
from troth.lab.statistics import wilson

HARMLESS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "a", "strong", "ul", "ol", "li", "div",
    "table", "caption", "thead", "tbody", "tr", "th", "td", "span", "br", "figure", "figcaption", "img", "pre",
    "section",
}  # fmt: skip


class Page(HTMLParser):
    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.said = ""
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.said += data


@pytest.fixture
def files() -> dict[str, bytes]:
    return telling.files()


def test_the_files(files: dict[str, bytes]) -> None:
    names = ["differences", "dose", "points-a-deal", "share-of-deals"]
    plots = sorted(f"plots/{name}.{kind}" for name in names for kind in ("svg", "png"))
    assert sorted(files) == sorted([*plots, "report.html", "report.json"])
    assert json.loads(files["report.json"])["plots"] == plots


def test_the_json_says_counts_estimates_and_how(files: dict[str, bytes]) -> None:
    value = json.loads(files["report.json"])
    assert value["labels"] == list(LABELS)
    assert value["non_claims"]["claims"] == list(NON_CLAIMS)
    (suite,) = value["suites"]
    cash = suite["arms"][0]["measures"][0]
    found = wilson(Rate(120, 200))
    assert (cash["k"], cash["n"], cash["value"], cash["method"]) == (120, 200, 0.6, "Wilson score")
    assert (cash["low"], cash["high"]) == pytest.approx((found.low, found.high), rel=1e-9)
    assert cash["truth_inside"] is True
    assert suite["family"]["correction"] == "holm"
    assert suite["family"]["comparisons"] == 3
    first = suite["comparisons"][0]
    assert first["counts"] == {"b": 50, "c": 20, "both": 70, "neither": 60}
    assert first["test"] == "McNemar, exact"
    assert first["adjusted_p"] == max(first["p"], 2 * suite["comparisons"][1]["p"])  # Holm: no less than the one before
    assert (suite["command"], suite["seed"]) == ("A sentence. --rule cash", 7)
    assert value["falsification"]["word"] == "keep"
    assert value["falsification"]["rule"]["sha256"] == infer(report()).decision.digest  # type: ignore[union-attr]  # a rule is there
    assert [one["holds"] for one in suite["demands"]] == [True, False]
    assert suite["truths"] == {"known": 3, "outside": 0}
    assert report_value(infer(report())) == {name: part for name, part in value.items() if name != "plots"}


def test_the_page_shows_what_the_json_says(files: dict[str, bytes]) -> None:
    page = Page(files["report.html"])
    assert page.open == []
    for text in (
        "120 of 200", "0.6", "0.5308 to 0.6654", "0.6 inside", "Wilson score", "BCa bootstrap, 9999 resamples",
        "McNemar, exact", "50 : 20 of 200 pairs", "mid-p", "Holm", "3 in one family", "keep", "Seed 7",
        "To get these bytes again", "From another setting", "399 of 400 deals not always: object",
    ):  # fmt: skip
        assert text in page.said, text
    for claim in NON_CLAIMS:
        assert claim in page.said
    links = [attributes["href"] for tag, attributes in page.tags if tag == "a"]
    assert links == ["#non-claims"]
    assert [attributes["id"] for tag, attributes in page.tags if attributes.get("id") == "non-claims"] == ["non-claims"]
    assert all(label in page.said for label in LABELS)
    images = [attributes for tag, attributes in page.tags if tag == "img"]
    assert len(images) == 4
    for image, name in zip(images, ("share-of-deals", "points-a-deal", "dose", "differences"), strict=True):
        kind, data = (image["src"] or "").split(",")
        assert kind == "data:image/svg+xml;base64"
        assert base64.b64decode(data) == files[f"plots/{name}.svg"]
        assert image["alt"]


def test_the_page_allows_its_own_style_and_nothing_else(files: dict[str, bytes]) -> None:
    page = files["report.html"].decode()
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:"
    metas = [attributes for tag, attributes in Page(files["report.html"]).tags if tag == "meta"]
    assert policy in [attributes.get("content") for attributes in metas]
    assert "http:" not in page
    assert "https:" not in page


def test_the_same_counts_give_the_same_bytes() -> None:
    assert report_files(infer(small())) == report_files(infer(small()))
    assert report_files(infer(replace(small(), seed=8)))["report.json"] != report_files(infer(small()))["report.json"]


def test_hostile_text_is_inert() -> None:
    page = Page(hostile_files()["report.html"])
    assert {tag for tag, _ in page.tags} <= HARMLESS
    assert page.open == []
    names = {name for _, attributes in page.tags for name in attributes}
    assert names <= {"lang", "charset", "http-equiv", "content", "name", "class", "id", "href", "alt", "src"}
    assert "<script>alert(1)</script>" in page.said  # shown as it is, and so not run
    assert "{{ 7*7 }}" in page.said
    assert "\x1b" not in page.said
    assert "\u202e" not in page.said


def test_several_suites_stand_on_one_page_under_one_rule() -> None:
    one, two = small(), replace(small(), suite="F1")
    kept = Criterion("B3", "cash", "accepted", ">=", 0.4, "must", "s")
    rule = Rule((kept, replace(kept, suite="F1", bound=0.9)))
    files = report_files([infer(one), infer(two)], rule)
    value = json.loads(files["report.json"])
    assert [suite["suite"] for suite in value["suites"]] == ["B3", "F1"]
    assert value["falsification"]["word"] == "retire"  # 0.6 of F1 is clearly less than 0.9
    assert [criterion["outcome"] for criterion in value["falsification"]["criteria"]] == ["met", "missed"]
    assert {"plots/b3-share-of-deals.svg", "plots/f1-share-of-deals.svg"} <= set(files)
    assert json.loads(report_files([infer(one), infer(two)])["report.json"])["falsification"] is None


def test_the_command_names_a_rule_that_is_not_the_built_in_one() -> None:
    rule = Rule((Criterion("B3", "cash", "accepted", ">=", 0.4, "must", "s"),), source="my rule.toml")
    played = infer(replace(small(), command="troth deal suite B3"))
    assert command_of(played, None) == command_of(played, replace(rule, source="built in")) == "troth deal suite B3"
    assert command_of(played, rule) == "troth deal suite B3 --rule 'my rule.toml'"
    files = report_files(played, rule)
    assert json.loads(files["report.json"])["suites"][0]["command"] == command_of(played, rule)
    assert command_of(played, rule) in Page(files["report.html"]).said


def test_what_was_not_counted_is_none_and_no_number() -> None:
    empty = replace(
        report().arms[0],
        measures=tuple(
            replace(one, measure=Rate(0, 0) if one.name == "accepted" else Mean(()))
            for one in report().arms[0].measures
        ),
    )
    files = report_files(infer(replace(report(), arms=(empty,), comparisons=(), rule=None, axis=None)))
    accepted, loss = json.loads(files["report.json"])["suites"][0]["arms"][0]["measures"]
    for one in (accepted, loss):
        assert one["value"] is one["low"] is one["high"] is one["truth_inside"] is None
    assert "NaN" not in files["report.json"].decode()
    assert "no deals" in Page(files["report.html"]).said
