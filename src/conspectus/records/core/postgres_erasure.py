"""Erasure of deleted rows from the files of PostgreSQL."""

import re
import time
from typing import Any, Final

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import ProgrammingError

from conspectus.errors import StorageBusy

_PAUSE_SECONDS: Final = 0.02
_CLEARS_STATISTICS: Final = (18,)
_NO_SUCH_TABLE: Final = "42P01"
_NOW: Final = "SELECT CAST(pg_current_xact_id() AS text)"
_READERS: Final = """
SELECT pg_snapshot_xmin(pg_current_snapshot()) <= CAST('{}' AS xid8)
OR EXISTS (SELECT FROM pg_stat_activity WHERE coalesce(datname, current_database()) = current_database()
  AND pid <> pg_backend_pid() AND age(backend_xmin) >= age(CAST(CAST('{}' AS xid8) AS xid)))
OR EXISTS (SELECT FROM pg_replication_slots
  WHERE greatest(age(xmin), age(catalog_xmin)) >= age(CAST(CAST('{}' AS xid8) AS xid)))
"""
"""Whether deleted rows must be kept: for a transaction of any database of the server, prepared ones included,
for a snapshot in this database, or for a replica.
"""
_UNKNOWN: Final = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND query = '<insufficient privilege>'
"""
"""Sessions of other users, whose snapshots are hidden from this one."""
_KEPT: Final = re.compile(r"\d+")
_OURS: Final = """
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname = ANY (current_schemas(false)) AND pg_table_is_visible(c.oid)
AND pg_has_role(c.relowner, 'USAGE') AND c.relname !~ '^index_[0-9a-f]+_'
"""
"""The tables of the records, in any schema of the search path. Indexes replace their own tables."""
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
"""A role that does not own the database gets a warning instead of the statistics."""
_CLEAR: Final = f"""
SELECT pg_clear_attribute_stats(schemaname, tablename, attname, inherited) FROM pg_stats
WHERE (schemaname, tablename) IN (SELECT n.nspname, c.relname {_OURS})
"""


def erase(connection: Connection, *, busy_seconds: float) -> None:
    """Rewrite every table of the records, once no reader sees what was deleted. Raises StorageBusy.

    Each wait, for readers and for each table, may take `busy_seconds`. When this returns, no transaction saw
    what was deleted when its tables were rewritten; where sessions of other users hide that, the server said
    that it kept no deleted row. The connection must not be in a transaction. No lock wait or setting is left
    to the session, which a pooler may give to others between two statements.
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
    """Wait until no transaction sees what was deleted before this call. Raises StorageBusy."""
    give_up = time.monotonic() + busy_seconds
    now = connection.exec_driver_sql(_NOW).scalar_one()
    readers = _READERS.format(now, now, now)
    while connection.exec_driver_sql(readers).scalar_one():
        _wait(give_up)


def _erase_statistics(connection: Connection, *, busy_seconds: float) -> None:
    """Rewrite the statistics, which contain the most common values of columns."""
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
    """Return whether the table was rewritten without what was deleted, or is gone; not while it is in use."""
    dead_rows: list[int] = []

    def note(notice: psycopg.errors.Diagnostic) -> None:
        # The server tells how many deleted rows it kept, in any language first.
        number = _KEPT.search(notice.message_detail or "")
        if notice.severity_nonlocalized == "INFO" and number is not None:
            dead_rows.append(int(number[0]))

    driver: Any = connection.connection.driver_connection
    driver.add_notice_handler(note)
    try:
        connection.exec_driver_sql(f"VACUUM (FULL, VERBOSE, SKIP_LOCKED) {table}")
    except ProgrammingError as fault:
        if getattr(fault.orig, "sqlstate", None) != _NO_SUCH_TABLE:
            raise
        return True
    finally:
        driver.remove_notice_handler(note)
    if connection.exec_driver_sql(file).scalar_one() == before:
        return False
    if analyze:
        connection.exec_driver_sql(f"ANALYZE (SKIP_LOCKED) {table}")
    return dead_rows[-1:] == [0] or not connection.exec_driver_sql(_UNKNOWN).scalar_one()


def _wait(give_up: float) -> None:
    if time.monotonic() > give_up:
        raise StorageBusy(
            "a reader or a writer, in any database of this server, still uses deleted data or may see it; end"
            " its transaction (pg_stat_activity, pg_prepared_xacts), or wait: the erasure goes on by itself"
        )
    time.sleep(_PAUSE_SECONDS)
