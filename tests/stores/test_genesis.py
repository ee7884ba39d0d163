"""The genesis key where it lies: read safely, its event beside the next row, crashes, signatures, settings."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ledger.genesis_keys import IDENTITY, WHOLE
from support.ledgers import capture, fresh, ticking
from troth.core.errors import Refused
from troth.core.notes import COSIGNATURE, ED25519, Signer, sign_note
from troth.ledger import genesis as keys
from troth.ledger.genesis_event import event_of
from troth.ledger.genesis_signature import signed_text
from troth.ledger.operations import Candidate
from troth.stores.constitution import KEY_LIMIT, KeyFile, key_to_install, write_signature
from troth.stores.jsonl import JsonlStore
from troth.stores.workspace import create_workspace


def put(root: Path, text: str) -> Path:
    key = root / ".mentu" / "genesis.key"
    key.write_text(text)
    return key


def events(store: JsonlStore) -> list[Any]:
    return [found for row in store.read().rows if (found := event_of(row.value)) is not None]


def refused(store: JsonlStore) -> Refused:
    with pytest.raises(Refused) as caught:
        capture(store)
    assert (caught.value.code, caught.value.detail) == ("E_CONSTRAINT_VIOLATED", "genesis_invalid")
    return caught.value


def test_the_event_stands_right_before_the_next_row_and_once(tmp_path: Path) -> None:
    notes: list[str] = []
    store = fresh(tmp_path, notify=notes.append)
    assert store.genesis() is None
    capture(store)
    put(tmp_path, IDENTITY)
    assert store.genesis() is not None
    ids = [capture(store), capture(store)]
    rows = store.read().rows
    assert [row.id for row in rows][-2:] == ids
    assert event_of(rows[1].value) is not None
    assert rows[2].id == ids[0]
    assert store.verify().verified == 4
    assert [getattr(note, "code", None) for note in notes] == ["genesis_event"]


def test_a_key_before_the_first_row_and_one_that_changes(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    first = put(tmp_path, IDENTITY)
    capture(store)
    assert store.read().rows[0].value["prevHash"] == "0" * 64
    put(tmp_path, IDENTITY + "# the same rules, other bytes\n")
    other = JsonlStore.open(tmp_path, clock=ticking())
    capture(other)
    capture(store)
    put(tmp_path, IDENTITY)
    capture(store)
    first.unlink()
    capture(other)
    capture(store)
    digests = [event.sha256 for event in events(store)]
    assert len(digests) == 4
    assert digests[0] == digests[2] != digests[1]
    assert digests[3] is None
    assert store.verify().ok


def test_the_rules_hold_at_the_store(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    put(tmp_path, IDENTITY + "actors: [{id: 'human:*', role: r}]\npermissions: {r: [capture]}\n")
    before = store.ledger_file.read_bytes()
    with pytest.raises(Refused) as caught:
        capture(store, actor="agent:worker")
    assert caught.value.code == "E_PERMISSION_DENIED"
    assert store.ledger_file.read_bytes() == before  # no event either
    with pytest.raises(Refused) as caught:
        store.rehearse(lambda _: Candidate("capture", "agent:worker", {"body": "b"}))
    assert caught.value.code == "E_PERMISSION_DENIED"
    store.rehearse(lambda _: Candidate("capture", "human:reviewer", {"body": "b"}))
    assert store.ledger_file.read_bytes() == before
    capture(store)
    assert len(store.read().rows) == 2


def test_the_same_bytes_are_parsed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh(tmp_path)
    put(tmp_path, IDENTITY)
    parsed = []
    right = keys.parse_genesis
    monkeypatch.setattr(keys, "parse_genesis", lambda *words: parsed.append(words) or right(*words))
    for _ in range(5):
        capture(store)
    assert len(parsed) == 1
    put(tmp_path, WHOLE.replace("  commit: {require_tags: true}\n", ""))
    capture(store)
    assert len(parsed) == 2


def _folder(key: Path) -> None:
    key.mkdir()


def _pipe(key: Path) -> None:
    os.mkfifo(key)


def _link(key: Path) -> None:
    key.with_name("real").write_text(IDENTITY)
    key.symlink_to("real")


def _dangling(key: Path) -> None:
    key.symlink_to("nothing")


def _large(key: Path) -> None:
    key.write_bytes(b"#" * (KEY_LIMIT + 1))


@pytest.mark.parametrize("make", [_folder, _pipe, _link, _dangling, _large])
def test_what_is_no_readable_file_is_an_invalid_key_and_never_none(tmp_path: Path, make: Any) -> None:
    store = fresh(tmp_path)
    capture(store)
    make(tmp_path / ".mentu" / "genesis.key")
    refused(store)
    assert store.ruling().warnings()[0].warning == "genesis_invalid"
    assert store.read().verification.ok
    assert store.summary().verification.ok
    assert store.verify().ok
    with pytest.raises(Refused):
        store.genesis()


def test_a_key_that_cannot_be_looked_at_is_not_taken_for_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = fresh(tmp_path)
    capture(store)
    right = os.lstat

    def failing(path: Any, **options: Any) -> os.stat_result:
        if str(path).endswith("genesis.key"):
            raise OSError(errno.EIO, "Input/output error")
        return right(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", failing)
        refused(store)
    capture(store)


def test_a_mended_key_is_taken_at_once(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    put(tmp_path, "identity: {name: n}\n")
    place = refused(store).place
    assert place is not None
    assert (place.line, place.path) == (1, "$.identity.owner")
    put(tmp_path, IDENTITY)
    capture(store)


def test_a_bare_ledger_file_has_no_key(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_bytes(b"")
    (tmp_path / "genesis.key").write_text("nonsense")
    store = JsonlStore.open(tmp_path / "ledger.jsonl")
    assert store.genesis() is None
    capture(store)


def test_a_workspace_gets_its_key_only_when_it_is_valid(tmp_path: Path) -> None:
    draft = tmp_path / "draft.key"
    draft.write_text("identity: {name: n}\n")
    with pytest.raises(Refused):
        key_to_install(draft)
    draft.write_text(IDENTITY)
    (tmp_path / "draft.key.sig").write_bytes(b"note\n")
    _, made = create_workspace(tmp_path, name="w", agents_text="t\n", key=key_to_install(draft))
    assert {"genesis.key", "genesis.key.sig"} <= set(made)
    assert made.index("genesis.key") < made.index("ledger.jsonl")
    assert (tmp_path / ".mentu" / "genesis.key").read_text() == IDENTITY
    again, made = create_workspace(tmp_path, name="w", agents_text="t\n", key={"genesis.key": b"other"})
    assert made == []
    assert again.genesis_file.read_text() == IDENTITY


def test_cut_anywhere_between_the_event_and_its_row_the_ledger_goes_on(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    capture(store)
    before = store.ledger_file.stat().st_size
    put(tmp_path, IDENTITY)
    capture(store)
    whole = store.ledger_file.read_bytes()
    boundary = whole.index(b"\n", before) + 1
    cuts = {before, before + 1, boundary - 1, boundary, boundary + 1, len(whole) - 1, len(whole)}
    for cut in sorted(cuts | {*range(before, len(whole), 37)}):
        store.ledger_file.write_bytes(whole[:cut])
        again = JsonlStore.open(tmp_path)
        capture(again)
        assert again.verify().ok
        assert again.ledger_file.read_bytes().startswith(whole[:before])
        # Once it is whole the event stands; before, it is written anew.
        assert len(events(again)) == 1
        again.close()


# Signatures ----------------------------------------------------------------------------------------------------

OWNER = Signer("example.org/owner", ED25519, b"\x01" * 32)
OTHER = Signer("example.org/other", ED25519, b"\x02" * 32)
WITNESS = Signer("example.org/witness", COSIGNATURE, b"\x03" * 32)


def signed(tmp_path: Path, *signers: Signer) -> JsonlStore:
    """Return a store whose settings name the keys that may sign."""
    fresh(tmp_path)
    named = "".join(f"\n- {signer.verifier}" for signer in signers)
    (tmp_path / ".mentu" / "config.yaml").write_text(f"workspace: w\ngenesis_signers:{named}\n")
    return JsonlStore.open(tmp_path)


def sign(key: Path, *signers: Signer, text: str | None = None) -> None:
    note = sign_note(signed_text(key.read_bytes()) if text is None else text, signers)
    key.with_name("genesis.key.sig").write_bytes(note.encode())


def test_a_signature_by_one_of_the_signers_is_enough(tmp_path: Path) -> None:
    store = signed(tmp_path, OWNER, OTHER)
    key = put(tmp_path, IDENTITY)
    sign(key, OTHER)
    capture(store)
    assert store.ruling().warnings() == []
    sign(key, OWNER, Signer("example.org/stranger", ED25519, b"\x09" * 32))
    capture(store)
    assert len(store.read().rows) == 3


def test_with_signers_a_missing_foreign_or_broken_signature_makes_the_key_invalid(tmp_path: Path) -> None:
    store = signed(tmp_path, OWNER)
    beside = tmp_path / ".mentu" / "genesis.key.sig"
    assert "there is no key" in refused(store).message
    key = put(tmp_path, IDENTITY)
    assert "not signed" in refused(store).message
    sign(key, OTHER)
    assert "no" in refused(store).message
    sign(key, OWNER)
    capture(store)
    good = beside.read_bytes()
    put(tmp_path, IDENTITY + "# changed\n")
    assert "another key" in refused(store).message
    put(tmp_path, IDENTITY)
    capture(store)
    mark = good.rindex(b" ") + 12
    beside.write_bytes(good[:mark] + (b"A" if good[mark : mark + 1] != b"A" else b"B") + good[mark + 1 :])
    refused(store)
    sign(key, OWNER, text="something else\n")
    refused(store)
    beside.write_bytes(b"\xff")
    refused(store)
    beside.unlink()
    beside.mkdir()
    refused(store)
    beside.rmdir()
    beside.write_bytes(good)
    capture(store)
    assert store.verify().ok


def test_signers_that_are_no_signers_keys(tmp_path: Path) -> None:
    store = signed(tmp_path, WITNESS)
    key = put(tmp_path, IDENTITY)
    sign(key, WITNESS)
    assert "witness" in refused(store).message
    config = tmp_path / ".mentu" / "config.yaml"
    config.write_text("genesis_signers: [nonsense]\n")
    refused(JsonlStore.open(tmp_path))
    for wrong in ("genesis_signers: nonsense\n", "genesis_signers: [1]\n"):
        config.write_text(wrong)
        with pytest.raises(Refused) as caught:
            JsonlStore.open(tmp_path)
        assert caught.value.code == "E_CONFIG"
    config.write_text("genesis_signers: []\n")
    capture(JsonlStore.open(tmp_path))


def test_without_signers_a_signature_is_told_as_unverified(tmp_path: Path) -> None:
    store = fresh(tmp_path)
    key = put(tmp_path, IDENTITY)
    assert store.ruling().warnings() == []
    sign(key, OWNER)
    assert [warning.warning for warning in store.ruling().warnings()] == ["genesis_unverified"]
    capture(store)


def test_a_new_signature_keeps_those_on_the_same_key(tmp_path: Path) -> None:
    key = tmp_path / "draft.key"
    key.write_text(IDENTITY)
    assert write_signature(key, key.read_bytes(), OWNER)[1] == 1
    beside, count = write_signature(key, key.read_bytes(), OTHER)
    assert count == 2
    assert write_signature(key, key.read_bytes(), OWNER)[1] == 2
    for signer in (OWNER, OTHER):
        assert KeyFile(key, [str(signer.verifier)]).ruling().error is None
    key.write_text(IDENTITY + "# changed\n")
    assert write_signature(key, key.read_bytes(), OTHER)[1] == 1
    assert KeyFile(key, [str(OWNER.verifier)]).ruling().error is not None
    beside.write_bytes(b"no note")
    with pytest.raises(Refused) as caught:
        write_signature(key, key.read_bytes(), OTHER)
    assert caught.value.code == "E_NOTE_MALFORMED"
