"""Feed mutated real records to every reader, and print what they made of them.

Each reader runs in a process of its own, so that one that dies of a signal or hangs in native code is told with the
input that it was reading. Ends with 1 when one raised anything but a coded refusal, hung, died or took too much memory;
the offending inputs, made smaller, stand in the folder named by ``--found``.
"""

from __future__ import annotations

# ruff: noqa: T201 - a program whose output is a table
import argparse
import json
import mmap
import multiprocessing
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
for place in (ROOT, ROOT / "src", ROOT / "tests"):
    if str(place) not in sys.path:
        sys.path.insert(0, str(place))

from fuzz.engine import MAX_INPUT, Found, Reader, Result, bounded_memory, fuzz, kept  # noqa: E402 - the paths come first
from fuzz.readers import READERS  # noqa: E402 - the paths come first
from fuzz.seeds import own_alone  # noqa: E402 - the paths come first

FLOORS = ROOT / "fuzz" / "floors.json"
"""Reader -> edges that the quick pass must reach (tests/project/test_fuzz.py)."""

STALLED = 300
"""Seconds after which a reader that has not taken another input is ended."""

HEAD = f"{'reader':26}{'inputs':>9}{'accepted':>10}{'edges':>14}{'codes':>7}{'1/s':>8}{'slowest':>16}{'grown':>9}"


def row(result: Result) -> str:
    """Return one line of the table."""
    rate = result.accepted / max(1, result.inputs)
    share = f"{result.reached}/{result.possible} {100 * result.reached // max(1, result.possible)}%"
    slow = f"{1000 * result.slowest:.1f} ms/{result.slowest_size}"
    return (
        f"{result.name:26}{result.inputs:9}{rate:10.1%}{share:>14}{len(result.codes):7}"
        f"{result.inputs / max(result.seconds, 1e-9):8.0f}{slow:>16}{result.grown // 1024:6} MiB"
    )


def told(result: Result) -> dict[str, Any]:
    """Return everything about a run, as JSON has it."""
    values = {name: getattr(result, name) for name in Result.__dataclass_fields__ if name != "faults"}
    return {**values, "faults": [one.what for one in result.faults]}


def record(folder: Path, result: Result, seed: int) -> None:
    """Write what a run came to, one file a reader, of which ``docs/fuzzing.md`` is made (``fuzz/page.py``)."""
    folder.mkdir(parents=True, exist_ok=True)
    codes = dict(sorted(result.codes.items()))
    said = {**told(result), "codes": codes, "seed": seed, "python": ".".join(map(str, sys.version_info[:3]))}
    text = json.dumps(said, indent=1, sort_keys=True) + "\n"
    (folder / f"{result.name.replace('/', '-')}.json").write_text(text)


def _child(reader: Reader, inputs: int, seed: int, current: mmap.mmap, answer: Any) -> None:
    with bounded_memory():
        answer.send(fuzz(reader, inputs, seed, current))


def run_one(reader: Reader, inputs: int, seed: int) -> Result:
    """Feed one reader in a process of its own."""
    context = multiprocessing.get_context("fork")
    current = mmap.mmap(-1, MAX_INPUT + 16)
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_child, args=(reader, inputs, seed, current, theirs))
    child.start()
    theirs.close()
    seen, since = b"", time.monotonic()
    result = None
    while result is None:
        try:
            if ours.poll(2):
                result = ours.recv()
        except EOFError:
            break
        now = current[: 16 + 64]
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > STALLED:
            child.kill()
    child.join()
    if result is None:
        data = current[16 : 16 + int(current[:16])]
        result = Result(reader.name, faults=[Found(f"the process ended with {child.exitcode}", data)])
    return result


def write_floors(chosen: list[Reader]) -> None:
    """Write nine tenths of the edges that the quick pass reaches with the project's own seeds, reader by reader."""
    own_alone()
    floors = json.loads(FLOORS.read_bytes()) if FLOORS.exists() else {}
    for reader in chosen:
        floors[reader.name] = fuzz(reader, reader.few, 1).reached * 9 // 10
    known = {one.name for one in READERS}
    kept_floors = {name: floors[name] for name in sorted(floors) if name in known}
    FLOORS.write_text(json.dumps(kept_floors, indent=1) + "\n")


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--reader", action="append", help="a name, a room such as receipts, or all; repeatable")
    parser.add_argument("--inputs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="folder for offending inputs")
    parser.add_argument("--codes", action="store_true", help="print how often each refusal was given")
    parser.add_argument("--json", action="store_true", help="one JSON object a reader instead of the table")
    parser.add_argument(
        "--record", type=Path, metavar="DIR", help="write what each reader's run came to into this folder"
    )
    parser.add_argument("--floors", action="store_true", help="measure the quick pass anew and write fuzz/floors.json")
    parser.add_argument("--list", action="store_true", help="print the names")
    words = parser.parse_args()
    wanted = words.reader or ["all"]
    chosen = [one for one in READERS if "all" in wanted or one.name in wanted or one.name.split("/")[0] in wanted]
    if not chosen:
        parser.error("no reader of that name; --list tells them")
    if words.list:
        print("\n".join(one.name for one in chosen))
        return 0
    if words.floors:
        write_floors(chosen)
        return 0
    print("" if words.json else HEAD, flush=True, end="" if words.json else "\n")
    failed = False
    for reader in chosen:
        result = run_one(reader, words.inputs, words.seed)
        if words.json:
            print(json.dumps(told(result)), flush=True)
        else:
            print(row(result), flush=True)
        if words.record:
            record(words.record, result, words.seed)
        if words.codes:
            print("    " + ", ".join(f"{code} {count}" for code, count in result.codes.most_common(60)), flush=True)
        for found in result.faults:
            failed = True
            print(f"    FAULT {found.what}: {kept(words.found, reader.name, found)}", file=sys.stderr, flush=True)
    return int(failed)


if __name__ == "__main__":
    raise SystemExit(main())
