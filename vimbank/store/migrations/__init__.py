"""The schema's history, one module a version (Alembic)."""
