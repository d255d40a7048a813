"""Every index adapter, held to the contract."""

from pathlib import Path

import pytest
from tests.contracts.index_contract import DIMENSIONS, IndexContract, OpenIndex
from tests.support import index_recall
from tests.support.in_memory_index import MemoryIndex
from tests.support.index_recall import IndexRecall
from tests.support.journal import Journal

from conspectus.index.segments.build import Options
from conspectus.index.segments.store import SegmentsIndex
from conspectus.ports import Index
from conspectus.text.analyzer import Analyzer


class TestMemory(IndexContract):
    @pytest.fixture
    def open_index(self) -> OpenIndex:
        async def opened(journal: Journal) -> Index:
            return MemoryIndex(journal, Analyzer("english").terms)

        return opened


class TestSegments(IndexContract):
    """Everything in the tail, and segments only after `rebuild` and `purge`."""

    options = Options()

    @pytest.fixture
    def open_index(self, tmp_path: Path) -> OpenIndex:
        async def opened(journal: Journal) -> Index:
            return await SegmentsIndex.open(
                tmp_path / "index",
                journal,
                Analyzer("english").terms,
                dimensions=DIMENSIONS,
                options=self.options,
            )

        return opened


class TestSegmentsOfFewChunks(TestSegments):
    """A segment is built after almost every change, and has inverted lists. Threads search them.

    They are merged as soon as nothing changes.
    """

    options = Options(tail_chunks=1, codes_from=3, lists_from=3, threads_from=1, rest_seconds=0.0)


class TestSegmentsWithCodes(TestSegments):
    """A segment is built after almost every change, and has its codes in one list."""

    options = Options(tail_chunks=1, codes_from=3)


class TestRecall(IndexRecall):
    """With inverted lists in a segment that would be scanned as a whole otherwise."""

    options = Options(codes_from=3_000, lists_from=3_000)

    @pytest.fixture
    def open_index(self, tmp_path: Path) -> OpenIndex:
        async def opened(journal: Journal) -> Index:
            return await SegmentsIndex.open(
                tmp_path, journal, str.split, dimensions=index_recall.DIMENSIONS, options=self.options
            )

        return opened


class TestRecallOfOneList(TestRecall):
    """Filters of up to an eighth of the rows compare vectors, wider ones choose by codes."""

    options = Options(codes_from=3_000)


@pytest.mark.slow
class TestRecallOfMany(TestRecall):
    """As it is used."""

    size = 200_000
    options = Options()
