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
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from troth.backends.consent import MOST_BYTES as MOST_GRANT_BYTES
from troth.backends.consent import ConsentStore
from troth.backends.independence import check_providers
from troth.backends.metrics import MOST_BYTES as MOST_METRIC_BYTES
from troth.backends.metrics import Metrics, enabled
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
