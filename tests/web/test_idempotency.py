"""A write that is sent twice with the same key is done once."""

import asyncio
import io
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from conspectus import bootstrap
from conspectus.errors import ProviderUnavailable
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application
from conspectus.web.logs import logger
from tests.files import holding
from tests.support.embedders import LockedEmbedder
from tests.web.conftest import SETTINGS, Live, OpenSite, People, Site, filled

KEY = {"Idempotency-Key": "one"}


async def count(api: httpx.AsyncClient, collection: str = "wiki") -> int:
    answer = await api.post(f"/collections/{collection}/documents/count", json={})
    return int(answer.json()["count"])


def add(api: httpx.AsyncClient, text: str = "The ferry leaves at noon.", **headers: str) -> Any:
    body = {"documents": [{"text": text}]}
    return api.post("/collections/wiki/documents", json=body, headers={**KEY, **headers})


async def test_the_second_sending_gets_the_first_answer(api: httpx.AsyncClient) -> None:
    await filled(api)
    first, second = await add(api), await add(api)
    assert (first.status_code, "idempotent-replayed" in first.headers) == (201, False)
    assert (second.status_code, second.headers["idempotent-replayed"]) == (201, "true")
    assert second.content == first.content
    assert second.headers["content-type"] == first.headers["content-type"]
    assert second.headers["x-request-id"] != first.headers["x-request-id"]
    assert await count(api) == 2


async def test_without_a_key_it_is_done_twice(api: httpx.AsyncClient) -> None:
    await filled(api)
    body = {"documents": [{"text": "The ferry leaves at noon."}]}
    for _ in range(2):
        assert (await api.post("/collections/wiki/documents", json=body)).status_code == 201
    assert await count(api) == 3


async def test_another_request_with_the_key_is_refused(api: httpx.AsyncClient) -> None:
    await filled(api)
    await add(api)
    others = [
        await add(api, text="Something else."),
        await add(api, **{"If-Match": '"x"'}),
        await api.post("/collections", json={"name": "b"}, headers=KEY),
        await api.request("DELETE", "/collections/wiki", headers=KEY),
        await api.request("DELETE", "/collections/wiki?purge=true", headers=KEY),
    ]
    assert {(answer.status_code, answer.json()["code"]) for answer in others} == {(409, "conflict")}
    assert await count(api) == 2


async def test_of_many_at_once_one_is_done(api: httpx.AsyncClient) -> None:
    await filled(api)
    answers = await asyncio.gather(*(add(api) for _ in range(8)))
    done = [answer for answer in answers if answer.status_code == 201]
    assert len({answer.content for answer in done}) == 1
    assert {answer.status_code for answer in answers} <= {201, 409}
    assert await count(api) == 2
    assert (await add(api)).content == done[0].content


async def test_keys_of_different_people_are_different_keys(people: People) -> None:
    await filled(people.alice)
    await filled(people.bob)
    for client in (people.alice, people.bob):
        assert "idempotent-replayed" not in (await add(client)).headers
        assert (await add(client)).headers["idempotent-replayed"] == "true"


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


def written(key: str | None) -> list[tuple[str, str, dict[str, Any]]]:
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
            for number, (path, home, body) in enumerate(written(key)):
                header = {"Idempotency-Key": f"k{number}"}
                sent = [await api.post(path, json={**body, "wait": True}, headers=header) for _ in range(2)]
                told = [(each.status_code, each.json()["code"]) for each in sent]
                refused = (502, "provider_error")
                assert told == [refused, refused if key else (503, "write_outcome_unknown")], path
                assert await count(api, home) == 1


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
    first, second = await add(api, text=text), await add(api, text=text)
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
        await add(api)
    async with open_site(idempotency_hours=0) as site, site.client() as api:
        answer = await add(api)
        assert (answer.status_code, "idempotent-replayed" in answer.headers) == (201, False)
        assert await count(api) == 3


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
        assert (await add(api)).status_code == 201


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
