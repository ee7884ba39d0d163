"""What readers warn about and never act on: values a writer would have refused (ledger spec §2, §8, §13).

This is apart from verification, which is about integrity alone (§16), and from replay, which is about state.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from troth.core.instants import parse_instant
from troth.ledger.chain import Warning_
from troth.ledger.codes import WARNINGS
from troth.ledger.fields import CORE_RELATIONS, ID_PREFIX, OKF_RELATIONS, is_blank, is_empty, read_op
from troth.ledger.replay import depth_of, parents_of
from troth.ledger.rows import Row

_KNOWN_RELATIONS = CORE_RELATIONS | OKF_RELATIONS


class Remarks:
    """Collects warnings over rows in file order.

    Args:
        workspace: the configured workspace; ``None`` when there is none to compare with.
    """

    def __init__(self, workspace: str | None = None) -> None:
        self._workspace = workspace
        self._latest: datetime | None = None
        self._depths: dict[str, int] = {}
        self.warnings: list[Warning_] = []

    def apply(self, row: Row) -> None:
        """Look at one row."""
        value = row.value
        self._envelope(row)
        self._time(row)
        self._relations(row)
        self._depth(row)
        level = value.get("observationLevel")
        if level in ("deductive", "inductive", "contradiction") and is_empty(value.get("sourceIds")):
            self._warn(row, "level_premises")
        if level == "contradiction" and "contradicts" not in relation_types(value):
            self._warn(row, "level_contradiction")

    def _envelope(self, row: Row) -> None:
        workspace = row.value.get("workspace")
        if self._workspace is not None and not is_blank(workspace) and workspace != self._workspace:
            self._warn(row, "workspace_differs")
        prefix = ID_PREFIX.get(str(read_op(row.op)))
        if row.id is not None and prefix is not None and not row.id.startswith(prefix):
            self._warn(row, "id_prefix")

    def _time(self, row: Row) -> None:
        written = row.value.get("ts")
        if is_blank(written):
            return
        instant = parse_instant(written) if isinstance(written, str) else None
        if instant is None or not isinstance(written, str):
            self._warn(row, "bad_timestamp")
            return
        if not written.endswith("Z"):
            self._warn(row, "offset_timestamp")
        if self._latest is not None and instant < self._latest:
            self._warn(row, "time_backwards")
        else:
            self._latest = instant

    def _relations(self, row: Row) -> None:
        for kind in relation_types(row.value):
            if kind not in _KNOWN_RELATIONS:
                self._warn(row, "relation_type", f"the relation type {kind!r:.80} is not known")

    def _depth(self, row: Row) -> None:
        parents = parents_of(row.value)
        computed = depth_of(parents, self._depths)
        trace = row.value.get("trace")
        stored = trace.get("causalDepth") if isinstance(trace, dict) else None
        if stored is not None and (isinstance(stored, bool) or stored != computed):
            self._warn(row, "causal_depth", f"causalDepth is {stored!r:.40} where {computed} is right")
        if row.id is not None:
            self._depths.setdefault(row.id, computed)

    def _warn(self, row: Row, name: str, message: str | None = None) -> None:
        self.warnings.append(Warning_(row.line, row.id, name, message or WARNINGS[name]))


def relation_types(value: dict[str, Any]) -> list[str]:
    """Return the types of a row's relations, leaving out what is no relation."""
    relations = value.get("relations")
    if not isinstance(relations, list):
        return []
    return [item["type"] for item in relations if isinstance(item, dict) and isinstance(item.get("type"), str)]
