"""A witness signs what continues the last checkpoint it signed, whatever happens in between."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from support.ledgers import capture, fresh
from troth.core.errors import DoesNotHold, NotEstablished, Refused, TrothError
from troth.core.notes import COSIGNATURE, ED25519, Signer, open_note, parse_note, sign_note
from troth.ledger.checkpoint import Checkpoint
from troth.stores import durable
from troth.stores.checkpoints import consistency, create, write_new
from troth.stores.jsonl import JsonlStore
from troth.stores.witness import Cosigned, cosign, last_signed, witness_folder

SIGNER = Signer("example.com/ledger", ED25519, bytes(range(32)))
OTHER = Signer("example.com/ledger", ED25519, bytes(32))
WITNESS = Signer("example.com/witness", COSIGNATURE, bytes(range(32, 64)))
KEYS = [SIGNER.verifier]


@pytest.fixture(autouse=True)
def _own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


@pytest.fixture
def store(tmp_path: Path) -> JsonlStore:
    made = fresh(tmp_path / "w")
    for number in range(5):
        capture(made, f"n {number}")
    return made


def grown(store: JsonlStore, more: int = 2) -> Path:
    for number in range(more):
        capture(store, f"more {number}")
    return create(store, SIGNER).path


def written(path: Path, size: int, root: bytes, *signers: Signer, origin: str = "w") -> Path:
    path.write_bytes(sign_note(Checkpoint(origin, size, root).text(), signers or [SIGNER]).encode())
    return path


def signed_by_us(done: Cosigned) -> bool:
    return bool(open_note(done.note.encode(), [WITNESS.verifier]).verified)


def test_the_first_of_an_origin_needs_its_signer_named(store: JsonlStore) -> None:
    file = grown(store, 0)
    with pytest.raises(NotEstablished, match="E_NOTE_UNVERIFIED"):
        cosign(file, WITNESS, keys=[], at=1)
    with pytest.raises(NotEstablished, match="E_NOTE_UNVERIFIED"):
        cosign(file, WITNESS, keys=[OTHER.verifier], at=1)
    assert last_signed(WITNESS.verifier, "w") is None
    done = cosign(file, WITNESS, keys=KEYS, at=7)
    assert signed_by_us(done)
    assert (done.before, done.time, done.checkpoint.size) == (None, 7, 5)
    remembered = last_signed(WITNESS.verifier, "w")
    assert remembered is not None
    assert (remembered.data, remembered.keys) == (done.note.encode(), tuple(KEYS))


def test_growth_is_shown_by_the_ledger_or_by_a_proof(store: JsonlStore, tmp_path: Path) -> None:
    first = grown(store, 0)
    cosign(first, WITNESS, keys=KEYS, at=1)
    second = grown(store)
    with pytest.raises(NotEstablished, match="E_CHECKPOINT_UNPROVEN"):
        cosign(second, WITNESS, keys=[], at=2)
    assert signed_by_us(cosign(second, WITNESS, keys=[], at=2, store=store))
    third = grown(store)
    write_new(tmp_path / "wrong", consistency(store, first, third).encode())
    with pytest.raises(DoesNotHold, match="E_PROOF_INVALID"):
        cosign(third, WITNESS, keys=[], at=3, proof=tmp_path / "wrong")
    write_new(tmp_path / "right", consistency(store, second, third).encode())
    done = cosign(third, WITNESS, keys=[], at=3, proof=tmp_path / "right")
    assert (done.before, done.checkpoint.size) == (7, 9)
    with pytest.raises(Refused, match="E_CHECKPOINT_OLDER"):
        cosign(second, WITNESS, keys=[], at=4, store=store)
    again = cosign(third, WITNESS, keys=[], at=5)
    assert again.time == 5


def test_a_ledger_that_is_not_the_checkpoints_is_no_reason_to_sign(store: JsonlStore, tmp_path: Path) -> None:
    bad = written(tmp_path / "bad", 5, bytes(32))
    with pytest.raises(DoesNotHold, match="E_CHECKPOINT_MISMATCH"):
        cosign(bad, WITNESS, keys=KEYS, at=1, store=store)
    ahead = written(tmp_path / "ahead", 6, bytes(32))
    with pytest.raises(DoesNotHold, match="E_CHECKPOINT_MISMATCH") as caught:
        cosign(ahead, WITNESS, keys=KEYS, at=1, store=store)
    assert caught.value.detail == "checkpoint_ahead"
    store.ledger_file.write_bytes(store.ledger_file.read_bytes() + b"{\n")
    with pytest.raises(DoesNotHold, match="E_CHAIN_BROKEN"):
        cosign(bad, WITNESS, keys=KEYS, at=1, store=store)
    assert last_signed(WITNESS.verifier, "w") is None


def test_a_fork_is_kept_as_evidence(store: JsonlStore, tmp_path: Path) -> None:
    first = grown(store, 0)
    cosign(first, WITNESS, keys=KEYS, at=1)
    fork = written(tmp_path / "fork", 5, bytes(32))
    with pytest.raises(DoesNotHold, match="E_CHECKPOINT_FORK") as caught:
        cosign(fork, WITNESS, keys=KEYS, at=2)
    [kept] = witness_folder(WITNESS.verifier).glob("fork-*")
    assert kept.read_bytes() == fork.read_bytes()
    assert str(kept) in str(caught.value)
    # Both are signed by the ledger's own key, which is what shows anybody that its owner forked it.
    remembered = last_signed(WITNESS.verifier, "w")
    assert remembered is not None
    texts = {open_note(data, KEYS).note.text for data in (kept.read_bytes(), remembered.data)}
    assert len(texts) == 2


def test_a_proof_that_begins_elsewhere_is_a_fork(store: JsonlStore, tmp_path: Path) -> None:
    cosign(written(tmp_path / "lie", 5, bytes(32)), WITNESS, keys=KEYS, at=1)
    first = grown(store, 0)
    second = grown(store)
    write_new(tmp_path / "proof", consistency(store, first, second).encode())
    with pytest.raises(DoesNotHold, match="E_CHECKPOINT_FORK"):
        cosign(second, WITNESS, keys=[], at=2, proof=tmp_path / "proof")
    with pytest.raises(DoesNotHold, match="E_CHECKPOINT_FORK"):
        cosign(second, WITNESS, keys=[], at=2, store=store)


def test_an_empty_ledger_is_continued_by_every_other(tmp_path: Path) -> None:
    store = fresh(tmp_path / "w")
    cosign(grown(store, 0), WITNESS, keys=KEYS, at=1)
    done = cosign(grown(store, 3), WITNESS, keys=[], at=2)
    assert (done.before, done.checkpoint.size) == (0, 3)


def test_another_key_of_the_same_name_signs_no_other_history(store: JsonlStore, tmp_path: Path) -> None:
    cosign(grown(store, 0), WITNESS, keys=KEYS, at=1)
    fork = written(tmp_path / "fork", 5, bytes(32), OTHER)
    with pytest.raises(NotEstablished, match="E_NOTE_UNVERIFIED"):
        cosign(fork, WITNESS, keys=[], at=2)
    with pytest.raises(DoesNotHold, match="E_CHECKPOINT_FORK"):  # the origin counts, not the key
        cosign(fork, WITNESS, keys=[OTHER.verifier], at=2)
    other = written(tmp_path / "other", 5, bytes(32), OTHER, origin="v")
    assert cosign(other, WITNESS, keys=[OTHER.verifier], at=2).before is None


def test_only_a_witness_key_signs_as_a_witness(store: JsonlStore) -> None:
    with pytest.raises(Refused, match="E_KEY_KIND"):
        cosign(grown(store, 0), OTHER, keys=KEYS, at=1)
    with pytest.raises(Refused, match="E_KEY_KIND"):
        cosign(grown(store, 0), WITNESS, keys=[*KEYS, WITNESS.verifier], at=1)
    with pytest.raises(Refused, match="E_KEY_KIND"):
        create(store, WITNESS)


def test_a_bad_signature_or_no_checkpoint_is_not_signed(store: JsonlStore, tmp_path: Path) -> None:
    file = grown(store, 0)
    bent = tmp_path / "bent"
    bent.write_bytes(file.read_bytes().replace(b"w\n5\n", b"w\n4\n"))
    with pytest.raises(DoesNotHold, match="E_NOTE_SIGNATURE"):
        cosign(bent, WITNESS, keys=KEYS, at=1)
    bent.write_bytes(sign_note("w\n5\n", [SIGNER]).encode())
    with pytest.raises(Refused, match="E_CHECKPOINT_MALFORMED"):
        cosign(bent, WITNESS, keys=KEYS, at=1)


@pytest.mark.parametrize(
    "broken", [b"", b"{}", b"[]", b"x", b'{"version": 2}', b'{"version":1,"keys":[],"checkpoint":"x"}']
)
def test_a_witness_that_lost_its_memory_signs_nothing(store: JsonlStore, broken: bytes) -> None:
    file = grown(store, 0)
    cosign(file, WITNESS, keys=KEYS, at=1)
    [state] = witness_folder(WITNESS.verifier).glob("*.json")
    good = state.read_bytes()
    state.write_bytes(broken)
    with pytest.raises(Refused, match="E_UNREADABLE"):
        cosign(file, WITNESS, keys=KEYS, at=2)
    state.write_bytes(good)
    assert signed_by_us(cosign(file, WITNESS, keys=[], at=2))


def test_nothing_is_signed_that_is_not_remembered(store: JsonlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    file = grown(store, 0)
    before = file.read_bytes()
    real = durable._written

    def full(path: Path, data: bytes, mode: int) -> Path:
        if "witness" in str(path):
            raise OSError(28, "No space left on device")
        return real(path, data, mode)

    monkeypatch.setattr(durable, "_written", full)
    with pytest.raises(Refused, match="No space"):
        cosign(file, WITNESS, keys=KEYS, at=1)
    assert file.read_bytes() == before
    assert last_signed(WITNESS.verifier, "w") is None


def test_two_at_once_sign_one_side_of_a_fork(tmp_path: Path) -> None:
    sides = [written(tmp_path / f"side {number}", 5, bytes([number]) * 32) for number in range(8)]

    def sign(file: Path) -> bytes | str:
        try:
            return cosign(file, WITNESS, keys=KEYS, at=1).checkpoint.root
        except TrothError as fault:
            return fault.code

    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(sign, sides * 3))
    signed = {answer for answer in answers if isinstance(answer, bytes)}
    assert len(signed) == 1
    assert {answer for answer in answers if isinstance(answer, str)} == {"E_CHECKPOINT_FORK"}


def test_signatures_of_others_stay(store: JsonlStore) -> None:
    file = grown(store, 0)
    second = Signer("example.com/second", COSIGNATURE, bytes([9]) * 32)
    done = cosign(file, WITNESS, keys=KEYS, at=1)
    file.write_bytes(done.note.encode())
    both = cosign(file, second, keys=KEYS, at=2)
    assert [one.name for one in parse_note(both.note.encode()).signatures] == [
        "example.com/ledger",
        "example.com/witness",
        "example.com/second",
    ]
