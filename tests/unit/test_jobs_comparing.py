"""The part of the job `conflicts` in which a chat model reads what the rules do not; it says what it is told to."""

import json
from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import combinations
from typing import Any

import pytest

from tests.conftest import SettableClock
from vimbank.chat.scripted import Asked, Line, ScriptedChat
from vimbank.domain.comparing import TEXT
from vimbank.domain.endings import Ended, Reason
from vimbank.domain.models import RUN_KIND, Label, Memory, MemoryDraft, MemoryPatch, MemoryState, Query, StateChange
from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError
from vimbank.jobs.conflicts import conflicts, validate
from vimbank.jobs.context import JobContext, Surroundings
from vimbank.jobs.pulse import JobCancelled
from vimbank.llm.compare import ChatComparer
from vimbank.service import MemoryService

UPDATE, CONTRADICTION, SAME, UNRELATED = (
    {"reason": f"it is {name}", "relation": name} for name in ("update", "contradiction", "same", "unrelated")
)
BUS = "the bus takes Ana to the office on weekdays"
BIKE = "the bike takes Ana to the office on weekdays"
TRAM = "the tram takes Ana to the office on weekdays"


class Pulse:
    """A job that ``check`` may stop."""

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self.check = check

    def report(self, done: int, total: int | None = None, message: str = "") -> None:
        pass


def run(
    service: MemoryService,
    clock: SettableClock,
    *lines: Line,
    chat: ScriptedChat | None = None,
    run_tokens: int = 10**6,
    check: Callable[[], None] = lambda: None,
    **given: Any,
) -> dict[str, Any]:
    """What the model did in one run; with no line it must not be asked."""
    chat = ScriptedChat(lines) if chat is None else chat
    around = Surroundings(
        service,
        None,  # type: ignore[arg-type]
        clock,
        None,  # type: ignore[arg-type]
        (),
        7.0,
        comparer=lambda asked: ChatComparer(chat, run_tokens=run_tokens, check=asked),
    )
    report = conflicts(JobContext(around, Pulse(check)), validate(given))  # type: ignore[arg-type]
    return dict(report["by_model"] or {})


def say(service: MemoryService, text: str, **fields: Any) -> str:
    return service.add(
        MemoryDraft(**{"tenant": "default", "user_id": "ana", "bank": "dialog", "text": text} | fields)
    ).id


def one(service: MemoryService, name: str) -> Memory:
    return service.get("default", name)


def sent(asked: Asked) -> tuple[str, str]:
    """The texts of a request, older first."""
    content = json.loads(asked.messages[-1].content)
    return content["older"]["text"], content["newer"]["text"]


@pytest.fixture
def pair(service: MemoryService, clock: SettableClock) -> tuple[str, str]:
    """How Ana went to the office, and how she does a day later; no rule reads either."""
    bus = say(service, BUS)
    clock.advance(days=1)
    bike = say(service, BIKE)
    return bus, bike


Pair = tuple[str, str]


@pytest.mark.parametrize("answer", [UPDATE, CONTRADICTION])
def test_the_older_is_named_stale_and_stays(
    service: MemoryService, clock: SettableClock, pair: Pair, answer: Mapping[str, str]
) -> None:
    """Searchable, below the newer one, labelled; nothing but ``ended`` has changed (D9)."""
    bus, bike = pair
    report = run(service, clock, answer)
    assert (report["model"], report["asked"], report["ended"], report["failed"]) == ("scripted", 1, 1, 0)
    assert report["relations"] == {**dict.fromkeys(("update", "contradiction", "same", "unrelated"), 0)} | {
        answer["relation"]: 1
    }
    assert report["requests"] == 1
    assert report["prompt_tokens"] > report["completion_tokens"] > 0
    old = one(service, bus)
    assert old.state is MemoryState.ACTIVE
    assert old.ended == (Ended(*TEXT, None, bike, clock.now, Reason.CHANGED),)
    [told] = report["pairs"]
    assert (told["older"], told["newer"], told["reason"], told["ended"]) == (bus, bike, answer["reason"], True)
    query = Query(tenant="default", user_id="ana", text=BUS, reinforce=False, labels=True)
    results = service.search(query).results
    assert [each.memory.id for each in results] == [bike, bus]
    assert results[1].label is Label.CONFLICTING
    assert results[1].explanation is None or results[1].explanation.factors["currency"] < 1


@pytest.mark.parametrize("answer", [SAME, UNRELATED])
def test_nothing_ends_where_both_hold(
    service: MemoryService, clock: SettableClock, pair: Pair, answer: Mapping[str, str]
) -> None:
    before = service.store.state().revision
    report = run(service, clock, answer)
    assert (report["asked"], report["ended"], report["pairs"]) == (1, 0, [])
    assert service.store.state().revision == before
    assert one(service, pair[0]).ended == ()


def test_a_pair_is_asked_about_once(service: MemoryService, clock: SettableClock, pair: Pair) -> None:
    assert run(service, clock, UNRELATED)["compared"] == 1
    before = service.store.state().revision
    again = run(service, clock)
    assert (again["asked"], again["requests"], again["failed"], again["compared"]) == (0, 0, 0, 0)
    assert service.store.state().revision == before
    clock.advance(days=1)
    tram = say(service, TRAM)
    chat = ScriptedChat([UPDATE])
    assert run(service, clock, chat=chat)["asked"] == 2
    assert {sent(each) for each in chat.asked} == {(BUS, TRAM), (BIKE, TRAM)}
    assert [[each.new_id for each in one(service, name).ended] for name in (*pair, tram)] == [[tram], [tram], []]


def test_a_recall_asks_nothing_again_and_a_new_text_does(
    service: MemoryService, clock: SettableClock, pair: Pair
) -> None:
    run(service, clock, UNRELATED)
    service.update("default", pair[0], MemoryPatch(importance=0.9))
    assert run(service, clock)["asked"] == 0
    service.update("default", pair[1], MemoryPatch(text=TRAM))
    chat = ScriptedChat([SAME])
    assert run(service, clock, chat=chat)["asked"] == 1
    assert sent(chat.asked[0]) == (BUS, TRAM)
    service.update("default", pair[0], MemoryPatch(text=BUS + " and back"))
    chat = ScriptedChat([SAME])
    assert run(service, clock, chat=chat)["asked"] == 1
    assert sent(chat.asked[0]) == (BUS + " and back", TRAM)


def test_reread_asks_again(service: MemoryService, clock: SettableClock, pair: Pair) -> None:
    run(service, clock, UNRELATED)
    assert run(service, clock, UNRELATED, reread=True)["asked"] == 1


def test_a_dry_run_tells_and_writes_nothing(service: MemoryService, clock: SettableClock, pair: Pair) -> None:
    before = service.store.state().revision
    for _ in range(2):
        report = run(service, clock, UPDATE, dry_run=True)
        assert (report["asked"], report["ended"]) == (1, 1)
        [told] = report["pairs"]
        assert (told["older"], told["newer"], told["relation"], told["ended"]) == (*pair, "update", True)
    [told] = run(service, clock, SAME, dry_run=True)["pairs"]
    assert (told["relation"], told["ended"]) == ("same", False)
    assert service.store.state().revision == before
    assert one(service, pair[0]).ended == ()
    assert run(service, clock, UPDATE)["ended"] == 1


def test_no_model_is_asked_where_none_is_set_or_it_is_not_wanted(
    service: MemoryService, clock: SettableClock, pair: Pair
) -> None:
    assert run(service, clock, rules_only=True) == {}
    around = Surroundings(service, None, clock, None, (), 7.0)  # type: ignore[arg-type]
    assert conflicts(JobContext(around, Pulse()), validate({}))["by_model"] is None  # type: ignore[arg-type]
    assert one(service, pair[0]).ended == ()


# --- what is taken back ---------------------------------------------------------------------------------------------


def test_what_somebody_took_back_stays_so(service: MemoryService, clock: SettableClock, pair: Pair) -> None:
    run(service, clock, UPDATE)
    service.restore("default", pair[0])
    assert one(service, pair[0]).ended == ()
    assert run(service, clock, UPDATE, reread=True)["ended"] == 0
    assert one(service, pair[0]).ended == ()


def test_a_new_text_of_the_older_one_has_not_ended(service: MemoryService, clock: SettableClock, pair: Pair) -> None:
    run(service, clock, UPDATE)
    service.update("default", pair[0], MemoryPatch(text=TRAM))
    assert one(service, pair[0]).ended == ()


# --- what is asked --------------------------------------------------------------------------------------------------


def test_the_dates_decide_which_is_older(service: MemoryService, clock: SettableClock) -> None:
    bike = say(service, BIKE)
    bus = say(service, BUS, event_at=clock.now - timedelta(days=30))
    chat = ScriptedChat([UPDATE])
    run(service, clock, chat=chat)
    assert sent(chat.asked[0]) == (BUS, BIKE)
    content = json.loads(chat.asked[0].messages[-1].content)
    assert (content["older"]["date"], content["newer"]["date"]) == ("2026-01-01T12:00:00Z", "2026-01-31T12:00:00Z")
    assert [each.new_id for each in one(service, bus).ended] == [bike]


def test_of_two_equally_old_ones_none_is_stale(service: MemoryService, clock: SettableClock) -> None:
    bus, bike = say(service, BUS), say(service, BIKE)
    report = run(service, clock, CONTRADICTION)
    assert (report["relations"]["contradiction"], report["ended"]) == (1, 0)
    [told] = report["pairs"]
    assert ({told["older"], told["newer"]}, told["dated"], told["ended"]) == ({bus, bike}, False, False)
    assert (one(service, bus).ended, one(service, bike).ended) == ((), ())


def test_nobody_elses_memories_are_shown(service: MemoryService, clock: SettableClock) -> None:
    say(service, BUS + " for ben", user_id="ben")
    say(service, BUS + " of others", tenant="other")
    say(service, BUS + " in knowledge", bank="knowledge")
    say(service, BUS + " by another agent", agent_id="scout")
    clock.advance(days=1)
    say(service, BIKE)
    say(service, BIKE + " as the scout saw", agent_id="scout")
    chat = ScriptedChat([UNRELATED])
    assert run(service, clock, chat=chat)["asked"] == 1
    assert [sent(each) for each in chat.asked] == [(BUS + " by another agent", BIKE + " as the scout saw")]


def test_only_of_the_tenant_that_was_asked_for(service: MemoryService, clock: SettableClock, pair: Pair) -> None:
    assert run(service, clock, tenant="other")["asked"] == 0
    assert run(service, clock, SAME, tenant="default")["asked"] == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"kind": "summary"},
        {"kind": "portrait"},
        {"kind": RUN_KIND},
        {"speaker": "assistant"},
        {"valid_from": "later"},
        {"text": "a recipe for plum cake with cinnamon"},
        {"text": "Does the bus take Ana to the office on weekdays?"},
    ],
)
def test_what_is_no_testimony_of_the_same_thing_is_not_asked_about(
    service: MemoryService, clock: SettableClock, fields: dict[str, Any]
) -> None:
    """Derived, a part, an assistant's word, of the future, not near, a question alone."""
    say(service, BUS)
    clock.advance(days=1)
    if "valid_from" in fields:
        fields = {"valid_from": clock.now + timedelta(days=9)}
    say(service, **{"text": BIKE} | fields)
    assert run(service, clock)["asked"] == 0


def test_what_begins_later_is_asked_about_then(service: MemoryService, clock: SettableClock) -> None:
    bus = say(service, BUS)
    clock.advance(days=1)
    bike = say(service, BIKE, valid_from=clock.now + timedelta(days=9))
    assert run(service, clock)["asked"] == 0
    clock.advance(days=10)
    assert run(service, clock, UPDATE)["ended"] == 1
    assert [each.new_id for each in one(service, bus).ended] == [bike]


def test_states_out_of_play_are_not_shown(service: MemoryService, clock: SettableClock, pair: Pair) -> None:
    service.archive("default", pair[0])
    assert run(service, clock)["asked"] == 0


def test_a_turn_of_the_user_alone_is_shown(service: MemoryService, clock: SettableClock) -> None:
    say(service, f"{BUS}\nHow pleasant, the bus has a fine view of the office.", kind="round")
    clock.advance(days=1)
    say(service, f"{BIKE}\nHow healthy, the bike takes Ana to the office.", kind="round")
    chat = ScriptedChat([UNRELATED])
    run(service, clock, chat=chat)
    assert [sent(each) for each in chat.asked] == [(BUS, BIKE)]


def test_what_the_rules_know_is_not_asked_about(service: MemoryService, clock: SettableClock) -> None:
    """Decided by them; told again; two people."""
    say(service, "I live in Oslo. Phone me in the evening after work please.")
    say(service, "Ben lives in Bonn.")
    clock.advance(days=1)
    say(service, "I live in Rome.")
    say(service, "I live in Rome, now.")
    assert run(service, clock)["asked"] == 0


def test_the_nearest_five_are_asked_about_nearest_first(service: MemoryService, clock: SettableClock) -> None:
    texts = [BUS + extra for extra in ("", " now", " then", " again", " too", " on days of frost", " with her friends")]
    for text in texts:
        say(service, text)
    run(service, clock, UNRELATED)
    clock.advance(days=1)
    say(service, BIKE)
    rows = service.encoder.encode_documents([BIKE, *texts])
    cosines = dict(zip(texts, (rows[1:] @ rows[0]).tolist(), strict=True))
    assert min(cosines.values()) > 0.6
    chat = ScriptedChat([UNRELATED])
    assert run(service, clock, chat=chat)["asked"] == 5
    shown = [round(cosines[sent(each)[0]], 6) for each in chat.asked]
    assert shown == sorted((round(each, 6) for each in cosines.values()), reverse=True)[:5]


def test_several_values_that_may_both_hold_are_left_to_the_model(service: MemoryService, clock: SettableClock) -> None:
    """The rules read both as a whole and end nothing; the model's word names the text, and supersedes nothing."""
    rex = say(service, "My dog is called Rex.")
    clock.advance(days=1)
    miso = say(service, "My dog is called Miso.")
    assert one(service, rex).ended == ()
    assert run(service, clock, UPDATE)["ended"] == 1
    old = one(service, rex)
    assert (old.state, old.superseded_by) == (MemoryState.ACTIVE, None)
    assert old.ended == (Ended(*TEXT, None, miso, clock.now, Reason.CHANGED),)


def test_a_statement_is_named_where_the_rules_read_a_part(service: MemoryService, clock: SettableClock) -> None:
    rex = say(service, "My dog is called Rex. the weather was splendid by the fjord")
    clock.advance(days=1)
    miso = say(service, "My dog is called Miso. the weather was splendid by the fjord")
    run(service, clock, UPDATE)
    [ended] = one(service, rex).ended
    assert (ended.subject, ended.attribute, ended.value, ended.new_id) == ("@user's dog", "name", "rex", miso)


def test_what_has_ended_as_a_whole_is_not_asked_about_with_what_came_later(
    service: MemoryService, clock: SettableClock, pair: Pair
) -> None:
    run(service, clock, UPDATE)
    clock.advance(days=1)
    say(service, TRAM)
    chat = ScriptedChat([UPDATE])
    assert run(service, clock, chat=chat)["asked"] == 1
    assert sent(chat.asked[0]) == (BIKE, TRAM)
    assert [each.new_id for each in one(service, pair[0]).ended] == [pair[1]]


# --- what goes wrong ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "bad",
    [
        "no JSON at all",
        {"relation": "update"},
        {"relation": "replaces", "reason": "so"},
        {"relation": ["update"], "reason": "so"},
        {"relation": "update", "reason": None},
        BackendRejected("llm", "no"),
    ],
)
def test_bad_output_changes_nothing_and_is_counted(
    service: MemoryService, clock: SettableClock, pair: Pair, bad: Line
) -> None:
    """Case 89; the next run asks again."""
    before = service.store.state().revision
    report = run(service, clock, bad)
    assert (report["asked"], report["failed"], report["ended"], report["compared"]) == (1, 1, 0, 0)
    assert (report["failures"][0]["older"], report["failures"][0]["newer"]) == pair
    assert service.store.state().revision == before
    assert run(service, clock, UPDATE)["ended"] == 1


def test_five_failures_in_a_row_end_the_run(service: MemoryService, clock: SettableClock) -> None:
    for place in range(5):
        say(service, f"{BUS} at {place}")
        clock.advance(days=1)
    report = run(service, clock, "nonsense")
    assert (report["asked"], report["failed"], report["stopped"]) == (5, 5, "5 failures in a row")


def test_a_model_that_is_away_fails_the_run(service: MemoryService, clock: SettableClock, pair: Pair) -> None:
    with pytest.raises(BackendUnavailable):
        run(service, clock, BackendUnavailable("llm", "away"))
    assert run(service, clock, UPDATE)["ended"] == 1


def test_a_run_ends_when_its_tokens_are_spent_and_the_next_goes_on(
    service: MemoryService, clock: SettableClock, pair: Pair
) -> None:
    clock.advance(days=1)
    say(service, TRAM)
    first = run(service, clock, UNRELATED, run_tokens=1)
    assert (first["asked"], first["compared"]) == (1, 1)
    assert "tokens are spent" in first["stopped"]
    chat = ScriptedChat([UNRELATED])
    second = run(service, clock, chat=chat)
    assert (second["asked"], second["stopped"]) == (2, None)
    assert {sent(each) for each in chat.asked} == {(BUS, TRAM), (BIKE, TRAM)}


def test_a_cancelled_run_keeps_what_it_has(service: MemoryService, clock: SettableClock, pair: Pair) -> None:
    """As one that was killed: what was answered is written, memory by memory, and the next run goes on."""
    clock.advance(days=1)
    say(service, TRAM)
    chat = ScriptedChat([UPDATE])

    def check() -> None:
        if len(chat.asked) == 1:
            raise JobCancelled("cancelled")

    with pytest.raises(JobCancelled):
        run(service, clock, chat=chat, check=check)
    assert [each.new_id for each in one(service, pair[0]).ended] == [pair[1]]
    chat = ScriptedChat([UNRELATED])
    run(service, clock, chat=chat)
    assert [sent(each) for each in chat.asked] == [(BIKE, TRAM)]


def test_a_memory_that_was_written_meanwhile_is_left_alone(
    service: MemoryService, clock: SettableClock, pair: Pair
) -> None:
    def meanwhile(_asked: Asked) -> str:
        service.update("default", pair[0], MemoryPatch(text="the office has moved to the harbour"))
        return json.dumps(UPDATE)

    report = run(service, clock, meanwhile)
    assert (report["ended"], report["skipped"]) == (0, 1)
    assert one(service, pair[0]).ended == ()


def test_a_memory_suppressed_meanwhile_ends_nothing(service: MemoryService, clock: SettableClock, pair: Pair) -> None:
    def meanwhile(_asked: Asked) -> str:
        change = StateChange(id=pair[1], to=MemoryState.SUPPRESSED, sources=(MemoryState.ACTIVE,))
        service.change_states("default", [change], actor="ana")
        return json.dumps(UPDATE)

    assert run(service, clock, meanwhile)["skipped"] == 1
    assert one(service, pair[0]).ended == ()


def test_what_was_deleted_meanwhile_is_not_shown(service: MemoryService, clock: SettableClock, pair: Pair) -> None:
    """What is near was read before the first question."""
    clock.advance(days=1)
    say(service, TRAM)

    def meanwhile(_asked: Asked) -> str:
        service.delete("default", pair[0])
        return json.dumps(UNRELATED)

    chat = ScriptedChat([meanwhile, UNRELATED])
    run(service, clock, chat=chat)
    assert [sent(each) for each in chat.asked] == [(BUS, BIKE), (BIKE, TRAM)]


def test_many_are_compared_in_passes(
    service: MemoryService, clock: SettableClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each pair once, whatever is held at a time."""
    monkeypatch.setattr("vimbank.jobs.comparing._CHUNK", 2)
    monkeypatch.setattr("vimbank.jobs.comparing._READ", 2)
    for place in range(2):  # a batch in which nothing may be shown
        say(service, f"{BUS} I believe, {place}", speaker="assistant")
    texts = [f"{BUS} at {place}" for place in range(6)]
    for text in texts:
        say(service, text)
        clock.advance(hours=1)
    chat = ScriptedChat([UNRELATED])
    report = run(service, clock, chat=chat)
    assert sorted(sent(each) for each in chat.asked) == sorted(combinations(texts, 2))
    assert (report["asked"], report["compared"]) == (15, 5)
    assert run(service, clock)["asked"] == 0


def test_long_texts_fit_into_the_models_window(service: MemoryService, clock: SettableClock) -> None:
    say(service, BUS + ' "so" she says' * 20)
    clock.advance(days=1)
    say(service, BIKE + ' "so" she says' * 20)
    chat = ScriptedChat([UNRELATED], window=1_100)
    assert run(service, clock, chat=chat)["asked"] == 1
    [asked] = chat.asked
    assert sum(len(each.content) for each in asked.messages) / 4 + (asked.max_tokens or 0) < 1_100
    assert sent(asked)[0].startswith(BUS)


def test_a_window_that_is_too_small_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match="are needed to compare"):
        ChatComparer(ScriptedChat(window=300), run_tokens=100)
