"""A sorted table of distinct byte strings in two arrays, searched without loading it."""

from bisect import bisect_left
from collections.abc import Sequence
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]


def encoded(text: str) -> bytes:
    """UTF-8, in which bytes sort as code points do; lone surrogates keep their place."""
    return text.encode("utf-8", "surrogatepass")


def pack(strings: Sequence[bytes]) -> tuple[Bytes, NDArray[np.int64]]:
    """The strings one after the other, and where each begins (with the end of the last)."""
    offsets = np.zeros(len(strings) + 1, np.int64)
    np.cumsum([len(string) for string in strings], out=offsets[1:])
    return np.frombuffer(b"".join(strings), np.uint8), offsets


class Strings(Sequence[bytes]):
    """What `pack` made, as a sequence."""

    __slots__ = ("_blob", "_offsets")

    def __init__(self, blob: Bytes, offsets: NDArray[np.int64]) -> None:
        self._blob = blob
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | Sequence[bytes]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        return self._blob[self._offsets[index] : self._offsets[index + 1]].tobytes()

    def rank(self, text: str) -> int:
        """How many strings sort before the text; the table must be sorted."""
        return bisect_left(self, encoded(text))

    def find(self, text: str) -> int | None:
        """The position of the text in the sorted table."""
        position = self.rank(text)
        return position if position < len(self) and self[position] == encoded(text) else None
