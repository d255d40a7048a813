"""Bytes of a file as text with one kind of line end, and what a reader should know about that."""

from collections.abc import Iterable
from dataclasses import dataclass

from conspectus.errors import UnreadableFile, UnsupportedContent
from conspectus.sources.encoding import Decoded, decode

MAGIC = (
    (b"{\\rtf", "RTF"),
    (b"\x89PNG", "a PNG image"), (b"\xff\xd8\xff", "a JPEG image"), (b"GIF89a", "a GIF image"),
    (b"II*\x00", "a TIFF image"), (b"MM\x00*", "a TIFF image"), (b"OggS\x00", "Ogg audio or video"),
    (b"ID3\x03", "MP3 audio"), (b"ID3\x04", "MP3 audio"), (b"fLaC\x00", "FLAC audio"),
    (b"\x1f\x8b", "gzip data"), (b"\xfd7zXZ\x00", "xz data"), (b"(\xb5/\xfd", "Zstandard data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"), (b"Rar!\x1a", "a RAR archive"), (b"\x7fELF", "a program"),
    (b"\xca\xfe\xba\xbe", "a program"), (b"\x00asm", "WebAssembly"), (b"wOFF\x00", "a font"),
    (b"wOF2\x00", "a font"), (b"SQLite format 3\x00", "an SQLite database"),
)  # fmt: skip
CONTROL = tuple(map(chr, {*range(1, 32)} - {8, 9, 10, 12, 13, 27}))
SCANNED = 1_000_000


@dataclass(frozen=True, slots=True)
class PlainText:
    """A decoded text, its encoding, and doubts about it."""

    text: str
    encoding: str
    doubts: tuple[str, ...]


def plain_text(data: bytes, name: str, *, known: bool, charset: str | None = None) -> PlainText:
    """The text of a file; zero characters are replaced. `known` says that its name promises text.

    Raises UnreadableFile for what is no text, UnsupportedContent where it can say what it is instead.
    """
    refuse_unsupported(name, data)
    decoded = decode(data, charset)
    if decoded is None or _looks_binary(decoded.text, 0.1 if known else 0.0):
        fault = UnreadableFile if known else UnsupportedContent
        raise fault(name, "binary data, not text in any known encoding")
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n")
    zeros = text.count("\0")
    plain = text.removeprefix("\ufeff").replace("\0", "\ufffd")
    return PlainText(plain, decoded.encoding, tuple(_doubts(decoded, zeros)))


def refuse_unsupported(name: str, data: bytes) -> None:
    """Raise UnsupportedContent if the first bytes of a file are those of an image, audio and the like."""
    what = next((what for mark, what in MAGIC if data.startswith(mark)), None)
    if what is None and data[4:8] == b"ftyp":
        what = "MP4 audio or video"
    if what:
        raise UnsupportedContent(name, f"{what} is not supported")


def _looks_binary(text: str, zeros: float) -> bool:
    """Whether there are more zero characters than the given share, or many other control characters."""
    sample = text[:SCANNED]
    control = sum(map(sample.count, CONTROL))
    return sample.count("\0") > zeros * len(sample) or control > 0.02 * len(sample) + 3


def _doubts(decoded: Decoded, zeros: int) -> Iterable[str]:
    if decoded.guessed:
        yield f"the encoding was guessed: {decoded.encoding}"
    if decoded.damaged:
        yield f"{decoded.damaged} characters are not valid {decoded.encoding} and were replaced"
    if zeros:
        yield f"{zeros} zero characters were replaced"
