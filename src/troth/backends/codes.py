"""Refusals of the backends, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CODES: Final[Mapping[str, str]] = {
    "E_REVIEW_LENS": "The lens that the reviewer is to look through is too long.",
    "E_BACKEND_UNKNOWN": "No backend has that name, or its name lacks the part that says where it is reached.",
    "E_BACKEND_OPTION": "The backend does not take that effort, speed, model or limit of time.",
    "E_SCRIPT": "The file of canned answers cannot be read, or is not what such a file is.",
}
