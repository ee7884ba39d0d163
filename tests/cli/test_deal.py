"""``troth deal`` through the front door."""

from __future__ import annotations

import html.parser
import json
from pathlib import Path
from typing import Any

import pytest

from deals import moves
from deals.moves import happy, jsonl, message
from support.frontdoor import troth
from troth.deals.codes import NON_CLAIMS


def written(folder: Path, *lines: Any) -> Path:
    path = folder / "transcript.jsonl"
    path.write_bytes(jsonl(*lines))
    return path


def test_check_answers_to_the_letter(tmp_path: Path):
    done = troth("deal", "check", written(tmp_path, *happy()), "--json", cwd=tmp_path)
    assert done.exit == 0
    assert done.json == {
        "deals": {
            "off_1": {
                "state": "Closed:settled",
                "history": [
                    "Offered", "AcceptedPendingHold", "Held", "Adjudicating", "Settling", "Closed:settled",
                ],
                "illegal": None,
            }
        },
        "log": [],
        "balances": {"C": -10, "A": 10, "E": 0},
    }  # fmt: skip
    assert "experimental" in done.err
    assert "non-transfer" in done.err


@pytest.mark.parametrize(
    ("lines", "status"),
    [
        (happy(), 0),
        ([*happy(), *happy("Accept", "off_2", 9)], 3),
        (happy("Offer"), 3),
        ([], 3),
        ([(0, message(1, "Accept"))], 1),
        ([*happy("Offer", "off_2", 9), (0, message(1, "Accept"))], 1),
        ([*happy("EscrowHold"), {"step": 9, "end": True}], 1),
        ([*happy(), b""], 2),
        ([b"{"], 2),
    ],
)
def test_exit_statuses(tmp_path: Path, lines: list[Any], status: int):
    path = written(tmp_path, *lines)
    plain = troth("deal", "check", path, cwd=tmp_path)
    as_json = troth("deal", "check", path, "--json", cwd=tmp_path)
    assert (plain.exit, as_json.exit) == (status, status)
    if status == 2:
        error = as_json.json["error"]
        assert error["code"] == "E_TRANSCRIPT_UNREADABLE"
        assert error["place"] == {"file": str(path), "line": len(lines)}
    else:
        assert set(as_json.json) == {"deals", "log", "balances"}
        assert "experimental, non-transfer" in plain.out


@pytest.mark.parametrize("name", ["nowhere.jsonl", "."])
def test_no_file(tmp_path: Path, name: str):
    done = troth("deal", "check", name, "--json", cwd=tmp_path)
    assert done.exit == 2
    assert done.json["error"]["code"] == "E_TRANSCRIPT_UNREADABLE"


def test_check_tells_a_person_what_was_wrong(tmp_path: Path):
    bad = message(2, "Accept") | {"to": "everyone\x1b[2J"}
    done = troth("deal", "check", written(tmp_path, *happy("Offer"), (0, bad), (0, 5)), cwd=tmp_path)
    assert done.exit == 1
    assert "off_1: Closed:protocol_error" in done.out
    assert "line 2: The line is not a message that the reader accepts. [malformed] $.to" in done.out
    assert "line 3:" in done.out
    assert "\x1b" not in done.out


HOSTILE = "<script>alert(1)</script>\x1b[31m`|\"'&\u202e"


def hostile(folder: Path) -> Path:
    lines: list[Any] = happy(offer_id=HOSTILE)
    lines[3][1]["claims"] = [HOSTILE]
    return written(folder, *lines, (0, {"type": HOSTILE, "offer_id": HOSTILE, "from": HOSTILE}), (3, [HOSTILE]))


class Tags(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)


def test_show_as_a_page(tmp_path: Path):
    done = troth("deal", "show", hostile(tmp_path), "--html", cwd=tmp_path)
    assert done.exit == 0
    seen = Tags()
    seen.feed(done.out)
    assert "script" not in seen.tags
    assert not seen.tags & {"img", "link", "iframe", "object", "form"}
    assert not {name for name in seen.attributes if name.startswith("on") or name == "src"}
    assert "&lt;script&gt;" in done.out
    assert "http://" not in done.out
    assert "https://" not in done.out
    assert "experimental, non-transfer" in done.out
    assert NON_CLAIMS[0] in done.out
    assert 'href="#non-claims"' in done.out
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out


def test_show_as_lanes(tmp_path: Path):
    done = troth("deal", "show", written(tmp_path, *happy("EscrowHold"), {"step": 9, "end": True}), cwd=tmp_path)
    assert done.exit == 0
    lines = done.out.splitlines()
    assert "experimental, non-transfer" in lines[0]
    assert lines[2].split() == ["1", "0", "o------------->|", "|", "|", "Offer", "off_1", "10", "points"]
    assert any("silence" in line for line in lines)
    assert any(line.endswith("off_1: Closed:breached(A:ghost)") for line in lines)
    assert lines[-1] == "points  C +0  A +0  E +0"
    harmless = troth("deal", "show", hostile(tmp_path), cwd=tmp_path)
    assert harmless.exit == 0
    assert "\x1b" not in harmless.out


def test_show_as_a_sequence_diagram(tmp_path: Path):
    done = troth("deal", "show", hostile(tmp_path), "--mermaid", cwd=tmp_path)
    assert done.exit == 0
    lines = done.out.splitlines()
    assert lines[0] == "sequenceDiagram"
    assert any("experimental, non-transfer" in line for line in lines)
    for line in lines[1:]:
        assert line.startswith(("    participant ", "    Note over ", "    C->>", "    A->>", "    K->>"))
        said = line.partition(": ")[2]
        assert not set(said) & set("<>`|\"'&\x1b")


def test_show_as_json_and_of_nothing(tmp_path: Path):
    done = troth("deal", "show", written(tmp_path, *happy()), "--json", cwd=tmp_path)
    assert done.json["final"]["labels"] == ["experimental", "non-transfer"]
    assert [step["what"] for step in done.json["steps"]] == list(moves.HAPPY)
    empty = troth("deal", "show", written(tmp_path), cwd=tmp_path)
    assert empty.exit == 0
    assert "empty" in empty.out
    both = troth("deal", "show", written(tmp_path), "--json", "--html", cwd=tmp_path)
    assert both.exit == 2


def test_the_machine(tmp_path: Path):
    drawn = troth("deal", "machine", "--mermaid", cwd=tmp_path)
    assert drawn.out.startswith("stateDiagram-v2")
    told = troth("deal", "machine", cwd=tmp_path)
    assert "Held" in told.out
    assert "deadline_steps after the hold" in told.out
    table = troth("deal", "machine", "--json", cwd=tmp_path).json
    assert table["table"]["Held"]["Disclosure"] == {"to": "Adjudicating", "code": None, "points": ""}
    assert troth("deal", "machine", "--json", "--mermaid", cwd=tmp_path).exit == 2


def test_words_are_explained(tmp_path: Path):
    assert "F4" in troth("help", "codes", "offer_mutated", cwd=tmp_path).out
    found = troth("help", "codes", "malformed", "--json", cwd=tmp_path).json["codes"]
    assert {"Illegal messages of a deal", "Events of a deal's log"} <= {one["of"] for one in found}


def test_hostile_transcripts(tmp_path: Path):
    """Deep nesting, odd ids, huge numbers, thousands of offers: refused or survived."""
    path = tmp_path / "t.jsonl"
    path.write_bytes(jsonl(*happy()) + b'{"step":0,"msg":' + b"[" * 100_000 + b"\n")
    assert troth("deal", "check", path, "--json", cwd=tmp_path).exit == 2
    path.write_bytes(
        jsonl(*((0, message(n, "Offer", offer_id=f"off_{n}")) for n in range(3000)), {"step": 3, "end": True})
    )
    many = troth("deal", "check", path, "--json", cwd=tmp_path)
    assert many.exit == 3
    assert {deal["state"] for deal in many.json["deals"].values()} == {"Closed:expired"}
    odd = message(1, "Accept", offer_id="\ud800")
    path.write_bytes(json.dumps({"step": 0, "msg": odd}).encode())
    surrogate = troth("deal", "check", path, "--json", cwd=tmp_path)
    assert surrogate.exit == 1
    path.write_bytes(b'{"step":0,"msg":{"offer_id":"off_1","n":' + b"9" * 10_000 + b"}}")
    assert troth("deal", "check", path, "--json", cwd=tmp_path).json["deals"]["off_1"]["illegal"]["code"] == "malformed"
