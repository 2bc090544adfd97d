"""What comes in is judged as it is written, and judged anew when its text changes (V-5 to V-8)."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from vimbank.domain.filters import parse
from vimbank.domain.models import (
    AddResult,
    ListQuery,
    Memory,
    MemoryDraft,
    MemoryPatch,
    Partition,
    Query,
    Sample,
    Source,
    Vector,
)
from vimbank.encoders.hashing import HashingEncoder
from vimbank.ingestion.assess import Assessor
from vimbank.ingestion.dialog import Turn, drafts_of_turns, parts_of_turns
from vimbank.ingestion.prepare import Limits, Preparer
from vimbank.ingestion.tasks import TaskRun, TaskStep
from vimbank.ports import PreparedDraft, Utterance
from vimbank.service import MemoryService

BREAD = ("How do I bake bread?", "Use flour, water and salt.")
NORWAY = ("What is the capital of Norway?", "Oslo.")
LONG = "The mill grinds rye on Mondays and wheat on all other days of the week. " * 40


def say(service: MemoryService, *rounds: tuple[str, ...], session_id: str = "s") -> list[Memory]:
    """The memories of these rounds, added in one call; what stands alone is a user's turn."""
    turns = [Turn(role, content) for each in rounds for role, content in zip(("user", "assistant"), each, strict=False)]
    added = service.add_turns(tenant="default", user_id="ana", session_id=session_id, turns=turns)
    return [service.get("default", each.id) for each in added if isinstance(each, AddResult)]


def add(service: MemoryService, text: str, **fields: Any) -> Memory:
    draft = MemoryDraft(**{"tenant": "default", "user_id": "ana", "bank": "knowledge", "text": text} | fields)
    return service.get("default", service.add(draft).id)


def judged(*memories: Memory) -> list[tuple[str | None, str]]:
    return [(each.sample, each.sample_reasons[0] if each.sample_reasons else "") for each in memories]


def test_rounds_of_one_call_are_judged_with_those_before_them(service: MemoryService) -> None:
    """V-7, V-8: the second is linked to the first, the third is a pseudo multi-round, the fourth refers back."""
    rounds = (BREAD, ("How long must the bread bake?", "Forty minutes."), NORWAY, ("And of Sweden?", "Stockholm."))
    assert judged(*say(service, *rounds)) == [
        ("positive", "first_round"),
        ("positive", "shares_words"),
        ("negative", "unrelated_history"),
        ("positive", "refers_back"),
    ]


def test_rounds_of_later_calls_are_judged_with_what_is_stored(service: MemoryService) -> None:
    say(service, BREAD)
    assert judged(*say(service, ("How long must the bread bake?", "Forty minutes."))) == [("positive", "shares_words")]
    assert judged(*say(service, NORWAY)) == [("negative", "unrelated_history")]
    assert judged(*say(service, NORWAY, session_id="another")) == [("positive", "first_round")]


def test_only_seven_rounds_back_count(service: MemoryService) -> None:
    say(service, BREAD, *[(f"Who wrote part {place}?", "Goethe.") for place in "abcdef"])
    [seventh] = say(service, ("How long must the bread bake?", "Long."))
    [eighth] = say(service, ("How hot must the oven be for flour and salt?", "230 degrees."))
    assert judged(seventh, eighth) == [("positive", "shares_words"), ("negative", "unrelated_history")]


def test_query_and_response_are_told_apart_where_the_query_has_lines(service: MemoryService) -> None:
    """The second line of the query is no refusal, and the words that link it stand in its third."""
    say(service, BREAD)
    [one] = say(service, ("Which is right?\nSorry, I don't know.\nIs that bread?", "Neither."))
    assert judged(one) == [("positive", "refers_back")]
    [other] = say(service, ("Name a river\nof Norway", "Sorry, I can't help with that."))
    assert judged(other) == [("negative", "no_answer")]


def test_turns_without_a_response(service: MemoryService) -> None:
    memories = say(service, ("I moved to Lisbon in March.",), ("hello!",), ("Who wrote Faust?",))
    assert judged(*memories) == [
        ("positive", "first_round"),
        ("negative", "small_talk"),
        ("negative", "unrelated_history"),
    ]


@pytest.mark.parametrize(
    ("text", "sample", "why"),
    [
        ("The archive closes at noon on Fridays.", "positive", "tells_something"),
        ("Where is the archive?", "negative", "only_questions"),
        ("ok", "negative", "too_short"),
    ],
)
@pytest.mark.parametrize("bank", ["knowledge", "dialog"])
def test_items_are_judged_by_what_they_tell(
    service: MemoryService, bank: str, text: str, sample: str, why: str
) -> None:
    """V-2; a note in the dialog bank is an item too, as it is no part of a conversation."""
    memory = add(service, text, bank=bank)
    assert memory.sample == sample
    assert why in memory.sample_reasons


def test_of_a_document_the_segments_are_judged(service: MemoryService) -> None:
    parent = add(service, LONG, kind="document")
    assert (parent.sample, parent.sample_reasons) == (None, ())
    parts = service.list(ListQuery(tenant="default", parent_id=parent.id)).items
    assert len(parts) > 1
    assert {part.sample for part in parts} == {Sample.NEGATIVE}
    assert {part.sample_reasons for part in parts} == {("repeats_itself",)}


def test_a_long_round_is_judged_as_a_round(service: MemoryService) -> None:
    say(service, BREAD)
    [whole] = say(service, ("What is the capital of Norway?", "Oslo lies on a fjord. " * 200))
    parts = service.list(ListQuery(tenant="default", parent_id=whole.id)).items
    assert (whole.kind, whole.sample) == ("document", None)
    assert {(part.sample, part.sample_reasons) for part in parts} == {(Sample.NEGATIVE, ("unrelated_history",))}
    assert judged(*say(service, ("Who rules in Oslo?", "A mayor."))) == [("positive", "shares_words")]


def test_task_runs_are_not_judged(service: MemoryService) -> None:
    run = TaskRun("default", "ana", "put a mug on the desk", [TaskStep(action="go to the desk")], "success")
    added = service.add_task(run)
    memories = [service.get("default", each.id) for each in added if isinstance(each, AddResult)]
    assert judged(*memories) == [(None, ""), (None, "")]


def test_a_new_text_is_judged_anew(service: MemoryService) -> None:
    memory = add(service, "The archive closes at noon on Fridays.")
    changed = service.update("default", memory.id, MemoryPatch(text="Where is the archive?"))
    assert (changed.sample, changed.sample_reasons) == (Sample.NEGATIVE, ("only_questions",))
    assert service.update("default", memory.id, MemoryPatch(importance=0.5)).sample is Sample.NEGATIVE
    assert service.update("default", memory.id, MemoryPatch(title="The archive")).sample is Sample.NEGATIVE
    [_, entry, *_] = service.history("default", memory.id)
    assert entry.changes["sample"] == ("positive", "negative")


def test_a_round_is_judged_anew_with_its_history(service: MemoryService) -> None:
    _, second = say(service, BREAD, NORWAY)
    assert second.sample is Sample.NEGATIVE
    text = "How long must the bread bake?\nForty minutes."
    changed = service.update("default", second.id, MemoryPatch(text=text))
    assert (changed.sample, changed.sample_reasons) == (Sample.POSITIVE, ("shares_words",))


def test_segments_are_judged_anew_with_their_document(service: MemoryService) -> None:
    parent = add(service, LONG, kind="document")
    service.update(
        "default", parent.id, MemoryPatch(text=" ".join(f"Mill {n} grinds rye number {n}." for n in range(90)))
    )
    parts = service.list(ListQuery(tenant="default", parent_id=parent.id)).items
    assert {part.sample for part in parts} == {Sample.POSITIVE}
    assert service.get("default", parent.id).sample is None


def test_a_negative_sample_is_found_and_can_be_filtered(service: MemoryService) -> None:
    """V-5: rules err, so nothing is hidden that nobody asked to hide."""
    kept = add(service, "The archive closes at noon on Fridays.")
    doubted = add(service, "Where is the archive?")

    def found(**filter: Any) -> set[str]:
        query = Query(tenant="default", user_id="ana", text="archive", filter=parse(filter), reinforce=False)
        results = {each.memory.id for each in service.search(query).results}
        listed = {each.id for each in service.list(ListQuery(tenant="default", filter=parse(filter))).items}
        assert results == listed
        return results

    assert found() == {kept.id, doubted.id}
    assert found(sample="positive") == {kept.id}
    assert found(sample={"ne": "negative"}) == {kept.id}
    assert found(sample="negative") == {doubted.id}


class Store:
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, int]] = []

    def session_tail(self, partition: Partition, session_id: str, *, before: int, limit: int) -> list[Utterance]:
        del partition
        self.asked.append((session_id, before, limit))
        return []


def prepared_rounds(session_id: str, *rounds: tuple[str, str], start: int = 0) -> tuple[Sequence[Any], Sequence[Any]]:
    turns = [Turn(role, text) for each in rounds for role, text in zip(("user", "assistant"), each, strict=True)]
    drafts = drafts_of_turns(turns, tenant="t", user_id="u", session_id=session_id, start_position=start)
    return Preparer(HashingEncoder(), Limits(banks=frozenset({"dialog"}))).drafts(drafts), parts_of_turns(turns)


def test_the_store_is_asked_once_a_session_and_batch() -> None:
    store = Store()
    one, _ = prepared_rounds("one", BREAD, BREAD, NORWAY, start=4)
    two, _ = prepared_rounds("two", NORWAY, NORWAY)
    Assessor(store, HashingEncoder()).drafts([*one, *two])
    assert store.asked == [("one", 4, 7), ("two", 0, 7)]


def test_positions_decide_what_came_before() -> None:
    """The batch holds the later round first."""
    drafts, _ = prepared_rounds("one", BREAD, ("How long must the bread bake?", "Forty minutes."))
    found = Assessor(Store(), HashingEncoder()).drafts(list(reversed(drafts)))
    reasons = [each.sample_reasons for each in found if isinstance(each, PreparedDraft)]
    assert reasons == [("shares_words",), ("first_round",)]


def test_similar_embeddings_are_a_link_where_the_encoder_can_read() -> None:
    class Deaf(HashingEncoder):
        def understood(self, text: str) -> float:
            del text
            return 0.0

    drafts, _ = prepared_rounds("one", ("Name the streets.", "Elm."), ("List the road.", "Oak."))
    vector = drafts[0].embedding.vector
    same = [each if place == 0 else _with_vector(each, vector) for place, each in enumerate(drafts)]
    for encoder, why in ((HashingEncoder(), "similar"), (Deaf(), "unrelated_history")):
        _, second = Assessor(Store(), encoder).drafts(same)
        assert isinstance(second, PreparedDraft)
        assert second.sample_reasons == (why,)


def _with_vector(prepared: PreparedDraft, vector: Vector) -> PreparedDraft:
    assert prepared.embedding is not None
    return replace(prepared, embedding=replace(prepared.embedding, vector=vector))


def test_a_turn_without_session_or_position_has_no_history() -> None:
    draft = MemoryDraft(tenant="t", user_id="u", bank="dialog", kind="turn", text="Who wrote Faust?")
    store = Store()
    prepared = Preparer(HashingEncoder(), Limits(banks=frozenset({"dialog"}))).drafts(
        [
            draft,
            MemoryDraft(tenant="t", user_id="u", bank="dialog", kind="turn", text="Who?", source=Source(position=3)),
        ]
    )
    found = Assessor(store, HashingEncoder()).drafts(prepared)
    assert [each.sample_reasons for each in found if isinstance(each, PreparedDraft)] == [("first_round",)] * 2
    assert store.asked == []
