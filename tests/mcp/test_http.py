"""The same tools over streamable HTTP: a real server, the official client, and a key for each caller."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import httpx2
import pytest
from mcp.client.streamable_http import streamable_http_client
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, PROTOCOL_VERSION_META_KEY

from conspectus import bootstrap
from conspectus.mcp.tasks import TASKS
from conspectus.mcp.tool_list import TOOLS
from conspectus.model.access import SCOPES
from conspectus.model.records import NewDocument
from conspectus.testing.embedders import HashedEmbedder
from mcp import Client
from tests.mcp.conftest import SETTINGS, refused, remembered, said, told
from tests.web.conftest import Live

JSON = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}

OFFERING = replace(SETTINGS, mcp_operations="delete_collection,set_retention,start_retention")


@pytest.fixture
def keyless(tmp_path: Path) -> Iterator[Live]:
    with Live(tmp_path / "data", replace(OFFERING, max_request_bytes=100_000)) as live:
        yield live


@pytest.fixture
async def keys(tmp_path: Path) -> dict[str, str]:
    """A store with accounts, each with something of its own; and their keys."""
    async with bootstrap.open(tmp_path / "data", settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        made = await engine.people.create_owner()
        assert made is not None
        found = {"owner": made.secret}
        for name in ("ann", "bob"):
            await engine.people.create_user(name)
            found[name] = (await engine.people.create_key(name, scopes=SCOPES)).secret
            person = engine.as_person(await engine.people.authenticate(found[name]))
            text = f"{name} keeps the spare key in the {name} shed."
            await person.add([NewDocument(text, title=name)], collection="notes", wait=True)
        found["reads"] = (await engine.people.create_key("ann", scopes=("read",))).secret
        return found


@pytest.fixture
def live(keys: dict[str, str], tmp_path: Path) -> Iterator[Live]:
    with Live(tmp_path / "data", OFFERING) as opened:
        yield opened


@asynccontextmanager
async def client(live: Live, key: str | None = None, mode: Any = "auto") -> AsyncIterator[Client]:
    """The official client of a server."""
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        transport = streamable_http_client(f"{live.address}/mcp", http_client=http)
        async with Client(transport, mode=mode) as asked:
            yield asked


def post(live: Live, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
    """What a message gets that no client sent."""
    with httpx.Client(timeout=60) as http:
        return http.post(
            f"{live.address}/mcp", headers={**JSON, **(headers or {})}, **(body or {"json": LIST})
        )


async def test_without_accounts_the_machine_itself_is_the_owner(keyless: Live) -> None:
    for mode in ("auto", "legacy"):
        async with client(keyless, mode=mode) as asked:
            assert len((await asked.list_tools()).tools) == len(TOOLS)
            await remembered(asked, "The ferry leaves at noon.", user=mode)
            assert "noon" in await said(asked, "recall", query="ferry", user=mode)


async def test_each_key_sees_what_is_its_own(live: Live, keys: dict[str, str]) -> None:
    async with client(live, keys["ann"]) as ann, client(live, keys["bob"]) as bob:
        for asked, own, other in ((ann, "ann", "bob"), (bob, "bob", "ann")):
            await remembered(asked, f"{own} has a secret.", user="me")
            for tool in ("search", "context"):
                found = await said(asked, tool, query="where is the spare key in the shed")
                assert f"{own} shed" in found and f"{other} shed" not in found
            collections = (await told(asked, "list_collections"))["collections"]
            assert {each["name"].partition("/")[0] for each in collections} == {own}
        for asked, own, other in ((ann, "ann", "bob"), (bob, "bob", "ann")):
            found = await said(asked, "recall", query="secret", user="me")
            assert f"{own} has" in found and f"{other} has" not in found
        listed = await said(ann, "search", query="spare key")
        document = listed.partition("(document ")[2].partition(",")[0]
        assert (await refused(bob, "read_document", document=document)).startswith("not_found")


async def test_a_key_that_reads_writes_nothing(live: Live, keys: dict[str, str]) -> None:
    fact = {"subject": "a", "predicate": "b", "object": "c"}
    async with client(live, keys["ann"]) as ann, client(live, keys["reads"]) as asked:
        (memory,) = await remembered(ann, "Red.", user="me")
        assert "Red." in await said(asked, "recall", query="red", user="me")
        writes: dict[str, dict[str, Any]] = {
            "remember": {"memories": [{"text": "x"}], "user": "me"},
            "update_memory": {"memory": memory, "text": "x", "user": "me"},
            "forget": {"ids": [memory], "confirm": True, "user": "me"},
            "add_facts": {"facts": [fact], "collection": "notes"},
            "put_stream": {"name": "gate"},
            "delete_collection": {"collection": "notes"},
        }
        for tool, arguments in writes.items():
            assert (await refused(asked, tool, **arguments)).startswith("permission_denied: "), tool
        assert "Red." in await said(ann, "recall", query="red", user="me")


def test_without_a_valid_key_nothing_is_answered(live: Live, keys: dict[str, str]) -> None:
    for given in (None, "Bearer", "Bearer nonsense", "Basic YTpi", f"Bearer {keys['ann']}x"):
        answer = post(live, {} if given is None else {"Authorization": given})
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert answer.json()["code"] == "unauthenticated"


async def test_a_key_that_was_revoked_stops_at_once(live: Live, keys: dict[str, str], tmp_path: Path) -> None:
    async with client(live, keys["ann"]) as asked:
        await said(asked, "search", query="key")
        async with bootstrap.open(tmp_path / "data", settings=SETTINGS, embedder=HashedEmbedder()) as engine:
            for each in await engine.people.list_keys("ann"):
                await engine.people.revoke_key(each.id)
        with pytest.raises(Exception, match=r"(?i)unauthori|401|error"):
            await asked.call_tool("search", {"query": "key"})
    assert post(live, {"Authorization": f"Bearer {keys['ann']}"}).status_code == 401


def test_a_session_is_nothing_that_another_could_use(live: Live, keys: dict[str, str]) -> None:
    ann = post(live, {"Authorization": f"Bearer {keys['ann']}"})
    assert ann.status_code == 200 and "mcp-session-id" not in ann.headers
    for session in ("1", "f" * 32):
        found = post(
            live,
            {"Authorization": f"Bearer {keys['bob']}", "Mcp-Session-Id": session},
            json=_call("search", query="spare key in the shed"),
        ).text
        assert "bob shed" in found and "ann shed" not in found


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://["},
    ],
)
def test_a_web_page_cannot_have_a_browser_ask(keyless: Live, headers: dict[str, str]) -> None:
    assert post(keyless).status_code == 200
    assert post(keyless, headers).status_code == 403


def test_a_web_page_cannot_ask_with_a_key_either(live: Live, keys: dict[str, str]) -> None:
    key = {"Authorization": f"Bearer {keys['ann']}"}
    assert post(live, {**key, "Origin": "http://evil.example"}).status_code == 403
    assert post(live, {**key, "Origin": live.address}).status_code == 200


def test_what_is_no_message_is_refused(keyless: Live) -> None:
    assert post(keyless, content=b"x" * 200_000).status_code == 413
    assert post(keyless, content=iter([b"x" * 60_000] * 3)).status_code == 413
    for content in (b"", b"{", b"[]", b"[" * 5_000, b"null", b'{"jsonrpc":"2.0","id":1}', b"\xff"):
        answer = post(keyless, content=content)
        assert 400 <= answer.status_code < 500 and "Traceback" not in answer.text
    assert post(keyless, {"Content-Type": "text/plain"}).status_code == 400
    assert post(keyless, {"Accept": "text/html"}).status_code == 406
    with httpx.Client(timeout=60) as http:
        for method in ("GET", "DELETE", "PUT"):
            answer = http.request(method, f"{keyless.address}/mcp", headers=JSON)
            assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert post(keyless).status_code == 200


async def test_many_clients_at_once_keep_apart(live: Live, keys: dict[str, str]) -> None:
    async def work(name: str, number: int) -> None:
        async with client(live, keys[name]) as asked:
            user = f"u{number}"
            await remembered(asked, *(f"{name} {number} says {each}" for each in "abc"), user=user)
            history = await said(asked, "history", user=user)
            assert history.count(f": {name} {number} says ") == 3 == history.count(" says ")

    await asyncio.gather(*(work(name, number) for name in ("ann", "bob") for number in range(6)))


def _call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 7,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }


def rpc(live: Live, method: str, extensions: dict[str, Any], **params: Any) -> dict[str, Any]:
    """The answer to a message of 2026-07-28, whose client takes these extensions."""
    meta = {
        PROTOCOL_VERSION_META_KEY: "2026-07-28",
        CLIENT_CAPABILITIES_META_KEY: {"extensions": extensions},
        CLIENT_INFO_META_KEY: {"name": "test", "version": "1"},
    }
    named = params.pop("header", params.get("name") or params.get("taskId"))
    headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method, "Mcp-Name": named}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}
    answer: dict[str, Any] = post(live, headers, json=body).json()
    return answer


def started(live: Live, extensions: dict[str, Any]) -> dict[str, Any]:
    """The result of an operation that starts a job."""
    arguments = {"name": "start_retention", "arguments": {}}
    result: dict[str, Any] = rpc(live, "tools/call", extensions, name="operations", arguments=arguments)[
        "result"
    ]
    return result


def ended(live: Live, task: str) -> dict[str, Any]:
    """A task that has ended."""
    for _ in range(300):
        found: dict[str, Any] = rpc(live, "tasks/get", {TASKS: {}}, taskId=task)["result"]
        if found["status"] != "working":
            return found
        time.sleep(0.1)
    raise AssertionError(found)


async def test_long_work_is_a_task_for_a_client_that_takes_tasks(keyless: Live) -> None:
    async with client(keyless) as asked:
        await remembered(asked, "The ferry leaves at noon.", user="ann")
        await said(asked, "set_retention", user="ann", max_count=9)
        assert json.loads(await said(asked, "start_retention"))["kind"] == "retention"
    assert started(keyless, {})["resultType"] == "complete"
    made = started(keyless, {TASKS: {}})
    assert (made["resultType"], made["ttlMs"], "result" in made) == ("task", None, False)
    task = ended(keyless, made["taskId"])
    assert (task["status"], task["resultType"]) == ("completed", "complete")
    assert json.loads(task["result"]["content"][0]["text"])["state"] == "succeeded"
    for method in ("tasks/cancel", "tasks/update"):
        given = {"inputResponses": {}} if method == "tasks/update" else {}
        answer = rpc(keyless, method, {TASKS: {}}, taskId=made["taskId"], **given)["result"]
        assert answer.keys() == {"resultType", "_meta"}


def test_a_task_is_refused_to_others(keyless: Live) -> None:
    found = rpc(keyless, "tasks/get", {}, taskId="x")["error"]
    assert found["code"] == -32021
    assert found["data"] == {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    assert rpc(keyless, "tasks/get", {TASKS: {}}, taskId="x", header="y")["error"]["code"] == -32020
    assert rpc(keyless, "tasks/get", {TASKS: {}}, taskId="x")["error"]["code"] == -32602
    assert rpc(keyless, "tasks/list", {TASKS: {}}, header="")["error"]["code"] == -32601
