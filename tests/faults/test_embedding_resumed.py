"""Pending vectors on PostgreSQL: whatever stopped them, they are made without a restart."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import structlog

import conspectus
from conspectus import Engine, Settings
from conspectus.model.jobs import FINISHED, Job, Upload
from conspectus.ports import Embedder
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.serve import run_work
from tests.programs import program
from tests.support.embedders import PickyEmbedder
from tests.waiting import until

SETTINGS = replace(Settings(), lease_seconds=2, job_backoff_ms=20, log_level="critical")
FILES = [Upload(f"{number}.md", b"# heron\n\nreeds") for number in range(30)]
WORKER = """
import asyncio, logging, sys
from dataclasses import replace

import structlog

import conspectus
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.serve import run_work
from tests.faults.test_embedding_resumed import FILES, SETTINGS

class Waiting(HashedEmbedder):
    async def embed_documents(self, texts):
        await asyncio.Event().wait()

async def main():
    settings = replace(SETTINGS, cache=sys.argv[2])
    async with (
        conspectus.open(sys.argv[1], settings=settings, embedder=Waiting()) as engine,
        run_work(engine, settings, structlog.wrap_logger(logging.getLogger("test"))),
    ):
        await engine.add("grebe")
        await engine.retrieve("grebe")
        print("ready", flush=True)
        await engine.jobs.ingest_files(FILES)
        await asyncio.Event().wait()

asyncio.run(main())
"""
"""A worker with an index, which takes a job, stores its files, and never gets a vector from its provider."""


@asynccontextmanager
async def running_server(url: str, cache: Path, embedder: Embedder) -> AsyncIterator[Engine]:
    """A process with background work, which nobody asks for anything."""
    settings = replace(SETTINGS, cache=str(cache))
    async with (
        conspectus.open(url, settings=settings, embedder=embedder) as engine,
        run_work(engine, settings, structlog.wrap_logger(logging.getLogger("test"))),
    ):
        yield engine


async def expect_embedded(engine: Engine) -> None:
    async def is_embedded() -> bool:
        (counts,) = (await engine.maintenance.status()).collections
        return (counts.pending, counts.errors) == (0, 0) and counts.vectors > 0

    await until(is_embedded)


async def has_stored_files(engine: Engine) -> bool:
    return (await engine.maintenance.status()).collections[0].documents > len(FILES) // 2


async def wait_for_end(engine: Engine, job: Job) -> Job:
    async def has_ended() -> bool:
        return (await engine.jobs.get(job.id)).state in FINISHED

    await until(has_ended)
    return await engine.jobs.get(job.id)


async def test_what_a_cancelled_job_stored(postgres_url: str, tmp_path: Path) -> None:
    async with running_server(postgres_url, tmp_path, HashedEmbedder()) as engine:
        job = await engine.jobs.ingest_files(FILES)

        async def has_begun() -> bool:
            return (await engine.jobs.get(job.id)).done > 0

        await until(has_begun)
        await engine.jobs.cancel(job.id)
        await expect_embedded(engine)


async def test_what_a_failed_job_stored(postgres_url: str, tmp_path: Path) -> None:
    """Its provider is away for longer than it is tried, and then comes back."""
    async with running_server(postgres_url, tmp_path, PickyEmbedder(away=40)) as engine:
        job = await engine.jobs.ingest_files(FILES)
        assert (await wait_for_end(engine, job)).state == "failed"
        work = engine._context.core.backfill.of(job.collection)

        async def is_embedded() -> bool:
            work.woken.set()
            (counts,) = (await engine.maintenance.status()).collections
            return counts.pending == 0

        await until(is_embedded)
        await expect_embedded(engine)


async def test_what_a_killed_worker_stored(postgres_url: str, tmp_path: Path) -> None:
    """A server of its machine, which was there before, goes on."""
    async with (
        program("-c", WORKER, postgres_url, tmp_path) as worker,
        running_server(postgres_url, tmp_path, HashedEmbedder()) as engine,
    ):
        await until(lambda: has_stored_files(engine))
        worker.kill()
        await expect_embedded(engine)
        (job,) = (await engine.jobs.list(limit=1)).jobs
        assert (await wait_for_end(engine, job)).state == "succeeded"
