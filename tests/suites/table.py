"""All rows."""

from __future__ import annotations

from typing import Final

from suites.beyond import BEYOND
from suites.large import LARGE
from suites.living import LIVING
from suites.suites import Suite

SUITES: Final[tuple[Suite, ...]] = (*LARGE, *LIVING, *BEYOND)
