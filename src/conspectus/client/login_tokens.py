"""The access token of each request of a login, refreshed before it expires."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Final

import httpx

from conspectus.client.device_login import DeviceLogin
from conspectus.client.stored_logins import Login, StoredLogins
from conspectus.errors import LoginFailed

REFRESH_SECONDS: Final = 60
"""Seconds before its end when a token is no longer used."""


class LoginTokens(httpx.Auth):
    """Sends the token of a login with each request. Of several processes, one refreshes it."""

    def __init__(
        self,
        login: Login,
        logins: StoredLogins,
        http: httpx.AsyncClient,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._login = login
        self._logins = logins
        self._device_login = DeviceLogin(http, now=now)
        self._now = now
        self._refreshing = asyncio.Lock()

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Add the token to a request. Raises LoginFailed or ServerUnavailable."""
        request.headers["Authorization"] = f"Bearer {await self._current_token()}"
        yield request

    def sync_auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Raise RuntimeError: tokens are refreshed by coroutines alone."""
        raise RuntimeError("use an asynchronous client")

    async def _current_token(self) -> str:
        async with self._refreshing:
            if not self._is_fresh(self._login):
                await self._refresh()
        return self._login.access_token

    async def _refresh(self) -> None:
        """Use the token that another process stored meanwhile, or get a new one and store it."""
        lock = self._logins.lock()
        await asyncio.to_thread(lock.__enter__)
        try:
            stored = self._logins.find(self._login.server)
            if stored is None:
                raise LoginFailed(f"the login at {self._login.server} has ended")
            self._login = stored
            if not self._is_fresh(stored):
                self._login = await self._device_login.refresh(stored)
                self._logins.put(self._login)
        finally:
            lock.__exit__(None, None, None)

    def _is_fresh(self, login: Login) -> bool:
        return self._now() < login.expires - REFRESH_SECONDS
