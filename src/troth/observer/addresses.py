"""Whom a call reached: addresses of connections and messages, as an effect tells them (done records §4.8).

``inet:HOST:PORT``, ``inet6:[HOST]:PORT``, ``unix:PATH``, ``unix:@NAME`` for a name without a file, and the family's
own word with what the tracer shows for any other.
"""

from __future__ import annotations

import re
from typing import Final

from troth.observer.journal import printable
from troth.observer.trace import Call, string

_INET: Final = re.compile(rb'sa_family=AF_INET, sin_port=htons\((\d+)\), sin_addr=inet_addr\("([0-9.]+)"\)')
_INET6: Final = re.compile(rb'sa_family=AF_INET6, sin6_port=htons\((\d+)\).*?inet_pton\(AF_INET6, "([0-9a-f.:]+)"')
_UNIX: Final = re.compile(rb'sa_family=AF_UNIX, sun_path=(@?"[^"\\]*(?:\\.[^"\\]*)*")')
_FAMILY: Final = re.compile(rb"sa_family=(\w+)")
_MESSAGE: Final = re.compile(rb"msg_name=(\{sa_family=.*?\}), msg_namelen=")
_NO_ADDRESS: Final = frozenset({b"AF_UNSPEC", b"AF_NETLINK"})


def socket_name(argument: bytes) -> bytes | None:
    """Return the name of a local socket as the tracer wrote it (quoted, ``@`` before one without a file)."""
    found = _UNIX.search(argument)
    return None if found is None else found[1]


def addresses(name: bytes, call: Call) -> list[str]:
    """Return the addresses that a finished ``connect`` or one of the ``send`` family names.

    Raises:
        IndexError: the call has fewer arguments than it must.
    """
    if name == b"connect":
        given = [call.arguments[1]]
    elif name == b"sendto":
        given = [call.arguments[4]]
    else:
        given = _MESSAGE.findall(call.arguments[1])
    return [text for text in map(_address, given) if text is not None]


def _address(argument: bytes) -> str | None:
    for pattern, form in ((_INET, "inet:{}:{}"), (_INET6, "inet6:[{}]:{}")):
        found = pattern.search(argument)
        if found is not None:
            return form.format(found[2].decode("ascii"), found[1].decode("ascii"))
    local = socket_name(argument)
    if local is not None:
        return "unix:" + ("@" if local.startswith(b"@") else "") + printable(string(local) or b"")
    family = _FAMILY.search(argument)
    if family is None or family[1] in _NO_ADDRESS:
        return None
    return f"{family[1].decode('ascii', 'replace').removeprefix('AF_').lower()}:{printable(argument)[:200]}"
