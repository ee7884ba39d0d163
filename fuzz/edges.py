"""Edges of Python code: the line-to-line arcs that its byte code can take, and those that one call took."""

from __future__ import annotations

import dis
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

Arc = tuple[str, int, int]
"""File, line left, line entered; a function is entered from minus its first line."""

_NO_WAY_ON: Final = frozenset({"RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"})
_ALWAYS: Final = ("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_ABSOLUTE", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP")


def _codes(code: CodeType) -> Iterator[CodeType]:
    for value in code.co_consts:
        if isinstance(value, CodeType):
            yield value
            yield from _codes(value)


def _possible(code: CodeType) -> Iterator[Arc]:
    """Yield the arcs of one function; ways into an exception handler are not among them."""
    starts = dict(dis.findlinestarts(code))
    line = -code.co_firstlineno
    lines: dict[int, int] = {}
    steps = list(dis.get_instructions(code))
    for step in steps:
        line = starts.get(step.offset) or line
        lines[step.offset] = line
    name = code.co_filename
    first = next((number for number in lines.values() if number > code.co_firstlineno), None)
    if first is not None:
        yield name, -code.co_firstlineno, first
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        ways = []
        if after is not None and step.opname not in _NO_WAY_ON and step.opname not in _ALWAYS:
            ways.append(after.offset)
        if step.opcode in dis.hasjrel or step.opcode in dis.hasjabs:
            ways.append(step.argval)
        for way in ways:
            left, entered = lines[step.offset], lines.get(way, 0)
            if left > 0 and entered > 0 and left != entered:
                yield name, left, entered


class Edges:
    """Counts the arcs reached in some modules.

    Args:
        modules: dotted names; their functions' arcs are the total.
    """

    def __init__(self, modules: Iterable[str]) -> None:
        self.possible: set[Arc] = set()
        self.reached: set[Arc] = set()
        self._files = set()
        for name in modules:
            file = importlib.import_module(name).__file__
            assert file is not None
            self._files.add(file)
            for code in _codes(compile(Path(file).read_bytes(), file, "exec")):
                self.possible.update(_possible(code))

    def call(self, entry: Callable[[], Any]) -> tuple[Any, int]:
        """Return what the call returned and how many arcs it was the first to reach; its exceptions pass."""
        files, reached, possible = self._files, self.reached, self.possible
        before = len(reached)

        def entered(frame: FrameType, event: str, argument: Any) -> Any:
            name = frame.f_code.co_filename
            if name not in files:
                return None
            left = -frame.f_code.co_firstlineno

            def moved(frame: FrameType, event: str, argument: Any) -> Any:
                nonlocal left
                if event == "line":
                    arc = (name, left, frame.f_lineno)
                    left = frame.f_lineno
                    if arc in possible:
                        reached.add(arc)
                return moved

            return moved

        traced = sys.gettrace()
        sys.settrace(entered)
        try:
            result = entry()
        finally:
            sys.settrace(traced)
        return result, len(reached) - before
