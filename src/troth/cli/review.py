"""``troth review``: the table of its commands, each imported when it is called."""

from __future__ import annotations

from typing import Final

import click

from troth.cli.lazy import LazyTable, Table

COMMANDS: Final[Table] = {
    # name: (module, one line of help shown by `troth review --help`)
    "start": ("troth.cli.review_start", "Have files reviewed, after showing what is sent where."),
    "next": ("troth.cli.review_host", "Show the finding to work on, with the text it points at."),
    "triage": ("troth.cli.review_host", "Label a finding: checkable, or a judgment."),
    "verify": ("troth.cli.review_host", "Verify a finding by a command, inspection or source."),
    "accept": ("troth.cli.review_host", "Accept a finding that a verification supports."),
    "reject": ("troth.cli.review_host", "Reject a finding that a verification contradicts."),
    "resolve": ("troth.cli.review_host", "Resolve a finding and say what was done about it."),
    "contest": ("troth.cli.review_host", "Disagree with a finding where verification does not decide."),
    "rebut": ("troth.cli.review_start", "Ask the reviewer to substantiate or withdraw."),
    "escalate": ("troth.cli.review_host", "Leave a finding to the operator, as a question."),
    "status": ("troth.cli.review_runs", "Tell how far a run is and what it comes to."),
    "list": ("troth.cli.review_runs", "List the runs and what became of them."),
    "resume": ("troth.cli.review_start", "Take up a run that a crash or a limit left."),
    "finish": ("troth.cli.review_runs", "End a run as it stands."),
    "recheck": ("troth.cli.review_runs", "Do the recorded verifications again, tell what differs."),
    "forget": ("troth.cli.review_runs", "Remove one run."),
    "prune": ("troth.cli.review_runs", "Remove old runs; open questions are kept."),
    "panel": ("troth.cli.review_panel", "Ask several reviewers about the same artifact."),
    "merge": ("troth.cli.review_panel", "Make one review of a panel's, as the host confirms."),
    "chunks": ("troth.cli.review_panel", "Have code reviewed in chunks of whole files."),
    "decide": ("troth.cli.review_operator", "Answer the questions that wait for a person."),
    "open": ("troth.cli.review_operator", "List the runs in which a question waits for a person."),
    "report": ("troth.cli.review_operator", "Write a run as Markdown or HTML."),
    "record": ("troth.cli.review_operator", "Tell a run on the ledger, row by row."),
    "backends": ("troth.cli.review_consent", "Tell who could review, how independent each is, what it lacks."),
    "estimate": ("troth.cli.review_consent", "Tell how long a review should be given; sends nothing."),
    "consent": ("troth.cli.review_consent", "Say to which addresses reviews may be sent."),
    "validate": ("troth.cli.review_documents", "Tell every rule that a review document breaks, and where."),
    "show": ("troth.cli.review_documents", "Show findings with the text they point at, or their end."),
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
