"""What a user's settings, grants and history say of reviewers, brought together from the folders where they lie.

::

    CONFIG/review.toml           [providers] "corp.example" = "corp"       [metrics] enabled = false
    CONFIG/review-consent.json   stored grants (:mod:`troth.backends.consent`)
    STATE/review-metrics.jsonl   earlier runs, without content (:mod:`troth.backends.metrics`)

All of them are the user's own, outside every workspace: nothing that is reviewed can change who may be asked.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from troth.backends.consent import MOST_BYTES as MOST_GRANT_BYTES
from troth.backends.consent import Consent, ConsentStore, consent
from troth.backends.estimate import Estimate, estimate
from troth.backends.estimate import Settings as RunSettings
from troth.backends.independence import (
    Candidate,
    Host,
    Tier,
    check_providers,
    choose,
    detect,
    notices,
    self_review,
    tier_of,
)
from troth.backends.metrics import MOST_BYTES as MOST_METRIC_BYTES
from troth.backends.metrics import Metrics, enabled, timings
from troth.backends.opening import open_backend
from troth.core.errors import Place, Refused
from troth.stores.durable import read_regular
from troth.stores.keys import config_folder, state_folder
from troth.stores.privatefile import PrivateFile

SETTINGS: Final = "review.toml"
GRANTS: Final = "review-consent.json"
METRICS: Final = "review-metrics.jsonl"

_MOST_SETTINGS: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Settings:
    """The user's settings of reviewers: providers by suffix of the host, and whether metrics are kept."""

    providers: Mapping[str, str] = field(default_factory=dict)
    metrics: bool = True


def settings() -> Settings:
    """Return the user's settings; those of a user who has none are the defaults.

    Raises:
        Refused: ``E_PROVIDERS`` for a file that cannot be understood, or providers that could not be meant;
            ``E_KEY_FOLDER``, ``E_NOT_REGULAR``, ``E_UNREADABLE``, ``E_TOO_LARGE``.
    """
    path = config_folder() / SETTINGS
    if not os.path.lexists(path):
        return Settings()
    place = Place(file=str(path))
    data = read_regular(path, _MOST_SETTINGS, "E_UNREADABLE", "the file of settings")
    try:
        value = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as fault:
        raise Refused("E_PROVIDERS", f"the settings of reviewers are no TOML: {fault}", place=place) from None
    providers, metrics = value.get("providers", {}), value.get("metrics", {})
    if not isinstance(providers, dict) or not isinstance(metrics, dict) or set(value) - {"providers", "metrics"}:
        raise Refused("E_PROVIDERS", "the settings of reviewers have [providers] and [metrics] alone", place=place)
    if set(metrics) - {"enabled"} or not isinstance(metrics.get("enabled", True), bool):
        raise Refused("E_PROVIDERS", "[metrics] has enabled = true or false alone", place=place)
    if not all(isinstance(provider, str) for provider in providers.values()):
        raise Refused("E_PROVIDERS", "[providers] gives a host's name one word each", place=place)
    try:
        check_providers(providers)
    except Refused as fault:
        raise Refused(fault.code, fault.message, place=place) from None
    return Settings(providers, metrics.get("enabled", True))


def consent_store() -> ConsentStore:
    """Return the user's stored grants.

    Raises:
        Refused: ``E_KEY_FOLDER``.
    """
    return ConsentStore(PrivateFile(config_folder() / GRANTS, MOST_GRANT_BYTES, "the file of grants"))


def metrics(environment: Mapping[str, str] | None = None) -> Metrics:
    """Return the rows of earlier runs; none are kept where the settings or the environment say so.

    Nothing is raised: without a folder, or with settings that cannot be read, none are kept.
    """
    try:
        held: Any = settings()
        wanted = held.metrics and enabled(os.environ if environment is None else environment)
        return Metrics(
            PrivateFile(state_folder() / METRICS, MOST_METRIC_BYTES, "the file of metrics") if wanted else None
        )
    except Refused:
        return Metrics(None)


# What can be said of reviewers without sending anything --------------------------------------------------------------

USUAL: Final = ("codex", "claude", "openai:MODEL", "anthropic:MODEL")
"""Told of where none is named. Those with a MODEL need one that a person names: they are never chosen unasked."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of one reviewer before anything is sent.

    Attributes:
        named: as it was written.
        missing: what it lacks, ``None`` where it is usable.
        tier: how independent it is of the host.
        notices: that go with the tier.
        consent: whether anything may be sent there now.
    """

    named: str
    name: str
    kind: str
    endpoint: str
    provider: str | None
    sandboxed: bool
    missing: str | None
    tier: Tier
    notices: tuple[str, ...]
    consent: Consent

    def as_json(self) -> dict[str, Any]:
        """Return the members in which it is told."""
        return {
            "reviewer": self.named, "kind": self.kind, "endpoint": self.endpoint, "provider": self.provider,
            "sandboxed": self.sandboxed, "usable": self.missing is None, "missing": self.missing, "tier": self.tier,
            "notices": list(self.notices), "consent": self.consent.as_json(),
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Survey:
    """The host, the reviewers, and which one would be chosen; where none could, whether the host may review itself.

    ``self_review`` says why not, ``None`` where it may (never code), and ``None`` also where a reviewer is usable.
    """

    host: Host
    known: tuple[Known, ...]
    chosen: str | None
    self_review: str | None
    alone: bool


def survey(named: Sequence[str], environment: Mapping[str, str]) -> Survey:
    """Return what is known of reviewers; of the usual ones where none is named. Nothing is sent.

    Raises:
        Refused: as :func:`troth.backends.opening.open_backend`, :func:`settings` and :func:`consent_store`.
    """
    providers = settings().providers
    grants = consent_store().grants()
    host = detect(environment)
    known = []
    for word in named or USUAL:
        backend = open_backend(word, around=environment, providers=providers)
        tier = tier_of(host, backend.provider)
        known.append(
            Known(
                word, backend.name, backend.kind, backend.endpoint, backend.provider, backend.sandboxed,
                backend.usable(), tier, notices(tier, host),
                consent(backend.endpoint, approved=(), environment=environment, grants=grants),
            )
        )  # fmt: skip
    choice = [
        Candidate(one.named, one.kind, one.provider, one.sandboxed, one.missing)
        for one in known
        if not one.named.endswith(":MODEL")
    ]
    best = choose(choice, host)
    usable = [one.named for one in known if one.missing is None]
    refused: str | None = None
    if not usable:
        try:
            self_review(environment, host, "other", ())
        except Refused as fault:
            refused = fault.message
    return Survey(host, tuple(known), best.name if best is not None else None, refused, not usable)


def estimated(
    named: str,
    size: int,
    environment: Mapping[str, str],
    *,
    model: str | None = None,
    effort: str | None = None,
    speed: str | None = None,
) -> tuple[RunSettings, Estimate]:
    """Return the wall that is proposed for a payload of ``size`` bytes, and for which settings. Nothing is sent.

    Raises:
        Refused: as :func:`troth.backends.opening.open_backend` and :func:`settings`.
    """
    backend = open_backend(named, around=environment, providers=settings().providers)
    wanted = RunSettings(backend.name, backend.endpoint, model or getattr(backend, "model", None), effort, speed)
    return wanted, estimate(wanted, size, timings(metrics(environment).rows()))
