"""What an entry protects and when it is changed (done records §7.1), and the names that are sealed with it (§13.4)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from troth.core.digests import EMPTY, sha256_hex, tree_digest
from troth.observer.autoload import environment_entries, names_to_seal, sealed_entries
from troth.observer.learning import Written, learn_excludes, not_freed, written_between
from troth.observer.protected import Entry, changed, changed_entries, directory_digest, entries_of, unmet_entries
from troth.receipts.checks import Guard

A, B = sha256_hex(b"a"), sha256_hex(b"b")
FILES = {"tests/a.py": A, "tests/sub/b.py": B, "tests2/a.py": A, "src/app.py": B}


def test_a_folder_protects_what_lies_beneath_it_only() -> None:
    entry = Entry("tests", "directory", EMPTY, ("cache",))
    assert entry.protects("tests")
    assert entry.protects("tests/a.py")
    assert not entry.protects("tests2/a.py")
    assert not entry.protects("tests/cache")
    assert not entry.protects("tests/x/cache/y")
    assert entry.protects("tests/cache2/y")
    assert not entry.protects("Tests/a.py")


def test_directory_digests_use_full_names() -> None:
    assert directory_digest("tests", (), FILES) == tree_digest({"tests/a.py": A, "tests/sub/b.py": B})
    assert directory_digest("tests", ("sub",), FILES) == tree_digest({"tests/a.py": A})
    assert directory_digest("absent", (), FILES) == EMPTY


def test_planted_changed_and_missing_files_change_an_entry() -> None:
    entry = Entry("tests", "directory", directory_digest("tests", ("c",), FILES), ("c",))
    assert not changed(entry, FILES)
    assert not changed(entry, {**FILES, "tests/c/x": B, "tests2/new": A})
    assert changed(entry, {**FILES, "tests/new.py": A})
    assert changed(entry, {**FILES, "tests/a.py": B})
    assert changed(entry, {name: digest for name, digest in FILES.items() if name != "tests/a.py"})
    file = Entry("tests/a.py", "file", A)
    assert not changed(file, FILES)
    assert changed(file, {**FILES, "tests/a.py": B})
    assert changed(file, {})


def test_a_sealed_absence_is_changed_by_anything_beneath_it_that_a_tree_shows() -> None:
    entry = Entry("conftest.py", "directory", EMPTY)
    assert entry.seals_absence
    assert not changed(entry, FILES)
    # A file of that very name stands at the path and not beneath it: its creation is what contradicts (§13.4).
    assert not changed(entry, {**FILES, "conftest.py": A})
    assert entry.protects("conftest.py")
    assert changed(entry, {**FILES, "conftest.py/x": A})
    assert unmet_entries([entry], FILES) == []
    assert unmet_entries([entry], {**FILES, "conftest.py": A}) == [entry]
    assert unmet_entries([entry], FILES, {"conftest.py"}) == [entry]


_NAMES = st.lists(st.sampled_from(["a", "b", "c", "ab", "a.py"]), min_size=1, max_size=4).map("/".join)
_ENTRIES = st.lists(
    st.builds(
        Entry,
        _NAMES,
        st.sampled_from(["file", "directory"]),
        st.sampled_from([A, B, EMPTY]),
        st.just(()),
    ).flatmap(
        lambda entry: (
            st.just(entry)
            if entry.kind == "file"
            else st.lists(st.sampled_from(["a", "c"]), unique=True, max_size=2).map(
                lambda names: Entry(entry.path, "directory", entry.sha256, tuple(names))
            )
        )
    ),
    max_size=4,
    unique_by=lambda entry: entry.path,
)


@given(_ENTRIES, st.dictionaries(_NAMES, st.sampled_from([A, B]), max_size=8), st.booleans())
def test_the_writer_and_the_reader_of_contracts_agree(
    entries: list[Entry], files: dict[str, str], sealed_now: bool
) -> None:
    """What sealing calls changed or protected is what the receipts' reader calls so."""
    if sealed_now:
        entries = [
            Entry(it.path, it.kind, directory_digest(it.path, it.exclude, files), it.exclude)
            if it.kind == "directory"
            else Entry(it.path, "file", files.get(it.path, A))
            for it in entries
        ]
    contract = {"protected_paths": [entry.as_json() for entry in entries]}
    assert list(entries_of(contract)) == entries
    guard = Guard(contract)
    assert [entry.path for entry in changed_entries(entries, files)] == [it["path"] for it in guard.changed(files)]
    for name in files:
        assert any(entry.protects(name) for entry in entries) == (guard.protecting(name) is not None)


# --- learning what an honest run writes ---


def test_what_a_run_writes_becomes_an_excluded_segment() -> None:
    entry = Entry("tests", "directory", EMPTY)
    after = {**FILES, "tests/__pycache__/a.pyc": A, "tests/sub/__pycache__/b.pyc": B, "src/out": A}
    learnt, left, touched = learn_excludes([entry], FILES, written_between(FILES, after))
    assert learnt[0].exclude == ("__pycache__",)
    assert (left, touched) == ([], [])
    assert not learnt[0].protects("tests/sub/__pycache__/b.pyc")


def test_a_segment_that_stands_for_a_protected_file_is_never_taken() -> None:
    files = {"tests/data/real.json": A, "tests/sub/t.py": B}
    entry = Entry("tests", "directory", EMPTY)
    learnt, left, _ = learn_excludes([entry], files, written_between(files, {**files, "tests/sub/data/out": A}))
    assert learnt[0].exclude == ("out",)
    assert learnt[0].protects("tests/data/real.json")
    learnt, left, _ = learn_excludes([entry], files, written_between(files, {**files, "tests/sub/data/t.py": A}))
    assert learnt[0].exclude == ()
    assert left == ["tests/sub/data/t.py"]


def test_protected_files_that_a_run_changes_are_told() -> None:
    entry = Entry("tests", "directory", EMPTY)
    _, _, touched = learn_excludes([entry], FILES, written_between(FILES, {**FILES, "tests/a.py": B}))
    assert touched == ["tests/a.py"]
    _, _, touched = learn_excludes([entry], FILES, written_between(FILES, FILES, seen=["tests/a.py", "src"]))
    assert touched == ["tests/a.py"]


def test_what_is_gone_after_the_run_is_learnt_too_and_a_name_no_contract_can_hold_is_not() -> None:
    entry = Entry("tests", "directory", EMPTY)
    written = written_between(FILES, FILES, seen=["tests/made", "tests/made/x.py", "tests/\udcff"])
    learnt, left, touched = learn_excludes([entry], FILES, written)
    assert (learnt[0].exclude, left, touched) == (("made",), [], [])


def test_names_that_are_another_each_time_are_found() -> None:
    first, second = ({"tests/out", f"tests/tmp{number}", "log"} for number in range(2))
    learnt, _, _ = learn_excludes([Entry("tests", "directory", EMPTY)], FILES, Written(made=frozenset(first)))
    assert not_freed(learnt, first) == []
    assert not_freed(learnt, second) == ["tests/tmp1"]


@given(st.dictionaries(_NAMES, st.just(A), max_size=6), st.dictionaries(_NAMES, st.just(B), max_size=6), st.just("a"))
def test_learning_frees_new_names_and_unprotects_no_old_one(old: dict[str, str], new: dict[str, str], top: str) -> None:
    entry = Entry(top, "directory", EMPTY)
    learnt, left, _ = learn_excludes([entry], old, written_between(old, {**new, **old}))
    for name in old:
        assert learnt[0].protects(name) == entry.protects(name)
    for name in set(new) - set(old) - {top}:
        assert not learnt[0].protects(name) or name in left


# --- names loaded by themselves ---

PYTEST = (["python", "-m", "pytest", "-q", "pkg/tests"], "pytest")
UNITTEST = (["python", "-m", "unittest"], "unittest")


def test_a_pytest_contract_seals_root_and_parents_of_the_test_paths() -> None:
    files = {"pkg/tests/test_a.py": A, "pkg/mod.py": B, "pyproject.toml": A, "other/x.py": B}
    protected = [Entry("pkg/tests", "directory", EMPTY)]
    names = names_to_seal([PYTEST], files, protected)
    for name in ("conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "sitecustomize.py", "usercustomize.py",
                 "pkg/conftest.py", "pkg/pytest.ini", "pyproject.toml", "pytest.py", "_pytest"):  # fmt: skip
        assert name in names
    assert "other/conftest.py" not in names
    assert not any(name.startswith("pkg/tests/") for name in names)
    entries = {entry.path: entry for entry in sealed_entries(names, files, ())}
    assert entries["pyproject.toml"] == Entry("pyproject.toml", "file", A)
    assert entries["conftest.py"] == Entry("conftest.py", "directory", EMPTY)


def test_without_a_path_pytest_meets_every_folder() -> None:
    files = {"src/app.py": A, "tests/test_a.py": B}
    names = names_to_seal([(["pytest"], "pytest")], files, [Entry("tests", "directory", EMPTY)])
    assert "src/conftest.py" in names


def test_the_settings_of_cargo_and_go_are_sealed_as_they_are() -> None:
    files = {"rust-toolchain": A, "src/lib.rs": B}
    names = names_to_seal([(["cargo", "test"], "cargo"), (["go", "test"], "go")], files, [])
    entries = {entry.path: entry for entry in sealed_entries(names, files, ())}
    assert entries["rust-toolchain"] == Entry("rust-toolchain", "file", A)
    for name in (".cargo/config.toml", ".cargo/config", "rust-toolchain.toml", "go.work"):
        assert entries[name] == Entry(name, "directory", EMPTY)
    assert not any(name.startswith(".cargo") for name in names_to_seal([PYTEST], files, []))


def test_a_unittest_contract_leaves_ordinary_settings_alone() -> None:
    files = {"setup.cfg": A, "pyproject.toml": B, "tests/test_a.py": A}
    names = names_to_seal([UNITTEST], files, [Entry("tests", "directory", EMPTY)])
    assert "setup.cfg" not in names
    assert "pyproject.toml" not in names
    assert {"sitecustomize.py", "usercustomize.py", "unittest.py", "unittest", "conftest.py", "tox.ini"} <= set(names)


def test_a_project_that_is_the_runner_itself_keeps_its_packages() -> None:
    files = {"_pytest/main.py": A, "pytest.py": B, "tests/test_a.py": A}
    names = names_to_seal([(["pytest", "tests"], "pytest")], files, [Entry("tests", "directory", EMPTY)])
    assert "_pytest" not in names
    assert "pytest.py" not in names
    assert "pluggy" in names


def test_names_can_be_left_open() -> None:
    names = names_to_seal([PYTEST], {"pyproject.toml": A}, [])
    sealed = [entry.path for entry in sealed_entries(names, {"pyproject.toml": A}, ("pyproject.toml",))]
    assert "pyproject.toml" not in sealed
    assert "conftest.py" in sealed


def test_an_environment_in_the_workspace_is_sealed_whole() -> None:
    files = {".venv/pyvenv.cfg": A, ".venv/lib/python3.11/site-packages/x.py": B, "src/a.py": A}
    (entry,) = environment_entries(files, [], ())
    assert (entry.path, entry.exclude) == (".venv", ("__pycache__",))
    assert not changed(entry, files)
    assert changed(entry, {**files, ".venv/lib/python3.11/site-packages/evil.pth": A})
    assert environment_entries(files, [], (".venv",)) == []
