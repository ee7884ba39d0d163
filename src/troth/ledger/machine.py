"""The state machine of a commitment as a table, one function that steps it and one that draws it (§6)."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

StateName = Literal["open", "claimed", "in_review", "closed"]
Who = Literal["anyone", "owner", "other"]
Column = Literal["claim", "release", "submit", "approve", "reopen", "close", "duplicate"]
Effect = Literal["keep", "take", "drop", "submit", "approve", "reopen", "close"]

STATES: Final[tuple[StateName, ...]] = ("open", "claimed", "in_review", "closed")
COLUMNS: Final[tuple[Column, ...]] = ("claim", "release", "submit", "approve", "reopen", "close", "duplicate")
"""The columns of the table; ``duplicate`` is a close that names ``duplicate_of``."""


class Cell(NamedTuple):
    """One cell: a move (``to`` and ``effect``) or a refusal (``code`` and ``detail``).

    The move of ``reopen`` from ``closed`` leads to ``open`` instead where the commitment has no owner.
    """

    to: StateName | None = None
    effect: Effect = "keep"
    code: str | None = None
    detail: str | None = None


_NOT_OWNER = Cell(code="E_NOT_OWNER")
_CLAIMED = Cell(code="E_ALREADY_CLAIMED")
_CLOSED = Cell(code="E_ALREADY_CLOSED")
_BAD = Cell(code="E_CONSTRAINT_VIOLATED", detail="bad_state")
_CLOSE = Cell("closed", "close")
_APPROVE = Cell("closed", "approve")
_REOPEN = Cell("claimed", "reopen")

# fmt: off
TABLE: dict[tuple[StateName, Who], dict[Column, Cell]] = {
    ("open", "anyone"): {
        "claim": Cell("claimed", "take"), "release": _NOT_OWNER, "submit": _NOT_OWNER,
        "approve": _BAD, "reopen": _BAD, "close": _NOT_OWNER, "duplicate": _CLOSE,
    },
    ("claimed", "owner"): {
        "claim": Cell("claimed", "keep"), "release": Cell("open", "drop"), "submit": Cell("in_review", "submit"),
        "approve": _BAD, "reopen": _BAD, "close": _CLOSE, "duplicate": _CLOSE,
    },
    ("claimed", "other"): {
        "claim": _CLAIMED, "release": _NOT_OWNER, "submit": _NOT_OWNER,
        "approve": _BAD, "reopen": _BAD, "close": _NOT_OWNER, "duplicate": _NOT_OWNER,
    },
    ("in_review", "owner"): {
        "claim": _BAD, "release": _BAD, "submit": _BAD,
        "approve": _APPROVE, "reopen": _REOPEN, "close": _BAD, "duplicate": _BAD,
    },
    ("in_review", "other"): {
        "claim": _CLAIMED, "release": _NOT_OWNER, "submit": _NOT_OWNER,
        "approve": _APPROVE, "reopen": _REOPEN, "close": _NOT_OWNER, "duplicate": _NOT_OWNER,
    },
    ("closed", "anyone"): {
        "claim": _CLOSED, "release": _CLOSED, "submit": _CLOSED,
        "approve": _CLOSED, "reopen": _REOPEN, "close": _CLOSED, "duplicate": _CLOSED,
    },
}
# fmt: on


def who(state: StateName, owner: str | None, actor: str) -> Who:
    """Return the role of an actor towards a commitment, as the rows of the table name it."""
    if state in ("open", "closed"):
        return "anyone"
    return "owner" if actor == owner else "other"


def step(state: StateName, owner: str | None, actor: str, column: Column) -> Cell:
    """Return the cell that decides what this operation does to a commitment in that state."""
    cell = TABLE[state, who(state, owner, actor)][column]
    if cell.effect == "reopen" and owner is None:
        return cell._replace(to="open")
    return cell


def mermaid() -> str:
    """Return the table's moves as a Mermaid state diagram."""
    lines = ["stateDiagram-v2", "    [*] --> open: commit"]
    for state in STATES:
        moves: dict[tuple[str, str], list[str]] = {}
        for (source, role), cells in TABLE.items():
            if source != state:
                continue
            for column, cell in cells.items():
                if cell.to is None:
                    continue
                label: str = "close as duplicate" if column == "duplicate" else column
                targets: list[tuple[str, str]] = [(cell.to, "")]
                if cell.effect == "reopen" and source == "closed":
                    targets = [(cell.to, ""), ("open", " without owner")]
                for target, condition in targets:
                    moves.setdefault((target, label + condition), []).append(role)
        for (arrow, text), by in moves.items():
            suffix = f" by {by[0]}" if by in (["owner"], ["other"]) else ""
            lines.append(f"    {state} --> {arrow}: {text}{suffix}")
    return "\n".join(lines) + "\n"
