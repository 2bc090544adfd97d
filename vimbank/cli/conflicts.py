"""conflicts."""

from collections.abc import Mapping
from typing import Any

import click

from vimbank.cli.command import Call, command
from vimbank.cli.jobs import run_and_answer
from vimbank.cli.quoting import quotes
from vimbank.cli.render import table
from vimbank.service import MemoryService

__all__ = ["conflicts"]


@command("conflicts", example="vimbank conflicts --dry-run", tenant=False)
@click.option("--tenant", "only_tenant", help="Only this tenant's.  [default: all]")
@click.option("--dry-run", is_flag=True, help="Only say what would be superseded.")
@click.option("--reread", is_flag=True, help="Also read again what was read before, as after an upgrade.")
@click.option("--rules-only", is_flag=True, help="Ask no chat model, also where one is set.")
@click.option("--max-share", type=float, help="What may go at most, 0 to 1.  [default: as the settings say]")
def conflicts(call: Call, only_tenant: str | None, **options: Any) -> None:
    """Supersede what newer memories contradict, where no write has, and list it.

    Each memory does so as it is written, unless VIMBANK_INGEST__CONFLICTS is off; this is for what was there before,
    for what began later and for dates that were changed. Where a chat model is set (VIMBANK_LLM__BASE_URL) it is asked
    about what the rules leave; what it calls stale stays searchable. `vimbank restore ID` takes either back for good.
    Exit code 1 where it would supersede too much and so does nothing.
    """
    run_and_answer(call, "conflicts", {"tenant": only_tenant, **options}, _rendered)


def _rendered(service: MemoryService, result: Mapping[str, Any]) -> str:
    texts = quotes(service, ((each["tenant"], each[name]) for each in result["items"] for name in ("id", "by")))
    rows = []
    for each in result["items"]:
        old, new = (texts[each["tenant"], each[name]] for name in ("id", "by"))
        rows.append(
            ("all" if each["whole"] else "part", each["user_id"], each["bank"], each["id"], old, each["from"], new)
        )
    heading = ("ended", "user", "bank", "id", "text", "since", "by")
    whole, part = ("due", "due_partly") if result["dry_run"] else ("superseded", "ended_partly")
    verb = "would be superseded" if result["dry_run"] else "superseded"
    lines = [table(rows, heading=heading)] if rows else []
    lines.append(f"{result[whole]} of {result['memories']} {verb}, {result[part]} in part, {result['skipped']} skipped")
    if result["by_model"] is not None:
        lines.append(_by_model(service, result["by_model"], dry_run=result["dry_run"]))
    return "\n".join([*lines, *([f"stopped: {result['stopped']}"] if result["stopped"] else [])])


def _by_model(service: MemoryService, told: Mapping[str, Any], *, dry_run: bool) -> str:
    texts = quotes(service, ((each["tenant"], each[name]) for each in told["pairs"] for name in ("older", "newer")))
    rows = []
    for each in told["pairs"]:
        old, new = (texts[each["tenant"], each[name]] for name in ("older", "newer"))
        rows.append((each["relation"], each["user_id"], each["bank"], each["older"], old, each["newer"], new))
    heading = ("model says", "user", "bank", "older", "text", "newer", "text")
    lines = [table(rows, heading=heading)] if rows else []
    verb = "would be named stale" if dry_run else "named stale"
    lines.append(
        f"{told['model']} was asked about {told['asked']} pairs: {told['ended']} {verb}, {told['failed']} failed, "
        f"{told['prompt_tokens'] + told['completion_tokens']} tokens"
    )
    return "\n".join([*lines, *([f"not finished: {told['stopped']}"] if told["stopped"] else [])])
