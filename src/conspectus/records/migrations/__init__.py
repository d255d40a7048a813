"""The history of the tables, run by Alembic; imported only when an upgrade is needed."""

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import Connection

from conspectus.errors import StorageError


def upgrade(connection: Connection, *, version: str) -> None:
    """Run the migrations up to `version` inside the connection's open transaction.

    Raises StorageError if no migration has the stored version.
    """
    config = Config()
    config.set_main_option("script_location", "conspectus.records:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    try:
        command.upgrade(config, version)
    except CommandError as fault:
        raise StorageError(f"the version of the records is damaged: {fault}; restore a backup") from fault
