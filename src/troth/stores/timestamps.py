"""Timestamps by a third party (RFC 3161): that a checkpoint existed at a time, said by a clock that is not ours.

What is stamped is the text of the checkpoint's note, without signatures, so that a witness may sign later and the
stamp stays good. The response lies beside the checkpoint as it came, in the form that ``openssl ts -verify`` reads.

Asking needs the network; checking needs the certificate that is trusted and nothing else.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from troth.core.errors import DoesNotHold, NotEstablished, Place, Refused
from troth.core.instants import format_instant
from troth.stores.durable import read_regular

if TYPE_CHECKING:
    from cryptography.x509 import Certificate
    from rfc3161_client import TimeStampRequest, TimeStampResponse

CODES: Final[dict[str, str]] = {
    "E_TIMESTAMP_UNAVAILABLE": "Timestamps need a package that is not installed: the extra `timestamps`.",
    "E_TIMESTAMP_URL": "The address of a timestamp service begins with http:// or https://.",
    "E_TIMESTAMP_UNREACHABLE": "The timestamp service did not answer in time, or not with a timestamp.",
    "E_TIMESTAMP_REFUSED": "The timestamp service answered that it gives no timestamp.",
    "E_TIMESTAMP_MISSING": "No timestamp lies beside the checkpoint, or no certificate at that place.",
    "E_TIMESTAMP_MALFORMED": "The file is no timestamp response, or the certificate is none.",
    "E_TIMESTAMP_INVALID": "The timestamp is not of this checkpoint, or not by a service that the certificate vouches "
    "for.",
}
"""The refusals of timestamps, each with one sentence for people."""

SUFFIX: Final = ".tsr"
URL_SETTING: Final = "timestamp_url"

RESPONSE_LIMIT: Final = 1 << 16
"""Longest response taken, in bytes: a token with a few certificates."""

CERTIFICATES_LIMIT: Final = 1 << 20

TIMEOUT_SECONDS: Final = 30.0
"""Longest an answer may take, from the first byte sent to the last one received."""

_PIECE: Final = 1 << 12

_HASHES: Final = {
    "2.16.840.1.101.3.4.2.1": "sha256",
    "2.16.840.1.101.3.4.2.2": "sha384",
    "2.16.840.1.101.3.4.2.3": "sha512",
}


@dataclass(frozen=True, slots=True)
class Stamp:
    """A timestamp: when, by whom as far as a certificate vouches for it (``None``: nobody looked), and its bytes."""

    at: datetime
    verified: bool
    data: bytes

    def lack(self) -> NotEstablished | None:
        """Return what is missing before the instant can be believed, ``None`` when nothing is."""
        if self.verified:
            return None
        return NotEstablished(
            "E_TIMESTAMP_INVALID",
            "nobody vouches for the timestamp",
            remedy="Name the certificate of the service, or of its root, with --tsa-cert.",
        )

    def as_json(self) -> dict[str, Any]:
        """Return the instant and whether a trusted certificate vouches for it."""
        return {"time": format_instant(self.at), "verified": self.verified}


def _client() -> Any:
    try:
        import rfc3161_client
    except ImportError:
        raise Refused(
            "E_TIMESTAMP_UNAVAILABLE",
            "the package rfc3161-client is not installed",
            remedy="Install the extra: pip install 'troth[timestamps]'.",
        ) from None
    return rfc3161_client


def request_stamp(
    text: bytes,
    url: str,
    *,
    certificates: Path | None = None,
    timeout: float = TIMEOUT_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Stamp:
    """Ask a service to stamp a text and return what it gave, checked.

    The imprint and the nonce are those of the request; with a certificate the signature is checked too.

    Raises:
        Refused: ``E_TIMESTAMP_UNAVAILABLE``, ``E_TIMESTAMP_URL``, ``E_TIMESTAMP_MALFORMED``.
        NotEstablished: ``E_TIMESTAMP_UNREACHABLE``, ``E_TIMESTAMP_REFUSED``.
        DoesNotHold: ``E_TIMESTAMP_INVALID``.
    """
    client = _client()
    request: TimeStampRequest = (
        client.TimestampRequestBuilder().data(text).hash_algorithm(client.HashAlgorithm.SHA256).build()
    )
    data = _post(url, request.as_bytes(), timeout, clock)
    response = decoded(data)
    if client.PKIStatus(response.status) != client.PKIStatus.GRANTED:
        said = ", ".join(str(line) for line in (response.status_string or ()))
        raise NotEstablished("E_TIMESTAMP_REFUSED", f"the service gave no timestamp: {said or 'no reason told'}")
    if _imprint(response) != _digest(response, text):
        raise _invalid("the imprint is not that of the checkpoint")
    if response.tst_info.nonce != request.nonce:
        raise _invalid("the nonce is not that of the request, so it may be an answer to another one")
    if certificates is not None:
        _verify(response, text, certificates, request.nonce)
    return Stamp(response.tst_info.gen_time, certificates is not None, data)


def check_stamp(text: bytes, file: Path, certificates: Path | None) -> Stamp:
    """Return the timestamp in a file, held to the text and, with a certificate, to who is trusted.

    Raises:
        Refused: ``E_TIMESTAMP_UNAVAILABLE``, ``E_TIMESTAMP_MISSING``, ``E_TIMESTAMP_MALFORMED``.
        DoesNotHold: ``E_TIMESTAMP_INVALID``.
    """
    _client()
    data = read_regular(file, RESPONSE_LIMIT, "E_TIMESTAMP_MISSING", "the timestamp")
    response = decoded(data, file)
    if response.status != 0:
        raise _invalid("the response grants no timestamp", file)
    if _imprint(response) != _digest(response, text):
        raise _invalid("the imprint is not that of the checkpoint", file)
    if certificates is not None:
        _verify(response, text, certificates, None, file)
    return Stamp(response.tst_info.gen_time, certificates is not None, data)


def _invalid(message: str, file: Path | None = None) -> DoesNotHold:
    return DoesNotHold("E_TIMESTAMP_INVALID", message, place=Place(file=str(file)) if file is not None else None)


def decoded(data: bytes, file: Path | None = None) -> TimeStampResponse:
    """Return the response that the bytes are, granted or not; nothing in it is verified.

    Raises:
        Refused: ``E_TIMESTAMP_MALFORMED``.
    """
    place = Place(file=str(file)) if file is not None else None
    try:
        response: TimeStampResponse = _client().decode_timestamp_response(data)
        if response.status == 0:
            # Members are parsed when they are asked for.
            _ = (response.tst_info.gen_time, response.tst_info.message_imprint.message, response.tst_info.nonce)
    except (ValueError, TypeError, OverflowError) as fault:
        said = " ".join(str(fault).split())[:200]
        raise Refused("E_TIMESTAMP_MALFORMED", f"no timestamp response: {said}", place=place) from None
    return response


def _imprint(response: TimeStampResponse) -> bytes:
    return response.tst_info.message_imprint.message


def _digest(response: TimeStampResponse, text: bytes) -> bytes | None:
    name = _HASHES.get(response.tst_info.message_imprint.hash_algorithm.dotted_string)
    return hashlib.new(name, text).digest() if name is not None else None


def _verify(
    response: TimeStampResponse, text: bytes, certificates: Path, nonce: int | None, file: Path | None = None
) -> None:
    client = _client()
    builder = client.VerifierBuilder(nonce=nonce)
    for certificate in _certificates(certificates):
        builder = builder.add_root_certificate(certificate)
    try:
        builder.build().verify_message(response, text)
    except (client.VerificationError, ValueError, TypeError) as fault:
        said = " ".join(str(fault).split())[:200]
        raise _invalid(f"the certificate does not vouch for it: {said}", file) from None


def _certificates(path: Path) -> list[Certificate]:
    from cryptography.x509 import load_der_x509_certificate, load_pem_x509_certificates

    data = read_regular(path, CERTIFICATES_LIMIT, "E_TIMESTAMP_MISSING", "the certificate")
    try:
        found = load_pem_x509_certificates(data) if b"-----BEGIN" in data else [load_der_x509_certificate(data)]
    except ValueError:
        found = []
    if not found:
        raise Refused("E_TIMESTAMP_MALFORMED", "the file holds no certificate", place=Place(file=str(path)))
    return list(dict.fromkeys(found))


# The network ---------------------------------------------------------------------------------------------------------


def _post(url: str, body: bytes, timeout: float, clock: Callable[[], float]) -> bytes:
    """Send the request and return the response; follows no redirection, so that nobody sends it elsewhere."""
    from http.client import HTTPException
    from urllib.error import URLError
    from urllib.request import HTTPHandler, HTTPSHandler, OpenerDirector, ProxyHandler, Request

    if not url.startswith(("http://", "https://")):
        raise Refused("E_TIMESTAMP_URL", "the address of a timestamp service begins with http:// or https://")
    headers = {"Content-Type": "application/timestamp-query", "Accept": "application/timestamp-reply"}
    opener = OpenerDirector()
    for handler in (ProxyHandler(), HTTPHandler(), HTTPSHandler()):
        opener.add_handler(handler)
    deadline = clock() + timeout
    pieces: list[bytes] = []
    size = 0
    try:
        request = Request(url, data=body, headers=headers, method="POST")  # noqa: S310 - the scheme is looked at above
        with opener.open(request, timeout=timeout) as answer:
            if answer.status != 200:
                raise _unreachable(f"it answered with status {answer.status}")
            while piece := answer.read1(_PIECE):
                pieces.append(piece)
                size += len(piece)
                if size > RESPONSE_LIMIT:
                    raise _unreachable(f"it answered with more than {RESPONSE_LIMIT} bytes")
                if clock() > deadline:
                    raise _unreachable(f"its answer took more than {timeout:g} seconds")
    except URLError as fault:
        raise _unreachable(str(fault.reason)) from None
    except (OSError, HTTPException, ValueError) as fault:
        raise _unreachable(str(fault) or type(fault).__name__) from None
    return b"".join(pieces)


def _unreachable(message: str) -> NotEstablished:
    said = " ".join(message.split())[:200]
    return NotEstablished(
        "E_TIMESTAMP_UNREACHABLE", f"the timestamp service: {said}", remedy="Try again, or name another with --url."
    )
