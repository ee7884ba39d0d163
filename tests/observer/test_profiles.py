"""What each profile gives, and that it gives no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from troth.cli.run import PROFILES as CHOICES
from troth.observer.profiles import PROFILES, grant, table
from troth.observer.sandbox import HOME

TOKEN = "login-token-0123456789abcdef"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A user's home with logins and much else."""
    home = tmp_path / "home"
    for path in (".codex/auth.json", ".claude/.credentials.json"):
        (home / path).parent.mkdir(parents=True)
        (home / path).write_text(f'{{"tokens": {{"access_token": "{TOKEN}", "note": "short"}}}}')
    (home / ".codex/config.toml").write_text("")
    return home


def test_the_command_line_offers_the_table() -> None:
    assert tuple(CHOICES) == tuple(PROFILES)
    rows = table()
    assert {name for name, _, _ in rows} == set(PROFILES)
    assert all(what and why for _, what, why in rows)
    page = (Path(__file__).resolve().parents[2] / "docs" / "observing.md").read_text(encoding="utf-8")
    assert [what for _, what, _ in rows if f"`{what}`" not in page and what != "network"] == []


def test_without_a_profile_nothing_is_given(home: Path) -> None:
    given = grant(None, "codex", environment={"OPENAI_API_KEY": "k"}, home=home)
    assert (given.network, given.env, given.lent, given.read_only, given.files) == (False, (), (), (), {})


def test_a_login_is_lent_only_without_a_key(home: Path) -> None:
    given = grant("codex", "codex", environment={}, home=home)
    assert given.lent == ((home / ".codex/auth.json", f"{HOME}/.codex/auth.json"),)
    assert (given.env, given.network) == ((), True)
    assert given.hidden_texts() == {"AUTH.JSON_TOKEN_0": TOKEN}
    keyed = grant("codex", "codex", environment={"CODEX_API_KEY": "k", "OPENAI_API_KEY": "x"}, home=home)
    assert (keyed.lent, keyed.env) == ((), ("CODEX_API_KEY",))


def test_a_login_elsewhere_stands_at_its_usual_place_inside(home: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere"
    (home / ".claude").rename(moved)
    given = grant("claude", "claude", environment={"CLAUDE_CONFIG_DIR": str(moved)}, home=home)
    assert given.lent == ((moved / ".credentials.json", f"{HOME}/.claude/.credentials.json"),)
    without = grant("claude", "claude", environment={}, home=home)
    assert without.lent == ()
    assert any("neither a key" in line for line in without.told)


@pytest.mark.parametrize(
    "text", ["", "{", "[" * 1000, '"' + "x" * (2 << 20) + '"', "7", '{"a": ["two words here, no token"]}']
)
def test_a_login_that_is_no_json_hides_nothing(text: str, home: Path) -> None:
    (home / ".codex/auth.json").write_text(text)
    assert grant("codex", "codex", environment={}, home=home).hidden_texts() == {}


def installed(root: Path, first: str, *where: str) -> Path:
    program = root.joinpath(*where)
    program.parent.mkdir(parents=True)
    program.write_text(first + "\n")
    program.chmod(0o755)
    return program


def test_a_program_brings_the_folder_of_its_packages_and_its_name(tmp_path: Path) -> None:
    real = installed(tmp_path, "#!/usr/bin/env python3", "lib", "node_modules", "@x", "agent", "cli.js")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "agent").symlink_to(real)
    given = grant("codex", "agent", environment={"PATH": f"{tmp_path / 'bin'}:/usr/bin"}, home=tmp_path)
    assert given.read_only == (tmp_path / "lib" / "node_modules",)
    assert given.links == ((str(real), str(tmp_path / "bin" / "agent")),)


def test_a_program_in_an_environment_brings_the_environment_alone(tmp_path: Path) -> None:
    real = installed(tmp_path, "#!/usr/bin/python3", "tools", "aider", "bin", "aider")
    (tmp_path / "tools" / "aider" / "pyvenv.cfg").write_text("")
    given = grant("aider", str(real), environment={"PATH": "/usr/bin"}, home=tmp_path)
    assert given.read_only == (tmp_path / "tools" / "aider",)
    alone = installed(tmp_path, "\x7fELF", "share", "claude", "versions", "2.0")
    given = grant("claude", str(alone), environment={"PATH": "/usr/bin"}, home=tmp_path)
    assert given.read_only == (alone,)


def test_an_interpreter_beside_the_system_is_seen_too(tmp_path: Path) -> None:
    node = installed(tmp_path, "\x7fELF", "nvm", "bin", "node")
    real = installed(tmp_path, "#!/usr/bin/env node", "node_modules", "agent", "cli.js")
    given = grant("codex", str(real), environment={"PATH": str(node.parent)}, home=tmp_path)
    assert given.read_only == (tmp_path / "node_modules", node)


def test_a_program_of_the_system_brings_nothing() -> None:
    given = grant(
        "aider", "python3", environment={"PATH": "/usr/bin:/bin", "OPENAI_API_KEY": "k"}, home=Path("/nowhere")
    )
    assert (given.read_only, given.links, given.told) == ((), (), ())
    assert grant("aider", "no-such-program", environment={"PATH": ""}, home=Path("/")).read_only == ()
