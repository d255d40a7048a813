"""One bit changes on the disk: the answer is right, an error says so, or `check` finds it."""

import asyncio
import random
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.errors import ConspectusError, RecordsDamaged
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), log_level="critical", tail_chunks=1_000)
DATABASE = Path("records.sqlite")
QUESTIONS = ("harbour 3", "tide comes in", "nothing of this")
Answers = Mapping[str, object]


def text_of(number: int) -> str:
    return f"harbour {number}: the tide comes in at {number % 12} and " + "goes out again " * number


async def write_store(folder: Path) -> Answers:
    """A store whose index has two segments, and what it answers."""
    async with conspectus.open(folder, settings=SETTINGS, embedder=HashedEmbedder(16)) as engine:
        for first in (0, 15):
            texts = [
                NewDocument(text_of(n), key=str(n), title=f"log {n}", metadata={"n": n})
                for n in range(first, first + 15)
            ]
            await engine.add(texts, wait=True)
            await (
                await engine._context.core.open_indexes.newest((await engine.collections.list())[0].id)
            ).index.flush()
        return await ask_everything(engine)


async def ask_everything(engine: Engine) -> Answers:
    """Everything that the store is asked here."""
    answers: dict[str, object] = {}
    for question in QUESTIONS:
        hits = (await engine.retrieve(question, limit=5)).hits
        answers[question] = [(hit.document.key, hit.chunk.text) for hit in hits]
        for hit in hits:
            answers[hit.document.id] = await engine.documents.get_text(hit.document.id)
    return answers


def flip_bit(file: Path, chance: random.Random) -> int:
    content = bytearray(file.read_bytes())
    used = [position for position, byte in enumerate(content) if byte]
    bit = 8 * chance.choice(used) + chance.randrange(8)
    content[bit // 8] ^= 1 << bit % 8
    file.write_bytes(content)
    return bit


async def open_damaged(folder: Path, right: Answers) -> str:
    """What a store with one wrong bit does."""
    try:
        async with conspectus.open(folder, settings=SETTINGS, embedder=HashedEmbedder(16)) as engine:
            answers = await ask_everything(engine)
            if answers == right:
                return "right"
            return "wrong" if (await engine.maintenance.check()).clean else "found"
    except ConspectusError:
        return "error"


async def damage_copy(folder: Path, copy: Path, seed: int, flips: int) -> None:
    right = await write_store(folder)
    chance = random.Random(seed)
    files = [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]
    files = [path for path in files if (folder / path).stat().st_size]
    wrong = []
    for number in range(flips):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        file = DATABASE if number % 2 else files[number // 2 % len(files)]
        bit = flip_bit(copy / file, chance)
        (result,) = await asyncio.gather(open_damaged(copy, right), return_exceptions=True)
        if result not in ("right", "found", "error"):
            wrong.append((file, bit, result))
    assert wrong == []


@pytest.mark.parametrize(
    "change", ["text = 'I' || substr(text, 2)", "start = start + 1", '"end" = "end" + 1']
)
async def test_a_text_that_changes_under_an_open_store_is_shown_to_nobody(
    tmp_path: Path, change: str
) -> None:
    settings = replace(SETTINGS, chunk_size=60, chunk_overlap=10)
    async with conspectus.open(tmp_path, settings=settings, embedder=HashedEmbedder(16)) as engine:
        changed_document, other = await engine.add([text_of(14), text_of(2)], wait=True)
        query = "harbour 14 tide"
        assert (await engine.retrieve(query, limit=1)).hits[0].document.id == changed_document.id
        with closing(sqlite3.connect(tmp_path / DATABASE)) as database, database:
            of_document = "document = (SELECT number FROM documents WHERE id = ?)"
            database.execute(f"UPDATE chunks SET {change} WHERE {of_document}", [changed_document.id])
        reads = [engine.documents.get_text(changed_document.id)]
        if change.startswith("text"):
            reads += [engine.retrieve(query, limit=1), engine.window(query, 500)]
            reads += [engine.documents.list_chunks(changed_document.id)]
        for read in reads:
            with pytest.raises(RecordsDamaged):
                await read
        assert await engine.documents.get_text(other.id) == text_of(2)


DAMAGED = [
    *[("chunks", column) for column in ("position", "start", "text")],
    *[("documents", column) for column in ("metadata", "recorded", "last_chunk")],
    *[("collections", column) for column in ("id", "model", "dimensions", "version", "sequence")],
]
ANYTHING = "UPDATE sqlite_master SET sql = replace(sql, ' NOT NULL', '')"


def change_records(folder: Path, statement: str) -> None:
    """Change what no program of ours would."""
    with closing(sqlite3.connect(folder / DATABASE)) as database, database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute(statement)


async def test_a_value_of_another_type_is_an_error(tmp_path: Path) -> None:
    """As where one bit of a row's header changes: its number is nothing, or its text is bytes."""
    right = await write_store(tmp_path / "store")
    for table, column in DAMAGED:
        for value in ("NULL", "CAST('x' AS BLOB)"):
            copy = tmp_path / f"{table} {column} {value}"
            shutil.copytree(tmp_path / "store", copy)
            for statement in (ANYTHING, f"UPDATE {table} SET {column} = {value}"):
                change_records(copy, statement)
            if (table, column, value) != ("collections", "model", "NULL"):
                assert await open_damaged(copy, right) == "error", (table, column, value)


async def test_no_bit_gives_a_wrong_answer(tmp_path: Path) -> None:
    await damage_copy(tmp_path / "store", tmp_path / "copy", seed=1, flips=60)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
async def test_no_bit_of_many_gives_a_wrong_answer(tmp_path: Path, seed: int) -> None:
    await damage_copy(tmp_path / "store", tmp_path / "copy", seed=seed, flips=500)
