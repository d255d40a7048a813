"""Every index adapter, held to the contract."""

import pytest

from conspectus.index.memory import MemoryIndex
from conspectus.ports import Index
from conspectus.testing.index_contract import IndexContract, OpenIndex
from conspectus.testing.journal import Journal
from conspectus.text.words import Analyzer


class TestMemory(IndexContract):
    @pytest.fixture
    def open_index(self) -> OpenIndex:
        async def opened(journal: Journal) -> Index:
            return MemoryIndex(journal, Analyzer("english").terms)

        return opened
