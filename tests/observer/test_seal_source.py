"""The contract file: what is accepted, what is refused and where."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.core.errors import Refused
from troth.observer.contract_source import (
    DEFAULT_MUTANTS,
    MAX_SOURCE,
    Acceptance,
    Protect,
    RunLimits,
    folder_name,
    parse_source,
    read_source,
)

COMMAND = '[[acceptance]]\nid = "suite"\nargv = ["python", "-m", "pytest"]\n'

WHOLE = """
task = "make it so"
contract_id = "folded-lines"
seal_names = false
leave_open = ["pyproject.toml"]

[[protect]]
path = "tests/"
exclude = ["snapshots", "out put"]

[[protect]]
path = "data/golden.json"

[[acceptance]]
id = "suite"
argv = ["python", "-m", "pytest", ""]

[[acceptance]]
id = "lint"
argv = ["ruff", "check"]

[adequacy]
mutants_in = ["src", "lib/core.py"]
max = 7

[limits]
seconds = 1.5
memory_mb = 64
processes = 9
output_mb = 2
file_mb = 3
"""


def test_every_member_is_read() -> None:
    source = parse_source(WHOLE.encode(), "c.toml")
    assert source.task == "make it so"
    assert source.contract_id == "folded-lines"
    assert source.seal_names is False
    assert source.leave_open == ("pyproject.toml",)
    assert source.protect == (Protect("tests", ("snapshots", "out put")), Protect("data/golden.json"))
    assert source.acceptance == (
        Acceptance("suite", ("python", "-m", "pytest", "")),
        Acceptance("lint", ("ruff", "check")),
    )
    assert source.mutants_in == ("src", "lib/core.py")
    assert source.mutants_max == 7
    assert source.limits == RunLimits(1.5, 64 << 20, 9, 2 << 20, 3 << 20)


def test_the_least_contract_has_the_documented_defaults() -> None:
    source = parse_source(COMMAND.encode(), "folder/my contract.toml")
    assert re.fullmatch(r"my-contract-[0-9a-f]{8}", source.contract_id)
    assert (source.task, source.protect, source.leave_open, source.mutants_in) == (None, (), (), None)
    assert source.seal_names is True
    assert source.mutants_max == DEFAULT_MUTANTS
    assert source.limits == RunLimits()


def test_the_default_id_follows_the_bytes() -> None:
    one, two = (parse_source(text.encode(), "c.toml").contract_id for text in (COMMAND, COMMAND + "\n"))
    assert one != two
    assert one == parse_source(COMMAND.encode(), "elsewhere/c.toml").contract_id


REFUSED = {
    "unknown key": ("colour = 1\n" + COMMAND, "colour", "is not a key"),
    "unknown key of an entry": ('[[protect]]\npath="a"\nkind="file"\n' + COMMAND, "protect[0].kind", "is not a key"),
    "unknown limit": (COMMAND + "[limits]\nhours=1\n", "limits.hours", "is not a key"),
    "unknown adequacy": (COMMAND + "[adequacy]\nkilled=9\n", "adequacy.killed", "is not a key"),
    "no command": ('task="x"\n', "acceptance", "is missing"),
    "empty commands": ("acceptance = []\n", "acceptance", "is empty"),
    "one table": ('[acceptance]\nid="a"\nargv=["a"]\n', "acceptance", "is not an array"),
    "no tables": ("acceptance = [1]\n", "acceptance[0]", "is not a table"),
    "no argv": ('[[acceptance]]\nid="a"\n', "acceptance[0].argv", "is missing"),
    "argv a text": ('[[acceptance]]\nid="a"\nargv="pytest -q"\n', "acceptance[0].argv", "is not an array"),
    "argv empty": ('[[acceptance]]\nid="a"\nargv=[]\n', "acceptance[0].argv", "is not an array"),
    "argv of numbers": ('[[acceptance]]\nid="a"\nargv=["a",1]\n', "acceptance[0].argv[1]", "is not a text"),
    "argv with a NUL": ('[[acceptance]]\nid="a"\nargv=["a\\u0000"]\n', "acceptance[0].argv[0]", "NUL"),
    "empty program": ('[[acceptance]]\nid="a"\nargv=["", "x"]\n', "acceptance[0].argv[0]", "is empty"),
    "empty id": ('[[acceptance]]\nid=""\nargv=["a"]\n', "acceptance[0].id", "is not a text"),
    "id twice": (COMMAND + COMMAND, "acceptance[1].id", "stands twice"),
    "absolute": ('[[protect]]\npath="/etc"\n' + COMMAND, "protect[0].path", "is absolute"),
    "absolute elsewhere": ('[[protect]]\npath="C:/x"\n' + COMMAND, "protect[0].path", "is absolute"),
    "climbing": ('[[protect]]\npath="a/../../b"\n' + COMMAND, "protect[0].path", "climbs out"),
    "climbing at once": ('[[protect]]\npath=".."\n' + COMMAND, "protect[0].path", "climbs out"),
    "the workspace itself": ('[[protect]]\npath="."\n' + COMMAND, "protect[0].path", "segment"),
    "empty segment": ('[[protect]]\npath="a//b"\n' + COMMAND, "protect[0].path", "segment"),
    "two slashes at the end": ('[[protect]]\npath="a//"\n' + COMMAND, "protect[0].path", "segment"),
    "a pattern": ('[[protect]]\npath="tests/**"\n' + COMMAND, "protect[0].path", "is a pattern"),
    "outside the tree": ('[[protect]]\npath=".mentu/x"\n' + COMMAND, "protect[0].path", "no part of the tree"),
    "no path": ('[[protect]]\nexclude=["a"]\n' + COMMAND, "protect[0].path", "is missing"),
    "path twice": ('[[protect]]\npath="a"\n[[protect]]\npath="a/"\n' + COMMAND, "protect[1].path", "protected twice"),
    "exclude a path": ('[[protect]]\npath="a"\nexclude=["b/c"]\n' + COMMAND, "protect[0].exclude[0]", "one segment"),
    "exclude dots": ('[[protect]]\npath="a"\nexclude=[".."]\n' + COMMAND, "protect[0].exclude[0]", "one segment"),
    "exclude twice": ('[[protect]]\npath="a"\nexclude=["b","b"]\n' + COMMAND, "protect[0].exclude[1]", "stands twice"),
    "mutants outside": (COMMAND + '[adequacy]\nmutants_in=["../src"]\n', "adequacy.mutants_in[0]", "climbs out"),
    "mutants negative": (COMMAND + "[adequacy]\nmax=-1\n", "adequacy.max", "no whole number"),
    "mutants true": (COMMAND + "[adequacy]\nmax=true\n", "adequacy.max", "no whole number"),
    "seconds zero": (COMMAND + "[limits]\nseconds=0\n", "limits.seconds", "no number"),
    "seconds endless": (COMMAND + "[limits]\nseconds=inf\n", "limits.seconds", "no number"),
    "seconds none": (COMMAND + "[limits]\nseconds=nan\n", "limits.seconds", "no number"),
    "a flag as a word": ('seal_names="no"\n' + COMMAND, "seal_names", "neither true nor false"),
    "a task of nothing": ('task=""\n' + COMMAND, "task", "is not a text"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_file_place_and_remedy(name: str) -> None:
    text, path, words = REFUSED[name]
    with pytest.raises(Refused, match=re.escape(words)) as caught:
        parse_source(text.encode(), "here/c.toml")
    fault = caught.value
    assert fault.code == "E_CONTRACT_SOURCE"
    assert fault.place is not None
    assert (fault.place.file, fault.place.path) == ("here/c.toml", path)
    assert fault.remedy
    assert fault.exit_code == 2


def test_broken_toml_names_its_line_in_one_line() -> None:
    with pytest.raises(Refused) as caught:
        parse_source(b'task = "a"\ntask = "b"\n', "c.toml")
    assert caught.value.code == "E_CONTRACT_SOURCE"
    assert caught.value.place is not None
    assert caught.value.place.line == 2
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a = " + b"[" * 9000, b"x = 1" + b"0" * 5000, b"#" * (MAX_SOURCE + 1)])
def test_what_cannot_be_parsed_is_refused_not_raised(data: bytes) -> None:
    with pytest.raises(Refused) as caught:
        parse_source(data, "c.toml")
    assert caught.value.code == "E_CONTRACT_SOURCE"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    import os

    os.mkfifo(tmp_path / "pipe")
    for where in (tmp_path / "absent.toml", tmp_path, tmp_path / "pipe"):
        with pytest.raises(Refused) as caught:
            read_source(where)
        assert caught.value.code == "E_CONTRACT_SOURCE"
    (tmp_path / "c.toml").write_text(COMMAND)
    assert read_source(tmp_path / "c.toml").acceptance[0].id == "suite"


@given(st.text(min_size=1, max_size=120))
def test_folder_names_are_harmless_and_differ(identity: str) -> None:
    name = folder_name(identity)
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,100}", name)
    assert name.strip(".-") == name
    assert folder_name(identity + "/") != name


_LINES = st.sampled_from(
    [*WHOLE.splitlines(), 'path = "../x"', "max = 0", "[[protect]]", "[[acceptance]]", 'id = "z"', "[limits]", "= 1"]
)


def test_fuzzed_files_are_accepted_or_refused_with_the_code() -> None:
    """Whatever the lines, the reader answers; both answers occur."""
    seen = {"accepted": 0, "refused": 0}
    codes: set[str] = set()
    whole = WHOLE.splitlines()

    @given(st.lists(st.tuples(st.integers(0, len(whole) - 1), _LINES), max_size=2), st.integers(0, len(whole)))
    def fuzz(edits: list[tuple[int, str]], cut: int) -> None:
        lines = list(whole)
        for at, line in edits:
            lines[at] = line
        text = "\n".join(lines[: cut or None])
        try:
            source = parse_source(text.encode(), "c.toml")
        except Refused as fault:
            codes.add(fault.code)
            seen["refused"] += 1
        else:
            assert source.acceptance
            assert tomllib.loads(text)["acceptance"][0]["id"] == source.acceptance[0].id
            seen["accepted"] += 1

    fuzz()
    assert codes == {"E_CONTRACT_SOURCE"}
    print(f"accepted {seen['accepted']} of {sum(seen.values())}")
    assert min(seen.values()) > 0


@given(st.binary(max_size=200))
def test_any_bytes_are_answered(data: bytes) -> None:
    # No command can be written in so few random bytes, so each is refused, and by nothing but a refusal.
    with pytest.raises(Refused) as caught:
        parse_source(data, "c.toml")
    assert caught.value.code == "E_CONTRACT_SOURCE"


@given(
    st.builds(
        RunLimits,
        seconds=st.floats(0.1, 1000),
        memory_bytes=st.integers(1, 1 << 40),
        processes=st.integers(1, 1000),
        output_bytes=st.integers(1, 1 << 30),
        file_bytes=st.integers(1, 1 << 40),
    )
)
def test_limits_survive_the_seal(limits: RunLimits) -> None:
    assert RunLimits.from_json(limits.as_json()) == limits


def test_limits_of_a_damaged_seal_are_the_defaults() -> None:
    assert RunLimits.from_json(None) == RunLimits()
    assert RunLimits.from_json({"seconds": "no", "processes": True, "memory_bytes": -1}) == RunLimits()
