"""Answers of the command lines, mutated: never an exception, never a text where the program said that it failed."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from support.reviewers import REVIEW, around, stand_in
from troth.backends import claude, codex
from troth.backends.extraction import extract
from troth.backends.protocol import Request
from troth.backends.supervise import Supervised
from troth.review.shapes import FAILURE_CODES

pytestmark = pytest.mark.slow

ANSWER = json.dumps(REVIEW)
ENVELOPE = {
    "type": "result", "subtype": "success", "is_error": False, "api_error_status": None, "result": ANSWER,
    "session_id": "S-1", "stop_reason": "end_turn", "usage": {"input_tokens": 1, "output_tokens": 2},
    "modelUsage": {"m-1": {}},
}  # fmt: skip
EVENTS = [
    {"type": "thread.started", "thread_id": "T-1"},
    {"type": "turn.started"},
    {"type": "item.completed", "item": {"type": "error", "message": "a notice"}},
    {"type": "turn.completed", "usage": {"input_tokens": 11, "output_tokens": 7}},
]
FAILED = {"type": "turn.failed", "error": {"message": "unexpected status 503 Service Unavailable"}}
VALUES: list[Any] = [
    None, True, False, 0, -1, 429, 503, 10**400, 1.5, "", "error", "\ud800", "\x1b[2J", [], {}, [[]], {"a": {}}, ANSWER,
]  # fmt: skip


def mutated(value: Any, chance: random.Random) -> bytes:
    """Return the value's JSON after some changes to its members or to its bytes."""
    value = json.loads(json.dumps(value))
    for _ in range(chance.randint(0, 3)):
        held = chance.choice(value) if isinstance(value, list) else value
        name = chance.choice(list(held))
        match chance.randrange(3):
            case 0:
                held[name] = chance.choice(VALUES)
            case 1:
                held[chance.choice(["x", "type", "is_error", "error", "result"])] = chance.choice(VALUES)
            case _:
                if len(held) > 1:
                    del held[name]
    text = "\n".join(map(json.dumps, value)) if isinstance(value, list) else json.dumps(value)
    data = bytearray(text.encode())
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        place = chance.randrange(len(data))
        data[place : place + chance.randint(0, 3)] = bytes(
            chance.choice(b'{}[]",:\\\x00\xff1e') for _ in range(chance.randint(0, 3))
        )
    return bytes(data)


@pytest.mark.parametrize("module", [claude, codex])
def test_mutated_answers(
    module: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(270)
    name = module.__name__.rpartition(".")[2]
    stand_in(tmp_path / "bin", name, "")
    backend = (
        claude.Claude(around(tmp_path / "bin"), managed=())
        if name == "claude"
        else codex.Codex(around(tmp_path / "bin"))
    )
    said: dict[str, Any] = {}

    def supervise(argv: list[str], fed: bytes, **_: Any) -> Supervised:
        if "--output-last-message" in argv:
            Path(argv[argv.index("--output-last-message") + 1]).write_bytes(said["message"])
        return Supervised("completed", exit=said["exit"], stdout=said["stdout"], sent=len(fed), received=9)

    monkeypatch.setattr(module, "supervise", supervise)
    outcomes: Counter[str] = Counter()
    rounds = 2000
    for _ in range(rounds):
        failing = chance.random() < 0.2
        events = [*EVENTS, FAILED] if failing else EVENTS
        said["stdout"] = mutated(ENVELOPE if name == "claude" else events, chance)
        said["message"] = mutated(REVIEW, chance)
        said["exit"] = chance.choice([0, 0, 0, 0, 1, -9])
        answer = backend.ask(Request("judge", b"artifact"))
        if answer.text is not None:
            assert said["exit"] == 0
            extract(answer.text)
            outcomes["text"] += 1
        else:
            assert answer.failure is not None
            assert answer.failure.retryable is FAILURE_CODES[answer.failure.code]
            assert answer.failure.message
            assert answer.failure.message.isprintable()
            outcomes[answer.failure.code] += 1
        assert answer.tokens is None or 0 <= answer.tokens < 1 << 43
        assert (answer.model_basis == "resolved") is (answer.model is not None)
    with capsys.disabled():
        print(f"\n{name}, {rounds} mutated answers: {dict(outcomes)}; taken {outcomes['text'] / rounds:.1%}")
    assert 0 < outcomes["text"] < rounds
    assert {"backend_error", "invalid_response" if name == "claude" else "service_unavailable"} <= set(outcomes)


@pytest.mark.parametrize("error", [value for value in VALUES if value is not False])
def test_any_value_but_false_marks_an_error(error: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path / "bin", "claude", "")
    backend = claude.Claude(around(tmp_path / "bin"), managed=())
    for value, good in ((error, False), (False, True)):
        stdout = json.dumps({**ENVELOPE, "is_error": value}).encode()
        monkeypatch.setattr(claude, "supervise", lambda *_, out=stdout, **__: Supervised("completed", 0, out))
        answer = backend.ask(Request("judge", b"artifact"))
        assert (answer.text is not None) is good
