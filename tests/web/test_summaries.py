"""Summaries of streams over HTTP, with a chat model behind them."""

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

import conspectus
from conspectus import RemoteEngine, bootstrap
from conspectus.errors import ChatAuthFailed, ChatBadAnswer, NotFound
from conspectus.model.captions import CaptionRange
from conspectus.settings import Settings
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.web.app import application
from conspectus.web.logs import API, logger
from tests.files import holding
from tests.films import asked_about, indexed, scenes, told
from tests.support.served import served

SETTINGS = Settings(embedder="none", log_level="critical", job_backoff_ms=1, job_grace_seconds=1)
PLACE = "/streams/film/summary"


@asynccontextmanager
async def running_site(
    path: Path, model: ScriptedChatModel
) -> AsyncIterator[tuple[httpx.AsyncClient, RemoteEngine]]:
    """A server whose stream `film` has nine scenes, with a client of each kind."""
    async with bootstrap.open(path / "data", settings=SETTINGS, chat_model=model) as engine:
        await engine.streams.add_captions(indexed(*range(9)), stream="film")
        app = application(engine, SETTINGS, log=logger("critical", io.StringIO()))
        async with (
            served(app) as url,
            httpx.AsyncClient(base_url=url + API) as client,
            conspectus.connect(url, settings=SETTINGS) as remote,
        ):
            yield client, remote


async def test_a_summary_is_made_once_and_then_read(tmp_path: Path) -> None:
    model = ScriptedChatModel(told)
    async with running_site(tmp_path, model) as (client, _):
        assert (await client.get(PLACE)).status_code == 404
        created = await client.post(PLACE, json={})
        assert created.status_code == 200, created.text
        assert created.json()["calls"] == 3
        first = created.json()["batches"][0]
        assert (first["start_text"], first["end_text"]) == ("00:00:00", "00:06:00")
        read = await client.get(PLACE)
        assert read.json() == {**created.json(), "calls": 0}
        assert len(model.asked) == 3


async def test_a_summary_has_no_key_and_leaves_no_copy(tmp_path: Path) -> None:
    model = ScriptedChatModel(["unmistakable"])
    async with running_site(tmp_path, model) as (client, engine):
        for _ in range(2):
            answer = await client.post(PLACE, json={}, headers={"Idempotency-Key": "k"})
            assert (answer.status_code, "idempotent-replayed" in answer.headers) == (200, False)
        await engine.streams.delete_captions("film", purge=True)
    assert holding(tmp_path / "data", "unmistakable") == []


async def test_a_job_is_answered_at_once_and_the_summary_read_later(tmp_path: Path) -> None:
    async with running_site(tmp_path, ScriptedChatModel(told)) as (client, _):
        started = await client.post(f"{PLACE}/start", json={"range": {"start": "00:00", "end": 360}})
        assert started.status_code == 202
        job_path = started.headers["location"].removeprefix(API)
        job = (await client.get(job_path, params={"wait": 30})).json()
        assert (job["state"], job["kind"], job["result"]["batches"]) == ("succeeded", "summary", 1)
        read = await client.get(PLACE, params={"start": "00:00", "end": "360"})
        assert read.json()["text"] == f"[{', '.join(scenes(0, 1, 2, 3, 4, 5))}]"


@pytest.mark.parametrize(
    "body",
    [
        {"range": {"first": 2, "last": 1}},
        {"range": {"first": 0, "last": -2}},
        {"range": {"start": "00:05:00", "end": 3}},
        {"range": {"start": "soon"}},
        {"batch_size": 0},
        {"mode": "quick"},
        {"schema": {"type": "nothing"}},
        {"schema": []},
        {"sentence": 3},
    ],
)
async def test_what_cannot_be_asked_is_refused(tmp_path: Path, body: dict[str, Any]) -> None:
    model = ScriptedChatModel(told)
    async with running_site(tmp_path, model) as (client, _):
        answer = await client.post(PLACE, json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_input")
        assert model.asked == []


async def test_to_the_end_is_minus_one(tmp_path: Path) -> None:
    model = ScriptedChatModel(told)
    async with running_site(tmp_path, model) as (client, _):
        created = await client.post(PLACE, json={"range": {"first": 7, "last": -1}})
        assert created.status_code == 200
        assert asked_about(model) == [scenes(7, 8)]


async def test_failures_are_problems_and_never_empty_summaries(tmp_path: Path) -> None:
    model = ScriptedChatModel([""])
    async with running_site(tmp_path, model) as (client, remote):
        empty = await client.post(PLACE, json={})
        assert (empty.status_code, empty.json()["code"]) == (502, "LLM_BAD_RESPONSE")
        with pytest.raises(ChatBadAnswer):
            await remote.summaries.summarize("film")
        model.says, model.fails = told, ChatAuthFailed("scripted", "key sk-secret")
        refused = await client.post(PLACE, json={})
        assert (refused.status_code, refused.json()["code"]) == (502, "LLM_AUTH_FAILED")
        assert "sk-secret" not in refused.text


async def test_a_client_asks_for_exactly_the_same(tmp_path: Path) -> None:
    schema = {"type": "object", "required": ["who"], "properties": {"who": {"type": "string"}}}
    model = ScriptedChatModel([json.dumps({"who": "J\u00fcrgen & <co>"})])
    request = {
        "stream": "film",
        "range": CaptionRange("00:01:00", 400.0, contains=True),
        "mode": "refine",
        "batch_size": 2,
        "instructions": "who? \u00fc&=#",
        "schema": schema,
    }
    async with running_site(tmp_path, model) as (_, remote):
        summary = await remote.summaries.summarize(**request)
        assert summary.data == {"who": "J\u00fcrgen & <co>"}
        assert await remote.summaries.get(**request) == replace(summary, calls=0)
        with pytest.raises(NotFound):
            await remote.summaries.get(**{**request, "instructions": "else"})


async def test_a_live_stream_is_kept_summarised(tmp_path: Path) -> None:
    model = ScriptedChatModel(told)
    async with running_site(tmp_path, model) as (client, remote):
        answer = await client.put(f"{PLACE}/live", json={"batch_size": 3})
        assert answer.status_code == 204
        for job in (await remote.jobs.list()).jobs:
            await remote.jobs.wait(job.id)
        assert sorted(asked_about(model)) == [scenes(0, 1, 2), scenes(3, 4, 5), scenes(6, 7, 8)]
        assert (await client.delete(f"{PLACE}/live")).status_code == 204
