"""Ranges of chunks that changed, for every index adapter."""

import numpy as np

from conspectus.index.changes import find_obsolete_ranges, merge_ranges, put_ranges, ranges_of
from conspectus.model.ids import ChunkId
from conspectus.model.records import Change


def test_ranges() -> None:
    assert merge_ranges([(5, 6), (1, 2), (3, 3), (9, 9), (5, 5)]) == [(1, 3), (5, 6), (9, 9)]
    assert merge_ranges([(1, 2), (5, 6), (10, 10)], gap=2) == [(1, 6), (10, 10)]
    assert ranges_of(np.array([1, 2, 3, 7, 9, 10])) == [(1, 3), (7, 7), (9, 10)]
    assert ranges_of(np.array([], np.int64)) == []


def test_changes_say_what_to_read_and_what_is_out_of_date() -> None:
    changes = [
        Change(1, "put", ChunkId(1), ChunkId(3)),
        Change(2, "remove", ChunkId(500), ChunkId(600)),
        Change(3, "put", ChunkId(10), ChunkId(10)),
    ]
    assert put_ranges(changes) == [(1, 10)]
    assert find_obsolete_ranges(changes) == [(1, 10), (500, 600)]
