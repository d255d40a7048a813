"""A store of each schema that was ever on main is opened, upgraded and searched; 0001 stays as it was."""

import hashlib
import sqlite3
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from alembic.script import ScriptDirectory

import conspectus
from conspectus.access.tokens import SESSIONS, hash_of
from conspectus.errors import StorageTooOld
from conspectus.model.memory import Scope
from conspectus.records import migrations
from conspectus.records.core.database import DatabaseAccess, database_at
from conspectus.records.core.schema import version_of
from conspectus.records.tables.core import VERSION
from conspectus.sync import BlockingEngine
from tests.support.postgres_server import PostgresProcess

STORES = Path(__file__).with_name("stores")
VERSIONS = Path(migrations.__file__).with_name("versions")
SCHEMAS = sorted(path.stem for path in STORES.glob("*.zip"))
FROZEN = {
    "sqlite": "4d22e18f8b4e17338a4531efd0ba519131820cd3e43af0d61053c309ac887800",
    "postgresql": "7d99253ac1a0403ac73780c7845878dde15c384ac0c2d81f2ec185f8bec3dbe2",
}
LEFT_OUT = {
    "no column": 'ALTER TABLE "keys" DROP COLUMN label',
    "another column": 'ALTER TABLE "groups" ADD COLUMN color VARCHAR',
    "no index": "DROP INDEX ix_documents_longest",
    "no table": "DROP TABLE purges",
}


@pytest.fixture
def empty_url(postgres: PostgresProcess) -> Iterator[str]:
    with postgres.fresh(empty=True) as url:
        yield url


def unpack(schema: str, folder: Path) -> Path:
    with zipfile.ZipFile(STORES / f"{schema}.zip") as archive:
        archive.extractall(folder)
    return folder


def copy_to_postgres(folder: Path, url: str) -> None:
    """Make the tables of 0001 in an empty database, and give them the rows of a folder of that schema."""
    with closing(sqlite3.connect(folder / "records.sqlite")) as rows, psycopg.connect(url) as server:
        script = (VERSIONS / "0001_initial.postgresql.sql").read_text("utf-8")
        server.execute(script.encode())
        server.execute("DELETE FROM counters")
        server.execute(
            rows.execute("SELECT sql FROM sqlite_master WHERE name = 'alembic_version'").fetchone()[0]
        )
        server.execute("SET session_replication_role = replica")
        for (table,) in rows.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            cursor = rows.execute(f'SELECT * FROM "{table}"')
            columns = ", ".join(f'"{column[0]}"' for column in cursor.description)
            blanks = ", ".join(["%s"] * len(cursor.description))
            for row in cursor:
                server.execute(f'INSERT INTO "{table}" ({columns}) VALUES ({blanks})'.encode(), row)


def check_upgraded(engine: BlockingEngine) -> None:
    """Read what the fixture holds, and write beside it."""
    report = engine.maintenance.check()
    assert [report.records, *report.index.values()] == [()] * (1 + len(report.index))
    hits = engine.search.retrieve("when is the lamp lit?", collection="lighthouse").hits
    assert hits[0].document.key == "lamp"
    assert "dusk" in engine.window("when is the lamp lit?", 100, collection="lighthouse").text
    quarantined = engine.documents.list_quarantined(collection="lighthouse")
    assert [document.key for document in quarantined.documents] == ["attack"]
    recalled = engine.memory.recall("where is the key?", scope=Scope("ann", "helper", "first talk"))
    assert "lantern room" in recalled.memories[0].memory.text
    assert engine.tasks.get("t1").title == "Polish the lens"
    assert engine.streams.search("who climbs?").moments
    assert engine.graph.get_node("keeper").name == "Ann Quill"
    assert {user.name for user in engine.people.list_users()} >= {"ann"}
    engine.documents.add(
        "The lens is cleaned in spring.", collection="lighthouse", source="handbook", wait=True
    )
    assert engine.search.retrieve("lens in spring", collection="lighthouse").hits[0].score > 0


def test_every_schema_has_a_store() -> None:
    revisions = {step.revision for step in ScriptDirectory(str(VERSIONS.parent)).walk_revisions()}
    assert set(SCHEMAS) >= revisions - {VERSION}, (
        "make it with scripts/store_fixture.py before the tables change"
    )


@pytest.mark.parametrize("dialect", FROZEN)
def test_the_first_migration_is_frozen(dialect: str) -> None:
    script = (VERSIONS / f"0001_initial.{dialect}.sql").read_bytes()
    assert hashlib.sha256(script).hexdigest() == FROZEN[dialect], "change the tables by a new migration"


@pytest.mark.parametrize("schema", SCHEMAS)
def test_a_store_of_each_schema_is_upgraded_and_searched(schema: str, tmp_path: Path) -> None:
    store = unpack(schema, tmp_path)
    for _ in range(2):
        with conspectus.open(store) as engine:
            check_upgraded(engine)


@pytest.mark.parametrize("schema", [schema for schema in SCHEMAS if schema < "0004"])
def test_facts_have_the_level_of_their_documents_and_other_parts_none(schema: str, tmp_path: Path) -> None:
    """Nobody noted who wrote the nodes and edges of older schemas: they are at most standard."""
    with conspectus.open(unpack(schema, tmp_path)) as engine:
        nodes = engine.graph.list_nodes().nodes
        assert (
            {node.trust for node in nodes}
            == {"standard"}
            == {edge.trust for edge in engine.graph.list_edges().edges}
        )
        facts = [
            edge
            for graph in engine.graph.list(collection="memory")
            for edge in engine.graph.list_edges(graph=graph.source.id, collection="memory").edges
        ]
        for fact in facts:
            document = engine.documents.get(str(fact.evidence))
            assert (fact.origin, fact.trust) == (document.origin, document.trust)
        assert facts


@pytest.mark.parametrize("schema", [schema for schema in SCHEMAS if schema < "0006"])
def test_facts_in_another_spelling_are_ended_by_the_upgrade(schema: str, tmp_path: Path) -> None:
    """An older program left both open."""
    store = unpack(schema, tmp_path)
    with closing(sqlite3.connect(store / "records.sqlite")) as database:
        cursor = database.execute(
            "SELECT * FROM graph_edges WHERE single = 1 AND valid_until IS NULL LIMIT 1"
        )
        names = [column[0] for column in cursor.description]
        fact = dict(zip(names, cursor.fetchone(), strict=True))
        ends = {"target": fact["source"], "target_id": fact["source_id"]}
        spelling = {"type": fact["type"].upper().replace(" ", "_"), "began": fact["began"] + 1}
        later = {**fact, **ends, **spelling, "id": "later", "number": 10_000}
        blanks = ", ".join(f":{name}" for name in names)
        database.execute(f"INSERT INTO graph_edges ({', '.join(names)}) VALUES ({blanks})", later)
        database.commit()
    with conspectus.open(store):
        pass
    with closing(sqlite3.connect(store / "records.sqlite")) as database:
        query = (
            "SELECT type_key, valid_until, closed_by FROM graph_edges WHERE id IN (?, 'later') ORDER BY began"
        )
        first, last = database.execute(query, (fact["id"],)).fetchall()
        assert first == (last[0], later["began"], 10_000)
        assert last[1:] == (None, None)
        assert database.execute("SELECT 1 FROM graph_edges WHERE type_key IS NULL").fetchall() == []


@pytest.mark.parametrize("schema", SCHEMAS[:1])
def test_a_database_of_the_first_schema_is_upgraded_and_searched(
    schema: str, tmp_path: Path, empty_url: str
) -> None:
    copy_to_postgres(unpack(schema, tmp_path), empty_url)
    with conspectus.open(empty_url) as engine:
        check_upgraded(engine)
    database = database_at(empty_url, DatabaseAccess())
    with database.reading.connect() as connection:
        assert version_of(connection) == VERSION
    database.close()


@pytest.mark.parametrize("change", LEFT_OUT.values(), ids=LEFT_OUT)
def test_a_store_from_before_versions_is_refused_unchanged(change: str, tmp_path: Path) -> None:
    path = unpack("0001", tmp_path) / "records.sqlite"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(change)
    before = path.read_bytes()
    with pytest.raises(StorageTooOld, match="Export its memories"), conspectus.open(tmp_path):
        pass
    assert path.read_bytes() == before


def test_a_browser_that_logged_in_before_stays_logged_in(tmp_path: Path) -> None:
    """Sessions belonged to keys alone until 0009."""
    folder = unpack("0008", tmp_path)
    id, token = SESSIONS.create()
    year = 365 * 24 * 3_600 * 1_000_000
    with closing(sqlite3.connect(folder / "records.sqlite")) as rows:
        key, scopes, now = rows.execute("SELECT id, scopes, created FROM keys").fetchone()
        rows.execute(
            "INSERT INTO sessions (id, key, hash, created, expires, last_used) VALUES (?, ?, ?, ?, ?, ?)",
            (id, key, hash_of(token), now, now + 100 * year, now + 90 * year),
        )
        rows.commit()
    with conspectus.open(folder) as engine:
        [session] = engine.logins.list_sessions("*")
        assert (session.id, session.key, " ".join(session.scopes)) == (id, key, scopes)
        assert session.user == engine.people.get_user("ann").id
