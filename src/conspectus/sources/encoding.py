"""Decode files: declarations of the file first, then chardet, or letter frequencies for Latin text.

The order: byte order mark, UTF-16 or UTF-32 by their zero bytes, ISO 2022 by its escapes, UTF-8, the encoding
that the file declares, and for bytes above ASCII that stand alone, as accents do, the Latin encoding whose
letters one language would use; chardet for all others.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

import chardet

from conspectus.deferred import dataclass
from conspectus.errors import UnreadableFile, UnsupportedContent

SAMPLE_BYTES = 200_000
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
FAMILIES = (
    ("shift_jis", "cp932"), ("gb2312", "gbk", "gb18030"), ("big5", "cp950", "big5hkscs"),
    ("euc_kr", "cp949"), ("tis_620", "cp874"),
)  # fmt: skip
"""Encodings with their supersets, narrowest first."""
LABELS = {
    "x-sjis": "shift_jis", "windows-31j": "cp932", "x-euc-jp": "euc_jp", "ks_c_5601-1987": "euc_kr",
    "windows-949": "cp949", "x-gbk": "gbk", "x-mac-cyrillic": "mac_cyrillic", "windows-874": "cp874",
    "iso-8859-1": "cp1252", "iso8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252",
    "iso-8859-9": "cp1254",
}  # fmt: skip
LATIN = ("cp1252", "cp1250", "iso8859_2", "cp1254", "cp1257", "iso8859_15")
USUAL = (
    *(f"cp{number}" for number in range(1250, 1259)), "iso8859-2", "iso8859-5", "iso8859-6", "iso8859-7",
    "iso8859-8", "iso8859-9", "iso8859-15", "koi8-r", "koi8-u", "cp855", "cp857", "cp866", "mac-cyrillic",
    "cp932", "shift_jis_2004", "euc_jis_2004", "gb18030", "big5hkscs", "cp949", "euc_kr", "cp874", "tis-620",
)  # fmt: skip
"""What chardet may choose from: other encodings are rarer than short texts that resemble them."""
ALPHABETS = (
    "àâæçéèêëîïôùûüÿœ", "äöüß", "áéíñóúü", "àèéìíòóù", "áâãàçéêíóôõúü", "åäö", "åæøéöäü", "áðéíóúýþæö",
    "ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíľĺňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîșțşţ",
    "çğ\u0131\u0130iöşüâîû",
    "ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž",
)  # fmt: skip
LETTERS = tuple(frozenset(alphabet + alphabet.upper()) for alphabet in ALPHABETS)
PUNCTUATION = frozenset(
    "\u2018\u2019\u201a\u201c\u201d\u201e\u2039\u203a\u2013\u2014\u2026\u2022\xa0\xad\xb4«»·°§©®™€£№¡¿ªº½"
)
NOT_LEGACY = ("utf", "ascii", "idna", "punycode", "unicode", "raw", "undefined")
DECLARED = re.compile(rb"""(?:encoding|charset|coding)\s*[=:]\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.I)
ABOVE_ASCII = re.compile(rb"[\x80-\xff]+")
ALONE = bytes(range(0xA0, 0x100)) + b"\x80\x85\x91\x92\x93\x94\x95\x96\x97\x99"
ESCAPES = ((b"\x1b$)C", "iso2022_kr"), (b"\x1b$B", "iso2022_jp"), (b"\x1b$@", "iso2022_jp"))


@dataclass(frozen=True, slots=True)
class Decoded:
    """Text with its encoding, whether that was guessed, and the number of replaced characters (`damaged`)."""

    text: str
    encoding: str
    guessed: bool = False
    damaged: int = 0


def decode(data: bytes, charset: str | None = None) -> Decoded | None:
    """Return the text of a file with its encoding; None if no encoding fits.

    `charset` is the declaration of the sender. It is used if there is no byte order mark and the text is
    valid in it.
    """
    marked = any(data.startswith(mark) for mark, _ in MARKS)
    by_charset = None if charset is None or marked else _strict(data, _labelled(charset))
    return by_charset or _certain(data) or _likely(data) or _guessed(data)


def _certain(data: bytes) -> Decoded | None:
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return _strict(data, (encoding,)) or _damaged(data, encoding, 0.01)
    wide = _wide(data)
    if wide:
        return _strict(data, wide, guessed=True)
    escaped = tuple(encoding for escape, encoding in ESCAPES if escape in data)
    return _strict(data, (*escaped, "utf-8"))


def _likely(data: bytes) -> Decoded | None:
    """Decode as UTF-8 or the declared encoding, if only a few bytes are damaged."""
    declared = tuple(_declared(data))
    return (
        _damaged(data, "utf-8", 0.5)
        or _strict(data, declared)
        or next((decoded for name in declared[-1:] if (decoded := _damaged(data, name, 0.01))), None)
    )


def _guessed(data: bytes) -> Decoded | None:
    sample = _sample(data)
    if _accented(sample):
        best = sorted(LATIN, key=lambda name: -_fit(sample, name))
    else:
        best = list(_labelled(chardet.detect(sample, include_encodings=USUAL)["encoding"] or ""))
    return _strict(data, [*best, *LATIN, "latin-1"], guessed=True)


def _strict(data: bytes, encodings: Iterable[str], *, guessed: bool = False) -> Decoded | None:
    for encoding in encodings:
        try:
            return Decoded(data.decode(encoding), encoding, guessed)
        except UnicodeError:
            continue
    return None


def _damaged(data: bytes, encoding: str, share: float) -> Decoded | None:
    """Return the text with damaged bytes replaced, if they are few compared with valid characters."""
    text = data.decode(encoding, errors="replace")
    lost = text.count("\ufffd")
    sound = sum(map(len, re.findall("[^\x00-\x7f\ufffd]+", text)))
    return Decoded(text, encoding, damaged=lost) if 0 < lost <= share * sound else None


def _wide(data: bytes) -> tuple[str, ...]:
    """Detect UTF-16 or UTF-32 without a mark: the same bytes of each unit are mostly zero."""
    sample = data[:4096]
    zeros = [sample[offset::4].count(0) / max(1, len(sample) // 4) for offset in range(4)]
    if len(data) % 4 == 0 and zeros[2] > 0.9 and zeros[3] > 0.9:
        return ("utf-32-le",)
    if len(data) % 4 == 0 and zeros[0] > 0.9 and zeros[1] > 0.9:
        return ("utf-32-be",)
    even, odd = zeros[0] + zeros[2], zeros[1] + zeros[3]
    if len(data) % 2 or max(even, odd) < 0.4 or min(even, odd) > 0.1:
        return ()
    return ("utf-16-le",) if odd > even else ("utf-16-be",)


def _declared(data: bytes) -> Iterator[str]:
    for label in DECLARED.findall(data[:4096]):
        for name in _labelled(label.decode("ascii")):
            if not name.startswith(NOT_LEGACY):
                yield name


def _labelled(label: str) -> tuple[str, ...]:
    """Return the encodings that a label may mean, narrowest first; empty if it is no text encoding."""
    plain = label.strip(" \t\"'").lower()
    try:
        name = codecs.lookup(LABELS.get(plain, plain)).name.replace("-", "_")
        b"a ".decode(name)
    except (LookupError, ValueError):
        return ()
    return next((family for family in FAMILIES if name in family), (name,))


def _sample(data: bytes) -> bytes:
    """Return the lines with non-ASCII bytes, up to a limit: only they distinguish encodings."""
    telling = b"\n".join(line for line in data[: 20 * SAMPLE_BYTES].split(b"\n") if not line.isascii())
    return telling[:SAMPLE_BYTES] or data[:SAMPLE_BYTES]


def _accented(data: bytes) -> bool:
    """Return whether bytes above ASCII are isolated, as accents in Latin text are, unlike other scripts."""
    runs = ABOVE_ASCII.findall(data)
    return sum(len(run) == 1 and run in ALONE for run in runs) > 0.65 * len(runs)


def _fit(sample: bytes, encoding: str) -> float:
    """Return the fraction of non-ASCII characters that one language would use, less capitals inside words."""
    text = sample.decode(encoding, errors="replace")
    counts = Counter(text)
    telling = {character: count for character, count in counts.items() if character > "\x7f"}
    total = max(1, sum(telling.values()))
    usual = sum(count for character, count in telling.items() if character in PUNCTUATION)
    swapped = sum(a.islower() and b.isupper() for a, b in pairwise(text) if a > "\x7f" < b)
    return max(
        (usual - swapped + sum(count for character, count in telling.items() if character in letters)) / total
        for letters in LETTERS
    )


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
    """A decoded text, its encoding, and warnings."""

    text: str
    encoding: str
    doubts: tuple[str, ...]


def plain_text(data: bytes, name: str, *, is_text: bool, charset: str | None = None) -> PlainText:
    """Return the text of a file; zero characters are replaced.

    `known` means that the name is that of a text file. Raises UnreadableFile for other content, and
    UnsupportedContent if that content is recognized.
    """
    refuse_unsupported(name, data)
    decoded = decode(data, charset)
    if decoded is None or _looks_binary(decoded.text, 0.1 if is_text else 0.0):
        fault = UnreadableFile if is_text else UnsupportedContent
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
    """Return whether there are too many zero characters, or many other control characters."""
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
