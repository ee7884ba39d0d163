"""``troth receipt sign``, and what ``verify`` does about signatures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from troth.cli.answer import coloured, emit_json, note, printable, say
from troth.cli.options import json_option

if TYPE_CHECKING:
    from troth.receipts.envelopes import Signers
    from troth.receipts.member import Member

_F = TypeVar("_F", bound=Callable[..., Any])


def signature_options(command: _F) -> _F:
    """Add ``--key``, whom to believe, and how many of them must have signed."""
    command = click.option(
        "--envelope", metavar="FILE", help="The envelope. Default: receipt.dsse.json in the folder."
    )(command)
    command = click.option(
        "--quorum",
        type=click.IntRange(0),
        metavar="N",
        help="How many distinct witnesses named with --key must have signed. Default: one, where one is named.",
    )(command)
    command = click.option(
        "--threshold",
        type=click.IntRange(0),
        metavar="N",
        help="How many distinct approvers named with --key must have signed. Default: one, where one is named. A "
        "witness's key never counts as an approver's.",
    )(command)
    return click.option(
        "--key",
        "keys",
        multiple=True,
        metavar="KEY",
        help="Ask for signatures, and whom to believe: NAME+ID+BASE64, a file of such lines (./FILE), or the name of "
        "one of your own keys. Repeatable.",
    )(command)


@click.command(
    "sign",
    epilog="Exit codes: 0 signed, 1 the receipt is invalid, 2 refused. "
    "Example: troth receipt sign runs/last --key example.com/auditor",
)
@click.argument("folder", type=click.Path())
@click.option(
    "--key",
    "names",
    multiple=True,
    required=True,
    metavar="NAME",
    help="A private key of yours, or the file of one (./FILE). Repeatable.",
)
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the envelope there. Default: receipt.dsse.json in the folder, where signatures are added.",
)
@json_option
def sign_cmd(folder: str, names: tuple[str, ...], out: Path | None, as_json: bool) -> int:
    """Sign the receipt in a folder: a DSSE envelope with an Ed25519 signature of each key.

    The receipt is verified first; one that is invalid is not signed. A valid one is, whatever its verdict. A key made
    with `troth key new --witness` signs as a witness, any other as an approver.
    """
    from troth.receipts.envelopes import ENVELOPE_FILE, keyid_of, role_of
    from troth.receipts.signing import sign_receipt
    from troth.stores.durable import os_fault, replace_whole
    from troth.stores.keys import load_signer
    from troth.stores.members import FolderMember

    signers = [load_signer(name) for name in names]
    envelope, found = sign_receipt(FolderMember(folder), signers)
    where = out if out is not None else Path(folder, ENVELOPE_FILE)
    try:
        replace_whole(where, envelope.encode())
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, where, "the envelope cannot be written") from None
    done = found.done.as_json() if found.done is not None else {}
    made = [{"keyid": keyid_of(one.verifier), "role": role_of(one.verifier)} for one in signers]
    if as_json:
        count = len(envelope.signatures)
        emit_json({"envelope": str(where), "signed": made, "signatures": count, "done": done})
        return 0
    for one in made:
        say(f"signed as {one['role']} by {printable(one['keyid'])}")
    say(f"verdict   {done['decision'].replace('_', ' ')} ({done['reason']})")
    note(f"troth: the envelope is {printable(str(where))}; it holds {len(envelope.signatures)} signature(s).")
    return 0


def believed(
    member: Member, words: tuple[str, ...], threshold: int | None, quorum: int | None, envelope: str | None
) -> tuple[Member, Signers | None]:
    """Return the member as its signatures let it be seen, and who signed; unchanged where no key is named.

    Raises:
        TrothError: ``E_USAGE`` for numbers without keys; a code of keys, or of envelopes.
    """
    from troth.core.errors import Refused
    from troth.receipts.envelopes import MAX_ENVELOPE_BYTES, demand
    from troth.receipts.signing import as_signed
    from troth.stores.durable import read_regular
    from troth.stores.keys import verifier_keys

    if not words:
        if threshold is not None or quorum is not None or envelope is not None:
            raise Refused(
                "E_USAGE", "--threshold, --quorum and --envelope go with --key", remedy="Name whom to trust with --key."
            )
        return member, None
    asked = demand([key for word in words for key in verifier_keys(word)], threshold, quorum)
    data = None
    if envelope is not None:
        data = read_regular(Path(envelope), MAX_ENVELOPE_BYTES, "E_ENVELOPE_MISSING", "the envelope")
    return as_signed(member, asked, data)


def signature_report(member: Member, signers: Signers | None) -> dict[str, Any]:
    """Return what a report says about signatures."""
    from troth.receipts.envelopes import ENVELOPE_FILE
    from troth.receipts.member import ReadFault

    if signers is not None:
        return {"checked": True, **signers.as_json()}
    try:
        there = member.read(ENVELOPE_FILE) is not None
    except ReadFault:
        there = True
    return {"checked": False, "envelope": there}


def tell_signatures(report: dict[str, Any]) -> None:
    """Tell who signed, or that nobody looked."""
    if not report["checked"]:
        if report["envelope"]:
            say(f"{'signed':<10}an envelope lies in the folder; it was not checked, since no --key says whom to trust")
        return
    for one in report["verified"]:
        say(f"{'signed':<10}{coloured('by', 'green')} {printable(one['name'])} as {one['role']}")
    for keyid in report["bad"]:
        say(f"{'':<10}{coloured('a signature does not fit', 'red')}: {printable(keyid)}")
    if report["unknown"]:
        say(f"{'':<10}{report['unknown']} signature(s) by keys that are not trusted, which prove nothing")
