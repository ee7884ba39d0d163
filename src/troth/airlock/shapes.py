"""The shapes of what this program keeps for itself: a file that somebody bent is refused, never half believed.

A shape is a function that tells whether a JSON value has it; these are the parts that others are made of.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

Shape = Callable[[Any], bool]

_MOST: Final = 1 << 53
"""Largest number that is meant, in bytes, tokens or seconds; all of them are exact as floating point."""


def text(value: Any) -> bool:
    """Tell whether it is a text."""
    return isinstance(value, str)


def flag(value: Any) -> bool:
    """Tell whether it is true or false."""
    return isinstance(value, bool)


def count(value: Any) -> bool:
    """Tell whether it is a whole number from 0 that floating point holds exactly."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MOST


def number(value: Any) -> bool:
    """Tell whether it is a finite number from 0."""
    return count(value) or (isinstance(value, float) and math.isfinite(value) and 0 <= value <= _MOST)


def anything(value: Any) -> bool:
    """Tell whether it is an object, whatever it holds."""
    return isinstance(value, dict)


def one_of(*allowed: str) -> Shape:
    """Return the shape of one of these texts."""
    return lambda value: isinstance(value, str) and value in allowed


def maybe(shape: Shape) -> Shape:
    """Return the shape of null or what has another shape."""
    return lambda value: value is None or shape(value)


def many(shape: Shape) -> Shape:
    """Return the shape of a list."""
    return lambda value: isinstance(value, list) and all(shape(each) for each in value)


def each(shape: Shape) -> Shape:
    """Return the shape of an object whose members, whatever their names, have one shape."""
    return lambda value: isinstance(value, dict) and all(shape(held) for held in value.values())


def members(**shapes: Shape) -> Shape:
    """Return the shape of an object that has these members; others may stand beside them."""
    return lambda value: (
        isinstance(value, dict) and all(name in value and shape(value[name]) for name, shape in shapes.items())
    )


def given(**shapes: Shape) -> Shape:
    """Return the shape of an object that may have these members."""
    return lambda value: (
        isinstance(value, dict) and all(shape(value[name]) for name, shape in shapes.items() if name in value)
    )
