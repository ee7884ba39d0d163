"""The refusals of the stores, each with one sentence for people."""

from __future__ import annotations

from typing import Final

CODES: Final[dict[str, str]] = {
    "E_NO_WORKSPACE": "There is no .mentu folder here or above; `troth init` makes one, --store names another ledger.",
    "E_NO_FOLDER": "The folder named is not there.",
    "E_NO_LEDGER": "The ledger file is not there. A missing ledger is never taken for an empty one.",
    "E_NOT_REGULAR": "A symbolic link, folder, pipe or device stands where a regular file or plain folder is needed.",
    "E_UNREADABLE": "The operating system would not read or write it; the message says why.",
    "E_TOO_LARGE": "The file is larger than anything of its kind should be.",
    "E_CONFIG": "config.yaml cannot be understood; the message says where.",
    "E_NO_GENESIS": "There is no genesis key at that place; `troth genesis init` writes one to begin with.",
    "E_GENESIS_EXISTS": "A genesis key stands there already, and none is overwritten.",
    "E_WRITE_FAILED": "The row could not be made durable (a full disk, for example); it was taken back.",
    "E_NOT_EMPTY": "Something stands there already: rows where an import needs an empty ledger, or a file that is not "
    "written over.",
    "E_NOT_IMPORTABLE": "The file to import holds a line that is no row, or a row that has no place in a ledger.",
    "E_FEDERATION_OFF": "Nothing may leave the machine: federation.enabled is not true in the genesis key.",
    "E_NO_PEER": "The genesis key names no such peer workspace, or no sync target.",
    "E_AMBIGUOUS_ID": "Several ids begin with what was written; the message names some of them.",
    "E_GIT": "Git did not do what it was asked for; the message has its reason.",
    "E_UNSUPPORTED": "This version has no store of that kind.",
    "E_NO_DRIVER": "A ledger in PostgreSQL needs the package psycopg: pip install 'troth[postgres]'.",
    "E_STORE_SCHEMA": "The database holds no ledger yet, or one of another version; the message says what to do.",
    "E_STORE_REFUSED": "The database does not let this user do it; the message has its reason, the detail its code.",
    "E_STORE_READ_ONLY": "The database is a standby, or read only; nothing was recorded. Name the one that takes rows.",
    "E_STORE_LOST": "The database cannot be reached, or the connection broke; nothing was recorded, so try again.",
    "E_OUTCOME_UNKNOWN": "The connection broke during a COMMIT and the database cannot be asked what became of it; "
    "look with `troth log` before you try again.",
    "E_REVIEW_UNKNOWN": "There is no review of that name; `troth review list` names them.",
    "E_REVIEW_FILE": "A review's folder has no such file.",
    "E_REVIEW_UNREADABLE": "A file of a review's folder is not what was written there.",
    "E_BUSY": "Somebody else has held the ledger, or the review, for ten seconds; try again.",
}
"""Code -> sentence. The protocol's own codes stand in :mod:`troth.ledger.codes`."""
