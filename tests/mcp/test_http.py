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
from conspectus.mcp.tasks import TASKS_EXTENSION
from conspectus.mcp.tool_list import TOOLS
from conspectus.model.access import SCOPES
from conspectus.model.records import NewDocument
from conspectus.testing.embedders import HashedEmbedder
from mcp import Client
from tests.mcp.conftest import SETTINGS, answer_data, answer_text, refused, remember_texts
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
        owner = await engine.keys.create_first()
        assert owner is not None
        secrets = {"owner": owner.secret}
        for name in ("ann", "bob"):
            await engine.people.create_user(name)
            secrets[name] = (await engine.keys.create(name, scopes=SCOPES)).secret
            person = engine.as_person(await engine.keys.authenticate(secrets[name]))
            text = f"{name} keeps the spare key in the {name} shed."
            await person.add([NewDocument(text, title=name)], collection="notes", wait=True)
        secrets["reads"] = (await engine.keys.create("ann", scopes=("read",))).secret
        return secrets


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
        async with Client(transport, mode=mode) as session:
            yield session


def post(live: Live, headers: dict[str, str] | None = None, **body: Any) -> httpx.Response:
    """What a message gets that no client sent."""
    with httpx.Client(timeout=60) as http:
        return http.post(
            f"{live.address}/mcp", headers={**JSON, **(headers or {})}, **(body or {"json": LIST})
        )


async def test_without_accounts_the_machine_itself_is_the_owner(keyless: Live) -> None:
    for mode in ("auto", "legacy"):
        async with client(keyless, mode=mode) as session:
            assert len((await session.list_tools()).tools) == len(TOOLS)
            await remember_texts(session, "The ferry leaves at noon.", user=mode)
            assert "noon" in await answer_text(session, "recall", query="ferry", user=mode)


async def test_each_key_sees_what_is_its_own(live: Live, keys: dict[str, str]) -> None:
    async with client(live, keys["ann"]) as ann, client(live, keys["bob"]) as bob:
        for session, name, other in ((ann, "ann", "bob"), (bob, "bob", "ann")):
            await remember_texts(session, f"{name} has a secret.", user="me")
            for tool in ("search", "context"):
                answer = await answer_text(session, tool, query="where is the spare key in the shed")
                assert f"{name} shed" in answer and f"{other} shed" not in answer
            collections = (await answer_data(session, "list_collections"))["collections"]
            assert {collection["name"].partition("/")[0] for collection in collections} == {name}
        for session, name, other in ((ann, "ann", "bob"), (bob, "bob", "ann")):
            answer = await answer_text(session, "recall", query="secret", user="me")
            assert f"{name} has" in answer and f"{other} has" not in answer
        listed = await answer_text(ann, "search", query="spare key")
        document = listed.partition("(document ")[2].partition(",")[0]
        assert (await refused(bob, "read_document", document=document)).startswith("not_found")


async def test_a_key_that_reads_writes_nothing(live: Live, keys: dict[str, str]) -> None:
    fact = {"subject": "a", "predicate": "b", "object": "c"}
    async with client(live, keys["ann"]) as ann, client(live, keys["reads"]) as session:
        (memory,) = await remember_texts(ann, "Red.", user="me")
        assert "Red." in await answer_text(session, "recall", query="red", user="me")
        writes: dict[str, dict[str, Any]] = {
            "remember": {"memories": [{"text": "x"}], "user": "me"},
            "update_memory": {"memory": memory, "text": "x", "user": "me"},
            "forget": {"ids": [memory], "confirm": True, "user": "me"},
            "add_facts": {"facts": [fact], "collection": "notes"},
            "put_stream": {"name": "gate"},
            "delete_collection": {"collection": "notes"},
        }
        for tool, arguments in writes.items():
            assert (await refused(session, tool, **arguments)).startswith("permission_denied: "), tool
        assert "Red." in await answer_text(ann, "recall", query="red", user="me")


def test_without_a_valid_key_nothing_is_answered(live: Live, keys: dict[str, str]) -> None:
    for header in (None, "Bearer", "Bearer nonsense", "Basic YTpi", f"Bearer {keys['ann']}x"):
        answer = post(live, {} if header is None else {"Authorization": header})
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert answer.json()["code"] == "unauthenticated"


async def test_a_key_that_was_revoked_stops_at_once(live: Live, keys: dict[str, str], tmp_path: Path) -> None:
    async with client(live, keys["ann"]) as session:
        await answer_text(session, "search", query="key")
        async with bootstrap.open(tmp_path / "data", settings=SETTINGS, embedder=HashedEmbedder()) as engine:
            for key in await engine.keys.list("ann"):
                await engine.keys.revoke(key.id)
        with pytest.raises(Exception, match=r"(?i)unauthori|401|error"):
            await session.call_tool("search", {"query": "key"})
    assert post(live, {"Authorization": f"Bearer {keys['ann']}"}).status_code == 401


def test_a_session_is_nothing_that_another_could_use(live: Live, keys: dict[str, str]) -> None:
    ann = post(live, {"Authorization": f"Bearer {keys['ann']}"})
    assert ann.status_code == 200 and "mcp-session-id" not in ann.headers
    for session in ("1", "f" * 32):
        response = post(
            live,
            {"Authorization": f"Bearer {keys['bob']}", "Mcp-Session-Id": session},
            json=_call("search", query="spare key in the shed"),
        ).text
        assert "bob shed" in response and "ann shed" not in response


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
        async with client(live, keys[name]) as session:
            user = f"u{number}"
            await remember_texts(session, *(f"{name} {number} says {letter}" for letter in "abc"), user=user)
            history = await answer_text(session, "history", user=user)
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
        task_result: dict[str, Any] = rpc(live, "tasks/get", {TASKS_EXTENSION: {}}, taskId=task)["result"]
        if task_result["status"] != "working":
            return task_result
        time.sleep(0.1)
    raise AssertionError(task_result)


async def test_long_work_is_a_task_for_a_client_that_takes_tasks(keyless: Live) -> None:
    async with client(keyless) as session:
        await remember_texts(session, "The ferry leaves at noon.", user="ann")
        await answer_text(session, "set_retention", user="ann", max_count=9)
        assert json.loads(await answer_text(session, "start_retention"))["kind"] == "retention"
    assert started(keyless, {})["resultType"] == "complete"
    job = started(keyless, {TASKS_EXTENSION: {}})
    assert (job["resultType"], job["ttlMs"], "result" in job) == ("task", None, False)
    task = ended(keyless, job["taskId"])
    assert (task["status"], task["resultType"]) == ("completed", "complete")
    assert json.loads(task["result"]["content"][0]["text"])["state"] == "succeeded"
    for method in ("tasks/cancel", "tasks/update"):
        inputs = {"inputResponses": {}} if method == "tasks/update" else {}
        answer = rpc(keyless, method, {TASKS_EXTENSION: {}}, taskId=job["taskId"], **inputs)["result"]
        assert answer.keys() == {"resultType", "_meta"}


def test_a_task_is_refused_to_others(keyless: Live) -> None:
    error = rpc(keyless, "tasks/get", {}, taskId="x")["error"]
    assert error["code"] == -32021
    assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    assert rpc(keyless, "tasks/get", {TASKS_EXTENSION: {}}, taskId="x", header="y")["error"]["code"] == -32020
    assert rpc(keyless, "tasks/get", {TASKS_EXTENSION: {}}, taskId="x")["error"]["code"] == -32602
    assert rpc(keyless, "tasks/list", {TASKS_EXTENSION: {}}, header="")["error"]["code"] == -32601
