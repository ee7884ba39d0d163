"""Mutations of JavaScript, TypeScript, Go, Rust and C: the same small changes of meaning as for Python.

The grammars are tree-sitter's, of the extra ``languages``; without one a file of that language has no mutations, and
``missing`` names it. In a language whose compiler checks types only what keeps the types is changed: a mutant that does
not compile fails whatever the tests are worth. A candidate counts only when the edited source still parses.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from troth.observer.mutation import MAX_SOURCE, Mutation, SourceLines

if TYPE_CHECKING:
    from tree_sitter import Node, Parser, Tree

EXTRA: Final = "languages"
_LINE_END: Final = re.compile(rb"\n")

_BINARY: Final[Mapping[str, tuple[str, str]]] = {
    # operator -> (what it becomes, name of the rule)
    "<": ("<=", "comparison"), "<=": ("<", "comparison"), ">": (">=", "comparison"), ">=": (">", "comparison"),
    "==": ("!=", "comparison"), "!=": ("==", "comparison"), "===": ("!==", "comparison"),
    "!==": ("===", "comparison"), "&&": ("||", "boolean"), "||": ("&&", "boolean"), "??": ("&&", "boolean"),
    "+": ("-", "arithmetic"), "-": ("+", "arithmetic"), "*": ("/", "arithmetic"), "/": ("*", "arithmetic"),
    "%": ("*", "arithmetic"), "**": ("*", "arithmetic"), "<<": (">>", "arithmetic"), ">>": ("<<", "arithmetic"),
    ">>>": ("<<", "arithmetic"), "&": ("|", "arithmetic"), "|": ("&", "arithmetic"), "^": ("&", "arithmetic"),
}  # fmt: skip

_NEEDS_NUMBER: Final = frozenset({"+", "-"})
"""Operators that in a typed language may be those of texts or pointers, unless a number stands beside them."""

_BINARY_NODES: Final = frozenset({"binary_expression"})
_NUMBERS: Final = frozenset({"number", "int_literal", "float_literal", "integer_literal", "number_literal"})
_STRINGS: Final = frozenset({"string", "interpreted_string_literal", "string_literal"})
_CONDITIONED: Final = frozenset(
    {"if_statement", "while_statement", "ternary_expression", "if_expression", "while_expression",
     "conditional_expression"}
)  # fmt: skip
_SILENT: Final = frozenset(
    {
        # JavaScript, TypeScript: what names modules and types
        "import_statement", "type_annotation", "type_alias_declaration", "interface_declaration", "literal_type",
        "type_arguments", "type_parameters", "ambient_declaration", "decorator",
        # Go
        "import_declaration", "array_type", "package_clause",
        # Rust; what a macro is given is no tree of expressions
        "attribute_item", "inner_attribute_item", "token_tree", "match_pattern", "let_condition", "let_chain",
        # C
        "preproc_include", "preproc_if", "preproc_elif", "array_declarator", "bitfield_clause", "enumerator",
        "gnu_asm_expression",
    }
)  # fmt: skip
"""Nodes beneath which nothing is changed: it says nothing about behaviour, or would not compile."""

_WHOLE: Final = re.compile(r"[0-9]{1,15}\Z")
_FRACTION: Final = re.compile(r"[0-9]{1,12}\.[0-9]{1,12}\Z")
_MOST_NODES: Final = 400_000
_LONGEST_LINE: Final = 10_000  # bytes; a longer one was written by no hand
_TEST_ATTRIBUTE: Final = re.compile(rb"#\[\s*(?:cfg\s*\(\s*test\b|(?:[\w:]+::)?test\b)")


@dataclass(frozen=True, slots=True)
class Language:
    """One language: the module with its grammar, and whether its compiler checks types before anything runs."""

    name: str
    module: str
    function: str = "language"
    typed: bool = False
    macros: bool = False
    """Whether a preprocessor runs first: what its macros hide does not parse, and says nothing of the rest."""
    test_names: tuple[str, ...] = field(default=())
    """Endings of files that hold tests and not the program."""


_JS_TESTS: Final = tuple(
    f".{kind}.{end}" for kind in ("test", "spec", "config", "min", "stories") for end in ("js", "cjs", "mjs", "jsx")
)
_TS_TESTS: Final = (
    ".d.ts",
    *(f".{kind}.{end}" for kind in ("test", "spec", "config", "stories") for end in ("ts", "tsx", "mts", "cts")),
)
_JS: Final = Language("JavaScript", "tree_sitter_javascript", test_names=_JS_TESTS)
_TS: Final = Language("TypeScript", "tree_sitter_typescript", "language_typescript", typed=True, test_names=_TS_TESTS)
_TSX: Final = Language("TypeScript", "tree_sitter_typescript", "language_tsx", typed=True, test_names=_TS_TESTS)
_GO: Final = Language("Go", "tree_sitter_go", typed=True, test_names=("_test.go",))
_RUST: Final = Language("Rust", "tree_sitter_rust", typed=True)
_C: Final = Language("C", "tree_sitter_c", typed=True, macros=True)

LANGUAGES: Final[Mapping[str, Language]] = {
    ".js": _JS, ".mjs": _JS, ".cjs": _JS, ".jsx": _JS, ".ts": _TS, ".mts": _TS, ".cts": _TS, ".tsx": _TSX,
    ".go": _GO, ".rs": _RUST, ".c": _C,
}  # fmt: skip
"""Ending of a file's name -> its language."""


def language_of(path: str) -> Language | None:
    """Return the language of a file by its name."""
    name = path.rpartition("/")[2]
    return LANGUAGES.get("." + name.rpartition(".")[2]) if "." in name[1:] else None


def holds_tests(path: str) -> bool:
    """Tell whether a file of these languages is named as one of tests, types or settings."""
    language = language_of(path)
    return language is not None and path.endswith(language.test_names or ("\0",))


@functools.cache
def _parser(module: str, function: str) -> Parser | None:
    try:
        import tree_sitter

        grammar = getattr(importlib.import_module(module), function)
    except ImportError:
        return None
    return tree_sitter.Parser(tree_sitter.Language(grammar()))


def missing(paths: Iterable[str]) -> list[str]:
    """Return the languages of the files for which no grammar is installed, by name."""
    languages = {language for path in paths if (language := language_of(path)) is not None}
    return sorted({item.name for item in languages if _parser(item.module, item.function) is None})


def _parse(path: str, data: bytes) -> Tree | None:
    language = language_of(path)
    parser = _parser(language.module, language.function) if language is not None else None
    if language is None or parser is None or len(data) > MAX_SOURCE or max(map(len, data.split(b"\n"))) > _LONGEST_LINE:
        return None
    tree = parser.parse(data)
    return None if tree.root_node.has_error and not language.macros else tree


class _File(SourceLines):
    """A file that parsed."""

    def __init__(self, path: str, data: bytes, typed: bool) -> None:
        super().__init__(path, data, _LINE_END)
        self.typed = typed

    def text(self, node: Node) -> str:
        return self.data[node.start_byte : node.end_byte].decode("utf-8")


def _nodes(tree: Tree, data: bytes) -> Iterator[Node]:
    stack = [tree.root_node]
    count = 0
    while stack and count < _MOST_NODES:
        node = stack.pop()
        count += 1
        if node.is_error:
            continue
        yield node
        # In Rust an attribute stands before what it is about; tests within the source are not the program.
        about_tests = False
        for child in node.children:
            if child.type == "attribute_item":
                about_tests = about_tests or _TEST_ATTRIBUTE.match(data, child.start_byte) is not None
                continue
            if not about_tests and child.type not in _SILENT:
                stack.append(child)
            if child.is_named:
                about_tests = False


def _binary(file: _File, node: Node) -> Iterator[Mutation]:
    operator = node.child_by_field_name("operator")
    known = _BINARY.get(operator.type) if operator is not None else None
    if operator is None or known is None:
        return
    operands = (node.child_by_field_name("left"), node.child_by_field_name("right"))
    numeric = any(item is not None and item.type in _NUMBERS for item in operands)
    if file.typed and operator.type in _NEEDS_NUMBER and not numeric:
        return
    yield file.mutation(known[1], operator.start_byte, operator.end_byte, known[0])


def _negated(file: _File, node: Node) -> Iterator[Mutation]:
    condition = node.child_by_field_name("condition")
    if condition is None or condition.type in _SILENT or condition.type in ("unary_expression", "empty_statement"):
        return
    text = file.text(condition)
    if condition.type == "parenthesized_expression":
        yield file.mutation("condition", condition.start_byte, condition.end_byte, f"(!{text})")
    else:
        yield file.mutation("condition", condition.start_byte, condition.end_byte, f"!({text})")


def _number(file: _File, node: Node) -> Iterator[Mutation]:
    text = file.text(node)
    if _WHOLE.match(text):
        value = int(text)
        yield file.mutation("constant", node.start_byte, node.end_byte, str(value + 1))
        if value > 0:
            yield file.mutation("constant", node.start_byte, node.end_byte, str(value - 1))
    elif _FRACTION.match(text):
        whole, _, rest = text.partition(".")
        yield file.mutation("constant", node.start_byte, node.end_byte, f"{int(whole) + 1}.{rest}")


def _text(file: _File, node: Node) -> Iterator[Mutation]:
    parent = node.parent
    if parent is None or (parent.type == "expression_statement" and parent.named_child_count == 1):
        return  # a directive such as "use strict"
    if parent.type in ("export_statement", "pair", "enum_assignment", "property_signature"):
        value = parent.child_by_field_name("value")
        if value is None or value.start_byte != node.start_byte:
            return  # the name of a module or of a property
    call = parent.parent if parent.type == "arguments" else None
    called = call.child_by_field_name("function") if call is not None else None
    if called is not None and file.text(called) in ("require", "import"):
        return
    empty = node.end_byte - node.start_byte == len('""')
    yield file.mutation("text", node.start_byte, node.end_byte, '"x"' if empty else '""')


def _cases(node: Node) -> bool:
    """Tell whether a node is the label of a case: two alike do not compile."""
    parent = node.parent
    while parent is not None and parent.type == "expression_list":
        node, parent = parent, parent.parent
    if parent is None or parent.type not in ("expression_case", "case_statement"):
        return False
    value = parent.child_by_field_name("value")
    return value is not None and value.start_byte == node.start_byte


_TAKEN_AWAY: Final = frozenset(
    {"call_expression", "await_expression", "assignment_expression", "augmented_assignment_expression",
     "update_expression"}
)  # fmt: skip


def _is_name(node: Node) -> bool:
    return node.type not in ("member_expression", "subscript_expression")


def _statement(file: _File, node: Node) -> Iterator[Mutation]:
    """Yield what only a language without types lets be taken away."""
    if node.type == "throw_statement":
        yield file.mutation("statement", node.start_byte, node.end_byte, ";")
    elif node.type == "return_statement" and node.named_child_count == 1:
        yield file.mutation("return", node.start_byte, node.end_byte, "return undefined;")
    elif node.type == "expression_statement":
        inner = node.named_children[0] if node.named_child_count else None
        target = inner.child_by_field_name("left") if inner is not None else None
        # Taking a name's only assignment away would break the program by a missing name, which any run shows.
        kept = target is not None and inner is not None and inner.type == "assignment_expression" and _is_name(target)
        if inner is not None and not kept and inner.type in _TAKEN_AWAY:
            yield file.mutation("statement", node.start_byte, node.end_byte, ";")


_LITERALS: Final[Mapping[str, Callable[[_File, Node], Iterator[Mutation]]]] = {
    **dict.fromkeys(_NUMBERS, _number),
    **dict.fromkeys(_STRINGS, _text),
}


def _of_node(file: _File, node: Node) -> Iterator[Mutation]:
    kind = node.type
    if not node.is_named:
        return
    if kind in _BINARY_NODES:
        yield from _binary(file, node)
    elif kind in ("true", "false") or (kind == "boolean_literal" and file.text(node) in ("true", "false")):
        if not _cases(node):
            other = "false" if file.text(node) == "true" else "true"
            yield file.mutation("constant", node.start_byte, node.end_byte, other)
    elif kind in _LITERALS:
        if not _cases(node):
            yield from _LITERALS[kind](file, node)
    elif kind in _CONDITIONED:
        yield from _negated(file, node)
    elif kind == "break_statement" and not file.typed and node.named_child_count == 0 and _in_loop(node):
        yield file.mutation("loop", node.start_byte, node.end_byte, "continue;")
    if not file.typed:
        yield from _statement(file, node)


_LOOPS: Final[Collection[str]] = frozenset({"for_statement", "for_in_statement", "while_statement", "do_statement"})
_ENDS: Final[Collection[str]] = frozenset({"switch_statement", "function_declaration", "arrow_function", "program"})


def _in_loop(node: Node) -> bool:
    at = node.parent
    while at is not None and at.type not in _ENDS:
        if at.type in _LOOPS:
            return True
        at = at.parent
    return False


def mutations(path: str, data: bytes) -> list[Mutation]:
    """Return every mutation of a file, in the order of its bytes; none for one that does not parse or is no UTF-8."""
    language = language_of(path)
    tree = _parse(path, data)
    if tree is None or language is None:
        return []
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return []
    file = _File(path, data, language.typed)
    found: dict[tuple[int, int, str], Mutation] = {}
    for node in _nodes(tree, data):
        for mutation in _of_node(file, node):
            found.setdefault((mutation.start, mutation.end, mutation.after), mutation)
    return [found[key] for key in sorted(found)]


def is_real(mutation: Mutation, data: bytes) -> bool:
    """Tell whether the edited source still parses, where macros hide a part of it as far as the original does."""
    edited = _parse(mutation.path, mutation.applied(data))
    if edited is None or not edited.root_node.has_error:
        return edited is not None
    known = _parse(mutation.path, data)
    return known is not None and _unread(edited) <= _unread(known)


def _unread(tree: Tree) -> int:
    """Count the places that did not parse."""
    stack, count = [tree.root_node], 0
    while stack:
        node = stack.pop()
        count += node.is_error or node.is_missing
        stack.extend(child for child in node.children if child.has_error)
    return count
