"""The indexes of a store in Milvus: one connection, and a name for each collection and space."""

import asyncio
import hashlib
import re
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from conspectus.errors import InvalidInput, MissingExtra
from conspectus.model.records import Collection, EmbeddingSpace
from conspectus.ports import Index, Reader
from conspectus.ports.jobs import Lock, Turns
from conspectus.settings import Settings
from conspectus.text.analyzer import Analyzer

if TYPE_CHECKING:
    from conspectus.index.milvus.captions import MilvusCaptions
    from conspectus.index.milvus.connection import MilvusServer
    from conspectus.index.milvus.search import MilvusLocation

LITE = "milvus.db"
_PREFIX = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class MilvusIndexes:
    """Opens indexes in Milvus; what many processes do to one, they do in turn."""

    def __init__(self, folder: Path, settings: Settings, turns: Turns) -> None:
        if not _PREFIX.fullmatch(settings.milvus_prefix):
            raise InvalidInput("milvus_prefix", "must be a letter or _, then at most 63 letters, digits or _")
        self._folder = folder
        self._settings = settings
        self._turns = turns
        self._server: MilvusServer | None = None
        self._opening = asyncio.Lock()

    async def open(self, collection: Collection, space: EmbeddingSpace | None, reader: Reader) -> Index:
        """The index of a collection in a space. Raises StorageBusy or MissingExtra."""
        place = await self._place(collection, space)
        from conspectus.index.milvus.store import MilvusIndex

        return await MilvusIndex.open(place, reader, Analyzer(language=collection.language).terms)

    async def forget(self, collection: Collection, space: EmbeddingSpace | None) -> None:
        """Delete an index. Raises StorageBusy."""
        place = await self._place(collection, space)
        from conspectus.index.milvus.writes import forget

        await forget(place)

    async def stray(self) -> Sequence[str]:
        """None: another store may keep its own under the same prefix."""
        return ()

    async def sweep(self) -> None:
        """Nothing to do."""

    async def close(self) -> None:
        """Let go of the connection."""
        if self._server is not None:
            await self._server.close()

    async def _place(self, collection: Collection, space: EmbeddingSpace | None) -> "MilvusLocation":
        async with self._opening:
            if self._server is None:
                self._server = await asyncio.to_thread(_connection, self._folder, self._settings)
        from conspectus.index.milvus.search import MilvusLocation

        name = index_name(self._settings.milvus_prefix, collection, space)
        dimensions = space.dimensions if space else 0
        return MilvusLocation(self._server, name, partial(_turn_for, self._turns, name), dimensions)


def milvus_captions(collection: str, dimensions: int, settings: Settings) -> "MilvusCaptions":
    """The captions of a collection that other programs may know too. Raises MissingExtra."""
    server = _connection(Path(), settings)
    from conspectus.index.milvus.captions import MilvusCaptions

    return MilvusCaptions(server, collection, dimensions)


def index_name(prefix: str, collection: Collection, space: EmbeddingSpace | None) -> str:
    """The name in Milvus: not that of a deleted namesake, nor of one in another store."""
    parts = (collection.id, collection.created.isoformat(), "words" if space is None else space.name)
    digest = hashlib.blake2b("\0".join(parts).encode("utf-8", "surrogatepass"), digest_size=8)
    return f"{prefix}_{digest.hexdigest()}"


def _connection(folder: Path, settings: Settings) -> "MilvusServer":
    try:
        from conspectus.index.milvus.connection import MilvusServer
    except ImportError as fault:
        raise MissingExtra("milvus", fault.name or "pymilvus") from fault
    uri = settings.milvus_uri or str(folder / LITE)
    return MilvusServer(uri, token=settings.milvus_token, seconds=float(settings.milvus_timeout_seconds))


def _turn_for(turns: Turns, name: str, work: str) -> AbstractAsyncContextManager[Lock]:
    return turns(f"{name}.{work}")
