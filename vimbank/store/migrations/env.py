"""Run by Alembic; ``vimbank.store.migrate`` hands it the connection."""

from alembic import context

from vimbank.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, transactional_ddl=True)
context.run_migrations()
