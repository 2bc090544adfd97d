"""The filter's JSON form and its meaning, case by case."""

from datetime import UTC, datetime
from typing import Any

import pytest

from vimbank.domain.filters import (
    ATTRIBUTES,
    MAX_CONDITIONS,
    MAX_DEPTH,
    And,
    Condition,
    Not,
    Or,
    matches,
    parse,
    to_json,
)
from vimbank.domain.models import Memory, Source
from vimbank.errors import InvalidInput

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def memory(metadata: dict[str, Any] | None = None, **fields: Any) -> Memory:
    given: dict[str, Any] = {
        "id": "m1",
        "tenant": "t",
        "user_id": "u",
        "bank": "knowledge",
        "kind": "note",
        "text": "text",
        "created_at": NEW_YEAR,
        "updated_at": NEW_YEAR,
        "content_hash": "hash",
        "revision": 1,
        "metadata": metadata or {},
    }
    return Memory(**(given | fields))


def holds(filter: object, metadata: dict[str, Any] | None = None, **fields: Any) -> bool:
    return matches(parse(filter), memory(metadata, **fields))


@pytest.mark.parametrize(
    ("filter", "metadata", "expected"),
    [
        # strict types
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": True}, {"a": 1}, False),
        ({"a": True}, {"a": True}, True),
        ({"a": False}, {"a": 0}, False),
        ({"a": "x"}, {"a": "X"}, False),
        # a whole value, never a part of it (case 50)
        ({"category": "Work Items"}, {"category": "Work Items"}, True),
        ({"category": "Work"}, {"category": "Work Items"}, False),
        ({"team": "team-a"}, {"team": "team-b"}, False),
        # lists
        ({"a": {"eq": "x"}}, {"a": ["x", "y"]}, True),
        ({"a": {"eq": ["x", "y"]}}, {"a": ["x", "y"]}, True),
        ({"a": {"eq": ["y", "x"]}}, {"a": ["x", "y"]}, False),
        ({"a": {"eq": ["x", "y"]}}, {"a": "x"}, False),
        ({"a": {"eq": 1}}, {"a": [True]}, False),
        ({"a": {"ne": "x"}}, {"a": ["x", "y"]}, False),
        ({"a": ["x", "z"]}, {"a": "z"}, True),
        ({"a": {"in": ["x", "z"]}}, {"a": ["y", "z"]}, True),
        ({"a": {"in": []}}, {"a": "x"}, False),
        ({"a": {"nin": []}}, {"a": "x"}, True),
        ({"a": {"nin": ["x"]}}, {"a": "x"}, False),
        # contains
        ({"a": {"contains": "x"}}, {"a": ["x", "y"]}, True),
        ({"a": {"contains": "x"}}, {"a": ["xx"]}, False),
        ({"a": {"contains": "ell"}}, {"a": "hello"}, True),
        ({"a": {"contains": "ELL"}}, {"a": "hello"}, False),
        ({"a": {"contains": 1}}, {"a": "1"}, False),
        ({"a": {"contains": 1}}, {"a": [1.0]}, True),
        ({"a": {"contains": 1}}, {"a": 1}, False),
        # ranges
        ({"a": {"gt": 1}}, {"a": 1.5}, True),
        ({"a": {"gt": 1}}, {"a": 1}, False),
        ({"a": {"gte": 1}}, {"a": 1}, True),
        ({"a": {"lt": 1}}, {"a": True}, False),
        ({"a": {"lt": 1}}, {"a": "0"}, False),
        ({"a": {"lt": "b"}}, {"a": "a"}, True),
        ({"a": {"lte": "b"}}, {"a": 0}, False),
        ({"a": {"gt": 0}}, {"a": [1]}, False),
        ({"a": {"gte": 2, "lt": 4}}, {"a": 3}, True),
        ({"a": {"gte": 2, "lt": 4}}, {"a": 4}, False),
        # nothing there
        ({"a": 1}, {}, False),
        ({"a": {"ne": 1}}, {}, True),
        ({"a": {"in": [1]}}, {}, False),
        ({"a": {"nin": [1]}}, {}, True),
        ({"a": {"gt": 1}}, {}, False),
        ({"a": {"contains": "x"}}, {}, False),
        ({"a": {"exists": True}}, {}, False),
        ({"a": {"exists": False}}, {}, True),
        ({"a": {"exists": True}}, {"a": None}, False),
        ({"a": {"exists": True}}, {"a": False}, True),
        ({"a": {"exists": True}}, {"a": {}}, True),
        ({"a": "*"}, {"a": 0}, True),
        ({"a": "*"}, {}, False),
        ({"a": {"eq": "*"}}, {"a": "x"}, False),
        ({"a": {"eq": "*"}}, {"a": "*"}, True),
        # paths
        ({"a.b": 1}, {"a": {"b": 1}}, True),
        ({"a.b.c": 1}, {"a": {"b": {"c": 1}}}, True),
        ({"a.b": 1}, {"a.b": 1}, True),
        ({"a.b": 1}, {"a": 1}, False),
        ({"metadata.a.b": 1}, {"a": {"b": 1}}, True),
        ({"metadata.kind": "x"}, {"kind": "x"}, True),
        ({"kind": "x"}, {"kind": "x"}, False),
        ({"a": 1}, {"a": {"b": 1}}, False),
        # combinations
        ({"a": 1, "b": 2}, {"a": 1, "b": 2}, True),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, False),
        ({"AND": [{"a": 1}, {"b": 2}]}, {"a": 1}, False),
        ({"NOT": {"a": 1}}, {"a": 2}, True),
        ({"NOT": {"a": 1, "b": 2}}, {"a": 1, "b": 3}, True),
        ({"NOT": [{"a": 1}, {"b": 2}]}, {"a": 1, "b": 3}, False),
        ({"NOT": [{"a": 1}, {"b": 2}]}, {"a": 2, "b": 3}, True),
        ({"a": 1, "OR": [{"b": 2}, {"c": 3}]}, {"a": 1, "c": 3}, True),
        ({"a": 1, "OR": [{"b": 2}, {"c": 3}]}, {"a": 2, "c": 3}, False),
        ({}, {}, True),
    ],
)
def test_meaning_over_metadata(filter: object, metadata: dict[str, Any], expected: bool) -> None:
    assert holds(filter, metadata) is expected


def test_or_takes_either_case_53() -> None:
    either = {"OR": [{"a": 1}, {"b": 2}]}
    assert [holds(either, metadata) for metadata in ({"a": 1}, {"b": 2}, {"c": 3})] == [True, True, False]


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        ({"id": "m1"}, True),
        ({"kind": ["note", "turn"]}, True),
        ({"session_id": "s"}, True),
        ({"session_id": {"ne": "s"}}, False),
        ({"agent_id": {"exists": True}}, False),
        ({"speaker": {"contains": "nn"}}, True),
        ({"title": {"gte": "T"}}, True),
        ({"state": "active"}, True),
        ({"parent_id": "p"}, True),
        ({"event_id": "*"}, False),
        ({"position": {"lt": 4}}, True),
        ({"recall_count": 0}, True),
        ({"importance": {"gte": 0.5}}, True),
        ({"pinned": False}, True),
        ({"pinned": {"ne": False}}, False),
        ({"created_at": "2026-01-01"}, True),
        ({"created_at": 1767225600}, True),
        ({"created_at": {"gt": "2026-01-01T09:00:00+09:00"}}, False),
        ({"created_at": {"gte": 1767225600000, "lt": "2026-01-02"}}, True),
        ({"created_at": ["2026-01-01", "2026-01-02"]}, True),
        ({"created_at": {"nin": ["2026-01-01"]}}, False),
        ({"event_at": {"lt": "2027-01-01"}}, False),
        ({"event_at": {"ne": "2027-01-01"}}, True),
        ({"event_at": {"exists": False}}, True),
    ],
)
def test_meaning_over_attributes_case_103(filter: object, expected: bool) -> None:
    fields: dict[str, Any] = {
        "session_id": "s",
        "speaker": "Anna",
        "title": "Title",
        "importance": 0.5,
        "source": Source(parent_id="p", position=3),
    }
    assert holds(filter, **fields) is expected


@pytest.mark.parametrize(
    ("filter", "place"),
    [
        ({"age": {"gtt": 5}}, "filter.age.gtt"),
        ({"age": {"GT": 5}}, "filter.age.GT"),
        ({"age": {"gt": 5, "gtt": 6}}, "filter.age.gtt"),
        ({"age": {}}, "filter.age"),
        ({"a": None}, "filter.a"),
        ({"a": {"eq": None}}, "filter.a.eq"),
        ({"a": {"in": [1, None]}}, "filter.a.in.1"),
        ({"a": {"in": "x"}}, "filter.a.in"),
        ({"a": {"gt": True}}, "filter.a.gt"),
        ({"a": {"gt": [1]}}, "filter.a.gt"),
        ({"a": {"contains": ["x"]}}, "filter.a.contains"),
        ({"a": {"exists": 1}}, "filter.a.exists"),
        ({"a": {"eq": {"b": 1}}}, "filter.a.eq"),
        ({"a": {"eq": float("nan")}}, "filter.a.eq"),
        ({"a": [[1]]}, "filter.a.0"),
        ({"a": 10**400}, "filter.a"),
        ({"importance": {"gt": 10**400}}, "filter.importance.gt"),
        ({"kind": 5}, "filter.kind"),
        ({"kind": {"eq": ["a"]}}, "filter.kind.eq"),
        ({"importance": "high"}, "filter.importance"),
        ({"importance": {"contains": 1}}, "filter.importance.contains"),
        ({"pinned": 1}, "filter.pinned"),
        ({"pinned": {"gt": False}}, "filter.pinned.gt"),
        ({"created_at": {"gte": "soon"}}, "filter.created_at.gte"),
        ({"created_at": {"contains": "2026"}}, "filter.created_at.contains"),
        ({"created_at": True}, "filter.created_at"),
        ({"AND": []}, "filter.AND"),
        ({"AND": {"a": 1}}, "filter.AND"),
        ({"OR": [{}]}, "filter.OR.0"),
        ({"OR": [{"a": 1}, 5]}, "filter.OR.1"),
        ({"NOT": {}}, "filter.NOT"),
        ({"NOT": []}, "filter.NOT"),
        ({"NOT": "a"}, "filter.NOT"),
        ({"AND": [{"OR": [{"age": {"gtt": 5}}]}]}, "filter.AND.0.OR.0.age.gtt"),
        ({"and": [{"a": 1}]}, "filter.and"),
        ({"$or": [{"a": 1}]}, "filter.$or"),
        ({"NOR": [{"a": 1}]}, "filter.NOR"),
        ({"metadata": "x"}, "filter.metadata"),
        ({"metadata.": "x"}, "filter.metadata."),
        ({"": 1}, "filter"),
        ([{"a": 1}], "filter"),
        ("a = 1", "filter"),
        (None, "filter"),
        ([], "filter"),
    ],
)
def test_what_is_not_understood_is_refused_by_place_case_52(filter: object, place: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse(filter)
    assert [error.field for error in caught.value.errors] == [place]


def test_the_callers_field_starts_the_place() -> None:
    with pytest.raises(InvalidInput, match=r"^body\.filter\.age\.gtt: "):
        parse({"age": {"gtt": 5}}, field="body.filter")


def nested(levels: int) -> object:
    inner: object = {"a": 1}
    for _ in range(levels - 1):
        inner = {"NOT": inner}
    return inner


def test_depth_is_bounded() -> None:
    assert matches(parse(nested(MAX_DEPTH)), memory({"a": 1})) is False  # 15 negations
    with pytest.raises(InvalidInput, match="deeper"):
        parse(nested(MAX_DEPTH + 1))
    with pytest.raises(InvalidInput, match="deeper"):
        parse(nested(5_000))


def test_conditions_are_bounded() -> None:
    assert isinstance(parse({"OR": [{"a": n} for n in range(MAX_CONDITIONS)]}), Or)
    with pytest.raises(InvalidInput, match="256"):
        parse({"OR": [{"a": n} for n in range(MAX_CONDITIONS + 1)]})


def test_the_tree_of_a_filter_and_its_canonical_json() -> None:
    parsed = parse({"topic": "x", "NOT": [{"kind": "turn"}], "created_at": {"gte": 1767225600}})
    assert parsed == And(
        (
            Condition("metadata.topic", "eq", "x"),
            Not(Or((Condition("kind", "eq", "turn"),))),
            Condition("created_at", "gte", NEW_YEAR),
        )
    )
    assert to_json(parsed) == {
        "AND": [
            {"metadata.topic": {"eq": "x"}},
            {"NOT": {"OR": [{"kind": {"eq": "turn"}}]}},
            {"created_at": {"gte": "2026-01-01T00:00:00Z"}},
        ]
    }
    assert to_json(parse({})) == {}


def test_a_condition_on_no_field_is_refused() -> None:
    with pytest.raises(InvalidInput, match="colour"):
        matches(Condition("colour", "eq", "red"), memory())


def test_every_attribute_is_read_from_the_memory() -> None:
    bare = memory()
    for name in ATTRIBUTES:
        assert isinstance(matches(Condition(name, "exists", True), bare), bool)
