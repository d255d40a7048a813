"""The connection of SQLite's own driver, for statements outside of transactions."""

import sqlite3

from sqlalchemy import Connection

from conspectus.errors import StorageError


def sqlite_driver(connection: Connection) -> sqlite3.Connection:
    """Return the connection of the driver."""
    driver = connection.connection.driver_connection
    if not isinstance(driver, sqlite3.Connection):
        raise StorageError("the database is not SQLite")
    return driver
