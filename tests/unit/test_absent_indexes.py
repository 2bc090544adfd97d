"""A partition whose legs live elsewhere keeps its roster, and knows how many rows it has."""

import numpy as np
import pytest

from tests.elasticsearch_kit import HERE, change, tombstone
from vimbank.domain.text import analyze
from vimbank.errors import IndexCorrupt
from vimbank.indexes.absent import AbsentDense, AbsentSparse
from vimbank.indexes.partition import LocalPartition
from vimbank.indexes.sparse.postings import PostingsIndex


def _refuses(text: str) -> list[str]:
    raise AssertionError(f"nobody reads the terms of {text!r}")


def empty() -> LocalPartition:
    return LocalPartition(HERE, AbsentDense(4), AbsentSparse(), _refuses)


def filled() -> LocalPartition:
    index = empty()
    index.apply([change(n, f"tea {n}") for n in range(1, 5)])
    index.apply([change(2, "milk", revision=5), tombstone(1, 6), change(7, "rum")])
    return index


def test_rows_follow_the_roster_without_texts_or_vectors() -> None:
    index = filled()
    assert len(index) == len(index.dense) == len(index.sparse) == 4
    assert sorted(index.ids(np.arange(4))) == ["m2", "m3", "m4", "m7"]
    assert index.dense.nbytes == index.sparse.nbytes == 0


def test_saved_and_restored() -> None:
    index = empty()
    index.restore(filled().dump())
    assert len(index) == len(index.dense) == len(index.sparse) == 4


def test_a_snapshot_with_a_leg_in_it_is_another_form() -> None:
    local = LocalPartition(HERE, AbsentDense(4), PostingsIndex(), analyze)
    local.apply([change(1, "tea")])
    with pytest.raises(IndexCorrupt, match="elsewhere"):
        empty().restore(local.dump())
    with pytest.raises(IndexCorrupt):
        LocalPartition(HERE, AbsentDense(4), PostingsIndex(), analyze).restore(filled().dump())


def test_compared_with_the_store_by_what_is_there() -> None:
    index = filled()
    live = [change(2, "milk", revision=5), change(3, "tea 3"), change(4, "tea 4"), change(7, "rum")]
    assert index.compare(live) == []
    assert index.compare(live[:-1]) == [
        "roster: 4 rows, the store has 3 memories", "dense: 4 rows, the store has 3 memories",
        "sparse: 4 rows, the store has 3 memories", "m7: in the index but not in the store",
    ]  # fmt: skip
    index.sparse.append([[]])
    assert index.compare(live) == ["sparse: 5 rows, the store has 4 memories"]


def test_asking_them_is_a_mistake_of_the_program() -> None:
    index = filled()
    vector, rows = np.zeros(4, np.float32), np.arange(2)
    with pytest.raises(RuntimeError, match="another engine"):
        index.sparse.score(["tea"])
    with pytest.raises(RuntimeError, match="another engine"):
        index.dense.search(vector, allowed=None, top_k=1)
    with pytest.raises(RuntimeError, match="another engine"):
        index.dense.score(vector, rows)
    with pytest.raises(RuntimeError, match="another engine"):
        index.dense.vectors(rows)
    assert index.dense.vectors(rows[:0]).shape == (0, 4)


@pytest.mark.parametrize("leg", [AbsentDense(4), AbsentSparse()])
def test_rows_that_are_not_there(leg: AbsentDense | AbsentSparse) -> None:
    with pytest.raises(IndexError):
        leg.remove(0)
