"""What is kept or let go as one, by hand."""

from collections.abc import Sequence

import numpy as np

from vimbank.domain.curves import Traces
from vimbank.domain.units import heads, units

NAN = np.nan


def heads_of(
    ids: Sequence[str], parents: Sequence[str | None], archived: Sequence[int] = (), expires: Sequence[float] = ()
) -> list[int]:
    count = len(ids)
    found = heads(
        ids,
        parents,
        np.array(archived or [0] * count, dtype=np.bool_),
        np.array(expires or [NAN] * count, dtype=np.float64),
    )
    return [int(row) for row in found]


class TestHeads:
    def test_parts_of_parts_have_the_first_parent(self) -> None:
        assert heads_of(["run", "step", "note", "part"], [None, "run", None, "step"]) == [0, 0, 2, 0]

    def test_an_unknown_parent_is_none(self) -> None:
        assert heads_of(["a", "b"], ["gone", None]) == [0, 1]

    def test_in_another_state_it_is_its_own(self) -> None:
        assert heads_of(["run", "one", "two"], [None, "run", "run"], archived=[0, 1, 0]) == [0, 1, 0]

    def test_what_expires_earlier_is_its_own(self) -> None:
        parents = [None, "run", "run", "run"]
        assert heads_of(["run", "a", "b", "c"], parents, expires=[50, 49, 50, NAN]) == [0, 1, 0, 0]

    def test_a_ring_ends(self) -> None:
        assert len(heads_of(["a", "b", "c"], ["b", "c", "a"])) == 3

    def test_nothing(self) -> None:
        assert heads_of([], []) == []


def test_a_unit_is_as_alive_as_the_best_of_its_parts() -> None:
    made = units(
        np.array([0, 0, 2]),
        archived=np.array([True, True, False]),
        created_at=np.array([10.0, 20.0, 30.0]),
        updated_at=np.array([11.0, 21.0, 31.0]),
        recalled_at=np.array([NAN, 15.0, NAN]),
        expires_at=np.array([99.0, 100.0, NAN]),
        importance=np.array([0.25, NAN, NAN]),
        information=np.array([0.2, 0.6, NAN]),
        pinned=np.array([False, True, False]),
        traces=Traces(np.array([1.0, 4.0, 2.0]), np.array([9.0, NAN, NAN])),
        lasting=np.array([0.1, 0.4, 0.2]),
    )
    columns = made.columns
    assert made.rows.tolist() == [0, 2]
    assert columns.created_at.tolist() == [20.0, 30.0]
    assert columns.pinned.tolist() == [True, False]
    assert columns.traces.strength.tolist() == [4.0, 2.0]
    assert np.isnan(columns.traces.stability_days).all(), "strength and stability are those of one part"
    for column, expected in (
        (columns.recalled_at, [15.0, NAN]),
        (columns.expires_at, [99.0, NAN]),
        (columns.archived_at, [21.0, NAN]),
        (columns.importance, [0.25, NAN]),
        (columns.information, [0.6, NAN]),
    ):
        assert np.array_equal(column, expected, equal_nan=True)
