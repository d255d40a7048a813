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

SAMPLE_BYTES = 200_000
BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
ENCODING_FAMILIES = (
    ("shift_jis", "cp932"), ("gb2312", "gbk", "gb18030"), ("big5", "cp950", "big5hkscs"),
    ("euc_kr", "cp949"), ("tis_620", "cp874"),
)  # fmt: skip
"""Encodings with their supersets, narrowest first."""
ENCODINGS_BY_LABEL = {
    "x-sjis": "shift_jis", "windows-31j": "cp932", "x-euc-jp": "euc_jp", "ks_c_5601-1987": "euc_kr",
    "windows-949": "cp949", "x-gbk": "gbk", "x-mac-cyrillic": "mac_cyrillic", "windows-874": "cp874",
    "iso-8859-1": "cp1252", "iso8859-1": "cp1252", "latin1": "cp1252", "us-ascii": "cp1252",
    "iso-8859-9": "cp1254",
}  # fmt: skip
LATIN_ENCODINGS = ("cp1252", "cp1250", "iso8859_2", "cp1254", "cp1257", "iso8859_15")
GUESSABLE_ENCODINGS = (
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
LETTERS_BY_LANGUAGE = tuple(frozenset(alphabet + alphabet.upper()) for alphabet in ALPHABETS)
LATIN_PUNCTUATION = frozenset(
    "\u2018\u2019\u201a\u201c\u201d\u201e\u2039\u203a\u2013\u2014\u2026\u2022\xa0\xad\xb4«»·°§©®™€£№¡¿ªº½"
)
NOT_LEGACY = ("utf", "ascii", "idna", "punycode", "unicode", "raw", "undefined")
DECLARATION = re.compile(rb"""(?:encoding|charset|coding)\s*[=:]\s*["']?\s*([A-Za-z0-9_.:-]{2,40})""", re.I)
ABOVE_ASCII = re.compile(rb"[\x80-\xff]+")
ACCENT_BYTES = bytes(range(0xA0, 0x100)) + b"\x80\x85\x91\x92\x93\x94\x95\x96\x97\x99"
ISO_2022_ESCAPES = ((b"\x1b$)C", "iso2022_kr"), (b"\x1b$B", "iso2022_jp"), (b"\x1b$@", "iso2022_jp"))


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
    has_mark = any(data.startswith(mark) for mark, _ in BYTE_ORDER_MARKS)
    by_charset = None if charset is None or has_mark else _decode_strictly(data, _encodings_of(charset))
    return by_charset or _decode_unambiguous(data) or _decode_declared(data) or _decode_guessing(data)


def _decode_unambiguous(data: bytes) -> Decoded | None:
    """Decode by a byte order mark, zero bytes or escapes, or as valid UTF-8."""
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            return _decode_strictly(data, (encoding,)) or _decode_replacing(data, encoding, 0.01)
    wide_encodings = _utf_without_mark(data)
    if wide_encodings:
        return _decode_strictly(data, wide_encodings, guessed=True)
    escaped_encodings = tuple(encoding for escape, encoding in ISO_2022_ESCAPES if escape in data)
    return _decode_strictly(data, (*escaped_encodings, "utf-8"))


def _decode_declared(data: bytes) -> Decoded | None:
    """Decode as UTF-8 or the declared encoding, if only a few bytes are damaged."""
    encodings = tuple(_declared_encodings(data))
    decoded = _decode_replacing(data, "utf-8", 0.5) or _decode_strictly(data, encodings)
    if decoded is None and encodings:
        decoded = _decode_replacing(data, encodings[-1], 0.01)
    return decoded


def _decode_guessing(data: bytes) -> Decoded | None:
    """Decode by the letters of Latin languages, or by chardet."""
    sample = _sample(data)
    if _has_isolated_accents(sample):
        encodings = sorted(LATIN_ENCODINGS, key=lambda name: -_latin_fitness(sample, name))
    else:
        guess = chardet.detect(sample, include_encodings=GUESSABLE_ENCODINGS)["encoding"]
        encodings = list(_encodings_of(guess or ""))
    return _decode_strictly(data, [*encodings, *LATIN_ENCODINGS, "latin-1"], guessed=True)


def _decode_strictly(data: bytes, encodings: Iterable[str], *, guessed: bool = False) -> Decoded | None:
    """Return the text in the first encoding in which all of it is valid."""
    for encoding in encodings:
        try:
            return Decoded(data.decode(encoding), encoding, guessed)
        except UnicodeError:
            continue
    return None


def _decode_replacing(data: bytes, encoding: str, max_share: float) -> Decoded | None:
    """Return the text with damaged bytes replaced, if they are few compared with valid characters."""
    text = data.decode(encoding, errors="replace")
    damaged = text.count("\ufffd")
    valid = sum(map(len, re.findall("[^\x00-\x7f\ufffd]+", text)))
    return Decoded(text, encoding, damaged=damaged) if 0 < damaged <= max_share * valid else None


def _utf_without_mark(data: bytes) -> tuple[str, ...]:
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


def _declared_encodings(data: bytes) -> Iterator[str]:
    """Return the legacy encodings that the beginning of a file names."""
    for label in DECLARATION.findall(data[:4096]):
        for name in _encodings_of(label.decode("ascii")):
            if not name.startswith(NOT_LEGACY):
                yield name


def _encodings_of(label: str) -> tuple[str, ...]:
    """Return the encodings that a label may mean, narrowest first; empty if it is no text encoding."""
    plain = label.strip(" \t\"'").lower()
    try:
        name = codecs.lookup(ENCODINGS_BY_LABEL.get(plain, plain)).name.replace("-", "_")
        b"a ".decode(name)
    except (LookupError, ValueError):
        return ()
    return next((family for family in ENCODING_FAMILIES if name in family), (name,))


def _sample(data: bytes) -> bytes:
    """Return the lines with non-ASCII bytes, up to a limit: only they distinguish encodings."""
    lines = data[: 20 * SAMPLE_BYTES].split(b"\n")
    sample = b"\n".join(line for line in lines if not line.isascii())
    return sample[:SAMPLE_BYTES] or data[:SAMPLE_BYTES]


def _has_isolated_accents(data: bytes) -> bool:
    """Return whether bytes above ASCII are isolated, as accents in Latin text are, unlike other scripts."""
    runs = ABOVE_ASCII.findall(data)
    return sum(len(run) == 1 and run in ACCENT_BYTES for run in runs) > 0.65 * len(runs)


def _latin_fitness(sample: bytes, encoding: str) -> float:
    """Return the fraction of non-ASCII characters that one language would use, less capitals inside words."""
    text = sample.decode(encoding, errors="replace")
    counts = Counter(text)
    above_ascii = {character: count for character, count in counts.items() if character > "\x7f"}
    total = max(1, sum(above_ascii.values()))
    punctuation = sum(count for character, count in above_ascii.items() if character in LATIN_PUNCTUATION)
    capitals = sum(a.islower() and b.isupper() for a, b in pairwise(text) if a > "\x7f" < b)
    letters = max(
        sum(count for character, count in above_ascii.items() if character in alphabet)
        for alphabet in LETTERS_BY_LANGUAGE
    )
    return (punctuation - capitals + letters) / total
