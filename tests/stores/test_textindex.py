"""Finding: the index and the scan give one answer, and whatever is wrong with the index changes nothing but time."""

from __future__ import annotations

import os
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger.building import Ledger, lines
from support.ledgers import capture, commitment, fingerprint, fresh
from troth.core.instants import parse_instant
from troth.ledger.operations import Candidate
from troth.ledger.search import Query, words_of
from troth.stores import index, textindex
from troth.stores.finding import Found, find
from troth.stores.jsonl import JsonlStore


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own, for ledgers of any size and age."""
    monkeypatch.setattr(index, "cache_folder", lambda: tmp_path / "cache" / "troth")
    monkeypatch.setattr(index, "WORTH_BYTES", 0)
    return tmp_path / "cache" / "troth" / "ledgers"


@pytest.fixture
def store(tmp_path: Path, cache: Path) -> JsonlStore:
    """A small ledger with words to find."""
    store = fresh(tmp_path / "space")
    capture(store, "The EMPTY cart, checked twice")
    capture(store, "an empty-cart NOT found", "agent:worker")
    capture(store, "cart empty OR Straße")
    commitment(store, "mend the cart")
    return store


def asked(*texts: str, **fields: Any) -> Query:
    return Query(phrases=tuple(tuple(words_of(text)) for text in texts), **fields)


def bodies(found: Found) -> list[str]:
    return [row.value["payload"]["body"] for row in found.rows]


def scanned(store: JsonlStore, query: Query, **more: Any) -> Found:
    """Return the answer without an index."""
    return find(store, query, within=lambda snapshot: frozenset(row.line for row in snapshot.rows), **more)


def database(cache: Path) -> Path:
    (found,) = cache.glob("*.sqlite")
    return found


def test_words_and_phrases_whatever_their_case(store: JsonlStore) -> None:
    assert bodies(find(store, asked("cart", "EMPTY"))) == [
        "The EMPTY cart, checked twice", "an empty-cart NOT found", "cart empty OR Straße",
    ]  # fmt: skip
    assert bodies(find(store, asked("empty cart"))) == ["The EMPTY cart, checked twice", "an empty-cart NOT found"]
    assert bodies(find(store, asked("STRASSE"))) == ["cart empty OR Straße"]
    assert bodies(find(store, asked("car"))) == []
    assert find(store, asked("cart")).indexed
    assert not scanned(store, asked("cart")).indexed


@pytest.mark.parametrize(
    "text",
    ["empty OR twice", "NOT", 'cart" OR "twice', "words : cart", "ca*", "NEAR(empty cart)", "^the", "cart AND empty"],
)
def test_operators_of_the_search_language_are_plain_words(store: JsonlStore, text: str) -> None:
    found = find(store, asked(text))
    assert found.indexed
    assert bodies(found) == bodies(scanned(store, asked(text)))
    assert all(" ".join(words_of(text)) in " ".join(words_of(body)) for body in bodies(found))


def test_fields_are_joined_by_and(store: JsonlStore) -> None:
    store.append(
        Candidate(
            "capture", "agent:worker", {"body": "slow", "kind": "finding", "tags": ["perf", "net"]},
            trace={"parent": ["mem_00000001"]}, source_key="k:1", observationLevel="inductive",
            sourceIds=["mem_00000001"], semantic={"entities": ["Cart"], "intent": "Speed up", "domain": ["shop"]},
        )
    )  # fmt: skip
    whole = {
        "op": "capture", "kind": "finding", "actor": "agent:worker", "workspace": "w", "level": "inductive",
        "source_key": "k:1", "tags": ("net", "perf"), "entities": ("cART",), "domains": ("SHOP",), "intent": "speed UP",
        "id_prefix": "mem_", "since": parse_instant("2026-01-01T00:00:00Z"),
        "until": parse_instant("2027-01-01T00:00:00Z"),
    }  # fmt: skip
    assert bodies(find(store, asked("slow", **whole))) == ["slow"]
    wrong = {
        "op": "commit", "kind": "evidence", "actor": "agent:Worker", "workspace": "x", "level": "explicit",
        "source_key": "k:2", "tags": ("net", "Perf"), "entities": ("cart", "till"), "domains": ("sho",),
        "intent": "speed", "id_prefix": "mem_x", "since": whole["until"], "until": whole["since"], "state": "open",
    }  # fmt: skip
    for name, value in wrong.items():
        query = asked("slow", **{**whole, name: value})
        assert bodies(find(store, query)) == bodies(scanned(store, query)) == [], name


def test_commitments_by_state(store: JsonlStore) -> None:
    assert bodies(find(store, asked("cart", state="open"))) == ["mend the cart"]
    assert bodies(find(store, asked("cart", state="closed"))) == []


def test_the_newest_first_and_a_limit(store: JsonlStore) -> None:
    for answer in (find, scanned):
        found = answer(store, asked("cart"), newest=True, limit=2)
        assert (bodies(found), found.more) == (["mend the cart", "cart empty OR Straße"], True)
        found = answer(store, asked("cart"), limit=4)
        assert (len(found.rows), found.more) == (4, False)


def test_a_ledger_that_grew_is_added_to_and_another_one_is_read_anew(
    store: JsonlStore, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find(store, asked("cart"))
    node = database(cache).stat().st_ino
    covered: list[int] = []
    real = textindex._add
    monkeypatch.setattr(textindex, "_add", lambda *given: (covered.append(given[3].size), real(*given))[1])
    size = store.ledger_file.stat().st_size
    capture(store, "a late cart")
    assert bodies(find(store, asked("late"))) == ["a late cart"]
    assert covered == [size]
    assert database(cache).stat().st_ino == node
    other = fresh(store.ledger_file.parent.parent.parent / "other")
    for number in range(9):
        capture(other, f"another cart {number}")
    store.ledger_file.write_bytes(other.ledger_file.read_bytes())
    found = find(store, asked("cart"))
    assert found.indexed
    assert len(found.rows) == 9
    assert covered == [size, 0]


def test_an_unchanged_settled_ledger_is_not_read_for_it(
    store: JsonlStore, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "SETTLED_NANOSECONDS", 0)
    find(store, asked("cart"))
    monkeypatch.setattr(textindex, "_add", lambda *_: pytest.fail("it was added to"))
    monkeypatch.setattr(textindex, "_covered", lambda *_: pytest.fail("its digest was taken"))
    assert len(find(store, asked("cart")).rows) == 4


def _garbage(path: Path) -> None:
    path.write_bytes(b"no database at all" * 100)


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _foreign(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as made:
        made.execute("CREATE TABLE about (name, value)")
    path.chmod(0o600)


def _older(path: Path) -> None:
    with sqlite3.connect(path) as made:
        made.execute("UPDATE about SET value = 'old' WHERE name = 'format'")


def _bent(path: Path) -> None:
    with sqlite3.connect(path) as made:
        made.execute("UPDATE about SET value = 'x' WHERE name IN ('size', 'made')")


def _open_to_all(path: Path) -> None:
    path.chmod(0o666)


def _link(path: Path) -> None:
    target = path.with_name("elsewhere")
    path.rename(target)
    path.symlink_to(target)


def _truncated(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


@pytest.mark.skipif(os.name == "nt", reason="links and modes")
@pytest.mark.parametrize("harm", [_garbage, _empty, _foreign, _older, _bent, _open_to_all, _link, _truncated])
def test_a_harmed_index_is_made_anew(store: JsonlStore, cache: Path, harm: Any) -> None:
    expected = bodies(find(store, asked("cart")))
    harm(database(cache))
    assert bodies(find(store, asked("cart"))) == expected
    made = database(cache)
    assert not made.is_symlink()
    assert made.stat().st_mode & 0o777 == 0o600
    found = find(store, asked("cart"))
    assert found.indexed
    assert bodies(found) == expected


def test_an_index_that_points_wrong_is_caught_by_the_ledger(
    store: JsonlStore, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "SETTLED_NANOSECONDS", 0)
    expected = bodies(find(store, asked("cart")))
    with sqlite3.connect(database(cache)) as made:
        made.execute("UPDATE place SET start = start + 3")
    found = find(store, asked("cart"))
    assert bodies(found) == expected
    assert not found.indexed


def test_without_a_place_or_full_text_search_the_ledger_answers(
    store: JsonlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = bodies(scanned(store, asked("cart")))
    with monkeypatch.context() as patch:
        patch.setattr(textindex, "_SCHEMA", "CREATE VIRTUAL TABLE text USING fts_nobody_has (words)")
        found = find(store, asked("cart"))
        assert (bodies(found), found.indexed) == (expected, False)
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "sqlite3", None)
        found = find(store, asked("cart"))
        assert (bodies(found), found.indexed) == (expected, False)
    with monkeypatch.context() as patch:
        patch.setattr(index, "cache_folder", lambda: None)
        found = find(store, asked("cart"))
        assert (bodies(found), found.indexed) == (expected, False)
    with monkeypatch.context() as patch:
        patch.setattr(index, "cache_folder", lambda: Path(os.devnull, "nowhere"))
        found = find(store, asked("cart"))
        assert (bodies(found), found.indexed) == (expected, False)
    assert find(store, asked("cart")).indexed


def test_small_ledgers_and_other_questions_need_no_index(
    store: JsonlStore, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not find(store, asked(id_prefix="mem_")).indexed
    monkeypatch.setattr(index, "WORTH_BYTES", 1 << 20)
    assert len(find(store, asked("cart")).rows) == 4
    assert not cache.exists()


def test_a_broken_chain_and_an_open_end_are_scanned(store: JsonlStore) -> None:
    data = store.ledger_file.read_bytes()
    store.ledger_file.write_bytes(data[:-1])
    found = find(store, asked("mend"))
    assert (bodies(found), found.indexed, found.verification.ok) == (["mend the cart"], False, True)
    store.ledger_file.write_bytes(data.replace(b"twice", b"never"))
    found = find(store, asked("never"))
    assert (len(found.rows), found.indexed, found.verification.ok) == (1, False, False)


def test_nothing_is_written_beside_the_ledger(store: JsonlStore, cache: Path) -> None:
    before = fingerprint(store.ledger_file.parent.parent)
    find(store, asked("cart"))
    assert fingerprint(store.ledger_file.parent.parent) == before
    assert [path.suffix for path in cache.iterdir() if path.suffix != ".json"] == [".sqlite"]


def test_several_at_once(store: JsonlStore, cache: Path) -> None:
    def one(number: int) -> list[str]:
        own = JsonlStore.open(store.ledger_file)
        if number % 4 == 0:
            capture(own, f"cart {number}", "human:reviewer")
        return bodies(find(own, asked("cart", actor="human:reviewer")))

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(one, range(24)))
    assert all(len(answer) >= 3 for answer in answers)
    assert len(find(store, asked("cart", actor="human:reviewer"), limit=99).rows) == 3 + 6
    assert [path.suffix for path in cache.iterdir() if path.suffix != ".json"] == [".sqlite"]


WORDS = [
    "cart",
    "Cart",
    "CART",
    "ſ",
    "s",
    "Straße",
    "STRASSE",
    "İ",
    "i",
    "é",
    "e\u0301",
    "カート",
    "d1",
    "_",
    "a_b",
    "🚀",
    "-",
    "ﬁ",
]
TEXTS = st.one_of(st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join), st.text(max_size=6))
SOME = st.sampled_from(["a", "A", "é", "e\u0301", "ß", "ss", 'x" OR "y', ""])
FACTS = {
    "kind": st.sampled_from(["note", "finding"]),
    "tags": st.lists(SOME, max_size=2),
    "semantic": st.fixed_dictionaries({}, optional={"entities": st.lists(SOME, max_size=2), "intent": SOME}),
    "actor": st.sampled_from(["human:a", "human:A"]),
}
QUERIES = st.fixed_dictionaries(
    {"phrases": st.lists(TEXTS.map(lambda text: tuple(words_of(text))).filter(bool), max_size=2).map(tuple)},
    optional={
        "kind": st.sampled_from(["note", "finding", "observation"]),
        "tags": st.lists(SOME, max_size=1).map(tuple),
        "entities": st.lists(SOME, max_size=1).map(tuple),
        "intent": SOME,
        "actor": st.sampled_from(["human:a", "human:A"]),
        "op": st.sampled_from(["capture", "annotate"]),
    },
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TEXTS, st.fixed_dictionaries({}, optional=FACTS)), min_size=1, max_size=6),
       st.lists(QUERIES, min_size=1, max_size=4), st.booleans(), st.integers(0, 6))  # fmt: skip
def test_the_index_and_the_scan_give_one_answer(
    cache: Path, tmp_path: Path, rows: list[Any], queries: list[Any], newest: bool, first: int
) -> None:
    ledger = Ledger()
    for body, facts in rows:
        more = {name: value for name, value in facts.items() if name in ("kind", "tags")}
        envelope = {name: value for name, value in facts.items() if name == "semantic"}
        ledger.add("capture", facts.get("actor", "human:a"), envelope=envelope, **{**more, "body": body})
    path = tmp_path / "some.jsonl"
    # A part first, then the whole, so that growing is tried too.
    for part in (ledger.rows[:first], ledger.rows):
        path.write_bytes(lines(part))
        for asking in queries:
            query = Query(**asking)
            store = JsonlStore.open(path)
            found = find(store, query, newest=newest, limit=3)
            assert found.indexed == (textindex.can_narrow(query))
            expected = scanned(store, query, newest=newest, limit=3)
            assert ([row.line for row in found.rows], found.more) == (
                [row.line for row in expected.rows],
                expected.more,
            )
            plain = [number for number, row in enumerate(part, start=1) if meant_by_hand(row, asking)]
            assert [row.line for row in expected.rows] == (plain[::-1] if newest else plain)[:3]


def meant_by_hand(row: dict[str, Any], asking: dict[str, Any]) -> bool:
    """Tell whether a row is meant, word by word."""
    payload, semantic = row["payload"], row.get("semantic", {})
    body = words_of(payload["body"])
    for phrase in asking["phrases"]:
        if not any(tuple(body[at : at + len(phrase)]) == phrase for at in range(len(body))):
            return False
    wanted_kind = asking.get("kind", payload.get("kind", "observation"))
    same = [
        wanted_kind == payload.get("kind", "observation"),
        asking.get("actor", row["actor"]) == row["actor"],
        asking.get("op", row["op"]) == row["op"],
        set(asking.get("tags", ())) <= set(payload.get("tags", ())),
        {one for text in asking.get("entities", ()) for one in [alike(text)]}
        <= {alike(t) for t in semantic.get("entities", ())},
        "intent" not in asking or ("intent" in semantic and alike(asking["intent"]) == alike(semantic["intent"])),
    ]
    return all(same)


def alike(text: str) -> str:
    """Fold what the pool of short texts needs folded."""
    return text.replace("e\u0301", "é").casefold()
