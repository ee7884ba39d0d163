"""A reviewer's name to the backend that reaches it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from troth.backends.protocol import Backend
from troth.core.errors import Refused
from troth.core.words import printable

FORMS: Final[Mapping[str, str]] = {
    "codex": "codex, or codex@URL for another service that speaks its protocol",
    "claude": "claude, or claude@URL for another service that speaks its protocol",
    "openai": "openai:MODEL, or openai:MODEL@URL for any compatible service",
    "anthropic": "anthropic:MODEL, or anthropic:MODEL@URL",
    "local": "local:URL or local:MODEL@URL, a server on this machine",
    "scripted": "scripted:FILE, canned answers",
}
"""Name of a backend -> how it is written."""

_AT: Final = re.compile(r"(?P<before>.*?)@(?P<url>[A-Za-z][A-Za-z0-9+.-]*://.*)", re.DOTALL)


def open_backend(
    named: str,
    *,
    around: Mapping[str, str] | None = None,
    key_variable: str | None = None,
    providers: Mapping[str, str] | None = None,
    rules: bool = False,
) -> Backend:
    """Return the backend that a name means. Nothing is sent and no program is started.

    Args:
        named: one of :data:`FORMS`.
        around: our environment; the process's own where it is not given.
        key_variable: the variable that holds the key of a service behind HTTP, where it is not the usual one.
        providers: suffix of a host -> provider, from the user's settings (§10).
        rules: let rules of the repository apply in ``codex`` (§9 [D32]).

    Raises:
        Refused: ``E_BACKEND_UNKNOWN``; ``E_ENDPOINT`` for an address that is none; ``E_SCRIPT``.
    """
    at = _AT.fullmatch(named)
    before, url = (at["before"], at["url"]) if at else (named, None)
    name, _, rest = before.partition(":")
    told: dict[str, Any] = {"around": around, "key_variable": key_variable, "providers": providers}
    match name:
        case "codex" if not rest:
            from troth.backends.codex import Codex

            return Codex(around, url, rules=rules, providers=providers)
        case "claude" if not rest:
            from troth.backends.claude import Claude

            return Claude(around, url, providers=providers)
        case "openai" | "anthropic" if rest:
            return _over_http(name, rest, url, **told)
        case "local" if url is not None or rest:
            return _over_http(name, rest if url else None, url or rest, **told)
        case "scripted" if before != name and (file := named.partition(":")[2]):
            from troth.backends.scripted import Scripted

            return Scripted(Path(file))
    if name in FORMS:
        raise Refused("E_BACKEND_UNKNOWN", f"{printable(named, 80)!r} is not written as {FORMS[name]}")
    raise Refused(
        "E_BACKEND_UNKNOWN",
        f"there is no reviewer {printable(named, 80)!r}",
        remedy=f"Name one as {'; '.join(FORMS.values())}.",
    )


def _over_http(
    name: str,
    model: str | None,
    url: str | None,
    *,
    around: Mapping[str, str] | None,
    key_variable: str | None,
    providers: Mapping[str, str] | None,
) -> Backend:
    from troth.backends import http

    made = {"openai": http.OpenAI, "anthropic": http.Anthropic, "local": http.Local}[name]
    given: dict[str, Any] = {"model": model, "environment": around, "providers": providers}
    if url is not None:
        given["url"] = url
    if key_variable is not None:
        given["key_variable"] = key_variable
    backend: Backend = made(**given)
    return backend
