"""The roster's law: however rows came, changed and went, its columns and neighbours are those of a new one."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vimbank.domain.models import Memory, Source
from vimbank.indexes.roster import Roster

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLACES = st.tuples(st.sampled_from([None, "s1", "s2"]), st.one_of(st.none(), st.integers(0, 6)))
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.lists(PLACES, min_size=1, max_size=4)),
        st.tuples(st.just("replace"), st.tuples(st.integers(0, 50), PLACES)),
        st.tuples(st.just("remove"), st.integers(0, 50)),
        st.tuples(st.just("look"), st.none()),
    ),
    max_size=25,
)


def memory(number: int, session: str | None, position: int | None) -> Memory:
    return Memory(
        id=f"m{number}", tenant="t", user_id="u", bank="dialog", kind="turn", text="x", created_at=NOW, updated_at=NOW,
        content_hash="", revision=number, number=number, session_id=session, source=Source(position=position),
    )  # fmt: skip


@given(STEPS)
def test_neighbours_are_those_of_a_roster_made_at_once(steps: list) -> None:
    roster, standing, number = Roster(), [], 0
    for action, value in steps:
        if action == "append":
            new = [memory(number + at, *place) for at, place in enumerate(value, 1)]
            number += len(new)
            roster.append(new)
            standing += new
        elif action == "look":
            roster.neighbours(np.arange(len(standing)), 1)
        elif standing and action == "replace":
            row = value[0] % len(standing)
            changed = memory(0, *value[1])
            standing[row] = replace(standing[row], session_id=changed.session_id, source=changed.source)
            roster.replace(row, standing[row])
        elif standing:
            row = value % len(standing)
            roster.remove(row)
            standing[row] = standing[-1]
            standing.pop()
    everywhere = np.arange(len(standing))
    fresh = Roster()
    fresh.append(standing)
    wide = fresh.neighbours(everywhere, 2)
    assert roster.neighbours(everywhere, 1).tolist() == wide[:, 1:4].tolist()
    assert roster.neighbours(everywhere, 2).tolist() == wide.tolist()
    assert roster.ids(everywhere) == [each.id for each in standing]
