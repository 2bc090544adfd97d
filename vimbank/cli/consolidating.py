"""consolidate."""

from collections.abc import Mapping
from typing import Any

import click

from vimbank.cli.command import Call, command
from vimbank.cli.jobs import run_and_answer
from vimbank.cli.quoting import quotes
from vimbank.cli.render import table
from vimbank.service import MemoryService

__all__ = ["consolidate"]


@command("consolidate", example="vimbank consolidate --dry-run", tenant=False)
@click.option("--tenant", "only_tenant", help="Only this tenant's.  [default: all]")
@click.option("--dry-run", is_flag=True, help="Only say what would be folded.")
@click.option("--threshold", type=float, help="Cosine from which two may be folded.  [default: 0.97]")
@click.option("--max-share", type=float, help="What may be folded at most, 0 to 1.  [default: as the settings say]")
def consolidate(call: Call, only_tenant: str | None, **options: Any) -> None:
    """Fold memories that say the same in other words: all but one of them step back, and can be restored.

    Numbers, names, negations and what else changes a meaning must be equal. Pairs that are near, but not near enough,
    are flagged. `vimbank list --state superseded --filter '{"superseded_by": "ID"}'` shows what stands behind one.
    Exit code 1 where it would fold too much and so folds nothing.
    """
    run_and_answer(call, "consolidate", {"tenant": only_tenant, **options}, _rendered)


def _rendered(service: MemoryService, result: Mapping[str, Any]) -> str:
    pairs = [("fold", each["folded"], each["kept"], each) for each in result["pairs"]]
    pairs += [("flag", *reversed(each["ids"]), each) for each in result["flagged_pairs"]]
    texts = quotes(service, ((each["tenant"], name) for _, one, other, each in pairs for name in (one, other)))
    rows = []
    for what, one, other, each in pairs:
        mine, its = (texts[each["tenant"], name] for name in (one, other))
        rows.append((what, f"{each['cosine']:.3f}", each["user_id"], each["bank"], one, mine, its))
    heading = ("", "cosine", "user", "bank", "id", "text", "behind, or near")
    folded = "would be folded" if result["dry_run"] else "folded"
    count = result["due"] if result["dry_run"] else result["folded"]
    lines = [table(rows, heading=heading)] if rows else []
    lines.append(f"{count} of {result['memories']} {folded}, {result['flagged']} flagged, {result['spared']} spared")
    return "\n".join([*lines, *([f"stopped: {result['stopped']}"] if result["stopped"] else [])])
