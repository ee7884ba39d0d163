"""What the acceptance commands themselves write, learnt by watching them at work on a copy (done records §13.4).

What a run leaves is seen in the tree. What it makes and takes away again, or writes and puts back, is seen only while
it is at work, and stands in the record of every honest run all the same: so the copy is watched as a workspace is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from troth.observer.protected import Entry
from troth.observer.tree import snapshot
from troth.observer.watching import watching


@dataclass(frozen=True, slots=True)
class Written:
    """What runs on a copy wrote, by name.

    Attributes:
        made: files, links and folders that were not there before, those that are gone again too.
        changed: files and links that were there and were written, moved or removed, those put back too.
        missed: the watch may have missed something.
    """

    made: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()
    missed: bool = False

    def __or__(self, other: Written) -> Written:
        return Written(self.made | other.made, self.changed | other.changed, self.missed or other.missed)


def written_between(before: Mapping[str, str], after: Mapping[str, str], seen: Collection[str] = ()) -> Written:
    """Return what was written between two looks at a tree, given the names of which a change was seen meanwhile."""
    names = {name for name in seen if _utf8(name)}
    return Written(
        made=frozenset((after.keys() | names) - before.keys()),
        changed=frozenset(name for name in before if before[name] != after.get(name) or name in names),
    )


def _utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False  # no contract can hold it; a run that writes it is told of by its own record
    return True


def files_and_links(copy: Path) -> dict[str, str]:
    """Return the files of a copy by their digests, and the links by their text."""
    tree = snapshot(copy)
    return {**tree.files, **{name: f"-> {text}" for name, text in tree.symlinks.items()}}


class Watched:
    """A copy that is being watched; ``written`` says what was written once the watching has ended."""

    written = Written()


@contextmanager
def watched(copy: Path, before: Mapping[str, str], *, look: bool = True) -> Iterator[Watched]:
    """Watch a copy while commands run on it.

    Args:
        copy: the folder.
        before: its files and links as they are now (:func:`files_and_links`).
        look: read the copy afterwards as well.
    """
    told = Watched()
    with watching(copy) as watch:
        watch.follow()
        yield told
        seen = watch.finish()
    found = written_between(before, files_and_links(copy) if look else before, seen.changed)
    told.written = replace(found, missed=seen.overflow or bool(seen.failures))


def _segments(entry: Entry, before: Collection[str], made: Collection[str]) -> tuple[list[str], list[str]]:
    """Return segments to exclude so that what a run made is unprotected, and made names no segment can free.

    A segment that a name there has already is never taken: it would unprotect that one too, or, beneath an exclude of
    the author's, have a grade begin without it.
    """

    def below(name: str) -> list[str]:
        return name[len(entry.path) + 1 :].split("/")

    held = {segment for name in before if name != entry.path and entry.covers(name) for segment in below(name)}
    taken: list[str] = []
    left: list[str] = []
    for name in sorted(made):
        if name == entry.path or not entry.protects(name) or not set(taken).isdisjoint(below(name)):
            continue
        free = [segment for segment in below(name) if segment not in held]
        if free:
            taken.append(free[0])
        else:
            left.append(name)
    return taken, left


def learn_excludes(
    entries: Sequence[Entry], before: Collection[str], written: Written
) -> tuple[list[Entry], list[str], list[str]]:
    """Add to each folder entry what the commands' own run wrote beneath it (done records §13.4).

    Args:
        entries: the contract's entries.
        before: the names of files and links that stood there.
        written: what the run wrote.

    Returns:
        The entries; the names it could not free; the protected names that the run changed or removed.
    """
    result: list[Entry] = []
    left: list[str] = []
    for entry in entries:
        if entry.kind == "file":
            result.append(entry)
            continue
        taken, beyond = _segments(entry, before, written.made)
        result.append(replace(entry, exclude=(*entry.exclude, *sorted(set(taken) - set(entry.exclude)))))
        left += beyond
    touched = [name for name in sorted(written.changed) if any(entry.protects(name) for entry in entries)]
    return result, sorted(set(left)), touched


def empty_excludes(entry: Entry, names: Collection[str]) -> set[str]:
    """Return the segments an entry excludes beneath which none of the names stands: there, only output comes to be."""
    held = {part for name in names if entry.covers(name) for part in name[len(entry.path) + 1 :].split("/")}
    return set(entry.exclude) - held


def not_freed(entries: Sequence[Entry], made: Collection[str]) -> list[str]:
    """Return the names made by a further run that are protected although excludes were learnt.

    Such a name is another one each time, so no exclude can hold it.
    """
    return sorted(name for name in made if any(entry.kind == "directory" and entry.protects(name) for entry in entries))
