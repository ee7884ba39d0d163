"""``troth review``: the table of its commands, each imported when it is called."""

from __future__ import annotations

from typing import Final

import click

from troth.cli.lazy import LazyTable, Table

COMMANDS: Final[Table] = {
    # name: (module, one line of help shown by `troth review --help`)
    "backends": ("troth.cli.review_consent", "Tell who could review, how independent each is, what it lacks."),
    "consent": ("troth.cli.review_consent", "Say to which addresses reviews may be sent."),
    "validate": ("troth.cli.review_documents", "Tell every rule that a review document breaks, and where."),
    "show": ("troth.cli.review_documents", "Show findings with the text they point at, or what became of them."),
    "machine": ("troth.cli.review_documents", "Tell the states of a finding and its legal moves."),
}


class ReviewGroup(LazyTable):
    """The commands of :data:`COMMANDS`."""

    table = COMMANDS


@click.group("review", cls=ReviewGroup)
def review_cmd() -> None:
    """Have work reviewed by a model of another maker, and check every finding.

    A response holds the findings of a reviewer, each with evidence anchored in the artifact. A reconciliation says of
    each finding whether it was accepted, rejected, resolved, withdrawn or waits for a person.
    """
