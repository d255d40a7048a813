"""Memories over HTTP: scopes, tags, keys of writes, and JSON lines."""

import json
from typing import Any

import httpx
import pytest

from tests.web.conftest import OpenSite, People

ANN = {"user": "ann", "conversation": "one"}
LINES = {"Content-Type": "application/x-ndjson"}
AS_LINES = {"Accept": "application/x-ndjson"}


async def add_memories(api: httpx.AsyncClient, *texts: str, **scope: str) -> list[str]:
    """Remember texts; their ids."""
    body = {**(scope or ANN), "memories": [{"text": text} for text in texts]}
    answer = await api.post("/memories", json=body)
    assert answer.status_code == 201, answer.text
    return [memory["id"] for memory in answer.json()]


async def list_texts(api: httpx.AsyncClient, **scope: Any) -> list[str]:
    answer = await api.get("/memories", params=scope or ANN)
    assert answer.status_code == 200, answer.text
    return [memory["text"] for memory in answer.json()["memories"]]


@pytest.mark.parametrize("field", ["at", "valid_from", "valid_until"])
@pytest.mark.parametrize("fact", [None, {"subject": "Ann", "predicate": "likes", "object": "tea"}])
async def test_a_bad_time_is_named(api: httpx.AsyncClient, field: str, fact: object) -> None:
    memory = {"text": "Ann likes tea.", "fact": fact, field: "some day"}
    answer = await api.post("/memories", json={**ANN, "memories": [memory]})
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_a_scope_is_in_every_route(api: httpx.AsyncClient) -> None:
    [mine] = await add_memories(api, "My secret is xyzzy.")
    await add_memories(api, "of bob", user="bob")
    for other in ({"user": "bob"}, {**ANN, "conversation": "two"}, {}):
        scope = {name: part for name, part in other.items() if part}
        for path in ("", "/recent", "/conversations", "/stats", "/export"):
            answer = await api.get(f"/memories{path}", params=scope)
            assert (answer.status_code, "xyzzy" in answer.text, mine in answer.text) == (200, False, False)
        for path in (f"/{mine}", f"/{mine}/versions"):
            assert (await api.get(f"/memories{path}", params=scope)).status_code == 404
        for path in ("recall", "context"):
            answer = await api.post(f"/memories/{path}", json={**scope, "query": "secret xyzzy"})
            assert (answer.status_code, mine in answer.text) == (200, False)
        changed = await api.patch(f"/memories/{mine}", params=scope, json={"text": "x"})
        assert changed.status_code == 404
        forgotten = await api.post("/memories/forget", json={**scope, "ids": [mine]})
        assert forgotten.json()["memories"] == 0
        assert (await api.delete(f"/memories/{mine}", params=scope)).json()["memories"] == 0
    assert await list_texts(api) == ["My secret is xyzzy."]


async def test_what_was_changed_meanwhile_is_not_overwritten(api: httpx.AsyncClient) -> None:
    [mine] = await add_memories(api, "I like tea.")
    first = await api.get(f"/memories/{mine}", params=ANN)
    tag = first.headers["etag"]
    assert first.json()["document"]["fingerprint"] in tag
    again = await api.get(f"/memories/{mine}", params=ANN, headers={"If-None-Match": tag})
    assert (again.status_code, again.content) == (304, b"")
    for status in (200, 412):
        body = {"text": f"I like coffee, {status}."}
        answer = await api.patch(f"/memories/{mine}", params=ANN, json=body, headers={"If-Match": tag})
        assert answer.status_code == status
    assert await list_texts(api) == ["I like coffee, 200."]


async def test_a_write_that_is_sent_twice_is_done_once(api: httpx.AsyncClient) -> None:
    body = {**ANN, "memories": [{"text": "I like tea."}]}
    first, second = [
        await api.post("/memories", json=body, headers={"Idempotency-Key": "k1"}) for _ in range(2)
    ]
    assert second.json() == first.json()
    assert second.headers["idempotent-replayed"] == "true"
    assert await list_texts(api) == ["I like tea."]


async def test_no_answer_to_a_question_is_kept(api: httpx.AsyncClient) -> None:
    key = {"Idempotency-Key": "k1"}
    fact = {"subject": "Ann", "predicate": "likes", "object": "tea"}
    body = {**ANN, "memories": [{"text": "I like tea.", "fact": fact}]}
    [mine] = (await api.post("/memories", json=body)).json()
    graph = "/graphs/graph%2Fann%2F%2Fone"
    questions: list[tuple[str, Any]] = [
        ("/memories/recall", {**ANN, "query": "tea"}),
        ("/memories/context", {**ANN, "query": "tea", "max_tokens": 100}),
        ("/memories/count", ANN),
        ("/documents/texts", {"ids": [mine["id"]]}),
        (f"{graph}/find?collection=memory", {"query": "tea"}),
        (f"{graph}/link?collection=memory", {"text": "Ann likes tea"}),
        ("/collections/memory/entities/extract", {"text": "Ann likes tea"}),
    ]
    before = [await api.post(path, json=body, headers=key) for path, body in questions]
    assert [answer.status_code for answer in before] == [200] * len(questions), [
        answer.text for answer in before
    ]
    await api.post("/memories/forget", json={**ANN, "ids": [mine["id"]]})
    after = [await api.post(path, json=body, headers=key) for path, body in questions]
    assert [answer.headers.get("idempotent-replayed") for answer in after] == [None] * len(questions)
    assert not any("I like tea" in answer.text for answer in after)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"memories": [{"text": "x", "colour": "red"}]}, "memories.0.colour"),
        ({"memories": [{"text": "x", "kind": "thought"}]}, "memories.0.kind"),
        ({"memories": [], "agents": "x"}, "agents"),
        ({"memories": [{"text": "x"}], "agent": ""}, "agent"),
        ({"memories": [{"text": "x", "fact": {"subject": "a"}}]}, "memories.0.fact.predicate"),
    ],
)
async def test_what_is_not_understood_is_refused(api: httpx.AsyncClient, body: Any, field: str) -> None:
    answer = await api.post("/memories", json=body)
    assert (answer.status_code, answer.json()["field"]) == (422, field)


async def test_lines_go_out_and_come_in_again(api: httpx.AsyncClient) -> None:
    await add_memories(api, *(f"Turn {number} 🎉" for number in range(30)))
    exported = await api.get("/memories/export", params=ANN, headers=AS_LINES)
    assert exported.headers["content-type"] == "application/x-ndjson"
    assert len(exported.text.splitlines()) == 30
    page = (await api.get("/memories/export", params={**ANN, "limit": 7})).json()
    assert (page["lines"], page["next"] is None) == (exported.text.splitlines()[:7], False)
    for outcome, scope in (("unchanged", {}), ("added", {"user": "eve"}), ("unchanged", {"user": "eve"})):
        answer = await api.post("/memories/import", content=exported.content, params=scope, headers=LINES)
        assert (answer.status_code, answer.json()[outcome]) == (200, 30), answer.text
    assert await list_texts(api, user="eve") == await list_texts(api)


async def test_an_export_is_complete_beyond_a_page(open_site: OpenSite) -> None:
    async with open_site(max_export_lines=2) as site, site.client() as api:
        await add_memories(api, *(f"Turn {number}" for number in range(5)))
        exported = await api.get("/memories/export", params=ANN, headers=AS_LINES)
        assert [json.loads(line)["text"] for line in exported.text.splitlines()] == [
            f"Turn {number}" for number in range(5)
        ]
        too_many = await api.get("/memories/export", params={**ANN, "limit": 3})
        assert (too_many.status_code, too_many.json()["field"]) == (422, "limit")
        missing = await api.get("/memories/export", params={"collection": "nowhere"}, headers=AS_LINES)
        assert missing.status_code == 404


async def test_a_line_at_fault_is_named(api: httpx.AsyncClient) -> None:
    await add_memories(api, "Turn 0", "Turn 1")
    good = (await api.get("/memories/export", params=ANN, headers=AS_LINES)).content
    for bad in (b"{}", b"\xff", b'{"text": 1}'):
        answer = await api.post("/memories/import", content=good + b"\n" + bad, headers=LINES)
        assert (answer.status_code, answer.json()["field"]) == (422, "line 4"), answer.text
        assert answer.json()["added"] == 0


async def test_who_may_only_look_changes_nothing(people: People) -> None:
    await people.owner.post("/collections", json={"name": "memory"})
    [mine] = await add_memories(people.owner, "My secret is xyzzy.")
    source = (await people.owner.get(f"/memories/{mine}", params=ANN)).json()["document"]["source"]
    for alice in range(2):
        answer = await people.alice.get(f"/memories/{mine}", params=ANN)
        assert answer.status_code == (200 if alice else 404)
        grantee = {"kind": "user", "id": "alice"}
        await people.owner.put(
            "/collections/memory/grants", json={"grantee": grantee, "role": "viewer", "source": source}
        )
    refused = [
        await people.alice.post("/memories", json={**ANN, "memories": [{"text": "x"}]}),
        await people.alice.patch(f"/memories/{mine}", params=ANN, json={"text": "x"}),
        await people.alice.post("/memories/forget", json={**ANN, "everything": True}),
        await people.alice.put("/memories/retention", json={**ANN, "max_count": 0}),
    ]
    assert [answer.status_code for answer in refused] == [403] * len(refused)
    assert (await people.bob.get("/memories", params=ANN)).status_code == 404
    assert await list_texts(people.owner) == ["My secret is xyzzy."]


async def test_a_parameter_that_is_misspelt_is_refused_rather_than_left_out(api: httpx.AsyncClient) -> None:
    """Without it, other memories would be meant than those that were named."""
    [mine] = await add_memories(api, "I like tea.")
    wrong = {"user": "ann", "convesation": "one"}
    for path in ("", "/recent", "/conversations", "/stats", "/export", f"/{mine}", f"/{mine}/versions"):
        answer = await api.get(f"/memories{path}", params=wrong)
        assert (answer.status_code, answer.json()["field"]) == (422, "convesation"), path
    line = '{"format": 1, "key": "k", "user": "eve", "text": "x"}'
    answer = await api.post("/memories/import", params={"usr": "ann"}, content=line, headers=LINES)
    assert (answer.status_code, await list_texts(api, user="eve")) == (422, [])
