"""A store that an earlier version made is brought to the newest schema, and loses nothing."""

import re
import sqlite3
from pathlib import Path

import pytest
from alembic import command
from alembic.config import Config
from sqlalchemy import create_engine

import vimbank.store.migrations
from tests.contracts.store_data import ALICE, FEB, JAN, add_one, curve_of, live_ids
from vimbank.domain.models import RecallEntry, Signal
from vimbank.store.sql import SqlStore

TABLES = ("encoders", "memories", "embeddings", "history", "recalls", "counter")


def at_schema(version: str, path: Path) -> None:
    """An empty store as that schema has it."""
    config = Config()
    config.set_main_option("script_location", next(iter(vimbank.store.migrations.__path__)))
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, version)
    engine.dispose()


@pytest.fixture
def first_schema(tmp_path: Path) -> Path:
    """A store at schema 0001 with memories, a deletion, history and recalls."""
    source, path = tmp_path / "source.db", tmp_path / "store.db"
    store = SqlStore.open(f"sqlite:///{source}")
    ids = [add_one(store, f"text {place}") for place in range(20)]
    store.delete("t", ids[:2], actor="test", now=FEB)
    store.append([RecallEntry("t", ids[5], FEB, Signal.RETURNED)])
    store.close()
    at_schema("0001", path)
    with sqlite3.connect(path) as connection:
        connection.execute("ATTACH ? AS source", (str(source),))
        connection.execute("DELETE FROM counter")
        for table in TABLES:
            columns = ", ".join(f'"{row[1]}"' for row in connection.execute(f"PRAGMA main.table_info({table})"))
            connection.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM source.{table}")
    connection.close()
    return path


def test_the_first_schema_migrates_without_loss(first_schema: Path) -> None:
    def rows() -> dict[str, list[tuple[object, ...]]]:
        with sqlite3.connect(first_schema) as connection:
            found = {}
            for table in TABLES[:-1]:  # the columns that were there before
                named = ", ".join(f'"{name}"' for name in columns[table])
                found[table] = connection.execute(f"SELECT {named} FROM {table}").fetchall()
        connection.close()
        return found

    with sqlite3.connect(first_schema) as connection:
        columns = {
            table: [row[1] for row in connection.execute(f"PRAGMA table_info({table})")] for table in TABLES[:-1]
        }
    connection.close()
    before = rows()
    assert len(before["memories"]) == 20
    SqlStore.open(f"sqlite:///{first_schema}").close()
    assert rows() == before


def test_a_migrated_store_works_on(first_schema: Path) -> None:
    url = f"sqlite:///{first_schema}"
    store = SqlStore.open(url)
    state = store.state()
    assert (state.revision, state.compacted) == (22, 0)
    assert len(live_ids(store)) == 18
    assert store.fold(curve_of, limit=10, now=FEB) == 1
    assert store.compact(up_to=state.revision, deleted_before=FEB.replace(day=2), limit=10) == 2
    add_one(store, "new", now=JAN)
    job, _ = store.jobs.create("check", {}, queue="index", key=None, now=JAN)
    identity = store.store_id()
    store.close()
    again = SqlStore.open(url)
    assert again.jobs.get(job.id) == job
    assert (again.store_id(), again.compacted(ALICE), len(live_ids(again))) == (identity, 22, 19)
    again.close()


def test_each_store_has_an_id_of_its_own(tmp_path: Path) -> None:
    ids = set()
    for name in ("one.db", "two.db"):
        store = SqlStore.open(f"sqlite:///{tmp_path / name}")
        ids.add(store.store_id())
        store.close()
    assert len(ids) == 2
    assert all(re.fullmatch(r"[0-9a-f]{32}", each) for each in ids)


def test_the_migration_can_be_taken_back(first_schema: Path) -> None:
    SqlStore.open(f"sqlite:///{first_schema}").close()
    config = Config()
    config.set_main_option("script_location", next(iter(vimbank.store.migrations.__path__)))
    engine = create_engine(f"sqlite:///{first_schema}")
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, "0001")
    engine.dispose()
    store = SqlStore.open(f"sqlite:///{first_schema}")
    assert len(live_ids(store)) == 18
    store.close()
