"""A reviewer that is a file, and names that open reviewers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.reviewers import REVIEW
from troth.backends.asking import ask
from troth.backends.instruction import compose, compose_rebuttal
from troth.backends.opening import FORMS, open_backend
from troth.backends.protocol import ENDS, MOST_MESSAGE, Answer, Request
from troth.backends.scripted import Scripted
from troth.core.errors import Refused
from troth.review.shapes import FAILURE_CODES

ASK = Request(compose("document"), b"an artifact about F001")
REPLY = {"finding_id": "F001", "decision": "withdraw", "position": "gone", "evidence": []}


def scripted(tmp_path: Path, *answers: dict[str, Any], **more: Any) -> Scripted:
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"answers": answers, **more}))
    waits: list[float] = []
    backend = Scripted(path, waits.append)
    backend.waits = waits  # type: ignore[attr-defined] # for the tests alone
    return backend


def said(answer: Answer) -> bytes | str:
    return answer.text if answer.text is not None else answer.failure.code  # type: ignore[union-attr] # one is there


def test_each_way_of_answering(tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below/raw").write_bytes(b"\x1b[2J\xff")
    ways: list[tuple[dict[str, Any], bytes | str]] = [
        ({"text": "a\u001b[31m"}, b"a\x1b[31m"),
        ({"json": REVIEW}, json.dumps(REVIEW).encode()),
        ({"json": None}, b"null"),
        ({"file": "below/raw"}, b"\x1b[2J\xff"),
        ({"flood": 5}, b"xxxxx"),
        ({"flood": MOST_MESSAGE + 1}, "invalid_response"),
        *(({"failure": code}, code) for code in FAILURE_CODES),
        *(({"end": end}, "timeout" if end.endswith("timeout") else "backend_error") for end in ENDS[1:]),
    ]
    for way, expected in ways:
        answer = scripted(tmp_path, way).ask(ASK)
        assert said(answer) == expected, way
        if answer.failure is not None:
            assert answer.failure.retryable is FAILURE_CODES[answer.failure.code]
            assert answer.failure.oversized is ("flood" in way)
        assert answer.end == way.get("end", "completed")


def test_the_first_that_fits_answers(tmp_path: Path) -> None:
    backend = scripted(
        tmp_path,
        {"to": "review", "contains": "nothing of it", "text": "0"},
        {"to": "rebuttal", "finding": "F002", "text": "2"},
        {"to": "rebuttal", "call": 2, "text": "again"},
        {"to": "rebuttal", "json": REPLY},
        {"call": 1, "failure": "service_unavailable"},
        {"contains": "artifact", "text": "review"},
    )
    assert said(backend.ask(ASK)) == "service_unavailable"
    assert said(backend.ask(ASK)) == b"review"
    contest = Request(compose_rebuttal(), b'{"finding": {"id": "F001"}}')
    assert said(backend.ask(contest)) == json.dumps(REPLY).encode()
    assert said(backend.ask(contest)) == b"again"
    assert said(backend.ask(Request(compose_rebuttal(), b"F002"))) == b"2"
    none = backend.ask(Request(compose("code"), b"other"))
    assert said(none) == "service_unavailable"
    assert said(backend.ask(Request(compose("code"), b"other"))) == "backend_error"


def test_a_delay_is_held_against_the_limits(tmp_path: Path) -> None:
    backend = scripted(tmp_path, {"delay": 20.0, "text": "a"})
    assert said(backend.ask(ASK)) == b"a"
    answer = backend.ask(Request("i", b"p", wall=5.0))
    assert (said(answer), answer.end) == ("timeout", "wall_timeout")
    answer = backend.ask(Request("i", b"p", idle=6.0))
    assert (said(answer), answer.end) == ("timeout", "idle_timeout")
    assert backend.waits == [20.0, 5.0, 6.0]  # type: ignore[attr-defined] # as above


def test_what_it_reports(tmp_path: Path) -> None:
    answer = scripted(tmp_path, {"text": "a", "tokens": 9, "request_id": "q"}, model="s-1").ask(ASK)
    assert (answer.model, answer.model_basis, answer.tokens, answer.request_id) == ("s-1", "resolved", 9, "q")
    assert (answer.sent, answer.received) == (len(ASK.instruction.encode()) + len(ASK.payload), 1)
    answer = scripted(tmp_path, {"text": "a"}).ask(Request("i", b"p", model="m"))
    assert (answer.model, answer.model_basis) == ("m", "requested")
    answer = scripted(tmp_path, {"text": "a"}).ask(Request("i", b"p"))
    assert (answer.model, answer.model_basis) == (None, "backend_default")


def test_its_key_is_its_name(tmp_path: Path) -> None:
    assert scripted(tmp_path).endpoint == "scripted:script"
    backend = scripted(tmp_path, name="demo", provider="ours")
    assert (backend.endpoint, backend.provider, backend.kind, backend.usable()) == (
        "scripted:demo", "ours", "scripted", None,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", '{"answers": 1}', '{"answers": [], "answers": []}', '{"answers": [], "more": 1}',
        '{"answers": [{}]}', '{"answers": [{"text": "a", "json": 1}]}', '{"answers": [{"failure": "tired"}]}',
        '{"answers": [{"end": "completed"}]}', '{"answers": [{"text": "a", "call": 0}]}',
        '{"answers": [{"text": "a", "delay": -1}]}', '{"answers": [{"text": 1}]}', '{"answers": [{"file": "none"}]}',
        '{"answers": [{"file": "/etc/hostname"}]}', '{"answers": [{"file": "../script.json"}]}',
        '{"answers": [{"file": ""}]}', '{"answers": [{"file": "a\\u0000b"}]}',
        '{"answers": [{"to": "me", "text": ""}]}',
    ],
)  # fmt: skip
def test_what_is_no_script_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "script.json").write_text(text)
    with pytest.raises(Refused) as refused:
        Scripted(tmp_path / "script.json")
    assert refused.value.code == "E_SCRIPT"
    assert refused.value.place is not None


def test_a_script_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(Refused) as refused:
        open_backend(f"scripted:{tmp_path}/none.json")
    assert refused.value.code == "E_SCRIPT"


def test_a_script_is_asked_like_any_other(tmp_path: Path) -> None:
    waits: list[float] = []
    backend = scripted(
        tmp_path, {"call": 1, "failure": "service_unavailable"}, {"call": 2, "text": "no"}, {"json": REVIEW}
    )
    came = ask(backend, ASK, sleep=waits.append)
    assert came.document == REVIEW
    assert (came.answer.attempts, waits) == (3, [2.0])


@pytest.mark.parametrize(
    ("named", "expected"),
    [
        ("codex", ("codex", "cli", "https://api.openai.com", "openai")),
        ("codex@https://gate.example/v1", ("codex", "cli", "https://gate.example", None)),
        ("claude", ("claude", "cli", "https://api.anthropic.com", "anthropic")),
        ("claude@http://127.0.0.1:8080", ("claude", "cli", "http://127.0.0.1:8080", None)),
        ("openai:m-1", ("openai", "http", "https://api.openai.com", "openai")),
        ("openai:org/m-1:free@https://gate.example/v1", ("openai", "http", "https://gate.example", None)),
        ("anthropic:m-1", ("anthropic", "http", "https://api.anthropic.com", "anthropic")),
        ("local:http://localhost:11434", ("local", "http", "http://localhost:11434", None)),
        ("local:m-1@http://localhost:11434", ("local", "http", "http://localhost:11434", None)),
    ],
)
def test_names_open_reviewers(named: str, expected: tuple[str, str, str, str | None], tmp_path: Path) -> None:
    backend = open_backend(named, around={"HOME": str(tmp_path), "PATH": ""})
    assert (backend.name, backend.kind, backend.endpoint, backend.provider) == expected
    assert backend.name in FORMS


def test_a_script_may_have_any_name(tmp_path: Path) -> None:
    path = tmp_path / "odd:name@https:" / "x.json"
    path.parent.mkdir()
    path.write_text('{"answers": []}')
    assert open_backend(f"scripted:{path}").endpoint == "scripted:x"


@pytest.mark.parametrize(
    "named",
    [
        "", "gpt", "codex:m", "claude:m", "openai", "openai:", "anthropic", "local", "local:", "scripted:", "scripted",
        "@https://x.example",
    ],
)  # fmt: skip
def test_other_names_are_refused(named: str) -> None:
    with pytest.raises(Refused) as refused:
        open_backend(named)
    assert refused.value.code == "E_BACKEND_UNKNOWN"


def test_an_address_that_is_none_is_refused() -> None:
    for named in ("codex@http://gate.example", "claude@https://me:secret@gate.example", "local:https://gate.example"):
        with pytest.raises(Refused) as refused:
            open_backend(named, around={"HOME": "/nowhere"})
        assert refused.value.code == "E_ENDPOINT"
        assert "secret" not in str(refused.value)
