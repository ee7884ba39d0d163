"""A witness killed around each system call: what it gave away it remembers, so no crash makes it sign a fork."""

from __future__ import annotations

from pathlib import Path

import pytest

from stores.test_crash import CHANGING, _calls, _killing, _run, needs_strace
from troth.core.errors import DoesNotHold
from troth.core.notes import COSIGNATURE, ED25519, Signer, sign_note
from troth.ledger.checkpoint import Checkpoint
from troth.stores.witness import cosign

SIGNER = Signer("example.com/ledger", ED25519, bytes(range(32)))


def _side(path: Path, root: bytes) -> Path:
    path.write_bytes(sign_note(Checkpoint("w", 5, root).text(), [SIGNER]).encode())
    return path


def _signs(file: Path) -> bool:
    witness = Signer("example.com/witness", COSIGNATURE, bytes(range(32)))  # that of the worker
    try:
        cosign(file, witness, keys=[SIGNER.verifier], at=2)
    except DoesNotHold as fault:
        if fault.code != "E_CHECKPOINT_FORK":
            raise
        return False
    return True


@needs_strace
def test_a_witness_killed_around_each_call_signs_no_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours, fork = _side(tmp_path / "ours", bytes(32)), _side(tmp_path / "fork", b"\1" * 32)
    key = str(SIGNER.verifier)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "learn"))
    calls = _calls(["cosign", str(ours), key], CHANGING, tmp_path / "trace")
    assert {"flock", "write", "fsync", "rename"} <= {name for name, _ in calls}
    remembered = forgotten = 0
    for turn, (name, number) in enumerate(calls):
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / f"state{turn}"))
        killed = _run(["cosign", str(ours), key], *_killing(name, number))
        assert killed.killed
        other, again = _signs(fork), _signs(ours)
        # One side was signed and the other refused, and what left the killed process stands.
        assert other != again
        assert again or not killed.acked
        remembered += again
        forgotten += other
    assert remembered
    assert forgotten
