"""Readers of what reviewers and hosts write: documents, anchors into an artifact, the folder of a review."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from fuzz import seeds
from fuzz.engine import Answer, Reader
from fuzz.readers.common import YAML, asserted
from troth.core.errors import Refused
from troth.review import decisions as review_decisions
from troth.review import reader as review_reader
from troth.review import run as review_run
from troth.review import validate as review_validate
from troth.stores.reviews import ReviewFolder


def _document(kind: Any) -> Callable[[bytes], Answer]:
    def entry(data: bytes) -> Answer:
        from review.documents import artifact

        report = review_validate.validate(data, kind=kind, artifact=artifact())
        return report.violations[0].rule if report.violations else None

    return entry


def _path(form: str) -> Callable[[bytes], Answer]:
    """A reviewer's path (the first line) into a document (the rest), followed and shown."""

    def entry(data: bytes) -> Answer:
        from troth.review.artifact import Artifact
        from troth.review.context import shown

        pointer, _, text = data.partition(b"\n")
        anchor = {"type": "structured_path", "format": form, "pointer": pointer.decode("utf-8", "replace")}
        found = shown(anchor, Artifact([("a", text)]))
        json.dumps(found.as_json())
        return None if found.value is not None else found.faults[0].rule if found.faults else "leads_nowhere"

    return entry


def _anchor(data: bytes) -> Answer:
    """An anchor (the first line) into a text (the rest): held against the tests' own reading where that has one."""
    from types import SimpleNamespace

    from reference.review_anchors import broken
    from troth.airlock.reviewing.verifying import _inspected
    from troth.review.anchors import resolve
    from troth.review.artifact import Artifact
    from troth.review.context import shown

    first, _, text = data.partition(b"\n")
    members = {"memo.md": text, "other.txt": b"one\ntwo\r\nthree"}
    artifact = Artifact(members.items())
    session: Any = SimpleNamespace(artifact=artifact)
    try:
        anchor = _inspected(session, {"anchor": first.decode("utf-8", "surrogateescape")}).get("anchor")
    except Refused as fault:
        if fault.code != "E_REVIEW_CHECK":
            raise
        anchor = json.loads(first)
    if anchor is None:
        return "no_anchor"
    found = resolve(anchor, artifact)
    json.dumps(shown(anchor, artifact).as_json())
    # The model knows no Markdown beyond headings, and takes what is no UTF-8 for none of its business.
    plain = not {"section", "heading", "digest"} & anchor.keys() and anchor["type"] != "structured_path"
    if plain and (anchor["type"] != "generic" or "excerpt" in anchor) and _is_text(text):
        rules = broken(anchor, members)
        told = [fault.rule for fault in found.faults]
        asserted(set(told) == set(rules), f"an anchor breaks {told}, and by the tests' own reading {rules}")
    return found.faults[0].rule if found.faults else None


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


class _Folder(ReviewFolder):
    """The folder of a review that lies in memory."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        super().__init__(Path("/nowhere/review-1"))
        self._files = files

    def place(self, name: str) -> Path:
        return self.path / name

    def has(self, name: str) -> bool:
        return name in self._files

    def read(self, name: str, limit: int = 0) -> bytes:
        if name not in self._files:
            raise Refused("E_REVIEW_FILE", "absent")
        return self._files[name]


def _run(data: bytes) -> None:
    """The folder of a review as another process may have left it: set-up, kept bytes, calls, response, records."""
    from troth.airlock.reviewing.recovery import recovery
    from troth.airlock.reviewing.session import Session

    session = Session(_Folder(seeds.unpacked(data)))
    recovery(session)
    _ = session.finished if session.run is not None else None


_YAML_PATHS: Final = (
    b"validators.technical[0]\nvalidators:\n  technical: [python3, check.py]\n  safety: {run: [make], sandbox: true}\n",
    b"/a/0/b\na:\n  - {b: 2026-01-01, c: !!int 3}\n  - ~\n",
    b"a.b\na: {b: [1, x]}\n",
    b"$.hosts[0]['name']\nhosts:\n  - name: a\n    at: 2026-01-01T00:00:00Z\n  - name: b\n",
)
_XPATHS: Final = (
    b"/a/b[1]/@c\n<a><b c='1'>x</b><b/></a>", b"count(//b) + 1\n<a><b/><b/></a>", b"//b[text()='x']\n<a><b>x</b></a>",
    b"substring(string(/a), 2, 3)\n<a>hello</a>", b"sum(//n) div 2\n<a><n>1</n><n>2.5</n></a>",
)  # fmt: skip
_MEMO: Final = b"# Cost\r\n\nIt costs 40 euros\n\n## Saving ##\n\nand saves 200, and saves 200.\n"
_POINTS: Final = (
    {"type": "file_range", "path": "memo.md", "line_start": 1, "line_end": 3, "symbol": "40 euros"},
    {"type": "text_quote", "quote": "saves 200", "occurrence": 2},
    {"type": "text_quote", "quote": "saves 200", "section": "Saving"},
    {"type": "text_quote", "digest": "sha256:3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3"},
    {"type": "section", "heading": "Cost", "path": "memo.md"},
    {"type": "generic", "locator": "somewhere", "excerpt": "two\r\nthree"},
)
_ANCHORS: Final = (
    *(json.dumps(one).encode() + b"\n" + _MEMO for one in _POINTS),
    b'{"type": "structured_path", "pointer": "/a/0", "format": "json_pointer"}\n{"a": [1], "b": {"~": ""}}\n',
)
_RECORDS: Final = ("troth.review.reader", "troth.core.strictjson")

READERS: Final = (
    *(
        Reader(f"review/{kind}", _document(kind), seeds.reviews(kind),
               ("troth.review.structure", "troth.review.relations", "troth.review.reader", "troth.review.anchors"),
               few=60)
        for kind in ("response", "reconciliation", "rebuttal")
    ),
    Reader("review/decisions", lambda data: (review_decisions.read_lines(data), None)[1], seeds.decisions, _RECORDS),
    Reader("review/decided", lambda data: (review_reader.read_decisions(data), None)[1], seeds.decisions, _RECORDS),
    Reader("review/records", lambda data: (review_run.read_records(data), None)[1], seeds.decisions,
           ("troth.core.strictjson",)),
    Reader("review/anchor", _anchor, lambda: _ANCHORS,
           ("troth.review.anchors", "troth.review.sections", "troth.review.context"),
           (b"Cost", b"# ", b"===\n", b"```\n", b"> ", b'"path"', b'"occurrence"', b"memo.md")),
    Reader("review/yaml-path", _path("yaml_path"), lambda: _YAML_PATHS, ("troth.review.paths", "troth.review.context"),
           (*YAML, b"&-", b"*-", b"? [a]"), few=40),
    Reader("review/xpath", _path("xpath"), lambda: _XPATHS, ("troth.review.paths", "troth.review.context"),
           (b"//*", b"[", b"position()", b"text()", b"@*", b"..", b"|", b" and ", b" = ", b"string-length(", b"id("),
           few=60),
    Reader("review/run-folder", _run, lambda: seeds.files("review-*.txt"),
           ("troth.airlock.reviewing.session", "troth.airlock.reviewing.stored", "troth.airlock.reviewing.recovery",
            "troth.stores.reviews", "troth.review.run"), few=60),
)  # fmt: skip
