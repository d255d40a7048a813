"""Streams: clocks, captions that are added again, and files that are imported again."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.repetitions import tries

import conspectus
from conspectus import Engine, Eq, Settings
from conspectus.errors import Conflict, InvalidInput, NotFound, PermissionDenied, TooLarge
from conspectus.model.access import Person
from conspectus.model.captions import Caption, CaptionRange, NewCaption
from conspectus.model.ids import UserId
from conspectus.model.jobs import Upload
from conspectus.model.streams import NewStream

SUBTITLES = "1\n00:00:01,000 --> 00:00:02,500\nOne.\n\n2\n00:00:03,000 --> 00:00:04,000\nTwo.\n"


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path / "data", settings=Settings(embedder="none")) as opened:
        yield opened


async def list_captions(engine: Engine, stream: str = "v", **within: object) -> list[Caption]:
    page = await engine.streams.list_captions(stream=stream, range=CaptionRange(**within))  # type: ignore[arg-type]
    return list(page.captions)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [
        (0, 2, (0.0, 2.0)),
        ("9:00", "10:00", (540.0, 600.0)),
        ("100.5", "200", (100.5, 200.0)),
        ("1h2m3s", None, (3_723.0, 3_723.0)),
        ("1970-01-01T00:00:20Z", 21, (20.0, 21.0)),
        (datetime(1970, 1, 1, 0, 1, tzinfo=UTC), "01:01", (60.0, 61.0)),
    ],
)
async def test_times_are_numbers_and_not_strings(
    engine: Engine, start: object, end: object, expected: tuple[float, float]
) -> None:
    await engine.streams.add_captions(NewCaption("x", start, end), stream="v")  # type: ignore[arg-type]
    [caption] = await list_captions(engine)
    assert (caption.start, caption.end) == expected
    assert len(await list_captions(engine, start=expected[0], end=expected[0] + 1)) == 1


async def test_epoch_seconds_and_instants_are_one_clock(engine: Engine) -> None:
    captions = [NewCaption("a", 1_767_625_200, 1_767_625_210), NewCaption("b", "2026-01-05T15:00:00Z")]
    await engine.streams.add_captions(captions, stream="v")
    first, second = await list_captions(engine)
    assert first.start == second.start == 1_767_625_200
    assert (await engine.streams.get("v")).wall


async def test_an_origin_is_where_seconds_begin_and_stays(engine: Engine) -> None:
    await engine.streams.put(NewStream("v", start_time="2026-01-05 09:00", time_zone="Europe/Berlin"))
    captions = [
        NewCaption("a", 90),
        NewCaption("b", "2026-01-05T08:02:00Z"),
        NewCaption("c", "2026-01-05 09:03"),
    ]
    await engine.streams.add_captions(captions, stream="v")
    assert [caption.start for caption in await list_captions(engine)] == [90.0, 120.0, 180.0]
    stream = await engine.streams.put(NewStream("v", title="Gate"))
    assert (stream.start_time, stream.title, stream.time_zone) == (
        datetime(2026, 1, 5, 8, tzinfo=UTC),
        "Gate",
        "Europe/Berlin",
    )
    with pytest.raises(Conflict, match="start time"):
        await engine.streams.put(NewStream("v", start_time="2026-01-06"))
    with pytest.raises(InvalidInput, match="zone"):
        await engine.streams.put(NewStream("w", time_zone="Atlantis"))


@pytest.mark.parametrize(
    "wrong",
    [
        NewCaption("x", 5, 4),
        NewCaption("x", None, 4),
        NewCaption("x", "soon"),
        NewCaption("x", -1),
        NewCaption("x", 1e300),
        NewCaption("x", 1, metadata={"a": object()}),
    ],
)
async def test_what_cannot_be_is_refused_and_nothing_of_its_batch_is_kept(
    engine: Engine, wrong: NewCaption
) -> None:
    with pytest.raises(InvalidInput):
        await engine.streams.add_captions([NewCaption("fine", 1), wrong], stream="v")
    assert await engine.documents.count() == 0


async def test_the_same_again_is_nothing_new(engine: Engine) -> None:
    caption = NewCaption("x", 1, 2, speaker="Ann")
    outcomes = [
        caption.outcome for caption in await engine.streams.add_captions([caption, caption], stream="v")
    ]
    assert outcomes == ["added", "unchanged"]
    [again] = await engine.streams.add_captions(caption, stream="v")
    assert again.outcome == "unchanged"
    others = [
        NewCaption("x", 1, 3, speaker="Ann"),
        NewCaption("x", 1, 2, speaker="Bob"),
        NewCaption("y", 1, 2),
    ]
    assert [caption.outcome for caption in await engine.streams.add_captions(others, stream="v")] == [
        "added"
    ] * 3


async def test_an_index_says_one_thing(engine: Engine) -> None:
    await engine.streams.add_captions(NewCaption("x", 1, 2, index=7), stream="v")
    for other in (NewCaption("y", 1, 2, index=7), NewCaption("x", 1, 3, index=7), NewCaption("x", index=7)):
        with pytest.raises(Conflict, match="with another text or time"):
            await engine.streams.add_captions([NewCaption("new", 9), other], stream="v")
        with pytest.raises(Conflict):
            await engine.streams.add_captions(
                [NewCaption("z", 5, index=8), NewCaption("w", 5, index=8)], stream="v"
            )
    assert [caption.text for caption in await list_captions(engine)] == ["x"]
    [written] = await engine.streams.add_captions(NewCaption("y", 1, 2, index=7), stream="v", replace=True)
    assert written.outcome == "replaced"
    assert [caption.text for caption in await list_captions(engine)] == ["y"]


async def test_only_a_stream_is_one(engine: Engine) -> None:
    await engine.collections.get_or_create_source("notes")
    for attempt in (
        engine.streams.put("notes"),
        engine.streams.add_captions(NewCaption("x", 1), stream="notes"),
    ):
        with pytest.raises(Conflict, match="kind manual"):
            await attempt
    with pytest.raises(NotFound):
        await engine.streams.get("notes")
    assert await engine.streams.list() == []


async def test_clearing_a_stretch_leaves_the_rest(engine: Engine) -> None:
    await engine.streams.add_captions([NewCaption(f"{n}", n, n + 1, index=n) for n in range(10)], stream="v")
    await engine.streams.add_captions(NewCaption("other", 1), stream="w")
    assert (await engine.streams.delete_captions("v", range=CaptionRange(2.5, 4))).documents == 2
    assert [caption.text for caption in await list_captions(engine)] == list("01456789")
    assert (await engine.streams.delete_captions("v")).documents == 8
    assert [stream.captions for stream in await engine.streams.list()] == [0, 1]
    assert (await engine.collections.delete_source((await engine.streams.get("v")).source.id)).documents == 0
    assert [stream.source.name for stream in await engine.streams.list()] == ["w"]


async def test_a_file_that_changed_is_followed(engine: Engine) -> None:
    report = await engine.streams.import_captions([Upload("talk.srt", SUBTITLES.encode())])
    assert (dict(report.streams), report.added) == ({"talk": 2}, 2)
    again = await engine.streams.import_captions([Upload("talk.srt", SUBTITLES.encode())])
    assert (again.added, again.replaced, again.unchanged) == (0, 0, 2)
    shorter = SUBTITLES.split("\n\n")[0].replace("One", "Uno")
    await engine.streams.import_captions([Upload("talk.srt", shorter.encode())])
    assert [
        (caption.text, caption.start, caption.end) for caption in await list_captions(engine, "talk")
    ] == [("Uno.", 1.0, 2.5)]


async def test_files_of_one_stream_stay_apart(engine: Engine) -> None:
    other = SUBTITLES.replace("One", "Eins").replace("Two", "Zwei").replace("00:00:0", "00:01:0")
    files = [Upload("a.srt", SUBTITLES.encode()), Upload("b.srt", other.encode())]
    report = await engine.streams.import_captions(files, stream="v")
    assert (dict(report.streams), report.failures) == ({"v": 4}, ())
    assert [caption.text for caption in await list_captions(engine)] == ["One.", "Two.", "Eins.", "Zwei."]


async def test_a_file_of_many_videos_makes_a_stream_for_each(engine: Engine) -> None:
    lines = "".join(f'{{"video": "{name}", "start": 1, "end": 2, "text": "x"}}\n' for name in "ab")
    report = await engine.streams.import_captions([Upload("all.jsonl", lines.encode())])
    assert dict(report.streams) == {"a": 1, "b": 1}


async def test_files_of_one_name_do_not_take_each_others_place(engine: Engine, tmp_path: Path) -> None:
    for folder, word in (("a", "One"), ("b", "Eins")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "talk.srt").write_text(SUBTITLES.replace("One", word))
    report = await engine.streams.import_captions([tmp_path, Upload("../../c/talk.srt", SUBTITLES.encode())])
    assert dict(report.streams) == {"a/talk": 2, "b/talk": 2, "c/talk": 2}
    twice = [tmp_path / "a" / "talk.srt", tmp_path / "b" / "talk.srt"]
    report = await engine.streams.import_captions(twice)
    assert (dict(report.streams), [name for name, _ in report.failures]) == ({"talk": 2}, [str(twice[1])])


async def test_a_file_that_fails_stops_no_other(engine: Engine) -> None:
    files = [Upload("bad.srt", b"\x00\x01 nothing"), Upload("good.srt", SUBTITLES.encode())]
    report = await engine.streams.import_captions(files)
    assert dict(report.streams) == {"good": 2}
    assert [name for name, _ in report.failures] == ["bad.srt"]


async def test_files_have_a_limit(tmp_path: Path) -> None:
    limited = Settings(embedder="none", max_file_bytes=20)
    async with conspectus.open(tmp_path / "small", settings=limited) as engine:
        report = await engine.streams.import_captions([Upload("a.srt", SUBTITLES.encode())])
        assert report.streams == {}
        assert "20" in report.failures[0][1]
        with pytest.raises(TooLarge):
            await engine.streams.add_captions(NewCaption("x" * 50_000_001, 1), stream="v")


async def test_only_the_owner_names_paths(engine: Engine, tmp_path: Path) -> None:
    (tmp_path / "talk.srt").write_text(SUBTITLES)
    stranger = engine.as_person(Person("stranger", False, UserId("stranger")))
    with pytest.raises(PermissionDenied):
        await stranger.streams.import_captions([tmp_path / "talk.srt"])
    assert (await engine.streams.import_captions([tmp_path])).streams["talk"] == 2


async def test_metadata_can_be_searched_by(engine: Engine) -> None:
    caption = NewCaption("x", 1, entities=("Ann", "car"), metadata={"camera": {"id": 4}})
    await engine.streams.add_captions(caption, stream="v")
    assert await engine.documents.count(filter=Eq(("camera", "id"), 4)) == 1
    assert await engine.documents.count(filter=Eq(("entities",), "car")) == 1


TIMES = st.tuples(st.integers(0, 50), st.integers(0, 20))


@settings(max_examples=tries(25), deadline=None)
@given(
    st.lists(TIMES, min_size=1, max_size=12),
    st.permutations(range(12)),
    st.integers(0, 50),
    st.integers(0, 30),
)
async def test_a_range_is_what_overlaps_whatever_the_order(
    tmp_path_factory: pytest.TempPathFactory,
    spans: list[tuple[int, int]],
    order: list[int],
    start: int,
    length: int,
) -> None:
    folder = tmp_path_factory.mktemp("store")
    captions = [NewCaption(f"{n}", begin, begin + long) for n, (begin, long) in enumerate(spans)]
    end = start + length + 1
    async with conspectus.open(folder, settings=Settings(embedder="none")) as engine:
        for index in order:
            await engine.streams.add_captions(captions[index : index + 1] or captions[:1], stream="v")
        listed = await list_captions(engine, start=start, end=end)
        inside = await list_captions(engine, start=start, end=end, contains=True)
    overlapping = {
        f"{n}"
        for n, (begin, long) in enumerate(spans)
        if begin < end and (begin + long > start or begin == start)
    }
    assert {caption.text for caption in listed} == overlapping
    assert {caption.text for caption in inside} == {
        f"{n}" for n, (begin, long) in enumerate(spans) if start <= begin < end and begin + long <= end
    }
    assert [caption.start for caption in listed] == sorted(caption.start or 0.0 for caption in listed)
