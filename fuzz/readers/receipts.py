"""Readers of done records, envelopes, bundles and what a reader is told to believe."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fuzz import seeds
from fuzz.engine import Answer, Reader
from fuzz.readers.common import asserted
from troth.core import notes
from troth.core.errors import Refused
from troth.receipts import bundles, deciding, demands, envelopes, pinning, verify
from troth.receipts.member import FILES, MappingMember
from troth.receipts.reader import MemberReader
from troth.receipts.statements import read_contract_statement
from troth.receipts.strict import parse

_RECORD: Final = ("troth.receipts.records", "troth.receipts.strict", "troth.core.strictjson")
_LAUNCH: Final = ("troth.receipts.launch", "troth.receipts.strict", "troth.core.strictjson")


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
        asserted(isinstance(found, Refused) and found.code == fault.code, "the two ways refuse differently")
        raise
    asserted(repr(found) == repr(expected), "the two ways read different values")


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
    asserted(again == envelope, "an envelope does not come back")


def _opened(data: bytes) -> None:
    from receipts.test_envelopes import ALICE, PAYLOAD

    payload, _ = envelopes.opened(envelopes.parse_envelope(data), demands.demand([ALICE.verifier]))
    asserted(payload == PAYLOAD, "a payload that nobody signed was handed out")


def _key(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    if text.startswith("PRIVATE"):
        notes.parse_signer(text)
    else:
        key = notes.parse_verifier(text)
        asserted(notes.parse_verifier(str(key)) == key, "a key does not come back")


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

READERS: Final = (
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
