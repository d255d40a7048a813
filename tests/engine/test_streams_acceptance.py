"""Acceptance tests of streams, a class for each group of requirements."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.web_server import Answer, ScriptedServer

import conspectus
from conspectus import Engine, Eq, Settings
from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.alerts import NewAlert
from conspectus.model.captions import CaptionRange, NewCaption
from conspectus.model.stream_events import NewEvent
from conspectus.ports import Vectors
from conspectus.testing.embedders import HashedEmbedder

SETTINGS = replace(Settings(), log_level="critical", embedder="none")
MINUTES = ("a red van stops", "nobody is there", "a dog barks", "rain falls")


class Backwards:
    """A reranker that turns every order around; of more than three it judges the last three alone."""

    model = "backwards"

    async def rerank(self, query: str, texts: Sequence[str], *, limit: int) -> Sequence[tuple[int, float]]:
        last = range(len(texts) - 1, -1, -1)[:3][:limit]
        return [(number, 1 - rank / 10) for rank, number in enumerate(last)]

    async def close(self) -> None:
        pass


class Waiting(HashedEmbedder):
    """Embeds nothing until it is let."""

    def __init__(self) -> None:
        super().__init__()
        self.let = asyncio.Event()

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        await self.let.wait()
        return await super().embed_documents(texts)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=SETTINGS, embedder=HashedEmbedder()) as opened:
        yield opened


async def film_stream(engine: Engine, *texts: str, stream: str = "cam", seconds: float = 60.0) -> list[str]:
    """Captions one after the other; their ids."""
    captions = [
        NewCaption(text, seconds * n, seconds * (n + 1), index=n) for n, text in enumerate(texts or MINUTES)
    ]
    return [
        str(caption.id) for caption in await engine.streams.add_captions(captions, stream=stream, wait=True)
    ]


class TestWordsAndVectors:
    async def test_what_both_find_is_one_hit_with_both_scores(self, engine: Engine) -> None:
        first, *_ = await film_stream(engine)
        for retrievers in (("keyword",), ("vector",)):
            assert first in {
                hit.document.id for hit in (await engine.retrieve("red van", retrievers=retrievers)).hits
            }
        documents = await engine.retrieve("red van")
        [hit] = [hit for hit in documents.hits if hit.document.id == first]
        assert hit is documents.hits[0]
        assert hit.bm25 > 0 and hit.similarity > 0.5
        assert {"keyword", "vector"} <= hit.parts.keys()
        assert sum(hit.parts.values()) == pytest.approx(hit.score) and hit.score > 0.5

    async def test_a_caption_beside_a_better_one_gains(self, engine: Engine) -> None:
        far = ["nothing of it"] * 8
        ids = await film_stream(engine, "a van", *far, "a van", "a red van stops here", *far)
        documents = {hit.document.id: hit for hit in (await engine.retrieve("red van stops", limit=50)).hits}
        alone, beside = documents[ids[0]], documents[ids[9]]
        assert (alone.bm25, alone.similarity) == (beside.bm25, beside.similarity)
        assert beside.score > alone.score
        assert beside.parts["neighbors"] > alone.parts["neighbors"]

    @pytest.mark.parametrize("prompt", ["", " ", "the of and", "?!", "🎉", "\0", "zzz"])
    async def test_without_vectors_and_words_there_is_nothing_and_no_fault(
        self, tmp_path: Path, prompt: str
    ) -> None:
        async with conspectus.open(tmp_path / "bare", settings=SETTINGS) as engine:
            await film_stream(engine)
            retrieval = await engine.streams.search(prompt)
            assert (retrieval.outcome, retrieval.moments) == ("no_match", ())
            window = await engine.streams.window(prompt, 100, streams=("cam",))
            assert (window.window.outcome, window.window.text) == ("no_match", "")


class TestReranking:
    async def test_its_answer_reorders_and_what_it_leaves_out_follows(self, tmp_path: Path) -> None:
        judge = Backwards()
        opened = conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder(), reranker=judge)
        async with opened as engine:
            await film_stream(engine, "van", "van van red", "a red van")
            before = [hit.document.id for hit in (await engine.retrieve("red van", rerank=False)).hits]
            after = await engine.retrieve("red van")
            assert [hit.document.id for hit in after.hits] == before[::-1]
            assert after.plan["reranker"] == "backwards"
            await film_stream(engine, *(f"red van {n}" for n in range(5)), stream="yard")
            before = [hit.document.id for hit in (await engine.retrieve("red van", rerank=False)).hits]
            after = await engine.retrieve("red van")
            assert [hit.document.id for hit in after.hits] == before[:-4:-1] + before[:-3]

    @pytest.mark.parametrize("body", [b"", b"2,1,0", b'{"results": [{"index": 99}]}', b'[{"index": "x"}]'])
    async def test_garbage_keeps_the_order_and_is_said_to_be_so(self, tmp_path: Path, body: bytes) -> None:
        async with ScriptedServer({"/rerank": Answer(body, type="application/json")}) as server:
            settings = replace(SETTINGS, reranker=f"{server.base}/rerank")
            async with conspectus.open(tmp_path, settings=settings, embedder=HashedEmbedder()) as engine:
                await film_stream(engine, "van", "van van red", "a red van")
                before = await engine.retrieve("red van", rerank=False)
                after = await engine.retrieve("red van")
                assert after.hits == before.hits
                assert after.notices[-1].startswith("not reranked")
            assert server.requests


class TestNotReady:
    async def test_a_question_before_all_is_embedded_says_so(self, tmp_path: Path) -> None:
        """No vector is there yet, and no word is the same: nothing is found, but nothing is claimed."""
        embedder = Waiting()
        async with conspectus.open(tmp_path, settings=SETTINGS, embedder=embedder) as engine:
            await engine.streams.add_captions(NewCaption("vans of red", 0, 60), stream="cam")
            await engine.streams.add_captions(NewCaption("a dog", 0, 60), stream="yard")
            query = {"query": "lorry", "streams": ("cam",), "min_similarity": -1.0}
            early = await engine.streams.search(**query)
            assert (early.outcome, early.moments) == ("no_match", ())
            assert any("not embedded yet" in notice for notice in early.notices)
            window = await engine.streams.window(max_tokens=100, **query)
            assert window.window.notices == early.notices
            embedder.let.set()
            await engine.documents.wait_until_embedded()
            late = await engine.streams.search(**query)
            assert (late.outcome, late.notices) == ("found", ())

    async def test_only_what_is_asked_has_to_be_ready(self, tmp_path: Path) -> None:
        embedder = Waiting()
        async with conspectus.open(tmp_path, settings=SETTINGS, embedder=embedder) as engine:
            await engine.streams.put("cam")
            await engine.streams.add_captions(NewCaption("a dog", 0, 60), stream="yard")
            retrieval = await engine.streams.search("lorry", streams=("cam",))
            assert (retrieval.outcome, retrieval.notices) == ("no_match", ())
            embedder.let.set()


class TestTimes:
    async def test_zero_is_a_time_and_a_number(self, engine: Engine) -> None:
        await film_stream(engine)
        address = {"stream": "cam"}
        for within in (CaptionRange(0, 60), CaptionRange("0", "00:01:00"), CaptionRange(first=0, last=0)):
            [only] = (await engine.streams.list_captions(**address, range=within)).captions
            assert (only.start, only.text) == (0.0, MINUTES[0])
            request = {"stream": "cam", "range": within, "extractive": True}
            assert MINUTES[1] not in (await engine.summaries.summarize(**request)).text
            retrieval = await engine.streams.search("", streams=("cam",), range=within)
            assert [(moment.start, moment.end) for moment in retrieval.moments] == [(0.0, 60.0)]
        assert (await engine.streams.list_captions(**address, range=CaptionRange(0, 0))).captions == ()
        await engine.events.add(NewEvent("stop", 0, 0), **address)
        assert [event.start for event in await engine.events.list(**address, range=CaptionRange(0, 1))] == [
            0.0
        ]

    async def test_seconds_since_1970_and_instants_are_the_same_everywhere(self, engine: Engine) -> None:
        epoch, iso = 1_714_557_600, "2024-05-01T10:00:00Z"
        await engine.streams.add_captions(
            NewCaption("by number", epoch, str(epoch + 60)), stream="cam", wait=True
        )
        await engine.streams.add_captions(
            NewCaption("by instant", iso, "2024-05-01T12:01:00+02:00"), stream="cam"
        )
        await engine.events.add([NewEvent("stop", epoch), NewEvent("stop", iso)], stream="cam")
        await engine.documents.wait_until_embedded()
        ranges = [CaptionRange(epoch, epoch + 1), CaptionRange(iso, "2024-05-01T10:00:01Z")]
        ranges += [CaptionRange(str(epoch), "2024-05-01T05:00:01-05:00")]
        answers = []
        for within in ranges:
            captions = (await engine.streams.list_captions(stream="cam", range=within)).captions
            assert {caption.text for caption in captions} == {"by number", "by instant"}
            events = await engine.events.list(stream="cam", range=within)
            summary = await engine.summaries.summarize("cam", range=within, extractive=True)
            retrieval = await engine.streams.search("", streams=("cam",), range=within)
            answers.append((captions, events, summary, retrieval.moments))
        assert len(answers[0][1]) == 1
        assert answers[0] == answers[1] == answers[2]

    async def test_indexes_end_where_they_say(self, engine: Engine) -> None:
        await film_stream(engine)
        request = {"stream": "cam", "range": CaptionRange(first=2, last=1), "extractive": True}
        for work in (
            engine.summaries.summarize(**request),
            engine.summaries.get(**request),
            engine.streams.list_captions(stream="cam", range=request["range"]),
        ):
            with pytest.raises(InvalidInput, match="last"):
                await work
        rest = {**request, "range": CaptionRange(first=2, last=-1)}
        assert [caption.captions for caption in (await engine.summaries.summarize(**rest)).batches] == [2]


class TestStreams:
    async def test_nothing_crosses_unasked(self, engine: Engine) -> None:
        for name in ("cam", "yard"):
            await film_stream(engine, f"a red van at the {name}", stream=name)
            await engine.events.add(NewEvent("stop", 1, 2, f"{name} stop", (name,)), stream=name)
        expected = (
            await engine.streams.list_captions(stream="cam"),
            await engine.streams.search("red van yard stop", streams=("cam",), limit=50),
            await engine.streams.window("red van yard stop", 500, streams=("cam",)),
            await engine.summaries.summarize("cam", extractive=True),
            await engine.events.list(stream="cam"),
            await engine.events.count_entities(stream="cam"),
            await engine.events.entity_timeline("yard", stream="cam"),
        )
        assert "at the yard" not in repr(expected) and "yard stop" not in repr(expected)
        assert list(await engine.events.count_entities(stream="cam")) == ["cam"]
        both = await engine.streams.window("red van", 500, streams=("cam", "yard"))
        for name in ("cam", "yard"):
            assert f"a red van at the {name}" in both.window.text
            assert name in both.window.text.replace(f"at the {name}", "")

    @pytest.mark.parametrize(
        "ask",
        [
            lambda engine, name: engine.streams.get(name),
            lambda engine, name: engine.streams.list_captions(stream=name),
            lambda engine, name: engine.streams.delete_captions(name),
            lambda engine, name: engine.streams.search("van", streams=("cam", name)),
            lambda engine, name: engine.streams.window("van", 100, streams=(name,)),
            lambda engine, name: engine.events.list(stream=name),
            lambda engine, name: engine.events.count_entities(stream=name),
            lambda engine, name: engine.events.entity_timeline("van", stream=name),
            lambda engine, name: engine.summaries.summarize(name),
            lambda engine, name: engine.summaries.get(name),
            lambda engine, name: engine.summaries.start_job(name),
            lambda engine, name: engine.alerts.put(NewAlert("vans", "van", streams=(name,))),
            lambda engine, name: anext(engine.streams.subscribe(stream=name)),
        ],
    )
    async def test_a_stream_that_is_not_there_is_an_error_that_names_it(
        self, engine: Engine, ask: Callable[[Engine, str], Awaitable[object]]
    ) -> None:
        await film_stream(engine)
        await engine.add("a van", source="notes", wait=True)
        for name in ("nowhere", "notes", "Cam"):
            with pytest.raises(NotFound, match=name):
                await ask(engine, name)
        assert [stream.source.name for stream in await engine.streams.list()] == ["cam"]

    async def test_nothing_is_left_of_a_stream_that_is_deleted(self, engine: Engine) -> None:
        await film_stream(engine)
        await film_stream(engine, "a red van elsewhere", stream="yard")
        await engine.events.add(NewEvent("stop", 1, 2, "the red van stops"), stream="cam")
        receipt = await engine.collections.delete_source((await engine.streams.get("cam")).source.id)
        assert receipt.documents == 5
        [numbers] = (await engine.maintenance.status(collection="default")).collections
        assert (numbers.documents, numbers.chunks, numbers.sources) == (1, 1, 1)
        retrieval = await engine.streams.search("red van", limit=50)
        assert {moment.stream.name for moment in retrieval.moments} == {"yard"}

    async def test_what_was_cleared_can_be_filled_again(self, engine: Engine) -> None:
        await film_stream(engine)
        with pytest.raises(Conflict):
            await engine.streams.add_captions(NewCaption("another", 0, 60, index=0), stream="cam")
        assert (await engine.streams.delete_captions("cam")).documents == 4
        assert (await engine.summaries.summarize("cam")).outcome == "empty"
        await film_stream(engine, "another")
        assert "another" in (await engine.summaries.summarize("cam")).text


class TestTexts:
    async def test_a_long_text_is_whole_wherever_it_is_read(self, engine: Engine) -> None:
        text = f"It begins. {'Rain falls on the roof. ' * 5_000}It ends with a zebra."
        await film_stream(engine, text, "short")
        [caption, _] = (await engine.streams.list_captions(stream="cam")).captions
        assert caption.text == text
        documents = await engine.retrieve("zebra", filter=Eq("kind", "caption"))
        assert "zebra" in documents.hits[0].chunk.text
        [moment] = (await engine.streams.search("zebra", streams=("cam",), limit=1)).moments
        assert moment.captions[0].text == text
        alert = await engine.alerts.put(NewAlert("zebra", "zebra roof"))
        assert alert.query == "zebra roof"

    async def test_what_no_window_has_room_for_is_cut_and_said_to_be(self, engine: Engine) -> None:
        await film_stream(engine, "a zebra. " * 2_000)
        window = (await engine.streams.window("zebra", 100, streams=("cam",))).window
        assert 0 < window.tokens <= 100
        assert [candidate.status for candidate in window.trace if candidate.status != "included"]

    async def test_tokens_are_counted_and_never_nothing(self, engine: Engine) -> None:
        await film_stream(engine, *("🦓" for _ in range(200)), seconds=1.0)
        window = (await engine.streams.window("what?", 50, streams=("cam",), range=CaptionRange(0))).window
        assert 0 < window.tokens <= 50
        assert window.text.count("🦓") < 50
