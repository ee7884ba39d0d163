"""Whether this machine can observe and grade."""

from __future__ import annotations

import os

import pytest

from troth.observer.ready import observer_ready


def _missing() -> list[str]:
    return [str(item) for item in observer_ready()]


_MISSING = _missing()

if _MISSING and os.environ.get("CI"):
    raise RuntimeError(f"the observer's tests must run here, but something is missing: {_MISSING}")

needs_observer = pytest.mark.skipif(bool(_MISSING), reason=f"this machine cannot observe: {_MISSING}")
"""Marks a test that runs a real sandbox under a real tracer."""
