"""Metrics: typed rows without content, the newest thousand, and nothing that could stop a review."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from troth.backends.estimate import Settings, Timing
from troth.backends.metrics import (
    FIELDS,
    MOST_ROWS,
    MOST_TEXT,
    Metrics,
    clean,
    enabled,
    parse_rows,
    row_of,
    timings,
)
from troth.backends.protocol import Answer, Failure, Request

AT = "2026-01-02T03:04:05Z"
ANSWER = Answer(b"text", None, "completed", "model-x", "resolved", 900, 400, 77, 12.5, 1, True, "req_1")
TIMEOUT = replace(ANSWER, text=None, failure=Failure("timeout", "m", True), end="wall_timeout")
REQUEST = Request("stance with words", b"words of the artifact", "model-y", "high", None, 600.0, 300.0)
DIGEST = "a" * 64


class Memory:
    def __init__(self, data: bytes | None = None) -> None:
        self.data = data

    def read(self) -> bytes | None:
        return self.data

    def change(self, change: Callable[[bytes | None], bytes]) -> None:
        self.data = change(self.data)


class Broken:
    def read(self) -> NoReturn:
        raise OSError("gone")

    def change(self, change: Callable[[bytes | None], bytes]) -> NoReturn:
        raise MemoryError


def row(answer: Answer = ANSWER, **more: Any) -> dict[str, Any] | None:
    held = {"payload_sha256": DIGEST, **more}
    return row_of(at=AT, backend="codex", endpoint="https://api.openai.com", request=REQUEST, answer=answer, **held)


def test_a_row() -> None:
    assert row(kind="decision", members=1, tier="cross_provider", assessment="approve", findings=0) == {
        "at": AT, "backend": "codex", "endpoint": "https://api.openai.com", "model": "model-y",
        "resolved_model": "model-x", "effort": "high", "wall": 600.0, "idle": 300.0, "kind": "decision", "members": 1,
        "payload_bytes": 21, "payload_sha256": DIGEST, "sent": 900, "received": 400, "tokens": 77, "attempts": 1,
        "seconds": 12.5, "any_byte": True, "end": "completed", "assessment": "approve", "findings": 0,
        "tier": "cross_provider",
    }  # fmt: skip


def test_the_model_that_was_asked_for() -> None:
    unnamed = replace(REQUEST, model=None)
    for more, model in (({}, None), ({"model": "of-the-backend"}, "of-the-backend")):
        found = row_of(
            at=AT, backend="openai", endpoint="e", request=unnamed, answer=ANSWER, payload_sha256=None, **more
        )
        assert (found or {}).get("model") == model
    assert (row(model="of-the-backend") or {})["model"] == "model-y"


def test_a_failure_is_a_row_and_what_reached_nobody_is_none() -> None:
    found = row(TIMEOUT)
    assert found is not None
    assert (found["end"], found["failure"]) == ("wall_timeout", "timeout")
    unsent = replace(TIMEOUT, end="spawn_error", sent=0, any_byte=False)
    assert row(unsent) is None
    assert row(replace(unsent, end="completed")) is None


def test_a_run_without_a_record_leaves_no_digest() -> None:
    assert "payload_sha256" not in (row(payload_sha256=None) or {})


def test_no_word_of_an_artifact_or_an_instruction_is_kept() -> None:
    text = json.dumps(row(instruction="stance with words", claim="words of the artifact", text="text"))
    assert "words" not in text
    assert "text" not in text


VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=300) | st.lists(st.text(), max_size=2)
)


@given(st.dictionaries(st.sampled_from([*FIELDS, "claim", "", "AT"]), VALUES))
def test_whatever_is_handed_in_only_typed_members_are_kept(held: dict[str, Any]) -> None:
    kept = clean(held)
    assert set(kept) <= set(FIELDS)
    for name, value in kept.items():
        assert type(value) is FIELDS[name]
        if isinstance(value, str):
            assert len(value) <= MOST_TEXT
            assert value.isprintable()
    assert clean(kept) == kept
    assert parse_rows(json.dumps(kept, allow_nan=False).encode()) == ([kept] if kept else [])


def test_a_digest_is_a_digest_and_no_text() -> None:
    assert clean({"payload_sha256": "words of the artifact", "at": AT}) == {"at": AT}
    assert clean({"payload_sha256": DIGEST}) == {"payload_sha256": DIGEST}


@pytest.mark.parametrize(
    "row",
    [
        {"seconds": float("nan")},
        {"seconds": float("inf")},
        {"seconds": -1.0},
        {"sent": -1},
        {"sent": True},
        {"sent": 1.0},
        {"sent": 1 << 60},
        {"seconds": 1 << 60},
        {"any_byte": 1},
        {"backend": 5},
        {"backend": None},
    ],
)
def test_a_value_that_is_none_of_its_kind_is_left_out(row: dict[str, Any]) -> None:
    assert clean({**row, "at": AT}) == {"at": AT}


def test_the_twin_is_kept() -> None:
    kept = clean({"seconds": 3, "sent": 0, "any_byte": False, "backend": "a\x1bb" + "c" * 300})
    assert kept == {"seconds": 3.0, "sent": 0, "any_byte": False, "backend": "a?b" + "c" * 197}
    assert type(kept["seconds"]) is float


def test_the_newest_thousand_are_kept() -> None:
    metrics = Metrics(Memory())
    for number in range(12):
        assert metrics.record({"at": AT, "attempts": number})
    assert [one["attempts"] for one in metrics.rows()] == list(range(12))
    lines = b"".join(json.dumps({"at": AT, "attempts": number}).encode() + b"\n" for number in range(3 * MOST_ROWS))
    file = Memory(lines)
    assert Metrics(file).record({"at": AT, "attempts": 7})
    kept = Metrics(file).rows()
    assert len(kept) == MOST_ROWS
    assert [one["attempts"] for one in kept] == [*range(2 * MOST_ROWS + 1, 3 * MOST_ROWS), 7]


@pytest.mark.parametrize("spoilt", [b"\xff\n", b"{\n", b"[]\n5\nnull\n", b'{"at": 5}\n', b"[" * 50_000 + b"\n"])
def test_a_line_that_is_no_row_is_passed_over(spoilt: bytes) -> None:
    good = json.dumps({"at": AT}).encode()
    file = Memory(good + b"\n" + spoilt + good)
    assert len(Metrics(file).rows()) == 2
    assert Metrics(file).record({"at": AT})
    assert len(Metrics(file).rows()) == 3


def test_nothing_is_ever_raised() -> None:
    metrics = Metrics(Broken())
    assert metrics.record(row()) is False
    assert metrics.rows() == []
    assert Metrics(Memory()).record(None) is False


def test_they_can_be_switched_off() -> None:
    assert Metrics(None).record(row()) is False
    assert Metrics(None).rows() == []
    assert enabled({})
    assert enabled({"TROTH_REVIEW_METRICS": "on"})
    assert not any(enabled({"TROTH_REVIEW_METRICS": value}) for value in ("off", "OFF", "0", "no", "false"))


def test_what_an_estimate_reads() -> None:
    settings = Settings("codex", "https://api.openai.com", "model-y", "high")
    kept = [row(), row(TIMEOUT), row(replace(TIMEOUT, end="idle_timeout")), row(rebuttal=True), {"at": AT}]
    assert timings(one for one in kept if one) == [
        Timing(settings, 21, 12.5, 600.0, completed=True, exceeded=False),
        Timing(settings, 21, 12.5, 600.0, completed=False, exceeded=True),
        Timing(settings, 21, 12.5, 600.0, completed=False, exceeded=False),
    ]
    assert timings([{**(row() or {}), "end": "nothing known"}, {**(row() or {}), "failure": "nothing known"}]) == []


@pytest.mark.parametrize("value", [int("9" * 4000), -int("9" * 4000), -1])
def test_a_number_that_no_run_can_have_had_is_left_out(value: int) -> None:
    assert clean({"backend": "codex", "payload_bytes": value}) == {"backend": "codex"}
