"""Webhooks sent to a local server: their content, delivery and forbidden addresses."""

import hashlib
import hmac
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from tests.network import Directory, certificates
from tests.support.web_server import Answer, ScriptedServer, redirect

from conspectus.errors import FetchFailed, ForbiddenAddress, InvalidInput
from conspectus.sources.web.address_policy import AddressPolicy
from conspectus.sources.web.webhook_poster import WebhookPoster

BODY = '{"text": "ü 🔥"}'.encode()
LOCAL = AddressPolicy.from_entries(["127.0.0.1"])


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer({"/hook": Answer(b"thanks")}) as running:
        yield running


@pytest.fixture
async def poster() -> AsyncIterator[WebhookPoster]:
    webhook_poster = WebhookPoster(LOCAL, key="sëcret", seconds=20)
    yield webhook_poster
    await webhook_poster.close()


async def post_refused(poster: WebhookPoster, url: str) -> FetchFailed:
    with pytest.raises(FetchFailed) as caught:
        await poster.post(url, BODY, id="a-1")
    return caught.value


async def test_the_body_comes_with_its_id_and_signature(
    server: ScriptedServer, poster: WebhookPoster
) -> None:
    await poster.post(f"{server.base}/hook?token=1", BODY, id="a-7")
    [request] = server.requests
    assert (request.method, request.target, request.body) == ("POST", "/hook?token=1", BODY)
    assert request.headers["content-type"] == "application/json"
    assert request.headers["conspectus-id"] == "a-7"
    expected = hmac.new("sëcret".encode(), BODY, hashlib.sha256).hexdigest()
    assert request.headers["conspectus-signature"] == f"sha256={expected}"


async def test_without_a_key_there_is_no_signature(server: ScriptedServer) -> None:
    poster = WebhookPoster(LOCAL)
    await poster.post(f"{server.base}/hook", BODY, id="a-1")
    await poster.close()
    assert "conspectus-signature" not in server.requests[0].headers


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_a_success_is_one(server: ScriptedServer, poster: WebhookPoster, status: int) -> None:
    server.answers["/hook"] = Answer(b"", status, type=None)
    await poster.post(f"{server.base}/hook", BODY, id="a-1")
    assert server.count("/hook") == 1


@pytest.mark.parametrize(
    ("status", "passing"),
    [(400, False), (401, False), (404, False), (410, False), (304, False), (408, True), (425, True),
     (429, True), (500, True), (503, True), (599, True)],
)  # fmt: skip
async def test_what_is_refused_for_good_and_what_may_pass(
    server: ScriptedServer, poster: WebhookPoster, status: int, passing: bool
) -> None:
    server.answers["/hook"] = Answer(b"", status, type=None)
    fault = await post_refused(poster, f"{server.base}/hook?token=hidden")
    assert (fault.status, fault.passing) == (status, passing)
    assert "hidden" not in str(fault) and "hook" not in str(fault)


async def test_redirects_are_not_followed(server: ScriptedServer, poster: WebhookPoster) -> None:
    server.answers |= {"/hook": redirect("/other", 307), "/other": Answer(b"")}
    assert not (await post_refused(poster, f"{server.base}/hook")).passing
    assert server.count("/other") == 0


async def test_an_endless_answer_is_not_read(server: ScriptedServer, poster: WebhookPoster) -> None:
    server.answers["/hook"] = Answer(b"x" * 100_000, endless=True)
    await poster.post(f"{server.base}/hook", BODY, id="a-1")
    assert server.count("/hook") == 1


async def test_nobody_there_and_a_slow_one_may_pass(server: ScriptedServer) -> None:
    server.answers["/slow"] = Answer(b"", delay=60)
    hasty = WebhookPoster(LOCAL, seconds=0.2)
    slow = await post_refused(hasty, f"{server.base}/slow")
    nobody = await post_refused(hasty, "http://127.0.0.1:9/hook")
    await hasty.close()
    assert slow.passing and "0.2 s" in str(slow)
    assert nobody.passing


@pytest.mark.parametrize(
    "url",
    ["http://127.0.0.1/x", "http://localhost/x", "http://[::1]/", "http://169.254.169.254/latest", "http://10.0.0.8/",
     "http://printer.local/", "http://0x7f000001/", "http://[::ffff:127.0.0.1]/"],
)  # fmt: skip
async def test_addresses_inside_are_refused_before_and_at_sending(url: str) -> None:
    strict = WebhookPoster(AddressPolicy())
    with pytest.raises(ForbiddenAddress):
        strict.check(url)
    assert not (await post_refused(strict, url)).passing
    await strict.close()


@pytest.mark.parametrize(
    "url", ["", "ftp://example.com/", "example.com/hook", "http://a:b@example.com/", "http://"]
)
def test_what_is_no_address(poster: WebhookPoster, url: str) -> None:
    with pytest.raises(InvalidInput):
        poster.check(url)


@pytest.mark.parametrize("addresses", [["127.0.0.1"], ["93.184.216.34", "10.0.0.1"], ["::1"]])
async def test_a_name_that_leads_inside_is_refused_at_sending(addresses: Sequence[str]) -> None:
    names = Directory({"hooks.example.org": addresses})
    strict = WebhookPoster(AddressPolicy(), resolve=names)
    strict.check("http://hooks.example.org/x")
    fault = await post_refused(strict, "http://hooks.example.org/x")
    await strict.close()
    assert isinstance(fault, ForbiddenAddress)


async def test_a_certificate_for_another_name_is_refused_for_good(tmp_path: Path) -> None:
    theirs, ours = certificates("right.example.org", tmp_path)
    names = Directory({}, usual="127.0.0.1")
    allowed = AddressPolicy.from_entries(["127.0.0.1", "right.example.org", "wrong.example.org"])
    poster = WebhookPoster(allowed, resolve=names, certificates=ours)
    async with ScriptedServer({"/": Answer(b"")}, tls=theirs) as server:
        await poster.post(f"https://right.example.org:{server.port}/", BODY, id="a-1")
        fault = await post_refused(poster, f"https://wrong.example.org:{server.port}/")
    await poster.close()
    assert not fault.passing and "certificate" in str(fault)
    assert len(server.requests) == 1
