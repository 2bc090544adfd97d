"""A task run becomes memories: the run itself, and each step of its decision process (V-4)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, Literal, get_args

from vimbank.domain.models import RUN_KIND, MemoryDraft, Source
from vimbank.errors import FieldError, InvalidInput

__all__ = ["STEP_KIND", "drafts_of_task", "Outcome", "TaskRun", "TaskStep"]

MAX_TITLE_CHARS: Final = 200

STEP_KIND: Final = "step"
"""Kind of the steps of a task run."""

Outcome = Literal["success", "failure", "unknown"]


@dataclass(frozen=True, slots=True)
class TaskStep:
    """One step of an agent: what it thought, what it did, and what it saw; at least one of the three.

    ``action`` is the action in words; ``tool`` and ``arguments`` are a tool call. Either may stand alone.
    """

    thought: str | None = None
    action: str | None = None
    tool: str | None = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    observation: str | None = None


@dataclass(frozen=True, slots=True)
class TaskRun:
    """One attempt of an agent at a task, from the instruction to the outcome.

    ``outcome`` weighs in every later search (V-24): failures rank lower, they are not hidden.
    """

    tenant: str
    user_id: str
    instruction: str
    steps: Sequence[TaskStep] = ()
    outcome: Outcome = "unknown"
    plan: str | None = None
    id: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    event_at: datetime | None = None
    bank: str = "task"


def drafts_of_task(run: TaskRun, run_id: str) -> list[MemoryDraft]:
    """The run first, then its steps in order.

    The run has kind ``task`` and the id ``run_id``; its text is instruction, plan, sequence of actions and outcome.
    A step has kind ``step``, the id ``<run_id>:step:<i>``, the instruction as title (cut to 200
    characters), ``source.parent_id`` = run_id
    and ``source.position`` = i, from 0. Metadata: the run's own; ``outcome`` on all; ``tools`` and ``steps`` (how
    many) on the run; ``tool`` and ``action`` on the steps that have them. Runs are events: equal texts do not fold.

    Raises:  InvalidInput: blank instruction, unknown outcome, a step with nothing in it (``steps.<i>``).
    Source:  VIMBank V-4.
    """
    _check(run)
    whole = MemoryDraft(
        tenant=run.tenant,
        user_id=run.user_id,
        bank=run.bank,
        agent_id=run.agent_id,
        session_id=run.session_id,
        id=run_id,
        kind=RUN_KIND,
        text=_run_text(run),
        metadata=_run_metadata(run),
        event_at=run.event_at,
        deduplicate=False,
    )
    steps = [
        replace(
            whole,
            id=f"{run_id}:step:{position:04d}",
            kind=STEP_KIND,
            title=_title(run.instruction),
            text=_step_text(step),
            metadata=_step_metadata(run, step),
            source=Source(parent_id=run_id, position=position),
        )
        for position, step in enumerate(run.steps)
    ]
    return [whole, *steps]


def _check(run: TaskRun) -> None:
    errors = []
    if not run.instruction.strip():
        errors.append(FieldError("instruction", "must not be blank"))
    if run.outcome not in get_args(Outcome):
        errors.append(FieldError("outcome", f"must be one of {', '.join(get_args(Outcome))}"))
    errors += [
        FieldError(f"steps.{index}", "needs a thought, an action, a tool or an observation")
        for index, step in enumerate(run.steps)
        if not any(_given(part) for part in (step.thought, step.action, step.tool, step.observation))
    ]
    if errors:
        raise InvalidInput(errors)


def _title(instruction: str) -> str:
    """The instruction on one line, cut to a title's length."""
    line = " ".join(instruction.split())
    return line if len(line) <= MAX_TITLE_CHARS else line[: MAX_TITLE_CHARS - 1] + "…"


def _given(text: str | None) -> bool:
    return text is not None and bool(text.strip())


def _run_metadata(run: TaskRun) -> dict[str, Any]:
    tools = list(dict.fromkeys(step.tool for step in run.steps if step.tool))
    named = {"tools": tools} if tools else {}
    return {**run.metadata, **named, "outcome": run.outcome, "steps": len(run.steps)}


def _step_metadata(run: TaskRun, step: TaskStep) -> dict[str, Any]:
    named = {key: value for key, value in (("tool", step.tool), ("action", step.action)) if value}
    return {**run.metadata, **named, "outcome": run.outcome}


def _run_text(run: TaskRun) -> str:
    """Instruction, plan, numbered actions and outcome, one a line; a step that only thought or saw is left out."""
    parts = [f"Task: {run.instruction}"]
    if _given(run.plan):
        parts.append(f"Plan: {run.plan}")
    actions = [f"{number}. {done}" for number, step in enumerate(run.steps, 1) if (done := _done(step))]
    if actions:
        parts += ["Actions:", *actions]
    parts.append(f"Outcome: {run.outcome}")
    return "\n".join(parts)


def _step_text(step: TaskStep) -> str:
    parts = (("Thought", step.thought), ("Action", _done(step)), ("Observation", step.observation))
    return "\n".join(f"{name}: {text}" for name, text in parts if _given(text))


def _done(step: TaskStep) -> str:
    """What a step did: the action in words, the tool call, or both: ``look it up: search(query="Paris")``."""
    call = step.tool or ""
    if step.arguments:
        call += f"({', '.join(f'{name}={_shown(value)}' for name, value in step.arguments.items())})"
    return ": ".join(part for part in (step.action or "", call) if part.strip())


def _shown(value: Any) -> str:
    """A tool argument as JSON: strings in quotes, other scripts readable."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as exc:
        raise InvalidInput.of("steps", f"tool arguments must be JSON values, got {type(value).__name__}") from exc
