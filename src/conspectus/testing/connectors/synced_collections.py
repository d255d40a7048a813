"""A collection of a real engine that is connected with a server: what a sync stores, and how it ends."""

import base64
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import conspectus
from conspectus.deferred import dataclass
from conspectus.engine.engine import Engine
from conspectus.model.access import LOCAL_OWNER
from conspectus.model.connections import Connection
from conspectus.model.jobs import Job
from conspectus.settings import Settings
from conspectus.testing.connectors.servers import ConnectedServer

COLLECTION, CONNECTION = "team", "remote"
KIT_SETTINGS = replace(
    Settings(),
    embedder="none",
    job_max_attempts=1,
    fetch_allowed_networks="127.0.0.1",
    secret_key=base64.urlsafe_b64encode(os.urandom(32)).decode(),
)


@dataclass(slots=True)
class SyncedCollection:
    """The collection `team` of an engine, and its connection with a server."""

    owner: Engine
    remote: ConnectedServer
    connection: Connection

    async def sync(self) -> Job:
        """Sync once; the job has ended, also if the server refused."""
        job = await self.owner.connections.sync(CONNECTION, collection=COLLECTION)
        return await self.owner.jobs.wait(job.id)

    async def sync_fully(self) -> Job:
        """Sync once, and check that it succeeded."""
        job = await self.sync()
        assert job.state == "succeeded", (job.error, job.result)
        return job

    async def texts(self) -> list[str]:
        """The texts of all stored pages, sorted, as the sync itself may read them."""
        everything = self.owner.as_person(replace(LOCAL_OWNER, syncs=self.connection.id))
        page = await everything.documents.list(collection=COLLECTION, limit=1_000)
        texts = await everything.documents.get_texts([document.id for document in page.documents])
        return sorted(text.strip() for text in texts.values())

    async def read_connection(self) -> Connection:
        """The connection as it is stored now."""
        (connection,) = await self.owner.connections.list(collection=COLLECTION)
        return connection


async def connect_collection(owner: Engine, remote: ConnectedServer) -> SyncedCollection:
    """Connect the collection with a server; nothing is synced yet."""
    connection = await owner.connections.create(
        CONNECTION,
        remote.kind,
        remote.options,
        credentials=remote.credentials,
        collection=COLLECTION,
    )
    return SyncedCollection(owner, remote, connection)


@asynccontextmanager
async def open_engine(folder: Path) -> AsyncIterator[Engine]:
    """An engine on an empty store in SQLite."""
    async with conspectus.open(folder / "store", settings=KIT_SETTINGS) as engine:
        yield engine
