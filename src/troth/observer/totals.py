"""Totals of tests: what a program prints of them, and what is said of them. Pure.

A line is totals when it consists of nothing else: counts with the words of test runners (``12 passed, 1 failed in
0.3s``), a ratio (``4985/4992``, ``12/12 tests passed``), and a few labels. A line that might be totals and is not read
makes a program's output *unclear*, and with what is unclear nothing is compared: a number that was not understood must
never accuse anybody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

Totals = Mapping[str, int]
"""``passed``, ``failed``, ``errors``, ``skipped`` and ``total``, as far as they are told."""

MAX_LINE: Final = 400
"""Characters of a line that can be totals."""

MAX_LINES: Final = 64
"""Lines of totals kept of one run; one that prints more has no totals."""

MAX_TEXT: Final = 1 << 16
"""Characters of a text, from its end, in which totals are looked for."""

_WORDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("passed", "passing", "pass", "ok"), "passed"),
    **dict.fromkeys(("failed", "failing", "fail", "failure", "failures"), "failed"),
    **dict.fromkeys(("error", "errors"), "errors"),
    **dict.fromkeys(("skipped", "ignored", "pending", "todo"), "skipped"),
    **dict.fromkeys(("total", "test", "tests"), "total"),
}
KINDS: Final = frozenset(_WORDS.values())
"""The members of totals."""

_OTHER: Final = "xfailed|xpassed|deselected|warnings?|measured|filtered out|subtests passed|cancelled"
_KIND: Final = "(?:tests?|specs?|checks?|cases?)"
_RATIO: Final = re.compile(
    rf"(?<![\w.,/-])(\d{{1,9}}) ?/ ?(\d{{1,9}})(?![\w/,-]|\.\d)(?: {_KIND})?(?: (?:passed|passing|pass|ok))?\b"
)
_COUNT: Final = re.compile(
    rf"(?<![\w.,/-])(\d{{1,9}}) (?:{_KIND} )?(?:({'|'.join(sorted(_WORDS, key=len, reverse=True))})|(?:{_OTHER}))\b"
)
_NAMED: Final = re.compile(r"\b(failures|errors|skipped)=(\d{1,9})\b|\b(?:expected failures|unexpected successes)=\d+")
_TAP: Final = re.compile(r"[#ℹ] (tests|pass|fail|skipped) (\d{1,9})")
_BRACKET: Final = re.compile(r"(?<=[a-z] )\((\d{1,9})\)$")
_TIME: Final = re.compile(r"\(?(?<![\w.])\d+(?:[.:]\d+)* ?(?:ms|s|m|sec|seconds?)\b\)?(?: \([\d:.]+\))?")
_LABELS: Final = frozenset(
    {"tests", "test", "result", "results", "total", "totals", "ran", "in", "all", "ok", "failed", "summary", "finished"}
)
_NONE: Final = re.compile(
    r"(?:not )?ok \d+\b|running \d+ tests?$|Test (?:Suites|Files)\b|Snapshots?:|[#ℹ] (?:suites|cancelled|todo|duration)"
)
_GAP: Final = r"(?:\s|\x1b\[[\d;]*m)"
_MAYBE_TEXT: Final = (
    # Every repetition is bounded: this searches whatever a program prints.
    rf"\d{_GAP}{{0,4}}(?:/|of\b|out of\b){_GAP}{{0,4}}\d"
    rf"|\d{_GAP}{{1,8}}(?:\w{{1,20}}{_GAP}{{1,8}})?(?:pass|fail|ok\b|succe|error|skip|test|spec|check|case|ignored|pending|total)"
    rf"|\b(?:pass\w{{0,4}}|fail\w{{0,4}}|ok|succe\w{{0,6}}|tests?|totals?|ran|errors?|skipped){_GAP}{{0,8}}[^\w\s]?{_GAP}{{0,8}}\d"
)
_MAYBE: Final = re.compile(_MAYBE_TEXT, re.IGNORECASE)
_ESCAPES: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")

_WRITTEN: Final = re.compile(_MAYBE_TEXT.replace(r"\x1b", r"\\33").encode())
_DIGIT: Final = re.compile(rb"\d")


def may_hold(written: bytes) -> bool:
    """Tell whether a text, as the tracer writes it, may hold totals; most of what is printed has no number."""
    return _DIGIT.search(written) is not None and _WRITTEN.search(written.lower()) is not None


def may_tell(line: str) -> bool:
    """Tell whether a line may be totals."""
    return _MAYBE.search(line) is not None


def read_line(line: str) -> Totals | None:
    """Return the totals that a line is; None when it is none, or is more than that."""
    line = " ".join(_ESCAPES.sub("", line[: MAX_LINE + 1]).split())
    if len(line) > MAX_LINE:
        return None
    tap = _TAP.fullmatch(line)
    if tap:
        return {_WORDS[tap[1]]: int(tap[2])}
    told: dict[str, int] = {}
    twice = False

    def take(name: str, number: str) -> str:
        nonlocal twice
        twice = twice or name in told
        told[name] = int(number)
        return " "

    def ratio(match: re.Match[str]) -> str:
        return take("total", match[2]) + take("passed", match[1])

    rest = _RATIO.sub(ratio, line)
    rest = _NAMED.sub(lambda match: take(_WORDS[match[1]], match[2]) if match[1] else " ", rest)
    bracket = _BRACKET.search(rest)
    if bracket and "total" not in told:
        take("total", bracket[1])
        rest = rest[: bracket.start()]
    rest = _TIME.sub(" ", rest)
    rest = _COUNT.sub(lambda match: take(_WORDS[match[2]], match[1]) if match[2] else " ", rest)
    words = re.findall(r"\w+", rest)
    if not told or twice or any(word.lower() not in _LABELS for word in words):
        return None
    return None if told.get("total", 1 << 30) < told.get("passed", 0) else told


@dataclass(slots=True)
class Printed:
    """What one run, with everything that it started, printed of totals."""

    lines: list[Totals] = field(default_factory=list)
    unclear: bool = False

    def take(self, line: str) -> None:
        """Take down a line."""
        if self.unclear or not may_tell(_ESCAPES.sub("", line[: MAX_LINE + 1])) or _NONE.match(line.strip()):
            return
        told = read_line(line)
        if told is None or len(self.lines) >= MAX_LINES:
            self.unclear = True
        else:
            self.lines.append(told)

    def settled(self) -> tuple[Totals, ...]:
        """Return the run's totals, the last ones last; several only where a ratio was counted up; none when unclear.

        Of a run that printed several totals it is not known which are the whole's.
        """
        if self.unclear or not self.lines:
            return ()
        if len({name for told in self.lines for name in told}) == sum(map(len, self.lines)):
            return ({name: number for told in self.lines for name, number in told.items()},)
        if all(set(told) == {"passed", "total"} for told in self.lines):
            reached = [told["passed"] for told in self.lines]
            if len({told["total"] for told in self.lines}) == 1 and sorted(set(reached)) == reached:
                return tuple(self.lines)
        return ()


def read_output(text: str) -> Printed:
    """Read a program's output; of a long one, its end."""
    printed = Printed()
    for line in lines_of(text[-MAX_TEXT:]):
        printed.take(line)
    return printed


def lines_of(text: str) -> list[str]:
    """Split at line feeds and at the carriage returns with which progress is drawn over."""
    return re.split(r"\r?\n|\r", text)


def only(text: str) -> Totals | None:
    """Return the totals that a text holds, when it holds one."""
    settled = read_output(text).settled()
    return settled[-1] if settled else None


def differ(said: Totals, printed: Totals) -> bool:
    """Tell whether totals that were said cannot be those that were printed; what only one of them names is passed over.

    So ``12 passed`` does not differ from ``12 passed, 1 failed``: it is true, and the exit says the rest.
    """
    if any(said[name] != printed[name] for name in said.keys() & printed.keys()):
        return True
    if "total" in said and "total" not in printed and "passed" in printed:
        ran = sum(printed.get(name, 0) for name in ("passed", "failed", "errors"))
        return said["total"] not in (ran, ran + printed.get("skipped", 0)) and said["total"] != printed["passed"]
    return said.get("passed", 0) > printed.get("total", 1 << 30)


def worded(totals: Totals) -> str:
    """Write totals for a person: ``4985/4992``, or ``12 passed, 1 failed``."""
    if set(totals) == {"passed", "total"}:
        return f"{totals['passed']}/{totals['total']}"
    words = {"total": "tests"}
    names = [name for name in ("passed", "failed", "errors", "skipped", "total") if name in totals]
    return ", ".join(f"{totals[name]} {words.get(name, name)}" for name in names)


# --- what an agent's last message says ---

_GLUE: Final = frozenset(
    {
        "ran", "result", "results", "exit", "exits", "exited", "code", "status", "with", "prints", "printed",
        "reports", "reported", "gives", "gave", "says", "shows", "now", "and", "all", "tests", "test", "in",
        "passes", "passed", "ok", "green",
    }
)  # fmt: skip
_PASSING: Final = frozenset({"pass", "passes", "passed", "ok", "green"})
_INTRO: Final = frozenset(
    {
        "results", "result", "verification", "verified", "verify", "tests", "testing", "test", "checks", "check",
        "checked", "validation", "validated", "done", "summary", "ran", "run", "and", "all", "pass", "passed", "the",
        "i", "what", "commands", "status",
    }
)  # fmt: skip
_MARKS: Final = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+")
_SPAN: Final = re.compile(r"(`+)([^`]+)\1")
_EXIT: Final = re.compile(r"\bexit(?:s|ed)?(?: with)?(?: (?:code|status))?[ :=]*(-?\d{1,3})\b", re.IGNORECASE)
_BEFORE: Final = re.compile(r"(?:(?:and|prints|printed|reports|reported|gives|gave|says|shows|now|with) )+")
_FENCE: Final = re.compile(r"\s*(?:(`{3,})(?=[^`]*$)|(~{3,}))(.*)")


@dataclass(frozen=True, slots=True)
class Statement:
    """A line of a last message that says of one command that it succeeded, with totals where it has them."""

    command: str
    totals: Totals = field(default_factory=dict)


def said_in(text: str) -> list[Statement]:
    """Return each line of a last message that is nothing but a statement of a command's success.

    Such a line names one command between backticks, with totals, an exit of 0 or a word for passing, and a few words
    between them. It is passed over in a quotation or a block, and where what leads up to it (a heading, a line that
    ends in a colon) says anything but that these are results: it could be somebody else's report, a plan, or what was
    before.
    """
    found: list[Statement] = []
    begun = len(lines_of(text[:-MAX_TEXT])) - 1  # a block may begin before what is read
    fence = ""
    leads, ended = True, False
    for number, line in enumerate(lines_of(text)):
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1] or mark[2]
            continue
        if fence:
            # Only a bare one of the same kind, no shorter, ends a block: what is quoted may hold blocks of its own.
            if mark and (mark[1] or mark[2]).startswith(fence) and not mark[3].strip():
                fence = ""
            continue
        if number < begun:
            continue
        if not line.strip():
            leads = leads or ended
            continue
        claim = _claim(line)
        if claim is not None:
            if leads:
                found.append(claim)
        elif not _MARKS.match(line):
            leads = set(re.findall(r"\w+", line.lower())) <= _INTRO
            # A finished sentence and an empty line lead to nothing; anything else may.
            ended = line.rstrip().endswith(".") and not line.lstrip().startswith(("#", ">"))
    return found


def _claim(line: str) -> Statement | None:
    if len(line) > MAX_LINE or "?" in line or line.lstrip().startswith((">", "|", "#")):
        return None
    spans = _SPAN.findall(line)
    if len(spans) != 1:
        return None
    command = spans[0][1].strip()
    bare = re.sub(r"[*_✅✓✔→—–]", " ", _SPAN.sub(" ", _MARKS.sub("", line)))
    exits = _EXIT.findall(bare)
    rest = _EXIT.sub(" ", bare)
    passing = not _PASSING.isdisjoint(re.findall(r"\w+", rest.lower()))
    pieces = [piece for piece in re.split(r"[,;:()]| - |\bexit\b", rest) if piece.strip(" .-=>")]
    told: dict[str, int] = {}
    for piece in pieces:
        words = piece.strip(" .-=>")
        totals = read_line(_BEFORE.sub("", words))
        if totals is not None and not told.keys() & totals.keys():
            told |= totals
        elif not set(re.findall(r"\w+", _TIME.sub(" ", words).lower())) <= _GLUE:
            return None
    if any(int(number) for number in exits) or not (told or exits or passing):
        return None
    if told:
        better = told.get("passed", 0) > 0 and not told.get("failed") and not told.get("errors")
        if not better or told.get("total", told["passed"]) != told["passed"]:
            return None
    return Statement(command, told)


def rows(lines: Iterable[str]) -> tuple[str, ...]:
    """Return the lines that may be totals, cut to what one can be."""
    return tuple(line[: MAX_LINE + 1] for line in lines if may_tell(line))
