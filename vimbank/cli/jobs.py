"""jobs: start, list, show, watch, cancel, names."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any, Final

import click

from vimbank.cli.command import Call, command, group
from vimbank.cli.progress import progress
from vimbank.cli.render import render_record, table
from vimbank.domain.jobs import Job, JobState
from vimbank.domain.records import job_record, plain
from vimbank.errors import InvalidInput
from vimbank.jobs.kinds import kind_records
from vimbank.jobs.runner import Jobs
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.wiring import open_service
from vimbank.wiring.jobs import open_jobs

__all__ = ["jobs", "opened_jobs", "run_and_answer", "run_here"]

_LOOK_S: Final = 0.25
"""Between two looks whether the job that runs here has come back, seconds."""


@contextmanager
def _opened(settings: Settings) -> Iterator[Jobs]:
    with open_service(settings) as service, opened_jobs(settings, service) as opened:
        yield opened


@contextmanager
def opened_jobs(settings: Settings, service: MemoryService) -> Iterator[Jobs]:
    """The jobs of a service, closed in the end."""
    with closing(open_jobs(settings, service)) as opened:
        yield opened


@command("start", example="vimbank jobs start check --param tenant=acme", tenant=False)
@click.argument("name")
@click.option("--param", "params", multiple=True, metavar="KEY=VALUE", help="A parameter of the job; repeatable.")
@click.option("--key", help="Starting again with this key gives the same job.")
@click.option("--wait", is_flag=True, help="Where workers run the jobs: watch it until it ends.")
def start(call: Call, name: str, params: Sequence[str], key: str | None, wait: bool) -> None:
    """Start a job; `vimbank jobs names` tells which there are.

    Where no workers are set (VIMBANK_JOBS__RUNNER=embedded), it runs here, with a progress bar; interrupted, it is
    cancelled. A VALUE that is JSON counts as such, anything else as text. Exit code 1 where the job fails.
    """
    settings = call.settings()
    with _opened(settings) as opened:
        job = opened.start(name, _params(params), key=key)
        if settings.jobs.runner == "embedded":
            job = run_here(opened, job)
        elif wait:
            job = _watch(opened, job)
    _answer(call, job)


@command("list", example="vimbank jobs list --state running", tenant=False)
@click.option("--name", help="Only of this name.")
@click.option("--state", type=click.Choice([state.value for state in JobState]), help="Only these.")
@click.option("--limit", type=int, default=100, show_default=True, help="How many.")
def list_(call: Call, name: str | None, state: str | None, limit: int) -> None:
    """List jobs, newest first."""
    with _opened(call.settings()) as opened:
        found = opened.list(name=name, state=None if state is None else JobState(state), limit=limit)
    records = [plain(job_record(job)) for job in found]
    rows = [
        (each["id"], each["name"], each["state"], _progress(each["progress"]), each["created_at"]) for each in records
    ]
    shown = table(rows, heading=("id", "name", "state", "progress", "created")) if rows else "No jobs."
    call.answer({"items": records}, shown)


@command("show", example="vimbank jobs show 0f4b1c5e8d1e4b6f9a54c2c1a8f0d3b7", tenant=False)
@click.argument("id")
def show(call: Call, id: str) -> None:
    """Show one job: its state and progress, its result or what stopped it."""
    with _opened(call.settings()) as opened:
        record = plain(job_record(opened.get(id)))
    call.answer(record, render_record(record))


@command("watch", example="vimbank jobs watch 0f4b1c5e8d1e4b6f9a54c2c1a8f0d3b7", tenant=False)
@click.argument("id")
def watch(call: Call, id: str) -> None:
    """Follow a job until it ends, with a progress bar. Exit code 1 where it failed or was cancelled."""
    with _opened(call.settings()) as opened:
        job = _watch(opened, opened.get(id))
    _answer(call, job)


@command("cancel", example="vimbank jobs cancel 0f4b1c5e8d1e4b6f9a54c2c1a8f0d3b7", tenant=False)
@click.argument("id")
def cancel(call: Call, id: str) -> None:
    """Cancel a job: one that waits ends at once, a running one after its present step."""
    with _opened(call.settings()) as opened:
        job = opened.cancel(id)
    asked = " (it stops after its present step)" if job.cancel_requested and not job.state.ended else ""
    call.answer(job_record(job), f"{job.id} {job.state.value}{asked}")


@command("names", example="vimbank jobs names", tenant=False)
def names(call: Call) -> None:
    """List what can be started, with parameters, and how often it runs by itself."""
    with _opened(call.settings()) as opened:
        kinds = kind_records(opened)
    rows = [
        (
            each["name"],
            "-" if each["every_s"] is None else f"{each['every_s']:g} s",
            each["queue"],
            " ".join([each["description"], *(f"--param {name}=: {text}." for name, text in each["params"].items())]),
        )
        for each in kinds
    ]
    call.answer({"items": kinds}, table(rows, heading=("name", "every", "queue", "what it does")))


jobs: Final = group(
    "jobs",
    [start, list_, show, watch, cancel, names],
    summary="Start and follow jobs: checks, reindexing, snapshots and what else runs beside the requests.",
    example="vimbank jobs start check",
)


def _params(words: Sequence[str]) -> dict[str, Any]:
    """The parameters of ``KEY=VALUE`` words. Raises InvalidInput."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise InvalidInput.of("params", f"{word!r} is not KEY=VALUE")
        if name in found:
            raise InvalidInput.of(f"params.{name}", "is given more than once")
        found[name] = _value(text)
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def run_here(opened: Jobs, job: Job) -> Job:
    """Run the job in a thread of this process; the job as it ends, whoever got hold of it. Raises what it raises."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(opened.run, job.id)
        try:
            job = _watch(opened, job, until=running.done)
        except KeyboardInterrupt:
            opened.cancel(job.id)
            raise
        running.result()
    # A server on the same folder may have been quicker.
    return _watch(opened, job)


def run_and_answer(
    call: Call, name: str, params: Mapping[str, Any], rendered: Callable[[MemoryService, Mapping[str, Any]], str]
) -> None:
    """Run a job here and print its result; exit code 1 where it stopped before it took anything, as too much was due.

    Args:    params: those that are None or False are left out.  rendered: the result for people, with the service open.
    Raises:  ClickException: the job did not succeed.
    """
    given = {key: value for key, value in params.items() if value is not None and value is not False}  # 0 is a share
    settings = call.settings()
    with open_service(settings) as service:
        result = _result_of(settings, service, name, given)
        text = "" if call.json else rendered(service, result)
    call.answer(dict(result), text)
    if result["stopped"] and not result["dry_run"]:
        raise click.exceptions.Exit(1)


def _result_of(settings: Settings, service: MemoryService, name: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
    with opened_jobs(settings, service) as opened:
        job = run_here(opened, opened.start(name, params))
    if job.state is not JobState.SUCCEEDED or job.result is None:
        raise click.ClickException(f"{name} {job.state.value}{f': {job.error}' if job.error else ''}")
    return job.result


def _watch(opened: Jobs, job: Job, *, until: Callable[[], bool] = lambda: False) -> Job:
    """Draw the job's progress until it has ended, or ``until`` holds."""
    with progress(job.name, total=job.progress.total, unit="steps") as bar:
        while not job.state.ended and not until():
            for newest in opened.events(job.id, timeout_s=_LOOK_S):
                job = newest
                bar.reach(job.progress.done, job.progress.total)
                if until():
                    break
    return opened.get(job.id)


def _answer(call: Call, job: Job) -> None:
    """Print the job; exit code 1 where it failed or was cancelled."""
    record = plain(job_record(job))
    call.answer(record, render_record(record))
    if job.state in (JobState.FAILED, JobState.CANCELLED):
        click.echo(f"vimbank: {job.name} {job.state.value}{f': {job.error}' if job.error else ''}", err=True)
        raise click.exceptions.Exit(1)


def _progress(value: Mapping[str, Any]) -> str:
    of = "" if value["total"] is None else f"/{value['total']}"
    return f"{value['done']}{of} {value['message']}".strip()
