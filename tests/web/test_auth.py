"""Who may ask: keys, the machine's own user, and nobody by way of a web page."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from tests.web.conftest import SETTINGS, Live, OpenSite, People, Site, filled, peopled

HIDDEN = ["GET /collections/{c}", "GET /collections/{c}/documents", "GET /collections/{c}/sources"]
HIDDEN += ["GET /collections/{c}/status", "GET /collections/{c}/grants", "GET /collections/{c}/connections"]
HIDDEN += ["DELETE /collections/{c}", "POST /collections/{c}/wait", "POST /collections/{c}/reindex"]
HIDDEN += ["GET /documents/{d}", "GET /documents/{d}/text", "GET /documents/{d}/chunks"]
HIDDEN += ["DELETE /documents/{d}/chunks", "GET /sources/{s}", "DELETE /sources/{s}"]
HIDDEN += ["GET /sources/{s}/documents", "GET /jobs?collection={c}", "GET /ingest/report?collection={c}"]


async def test_without_accounts_the_machine_itself_is_the_owner(api: httpx.AsyncClient) -> None:
    assert (await api.get("/me")).json() == {
        "id": "local", "name": "local", "owner": True, "scopes": ["read", "write", "admin"], "origin": None,
    }  # fmt: skip


async def test_the_first_account_ends_that_for_the_next_request(site: Site, api: httpx.AsyncClient) -> None:
    assert (await api.get("/me")).status_code == 200
    await site.engine.keys.create_first()
    answer = await api.get("/me")
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


async def test_no_key_is_asked_only_of_this_machine(open_site: OpenSite) -> None:
    async with open_site(host="0.0.0.0") as site, site.client() as client:
        assert (await client.get("/me")).status_code == 401


async def bad_keys(site: Site) -> dict[str, str]:
    """Keys that open nothing, each for another reason."""
    good = await site.engine.keys.create("alice")
    revoked = await site.engine.keys.create("alice")
    await site.engine.keys.revoke(revoked.key.id)
    end = datetime.now(UTC) + timedelta(seconds=2)
    soon = await site.engine.keys.create("alice", expires=end)
    await site.engine.people.create_user("carol")
    disabled = await site.engine.keys.create("carol")
    await site.engine.people.set_user_disabled("carol")
    await asyncio.sleep((end - datetime.now(UTC)).total_seconds())
    number, _, _ = good.secret.rpartition("_")
    return {
        "wrong": f"{number}_{'0' * 64}",
        "unknown": f"csp_{'0' * 16}_{'0' * 64}",
        "torn": good.secret[:-1],
        "nothing": "",
        "nonsense": "\u00e9\u00e8",
        "revoked": revoked.secret,
        "expired": soon.secret,
        "disabled": disabled.secret,
    }


async def test_every_bad_key_gets_the_same_answer(site: Site, people: People) -> None:
    async with site.client() as nobody:
        first = await nobody.get("/me")
        assert (first.status_code, first.headers["www-authenticate"]) == (401, "Bearer")
        for kind, key in (await bad_keys(site)).items():
            header = f"Bearer {key}".encode()
            answer = await nobody.get("/me", headers=[(b"Authorization", header)])
            assert (kind, answer.status_code, answer.content) == (kind, 401, first.content)
        for header in ("Basic YTpi", people.keys["alice"], "Bearer"):
            answer = await nobody.get("/me", headers={"Authorization": header})
            assert (answer.status_code, answer.content) == (401, first.content)
        unknown = await nobody.get("/nothing/here")
        assert (unknown.status_code, unknown.content) == (401, first.content)


async def test_a_body_is_not_read_before_the_key(site: Site, people: People) -> None:
    async def body() -> object:
        raise AssertionError("it was read")
        yield b""

    async with site.client() as nobody:
        answer = await nobody.post("/collections", content=body())
    assert answer.status_code == 401


async def test_a_revoked_key_is_dead_for_the_next_request(people: People) -> None:
    key = (await people.alice.post("/keys", json={"label": "second"})).json()
    assert (await people.alice.get("/me")).status_code == 200
    assert (await people.alice.delete(f"/keys/{key['key']['id']}")).json()["revoked"] is not None
    answer = await people.alice.get("/me", headers={"Authorization": f"Bearer {key['secret']}"})
    assert answer.status_code == 401


async def test_a_key_can_do_no_more_than_its_scopes(site: Site, people: People) -> None:
    reader = await site.engine.keys.create("alice", scopes=["read"])
    async with site.client(reader.secret) as client:
        assert (await client.get("/collections")).status_code == 200
        refused = await client.post("/collections", json={"name": "mine"})
        assert (refused.status_code, refused.json()["code"]) == (403, "permission_denied")
        assert (await client.get("/keys")).status_code == 403


@pytest.mark.parametrize("route", HIDDEN)
async def test_what_is_hidden_is_answered_like_what_does_not_exist(people: People, route: str) -> None:
    (document,) = await filled(people.alice)
    stored = (await people.alice.get(f"/documents/{document}")).json()
    method, _, path = route.partition(" ")
    real = {"c": stored["collection"], "d": document, "s": stored["source"]}
    absent = "00000000-0000-0000-0000-000000000000"
    hidden = await people.bob.request(method, path.format(**real))
    missing = await people.bob.request(method, path.format(c=absent, d=absent, s=absent))
    assert hidden.status_code == missing.status_code == 404
    replacements = dict.fromkeys(real.values(), absent)
    text = hidden.text
    for value, other in replacements.items():
        text = text.replace(value, other)
    assert text == missing.text
    assert dict(hidden.headers).keys() == dict(missing.headers).keys()


async def test_what_is_hidden_is_in_no_search_and_no_list(people: People) -> None:
    (document,) = await filled(people.alice)
    for path in ("/search", "/context", "/augment"):
        query = {"query": "Backups", "collection": "*"}
        body = query if path == "/search" else {**query, "max_tokens": 100}
        answer = (await people.bob.post(path, json=body)).json()
        assert answer["outcome"] == "no_match"
    assert (await people.bob.get("/collections")).json() == []
    gone = (await people.bob.post("/documents/delete", json={"ids": [document]})).json()
    assert gone["documents"] == 0
    assert (await people.alice.get(f"/documents/{document}")).status_code == 200


async def test_an_address_that_fails_too_often_is_refused_and_a_valid_key_is_not(
    open_site: OpenSite,
) -> None:
    async with open_site(address_failures_per_minute=3, failure_delay_seconds=0) as site:
        secret = (await site.engine.keys.create_first()).secret
        elsewhere = httpx.ASGITransport(site.app, client=("192.0.2.7", 80))
        async with (
            site.client("csp_wrong") as wrong,
            site.client(secret) as right,
            httpx.AsyncClient(transport=elsewhere, base_url="http://localhost/api/v1") as other,
        ):
            answers = [await wrong.get("/me") for _ in range(5)]
            assert [answer.status_code for answer in answers] == [401, 401, 401, 429, 429]
            assert (answers[-1].json()["code"], answers[-1].headers["retry-after"]) == (
                "too_many_failures",
                "20",
            )
            assert (await right.get("/me")).status_code == 200
            assert (await other.get("/me")).status_code == 401


@pytest.mark.parametrize(
    ("trusted", "last"), [("127.0.0.1", 401), ("192.0.2.1, 127.0.0.0/8", 401), ("192.0.2.1", 429), ("", 429)]
)
def test_only_a_trusted_proxy_says_whose_request_it_is(tmp_path: Path, trusted: str, last: int) -> None:
    settings = replace(
        SETTINGS, address_failures_per_minute=1, failure_delay_seconds=0, trusted_proxies=trusted
    )
    with Live(tmp_path, settings) as live, live.client() as client:
        assert client.post("/keys", json={}).status_code == 201

        def wrong(address: str) -> int:
            headers = {"Authorization": "Bearer csp_wrong", "X-Forwarded-For": address}
            return client.get("/me", headers=headers).status_code

        assert [wrong("203.0.113.1"), wrong("203.0.113.1"), wrong("203.0.113.2")] == [401, 429, last]


async def test_wrong_keys_take_no_place_of_those_who_have_one(open_site: OpenSite) -> None:
    settings = {
        "address_failures_per_minute": 1,
        "failure_delay_seconds": 3_600,
        "max_concurrent_requests": 1,
    }
    async with open_site(**settings, max_queued_requests=1) as site:
        secret = (await site.engine.keys.create_first()).secret
        async with site.client("csp_wrong") as wrong, site.client(secret) as right:
            assert (await wrong.get("/me")).status_code == 401
            late = [asyncio.create_task(wrong.get("/me")) for _ in range(5)]
            await asyncio.sleep(0)
            assert (await right.get("/me")).status_code == 200
            assert not any(request.done() for request in late)
            for request in late:
                request.cancel()
            await asyncio.gather(*late, return_exceptions=True)


FOREIGN = [
    {"Host": "evil.example"},
    {"Host": "evil.example:8642"},
    {"Host": "localhost.evil.example"},
    {"Host": "[::2]"},
    {"Host": "[broken"},
    {"Host": ""},
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://localhost:3000"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
async def test_a_web_page_cannot_drive_a_server_without_keys(
    api: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    for method, path in (
        ("GET", "/collections"),
        ("POST", "/collections"),
        ("GET", "http://localhost/metrics"),
    ):
        answer = await api.request(method, path, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied")


OWN = [
    {"Host": "localhost:8642"},
    {"Host": "127.0.0.1"},
    {"Host": "[::1]:8642"},
    {"Host": "LOCALHOST"},
    {"Host": "localhost:80", "Origin": "http://localhost:80", "Sec-Fetch-Site": "same-origin"},
    {"Sec-Fetch-Site": "none"},
]


@pytest.mark.parametrize("headers", OWN, ids=str)
async def test_what_comes_from_this_machine_is_answered(
    api: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    assert (await api.get("/collections", headers=headers)).status_code == 200


async def test_with_a_key_any_name_will_do(people: People) -> None:
    headers = {"Host": "conspectus.example.org", "Origin": "https://app.example.org"}
    assert (await people.alice.get("/me", headers=headers)).status_code == 200


async def test_no_cross_origin_answer_is_readable_by_default(api: httpx.AsyncClient) -> None:
    preflight = {"Origin": "https://app.example.org", "Access-Control-Request-Method": "GET"}
    answer = await api.options("/me", headers=preflight)
    assert answer.status_code in {403, 405}
    assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_named_origins_may_ask(open_site: OpenSite) -> None:
    origin = "https://app.example.org"
    async with open_site(cors_origins=f"https://other.example, {origin}") as site, site.client() as client:
        preflight = {"Origin": origin, "Access-Control-Request-Method": "PATCH"}
        allowed = await client.options("/me", headers=preflight)
        assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, origin)
        answer = await client.get("/collections/nothing", headers={"Origin": origin})
        assert (answer.status_code, answer.headers["access-control-allow-origin"]) == (404, origin)
        refused = await client.get("/me", headers={"Origin": "https://evil.example"})
        assert refused.status_code == 403
        assert "access-control-allow-origin" not in refused.headers


async def test_a_request_may_name_whom_it_acts_for(api: httpx.AsyncClient) -> None:
    """As a key with an origin; another word is refused before anything is read."""
    assert (await api.get("/me", headers={"Conspectus-Origin": "agent"})).json()["origin"] == "agent"
    refused = await api.get("/me", headers={"Conspectus-Origin": "nobody"})
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input")


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("origin", ["http://localhost", "https://localhost", "ftp://localhost", "localhost"])
async def test_an_origin_is_compared_with_its_scheme(site: Site, scheme: str, origin: str) -> None:
    """A page of HTTPS may be one of this server behind a proxy, but a page of HTTP is none of HTTPS."""
    transport = httpx.ASGITransport(site.app)
    async with httpx.AsyncClient(transport=transport, base_url=f"{scheme}://localhost/api/v1") as client:
        answer = await client.get("/me", headers={"Origin": origin})
    is_own = origin in {f"{scheme}://localhost", "https://localhost"}
    assert answer.status_code == (200 if is_own else 403)


async def test_a_server_that_stops_delays_no_refusal(open_site: OpenSite) -> None:
    """A delay of a minute ends when the server is about to stop."""
    limits = {"address_failures_per_minute": 1, "failure_delay_seconds": 60}
    async with open_site(**limits) as site, peopled(site), site.client(WRONG_KEY) as client:
        assert (await client.get("/me")).status_code == 401
        delayed = asyncio.create_task(client.get("/me"))
        done, _ = await asyncio.wait({delayed}, timeout=0.2)
        assert not done
        site.app.state.readiness.stop()
        assert (await delayed).status_code == 429


WRONG_KEY = f"csp_{'0' * 16}_{'0' * 64}"
