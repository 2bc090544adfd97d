"""What only PostgreSQL has: sessions that end, its errors by SQLSTATE, its plans, its locks."""

import os
import re
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.engine import make_url
from sqlalchemy.pool import NullPool

import vimbank.store.migrations
from tests.contracts.postgres import empty_store, new_database
from tests.contracts.store_data import ALICE, FEB, add, add_one, live_ids, prepared
from vimbank.domain.models import ListQuery, MemoryDraft, MemoryPatch, Partition, Query, Scope
from vimbank.errors import BackendError, BackendRejected, BackendUnavailable, ConfigError, InvalidInput
from vimbank.service import MemoryService
from vimbank.settings import Settings
from vimbank.store import postgresql, tables
from vimbank.store.connections import MOST_READERS
from vimbank.store.engine import open_engine, parsed_url, translated
from vimbank.store.schema import Migration, migrate_store
from vimbank.store.sql import SqlStore
from vimbank.store.statements import Statement, Statements
from vimbank.wiring import open_service

pytestmark = pytest.mark.services


@pytest.fixture
def url() -> str:
    return empty_store()


@pytest.fixture
def store(url: str) -> Iterator[SqlStore]:
    opened = SqlStore.open(url, busy_timeout_s=5)
    yield opened
    opened.close()


@pytest.fixture
def outside(url: str) -> Iterator[Connection]:
    """A session that is not the store's."""
    engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        yield connection


def downgrade(url: str, version: str) -> None:
    """Take the schema back to an earlier version's."""
    config = Config()
    config.set_main_option("script_location", next(iter(vimbank.store.migrations.__path__)))
    with create_engine(url, poolclass=NullPool).begin() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, version)


def end_all_others(outside: Connection) -> int:
    """Do to the store's sessions what a restart of the server does; how many there were."""
    query = (
        "SELECT count(pg_terminate_backend(pid, 5000)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )
    return int(outside.exec_driver_sql(query).scalar_one())


class TestUrl:
    @pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+psycopg"])
    def test_three_spellings_mean_psycopg(self, url: str, scheme: str) -> None:
        spelt = url.replace("postgresql+psycopg", scheme)
        assert parsed_url(spelt).drivername == "postgresql+psycopg"
        store = SqlStore.open(spelt)
        assert store.state().revision == 0
        store.close()

    @pytest.mark.parametrize("other", ["postgresql+psycopg2://x/y", "mysql://x/y", "postgresql+asyncpg://x/y"])
    def test_other_drivers_and_engines_are_config_errors(self, other: str) -> None:
        with pytest.raises(ConfigError, match=r"store\.url: .* is unknown"):
            SqlStore.open(other)

    def test_another_encoding_is_a_config_error(self) -> None:
        with new_database() as url:
            name = f"{make_url(url).database}_latin"
            engine = create_engine(url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                connection.exec_driver_sql(f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
                try:
                    with pytest.raises(ConfigError, match="LATIN1"):
                        SqlStore.open(make_url(url).set(database=name).render_as_string(hide_password=False))
                finally:
                    connection.exec_driver_sql(f"DROP DATABASE {name} WITH (FORCE)")


class TestSessions:
    def settings(self, store: SqlStore) -> dict[str, str]:
        with store._connections.snapshot() as connection:
            names = ("synchronous_commit", "lock_timeout", "statement_timeout", "client_encoding", "application_name")
            return {name: connection.exec_driver_sql(f"SHOW {name}").scalar_one() for name in names}

    def test_commits_are_synced_and_waits_are_bounded(self, store: SqlStore) -> None:
        assert self.settings(store) == {
            "synchronous_commit": "on",
            "lock_timeout": "5s",
            "statement_timeout": "10min",
            "client_encoding": "UTF8",
            "application_name": "vimbank",
        }

    def test_a_servers_laxer_default_is_raised_and_what_the_url_says_stays(self, url: str) -> None:
        parsed = make_url(url)
        options = "-c synchronous_commit=off -c statement_timeout=7s"
        lax = parsed.update_query_dict({"options": options, "application_name": "mine"})
        store = SqlStore.open(lax.render_as_string(hide_password=False))
        found = self.settings(store)
        store.close()
        assert found["synchronous_commit"] == "on"
        assert (found["statement_timeout"], found["application_name"]) == ("7s", "mine")
        strict = parsed.update_query_dict({"options": "-c synchronous_commit=remote_apply"})
        store = SqlStore.open(strict.render_as_string(hide_password=False))
        assert self.settings(store)["synchronous_commit"] == "remote_apply"
        store.close()

    def test_snapshots_read_one_moment_and_cannot_write(self, store: SqlStore) -> None:
        add_one(store, "tea")
        with store._connections.snapshot() as connection:
            levels = [
                connection.exec_driver_sql(f"SHOW {name}").scalar_one()
                for name in ("transaction_isolation", "transaction_read_only")
            ]
        assert levels == ["repeatable read", "on"]

    def test_single_reads_leave_no_transaction_open(self, store: SqlStore, outside: Connection) -> None:
        name = add_one(store, "tea")
        store.get("t", [name])
        store.state()
        add_one(store, "coffee")
        query = (
            "SELECT DISTINCT state FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        assert outside.exec_driver_sql(query).scalars().all() == ["idle"]

    def test_no_more_readers_than_the_bound_and_the_rest_wait(self, store: SqlStore, outside: Connection) -> None:
        name = add_one(store, "tea")
        inside = threading.Semaphore(0)
        go = threading.Event()

        def read(_: int) -> int:
            with store._connections.snapshot() as connection:
                inside.release()
                assert go.wait(30)
                return int(connection.exec_driver_sql("SELECT count(*) FROM memories").scalar_one())

        with ThreadPoolExecutor(MOST_READERS + 8) as threads:
            results = threads.map(read, range(MOST_READERS + 8))
            for _ in range(MOST_READERS):
                assert inside.acquire(timeout=30)
            used = outside.exec_driver_sql(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
            ).scalar_one()
            go.set()
            assert list(results) == [1] * (MOST_READERS + 8)
        assert used <= MOST_READERS + 1
        assert store.get("t", [name])

    def test_a_reader_that_finds_no_room_is_told_to_try_again(self, url: str) -> None:
        store = SqlStore.open(url, busy_timeout_s=0.05)
        room = store._connections._room
        assert room is not None
        for _ in range(MOST_READERS):
            room.acquire()
        with pytest.raises(BackendUnavailable, match="in use"):
            store.state()
        room.release()
        assert store.state().revision == 0
        store.close()


class TestLostConnections:
    def test_readers_and_writers_get_new_ones_without_an_error(self, store: SqlStore, outside: Connection) -> None:
        name = add_one(store, "tea")
        calls: list[Callable[[], Any]] = [
            store.state,
            lambda: store.get("t", [name])[0].text,
            lambda: store.page(ListQuery(tenant="t")).total,
            lambda: live_ids(store),
            lambda: add_one(store, "tea"),
            store.disk_bytes,
        ]
        before = [call() for call in calls]
        assert [end_all_others(outside) > 0 and call() for call in calls] == before
        assert end_all_others(outside) > 0
        with ThreadPoolExecutor(4) as threads:  # several dead ones on the stack
            assert set(threads.map(lambda _: store.state(), range(20))) == {before[0]}

    def test_a_write_that_loses_its_session_midway_is_unavailable_and_undone(
        self, store: SqlStore, outside: Connection
    ) -> None:
        add_one(store, "tea")

        def write() -> None:
            with store._connections.writing() as cursor:
                send(cursor, "UPDATE counter SET revision = 99")
                end_all_others(outside)
                send(cursor, "UPDATE counter SET revision = 100")

        with pytest.raises(BackendUnavailable, match="shutting down"):
            write()
        assert store.state().revision == 1
        add_one(store, "coffee")
        assert store.state().revision == 2

    @pytest.mark.parametrize("waiting", [1, 3])
    def test_a_write_that_was_not_sent_is_not_in_doubt(
        self, store: SqlStore, outside: Connection, waiting: int
    ) -> None:
        def write() -> None:
            with store._connections.writing() as cursor:
                end_all_others(outside)
                for number in range(waiting):
                    cursor.execute(f"UPDATE counter SET generation = {number}")

        with pytest.raises(BackendUnavailable) as told:
            write()
        assert "may have been done" not in str(told.value)
        assert add_one(store, "coffee") in live_ids(store)

    def test_a_commit_that_loses_its_session_says_that_it_is_in_doubt(
        self, store: SqlStore, outside: Connection
    ) -> None:

        def write() -> None:
            with store._connections.writing() as cursor:
                send(cursor, "UPDATE counter SET generation = 7")
                end_all_others(outside)

        with pytest.raises(BackendUnavailable, match=r"may have been done or not.*idempotency key is safe"):
            write()
        assert store.state().generation == 0
        draft = replace(prepared("tea").draft, idempotency_key="k")
        first, again = (add(store, replace(prepared("tea"), draft=draft))[0] for _ in range(2))
        assert again == replace(first, duplicate=True)

    def test_a_stream_that_loses_its_session_is_unavailable(self, store: SqlStore, outside: Connection) -> None:
        add(store, *(prepared(f"text {place}") for place in range(10)))
        batches = iter(store.live(ALICE, batch=2))
        next(batches)
        end_all_others(outside)
        with pytest.raises(BackendUnavailable):
            list(batches)
        assert len(live_ids(store)) == 10

    def test_nobody_there_is_unavailable_and_the_password_stays_secret(self) -> None:
        with pytest.raises(BackendUnavailable, match="no connection") as caught:
            SqlStore.open("postgresql://ana:hush-7@127.0.0.1:1/vimbank")
        assert "hush-7" not in str(caught.value)
        assert "hush-7" not in repr(caught.value.__cause__)


class TestHungWriter:
    def test_a_writer_that_stands_still_loses_its_lock(
        self, url: str, store: SqlStore, outside: Connection, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(postgresql, "_HUNG_WRITER_MS", 100)
        other = SqlStore.open(url)

        def write() -> None:
            with store._connections.writing() as cursor:
                send(cursor, "UPDATE counter SET generation = 7")
                add_one(other, "tea")  # waits for the lock, which only the server can take away
                send(cursor, "UPDATE counter SET generation = 8")

        with pytest.raises(BackendUnavailable, match=r"stood still|no connection"):
            write()
        assert (store.state().revision, store.state().generation) == (1, 0)
        add_one(store, "coffee")
        other.close()


class TestErrors:
    def test_too_many_connections(self, url: str, outside: Connection) -> None:
        role = f"vimbank_test_{os.getpid()}"
        outside.exec_driver_sql(f"CREATE ROLE {role} LOGIN CONNECTION LIMIT 0")
        try:
            with pytest.raises(BackendUnavailable, match="too many connections"):
                SqlStore.open(make_url(url).set(username=role).render_as_string(hide_password=False))
        finally:
            outside.exec_driver_sql(f"DROP ROLE {role}")

    @pytest.mark.parametrize(
        ("state", "kind", "says"),
        [
            ("08006", BackendUnavailable, "connection was lost"),
            ("57P01", BackendUnavailable, "shutting down"),
            ("57014", BackendUnavailable, "statement timeout"),
            ("53100", BackendUnavailable, "disk is full"),
            ("53300", BackendUnavailable, "too many connections"),
            ("53400", BackendUnavailable, "lacks resources"),
            ("55P03", BackendUnavailable, "busy timeout"),
            ("40001", BackendUnavailable, "quicker"),
            ("40P01", BackendUnavailable, "deadlock"),
            ("25006", BackendUnavailable, "read-only"),
            ("58030", BackendUnavailable, "files"),
            ("XX001", BackendRejected, "damaged"),
            ("42501", BackendRejected, "privilege"),
            ("42P01", BackendRejected, "spoke"),
            ("23505", BackendRejected, "spoke"),
        ],
    )
    def test_by_sqlstate(self, store: SqlStore, state: str, kind: type[BackendError], says: str) -> None:
        with pytest.raises(kind, match=says), store._connections.writing() as cursor:
            cursor.execute(f"DO $$ BEGIN RAISE EXCEPTION 'the server spoke' USING ERRCODE = '{state}'; END $$")
        add_one(store, "tea")

    def test_a_row_locked_by_another_process(self, url: str, outside: Connection) -> None:
        store = SqlStore.open(url, busy_timeout_s=0.05)
        with outside.engine.connect().execution_options(isolation_level="READ COMMITTED") as other, other.begin():
            other.exec_driver_sql("SELECT * FROM counter FOR UPDATE")
            with pytest.raises(BackendUnavailable, match="locked by another writer"):
                add_one(store, "tea")
            assert store.state().revision == 0
        add_one(store, "tea")
        store.close()

    def test_a_read_only_database(self, url: str) -> None:
        options = make_url(url).update_query_dict({"options": "-c default_transaction_read_only=on"})
        store = SqlStore.open(options.render_as_string(hide_password=False))
        assert store.state().revision == 0
        with pytest.raises(BackendUnavailable, match="read-only"):
            add_one(store, "tea")
        store.close()

    def test_the_password_is_taken_out_of_what_the_server_says(self) -> None:
        engine = open_engine("postgresql://ana:hush-7@127.0.0.1:1/x", busy_timeout_s=1)
        error = engine.dialect.loaded_dbapi.OperationalError("could not use hush-7")
        with pytest.raises(BackendUnavailable, match=r"could not use \*\*\*"), translated(engine):
            raise error


class TestText:
    NUL = "a\x00b"

    @pytest.fixture
    def service(self, url: str, tmp_path: Path) -> Iterator[MemoryService]:
        settings = Settings.model_validate(
            {"data_dir": tmp_path, "store": {"url": url}, "encoder": {"kind": "hashing"}}
        )
        with open_service(settings) as opened:
            yield opened

    def test_what_postgresql_cannot_hold_is_cleaned(self, service: MemoryService) -> None:
        draft = MemoryDraft(
            tenant="t",
            user_id="u",
            bank="dialog",
            text=f"tea {self.NUL} \ud800",
            title=self.NUL,
            speaker=self.NUL,
            metadata={self.NUL: [self.NUL, {"x": self.NUL}]},
        )
        found = service.get("t", service.add(draft).id)
        assert (found.text, found.title, found.speaker) == ("tea ab \ufffd", "ab", "ab")
        assert found.metadata == {"ab": ["ab", {"x": "ab"}]}
        changed = service.update("t", found.id, MemoryPatch(text=f"coffee {self.NUL}", title=self.NUL))
        assert (changed.text, changed.title) == ("coffee ab", "ab")

    @pytest.mark.parametrize("field", ["user_id", "kind", "agent_id", "session_id", "id", "idempotency_key"])
    def test_or_refused_by_name(self, service: MemoryService, field: str) -> None:
        draft = MemoryDraft(tenant="t", user_id="u", bank="dialog", text="tea")
        with pytest.raises(InvalidInput, match=field):
            service.add(replace(draft, **dict[str, Any]({field: self.NUL})))

    def test_nobody_is_asked_for_it(self, service: MemoryService) -> None:
        nul = self.NUL
        calls: list[Callable[[], Any]] = [
            lambda: service.get("t", nul),
            lambda: service.history("t", nul),
            lambda: service.delete("t", nul),
            lambda: service.update("t", nul, MemoryPatch(pinned=True)),
            lambda: service.list(ListQuery(tenant="t", session_id=nul)),
            lambda: service.delete_all(Scope("t", nul)),
            lambda: service.search(Query(tenant="t", user_id=nul, text="tea")),
        ]
        for call in calls:
            with pytest.raises(InvalidInput):
                call()


class TestSchema:
    def test_migrations_lead_to_the_tables(self, outside: Connection) -> None:
        context = MigrationContext.configure(outside, opts={"compare_type": True})
        assert compare_metadata(context, tables.metadata) == []

    def test_migrating_says_from_where_to_where(self) -> None:
        with new_database() as url:
            assert migrate_store(url) == Migration(None, tables.SCHEMA_VERSION)
            assert migrate_store(url) == Migration(tables.SCHEMA_VERSION, tables.SCHEMA_VERSION)
            assert not migrate_store(url).changed

    def test_a_store_of_the_first_schema_is_migrated_once_and_works_on(self) -> None:
        with new_database() as url:
            store = SqlStore.open(url)
            name = add_one(store, "tea")
            store.close()
            downgrade(url, "0001")
            with ThreadPoolExecutor(3) as threads:
                done = sorted(threads.map(lambda _: migrate_store(url).former, range(3)), key=str)
            assert done == ["0001", tables.SCHEMA_VERSION, tables.SCHEMA_VERSION]
            store = SqlStore.open(url)
            assert [memory.text for memory in store.get("t", [name])] == ["tea"]
            add_one(store, "coffee")
            assert (store.state().revision, store.state().compacted) == (2, 0)
            assert store.integrity() == []
            store.close()

    def test_many_first_starts_at_once(self) -> None:
        with new_database() as url, ThreadPoolExecutor(6) as threads:
            done = list(threads.map(lambda _: migrate_store(url), range(6)))
        assert [each.former for each in done].count(None) == 1
        assert {each.current for each in done} == {tables.SCHEMA_VERSION}

    def test_a_newer_schema_is_refused_and_left_alone(self) -> None:
        with new_database() as url:
            migrate_store(url)
            with create_engine(url, poolclass=NullPool).begin() as connection:
                connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
            with pytest.raises(ConfigError, match=r"schema 9999.*newer vimbank"):
                SqlStore.open(url)

    def test_a_store_on_sqlite_loads_no_psycopg(self, tmp_path: Path) -> None:
        code = (
            "import sys; from vimbank.store.sql import SqlStore; "
            f"SqlStore.open('sqlite:///{tmp_path / 'x.db'}').close(); assert 'psycopg' not in sys.modules, 'loaded'"
        )
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


class TestUpkeep:
    def test_a_sound_store_and_its_size(self, store: SqlStore) -> None:
        small = store.disk_bytes()
        # More than any page left free by an earlier test holds, and nothing that a database could compress.
        add(store, *(prepared(secrets.token_hex(20_000)) for _ in range(100)))
        assert store.integrity() == []
        assert 0 < small < store.disk_bytes()

    def test_a_counter_left_behind_is_told(self, store: SqlStore, outside: Connection) -> None:
        add_one(store, "tea")
        outside.exec_driver_sql("UPDATE counter SET revision = 0")
        assert store.integrity() == [
            "counter.revision is 0, but history has 1",
            "counter.revision is 0, but memories has 1",
        ]

    def test_an_invalid_index_is_told(self, store: SqlStore, outside: Connection) -> None:
        set_valid = "UPDATE pg_index SET indisvalid = {} WHERE indexrelid = 'memories_revision'::regclass"
        outside.exec_driver_sql(set_valid.format("false"))
        try:
            assert store.integrity() == ["index memories_revision is not valid: REINDEX it"]
        finally:
            outside.exec_driver_sql(set_valid.format("true"))


def send(cursor: Any, update: str) -> None:
    """Have it done now: what gives no rows would wait for the next that does."""
    cursor.execute(f"{update} RETURNING 1")
    cursor.fetchone()


ROWS = 100_000


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with new_database() as url:
        migrate_store(url)
        engine = open_engine(url, busy_timeout_s=5)
        with create_engine(url, poolclass=NullPool).begin() as connection:
            fill(connection)
        yield engine
        engine.dispose()


class TestPlans:
    """At 100,000 memories each query that runs often goes by the index that was made for it."""

    @pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
    @pytest.mark.parametrize(
        ("name", "index"),
        [
            ("by_id", "memories_id"),
            ("by_key", "memories_key"),
            ("by_event", "memories_event"),
            ("twins", "memories_content"),
            ("changes", "memories_revision"),
            ("partition_changes", "memories_partition_revision"),
            ("last_position", "memories_session"),
        ],
    )
    def test_plan(self, engine: Engine, name: str, index: str, mode: str) -> None:
        plan = plan_of(engine, getattr(Statements(engine.dialect), name), mode)
        assert f" {index} " in plan, plan
        assert "Seq Scan" not in plan, plan

    def test_a_partition_is_streamed_in_the_order_of_its_index(self, engine: Engine) -> None:
        sql = re.sub(r"%\((\w+)\)s", lambda found: VALUES[found[1]], Statements(engine.dialect).live.sql)
        with engine.connect() as connection:
            rows = connection.exec_driver_sql(f"EXPLAIN DECLARE it CURSOR FOR {sql}").scalars().all()
        plan = "\n".join(rows)
        assert "Index Scan using memories_partition_state" in plan, plan
        assert not {"Seq Scan", "Sort", "Hash"} & set(re.findall(r"Seq Scan|Sort|Hash", plan)), plan

    @pytest.mark.parametrize("mode", ["force_custom_plan", "force_generic_plan"])
    @pytest.mark.parametrize("size", [1, 16, 512])
    @pytest.mark.parametrize(
        ("name", "index", "each"),
        [
            ("by_ids", "memories_id", "'id{}'"),
            ("recalled", "memories_id", "'id{}'"),
            ("parts", "memories_parent", "'p{}'"),
            ("vectors", "embeddings_pkey", "{}"),
        ],
    )
    def test_what_is_read_together_goes_by_its_index(
        self, engine: Engine, name: str, index: str, each: str, size: int, mode: str
    ) -> None:
        plan = plan_of(engine, getattr(Statements(engine.dialect), name)(size)[0], mode, each)
        assert index in plan, plan
        assert "Seq Scan" not in plan, plan

    def test_streaming_fetches_batch_by_batch(self, engine: Engine) -> None:
        store = SqlStore(engine)
        batches = iter(store.live(Partition("t", "u1", "dialog"), batch=100))
        sizes = [len(next(batches))]
        running = "SELECT query FROM pg_stat_activity WHERE state = 'idle in transaction' AND datname = %s"
        with create_engine(engine.url, poolclass=NullPool).connect() as connection:
            [query] = connection.exec_driver_sql(running, (engine.url.database,)).scalars()
        sizes += [len(batch) for batch in batches]
        assert "FETCH FORWARD 100" in query
        assert sizes == [100] * (ROWS // 100 // 100)
        store.close()


def fill(connection: Connection) -> None:
    """100 users with 1,000 memories each."""
    connection.exec_driver_sql(
        f"""
        INSERT INTO memories (number, tenant, id, user_id, bank, kind, text, created_at, updated_at, content_hash,
            revision, metadata, pinned, strength, recall_count, state, token_count, session_id, position, parent_id,
            event_id, idempotency_key)
        SELECT n, 't', 'id' || n, 'u' || mod(n, 100), 'dialog', 'memory', 'text ' || n, n, n, md5(n::text),
            n, '{{}}', false, 1, 0, 'active', 2, 's' || mod(n, 1000), n,
            CASE WHEN mod(n, 10) = 0 THEN 'p' || n / 50 END, CASE WHEN mod(n, 10) = 0 THEN 'e' || n END,
            CASE WHEN mod(n, 10) = 0 THEN 'k' || n END
        FROM generate_series(1, {ROWS}) AS n
        """
    )
    connection.exec_driver_sql(
        f"INSERT INTO embeddings (number, encoder, vector) "
        f"SELECT n, 0, decode(repeat('00', 256), 'hex') FROM generate_series(1, {ROWS}) n"
    )
    connection.exec_driver_sql("ANALYZE memories; ANALYZE embeddings")


VALUES = {"tenant": "'t'", "user_id": "'u1'", "bank": "'dialog'", "id": "'id7'", "key": "'k70'", "event_id": "'e70'"}
VALUES |= {"content_hash": "md5('7')", "parent_id": "'p2'", "session_id": "'s1'", "after": "99900", "limit": "500"}
VALUES |= {"encoder": "0", "number": "7"}


def plan_of(engine: Engine, statement: Statement, mode: str, each: str = "") -> str:
    """The plan of a prepared statement, made for its values or for any; ``each``: how one of many ids is written."""
    places = count(1)
    names: list[str] = []

    def place(found: re.Match[str]) -> str:
        names.append(found[1])
        return f"${next(places)}"

    prepared_sql = re.sub(r"%\((\w+)\)s", place, statement.sql)
    given = ", ".join(each.format(name[3:]) if name.startswith("id_") else VALUES[name] for name in names)
    with engine.connect() as connection:
        driver = connection.connection.cursor()
        driver.execute(f"SET plan_cache_mode = {mode}")
        driver.execute(f"PREPARE it AS {prepared_sql}")
        driver.execute(f"EXPLAIN EXECUTE it({given})")
        return "\n".join(row[0] for row in driver.fetchall())


def test_vectors_come_back_bit_by_bit(store: SqlStore) -> None:
    add_one(store, "tea")
    [change] = store.changes(0, limit=1)
    assert change.vector is not None
    assert change.vector.dtype == np.float32
    assert change.vector.tolist() == prepared("tea").embedding.vector.tolist()  # type: ignore[union-attr]
    assert store.as_of(ALICE, FEB)[0][1].tolist() == change.vector.tolist()  # type: ignore[union-attr]
