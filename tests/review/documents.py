"""The vectors of the review rules: documents, the edits that break one rule each, and their valid twins."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

from troth.review.artifact import Artifact
from troth.review.validate import Report, validate

HERE = Path(__file__).parent / "vectors"
RULES: list[dict[str, Any]] = json.loads((HERE / "rules.json").read_bytes())
"""Each: the rule it breaks, ``of`` which document, the place ``at`` which it is told, the edits ``set`` and ``delete``,
perhaps a ``twin`` with edits that keep the document valid, and what it is not or otherwise held against."""

DOCUMENTS = ("response", "reconciliation", "rebuttal")
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_]*)|\[(\d+)\]|\[(\"[^\"]*\")\]")


def document(name: str) -> Any:
    """Return one of the valid documents, anew."""
    return json.loads((HERE / f"{name}.json").read_bytes())


def files() -> dict[str, bytes]:
    """Return the members of the artifact."""
    root = HERE / "artifact"
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def artifact() -> Artifact:
    """Return the artifact that the documents are about."""
    return Artifact(files().items())


def steps(path: str) -> list[str | int]:
    """Return the steps of a JSON path as reports write it."""
    assert path.startswith("$")
    assert "".join(match[0] for match in _STEP.finditer(path)) == path[1:]
    return [name or (int(number) if number else json.loads(quoted)) for name, number, quoted in _STEP.findall(path)]


def edited(value: Any, edits: dict[str, Any]) -> Any:
    """Return a copy with the members of ``delete`` gone and those of ``set`` in place, in that order."""
    value = copy.deepcopy(value)
    for path in edits.get("delete", ()):
        parent, last = _parent(value, path)
        del parent[last]
    for path, new in edits.get("set", {}).items():
        parent, last = _parent(value, path)
        if isinstance(parent, list) and last == len(parent):
            parent.append(copy.deepcopy(new))
        else:
            parent[last] = copy.deepcopy(new)
    return value


def _parent(value: Any, path: str) -> tuple[Any, Any]:
    *way, last = steps(path)
    for step in way:
        value = value[step]
    return value, last


def judged(row: dict[str, Any], value: Any, edits: dict[str, Any], *, published: bool = False) -> Report:
    """Validate a document against everything that its row does not take away."""
    data = json.dumps(value).encode()
    if published:
        return validate(data, kind=row["of"], published=True)
    review = edited(document("response"), {"set": row.get("review_set", {})})
    return validate(
        data,
        kind=row["of"],
        artifact=artifact() if row.get("artifact", True) else None,
        review=review if row.get("review", True) else None,
        decided=frozenset(edits.get("decided", ())),
    )


def ids(rows: list[dict[str, Any]]) -> list[str]:
    """Return a name for each row."""
    return [f"{number}-{row['rule']}" for number, row in enumerate(rows)]
