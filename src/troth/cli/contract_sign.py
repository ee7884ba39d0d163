"""``troth contract sign``: a sealed contract's Statement in an envelope, signed with one's own keys."""

from __future__ import annotations

from pathlib import Path

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.contract_common import LIMIT, read_sealed
from troth.cli.options import actor_option, json_option
from troth.core.errors import TrothError


def _present(path: Path) -> bytes | None:
    from troth.stores.durable import read_regular

    return read_regular(path, LIMIT, "E_ENVELOPE_MISSING", "the envelope") if path.exists() else None


def _recorded(path: Path, contract: bytes, seal: bytes | None, actor: str | None) -> str | None:
    """Tell the ledger beside the contract what was signed, and return the row's id, where there is a ledger.

    The envelopes stand already: what the ledger does not take is told, and is no refusal.
    """
    from troth.airlock.sealings import ledger_beside, record_signed, sealing_of
    from troth.cli.options import acting

    sealing = sealing_of(contract, seal)
    try:
        store = ledger_beside(path)
        if store is None or sealing is None:
            return None
        return record_signed(store, acting(actor, store), sealing)
    except TrothError as fault:
        note(f"troth: signed, but the ledger does not know of it: {printable(str(fault), 1000)}")
        return None


@click.command(
    "sign",
    epilog="Exit codes: 0 signed, 1 the Statement is invalid, 2 refused. "
    "Example: troth contract sign .mentu/contracts/empty-cart --key example.com/owner",
)
@click.argument("where", type=click.Path(path_type=Path), metavar="DIR|FILE")
@click.option(
    "--key",
    "names",
    multiple=True,
    required=True,
    metavar="NAME",
    help="A private key of yours, or the file of one (./FILE). Repeatable.",
)
@actor_option
@json_option
def sign_cmd(where: Path, names: tuple[str, ...], actor: str | None, as_json: bool) -> int:
    """Sign a sealed contract: DSSE envelopes of its Statement (statement.dsse.json) and of its seal (seal.dsse.json).

    A run that is given `--contract-key` takes no contract that is not signed so. The ledger of the workspace in which
    the contract lies is told, so that no run takes an older sealing of it any more.
    """
    from troth.airlock.sealed import read_seal
    from troth.core.digests import sha256_hex
    from troth.receipts.contract_signing import CONTRACT_ENVELOPE, SEAL_ENVELOPE, sign_contract, sign_seal
    from troth.receipts.demands import keyid_of, role_of
    from troth.receipts.member import STATEMENT_FILE
    from troth.stores.durable import os_fault, read_regular, replace_whole
    from troth.stores.keys import load_signer

    path, contract, _ = read_sealed(where)
    statement = read_regular(path.with_name(STATEMENT_FILE), LIMIT, "E_STATEMENT", "the Statement")
    seal = read_seal(path)
    target, beside = path.with_name(CONTRACT_ENVELOPE), path.with_name(SEAL_ENVELOPE)
    signers = [load_signer(name) for name in names]
    envelope = sign_contract(contract, statement, signers, _present(target))
    written = {target: envelope.encode()}
    written[beside] = sign_seal(seal, contract, signers, _present(beside)).encode()
    for where_to, data in written.items():
        try:
            replace_whole(where_to, data)
        except OSError as fault:
            raise os_fault("E_UNREADABLE", fault, where_to, "the envelope cannot be written") from None
    row = _recorded(path, contract, seal, actor)
    made = [{"keyid": keyid_of(one.verifier), "role": role_of(one.verifier)} for one in signers]
    count = len(envelope.signatures)
    if as_json:
        told = {"envelope": str(target), "contract_sha256": sha256_hex(contract), "signed": made, "signatures": count}
        emit_json({**told, "row": row})
        return 0
    for one in made:
        say(f"signed as {one['role']} by {printable(one['keyid'])}")
    note(f"troth: the envelope is {printable(str(target))}; it holds {count} signature(s).")
    return 0
