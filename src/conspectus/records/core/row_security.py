"""A second wall in PostgreSQL: for a person's reads the database shows no row that the person may not see.

Such a read takes on the role of a reader, which owns nothing, with the person in a setting of its
transaction; policies then say of every row what `access/policy.py` says. The wall is for a filter that our
code forgot, and for logins of people of their own: whoever is a member of the role without being one of the
owner's is the user of that name, whatever the setting says.
"""

import hashlib
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import DBAPIError

from conspectus.errors import InvalidInput

READER: Final = "conspectus_reader"
"""The role of reads for people; it cannot log in, and belongs to the whole server."""

_AS_PERSON = text(
    f"SELECT set_config('conspectus.person', :person, true), set_config('role', '{READER}', true)"
)
_WHOLE = "(SELECT collection FROM conspectus_seen() WHERE source IS NULL)"
_SINGLE = "(SELECT source FROM conspectus_seen() WHERE source IS NOT NULL)"
_SEEN: Final = {
    "collections": "id IN (SELECT collection FROM conspectus_seen())",
    "changes": "collection IN (SELECT collection FROM conspectus_seen())",
    "sources": f"collection IN {_WHOLE} OR id IN {_SINGLE}",
    "documents": f"collection IN {_WHOLE} OR source IN {_SINGLE}",
    "mentions": f"collection IN {_WHOLE} OR source IN {_SINGLE}",
    "chunks": "EXISTS (SELECT FROM documents WHERE documents.number = chunks.document)",
    "vectors": "EXISTS (SELECT FROM chunks WHERE chunks.id = vectors.chunk)",
}
"""Which rows of a table a reader sees; where another table is asked, its policy holds there too."""

_FUNCTIONS: Final = (
    """
CREATE OR REPLACE FUNCTION conspectus_person() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
  SELECT CASE WHEN pg_has_role(session_user, current_user, 'MEMBER')
    THEN current_setting('conspectus.person', true)
    ELSE (SELECT id FROM users WHERE name = session_user)
  END
$$""",
    """
CREATE OR REPLACE FUNCTION conspectus_seen() RETURNS TABLE (collection text, source text)
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = {schema}, pg_temp AS $$
  WITH asking AS (
    SELECT p.id, p.id = 'local' OR u.owner = 1 AS sees_all
    FROM (SELECT conspectus_person() AS id) p LEFT JOIN users u ON u.id = p.id
    WHERE p.id = 'local' OR u.disabled = 0
  )
  SELECT c.id, NULL FROM collections c JOIN asking a ON a.sees_all OR c.owner = a.id
  UNION
  SELECT g.collection, g.source FROM grants g JOIN asking a ON g."user" = a.id
    OR g."group" IN (SELECT m."group" FROM members m WHERE m."user" = a.id)
$$""",
    "REVOKE ALL ON FUNCTION conspectus_person(), conspectus_seen() FROM PUBLIC",
    "GRANT EXECUTE ON FUNCTION conspectus_seen() TO {reader}",
    "GRANT USAGE ON SCHEMA {schema} TO {reader}",
)


def install(connection: Connection) -> None:
    """Set up the role, the policies and what they ask, if that is not done. Raises InvalidInput.

    The connection has to be that of the owner of the tables.
    """
    schema: str = connection.execute(text("SELECT quote_ident(current_schema())")).scalar_one()
    mark = hashlib.sha256(f"{_FUNCTIONS}{_SEEN}".encode()).hexdigest()
    _require_role(connection)
    done = "SELECT obj_description(to_regprocedure('conspectus_seen()'), 'pg_proc')"
    if connection.execute(text(done)).scalar() == mark:
        return
    for statement in _FUNCTIONS:
        connection.exec_driver_sql(statement.format(schema=schema, reader=READER))
    for table, seen in _SEEN.items():
        _protect(connection, table, seen)
    connection.exec_driver_sql(f"COMMENT ON FUNCTION conspectus_seen() IS '{mark}'")


def read_as(connection: Connection, person: str) -> None:
    """Let the rest of the transaction see what the person of that id may see, and write nothing."""
    connection.execute(_AS_PERSON, {"person": person})


def _protect(connection: Connection, table: str, seen: str) -> None:
    connection.exec_driver_sql(f"DROP POLICY IF EXISTS {READER} ON {table}")
    connection.exec_driver_sql(f"CREATE POLICY {READER} ON {table} FOR SELECT TO {READER} USING ({seen})")
    connection.exec_driver_sql(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    connection.exec_driver_sql(f"GRANT SELECT ON {table} TO {READER}")


def _require_role(connection: Connection) -> None:
    """See to it that the role is there and may be taken on. Raises InvalidInput."""
    known = connection.execute(text(f"SELECT 1 FROM pg_roles WHERE rolname = '{READER}'")).scalar()
    if known is None:
        _attempt(connection, f"CREATE ROLE {READER} NOLOGIN")
    if not _attempt(connection, f"SET LOCAL ROLE {READER}"):
        _attempt(connection, f"GRANT {READER} TO CURRENT_USER")
        if not _attempt(connection, f"SET LOCAL ROLE {READER}"):
            user = connection.execute(text("SELECT quote_ident(current_user)")).scalar_one()
            statements = f"CREATE ROLE {READER} NOLOGIN; GRANT {READER} TO {user};"
            raise InvalidInput("row_security", f"needs a role; have an administrator run: {statements}")
    connection.exec_driver_sql("RESET ROLE")


def _attempt(connection: Connection, statement: str) -> bool:
    """Whether the server did it, which it may refuse or have done for another process meanwhile."""
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(statement)
    except DBAPIError:
        return False
    return True
