"""The artifact: members of unique paths, their payload and its digest, their text (§2, §5 L3)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, NoReturn

from troth.core.digests import sha256_hex
from troth.core.errors import Refused
from troth.core.strictjson import max_depth

_NESTING: Final = 500


class NotJson(ValueError):
    """The member's text is no JSON value."""


@dataclass(frozen=True)
class Member:
    """One file of an artifact: its relative path and its exact bytes."""

    path: str
    data: bytes

    @cached_property
    def text(self) -> str | None:
        """The text, CRLF made LF and nothing else changed; ``None`` when the bytes are not UTF-8."""
        try:
            return self.data.decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError:
            return None

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines without their LF; a final LF opens no further line, and what is no text has none."""
        if not self.text:
            return ()
        return tuple(self.text.removesuffix("\n").split("\n"))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """For each line the offset of its first character in :attr:`text`, and behind the last one the text's end."""
        offsets = [0]
        for line in self.lines:
            offsets.append(offsets[-1] + len(line) + 1)
        if self.text is not None:
            offsets[-1] = min(offsets[-1], len(self.text))
        return tuple(offsets)

    def json(self) -> Any:
        """Return the value of a member that is JSON.

        Raises:
            NotJson: it is none.
        """
        if self.text is None or max_depth(self.data, _NESTING) > _NESTING:
            raise NotJson(self.path)
        try:
            return json.loads(self.text, parse_constant=_refused)
        except (ValueError, RecursionError):
            raise NotJson(self.path) from None


def _refused(token: str) -> NoReturn:
    raise ValueError(token)


def is_member_path(path: str) -> bool:
    """Tell whether a path may name a member: relative, ``/`` between parts, none empty, ``.`` or ``..`` (§2)."""
    return bool(path) and "\0" not in path and all(part not in ("", ".", "..") for part in path.split("/"))


class Artifact:
    """What is reviewed: one or more members, in ascending byte order of their paths (§2).

    Raises:
        Refused: ``E_ARTIFACT_MEMBER`` for no member, two of one path, or a path that may name none.
    """

    def __init__(self, members: Iterable[tuple[str, bytes]]) -> None:
        found: dict[str, Member] = {}
        for path, data in members:
            if not is_member_path(path) or not _is_utf8(path):
                raise Refused(
                    "E_ARTIFACT_MEMBER",
                    f"{path!r} names no member of an artifact",
                    remedy="A path is relative, with / between parts that are neither empty nor . nor ..",
                )
            if path in found:
                raise Refused("E_ARTIFACT_MEMBER", f"two members are named {path!r}")
            found[path] = Member(path, data)
        if not found:
            raise Refused("E_ARTIFACT_MEMBER", "an artifact has at least one member")
        self.members: Mapping[str, Member] = {path: found[path] for path in sorted(found, key=str.encode)}

    @cached_property
    def payload(self) -> bytes:
        """The bytes of the single member unchanged; several are framed, each behind its header line (§2)."""
        members = list(self.members.values())
        if len(members) == 1:
            return members[0].data
        return b"".join(_header(member.path, len(member.data)) + member.data + b"\n" for member in members)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the payload, 64 lowercase hexadecimal digits."""
        return sha256_hex(self.payload)

    @property
    def revision(self) -> dict[str, str]:
        """The revision as documents state it."""
        return {"algorithm": "sha256", "value": self.digest}


def _header(path: str, size: int) -> bytes:
    return f"--- impasse-file {size} {path}\n".encode()


def framed_size(path: str, size: int) -> int:
    """Return how many bytes a member of ``size`` bytes takes in the payload of several (§2)."""
    return len(_header(path, size)) + size + 1


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
