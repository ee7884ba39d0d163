"""Published members give their declared results."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.shared import SHARED, conformance, needs_shared
from troth.receipts.verify import check_member
from troth.stores.members import FolderMember


def rows() -> list[Any]:
    if SHARED is None:
        return []
    return [
        pytest.param(manifest.parent.name, row, id=f"{manifest.parent.name}-{row['id']}")
        for manifest in sorted(conformance("receipts").glob("*/MANIFEST.json"))
        for row in json.loads(manifest.read_bytes())["vectors"]
    ]


@needs_shared
@pytest.mark.parametrize(("suite", "row"), rows())
def test_published_members(suite: str, row: dict[str, Any]) -> None:
    member = FolderMember(conformance("receipts", suite, row["path"]))
    assert check_member(member, row.get("checks")) == row["expected"]


@needs_shared
def test_there_are_published_members() -> None:
    assert len(rows()) >= 48
