"""What SQLite reads for a write: no more in a larger store, whichever index was created first."""

import random
import re
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy
from sqlalchemy import event
from tests.stores import SETTINGS

import conspectus
from conspectus import Engine
from conspectus.model.captions import NewCaption
from conspectus.model.channels import NewMessage
from conspectus.model.memory import MemorySelection, NewMemory, Scope
from conspectus.model.records import NewDocument
from conspectus.model.tasks import Task
from conspectus.records.core.schema import creation_statements
from conspectus.testing.embedders import HashedEmbedder

ANN = Scope("ann")
STEP = 20
"""Work is counted in so many instructions of SQLite's virtual machine."""
SMALL, LARGE = 120, 480
"""More than the newest messages of a channel that a new one is compared with."""
MARKS = re.compile(r"\?(, \?)+")
SCANS = {
    "collections": "all of them are read, of which there are few",
    "tree": "the documents that a recursive query has found so far",
    "anon_1": "a list that was given",
    "anon_2": "the same list in the other half of a union",
}


@dataclass
class Work:
    """What each statement made SQLite do, and with which values it was asked last."""

    steps: Counter[str] = field(default_factory=Counter)
    runs: Counter[str] = field(default_factory=Counter)
    statements: dict[str, tuple[str, Any]] = field(default_factory=dict)

    def each(self, sql: str) -> float:
        """The steps of one run: how often workers look is a matter of time."""
        return self.steps[sql] / self.runs[sql]


@contextmanager
def watched() -> Iterator[Work]:
    """Count what is done from here on, by the connections that are opened from here on."""
    work, current = Work(), dict[int, str]()

    def connected(connection: sqlite3.Connection, _: object) -> None:
        def step() -> None:
            work.steps[current.get(id(connection), "")] += 1

        connection.set_progress_handler(step, STEP)

    def note_statement(
        connection: sqlalchemy.Connection, _: object, sql: str, values: Any, *more: Any
    ) -> None:
        name = MARKS.sub("?", sql)
        current[id(connection.connection.driver_connection)] = name
        work.runs[name] += len(values) if more[-1] else 1
        work.statements[name] = (sql, values[0] if more[-1] else values)

    event.listen(sqlalchemy.Engine, "connect", connected)
    event.listen(sqlalchemy.Engine, "before_cursor_execute", note_statement)
    yield work
    event.remove(sqlalchemy.Engine, "connect", connected)
    event.remove(sqlalchemy.Engine, "before_cursor_execute", note_statement)


async def fill(engine: Engine, size: int) -> None:
    await engine.add([NewDocument(f"text {number}", key=str(number)) for number in range(size)])
    await engine.memory.add(
        [NewMemory(f"note {number}", key=str(number)) for number in range(size)], scope=ANN
    )
    messages = [NewMessage(f"said {number}", key=str(number), author="ann") for number in range(size)]
    await engine.channels.add_messages(messages, channel="ops")
    await engine.streams.add_captions(
        [NewCaption(f"seen {number}", start=number) for number in range(size)], stream="cam"
    )
    await engine.tasks.put_many([Task(id=str(number), title=f"Do {number}") for number in range(size)])
    for collection in await engine.collections.list():
        await engine.documents.wait_until_embedded(collection=collection.name)


async def write(engine: Engine, key: str) -> None:
    """Write in every way that a caller can."""
    await engine.add(NewDocument("one more", key=key))
    [added] = await engine.add(NewDocument("one more, and wait", key=f"{key} waited"), wait=True)
    await engine.add(NewDocument("one that replaces it", key=f"{key} waited"), wait=True)
    await engine.documents.update(added.id, title="a title")
    await engine.documents.delete(added.id)
    [memory] = await engine.memory.add(NewMemory("I moved to Rome", key=key), scope=ANN, wait=True)
    await engine.memory.update(memory.id, scope=ANN, text="I moved back")
    await engine.memory.forget(MemorySelection(ids=(memory.id,)), scope=ANN)
    messages = [NewMessage("who?", key=key, author="ann"), NewMessage("me", reply_to=key, author="bo")]
    await engine.channels.add_messages(messages, channel="ops", wait=True)
    await engine.streams.add_captions([NewCaption("a red car", key=key, start=1, end=2)], stream="cam")
    tasks = engine.tasks
    await tasks.put(Task(id=key, title="Write", description="at length"))
    await tasks.update(key, title="Read")
    await tasks.delete(key)
    for collection in await engine.collections.list():
        await engine.documents.wait_until_embedded(collection=collection.name)


async def work_of_writes(folder: Path, size: int) -> Work:
    with watched() as work:
        async with conspectus.open(folder, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
            await fill(engine, size)
            await write(engine, "the first of its kind")
            for counted in (work.steps, work.runs, work.statements):
                counted.clear()
            await write(engine, "measured")
    return work


def plan(database: sqlite3.Connection, sql: str, values: Any) -> list[str]:
    return [row[3] for row in database.execute(f"EXPLAIN QUERY PLAN {sql}", values)]


def with_indexes_shuffled(seed: int) -> sqlite3.Connection:
    statements = list(creation_statements("sqlite"))
    random.Random(seed).shuffle(statements)
    database = sqlite3.connect(":memory:")
    for statement in sorted(statements, key=lambda statement_text: "INDEX" in statement_text):
        database.execute(statement)
    return database


def assert_alike(work: Work, stores: Sequence[sqlite3.Connection]) -> None:
    """Each statement is planned alike in all stores, and goes through no table that grows."""
    for sql, values in work.statements.values():
        if sql.startswith(("SELECT", "UPDATE", "DELETE", "WITH")):
            first, *others = [plan(store, sql, values) for store in stores]
            assert all(other == first for other in others), (sql, first, others)
            scanned = {line.split()[1] for line in first if line.startswith("SCAN")}
            assert scanned <= SCANS.keys(), (sql, first)


async def test_a_write_does_no_more_in_a_larger_store(tmp_path: Path) -> None:
    small = await work_of_writes(tmp_path / "small", SMALL)
    large = await work_of_writes(tmp_path / "large", LARGE)
    assert len(large.statements) > 50
    grown = {sql: (small.each(sql), large.each(sql)) for sql in large.runs if small.runs[sql]}
    assert {sql: growth for sql, growth in grown.items() if growth[1] > 1.2 * growth[0] + 10} == {}


async def test_what_a_write_reads_depends_on_no_order_of_indexes(tmp_path: Path) -> None:
    work = await work_of_writes(tmp_path / "store", 1)
    with ExitStack() as opened:
        assert_alike(work, [opened.enter_context(closing(with_indexes_shuffled(seed))) for seed in range(8)])


def test_a_new_store_gets_its_indexes_in_the_order_of_their_names() -> None:
    indexes = [
        statement.split()[2:5:2]
        for statement in creation_statements("sqlite")
        if statement.startswith("CREATE INDEX")
    ]
    for table in {table for _, table in indexes}:
        of_table = [name for name, named in indexes if named == table]
        assert of_table == sorted(of_table)
