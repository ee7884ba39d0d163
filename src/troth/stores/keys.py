"""Private keys of this user, outside every workspace: one file a key in the user's configuration folder.

A file holds one line, ``PRIVATE+KEY+NAME+ID+BASE64``, readable by its owner alone; one that others may read is not
used. Nothing is ever overwritten. An agent that is observed sees no home folder, so it cannot sign.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from troth.core.errors import Place, Refused
from troth.core.notes import COSIGNATURE, ED25519, Signer, VerifierKey, parse_signer, parse_verifier
from troth.stores.durable import create_whole, open_regular, os_fault, read_regular

CODES: Final[dict[str, str]] = {
    "E_KEY_UNKNOWN": "No key of that name is in the user's folder of keys, and no file of keys is at that place.",
    "E_KEY_EXISTS": "A key of that name, or a file at that place, exists already; keys are never overwritten.",
    "E_KEY_NAME": "A key's name has 1 to 100 printable characters, no space and no plus; a name such as "
    "example.com/ledger tells it from everybody else's.",
    "E_KEY_OPEN": "Others than the owner may read the private key, or write the file of grants, so it is not used.",
    "E_KEY_FOLDER": "The machine names no folder for the user's configuration or state.",
}
"""The refusals of this store, each with one sentence for people."""

PRIVATE_MODE: Final = 0o600
FOLDER_MODE: Final = 0o700

KEY_LIMIT: Final = 1 << 12
"""Longest private key file read, in bytes."""

KEYS_LIMIT: Final = 1 << 16
"""Longest file of public keys read, in bytes."""

MAX_NAME: Final = 100
"""Longest name given to a key here, in characters; as a file name it may take thrice as many bytes and more."""

_SUFFIX: Final = ".key"
_MAX_FILE_NAME: Final = 240


def config_folder() -> Path:
    """Return the user's folder for what this tool is to keep.

    Raises:
        Refused: ``E_KEY_FOLDER``.
    """
    return _user_folder("APPDATA", "XDG_CONFIG_HOME", (".config",), "config")


def state_folder() -> Path:
    """Return the user's folder for what this tool has to remember between its runs.

    Raises:
        Refused: ``E_KEY_FOLDER``.
    """
    return _user_folder("LOCALAPPDATA", "XDG_STATE_HOME", (".local", "state"), "state")


def _user_folder(windows: str, variable: str, below_home: tuple[str, ...], kind: str) -> Path:
    if sys.platform == "win32":
        named = os.environ.get(windows)
        if named:
            return Path(named, "troth", kind)
    else:
        named = os.environ.get(variable)
        if named and Path(named).is_absolute():
            return Path(named, "troth")
        home = os.environ.get("HOME")
        if home and Path(home).is_absolute():
            mac = ("Library", "Application Support", "troth", kind)
            return Path(home, *mac) if sys.platform == "darwin" else Path(home, *below_home, "troth")
    raise Refused(
        "E_KEY_FOLDER", "this machine names no folder for the user's files", remedy=f"Set HOME or {variable}."
    )


def file_name(text: str) -> str:
    """Return a text as the name of a file: letters, digits and ``-_.~`` as they are, every other byte as ``%XX``."""
    from urllib.parse import quote

    name = quote(text, safe="")
    return name if not name.startswith(".") else f"%2E{name[1:]}"


def keys_folder() -> Path:
    """Return where the user's private keys lie.

    Raises:
        Refused: ``E_KEY_FOLDER``.
    """
    return config_folder() / "keys"


def private_folder(folder: Path) -> Path:
    """Make a folder that only its owner can look into, and return it.

    Raises:
        Refused: ``E_UNREADABLE``.
    """
    try:
        folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, folder, "the folder cannot be made") from None
    return folder


def new_key(
    name: str,
    *,
    witness: bool = False,
    out: Path | None = None,
    random_bytes: Callable[[int], bytes] = os.urandom,
) -> tuple[VerifierKey, Path]:
    """Draw a key and keep it; return its public half and where the private one lies.

    Args:
        name: of the key.
        witness: whether it is to sign as a witness.
        out: a file to write instead of one in the user's folder.
        random_bytes: where randomness comes from.

    Raises:
        Refused: ``E_KEY_NAME``, ``E_KEY_EXISTS``, ``E_KEY_FOLDER``, ``E_UNREADABLE``.
    """
    if (
        not 0 < len(name) <= MAX_NAME
        or not name.isprintable()
        or _is_path(name)
        or len(file_name(name)) > _MAX_FILE_NAME
    ):
        raise Refused("E_KEY_NAME", "a key's name has 1 to 100 printable characters and is no path")
    try:
        signer = Signer(name, COSIGNATURE if witness else ED25519, random_bytes(32))
    except Refused:
        raise Refused("E_KEY_NAME", "the name of a key has no spaces and no plus signs") from None
    path = out if out is not None else private_folder(keys_folder()) / f"{file_name(name)}{_SUFFIX}"
    try:
        made = create_whole(path, f"{signer.secret_text()}\n".encode(), PRIVATE_MODE)
    except OSError as fault:
        raise os_fault("E_UNREADABLE", fault, path, "the key cannot be written") from None
    if not made:
        raise Refused(
            "E_KEY_EXISTS",
            "something stands there already",
            place=Place(file=str(path)),
            remedy="Choose another name, or move the old key away yourself.",
        )
    return signer.verifier, path


def read_key(path: Path) -> Signer:
    """Return the private key in a file.

    Raises:
        Refused: ``E_KEY_UNKNOWN`` when it is absent, ``E_KEY_OPEN``, ``E_KEY_MALFORMED``, ``E_NOT_REGULAR``.
    """
    fd = open_regular(path, os.O_RDONLY, "E_KEY_UNKNOWN", "the private key")
    with os.fdopen(fd, "rb") as file:
        if os.name != "nt" and os.fstat(fd).st_mode & 0o077:
            raise Refused(
                "E_KEY_OPEN",
                "others than its owner may read the private key",
                place=Place(file=str(path)),
                remedy="Make a new key, or, if nobody else has read it: chmod 600.",
            )
        data = file.read(KEY_LIMIT + 1)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if len(data) > KEY_LIMIT:
        text = ""
    try:
        return parse_signer(text.removesuffix("\n"))
    except Refused as fault:
        raise Refused(fault.code, fault.message, place=Place(file=str(path)), remedy=fault.remedy) from None


def load_signer(name: str) -> Signer:
    """Return the private key of that name, or the one in a file, written with its folder (``./FILE``).

    Raises:
        Refused: ``E_KEY_UNKNOWN``, and as :func:`read_key`.
    """
    own = keys_folder() / f"{file_name(name)}{_SUFFIX}"
    if os.path.lexists(own):
        signer = read_key(own)
        if signer.name != name:
            raise Refused("E_KEY_MALFORMED", f"the file holds the key of {signer.name}", place=Place(file=str(own)))
        return signer
    if not _is_path(name):
        raise Refused(
            "E_KEY_UNKNOWN",
            f"there is no private key of the name {name}",
            remedy="`troth key list` tells which there are; a file is written with its folder, as ./FILE.",
        )
    return read_key(Path(name))


def _is_path(written: str) -> bool:
    """Tell whether a word names a file: with its folder only, so that no file of a workspace passes for a key."""
    return Path(written).is_absolute() or Path(written).parts[:1] in ((".",), ("..",)) or written.startswith("./")


def list_keys() -> list[tuple[VerifierKey, Path]]:
    """Return the public halves of the user's keys and where the private ones lie, by name.

    Raises:
        Refused: as :func:`read_key`, for the first file that is no key.
    """
    folder = keys_folder()
    if not folder.is_dir():
        return []
    found = [(read_key(path).verifier, path) for path in sorted(folder.glob(f"*{_SUFFIX}"))]
    return sorted(found, key=lambda one: one[0].name)


def only_signer() -> Signer:
    """Return the one key that signs a ledger's checkpoints, when the user has just one.

    Raises:
        Refused: ``E_KEY_UNKNOWN`` when there is none or several.
    """
    paths = [path for key, path in list_keys() if not key.is_witness]
    if len(paths) != 1:
        raise Refused(
            "E_KEY_UNKNOWN",
            "there is no private key yet" if not paths else f"there are {len(paths)} private keys",
            remedy="Make one with `troth key new NAME`." if not paths else "Name one with --key.",
        )
    return read_key(paths[0])


def verifier_keys(written: str) -> list[VerifierKey]:
    """Return the public keys that a word of the command line or of the settings stands for.

    The word is a key (``NAME+ID+BASE64``), the name of one's own key, or a file, written with its folder (``./FILE``),
    with one public key a line; empty lines and lines that begin with ``#`` are passed over.

    Raises:
        Refused: ``E_KEY_MALFORMED``, ``E_KEY_UNKNOWN``.
    """
    if not _is_path(written):
        return [parse_verifier(written) if "+" in written else load_signer(written).verifier]
    path = Path(written)
    data = read_regular(path, KEYS_LIMIT, "E_KEY_UNKNOWN", "the file of keys")
    keys = []
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        if line and not line.startswith("#"):
            try:
                keys.append(parse_verifier(line))
            except Refused as fault:
                where = Place(file=str(path), line=number)
                raise Refused(fault.code, fault.message, place=where, remedy=fault.remedy) from None
    if not keys:
        raise Refused("E_KEY_UNKNOWN", "the file names no key", place=Place(file=str(path)))
    return keys
