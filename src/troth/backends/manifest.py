"""The payload manifest: what is about to leave, and where to, shown before the first byte does (Impasse §9 [D30])."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from troth.core.digests import sha256_hex
from troth.core.words import printable

BYTES_A_TOKEN: Final = 4
"""A token is taken to be four bytes (§7, §11)."""

_SHOWN: Final = 40


@dataclass(frozen=True, slots=True)
class MemberSize:
    """A member of what is sent: its path, its size in bytes and the SHA-256 of its bytes."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """Everything that one call sends, in bytes, the transport's own framing left out.

    Attributes:
        destination: the key of consent.
        payload: bytes of the artifact as it is sent (§2).
        digest: SHA-256 of the payload, 64 hexadecimal digits.
        members: of the artifact, in the order in which they are sent.
        instruction: bytes of stance and lens, without the schema.
        schema: bytes of the response schema.
        rebuttal: bytes of the document of a rebuttal.
    """

    destination: str
    payload: int
    digest: str
    members: tuple[MemberSize, ...]
    instruction: int
    schema: int
    rebuttal: int

    @property
    def total(self) -> int:
        """Bytes that are sent."""
        return self.payload + self.instruction + self.schema + self.rebuttal

    @property
    def tokens(self) -> int:
        """Tokens that are sent, estimated."""
        return self.total // BYTES_A_TOKEN

    def as_json(self) -> dict[str, Any]:
        """Return ``manifest.json``."""
        return {
            "destination": self.destination,
            "total_bytes": self.total,
            "estimated_tokens": self.tokens,
            "payload_bytes": self.payload,
            "payload_sha256": self.digest,
            "members": [{"path": one.path, "bytes": one.size, "sha256": one.sha256} for one in self.members],
            "instruction_bytes": self.instruction,
            "schema_bytes": self.schema,
            "rebuttal_bytes": self.rebuttal,
        }

    def lines(self) -> list[str]:
        """Return the table that a person is shown; of very many members the largest, and how many more there are."""
        shown = list(self.members)
        if len(shown) > _SHOWN:
            largest = sorted(shown, key=lambda one: (-one.size, one.path))[:_SHOWN]
            shown = [one for one in shown if one in largest]
        rows = [(one.size, printable(one.path, 200)) for one in shown]
        left = len(self.members) - len(shown)
        if left:
            rows.append((sum(one.size for one in self.members) - sum(one.size for one in shown), f"({left} more)"))
        framing = self.payload - sum(one.size for one in self.members)
        if framing:
            rows.append((framing, "(between the members)"))
        rows += [(self.instruction, "(instruction)"), (self.schema, "(response schema)")]
        if self.rebuttal:
            rows.append((self.rebuttal, "(rebuttal)"))
        width = max(len(f"{size:,}") for size, _ in [*rows, (self.total, "")])
        return [
            f"to be sent to {printable(self.destination, 300)}",
            *(f"  {size:>{width},}  {name}" for size, name in rows),
            f"  {self.total:>{width},}  bytes in all, about {self.tokens:,} tokens",
            *([f"  payload sha256 {self.digest}"] if self.members else []),
        ]


def manifest(
    destination: str,
    payload: bytes,
    members: Iterable[tuple[str, bytes]],
    *,
    instruction: bytes,
    schema: bytes = b"",
    rebuttal: bytes = b"",
) -> Manifest:
    """Return the manifest of one call.

    Args:
        destination: the key of consent.
        payload: the artifact's bytes as they are sent; empty for a rebuttal, which sends its own document.
        members: path and bytes of each member that is sent.
        instruction: stance and lens; where the schema is part of it, without the schema's bytes.
        schema: the response schema.
        rebuttal: the document of a rebuttal.
    """
    sizes = tuple(MemberSize(path, len(data), sha256_hex(data)) for path, data in members)
    return Manifest(destination, len(payload), sha256_hex(payload), sizes, len(instruction), len(schema), len(rebuttal))
