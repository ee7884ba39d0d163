"""Two contract records side by side: what differs, and which of it asks less. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from troth.core.words import command_line
from troth.observer.protected import Entry, entries_of

What = Literal["protect", "command", "mutants", "task", "id"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference. ``less`` says that the second contract asks less by it: something is protected no more, …"""

    what: What
    name: str
    told: str
    less: bool = False

    def as_json(self) -> dict[str, Any]:
        """Return the difference as one JSON object."""
        return {"what": self.what, "name": self.name, "told": self.told, "less": self.less}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Difference]:
    """Return what differs between two parsed contract records (done records §4.1), in the order of their members."""
    return [
        *_member("id", before, after, "contract_id"),
        *_member("task", before, after, "task"),
        *_entries(before, after),
        *_commands(before, after),
        *_adequacy(before, after),
    ]


def _member(what: What, before: Mapping[str, Any], after: Mapping[str, Any], name: str) -> Iterator[Difference]:
    if before.get(name) != after.get(name):
        yield Difference(what, name, f"{before.get(name)!r} became {after.get(name)!r}")


def _entries(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    one = {entry.path: entry for entry in entries_of(before)}
    other = {entry.path: entry for entry in entries_of(after)}
    for path in [*one, *(path for path in other if path not in one)]:
        if path not in other:
            # A folder above it may protect it still, unless it leaves the name out.
            covering = next((entry.path for entry in other.values() if entry.protects(path)), None)
            if covering is None:
                yield Difference("protect", path, "is protected no more", less=True)
            else:
                yield Difference("protect", path, f"is protected by {covering!r} now")
        elif path not in one:
            yield Difference("protect", path, f"is protected now, {_state(other[path])}")
        else:
            yield from _entry(one[path], other[path])


def _state(entry: Entry) -> str:
    return "as absent" if entry.seals_absence else f"as a {entry.kind}"


def _entry(one: Entry, other: Entry) -> Iterator[Difference]:
    dropped, added = set(one.exclude) - set(other.exclude), set(other.exclude) - set(one.exclude)
    if added:
        names = ", ".join(sorted(added))
        yield Difference("protect", one.path, f"leaves out {names} now", less=True)
    if dropped:
        yield Difference("protect", one.path, f"no longer leaves out {', '.join(sorted(dropped))}")
    if (one.kind, one.seals_absence) != (other.kind, other.seals_absence):
        yield Difference("protect", one.path, f"was sealed {_state(one)} and is {_state(other)}")
    elif one.sha256 != other.sha256 and one.exclude == other.exclude:
        yield Difference("protect", one.path, "is sealed with other content")


def _commands(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    one = {item["id"]: item["argv"] for item in before["acceptance"]}
    other = {item["id"]: item["argv"] for item in after["acceptance"]}
    for name in [*one, *(name for name in other if name not in one)]:
        if name not in other:
            yield Difference("command", name, f"has to pass no more: {command_line(one[name])}", less=True)
        elif name not in one:
            yield Difference("command", name, f"has to pass now: {command_line(other[name])}")
        elif one[name] != other[name]:
            yield Difference("command", name, f"{command_line(one[name])} became {command_line(other[name])}")


def _adequacy(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Difference]:
    one, other = before["adequacy"], after["adequacy"]
    if one != other:
        was, now = (f"{item['killed']} of {item['mutants']}" for item in (one, other))
        # By cross-multiplication: no mutants at all is the least there can be.
        less = other["killed"] * max(one["mutants"], 1) < one["killed"] * max(other["mutants"], 1)
        yield Difference("mutants", "killed", f"{was} became {now}", less=less)
    elif before.get("mutant_set_sha256") != after.get("mutant_set_sha256"):
        yield Difference("mutants", "made", "are others")
