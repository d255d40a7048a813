"""Texts of files: line ends are one kind, and images, audio and binary data are refused."""

import re
import unicodedata
from collections.abc import Iterable
from itertools import pairwise

from conspectus.deferred import dataclass
from conspectus.errors import UnreadableFile, UnsupportedContent
from conspectus.sources.encoding import Decoded, decode

UNPACK = ": unpack it, and add what is inside"
SAVE_AS_DOCX = ": save it as DOCX"
SAVE_MAIL = ": save the message as .msg or .eml, or its attachments alone"
UNSUPPORTED_SIGNATURES = (
    (b"{\\rtf", "RTF", SAVE_AS_DOCX),
    (b"\x89PNG", "a PNG image", ""), (b"\xff\xd8\xff", "a JPEG image", ""), (b"GIF89a", "a GIF image", ""),
    (b"II*\x00", "a TIFF image", ""), (b"MM\x00*", "a TIFF image", ""),
    (b"OggS\x00", "Ogg audio or video", ""), (b"ID3\x03", "MP3 audio", ""), (b"ID3\x04", "MP3 audio", ""),
    (b"fLaC\x00", "FLAC audio", ""), (b"(\xb5/\xfd", "Zstandard data", UNPACK),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", UNPACK), (b"Rar!\x1a", "a RAR archive", UNPACK),
    (b"\x7fELF", "a program", ""), (b"\xca\xfe\xba\xbe", "a program", ""), (b"\x00asm", "WebAssembly", ""),
    (b"wOFF\x00", "a font", ""), (b"wOF2\x00", "a font", ""),
    (b"SQLite format 3\x00", "an SQLite database", ""),
    (b"\x78\x9f\x3e\x22", "a TNEF file (winmail.dat)", SAVE_MAIL),
)  # fmt: skip
"""First bytes of files that are not read, with the name of their format and what to do."""
MP4_MARK, MP4_MARK_START = b"ftyp", 4
PHOTO_BRANDS = {b"heic": "HEIC", b"heix": "HEIC", b"mif1": "HEIF", b"msf1": "HEIF", b"avif": "AVIF"}
"""Photos of telephones, which are in the container of MP4, by the four bytes after its mark."""
CONTROL_CHARACTERS = tuple(map(chr, {*range(1, 32)} - {8, 9, 10, 12, 13, 27}))
MAX_SCANNED_CHARACTERS = 1_000_000
HIGH_CONTROL_CHARACTERS = tuple(map(chr, {*range(0x7F, 0xA0)} - {0x85}))
"""No text has them on purpose. Texts that were decoded twice do, so they count in guessed encodings alone."""
MAX_CONTROL_SHARE = 0.02
MAX_STRAY_CONTROLS = 3
"""So many may be in a short file whose name is that of a text, unless they are half of it."""
MAX_ACCENT_SHARE = 0.3
EAST_ASIAN_SCRIPTS = frozenset({"CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL"})
OTHER_ALPHABETS = frozenset({"ARABIC", "CYRILLIC", "GREEK", "HEBREW"})
"""Those of legacy encodings that divide words by spaces: no word of them has Latin letters."""
MIN_GUESSABLE_BYTES = 100
"""The encoding of a shorter file is guessed only if its characters could be words."""
FORMATTING_CONTROLS = frozenset("\b\f\x1b")
_WORD = re.compile(r"[^\W\d_]+")
MAX_ZERO_SHARE = 0.1
"""Largest share of zero characters in a file whose name is that of a text."""


@dataclass(frozen=True, slots=True)
class PlainText:
    """A decoded text, its encoding, and warnings."""

    text: str
    encoding: str
    warnings: tuple[str, ...]


def plain_text(data: bytes, name: str, *, is_text: bool, charset: str | None = None) -> PlainText:
    """Return the text of a file; zero characters are replaced.

    `is_text` says that the name is that of a text file. Raises UnreadableFile for other content, and
    UnsupportedContent if that content is recognized.
    """
    refuse_unsupported(name, data)
    decoded = decode(data, charset)
    if decoded is None or _is_binary(data, decoded, is_text=is_text):
        fault = UnreadableFile if is_text else UnsupportedContent
        raise fault(name, "binary data, not text in any known encoding")
    text = decoded.text.replace("\r\n", "\n").replace("\r", "\n")
    zeros = text.count("\0")
    plain = text.removeprefix("\ufeff").replace("\0", "\ufffd")
    return PlainText(plain, decoded.encoding, tuple(_warnings(decoded, zeros)))


def refuse_unsupported(name: str, data: bytes) -> None:
    """Raise UnsupportedContent if the first bytes of a file are those of an image, audio and the like."""
    for signature, format, advice in UNSUPPORTED_SIGNATURES:
        if data.startswith(signature):
            raise UnsupportedContent(name, f"{format} is not supported{advice}")
    if data.startswith(MP4_MARK, MP4_MARK_START):
        photo = PHOTO_BRANDS.get(data[MP4_MARK_START + len(MP4_MARK) :][:4])
        if photo:
            raise UnsupportedContent(name, f"a photo in {photo} is not supported: save it as JPEG")
        raise UnsupportedContent(name, "MP4 audio or video is not supported")


def looks_binary(text: str, max_zero_share: float = MAX_ZERO_SHARE) -> bool:
    """Return whether there are too many zero characters, or many other control characters."""
    sample = text[:MAX_SCANNED_CHARACTERS]
    controls = sum(map(sample.count, CONTROL_CHARACTERS))
    max_controls = min(MAX_CONTROL_SHARE * len(sample) + MAX_STRAY_CONTROLS, len(sample) / 2)
    return sample.count("\0") > max_zero_share * len(sample) or controls > max_controls


def _is_binary(data: bytes, decoded: Decoded, *, is_text: bool) -> bool:
    """Return whether decoded bytes are no text: the rules are stricter for guesses and for unknown names."""
    if looks_binary(decoded.text, MAX_ZERO_SHARE if is_text else 0.0):
        return True
    sample = decoded.text[:MAX_SCANNED_CHARACTERS]
    high_controls = HIGH_CONTROL_CHARACTERS if decoded.guessed else ()
    controls = sum(map(sample.count, (*CONTROL_CHARACTERS, *high_controls)))
    if (decoded.guessed or not is_text) and controls > MAX_CONTROL_SHARE * len(sample):
        return True
    is_short_guess = decoded.guessed and not is_text and len(data) < MIN_GUESSABLE_BYTES
    return is_short_guess and not _could_be_words(sample)


def _could_be_words(text: str) -> bool:
    """Return whether few characters are above ASCII, or letters of one script (at most half if Latin)."""
    if not FORMATTING_CONTROLS.isdisjoint(text) or any(map(_is_no_word, _WORD.findall(text))):
        return False
    above_ascii = [character for character in text if character > "\x7f"]
    letters = [character for character in above_ascii if character.isalpha()]
    if len(above_ascii) < MAX_ACCENT_SHARE * len(text):
        return True
    scripts = _scripts(letters)
    has_one_script = len(scripts) == 1 or scripts <= EAST_ASIAN_SCRIPTS
    if not has_one_script or 3 * len(letters) < 2 * len(above_ascii):
        return False
    return "LATIN" not in scripts or 2 * len(above_ascii) <= len(text)


def _is_no_word(letters: str) -> bool:
    """Return whether Latin letters stand beside those of another alphabet, or a capital inside a word.

    A capital between letters of ASCII is usual in names.
    """
    if letters.isascii():
        return False
    scripts = _scripts(letters)
    is_mixed = "LATIN" in scripts and not scripts.isdisjoint(OTHER_ALPHABETS)
    neighbours = pairwise(letters)
    return is_mixed or any(a.islower() and b.isupper() and not (a + b).isascii() for a, b in neighbours)


def _scripts(letters: Iterable[str]) -> set[str]:
    return {unicodedata.name(letter, "").partition(" ")[0] for letter in letters}


def _warnings(decoded: Decoded, zeros: int) -> Iterable[str]:
    if decoded.guessed:
        yield f"the encoding was guessed: {decoded.encoding}"
    if decoded.damaged:
        yield f"{decoded.damaged} characters are not valid {decoded.encoding} and were replaced"
    if zeros:
        yield f"{zeros} zero characters were replaced"
