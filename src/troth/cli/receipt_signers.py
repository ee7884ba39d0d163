"""What the commands that verify receipts do about their signatures: whom to believe, and who signed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from troth.cli.answer import coloured, printable, say
from troth.core.errors import Place, Refused

if TYPE_CHECKING:
    from troth.receipts.demands import Demand, Identity, Signers
    from troth.receipts.member import Member
    from troth.stores.keyless import Instance

    Seen = tuple[Member, Signers]

_F = TypeVar("_F", bound=Callable[..., Any])

SIGNERS_LIMIT: Final = 1 << 20
"""Longest list of identities read, in bytes."""


@dataclass(frozen=True, slots=True)
class SignatureWords:
    """What a command line says about signatures, each word as it was written."""

    keys: tuple[str, ...] = ()
    threshold: int | None = None
    quorum: int | None = None
    identities: tuple[str, ...] = ()
    issuers: tuple[str, ...] = ()
    signers: str | None = None
    trusted_root: str | None = None
    staging: bool = False
    envelope: str | None = None
    bundles: tuple[str, ...] = ()


_WHOM: Final = (
    click.option(
        "--key",
        "keys",
        multiple=True,
        metavar="KEY",
        help="Ask for signatures, and whom to believe: NAME+ID+BASE64, a file of such lines (./FILE), or the name of "
        "one of your own keys. Repeatable.",
    ),
    click.option(
        "--threshold",
        type=click.IntRange(0),
        metavar="N",
        help="How many distinct approvers, keys and identities, must have signed. Default: one, where one is named. A "
        "witness never counts as an approver.",
    ),
    click.option(
        "--quorum",
        type=click.IntRange(0),
        metavar="N",
        help="How many distinct witnesses must have signed. Default: one, where one is named.",
    ),
    click.option(
        "--certificate-identity",
        "identities",
        multiple=True,
        metavar="NAME",
        help="Ask for a sigstore signature of this identity, letter for letter: an e-mail address or the address of a "
        "workflow. Repeatable.",
    ),
    click.option(
        "--certificate-oidc-issuer",
        "issuers",
        multiple=True,
        metavar="URL",
        help="Who must have vouched for the identity. Once for all of them, or once for each, in their order.",
    ),
    click.option(
        "--signers",
        metavar="FILE",
        help="Identities to believe, a TOML file: tables [[approver]] and [[witness]] of identity and issuer.",
    ),
    click.option(
        "--trusted-root",
        metavar="FILE",
        help="The sigstore instance to trust, its trusted_root.json: with it no network is asked. Default: the public "
        "instance's, fetched.",
    ),
    click.option("--staging", is_flag=True, help="Trust the public instance's staging twin instead."),
)

_WHERE: Final = (
    click.option("--envelope", metavar="FILE", help="The envelope. Default: receipt.dsse.json in the folder."),
    click.option(
        "--bundle",
        "bundles",
        multiple=True,
        metavar="FILE",
        help="A sigstore bundle. Repeatable. Default: receipt.sigstore.json in the folder.",
    ),
)


def trust_options(command: _F) -> _F:
    """Add the options that say whom to believe; they are handed over as one argument, ``signatures``."""
    return _with_options(command, _WHOM)


def signature_options(command: _F) -> _F:
    """Add the same, and where the one receipt's envelope and bundles lie."""
    return _with_options(command, (*_WHOM, *_WHERE))


def _with_options(command: _F, options: Sequence[Callable[[Any], Any]]) -> _F:
    @wraps(command)
    def call(*args: Any, **given: Any) -> Any:
        said = {name: given.pop(name) for name in SignatureWords.__dataclass_fields__ if name in given}
        return command(*args, signatures=SignatureWords(**said), **given)

    for option in reversed(options):
        call = option(call)
    return call  # type: ignore[return-value]  # click's decorators keep the command's own type to themselves


@dataclass(frozen=True, slots=True)
class Trust:
    """Whom a reader believes: what is asked of each receipt, and the instance that is asked about bundles."""

    demand: Demand
    instance: Instance | None

    def seen(self, member: Member, envelope: bytes | None = None, bundles: Sequence[bytes] = ()) -> Seen:
        """Return the member as its signatures let it be seen, and who signed.

        Raises:
            TrothError: a code of envelopes or bundles, or of a sigstore instance.
        """
        from troth.receipts.signing import as_signed

        return as_signed(member, self.demand, envelope, bundles, self.instance)


def trust_of(said: SignatureWords) -> Trust | None:
    """Return whom the words say to believe; ``None`` where nobody is named. No instance is asked yet.

    Raises:
        Refused: ``E_USAGE`` for words that say nothing without others; a code of keys or identities.
    """
    from troth.receipts.demands import demand
    from troth.stores.keys import verifier_keys

    identities = _identities(said)
    for what, there, needs in (
        ("--envelope", said.envelope is not None, said.keys),
        ("--bundle, --trusted-root and --staging", said.bundles or said.trusted_root or said.staging, identities),
        ("--threshold and --quorum", (said.threshold, said.quorum) != (None, None), said.keys or identities),
    ):
        if there and not needs:
            raise Refused("E_USAGE", f"{what}: nobody is named", remedy="Name whom to trust; --help tells how.")
    if said.staging and said.trusted_root:
        raise Refused("E_USAGE", "--trusted-root and --staging were both given", remedy="Name one instance.")
    if not said.keys and not identities:
        return None
    keys = [key for word in said.keys for key in verifier_keys(word)]
    instance = None
    if identities:
        from troth.stores.keyless import Instance

        instance = Instance(Path(said.trusted_root) if said.trusted_root else None, staging=said.staging)
    return Trust(demand(keys, said.threshold, said.quorum, identities), instance)


def believed(member: Member, said: SignatureWords) -> tuple[Member, Signers | None]:
    """Return one member as its signatures let it be seen, and who signed; unchanged where nobody is named.

    Raises:
        TrothError: as :func:`trust_of` and :meth:`Trust.seen`.
    """
    from troth.receipts.bundles import MAX_BUNDLE_BYTES
    from troth.receipts.envelopes import MAX_ENVELOPE_BYTES
    from troth.stores.durable import read_regular

    trust = trust_of(said)
    if trust is None:
        return member, None
    envelope = None
    if said.envelope is not None:
        envelope = read_regular(Path(said.envelope), MAX_ENVELOPE_BYTES, "E_ENVELOPE_MISSING", "the envelope")
    bundles = [read_regular(Path(one), MAX_BUNDLE_BYTES, "E_BUNDLE_MISSING", "the bundle") for one in said.bundles]
    return trust.seen(member, envelope, bundles)


def lasting(said: SignatureWords) -> list[str]:
    """Return the words anew as a command line that says the same from any folder and on any day: for a hook.

    Keys are written out, so a key that is exchanged later is not the one that was trusted. Files are named by their
    whole paths and read whenever they are needed, a trusted root once now too.

    Raises:
        Refused: as :func:`trust_of`; ``E_SIGSTORE_ROOT`` and others of the file.
    """
    from troth.stores.keys import verifier_keys

    trust = trust_of(said)
    if trust is not None and trust.instance is not None and said.trusted_root:
        trust.instance.ready()
    words = [f"--key={key}" for word in said.keys for key in verifier_keys(word)]
    words += [f"--certificate-identity={name}" for name in said.identities]
    words += [f"--certificate-oidc-issuer={issuer}" for issuer in said.issuers]
    files = (("signers", said.signers), ("trusted-root", said.trusted_root))
    words += [f"--{what}={Path(file).absolute()}" for what, file in files if file]
    numbers = (("threshold", said.threshold), ("quorum", said.quorum))
    words += [f"--{what}={count}" for what, count in numbers if count is not None]
    return [*words, *(["--staging"] if said.staging else [])]


def _identities(said: SignatureWords) -> list[Identity]:
    from troth.receipts.demands import identity, parse_identities
    from troth.stores.durable import read_regular

    one_for_all = len(said.issuers) == 1 and said.identities
    issuers = said.issuers * len(said.identities) if one_for_all else said.issuers
    if len(issuers) != len(said.identities):
        raise Refused(
            "E_USAGE",
            f"{len(said.identities)} identities and {len(said.issuers)} issuers are named",
            remedy="A name is worth what its issuer is: one --certificate-oidc-issuer for all, or one for each.",
        )
    found = [identity(name, issuer) for name, issuer in zip(said.identities, issuers, strict=True)]
    if said.signers is not None:
        path = Path(said.signers)
        data = read_regular(path, SIGNERS_LIMIT, "E_IDENTITY_MALFORMED", "the list of signers")
        try:
            found += parse_identities(data)
        except Refused as fault:
            raise Refused(fault.code, fault.message, remedy=fault.remedy, place=Place(file=str(path))) from None
    return found


def signature_report(member: Member, signers: Signers | None) -> dict[str, Any]:
    """Return what a report says about signatures."""
    from troth.receipts.bundles import BUNDLE_FILE
    from troth.receipts.envelopes import ENVELOPE_FILE

    if signers is not None:
        return {"checked": True, **signers.as_json()}
    return {"checked": False, "envelope": _lies(member, ENVELOPE_FILE), "bundle": _lies(member, BUNDLE_FILE)}


def _lies(member: Member, file: str) -> bool:
    from troth.receipts.member import ReadFault

    try:
        return member.read(file) is not None
    except ReadFault:
        return True


def tell_signatures(report: dict[str, Any]) -> None:
    """Tell who signed, or that nobody looked."""
    if not report["checked"]:
        there: Sequence[tuple[str, str]] = (("envelope", "an envelope"), ("bundle", "a bundle"))
        for what, told in there:
            if report[what]:
                say(f"{'signed':<10}{told} lies in the folder; it was not checked, since nobody says whom to trust")
        return
    for one in report["verified"]:
        whose = f", vouched for by {printable(one['issuer'])}" if "issuer" in one else ""
        say(f"{'signed':<10}{coloured('by', 'green')} {printable(one['name'])} as {one['role']}{whose}")
    for name in report["bad"]:
        say(f"{'':<10}{coloured('a signature does not fit', 'red')}: {printable(name)}")
    if report["unknown"]:
        say(f"{'':<10}{report['unknown']} signature(s) by signers that are not trusted, which prove nothing")
    for reason in report.get("reasons", ()):
        say(f"{'':<10}{printable(reason)}")
