"""Liveness and readiness of the server."""

import asyncio
from collections.abc import Callable
from typing import Final, Literal

from structlog.typing import FilteringBoundLogger

from conspectus.engine import Engine
from conspectus.errors import ConspectusError
from conspectus.web.logs import fault_facts

State = Literal["starting", "ready", "stopping"]
PAUSE: Final = 5.0
ANSWER_SECONDS: Final = 5.0
"""Seconds after which a database counts as unavailable."""


class Readiness:
    """The server is ready once every index has followed the records, until it stops."""

    def __init__(self, engine: Engine, log: FilteringBoundLogger) -> None:
        self.state: State = "starting"
        self.covered = False
        """Whether other processes at this address are ready although this one is not."""
        self._engine = engine
        self._log = log
        self._begun = asyncio.Event()
        self._when_stopping: list[Callable[[], None]] = []

    def when_stopping(self, call: Callable[[], None]) -> None:
        """Register a callback for the start of the shutdown."""
        self._when_stopping.append(call)

    async def replay(self) -> None:
        """Bring every index up to the records; retry those that cannot be opened yet."""
        while self.state == "starting":
            try:
                await self._engine.maintenance.status()
            except (ConspectusError, OSError) as error:
                self._log.error("readiness_failed", **fault_facts(error))
                await asyncio.sleep(PAUSE)
            else:
                self._begin()

    async def begun(self) -> None:
        """Wait until the server is ready for the first time."""
        await self._begun.wait()

    async def obstacle(self) -> str | None:
        """Return why no requests should be sent here now; None if there is no reason."""
        if self.state != "ready" and not self.covered:
            return f"the server is {self.state}"
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._engine.people.list_users()
        except (ConspectusError, TimeoutError) as error:
            self._log.error("readiness_failed", **fault_facts(error))
            return "the database does not answer"
        return None

    def stop(self) -> None:
        """Report that no new requests should be sent here."""
        if self.state != "stopping":
            self.state = "stopping"
            for call in self._when_stopping:
                call()

    def _begin(self) -> None:
        if self.state == "starting":
            self.state = "ready"
            self._begun.set()
            self._log.info("ready")
