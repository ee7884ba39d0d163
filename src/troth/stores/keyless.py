"""Signing and verifying by identity instead of by key, through a sigstore instance and its client library.

An instance is a certificate authority (Fulcio), which gives a short-lived certificate to whoever shows an identity
token; a log of certificates; and a transparency log (Rekor), which tells when a signature was there. Its *trusted root*
is one file with the keys and certificates of all of them; with that file, verifying asks no network and no clock but
the log's. Without it the root of the public instance, or of its staging twin, is fetched and kept by the client
library in the user's own folders, by the rules of TUF.

Signing publishes: the instance's log shows to everybody, for good, which identity signed when, and the digest of what.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from troth.core.errors import NotEstablished, Place, Refused, TrothError
from troth.core.strictjson import JsonFault, Limits, loads
from troth.receipts.bundles import Vouched, parse_bundle
from troth.stores.durable import read_regular

if TYPE_CHECKING:
    from cryptography.x509 import Certificate
    from sigstore.models import ClientTrustConfig, TrustedRoot

_T = TypeVar("_T")

CODES: Final[dict[str, str]] = {
    "E_SIGSTORE_ROOT": "The trusted root, or the configuration of an instance, cannot be read, or is none.",
    "E_SIGSTORE_TOKEN": "There is no identity token, or it is malformed, expired, or not for sigstore.",
    "E_SIGSTORE_UNREACHABLE": "A service of the sigstore instance did not answer, or not in time.",
    "E_SIGSTORE_REFUSED": "A service of the sigstore instance gave no signature, or one that does not verify by the "
    "instance's own trusted root. Nothing was written.",
}
"""The refusals of signing and verifying by identity, each with one sentence for people."""

TRUST_LIMIT: Final = 1 << 22
"""Longest trusted root or configuration read, in bytes; the public one has some ten thousand."""

TOKEN_LIMIT: Final = 1 << 16
"""Longest identity token read, in bytes."""

DEADLINE_SECONDS: Final = 120.0
"""Longest all services together may take; the client library sets no limit of its own."""

AUDIENCE: Final = "sigstore"
TOKEN_VARIABLE: Final = "SIGSTORE_IDENTITY_TOKEN"  # noqa: S105 - the name of a variable
"""Where the client library's own program looks for a token, too."""

_TRUST: Final = Limits(max_bytes=TRUST_LIMIT, max_depth=32, refuse_overflow=False)
_ISSUER: Final = "1.3.6.1.4.1.57264.1.8"
_ISSUER_OLD: Final = "1.3.6.1.4.1.57264.1.1"


# Whom to trust ------------------------------------------------------------------------------------------------------


def _trust_text(path: Path, what: str) -> str:
    data = read_regular(path, TRUST_LIMIT, "E_SIGSTORE_ROOT", what)
    try:
        loads(data, _TRUST)
    except JsonFault as fault:
        raise _no_root(path, what, fault.message) from None
    return data.decode("utf-8")


def _no_root(path: Path, what: str, why: str) -> Refused:
    return Refused(
        "E_SIGSTORE_ROOT",
        f"{what} cannot be used: {_short(why)}",
        remedy="It is the JSON file that the operator of the instance publishes.",
        place=Place(file=str(path)),
    )


def _short(text: object) -> str:
    """Return the first line of what a library or a service said; nobody asked for all of it."""
    return (str(text).strip().splitlines() or [""])[0][:300]


def read_trusted_root(path: Path) -> TrustedRoot:
    """Return the trusted root in a file (``trusted_root.json``).

    Raises:
        Refused: ``E_SIGSTORE_ROOT``, ``E_NOT_REGULAR``, ``E_TOO_LARGE``, ``E_UNREADABLE``.
    """
    from sigstore.models import TrustedRoot

    _trust_text(path, "the trusted root")
    try:
        return TrustedRoot.from_file(str(path))
    except Exception as fault:  # the library lets errors of several roots out
        raise _no_root(path, "the trusted root", str(fault)) from None


def read_trust_config(path: Path) -> ClientTrustConfig:
    """Return the configuration in a file: the trusted root of an instance and where its services are.

    Raises:
        Refused: ``E_SIGSTORE_ROOT``, ``E_NOT_REGULAR``, ``E_TOO_LARGE``, ``E_UNREADABLE``.
    """
    from sigstore.models import ClientTrustConfig

    text = _trust_text(path, "the configuration of the instance")
    try:
        config = ClientTrustConfig.from_json(text)
        _ = config.trusted_root, config.signing_config
    except Exception as fault:  # as above
        raise _no_root(path, "the configuration of the instance", str(fault)) from None
    return config


def public_config(*, staging: bool = False) -> ClientTrustConfig:
    """Fetch what the public instance, or its staging twin, is: its root and services, signed by its keepers (TUF).

    Raises:
        NotEstablished: ``E_SIGSTORE_UNREACHABLE``.
    """
    from sigstore.models import ClientTrustConfig

    try:
        return within(lambda: ClientTrustConfig.staging() if staging else ClientTrustConfig.production())
    except TrothError:
        raise
    except Exception as fault:  # as above
        raise NotEstablished(
            "E_SIGSTORE_UNREACHABLE",
            f"the root of the {'staging' if staging else 'public'} instance cannot be fetched: {_short(fault)}",
            remedy="Without a network, name its file: --trusted-root FILE to verify, --trust-config FILE to sign.",
        ) from None


def within(call: Callable[[], _T], seconds: float = DEADLINE_SECONDS) -> _T:
    """Return what a call of the client library returns, or raise what it raises, once it has done so in time.

    Raises:
        NotEstablished: ``E_SIGSTORE_UNREACHABLE``. The call is left behind; it ends with the program.
    """
    import queue
    import threading

    answers: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((True, call()))
        except BaseException as fault:  # handed over, to be raised by whoever waits
            answers.put((False, fault))

    threading.Thread(target=run, daemon=True).start()
    try:
        good, answer = answers.get(timeout=seconds)
    except queue.Empty:
        raise NotEstablished(
            "E_SIGSTORE_UNREACHABLE",
            f"the instance did not answer within {seconds:g} seconds",
            remedy="Try again; nothing was written.",
        ) from None
    if not good:
        raise answer
    found: _T = answer
    return found


# Verifying ----------------------------------------------------------------------------------------------------------


class _Seen:
    """A policy that lets every certificate pass, and remembers whose it was: whom to believe is decided elsewhere.

    The library asks it once the certificate's chain, its time and its place in the log of certificates hold.
    """

    def __init__(self) -> None:
        self.vouched = False
        self.name: str | None = None
        self.issuer: str | None = None

    def verify(self, certificate: Certificate) -> None:
        """Remember whose certificate it is."""
        self.name, self.issuer = _name_in(certificate), _issuer_in(certificate)
        self.vouched = True


def _name_in(certificate: Certificate) -> str | None:
    """Return the one name in a certificate, an e-mail address or a URI; ``None`` for others and for several."""
    from cryptography.x509 import ExtensionNotFound, RFC822Name, SubjectAlternativeName, UniformResourceIdentifier

    try:
        names = list(certificate.extensions.get_extension_for_class(SubjectAlternativeName).value)
    except ExtensionNotFound:
        return None
    if len(names) != 1 or not isinstance(names[0], RFC822Name | UniformResourceIdentifier):
        return None
    return str(names[0].value)


def _issuer_in(certificate: Certificate) -> str | None:
    """Return the issuer that a certificate names, in the newer extension, the older one, or both alike."""
    from cryptography.hazmat import asn1
    from cryptography.x509 import UnrecognizedExtension

    raw = {
        one.oid.dotted_string: one.value.value
        for one in certificate.extensions
        if isinstance(one.value, UnrecognizedExtension)
    }
    said = []
    try:
        if _ISSUER in raw:
            said.append(asn1.decode_der(str, raw[_ISSUER]))
        if _ISSUER_OLD in raw:
            said.append(raw[_ISSUER_OLD].decode("utf-8"))
    except ValueError:
        return None
    return said[0] if len(set(said)) == 1 else None


def voucher(root: TrustedRoot) -> Callable[[bytes], Vouched]:
    """Return the function that asks a trusted root about a bundle; it needs no network.

    The library checks: a time that the log or a timestamp authority signed; the certificate's chain at that time; its
    place in the log of certificates; its uses; the log's inclusion proof, checkpoint and promise; the signature; and
    that the log's entry is about this signature, this certificate and this payload.

    Raises:
        Refused: ``E_SIGSTORE_ROOT``: the root names no log or no authority.
    """
    from sigstore.models import Bundle
    from sigstore.verify import Verifier

    try:
        verifier = Verifier(trusted_root=root)
    except Exception as fault:  # as above
        raise Refused("E_SIGSTORE_ROOT", f"the trusted root cannot be used: {_short(fault)}") from None

    def vouch(data: bytes) -> Vouched:
        try:
            bundle = Bundle.from_json(data)
        except Exception as fault:  # pydantic's, cryptography's and the library's own
            raise Refused("E_BUNDLE_MALFORMED", f"it is no bundle: {_short(fault)}") from None
        seen = _Seen()
        try:
            signed = verifier.verify_dsse(bundle, seen)
        except Exception as fault:  # whatever it is, the bundle did not verify
            if not seen.vouched:
                return Vouched(None, None, False, f"no trusted authority vouches for its certificate: {_short(fault)}")
            return Vouched(seen.name, seen.issuer, False, _short(fault))
        if seen.name is None:
            return Vouched(None, seen.issuer, False, "its certificate holds no single name that is read here")
        return Vouched(seen.name, seen.issuer, True, signed=signed)

    return vouch


class Instance:
    """A sigstore instance that is asked about bundles: that of a file, the public one, or its staging twin.

    Its root is read or fetched, and parsed, at the first question and once a process, since that costs more than many
    answers; where that failed, it is not tried again. Handed to another process it begins anew there; a process that
    is forked has what its parent had.
    """

    __slots__ = ("_fault", "_root", "_staging", "_vouch")

    def __init__(self, root: Path | None = None, *, staging: bool = False) -> None:
        self._root = root
        self._staging = staging
        self._vouch: Callable[[bytes], Vouched] | None = None
        self._fault: TrothError | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(Instance, self._root, staging=self._staging), ()

    def ready(self) -> Callable[[bytes], Vouched]:
        """Return what answers, having made it if it was not.

        Raises:
            Refused: as :func:`read_trusted_root` and :func:`voucher`.
            NotEstablished: as :func:`public_config`.
        """
        if self._fault is not None:
            raise self._fault
        if self._vouch is None:
            root = self._root
            try:
                trusted = public_config(staging=self._staging).trusted_root if root is None else read_trusted_root(root)
                self._vouch = voucher(trusted)
            except TrothError as fault:
                self._fault = fault
                raise
        return self._vouch

    def __call__(self, data: bytes) -> Vouched:
        """Return what the instance says about the bytes of a bundle; raises as :meth:`ready` and its answer."""
        return self.ready()(data)


# Signing ------------------------------------------------------------------------------------------------------------


def identity_token(path: Path | None) -> str:
    """Return an identity token: that of a file, of the environment, or what the service that runs us gives out.

    Raises:
        Refused: ``E_SIGSTORE_TOKEN``; ``E_NOT_REGULAR``, ``E_TOO_LARGE`` for the file.
        NotEstablished: ``E_SIGSTORE_UNREACHABLE``.
    """
    import id as ambient  # the library's own way to the tokens of continuous integration

    if path is not None:
        data = read_regular(path, TOKEN_LIMIT, "E_SIGSTORE_TOKEN", "the identity token")
        return data.decode("utf-8", "replace").strip()
    given = os.environ.get(TOKEN_VARIABLE)
    if given:
        return given.strip()
    try:
        found = within(lambda: ambient.detect_credential(AUDIENCE))
    except TrothError:
        raise
    except Exception as fault:  # as above
        raise Refused(
            "E_SIGSTORE_TOKEN",
            f"the service that runs us gives no identity token: {_short(fault)}",
            remedy="In GitHub Actions the job needs the permission id-token: write.",
        ) from None
    if found is None:
        raise Refused(
            "E_SIGSTORE_TOKEN",
            "there is no identity token",
            remedy=f"Name a file with --identity-token, set {TOKEN_VARIABLE}, or sign where the service gives one "
            "(GitHub Actions, GitLab, Buildkite, CircleCI, Google Cloud).",
        )
    return found


def sign_by_identity(
    payload: bytes, token: str, config: ClientTrustConfig, deadline: float = DEADLINE_SECONDS
) -> tuple[bytes, Vouched]:
    """Sign a Statement at an instance and return the bundle, verified by that instance's own trusted root.

    A key is made, used once and forgotten. The token goes to the instance's certificate authority and nowhere else.

    Args:
        payload: the Statement, whose very bytes are signed.
        token: an identity token for the audience ``sigstore``.
        config: the instance.
        deadline: longest all its services together may take, in seconds.

    Raises:
        Refused: ``E_SIGSTORE_TOKEN``, ``E_SIGSTORE_REFUSED``.
        NotEstablished: ``E_SIGSTORE_UNREACHABLE``.
    """
    from requests import ConnectionError as NoConnection
    from requests import Timeout
    from sigstore.dsse import Statement
    from sigstore.errors import NetworkError
    from sigstore.oidc import IdentityError, IdentityToken
    from sigstore.sign import SigningContext

    try:
        identity = IdentityToken(token)
    except IdentityError as fault:
        raise Refused(
            "E_SIGSTORE_TOKEN",
            _short(fault),
            remedy="Get a new one, for the audience `sigstore`; such tokens live for minutes.",
        ) from None

    def ask() -> bytes:
        with SigningContext.from_trust_config(config).signer(identity) as signer:
            return signer.sign_dsse(Statement(payload)).to_json().encode() + b"\n"

    try:
        data = within(ask, deadline)
    except TrothError:
        raise
    except (NoConnection, Timeout, NetworkError) as fault:
        raise NotEstablished(
            "E_SIGSTORE_UNREACHABLE",
            f"a service of the instance cannot be reached: {type(fault).__name__}",
            remedy="Signing by identity needs the network; `troth receipt sign --key` does not.",
        ) from None
    except Exception as fault:  # a service's refusal or nonsense; the library has no one root for them
        raise Refused(
            "E_SIGSTORE_REFUSED",
            f"the instance gave no signature: {type(fault).__name__}: {_short(fault)}",
            remedy="Is the token for this instance, and the configuration that of its services?",
        ) from None
    said = voucher(config.trusted_root)(data)
    bundle = parse_bundle(data)
    if not said.fits or said.name is None or said.signed != (bundle.envelope.payload_type, payload):
        raise Refused(
            "E_SIGSTORE_REFUSED",
            f"what the instance gave does not verify: {said.reason or 'it names nobody, or is another payload'}",
            remedy="Is the trusted root in the configuration that of these services?",
        )
    return data, said
