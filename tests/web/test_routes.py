"""A walk over the routes, each with what it promises; then the awkward cases of single ones.

That every operation is answered is in `test_operations.py`.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from conspectus.model.query import Query
from tests.support.web_server import Answer, ScriptedServer
from tests.web.conftest import OpenSite, Site, filled
from tests.web.memory_walks import GRAPHS, MEMORIES

Step = tuple[str, str, Any, int]
PAGE = {"text": "Backups run at two.", "title": "Backups", "key": "b", "metadata": {"lang": "en"}}
DAY = {"start": "2024-05-01T00:00Z", "end": "2024-05-02T00:00Z"}
LATER = {"text": "The ferry leaves at noon.", "occurred": DAY}
TIDES = Answer(b"<article><p>Tides turn twice a day.</p></article>", type="text/html")
ASKED = {"query": "When do backups run?", "collection": "wiki"}
BUDGETED = {**ASKED, "max_tokens": 200}
TALK = [
    {"text": "Where are the API keys?", "key": "1", "author": "ann", "at": "2026-03-02T12:00:00Z"},
    {"text": "Under Developer Settings", "key": "2", "author": "bo", "reply_to": "1"},
]

CATALOG: Sequence[Step] = [
    ("GET", "/me", None, 200),
    ("POST", "/collections", {"name": "wiki", "description": "d", "language": "english"}, 201),
    ("POST", "/collections", {"name": "wiki", "get": True}, 200),
    ("POST", "/collections", {"name": "wiki"}, 409),
    ("GET", "/collections", None, 200),
    ("GET", "/collections/wiki", None, 200),
    ("PATCH", "/collections/wiki", {"description": "better"}, 200),
    ("POST", "/collections/wiki/sources", {"name": "handbook", "kind": "wiki"}, 200),
    ("GET", "/collections/wiki/sources", None, 200),
    ("GET", "/sources/{source}", None, 200),
    ("PATCH", "/sources/{source}", {"metadata": {"team": "ops"}}, 200),
    ("POST", "/sources/{source}/documents", {"documents": [PAGE]}, 201),
    ("POST", "/collections/wiki/documents", {"documents": [LATER], "source": "ships", "wait": True}, 201),
    ("POST", "/collections/wiki/documents", {"documents": []}, 201),
    ("GET", "/sources/{source}/documents?limit=1", None, 200),
    ("GET", "/collections/wiki/documents?filter=metadata.lang%3Den&filter=kind%3Dpage", None, 200),
    ("POST", "/collections/wiki/documents/count", {"filter": {"field": "kind", "eq": "page"}}, 200),
    ("GET", "/documents/{document}", None, 200),
    ("PATCH", "/documents/{document}", {"title": "Backup", "occurred": "2024-05-01T00:00:00Z"}, 200),
    ("GET", "/documents/{document}/text", None, 200),
    ("POST", "/documents/texts", {"ids": ["unknown"]}, 200),
    ("GET", "/documents/{document}/chunks", None, 200),
    ("GET", "/collections/wiki/quarantined", None, 200),
    ("POST", "/documents/{document}/release", None, 404),
    ("POST", "/collections/wiki/wait", None, 200),
    ("GET", "/collections/wiki/status", None, 200),
    ("GET", "/files?path=/wiki", None, 200),
    ("GET", "/files/find?path=/wiki&name=*.md", None, 200),
    ("GET", "/files/text?path=/wiki/none/x", None, 404),
    ("POST", "/files/grep", {"pattern": "x", "path": "/wiki"}, 200),
    ("POST", "/files/grep", {"pattern": "("}, 422),
    ("POST", "/collections/wiki/scan", {"categories": ["emails", "cards"]}, 200),
    ("POST", "/collections/wiki/reindex", None, 200),
    ("POST", "/collections/wiki/reembed", {"embedder": "given"}, 200),
]
QUESTIONS: Sequence[Step] = [
    ("POST", "/search", ASKED, 200),
    ("POST", "/context", BUDGETED, 200),
    ("POST", "/context", {**BUDGETED, "reserved_tokens": 50, "format": "messages"}, 200),
    ("POST", "/explain", {**BUDGETED, "document": "{document}"}, 200),
    ("POST", "/augment", BUDGETED, 200),
    ("POST", "/rerank", {"query": "backups", "chunks": [1, 2, 3, 10**12]}, 200),
    ("POST", "/search-and-rerank", {**ASKED, "limit": 1}, 200),
    ("GET", "/status", None, 200),
    ("GET", "/check", None, 200),
    ("GET", "/requests", None, 200),
    ("GET", "/requests/totals?hours=1", None, 200),
    ("GET", "/ingest/report", None, 200),
    ("GET", "/jobs?state=queued", None, 200),
]
CONVERSATIONS: Sequence[Step] = [
    ("POST", "/messages", {"channel": "help", "collection": "wiki", "messages": TALK, "wait": True}, 201),
    ("GET", "/messages?channel=help&collection=wiki&limit=2", None, 200),
    ("GET", "/documents/by-key?key=2&source=help&collection=wiki", None, 200),
    ("GET", "/documents/by-key?key=9&source=help&collection=wiki", None, 404),
    ("POST", "/messages/context", {"channel": "help", "query": "keys?", "collection": "wiki"}, 200),
    ("GET", "/documents/{document}/thread", None, 200),
    ("DELETE", "/documents/by-key?source=help&key=1&collection=wiki", None, 200),
    ("DELETE", "/documents/by-key?source=help&key=1&collection=wiki", None, 404),
]
CHATS: Sequence[Step] = [
    ("POST", "/chat", {"message": "When do backups run?", "stream": False}, 503),
    ("GET", "/chat/unknown", None, 404),
    ("POST", "/chat/completions", {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}, 503),
    ("POST", "/embeddings", {"input": "Hi"}, 200),
    ("GET", "/models", None, 200),
]
TASKS: Sequence[Step] = [
    ("GET", "/search/semantic?q=login", None, 200),
    ("POST", "/tasks", {"id": "auth-1", "title": "Fix login"}, 201),
    ("POST", "/tasks/bulk", {"tasks": [{"id": "ui-1", "title": "Redesign", "status": "pending"}]}, 200),
    ("PUT", "/tasks/auth-2", {"title": "Update JWT", "priority": "high"}, 200),
    ("GET", "/tasks?status=pending", None, 200),
    ("GET", "/tasks/auth-1", None, 200),
    ("PATCH", "/tasks/auth-1", {"status": "completed"}, 200),
    ("PUT", "/tasks/auth-1/attachments/log", {"text": "401 after the upgrade"}, 200),
    ("GET", "/tasks/auth-1/attachments", None, 200),
    ("GET", "/tasks/auth-1/attachments/log", None, 200),
    ("POST", "/tasks/context", {"query": "login"}, 200),
    ("GET", "/search/semantic?q=login&n=3", None, 200),
    ("DELETE", "/tasks/auth-1/attachments/log", None, 200),
    ("DELETE", "/tasks/auth-1", None, 200),
]
CAPTION = {"text": "A red car turns left.", "start": 0, "end": 5, "index": 0}
LATER_CAPTION = {"text": "It stops.", "start": "0:50", "end": "2024-05-01T00:00:00Z"}
STREAMS: Sequence[Step] = [
    ("POST", "/streams", {"name": "gate", "collection": "wiki", "title": "The gate"}, 200),
    ("GET", "/streams?collection=wiki", None, 200),
    ("POST", "/streams/gate/captions?collection=wiki", {"captions": [CAPTION, LATER_CAPTION]}, 201),
    ("POST", "/streams/gate/captions?collection=wiki", {"captions": [{**CAPTION, "text": "x"}]}, 409),
    ("GET", "/streams/gate/captions?collection=wiki&start=0&end=0:09&contains=true&first=0", None, 200),
    ("GET", "/streams/gate/captions?collection=wiki&start=noon", None, 422),
    ("POST", "/streams/search", {"query": "red car", "collection": "wiki", "streams": ["gate"]}, 200),
    ("POST", "/streams/context", {"query": "before 0:40", "collection": "wiki", "max_tokens": 90}, 200),
    ("GET", "/streams/gate/stream?collection=wiki", None, 200),
    ("GET", "/streams/gate/stream?collection=nowhere", None, 404),
    ("DELETE", "/streams/gate/captions?collection=wiki&end=5", None, 200),
    ("GET", "/streams/gate?collection=wiki", None, 200),
    ("DELETE", "/streams/gate?collection=wiki", None, 200),
    ("GET", "/streams/gate?collection=wiki", None, 404),
]
SUMMARIES: Sequence[Step] = [
    ("POST", "/streams/cars/one/captions?collection=wiki", {"captions": [CAPTION]}, 201),
    ("POST", "/streams/cars/one/summary?collection=wiki", {"sentences": 3}, 200),
    ("POST", "/streams/cars/one/summary?collection=wiki", {"range": {"first": 2, "last": 1}}, 422),
    ("POST", "/streams/cars/one/summary/start?collection=wiki", {}, 202),
    ("GET", "/streams/cars/one/summary?collection=wiki&last=-1", None, 200),
    ("GET", "/streams/cars/two/summary?collection=wiki", None, 404),
    ("PUT", "/streams/cars/one/summary/live?collection=wiki", {"batch_size": 2}, 503),
    ("DELETE", "/streams/cars/one/summary/live?collection=wiki", None, 204),
]
EVENT = {"type": "fall", "start": "0:08", "end": 10, "description": "Ann falls", "entities": ["Ann"]}
ALERT = {"name": "falls", "query": "somebody falls", "collection": "wiki", "streams": ["stairs"]}
ALERTS: Sequence[Step] = [
    ("POST", "/streams/stairs/events?collection=wiki", {"events": [EVENT, {**EVENT, "start": 0}]}, 201),
    ("POST", "/streams/stairs/events?collection=wiki", {"events": [{**EVENT, "end": 1}]}, 422),
    ("GET", "/streams/stairs/events?collection=wiki&type=fall&start=0", None, 200),
    ("GET", "/streams/stairs/entities?collection=wiki&end=0:09", None, 200),
    ("GET", "/streams/stairs/timeline?collection=wiki&entity=ann", None, 200),
    ("GET", "/streams/nowhere/timeline?collection=wiki&entity=ann", None, 404),
    ("POST", "/alerts", ALERT, 200),
    ("POST", "/alerts", {**ALERT, "webhook": "http://10.0.0.1/"}, 422),
    ("POST", "/alerts", {**ALERT, "filter": {"field": "no"}}, 422),
    ("GET", "/alerts?collection=wiki", None, 200),
    ("GET", "/alerts/{alert}", None, 200),
    ("GET", "/alerts/events?alert={alert}&after=0&limit=5", None, 200),
    ("GET", "/alerts/stream", None, 200),
    ("GET", "/alerts/stream?alert=unknown", None, 404),
    ("DELETE", "/alerts/{alert}", None, 204),
    ("DELETE", "/alerts/{alert}", None, 404),
]
PEOPLE: Sequence[Step] = [
    ("DELETE", "/session", None, 204),
    ("POST", "/users", {"name": "alice"}, 201),
    ("GET", "/users", None, 200),
    ("GET", "/users/alice", None, 200),
    ("PATCH", "/users/alice", {"disabled": True}, 200),
    ("POST", "/groups", {"name": "team"}, 201),
    ("GET", "/groups", None, 200),
    ("PUT", "/groups/team/members/alice", None, 204),
    ("GET", "/groups/team/members", None, 200),
    ("PUT", "/collections/wiki/grants", {"grantee": {"kind": "group", "id": "team"}, "role": "viewer"}, 200),
    ("GET", "/collections/wiki/grants", None, 200),
    ("GET", "/users/alice/roles?collection=wiki", None, 200),
    ("GET", "/documents/{document}/readers", None, 200),
    ("POST", "/explain/as/alice", BUDGETED, 409),
    ("PATCH", "/users/alice", {"disabled": False}, 200),
    ("POST", "/explain/as/alice", BUDGETED, 200),
    ("GET", "/audit?limit=1", None, 200),
    ("DELETE", "/collections/wiki/grants?kind=group&id=team", None, 200),
    ("DELETE", "/groups/team/members/alice", None, 204),
    ("DELETE", "/groups/team", None, 204),
    ("POST", "/keys", {"user": "alice", "label": "laptop", "scopes": ["read"]}, 201),
    ("GET", "/keys?user=alice", None, 200),
    ("POST", "/keys/{key}/rotate", None, 201),
    ("DELETE", "/keys/{key}", None, 200),
    ("DELETE", "/users/alice", None, 204),
]
END: Sequence[Step] = [
    ("DELETE", "/documents/{document}/chunks", None, 200),
    ("DELETE", "/documents/{document}", None, 200),
    ("POST", "/documents/delete", {"ids": ["unknown"]}, 200),
    ("POST", "/collections/wiki/documents/delete", {"filter": {"field": "kind", "eq": "page"}}, 200),
    ("DELETE", "/sources/{source}", None, 200),
    ("DELETE", "/collections/wiki?purge=true", None, 200),
]
OPERATED = {
    ("GET", f"http://localhost/{path}") for path in ("health/live", "health/ready", "healthz", "readyz")
}
OPERATED |= {("GET", "http://localhost/metrics"), ("GET", "http://localhost/openapi.json")}


async def request_in_turn(api: httpx.AsyncClient, steps: Sequence[Step], names: dict[str, str]) -> None:
    for method, path, body, status in steps:
        request_body = body and {k: names["document"] if v == "{document}" else v for k, v in body.items()}
        answer = await api.request(method, path.format(**names), json=request_body)
        assert (method, path, answer.status_code) == (method, path, status), answer.text
        note_ids(path, answer, names)


def note_ids(path: str, answer: httpx.Response, names: dict[str, str]) -> None:
    """Note the ids of what was made."""
    if not answer.content or not answer.headers["content-type"].startswith("application/json"):
        return
    match path.rsplit("/", 1)[-1], answer.json():
        case "sources", {"id": source}:
            names["source"] = source
        case "documents", [{"id": document}]:
            names["document"] = document
        case "alerts", {"id": alert}:
            names["alert"] = alert
        case "memories", [{"id": memory}, *_]:
            names["memory"] = memory
        case "keys", {"key": {"id": key}}:
            names["key"] = key


async def import_archive(api: httpx.AsyncClient) -> None:
    """A file of messages, taken in twice."""
    line = b'{"channel": "ops", "id": "1", "text": "hello", "author": "ann"}'
    for added, unchanged in ((1, 0), (0, 1)):
        answer = await api.post(
            "/messages/import", files={"file": ("log.jsonl", line)}, data={"collection": "wiki"}
        )
        assert answer.status_code == 200, answer.text
        report = answer.json()
        assert (report["kind"], report["channels"]) == ("jsonl", {"ops": 1})
        assert (report["added"], report["unchanged"]) == (added, unchanged)


async def import_captions(api: httpx.AsyncClient) -> None:
    """A file of captions, taken in as a stream of its own and into one that is named."""
    files = [("files", ("talk.vtt", b"WEBVTT\n\n00:01.000 --> 00:02.000\nHello.\n"))]
    for path, stream in (("/streams/import", "talk"), ("/streams/a%2Fb/captions/import", "a/b")):
        answer = await api.post(path, files=files, data={"collection": "wiki", "sentences": "false"})
        assert (answer.status_code, answer.json()["streams"]) == (200, {stream: 1}), answer.text


async def undo_merge(api: httpx.AsyncClient) -> None:
    """Nodes that are made one, and two again."""
    await api.post("/graphs/default/nodes", json={"nodes": [{"id": "a"}, {"id": "b"}]})
    await api.post("/graphs/default/merge", json={"into": "a", "nodes": ["b"]})
    [merge] = (await api.get("/graphs/default/merges")).json()
    answer = await api.post("/graphs/default/undo-merge", json={"merge": merge["number"]})
    assert (answer.status_code, {node["id"] for node in answer.json()}) == (200, {"a", "b"})


async def give_feedback(api: httpx.AsyncClient) -> None:
    """Feedback on a passage, given, listed and revoked."""
    [hit, *_] = (await api.post("/search", json=ASKED)).json()["hits"]
    body = {"query": "backups", "used": [hit["chunk"]["id"]]}
    feedback = await api.post("/feedback", json=body)
    assert feedback.status_code == 201, feedback.text
    listed = await api.get("/feedback", params={"collection": "wiki"})
    assert listed.json() == {"feedback": feedback.json(), "next": None}
    for status in (204, 404):
        gone = await api.delete(f"/feedback/{feedback.json()[0]['id']}")
        assert gone.status_code == status


async def ingest(api: httpx.AsyncClient, folder: str, page: str) -> None:
    """The routes that hand work to jobs."""
    files = [("files", ("a.md", b"# A\n\nText.")), ("files", ("b.txt", b"More."))]
    uploaded = await api.post("/collections/wiki/ingest/files", files=files, data={"source": "uploads"})
    assert (uploaded.status_code, uploaded.json()["kind"]) == (202, "ingest_files")
    preview = await api.post("/collections/wiki/ingest/preview", files=files, data={"limit": "1"})
    assert [len(document["chunks"]) for document in preview.json()["documents"]] == [1, 0]
    fetched = await api.post("/collections/wiki/ingest/url", json={"url": page})
    assert fetched.status_code == 202
    body = {"name": "docs", "connector": "markdown", "options": {"path": folder}}
    connection = await api.post("/collections/wiki/connections", json=body)
    assert connection.status_code == 201, connection.text
    assert (await api.get("/collections/wiki/connections")).json() == [connection.json()]
    synced = await api.post("/collections/wiki/connections/docs/sync")
    for answer in (uploaded, fetched, synced):
        assert answer.headers["location"] == f"/api/v1/jobs/{answer.json()['id']}"
        job = (await api.get(f"/jobs/{answer.json()['id']}?wait=30")).json()
        assert (job["state"], job["error"]) == ("succeeded", None)
    assert (await api.post(f"/jobs/{job['id']}/cancel")).json()["state"] == "succeeded"
    assert (await api.post(f"/jobs/{job['id']}/retry")).status_code == 409
    gone = await api.request("DELETE", "/collections/wiki/connections/docs?delete=true")
    assert gone.status_code == 200


async def log_in(api: httpx.AsyncClient) -> None:
    """A session and a header by a new key."""
    key = (await api.post("/keys", json={})).json()["secret"]
    assert (await api.post("/session", json={"key": key})).status_code == 200
    api.headers["Authorization"] = f"Bearer {key}"


async def test_routes_do_what_they_promise(open_site: OpenSite, tmp_path: Any) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# Notes\n\nSome.", encoding="utf-8")
    names: dict[str, str] = {}
    async with (
        ScriptedServer({"/tides": TIDES}) as web,
        open_site(fetch_allowed_networks="127.0.0.1", subscription_seconds=1) as site,
        site.client() as api,
    ):
        await request_in_turn(api, CATALOG, names)
        await request_in_turn(api, QUESTIONS, names)
        await request_in_turn(api, CONVERSATIONS, names)
        await import_archive(api)
        await request_in_turn(api, TASKS, names)
        await request_in_turn(api, CHATS, names)
        await request_in_turn(api, STREAMS, names)
        await request_in_turn(api, MEMORIES, names)
        await undo_merge(api)
        await give_feedback(api)
        await request_in_turn(api, GRAPHS, names)
        await import_captions(api)
        await request_in_turn(api, SUMMARIES, names)
        await request_in_turn(api, ALERTS, names)
        await ingest(api, str(tmp_path / "notes"), f"{web.base}/tides")
        await log_in(api)
        await request_in_turn(api, PEOPLE, names)
        await request_in_turn(api, END, names)
        for method, path in OPERATED:
            assert (await api.request(method, path)).status_code == 200


async def test_an_owned_name_may_hold_a_slash(site: Site, api: httpx.AsyncClient) -> None:
    await filled(api, "alice/wiki")
    for name in ("alice/wiki", "alice%2Fwiki"):
        assert (await api.get(f"/collections/{name}")).json()["name"] == "alice/wiki"
        listed = (await api.get(f"/collections/{name}/documents")).json()
        assert len(listed["documents"]) == 1


async def test_an_id_reaches_what_a_name_hides(api: httpx.AsyncClient) -> None:
    collection = (await api.post("/collections", json={"name": "a/documents"})).json()
    assert (await api.get("/collections/a/documents")).status_code == 404
    assert (await api.get(f"/collections/{collection['id']}")).json() == collection


@pytest.mark.parametrize("body", [{}, {"ids": [], "filter": {"and": []}}, {"ids": None, "filter": None}])
async def test_a_deletion_says_what(api: httpx.AsyncClient, body: Any) -> None:
    await filled(api)
    answer = await api.post("/collections/wiki/documents/delete", json=body)
    assert answer.status_code == 422
    assert (await api.post("/collections/wiki/documents/count", json={})).json() == {"count": 1}


async def test_deleting_by_id_stays_in_its_collection(api: httpx.AsyncClient) -> None:
    (document,) = await filled(api)
    await filled(api, "other")
    body = {"ids": [document]}
    elsewhere = await api.post("/collections/other/documents/delete", json=body)
    assert elsewhere.json()["documents"] == 0
    here = await api.post("/collections/wiki/documents/delete", json=body)
    assert here.json()["documents"] == 1


async def test_pages_go_on_where_they_ended(api: httpx.AsyncClient) -> None:
    ids = await filled(api, "wiki", *(f"Number {n}" for n in range(7)))
    listed, after = [], ""
    while True:
        page = (await api.get(f"/collections/wiki/documents?limit=3{after}")).json()
        listed += [document["id"] for document in page["documents"]]
        if page["next"] is None:
            break
        after = f"&after={page['next']}"
    assert sorted(listed) == sorted(ids)
    assert (await api.get("/collections/wiki/documents?after=nonsense")).status_code == 422


async def test_a_file_of_the_server_is_no_tokenizer_and_no_embedder(site: Site) -> None:
    await site.engine.people.create_user("alice")
    key = (await site.engine.keys.create("alice")).secret
    async with site.client(key) as alice:
        await filled(alice)
        budget = {"max_tokens": 9, "tokenizer": "hf:/etc/passwd"}
        body = {"query": "x", "collection": "wiki", **budget}
        assert (await alice.post("/context", json=body)).json()["field"] == "tokenizer"
        refused = await alice.post("/collections", json={"name": "s", "embedder": "static:/etc"})
        assert refused.status_code == 403
        refused = await alice.post("/collections/wiki/reembed", json={"embedder": "static:/etc"})
        assert refused.status_code == 403


async def test_null_stands_for_the_default_of_what_is_never_none(api: httpx.AsyncClient) -> None:
    await filled(api, "wiki", *(f"Boat {number} leaves." for number in range(23)))
    question = {"query": "boat", "collection": "wiki"}
    for fields, count in (({"limit": None, "retrievers": None}, 10), ({}, 10), ({"limit": 22}, 22)):
        answer = await api.post("/search", json={**question, **fields})
        assert len(answer.json()["hits"]) == count
    answer = await api.post("/context", json={**question, "limit": None, "filter": None, "max_tokens": 2_000})
    assert len(answer.json()["trace"]) == 23


async def test_without_a_least_similarity_everything_augments(api: httpx.AsyncClient) -> None:
    await filled(api, "wiki", "Boats leave at noon.")
    for fields, outcome in (({}, "no_match"), ({"min_similarity": None}, "found")):
        answer = await api.post("/augment", json={"query": "Köln", "max_tokens": 50, **fields})
        assert answer.json()["outcome"] == outcome


async def test_a_search_is_the_engines(site: Site, api: httpx.AsyncClient) -> None:
    await filled(api, "wiki", "Backups run at two.", "The ferry leaves at noon.")
    body = {"query": "ferry", "collection": "wiki", "retrievers": ["keyword"], "limit": 1}
    answer = (await api.post("/search", json=body)).json()
    retrieval = await site.engine.retrieve(
        Query("ferry", collection="wiki", retrievers=("keyword",), limit=1)
    )
    assert [hit["chunk"]["id"] for hit in answer["hits"]] == [hit.chunk.id for hit in retrieval.hits]
    assert answer["hits"][0]["score"] == pytest.approx(retrieval.hits[0].score)
    assert answer["hits"][0]["parts"].keys() == retrieval.hits[0].parts.keys()


@pytest.mark.parametrize("size", [1.0, 1e300, 1e-300, 5e-324])
async def test_only_the_direction_of_a_vector_counts(api: httpx.AsyncClient, size: float) -> None:
    await filled(api)
    body = {"query": "x", "collection": "wiki", "retrievers": ["vector"], "vector": [size, *[0.0] * 63]}
    unit = await api.post("/search", json={**body, "vector": [1.0, *[0.0] * 63]})
    answer = await api.post("/search", json=body)
    assert answer.status_code == 200
    assert answer.json()["hits"] == unit.json()["hits"]
    nothing = await api.post("/search", json={**body, "vector": [0.0] * 64})
    assert (nothing.status_code, nothing.json()["field"]) == (422, "vector")


async def test_many_at_once(api: httpx.AsyncClient) -> None:
    await filled(api)
    body = {"query": "backups", "collection": "wiki"}
    adding = [{"documents": [{"text": f"Number {n}"}]} for n in range(20)]
    answers = await asyncio.gather(
        *(api.post("/search", json=body) for _ in range(20)),
        *(api.post("/collections/wiki/documents", json=body_of_add) for body_of_add in adding),
    )
    assert {answer.status_code for answer in answers} == {200, 201}
