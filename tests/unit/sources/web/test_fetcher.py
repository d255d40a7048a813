"""The fetcher on a local server: responses, limits, redirects and forbidden addresses."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpcore
import pytest
from tests.network import DeadNetwork, Directory, certificates
from tests.support.web_server import Answer, Request, ScriptedServer, compressed, gzip_bomb, redirect

from conspectus.errors import FetchFailed, ForbiddenAddress, InvalidInput, TooLarge
from conspectus.sources.web.fetcher import WebFetcher
from conspectus.sources.web.http_client import FetchLimits

LOCAL = ("127.0.0.1",)
SECRET = {"Authorization": "Bearer secret", "X-Token": "secret"}


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer() as running:
        yield running


@pytest.fixture
async def fetcher() -> AsyncIterator[WebFetcher]:
    names = Directory({"one.org": LOCAL, "two.org": LOCAL, "inside.org": ["127.0.0.2"]})
    limits = FetchLimits(max_bytes=100_000, max_redirects=3, seconds=20, allow=LOCAL)
    web = WebFetcher(limits, resolve=names)
    yield web
    await web.close()


async def test_an_answer_comes_with_its_facts(server: ScriptedServer, fetcher: WebFetcher) -> None:
    cookies = {"Set-Cookie": "id=1", "ETag": '"7"'}
    server.answers["/a"] = Answer(b"gr\xfc\xdfe", type='Text/HTML; charset="ISO-8859-1"', headers=cookies)
    answer = await fetcher.fetch(f"{server.base}/a?b=c#d")
    assert (answer.url, answer.status, answer.body) == (f"{server.base}/a?b=c", 200, b"gr\xfc\xdfe")
    assert (answer.content_type, answer.charset) == ("text/html", "iso-8859-1")
    assert answer.headers["etag"] == '"7"' and "set-cookie" not in answer.headers
    again = await fetcher.fetch(f"{server.base}/a")
    assert again.body == answer.body and "cookie" not in server.requests[1].headers


async def test_any_status_is_an_answer(server: ScriptedServer, fetcher: WebFetcher) -> None:
    for status in (204, 304, 404, 418, 500, 599, 302):
        server.answers["/"] = Answer(b"" if status in {204, 304} else b"x", status, type=None)
        answer = await fetcher.fetch(server.base)
        assert (answer.status, answer.content_type, answer.charset) == (status, "", None)


async def test_a_body_goes_to_its_own_origin_alone(server: ScriptedServer, fetcher: WebFetcher) -> None:
    async with ScriptedServer({"/c": Answer()}) as other:
        server.answers |= {"/a": redirect("/b", 307), "/b": redirect(f"{other.base}/c", 307)}
        await fetcher.fetch(f"{server.base}/a", method="POST", body=b"code=secret")
        assert [request.body for request in server.requests] == [b"code=secret", b"code=secret"]
        assert [(request.method, request.body) for request in other.requests] == [("POST", b"")]


@pytest.mark.parametrize("method", ["get", "POST", "Put", "patch", "DELETE", "head", "options"])
async def test_methods(server: ScriptedServer, fetcher: WebFetcher, method: str) -> None:
    server.answers["/"] = Answer(b"body")
    answer = await fetcher.fetch(server.base, method=method, headers=SECRET)
    assert answer.body == (b"" if method == "head" else b"body")
    assert (server.requests[0].method, server.requests[0].headers["x-token"]) == (method.upper(), "secret")


@pytest.mark.parametrize("method", ["MKCOL", "CONNECT", "TRACE", "", "GET\r\nX: y", "gét"])
async def test_other_methods_are_refused(server: ScriptedServer, fetcher: WebFetcher, method: str) -> None:
    with pytest.raises(InvalidInput, match="method"):
        await fetcher.fetch(server.base, method=method)
    assert server.count() == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *[
            ("X", "secret\r\nY: z"),
            ("X", "secret\n"),
            ("X", "secret\0"),
            ("X", "secret\u2028"),
            ("X", "secret €"),
        ],
        *[("X Y", ""), ("", ""), ("X:", ""), ("X\r\n", ""), ("ü", ""), ("Host", "secret"), ("hOST", "")],
        *[("Content-Length", "5"), ("Transfer-Encoding", "chunked"), ("Connection", ""), ("Upgrade", "h2c")],
    ],
)
async def test_headers_cannot_break_a_request(
    server: ScriptedServer, fetcher: WebFetcher, name: str, value: str
) -> None:
    with pytest.raises(InvalidInput, match="headers") as caught:
        await fetcher.fetch(server.base, headers={name: value})
    assert server.count() == 0 and "secret" not in str(caught.value)


async def test_a_name_and_password_in_the_address_are_refused(
    server: ScriptedServer, fetcher: WebFetcher
) -> None:
    with pytest.raises(InvalidInput) as caught:
        await fetcher.fetch(server.base.replace("//", "//me:secret@"))
    assert server.count() == 0 and "secret" not in str(caught.value)


async def test_redirects_are_followed_within_limits(server: ScriptedServer, fetcher: WebFetcher) -> None:
    server.answers |= {"/0": redirect("1"), "/1": redirect("/2?x"), "/2": redirect(f"{server.base}/3#part")}
    server.answers |= {"/3": Answer(b"there"), "/loop": redirect("/loop?secret"), "/-1": redirect("/0")}
    answer = await fetcher.fetch(f"{server.base}/0")
    assert (answer.url, answer.body) == (f"{server.base}/3", b"there")
    for path in ("/loop", "/-1"):
        with pytest.raises(FetchFailed, match="more than 3 redirects") as caught:
            await fetcher.fetch(server.base + path)
        assert not caught.value.passing and "secret" not in str(caught.value)
    assert server.count("/loop") == 4


@pytest.mark.parametrize(
    ("status", "method", "after"),
    [
        *[(301, "POST", "GET"), (302, "POST", "GET"), (303, "POST", "GET"), (303, "PUT", "GET")],
        *[(307, "POST", "POST"), (308, "PUT", "PUT"), (302, "DELETE", "DELETE"), (303, "HEAD", "HEAD")],
    ],
)
async def test_redirects_change_the_method(
    server: ScriptedServer, fetcher: WebFetcher, status: int, method: str, after: str
) -> None:
    server.answers |= {"/a": redirect("/b", status), "/b": Answer()}
    await fetcher.fetch(f"{server.base}/a", method=method)
    assert [request.method for request in server.requests] == [method, after]


async def test_headers_never_leave_their_origin(server: ScriptedServer, fetcher: WebFetcher) -> None:
    one, two = (f"http://{name}.org:{server.port}" for name in ("one", "two"))
    server.answers |= {
        "/a": redirect("/b"),
        "/b": redirect(f"{two}/c"),
        "/c": redirect(f"{one}/d"),
        "/d": Answer(),
    }
    answer = await fetcher.fetch(f"{one}/a", headers=SECRET)
    assert answer.url == f"{one}/d"
    assert [request.headers.get("x-token") for request in server.requests] == ["secret", "secret", None, None]
    assert [request.headers.get("authorization") for request in server.requests][2:] == [None, None]
    assert server.requests[2].headers["host"] == f"two.org:{server.port}"


@pytest.mark.parametrize(
    "address", ["ftp://x/", "file:///etc/passwd", "http://me:secret@one.org/", "http://[::1", "http://a b/"]
)
async def test_redirects_to_what_is_no_address_fail(
    server: ScriptedServer, fetcher: WebFetcher, address: str
) -> None:
    server.answers["/"] = redirect(address)
    with pytest.raises(FetchFailed) as caught:
        await fetcher.fetch(server.base)
    assert (caught.value.status, caught.value.passing) == (302, False)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.2/",
        "http://2130706434/",
        "http://[::1]/",
        "http://inside.org/",
        "//169.254.169.254/x",
        "http://[::ffff:7f00:2]/",
    ],
)
async def test_redirects_inside_are_forbidden(
    server: ScriptedServer, fetcher: WebFetcher, address: str
) -> None:
    server.answers["/"] = redirect(f"{address}?secret=secret")
    with pytest.raises(ForbiddenAddress) as caught:
        await fetcher.fetch(server.base)
    assert not caught.value.passing and "secret" not in str(caught.value)


async def test_allowed_addresses_are_allowed_in_every_spelling(
    server: ScriptedServer, fetcher: WebFetcher
) -> None:
    server.answers["/"] = Answer(b"hello")
    for host in ("127.1", "0x7f000001", "[::ffff:127.0.0.1]", "one.org"):
        assert (await fetcher.fetch(f"http://{host}:{server.port}")).body == b"hello"


async def test_a_name_may_not_change_to_an_address_inside(server: ScriptedServer) -> None:
    server.answers |= {"/": redirect("/again"), "/again": Answer(b"never")}
    network = DeadNetwork(alive=["93.184.216.34"])
    names = Directory({"a.org": [["93.184.216.34"], ["127.0.0.1"]]})
    web = WebFetcher(FetchLimits(), resolve=names, backend=network)
    with pytest.raises(ForbiddenAddress):
        await web.fetch(f"http://a.org:{server.port}/")
    await web.close()
    assert (network.tried, server.count(), server.count("/again")) == (["93.184.216.34"], 1, 0)


@pytest.mark.parametrize(
    "answer",
    [
        Answer(b"x" * 100_001),
        Answer(b"x" * 1_000, endless=True),
        Answer(b"x", headers={"Content-Length": "99999999999"}),
        gzip_bomb(200_000_000),
        compressed(bytes(100_001), "deflate"),
        Answer(gzip_bomb(90_000_000).body, 500, headers={"Content-Encoding": "gzip"}),
    ],
    ids=["plain", "endless", "announced", "bomb", "deflate", "error page"],
)
async def test_too_much_is_refused(server: ScriptedServer, fetcher: WebFetcher, answer: Answer) -> None:
    server.answers |= {"/": answer, "/fine": Answer(b"x" * 100_000)}
    with pytest.raises(TooLarge) as caught:
        await fetcher.fetch(server.base)
    assert caught.value.limit == 100_000
    assert len((await fetcher.fetch(f"{server.base}/fine")).body) == 100_000


async def test_compressed_answers_are_unpacked(server: ScriptedServer, fetcher: WebFetcher) -> None:
    server.answers |= {
        "/g": compressed(b"one " * 9),
        "/d": compressed(b"two", "deflate"),
        "/e": Answer(headers={"Content-Encoding": "gzip"}),
    }
    assert [(await fetcher.fetch(server.base + path)).body for path in ("/g", "/d", "/e")] == [
        b"one " * 9,
        b"two",
        b"",
    ]
    assert server.requests[0].headers["accept-encoding"] == "gzip, deflate"


@pytest.mark.parametrize(
    ("answer", "passing"),
    [
        (Answer(b"x" * 500, broken=True), True),
        (Answer(b"", headers={"Content-Length": "5"}), True),
        (Answer(compressed(b"x" * 500).body[:-3], headers={"Content-Encoding": "gzip"}), True),
        (Answer(b"x", headers={"Content-Encoding": "br"}), False),
        (Answer(b"no gzip", headers={"Content-Encoding": "gzip"}), False),
        (Answer(b"x", headers={"Transfer-Encoding": "chunked"}), True),
        (Answer(b"x", headers={"X": "y" * 200_000}), True),
    ],
    ids=["broken", "short", "cut", "coding", "damaged", "chunks", "head"],
)
async def test_half_answers_are_failures(
    server: ScriptedServer, fetcher: WebFetcher, answer: Answer, passing: bool
) -> None:
    server.answers["/"] = answer
    with pytest.raises(FetchFailed) as caught:
        await fetcher.fetch(f"{server.base}/?secret")
    assert caught.value.passing is passing and "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [Answer(b"x", delay=60), Answer(b"xxx", piece=1, pause=0.05, endless=True)],
    ids=["late", "drip"],
)
async def test_slow_answers_are_given_up(server: ScriptedServer, answer: Answer) -> None:
    server.answers["/"] = answer
    web = WebFetcher(FetchLimits(seconds=0.3, allow=LOCAL))
    with pytest.raises(FetchFailed, match=r"within 0\.3 s") as caught:
        await web.fetch(f"{server.base}/?secret")
    assert caught.value.passing and "secret" not in str(caught.value)
    await web.close()


async def test_slow_redirects_share_one_deadline(server: ScriptedServer) -> None:
    server.answers["/"] = Answer(status=302, headers={"Location": "/"}, delay=0.2)
    web = WebFetcher(FetchLimits(max_redirects=1_000, seconds=0.5, allow=LOCAL))
    with pytest.raises(FetchFailed, match="no complete response"):
        await web.fetch(server.base)
    await web.close()
    assert server.count() <= 3


async def test_no_connection_and_no_name_may_pass() -> None:
    web = WebFetcher(FetchLimits(), resolve=Directory({"a.org": ["8.8.8.8"]}), backend=DeadNetwork())
    for url, reason in (("http://a.org/", "no connection"), ("http://b.org/", "could not be resolved")):
        with pytest.raises(FetchFailed, match=reason) as caught:
            await web.fetch(url)
        assert caught.value.passing and not isinstance(caught.value, ForbiddenAddress)
    await web.close()


async def test_certificates_are_for_the_name(tmp_path: Path) -> None:
    theirs, ours = certificates("one.org", tmp_path)
    names = Directory({"one.org": LOCAL, "two.org": LOCAL})
    requested_names: list[str | None] = []
    theirs.sni_callback = lambda _socket, name, _context: requested_names.append(name)
    async with ScriptedServer({"/": Answer(b"private")}, tls=theirs) as server:
        web = WebFetcher(FetchLimits(allow=LOCAL), resolve=names, certificates=ours)
        assert (await web.fetch(f"https://one.org:{server.port}/")).body == b"private"
        with pytest.raises(FetchFailed, match="certificate") as caught:
            await web.fetch(f"https://two.org:{server.port}/")
        await web.close()
        assert (requested_names, server.count(), caught.value.passing) == (["one.org", "two.org"], 1, False)


async def test_the_environment_sets_no_proxy(server: ScriptedServer, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, server.base)
    network = DeadNetwork()
    web = WebFetcher(FetchLimits(), resolve=Directory({"a.org": ["8.8.8.8"]}), backend=network)
    with pytest.raises(FetchFailed):
        await web.fetch("http://a.org/")
    await web.close()
    assert (network.tried, server.count()) == (["8.8.8.8"], 0)


async def test_many_at_once_each_get_their_own(server: ScriptedServer, fetcher: WebFetcher) -> None:
    server.answers["/"] = lambda request: Answer(request.query["n"].encode())
    answers = await asyncio.gather(*(fetcher.fetch(f"{server.base}/?n={n}") for n in range(150)))
    assert [int(answer.body) for answer in answers] == list(range(150))


async def test_a_cancelled_request_leaves_the_rest_alone(server: ScriptedServer, fetcher: WebFetcher) -> None:
    here = asyncio.Semaphore(0)

    def slow_answer(_request: Request) -> Answer:
        here.release()
        return Answer(delay=60)

    server.answers |= {"/slow": slow_answer, "/": Answer(b"fine")}
    slow = [asyncio.ensure_future(fetcher.fetch(f"{server.base}/slow")) for _ in range(100)]
    for _ in slow:
        await here.acquire()
    for task in slow:
        task.cancel()
    assert {type(error) for error in await asyncio.gather(*slow, return_exceptions=True)} == {
        asyncio.CancelledError
    }
    assert (await fetcher.fetch(server.base)).body == b"fine"


async def test_no_error_of_the_transport_comes_through(fetcher: WebFetcher) -> None:
    async def rude(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(replies.pop())
        writer.close()

    replies = [
        b"",
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    ]
    replies += [
        b"\0" * 1_000_000,
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n bad\r\n\r\n",
    ]
    listening = await asyncio.start_server(rude, "127.0.0.1", 0)
    base = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    while replies:
        with pytest.raises(FetchFailed) as caught:
            await fetcher.fetch(base)
        assert isinstance(caught.value.__cause__, httpcore.ProtocolError | httpcore.NetworkError)
    listening.close()
    await listening.wait_closed()
