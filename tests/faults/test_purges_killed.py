"""Purges that were interrupted, by a kill or because they take long, are finished by themselves."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import sync
from conspectus.index.segments.manifest import lock_folder
from conspectus.model.ids import CollectionId, DocumentId
from conspectus.records.store import SqlRecords, open_records
from conspectus.testing.embedders import HashedEmbedder
from tests.files import holding
from tests.stores import SETTINGS
from tests.waiting import until

MARKER = "quaggazanzibar"
SMALL = replace(SETTINGS, tail_chunks=1)


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, str]:
    """A store with a text in its records and in the files of its index; the document and its collection."""
    store = tmp_path_factory.mktemp("stock")
    with sync.open(store, settings=SMALL, embedder=HashedEmbedder()) as engine:
        written = engine.add([f"{MARKER} {number}" for number in range(3)], wait=True)
        engine.maintenance.reindex()
        return store, written[0].id, engine.collections.get("default").id


@pytest.fixture
def stocked(stock: tuple[Path, str, str], tmp_path: Path) -> tuple[str, str]:
    """A copy of the store; the document and its collection."""
    store, document, collection = stock
    shutil.copytree(store, tmp_path, dirs_exist_ok=True)
    return document, collection


async def wait_until_erased(store: Path) -> None:
    """Wait until no purge is left to be finished."""
    records = await open_records(store / "records.sqlite")
    await until(lambda: is_done(records))
    await records.close()


async def is_done(records: SqlRecords) -> bool:
    return not await records.list_unfinished_purges()


@pytest.mark.parametrize("all_of_it", [False, True])
async def test_the_next_opening_erases_what_a_killed_process_deleted(
    tmp_path: Path, stocked: tuple[str, str], all_of_it: bool
) -> None:
    document, collection = stocked
    word = f"{MARKER} 0" if not all_of_it else MARKER
    records = await open_records(tmp_path / "records.sqlite")
    await records.begin_purge(CollectionId(collection))
    if all_of_it:
        await records.delete_collection(CollectionId(collection))
    else:
        await records.delete([DocumentId(document)])
    await records.close()
    if all_of_it:
        assert holding(tmp_path / "index", MARKER) != []
    async with conspectus.open(tmp_path, settings=SMALL, embedder=HashedEmbedder()):
        await wait_until_erased(tmp_path)
    assert holding(tmp_path, word) == []


async def test_a_purge_asked_for_again_erases_what_the_first_deleted(
    tmp_path: Path, stocked: tuple[str, str]
) -> None:
    document, collection = stocked
    records = await open_records(tmp_path / "records.sqlite")
    await records.begin_purge(CollectionId(collection))
    await records.delete([DocumentId(document)])
    await records.close()
    idle = replace(SMALL, run_background_jobs="off")
    async with conspectus.open(tmp_path, settings=idle, embedder=HashedEmbedder()) as engine:
        assert (await engine.documents.delete(document, purge=True)).purged
        await wait_until_erased(tmp_path)
    assert holding(tmp_path, f"{MARKER} 0") == []


async def test_a_caller_waits_for_seconds_and_the_erasure_goes_on(
    tmp_path: Path, stocked: tuple[str, str]
) -> None:
    """A build of the index holds the files for longer than a caller waits."""
    document, _ = stocked
    (manifest,) = tmp_path.glob("index/**/manifest.json")
    async with conspectus.open(tmp_path, settings=SMALL, embedder=HashedEmbedder()) as engine:
        engine._context.core.purges.max_wait_seconds = 0.1
        with lock_folder(manifest.parent) as mine:
            assert mine
            receipt = await engine.documents.delete(document, purge=True)
            assert (receipt.documents, receipt.purged, receipt.erasure_pending) == (1, False, True)
            assert holding(tmp_path, f"{MARKER} 0")
        await wait_until_erased(tmp_path)
        assert not holding(tmp_path, f"{MARKER} 0")
