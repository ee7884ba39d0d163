"""How independent a reviewer is of the host: who the host is, whose model answers, the tier and its notices (§10).

Tables and pure functions; the environment is handed in. The markers are variables that anybody can set: they are not
authenticated, so a wrong answer here must fall on the side of less independence. Whatever is unclear is ``unknown``,
and ``unknown`` is ``undetermined``, never ``cross_provider``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from troth.backends.endpoint import SCRIPTED, parse_endpoint
from troth.core.errors import Refused

HostName = Literal["claude", "codex", "gemini", "cursor", "other", "unknown"]
Method = Literal["override", "markers", "conflict", "nothing"]
Confidence = Literal["asserted", "strong", "heuristic", "none"]
Tier = Literal["cross_provider", "undetermined", "same_provider", "self_review"]

TIERS: Final[tuple[Tier, ...]] = ("cross_provider", "undetermined", "same_provider", "self_review")
"""The most independent first."""

OVERRIDE: Final = "IMPASSE_HOST"
"""The variable by which a person says which host drives the run."""

HOSTS: Final[Mapping[str, str | None]] = {
    "claude": "anthropic",
    "codex": "openai",
    "gemini": "google",
    "cursor": None,
    "other": None,
}
"""Host -> who makes its model, ``None`` where it runs models of several."""

PROVIDERS: Final[Mapping[str, str]] = {"openai.com": "openai", "anthropic.com": "anthropic"}
"""Suffix of an endpoint's host -> provider. A gateway is in no table: whose model it asks cannot be told."""

SURFACES: Final = ("cowork", "chat", "sandbox")
"""Values of ``CLAUDE_SURFACE``: surfaces of Claude that can start no program."""

_OFF: Final = ("", "0", "false", "off", "no")
_TRUE: Final = ("1", "true")


@dataclass(frozen=True, slots=True)
class Marker:
    """A variable that a host sets.

    ``values`` are the exact values that count; none means any value that is not empty and not ``0``, ``false``,
    ``off`` or ``no``.
    """

    host: HostName
    confidence: Confidence
    variable: str
    values: tuple[str, ...] = ()

    def stands(self, environment: Mapping[str, str]) -> bool:
        """Tell whether the environment carries it."""
        value = environment.get(self.variable)
        if value is None:
            return False
        return value in self.values if self.values else value not in _OFF


MARKERS: Final[tuple[Marker, ...]] = (
    Marker("claude", "strong", "CLAUDECODE", ("1",)),
    Marker("claude", "strong", "CLAUDE_SURFACE", SURFACES),
    Marker("claude", "heuristic", "CLAUDE_CODE_ENTRYPOINT"),
    Marker("claude", "heuristic", "CLAUDE_COWORK"),
    Marker("claude", "heuristic", "CLAUDE_CHAT_SANDBOX"),
    Marker("gemini", "strong", "GEMINI_CLI", ("1",)),
    Marker("cursor", "none", "CURSOR_AGENT", ("1",)),
    Marker("codex", "heuristic", "CODEX_SANDBOX", ("seatbelt",)),
    Marker("codex", "heuristic", "CODEX_SANDBOX_NETWORK_DISABLED", ("1",)),
)

_UNABLE: Final = {"CLAUDE_COWORK": "cowork", "CLAUDE_CHAT_SANDBOX": "sandbox"}


@dataclass(frozen=True, slots=True)
class Host:
    """Which agent drives the run, how that was found, and how much it is worth.

    Attributes:
        name: the host, ``unknown`` where nothing tells it or two things contradict each other.
        provider: who makes its model.
        method: ``override`` (said by a person), ``markers``, ``conflict`` or ``nothing``.
        confidence: of the answer; that of an ``unknown`` is ``none``.
        markers: the variables that were found, names only.
    """

    name: HostName
    provider: str | None
    method: Method
    confidence: Confidence
    markers: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the members that a record of a run keeps."""
        return {
            "host": self.name,
            "provider": self.provider,
            "method": self.method,
            "confidence": self.confidence,
            "markers": list(self.markers),
        }


def detect(environment: Mapping[str, str]) -> Host:
    """Return the host that an environment tells of (§10)."""
    standing = [marker for marker in MARKERS if marker.stands(environment)]
    names = tuple(marker.variable for marker in standing)
    attributable = {marker.host for marker in standing if HOSTS[marker.host] is not None}
    cursor = any(marker.host == "cursor" for marker in standing)

    def unknown(method: Method) -> Host:
        return Host("unknown", None, method, "none", names)

    said = environment.get(OVERRIDE, "")
    if said:
        asserted = _host_name(said)
        if asserted is None or attributable - {asserted}:
            return unknown("conflict")
        return Host(asserted, HOSTS[asserted], "override", "asserted", names)
    if len(attributable) > 1 or (attributable and cursor):
        return unknown("conflict")
    if attributable:
        (name,) = attributable
        strong = any(marker.confidence == "strong" for marker in standing)
        return Host(name, HOSTS[name], "markers", "strong" if strong else "heuristic", names)
    if cursor:
        return Host("cursor", None, "markers", "none", names)
    return unknown("nothing")


def _host_name(said: str) -> HostName | None:
    for name in ("claude", "codex", "gemini", "cursor", "other"):
        if said == name:
            return name
    return None


# Providers and tiers -------------------------------------------------------------------------------------------------

_SUFFIX: Final = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)+\Z")
_PROVIDER: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}\Z")


def check_providers(additions: Mapping[str, str]) -> None:
    """Refuse configured providers that could not be meant.

    Raises:
        Refused: ``E_PROVIDERS`` for a suffix that is no plain name of two parts and more in lower case, for one at or
            below a suffix that is known already, and for a provider that is no plain word in lower case.
    """
    for suffix, provider in additions.items():
        if not _PROVIDER.match(provider):
            raise Refused("E_PROVIDERS", f"the provider of {suffix!r} is no plain word in lower case")
        if not _SUFFIX.match(suffix):
            raise Refused("E_PROVIDERS", f"{suffix!r} is no name of a host in lower case, such as example.com")
        if any(_within(suffix, known) for known in PROVIDERS):
            raise Refused("E_PROVIDERS", f"the provider of {suffix!r} is known and cannot be set")


def _within(host: str, suffix: str) -> bool:
    return host == suffix or host.endswith(f".{suffix}")


def provider_of(key: str, additions: Mapping[str, str]) -> str | None:
    """Return who runs the model behind a key of consent, ``None`` where the host's name does not tell it.

    Args:
        key: as :func:`troth.backends.endpoint.endpoint_key` gives it, or that of a scripted reviewer.
        additions: suffix -> provider, from the user's settings; the longest suffix that fits counts.
    """
    if key.startswith(SCRIPTED):
        return None
    host = parse_endpoint(key).host
    fitting = [suffix for suffix in (*PROVIDERS, *additions) if _within(host, suffix)]
    if not fitting:
        return None
    longest = max(fitting, key=len)
    return PROVIDERS.get(longest) or additions[longest]


def tier_of(host: Host, provider: str | None) -> Tier:
    """Return how independent a reviewer of that provider is of the host."""
    if host.provider is None or provider is None:
        return "undetermined"
    return "same_provider" if host.provider == provider else "cross_provider"


UNAUTHENTICATED: Final = "Who drives this run was read from variables of the environment, which anybody can set."

_NOTICES: Final[Mapping[str, str]] = {
    "undetermined": "Independence is undetermined: it is not known that reviewer and host are of different providers.",
    "same_provider": "Reviewer and host are of the same provider: what both overlook is more likely to be missed.",
    "self_review": "SELF-REVIEW: the host reviews its own work. This is no independent review.",
    "heuristic": "The tier cross_provider rests on a guess about the host, from signs that are not strict.",
}


def notices(tier: Tier, host: Host) -> tuple[str, ...]:
    """Return what is said with every result of that tier, the most important first."""
    told: list[str] = []
    if tier in _NOTICES:
        told.append(_NOTICES[tier])
    elif host.confidence == "heuristic":
        told.append(_NOTICES["heuristic"])
    if host.method != "nothing":
        told.append(UNAUTHENTICATED)
    return tuple(told)


# Choosing ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Candidate:
    """A backend as the choice sees it. ``missing`` says what it lacks; ``None``: it is usable."""

    name: str
    kind: str
    provider: str | None
    sandboxed: bool
    missing: str | None = None


def rank(candidate: Candidate, host: Host) -> tuple[int, int]:
    """Return the place of a candidate: its tier, then a sandboxed command line, another one, HTTP."""
    transport = (0 if candidate.sandboxed else 1) if candidate.kind == "cli" else 2
    return TIERS.index(tier_of(host, candidate.provider)), transport


def choose(candidates: Iterable[Candidate], host: Host) -> Candidate | None:
    """Return the usable backend of the best tier, the first of its kind where several are equal; ``None`` for none.

    A scripted reviewer is for trials and is never chosen.
    """
    fit = [one for one in candidates if one.missing is None and one.kind != "scripted"]
    return min(fit, key=lambda one: rank(one, host), default=None)


def unable_surface(environment: Mapping[str, str], host: Host) -> str | None:
    """Return the surface that is positively known to be able to start no program, ``None`` otherwise.

    A person says it with ``CLAUDE_SURFACE``, or a marker is strictly true (``1`` or ``true``). A ``CLAUDE_SURFACE`` of
    another value says otherwise, and where the host is not known to be Claude nothing is positive.
    """
    if host.name != "claude":
        return None
    said = environment.get("CLAUDE_SURFACE", "")
    if said:
        return said if said in SURFACES else None
    return next((name for variable, name in _UNABLE.items() if environment.get(variable) in _TRUE), None)


def self_review(environment: Mapping[str, str], host: Host, kind: str, usable: Iterable[str]) -> tuple[str, ...]:
    """Return the notices under which the host may review its own work, its own first.

    Args:
        environment: in which the host runs.
        host: as :func:`detect` found it.
        kind: of the artifact.
        usable: the backends that are usable.

    Raises:
        Refused: ``E_SELF_REVIEW`` where a backend is usable, for code, and where the surface is not positively known to
            be unable to start one.
    """
    able = sorted(usable)
    if able:
        raise Refused(
            "E_SELF_REVIEW", f"a reviewer of its own is there: {', '.join(able)}", remedy="Let that one review it."
        )
    if kind == "code":
        raise Refused("E_SELF_REVIEW", "code is never reviewed by the host that wrote it")
    if unable_surface(environment, host) is None:
        raise Refused(
            "E_SELF_REVIEW",
            "it is not certain that no reviewer can be started from here",
            remedy="Set up a reviewer: `troth review backends` tells what each one lacks.",
        )
    return notices("self_review", host)
