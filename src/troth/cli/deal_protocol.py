"""The option of deal commands that opts into another version of the protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from troth.deals.run import Run

_F = TypeVar("_F", bound=Callable[..., Any])

PLAIN = "0.2"
PROXY = "0.3-proxy"


def protocol_option(command: _F) -> _F:
    """Add ``--protocol``."""
    return click.option(
        "--protocol",
        type=click.Choice([PLAIN, PROXY]),
        default=PLAIN,
        show_default=True,
        help="0.3-proxy has a fifth role, the proxy trustee P; it is ours, not the source's.",
    )(command)


def made_by(protocol: str) -> type[Run]:
    """Return the class of runs of that protocol."""
    if protocol == PLAIN:
        from troth.deals.run import Run

        return Run
    from troth.deals.proxy_run import ProxyRun

    return ProxyRun
