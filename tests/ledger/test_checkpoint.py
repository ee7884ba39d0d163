"""Checkpoints and proofs: their forms to the letter, held by an independent tree, refused with any bit changed."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.building import Ledger, lines, plain_hash
from reference import merkle_model as model
from troth.core.errors import DoesNotHold, NotEstablished, Refused, TrothError
from troth.core.notes import COSIGNATURE, ED25519, Signer, sign_note
from troth.ledger.chain import ChainReader
from troth.ledger.checkpoint import (
    MAX_SIZE,
    Checkpoint,
    ConsistencyProof,
    InclusionProof,
    check_consistency,
    check_inclusion,
    fault_against,
    is_origin,
    parse_checkpoint,
    parse_proof,
    proven_form,
    read_checkpoint,
    trusted_checkpoint,
)
from troth.ledger.leaves import leaf_of_row
from troth.ledger.merkle import EMPTY_ROOT, Frontier, leaf_hash

# The example of C2SP tlog-checkpoint.
SOFA = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"

SIGNER = Signer("example.com/ledger", ED25519, bytes(range(32)))
WITNESSES = [Signer(f"example.com/w{number}", COSIGNATURE, bytes([number]) * 32) for number in range(3)]
KEY = SIGNER.verifier


def a_ledger(count: int = 11, unhashed: int = 0) -> list[dict[str, Any]]:
    ledger = Ledger()
    for number in range(unhashed):
        ledger.add("capture", hashed=False, body=f"old {number}")
    for number in range(count - unhashed):
        ledger.add("capture", body=f"n {number} é/\x7f\U0001f600", meta={"n": number / 7, "z": None})
    return ledger.rows


def entries(rows: list[dict[str, Any]]) -> list[bytes]:
    """The entries of the tree, by the words of the record and not by the code under test."""
    return [model.row_entry(plain_hash(row), row["prevHash"] if row.get("hash") else "") for row in rows]


ROWS = a_ledger()
ENTRIES = entries(ROWS)


def signed(size: int, *signers: Signer, origin: str = "example.com/ledger", rows: list[bytes] = ENTRIES) -> bytes:
    text = Checkpoint(origin, size, model.mth(rows[:size])).text()
    return sign_note(text, signers or [SIGNER], at=1_700_000_000).encode()


def inclusion(index: int, size: int, rows: list[dict[str, Any]] = ROWS) -> InclusionProof:
    leaves = entries(rows)
    path = tuple(model.path(index, leaves[:size]))
    return InclusionProof(proven_form(rows[index]), index, path, signed(size, rows=leaves))


def consistency(old: int, new: int) -> ConsistencyProof:
    return ConsistencyProof(signed(old), tuple(model.proof(old, ENTRIES[:new]) if old else ()), signed(new))


# Text ----------------------------------------------------------------------------------------------------------------


def test_the_published_checkpoint() -> None:
    found = parse_checkpoint(SOFA)
    assert (found.origin, found.size, len(found.root)) == ("example.com/behind-the-sofa", 20_852_163, 32)
    assert found.text() == SOFA
    more = parse_checkpoint(SOFA + "more\nand more\n")
    assert more.extensions == ("more", "and more")
    assert more.text() == SOFA + "more\nand more\n"


@pytest.mark.parametrize(
    "text",
    [
        "o\n1\n",
        "o\n\n1\n" + "A" * 43 + "=\n",
        "\n1\n" + "A" * 43 + "=\n",
        SOFA + "\n",
        SOFA + "a\n\nb\n",
        SOFA.replace("20852163", "020852163"),
        SOFA.replace("20852163", "-1"),
        SOFA.replace("20852163", "+1"),
        SOFA.replace("20852163", " 1"),
        SOFA.replace("20852163", "1e3"),
        SOFA.replace("20852163", "٣"),
        SOFA.replace("20852163", str(MAX_SIZE + 1)),
        SOFA.replace("2I=", "2J="),
        SOFA.replace("q2I=", ""),
        SOFA.replace("=", ""),
        SOFA[:-1],
        SOFA.replace("\n", "\r\n"),
    ],
)
def test_what_is_no_checkpoint(text: str) -> None:
    with pytest.raises(Refused, match=r"E_(CHECKPOINT|NOTE)_MALFORMED"):
        parse_checkpoint(text)
    assert parse_checkpoint(SOFA.replace("20852163", "0")).size == 0  # the twins
    assert parse_checkpoint(SOFA.replace("20852163", str(MAX_SIZE))).size == MAX_SIZE


def test_what_a_ledger_may_be_called() -> None:
    assert is_origin("example.com/ledger")
    assert is_origin("w")
    for text in ("", "a b", "a+b", "a\u00a0b", "a\nb", "x" * 257, "\x1b[0m"):
        assert not is_origin(text)


# Leaves --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unhashed", [0, 3])
def test_the_tree_of_a_ledger_is_that_of_the_records_words(unhashed: int) -> None:
    rows = a_ledger(700, unhashed)
    frontier = Frontier([0, 1, 650])
    reader = ChainReader(leaves=frontier.extend)
    reader.feed_all([lines(rows)])
    assert reader.finish().ok
    leaves = entries(rows)
    assert frontier.size == 700
    assert frontier.root() == model.mth(leaves)
    assert frontier.roots == {0: EMPTY_ROOT, 1: model.mth(leaves[:1]), 650: model.mth(leaves[:650])}
    assert [leaf_of_row(row) for row in rows[:20]] == [leaf_hash(entry) for entry in leaves[:20]]


def test_how_a_row_is_spelled_decides_nothing() -> None:
    import json

    spelled = b"\xef\xbb\xbf" + b"\n\n".join(
        json.dumps(dict(reversed(row.items())), indent=None).encode() + b"\r" for row in ROWS
    )
    frontier = Frontier()
    reader = ChainReader(leaves=frontier.extend)
    reader.feed_all([spelled])
    assert reader.finish().ok
    assert frontier.root() == model.mth(ENTRIES)


def test_every_well_formed_row_is_a_leaf_also_a_faulty_one() -> None:
    data = lines(ROWS[:3]) + b"{\n\n" + lines([{**ROWS[3], "payload": {"body": "changed"}}, ROWS[3]]) + b'{"id'
    frontier = Frontier()
    reader = ChainReader(leaves=frontier.extend)
    reader.feed_all([data])
    assert not reader.finish().ok
    assert frontier.size == 5


# Signatures ----------------------------------------------------------------------------------------------------------


def test_who_signed_decides_whether_it_is_believed() -> None:
    data = signed(5, SIGNER, *WITNESSES)
    assert trusted_checkpoint(data, [KEY]).checkpoint.size == 5
    unknown = read_checkpoint(data, [])
    assert len(unknown.examined.unknown) == 4
    lack = unknown.lack()
    assert lack is not None
    assert lack.code == "E_NOTE_UNVERIFIED"
    with pytest.raises(NotEstablished, match="E_NOTE_UNVERIFIED"):
        trusted_checkpoint(data, [])
    keys = [KEY, *(one.verifier for one in WITNESSES[:2])]
    assert trusted_checkpoint(data, keys, 2).witnesses == 2
    with pytest.raises(NotEstablished, match="E_QUORUM"):
        trusted_checkpoint(data, keys, 3)
    with pytest.raises(NotEstablished, match="E_QUORUM"):
        trusted_checkpoint(data, [KEY], 1)


def test_one_witness_under_two_names_is_no_quorum() -> None:
    twin = Signer("example.com/other", COSIGNATURE, WITNESSES[0].seed)
    data = signed(5, SIGNER, WITNESSES[0], twin)
    keys = [KEY, WITNESSES[0].verifier, twin.verifier]
    assert len(read_checkpoint(data, keys).examined.verified) == 3
    with pytest.raises(NotEstablished, match="E_QUORUM"):
        trusted_checkpoint(data, keys, 2)


def test_a_ledger_against_a_checkpoint() -> None:
    found = parse_checkpoint(read_checkpoint(signed(5), [KEY]).examined.note.text)
    roots = {5: model.mth(ENTRIES[:5])}
    assert fault_against(found, 5, roots) is None
    assert fault_against(found, 9, roots) is None
    ahead = fault_against(found, 4, {})
    other = fault_against(found, 5, {5: bytes(32)})
    assert ahead is not None
    assert other is not None
    assert (ahead.fault, other.fault) == ("checkpoint_ahead", "checkpoint_mismatch")


# Proofs --------------------------------------------------------------------------------------------------------------


def test_a_proof_is_a_tlog_proof_to_the_letter() -> None:
    proof = inclusion(2, 3)
    text = proof.encode().decode()
    row, path = base64.b64encode(proof.row).decode(), [base64.b64encode(node).decode() for node in proof.path]
    assert text == "\n".join(
        ["c2sp.org/tlog-proof@v1", f"extra {row}", "index 2", *path, "", proof.checkpoint.decode()]
    )
    assert len(path) == 1


def test_every_row_of_every_size_is_proven() -> None:
    accepted = 0
    for size in range(1, len(ROWS) + 1):
        for index in range(size):
            proof = parse_proof(inclusion(index, size).encode())
            assert isinstance(proof, InclusionProof)
            proven = check_inclusion(proof, [KEY])
            assert (proven.index, proven.row.value, proven.signed.checkpoint.size) == (index, ROWS[index], size)
            accepted += 1
    print(f"\n{accepted} of {accepted} honest proofs of a row accepted")


def test_every_growth_is_proven() -> None:
    accepted = 0
    for new in range(len(ROWS) + 1):
        for old in range(new + 1):
            proof = parse_proof(consistency(old, new).encode())
            assert isinstance(proof, ConsistencyProof)
            grown = check_consistency(proof, [KEY])
            assert (grown.old.checkpoint.size, grown.new.checkpoint.size) == (old, new)
            accepted += 1
    print(f"\n{accepted} of {accepted} honest proofs of growth accepted")


def judged(data: bytes, quorum: int = 0, keys: list[Signer] | None = None) -> str:
    """Return ``proven``, or the code it is refused with; anything but our own errors goes through."""
    trusted = [one.verifier for one in keys or [SIGNER]]
    try:
        proof = parse_proof(data)
        if isinstance(proof, InclusionProof):
            check_inclusion(proof, trusted, quorum)
        else:
            check_consistency(proof, trusted, quorum)
    except TrothError as fault:
        return fault.code
    return "proven"


@pytest.mark.parametrize("data", [inclusion(4, 11).encode(), consistency(5, 11).encode()], ids=["row", "growth"])
def test_no_bit_of_a_proof_can_be_changed(data: bytes) -> None:
    assert judged(data) == "proven"
    answers: dict[str, int] = {}
    for at in range(len(data)):
        for bit in range(8):
            bent = bytearray(data)
            bent[at] ^= 1 << bit
            answer = judged(bytes(bent))
            answers[answer] = answers.get(answer, 0) + 1
    print(f"\n{8 * len(data)} bits changed: {answers}")
    assert "proven" not in answers
    assert {"E_PROOF_MALFORMED", "E_NOTE_SIGNATURE"} <= set(answers)


def test_nothing_can_be_cut_off_or_put_on() -> None:
    for data in (inclusion(4, 11).encode(), consistency(5, 11).encode()):
        assert all(judged(data[:end]) != "proven" for end in range(len(data)))
        assert all(judged(data[start:]) != "proven" for start in range(1, len(data)))
        assert all(judged(data + more) != "proven" for more in (b"\n", b"x", data))


def test_a_proof_is_of_one_row_one_place_and_one_checkpoint() -> None:
    right = inclusion(4, 11)
    bent = [
        InclusionProof(proven_form(ROWS[5]), 4, right.path, right.checkpoint),
        InclusionProof(right.row, 5, right.path, right.checkpoint),
        InclusionProof(right.row, 4, right.path, signed(10)),
        InclusionProof(right.row, 4, right.path[:-1], right.checkpoint),
        InclusionProof(right.row, 4, (*right.path, bytes(32)), right.checkpoint),
        InclusionProof(right.row, 4, right.path[::-1], right.checkpoint),
        InclusionProof(right.row, 11, right.path, right.checkpoint),
        InclusionProof(right.row, 4 + (1 << 40), right.path, right.checkpoint),
        InclusionProof(proven_form({**ROWS[4], "prevHash": "0" * 64}), 4, right.path, right.checkpoint),
        InclusionProof(proven_form({**ROWS[4], "hash": "0" * 64}), 4, right.path, right.checkpoint),
        InclusionProof(proven_form({**ROWS[4], "hash": None}), 4, right.path, right.checkpoint),
        InclusionProof(proven_form({**ROWS[4], "actor": "human:other"}), 4, right.path, right.checkpoint),
    ]
    assert judged(right.encode()) == "proven"
    assert {judged(one.encode()) for one in bent} == {"E_PROOF_INVALID"}


def test_growth_is_of_one_origin() -> None:
    right = consistency(5, 11)
    other = ConsistencyProof(signed(5, origin="example.com/other"), right.path, right.checkpoint)
    assert judged(other.encode()) == "E_PROOF_INVALID"
    backwards = ConsistencyProof(right.checkpoint, right.path, right.old)
    assert judged(backwards.encode()) == "E_PROOF_INVALID"
    equal = ConsistencyProof(right.old, (), right.old)
    assert judged(equal.encode()) == "proven"


def test_a_stranger_is_not_believed() -> None:
    assert judged(inclusion(0, 3).encode(), keys=[WITNESSES[0]]) == "E_NOTE_UNVERIFIED"
    assert judged(inclusion(0, 3).encode(), quorum=1) == "E_QUORUM"
    assert judged(consistency(1, 3).encode(), keys=[WITNESSES[0]]) == "E_NOTE_UNVERIFIED"


def test_a_row_without_a_hash_is_proven_by_its_content() -> None:
    rows = a_ledger(6, unhashed=2)
    proof = inclusion(1, 6, rows)
    assert b"Hash" not in proof.row
    assert judged(proof.encode()) == "proven"
    # Its leaf holds neither member, so neither may be added.
    for more in ({"hash": ""}, {"prevHash": "0" * 64}, {"hash": None, "prevHash": None}):
        import json

        row = json.dumps({**rows[1], **more}, separators=(",", ":"), ensure_ascii=False).encode()
        assert judged(InclusionProof(row, 1, proof.path, proof.checkpoint).encode()) == "E_PROOF_MALFORMED"


@pytest.mark.parametrize(
    "row", [b"[]", b"{", b'{"id": "a"}', b'{"a":1,"a":1}', b"\xff", b'{"hash":"' + b"0" * 64 + b'"}']
)
def test_what_is_proven_is_a_row_in_one_spelling(row: bytes) -> None:
    proof = inclusion(0, 1)
    assert judged(InclusionProof(row, 0, (), proof.checkpoint).encode()) == "E_PROOF_MALFORMED"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("c2sp.org/tlog-proof@v1", "c2sp.org/tlog-proof@v2"),
        ("extra ", "Extra "),
        ("extra ", "extra  "),
        ("index 4", "index 04"),
        ("index 4", "index"),
        ("index 4", "index -4"),
        ("index 4", f"index {MAX_SIZE + 1}"),
        ("index 4\n", "index 4\n" + "A" * 43 + "\n"),
        ("index 4\n", "index 4\n" + ("A" * 43 + "=\n") * 70),
        ("index 4\n", "index 4 \n"),
        ("\n\n", "\n"),
    ],
)
def test_what_is_no_proof(old: str, new: str) -> None:
    text = inclusion(4, 11).encode().decode()
    assert old in text
    assert judged(text.replace(old, new, 1).encode()) in ("E_PROOF_MALFORMED", "E_NOTE_MALFORMED")


pieces = st.sampled_from(
    [*inclusion(4, 11).encode().splitlines(keepends=True), *consistency(5, 11).encode().splitlines(keepends=True)]
)
tried = {"proven": 0, "refused": 0}


@settings(max_examples=300, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=120),
        st.lists(pieces, max_size=12).map(b"".join),
        st.tuples(st.integers(0, 10), st.integers(1, 11)).map(
            lambda at: inclusion(min(at[0], at[1] - 1), at[1]).encode()
        ),
    )
)
def test_a_reader_proves_or_says_why_not(data: bytes) -> None:
    answer = judged(data)
    assert answer == "proven" or answer.startswith("E_")
    tried["proven" if answer == "proven" else "refused"] += 1


def test_some_of_what_was_tried_was_proven() -> None:
    test_a_reader_proves_or_says_why_not()
    print(f"\n{tried}")
    assert tried["proven"] > 10
    assert tried["refused"] > 10


def test_errors_are_of_the_one_hierarchy() -> None:
    for code, kind in (("E_PROOF_INVALID", DoesNotHold), ("E_PROOF_MALFORMED", Refused)):
        with pytest.raises(kind, match=code):
            check_inclusion(InclusionProof(b"[]" if kind is Refused else proven_form(ROWS[1]), 0, (), signed(1)), [KEY])
