"""Laws of filters: the JSON form loses nothing, and columns mean what the reference means."""

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from vimbank.domain.filters import ATTRIBUTES, And, Condition, Filter, Not, Operator, Or, matches, parse, to_json
from vimbank.domain.models import Memory, Sample, Source
from vimbank.indexes.roster import Roster

START = datetime(2026, 1, 1, tzinfo=UTC)
# Few and small values, so that conditions meet them; those that == confuses are among them.
numbers = st.sampled_from([0, 1, 1.0, 0.5, -2, 3, 2**53])
words = st.sampled_from(["", "positive", "a", "ab", "b", "1", "*", "A", "é", "true"])
scalars = st.one_of(numbers, words, st.booleans())
moments = st.integers(0, 3).map(lambda hours: START + timedelta(hours=hours))
keys = st.sampled_from(["a", "b", "a.b", "kind", "ké"])
values = st.recursive(
    st.one_of(st.none(), scalars),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=2)),
    max_leaves=4,
)
metadata = st.dictionaries(keys, values, max_size=3)


@st.composite
def memories(draw: st.DrawFn, id: str) -> Memory:
    text = st.one_of(st.none(), words)
    moment = st.one_of(st.none(), moments)
    return Memory(
        id=id,
        tenant="t",
        user_id="u",
        bank="dialog",
        kind=draw(words),
        text="text",
        created_at=draw(moments),
        updated_at=draw(moments),
        content_hash="hash",
        revision=1,
        title=draw(text),
        speaker=draw(text),
        agent_id=draw(text),
        session_id=draw(text),
        metadata=draw(metadata),
        source=Source(
            parent_id=draw(text), position=draw(st.one_of(st.none(), st.integers(0, 3))), event_id=draw(text)
        ),
        event_at=draw(moment),
        valid_from=draw(moment),
        valid_to=draw(moment),
        expires_at=draw(moment),
        importance=draw(st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0]))),
        pinned=draw(st.booleans()),
        sample=draw(st.one_of(st.none(), st.sampled_from(Sample))),
        superseded_by=draw(text),
        recall_count=draw(st.integers(0, 3)),
        last_recalled_at=draw(moment),
    )


@st.composite
def conditions(draw: st.DrawFn) -> dict[str, Any]:
    """One condition in JSON, of any field and any operator that the parser takes for it."""
    field = draw(
        st.one_of(st.sampled_from(sorted(ATTRIBUTES)), st.sampled_from(["metadata.kind", "a", "b", "a.b", "ké"]))
    )
    kind = ATTRIBUTES.get(field)
    operands: Any = {"text": words, "number": numbers, "boolean": st.booleans(), "time": moments, None: scalars}[kind]
    if kind == "text" and field == "id":
        operands = st.sampled_from(["m0", "m1", "m"])
    op = draw(st.sampled_from(get_args(Operator)))
    if op == "exists":
        return {field: {op: draw(st.booleans())}}
    if op in ("in", "nin"):
        return {field: {op: draw(st.lists(operands, max_size=3))}}
    if op == "contains" and kind not in (None, "text"):
        op = "eq"
    if op in ("gt", "gte", "lt", "lte"):
        if kind == "boolean":
            op = "ne"
        elif kind is None:
            operands = st.one_of(numbers, words)
    elif op in ("eq", "ne") and kind is None:
        operands = st.one_of(scalars, st.lists(scalars, max_size=2))
    return {field: {op: draw(operands)}}


filters = st.recursive(
    conditions(),
    lambda inner: st.one_of(
        st.fixed_dictionaries({"AND": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"OR": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"NOT": st.one_of(inner, st.lists(inner, min_size=1, max_size=2))}),
    ),
    max_leaves=5,
).map(parse)
populations = st.integers(0, 6).flatmap(lambda count: st.tuples(*(memories(f"m{row}") for row in range(count))))


@given(filters)
def test_the_json_form_reads_back_as_an_equal_filter(filter: Filter) -> None:
    assert parse(to_json(filter)) == filter


@settings(max_examples=150, deadline=None)
@given(populations, st.lists(filters, min_size=1, max_size=4))
def test_columns_mean_what_the_reference_means_cases_50_52_53(
    population: tuple[Memory, ...], several: list[Filter]
) -> None:
    roster = Roster()
    roster.append(population)
    for each in several:
        assert roster.select(each).tolist() == [matches(each, memory) for memory in population]


@settings(max_examples=80, deadline=None)
@given(st.data(), filters)
def test_columns_follow_every_change(data: st.DataObject, filter: Filter) -> None:
    roster, rows = Roster(), list[Memory]()
    roster.select(filter)  # builds the lazy columns, which then have to follow
    for step in range(data.draw(st.integers(1, 5))):
        kinds = ["append", "replace", "remove"] if rows else ["append"]
        kind = data.draw(st.sampled_from(kinds))
        row = data.draw(st.integers(0, max(len(rows) - 1, 0)))
        if kind == "append":
            new = [data.draw(memories(f"m{step}.{index}")) for index in range(data.draw(st.integers(0, 3)))]
            roster.append(new)
            rows += new
        elif kind == "replace":
            rows[row] = data.draw(memories(rows[row].id))
            roster.replace(row, rows[row])
        else:
            roster.remove(row)
            rows[row] = rows[-1]
            rows.pop()
        assert roster.ids(np.arange(len(rows))) == [memory.id for memory in rows]
        assert roster.select(filter).tolist() == [matches(filter, memory) for memory in rows]
    restored = Roster()
    restored.restore(roster.dump())
    assert restored.select(filter).tolist() == [matches(filter, memory) for memory in rows]


@settings(max_examples=50, deadline=None)
@given(populations, filters, filters)
def test_combinations_are_boolean(population: tuple[Memory, ...], one: Filter, other: Filter) -> None:
    for memory in population:
        first, second = matches(one, memory), matches(other, memory)
        assert matches(And((one, other)), memory) == (first and second)
        assert matches(Or((one, other)), memory) == (first or second)
        assert matches(Not(one), memory) == (not first)


@settings(max_examples=50, deadline=None)
@given(populations, st.sampled_from([*ATTRIBUTES, "metadata.a"]), st.data())
def test_the_negative_operators_negate(population: tuple[Memory, ...], field: str, data: st.DataObject) -> None:
    kind = ATTRIBUTES.get(field)
    operand = data.draw(moments if kind == "time" else scalars)
    for memory in population:
        assert matches(Condition(field, "eq", operand), memory) != matches(Condition(field, "ne", operand), memory)
        several = (operand,)
        assert matches(Condition(field, "in", several), memory) != matches(Condition(field, "nin", several), memory)
