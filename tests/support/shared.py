"""Where the shared conformance data stands, when it is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]


def _find() -> Path | None:
    named = os.environ.get("TROTH_SHARED")
    for candidate in ([Path(named)] if named else []) + [_ROOT.parent / "shared"]:
        if (candidate / "conformance").is_dir():
            return candidate
    return None


SHARED = _find()
"""The folder that holds ``conformance/`` and ``bench/``, or ``None``."""

needs_shared = pytest.mark.skipif(SHARED is None, reason="the shared conformance data is not beside the project")
"""Marks a test that reads published conformance data kept outside the project."""


def conformance(*parts: str) -> Path:
    """Return a path below ``conformance/``; only for tests marked with ``needs_shared``."""
    if SHARED is None:
        raise FileNotFoundError("shared conformance data")
    return SHARED.joinpath("conformance", *parts)
