"""``troth verify``: one line a fault, a remembered head, a torn tail set aside (ledger spec §4, §16)."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from support.shared import conformance, needs_shared
from support.shell import Shell, troth

__all__ = ["troth"]

SAMPLE_HEAD = "249e77c516acfd718a8a58a08ec969239083de6ff02f109fe48f20a1f9c78219"


@needs_shared
def test_the_published_sample_verifies(tmp_path: Path, troth: Shell) -> None:
    sample = conformance("sample-ledger.jsonl")
    said = troth("verify", sample)
    assert said.exit == 0
    assert said.out.splitlines()[0] == "6/6 verified"
    assert SAMPLE_HEAD in said.out
    assert "not anchored" in said.out
    anchored = troth("verify", sample, "--expect-head", f"{SAMPLE_HEAD}:6")
    assert anchored.exit == 0
    assert "not anchored" not in anchored.out
    answer = troth("verify", sample, "--json").json
    assert {"ok", "verified", "total", "faults", "warnings", "head"} <= answer.keys()
    assert (answer["ok"], answer["verified"], answer["total"], answer["head"]) == (True, 6, 6, SAMPLE_HEAD)
    shutil.copyfile(sample, tmp_path / "bare.jsonl")
    assert troth("status", "--store", tmp_path / "bare.jsonl").exit == 0
    assert troth("capture", "more", "--ledger", tmp_path / "bare.jsonl").exit == 0
    assert troth("verify", tmp_path / "bare.jsonl").out.splitlines()[0] == "7/7 verified"


def _five(troth: Shell, root: Path) -> tuple[Path, str]:
    for number in range(5):
        troth("capture", f"n {number}")
    return root / ".mentu" / "ledger.jsonl", str(troth("verify", "--json").json["head"])


def test_one_line_per_fault(tmp_path: Path, troth: Shell) -> None:
    path, _ = _five(troth, tmp_path)
    lines = path.read_bytes().split(b"\n")
    lines[1] = lines[1].replace(b"n 1", b"n X")
    del lines[3]
    path.write_bytes(b"\n".join(lines))
    said = troth("verify")
    assert said.exit == 1
    assert said.out.splitlines()[0] == "2/4 verified"
    faults = [line for line in said.out.splitlines() if line.startswith("line ")]
    assert [line.split()[1] for line in faults] == ["2", "4"]
    assert "content_mismatch" in faults[0]
    assert "missing_ancestor" in faults[1]
    answer = troth("verify", "--json")
    assert answer.exit == 1
    assert [(fault["line"], fault["fault"]) for fault in answer.json["faults"]] == [
        (2, "content_mismatch"),
        (4, "missing_ancestor"),
    ]
    for name, status in (("status", 1), ("log", 0), ("show", 0)):
        words = [name, "@last"] if name == "show" else [name]
        broken = troth(*words)
        assert broken.exit == status
        assert "does not verify" in broken.err


def test_truncation_is_told_by_a_remembered_head(tmp_path: Path, troth: Shell) -> None:
    path, head = _five(troth, tmp_path)
    whole = path.read_bytes()
    assert troth("verify", "--expect-head", head).exit == 0
    path.write_bytes(b"".join(line + b"\n" for line in whole.split(b"\n")[:3]))
    cut = troth("verify", "--expect-head", f"{head}:5")
    assert cut.exit == 1
    assert re.search(r"head_mismatch: cut: 3 .*5", cut.out)
    assert troth("verify", "--expect-head", head).exit == 1
    unanchored = troth("verify")
    assert unanchored.exit == 0
    assert "not anchored" in unanchored.out
    path.write_bytes(b"")
    empty = troth("verify", "--expect-head", f"{head}:5")
    assert empty.exit == 1
    assert "cut: 0" in empty.out
    assert troth("verify").out.splitlines()[0] == "0/0 verified"
    path.unlink()
    gone = troth("verify")
    assert gone.exit == 2
    assert "E_NO_LEDGER" in gone.err


def test_a_changed_ledger_is_told_from_a_longer_one(tmp_path: Path, troth: Shell) -> None:
    _, head = _five(troth, tmp_path)
    troth("capture", "one more")
    assert troth("verify", "--expect-head", f"{head}:5").exit == 0
    assert troth("verify", "--expect-head", head).exit == 1
    other = tmp_path / "other"
    other.mkdir()
    troth("init", other)
    for number in range(5):
        troth("capture", f"other {number}", "--store", other)
    changed = troth("verify", other / ".mentu" / "ledger.jsonl", "--expect-head", f"{head}:5")
    assert changed.exit == 1
    assert "changed" in changed.out


@pytest.mark.parametrize("text", ["abc", "A" * 64, "0" * 64 + ":", "0" * 64 + ":x", "0" * 63, "0" * 64 + ":-1"])
def test_a_head_that_is_none_is_a_usage_error(troth: Shell, text: str) -> None:
    said = troth("verify", "--expect-head", text)
    assert said.exit == 2
    assert "E_USAGE" in said.err


def test_repair_tail(tmp_path: Path, troth: Shell) -> None:
    path, _ = _five(troth, tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"seq":5,"par')
    torn = troth("verify")
    assert torn.exit == 1
    assert "line 6" in torn.out
    assert "torn_tail" in torn.out
    assert path.read_bytes() == whole + b'{"seq":5,"par'
    mended = troth("verify", "--repair-tail")
    assert mended.exit == 0
    assert "torn_tail" in mended.err
    assert path.read_bytes() == whole
    path.write_bytes(whole + b"half")
    answer = troth("verify", "--repair-tail", "--json").json
    assert Path(answer["repaired"]).read_bytes() == b"half"
    assert troth("verify", "--repair-tail", "--json").json["repaired"] is None


def test_a_torn_tail_is_told_by_the_next_writer(tmp_path: Path, troth: Shell) -> None:
    path, _ = _five(troth, tmp_path)
    with path.open("ab") as file:
        file.write(b"half")
    said = troth("capture", "next")
    assert said.exit == 0
    assert "torn_tail" in said.err
    assert troth("verify").exit == 0
