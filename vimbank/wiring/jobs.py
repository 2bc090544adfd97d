"""Puts the jobs together: who runs them, and what calls them when they are due."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, get_args

from vimbank.chat.openai_compatible import OpenAICompatibleChat
from vimbank.domain.jobs import Schedule
from vimbank.errors import ConfigError, InvalidInput
from vimbank.jobs.context import RemoteFollowing, Surroundings
from vimbank.jobs.own_indexes import IndexWatch
from vimbank.jobs.registry import JOBS, JobSpec
from vimbank.jobs.runner import Jobs
from vimbank.jobs.schedule import schedules
from vimbank.llm.assess import ChatJudge
from vimbank.llm.compare import ChatComparer
from vimbank.llm.summarise import ChatWriter
from vimbank.llm.writer import Writer
from vimbank.ports import ChatModel, Clock, Encoder, JobQueue
from vimbank.queues.threads import StoredQueue, ThreadQueue
from vimbank.service import MemoryService
from vimbank.settings import EncoderSettings, LlmSettings, Settings
from vimbank.store.erasing import SqlEraser
from vimbank.store.sql import SqlStore
from vimbank.wiring import open_encoder, utc_now

if TYPE_CHECKING:
    from vimbank.queues.periodic import PeriodicCalls

__all__ = ["job_schedules", "open_chat", "open_jobs"]

_LATE_SHARE: Final = 0.1
_LATE_MOST_S: Final = 600.0
"""A job that was not run in this period, because no server was up when it was due, runs this long after the start."""


def job_schedules(settings: Settings) -> Sequence[Schedule]:
    """What runs by itself, as the settings say."""
    jobs = settings.jobs
    return schedules(
        follow_every_s=jobs.follow_every_s,
        snapshot_every_s=jobs.snapshot_every_s,
        compact_every_s=jobs.compact_every_s,
        check_every_s=jobs.check_every_s,
        check_repair=jobs.check_repair,
        reinforce_every_s=settings.store.recalls_fold_s,
        forget_every_s=jobs.forget_every_s,
        expire_every_s=jobs.expire_every_s,
        conflicts_every_s=jobs.conflicts_every_s,
        prune_every_s=jobs.prune_every_s,
        summarise_every_s=jobs.summarise_every_s,
        portrait_every_s=jobs.portrait_every_s,
        consolidate_every_s=jobs.consolidate_every_s,
        assess_every_s=jobs.assess_every_s,
    )


def open_jobs(
    settings: Settings,
    service: MemoryService,
    *,
    clock: Clock = utc_now,
    remotes: Sequence[RemoteFollowing] = (),
    serve: bool = False,
    specs: Mapping[str, JobSpec] = JOBS,
) -> Jobs:
    """The jobs of the service's store. Close them before the service.

    Args:    serve: this process is a server. Where the settings name no workers, its threads run the jobs from here
             on, those of a dead server included, and its scheduler starts them when they are due.
             A server also follows into the indexes outside the process, whoever runs the jobs.
             remotes: in place of the service's own.
             specs: the jobs there are; a program with jobs of its own adds them to ``JOBS``.
    Raises:  ConfigError: jobs are sent to Celery, but no Redis is named; a chat model is named by half.
    """
    store = service.store
    if not isinstance(store, SqlStore):
        raise ConfigError("jobs need a store that other processes can open")

    def encoder(kind: str | None) -> Encoder:
        return open_encoder(settings.encoder if kind is None else _of_kind(settings.encoder, kind))

    if service.remotes is not None:
        remotes = remotes or [service.remotes]
        if serve:
            service.remotes.start()
    chat = open_chat(settings.llm)
    around = Surroundings(
        service,
        store.jobs,
        clock,
        encoder,
        remotes,
        settings.jobs.keep_days,
        SqlEraser(store),
        _writer(settings.llm, chat, service),
        _judge(settings.llm, chat),
        _comparer(settings.llm, chat),
        recalls_keep_days=settings.store.recalls_keep_days,
    )
    serving = serve and settings.jobs.runner == "embedded"
    threads = ThreadQueue(settings.jobs.threads) if serving else None
    queue = threads if threads is not None else _queue(settings)
    jobs = Jobs(around, queue, lease_s=settings.jobs.lease_s, schedules=job_schedules(settings), specs=specs)
    if chat is not None:
        jobs.before_close(chat.close)
    if threads is not None and settings.jobs.schedule:
        service.leave_folding()
    if serve:
        _serve(jobs, threads, _index_watch(settings, jobs, service, clock), scheduled=settings.jobs.schedule)
    return jobs


def open_chat(settings: LlmSettings) -> OpenAICompatibleChat | None:
    """The chat model that the settings name; None where they name none. Raises ConfigError."""
    if settings.base_url is None:
        return None
    return OpenAICompatibleChat.open(
        settings.model,
        base_url=settings.base_url,
        api_key=settings.api_key.get_secret_value() if settings.api_key is not None else None,
        window=settings.context_tokens,
        max_tokens=settings.max_tokens,
        timeout_s=settings.timeout_s,
        max_retries=settings.max_retries,
    )


def _writer(
    settings: LlmSettings, chat: ChatModel | None, service: MemoryService
) -> Callable[[Callable[[], None]], Writer] | None:
    if chat is None:
        return None

    def make(check: Callable[[], None]) -> Writer:
        return ChatWriter(
            chat, service.encoder, reply_tokens=settings.max_tokens, run_tokens=settings.run_tokens, check=check
        )

    make(lambda: None)  # what does not fit together is told at the start
    return make


def _judge(settings: LlmSettings, chat: ChatModel | None) -> Callable[[Callable[[], None]], ChatJudge] | None:
    if chat is None:
        return None

    def make(check: Callable[[], None]) -> ChatJudge:
        return ChatJudge(chat, run_tokens=settings.run_tokens, check=check)

    make(lambda: None)
    return make


def _comparer(settings: LlmSettings, chat: ChatModel | None) -> Callable[[Callable[[], None]], ChatComparer] | None:
    if chat is None:
        return None

    def make(check: Callable[[], None]) -> ChatComparer:
        return ChatComparer(chat, run_tokens=settings.run_tokens, check=check)

    make(lambda: None)
    return make


def _of_kind(settings: EncoderSettings, kind: str) -> EncoderSettings:
    kinds = get_args(EncoderSettings.model_fields["kind"].annotation)
    if kind not in kinds:
        raise InvalidInput.of("params.encoder", f"must be one of {', '.join(kinds)}")
    # The model of the one that is set is no model of another one.
    return settings.model_copy(update={"kind": kind} if kind == settings.kind else {"kind": kind, "model": None})


def _queue(settings: Settings) -> JobQueue:
    if settings.jobs.runner == "embedded":
        return StoredQueue()
    if settings.redis.url is None:
        raise ConfigError("VIMBANK_JOBS__RUNNER=celery needs VIMBANK_REDIS__URL")
    from vimbank.queues.celery import CeleryQueue  # Celery is an extra, and slow to load

    return CeleryQueue(settings.redis.url.get_secret_value(), timeout_s=settings.redis.timeout_s)


def _index_watch(settings: Settings, jobs: Jobs, service: MemoryService, clock: Clock) -> IndexWatch | None:
    """None: the server runs nothing by itself."""
    if settings.jobs.runner == "embedded" and not settings.jobs.schedule:
        return None
    every_s, repair = settings.jobs.check_every_s, settings.jobs.check_repair
    return IndexWatch(jobs, service, clock=clock, every_s=every_s, repair=repair)


def _serve(jobs: Jobs, threads: ThreadQueue | None, watch: IndexWatch | None, *, scheduled: bool) -> None:
    """Call what is due. ``threads``: run the jobs, too; None: workers do, and beat starts them."""
    from vimbank.queues.periodic import PeriodicCalls  # APScheduler: only a server needs it

    calls = PeriodicCalls()
    if watch is not None:
        calls.every(watch.look_every_s, watch.look, name="check of the own indexes")
    if threads is not None:
        calls.every(jobs.requeue_every_s, jobs.requeue, name="requeue")
        for schedule in jobs.schedules if scheduled else ():
            _plan(calls, jobs, schedule)
        threads.start(jobs.run)
    jobs.before_close(calls.close)
    if threads is not None:
        jobs.requeue(queued_s=0)  # what a dead server left
    calls.start()


def _plan(calls: "PeriodicCalls", jobs: Jobs, schedule: Schedule) -> None:
    def call() -> None:
        jobs.run_scheduled(schedule.name)

    period_s = schedule.every.total_seconds()
    calls.every(period_s, call, name=schedule.name)
    if JOBS[schedule.name].recorded:
        calls.once(min(_LATE_SHARE * period_s, _LATE_MOST_S), call, name=f"{schedule.name} late")
