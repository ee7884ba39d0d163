"""``troth contract sign``: a sealed contract's Statement in an envelope, signed with one's own keys."""

from __future__ import annotations

from pathlib import Path

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.contract_common import LIMIT, read_sealed
from troth.cli.options import json_option


def _present(path: Path) -> bytes | None:
    from troth.stores.durable import read_regular

    return read_regular(path, LIMIT, "E_ENVELOPE_MISSING", "the envelope") if path.exists() else None


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
@json_option
def sign_cmd(where: Path, names: tuple[str, ...], as_json: bool) -> int:
    """Sign a sealed contract: DSSE envelopes of its Statement (statement.dsse.json) and of its seal (seal.dsse.json).

    A run that is given `--contract-key` takes no contract that is not signed so.
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
    made = [{"keyid": keyid_of(one.verifier), "role": role_of(one.verifier)} for one in signers]
    count = len(envelope.signatures)
    if as_json:
        emit_json(
            {"envelope": str(target), "contract_sha256": sha256_hex(contract), "signed": made, "signatures": count}
        )
        return 0
    for one in made:
        say(f"signed as {one['role']} by {printable(one['keyid'])}")
    note(f"troth: the envelope is {printable(str(target))}; it holds {count} signature(s).")
    return 0
