"""Sealing real workspaces: records, learnt names, references, what is written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from support.observing import needs_observer
from troth.core.canonical import record_bytes
from troth.core.digests import EMPTY, sha256_hex
from troth.core.errors import Refused
from troth.observer.contract_source import parse_source
from troth.observer.protected import changed_entries, entries_of, unmet_entries
from troth.observer.reference import materialise
from troth.observer.seal import seal, seal_contract
from troth.observer.sealed import Sealed, write_sealed
from troth.observer.tree import snapshot
from troth.receipts import records
from troth.receipts.member import MappingMember
from troth.receipts.reader import MemberReader
from troth.receipts.statements import read_contract_statement
from troth.receipts.strict import parse

observed = [needs_observer, pytest.mark.observer]

HEAD = 'contract_id = "c"\ntask = "two plus two"\n[[protect]]\npath = "tests"\n'
UNITTEST = '[[acceptance]]\nid = "suite"\nargv = ["python3", "-m", "unittest", "-q", "tests.test_app"]\n'
TESTS = """\
import unittest
import app

class T(unittest.TestCase):
    def test_add(self): self.assertEqual([app.add(2, 2), app.add(1, -1)], [4, 0])
"""
QUICK = '[[acceptance]]\nid = "suite"\nargv = ["pytest", "--version", "tests"]\n'
GOOD = "def add(a, b):\n    return a + b\n"
BAD = "def add(a, b):\n    return a - b\n"


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    (folder / "tests").mkdir(parents=True)
    (folder / "tests" / "__init__.py").write_text("")
    (folder / "tests" / "test_app.py").write_text(TESTS)
    (folder / "app.py").write_text(GOOD)
    return folder


def make(work: Path, text: str, **options: Any) -> Sealed:
    """Seal, and check what holds of every seal."""
    before = snapshot(work)
    options.setdefault("clock", lambda: datetime(2024, 5, 1, 12, tzinfo=UTC))
    made = seal(parse_source(text.encode(), "c.toml"), work, **options)
    assert snapshot(work).files == before.files, "sealing changes nothing in the workspace"
    record = records.contract(parse(made.contract, "contract"))
    read_contract_statement(
        MemberReader(MappingMember({"contract.json": made.contract, "statement.json": made.statement}))
    )
    entries = entries_of(record)
    assert changed_entries(entries, before.files) == []
    assert unmet_entries(entries, before.files, before.symlinks) == []
    assert made.seal["contract_sha256"] == sha256_hex(made.contract)
    if made.seal["mutants"]:
        assert record["mutant_set_sha256"] == sha256_hex(record_bytes(made.seal["mutants"]))
    return made


def entries(made: Sealed) -> dict[str, dict[str, Any]]:
    """The protected paths of the record by path."""
    return {entry["path"]: entry for entry in json.loads(made.contract)["protected_paths"]}


@needs_observer
@pytest.mark.observer
class TestSealing:
    """Contracts that are really sealed."""

    def test_a_small_contract(self, work: Path) -> None:
        made = make(work, HEAD + UNITTEST)
        record = json.loads(made.contract)
        assert record["contract_id"] == "c"
        assert record["task"] == "two plus two"
        assert record["acceptance"] == [{"id": "suite", "argv": ["python3", "-m", "unittest", "-q", "tests.test_app"]}]
        assert record["adequacy"]["killed"] >= 1
        assert record["adequacy"]["mutants"] >= record["adequacy"]["killed"]
        assert made.seal["commands"][0]["tests"]["executed"] == 1
        assert made.seal["sealed"] == "2024-05-01T12:00:00Z"
        assert any("passes on the start tree already" in line for line in made.warnings)

    def test_the_record_is_the_same_each_time(self, work: Path) -> None:
        one, two = make(work, HEAD + UNITTEST), make(work, HEAD + UNITTEST)
        assert one.contract == two.contract
        assert one.statement == two.statement

    def test_names_that_would_change_the_grade_are_sealed(self, work: Path) -> None:
        (work / "setup.cfg").write_text("[tool:pytest]\naddopts = -p no:doctest\n")
        found = entries(make(work, HEAD + QUICK, mutants=0))
        for name in ("conftest.py", "pytest.ini", "tox.ini", "sitecustomize.py", "usercustomize.py"):
            assert found[name] == {"path": name, "kind": "directory", "sha256": EMPTY}
        assert found["setup.cfg"]["kind"] == "file"
        assert found["setup.cfg"]["sha256"] == sha256_hex((work / "setup.cfg").read_bytes())
        opened = entries(make(work, 'leave_open = ["setup.cfg"]\n' + HEAD + QUICK, mutants=0))
        assert "setup.cfg" not in opened
        plain = entries(make(work, "seal_names = false\n" + HEAD + QUICK, mutants=0))
        assert set(plain) == {"tests"}

    def test_what_must_not_appear_is_sealed_as_absent(self, work: Path) -> None:
        head = 'must_not_appear = ["src/.mocharc.js", "conftest.py", "tests/x.py"]\n'
        made = make(work, head + HEAD + QUICK, mutants=0)
        found = entries(made)
        for name in ("src/.mocharc.js", "conftest.py"):
            assert found[name] == {"path": name, "kind": "directory", "sha256": EMPTY}
        assert "tests/x.py" not in found  # the folder protects it
        assert len(found) == len(json.loads(made.contract)["protected_paths"])
        (work / "conftest.py").write_text("")
        with pytest.raises(Refused) as caught:
            make(work, head + HEAD + QUICK, mutants=0)
        assert caught.value.code == "E_CONTRACT_SOURCE"
        assert caught.value.place is not None
        assert caught.value.place.path == "must_not_appear[1]"

    def test_what_the_commands_write_is_learnt(self, work: Path) -> None:
        (work / "tests" / "test_app.py").write_text(
            TESTS + "import os\nos.makedirs('tests/run-output/deep', exist_ok=True)\n"
            "open('tests/run-output/deep/log', 'w').close()\nopen('outside', 'w').close()\n"
        )
        made = make(work, HEAD + UNITTEST, mutants=0)
        assert set(entries(made)["tests"]["exclude"]) == {"__pycache__", "run-output"}
        assert made.seal["excludes_learnt"] == {"tests": ["__pycache__", "run-output"]}
        assert not (work / "outside").exists()

    def test_what_the_commands_write_into_the_packages_is_learnt_too(self, work: Path) -> None:
        (work / "node_modules" / "one").mkdir(parents=True)
        (work / "node_modules" / "one" / "package.json").write_text("{}")
        (work / "tests" / "test_app.py").write_text(
            TESTS + "import os\nos.makedirs('node_modules/.cache/one', exist_ok=True)\n"
            "open('node_modules/.cache/one/kept', 'w').close()\n"
        )
        made = make(work, HEAD + UNITTEST, mutants=0)
        assert set(entries(made)["node_modules"]["exclude"]) == {"__pycache__", ".cache"}
        assert ".cache" in made.seal["excludes_learnt"]["node_modules"]
        assert ".cache" in made.seal["excludes_empty"]["node_modules"]

    def test_an_exclude_is_empty_where_nothing_stood_at_sealing(self, work: Path) -> None:
        (work / "tests" / "golden").mkdir()
        (work / "tests" / "golden" / "value").write_text("2")
        head = HEAD.replace('path = "tests"', 'path = "tests"\nexclude = ["golden", "output"]', 1)
        for path in ("vendored.pyc", "tests/kept.pyc", "tests/golden/kept.pyc", "tests/__pycache__/kept.pyc"):
            (work / path).parent.mkdir(exist_ok=True)
            (work / path).write_text(path)
        made = make(work, head + UNITTEST, mutants=0)
        assert made.seal["excludes_empty"]["tests"] == ["__pycache__", "output"]
        # Bytecode in the place of a source is known, where nothing protects it.
        assert made.seal["bytecode"] == {
            path: hashlib.sha256(path.encode()).hexdigest() for path in ("vendored.pyc", "tests/golden/kept.pyc")
        }

    def test_what_the_commands_write_and_take_away_again_is_learnt(self, work: Path) -> None:
        (work / "tests" / "kept").write_text("x")
        (work / "tests" / "test_app.py").write_text(
            TESTS + "import os, shutil, tempfile\nos.makedirs('tests/compiled/deep')\n"
            "open('tests/compiled/deep/x', 'w').close()\nshutil.rmtree('tests/compiled')\n"
            "open('tests/kept', 'w').write('x')\ntempfile.NamedTemporaryFile(dir='tests').close()\n"
        )
        made = make(work, HEAD + UNITTEST, mutants=0)
        assert {"__pycache__", "compiled"} < set(entries(made)["tests"]["exclude"])
        assert "kept" not in entries(made)["tests"]["exclude"]
        assert any("itself writes to 'tests/kept'" in text for text in made.warnings)
        assert any("never the same, such as 'tests/tmp" in text for text in made.warnings)

    def test_excludes_of_the_file_come_first_and_stay(self, work: Path) -> None:
        (work / "tests" / "golden").mkdir()
        (work / "tests" / "golden" / "x").write_text("1")
        text = HEAD + 'exclude = ["golden"]\n' + UNITTEST
        made = make(work, text, mutants=0)
        assert entries(made)["tests"]["exclude"] == ["golden", "__pycache__"]
        (work / "tests" / "golden" / "x").write_text("2")
        assert changed_entries(entries_of(json.loads(made.contract)), snapshot(work).files) == []

    def test_a_run_that_changes_what_is_protected_is_told(self, work: Path) -> None:
        (work / "tests" / "test_app.py").write_text(TESTS + "open('tests/counter', 'a').write('x')\n")
        (work / "tests" / "counter").write_text("x")
        made = make(work, HEAD + UNITTEST, mutants=0)
        assert any("'tests/counter'" in line for line in made.warnings)

    def test_files_whose_times_a_run_sets_are_learnt_and_those_it_puts_back_are_told(self, work: Path) -> None:
        for name in ("page", "kept"):
            (work / "tests" / name).write_text("x")
        (work / "tests" / "test_app.py").write_text(
            TESTS + "import os\nos.utime('tests/page', (1, 1))\nopen('tests/kept', 'w').write('x')\n"
        )
        made = make(work, HEAD + UNITTEST, mutants=0)
        assert made.seal["times_set"] == ["tests/page"]
        assert any("'tests/kept'" in line for line in made.warnings)
        assert not any("'tests/page'" in line for line in made.warnings)

    def test_caches_that_stand_there_already_are_no_part_of_what_is_protected(self, work: Path) -> None:
        (work / "tests" / "__pycache__").mkdir()
        (work / "tests" / "__pycache__" / "x.pyc").write_bytes(b"stale")
        made = make(work, HEAD + UNITTEST, mutants=0)
        (work / "tests" / "__pycache__" / "x.pyc").write_bytes(b"other")
        assert changed_entries(entries_of(json.loads(made.contract)), snapshot(work).files) == []

    def test_an_unfinished_start_has_no_mutants_and_a_reference_has(self, work: Path, tmp_path: Path) -> None:
        reference = tmp_path / "finished"
        shutil.copytree(work, reference)
        (work / "app.py").write_text(BAD)
        alone = make(work, HEAD + UNITTEST)
        assert json.loads(alone.contract)["adequacy"] == {"mutants": 0, "killed": 0}
        assert "--reference" in alone.seal["adequacy"]["reason"]
        assert any("no receipt under this contract can be supported" in line for line in alone.warnings)
        made = make(work, HEAD + UNITTEST, reference=reference)
        assert json.loads(made.contract)["adequacy"]["killed"] >= 1
        assert made.seal["reference"]["kind"] == "folder"
        assert made.warnings == ()

    def test_the_reference_is_judged_by_the_workspaces_own_tests(self, work: Path, tmp_path: Path) -> None:
        """A reference that brings easier tests must not lend its adequacy to these."""
        reference = tmp_path / "finished"
        shutil.copytree(work, reference)
        (reference / "tests" / "test_app.py").write_text("import unittest\nraise SystemExit(1)\n")
        made = make(work, HEAD + UNITTEST, reference=reference)
        assert made.seal["commands"][0]["passes"]
        assert json.loads(made.contract)["adequacy"]["killed"] >= 1

    def test_a_reference_on_which_nothing_passes_is_told(self, work: Path, tmp_path: Path) -> None:
        reference = tmp_path / "unfinished"
        shutil.copytree(work, reference)
        (reference / "app.py").write_text(BAD)
        made = make(work, HEAD + UNITTEST, reference=reference)
        assert json.loads(made.contract)["adequacy"] == {"mutants": 0, "killed": 0}
        assert any("does not pass on the reference" in line for line in made.warnings)

    def test_a_suite_without_tests_is_told(self, work: Path) -> None:
        (work / "tests" / "test_app.py").write_text("import unittest\n")
        made = make(work, HEAD + UNITTEST)
        assert any("executes no test" in line for line in made.warnings)
        assert json.loads(made.contract)["adequacy"] == {"mutants": 0, "killed": 0}

    def test_a_program_that_does_not_start_refuses(self, work: Path) -> None:
        text = HEAD + '[[acceptance]]\nid = "x"\nargv = ["no-such-program"]\n'
        with pytest.raises(Refused) as caught:
            make(work, text)
        assert caught.value.code == "E_ACCEPTANCE_NOT_STARTED"

    def test_stale_bytecode_of_the_workspace_does_not_decide(self, work: Path) -> None:
        (work / "app.py").write_text(GOOD)
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        subprocess.run(["python3", "-c", "import app"], cwd=work, env=clean, check=True)
        times = (work / "app.py").stat()
        (work / "app.py").write_text(BAD)
        os.utime(work / "app.py", ns=(times.st_atime_ns, times.st_mtime_ns))
        made = make(work, HEAD + UNITTEST)
        assert made.seal["commands"][0]["exits"] == [1, 1]

    def test_progress_tells_every_stage(self, work: Path) -> None:
        told: list[tuple[str, int, int]] = []
        make(work, HEAD + UNITTEST, mutants=2, progress=lambda *words: told.append(words))
        assert [stage for stage, done, _ in told if stage == "running mutants" and done == 2]
        assert all(0 <= done <= total for _, done, total in told)


# --- what does not fit the tree (nothing is run) ---

MISFITS = {
    "absent": ('[[protect]]\npath = "test"\n', "does not exist", "tests"),
    "excluding below a file": ('[[protect]]\npath = "app.py"\nexclude = ["x"]\n', "is a file", ""),
    "a link": ('[[protect]]\npath = "link"\n', "symbolic link", ""),
    "beneath a link": ('[[protect]]\npath = "link/test_app.py"\n', "symbolic link", ""),
}


@pytest.mark.parametrize("name", MISFITS)
def test_protected_paths_that_do_not_fit(work: Path, name: str) -> None:
    text, words, hint = MISFITS[name]
    (work / "link").symlink_to("tests")
    with pytest.raises(Refused, match=words) as caught:
        make(work, text + UNITTEST)
    assert caught.value.code == "E_CONTRACT_SOURCE"
    assert caught.value.place is not None
    assert caught.value.place.path == "protect[0].path"
    assert hint in str(caught.value.remedy)


def test_names_that_no_digest_covers_are_refused(work: Path) -> None:
    with open(os.path.join(os.fsencode(work), b"tests", b"\xff.py"), "wb"):
        pass
    with pytest.raises(Refused, match="no digest can cover"):
        make(work, HEAD + UNITTEST)


# --- references ---


def _git(folder: Path, *words: str) -> None:
    identity = ["-c", "user.name=n", "-c", "user.email=n@example.invalid", "-c", "init.defaultBranch=main"]
    subprocess.run(["git", *identity, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def repository(work: Path) -> Path:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    (work / "run.sh").write_text("#!/bin/sh\n")
    (work / "run.sh").chmod(0o755)
    (work / "link").symlink_to("app.py")
    _git(work, "init")
    _git(work, "add", ".")
    _git(work, "commit", "-m", "finished")
    _git(work, "tag", "good")
    (work / "app.py").write_text(BAD)
    _git(work, "commit", "-am", "unfinished")
    return work


def test_a_revision_is_laid_out_as_it_was(repository: Path, tmp_path: Path) -> None:
    origin = materialise("good", repository, tmp_path / "a")
    assert origin["kind"] == "revision"
    assert len(origin["commit"]) == 40
    assert (tmp_path / "a" / "app.py").read_text() == GOOD
    assert (tmp_path / "a" / "run.sh").stat().st_mode & 0o100
    assert (tmp_path / "a" / "link").is_symlink()
    assert not (tmp_path / "a" / ".git").exists()
    materialise("HEAD", repository, tmp_path / "b")
    assert (tmp_path / "b" / "app.py").read_text() == BAD


def test_a_workspace_within_a_repository_takes_its_own_part(repository: Path, tmp_path: Path) -> None:
    materialise("good", repository / "tests", tmp_path / "a")
    assert sorted(os.listdir(tmp_path / "a")) == ["__init__.py", "test_app.py"]


@pytest.mark.parametrize("word", ["nosuch", "--output=pwned", "-h", "good:app.py", ""])
def test_what_is_no_reference_is_refused(repository: Path, tmp_path: Path, word: str) -> None:
    if word == "":
        word = "good^{tree}"
    with pytest.raises(Refused) as caught:
        materialise(word, repository, tmp_path / "a")
    assert caught.value.code == "E_REFERENCE"
    assert not (tmp_path / "pwned").exists()
    assert not (repository / "pwned").exists()


@needs_observer
@pytest.mark.observer
def test_sealing_with_a_revision(repository: Path) -> None:
    made = make(repository, HEAD + UNITTEST, reference="good")
    assert json.loads(made.contract)["adequacy"]["killed"] >= 1
    assert made.seal["reference"]["kind"] == "revision"


# --- writing ---


def _sealed(text: bytes) -> Sealed:
    return Sealed(text, b"statement\n", {"schema_version": "troth-seal/v1"}, ())


def test_another_contract_is_replaced_only_when_told(tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    assert write_sealed(_sealed(b"one"), out) == out / "contract.json"
    write_sealed(_sealed(b"one"), out)
    with pytest.raises(Refused) as caught:
        write_sealed(_sealed(b"two"), out)
    assert caught.value.code == "E_CONTRACT_EXISTS"
    assert (out / "contract.json").read_bytes() == b"one"
    write_sealed(_sealed(b"two"), out, replace_other=True)
    assert (out / "contract.json").read_bytes() == b"two"
    assert sorted(os.listdir(out)) == ["contract.json", "seal.json", "statement.json"]


def test_a_folder_that_cannot_be_written_refuses(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Refused) as caught:
        write_sealed(_sealed(b"one"), tmp_path / "file" / "out")
    assert caught.value.code == "E_CONTRACT_WRITE"


@needs_observer
@pytest.mark.observer
def test_from_file_to_folder(work: Path, tmp_path: Path) -> None:
    source = tmp_path / "c.toml"
    source.write_text(HEAD + UNITTEST)
    written = seal_contract(work, source, tmp_path / "out", mutants=1)
    assert records.contract(parse(written.read_bytes(), "contract"))["contract_id"] == "c"
