"""Limits of request bodies: bytes in memory for each user, and values to be parsed."""

import asyncio
from collections import Counter
from dataclasses import field
from typing import Final

import numpy as np

from conspectus.deferred import dataclass
from conspectus.errors import TooLarge, TooManyBodyBytes

SMALL_BODY_BYTES: Final = 65_536
"""A body up to this size takes a few milliseconds at most, and is parsed at once."""
ACCOUNT: Final = "body_account"
"""The name of a request's account in its state."""
_QUOTE: Final = ord('"')
_IS_VALUE: Final = np.isin(np.arange(256), [ord(separator) for separator in ",[{"])
"""Whether a byte outside of texts stands for one more value."""


@dataclass(slots=True)
class BodyLimits:
    """The most values of a large body, and the locks by which one at a time is counted, and parsed."""

    max_values: int
    counting: asyncio.Lock = field(default_factory=asyncio.Lock)
    parsing: asyncio.Lock = field(default_factory=asyncio.Lock)


class UserBodyBytes:
    """The bytes of bodies that are in memory, by user; a `maximum` of 0 means no limit."""

    def __init__(self, maximum: int) -> None:
        self._maximum = maximum
        self._bytes: Counter[str] = Counter()

    def change(self, user: str, change: int) -> None:
        """Count more or fewer bytes. Raises TooManyBodyBytes."""
        if self._maximum and change > 0 and self._bytes[user] + change > self._maximum:
            raise TooManyBodyBytes(self._maximum)
        self._bytes[user] += change
        if not self._bytes[user]:
            del self._bytes[user]


class BodyAccount:
    """The bytes that the body of one request holds of its user's share."""

    def __init__(self, bytes_of_users: UserBodyBytes, user: str) -> None:
        self._bytes_of_users = bytes_of_users
        self._user = user
        self._size = 0

    def take(self, size: int) -> None:
        """Hold this many bytes altogether. Raises TooManyBodyBytes."""
        self._bytes_of_users.change(self._user, size - self._size)
        self._size = size

    def give_back(self) -> None:
        """Hold none any more."""
        self.take(0)


class ValueCounter:
    """Counts the values of a JSON document, piece by piece: its commas and brackets outside of texts."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._count = 0
        self._is_in_text = False
        self._is_escaping = False

    def add(self, piece: bytes) -> None:
        """Count a piece. Raises TooLarge."""
        if self._is_escaping:
            piece = b"\\" + piece
        stripped = piece.rstrip(b"\\")
        self._is_escaping = (len(piece) - len(stripped)) % 2 == 1
        if b"\\" in stripped:
            stripped = stripped.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        characters = np.frombuffer(stripped, np.uint8)
        is_quote = characters == _QUOTE
        is_inside = (np.cumsum(is_quote, dtype=np.uint32) + self._is_in_text) % 2 == 1
        self._count += int(np.count_nonzero(_IS_VALUE[characters] & ~is_inside))
        self._is_in_text = bool((np.count_nonzero(is_quote) + self._is_in_text) % 2)
        if self._count > self._limit:
            raise TooLarge("body", size=self._count, limit=self._limit, unit="values")
