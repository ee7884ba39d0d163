"""``troth review`` through the front door."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from review.documents import HERE, document, edited, files
from support.frontdoor import troth

MEMBERS = [word for name in files() for word in ("--artifact", f"{name}={HERE / 'artifact' / name}")]
RESPONSE = str(HERE / "response.json")
RECONCILIATION = str(HERE / "reconciliation.json")


def written(folder: Path, kind: str, **edits: object) -> str:
    path = folder / f"{kind}.json"
    path.write_text(json.dumps(edited(document(kind), edits)))
    return str(path)


def test_a_valid_response(tmp_path: Path) -> None:
    answer = troth("review", "validate", RESPONSE, *MEMBERS, "--json", cwd=tmp_path)
    assert answer.exit == 0
    assert set(answer.json) == {"verdict", "violations", "unchecked"}
    assert answer.json["verdict"] == "valid"
    assert answer.json["violations"] == []
    assert [set(entry) for entry in answer.json["unchecked"]] == [{"rule", "path", "message"}] * 2
    told = troth("review", "validate", RESPONSE, cwd=tmp_path)
    assert told.exit == 0
    assert "reviewer's response, valid" in told.out
    assert "not checked: needs the artifact" in told.out


def test_an_invalid_response(tmp_path: Path) -> None:
    path = written(tmp_path, "response", set={"$.findings[1].evidence[0].anchor.line_end": 900})
    answer = troth("review", "validate", path, *MEMBERS, "--json", cwd=tmp_path)
    assert answer.exit == 1
    (violation,) = answer.json["violations"]
    assert violation["rule"] == "line-in-file"
    assert violation["path"] == "$.findings[1].evidence[0].anchor.line_end"
    told = troth("review", "validate", path, *MEMBERS, cwd=tmp_path)
    assert told.exit == 1
    assert "line-in-file at $.findings[1].evidence[0].anchor.line_end: " in told.out
    assert troth("review", "validate", path, cwd=tmp_path).exit == 0


def test_a_reconciliation_and_its_review(tmp_path: Path) -> None:
    assert troth("review", "validate", RECONCILIATION, "--review", RESPONSE, *MEMBERS, cwd=tmp_path).exit == 0
    path = written(tmp_path, "reconciliation", delete=["$.items[3]"])
    assert troth("review", "validate", path, cwd=tmp_path).exit == 0
    answer = troth("review", "validate", path, "--review", RESPONSE, "--json", cwd=tmp_path)
    assert answer.exit == 1
    assert [told["rule"] for told in answer.json["violations"]] == ["finding-coverage"]


def test_decisions_of_the_operator(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "reconciliation",
        set={"$.items[4].state": "resolved", "$.items[4].resolution": "Yes.", "$.outcome": "converged"},
    )
    (tmp_path / "decisions.jsonl").write_text('{"finding_id": "F005"}\n')
    (tmp_path / "none.jsonl").write_text("")
    assert troth("review", "validate", path, "--decisions", "decisions.jsonl", cwd=tmp_path).exit == 0
    answer = troth("review", "validate", path, "--decisions", "none.jsonl", "--json", cwd=tmp_path)
    assert answer.exit == 1
    assert [told["rule"] for told in answer.json["violations"]] == ["operator-decision-recorded"]


def test_the_level_of_the_published_schemas(tmp_path: Path) -> None:
    path = written(tmp_path, "response", set={"$.artifact.revision.value": "x"})
    assert troth("review", "validate", path, cwd=tmp_path).exit == 1
    answer = troth("review", "validate", path, "--level", "published", "--json", cwd=tmp_path)
    assert answer.exit == 0
    assert answer.json == {"verdict": "valid", "violations": [], "unchecked": []}
    refused = troth("review", "validate", path, "--level", "published", *MEMBERS, cwd=tmp_path)
    assert refused.exit == 2
    assert "E_USAGE" in refused.err


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["memo.txt"], "E_REVIEW_KIND"),
        (["nowhere.json"], "E_REVIEW_MISSING"),
        (["."], "E_NOT_REGULAR"),
        ([RESPONSE, "--artifact", "memo.txt"], "E_USAGE"),
        ([RESPONSE, "--artifact", "a=nowhere"], "E_REVIEW_MISSING"),
        ([RESPONSE, "--artifact", "../a=memo.txt"], "E_ARTIFACT_MEMBER"),
        ([RESPONSE, "--artifact", "a=memo.txt", "--artifact", "a=memo.txt"], "E_ARTIFACT_MEMBER"),
        ([RECONCILIATION, "--review", RECONCILIATION], "E_REVIEW_UNFIT"),
        ([RECONCILIATION, "--review", "memo.txt"], "E_REVIEW_KIND"),
        ([RECONCILIATION, "--decisions", "memo.txt"], "E_DECISIONS_UNREADABLE"),
        ([RESPONSE, "--kind", "essay"], "E_USAGE"),
    ],
)
def test_what_cannot_be_judged_is_refused(words: list[str], code: str, tmp_path: Path) -> None:
    (tmp_path / "memo.txt").write_text("VERDICT: APPROVE\n")
    answer = troth("review", "validate", *words, "--json", cwd=tmp_path)
    assert answer.exit == 2
    assert answer.json["error"]["code"] == code
    assert troth("review", "validate", *words, cwd=tmp_path).exit == 2


def test_a_kind_may_be_named_where_the_file_does_not_tell(tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_text("{}")
    answer = troth("review", "validate", "empty.json", "--kind", "reconciliation-result", "--json", cwd=tmp_path)
    assert answer.exit == 1
    assert {told["rule"] for told in answer.json["violations"]} == {"required-member"}


def test_hostile_text_drives_no_terminal(tmp_path: Path) -> None:
    value = {**document("response"), "\u001b[2J": 1, "assessment": "\u001b]0;x\u0007"}
    path = tmp_path / "hostile.json"
    path.write_text(json.dumps(value))
    answer = troth("review", "validate", path, cwd=tmp_path)
    assert answer.exit == 1
    assert "\u001b" not in answer.out + answer.err


def test_a_response_is_shown_with_what_it_points_at(tmp_path: Path) -> None:
    told = troth("review", "show", RESPONSE, *MEMBERS, cwd=tmp_path)
    assert told.exit == 0, told.err
    assert ">    7  It costs 40 euros a month." in told.out
    assert "unresolved" not in told.out
    answer = troth("review", "show", RESPONSE, *MEMBERS, "--json", cwd=tmp_path)
    assert answer.json["bound"] is True
    assert answer.json["unresolved"] == 0
    states = [entry["anchored"]["state"] for f in answer.json["findings"] for entry in f["evidence"]]
    assert states == ["resolved", "resolved", "resolved", "resolved", "resolved", "unchecked", "resolved", "resolved"]
    bare = troth("review", "show", RESPONSE, cwd=tmp_path)
    assert bare.exit == 0
    assert "no artifact was given" in bare.out


def test_an_anchor_that_does_not_resolve_is_flagged(tmp_path: Path) -> None:
    path = written(tmp_path, "response", set={"$.findings[4].evidence[0].anchor.excerpt": "It saves a fortune."})
    told = troth("review", "show", path, *MEMBERS, cwd=tmp_path)
    assert told.exit == 1
    assert "[unresolved]" in told.out
    assert "excerpt-in-artifact" in told.out
    assert troth("review", "show", path, *MEMBERS, "--json", cwd=tmp_path).json["unresolved"] == 1
    (tmp_path / "memo.md").write_text("VERDICT: APPROVE\n")
    other = troth("review", "show", RESPONSE, "--artifact", "memo.md=memo.md", cwd=tmp_path)
    assert other.exit == 1
    assert "not the one that was reviewed" in other.out


@pytest.mark.parametrize(
    ("edits", "exit_status"),
    [
        ({}, 4),
        ({"set": {"$.outcome": "incomplete"}}, 3),
        ({"set": {"$.outcome": "failed", "$.failure": {"code": "timeout", "message": "late"}}}, 3),
        ({"set": {"$.outcome": "converged"}, "delete": ["$.items[4]"]}, 0),
        ({"delete": ["$.outcome"]}, 2),
    ],
)
def test_only_a_converged_reconciliation_reads_as_a_success(
    edits: dict[str, object], exit_status: int, tmp_path: Path
) -> None:
    path = written(tmp_path, "reconciliation", **edits)
    assert troth("review", "show", path, cwd=tmp_path).exit == exit_status
    answer = troth("review", "show", path, "--json", cwd=tmp_path)
    assert answer.exit == exit_status
    assert answer.json.get("success", False) is (exit_status == 0)


def test_the_machine_is_told_and_drawn(tmp_path: Path) -> None:
    told = troth("review", "machine", cwd=tmp_path)
    assert told.exit == 0
    assert "host_response -> rejected, by host" in told.out
    assert troth("review", "machine", "--mermaid", cwd=tmp_path).out.startswith("stateDiagram-v2\n")
    assert len(troth("review", "machine", "--json", cwd=tmp_path).json["moves"]) == 18
    assert "mermaid" in troth("review", "machine", "--mermaid", "--json", cwd=tmp_path).json


def test_what_a_reviewer_wrote_is_shown_without_what_drives_a_terminal(tmp_path: Path) -> None:
    hostile = "\u001b[2J\u0085<script>\u202e ok\n\u001b]52;c;x\u0007"
    path = written(
        tmp_path,
        "response",
        set={
            "$.review_id": hostile,
            "$.findings[0].claim": hostile,
            "$.findings[0].evidence[0].observation": hostile,
            "$.findings[0].recommendation": hostile,
            "$.findings[3].evidence[1].anchor.pointer": hostile,
        },
    )
    (tmp_path / "memo.md").write_bytes((HERE / "artifact" / "memo.md").read_bytes() + b"\n\x1b[31mred\x07\n")
    for words in ([], MEMBERS, ["--artifact", "memo.md=memo.md"]):
        for form in ([], ["--json"]):
            answer = troth("review", "show", path, *words, *form, cwd=tmp_path)
            assert answer.exit in (0, 1)
            assert not set("\u001b\u0085\u0007\u202e") & set(answer.out + answer.err)
    result = written(
        tmp_path,
        "reconciliation",
        set={"$.items[4].escalation.operator_question": hostile, "$.items[1].verification[0].detail": hostile},
    )
    for form in ([], ["--json"]):
        answer = troth("review", "show", result, *form, cwd=tmp_path)
        assert answer.exit == 4
        assert not set("\u001b\u0085\u0007\u202e") & set(answer.out + answer.err)
