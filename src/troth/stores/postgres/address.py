"""What ``--store postgresql://…`` says: where the database is, and which workspace in it. Secrets are never shown."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from troth.core.errors import Refused
from troth.stores.workspace import is_workspace_name

SCHEMES: Final = ("postgresql", "postgres")

_SHOWN: Final = ("host", "hostaddr", "port", "dbname", "user")
"""Parameters that messages may repeat; of everything else nobody knows whether it is a secret."""

_REMEDY: Final = "Write postgresql://USER@HOST/DATABASE?workspace=NAME; % @ : / ? # in a password become %25 and so on."


@dataclass(frozen=True, slots=True)
class Address:
    """Where a ledger is kept.

    ``conninfo`` goes to libpq as it was written, but for the workspace; it may hold a password and is not shown by
    ``repr``. ``workspace`` is ``None`` where none was named. ``shown`` is what messages say.
    """

    conninfo: str = field(repr=False)
    workspace: str | None
    shown: str
    secrets: tuple[str, ...] = field(repr=False)

    def scrubbed(self, text: str) -> str:
        """Return a message of the driver on one line, without anything secret of this address."""
        for secret in self.secrets:
            text = text.replace(secret, "***")
        return " ".join(text.split())


def is_address(where: object) -> bool:
    """Tell whether this names a database, rightly written or not."""
    return isinstance(where, str) and re.match(r"postgres(ql)?:", where) is not None


def parse_address(text: str) -> Address:
    """Parse ``postgresql://…``; the workspace is the parameter ``workspace`` or the fragment.

    Raises:
        Refused: ``E_USAGE``; the message repeats nothing of the text.
    """
    # Imported here: whoever opens a file asks this module only whether it is one.
    from urllib.parse import parse_qsl, quote, unquote, urlsplit

    if text.partition("://")[0] not in SCHEMES:
        raise Refused("E_USAGE", "the address of the database is not well formed", remedy=_REMEDY)
    try:
        parts = urlsplit(text)
        pairs = parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query))
    except ValueError:
        raise Refused("E_USAGE", "the address of the database is not well formed", remedy=_REMEDY) from None
    login, at, hosts = parts.netloc.rpartition("@")
    if "@" in login or any(char.isspace() or not char.isprintable() for char in text):
        raise Refused("E_USAGE", "the address of the database is not well formed", remedy=_REMEDY)
    user, _, password = login.partition(":")
    named = [value for name, value in pairs if name == "workspace"] + ([unquote(parts.fragment)] * bool(parts.fragment))
    if len(set(named)) > 1:
        raise Refused("E_USAGE", "the address names more than one workspace")
    workspace = named[0] if named else None
    if workspace is not None and not (is_workspace_name(workspace) and workspace.isprintable()):
        raise Refused("E_USAGE", "a workspace name has 1 to 128 printable characters and no white space")
    kept = "&".join(piece for piece in parts.query.split("&") if piece.partition("=")[0] != "workspace" and piece)
    secrets = [value for name, value in pairs if name not in (*_SHOWN, "workspace") and len(value) > 3]
    if password:
        secrets[:0] = [password, unquote(password)]
    shown = [(name, value) for name, value in pairs if name in _SHOWN]
    if workspace is not None:
        shown.append(("workspace", workspace))
    query = "&".join(f"{name}={quote(value, safe='/')}" for name, value in shown)
    return Address(
        conninfo=f"postgresql://{parts.netloc}{parts.path}" + (f"?{kept}" if kept else ""),
        workspace=workspace,
        shown=f"postgresql://{user}{at}{hosts}{parts.path}" + (f"?{query}" if query else ""),
        secrets=tuple(secrets),
    )
