"""erase."""

import click

from vimbank.cli.command import Call, command
from vimbank.cli.memories import ACTOR
from vimbank.domain.models import Scope
from vimbank.portability.erase import erase as erase_scope
from vimbank.portability.receipts import save_receipt
from vimbank.wiring import open_service
from vimbank.wiring.portability import open_eraser, receipts_folder

__all__ = ["erase"]


@command("erase", example="vimbank erase --user ana --yes")
@click.option("--user", "user_id", required=True, help="Whose memories.")
@click.option("--session", "session_id", help="Only this session.")
@click.option("--agent", "agent_id", help="Only this agent's.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def erase(call: Call, user_id: str, session_id: str | None, agent_id: str | None, yes: bool) -> None:
    """Erase a user, session or agent everywhere: memories, history, indexes, logs. Nothing brings them back.

    Prints a receipt without a word of what it was, and keeps it in the data folder under receipts/;
    `vimbank check --receipt FILE` verifies it.
    """
    settings = call.settings()
    narrowed = f", session {session_id}" if session_id else f", agent {agent_id}" if agent_id else ""
    if not yes:
        click.confirm(f"Erase every trace of the user {user_id}{narrowed}?", abort=True, err=True)
    with open_service(settings) as service:
        scope = Scope(call.tenant, user_id, None, agent_id, session_id)
        receipt = erase_scope(service, open_eraser(service), scope, actor=ACTOR)
    path = save_receipt(receipt, receipts_folder(settings))
    counts = ", ".join(f"{name} {count}" for name, count in receipt.counts.items())
    call.answer(receipt.record(), f"erased: {counts}\nreceipt: {path}")
