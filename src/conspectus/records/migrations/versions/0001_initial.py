"""Every table of the first version, from one SQL script for each database; frozen since 29 November 2026."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Run the script of the database."""
    connection = op.get_bind()
    script = Path(__file__).with_suffix(f".{connection.dialect.name}.sql")
    for statement in script.read_text("utf-8").split(";\n")[:-1]:
        connection.exec_driver_sql(statement)
