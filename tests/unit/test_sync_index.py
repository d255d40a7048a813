"""How an index is brought up to the records: one by one, or a backlog built beside."""

from pathlib import Path

import numpy as np
import pytest
from tests.support.journal import Journal, make_chunk, unit

from conspectus.index.segments.build import Options
from conspectus.index.segments.store import SegmentsIndex
from conspectus.ingest import open_indexes
from conspectus.ingest.open_indexes import catch_up
from conspectus.model.filter import EVERYTHING
from conspectus.ports import Probe

DIMENSIONS = 8


async def opened(folder: Path, journal: Journal) -> SegmentsIndex:
    return await SegmentsIndex.open(
        folder, journal, str.split, dimensions=DIMENSIONS, options=Options(tail_chunks=10**9)
    )


def fill(journal: Journal, first: int, last: int) -> None:
    vector = unit(np.arange(DIMENSIONS) == 0)
    journal.put([make_chunk(number, f"word{number} common", vector=vector) for number in range(first, last)])


@pytest.mark.parametrize("seen_before", [0, 50])
async def test_a_backlog_is_built_and_not_kept_in_memory(tmp_path: Path, seen_before: int) -> None:
    journal = Journal()
    index = await opened(tmp_path, journal)
    if seen_before:
        fill(journal, 1, seen_before + 1)
        await catch_up(index, journal, await journal.last_sequence())
    fill(journal, seen_before + 1, open_indexes.BULK + 100)
    await catch_up(index, journal, await journal.last_sequence())
    status = await index.status()
    assert status.chunks == open_indexes.BULK + 99
    assert status.details["tail"] == "0"
    found = await index.search(Probe(EVERYTHING, f"word{open_indexes.BULK}", None, 10))
    assert list(found.ids) == [open_indexes.BULK]
    await index.close()


async def test_a_few_changes_are_taken_in_without_building(tmp_path: Path) -> None:
    journal = Journal()
    index = await opened(tmp_path, journal)
    fill(journal, 1, 101)
    await catch_up(index, journal, await journal.last_sequence())
    assert (await index.status()).details["tail"] == "100"
    assert not list(tmp_path.iterdir())
    await index.close()
