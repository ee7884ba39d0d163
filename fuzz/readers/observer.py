"""Readers of what an agent, its tracer and the runners of its tests wrote."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import Any, Final

from fuzz import seeds
from fuzz.engine import Answer, Reader
from fuzz.readers.common import Slow, asserted
from troth.core.errors import Refused
from troth.observer import claims, contract_source, reading, reports, shelltext, totals
from troth.observer.transcripts import FORMATS, detect
from troth.receipts import records
from troth.receipts.kinds import Broken
from troth.receipts.strict import parse


def _strace(data: bytes) -> Answer:
    found = reading.read_steps(data.splitlines(keepends=True))
    return "torn" if found.torn else "unparsed" if found.unparsed else "complaints" if found.complaints else None


def _trace(data: bytes) -> Answer:
    """From the tracer's text to a record of what was observed, which keeps its rules whatever the text was."""
    from datetime import datetime

    from support.tracing import STARTED
    from troth.observer.events import read_lines
    from troth.observer.records import Origin, observation_record

    report = read_lines(
        data.splitlines(keepends=True), workspace="/ws", started=STARTED, agent_argv=["agent"], known_paths=["k"]
    )
    origin = Origin("cmt_00000001", "run_00000001", STARTED, datetime(9999, 12, 31, tzinfo=STARTED.tzinfo))
    record = observation_record(origin, report, [])
    try:
        records.observation(parse(record, "observation"))
    except (Broken, Refused) as fault:
        asserted(False, f"a trace gives a record that its own reader refuses: {fault}")
    return "lost" if report.tracer == "lost" else None if not report.unparsed_lines else "unparsed"


def _transcript(name: str) -> Callable[[bytes], Answer]:
    read = FORMATS[name].read

    def entry(data: bytes) -> Answer:
        found = read(BytesIO(data))
        if len(data) < 4000 and name != "claims":  # of longer ones the pieces would take most of the time
            asserted(read(Slow(data)) == found, "pieces give another transcript than the whole")
        detect(data)
        found.as_json()
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


def _checked(data: bytes) -> Answer:
    """The report of a check, read by the ledger's reader and held against the observer's, which knows more of it."""
    from xml.etree import ElementTree

    from troth.stores.check import read_junit

    try:
        passed, run = read_junit(data)
    except ValueError as fault:
        return type(fault).__name__
    other = reports.parse_report(data)
    root = ElementTree.fromstring(data)  # noqa: S314 - it was read already
    suites = [one for one in root.iter() if one.tag in ("testsuite", "testsuites")]
    cases = sum(child.tag == "testcase" for suite in suites for child in suite)
    if len(other.outcomes) == cases and b"<testcase" in data:
        mine = (other.passed, other.passed + other.failed + other.errors)
        nested = len([*root.iter("testcase")]) != cases
        asserted(nested or (passed, run) == mine, f"({passed}, {run}) here and {mine} by the other reader")
    return None if run else "no_tests"


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
_XML: Final = (
    b"<testcase/>", b"<error/>", b"<testsuite>", b"</testsuite>", b"&amp;", b"&#0;", b"<![CDATA[", b"<!--",
    b"<skipped/>", b"<testcase name='z'>", b"</testcase>", b"encoding='utf-16'",
)  # fmt: skip
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

_AIDER: Final = (
    b"\n# aider chat started at 2026-03-01 10:00:00\n\n> Aider v0.86.2  \n> Model: m  \n\n#### /run make test  \n"
    b"> Added 12 lines of output to the chat.\n\n#### !pytest -q  \n"
    b"> Add 1.2k tokens of command output to the chat? y  \n",
    b"#### /test pytest  \n\n#### mend it  \n\n> Running ruff check .  \n```bash\nmake\n```\n"
    b"> Run shell command? (Y)es  \n> Running make  \n> Added 1 line of output to the chat.  \n",
)
_READ: Final = (
    b'<testsuites><testsuite name="s"><testcase name="x"/><testcase name="y"><failure/></testcase></testsuite>'
    b"</testsuites>",
)

READERS: Final = (
    Reader("observer/strace", _strace, seeds.strace, ("troth.observer.reading", "troth.observer.trace")),
    Reader("observer/trace", _trace, seeds.traces,
           ("troth.observer.interpret", "troth.observer.journal", "troth.observer.events")),
    *(
        Reader(f"observer/{name}", _transcript(name), seeds.transcripts(folder, file, size),
               (f"troth.observer.transcripts.{_MODULE.get(name, name)}", *_COMMON))
        for name, folder, file, size in _SAMPLED
    ),
    Reader("observer/aider-typed", _transcript("aider"), lambda: _AIDER, ("troth.observer.transcripts.aider", *_COMMON),
           (b"#### /run ", b"#### !", b"  \n", b"> Running ", b"> Added 3 lines of output to the chat")),
    Reader("observer/claims-file", _transcript("claims"), lambda: _CLAIMS,
           ("troth.observer.transcripts.neutral", "troth.observer.claims")),
    Reader("observer/plain", _transcript("plain"), lambda: _PLAIN,
           ("troth.observer.transcripts.plain", *_COMMON), (b"```\n", b"```sh\n", b"$ make\n", b"exit: 1\n")),
    Reader("observer/claims", _claims, lambda: _CLAIMS, ("troth.observer.claims",)),
    Reader("observer/junit", _counts(reports.parse_report), lambda: _JUNIT, ("troth.observer.reports",),
           _XML),
    Reader("observer/junit-of-a-check", _checked, lambda: (*_JUNIT, *_READ), ("troth.stores.check",), _XML),
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
