"""``troth review consent`` and ``backends``: nothing leaves by default, and what could leave is told."""

from __future__ import annotations

import json
import os
import socket
import stat
from pathlib import Path
from typing import Any, NoReturn

import pytest

from troth.backends.independence import MARKERS, OVERRIDE
from troth.cli.main import main

pytestmark = pytest.mark.skipif(os.name == "nt", reason="folders of a POSIX user")

KEY = "https://api.openai.com"


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without settings, on no host, with no reviewer installed; whoever opens a connection fails the test."""
    for marker in MARKERS:
        monkeypatch.delenv(marker.variable, raising=False)
    for name in (OVERRIDE, "TROTH_REVIEW_CONSENT", "OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.chdir(tmp_path)

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("something was sent")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    return tmp_path / "config" / "troth"


def answer(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> Any:
    assert main([*words, "--json"]) == status
    told = capsys.readouterr()
    assert told.err == ""
    return json.loads(told.out)


def said(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert main(list(words)) == status
    return capsys.readouterr().out


# --- consent -------------------------------------------------------------------------------------------------------


def test_granted_listed_and_taken_back(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "Nothing is granted" in said(capsys, "review", "consent", "list")
    granted = answer(capsys, "review", "consent", "grant", "https://API.openai.com:443/v1")
    assert granted["granted"]["key"] == KEY
    assert "cannot be called back" in granted["notice"]
    (entry,) = answer(capsys, "review", "consent", "list")["grants"]
    assert entry == {**granted["granted"], "in_force": True}
    assert KEY in said(capsys, "review", "consent", "list")
    assert answer(capsys, "review", "consent", "revoke", KEY) == {"revoked": [KEY]}
    assert answer(capsys, "review", "consent", "list") == {"grants": []}


def test_what_is_granted_is_told_with_the_notice(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = said(capsys, "review", "consent", "grant", f"{KEY}/v1?x=y")
    assert text.startswith(f"granted: {KEY}\n")
    assert "cannot be called back" in text
    file = config / "review-consent.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(config.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    "address", ["https://me:secret-word@api.openai.com", "http://api.openai.com", "api.openai.com", "*", "all"]
)
def test_what_cannot_be_granted(config: Path, address: str, capsys: pytest.CaptureFixture[str]) -> None:
    error = answer(capsys, "review", "consent", "grant", address, status=2)["error"]
    assert error["code"] == "E_ENDPOINT"
    assert "secret-word" not in str(error)
    assert not config.exists()


def test_all_grants_are_taken_back(capsys: pytest.CaptureFixture[str]) -> None:
    for address in (KEY, "http://localhost:11434", "scripted:answers.json"):
        answer(capsys, "review", "consent", "grant", address)
    assert len(answer(capsys, "review", "consent", "revoke", "--all")["revoked"]) == 3
    assert "There was no grant." in said(capsys, "review", "consent", "revoke", "--all")


def test_taking_back_what_was_never_given_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    answer(capsys, "review", "consent", "grant", KEY)
    error = answer(capsys, "review", "consent", "revoke", KEY, "https://a.example", status=2)["error"]
    assert error["code"] == "E_NO_GRANT"
    assert "https://a.example" in error["message"]
    assert f"taken back: {KEY}" in error["message"]
    for words in ((), (KEY, "--all")):
        assert answer(capsys, "review", "consent", "revoke", *words, status=2)["error"]["code"] == "E_USAGE"


def test_a_spoilt_store_is_an_empty_one_and_a_link_is_refused(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(capsys, "review", "consent", "grant", KEY)
    file = config / "review-consent.json"
    good = file.read_bytes()
    file.write_bytes(good[:-5])
    assert answer(capsys, "review", "consent", "list") == {"grants": []}
    file.rename(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").write_bytes(good)
    file.symlink_to(tmp_path / "elsewhere")
    for words in (("list",), ("grant", "https://a.example"), ("revoke", KEY)):
        assert answer(capsys, "review", "consent", *words, status=2)["error"]["code"] == "E_NOT_REGULAR"
    assert (tmp_path / "elsewhere").read_bytes() == good


def test_a_grant_under_an_old_notice_is_shown_as_such(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.mkdir(parents=True)
    old = {"key": KEY, "notice": 0, "at": "2020-01-01T00:00:00Z"}
    (config / "review-consent.json").write_text(json.dumps({"grants": [old]}))
    assert answer(capsys, "review", "consent", "list")["grants"] == [{**old, "in_force": False}]
    assert "counts no longer" in said(capsys, "review", "consent", "list")


# --- backends ------------------------------------------------------------------------------------------------------


def test_with_no_reviewer_at_all(capsys: pytest.CaptureFixture[str]) -> None:
    told = answer(capsys, "review", "backends", status=3)
    assert [one["reviewer"] for one in told["reviewers"]] == ["codex", "claude", "openai:MODEL", "anthropic:MODEL"]
    assert all(not one["usable"] and one["missing"] for one in told["reviewers"])
    assert {one["consent"]["basis"] for one in told["reviewers"]} == {None}
    assert told["chosen"] is None
    assert told["host"]["host"] == "unknown"
    assert told["self_review"]["allowed"] is False
    assert "may not review its own work" in said(capsys, "review", "backends", status=3)


def test_tier_consent_and_what_is_missing(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CLAUDECODE", "1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-some-key-of-a-test")
    answer(capsys, "review", "consent", "grant", KEY)
    told = answer(
        capsys,
        "review",
        "backends",
        "openai:m",
        "anthropic:m",
        "local:http://localhost:1",
        "openai:m@https://g.example",
    )
    by_name = {one["reviewer"]: one for one in told["reviewers"]}
    assert {name: one["tier"] for name, one in by_name.items()} == {
        "openai:m": "cross_provider",
        "anthropic:m": "same_provider",
        "local:http://localhost:1": "undetermined",
        "openai:m@https://g.example": "undetermined",
    }
    assert by_name["openai:m"]["consent"]["basis"] == "stored"
    assert by_name["openai:m"]["usable"]
    assert by_name["anthropic:m"]["consent"]["basis"] is None
    assert "ANTHROPIC_API_KEY" in by_name["anthropic:m"]["missing"]
    assert told["chosen"] == "openai:m"
    text = said(capsys, "review", "backends", "openai:m", "anthropic:m")
    assert "The most independent of them that is usable: openai:m\n" in text
    assert "host        claude (markers, confidence strong: CLAUDECODE)" in text
    assert "sk-some-key" not in text + json.dumps(told)


def test_consent_of_the_process_is_told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TROTH_REVIEW_CONSENT", "http://localhost:1")
    (one,) = answer(capsys, "review", "backends", "local:http://localhost:1")["reviewers"]
    assert one["consent"]["basis"] == "process"


def test_a_surface_that_can_start_nothing_may_review_itself(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_SURFACE", "chat")
    told = answer(capsys, "review", "backends", status=3)
    assert told["self_review"] == {"allowed": True, "reason": None}
    assert "no independent review" in said(capsys, "review", "backends", status=3)
    told = answer(capsys, "review", "backends", "local:http://localhost:1")  # with a reviewer it may not
    assert told["self_review"]["allowed"] is False


def test_a_provider_of_the_user_s_settings(config: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.mkdir(parents=True)
    (config / "review.toml").write_text('[providers]\n"corp.example" = "corp"\n')
    (one,) = answer(capsys, "review", "backends", "openai:m@https://llm.corp.example/v1", status=3)["reviewers"]
    assert one["provider"] == "corp"
    (config / "review.toml").write_text('[providers]\n"openai.com" = "corp"\n')
    assert answer(capsys, "review", "backends", status=2)["error"]["code"] == "E_PROVIDERS"


@pytest.mark.parametrize("name", ["nobody", "openai", "local:", "openai:m@https://u:p@a.example"])
def test_a_name_that_means_no_reviewer(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert answer(capsys, "review", "backends", name, status=2)["error"]["code"] in ("E_BACKEND_UNKNOWN", "E_ENDPOINT")


# --- estimate ------------------------------------------------------------------------------------------------------


def test_an_estimate_without_history(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "memo.md").write_bytes(b"x" * 40_000)
    told = answer(capsys, "review", "estimate", "memo.md", "--backend", "codex")
    assert told == {
        "backend": "codex", "endpoint": KEY, "model": None, "effort": None, "speed": None, "payload_bytes": 40_000,
        "wall": 780, "basis": "heuristic", "runs": 0, "estimated_tokens": 10_000, "notes": [],
    }  # fmt: skip
    text = said(capsys, "review", "estimate", "memo.md", "--backend", "codex", "--effort", "xhigh", "--speed", "fast")
    assert text.startswith("1140 seconds for 40,000 bytes, about 10,000 tokens: heuristic")


def test_an_estimate_from_earlier_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from troth.airlock.reviewers import metrics

    (tmp_path / "memo.md").write_bytes(b"x" * 40_000)
    row = {
        "at": "2026-01-02T03:04:05Z", "backend": "openai", "endpoint": KEY, "model": "m", "wall": 600.0,
        "payload_bytes": 40_000, "seconds": 100.0, "end": "completed", "sent": 1, "any_byte": True,
    }  # fmt: skip
    for _ in range(5):
        assert metrics({}).record(row)
    for named, model in (("openai:m", ()), ("openai:other", ("--model", "m"))):
        told = answer(capsys, "review", "estimate", "memo.md", "--backend", named, *model)
        assert (told["wall"], told["basis"], told["runs"]) == (420, "empirical", 5)
    assert answer(capsys, "review", "estimate", "memo.md", "--backend", "openai:other")["basis"] == "heuristic"
    assert "empirical, 5 earlier runs" in said(capsys, "review", "estimate", "memo.md", "--backend", "openai:m")


def test_an_estimate_of_several_files_is_that_of_their_payload(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from troth.review.artifact import Artifact

    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(name * 100)
    told = answer(capsys, "review", "estimate", "a.py", "b.py", "--backend", "claude")
    artifact = Artifact([(name, (tmp_path / name).read_bytes()) for name in ("a.py", "b.py")])
    assert told["payload_bytes"] == len(artifact.payload)


@pytest.mark.parametrize("words", [["gone.md", "--backend", "codex"], ["memo.md", "--backend", "nobody"], ["memo.md"]])
def test_what_cannot_be_estimated(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "memo.md").write_text("x")
    assert "error" in answer(capsys, "review", "estimate", *words, status=2)


@pytest.mark.parametrize(
    "words", [["consent"], ["consent", "grant"], ["consent", "revoke"], ["backends"], ["estimate"]]
)
def test_every_help_has_an_example(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert "Example: troth review" in said(capsys, "review", *words, "--help")
