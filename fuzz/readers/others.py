"""Readers of reviews, deals, knowledge bundles, hooks, reviewers' answers and the laboratory's files."""

from __future__ import annotations

import json
import re
import unittest.mock
from collections.abc import Callable
from functools import cache
from typing import Any, Final

from fuzz import seeds
from fuzz.engine import Answer, Reader
from fuzz.readers.common import YAML, asserted
from troth.deals import messages, proxy_messages, transcript
from troth.deals import run as deal_run
from troth.hooks import claude_code
from troth.knowledge.concept import Concept

_PLACE: Final = re.compile(r"[^a-z_.]")


def _deal(data: bytes, run: deal_run.Run | None = None) -> Answer:
    """A transcript, replayed, answered and drawn."""
    from troth.deals import answer, show

    lines = list(transcript.entries(transcript.split_lines(data)))
    run = deal_run.replay(lines, run=run)
    answer.final_bytes(run)
    drawn, _ = show.draw(lines)
    show.lanes(drawn)
    return None if answer.exit_status(run) == 0 else f"exit_{answer.exit_status(run)}"


def _proxied(data: bytes) -> Answer:
    """A transcript of 0.3-proxy; whoever has the points, there are neither more nor fewer of them."""
    from troth.deals.proxy_run import ProxyRun

    run = ProxyRun()
    told = _deal(data, run)
    asserted(sum(run.escrow.balances().values()) == 0, "points were made or lost")
    return told


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


def _restored(data: bytes) -> None:
    from troth.knowledge.project import restored

    restored(data)


def _projected() -> list[bytes]:
    from troth.knowledge.project import Corpus, derived, projected

    made = []
    for data in _okf_seeds():
        concept = Concept("a/b.md", data)
        fields, cited, _ = derived(concept, Corpus({"a/b.md": concept}), "ns")
        made.append(projected(concept, fields, cited))
    return made


def _manifest(data: bytes) -> None:
    from pathlib import Path

    from troth.knowledge import project

    with unittest.mock.patch.object(project, "read_file", return_value=data):
        files, digest = project._manifest(Path("/nowhere"))
    asserted(isinstance(digest, str), "a digest that is no text")
    asserted(
        not any(".." in name.split("/") or name.startswith("/") for name in files), "a path that leaves the bundle"
    )


def _recipe(data: bytes) -> None:
    """What a run of the laboratory says of itself: which suite it played."""
    from pathlib import Path

    from troth.lab import folders

    with unittest.mock.patch.object(folders, "_read", return_value=data):
        folders._suite_of(Path("/nowhere"), folders._json(Path("/nowhere"), "run.json"))


def _recipes() -> list[bytes]:
    made = {
        "schema": "troth-lab-run/v1", "labels": [], "suite": "calibration", "protocol": "0.2", "seed": 1, "deals": 4,
        "setting": None,
    }  # fmt: skip
    from troth.lab import folders

    setting = {
        "c": "honest", "a": "cooperative", "k": "faithful", "amount": 10,
        "object_options": [{"id": "a", "desc": "b"}], "deadline_steps": 5, "expires_steps": 3, "forged": None,
        "forged_rate": 0.0, "series": 1,
    }  # fmt: skip
    from troth.lab.suites import SUITES

    named = {**made, "schema": folders.SCHEMA, "suite": next(iter(SUITES))}
    return seeds.dumps([{**named, "setting": setting}, named])


def _chunk(data: bytes) -> None:
    """The rows of one part of a sweep, as another machine sends them."""
    from troth.lab.sweeps import read_chunk

    sweep, _ = _played()
    table = read_chunk(sweep, 0, data)
    asserted(table.num_rows == sweep.size(0), "another number of rows")


@cache
def _played() -> tuple[Any, bytes]:
    from troth.lab.sweepconfig import EXAMPLE, read_sweep
    from troth.lab.sweeps import play_chunk, sweep_of

    form = read_sweep(EXAMPLE.encode()).form
    return sweep_of(form), play_chunk(form, 0)


def _seat(data: bytes) -> Answer:
    """The call of a model that plays a party: whatever its arguments are, what is said goes onto the wire."""
    from troth.core.strictjson import RECORD, loads
    from troth.deals.transcript import message_line
    from troth.lab.seat import said
    from troth.lab.view import Terms, View

    call = loads(data, RECORD)
    if (
        not isinstance(call, dict)
        or not isinstance(call.get("kind"), str)
        or not isinstance(call.get("arguments"), dict)
    ):
        return "no_call"
    view = View("C", "o_1", Terms(), (1, "s", 1), lambda _: None)
    told = said(call["kind"], call["arguments"], view, "material")
    line = message_line(1, {"type": told.kind, "from": "C", "offer_id": "o_1", **told.members})
    _deal(line)
    return "odd" if {"arguments", "unwritable"} & told.members.keys() else None


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


def _codex_config(data: bytes) -> Answer:
    """Codex's configuration with our line in it, and without it again."""
    from troth.hooks.settings import codex_text

    text = data.decode("utf-8", "surrogateescape")
    try:
        made = codex_text(text, ["troth", "hook", "x"])
    except (ValueError, LookupError, RecursionError) as fault:  # what its caller makes a coded refusal of
        return type(fault).__name__
    asserted(made is not None and codex_text(made, None) in (text, text or None), "what stood there does not come back")
    return None


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
_CODEX: Final = (
    b'model = "m"\napproval_policy = "never"\n\n[mcp_servers.x]\ncommand = "y"\nargs = ["a", 1.5, 2026-03-01]\n',
    b'notify = ["other"]\n',
    b"",
)
_PUSH: Final = (b"refs/heads/a " + b"1" * 40 + b" refs/heads/a " + b"0" * 40 + b"\n",)

_CALLS: Final = tuple(
    seeds.dumps(
        {"kind": kind, "arguments": arguments}
        for kind, arguments in (
            ("Offer", {}), ("Offer", {"consideration": {"cash_sim": {"amount": 3}}}),
            ("Disclosure", {"offer_id": "o_1", "artifacts": {"a": "material"}, "claims": ["x"]}),
            ("EscrowHold", {"amount": 10}), ("Wait", {}), ("Verdict", {"result": "pass", "notes": ""}),
        )
    )
)  # fmt: skip
_MANIFEST: Final = (
    b'{"okf_projection": 1, "source_sha256": "00", "files": {"a/b.md": {"sha256": "11", "projected": true}, '
    b'"c.png": {"sha256": "22", "projected": false}}}',
)

READERS: Final = (
    Reader("deals/transcript", _deal, seeds.deals,
           ("troth.deals.transcript", "troth.deals.messages", "troth.deals.run", "troth.deals.machine"), few=60),
    Reader("deals/proxy-transcript", _proxied, seeds.proxied,
           ("troth.deals.proxy_run", "troth.deals.proxy_messages", "troth.deals.run"), few=60),
    Reader("deals/message", _message(messages.read_message), seeds.messages, ("troth.deals.messages",)),
    Reader("deals/proxy-message", _message(proxy_messages.read_message), seeds.messages,
    ("troth.deals.proxy_messages",)),
    Reader("knowledge/concept", _okf, _okf_seeds,
           ("troth.knowledge.frontmatter", "troth.knowledge.profile", "troth.knowledge.markdown",
           "troth.knowledge.edit"),
           (*YAML, b"# h", b"[a](b.md)", b"---\n", b"[[x]]"), few=30),
    Reader("knowledge/projected", _restored, _projected, ("troth.knowledge.project", "troth.knowledge.frontmatter"),
           few=40),
    Reader("knowledge/manifest", _manifest, lambda: _MANIFEST, ("troth.knowledge.project",)),
    Reader("hooks/claude-code", lambda data: (claude_code.read_event(data), None)[1], lambda: _EVENTS,
           ("troth.core.strictjson",)),
    Reader("hooks/codex", _notify, lambda: _NOTIFY, ("troth.core.strictjson",)),
    Reader("hooks/settings", _settings, lambda: _SETTINGS, ("troth.hooks.jsontext",)),
    Reader("hooks/codex-settings", _codex_config, lambda: _CODEX, ("troth.hooks.settings",)),
    Reader("hooks/pushes", _pushes, lambda: _PUSH, ("troth.airlock.pushing",)),
    Reader("lab/sweep", _sweep, _sweep_seed, ("troth.lab.sweepconfig",), few=60),
    Reader("lab/recipe", _recipe, _recipes, ("troth.lab.folders",)),
    Reader("lab/sweep-chunk", _chunk, lambda: [_played()[1]], ("troth.lab.sweeps",), few=60),
    Reader("lab/seat", _seat, lambda: _CALLS, ("troth.lab.seat",)),
    Reader("lab/rule", _rule, _rule_seed, ("troth.lab.falsification",), few=60),
)  # fmt: skip
