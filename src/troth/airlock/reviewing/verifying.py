"""From what a host says of a verification to what is recorded: what a program can check is checked first ([D1])."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from troth.airlock.reviewing import checks, host
from troth.airlock.reviewing.session import Session
from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.core.strictjson import JsonFault, Limits, loads
from troth.review.formats import is_uri
from troth.stores.durable import read_regular

MOST_SOURCE: Final = 1 << 28
"""Largest retrieved source whose digest is taken, in bytes."""

_ANCHOR: Final = Limits(max_bytes=1 << 20, max_depth=8, refuse_overflow=True)

_ONLY: Final[Mapping[str, str]] = {
    "anchor": "artifact-inspection", "quote": "artifact-inspection", "absent": "artifact-inspection",
    "uri": "source-retrieval", "source": "source-retrieval", "again": "command", "timeout": "command",
    "when_passes": "command", "when_fails": "command",
}  # fmt: skip
"""What a verification may carry -> the one method that it goes with."""


@dataclass(frozen=True, slots=True)
class Made:
    """A verification ready to be recorded, its facts, and the end of a command's output."""

    verification: Mapping[str, Any]
    facts: Mapping[str, Any]
    output: bytes = b""
    earlier: bool = False


def check_request(method: str, result: str | None, argv: Sequence[str], given: Mapping[str, Any]) -> None:
    """Refuse what does not go together, before anything is opened.

    Raises:
        Refused: ``E_USAGE``.
    """
    for name, only in _ONLY.items():
        if given.get(name) and method != only:
            word = "file" if name == "source" else name.replace("_", "-")
            raise Refused("E_USAGE", f"--{word} goes with --method {only}")
    if method == "command":
        if not argv:
            raise Refused("E_USAGE", "name the command after `--`", remedy="Example: … --method command -- pytest -q")
        if result is not None or given.get("detail"):
            raise Refused("E_USAGE", "what a command says is computed; --when-passes and --when-fails say how")
        return
    if argv:
        raise Refused("E_USAGE", "a command goes with --method command")
    if result is None:
        raise Refused("E_USAGE", f"--method {method} needs --result supports, contradicts or inconclusive")
    if not given.get("detail"):
        raise Refused("E_USAGE", f"--method {method} needs --detail: what was looked at and what was seen")


def made(
    session: Session,
    finding_id: str,
    method: str,
    *,
    result: str | None,
    argv: Sequence[str],
    given: Mapping[str, Any],
    actor: str,
) -> Made:
    """Return the verification, with everything checked that can be.

    Args:
        session: the run.
        finding_id: what it is about.
        method: as the command line writes it.
        result: what the host says it says, ``None`` for a command.
        argv: the command.
        given: the other words: ``detail``, ``when_passes``, ``when_fails``, ``anchor``, ``quote``, ``absent``, ``uri``,
            ``source``, ``again``, ``timeout``.
        actor: who verifies.

    Raises:
        Refused: ``E_REVIEW_CHECK`` when the artifact belies it, ``E_REVIEW_ROLE`` for an operator's confirmation that
            an agent records, ``E_USAGE``, and why a command cannot run.
    """
    if method == "command":
        ran = checks.run_command(
            session, argv, passing=given.get("when_passes") or "contradicts", failing=given.get("when_fails"),
            seconds=given.get("timeout"), finding_id=None if given.get("again") else finding_id,
        )  # fmt: skip
        entry = {"method": "command", "result": ran.result, "detail": ran.detail}
        return Made(entry, {"run": dict(ran.facts)}, ran.output, ran.earlier)
    if method == "operator-confirmation" and actor.startswith(("agent:", "system:")):
        raise Refused(
            "E_REVIEW_ROLE", "an operator's confirmation is recorded by the operator, not by an agent",
            remedy="Let a person record it: --as human:NAME",
        )  # fmt: skip
    facts: dict[str, Any] = {}
    if method == "artifact-inspection":
        facts = _inspected(session, given)
    elif method == "source-retrieval":
        facts = _retrieved(given)
    detail = host.text_of(given.get("detail"), "the detail")
    return Made({"method": method.replace("-", "_"), "result": result, "detail": detail}, facts)


def _inspected(session: Session, given: Mapping[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if given.get("anchor") and given.get("quote"):
        raise Refused("E_USAGE", "an inspection points with --anchor or --quote, not both")
    if given.get("anchor"):
        try:
            anchor = loads(given["anchor"].encode("utf-8", "surrogatepass"), _ANCHOR)
        except JsonFault as fault:
            raise Refused("E_USAGE", f"--anchor is no JSON: {fault.message}") from None
        facts |= checks.check_anchor(session, anchor)
    if given.get("quote"):
        facts |= checks.check_anchor(session, {"type": "text_quote", "quote": host.text_of(given["quote"], "--quote")})
    if (absent := host.text_of(given.get("absent"), "--absent")) is not None:
        facts |= checks.check_absent(session, absent)
    return facts


def _retrieved(given: Mapping[str, Any]) -> dict[str, Any]:
    source: dict[str, Any] = {}
    if given.get("uri"):
        if not is_uri(given["uri"]):
            raise Refused("E_USAGE", "--uri takes an absolute URI")
        source["uri"] = given["uri"]
    if given.get("source"):
        data = read_regular(Path(given["source"]), MOST_SOURCE, "E_REVIEW_MISSING", "the source")
        source |= {"sha256": sha256_hex(data), "bytes": len(data)}
    return {"source": source} if source else {}
