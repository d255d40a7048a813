"""The shelf of a connection on a real engine, for tests of runs that no job drives."""

from collections.abc import Sequence
from dataclasses import replace

from conspectus import Engine
from conspectus.engine.connection_sources import ConnectionSources
from conspectus.model.connections import Connection
from conspectus.model.records import Metadata, NewDocument, Source, Written


class Shelf(ConnectionSources):
    """The shelf of an engine, with the connection where a test can see it."""

    def __init__(self, engine: Engine, connection: Connection) -> None:
        super().__init__(
            engine._context,
            engine.collections,
            engine.documents,
            connection,
            create_source=self.make,
            write=self.put,
        )
        self.engine, self.connection = engine, connection

    async def make(self, name: str, facts: Metadata) -> Source:
        home = self.connection.collection
        return await self.engine.collections.get_or_create_source(
            name, collection=home, metadata=facts, kind="wiki"
        )

    async def put(self, source: Source, documents: Sequence[NewDocument]) -> Sequence[Written]:
        return await self.engine.add(documents, source=source.id, collection=source.collection)

    async def save_cursor(self, cursor: str) -> None:
        self.connection = replace(self.connection, cursor=cursor)
