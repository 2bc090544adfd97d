"""search."""

from typing import Any, get_args

import click

from vimbank.cli.command import Call, command
from vimbank.cli.memories import width
from vimbank.cli.render import render_recall
from vimbank.cli.values import filter_of, text_of, time_of
from vimbank.domain.models import FusionName, Query
from vimbank.domain.records import recall_record
from vimbank.wiring import open_service

__all__ = ["search"]


@command("search", example='vimbank search "what can Ana not eat" --user ana --explain')
@click.argument("query")
@click.option("--user", "user_id", required=True, help="Whose memories.")
@click.option("--bank", "banks", multiple=True, help="Only this bank; repeatable.  [default: all]")
@click.option("--top-k", "-k", type=int, default=10, show_default=True, help="Most results.")
@click.option("--filter", "filter_json", metavar="JSON", help="Only memories that match.")
@click.option("--session", "session_id", help="Only this session's.")
@click.option("--agent", "agent_id", help="Only this agent's.")
@click.option(
    "--fusion", type=click.Choice(get_args(FusionName)), help="How the legs are joined.  [default: the bank's]"
)
@click.option("--threshold", type=float, help="Least final score, 0 to 1.")
@click.option("--as-of", metavar="TIME", help="Answer from the memories as they stood then.")
@click.option("--explain", is_flag=True, help="Show how each score came about.")
@click.option("--labels", is_flag=True, help="Say whether each is relevant, irrelevant or conflicting.")
@click.option("--reinforce/--no-reinforce", default=True, show_default=True, help="Count the results as recalled.")
@click.option("--shared/--no-shared", "include_shared", default=True, show_default=True, help="Search `shared` too.")
@click.option("--eventual", is_flag=True, help="Do not wait for what other processes have just written.")
def search(
    call: Call,
    query: str,
    banks: tuple[str, ...],
    filter_json: str | None,
    as_of: str | None,
    eventual: bool,
    **options: Any,
) -> None:
    """Search a user's memories, best first. QUERY is the text itself, or - for standard input."""
    request = Query(
        tenant=call.tenant,
        text=text_of(query),
        banks=banks or None,
        filter=filter_of(filter_json),
        as_of=time_of(as_of, "as_of"),
        consistency="eventual" if eventual else "strong",
        **options,
    )
    with open_service(call.settings()) as service:
        recall = service.search(request)
    call.answer(recall_record(recall), render_recall(recall, width=width()))
