"""Real inputs for the readers: recorded runs of the demo, the tests' vectors and samples, published data."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from support import shared
from support.receipt_members import FILES, Draft

SHARED: Path | None = shared.SHARED
HERE: Final = Path(__file__).resolve().parent
CORPUS: Final = HERE / "corpus"
"""Files of two runs of `troth demo` (an honest agent's and a dishonest one's) and what stood beside them."""

TESTS: Final = HERE.parent / "tests"
SAMPLES: Final = TESTS / "observer" / "transcripts"

Seeds = Callable[[], list[bytes]]
_FEW: Final = 12
"""How many published files of one name are taken, the shortest first."""


@cache
def published(pattern: str) -> tuple[bytes, ...]:
    """Return published files below ``conformance/`` by a pattern, the shortest first."""
    if SHARED is None:
        return ()
    found = sorted(
        {path.read_bytes() for path in (SHARED / "conformance").glob(pattern)}, key=lambda one: (len(one), one)
    )
    return tuple(one for one in found if len(one) < 20_000)[:_FEW]


def own_alone() -> None:
    """Take no published data, so that the same inputs are made where it is not beside the project."""
    global SHARED  # noqa: PLW0603 - a choice of the whole process, made before any seed is read
    SHARED = None
    published.cache_clear()
    members.cache_clear()


def files(pattern: str, below: Path = CORPUS) -> list[bytes]:
    """Return recorded files by a pattern."""
    return [path.read_bytes() for path in sorted(below.glob(pattern))]


def dumps(values: Iterable[Any]) -> list[bytes]:
    """Write values in the two usual layouts by turns."""
    return [json.dumps(value, indent=2 if number % 2 else None).encode() for number, value in enumerate(values)]


@cache
def members() -> tuple[dict[str, bytes], ...]:
    """Return the files of whole runs: drafts of the tests that hold, and the recorded runs."""
    made = []
    for change in (lambda draft: None, Draft.launched, Draft.external, Draft.claim):
        draft = Draft()
        change(draft)
        made.append(draft.seal())
    folders = sorted(path for path in CORPUS.iterdir() if path.is_dir())
    if SHARED is not None:
        folders += sorted(SHARED.glob("conformance/receipts/done-receipt/*/*"))[:4]
    recorded = ({path.name: path.read_bytes() for path in folder.rglob("*.json")} for folder in folders)
    return (*made, *recorded)


def record(kind: str) -> Seeds:
    """Return the seeds of one record kind."""
    name = FILES[kind]

    def seeds() -> list[bytes]:
        return [*(one[name] for one in members() if name in one), *published(f"receipts/**/{name}")]

    return seeds


def of_member(*names: str) -> Seeds:
    """Return the seeds of files that stand in a run's folder."""
    return lambda: [
        data
        for name in names
        for data in (*(m[name] for m in members() if name in m), *published(f"receipts/**/{name}"))
    ]


SEPARATOR: Final = b"\n=== "
"""Stands before each file of an input that holds several; the name follows up to the end of the line."""


def joined(named: Mapping[str, bytes]) -> bytes:
    """Return several files as one input."""
    return b"".join(SEPARATOR + name.encode() + b"\n" + data for name, data in named.items())


def packed() -> list[bytes]:
    """Return whole runs, each as one text."""
    from receipts.test_receipt import sealed

    made = []
    for change in (lambda draft: None, Draft.launched, lambda draft: draft.values["tree"]["files"].update(x="0" * 64)):
        draft = Draft()
        change(draft)
        made.append(sealed(draft))
    return [joined(one) for one in (*made, *members())]


def unpacked(data: bytes) -> dict[str, bytes]:
    """Return the files that a text of :func:`joined` holds."""
    found = {}
    for part in data.split(SEPARATOR)[1:]:
        name, _, text = part.partition(b"\n")
        found[name.decode("utf-8", "replace")] = text
    return found


def envelopes() -> list[bytes]:
    from receipts.test_envelopes import ALICE, BOB, PAYLOAD, PUBLISHED, WITNESS, signed

    return [PUBLISHED, *(signed(PAYLOAD, who).encode() for who in ([ALICE], [ALICE, BOB], [WITNESS, ALICE]))]


def bundles() -> list[bytes]:
    from receipts.test_bundles import plain

    return [*dumps([plain()] * 2), *files("*.sigstore.json", TESTS / "stores" / "data")]


def notes() -> list[bytes]:
    from ledger.test_checkpoint import SIGNER, WITNESSES
    from troth.core.notes import sign_note

    text = "example.com/ledger\n5\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
    return [sign_note(text, who, at=1_700_000_000).encode() for who in ([SIGNER], [SIGNER, *WITNESSES])]


def proofs() -> list[bytes]:
    from ledger.test_checkpoint import consistency, inclusion

    return [
        inclusion(4, 11).encode(),
        inclusion(0, 1).encode(),
        consistency(5, 11).encode(),
        consistency(0, 3).encode(),
    ]


def keys() -> list[bytes]:
    from receipts.test_envelopes import ALICE, WITNESS

    return [text.encode() for one in (ALICE, WITNESS) for text in (str(one.verifier), one.secret_text())]


def rows() -> list[bytes]:
    """Return single rows: the demo's ledger, and vectors."""
    recorded = files("ledger.jsonl")[0].splitlines()
    shared = (SHARED / "conformance" / "sample-ledger.jsonl").read_bytes().splitlines()[:20] if SHARED else []
    return [row for row in (*recorded, *shared) if row]


def ledgers() -> list[bytes]:
    """Return small whole ledgers, with every operation."""
    from ledger.building import lines, reviewed

    whole = files("ledger.jsonl")[0].splitlines(keepends=True)
    return [b"".join(whole[:6]), b"".join(whole[:14]), lines(reviewed().rows)[:6000]]


def windows(data: bytes, size: int) -> list[bytes]:
    """Return stretches of so many lines."""
    lines = data.splitlines(keepends=True)
    return [b"".join(lines[at : at + size]) for at in range(0, len(lines), size)]


def transcripts(folder: str, name: str, size: int) -> Seeds:
    """Return stretches of a recorded session, its longest lines cut out."""

    def seeds() -> list[bytes]:
        data = (SAMPLES / folder / name).read_bytes()
        kept = b"".join(line for line in data.splitlines(keepends=True) if len(line) < 4000)
        return windows(kept, size)

    return seeds


def strace() -> list[bytes]:
    from support.tracing import lines

    return [*windows(files("strace.txt")[0], 25), lines(*(f"101 {text}" for text in _CALLS))]


_CALLS: Final = (
    'openat(AT_FDCWD</ws>, "a", O_WRONLY|O_CREAT|O_TRUNC, 0666) = 3</ws/a>', 'rename("a", "b") = 0',
    'write(1</dev/null>, "3 passed in 0.1s\\n", 17) = 17', 'unlinkat(AT_FDCWD</ws>, "b", 0) = -1 ENOENT (No such file)',
    "clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD, stack=0x7f, stack_size=0x9000}, 88 <unfinished ...>",
    "<... clone3 resumed>) = 102",
    "--- SIGCHLD {si_signo=SIGCHLD, si_code=CLD_EXITED, si_pid=102, si_uid=0, si_status=1} ---",
    'connect(3<socket:[1]>, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("1.2.3.4")}, 16) = -1 EPERM (x)',
)  # fmt: skip


def traces() -> list[bytes]:
    """Return whole traces of a sandboxed agent in ``/ws``."""
    from support.tracing import lines

    half = [f"101 {text}" for text in _CALLS]
    child = ['102 execve("/usr/bin/make", ["make"], 0x7f /* 1 var */) = 0', "102 +++ exited with 2 +++"]
    return [lines(*half[:3]), lines(*half[:6], *child, *half[6:]), lines(half[0]), lines(*half[:2], half[7])]


def deals() -> list[bytes]:
    from deals.moves import happy, jsonl, random_transcript
    from troth.deals.transcript import end_line, message_line

    whole = b"".join(message_line(step, message) for step, message in happy()) + end_line(60)
    return [whole, *(random_transcript(seed, 8) for seed in range(4)), jsonl()]


def proxied() -> list[bytes]:
    """Return a deal of 0.3-proxy with each kind of trustee."""
    from troth.lab.trustees import TRUSTEES, deal_with

    return [deal_with(name, 10).transcript() for name in TRUSTEES]


def messages() -> list[bytes]:
    from deals.moves import SPEAKER, message

    return dumps(message(1, kind) for kind in SPEAKER)


def reviews(*names: str) -> Seeds:
    """Return review documents: the tests' own and the published ones."""

    def seeds() -> list[bytes]:
        own = [(TESTS / "review" / "vectors" / f"{name}.json").read_bytes() for name in names]
        return [*own, *(one for name in names for one in published(f"review/*/*{name}*.json"))]

    return seeds


def decisions() -> list[bytes]:
    line = {
        "finding_id": "F001", "decision": "reject", "note": "No source.", "time": "2026-03-02T09:00:00Z",
        "actor": "human:lead", "channel": "terminal", "previous_state": "DEADLOCKED", "previous_item": "0" * 64,
    }  # fmt: skip
    from troth.review.decisions import MEMBERS

    whole = {name: line.get(name, "text") for name in MEMBERS}
    return [json.dumps(whole).encode() + b"\n", 2 * (json.dumps({**whole, "reason": "x"}).encode() + b"\n")]
