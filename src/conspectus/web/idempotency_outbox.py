"""How requests with a key ended, told to the store; while it is away, told again until it has heard."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from conspectus.errors import StorageError
from conspectus.ports.jobs import IdempotencyStore

logger = logging.getLogger(__name__)

PAUSE: Final = 1.0
RENEWALS: Final = 3
"""How often a claim is renewed before it would end."""
Claim: TypeAlias = tuple[str, str]
"""A person and a key."""


class IdempotencyOutbox:
    """Ends the claims of keys, so that whoever was told to ask again is answered once the store is back."""

    def __init__(self, replays: IdempotencyStore) -> None:
        self._replays = replays
        self._owed: dict[Claim, Mapping[str, Any] | None] = {}
        self._is_owed = asyncio.Event()
        self._telling = asyncio.Lock()

    async def end(self, claim: Claim, answer: Mapping[str, Any] | None) -> None:
        """Keep the answer, or with None give the key back: now, or as soon as the store can."""
        try:
            await self._replays.finish(*claim, answer)
        except StorageError as fault:
            logger.warning("how a request ended could not be kept yet: %s", fault.code)
            self._owed[claim] = answer
            self._is_owed.set()

    async def catch_up(self, claim: Claim) -> None:
        """Tell the store how the last request of a claim ended, if it has not heard. Raises StorageError."""
        if claim not in self._owed:
            return
        async with self._telling:
            if claim in self._owed:
                await self._replays.finish(*claim, self._owed[claim])
                del self._owed[claim]

    async def keep_telling(self) -> None:
        """Tell whatever it has not heard, until this is cancelled."""
        while True:
            await self._is_owed.wait()
            self._is_owed.clear()
            await asyncio.sleep(PAUSE)
            try:
                for claim in list(self._owed):
                    await self.catch_up(claim)
            except StorageError:
                self._is_owed.set()

    async def keep_claims(self, seconds: float) -> None:
        """Renew the leases of open claims, of so many seconds each, until this is cancelled."""
        while True:
            await asyncio.sleep(seconds / RENEWALS)
            try:
                await self._replays.renew()
            except StorageError as fault:
                logger.warning("claims of idempotency keys could not be renewed: %s", fault.code)
