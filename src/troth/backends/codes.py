"""Refusals of the backends, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

CODES: Final[Mapping[str, str]] = {
    "E_REVIEW_LENS": "The lens that the reviewer is to look through is too long.",
    "E_BACKEND_UNKNOWN": "No backend has that name, or its name lacks the part that says where it is reached.",
    "E_BACKEND_OPTION": "The backend does not take that effort, speed, model or limit of time.",
    "E_SCRIPT": "The file of canned answers cannot be read, or is not what such a file is.",
    "E_ENDPOINT": "The address of a reviewer has no form that consent can be given for; the message says why.",
    "E_PROVIDERS": "A provider in the user's settings of reviewers could not be meant; the message says which.",
    "E_SELF_REVIEW": "The host may not review its own work: a reviewer can be reached, it is code, or it is not "
    "certain that none can be started.",
    "E_NO_GRANT": "There is no stored consent for that address, so there is nothing to take back.",
    "consent_denied": "Nobody agreed that anything is sent to that address, so nothing was; "
    "`troth review consent grant` agrees.",
}
