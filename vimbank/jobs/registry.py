"""The jobs by name: what runs, on which queue, with which parameters."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final

from vimbank.domain.jobs import QueueName
from vimbank.errors import InvalidInput
from vimbank.jobs import (
    assess,
    check,
    compact,
    conflicts,
    consolidate,
    derive,
    erase,
    expire,
    follow,
    forget,
    forgetting,
    portrait,
    prune,
    reindex,
    reinforce,
    snapshot,
    summarise,
)
from vimbank.jobs.context import JobContext
from vimbank.jobs.params import none as no_params
from vimbank.jobs.params import partitions_and_dry_run

__all__ = ["JOBS", "JobSpec", "spec_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One kind of job.

    ``run`` is idempotent, works in small batches and gives a report of JSON values. ``validate`` gives the parameters
    as ``run`` takes them, or raises InvalidInput naming ``params.<field>``. ``recorded`` false: what the schedule
    starts of it every few seconds leaves no record; what somebody asks for always does. ``params`` tells what each
    parameter means, for those who ask. ``time_limit_s``: how long a run may take, seconds; one that takes longer fails
    at its next ``check``, and a worker process may end it.
    """

    name: str
    queue: QueueName
    run: Callable[[JobContext, Mapping[str, Any]], Mapping[str, Any]]
    description: str
    validate: Callable[[Mapping[str, Any]], Mapping[str, Any]] = no_params
    params: Mapping[str, str] = field(default_factory=dict)
    recorded: bool = True
    time_limit_s: float = 3_600.0


_ALL: Final = (
    JobSpec(
        name="follow",
        queue="index",
        run=follow.follow,
        description="Catch up the indexes outside the server with the store.",
        recorded=False,
    ),
    JobSpec(
        name="snapshot",
        queue="index",
        run=snapshot.snapshot,
        description="Write the in-process indexes to disk.",
        recorded=False,
    ),
    JobSpec(
        name="reindex",
        queue="index",
        run=reindex.reindex,
        description="Embed every memory again.",
        validate=reindex.validate,
        params={"encoder": "a kind of encoder, as in the settings; left out: the one that is set"},
        time_limit_s=7 * 86_400.0,
    ),
    JobSpec(
        name="check",
        queue="index",
        run=check.check,
        description="Compare every index with the store, and repair what differs.",
        validate=check.validate,
        params=check.PARAMS,
        time_limit_s=86_400.0,
    ),
    JobSpec(
        name="compact",
        queue="lifecycle",
        run=compact.compact,
        description="Remove tombstones, ended jobs and folded lines of the access log that are old enough.",
        validate=compact.validate,
        params={"keep_days": "how long they are kept, days; left out: as the settings say"},
    ),
    JobSpec(
        name="erase",
        queue="lifecycle",
        run=erase.erase,
        description="Erase a user, or a session or agent of one; the result is the receipt.",
        validate=erase.validate,
        params={
            "user_id": "whose memories",
            "session_id": "only this session's",
            "agent_id": "only this agent's",
            "tenant": "left out: default",
            "by": "who asked, for the receipt",
        },
        time_limit_s=86_400.0,
    ),
    JobSpec(
        name="forget",
        queue="lifecycle",
        run=forget.forget,
        description="Archive what has faded, or is over its bank's capacity.",
        validate=forgetting.validate,
        params=forgetting.PARAMS,
    ),
    JobSpec(
        name="expire",
        queue="lifecycle",
        run=expire.expire,
        description="Archive what has expired.",
        validate=forgetting.validate,
        params=forgetting.PARAMS,
    ),
    JobSpec(
        name="prune",
        queue="lifecycle",
        run=prune.prune,
        description="Delete what was archived, or superseded, longer ago than its bank's grace.",
        validate=forgetting.validate,
        params=forgetting.PARAMS,
    ),
    JobSpec(
        name="assess",
        queue="summaries",
        run=assess.assess,
        description="Judge what is worth remembering: what nobody judged yet, with a model what no model judged.",
        validate=partitions_and_dry_run,
        params=assess.PARAMS,
        time_limit_s=86_400.0,
    ),
    JobSpec(
        name="conflicts",
        queue="summaries",
        run=conflicts.conflicts,
        description="Supersede what newer memories contradict, where no write has.",
        validate=conflicts.validate,
        params=conflicts.PARAMS,
        time_limit_s=86_400.0,
    ),
    JobSpec(
        name="consolidate",
        queue="lifecycle",
        run=consolidate.consolidate,
        description="Fold memories that say the same in other words.",
        validate=consolidate.validate,
        params=consolidate.PARAMS,
        time_limit_s=86_400.0,
    ),
    JobSpec(
        name="reinforce",
        queue="lifecycle",
        run=reinforce.reinforce,
        description="Fold the log of recalls into the memories.",
        recorded=False,
    ),
    JobSpec(
        name="summarise",
        queue="summaries",
        run=summarise.summarise,
        description="Write the summaries of turns, days and all days that are missing or stale.",
        validate=partitions_and_dry_run,
        params=derive.PARAMS,
        time_limit_s=86_400.0,
    ),
    JobSpec(
        name="portrait",
        queue="summaries",
        run=portrait.portrait,
        description="Write the portraits of users that are missing or stale.",
        validate=partitions_and_dry_run,
        params=derive.PARAMS,
        time_limit_s=86_400.0,
    ),
)

JOBS: Final[Mapping[str, JobSpec]] = MappingProxyType({spec.name: spec for spec in _ALL})
"""Every job there is."""


def spec_of(name: str, among: Mapping[str, JobSpec] = JOBS) -> JobSpec:
    """The job of this name. Raises InvalidInput, which lists the names."""
    if name not in among:
        raise InvalidInput.of("name", f"must be one of {', '.join(among)}")
    return among[name]
