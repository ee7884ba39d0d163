"""``troth checkpoint``: sign what a ledger is, let others sign it too, prove rows and growth, and check all of that."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.options import json_option, open_ledger, reading_options, store_option, trust_options
from troth.cli.progress import Progress
from troth.core.errors import Refused
from troth.core.instants import format_instant

if TYPE_CHECKING:
    from collections.abc import Callable

    from troth.core.notes import VerifierKey
    from troth.ledger.checkpoint import SignedCheckpoint
    from troth.stores.protocol import LedgerStore

_FILE = click.Path(path_type=Path)


@click.group("checkpoint", epilog="Example: troth checkpoint create --key example.com/my-ledger")
def checkpoint_cmd() -> None:
    """Sign what a ledger is, so that a cut, a dropped row or a rewritten history shows.

    A checkpoint is a small text file: keep it, publish it, have others cosign it. `troth verify --checkpoint FILE`
    then proves that today's ledger continues it.
    """


def out_option(what: str) -> Callable[[Any], Any]:
    """Return ``-o``."""
    return click.option("-o", "--out", type=_FILE, metavar="FILE", help=what)


def _trusted(keys: tuple[str, ...], store: LedgerStore | None = None) -> list[VerifierKey]:
    from troth.stores.checkpoints import trusted_keys

    return trusted_keys(keys, store)


def _say_checkpoint(signed: SignedCheckpoint, others: str = "not known") -> None:
    found = signed.checkpoint
    say(f"{printable(found.origin, 256)}  {found.size} rows  root {found.root.hex()}")
    for line in found.extensions:
        say(f"  extension: {printable(line, 400)}")
    _say_signatures(signed, others)


def _say_signatures(signed: SignedCheckpoint, others: str = "not known") -> None:
    for one in signed.examined.verified:
        when = f", {_instant(one.time)}" if one.time is not None else ""
        kind = "witness" if one.key.is_witness else "signer"
        say(f"  signed by {printable(one.key.name, 100)} ({kind} {one.key.id.hex()}{when})")
    for other in signed.examined.unknown:
        say(f"  {others}: {printable(other.name, 100)} ({other.key_id.hex()})")


def _instant(seconds: int) -> str:
    try:
        return format_instant(datetime.fromtimestamp(seconds, UTC))
    except (ValueError, OverflowError, OSError):
        return f"second {seconds}"


# Making --------------------------------------------------------------------------------------------------------------


@checkpoint_cmd.command(
    "create",
    short_help="Sign the ledger as it is now.",
    epilog="Exit codes: 0 signed, 1 the ledger does not verify or does not continue an earlier checkpoint, 2 refused. "
    "Example: troth checkpoint create --key example.com/my-ledger",
)
@click.option("--key", "key", metavar="NAME", help="Your key that signs, or ./FILE; default: your only one.")
@click.option(
    "--origin",
    metavar="NAME",
    help="What the ledger is called. Default: checkpoint_origin of config.yaml, then the workspace's name.",
)
@out_option("Where to write it; default: .mentu/checkpoints/<rows>.checkpoint.")
@reading_options
def create_cmd(key: str | None, origin: str | None, out: Path | None, store: str | None, as_json: bool) -> int:
    """Sign the ledger as it is now: its origin, its number of rows, and the Merkle root over them."""
    from troth.stores.checkpoints import create
    from troth.stores.keys import load_signer, only_signer

    signer = load_signer(key) if key is not None else only_signer()
    ledger = open_ledger(store)
    with Progress("verifying") as progress:
        made = create(ledger, signer, origin=origin, out=out, progress=progress)
    if as_json:
        emit_json(made.signed.as_json() | {"file": str(made.path), "created": made.created})
        return 0
    if not made.created:
        say(f"{printable(str(made.path))} says that already; nothing was changed.")
    else:
        say(f"Wrote {printable(str(made.path))}")
    _say_checkpoint(made.signed)
    say("Give it to others, or have it cosigned: it shows a cut or rewritten ledger only where you cannot replace it.")
    return 0


@checkpoint_cmd.command(
    "cosign",
    short_help="Sign somebody's checkpoint as a witness.",
    epilog="Exit codes: 0 signed, 1 it is a fork or its signature is bad, 2 refused, 3 nothing shows that it continues "
    "the last one you signed. Example: troth checkpoint cosign 120.checkpoint --key example.com/auditor "
    "--log-key example.com/my-ledger+1a2b3c4d+AbCd…",
)
@click.argument("file", type=_FILE)
@click.option("--key", "key", metavar="NAME", required=True, help="Your witness key (`troth key new NAME --witness`).")
@click.option(
    "--log-key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="Whose checkpoints of that origin to accept. Needed the first time, remembered then.",
)
@click.option("--proof", type=_FILE, metavar="FILE", help="What `troth checkpoint consistency` wrote.")
@out_option("Where to write the cosigned checkpoint; default: FILE itself.")
@store_option
@json_option
def cosign_cmd(
    *,
    file: Path,
    key: str,
    keys: tuple[str, ...],
    proof: Path | None,
    out: Path | None,
    store: str | None,
    as_json: bool,
) -> int:
    """Sign somebody's checkpoint as a witness, with the time.

    Only what continues the last checkpoint you signed of that origin is signed, shown by the ledger (--store) or by a
    proof of consistency (--proof); never a fork, and nothing older.
    """
    from troth.stores.checkpoints import put, write_new
    from troth.stores.keys import load_signer
    from troth.stores.witness import cosign

    signer = load_signer(key)
    ledger = open_ledger(store) if store is not None else None
    with Progress("verifying") as progress:
        done = cosign(
            file,
            signer,
            keys=_trusted(keys),
            at=int(time.time()),
            store=ledger,
            proof=proof,
            progress=progress,
        )
    data = done.note.encode()
    target = out if out is not None else file
    if out is None:
        put(target, data)
    else:
        write_new(target, data)
    if as_json:
        emit_json(
            done.checkpoint.as_json()
            | {"file": str(target), "key": str(signer.verifier), "time": done.time, "before": done.before}
        )
        return 0
    seen = "the first of that origin" if done.before is None else f"the last one covered {done.before} rows"
    say(f"Signed {printable(done.checkpoint.origin, 256)} at {done.checkpoint.size} rows ({seen}).")
    return 0


# Looking -------------------------------------------------------------------------------------------------------------


@checkpoint_cmd.command(
    "show",
    short_help="Show what a checkpoint says, unchecked.",
    epilog="Example: troth checkpoint show .mentu/checkpoints/120.checkpoint",
)
@click.argument("file", type=_FILE)
@json_option
def show_cmd(file: Path, as_json: bool) -> int:
    """Show what a checkpoint says and who is said to have signed it; nothing is checked."""
    from troth.core.digests import sha256_hex
    from troth.stores.checkpoints import load

    signed = load(file)
    said = signed.examined.unknown
    text = signed.examined.note.text
    if as_json:
        emit_json(
            signed.checkpoint.as_json()
            | {
                "extensions": list(signed.checkpoint.extensions),
                "signatures": [{"name": one.name, "id": one.key_id.hex()} for one in said],
                "text_sha256": sha256_hex(text.encode("utf-8")),
            }
        )
        return 0
    _say_checkpoint(signed, "said to be signed by")
    say("Nothing was checked; `troth checkpoint verify` does that.")
    return 0


@checkpoint_cmd.command(
    "verify",
    short_help="Check signatures and the timestamp.",
    epilog="Exit codes: 0 signed as asked for, 1 a signature or the timestamp is bad, 2 refused, 3 not established: no "
    "signature by a trusted key, too few witnesses, a timestamp nobody vouches for. "
    "Example: troth checkpoint verify 120.checkpoint --key example.com/my-ledger+1a2b3c4d+AbCd…",
)
@click.argument("file", type=_FILE)
@trust_options
@click.option("--timestamp", "stamp", type=_FILE, metavar="FILE", help="A timestamp; default: the one beside FILE.")
@click.option("--tsa-cert", type=_FILE, metavar="FILE", help="Certificates that vouch for timestamp services.")
@json_option
def verify_cmd(
    *, file: Path, keys: tuple[str, ...], quorum: int, stamp: Path | None, tsa_cert: Path | None, as_json: bool
) -> int:
    """Check the signatures of a checkpoint, and its timestamp where there is one; no ledger is needed."""
    from troth.stores.checkpoints import beside, load
    from troth.stores.timestamps import SUFFIX, check_stamp

    signed = load(file, _trusted(keys))
    lack = signed.lack(quorum)
    if stamp is None and (tsa_cert is not None or beside(file, SUFFIX).exists()):
        stamp = beside(file, SUFFIX)
    stamped = None
    if stamp is not None:
        text = signed.examined.note.text.encode("utf-8")
        stamped = check_stamp(text, stamp, tsa_cert)
    if lack is None and stamped is not None:
        lack = stamped.lack()
    if as_json:
        emit_json(
            {"established": lack is None}
            | signed.as_json()
            | {
                "lacks": None if lack is None else {"code": lack.code, "message": lack.message},
                "timestamp": None if stamped is None else stamped.as_json(),
            }
        )
        return 0 if lack is None else lack.exit_code
    _say_checkpoint(signed)
    if stamped is not None:
        vouched = "vouched for" if stamped.verified else "nobody vouches for it"
        say(f"  timestamp {format_instant(stamped.at)} ({vouched})")
    if lack is not None:
        note(f"troth: not established: {lack}")
        return lack.exit_code
    say("The signatures hold.")
    return 0


# Proofs --------------------------------------------------------------------------------------------------------------


@checkpoint_cmd.command(
    "prove",
    short_help="Write the proof that a row is in the ledger.",
    epilog="Exit codes: 0 written, 1 the ledger does not verify or is not the checkpoint's, 2 refused. "
    "Example: troth checkpoint prove cmt_e5f6g7h8 -o row.tlog-proof",
)
@click.argument("identifier", metavar="ID")
@click.option("--checkpoint", type=_FILE, metavar="FILE", help="Default: the largest one in .mentu/checkpoints.")
@out_option("Where to write it; default: <ID>.tlog-proof here.")
@reading_options
def prove_cmd(identifier: str, checkpoint: Path | None, out: Path | None, store: str | None, as_json: bool) -> int:
    """Write the proof that one row is in the ledger: the row, the way to the root, and the checkpoint.

    Whoever has that file and your public key can check it, without the ledger: `troth checkpoint verify-proof`.
    """
    from troth.ledger.rows import parse_row
    from troth.stores.checkpoints import PROOF_SUFFIX, prove, write_new
    from troth.stores.keys import file_name

    with Progress("verifying") as progress:
        proof = prove(open_ledger(store), identifier, checkpoint, progress=progress)
    found = str(parse_row(proof.row).get("id"))
    target = out if out is not None else Path(f"{file_name(found)}{PROOF_SUFFIX}")
    data = proof.encode()
    write_new(target, data)
    if as_json:
        emit_json({"id": found, "index": proof.index, "file": str(target), "bytes": len(data)})
        return 0
    say(f"Wrote {printable(str(target))}: {printable(found, 80)} is row {proof.index + 1}.")
    return 0


@checkpoint_cmd.command(
    "consistency",
    short_help="Write the proof that a ledger grew.",
    epilog="Exit codes: 0 written, 1 the ledger does not verify or is not the checkpoints', 2 refused. "
    "Example: troth checkpoint consistency 100.checkpoint 120.checkpoint -o growth.tlog-proof",
)
@click.argument("old", type=_FILE)
@click.argument("new", type=_FILE)
@out_option("Where to write it; default: <old>-<new>.tlog-proof here.")
@reading_options
def consistency_cmd(old: Path, new: Path, out: Path | None, store: str | None, as_json: bool) -> int:
    """Write the proof that the checkpoint NEW continues the checkpoint OLD."""
    from troth.ledger.checkpoint import read_checkpoint
    from troth.stores.checkpoints import PROOF_SUFFIX, consistency, write_new

    with Progress("verifying") as progress:
        proof = consistency(open_ledger(store), old, new, progress=progress)
    before = read_checkpoint(proof.old, []).checkpoint.size
    after = read_checkpoint(proof.checkpoint, []).checkpoint.size
    target = out if out is not None else Path(f"{before}-{after}{PROOF_SUFFIX}")
    data = proof.encode()
    write_new(target, data)
    if as_json:
        emit_json({"old": before, "new": after, "file": str(target), "bytes": len(data)})
        return 0
    say(f"Wrote {printable(str(target))}: {after} rows begin with those {before}.")
    return 0


@checkpoint_cmd.command(
    "verify-proof",
    short_help="Check a proof; no ledger is needed.",
    epilog="Exit codes: 0 proven, 1 the proof or a signature does not hold, 2 no proof, 3 not established: no "
    "signature by a trusted key, or too few witnesses. "
    "Example: troth checkpoint verify-proof row.tlog-proof --key example.com/my-ledger+1a2b3c4d+AbCd…",
)
@click.argument("file", type=_FILE)
@trust_options
@json_option
def verify_proof_cmd(file: Path, keys: tuple[str, ...], quorum: int, as_json: bool) -> int:
    """Check a proof of a row or of growth, with the file and the keys alone."""
    from troth.core.errors import Place, TrothError
    from troth.ledger.checkpoint import ConsistencyProof, check_consistency, check_inclusion, parse_proof
    from troth.stores.checkpoints import read_proof

    data = read_proof(file)
    trusted = _trusted(keys)
    try:
        proof = parse_proof(data)
        if isinstance(proof, ConsistencyProof):
            grown = check_consistency(proof, trusted, quorum)
        else:
            proven = check_inclusion(proof, trusted, quorum)
    except TrothError as fault:
        fault.place = fault.place or Place(file=str(file))
        raise
    if isinstance(proof, ConsistencyProof):
        if as_json:
            emit_json({"proven": True, "kind": "growth", "old": grown.old.as_json(), "new": grown.new.as_json()})
            return 0
        old, new = grown.old.checkpoint, grown.new.checkpoint
        say(f"Proven: the {new.size} rows of {printable(new.origin, 256)} begin with the {old.size} signed before.")
        _say_signatures(grown.new)
        return 0
    if as_json:
        emit_json(
            {
                "proven": True,
                "kind": "row",
                "index": proven.index,
                "signal": proven.row.value,
                "checkpoint": proven.signed.as_json(),
            }
        )
        return 0
    found = proven.signed.checkpoint
    value = proven.row.value
    payload = value.get("payload")
    body = payload.get("body") if isinstance(payload, dict) else None
    say(f"Proven: row {proven.index + 1} of {found.size} of {printable(found.origin, 256)}")
    words = (value.get("ts"), value.get("actor"), value.get("op"), value.get("id"), body)
    say("  " + "  ".join(printable(str(word), 200) for word in words if word is not None))
    _say_signatures(proven.signed)
    return 0


# Timestamps ----------------------------------------------------------------------------------------------------------


@checkpoint_cmd.command(
    "timestamp",
    short_help="Have a third party stamp the time on it.",
    epilog="Exit codes: 0 stamped, 1 the answer is not of this checkpoint, 2 refused, 3 the service gave none. "
    "Example: troth checkpoint timestamp 120.checkpoint --tsa-cert root.pem",
)
@click.argument("file", type=_FILE)
@click.option("--url", metavar="URL", help="The service (RFC 3161). Default: timestamp_url of config.yaml.")
@click.option("--tsa-cert", type=_FILE, metavar="FILE", help="Certificates that vouch for the service.")
@reading_options
def timestamp_cmd(file: Path, url: str | None, tsa_cert: Path | None, store: str | None, as_json: bool) -> int:
    """Have a third party stamp the time on a checkpoint; the answer goes beside it, as FILE.tsr."""
    from troth.stores.checkpoints import beside, load, write_new
    from troth.stores.timestamps import SUFFIX, URL_SETTING, request_stamp

    signed = load(file)
    if url is None:
        configured = open_ledger(store).config.other.get(URL_SETTING)
        if not isinstance(configured, str):
            raise Refused(
                "E_USAGE",
                "no timestamp service is configured",
                remedy=f"Name one with --url, or as {URL_SETTING} in config.yaml.",
            )
        url = configured
    target = beside(file, SUFFIX)
    if target.exists():
        raise Refused(
            "E_CHECKPOINT_EXISTS", f"it is stamped already: {target}", remedy="Move the old stamp away to get another."
        )
    stamp = request_stamp(signed.examined.note.text.encode("utf-8"), url, certificates=tsa_cert)
    write_new(target, stamp.data)
    if as_json:
        emit_json(stamp.as_json() | {"file": str(target)})
        return 0
    vouched = "the certificate vouches for it" if stamp.verified else "nobody vouched for it yet, see --tsa-cert"
    say(f"Wrote {printable(str(target))}: {format_instant(stamp.at)} ({vouched}).")
    return 0
