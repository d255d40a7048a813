"""Connections to servers that fail."""

from collections.abc import AsyncIterator

import pytest

from conspectus.index.milvus.connection import MilvusServer
from tests.support.milvus_server import MilvusProcess


@pytest.fixture
async def milvus_client(milvus: MilvusProcess) -> AsyncIterator[MilvusServer]:
    """A connection to the Milvus server."""
    opened = MilvusServer(milvus.uri, seconds=20)
    yield opened
    await opened.close()
