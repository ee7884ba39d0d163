"""Compilers that stand in a user's home, and the packages that were fetched for them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from support.frontdoor import troth
from support.observing import needs_observer
from troth.observer.commands import Bench, run_command
from troth.observer.detecting import detect
from troth.observer.project import look
from troth.observer.proposal import with_tools
from troth.observer.toolchains import fetched, places, rust_toolchain
from troth.observer.tools import elsewhere, prefix_of, read_tools, unsealed_folders

HERE = "x86_64-unknown-linux-gnu"


def with_rustup(home: Path, *names: str, settings: str = "") -> Path:
    """Lay a home out as rustup does; return the folder with the programs that stand in for the others."""
    for name in names:
        folder = home / ".rustup" / "toolchains" / name
        (folder / "bin").mkdir(parents=True)
        (folder / "lib" / "rustlib").mkdir(parents=True)
        (folder / "bin" / "cargo").write_text("#!/bin/sh\n")
    (home / ".rustup" / "settings.toml").write_text(settings)
    programs = home / ".cargo" / "bin"
    programs.mkdir(parents=True)
    (programs / "rustup").write_text("#!/bin/sh\n")
    (programs / "rustup").chmod(0o755)
    (programs / "cargo").symlink_to("rustup")
    return programs


def test_the_toolchain_is_the_one_that_rustup_would_take(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "code" / "work"
    work.mkdir(parents=True)
    names = [f"stable-{HERE}", f"nightly-2026-01-01-{HERE}", f"nightly-{HERE}", f"1.70.0-{HERE}", f"1.71.0-{HERE}"]
    text = f'default_toolchain = "stable-{HERE}"\n[overrides]\n"{tmp_path}" = "1.71.0-{HERE}"\n'
    with_rustup(home, *names, settings=text.partition("[")[0])

    def taken(**environ: str) -> str | None:
        found = rust_toolchain(work, home=home, environ=environ)
        return None if found is None else found.name

    assert taken() == f"stable-{HERE}"
    (home / ".rustup" / "settings.toml").write_text(text)
    assert taken() == f"1.71.0-{HERE}"
    (work.parent / "rust-toolchain").write_text("nightly\n")
    assert taken() == f"nightly-{HERE}"
    (work / "rust-toolchain.toml").write_text('[toolchain]\nchannel = "1.70.0"\ncomponents = []\n')
    assert taken() == f"1.70.0-{HERE}"
    assert taken(RUSTUP_TOOLCHAIN="stable") == f"stable-{HERE}"
    # One that is not there is not guessed at, and no name leads out.
    for odd in ("1.69.0", "../../..", "*", "[s]table", "1.7[01].0", "s*"):
        assert taken(RUSTUP_TOOLCHAIN=odd) is None
    assert taken(RUSTUP_HOME=str(tmp_path / "none")) is None


@pytest.mark.parametrize("text", ["", "default_toolchain = 7\n", "overrides = 1\n", "[", "\xff"])
def test_settings_that_say_nothing_name_no_toolchain(text: str, tmp_path: Path) -> None:
    with_rustup(tmp_path, f"stable-{HERE}")
    (tmp_path / ".rustup" / "settings.toml").write_bytes(text.encode("latin-1"))
    assert rust_toolchain(tmp_path / "work", home=tmp_path, environ={}) is None


def test_where_rustup_stands_in_the_toolchain_is_proposed_and_no_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "Cargo.toml").write_text("[package]\n")
    programs = with_rustup(home, f"stable-{HERE}", settings=f'default_toolchain = "stable-{HERE}"\n')
    for name in ("RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "CARGO_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin")
    toolchain = home / ".rustup" / "toolchains" / f"stable-{HERE}"
    assert prefix_of("cargo", work, home=home) == toolchain
    assert [item.what for item in with_tools(detect(look(work)), work).of("tools")] == [str(toolchain)]
    # The folder of the stand-ins holds a user's keys; it is named to nobody.
    assert elsewhere("cargo", work).endswith(f"tools = [{json.dumps(str(toolchain))}]")


def test_what_was_fetched_is_proposed_where_a_project_needs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    for folder in (".cargo/registry/cache", ".cargo/git/checkouts", "go/pkg/mod/cache/download", "mods/mod"):
        (home / folder).mkdir(parents=True)
    cargo, go = home / ".cargo", home / "go" / "pkg" / "mod"
    assert fetched("cargo", home=home, environ={}) == [cargo / "registry", cargo / "git"]
    assert fetched("go", home=home, environ={}) == [go]
    assert fetched("go", home=tmp_path, environ={"GOPATH": f"{home}/go:/b"}) == [go]
    # An empty one, one at a relative place, and another program's are none.
    assert fetched("go", home=home, environ={"GOMODCACHE": f"{home}/mods/mod"}) == []
    assert fetched("cargo", home=home, environ={"CARGO_HOME": "here"}) == fetched("npm", home=home, environ={}) == []

    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", "/usr/bin")
    for name in ("CARGO_HOME", "GOPATH", "GOMODCACHE"):
        monkeypatch.delenv(name, raising=False)
    work = tmp_path / "work"
    work.mkdir()
    (work / "go.mod").write_text("module a\n")
    (work / "Cargo.toml").write_text("[package]\n")
    (work / "Cargo.lock").write_text('[[package]]\nname = "a"\n')

    def proposed() -> list[str]:
        return [item.what for item in with_tools(detect(look(work)), work).of("tools")]

    assert proposed() == []
    (work / "go.mod").write_text("module a\nrequire b v1.0.0\n")
    (work / "Cargo.lock").write_text('[[package]]\nname = "b"\nsource = "registry+https://index.invalid"\n')
    assert proposed() == [str(cargo / "registry"), str(cargo / "git"), str(go)]
    (work / "vendor").mkdir()
    assert proposed() == []


def test_a_store_is_found_where_its_program_looks(tmp_path: Path) -> None:
    (tmp_path / "registry" / "src").mkdir(parents=True)
    (tmp_path / "mod" / "cache" / "download").mkdir(parents=True)
    tools = [tmp_path / "registry", tmp_path / "mod", tmp_path]
    assert places(tools, "/home/x") == (
        (str(tmp_path / "registry"), "/home/x/.cargo/registry"),
        (str(tmp_path / "mod"), "/home/x/go/pkg/mod"),
    )


def test_the_documentation_of_a_toolchain_is_not_read(tmp_path: Path) -> None:
    for name in ("bin", "share"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a").write_text("a")
    (whole,) = read_tools([tmp_path])
    (tmp_path / "lib" / "rustlib").mkdir(parents=True)
    (tool,) = read_tools([tmp_path])
    assert (whole.files, tool.files) == (2, 1)
    assert unsealed_folders([tmp_path]) == (tmp_path / "share",)
    (tmp_path / "share" / "a").write_text("b")
    assert read_tools([tmp_path]) == (tool,)
    (tmp_path / "bin" / "a").write_text("b")
    assert read_tools([tmp_path]) != (tool,)


STORE_CONTRACT = """
contract_id = "c"
tools = ["../mod"]
[[protect]]
path = "tests"
[[acceptance]]
id = "suite"
argv = ["grep", "-qxFf", "/home/agent/go/pkg/mod/cache/download/answer", "source.txt"]
"""
STORE_AGENT = """
import json, os, subprocess
open("source.txt", "w").write("42\\n")
argv = ["grep", "-qxFf", os.path.expanduser("~/go/pkg/mod/cache/download/answer"), "source.txt"]
status = subprocess.run(argv).returncode
open(os.environ["TROTH_CLAIMS"], "a").write(json.dumps({"argv": argv, "exit": status}) + "\\n")
"""


@needs_observer
@pytest.mark.observer
def test_agent_and_grader_find_the_store_alike(tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "tests").mkdir(parents=True)
    (work / "tests" / "a").write_text("")
    (work / "source.txt").write_text("41\n")
    (tmp_path / "mod" / "cache" / "download").mkdir(parents=True)
    (tmp_path / "mod" / "cache" / "download" / "answer").write_text("42\n")
    (tmp_path / "c.toml").write_text(STORE_CONTRACT)
    (tmp_path / "agent.py").write_text(STORE_AGENT)
    assert troth("init", cwd=work).exit == 0
    assert troth("contract", "seal", tmp_path / "c.toml", "--mutants", "0", cwd=work).exit == 0
    agent = tmp_path / "agent.py"
    words = ["--contract", work / ".mentu" / "contracts" / "c", "--as", "agent:w", "--allow-read", agent, "--json"]
    answer = troth("run", "--new", "x", *words, "--", "python3", agent, cwd=work)
    # No mutant was asked for; that is all that is missing.
    assert answer.json["done"]["reason"] == "contract_adequacy_zero", answer
    report = json.loads((Path(answer.json["folder"]) / "report.json").read_text())["grade"]
    assert report["commands"][0]["exit"] == 0


@needs_observer
@pytest.mark.observer
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_what_lies_in_a_target_folder_is_not_graded(tmp_path: Path) -> None:
    """Cargo takes what is there for built when its times say so, and runs it."""
    work = tmp_path / "work"
    (work / "src").mkdir(parents=True)
    (work / "Cargo.toml").write_text('[package]\nname = "it"\nversion = "0.1.0"\nedition = "2021"\n')
    source = work / "src" / "lib.rs"
    source.write_text("#[test] fn good() { assert_eq!(1, 1); }\n")
    own = prefix_of("cargo", work)
    bench = Bench(inside=str(work), tools=(own,) if own else ())
    argv = ["cargo", "test", "-q", "--offline", "--lib"]
    plain = run_command(bench, work, argv, caches=False)
    assert plain.passed
    assert (plain.tests.source, plain.tests.executed) == ("totals", 1)
    assert (work / "target").is_dir()
    times = source.stat()
    source.write_text("#[test] fn good() { assert_eq!(1, 2); }\n")
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert run_command(bench, work, argv, caches=False).passed
    graded = run_command(bench, work, argv)
    assert (graded.exit, graded.tests.failed) == (101, 1), graded.output


MAIN = 'package it\nimport ("os"; "testing")\nfunc TestMain(m *testing.M) {{ {}os.Exit(0) }}\n'


@needs_observer
@pytest.mark.observer
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("go") is None, reason="needs go")
def test_a_test_main_that_ends_with_0_passes_nothing(tmp_path: Path) -> None:
    (tmp_path / "go.mod").write_text("module it\n\ngo 1.16\n")
    test = tmp_path / "it_test.go"
    text = 'package it\nimport "testing"\nfunc TestIt(t *testing.T) { if 1 != %d { t.Fatal() } }\n'
    test.write_text(text % 1)
    own = prefix_of("go", tmp_path)
    bench = Bench(inside=str(tmp_path), tools=(own,) if own else ())
    argv = ["go", "test", "-json", "./..."]
    honest = run_command(bench, tmp_path, argv)
    assert honest.passed, honest.output
    assert honest.tests.outcomes == {"it.TestIt": "passed"}
    (tmp_path / "main_test.go").write_text(MAIN.format(""))
    assert run_command(bench, tmp_path, argv).nothing_executed
    test.write_text(text % 2)
    (tmp_path / "main_test.go").write_text(MAIN.format("m.Run(); "))
    forced = run_command(bench, tmp_path, argv)
    assert (forced.exit, forced.belies_exit, forced.passed) == (0, True, False), forced.output


@needs_observer
@pytest.mark.observer
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo")
def test_cargo_builds_with_what_was_fetched_and_only_when_it_is_named(tmp_path: Path) -> None:
    def crate(name: str, source: str, more: str = "") -> Path:
        (tmp_path / name / "src").mkdir(parents=True)
        head = f'[package]\nname = "{name}"\nversion = "0.1.0"\nedition = "2021"\n'
        (tmp_path / name / "Cargo.toml").write_text(head + more)
        (tmp_path / name / "src" / "lib.rs").write_text(source)
        return tmp_path / name

    used = crate("used", "pub fn one() -> u8 { 1 }\n")
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@invalid", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], cwd=used, check=True)
    needed = f'[dependencies]\nused.git = "file://{used}"\n'
    work = crate("work", "#[test] fn one() { assert_eq!(used::one(), 1); }\n", needed)
    environ = {**os.environ, "CARGO_HOME": str(tmp_path / "home" / ".cargo")}
    subprocess.run(["cargo", "fetch", "-q"], cwd=work, env=environ, check=True)
    assert look(work).text("Cargo.lock")
    assert detect(look(work)).fetches == {"cargo": "Cargo.lock names what cargo has fetched there"}
    stores = fetched("cargo", home=tmp_path / "home", environ={})
    assert [path.name for path in stores] == ["git"]
    own = prefix_of("cargo", work)
    argv = ["cargo", "test", "-q", "--offline", "--locked", "--lib"]
    for tools, passes in ((stores, True), ([], False)):
        bench = Bench(inside=str(work), tools=(*([own] if own else []), *tools))
        assert run_command(bench, work, argv).passed is passes
