"""What every engine must do with summaries of streams, here or on a server without a chat model."""

from typing import Any

import pytest

from conspectus import Engine, RemoteEngine
from conspectus.errors import ChatNotConfigured, InvalidInput, NotFound
from conspectus.model.captions import CaptionRange, NewCaption
from conspectus.model.streams import NewStream

AnEngine = Engine | RemoteEngine
CAPTIONS = tuple(
    NewCaption(f"Scene {number} shows a {thing}.", 60.0 * number, 60.0 * number + 60, index=number)
    for number, thing in enumerate(("ship", "storm", "harbour", "ship", "storm"))
)
REQUEST: dict[str, Any] = {"stream": "r\u00f6hre/1", "collection": "w\u00efki", "sentences": 3}


class EngineSummariesContract:
    """Summaries without a model; with one, the same code is tested where models are."""

    async def filled(self, engine: AnEngine) -> None:
        """A stream with a slash in its name."""
        await engine.collections.create(REQUEST["collection"])
        await engine.streams.add_captions(
            CAPTIONS, stream=REQUEST["stream"], collection=REQUEST["collection"], wait=True
        )

    async def test_captions_are_chosen_in_their_order(self, engine: AnEngine) -> None:
        await self.filled(engine)
        summary = await engine.summaries.summarize(**REQUEST)
        assert (summary.outcome, summary.by, summary.calls, summary.data) == (
            "complete",
            "extractive",
            0,
            None,
        )
        lines = summary.text.splitlines()
        assert len(lines) == 3
        assert lines == sorted(lines)
        assert all(line.startswith("[00:0") for line in lines)
        assert [(batch.start, batch.end, batch.captions) for batch in summary.batches] == [(0.0, 300.0, 5)]
        assert await engine.summaries.get(**REQUEST) == summary

    async def test_ranges_are_kept_to(self, engine: AnEngine) -> None:
        await self.filled(engine)
        for within in (CaptionRange("00:01:00", 180.0), CaptionRange(first=1, last=2)):
            summary = await engine.summaries.summarize(**REQUEST, range=within)
            assert [batch.captions for batch in summary.batches] == [2]
        to_the_end = {**REQUEST, "range": CaptionRange(first=3, last=-1)}
        assert [batch.captions for batch in (await engine.summaries.summarize(**to_the_end)).batches] == [2]
        for wrong in (CaptionRange(first=2, last=1), CaptionRange("00:02", "00:01")):
            with pytest.raises(InvalidInput):
                await engine.summaries.summarize(**REQUEST, range=wrong)
            with pytest.raises(InvalidInput):
                await engine.summaries.get(**REQUEST, range=wrong)

    async def test_nothing_to_summarise_is_said_to_be_so(self, engine: AnEngine) -> None:
        await engine.streams.put(NewStream("empty"))
        summary = await engine.summaries.summarize("empty")
        assert (summary.outcome, summary.text, summary.batches) == ("empty", "", ())
        nowhere: dict[str, Any] = {"stream": "nothing"}
        with pytest.raises(NotFound):
            await engine.summaries.summarize(**nowhere)
        with pytest.raises(NotFound):
            await engine.summaries.get(**nowhere)
        with pytest.raises(NotFound):
            await engine.summaries.start_job(**nowhere)

    async def test_a_job_reports_what_it_did(self, engine: AnEngine) -> None:
        await self.filled(engine)
        ended = await engine.jobs.wait((await engine.summaries.start_job(**REQUEST)).id)
        assert (ended.kind, ended.state) == ("summary", "succeeded")
        assert ended.result is not None
        assert ended.result["outcome"] == "complete"
        assert "Scene" not in repr(ended.result)

    async def test_wrong_requests_are_refused(self, engine: AnEngine) -> None:
        await self.filled(engine)
        for wrong in ({**REQUEST, "batch_size": 0}, {**REQUEST, "schema": {"type": "nothing"}}):
            with pytest.raises(InvalidInput):
                await engine.summaries.summarize(**wrong)
            with pytest.raises(InvalidInput):
                await engine.summaries.get(**wrong)

    async def test_without_a_model_nothing_is_kept_summarised(self, engine: AnEngine) -> None:
        await self.filled(engine)
        where = {"stream": REQUEST["stream"], "collection": REQUEST["collection"]}
        with pytest.raises(ChatNotConfigured):
            await engine.summaries.set_live(**REQUEST)
        await engine.summaries.stop_live(**where)
