"""Requests that fail on their way: sent again where that is safe, else a clear error."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from tests.support.web_server import (
    Answer,
    Script,
    ScriptedServer,
    compressed,
    gzip_bomb,
    redirect,
)

import conspectus
from conspectus import Eq, NewDocument, RemoteEngine, Settings, bootstrap
from conspectus.client.transport import Transport, TransportLimits
from conspectus.errors import (
    Conflict,
    ConspectusError,
    InvalidInput,
    NotFound,
    Overloaded,
    ServerUnavailable,
    StorageBusy,
    TooLarge,
    UnreadableFile,
    WriteOutcomeUnknown,
)
from conspectus.model.channels import NewMessage
from conspectus.model.jobs import Upload
from conspectus.model.retries import RetryPolicy
from conspectus.web.problem_details import problem_of

API = "/api/v1"
ME = f"{API}/me"
SETTINGS = replace(Settings(), client_timeout_seconds=5)
PERSON = {"id": "u", "name": "alice", "owner": False, "scopes": ["read"]}


def build_answer(content: object) -> Answer:
    return Answer(json.dumps(content).encode(), type="application/json")


def build_problem(error: ConspectusError) -> Answer:
    problem = problem_of(error)
    return Answer(
        json.dumps(problem.document()).encode(),
        problem.status,
        type="application/problem+json",
        headers=problem.headers,
    )


LOST = Answer(b'{"id": "u"}', broken=True)
BUSY = build_problem(Overloaded("all places are taken", retry_after=3))


class Waits(list[float]):
    """What a client waited, without waiting."""

    async def __call__(self, seconds: float) -> None:
        self.append(seconds)


@asynccontextmanager
async def connect_remote(
    answers: Mapping[str, Script], *, waits: Waits | None = None, seconds: float = 5.0, maximum: int = 10_000
) -> AsyncIterator[tuple[RemoteEngine, ScriptedServer]]:
    retry_policy = RetryPolicy(attempts=4, sleep=Waits() if waits is None else waits, chance=lambda: 1.0)
    async with ScriptedServer(answers) as server, httpx.AsyncClient(timeout=seconds) as http:
        channel = Transport(http, server.base, TransportLimits(seconds, maximum, retry_policy))
        yield (
            RemoteEngine(channel, bootstrap.local_files(SETTINGS), bootstrap.local_archives(SETTINGS)),
            server,
        )


async def test_a_busy_server_is_asked_again_when_it_says() -> None:
    waits = Waits()
    async with connect_remote(
        {ME: [BUSY, Answer(status=503, type="text/html"), build_answer(PERSON)]}, waits=waits
    ) as (
        engine,
        _,
    ):
        assert (await engine.people.whoami()).name == "alice"
    assert waits == [3.0, 2.0]


async def test_patience_ends_with_what_the_server_said() -> None:
    async with connect_remote({ME: BUSY}) as (engine, server):
        with pytest.raises(Overloaded, match="all places are taken") as caught:
            await engine.people.whoami()
        assert (server.count(), caught.value.retry_after) == (4, 3)


async def test_nobody_waits_for_longer_than_is_sensible() -> None:
    async with connect_remote({ME: build_problem(Overloaded("upgrading", retry_after=3600))}) as (
        engine,
        server,
    ):
        with pytest.raises(Overloaded):
            await engine.people.whoami()
        assert server.count() == 1


async def test_a_lost_answer_is_asked_for_again_with_the_same_key() -> None:
    collection = {
        "id": "c",
        "name": "wiki",
        "space": None,
        "language": None,
        "created": "2024-05-01T00:00:00Z",
    }
    running = build_problem(
        Conflict("idempotency key", "k", "belongs to a request that is still being answered")
    )
    async with connect_remote({f"{API}/collections": [LOST, running, build_answer(collection)]}) as (
        engine,
        server,
    ):
        assert (await engine.collections.create("wiki")).id == "c"
        keys = {request.headers["idempotency-key"] for request in server.requests}
        assert (server.count(), len(keys)) == (3, 1)
        await engine.collections.create("wiki")
        assert server.requests[-1].headers["idempotency-key"] not in keys


AWAY = build_problem(StorageBusy("the database does not answer"))


async def test_a_store_that_comes_back_is_asked_again() -> None:
    waits = Waits()
    async with connect_remote({ME: [AWAY, AWAY, build_answer(PERSON)]}, waits=waits) as (engine, server):
        assert (await engine.people.whoami()).name == "alice"
        assert (server.count(), waits) == (3, [1.0, 1.0])


async def test_a_store_that_stays_away_is_told() -> None:
    async with connect_remote({ME: AWAY}) as (engine, server):
        with pytest.raises(StorageBusy, match="ask again"):
            await engine.people.whoami()
        assert server.count() == 4


def list_keys(server: ScriptedServer, path: str) -> set[str]:
    """All idempotency keys with which something was sent there."""
    return {request.headers["idempotency-key"] for request in server.requests if request.path == path}


async def test_what_a_store_may_have_done_is_asked_for_again_under_its_key() -> None:
    """Documents have keys, and of messages a server does nothing twice."""
    source = {"id": "s", "collection": "c", "name": "default", "kind": "manual"}
    written = [{"id": "d", "outcome": "added", "chunks": 1}]
    lost, documents = build_problem(WriteOutcomeUnknown("the answer was lost")), f"{API}/sources/s/documents"
    answers = {
        f"{API}/collections/default/sources": build_answer(source),
        documents: [lost, AWAY, build_answer(written)],
    }
    async with connect_remote(
        {**answers, f"{API}/collections": lost, f"{API}/keys": AWAY, f"{API}/messages": lost}
    ) as (engine, server):
        with pytest.raises(WriteOutcomeUnknown, match="may or may not"):
            await engine.collections.create("wiki")
        with pytest.raises(StorageBusy):
            await engine.keys.create()
        assert server.count() == 2
        await engine.add(["no key", NewDocument("a key", key="k")])
        sent = [
            json.loads(request.body)["documents"] for request in server.requests if request.path == documents
        ]
        with pytest.raises(WriteOutcomeUnknown):
            await engine.channels.add_messages(NewMessage("once"), channel="harbour")
        assert len(list_keys(server, f"{API}/messages")) == 1
        assert server.count(f"{API}/messages") == 4
    assert len(sent) == 3
    assert sent[0] == sent[1] == sent[2]
    assert [len(document["key"]) for document in sent[0]] == [36, 1]


async def test_another_conflict_is_final_and_questions_have_no_key() -> None:
    hits = {"outcome": "found", "hits": []}
    answers = {f"{API}/collections": build_problem(Conflict("collection", "wiki", "exists already"))}
    async with connect_remote({**answers, f"{API}/search": [LOST, build_answer(hits)]}) as (engine, server):
        with pytest.raises(Conflict):
            await engine.collections.create("wiki")
        assert server.count() == 1
        assert (await engine.retrieve("a")).outcome == "found"
        assert "idempotency-key" not in server.requests[-1].headers


async def test_a_secret_that_was_lost_is_not_asked_for_again() -> None:
    async with connect_remote({f"{API}/keys": LOST}) as (engine, server):
        with pytest.raises(ServerUnavailable, match="the connection was lost"):
            await engine.keys.create()
        assert server.count() == 1
        assert "idempotency-key" not in server.requests[0].headers


async def test_files_that_are_sent_again_are_the_same_byte_for_byte(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"# A\n\nthe file \xff\x00")
    uploads = [Upload("Ä.md", tmp_path / "a.md"), Upload("b.txt", b"bytes")]
    async with connect_remote({f"{API}/collections/default/ingest/files": BUSY}) as (engine, server):
        with pytest.raises(Overloaded):
            await engine.jobs.ingest_files(uploads, source="notes")
        assert len({request.body for request in server.requests}) == 1
        body = server.requests[0].body
        assert all(part in body for part in (b"the file \xff\x00", b"bytes", "Ä.md".encode(), b"notes"))
        with pytest.raises(UnreadableFile, match=r"gone\.md"):
            await engine.jobs.ingest_files([Upload("gone.md", tmp_path / "gone.md")])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (Answer(b"<html>", type="text/html"), "it is not JSON"),
        (Answer(b"[" * 5_000, type="application/json"), "it is not JSON"),
        (Answer(b"<html>", 404, type="text/html"), "HTTP 404 without a reason"),
        (Answer(b"[]", 404, type="application/problem+json"), "the problem document is not an object"),
        (redirect("http://elsewhere.example/"), "HTTP 302 without a reason"),
        (build_answer([PERSON]), "not an object"),
        (build_answer({**PERSON, "scopes": ["all"]}), r"answer\.scopes\.0 is 'all'"),
        (Answer(b"not gzip", headers={"Content-Encoding": "gzip"}), "the connection was lost"),
        (
            Answer(
                b'{"code": "timeout", "detail": "not finished within 60 s"}', 504, "application/problem+json"
            ),
            "not finished within 60 s",
        ),
    ],
)
async def test_what_is_no_answer_of_ours_is_said(answer: Answer, reason: str) -> None:
    async with connect_remote({ME: answer}) as (engine, server):
        with pytest.raises(ServerUnavailable, match=reason) as caught:
            await engine.people.whoami()
        assert caught.value.url == server.base


async def test_answers_have_a_size() -> None:
    async with connect_remote(
        {ME: gzip_bomb(50_000_000), f"{API}/users": Answer(b"x" * 9, endless=True)}
    ) as (
        engine,
        _,
    ):
        for call in (engine.people.whoami, engine.people.list_users):
            with pytest.raises(TooLarge, match="answer: is"):
                await call()


async def test_a_compressed_answer_is_read() -> None:
    packed = compressed(json.dumps(PERSON).encode(), type="application/json")
    async with connect_remote({ME: packed}) as (engine, _):
        assert (await engine.people.whoami()).name == "alice"


async def test_silence_has_an_end_and_is_not_asked_again() -> None:
    async with connect_remote({ME: Answer(delay=60)}, seconds=0.05) as (engine, server):
        with pytest.raises(ServerUnavailable, match=r"gave no answer within 0\.05 s"):
            await engine.people.whoami()
        assert server.count() <= 1


async def test_work_that_grows_with_the_store_may_take_its_time() -> None:
    slow = replace(build_answer({"embedded": 3}), delay=1.5)
    async with connect_remote({f"{API}/collections/default/wait": slow}, seconds=1) as (engine, _):
        assert await engine.documents.wait_until_embedded() == 3


async def test_nobody_there_is_said_after_a_few_tries() -> None:
    async with ScriptedServer() as server:
        pass
    waits = Waits()
    async with httpx.AsyncClient() as http:
        channel = Transport(http, server.base, TransportLimits(5, 10, RetryPolicy(4, sleep=waits)))
        with pytest.raises(ServerUnavailable, match="cannot be reached"):
            await RemoteEngine(
                channel, bootstrap.local_files(SETTINGS), bootstrap.local_archives(SETTINGS)
            ).keys.create()
    assert len(waits) == 3


@pytest.mark.parametrize(
    "url", ["", "localhost:8642", "ftp://host", "http://", "http://u:p@host", "http://h/?a", "http://[::"]
)
async def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        async with conspectus.connect(url, settings=Settings()):
            pass
    assert caught.value.field == "url"


@pytest.mark.parametrize("key", ["a b", "clé", "a\nb"])
async def test_a_key_that_is_none_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        async with conspectus.connect("http://host", api_key=key, settings=Settings()):
            pass
    assert caught.value.field == "api_key"
    assert key not in str(caught.value)


async def test_the_key_goes_with_requests_to_the_server_and_nowhere_else() -> None:
    async with ScriptedServer({ME: build_answer(PERSON)}) as other, ScriptedServer() as server:
        server.answers = {
            f"/under{ME}": build_answer(PERSON),
            f"/under{API}/status": redirect(f"{other.base}{ME}"),
        }
        settings = replace(SETTINGS, url=f"{server.base}/under/", api_key="csp_secret")
        async with conspectus.connect(settings=settings) as engine:
            await engine.people.whoami()
            with pytest.raises(ServerUnavailable):
                await engine.maintenance.status()
        assert server.requests[0].headers["authorization"] == "Bearer csp_secret"
        assert other.requests == []


async def test_address_and_key_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedServer({ME: build_answer(PERSON)}) as server:
        monkeypatch.setenv("CONSPECTUS_URL", server.base)
        monkeypatch.setenv("CONSPECTUS_API_KEY", "csp_secret")
        async with conspectus.connect() as engine:
            assert (await engine.people.whoami()).name == "alice"
        assert server.requests[0].headers["authorization"] == "Bearer csp_secret"


NAMES = ["wiki", "alice/wiki", "a b?c#d%2F&", "..", ".", "日本 🍏", "a//b"]


@pytest.mark.parametrize("name", NAMES)
async def test_names_reach_the_server_as_they_are(name: str) -> None:
    async with connect_remote({}) as (engine, server):
        with pytest.raises(ServerUnavailable):
            await engine.collections.get(name)
        raw = server.requests[0].target.removeprefix(f"{API}/collections/")
        assert httpx.URL(f"http://h/{raw}").path == f"/{name}"


async def test_what_no_id_is_is_refused_without_asking() -> None:
    async with connect_remote({}) as (engine, server):
        with pytest.raises(NotFound) as caught:
            await engine.documents.get("a/b")
        assert (caught.value.kind, caught.value.name) == ("document", "a/b")
        with pytest.raises(InvalidInput, match="document: must have from 1"):
            await engine.documents.get("")
        assert server.requests == []


async def test_a_filter_that_no_address_can_hold_is_refused() -> None:
    async with connect_remote({}) as (engine, server):
        with pytest.raises(InvalidInput, match="the request is too long"):
            await engine.documents.list(filter=Eq("thread", "x" * 90_000))
        assert server.requests == []
