"""Decodes the content codings of a response."""

import zlib
from collections.abc import Sequence

from conspectus.errors import TooLarge

GZIP, ZLIB, RAW_DEFLATE = 31, 15, -15
WINDOWS = {"gzip": GZIP, "x-gzip": GZIP, "deflate": ZLIB}
GZIP_START = 0x1F
LAYERS = 3
MEMBERS = 10_000


class Unreadable(Exception):
    """An unknown content coding, or damaged data."""


class Unpacker:
    """Decodes the content codings of one response. Raises Unreadable for unknown codings."""

    def __init__(self, codings: Sequence[str], limit: int) -> None:
        layered = [coding for coding in codings if coding not in {"", "identity"}]
        if len(layered) > LAYERS or not WINDOWS.keys() >= set(layered):
            raise Unreadable(f"content coding {', '.join(layered)[:40]!r} is not understood")
        self._layers = [_Layer(coding, limit) for coding in reversed(layered)]

    def feed(self, data: bytes) -> bytes:
        """Decode these bytes. Raises TooLarge or Unreadable."""
        for layer in self._layers:
            data = layer.feed(data)
        return data

    @property
    def complete(self) -> bool:
        """Return whether the content is complete."""
        return all(layer.complete for layer in self._layers)


class _Layer:
    """One coding. Several gzip members are one body; anything else after the end is ignored as padding."""

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
                self._padding = self._window != GZIP or data[0] != GZIP_START
                self._members += 1
                if self._members > MEMBERS:
                    raise Unreadable("its compressed content is in too many parts")
                if not self._padding:
                    self._stream = zlib.decompressobj(self._window)
                continue
            pieces.append(self._inflate(data))
            data = self._stream.unused_data
        return b"".join(pieces)

    def _inflate(self, data: bytes) -> bytes:
        """Decompress at most one byte more than the limit."""
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
