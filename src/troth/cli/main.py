"""The front door: the table of commands, error output and exit codes."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from troth import __version__
from troth.cli.answer import drop_output, note, printable, tell_error
from troth.cli.lazy import LazyTable
from troth.core.errors import Defect, Refused, TrothError

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    # name: (module, one line of help shown by `troth --help`)
    "init": ("troth.cli.ledger", "Create a workspace: .mentu with an empty ledger."),
    "status": ("troth.cli.status", "Show open, claimed and in-review commitments."),
    "capture": ("troth.cli.signals", "Record an observation or a piece of evidence."),
    "commit": ("troth.cli.signals", "Create an obligation from an observation."),
    "claim": ("troth.cli.signals", "Take responsibility for a commitment."),
    "release": ("troth.cli.signals", "Give a claimed commitment back."),
    "submit": ("troth.cli.signals", "Request closure with evidence."),
    "approve": ("troth.cli.signals", "Accept a submission."),
    "reopen": ("troth.cli.signals", "Reject a submission, or dispute a closed commitment."),
    "close": ("troth.cli.signals", "Resolve a commitment directly, or as a duplicate."),
    "annotate": ("troth.cli.signals", "Attach a note to any signal."),
    "retract": ("troth.cli.signals", "Say that a signal no longer stands; it stays in the ledger."),
    "show": ("troth.cli.ledger", "Show one signal and what replay computes for it."),
    "log": ("troth.cli.ledger", "Show recent signals."),
    "verify": ("troth.cli.verify", "Check every hash and link of a ledger."),
    "store": ("troth.cli.store", "Set up a ledger in PostgreSQL, move one in and out."),
    "trust": ("troth.cli.trust", "Tell what signals are worth, and why."),
    "queue": ("troth.cli.queue", "Show what waits for whom and why; ask the validators again."),
    "why": ("troth.cli.graph", "Show what stands under a signal, as a tree."),
    "impact": ("troth.cli.graph", "Show what stands on a signal, as a tree."),
    "find": ("troth.cli.find", "Find signals by words and fields."),
    "export": ("troth.cli.export", "Let rows out as their scopes allow, or copy the whole ledger."),
    "import": ("troth.cli.importing", "Bring in rows by key, git history, or a whole ledger."),
    "merge": ("troth.cli.merge", "Make one chain of two ledgers that grew apart."),
    "genesis": ("troth.cli.genesis", "Write, check and explain the workspace's constitution."),
    "okf": ("troth.cli.okf", "Read, check, write and ingest knowledge bundles."),
    "run": ("troth.cli.run", "Run an agent under observation and write its receipt."),
    "runs": ("troth.cli.run", "List runs and what became of them."),
    "claims": ("troth.cli.claims", "Show what a transcript claims, and how it was matched."),
    "grade": ("troth.cli.grade", "Run a contract's acceptance commands on a tree."),
    "contract": ("troth.cli.contract", "Seal, check and show contracts."),
    "receipt": ("troth.cli.receipt", "Check and verify done receipts."),
    "hook": ("troth.cli.hook", "Judge an agent whenever its own tool says it is done."),
    "deal": ("troth.cli.deal", "Check and show simulated deals (experimental, non-transfer)."),
    "review": ("troth.cli.review", "Have work reviewed, check each finding, decide what is left."),
    "checkpoint": ("troth.cli.checkpoint", "Sign, cosign and prove what a ledger is."),
    "key": ("troth.cli.key", "Make and show the keys that sign checkpoints and receipts."),
    "demo": ("troth.cli.demo", "Watch honest and dishonest agents being held to their word."),
    "doctor": ("troth.cli.doctor", "Tell what this machine lacks, and the command that mends it."),
    "help": ("troth.cli.helptext", "Explain codes and commands."),
}

EXTRAS: Final[dict[str, str]] = {
    "anthropic": "models", "dask": "cluster", "distributed": "cluster", "httpx2": "models", "id": "sigstore",
    "inspect_ai": "lab", "matplotlib": "lab", "numpy": "lab", "openai": "models", "psycopg": "postgres",
    "pyarrow": "lab", "re2": "lab", "rfc3161_client": "timestamps", "scipy": "lab", "sigstore": "sigstore",
    "statsmodels": "lab",
}  # fmt: skip
"""Package that the core lacks -> the extra that brings it."""

DELETING: Final = ("delete", "del", "remove", "rm")
"""Wishes that are answered with what can be done instead."""


class LazyGroup(LazyTable):
    """The commands of :data:`COMMANDS`."""

    table = COMMANDS

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Answer an unknown command with the nearest known ones."""
        name = args[0]
        if name in DELETING:
            named = next((word for word in args[1:] if not word.startswith("-")), "ID")
            raise Refused(
                "E_APPEND_ONLY",
                "nothing is ever taken out of a ledger, and every row that follows would show it",
                remedy=f'To say that the row no longer stands: troth retract {printable(named, 80)} "REASON"',
            )
        if name not in COMMANDS and not name.startswith("-"):
            import difflib

            near = difflib.get_close_matches(name, COMMANDS, n=2)
            hint = f" Did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"No such command {name!r}.{hint}", ctx)
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 holds or done, 1 does not hold, 2 refused, 3 not established, 4 a person must "
    "decide, 70 an error of ours, 75 busy. `troth help codes` explains every code. "
    "Example: troth demo",
)
@click.version_option(__version__, "-V", "--version", message="troth %(version)s")
def cli() -> None:
    """Hold agents, and the people who work with them, to their word."""


def _one_line(fault: click.ClickException) -> str:
    """Return what is wrong with the command line; choices stand on lines of their own in it, each indented."""
    return " ".join(fault.format_message().split())


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit status; never lets a traceback out for a known error."""
    args = list(sys.argv[1:] if argv is None else argv)
    own = args[: args.index("--")] if "--" in args else args
    as_json = "--json" in own
    try:
        result: Any = cli.main(args=args, prog_name="troth", standalone_mode=False)
    except TrothError as fault:
        tell_error(fault, as_json=as_json)
        return fault.exit_code
    except click.exceptions.Exit as fault:
        return fault.exit_code
    except click.exceptions.NoArgsIsHelpError as fault:
        note(fault.format_message())
        return 2
    except click.UsageError as fault:
        command = fault.ctx.command_path if fault.ctx is not None else "troth"
        tell_error(Refused("E_USAGE", _one_line(fault), remedy=f"Try '{command} --help'."), as_json=as_json)
        return 2
    except click.ClickException as fault:
        tell_error(Refused("E_USAGE", _one_line(fault)), as_json=as_json)
        return 2
    except (click.exceptions.Abort, KeyboardInterrupt):
        note("interrupted")
        return 130
    except (BrokenPipeError, SystemExit) as fault:
        if isinstance(fault, SystemExit) and isinstance(fault.code, int) and fault.code != 1:
            return fault.code  # a run that a signal told to end; the shell's completion
        # The reader of our output went away (click turns that into an exit with 1); nothing is left to say, and
        # Python must not try to flush.
        drop_output(1)
        return 141
    except Exception as fault:  # the last door: whatever is left is an error of ours
        import os

        if os.environ.get("TROTH_DEBUG"):
            raise
        lacking = (fault.name or "").partition(".")[0] if isinstance(fault, ModuleNotFoundError) else ""
        if lacking in EXTRAS:
            remedy = f"Install the extra `{EXTRAS[lacking]}`: pip install 'troth[{EXTRAS[lacking]}]'"
            tell_error(
                Refused("E_USAGE", f"this needs {lacking}, which is not installed", remedy=remedy), as_json=as_json
            )
            return 2
        tell_error(
            Defect(
                "E_DEFECT",
                f"{type(fault).__name__}: {fault}",
                remedy="This is a fault of troth itself; TROTH_DEBUG=1 shows where.",
            ),
            as_json=as_json,
        )
        return 70
    return result if isinstance(result, int) else 0


def console() -> None:
    """Entry point of the installed script."""
    _fill_standard_streams()
    _forget_inherited()
    sys.exit(main())


def _forget_inherited() -> None:
    """Undo what whoever started us left in force and nothing of ours could work with.

    Where the end of children is ignored, every program we start seems to have ended with 0; with a mask that takes
    permissions from their owner, what we write could not be read.
    """
    import os
    import signal

    if hasattr(signal, "SIGCHLD"):
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.umask(os.umask(0o077) & 0o077)


def _fill_standard_streams() -> None:
    """Put the null device where a standard stream is closed.

    Otherwise a ledger could be opened under the number of that stream, and be written to by whatever uses it.
    """
    import os

    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            number = os.open(os.devnull, os.O_RDWR)  # the lowest that is free: that of the stream
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
