"""``troth receipt decide``: actions, exit statuses, and what is written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.test_receipt import contradicted, laid, open_run
from receipts.faults import put
from receipts.test_receipt import sealed
from troth.cli.main import main
from troth.receipts.deciding import EXAMPLE


def said(capsys: pytest.CaptureFixture[str], *words: str | Path) -> tuple[int, Any]:
    status = main(["receipt", "decide", *map(str, words), "--json"])
    return status, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("files", "more", "status", "action"),
    [
        (sealed, (), 0, "continue"),
        (lambda: sealed(contradicted()), (), 1, "replan"),
        (lambda: sealed(contradicted()), ("--replans", "3"), 4, "escalate"),
        (lambda: sealed(open_run()), (), 4, "escalate"),
    ],
)
def test_a_verdict_becomes_an_action(
    files: Callable[[], dict[str, bytes]],
    more: tuple[str, ...],
    status: int,
    action: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = laid(tmp_path / "m", files())
    exit_status, answer = said(capsys, folder, *more)
    assert exit_status == status
    assert answer["stop_decision"]["action"] == action
    assert main(["receipt", "decide", str(folder), *more]) == status
    assert capsys.readouterr().out.startswith(action)


def test_an_invalid_receipt_gives_no_decision(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = laid(tmp_path / "m", sealed(edit=put("predicate.verdict.reason", "tool_claims_matched")))
    status, answer = said(capsys, folder)
    assert (status, answer["error"]["code"]) == (1, "E_STOP_NO_VERDICT")
    (folder / "tree.json").write_text("{")
    assert main(["receipt", "decide", str(folder)]) == 1
    assert main(["receipt", "decide", str(tmp_path / "none")]) == 2


def test_the_decision_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = laid(tmp_path / "m", sealed())
    assert main(["receipt", "decide", str(folder), "--write"]) == 0
    predicate = json.loads((folder / "receipt.json").read_bytes())["predicate"]
    assert predicate["stop_decision"]["action"] == "continue"
    assert main(["receipt", "verify", str(folder)]) == 0
    before = (folder / "receipt.json").read_bytes()
    table = tmp_path / "mine.toml"
    table.write_text(EXAMPLE + "# mine\n")
    capsys.readouterr()
    status, answer = said(capsys, folder, "--write", "--table", table)
    assert (status, answer["error"]["code"]) == (2, "E_RECEIPT_DECIDED")
    (folder / "run.json").write_text("{}")
    status, answer = said(capsys, folder, "--write")
    assert (status, answer["error"]["code"]) == (2, "E_RECEIPT_CAPTURED")
    assert (folder / "receipt.json").read_bytes() == before


def test_the_example_is_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["receipt", "decide", "--example"]) == 0
    out = capsys.readouterr().out
    assert out == EXAMPLE
    folder = laid(tmp_path / "m", sealed())
    table = tmp_path / "t.toml"
    table.write_text(out)
    assert main(["receipt", "decide", str(folder), "--table", str(table)]) == 0
    table.write_text(out.replace('decision = "supported"', 'decision = "sported"'))
    capsys.readouterr()
    status, answer = said(capsys, folder, "--table", table)
    assert (status, answer["error"]["code"]) == (2, "E_STOP_TABLE")
    assert answer["error"]["place"] == {"file": str(table), "path": "$.rule[0].decision"}
    status, answer = said(capsys, folder, "--table", tmp_path / "none.toml")
    assert (status, answer["error"]["code"]) == (2, "E_STOP_TABLE_MISSING")
    assert main(["receipt", "decide"]) == 2
    assert main(["receipt", "decide", str(folder), "--example"]) == 2
