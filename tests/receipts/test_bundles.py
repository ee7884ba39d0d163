"""Bundles and identities as bytes and words: strict reading, and what one counts for once somebody vouched."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipts.mutate import spoil
from troth.core.errors import DoesNotHold, NotEstablished, Refused, TrothError
from troth.core.notes import COSIGNATURE, ED25519, Signer
from troth.receipts import bundles
from troth.receipts.bundles import CODES, Vouched, found_in, parse_bundle
from troth.receipts.demands import Identity, Signers, demand, identity, parse_identities, read_identities, settled
from troth.receipts.envelopes import CODES as ENVELOPE_CODES
from troth.receipts.envelopes import PAYLOAD_TYPE

PAYLOAD = b'{"_type": "https://in-toto.io/Statement/v1"}\n'
LOGIN = "https://login.example.com"
ALICE = Identity("alice@example.com", LOGIN)
BOB = Identity("bob@example.com", LOGIN)
WITNESS = Identity("observer@example.com", LOGIN, "witness")
KEY = Signer("example.com/key", ED25519, bytes([1]) * 32).verifier
WITNESS_KEY = Signer("example.com/witness", COSIGNATURE, bytes([2]) * 32).verifier


def plain() -> dict[str, Any]:
    """A bundle in the shape that is looked at here; its certificate is nobody's."""
    return {
        "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
        "verificationMaterial": {
            "certificate": {"rawBytes": "AA=="},
            "tlogEntries": [{"kindVersion": {"kind": "dsse", "version": "0.0.1"}}],
        },
        "dsseEnvelope": {
            "payload": base64.b64encode(PAYLOAD).decode(),
            "payloadType": PAYLOAD_TYPE,
            "signatures": [{"sig": "AAAA"}],
        },
    }


def parsed(value: Any) -> bundles.Bundle:
    return parse_bundle(json.dumps(value).encode())


def test_a_bundle_is_read() -> None:
    bundle = parsed(plain())
    assert (bundle.envelope.payload, bundle.envelope.payload_type) == (PAYLOAD, PAYLOAD_TYPE)
    assert json.loads(bundle.data) == plain()
    logged = plain()
    logged["verificationMaterial"]["tlogEntries"][0]["kindVersion"] = {"kind": "hashedrekord", "version": "0.0.2"}
    assert parsed(logged).envelope == bundle.envelope


def _entry(change: Callable[[dict[str, Any]], object]) -> Callable[[dict[str, Any]], object]:
    return lambda value: change(value["verificationMaterial"]["tlogEntries"][0])


BROKEN: list[tuple[str, str, Callable[[dict[str, Any]], object]]] = [
    ("another media type", "E_BUNDLE_MALFORMED", lambda b: b.update(mediaType="application/json")),
    ("no media type", "E_BUNDLE_MALFORMED", lambda b: b.pop("mediaType")),
    ("signs a file", "E_BUNDLE_MALFORMED", lambda b: b.update(messageSignature=b.pop("dsseEnvelope"))),
    ("the envelope is none", "E_BUNDLE_MALFORMED", lambda b: b.update(dsseEnvelope=[])),
    ("no payload", "E_BUNDLE_MALFORMED", lambda b: b["dsseEnvelope"].pop("payload")),
    ("no signature", "E_BUNDLE_MALFORMED", lambda b: b["dsseEnvelope"].update(signatures=[])),
    ("two signatures", "E_BUNDLE_MALFORMED", lambda b: b["dsseEnvelope"]["signatures"].append({"sig": "BBBB"})),
    ("loose base64", "E_BUNDLE_MALFORMED", lambda b: b["dsseEnvelope"].update(payload=" AAAA")),
    ("another type", "E_ENVELOPE_TYPE", lambda b: b["dsseEnvelope"].update(payloadType="application/json")),
    ("another type, no JSON", "E_ENVELOPE_TYPE", lambda b: b["dsseEnvelope"].update(payload="/w==", payloadType="x")),
    ("no material", "E_BUNDLE_MALFORMED", lambda b: b.pop("verificationMaterial")),
    ("no log entry", "E_BUNDLE_MALFORMED", lambda b: b["verificationMaterial"].update(tlogEntries=[])),
    ("two log entries", "E_BUNDLE_MALFORMED", lambda b: b["verificationMaterial"]["tlogEntries"].append({})),
    ("no kind", "E_BUNDLE_MALFORMED", _entry(lambda e: e.pop("kindVersion"))),
    ("a kind that is a list", "E_BUNDLE_MALFORMED", _entry(lambda e: e["kindVersion"].update(kind=["dsse"]))),
    ("a kind of old", "E_BUNDLE_KIND", _entry(lambda e: e["kindVersion"].update(kind="intoto", version="0.0.2"))),
]  # fmt: skip


@pytest.mark.parametrize(("code", "change"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN])
def test_what_is_no_bundle_is_refused(code: str, change: Callable[[dict[str, Any]], object]) -> None:
    value = plain()
    change(value)
    with pytest.raises(TrothError) as fault:
        parsed(value)
    assert fault.value.code == code
    assert code in CODES | ENVELOPE_CODES


def test_bytes_that_are_no_json_object_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = json.dumps(plain()).encode()
    twice = honest.replace(b'{"mediaType"', b'{"mediaType": "application/json", "mediaType"', 1)
    deep = b"[" * 40 + b"]" * 40
    for data in (b"", honest[:-1], honest + b"{}", b"[]", b"\xff", twice, deep):
        with pytest.raises(Refused) as fault:
            parse_bundle(data)
        assert fault.value.code == "E_BUNDLE_MALFORMED"
    small = bundles.Limits(max_bytes=len(honest), max_depth=16, refuse_overflow=False)
    monkeypatch.setattr(bundles, "_LIMITS", small)
    assert parse_bundle(honest).envelope.payload == PAYLOAD
    with pytest.raises(Refused, match="more than the limit"):
        parse_bundle(honest + b" ")


@given(st.integers(0, 1 << 32))
def test_nothing_but_our_errors_comes_out(seed: int) -> None:
    data = spoil(json.dumps(plain()).encode(), random.Random(seed))
    try:
        came = parse_bundle(data).envelope.payload_type
    except TrothError as fault:
        came = fault.code
    assert came in {PAYLOAD_TYPE, *CODES, *ENVELOPE_CODES}


# --- what a bundle counts for ---


def said(who: Identity, fits: bool = True, payload: bytes = PAYLOAD) -> Vouched:
    return Vouched(who.name, who.issuer, fits, "" if fits else "why", (PAYLOAD_TYPE, payload) if fits else None)


def test_who_is_vouched_for_decides() -> None:
    bundle = parsed(plain())
    assert found_in(bundle, said(ALICE), [BOB, ALICE]) == Signers((ALICE,))
    assert found_in(bundle, said(ALICE, fits=False), [ALICE]) == Signers((), (str(ALICE),), 0, ("why",))
    for other in (
        Identity("Alice@example.com", LOGIN),
        Identity("alice@example.com.example.org", LOGIN),
        Identity("alice@example.co", LOGIN),
        Identity("alice@example.com", f"{LOGIN}/"),
        Identity("alice@example.com", "https://LOGIN.example.com"),
    ):
        found = found_in(bundle, said(other), [ALICE])
        assert (found.verified, found.bad, found.unknown) == ((), (), 1)
    assert found_in(bundle, Vouched("alice@example.com", None, True, "", (PAYLOAD_TYPE, PAYLOAD)), [ALICE]).unknown == 1
    assert found_in(bundle, Vouched(None, LOGIN, False, "x" * 10_000), [ALICE]).reasons == ("x" * bundles.MAX_REASON,)


def test_what_the_signature_is_over_is_what_stands_here() -> None:
    with pytest.raises(Refused) as fault:
        found_in(parsed(plain()), said(ALICE, payload=b"other"), [ALICE])
    assert fault.value.code == "E_BUNDLE_MALFORMED"


def test_keys_and_identities_count_together_each_once_in_its_role() -> None:
    both = demand([KEY], 2, None, [ALICE, BOB])
    key, alice, bob = Signers((KEY,)), Signers((ALICE,)), Signers((BOB,))
    assert settled([(PAYLOAD, key), (PAYLOAD, alice)], both) == (PAYLOAD, Signers((KEY, ALICE)))
    assert settled([(PAYLOAD, alice), (PAYLOAD, bob)], both)[1].count("approver") == 2
    for sources in ([(PAYLOAD, alice)], [(PAYLOAD, alice), (PAYLOAD, alice)], [(PAYLOAD, key)]):
        with pytest.raises(NotEstablished) as fault:
            settled(sources, both)
        assert fault.value.code == "E_ENVELOPE_THRESHOLD"
    with pytest.raises(DoesNotHold) as other:
        settled([(PAYLOAD, key), (b"another", alice)], both)
    assert other.value.code == "E_ENVELOPE_OTHER"
    # What nobody trusted signed is not asked to agree.
    one = demand([KEY], None, None, [ALICE])
    assert settled([(b"another", Signers((), (), 1)), (PAYLOAD, alice)], one)[0] == PAYLOAD
    roles = demand([WITNESS_KEY], 1, 2, [ALICE, WITNESS])
    everybody = [(PAYLOAD, Signers((one,))) for one in (WITNESS_KEY, ALICE, WITNESS)]
    assert settled(everybody, roles)[1].count("witness") == 2
    with pytest.raises(NotEstablished):
        settled([everybody[0], everybody[2]], roles)


def test_more_than_could_sign_is_not_asked_for() -> None:
    for numbers in ((3, None), (None, 1), (-1, 0), (0, 0)):
        with pytest.raises(Refused) as fault:
            demand([KEY], *numbers, [ALICE, ALICE])
        assert fault.value.code == "E_USAGE"
    assert demand([KEY], 2, None, [ALICE, ALICE]).identities == (ALICE,)
    with pytest.raises(Refused) as fault:
        demand([], None, None, [ALICE, Identity(ALICE.name, ALICE.issuer, "witness")])
    assert fault.value.code == "E_ENVELOPE_ROLE"
    many = [Identity(f"{number}@example.com", LOGIN) for number in range(257)]
    assert len(demand([], None, None, many[1:]).identities) == 256
    with pytest.raises(Refused, match="256"):
        demand([], None, None, many)


# --- the list of signers ---


def test_a_list_of_signers_is_read() -> None:
    entry = {"identity": "alice@example.com", "issuer": LOGIN}
    other = {"identity": WITNESS.name, "issuer": LOGIN}
    assert read_identities({"approver": [entry], "witness": [other]}) == (ALICE, WITNESS)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"approver": []},
        {"signer": [{"identity": "a", "issuer": "b"}]},
        {"approver": {"identity": "a", "issuer": "b"}},
        {"approver": ["a"]},
        {"approver": [{"identity": "a"}]},
        {"approver": [{"identity": "a", "issuer": "b", "regexp": True}]},
        {"approver": [{"identity": "", "issuer": "b"}]},
        {"approver": [{"identity": "a b", "issuer": "b"}]},
        {"approver": [{"identity": "a\n", "issuer": "b"}]},
        {"approver": [{"identity": "a", "issuer": 1}]},
        {"approver": [{"identity": "a" * 2049, "issuer": "b"}]},
    ],
)
def test_a_list_that_could_be_read_otherwise_is_refused(value: dict[str, Any]) -> None:
    with pytest.raises(Refused) as fault:
        read_identities(value)
    assert fault.value.code == "E_IDENTITY_MALFORMED"
    assert identity("a", "b") == Identity("a", "b")


@pytest.mark.parametrize("data", [b"=", b"\xff", b"a = " + b"[" * 5000, b"a = " + b"9" * 5000, b""])
def test_a_list_of_signers_that_is_no_toml_is_refused(data: bytes) -> None:
    with pytest.raises(Refused) as fault:
        parse_identities(data)
    assert fault.value.code == "E_IDENTITY_MALFORMED"
