"""Moving a store to another engine and back: nothing is lost, nothing is changed, nothing is left half-way."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import create_engine, select
from sqlalchemy.pool import NullPool

from tests.contracts.postgres import new_database
from tests.contracts.store_data import FEB, JAN, MAR, MINI, add, add_one, curve_of, patch, prepared, vector
from tests.contracts.test_store_machine import everything
from vimbank.domain.models import ListQuery, RecallEntry, Source
from vimbank.errors import BackendRejected, ConfigError, Conflict
from vimbank.ports import Embedded, PreparedDraft
from vimbank.store import copying, tables
from vimbank.store.copying import copy_store, digest
from vimbank.store.schema import migrate_store
from vimbank.store.sql import SqlStore

NewUrl = Callable[[], str]

COPIER = """
import os, sys
from vimbank.store import copying

def stop(done, total):
    if done > total // 4:
        os.kill(os.getpid(), 9)

copying._BATCH = 50
copying.copy_store(sys.argv[1], sys.argv[2], progress=stop)
"""


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a small store takes many."""
    monkeypatch.setattr(copying, "_BATCH", 50)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store where everything has happened that can."""
    path = tmp_path_factory.mktemp("copy") / "made.db"
    store = SqlStore.open(f"sqlite:///{path}")
    store.claim_encoder(MINI)
    tokens = np.eye(3, 4, dtype=np.float32)
    whole = prepared("tea", id="x", idempotency_key="k", session_id="s", source=Source(event_id="e", position=3))
    full = prepared("ü 茶 \U0001f375", metadata={"ü": [1, 0.1, None, True, {"a": -0.0}]}, importance=1 / 3, pinned=True)
    with_tokens = PreparedDraft(
        full.draft, full.content_hash, 3, Embedded(vector("tokens"), tokens), claims=[("ana", "residence")]
    )
    add(store, whole, with_tokens, prepared("one two", segments=["one", "two"], id="doc"))
    store.update(patch("x", text="coffee", valid_to=MAR), tenant="t", actor="test", now=FEB)
    store.append([RecallEntry("t", "x", FEB), RecallEntry("t", "doc:0000", FEB)])
    store.fold(curve_of, limit=1, now=FEB)
    store.delete("t", [add_one(store, "gone"), add_one(store, "gone, too", user_id="bob")], actor="test", now=FEB)
    store.compact(up_to=store.state().revision - 1, deleted_before=MAR, limit=9)
    store.jobs.create("snapshot", {"a": 1}, queue="index", key="daily", now=JAN)
    assert store.jobs.hold("scheduler", "me", lease_s=60, now=JAN)
    add(store, *(prepared(f"text {place}") for place in range(200)))
    store.close()
    return path


@pytest.fixture
def source(made: Path, tmp_path: Path) -> str:
    return f"sqlite:///{shutil.copy(made, tmp_path / 'source.db')}"


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.services)])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'target.db'}"
        return
    with new_database() as url:
        yield url


def held(url: str) -> list[Any]:
    """All that a store's readers can see."""
    store = SqlStore.open(url)
    ids = [memory.id for memory in store.page(ListQuery(tenant="t", limit=9_999)).items]
    found = [*everything(store, ids[:9], FEB), store.counts(), store.encoder_identity(), store.jobs.list(limit=9)]
    found.append({name: rows.tolist() for name, rows in store.token_vectors("t", ids).items()})
    store.close()
    return found


def digests(url: str) -> dict[str, str]:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        return {table.name: digest(connection, table) for table in tables.metadata.sorted_tables}


def is_empty(url: str) -> bool:
    with create_engine(url, poolclass=NullPool).connect() as connection:
        filled = [
            table for table in tables.metadata.sorted_tables if connection.execute(select(table).limit(1)).first()
        ]
    return {table.name for table in filled} == {"counter", "store"}


def test_there_and_back(source: str, target: str, tmp_path: Path) -> None:
    there = copy_store(source, target)
    assert there.revision == held(source)[0].revision
    assert {each.name: each.rows for each in there.tables if each.rows == 0} == {}
    assert held(target) == held(source)
    home = f"sqlite:///{tmp_path / 'home.db'}"
    assert copy_store(target, home) == there
    assert digests(home) == digests(target) == digests(source) == {each.name: each.digest for each in there.tables}


def test_the_copy_goes_on_where_its_source_stood(source: str, target: str) -> None:
    copy_store(source, target)
    old, new = SqlStore.open(source), SqlStore.open(target)
    for store in (old, new):
        add_one(store, "next", id="next")
        store.jobs.create("snapshot", {}, queue="index", key="next", now=JAN)
    assert old.get("t", ["next"]) == new.get("t", ["next"])
    assert new.add([prepared("other", idempotency_key="k")], actor="test", now=FEB)[0].__class__ is Conflict
    old.close()
    new.close()


def test_a_target_that_holds_something_is_refused_and_left_alone(source: str, target: str) -> None:
    store = SqlStore.open(target)
    name = add_one(store, "mine")
    with pytest.raises(Conflict, match="not empty"):
        copy_store(source, target)
    assert [memory.id for memory in store.page(ListQuery(tenant="t")).items] == [name]
    store.delete("t", [name], actor="test", now=FEB)
    store.close()
    with pytest.raises(Conflict, match="not empty"):
        copy_store(source, target)


def test_an_interrupted_copy_leaves_the_target_empty(source: str, target: str) -> None:
    def stop(done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_store(source, target, progress=stop)
    assert is_empty(target)
    copy_store(source, target)
    assert held(target) == held(source)


@pytest.mark.crash
def test_a_killed_copy_leaves_the_target_empty(source: str, target: str) -> None:
    copier = subprocess.run([sys.executable, "-c", COPIER, source, target], check=False)
    assert copier.returncode == -9
    assert is_empty(target)
    copy_store(source, target)
    assert digests(target) == digests(source)


def test_a_copy_that_differs_is_not_kept(source: str, target: str) -> None:
    migrate_store(target)
    # What an engine might do behind one's back.
    change = "UPDATE memories SET text = 'x' WHERE number = NEW.number; {end}"
    triggers = ["CREATE TRIGGER t AFTER INSERT ON memories WHEN NEW.number = 7 BEGIN " + change.format(end="END")]
    if target.startswith("postgresql"):
        body = change.format(end="RETURN NEW; END")
        triggers = [
            f"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {body} $$",
            "CREATE TRIGGER t AFTER INSERT ON memories FOR EACH ROW WHEN (NEW.number = 7) EXECUTE FUNCTION f()",
        ]
    with create_engine(target, poolclass=NullPool).begin() as connection:
        for trigger in triggers:
            connection.exec_driver_sql(trigger)
    with pytest.raises(BackendRejected, match="copy of memories differs"):
        copy_store(source, target)
    assert is_empty(target)


def test_what_is_written_meanwhile_is_not_in_the_copy(source: str, target: str) -> None:
    before = held(source)
    store = SqlStore.open(source)

    def write(done: int, _total: int) -> None:
        add_one(store, f"late {done}")

    report = copy_store(source, target, progress=write)
    store.close()
    assert held(target) == before
    assert held(source)[0].revision > report.revision == before[0].revision


def test_progress_reaches_its_end(source: str, target: str) -> None:
    told: list[tuple[int, int]] = []
    report = copy_store(source, target, progress=lambda done, total: told.append((done, total)))
    assert told == sorted(told)
    assert len(told) > 2
    assert {total for _, total in told} == {2 * report.rows}
    assert told[-1][0] == 2 * report.rows


class TestRefusals:
    def test_no_store_at_the_source(self, tmp_path: Path, target: str) -> None:
        with pytest.raises(ConfigError, match="there is no store"):
            copy_store(f"sqlite:///{tmp_path / 'nowhere.db'}", target)
        assert list(tmp_path.iterdir()) == []

    def test_an_empty_database_is_no_store(self, tmp_path: Path) -> None:
        (tmp_path / "empty.db").touch()
        with pytest.raises(ConfigError, match="there is no store"):
            copy_store(f"sqlite:///{tmp_path / 'empty.db'}", f"sqlite:///{tmp_path / 'new.db'}")
        assert not (tmp_path / "new.db").exists()

    def test_a_source_of_another_schema(self, source: str, tmp_path: Path) -> None:
        with create_engine(source, poolclass=NullPool).begin() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0001'")
        with pytest.raises(ConfigError, match=r"schema 0001.*vimbank store migrate"):
            copy_store(source, f"sqlite:///{tmp_path / 'new.db'}")
        assert not (tmp_path / "new.db").exists()

    def test_onto_itself(self, source: str) -> None:
        with pytest.raises(ConfigError, match="onto itself"):
            copy_store(source, source.replace("sqlite:", "sqlite:"))
        with pytest.raises(Conflict, match="not empty"):
            copy_store(source, source.replace("source.db", "./source.db"))
