"""Verifier, replay and admission against the independent reference model, over valid and hostile ledgers."""

from __future__ import annotations

import contextlib
import json
import random
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.building import ZERO, Ledger, plain_hash
from reference import ledger_admission, ledger_bytes, ledger_replay
from troth.core.errors import TrothError
from troth.core.strictjson import JsonFault
from troth.ledger import machine
from troth.ledger.chain import ChainReader, verify_lines
from troth.ledger.hashing import canonical_row
from troth.ledger.operations import Candidate, admit
from troth.ledger.replay import Replay
from troth.ledger.rows import parse_row

NOW = datetime(2026, 5, 4, tzinfo=UTC)
ACTORS = ("agent:worker", "agent:other", "human:reviewer")
WARNINGS = {
    "bom": "bom",
    "trailing_cr": "carriage_return",
    "blank_line": "blank_line",
    "no_final_newline": "unterminated",
    "envelope": "envelope",
    "unhashed_prefix": "unhashed_prefix",
}
"""Warnings of verification under the model's names; its others are a reader's remarks."""

OUTCOMES: Counter[str] = Counter()


# --- the two sides, in one shape


def ours(data: bytes, unhashed_prefix: int | None) -> dict[str, Any]:
    reader, run = ChainReader(unhashed_prefix=unhashed_prefix), Replay()
    reader.feed_all([data], run.apply)
    found, state = reader.finish(), run.state
    return {
        "faults": sorted(((f.line, f.id, f.fault) for f in found.faults), key=repr),
        "warnings": sorted(((w.line, w.id, w.warning) for w in found.warnings), key=repr),
        "numbers": (found.verified, found.total, found.unhashed, found.head),
        "anomalies": [(a.line, a.id, a.code, a.detail) for a in state.anomalies],
        "commitments": {
            name: {
                "state": record.state,
                "owner": record.owner,
                "evidence": record.evidence,
                "submission": record.submission.as_json() if record.submission else None,
                "duplicate_of": record.duplicate_of,
                "reopen_count": record.reopen_count,
            }
            for name, record in state.commitments.items()
        },
    }


def theirs(data: bytes, unhashed_prefix: int | None) -> dict[str, Any]:
    found, state = ledger_bytes.verify(data, unhashed_prefix), ledger_replay.replay(data)
    return {
        "faults": sorted(found["faults"], key=repr),
        "warnings": sorted(
            ((line, name, WARNINGS[what]) for line, name, what in found["warnings"] if what in WARNINGS), key=repr
        ),
        "numbers": (found["verified"], found["total"], found["unhashed"], found["head"]),
        "anomalies": state["anomalies"],
        "commitments": state["commitments"],
    }


def compare(data: bytes, unhashed_prefix: int | None = None) -> dict[str, Any]:
    mine, model = ours(data, unhashed_prefix), theirs(data, unhashed_prefix)
    assert mine == model, data.decode("utf-8", "replace")
    return mine


def our_answer(data: bytes, candidate: dict[str, Any]) -> tuple[str, Any] | None:
    reader, run = ChainReader(unhashed_prefix=0), Replay()
    reader.feed_all([ledger_bytes.without_torn_tail(data)], run.apply)
    found = reader.finish()
    numbers = iter(range(1 << 30))
    try:
        admit(
            Candidate.of(candidate),
            run.state,
            chain_ok=found,
            head_hash=found.last_hash,
            workspace="w",
            now=NOW,
            random_hex=lambda _: f"{next(numbers) + 0xF0000000:08x}",
        )
    except TrothError as refusal:
        return refusal.code, refusal.detail
    return None


def compare_answers(data: bytes, candidate: dict[str, Any]) -> tuple[str, Any] | None:
    mine = our_answer(data, candidate)
    model = ledger_admission.admit(data, candidate, "w", NOW, unhashed_prefix=0)
    assert mine == model, candidate
    return mine


# --- ledgers and operations, drawn from one source of randomness so that many rows stay cheap


USUAL = "capture annotate commit claim claim claim claim submit submit submit submit approve approve approve reopen"
USUAL_OPS = [*USUAL.split(), "release", "close", "close"]


class Author:
    """Writes rows that mostly make sense: an actor takes the next step of a commitment, or the wrong one."""

    def __init__(self, source: random.Random, oddity: float) -> None:
        self.random = source
        self.oddity = oddity
        self.ids: list[str] = []
        self.commits: list[str] = []
        self.captures: list[str] = []
        self.submits: list[str] = []

    def odd(self) -> bool:
        return self.random.random() < self.oddity

    def pick(self, names: list[str]) -> str:
        if not names or self.random.random() < 0.06:
            return self.random.choice([*self.ids[-5:], "mem_nobody00", "cmt_nobody00"])
        return self.random.choice(names[-4:])

    def candidate(self) -> dict[str, Any]:
        """Return an operation shaped like a row, without what tools fill."""
        choose = self.random.choice
        op = choose(USUAL_OPS)
        if not self.captures:
            op = "capture"
        elif not self.commits and op != "capture":
            op = "commit"
        payload: dict[str, Any] = {"body": choose(["b", "a/é \U0001f600", "x"])}
        if op in ("claim", "submit", "approve", "reopen", "release", "close"):
            payload["commitment"] = self.pick(self.commits)
        if op in ("submit", "close") and self.random.random() < 0.9:
            payload["evidence"] = self.pick(self.captures)
        if op == "close" and self.random.random() < 0.5:
            payload["duplicate_of"] = self.pick(self.commits)
            if self.random.random() < 0.5:
                payload.pop("evidence", None)
        if op == "commit":
            payload["source"] = self.pick(self.captures)
        if op == "annotate":
            payload["target"] = self.pick(self.ids)
        if op == "approve" and self.random.random() < 0.3:
            payload["meta"] = {"submission": self.pick(self.submits)}
        if op == "approve" and self.random.random() < 0.2:
            payload["evidence"] = self.pick(self.captures)
        if op in ("capture", "annotate") and self.random.random() < 0.2:
            payload["kind"] = choose(["finding", "learning", "event", "dismiss"])
        row: dict[str, Any] = {"op": op, "actor": choose(ACTORS[:2]) if self.random.random() < 0.85 else ACTORS[2]}
        row["payload"] = payload
        if self.random.random() < 0.2:
            row["trace"] = {"parent": [self.pick(self.ids) for _ in range(choose([0, 1, 1, 2]))]}
        if self.random.random() < 0.1:
            row["relations"] = [{"type": choose(["cites", "extends", "contradicts"]), "targetId": self.pick(self.ids)}]
        if self.random.random() < 0.1:
            row["sourceIds"] = [self.pick(self.ids)]
        if self.random.random() < 0.1:
            payload["refs"] = [self.pick(self.ids)]
        if self.random.random() < 0.1:
            row["source_key"] = choose(["k1", "k2", "k3"])
        return row

    def row(self, number: int) -> dict[str, Any]:
        """Return a row for the file, remembered as it will be read."""
        row = self.candidate()
        prefix = {"capture": "mem_", "commit": "cmt_", "annotate": "ann_"}.get(row["op"], "op_")
        row = {"id": f"{prefix}{number:08x}", "ts": "2026-01-01T00:00:00Z", "workspace": "w", **row}
        if self.random.random() < 0.03 and self.ids:
            row["id"] = self.random.choice(self.ids)
        self.remember(row)
        return self.spoil(row) if self.odd() else row

    def remember(self, row: dict[str, Any]) -> None:
        self.ids.append(row["id"])
        {"capture": self.captures, "commit": self.commits, "submit": self.submits}.get(row["op"], []).append(row["id"])

    def spoil(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the row with one or two members of it wrong in some way."""
        row = json.loads(json.dumps(row))
        for _ in range(self.random.choice([1, 1, 2])):
            place = row
            if isinstance(row.get("payload"), dict) and row["payload"] and self.random.random() < 0.6:
                place = row["payload"]
            name = self.random.choice([*place, *(ODD_PAYLOAD if place is not row else ODD_ENVELOPE)])
            if self.random.random() < 0.25:
                place.pop(name, None)
            else:
                place[name] = self.random.choice(ODD_VALUES + ([self.pick(self.ids)] * 4))
        return row


ODD_ENVELOPE = [
    "trace",
    "relations",
    "sourceIds",
    "semantic",
    "source_key",
    "syncScope",
    "observationLevel",
    "trust",
    "own",
]
ODD_ENVELOPE += ["x_own", "op", "id"]
ODD_PAYLOAD = [
    "body",
    "kind",
    "source",
    "commitment",
    "evidence",
    "target",
    "duplicate_of",
    "tags",
    "refs",
    "meta",
    "own",
]
ODD_PAYLOAD += ["x_own", "summary", "memory"]
ODD_VALUES: list[Any] = [
    None, "", "x", " ", 0, 1, -1, 1.5, True, False, [], {}, ["x"], [""], [1], [None], {"a": 1}, {"parent": []},
    {"parent": ["x"]}, {"parent": "x"}, {"parent": [1]}, {"parent": [""]}, {"parent": None}, {"causalDepth": 1},
    {"causalDepth": -1}, {"children": ["x"]}, [{"type": "cites", "targetId": "x"}], [{"type": "hugs", "targetId": "x"}],
    [{"type": "cites"}], [{}], {"entities": ["a"]}, {"entities": "a"}, {"intent": 1}, {"submission": "x"},
    {"submission": 1}, "finding", "event", "claim", "capture", "close", "link", "dismiss", "triage", "destroy", "local",
    "cloud", "explicit", "deductive", 2**53, 2**60, "2026-01-01T00:00:00+00:00", "2026-02-30T00:00:00Z", "human:x",
    "team:x", "a b", "mem_00000001", "cmt_00000002",
]  # fmt: skip


def ledger_of(source: random.Random, rows: int, oddity: float) -> tuple[Ledger, Author]:
    ledger, author = Ledger(), Author(source, oddity)
    prefix = source.choice([0, 0, 0, 2]) if oddity else 0
    for number in range(1, rows + 1):
        row = author.row(number)
        if oddity and number <= prefix:
            if source.random() < 0.5 and row.get("op") == "annotate":
                row["op"] = source.choice(["link", "dismiss", "triage"])
            ledger.put({name: row[name] for name in row if name != "workspace"}, hashed=False)
        else:
            ledger.put(row)
    return ledger, author


def mangled(source: random.Random, ledger: Ledger) -> bytes:
    """Return the file with faults in framing, links, hashes or bytes."""
    rows = [*ledger.rows]
    for _ in range(source.choice([0, 1, 2])):
        if not rows:
            break
        at = source.randrange(len(rows))
        match source.randrange(8):
            case 0:
                del rows[at]
            case 1:
                rows.insert(source.randrange(len(rows) + 1), rows[at])
            case 2:
                rows[at] = {
                    k: v
                    for k, v in rows[at].items()
                    if k not in source.choice([("hash",), ("prevHash",), ("hash", "prevHash")])
                }
            case 3:
                links = [ZERO, "a" * 64, "A" * 64, 5, 1, True, None, "", "x", *(r.get("hash") for r in rows)]
                rows[at] = {**rows[at], source.choice(["hash", "prevHash"]): source.choice(links)}
            case 4:
                rows[at] = {**rows[at], "actor": "human:thief"}
            case 5:
                rows[at] = {**rows[at], "op": source.choice(["destroy", None, "link"])}
                rows[at]["hash"] = plain_hash(rows[at])
            case 6:
                rows[at], rows[-1] = rows[-1], rows[at]
            case 7:
                odd = source.choice([1, True, 1.0, "1", "A" * 64, ZERO, [1]])
                rows[at] = {**rows[at], "hash": odd}
                if at + 1 < len(rows):
                    rows[at + 1] = {**rows[at + 1], "prevHash": source.choice([odd, 1, True, ZERO])}
    data = bytearray()
    for row in rows:
        spaced = source.random() < 0.1
        text = json.dumps(row, ensure_ascii=source.random() < 0.1, separators=None if spaced else (",", ":"))
        data += text.encode() + source.choice([b"\n"] * 12 + [b"\r\n", b"\n\n", b"\r\r\n"])
    match source.randrange(10):
        case 0:
            data[:0] = b"\xef\xbb\xbf"
        case 1:
            del data[-1:]
        case 2:
            data = data[: source.randrange(len(data) + 1)]
        case 3 | 4 if data:
            data[source.randrange(len(data))] = source.choice(b'\x00\n\r "1\\{}[]\xff,:e')
    return bytes(data)


# --- the comparisons

seeds = st.integers(0, 2**40)


@settings(max_examples=350, deadline=None)
@given(seeds, st.integers(0, 24), st.sampled_from([0.0, 0.15, 0.5]))
def test_ledgers(seed: int, rows: int, oddity: float) -> None:
    source = random.Random(seed)
    ledger, _ = ledger_of(source, rows, oddity)
    found = compare(ledger.data, source.choice([None, 0, 2]))
    for anomaly in found["anomalies"]:
        OUTCOMES[f"anomaly {anomaly[2]}"] += 1
    for record in found["commitments"].values():
        OUTCOMES[f"state {record['state']}"] += 1


@settings(max_examples=350, deadline=None)
@given(seeds, st.integers(0, 10))
def test_mangled_ledgers(seed: int, rows: int) -> None:
    source = random.Random(seed)
    ledger, _ = ledger_of(source, rows, source.choice([0.0, 0.2]))
    data = mangled(source, ledger)
    found = compare(data, source.choice([None, 0, 1, 2]))
    for fault in found["faults"]:
        OUTCOMES[f"fault {fault[2]}"] += 1
    OUTCOMES["fault none"] += not found["faults"]
    head = source.choice([found["numbers"][3], ZERO])
    ours_ok = verify_lines(data, expect_head=head).ok
    assert ours_ok == (not ledger_bytes.verify(data, expect_head=head)["faults"])


@settings(max_examples=200, deadline=None)
@given(seeds, st.integers(2, 18), st.sampled_from([0.0, 0.0, 0.4, 1.0]))
def test_candidates(seed: int, rows: int, oddity: float) -> None:
    source = random.Random(seed)
    ledger, author = ledger_of(source, rows, 0.0)
    ledger.rows[:] = _without_repeated_ids(ledger)
    data = ledger.data if source.random() < 0.93 else mangled(source, ledger)
    author.oddity = oddity
    for _ in range(12):
        candidate = author.candidate()
        if source.random() < 0.1:
            candidate["id"] = source.choice([*author.ids, "mem_0123456789abcdef", "op_zzzzzzzz", "x"])
        if author.odd():
            candidate = author.spoil(candidate)
        answer = compare_answers(data, candidate)
        OUTCOMES["admitted" if answer is None else f"refused {answer[0]} {answer[1]}"] += 1


def _without_repeated_ids(ledger: Ledger) -> list[dict[str, Any]]:
    seen: set[str] = set()
    fresh = Ledger()
    for row in ledger.rows:
        if row["id"] not in seen:
            seen.add(row["id"])
            fresh.put({name: value for name, value in row.items() if name not in ("hash", "prevHash")})
    return fresh.rows


def test_the_comparison_reached_everything() -> None:
    """Prints what was met; every code, fault and state has to be among it."""
    print(dict(sorted(OUTCOMES.items())))
    if not OUTCOMES:
        pytest.skip("the tests before were not run in this process")
    met = " ".join(OUTCOMES)
    for state in machine.STATES:
        assert f"state {state}" in met
    for fault in (
        "malformed", "torn_tail", "duplicate_id", "content_mismatch", "missing_ancestor", "link_mismatch",
        "unhashed_after_cutover", "unhashed_count", "none",
    ):  # fmt: skip
        assert f"fault {fault}" in met
    for code in (
        "E_INVALID_OP None", "E_MISSING_FIELD commitment", "E_CONSTRAINT_VIOLATED bad_value", "E_CHAIN_BROKEN None",
        "E_CONSTRAINT_VIOLATED trust_self_reported", "E_CONSTRAINT_VIOLATED bad_state", "E_DUPLICATE_ID None",
        "E_CITATION_REQUIRED None", "E_REF_NOT_FOUND absent", "E_REF_NOT_FOUND wrong_kind", "E_ALREADY_CLOSED None",
        "E_ALREADY_CLAIMED None", "E_NOT_OWNER None",
    ):  # fmt: skip
        assert f"refused {code}" in met
    assert OUTCOMES["admitted"] > 100


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from([1e-5, 1e16, 0.0001, 123456789.25, -0.0, "\x7f/\\", "é\U0001f600"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(st.dictionaries(st.text(max_size=6), json_values, max_size=5))
def test_canonical_forms(value: dict[str, Any]) -> None:
    blanked = {**value, "hash": "", "prevHash": ""}
    assert canonical_row(value).decode("ascii") == ledger_bytes.canonical(blanked)


@settings(max_examples=350, deadline=None)
@given(
    st.binary(max_size=40)
    | st.text('{}[]":,\\u0123456789abcdefE+-. \t\r\n/trulsnA', max_size=50).map(str.encode)
    | st.builds(lambda v, cut: json.dumps(v).encode()[:cut], json_values, st.integers(0, 60))
)
def test_parsing(raw: bytes) -> None:
    for text in (raw, b'{"a":' + raw + b"}"):
        try:
            mine: Any = parse_row(text)
        except JsonFault:
            mine = None
        try:
            model: Any = ledger_bytes.parse_row(text)
        except ledger_bytes.Malformed:
            model = None
        assert repr(mine) == repr(model)


# --- the comparison itself can fail


def many_ledgers(count: int) -> Iterator[bytes]:
    for seed in range(count):
        yield ledger_of(random.Random(seed), 24, 0.1)[0].data


MANY = list(many_ledgers(60))


def differs() -> bool:
    return any(ours(data, None) != theirs(data, None) for data in MANY)


def test_honest_sides_agree() -> None:
    assert not differs()


CELLS = [(row, column) for row, cells in machine.TABLE.items() for column in cells]


@pytest.mark.parametrize(("row", "column"), CELLS)
def test_one_wrong_cell_is_noticed(row: Any, column: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    right = machine.TABLE[row][column]
    wrong = machine.Cell("closed", "close") if right.to is None else machine.Cell(code="E_NOT_OWNER")
    monkeypatch.setitem(machine.TABLE[row], column, wrong)
    assert differs()


@pytest.mark.parametrize(
    ("name", "replacement"),
    [
        ("table", lambda state, op, is_owner, duplicate: None),
        (
            "unknown_commitment",
            lambda book, named: None if named in book.commitments else ("E_REF_NOT_FOUND", "absent"),
        ),
        ("ungated", lambda row: None),
        ("already_used", lambda book, row: None),
    ],
)
def test_a_wrong_model_is_noticed(name: str, replacement: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_replay, name, replacement)
    with contextlib.suppress(KeyError, TypeError):  # a model that applies what it must not may stumble over it
        assert differs()
