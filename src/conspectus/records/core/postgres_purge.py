"""Leaving nothing of what was deleted in the files of tables in PostgreSQL."""

import time
from typing import Any, Final

from sqlalchemy import Connection
from sqlalchemy.exc import ProgrammingError

from conspectus.errors import StorageBusy

_PAUSE_SECONDS: Final = 0.02
_CLEARS_STATISTICS: Final = (18,)
_NO_SUCH_TABLE: Final = "42P01"
_NOW: Final = "SELECT CAST(CAST(pg_current_xact_id() AS xid) AS text)"
_READERS: Final = """
SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
AND age(backend_xmin) >= age(CAST('{}' AS xid))
"""
_OURS: Final = """
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname = ANY (current_schemas(false)) AND pg_table_is_visible(c.oid)
AND pg_has_role(c.relowner, 'USAGE') AND c.relname !~ '^index_[0-9a-f]+_'
"""
"""The records' tables, in whichever schema of the search path. An index replaces its own tables."""
_TABLES: Final = f"""
SELECT CAST(c.oid AS bigint),
    quote_ident(n.nspname) || '.' || quote_ident(c.relname), pg_relation_filenode(c.oid)
{_OURS}
"""
_FILE: Final = "SELECT pg_relation_filenode({})"
_STATISTICS: Final = "pg_catalog.pg_statistic"
_MAY_REWRITE: Final = (
    "SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()"
)
"""Who is not the database's owner is refused the statistics with a warning."""
_CLEAR: Final = f"""
SELECT pg_clear_attribute_stats(schemaname, tablename, attname, inherited) FROM pg_stats
WHERE (schemaname, tablename) IN (SELECT n.nspname, c.relname {_OURS})
"""


def erase(connection: Connection, *, busy_seconds: float) -> None:
    """Rewrite every table of the records, once no reader sees what was deleted. Raises StorageBusy.

    Each wait, for readers and for each table, may take `busy_seconds`.
    The connection must not be in a transaction. Neither a wait for a lock nor a setting is left to the
    session, which a pooler may have given to others between two statements.
    """
    _wait_for_readers(connection, busy_seconds=busy_seconds)
    if (connection.dialect.server_version_info or ()) >= _CLEARS_STATISTICS:
        connection.exec_driver_sql(_CLEAR)
    for number, table, file in connection.exec_driver_sql(_TABLES).all():
        give_up = time.monotonic() + busy_seconds
        while not _rewritten(connection, table, _FILE.format(number), before=file):
            _wait(give_up)
    _erase_statistics(connection, busy_seconds=busy_seconds)


def _wait_for_readers(connection: Connection, *, busy_seconds: float) -> None:
    """Return once nobody sees what was deleted before this call. Raises StorageBusy."""
    give_up = time.monotonic() + busy_seconds
    readers = _READERS.format(connection.exec_driver_sql(_NOW).scalar_one())
    while connection.exec_driver_sql(readers).scalar_one():
        _wait(give_up)


def _erase_statistics(connection: Connection, *, busy_seconds: float) -> None:
    """What columns held most often is kept in plain words, and replaced as their tables are rewritten."""
    if not connection.exec_driver_sql(_MAY_REWRITE).scalar_one():
        connection.exec_driver_sql(f"VACUUM (FULL, SKIP_LOCKED) {_STATISTICS}")
        return
    _wait_for_readers(connection, busy_seconds=busy_seconds)
    give_up = time.monotonic() + busy_seconds
    file = _FILE.format(f"'{_STATISTICS}'")
    before = connection.exec_driver_sql(file).scalar_one()
    while not _rewritten(connection, _STATISTICS, file, before=before, analyze=False):
        _wait(give_up)


def _rewritten(connection: Connection, table: str, file: str, *, before: Any, analyze: bool = True) -> bool:
    """Whether the table lies in another file than before, or is gone; it is not where somebody uses it."""
    try:
        connection.exec_driver_sql(f"VACUUM (FULL, ANALYZE {analyze}, SKIP_LOCKED) {table}")
    except ProgrammingError as fault:
        if getattr(fault.orig, "sqlstate", None) != _NO_SUCH_TABLE:
            raise
        return True
    return bool(connection.exec_driver_sql(file).scalar_one() != before)


def _wait(give_up: float) -> None:
    if time.monotonic() > give_up:
        raise StorageBusy("a reader or a writer still uses what was deleted; ask again")
    time.sleep(_PAUSE_SECONDS)
