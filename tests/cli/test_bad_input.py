"""Bad input: one clear line with its code, the right exit status, and nothing changed on disk."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from support.ledgers import fingerprint
from support.shell import Shell, make_shell
from troth.stores.lock import WriteLock


@pytest.fixture
def troth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Shell:
    """Run commands in a workspace with one open and one closed commitment."""
    (tmp_path / "space").mkdir()
    monkeypatch.chdir(tmp_path / "space")
    monkeypatch.setenv("TROTH_ACTOR", "human:reviewer")
    shell = make_shell(capfd)
    shell("init")
    shell("capture", "seen")
    shell("commit", "open one", "--source", "@last")
    shell("commit", "closed one", "--source", "@last")
    shell("claim", "@last")
    shell("close", "@last", "--evidence", "@last")
    return shell


def _ids(space: Path) -> dict[str, str]:
    rows = [json.loads(line) for line in (space / ".mentu" / "ledger.jsonl").read_text().splitlines()]
    return {"capture": rows[0]["id"], "open": rows[1]["id"], "closed": rows[2]["id"]}


def _ledger(space: Path) -> Path:
    return space / ".mentu" / "ledger.jsonl"


def _nothing(space: Path) -> None:
    pass


def _link(space: Path) -> None:
    _ledger(space).rename(space / "real.jsonl")
    _ledger(space).symlink_to(space / "real.jsonl")


def _dangling(space: Path) -> None:
    _ledger(space).unlink()
    _ledger(space).symlink_to(space / "nowhere")


def _gone(space: Path) -> None:
    _ledger(space).unlink()


def _folder(space: Path) -> None:
    _ledger(space).unlink()
    _ledger(space).mkdir()


def _pipe(space: Path) -> None:
    _ledger(space).unlink()
    os.mkfifo(_ledger(space))


def _huge_line(space: Path) -> None:
    with _ledger(space).open("ab") as file:
        file.write(b'{"body":"')
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b'"}\n')


def _tampered(space: Path) -> None:
    data = _ledger(space).read_bytes()
    _ledger(space).write_bytes(data.replace(b"open one", b"OPEN ONE"))


def _config(text: bytes) -> Callable[[Path], None]:
    def make(space: Path) -> None:
        (space / ".mentu" / "config.yaml").write_bytes(text)

    make.__name__ = f"config_{text[:12]!r}"
    return make


def _config_folder(space: Path) -> None:
    (space / ".mentu" / "config.yaml").unlink()
    (space / ".mentu" / "config.yaml").mkdir()


def _linked_folder(space: Path) -> None:
    (space / ".mentu").rename(space / "real")
    (space / ".mentu").symlink_to(space / "real")


def _linked_lock(space: Path) -> None:
    (space / ".mentu" / ".lock").unlink()
    (space / ".mentu" / ".lock").symlink_to(space / "elsewhere")


def _genesis(space: Path) -> None:
    (space / ".mentu" / "genesis.key").write_text("identity: {}\n")


CASES = [
    # (what is wrong, words, code, exit status)
    (_nothing, ["claim", "cmt_00000000"], "E_REF_NOT_FOUND", 2),
    (_nothing, ["claim", "{capture}"], "E_REF_NOT_FOUND", 2),
    (_nothing, ["show", "mem_zzzzzzzz"], "E_REF_NOT_FOUND", 2),
    (_nothing, ["show", ""], "E_REF_NOT_FOUND", 2),
    (_nothing, ["commit", "x", "--source", "mem_00000000"], "E_REF_NOT_FOUND", 2),
    (_nothing, ["commit", "x", "--source", "{open}"], "E_REF_NOT_FOUND", 2),
    (_nothing, ["submit", "{open}", "--evidence", "{capture}"], "E_NOT_OWNER", 2),
    (_nothing, ["close", "{open}", "--duplicate-of", "{open}"], "E_CONSTRAINT_VIOLATED", 2),
    (_nothing, ["close", "{open}", "--duplicate-of", "cmt_00000000"], "E_REF_NOT_FOUND", 2),
    (_nothing, ["claim", "{closed}"], "E_ALREADY_CLOSED", 2),
    (_nothing, ["release", "{closed}"], "E_ALREADY_CLOSED", 2),
    (_nothing, ["submit", "{closed}", "--evidence", "{capture}"], "E_ALREADY_CLOSED", 2),
    (_nothing, ["approve", "{closed}"], "E_ALREADY_CLOSED", 2),
    (_nothing, ["approve", "{open}"], "E_CONSTRAINT_VIOLATED", 2),
    (_nothing, ["capture", "   "], "E_CONSTRAINT_VIOLATED", 2),
    (_nothing, ["capture", ""], "E_CONSTRAINT_VIOLATED", 2),
    (_nothing, ["capture", "x", "--kind", "Upper"], "E_CONSTRAINT_VIOLATED", 2),
    (_nothing, ["capture", "x", "--level", "guess"], "E_CONSTRAINT_VIOLATED", 2),
    (_nothing, ["capture", "x", "--scope", "everywhere"], "E_CONSTRAINT_VIOLATED", 2),
    (_nothing, ["capture", "x", "--kind", "finding"], "E_CITATION_REQUIRED", 2),
    (_nothing, ["capture", "x", "--meta", "[1]"], "E_USAGE", 2),
    (_nothing, ["capture", "x", "--meta", '{"a":1,"a":2}'], "E_USAGE", 2),
    (_nothing, ["capture", "x", "--meta", '{"n":9007199254740993}'], "E_CONSTRAINT_VIOLATED", 2),
    (_nothing, ["capture", "x" * (1 << 17), "--meta", '{"a":' * 101 + "1" + "}" * 101], "E_USAGE", 2),
    (_nothing, ["capture", "\udce9"], "E_CONSTRAINT_VIOLATED", 2),
    (_nothing, ["capture"], "E_USAGE", 2),
    (_nothing, ["log", "-n", "0"], "E_USAGE", 2),
    (_nothing, ["verify", "a", "--store", "b"], "E_USAGE", 2),
    (_nothing, ["status", "--store", "/no/such/folder"], "E_NO_LEDGER", 2),
    (_nothing, ["capture", "x", "--store", "/no/such/folder/ledger"], "E_NO_WORKSPACE", 2),
    (_nothing, ["status", "--store", ".."], "E_NO_WORKSPACE", 2),
    (_nothing, ["status", "--store", "mysql://localhost/x"], "E_UNSUPPORTED", 2),
    (_nothing, ["init", "no/such/folder"], "E_NO_FOLDER", 2),
    (_nothing, ["init", "--workspace", "a b"], "E_USAGE", 2),
    (_nothing, ["verify", "/dev/null"], "E_NOT_REGULAR", 2),
    (_nothing, ["import", "/dev/zero"], "E_NOT_REGULAR", 2),
    (_genesis, ["capture", "x"], "E_CONSTRAINT_VIOLATED", 2),
    (_linked_lock, ["capture", "x"], "E_NOT_REGULAR", 2),
    (_tampered, ["capture", "x"], "E_CHAIN_BROKEN", 1),
    (_huge_line, ["capture", "x"], "E_CHAIN_BROKEN", 1),
]
for make, code in (
    (_link, "E_NOT_REGULAR"),
    (_dangling, "E_NOT_REGULAR"),
    (_folder, "E_NOT_REGULAR"),
    (_pipe, "E_NOT_REGULAR"),
    (_gone, "E_NO_LEDGER"),
    (_linked_folder, "E_NOT_REGULAR"),
    (_config(b"workspace: [\n"), "E_CONFIG"),
    (_config(b"workspace: a\nworkspace: b\n"), "E_CONFIG"),
    (_config(b"\xff\xfe"), "E_CONFIG"),
    (_config(b"#" * (1 << 19)), "E_TOO_LARGE"),
    (_config_folder, "E_NOT_REGULAR"),
):
    CASES += [(make, words, code, 2) for words in (["capture", "x"], ["status"], ["verify"], ["claim", "@last"])]


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(("make", "words", "code", "status"), CASES)
def test_one_clear_line_and_nothing_changed(
    tmp_path: Path,
    troth: Shell,
    make: Callable[[Path], None],
    words: list[str],
    code: str,
    status: int,
    as_json: bool,
) -> None:
    space = tmp_path / "space"
    ids = _ids(space)
    words = [word.format(**ids) if word.startswith("{") and word[1:-1] in ids else word for word in words]
    make(space)
    before = fingerprint(tmp_path)
    said = troth(*words, *(["--json"] if as_json else []))
    assert said.exit == status
    if as_json:
        assert said.json["error"]["code"] == code
    else:
        assert said.out == ""
        lines = said.err.splitlines()
        assert len(lines) == 1
        assert lines[0].startswith(f"troth: {code}")
        assert len(lines[0]) < 4100
    assert fingerprint(tmp_path) == before


def test_an_endless_line_is_verified_and_told(tmp_path: Path, troth: Shell) -> None:
    _huge_line(tmp_path / "space")
    said = troth("verify")
    assert said.exit == 1
    assert said.out.splitlines()[0] == "5/6 verified"
    assert "line 6" in said.out
    assert "malformed" in said.out
    assert len(said.out) < 2000
    assert troth("status").exit == 1
    assert troth("log", "-n", "1").exit == 0


def test_a_busy_ledger_is_told_apart(tmp_path: Path, troth: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from troth.stores import jsonl

    real = jsonl.JsonlStore.open
    monkeypatch.setattr(jsonl.JsonlStore, "open", lambda where, **more: real(where, **{**more, "wait_seconds": 0.05}))
    before = fingerprint(tmp_path)
    with WriteLock(tmp_path / "space" / ".mentu" / ".lock", 1):
        said = troth("capture", "x")
        assert said.exit == 75
        assert "E_BUSY" in said.err
        assert troth("status").exit == 0
        assert troth("verify").exit == 0
    assert fingerprint(tmp_path) == before
    assert troth("capture", "x").exit == 0


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_workspace_is_read(tmp_path: Path, troth: Shell) -> None:
    mentu = tmp_path / "space" / ".mentu"
    for path in (*mentu.iterdir(), mentu):
        path.chmod(stat.S_IRUSR | (stat.S_IXUSR if path.is_dir() else 0))
    try:
        assert troth("status").exit == 0
        assert troth("verify").exit == 0
        said = troth("capture", "x")
        assert said.exit == 2
        assert "E_UNREADABLE" in said.err
    finally:
        mentu.chmod(stat.S_IRWXU)
