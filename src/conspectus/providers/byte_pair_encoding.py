"""Counts the tokens of byte-pair encodings."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from importlib import import_module
from typing import TypeAlias

Pieces: TypeAlias = Callable[[str], list[str]]
Ranks: TypeAlias = dict[bytes, int]

MAX_CACHED = 50_000
MAX_CACHED_LENGTH = 64
"""Characters of a piece that is worth remembering: words come again, other pieces hardly do."""


class BytePairs:
    """Counts the tokens of a byte-pair encoding: cuts a text into pieces and joins each from its bytes."""

    def __init__(self, ranks: Ranks, pieces: Pieces, ascii_pieces: Pieces) -> None:
        self._pieces = pieces
        self._ascii_pieces = ascii_pieces
        self._cache = _PieceCache(ranks)

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

    def __init__(self, ranks: Ranks) -> None:
        super().__init__()
        self._ranks = ranks

    def __missing__(self, piece: str) -> int:
        data = piece.encode("utf-8")
        tokens = 1 if data in self._ranks else count_joined(data, self._ranks)
        if len(piece) <= MAX_CACHED_LENGTH:
            if len(self) >= MAX_CACHED:
                self.clear()
            self[piece] = tokens
        return tokens


def count_by_heap(piece: bytes, ranks: Ranks) -> int:
    """Tokens of the piece: the pair of the lowest rank is joined first, of equal ones the leftmost."""
    size = count = len(piece)
    following, before = list(range(1, size + 2)), list(range(-1, size))
    rank_at: list[int | None] = [ranks.get(piece[at : at + 2]) for at in range(size - 1)] + [None, None]
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
            pair_rank = ranks.get(piece[first : following[second]]) if second < size else None
            rank_at[first] = pair_rank
            if pair_rank is not None:
                heappush(heap, (pair_rank, first))
    return count


try:
    count_joined = import_module("conspectus.providers._byte_pairs").count
except ImportError:
    count_joined = count_by_heap
