"""Configurations of sweeps: what is read, what is refused and where, and how a sweep is cut into chunks."""

from __future__ import annotations

import re
import tomllib

import hypothesis.strategies as st
import jsonschema_rs
import pytest
from hypothesis import given, settings

from troth.core.errors import Refused
from troth.lab.agents import AGENTS
from troth.lab.checkers import CHECKERS
from troth.lab.counterparties import COUNTERPARTIES
from troth.lab.sweepconfig import EXAMPLE, MAX_FILE_BYTES, json_schema, read_sweep

SMALL = """\
name = "small"
deals = 4
counterparties = ["honest"]
agents = ["cooperative"]
[[offers]]
name = "cash"
"""


def test_the_example_runs_and_names_every_policy_and_key():
    sweep = read_sweep(EXAMPLE.encode())
    assert len(sweep.cells) == 16
    assert sweep.deals == 16 * 2 * 250
    for name in (*COUNTERPARTIES, *AGENTS, *CHECKERS):
        assert re.search(rf"\b{name}\b", EXAMPLE), name


def test_what_is_left_out_is_filled_in_and_comments_change_nothing():
    plain = read_sweep(SMALL.encode())
    full = read_sweep(b"# said otherwise\nseries = 1\nseeds = [0]\n" + SMALL.encode() + b"amount = 10\n")
    assert plain.digest == full.digest
    assert plain.digest != read_sweep(SMALL.replace("deals = 4", "deals = 5").encode()).digest


ITEM = 'id = "x", predicate = "p"'


def test_the_schema_takes_what_is_read_and_no_other_key():
    checker = jsonschema_rs.validator_for(json_schema())
    for text in (EXAMPLE, SMALL):
        assert checker.is_valid(tomllib.loads(text))
    for text in (SMALL.replace("deals", "deels"), SMALL.replace("deals = 4", "deals = 0"), SMALL + "amout = 1\n"):
        assert not checker.is_valid(tomllib.loads(text))
        with pytest.raises(Refused):
            read_sweep(text.encode())


BAD = [
    ("not TOML", SMALL.replace("[[offers]]", "[[offers]"), "E_SWEEP_CONFIG", 5, None),
    ("number too long", SMALL.replace("deals = 4", "deals = " + "9" * 5000), "E_SWEEP_CONFIG", None, None),
    ("no value", SMALL.replace("deals = 4", "deals ="), "E_SWEEP_CONFIG", 2, None),
    ("unknown key", SMALL.replace("deals", "deels"), "E_SWEEP_CONFIG", 2, "$.deels"),
    ("missing key", SMALL.replace("deals = 4\n", ""), "E_SWEEP_CONFIG", None, "$.deals"),
    ("wrong type", SMALL.replace("deals = 4", 'deals = "4"'), "E_SWEEP_CONFIG", 2, "$.deals"),
    ("no fraction", SMALL.replace("deals = 4", "deals = 4.5"), "E_SWEEP_CONFIG", 2, "$.deals"),
    ("none", SMALL.replace("deals = 4", "deals = 0"), "E_SWEEP_CONFIG", 2, "$.deals"),
    ("too many", SMALL.replace("deals = 4", "deals = 10000000000"), "E_SWEEP_CONFIG", 2, "$.deals"),
    ("empty list", SMALL.replace('["honest"]', "[]"), "E_SWEEP_CONFIG", 3, "$.counterparties"),
    ("no policy", SMALL.replace('["honest"]', '["honest", "hones"]'), "E_POLICY", 3, "$.counterparties[1]"),
    ("no such argument", SMALL.replace('"cooperative"', '"rational(x=y)"'), "E_POLICY", 4, "$.agents[0]"),
    ("twice", SMALL.replace('["honest"]', '["honest", "honest"]'), "E_SWEEP_CONFIG", 3, "$.counterparties[1]"),
    ("negative", SMALL + "amount = -1\n", "E_SWEEP_CONFIG", 7, "$.offers[0].amount"),
    ("checklist", SMALL + 'checklist = [{ id = "x" }]\n', "E_SWEEP_CONFIG", 7, "$.offers[0].checklist"),
    ("a date", SMALL + f"checklist = [{{ {ITEM}, at = 2026-01-01 }}]\n", "E_SWEEP_CONFIG", 7, "$.offers[0].checklist"),
    ("no number", SMALL + f"checklist = [{{ {ITEM}, at = nan }}]\n", "E_SWEEP_CONFIG", 7, "$.offers[0].checklist"),
    ("noise", SMALL + '[[noise]]\nname = "n"\nchecker = "noisy(2)"\n', "E_POLICY", 9, "$.noise[0].checker"),
    ("rate", SMALL + '[[noise]]\nname = "n"\nforged_rate = 1.5\n', "E_SWEEP_CONFIG", 9, "$.noise[0].forged_rate"),
    ("forgery", SMALL + '[[noise]]\nname = "n"\nforged = "all"\n', "E_SWEEP_CONFIG", 9, "$.noise[0].forged"),
    ("series", "series = 3\n" + SMALL, "E_SWEEP_CONFIG", 3, "$.deals"),
    ("chunk", "series = 2\nchunk = 3\n" + SMALL, "E_SWEEP_CONFIG", 2, "$.chunk"),
    ("seed twice", "seeds = [1, 1]\n" + SMALL, "E_SWEEP_CONFIG", 1, "$.seeds"),
    ("seeds", "seeds = 7\n" + SMALL, "E_SWEEP_CONFIG", 1, "$.seeds"),
    ("seeds too far", "seeds = { first = 9007199254740991, count = 9 }\n" + SMALL, "E_SWEEP_CONFIG", 1, "$.seeds"),
    ("name", SMALL.replace('"small"', '"<b>"'), "E_SWEEP_CONFIG", 1, "$.name"),
]  # fmt: skip


@pytest.mark.parametrize(("why", "text", "code", "line", "path"), BAD, ids=[case[0] for case in BAD])
def test_what_is_wrong_is_refused_with_its_place_and_a_remedy(why, text, code, line, path):
    with pytest.raises(Refused) as refused:
        read_sweep(text.encode(), "s.toml")
    assert refused.value.code == code
    assert (refused.value.place.file, refused.value.place.line, refused.value.place.path) == ("s.toml", line, path)
    assert refused.value.remedy


@pytest.mark.parametrize(
    "data",
    [
        b"\xff", b"", b"\x00", b"a = " + b"[" * 5000, b"x" * (MAX_FILE_BYTES + 1), b"a.b.c = 1\n[a]\n[a.b]\n",
        b"\xef\xbb\xbfx",
    ],
)  # fmt: skip
def test_bytes_that_are_no_configuration_are_refused(data):
    with pytest.raises(Refused) as refused:
        read_sweep(data)
    assert refused.value.code == "E_SWEEP_CONFIG"


@settings(max_examples=60, deadline=None)
@given(
    agents=st.integers(1, 3), seeds=st.integers(1, 4), series=st.integers(1, 3), deals=st.integers(1, 7),
    chunk=st.integers(1, 9),
)  # fmt: skip
def test_chunks_are_stretches_of_one_row_whatever_their_size(agents, seeds, series, deals, chunk):
    text = SMALL.replace("deals = 4", f"deals = {deals * series}\nseries = {series}\nchunk = {chunk * series}")
    text = text.replace('["cooperative"]', str([f"cooperative({number})" for number in range(agents)]))
    sweep = read_sweep(f"seeds = {{ first = 5, count = {seeds} }}\n{text}".encode())
    row = []
    for number in range(sweep.chunks):
        pieces = list(sweep.pieces(number))
        assert sum(len(indices) for _, _, indices in pieces) == sweep.size(number)
        assert all(indices.start % series == 0 for _, _, indices in pieces)
        row += [(cell.number, seed, index) for cell, seed, indices in pieces for index in indices]
    assert row == [
        (cell, seed, index) for cell in range(agents) for seed in range(5, 5 + seeds) for index in range(deals * series)
    ]
