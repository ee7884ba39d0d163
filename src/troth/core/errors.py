"""The one error hierarchy.

A refusal carries a stable ``code`` (the specs' own words), what was found, what to do, and the place.
The exit status of the command line follows from the class alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Place:
    """Where something was found: a file, a physical line (from 1), a JSON path such as ``$.payload.body``."""

    file: str | None = None
    line: int | None = None
    path: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the members that are known."""
        pairs = (("file", self.file), ("line", self.line), ("path", self.path))
        return {name: value for name, value in pairs if value is not None}

    def __str__(self) -> str:
        where = self.file or ""
        if self.line is not None:
            where = f"{where}:{self.line}" if where else f"line {self.line}"
        if self.path is not None:
            where = f"{where} at {self.path}" if where else self.path
        return where


class TrothError(Exception):
    """Root of every error raised on purpose.

    Args:
        code: stable identifier, for protocol rules the spec's own.
        message: one sentence: what was found.
        remedy: one sentence: what to do about it.
        place: where it was found.
        detail: machine-readable refinement of the code (the ledger spec's §5 ``detail``), or structured facts.
    """

    exit_code: ClassVar[int] = 2

    def __init__(
        self,
        code: str,
        message: str,
        *,
        remedy: str | None = None,
        place: Place | None = None,
        detail: Any = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.remedy = remedy
        self.place = place
        self.detail = detail

    def as_json(self) -> dict[str, Any]:
        """Return the wire form: ``{"error": {"code", "message", "place", "detail"}}`` (plus ``remedy``)."""
        body: dict[str, Any] = {
            "code": self.code,
            "message": self.message,
            "place": self.place.as_json() if self.place else None,
            "detail": self.detail,
        }
        if self.remedy is not None:
            body["remedy"] = self.remedy
        return {"error": body}

    def __str__(self) -> str:
        code = f"{self.code} ({self.detail})" if isinstance(self.detail, str) else self.code
        text = f"{code}: {self.message}"
        where = str(self.place) if self.place else ""
        if where:
            text = f"{text} [{where}]"
        if self.remedy is None:
            return text
        return f"{text} {self.remedy}" if text.endswith((".", "!", "?")) else f"{text}. {self.remedy}"


class Refused(TrothError):
    """Usage, a malformed record, an operation refused with its code. Nothing was changed."""

    exit_code = 2


class DoesNotHold(TrothError):
    """Something checked is false: a fault in the chain, an invalid or contradicted receipt."""

    exit_code = 1


class NotEstablished(TrothError):
    """The records did not allow an answer."""

    exit_code = 3


class Busy(TrothError):
    """Somebody else holds what is needed; try again."""

    exit_code = 75


class Defect(TrothError):
    """An error of ours: a promise of this program that did not hold."""

    exit_code = 70
