"""What differs between two contracts, and which of it asks less."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from troth.core.digests import EMPTY
from troth.observer.comparing import differences

FILE = {"path": "setup.cfg", "kind": "file", "sha256": "1" * 64}
FOLDER = {"path": "tests", "kind": "directory", "sha256": "2" * 64, "exclude": ["__pycache__"]}
GONE = {"path": "conftest.py", "kind": "directory", "sha256": EMPTY}
BASE: dict[str, Any] = {
    "contract_id": "a",
    "task": "t",
    "protected_paths": [FILE, FOLDER, GONE],
    "acceptance": [{"id": "suite", "argv": ["pytest", "-q"]}, {"id": "lint", "argv": ["ruff"]}],
    "adequacy": {"mutants": 10, "killed": 5},
}


def after(**changes: Any) -> list[tuple[str, str, bool]]:
    return [(item.what, item.told, item.less) for item in differences(BASE, deepcopy(BASE) | changes)]


def test_the_same_differs_in_nothing() -> None:
    assert after() == []


CASES: list[tuple[dict[str, Any], list[tuple[str, str, bool]]]] = [
    ({"contract_id": "b"}, [("id", "'a' became 'b'", False)]),
    ({"task": "u"}, [("task", "'t' became 'u'", False)]),
    ({"protected_paths": [FILE, FOLDER]}, [("protect", "is protected no more", True)]),
    (
        {"protected_paths": [{**FOLDER, "path": "setup.cfg"}, FOLDER, GONE]},
        [
            ("protect", "leaves out __pycache__ now", True),
            ("protect", "was sealed as a file and is as a directory", False),
        ],
    ),
    (
        {"protected_paths": [FILE, {**FOLDER, "exclude": ["data"]}, GONE]},
        [("protect", "leaves out data now", True), ("protect", "no longer leaves out __pycache__", False)],
    ),
    (
        {"protected_paths": [{**FILE, "sha256": "3" * 64}, FOLDER, GONE]},
        [("protect", "is sealed with other content", False)],
    ),
    (
        {"protected_paths": [FILE, FOLDER, GONE, {**GONE, "path": "x"}]},
        [("protect", "is protected now, as absent", False)],
    ),
    (
        {"acceptance": [{"id": "suite", "argv": ["true"]}, {"id": "new", "argv": ["a b"]}]},
        [
            ("command", "pytest -q became true", False),
            ("command", "has to pass no more: ruff", True),
            ("command", "has to pass now: 'a b'", False),
        ],
    ),
    ({"adequacy": {"mutants": 10, "killed": 4}}, [("mutants", "5 of 10 became 4 of 10", True)]),
    ({"adequacy": {"mutants": 20, "killed": 10}}, [("mutants", "5 of 10 became 10 of 20", False)]),
    ({"adequacy": {"mutants": 0, "killed": 0}}, [("mutants", "5 of 10 became 0 of 0", True)]),
    ({"mutant_set_sha256": "4" * 64}, [("mutants", "are others", False)]),
]


@pytest.mark.parametrize(("changes", "told"), CASES, ids=range(len(CASES)))
def test_each_difference_is_told(changes: dict[str, Any], told: list[tuple[str, str, bool]]) -> None:
    assert after(**changes) == told


def test_a_path_beneath_a_folder_that_is_protected_now_is_not_lost() -> None:
    inner = {"path": "tests/unit", "kind": "directory", "sha256": "5" * 64}
    found = differences(BASE | {"protected_paths": [inner]}, BASE | {"protected_paths": [FOLDER]})
    assert [(item.name, item.less) for item in found] == [("tests/unit", False), ("tests", False)]
    hidden = {**inner, "path": "tests/__pycache__"}
    found = differences(BASE | {"protected_paths": [hidden]}, BASE | {"protected_paths": [FOLDER]})
    assert ("tests/__pycache__", True) in [(item.name, item.less) for item in found]
