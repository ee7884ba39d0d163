"""Makes many run folders of one: python scripts/many_runs.py RUN OUT [--count N] [--spoil N].

Every folder is a run of its own: its ids are others, so every record has other bytes, and each digest by which one
record names another is made anew. Nothing else differs, so all come to what the first one comes to. With ``--spoil N``
every Nth is spoilt in one of the ways of SPOILS, in turn; the folder's name ends with the way.

It is for trials and measurements; what it makes are not runs of anything.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Callable
from pathlib import Path

Files = dict[str, bytes]


def _changed(files: Files) -> None:
    files["grade.json"] += b"\n"


def _missing(files: Files) -> None:
    del files["claims.json"]


def _torn(files: Files) -> None:
    files["receipt.json"] = files["receipt.json"][: len(files["receipt.json"]) // 2]


def _upgraded(files: Files) -> None:
    receipt = json.loads(files["receipt.json"])
    decisions = {"supported": "contradicted"}
    said = receipt["predicate"]["verdict"]["decision"]
    receipt["predicate"]["verdict"]["decision"] = decisions.get(said, "supported")
    files["receipt.json"] = json.dumps(receipt).encode()


SPOILS: dict[str, Callable[[Files], None]] = {
    "changed": _changed,
    "missing": _missing,
    "torn": _torn,
    "upgraded": _upgraded,
}


def read_run(folder: Path) -> Files:
    """Return the JSON files of a run."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("*.json"))}


def renamed(files: Files, names: dict[str, str]) -> Files:
    """Return the files with ids replaced by others of the same length, and every digest of a file by the new one."""
    digests = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    found = dict(files)
    for old, new in names.items():
        if len(old.encode()) != len(new.encode()):
            raise ValueError(f"{new!r} is not as long as {old!r}, whose place it takes")
        found = {name: data.replace(old.encode(), new.encode()) for name, data in found.items()}
    # A file names others by their digests, never in a circle: after as many turns as there are files all agree.
    for _ in found:
        now = {name: hashlib.sha256(data).hexdigest() for name, data in found.items()}
        moved = [(digests[name].encode(), now[name].encode()) for name in found if digests[name] != now[name]]
        if not moved:
            break
        for old_digest, new_digest in moved:
            found = {name: data.replace(old_digest, new_digest) for name, data in found.items()}
        digests = now
    return found


def main() -> None:
    """Make them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a run with a receipt")
    parser.add_argument("out", type=Path, help="a folder, made if it is not there")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--spoil", type=int, default=0, metavar="N", help="spoil every Nth (default: none)")
    arguments = parser.parse_args()
    files = read_run(arguments.run)
    predicate = json.loads(files["receipt.json"])["predicate"]
    ids = (predicate["claim_id"], predicate["invocation_id"])
    for number in range(arguments.count):
        # The last digits of an id make room for the number.
        made = renamed(files, {name: f"{name[: max(len(name) - 6, 0)]}{number:06}"[-len(name) :] for name in ids})
        name = f"run-{number:06}"
        if arguments.spoil and number % arguments.spoil == arguments.spoil - 1:
            way = list(SPOILS)[number // arguments.spoil % len(SPOILS)]
            SPOILS[way](made)
            name = f"{name}-{way}"
        folder = arguments.out / name
        folder.mkdir(parents=True)
        for file, data in made.items():
            (folder / file).write_bytes(data)


if __name__ == "__main__":
    main()
