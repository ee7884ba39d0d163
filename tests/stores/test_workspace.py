"""The workspace: found upward, created once, its settings read strictly."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.core.errors import Refused, TrothError
from troth.stores.workspace import (
    Config,
    config_text,
    create_workspace,
    find_workspace,
    is_workspace_name,
    name_for,
    parse_config,
    read_config,
    workspace_at,
)

HERE = Path("config.yaml")


def _create(root: Path, name: str | None = None) -> list[str]:
    return create_workspace(root, name=name, agents_text="instructions\n")[1]


def test_created_once_then_left_alone(tmp_path: Path) -> None:
    assert _create(tmp_path) == ["config.yaml", "AGENTS.md", ".lock", "ledger.jsonl"]
    space = find_workspace(tmp_path)
    assert space.ledger.read_bytes() == b""
    assert space.agents_file.read_text() == "instructions\n"
    assert space.config().unhashed_prefix == 0
    space.config_file.write_text("workspace: mine\n")
    space.ledger.write_bytes(b"rows\n")
    assert _create(tmp_path, "other") == []
    assert space.config() == Config(workspace="mine")
    assert space.ledger.read_bytes() == b"rows\n"


def test_what_is_missing_is_added(tmp_path: Path) -> None:
    _create(tmp_path)
    (tmp_path / ".mentu" / "AGENTS.md").unlink()
    assert _create(tmp_path) == ["AGENTS.md"]


def test_found_from_a_folder_below(tmp_path: Path) -> None:
    _create(tmp_path)
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    assert find_workspace(below).root == tmp_path
    assert workspace_at(tmp_path / ".mentu").root == tmp_path


def test_none_found_is_one_clear_refusal(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="troth init") as caught:
        workspace_at(tmp_path)
    assert caught.value.code == "E_NO_WORKSPACE"
    with pytest.raises(Refused) as caught:
        _create(tmp_path / "gone" / "further")
    assert caught.value.code == "E_NO_FOLDER"
    assert not (tmp_path / "gone").exists()


def test_a_folder_is_made_when_only_it_is_missing(tmp_path: Path) -> None:
    assert _create(tmp_path / "new") == ["config.yaml", "AGENTS.md", ".lock", "ledger.jsonl"]
    assert workspace_at(tmp_path / "new").config().workspace == "new"
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused) as caught:
        _create(tmp_path / "file")
    assert caught.value.code == "E_NO_FOLDER"


def test_a_link_or_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / ".mentu").symlink_to(tmp_path / "real")
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / ".mentu").write_text("")
    for name in ("one", "two"):
        for attempt in (find_workspace, workspace_at, _create):
            with pytest.raises(Refused) as caught:
                attempt(tmp_path / name)
            assert caught.value.code == "E_NOT_REGULAR"
    assert list((tmp_path / "real").iterdir()) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("workspace: a\nworkspace: b\n", "duplicate key"),
        ("workspace: 'a b'\n", "workspace"),
        ("workspace: 7\n", "workspace"),
        ("unhashed_prefix: -1\n", "unhashed_prefix"),
        ("unhashed_prefix: true\n", "unhashed_prefix"),
        ("unhashed_prefix: '0'\n", "unhashed_prefix"),
        ("actor: [human]\n", "actor"),
        ("validators: [a]\n", "validators"),
        ("validators: {technical: pytest -q}\n", "list of words"),
        ("validators: {technical: []}\n", "list of words"),
        ("validators: {technical: {}}\n", "list of words"),
        ("validators: {technical: {run: pytest}}\n", "list of words"),
        ("validators: {technical: {run: [pytest], sandbox: yes please}}\n", "sandbox"),
        ("validators: {technical: {run: [pytest], shell: true}}\n", "`run` and `sandbox"),
        ("- a\n", "mapping"),
        ("1: a\n", "mapping"),
        ("a: [\n", ""),
        ("a: !!python/object:os.system x\n", ""),
        ("a: 2026-99-99\n", ""),
        ("? {}\n: x\n", ""),
        ("a: !!int\n", ""),
    ],
)
def test_settings_that_cannot_be_understood(text: str, words: str) -> None:
    with pytest.raises(Refused) as caught:
        parse_config(text.encode(), HERE)
    line = str(caught.value)
    assert caught.value.code == "E_CONFIG"
    assert words in line
    assert "\n" not in line
    assert str(HERE) in line


def test_a_validator_may_be_put_into_the_sandbox() -> None:
    text = b"validators: {a: [x], b: {run: [x, y], sandbox: true}, c: {run: [z]}, d: {run: [z], sandbox: false}}\n"
    config = parse_config(text, HERE)
    assert config.validators == {"a": ("x",), "b": ("x", "y"), "c": ("z",), "d": ("z",)}
    assert config.sandboxed == {"b"}


def test_settings_read() -> None:
    text = b"workspace: w\nactor: human:reviewer\nunhashed_prefix: 3\nvalidators: {t: [a, b]}\nverifier: {id: x}\n"
    assert parse_config(text, HERE) == Config("w", "human:reviewer", 3, {"t": ("a", "b")}, {"verifier": {"id": "x"}})
    assert parse_config(b"", HERE) == Config()


def test_settings_that_are_not_text_or_not_a_file(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    assert read_config(path) == Config()
    path.write_bytes(b"workspace: \xff\n")
    with pytest.raises(Refused, match="UTF-8"):
        read_config(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(Refused) as caught:
        read_config(path)
    assert caught.value.code == "E_NOT_REGULAR"
    path.rmdir()
    path.write_bytes(b"#" * (1 << 19))
    with pytest.raises(Refused) as caught:
        read_config(path)
    assert caught.value.code == "E_TOO_LARGE"


@given(st.text(max_size=140))
def test_every_name_that_init_takes_comes_back_from_its_settings(name: str) -> None:
    if is_workspace_name(name) and name.isprintable():
        assert parse_config(config_text(name).encode(), HERE) == Config(workspace=name, unhashed_prefix=0)


@given(st.text(alphabet=st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), max_size=300))
def test_every_folder_gives_a_name(name: str) -> None:
    assert is_workspace_name(name_for(Path("/") / name))


_NODES = st.recursive(
    st.sampled_from(["a", "0", "true", "~", "'x y'", "2026-01-01", "&a b", "*a", "!!int z", "-"]),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.lists(inner, max_size=2).map(lambda items: "{" + ", ".join(f"k{i}: {v}" for i, v in enumerate(items)) + "}"),
    ),
    max_leaves=6,
)
_KEYS = st.sampled_from(["workspace", "actor", "unhashed_prefix", "validators", "verifier"])


@given(st.lists(st.tuples(_KEYS, _NODES), max_size=4))
def test_settings_never_crash_the_reader(pairs: list[tuple[str, str]]) -> None:
    text = "".join(f"{key}: {value}\n" for key, value in pairs)
    fault = _refusal(text.encode())
    assert fault is None or (fault.code == "E_CONFIG" and "\n" not in str(fault))


def _refusal(data: bytes) -> TrothError | None:
    try:
        parse_config(data, HERE)
    except TrothError as fault:
        return fault
    return None
