"""Whether the server lives, and whether it is ready to be asked."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, Literal

from structlog.typing import FilteringBoundLogger

from conspectus.engine import Engine
from conspectus.errors import ConspectusError, ExtensionMissing
from conspectus.model.reports import CollectionStatus
from conspectus.web.logs import fault_facts

State = Literal["starting", "ready", "stopping"]
RETRY_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 5.0
"""A database that takes longer does not answer."""


class Readiness:
    """Whether the server is ready: once an index has followed the records, until the server stops.

    A collection whose index cannot be used leaves the others ready; it is tried again until it can.
    """

    def __init__(self, engine: Engine, log: FilteringBoundLogger) -> None:
        self.state: State = "starting"
        self.unavailable = 0
        """Collections whose index cannot be used; the log names them."""
        self.covered = False
        """Whether other processes answer at this address, so that it is ready although this one is not."""
        self._missing: str | None = None
        """What the indexes lack, if no collection can be used before it is there."""
        self._engine = engine
        self._log = log
        self._begun = asyncio.Event()
        self._database_check: asyncio.Task[str | None] | None = None
        self._when_stopping: list[Callable[[], None]] = []

    def call_when_stopping(self, call: Callable[[], None]) -> None:
        """Register a function to be called when the server is about to stop."""
        self._when_stopping.append(call)

    async def replay(self) -> None:
        """Bring every index up to the records; try again where one cannot be opened yet."""
        while self.state == "starting" or (self.unavailable and self.state == "ready"):
            try:
                collections = (await self._engine.maintenance.status()).collections
                await self._prepare_indexes(collections)
            except (ConspectusError, OSError) as error:
                self._log.error("readiness_failed", **fault_facts(error))
                await asyncio.sleep(RETRY_SECONDS)
            else:
                self._note(collections)
                if self.unavailable:
                    await asyncio.sleep(RETRY_SECONDS)

    async def _prepare_indexes(self, collections: Sequence[CollectionStatus]) -> None:
        """Raise what the indexes lack, unless the index of some collection can be used without it."""
        if all(collection.fault for collection in collections):
            try:
                await self._engine.prepare_indexes()
            except ExtensionMissing as error:
                self._missing = str(error)
                raise

    def _note(self, collections: Sequence[CollectionStatus]) -> None:
        """Become ready unless there are collections and none of them has an index that can be used."""
        faults = {collection.name: collection.fault for collection in collections if collection.fault}
        self.unavailable = len(faults)
        is_usable = not faults or len(faults) < len(collections)
        event = "collection_unavailable" if is_usable else "readiness_failed"
        for name, fault in faults.items():
            self._log.error(event, collection=name, fault=fault)
        if self.state == "starting" and is_usable:
            self.state = "ready"
            self._begun.set()
            self._log.info("ready")

    async def wait_until_begun(self) -> None:
        """Wait until the server is ready for the first time."""
        await self._begun.wait()

    async def obstacle(self) -> str | None:
        """Return why this process should get no requests now; None if it should."""
        if self.state != "ready" and not self.covered:
            return self._missing or f"the server is {self.state}"
        if self._database_check is None or self._database_check.done():
            self._database_check = asyncio.create_task(self._database_obstacle())
        return await asyncio.shield(self._database_check)

    async def _database_obstacle(self) -> str | None:
        """Return why the database cannot be used now, if so. Probes that come meanwhile share the check."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._engine.people.list_users()
        except (ConspectusError, TimeoutError) as error:
            self._log.error("readiness_failed", **fault_facts(error))
            return "the database does not answer"
        return None

    def stop(self) -> None:
        """Declare that this process should get no new requests from now on."""
        if self.state != "stopping":
            self.state = "stopping"
            for call in self._when_stopping:
                call()
