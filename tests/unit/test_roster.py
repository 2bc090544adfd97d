"""The roster: rows, columns, neighbours, titles, and its saved form."""

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from vimbank.domain.filters import Condition, matches, parse
from vimbank.domain.models import Memory, Source
from vimbank.errors import IndexCorrupt, InvalidInput
from vimbank.indexes.roster import MAX_METADATA_COLUMNS, Roster

START = datetime(2026, 1, 1, tzinfo=UTC)  # 1767225600


def memory(id: str, **fields: Any) -> Memory:
    given: dict[str, Any] = {
        "id": id,
        "tenant": "t",
        "user_id": "u",
        "bank": "dialog",
        "kind": "turn",
        "text": "text",
        "created_at": START,
        "updated_at": START,
        "content_hash": "hash",
        "revision": 1,
    }
    return Memory(**(given | fields))


def roster_of(*memories: Memory) -> Roster:
    roster = Roster()
    roster.append(memories)
    return roster


def rows(*numbers: int) -> Any:
    return np.array(numbers, dtype=np.int64)


def test_rows_and_ids_through_removal_and_addition_case_3() -> None:
    roster = roster_of(*(memory(f"m{n}") for n in range(10)))
    for gone in ("m0", "m3", "m7"):
        row = roster.row(gone)
        assert row is not None
        roster.remove(row)
    roster.append([memory(f"n{n}") for n in range(5)])
    live = ["m1", "m2", "m4", "m5", "m6", "m8", "m9", "n0", "n1", "n2", "n3", "n4"]
    assert len(roster) == 12
    assert roster.ids(roster.rows(live)) == live
    assert roster.rows(["m0", "m3", "m7", "never"]).tolist() == [-1, -1, -1, -1]
    assert roster.row("m0") is None


def test_columns_hold_what_scoring_reads() -> None:
    roster = roster_of(
        memory(
            "a",
            number=7,
            event_at=START + timedelta(hours=1),
            last_recalled_at=START + timedelta(seconds=0.5),
            strength=2.5,
            importance=0.25,
            session_id="s",
            source=Source(position=3),
        ),
        memory("b", number=8),
    )
    assert roster.column("number").tolist() == [7, 8]
    assert roster.column("event_at").tolist() == [1767229200, 1767225600]  # the creation where there is no event
    assert roster.column("strength").tolist() == [2.5, 1.0]
    for name, known in (("last_recalled_at", 1767225600.5), ("importance", 0.25), ("position", 3.0)):
        column = roster.column(name)
        assert column[0] == known
        assert np.isnan(column[1])
    assert roster.column("group").tolist() == [0, -1]
    with pytest.raises(ValueError, match="read-only"):
        roster.column("strength")[0] = 9
    with pytest.raises(KeyError):
        roster.column("colour")


def test_replacing_changes_every_column() -> None:
    roster = roster_of(memory("a", metadata={"topic": "x"}, title="Old"), memory("b", metadata={"topic": "y"}))
    topic = parse({"topic": "z"})
    assert roster.select(topic).tolist() == [False, False]
    roster.replace(0, memory("a", metadata={"topic": "z"}, title="New", kind="note", strength=3.0))
    assert roster.select(topic).tolist() == [True, False]
    assert roster.select(parse({"kind": "note", "title": "New"})).tolist() == [True, False]
    assert roster.column("strength").tolist() == [3.0, 1.0]


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"category": "Work Items"}, [True, False, False]),  # case 50
        ({"category": "Work"}, [False, False, False]),
        ({"team": "team-a"}, [True, False, False]),  # case 45
        ({"OR": [{"a": 1}, {"b": 2}]}, [False, True, True]),  # case 53
        ({"created_at": {"gte": "2026-01-01T09:00:01+09:00"}}, [False, True, True]),  # case 103
        ({"id": ["m2", "m0", "m9"]}, [True, False, True]),
        ({"id": {"gt": "m0"}}, [False, True, True]),
        ({"pinned": True}, [False, True, False]),
        ({"importance": {"ne": 0.5}}, [True, False, True]),
        ({"importance": {"exists": False}}, [True, False, True]),
        ({"NOT": {"importance": {"lt": 1}}}, [True, False, True]),
    ],
)
def test_select(asked: dict[str, Any], expected: list[bool]) -> None:
    population = [
        memory("m0", metadata={"category": "Work Items", "team": "team-a"}),
        memory(
            "m1",
            metadata={"a": 1, "team": "team-b"},
            created_at=START + timedelta(seconds=1),
            pinned=True,
            importance=0.5,
        ),
        memory("m2", metadata={"b": 2}, created_at=START + timedelta(days=1)),
    ]
    assert roster_of(*population).select(parse(asked)).tolist() == expected
    assert [matches(parse(asked), each) for each in population] == expected


def test_a_condition_on_no_field_is_refused() -> None:
    with pytest.raises(InvalidInput, match="colour"):
        roster_of(memory("a")).select(Condition("colour", "eq", "red"))


def test_three_thousand_keys_make_no_columns_case_56() -> None:
    roster = roster_of(*(memory(f"m{n}", metadata={f"key{n}": n}) for n in range(3_000)))
    empty = roster_of(*(memory(f"m{n}") for n in range(3_000)))
    assert roster.nbytes < empty.nbytes + 3_000 * 50
    for n in range(0, 3_000, 30):  # 100 columns were they all kept
        assert np.flatnonzero(roster.select(parse({f"key{n}": n}))).tolist() == [n]
    assert roster.nbytes < empty.nbytes + 3_000 * 50 + MAX_METADATA_COLUMNS * (3_000 * 4 * 2 + 500)


def test_metadata_beyond_what_the_fast_encoder_takes() -> None:
    strange = {"big": 2**70, "half": "\ud800", 'a"b\n': "é", "ké": "\x00"}
    roster = roster_of(memory("a", metadata=strange), memory("b"))
    for key, value in strange.items():
        assert roster.select(parse({f"metadata.{key}": value})).tolist() == [True, False], key
    restored = Roster()
    restored.restore(roster.dump())
    assert restored.select(parse({"half": "\ud800"})).tolist() == [True, False]


class TestNeighbours:
    def session(self, positions: list[int], session: str = "s", start: int = 0) -> list[Memory]:
        return [
            memory(f"{session}{n}", number=start + n, session_id=session, source=Source(position=position))
            for n, position in enumerate(positions)
        ]

    def test_rows_around_a_turn_in_its_session(self) -> None:
        roster = roster_of(*self.session([0, 1, 2, 3]), *self.session([0, 1], "t"), memory("alone"))
        assert roster.neighbours(rows(1, 0, 3, 4, 6), 1).tolist() == [
            [0, 1, 2],
            [-1, 0, 1],
            [2, 3, -1],
            [-1, 4, 5],
            [-1, -1, -1],
        ]
        assert roster.neighbours(rows(2), 2).tolist() == [[0, 1, 2, 3, -1]]
        assert roster.neighbours(rows(1), 0).tolist() == [[1]]
        assert roster.neighbours(rows(), 1).shape == (0, 3)

    def test_a_gap_is_a_gap(self) -> None:
        assert roster_of(*self.session([0, 2])).neighbours(rows(0), 2).tolist() == [[-1, -1, 0, -1, 1]]

    def test_parts_of_a_parent_are_a_group_of_their_own(self) -> None:
        def part(n: int, parent: str) -> Memory:
            return memory(f"{parent}{n}", session_id="s", source=Source(parent_id=parent, position=n))

        roster = roster_of(*self.session([0, 1]), part(0, "p"), part(1, "p"), part(1, "q"))
        assert roster.neighbours(rows(0, 2, 3, 4), 1).tolist() == [[-1, 0, 1], [-1, 2, 3], [2, 3, -1], [-1, 4, -1]]

    def test_neighbours_follow_changes(self) -> None:
        roster = roster_of(*self.session([0, 1, 2, 3]))
        assert roster.neighbours(rows(1), 1).tolist() == [[0, 1, 2]]
        roster.remove(0)  # position 3 stands in row 0 now
        assert roster.neighbours(rows(1, 2, 0), 1).tolist() == [[-1, 1, 2], [1, 2, 0], [2, 0, -1]]
        roster.replace(0, memory("s3", session_id="s", source=Source(position=0)))
        assert roster.neighbours(rows(1), 1).tolist() == [[0, 1, 2]]
        roster.append(self.session([4], "z"))
        assert roster.neighbours(rows(2), 1).tolist() == [[1, 2, -1]]

    def test_of_two_at_one_place_the_elder_stands_there(self) -> None:
        elder, younger = (
            self.session([1], "s", start=1)[0],
            memory("x", number=9, session_id="s", source=Source(position=1)),
        )
        first = memory("f", number=0, session_id="s", source=Source(position=0))
        for order in ([first, elder, younger], [first, younger, elder]):
            roster = roster_of(first)
            roster.neighbours(rows(0), 1)
            roster.append(order[1:])
            built_later = roster_of(*order)
            at = int(roster.rows([elder.id])[0])
            assert (
                roster.neighbours(rows(0), 1).tolist() == built_later.neighbours(rows(0), 1).tolist() == [[-1, 0, at]]
            )
            for each in (roster, built_later):
                each.remove(at)
                assert each.neighbours(rows(0), 1).tolist() == [[-1, 0, *each.rows(["x"]).tolist()]]


class TestTitles:
    def test_a_suffix_in_parentheses_may_be_left_out(self) -> None:
        roster = roster_of(
            memory("a", title="Heat (film)"), memory("b", title="HEAT"), memory("c"), memory("d", title="!")
        )
        assert {title: sorted(found) for title, found in roster.titles().items()} == {"heat film": [0], "heat": [0, 1]}

    def test_titles_follow_changes(self) -> None:
        roster = roster_of(memory("a", title="One"), memory("b", title="Two"), memory("c", title="Two"))
        roster.titles()
        roster.remove(0)
        assert {title: sorted(found) for title, found in roster.titles().items()} == {"two": [0, 1]}
        roster.replace(1, memory("b", title="Three"))
        roster.append([memory("d", title="Two")])
        assert {title: sorted(found) for title, found in roster.titles().items()} == {"two": [0, 2], "three": [1]}


class TestSavedForm:
    def filled(self) -> Roster:
        roster = roster_of(
            *(
                memory(
                    f"m{n}\n\u00e9",
                    number=n,
                    title=f"Title {n}",
                    session_id=f"s{n % 2}",
                    metadata={"n": n, "tags": ["x"]},
                    source=Source(position=n // 2),
                )
                for n in range(9)
            )
        )
        roster.remove(4)
        return roster

    def test_everything_comes_back(self) -> None:
        roster, restored = self.filled(), Roster()
        restored.restore(roster.dump())
        everything = np.arange(8)
        assert restored.ids(everything) == roster.ids(everything)
        for name in ("number", "event_at", "position", "group", "importance"):
            assert np.array_equal(restored.column(name), roster.column(name), equal_nan=True)
        assert restored.neighbours(everything, 2).tolist() == roster.neighbours(everything, 2).tolist()
        assert restored.titles() == roster.titles()
        for asked in ({"n": {"gte": 3}}, {"tags": "x"}, {"session_id": "s1"}, {"title": {"contains": "8"}}):
            assert restored.select(parse(asked)).tolist() == roster.select(parse(asked)).tolist()

    def test_a_restored_roster_takes_changes(self) -> None:
        restored = Roster()
        restored.restore(self.filled().dump())
        restored.append([memory("new", session_id="s1", source=Source(position=4), metadata={"n": 99})])
        restored.remove(0)
        assert np.flatnonzero(restored.select(parse({"n": 99}))).tolist() == [0]
        assert restored.select(parse({"session_id": "s1"})).sum() == 5
        assert restored.ids(restored.neighbours(restored.rows(["m7\n\u00e9"]), 1)[0]) == [
            "m5\n\u00e9",
            "m7\n\u00e9",
            "new",
        ]

    def test_an_empty_roster_comes_back_empty(self) -> None:
        restored = self.filled()
        restored.restore(Roster().dump())
        assert len(restored) == 0
        assert restored.select(parse({"n": 1})).tolist() == []

    @pytest.mark.parametrize("change", [{"format": 0}, {"columns": ["number"]}, {"numbers": np.zeros((16, 3))}])
    def test_what_does_not_fit_is_refused(self, change: dict[str, Any]) -> None:
        with pytest.raises(IndexCorrupt):
            Roster().restore(self.filled().dump() | change)


def test_values_that_nothing_bears_are_dropped() -> None:
    roster = roster_of(memory("a", title="first"), memory("b", title="stays"))
    for n in range(3_000):
        roster.replace(0, memory("a", title=f"title {n}"))
    assert roster.nbytes < 1_000_000
    assert roster.select(parse({"title": "stays"})).tolist() == [False, True]
    assert roster.select(parse({"title": "title 2999"})).tolist() == [True, False]
    assert roster.select(parse({"title": "first"})).tolist() == [False, False]
