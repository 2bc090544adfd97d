"""The jobs that write summaries and portraits, over a real service: what comes to be, stays, goes, and when not."""

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.conftest import SettableClock
from tests.runner_kit import open_jobs
from vimbank.chat.scripted import Asked, Line, ScriptedChat
from vimbank.domain.models import ListQuery, Memory, MemoryDraft, MemoryPatch, Query, Scope
from vimbank.domain.summaries import FAN_IN
from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError, InvalidInput, ModelError
from vimbank.ingestion.dialog import Turn
from vimbank.jobs.context import JobContext, Surroundings
from vimbank.jobs.params import partitions_and_dry_run
from vimbank.jobs.portrait import portrait
from vimbank.jobs.pulse import JobCancelled
from vimbank.jobs.registry import JOBS
from vimbank.jobs.summarise import summarise
from vimbank.llm.summarise import ChatWriter
from vimbank.llm.writer import Passage
from vimbank.service import MemoryService

FACTS = (
    "I moved to Lisbon on 3 March with my sister Ines.",
    "I like the cello and I always practise on Sundays.",
    "My cat Mochi hides from everyone.",
    "The landlord of the flat in Lisbon is called Duarte.",
    "I am allergic to peanuts, I never eat them.",
    "The ferry to Halvik takes forty minutes.",
)


class StillPulse:
    """A job that nobody stops, unless told."""

    def __init__(self) -> None:
        self.stop_after = 10**9

    def report(self, done: int, total: int | None = None, message: str = "") -> None:
        pass

    def check(self) -> None:
        self.stop_after -= 1
        if self.stop_after < 0:
            raise JobCancelled("cancelled")


class Around:
    """Runs the jobs over one service, with a model or without."""

    def __init__(self, service: MemoryService, clock: SettableClock) -> None:
        self.service = service
        self.clock = clock
        self.chat: ScriptedChat | None = None
        self.pulse = StillPulse()
        self.run_tokens = 1_000_000

    def say(self, *texts: str, day: int = 1, session: str = "s", role: str = "user") -> list[str]:
        turns = [
            Turn(role, text, event_at=datetime(2026, 1, day, 9, place, tzinfo=UTC)) for place, text in enumerate(texts)
        ]
        added = self.service.add_turns(tenant="default", user_id="ana", session_id=session, turns=turns)
        return [each.id for each in added]  # type: ignore[union-attr]

    def run(self, job: Callable[[JobContext, Mapping[str, Any]], Mapping[str, Any]], **params: Any) -> dict[str, Any]:
        def writer(check: Callable[[], None]) -> ChatWriter:
            assert self.chat is not None
            return ChatWriter(self.chat, self.service.encoder, reply_tokens=64, run_tokens=self.run_tokens, check=check)

        around = Surroundings(
            self.service,
            None,  # type: ignore[arg-type]
            self.clock,
            None,  # type: ignore[arg-type]
            (),
            7.0,
            writer=None if self.chat is None else writer,
        )
        return dict(job(JobContext(around, self.pulse), partitions_and_dry_run(params)))  # type: ignore[arg-type]

    def derived(self, kind: str = "summary", level: str | None = None) -> list[Memory]:
        found = self.service.list(ListQuery(tenant="default", user_id="ana", kind=kind, limit=1_000)).items
        return [each for each in found if level in (None, each.metadata["level"])]

    def stale(self, kind: str = "summary") -> set[str]:
        return {each.metadata["level"] for each in self.derived(kind) if each.metadata["stale"]}


@pytest.fixture
def around(service: MemoryService, clock: SettableClock) -> Around:
    return Around(service, clock)


def model_of(*lines: Line) -> ScriptedChat:
    return ScriptedChat(lines)


def numbered() -> ScriptedChat:
    """Another summary at each request."""
    count = iter(range(1, 10_000))
    words = ("alder", "birch", "cedar", "damson", "elm", "fir", "gorse", "hazel", "iris", "juniper")

    def line(asked: Asked) -> str:
        number = next(count)
        return json.dumps({"overlap": "none", "summary": f"{words[number % 10]} {words[number // 10 % 10]} {number}."})

    return model_of(line)


def test_without_a_model_summaries_are_extractive_and_say_so(around: Around) -> None:
    ids = around.say(*FACTS, day=1)
    around.say("On 5 January I bought a boat.", day=5, session="t")
    report = around.run(summarise)
    assert (report["method"], report["model"], report["written"], report["failed"]) == ("extractive", None, 4, 0)
    days = around.derived(level="day")
    assert [each.metadata["period"] for each in days] == ["2026-01-01", "2026-01-05"]
    assert days[0].metadata["sources"] == ids
    assert {each.metadata["method"] for each in around.derived()} == {"extractive"}
    said = set(FACTS)
    assert set(days[0].text.splitlines()) <= said
    (whole,) = around.derived(level="global")
    assert whole.metadata["sources"] == [each.id for each in days]
    assert "2026-01-05: On 5 January I bought a boat." in whole.text.splitlines()
    (group,) = around.derived(level="group")
    assert (group.session_id, group.metadata["sources"]) == ("s", ids[:5])
    assert not around.stale()
    assert all(
        each.kind == "summary" and each.token_count <= around.service.encoder.window for each in around.derived()
    )


def test_cases_120_and_121_a_second_run_changes_and_doubles_nothing(around: Around) -> None:
    around.say(*FACTS)
    around.run(summarise)
    revision = around.service.store.state().revision
    report = around.run(summarise)
    assert (report["written"], report["refreshed"], report["removed"], report["unchanged"]) == (0, 0, 0, 3)
    around.chat = numbered()
    around.run(summarise)
    before = {each.id: each.text for each in around.derived()}
    asked = len(around.chat.asked)
    around.run(summarise)
    assert {each.id: each.text for each in around.derived()} == before
    assert len(around.chat.asked) == asked
    assert len(before) == 3
    assert around.service.store.state().revision > revision


def test_two_runs_at_once_write_one_summary(around: Around, clock: SettableClock) -> None:
    """The second finishes while the first waits for its model."""
    around.say(*FACTS[:2])
    other = Around(around.service, clock)
    other.chat = numbered()

    def line(asked: Asked) -> str:
        if len(around.chat.asked) == 1:  # type: ignore[union-attr]
            other.run(summarise)
        return '{"summary": "From the first run."}'

    around.chat = model_of(line)
    report = around.run(summarise)
    assert report["conflicts"] >= 1
    assert sorted(each.metadata["level"] for each in around.derived()) == ["day", "global"]
    assert not around.stale()


def test_case_74_a_changed_source_makes_stale_at_once_and_the_next_run_refreshes(around: Around) -> None:
    ids = around.say(*FACTS)
    around.run(summarise)
    before = {each.id for each in around.derived()}
    around.service.update("default", ids[0], MemoryPatch(text="I moved to Porto on 3 March with my sister Ines."))
    assert around.stale() == {"group", "day", "global"}
    hits = around.service.search(Query(tenant="default", user_id="ana", text="moved to Lisbon", top_k=50)).results
    assert {each.memory.metadata["stale"] for each in hits if each.memory.kind == "summary"} == {True}
    report = around.run(summarise)
    assert (report["refreshed"], report["written"]) == (3, 0)
    assert not around.stale()
    assert {each.id for each in around.derived()} == before
    assert not any("moved to Lisbon" in each.text for each in around.derived())


def test_case_93_no_trace_of_a_deleted_fact_after_the_refresh(around: Around) -> None:
    ids = around.say(*FACTS)
    around.run(summarise)
    assert any("peanuts" in each.text for each in around.derived())
    around.service.delete("default", ids[4])
    assert around.stale() == {"group", "day", "global"}
    around.run(summarise)
    assert not any("peanuts" in each.text for each in around.derived())
    assert not around.stale()


def test_what_tells_of_nothing_any_more_goes(around: Around) -> None:
    around.say(*FACTS, session="s")
    around.run(summarise)
    around.run(portrait)
    around.service.delete_all(Scope("default", "ana", "dialog", session_id="s"))
    assert around.stale() == {"day", "global"}  # the session's own went with it
    assert around.run(summarise)["removed"] == 2
    assert around.run(portrait)["removed"] == 2
    assert around.derived() == around.derived("portrait") == []


def test_recalls_and_feedback_make_nothing_stale(around: Around) -> None:
    around.say(*FACTS)
    around.run(summarise)
    around.service.search(Query(tenant="default", user_id="ana", text="Lisbon", top_k=50))
    around.service.fold_recalls()
    assert not around.stale()
    assert around.run(summarise)["unchanged"] == 3


def test_an_update_of_a_summary_stores_no_mark(around: Around) -> None:
    around.say(*FACTS)
    around.run(summarise)
    (day,) = around.derived(level="day")
    around.service.update("default", day.id, MemoryPatch(importance=0.5))
    (stored,) = around.service.store.get("default", [day.id])
    assert "stale" not in stored.metadata
    assert around.service.get("default", day.id).metadata["stale"] is False


def test_new_turns_of_a_day_come_in_and_the_rest_stays(around: Around) -> None:
    around.say(*FACTS[:3])
    around.run(summarise)
    around.say("I bought a kayak on 1 January.", session="u")
    assert not around.stale()
    report = around.run(summarise)
    assert (report["refreshed"], report["written"]) == (2, 0)
    assert "kayak" in around.derived(level="day")[0].text


@pytest.mark.parametrize(
    "bad",
    ["", "null", '{"summary": "x', '{"summary": ""}', '{"summary": null}', '{"summary": "null"}', '{"text": "x"}', "[]",
     ModelError("it broke"), BackendRejected("chat endpoint", "too long")],
    ids=str,
)  # fmt: skip
def test_case_89_bad_output_changes_nothing_and_is_counted(around: Around, bad: Any) -> None:
    ids = around.say(*FACTS)
    around.chat = numbered()
    around.run(summarise)
    around.service.update("default", ids[0], MemoryPatch(text="I moved to Porto."))
    before = {each.id: each for each in around.service.list(ListQuery(tenant="default", limit=1_000)).items}
    around.chat = model_of(bad)
    with pytest.raises(ModelError, match=r"2 of 2 failed, nothing was changed"):
        around.run(summarise)
    after = {each.id: each for each in around.service.list(ListQuery(tenant="default", limit=1_000)).items}
    assert after == before
    assert around.stale() == {"group", "day", "global"}


def test_case_89_one_bad_reply_among_good_ones_is_counted_and_the_others_stand(around: Around) -> None:
    around.say(FACTS[0], day=1)
    around.say(FACTS[1], day=2)
    around.chat = model_of("null", {"summary": "Ana plays the cello."}, {"summary": "All of it."})
    report = around.run(summarise)
    assert (report["failed"], report["written"]) == (1, 2)
    assert report["failures"][0]["error"].startswith("the chat model answered something else")
    (whole,) = around.derived(level="global")
    assert whole.metadata["sources"] == [each.id for each in around.derived(level="day")]


def test_a_model_that_always_fails_is_not_asked_a_hundred_times(around: Around) -> None:
    for day in range(1, 20):
        around.say(FACTS[0], day=day, session=f"s{day}")
    around.chat = model_of("null")
    with pytest.raises(ModelError, match="5 of 5 failed"):
        around.run(summarise)
    assert len(around.chat.asked) == 5


def test_an_engine_that_is_down_puts_the_job_back(around: Around) -> None:
    around.say(*FACTS)
    around.chat = model_of(BackendUnavailable("chat endpoint", "down"))
    with pytest.raises(BackendUnavailable):
        around.run(summarise)
    assert around.derived() == []


def test_a_cancelled_job_keeps_what_it_has_and_goes_on_later(around: Around) -> None:
    for day in range(1, 6):
        around.say(FACTS[day], day=day, session=f"s{day}")
    around.chat = numbered()
    around.pulse.stop_after = 9
    with pytest.raises(JobCancelled):
        around.run(summarise)
    some = len(around.derived())
    assert 0 < some < 6
    around.pulse.stop_after = 10**9
    report = around.run(summarise)
    assert (report["written"], report["unchanged"]) == (6 - some, some)


def test_the_budget_of_tokens_ends_a_run_with_a_report(around: Around) -> None:
    for day in range(1, 6):
        around.say(FACTS[day], day=day, session=f"s{day}")
    around.chat = numbered()
    around.run_tokens = 300
    report = around.run(summarise)
    assert report["stopped"].endswith("300 are allowed")
    assert 0 < report["written"] < 6
    assert report["prompt_tokens"] + report["completion_tokens"] >= 300
    assert report["requests"] == len(around.chat.asked)


def test_a_dry_run_counts_and_writes_nothing(around: Around) -> None:
    around.say(*FACTS)
    revision = around.service.store.state().revision
    around.chat = numbered()
    report = around.run(summarise, dry_run=True)
    assert (report["dry_run"], report["written"]) == (True, 2)  # the global one is known when the days are there
    assert around.chat.asked == []
    assert around.service.store.state().revision == revision


def test_only_the_user_and_bank_that_are_asked_for(around: Around) -> None:
    around.say(*FACTS[:2])
    for user, bank in (("ben", "dialog"), ("ana", "knowledge")):
        around.service.add(MemoryDraft(tenant="default", user_id=user, bank=bank, text="The pier is closed."))
    assert around.run(summarise, user="ben")["partitions"] == 1
    assert around.derived() == []
    around.run(summarise, bank="knowledge", tenant="default")
    assert {each.bank for each in around.derived()} == {"knowledge"}
    assert around.run(summarise, tenant="other")["partitions"] == 0


def test_a_model_replaces_extractive_ones(around: Around) -> None:
    around.say(*FACTS[:2])
    around.run(summarise)
    around.chat = numbered()
    report = around.run(summarise)
    assert (report["refreshed"], report["written"]) == (2, 0)
    assert {(each.metadata["method"], each.metadata["model"]) for each in around.derived()} == {("llm", "scripted")}
    around.chat = None
    assert around.run(summarise)["unchanged"] == 2


def test_similar_groups_are_merged_and_others_stand_side_by_side(around: Around) -> None:
    """I-29, I-30: the second group speaks of the boat as the first did, the third of something else."""
    boat, other = "Ana repairs the old blue boat.", "Ben bakes rye bread on Mondays."
    first = around.say(*["a"] * 5)
    around.chat = model_of({"summary": boat}, {"summary": "day"})
    around.run(summarise)
    second = around.say(*["b"] * 5)
    merged = {"overlap": "the boat", "summary": f"{boat} It floats."}
    around.chat = model_of({"summary": boat}, merged, {"summary": "day"})
    around.run(summarise)
    (only,) = around.derived(level="group")
    assert (only.text, only.metadata["sources"]) == (merged["summary"], [*first, *second])
    third = around.say(*["c"] * 5)
    around.chat = model_of({"summary": other}, {"summary": "day"})
    around.run(summarise)
    assert {each.text: each.metadata["sources"] for each in around.derived(level="group")} == {
        merged["summary"]: [*first, *second],
        other: third,
    }
    around.service.delete("default", first[0])
    around.chat = model_of({"summary": boat}, {"summary": boat}, merged, {"summary": "day"})
    around.run(summarise)
    assert next(each.metadata["sources"] for each in around.derived(level="group")) == [*first[1:], *second]
    assert not around.stale()


def test_the_best_group_is_chosen_by_cosine_and_never_a_stale_one(around: Around) -> None:
    """I-32."""
    boat, bread = "Ana repairs the old blue boat.", "Ben bakes rye bread on Mondays."
    first = around.say(*["a"] * 5, session="s")
    around.say(*["b"] * 5, session="t")
    around.chat = model_of({"summary": boat}, {"summary": bread}, {"summary": "day"})
    around.run(summarise)

    def best(question: str) -> str | None:
        found = around.service.best_summary("default", "ana", question)
        return None if found is None else found.text

    assert best("who repairs the boat?") == boat
    assert best("who bakes bread?") == bread
    around.service.delete("default", first[0])
    assert best("who repairs the boat?") == bread
    assert around.service.best_summary("default", "ben", "boat") is None


def test_many_days_are_condensed_by_months(around: Around) -> None:
    start = datetime(2025, 1, 1, 9, tzinfo=UTC)
    drafts = [
        MemoryDraft(tenant="default", user_id="ana", bank="dialog", text=f"walk number {day}",
                    event_at=start + timedelta(days=day))
        for day in range(FAN_IN + 1)
    ]  # fmt: skip
    around.service.add_many(drafts)
    around.run(summarise)
    assert [each.metadata["period"] for each in around.derived(level="month")] == ["2025-01", "2025-02", "2025-03"]
    (whole,) = around.derived(level="global")
    assert whole.metadata["sources"] == [each.id for each in around.derived(level="month")]
    assert not around.stale()
    victim = around.service.list(ListQuery(tenant="default", user_id="ana", kind="note")).items[0]
    around.service.delete("default", victim.id)
    assert around.stale() == {"group", "day", "month", "global"}
    assert sum(each.metadata["stale"] for each in around.derived()) == 4


def test_summaries_are_found_by_a_search(around: Around) -> None:
    around.say(*FACTS)
    around.run(summarise)
    hits = around.service.search(
        Query(tenant="default", user_id="ana", text="peanuts allergic", top_k=50, reinforce=False)
    ).results
    assert "summary" in {each.memory.kind for each in hits}


def test_the_jobs_are_registered_and_run_by_name(service: MemoryService, clock: SettableClock) -> None:
    Around(service, clock).say(*FACTS)
    jobs = open_jobs(service, clock)
    for name in ("summarise", "portrait"):
        assert JOBS[name].queue == "summaries"
        assert name in {schedule.name for schedule in jobs.schedules}
        job = jobs.start(name, {"user": "ana"})
        assert jobs.run(job.id).state == "succeeded"
        written = jobs.get(job.id).result
        assert written is not None
        assert written["written"] > 0
    jobs.close()


@pytest.mark.parametrize("params", [{"users": "ana"}, {"dry_run": "yes"}, {"user": ""}, {"bank": 3}], ids=str)
def test_parameters_are_checked(params: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        partitions_and_dry_run(params)


def test_what_a_model_is_asked(around: Around) -> None:
    """I-25, I-26: the prompt names what must be kept; the turns come with their time, as material."""
    around.say("I moved to Lisbon.")
    around.chat = model_of({"summary": "x"})
    around.run(summarise)
    system, user = around.chat.asked[0].messages
    for word in ("time", "place", "people", "events", "repeatedly"):
        assert word in system.content
    assert "{words}" not in system.content
    assert user.content == "[2026-01-01T09:00:00Z] I moved to Lisbon."
    assert around.chat.asked[0].schema is not None
    assert around.chat.asked[0].max_tokens == 64


def writer_of(service: MemoryService, chat: ScriptedChat, **given: int) -> ChatWriter:
    return ChatWriter(chat, service.encoder, **({"reply_tokens": 64, "run_tokens": 10**6} | given))


def test_what_does_not_fit_the_window_is_summarised_in_parts(service: MemoryService) -> None:
    chat = ScriptedChat([{"summary": "part of the day " * 8}], window=700)
    passages = [Passage(f"{'word ' * 90}{place}", datetime(2026, 1, 1, tzinfo=UTC)) for place in range(12)]
    assert writer_of(service, chat).write("day_summary", passages)
    assert len(chat.asked) > 3
    for asked in chat.asked:
        assert sum(len(message.content.split()) for message in asked.messages) + 64 <= 700
    assert "several" not in chat.asked[0].messages[0].content
    assert "summaries in order of time" in chat.asked[-1].messages[0].content


def test_one_endless_passage_is_cut_and_ends(service: MemoryService) -> None:
    chat = ScriptedChat([{"summary": "x" * 2_000}], window=700)
    text = writer_of(service, chat).write("day_portrait", [Passage("字" * 20_000, datetime(2026, 1, 1, tzinfo=UTC))])
    assert text
    sent = "".join(asked.messages[1].content for asked in chat.asked)
    assert sent.count("字") == 20_000


def test_a_long_reply_is_cut_to_what_one_memory_holds(service: MemoryService) -> None:
    chat = ScriptedChat([{"summary": "One more sentence here. " * 200}])
    text = writer_of(service, chat).write("day_summary", [Passage("x", datetime(2026, 1, 1, tzinfo=UTC))])
    assert text is not None
    assert text.endswith("here.")
    assert 200 < len(service.encoder.tokenize(text)) <= service.encoder.window


def test_a_window_that_is_too_small_is_told_at_the_start(service: MemoryService) -> None:
    with pytest.raises(ConfigError, match="too small"):
        writer_of(service, ScriptedChat(window=256))
