"""Task runs to memories (V-4)."""

from typing import Any

import pytest

from vimbank.errors import InvalidInput
from vimbank.ingestion.tasks import TaskRun, TaskStep, drafts_of_task

STEPS = (
    TaskStep("I look first.", tool="search", arguments={"query": "杯子", "limit": 2}, observation="on the desk"),
    TaskStep("Nothing to do but wait."),
    TaskStep(action="take the mug"),
    TaskStep(action="put it down", tool="place", observation="done"),
)


def run(**given: Any) -> TaskRun:
    return TaskRun(
        "t", "ana", **{"instruction": "put a mug on the shelf", "steps": STEPS, "outcome": "success", **given}
    )


def test_the_run_shows_instruction_plan_actions_and_outcome() -> None:
    whole = drafts_of_task(run(plan="find, take, put", metadata={"room": "kitchen"}), "r1")[0]
    assert whole.text == (
        "Task: put a mug on the shelf\n"
        "Plan: find, take, put\n"
        "Actions:\n"
        '1. search(query="杯子", limit=2)\n'
        "3. take the mug\n"
        "4. put it down: place\n"
        "Outcome: success"
    )
    assert (whole.id, whole.kind, whole.bank, whole.source.parent_id) == ("r1", "task", "task", None)
    assert whole.metadata == {"room": "kitchen", "tools": ["search", "place"], "outcome": "success", "steps": 4}


def test_each_step_is_a_memory_that_names_its_run_its_place_and_the_outcome() -> None:
    steps = drafts_of_task(run(session_id="s", agent_id="a"), "r1")[1:]
    assert steps[0].text == 'Thought: I look first.\nAction: search(query="杯子", limit=2)\nObservation: on the desk'
    assert steps[1].text == "Thought: Nothing to do but wait."
    assert [step.id for step in steps] == [f"r1:step:000{number}" for number in range(4)]
    assert [(step.source.parent_id, step.source.position) for step in steps] == [("r1", number) for number in range(4)]
    assert {(step.kind, step.title, step.session_id, step.agent_id) for step in steps} == {
        ("step", "put a mug on the shelf", "s", "a")
    }
    assert steps[3].metadata == {"tool": "place", "action": "put it down", "outcome": "success"}


def test_a_run_without_steps_is_one_memory() -> None:
    (only,) = drafts_of_task(TaskRun("t", "ana", "rest"), "r1")
    assert (only.text, only.metadata) == ("Task: rest\nOutcome: unknown", {"outcome": "unknown", "steps": 0})


def test_the_outcome_cannot_be_forged_by_metadata() -> None:
    found = drafts_of_task(run(outcome="failure", metadata={"outcome": "success"}), "r1")
    assert {each.metadata["outcome"] for each in found} == {"failure"}


def test_a_long_instruction_is_cut_in_titles_only() -> None:
    whole, step = drafts_of_task(run(instruction="move " * 300, steps=STEPS[:1]), "r1")
    assert step.title is not None
    assert (len(step.title), step.title[-1], "move " * 300 in whole.text) == (200, "…", True)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"instruction": " "}, "instruction"),
        ({"outcome": "won"}, "outcome"),
        ({"steps": (STEPS[0], TaskStep(thought=" "))}, "steps.1"),
        ({"steps": (TaskStep(tool="t", arguments={"x": float("nan")}),)}, "steps"),
        ({"steps": (TaskStep(tool="t", arguments={"x": object()}),)}, "steps"),
    ],
)
def test_bad_runs_are_refused_by_the_name_of_the_field(given: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        drafts_of_task(run(**given), "r1")
    assert [error.field for error in caught.value.errors] == [field]
