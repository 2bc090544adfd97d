"""Does forgetting serve retrieval? Conversations are lived through, and measured at their end.

Three things are measured, each against the same life and the same question without it:

- *in motion*: the job ``forget`` runs from time to time under the bank's policy; what stays, and what is found;
- *order*: nothing goes until the end, then the memories that would leave first, so many that a given share stays:
  every curve at the same sizes, beside the oldest first and a random order;
- *prior*: weights of retention and of time in ranking, on the whole index and on the half of it that leaves last.
"""

import argparse
import json
import math
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np

from vimbank.domain.curves import CURVE_NAMES, CurveName
from vimbank.domain.models import MemoryState, Partition, StateChange
from vimbank.errors import VimbankError
from vimbank.eval.machine import describe_machine
from vimbank.eval.replay_access import ACCESS_MODELS, AccessModel, traffic
from vimbank.eval.replay_life import SETS, Habits, Stage, World, encode, hot_memories, live, popularities, score, worlds
from vimbank.eval.replay_report import Outcome, Row, draw, rows_of, to_markdown
from vimbank.eval.report import publish
from vimbank.eval.retrieval import TENANT, file_hashes, progress_bar
from vimbank.ingestion.datasets import Split
from vimbank.service import MemoryService

__all__ = ["Plan", "main", "replay"]

OLDEST_FIRST: Final = "oldest first"
RANDOM: Final = "random"
HALF: Final = 0.5
PARTS: Final = ("in_motion", "order", "prior")
BATCH: Final = 256
_Measured: TypeAlias = tuple[str, Mapping[str, Any], Outcome]
"""Part, setting, outcome."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is replayed and measured.

    Attributes:
        habits: how people ask, and how often what has faded is archived.
        curves, accesses, splits: which forgetting curves, access models and splits.
        keeps: shares of the memories that stay, in the measurement of the order, each in [0, 1]; (): none of it.
        retention_weights, time_weights: of the prior, all pairs; (): the prior is not measured.
    """

    habits: Habits = field(default_factory=Habits)
    curves: Sequence[CurveName] = CURVE_NAMES
    accesses: Sequence[AccessModel] = ACCESS_MODELS
    splits: Sequence[Split] = ("tune", "report")
    keeps: Sequence[float] = (0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2)
    retention_weights: Sequence[float] = (0.0, 0.05, 0.1, 0.2, 0.3)
    time_weights: Sequence[float] = (0.0, 0.2)


def replay(
    name: str,
    path: Path,
    plan: Plan,
    *,
    settings: Mapping[str, Any] | None = None,
    cache: Path | None = None,
    scratch: Path,
) -> dict[str, Any]:
    """Replay a set and measure what forgetting costs and what a prior brings.

    Args:    name: of SETS.  path: the set's folder.  settings: as for ``MemoryService.open``.
             cache: folder in which vectors are kept from run to run.  scratch: an empty folder for the stores.
    Returns: JSON values: set, files with sha256, plan, policy, machine with commit, counts; ``in_motion``, ``order``
             and ``prior``: lists of rows as ``replay_report.Row`` tells; ``lives``: what was asked and archived.
    Raises:  InvalidInput: another set, a bad path.  VimbankError: a memory was refused, or an answer was degraded.
    """
    places = worlds(name, path, splits=plan.splits, seed=plan.habits.seed)
    stage = Stage(dict(settings or {}), cache)
    encode(stage.encoder, places)
    rows: dict[str, list[Row]] = {part: [] for part in PARTS}
    lives: list[Mapping[str, Any]] = []
    with progress_bar(f"replay {name}", len(plan.accesses) * len(plan.curves) * len(places), "lives") as bar:
        for access, curve in product(plan.accesses, plan.curves):
            outcomes: dict[tuple[str, str], list[tuple[Mapping[str, Any], Outcome]]] = {}
            for world in places:
                with tempfile.TemporaryDirectory(dir=scratch) as folder:
                    found = _Trial(stage, world, plan, access, curve, Path(folder)).run()
                lives += found.lives
                for part, setting, outcome in found.outcomes:
                    outcomes.setdefault((part, json.dumps(setting)), []).append((setting, outcome))
                bar.update()
            for (part, _), alike in outcomes.items():
                rows[part] += rows_of(access, alike[0][0], [outcome for _, outcome in alike])
    return {
        "set": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "files": file_hashes(path),
        "plan": asdict(plan),
        "policy": stage.policies(),
        "machine": describe_machine(),
        "encoder": str(stage.encoder.identity),
        "conversations": sum(len(world.users) for world in places),
        "memories": sum(world.memories for world in places),
        "questions": {
            "held-out": sum(len(world.questions.held_out) for world in places),
            "evaluated": sum(len(world.questions.evaluated) for world in places),
        },
        **{part: [asdict(row) for row in found] for part, found in rows.items()},
        "lives": lives,
    }


@dataclass(frozen=True, slots=True)
class _Found:
    """What one world gave: outcomes by part and setting, and its lives as JSON values."""

    outcomes: Sequence[_Measured]
    lives: Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class _Trial:
    """One world under one access model and one curve, in an empty folder."""

    stage: Stage
    world: World
    plan: Plan
    access: AccessModel
    curve: CurveName
    folder: Path

    def run(self) -> _Found:
        """Everything that is measured of it."""
        kept, in_motion = self.folder / "kept", self.folder / "in motion"
        lives = [self._live(kept, forgets=False), self._live(in_motion, forgets=True)]
        with self._service(kept) as service:
            without = score(service, self.world.questions.evaluated)
        outcomes: list[_Measured] = [("in_motion", {"curve": self.curve}, self._outcome(in_motion, without))]
        if self.access != "none":  # without a recall no memory is better than another
            outcomes += self._order(kept, without)
            outcomes += self._prior(kept)
        return _Found(outcomes, lives)

    def _order(self, kept: Path, without: Sequence[float]) -> Iterator[_Measured]:
        orders: dict[str, Callable[[MemoryService], _Order]] = {self.curve: _leaving_first}
        if self.curve == self.plan.curves[0]:
            orders |= {OLDEST_FIRST: self._oldest_first, RANDOM: self._random}
        for name, order in orders.items():
            folder = self._copy(kept, name)
            with self._service(folder) as service:
                leaving = order(service)
            for keep in sorted(self.plan.keeps, reverse=True):
                with self._service(folder) as service:
                    _keep(service, leaving, keep)
                yield "order", {"order": name, "keep": keep}, self._outcome(folder, without)

    def _prior(self, kept: Path) -> Iterator[_Measured]:
        half = self._copy(kept, "half")
        with self._service(half) as service:
            _keep(service, _leaving_first(service), HALF)
        for index, folder in (("whole", kept), ("half", half)):
            bare: Sequence[float] | None = None
            for time_weight in self.plan.time_weights:
                for weight in self.plan.retention_weights:
                    ranking = {"time_weight": time_weight, "retention_weight": weight}
                    outcome = self._outcome(folder, bare, **ranking)
                    bare = outcome.without
                    yield "prior", {"curve": self.curve, "index": index, **ranking}, outcome

    def _live(self, folder: Path, *, forgets: bool) -> Mapping[str, Any]:
        life = live(
            self.stage,
            self.world,
            folder,
            self.plan.habits,
            access=self.access,
            bank={"lifecycle": {"curve": self.curve}},
            forgets=forgets,
        )
        return {
            "access": self.access,
            "curve": self.curve,
            "forgets": forgets,
            "users": self.world.users,
            "memories": self.world.memories,
            **asdict(life),
        }

    def _service(self, folder: Path, **ranking: float) -> AbstractContextManager[MemoryService]:
        return self.stage.service(folder, {"lifecycle": {"curve": self.curve}, **ranking})

    def _outcome(self, folder: Path, without: Sequence[float] | None, **ranking: float) -> Outcome:
        """Measured now; ``without`` None: this itself is what others are compared with."""
        with self._service(folder, **ranking) as service:
            recall = score(service, self.world.questions.evaluated)
            hot, memories = hot_memories(service)
        asked = popularities(self.world, self.plan.habits, self.access).values()
        counts = traffic(self.world.questions.evaluated, asked)
        bare = recall if without is None else without
        return Outcome(self.world.split, hot, memories, recall, bare, counts)

    def _copy(self, kept: Path, name: str) -> Path:
        return shutil.copytree(kept, self.folder / name)

    def _oldest_first(self, service: MemoryService) -> "_Order":
        said = [draft for drafts in self.world.drafts.values() for draft in drafts]
        return [[draft.id or "" for draft in said if draft.user_id == each.user_id] for each in _partitions(service)]

    def _random(self, service: MemoryService) -> "_Order":
        generator = np.random.default_rng([self.plan.habits.seed, self.world.number, 2])
        return [generator.permutation(ids).tolist() for ids in self._oldest_first(service)]


_Order: TypeAlias = Sequence[Sequence[str]]
"""The memories of each partition, those first that go first."""


def _partitions(service: MemoryService) -> Sequence[Partition]:
    return service.lifecycles.partitions(TENANT)


def _leaving_first(service: MemoryService) -> _Order:
    """As the run of ``forget`` and the forecast decide, however late."""
    plans = [service.lifecycles.plan(each, now=service.clock()) for each in _partitions(service)]
    return [[plan.ids[row] for row in plan.rows(math.inf).tolist()] for plan in plans]


def _keep(service: MemoryService, leaving: _Order, share: float) -> None:
    """Archive the first of each partition, so that this share of it stays."""
    going = [each for ids in leaving for each in ids[: len(ids) - math.ceil(share * len(ids))]]
    for start in range(0, len(going), BATCH):
        changes = [StateChange(id=each, to=MemoryState.ARCHIVED) for each in going[start : start + BATCH]]
        for result in service.change_states(TENANT, changes, actor="evaluation"):
            if isinstance(result, VimbankError):
                raise result


# -- the command -----------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """The command behind ``scripts/eval-replay``; exit code 2 for bad input."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="vimbank-replay-") as scratch:
        try:
            report = replay(chosen.name, chosen.path, _plan(chosen), cache=chosen.cache, scratch=Path(scratch))
            if chosen.out is not None:
                chosen.out.mkdir(parents=True, exist_ok=True)
                draw(report, chosen.out / f"replay-{chosen.name}.svg")
        except VimbankError as error:
            sys.stderr.write(f"scripts/eval-replay: {error}\n")
            return 2
    publish(report, to_markdown(report), stem=f"replay-{chosen.name}", out=chosen.out, as_json=chosen.json)
    return 0


def _parser() -> argparse.ArgumentParser:
    plan, habits = Plan(), Habits()
    parser = argparse.ArgumentParser(
        prog="scripts/eval-replay",
        description="Live through the conversations of a data set day by day, with recalls and forgetting, and measure "
        "the share of the memories that stays in the hot index against the recall of the evaluated questions. The "
        "bank's policy is changed by the settings of the environment (VIMBANK_BANKS__DIALOG__...).",
        epilog="Example: scripts/eval-replay locomo sets/locomo --split tune --cache /tmp/vectors --out results",
    )
    parser.add_argument("name", choices=SETS, help="the data set (see datasets/README.md)")
    parser.add_argument("path", type=Path, help="its folder; for memorybank of one language")
    parser.add_argument("--split", action="append", choices=("tune", "report"), help="only this; default: both")
    parser.add_argument("--curve", action="append", choices=CURVE_NAMES, help="only this; repeatable; default: all")
    parser.add_argument(
        "--access", action="append", choices=ACCESS_MODELS, help="how questions are asked; repeatable; default: all"
    )
    parser.add_argument(
        "--keep", action="append", type=_share, help="share that stays; repeatable; default: 0.2 to 0.9"
    )
    parser.add_argument("--retention-weight", action="append", type=_share, help="repeatable; the first is the base")
    parser.add_argument("--time-weight", action="append", type=_share, help="repeatable; the first is the base")
    parser.add_argument("--only-in-motion", action="store_true", help="measure neither the order nor the prior")
    parser.add_argument("--days-after", type=_count, default=habits.days_after, help="after the last session, days")
    parser.add_argument(
        "--questions-a-day", type=_count, default=habits.questions_a_day, help="searches of a conversation and day"
    )
    parser.add_argument("--zipf", type=_not_negative, default=habits.exponent, help="exponent of their popularity")
    parser.add_argument(
        "--feedback", type=_share, default=habits.feedback, help="share of the searches after which use is reported"
    )
    parser.add_argument(
        "--forget-every-days", type=_positive, default=habits.forget_every_days, help="between two runs of forget, days"
    )
    parser.add_argument("--seed", type=_count, default=habits.seed, help="of everything that is drawn")
    parser.add_argument("--cache", type=Path, help="folder where vectors are kept for the next run; default: nowhere")
    parser.add_argument("--out", type=Path, help="folder for replay-NAME.json, .md and .svg")
    parser.add_argument("--json", action="store_true", help="print JSON instead of Markdown")
    parser.set_defaults(plan=plan)
    return parser


def _plan(chosen: argparse.Namespace) -> Plan:
    plan: Plan = chosen.plan
    habits = Habits(
        days_after=chosen.days_after,
        questions_a_day=chosen.questions_a_day,
        exponent=chosen.zipf,
        feedback=chosen.feedback,
        forget_every_days=chosen.forget_every_days,
        seed=chosen.seed,
    )
    measured = not chosen.only_in_motion
    return Plan(
        habits=habits,
        curves=chosen.curve or plan.curves,
        accesses=chosen.access or plan.accesses,
        splits=chosen.split or plan.splits,
        keeps=(chosen.keep or plan.keeps) if measured else (),
        retention_weights=(chosen.retention_weight or plan.retention_weights) if measured else (),
        time_weights=(chosen.time_weight or plan.time_weights) if measured else (),
    )


def _share(text: str) -> float:
    value = float(text)
    if not 0.0 <= value <= 1.0:
        raise argparse.ArgumentTypeError("must be between 0 and 1")
    return value


def _not_negative(text: str) -> float:
    value = float(text)
    if not 0.0 <= value < math.inf:
        raise argparse.ArgumentTypeError("must not be negative")
    return value


def _count(text: str) -> int:
    value = int(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return value


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
