"""Events and alerts over HTTP: what clients send and hear, and what they may not."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from conspectus.model.captions import NewCaption
from tests.server_events import Event, parsed
from tests.support.served import served
from tests.web.conftest import OpenSite, People, Site

FALL = {"type": "fall", "start": "00:00:08", "end": 10, "description": "A man falls", "entities": ["Ann"]}
FIRE = {"name": "fire", "query": "a fire"}


async def set_fire(api: httpx.AsyncClient, **more: Any) -> dict[str, Any]:
    answer = await api.post("/alerts", json={**FIRE, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


@asynccontextmanager
async def listening(url: str, query: str = "", **headers: str) -> AsyncIterator[AsyncIterator[str]]:
    async with (
        httpx.AsyncClient(timeout=30) as http,
        http.stream("GET", f"{url}/api/v1/alerts/stream{query}", headers=headers) as response,
    ):
        assert (response.status_code, response.headers["content-type"][:17]) == (200, "text/event-stream")
        yield response.aiter_text()


async def read_events(pieces: AsyncIterator[str], count: int) -> Sequence[Event]:
    text = ""
    async for piece in pieces:
        text += piece
        if len(events := parsed(text.encode())) >= count:
            return events
    return parsed(text.encode())


async def wait_for_matches(api: httpx.AsyncClient, count: int) -> list[dict[str, Any]]:
    """The events, when there are so many."""
    for _ in range(1_000):
        events = (await api.get("/alerts/events")).json()
        if len(events) >= count:
            return events
        await asyncio.sleep(0.02)
    raise TimeoutError


async def test_events_have_times_in_both_forms(api: httpx.AsyncClient) -> None:
    sent = {"events": [FALL, {**FALL, "start": 0, "end": "5"}, {**FALL, "type": "fire"}]}
    for outcome in ("added", "unchanged"):
        written = (await api.post("/streams/a/b/events", json=sent)).json()
        assert [event["outcome"] for event in written] == [outcome] * 3
    [fall] = (await api.get("/streams/a/b/events", params={"type": "fall"})).json()
    assert (fall["start"], fall["end_text"], fall["entities"]) == (0.0, "00:00:10", ["Ann"])
    assert (await api.get("/streams/a/b/entities")).json() == {"entities": {"Ann": 3}}
    [span] = (await api.get("/streams/a/b/timeline", params={"entity": "ANN", "start": "0:09"})).json()
    assert (span["entity"], span["start_text"], len(span["documents"])) == ("ANN", "00:00:08", 2)
    assert (await api.get("/streams/a/b/events?start=11")).json() == []


@pytest.mark.parametrize(
    "event",
    [{}, {"type": "x"}, {**FALL, "type": ""}, {**FALL, "start": "noon"}, {**FALL, "start": -1},
     {**FALL, "end": 1}, {**FALL, "more": 1}, {**FALL, "start": None}],
)  # fmt: skip
async def test_events_that_cannot_be(api: httpx.AsyncClient, event: dict[str, Any]) -> None:
    answer = await api.post("/streams/gate/events", json={"events": [FALL, event]})
    assert answer.status_code == 422
    stored = await api.get("/streams/gate/events")
    assert stored.status_code == 404 or stored.json() == []


async def test_an_alert_comes_back_with_its_filter(site: Site, api: httpx.AsyncClient) -> None:
    await site.engine.streams.put("gate")
    where = {"and": [{"field": "metadata.level", "from": 3}, {"not": {"field": "author", "eq": "bo"}}]}
    alert = await set_fire(api, filter=where, streams=["gate"], min_similarity=None, gap_seconds=0)
    assert (alert["filter"], alert["min_similarity"], alert["gap_seconds"]) == (where, None, 0.0)
    assert (await api.get(f"/alerts/{alert['id']}")).json() == alert
    assert (await api.get("/alerts")).json() == [alert]
    again = await set_fire(api, query="smoke")
    assert (again["id"], again["streams"], again["query"]) == (alert["id"], [], "smoke")
    assert (await api.delete(f"/alerts/{alert['id']}")).status_code == 204
    assert (await api.get("/alerts")).json() == []


@pytest.mark.parametrize(
    "body",
    [{}, {"name": ""}, {"name": "x" * 1_001}, {**FIRE, "min_similarity": 2}, {**FIRE, "gap_seconds": -1},
     {**FIRE, "webhook": ""}, {**FIRE, "webhook": "http://localhost/"}, {**FIRE, "webhook": "x" * 3_000},
     {**FIRE, "filter": {"field": "nothing"}}, {**FIRE, "owner": "me"}],
)  # fmt: skip
async def test_alerts_that_cannot_be(site: Site, api: httpx.AsyncClient, body: dict[str, Any]) -> None:
    await site.engine.streams.put("gate")
    answer = await api.post("/alerts", json=body)
    assert answer.status_code == 422, answer.text
    assert "x" * 100 not in answer.text


async def test_what_alerts_tell_comes_as_events_with_their_numbers(
    site: Site, api: httpx.AsyncClient
) -> None:
    await site.engine.streams.put("gate")
    await set_fire(api)
    await site.engine.alerts.start()
    await site.engine.streams.add_captions(NewCaption("fire before", 0, 1), stream="gate")
    before = await wait_for_matches(api, 1)
    async with served(site.app) as url:
        async with listening(url) as pieces:
            [ready] = await read_events(pieces, 1)
            await site.engine.streams.add_captions(NewCaption("fire\nnow", 60, 61), stream="gate")
            [first] = await read_events(pieces, 1)
        assert (ready.name, ready.id) == ("ready", str(before[0]["number"]))
        match = json.loads(first.data)
        assert (first.name, first.id) == ("alert", str(match["number"]))
        assert (match["text"], match["reason"], match["start"]) == ("fire\nnow", "words: fire", 60.0)
        await site.engine.streams.add_captions(NewCaption("fire missed", 120, 121), stream="gate")
        await wait_for_matches(api, 3)
        for last, texts in ((first.id, ["fire missed"]), ("0", ["fire before", "fire\nnow", "fire missed"])):
            async with listening(url, **{"Last-Event-ID": last}) as pieces:
                events = await read_events(pieces, 1 + len(texts))
            assert [json.loads(event.data)["text"] for event in events[1:]] == texts


async def test_silence_is_filled_with_heartbeats(open_site: OpenSite) -> None:
    async with open_site(chat_heartbeat_seconds=1) as site, served(site.app) as url, listening(url) as pieces:
        text = ""
        async for piece in pieces:
            text += piece
            if text.count(": still here") == 2:
                break
        assert [event.name for event in parsed(text.encode())] == ["ready"]


async def test_an_alert_that_is_deleted_ends_what_is_heard_of_it(site: Site, api: httpx.AsyncClient) -> None:
    await site.engine.streams.put("gate")
    alert = await set_fire(api)
    async with served(site.app) as url, listening(url, f"?alert={alert['id']}") as pieces:
        await read_events(pieces, 1)
        await api.delete(f"/alerts/{alert['id']}")
        *_, last = await read_events(pieces, 1)
    assert (last.name, json.loads(last.data)["code"]) == ("error", "not_found")


@pytest.mark.parametrize("last", ["x", "-1", "1.5", "9" * 30])
async def test_ids_that_no_event_has(api: httpx.AsyncClient, last: str) -> None:
    answer = await api.get("/alerts/stream", headers={"Last-Event-ID": last})
    assert answer.status_code == 422


async def test_nobody_learns_of_the_alerts_of_others(site: Site, people: People) -> None:
    await site.engine.streams.put("gate")
    alert = await set_fire(people.owner)
    for client in (people.alice, people.bob):
        assert (await client.get("/alerts")).json() == []
        assert (await client.get(f"/alerts/{alert['id']}")).status_code == 404
        assert (await client.get(f"/alerts/events?alert={alert['id']}")).status_code == 404
        assert (await client.get(f"/alerts/stream?alert={alert['id']}")).status_code == 404
        assert (await client.delete(f"/alerts/{alert['id']}")).status_code == 404
        assert (await client.post("/alerts", json=FIRE)).status_code == 404
        assert (await client.get("/streams/gate/events")).status_code == 404
