"""``troth receipt sign``: with keys of one's own, or by an identity at a sigstore instance."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.options import json_option
from troth.core.errors import Place, Refused


@click.command(
    "sign",
    epilog="Exit codes: 0 signed, 1 the receipt is invalid, 2 refused, 3 a service could not be reached. "
    "Example: troth receipt sign runs/last --key example.com/auditor",
)
@click.argument("folder", type=click.Path())
@click.option(
    "--key",
    "names",
    multiple=True,
    metavar="NAME",
    help="A private key of yours, or the file of one (./FILE). Repeatable.",
)
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the envelope or bundle there. Default, in the folder: receipt.dsse.json, where signatures are added; "
    "with --sigstore receipt.sigstore.json.",
)
@click.option(
    "--sigstore",
    is_flag=True,
    help="Sign by your identity instead of a key. Its instance publishes, for good, who signed and the digest of what.",
)
@click.option(
    "--identity-token",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A file with the identity token. Default: SIGSTORE_IDENTITY_TOKEN, or what the service that runs us gives.",
)
@click.option(
    "--trust-config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A private sigstore instance: its ClientTrustConfig, JSON. Default: the public one.",
)
@click.option("--staging", is_flag=True, help="The public instance's staging twin, to try things.")
@json_option
def sign_cmd(  # noqa: PLR0917 - click calls it by name
    folder: str,
    names: tuple[str, ...],
    out: Path | None,
    sigstore: bool,
    identity_token: Path | None,
    trust_config: Path | None,
    staging: bool,
    as_json: bool,
) -> int:
    """Sign the receipt in a folder: a DSSE envelope with an Ed25519 signature of each key, or a sigstore bundle.

    The receipt is verified first; one that is invalid is not signed. A valid one is, whatever its verdict. A key made
    with `troth key new --witness` signs as a witness, any other as an approver; as what an identity signs is for the
    reader to say.
    """
    if bool(names) == sigstore:
        raise Refused("E_USAGE", "sign with --key NAME or with --sigstore, one of them", remedy="--help tells more.")
    if sigstore:
        return _by_identity(folder, out, _Instance(identity_token, trust_config, staging), as_json)
    if identity_token is not None or trust_config is not None or staging:
        raise Refused("E_USAGE", "--identity-token, --trust-config and --staging go with --sigstore")
    return _by_keys(folder, names, out, as_json)


def _by_keys(folder: str, names: tuple[str, ...], out: Path | None, as_json: bool) -> int:
    from troth.receipts.demands import keyid_of, role_of
    from troth.receipts.envelopes import ENVELOPE_FILE
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


@dataclass(frozen=True, slots=True)
class _Instance:
    """Where to sign, and the file of the token to show there."""

    token: Path | None
    config: Path | None
    staging: bool


def _by_identity(folder: str, out: Path | None, at: _Instance, as_json: bool) -> int:
    from troth.receipts.bundles import BUNDLE_FILE
    from troth.receipts.signing import valid_receipt
    from troth.stores.durable import create_whole, os_fault
    from troth.stores.keyless import identity_token, public_config, read_trust_config, sign_by_identity
    from troth.stores.members import FolderMember

    if at.staging and at.config is not None:
        raise Refused("E_USAGE", "--trust-config and --staging were both given", remedy="Name one instance.")
    where = out if out is not None else Path(folder, BUNDLE_FILE)
    payload, found = valid_receipt(FolderMember(folder))
    # What a signature publishes cannot be taken back, so all that could be refused is refused before.
    if where.is_symlink() or where.exists():
        raise _exists(where)
    token = identity_token(at.token)
    config = read_trust_config(at.config) if at.config is not None else public_config(staging=at.staging)
    data, said = sign_by_identity(payload, token, config)
    try:
        made = create_whole(where, data)
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, where, "the bundle cannot be written") from None
    if not made:
        raise _exists(where)
    done = found.done.as_json() if found.done is not None else {}
    if as_json:
        emit_json({"bundle": str(where), "signed": {"identity": said.name, "issuer": said.issuer}, "done": done})
        return 0
    say(f"signed by {printable(str(said.name))}, vouched for by {printable(str(said.issuer))}")
    say(f"verdict   {done['decision'].replace('_', ' ')} ({done['reason']})")
    note(f"troth: the bundle is {printable(str(where))}; the instance's log shows it to everybody.")
    return 0


def _exists(where: Path) -> Refused:
    return Refused(
        "E_BUNDLE_EXISTS",
        "a bundle lies there already",
        remedy="Each signer has a bundle of their own: --out FILE writes another.",
        place=Place(file=str(where)),
    )
