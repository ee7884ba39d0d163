"""A kernel filter that takes from the sandbox the calls which could act past the tracer (done records §13.3).

The tracer's own filter can tell calls apart only by their number. This one, given to ``bwrap --seccomp``, looks at
arguments and refuses, before anything happens and at no cost to other calls:

* the requests of ``ioctl`` that change a file's content: ``EOPNOTSUPP``, as on a file system without them, which
  is why ``ioctl`` need not be traced;
* ``seccomp`` with a listener, which could wave calls past the tracer: ``EINVAL``.

``io_uring`` is let through: the trace reports its set-up as an escape, and coverage is lost, as the receipt's rules
foresee (done records §4.8). What an unknown architecture lets through is reported by the trace likewise.
"""

from __future__ import annotations

import errno
import struct
from dataclasses import dataclass
from typing import Final

_LOAD: Final = 0x20  # BPF_LD | BPF_W | BPF_ABS
_AND: Final = 0x54  # BPF_ALU | BPF_AND | BPF_K
_EQUAL: Final = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
_ANY: Final = 0x45  # BPF_JMP | BPF_JSET | BPF_K
_RETURN: Final = 0x06  # BPF_RET | BPF_K

_ALLOW: Final = 0x7FFF0000
_ERROR: Final = 0x00050000

# Places in struct seccomp_data; the low halves of arguments on a little-endian machine.
_NUMBER: Final = 0
_MACHINE: Final = 4
_SECOND: Final = 24

_X32: Final = 0x40000000
_LISTENER: Final = 8


@dataclass(frozen=True, slots=True)
class Machine:
    """An architecture as the kernel names it to filters, and its numbers of the two calls that are looked into."""

    audit: int
    ioctl: int
    seccomp: int


MACHINES: Final = (
    Machine(0xC000003E, 16, 317),  # x86_64, and x32 by a bit in the number
    Machine(0x40000003, 54, 354),  # i386
    Machine(0xC00000B7, 29, 277),  # aarch64
    Machine(0x40000028, 54, 383),  # arm
    Machine(0xC00000F3, 29, 277),  # riscv64
)

IOCTLS: Final = (
    0x40049409,  # FICLONE
    0x4020940D,  # FICLONERANGE
    0x40305828,  # FS_IOC_RESVSP
    0x4030582A,  # FS_IOC_RESVSP64
    0x40305829,  # FS_IOC_UNRESVSP
    0x4030582B,  # FS_IOC_UNRESVSP64
    0x40305839,  # FS_IOC_ZERO_RANGE
    0x402C5828,  # the same five as a 32-bit program asks for them
    0x402C582A,
    0x402C5829,
    0x402C582B,
    0x402C5839,
    0xC0C0586D,  # XFS_IOC_SWAPEXT
    0x40285881,  # XFS_IOC_EXCHANGE_RANGE
)
"""Requests that change a file's content."""


def _instruction(code: int, value: int, true: int = 0, false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, true, false, value)


def _refusal(error: int) -> bytes:
    return _instruction(_RETURN, _ERROR | error)


def call_filter() -> bytes:
    """Return the filter as the classic BPF program that ``bwrap --seccomp`` reads from a descriptor."""
    program: list[bytes] = []
    for machine in MACHINES:
        inside = [
            _instruction(_LOAD, _NUMBER),
            _instruction(_AND, 0xFFFFFFFF ^ _X32),
            _instruction(_EQUAL, machine.seccomp, 0, 4),
            _instruction(_LOAD, _SECOND),
            _instruction(_ANY, _LISTENER, 0, 1),
            _refusal(errno.EINVAL),
            _instruction(_RETURN, _ALLOW),
            _instruction(_EQUAL, machine.ioctl, 1, 0),
            _instruction(_RETURN, _ALLOW),
            _instruction(_LOAD, _SECOND),
        ]
        for request in IOCTLS:
            inside += [_instruction(_EQUAL, request, 0, 1), _refusal(errno.EOPNOTSUPP)]
        inside.append(_instruction(_RETURN, _ALLOW))
        program += [_instruction(_LOAD, _MACHINE), _instruction(_EQUAL, machine.audit, 0, len(inside)), *inside]
    program.append(_instruction(_RETURN, _ALLOW))
    return b"".join(program)
