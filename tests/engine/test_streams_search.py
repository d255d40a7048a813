"""Searches of streams: times in the query, permissions, and the captions around a hit."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, Eq, Settings
from conspectus.errors import InvalidInput, NotFound, TooLarge
from conspectus.model.access import Person, Principal
from conspectus.model.captions import CaptionRange, NewCaption
from conspectus.model.stream_events import NewEvent
from conspectus.model.streams import Moments, NewStream
from conspectus.testing.embedders import HashedEmbedder

SAYINGS = (
    "the red car stops",
    "a dog barks",
    "rain begins to fall",
    "the door opens",
    "people leave the room",
)


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=Settings(), embedder=HashedEmbedder()) as opened:
        yield opened


def make_captions(number: int, *, seconds: float = 10.0, about: str = "camera") -> list[NewCaption]:
    """One after the other, each of other words, and every fifth of the same."""
    return [
        NewCaption(f"{about} {n}: {SAYINGS[n % 5]}", n * seconds, (n + 1) * seconds, index=n)
        for n in range(number)
    ]


async def search(engine: Engine, prompt: str, *streams: str, **more: object) -> Moments:
    return await engine.streams.search(prompt, streams=streams, **more)  # type: ignore[arg-type]


def times_of(response: Moments) -> list[tuple[float, float]]:
    return [(moment.start, moment.end) for moment in response.moments]


@pytest.mark.parametrize(
    ("prompt", "time_range", "first", "last"),
    [
        ("What happened before 1:00?", "until 00:01:00 (before 1:00)", 0, 60),
        ("What happened after 4:00?", "from 00:04:00 on (after 4:00)", 240, 300),
        ("What happens around 0:10?", "00:00:00 to 00:00:41 (around 0:10)", 0, 50),
        ("What happens in the first minute?", "00:00:00 to 00:01:00 (in the first minute)", 0, 60),
        ("What happens between 1:05 and 1:35", "00:01:05 to 00:01:35 (between 1:05 and 1:35)", 60, 100),
    ],
)
async def test_a_question_of_nothing_but_time_gets_that_time(
    engine: Engine, prompt: str, time_range: str, first: float, last: float
) -> None:
    await engine.streams.add_captions(make_captions(30), stream="cam", wait=True)
    response = await search(engine, prompt, "cam")
    assert response.plan["time_range"] == time_range
    [moment] = response.moments
    assert (moment.start, moment.end) == (first, last)
    assert [caption.start for caption in moment.captions] == [
        first + 10.0 * n for n in range(len(moment.captions))
    ]


async def test_of_a_long_time_before_the_last_of_it_is_shown(engine: Engine) -> None:
    await engine.streams.add_captions(make_captions(400), stream="cam", wait=True)
    response = await search(engine, "What happened before 1:00:00?", "cam")
    [moment] = response.moments
    assert (moment.start, moment.end) == (2_600, 3_600)
    window = await engine.streams.window("What happened before 1:00:00?", 60, streams=("cam",))
    assert "camera 359:" in window.window.text
    assert "camera 300:" not in window.window.text


async def test_what_is_asked_is_looked_for_in_that_time_only(engine: Engine) -> None:
    await engine.streams.add_captions(make_captions(60), stream="cam", wait=True)
    response = await search(engine, "Where does the door open in the first two minutes?", "cam", limit=20)
    assert response.plan["time_range"] == "00:00:00 to 00:02:00 (in the first two minutes)"
    assert response.moments
    assert all(moment.start < 120 for moment in response.moments)
    free = await search(
        engine, "Where does the door open in the first two minutes?", "cam", limit=20, read_times=False
    )
    assert "time_range" not in free.plan
    assert max(moment.start for moment in free.moments) > 120


async def test_a_given_range_goes_before_what_the_question_says(engine: Engine) -> None:
    await engine.streams.add_captions(make_captions(60), stream="cam", wait=True)
    within = CaptionRange("3:05", 215, contains=True)
    response = await search(engine, "the door opens, in the first minute", "cam", range=within)
    assert response.plan["time_range"] == "00:03:05 to 00:03:35"
    assert {caption.document.key for moment in response.moments for caption in moment.captions} == {
        "19",
        "20",
    }
    response = await search(engine, "the door", "cam", range=CaptionRange(first=5, last=7))
    numbers = {caption.document.sequence for moment in response.moments for caption in moment.captions}
    assert numbers <= {5, 6, 7}
    assert numbers


async def test_a_range_outside_of_the_stream_finds_nothing_and_says_so(engine: Engine) -> None:
    await engine.streams.add_captions(make_captions(10), stream="cam", wait=True)
    response = await search(engine, "What happened after 50:00?", "cam")
    assert (response.outcome, response.moments) == ("no_match", ())
    assert response.plan["time_range"].startswith("from 00:50:00 on")
    window = await engine.streams.window("What happened after 50:00?", 100, streams=("cam",))
    assert (window.window.outcome, window.window.text, window.captions) == ("no_match", "", ())


async def test_captions_between_those_found_come_along(engine: Engine) -> None:
    texts = ["zebra crossing", "hm", "and so on", "zebra crossing again", *["nothing at all"] * 20]
    await engine.streams.add_captions(
        [NewCaption(text, 5.0 * n, 5.0 * n + 5) for n, text in enumerate(texts)], stream="v", wait=True
    )
    response = await search(engine, "zebra crossing", "v", limit=1)
    [moment] = response.moments
    assert [caption.text for caption in moment.captions][:4] == texts[:4]
    assert sum(moment.parts.values()) == pytest.approx(moment.score)
    window = await engine.streams.window("zebra crossing", 120, streams=("v",))
    assert window.window.tokens <= 120
    first, last = window.window.text.find("zebra crossing"), window.window.text.find("zebra crossing again")
    assert -1 < first < window.window.text.find("and so on") < last


async def test_what_several_captions_say_together_goes_before_one_that_repeats_itself(engine: Engine) -> None:
    distinct = ["Lorries wait.", "They are red.", "A bridge is near."]
    for name, texts in (("told", distinct), ("again", ["Lorries wait.", "Lorries wait.", "Lorries wait."])):
        captions = [NewCaption(text, 50.0 * n, 50.0 * n + 50) for n, text in enumerate(texts)]
        await engine.streams.add_captions(captions, stream=name, wait=True)
    response = await search(engine, "the red lorry on a bridge in fog", "told", "again", limit=9)
    assert response.moments[0].stream.name == "told"
    shares = {moment.stream.name: moment.parts["words around"] for moment in response.moments}
    assert shares["told"] == pytest.approx(0.25)
    assert 0.0 < shares["again"] < 0.15
    assert all(moment.parts["like it around"] for moment in response.moments)


async def test_what_comes_along_is_within_what_was_asked_for(engine: Engine) -> None:
    spoken = [NewCaption(f"zebra {n}", n, n + 1, speaker="Ann" if n % 2 else "Bob") for n in range(8)]
    await engine.streams.add_captions(spoken, stream="v", wait=True)
    response = await search(engine, "zebra", "v", filter=Eq("author", "Ann"))
    assert {caption.document.author for moment in response.moments for caption in moment.captions} == {"Ann"}
    response = await search(engine, "zebra", "v", range=CaptionRange(2, 4))
    assert {caption.text for moment in response.moments for caption in moment.captions} == {
        "zebra 2",
        "zebra 3",
    }


async def test_streams_do_not_mix_and_several_are_labelled(engine: Engine) -> None:
    for name in ("north", "south", "west"):
        await engine.streams.add_captions(make_captions(10, about=name), stream=name, wait=True)
    await engine.add("north: the red car stops in a document", source="notes")
    response = await search(engine, "the red car stops", "north", limit=20)
    assert {moment.stream.name for moment in response.moments} == {"north"}
    response = await search(engine, "the red car stops", "north", "south", limit=20)
    assert {moment.stream.name for moment in response.moments} == {"north", "south"}
    window = await engine.streams.window("the red car stops", 400, streams=("north", "south"))
    assert {stream.name for stream in window.streams} == {"north", "south"}
    assert "north" in window.window.text
    assert "in a document" not in window.window.text
    response = await search(engine, "the red car stops", limit=20)
    assert {moment.stream.name for moment in response.moments} == {"north", "south", "west"}


async def test_each_stream_reads_a_time_on_its_own_clock(engine: Engine) -> None:
    await engine.streams.put(
        NewStream("gate", start_time="2026-03-02T12:00:00+01:00", time_zone="Europe/Berlin")
    )
    await engine.streams.add_captions(make_captions(120, about="gate", seconds=60), stream="gate", wait=True)
    await engine.streams.add_captions(make_captions(120, about="tape"), stream="tape", wait=True)
    response = await search(engine, "What happens at 12:30?", "gate", "tape")
    by_stream = {moment.stream.name: moment for moment in response.moments}
    assert (by_stream["gate"].start, by_stream["tape"].start) == (1_800.0, 750.0)
    assert "gate: 2026-03-02 12:30" in response.plan["time_range"]
    assert "tape: 00:12:30" in response.plan["time_range"]


async def test_streams_without_the_time_that_is_named_are_left_out(engine: Engine) -> None:
    await engine.streams.put(NewStream("gate", start_time="2026-03-02T12:00:00Z"))
    await engine.streams.add_captions(make_captions(20, about="gate", seconds=60), stream="gate", wait=True)
    for number in range(7):
        await engine.streams.add_captions(make_captions(20, about="tape"), stream=f"tape {number}", wait=True)
    at = datetime(2026, 3, 3, 12, tzinfo=UTC)
    response = await search(engine, "What happened yesterday?", at=at)
    assert {moment.stream.name for moment in response.moments} == {"gate"}
    assert "2026-03-02 00:00:00 to 2026-03-03" in response.plan["time_range"]
    assert response.plan["skipped_streams"] == (
        "tape 0, tape 1, tape 2, tape 3, tape 4, 2 more (no such time on the clock)"
    )
    response = await search(engine, "What happened yesterday?", "tape 1", at=at)
    assert "skipped_streams" not in response.plan
    assert response.notices[-1].startswith("'yesterday' looks like a time, but was not read")


async def test_a_time_that_is_not_understood_is_a_notice(engine: Engine) -> None:
    await engine.streams.put(NewStream("gate", start_time="2026-03-02T12:00:00Z"))
    await engine.streams.add_captions(make_captions(20, about="gate", seconds=60), stream="gate", wait=True)
    at = datetime(2026, 3, 10, 12, tzinfo=UTC)
    response = await search(engine, "Who came through the gate last week?", at=at)
    assert "2026-03-02 00:00:00 to 2026-03-09" in response.plan["time_range"]
    assert response.notices == ()
    response = await search(engine, "Who came through the gate on 03/02/2026?", at=at)
    assert [notice.partition(" looks")[0] for notice in response.notices] == ["'03/02/2026'"]
    window = await engine.streams.window("Who came through the gate on 03/02/2026?", 200, at=at)
    assert window.window.notices == response.notices


async def test_equal_stretches_of_streams_are_told_once(engine: Engine) -> None:
    for number in range(40):
        await engine.streams.add_captions(make_captions(10 + number % 8), stream=f"tape {number:02}")
    plan = (await search(engine, "What happens in the last ten seconds?")).plan["time_range"]
    assert plan.startswith("tape 00, tape 08, tape 16, tape 24, tape 32: from 00:01:30 on")
    assert plan.endswith("; and 3 other stretches")


async def test_the_last_minutes_of_a_live_stream_go_back_from_now(engine: Engine) -> None:
    now = datetime(2026, 3, 2, 12, tzinfo=UTC)
    await engine.streams.put(NewStream("live", start_time=now - timedelta(hours=1), live=True))
    await engine.streams.add_captions(make_captions(58, seconds=60), stream="live", wait=True)
    response = await search(engine, "What happened in the last ten minutes?", "live", at=now)
    assert times_of(response) == [(3_000.0, 3_480.0)]


async def test_events_are_found_beside_captions(engine: Engine) -> None:
    await engine.streams.add_captions(make_captions(10), stream="cam", wait=True)
    await engine.events.add(NewEvent("collision", 42, 45, "two lorries collide"), stream="cam")
    response = await search(engine, "lorries collide", "cam", limit=1)
    assert "two lorries collide" in [caption.text for caption in response.moments[0].captions]


async def test_nobody_is_told_of_streams_that_they_may_not_see(engine: Engine) -> None:
    for name in ("open", "closed"):
        await engine.streams.add_captions(make_captions(20, about=name), stream=name, wait=True)
    guest = await engine.people.create_user("guest")
    source = (await engine.streams.get("open")).source
    await engine.access.grant("default", Principal("user", guest.id), "viewer", source=source.id)
    theirs = engine.as_person(Person("guest", False, guest.id))
    response = await search(theirs, "the red car stops", limit=50)
    assert {moment.stream.name for moment in response.moments} == {"open"}
    window = await theirs.streams.window("What happens in the first minute?", 500)
    assert {stream.name for stream in window.streams} == {"open"}
    assert "closed" not in str(window)
    with pytest.raises(NotFound):
        await search(theirs, "the red car", "closed")
    assert [stream.source.name for stream in await theirs.streams.list()] == ["open"]


async def test_captions_without_times_are_found_in_windows_only(engine: Engine) -> None:
    await engine.streams.add_captions(
        [NewCaption("a zebra without a time"), *make_captions(5)], stream="v", wait=True
    )
    window = await engine.streams.window("zebra", 100, streams=("v",))
    assert "a zebra without a time" in window.window.text
    response = await search(engine, "zebra", "v")
    assert "a zebra without a time" not in str(response.moments)


async def test_what_is_asked_wrongly_is_refused(engine: Engine) -> None:
    await engine.streams.add_captions(make_captions(5), stream="v", wait=True)
    with pytest.raises(InvalidInput, match="end"):
        await search(engine, "x", "v", range=CaptionRange(20, 10))
    with pytest.raises(InvalidInput, match="last"):
        await search(engine, "x", "v", range=CaptionRange(first=4, last=2))
    with pytest.raises(InvalidInput, match="limit"):
        await search(engine, "x", "v", limit=-1)
    with pytest.raises(TooLarge):
        await search(engine, "x" * 10_001, "v")
    with pytest.raises(NotFound):
        await search(engine, "x", "nothing")
    assert (await search(engine, "", "v")).outcome == "no_match"
    assert times_of(await search(engine, " ", "v", range=CaptionRange(first=3))) == [(30.0, 50.0)]
    assert (await search(engine, "the red car", "v", limit=0)).moments == ()


async def test_a_budget_holds_to_the_token(engine: Engine) -> None:
    await engine.streams.add_captions(make_captions(50), stream="v", wait=True)
    for tokens in (0, 1, 17, 40, 333):
        for renderer in ("text", "xml", "json", "messages", "guarded"):
            question = {"query": "the dog barks", "streams": ("v",)}
            response = await engine.streams.window(max_tokens=tokens, **question, format=renderer)
            assert response.window.tokens <= tokens
            again = await engine.streams.window(max_tokens=tokens, **question, format=renderer)
            assert again.window.text == response.window.text
