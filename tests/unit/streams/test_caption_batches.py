"""Which captions are summarised together: whatever order they come in, and whatever comes late."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.caption_samples import caption

from conspectus.errors import Conflict
from conspectus.model.captions import Caption
from conspectus.streams.caption_batches import Batch, batches, time_key


def build_numbered(*indexes: int) -> list[Caption]:
    return [caption(f"caption {index}", index=index) for index in indexes]


def build_timed(*starts: float) -> list[Caption]:
    return [caption(f"at {start:g}", start, start + 1) for start in starts]


def list_indexes(groups: list[Batch]) -> list[list[int | None]]:
    return [[caption.document.sequence for caption in batch.captions] for batch in groups]


def list_starts(groups: list[Batch]) -> list[list[float | None]]:
    return [[caption.start for caption in batch.captions] for batch in groups]


def summarize(captions: list[Caption], size: int, earlier: list[Batch] | None = None) -> list[Batch]:
    """As if each batch were summarised, and its border kept."""
    in_order = sorted(captions, key=time_key)
    return batches(in_order, size, [batch.border for batch in earlier or []])


def test_the_last_caption_may_come_first() -> None:
    groups = batches(build_numbered(8, 6, 7, 0, 1, 2, 3, 4, 5), 6)
    assert list_indexes(groups) == [[0, 1, 2, 3, 4, 5], [6, 7, 8]]
    assert [batch.full for batch in groups] == [True, False]


def test_one_caption_of_a_batch_is_not_a_full_batch() -> None:
    groups = batches(build_numbered(8), 6)
    assert list_indexes(groups) == [[8]]
    assert not groups[0].full


def test_every_order_gives_the_same_batches() -> None:
    captions = build_numbered(*range(20))
    expected = list_indexes(batches(captions, 6))
    for seed in range(10):
        mixed = captions.copy()
        random.Random(seed).shuffle(mixed)
        assert list_indexes(batches(mixed, 6)) == expected


def test_an_index_that_is_there_twice_is_an_error() -> None:
    twice = [caption("one", index=3, key="a"), caption("two", index=3, key="b")]
    with pytest.raises(Conflict, match="3"):
        batches(twice, 6)


def test_a_missing_index_leaves_its_batch_open_and_the_others_where_they_are() -> None:
    groups = batches(build_numbered(0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11), 6)
    assert list_indexes(groups) == [[0, 1, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert [batch.full for batch in groups] == [False, True]


def test_no_captions_are_no_batches() -> None:
    assert batches([], 6) == []


def test_batches_start_where_a_range_does() -> None:
    assert list_indexes(batches(build_numbered(2, 3, 4, 5, 6, 7), 6)) == [[2, 3, 4, 5], [6, 7]]


def test_a_late_caption_changes_only_the_batch_it_falls_into() -> None:
    before = summarize(build_timed(*range(0, 40, 2)), 4)
    after = summarize([*build_timed(*range(0, 40, 2)), *build_timed(9)], 4, before)
    changed = [new for old, new in zip(before, after, strict=True) if old.captions != new.captions]
    assert list_starts(changed) == [[8, 9, 10, 12, 14]]


def test_a_caption_before_all_others_belongs_to_the_first_batch() -> None:
    before = summarize(build_timed(*range(10, 18)), 4)
    after = summarize([*build_timed(*range(10, 18)), *build_timed(1)], 4, before)
    assert list_starts(after) == [[1, 10, 11, 12, 13], [14, 15, 16, 17]]


def test_a_batch_that_was_not_full_fills_up_and_runs_over() -> None:
    before = summarize(build_timed(0, 1, 2, 3, 4), 4)
    after = summarize(build_timed(0, 1, 2, 3, 4, 5, 6, 7, 8, 9), 4, before)
    assert list_starts(before) == [[0, 1, 2, 3], [4]]
    assert list_starts(after) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_a_full_last_batch_takes_no_more_from_the_end() -> None:
    before = summarize(build_timed(0, 1, 2, 3), 4)
    after = summarize(build_timed(0, 1, 1.5, 2, 3, 4), 4, before)
    assert list_starts(after) == [[0, 1, 1.5, 2, 3], [4]]
    assert [batch.full for batch in after] == [True, False]


def test_a_batch_splits_beyond_twice_its_size() -> None:
    before = summarize(build_timed(0, 1, 2, 3, 10, 11, 12, 13), 4)
    late = build_timed(0.1, 0.2, 0.3, 0.4)
    eight = summarize([*build_timed(0, 1, 2, 3, 10, 11, 12, 13), *late], 4, before)
    assert [len(batch.captions) for batch in eight] == [8, 4]
    nine = summarize([*build_timed(0, 1, 2, 3, 10, 11, 12, 13), *late, *build_timed(0.5)], 4, eight)
    assert [len(batch.captions) for batch in nine] == [3, 3, 3, 4]
    assert nine[-1].captions == before[-1].captions


def test_captions_at_one_time_and_without_time_are_told_apart() -> None:
    same = [caption(f"same {number}", 5.0, key=f"k{number}") for number in range(5)]
    without = [caption(f"none {number}") for number in range(3)]
    before = summarize([*same, *without], 2)
    assert [len(batch.captions) for batch in before] == [2, 2, 2, 2]
    assert summarize([*without, *same], 2, before) == before


def test_what_is_deleted_shifts_nothing() -> None:
    before = summarize(build_timed(*range(12)), 4)
    after = summarize(build_timed(*(start for start in range(12) if start != 5)), 4, before)
    assert list_starts(after) == [[0, 1, 2, 3], [4, 6, 7], [8, 9, 10, 11]]
    gone = summarize(build_timed(0, 1, 2, 3, 8, 9, 10, 11), 4, after)
    assert list_starts(gone) == [[0, 1, 2, 3], [8, 9, 10, 11]]


@given(st.lists(st.lists(st.integers(0, 200), max_size=12), min_size=1, max_size=8), st.integers(1, 7))
def test_each_caption_is_in_one_batch_whenever_it_came(arrivals: list[list[int]], size: int) -> None:
    there: dict[int, Caption] = {}
    groups: list[Batch] = []
    for arriving in arrivals:
        fresh = {start: build_timed(start)[0] for start in arriving if start not in there}
        before = groups
        groups = summarize([*there.values(), *fresh.values()], size, before)
        there |= fresh
        inside = [caption.start for batch in groups for caption in batch.captions]
        assert inside == sorted(there)
        assert all(len(batch.captions) <= 2 * size for batch in groups)
        untouched = [
            batch for batch in before
            if batch.full
            and not any(batch.border.first[0] <= start <= batch.border.last[0] for start in fresh)
        ]  # fmt: skip
        closed = {batch.border.last[0] for batch in untouched}
        last_starts = {batch.captions[-1].start for batch in groups if batch.captions[-1].start in closed}
        assert len(groups) >= len(before)
        assert last_starts <= closed
