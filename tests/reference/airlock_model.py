"""A literal model of §11, "Tier behaviour": what becomes of a submission. Nothing is imported from the product."""

from __future__ import annotations


def becomes(auto_close: bool, require_human: bool, validators: list[str], answers: list[tuple[str, str]]) -> str:
    """Return `closed`, `waits` or `failed`.

    `answers` are (validator, answer) as they came in; a validator may have answered several times, or never.
    """
    for name in validators:
        said = [answer for who, answer in answers if who == name]
        if said == []:
            return "failed"
        if "failed" in said:
            return "failed"
    for name in validators:
        if ("waiting" in [answer for who, answer in answers if who == name]) is True:
            return "waits"
    # All passed, or nobody was asked.
    if validators == []:
        return "waits"
    if require_human:
        return "waits"
    return "closed" if auto_close else "waits"
