"""The generated fact updates through a whole server: told among other things, and then asked for (V-9, V-10, D9).

Each case is a user of its own. What it tells comes in order of arrival, things of other topics between. Then its
question is searched: is the current memory above the stale one, is a current one superseded, and is the old one on
top again for whoever asks as of a time before the change? Once as the server is, once without superseding at write,
where the ranking alone decides.
"""

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from vimbank.domain.models import MemoryDraft, MemoryState, Query
from vimbank.errors import InvalidInput, VimbankError
from vimbank.eval.fact_updates import KINDS, SPLITS, Case, Told, distractors, read_case
from vimbank.eval.machine import describe_machine
from vimbank.eval.report import publish
from vimbank.service import MemoryService

__all__ = ["BANKS", "Outcome", "evaluate", "main", "read_cases", "summary", "to_markdown"]

BANKS: Final = ("dialog", "knowledge")
TENANT: Final = "evaluation"
TOP_K: Final = 10
BATCH: Final = 500
DISTRACTORS: Final = 8
_ASKED_AFTER: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one case.

    ``above``: the current memory is found, and above the stale one or without it; None where nothing is stale.
    ``stale``: memories to be superseded; ``superseded`` of these are, ``ended`` are or say something that has ended.
    ``kept``: memories that hold; ``falsely`` of these are superseded, ``falsely_ended`` are or say what has ended.
    ``before``: as of a time before the change, the old memory is found, and no newer one; None where that is not asked.
    """

    case: Case
    above: bool | None
    stale: int
    superseded: int
    ended: int
    kept: int
    falsely: int
    falsely_ended: int
    before: bool | None


def read_cases(path: Path, split: str) -> list[Case]:
    """The cases of a file, of one split or of ``all``. Raises InvalidInput where there are none."""
    try:
        records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        cases = [read_case(record) for record in records]
    except (OSError, ValueError, KeyError) as error:
        raise InvalidInput.of("file", f"{path} is no set of fact updates: {error}") from error
    chosen = [case for case in cases if split in ("all", case.split)]
    if not chosen:
        raise InvalidInput.of("split", f"{path} has no case of {split}")
    return chosen


def evaluate(
    cases: Sequence[Case],
    *,
    bank: str,
    conflicts: bool,
    count: int = DISTRACTORS,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Load the cases into a new server, ask, and sum up.

    Args:    bank: that the memories are of.  conflicts: whether a memory supersedes what it contradicts when written.
             count: other memories a case.  settings: as for ``MemoryService.open``; None: the default ones.
    Returns: JSON values: bank, conflicts, memories, encoder, seconds, and ``groups[name]`` as ``summary`` has them.
    Raises:  VimbankError: a memory was refused, or an answer was degraded.
    """
    with (
        tempfile.TemporaryDirectory(prefix="vimbank-eval-") as data,
        MemoryService.open(Path(data), ingest={"conflicts": conflicts}, **(settings or {})) as service,
    ):
        started = time.perf_counter()
        moved = [_as_of_today(case, service.clock()) for case in cases]
        _load(service, [draft for case in moved for draft in _drafts(case, bank, count)])
        service.flush()
        loaded = time.perf_counter()
        outcomes = [_outcome(service, case) for case in moved]
        stats = service.stats(TENANT)
        return {
            "bank": bank,
            "conflicts": conflicts,
            "memories": stats.memories,
            "encoder": stats.encoder,
            "load_seconds": round(loaded - started, 1),
            "ask_seconds": round(time.perf_counter() - loaded, 1),
            "groups": summary(outcomes),
        }


def _as_of_today(case: Case, now: datetime) -> Case:
    """The case with all its times moved so that the last memory came an hour ago."""
    shift = now - _ASKED_AFTER - max(told.created_at for told in case.memories)
    return replace(
        case,
        memories=[
            replace(told, at=told.at + shift, created_at=min(told.created_at + shift, now)) for told in case.memories
        ],
    )


def _drafts(case: Case, bank: str, count: int) -> list[MemoryDraft]:
    """What the users of a case say, in order of arrival; what else the first one says comes in between."""
    first, last = (pick(told.created_at for told in case.memories) for pick in (min, max))
    drafts = [_draft(told, bank) for told in case.memories]
    for number, text in enumerate(distractors(case, count)):
        arrived = first + (last - first) * (number + 1) / (count + 1)
        told = Told(
            id=f"{case.id}-x{number}",
            user_id=case.memories[0].user_id,
            text=text,
            at=arrived,
            created_at=arrived,
        )
        drafts.append(_draft(told, bank))
    return sorted(drafts, key=lambda draft: draft.created_at or last)


def _draft(told: Told, bank: str) -> MemoryDraft:
    return MemoryDraft(
        id=told.id,
        tenant=TENANT,
        user_id=told.user_id,
        bank=bank,
        text=told.text,
        title=told.title,
        created_at=told.created_at,
        event_at=told.at,
    )


def _load(service: MemoryService, drafts: Sequence[MemoryDraft]) -> None:
    for start in range(0, len(drafts), BATCH):
        for result in service.add_many(drafts[start : start + BATCH], actor="evaluation"):
            if isinstance(result, VimbankError):
                raise result


def _outcome(service: MemoryService, case: Case) -> Outcome:
    stale, current = case.stale, case.current
    stood = {name: service.get(TENANT, name) for name in {*stale, *current}}
    superseded = {name for name, memory in stood.items() if memory.state is MemoryState.SUPERSEDED}
    ended = superseded | {name for name, memory in stood.items() if memory.ended}
    held = set(current)
    return Outcome(
        case=case,
        above=_is_above(_ask(service, case), current, stale) if stale else None,
        stale=len(stale),
        superseded=len(superseded & set(stale)),
        ended=len(ended & set(stale)),
        kept=len(held),
        falsely=len(superseded & held),
        falsely_ended=len(ended & held),
        before=_stood_before(service, case, current, stale),
    )


def _ask(service: MemoryService, case: Case, as_of: datetime | None = None) -> list[str]:
    query = Query(
        tenant=TENANT,
        user_id=case.memories[0].user_id,
        text=case.question,
        top_k=TOP_K,
        reinforce=False,
        as_of=as_of,
    )
    recall = service.search(query)
    if recall.degraded:
        raise VimbankError(f"{', '.join(recall.degraded)} did not answer: the run would measure something else")
    return [hit.memory.id for hit in recall.results]


def _is_above(found: Sequence[str], current: Iterable[str], stale: Iterable[str]) -> bool:
    ranks = {name: rank for rank, name in enumerate(found)}
    best = min((ranks[name] for name in current if name in ranks), default=None)
    return best is not None and all(best < ranks.get(name, len(found)) for name in stale)


def _stood_before(service: MemoryService, case: Case, current: Sequence[str], stale: Sequence[str]) -> bool | None:
    """Asked as of half-way between the old memory and the new one; not where the old one arrived last."""
    arrived = {told.id: told.created_at for told in case.memories}
    if not stale or max(arrived[name] for name in stale) >= min(arrived[name] for name in current):
        return None
    old, new = max(arrived[name] for name in stale), min(arrived[name] for name in current)
    found = _ask(service, case, as_of=old + (new - old) / 2)
    return set(stale) <= set(found) and not set(current) & set(found)


# -- sum up and report -----------------------------------------------------------------------------------------


def summary(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Any]]:
    """By split, and inside a split by language and kind: how many, and which shares.

    Returns: for each group ``cases``, ``stale_cases``, ``above`` (share of these with the current memory above the
             stale), ``superseded`` and ``ended`` (shares of the stale memories), ``kept``, ``false_supersession`` and
             ``falsely_ended`` (shares of the memories that hold), ``before_cases`` and ``before`` (share of the cases
             asked as of a time before the change that answer with what held then), and ``below``, ``wrong``: case ids.
             A share of nothing is None.
    """
    groups: dict[str, list[Outcome]] = {}
    for each in outcomes:
        for name in ("", f"/{each.case.language}", f"/{each.case.kind}"):
            groups.setdefault(each.case.split + name, []).append(each)
    return {name: _row(group) for name, group in sorted(groups.items(), key=lambda item: _order(item[0]))}


def _order(name: str) -> tuple[str, int, str]:
    split, _, rest = name.partition("/")
    return split, KINDS.index(rest) + 1 if rest in KINDS else 0, rest


def _row(group: Sequence[Outcome]) -> dict[str, Any]:
    asked = [each for each in group if each.above is not None]
    before = [each for each in group if each.before is not None]
    stale, kept = sum(each.stale for each in group), sum(each.kept for each in group)
    return {
        "cases": len(group),
        "stale_cases": len(asked),
        "above": _share(sum(bool(each.above) for each in asked), len(asked)),
        "superseded": _share(sum(each.superseded for each in group), stale),
        "ended": _share(sum(each.ended for each in group), stale),
        "kept": kept,
        "false_supersession": _share(sum(each.falsely for each in group), kept),
        "falsely_ended": _share(sum(each.falsely_ended for each in group), kept),
        "before_cases": len(before),
        "before": _share(sum(bool(each.before) for each in before), len(before)),
        "below": [each.case.id for each in asked if not each.above],
        "wrong": [each.case.id for each in group if each.falsely],
    }


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


_COLUMNS: Final = {
    "stale_cases": "stale cases",
    "above": "current above stale",
    "superseded": "stale superseded",
    "ended": "or marked ended",
    "kept": "memories that hold",
    "false_supersession": "falsely superseded",
    "falsely_ended": "or falsely marked",
    "before": "as of before: the old one",
}


def to_markdown(report: Mapping[str, Any]) -> str:
    """The report as a page: one table a bank and way."""
    machine = report["machine"]
    lines = [
        "# Fact updates, end to end",
        "",
        f"{report['cases']:,} cases of {report['file']} (sha256 {report['sha256'][:16]}), split {report['split']}, "
        f"{report['distractors']} other memories a case, the first {TOP_K} results.",
        "",
        f"Measured {report['at']} on {machine['processor']}, {machine['cores']} cores; Python {machine['python']}; "
        f"commit {machine['commit']}.",
    ]
    for run in report["runs"]:
        how = "superseding at write" if run["conflicts"] else "ranking alone"
        lines += ["", f"## {run['bank']}, {how}", ""]
        lines += [
            f"{run['memories']:,} memories, encoder {run['encoder']}; loaded in {run['load_seconds']:,} s, asked in "
            f"{run['ask_seconds']:,} s.",
            "",
        ]
        lines += [f"| group | cases | {' | '.join(_COLUMNS.values())} |", "|---" * (2 + len(_COLUMNS)) + "|"]
        lines += [
            f"| {name} | {row['cases']} | {' | '.join(_cell(name, row[name]) for name in _COLUMNS)} |"
            for name, row in run["groups"].items()
        ]
    return "\n".join(lines) + "\n"


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return str(value) if name in {"stale_cases", "kept"} else f"{100 * value:.1f} %"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command behind ``scripts/eval-fact-updates``; exit code 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="scripts/eval-fact-updates",
        description="Tell the generated fact updates to a server, and measure whether a search ranks what is so now "
        "above what was so: once with superseding at write, once by the ranking alone.",
        epilog="Example: scripts/eval-fact-updates datasets/fact_updates.jsonl --bank dialog --out results",
    )
    parser.add_argument("file", type=Path, help="the set (see datasets/README.md)")
    parser.add_argument("--split", choices=["all", *SPLITS], default="report", help="default: %(default)s")
    parser.add_argument("--bank", action="append", choices=BANKS, help="only this; repeatable; default: both")
    parser.add_argument("--conflicts", choices=["on", "off", "both"], default="both", help="superseding at write")
    parser.add_argument(
        "--distractors", type=int, default=DISTRACTORS, metavar="N", help="other memories a case; default: %(default)s"
    )
    parser.add_argument("--out", type=Path, help="folder for fact-updates.json and .md")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    chosen = parser.parse_args(arguments)
    if chosen.distractors < 0:
        parser.error("--distractors must not be negative")
    ways = {"on": [True], "off": [False], "both": [True, False]}[chosen.conflicts]
    try:
        cases = read_cases(chosen.file, chosen.split)
        runs = [
            evaluate(cases, bank=bank, conflicts=conflicts, count=chosen.distractors)
            for bank in chosen.bank or BANKS
            for conflicts in ways
        ]
    except VimbankError as error:
        sys.stderr.write(f"scripts/eval-fact-updates: {error}\n")
        return 2
    report = {
        "file": chosen.file.name,
        "sha256": hashlib.sha256(chosen.file.read_bytes()).hexdigest(),
        "split": chosen.split,
        "cases": len(cases),
        "distractors": chosen.distractors,
        "top_k": TOP_K,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": describe_machine(),
        "runs": runs,
    }
    publish(report, to_markdown(report), stem="fact-updates", out=chosen.out, as_json=chosen.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
