"""Private keys: outside every workspace, for their owner alone, never overwritten."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from troth.core.errors import Refused
from troth.core.notes import COSIGNATURE, ED25519, parse_verifier
from troth.stores import keys as store
from troth.stores.keys import list_keys, load_signer, new_key, only_signer, read_key, verifier_keys


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_key_is_kept_for_its_owner_alone(home: Path) -> None:
    key, path = new_key("example.com/ledger")
    assert path == home / "config" / "troth" / "keys" / "example.com%2Fledger.key"
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
    assert load_signer("example.com/ledger").verifier == key
    assert key.kind == ED25519
    assert only_signer().verifier == key


def test_two_keys_are_two_draws() -> None:
    one, _ = new_key("a")
    other, _ = new_key("b", witness=True)
    assert one.public != other.public
    assert (one.kind, other.kind) == (ED25519, COSIGNATURE)
    assert [key.name for key, _ in list_keys()] == ["a", "b"]
    assert only_signer().name == "a"


def test_nothing_is_overwritten(home: Path) -> None:
    _, path = new_key("a")
    before = path.read_bytes()
    for witness in (False, True):
        with pytest.raises(Refused, match="E_KEY_EXISTS"):
            new_key("a", witness=witness)
    file = home / "mine"
    file.write_bytes(b"x")
    with pytest.raises(Refused, match="E_KEY_EXISTS"):
        new_key("b", out=file)
    assert (path.read_bytes(), file.read_bytes()) == (before, b"x")
    link = home / "link"
    link.symlink_to(home / "nowhere")
    with pytest.raises(Refused, match="E_KEY_EXISTS"):
        new_key("c", out=link)


def test_a_key_in_a_file_of_its_own(home: Path) -> None:
    key, path = new_key("b", out=home / "mine")
    assert path == home / "mine"
    assert mode(path) == 0o600
    assert list_keys() == []
    assert load_signer(str(path)).verifier == key
    with pytest.raises(Refused, match="E_UNREADABLE"):
        new_key("c", out=home / "no" / "folder")


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@pytest.mark.parametrize("bits", [0o640, 0o604, 0o620, 0o777])
def test_a_key_that_others_may_read_is_not_used(bits: int) -> None:
    _, path = new_key("a")
    path.chmod(bits)
    with pytest.raises(Refused, match="E_KEY_OPEN"):
        load_signer("a")
    path.chmod(0o400)
    assert load_signer("a").name == "a"


@pytest.mark.parametrize(
    "name",
    ["", "a b", "a+b", "x" * 101, "a\nb", "\x1b[0m", "\u202e", "é" * 90, "a\u00a0b", "..", "../../x", "./a", "/a"],
)
def test_what_no_key_may_be_called(name: str) -> None:
    with pytest.raises(Refused, match="E_KEY_NAME"):
        new_key(name)


@pytest.mark.parametrize("name", ["a", "example.com/a/b", "a/../../x", ".hidden", "é" * 30, "x" * 100, "a%2Fb", "~"])
def test_a_name_never_leaves_the_folder(name: str, home: Path) -> None:
    key, path = new_key(name)
    assert path.parent == home / "config" / "troth" / "keys"
    assert not path.name.startswith(".")
    assert load_signer(name).verifier == key
    assert [found for found, _ in list_keys()] == [key]


def test_a_file_that_is_no_key_is_told_with_its_place(home: Path) -> None:
    _, path = new_key("a")
    for data in (b"", b"\xff", b"x" * 5000, path.read_bytes()[:-9], path.read_bytes() * 2):
        path.write_bytes(data)
        with pytest.raises(Refused, match="E_KEY_MALFORMED") as caught:
            load_signer("a")
        assert str(path) in str(caught.value)
        with pytest.raises(Refused, match="E_KEY_MALFORMED"):
            list_keys()
    _, other = new_key("b")
    path.write_bytes(other.read_bytes())
    with pytest.raises(Refused, match="holds the key of b"):
        load_signer("a")
    path.unlink()
    path.symlink_to(other)
    with pytest.raises(Refused, match="E_NOT_REGULAR"):
        read_key(path)


def test_a_file_of_a_workspace_passes_for_no_key(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, path = new_key("b", out=home / "example.com")
    (home / "listed").write_text(f"{key}\n", encoding="utf-8")
    monkeypatch.chdir(home)
    for word in ("example.com", "listed", ""):
        with pytest.raises(Refused, match="E_KEY_UNKNOWN"):
            verifier_keys(word)
        with pytest.raises(Refused, match="E_KEY_UNKNOWN"):
            load_signer(word)
    assert load_signer("./example.com").verifier == key
    assert verifier_keys("./listed") == [key]
    assert verifier_keys(f"../{home.name}/listed") == [key]
    assert load_signer(str(path)).verifier == key


def test_who_is_meant(home: Path) -> None:
    key, _ = new_key("example.com/a")
    other, _ = new_key("w", witness=True)
    assert verifier_keys(str(key)) == [key]
    assert verifier_keys("example.com/a") == [key]
    listed = home / "keys.txt"
    listed.write_text(f"# whom we trust\n\n{key}\n{other}\n", encoding="utf-8")
    assert verifier_keys(str(listed)) == [key, other]
    listed.write_text(f"{key}\n{key}x\n", encoding="utf-8")
    with pytest.raises(Refused, match=r"E_KEY_MALFORMED.*keys\.txt:2"):
        verifier_keys(str(listed))
    listed.write_text("# nobody\n", encoding="utf-8")
    with pytest.raises(Refused, match="names no key"):
        verifier_keys(str(listed))
    for word in ("nobody", str(home)):
        with pytest.raises(Refused, match=r"E_KEY_UNKNOWN|E_NOT_REGULAR"):
            verifier_keys(word)
    assert parse_verifier(str(other)) == other


def test_a_choice_is_not_made_for_anybody() -> None:
    with pytest.raises(Refused, match="no private key yet"):
        only_signer()
    new_key("a")
    new_key("b")
    with pytest.raises(Refused, match="2 private keys"):
        only_signer()
    with pytest.raises(Refused, match="E_KEY_UNKNOWN"):
        load_signer("c")


@pytest.mark.skipif(os.name == "nt", reason="the variables of POSIX")
def test_where_the_folders_are(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(store.sys, "platform", "linux")
    assert store.config_folder() == tmp_path / ".config" / "troth"
    assert store.state_folder() == tmp_path / ".local" / "state" / "troth"
    monkeypatch.setattr(store.sys, "platform", "darwin")
    assert store.config_folder() == tmp_path / "Library" / "Application Support" / "troth" / "config"
    monkeypatch.delenv("HOME")
    with pytest.raises(Refused, match="E_KEY_FOLDER"):
        store.config_folder()
    monkeypatch.setattr(store.sys, "platform", "win32")
    monkeypatch.setenv("APPDATA", str(tmp_path))
    assert store.config_folder() == tmp_path / "troth" / "config"
