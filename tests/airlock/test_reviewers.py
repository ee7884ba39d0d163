"""What a user's own folders say of reviewers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from troth.airlock import reviewers
from troth.core.errors import Refused

pytestmark = pytest.mark.skipif(os.name == "nt", reason="folders of a POSIX user")

AT = "2026-01-02T03:04:05Z"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("TROTH_REVIEW_METRICS", raising=False)
    folder = tmp_path / "config" / "troth"
    folder.mkdir(parents=True)
    return folder


def test_without_settings(config: Path) -> None:
    assert reviewers.settings() == reviewers.Settings()


def test_with_settings(config: Path) -> None:
    (config / "review.toml").write_text('[providers]\n"corp.example" = "corp"\n[metrics]\nenabled = false\n')
    held = reviewers.settings()
    assert held.providers == {"corp.example": "corp"}
    assert held.metrics is False
    assert reviewers.metrics({}).record({"at": AT}) is False


@pytest.mark.parametrize(
    "text",
    [
        "[", "providers = 5", "[providers]\n'corp.example' = 5", "[other]", "[metrics]\nenabled = 1",
        "[metrics]\nmore = true", "[providers]\n'openai.com' = 'me'", "[providers]\n'nodots' = 'me'",
    ],
)  # fmt: skip
def test_settings_that_could_not_be_meant(config: Path, text: str) -> None:
    (config / "review.toml").write_text(text)
    with pytest.raises(Refused) as refused:
        reviewers.settings()
    assert refused.value.code == "E_PROVIDERS"
    assert refused.value.place is not None
    # What cannot be read keeps nothing, and says nothing: metrics never stop a review.
    assert reviewers.metrics({}).record({"at": AT}) is False


def test_grants_and_metrics_lie_in_the_user_s_own_folders(config: Path, tmp_path: Path) -> None:
    reviewers.consent_store().grant("https://api.openai.com", AT)
    assert (config / "review-consent.json").stat().st_mode & 0o777 == 0o600
    assert list(reviewers.consent_store().grants()) == ["https://api.openai.com"]
    assert reviewers.metrics({}).record({"at": AT})
    assert reviewers.metrics({}).rows() == [{"at": AT}]
    assert (tmp_path / "state" / "troth" / "review-metrics.jsonl").stat().st_mode & 0o777 == 0o600
    assert reviewers.metrics({"TROTH_REVIEW_METRICS": "off"}).rows() == []


def test_a_link_in_the_place_of_the_grants_is_refused(config: Path, tmp_path: Path) -> None:
    reviewers.consent_store().grant("https://api.openai.com", AT)
    (config / "review-consent.json").rename(tmp_path / "planted.json")
    (config / "review-consent.json").symlink_to(tmp_path / "planted.json")
    with pytest.raises(Refused) as refused:
        reviewers.consent_store().grants()
    assert refused.value.code == "E_NOT_REGULAR"


def test_without_a_folder_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert reviewers.metrics({}).record({"at": AT}) is False
    with pytest.raises(Refused):
        reviewers.consent_store()
