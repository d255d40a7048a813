"""A write that is sent twice with the same key is done once."""

import asyncio
import io
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from conspectus import bootstrap
from conspectus.errors import ProviderUnavailable
from conspectus.model.ids import is_uuid
from conspectus.model.viewers import RemotePerson
from conspectus.operations.table import OPERATIONS
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application
from conspectus.web.logs import logger
from conspectus.web.openapi import DeferredRoute
from conspectus.web.route_table import WRITING_METHODS, RouteTable
from tests.files import holding
from tests.support.embedders import LockedEmbedder
from tests.support.samples import NOON
from tests.web.conftest import SETTINGS, Live, OpenSite, People, Site, filled, peopled
from tests.web.operations import DIRECTORY, PREFIX, WRITES, Request, World

KEY = {"Idempotency-Key": "one"}


async def count_documents(api: httpx.AsyncClient, collection: str = "wiki") -> int:
    answer = await api.post(f"/collections/{collection}/documents/count", json={})
    return int(answer.json()["count"])


def add_document(api: httpx.AsyncClient, text: str = "The ferry leaves at noon.", **headers: str) -> Any:
    body = {"documents": [{"text": text}]}
    return api.post("/collections/wiki/documents", json=body, headers={**KEY, **headers})


async def test_the_second_sending_gets_the_first_answer(api: httpx.AsyncClient) -> None:
    await filled(api)
    first, second = await add_document(api), await add_document(api)
    assert (first.status_code, "idempotent-replayed" in first.headers) == (201, False)
    assert (second.status_code, second.headers["idempotent-replayed"]) == (201, "true")
    assert second.content == first.content
    assert second.headers["content-type"] == first.headers["content-type"]
    assert second.headers["x-request-id"] != first.headers["x-request-id"]
    assert await count_documents(api) == 2


async def test_without_a_key_it_is_done_twice(api: httpx.AsyncClient) -> None:
    await filled(api)
    body = {"documents": [{"text": "The ferry leaves at noon."}]}
    for _ in range(2):
        assert (await api.post("/collections/wiki/documents", json=body)).status_code == 201
    assert await count_documents(api) == 3


async def test_another_request_with_the_key_is_refused(api: httpx.AsyncClient) -> None:
    await filled(api)
    await add_document(api)
    others = [
        await add_document(api, text="Something else."),
        await add_document(api, **{"If-Match": '"x"'}),
        await api.post("/collections", json={"name": "b"}, headers=KEY),
        await api.request("DELETE", "/collections/wiki", headers=KEY),
        await api.request("DELETE", "/collections/wiki?purge=true", headers=KEY),
    ]
    assert {(answer.status_code, answer.json()["code"]) for answer in others} == {(409, "conflict")}
    assert await count_documents(api) == 2


async def test_of_many_at_once_one_is_done(api: httpx.AsyncClient) -> None:
    await filled(api)
    answers = await asyncio.gather(*(add_document(api) for _ in range(8)))
    done = [answer for answer in answers if answer.status_code == 201]
    assert len({answer.content for answer in done}) == 1
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert await count_documents(api) == 2
    assert (await add_document(api)).content == done[0].content


async def test_keys_of_different_people_are_different_keys(people: People) -> None:
    await filled(people.alice)
    await filled(people.bob)
    for client in (people.alice, people.bob):
        assert "idempotent-replayed" not in (await add_document(client)).headers
        assert (await add_document(client)).headers["idempotent-replayed"] == "true"


async def test_refusals_are_kept_and_faults_are_not(site: Site, api: httpx.AsyncClient) -> None:
    faults: list[Exception] = [ProviderUnavailable("x", "is away"), ValueError("x")]
    fail_once(site.app, faults)
    assert (await api.post("/fail", headers=KEY)).status_code == 503
    assert (await api.post("/fail", headers=KEY)).status_code == 500
    assert (await api.post("/fail", headers=KEY)).json() == "done"
    assert (await api.post("/fail", headers=KEY)).headers["idempotent-replayed"] == "true"
    other = {"Idempotency-Key": "two"}
    assert (await api.request("DELETE", "/collections/x", headers=other)).status_code == 404
    await filled(api, "x")
    again = await api.request("DELETE", "/collections/x", headers=other)
    assert (again.status_code, again.headers["idempotent-replayed"]) == (404, "true")
    assert again.headers["content-type"] == "application/problem+json"


def fail_once(app: FastAPI, faults: list[Exception]) -> None:
    async def fail() -> str:
        if faults:
            raise faults.pop(0)
        return "done"

    app.add_api_route("/api/v1/fail", fail, methods=["POST"])


def writes_without_key(key: str | None) -> list[tuple[str, str, dict[str, Any]]]:
    """Whatever may be stored without a key: where it is sent, and the collection that it is then in."""
    text = {"text": "The ferry leaves at noon.", "key": key}
    return [
        ("/collections/wiki/documents", "wiki", {"documents": [text]}),
        ("/messages", "pier", {"collection": "pier", "channel": "general", "messages": [text]}),
        ("/memories", "memory", {"user": "ann", "memories": [text], "collection": "memory"}),
    ]


@pytest.mark.parametrize("key", [None, "ferry"])
async def test_what_was_stored_before_a_fault_is_not_stored_twice(tmp_path: Path, key: str | None) -> None:
    """What has a key of its own is there once however often it is sent."""
    async with bootstrap.open(tmp_path, settings=SETTINGS, embedder=LockedEmbedder()) as engine:
        site = Site(application(engine, SETTINGS), engine, SETTINGS)
        async with site.client() as api:
            for name in ("wiki", "pier"):
                await api.post("/collections", json={"name": name})
            for number, (path, home, body) in enumerate(writes_without_key(key)):
                header = {"Idempotency-Key": f"k{number}"}
                sent = [await api.post(path, json={**body, "wait": True}, headers=header) for _ in range(2)]
                outcomes = [(answer.status_code, answer.json()["code"]) for answer in sent]
                refused = (502, "provider_error")
                assert outcomes == [refused, refused if key else (503, "write_outcome_unknown")], path
                assert await count_documents(api, home) == 1


async def test_long_answers_are_not_kept(site: Site, api: httpx.AsyncClient) -> None:
    """The limit is lower where nothing was stored."""
    for size in (1_000_001, 65_535):
        path = f"/long/{size}"
        site.app.add_api_route(f"/api/v1{path}", lambda size=size: "x" * size, methods=["POST"])
        for _ in range(2):
            answer = await api.post(path, headers={"Idempotency-Key": path})
            assert (len(answer.content), "idempotent-replayed" in answer.headers) == (size + 2, False)


async def test_a_secret_is_kept_nowhere(site: Site, people: People, tmp_path: Path) -> None:
    first = await people.alice.post("/keys", json={}, headers=KEY)
    second = await people.alice.post("/keys", json={}, headers=KEY)
    secret = first.json()["secret"]
    assert (second.status_code, second.headers["idempotent-replayed"]) == (409, "true")
    assert len((await people.alice.get("/keys")).json()) == 2
    assert holding(tmp_path / "data", secret.rpartition("_")[2]) == []


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "\u00e9"])
async def test_what_is_no_key(api: httpx.AsyncClient, key: str) -> None:
    answer = await api.post("/collections", json={"name": "a"}, headers=[(b"Idempotency-Key", key.encode())])
    assert (answer.status_code, answer.json()["field"]) == (422, "Idempotency-Key")


async def test_reads_take_no_key(api: httpx.AsyncClient) -> None:
    for _ in range(2):
        assert "idempotent-replayed" not in (await api.get("/collections", headers=KEY)).headers


async def test_large_bodies_pass_through_the_disk(api: httpx.AsyncClient) -> None:
    await filled(api)
    text = "All work and no play. " * 200_000
    first, second = await add_document(api, text=text), await add_document(api, text=text)
    assert first.status_code == 201 and second.content == first.content
    stored = (await api.get(f"/documents/{first.json()[0]['id']}/text")).json()["text"]
    assert stored == text


def test_a_request_that_breaks_off_gives_its_key_back(tmp_path: Path) -> None:
    head = b"POST /api/v1/collections HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: one\r\n"
    with Live(tmp_path, SETTINGS) as live, live.client() as client:
        with socket.create_connection(("127.0.0.1", client.base_url.port or 0)) as connection:
            connection.sendall(head + b"Content-Length: 100\r\n\r\n{")
        answer = client.post("/collections", json={"name": "a"}, headers=KEY)
        assert (answer.status_code, "idempotent-replayed" in answer.headers) == (201, False)
    assert '"request_failed"' not in live.log.getvalue()


async def test_answers_are_forgotten_in_time(open_site: OpenSite) -> None:
    async with open_site() as site, site.client() as api:
        await filled(api)
        await add_document(api)
    async with open_site(idempotency_hours=0) as site, site.client() as api:
        answer = await add_document(api)
        assert (answer.status_code, "idempotent-replayed" in answer.headers) == (201, False)
        assert await count_documents(api) == 3


CLAIM = """
import asyncio, sys
from conspectus import bootstrap
from conspectus.settings import Settings

async def main():
    async with bootstrap.open(sys.argv[1], settings=Settings(embedder="none")) as engine:
        await engine.idempotency.begin("local", "one", sys.argv[2], at=bootstrap.now())
        print("claimed", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


def claim_and_die(folder: Path) -> None:
    """Leave a key behind that is claimed and that nobody will ever answer."""
    command = [sys.executable, "-c", CLAIM, str(folder), "another fingerprint"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "claimed\n"
        os.kill(process.pid, signal.SIGKILL)


async def test_a_request_that_was_killed_can_be_sent_again(open_site: OpenSite, tmp_path: Path) -> None:
    async with open_site() as site, site.client() as api:
        await filled(api)
    claim_and_die(tmp_path / "data")
    async with open_site() as site, site.client() as api:
        assert (await add_document(api)).status_code == 201


async def test_a_server_starts_although_others_hold_its_store(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = replace(SETTINGS, lock_timeout_seconds=1)
    async with bootstrap.open(tmp_path / "data", settings=settings, embedder=HashedEmbedder()) as engine:
        app = application(engine, settings, log=logger("critical", io.StringIO()))
        with closing(sqlite3.connect(tmp_path / "data" / "records.sqlite")) as other:
            other.execute("BEGIN IMMEDIATE")
            async with app.router.lifespan_context(app):
                assert "idempotency_cleanup_failed code=storage_busy" in caplog.text


REPLAYED = "idempotent-replayed"
PLACEHOLDER = re.compile(r"\{\w+(:path)?\}")


def strings_in(document: Any) -> list[str]:
    """Every text of a response, names of fields not among them."""
    match document:
        case str():
            return [document]
        case list():
            return [text for element in document for text in strings_in(element)]
        case dict():
            return [text for element in document.values() for text in strings_in(element)]
    return []


def shows_text(answer: httpx.Response) -> bool:
    """Whether more than ids, numbers and the like is in a response."""
    texts = strings_in(answer.json()) if answer.is_success and answer.content else []
    return not all(map(is_uuid, texts))


async def replay_after_changes(
    request: Request, world: World, actor: httpx.AsyncClient, people: People
) -> Mapping[str, httpx.Response]:
    """The responses to a keyed request: the first, again, without the grant, with it, and after deletion."""
    keyed = replace(request, parts={**request.parts, "headers": KEY_OF[request.method, request.path]})
    bob = (await people.bob.get("/me")).json()["id"]
    access = f"/collections/{world.known.get('collection', 'none')}/grants"
    answers = {"first": await keyed.sent(actor), "again": await keyed.sent(actor)}
    await people.owner.request("DELETE", access, params={"kind": "user", "id": bob})
    answers["revoked"] = await keyed.sent(actor)
    await people.owner.put(access, json={"grantee": {"kind": "user", "id": bob}, "role": "owner"})
    answers["granted"] = await keyed.sent(actor)
    things = [
        f"/{name}s/{world.known[name]}" for name in ("collection", "user", "group") if name in world.known
    ]
    if request.path in {"/collections", "/users", "/groups"}:
        things.append(f"{request.path}/{answers['first'].json().get('id')}")
    for thing in things:
        await people.owner.delete(thing)
    answers["deleted"] = await keyed.sent(actor)
    return answers


class Keys(dict[tuple[str, str], dict[str, str]]):
    """A key of its own for each request."""

    def __missing__(self, request: tuple[str, str]) -> dict[str, str]:
        return self.setdefault(request, {"Idempotency-Key": f"k{len(self)}"})


KEY_OF = Keys()


async def test_every_keyed_response_is_repeated_only_to_whoever_may_see_it(
    open_site: OpenSite, openapi: dict[str, Any]
) -> None:
    """Each operation is done, and sent again: as it was, without its grant, and when its things are gone."""
    keyed = keyed_operations(openapi)
    labels = [label for label in WRITES if PLACEHOLDER.sub("{}", label) in keyed]
    assert len(labels) == len(keyed)
    async with open_site(chat_model=ScriptedChatModel()) as site, peopled(site) as people:
        walked = {label: await check_operation(label, people) for label in labels if label != DIRECTORY}
    wrong = {label: faults_in(answers, is_owner=is_owner) for label, (answers, is_owner) in walked.items()}
    assert {label: names for label, names in wrong.items() if names} == {}
    assert sum(not is_owner for _, is_owner in walked.values()) > 55


async def check_operation(label: str, people: People) -> tuple[Mapping[str, httpx.Response], bool]:
    """The responses to an operation of a user with a grant, or of the store's owner where only they may."""
    bob = (await people.bob.get("/me")).json()["id"]
    answers: Mapping[str, httpx.Response] = {}
    for actor in (people.bob, people.owner):
        world = World(people.owner)
        await world.make("collection")
        access = f"/collections/{world.known['collection']}/grants"
        await people.owner.put(access, json={"grantee": {"kind": "user", "id": bob}, "role": "owner"})
        request = await world.request(label, WRITES[label])
        answers = await replay_after_changes(request, world, actor, people)
        if answers["first"].is_success:
            return answers, actor is people.owner
    return answers, True


def keyed_operations(openapi: dict[str, Any]) -> list[str]:
    """The operations whose entry in the document has the header."""
    return [
        PLACEHOLDER.sub("{}", f"{method.upper()} {path.removeprefix(PREFIX)}")
        for path, methods in openapi["paths"].items()
        for method, operation in methods.items()
        if any(parameter["name"] == "Idempotency-Key" for parameter in operation.get("parameters", ()))
    ]


def faults_in(answers: Mapping[str, httpx.Response], *, is_owner: bool) -> list[str]:
    """What is wrong with the responses; those that show a secret are refused each time."""
    first, secret = answers["first"], answers["again"].status_code == 409
    same = secret or (answers["again"].content == first.content and REPLAYED in answers["again"].headers)
    shown_after = {name for name in ("revoked", "deleted") if shows_text(answers[name])}
    is_refused = answers["revoked"].status_code in {403, 404, 409}
    is_gone = answers["revoked"].request.method == "DELETE" and answers["granted"].is_success
    checks = {
        f"done: {first.text}": first.is_success,
        f"repeated: {answers['again'].text}": same,
        "not shown after a deletion": "deleted" not in shown_after,
        "refused without the grant": is_owner or is_refused or is_gone,
        "not shown without the grant": is_owner or "revoked" not in shown_after,
    }
    return [name for name, holds in checks.items() if not holds]


async def test_no_read_is_keyed(site: Site, api: httpx.AsyncClient, openapi: dict[str, Any]) -> None:
    """Whatever the operations table calls a read has neither the header in the document nor a replay."""
    keyed = keyed_operations(openapi)
    reads = [operation for operation in OPERATIONS.values() if operation.reads]
    assert reads
    assert not {PLACEHOLDER.sub("{}", f"{operation.verb} {operation.path}") for operation in reads} & set(
        keyed
    )
    table = RouteTable(site.app.router.routes)
    requests = [
        (route, {"method": method, "path": PLACEHOLDER.sub("x", route.path)})
        for route in site.app.router.routes
        if isinstance(route, DeferredRoute)
        for method in route.methods & WRITING_METHODS
    ]
    assert [scope for route, scope in requests if table.is_read_only(scope) is not route.is_read_only] == []


async def test_a_revoked_reader_of_files_gets_nothing_back_by_a_key(people: People) -> None:
    await filled(people.owner, "wiki", "The secret code is 1234.")
    bob = {"kind": "user", "id": (await people.bob.get("/me")).json()["id"]}
    await people.owner.put("/collections/wiki/grants", json={"grantee": bob, "role": "viewer"})
    body = {"pattern": "secret code", "path": "/wiki"}
    first = await people.bob.post("/files/grep", json=body, headers=KEY)
    assert "1234" in first.text and REPLAYED not in first.headers
    await people.owner.request("DELETE", "/collections/wiki/grants", params=bob)
    again = await people.bob.post("/files/grep", json=body, headers=KEY)
    assert (again.status_code, REPLAYED in again.headers) == (404, False)


async def test_a_response_is_not_repeated_once_its_source_is_hidden(site: Site, people: People) -> None:
    (document,) = await filled(people.owner, "wiki", "The secret code is 1234.")
    bob = {"kind": "user", "id": (await people.bob.get("/me")).json()["id"]}
    await people.owner.put("/collections/wiki/grants", json={"grantee": bob, "role": "editor"})
    change = {"title": "The code 1234"}
    first, again = [
        await people.bob.patch(f"/documents/{document}", json=change, headers=KEY) for _ in range(2)
    ]
    assert (first.status_code, REPLAYED in again.headers) == (200, True)
    source = (await people.owner.get(f"/documents/{document}")).json()["source"]
    await site.engine._context.parts.accounts.hide_sources([source], since=NOON)
    hidden = await people.bob.patch(f"/documents/{document}", json=change, headers=KEY)
    assert (hidden.status_code, "1234" in hidden.text) == (409, False)


async def test_a_response_is_not_repeated_to_a_former_viewer(site: Site, people: People) -> None:
    (document,) = await filled(people.owner, "wiki", "The secret code is 1234.")
    bob = (await people.bob.get("/me")).json()["id"]
    grantee = {"kind": "user", "id": bob}
    await people.owner.put("/collections/wiki/grants", json={"grantee": grantee, "role": "editor"})
    source = (await people.owner.get(f"/documents/{document}")).json()["source"]
    accounts = site.engine._context.parts.accounts
    await accounts.mirror_source(source, "mail", ["staff"])
    await accounts.map_remote_person("mail", RemotePerson("bob", bob), created=NOON)
    await accounts.put_remote_members("mail", {"staff": ["bob"]})
    change = {"title": "The code 1234"}
    first, again = [
        await people.bob.patch(f"/documents/{document}", json=change, headers=KEY) for _ in range(2)
    ]
    assert (first.status_code, REPLAYED in again.headers) == (200, True)
    await accounts.put_remote_members("mail", {"staff": []})
    revoked = await people.bob.patch(f"/documents/{document}", json=change, headers=KEY)
    assert (revoked.status_code, "1234" in revoked.text) == (409, False)
