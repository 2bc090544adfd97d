"""What a write does to the memories that it contradicts (V-9, V-10, D9), over every store."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.backends import EVERY, Store, new_url, opened
from tests.contracts.store_data import ALICE, APR, FEB, JAN, MAR, add, live_ids, patch, prepared, vector
from vimbank.domain.comparing import COMPARED
from vimbank.domain.endings import Ended, Reason
from vimbank.domain.filters import Condition
from vimbank.domain.fingerprint import content_hash
from vimbank.domain.models import (
    AddResult,
    Event,
    ListQuery,
    Memory,
    MemoryDraft,
    MemoryState,
    Scope,
    Source,
    StateChange,
)
from vimbank.domain.superseding import keys_of
from vimbank.errors import Conflict
from vimbank.ports import Embedded, Ending, PreparedDraft, PreparedPatch
from vimbank.store.sql import SqlStore

ACTIVE, SUPERSEDED = MemoryState.ACTIVE, MemoryState.SUPERSEDED


@pytest.fixture(params=EVERY)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opened(request.param, tmp_path) as store:
        yield store


def claiming(text: str, **fields: Any) -> PreparedDraft:
    """A draft of alice's with what it claims."""
    made = prepared(text, **fields)
    return replace(made, claims=keys_of(made.draft))


def say(store: Store, text: str, *, now: datetime, **fields: Any) -> AddResult:
    [result] = add(store, claiming(text, **fields), now=now)
    return result


def rewording(memory_id: str, text: str) -> PreparedPatch:
    return replace(patch(memory_id, text=text), claims=claiming(text).claims)


def one(store: Store, memory_id: str) -> Memory:
    [memory] = store.get("t", [memory_id])
    return memory


def restore(store: Store, memory_id: str, *, now: datetime) -> Memory:
    change = StateChange(id=memory_id, to=ACTIVE, sources=(MemoryState.ARCHIVED, SUPERSEDED))
    [result] = store.change_states([change], tenant="t", actor="alice", now=now)
    assert not isinstance(result, Exception), result
    return one(store, memory_id)


def lives_in(place: str, new_id: str, at: datetime) -> Ended:
    return Ended("@user", "residence", place, new_id, at, Reason.CHANGED)


def test_the_newer_fact_supersedes_the_older(store: Store) -> None:
    oslo = say(store, "I live in Oslo.", now=JAN)
    assert oslo.superseded == ()
    rome = say(store, "I live in Rome.", now=MAR)
    assert rome.superseded == (oslo.id,)
    old, new = one(store, oslo.id), one(store, rome.id)
    assert (old.state, old.superseded_by, old.valid_to) == (SUPERSEDED, rome.id, MAR)
    assert old.ended == (lives_in("oslo", rome.id, MAR),)
    assert (old.text, old.created_at, old.updated_at) == ("I live in Oslo.", JAN, MAR)
    assert (new.state, new.ended, new.revision) == (ACTIVE, (), rome.revision)
    assert live_ids(store) == [rome.id]
    # One revision each: Oslo, Rome, and Oslo's end; the feed tells of the last two.
    assert [change.id for change in store.changes(1, limit=10)] == [rome.id, oslo.id]
    last = store.history("t", oslo.id)[-1]
    assert (last.event, last.actor, last.at, last.old_text, last.new_text) == (
        Event.STATE,
        "conflicts",
        MAR,
        None,
        None,
    )
    assert last.changes["state"] == ("active", "superseded")
    assert last.changes["superseded_by"] == (None, rome.id)


def test_what_says_more_stays_and_names_what_has_ended(store: Store) -> None:
    both = say(store, "I live in Oslo. My phone number is 555-0100.", now=JAN)
    rome = say(store, "I live in Rome.", now=FEB)
    assert rome.superseded == ()
    old = one(store, both.id)
    assert (old.state, old.superseded_by, old.valid_to) == (ACTIVE, None, None)
    assert old.ended == (lives_in("oslo", rome.id, FEB),)
    assert sorted(live_ids(store)) == sorted([both.id, rome.id])
    phone = say(store, "My phone number is 555-0199.", now=MAR)
    assert phone.superseded == (both.id,)
    old = one(store, both.id)
    assert (old.state, old.superseded_by, old.valid_to) == (SUPERSEDED, phone.id, MAR)
    assert [each.new_id for each in old.ended] == [rome.id, phone.id]


def test_words_that_no_rule_reads_keep_a_memory(store: Store) -> None:
    old = say(store, "I live in Oslo. Such a splendid summer by the fjord, wasn't it!", now=JAN)
    rome = say(store, "I live in Rome.", now=FEB)
    assert one(store, old.id).state is ACTIVE
    assert one(store, old.id).ended == (lives_in("oslo", rome.id, FEB),)


def test_what_arrives_late_is_superseded_at_once(store: Store) -> None:
    rome = say(store, "I live in Rome.", now=MAR)
    oslo = say(store, "I live in Oslo.", now=APR, event_at=JAN)
    assert oslo.superseded == ()
    old = one(store, oslo.id)
    assert (old.state, old.superseded_by, old.valid_to, old.revision) == (SUPERSEDED, rome.id, MAR, oslo.revision)
    assert one(store, rome.id).state is ACTIVE
    assert live_ids(store) == [rome.id]


def test_what_arrives_between_ends_the_older_earlier(store: Store) -> None:
    """The chain of validity has no gap and no overlap: Oslo until February, Bonn until March, Rome since."""
    oslo = say(store, "I live in Oslo.", now=JAN)
    rome = say(store, "I live in Rome.", now=MAR)
    bonn = say(store, "I live in Bonn.", now=APR, event_at=FEB)
    assert bonn.superseded == (oslo.id,)
    first, second = one(store, oslo.id), one(store, bonn.id)
    assert (first.state, first.superseded_by, first.valid_to) == (SUPERSEDED, bonn.id, FEB)
    assert (second.state, second.superseded_by, second.valid_to) == (SUPERSEDED, rome.id, MAR)
    assert first.ended == (lives_in("oslo", bonn.id, FEB),)
    assert live_ids(store) == [rome.id]


def test_of_equal_times_neither_is_newer(store: Store) -> None:
    oslo, rome = add(store, claiming("I live in Oslo."), claiming("I live in Rome."), now=JAN)
    assert (oslo.superseded, rome.superseded) == ((), ())
    assert live_ids(store) == [oslo.id, rome.id]


def test_of_equal_events_what_was_written_later_wins(store: Store) -> None:
    oslo = say(store, "I live in Oslo.", now=FEB, event_at=JAN)
    rome = say(store, "I live in Rome.", now=MAR, event_at=JAN)
    assert rome.superseded == (oslo.id,)
    assert one(store, oslo.id).valid_to == JAN


def test_the_same_again_and_other_things_end_nothing(store: Store) -> None:
    first = say(store, "I live in Oslo.", now=JAN)
    for text in ("I live in Oslo, Norway.", "I like Rome.", "My sister lives in Rome.", "I lived in Rome."):
        assert say(store, text, now=MAR).superseded == ()
    assert one(store, first.id).state is ACTIVE


def test_no_longer_ends_without_a_new_value(store: Store) -> None:
    tea = say(store, "I like tea.", now=JAN)
    cake = say(store, "I like cake.", now=JAN)
    no_tea = say(store, "I no longer like tea.", now=FEB)
    assert no_tea.superseded == (tea.id,)
    assert one(store, tea.id).ended[0].reason is Reason.ENDED
    assert one(store, cake.id).state is ACTIVE
    again = say(store, "I like tea.", now=MAR)
    assert again.superseded == (no_tea.id,)
    assert one(store, no_tea.id).ended[0].reason is Reason.RESUMED


def test_what_ends_a_value_of_whatever_attribute(store: Store) -> None:
    """In either order of arrival: it shares a subject with what it ends, and no attribute."""
    golf = say(store, "I drive a Golf.", now=JAN)
    switched = say(store, "I switched from the Golf to a bike.", now=FEB)
    assert switched.superseded == (golf.id,)
    late = say(store, "I drive a Golf.", now=APR, event_at=JAN + timedelta(days=9))
    assert (late.superseded, one(store, late.id).superseded_by) == ((), switched.id)


@pytest.mark.parametrize("other", [{"agent_id": "b"}, {"agent_id": None}, {"user_id": "bob"}, {"bank": "knowledge"}])
def test_no_decision_crosses_an_agent_a_user_or_a_bank(store: Store, other: dict[str, Any]) -> None:
    oslo = say(store, "I live in Oslo.", now=JAN, agent_id="a")
    rome = say(store, "I live in Rome.", now=FEB, **{"agent_id": "a"} | other)
    assert (rome.superseded, one(store, oslo.id).state) == ((), ACTIVE)
    bonn = say(store, "I live in Bonn.", now=MAR, agent_id="a")
    assert bonn.superseded == (oslo.id,)
    assert one(store, rome.id).state is ACTIVE


def test_another_tenant_is_another_world(store: Store) -> None:
    oslo = say(store, "I live in Oslo.", now=JAN, tenant="other")
    assert say(store, "I live in Rome.", now=FEB).superseded == ()
    assert store.get("other", [oslo.id])[0].state is ACTIVE


def test_restore_undoes_it_and_nothing_does_it_again(store: Store) -> None:
    oslo = say(store, "I live in Oslo.", now=JAN, valid_to=APR)
    say(store, "I live in Rome.", now=FEB)
    assert one(store, oslo.id).valid_to == FEB
    back = restore(store, oslo.id, now=MAR)
    assert (back.state, back.superseded_by, back.valid_to, back.ended) == (ACTIVE, None, APR, ())
    say(store, "I live in Rome, near the river.", now=MAR)
    assert one(store, oslo.id).state is SUPERSEDED  # a third memory says so too, and is new


def test_an_end_that_was_said_since_stays(store: Store) -> None:
    oslo = say(store, "I live in Oslo.", now=JAN)
    say(store, "I live in Rome.", now=FEB)
    store.update(patch(oslo.id, valid_to=APR), tenant="t", actor="alice", now=MAR)
    assert restore(store, oslo.id, now=MAR).valid_to == APR


def test_restore_makes_whole_what_had_ended_in_part(store: Store) -> None:
    both = say(store, "I live in Oslo. My phone number is 555-0100.", now=JAN)
    say(store, "I live in Rome.", now=FEB)
    assert one(store, both.id).ended
    back = restore(store, both.id, now=MAR)
    assert (back.state, back.ended) == (ACTIVE, ())
    before = store.state().revision
    restore(store, both.id, now=MAR)
    assert store.state().revision == before


def test_deleting_the_newer_brings_nothing_back_by_itself(store: Store) -> None:
    """A newer memory goes for many reasons, also because it faded: the older one is no truer for that."""
    oslo = say(store, "I live in Oslo.", now=JAN)
    rome = say(store, "I live in Rome.", now=FEB)
    assert store.delete("t", [rome.id], actor="alice", now=MAR) == [rome.id]
    assert one(store, oslo.id).state is SUPERSEDED
    assert restore(store, oslo.id, now=MAR).state is ACTIVE
    assert live_ids(store) == [oslo.id]


def test_a_new_text_decides_anew_and_undoes_nothing(store: Store) -> None:
    oslo = say(store, "I live in Oslo.", now=JAN)
    diet = say(store, "I am vegetarian.", now=JAN)
    name = say(store, "I live in Rome.", now=FEB).id
    updated = store.update(rewording(name, "I live in Bonn."), tenant="t", actor="alice", now=MAR)
    assert (updated.state, updated.text) == (ACTIVE, "I live in Bonn.")
    assert one(store, oslo.id).superseded_by == name
    bern = say(store, "I live in Bern.", now=APR)
    assert bern.superseded == (name,)
    assert one(store, name).ended == (lives_in("bonn", bern.id, APR),)
    assert one(store, diet.id).state is ACTIVE


def test_a_new_text_is_superseded_by_what_is_newer(store: Store) -> None:
    name = say(store, "I like tea.", now=JAN).id
    rome = say(store, "I live in Rome.", now=FEB)
    updated = store.update(rewording(name, "I live in Oslo."), tenant="t", actor="alice", now=MAR)
    assert (updated.state, updated.superseded_by) == (SUPERSEDED, rome.id)
    assert updated == one(store, name)


def test_a_new_text_forgets_what_had_ended_of_the_old_one(store: Store) -> None:
    both = say(store, "I live in Oslo. My phone number is 555-0100.", now=JAN)
    say(store, "I live in Rome.", now=FEB)
    updated = store.update(rewording(both.id, "My phone number is 555-0100."), tenant="t", actor="alice", now=MAR)
    assert (updated.state, updated.ended) == (ACTIVE, ())


def test_what_is_pinned_stays_in_sight(store: Store) -> None:
    oslo = say(store, "I live in Oslo.", now=JAN, pinned=True)
    rome = say(store, "I live in Rome.", now=FEB)
    assert rome.superseded == ()
    old = one(store, oslo.id)
    assert (old.state, old.valid_to, old.ended) == (ACTIVE, None, (lives_in("oslo", rome.id, FEB),))


@pytest.mark.parametrize("state", [MemoryState.ARCHIVED, MemoryState.SUPPRESSED])
def test_what_is_out_of_sight_is_left_alone(store: Store, state: MemoryState) -> None:
    oslo = say(store, "I live in Oslo.", now=JAN)
    store.change_states([StateChange(id=oslo.id, to=state)], tenant="t", actor="alice", now=JAN)
    before = one(store, oslo.id)
    assert say(store, "I live in Rome.", now=FEB).superseded == ()
    assert one(store, oslo.id) == before


def test_what_is_archived_still_ends_what_is_older(store: Store) -> None:
    rome = say(store, "I live in Rome.", now=MAR)
    store.change_states([StateChange(id=rome.id, to=MemoryState.ARCHIVED)], tenant="t", actor="alice", now=MAR)
    oslo = say(store, "I live in Oslo.", now=APR, event_at=JAN)
    assert one(store, oslo.id).superseded_by == rome.id


def test_what_is_suppressed_ends_nothing(store: Store) -> None:
    rome = say(store, "I live in Rome.", now=MAR)
    store.change_states([StateChange(id=rome.id, to=MemoryState.SUPPRESSED)], tenant="t", actor="alice", now=MAR)
    oslo = say(store, "I live in Oslo.", now=APR, event_at=JAN)
    assert one(store, oslo.id).state is ACTIVE


def test_what_begins_in_the_future_ends_nothing_yet(store: Store) -> None:
    oslo = say(store, "I live in Oslo.", now=JAN)
    rome = say(store, "I live in Rome.", now=FEB, valid_from=APR)
    assert rome.superseded == ()
    assert one(store, oslo.id).state is ACTIVE


def test_it_is_never_valid_longer_than_it_said(store: Store) -> None:
    oslo = say(store, "I live in Oslo.", now=JAN, valid_to=FEB)
    say(store, "I live in Rome.", now=MAR)
    old = one(store, oslo.id)
    assert (old.state, old.valid_to) == (SUPERSEDED, FEB)


def test_what_has_ended_can_be_said_again(store: Store) -> None:
    """An exact duplicate folds into what still holds, never into what has ended."""
    said = "I live in Oslo. Such a splendid summer by the fjord, wasn't it!"
    first = say(store, said, now=JAN)
    assert say(store, said, now=JAN).duplicate
    rome = say(store, "I live in Rome.", now=FEB)
    again = say(store, said, now=MAR)
    assert (again.duplicate, again.superseded) == (False, (rome.id,))
    assert say(store, said, now=MAR) == AddResult(again.id, again.revision, duplicate=True)
    assert one(store, first.id).ended == (lives_in("oslo", rome.id, FEB),)


def test_the_past_is_told_as_it_was(store: Store) -> None:
    oslo = say(store, "I live in Oslo.", now=JAN)
    rome = say(store, "I live in Rome.", now=MAR)
    [(before, _)] = store.as_of(ALICE, FEB)
    assert (before.id, before.state, before.valid_to, before.ended) == (oslo.id, ACTIVE, None, ())
    assert [memory.id for memory, _ in store.as_of(ALICE, APR)] == [rome.id]


def test_a_past_that_was_written_down_later_is_told_as_it_was(store: Store) -> None:
    """Loaded in April, said in January and in March: in February it was Oslo, from March on Rome."""
    oslo = say(store, "I live in Oslo.", now=APR, created_at=JAN)
    more = say(store, "I live in Oslo. My phone number is 555-0100.", now=APR, created_at=JAN)
    rome = say(store, "I live in Rome.", now=APR, created_at=MAR)
    [(first, _), (second, _)] = store.as_of(ALICE, FEB)
    assert ((first.id, first.valid_to), (second.id, second.ended)) == ((oslo.id, None), (more.id, ()))
    [(second, _), (third, _)] = store.as_of(ALICE, MAR + timedelta(days=1))
    assert (second.id, third.id) == (more.id, rome.id)
    assert second.ended == (lives_in("oslo", rome.id, MAR),)


class TestThePast:
    """``as_of`` of get and page: every state, those deleted since included (case 106)."""

    def listed(self, store: Store, instant: datetime, **fields: Any) -> list[str]:
        values: dict[str, Any] = {"tenant": "t", "user_id": "alice"} | fields
        return [each.id for each in store.page(ListQuery(as_of=instant, **values)).items]

    def test_before_and_after(self, store: Store) -> None:
        oslo = say(store, "I live in Oslo.", now=JAN).id
        rome = say(store, "I live in Rome.", now=MAR).id
        [then] = store.get("t", [oslo], as_of=FEB)
        assert (then.state, then.superseded_by, then.valid_to) == (ACTIVE, None, None)
        assert store.get("t", [oslo, rome], as_of=FEB) == [then]
        assert store.get("t", [oslo], as_of=APR) == store.get("t", [oslo])
        assert store.get("t", [oslo, rome], as_of=JAN - timedelta(days=1)) == []
        assert store.get("other", [oslo], as_of=FEB) == []
        assert self.listed(store, FEB) == [oslo]
        assert self.listed(store, APR) == [rome]
        assert self.listed(store, APR, state=SUPERSEDED) == [oslo]
        assert self.listed(store, APR, state=None) == [oslo, rome]
        assert self.listed(store, JAN - timedelta(days=1)) == []

    def test_what_was_deleted_since(self, store: Store) -> None:
        oslo = say(store, "I live in Oslo.", now=JAN).id
        say(store, "I live in Rome.", now=FEB)
        store.delete_scope(Scope("t", "alice"), actor="alice", now=APR)
        assert store.get("t", [oslo], as_of=MAR)[0].state is SUPERSEDED
        assert store.get("t", [oslo], as_of=JAN)[0].text == "I live in Oslo."
        assert store.get("t", [oslo], as_of=APR) == []
        assert self.listed(store, MAR, state=None, bank="dialog", user_id="alice")[0] == oslo
        assert self.listed(store, APR) == []

    def test_a_text_of_then(self, store: Store) -> None:
        name = say(store, "I like tea.", now=JAN, metadata={"a": 1}).id
        store.update(rewording(name, "I like coffee."), tenant="t", actor="alice", now=MAR)
        assert [each.text for each in store.get("t", [name], as_of=FEB)] == ["I like tea."]
        assert [each.text for each in store.get("t", [name], as_of=MAR)] == ["I like coffee."]

    def test_documents_other_users_and_pages(self, store: Store) -> None:
        add(store, prepared("whole", segments=["first", "second"], id="doc"), now=JAN)
        add(store, prepared("else", user_id="bob", id="bobs"), now=JAN)
        add(store, prepared("third", id="note", metadata={"a": 1}), now=JAN)
        store.delete("t", ["doc"], actor="alice", now=MAR)
        assert self.listed(store, FEB) == ["doc", "doc:0000", "doc:0001", "note"]
        assert self.listed(store, FEB, parent_id="doc") == ["doc:0000", "doc:0001"]
        assert self.listed(store, FEB, filter=Condition("metadata.a", "eq", 1)) == ["note"]
        assert self.listed(store, FEB, user_id=None) == ["doc", "doc:0000", "doc:0001", "bobs", "note"]
        assert self.listed(store, FEB, bank="knowledge") == []
        page = store.page(ListQuery(tenant="t", user_id="alice", as_of=FEB, limit=3))
        assert (len(page.items), page.total) == (3, 4)
        rest = store.page(ListQuery(tenant="t", user_id="alice", as_of=FEB, limit=3, cursor=page.next_cursor))
        assert ([each.id for each in rest.items], rest.total, rest.next_cursor) == (["note"], 4, None)

    def test_loaded_later_and_deleted_since(self, store: Store) -> None:
        """The last that was known of Oslo tells when it had ended."""
        oslo = say(store, "I live in Oslo.", now=APR, created_at=JAN).id
        rome = say(store, "I live in Rome.", now=APR, created_at=FEB).id
        store.delete("t", [oslo], actor="alice", now=APR + timedelta(days=1))
        for name in (oslo, rome):
            assert store.get("t", [name], as_of=MAR)[0].state is (SUPERSEDED if name == oslo else ACTIVE)
        assert store.get("t", [oslo], as_of=JAN)[0].state is ACTIVE

    def test_what_was_taken_back_never_was(self, store: Store) -> None:
        """Between the supersession and its undoing it was superseded; before that, and since, it is not."""
        oslo = say(store, "I live in Oslo.", now=MAR, created_at=JAN).id
        say(store, "I live in Rome.", now=MAR, created_at=FEB)
        restore(store, oslo, now=APR)
        states = [store.get("t", [oslo], as_of=at)[0].state for at in (JAN, FEB, MAR, MAR + timedelta(days=1), APR)]
        assert states == [ACTIVE, ACTIVE, SUPERSEDED, SUPERSEDED, ACTIVE]


class TestClaims:
    """``ClaimStore``: what the job works on."""

    def test_unread_are_those_that_nobody_asked(self, store: Store) -> None:
        said = say(store, "I live in Oslo.", now=JAN).id
        one_, two = add(store, prepared("I live in Bonn."), prepared("such a splendid day"), now=JAN)
        add(store, prepared("whole", segments=["I live in Bern.", "second"]), now=JAN)
        step = MemoryDraft(tenant="t", user_id="alice", bank="dialog", text="x", source=Source(parent_id=two.id))
        add(store, PreparedDraft(step, content_hash(step), 1, Embedded(vector("x"))))
        add(store, prepared("I live in Lima.", user_id="bob"), prepared("so far", kind="summary"))
        found = store.unread(ALICE, after=0, limit=10)
        assert [each.id for each in found] == [one_.id, two.id]
        assert store.unread(ALICE, after=0, limit=1) == found[:1]
        assert store.unread(ALICE, after=found[0].number, limit=10) == found[1:]
        again = store.unread(ALICE, after=0, limit=10, again=True)
        assert [each.id for each in again] == [said, one_.id, two.id]
        assert store.put_claims([(each, keys_of(each)) for each in found]) == 2
        assert store.unread(ALICE, after=0, limit=10) == []
        batches = list(store.claiming(ALICE, batch=1))
        assert [[each.id for each in batch] for batch in batches] == [[said], [one_.id]]

    def test_uncompared_are_active_ones_whose_text_nobody_has_compared(self, store: Store) -> None:
        said = say(store, "I live in Oslo.", now=JAN).id
        plain, gone, whole = add(
            store, prepared("so"), prepared("gone"), prepared("whole", segments=["I live in Bern.", "second"]), now=JAN
        )
        add(store, prepared("I live in Lima.", user_id="bob"), prepared("so far", kind="summary"))
        step = MemoryDraft(tenant="t", user_id="alice", bank="dialog", text="x", source=Source(parent_id=whole.id))
        add(store, PreparedDraft(step, content_hash(step), 1, Embedded(vector("x"))))
        change = StateChange(id=gone.id, to=MemoryState.ARCHIVED, sources=(ACTIVE,))
        store.change_states([change], tenant="t", actor="alice", now=JAN)
        found = [one(store, name) for name in (said, plain.id)]
        numbers = [each.number for each in found]
        assert store.uncompared(ALICE) == numbers
        assert store.put_claims([(each, [*keys_of(each), COMPARED]) for each in found]) == 2
        assert store.uncompared(ALICE) == []
        assert store.unread(ALICE, after=0, limit=10) == [one(store, gone.id)]
        assert [[each.id for each in batch] for batch in store.claiming(ALICE)] == [[said]]
        store.update(patch(said, importance=0.9), tenant="t", actor="alice", now=FEB)
        assert store.uncompared(ALICE) == []
        store.update(rewording(said, "I live in Bonn."), tenant="t", actor="alice", now=FEB)
        restore(store, gone.id, now=FEB)
        assert store.uncompared(ALICE) == [numbers[0], one(store, gone.id).number]

    def test_claims_of_a_text_that_was_changed_meanwhile_are_not_noted(self, store: Store) -> None:
        [added] = add(store, prepared("I live in Bonn."), now=JAN)
        [read] = store.unread(ALICE, after=0, limit=10)
        store.update(patch(added.id, text="I live in Oslo."), tenant="t", actor="alice", now=FEB)
        assert store.put_claims([(read, keys_of(read))]) == 0
        store.delete("t", [added.id], actor="alice", now=FEB)
        assert store.put_claims([(read, keys_of(read))]) == 0
        assert list(store.claiming(ALICE)) == []

    def ending(self, store: Store, old: str, new: str, at: datetime = FEB) -> Ending:
        return Ending(
            "t", old, one(store, old).content_hash, [lives_in("oslo", new, at)], {new: one(store, new).content_hash}
        )

    def test_what_is_written_meanwhile_is_left_alone(self, store: Store) -> None:
        oslo, rome = (made.id for made in add(store, prepared("I live in Oslo."), prepared("I live in Rome.")))
        old_changed, new_changed = (
            replace(self.ending(store, oslo, rome), content_hash="another"),
            replace(self.ending(store, oslo, rome), enders={rome: "another"}),
        )
        gone = replace(self.ending(store, oslo, rome), id="gone")
        before = store.state().revision
        results = store.end([old_changed, new_changed, gone], now=MAR)
        assert [type(each) for each in results] == [Conflict] * 3
        assert store.state().revision == before

    def test_a_rehearsal_writes_nothing_and_tells_the_same(self, store: Store) -> None:
        oslo, rome = (made.id for made in add(store, prepared("I live in Oslo."), prepared("I live in Rome.")))
        ending = self.ending(store, oslo, rome)
        before = store.state().revision
        [told] = store.end([ending], dry_run=True, now=MAR)
        assert isinstance(told, Memory)
        assert (told.state, told.superseded_by, store.state().revision) == (SUPERSEDED, rome, before)
        [done] = store.end([ending], now=MAR)
        assert isinstance(done, Memory)
        assert done == one(store, oslo) == replace(told, revision=before + 1, updated_at=MAR)
        assert store.end([ending], now=APR) == [None]

    def test_what_has_not_begun_is_not_ended(self, store: Store) -> None:
        oslo, rome = (made.id for made in add(store, prepared("I live in Oslo."), prepared("I live in Rome.")))
        assert store.end([self.ending(store, oslo, rome, APR)], now=MAR) == [None]

    def test_what_a_model_calls_stale_supersedes_nothing(self, store: Store) -> None:
        """It stays named beside what a rule finds, and does not stand for it, though it is later."""
        oslo = say(store, "I live in Oslo.", now=JAN).id
        other = say(store, "the fjord is far away by now", now=APR).id
        whole = Ended("@user", "text", None, other, APR, Reason.CHANGED)
        ending = Ending("t", oslo, one(store, oslo).content_hash, [whole], {other: one(store, other).content_hash})
        [told] = store.end([ending], now=APR)
        assert isinstance(told, Memory)
        assert (told.state, told.ended, told.superseded_by) == (ACTIVE, (whole,), None)
        rome = say(store, "I live in Rome.", now=APR, event_at=MAR)
        assert rome.superseded == (oslo,)
        old = one(store, oslo)
        assert (old.superseded_by, old.valid_to, old.ended) == (rome.id, MAR, (lives_in("oslo", rome.id, MAR), whole))
        bern = say(store, "I live in Bern.", now=APR, event_at=FEB)
        assert (bern.superseded, one(store, oslo).valid_to) == ((oslo,), FEB)
        assert (restore(store, oslo, now=APR).valid_to, one(store, oslo).ended) == (None, ())

    def test_what_was_taken_back_stays_so_until_the_text_changes(self, store: Store) -> None:
        oslo = say(store, "I live in Oslo.", now=JAN).id
        rome = say(store, "I live in Rome.", now=FEB).id
        ending = self.ending(store, oslo, rome)
        restore(store, oslo, now=MAR)
        assert store.end([ending], now=MAR) == [None]
        store.update(rewording(oslo, "I live in Oslo, Norway."), tenant="t", actor="alice", now=MAR)
        assert one(store, oslo).superseded_by == rome


@pytest.mark.services
def test_two_writers_leave_one_current_fact(tmp_path: Path) -> None:
    """Two threads, each with a store of its own on one PostgreSQL: whoever comes second sees the first."""
    url = new_url("postgresql", tmp_path)
    barrier = threading.Barrier(2)

    def write(places: Sequence[str], start: int) -> None:
        store = SqlStore.open(url)
        try:
            barrier.wait()
            for step, place in enumerate(places):
                say(store, f"I live in {place}.", now=APR, created_at=JAN + timedelta(minutes=2 * step + start))
        finally:
            store.close()

    cities = (["Oslo", "Rome", "Bonn", "Bern"] * 5, ["Lima", "Cairo", "Delhi", "Kyoto"] * 5)
    with ThreadPoolExecutor(2) as writers:
        list(writers.map(write, cities, (0, 1)))
    store = SqlStore.open(url)
    try:
        [current] = live_ids(store)
        assert one(store, current).text == "I live in Kyoto."
    finally:
        store.close()
