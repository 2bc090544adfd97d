"""What memories are made of: documents, turns of a session, task runs."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from vimbank.api.schemas.base import Body, example
from vimbank.api.schemas.fields import Metadata, Time, UserId
from vimbank.api.schemas.memories import ADDED_EXAMPLE, BatchOut
from vimbank.ingestion.dialog import Turn
from vimbank.ingestion.tasks import TaskRun, TaskStep

__all__ = ["DocumentIn", "TaskIn", "TaskOut", "TurnsIn"]


class DocumentIn(Body):
    """A document to cut into segments; as JSON with `content`, or as a multipart form with `file`."""

    model_config = ConfigDict(
        json_schema_extra=example(
            {
                "user_id": "shared",
                "title": "House rules",
                "content": "# House rules\n\nQuiet hours start at ten in the evening.",
                "media_type": "text/markdown",
                "metadata": {"year": 2026},
            }
        )
    )

    user_id: UserId
    title: str
    content: str
    media_type: str | None = Field(None, description="Of `content`: text/plain, text/markdown or text/html.")
    bank: str = "knowledge"
    id: str | None = None
    idempotency_key: str | None = None
    metadata: Metadata = Field(default_factory=dict)
    created_at: Time | None = None


class TurnIn(Body):
    """What one side said once."""

    role: str = Field(description="`user` and `assistant` make a round; others stand alone.")
    content: str
    speaker: str | None = None
    event_at: Time | None = None
    event_id: str | None = None
    metadata: Metadata = Field(default_factory=dict)

    def turn(self) -> Turn:
        """The turn that the service takes."""
        return Turn(**{name: getattr(self, name) for name in TurnIn.model_fields})


class TurnsIn(Body):
    """Consecutive turns of a session."""

    model_config = ConfigDict(
        json_schema_extra=example(
            {
                "user_id": "anna",
                "turns": [
                    {"role": "user", "content": "Can I eat satay?", "event_at": "2026-01-31T09:30:00Z"},
                    {"role": "assistant", "content": "Better not, its sauce has peanuts."},
                ],
            }
        )
    )

    user_id: UserId
    turns: Annotated[list[TurnIn], Field(min_length=1)]
    agent_id: str | None = None
    bank: str = "dialog"


class StepIn(Body):
    """One step of an agent; at least one of thought, action, tool and observation."""

    thought: str | None = None
    action: str | None = None
    tool: str | None = None
    arguments: dict[str, Any] = Field(default_factory=dict)
    observation: str | None = None

    def step(self) -> TaskStep:
        """The step that the service takes."""
        return TaskStep(**{name: getattr(self, name) for name in StepIn.model_fields})


class TaskIn(Body):
    """One attempt of an agent at a task."""

    model_config = ConfigDict(
        json_schema_extra=example(
            {
                "user_id": "anna",
                "instruction": "put a clean mug on the desk",
                "plan": "find a mug, wash it, put it down",
                "steps": [
                    {"thought": "mugs are in the kitchen", "action": "go to cabinet 1", "observation": "a dirty mug"},
                    {"tool": "wash", "arguments": {"object": "mug 1"}, "observation": "it is clean"},
                ],
                "outcome": "success",
            }
        )
    )

    user_id: UserId
    instruction: str
    steps: list[StepIn] = Field(default_factory=list)
    outcome: Literal["success", "failure", "unknown"] = "unknown"
    plan: str | None = None
    id: str | None = None
    session_id: str | None = None
    agent_id: str | None = None
    metadata: Metadata = Field(default_factory=dict)
    event_at: Time | None = None
    bank: str = "task"

    def run(self, tenant: str) -> TaskRun:
        """The run that the service takes."""
        given = {name: getattr(self, name) for name in TaskIn.model_fields if name != "steps"}
        return TaskRun(tenant=tenant, steps=[step.step() for step in self.steps], **given)


class TaskOut(BatchOut):
    """The run's result, then its steps', in order; `id` is the run's."""

    model_config = ConfigDict(
        json_schema_extra=example({"id": ADDED_EXAMPLE["id"], "results": [ADDED_EXAMPLE], "failed": 0})
    )

    id: str
