"""From what was said to the claims record: each run is matched to the observed program that it names, or left as said.

The receipt's check compares words exactly (done records §7.3), and the same run has many spellings: ``cd x && pytest``,
``pytest -q | tail``, ``python -m pytest``, a wrapper, a path. The match is made here, once, by rules that each have a
name, and what was matched to what and why is kept beside the record. A rule only ever leads to a program that the
observer saw start; where there is none, the claim stays as said, and the check contradicts it.

A record of a tool call says what happened at its time. Where the observer bears that out and the agent went on to edit,
it is no word on what the agent left, unless it was a check that passed and that was not made again: that one is held to
the end of the run. Statements are always held as they were made.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

from troth.core.canonical import string_size
from troth.observer.checkers import check_kind
from troth.observer.runners import unwrapped
from troth.observer.shelltext import Named, Read, Shells, evaluated, literal, read_text
from troth.observer.shellwords import fit
from troth.observer.transcripts.common import Said
from troth.receipts.checks import judge_claims

Record = Mapping[str, Any]

RULES: Final[Mapping[str, str]] = {
    "exact": "a program was started with these very words",
    "expanded": "a program was started with words that the expansions in these can become",
    "path": "the program was started by its path",
    "module": "python -m NAME and the program NAME are one",
    "python": "the same module, under another name of the interpreter",
    "wrapped": "the program was started without the wrapper that was named",
    "shell": "a shell was started with this very text",
    "one_of": "one of the programs that the text may start was started",
}
"""The name of each rule of matching, and what it says."""

LEFT_OUT: Final[Mapping[str, str]] = {
    "not_started": "the call itself reports that the program could not be started",
    "builtin": "the text starts no program, so that there is none to observe",
    "of_its_time": "it ran as it was said, and the agent went on to edit",
    "superseded": "a later claim has the same words",
    "beyond": "beyond what a record can hold",
}
"""Why something that was said stands in no record."""

MAX_SPELLINGS: Final = 1_000
"""Distinct argument vectors of one program that a rule looks through."""

MAX_LOOKS: Final = 500_000
"""Vectors that the rules look at for one record; beyond that only exact words and the texts of shells are matched."""

MAX_READ: Final = 4 << 20
"""Characters of shell text that are read for one record; what is beyond is matched as a whole."""

MAX_RECORD_BYTES: Final = 8 << 20
"""Bytes of words that the record takes; what is beyond them is told."""

MAX_SHOWN: Final = 2_000
"""Characters of a word that the report shows."""

_KILLED: Final = frozenset({124, 130, 137, 143})
"""Exits with which tools and `timeout` end what takes too long: of the programs inside they say nothing."""

_NOT_STARTED: Final = frozenset({126, 127})

_PYTHON: Final = re.compile(r"python(\d+(\.\d+)*)?\Z")
_BIN: Final = frozenset({"bin", "sbin", ".bin", "shims", "Scripts"})


def _shown(text: str) -> str:
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


@dataclass(frozen=True, slots=True)
class Matched:
    """One program that was said to have run, and what became of it.

    Attributes:
        source: which transcript, from 0.
        said: what was said, whole.
        claimed: the program's words as they were said.
        argv: the words that the record has.
        exit: the exit that is claimed of it; None when the said exit tells nothing of it.
        rule: a name of `RULES`; None where nothing observed fits, and it stays as said.
        event: the id of an observed start that bears it out, with the claimed exit where one has it.
        left_out: a name of `LEFT_OUT` when it stands in no record.
        claim: its id in the record.
    """

    source: int
    said: Said
    claimed: str
    argv: tuple[str, ...]
    exit: int | None
    rule: str | None
    event: str | None = None
    left_out: str | None = None
    claim: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return what the report holds of it."""
        said: dict[str, Any] = {}
        if self.said.text is not None:
            said["text"] = _shown(self.said.text)
        else:
            said["argv"] = [_shown(word) for word in (self.said.argv or ())[:MAX_SHOWN]]
        if self.said.exit is not None:
            said["exit"] = self.said.exit
        value: dict[str, Any] = {
            "source": self.source,
            "line": self.said.line,
            "kind": "call" if self.said.call else "statement",
            "said": said,
            "claimed": _shown(self.claimed),
            "argv": [_shown(word) for word in self.argv[:MAX_SHOWN]],
            "matched_by": self.rule,
            "because": RULES[self.rule] if self.rule else "nothing that was observed fits it; it stays as said",
        }
        if self.exit is not None:
            value["exit"] = self.exit
        for name in ("event", "claim"):
            if getattr(self, name) is not None:
                value[name] = getattr(self, name)
        if self.said.by:
            value["by"] = self.said.by
        if self.left_out is not None:
            value["left_out"] = self.left_out
            value["because"] = LEFT_OUT[self.left_out]
        return value


@dataclass(slots=True)
class Seen:
    """The programs that an observation saw start, by their words, by their names, and shells by their text."""

    events: Sequence[Record]
    by_argv: dict[tuple[str, ...], list[Record]] = field(default_factory=dict)
    by_name: dict[str, dict[tuple[str, ...], None]] = field(default_factory=dict)
    by_text: dict[str, list[tuple[str, ...]]] = field(default_factory=dict)
    looks: int = MAX_LOOKS

    @classmethod
    def of(cls, events: Iterable[Record]) -> Seen:
        """Return the index of an observation's events."""
        seen = cls(list(events))
        room = MAX_READ
        for event in seen.events:
            if event["type"] != "exec":
                continue
            argv = tuple(event["argv"])
            known = seen.by_argv.setdefault(argv, [])
            known.append(event)
            if len(known) > 1:
                continue
            for name in _names(argv):
                seen.by_name.setdefault(name, {})[argv] = None
            text = Shells.text_of(argv)
            if text is not None:
                room -= len(text)
                for each in {text.strip(), *(inner.strip() for inner in (evaluated(text) if room >= 0 else ()))}:
                    seen.by_text.setdefault(each, []).append(argv)
        return seen

    def spelled(self, name: str) -> list[tuple[str, ...]]:
        """Return the distinct vectors of a program or module of that name, latest first."""
        found = list(islice(reversed(self.by_name.get(name, {})), min(MAX_SPELLINGS, max(self.looks, 0))))
        self.looks -= len(found)
        return found


def _base(program: str) -> str:
    return program.rsplit("/", 1)[-1]


def _module(argv: Sequence[str]) -> tuple[str, tuple[str, ...]] | None:
    """Return (module, arguments) of ``python -m MODULE …`` without options of the interpreter's own."""
    if len(argv) > 2 and _PYTHON.match(_base(argv[0])) and argv[1] == "-m":
        return argv[2], tuple(argv[3:])
    return None


def _names(argv: tuple[str, ...]) -> set[str]:
    module = _module(argv)
    return {_base(argv[0])} | ({module[0]} if module else set())


def same_exit(said: int, seen: int | None) -> bool:
    """Tell whether a shell that says one exit saw the other: a program ended by signal N is 128 + N to it."""
    return seen is not None and (said == seen or (said > 128 and seen == 128 - said))


def _fitting(named: Named, seen: Seen) -> tuple[str, list[tuple[str, ...]]] | None:
    """Return the first rule that leads to observed vectors, and those vectors."""
    own = named.argv
    if own is not None:
        if own in seen.by_argv:
            return "exact", [own]
    elif named.program:
        found = [argv for argv in seen.spelled(named.program) if fit(named.words, argv)]
        if found:
            return "expanded", found
    if not named.program:
        return None
    for rule, fits in (("path", _by_path), ("module", _by_module), ("python", _by_python)):
        found = fits(named, seen)
        if found:
            return rule, found
    if own is not None:
        inner, _ = unwrapped(own)
        if inner and tuple(inner) != own:
            behind = _fitting(literal(inner, named.exit), seen)
            if behind is not None:
                return "wrapped", behind[1]
    return None


def every_fitting(named: Named, seen: Seen) -> list[tuple[str, ...]]:
    """Return every observed vector that any rule leads to, each once."""
    found = [named.argv] if named.argv is not None and named.argv in seen.by_argv else []
    if named.program:
        found += [argv for argv in seen.spelled(named.program) if fit(named.words, argv)]
        for fits in (_by_path, _by_module, _by_python):
            found += fits(named, seen)
        inner = unwrapped(named.argv)[0] if named.argv is not None else []
        if inner and tuple(inner) != named.argv:
            found += every_fitting(literal(inner, named.exit), seen)
    return list(dict.fromkeys(found))


def _by_path(named: Named, seen: Seen) -> list[tuple[str, ...]]:
    said = named.words[0].text or ""
    found = []
    for argv in seen.spelled(named.program):
        if "/" in said:
            there = argv[0].endswith("/" + said.removeprefix("./"))
        else:
            there = argv[0].count("/") > 0 and argv[0].split("/")[-2] in _BIN
        if there and fit(named.words[1:], argv[1:]):
            found.append(argv)
    return found


def _by_module(named: Named, seen: Seen) -> list[tuple[str, ...]]:
    """Find NAME for ``python -m NAME``, and the other way round."""
    literals = [word.text for word in named.words[:3]]
    if len(literals) == 3 and literals[1] == "-m" and literals[2] and _PYTHON.match(named.program):
        rest = named.words[3:]
        found = [argv for argv in seen.spelled(literals[2]) if _base(argv[0]) == literals[2] and fit(rest, argv[1:])]
        return [argv for argv in found if argv[0] == literals[2] or _in_bin(argv[0])]
    if "/" in (named.words[0].text or ""):
        return []
    found = []
    for argv in seen.spelled(named.program):
        module = _module(argv)
        if module is not None and module[0] == named.program and fit(named.words[1:], module[1]):
            found.append(argv)
    return found


def _in_bin(program: str) -> bool:
    return program.count("/") > 0 and program.split("/")[-2] in _BIN


def _by_python(named: Named, seen: Seen) -> list[tuple[str, ...]]:
    """Find the same module run by an interpreter of another name (``python`` and ``python3``)."""
    literals = [word.text for word in named.words[:3]]
    if len(literals) < 3 or literals[1] != "-m" or not literals[2] or not _PYTHON.match(named.program):
        return []
    found = []
    for argv in seen.spelled(literals[2]):
        module = _module(argv)
        if module is not None and module[0] == literals[2] and fit(named.words[3:], module[1]):
            found.append(argv)
    return found


def _by_text(text: str, seen: Seen) -> list[tuple[str, ...]]:
    return seen.by_text.get(text.strip(), [])


def _best(spellings: Sequence[tuple[str, ...]], code: int | None, seen: Seen) -> tuple[tuple[str, ...], Record]:
    """Return the start that bears a claim out best: with its exit, then the latest."""
    runs = [(argv, event) for argv in spellings for event in seen.by_argv[argv]]

    def worth(run: tuple[tuple[str, ...], Record]) -> tuple[bool, int]:
        return code is None or same_exit(code, run[1].get("exit")), run[1]["step"]

    return max(runs, key=worth)


class _Matching:
    """One pass over everything that was said."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen
        self.left = MAX_READ
        self.texts: dict[tuple[str, int | None], Read] = {}

    def read(self, text: str, code: int | None) -> Read:
        """Read a text once, as long as there is room."""
        known = self.texts.get((text, code))
        if known is None:
            self.left -= len(text)
            known = read_text(text, code) if self.left >= 0 else Read((), understood=False)
            self.texts[text, code] = known
        return known

    def found(self, source: int, said: Said, named: Named, rule: str, spellings: Sequence[tuple[str, ...]]) -> Matched:
        argv, event = _best(spellings, named.exit, self.seen)
        code = named.exit
        if code is not None and same_exit(code, event.get("exit")):
            code = event["exit"]
        return Matched(source, said, named.raw, argv, code, rule, str(event["id"]))

    def of(self, source: int, said: Said) -> list[Matched]:
        """Match one run that was said."""
        text = said.text
        if said.argv is not None:
            named = literal(said.argv, said.exit)
            fitting = _fitting(named, self.seen)
            if fitting is not None:
                return [self.found(source, said, named, *fitting)]
            text = Shells.text_of(said.argv)
            if text is None:
                return [self.unmatched(source, said, named)]
        assert text is not None
        return self.of_text(source, said, text)

    def of_text(self, source: int, said: Said, text: str) -> list[Matched]:
        inside = said.exit if said.exit not in _KILLED else None
        read = self.read(text, inside)
        whole = Named(literal(said.argv or ("bash", "-c", text), said.exit).words, True, said.exit, text)
        shells = _by_text(text, self.seen)
        if read.understood and not read.runs:
            return [Matched(source, said, text, whole.argv or (), None, None, left_out="builtin")]
        certain = [run for run in read.runs if run.certain] if read.understood else []
        results: list[Matched] = []
        open_runs: list[Named] = []
        for run in certain:
            fitting = _fitting(run, self.seen)
            if fitting is not None:
                results.append(self.found(source, said, run, *fitting))
            else:
                open_runs.append(run)
        # A function or an alias stands for a program; a check must itself have been seen.
        strict = [run for run in open_runs if run.argv is not None and check_kind(run.argv) is not None]
        results += [self.unmatched(source, said, run) for run in strict]
        if (len(open_runs) > len(strict) or not certain) and shells:
            results.append(self.found(source, said, whole, "shell", shells))
        elif not certain:
            results.append(self.one_of(source, said, whole, read.runs))
        else:
            results += [self.unmatched(source, said, run) for run in open_runs if run not in strict]
        return results

    def one_of(self, source: int, said: Said, whole: Named, runs: Sequence[Named]) -> Matched:
        for run in runs:
            fitting = _fitting(run, self.seen)
            if fitting is not None:
                return self.found(source, said, replace(run, exit=None), "one_of", fitting[1])
        return self.unmatched(source, said, whole)

    def unmatched(self, source: int, said: Said, named: Named) -> Matched:
        left_out = "not_started" if said.exit in _NOT_STARTED else None
        argv = named.argv or tuple(word.text if word.text is not None else named.raw for word in named.words)
        return Matched(source, said, named.raw, argv, named.exit, None, left_out=left_out)


def match(sources: Sequence[Sequence[Said]], events: Iterable[Record], cut: Collection[int] = ()) -> list[Matched]:
    """Match everything that was said with what was observed, in the order in which it was said.

    Args:
        sources: what each transcript says, in order.
        events: those of an observation record (done records §4.3).
        cut: the numbers of transcripts of which only a beginning was read. What may have been said again behind it is
            held to the end of the run by nobody.

    Returns:
        one entry for each program named, with the ids of the claims record where it stands there.
    """
    seen = Seen.of(events)
    matching = _Matching(seen)
    order = [(number, said) for number, found in enumerate(sources) for said in found]
    if all(said.time for _, said in order):
        order.sort(key=lambda item: item[1].time)
    matches = [result for number, said in order for result in matching.of(number, said)]
    return _numbered(_within(_held(matches, seen, cut)))


def _held(matches: list[Matched], seen: Seen, cut: Collection[int]) -> list[Matched]:
    """Leave out the calls that ran as they were said and are no word on what the agent left."""
    open_to = [entry for entry in matches if entry.left_out is None]
    claims = [_entry(str(number), entry) for number, entry in enumerate(open_to)]
    outcomes = {id(entry): judged.outcome for entry, judged in zip(
        open_to, judge_claims({"claims": claims}, {"events": seen.events}), strict=True)}  # fmt: skip
    inside = _checks_inside(matches, seen)
    kinds: set[str] = set()
    held: list[Matched] = []
    for entry in reversed(matches):
        kind = check_kind(entry.argv) or inside.get(id(entry))
        outcome = outcomes.get(id(entry))
        past = outcome in ("stale", "mismatch", "unseen") and _borne_out(entry, seen)
        if past and (entry.said.call or entry.source in cut):
            passed = entry.said.exit in (0, None)
            if kind is None or not passed or kind in kinds or entry.source in cut:
                entry = replace(entry, left_out="of_its_time")  # noqa: PLW2901 - the entry, left out
        if kind is not None and entry.left_out in (None, "of_its_time"):
            kinds.add(kind)
        held.append(entry)
    return held[::-1]


def _checks_inside(matches: Sequence[Matched], seen: Seen) -> dict[int, str]:
    """Return, by the identity of an entry, the kind of check that its process tree holds: scripts that run checks.

    Only calls that name one program are looked into, so that the tree is that program's.
    """
    programs = Counter(id(entry.said) for entry in matches)
    alone: dict[str, list[int]] = {}
    for entry in matches:
        if entry.event is not None and programs[id(entry.said)] == 1:
            alone.setdefault(entry.event, []).append(id(entry))
    found: dict[int, str] = {}
    later: dict[str, str] = {}
    for event in reversed(seen.events):
        if event["type"] == "exec":
            root = event.get("origin", event["id"])
            if root in later:
                found.update(dict.fromkeys(alone.get(event["id"], ()), later[root]))
            kind = check_kind(event["argv"])
            if kind is not None:
                later[root] = kind
    return found


def _within(matches: list[Matched]) -> list[Matched]:
    """Leave out what no record has room for."""
    room = MAX_RECORD_BYTES
    kept = []
    for entry in matches:
        if entry.left_out is None:
            room -= sum(string_size(word) + 1 for word in entry.argv) + 60
        kept.append(replace(entry, left_out="beyond") if entry.left_out is None and room < 0 else entry)
    return kept


def _borne_out(entry: Matched, seen: Seen) -> bool:
    exits = [event.get("exit") for event in seen.by_argv.get(entry.argv, ())]
    return bool(exits) and (entry.exit is None or entry.exit in exits)


def _entry(number: str, entry: Matched) -> dict[str, Any]:
    value: dict[str, Any] = {"id": number, "argv": list(entry.argv)}
    if entry.exit is not None:
        value["exit"] = entry.exit
    return value


def _numbered(matches: list[Matched]) -> list[Matched]:
    """Give the last claim of each vector its id; the earlier ones are superseded (done records §13.12)."""
    last = {entry.argv: number for number, entry in enumerate(matches) if entry.left_out is None}
    ids = {number: f"c{count}" for count, number in enumerate(sorted(last.values()), 1)}
    return [
        replace(entry, claim=ids[last[entry.argv]], left_out=None if number in ids else "superseded")
        if entry.left_out is None
        else entry
        for number, entry in enumerate(matches)
    ]


def entries_of(matches: Iterable[Matched]) -> tuple[dict[str, Any], ...]:
    """Return the entries of the claims record (done records §4.6)."""
    return tuple(_entry(entry.claim, entry) for entry in matches if entry.left_out is None and entry.claim is not None)
