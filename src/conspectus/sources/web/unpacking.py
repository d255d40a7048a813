"""Compressed answers, unpacked piece by piece and never further than a limit."""

import zlib
from collections.abc import Sequence

from conspectus.errors import TooLarge

GZIP, ZLIB, RAW_DEFLATE = 31, 15, -15
WINDOWS = {"gzip": GZIP, "x-gzip": GZIP, "deflate": ZLIB}
GZIP_START = 0x1F
LAYERS = 3
MEMBERS = 10_000


class Unreadable(Exception):
    """A content coding that is not known here, or damaged data."""


class Unpacker:
    """The content codings of one answer, undone in turn. Raises Unreadable for codings not known here."""

    def __init__(self, codings: Sequence[str], limit: int) -> None:
        known = [coding for coding in codings if coding not in {"", "identity"}]
        if len(known) > LAYERS or not WINDOWS.keys() >= set(known):
            raise Unreadable(f"content coding {', '.join(known)[:40]!r} is not understood")
        self._layers = [_Layer(coding, limit) for coding in reversed(known)]

    def feed(self, data: bytes) -> bytes:
        """What these bytes unpack to. Raises TooLarge or Unreadable."""
        for layer in self._layers:
            data = layer.feed(data)
        return data

    @property
    def complete(self) -> bool:
        """Whether nothing is missing at the end."""
        return all(layer.complete for layer in self._layers)


class _Layer:
    """One coding. Several gzip members in a row are one body; whatever else follows the end is padding."""

    def __init__(self, coding: str, limit: int) -> None:
        self._window = WINDOWS[coding]
        self._limit = limit
        self._stream = zlib.decompressobj(self._window)
        self._begun = False
        self._padding = False
        self._members = 1
        self._size = 0

    @property
    def complete(self) -> bool:
        return self._stream.eof or not self._begun

    def feed(self, data: bytes) -> bytes:
        pieces = []
        while data and not self._padding:
            if self._stream.eof:
                self._begin_member(data[0])
                continue
            pieces.append(self._inflate(data))
            data = self._stream.unused_data
        return b"".join(pieces)

    def _begin_member(self, first: int) -> None:
        self._padding = self._window != GZIP or first != GZIP_START
        self._members += 1
        if self._members > MEMBERS:
            raise Unreadable("its compressed content is in too many parts")
        if not self._padding:
            self._stream = zlib.decompressobj(self._window)

    def _inflate(self, data: bytes) -> bytes:
        """At most one byte more than the limit is ever unpacked."""
        try:
            plain = self._stream.decompress(data, self._limit - self._size + 1)
        except zlib.error:
            if self._begun or self._window != ZLIB:
                raise Unreadable("its compressed content is damaged") from None
            self._window = RAW_DEFLATE
            self._stream = zlib.decompressobj(RAW_DEFLATE)
            return self._inflate(data)
        self._begun = True
        self._size += len(plain)
        if self._size > self._limit:
            raise TooLarge("unpacked answer", size=self._size, limit=self._limit)
        return plain
