"""The token of each request: refreshed before it ends, and by one of many who need it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from tests.support.web_server import Answer, ScriptedServer

from conspectus.client.login_tokens import LoginTokens
from conspectus.client.stored_logins import Login, StoredLogins
from conspectus.errors import LoginFailed

NOW = 1_000.0


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    """A server of pages and of tokens, each of which is another one."""
    async with ScriptedServer() as opened:
        opened.answers["/page"] = Answer(b"{}")
        opened.answers["/token"] = lambda _: Answer(
            b'{"access_token": "token-%d", "refresh_token": "r", "expires_in": 300}' % opened.count("/token")
        )
        yield opened


@pytest.fixture
def stored(server: ScriptedServer, tmp_path: Path) -> StoredLogins:
    logins = StoredLogins(tmp_path / "logins.json")
    login = Login(server.base, server.base, "cli", f"{server.base}/token", access_token="old")
    logins.put(replace(login, refresh_token="r", expires=NOW + 300))
    return logins


def tokens_of(server: ScriptedServer, stored: StoredLogins, http: httpx.AsyncClient) -> LoginTokens:
    login = stored.find(server.base)
    assert login is not None
    return LoginTokens(login, stored, http, now=lambda: NOW)


async def send(server: ScriptedServer, stored: StoredLogins) -> None:
    """Send two requests at once, as a process of its own would."""
    async with httpx.AsyncClient() as http:
        auth = tokens_of(server, stored, http)
        await asyncio.gather(*(http.get(f"{server.base}/page", auth=auth) for _ in range(2)))


def sent_tokens(server: ScriptedServer) -> list[str]:
    return [request.headers["authorization"] for request in server.requests if request.path == "/page"]


async def test_a_token_is_used_until_a_minute_before_its_end(
    server: ScriptedServer, stored: StoredLogins
) -> None:
    await send(server, stored)
    assert (sent_tokens(server), server.count("/token")) == (["Bearer old"] * 2, 0)
    login = stored.find(server.base)
    assert login is not None
    stored.put(replace(login, expires=NOW + 59))
    await send(server, stored)
    assert sent_tokens(server)[2:] == ["Bearer token-1"] * 2
    refreshed = stored.find(server.base)
    assert refreshed is not None
    assert (refreshed.access_token, refreshed.expires) == ("token-1", NOW + 300)


async def test_of_many_who_need_a_token_one_refreshes_it(
    server: ScriptedServer, stored: StoredLogins
) -> None:
    login = stored.find(server.base)
    assert login is not None
    stored.put(replace(login, expires=NOW))
    await asyncio.gather(*(send(server, stored) for _ in range(4)))
    assert server.count("/token") == 1
    assert set(sent_tokens(server)) == {"Bearer token-1"}


async def test_a_logout_elsewhere_ends_the_login(server: ScriptedServer, stored: StoredLogins) -> None:
    login = stored.find(server.base)
    assert login is not None
    expired = replace(login, expires=NOW)
    stored.remove(server.base)
    async with httpx.AsyncClient() as http:
        auth = LoginTokens(expired, stored, http, now=lambda: NOW)
        with pytest.raises(LoginFailed, match="has ended"):
            await http.get(f"{server.base}/page", auth=auth)
    assert server.requests == []
