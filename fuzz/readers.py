"""The table of readers: every door at which bytes of an agent, a reviewer, another ledger or a stranger come in."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from fuzz import seeds
from fuzz.engine import Answer, Reader
from troth.core import notes, strictjson
from troth.core.errors import Refused
from troth.deals import messages, proxy_messages, transcript
from troth.deals import run as deal_run
from troth.hooks import claude_code
from troth.knowledge.concept import Concept
from troth.ledger import chain, checkpoint, fastpath, foreign, genesis, importing
from troth.ledger.hashing import row_hash
from troth.ledger.rows import parse_row
from troth.observer import claims, contract_source, reading, reports, shelltext, totals
from troth.observer.transcripts import FORMATS, detect
from troth.receipts import bundles, deciding, demands, envelopes, pinning, verify
from troth.receipts.member import FILES, MappingMember
from troth.receipts.reader import MemberReader
from troth.receipts.statements import read_contract_statement
from troth.receipts.strict import parse
from troth.review import decisions as review_decisions
from troth.review import reader as review_reader
from troth.review import run as review_run
from troth.review import validate as review_validate

_RECORD: Final = ("troth.receipts.records", "troth.receipts.strict", "troth.core.strictjson")
_PLACE: Final = re.compile(r"[^a-z_.]")
_LAUNCH: Final = ("troth.receipts.launch", "troth.receipts.strict", "troth.core.strictjson")


def _asserted(held: bool, what: str) -> None:
    if not held:
        raise AssertionError(what)


# Receipts -----------------------------------------------------------------------------------------------------------


def _record(kind: str) -> Callable[[bytes], Answer]:
    name = FILES[kind]

    def read(data: bytes) -> None:
        MemberReader(MappingMember({name: data})).record(kind, name)

    return read


def _strict(data: bytes) -> None:
    """The quick parser gives what the strict one gives, or nothing."""
    from troth.receipts.strict import parse_strict

    found: Any = None
    expected: Any = None
    try:
        found = parse(data, "x")
    except Refused as fault:
        found = fault
    try:
        expected = parse_strict(data, "x")
    except Refused as fault:
        _asserted(isinstance(found, Refused) and found.code == fault.code, "the two ways refuse differently")
        raise
    _asserted(repr(found) == repr(expected), "the two ways read different values")


def _statement(data: bytes) -> None:
    contract = seeds.members()[0]["contract.json"]
    read_contract_statement(MemberReader(MappingMember({"contract.json": contract, "statement.json": data})))


def _run_folder(data: bytes) -> Answer:
    """A whole member under its own case and policy, told as a reader of it is told."""
    from troth.receipts import explain

    found = verify.examine(MappingMember(seeds.unpacked(data)))
    standing = verify.standing(found.result)
    verify.headline(found.result)
    explain.stories(found)
    if standing == "holds":
        return None
    return "refused" if standing == "refused" else verify.headline(found.result)[1].replace(" ", "_")[:60] or standing


def _envelope(data: bytes) -> None:
    envelope = envelopes.parse_envelope(data)
    again = envelopes.parse_envelope(envelope.encode())
    _asserted(again == envelope, "an envelope does not come back")


def _opened(data: bytes) -> None:
    from receipts.test_envelopes import ALICE, PAYLOAD

    payload, _ = envelopes.opened(envelopes.parse_envelope(data), demands.demand([ALICE.verifier]))
    _asserted(payload == PAYLOAD, "a payload that nobody signed was handed out")


def _key(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    if text.startswith("PRIVATE"):
        notes.parse_signer(text)
    else:
        key = notes.parse_verifier(text)
        _asserted(notes.parse_verifier(str(key)) == key, "a key does not come back")


_PINS: Final = b"""observed_party = "agent:mender"
authority = "the reader"
claim_id = "claim-1"
[producers]
observation = "observer"
tree = "observer"
grade = "observer"
[witness_scope]
tree = "PEER"
[sha256]
contract = "0000000000000000000000000000000000000000000000000000000000000000"
[scope]
id = "s"
start = "2026-03-01T10:00:00Z"
end = "2026-03-01T11:00:00Z"
"""
_SIGNERS: Final = b"""[[approver]]
identity = "auditor@example.com"
issuer = "https://login.example.com"

[[witness]]
identity = "observer@example.com"
issuer = "https://login.example.com"
"""

_RECEIPTS: Final = (
    *(
        Reader(f"receipts/{kind}", _record(kind), seeds.record(kind), _LAUNCH if "launch" in kind else _RECORD)
        for kind in FILES
    ),
    Reader("receipts/strict", _strict, seeds.of_member("tree.json", "claims.json"), _RECORD[1:]),
    Reader("receipts/receipt", lambda data: (verify.read_receipt(data), None)[1], seeds.of_member("receipt.json"),
           ("troth.receipts.statements", *_RECORD[1:])),
    Reader("receipts/statement", _statement,
           lambda: [*seeds.files("statement.json"), *seeds.published("receipts/**/statement.json"),
                    *(one["statement.json"] for one in (seeds.Draft().statement(),))],
           ("troth.receipts.statements", *_RECORD[1:])),
    Reader("receipts/run-folder", _run_folder, seeds.packed,
           ("troth.receipts.verify", "troth.receipts.checks", "troth.receipts.policy", "troth.receipts.records",
            "troth.receipts.launch", "troth.receipts.protection", "troth.receipts.explain")),
    Reader("receipts/decide-table", lambda data: (deciding.read_table(data), None)[1],
           lambda: [deciding.EXAMPLE.encode()], ("troth.receipts.deciding",)),
    Reader("receipts/envelope", _envelope, seeds.envelopes, ("troth.receipts.envelopes", "troth.core.strictjson")),
    Reader("receipts/opened", _opened, seeds.envelopes, ("troth.receipts.envelopes", "troth.receipts.demands")),
    Reader("receipts/bundle", lambda data: (bundles.parse_bundle(data), None)[1], seeds.bundles,
           ("troth.receipts.bundles", "troth.core.strictjson")),
    Reader("receipts/signers", lambda data: (demands.parse_identities(data), None)[1], lambda: [_SIGNERS],
           ("troth.receipts.demands",)),
    Reader("receipts/pins", lambda data: (pinning.parse_pins(data), None)[1], lambda: [_PINS],
           ("troth.receipts.pinning",)),
    Reader("receipts/keys", _key, seeds.keys, ("troth.core.notes",)),
)  # fmt: skip


# Observer -----------------------------------------------------------------------------------------------------------


def _strace(data: bytes) -> Answer:
    found = reading.read_steps(data.splitlines(keepends=True))
    return "torn" if found.torn else "unparsed" if found.unparsed else "complaints" if found.complaints else None


def _transcript(name: str) -> Callable[[bytes], Answer]:
    read = FORMATS[name].read

    def entry(data: bytes) -> Answer:
        found = read(BytesIO(data))
        detect(data)
        return None if found.said else "no_runs"

    return entry


def _claims(data: bytes) -> Answer:
    found = claims.read_claims(data)
    return "refused_lines" if found.refused else None if found.entries else "no_claims"


def _counts(read: Callable[[bytes], Any]) -> Callable[[bytes], Answer]:
    def entry(data: bytes) -> Answer:
        found = read(data)
        found.as_json()
        return "unknown" if found.source == "unknown" else None

    return entry


def _shell(data: bytes) -> Answer:
    found = shelltext.read_text(data.decode("utf-8", "surrogateescape"), 0)
    return None if found.runs and found.understood else "nothing_named" if found.understood else "not_understood"


def _totals(data: bytes) -> Answer:
    text = data.decode("utf-8", "surrogateescape")
    totals.said_in(text)
    return None if totals.read_output(text).settled() else "no_totals"


_JUNIT: Final = (
    b'<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="0" '
    b'failures="1" skipped="1" tests="3" time="0.02" timestamp="2026-03-01T10:00:00" hostname="sandbox"><testcase '
    b'classname="tests.test_cart" name="test_empty" time="0.001" /><testcase classname="tests.test_cart" '
    b'name="test_two" '
    b'time="0.001"><failure message="assert 1 == 2">x</failure></testcase><testcase classname="a" name="b"><skipped '
    b'type="pytest.skip" message="x">y</skipped></testcase></testsuite></testsuites>',
    b'<testsuites><testsuite name="outer" hostname="h"><testsuite name="t"><testcase name="x"/></testsuite></testsuite>'
    b"</testsuites>",
)
_UNITTEST: Final = (b'[["test_a.T.test_passes", "passed"], ["test_a.T.test_fails", "failed"], ["x", "skipped"]]', b"[]")
_GO: Final = (
    b'{"Time":"2026-03-01T10:00:00Z","Action":"start","Package":"example.com/a"}\n'
    b'{"Action":"run","Package":"example.com/a","Test":"TestOne"}\n'
    b'{"Action":"pass","Package":"example.com/a","Test":"TestOne","Elapsed":0.01}\n'
    b'{"Action":"skip","Package":"example.com/a","Test":"TestTwo"}\n{"Action":"fail","Package":"example.com/a"}\n',
)
_CARGO: Final = (
    b'{ "type": "suite", "event": "started", "test_count": 2 }\n{ "type": "test", "event": "started", "name": "a" }\n'
    b'{ "type": "test", "name": "a", "event": "ok" }\n{ "type": "test", "name": "b", "event": "failed" }\n'
    b'{ "type": "suite", "event": "failed", "passed": 1, "failed": 1, "ignored": 0 }\n',
)
_RAN: Final = (
    b"...\n----\nRan 12 tests in 0.003s\n\nOK (skipped=1, expected failures=2)\n",
    b"F\nRan 3 tests in 0.1s\n\nFAILED (failures=1, errors=1)\n",
)
_SUMMARY: Final = (
    b"....F\n=== 1 failed, 12 passed, 1 skipped, 2 xfailed in 0.12s ===\n",
    b"3 passed, 1 warning in 1.50s\n",
)
_PRINTED: Final = (
    b"12/12 checks passed\nTests: 3 failed, 9 passed\n", b"# tests 5\n# pass 4\n# fail 1\n",
    b"OK (skipped=2)\nRan 3 tests in 1s",
    b"test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    b"I ran `pytest -q` and all 12 tests pass; exit 0.\n```\n$ python -m unittest\nRan 2 tests\nOK\n```\n",
)  # fmt: skip
_TEXTS: Final = (
    b"cd a && python -m pytest -q tests/test_a.py 2>&1 | tail -5; echo $?",
    b'FOO=1 env -i bash -c "make test || exit 1"',
    b"for f in *.py; do ruff check \"$f\" || break; done", b"cat <<'EOF' > x\n$(no)\nEOF\npython x",
    b"(cd x; make) & wait",
    b"if test -f a; then npm test; else exit 2; fi", b"x=$(git rev-parse HEAD); timeout 60 cargo test -- --nocapture",
    b"time -p sudo -u x sh -c 'go test ./... '\"'\"'a'\"'\"", b"! grep -q a b && case $x in a) true;; *) false;; esac",
)  # fmt: skip
_CONTRACT_FILE: Final = seeds.HERE.parent / "src" / "troth" / "cli" / "demo_data" / "contract.toml"
_CONTRACT: Final = b"""contract_id = "c"
seal_names = false
leave_open = ["build"]
must_not_appear = ["conftest.py"]
tools = ["/opt/tools"]
[[protect]]
path = "tests"
exclude = ["cache"]
[[acceptance]]
id = "unit"
argv = ["python3", "-m", "unittest"]
[limits]
seconds = 60
"""
_PLAIN: Final = (
    b"Done.\n\n```console\n$ pytest -q\n12 passed in 0.31s\n[exit 0]\n$ make \\\n  lint\nexit code: 1\n```\n"
    b"\n> ```sh\n> $ no\n> ```\n",
    b"~~~bash\n$ cargo test\ntest result: ok. 4 passed; 0 failed\nexit status 0\n~~~\n```python\n$ no\n```\n",
)
_COMMON: Final = ("troth.observer.transcripts.common",)
_SAMPLED: Final = (
    ("claude-code", "claude-code", "session.jsonl", 6), ("claude-stream", "claude-stream", "stream.jsonl", 6),
    ("codex-exec", "codex-exec", "events.jsonl", 8), ("codex-rollout", "codex-rollout", "rollout.jsonl", 8),
    ("aider", "aider", "history.md", 40),
)  # fmt: skip
_MODULE: Final = {"claude-code": "claude", "claude-stream": "claude", "codex-exec": "codex", "codex-rollout": "codex"}
_CLAIMS: Final = (
    b'{"argv": ["python3", "-m", "unittest"], "exit": 0, "totals": "12/12"}\n'
    b'{"argv": ["ruff", "check", "."], "exit": 1}\n',
)

_OBSERVER: Final = (
    Reader("observer/strace", _strace, seeds.strace, ("troth.observer.reading", "troth.observer.trace")),
    *(
        Reader(f"observer/{name}", _transcript(name), seeds.transcripts(folder, file, size),
               (f"troth.observer.transcripts.{_MODULE.get(name, name)}", *_COMMON))
        for name, folder, file, size in _SAMPLED
    ),
    Reader("observer/plain", _transcript("plain"), lambda: _PLAIN,
           ("troth.observer.transcripts.plain", *_COMMON), (b"```\n", b"```sh\n", b"$ make\n", b"exit: 1\n")),
    Reader("observer/claims", _claims, lambda: _CLAIMS, ("troth.observer.claims",)),
    Reader("observer/junit", _counts(reports.parse_report), lambda: _JUNIT, ("troth.observer.reports",),
           (b"<testcase/>", b"<error/>", b"<testsuite>", b"</testsuite>", b"&amp;", b"&#0;", b"<![CDATA[", b"<!--")),
    Reader("observer/unittest-list", _counts(reports.parse_list), lambda: _UNITTEST, ("troth.observer.reports",)),
    Reader("observer/go-json", _counts(reports.parse_go), lambda: _GO, ("troth.observer.reports",)),
    Reader("observer/cargo-json", _counts(reports.parse_libtest), lambda: _CARGO, ("troth.observer.reports",)),
    Reader("observer/unittest-text", _counts(reports.parse_totals), lambda: _RAN, ("troth.observer.reports",)),
    Reader("observer/pytest-text", _counts(reports.parse_summary), lambda: _SUMMARY, ("troth.observer.reports",)),
    Reader("observer/totals", _totals, lambda: _PRINTED, ("troth.observer.totals",),
           (b"passed", b"failed", b"12/12", b"OK", b"1 error", b"(3)")),
    Reader("observer/shell", _shell, lambda: _TEXTS, ("troth.observer.shelltext", "troth.observer.shellwords"),
           (b"|", b"&&", b"$(", b")", b"<<E", b"<(", b"${x", b"}", b"((", b"[[", b"fi", b"done", b"esac", b"eval "),
           few=60),
    Reader("observer/contract-toml", lambda data: (contract_source.parse_source(data, "c.toml"), None)[1],
           lambda: [_CONTRACT, _CONTRACT_FILE.read_bytes()], ("troth.observer.contract_source",)),
)  # fmt: skip


# Ledger -------------------------------------------------------------------------------------------------------------


def _row(data: bytes) -> None:
    """The quick path gives the reference path's row and hash, or none."""
    quick, plain = fastpath.quick(data), fastpath.plain(data)
    value = parse_row(data)
    if quick is not None:
        _asserted(repr(quick[0]) == repr(value) and quick[1] == row_hash(value), "the quick path differs")
    if plain is not None:
        _asserted(repr(plain) == repr(value), "the plain path differs")


def _rows(data: bytes) -> None:
    """As `_row`, and a row that the reference refuses must not be taken by the quick path."""
    try:
        _row(data)
    except Refused:
        _asserted(fastpath.quick(data) is None and fastpath.plain(data) is None, "the quick path takes a refused row")
        raise


def _ledger(data: bytes) -> Answer:
    """Verification and replay of a whole file, given at once and in small pieces."""
    from troth.ledger.replay import Replay

    reader, run = chain.ChainReader(), Replay()
    reader.feed_all([data], run.apply)
    found = reader.finish()
    pieces = chain.verify_lines(data[at : at + 700] for at in range(0, len(data), 700))
    _asserted(
        (found.faults, found.warnings, found.verified) == (pieces.faults, pieces.warnings, pieces.verified),
        "pieces give another answer",
    )
    return found.faults[0].fault if found.faults else None


def _genesis(data: bytes) -> None:
    genesis.parse_genesis(data)


def _note(data: bytes) -> None:
    from ledger.test_checkpoint import KEY

    notes.open_note(data, [KEY])


def _checkpoint(data: bytes) -> None:
    from ledger.test_checkpoint import KEY

    checkpoint.read_checkpoint(data, [KEY])


def _proof(data: bytes) -> None:
    from ledger.test_checkpoint import KEY

    proof = checkpoint.parse_proof(data)
    if isinstance(proof, checkpoint.InclusionProof):
        checkpoint.check_inclusion(proof, [KEY])
    else:
        checkpoint.check_consistency(proof, [KEY])


def _stamp(data: bytes) -> Answer:
    from troth.stores.timestamps import decoded

    return None if decoded(data).status == 0 else "not_granted"


def _foreign(fields: foreign.Fields) -> Callable[[bytes], Answer]:
    def entry(data: bytes) -> None:
        value = strictjson.loads(data, strictjson.LEDGER_ROW)
        foreign.detect(value if isinstance(value, dict) else None, fields)
        foreign.candidate_of(value, fields, "agent:mender")

    return entry


def _v1(data: bytes) -> None:
    value = parse_row(data)
    importing.refuse_unfit(value)
    list(importing.chained([value]))


def _config(data: bytes) -> None:
    from troth.stores.workspace import parse_config

    parse_config(data, Path("config.yaml"))


def _genesis_seeds() -> list[bytes]:
    from ledger.genesis_keys import IDENTITY, WHOLE

    return [*seeds.files("genesis.key"), IDENTITY.encode(), WHOLE.encode()]


_YAML: Final = (
    b"&a", b"*a", b"!!int", b"? ", b"- ", b": ", b"<<: *a", b"|\n  x", b">-", b"{a: b}", b"[a, b]", b"'", b"%YAML 1.1",
)  # fmt: skip
_V1: Final = (
    b'{"id":"mem_1","op":"capture","ts":"2026-01-01T00:00:00Z","actor":"human:a","workspace":"w","payload":{"body":"x"}}',
    b'{"id":"op_2","op":"link","ts":"2026-01-01T00:00:00Z","actor":"human:a","payload":{"source":"mem_1","meta":{"k":1}}}',
)
_FOREIGN: Final = (
    b'{"source_key":"k1","body":"seen","kind":"observation","ts":"2026-01-01T00:00:00Z","actor":"human:a"}',
    b'{"id":7,"text":"seen","when":1760000000,"who":"human:a","more":[1,2]}',
    b'{"op":"annotate","source_key":"k","payload":{"body":"x","target":"mem_1"}}',
)
_NOTES: Final = ("troth.core.notes", "troth.ledger.checkpoint")

_CONFIG: Final = b"""workspace: shop
actor: human:reviewer
unhashed_prefix: 0
validators:
  technical: [python3, check.py]
  safety: {run: [make, check], sandbox: true}
genesis_signers: []
"""

_LEDGER: Final = (
    Reader("ledger/row", _rows, seeds.rows, ("troth.ledger.fastpath", "troth.ledger.rows", "troth.ledger.hashing")),
    Reader("ledger/file", _ledger, seeds.ledgers, ("troth.ledger.chain", "troth.ledger.fields"), few=40),
    Reader("ledger/genesis", _genesis, _genesis_seeds,
           ("troth.ledger.yamltree", "troth.ledger.genesis_sections", "troth.ledger.genesis"), _YAML, few=16),
    Reader("ledger/note", _note, seeds.notes, ("troth.core.notes",)),
    Reader("ledger/checkpoint", _checkpoint, seeds.notes, _NOTES),
    Reader("ledger/proof", _proof, seeds.proofs, (*_NOTES, "troth.ledger.merkle")),
    Reader("ledger/timestamp", _stamp, lambda: seeds.files("*.tsr"), ("troth.stores.timestamps",)),
    Reader("ledger/import", _foreign(foreign.Fields()), lambda: [*_FOREIGN, *seeds.rows()[:4]],
    ("troth.ledger.foreign",)),
    Reader("ledger/import-mapped", _foreign(foreign.Fields("text", "id", "who", "when", "mail:")), lambda: _FOREIGN,
           ("troth.ledger.foreign",)),
    Reader("ledger/import-v1", _v1, lambda: _V1, ("troth.ledger.importing",)),
    Reader("ledger/config", _config, lambda: [_CONFIG], ("troth.stores.workspace",), _YAML, few=40),
)  # fmt: skip
# Reviews, deals, knowledge, hooks, reviewers ------------------------------------------------------------------------


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

_OTHERS: Final = (
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
           (*_YAML, b"# h", b"[a](b.md)", b"---\n", b"[[x]]"), few=30),
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

READERS: Final[Sequence[Reader]] = (*_RECEIPTS, *_OBSERVER, *_LEDGER, *_OTHERS)
