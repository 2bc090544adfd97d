"""Conversations lived through day by day, on a service whose clock is set: what the replay measures is made here.

Each day's sessions are stored as they were said; then questions are asked, each search goes to the access log as every
user's does, and the evidence among its hits is reported as used; then the log is folded. Where it is wanted, the job
``forget`` runs from time to time.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any, Final

import numpy as np

from vimbank.domain.models import MemoryDraft, MemoryState, Query, ScoredMemory, Signal
from vimbank.errors import InvalidInput, VimbankError
from vimbank.eval.metrics import recall_at_k
from vimbank.eval.replay_access import AccessModel, Halves, Popularity, halves
from vimbank.eval.replay_vectors import KeptEncoder
from vimbank.eval.retrieval import TENANT, memory_ids, progress_bar
from vimbank.ingestion.datasets import LOADERS, Question
from vimbank.service import MemoryService
from vimbank.settings import Settings, load_settings
from vimbank.wiring import bank_policies, lifecycle_policies, open_encoder, open_service
from vimbank.wiring.jobs import open_jobs

__all__ = [
    "BANK",
    "SETS",
    "Habits",
    "Life",
    "SetClock",
    "Stage",
    "World",
    "encode",
    "hot_memories",
    "live",
    "popularities",
    "score",
    "worlds",
]

SETS: Final = ("locomo", "memorybank")
"""The sets whose memories have times and whose questions have evidence."""
BANK: Final = "dialog"
TOP_K: Final = 10
"""Results of a search, as the product gives them by default."""
AT: Final = 5
"""k of the recall that is measured."""
BATCH: Final = 128
_PATIENCE_S: Final = 1e6
"""Recalls are folded when the replay says so, not after so many seconds of real time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """How people ask, and how often what has faded is archived.

    Attributes:
        days_after: how long it goes on after the last session, days, >= 0.
        questions_a_day: searches of each conversation and day, >= 0.
        exponent: of Zipf's law of popularity, >= 0.
        feedback: the share of the searches after which the evidence among the hits is reported as used, in [0, 1].
        forget_every_days: >= 1.
        seed: of the halves, the popularity and the draws.
    """

    days_after: int = 60
    questions_a_day: int = 3
    exponent: float = 1.0
    feedback: float = 1.0
    forget_every_days: int = 7
    seed: int = 20_250_106


class SetClock:
    """A clock that shows what it was set to."""

    def __init__(self, now: datetime) -> None:
        self.now = now

    def __call__(self) -> datetime:
        """Aware UTC."""
        return self.now


@dataclass(frozen=True, slots=True)
class World:
    """Conversations of the same days, which share one store: their memories by day in order, and their questions."""

    number: int
    split: str
    drafts: Mapping[datetime, Sequence[MemoryDraft]]
    questions: Halves

    @property
    def users(self) -> Sequence[str]:
        """Whose conversations they are, sorted."""
        return sorted({draft.user_id for drafts in self.drafts.values() for draft in drafts})

    @property
    def memories(self) -> int:
        """How many are said in it."""
        return sum(map(len, self.drafts.values()))


@dataclass(slots=True)
class Life:
    """What became of a world: searches made, log entries folded, the largest share that one run of forget took, and
    (day, active memories) after each run."""

    searches: int = 0
    folded: int = 0
    largest_share: float = 0.0
    hot: tuple[tuple[int, int], ...] = ()


class Stage:
    """Opens services over folders, all with one encoder and one clock, which is set.

    Args:    settings: as for ``MemoryService.open``.  cache: where vectors are kept; None: nowhere.
    """

    def __init__(self, settings: Mapping[str, Any], cache: Path | None) -> None:
        self._settings = settings
        self.encoder = KeptEncoder(open_encoder(load_settings(**settings).encoder), cache)
        self.clock = SetClock(datetime.now(UTC))

    def settings(self, folder: Path, bank: Mapping[str, Any]) -> Settings:
        """The settings with these overrides of the bank."""
        store = {"recalls_flush_s": _PATIENCE_S, "recalls_fold_s": _PATIENCE_S}
        return load_settings(data_dir=folder, **_merged(self._settings, {"store": store, "banks": {BANK: bank}}))

    @contextmanager
    def service(self, folder: Path, bank: Mapping[str, Any]) -> Iterator[MemoryService]:
        """The service over a folder, with these overrides of the bank."""
        with open_service(self.settings(folder, bank), clock=self.clock, encoder=self.encoder) as service:
            yield service

    def policies(self) -> dict[str, Any]:
        """The bank's ranking and lifecycle as JSON values, without what a measurement overrides."""
        banks = self.settings(Path(), {}).banks
        return {"ranking": asdict(bank_policies(banks)[BANK]), "lifecycle": asdict(lifecycle_policies(banks)[BANK])}


def worlds(name: str, path: Path, *, splits: Sequence[str], seed: int) -> list[World]:
    """The conversations of these splits that have questions with evidence, together where they share all their days.

    Raises:  InvalidInput: another set than SETS, a bad path, no such question.
    """
    if name not in SETS:
        raise InvalidInput.of("name", f"must be one of {', '.join(SETS)}")
    loader = LOADERS[name]
    questions = [each for each in loader.questions(path) if each.gold and each.split in splits]
    if not questions:
        raise InvalidInput.of("path", "has no question with evidence in these splits")
    parted = halves(questions, generator=np.random.default_rng(seed))
    split_of = {each.user_id: each.split for each in questions}
    by_user: dict[str, dict[datetime, list[MemoryDraft]]] = {}
    for draft in loader.load(path, tenant=TENANT):
        if draft.user_id in split_of:
            said = _as_said(draft)
            by_user.setdefault(said.user_id, {}).setdefault(_day(said), []).append(said)
    by_days: dict[tuple[str, datetime, datetime], list[str]] = {}
    for user, days in by_user.items():
        by_days.setdefault((split_of[user], min(days), max(days)), []).append(user)
    return [
        World(
            number,
            split,
            {day: [each for user in users for each in by_user[user].get(day, ())] for day in _days(first, last)},
            _of_users(parted, frozenset(users)),
        )
        for number, ((split, first, last), users) in enumerate(by_days.items())
    ]


def encode(encoder: KeptEncoder, places: Sequence[World]) -> None:
    """All texts at once, which is quicker than session by session; they are kept."""
    texts = [draft.text for world in places for drafts in world.drafts.values() for draft in drafts]
    asked = [each.text for world in places for half in world.questions.both() for each in half]
    with progress_bar("encode", len(texts) + len(asked), "texts") as bar:
        for encode_some, every in ((encoder.encode_documents, texts), (encoder.encode_queries, asked)):
            for start in range(0, len(every), BATCH):
                encode_some(every[start : start + BATCH])
                bar.update(len(every[start : start + BATCH]))
    encoder.save()


def popularities(world: World, habits: Habits, access: AccessModel) -> Mapping[str, Popularity]:
    """What each user of the world asks, as it will be drawn; the same at each call."""
    generator = np.random.default_rng([habits.seed, world.number, 0])
    asked = world.questions.asked(access)
    by_user = {user: [each for each in asked if each.user_id == user] for user in world.users}
    return {
        user: Popularity(questions, exponent=habits.exponent, generator=generator)
        for user, questions in by_user.items()
    }


def live(
    stage: Stage,
    world: World,
    folder: Path,
    habits: Habits,
    *,
    access: AccessModel,
    bank: Mapping[str, Any],
    forgets: bool,
) -> Life:
    """Live through a world in an empty folder. The clock stands at the end of the last day then.

    The same seed gives the same questions on the same days, whatever the bank's policy.

    Args:    bank: overrides of the bank's settings.  forgets: whether the job ``forget`` runs.
    Raises:  VimbankError: a memory was refused, or an answer was degraded.
    """
    settings = stage.settings(folder, bank)
    life = Life()
    reports = np.random.default_rng([habits.seed, world.number, 1])
    popularity = popularities(world, habits, access)
    said: set[str] = set()
    first, last = min(world.drafts), max(world.drafts)
    with stage.service(folder, bank) as service:
        jobs = open_jobs(settings, service, clock=stage.clock)
        for number, day in enumerate(_days(first, last + timedelta(days=habits.days_after)), 1):
            said |= _say(service, world.drafts.get(day, ()))
            stage.clock.now = day + timedelta(days=1)
            for user in world.users:
                for question in popularity[user].draw(habits.questions_a_day, said=said.__contains__):
                    _ask(service, question, reports=float(reports.random()) < habits.feedback)
                    life.searches += 1
            life.folded += service.fold_recalls()
            if forgets and number % habits.forget_every_days == 0:
                ran = jobs.run(jobs.start("forget", {"max_share": 1.0}).id)
                if ran.result is None:
                    raise VimbankError(f"forget failed: {ran.note}")
                life.largest_share = max(life.largest_share, ran.result["due"] / max(1, ran.result["memories"]))
                life.hot += ((number, hot_memories(service)[0]),)
        jobs.close()
    return life


def hot_memories(service: MemoryService) -> tuple[int, int]:
    """How many are in the hot index (active), and how many there are; segments of a long one are some of them."""
    by_state = service.stats(TENANT).by_state
    return by_state.get(MemoryState.ACTIVE.value, 0), sum(by_state.values())


def score(service: MemoryService, questions: Sequence[Question]) -> list[float]:
    """recall@5 of each question, without a trace in the access log."""
    return [
        recall_at_k(memory_ids(_search(service, question, reinforce=False)), question.gold, AT)
        for question in questions
    ]


# -- inside ----------------------------------------------------------------------------------------------------


def _say(service: MemoryService, drafts: Sequence[MemoryDraft]) -> set[str]:
    """Store what was said; the ids of it."""
    for start in range(0, len(drafts), BATCH):
        for result in service.add_many(drafts[start : start + BATCH], actor="evaluation"):
            if isinstance(result, VimbankError):
                raise result
    return {draft.id for draft in drafts if draft.id}


def _ask(service: MemoryService, question: Question, *, reports: bool) -> None:
    """A search whose hits are logged as returned, and the evidence among them as used where that is reported."""
    for found in memory_ids(_search(service, question, reinforce=True)):
        if reports and found in question.gold:
            service.feedback(TENANT, found, Signal.USED)


def _search(service: MemoryService, question: Question, *, reinforce: bool) -> Sequence[ScoredMemory]:
    query = Query(tenant=TENANT, user_id=question.user_id, text=question.text, top_k=TOP_K, reinforce=reinforce)
    recall = service.search(query)
    if recall.degraded:
        raise VimbankError(f"{', '.join(recall.degraded)} did not answer: the replay would measure something else")
    return recall.results


def _as_said(draft: MemoryDraft) -> MemoryDraft:
    """Stored when it was said."""
    if draft.event_at is None:
        raise InvalidInput.of("path", f"{draft.id} has no time, so it cannot be replayed")
    return replace(draft, created_at=draft.event_at)


def _day(draft: MemoryDraft) -> datetime:
    assert draft.event_at is not None
    return datetime.combine(draft.event_at.date(), time(), UTC)


def _days(first: datetime, last: datetime) -> list[datetime]:
    return [first + timedelta(days=days) for days in range((last - first).days + 1)]


def _of_users(parted: Halves, users: frozenset[str]) -> Halves:
    held_out, evaluated = ([each for each in half if each.user_id in users] for half in parted.both())
    return Halves(held_out, evaluated)


def _merged(given: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Both, nested mappings joined; ``over`` wins."""
    both = {**given, **over}
    for name in given.keys() & over.keys():
        if isinstance(given[name], Mapping) and isinstance(over[name], Mapping):
            both[name] = _merged(given[name], over[name])
    return both
