"""Windows and time ranges of video contexts, over our store and over another one."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.video_contexts import ListStore, SubjectEmbeddings, minute

from conspectus.errors import InvalidInput, UnknownTokenizer
from conspectus.facades.video import ContextManager, ContextStore, InMemoryContextStore


@pytest.fixture(params=["ours", "somebody else's"])
async def store(request: pytest.FixtureRequest) -> AsyncIterator[ContextStore]:
    store = InMemoryContextStore() if request.param == "ours" else ListStore()
    yield store
    await store.close()


@pytest.fixture
def manager(store: ContextStore) -> ContextManager:
    return ContextManager(SubjectEmbeddings(), store)


async def add_timed(manager: ContextManager, *times: Any) -> None:
    for start, end in times:
        await manager.add_document(f"{start}..{end}", {"start_time": start, "end_time": end})


async def test_tokens_are_counted_as_before(manager: ContextManager) -> None:
    assert (manager._max_context_tokens, manager._estimate_tokens("fourteen chars")) == (100_000, 3)
    await manager.add_document("A car. " * 4, minute(0))
    window = await manager.get_context_window("car")
    assert (window.total_tokens, window.truncated) == (7, False)


async def test_tokens_can_be_counted_exactly(store: ContextStore) -> None:
    manager = ContextManager(SubjectEmbeddings(), store, tokenizer="o200k_base")
    await manager.add_document("車が来る。 car 🎉", minute(0))
    assert (await manager.get_context_window("car")).total_tokens > 5
    with pytest.raises(UnknownTokenizer):
        ContextManager(SubjectEmbeddings(), store, tokenizer="nobody's")


async def test_a_subclass_may_count_otherwise(store: ContextStore) -> None:
    class Counting(ContextManager):
        def _estimate_tokens(self, text: str) -> int:
            return 60

    manager = Counting(SubjectEmbeddings(), store, max_context_tokens=100)
    await manager.add_documents_batch(["car", "car"], [{}, {}])
    window = await manager.get_context_window("car")
    assert (len(window.documents), window.total_tokens, window.truncated) == (1, 60, True)


async def test_what_does_not_fit_is_passed_over(manager: ContextManager) -> None:
    facts = [minute(number) for number in range(3)]
    await manager.add_documents_batch(["car " * 400, "car dog", "car rain"], facts)
    window = await manager.get_context_window("car", max_tokens=40)
    assert [document.text for document in window.documents] == ["car dog", "car rain"]
    assert (window.total_tokens, window.truncated) == (3, True)
    everything = await manager.get_context_window("", max_tokens=40, include_all=True)
    assert [document.text for document in everything.documents] == ["car dog", "car rain"]


async def test_no_tokens_mean_nothing(manager: ContextManager) -> None:
    assert (await manager.get_context_window("car", 0)).truncated is False
    await manager.add_document("car", minute(0))
    window = await manager.get_context_window("car", max_tokens=0)
    assert (window.documents, window.total_tokens, window.truncated) == ([], 0, True)
    with pytest.raises(InvalidInput, match="max_tokens"):
        await manager.get_context_window("car", max_tokens=-1)
    with pytest.raises(InvalidInput, match="max_tokens"):
        ContextManager(SubjectEmbeddings(), ListStore(), max_context_tokens=-1)


async def test_windows_stay_in_their_stream(manager: ContextManager) -> None:
    await manager.add_documents_batch(["car A", "car B"], [minute(0, "a"), minute(0, "b", lens="wide")])
    for options in ({"stream_id": "b"}, {"filter_metadata": {"lens": "wide"}}):
        for everything in (True, False):
            window = await manager.get_context_window("car", include_all=everything, **options)
            assert [document.text for document in window.documents] == ["car B"]


async def test_a_filter_starves_nothing() -> None:
    async with ContextManager(SubjectEmbeddings()) as manager:
        near = [minute(0, "loud", frame=frame) for frame in range(300)]
        await manager.add_documents_batch(["car car"] * 300, near)
        rare = await manager.add_document("a car in the rain", minute(1, "quiet"))
        documents = await manager.retrieve("car", filter_metadata={"stream_id": "quiet"})
        assert [document["id"] for document in documents] == [rare]
        documents = await manager.retrieve("car", 3, filter_metadata={"frame": 299})
        assert [document["metadata"]["frame"] for document in documents] == [299]


async def test_three_minutes_two_of_them_asked_for(manager: ContextManager) -> None:
    await add_timed(manager, ("00:00", "00:01"), ("00:01", "00:02"), ("00:02", "00:03"))
    assert await manager.get_captions_by_time_range("00:00", "00:02") == ["00:00..00:01", "00:01..00:02"]


async def test_times_are_compared_as_times(manager: ContextManager) -> None:
    await add_timed(manager, ("9:00", "9:30"), ("10:00", "10:30"), ("100.5", "110"), (20.0, 30))
    within = manager.get_captions_by_time_range
    assert await within("9:15", "9:45") == ["9:00..9:30"]
    assert await within("9:45", "11:00") == ["10:00..10:30"]
    assert await within("20.0", "99") == ["20.0..30"]
    assert await within(100, "00:02:00") == ["100.5..110"]
    assert await within("0", 5) == []


async def test_instants_of_one_moment_are_equal_however_they_are_written(manager: ContextManager) -> None:
    await add_timed(
        manager, ("2024-05-01T10:00:00Z", "2024-05-01T10:01:00+00:00"), (1714557660, "1714557720")
    )
    within = manager.get_captions_by_time_range
    assert len(await within("2024-05-01T12:00:30+02:00", "2024-05-01T10:01:30Z")) == 2
    assert len(await within(1714557600, 1714557660)) == 1


async def test_what_straddles_a_border_belongs_unless_it_has_to_lie_inside(manager: ContextManager) -> None:
    await add_timed(manager, (50, 70), (60, 120), (110, 130), (0, 59), (120, 121), (60, 60))
    within = manager.get_captions_by_time_range
    assert await within(60, 120) == ["50..70", "60..120", "110..130", "60..60"]
    assert await within(60, 120, contains=True) == ["60..120", "60..60"]


async def test_a_caption_without_times_is_in_no_range(manager: ContextManager) -> None:
    await add_timed(manager, ("", ""), (None, None), ("soon", "later"), (30, 20), (-5, 5), (True, True))
    await add_timed(manager, (5, ""), (None, 6))
    await manager.add_document("nothing said", {})
    assert await manager.get_captions_by_time_range(0, 1_000_000) == ["5..", "None..6"]
    assert len(await manager.get_captions_by_time_range("", None)) == 9
    assert len(await manager.get_all_captions()) == 9


async def test_ranges_stay_in_their_stream_and_start_at_zero(manager: ContextManager) -> None:
    await manager.add_documents_batch(["a0", "b0", "a1"], [minute(0, "a"), minute(0, "b"), minute(1, "a")])
    within = manager.get_captions_by_time_range
    assert await within(0, 60, "a") == ["a0"]
    assert await within("00:00:00", "00:02:00", stream_id="a") == ["a0", "a1"]
    assert await within(0, 60, stream_id="c") == []
    assert sorted(await within(None, 1)) == ["a0", "b0"]


@pytest.mark.parametrize(("start", "end"), [("noon", "10:00"), (10, 5), (0, "10 o'clock"), (True, 5)])
async def test_what_is_no_range_is_an_error(manager: ContextManager, start: Any, end: Any) -> None:
    await manager.add_document("car", minute(0))
    with pytest.raises(InvalidInput):
        await manager.get_captions_by_time_range(start, end)


async def test_captions_come_in_the_order_of_their_numbers(manager: ContextManager) -> None:
    for number in (3, 1, 2, 0):
        await manager.add_document(f"text {number}", minute(number))
    expected = [f"text {number}" for number in range(4)]
    assert await manager.get_all_captions() == expected
    assert await manager.get_captions_by_time_range(0, 600) == expected
    window = await manager.get_context_window("", include_all=True)
    assert [document.text for document in window.documents] == expected
