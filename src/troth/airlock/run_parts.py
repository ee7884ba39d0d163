"""What a run is made with and what it comes to: options, outcome, and what every stage needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from troth.airlock.runs import Runs, RunState
from troth.core.ids import RandomHex, system_random
from troth.core.instants import Clock

if TYPE_CHECKING:
    from troth.airlock.validating import Report
    from troth.stores.protocol import LedgerStore
    from troth.stores.workspace import Workspace

EXITS: Final = {"supported": 0, "contradicted": 1, "not_established": 3}
REFUSED_EXIT: Final = 2

TABLE: Final = "stop-table.toml"

MOVED_ON: Final = frozenset({"E_ALREADY_CLOSED", "E_ALREADY_CLAIMED", "E_NOT_OWNER", "E_CONSTRAINT_VIOLATED"})
"""Refusals of a row that say: while the run went on, the commitment went another way."""

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run is made; plain values, so that a run can be taken up again. ``timeout`` in seconds."""

    timeout: float = 3600.0
    network: bool = False
    allow_read: tuple[str, ...] = ()
    allow_write: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    profile: str | None = None
    claims_file: str | None = None
    transcripts: tuple[str, ...] = ()
    repeats: int = 1
    with_launch: bool = False
    submit_anyway: bool = False
    keep_trace: bool = False
    redact: bool = False
    verifier_id: str | None = None
    table: str | None = None
    contract_keys: tuple[str, ...] = ()
    contract_threshold: int | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    ``done`` and ``checks`` have the shapes of done records §9; ``sentence`` says the verdict for a person; ``lines``
    are further facts; ``missing`` names, for each check that was not established, the record that did not allow an
    answer and why; ``evidence`` and ``submission`` are ids of ledger rows; ``refused`` is the code with which the
    ledger refused the submission; ``airlock`` is what the submission's tier made of it; ``stop``
    is the receipt's ``stop_decision``, where a table was given; ``ends`` are the last lines that each acceptance
    command without a passing result printed, and ``printed`` all that they printed, run by run.
    """

    run: str
    folder: Path
    commitment: str
    done: Mapping[str, Any]
    checks: Sequence[Mapping[str, Any]]
    sentence: str
    lines: tuple[str, ...]
    missing: tuple[Mapping[str, str], ...]
    evidence: str
    submission: str | None
    ledger_says: str
    refused: str | None = None
    airlock: Report | None = None
    stop: Mapping[str, str] | None = None
    ends: tuple[str, ...] = ()
    printed: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """Return the exit status: the verdict's, or that of a refusal when a supported run could not be submitted."""
        return REFUSED_EXIT if self.refused is not None else EXITS[self.done["decision"]]

    def as_json(self) -> dict[str, Any]:
        """Return the object that ``troth run --json`` prints."""
        return {
            "run": self.run,
            "folder": str(self.folder),
            "commitment": self.commitment,
            "done": dict(self.done),
            "checks": [dict(check) for check in self.checks],
            "sentence": self.sentence,
            "notes": list(self.lines),
            "missing": [dict(item) for item in self.missing],
            "evidence": self.evidence,
            "submission": self.submission,
            "state": self.ledger_says,
            "submission_refused": self.refused,
            "airlock": self.airlock.as_json() if self.airlock is not None else None,
            "stop_decision": dict(self.stop) if self.stop is not None else None,
            "ends_of_output": list(self.ends),
        }


@dataclass(frozen=True, slots=True)
class Bench:
    """What every stage of a run needs."""

    workspace: Workspace
    store: LedgerStore
    runs: Runs
    show: tuple[int, int] | None
    tell: Tell
    clock: Clock
    random_hex: RandomHex = field(default=system_random)
    warn: Tell = lambda _: None


def options_of(state: RunState) -> RunOptions:
    """Return the options a run was started with."""
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in state.options.items()
    }
    return RunOptions(**values)
