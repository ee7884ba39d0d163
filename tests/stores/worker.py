"""A process of its own that uses the store; started by the tests with a mode and its arguments."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from troth.core.errors import TrothError
from troth.ledger.operations import Candidate
from troth.stores.jsonl import JsonlStore
from troth.stores.opening import open_store
from troth.stores.protocol import LedgerStore
from troth.stores.workspace import create_workspace


def say(value: Any) -> None:
    """Print one JSON line in one call, so that a killed process has either said it or not."""
    os.write(1, json.dumps(value).encode() + b"\n")


def capture(store: LedgerStore, body: str, actor: str = "agent:worker") -> str:
    """Append one capture and return its id."""
    return str(store.append(Candidate("capture", actor, {"body": body}))["id"])


def main(mode: str, where: str, *words: str) -> None:
    """Run one mode."""
    if mode == "init":
        say("begin")
        create_workspace(Path(where), name="w", agents_text="text\n")
        say("done")
        return
    if mode == "import":
        from troth.stores.importing import read_v1

        store, rows = JsonlStore.open(where), read_v1(Path(words[0]))
        say("begin")
        store.fill(rows)
        say("done")
        return
    if mode == "merge":
        from troth.stores.merging import merge

        say("begin")
        try:
            done = merge(Path(where), Path(words[0]), in_place=True)
        except TrothError as fault:
            say({"code": fault.code})
        else:
            say({"ack": done.plan.outcome})
        return
    if mode == "cosign":
        from troth.core.notes import COSIGNATURE, Signer, parse_verifier
        from troth.stores.witness import cosign

        witness, key = Signer("example.com/witness", COSIGNATURE, bytes(range(32))), parse_verifier(words[0])
        witness.verifier  # noqa: B018 - loads what signs before the counting begins
        say("begin")
        done = cosign(Path(where), witness, keys=[key], at=1)
        say({"ack": done.checkpoint.root.hex()})
        return
    if mode == "export":
        from troth.ledger.sync import peer
        from troth.stores.exporting import prepare, write

        ledger = open_store(where)
        chosen = prepare(ledger, peer(ledger.genesis(), "peer"))
        say("begin")
        write(ledger, Path(words[0]), chosen.pieces(), force=words[1] == "force")
        say("done")
        return
    more = {"wait_seconds": float(words[2])} if mode == "stubborn" and len(words) > 2 else {}
    store = open_store(where, notify=lambda text: print(text, file=sys.stderr), **more)
    if mode == "once":
        say("begin")
        say({"ack": capture(store, words[0])})
    elif mode == "group":
        say("begin")
        rows = store.append_many(
            [lambda _, n=n: Candidate("capture", "agent:worker", {"body": f"{words[0]} {n}"}) for n in range(3)]  # type: ignore[misc]  # bound at once
        )
        say({"ack": [row["id"] for row in rows if isinstance(row, dict)]})
    elif mode == "rows":
        from troth.ledger.foreign import Fields
        from troth.stores import importing

        importing.GROUP = 3  # type: ignore[misc]  # so that a few lines make several groups
        if len(words) > 1:
            import resource

            limit = Path(store.location).stat().st_size + int(words[1])
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        with importing.opened(Path(words[0])) as fd:
            say("begin")
            lines = importing.lines_of(fd, Fields(), "agent:importer")
            try:
                report = importing.bring(store, lines, progress=lambda done: os.write(2, b"durable %d\n" % done))
            except TrothError as fault:
                say({"code": fault.code})
            else:
                say({"ack": [report.imported, report.present, report.refused_count]})
    elif mode == "limited":
        # A file size limit makes the kernel write a part and then refuse: a real short write.
        import resource

        limit = Path(store.location).stat().st_size + int(words[0])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        try:
            say({"ack": capture(store, "x" * 200)})
        except TrothError as fault:
            say({"code": fault.code, "message": str(fault)})
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        say({"ack": capture(store, "after")})
    elif mode == "many":
        say("ready")
        sys.stdin.readline()
        say([capture(store, f"{words[0]} {number}") for number in range(int(words[1]))])
    elif mode == "stubborn":
        say("ready")
        sys.stdin.readline()
        for number in range(int(words[1])):
            for again in range(1000):
                body = f"{words[0]} {number} {again}"
                try:
                    say({"ack": capture(store, body), "body": body})
                    break
                except TrothError as fault:
                    say({"code": fault.code, "body": body})
        say("done")
    elif mode == "claims":
        say("ready")
        for line in sys.stdin:
            claim = Candidate("claim", words[0], {"body": "Claimed", "commitment": line.strip()})
            try:
                say({"id": store.append(claim)["id"]})
            except TrothError as fault:
                say({"code": fault.code, "message": fault.message})
    else:
        raise SystemExit(f"unknown mode {mode}")


if __name__ == "__main__":
    main(*sys.argv[1:])
