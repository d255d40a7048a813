"""The alerts of one open store, checked and delivered by one of the processes that have it open."""

from conspectus.ports.locks import Lock, Turn
from conspectus.streams.alert_checker import Checker
from conspectus.streams.leadership import Leadership
from conspectus.streams.webhook_delivery import Deliverer


class AlertWorker(Leadership):
    """Of all processes that have a store open, the one that has the turn checks and delivers for all.

    It looks for what is new every `poll` seconds; at the end, what is being sent has `grace` seconds.
    """

    def __init__(
        self,
        checker: Checker,
        deliverer: Deliverer,
        *,
        turn: Turn,
        poll: float,
        grace: float,
    ) -> None:
        super().__init__(turn, "checking alerts")
        self._checker = checker
        self._deliverer = deliverer
        self._poll = poll
        self._grace = grace

    async def _lead(self) -> None:
        """Check and deliver to the end of the service, if it is this process's turn."""
        async with self._turn() as mine:
            if not mine:
                return
            try:
                await self._go_on(mine)
            finally:
                await self._deliverer.stop(grace=self._grace)

    async def _go_on(self, hold: Lock) -> None:
        while not self._closing.is_set():
            more = await self._checker.round()
            await self._deliverer.round(hold)
            if not more:
                await self._pause(self._poll)
