"""Summaries by jobs, and summaries of live streams."""

import random
import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.films import asked_about, indexed, scenes, told

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import (
    ChatAuthFailed,
    ChatBadAnswer,
    ChatNotConfigured,
    InvalidInput,
    NotFound,
    PermissionDenied,
)
from conspectus.model.access import Principal
from conspectus.model.captions import CaptionRange, NewCaption
from conspectus.model.jobs import Job
from conspectus.model.results import Message
from conspectus.model.streams import NewStream
from conspectus.testing.chat_models import ScriptedChatModel

SETTINGS = replace(Settings(), embedder="none", log_level="critical", job_backoff_ms=1, job_grace_seconds=1)
REQUEST = {"stream": "film"}


@asynccontextmanager
async def open_engine(path: Path, model: ScriptedChatModel | None) -> AsyncIterator[Engine]:
    async with conspectus.open(path / "data", settings=SETTINGS, chat_model=model) as engine:
        yield engine


async def wait_for_jobs(engine: Engine) -> list[Job]:
    """All jobs, when they have ended."""
    jobs = (await engine.jobs.list()).jobs
    return [await engine.jobs.wait(job.id) for job in jobs]


async def test_a_job_makes_a_summary_and_does_not_hold_it(tmp_path: Path) -> None:
    model = ScriptedChatModel(told)
    request = {**REQUEST, "range": CaptionRange("00:00", 720.0), "instructions": "who", "schema": None}
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.add_captions(indexed(*range(18)), stream="film")
        job = await engine.summaries.start_job(**request)
        ended = await engine.jobs.wait(job.id)
        assert (ended.kind, ended.state, ended.done, ended.total) == ("summary", "succeeded", 2, 2)
        assert ended.result == {
            "outcome": "complete", "by": "scripted:model", "captions": 12, "batches": 2, "calls": 3,
            "failures": [],
        }  # fmt: skip
        summary = await engine.summaries.get(**request)
        assert summary is not None
        assert "scene 11" in summary.text
        assert "scene" not in repr((ended.result, ended.arguments))


async def test_a_job_that_fails_says_why_and_runs_again(tmp_path: Path) -> None:
    model = ScriptedChatModel(told, fails=ChatAuthFailed("scripted", "no"))
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.add_captions(indexed(0), stream="film")
        ended = await engine.jobs.wait((await engine.summaries.start_job(**REQUEST)).id)
        assert (ended.state, ended.code) == ("failed", "LLM_AUTH_FAILED")
        model.fails = None
        again = await engine.jobs.wait((await engine.jobs.retry(ended.id)).id)
        assert again.state == "succeeded"
        with pytest.raises(NotFound):
            await engine.summaries.start_job("nothing")


async def test_a_job_names_the_batches_that_failed(tmp_path: Path) -> None:
    def says(messages: Sequence[Message]) -> list[str]:
        if "scene 3." in messages[-1].content:
            raise ChatBadAnswer("scripted", "no")
        return told(messages)

    async with open_engine(tmp_path, ScriptedChatModel(says)) as engine:
        await engine.streams.add_captions(indexed(*range(12)), stream="film")
        ended = await engine.jobs.wait((await engine.summaries.start_job(**REQUEST)).id)
        assert ended.result is not None
        assert ended.result["failures"] == [{"batch": 0, "code": "LLM_BAD_RESPONSE"}]
        assert ended.result["outcome"] == "partial"


async def test_a_job_can_be_cancelled(tmp_path: Path) -> None:
    model = ScriptedChatModel(["x"], hangs=True)
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.add_captions(indexed(0), stream="film")
        job = await engine.summaries.start_job(**REQUEST)
        await model.hanging.wait()
        assert (await engine.jobs.cancel(job.id)).state == "cancelled"
    assert model.open == 0
    assert model.broken_off == 1


async def test_only_who_sees_a_stream_has_it_summarised(tmp_path: Path) -> None:
    async with open_engine(tmp_path, ScriptedChatModel(told)) as owner:
        await owner.collections.create("wiki")
        await owner.streams.add_captions(indexed(0), stream="film", collection="wiki")
        stream = await owner.streams.get("film", collection="wiki")
        request = {**REQUEST, "collection": "wiki"}
        await owner.summaries.summarize(**request)
        ann = await owner.people.create_user("ann")
        engine = owner.as_person(await owner.keys.authenticate((await owner.keys.create("ann")).secret))
        for ask in (engine.summaries.summarize, engine.summaries.get, engine.summaries.start_job):
            with pytest.raises(NotFound):
                await ask(**request)  # type: ignore[operator]
        await owner.access.grant("wiki", Principal("user", ann.id), "viewer", source=stream.source.id)
        assert (await engine.summaries.summarize(**request)).calls == 0
        with pytest.raises(PermissionDenied):
            await engine.summaries.set_live(**request)
        job = await engine.summaries.start_job(**request)
        assert (await engine.jobs.wait(job.id)).state == "succeeded"


async def test_each_batch_of_a_live_stream_is_summarised_when_it_is_full(tmp_path: Path) -> None:
    model = ScriptedChatModel(told)
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.put(NewStream("film", live=True))
        await engine.summaries.set_live(**REQUEST)
        await wait_for_jobs(engine)
        for number in (8, 6, 7, 1, 0, 2, 4, 3):
            await engine.streams.add_captions(indexed(number), stream="film")
        await wait_for_jobs(engine)
        assert model.asked == []
        await engine.streams.add_captions(indexed(5), stream="film")
        await wait_for_jobs(engine)
        assert asked_about(model) == [scenes(0, 1, 2, 3, 4, 5)]
        await engine.streams.put(NewStream("film", live=False))
        await wait_for_jobs(engine)
        assert asked_about(model)[1:] == [scenes(6, 7, 8), scenes(*range(9))]
        summary = await engine.summaries.get(**REQUEST)
        assert summary is not None
        assert summary.outcome == "complete"
        await engine.streams.add_captions(indexed(*range(9, 30)), stream="film")
        await wait_for_jobs(engine)
        assert len(model.asked) == 3


async def test_a_live_stream_without_indexes_is_summarised_by_time(tmp_path: Path) -> None:
    model = ScriptedChatModel(told)
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.put(NewStream("film", live=True))
        await engine.summaries.set_live(**REQUEST, batch_size=3)
        for number in range(8):
            await engine.streams.add_captions(
                NewCaption(f"scene {number}.", 10.0 * number, 10.0 * number + 9), stream="film"
            )
            await wait_for_jobs(engine)
        assert asked_about(model) == [scenes(0, 1, 2), scenes(3, 4, 5)]
        await engine.streams.put(NewStream("film", live=False))
        await wait_for_jobs(engine)
        assert asked_about(model)[2:] == [scenes(6, 7), scenes(*range(8))]


async def test_what_is_there_is_summarised_at_once_and_no_more_after_none(tmp_path: Path) -> None:
    model = ScriptedChatModel(told)
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.add_captions(indexed(*range(7)), stream="film")
        await engine.summaries.set_live(**REQUEST)
        await wait_for_jobs(engine)
        assert len(model.asked) == 1
        await engine.summaries.stop_live("film")
        await engine.streams.add_captions(indexed(*range(7, 12)), stream="film")
        await engine.streams.put(NewStream("film", live=False))
        await wait_for_jobs(engine)
        assert len(model.asked) == 1
        with pytest.raises(InvalidInput):
            await engine.summaries.set_live(**REQUEST, extractive=True)
    async with open_engine(tmp_path, None) as engine:
        with pytest.raises(ChatNotConfigured):
            await engine.summaries.set_live(**REQUEST)


async def test_captions_that_come_late_in_a_live_stream_are_in_the_end(tmp_path: Path) -> None:
    model = ScriptedChatModel(told)
    coming = [NewCaption(f"scene {number}.", 10.0 * number, 10.0 * number + 9) for number in range(40)]
    chance = random.Random(5)
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.put(NewStream("film", live=True))
        await engine.summaries.set_live(**REQUEST)
        arriving = sorted(range(40), key=lambda number: number + chance.uniform(0, 9))
        for number in arriving:
            await engine.streams.add_captions(
                [coming[number], coming[chance.choice(arriving[:1])]], stream="film"
            )
        await engine.streams.put(NewStream("film", live=False))
        await wait_for_jobs(engine)
        summary = await engine.summaries.get(**REQUEST)
        assert summary is not None
        assert summary.outcome == "complete"
        assert sum(batch.captions for batch in summary.batches) == 40
        inside = [scene for batch in summary.batches for scene in re.findall(r"scene \d+", batch.text)]
        assert sorted(inside) == sorted(scenes(*range(40)))
        assert all(f"scene {number}" in summary.text for number in range(40))


async def test_what_stands_waits_for_a_model(tmp_path: Path) -> None:
    request = {**REQUEST, "batch_size": 3}
    async with open_engine(tmp_path, ScriptedChatModel(told)) as engine:
        await engine.streams.add_captions(indexed(0, 1), stream="film")
        await engine.summaries.set_live(**request)
        await wait_for_jobs(engine)
    async with open_engine(tmp_path, None) as engine:
        await engine.streams.add_captions(indexed(2, 3), stream="film")
        assert len(await wait_for_jobs(engine)) == 1
        await engine.streams.put(NewStream("film", live=False))
        last = (await wait_for_jobs(engine))[0]
        assert (last.state, last.code) == ("failed", "LLM_NOT_CONFIGURED")
    model = ScriptedChatModel(told)
    async with open_engine(tmp_path, model) as engine:
        again = await engine.jobs.wait((await engine.jobs.retry(last.id)).id)
        assert again.state == "succeeded"
        *batches, together = asked_about(model)
        assert sorted(batches) == [scenes(0, 1, 2), scenes(3)]
        assert together == scenes(0, 1, 2, 3)
