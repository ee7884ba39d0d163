"""Mutated members: honest drafts bent by a seeded source of chance, in values, in bytes and in what names them."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable
from typing import Any

from receipts.faults import NOT_ARGVS, NOT_DIGESTS, NOT_EXITS, NOT_INSTANTS, NOT_PATHS
from support.receipt_members import (
    CHECKS,
    HONEST,
    LINT,
    MUTATIONS,
    STEMS,
    TEST,
    Draft,
    at,
    event,
    receipt_value,
    sha,
)

WORDS: tuple[Any, ...] = (
    *NOT_DIGESTS, *NOT_PATHS, *NOT_INSTANTS, *NOT_ARGVS, *NOT_EXITS,
    *MUTATIONS,
    "exec", "read", "complete", "incomplete", "unknown", "independent", "self_reported", "PEER",
    "EXTERNAL",     "docker", "bubblewrap", "lost", "file", "directory", "supported", "contradicted",
    "not_established", "agent",
    "observer", "verifier", "claim-1", "run-1", "e1", "e2", "e3", "e4", "tests", "tests/test_a.py",
    "setup.cfg", "cache",
    "contract.json", "tree.json", "/x/site-packages/y", "reward.json", "a\ud800", "é", "", " ",
    0, 1, -1, 2, 7, 1.0, -0.0, 0.5, 1e400, 2**53, 2**64, 10**40, True, False, None, [], {}, [[]], [{}],
    {"": None},
    TEST, LINT, ["x"], at(0), at(1), at(5), at(3599), "2026-03-01T11:00:00Z", "2026-03-01T11:00:01Z",
    sha("x"), sha("app"),
)  # fmt: skip
"""Values that mean something somewhere, and near misses of them."""


def somewhere(value: Any, chance: random.Random) -> Any:
    """Return a non-empty object or array of the value, met on a random walk from the top; ``None`` if there is none."""
    if not isinstance(value, dict | list) or not value:
        return None
    while True:
        inner = [item for item in (value.values() if isinstance(value, dict) else value) if item]
        inner = [item for item in inner if isinstance(item, dict | list)]
        if not inner or chance.random() < 0.35:
            return value
        value = chance.choice(inner)


def bend(value: Any, chance: random.Random) -> Any:
    """Return a copy with one small change somewhere."""
    value = copy.deepcopy(value)
    holder = somewhere(value, chance)
    if holder is None or chance.random() < 0.02:
        return copy.deepcopy(chance.choice(WORDS))
    names = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    name = chance.choice(names)
    other = somewhere(value, chance)
    material = copy.deepcopy(chance.choice([*WORDS, *(other.values() if isinstance(other, dict) else other)]))
    move = chance.randrange(7)
    if move == 0:
        del holder[name]
    elif move == 1 and isinstance(holder, list):
        holder.insert(chance.randrange(len(holder) + 1), material)
    elif move == 1:
        holder[chance.choice([*(word for word in WORDS if isinstance(word, str)), *names])] = material
    elif move == 2 and isinstance(holder, list):
        holder.append(copy.deepcopy(holder[name]))
    elif move == 2:
        holder[chance.choice(["", "more", "exit", "path", "origin", "exclude", "gaps"])] = holder.pop(name)
    elif move == 3 and isinstance(holder, list):
        chance.shuffle(holder)
    elif move == 3 and isinstance(holder[name], int):
        holder[name] += chance.choice([-1, 1])
    elif move == 4 and isinstance(holder[name], str):
        text = holder[name]
        cut = chance.randrange(len(text) + 1)
        holder[name] = (
            text[:cut] + chance.choice(["", "/", "0", "A", "\0", "..", "é", "\ud800", "\n"]) + text[cut + 1 :]
        )
    else:
        holder[name] = material
    return value


def layout(value: Any, chance: random.Random) -> bytes:
    """Write a value in one of the layouts that writers use, sometimes with a name repeated or a token misplaced."""
    style = chance.randrange(6)
    text = json.dumps(
        value,
        indent=2 if style < 3 else None,
        sort_keys=style in (0, 3),
        separators=(",", ":") if style == 4 else None,
        ensure_ascii=style != 5,
    )
    if chance.random() < 0.8:
        text += "\n"
    data = text.encode("utf-8", "surrogatepass")
    if chance.random() < 0.05:
        data = spoil(data, chance)
    return data


_TOKENS = (
    b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-0", b"01", b"1.", b'"', b"\\", b",", b":", b"{", b"}", b"[", b"]",
    b" ", b"\t", b"\x00", b"\xff", b"\xef\xbb\xbf", b"\\u0022:", b'\\":', b'" :', b"\\ud800", b"null", b"/", b"'",
    b"99999999999999999999", b'"a":1,"a":1,', b'"\\u0061":1,"a":1,', b'{"a":1,"a":1}', b'{"a":[],"a" : [ ]}',
)  # fmt: skip


def spoil(data: bytes, chance: random.Random) -> bytes:
    """Return the bytes with one small change: a token put in, a stretch removed or repeated, a byte changed."""
    cut = chance.randrange(len(data) + 1)
    move = chance.randrange(5)
    if move <= 1:
        # After a bracket or a comma a token is likelier to be read as one.
        stops = [place + 1 for place, byte in enumerate(data) if byte in b"{[,:"]
        cut = chance.choice(stops) if stops and chance.random() < 0.8 else cut
        return data[:cut] + chance.choice(_TOKENS) + data[cut:]
    length = chance.choice([1, 1, 2, 8, 64])
    if move == 2:
        return data[:cut] + data[cut + length :]
    if move == 3:
        return data[:cut] + data[cut : cut + length] + data[cut:]
    return data[:cut] + bytes([chance.randrange(256)]) + data[cut + 1 :]


def draft_of(chance: random.Random) -> Draft:
    """Return an honest or dishonest draft, sound in every record."""
    draft = Draft()
    if chance.random() < 0.6:
        draft.launched()
    if chance.random() < 0.3:
        draft.external()
    changes: list[Callable[[], Any]] = [
        lambda: draft.add_events(
            event(5, "write", path=chance.choice(["tests/test_a.py", "src/b.py", "tests/cache/y"]))
        ),
        lambda: draft.add_events(event(6, "exec", argv=chance.choice([TEST, LINT]), exit=chance.choice([0, 1]))),
        lambda: draft.add_events(event(7, "exec", argv=LINT)),
        lambda: draft.add_events(event(8, "write", path="src/c.py", origin=chance.choice(["e2", "e4"]))),
        lambda: draft.add_events(event(9, "rename", path="src/b.py", target="setup.cfg")),
        lambda: draft.claim({"id": "c1", "argv": TEST, "exit": 0}, {"id": "c2", "argv": LINT, "exit": 1}),
        draft.claim,
        lambda: (draft.values["observation"].update(coverage="unknown"), draft.values["observation"].pop("gaps", None)),
        lambda: draft.values["observation"].update(coverage="incomplete", gaps=[{"start": at(0), "end": at(9)}]),
        lambda: draft.values["launch_receipt"].update(coverage="incomplete"),
        lambda: draft.values["launch_receipt"]["sensors"]["join"].update(unattributed=chance.choice([0, 1, ["x"]])),
        lambda: draft.values["launch_receipt"].update(
            {chance.choice(["launch_sha256", "tree_sha256", "claim_id", "observation_sha256"]): sha("x")}
        ),
        lambda: draft.values["tree"]["files"].update({"tests/test_a.py": sha("weaker")}),
        lambda: draft.values["grade"]["results"][1].update(exit=1),
        lambda: draft.values["contract"]["adequacy"].update(killed=0),
        lambda: draft.values["capability"]["visible_event_types"].remove("exec"),
        lambda: draft.values["launch_receipt"].update(coverage="unknown"),
        lambda: draft.values["launch_receipt"]["sensors"]["external_effects"].append(
            {"type": "write", "time": at(2), "paths": [chance.choice(["/tmp/a", "/x/a.pth"])]}
        ),
    ]
    for change in chance.sample(changes, chance.choice([0, 0, 0, 1, 1, 2, 3])):
        change()
    draft.values["observation"]["events"].sort(key=lambda one: one["step"])
    return draft


Check = Callable[[dict[str, bytes], Any], dict[str, Any]]


def mutated(chance: random.Random, check: Check) -> tuple[dict[str, bytes], list[str] | None]:
    """Return a mutated member and the checks to name for it.

    Args:
        chance: where the changes come from.
        check: gives the result that an unbent receipt should state.
    """
    draft = draft_of(chance)
    if chance.random() < 0.06:
        files = draft.statement()
        return _bend_files(files, chance, ["contract.json", "statement.json"]), None
    for _ in range(chance.choice([0, 0, 1, 1, 1, 2])):
        kind = chance.choice(list(draft.values))
        data = layout(bend(draft.values[kind], chance), chance)
        # Digests that the draft fills in are kept where the record is still whole; so bend what it would fill.
        if kind in ("tree", "grade", "launch_receipt") and chance.random() < 0.8:
            try:
                draft.values[kind] = json.loads(data)
            except ValueError:
                draft.text[kind] = data
            else:
                continue
        draft.text[kind] = data
    try:
        files = draft.seal()
    except (TypeError, AttributeError, UnicodeEncodeError, KeyError):
        return mutated(chance, check)
    policies = [f"{stem}.{which}.json" for stem in STEMS for which in ("case", "policy")]
    if chance.random() < 0.35:
        files = _bend_files(files, chance, policies)
    names = list(CHECKS)
    if chance.random() < 0.65:
        result = check(files, names)
        receipt = receipt_value(draft, files, result if "checks" in result else HONEST)
        predicate = receipt["predicate"]
        if chance.random() < 0.2:
            contract = chance.choice([predicate["records"]["contract"]["sha256"], "x"])
            predicate["verifier_isolation"] = {"contract_sha256": contract}
            predicate["stop_decision"] = {"action": "stop", "reason": "x"}
            predicate["policy"] = {"table_sha256": sha("x")}
        if chance.random() < 0.3:
            receipt["predicate"] = bend(predicate, chance)
        elif chance.random() < 0.1:
            receipt = bend(receipt, chance)
        files["receipt.json"] = layout(receipt, chance)
    else:
        chance.shuffle(names)
        names = names[: chance.choice([1, 2, 3, 3])]
    if chance.random() < 0.05:
        files.pop(chance.choice(list(files)))
    if chance.random() < 0.08:
        name = chance.choice(list(files))
        files[name] = spoil(files[name], chance)
    return files, names


def _bend_files(files: dict[str, bytes], chance: random.Random, names: list[str]) -> dict[str, bytes]:
    for _ in range(chance.choice([0, 1, 1, 2])):
        name = chance.choice(names)
        try:
            value = json.loads(files[name])
        except ValueError:
            continue
        files[name] = layout(bend(value, chance), chance)
    return files
