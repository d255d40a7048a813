"""How much, how long and how many at once: over real connections, with hostile and slow clients."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI, Request
from hypothesis import given
from hypothesis import strategies as st

from conspectus.errors import TooLarge
from conspectus.model.access import SCOPES
from conspectus.web.bodies import parse_json
from conspectus.web.body_limits import ValueCounter
from conspectus.web.connections import HEAD_BYTES
from conspectus.web.limits import AnonymousTurns, Precedence
from tests.waiting import blocking_until, until
from tests.web.conftest import SETTINGS, Live, OpenSite, Site

JSON = {"Content-Type": "application/json"}
SMALL = {"max_request_bytes": 10_000}


def body_in_pieces(size: int) -> Iterator[bytes]:
    """A body without a length told before."""
    for _ in range(size // 1_000):
        yield b" " * 1_000


async def endless() -> Any:
    """A body without an end, which could be that of an upload."""
    yield b'--x\r\nContent-Disposition: form-data; name="files"; filename="a"\r\n\r\n'
    while True:
        yield b" " * 1_000
        await asyncio.sleep(0)


async def test_a_body_over_the_limit_is_refused_by_its_length(open_site: OpenSite) -> None:
    async with open_site(**SMALL) as site, site.client() as client:
        answer = await client.post("/search", content=b" " * 10_001)
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert (answer.json()["size"], answer.json()["limit"]) == (10_001, 10_000)
        assert (await client.post("/search", content=b" " * 10_000)).status_code == 422


@pytest.mark.parametrize("path", ["/search", "/collections/wiki/ingest/files", "/nothing"])
@pytest.mark.parametrize("key", [{}, {"Idempotency-Key": "k"}], ids=["plain", "with key"])
async def test_a_body_without_a_length_is_refused_where_it_is_too_long(
    open_site: OpenSite, path: str, key: dict[str, str]
) -> None:
    form = {"Content-Type": "multipart/form-data; boundary=x"} if "files" in path else {}
    async with open_site(**SMALL) as site, site.client() as client:
        answer = await client.post(path, content=endless(), headers={**key, **form})
        expected = (404, "not_found") if path == "/nothing" else (413, "too_large")
        assert (answer.status_code, answer.json()["code"]) == expected
        received = site.requests[-1]["received"]
        assert received <= 12_000


def test_the_limit_holds_on_a_real_connection(tmp_path: Path) -> None:
    with Live(tmp_path, replace(SETTINGS, **SMALL)) as live, live.client() as client:
        for content in (b" " * 20_000, body_in_pieces(20_000)):
            answer = client.post("/search", content=content)
            assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
        assert client.get("/me").status_code == 200


def raw(address: str, request: bytes) -> bytes:
    """What a server answers until it ends the connection; nothing where it reads no further."""
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        answer = b""
        with suppress(ConnectionError):
            connection.sendall(request)
            while piece := connection.recv(65_536):
                answer += piece
    return answer


HOSTILE = [
    b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
    b"GET /" + b"x" * 200_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET /api/v1/me HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    b"POST /api/v1/me HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
]


@pytest.mark.parametrize("request_bytes", HOSTILE, ids=["header", "address", "tls", "length", "smuggled"])
def test_what_is_no_request_is_refused_and_harms_nobody(tmp_path: Path, request_bytes: bytes) -> None:
    with Live(tmp_path, SETTINGS) as live, live.client() as client:
        answer = raw(live.address, request_bytes + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 4") or (not answer and len(request_bytes) > HEAD_BYTES)
        assert b"Traceback" not in answer
        assert client.get("/me").status_code == 200


@dataclass
class Gate:
    """A route that is answered only when it is let through."""

    open: threading.Event = field(default_factory=threading.Event)
    entered: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))

    def add(self, app: FastAPI) -> None:
        async def wait() -> str:
            self.entered.release()
            await asyncio.to_thread(self.open.wait)
            return "through"

        app.add_api_route("/api/v1/wait", wait)


@contextmanager
def filled_server(live: Live, gate: Gate, *, slots: int, waiting: int) -> Iterator[list[Any]]:
    """All places taken, and so many more waiting."""
    with ThreadPoolExecutor(slots + waiting) as threads, live.client() as client:
        try:
            requests = [threads.submit(client.get, "/wait") for _ in range(slots + waiting)]
            for _ in range(slots):
                assert gate.entered.acquire(timeout=30)
            blocking_until(lambda: metric(live, "conspectus_requests_waiting") >= waiting)
            yield requests
        finally:
            gate.open.set()


def metric(live: Live, name: str) -> float:
    text = httpx.get(f"{live.address}/metrics").text
    return next(float(line.rpartition(" ")[2]) for line in text.splitlines() if line.startswith(f"{name} "))


def test_who_comes_when_all_places_are_taken_is_sent_away(tmp_path: Path) -> None:
    gate = Gate()
    settings = replace(SETTINGS, max_concurrent_requests=2, max_queued_requests=3)
    with Live(tmp_path, settings, gate.add) as live, live.client() as client:
        with filled_server(live, gate, slots=2, waiting=3) as requests:
            answer = client.get("/me")
            assert (answer.status_code, answer.json()["code"]) == (503, "overloaded")
            assert answer.headers["retry-after"] == "1"
            assert httpx.get(f"{live.address}/health/live").status_code == 200
            assert httpx.get(f"{live.address}/health/ready").status_code == 200
            gate.open.set()
            assert [request.result().status_code for request in requests] == [200] * 5
        assert client.get("/me").status_code == 200
        assert metric(live, "conspectus_requests_waiting") == 0


async def slow_body(arrived: asyncio.Event) -> Any:
    yield b" "
    await arrived.wait()
    yield b"{}"


async def test_one_user_cannot_take_all_places(open_site: OpenSite) -> None:
    """Nor can it with several keys."""
    arrived = asyncio.Event()
    async with open_site(max_concurrent_requests=2, max_user_requests=1, max_queued_requests=4) as site:
        await site.engine.keys.create_first()
        secrets = [await another_key(site, name) for name in ("ann", "ann", "bob")]
        async with (
            site.client(secrets[0]) as one,
            site.client(secrets[1]) as two,
            site.client(secrets[2]) as bob,
        ):
            slow = [
                asyncio.create_task(client.post("/search", content=slow_body(arrived)))
                for client in (one, two, one, two, one)
            ]
            await until(lambda: sum(request.done() for request in slow) == 2)
            refused = [request.result() for request in slow if request.done()]
            assert [answer.json()["code"] for answer in refused] == ["overloaded", "overloaded"]
            assert (await bob.get("/me")).status_code == 200
            arrived.set()
            codes = [answer.status_code for answer in await asyncio.gather(*slow)]
            assert sorted(codes) == [422, 422, 422, 503, 503]


async def another_key(site: Site, name: str) -> str:
    if name not in [user.name for user in await site.engine.people.list_users()]:
        await site.engine.people.create_user(name)
    return (await site.engine.keys.create(name, scopes=SCOPES)).secret


QUESTIONS = ["/search", "/context", "/chat", "/collections/x/documents/count", "/memories/recall"]


@pytest.mark.parametrize("path", QUESTIONS)
async def test_a_question_has_a_limit_of_its_own(open_site: OpenSite, path: str) -> None:
    async with open_site(max_question_bytes=1_000) as site, site.client() as client:
        answer = await client.post(path, json={"text": "x" * 1_000})
        assert (answer.status_code, answer.json()["limit"]) == (413, 1_000)
        created = await client.post("/collections", json={"name": "x", "description": "x" * 1_000})
        assert created.status_code != 413


async def test_a_large_body_is_read_as_a_small_one(open_site: OpenSite) -> None:
    async with open_site(max_body_values=30_000) as site, site.client() as client:
        await client.post("/collections", json={"name": "wiki"})
        texts = ["long " * 30_000, *('café \u2028 "[{]}\\' for _ in range(900))]
        documents = [{"text": text, "metadata": {"a": [1, 2.5, None, {"b": True}]}} for text in texts]
        for large in ({"documents": documents}, {"documents": documents, "wait": "\ud800"}, [documents] * 2):
            body = json.dumps(large, ensure_ascii=True).encode()
            assert parse_json(body) == json.loads(body)
        added = await client.post("/collections/wiki/documents", json={"documents": documents})
        assert (added.status_code, len(added.json())) == (201, 901)
        for torn in (b'{"documents": [' + b" " * 70_000, b"[" * 20_000 + b" " * 70_000):
            answer = await client.post("/collections/wiki/documents", content=torn, headers=JSON)
            assert answer.status_code == 422
        dense = await client.post("/collections/wiki/documents", content=b"[{}," * 20_000, headers=JSON)
        assert (dense.status_code, dense.json()["limit"]) == (413, 30_000)


async def test_what_takes_too_long_is_ended(open_site: OpenSite) -> None:
    ended = asyncio.Event()

    async def forever() -> None:
        try:
            await asyncio.sleep(3_600)
        finally:
            ended.set()

    async with open_site(request_timeout_seconds=1) as site, site.client() as client:
        site.app.add_api_route("/api/v1/forever", forever, methods=["POST"])
        answer = await client.post("/forever", headers={"Idempotency-Key": "k"})
        assert (answer.status_code, answer.json()["code"]) == (504, "timeout")
        assert ended.is_set()
        again = await client.post("/forever", headers={"Idempotency-Key": "k"})
        assert again.status_code == 504


def test_a_request_that_never_arrives_is_ended(tmp_path: Path) -> None:
    head = b"POST /api/v1/search HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    with Live(tmp_path, replace(SETTINGS, request_timeout_seconds=1)) as live:
        answer = raw(live.address, head)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code": "request_timeout"' in answer
    assert b"\r\nconnection: close\r\n" in answer.lower()


async def test_waiting_for_a_place_counts(open_site: OpenSite) -> None:
    entered, leave = asyncio.Event(), asyncio.Event()

    async def hold(request: Request) -> None:
        request.state.deadline.reschedule(None)
        entered.set()
        await leave.wait()

    async with (
        open_site(request_timeout_seconds=2, max_concurrent_requests=1) as site,
        site.client() as client,
    ):
        site.app.add_api_route("/api/v1/hold", hold)
        holding = asyncio.create_task(client.get("/hold"))
        await entered.wait()
        assert (await client.get("/me")).status_code == 504
        leave.set()
        assert (await holding).status_code == 200
        assert (await client.get("/me")).status_code == 200


def values_in(text: str) -> int:
    """The commas and opening brackets outside of texts, one character after the other."""
    count, is_inside, is_escaped = 0, False, False
    for character in text:
        if is_inside:
            is_inside = is_escaped or character != '"'
            is_escaped = character == "\\" and not is_escaped
        else:
            is_inside = character == '"'
            count += character in ",[{"
    return count


@given(
    document=st.recursive(
        st.one_of(st.none(), st.integers(), st.text('a",[]{}\\é\u2028', max_size=8)),
        lambda inner: st.lists(inner) | st.dictionaries(st.text('a,"\\[', max_size=4), inner),
    ),
    ascii_only=st.booleans(),
    size=st.integers(1, 9),
)
def test_values_are_counted_outside_of_texts_however_the_body_is_cut(
    document: Any, ascii_only: bool, size: int
) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only)
    body, count = text.encode(), values_in(text)
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    counter = ValueCounter(count)
    for piece in pieces:
        counter.add(piece)
    with pytest.raises(TooLarge):
        counter.add(b",")


async def test_a_body_of_too_many_values_is_refused_while_it_arrives(open_site: OpenSite) -> None:
    """Commas cost as much as brackets; those in texts do not count, and no more is read than was needed."""
    async with open_site() as site, site.client() as client:
        await client.post("/collections", json={"name": "wiki"})
        head = b'{"documents":[{"text":"a","metadata":{"a":[""'
        dense = await client.post("/collections/wiki/documents", content=many_values(head), headers=JSON)
        assert (dense.status_code, dense.json()["code"]) == (413, "too_large")
        assert "the limit is 2000000" in dense.json()["detail"]
        assert site.requests[-1]["received"] < 10_000_000
        text = json.dumps({"documents": [{"text": "a, " * 1_000_000}]}).encode()
        assert (await client.post("/collections/wiki/documents", content=text, headers=JSON)).is_success
        body = json.dumps({"documents": [{"text": "x" * 70_000}]}).encode("utf-16")
        other = await client.post("/collections/wiki/documents", content=body, headers=JSON)
        assert (other.status_code, other.json()["field"]) == (422, "body")


async def many_values(head: bytes) -> AsyncIterator[bytes]:
    """Empty texts for 60 MB."""
    yield head
    for _ in range(1_000):
        yield b',""' * 20_000


async def test_the_bodies_of_a_user_that_are_read_have_a_limit_together(open_site: OpenSite) -> None:
    released = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b'{"name": "' + b"x" * 60_000
        await released.wait()
        yield b'"}'

    async with open_site(max_user_body_bytes=100_000) as site, site.client() as client:
        first = asyncio.create_task(client.post("/collections", content=slow(), headers=JSON))
        statuses = []
        for _ in range(100):
            answer = await client.post("/collections", json={"name": "x", "description": "y" * 60_000})
            statuses.append(answer.status_code)
            if answer.status_code == 429:
                break
        assert answer.json()["code"] == "too_many_body_bytes" and answer.headers["retry-after"] == "1"
        assert (await client.get("/me")).status_code == 200
        released.set()
        await first
        again = await client.post("/collections", json={"name": "z", "description": "y" * 60_000})
        assert again.json()["code"] != "too_many_body_bytes"


def test_a_server_stops_though_bodies_have_not_arrived(tmp_path: Path) -> None:
    """A body that trickles, and one that is parsed, hold nothing up."""
    head = b"POST /api/v1/collections HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    dense = b'{"name":"x","description":[' + b"[]," * 600_000 + b"[]]}"
    with Live(tmp_path, SETTINGS) as live:
        host, _, port = live.address.removeprefix("http://").partition(":")
        trickling = socket.create_connection((host, int(port)), timeout=30)
        trickling.sendall(head + b"Content-Length: 100000\r\n\r\n{")
        parsing = socket.create_connection((host, int(port)), timeout=30)
        parsing.sendall(head + f"Content-Length: {len(dense)}\r\n\r\n".encode() + dense)
        blocking_until(lambda: metric(live, "conspectus_requests_in_flight") >= 2)
        start = time.monotonic()
        live.stop()
    assert time.monotonic() - start < 9
    with closing(trickling), closing(parsing):
        assert trickling.recv(100).startswith(b"HTTP/1.1 503 ")


async def test_requests_without_a_key_take_turns_and_wait_for_no_slow_client() -> None:
    present, most, released = 0, 0, asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal present, most
        present += 1
        most = max(most, present)
        await (released.wait() if scope["path"] == "/slow" else asyncio.sleep(0))
        present -= 1

    async def unused(*_: Any) -> Any:
        raise AssertionError

    turns = AnonymousTurns(app, Precedence())
    scopes = [
        {"type": "http", "path": path} for path in ["/page"] * 20 + ["/slow"] * 3 + ["/page", "/healthz"]
    ]
    pages = [asyncio.create_task(turns(scope, unused, unused)) for scope in scopes[:20]]
    await asyncio.gather(*pages)
    assert most == 1
    slow = [asyncio.create_task(turns(scope, unused, unused)) for scope in scopes[20:23]]
    await asyncio.gather(*(turns(scope, unused, unused) for scope in scopes[23:]))
    assert present == 3
    released.set()
    await asyncio.gather(*slow)


async def test_requests_with_a_key_go_before_those_without_but_not_for_long() -> None:
    order, answered = list[str](), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["path"] == "/api/v1/search":
            await answered.wait()
        order.append(scope["path"])

    async def unused(*_: Any) -> Any:
        raise AssertionError

    turns = AnonymousTurns(app, Precedence())

    def start(path: str) -> asyncio.Task[None]:
        return asyncio.create_task(turns({"type": "http", "path": path}, unused, unused))

    search, page, probe = start("/api/v1/search"), start("/page"), start("/healthz")
    await probe
    await asyncio.sleep(0)
    assert order == ["/healthz"]
    answered.set()
    await asyncio.gather(search, page)
    assert order == ["/healthz", "/api/v1/search", "/page"]
    answered.clear()
    slow, *pages = start("/api/v1/search"), start("/page"), start("/page")
    pages[0].cancel()
    await asyncio.gather(*pages, return_exceptions=True)
    assert order[3:] == ["/page"]
    answered.set()
    await slow
