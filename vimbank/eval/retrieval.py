"""Retrieval measured on a data set: loaded through the product, each leg and each fusion side by side.

``convex``, ``rrf``, ``dense`` and ``sparse`` run without what a bank adds (neighbours, link hop, dates, time);
``default`` is the bank's policy as users meet it.
"""

import argparse
import hashlib
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean, median
from typing import Any, Final, get_args

from tqdm import tqdm

from vimbank.domain.models import SEGMENT_KIND, FusionName, MemoryDraft, Query, ScoredMemory
from vimbank.errors import InvalidInput, NotFound, VimbankError
from vimbank.eval.derive import write_derived
from vimbank.eval.machine import describe_machine
from vimbank.eval.metrics import all_at_k, any_at_k, mrr, ndcg_at_k, recall_at_k
from vimbank.eval.report import publish
from vimbank.ingestion.datasets import LOADERS, Loader, Question
from vimbank.service import MemoryService

__all__ = [
    "FUSIONS",
    "METRICS",
    "TENANT",
    "evaluate",
    "file_hashes",
    "main",
    "memory_ids",
    "progress_bar",
    "to_markdown",
]

DEFAULT: Final = "default"
FUSIONS: Final = ("dense", "sparse", "rrf", "convex", DEFAULT)
BARE: Final[Mapping[str, float | bool]] = {
    "time_weight": 0.0,
    "neighbour_weight": 0.0,
    "hop_weight": 0.0,
    "temporal_weight": 0.0,
    "failure_weight": 0.0,
    "recency_gap": 0.0,
    "group_by_parent": False,
    "window": 0,
    "rerank": 0,
}
"""A bank's policy without all that comes after fusion."""

METRICS: Final[Mapping[str, Callable[[Sequence[str], frozenset[str]], float]]] = {
    "recall@2": lambda run, gold: recall_at_k(run, gold, 2),
    "recall@5": lambda run, gold: recall_at_k(run, gold, 5),
    "recall@10": lambda run, gold: recall_at_k(run, gold, 10),
    "any@5": lambda run, gold: any_at_k(run, gold, 5),
    "all@5": lambda run, gold: all_at_k(run, gold, 5),
    "MRR@10": lambda run, gold: mrr(run[:10], gold),
    "nDCG@10": lambda run, gold: ndcg_at_k(run, gold, 10),
}
TENANT: Final = "evaluation"
# More than the ten that are scored: several segments of one long memory count as that memory.
TOP_K: Final = 30
BATCH: Final = 128


@dataclass(frozen=True, slots=True)
class _Run:
    """The answers under one fusion: a ranked list of memory ids a question, and how long each search took."""

    fusion: str
    answers: Sequence[Sequence[str]]
    took_ms: Sequence[float]


def evaluate(
    name: str,
    path: Path,
    data: Path,
    *,
    fusions: Sequence[str] = FUSIONS,
    extra_distractors: bool = False,
    summaries: bool = False,
    settings: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Load a set into the data folder where it is not there yet, ask its questions, and score the answers.

    Questions without evidence are counted, not scored. Searches do not reinforce, so a second run gives the same.

    Args:    name: a key of LOADERS.  path: the set's folder.  data: the data folder.  fusions: of FUSIONS.
             summaries: summaries and portraits are written before the questions are asked. They stay in the folder.
             settings: as for ``MemoryService.open``.
    Returns: JSON values: set, files with sha256, settings, machine with commit, counts, seconds, bytes, and
             ``scores[fusion][split][category][metric]``, with ``all`` for every split and every category.
    Raises:  InvalidInput: a bad path.  VimbankError: a memory was refused, or an answer was degraded.
    """
    loader = LOADERS[name]
    chosen = dict(settings or {})
    questions = list(loader.questions(path))
    asked = [question for question in questions if question.gold]
    with MemoryService.open(data, **chosen) as service:
        loaded = _load(service, loader, path, extra_distractors=extra_distractors)
        service.flush()
    derived = write_derived(data, TENANT, chosen) if summaries else {}
    with MemoryService.open(data, **chosen) as service:
        stats = service.stats(TENANT)
        runs = _ask_all(service, asked, [fusion for fusion in fusions if fusion == DEFAULT])
    with MemoryService.open(data, **chosen, banks=_bare_banks(chosen.pop("banks", {}), stats.by_bank)) as service:
        runs = _ask_all(service, asked, [fusion for fusion in fusions if fusion != DEFAULT]) + runs
    return {
        "set": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": file_hashes(path),
        "settings": {**chosen, "extra_distractors": extra_distractors, "top_k": TOP_K, "without_extras": dict(BARE)},
        "machine": describe_machine(),
        "encoder": stats.encoder,
        "memories": stats.memories,
        "by_kind": dict(stats.by_kind),
        "load": loaded,
        "derived": derived,
        "disk_bytes": stats.disk_bytes,
        "questions": len(questions),
        "with_evidence": len(asked),
        "search_ms_p50": {run.fusion: round(median(run.took_ms), 2) for run in runs if run.took_ms},
        "scores": {run.fusion: _scores(asked, run) for run in runs},
    }


def _bare_banks(overrides: Mapping[str, Any], banks: Mapping[str, int]) -> dict[str, dict[str, Any]]:
    return {bank: {**overrides.get(bank, {}), **BARE} for bank in banks}


# -- load and ask ----------------------------------------------------------------------------------------------


def _load(service: MemoryService, loader: Loader, path: Path, *, extra_distractors: bool) -> dict[str, Any]:
    """Load what is missing; an earlier load that was stopped is gone on with."""
    total = loader.total(path, extra_distractors=extra_distractors)
    drafts = loader.load(path, tenant=TENANT, extra_distractors=extra_distractors)
    added, started = 0, time.perf_counter()
    with progress_bar(f"load {loader.name}", total, "memories") as bar:
        for batch in _batches(drafts):
            missing = [draft for draft in batch if not _known(service, draft)]
            for result in service.add_many(missing, actor="evaluation") if missing else ():
                if isinstance(result, VimbankError):
                    raise result
            added += len(missing)
            bar.update(len(batch))
    return {"added": added, "already_there": total - added, "seconds": round(time.perf_counter() - started, 2)}


def _batches(drafts: Iterator[MemoryDraft]) -> Iterator[list[MemoryDraft]]:
    batch: list[MemoryDraft] = []
    for draft in drafts:
        batch.append(draft)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _known(service: MemoryService, draft: MemoryDraft) -> bool:
    try:
        service.get(draft.tenant, draft.id or "")
    except NotFound:
        return False
    return True


def _ask_all(service: MemoryService, questions: Sequence[Question], fusions: Sequence[str]) -> list[_Run]:
    if fusions:
        _ask(service, questions, "dense")  # fills the cache of query vectors, so that no fusion is timed with encoding
    return [_ask(service, questions, fusion) for fusion in fusions]


def _ask(service: MemoryService, questions: Sequence[Question], fusion: str) -> _Run:
    answers, took = [], []
    with progress_bar(f"ask, {fusion}", len(questions), "questions") as bar:
        for question in questions:
            query = Query(
                tenant=TENANT,
                user_id=question.user_id,
                text=question.text,
                top_k=TOP_K,
                fusion=None if fusion == DEFAULT else _fusion(fusion),
                reinforce=False,
            )
            recall = service.search(query)
            if recall.degraded:
                raise VimbankError(f"{', '.join(recall.degraded)} did not answer: the run would measure something else")
            answers.append(memory_ids(recall.results))
            took.append(recall.took_ms)
            bar.update()
    return _Run(fusion, answers, took)


def _fusion(name: str) -> FusionName:
    names: tuple[FusionName, ...] = get_args(FusionName)
    found = next((known for known in names if known == name), None)
    if found is None:
        raise InvalidInput.of("fusion", f"must be {DEFAULT} or one of {', '.join(names)}")
    return found


def memory_ids(results: Sequence[ScoredMemory]) -> list[str]:
    """Ids best first, each once; a segment stands for the memory it was cut from."""
    found = (
        hit.memory.source.parent_id
        if hit.memory.kind == SEGMENT_KIND and hit.memory.source.parent_id
        else hit.memory.id
        for hit in results
    )
    return list(dict.fromkeys(found))


def progress_bar(label: str, total: int, unit: str) -> "tqdm[Any]":
    """A bar on standard error, where that is a terminal."""
    return tqdm(total=total, desc=label, unit=f" {unit}", disable=None, dynamic_ncols=True)


# -- score and report ------------------------------------------------------------------------------------------


def _scores(questions: Sequence[Question], run: _Run) -> dict[str, dict[str, dict[str, float]]]:
    """``[split][category][metric]``, means over questions, with their number as ``questions``."""
    cells: dict[tuple[str, str], list[dict[str, float]]] = {}
    for question, answer in zip(questions, run.answers, strict=True):
        values = {name: metric(answer, question.gold) for name, metric in METRICS.items()}
        for split in ("all", question.split):
            for category in ("all", question.category):
                cells.setdefault((split, category), []).append(values)
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for (split, category), rows in sorted(cells.items()):
        means = {name: round(fmean(row[name] for row in rows), 4) for name in METRICS}
        scores.setdefault(split, {})[category] = {"questions": len(rows), **means}
    return scores


def file_hashes(path: Path) -> dict[str, str]:
    """sha256 of each data file of the set's folder, by its name in it."""
    files = sorted(file for file in path.rglob("*") if file.is_file() and {".jsonl", ".tsv"} & set(file.suffixes))
    return {str(file.relative_to(path)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def to_markdown(report: Mapping[str, Any]) -> str:
    """The report as a page: one table a split, all categories first, then each."""
    machine, load = report["machine"], report["load"]
    lines = [
        f"# Retrieval on {report['set']}",
        "",
        f"{report['memories']:,} memories ({_counts(report['by_kind'])}), {report['disk_bytes'] / 2**20:,.1f} MiB on "
        f"disk; {load['added']:,} loaded in {load['seconds']:,} s. {report['questions']:,} questions, "
        f"{report['with_evidence']:,} with evidence. Encoder {report['encoder']}.",
        "",
        f"Measured {report['at']} on {machine['processor']}, {machine['cores']} cores; Python {machine['python']}; "
        f"commit {machine['commit']}. Median search, query vector cached: "
        + ", ".join(f"{fusion} {figure} ms" for fusion, figure in report["search_ms_p50"].items())
        + ".",
    ]
    splits = sorted({split for scores in report["scores"].values() for split in scores})
    splits = splits if len(splits) > 2 else ["all"]  # one split is all there is
    for split in splits:
        lines += ["", f"## Questions: {split}", "", f"| category | n | fusion | {' | '.join(METRICS)} |"]
        lines += ["|---" * (3 + len(METRICS)) + "|", *_table(report["scores"], split)]
    lines += ["", "## Data", "", *(f"- {name}: sha256 {digest}" for name, digest in report["files"].items())]
    return "\n".join(lines) + "\n"


def _table(scores: Mapping[str, Any], split: str) -> Iterator[str]:
    categories = sorted({category for of in scores.values() for category in of.get(split, {})})
    for category in sorted(categories, key=lambda each: each != "all"):
        for fusion, of in scores.items():
            values = of[split][category]
            figures = " | ".join(f"{100 * values[name]:.1f}" for name in METRICS)
            yield f"| {category} | {values['questions']} | {fusion} | {figures} |"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {kind}" for kind, number in counts.items())


def main(arguments: Sequence[str] | None = None) -> int:
    """The command behind ``scripts/eval-retrieval``; exit code 2 for bad input."""
    parser = argparse.ArgumentParser(
        prog="scripts/eval-retrieval",
        description="Load a data set and measure how well its questions find their evidence, by fusion.",
        epilog="Example: scripts/eval-retrieval memorybank sets/memorybank/en --data eval-data/mb-en --out results",
    )
    parser.add_argument("name", choices=sorted(LOADERS), help="the data set (see datasets/README.md)")
    parser.add_argument("path", type=Path, help="its folder")
    parser.add_argument("--data", type=Path, help="data folder, kept for the next run; default: a temporary one")
    parser.add_argument("--fusion", action="append", choices=FUSIONS, help="only this; repeatable; default: all")
    parser.add_argument("--extra-distractors", action="store_true", help="hotpotqa: 4,606 more passages")
    parser.add_argument("--summaries", action="store_true", help="write summaries and portraits first; they stay there")
    parser.add_argument("--out", type=Path, help="folder for retrieval-NAME.json and .md")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    chosen = parser.parse_args(arguments)
    with ExitStack() as stack:
        data = chosen.data or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="vimbank-eval-")))
        try:
            report = evaluate(
                chosen.name,
                chosen.path,
                data,
                fusions=chosen.fusion or FUSIONS,
                extra_distractors=chosen.extra_distractors,
                summaries=chosen.summaries,
            )
        except VimbankError as error:
            sys.stderr.write(f"scripts/eval-retrieval: {error}\n")
            return 2
    publish(report, to_markdown(report), stem=f"retrieval-{chosen.name}", out=chosen.out, as_json=chosen.json)
    return 0


if __name__ == "__main__":
    sys.exit(main())
