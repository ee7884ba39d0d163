"""Readers of reviews, deals, knowledge bundles, hooks, reviewers' answers and the laboratory's files."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from fuzz import seeds
from fuzz.engine import Answer, Reader
from fuzz.readers.common import YAML
from troth.deals import messages, proxy_messages, transcript
from troth.deals import run as deal_run
from troth.hooks import claude_code
from troth.knowledge.concept import Concept
from troth.review import decisions as review_decisions
from troth.review import reader as review_reader
from troth.review import run as review_run
from troth.review import validate as review_validate

_PLACE: Final = re.compile(r"[^a-z_.]")


def _document(kind: Any) -> Callable[[bytes], Answer]:
    def entry(data: bytes) -> Answer:
        from review.documents import artifact

        report = review_validate.validate(data, kind=kind, artifact=artifact())
        return report.violations[0].rule if report.violations else None

    return entry


def _deal(data: bytes) -> Answer:
    """A transcript, replayed, answered and drawn."""
    from troth.deals import answer, show

    lines = list(transcript.entries(transcript.split_lines(data)))
    run = deal_run.replay(lines)
    answer.final_bytes(run)
    drawn, _ = show.draw(lines)
    show.lanes(drawn)
    return None if answer.exit_status(run) == 0 else f"exit_{answer.exit_status(run)}"


def _message(read: Callable[[Any], Any]) -> Callable[[bytes], Answer]:
    def entry(data: bytes) -> Answer:
        value = transcript.read_entry(data).value
        try:
            read(value)
        except messages.Malformed as fault:  # the promise of this function; a run takes it for a line that says nothing
            return f"malformed{_PLACE.sub('', fault.path)[:40]}"
        return None

    return entry


def _okf(data: bytes) -> Answer:
    """A concept of a bundle: frontmatter, profile, outline, what it becomes on the ledger."""
    from troth.knowledge.edit import with_field
    from troth.knowledge.ingest import payload_of, relations_of, trust_of

    concept = Concept("a/b.md", data)
    _ = (concept.type, concept.title, concept.outline, concept.malformed, concept.sha256)
    payload_of("b", concept)
    relations_of("b", concept, None)
    trust_of(concept)
    with_field(data, "title", "new")
    return "problem" if concept.front.problem is not None else "malformed" if concept.malformed else None


def _notify(data: bytes) -> Answer:
    from troth.hooks.codex import read_notification

    return None if read_notification(data.decode("utf-8", "surrogateescape")) else "other"


def _settings(data: bytes) -> Answer:
    from troth.hooks.settings import claude_text

    try:
        claude_text(data.decode("utf-8", "surrogateescape"), "troth hook claude-code run x")
    except (ValueError, RecursionError) as fault:  # what its callers make a coded refusal of
        return type(fault).__name__
    return None


def _extracted(data: bytes) -> Answer:
    from troth.backends.extraction import extract

    found = extract(data)
    return None if isinstance(found, dict) else found.code


def _grants(data: bytes) -> Answer:
    from troth.backends.consent import parse_grants

    return None if parse_grants(data) else "none"


def _endpoint(data: bytes) -> None:
    from troth.backends.endpoint import parse_endpoint

    parse_endpoint(data.decode("utf-8", "surrogateescape"))


def _pushes(data: bytes) -> None:
    from troth.airlock.pushing import read_pushes

    read_pushes(data)


def _sweep(data: bytes) -> None:
    from troth.lab.sweepconfig import read_sweep

    read_sweep(data)


def _sweep_seed() -> list[bytes]:
    from troth.lab.sweepconfig import EXAMPLE

    return [EXAMPLE.encode()]


def _rule(data: bytes) -> None:
    from troth.lab.falsification import read_rule

    read_rule(data, "rule")


def _rule_seed() -> list[bytes]:
    return [(seeds.HERE.parent / "src" / "troth" / "lab" / "rules" / "template.toml").read_bytes()]


def _okf_seeds() -> list[bytes]:
    return seeds.files("*.md", seeds.TESTS / "knowledge" / "vectors")


_EVENTS: Final = tuple(
    json.dumps(one).encode()
    for one in (
        {"hook_event_name": "Stop", "session_id": "s-1", "transcript_path": "/x/y.jsonl", "cwd": "/x",
        "stop_hook_active": False,
         "last_assistant_message": "all 12 tests pass"},
        {"hook_event_name": "PostToolUse", "session_id": "s-1", "tool_input": {"file_path": "/x/a", "command": "make"}},
    )
)  # fmt: skip
_NOTIFY: Final = (
    b'{"type":"agent-turn-complete","turn-id":"t1","thread-id":"0198-ab",'
    b'"last-assistant-message":"done","input-messages":[]}',
)
_SETTINGS: Final = (
    b'{"model": "x", "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}], "PostToolUse": []}}', b"{}",
    b'{\n  "hooks": {\n    "Stop": [\n      {"matcher": "", "hooks": [{"type": "command", "command": '
    b'"x hook claude-code run y"}]}\n    ]\n  }\n}\n',
)  # fmt: skip
_GRANTS: Final = (b'{"grants": [{"key": "https://api.example.com:8443", "notice": 1, "at": "2026-03-01T10:00:00Z"}]}',)
_ENDPOINTS: Final = (
    b"https://api.example.com/v1",
    b"http://127.0.0.1:8080/v1/",
    b"http://[::1]:80",
    b"https://x.example:443",
)
_PUSH: Final = (b"refs/heads/a " + b"1" * 40 + b" refs/heads/a " + b"0" * 40 + b"\n",)

READERS: Final = (
    *(
        Reader(f"review/{kind}", _document(kind), seeds.reviews(kind),
               ("troth.review.structure", "troth.review.relations", "troth.review.reader", "troth.review.anchors"),
               few=60)
        for kind in ("response", "reconciliation", "rebuttal")
    ),
    Reader("review/decisions", lambda data: (review_decisions.read_lines(data), None)[1], seeds.decisions,
           ("troth.review.reader", "troth.core.strictjson")),
    Reader("review/decided", lambda data: (review_reader.read_decisions(data), None)[1], seeds.decisions,
           ("troth.review.reader", "troth.core.strictjson")),
    Reader("review/records", lambda data: (review_run.read_records(data), None)[1], seeds.decisions,
           ("troth.core.strictjson",)),
    Reader("review/answer", _extracted,
    lambda: [b"Here:\n```json\n" + one + b"\n```" for one in seeds.reviews("response")()],
           ("troth.backends.extraction",)),
    Reader("deals/transcript", _deal, seeds.deals,
           ("troth.deals.transcript", "troth.deals.messages", "troth.deals.run", "troth.deals.machine"), few=60),
    Reader("deals/message", _message(messages.read_message), seeds.messages, ("troth.deals.messages",)),
    Reader("deals/proxy-message", _message(proxy_messages.read_message), seeds.messages,
    ("troth.deals.proxy_messages",)),
    Reader("knowledge/concept", _okf, _okf_seeds,
           ("troth.knowledge.frontmatter", "troth.knowledge.profile", "troth.knowledge.markdown",
           "troth.knowledge.edit"),
           (*YAML, b"# h", b"[a](b.md)", b"---\n", b"[[x]]"), few=30),
    Reader("hooks/claude-code", lambda data: (claude_code.read_event(data), None)[1], lambda: _EVENTS,
           ("troth.core.strictjson",)),
    Reader("hooks/codex", _notify, lambda: _NOTIFY, ("troth.core.strictjson",)),
    Reader("hooks/settings", _settings, lambda: _SETTINGS, ("troth.hooks.jsontext",)),
    Reader("hooks/pushes", _pushes, lambda: _PUSH, ("troth.airlock.pushing",)),
    Reader("backends/grants", _grants, lambda: _GRANTS, ("troth.backends.consent",)),
    Reader("backends/endpoint", _endpoint, lambda: _ENDPOINTS, ("troth.backends.endpoint",)),
    Reader("lab/sweep", _sweep, _sweep_seed, ("troth.lab.sweepconfig",), few=60),
    Reader("lab/rule", _rule, _rule_seed, ("troth.lab.falsification",), few=60),
)  # fmt: skip
