"""The schema of a store: which one it has, and its way to the newest."""

import importlib
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, inspect, text

from vimbank.store.engine import WRITING, lock_schema, open_engine, translated
from vimbank.store.tables import SCHEMA_VERSION

__all__ = ["Migration", "ensure", "found_in", "migrate_store"]


@dataclass(frozen=True, slots=True)
class Migration:
    """The schema that a store had (None: it was empty), and the one it has now."""

    former: str | None
    current: str

    @property
    def changed(self) -> bool:
        """Whether anything had to be done."""
        return self.former != self.current


def migrate_store(url: str, *, busy_timeout_s: float = 30.0) -> Migration:
    """Bring the store at ``url`` to the newest schema, made where there is none. Doing it twice changes nothing.

    Raises: ConfigError: unusable URL, or a schema newer than this code. BackendUnavailable, BackendRejected.
    """
    engine = open_engine(url, busy_timeout_s=busy_timeout_s)
    try:
        return ensure(engine)
    finally:
        engine.dispose()


def ensure(engine: Engine) -> Migration:
    """``migrate_store`` on an engine; any number of processes may do so at once."""
    with translated(engine):
        with engine.connect() as connection:
            if found_in(connection) == SCHEMA_VERSION:
                return Migration(SCHEMA_VERSION, SCHEMA_VERSION)
        migrate = importlib.import_module("vimbank.store.migrate")  # Alembic takes longer to load than all of the store
        with engine.connect().execution_options(**WRITING) as connection, connection.begin():
            lock_schema(connection)
            found = found_in(connection)  # again: another process may have been quicker
            if found != SCHEMA_VERSION:
                migrate.upgrade(connection, found)
    return Migration(found, SCHEMA_VERSION)


def found_in(connection: Connection) -> str | None:
    """The schema of a store; None where it has none."""
    if not inspect(connection).has_table("alembic_version"):
        return None
    found: str | None = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return found
