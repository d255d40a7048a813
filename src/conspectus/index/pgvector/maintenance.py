"""What is done behind all else: building anew what is mostly dead, linking vectors that came since."""

import asyncio
import time
from collections.abc import Coroutine
from functools import partial
from typing import Any

from conspectus.errors import ConspectusError
from conspectus.index.pgvector.build import Building
from conspectus.index.pgvector.options import PgvectorOptions
from conspectus.index.pgvector.state import PgvectorState

MANY = 500
"""Whoever writes so many rows at once is likely to write more."""
QUIET_SECONDS = 5.0
_FIRST_PAUSE, _LONGEST_PAUSE = 60.0, 3600.0


class PgvectorMaintenance:
    """At most one task of this process; among processes, `Building` sees to it that one does the work."""

    def __init__(self, place: PgvectorOptions, building: Building, identity: str) -> None:
        self._place = place
        self._building = building
        self._identity = identity
        self._task: asyncio.Task[None] | None = None
        self._quiet_from = 0.0
        self._not_before = 0.0
        self._pause = _FIRST_PAUSE
        self.failure = ""

    @property
    def runs(self) -> bool:
        """Whether something is being done."""
        return self._task is not None and not self._task.done()

    def wrote(self, rows: int) -> None:
        """Take note of a write."""
        if rows >= MANY:
            self._quiet_from = time.monotonic() + QUIET_SECONDS

    def look(self, state: PgvectorState) -> None:
        """Begin with what a state has need of."""
        now = time.monotonic()
        is_linked = partial(self._place.is_linked, quiet=now >= self._quiet_from)
        if not state.generation or self.runs or now < self._not_before:
            return
        if not self._place.is_sound(state):
            work = self._building.build(self._identity, unless=self._place.is_sound)
        elif not is_linked(state):
            work = self._building.link(self._identity, unless=is_linked)
        else:
            return
        self._task = asyncio.create_task(self._done(work))

    async def close(self) -> None:
        """Stop it, which leaves all as it was."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _done(self, work: Coroutine[Any, Any, PgvectorState]) -> None:
        try:
            await work
        except ConspectusError as fault:
            self.failure, self._not_before = str(fault), time.monotonic() + self._pause
            self._pause = min(2 * self._pause, _LONGEST_PAUSE)
        else:
            self.failure, self._pause = "", _FIRST_PAUSE
