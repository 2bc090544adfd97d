"""Entry of the ``vimbank`` command: the table of commands, and the exit code of every error.

A command's module is imported when the command runs, so ``vimbank --help`` loads click and nothing else.
"""

import importlib
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import click

from vimbank.cli.failures import exit_code, report
from vimbank.errors import VimbankError

__all__ = ["COMMANDS", "cli", "main"]


class Entry(NamedTuple):
    """Where a command stands, and its line in ``vimbank --help``."""

    module: str
    attribute: str
    summary: str


COMMANDS: Final[Mapping[str, Entry]] = {
    "serve": Entry("vimbank.cli.server", "serve", "Serve the REST API."),
    "add": Entry("vimbank.cli.memories", "add", "Add one memory."),
    "search": Entry("vimbank.cli.searching", "search", "Search a user's memories."),
    "get": Entry("vimbank.cli.memories", "get", "Show one memory."),
    "list": Entry("vimbank.cli.memories", "list_", "List memories, oldest first."),
    "update": Entry("vimbank.cli.memories", "update", "Change fields of one memory."),
    "delete": Entry("vimbank.cli.memories", "delete", "Delete memories by id, or all of a user's."),
    "history": Entry("vimbank.cli.memories", "history", "Show every change of one memory."),
    "feedback": Entry("vimbank.cli.memories", "feedback", "Say that a memory was used, ignored or wrong."),
    "ingest": Entry("vimbank.cli.loading", "ingest", "Ingest documents, JSONL files and folders."),
    "load": Entry("vimbank.cli.loading", "load", "Load a known data set from its folder."),
    "summaries": Entry("vimbank.cli.summaries", "summaries", "Show a user's summaries or portraits."),
    "archive": Entry("vimbank.cli.lifecycle", "archive", "Take a memory out of every search; it can be restored."),
    "restore": Entry("vimbank.cli.lifecycle", "restore", "Bring an archived or superseded memory back."),
    "suppress": Entry("vimbank.cli.lifecycle", "suppress", "Hide a memory from every search, and keep it."),
    "unsuppress": Entry("vimbank.cli.lifecycle", "unsuppress", "Show a suppressed memory again."),
    "forecast": Entry("vimbank.cli.lifecycle", "forecast", "Show which memories go, when and why."),
    "conflicts": Entry("vimbank.cli.conflicts", "conflicts", "Supersede what newer memories contradict."),
    "consolidate": Entry("vimbank.cli.consolidating", "consolidate", "Fold memories that say the same in other words."),
    "stats": Entry("vimbank.cli.upkeep", "stats", "Count what is stored."),
    "check": Entry("vimbank.cli.upkeep", "check", "Compare every index with the store, and repair it."),
    "export": Entry("vimbank.cli.portability", "export", "Export memories to a file."),
    "import": Entry("vimbank.cli.portability", "import_", "Import an export, or another system's dump."),
    "erase": Entry("vimbank.cli.erasing", "erase", "Erase a user everywhere, with a receipt."),
    "reindex": Entry("vimbank.cli.upkeep", "reindex", "Encode everything again with the configured encoder."),
    "store": Entry("vimbank.cli.store", "store", "Migrate the store, or copy it to another database."),
    "es": Entry("vimbank.cli.elasticsearch", "es", "Look at the indexes in Elasticsearch, or make them anew."),
    "jobs": Entry("vimbank.cli.jobs", "jobs", "Start and follow jobs that run beside the requests."),
    "curve": Entry("vimbank.cli.curve", "curve", "Show and draw the forgetting curves."),
    "config": Entry("vimbank.cli.configuration", "config", "Print every setting."),
}


class LazyGroup(click.Group):
    """A group that knows its commands by name and loads one when it is asked for; errors become exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """The commands in the order of the table: by use, not by letter."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of that name, imported now; None where there is none."""
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(importlib.import_module(entry.module), entry.attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The list in the help, from the table alone."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.summary) for name, entry in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of VimbankError's tree is reported and becomes the exit code."""
        try:
            return super().invoke(ctx)
        except VimbankError as error:
            report(error)
            ctx.exit(exit_code(error))


@click.group(
    cls=LazyGroup,
    epilog="Exit codes: 0 done; 1 not found, failed or not clean; 2 bad input or configuration; 3 a backend is down.",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.version_option(package_name="vimbank")
def cli() -> None:
    """VIMBank: a memory server for LLM agents.

    Every command takes --json (one JSON document on standard output) and --data (the data folder; default:
    VIMBANK_DATA_DIR, else ./data). A server may run on the same folder at the same time.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character shows its escape instead of ending the command.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    cli.main(args=None if arguments is None else list(arguments), prog_name="vimbank")
