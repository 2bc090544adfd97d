"""The Celery application, made from the settings."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from celery import Celery, signals

from vimbank.errors import ConfigError
from vimbank.jobs.registry import JOBS, JobSpec
from vimbank.observability.logs import set_up_logging
from vimbank.ports import Clock
from vimbank.queues.celery import AGREED, task_name, transport_options
from vimbank.settings import Settings
from vimbank.wiring import utc_now
from workers.process import WorkerProcess
from workers.schedule import beat_schedule
from workers.tasks import KILL_AFTER_S, add_tasks

__all__ = ["configuration", "create_app"]

_TIMEOUT_S: Final = 5.0
"""Patience of workers and beat with Redis; nobody waits for them."""
_HEALTH_CHECK_S: Final = 10


def create_app(settings: Settings, specs: Mapping[str, JobSpec] = JOBS, *, clock: Clock = utc_now) -> Any:
    """The application, with its tasks and logs. Raises ConfigError as ``configuration`` does."""
    app = Celery("vimbank", fixups=[])
    app.conf.update(configuration(settings, specs))
    process = WorkerProcess(settings, specs, clock=clock)
    process.connect()
    add_tasks(app, process, specs)

    def set_up(**_given: object) -> None:
        set_up_logging(settings.log.level, settings.log.format)
        logging.getLogger("celery").setLevel(settings.log.level)

    signals.setup_logging.connect(set_up, weak=False)
    signals.worker_init.connect(_keep_to_itself, weak=False)
    return app


def _keep_to_itself(sender: Any, **_given: object) -> None:
    """Workers agree through the store's leases: gossip and greetings would only make a reconnection longer."""
    sender.options.update(without_gossip=True, without_mingle=True)


def configuration(settings: Settings, specs: Mapping[str, JobSpec] = JOBS) -> dict[str, Any]:
    """Celery's settings. Raises ConfigError where VIMBank's do not name Celery as the runner, or no Redis."""
    if settings.redis.url is None:
        raise ConfigError("VIMBANK_REDIS__URL names no Redis, which workers take their jobs from")
    if settings.jobs.runner != "celery":
        raise ConfigError("VIMBANK_JOBS__RUNNER must be celery where workers run")
    longest_s = max(spec.time_limit_s for spec in specs.values()) + 2 * KILL_AFTER_S
    return {
        **AGREED,
        "broker_url": settings.redis.url.get_secret_value(),
        "broker_transport": "workers.transport:Transport",
        "broker_transport_options": {
            **transport_options(_TIMEOUT_S),
            "health_check_interval": _HEALTH_CHECK_S,
            # Redis must not deliver a job again that still runs. Should it, the lease in the store decides; and a job
            # whose worker died is sent again by ``requeue`` as soon as its lease ran out, long before this.
            "visibility_timeout": longest_s,
        },
        "broker_connection_timeout": _TIMEOUT_S,
        "broker_connection_retry": True,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "broker_channel_error_retry": True,
        "task_routes": {task_name(spec.name): {"queue": spec.queue} for spec in specs.values()},
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,
        "worker_prefetch_multiplier": 1,
        # A job goes on when Redis goes away: what it does is in the store, and a second delivery is harmless.
        "worker_cancel_long_running_tasks_on_connection_loss": False,
        "worker_hijack_root_logger": False,
        "worker_redirect_stdouts": False,
        "worker_send_task_events": True,
        "task_send_sent_event": False,
        "beat_schedule": beat_schedule(settings),
        "beat_scheduler": "workers.beat:PeriodScheduler",
    }
