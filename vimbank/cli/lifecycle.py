"""archive, restore, suppress, unsuppress, forecast."""

from collections.abc import Callable
from typing import Any, Final

import click

from vimbank.cli.command import Call, command
from vimbank.cli.render import render_memory, table
from vimbank.domain.models import Memory
from vimbank.domain.records import memory_record
from vimbank.lifecycle.planning import Forecast, forecast_record
from vimbank.service import MemoryService
from vimbank.wiring import open_service

__all__ = ["archive", "forecast", "restore", "suppress", "unsuppress"]

ACTOR: Final = "cli"


def _move(call: Call, verb: Callable[[MemoryService], Callable[..., Memory]], id: str, revision: int | None) -> None:
    with open_service(call.settings()) as service:
        memory = verb(service)(call.tenant, id, expected_revision=revision, actor=ACTOR)
    call.answer(memory_record(memory), render_memory(memory))


def _revision_option(function: Callable[..., None]) -> Callable[..., None]:
    return click.option("--revision", type=int, help="Only if this is still its revision.")(function)


@command("archive", example="vimbank archive 0192f7a0-5b7e-7c3a-9b1d-2f6c1a3d4e5f")
@click.argument("id")
@_revision_option
def archive(call: Call, id: str, revision: int | None) -> None:
    """Take a memory out of every search, with its segments or steps; it can be restored until the grace is over."""
    _move(call, lambda service: service.archive, id, revision)


@command("restore", example="vimbank restore 0192f7a0-5b7e-7c3a-9b1d-2f6c1a3d4e5f")
@click.argument("id")
@_revision_option
def restore(call: Call, id: str, revision: int | None) -> None:
    """Bring a memory back from the archive, or one that was superseded; it ages anew."""
    _move(call, lambda service: service.restore, id, revision)


@command("suppress", example="vimbank suppress 0192f7a0-5b7e-7c3a-9b1d-2f6c1a3d4e5f")
@click.argument("id")
@_revision_option
def suppress(call: Call, id: str, revision: int | None) -> None:
    """Take a memory out of every search, and keep it."""
    _move(call, lambda service: service.suppress, id, revision)


@command("unsuppress", example="vimbank unsuppress 0192f7a0-5b7e-7c3a-9b1d-2f6c1a3d4e5f")
@click.argument("id")
@_revision_option
def unsuppress(call: Call, id: str, revision: int | None) -> None:
    """Show a suppressed memory again; it ages anew."""
    _move(call, lambda service: service.unsuppress, id, revision)


@command("forecast", example="vimbank forecast --user ana --days 90")
@click.option("--user", "user_id", required=True, help="Whose memories.")
@click.option("--bank", help="Only this bank.")
@click.option("--days", type=float, default=30.0, show_default=True, help="How far to look ahead.")
@click.option("--limit", type=int, default=100, show_default=True, help="How many to name; all are counted.")
def forecast(call: Call, user_id: str, **options: Any) -> None:
    """Show which of a user's memories are archived or deleted, when and why, if nothing happens to them."""
    with open_service(call.settings()) as service:
        found = service.forecast(call.tenant, user_id, **options)
    call.answer(forecast_record(found), _rendered(found))


def _rendered(found: Forecast) -> str:
    rows = [
        (each.at.strftime("%Y-%m-%d %H:%M"), each.partition.bank, each.id, each.reason.value, each.to.value)
        for each in found.items
    ]
    why = ", ".join(f"{count} {reason.value}" for reason, count in sorted(found.reasons.items()))
    total = f"{found.total} of {found.memories} go until {found.until:%Y-%m-%d}{f': {why}' if why else ''}"
    return "\n".join([*([table(rows, heading=("when", "bank", "id", "why", "to"))] if rows else []), total])
