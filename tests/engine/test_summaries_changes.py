"""Captions that change or are deleted while a summary is made, and the deletion of summaries."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.films import asked_about, indexed, scenes, told

import conspectus
from conspectus import Engine, Settings
from conspectus.errors import PreconditionFailed
from conspectus.model.captions import CaptionRange, NewCaption
from conspectus.model.results import Message
from conspectus.testing.chat_models import ScriptedChatModel

SETTINGS = replace(Settings(), embedder="none", log_level="critical", job_backoff_ms=1)
REQUEST = {"stream": "film"}
TABLES = ("summaries", "summary_captions", "summary_parts", "summary_borders", "standing_summaries")


@asynccontextmanager
async def open_engine(path: Path, model: ScriptedChatModel) -> AsyncIterator[Engine]:
    async with conspectus.open(path / "data", settings=SETTINGS, chat_model=model) as engine:
        yield engine


def rows(path: Path) -> list[int]:
    """How many rows each table of summaries has."""
    database = sqlite3.connect(path / "data" / "records.sqlite")
    try:
        return [int(database.execute(f"SELECT count(*) FROM {name}").fetchone()[0]) for name in TABLES]
    finally:
        database.close()


@pytest.mark.parametrize("mode", ["batches", "refine"])
async def test_a_caption_deleted_meanwhile_is_in_no_summary(tmp_path: Path, mode: str) -> None:
    request = {**REQUEST, "mode": mode}
    model = ScriptedChatModel(told, hangs=True)
    async with open_engine(tmp_path, model) as engine:
        written = await engine.streams.add_captions(indexed(*range(12)), stream="film")
        task = asyncio.ensure_future(engine.summaries.summarize(**request))
        await model.hanging.wait()
        await engine.documents.delete(written[3].id)
        model.hangs = False
        model.released.set()
        summary = await task
        assert summary.outcome == "complete"
        assert "scene 3," not in summary.text
        assert [batch.captions for batch in summary.batches] == [5, 6]
        assert await engine.summaries.get(**request) == replace(summary, calls=0)


async def test_captions_that_never_stay_as_they_are_end_with_an_error(tmp_path: Path) -> None:
    model = ScriptedChatModel()
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.add_captions(indexed(0), stream="film")
        loop = asyncio.get_running_loop()
        pending: list[asyncio.Task[object]] = []

        def says(messages: Sequence[Message]) -> list[str]:
            changed = replace(indexed(0)[0], text=f"scene {len(pending) + 1}.")
            pending.append(
                loop.create_task(engine.streams.add_captions(changed, stream="film", replace=True))
            )
            model.hangs, model.after = True, 0
            pending[-1].add_done_callback(lambda _: model.released.set())
            model.released.clear()
            return told(messages)

        model.says = says
        with pytest.raises(PreconditionFailed):
            await engine.summaries.summarize(**REQUEST)
        await asyncio.gather(*pending)
        assert len(model.asked) == 3


async def test_nothing_is_left_of_summaries_when_their_stream_goes(tmp_path: Path) -> None:
    async with open_engine(tmp_path, ScriptedChatModel(told)) as engine:
        for stream in ("film", "other"):
            untimed = [NewCaption(f"scene {number}.") for number in range(13)]
            await engine.streams.add_captions(untimed, stream=stream)
            await engine.summaries.set_live(stream)
        for job in (await engine.jobs.list()).jobs:
            await engine.jobs.wait(job.id)
        await engine.summaries.summarize(**REQUEST)
        assert await asyncio.to_thread(rows, tmp_path) == [6, 25, 3, 5, 2]
        film = await engine.streams.get("film")
        await engine.collections.delete_source(film.source.id)
        assert await asyncio.to_thread(rows, tmp_path) == [2, 12, 0, 2, 1]
        await engine.collections.delete("default")
        assert await asyncio.to_thread(rows, tmp_path) == [0, 0, 0, 0, 0]


async def test_what_is_not_used_any_more_is_cleared_away(tmp_path: Path) -> None:
    async with open_engine(tmp_path, ScriptedChatModel(told)) as engine:
        for number in range(20):
            await engine.streams.add_captions(NewCaption(f"scene {number}.", float(number)), stream="film")
            await engine.summaries.summarize(**REQUEST)
        assert (await asyncio.to_thread(rows, tmp_path))[:4] == [5, 20, 4, 4]


async def test_a_late_caption_in_every_batch_redoes_each_once(tmp_path: Path) -> None:
    model = ScriptedChatModel(told)
    even = [NewCaption(f"scene {number}.", float(number)) for number in range(0, 72, 2)]
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.add_captions(even, stream="film")
        await engine.summaries.summarize(**REQUEST)
        model.asked.clear()
        for number in range(5, 72, 12):
            await engine.streams.add_captions(NewCaption(f"scene {number}.", float(number)), stream="film")
            summary = await engine.summaries.summarize(**REQUEST)
            assert summary.calls == 2
        assert [scenes_of_batch for scenes_of_batch in asked_about(model) if len(scenes_of_batch) == 7] == [
            scenes(*sorted([*range(start, start + 12, 2), start + 5])) for start in range(0, 72, 12)
        ]


async def test_a_range_by_time_does_not_move_the_batches_of_the_whole(tmp_path: Path) -> None:
    model = ScriptedChatModel(told)
    timed = [NewCaption(f"scene {number}.", float(number), number + 0.5) for number in range(24)]
    async with open_engine(tmp_path, model) as engine:
        await engine.streams.add_captions(timed, stream="film")
        summary = await engine.summaries.summarize(**REQUEST)
        await engine.summaries.summarize(**REQUEST, range=CaptionRange(3, 20))
        assert await engine.summaries.get(**REQUEST) == replace(summary, calls=0)
