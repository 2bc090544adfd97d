"""What all commands share: the common options, the settings, one way to answer."""

import functools
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import click

from vimbank.cli.failures import JSON_REQUESTED
from vimbank.domain.records import plain
from vimbank.observability.logs import set_up_logging
from vimbank.settings import Settings, load_settings

__all__ = ["Call", "command", "dump_json", "group"]

Decorator: TypeAlias = Callable[[Callable[..., None]], click.Command]


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a command: its common options."""

    data: Path | None
    json: bool
    verbose: bool
    tenant: str

    def settings(self, **overrides: Any) -> Settings:
        """The environment's settings under the common options and ``overrides``; logs are set up by them.

        Raises ConfigError.
        """
        if self.data is not None:
            overrides["data_dir"] = self.data
        if self.verbose:
            overrides["log"] = {"level": "DEBUG"}
        settings = load_settings(**overrides)
        set_up_logging(settings.log.level, settings.log.format)
        return settings

    def answer(self, document: Any, text: str) -> None:
        """Print the result: ``document`` as JSON where that was asked for, else ``text``."""
        click.echo(dump_json(document) if self.json else text)


def command(name: str, *, example: str, tenant: bool = True) -> Decorator:
    """Make a click command of ``function(call, **options)``, with the common options and an example in its help."""

    def decorate(function: Callable[..., None]) -> click.Command:
        @functools.wraps(function)
        def run(*, data: Path | None, as_json: bool, verbose: bool, tenant: str = "default", **options: Any) -> None:
            click.get_current_context().meta[JSON_REQUESTED] = as_json
            function(Call(data, as_json, verbose, tenant), **options)

        # click builds a command's parameters from the bottom decorator up.
        decorated: Callable[..., Any] = run
        for option in _common_options(tenant):
            decorated = option(decorated)
        return click.command(name, epilog=f"\b\nExample:\n  {example}")(decorated)

    return decorate


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(self.commands)


def group(name: str, commands: Sequence[click.Command], *, summary: str, example: str) -> click.Group:
    """A command of commands, which its help lists in this order; each was made by ``command``."""
    note = "Each of them takes --json, --data DIR and -v, --verbose."
    return _Group(
        name, {str(each.name): each for each in commands}, help=summary, epilog=f"{note}\n\n\b\nExample:\n  {example}"
    )


def _common_options(tenant: bool) -> list[Callable[..., Any]]:
    options = [
        click.option("-v", "--verbose", is_flag=True, help="Debug messages on standard error."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON document."),
        click.option(
            "--data",
            type=click.Path(file_okay=False, path_type=Path),
            metavar="DIR",
            help="Data folder.  [default: VIMBANK_DATA_DIR, else data]",
        ),
    ]
    if tenant:
        options.append(click.option("--tenant", default="default", show_default=True, help="Whose memories."))
    return options


def dump_json(document: Any) -> str:
    """``document`` as indented JSON that the terminal's encoding can hold."""
    encoding = (sys.stdout.encoding or "ascii").lower().replace("-", "")
    return json.dumps(plain(document), indent=2, ensure_ascii=encoding != "utf8", allow_nan=False)
