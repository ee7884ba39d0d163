"""Signed notes against published vectors, by laws, and with every byte bent."""

from __future__ import annotations

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import given
from hypothesis import strategies as st

from troth.core.errors import DoesNotHold, NotEstablished, Refused
from troth.core.notes import (
    COSIGNATURE,
    ED25519,
    MAX_NOTE_BYTES,
    MAX_SIGNATURES,
    Note,
    NoteMalformed,
    Signature,
    Signer,
    VerifierKey,
    examine,
    is_key_name,
    key_id,
    open_note,
    parse_note,
    parse_signer,
    parse_verifier,
    sign_note,
)

# The example of the Go project's sumdb/note package, which every implementation of notes is held to.
PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETER_SECRET = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
ENOCH = "EnochRoot+af0cfe78+ATtqJ7zOtqQtYqOo0CpvDXNlMhV3HeJDpjrASKGLWdop"
TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
PETER_LINE = (
    "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
ENOCH_LINE = (
    "— EnochRoot rwz+eBzmZa0SO3NbfRGzPCpDckykFXSdeX+MNtCOXm2/5n2tiOHp+vAF1aGrQ5ovTG01oOTGwnWLox33WWd1RvMc+QQ=\n"
)
# The examples of C2SP tlog-cosignature and of the formats package of transparency-dev.
COSIGNED = (
    "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n"
    "— example.com/behind-the-sofa "
    "Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
    "— witness.example.com/w1 "
    "jWbPPwAAAABkGFDLEZMHwSRaJNiIDoe9DYn/zXcrtPHeolMI5OWXEhZCB9dlrDJsX3b2oyin1nPZqhf5nNo0xUe+mbIUBkBIfZ+qnA==\n"
)
# A checkpoint of a public log with an Ed25519 signature of the log and one of a witness (two of its seven lines), and
# another line by the log's name with a key of another kind; and the vector of the specification itself.
PUBLIC = (
    "arche2025h1.staging.ct.transparency.dev\n1432088532\nU7WM79jrzyhGZ5/GUBTpM7NzwdyfFx61t3RovgcC4Ro=\n\n"
    "— arche2025h1.staging.ct.transparency.dev zTM8sQAAAZ5W0WdjBAMARjBEAiBjW5IQf9pvsYLfQFX6hoGREPMHbdQ3urbllzalApkptQIg"
    "IpwtEroeW2BXaHAI4kJXFbon5Ch9MNL5zRNZ55lvGt0=\n"
    "— arche2025h1.staging.ct.transparency.dev "
    "ui8GwCF1+kWqZrxGdhj4aX3gcw7XUlXQQabg/27lefwhUkzbC3NygNI75MdhL1bfTW9g8Ei59RA23oHP7Ry1k3ZFWwQ=\n"
    "— remora.n621.de "
    "2net5wAAAABqEiEgPlfF3V06o0Y+fHM+J5J9s27wgxxcOVSpZ/2g/KSiXCg9DEZI+aVCIobWX9sXTynk5XeU/zZ0WBxtqB0DrAWfBw==\n"
)
PUBLIC_KEY = "arche2025h1.staging.ct.transparency.dev+ba2f06c0+AU0vHmlGCS/PdN8b2OaGmKprLI8HKM+dJ472xgFYh15f"
EXAMPLE_KEY = "example.com/foo+530d903a+AekyeRrm56hApGFkyQR4ZCbV54Id2LKaANYcrnKv3U2k"
EXAMPLE = (
    "This is an example message.\n\n"
    "— example.com/foo Uw2QOkn8srV1yJGh2VYRlL1Tnagv1YEq6TfXppzi2ONncAlTgK7Ztg1ERYNZXsYjOBH3mFXmRKuwHjG1Yu72IneyaQM=\n"
)
WITNESS_KEY = "remora.n621.de+da77ade7+BOvN63jn/bLvkieywe8R6UYAtVtNbZpXh34x7onlmtw2"

SIGNER = Signer("example.com/log", ED25519, bytes(range(32)))
WITNESS = Signer("example.com/witness", COSIGNATURE, bytes(range(32, 64)))
NOTE = sign_note("line\n\nanother\n", [SIGNER, WITNESS], at=1_700_000_000)


def test_the_published_note_is_made_to_the_byte() -> None:
    signer = parse_signer(PETER_SECRET)
    made = sign_note(TEXT, [signer])
    assert made.encode().decode() == f"{TEXT}\n{PETER_LINE}"
    assert str(signer.verifier) == PETER
    assert signer.secret_text() == PETER_SECRET


def test_the_published_notes_are_read() -> None:
    peter, enoch = parse_verifier(PETER), parse_verifier(ENOCH)
    both = f"{TEXT}\n{PETER_LINE}{ENOCH_LINE}".encode()
    found = open_note(both, [peter])
    assert found.note.text == TEXT
    assert [one.key for one in found.verified] == [peter]
    assert [one.name for one in found.unknown] == ["EnochRoot"]
    assert [one.key for one in open_note(both, [peter, enoch]).verified] == [peter, enoch]
    assert open_note(both, [peter, enoch, enoch]).signers() == {peter.public, enoch.public}
    with pytest.raises(NotEstablished, match="none of its 2"):
        open_note(both, [])


def test_a_line_that_stands_twice_counts_once() -> None:
    peter = parse_verifier(PETER)
    twice = f"{TEXT}\n{PETER_LINE}{PETER_LINE}{ENOCH_LINE}{ENOCH_LINE}".encode()
    found = open_note(twice, [peter])
    assert (len(found.verified), len(found.unknown)) == (1, 1)


def test_the_published_cosignature_carries_its_time() -> None:
    note = parse_note(COSIGNED.encode())
    assert note.encode() == COSIGNED.encode()
    log, witness = note.signatures
    assert len(log.data) == 64
    assert len(witness.data) == 72
    assert int.from_bytes(witness.data[:8], "big") == 1_679_315_147
    key = parse_verifier(WITNESS_KEY)
    assert key.is_witness
    assert str(key) == WITNESS_KEY


def test_a_public_log_and_its_witness_are_verified() -> None:
    log, witness = parse_verifier(PUBLIC_KEY), parse_verifier(WITNESS_KEY)
    found = open_note(PUBLIC.encode(), [log, witness])
    assert [(one.key, one.time) for one in found.verified] == [(log, None), (witness, 1_779_573_024)]
    assert [one.name for one in found.unknown] == ["arche2025h1.staging.ct.transparency.dev"]
    assert open_note(EXAMPLE.encode(), [parse_verifier(EXAMPLE_KEY)]).note.text == "This is an example message.\n"
    for old, new in (("1432088532", "1432088533"), ("U7WM", "U7WN")):
        with pytest.raises(DoesNotHold, match="E_NOTE_SIGNATURE"):
            open_note(PUBLIC.replace(old, new).encode(), [witness])


def test_a_cosignature_signs_the_words_of_the_specification() -> None:
    made = WITNESS.sign("o\n0\nr\n", 1_679_315_147)
    plain = Ed25519PrivateKey.from_private_bytes(WITNESS.seed)
    plain.public_key().verify(made.data[8:], b"cosignature/v1\ntime 1679315147\no\n0\nr\n")
    material = b"example.com/witness\n\x04" + plain.public_key().public_bytes_raw()
    assert made.key_id == hashlib.sha256(material).digest()[:4]
    [verified] = open_note(sign_note("o\n0\nr\n", [WITNESS], at=7).encode(), [WITNESS.verifier]).verified
    assert verified.time == 7


def test_no_piece_and_no_bent_character_of_a_key_is_a_key() -> None:
    for text, parse in ((PETER, parse_verifier), (PETER_SECRET, parse_signer)):
        for start in range(len(text)):
            for end in range(start + 1, len(text) + 1):
                if (start, end) != (0, len(text)):
                    with pytest.raises(Refused, match="E_KEY_MALFORMED") as caught:
                        parse(text[start:end])
                    assert text[-20:] not in str(caught.value)
        for at in range(len(text)):
            bent = text[:at] + chr(ord(text[at]) + 1) + text[at + 1 :]
            with pytest.raises(Refused, match="E_KEY_MALFORMED"):
                parse(bent)


@pytest.mark.parametrize(
    "text",
    [
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",  # too long
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",  # unknown kind
        PETER.replace("c74f20a3", "C74F20A3"),
        PETER.replace("PeterNeumann", "Peter Neumann"),
        PETER.replace("TW", "TX"),  # the same bytes in another spelling
        PETER + "\n",
        PETER_SECRET,
        "",
    ],
)
def test_what_is_no_verifier_key(text: str) -> None:
    with pytest.raises(Refused, match="E_KEY_MALFORMED"):
        parse_verifier(text)
    assert parse_verifier(PETER).name == "PeterNeumann"  # the twin


def test_a_private_key_is_not_repeated_and_not_shown() -> None:
    with pytest.raises(Refused) as caught:
        parse_verifier(PETER_SECRET)
    assert "AYEKF" not in str(caught.value)
    assert "seed" not in repr(SIGNER)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (TEXT, "empty line"),
        (f"{TEXT}\n", "no signature"),
        (f"{TEXT}\n{PETER_LINE[:-1]}", "no line feed"),
        (f"\x01{TEXT}\n{PETER_LINE}", r"U\+0001"),
        (f"{TEXT}\r\n\n{PETER_LINE}", r"U\+000D"),
        (f"{TEXT}\n{PETER_LINE.replace('PeterNeumann', 'Bad Name')}", "signature line"),
        (f"{TEXT}\n{PETER_LINE}Unexpected line.\n", "signature line"),
        (f"{TEXT}\n{PETER_LINE.replace('— ', '- ')}", "signature line"),
        (f"{TEXT}\n{PETER_LINE.replace('AM=', 'AN=')}", "signature line"),
        (f"{TEXT}\n{PETER_LINE.replace('AM=', 'AM')}", "signature line"),
        (f"{TEXT}\n— a AAAAAA==\n", "signature line"),
        (f"{TEXT}\n— a\u00a0b AAAAAAA=\n", "signature line"),
        (f"{TEXT}\n— a+b AAAAAAA=\n", "signature line"),
        (f"{TEXT}\n{PETER_LINE * (MAX_SIGNATURES + 1)}", "signatures"),
        ("x" * MAX_NOTE_BYTES + f"\n\n{PETER_LINE}", "bytes"),
        ("", "empty line"),
    ],
)
def test_what_is_no_note(data: str, says: str) -> None:
    with pytest.raises(NoteMalformed, match=says):
        parse_note(data.encode())


def test_bytes_that_are_no_text_are_no_note() -> None:
    with pytest.raises(NoteMalformed, match="UTF-8"):
        parse_note(b"\xff" + f"{TEXT}\n{PETER_LINE}".encode())


def test_as_many_signatures_as_are_allowed() -> None:
    signers = [Signer(f"s{number}", ED25519, bytes([number]) * 32) for number in range(MAX_SIGNATURES)]
    note = sign_note(TEXT, signers)
    assert len(open_note(note.encode(), [one.verifier for one in signers]).verified) == MAX_SIGNATURES
    with pytest.raises(NoteMalformed, match="100 signatures"):
        sign_note(TEXT, [SIGNER], present=note.signatures)
    assert len(sign_note(TEXT, signers[:1], present=note.signatures).signatures) == MAX_SIGNATURES


@pytest.mark.parametrize("text", ["abc", "", "a\tb\n", "a\x00\n", "\ud800\n"])
def test_what_cannot_be_signed(text: str) -> None:
    with pytest.raises(NoteMalformed):
        sign_note(text, [SIGNER])


def test_a_newer_signature_takes_the_place_of_the_older() -> None:
    older = sign_note("a\n", [SIGNER, WITNESS], at=1)
    newer = sign_note("a\n", [WITNESS], at=2, present=older.signatures)
    found = open_note(newer.encode(), [SIGNER.verifier, WITNESS.verifier])
    assert [one.time for one in found.verified] == [None, 2]
    with pytest.raises(NoteMalformed, match="signatures"):
        sign_note("a\n", [])
    with pytest.raises(ValueError, match="seconds"):
        WITNESS.sign("a\n", 1 << 63)


def test_the_kind_of_a_key_is_bound_into_its_id() -> None:
    as_signer = Signer(WITNESS.name, ED25519, WITNESS.seed)
    note = sign_note("a\n", [as_signer])
    with pytest.raises(NotEstablished):
        open_note(note.encode(), [WITNESS.verifier])
    # A plain signature over the words that a witness signs is no cosignature either, whatever id it is given.
    plain = as_signer.sign("cosignature/v1\ntime 0\na\n")
    for data in (plain.data, bytes(7) + plain.data, (1 << 63).to_bytes(8, "big") + plain.data):
        forged = Note("a\n", (Signature(WITNESS.name, WITNESS.verifier.id, data),))
        with pytest.raises(DoesNotHold, match="E_NOTE_SIGNATURE"):
            open_note(forged.encode(), [WITNESS.verifier])


def test_a_time_that_no_cosignature_carries_holds_for_nothing() -> None:
    private = Ed25519PrivateKey.from_private_bytes(WITNESS.seed)
    for at, holds in (((1 << 63) - 1, True), (1 << 63, False)):
        made = private.sign(f"cosignature/v1\ntime {at}\na\n".encode())
        note = Note("a\n", (Signature(WITNESS.name, WITNESS.verifier.id, at.to_bytes(8, "big") + made),))
        assert bool(examine(note, [WITNESS.verifier]).verified) == holds


def test_one_key_under_two_names_is_one_signer() -> None:
    two = [Signer("a", ED25519, SIGNER.seed), Signer("b", ED25519, SIGNER.seed)]
    found = open_note(sign_note("a\n", two).encode(), [one.verifier for one in two])
    assert len(found.verified) == 2
    assert len(found.signers()) == 1
    assert found.signers(COSIGNATURE) == set()


def test_two_keys_that_cannot_be_told_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = VerifierKey("n", ED25519, bytes(32)), VerifierKey("n", ED25519, bytes(31) + b"\1")
    examine(NOTE, [one, other])
    monkeypatch.setattr("troth.core.notes.key_id", lambda *_: b"same")
    with pytest.raises(Refused, match="E_KEY_AMBIGUOUS"):
        examine(NOTE, [one, other])


def test_a_key_that_is_no_point_of_the_curve_verifies_nothing() -> None:
    for public in (b"\xff" * 32, b"\x02" + bytes(31)):
        key = VerifierKey("n", ED25519, public)
        note = Note("a\n", (Signature("n", key.id, bytes(64)),))
        assert len(examine(note, [key]).bad) == 1


def test_no_bit_of_a_note_can_be_changed() -> None:
    data = NOTE.encode()
    keys = [SIGNER.verifier, WITNESS.verifier]
    untouched = open_note(data, keys)
    assert len(untouched.verified) == 2
    accepted = 0
    for at in range(len(data)):
        for bit in range(8):
            bent = bytearray(data)
            bent[at] ^= 1 << bit
            try:
                found = open_note(bytes(bent), keys)
            except (Refused, DoesNotHold, NotEstablished):
                continue
            # Only the name or key id of one line may have changed, and then that line proves nothing any more.
            assert found.note.text == NOTE.text
            assert len(found.verified) == 1
            assert len(found.unknown) == 1
            accepted += 1
    assert accepted > 0


names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="+"), min_size=1)
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=[chr(c) for c in range(32)])).map(
    lambda text: text + "\n"
)


@given(st.lists(texts, min_size=1).map("".join), names, st.binary(min_size=32, max_size=32), st.integers(0, 2**63 - 1))
def test_what_is_signed_is_verified(text: str, name: str, seed: bytes, at: int) -> None:
    if not is_key_name(name):
        return
    for kind in (ED25519, COSIGNATURE):
        signer = Signer(name, kind, seed)
        assert parse_signer(signer.secret_text()) == signer
        assert parse_verifier(str(signer.verifier)) == signer.verifier
        note = sign_note(text, [signer], at=at)
        assert parse_note(note.encode()) == note
        [verified] = open_note(note.encode(), [signer.verifier]).verified
        assert verified.time == (at if kind == COSIGNATURE else None)
        with pytest.raises(DoesNotHold):
            open_note(Note("x" + text, note.signatures).encode(), [signer.verifier])


pieces = st.sampled_from(
    ["\n", "\n\n", "— ", " ", "a", "+", PETER_LINE, ENOCH_LINE, TEXT, base64.b64encode(bytes(68)).decode(), "\r", "é"]
)
read = {"accepted": 0}


@given(
    st.one_of(
        st.binary(max_size=200),
        st.lists(pieces, max_size=8).map(lambda them: "".join(them).encode()),
        st.lists(pieces, max_size=3).map(lambda them: ("".join(them) + f"x\n\n{PETER_LINE}").encode()),
    )
)
def test_a_reader_takes_a_note_or_says_why_not(data: bytes) -> None:
    try:
        note = parse_note(data)
    except NoteMalformed:
        return
    read["accepted"] += 1
    assert parse_note(note.encode()) == note
    assert note.encode() == data or len(set(data.split(b"\n"))) < len(data.split(b"\n"))


def test_some_of_what_was_tried_was_a_note() -> None:
    test_a_reader_takes_a_note_or_says_why_not()
    assert read["accepted"] > 0


def test_key_ids_are_those_of_the_specification() -> None:
    key = parse_verifier(PETER)
    assert key_id(key.name, key.kind, key.public).hex() == "c74f20a3"
