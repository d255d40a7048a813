"""Tokens of an issuer at a real server: the API, MCP, and how clients without a token find the issuer."""

import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest

from conspectus.errors import InvalidInput
from conspectus.model.access import Principal
from tests.support.token_issuer import AUDIENCE, TokenIssuer
from tests.web.conftest import OpenSite, Site

PUBLIC = "https://context.example.org"
RESOURCE = f"{PUBLIC}/.well-known/oauth-protected-resource"
SWITCH = {"oidc_issuer": "https://login.example.org", "oidc_audience": AUDIENCE}
LIST_TOOLS = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
MCP_HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


@dataclass
class Desk:
    """A site that takes tokens of an issuer, and Ann, who is known to both."""

    issuer: TokenIssuer
    site: Site
    identity: str

    def token(self, **changes: Any) -> str:
        return self.issuer.sign(self.issuer.claims(datetime.now(UTC), **changes))

    @asynccontextmanager
    async def client(self, token: str) -> AsyncIterator[httpx.AsyncClient]:
        async with self.site.client(token) as client:
            yield client

    async def get_status(self, path: str, token: str) -> int:
        async with self.client(token) as client:
            return (await client.get(path)).status_code


def open_plain_client(site: Site, headers: dict[str, str]) -> httpx.AsyncClient:
    """A client of all paths of a site, not only of those of the API."""
    return httpx.AsyncClient(transport=httpx.ASGITransport(site.app), base_url=PUBLIC, headers=headers)


@pytest.fixture
async def desk(open_site: OpenSite) -> AsyncIterator[Desk]:
    async with TokenIssuer() as issuer:
        settings = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, "public_address": PUBLIC}
        async with open_site(**settings) as site:
            await site.engine.people.create_user("ann")
            identity = await site.engine.identities.map_identity("ann", "subject-of-ann")
            yield Desk(issuer, site, identity.id)


async def test_the_bearer_of_a_token_is_its_user(desk: Desk) -> None:
    async with desk.client(desk.token()) as client:
        me = (await client.get("/me")).json()
    assert (me["name"], me["scopes"], me["owner"]) == ("ann", ["read", "write"], False)


async def test_scopes_of_a_token_narrow_the_rights_of_its_user_and_never_widen_them(desk: Desk) -> None:
    """Ann may write in a collection; an owner's scope in her token makes no owner of her."""
    await desk.site.engine.collections.create("wiki")
    ann = (await desk.site.engine.people.get_user("ann")).id
    await desk.site.engine.access.grant("wiki", Principal("user", ann), "editor")
    body = {"documents": [{"text": "Tea."}]}
    async with desk.client(desk.token(scope="read")) as reader:
        assert (await reader.get("/collections/wiki")).status_code == 200
        assert (await reader.post("/collections/wiki/documents", json=body)).status_code == 403
    async with desk.client(desk.token(scope="read write admin")) as admin:
        assert (await admin.get("/users")).status_code == 403
        assert (await admin.get("/collections/other")).status_code == 404
    owner_identity = await desk.site.engine.identities.map_identity("owner", "subject-of-owner")
    assert owner_identity.user == "local"
    async with desk.client(desk.token(sub="subject-of-owner")) as owner:
        assert (await owner.get("/users")).status_code == 403
    async with desk.client(desk.token(sub="subject-of-owner", scope="read admin")) as owner:
        assert (await owner.get("/users")).status_code == 200


async def test_no_key_made_with_a_token_outlives_it(desk: Desk) -> None:
    token = desk.token(scope="read write admin")
    end = datetime.now(UTC) + timedelta(days=1)
    async with desk.client(token) as client:
        for expires in ("never", end.isoformat()):
            refusal = await client.post("/keys", json={"expires": expires})
            assert (refusal.status_code, refusal.json()["code"]) == (403, "permission_denied")
        created = (await client.post("/keys", json={})).json()
    assert datetime.fromisoformat(created["key"]["expires"]) < end


@pytest.mark.parametrize(
    ("path", "suffix"),
    [("/api/v1/me", ""), ("/mcp", "/mcp"), ("/mcp/search", "/mcp/search"), ("/metrics", "")],
)
async def test_a_refusal_says_where_the_issuer_is_found_and_nothing_else(
    path: str, suffix: str, desk: Desk
) -> None:
    expired = desk.token(exp=int(datetime.now(UTC).timestamp()) - 100)
    for headers, error in (({}, ""), ({"Authorization": f"Bearer {expired}"}, 'error="invalid_token", ')):
        async with open_plain_client(desk.site, headers) as client:
            answer = await client.request("POST" if path.startswith("/mcp") else "GET", path)
            metadata = (await client.get(f"{RESOURCE}{suffix}")).json()
        assert answer.status_code == 401
        challenge = f'Bearer {error}resource_metadata="{RESOURCE}{suffix}"'
        assert answer.headers["www-authenticate"] == challenge
        assert metadata == {
            "resource": f"{PUBLIC}{suffix}",
            "resource_name": "Conspectus",
            "authorization_servers": [desk.issuer.url],
            "bearer_methods_supported": ["header"],
            "scopes_supported": ["admin", "read", "write"],
        }
    problem = answer.json()
    assert (problem["code"], problem["detail"]) == ("invalid_token", "the token is not valid here")
    assert set(problem) == {"type", "title", "status", "detail", "code"}


async def test_without_an_issuer_there_are_no_metadata_and_tokens_are_no_keys(site: Site) -> None:
    async with TokenIssuer() as issuer, site.client() as client:
        assert (await client.get(f"{RESOURCE.replace(PUBLIC, 'http://localhost')}")).status_code == 404
        await site.engine.keys.create_first()
        token = issuer.sign(issuer.claims(datetime.now(UTC)))
        answer = await client.get("/me", headers={"Authorization": f"Bearer {token}"})
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert issuer.fetches == 0


async def test_a_server_that_takes_tokens_needs_them_on_this_machine_too(desk: Desk) -> None:
    """Otherwise a proxy in front would make everybody the owner."""
    async with desk.site.client() as client:
        assert (await client.get("/me")).status_code == 401


async def test_mcp_takes_tokens_and_keeps_to_their_rights(desk: Desk) -> None:
    await desk.site.engine.documents.add("The vault code is 4711.", collection="secret", wait=True)
    call = {"name": "search", "arguments": {"query": "vault code"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    owner = await desk.site.engine.identities.map_identity("owner", "subject-of-owner")
    for subject, sees in (("subject-of-ann", False), ("subject-of-owner", True)):
        headers = {**MCP_HEADERS, "Authorization": f"Bearer {desk.token(sub=subject)}"}
        transport = httpx.ASGITransport(desk.site.app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://localhost", headers=headers
        ) as client:
            assert (await client.post("/mcp", json=LIST_TOOLS)).status_code == 200
            answer = await client.post("/mcp", json=body)
            documents = await client.post("/mcp/search", json=body)
        assert ("4711" in answer.text) == sees
        assert ("/console/documents/" in documents.text) == sees
    await desk.site.engine.identities.unmap_identity(owner.id)


async def test_a_token_begins_no_session(desk: Desk) -> None:
    """A login takes keys and invitations; a token would otherwise become a cookie that outlives it."""
    async with desk.site.client() as client:
        answer = await client.post("/session", json={"key": desk.token()})
        assert answer.status_code in {401, 422}
        assert "set-cookie" not in answer.headers
        bearer = {"Authorization": f"Bearer {desk.token()}"}
        answer = await client.post("/session", json={"key": "csp_x"}, headers=bearer)
        assert (answer.status_code, answer.headers.get("set-cookie")) == (401, None)


async def test_a_disabled_user_and_an_unmapped_identity_are_refused_at_once(desk: Desk) -> None:
    token = desk.token()
    assert await desk.get_status("/me", token) == 200
    await desk.site.engine.people.set_user_disabled("ann")
    assert await desk.get_status("/me", token) == 401
    await desk.site.engine.people.set_user_disabled("ann", disabled=False)
    assert await desk.get_status("/me", token) == 200
    await desk.site.engine.identities.unmap_identity(desk.identity)
    assert await desk.get_status("/me", token) == 401


async def test_groups_by_claims_open_collections_until_the_next_token(desk: Desk) -> None:
    engine = desk.site.engine
    group = await engine.people.create_group("keepers")
    await engine.collections.create("lamps")
    await engine.access.grant("lamps", Principal("group", group.id), "viewer")
    await engine.identities.map_group_claim("lighthouse", "keepers")
    now = int(datetime.now(UTC).timestamp())
    assert await desk.get_status("/collections/lamps", desk.token(groups=["other"], iat=now - 3)) == 404
    assert await desk.get_status("/collections/lamps", desk.token(groups=["lighthouse"], iat=now - 2)) == 200
    assert await desk.get_status("/collections/lamps", desk.token(groups=[], iat=now - 1)) == 404
    actions = [entry.action for entry in (await engine.access.list_audit()).entries]
    assert actions[:3] == ["remove_member", "add_member", "first_sign_in"]


async def test_the_log_has_a_code_for_each_refusal_and_no_token(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    token = desk.token(aud="elsewhere")
    assert await desk.get_status("/me", token) == 401
    assert "token_refused reason=audience" in caplog.text
    assert token.split(".")[2] not in caplog.text
    assert isinstance(desk.site.log, io.StringIO)
    assert token not in desk.site.log.getvalue()


@pytest.mark.parametrize(
    "settings",
    [
        {"oidc_issuer": "https://login.example.org"},
        {"oidc_audience": AUDIENCE},
        {"oidc_issuer": "https://login.example.org", "oidc_audience": " , "},
        {"oidc_issuer": "http://login.example.org", "oidc_audience": AUDIENCE},
        {"oidc_issuer": "login.example.org", "oidc_audience": AUDIENCE},
        {**SWITCH, "oidc_algorithms": "HS256"},
        {**SWITCH, "oidc_algorithms": "none"},
        {**SWITCH, "oidc_algorithms": ""},
        {
            "oidc_issuer": "https://login.example.org",
            "oidc_audience": AUDIENCE,
            "oidc_clock_skew_seconds": 61,
        },
        {**SWITCH, "oidc_scopes": "all=owner"},
        {**SWITCH, "oidc_scopes": ""},
        {"oidc_create_users": "yes"},
    ],
)
async def test_settings_that_would_take_too_many_tokens_are_refused(
    settings: dict[str, Any], open_site: OpenSite
) -> None:
    with pytest.raises(InvalidInput, match="oidc_"):
        async with open_site(**settings):
            pass


async def test_a_server_starts_while_its_issuer_is_away(open_site: OpenSite) -> None:
    settings = {"oidc_issuer": "https://127.0.0.1:1", "oidc_audience": AUDIENCE}
    async with open_site(**settings) as site, TokenIssuer() as issuer:
        key = await site.engine.keys.create_first()
        assert key is not None
        async with site.client(key.secret) as client:
            assert (await client.get("/me")).status_code == 200
        token = issuer.sign(issuer.claims(datetime.now(UTC), iss="https://127.0.0.1:1"))
        async with site.client(token) as client:
            assert (await client.get("/me")).status_code == 401
        [problem] = (await site.engine.maintenance.check()).settings
        assert problem.startswith("sign-in does not work: https://127.0.0.1:1/.well-known/")
