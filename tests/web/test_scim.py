"""SCIM 2.0 at a real server: the checks of scim2-tester, and what a provider may change and see."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import httpx
import httpx2
import pytest
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import CheckResult, Status, check_server

from conspectus.model.access import Principal
from conspectus.model.jobs import Upload
from tests.support.served import served
from tests.support.token_issuer import AUDIENCE, TokenIssuer
from tests.web.conftest import OpenSite, Site

TOKEN = "a-token-of-the-provider-in-these-tests"
USER = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP = "urn:ietf:params:scim:schemas:core:2.0:Group"
PATCH = "urn:ietf:params:scim:api:messages:2.0:PatchOp"
SEARCH = "urn:ietf:params:scim:api:messages:2.0:SearchRequest"
ERROR = "urn:ietf:params:scim:api:messages:2.0:Error"


@dataclass
class Desk:
    """A site, and the client of the provider that manages its people."""

    site: Site
    provider: httpx.AsyncClient
    issuer: TokenIssuer | None = None

    async def add_user(self, name: str, **attributes: Any) -> dict[str, Any]:
        answer = await self.provider.post("/Users", json={"schemas": [USER], "userName": name, **attributes})
        assert answer.status_code == 201, answer.text
        user: dict[str, Any] = answer.json()
        return user

    async def add_group(self, name: str, *members: str) -> dict[str, Any]:
        body = {"schemas": [GROUP], "displayName": name, "members": [{"value": user} for user in members]}
        answer = await self.provider.post("/Groups", json=body)
        assert answer.status_code == 201, answer.text
        group: dict[str, Any] = answer.json()
        return group

    async def patch(self, path: str, *operations: Mapping[str, Any]) -> httpx.Response:
        return await self.provider.patch(path, json={"schemas": [PATCH], "Operations": operations})

    async def list_names(self, path: str, **parameters: Any) -> list[str]:
        answer = await self.provider.get(path, params=parameters)
        assert answer.status_code == 200, answer.text
        return [user.get("userName") or user["displayName"] for user in answer.json().get("Resources", [])]

    async def list_changes(self) -> list[tuple[str, str, str]]:
        """What the provider did, oldest first."""
        log = (await self.site.engine.access.list_audit(limit=100)).entries
        changes = [entry for entry in log if entry.actor == "scim"]
        return [(entry.action, entry.subject_name, entry.detail) for entry in reversed(changes)]


@asynccontextmanager
async def opened_desk(open_site: OpenSite, **settings: Any) -> AsyncIterator[Desk]:
    async with open_site(scim_token=TOKEN, **settings) as site, open_client(site, TOKEN) as provider:
        yield Desk(site, provider)


def open_client(site: Site, token: str | None) -> httpx.AsyncClient:
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    transport = httpx.ASGITransport(site.app)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost/scim/v2", headers=headers)


@asynccontextmanager
async def desk_of_issuer(open_site: OpenSite, subject: str, **settings: Any) -> AsyncIterator[Desk]:
    """A desk that takes tokens of an issuer, whose subject is that attribute of a user."""
    async with TokenIssuer() as issuer:
        oidc = {"oidc_issuer": issuer.url, "oidc_audience": AUDIENCE, "scim_subject": subject}
        async with opened_desk(open_site, **oidc, **settings) as desk:
            desk.issuer = issuer
            yield desk


@pytest.fixture
async def desk(open_site: OpenSite) -> AsyncIterator[Desk]:
    async with opened_desk(open_site) as opened:
        yield opened


async def test_scim2_tester_finds_nothing(desk: Desk) -> None:
    async with served(desk.site.app) as address:

        def check() -> list[CheckResult]:
            headers = {"Authorization": f"Bearer {TOKEN}"}
            with httpx2.Client(base_url=f"{address}/scim/v2", headers=headers) as client:
                return check_server(SyncSCIMClient(client))

        checks = await asyncio.to_thread(check)
    faults = [f"{check.title}: {check.reason}" for check in checks if check.status is not Status.SUCCESS]
    assert faults == []
    assert len(checks) > 50


async def test_only_the_token_opens_it(desk: Desk) -> None:
    owner_key = await desk.site.engine.keys.create_first()
    for token in (None, "", "wrong", owner_key.secret, f"{TOKEN}x"):
        async with open_client(desk.site, token) as client:
            for method, path in (("GET", "/Users"), ("POST", "/Users"), ("GET", "/ServiceProviderConfig")):
                answer = await client.request(method, path, content=b"{")
                assert (answer.status_code, answer.json()["schemas"]) == (401, [ERROR])
                assert answer.headers["content-type"] == "application/scim+json"
    async with desk.site.client(TOKEN) as client:
        assert (await client.get("/me")).status_code == 401


async def test_two_tokens_hold_while_one_is_replaced(open_site: OpenSite) -> None:
    async with open_site(scim_token=f"{TOKEN}, {TOKEN[::-1]}") as site:
        for token in (TOKEN, TOKEN[::-1]):
            async with open_client(site, token) as client:
                assert (await client.get("/Users")).status_code == 200


async def test_guesses_of_the_token_are_slowed_down(open_site: OpenSite) -> None:
    settings = {"address_failures_per_minute": 2, "failure_delay_seconds": 0}
    async with opened_desk(open_site, **settings) as desk, open_client(desk.site, "wrong") as client:
        statuses = [(await client.get("/Users")).status_code for _ in range(4)]
        assert statuses == [401, 401, 429, 429]
        assert (await desk.provider.get("/Users")).status_code == 200


async def test_without_a_token_in_the_settings_there_is_nothing(site: Site) -> None:
    async with open_client(site, TOKEN) as client:
        for method in ("GET", "POST"):
            assert (await client.request(method, "/Users")).status_code == 404


@dataclass
class Logins:
    """All with which Ann comes in."""

    site: Site
    key: str
    token: str
    session: str
    invitation: str

    async def list_statuses(self) -> list[int]:
        """Of the key, the token and the session."""
        cookies = {"Cookie": f"conspectus_session={self.session}", "Sec-Fetch-Site": "same-origin"}
        statuses = []
        for secret, headers in ((self.key, {}), (self.token, {}), (None, cookies)):
            async with self.site.client(secret, **headers) as client:
                statuses.append((await client.get("/me")).status_code)
        return statuses

    async def accept_invitation(self) -> int:
        async with self.site.client() as client:
            return (await client.post("/session", json={"invitation": self.invitation})).status_code


async def log_in(desk: Desk, name: str) -> Logins:
    engine = desk.site.engine
    person = (await engine.people.get_user(name)).person
    key = await engine.as_person(person).keys.create(label="laptop")
    session = await engine.sessions.start(await engine.keys.authenticate(key.secret))
    invitation = await engine.logins.create_invitation(name)
    assert desk.issuer is not None
    token = desk.issuer.sign(desk.issuer.claims(datetime.now(UTC)))
    return Logins(desk.site, key.secret, token, session, invitation.token)


async def test_a_user_who_leaves_has_no_session_key_and_token_any_more(
    open_site: OpenSite, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing of it comes back when the provider enables the user again, but tokens of the issuer."""
    async with desk_of_issuer(open_site, "externalId") as desk:
        ann = await desk.add_user("ann", externalId="subject-of-ann")
        logins = await log_in(desk, "ann")
        assert await logins.list_statuses() == [200, 200, 200]
        off = {"op": "Replace", "path": "active", "value": "False"}
        assert (await desk.patch(f"/Users/{ann['id']}", off)).json()["active"] is False
        assert await logins.list_statuses() == [401, 401, 401]
        assert list(await desk.site.engine.logins.list_sessions("*")) == []
        assert list(await desk.site.engine.logins.list_invitations()) == []
        await desk.patch(f"/Users/{ann['id']}", {"op": "replace", "value": {"active": True}})
        assert await logins.list_statuses() == [401, 200, 401]
        assert await logins.accept_invitation() == 401
    assert caplog.messages.count("token_refused reason=disabled_user ") == 1


@pytest.mark.parametrize("by", ["provider", "administrator"])
async def test_jobs_of_a_user_who_leaves_are_cancelled(by: str, desk: Desk) -> None:
    ann, engine = await desk.add_user("ann"), desk.site.engine
    await engine.collections.create("wiki")
    await engine.access.grant("wiki", Principal("user", ann["id"]), "manager")
    person = (await engine.people.get_user("ann")).person
    files = [Upload(f"{number}.md", b"# Tea" * 500) for number in range(60)]
    jobs = [
        await engine.as_person(person).jobs.ingest_files(files, collection="wiki", source=name)
        for name in ("first", "second")
    ]
    others = await engine.jobs.ingest_files([Upload("own.md", b"Tea")], collection="wiki")
    if by == "provider":
        await desk.patch(f"/Users/{ann['id']}", {"op": "replace", "path": "active", "value": False})
    else:
        await engine.people.set_user_disabled("ann")
    assert [(await engine.jobs.get(job.id)).state for job in jobs] == ["cancelled"] * 2
    assert (await engine.jobs.wait(others.id, timeout=60)).state == "succeeded"


async def test_a_deleted_user_keeps_data_and_loses_access(open_site: OpenSite) -> None:
    async with desk_of_issuer(open_site, "userName") as desk:
        ann = await desk.add_user("subject-of-ann")
        team = await desk.add_group("team", ann["id"])
        assert (await desk.provider.delete(f"/Users/{ann['id']}")).status_code == 204
        assert (await desk.provider.get(f"/Users/{ann['id']}")).status_code == 404
        assert "members" not in (await desk.provider.get(f"/Groups/{team['id']}")).json()
        account = await desk.site.engine.people.get_user("subject-of-ann")
        assert account.disabled
        assert list(await desk.site.engine.identities.list_identities()) == []
        again = await desk.add_user("subject-of-ann")
        assert again["id"] != ann["id"]
        names = {user.id: user.name for user in await desk.site.engine.people.list_users()}
        assert names[again["id"]].startswith("subject-of-ann-")


async def test_an_identity_leads_to_its_account_and_a_name_to_none(open_site: OpenSite) -> None:
    async with desk_of_issuer(open_site, "externalId") as desk:
        engine = desk.site.engine
        accounts = {name: (await engine.people.create_user(name)).id for name in ("ann", "ben")}
        await engine.identities.map_identity("ann", "subject-1")
        await engine.identities.map_identity("owner", "subject-3")
        ann = await desk.add_user("ann.smith@example.org", externalId="subject-1")
        ben = await desk.add_user("ben", externalId="subject-2")
        assert ann["id"] == accounts["ann"]
        assert ben["id"] != accounts["ben"]
        for refused, status in (({"externalId": "subject-3"}, 409), ({}, 400)):
            body = {"schemas": [USER], "userName": "boss", **refused}
            assert (await desk.provider.post("/Users", json=body)).status_code == status
        assert await desk.list_names("/Users") == ["ann.smith@example.org", "ben"]
        for subject, status in (("subject-1", 409), ("subject-3", 409), ("subject-4", 200)):
            moved = {"op": "replace", "path": "externalId", "value": subject}
            assert (await desk.patch(f"/Users/{ben['id']}", moved)).status_code == status
        subjects = {identity.user: identity.subject for identity in await engine.identities.list_identities()}
        assert (subjects[ann["id"]], subjects[ben["id"]]) == ("subject-1", "subject-4")


async def test_the_provider_sees_and_changes_only_what_it_made(desk: Desk) -> None:
    engine = desk.site.engine
    carol = await engine.people.create_user("carol")
    team = await engine.people.create_group("team")
    await engine.people.add_member("team", "carol")
    ann = await desk.add_user("ann")
    same = await desk.add_group("team", ann["id"])
    assert same["id"] != team.id
    assert [user.name for user in await engine.people.list_members(team.id)] == ["carol"]
    assert await desk.list_names("/Users") == ["ann"]
    assert await desk.list_names("/Groups") == ["team"]
    owner = await engine.people.get_user("owner")
    off = {"op": "replace", "path": "active", "value": False}
    for path in (f"/Users/{carol.id}", f"/Users/{owner.id}", "/Users/carol", f"/Groups/{team.id}"):
        assert (await desk.provider.get(path)).status_code == 404
        assert (await desk.patch(path, off)).status_code == 404
        assert (await desk.provider.delete(path)).status_code == 404
    joined = {"op": "add", "path": "members", "value": [{"value": carol.id}]}
    refusal = await desk.patch(f"/Groups/{same['id']}", joined)
    assert (refusal.status_code, refusal.json()["scimType"]) == (400, "invalidValue")
    await engine.people.add_member(same["id"], "carol")
    await desk.patch(f"/Groups/{same['id']}", {"op": "remove", "path": "members"})
    assert [user.name for user in await engine.people.list_members(same["id"])] == ["carol"]


async def test_whom_an_administrator_disabled_the_provider_does_not_enable_by_repeating_itself(
    desk: Desk,
) -> None:
    ann = await desk.add_user("ann")
    await desk.site.engine.people.set_user_disabled("ann")
    body = {"schemas": [USER], "userName": "ann", "active": True}
    answer = await desk.provider.put(f"/Users/{ann['id']}", json=body)
    assert answer.json()["active"] is False
    for active in (False, True):
        answer = await desk.patch(f"/Users/{ann['id']}", {"op": "replace", "path": "active", "value": active})
        assert answer.json()["active"] is active
    answer = await desk.provider.put(f"/Users/{ann['id']}", json={"schemas": [USER], "userName": "ann"})
    assert answer.json()["active"] is True


async def test_a_group_gives_its_members_the_roles_it_has(desk: Desk) -> None:
    engine = desk.site.engine
    ann, ben = await desk.add_user("ann"), await desk.add_user("ben")
    team = await desk.add_group("team", ann["id"], ben["id"])
    await engine.collections.create("wiki")
    await engine.access.grant("wiki", Principal("group", team["id"]), "viewer")

    async def list_readers() -> list[str]:
        readers = []
        for user in (ann, ben):
            person = (await engine.people.get_user(user["id"])).person
            readers += [person.name for _ in await engine.as_person(person).collections.list()]
        return readers

    assert await list_readers() == ["ann", "ben"]
    path = f"/Groups/{team['id']}"
    by_filter = {"op": "remove", "path": f'members[value eq "{ann["id"]}"]'}
    assert (await desk.patch(path, by_filter)).status_code == 200
    assert await list_readers() == ["ben"]
    assert (await desk.provider.get(f"/Users/{ann['id']}")).json().get("groups") is None
    expected = [{"value": team["id"], "display": "team"}]
    assert (await desk.provider.get(f"/Users/{ben['id']}")).json()["groups"] == expected
    of_entra = {"op": "Remove", "path": "members", "value": [{"value": ben["id"]}]}
    assert (await desk.patch(path, of_entra)).status_code == 200
    assert await list_readers() == []
    members = [{"value": ann["id"], "type": "User"}]
    body = {"schemas": [GROUP], "displayName": "Team 2", "members": members}
    answer = (await desk.provider.put(path, json=body)).json()
    assert (answer["displayName"], answer["members"][0]["value"]) == ("Team 2", ann["id"])
    assert await list_readers() == ["ann"]
    assert (await desk.provider.delete(path)).status_code == 204
    assert await list_readers() == []


async def test_users_are_filtered_sorted_and_paged(open_site: OpenSite) -> None:
    async with opened_desk(open_site, scim_max_results=3) as desk:
        for number in range(5):
            await desk.add_user(f"User{number}", externalId=f"E{number}", active=number != 2)
        await desk.add_group("staff")
        everyone = [f"User{number}" for number in range(3)]
        assert sorted(await desk.list_names("/Users", count=99)) == everyone
        assert await desk.list_names("/Users", filter='userName eq "USER3"') == ["User3"]
        assert await desk.list_names("/Users", filter='externalId eq "e3"') == []
        assert await desk.list_names("/Users", filter='externalId eq "E3" or active eq false') == [
            "User2",
            "User3",
        ]
        pages = {"sortBy": "userName", "sortOrder": "descending", "startIndex": 2, "count": 2}
        assert await desk.list_names("/Users", **pages) == ["User3", "User2"]
        listing = (await desk.provider.get("/Users", params={"startIndex": 99})).json()
        assert (listing["totalResults"], listing["itemsPerPage"]) == (5, 0)
        search = {"schemas": [SEARCH], "filter": 'displayName sw "st" or userName eq "user0"'}
        both = (await desk.provider.post("/.search", json=search)).json()["Resources"]
        assert [resource["schemas"] for resource in both] == [[USER], [GROUP]]
        only = await desk.provider.get("/Users", params={"attributes": "userName", "count": 1})
        assert set(only.json()["Resources"][0]) == {"schemas", "id", "userName"}


@pytest.mark.parametrize(
    ("condition", "names"),
    [
        ('userName eq "STRASSE"', []),
        ('userName eq "STRAßE"', ["straße"]),
        ('USERNAME EQ "straße"', ["straße"]),
        (f'{USER}:userName eq "straße"', ["straße"]),
        ('userName eq "Ame\u0301lie"', ["Amélie"]),
        ('userName ne "straße"', ["Amélie", "ann"]),
        ('not (userName eq "straße")', ["Amélie", "ann"]),
        ('externalId eq "Case"', ["ann"]),
        ('externalId eq "case"', []),
        ('externalId eq ""', []),
        ('id eq "nobody"', []),
        ("active eq true", ["straße", "Amélie", "ann"]),
    ],
)
async def test_a_user_is_looked_up_whatever_the_form_of_the_filter(
    condition: str, names: list[str], desk: Desk
) -> None:
    for name, external_id in (("straße", "1"), ("Amélie", None), ("ann", "Case")):
        await desk.add_user(name, **({} if external_id is None else {"externalId": external_id}))
    assert await desk.list_names("/Users", filter=condition) == names


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/Users", b"", 400),
        ("POST", "/Users", b"[" * 100_000, 400),
        ("POST", "/Users", b"null", 400),
        ("POST", "/Users", {}, 400),
        ("POST", "/Users", {"schemas": [USER]}, 400),
        ("POST", "/Users", {"schemas": [GROUP], "userName": "ann"}, 400),
        ("POST", "/Users", {"schemas": [USER], "userName": ""}, 400),
        ("POST", "/Users", {"schemas": [USER], "userName": "a\x00b"}, 400),
        ("POST", "/Users", {"schemas": [USER], "userName": "\ud800"}, 400),
        ("POST", "/Users", {"schemas": [USER], "userName": "a" * 1_001}, 400),
        ("POST", "/Users", {"schemas": [USER], "userName": ["ann"]}, 400),
        ("POST", "/Users", {"schemas": [USER], "userName": "ann", "active": "perhaps"}, 400),
        ("POST", "/Users", {"schemas": [USER], "userName": "ann", "externalId": "e" * 256}, 400),
        ("POST", "/Groups", {"schemas": [GROUP], "displayName": "g", "members": [{"value": "x"}]}, 400),
        ("POST", "/Users/.search", b"[]", 400),
        ("GET", "/Users?filter=userName%20eq", None, 400),
        ("GET", f"/Users?filter={'(' * 400}a%20pr{')' * 400}", None, 400),
        ("GET", f"/Users?filter=userName%20eq%20%22{'a' * 2_000}%22", None, 400),
        ("GET", "/Users?filter=nothing%20eq%20%22a%22", None, 400),
        ("GET", "/Users?sortBy=nothing", None, 400),
        ("GET", "/Users?startIndex=first", None, 400),
        ("GET", "/Nothing", None, 404),
        ("GET", "/Schemas/nothing", None, 404),
        ("POST", "/Bulk", {}, 404),
        ("DELETE", "/Users", None, 405),
        ("PUT", "/Schemas", {}, 405),
    ],
)
async def test_bad_requests_are_refused_in_the_form_of_scim(
    method: str, path: str, body: Any, status: int, desk: Desk
) -> None:
    content = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    answer = await desk.provider.request(method, path, content=content)
    assert (answer.status_code, answer.json()["schemas"]) == (status, [ERROR]), answer.text
    assert answer.json()["status"] == str(status)
    assert answer.headers["content-type"] == "application/scim+json"
    assert await desk.list_names("/Users") == []


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "remove"},
        {"op": "remove", "path": "userName"},
        {"op": "remove", "path": "active"},
        {"op": "replace", "path": "id", "value": "1"},
        {"op": "replace", "path": "userName", "value": None},
        {"op": "replace", "path": "userName", "value": {"a": 1}},
        {"op": "jump", "path": "userName", "value": "ben"},
        {"op": "replace", "path": "((", "value": "ben"},
        "replace",
    ],
)
async def test_a_patch_that_is_refused_changes_nothing(operation: Any, desk: Desk) -> None:
    ann = await desk.add_user("ann", externalId="e1")
    first = {"op": "replace", "path": "externalId", "value": "e2"}
    answer = await desk.patch(f"/Users/{ann['id']}", first, operation)
    assert (answer.status_code, answer.json()["schemas"]) == (400, [ERROR]), answer.text
    assert (await desk.provider.get(f"/Users/{ann['id']}")).json() == ann


async def test_bodies_and_patches_have_limits(open_site: OpenSite) -> None:
    async with opened_desk(open_site, scim_max_bytes=200_000) as desk:
        body = {"schemas": [USER], "userName": "ann", "displayName": "a" * 200_000}
        assert (await desk.provider.post("/Users", json=body)).status_code == 413
        ann = await desk.add_user("ann")
        operation = {"op": "replace", "path": "active", "value": True}
        assert (await desk.patch(f"/Users/{ann['id']}", *[operation] * 1_000)).status_code == 200
        assert (await desk.patch(f"/Users/{ann['id']}", *[operation] * 1_001)).status_code == 400


async def test_a_version_names_one_state(desk: Desk) -> None:
    ann = await desk.add_user("ann")
    path, tag = f"/Users/{ann['id']}", ann["meta"]["version"]
    answer = await desk.provider.get(path, headers={"If-None-Match": tag})
    assert (answer.status_code, answer.content, answer.headers["etag"]) == (304, b"", tag)
    await desk.site.engine.people.set_user_disabled("ann")
    assert (await desk.provider.get(path, headers={"If-None-Match": tag})).status_code == 200
    body = {"schemas": [USER], "userName": "ann.smith"}
    stale = await desk.provider.put(path, json=body, headers={"If-Match": tag})
    assert (stale.status_code, stale.json()["schemas"]) == (412, [ERROR])
    fresh = (await desk.provider.get(path)).headers["etag"]
    assert (await desk.provider.put(path, json=body, headers={"If-Match": fresh})).status_code == 200


async def test_of_many_creations_of_a_name_one_succeeds(desk: Desk) -> None:
    body = {"schemas": [USER], "userName": "ann"}
    answers = await asyncio.gather(*(desk.provider.post("/Users", json=body) for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 5


async def test_the_audit_log_has_all_that_the_provider_did(desk: Desk) -> None:
    ann = await desk.add_user("ann")
    team = await desk.add_group("team", ann["id"])
    await desk.patch(f"/Users/{ann['id']}", {"op": "replace", "path": "userName", "value": "Ann"})
    await desk.patch(f"/Groups/{team['id']}", {"op": "replace", "path": "displayName", "value": "crew"})
    await desk.patch(f"/Users/{ann['id']}", {"op": "replace", "path": "active", "value": False})
    await desk.provider.delete(f"/Users/{ann['id']}")
    await desk.provider.delete(f"/Groups/{team['id']}")
    ended = "disabled; sessions, invitations and keys ended; by SCIM"
    assert await desk.list_changes() == [
        ("create_user", "owner", ""),
        ("create_user", "ann", "by SCIM"),
        ("create_group", "team", "by SCIM"),
        ("add_member", "ann", "group team; by SCIM"),
        ("set_user_name", "ann", "by SCIM"),
        ("set_group_name", "team", "by SCIM"),
        ("set_user_disabled", "ann", ended),
        ("delete_user", "ann", "disabled; its data stay; by SCIM"),
        ("delete_group", "team", "by SCIM"),
    ]
    assert TOKEN not in desk.site.log.getvalue()
