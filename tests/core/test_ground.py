"""Canonical bytes, digests, instants, ids and errors."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.core import errors
from troth.core.canonical import hashed_form, record_bytes, row_bytes
from troth.core.digests import EMPTY, is_digest, sha256_hex, tree_digest
from troth.core.ids import new_id
from troth.core.instants import format_instant, parse_instant


def test_hashed_form_is_the_specs_to_the_byte() -> None:
    value = {
        "b": 'a/b "q" \\ é \U0001f600 \x7f\n\x01',
        "a": [1, 1.0, 1e16, 1e-05, -0.0, None, True],
        "Z": 123456789012345678901,
    }
    assert hashed_form(value) == (
        b'{"Z":123456789012345678901,"a":[1,1.0,1e+16,1e-05,-0.0,null,true],'
        b'"b":"a\\/b \\"q\\" \\\\ \\u00e9 \\ud83d\\ude00 \\u007f\\n\\u0001"}'
    )


def test_keys_are_ordered_by_code_point_and_not_by_utf16_unit() -> None:
    assert hashed_form({"\U0001f600": 2, "\ufb01": 1}) == b'{"\\ufb01":1,"\\ud83d\\ude00":2}'


def test_no_canonical_form_for_what_is_no_number() -> None:
    for value in (float("nan"), float("inf")):
        with pytest.raises(ValueError, match="JSON"):
            hashed_form([value])


def test_record_and_row_bytes() -> None:
    assert record_bytes({"b": "é/", "a": 1}) == '{"a":1,"b":"é/"}\n'.encode()
    assert row_bytes({"b": "é/", "a": 1}) == '{"b":"é/","a":1}'.encode()


def test_tree_digest_by_hand() -> None:
    one, two = hashlib.sha256(b"1").hexdigest(), hashlib.sha256(b"2").hexdigest()
    by_hand = hashlib.sha256(f"{one}  a\n{two}  é\n".encode()).hexdigest()
    assert tree_digest({"é": two, "a": one}) == by_hand
    assert tree_digest({}) == EMPTY


@given(st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1), st.just(EMPTY), max_size=8))
def test_tree_digest_sorts_by_utf8_bytes(files: dict[str, str]) -> None:
    lines = "".join(f"{files[path]}  {path}\n" for path in sorted(files, key=lambda path: path.encode()))
    assert tree_digest(files) == sha256_hex(lines.encode())


def test_is_digest() -> None:
    assert is_digest("0" * 64)
    for wrong in ("0" * 63, "0" * 65, "A" * 64, "0" * 64 + "\n", "g" * 64, 0, None, b"0" * 64):
        assert not is_digest(wrong)


@pytest.mark.parametrize(
    ("text", "good"),
    [
        ("2026-02-28T23:59:59Z", True),
        ("2024-02-29T00:00:00Z", True),
        ("2026-02-29T00:00:00Z", False),
        ("2026-01-01T24:00:00Z", False),
        ("2026-01-01T00:00:60Z", False),
        ("2026-01-01T00:00:00", False),
        ("2026-01-01 00:00:00Z", False),
        ("2026-01-01T00:00:00z", False),
        ("2026-01-01T00:00:00Z\n", False),
        ("٢٠٢٦-01-01T00:00:00Z", False),
        ("0000-01-01T00:00:00Z", False),
    ],
)
def test_instants_are_real_dates(text: str, good: bool) -> None:
    assert (parse_instant(text) is not None) is good


def test_fractions_and_offsets_only_where_allowed() -> None:
    assert parse_instant("2026-01-01T00:00:00.123456789Z") == datetime(2026, 1, 1, 0, 0, 0, 123456, UTC)
    assert parse_instant("2026-01-01T00:00:00.5Z", fraction=False) is None
    assert parse_instant("2026-01-01T00:00:00+00:00") == datetime(2026, 1, 1, tzinfo=UTC)
    assert parse_instant("2026-01-01T00:00:00+00:00", offset=False) is None
    assert parse_instant("2026-01-01T00:00:00.1234567890Z") is None


def test_format_instant_is_utc_and_needs_a_zone() -> None:
    east = timezone(timedelta(hours=2))
    assert format_instant(datetime(2026, 1, 1, 1, 0, 0, 999, east)) == "2025-12-31T23:00:00Z"
    with pytest.raises(ValueError, match="zone"):
        format_instant(datetime(2026, 1, 1))  # noqa: DTZ001 - the case under test


def test_ids_are_drawn_again_on_collision() -> None:
    drawn = iter(["00000001", "00000001", "00000002"])
    taken = {"mem_00000001"}
    assert new_id("mem_", taken.__contains__, lambda count: next(drawn)) == "mem_00000002"


def test_every_error_class_has_its_exit_status() -> None:
    expected = {"Refused": 2, "DoesNotHold": 1, "NotEstablished": 3, "Busy": 75, "Defect": 70}
    for name, status in expected.items():
        fault = getattr(errors, name)("E_X", "found", remedy="Do this.", place=errors.Place("f", 3, "$.a"), detail="d")
        assert fault.exit_code == status
        assert json.loads(json.dumps(fault.as_json())) == {
            "error": {
                "code": "E_X", "message": "found", "detail": "d", "remedy": "Do this.",
                "place": {"file": "f", "line": 3, "path": "$.a"},
            }
        }  # fmt: skip
        assert str(fault) == "E_X (d): found [f:3 at $.a]. Do this."
