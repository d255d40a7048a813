"""Channels over HTTP: bounds, who may do what, what is handed in, and what is sent twice."""

import io
import json
import zipfile
from typing import Any

import httpx
import pytest

from tests.chat_exports import encoded, said, slack
from tests.web.conftest import OpenSite, People

TALK = [
    {"text": "the deploy failed at noon", "key": "1", "author": "ann", "at": "2026-03-02T12:00:00Z"},
    {"text": "which one", "key": "2", "author": "bo", "at": 1772452860.5, "reply_to": "1"},
    {
        "text": "the deploy of the web",
        "key": "3",
        "author": "ann",
        "at": "2026-03-02T12:03:00Z",
        "reply_to": "2",
    },
]
NAMES = [
    "../../etc/passwd",
    "C:\\x.jsonl",
    "a/b/c",
    "..",
    ".",
    "",
    "x" * 300,
    "\u65e5\u672c.txt",
    "a\tb",
    "%2e%2e",
]
ODD = ["a/b", "..", "#?&=%2F", "\u65e5\u672c", "x" * 200, " a b ", "\u202eabc"]


async def post(
    api: httpx.AsyncClient, channel: str, *messages: dict[str, Any], **more: Any
) -> httpx.Response:
    return await api.post(
        "/messages", json={"channel": channel, "messages": messages, **more.pop("body", {})}, **more
    )


async def ask(api: httpx.AsyncClient, channel: str, **more: Any) -> httpx.Response:
    return await api.post(
        "/messages/context", json={"query": "deploy", "channel": channel, "min_similarity": 0.0, **more}
    )


def build_archive(files: dict[str, object], **written: Any) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", **written) as file:
        for name, content in files.items():
            file.writestr(name, encoded(content))
    return buffer.getvalue()


async def upload_archive(
    api: httpx.AsyncClient, content: bytes, name: str = "export.zip", **form: str
) -> httpx.Response:
    return await api.post("/messages/import", files={"file": (name, content)}, data=form)


def message_keys(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    body = answer.json()
    messages = body if isinstance(body, list) else body["messages"]
    return [message.get("document", message)["key"] for message in messages]


async def test_a_conversation_from_the_first_message_to_the_last(api: httpx.AsyncClient) -> None:
    assert [written["outcome"] for written in (await post(api, "here", *TALK)).json()] == ["added"] * 3
    assert message_keys(await api.get("/messages?channel=here")) == ["1", "2", "3"]
    third = (await api.get("/documents/by-key?source=here&key=3")).json()
    chain = await api.get(f"/documents/{third['id']}/thread?limit=2")
    assert (message_keys(chain), chain.json()["left_out"]) == (["1", "3"], 1)
    window = (await ask(api, "here")).json()
    assert (window["channels"], window["tokens"]) == (["here"], window["window"]["tokens"])
    [edited] = (await post(api, "here", {"text": "never mind", "key": "3"})).json()
    assert (edited["outcome"], edited["id"]) == ("replaced", third["id"])
    assert (await api.delete("/documents/by-key?source=here&key=1")).json()["documents"] == 1
    assert (await api.delete("/documents/by-key?source=here&key=1")).status_code == 404
    assert message_keys(await api.get("/messages?channel=here")) == ["2", "3"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": [{"text": "x"}]},
        {"channel": "", "messages": []},
        {"channel": "x" * 1_001, "messages": []},
        {"channel": "here", "messages": [{}]},
        {"channel": "here", "messages": [{"text": None}]},
        {"channel": "here", "messages": [{"text": "x", "at": "noon"}]},
        {"channel": "here", "messages": [{"text": "x", "at": 1e300}]},
        {"channel": "here", "messages": [{"text": "x", "sequence": 2**63}]},
        {"channel": "here", "messages": [{"text": "x", "metadata": None}]},
        {"channel": "here", "messages": [{"text": "x", "metadata": {"a": "y" * 70_000}}]},
        {"channel": "here", "messages": [{"text": "x", "said": "y"}]},
        {"channel": "here", "messages": [{"text": "x"}] * 10_001},
        {"channel": "here\ud800", "messages": [{"text": "x"}]},
    ],
)
async def test_what_is_no_message(api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    refused = await api.post(
        "/messages", content=json.dumps(body), headers={"Content-Type": "application/json"}
    )
    assert refused.status_code in {413, 422}, refused.text
    there = await api.get("/messages?channel=here")
    assert (there.status_code, there.json()) == (200, []) or there.status_code == 404


@pytest.mark.parametrize(
    "query",
    [
        "/messages",
        "/messages?channel=",
        "/messages?channel=here&limit=0",
        "/messages?channel=here&limit=1001",
        "/documents/by-key?source=here",
        "/documents/by-key?key=1",
        "/documents/x/thread?limit=0",
        "/documents/x/thread?limit=1001",
    ],
)
async def test_what_is_no_question_for_messages(api: httpx.AsyncClient, query: str) -> None:
    await post(api, "here", *TALK)
    assert (await api.get(query)).status_code == 422


@pytest.mark.parametrize(
    "more",
    [
        {"max_tokens": -1},
        {"max_tokens": {"max_tokens": 10, "tokenizer": "none"}},
        {"min_similarity": 2},
        {"thread_messages": -1},
        {"thread_messages": 1_001},
        {"profile": "none"},
        {"at": "2026-03-02T12:00:00"},
        {"query": "x" * 10_001},
        {"related": "maybe"},
        {"unknown": 1},
    ],
)
async def test_what_is_no_question_in_a_channel(api: httpx.AsyncClient, more: dict[str, Any]) -> None:
    await post(api, "here", *TALK)
    refused = await ask(api, "here", **more)
    assert refused.status_code in {413, 422}, refused.text


async def share_first_channel(people: People, *channels: str) -> list[str]:
    """Channels of the owner's, of which alice may read the first; the ids of the sources."""
    for channel in channels:
        message = {**TALK[0], "text": f"the deploy failed in {channel}"}
        await post(people.owner, channel, message, {**TALK[1], "text": f"why {channel}"})
    listed = (await people.owner.get("/collections/default/sources")).json()
    ids = {source["name"]: source["id"] for source in listed}
    alice = {"kind": "user", "id": (await people.owner.get("/users/alice")).json()["id"]}
    grant = {"grantee": alice, "role": "viewer", "source": ids[channels[0]]}
    granted = await people.owner.put("/collections/default/grants", json=grant)
    assert granted.status_code in {200, 201, 204}, granted.text
    return [ids[channel] for channel in channels]


async def test_who_sees_one_channel_sees_that_one(people: People) -> None:
    seen, hidden = await share_first_channel(people, "open", "secret")
    alice = people.alice
    collection = (await people.owner.get("/collections/default")).json()["id"]
    assert message_keys(await alice.get(f"/messages?channel=open&collection={collection}")) == ["1", "2"]
    wide = await ask(alice, "open", related=True, collection=collection)
    assert (wide.json()["channels"], "secret" in wide.text) == (["open"], False)
    assert (await ask(people.owner, "open", related=True)).json()["channels"] == ["open", "secret"]
    for name in ("secret", hidden, "nowhere"):
        for answer in (
            await alice.get(f"/messages?channel={name}&collection={collection}"),
            await ask(alice, name, collection=collection),
            await alice.get(f"/documents/by-key?source={name}&key=1&collection={collection}"),
            await alice.delete(f"/documents/by-key?source={name}&key=1&collection={collection}"),
        ):
            assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert seen != hidden


async def test_what_is_hidden_answers_as_what_is_not_there(people: People) -> None:
    await share_first_channel(people, "open", "secret")
    collection = (await people.owner.get("/collections/default")).json()["id"]
    hidden = (await people.owner.get("/documents/by-key?source=secret&key=2")).json()["id"]
    ghost = hidden[:-4] + ("0000" if hidden[-4:] != "0000" else "1111")
    answers = []
    for document, source in ((hidden, "secret"), (ghost, "nowher")):
        for path in (
            f"/documents/{document}/thread",
            f"/documents/by-key?source={source}&key=2&collection={collection}",
        ):
            answer = await people.alice.get(path)
            problem = {**answer.json(), "instance": None, "request_id": None}
            answers.append(
                (answer.status_code, json.dumps(problem).replace(document, "D").replace(source, "S"))
            )
    assert answers[:2] == answers[2:]
    assert [status for status, _ in answers] == [404] * 4


async def test_who_may_only_read_cannot_write(people: People) -> None:
    [seen] = await share_first_channel(people, "open")
    collection = (await people.owner.get("/collections/default")).json()["id"]
    named = {"body": {"collection": collection}}
    refused = [
        await post(people.alice, "open", {"text": "x"}, **named),
        await post(people.alice, "new", {"text": "x"}, **named),
        await people.alice.delete(f"/documents/by-key?source=open&key=1&collection={collection}"),
        await upload_archive(people.alice, build_archive(slack(said("1.0", "x"))), collection=collection),
    ]
    assert [answer.status_code for answer in refused] == [403] * 4
    unseen = await post(people.bob, "open", {"text": "in a collection that bob cannot see"}, **named)
    assert unseen.status_code == 404
    assert message_keys(await people.owner.get(f"/messages?channel=open&collection={collection}")) == [
        "1",
        "2",
    ]
    alice = {"kind": "user", "id": (await people.owner.get("/users/alice")).json()["id"]}
    grant = {"grantee": alice, "role": "editor", "source": seen}
    await people.owner.put("/collections/default/grants", json=grant)
    assert (await post(people.alice, "open", {"text": "x"}, **named)).status_code == 201
    assert (await post(people.alice, "new", {"text": "x"}, **named)).status_code == 403


async def test_an_export_is_handed_in(api: httpx.AsyncClient) -> None:
    content = build_archive(slack(said("1.000100", "the deploy failed"), said("2.000100", "it did")))
    first = (await upload_archive(api, content)).json()
    assert (first["kind"], first["channels"], first["added"]) == ("slack", {"general": 2}, 2)
    assert (await upload_archive(api, content)).json()["unchanged"] == 2
    assert message_keys(await api.get("/messages?channel=general")) == ["1.000100", "2.000100"]


@pytest.mark.parametrize(
    ("content", "form"),
    [
        (b"", {}),
        (b"\x89PNG\r\n\x1a\n\0\0", {}),
        (b"PK\x03\x04 nonsense", {}),
        (build_archive({}), {}),
        (build_archive({"a.txt": b"nothing known"}), {"kind": "slack"}),
        (build_archive(slack(said("1.0", "x"))), {"kind": "teams"}),
        (build_archive(slack(said("1.0", "x"))), {"collection": "x" * 1_001}),
        (build_archive(slack(said("1.0", "x"))), {"link": "maybe"}),
    ],
)
async def test_what_is_no_export(api: httpx.AsyncClient, content: bytes, form: dict[str, str]) -> None:
    refused = await upload_archive(api, content, **form)
    assert refused.status_code in {415, 422}, refused.text
    assert "/tmp" not in refused.text


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_is_no_place(api: httpx.AsyncClient, name: str) -> None:
    row = json.dumps({"channel": "ops", "id": "1", "text": "note"}).encode()
    answer = await upload_archive(api, row, name, kind="jsonl")
    if name:
        assert (answer.status_code, answer.json().get("added")) == (200, 1)
    else:
        assert answer.status_code == 422


async def test_a_bomb_is_refused(open_site: OpenSite) -> None:
    async with (
        open_site(max_unpacked_bytes=2_000_000, max_file_bytes=1_000_000) as site,
        site.client() as api,
    ):
        deep = slack(said("1.0", "x"), **{"general/2024-01-06.json": b"[" + b" " * 3_000_000 + b"]"})
        bomb = build_archive(deep, compression=zipfile.ZIP_DEFLATED)
        assert len(bomb) < 50_000
        refused = await upload_archive(api, bomb)
        assert (refused.status_code, refused.json()["code"]) == (413, "too_large")
        large = build_archive(slack(said("1.0", "x"), **{"general/2024-01-06.json": b" " * 1_100_000}))
        assert (await upload_archive(api, large)).status_code == 413
        assert (await api.get("/messages?channel=general")).status_code == 404


@pytest.mark.parametrize("name", ODD)
async def test_names_of_all_kinds(api: httpx.AsyncClient, name: str) -> None:
    assert (
        await post(api, name, {"text": "the deploy failed", "key": name, "author": name})
    ).status_code == 201
    here = {"source": name, "key": name}
    answer = await api.get("/documents/by-key", params=here)
    assert (answer.status_code, answer.json()["key"]) == (200, name)
    assert (await ask(api, name)).json()["channels"] == [name]
    assert message_keys(await api.get("/messages", params={"channel": name})) == [name]
    assert (await api.delete("/documents/by-key", params=here)).json()["documents"] == 1


async def test_a_message_that_is_sent_twice_is_there_once(api: httpx.AsyncClient) -> None:
    once = {"Idempotency-Key": "one"}
    first = await post(api, "here", {"text": "without a key"}, headers=once)
    second = await post(api, "here", {"text": "without a key"}, headers=once)
    assert (second.content, second.headers["idempotent-replayed"]) == (first.content, "true")
    assert len(message_keys(await api.get("/messages?channel=here"))) == 1
    other = await post(api, "here", {"text": "something else"}, headers=once)
    assert (other.status_code, other.json()["code"]) == (409, "conflict") or other.status_code == 422
    await post(api, "here", {"text": "without a key"})
    assert len(message_keys(await api.get("/messages?channel=here"))) == 2
