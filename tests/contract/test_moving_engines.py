"""A store that was moved answers as before, and its documents are the same to the byte."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import Connection
from tests.filled_databases import database, keep_job
from tests.support.postgres_server import PostgresProcess

import conspectus
from conspectus import Engine, NewDocument
from conspectus.bootstrap.store_address import RECORDS
from conspectus.bootstrap.transfer import move
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.ids import JobId
from conspectus.model.jobs import Upload
from conspectus.records.core.database import transact
from conspectus.settings import Settings
from conspectus.sources.files.job_files import LocalJobFiles
from conspectus.testing.embedders import HashedEmbedder

TOPICS = ("printers", "releases on Tuesdays", "Straße 日本語", "backups \U0001f600", "keys and doors")


async def fill(engine: Engine) -> None:
    texts = [f"{TOPICS[n % 5]}: note {n}. " * (1 + n % 7) for n in range(60)]
    metadata = [{"n": n, "of": TOPICS[n % 5]} for n in range(60)]
    documents = [
        NewDocument(text, key=f"k{n}", title=f"Note {n}", metadata=metadata[n], occurred=1_700_000_000.5 + n)
        for n, text in enumerate(texts)
    ]
    await engine.add(documents, wait=True)
    await engine.add(NewDocument("replaced: keys and doors", key="k7"), wait=True)
    await engine.documents.delete([(await engine.documents.list(limit=3)).documents[2].id])


async def read_everything(
    store: str | Path, settings: Settings
) -> tuple[object, Sequence[Sequence[tuple[int, float]]]]:
    """Every document with its text, and what is found for some questions."""
    async with conspectus.open(store, settings=settings, embedder=HashedEmbedder()) as engine:
        documents = (await engine.documents.list(limit=100)).documents
        texts = await engine.documents.get_texts([document.id for document in documents])
        answers = [(await engine.retrieve(topic, limit=10)).hits for topic in TOPICS]
        assert (await engine.maintenance.check()).clean
    return (documents, texts), [[(hit.chunk.id, hit.score) for hit in hits] for hits in answers]


async def test_there_and_back_nothing_is_other(tmp_path: Path, postgres: PostgresProcess) -> None:
    settings = Settings(cache=str(tmp_path / "cache"), lock_timeout_seconds=20)
    first, last = tmp_path / "first", tmp_path / "last"
    async with conspectus.open(first, settings=settings, embedder=HashedEmbedder()) as engine:
        await fill(engine)
    with postgres.fresh(empty=True) as url:
        there = move(first, url, settings=settings)
        back = move(url, last, settings=settings)
        assert [table.source for table in there.moved.tables] == [table.target for table in back.moved.tables]
        expected, answers = await read_everything(first, settings)
        for store in (url, last):
            documents, scores = await read_everything(store, settings)
            assert documents == expected
            assert [[chunk for chunk, _ in hits] for hits in scores] == [
                [chunk for chunk, _ in hits] for hits in answers
            ]
            assert [score for hits in scores for _, score in hits] == pytest.approx(
                [score for hits in answers for _, score in hits], abs=1e-4
            )


async def test_numbers_go_on_where_they_were(tmp_path: Path) -> None:
    settings = Settings(embedder="none")
    async with conspectus.open(tmp_path / "a", settings=settings) as engine:
        await engine.add([NewDocument(f"text {n}", key=f"k{n}") for n in range(5)])
    move(tmp_path / "a", tmp_path / "b", settings=settings)
    ids = []
    for name in ("a", "b"):
        async with conspectus.open(tmp_path / name, settings=settings) as engine:
            await engine.add(NewDocument("one more", key="more"))
            ids.append([hit.chunk.id for hit in (await engine.retrieve("one more")).hits])
    assert ids[0] == ids[1] != []


async def create_jobs(folder: Path, settings: Settings, states: Mapping[str, str]) -> LocalJobFiles:
    """What jobs have in a new store that has these jobs."""
    async with conspectus.open(folder, settings=settings) as engine:
        await engine.add(NewDocument("a text"))

    def keep(connection: Connection) -> None:
        for job, state in states.items():
            keep_job(connection, job, state)

    with database(str(folder / RECORDS)) as opened:
        await asyncio.to_thread(transact, opened, opened.writing, keep)
    return LocalJobFiles(folder)


async def test_files_of_running_jobs_come_along(tmp_path: Path, postgres: PostgresProcess) -> None:
    settings = Settings(embedder="none", cache=str(tmp_path / "cache"))
    job_files = await create_jobs(tmp_path / "a", settings, {"one": "queued", "two": "running"})
    await job_files.store_secret(JobId("one"), {"header": "value"})
    await job_files.store_files(JobId("two"), [Upload("a.bin", bytes(range(256)) * 9_000), Upload("b", b"")])
    with postgres.fresh(empty=True) as url:
        move(tmp_path / "a", url, settings=settings)
        move(url, tmp_path / "b", settings=settings)
    move(tmp_path / "b", tmp_path / "c", settings=settings)
    moved_files = LocalJobFiles(tmp_path / "c")
    assert await moved_files.secret(JobId("one")) == {"header": "value"}
    assert [path.read_bytes() for path in await moved_files.files(JobId("two"))] == [
        bytes(range(256)) * 9_000,
        b"",
    ]
    assert set(await moved_files.holders()) == {"one", "two"}


async def test_files_of_jobs_that_have_ended_stay_and_may_go_away(
    tmp_path: Path, postgres: PostgresProcess
) -> None:
    settings = Settings(embedder="none", cache=str(tmp_path / "cache"))
    job_files = await create_jobs(tmp_path / "a", settings, {"one": "running", "over": "failed"})
    for job in ("one", "over", "unknown"):
        await job_files.store_files(JobId(job), [Upload("a", b"first"), Upload("b", b"second")])
    half_gone = tmp_path / "a" / "uploads" / "over" / "1"
    half_gone.unlink()
    half_gone.symlink_to(tmp_path / "nowhere")
    with postgres.fresh(empty=True) as url:
        await asyncio.to_thread(move, tmp_path / "a", url, settings=settings)
        with psycopg.connect(url) as connection:
            connection.execute("INSERT INTO job_files VALUES ('over', 0, 1, 'not from its beginning', 0)")
        await asyncio.to_thread(move, url, tmp_path / "b", settings=settings)
    moved_files = LocalJobFiles(tmp_path / "b")
    assert set(await moved_files.holders()) == {"one"}
    assert [path.read_bytes() for path in await moved_files.files(JobId("one"))] == [b"first", b"second"]


async def test_places_that_cannot_be_moved_from_or_to(tmp_path: Path) -> None:
    settings = Settings(embedder="none")
    async with conspectus.open(tmp_path / "a", settings=settings):
        pass
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(NotFound):
        move(tmp_path / "nothing", tmp_path / "b", settings=settings)
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(Conflict, match=r"letter\.txt"):
        move(tmp_path / "a", tmp_path / "mine", settings=settings)
    with pytest.raises(InvalidInput):
        move(tmp_path / "a", tmp_path / "a" / ".." / "a", settings=settings)
    with pytest.raises(InvalidInput):
        move(tmp_path / "a", "mysql://localhost/x", settings=settings)
