"""What every engine must do with streams of captions."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from conspectus.errors import Conflict, InvalidInput, NotFound
from conspectus.model.captions import Caption, CaptionRange, LiveCaption, NewCaption
from conspectus.model.filter import Eq
from conspectus.model.jobs import Upload
from conspectus.model.streams import Moments, NewStream
from conspectus.text.times import parse_instant
from tests.support.engine_samples import AnyEngine, untimed

SCENES = [
    NewCaption("A red car stops at the gate.", 0, 10, index=0, entities=("red car",)),
    NewCaption("The guard walks to the car.", "00:00:10", 20.0, index=1, speaker="camera 1"),
    NewCaption("The gate opens.", "0:20", "30s", index=2, metadata={"confidence": 0.5, "box": [1, 2]}),
    NewCaption("A dog runs across the yard.", 50, 70, index=3),
    NewCaption("Rain begins to fall.", 90, 120, key="rain"),
]
NO_TIME = NewCaption("This camera is old.", key="note")
SUBTITLES = b"1\n00:00:01,000 --> 00:00:02,500\nHello there.\n\n2\n00:00:03,000 --> 00:00:04,000\nGood bye.\n"


async def texts(engine: AnyEngine, within: CaptionRange, stream: str = "gate") -> list[str]:
    """The first words of the captions of a range."""
    page = await engine.streams.list_captions(stream=stream, range=within)
    return [caption.text.split()[1] for caption in page.captions]


async def some(events: AsyncGenerator[LiveCaption, None], count: int) -> list[LiveCaption]:
    """So many of the captions that come, or those of ten seconds."""
    captions: list[LiveCaption] = []
    async with asyncio.timeout(10), aclosing(events):
        async for caption in events:
            captions.append(caption)
            if len(captions) == count:
                break
    return captions


def unclocked(moments: Moments) -> Moments:
    """Moments without what differs from call to call."""
    return replace(moments, timings={})


class StreamsContract:
    """Captions, ranges, questions and live streams: the same, whoever is asked."""

    async def test_captions_keep_what_was_said_of_them(self, engine: AnyEngine) -> None:
        """Their times in any form, who speaks, who is seen, and metadata."""
        written = await engine.streams.add_captions(SCENES, stream="gate", wait=True)
        assert [caption.outcome for caption in written] == ["added"] * len(SCENES)
        page = await engine.streams.list_captions(stream="gate")
        first, second, third = page.captions[:3]
        assert [(caption.start, caption.end) for caption in page.captions] == [
            *((0, 10), (10, 20), (20, 30), (50, 70), (90, 120))
        ]
        assert first.document.metadata == {"entities": ["red car"]}
        assert (second.document.author, second.document.sequence) == ("camera 1", 1)
        assert third.document.metadata == {"confidence": 0.5, "box": [1, 2]}
        assert page.next is None
        stream = await engine.streams.get("gate")
        assert (stream.captions, stream.wall, stream.live) == (5, False, False)
        assert stream == await engine.streams.get(stream.source.id) == (await engine.streams.list())[0]

    async def test_the_order_of_arrival_does_not_matter(self, engine: AnyEngine) -> None:
        """Nor does how often they come."""
        for scene in (SCENES[3], SCENES[0], SCENES[4]):
            await engine.streams.add_captions(scene, stream="gate")
        again = await engine.streams.add_captions([*SCENES[::-1], SCENES[0]], stream="gate")
        assert [written.outcome for written in again].count("added") == 2
        await engine.streams.add_captions(SCENES, stream="other")
        here, there = (
            [(caption.text, caption.start, caption.end, caption.document.key) for caption in page.captions]
            for page in [await engine.streams.list_captions(stream=name) for name in ("gate", "other")]
        )
        assert here == there

    async def test_another_text_is_a_conflict(self, engine: AnyEngine) -> None:
        """And nothing of the batch is written, unless it is to take the place of the old one."""
        await engine.streams.add_captions(SCENES, stream="gate")
        changed = replace(SCENES[3], text="A cat runs across the yard.")
        with pytest.raises(Conflict):
            await engine.streams.add_captions([NewCaption("x y", 200, 201), changed], stream="gate")
        assert await texts(engine, CaptionRange(40, 300)) == ["dog", "begins"]
        [written] = await engine.streams.add_captions(changed, stream="gate", replace=True)
        assert written.outcome == "replaced"
        assert await texts(engine, CaptionRange(40, 80)) == ["cat"]

    async def test_ranges_overlap_or_contain(self, engine: AnyEngine) -> None:
        """Times in any form, bounds half open, 0 honoured; indexes with both ends."""
        await engine.streams.add_captions([*SCENES, NO_TIME], stream="gate")
        for within, expected in (
            (CaptionRange("00:01:00", 120), ["dog", "begins"]),
            (CaptionRange(60, 120, contains=True), ["begins"]),
            (CaptionRange(70, "90s"), []),
            (CaptionRange(end=10), ["red"]),
            (CaptionRange(0, 0), []),
            (CaptionRange(0), ["red", "guard", "gate", "dog", "begins"]),
            (CaptionRange(parse_instant(60), "1970-01-01T00:01:40Z"), ["dog", "begins"]),
            (CaptionRange(first=1, last=2), ["guard", "gate"]),
            (CaptionRange(first=3, last=-1), ["dog"]),
            (CaptionRange(), ["red", "guard", "gate", "dog", "begins", "camera"]),
        ):
            assert (within, await texts(engine, within)) == (within, expected)
        for wrong in (CaptionRange(2, 1), CaptionRange("noon"), CaptionRange(first=2, last=1)):
            with pytest.raises(InvalidInput):
                await engine.streams.list_captions(stream="gate", range=wrong)

    async def test_pages_of_captions_go_on_where_they_ended(self, engine: AnyEngine) -> None:
        """And hold every caption once."""
        await engine.streams.add_captions([*SCENES, NO_TIME], stream="gate", wait=True)
        captions: list[Caption] = []
        after: str | None = None
        while True:
            page = await engine.streams.list_captions(stream="gate", after=after, limit=2)
            captions += page.captions
            after = page.next
            if after is None:
                break
        assert captions == [*(await engine.streams.list_captions(stream="gate")).captions]
        for limit in (0, 1_001):
            with pytest.raises(InvalidInput):
                await engine.streams.list_captions(stream="gate", limit=limit)

    async def test_a_clock_of_the_calendar(self, engine: AnyEngine) -> None:
        """Seconds count from the origin, instants are themselves; without a zone they are of the stream's."""
        stream = await engine.streams.put(
            NewStream(
                "yard/cam",
                title="Yard",
                start_time="2026-03-02T09:00:00",
                time_zone="Europe/Berlin",
                live=True,
            )
        )
        assert (stream.start_time, stream.wall, stream.live) == (
            parse_instant("2026-03-02T08:00:00Z"),
            True,
            True,
        )
        captions = [
            NewCaption("A fox comes.", 60, 90),
            NewCaption("A hen goes.", "2026-03-02T08:02:00Z", "2026-03-02T09:03:00"),
        ]
        await engine.streams.add_captions(captions, stream="yard/cam")
        page = await engine.streams.list_captions(
            stream="yard/cam", range=CaptionRange("2026-03-02T08:01:10Z", 120)
        )
        assert [(caption.start, caption.end) for caption in page.captions] == [(60, 90)]
        stored = await engine.streams.get("yard/cam")
        assert (stored.first, stored.last) == (
            parse_instant("2026-03-02T08:01:00Z"),
            parse_instant("2026-03-02T08:03:00Z"),
        )
        with pytest.raises(Conflict):
            await engine.streams.put(NewStream("yard/cam", start_time="2026-03-02T10:00:00Z"))
        ended = await engine.streams.put(NewStream("yard/cam", live=False))
        assert (ended.title, ended.live, ended.start_time) == ("Yard", False, stream.start_time)

    async def test_streams_do_not_mix(self, engine: AnyEngine) -> None:
        """Only what is asked is answered, each moment with its stream."""
        await engine.streams.add_captions(SCENES, stream="gate", wait=True)
        await engine.streams.add_captions(NewCaption("A red car leaves.", 5, 8), stream="exit", wait=True)
        for streams in (("gate",), ("exit",), ("gate", "exit"), ()):
            answer = await engine.streams.search("red car", streams=streams)
            assert {moment.stream.name for moment in answer.moments} == set(streams or ("gate", "exit"))
            for moment in answer.moments:
                assert {caption.document.source for caption in moment.captions} == {moment.stream.id}
        with pytest.raises(NotFound):
            await engine.streams.search("red car", streams=("gate", "nowhere"))
        assert await texts(engine, CaptionRange(), "exit") == ["red"]

    async def test_stream_search_is_the_same_through_every_engine(
        self, engine: AnyEngine, local: AnyEngine
    ) -> None:
        """Moments and windows, with a range, with times that the question names, with a filter."""
        await engine.streams.add_captions(SCENES, stream="gate", wait=True)
        question: dict[str, Any] = {"query": "what does the dog do?", "streams": ("gate",)}
        for fields in (
            question,
            {**question, "range": CaptionRange("00:00:00", 30), "min_similarity": 0.0},
            {**question, "query": "what happened before 0:20?"},
            {**question, "query": "in the first 15 seconds", "read_times": False, "limit": 1},
            {**question, "filter": Eq("sequence", 3)},
            {**question, "min_confidence": 0.5},
        ):
            assert unclocked(await engine.streams.search(**fields)) == unclocked(
                await local.streams.search(**fields)
            )
            for tokens in (0, 25, 400):
                there, here = [
                    await one.streams.window(max_tokens=tokens, **fields, format="guarded")
                    for one in (engine, local)
                ]
                assert untimed(there.window) == untimed(here.window)
                assert replace(there, window=here.window) == here
                assert there.window.tokens <= tokens

    async def test_a_stream_window_begins_with_the_previous_one(self, engine: AnyEngine) -> None:
        """With its captions that are in the range of the new query."""
        await engine.streams.add_captions(SCENES, stream="gate", wait=True)
        within: dict[str, Any] = {"range": CaptionRange(0, 20), "read_times": False}
        first = (await engine.streams.window("who walks?", 300, parts=True, **within)).window
        assert sum(part.tokens for part in first.parts) == 300
        fields: dict[str, Any] = {"query": "what does the dog do?", "max_tokens": 300}
        window = (await engine.streams.window(**fields, previous=first.state)).window
        assert window.cache_plan is not None and window.cache_plan.stable_tokens == first.tokens > 0
        assert "A dog runs" in window.text.removeprefix(first.text)
        none = (
            await engine.streams.window(
                **fields, previous=first.state, range=CaptionRange(10_000), read_times=False
            )
        ).window
        assert none.text == ""

    async def test_moments_below_the_minimum_confidence_are_not_found(self, engine: AnyEngine) -> None:
        """And says so; a range without a question is shown all the same."""
        await engine.streams.add_captions(SCENES, stream="gate", wait=True)
        fields: dict[str, Any] = {"query": "who won the cup?", "min_confidence": 0.99}
        unsure = await engine.streams.search(**fields)
        assert (unsure.outcome, unsure.moments) == ("no_match", ())
        assert f"confidence {unsure.confidence:.2f} is below the minimum 0.99" in unsure.notices[-1]
        assert (await engine.streams.window(max_tokens=400, **fields)).captions == ()
        ranged = {**fields, "query": "", "range": CaptionRange(0, 30)}
        in_range = await engine.streams.search(**ranged)
        assert in_range.moments and in_range.confidence == 0
        with pytest.raises(InvalidInput, match="min_confidence"):
            await engine.streams.search("who?", min_confidence=-1)

    async def test_a_range_bounds_the_answer(self, engine: AnyEngine) -> None:
        """No caption outside it is in a moment or in the window."""
        await engine.streams.add_captions(SCENES, stream="gate", wait=True)
        fields: dict[str, Any] = {"query": "car dog gate rain", "range": CaptionRange(15, 60)}
        answer = await engine.streams.search(**fields)
        keys = {caption.document.key for moment in answer.moments for caption in moment.captions}
        assert {"0", "rain"} & keys == set()
        assert keys <= {"1", "2", "3"}
        window = await engine.streams.window(max_tokens=1_000, **fields)
        assert {caption.key for caption in window.captions} <= {"1", "2", "3"}
        assert all(caption.start is not None and caption.start_text for caption in window.captions)
        assert "red car" not in window.window.text

    async def test_a_stretch_is_deleted(self, engine: AnyEngine) -> None:
        """Then the rest; the stream stays until it is deleted itself."""
        await engine.streams.add_captions([*SCENES, NO_TIME], stream="gate", wait=True)
        await engine.streams.add_captions(SCENES, stream="other")
        cleared = await engine.streams.delete_captions("gate", range=CaptionRange(15, 60), purge=True)
        assert (cleared.documents, cleared.purged) == (3, True)
        assert await texts(engine, CaptionRange()) == ["red", "begins", "camera"]
        assert (await engine.streams.delete_captions("gate")).documents == 3
        assert (await engine.streams.get("gate")).captions == 0
        gate = await engine.streams.get("gate")
        await engine.collections.delete_source(gate.source.id)
        for name in ("gate", gate.source.id):
            with pytest.raises(NotFound):
                await engine.streams.list_captions(stream=name)
        assert [stream.source.name for stream in await engine.streams.list()] == ["other"]
        assert (await engine.streams.get("other")).captions == 5

    async def test_files_are_taken_in(self, engine: AnyEngine, tmp_path: Path) -> None:
        """From a path or handed in; the same again changes nothing, and one that fails stops no other."""
        (tmp_path / "talk.srt").write_bytes(SUBTITLES)
        broken = Upload("broken.srt", b"\x00\x01\x02 nothing")
        first = await engine.streams.import_captions(
            [tmp_path / "talk.srt", broken], sentences=False, wait=True
        )
        assert (dict(first.streams), first.added) == ({"talk": 2}, 2)
        assert [name for name, _ in first.failures] == ["broken.srt"]
        again = await engine.streams.import_captions([Upload("talk.srt", SUBTITLES)], sentences=False)
        assert (again.added, again.replaced, again.unchanged) == (0, 0, 2)
        page = await engine.streams.list_captions(stream="talk")
        assert [(caption.text, caption.start, caption.end) for caption in page.captions] == [
            ("Hello there.", 1, 2.5),
            ("Good bye.", 3, 4),
        ]
        named = await engine.streams.import_captions([tmp_path / "talk.srt"], stream="both/talks")
        assert [*named.streams] == ["both/talks"]

    async def test_a_folder_may_hold_other_files(self, engine: AnyEngine, tmp_path: Path) -> None:
        """They are counted; one that is named, or that has captions which cannot be read, is a failure."""
        folder = tmp_path / "talks"
        folder.mkdir()
        (folder / "talk.srt").write_bytes(SUBTITLES)
        (folder / "broken.srt").write_bytes(b"\x00\x01\x02 nothing")
        (folder / "notes.md").write_text("# Notes")
        (folder / "still.png").write_bytes(b"\x89PNG\r\n\x1a\n")
        written = await engine.streams.import_captions([folder], sentences=False)
        assert (dict(written.streams), written.skipped) == ({"talk": 2}, 2)
        assert [name for name, _ in written.failures] == ["broken.srt"]
        named = await engine.streams.import_captions([folder / "notes.md"])
        assert ([name for name, _ in named.failures], named.skipped) == (["notes.md"], 0)
        again = await engine.streams.import_captions([folder / "notes.md"], skip_unsupported=True)
        assert (again.failures, again.skipped) == ((), 1)

    async def test_subtitle_files_that_are_added_become_streams(
        self, engine: AnyEngine, tmp_path: Path
    ) -> None:
        folder = tmp_path / "talks"
        (folder / "old").mkdir(parents=True)
        for path in (folder / "talk.srt", folder / "old" / "talk.srt"):
            path.write_bytes(SUBTITLES)
        (folder / "broken.srt").write_bytes(b"\x00\x01\x02 nothing")
        (folder / "notes.md").write_text("# Notes")
        report = await engine.documents.add_files([folder])
        assert (sorted(report.streams.values()), report.added) == ([2, 2], 5)
        assert [failure.name for failure in report.failures] == ["broken.srt"]
        again = await engine.documents.add_files([folder])
        assert (again.added, again.unchanged) == (0, 5)
        assert len(await engine.streams.list()) == 2

    async def test_new_captions_are_followed(self, engine: AnyEngine, local: AnyEngine) -> None:
        """Those of the one stream, in their order, and after a break from where it was."""
        await engine.streams.put("gate")
        await engine.streams.add_captions(SCENES[0], stream="gate")
        begun = (await engine.collections.get("default")).sequence
        await local.streams.add_captions(SCENES[1], stream="gate")
        await local.streams.add_captions(SCENES[1], stream="other")
        await local.streams.add_captions(SCENES[3:], stream="gate")
        seen = await some(engine.streams.subscribe(stream="gate", after=begun), 3)
        assert [caption.caption.document.key for caption in seen] == ["1", "3", "rain"]
        assert sorted(caption.sequence for caption in seen) == [caption.sequence for caption in seen]
        rest = await some(engine.streams.subscribe(stream="gate", after=seen[0].sequence), 2)
        assert [caption.caption.document.key for caption in rest] == ["3", "rain"]
        assert rest[0].caption.start == 50

    async def test_from_now_on_means_from_now_on(self, engine: AnyEngine, local: AnyEngine) -> None:
        """What was there before is not told; what comes meanwhile is."""
        await engine.streams.add_captions(SCENES[0], stream="gate")
        following = asyncio.create_task(some(engine.streams.subscribe(stream="gate"), 1))
        number = 0
        while not following.done():
            number += 1
            await local.streams.add_captions(
                NewCaption("Something new.", number, index=number), stream="gate"
            )
            await asyncio.sleep(0.05)
        [live] = await following
        assert live.caption.text == "Something new."
        await engine.streams.delete_captions("gate")
        with pytest.raises(NotFound):
            await some(engine.streams.subscribe(stream="nowhere"), 1)

    async def test_a_stream_that_is_gone_is_followed_no_more(self, engine: AnyEngine) -> None:
        """It ends with an error, and does not seem to be silent."""
        await engine.streams.add_captions(SCENES[0], stream="gate")
        gate = await engine.streams.get("gate")
        following = asyncio.create_task(some(engine.streams.subscribe(stream="gate", after=0), 2))
        await asyncio.sleep(0.2)
        await engine.collections.delete_source(gate.source.id)
        with pytest.raises(NotFound):
            await following

    async def test_streams_that_do_not_exist_are_not_found(self, engine: AnyEngine) -> None:
        """A stream, and a source that is none."""
        await engine.add("a page", source="notes")
        for name in ("nowhere", "notes", "a/b"):
            with pytest.raises(NotFound):
                await engine.streams.get(name)
            with pytest.raises(NotFound):
                await engine.streams.list_captions(stream=name)
            with pytest.raises(NotFound):
                await engine.streams.delete_captions(name)
        with pytest.raises(Conflict):
            await engine.streams.add_captions(SCENES, stream="notes")
        assert await engine.streams.list() == []
