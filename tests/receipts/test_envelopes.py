"""Envelopes: the published vector, strict reading, and who counts as a signer."""

from __future__ import annotations

import base64
import json
import random
from collections import Counter
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from hypothesis import given
from hypothesis import strategies as st

from receipts.mutate import spoil
from troth.core.errors import DoesNotHold, NotEstablished, Refused, TrothError
from troth.core.notes import COSIGNATURE, ED25519, Signer, VerifierKey
from troth.receipts.demands import Demand, demand, keyid_of
from troth.receipts.envelopes import (
    CODES,
    MAX_ENVELOPE_BYTES,
    MAX_SIGNATURES,
    PAYLOAD_TYPE,
    Envelope,
    EnvelopeSignature,
    envelope_base64,
    examine_signatures,
    opened,
    parse_envelope,
    signed,
    signing_bytes,
)

PAYLOAD = b'{"_type": "https://in-toto.io/Statement/v1"}\n'
ALICE = Signer("example.com/alice", ED25519, bytes([1]) * 32)
BOB = Signer("example.com/bob", ED25519, bytes([2]) * 32)
WITNESS = Signer("example.com/witness", COSIGNATURE, bytes([3]) * 32)
STRANGER = Signer("example.com/alice", ED25519, bytes([9]) * 32)

PUBLISHED = (
    b'{"payload": "aGVsbG8gd29ybGQ=",\n "payloadType": "http://example.com/HelloWorld",\n "signatures": [{"sig": '
    b'"A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="}]}\n'
)
"""The test vector of the DSSE protocol, version 1.0.0, with its key's coordinates below."""
X = 46950820868899156662930047687818585632848591499744589407958293238635476079160
Y = 5640078356564379163099075877009565129882514886557779369047442380624545832820


def code(fault: pytest.ExceptionInfo[TrothError]) -> str:
    return fault.value.code


def asks(*signers: Signer, **numbers: int) -> Demand:
    return demand([one.verifier for one in signers], **numbers)


def changed(envelope: Envelope, **members: Any) -> bytes:
    return json.dumps({**json.loads(envelope.encode()), **members}).encode()


# --- the published vector ---


def test_the_published_vector_comes_out() -> None:
    envelope = parse_envelope(PUBLISHED)
    assert (envelope.payload, envelope.payload_type) == (b"hello world", "http://example.com/HelloWorld")
    message = signing_bytes(envelope)
    assert message == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    [signature] = envelope.signatures
    assert signature.keyid == ""
    r, s = (int.from_bytes(half, "big") for half in (signature.sig[:32], signature.sig[32:]))
    key = ec.EllipticCurvePublicNumbers(X, Y, ec.SECP256R1()).public_key()
    key.verify(encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))
    # It is of another type and by another kind of key: not for us.
    with pytest.raises(DoesNotHold) as fault:
        opened(envelope, asks(ALICE))
    assert code(fault) == "E_ENVELOPE_TYPE"
    with pytest.raises(NotEstablished) as open_fault:
        opened(envelope, asks(ALICE), "http://example.com/HelloWorld")
    assert code(open_fault) == "E_ENVELOPE_UNVERIFIED"


# --- signing and opening ---


def test_what_was_signed_is_opened_and_comes_back_byte_for_byte() -> None:
    envelope = signed(PAYLOAD, [ALICE, WITNESS])
    payload, signers = opened(parse_envelope(envelope.encode()), asks(ALICE, WITNESS))
    assert payload == PAYLOAD
    assert [key.name for key in signers.verified] == [ALICE.name, WITNESS.name]
    assert (signers.bad, signers.unknown) == ((), 0)
    assert parse_envelope(envelope.encode()) == envelope
    assert signed(PAYLOAD, [ALICE]).encode() == signed(PAYLOAD, [ALICE]).encode()


def test_signatures_are_added_and_replaced() -> None:
    first = signed(PAYLOAD, [ALICE])
    both = signed(PAYLOAD, [BOB], present=first.signatures)
    assert [one.keyid for one in both.signatures] == [keyid_of(ALICE.verifier), keyid_of(BOB.verifier)]
    spoilt = (EnvelopeSignature(keyid_of(ALICE.verifier), bytes(64)),)
    assert signed(PAYLOAD, [ALICE], present=spoilt) == first


def test_a_changed_type_is_invalid_and_its_payload_is_not_read() -> None:
    envelope = parse_envelope(changed(signed(b"\xff no JSON", [ALICE]), payloadType="application/json"))
    with pytest.raises(DoesNotHold) as fault:
        opened(envelope, asks(ALICE))
    assert code(fault) == "E_ENVELOPE_TYPE"
    # A reader of that other type is not fooled either: the type is signed.
    with pytest.raises(DoesNotHold) as fault:
        opened(envelope, asks(ALICE), "application/json")
    assert code(fault) == "E_ENVELOPE_SIGNATURE"
    assert opened(signed(b"\xff no JSON", [ALICE]), asks(ALICE))[0] == b"\xff no JSON"


def test_a_changed_payload_is_invalid() -> None:
    envelope = parse_envelope(changed(signed(PAYLOAD, [ALICE]), payload=base64.b64encode(PAYLOAD[:-1]).decode()))
    with pytest.raises(DoesNotHold) as fault:
        opened(envelope, asks(ALICE))
    assert code(fault) == "E_ENVELOPE_SIGNATURE"


def test_a_key_that_comes_along_is_not_trusted() -> None:
    forged = json.loads(signed(PAYLOAD, [STRANGER]).encode())
    forged["signatures"][0] |= {"publicKey": str(STRANGER.verifier), "cert": "-----BEGIN CERTIFICATE-----"}
    forged["keys"] = [str(STRANGER.verifier)]
    envelope = parse_envelope(json.dumps(forged).encode())
    with pytest.raises(NotEstablished) as fault:
        opened(envelope, asks(ALICE))
    assert code(fault) == "E_ENVELOPE_UNVERIFIED"
    # A signature that borrows the name of a trusted key is a bad one of that key.
    forged["signatures"][0]["keyid"] = keyid_of(ALICE.verifier)
    with pytest.raises(DoesNotHold) as borrowed:
        opened(parse_envelope(json.dumps(forged).encode()), asks(ALICE))
    assert code(borrowed) == "E_ENVELOPE_SIGNATURE"
    # The honest twin: the same members beside a signature that holds change nothing.
    honest = json.loads(signed(PAYLOAD, [ALICE]).encode())
    honest["signatures"][0] |= {"publicKey": str(STRANGER.verifier)}
    assert opened(parse_envelope(json.dumps(honest).encode()), asks(ALICE))[0] == PAYLOAD


@pytest.mark.parametrize("keyid", ["", "other", "example.com/alice+00000000"])
def test_a_key_id_is_a_hint(keyid: str) -> None:
    value = json.loads(signed(PAYLOAD, [ALICE]).encode())
    value["signatures"][0]["keyid"] = keyid
    assert opened(parse_envelope(json.dumps(value).encode()), asks(BOB, ALICE))[0] == PAYLOAD
    del value["signatures"][0]["keyid"]
    assert opened(parse_envelope(json.dumps(value).encode()), asks(BOB, ALICE))[0] == PAYLOAD


def test_a_signature_that_does_not_fit_spoils_no_other() -> None:
    envelope = signed(PAYLOAD, [ALICE], present=[EnvelopeSignature(keyid_of(BOB.verifier), bytes(64))])
    payload, signers = opened(envelope, asks(ALICE, BOB))
    assert payload == PAYLOAD
    assert signers.bad == (keyid_of(BOB.verifier),)
    with pytest.raises(DoesNotHold) as fault:
        opened(envelope, asks(ALICE, BOB, threshold=2))
    assert code(fault) == "E_ENVELOPE_SIGNATURE"


# --- who counts ---


def test_the_threshold_counts_distinct_keys() -> None:
    again = Signer("example.com/alice-again", ED25519, ALICE.seed)
    envelope = signed(PAYLOAD, [ALICE, again])
    twice = Envelope(PAYLOAD, PAYLOAD_TYPE, envelope.signatures * 2)
    for one in (envelope, twice):
        with pytest.raises(NotEstablished) as fault:
            opened(one, asks(ALICE, again, BOB, threshold=2))
        assert code(fault) == "E_ENVELOPE_THRESHOLD"
    assert opened(signed(PAYLOAD, [ALICE, BOB]), asks(ALICE, BOB, threshold=2))[0] == PAYLOAD
    with pytest.raises(Refused, match="1 distinct ones"):
        asks(ALICE, again, threshold=2)


def test_a_witness_never_counts_as_an_approver() -> None:
    envelope = signed(PAYLOAD, [WITNESS, ALICE])
    with pytest.raises(NotEstablished) as fault:
        opened(envelope, asks(WITNESS, ALICE, BOB, threshold=2))
    assert code(fault) == "E_ENVELOPE_THRESHOLD"
    with pytest.raises(NotEstablished):
        opened(signed(PAYLOAD, [ALICE, BOB]), asks(WITNESS, ALICE, BOB, quorum=1))
    assert opened(envelope, asks(WITNESS, ALICE, quorum=1, threshold=1))[0] == PAYLOAD


def test_one_public_key_in_two_roles_is_refused() -> None:
    both = Signer("example.com/both", COSIGNATURE, ALICE.seed)
    for ask in (lambda: asks(ALICE, both), lambda: asks(both, ALICE)):
        with pytest.raises(Refused) as fault:
            ask()
        assert code(fault) == "E_ENVELOPE_ROLE"
    # A signature made in one role does hold under the key's other name: the reader's word decides, once.
    found = examine_signatures(signed(PAYLOAD, [both]), [ALICE.verifier])
    assert (found.count("approver"), found.count("witness")) == (1, 0)


def test_asking_for_nothing_is_refused() -> None:
    for keys, numbers in (((), {}), ((ALICE,), {"threshold": 0}), ((ALICE,), {"quorum": 1})):
        with pytest.raises(Refused) as fault:
            asks(*keys, **numbers)
        assert code(fault) == "E_USAGE"


def test_a_signature_of_another_length_is_no_signature() -> None:
    for sig in (b"\0", bytes(63), bytes(65), bytes(2048)):
        with pytest.raises(DoesNotHold):
            opened(Envelope(PAYLOAD, PAYLOAD_TYPE, (EnvelopeSignature(keyid_of(ALICE.verifier), sig),)), asks(ALICE))


def test_a_stranger_cannot_make_a_reader_work_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    strangers = [EnvelopeSignature(f"s{number}", bytes([number]) * 64) for number in range(40)]
    envelope = signed(PAYLOAD, [ALICE], present=strangers)
    assert opened(envelope, asks(ALICE, BOB))[1].unknown == 40
    monkeypatch.setattr("troth.receipts.envelopes.MAX_WORK", 40 * len(signing_bytes(envelope)))
    with pytest.raises(Refused) as fault:
        opened(envelope, asks(ALICE, BOB))
    assert code(fault) == "E_ENVELOPE_MALFORMED"
    # One that says the same thing often, and names its key, costs one try.
    again = Envelope(PAYLOAD, PAYLOAD_TYPE, signed(PAYLOAD, [ALICE]).signatures * 60)
    assert opened(again, asks(ALICE, BOB))[0] == PAYLOAD


# --- reading ---

GOOD = json.loads(signed(PAYLOAD, [ALICE]).encode())
TEXT = json.dumps(GOOD)

MALFORMED: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"{",
    "an array": b"[]",
    "a byte order mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "text behind it": TEXT.encode() + b"{}",
    "no UTF-8": TEXT.encode().replace(b"application", b"\xff"),
    "payload twice": (TEXT[:-1] + ', "payload": "aGk="}').encode(),
    "payload twice, escaped": (TEXT[:-1] + ', "\\u0070ayload": "aGk="}').encode(),
    "payloadType twice": (TEXT[:-1] + f', "payloadType": "{PAYLOAD_TYPE}"}}').encode(),
    "sig twice": TEXT.replace('"sig":', '"sig": "aGk=", "sig":').encode(),
    "a repeated unknown member": (TEXT[:-1] + ', "x": {"a": 1, "a": 1}}').encode(),
    "too deep": (TEXT[:-1] + ', "x": ' + "[" * 40 + "]" * 40 + "}").encode(),
    **{
        f"{name} {what}": json.dumps({**GOOD, name: value}).encode()
        for name, what, value in (
            ("payload", "null", None),
            ("payload", "without padding", "aGk"),
            ("payload", "with a line feed", "aGk=\n"),
            ("payload", "with white space", "aG k="),
            ("payload", "with stray bits", "aGl="),
            ("payload", "in two alphabets", "-_+/"),
            ("payload", "with text behind the padding", "aGk=aGk="),
            ("payloadType", "empty", ""),
            ("payloadType", "a number", 1),
            ("payloadType", "with a space", f"{PAYLOAD_TYPE} "),
            ("payloadType", "too long", "x" * 257),
            ("signatures", "empty", []),
            ("signatures", "an object", {}),
            ("signatures", "of text", ["x"]),
            ("signatures", "without sig", [{"keyid": "x"}]),
            ("signatures", "with an empty sig", [{"sig": ""}]),
            ("signatures", "with a keyid of null", [{"sig": "aGk=", "keyid": None}]),
            ("signatures", "with a long keyid", [{"sig": "aGk=", "keyid": "x" * 513}]),
            ("signatures", "too many", [{"sig": "aGk="}] * (MAX_SIGNATURES + 1)),
            ("signatures", "too long", [{"sig": base64.b64encode(bytes(2049)).decode()}]),
        )
    },
    **{f"without {name}": json.dumps({k: v for k, v in GOOD.items() if k != name}).encode() for name in GOOD},
}


@pytest.mark.parametrize("what", MALFORMED)
def test_what_is_no_envelope_is_refused(what: str) -> None:
    with pytest.raises(Refused) as fault:
        parse_envelope(MALFORMED[what])
    assert code(fault) == "E_ENVELOPE_MALFORMED"


def test_an_envelope_beyond_the_limit_is_refused_unread() -> None:
    with pytest.raises(Refused) as fault:
        parse_envelope(b" " * (MAX_ENVELOPE_BYTES + 1))
    assert code(fault) == "E_ENVELOPE_MALFORMED"
    assert parse_envelope(TEXT.encode() + b" " * 1000).payload == PAYLOAD


def test_both_alphabets_are_taken() -> None:
    data = bytes(range(248, 256)) + b"\xfb\xff"
    for text in (base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()):
        assert envelope_base64(text) == data
    payload = bytes(range(256))
    envelope = json.loads(signed(payload, [ALICE]).encode())
    envelope["payload"] = base64.urlsafe_b64encode(payload).decode()
    envelope["signatures"][0]["sig"] = envelope["signatures"][0]["sig"].translate(str.maketrans("+/", "-_"))
    assert opened(parse_envelope(json.dumps(envelope).encode()), asks(ALICE))[0] == payload


@given(st.binary(max_size=60))
def test_base64_has_one_spelling_an_alphabet(data: bytes) -> None:
    spelt = {base64.b64encode(data).decode(), base64.urlsafe_b64encode(data).decode()}
    assert all(envelope_base64(text) == data for text in spelt)
    text = base64.b64encode(data).decode()
    for other in (f"{text}=", f" {text}", f"{text}\n", text.rstrip("=") if text.endswith("=") else f"{text}A"):
        assert envelope_base64(other) is None


# --- fuzzing ---


def outcome(data: bytes, keys: tuple[VerifierKey, ...], count: Counter[str]) -> None:
    """Read bytes as a stranger's envelope; only coded answers may come out, and never another payload."""
    code, payload = "opened", PAYLOAD
    try:
        payload, _ = opened(parse_envelope(data), demand(keys))
    except TrothError as fault:
        code = fault.code
    assert code in CODES or code == "opened"
    assert payload == PAYLOAD, "a payload that nobody signed was handed out"
    count[code] += 1


def mutants(chance: random.Random) -> bytes:
    signers = chance.sample([ALICE, BOB, WITNESS, STRANGER], chance.randint(1, 4))
    value = json.loads(signed(PAYLOAD, signers).encode())
    kind = chance.randrange(6)
    if kind == 0:
        return spoil(json.dumps(value).encode(), chance)
    if kind == 1:
        value[chance.choice(list(value))] = chance.choice([None, "", "aGk=", [], {}, 1, value["payload"]])
    elif kind == 2:
        entry = chance.choice(value["signatures"])
        entry["sig"] = base64.b64encode(chance.randbytes(chance.choice([1, 63, 64, 64, 65]))).decode()
    elif kind == 3:
        entry = chance.choice(value["signatures"])
        entry["keyid"] = chance.choice(["", keyid_of(ALICE.verifier), keyid_of(WITNESS.verifier), "x"])
    elif kind == 4:
        value["payload"] = base64.b64encode(PAYLOAD + chance.randbytes(chance.randrange(3))).decode()
    else:
        value["signatures"] = chance.choices(value["signatures"], k=chance.randint(0, 5))
    return json.dumps(value).encode()


def fuzzed(seed: int, inputs: int) -> Counter[str]:
    chance = random.Random(seed)
    keys = tuple(one.verifier for one in (ALICE, WITNESS))
    count: Counter[str] = Counter()
    for _ in range(inputs):
        outcome(mutants(chance), keys, count)
    return count


def test_mutated_envelopes_get_a_coded_answer() -> None:
    count = fuzzed(1, 400)
    assert min(count[name] for name in ("opened", "E_ENVELOPE_MALFORMED", "E_ENVELOPE_SIGNATURE")) > 10


@given(st.binary(max_size=200))
def test_bytes_of_any_kind_get_a_coded_answer(data: bytes) -> None:
    outcome(data, (ALICE.verifier,), Counter())


@pytest.mark.slow
def test_fuzzing_at_length(capsys: pytest.CaptureFixture[str]) -> None:
    chance = random.Random(3)
    bases = [signed(PAYLOAD, [ALICE, BOB][:n]).encode() for n in (1, 2)] + [PUBLISHED]
    total, refused = 1_000_000, Counter[str]()
    for _ in range(total):
        try:
            parse_envelope(spoil(chance.choice(bases), chance))
        except Refused as fault:
            refused[fault.code] += 1
    read = total - refused.total()
    count = fuzzed(2, 50_000)
    with capsys.disabled():
        print(f"\n{total} spoilt envelopes: {read} read; 50000 mutated ones: {dict(count.most_common())}")
    assert set(refused) == {"E_ENVELOPE_MALFORMED"}
    assert 0 < read < total
    assert count["opened"] > 2_500
    assert count["E_ENVELOPE_UNVERIFIED"] > 500
