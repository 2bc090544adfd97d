"""Jobs that a test holds in its hand: one that goes on until it is let go, one that fails, one that cannot now."""

import threading
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from vimbank.errors import BackendUnavailable, InvalidInput, ModelError
from vimbank.jobs.context import JobContext
from vimbank.jobs.params import only
from vimbank.jobs.registry import JOBS, JobSpec

__all__ = ["GATES", "SPECS", "new_gate", "until"]

GATES: dict[str, threading.Event] = {}
"""What a ``held`` job of this process waits for, by its parameter ``gate``."""


def new_gate() -> str:
    """The name of a gate that is shut."""
    name = uuid.uuid4().hex
    GATES[name] = threading.Event()
    return name


def until(condition: Callable[[], bool], *, timeout_s: float = 10.0) -> None:
    """Wait until it holds; fail after ``timeout_s``."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.01)


def _gate(params: Mapping[str, Any]) -> Mapping[str, Any]:
    only(params, "gate")
    if not isinstance(params.get("gate"), str):
        raise InvalidInput.of("params.gate", "must name a gate")
    return params


def _held(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    gate = GATES.setdefault(params["gate"], threading.Event())
    steps = 0
    while not gate.wait(0.01):
        steps += 1
        context.report(steps, None, "steps")
        context.check()
    context.report(steps + 1, steps + 1, "steps")
    return {"steps": steps}


def _failing(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    del context, params
    raise ModelError("it broke")


def _refused(context: JobContext, params: Mapping[str, Any]) -> Mapping[str, Any]:
    del context, params
    raise BackendUnavailable("engine", "refused")


SPECS: Mapping[str, JobSpec] = {
    **JOBS,
    "held": JobSpec(
        name="held",
        queue="lifecycle",
        run=_held,
        description="Go on until the gate opens.",
        validate=_gate,
        params={"gate": "which one"},
    ),
    "failing": JobSpec(name="failing", queue="lifecycle", run=_failing, description="Fail."),
    "refused": JobSpec(name="refused", queue="lifecycle", run=_refused, description="Find an engine down."),
}
"""The real jobs, and those."""
