"""Counts the tokens of byte-pair encodings."""

import sys
from collections.abc import Callable
from heapq import heapify, heappop, heappush
from importlib import import_module
from typing import TypeAlias

from conspectus.providers.vocabulary import Vocabulary

Pieces: TypeAlias = Callable[[str], list[str]]

MAX_CACHED = 50_000
MAX_CACHED_LENGTH = 64
"""Characters of a piece that is worth remembering: words come again, other pieces hardly do."""


class BytePairs:
    """Counts the tokens of a byte-pair encoding: cuts a text into pieces and joins each from its bytes."""

    def __init__(self, vocabulary: Vocabulary, pieces: Pieces, ascii_pieces: Pieces) -> None:
        self._pieces = pieces
        self._ascii_pieces = ascii_pieces
        self._cache = _PieceCache(vocabulary)

    def __call__(self, text: str) -> int:
        """Tokens of a text. Raises UnicodeEncodeError for lone surrogates."""
        if text.isascii():
            pieces = self._ascii_pieces(text)
        else:
            text.encode("utf-8")
            pieces = self._pieces(text)
        return sum(map(self._cache.__getitem__, pieces))


class _PieceCache(dict[str, int]):
    """Tokens by piece; what is missing is counted, and kept if it is short."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        super().__init__()
        self._vocabulary = vocabulary

    def __missing__(self, piece: str) -> int:
        data = piece.encode("utf-8")
        tokens = 1 if data in self._vocabulary else count_joined(data, self._vocabulary)
        if len(piece) <= MAX_CACHED_LENGTH:
            if len(self) >= MAX_CACHED:
                self.clear()
            self[piece] = tokens
        return tokens


def count_by_heap(piece: bytes, vocabulary: Vocabulary) -> int:
    """Tokens of the piece: the pair of the lowest rank is joined first, of equal ones the leftmost."""
    size = count = len(piece)
    following, before = list(range(1, size + 2)), list(range(-1, size))
    rank_at: list[int | None] = [vocabulary.get(piece[at : at + 2]) for at in range(size - 1)] + [None, None]
    heap = [(rank, at) for at, rank in enumerate(rank_at) if rank is not None]
    heapify(heap)
    while heap:
        rank, at = heappop(heap)
        if rank_at[at] != rank:
            continue
        middle = following[at]
        end = following[middle]
        following[at], before[end], rank_at[middle], count = end, at, None, count - 1
        for first in (at, before[at])[: 1 + (at > 0)]:
            second = following[first]
            pair_rank = vocabulary.get(piece[first : following[second]]) if second < size else None
            rank_at[first] = pair_rank
            if pair_rank is not None:
                heappush(heap, (pair_rank, first))
    return count


def _load_count() -> Callable[[bytes, Vocabulary], int]:
    try:
        count: Callable[[bytes, object], int] = import_module("conspectus.providers._token_counts").count
    except ImportError:
        return count_by_heap
    # The compiled function reads the numbers of the table as they lie in memory.
    return (
        count_by_heap if sys.byteorder == "big" else lambda piece, vocabulary: count(piece, vocabulary.table)
    )


count_joined = _load_count()
