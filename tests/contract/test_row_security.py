"""The wall in the database: what it shows is what the policy allows, whatever is asked and however."""

import random
import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from sqlalchemy import make_url, text
from tests.stores import SETTINGS
from tests.support.postgres_server import PostgresProcess
from tests.support.samples import NOON, notes, prepared, shelf
from tests.waiting import until

import conspectus
from conspectus.access.policy import access_of, visible, without_hidden
from conspectus.errors import InvalidInput, NotFound
from conspectus.model.access import LOCAL_OWNER, ROLES, Grant, Group, Person, Principal, User
from conspectus.model.filter import EVERYTHING, document_row, matches
from conspectus.model.ids import LOCAL, ChunkId, CollectionId, DocumentId, GroupId, SourceId, UserId
from conspectus.model.records import Kind
from conspectus.model.viewers import EVERYONE, RemotePerson
from conspectus.records.accounts.store import SqlAccounts
from conspectus.records.core.row_security import ESTIMATED, LOGIN, READER
from conspectus.records.store import SqlRecords, open_records
from conspectus.testing.embedders import HashedEmbedder

HOMES = [CollectionId(name) for name in ("red", "green", "blue")]
USERS = [UserId(name) for name in ("ada", "ben", "cy", "di")]
GROUPS = [GroupId("all"), GroupId("some")]


@pytest.fixture
async def records(postgres_url: str) -> AsyncIterator[SqlRecords]:
    opened = await open_records(postgres_url, connections=3, row_security=True)
    yield opened
    await opened.close()


@pytest.fixture
async def accounts(records: SqlRecords) -> SqlAccounts:
    """Three collections of different owners, three sources in each, two documents in every source."""
    people = SqlAccounts(records.transactions)
    for name in USERS:
        await people.add_user(User(name, f"user-{name}", NOON, owner=name == "di"))
    for group in GROUPS:
        await people.add_group(Group(group, group, NOON))
    for home, owner in zip(HOMES, (LOCAL, USERS[0], USERS[1]), strict=True):
        await records.create_collection(replace(shelf(home), id=home, owner=owner))
        for number in range(3):
            source = replace(notes(f"{home}{number}", home), id=SourceId(f"{home}{number}"))
            await records.put_source(source)
            batch = [
                prepared(f"{source.id}-{key}", "a text", "another", collection=home, source=source.id)
                for key in "xy"
            ]
            await records.write(batch)
    return people


async def allowed_documents(records: SqlRecords, accounts: SqlAccounts, person: Person) -> set[str]:
    """The documents that the policy lets a person see."""
    grants = await accounts.grants_of(person.id)
    documents_allowed: set[str] = set()
    for home in await records.collections():
        access = access_of(person, home, grants)
        hidden = await accounts.list_hidden_sources(home.id)
        unreadable = await accounts.list_unreadable_sources(home.id, person.id)
        sources = [source.id for source in await records.sources(home.id)]
        where = visible(without_hidden(access, sources, hidden, unreadable))
        documents, _ = await records.list(home.id, EVERYTHING, limit=1_000)
        documents_allowed |= {document.id for document in documents if matches(where, document_row(document))}
    return documents_allowed


async def shown_documents(records: SqlRecords, person: UserId) -> set[str]:
    """The documents that the database shows without being asked for any in particular."""
    work = records.transactions.visible_to(person).read
    return set(
        await work(lambda connection: connection.execute(text("SELECT id FROM documents")).scalars().all())
    )


Step = Callable[[], object]


def possible_steps(chance: random.Random, accounts: SqlAccounts) -> list[Step]:
    """What may happen next: every kind of change to who may see what."""
    user, group = chance.choice(USERS[:3]), chance.choice(GROUPS)
    home = chance.choice(HOMES)
    source = chance.choice([None, SourceId(f"{home}{chance.randrange(3)}")])
    grantee = chance.choice([Principal("user", user), Principal("group", group)])
    grant = Grant(home, source, grantee, chance.choice(ROLES), NOON)
    return [
        lambda: accounts.put_grant(grant),
        lambda: accounts.put_grant(grant),
        lambda: accounts.revoke(home, source, grantee),
        lambda: accounts.join(group, user),
        lambda: accounts.leave(group, user),
        lambda: accounts.hide_sources([SourceId(f"{home}{chance.randrange(3)}")], since=NOON),
        lambda: accounts.hide_sources([SourceId(f"{home}{chance.randrange(3)}")], since=None),
    ]


@pytest.mark.parametrize("seed", range(3))
async def test_what_is_shown_is_what_the_policy_allows(
    records: SqlRecords, accounts: SqlAccounts, seed: int
) -> None:
    chance = random.Random(seed)
    seen: set[frozenset[str]] = set()
    for _ in range(12):
        for _ in range(3):
            step: Any = chance.choice(possible_steps(chance, accounts))
            await step()
        for user in await accounts.users():
            person = Person(user.name, user.owner, user.id)
            assert await shown_documents(records, user.id) == await allowed_documents(
                records, accounts, person
            )
            seen.add(frozenset(await shown_documents(records, user.id)))
    assert len(seen) > 5
    assert len(await shown_documents(records, LOCAL)) == 18


def possible_remote_steps(chance: random.Random, accounts: SqlAccounts) -> list[Any]:
    """What may happen at a remote, whose people are users, and to what it mirrors."""
    names = [name for name in ("p", "q", "g1", "g2", EVERYONE) if chance.random() < 0.4]
    source = SourceId(f"{chance.choice(HOMES)}{chance.randrange(3)}")
    remote, user = chance.choice(["mail", "wiki"]), chance.choice([*USERS, None])
    person = RemotePerson(chance.choice(["p", "q"]), user)
    return [
        lambda: accounts.mirror_source(source, remote, names),
        lambda: accounts.put_remote_members(remote, {chance.choice(["g1", "g2"]): names}),
        lambda: accounts.map_remote_person(remote, person, created=NOON),
    ]


@pytest.mark.parametrize("seed", range(2))
async def test_what_is_mirrored_is_shown_to_its_viewers(
    records: SqlRecords, accounts: SqlAccounts, seed: int
) -> None:
    chance = random.Random(seed)
    hidden_from_owner: set[int] = set()
    for _ in range(12):
        steps: list[Any] = [chance.choice(possible_steps(chance, accounts))]
        for step in (*steps, *possible_remote_steps(chance, accounts)):
            await step()
        for user in await accounts.users():
            person = Person(user.name, user.owner, user.id)
            allowed = await allowed_documents(records, accounts, person)
            assert await shown_documents(records, user.id) == allowed
        allowed = await allowed_documents(records, accounts, LOCAL_OWNER)
        assert await shown_documents(records, LOCAL) == allowed
        hidden_from_owner.add(18 - len(allowed))
    assert len(hidden_from_owner) > 2


async def test_who_is_disabled_unknown_or_nobody_is_shown_nothing(
    records: SqlRecords, accounts: SqlAccounts
) -> None:
    for person in ("nobody", "", "user-ada", "' OR true --"):
        assert await shown_documents(records, UserId(person)) == set()
    for user in ("ada", "di"):
        assert await shown_documents(records, UserId(user))
        await accounts.set_user_disabled(UserId(user), disabled=True)
        assert await shown_documents(records, UserId(user)) == set()
    await accounts.delete_user(UserId("ada"), transfer_to=UserId("cy"))
    assert await shown_documents(records, UserId("ada")) == set()
    assert len(await shown_documents(records, UserId("cy"))) == 6


async def test_a_read_without_any_filter_finds_only_what_the_person_may_see(
    records: SqlRecords, accounts: SqlAccounts
) -> None:
    await accounts.put_grant(Grant(HOMES[0], SourceId("red1"), Principal("user", USERS[2]), "viewer", NOON))
    seen = records.visible_to(USERS[2])
    every = [DocumentId(f"{home}{number}-{key}") for home in HOMES for number in range(3) for key in "xy"]
    assert [document.id for document in await seen.documents(every)] == ["red1-x", "red1-y"]
    assert {stored.document.id for stored in await seen.hydrate([ChunkId(n) for n in range(1, 40)])} == {
        "red1-x",
        "red1-y",
    }
    assert [collection.id for collection in await seen.collections()] == ["red"]
    assert [source.id for source in await seen.sources(HOMES[0])] == ["red1"]
    assert await seen.count(HOMES[0], EVERYTHING) == 2
    with pytest.raises(NotFound):
        await seen.count(HOMES[1], EVERYTHING)
    assert await seen.document_chunks(DocumentId("red1-x"))
    with pytest.raises(NotFound):
        await seen.text(DocumentId("red2-x"))
    assert len(await records.documents(every)) == len(every)


@contextmanager
def login(
    postgres: PostgresProcess, url: str, name: str, *, role: str = READER
) -> Iterator[psycopg.Connection]:
    """A connection of a login of its own that is a member of a role, by default a reader."""
    postgres.run(f'CREATE ROLE "{name}" LOGIN IN ROLE {role}')
    database = make_url(url).database or ""
    try:
        with psycopg.connect(postgres.url(database, name), autocommit=True) as connection:
            yield connection
    finally:
        postgres.run(f'DROP ROLE "{name}"')


ASKED = (
    "SELECT id FROM documents",
    "SELECT d.id FROM chunks c JOIN documents d ON d.number = c.document",
    "SELECT id FROM documents WHERE source IN (SELECT id FROM sources)",
    "SELECT id FROM documents WHERE number IN (SELECT document FROM chunks OFFSET 0)",
    "WITH every AS MATERIALIZED (SELECT * FROM documents) SELECT id FROM every",
    "SELECT (jsonb_populate_record(NULL::documents, to_jsonb(d))).id FROM documents d",
    "SELECT id FROM documents WHERE id = 'red0-x' OR true",
)
REFUSED = (
    "SELECT id FROM documents FOR KEY SHARE SKIP LOCKED",
    "SELECT * FROM public.users",
    "SELECT * FROM grants",
    "SELECT hash FROM keys",
    "SELECT * FROM members",
    "SELECT conspectus_person()",
    "INSERT INTO changes VALUES (99, 'red', 'put', 1, 1, NULL, 1)",
    "UPDATE documents SET source = 'green0'",
    "DELETE FROM chunks",
    "TRUNCATE documents CASCADE",
    "ALTER TABLE documents DISABLE ROW LEVEL SECURITY",
    f"DROP POLICY {READER} ON documents",
    "CREATE OR REPLACE FUNCTION public.conspectus_visible() RETURNS TABLE (collection text, source text)"
    " LANGUAGE sql AS 'SELECT id, NULL FROM collections'",
    "SET ROLE postgres",
    "SET SESSION AUTHORIZATION postgres",
    "COPY documents TO PROGRAM 'true'",
    "SELECT pg_read_file('PG_VERSION')",
)
TRICKS = (
    "SET conspectus.person = 'local'",
    "SET conspectus.person = 'di'",
    "SELECT set_config('conspectus.person', 'local', false)",
    f"SET ROLE {READER}",
    "SET row_security = on",
    "CREATE TEMPORARY TABLE users AS SELECT 'di'::text AS id, 'user-ada'::text AS name, 1 AS owner,"
    " 0 AS disabled",
    "SET search_path = pg_temp, public",
)


def is_refused(connection: psycopg.Connection, statement: str) -> bool:
    try:
        connection.execute(statement.encode())
    except psycopg.errors.InsufficientPrivilege:
        return True
    return False


async def test_a_login_is_the_user_of_its_name_and_cannot_become_another(
    postgres: PostgresProcess, postgres_url: str, records: SqlRecords, accounts: SqlAccounts
) -> None:
    mine = {f"green{number}-{key}" for number in range(3) for key in "xy"}
    with login(postgres, postgres_url, "user-ada") as connection:
        for trick in ("SELECT 1", *TRICKS):
            connection.execute(trick.encode())
            for statement in ASKED:
                assert {row[0] for row in connection.execute(statement.encode())} == mine, statement
            assert [statement for statement in REFUSED if not is_refused(connection, statement)] == []
        connection.execute("RESET search_path")
        with connection.cursor() as cursor, cursor.copy("COPY documents (id) TO STDOUT") as copied:
            assert {row[0] for row in copied.rows()} == mine
        plan = connection.execute("EXPLAIN (ANALYZE, FORMAT JSON) SELECT id FROM documents").fetchone()
        assert plan is not None
        assert plan[0][0]["Plan"]["Actual Rows"] == len(mine)
    assert len(await shown_documents(records, LOCAL)) == 18


async def test_a_function_that_tells_what_it_is_given_is_given_nothing_hidden(
    postgres: PostgresProcess, postgres_url: str, accounts: SqlAccounts
) -> None:
    with login(postgres, postgres_url, "user-ben") as connection:
        notices: list[str] = []
        connection.add_notice_handler(lambda notice: notices.append(str(notice.message_primary)))
        connection.execute(
            "CREATE FUNCTION pg_temp.tell(text) RETURNS boolean LANGUAGE plpgsql COST 0.0000001 AS"
            " $$ BEGIN RAISE NOTICE '%', $1; RETURN true; END $$"
        )
        connection.execute("SELECT count(*) FROM documents WHERE pg_temp.tell(id)")
        connection.execute("DROP FUNCTION pg_temp.tell")
        assert {name[:4] for name in notices} == {"blue"}


async def test_a_login_that_nobody_has_an_account_for_sees_nothing(
    postgres: PostgresProcess, postgres_url: str, accounts: SqlAccounts
) -> None:
    for name in ("local", "ada", "stranger"):
        with login(postgres, postgres_url, name) as connection:
            connection.execute("SET conspectus.person = 'ada'")
            for table in WALLED:
                query = sql.SQL("SELECT * FROM {}").format(sql.Identifier(table))
                assert connection.execute(query).fetchall() == []


WALLED = {
    *("collections", "sources", "documents", "chunks", "vectors", "mentions", "changes"),
    *("document_names", "document_statements"),
}
TABLES = """
SELECT format('%I.%I', n.nspname, c.relname), c.relname, c.relrowsecurity
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
  AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
"""


@pytest.fixture
async def used(
    postgres: PostgresProcess, postgres_url: str, tmp_path: Path
) -> AsyncIterator[psycopg.Connection]:
    """The owner's connection to a walled store that has an index and jobs, while it is open."""
    settings = replace(SETTINGS, index="pgvector", row_security="on", cache=str(tmp_path))
    async with conspectus.open(postgres_url, settings=settings, embedder=HashedEmbedder()) as engine:
        await engine.add(["red fox", "green sea", "blue road"], wait=True)
        assert (await engine.retrieve("fox")).hits
        await engine.jobs.start()
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            await until(lambda: any(name.startswith("conspectus_jobs.") for name, _, _ in tables(connection)))
            yield connection


def tables(owner: psycopg.Connection) -> list[tuple[str, str, bool]]:
    """Everything of ours that holds rows: its full name, its name, and whether policies speak of its rows."""
    return [(str(row[0]), str(row[1]), bool(row[2])) for row in owner.execute(TABLES)]


async def test_what_has_no_policy_cannot_be_read_at_all(
    postgres: PostgresProcess, postgres_url: str, used: psycopg.Connection
) -> None:
    every = tables(used)
    assert {name for _, name, walled in every if walled} == WALLED
    closed = [full for full, name, walled in every if not walled]
    for begins in (
        "public.index_",
        "public.conspectus_indexes",
        "public.keys",
        "public.leases",
        "conspectus_jobs.",
    ):
        assert any(name.startswith(begins) for name in closed), begins
    with login(postgres, postgres_url, "ada") as person:
        used.execute(f"SET ROLE {READER}".encode())
        for reader in (used, person):
            assert [table for table in closed if not is_refused(reader, f"SELECT * FROM {table}")] == []
            for table in WALLED:
                assert reader.execute(f"SELECT * FROM {table}".encode()).fetchall() == []
        used.execute(b"RESET ROLE")


SECRET = "the tide gate opens at dawn"
COLUMNS = """
SELECT table_name, column_name FROM information_schema.columns
WHERE table_schema = 'public' AND table_name = ANY (%s) ORDER BY 1, 2
"""
BORDERS = ("'0'", "'the'", f"'{SECRET}'", f"'{SECRET}~'", "'zzz'")


def estimates(connection: psycopg.Connection, table: str, column: str) -> set[float]:
    """The numbers of rows that the planner expects below texts and numbers of any size."""
    rows: set[float] = set()
    for border in (*BORDERS, "0", "5", "1e15", "decode('00', 'hex')", "decode('ff', 'hex')"):
        query = f'EXPLAIN (FORMAT JSON) SELECT 1 FROM {table} WHERE "{column}" < {border}'
        try:
            ((plan,),) = connection.execute(query.encode()).fetchall()
        except (psycopg.errors.UndefinedFunction, psycopg.errors.InvalidTextRepresentation):
            continue
        rows.add(plan[0]["Plan"]["Plan Rows"])
    return rows


async def test_estimates_tell_a_login_nothing_of_hidden_values(
    postgres: PostgresProcess, postgres_url: str, records: SqlRecords, accounts: SqlAccounts
) -> None:
    batch = [
        prepared(f"hidden-{n}", f"{SECRET} {n // 100}", title=SECRET, author=SECRET, source=SourceId("red0"))
        for n in range(300)
    ]
    await records.write(
        [replace(document, document=replace(document.document, collection=HOMES[0])) for document in batch]
    )
    postgres.run("ANALYZE", database=make_url(postgres_url).database or "")
    with login(postgres, postgres_url, "stranger") as connection:
        columns = connection.execute(COLUMNS, (list(WALLED),)).fetchall()
        assert ("chunks", "text") in columns
        assert ("documents", "title") in columns
        differing = {name: estimates(connection, *name) for name in columns if name[1] not in ESTIMATED}
    assert {name: rows for name, rows in differing.items() if len(rows) != 1} == {}


async def test_functions_for_logins_return_what_is_shown_and_count_nothing_hidden(
    postgres: PostgresProcess, postgres_url: str, records: SqlRecords, accounts: SqlAccounts
) -> None:
    await accounts.put_grant(Grant(HOMES[0], SourceId("red1"), Principal("user", USERS[0]), "viewer", NOON))
    read = records.transactions.visible_to(USERS[0]).read
    with login(postgres, postgres_url, "user-ada", role=LOGIN) as connection:
        for table in WALLED:
            assert is_refused(connection, f"SELECT * FROM {table}")
            assert is_refused(connection, f"EXPLAIN SELECT * FROM {table}")
            assert is_refused(connection, f"DO $$ BEGIN LOCK TABLE {table} IN ACCESS SHARE MODE; END $$")
            returned = connection.execute(f"SELECT row(f.*)::text FROM conspectus_{table}() f".encode())
            query = text(f"SELECT row(t.*)::text FROM {table} t")
            rows = await read(lambda view, query=query: set(view.execute(query).scalars()))
            assert (rows == {row[0] for row in returned}) is (table != "collections"), table
        query_plan = connection.execute(
            "EXPLAIN (ANALYZE, VERBOSE, FORMAT JSON) SELECT 1 FROM conspectus_chunks() WHERE text < 'zzz'"
        ).fetchone()
        assert query_plan is not None
        assert query_plan[0][0]["Plan"]["Node Type"] == "Function Scan"
        sequences = connection.execute("SELECT name, sequence FROM conspectus_collections()").fetchall()
        assert dict(sequences)["red"] == 0
        assert dict(sequences)["green"] > 0


PAGE = Path(__file__).parents[2] / "docs" / "operate" / "security.md"


async def test_the_documented_statements_keep_logins_from_the_locks_of_writers(
    postgres: PostgresProcess, postgres_url: str, records: SqlRecords, accounts: SqlAccounts
) -> None:
    (statements,) = re.findall(r"```sql\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    locks = [
        f"SELECT pg_{way}(1)" for way in ("advisory_lock", "try_advisory_xact_lock", "advisory_lock_shared")
    ]
    with login(postgres, postgres_url, "user-ada", role=LOGIN) as connection:
        assert [lock for lock in locks if is_refused(connection, lock)] == []
        connection.execute("SELECT pg_advisory_unlock_all()")
        with psycopg.connect(postgres_url, autocommit=True) as owner:
            user = owner.execute("SELECT quote_ident(current_user)").fetchone()
            owner.execute(statements.replace("TO conspectus'", f"TO {user[0] if user else ''}'").encode())
        assert [lock for lock in locks if not is_refused(connection, lock)] == []
    await records.put_source(notes("written", HOMES[0]))


@pytest.mark.parametrize("role", [None, *ROLES])
async def test_quarantined_documents_are_shown_to_those_who_review_them(
    postgres: PostgresProcess, postgres_url: str, records: SqlRecords, accounts: SqlAccounts, role: Any
) -> None:
    """The program itself reads them for editors, who may delete them."""
    location = {"collection": HOMES[0], "source": SourceId("red1")}
    kinds = {kind: prepared(f"a-{kind}", "a text", kind=kind, **location) for kind in get_args(Kind)}
    await records.write(list(kinds.values()))
    everything = {document.document.id for document in kinds.values()}
    reviewed = everything if role in {"manager", "owner"} else everything - {"a-quarantined"}
    if role is not None:
        await accounts.put_grant(Grant(HOMES[0], None, Principal("user", USERS[2]), role, NOON))
    for member_of, query in (
        (READER, "SELECT id FROM documents"),
        (LOGIN, "SELECT id FROM conspectus_documents()"),
    ):
        with login(postgres, postgres_url, "user-cy", role=member_of) as connection:
            rows = {row[0] for row in connection.execute(query.encode())}
        assert rows & everything == (reviewed if role is not None else set())
    in_program = everything if role == "editor" else reviewed if role is not None else set()
    assert await shown_documents(records, USERS[2]) & everything == in_program


async def test_without_the_role_it_is_said_what_an_administrator_has_to_run(
    postgres: PostgresProcess, records: SqlRecords
) -> None:
    name = f"poor_{uuid4().hex[:8]}"
    postgres.run(f"CREATE ROLE {name} LOGIN")
    postgres.run(f"CREATE DATABASE {name} OWNER {name} TEMPLATE template0")
    url = postgres.url(name, name)
    try:
        await (await open_records(url, connections=2)).close()
        with pytest.raises(InvalidInput, match=f"GRANT {READER} TO {name};"):
            await open_records(url, connections=2, row_security=True)
        postgres.run(f"GRANT {READER} TO {name}")
        opened = await open_records(url, connections=2, row_security=True)
        assert await shown_documents(opened, LOCAL) == set()
        await opened.close()
    finally:
        postgres.run(f"DROP DATABASE {name} WITH (FORCE)")
        postgres.run(f"DROP ROLE {name}")


async def test_without_the_wall_reads_are_what_they_were(postgres_url: str) -> None:
    opened = await open_records(postgres_url, connections=2)
    assert opened.transactions.visible_to(USERS[0]) is opened.transactions
    await opened.close()


async def test_a_folder_has_no_such_wall(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="PostgreSQL"):
        await open_records(tmp_path / "records.sqlite", row_security=True)
