"""Background work on an index that has not changed for a while."""

import asyncio
from collections.abc import Callable, Coroutine


class RestingWork:
    """Runs work some seconds after it was planned last, so that it begins when changes have ended.

    `work` must leave nothing behind when it is cancelled.
    """

    def __init__(self, work: Callable[[], Coroutine[None, None, None]], seconds: float) -> None:
        self._work = work
        self._seconds = seconds
        self._timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_planned_again = False

    def plan(self) -> None:
        """Run the work after the seconds from now, or from its end while it is running."""
        if self._task is None or self._task.done():
            self._forget_plan()
            self._timer = asyncio.get_running_loop().call_later(self._seconds, self._begin)
        else:
            self._is_planned_again = True

    async def stop(self) -> None:
        """Give up the work, planned or running."""
        self._forget_plan()
        if self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    def _forget_plan(self) -> None:
        self._is_planned_again = False
        if self._timer is not None:
            self._timer.cancel()

    def _begin(self) -> None:
        self._task = asyncio.create_task(self._work())
        self._task.add_done_callback(self._plan_again)

    def _plan_again(self, _: asyncio.Task[None]) -> None:
        if self._is_planned_again:
            self.plan()
