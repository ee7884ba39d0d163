"""Tool folders of a contract: a virtual environment beside the workspace, a prefix of its own, and what they need."""

from __future__ import annotations

import importlib.util
import json
import os
import py_compile
import shutil
import sys
from pathlib import Path

import pytest

from support.frontdoor import Answer, troth
from support.observing import needs_observer
from troth.core.errors import Refused
from troth.observer import tools
from troth.observer.autoload import environments
from troth.observer.contract_source import parse_source
from troth.observer.detecting import detect
from troth.observer.project import look
from troth.observer.proposal import render, with_tools
from troth.observer.tools import (
    bases_of,
    named_folders,
    read_tools,
    require_tools,
    tools_of,
    unsealed_folders,
    with_bases,
)

CONTRACT = """
contract_id = "c"
tools = ["../env"]
[[protect]]
path = "tests"
[[acceptance]]
id = "suite"
argv = ["judge", "tests/answer"]
"""

JUDGE = """#!/bin/sh
# Passes when the source has what the test wants.
exec grep -qxFf "$1" source.txt
"""

AGENT = """
import json, os, subprocess
open("source.txt", "w").write("42\\n")
try:
    open("../env/bin/judge", "w").write("#!/bin/sh\\nexit 0\\n")
except OSError as fault:
    print("refused:", fault.errno)
status = subprocess.run(["judge", "tests/answer"]).returncode
line = json.dumps({"argv": ["judge", "tests/answer"], "exit": status})
open(os.environ["TROTH_CLAIMS"], "a").write(line + "\\n")
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A workspace, and beside it an environment with a runner of its own."""
    (tmp_path / "work" / "tests").mkdir(parents=True)
    (tmp_path / "work" / "source.txt").write_text("41\n")
    (tmp_path / "work" / "tests" / "answer").write_text("42\n")
    (tmp_path / "env" / "bin").mkdir(parents=True)
    (tmp_path / "env" / "bin" / "judge").write_text(JUDGE)
    (tmp_path / "env" / "bin" / "judge").chmod(0o755)
    (tmp_path / "c.toml").write_text(CONTRACT)
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


def made_with(environment: Path, python: Path) -> None:
    """Make an environment by hand whose interpreter is a link to another."""
    (environment / "bin").mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text(f"home = {python.parent}\n")
    (environment / "bin" / "python").symlink_to(python)


# --- which folders ---


def test_names_are_taken_from_the_workspace_and_the_home(tmp_path: Path) -> None:
    for name in ("work", "env", "home/nodes/v20"):
        (tmp_path / name).mkdir(parents=True)
    work, home = tmp_path / "work", tmp_path / "home"
    found = named_folders(["../env", str(tmp_path / "env"), "~/nodes/v20", "/usr/lib"], work, "c", home=home)
    assert found == [tmp_path / "env", home / "nodes" / "v20"]


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("../absent", "is not a folder"),
        ("../c.toml", "is not a folder"),
        ("..", "holds"),
        (".", "holds the workspace"),
        ("tests", "lies in the workspace"),
        ("~/", "holds a home"),
        ("../loop", "lies in the workspace"),
        ("/", "system's own"),
        ("/etc/ssl", "system's own"),
        ("/var", "system's own"),
    ],
)
def test_a_folder_that_nobody_should_be_shown_is_refused(place: Path, name: str, why: str) -> None:
    (place / "loop").symlink_to("work/tests")
    (place / "home").mkdir()
    with pytest.raises(Refused, match=why) as caught:
        named_folders(["../env", name], place / "work", "c.toml", home=place / "home")
    assert caught.value.place is not None
    assert (caught.value.code, caught.value.place.path) == ("E_TOOLS_UNFIT", "tools[1]")


def test_the_python_an_environment_was_made_with_is_found_through_every_name(tmp_path: Path) -> None:
    base = tmp_path / "pythons" / "3.12.4"
    (base / "bin").mkdir(parents=True)
    (base / "lib" / "python3.12").mkdir(parents=True)
    (base / "bin" / "python3.12").write_text("")
    (tmp_path / "pythons" / "3.12").symlink_to("3.12.4")
    work = tmp_path / "work"
    made_with(work / ".venv", tmp_path / "pythons" / "3.12" / "bin" / "python3.12")
    assert bases_of(work / ".venv") == [tmp_path / "pythons" / "3.12", base]
    assert with_bases([], [".venv"], work, home=tmp_path / "home") == [tmp_path / "pythons" / "3.12", base]
    made_with(tmp_path / "system", Path("/usr/bin/python3"))
    assert bases_of(tmp_path / "system") == []


def test_a_python_that_stands_in_a_home_itself_does_not_bring_the_home(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "bin").mkdir(parents=True)
    (home / "lib" / "python3.12").mkdir(parents=True)
    (home / "bin" / "python3").write_text("")
    made_with(tmp_path / "env", home / "bin" / "python3")
    assert bases_of(tmp_path / "env") == [home]
    assert with_bases([tmp_path / "env"], [], tmp_path / "work", home=home) == [tmp_path / "env"]


def test_environments_of_the_tree(tmp_path: Path) -> None:
    files = [".venv/pyvenv.cfg", "node_modules/a/node_modules/b/i.js", "web/node_modules/c.js", "src/node_modules.js"]
    assert environments([*files, "pyvenv.cfg"]) == [".venv", "node_modules", "web/node_modules"]


def test_the_key_is_read_strictly() -> None:
    assert parse_source(CONTRACT.encode(), "c").tools == ("../env",)
    for bad in ("tools = 1", 'tools = [""]', 'tools = ["a\\u0000b"]', 'tools = ["a\\nb"]'):
        with pytest.raises(Refused, match="tools"):
            parse_source((bad + CONTRACT.replace('tools = ["../env"]', "")).encode(), "c")


# --- what is in them ---


def test_a_change_is_told_and_bytecode_is_none(place: Path) -> None:
    sealed = read_tools([place / "env"])
    assert tools_of({"tools": json.loads(json.dumps([tool.as_json() for tool in sealed]))}) == sealed
    assert require_tools(sealed) == (place / "env",)
    (place / "env" / "lib" / "__pycache__").mkdir(parents=True)
    (place / "env" / "lib" / "__pycache__" / "x.pyc").write_bytes(b"x")
    assert require_tools(sealed) == (place / "env",)
    judge = place / "env" / "bin" / "judge"
    assert unsealed_folders([place / "env", place / "work"]) == (place / "env" / "lib" / "__pycache__",)
    linked = place / "env" / "__pycache__"  # a link is no folder of bytecode, whatever it is called
    for change, back in (
        (lambda: linked.symlink_to("bin"), linked.unlink),
        (lambda: judge.write_text("#!/bin/sh\n"), lambda: judge.write_text(JUDGE)),
        (lambda: (place / "env" / "more").symlink_to("bin"), (place / "env" / "more").unlink),
        (lambda: (place / "env").rename(place / "away"), lambda: (place / "away").rename(place / "env")),
    ):
        change()
        with pytest.raises(Refused) as caught:
            require_tools(sealed)
        assert caught.value.code == "E_TOOLS_CHANGED"
        back()
        assert require_tools(sealed) == (place / "env",)


@pytest.mark.parametrize("writable", ["env", "env/bin", ".", "alias"])
def test_what_the_agent_may_write_judges_nobody(place: Path, writable: str) -> None:
    (place / "alias").symlink_to("env/bin")
    sealed = read_tools([place / "env"])
    assert require_tools(sealed, writable=[place / "work"])
    with pytest.raises(Refused, match="may write") as caught:
        require_tools(sealed, writable=[place / writable])
    assert caught.value.code == "E_TOOLS_UNFIT"


@pytest.mark.parametrize(
    "value", [1, [1], [{}], [{"path": "x", "sha256": "a", "files": 1}], [{"path": "/x", "sha256": 1, "files": 1}]]
)
def test_a_seal_that_names_no_tools_is_refused(value: object) -> None:
    assert tools_of(None) == tools_of({}) == ()
    with pytest.raises(Refused) as caught:
        tools_of({"tools": value})
    assert caught.value.code == "E_SEAL_MALFORMED"


def test_where_a_program_stands_is_told_as_what_to_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "judge").write_text(JUDGE)
    (tmp_path / "bin" / "judge").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin")
    assert f'tools = ["{tmp_path}"]' in tools.elsewhere("judge", tmp_path / "work")
    assert tools.elsewhere("no-such-judge", tmp_path) == tools.elsewhere("a\0b", tmp_path) == ""


def test_the_environment_in_use_is_proposed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = place / "work"
    (work / "tests" / "test_a.py").write_text("def test_a(): pass\n")
    made_with(place / "active", Path("/usr/bin/python3"))
    monkeypatch.setenv("PATH", f"{place}/active/bin:{os.environ['PATH']}")
    asked = with_tools(detect(look(work)), work)
    assert [(item.kind, item.what) for item in asked.of("tools")] == [("tools", str(place / "active"))]
    read = parse_source(render(asked, contract_id="c"), "c")
    assert read.tools == (str(place / "active"),)
    assert named_folders(read.tools, work, "c") == [place / "active"]
    # Where a user keeps this and that is proposed to nobody, nor is what a sandbox shows anyhow.
    (place / "active" / "pyvenv.cfg").unlink()
    assert with_tools(detect(look(work)), work).of("tools") == []
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/bin")
    assert with_tools(detect(look(work)), work).of("tools") == []


# --- sealed, run and graded with ---


def sealed(place: Path) -> Answer:
    work = place / "work"
    assert troth("init", cwd=work).exit == 0
    (place / "good").mkdir()
    (place / "good" / "source.txt").write_text("42\n")
    words = ["--workspace", work, "--reference", place / "good", "--mutants", "0", "--json"]
    return troth("contract", "seal", place / "c.toml", *words, cwd=work)


@needs_observer
@pytest.mark.observer
def test_a_runner_beside_the_workspace_seals_runs_and_grades(place: Path) -> None:
    work = place / "work"
    assert sealed(place).exit == 0
    contract = work / ".mentu" / "contracts" / "c"
    seal = json.loads((contract / "seal.json").read_text())
    assert seal["tools"] == [tool.as_json() for tool in read_tools([place / "env"])]
    assert seal["commands"][0]["exits"] == [0, 0]
    assert troth("contract", "check", contract, "--run", cwd=work).exit == 0
    assert (
        f"tools       {place}/env: 1 file, digest {seal['tools'][0]['sha256']}"
        in troth("contract", "show", contract, cwd=work).out
    )
    words = ["--new", "x", "--contract", contract, "--as", "agent:w", "--allow-read", place / "agent.py", "--json"]
    answer = troth("run", *words, "--", "python3", place / "agent.py", cwd=work)
    # No mutant was asked for, so nothing shows that the command can fail; everything else holds.
    assert answer.json["done"]["reason"] == "contract_adequacy_zero", answer
    assert [check["decision"] for check in answer.json["checks"]] == ["supported", "not_established", "supported"]
    assert "refused: 30" in answer.err
    assert (place / "env" / "bin" / "judge").read_text() == JUDGE
    report = json.loads((Path(answer.json["folder"]) / "report.json").read_text())["grade"]
    assert report["tools"] == seal["tools"]
    assert report["commands"][0]["exit"] == 0

    (place / "env" / "bin" / "judge").write_text(JUDGE + "# newer\n")
    for command in (
        ["run", *words, "--", "python3", place / "agent.py"],
        ["grade", "--contract", contract, "--json"],
        ["contract", "check", contract, "--json"],
    ):
        answer = troth(*command, cwd=work)
        assert (answer.exit, answer.json["error"]["code"]) == (2, "E_TOOLS_CHANGED"), command


IMPORTING = f"""#!{sys.executable} WAY
import os, sys
sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "lib"))
import rule
sys.exit(rule.broken())
"""
RULE = "def broken(): return open('source.txt').read() != open('tests/answer').read()\n"


@needs_observer
@pytest.mark.observer
@pytest.mark.parametrize("way", ["-B", "-E", "-I"])
def test_bytecode_that_lies_with_the_tools_judges_nothing(way: str, place: Path) -> None:
    """It is in no digest, and of its kind that is never checked the interpreter runs whatever is in it.

    A Python that is told to ignore its environment (-E, -I) takes no other place for bytecode from it.
    """
    (place / "env" / "bin" / "judge").write_text(IMPORTING.replace("WAY", way))
    (place / "env" / "lib").mkdir()
    rule = place / "env" / "lib" / "rule.py"
    rule.write_text(RULE)
    assert sealed(place).exit == 0
    contract = place / "work" / ".mentu" / "contracts" / "c"

    def graded() -> int:
        answer = troth("grade", "--contract", contract, "--json", cwd=place / "work")
        return int(answer.json["report"]["commands"][0]["runs"][0]["exit"])

    assert graded() == 1
    forged = place / "forged.py"
    forged.write_text("def broken(): return 0\n")
    kind = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(forged), cfile=importlib.util.cache_from_source(str(rule)), invalidation_mode=kind)
    require_tools(tools_of(json.loads((contract / "seal.json").read_text())))
    assert graded() == 1
    (place / "work" / "source.txt").write_text("42\n")
    assert graded() == 0


@needs_observer
@pytest.mark.observer
def test_without_being_named_it_cannot_be_started_and_the_way_is_told(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "c.toml").write_text(CONTRACT.replace('tools = ["../env"]', ""))
    monkeypatch.setenv("PATH", f"{place}/env/bin:{os.environ['PATH']}")
    answer = sealed(place)
    assert (answer.exit, answer.json["error"]["code"]) == (2, "E_ACCEPTANCE_NOT_STARTED")
    assert f'tools = ["{place}/env"]' in answer.json["error"]["remedy"], answer.json


@needs_observer
@pytest.mark.observer
def test_an_environment_in_the_workspace_whose_python_stands_under_a_prefix_of_its_own(place: Path) -> None:
    """The reference has no environment and gets the workspace's; the Python it was made with comes along."""
    work, name = place / "work", f"python3.{sys.version_info.minor}"
    prefix = place / "pythons" / name
    (prefix / "bin").mkdir(parents=True)
    (prefix / "lib").mkdir()
    shutil.copy(os.path.realpath(sys.executable), prefix / "bin" / name)
    (prefix / "lib" / name).symlink_to(Path(os.__file__).parent)
    made_with(work / ".venv", prefix / "bin" / name)
    check = "import sys; sys.exit(sys.base_prefix != sys.argv[1])"
    argv = json.dumps([".venv/bin/python", "-c", check, str(prefix)])
    text = CONTRACT.replace('tools = ["../env"]', "").replace('["judge", "tests/answer"]', argv)
    (place / "c.toml").write_text(text)
    assert sealed(place).exit == 0
    contract = work / ".mentu" / "contracts" / "c"
    seal = json.loads((contract / "seal.json").read_text())
    assert [tool["path"] for tool in seal["tools"]] == [str(prefix)]
    assert seal["commands"][0]["exits"] == [0, 0]
    assert troth("contract", "check", contract, "--run", cwd=work).exit == 0
    (prefix / "lib" / "sitecustomize.py").write_text("raise SystemExit\n")
    assert troth("grade", "--contract", contract, "--json", cwd=work).json["error"]["code"] == "E_TOOLS_CHANGED"
