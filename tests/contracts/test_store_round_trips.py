"""Writes on PostgreSQL share round trips, and are still undone together."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from tests.contracts.backends import SHARED, new_url
from tests.contracts.store_data import ALICE, JAN, add, live_ids, prepared
from vimbank.domain.models import MemoryState, Scope, StateChange
from vimbank.errors import BackendRejected
from vimbank.store.connections import Connections
from vimbank.store.engine import open_engine
from vimbank.store.sql import SqlStore

INSERT = {"sqlite": "INSERT INTO encoders VALUES (?, ?)", "postgresql": "INSERT INTO encoders VALUES (%s, %s)"}
COUNT = "SELECT count(*) FROM encoders"


@pytest.fixture(params=SHARED)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    return open_engine(new_url(request.param, tmp_path), busy_timeout_s=30.0)


@pytest.fixture
def connections(engine: Engine) -> Iterator[Connections]:
    kept = Connections(engine)
    yield kept
    kept.close()


def count(connections: Connections) -> int:
    def ask(cursor: Any) -> int:
        cursor.execute(COUNT)
        return int(cursor.fetchone()[0])

    return connections.read(ask)


class TestWriting:
    def test_a_statement_sees_those_before_it(self, engine: Engine, connections: Connections) -> None:
        with connections.writing() as cursor:
            cursor.executemany(INSERT[engine.dialect.name], [(number, str(number)) for number in range(1, 4)])
            cursor.execute(COUNT)
            assert cursor.fetchone()[0] == 3
            cursor.execute("DELETE FROM encoders WHERE number = 1")
            cursor.execute("SELECT number FROM encoders ORDER BY number")
            assert [cursor.fetchone()[0], *(row[0] for row in cursor.fetchall())] == [2, 3]
        assert count(connections) == 2

    def test_more_than_wait_together_are_all_written(self, engine: Engine, connections: Connections) -> None:
        with connections.writing() as cursor:
            for number in range(1_000):
                cursor.execute(INSERT[engine.dialect.name], (number, str(number)))
            cursor.execute(COUNT)
            assert cursor.fetchone()[0] == 1_000
        assert count(connections) == 1_000

    @pytest.mark.parametrize("asked", [False, True], ids=["at the end", "at the next question"])
    def test_an_error_undoes_all_and_the_next_writes(
        self, engine: Engine, connections: Connections, asked: bool
    ) -> None:
        def write() -> None:
            with connections.writing() as cursor:
                for number in (1, 2, 2, 3):
                    cursor.execute(INSERT[engine.dialect.name], (number, f"{number} {asked}"))
                if asked:
                    cursor.execute(COUNT)
                    cursor.fetchone()

        with pytest.raises(BackendRejected) as told:
            write()
        assert told.tb is not None  # its frames hold what they were at work on
        assert count(connections) == 0
        with connections.writing() as cursor:
            cursor.execute(INSERT[engine.dialect.name], (1, "one"))
        assert count(connections) == 1

    @pytest.mark.services
    def test_the_server_knows_that_a_silent_writer_is_idle(self, tmp_path: Path) -> None:
        """Else one that is stopped amid its writes would lock out all others for as long as it is."""
        store = open_engine(new_url("postgresql", tmp_path), busy_timeout_s=30.0)
        connections = Connections(store)

        def states(cursor: Any) -> list[str]:
            cursor.execute("SELECT state FROM pg_stat_activity WHERE datname = current_database() AND pid = %s", [pid])
            return [row[0] for row in cursor.fetchall()]

        with connections.writing() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            pid = cursor.fetchone()[0]
            cursor.execute(INSERT["postgresql"], (1, "one"))
            assert connections.read(states) == ["idle in transaction"]
            cursor.execute(COUNT)
            cursor.fetchone()
            assert connections.read(states) == ["idle in transaction"]
        connections.close()


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[tuple[SqlStore, Callable[[], int]]]:
    """A store on PostgreSQL, and how many answers its server has finished, by libpq's own trace of the protocol."""
    engine = open_engine(new_url("postgresql", tmp_path), busy_timeout_s=30.0)
    trace = tmp_path / "trace"
    with trace.open("w") as file:
        event.listen(engine, "connect", lambda connection, _: connection.pgconn.trace(file.fileno()))
        store = SqlStore(engine)
        yield store, lambda: trace.read_text().count("\tReadyForQuery\t")
        store.close()


@pytest.mark.services
class TestRoundTrips:
    def test_of_a_scope_of_100_memories(self, counted: tuple[SqlStore, Callable[[], int]]) -> None:
        store, answers = counted
        add(store, *(prepared(f"memory {number}") for number in range(100)))
        before = answers()
        assert store.delete_scope(Scope("t", "alice"), actor="test", now=JAN) == 100
        assert 0 < answers() - before <= 20
        assert live_ids(store, ALICE) == []

    def test_of_100_moves(self, counted: tuple[SqlStore, Callable[[], int]]) -> None:
        store, answers = counted
        ids = [each.id for each in add(store, *(prepared(f"memory {number}") for number in range(100)))]
        before = answers()
        changes = [StateChange(id=name, to=MemoryState.ARCHIVED) for name in ids]
        results = store.change_states(changes, tenant="t", actor="test", now=JAN)
        assert not any(isinstance(each, Exception) for each in results)
        assert 0 < answers() - before <= 20
