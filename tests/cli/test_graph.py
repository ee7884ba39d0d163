"""``why``, ``impact`` and ``find`` from the front door."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ledger.building import Ledger, lines
from support.frontdoor import Answer, troth

HOSTILE = 'x"] --> n9["<script>alert(1)</script> [l](https://evil.example) `c` #quot;\n%%{init}%%\x1b[31m end\u202e'


def reviewed() -> Ledger:
    """Return a ledger with a commitment that was reviewed, and a dispute of its evidence."""
    ledger = Ledger()
    seen = ledger.add("capture", body="the empty cart fails", envelope={"semantic": {"entities": ["Cart"]}})
    work = ledger.add("commit", source=seen, body="mend it", tags=["bug"])
    ledger.add("claim", commitment=work)
    done = ledger.add("capture", body="suite is green", kind="evidence", envelope={"trace": {"parent": [seen]}})
    ledger.add("submit", commitment=work, evidence=done)
    ledger.add("approve", "human:reviewer", commitment=work)
    ledger.add("capture", "agent:rival", body="it is not", relations=[{"type": "contradicts", "targetId": done}])
    return ledger


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "book.jsonl"
    path.write_bytes(lines(reviewed().rows))
    return path


def ask(book: Path, *words: str) -> Answer:
    return troth(*words, "--store", book, cwd=book.parent)


def test_why_and_impact_are_trees_of_words(book: Path) -> None:
    said = ask(book, "why", "cmt_")
    assert (said.exit, said.err) == (0, "")
    assert [re.sub(r" +\(.*", "", line) for line in said.out.splitlines()] == [
        "cmt_00000002 commit [closed] by agent:worker: mend it",
        "├─ made from mem_00000001 capture by agent:worker: the empty cart fails",
        "├─ claimed op_00000003 claim by agent:worker: row 3",
        "├─ submitted op_00000005 submit by agent:worker: row 5",
        "│  └─ with the evidence mem_00000004 capture evidence by agent:worker: suite is green",
        "│     └─ child of mem_00000001",
        "└─ approved op_00000006 approve by human:reviewer: row 6",
    ]
    said = ask(book, "impact", "mem_00000004")
    assert said.exit == 0
    assert "evidence of op_00000005" in said.out
    assert "a step of cmt_00000002" in said.out
    assert "contradicted by mem_00000007" in said.out


def test_trees_in_json(book: Path) -> None:
    told = ask(book, "why", "@last", "--json").json
    assert (told["ok"], told["root"], told["direction"]) == (True, "mem_00000007", "why")
    assert [(node["id"], node["depth"]) for node in told["nodes"]] == [
        ("mem_00000007", 0), ("mem_00000004", 1), ("mem_00000001", 2),
    ]  # fmt: skip
    assert [(e["from"], e["to"], e["via"], e["standing"], e["first"]) for e in told["edges"]] == [
        ("mem_00000007", "mem_00000004", "contradicts", "earlier", True),
        ("mem_00000004", "mem_00000001", "parent", "earlier", True),
    ]
    assert told["cut"] == {"depth": False, "rows": False}
    near = ask(book, "why", "@last", "--json", "--depth", "1").json
    assert (len(near["nodes"]), near["cut"]["depth"]) == (2, True)


def test_nothing_under_and_nothing_on_a_row_is_told(book: Path) -> None:
    assert "It rests on nothing." in ask(book, "why", "mem_00000001").out
    assert "Nothing stands on it." in ask(book, "impact", "@last").out
    cut = ask(book, "impact", "mem_00000001", "--rows", "2")
    assert "--rows shows more" in cut.err
    assert "--depth goes further" in ask(book, "impact", "mem_00000001", "--depth", "1").err


@pytest.mark.parametrize("command", ["why", "impact"])
def test_refusals(book: Path, command: str) -> None:
    assert ask(book, command, "mem_00000001", "--mermaid", "--json").exit == 2
    assert ask(book, command, "mem_nobody00").exit == 2
    assert ask(book, command, "mem_").exit == 2
    assert ask(book, command, "mem_00000001", "--mermaid").exit == 0


def test_hostile_text_reaches_neither_terminal_nor_chart(tmp_path: Path) -> None:
    ledger = Ledger()
    first = ledger.add("capture", HOSTILE, body=HOSTILE, id=HOSTILE)
    ledger.add("capture", body=HOSTILE, relations=[{"type": HOSTILE, "targetId": first}], sourceIds=[HOSTILE + "gone"])
    book = tmp_path / "book.jsonl"
    book.write_bytes(lines(ledger.rows))
    for words in (["why", "mem_00000002"], ["impact", HOSTILE], ["find", "alert"]):
        said = ask(book, *words)
        assert said.exit == 0
        assert "\x1b" not in said.out + said.err
        assert "\u202e" not in said.out
    chart = ask(book, "why", "mem_00000002", "--mermaid").out.splitlines()
    assert chart[0] == "flowchart TD"
    label = r'"[^"\[\]<>{}|`#;&%\\]*(?:<br/>[^"\[\]<>{}|`#;&%\\]*)*"'
    for line in chart[1:]:
        assert re.fullmatch(rf"    (?:[na]\d+\[{label}\]|[na]\d+ (?:-->|-\.->)\|{label}\| [na]\d+)", line), line
        assert "//" not in line
    assert len(chart) == 1 + 3 + 2


def test_what_no_writer_makes_is_marked(tmp_path: Path) -> None:
    ledger = Ledger()
    ledger.add("capture", envelope={"trace": {"parent": ["mem_00000001", "mem_00000002", "mem_nobody00"]}})
    ledger.add("claim", commitment="mem_00000001")
    ledger.add("capture", envelope={"trace": {"parent": ["op_00000002"]}})
    book = tmp_path / "book.jsonl"
    book.write_bytes(lines(ledger.rows))
    said = ask(book, "why", "mem_00000001").out
    assert "ITSELF" in said
    assert "mem_nobody00  (no such row)" in said
    assert "without effect: E_REF_NOT_FOUND" in ask(book, "why", "mem_00000003").out


def test_a_broken_chain_is_shown_under_a_warning(book: Path) -> None:
    book.write_bytes(book.read_bytes().replace(b"suite is green", b"suite is greed"))
    for words in (["why", "cmt_"], ["impact", "mem_00000001"], ["find", "greed"], ["find", "--contradictions"]):
        said = ask(book, *words)
        assert said.exit == 1
        assert "does not verify" in said.err
        assert said.out
        told = ask(book, *words, "--json")
        assert (told.exit, told.json["ok"]) == (1, False)


def found(book: Path, *words: str) -> list[str]:
    said = ask(book, "find", *words, "--json")
    assert said.exit == 0, said
    return [one["id"] for one in said.json["results"]]


def test_find_by_words_and_fields(book: Path) -> None:
    assert found(book, "EMPTY cart") == ["mem_00000001"]
    assert found(book, "cart", "fails") == ["mem_00000001"]
    assert found(book, "cart empty") == []
    assert found(book, "it") == ["cmt_00000002", "mem_00000007"]
    assert found(book, "it", "--by", "agent:rival") == ["mem_00000007"]
    assert found(book, "--entity", "cart") == ["mem_00000001"]
    assert found(book, "--state", "closed", "--tag", "bug") == ["cmt_00000002"]
    assert found(book, "--op", "capture", "--newest", "--limit", "1") == ["mem_00000007"]
    assert found(book, "--since", "2026-01-01T00:00:06Z") == ["op_00000006", "mem_00000007"]
    assert found(book, "--until", "2026-01-01") == []
    assert "Nothing found." in ask(book, "find", "nobody").out
    assert "--limit shows more" in ask(book, "find", "--limit", "1").err


def test_find_all_derived_from_a_row_and_all_contradictions(book: Path) -> None:
    assert found(book, "--derived-from", "mem_00000001") == ["mem_00000004"]
    assert found(book, "--derived-from", "mem_00000001", "--kind", "finding") == []
    assert found(book, "--contradictions") == ["mem_00000007"]
    assert "contradicts mem_00000004" in ask(book, "find", "--contradictions").out
    told: dict[str, Any] = ask(book, "find", "--contradictions", "--json").json
    assert told["results"][0]["contradicts"] == [
        {"target": "mem_00000004", "target_line": 4, "level": False, "withdrawn": None, "withdrawn_line": None}
    ]


def test_find_refuses_what_it_cannot_look_for(book: Path) -> None:
    for words in (["***"], ["--since", "yesterday"], ["--state", "odd"], ["--derived-from", "mem_nobody00"]):
        assert ask(book, "find", *words).exit == 2, words


def test_show_tells_children_and_who_names_a_row(book: Path) -> None:
    told = ask(book, "show", "mem_00000001", "--json").json
    assert told["children"] == ["mem_00000004"]
    assert told["named_by"] == [
        {"line": 2, "id": "cmt_00000002", "via": ["source"]},
        {"line": 4, "id": "mem_00000004", "via": ["parent"]},
    ]
    assert "named by mem_00000004: parent" in ask(book, "show", "mem_00000001").out
    assert json.loads(ask(book, "show", "@last", "--json").out)["named_by"] == []
