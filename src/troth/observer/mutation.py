"""Mutations of Python source: small changes of meaning, each an edit of one span, everything else byte for byte. Pure.

Positions come from the syntax tree, operators from the tokens between its nodes. A candidate counts only when the
edited source still compiles and its tree differs from the original's.
"""

from __future__ import annotations

import ast
import bisect
import hashlib
import io
import math
import re
import tokenize
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

_COMPARE: Final[Mapping[type[ast.cmpop], tuple[str, str]]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
_BINARY: Final[Mapping[type[ast.operator], tuple[str, str]]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.BitXor: ("^", "&"),
}
_BOOLEAN: Final[Mapping[type[ast.boolop], tuple[str, str]]] = {ast.And: ("and", "or"), ast.Or: ("or", "and")}

MAX_SOURCE: Final = 2 << 20
"""Bytes of a source file that is looked at."""

_LARGEST: Final = 1 << 128  # an integer with very many digits cannot be written back

_LINE_END = re.compile(rb"\r\n|\r|\n")


@dataclass(frozen=True, slots=True)
class Mutation:
    """One edit: the bytes from ``start`` to ``end`` of a file become ``after``.

    ``line`` counts from 1 and ``column`` in characters from 1, both of the edited span. ``operator`` names the rule.
    """

    path: str
    line: int
    column: int
    operator: str
    before: str
    after: str
    start: int
    end: int

    def applied(self, source: bytes) -> bytes:
        """Return the file with the edit."""
        return source[: self.start] + self.after.encode() + source[self.end :]

    @property
    def rank(self) -> str:
        """Return a fixed pseudo-random order of mutations, the same on every machine."""
        text = f"{self.path}\0{self.start}\0{self.end}\0{self.after}"
        return hashlib.sha256(text.encode()).hexdigest()


class SourceLines:
    """A file in UTF-8: its bytes, and the offsets at which its lines begin."""

    def __init__(self, path: str, data: bytes, line_end: re.Pattern[bytes]) -> None:
        self.path = path
        self.data = data
        self.starts = [0, *(match.end() for match in line_end.finditer(data))]

    def mutation(self, operator: str, start: int, end: int, after: str) -> Mutation:
        """Return the edit that puts ``after`` in the place of the bytes from ``start`` up to ``end``."""
        line = bisect.bisect_right(self.starts, start)
        return Mutation(
            path=self.path,
            line=line,
            column=len(self.data[self.starts[line - 1] : start].decode("utf-8")) + 1,
            operator=operator,
            before=self.data[start:end].decode("utf-8"),
            after=after,
            start=start,
            end=end,
        )


class _Source(SourceLines):
    """A parsed file: byte offsets of positions and of its tokens."""

    def __init__(self, path: str, data: bytes) -> None:
        super().__init__(path, data, _LINE_END)
        self.tree = ast.parse(data)
        self.tokens: list[tuple[int, int, str]] = []
        for token in tokenize.generate_tokens(io.StringIO(data.decode("utf-8"), newline="").readline):
            if token.type in (tokenize.OP, tokenize.NAME):
                start = self._offset(*token.start)
                self.tokens.append((start, start + len(token.string.encode()), token.string))

    def _offset(self, row: int, column: int) -> int:
        """Return the byte offset of a token's position, whose column counts characters."""
        first = self.starts[row - 1]
        line = self.data[first : self.starts[row] if row < len(self.starts) else len(self.data)]
        return first + (column if line.isascii() else len(line.decode("utf-8")[:column].encode()))

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self.starts[node.lineno - 1] + node.col_offset,
            self.starts[node.end_lineno - 1] + node.end_col_offset,
        )

    def words_between(self, start: int, end: int, words: str) -> tuple[int, int] | None:
        """Return the span of an operator of one or two words among the tokens from ``start`` to ``end``."""
        wanted = words.split(" ")
        inside: list[tuple[int, int, str]] = []
        for token in self.tokens[bisect.bisect_left(self.tokens, (start, 0, "")) :]:
            if token[1] > end:
                break
            inside.append(token)
        for at in range(len(inside) - len(wanted) + 1):
            if [token[2] for token in inside[at : at + len(wanted)]] == wanted:
                return inside[at][0], inside[at + len(wanted) - 1][1]
        return None


def _docstrings(tree: ast.Module) -> set[ast.expr]:
    found: set[ast.expr] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.add(node.value)  # a text that stands alone says nothing to the program
    return found


def _is_main_guard(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.If)
        and isinstance(node.test, ast.Compare)
        and isinstance(node.test.left, ast.Name)
        and node.test.left.id == "__name__"
    )


def _skipped_children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the children whose change would say nothing about behaviour, or whose positions cannot be trusted."""
    if isinstance(node, ast.JoinedStr) or _is_main_guard(node):
        yield from ast.iter_child_nodes(node)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield from (child for child in (node.returns,) if child is not None)
        yield from node.decorator_list
    elif isinstance(node, ast.arg | ast.AnnAssign) and node.annotation is not None:
        yield node.annotation
    elif isinstance(node, ast.Assign):
        names = [target.id for target in node.targets if isinstance(target, ast.Name)]
        if any(name.startswith("__") and name.endswith("__") for name in names):
            yield node.value


def _nodes(tree: ast.Module) -> Iterator[ast.AST]:
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        yield node
        left_out = set(_skipped_children(node))
        stack += [child for child in ast.iter_child_nodes(node) if child not in left_out]


def _constant(source: _Source, node: ast.Constant) -> Iterator[Mutation]:
    start, end = source.span(node)
    value = node.value
    if value is True or value is False:
        yield source.mutation("constant", start, end, str(not value))
    elif isinstance(value, int) and abs(value) < _LARGEST:
        yield source.mutation("constant", start, end, str(value + 1))
        yield source.mutation("constant", start, end, str(value - 1) if value > 0 else "(-1)")
    elif isinstance(value, float) and math.isfinite(value):
        # So large a number is not changed by adding one.
        yield source.mutation("constant", start, end, repr(value + 1.0 if value + 1.0 != value else value / 2))
    elif isinstance(value, str):
        yield source.mutation("text", start, end, '""' if value else '"x"')


def _expression(source: _Source, node: ast.expr, silent: set[ast.expr]) -> Iterator[Mutation]:
    if isinstance(node, ast.Compare):
        operands = [node.left, *node.comparators]
        for index, operator in enumerate(node.ops):
            before, after = _COMPARE[type(operator)]
            found = source.words_between(source.span(operands[index])[1], source.span(operands[index + 1])[0], before)
            if found is not None:
                yield source.mutation("comparison", *found, after)
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        before, after = _BINARY[type(node.op)]
        found = source.words_between(source.span(node.left)[1], source.span(node.right)[0], before)
        if found is not None:
            yield source.mutation("arithmetic", *found, after)
    elif isinstance(node, ast.BoolOp):
        before, after = _BOOLEAN[type(node.op)]
        for left, right in zip(node.values, node.values[1:], strict=False):
            found = source.words_between(source.span(left)[1], source.span(right)[0], before)
            if found is not None:
                yield source.mutation("boolean", *found, after)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        start, end = source.span(node)
        rest = source.data[start + len(b"not") : end]
        yield source.mutation("negation", start, end, rest.decode("utf-8").lstrip())
    elif isinstance(node, ast.IfExp):
        yield from _negated(source, node.test)
    elif isinstance(node, ast.Constant) and node not in silent:
        yield from _constant(source, node)


def _negated(source: _Source, test: ast.expr) -> Iterator[Mutation]:
    if not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)) and not isinstance(test, ast.Constant):
        start, end = source.span(test)
        yield source.mutation("condition", start, end, f"not ({source.data[start:end].decode('utf-8')})")


def _drops(node: ast.stmt) -> bool:
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Call | ast.Await)
    if isinstance(node, ast.Assign):
        # Taking a name's only assignment away would break the program by a missing name, which any run shows.
        return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
    return isinstance(node, ast.AugAssign | ast.Raise | ast.Delete)


def _statement(source: _Source, node: ast.stmt) -> Iterator[Mutation]:
    start, end = source.span(node)
    if isinstance(node, ast.If | ast.While) and not _is_main_guard(node):
        yield from _negated(source, node.test)
    elif isinstance(node, ast.Return) and node.value is not None:
        if not (isinstance(node.value, ast.Constant) and node.value.value is None):
            yield source.mutation("return", start, end, "return None")
    elif isinstance(node, ast.Break | ast.Continue):
        yield source.mutation("loop", start, end, "continue" if isinstance(node, ast.Break) else "break")
    if isinstance(node, ast.AugAssign) and type(node.op) in _BINARY:
        before, after = _BINARY[type(node.op)]
        found = source.words_between(source.span(node.target)[1], source.span(node.value)[0], before + "=")
        if found is not None:
            yield source.mutation("arithmetic", *found, after + "=")
    if _drops(node):
        yield source.mutation("statement", start, end, "pass")


def _compiles(data: bytes) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(data, "mutant", "exec", dont_inherit=True)
            return ast.parse(data)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def mutations(path: str, data: bytes) -> list[Mutation]:
    """Return every mutation of a file, in the order of its bytes.

    A file that is too large, is not UTF-8 or does not compile has none. Not every one is checked to compile: see
    ``is_real``.
    """
    if len(data) > MAX_SOURCE or data.startswith(b"\xef\xbb\xbf"):
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if tokenize.detect_encoding(io.BytesIO(data).readline)[0] != "utf-8":
                return []
            data.decode("utf-8")
            source = _Source(path, data)
    except (SyntaxError, ValueError, RecursionError, MemoryError, tokenize.TokenError):
        return []
    silent = _docstrings(source.tree)
    found: dict[tuple[int, int, str], Mutation] = {}
    for node in _nodes(source.tree):
        made: Iterable[Mutation] = ()
        if isinstance(node, ast.expr):
            made = _expression(source, node, silent)
        elif isinstance(node, ast.stmt):
            made = _statement(source, node)
        for mutation in made:
            found.setdefault((mutation.start, mutation.end, mutation.after), mutation)
    return [found[key] for key in sorted(found)]


def is_real(mutation: Mutation, data: bytes) -> bool:
    """Tell whether the edited source compiles and means something else than the original."""
    before, after = _compiles(data), _compiles(mutation.applied(data))
    return before is not None and after is not None and ast.dump(before) != ast.dump(after)


def spread(by_file: Mapping[str, Sequence[Mutation]], first: Iterable[str] = ()) -> Iterator[Mutation]:
    """Yield mutations in a fixed order spread over the files: one of each file in turn.

    Args:
        by_file: the mutations of each file.
        first: files whose mutations all come before the others'.
    """
    chosen = set(first)
    for group in (
        [path for path in sorted(by_file) if path in chosen],
        [path for path in sorted(by_file) if path not in chosen],
    ):
        queues = [sorted(by_file[path], key=lambda mutation: mutation.rank) for path in group]
        for turn in range(max(map(len, queues), default=0)):
            for queue in queues:
                if turn < len(queue):
                    yield queue[turn]
