"""Every metric by name, and what tells its value; in the text format of Prometheus.

What jobs do is told from their records, and not counted where it happens: a job runs in whichever process takes it up,
and that is another one than the server that is asked. What a server does for itself is told by itself.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.registry import Collector

from vimbank.domain.checks import COMPONENTS, OWN, IndexChecks
from vimbank.domain.jobs import Job

__all__ = ["CONTENT_TYPE", "METRICS", "CheckCollector", "IndexCheckCollector", "Metrics"]

CONTENT_TYPE: Final[str] = CONTENT_TYPE_LATEST

_PROBLEMS: Final = "vimbank_check_problems"
_REMAINING: Final = "vimbank_check_remaining"
_REPAIRED: Final = "vimbank_check_repaired_total"
_LAST: Final = "vimbank_check_last_timestamp_seconds"
_INDEX_PROBLEMS: Final = "vimbank_index_check_problems"
_INDEX_REMAINING: Final = "vimbank_index_check_remaining"
_INDEX_REPAIRED: Final = "vimbank_index_check_repaired_total"
_INDEX_LAST: Final = "vimbank_index_check_last_timestamp_seconds"
_OF_PROCESS: Final = ("process", "component")

METRICS: Final[Mapping[str, str]] = {
    _PROBLEMS: "Problems that the last check of everything found, by component.",
    _REMAINING: "Those of them that it left, by component.",
    _REPAIRED: "Problems that checks have repaired, by component.",
    _LAST: "When the last check of everything ended, epoch seconds.",
    _INDEX_PROBLEMS: "Problems that the last check of this server's own indexes found, by component.",
    _INDEX_REMAINING: "Those of them that it left, by component.",
    _INDEX_REPAIRED: "Problems of its own indexes that were repaired since this server started, by component.",
    _INDEX_LAST: "When the last check of this server's own indexes ended, epoch seconds.",
}
"""What each metric tells. One that nobody can tell of yet, such as before the first check, is left out."""


class CheckCollector(Collector):
    """The last checks, from their jobs' records.

    Args:    checks: the newest jobs ``check`` that succeeded, the newest first.
    """

    def __init__(self, checks: Callable[[], Sequence[Job]]) -> None:
        self._checks = checks

    def collect(self) -> Iterable[Metric]:
        """See ``Collector.collect``."""
        done = [job for job in self._checks() if job.result is not None and "components" in job.result]
        totals = CounterMetricFamily(_REPAIRED, METRICS[_REPAIRED], labels=["component"])
        total = done[0].result.get("repaired_total", {}) if done and done[0].result is not None else {}
        for component in COMPONENTS:
            totals.add_metric([component], total.get(component, 0))
        yield totals
        # A check of one tenant says nothing of the others.
        last = next((job for job in done if "tenant" not in job.params), None)
        if last is None or last.result is None:
            return
        yield from _of_last(last.result["components"])
        ended = last.finished_at or datetime.fromtimestamp(0, UTC)
        yield GaugeMetricFamily(_LAST, METRICS[_LAST], value=ended.timestamp())

    def describe(self) -> Iterable[Metric]:
        """Nothing is asked for the names at the start."""
        return ()


class IndexCheckCollector(Collector):
    """The checks of the indexes that this process alone holds.

    Args:    checks: what they have come to; None before the first.  process: the value of the label ``process``, which
             tells the servers of one store apart where one address stands for all of them.
    """

    def __init__(self, checks: Callable[[], IndexChecks | None], *, process: str) -> None:
        self._checks = checks
        self._process = process

    def collect(self) -> Iterable[Metric]:
        """See ``Collector.collect``."""
        done = self._checks()
        totals = CounterMetricFamily(_INDEX_REPAIRED, METRICS[_INDEX_REPAIRED], labels=_OF_PROCESS)
        for component in OWN:
            totals.add_metric([self._process, component], 0 if done is None else done.repaired[component])
        yield totals
        if done is None:
            return
        for name, counts in ((_INDEX_PROBLEMS, done.found), (_INDEX_REMAINING, done.remaining)):
            gauge = GaugeMetricFamily(name, METRICS[name], labels=_OF_PROCESS)
            for component in OWN:
                gauge.add_metric([self._process, component], counts[component])
            yield gauge
        last = GaugeMetricFamily(_INDEX_LAST, METRICS[_INDEX_LAST], labels=["process"])
        last.add_metric([self._process], done.at.timestamp())
        yield last

    def describe(self) -> Iterable[Metric]:
        """Nothing is asked for the names at the start."""
        return ()


class Metrics:
    """What one server tells of itself."""

    def __init__(self, *collectors: Collector) -> None:
        self._registry = CollectorRegistry()
        for collector in collectors:
            self._registry.register(collector)

    def exposition(self) -> bytes:
        """All metrics as they are now, as ``CONTENT_TYPE``. Raises what the collectors' sources raise."""
        return generate_latest(self._registry)


def _of_last(components: Mapping[str, Any]) -> Iterable[Metric]:
    found = GaugeMetricFamily(_PROBLEMS, METRICS[_PROBLEMS], labels=["component"])
    left = GaugeMetricFamily(_REMAINING, METRICS[_REMAINING], labels=["component"])
    for component in COMPONENTS:
        counts = components.get(component, {"found": 0, "repaired": 0})
        found.add_metric([component], counts["found"])
        left.add_metric([component], counts["found"] - counts["repaired"])
    yield found
    yield left
