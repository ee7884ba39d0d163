"""Panels and chunks through the front door, and what their parents rest on."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.airlock import one_tier, workspace
from support.frontdoor import Answer
from support.inside import troth_inside
from support.reviewing import MEMO, finding, response
from troth.airlock.reviews import proven
from troth.core.errors import TrothError
from troth.stores.reviews import Reviews

FILES = {"a.py": "x = 1\n", "b.py": "y = 2\n"}


class Desk:
    """A workspace with a memo, two files of code, and scripted reviewers."""

    def __init__(self, root: Path, **scripts: list[dict[str, Any]]) -> None:
        self.root = root
        workspace(root, one_tier(auto_close=True, validators=["safety"]), {})
        (root / "memo.md").write_bytes(MEMO)
        for name, text in FILES.items():
            (root / name).write_text(text)
        for name, answers in scripts.items():
            (root / f"{name}.json").write_text(json.dumps({"name": name, "answers": answers}))

    def __call__(self, *words: str, actor: str = "agent:host") -> Answer:
        return troth_inside("review", *words, "--json", cwd=self.root, env={"TROTH_ACTOR": actor})

    def panel(self, *names: str, **more: str) -> Answer:
        """Ask these reviewers about the memo."""
        backends = [word for name in names for word in ("--backend", f"scripted:{name}.json")]
        approved = [word for name in names for word in ("--approve", f"scripted:{name}")]
        extra = [word for name, value in more.items() for word in (f"--{name}", value)]
        return self("panel", "memo.md", "--kind", "decision", "--id", "memo", *backends, *approved, *extra)

    def chunks(self, *words: str) -> Answer:
        """Have the code reviewed in chunks of one file each."""
        return self(
            "chunks", "a.py", "b.py", "--kind", "code", "--id", "code", "--most-bytes", "10",
            "--backend", "scripted:reader.json", "--approve", "scripted:reader", *words,
        )  # fmt: skip

    def folder(self, name: str) -> Any:
        return Reviews(self.root / ".mentu" / "reviews").open(name)


def says(*findings: Any) -> list[dict[str, Any]]:
    return [{"to": "review", "json": response(*findings)}]


FAILS = [{"to": "review", "failure": "timeout"}]
ONE = says(finding(1, "The saving has no source.", category="cost", severity="low"))
OTHER = says(
    finding(1, "Nothing backs the saving.", category="cost", severity="critical"), finding(2, "There is a risk."),
)  # fmt: skip


def test_a_panel_is_merged_as_the_host_says(tmp_path: Path) -> None:
    desk = Desk(tmp_path, one=ONE, two=OTHER)
    asked = desk.panel("one", "two")
    assert asked.exit == 3
    assert [member["review_id"] for member in asked.json["members"]] == ["memo", "memo-2"]
    assert asked.json["candidates"] == [["memo:F001", "memo-2:F001"]]
    refused = desk("merge", "memo", "memo-2", "--same", "memo:F001=memo-2:F002")
    assert (refused.exit, refused.json["error"]["code"]) == (2, "E_PANEL_MERGE")
    made = desk("merge", "memo", "memo-2", "--same", "memo:F001=memo-2:F001", "--id", "both")
    assert made.exit == 3
    value = json.loads(desk.folder("both").read("response.json"))
    assert [one["severity"] for one in value["findings"]] == ["critical", "high"]
    assert len(value["findings"][0]["evidence"]) == 2
    assert value["extensions"]["panel"]["breadth"]["F001"]["reviewers"] == 2
    for name in ("F001", "F002"):
        assert desk("triage", name, "checkable", "--review", "both").exit == 0
        seen = ("--method", "artifact-inspection", "--result", "supports", "--detail", "Read.")
        assert desk("verify", name, *seen, "--review", "both").exit == 0
        assert desk("resolve", name, "--done", "Mended.", "--review", "both").exit in (0, 3)
    assert desk("status", "both").exit == 0
    assert proven(desk.folder("both")).reconciliation["outcome"] == "converged"
    report = desk("report", "both")
    assert report.exit == 0
    assert "raised by 2 of 2 reviewers" in report.json["text"].replace("\\", "")
    assert "proves nothing" in report.json["text"]


def test_a_failed_member_leaves_the_panel_incomplete(tmp_path: Path) -> None:
    desk = Desk(tmp_path, one=says(), two=FAILS)
    asked = desk.panel("one", "two")
    assert [member["failure"] is None for member in asked.json["members"]] == [True, False]
    made = desk("merge", "memo", "memo-2", "--id", "both")
    assert made.exit == 3
    held = proven(desk.folder("both")).reconciliation
    assert held["outcome"] == "incomplete"
    assert any("memo-2 of the panel failed: timeout" in text for text in held["limitations"])
    twin = Desk(tmp_path / "twin", one=says(), two=says())
    twin.panel("one", "two")
    assert twin("merge", "memo", "memo-2", "--id", "both").exit == 0
    assert proven(twin.folder("both")).reconciliation["outcome"] == "converged"


def test_who_is_dropped_is_named_and_nobody_is_asked_without_consent(tmp_path: Path) -> None:
    desk = Desk(tmp_path, one=ONE, two=OTHER, three=says())
    asked = desk.panel("one", "two", "three", most="2")
    assert asked.json["dropped"] == ["scripted:three.json"]
    assert desk("merge", "memo", "memo-2", "--id", "both").exit == 3
    value = json.loads(desk.folder("both").read("response.json"))
    assert value["extensions"]["panel"]["dropped"] == ["scripted:three.json"]
    assert "scripted:three.json was not asked: the panel was full." in value["limitations"]
    denied = desk(
        "panel", "memo.md", "--kind", "decision", "--backend", "scripted:one.json", "--backend", "scripted:two.json",
        "--approve", "scripted:one", "--id", "denied",
    )  # fmt: skip
    assert denied.exit == 2
    assert not (tmp_path / ".mentu" / "reviews" / "denied").exists()  # not even the one that had consent
    assert desk.panel("one").exit == 2
    assert desk.panel("one", "two", lens="x \udcff").json["error"]["code"] == "E_NOT_TEXT"


@pytest.mark.parametrize("forge", ["merge", "member", "gone", "response", "dropped"])
def test_a_parent_rests_on_its_members(tmp_path: Path, forge: str) -> None:
    desk = Desk(tmp_path, one=says(), two=says())
    desk.panel("one", "two")
    assert desk("merge", "memo", "memo-2", "--id", "both").exit == 0
    folder = desk.folder("both")
    assert proven(folder).reconciliation["outcome"] == "converged"
    if forge in ("merge", "dropped"):
        value = folder.read_json("merge.json")
        value |= {"members": ["memo", "both"]} if forge == "merge" else {"dropped": ["x"]}
        folder.write_json("merge.json", value)
    elif forge == "member":
        desk.folder("memo").write("raw/answer-001-1", b"{}")
    elif forge == "gone":
        shutil.rmtree(desk.folder("memo-2").path)
    else:
        value = folder.read_json("response.json")
        value["summary"] = "All is well."
        folder.write_json("response.json", value)
    with pytest.raises(TrothError) as refused:
        proven(folder)
    assert refused.value.code == "E_REVIEW_UNVERIFIED"


def test_members_stay_while_their_parent_does(tmp_path: Path) -> None:
    desk = Desk(tmp_path, one=says(), two=says())
    desk.panel("one", "two")
    assert desk("merge", "memo", "memo-2", "--id", "both").exit == 0
    for name in ("memo", "memo-2"):
        folder = desk.folder(name)
        folder.write("run.json", folder.read("run.json").replace(b'"created":"20', b'"created":"19'))
    kept = desk("prune", "--days", "1").json
    assert kept["removed"] == []
    assert kept["kept"] == [
        {"review_id": name, "why": "the merged review both rests on it"} for name in ("memo", "memo-2")
    ]
    assert desk("forget", "both").exit == 0
    assert desk("prune", "--days", "1").json["removed"] == ["memo", "memo-2"]


# --- chunks ---


def code(name: str, anchor: dict[str, Any]) -> dict[str, Any]:
    return finding(1, f"{name} is wrong.", evidence=[
        {"anchor": anchor, "observation": "See.", "grounding": "artifact_observed"}
    ])  # fmt: skip


FIRST = {"to": "review", "contains": "x = 1", "json": response(code("a.py", {"type": "file_range", "path": "a.py"}))}
SECOND = {"to": "review", "contains": "y = 2", "json": response(limitations=["a.py was not there."])}


def test_code_is_reviewed_in_pieces_and_says_so(tmp_path: Path) -> None:
    desk = Desk(tmp_path, reader=[FIRST, SECOND])
    dry = desk.chunks("--dry-run")
    assert (dry.exit, dry.json["sent"], len(dry.json["plan"]["chunks"])) == (0, False, 2)
    made = desk.chunks()
    assert made.exit == 3
    assert [member["review_id"] for member in made.json["members"]] == ["code-c01", "code-c02"]
    value = json.loads(desk.folder("code").read("response.json"))
    assert [one["outcome"] for one in value["extensions"]["chunks"]] == ["needs_attention", "approve"]
    assert any("Seam of c02" in text for text in value["limitations"])
    assert desk("triage", "F001", "checkable", "--review", "code").exit == 0
    seen = ("--method", "artifact-inspection", "--result", "contradicts", "--detail", "It is right.")
    assert desk("verify", "F001", *seen, "--review", "code").exit == 0
    assert desk("reject", "F001", "--review", "code").exit == 0
    report = desk("report", "code").json["text"].replace("\\", "")
    for text in ("the whole was not reviewed", "may be invisible", "not a clean artifact", "a.py was not there."):
        assert text in report
    assert proven(desk.folder("code")).reconciliation["outcome"] == "converged"


def test_a_failed_chunk_is_named(tmp_path: Path) -> None:
    desk = Desk(tmp_path, reader=[{"to": "review", "contains": "x = 1", "failure": "timeout"}, SECOND])
    made = desk.chunks()
    assert made.exit == 3
    held = proven(desk.folder("code")).reconciliation
    assert held["outcome"] == "incomplete"
    assert any("The chunk c01 was not reviewed (a.py): timeout" in text for text in held["limitations"])


def test_only_code_is_cut(tmp_path: Path) -> None:
    desk = Desk(tmp_path, reader=[FIRST, SECOND])
    answer = desk(
        "chunks", "memo.md", "--kind", "decision", "--backend", "scripted:reader.json", "--approve", "scripted:reader"
    )
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_CHUNKS_KIND")
