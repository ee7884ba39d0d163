"""What readers of several rooms share."""

from __future__ import annotations

from typing import Final


def asserted(held: bool, what: str) -> None:
    """Fail as a fault of the program when something does not hold that has to."""
    if not held:
        raise AssertionError(what)


YAML: Final = (
    b"&a", b"*a", b"!!int", b"? ", b"- ", b": ", b"<<: *a", b"|\n  x", b">-", b"{a: b}", b"[a, b]", b"'", b"%YAML 1.1",
)  # fmt: skip
"""What YAML has that a careless reader falls over."""
