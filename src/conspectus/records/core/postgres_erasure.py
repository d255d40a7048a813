"""Erasure of deleted rows from the files of PostgreSQL."""

import re
import time
from typing import Any, Final

import psycopg
from sqlalchemy import Connection
from sqlalchemy.exc import ProgrammingError

from conspectus.errors import StorageBusy
from conspectus.records.core.row_security import can_clear_statistics

_PAUSE_SECONDS: Final = 0.02
_NO_SUCH_TABLE: Final = "42P01"
_CURRENT_TRANSACTION: Final = "SELECT CAST(pg_current_xact_id() AS text)"
_IS_READ_BY_OTHERS: Final = """
SELECT pg_snapshot_xmin(pg_current_snapshot()) <= CAST('{}' AS xid8)
OR EXISTS (SELECT FROM pg_stat_activity WHERE coalesce(datname, current_database()) = current_database()
  AND pid <> pg_backend_pid() AND age(backend_xmin) >= age(CAST(CAST('{}' AS xid8) AS xid)))
OR EXISTS (SELECT FROM pg_replication_slots
  WHERE greatest(age(xmin), age(catalog_xmin)) >= age(CAST(CAST('{}' AS xid8) AS xid)))
"""
"""Whether deleted rows must be kept: for a transaction of any database of the server, prepared ones included,
for a snapshot in this database, or for a replica.
"""
_COUNT_HIDDEN_SESSIONS: Final = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND query = '<insufficient privilege>'
"""
"""Sessions of other users, whose snapshots are hidden from this one."""
_NUMBER: Final = re.compile(r"\d+")
_FROM_RECORD_TABLES: Final = """
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind = 'r' AND n.nspname = ANY (current_schemas(false)) AND pg_table_is_visible(c.oid)
AND pg_has_role(c.relowner, 'USAGE') AND c.relname !~ '^index_[0-9a-f]+_'
"""
"""The tables of the records, in any schema of the search path. Indexes replace their own tables."""
_TABLES: Final = f"""
SELECT CAST(c.oid AS bigint),
    quote_ident(n.nspname) || '.' || quote_ident(c.relname), pg_relation_filenode(c.oid)
{_FROM_RECORD_TABLES}
"""
_FILE_NUMBER: Final = "SELECT pg_relation_filenode({})"
_STATISTICS: Final = "pg_catalog.pg_statistic"
_MAY_REWRITE: Final = (
    "SELECT pg_has_role(datdba, 'USAGE') FROM pg_database WHERE datname = current_database()"
)
"""A role that does not own the database gets a warning instead of the statistics."""
_CLEAR_STATISTICS: Final = f"""
SELECT pg_clear_attribute_stats(schemaname, tablename, attname, inherited) FROM pg_stats
WHERE (schemaname, tablename) IN (SELECT n.nspname, c.relname {_FROM_RECORD_TABLES})
"""


def erase(connection: Connection, *, busy_seconds: float) -> None:
    """Rewrite every table of the records, once no reader sees what was deleted. Raises StorageBusy.

    Each wait, for readers and for each table, may take `busy_seconds`. When this returns, no transaction saw
    what was deleted when its tables were rewritten; where sessions of other users hide that, the server said
    that it kept no deleted row. The connection must not be in a transaction. No lock wait or setting is left
    to the session, which a pooler may give to others between two statements.
    """
    _wait_for_readers(connection, busy_seconds=busy_seconds)
    if can_clear_statistics(connection):
        connection.exec_driver_sql(_CLEAR_STATISTICS)
    for number, table, file in connection.exec_driver_sql(_TABLES).all():
        deadline = time.monotonic() + busy_seconds
        while not _rewrite(connection, table, _FILE_NUMBER.format(number), before=file):
            _wait(deadline)
    _erase_statistics(connection, busy_seconds=busy_seconds)


def _wait_for_readers(connection: Connection, *, busy_seconds: float) -> None:
    """Wait until no transaction sees what was deleted before this call. Raises StorageBusy."""
    deadline = time.monotonic() + busy_seconds
    now = connection.exec_driver_sql(_CURRENT_TRANSACTION).scalar_one()
    readers = _IS_READ_BY_OTHERS.format(now, now, now)
    while connection.exec_driver_sql(readers).scalar_one():
        _wait(deadline)


def _erase_statistics(connection: Connection, *, busy_seconds: float) -> None:
    """Rewrite the statistics, which contain the most common values of columns."""
    if not connection.exec_driver_sql(_MAY_REWRITE).scalar_one():
        connection.exec_driver_sql(f"VACUUM (FULL, SKIP_LOCKED) {_STATISTICS}")
        return
    _wait_for_readers(connection, busy_seconds=busy_seconds)
    deadline = time.monotonic() + busy_seconds
    file = _FILE_NUMBER.format(f"'{_STATISTICS}'")
    before = connection.exec_driver_sql(file).scalar_one()
    while not _rewrite(connection, _STATISTICS, file, before=before, analyze=False):
        _wait(deadline)


def _rewrite(connection: Connection, table: str, file: str, *, before: Any, analyze: bool = True) -> bool:
    """Rewrite a table that is not in use. Returns whether no deleted row is left, or the table is gone."""
    dead_rows: list[int] = []

    def count_dead_rows(notice: psycopg.errors.Diagnostic) -> None:
        # The server tells how many deleted rows it kept, in any language first.
        number = _NUMBER.search(notice.message_detail or "")
        if notice.severity_nonlocalized == "INFO" and number is not None:
            dead_rows.append(int(number[0]))

    driver: Any = connection.connection.driver_connection
    driver.add_notice_handler(count_dead_rows)
    try:
        connection.exec_driver_sql(f"VACUUM (FULL, VERBOSE, SKIP_LOCKED) {table}")
    except ProgrammingError as fault:
        if getattr(fault.orig, "sqlstate", None) != _NO_SUCH_TABLE:
            raise
        return True
    finally:
        driver.remove_notice_handler(count_dead_rows)
    if connection.exec_driver_sql(file).scalar_one() == before:
        return False
    if analyze:
        connection.exec_driver_sql(f"ANALYZE (SKIP_LOCKED) {table}")
    has_no_dead_rows = dead_rows[-1:] == [0]
    return has_no_dead_rows or connection.exec_driver_sql(_COUNT_HIDDEN_SESSIONS).scalar_one() == 0


def _wait(deadline: float) -> None:
    if time.monotonic() > deadline:
        raise StorageBusy(
            "a reader or a writer, in any database of this server, still uses deleted data or may see it; end"
            " its transaction (pg_stat_activity, pg_prepared_xacts), or wait: the erasure goes on by itself"
        )
    time.sleep(_PAUSE_SECONDS)
