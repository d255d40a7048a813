"""Streams over HTTP: lines by the thousand, exports that are always the same, events that are not lost."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from conspectus.model.access import Principal
from conspectus.model.captions import NewCaption
from tests.server_events import parsed
from tests.support.served import served
from tests.web.conftest import OpenSite, People, Site

LINES = {"Content-Type": "application/x-ndjson"}
AS_LINES = {"Accept": "application/x-ndjson"}
GATE = "/streams/gate/captions"


def build_rows(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"text": f"scene {n}", "start": n, "end": n + 2, "index": n, **more} for n in range(count)]


def as_lines(*objects: object) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in objects)


async def send_captions(
    api: httpx.AsyncClient, body: bytes, path: str = GATE, **query: Any
) -> httpx.Response:
    return await api.post(path, content=body, headers=LINES, params=query)


async def export_captions(api: httpx.AsyncClient, path: str = GATE, **query: Any) -> bytes:
    answer = await api.get(path, headers=AS_LINES, params=query)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    return answer.content


async def test_lines_are_taken_in_while_they_arrive(api: httpx.AsyncClient) -> None:
    body = as_lines(*build_rows(2_345))

    async def cut() -> AsyncIterator[bytes]:
        for start in range(0, len(body), 1_009):
            yield body[start : start + 1_009]

    first = await api.post(GATE, content=cut(), headers=LINES)
    assert (first.status_code, first.json()) == (
        201,
        {"added": 2_345, "replaced": 0, "unchanged": 0},
    )
    assert (await send_captions(api, body)).json()["unchanged"] == 2_345
    assert (await api.get("/streams/gate")).json()["captions"] == 2_345
    assert len((await export_captions(api)).splitlines()) == 2_345
    assert len((await export_captions(api, start=100, end=110)).splitlines()) == 11


@pytest.mark.parametrize("origin", [None, "2026-03-02T08:00:00Z"])
async def test_an_export_is_the_same_in_any_order(api: httpx.AsyncClient, origin: str | None) -> None:
    odd = {"text": "Grüße 🎉\u2028", "key": "odd", "speaker": "ann", "metadata": {"z": 1, "a": [None]}}
    captions = [
        *build_rows(50, entities=["car"]),
        odd,
        {"text": "no index", "start": 7.000001, "end": "0:08"},
    ]
    for seed, name in enumerate(("gate", "copy")):
        await api.post("/streams", json={"name": name, "start_time": origin})
        random.Random(seed).shuffle(captions)
        await send_captions(api, as_lines(*captions, *captions[:9]), f"/streams/{name}/captions")
    one = await export_captions(api)
    assert one == await export_captions(api, "/streams/copy/captions")
    for word in (b'"id"', b"recorded", b"fingerprint"):
        assert word not in one
    assert (await send_captions(api, one)).json()["unchanged"] == 52
    await send_captions(api, one, "/streams/third/captions", replace=True, wait=True)
    assert (await export_captions(api, "/streams/third/captions")) == one


@pytest.mark.parametrize(
    ("line", "status", "field"),
    [
        (b'{"text": "x", "start": "soon"}', 422, "start"),
        (b'{"text": "x", "start": 5, "end": 1}', 422, "end"),
        (b'{"text": "x", "end": 1}', 422, "start"),
        (b'{"text": "x", "index": -1}', 422, "index"),
        (b'{"txt": "x"}', 422, "text"),
        (b'{"text": "x"', 422, "body"),
        (b"[]", 422, "body"),
        (b"\xff\xfe", 422, "body"),
        (b'{"text": "x", "metadata": {"n": NaN}}', 422, None),
        (b'{"text": "' + b"x" * 1_000_000 + b'"}', 413, "line 703"),
    ],
)
async def test_a_bad_line_is_named(
    api: httpx.AsyncClient, line: bytes, status: int, field: str | None
) -> None:
    body = as_lines(*build_rows(702)) + line + b"\n" + as_lines({"text": "after"})
    refused = await send_captions(api, body)
    problem = refused.json()
    assert refused.status_code == status, refused.text
    assert (problem["added"], problem["unchanged"]) == (500, 0)
    if status == 422:
        assert problem.get("line") == 703 or problem["first_line"] <= 703 <= problem["last_line"]
    assert field is None or problem["field"] == field
    assert (await api.get("/streams/gate")).json()["captions"] == 500


async def test_what_contradicts_is_a_conflict_of_its_lines(api: httpx.AsyncClient) -> None:
    await send_captions(api, as_lines(*build_rows(600)))
    changed = [*build_rows(550), {"text": "other", "start": 555, "end": 557, "index": 555}]
    refused = await send_captions(api, as_lines(*changed))
    problem = refused.json()
    assert (refused.status_code, problem["code"]) == (409, "conflict")
    assert (problem["first_line"], problem["last_line"], problem["unchanged"]) == (501, 551, 500)
    replaced = (await send_captions(api, as_lines(*changed), replace=True)).json()
    assert (replaced["replaced"], replaced["unchanged"]) == (1, 550)


async def test_times_are_shown_in_both_forms(api: httpx.AsyncClient) -> None:
    origin = {"start_time": "2026-03-02T08:00:00Z", "time_zone": "Europe/Berlin"}
    for name, more, text in (("media", {}, "00:01:00"), ("wall", origin, "2026-03-02T09:01:00+01:00")):
        await api.post("/streams", json={"name": name, **more})
        caption = {"text": "a fox comes", "start": 60, "end": 61}
        await api.post(f"/streams/{name}/captions", json={"captions": [caption], "wait": True})
        [caption_shown] = (await api.get(f"/streams/{name}/captions")).json()["captions"]
        question = {"query": "fox", "streams": [name]}
        [moment] = (await api.post("/streams/search", json=question)).json()["moments"]
        window = (await api.post("/streams/context", json=question)).json()
        for timed in (caption_shown, moment, moment["captions"][0], window["captions"][0]):
            assert (timed["start"], timed["start_text"]) == (60.0, text)
        stream = (await api.get(f"/streams/{name}")).json()
        assert (stream["first_text"], stream["wall"]) == (text, bool(more))


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/streams", {"name": "x", "start_time": "yesterday"}),
        ("/streams", {"name": "x", "time_zone": "Mars/Olympus"}),
        ("/streams", {"name": ""}),
        ("/streams", {"name": "x", "colour": "red"}),
        (GATE, {"captions": [{"text": "x", "start": True}]}),
        (GATE, {"captions": [{"text": "x", "start": 1, "end": "x" * 101}]}),
        (GATE, {"captions": [{"text": "x"}] * 10_001}),
        (GATE, {"captions": [{"text": "x", "vector": []}]}),
        ("/streams/search", {"query": "x", "range": {"start": 2, "end": 1}}),
        ("/streams/search", {"query": "x", "range": {"from": 2}}),
        ("/streams/search", {"query": "x", "filter": {"field": "nothing", "eq": 1}}),
        ("/streams/context", {"query": "x", "max_tokens": {"max_tokens": 9, "tokenizer": "hf:/etc/passwd"}}),
        ("/streams/context", {"query": "x", "format": "pdf"}),
    ],
)
async def test_what_cannot_be_used_is_refused(api: httpx.AsyncClient, path: str, body: Any) -> None:
    await send_captions(api, as_lines(*build_rows(1)))
    refused = await api.post(path, json=body)
    assert (refused.status_code, refused.json()["code"]) == (422, "invalid_input"), refused.text


async def test_who_sees_one_stream_sees_no_other(site: Site, people: People) -> None:
    for name in ("gate", "yard"):
        await send_captions(
            people.owner,
            as_lines({"text": f"a fox at the {name}", "start": 1, "end": 2}),
            f"/streams/{name}/captions",
            wait=True,
        )
    ann = (await site.engine.people.get_user("alice")).id
    await site.engine.access.grant("default", Principal("user", ann), "viewer", source="gate")
    alice = people.alice
    assert [stream["source"]["name"] for stream in (await alice.get("/streams")).json()] == ["gate"]
    assert (await alice.get("/streams/yard")).status_code == 404
    assert (await alice.get("/streams/yard/captions", headers=AS_LINES)).status_code == 404
    assert (await alice.get("/streams/yard/stream")).status_code == 404
    moments = (await alice.post("/streams/search", json={"query": "fox"})).json()["moments"]
    assert {moment["stream"]["name"] for moment in moments} == {"gate"}
    assert (
        await alice.post("/streams/context", json={"query": "fox", "streams": ["yard"]})
    ).status_code == 404
    assert (await send_captions(alice, as_lines({"text": "x"}))).status_code == 403
    assert (await alice.delete(GATE)).status_code == 403
    assert (await people.bob.get("/streams/gate")).status_code == 404


@asynccontextmanager
async def live(url: str, **headers: str) -> AsyncIterator[AsyncIterator[str]]:
    async with (
        httpx.AsyncClient(timeout=20) as http,
        http.stream("GET", f"{url}/api/v1/streams/gate/stream", headers=headers) as response,
    ):
        assert response.status_code == 200
        yield response.aiter_text()


async def read_events(pieces: AsyncIterator[str], count: int) -> Sequence[Any]:
    text = ""
    async for piece in pieces:
        text += piece
        if len(events := parsed(text.encode())) >= count:
            return events
    return parsed(text.encode())


async def test_new_captions_come_as_events(site: Site) -> None:
    await site.engine.streams.add_captions(NewCaption("before", 0, 1), stream="gate")
    async with served(site.app) as url:
        async with live(url) as pieces:
            [ready] = await read_events(pieces, 1)
            await site.engine.streams.add_captions(NewCaption("a\nfox", 1, 2), stream="gate")
            [first] = await read_events(pieces, 1)
        change = json.loads(first.data)
        assert (ready.name, first.name, first.id) == ("ready", "caption", str(change["sequence"]))
        assert (change["caption"]["text"], change["caption"]["start_text"]) == ("a\nfox", "00:00:01")
        await site.engine.streams.add_captions(NewCaption("missed", 2, 3), stream="gate")
        for last, texts in ((first.id, ["missed"]), (ready.id, ["a\nfox", "missed"])):
            async with live(url, **{"Last-Event-ID": last}) as pieces:
                events = await read_events(pieces, 1 + len(texts))
            assert [json.loads(event.data)["caption"]["text"] for event in events[1:]] == texts


async def test_a_stream_that_is_gone_ends_its_events(site: Site) -> None:
    await site.engine.streams.add_captions(NewCaption("before", 0, 1), stream="gate")
    gate = await site.engine.streams.get("gate")
    async with served(site.app) as url, live(url) as pieces:
        await read_events(pieces, 1)
        await site.engine.collections.delete_source(gate.source.id)
        *_, last = await read_events(pieces, 2)
    assert (last.name, json.loads(last.data)["code"]) == ("error", "not_found")


async def test_only_so_many_listen(open_site: OpenSite) -> None:
    async with open_site(max_subscribers=1) as site, site.client() as api:
        await site.engine.streams.put("gate")
        async with served(site.app) as url, live(url) as pieces:
            await read_events(pieces, 1)
            refused = await api.get("/streams/gate/stream")
        assert (refused.status_code, "retry-after" in refused.headers) == (503, True)


async def test_many_send_the_same_at_once(api: httpx.AsyncClient) -> None:
    parts = [build_rows(200), build_rows(300)[100:], build_rows(300)[::-1]]
    answers = await asyncio.gather(*(send_captions(api, as_lines(*part)) for part in parts))
    assert [answer.status_code for answer in answers] == [201] * 3
    assert sum(answer.json()["added"] for answer in answers) == 300
    numbers = [json.loads(line)["index"] for line in (await export_captions(api)).splitlines()]
    assert numbers == list(range(300))


async def test_a_line_that_is_sent_twice_is_written_once(api: httpx.AsyncClient) -> None:
    once = {**LINES, "Idempotency-Key": "one"}
    first, second = [await api.post(GATE, content=as_lines(*build_rows(3)), headers=once) for _ in range(2)]
    assert (first.json()["added"], second.content) == (3, first.content)
    assert second.headers["idempotent-replayed"] == "true"
