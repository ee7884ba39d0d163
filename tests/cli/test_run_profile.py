"""`troth run --profile`: the agent gets its login to read, and no record of the run holds it."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from support.model_endpoint import playing
from support.observing import needs_observer
from support.project import HEAD, HONEST, Project, project, sealed_project

__all__ = ["project", "sealed_project"]
pytestmark = [needs_observer, pytest.mark.observer]

TOKEN = "login-token-0123456789abcdef"

LOOK = """
where = os.path.expanduser('~/.codex/auth.json')
seen = open(where).read() if os.path.exists(where) else ''
print('login' if 'login-token' in seen else 'no login', flush=True)
try:
    open(where, 'a').write('x')
    print('written', flush=True)
except OSError:
    print('kept', flush=True)
print(sorted(os.listdir(os.path.expanduser('~'))), os.environ.get('OTHER_API_KEY'), flush=True)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    (home / ".codex").mkdir(parents=True)
    (home / ".codex" / "auth.json").write_text(f'{{"tokens": {{"access_token": "{TOKEN}"}}}}')
    (home / ".ssh").mkdir()
    return home


def holding(folder: Path, text: str) -> list[str]:
    return [str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file() and text in path.read_text()]


def test_a_login_is_read_and_stands_in_no_record(project: Project, home: Path) -> None:
    _, commitment = project.commit()
    environment = {"HOME": str(home), "OTHER_API_KEY": "not-for-this-one"}
    answer = project.run(commitment, LOOK.join((HEAD, HONEST)), "--profile", "codex", env=environment)
    assert answer.exit == 0, answer
    assert "login\nkept\n['.codex'] None\n" in answer.err
    assert (home / ".codex" / "auth.json").read_text().endswith("}}")
    folder = Path(answer.json["folder"])
    assert holding(folder, TOKEN) == []
    assert "auth.json" in (folder / "launch.json").read_text()
    assert "own sandbox cannot be nested" in answer.err


def test_without_the_profile_there_is_no_login(project: Project, home: Path) -> None:
    _, commitment = project.commit()
    answer = project.run(commitment, LOOK.join((HEAD, HONEST)), env={"HOME": str(home)})
    assert answer.exit == 0, answer
    assert "no login\nkept\n[] None\n" in answer.err


def test_a_login_in_an_argument_list_is_told_and_cut(project: Project, home: Path) -> None:
    _, commitment = project.commit()
    spill = "import json\nt = json.load(open(os.path.expanduser('~/.codex/auth.json')))['tokens']['access_token']\n"
    script = HEAD + spill + "subprocess.run(['true', t])\n" + HONEST
    answer = project.run(commitment, script, "--profile", "codex", "--redact", env={"HOME": str(home)})
    assert answer.exit == 3, answer
    assert "what looks like a credential" in answer.err
    assert holding(Path(answer.json["folder"]), TOKEN) == []


def test_an_unknown_profile_is_refused(project: Project) -> None:
    answer = project.run("cmt_x", HONEST, "--profile", "nobody")
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_USAGE")


# --- the real command lines, against an endpoint on this machine that plays the model ---

MEND = "sed -i 's/return value/return 2 * value/' src/app.py"
SUITE = "python3 -m unittest -q tests.test_app"


def real(name: str) -> dict[str, str]:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no program {name} on the search path")
    return {"PATH": f"{Path(found).parent}{os.pathsep}{os.environ['PATH']}"}


def drive(project: Project, environment: dict[str, str], profile: str, *agent: str) -> list[list[str]]:
    """Let a real agent work with its profile; return the commands that its own transcript claims."""
    _, commitment = project.commit()
    answer = project.troth(
        "run", commitment, "--contract", project.contract, "--as", "agent:worker", "--json", "--profile", profile,
        "--", profile, *agent, env=environment,
    )  # fmt: skip
    assert answer.exit == 0, answer.out
    assert answer.json["done"]["decision"] == "supported"
    folder = Path(answer.json["folder"])
    assert holding(folder, "key-of-the-service") == []
    return [claim["argv"] for claim in json.loads((folder / "claims.json").read_text())["claims"]]


@pytest.mark.slow
def test_the_real_claude_works_with_its_profile(project: Project, tmp_path: Path) -> None:
    environment = real("claude") | {"HOME": str(tmp_path), "ANTHROPIC_API_KEY": "key-of-the-service-0123456789"}
    call = ("Bash", {"command": f"{MEND} && {SUITE}", "description": "mend and test"})
    with playing(call, "It is done.") as model:
        words = ("--print", "Mend double().", "--output-format", "json", "--allowedTools", "Bash")
        claimed = drive(project, environment | {"ANTHROPIC_BASE_URL": model.url}, "claude", *words)
    assert SUITE.split() in claimed
    assert any("key-of-the-service" in str(asked.headers) for asked in model.asked)


@pytest.mark.slow
def test_the_real_codex_works_with_a_login_that_it_may_only_read(project: Project, home: Path) -> None:
    login = '{"auth_mode": "apikey", "OPENAI_API_KEY": "key-of-the-service-0123456789"}'
    (home / ".codex" / "auth.json").write_text(login)
    environment = real("codex") | {"HOME": str(home)}
    call = ("exec_command", {"cmd": f"{MEND} && {SUITE}"})
    with playing(call, "It is done.") as model:
        words = ("exec", "--json", "--sandbox", "danger-full-access", "--skip-git-repo-check",
                 "--config", f'openai_base_url="{model.url}/v1"', "Mend double().")  # fmt: skip
        claimed = drive(project, environment, "codex", *words)
    assert SUITE.split() in claimed
    assert any("key-of-the-service" in str(asked.headers) for asked in model.asked)
    assert (home / ".codex" / "auth.json").read_text() == login


@pytest.mark.slow
def test_the_real_aider_works_with_its_profile(project: Project, tmp_path: Path) -> None:
    environment = real("aider") | {"HOME": str(tmp_path), "OPENAI_API_KEY": "key-of-the-service-0123456789"}
    edit = "src/app.py\n```\ndef double(value):\n    return 2 * value\n\n\ndef name():\n    return 'app'\n```\n"
    with playing(edit) as model:
        words = ("--model", "openai/model-9", "--edit-format", "whole", "--no-git", "--yes-always",
                 "--no-show-model-warnings", "--no-auto-lint", "--map-tokens", "0", "--message", "Mend double().",
                 "src/app.py")  # fmt: skip
        drive(project, environment | {"OPENAI_API_BASE": f"{model.url}/v1"}, "aider", *words)
    assert any("key-of-the-service" in str(asked.headers) for asked in model.asked)
