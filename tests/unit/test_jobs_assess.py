"""The job that judges what is stored: by rules, and by a chat model that says what it is told to."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from tests.conftest import SettableClock
from vimbank.chat.scripted import Asked, Line, ScriptedChat
from vimbank.domain.models import AddResult, Event, ListQuery, Memory, MemoryDraft, MemoryPatch, Sample
from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError, InvalidInput, ModelError
from vimbank.ingestion.dialog import Turn
from vimbank.jobs.assess import assess
from vimbank.jobs.context import JobContext, Surroundings
from vimbank.jobs.params import partitions_and_dry_run
from vimbank.llm.assess import ChatJudge
from vimbank.ports import Judged
from vimbank.service import MemoryService

BREAD = ("How do I bake bread?", "Use flour, water and salt.")
NORWAY = ("What is the capital of Norway?", "Oslo.")
LINKED = {"reason": "linked", "sample": "positive"}
UNRELATED = {"reason": "unrelated_history", "sample": "negative"}
TELLS = {"reason": "tells_something", "sample": "positive"}


class Pulse:
    """A job that nobody stops."""

    def report(self, done: int, total: int | None = None, message: str = "") -> None:
        pass

    def check(self) -> None:
        pass


def run(
    service: MemoryService,
    clock: SettableClock,
    chat: ScriptedChat | None = None,
    *,
    run_tokens: int = 10**6,
    **given: Any,
) -> Mapping[str, Any]:
    judge = None if chat is None else lambda check: ChatJudge(chat, run_tokens=run_tokens, check=check)
    around = Surroundings(service, None, clock, None, (), 7.0, judge=judge)  # type: ignore[arg-type]
    return assess(JobContext(around, Pulse()), partitions_and_dry_run(given))  # type: ignore[arg-type]


def say(service: MemoryService, *rounds: tuple[str, str]) -> list[str]:
    turns = [Turn(role, text) for each in rounds for role, text in zip(("user", "assistant"), each, strict=True)]
    added = service.add_turns(tenant="default", user_id="ana", session_id="s", turns=turns)
    return [each.id for each in added if isinstance(each, AddResult)]


def add(service: MemoryService, text: str, **fields: Any) -> str:
    draft = MemoryDraft(**{"tenant": "default", "user_id": "ana", "bank": "knowledge", "text": text} | fields)
    return service.add(draft).id


def one(service: MemoryService, name: str) -> Memory:
    return service.get("default", name)


def unjudge(service: MemoryService, *names: str) -> None:
    """As a store of an earlier schema has them."""
    for memory in service.store.get("default", names):
        assert service.store.put_samples([Judged(memory, None, ())], actor="test", now=memory.created_at) == 1  # type: ignore[arg-type]


def samples(service: MemoryService, *names: str) -> list[tuple[str | None, ...]]:
    return [(each.sample, *each.sample_reasons) for each in service.store.get("default", names)]


# --- rules --------------------------------------------------------------------------------------------------------


def test_what_nobody_judged_is_judged_as_it_would_have_been(service: MemoryService, clock: SettableClock) -> None:
    names = [*say(service, BREAD, ("How long must the bread bake?", "Long."), NORWAY), add(service, "Where is it?")]
    before = samples(service, *names)
    unjudge(service, *names)
    report = run(service, clock)
    assert samples(service, *names) == before
    assert [each[0] for each in before] == ["positive", "positive", "negative", "negative"]
    assert (report["method"], report["due"], report["judged"], report["negative"]) == ("rules", 4, 4, 2)
    assert run(service, clock)["due"] == 0


def test_a_long_round_and_its_history(service: MemoryService, clock: SettableClock) -> None:
    """Its segments bear the judgement of the whole."""
    say(service, BREAD)
    [whole] = say(service, ("What is the capital of Norway?", "Oslo lies on a fjord. " * 200))
    parts = [each.id for each in service.list(ListQuery(tenant="default", parent_id=whole)).items]
    unjudge(service, *parts)
    run(service, clock)
    assert set(samples(service, *parts)) == {("negative", "unrelated_history")}
    assert samples(service, whole) == [(None,)]


def test_only_whose_memories_were_asked_for(service: MemoryService, clock: SettableClock) -> None:
    ana, ben = add(service, "Oslo is a town."), add(service, "Oslo is a town.", user_id="ben")
    note = add(service, "Oslo is a town.", bank="dialog")
    unjudge(service, ana, ben, note)
    assert run(service, clock, user="ana", bank="knowledge", dry_run=True)["due"] == 1
    assert samples(service, ana) == [(None,)]
    assert run(service, clock, user="ana", bank="knowledge")["judged"] == 1
    assert [each[0] for each in samples(service, ana, ben, note)] == ["positive", None, None]


def test_text_and_time_of_update_stay(service: MemoryService, clock: SettableClock) -> None:
    name = add(service, "Oslo is a town.")
    unjudge(service, name)
    before = one(service, name)
    clock.advance(days=1)
    run(service, clock)
    after = one(service, name)
    assert (after.text, after.updated_at, after.content_hash) == (before.text, before.updated_at, before.content_hash)
    entry = service.history("default", name)[-1]
    assert (entry.event, entry.actor, dict(entry.changes)) == (Event.UPDATE, "assess", {"sample": (None, "positive")})


@pytest.mark.parametrize("params", [{"dry_run": "yes"}, {"kind": "note"}, {"user": ""}])
def test_bad_parameters_are_refused(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        partitions_and_dry_run(params)


# --- a chat model -------------------------------------------------------------------------------------------------


def test_the_model_is_asked_about_all_that_no_model_judged(service: MemoryService, clock: SettableClock) -> None:
    """V-6: the prompt teaches both samples; the round comes with what was said before it."""
    names = [*say(service, BREAD, NORWAY), add(service, "Oslo is a town.")]
    chat = ScriptedChat([LINKED, UNRELATED, TELLS])
    report = run(service, clock, chat)
    assert samples(service, *names) == [
        ("positive", "llm", "linked"),
        ("negative", "llm", "unrelated_history"),
        ("positive", "llm", "tells_something"),
    ]
    assert (report["method"], report["model"], report["judged"], report["requests"]) == ("llm", "scripted", 3, 3)
    first, second, third = chat.asked
    assert json.loads(first.messages[1].content) == {"history": [], "round": "\n".join(BREAD)}
    assert json.loads(second.messages[1].content) == {"history": ["\n".join(BREAD)], "round": "\n".join(NORWAY)}
    assert json.loads(third.messages[1].content) == {"item": "Oslo is a town."}
    assert "positive sample" in first.messages[0].content
    assert "negative sample" in first.messages[0].content
    assert run(service, clock, chat)["due"] == 0
    service.update("default", names[2], MemoryPatch(text="Oslo is a town on a fjord."))
    assert run(service, clock, chat)["due"] == 1


@pytest.mark.parametrize(
    "line",
    [
        "",
        "null",
        "{broken",
        "[]",
        {},
        {"sample": "positive"},
        {"reason": "linked", "sample": "negative"},
        {"reason": "because", "sample": "positive"},
        {"reason": ["linked"], "sample": "positive"},
        {"reason": "linked", "sample": None},
        ModelError("it broke"),
        BackendRejected("model", "no"),
    ],
)
def test_case_89_bad_output_changes_nothing_and_is_counted(
    service: MemoryService, clock: SettableClock, line: Line
) -> None:
    names = say(service, BREAD, NORWAY)
    before = [one(service, name) for name in names]
    with pytest.raises(ModelError, match="2 of 2 failed, nothing was changed"):
        run(service, clock, ScriptedChat([line]))
    assert [one(service, name) for name in names] == before
    report = run(service, clock, ScriptedChat([line, UNRELATED]))
    assert (report["judged"], report["failed"], report["failures"][0]["id"]) == (1, 1, names[0])
    assert one(service, names[0]) == before[0]
    assert one(service, names[1]).sample_reasons == ("llm", "unrelated_history")


def test_many_failures_in_a_row_end_the_run(service: MemoryService, clock: SettableClock) -> None:
    names = [add(service, f"Oslo is town number {place}.") for place in range(9)]
    lines: Iterable[Line] = [TELLS, *["null"] * 5, TELLS]
    report = run(service, clock, ScriptedChat(lines))
    assert (report["judged"], report["failed"], report["stopped"]) == (1, 5, "5 failures in a row")
    assert one(service, names[0]).sample_reasons == ("llm", "tells_something")


def test_a_run_ends_when_its_tokens_are_spent_and_the_next_goes_on(
    service: MemoryService, clock: SettableClock
) -> None:
    names = [add(service, f"Oslo is town number {place}.") for place in range(3)]
    report = run(service, clock, ScriptedChat([TELLS]), run_tokens=1)
    assert (report["judged"], report["requests"]) == (1, 1)
    assert "tokens are spent, 1 are allowed" in report["stopped"]
    assert run(service, clock, ScriptedChat([TELLS]))["judged"] == 2
    assert {each[1] for each in samples(service, *names)} == {"llm"}


def test_a_model_out_of_reach_fails_the_run_and_keeps_what_was_judged(
    service: MemoryService, clock: SettableClock
) -> None:
    """The job is tried again later; what was judged in earlier batches stays."""
    names = [add(service, f"Oslo is town number {place}.") for place in range(21)]
    lines: list[Line] = [*[TELLS] * 20, BackendUnavailable("model", "refused")]
    with pytest.raises(BackendUnavailable):
        run(service, clock, ScriptedChat(lines))
    assert [each[1] for each in samples(service, *names)] == ["llm"] * 20 + ["tells_something"]


def test_of_a_long_round_the_model_is_asked_once(service: MemoryService, clock: SettableClock) -> None:
    [whole] = say(service, ("What is the capital of Norway?", "Oslo lies on a fjord. " * 200))
    chat = ScriptedChat([LINKED])
    run(service, clock, chat)
    parts = service.list(ListQuery(tenant="default", parent_id=whole)).items
    assert len(parts) > 1
    assert {part.sample_reasons for part in parts} == {("llm", "linked")}
    assert len(chat.asked) == 1


def test_what_is_asked_fits_into_the_window() -> None:
    """The round counts first, then the newest of its history."""
    sizes: list[int] = []

    def line(asked: Asked) -> str:
        content = json.loads(asked.messages[1].content)
        sizes.append(len(content["history"]))
        assert "part 6" in content["history"][-1]
        return json.dumps(LINKED)

    judge = ChatJudge(ScriptedChat([line], window=700), run_tokens=10**6)
    history = [f"part {place} " + "word " * 40 for place in range(7)]
    assert judge.round("word " * 2_000, history) == (Sample.POSITIVE, ("llm", "linked"))
    assert sizes == [2]


def test_a_window_without_room_is_refused_at_the_start() -> None:
    with pytest.raises(ConfigError, match="too small"):
        ChatJudge(ScriptedChat(window=512), run_tokens=1)
