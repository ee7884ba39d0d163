"""``troth key``: the keys that sign checkpoints and receipts, kept outside every workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from troth.cli.answer import emit_json, note, printable, say
from troth.cli.options import json_option

if TYPE_CHECKING:
    from troth.core.notes import VerifierKey


@click.group("key", epilog="Example: troth key new example.com/my-ledger")
def key_cmd() -> None:
    """Make and show the keys that sign checkpoints and receipts.

    They lie in your configuration folder, outside every workspace, where an observed agent does not reach them.
    """


def _as_json(key: VerifierKey, path: Path) -> dict[str, Any]:
    from troth.core.notes import KINDS

    return {"name": key.name, "kind": KINDS[key.kind], "key": str(key), "file": str(path)}


@key_cmd.command(
    "new",
    short_help="Draw a key and print its public half.",
    epilog="Exit codes: 0 made, 2 refused: the name or the file is taken. "
    "Example: troth key new example.com/auditor --witness",
)
@click.argument("name")
@click.option(
    "--witness",
    is_flag=True,
    help="A witness's key: it cosigns checkpoints, with the time, and signs receipts as a witness.",
)
@click.option("--out", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Write the private key there.")
@json_option
def new_cmd(name: str, witness: bool, out: Path | None, as_json: bool) -> int:
    """Draw an Ed25519 key of that NAME and print its public half, which is what others are given.

    A name such as example.com/my-ledger tells it from everybody else's. Nothing is ever overwritten.
    """
    from troth.stores.keys import new_key

    key, path = new_key(name, witness=witness, out=out)
    if as_json:
        emit_json(_as_json(key, path))
        return 0
    say(str(key))
    note(f"troth: the private key is in {printable(str(path))}; give the line above to whoever is to check.")
    return 0


@key_cmd.command("list", epilog="Example: troth key list")
@json_option
def list_cmd(as_json: bool) -> int:
    """List your keys: name, kind, and the public half."""
    from troth.core.notes import KINDS
    from troth.stores.keys import list_keys

    found = list_keys()
    if as_json:
        emit_json({"keys": [_as_json(key, path) for key, path in found]})
        return 0
    for key, _ in found:
        say(f"{printable(key.name, 100)}  {KINDS[key.kind]}  {printable(str(key))}")
    if not found:
        say("No keys yet. Make one with: troth key new NAME")
    return 0


@key_cmd.command(
    "show", short_help="Print the public half of a key.", epilog="Example: troth key show example.com/my-ledger"
)
@click.argument("name")
@json_option
def show_cmd(name: str, as_json: bool) -> int:
    """Print the public half of the key NAME, or of the private key in a file (./FILE)."""
    from troth.stores.keys import file_name, keys_folder, load_signer

    key = load_signer(name).verifier
    if as_json:
        own = keys_folder() / f"{file_name(name)}.key"
        emit_json(_as_json(key, own if own.exists() else Path(name)))
        return 0
    say(str(key))
    return 0
