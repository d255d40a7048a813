"""The device flow against answers as issuers send them, good and bad."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs

import httpx
import pytest
from tests.support.web_server import Answer, Request, ScriptedServer

from conspectus.client.device_login import DeviceLogin
from conspectus.client.issuer_requests import ISSUER_PATH, MAX_ANSWER_BYTES, RESOURCE_PATH
from conspectus.client.stored_logins import Login
from conspectus.errors import ConspectusError, InvalidInput, LoginFailed, ServerUnavailable

DEVICE, TOKEN, REVOKE = "/device", "/token", "/revoke"
CODE = {
    "device_code": "the-device-code",
    "user_code": "ABCD-EFGH",
    "verification_uri": "https://login.example.org/device",
    "expires_in": 600,
    "interval": 2,
}
TOKENS = {"access_token": "a.b.c", "refresh_token": "again", "expires_in": 300}


def as_json(document: Any, status: int = 200) -> Answer:
    return Answer(json.dumps(document).encode(), status, "application/json")


def refusal(error: str) -> Answer:
    return as_json({"error": error}, 400)


def form_of(request: Request) -> dict[str, str]:
    return {name: texts[-1] for name, texts in parse_qs(request.body.decode()).items()}


@dataclass
class Desk:
    """A server that is its own issuer, a clock that only moves in pauses, and the flow."""

    server: ScriptedServer
    flow: DeviceLogin
    pauses: list[float] = field(default_factory=list)

    @property
    def forms(self) -> list[dict[str, str]]:
        return [form_of(request) for request in self.server.requests if request.method == "POST"]

    def change_metadata(self, **members: Any) -> None:
        metadata = json.loads(self.server.answers[ISSUER_PATH].body)  # type: ignore[union-attr]
        self.server.answers[ISSUER_PATH] = as_json({**metadata, **members})

    def change_resource(self, **members: Any) -> None:
        resource = json.loads(self.server.answers[RESOURCE_PATH].body)  # type: ignore[union-attr]
        self.server.answers[RESOURCE_PATH] = as_json({**resource, **members})

    async def log_in(self) -> Login:
        return await self.flow.wait(await self.flow.begin(self.server.base))


@asynccontextmanager
async def opened_desk() -> AsyncIterator[Desk]:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    async with ScriptedServer() as server, httpx.AsyncClient() as http:
        server.answers = {
            RESOURCE_PATH: as_json(
                {
                    "resource": server.base,
                    "authorization_servers": [server.base],
                    "scopes_supported": ["read", "write"],
                    "conspectus_device_client_id": "cli",
                }
            ),
            ISSUER_PATH: as_json(
                {
                    "issuer": server.base,
                    "device_authorization_endpoint": f"{server.base}{DEVICE}",
                    "token_endpoint": f"{server.base}{TOKEN}",
                    "revocation_endpoint": f"{server.base}{REVOKE}",
                }
            ),
            DEVICE: as_json(CODE),
            TOKEN: as_json(TOKENS),
            REVOKE: as_json({}),
        }
        yield Desk(server, DeviceLogin(http, now=lambda: 1_000.0 + sum(pauses), sleep=sleep), pauses)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with opened_desk() as opened:
        yield opened


async def test_a_code_becomes_a_login_at_the_pace_of_the_issuer(desk: Desk) -> None:
    pending, slower = refusal("authorization_pending"), refusal("slow_down")
    desk.server.answers[TOKEN] = [pending, slower, pending, as_json(TOKENS)]
    login = await desk.log_in()
    assert desk.pauses == [2, 2, 7, 7]
    assert (login.access_token, login.refresh_token, login.expires) == ("a.b.c", "again", 1_318.0)
    device_form = {
        "client_id": "cli",
        "scope": "openid offline_access read write",
        "resource": desk.server.base,
    }
    assert desk.forms[0] == {**device_form, "prompt": "consent"}
    grant = "urn:ietf:params:oauth:grant-type:device_code"
    assert desk.forms[1] == {
        "grant_type": grant,
        "device_code": "the-device-code",
        "client_id": "cli",
        "resource": desk.server.base,
    }


async def test_client_and_scopes_may_be_chosen(desk: Desk) -> None:
    desk.change_resource(conspectus_device_client_id=None)
    with pytest.raises(InvalidInput, match="--client-id"):
        await desk.flow.begin(desk.server.base)
    await desk.flow.begin(desk.server.base, "mine", ["api://1/read"])
    assert (desk.forms[0]["client_id"], desk.forms[0]["scope"]) == (
        "mine",
        "openid offline_access api://1/read",
    )


@pytest.mark.parametrize("error", ["invalid_request", "invalid_target"])
async def test_an_issuer_that_does_not_know_resources_is_asked_without(error: str, desk: Desk) -> None:
    desk.server.answers[DEVICE] = lambda request: (
        refusal(error) if "resource" in form_of(request) else as_json(CODE)
    )
    login = await desk.log_in()
    await desk.flow.refresh(login)
    assert ["resource" in form for form in desk.forms] == [True, False, False, False]


@pytest.mark.parametrize("error", ["access_denied", "expired_token", "invalid_client"])
async def test_a_refusal_ends_the_login(error: str, desk: Desk) -> None:
    desk.server.answers[TOKEN] = refusal(error)
    with pytest.raises(LoginFailed, match="conspectus login"):
        await desk.log_in()
    assert desk.server.count(TOKEN) == 1


async def test_nobody_waits_longer_than_a_code_is_valid(desk: Desk) -> None:
    desk.server.answers[TOKEN] = refusal("authorization_pending")
    desk.server.answers[DEVICE] = as_json({**CODE, "interval": 0, "expires_in": 10**12})
    desk.server.answers[TOKEN] = refusal("slow_down")
    with pytest.raises(LoginFailed, match="not entered in time"):
        await desk.log_in()
    assert sum(desk.pauses) < 2_000


async def test_a_refresh_keeps_the_refresh_token_unless_there_is_a_new_one(desk: Desk) -> None:
    login = await desk.log_in()
    desk.server.answers[TOKEN] = as_json({"access_token": "d.e.f", "expires_in": 60})
    refreshed = await desk.flow.refresh(login)
    assert (refreshed.access_token, refreshed.refresh_token) == ("d.e.f", "again")
    desk.server.answers[TOKEN] = refusal("invalid_grant")
    with pytest.raises(LoginFailed, match="has ended"):
        await desk.flow.refresh(refreshed)


async def test_a_logout_revokes_the_refresh_token(desk: Desk) -> None:
    login = await desk.log_in()
    assert await desk.flow.revoke(login)
    form = {"token": "again", "token_type_hint": "refresh_token", "client_id": "cli"}
    assert desk.forms[-1] == form
    desk.server.answers[REVOKE] = refusal("unsupported_token_type")
    assert not await desk.flow.revoke(login)


@pytest.mark.parametrize(
    ("path", "members", "message"),
    [
        (RESOURCE_PATH, {"resource": "https://elsewhere.example.org"}, "calls itself"),
        (RESOURCE_PATH, {"authorization_servers": []}, "names no identity provider"),
        (RESOURCE_PATH, {"authorization_servers": ["http://login.example.org"]}, "no address with https"),
        (RESOURCE_PATH, {"authorization_servers": [7]}, "no address with https"),
        (ISSUER_PATH, {"issuer": "https://other.example.org"}, "no metadata of its own"),
        (ISSUER_PATH, {"device_authorization_endpoint": None}, "has no device flow"),
        (ISSUER_PATH, {"token_endpoint": "http://login.example.org/token"}, "has no device flow"),
        (DEVICE, {"user_code": None}, "sent no `user_code`"),
        (DEVICE, {"user_code": "\x1b[2J"}, "sent no `user_code`"),
        (DEVICE, {"verification_uri": "a\nb"}, "sent no `verification_uri`"),
        (TOKEN, {"access_token": ""}, "sent no `access_token`"),
    ],
)
async def test_what_cannot_be_trusted_or_shown_is_refused(
    path: str, members: dict[str, Any], message: str, desk: Desk
) -> None:
    document = json.loads(desk.server.answers[path].body)  # type: ignore[union-attr]
    desk.server.answers[path] = as_json({**document, **members})
    with pytest.raises(LoginFailed, match=message):
        await desk.log_in()


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"[" * 100_000),
        Answer(b"\xff"),
        Answer(b"[]"),
        Answer(b"a" * (MAX_ANSWER_BYTES + 1)),
        Answer(b"{}", 500),
        Answer(b"{}", broken=True),
        Answer(status=302, headers={"Location": "/elsewhere"}),
    ],
)
@pytest.mark.parametrize("path", [RESOURCE_PATH, ISSUER_PATH, DEVICE, TOKEN])
async def test_bad_answers_are_errors_of_ours(answer: Answer, path: str, desk: Desk) -> None:
    desk.server.answers[path] = answer
    with pytest.raises(ConspectusError) as refused:
        await desk.log_in()
    assert isinstance(refused.value, LoginFailed | ServerUnavailable)
    assert desk.server.count("/elsewhere") == 0


async def test_an_issuer_that_is_away_is_named(desk: Desk) -> None:
    async with httpx.AsyncClient() as http:
        with pytest.raises(ServerUnavailable, match=r"127\.0\.0\.1:1"):
            await DeviceLogin(http).begin("http://127.0.0.1:1")
