"""Row security of PostgreSQL: policies for the program's reads, and functions for logins of people.

A read of the program sets the role `READER`, which owns nothing, and the person in a setting of its
transaction. Policies then apply the rules of `access/policy.py` to every row, against a missing filter in our
code. A login that can read the tables is shown no hidden row either, but `EXPLAIN ANALYZE` counts the rows
that a policy removed. So logins of people get the role `LOGIN`, which has no rights on tables: its functions
return the same rows, and the planner knows nothing of what is behind them.
"""

import hashlib
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from conspectus.errors import InvalidInput

READER: Final = "conspectus_reader"
"""The role of reads for people. It cannot log in, and belongs to the whole server."""
LOGIN: Final = "conspectus_login"
"""The role of which logins of people are members. It may call functions, and read no table."""

_AS_PERSON = text(
    f"SELECT set_config('conspectus.person', :person, true), set_config('role', '{READER}', true)"
)
_COLLECTIONS = "(SELECT collection FROM conspectus_visible() WHERE source IS NULL)"
_SOURCES = "(SELECT source FROM conspectus_visible() WHERE source IS NOT NULL)"
_HIDDEN = "(SELECT source FROM conspectus_hidden())"
_READABLE_IN_FULL = f"{_COLLECTIONS} AND {{0}} NOT IN (SELECT collection FROM conspectus_hidden())"
_READABLE = f"(collection IN {_COLLECTIONS} OR source IN {_SOURCES}) AND source NOT IN {_HIDDEN}"
_REVIEWED = (
    "(kind <> 'quarantined'"
    " OR collection IN (SELECT collection FROM conspectus_reviewed() WHERE source IS NULL)"
    " OR source IN (SELECT source FROM conspectus_reviewed() WHERE source IS NOT NULL))"
)
_DOCUMENT = f"{_READABLE} AND {_REVIEWED}"
_DOCUMENTS = f"(SELECT number FROM documents WHERE {_DOCUMENT})"
_VISIBLE: Final = {
    "collections": "id IN (SELECT collection FROM conspectus_visible())",
    "changes": f"collection IN {_READABLE_IN_FULL.format('collection')}",
    "sources": f"(collection IN {_COLLECTIONS} OR id IN {_SOURCES}) AND id NOT IN {_HIDDEN}",
    "documents": _DOCUMENT,
    "mentions": _READABLE,
    "chunks": "EXISTS (SELECT FROM documents WHERE documents.number = chunks.document)",
    "document_names": "EXISTS (SELECT FROM documents d WHERE d.number = document_names.document)",
    "document_statements": "EXISTS (SELECT FROM documents d WHERE d.number = document_statements.document)",
    "vectors": "EXISTS (SELECT FROM chunks WHERE chunks.id = vectors.chunk)",
}
"""The visible rows of each table. Policies of tables that are queried in it apply too."""
_RETURNED: Final = {
    **_VISIBLE,
    "chunks": f"document IN {_DOCUMENTS}",
    "document_names": f"document IN {_DOCUMENTS}",
    "document_statements": f"document IN {_DOCUMENTS}",
    "vectors": f"chunk IN (SELECT id FROM chunks WHERE document IN {_DOCUMENTS})",
}
"""The same rows for a function of the tables' owner, to whom no policy applies."""

_VISIBLE_TO_PERSON = """
  WITH asking AS (
    SELECT p.id, p.id = 'local' OR u.owner = 1 AS sees_all,
      pg_has_role(session_user, current_user, 'MEMBER') AS is_program
    FROM (SELECT conspectus_person() AS id) p LEFT JOIN users u ON u.id = p.id
    WHERE p.id = 'local' OR u.disabled = 0
  )
  SELECT c.id, NULL FROM collections c JOIN asking a ON a.sees_all OR c.owner = a.id
  UNION
  SELECT g.collection, g.source FROM grants g JOIN asking a ON (g."user" = a.id
    OR g."group" IN (SELECT m."group" FROM members m WHERE m."user" = a.id))"""
_FUNCTIONS: Final = (
    """
CREATE OR REPLACE FUNCTION conspectus_person() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
  SELECT CASE WHEN pg_has_role(session_user, current_user, 'MEMBER')
    THEN current_setting('conspectus.person', true)
    ELSE (SELECT id FROM users WHERE name = session_user)
  END
$$""",
    f"""
CREATE OR REPLACE FUNCTION conspectus_visible() RETURNS TABLE (collection text, source text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {{schema}}, pg_temp AS $${_VISIBLE_TO_PERSON}
$$""",
    # Editors delete quarantined documents through the program; only managers of a collection read them.
    f"""
CREATE OR REPLACE FUNCTION conspectus_reviewed() RETURNS TABLE (collection text, source text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {{schema}}, pg_temp AS $${_VISIBLE_TO_PERSON}
  WHERE g.role = 'owner' AND g.source IS NULL OR g.role = 'manager' AND g.source IS NULL
    OR a.is_program AND g.role IN ('editor', 'manager', 'owner')
$$""",
    """
CREATE OR REPLACE FUNCTION conspectus_viewed() RETURNS TABLE (source text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
  WITH RECURSIVE names (connection, name) AS (
    SELECT p.connection, n.name FROM remote_people p
    CROSS JOIN LATERAL (VALUES (p.name), ('everyone')) n (name) WHERE p."user" = conspectus_person()
    UNION
    SELECT m.connection, m."group" FROM remote_members m
    JOIN names n ON n.connection = m.connection AND n.name = m.member)
  SELECT v.source FROM source_viewers v JOIN sources s ON s.id = v.source
  JOIN names n ON n.connection = s.mirrored AND n.name = v.viewer
$$""",
    f"""
CREATE OR REPLACE FUNCTION conspectus_hidden() RETURNS TABLE (collection text, source text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {{schema}}, pg_temp AS $$
  WITH managed (collection, source) AS ({_VISIBLE_TO_PERSON} WHERE g.role IN ('manager', 'owner'))
  SELECT s.collection, s.id FROM sources s JOIN conspectus_visible() v
    ON v.collection = s.collection AND (v.source IS NULL OR v.source = s.id)
  WHERE s.hidden_from <= extract(epoch FROM now()) * 1000000 AND NOT EXISTS (
    SELECT FROM managed m WHERE m.collection = s.collection AND (m.source IS NULL OR m.source = s.id))
  UNION
  SELECT s.collection, s.id FROM sources s
  WHERE s.mirrored IS NOT NULL AND s.id NOT IN (SELECT source FROM conspectus_viewed())
$$""",
    "REVOKE ALL ON FUNCTION conspectus_person(), conspectus_visible(), conspectus_reviewed(),"
    " conspectus_viewed(), conspectus_hidden() FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION conspectus_visible(), conspectus_reviewed(), conspectus_hidden() TO {reader}",
    "GRANT USAGE ON SCHEMA {schema} TO {reader}",
)
_REPLACED: Final = {
    "collections": ("sequence", f"NOT (rows.id IN {_READABLE_IN_FULL.format('rows.id')})", "0")
}
"""A column that counts what a person may not see, with its condition, and what is returned instead."""
ESTIMATED: Final = ("collection", "source", "kind")
"""Columns of ids and kinds of which statistics are kept: plans of pages and timelines need them."""
_COLUMNS: Final = """
SELECT c.relkind, quote_ident(c.relname), a.attnum, quote_ident(a.attname)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_index i ON i.indexrelid = c.oid
WHERE a.attnum > 0 AND NOT a.attisdropped AND coalesce(a.attstattarget, -1) <> 0 AND a.attname <> ALL(:kept)
AND (c.oid = to_regclass(:table) OR i.indrelid = to_regclass(:table) AND i.indkey[a.attnum - 1] = 0)
"""
"""The columns of a table and the expressions of its indexes of which statistics are gathered."""
_CLEAR_STATISTICS: Final = """
SELECT pg_clear_attribute_stats(schemaname, tablename, attname, inherited) FROM pg_stats
WHERE attname <> ALL(:kept) AND schemaname = current_schema() AND (tablename = :table
  OR tablename IN (SELECT relname FROM pg_class JOIN pg_index ON indexrelid = oid
    WHERE indrelid = to_regclass(:table)))
"""


def install_row_security(connection: Connection) -> None:
    """Create the roles, the policies and the functions, if they do not exist. Raises InvalidInput.

    The connection must be that of the owner of the tables. A login that is a member of one of the roles, but
    not of the owner's, is always the user of that name.
    """
    schema: str = connection.execute(text("SELECT quote_ident(current_schema())")).scalar_one()
    _require_role(connection)
    has_login = _has_role(connection, LOGIN) or _attempt(connection, f"CREATE ROLE {LOGIN} NOLOGIN")
    contents = f"{_FUNCTIONS}{_VISIBLE}{_RETURNED}{_REPLACED}{_COLUMNS}{ESTIMATED}{has_login}"
    mark = hashlib.sha256(contents.encode()).hexdigest()
    installed = "SELECT obj_description(to_regprocedure('conspectus_visible()'), 'pg_proc')"
    if connection.execute(text(installed)).scalar() == mark:
        return
    for statement in _FUNCTIONS:
        connection.exec_driver_sql(statement.format(schema=schema, reader=READER))
    for table, condition in _VISIBLE.items():
        _protect(connection, table, condition)
        _stop_gathering_statistics(connection, table)
        _create_function(connection, table, schema)
    if has_login:
        functions = ", ".join(f"conspectus_{table}()" for table in _RETURNED)
        connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA {schema} TO {LOGIN}")
        connection.exec_driver_sql(f"GRANT EXECUTE ON FUNCTION {functions} TO {LOGIN}")
    connection.exec_driver_sql(f"COMMENT ON FUNCTION conspectus_visible() IS '{mark}'")


def can_clear_statistics(connection: Connection) -> bool:
    """Return whether the owner of a table can delete its statistics, as from PostgreSQL 18 on."""
    return (connection.dialect.server_version_info or ()) >= (18,)


def read_as(connection: Connection, person: str) -> None:
    """Restrict the rest of the transaction to what the person of that id may see, read-only."""
    connection.execute(_AS_PERSON, {"person": person})


def _protect(connection: Connection, table: str, condition: str) -> None:
    connection.exec_driver_sql(f"DROP POLICY IF EXISTS {READER} ON {table}")
    connection.exec_driver_sql(
        f"CREATE POLICY {READER} ON {table} FOR SELECT TO {READER} USING ({condition})"
    )
    connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    connection.exec_driver_sql(f"GRANT SELECT ON {table} TO {READER}")


def _stop_gathering_statistics(connection: Connection, table: str) -> None:
    """Gather no statistics of values: the planner would estimate with those of hidden rows, for everybody."""
    columns = {"table": table, "kept": list(ESTIMATED)}
    for kind, name, number, column in connection.execute(text(_COLUMNS), columns).all():
        if kind == "i":
            connection.exec_driver_sql(f"ALTER INDEX {name} ALTER COLUMN {number} SET STATISTICS 0")
        else:
            connection.exec_driver_sql(f"ALTER TABLE {name} ALTER COLUMN {column} SET STATISTICS 0")
    if can_clear_statistics(connection):
        connection.execute(text(_CLEAR_STATISTICS), columns)


def _create_function(connection: Connection, table: str, schema: str) -> None:
    column, condition, value = _REPLACED.get(table, ("", "false", ""))
    replacing = f"IF {condition} THEN rows.{column} := {value}; END IF; " if column else ""
    connection.exec_driver_sql(f"""
CREATE OR REPLACE FUNCTION conspectus_{table}() RETURNS SETOF {table}
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
DECLARE rows {table};
BEGIN
  FOR rows IN SELECT * FROM {table} WHERE {_RETURNED[table]} LOOP {replacing}RETURN NEXT rows; END LOOP;
END $$""")
    connection.exec_driver_sql(f"REVOKE ALL ON FUNCTION conspectus_{table}() FROM PUBLIC")


def _require_role(connection: Connection) -> None:
    """Ensure that the role of readers exists and can be set. Raises InvalidInput."""
    if not _has_role(connection, READER):
        _attempt(connection, f"CREATE ROLE {READER} NOLOGIN")
    if not _attempt(connection, f"SET LOCAL ROLE {READER}"):
        _attempt(connection, f"GRANT {READER} TO CURRENT_USER")
        if not _attempt(connection, f"SET LOCAL ROLE {READER}"):
            user = connection.execute(text("SELECT quote_ident(current_user)")).scalar_one()
            statements = f"CREATE ROLE {READER} NOLOGIN; GRANT {READER} TO {user};"
            raise InvalidInput("row_security", f"needs a role; have an administrator run: {statements}")
    connection.exec_driver_sql("RESET ROLE")


def _has_role(connection: Connection, name: str) -> bool:
    statement = text("SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = :name)")
    return bool(connection.execute(statement, {"name": name}).scalar_one())


def _attempt(connection: Connection, statement: str) -> bool:
    """Return whether the server executed a statement; it may fail, or another process may be first."""
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(statement)
    except DBAPIError:
        return False
    return True
