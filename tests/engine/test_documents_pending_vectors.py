"""Pending vectors belong to the collection: whatever stopped them, they come without a restart."""

import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import structlog
from tests.support.embedders import LockedEmbedder
from tests.waiting import until

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import ProviderError
from conspectus.model.jobs import Upload
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.serve import run_work

SETTINGS = Settings()
FAULTS = ["openai: sent 1 vectors of [8] dimensions, not 2 of 8", "openai: sent a zero vector"]
REFUSAL = "openai: HTTP 400: too long"


async def count_pending(engine: Engine) -> tuple[int, int]:
    counts = (await engine.maintenance.status()).collections[0]
    return counts.pending, counts.errors


async def expect_embedded(engine: Engine) -> None:
    async def is_embedded() -> bool:
        return await count_pending(engine) == (0, 0)

    await until(is_embedded, seconds=30)


async def store_with_failures(folder: Path, *reasons: str) -> None:
    """A store of three documents, of which the first failed for some reasons before there were verdicts."""
    async with conspectus.open(folder, settings=SETTINGS, embedder=LockedEmbedder()) as engine:
        with pytest.raises(ProviderError):
            await engine.add(["red fox", "blue whale", "green frog"], wait=True)
        documents = (await engine.documents.list()).documents
        for document, reason in zip(documents, reasons, strict=False):
            await engine._context.core.records.fail(document.id, reason)


async def reopen(engine: Engine) -> None:
    """Opening alone is enough."""


async def resume(engine: Engine) -> None:
    await fail_again(engine)
    await engine.maintenance.resume()


async def reindex(engine: Engine) -> None:
    await fail_again(engine)
    await engine.maintenance.reindex()


async def reembed(engine: Engine) -> None:
    await fail_again(engine)
    await engine.maintenance.reembed("given")


async def fail_again(engine: Engine) -> None:
    """Give up on a document that has no vector any more, as an older version did."""
    await expect_embedded(engine)
    await engine.documents.add([conspectus.NewDocument("grey heron", key="heron")])
    stored = (await engine.documents.list()).documents[-1]
    await engine._context.core.records.fail(stored.id, FAULTS[0])


@pytest.mark.parametrize("heal", [reopen, resume, reindex, reembed])
async def test_vectors_that_failed_for_an_answer_are_made(
    tmp_path: Path, heal: Callable[[Engine], Awaitable[None]]
) -> None:
    await store_with_failures(tmp_path, *FAULTS)
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        await heal(engine)
        await expect_embedded(engine)


async def test_the_same_text_again_is_embedded_if_it_failed(tmp_path: Path) -> None:
    heron = conspectus.NewDocument("grey heron", key="heron")
    locked = LockedEmbedder()
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=locked) as engine:
        await engine.documents.add([heron])
        stored = (await engine.documents.list()).documents[0]
        await engine._context.core.records.fail(stored.id, REFUSAL)
        assert await count_pending(engine) == (0, 1)
        locked.locked = False
        await engine.maintenance.resume()
        assert await count_pending(engine) == (0, 1)
        await engine.documents.add([heron], wait=True)
        assert await count_pending(engine) == (0, 0)


async def test_a_worker_outlives_the_fault_of_its_provider(tmp_path: Path) -> None:
    locked = LockedEmbedder()
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=locked) as engine:
        with pytest.raises(ProviderError):
            await engine.add(["red fox"], wait=True)
        collection = (await engine.collections.get("default")).id
        work = engine._context.core.backfill.of(collection)
        assert work.runs
        locked.locked = False
        work.woken.set()
        await expect_embedded(engine)

        async def has_recovered() -> bool:
            return work.error is None

        await until(has_recovered)


async def test_what_a_cancelled_job_stored_is_embedded(tmp_path: Path) -> None:
    files = [Upload(f"{number}.md", b"# heron\n\nreeds") for number in range(30)]
    async with conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        job = await engine.jobs.ingest_files(files)

        async def has_begun() -> bool:
            return (await engine.jobs.get(job.id)).done > 0

        await until(has_begun)
        await engine.jobs.cancel(job.id)
        await expect_embedded(engine)


async def test_a_server_embeds_what_another_process_left(tmp_path: Path) -> None:
    log = structlog.wrap_logger(logging.getLogger("test"))
    text = conspectus.NewMessage("a heron in the reeds " * 300)
    async with (
        conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as server,
        run_work(server, SETTINGS, log),
    ):
        idle = Settings(run_background_jobs="off")
        async with conspectus.open(tmp_path, settings=idle, embedder=HashedEmbedder()) as engine:
            await engine.channels.add_messages([text], channel="reeds")
        await expect_embedded(server)
