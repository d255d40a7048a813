"""The combinations of records and index that must behave as one, each opened as a user opens it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import conspectus
from conspectus import Engine, Settings
from conspectus.index.milvus.connection import MilvusServer
from conspectus.ports import Embedder
from tests.support.milvus_server import MilvusProcess
from tests.support.postgres_server import PostgresProcess

SETTINGS = replace(Settings(), log_level="critical", milvus_timeout_seconds=30)
STORES = (
    "sqlite+segments",
    "postgresql+segments",
    "postgresql+pgvector",
    "sqlite+milvus",
    "postgresql+milvus",
)


@dataclass(frozen=True, slots=True)
class Servers:
    """The servers that stores are opened on; what is in one is told apart by its names."""

    postgres: PostgresProcess
    milvus: MilvusProcess

    @asynccontextmanager
    async def opened(
        self, store: str, folder: Path, embedder: Embedder, *, settings: Settings = SETTINGS
    ) -> AsyncIterator[Engine]:
        """An engine on an empty store of that kind, which is gone afterwards."""
        records, index = store.split("+")
        options = replace(settings, index=index, cache=str(folder / "cache"))
        if index == "milvus":
            options = replace(options, milvus_uri=self.milvus.uri, milvus_prefix=f"t_{uuid4().hex[:12]}")
        with self._place(records, folder) as address:
            async with conspectus.open(address, settings=options, embedder=embedder) as engine:
                yield engine
        if index == "milvus":
            await self._forget(options.milvus_prefix)

    async def _forget(self, prefix: str) -> None:
        """Milvus Lite keeps something running for every collection."""
        server = MilvusServer(self.milvus.uri)
        for name in await server.collections():
            if name.startswith(prefix):
                await server.drop(name)
        await server.close()

    @contextmanager
    def _place(self, records: str, folder: Path) -> Iterator[str]:
        if records == "sqlite":
            yield str(folder / "data")
            return
        with self.postgres.lent() as url:
            yield url
