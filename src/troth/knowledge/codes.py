"""The refusals of knowledge bundles and the findings of their lint, each with one sentence for people."""

from __future__ import annotations

from typing import Final

CODES: Final[dict[str, str]] = {
    "E_OKF_FOLDER": "The bundle is no folder that can be listed; a symbolic link is not followed.",
    "E_OKF_LIMIT": "The bundle holds more files, or deeper folders, than one bundle may have.",
    "E_OKF_UNREADABLE": "A file of the bundle cannot be read; the message says why.",
    "E_OKF_WRITE": "The file or folder cannot be written there; the message says why.",
    "E_OKF_EXISTS": "Something stands there already, and nothing is overwritten.",
    "E_OKF_INSIDE": "A projection goes outside its source tree, and the source does not lie in it.",
    "E_OKF_SOURCE_CHANGED": "The source tree changed while it was projected, so nothing was written.",
    "E_OKF_NOT_PROJECTED": "The file carries no whole x-source block, so its original cannot be recovered.",
    "E_OKF_EDIT": "The field cannot be written so that every other byte stays; change the file by hand.",
    "E_OKF_NO_CONCEPT": "The bundle has no such concept.",
}
"""Code -> sentence."""

ERRORS: Final[dict[str, str]] = {
    "no_type": "The concept's frontmatter has no type, an empty one, or cannot be read as YAML.",
}
"""The one error of a bundle (ledger spec §13 [D46])."""

FINDINGS: Final[dict[str, str]] = {
    "no_frontmatter": "The file has no frontmatter.",
    "unclosed_frontmatter": "The first line opens frontmatter that no line closes; the whole file is read as text.",
    "not_utf8": "The file is not UTF-8; what could not be read shows as U+FFFD.",
    "too_large": "The file is larger than a signal can be and was not read.",
    "too_deep": "The folder lies deeper than a bundle is read.",
    "symlink": "A symbolic link was not followed.",
    "not_regular": "It is neither a regular file nor a folder and was not read.",
    "odd_name": "The name is not UTF-8, so no path can be written for it; it was not read.",
    "unknown_type": "The type is not one of those the bundle or the caller names.",
    "type_not_text": "The type is no text.",
    "unknown_key": "The key is neither one of the format's nor one of your own, prefixed x-.",
    "unknown_version": "The root index declares a version of the format that is not known here.",
    "broken_link": "The link names no file of the bundle.",
    "link_escapes": "The link leads out of the bundle.",
    "orphan": "No other file of the bundle leads to the concept.",
    "no_back_reference": "The concept that a relation names does not lead back.",
    "dangling_citation": "A citation names no file of the bundle.",
    "malformed_profile": "A field of x-mentu has another form than the profile gives it.",
}
"""What is told and stops nothing."""
