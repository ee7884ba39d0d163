"""A proposed contract as the TOML file that a person reads, changes and seals."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from troth.core.words import printable
from troth.observer.autoload import environments
from troth.observer.commands import Bench, CommandRun, run_command
from troth.observer.contract_source import ContractSource, folder_name, parse_source
from troth.observer.copies import WorkCopy, copy_workspace
from troth.observer.detecting import Detected, Proposed
from troth.observer.entries import named_entries
from troth.observer.learning import files_and_links, learn_excludes, watched
from troth.observer.mutants import Progress
from troth.observer.toolchains import fetched
from troth.observer.tools import elsewhere, named_folders, prefix_of, with_bases
from troth.observer.tree import snapshot

_WHY: Final = 160
"""Characters of a reason that stand in a comment."""


def toml_string(text: str) -> str:
    """Return a text as a TOML basic string on one line, whatever it holds; halves of pairs become U+FFFD."""
    clean = "".join(map(_whole, text))
    # TOML's escapes are a superset of JSON's; DEL and the C1 controls are ours to hide.
    return "".join(char if char.isprintable() else _escaped(char) for char in json.dumps(clean, ensure_ascii=False))


def _whole(char: str) -> str:
    return "\ufffd" if "\ud800" <= char <= "\udfff" else char


def _escaped(char: str) -> str:
    return f"\\u{ord(char):04x}" if ord(char) < 1 << 16 else f"\\U{ord(char):08x}"


def _array(texts: Iterable[str]) -> str:
    return "[" + ", ".join(map(toml_string, texts)) + "]"


def _comment(text: str) -> str:
    return "# " + printable(text, _WHY)


@dataclass(frozen=True, slots=True)
class Learnt:
    """What one run of the commands on a copy showed.

    ``excludes`` maps protected folders to names that the run itself wrote below them; ``left`` are names it wrote that
    no exclude can free, ``touched`` protected files that it changed.
    """

    runs: tuple[CommandRun, ...]
    excludes: Mapping[str, tuple[str, ...]]
    left: tuple[str, ...]
    touched: tuple[str, ...]

    def told(self, source: ContractSource, workspace: Path) -> list[str]:
        """Return what a person should know, a line for each command first."""
        lines = [
            f"{command.id}: {how_it_ended(run)}{'' if run.started else elsewhere(command.argv[0], workspace)}"
            for command, run in zip(source.acceptance, self.runs, strict=True)
        ]
        lines += [f"the run itself writes {', '.join(names)} below {path}" for path, names in self.excludes.items()]
        lines += [f"the run itself changes {name!r}, which would be protected" for name in self.touched]
        lines += [f"the run itself creates {name!r}, and no exclude can free it" for name in self.left]
        return lines


def how_it_ended(run: CommandRun) -> str:
    """Return how a run ended, in words."""
    if not run.started:
        return "could not be started in the sandbox"
    if run.ended is not None:
        return f"was ended: {run.ended.replace('_', ' ')}"
    if run.nothing_executed:
        return "executes no test"
    if run.belies_exit:
        return "exits with 0 although tests fail"
    count = run.tests.executed
    counted = "" if count is None else f", {count} test{'' if count == 1 else 's'}"
    return f"passes{counted}" if run.passed else f"fails with {run.exit}{counted}"


def learn(source: ContractSource, workspace: Path, *, progress: Progress = lambda *_: None) -> Learnt:
    """Run each command once on a copy of the workspace and see what it writes there; the workspace is not changed.

    Raises:
        Refused: ``E_CONTRACT_SOURCE`` for a path that does not fit the tree; a code of the sandbox or the tree.
    """
    workspace = workspace.resolve()
    tree = snapshot(workspace)
    entries = named_entries(source, workspace, tree)
    tools = with_bases(named_folders(source.tools, workspace, source.file), environments(tree.files), workspace)
    bench = Bench(inside=str(workspace), limits=source.limits, tools=tuple(tools))
    runs: list[CommandRun] = []
    with bench.folder() as place:
        copy_workspace(workspace, tree, place / "base")
        copy = WorkCopy.of(place / "base", place / "work")
        before = files_and_links(copy.place)
        with watched(copy.place, before) as told:
            for index, command in enumerate(source.acceptance):
                progress("running the acceptance commands", index, len(source.acceptance))
                # Without the variables that keep caches away: what a plain run writes is what has to be learnt.
                runs.append(run_command(bench, copy.place, command.argv, caches=False))
    progress("running the acceptance commands", len(source.acceptance), len(source.acceptance))
    learnt, left, touched = learn_excludes(entries, before, told.written)
    excludes = {
        new.path: tuple(name for name in new.exclude if name not in old.exclude)
        for new, old in zip(learnt, entries, strict=True)
        if new.exclude != old.exclude
    }
    return Learnt(tuple(runs), excludes, tuple(left), tuple(touched))


def with_tools(detected: Detected, workspace: Path) -> Detected:
    """Return the proposals and where this machine has the commands' programs and what was fetched for them."""
    found: dict[str, Proposed] = {}
    for item in detected.of("command"):
        prefix = prefix_of(item.argv[0], workspace)
        if prefix is not None:
            why = f"{item.argv[0]!r} is found there, where no sandbox looks by itself"
            found.setdefault(str(prefix), Proposed("tools", str(prefix), why))
    for program, why in detected.fetches.items():
        for store in fetched(program, home=Path.home()):
            found.setdefault(str(store), Proposed("tools", str(store), why))
    return replace(detected, proposed=(*detected.proposed, *found.values()))


def render(detected: Detected, *, contract_id: str, task: str | None = None, learnt: Learnt | None = None) -> bytes:
    """Return the contract file for what was detected, every line with its reason.

    Args:
        detected: what to propose.
        contract_id: the contract's name.
        task: what is to be done, for people.
        learnt: what a run on a copy showed, when there was one.
    """
    ran = "its commands were run once, on a copy" if learnt is not None else "nothing of it was run"
    lines = [
        f"# Proposed from the project's files; {ran}. Read it, change it, then: troth contract seal FILE",
        "",
        f"contract_id = {toml_string(contract_id)}",
        f"task = {toml_string(task)}" if task else '# task = "What is to be done, for people."',
        "",
        "# Names that a runner or the interpreter would load by itself (conftest.py, sitecustomize.py, ...) are sealed",
        "# as absent too. What the task has to touch of those: leave_open = [...]",
        "seal_names = true",
        *_listed("must_not_appear", "# Must not appear.", detected.of("absent")),
        *_listed("tools", "# Shown read-only, and held to what they are now.", detected.of("tools")),
        *(line for text in detected.told for line in ("", _comment(text))),
    ]
    excludes = learnt.excludes if learnt is not None else {}
    lines += [
        "",
        "# Stays as it is; a new file below a folder counts as a change. Take out what the task has to change.",
    ]
    for item in detected.of("protect"):
        lines += ["", "[[protect]]", _comment(item.why), f"path = {toml_string(item.what)}"]
        if item.what in excludes:
            lines += [
                "# what the acceptance commands themselves write there",
                f"exclude = {_array(excludes[item.what])}",
            ]
    lines += ["", "# Done means that each of these passes, run apart from the agent."]
    for item in detected.of("command"):
        lines += [
            "", "[[acceptance]]", _comment(item.why),
            f"id = {toml_string(item.what)}", f"argv = {_array(item.argv)}",
        ]  # fmt: skip
    if not detected.of("command"):
        lines += ["", "# [[acceptance]]", '# id = "suite"', '# argv = ["program", "argument"]']
    lines += [
        "", "[adequacy]",
        "# Small faults are put into the unprotected source to see whether the commands notice.",
        '# mutants_in = ["src"]',
        "max = 40",
        "", "[limits]", "# of one command, in seconds", "seconds = 600", "",
    ]  # fmt: skip
    return "\n".join(lines).encode()


def _listed(key: str, heading: str, items: Sequence[Proposed]) -> list[str]:
    if not items:
        return []
    listed = [f"    {toml_string(item.what)},  {_comment(item.why)}" for item in items]
    return [heading, f"{key} = [", *listed, "]"]


def parsed(data: bytes, file: str) -> ContractSource:
    """Parse a rendered contract as its reader would; ``file`` names it in a refusal.

    Raises:
        Refused: ``E_CONTRACT_SOURCE``, as for any contract file: a proposal without a command is none yet.
    """
    return parse_source(data, file)


def proposed_id(workspace: Path) -> str:
    """Return a contract id for a workspace: its folder's name, made harmless."""
    return folder_name(printable(workspace.name.encode("utf-8", "replace").decode() or "contract", 60))
