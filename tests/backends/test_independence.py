"""Who drives the run, whose model answers, how independent that is: every combination of markers."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference import independence_model
from troth.backends.independence import (
    HOSTS,
    MARKERS,
    OVERRIDE,
    PROVIDERS,
    TIERS,
    UNAUTHENTICATED,
    Candidate,
    Host,
    check_providers,
    choose,
    detect,
    notices,
    provider_of,
    self_review,
    tier_of,
    unable_surface,
)
from troth.core.errors import Refused

VALUES: dict[str, tuple[str | None, ...]] = {
    "CLAUDECODE": (None, "1", "0"),
    "CLAUDE_SURFACE": (None, "cowork", "cli"),
    "CLAUDE_CODE_ENTRYPOINT": (None, "cli", "false"),
    "CLAUDE_COWORK": (None, "1", ""),
    "CLAUDE_CHAT_SANDBOX": (None, "yes"),
    "GEMINI_CLI": (None, "1", "true"),
    "CURSOR_AGENT": (None, "1"),
    "CODEX_SANDBOX": (None, "seatbelt", "other"),
    "CODEX_SANDBOX_NETWORK_DISABLED": (None, "1"),
}
SAID = (None, "", "claude", "codex", "gemini", "cursor", "other", "unknown", "Claude", "claude ")


def test_every_marker_is_combined() -> None:
    assert {marker.variable for marker in MARKERS} == set(VALUES)


def test_every_combination_of_markers_against_a_second_reading() -> None:
    seen = set()
    for values in itertools.product(*VALUES.values()):
        environment = {name: value for name, value in zip(VALUES, values, strict=True) if value is not None}
        for said in SAID:
            if said is not None:
                environment[OVERRIDE] = said
            found = detect(environment)
            expected = independence_model.host(environment)
            assert (found.name, found.method, found.confidence) == expected, environment
            assert found.provider == independence_model.MAKERS.get(found.name)
            seen.add(expected)
        environment.pop(OVERRIDE, None)
    assert len(seen) == 12  # every kind of answer did occur


@given(st.dictionaries(st.sampled_from([*VALUES, OVERRIDE]), st.text(max_size=12) | st.sampled_from(["1", "0", "no"])))
def test_any_value_of_a_marker(environment: dict[str, str]) -> None:
    found = detect(environment)
    assert (found.name, found.method, found.confidence) == independence_model.host(environment)


@pytest.mark.parametrize("value", ["", "0", "false", "off", "no"])
def test_what_switches_a_heuristic_marker_off(value: str) -> None:
    for name in ("CLAUDE_CODE_ENTRYPOINT", "CLAUDE_COWORK", "CLAUDE_CHAT_SANDBOX"):
        assert detect({name: value}).name == "unknown"
        assert detect({name: f"{value}x"}).name == "claude"


def test_what_was_found_is_named_without_values() -> None:
    found = detect({"CLAUDECODE": "1", "CLAUDE_COWORK": "some value", "PATH": "/bin"})
    assert found.as_json() == {
        "host": "claude",
        "provider": "anthropic",
        "method": "markers",
        "confidence": "strong",
        "markers": ["CLAUDECODE", "CLAUDE_COWORK"],
    }


# --- providers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "provider"),
    [
        ("https://api.openai.com", "openai"),
        ("https://openai.com:8443", "openai"),
        ("https://eu.api.anthropic.com", "anthropic"),
        ("https://notopenai.com", None),
        ("https://openai.com.example.net", None),
        ("https://openai.com-example.net", None),
        ("https://gateway.example.com", None),
        ("http://127.0.0.1:11434", None),
        ("https://[2001:db8::1]", None),
        ("scripted:openai.com", None),
        ("https://llm.corp.example", "corp"),
        ("https://fast.llm.corp.example", "speedy"),
        ("https://xcorp.example", None),
    ],
)
def test_a_provider_by_suffix(key: str, provider: str | None) -> None:
    assert provider_of(key, {"corp.example": "corp", "fast.llm.corp.example": "speedy"}) == provider


@pytest.mark.parametrize(
    "additions",
    [
        {"openai.com": "other"},
        {"api.openai.com": "other"},
        {"example": "other"},
        {"Example.com": "other"},
        {".example.com": "other"},
        {"example.com.": "other"},
        {"*.example.com": "other"},
        {"https://example.com": "other"},
        {"example.com": "Other"},
        {"example.com": ""},
        {"example.com": "two words"},
    ],
)
def test_providers_that_could_not_be_meant(additions: dict[str, str]) -> None:
    with pytest.raises(Refused) as refused:
        check_providers(additions)
    assert refused.value.code == "E_PROVIDERS"


def test_providers_that_could() -> None:
    check_providers({"corp.example": "corp", "googleapis.com": "google", "my-openai.com": "corp"})


# --- tiers and notices ---------------------------------------------------------------------------------------------


def hosts() -> list[Host]:
    found = {detect({OVERRIDE: name}) for name in HOSTS}
    found |= {detect({"CLAUDECODE": "1"}), detect({"CODEX_SANDBOX": "seatbelt"}), detect({"CURSOR_AGENT": "1"})}
    found |= {detect({}), detect({"CLAUDECODE": "1", "GEMINI_CLI": "1"})}
    return sorted(found, key=lambda host: (host.name, host.method))


@pytest.mark.parametrize("provider", [None, "openai", "anthropic", "google", "corp"])
def test_tiers_and_their_notices(provider: str | None) -> None:
    for host in hosts():
        tier = tier_of(host, provider)
        assert tier == independence_model.tier(host.name, provider)
        told = notices(tier, host)
        if tier in ("same_provider", "undetermined"):
            assert tier.replace("_", " ").split()[0] in told[0]
        elif host.confidence == "heuristic":
            assert "guess" in told[0]
        else:
            assert not any("guess" in line for line in told)
        assert (UNAUTHENTICATED in told) is (host.method != "nothing")


def test_nothing_unclear_is_ever_cross_provider() -> None:
    for host in hosts():
        if host.name == "unknown":
            assert {tier_of(host, provider) for provider in (None, *PROVIDERS.values())} == {"undetermined"}


# --- choosing ------------------------------------------------------------------------------------------------------

CODEX = Candidate("codex", "cli", "openai", sandboxed=True)
CLAUDE = Candidate("claude", "cli", "anthropic", sandboxed=False)
HTTP_OPENAI = Candidate("openai", "http", "openai", sandboxed=False)
HTTP_ANTHROPIC = Candidate("anthropic", "http", "anthropic", sandboxed=False)
LOCAL = Candidate("local", "http", None, sandboxed=False)
SCRIPTED = Candidate("scripted", "scripted", None, sandboxed=True)
ON_CLAUDE, ON_CODEX, NOWHERE = detect({"CLAUDECODE": "1"}), detect({OVERRIDE: "codex"}), detect({})


@pytest.mark.parametrize(
    ("host", "candidates", "chosen"),
    [
        (ON_CLAUDE, [CLAUDE, CODEX], CODEX),
        (ON_CODEX, [CODEX, CLAUDE], CLAUDE),
        (ON_CLAUDE, [CLAUDE, HTTP_OPENAI], HTTP_OPENAI),
        (ON_CLAUDE, [HTTP_OPENAI, CODEX], CODEX),
        (ON_CLAUDE, [CLAUDE, LOCAL], LOCAL),
        (ON_CLAUDE, [HTTP_ANTHROPIC, CLAUDE], CLAUDE),
        (NOWHERE, [LOCAL, CLAUDE, CODEX], CODEX),
        (NOWHERE, [LOCAL, CLAUDE], CLAUDE),
        (NOWHERE, [HTTP_OPENAI, LOCAL], HTTP_OPENAI),
        (NOWHERE, [SCRIPTED, LOCAL], LOCAL),
        (NOWHERE, [SCRIPTED], None),
        (NOWHERE, [], None),
    ],
)
def test_the_choice(host: Host, candidates: list[Candidate], chosen: Candidate | None) -> None:
    assert choose(candidates, host) == chosen


def test_what_is_not_usable_is_not_chosen() -> None:
    missing = Candidate("codex", "cli", "openai", sandboxed=True, missing="codex is not installed")
    assert choose([missing, CLAUDE], ON_CLAUDE) == CLAUDE
    assert choose([missing], ON_CLAUDE) is None


@given(
    st.lists(
        st.builds(
            Candidate,
            st.just("x"),
            st.sampled_from(["cli", "http", "scripted"]),
            st.sampled_from([None, "openai", "anthropic", "corp"]),
            st.booleans(),
            st.sampled_from([None, "missing"]),
        ),
        max_size=6,
    ),
    st.sampled_from(hosts()),
)
def test_nothing_usable_is_better_than_the_choice(candidates: list[Candidate], host: Host) -> None:
    chosen = choose(candidates, host)
    fit = [one for one in candidates if one.missing is None and one.kind != "scripted"]
    assert (chosen is None) is (not fit)
    for one in fit:
        assert chosen is not None
        best, other = tier_of(host, chosen.provider), tier_of(host, one.provider)
        assert TIERS.index(best) <= TIERS.index(other)
        if best == other:
            assert (chosen.kind == "cli") >= (one.kind == "cli")
            assert not (one.kind == "cli" and one.sandboxed) or chosen.sandboxed


# --- reviewing one's own work --------------------------------------------------------------------------------------

UNABLE: list[tuple[dict[str, str], str | None]] = [
    ({"CLAUDE_SURFACE": "chat"}, "chat"),
    ({"CLAUDE_SURFACE": "cowork", "CLAUDECODE": "1"}, "cowork"),
    ({"CLAUDE_COWORK": "1"}, "cowork"),
    ({"CLAUDE_COWORK": "true"}, "cowork"),
    ({"CLAUDE_CHAT_SANDBOX": "1"}, "sandbox"),
    ({"CLAUDE_CHAT_SANDBOX": "1", OVERRIDE: "claude"}, "sandbox"),
    ({"CLAUDE_COWORK": "yes"}, None),  # set, but not strictly true
    ({"CLAUDE_COWORK": "True"}, None),
    ({"CLAUDE_COWORK": "1", "CLAUDE_SURFACE": "cli"}, None),  # a person says otherwise
    ({"CLAUDECODE": "1"}, None),
    ({"CLAUDE_COWORK": "1", "GEMINI_CLI": "1"}, None),  # not positively anybody
    ({"CLAUDE_COWORK": "1", OVERRIDE: "codex"}, None),
    ({"CLAUDE_COWORK": "1", "CURSOR_AGENT": "1"}, None),
    ({"CODEX_SANDBOX": "seatbelt"}, None),
    ({}, None),
]


@pytest.mark.parametrize(("environment", "surface"), UNABLE)
def test_surfaces_that_can_start_nothing(environment: dict[str, str], surface: str | None) -> None:
    host = detect(environment)
    assert unable_surface(environment, host) == surface
    if surface is None:
        with pytest.raises(Refused):
            self_review(environment, host, "decision", [])
    else:
        told = self_review(environment, host, "decision", [])
        assert told[0].startswith("SELF-REVIEW")


@pytest.mark.parametrize("kind", ["document", "decision", "research", "data", "other"])
def test_reviewing_one_s_own_work_is_the_last_resort(kind: str) -> None:
    environment = {"CLAUDE_SURFACE": "chat"}
    host = detect(environment)
    assert self_review(environment, host, kind, [])
    with pytest.raises(Refused, match="codex"):
        self_review(environment, host, kind, ["codex"])
    with pytest.raises(Refused, match="code is never"):
        self_review(environment, host, "code", [])
