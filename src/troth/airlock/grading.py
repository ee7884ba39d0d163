"""Grading a tree without a run: the acceptance commands on a copy, judged by the very check a receipt is judged by."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from troth.airlock.sealed import read_contract, read_seal
from troth.airlock.telling import ends_of_output, tell_grade, whole_output
from troth.core.errors import Place, Refused
from troth.core.instants import Clock, system_clock
from troth.observer import records as rec
from troth.observer.grade import grade
from troth.observer.tree import snapshot
from troth.receipts.member import CORE_RECORDS, FILES, MappingMember
from troth.receipts.pinning import Pins, write_pins
from troth.receipts.policy import ACCEPTANCE_OBSERVED, CHECKS, PINNED
from troth.receipts.verify import examine

EXITS: Final = {"supported": 0, "contradicted": 1, "not_established": 3}

_CLAIM: Final = "grade"
"""Claim and run that the passing records name: no commitment is graded here."""


@dataclass(frozen=True, slots=True)
class Graded:
    """What the acceptance commands establish about a tree.

    ``decision`` and ``reason`` are those of ``acceptance_observed/v1`` (done records §7.2); ``report`` is the grader's
    side report.
    """

    decision: str
    reason: str
    sentence: str
    lines: tuple[str, ...]
    report: Mapping[str, Any]

    @property
    def exit_code(self) -> int:
        """Return the exit status: 0 all passed and shown to tell changes apart, 1 one failed, 3 not established."""
        return EXITS[self.decision]

    @property
    def printed(self) -> list[str]:
        """Return what the commands printed, line by line, each run under a line that names it."""
        return whole_output(self.report)

    @property
    def ends(self) -> list[str]:
        """Return the last lines that each command without a passing result printed."""
        return list(ends_of_output(self.report))

    def as_json(self) -> dict[str, Any]:
        """Return the object that ``troth grade --json`` prints."""
        return {
            "decision": self.decision,
            "reason": self.reason,
            "sentence": self.sentence,
            "report": dict(self.report),
        }


def grade_tree(
    contract_file: Path, tree: Path, start: Path, *, repeats: int = 1, clock: Clock = system_clock
) -> Graded:
    """Run a contract's acceptance commands on a copy of a tree and judge the results.

    Args:
        contract_file: the sealed contract; the report beside it is used when it is there.
        tree: the folder to grade; nothing in it is changed or run in place.
        start: a folder that has the protected paths as they were sealed.
        repeats: how often each command is run.
        clock: for the instants of the records that pass between grader and check.

    Raises:
        Refused: as ``read_contract``; ``E_START_DIFFERS``; ``E_TREE_UNREADABLE``; a code of the sandbox.
    """
    contract, _ = read_contract(contract_file)
    seal = read_seal(contract_file)
    tree, start = tree.resolve(), start.resolve()
    for folder in (tree, start):
        if not folder.is_dir():
            raise Refused("E_TREE_UNREADABLE", "there is no such folder", place=Place(file=str(folder)))
    final = snapshot(tree)
    now = clock()
    origin = rec.Origin(_CLAIM, _CLAIM, now, now)
    graded = grade(
        contract,
        tree,
        start,
        tree_sha256=final.digest,
        claim_id=_CLAIM,
        invocation_id=_CLAIM,
        repeats=repeats,
        seal=json.loads(seal) if seal is not None else None,
        final=final,
    )
    files = {
        FILES["contract"]: contract,
        FILES["tree"]: rec.tree_record(origin, final),
        FILES["grade"]: graded.record,
    }
    found = examine(MappingMember({**files, **_pinned(files, origin)}), (ACCEPTANCE_OBSERVED,))
    if found.fault is not None:
        raise found.fault
    answer = found.answers[ACCEPTANCE_OBSERVED]
    sentence, lines = tell_grade(found, graded.report)
    return Graded(answer.decision, answer.reason, sentence, lines, graded.report)


def _pinned(files: Mapping[str, bytes], origin: rec.Origin) -> dict[str, bytes]:
    """Return the case and policy of the acceptance check over the files just made."""
    held = {role: files.get(FILES[role], b"") for role in CORE_RECORDS}
    origins = {}
    for role in PINNED:
        record = json.loads(held[role] or b"{}")
        pinned = ("producer", "vantage", "witness_scope")
        origins[role] = {name: record.get(name, "none") for name in pinned}
    pins = Pins(_CLAIM, _CLAIM, "the tree's author", "the grader", origin.scope, origins)
    check = CHECKS[ACCEPTANCE_OBSERVED]
    written = write_pins(held, pins)
    return {name: written[name] for name in (check.case_file, check.policy_file)}
