"""Records on PostgreSQL when the server, a connection, a lock, a right or a password is not there."""

import asyncio
import threading
import traceback
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from sqlalchemy import Connection, event, text

from conspectus.errors import InvalidInput, StorageBusy, StorageError, WriteOutcomeUnknown
from conspectus.model.filter import EVERYTHING
from conspectus.model.ids import DocumentId
from conspectus.records.accounts.users import add_user
from conspectus.records.core.postgres import reason_unfit
from conspectus.records.core.postgres_errors import convert_errors
from conspectus.records.store import SqlRecords, open_records
from tests.contracts.accounts_contract import a_user
from tests.support.postgres_server import PostgresProcess, postgres_server
from tests.support.samples import SHELF, notes, prepared, shelf

OURS = "SELECT pg_backend_pid()"


@pytest.fixture(scope="module")
def mortal() -> Iterator[PostgresProcess]:
    """A server that these tests may kill; whoever does starts it again."""
    with postgres_server() as running:
        yield running


async def open_stocked(url: str, *, busy_seconds: float = 30.0) -> SqlRecords:
    records = await open_records(url, busy_seconds=busy_seconds, connections=3)
    await records.create_collection(shelf())
    await records.put_source(notes())
    return records


@pytest.fixture
async def records(postgres_url: str) -> AsyncIterator[SqlRecords]:
    opened = await open_stocked(postgres_url)
    yield opened
    await opened.close()


@pytest.fixture
async def impatient(postgres_url: str) -> AsyncIterator[SqlRecords]:
    """Records that wait for others half a second."""
    opened = await open_stocked(postgres_url, busy_seconds=0.5)
    yield opened
    await opened.close()


def terminate(url: str, connection: Connection) -> None:
    """End the server's side of a connection, as an administrator or a failing network does."""
    backend = connection.exec_driver_sql(OURS).scalar_one()
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [backend])


async def test_the_first_requests_after_a_restart_are_answered(mortal: PostgresProcess) -> None:
    with mortal.fresh() as url:
        records = await open_stocked(url)
        await asyncio.gather(*(records.count(SHELF, EVERYTHING) for _ in range(8)))
        await records.write([prepared("before", "x")])
        await asyncio.to_thread(mortal.kill)
        for attempt in (records.count(SHELF, EVERYTHING), records.write([prepared("away", "x")])):
            with pytest.raises(StorageBusy, match="does not answer"):
                await attempt
        await asyncio.to_thread(mortal.start)
        await records.write([prepared("after", "x")])
        assert await records.count(SHELF, EVERYTHING) == 2
        assert await records.check() == []
        await records.close()


async def test_a_server_killed_in_the_middle_of_a_write_leaves_nothing_of_it(mortal: PostgresProcess) -> None:
    with mortal.fresh() as url:
        records = await open_stocked(url)

        def write_and_kill(connection: Connection) -> None:
            add_user(connection, a_user("half"))
            mortal.kill()
            add_user(connection, a_user("whole"))

        with pytest.raises(StorageBusy, match="acknowledged writes are stored"):
            await records.transactions.write(write_and_kill)
        await asyncio.to_thread(mortal.start)
        users = text("SELECT count(*) FROM users")
        assert await records.transactions.read(lambda connection: connection.scalar(users)) == 0
        await records.close()


@pytest.mark.parametrize("writes", [False, True])
async def test_what_was_broken_off_before_it_counted_is_run_again(
    records: SqlRecords, postgres_url: str, writes: bool
) -> None:
    breaking = [True]

    def broken_once(connection: Connection) -> int:
        if writes:
            add_user(connection, a_user("anna"))
        if breaking:
            breaking.clear()
            terminate(postgres_url, connection)
        return int(connection.execute(text("SELECT count(*) FROM users")).scalar_one())

    run = records.transactions.write if writes else records.transactions.read
    assert await run(broken_once) == int(writes)


async def test_a_commit_without_an_answer_is_not_run_again(records: SqlRecords, postgres_url: str) -> None:
    database, runs = records.transactions.database, list[int]()

    def work(connection: Connection) -> None:
        runs.append(1)
        add_user(connection, a_user("anna"))
        event.listen(
            database.writing, "commit", lambda connection: terminate(postgres_url, connection), once=True
        )

    with pytest.raises(WriteOutcomeUnknown, match="may or may not have been stored") as raised:
        await records.transactions.write(work)
    assert len(runs) == 1
    assert raised.value.__cause__ is not None


async def test_a_real_deadlock_is_run_again(records: SqlRecords, postgres_url: str) -> None:
    first, second = (
        f"SELECT 1 FROM counters WHERE name = '{name}' FOR UPDATE" for name in ("chunk", "change")
    )
    runs = list[int]()
    with psycopg.connect(postgres_url) as other, ThreadPoolExecutor(1) as waiting:
        other.execute(second.encode())

        def cross_it() -> None:
            other.execute(first.encode())
            other.commit()

        def crossing(connection: Connection) -> int:
            runs.append(1)
            connection.exec_driver_sql("SET LOCAL deadlock_timeout = '50ms'")
            connection.exec_driver_sql(first)
            if len(runs) == 1:
                waiting.submit(cross_it)
            connection.exec_driver_sql(second)
            return len(runs)

        assert await records.transactions.write(crossing) > 1


async def test_a_writer_that_waits_too_long_says_so(postgres_url: str) -> None:
    records, other = await open_stocked(postgres_url, busy_seconds=0.5), await open_stocked(postgres_url)
    locked, leave = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def hold_lock(_: Connection) -> None:
        loop.call_soon_threadsafe(locked.set)
        leave.wait()

    holding = asyncio.create_task(other.transactions.write(hold_lock))
    await locked.wait()
    with pytest.raises(StorageBusy, match="held by others"):
        await records.write([prepared("a", "x")])
    assert await records.count(SHELF, EVERYTHING) == 0
    leave.set()
    await holding
    await records.write([prepared("a", "x")])
    await records.close()
    await other.close()


@pytest.mark.parametrize(
    ("state", "kind", "message"),
    [
        ("53100", StorageError, "no space left; nothing was stored"),
        ("53300", StorageBusy, "no connection left"),
        ("42501", StorageError, "grant it all rights"),
        ("25006", StorageError, "only lets read"),
        ("57014", StorageBusy, "took too long"),
        ("XX001", StorageError, "PostgreSQL at"),
    ],
)
async def test_what_the_server_says_is_told_and_nothing_is_stored(
    records: SqlRecords, postgres_url: str, state: str, kind: type[StorageError], message: str
) -> None:
    failing = f"BEGIN RAISE EXCEPTION 'on purpose' USING ERRCODE = '{state}'; END"
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute(f"CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $${failing}$$".encode())
        other.execute("CREATE TRIGGER failing BEFORE INSERT ON changes EXECUTE FUNCTION fail()")
        with pytest.raises(kind, match=message) as raised:
            await records.write([prepared("a", "x")])
        assert isinstance(raised.value, StorageBusy) == (kind is StorageBusy)
        other.execute("DROP TRIGGER failing ON changes")
    assert await records.count(SHELF, EVERYTHING) == 0
    await records.write([prepared("a", "x")])


async def test_a_statement_that_takes_too_long_is_stopped(records: SqlRecords) -> None:
    def slow(connection: Connection) -> None:
        connection.exec_driver_sql("SELECT set_config('statement_timeout', '20ms', true), pg_sleep(0)")
        connection.exec_driver_sql("SELECT pg_sleep(60)")

    with pytest.raises(StorageBusy, match="took too long"):
        await records.transactions.read(slow)
    assert await records.count(SHELF, EVERYTHING) == 0


async def test_who_may_not_is_told_so(postgres: PostgresProcess, postgres_url: str) -> None:
    records = await open_stocked(postgres_url)
    postgres.run("DROP ROLE IF EXISTS stranger")
    postgres.run("CREATE ROLE stranger LOGIN")
    with pytest.raises(StorageError, match="grant it all rights"):
        await open_records(postgres_url.replace("postgres@", "stranger@"))
    with postgres.fresh(empty=True) as empty, pytest.raises(StorageError, match="grant it all rights"):
        await open_records(empty.replace("postgres@", "stranger@"))
    await records.close()
    postgres.run("DROP ROLE stranger")


async def test_who_finds_no_connection_left_is_told_so(postgres: PostgresProcess, postgres_url: str) -> None:
    name = postgres_url.partition("@/")[2].partition("?")[0]
    postgres.run(f"ALTER DATABASE {name} CONNECTION LIMIT 0")
    postgres.run("DROP ROLE IF EXISTS visitor")
    postgres.run("CREATE ROLE visitor LOGIN")
    with pytest.raises(StorageBusy, match="has no connection left; ask again"):
        await open_records(postgres_url.replace("postgres@", "visitor@"))
    postgres.run("DROP ROLE visitor")


@pytest.mark.parametrize(
    "reason",
    [
        "FATAL:  sorry, too many clients already",
        "FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute",
        "FATAL:  no more connections allowed (max_client_conn)",
    ],
)
def test_every_way_to_say_that_no_connection_is_left_is_known(reason: str) -> None:
    with pytest.raises(StorageBusy, match="has no connection left"), convert_errors("x"):
        raise psycopg.OperationalError(f'connection failed: connection to server at "h" failed: {reason}')


async def test_a_wrong_password_is_told_without_it(mortal: PostgresProcess) -> None:
    rules = mortal.folder / "pg_hba.conf"
    plain = await asyncio.to_thread(rules.read_text)
    mortal.run("CREATE ROLE locked LOGIN SUPERUSER PASSWORD 'OPENSESAME'")
    await asyncio.to_thread(rules.write_text, f"local all locked scram-sha-256\n{plain}")
    mortal.run("SELECT pg_reload_conf()")
    with mortal.fresh() as url:
        for secret in ("locked:TOPSECRET@", "locked@"):
            wrong = url.replace("postgres@", secret) + "&sslpassword=TOPSECRET"
            with pytest.raises(StorageError, match="refuses the connection") as raised:
                await open_records(wrong)
            assert not isinstance(raised.value, StorageBusy)
            assert "TOPSECRET" not in "".join(traceback.format_exception(raised.value))
        await (await open_records(url.replace("postgres@", "locked:OPENSESAME@"))).close()


@pytest.mark.parametrize(
    ("url", "fault"),
    [
        ("postgresql://TOPSECRET:x@[", StorageBusy),
        ("postgresql://u:TOPSECRET@h:port/x", InvalidInput),
        ("postgresql://u:TOPSECRET@/x?what=1", InvalidInput),
        ("postgresql://u:TOPSECRET@/x?sslmode=perhaps", InvalidInput),
        ("postgresql://u:top@TOPSECRET@localhost/x", InvalidInput),
        ("postgresql://u:top@127.0.0.1/TOPSECRET@localhost/x", InvalidInput),
    ],
)
async def test_a_url_that_is_none_is_refused_without_what_it_says(url: str, fault: type[Exception]) -> None:
    with pytest.raises(fault) as raised:
        await open_records(url)
    assert "TOPSECRET" not in "".join(traceback.format_exception(raised.value))


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
async def test_a_database_that_stores_other_than_utf_8_is_refused(
    postgres: PostgresProcess, encoding: str
) -> None:
    name = f"of_{encoding.lower()}"
    postgres.run(f"CREATE DATABASE {name} TEMPLATE template0 LOCALE 'C' ENCODING '{encoding}'")
    with pytest.raises(StorageError, match=f"stores text as {encoding}; make it anew with ENCODING 'UTF8'"):
        await open_records(postgres.url(name))
    postgres.run(f"DROP DATABASE {name} WITH (FORCE)")


async def test_a_database_with_tables_of_something_else_is_left_alone(postgres: PostgresProcess) -> None:
    with postgres.fresh(empty=True) as url:
        name = url.rpartition("/")[2].partition("?")[0]
        postgres.run("CREATE TABLE users (name text)", name)
        with pytest.raises(
            StorageError, match="has a table users of another program; use a separate database"
        ):
            await open_records(url)
        with psycopg.connect(url) as connection:
            assert connection.execute(
                "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
            ).fetchone() == (1,)


def test_a_server_that_is_too_old_is_named() -> None:
    assert reason_unfit("UTF8", 149_999) == "is of version 14; 15 or newer is needed"
    assert reason_unfit("UTF8", 150_000) is None


async def refuse_tls(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """What a PostgreSQL server without certificates answers to a client that asks for TLS."""
    await reader.readexactly(8)
    writer.write(b"N")
    await writer.drain()
    writer.close()


async def test_a_server_without_the_tls_that_the_url_demands_is_not_asked_again() -> None:
    async with await asyncio.start_server(refuse_tls, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(StorageError, match="refuses the connection") as raised:
            await open_records(f"postgresql://u@127.0.0.1:{port}/x?sslmode=require")
    assert not isinstance(raised.value, StorageBusy)


@pytest.mark.parametrize(
    "error",
    [
        psycopg.errors.ReadOnlySqlTransaction("cannot execute UPDATE in a read-only transaction"),
        psycopg.errors.FeatureNotSupported("cannot set transaction read-write mode during recovery"),
    ],
)
def test_a_standby_is_taken_for_one(error: psycopg.Error) -> None:
    with pytest.raises(StorageError, match="name the server that writes"), convert_errors("x"):
        raise error


async def test_a_purge_waits_for_readers_and_says_when_it_cannot(
    impatient: SqlRecords, postgres_url: str
) -> None:
    await impatient.write([prepared("a", "x")])
    with psycopg.connect(postgres_url) as other:
        other.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        for statement in ("SELECT 1", "SELECT count(*) FROM documents"):
            other.execute(statement.encode())
            await impatient.delete([DocumentId("a")])
            with pytest.raises(StorageBusy, match="still uses"):
                await impatient.purge()
    await impatient.purge()
