"""Tokens and their ranks in a hash table that is mapped from a file, so that no process has to build it.

A table begins with 32-bit numbers, little-endian: the number of tokens, the number of slots (a power of two),
the slots, and the start of each token with the end of the last. The bytes of all tokens follow, in the order
of their ranks. A token is in the first free slot from its CRC-32 on. A slot has the rank plus one in its
lower 18 bits, and the upper 14 bits of the CRC-32 above them; an empty slot is 0.
"""

import mmap
import struct
import sys
import zlib
from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Final

_RANK_BITS: Final = 18
_RANK_MASK: Final = (1 << _RANK_BITS) - 1
_SLOTS_PER_TOKEN: Final = 1.3


class Vocabulary:
    """The ranks of tokens. `table` is what `pack_tokens` returns; it is read where it lies."""

    def __init__(self, table: bytes | mmap.mmap) -> None:
        self.table = table
        self._count, slots = _read_numbers(table[:8])
        self._mask = slots - 1
        self._first_offset = 2 + slots
        self._first_byte = 4 * (self._first_offset + self._count + 1)
        self._numbers = _read_numbers(memoryview(table)[: self._first_byte])

    def __len__(self) -> int:
        return self._count

    def get(self, token: bytes) -> int | None:
        """Return the rank of a token; None if there is no such token."""
        numbers, mask = self._numbers, self._mask
        checksum = zlib.crc32(token)
        slot = checksum & mask
        while number := numbers[2 + slot]:
            rank = (number & _RANK_MASK) - 1
            if (number ^ checksum) >> _RANK_BITS == 0 and self[rank] == token:
                return rank
            slot = (slot + 1) & mask
        return None

    def __contains__(self, token: bytes) -> bool:
        return self.get(token) is not None

    def __getitem__(self, rank: int) -> bytes:
        """Return the token of a rank."""
        start, end = self._numbers[self._first_offset + rank : self._first_offset + rank + 2]
        return self.table[self._first_byte + start : self._first_byte + end]


def _read_numbers(table: bytes | memoryview) -> "Sequence[int]":
    """Return the numbers of a part of a table, copied only if bytes have another order here."""
    if sys.byteorder == "little":
        return memoryview(table).cast("I")
    numbers = array("I", bytes(table))
    numbers.byteswap()
    return numbers


def pack_tokens(tokens: Sequence[bytes]) -> bytes:
    """Return the table of distinct tokens in the order of their ranks, at most 262,143."""
    slots = [0] * (1 << (int(_SLOTS_PER_TOKEN * len(tokens)) + 1).bit_length())
    mask = len(slots) - 1
    for rank, token in enumerate(tokens):
        checksum = zlib.crc32(token)
        slot = checksum & mask
        while slots[slot]:
            slot = (slot + 1) & mask
        slots[slot] = checksum >> _RANK_BITS << _RANK_BITS | (rank + 1)
    ends = accumulate(map(len, tokens), initial=0)
    numbers = array("I", [len(tokens), len(slots), *slots, *ends])
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes() + b"".join(tokens)


def compress_tokens(vocabulary: Vocabulary) -> bytes:
    """Return the tokens of a vocabulary, of at most 65,535 bytes each, in less space than its table."""
    tokens = [vocabulary[rank] for rank in range(len(vocabulary))]
    lengths = struct.pack(f"<I{len(tokens)}H", len(tokens), *map(len, tokens))
    return zlib.compress(lengths + b"".join(tokens), level=9)


def decompress_tokens(compressed: bytes) -> list[bytes]:
    """Return the tokens that were compressed."""
    unpacked = zlib.decompress(compressed)
    (count,) = struct.unpack_from("<I", unpacked)
    starts = list(accumulate(struct.unpack_from(f"<{count}H", unpacked, 4), initial=4 + 2 * count))
    return [unpacked[start:end] for start, end in pairwise(starts)]


def map_vocabulary(name: str) -> Vocabulary:
    """Map the vocabulary of an encoding, which is part of the package.

    The package of the client has it compressed, so that a table is made of it.
    """
    folder = Path(__file__).parent / "byte_pairs"
    path = folder / f"{name}.tokens"
    if not path.exists():
        return Vocabulary(pack_tokens(decompress_tokens((folder / f"{name}.zlib").read_bytes())))
    with path.open("rb") as file:
        return Vocabulary(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
