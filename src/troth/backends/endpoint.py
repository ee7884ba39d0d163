"""The key of consent: where a reviewer is reached, in its one spelling (Impasse §9 [D29]).

::

    key  = scheme "://" host [":" port]         scheme: http or https, lower case
    host = NAME | IPv4 | "[" IPv6 "]"           lower case, no trailing dot, IPv6 compressed as RFC 5952 has it

Path, query and fragment fall away; default ports are dropped. Two addresses have the same key exactly when the same
bytes would reach the same server, as far as an address can tell. What is shown to a person is what is meant: a name
outside ASCII is refused, because letters of two scripts look alike, and its ``xn--`` form is asked for instead.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

from troth.core.errors import Refused
from troth.core.words import printable

MAX_URL: Final = 2048
"""Longest address read, in characters."""

SCRIPTED: Final = "scripted:"
"""Begins the key of a reviewer that is a file: nothing leaves the machine."""

DEFAULT_PORTS: Final = {"http": 80, "https": 443}

_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\Z")
_NUMBER: Final = re.compile(r"(?:[0-9]+|0x[0-9a-f]*)\Z")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}\Z")
_LONGEST_NAME: Final = 253


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The parts of a key. ``host`` stands without brackets; ``port`` is ``None`` for the scheme's own."""

    scheme: str
    host: str
    port: int | None

    @property
    def key(self) -> str:
        """Return the text that a grant names."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port is not None else "")

    @property
    def loopback(self) -> bool:
        """Tell whether the address stays on this machine, judged from its spelling alone."""
        return is_loopback(self.host)


def _refused(message: str, remedy: str | None = None) -> Refused:
    return Refused("E_ENDPOINT", message, remedy=remedy)


def is_loopback(host: str) -> bool:
    """Tell whether a host, written as in a key without brackets, is this machine: ``localhost``, 127/8, ``::1``."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    # An IPv4 address inside an IPv6 one is read differently from system to system, so it is never taken for loopback.
    return address.is_loopback and getattr(address, "ipv4_mapped", None) is None


def parse_endpoint(url: str) -> Endpoint:
    """Return where an address leads.

    Raises:
        Refused: ``E_ENDPOINT`` for no http(s) address, for user information of any kind, for a host or port that is
            not written plainly, and for plain http to anything but loopback. The message repeats nothing of what
            stands before an ``@``.
    """
    if len(url) > MAX_URL:
        raise _refused(f"an address has at most {MAX_URL} characters")
    if "\\" in url or not url.isprintable() or " " in url:
        raise _refused("the address holds a space, a backslash or a character that cannot be seen")
    match = _SCHEME.match(url)
    scheme = match[1].lower() if match else ""
    if match is None or scheme not in DEFAULT_PORTS:
        raise _refused("a reviewer's address begins with https://, or http:// for one on this machine")
    authority = re.split(r"[/?#]", url[match.end() :], maxsplit=1)[0]
    if "@" in authority:
        raise _refused(
            "the address carries a name or a password before an @",
            "Leave it out; a key is taken from a variable of the environment.",
        )
    host, port = _host_and_port(authority)
    found = Endpoint(scheme, host, None if port == DEFAULT_PORTS[scheme] else port)
    if scheme == "http" and not found.loopback:
        raise _refused(
            f"plain http to {printable(host, 120)} would be readable on the way",
            "Use https; http is for a server on this machine (localhost, 127.0.0.1, [::1]).",
        )
    return found


def endpoint_key(url: str) -> str:
    """Return the key of consent of an address.

    Raises:
        Refused: ``E_ENDPOINT``, as :func:`parse_endpoint`.
    """
    return parse_endpoint(url).key


def named_key(written: str) -> str:
    """Return the key that a person means: that of an address, or ``scripted:NAME`` as it stands.

    Raises:
        Refused: ``E_ENDPOINT``.
    """
    if written.startswith(SCRIPTED):
        if len(written) > MAX_URL or len(written) == len(SCRIPTED) or not written.isprintable():
            raise _refused("a scripted reviewer is named scripted: and the name of its file")
        return written
    return endpoint_key(written)


def _host_and_port(authority: str) -> tuple[str, int | None]:
    if authority.startswith("["):
        inside, bracket, rest = authority[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise _refused("an IPv6 address stands in brackets, with nothing but a port behind them")
        host = _ipv6(inside)
        port = rest[1:]
    else:
        host, colon, port = authority.partition(":")
        if colon and ":" in port:
            raise _refused("an IPv6 address stands in brackets")
        host = _name(host)
    if not port:
        return host, None
    if _PORT.match(port) is None or int(port) > 65_535:
        raise _refused("a port is a number from 1 to 65535 without leading zeros")
    return host, int(port)


def _ipv6(text: str) -> str:
    if "%" in text:
        raise _refused("an IPv6 address with a zone means another machine on every network")
    try:
        return ipaddress.IPv6Address(text).compressed
    except ValueError:
        raise _refused("what stands in the brackets is no IPv6 address") from None


def _name(text: str) -> str:
    if not text.isascii():
        raise _refused("the host's name is not ASCII", "Write it in its xn-- form, which shows what is meant.")
    host = text.lower().removesuffix(".")
    labels = host.split(".")
    if len(host) > _LONGEST_NAME or not all(_LABEL.match(label) for label in labels):
        raise _refused("the host is no plain name or address")
    if _NUMBER.match(labels[-1]):
        # Systems also read 127.1, 0x7f.1 and 2130706433 as addresses; only the common form tells a person where it
        # leads.
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise _refused("a host that ends in a number is an IPv4 address of four decimal numbers") from None
    return host
