"""The fuzzing room: a quick pass over every reader; `python fuzz/run.py` is the long one."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the room rests on timers and limits of POSIX")
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

if sys.platform != "win32":
    from fuzz import page, seeds
    from fuzz.engine import Reader, fuzz, kept
    from fuzz.mutate import seed_of
    from fuzz.readers import READERS

    FLOORS = json.loads((ROOT / "fuzz" / "floors.json").read_bytes())
    BY_NAME = {one.name: one for one in READERS}
    if not BY_NAME["ledger/timestamp"].seeds():
        raise FileNotFoundError("the recorded seeds")


NEEDS = {
    "ledger/timestamp": ("rfc3161_client", "timestamps"), "backends/openai": ("openai", "models"),
    "backends/anthropic": ("anthropic", "models"), "project/sources": ("tree_sitter_rust", "languages"),
    "lab": ("re2", "lab"),
}  # fmt: skip
"""A reader, or a room -> the module that it needs, and the extra that has it."""


@pytest.fixture(autouse=True)
def own_seeds_alone() -> None:
    """What is published may stand beside the project or not; the floors are those of its own seeds."""
    seeds.own_alone()


@pytest.mark.parametrize("name", BY_NAME if sys.platform != "win32" else ())
def test_a_reader_survives_and_tells_good_from_bad(name: str, tmp_path: Path) -> None:
    module, extra = NEEDS.get(name) or NEEDS.get(name.split("/", maxsplit=1)[0], ("json", ""))
    pytest.importorskip(module, reason=f"the extra `{extra}` is not installed")
    reader = BY_NAME[name]
    result = fuzz(reader, reader.few, 1)
    assert not result.faults, [(one.what, kept(tmp_path, name, one)) for one in result.faults]
    assert result.accepted > 0, "it accepts nothing: the seeds are no good, or the reader is not"
    assert result.codes, "it refuses nothing"
    assert result.reached >= FLOORS[name], f"{result.reached} edges of {result.possible}"


def test_every_reader_has_a_floor() -> None:
    assert FLOORS.keys() == BY_NAME.keys()
    assert min(FLOORS.values()) > 0


def test_the_page_is_what_the_recorded_runs_came_to() -> None:
    assert page.page() == page.PAGE.read_text(encoding="utf-8"), "make it anew: python fuzz/page.py"


def test_every_recorded_run_is_of_a_reader_and_without_a_fault() -> None:
    files = sorted(page.RESULTS.glob("*.json"))
    assert len(files) == len(page.results()) > 0, "a file that no reader's name leads to"
    for file in files:
        found = json.loads(file.read_bytes())
        assert found["name"] in BY_NAME
        assert file.stem == found["name"].replace("/", "-")
        assert found["faults"] == [], file.name
        assert not [code for code in found["codes"] if code.startswith("!")], file.name
        assert 0 < found["accepted"] < found["inputs"], file.name
        assert found["accepted"] + sum(found["codes"].values()) == found["inputs"], file.name
        assert 0 < found["reached"] <= found["possible"], file.name


# --- the room finds what it is there to find ---


def _reader(entry: object) -> Reader:
    return Reader("test/one", entry, lambda: [b'{"a": [1, "x"], "b": {"c": 2}}'], ("troth.core.strictjson",))  # type: ignore[arg-type] # each of them reads bytes


def test_an_uncoded_exception_is_found_and_made_small() -> None:
    def entry(data: bytes) -> None:
        if b"null" in data:
            raise KeyError("x")

    result = fuzz(_reader(entry), 2000, 1)
    assert [one.data for one in result.faults] == [b"null"]
    assert result.faults[0].what.startswith("KeyError at test_fuzz.py:")


def test_a_hang_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fuzz.engine.HANG", 1)

    def entry(data: bytes) -> None:
        while data.endswith(b"}}]"):
            pass

    seeded = Reader("test/hang", entry, lambda: [b"[{}}]"], ("troth.core.strictjson",))
    result = fuzz(seeded, 1, 1)
    assert [one.what.split(" ")[0] for one in result.faults] == ["Hang"]


def test_new_edges_make_new_seeds() -> None:
    """Three bytes in a row are hardly met by chance alone; step by step they are."""
    from troth.core.strictjson import RECORD, loads

    result = fuzz(
        Reader("test/two", lambda data: (loads(data, RECORD), None)[1], lambda: [b"[1]"], ("troth.core.strictjson",)),
        600,
        1,
    )
    assert result.kept > 3
    assert 0 < result.accepted < 600


def test_the_same_seed_makes_the_same_inputs() -> None:
    def run(seed: int) -> list[bytes]:
        seen: list[bytes] = []
        fuzz(_reader(seen.append), 50, seed)
        return seen

    assert run(1) == run(1) != run(2)


def test_spans_are_found() -> None:
    data = b'{"a": [1, {"b": "x\\"y"}], "c": null}\n{"d": 2}\n'
    seed = seed_of(data)
    assert {data[start:end] for start, end in seed.names} == {b'"a"', b'"b"', b'"c"', b'"d"'}
    assert {b"1", b'{"b": "x\\"y"}', b'[1, {"b": "x\\"y"}]', b"null"} <= {data[start:end] for start, end in seed.values}
    assert {b'"a": [1, {"b": "x\\"y"}]', b'"c": null'} <= {data[start:end] for start, end in seed.members}
    assert b"".join(data[start:end] for start, end in seed.lines) == data


def test_the_command_prints_a_line_a_reader() -> None:
    words = ["--reader", "hooks/pushes", "--reader", "knowledge", "--inputs", "60", "--json"]
    done = subprocess.run(
        [sys.executable, str(ROOT / "fuzz" / "run.py"), *words], capture_output=True, text=True, check=True, timeout=120
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["name"] for one in told] == [
        "knowledge/concept",
        "knowledge/projected",
        "knowledge/manifest",
        "hooks/pushes",
    ]
    assert all(one["inputs"] == 60 and one["faults"] == [] and one["reached"] > 0 for one in told)
