"""Keys and URIs of names. Spellings of the same name share a key."""

import hashlib
import unicodedata
from collections.abc import Iterable
from typing import Final

import regex

from conspectus.text.late_patterns import regex_pattern

MAX_KEY_LENGTH: Final = 400
"""Maximum number of characters of a name in its key."""
MAX_RELATION_KEY_BYTES: Final = 255
_SPELT: Final = str.maketrans(
    {
        "\u2018": "'", "\u2019": "'", "\u02bc": "'", "\u0060": "'", "\u00b4": "'",
        "\u201c": '"', "\u201d": '"', "\u201e": '"',
        "\u2010": "-", "\u2011": "-", "\u2012": "-", "\u2013": "-", "\u2014": "-",
        "ł": "l", "ø": "o", "đ": "d", "ħ": "h", "ŧ": "t", "\u0131": "i",
    }
)  # fmt: skip
_UNSEEN: Final = regex_pattern(r"[\p{Cf}\p{Cc}--\s]++", regex.VERSION1)
_ACCENTS: Final = regex_pattern(r"(?<=[\p{Latin}\p{Greek}])\p{Mn}++")
_JOINERS: Final = regex_pattern(r"[\p{Pd}\p{Pc}\s]++")
_SPACES: Final = regex_pattern(r"\s++")
_ARTICLE: Final = regex_pattern(r"^(?:the|an?) (?=\S)")
_POSSESSIVE: Final = regex_pattern(r"(?<=\w) ?'s?+$")
_QUOTES: Final = " \"'"
_ENDS: Final = _QUOTES + ".,;:!?"


def key_of(name: str) -> str:
    """Normalize a name to its key.

    The key ignores case, accents, compatibility forms, typographic quotes and dashes, invisible characters,
    surrounding punctuation, a leading article and a final possessive. Spaces are collapsed. The function is
    idempotent. A name of only punctuation keeps it, and only an empty name has an empty key.
    """
    prefix = name[:MAX_KEY_LENGTH]
    folded = prefix.casefold() if prefix.isascii() else _fold_letters(prefix)
    return _bare(_SPACES.sub(" ", folded).strip()[:MAX_KEY_LENGTH])


def keys_of(name: str, aliases: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the distinct keys of a name and its aliases, in this order."""
    return tuple(key for key in dict.fromkeys(map(key_of, (name, *aliases))) if key)


def relation_key(name: str) -> str:
    """Normalize the name of a relation: as a key, and with spaces for underscores, hyphens and dashes.

    "works at", "Works_At" and "works-at" share a key. A name of only such marks keeps them. A key of more
    than 255 bytes is a digest, because an index has the key beside the name and an end of the edge.
    """
    key = key_of(_JOINERS.sub(" ", name)) or key_of(name)
    encoded = key.encode("utf-8", "surrogatepass")
    return key if len(encoded) <= MAX_RELATION_KEY_BYTES else hashlib.sha256(encoded).hexdigest()


def _fold_letters(name: str) -> str:
    text = unicodedata.normalize("NFKC", _UNSEEN.sub("", name)).translate(_SPELT)
    opened = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text.casefold()))
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", opened)).translate(_SPELT).casefold()


def _bare(text: str) -> str:
    """Remove outer punctuation, possessives and articles, repeatedly."""
    before = ""
    while before != text:
        before = text
        text = text.lstrip(_QUOTES).rstrip(_ENDS) or text
        text = _POSSESSIVE.sub("", text)
        text = _ARTICLE.sub("", text)
    return text


BASE: Final = "conspectus://entity/"
_MARKS: Final = regex_pattern(r"[^\p{L}\p{M}\p{N}]++")
_DIGITS: Final = 12


def uri_of(name: str, type: str, *, base: str = BASE, id: str | None = None) -> str:
    """Return the URI of an entity: the base, its name, `#` and its type, in normalized lower case.

    If the id differs from the normalized name, a digest of the id precedes the name. Entities with equal name
    and type therefore have different URIs. An id that is already a URI with this base is returned unchanged.
    """
    if name.startswith(base):
        return name
    plain = normalize_name(name)
    apart = "" if id is None or id == plain else f"{_digest(id)}/"
    return f"{base}{apart}{plain}#{normalize_name(type)}"


def normalize_name(name: str) -> str:
    """Normalize a name: lower case, `_` for other characters than letters and digits; a digest if empty."""
    return _MARKS.sub("_", key_of(name)).strip("_") or _digest(name)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
