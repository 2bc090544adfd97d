"""What only the SQL store has: its file, its schema, its engine's errors, its query plans."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import vimbank.store.migrations
from tests.contracts.store_data import ALICE, FEB, JAN, MINI, add_one, live_ids, prepared, vector
from vimbank.domain.models import ListQuery, MemoryDraft
from vimbank.errors import BackendRejected, BackendUnavailable, ConfigError
from vimbank.ports import Embedded, EncoderIdentity
from vimbank.store import tables
from vimbank.store.changes import PLAIN_KIND
from vimbank.store.engine import open_engine
from vimbank.store.rows import dump_tokens, load_tokens
from vimbank.store.sql import SqlStore
from vimbank.store.statements import Statements


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "made.db"
    store = SqlStore.open(f"sqlite:///{path}")
    for place in range(20):
        add_one(store, f"text {place}")
    store.close()
    return path


@pytest.fixture
def file(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made, tmp_path / "store.db"))


@pytest.fixture
def store(file: Path) -> Iterator[SqlStore]:
    opened = SqlStore.open(f"sqlite:///{file}")
    yield opened
    opened.close()


class TestFile:
    def test_case_5_a_restart_keeps_everything_and_reuses_no_id(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path / 'store.db'}"

        def reopened() -> SqlStore:
            return SqlStore.open(url)

        store = reopened()
        first, second = add_one(store, "A"), add_one(store, "B")
        store.delete("t", [second], actor="test", now=FEB)
        store.close()
        store = reopened()
        third = add_one(store, "C", now=JAN)
        store.close()
        store = reopened()
        assert [(memory.id, memory.text) for memory in store.page(ListQuery(tenant="t")).items] == [
            (first, "A"),
            (third, "C"),
        ]
        assert third not in (first, second)
        assert [entry.new_text for entry in store.history("t", third)] == ["C"]
        assert [entry.old_text for entry in store.history("t", second)] == [None, "B"]
        store.close()

    def test_a_closed_store_refuses(self, file: Path) -> None:
        store = SqlStore.open(f"sqlite:///{file}")
        store.close()
        store.close()
        for call in (store.state, lambda: store.get("t", ["x"]), lambda: add_one(store, "x")):
            with pytest.raises(BackendRejected, match="closed"):
                call()

    def test_closing_leaves_one_file(self, file: Path) -> None:
        store = SqlStore.open(f"sqlite:///{file}")
        add_one(store, "more")
        assert store.disk_bytes() > file.stat().st_size
        store.close()
        assert [path.name for path in file.parent.iterdir()] == [file.name]

    def test_writes_are_synced_in_wal_mode(self, store: SqlStore) -> None:
        with store._connections.reading() as connection:
            found = [
                connection.exec_driver_sql(f"PRAGMA {name}").scalar_one()
                for name in ("journal_mode", "synchronous", "foreign_keys")
            ]
        assert found == ["wal", 2, 1]


class TestFaults:
    def test_a_lock_held_by_another_process_is_unavailable(self, file: Path) -> None:
        store = SqlStore.open(f"sqlite:///{file}", busy_timeout_s=0.05)
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(BackendUnavailable, match="locked"):
            add_one(store, "x")
        assert store.page(ListQuery(tenant="t")).total == 20
        other.execute("ROLLBACK")
        other.close()
        add_one(store, "x")
        store.close()

    def test_a_full_disk_is_unavailable_and_nothing_is_half_written(self, store: SqlStore) -> None:
        add_one(store, "before")
        writer = store._connections._writer
        assert writer is not None
        pages = writer.exec_driver_sql("PRAGMA page_count").scalar_one()
        writer.exec_driver_sql(f"PRAGMA max_page_count={pages}")
        writer.rollback()
        with pytest.raises(BackendUnavailable, match="disk is full"):
            store.add([prepared("x" * 100_000)], actor="test", now=JAN)
        assert store.page(ListQuery(tenant="t")).total == 21
        add_one(store, "after")
        assert store.state().revision == 22

    def test_a_read_only_file_is_unavailable(self, file: Path) -> None:
        with pytest.raises(BackendUnavailable, match="read-only"):
            add_one(SqlStore(open_engine(f"sqlite:///file:{file}?mode=ro&uri=true", busy_timeout_s=1)), "x")

    def test_a_missing_folder_is_unavailable(self, tmp_path: Path) -> None:
        with pytest.raises(BackendUnavailable, match="cannot be opened"):
            SqlStore.open(f"sqlite:///{tmp_path / 'no' / 'store.db'}")

    def test_case_1_half_a_file_is_refused_and_left_alone(self, file: Path) -> None:
        whole = file.read_bytes()
        file.write_bytes(whole[: len(whole) // 2])
        with pytest.raises(BackendRejected, match="damaged"):
            SqlStore.open(f"sqlite:///{file}").page(ListQuery(tenant="t"))
        assert file.read_bytes() == whole[: len(whole) // 2]

    def test_another_file_in_its_place_is_refused_and_left_alone(self, tmp_path: Path) -> None:
        file = tmp_path / "store.db"
        file.write_text("a letter to my aunt, long enough to be read as a header " * 50)
        before = file.read_bytes()
        with pytest.raises(BackendRejected, match="no database"):
            SqlStore.open(f"sqlite:///{file}")
        assert file.read_bytes() == before

    @pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "nonsense", "nodialect://x", ""])
    def test_an_unusable_url_is_a_config_error(self, url: str) -> None:
        with pytest.raises(ConfigError, match=r"store\.url"):
            SqlStore.open(url)


class TestSchema:
    def test_the_newest_migration_is_the_one_the_code_expects(self) -> None:
        config = Config()
        config.set_main_option("script_location", next(iter(vimbank.store.migrations.__path__)))
        assert ScriptDirectory.from_config(config).get_heads() == [tables.SCHEMA_VERSION]

    def test_migrations_lead_to_the_tables(self, file: Path) -> None:
        with open_engine(f"sqlite:///{file}", busy_timeout_s=1).connect() as connection:
            context = MigrationContext.configure(connection, opts={"compare_type": True})
            assert compare_metadata(context, tables.metadata) == []

    def test_partial_indexes_are_those_of_the_tables(self, file: Path) -> None:
        with open_engine(f"sqlite:///{file}", busy_timeout_s=1).connect() as connection:
            rows = connection.exec_driver_sql("SELECT name, sql FROM sqlite_master WHERE type = 'index'").fetchall()
        found = {name: sql.partition(" WHERE ")[2] for name, sql in rows if name.startswith("memories_")}
        wanted = {
            str(index.name): str(index.dialect_options["sqlite"]["where"])
            for index in tables.memories.indexes
            if index.dialect_options["sqlite"]["where"] is not None
        }
        assert {name: where for name, where in found.items() if where} == wanted

    def test_a_newer_schema_is_refused_and_left_alone(self, file: Path) -> None:
        raw = sqlite3.connect(file)
        raw.execute("UPDATE alembic_version SET version_num = '9999'")
        raw.commit()
        with pytest.raises(ConfigError, match=r"schema 9999.*newer vimbank"):
            SqlStore.open(f"sqlite:///{file}")
        assert raw.execute("SELECT version_num FROM alembic_version").fetchall() == [("9999",)]
        raw.close()

    def test_a_store_that_is_up_to_date_opens_without_alembic(self, file: Path) -> None:
        code = f"import sys; from vimbank.store.sql import SqlStore; SqlStore.open('sqlite:///{file}').close()"
        check = "; assert 'alembic' not in sys.modules, 'loaded'"
        assert subprocess.run([sys.executable, "-c", code + check], check=False).returncode == 0


class TestPlans:
    """Each query that runs often goes by the index that was made for it."""

    @pytest.mark.parametrize(
        ("name", "index"),
        [
            ("by_id", "memories_id"),
            ("by_key", "memories_key"),
            ("by_event", "memories_event"),
            ("twins", "memories_content"),
            ("changes", "memories_revision"),
            ("partition_changes", "memories_partition_revision"),
            ("live", "memories_partition_state"),
            ("last_position", "memories_session"),
        ],
    )
    def test_plan(self, store: SqlStore, name: str, index: str) -> None:
        with store._connections.reading() as connection:
            statement = getattr(Statements(connection.dialect), name)
            values = dict.fromkeys(statement._names, 1)
            rows = connection.connection.cursor().execute(f"EXPLAIN QUERY PLAN {statement.sql}", statement.bind(values))
            plan = [row[3] for row in rows.fetchall()]
        assert f"INDEX {index} (" in plan[0]
        assert not any("TEMP B-TREE" in step for step in plan), plan

    @pytest.mark.parametrize(
        ("name", "index"),
        [
            ("by_ids", "memories_id (tenant=? AND id=?)"),
            ("recalled", "memories_id (tenant=? AND id=?)"),
            ("parts", "memories_parent (tenant=? AND user_id=? AND bank=? AND parent_id=?)"),
            ("vectors", "sqlite_autoindex_embeddings_1 (number=? AND encoder=?)"),
        ],
    )
    def test_what_is_read_together_goes_by_its_index(self, store: SqlStore, name: str, index: str) -> None:
        with store._connections.reading() as connection:
            statement, size = getattr(Statements(connection.dialect), name)(10)
            values = dict.fromkeys(statement._names, "x")
            rows = connection.connection.cursor().execute(f"EXPLAIN QUERY PLAN {statement.sql}", statement.bind(values))
            [step] = [row[3] for row in rows.fetchall()]
        assert size == 16
        assert f"INDEX {index}" in step


class TestEncoderAcrossProcesses:
    def test_a_process_with_the_old_encoder_is_told_to_restart(self, tmp_path: Path) -> None:
        url = f"sqlite:///{tmp_path / 'store.db'}"
        other = EncoderIdentity("other", "1", 4)
        old, new = SqlStore.open(url), SqlStore.open(url)
        old.claim_encoder(MINI)
        name = add_one(old, "tea")
        new.put_embeddings(other, [(memory, Embedded(vector("x"))) for memory in new.missing_embeddings(other, 9)])
        new.switch_encoder(other)
        for call in (
            lambda: add_one(old, "x"),
            lambda: live_ids(old),
            lambda: old.changes(0, limit=9),
            lambda: old.as_of(ALICE, FEB),
        ):
            with pytest.raises(ConfigError, match="restart"):
                call()
        assert old.delete("t", [name], actor="test", now=FEB) == [name]
        assert live_ids(new) == []
        old.close()
        new.close()


class TestTokenVectors:
    @pytest.mark.parametrize("shape", [(0, 4), (1, 1), (3, 128)])
    def test_within_half_a_step(self, shape: tuple[int, int]) -> None:
        rows = np.random.default_rng(1).uniform(-1, 1, shape).astype(np.float32)
        found = load_tokens(dump_tokens(rows))
        assert found.shape == shape
        assert found.dtype == np.float32
        steps = np.abs(rows).max(axis=1, initial=0)[:, None] / 254
        assert (np.abs(found - rows) <= steps * 1.001).all()

    def test_by_hand(self) -> None:
        # The largest number is 127 steps: 0.5 / 1.27 * 127 = 50 steps; a row of zeros stays one.
        rows = np.array([[1.27, 0.5, -1.27], [0, 0, 0]], dtype=np.float32)
        blob = dump_tokens(rows)
        assert len(blob) == 8 + 2 * 4 + 2 * 3
        assert blob[16:] == bytes([127, 50, 129, 0, 0, 0])
        np.testing.assert_allclose(load_tokens(blob), rows, atol=1e-6)


def test_the_kind_of_a_plain_memory_is_that_of_a_draft() -> None:
    assert MemoryDraft(tenant="t", user_id="u", bank="b", text="x").kind == PLAIN_KIND
