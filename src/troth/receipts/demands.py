"""Whom a reader of a signed receipt asks for, and what the signatures found amount to.

A signer is a public key (:mod:`troth.core.notes`) or an *identity*: a name for which an issuer vouched when a sigstore
instance gave out a certificate. Each signs in one role. That of a key stands in the key itself: a witness's key signs
as a *witness*, any other as an *approver*. That of an identity is the reader's to say. Neither role counts for the
other, a key under two names is one signer, and so is an identity with two bundles.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from troth.core.errors import DoesNotHold, NotEstablished, Refused, TrothError
from troth.core.notes import VerifierKey

MAX_TRUSTED: Final = 256
"""Most trusted keys tried, and most trusted identities."""

MAX_IDENTITY: Final = 2048
"""Longest identity or issuer, in characters; those of workflows are addresses of some hundred."""

Role = Literal["witness", "approver"]
ROLES: Final[tuple[Role, ...]] = ("witness", "approver")

_TABLES: Final[Mapping[str, Role]] = {"approver": "approver", "witness": "witness"}
_VISIBLE: Final = re.compile(r"[!-~]+\Z")


@dataclass(frozen=True, slots=True)
class Identity:
    """A name and who vouches for it, exactly as a certificate has them, and in which role it is believed.

    ``name`` is an e-mail address or the address of a workflow, ``issuer`` that of the service that told who it is.
    """

    name: str
    issuer: str
    role: Role = "approver"

    def __str__(self) -> str:
        return f"{self.name} ({self.issuer})"


Signatory = VerifierKey | Identity
"""Who can be asked for."""


def role_of(signatory: Signatory) -> Role:
    """Return as what somebody signs."""
    if isinstance(signatory, Identity):
        return signatory.role
    return "witness" if signatory.is_witness else "approver"


def keyid_of(key: VerifierKey) -> str:
    """Return the hint by which a signature names its key: ``NAME+ID``, the id being bound to name, kind and key."""
    return f"{key.name}+{key.id.hex()}"


def _who(signatory: Signatory) -> object:
    """Return what makes two signatories the same one."""
    return (signatory.name, signatory.issuer) if isinstance(signatory, Identity) else signatory.public


def _shown(signatory: Signatory) -> dict[str, Any]:
    if isinstance(signatory, Identity):
        return {"name": signatory.name, "role": signatory.role, "issuer": signatory.issuer}
    return {"name": signatory.name, "role": role_of(signatory), "key": str(signatory)}


# What was found -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Signers:
    """What signatures amount to, before anybody asked for a number.

    ``verified`` holds each trusted signatory that signed, once, under the first name it was given by; ``bad`` the names
    of those whose signature does not fit; ``unknown`` counts the signatures of others; ``reasons`` says of bundles why
    they were not taken.
    """

    verified: tuple[Signatory, ...]
    bad: tuple[str, ...] = ()
    unknown: int = 0
    reasons: tuple[str, ...] = ()

    def count(self, role: Role) -> int:
        """Return how many distinct signatories signed in a role."""
        return len({_who(one) for one in self.verified if role_of(one) == role})

    def as_json(self) -> dict[str, Any]:
        """Return it in the shape that ``--json`` shows."""
        shown: dict[str, Any] = {
            "verified": [_shown(one) for one in self.verified],
            "bad": list(self.bad),
            "unknown": self.unknown,
        }
        return {**shown, "reasons": list(self.reasons)} if self.reasons else shown


@dataclass(frozen=True, slots=True)
class Demand:
    """Whom a reader believes and how many of them must have signed, by role."""

    keys: tuple[VerifierKey, ...]
    approvers: int
    witnesses: int
    identities: tuple[Identity, ...] = field(default=())

    def of(self, role: Role) -> int:
        """Return how many distinct signatories of a role must have signed."""
        return self.approvers if role == "approver" else self.witnesses


def by_keyid(keys: Iterable[VerifierKey]) -> dict[str, VerifierKey]:
    """Return trusted keys by their hints.

    Raises:
        Refused: ``E_ENVELOPE_ROLE``, ``E_KEY_AMBIGUOUS``; ``E_USAGE`` for more than 256 keys.
    """
    trusted: dict[str, VerifierKey] = {}
    roles: dict[bytes, Role] = {}
    for key in keys:
        if roles.setdefault(key.public, role_of(key)) != role_of(key):
            raise _two_roles(f"the public key of {key.name}")
        if trusted.setdefault(keyid_of(key), key) != key:
            raise Refused("E_KEY_AMBIGUOUS", f"two keys are {keyid_of(key)}", remedy="Name one of them.")
    if len(trusted) > MAX_TRUSTED:
        raise Refused("E_USAGE", f"more than {MAX_TRUSTED} trusted keys", remedy="Name those that matter.")
    return trusted


def _two_roles(what: str) -> Refused:
    return Refused(
        "E_ENVELOPE_ROLE",
        f"{what} is named as a witness's and as an approver's",
        remedy="Trust it in one role; give each role a signer of its own.",
    )


def _distinct(identities: Iterable[Identity]) -> tuple[Identity, ...]:
    trusted: dict[object, Identity] = {}
    for one in identities:
        if trusted.setdefault(_who(one), one).role != one.role:
            raise _two_roles(f"the identity {one}")
    if len(trusted) > MAX_TRUSTED:
        raise Refused("E_USAGE", f"more than {MAX_TRUSTED} trusted identities", remedy="Name those that matter.")
    return tuple(trusted.values())


def demand(
    keys: Sequence[VerifierKey],
    threshold: int | None = None,
    quorum: int | None = None,
    identities: Sequence[Identity] = (),
) -> Demand:
    """Return what a reader asks for.

    Args:
        keys: whom to trust, each in the role of its kind.
        threshold: how many distinct approvers must have signed; by default one where an approver is named.
        quorum: how many distinct witnesses must have signed; by default one where a witness is named.
        identities: whom else to trust; a key and an identity are two signers, whoever holds them.

    Raises:
        Refused: ``E_USAGE`` when nothing is asked for, or more than could be given; ``E_ENVELOPE_ROLE``.
    """
    trusted = tuple(by_keyid(keys).values())
    named = _distinct(identities)
    have = {role: Signers((*trusted, *named)).count(role) for role in ROLES}
    wanted: dict[Role, int] = {
        "approver": min(have["approver"], 1) if threshold is None else threshold,
        "witness": min(have["witness"], 1) if quorum is None else quorum,
    }
    if sum(wanted.values()) < 1:
        raise Refused(
            "E_USAGE", "no signature is asked for", remedy="Name whom to trust with --key or --certificate-identity."
        )
    for role in ROLES:
        if wanted[role] < 0 or wanted[role] > have[role]:
            raise Refused(
                "E_USAGE",
                f"{wanted[role]} signatures of {role}s are asked for, and {have[role]} distinct ones are named",
                remedy="Name more of them, each once.",
            )
    return Demand(trusted, wanted["approver"], wanted["witness"], named)


def identity(name: object, issuer: object, role: Role = "approver") -> Identity:
    """Return an identity, once its name and issuer are something that a certificate can hold.

    Raises:
        Refused: ``E_IDENTITY_MALFORMED``.
    """
    for what, text in (("identity", name), ("issuer", issuer)):
        if type(text) is not str or len(text) > MAX_IDENTITY or _VISIBLE.match(text) is None:
            raise _malformed(f"an {what} is 1 to {MAX_IDENTITY} visible ASCII characters")
    assert isinstance(name, str)
    assert isinstance(issuer, str)
    return Identity(name, issuer, role)


def read_identities(value: Mapping[str, Any]) -> tuple[Identity, ...]:
    """Return the identities of a reader's list: arrays of tables ``approver`` and ``witness`` of {identity, issuer}.

    Raises:
        Refused: ``E_IDENTITY_MALFORMED`` with the first rule broken; ``E_ENVELOPE_ROLE``; ``E_USAGE`` for too many.
    """
    stray = sorted(set(value) - set(_TABLES))
    if stray:
        raise _malformed(f"{stray[0]} is no table of it; approver and witness are")
    found = []
    for name, role in _TABLES.items():
        entries = value.get(name, [])
        if type(entries) is not list:
            raise _malformed(f"{name} is an array of tables: [[{name}]]")
        for entry in entries:
            if type(entry) is not dict or set(entry) != {"identity", "issuer"}:
                raise _malformed(f"a [[{name}]] holds identity and issuer, and nothing else")
            found.append(identity(entry["identity"], entry["issuer"], role))
    if not found:
        raise _malformed("it names nobody")
    return _distinct(found)


def parse_identities(data: bytes) -> tuple[Identity, ...]:
    """Return the identities of a reader's list in TOML.

    Raises:
        Refused: as :func:`read_identities`; ``E_IDENTITY_MALFORMED`` as well for what is no TOML in UTF-8.
    """
    try:
        value = tomllib.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as fault:  # nested too deep is no ValueError
        raise _malformed(f"it is no TOML in UTF-8: {fault}") from None
    return read_identities(value)


def _malformed(message: str) -> Refused:
    return Refused("E_IDENTITY_MALFORMED", message, remedy="`troth receipt verify --help` shows how it is written.")


# What it comes to ---------------------------------------------------------------------------------------------------


def settled(sources: Sequence[tuple[bytes, Signers]], asked: Demand) -> tuple[bytes, Signers]:
    """Return the payload that enough trusted signatories signed, and who did.

    A signature that does not fit spoils nothing by itself, since anybody can add one: it is told. It decides what is
    said when too few others hold.

    Args:
        sources: the payload of each envelope or bundle, and what its signatures amount to.
        asked: whom the reader believes and how many of them must have signed.

    Raises:
        DoesNotHold: ``E_ENVELOPE_SIGNATURE``; ``E_ENVELOPE_OTHER``: trusted signatories signed different payloads.
        NotEstablished: ``E_ENVELOPE_UNVERIFIED``, ``E_ENVELOPE_THRESHOLD``.
    """
    every = [one for _, found in sources for one in found.verified]
    first: dict[object, Signatory] = {}
    for one in every:
        first.setdefault(_who(one), one)
    signers = Signers(
        tuple(first.values()),
        tuple(name for _, found in sources for name in found.bad),
        sum(found.unknown for _, found in sources),
        tuple(reason for _, found in sources for reason in found.reasons),
    )
    if any(signers.count(role) < asked.of(role) for role in ROLES):
        raise _too_few(signers, asked)
    payloads = {payload for payload, found in sources if found.verified}
    if len(payloads) != 1:
        raise DoesNotHold(
            "E_ENVELOPE_OTHER",
            "the envelope and the bundles hold different receipts",
            remedy="Take away what belongs to another run.",
        )
    return payloads.pop(), signers


def _too_few(found: Signers, asked: Demand) -> TrothError:
    detail = found.as_json()
    because = f": {found.reasons[0]}" if found.reasons else ""
    if found.bad:
        return DoesNotHold(
            "E_ENVELOPE_SIGNATURE",
            f"the signature of {found.bad[0]} does not fit the payload and its type{because}",
            remedy="One of them was changed after signing; get the envelope or bundle anew.",
            detail=detail,
        )
    if not found.verified:
        return NotEstablished(
            "E_ENVELOPE_UNVERIFIED",
            f"none of its {found.unknown} signature(s) is by anybody that is trusted{because}",
            remedy="A key or certificate that comes with an envelope proves nothing; ask the signer who it is.",
            detail=detail,
        )
    counted = " and ".join(f"{found.count(role)} of {asked.of(role)} {role}s" for role in ROLES if asked.of(role))
    return NotEstablished("E_ENVELOPE_THRESHOLD", f"signed by {counted}", detail=detail)
