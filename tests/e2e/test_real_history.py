"""The changes of two large projects, as published, in one ledger: more than fifty thousand signals in and out again.

The archives' versions and hashes are pinned in ``published_changes.txt``; they come through pip from whatever index the
machine is set up with.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.real_changelog import as_lines, entries
from support.frontdoor import Answer, troth

PINS = Path(__file__).with_name("published_changes.txt")
ENTRIES = {"nova": 36_010, "neutron": 14_928}
IMPORT = ("--body-field", "subject", "--key-field", "key", "--as", "agent:importer", "--json")
SECONDS = 900


def _fetch(folder: Path) -> None:
    """Download both archives; pip compares their hashes before it asks them for their metadata."""
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "--require-hashes",
         "-r", str(PINS), "-d", str(folder)],
        capture_output=True, text=True, check=False, timeout=SECONDS,
    )  # fmt: skip
    if done.returncode:
        if os.environ.get("TROTH_NETWORK") == "1":
            pytest.fail(f"the published archives could not be fetched: {done.stderr[-500:]}")
        pytest.skip("no package index within reach")


def _changes(folder: Path) -> Iterator[str]:
    for requirement in PINS.read_text().splitlines():
        found = re.fullmatch(r"([a-z]+)==([0-9.]+) --hash=sha256:([0-9a-f]{64})", requirement)
        assert found is not None
        name, version, digest = found.groups()
        archive = folder / f"{name}-{version}.tar.gz"
        assert hashlib.sha256(archive.read_bytes()).hexdigest() == digest
        with tarfile.open(archive) as tar:
            member = tar.extractfile(f"{name}-{version}/ChangeLog")
            assert member is not None
            told = list(entries(name, member.read().decode().split("\n")))
        assert len(told) == ENTRIES[name]
        yield as_lines(told)


@pytest.mark.slow
def test_more_than_fifty_thousand_real_signals_go_in_and_out(tmp_path: Path) -> None:
    _fetch(tmp_path)
    file = tmp_path / "changes.jsonl"
    file.write_text("".join(_changes(tmp_path)))
    total = sum(ENTRIES.values())
    spaces = [tmp_path / "one", tmp_path / "two"]
    for space in spaces:
        space.mkdir()
        assert troth("init", cwd=space).exit == 0

    def timed(*words: str | Path, at: Path = spaces[0]) -> Answer:
        begun = time.monotonic()
        answer = troth(*words, cwd=at, timeout=SECONDS)
        assert answer.exit == 0, answer.err
        print(f"{words[0]}: {time.monotonic() - begun:.1f} s")
        return answer

    told = timed("import", file, *IMPORT).json
    assert (told["imported"], told["present"], told["refused"]) == (total, 0, [])
    verified = timed("verify", "--json").json
    assert (verified["ok"], verified["head"]) == (True, told["head"])
    assert f"{total}/{total} verified" in timed("status").out
    assert "live migration" in timed("find", "live migration").out.lower()
    copy = tmp_path / "copy.jsonl"
    timed("export", "--whole", copy)
    ledgers = [space / ".mentu" / "ledger.jsonl" for space in spaces]
    whole = timed("import", "--format", "whole", copy, "--json", at=spaces[1]).json
    assert (whole["imported"], whole["head"]) == (total, told["head"])
    before = ledgers[0].read_bytes()
    assert before == ledgers[1].read_bytes()
    for space in spaces:
        again = timed("import", file, *IMPORT, at=space).json
        assert (again["imported"], again["present"], again["head"]) == (0, total, told["head"])
    assert [ledger.read_bytes() for ledger in ledgers] == [before, before]
