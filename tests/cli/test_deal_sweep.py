"""``troth deal sweep``: what it takes, what it tells, and what is refused."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path
from typing import NamedTuple

import pytest

from troth.cli.main import main
from troth.deals.codes import LABELS

SMALL = """\
name = "small"
deals = 20
chunk = 50
counterparties = ["honest", "withholding"]
agents = ["cooperative", "rejecting"]
[[offers]]
name = "cash"
"""


class Told(NamedTuple):
    exit: int
    out: str
    err: str


def sweep(*words: str) -> Told:
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        status = main(["deal", "sweep", *words])
    return Told(status, out.getvalue(), err.getvalue())


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.toml").write_text(SMALL)
    return tmp_path / "small.toml"


def test_a_sweep_is_told_with_its_labels_and_lies_beside_its_configuration(config):
    told = sweep("small.toml")
    assert told.exit == 0, told.err
    for label in LABELS:
        assert label in told.out
    assert "80 deals of 4 combinations" in told.out
    assert "withholding × cooperative × cash × none" in told.out
    assert "ends      breached(C:withhold_payout_after_pass) 20" in told.out
    assert sorted(path.name for path in (config.parent / "small").iterdir()) == [
        "results.parquet",
        "summary.json",
        "sweep.json",
    ]
    again = sweep("small.toml", "--json")
    found = json.loads(again.out)
    assert found["found"] == found["deals"] == 80
    assert found["labels"] == list(LABELS)
    assert found["results_sha256"] in told.out
    assert "experimental" in again.err


def test_the_example_is_a_configuration_that_is_read(config):
    told = sweep("--example")
    assert told.exit == 0
    assert told.out.startswith("# A sweep of simulated deals")
    Path("example.toml").write_text(told.out.replace("deals = 250", "deals = 3"))
    assert json.loads(sweep("example.toml", "--json").out)["deals"] == 16 * 2 * 3


def test_the_schema_is_one_object(config):
    told = sweep("--schema")
    assert told.exit == 0
    assert json.loads(told.out)["title"] == "A sweep of simulated deals"


def test_a_chunk_that_was_spoilt_is_told(config, monkeypatch):
    from troth.lab import sweeping

    monkeypatch.setattr(sweeping, "join", lambda folder: (_ for _ in ()).throw(KeyboardInterrupt))
    told = sweep("small.toml", "--out", "o")
    assert told.exit == 130
    assert "start the sweep again to go on" in told.err
    monkeypatch.undo()
    monkeypatch.chdir(config.parent)
    (Path("o") / "chunks" / "000001.part").write_bytes(b"x")
    told = sweep("small.toml", "--out", "o", "--json")
    assert "chunk 1 was not what had been written; it was played again" in told.err
    assert json.loads(told.out)["spoilt"] == [1]
    assert json.loads(told.out)["found"] == 50


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), "E_USAGE"),
        (("nowhere.toml",), "E_SWEEP_CONFIG"),
        (("small.toml", "--jobs", "0"), "E_USAGE"),
        (("bad.toml",), "E_SWEEP_CONFIG"),
        (("ending",), "E_USAGE"),
        ((".",), "E_SWEEP_CONFIG"),
    ],
)
def test_what_cannot_be_swept_is_refused(config, words, code):
    Path("bad.toml").write_text(SMALL + "amout = 3\n")
    Path("ending").write_text(SMALL)
    told = sweep(*words, "--json")
    assert told.exit == 2
    error = json.loads(told.out)["error"]
    assert error["code"] == code
    assert error["remedy"]
    if words == ("bad.toml",):
        assert error["place"] == {"file": "bad.toml", "line": 8, "path": "$.offers[0].amout"}
        assert "amount" in error["remedy"]
