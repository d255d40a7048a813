"""Questions are answered as the framework would answer them, without it."""

import json
import re
from collections.abc import Iterator

import httpx
import pytest

from conspectus.engine.searcher import ONLY_ELSEWHERE
from conspectus.model.parameters import DEFAULT_HITS
from conspectus.model.query import DEFAULT_WINDOW_TOKENS
from conspectus.model.records import NewDocument
from conspectus.retrieval.pipeline import MAX_INLINE_HITS
from conspectus.web.questions import MAX_INLINE_CHARACTERS, MAX_INLINE_ROWS, is_large
from tests.web.conftest import OpenSite, Site

PLAIN, THROUGH = "application/json", "application/json; charset=utf-8"
"""The second is answered by the framework."""
VARIABLE = re.compile(rb'"timings":{[^}]*}|"answer":"[^"]*"')
SENT = {
    "found": {"query": "deployed", "limit": 3},
    "nothing is found": {"query": "whales"},
    "all": {"query": "release", "filter": {"field": "kind", "eq": "note"}, "retrievers": ["keyword"]},
    "another type": {"query": 7},
    "no query": {},
    "unknown field": {"query": "release", "top_k": 3},
    "no such collection": {"query": "release", "collection": "elsewhere"},
    "too large a number": {"query": "release", "limit": 10**30},
    "a list": [],
    "null": None,
}
RAW = {
    "empty": b"",
    "no JSON": b'{"query": ',
    "no text": b'{"query": "\xff"}',
    "deep": b"[" * 60_000,
}


async def post_both_ways(client: httpx.AsyncClient, path: str, content: bytes) -> Iterator[httpx.Response]:
    """The answers on both ways."""
    kinds = ({"Content-Type": kind} for kind in (PLAIN, THROUGH))
    return iter([await client.post(path, content=content, headers=headers) for headers in kinds])


def without_variable_parts(answer: httpx.Response) -> tuple[int, bytes, dict[str, str]]:
    """An answer without what differs from request to request."""
    constant = VARIABLE.sub(b"", answer.content)
    assert int(answer.headers["content-length"]) == len(answer.content)
    return answer.status_code, constant, {**answer.headers, "x-request-id": "", "content-length": ""}


@pytest.mark.parametrize("path", ["/search", "/context", "/explain"])
@pytest.mark.parametrize("sent", [*map(json.dumps, SENT.values()), *RAW.values()], ids=[*SENT, *RAW])
async def test_an_answer_is_the_same_on_both_ways(site: Site, path: str, sent: str | bytes) -> None:
    content = sent.encode() if isinstance(sent, str) else sent
    if path != "/search" and content.startswith(b'{"query": "'):
        content = b'{"max_tokens": 300, ' + content[1:].replace(b'"limit": 10', b'"limit": 1')
    await site.engine.add("A release is deployed on Tuesdays.", wait=True)
    async with site.client() as client:
        direct, through = await post_both_ways(client, path, content)
    assert without_variable_parts(direct) == without_variable_parts(through)
    assert {line["route"] for line in site.requests} == {f"/api/v1{path}"}


async def test_limits_and_the_log_hold_there_too(open_site: OpenSite) -> None:
    async with open_site(max_question_bytes=300) as site, site.client() as client:
        large, again = await post_both_ways(client, "/search", json.dumps({"query": "a" * 400}).encode())
        strange = await client.post(
            "/search", json={"query": "x", "collection": "elsewhere"}, headers={"X-Request-Id": "mine"}
        )
    assert (large.status_code, without_variable_parts(large)) == (413, without_variable_parts(again))
    assert (strange.status_code, strange.headers["x-request-id"]) == (404, "mine")
    assert [line["status"] for line in site.requests] == [413, 413, 404]


async def test_a_new_server_answers_with_an_empty_window_of_the_default_size(open_site: OpenSite) -> None:
    async with open_site() as site, site.client() as client:
        answers = [await client.post(path, json={"query": "x"}) for path in ("/search", "/context")]
    assert [answer.status_code for answer in answers] == [200, 200]
    for answer in answers:
        assert answer.json()["notices"] == ["nothing that you may read has been added yet"]
    assert answers[1].json()["max_tokens"] == DEFAULT_WINDOW_TOKENS


async def test_a_search_of_a_server_that_has_only_tasks_names_where_they_are(open_site: OpenSite) -> None:
    async with open_site() as site, site.client() as client:
        added = await client.post("/tasks", json={"id": "auth-1", "title": "Fix login"})
        answers = [await client.post(path, json={"query": "login"}) for path in ("/search", "/context")]
        unknown = await client.post("/search", json={"query": "login", "collection": "nothing"})
    assert [answer.status_code for answer in (added, *answers, unknown)] == [201, 200, 200, 404]
    for answer in answers:
        assert answer.json()["notices"] == [ONLY_ELSEWHERE.format("tasks")]


async def test_a_search_without_a_limit_has_as_many_hits_as_in_the_library(site: Site) -> None:
    await site.engine.add([f"A release is deployed on day {number}." for number in range(30)])
    async with site.client() as client:
        answer = await client.post("/search", json={"query": "release"})
    hits = (await site.engine.retrieve("release")).hits
    assert len(answer.json()["hits"]) == len(hits) == DEFAULT_HITS


@pytest.mark.parametrize(
    ("limit", "large"), [(MAX_INLINE_ROWS, False), (MAX_INLINE_ROWS + 1, True), (MAX_INLINE_HITS + 1, True)]
)
async def test_answers_with_many_hits_leave_the_event_loop(site: Site, limit: int, *, large: bool) -> None:
    texts = [NewDocument(f"A release is deployed on day {number}.") for number in range(limit)]
    await site.engine.add(texts, wait=True)
    answer = await site.engine.retrieve("release", limit=limit)
    assert (len(answer.hits), is_large(answer)) == (limit, large)
    best = await site.engine.retrieve("release", limit=3)
    assert best.hits == answer.hits[:3]
    async with site.client() as client:
        direct, through = await post_both_ways(
            client, "/search", b'{"query": "release", "limit": %d}' % limit
        )
    assert without_variable_parts(direct) == without_variable_parts(through)


async def test_answers_with_a_long_text_leave_the_event_loop(site: Site) -> None:
    texts = [NewDocument(f"Release {number}: " + f"day{number} " * 300) for number in range(80)]
    await site.engine.add(texts, wait=True)
    window = await site.engine.window("release", 100_000, limit=80)
    assert len(window.text) > MAX_INLINE_CHARACTERS
    assert is_large(window)
