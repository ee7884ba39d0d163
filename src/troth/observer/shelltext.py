"""What a line of shell text runs: read with a grammar, never executed.

The question is narrow: given the text of a command and the exit that its shell reported, which programs certainly ran,
with which words, and whose exit is known? The shell's exit is that of the last command of a pipeline; ``a && b`` with
exit 0 ran both; ``a; b`` tells nothing of ``a``'s exit; what stands in a branch, a loop or a function may have run.
Words with expansions are patterns. What the grammar does not understand is said to be not understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from troth.observer.shellwords import MAX_DEPTH, Word, text_of, words_of

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_PARSED: Final = 16 << 10
"""Characters of a text that is read; a longer one is not understood."""

MAX_NODES: Final = 5_000
"""Nodes of a syntax tree that is walked; a larger one is not understood."""

MAX_RUNS: Final = 500
"""Programs taken from one text; a text with more is not understood."""

BUILTINS: Final = frozenset(
    {
        ".", ":", "[", "alias", "bg", "bind", "break", "builtin", "caller", "cd", "compgen", "complete",
        "continue", "declare", "dirs", "disown", "echo", "enable", "eval", "exit", "export", "false", "fc",
        "fg", "getopts", "hash", "help", "history", "jobs", "kill", "let", "local", "logout", "popd", "printf",
        "pushd", "pwd", "read", "readarray", "mapfile", "readonly", "return", "set", "shift", "shopt", "source",
        "suspend", "test", "times", "trap", "true", "type", "typeset", "ulimit", "umask", "unalias", "unset",
        "wait",
    }
)  # fmt: skip
"""Commands that a shell does itself: no program is started that could be observed."""

_LEAD: Final = frozenset({"command", "exec", "builtin", "time", "nocorrect", "noglob"})
"""Words before a program that start no program themselves."""

_FILTERS: Final = frozenset(
    {
        "tee", "tail", "head", "less", "more", "most", "cat", "grep", "egrep", "fgrep", "rg", "ag", "sed",
        "awk", "gawk", "sort", "uniq", "wc", "cut", "tr", "jq", "column", "fold", "nl", "tac", "paste", "xxd",
        "strings", "ts", "pv",
    }
)  # fmt: skip
"""Programs that pass on or look through what another wrote: the other one does the work (done records §13.12)."""

_LEAVING: Final = re.compile(rb"exit|exec|return")
_BRANCHES: Final = frozenset(
    {
        "if_statement",
        "while_statement",
        "for_statement",
        "c_style_for_statement",
        "case_statement",
        "function_definition",
    }
)


@dataclass(frozen=True, slots=True)
class Named:
    """A program that a text names.

    Attributes:
        words: its words; the first one's literal text is the program, when it has one.
        certain: it ran, given the exit that the shell reported.
        exit: its own exit, where the shell's tells it.
        raw: its words as they stand in the text.
    """

    words: tuple[Word, ...]
    certain: bool
    exit: int | None
    raw: str

    @property
    def argv(self) -> tuple[str, ...] | None:
        """Return the words when none is expanded."""
        words = [word.text for word in self.words]
        return tuple(word for word in words if word is not None) if None not in words else None

    @property
    def program(self) -> str:
        """Return the last part of the program's name, or the empty text when it is expanded."""
        name = self.words[0].text
        return "" if name is None else name.rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class Read:
    """What a text runs; ``understood`` is false when the grammar did not take it or it is too large."""

    runs: tuple[Named, ...]
    understood: bool = True


def literal(argv: Sequence[str], exit_code: int | None) -> Named:
    """Return the program that words name."""
    return Named(tuple(Word((word,)) for word in argv), True, exit_code, " ".join(argv))


class Shells:
    """Shells and the text they are given with ``-c``."""

    NAMES: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "ash", "mksh"})
    _VALUED: Final = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})

    @classmethod
    def text_of(cls, argv: Sequence[str]) -> str | None:
        """Return the text of ``sh -c TEXT``, whatever other options stand there; None for any other vector."""
        if not argv or argv[0].rsplit("/", 1)[-1].lstrip("-") not in cls.NAMES:
            return None
        asked = skip = False
        for word in argv[1:]:
            if skip:
                skip = False
            elif word in cls._VALUED:
                skip = True
            elif word.startswith("-") and not word.startswith("--") and len(word) > 1:
                asked = asked or "c" in word
            elif word.startswith(("--", "+")) and word != "--":
                continue
            elif word != "--":
                return word if asked else None
        return None


def evaluated(text: str) -> tuple[str, ...]:
    """Return the literal texts that a text hands to ``eval``: how some tools wrap the command they were given."""
    if "eval" not in text:
        return ()
    root = _tree(text)
    found = []
    if root is not None:
        for node in _commands(root):
            words = words_of(node, 0)
            literals = [word.text for word in words]
            if len(literals) > 1 and literals[0] == "eval" and None not in literals[1:]:
                found.append(" ".join(part for part in literals[1:] if part is not None))
    return tuple(found)


def literal_words(text: str) -> tuple[str, ...] | None:
    """Return the words of a text that is one plain command without any expansion, else None."""
    read = read_text(text, None)
    if not read.understood or len(read.runs) != 1 or not read.runs[0].certain:
        return None
    return read.runs[0].argv


def read_text(text: str, exit_code: int | None) -> Read:
    """Return the programs that a text runs.

    Args:
        text: what a shell was given.
        exit_code: what the shell reported; None when that is not known.
    """
    return _read(text, certain=True, exit_code=exit_code, depth=0)


def _read(text: str, *, certain: bool, exit_code: int | None, depth: int) -> Read:
    root = _tree(text)
    if root is None or depth > 4:
        return Read((), understood=False)
    # Most texts set nothing and define nothing, and a walk over all commands is what takes the time.
    stops, fails = _settings(root) if "set" in text else (False, False)
    functions = _functions(root) if "(" in text or "function" in text else frozenset()
    reading = _Reading(depth, stops, fails, functions)
    try:
        runs = reading.statements(root, certain, exit_code, 0)
    except _TooMuch:
        return Read((), understood=False)
    return Read(tuple(runs), reading.understood)


@cache
def _parser() -> Any:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _tree(text: str) -> Node | None:
    """Return the syntax tree, or None where the grammar met an error or the text is too large or too odd."""
    # Characters beyond the first plane end the process within the grammar's own scanner (tree-sitter-bash 0.25.1).
    if len(text) > MAX_PARSED or (not text.isascii() and max(text) > "\uffff"):
        return None
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return None
    root: Node = _parser().parse(data).root_node
    return None if root.has_error or root.descendant_count > MAX_NODES else root


def _commands(root: Node) -> Iterator[Node]:
    """Yield every simple command beneath a node, in no order that means anything."""
    stack = [root]
    while stack:
        node = stack.pop()
        if node.type == "command":
            yield node
        stack.extend(node.named_children)


def _functions(root: Node) -> frozenset[str]:
    """Return the names of the functions that a text defines: calling one starts no program of that name."""
    names = set()
    stack = [root]
    while stack:
        node = stack.pop()
        name = node.child_by_field_name("name") if node.type == "function_definition" else None
        if name is not None:
            names.add(text_of(name))
        stack.extend(node.named_children)
    return frozenset(names)


def _settings(root: Node) -> tuple[bool, bool]:
    """Tell whether the text sets ``errexit`` and ``pipefail`` anywhere."""
    stops = fails = False
    for node in _commands(root):
        words = [word.text or "" for word in words_of(node, 0)]
        if words and words[0] == "set":
            stops = stops or "errexit" in words or any(w[:1] == "-" and w[1:2] != "-" and "e" in w for w in words[1:])
            fails = fails or "pipefail" in words
    return stops, fails


class _TooMuch(Exception):
    """Deeper or more than is followed."""


class _Reading:
    """One text while it is read."""

    def __init__(self, depth: int, stops: bool, fails: bool, functions: frozenset[str]) -> None:
        self.functions = functions
        self.depth = depth
        self.stops = stops
        self.fails = fails
        self.understood = True
        self.count = 0

    def statements(self, node: Node, certain: bool, code: int | None, depth: int) -> list[Named]:
        """Read commands that stand one after the other."""
        if depth > MAX_DEPTH:
            raise _TooMuch
        items = [child for child in node.named_children if child.type != "comment"]
        behind = {child.id for child in items if child.next_sibling is not None and child.next_sibling.type == "&"}
        runs: list[Named] = []
        for number, child in enumerate(items):
            last = number == len(items) - 1
            known = code if last and child.id not in behind else None
            runs += self.one(child, certain, known, depth + 1)
            if self.stops and code != 0 and not last and not _is_set(child):
                certain = False  # any failure so far has ended it
            if not last and _leaves(child):
                certain, code = False, None
        return runs

    def one(self, node: Node, certain: bool, code: int | None, depth: int) -> list[Named]:
        """Read one statement."""
        if depth > MAX_DEPTH:
            raise _TooMuch
        kind = node.type
        if kind == "command":
            return self.command(node, certain, code, depth)
        if kind == "list":
            return self.chain(node, certain, code, depth)
        if kind == "pipeline":
            return self.pipeline(list(node.named_children), certain, code, depth)
        if kind == "redirected_statement":
            return self.redirected(node, certain, code, depth)
        if kind == "negated_command":
            return self.each(node, certain, 0 if code == 1 else None, depth)
        if kind in ("subshell", "compound_statement", "program", "do_group"):
            return self.statements(node, certain, code, depth)
        if kind in ("variable_assignment", "variable_assignments", "declaration_command", "unset_command"):
            return self.substituted(node, certain, depth)
        if kind == "test_command":
            return self.substituted(node, certain, depth)
        if kind in _BRANCHES:
            return [replace(run, certain=False, exit=None) for run in self.each(node, False, None, depth)]
        if kind in ("elif_clause", "else_clause", "case_item", "command_substitution", "process_substitution"):
            return self.each(node, certain, None, depth)
        return self.substituted(node, certain, depth) if node.named_children else []

    def each(self, node: Node, certain: bool, code: int | None, depth: int) -> list[Named]:
        """Read all children as statements that know of one another nothing."""
        return [run for child in node.named_children for run in self.one(child, certain, code, depth + 1)]

    def chain(self, node: Node, certain: bool, code: int | None, depth: int) -> list[Named]:
        """Read ``a && b`` and ``a || b``."""
        left, right = node.named_children[0], node.named_children[-1]
        both = any(child.type == "&&" for child in node.children)
        return self.joined((left, right), both, certain, code, depth)

    def joined(self, pair: tuple[Node, Node], both: bool, certain: bool, code: int | None, depth: int) -> list[Named]:
        """Read the two sides of ``&&`` (``both``) or of ``||``."""
        left, right = pair
        if both:
            done = code == 0
            return [
                *self.one(left, certain, 0 if done else None, depth + 1),
                *self.one(right, certain and done, 0 if done else None, depth + 1),
            ]
        failed = code is not None and code != 0
        return [
            *self.one(left, certain, None, depth + 1),
            *self.one(right, certain and failed, code if failed else None, depth + 1),
        ]

    def pipeline(self, items: list[Node], certain: bool, code: int | None, depth: int) -> list[Named]:
        """Read a pipeline: every command of it runs, the shell's exit is the last one's."""
        if items and (items[0].type == "negated_command" or _negates(items[0])):
            code = None
        runs: list[Named] = []
        for number, child in enumerate(items):
            all_known = 0 if code == 0 else None
            last_known = code if number == len(items) - 1 else None
            runs += self.one(child, certain, all_known if self.fails else last_known, depth + 1)
        working = [run for run in runs if run.program not in _FILTERS]
        return working or runs

    def redirected(self, node: Node, certain: bool, code: int | None, depth: int) -> list[Named]:
        body = node.child_by_field_name("body")
        redirects = [child for child in node.named_children if body is None or child.id != body.id]
        runs = [run for child in redirects for run in self.substituted(child, certain, depth)]
        if body is None:
            return runs
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                rest = self.behind_heredoc(body, redirect, certain, code, depth)
                if rest is not None:
                    return rest
        to_file = any(
            child.type == "file_redirect" and child.child_by_field_name("descriptor") is None for child in redirects
        )
        if to_file and code not in (0, None):
            certain = False  # the shell could not open the file, perhaps
        return [*runs, *self.one(body, certain, code, depth + 1)]

    def behind_heredoc(
        self, body: Node, redirect: Node, certain: bool, code: int | None, depth: int
    ) -> list[Named] | None:
        """Read ``a <<END | b`` and ``a <<END && b``, whose right sides the grammar hangs below the document."""
        for child in redirect.named_children:
            if child.type == "pipeline":
                return self.pipeline([body, *child.named_children], certain, code, depth)
        right = redirect.child_by_field_name("right")
        if right is not None:
            both = any(child.type == "&&" for child in redirect.children)
            return self.joined((body, right), both, certain, code, depth)
        return None

    def substituted(self, node: Node, certain: bool, depth: int) -> list[Named]:
        """Read the commands in ``$(…)`` and ``<(…)`` beneath a node."""
        if depth > MAX_DEPTH:
            raise _TooMuch
        runs: list[Named] = []
        for child in node.named_children:
            if child.type in ("command_substitution", "process_substitution"):
                runs += self.statements(child, certain, None, depth + 1)
            else:
                runs += self.substituted(child, certain, depth + 1)
        return runs

    def command(self, node: Node, certain: bool, code: int | None, depth: int) -> list[Named]:
        """Read a simple command."""
        self.count += 1
        if self.count > MAX_RUNS:
            raise _TooMuch
        runs = self.substituted(node, certain, depth)
        words = words_of(node, depth)
        while words and words[0].text in _LEAD:
            lead, words = words[0].text, words[1:]
            while words and (words[0].text or "").startswith("-"):
                if lead == "command" and {"v", "V"} & set(words[0].text or ""):
                    return runs  # asks where the program is
                words = words[1:]
        if not words:
            return runs
        if words[0].text == "eval":
            return runs + self.evaluated(words[1:], certain, code)
        if words[0].text in BUILTINS:
            return runs
        certain = certain and words[0].text is not None and words[0].text not in self.functions
        return [*runs, Named(tuple(words), certain, code if certain else None, text_of(node))]

    def evaluated(self, words: Sequence[Word], certain: bool, code: int | None) -> list[Named]:
        texts = [word.text for word in words]
        if None in texts:
            return []
        text = " ".join(part for part in texts if part is not None)
        read = _read(text, certain=certain, exit_code=code, depth=self.depth + 1)
        self.understood = self.understood and read.understood
        return list(read.runs)


def _is_set(node: Node) -> bool:
    words = words_of(node, 0) if node.type == "command" else []
    return bool(words) and words[0].text == "set"


def _negates(node: Node) -> bool:
    body = node.child_by_field_name("body") if node.type == "redirected_statement" else None
    return body is not None and body.type == "negated_command"


def _leaves(node: Node) -> bool:
    """Tell whether a statement may end the shell before what follows it."""
    return any(
        (words_of(command, 0) or [Word(("",))])[0].text in ("exit", "exec", "return") for command in _commands(node)
    )
