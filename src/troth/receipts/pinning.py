"""Writing cases and policies (done records §6, §13.8): a producer's own, and a consumer's from a few pins."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from troth.core.canonical import record_bytes
from troth.core.digests import sha256_hex
from troth.core.errors import Place, Refused
from troth.receipts.kinds import SCOPES, Broken, Record, is_digest, is_text, require_scope
from troth.receipts.member import CORE_RECORDS, FILES, MappingMember, Member, ReadFault
from troth.receipts.policy import CHECKS, PINNED
from troth.receipts.reader import MemberReader

MAX_PINS: Final = 1 << 20
"""Longest pin file, in bytes; it names a handful of producers and digests."""


@dataclass(frozen=True, slots=True)
class Pins:
    """What a case and policy say about a run's records, role by role."""

    claim_id: str
    invocation_id: str
    observed_party: str
    authority: str
    scope: Record
    origins: Mapping[str, Record]
    """Pinned role -> {producer, vantage, witness_scope}."""
    sha256: Mapping[str, str] = field(default_factory=dict)
    """Role -> digest; a role that is not named is pinned to the bytes it has."""


def write_pins(records: Mapping[str, bytes], pins: Pins) -> dict[str, bytes]:
    """Return the six case and policy files over records given by role.

    Args:
        records: role -> the file's bytes.
        pins: what to say about them.
    """
    written = {}
    for kind in CHECKS.values():
        case = {
            "schema_version": "probity-case/v1",
            "case_id": pins.claim_id,
            "artifacts": {
                role: {
                    "path": FILES[role],
                    "sha256": sha256_hex(records[role]),
                    "length": len(records[role]),
                }
                for role in kind.roles
            },
        }
        asked: Record = {
            "claim_type": kind.claim_type,
            "invocation_id": pins.invocation_id,
            "observed_party": pins.observed_party,
            **{f"{role}_witness": role for role in kind.roles},
        }
        if kind.scoped:
            asked["scope"] = pins.scope
        policy = {
            "schema_version": "probity-policy/v1",
            "assessments": {pins.claim_id: asked},
            "witnesses": {
                role: {
                    "artifact": role,
                    "sha256": pins.sha256.get(role, sha256_hex(records[role])),
                    "authority": pins.authority,
                    **(pins.origins[role] if role in PINNED else {}),
                }
                for role in kind.roles
            },
        }
        written[kind.case_file] = record_bytes(case)
        written[kind.policy_file] = record_bytes(policy)
    return written


def self_pin(
    records: Mapping[str, bytes],
    *,
    claim_id: str,
    invocation_id: str,
    scope: Mapping[str, str],
    observed_party: str,
    authority: str,
) -> dict[str, bytes]:
    """Return the six case and policy files with which a producer pins its own records (§13.8).

    They establish nothing against the producer: a reader says that it judged by them. The scope is always ``PEER``.

    Args:
        records: file name (``contract.json`` …) -> bytes; the six core records must be there.
        claim_id: the claim the records name.
        invocation_id: the run they name.
        scope: {id, start, end} of the observation.
        observed_party: the agent.
        authority: who is responsible for these pins.

    Raises:
        Refused: ``receipt_record_missing``; or the code of the first rule a record breaks (`Broken`).
    """
    for role in CORE_RECORDS:
        if FILES[role] not in records:
            raise Refused(
                "receipt_record_missing",
                f"{FILES[role]} is needed to pin a run",
                place=Place(file=FILES[role]),
            )
    reader = MemberReader(MappingMember(records))
    origins = {}
    for role in PINNED:
        record = reader.record(role, FILES[role])
        origins[role] = {
            "producer": record["producer"],
            "vantage": record["vantage"],
            "witness_scope": "PEER",
        }
    pins = Pins(claim_id, invocation_id, observed_party, authority, dict(scope), origins)
    return write_pins({role: records[FILES[role]] for role in CORE_RECORDS}, pins)


# --- a consumer's pins ---

_TABLES: Final = ("scope", "producers", "witness_scope", "sha256")
_TEXTS: Final = ("observed_party", "authority", "claim_id", "invocation_id")


@dataclass(frozen=True, slots=True)
class ConsumerPins:
    """A consumer's pins, as read: whom it believes and what it asks.

    ``observed_party`` and the producers of observation, tree and grade are always the consumer's. Claim, run, scope
    and digests that it leaves open are taken from the member and listed by `open_points`.
    """

    observed_party: str
    producers: Mapping[str, str]
    authority: str = "the reader's own pins"
    claim_id: str | None = None
    invocation_id: str | None = None
    scope: Record | None = None
    witness_scope: Mapping[str, str] = field(default_factory=dict)
    sha256: Mapping[str, str] = field(default_factory=dict)

    def open_points(self) -> list[str]:
        """Return what is not pinned and was therefore taken from the member itself."""
        points = [name for name in ("claim_id", "invocation_id", "scope") if getattr(self, name) is None]
        return points + [f"sha256.{role}" for role in CORE_RECORDS if role not in self.sha256]


def _wrong(where: str, what: str) -> Refused:
    return Refused(
        "E_PIN_MALFORMED",
        f"{where}: {what}",
        remedy="A pin file names observed_party and [producers] observation, tree, grade; "
        "it may name authority, claim_id, invocation_id, [scope], [witness_scope] and [sha256].",
    )


def parse_pins(data: bytes) -> ConsumerPins:
    """Read a consumer's pins in TOML.

    Raises:
        Refused: ``E_PIN_UNREADABLE`` for what is no TOML in UTF-8, or too long; ``E_PIN_MALFORMED`` as `read_pins`.
    """
    if len(data) > MAX_PINS:
        raise unreadable_pins(f"more than {MAX_PINS} bytes")
    try:
        value = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as fault:  # nested too deep is no ValueError
        raise unreadable_pins(str(fault)) from None
    return read_pins(value)


def unreadable_pins(why: str) -> Refused:
    """Return the refusal of a pin file that cannot be read."""
    return Refused(
        "E_PIN_UNREADABLE",
        f"the pin file cannot be read: {why}",
        remedy="A pin file is TOML in UTF-8; `troth receipt verify --help` shows one.",
    )


def read_pins(value: Mapping[str, Any]) -> ConsumerPins:
    """Read a consumer's pins from parsed TOML.

    Raises:
        Refused: ``E_PIN_MALFORMED`` with the member at fault.
    """
    for name in value:
        if name not in _TABLES and name not in _TEXTS:
            raise _wrong(name, "is no member of a pin file")
    for name in _TEXTS:
        if name in value and not is_text(value[name]):
            raise _wrong(name, "is no text")
    if "observed_party" not in value:
        raise _wrong("observed_party", "is missing")
    tables: dict[str, Record] = {}
    for name in _TABLES:
        table = value.get(name, {})
        if type(table) is not dict:
            raise _wrong(name, "is no table")
        tables[name] = table
    allowed = {"producers": PINNED, "witness_scope": PINNED, "sha256": CORE_RECORDS}
    for name, roles in allowed.items():
        for role in tables[name]:
            if role not in roles:
                raise _wrong(f"{name}.{role}", f"the roles here are {', '.join(roles)}")
    for role in PINNED:
        if not is_text(tables["producers"].get(role)):
            raise _wrong(f"producers.{role}", "is missing or no text")
    for role, scope in tables["witness_scope"].items():
        if scope not in SCOPES:
            raise _wrong(f"witness_scope.{role}", "is neither PEER nor EXTERNAL")
    for role, digest in tables["sha256"].items():
        if not is_digest(digest):
            raise _wrong(f"sha256.{role}", "is not 64 lowercase hexadecimal digits")
    if "scope" in value:
        try:
            require_scope(value["scope"], "policy")
        except Broken as fault:
            raise _wrong("scope", fault.message) from None
    return ConsumerPins(
        observed_party=value["observed_party"],
        producers=tables["producers"],
        authority=value.get("authority", "the reader's own pins"),
        claim_id=value.get("claim_id"),
        invocation_id=value.get("invocation_id"),
        scope=value.get("scope"),
        witness_scope=tables["witness_scope"],
        sha256=tables["sha256"],
    )


def consumer_files(member: Member, pins: ConsumerPins) -> dict[str, bytes]:
    """Return the six case and policy files that a consumer's pins amount to for this member.

    Raises:
        Broken: a record of the member is missing (``receipt_record_missing``), unreadable (``member_unreadable``) or
            breaks a rule of §4.
    """
    reader = MemberReader(member)
    records = {}
    for role in CORE_RECORDS:
        try:
            data = reader.read(FILES[role])
        except ReadFault:
            raise Broken("member_unreadable") from None
        if data is None:
            raise Broken("receipt_record_missing")
        records[role] = data
    observation = reader.record("observation", FILES["observation"])
    origins = {
        role: {
            "producer": pins.producers[role],
            "vantage": "independent",
            "witness_scope": pins.witness_scope.get(role, "PEER"),
        }
        for role in PINNED
    }
    return write_pins(
        records,
        Pins(
            claim_id=observation["claim_id"] if pins.claim_id is None else pins.claim_id,
            invocation_id=(observation["invocation_id"] if pins.invocation_id is None else pins.invocation_id),
            observed_party=pins.observed_party,
            authority=pins.authority,
            scope=observation["scope"] if pins.scope is None else pins.scope,
            origins=origins,
            sha256=pins.sha256,
        ),
    )
