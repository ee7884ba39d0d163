"""``troth okf`` through the front door (ledger spec §13, §14)."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.frontdoor import troth
from tests.support.shell import Shell, make_shell


@pytest.fixture
def shell(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TROTH_ACTOR", "human:reviewer")
    run = make_shell(capfd)
    assert run("init").exit == 0
    return run


def test_a_bundle_from_its_first_concept_to_the_ledger(tmp_path: Path) -> None:
    def run(*words: str) -> str:
        answer = troth(*words, cwd=tmp_path, env={"TROTH_ACTOR": "human:reviewer"})
        assert answer.exit == 0, answer.err
        return answer.out

    run("init")
    run("okf", "new", "kb/rules/cart.md", "--type", "rule", "--title", "Empty carts", "--tag", "shop")
    run("okf", "new", "kb/rules/base.md", "--type", "rule")
    (tmp_path / "kb" / "top.md").write_text(
        "---\ntype: rule\nx-mentu:\n  trust: {level: 0.9, decay: 30}\n  relations: {extends: [rules/base.md]}\n---\n"
        "See [carts](rules/cart.md).\n"
    )
    assert "3 concepts, 0 errors" in run("okf", "lint", "kb")
    assert "3 would be added" in run("okf", "ingest", "kb", "--dry-run")
    assert "3 added" in run("okf", "ingest", "kb")
    assert "3 present already" in run("okf", "ingest", "kb")
    run("okf", "set", "kb/top.md", "title", "The top")
    assert "1 changed, 2 present" in run("okf", "ingest", "kb")
    assert "4/4 verified" in run("verify")
    for told in (run("okf", "query", "kb", "the", "top"), run("okf", "query", "--in-ledger", "top.md")):
        assert "top.md  The top (rule, declared 0.9)" in told
        assert "extends rules/base.md" in told
    assert "3 twins" in run("okf", "twin", "kb")
    run("okf", "twin", "kb", "--check")
    run("okf", "project", "kb", "out")
    run("okf", "restore", "out", "back")
    assert (tmp_path / "back" / "top.md").read_bytes() == (tmp_path / "kb" / "top.md").read_bytes()


def test_exit_statuses_and_json(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    assert "no concepts" in shell("okf", "lint", "kb").out
    assert "no concepts" in shell("okf", "ingest", "kb").out
    assert "no concepts" in shell("okf", "twin", "kb").out
    assert "Nothing was found" in shell("okf", "query", "kb", "x").out
    (tmp_path / "kb" / "a.md").write_text("---\ntitle: \x1b[31m\n---\n")
    said = shell("okf", "lint", "kb", "--json")
    assert (said.exit, said.json["errors"], {item["code"] for item in said.json["findings"]}) == (
        1,
        1,
        {"no_type", "orphan"},
    )
    assert shell("okf", "lint", "kb").exit == 1
    said = shell("okf", "ingest", "kb", "--bundle", "n", "--json")
    assert (said.exit, said.json["added"], said.json["concepts"][0]["untyped"]) == (0, 1, True)
    said = shell("okf", "query", "--in-ledger", "a.md", "--json")
    assert (said.exit, said.json["results"][0]["type"]) == (0, "untyped")
    assert shell("okf", "twin", "kb", "--check").exit == 1
    assert shell("okf", "twin", "kb", "--json").json["twins"][0]["state"] == "written"
    assert shell("okf", "project", "kb", "kb/out", "--json").json["error"]["code"] == "E_OKF_INSIDE"
    assert shell("okf", "project", "kb", "out", "--json").json["concepts"] == 1
    assert shell("okf", "restore", "out", "--json").json["files"] == 2


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("lint", "none"), "E_OKF_FOLDER"),
        (("ingest", "kb", "--bundle", "a:b"), "E_USAGE"),
        (("query", "kb"), "E_USAGE"),
        (("new", "kb/index.md", "--type", "x"), "E_USAGE"),
        (("new", "kb/a.md", "--type", " "), "E_USAGE"),
        (("set", "kb/none.md", "type", "x"), "E_OKF_UNREADABLE"),
        (("restore", "kb"), "E_OKF_UNREADABLE"),
    ],
)
def test_refusals(shell: Shell, tmp_path: Path, words: tuple[str, ...], code: str) -> None:
    (tmp_path / "kb").mkdir()
    said = shell("okf", *words, "--json")
    assert (said.exit, said.json["error"]["code"]) == (2, code)


def test_text_of_a_ledger_drives_no_terminal(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "kb").mkdir()
    (tmp_path / "kb" / "a.md").write_text('---\ntype: "a\\e[31m"\ntitle: "b\\e[32m"\n---\n')
    assert shell("okf", "ingest", "kb").exit == 0
    for said in (shell("okf", "query", "--in-ledger", "a.md"), shell("okf", "query", "kb", "a.md")):
        assert "\x1b" not in said.out
        assert "\\x1b" in said.out
