"""Run by Alembic: migrate over the connection that was given, inside its transaction."""

from alembic import context

from conspectus.records.tables.core import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
