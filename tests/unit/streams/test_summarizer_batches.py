"""Which captions are summarised together: whatever order they come in, and whatever comes late."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.caption_samples import caption

from conspectus.errors import Conflict
from conspectus.model.streams import Caption
from conspectus.streams.summarizer import Batch, batches, spot


def numbered(*indexes: int) -> list[Caption]:
    return [caption(f"caption {each}", index=each) for each in indexes]


def timed(*starts: float) -> list[Caption]:
    return [caption(f"at {each:g}", each, each + 1) for each in starts]


def indexes(made: list[Batch]) -> list[list[int | None]]:
    return [[each.document.sequence for each in batch.captions] for batch in made]


def starts(made: list[Batch]) -> list[list[float | None]]:
    return [[each.start for each in batch.captions] for batch in made]


def summarised(captions: list[Caption], size: int, kept: list[Batch] | None = None) -> list[Batch]:
    """As if each batch were summarised, and its border kept."""
    in_order = sorted(captions, key=spot)
    return batches(in_order, size, [each.border for each in kept or []])


def test_the_last_caption_may_come_first() -> None:
    made = batches(numbered(8, 6, 7, 0, 1, 2, 3, 4, 5), 6)
    assert indexes(made) == [[0, 1, 2, 3, 4, 5], [6, 7, 8]]
    assert [each.full for each in made] == [True, False]


def test_one_caption_of_a_batch_is_not_a_full_batch() -> None:
    made = batches(numbered(8), 6)
    assert indexes(made) == [[8]]
    assert not made[0].full


def test_every_order_gives_the_same_batches() -> None:
    captions = numbered(*range(20))
    expected = indexes(batches(captions, 6))
    for seed in range(10):
        mixed = captions.copy()
        random.Random(seed).shuffle(mixed)
        assert indexes(batches(mixed, 6)) == expected


def test_an_index_that_is_there_twice_is_an_error() -> None:
    twice = [caption("one", index=3, key="a"), caption("two", index=3, key="b")]
    with pytest.raises(Conflict, match="3"):
        batches(twice, 6)


def test_a_missing_index_leaves_its_batch_open_and_the_others_where_they_are() -> None:
    made = batches(numbered(0, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11), 6)
    assert indexes(made) == [[0, 1, 3, 4, 5], [6, 7, 8, 9, 10, 11]]
    assert [each.full for each in made] == [False, True]


def test_no_captions_are_no_batches() -> None:
    assert batches([], 6) == []


def test_batches_start_where_a_range_does() -> None:
    assert indexes(batches(numbered(2, 3, 4, 5, 6, 7), 6)) == [[2, 3, 4, 5], [6, 7]]


def test_a_late_caption_changes_only_the_batch_it_falls_into() -> None:
    before = summarised(timed(*range(0, 40, 2)), 4)
    after = summarised([*timed(*range(0, 40, 2)), *timed(9)], 4, before)
    changed = [new for old, new in zip(before, after, strict=True) if old.captions != new.captions]
    assert starts(changed) == [[8, 9, 10, 12, 14]]


def test_a_caption_before_all_others_belongs_to_the_first_batch() -> None:
    before = summarised(timed(*range(10, 18)), 4)
    after = summarised([*timed(*range(10, 18)), *timed(1)], 4, before)
    assert starts(after) == [[1, 10, 11, 12, 13], [14, 15, 16, 17]]


def test_a_batch_that_was_not_full_fills_up_and_runs_over() -> None:
    before = summarised(timed(0, 1, 2, 3, 4), 4)
    after = summarised(timed(0, 1, 2, 3, 4, 5, 6, 7, 8, 9), 4, before)
    assert starts(before) == [[0, 1, 2, 3], [4]]
    assert starts(after) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_a_full_last_batch_takes_no_more_from_the_end() -> None:
    before = summarised(timed(0, 1, 2, 3), 4)
    after = summarised(timed(0, 1, 1.5, 2, 3, 4), 4, before)
    assert starts(after) == [[0, 1, 1.5, 2, 3], [4]]
    assert [each.full for each in after] == [True, False]


def test_a_batch_splits_beyond_twice_its_size() -> None:
    before = summarised(timed(0, 1, 2, 3, 10, 11, 12, 13), 4)
    late = timed(0.1, 0.2, 0.3, 0.4)
    eight = summarised([*timed(0, 1, 2, 3, 10, 11, 12, 13), *late], 4, before)
    assert [len(each.captions) for each in eight] == [8, 4]
    nine = summarised([*timed(0, 1, 2, 3, 10, 11, 12, 13), *late, *timed(0.5)], 4, eight)
    assert [len(each.captions) for each in nine] == [3, 3, 3, 4]
    assert nine[-1].captions == before[-1].captions


def test_captions_at_one_time_and_without_time_are_told_apart() -> None:
    same = [caption(f"same {each}", 5.0, key=f"k{each}") for each in range(5)]
    without = [caption(f"none {each}") for each in range(3)]
    before = summarised([*same, *without], 2)
    assert [len(each.captions) for each in before] == [2, 2, 2, 2]
    assert summarised([*without, *same], 2, before) == before


def test_what_is_deleted_shifts_nothing() -> None:
    before = summarised(timed(*range(12)), 4)
    after = summarised(timed(*(each for each in range(12) if each != 5)), 4, before)
    assert starts(after) == [[0, 1, 2, 3], [4, 6, 7], [8, 9, 10, 11]]
    gone = summarised(timed(0, 1, 2, 3, 8, 9, 10, 11), 4, after)
    assert starts(gone) == [[0, 1, 2, 3], [8, 9, 10, 11]]


@given(st.lists(st.lists(st.integers(0, 200), max_size=12), min_size=1, max_size=8), st.integers(1, 7))
def test_each_caption_is_in_one_batch_whenever_it_came(arrivals: list[list[int]], size: int) -> None:
    there: dict[int, Caption] = {}
    made: list[Batch] = []
    for arriving in arrivals:
        fresh = {each: timed(each)[0] for each in arriving if each not in there}
        before = made
        made = summarised([*there.values(), *fresh.values()], size, before)
        there |= fresh
        inside = [each.start for batch in made for each in batch.captions]
        assert inside == sorted(there)
        assert all(len(batch.captions) <= 2 * size for batch in made)
        untouched = [
            batch for batch in before
            if batch.full and not any(batch.border.first[0] <= each <= batch.border.last[0] for each in fresh)
        ]  # fmt: skip
        closed = {batch.border.last[0] for batch in untouched}
        kept = {each.captions[-1].start for each in made if each.captions[-1].start in closed}
        assert len(made) >= len(before)
        assert kept <= closed
