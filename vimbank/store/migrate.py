"""Brings a store to the newest schema. Imported only when that is needed: Alembic is slow to load."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection

from vimbank.errors import ConfigError

__all__ = ["upgrade"]


def upgrade(connection: Connection, found: str | None) -> None:
    """Run what is missing after schema ``found`` (None: empty), in the connection's transaction.

    Raises: ConfigError: this code does not know that schema; nothing was changed.
    """
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    config.attributes["connection"] = connection
    if found is not None:
        try:
            ScriptDirectory.from_config(config).get_revision(found)
        except CommandError as exc:
            raise ConfigError(
                f"the store has schema {found}, which this version of vimbank does not know: use a newer vimbank"
            ) from exc
    command.upgrade(config, "head")
