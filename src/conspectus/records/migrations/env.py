"""Run by Alembic: migrate over the connection that was handed in, inside its transaction."""

from alembic import context

from conspectus.records import account_tables, alert_tables, job_tables
from conspectus.records.tables import schema

EVERY = (account_tables, alert_tables, job_tables)
"""Importing a module of tables adds them to the schema."""

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=schema,
    transactional_ddl=True,
)
with context.begin_transaction():
    context.run_migrations()
