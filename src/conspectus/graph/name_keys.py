"""Keys and URIs of names: what two spellings of one name have in common."""

import hashlib
import unicodedata
from collections.abc import Iterable
from typing import Final

import regex

from conspectus.text.late_patterns import regex_pattern

LONGEST_KEY: Final = 400
"""Of a name so many characters count; what is longer is no name that two people would write alike."""
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
_SPACES: Final = regex_pattern(r"\s++")
_ARTICLE: Final = regex_pattern(r"^(?:the|an?) (?=\S)")
_POSSESSIVE: Final = regex_pattern(r"(?<=\w) ?'s?+$")
_QUOTES: Final = " \"'"
_ENDS: Final = _QUOTES + ".,;:!?"


def key_of(name: str) -> str:
    """A name without what does not tell it from others.

    That is: case, accents, compatibility forms, typographic quotes and dashes, what is not seen, surrounding
    punctuation, an article before it and a possessive after it. Spaces become single. The key of a key is
    the key; only a name without anything but punctuation keeps that, and only nothing has the empty key.
    """
    given = name[:LONGEST_KEY]
    folded = given.casefold() if given.isascii() else _opened(given)
    return _bare(_SPACES.sub(" ", folded).strip()[:LONGEST_KEY])


def keys_of(name: str, aliases: Iterable[str] = ()) -> tuple[str, ...]:
    """The keys of a name and of what else it is called, each once, in that order."""
    return tuple(key for key in dict.fromkeys(map(key_of, (name, *aliases))) if key)


def _opened(name: str) -> str:
    text = unicodedata.normalize("NFKC", _UNSEEN.sub("", name)).translate(_SPELT)
    opened = unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text.casefold()))
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", opened)).translate(_SPELT).casefold()


def _bare(text: str) -> str:
    """The text without edges, possessives and articles, of which it may have several."""
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
    """The address of an entity: the base, its name and `#` its type, both in plain lower case.

    Where an id is given that is not the plain name, a digest of it stands before the name, so that two
    entities of one name and type keep apart. What is an address with this base already stays as it is.
    """
    if name.startswith(base):
        return name
    plain = plain_of(name)
    apart = "" if id is None or id == plain else f"{_digest(id)}/"
    return f"{base}{apart}{plain}#{plain_of(type)}"


def plain_of(name: str) -> str:
    """A name in lower case with `_` for whatever is no letter or digit; a digest where nothing is left."""
    return _MARKS.sub("_", key_of(name)).strip("_") or _digest(name)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
