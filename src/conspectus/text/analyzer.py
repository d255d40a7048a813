"""Text analysis for keyword search: terms, identifiers and stop words, equal for documents and queries."""

import hashlib
import threading
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from itertools import chain, pairwise
from types import MappingProxyType
from typing import TypeVar

import regex
import Stemmer

from conspectus.errors import InvalidInput
from conspectus.text.late_patterns import re_pattern, regex_pattern

MAX_TERM_LENGTH = 64
_Value = TypeVar("_Value")
_CACHE_SIZE = 131_072
_MAX_PARTS = 6
_MAX_VERSION_PARTS = 4

_DENSE = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Bopomofo}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tibetan}"
    r"\u30FC\u3005\u3006"
)
_WORD = rf"[[\p{{L}}\p{{M}}\p{{N}}_\u00AD\u200C\u200D]--[{_DENSE}]]"
_TOKEN = regex_pattern(
    rf"""
    (?P<emoji>\p{{RI}}{{2}}|\p{{ExtPict}}[\p{{EMod}}\uFE0F]*+(?:\u200D\p{{ExtPict}}[\p{{EMod}}\uFE0F]*+)*+)
    |(?P<dense>[{_DENSE}][{_DENSE}\p{{M}}]*+)
    |(?P<language>(?<!\w)[A-Za-z](?:\+\+|\#)(?!\w))
    |(?P<address>[A-Za-z]++://[^\s<>"'()\[\]{{}}]++)
    |(?P<compound>(?:(?<![\w.])\.(?=\p{{L}}))?{_WORD}++(?:(?:[.'\u2019@:-]|::|(?<=\d),(?=\d{{3}}(?!\d))){_WORD}++)*+)
    """,
    regex.VERBOSE | regex.VERSION1,
)
_PLAIN = re_pattern(
    r"""[("'\[{<*\u201C\u2018]*+([A-Za-z]?[a-z]++|[A-Z]{2,}+s?)[)"'\]}>*.,;:!?\u201D\u2019\u2026]*+"""
)
_CASED_PARTS = regex_pattern(
    r"\p{Lu}{2,}s(?!\p{Ll})|\p{Lu}+(?!\p{Ll})|\p{Lu}?[\p{L}\p{M}--\p{Lu}]+|\p{N}+", regex.V1
)
_NUMBER = regex_pattern(r"\d{1,3}(?:,\d{3})++(?:\.\d++)?")
_DOTTED = regex_pattern(r"(\p{L}*+)(\d++(?:\.\d++)++)([\p{L}\p{M}][\p{L}\p{M}\p{N}]*+)?")
_ENGLISH_CLITIC = regex_pattern(r"(.*[^'])'(?:s|ll|re|ve|d|m)", regex.IGNORECASE)
_ACCENTS = regex_pattern(
    r"(?:(?<=[\u0438\u0443])(?!\u0306)|(?<=\u0456)(?!\u0308)|(?<=[[\p{Latin}\p{Greek}\p{Cyrillic}]--[\u0438\u0443\u0456]]))\p{Mn}++",
    regex.VERSION1,
)
_LETTERS_ONLY = regex_pattern(r"[\p{L}\p{M}]++")
_SCRIPTS = (
    ("\u0370", "\u03ff", ("greek",)),
    ("\u0400", "\u052f", ("russian", "serbian")),
    ("\u0530", "\u058f", ("armenian",)),
    ("\u0600", "\u077f", ("arabic",)),
    ("\u0900", "\u097f", ("hindi", "nepali")),
    ("\u0b80", "\u0bff", ("tamil",)),
)
"""Scripts by their first and last letter, each with the languages of Snowball that use it."""
_INVISIBLE = regex_pattern(r"[\u00AD\u200C\u200D\uFE0F]|\p{EMod}")
_LETTERS = str.maketrans(
    {
        "ł": "l",
        "ø": "o",
        "đ": "d",
        "ð": "d",
        "þ": "th",
        "æ": "ae",
        "œ": "oe",
        "\u0131": "i",
        "ħ": "h",
        "ŧ": "t",
    }
)
_AFTER_ADDRESS = ".,;:!?/*_"
_IDENTIFIER = re_pattern(r"^(?![^\W\d_]+-?\d$)(?:.*[^\W\d_]|(?:\D*\d){7}|(?:[^.]*\.){2})")
_UNSPLIT_IDENTIFIER = re_pattern(r"^(?=.*\d)(?=.*[^\W\d_])\w{5}|^\d{7}")
_SEPARATORS = ("@", "::", ":", "-", ".", "'")


class Analyzer:
    """Converts a text to index terms.

    Words are normalized, case-folded, stripped of accents and stemmed. A word in a script that the language
    does not use is stemmed in the main language of that script. A word gives one term. An identifier, number,
    version or address gives itself and its parts. Scripts without spaces give overlapping pairs of
    characters. An emoji is a term. Terms have at most 64 characters. An analyzer is thread-safe.

    Args:
        language: a Snowball language ("english", "german", …), or None for no stemming.
        stop_words: omit function words such as "the" and "how" if a list for the language exists.
            Acronyms in capitals (WHO, IT) are terms, and so is every word of a text of stop words only.

    Raises:
        InvalidInput: unknown language.
    """

    __slots__ = (
        "_everything",
        "_identified",
        "_lock",
        "_stemmers",
        "_stems",
        "_stop_words",
        "_terms_by_word",
        "language",
        "stop_words",
    )

    def __init__(self, language: str | None = "english", *, stop_words: bool = True) -> None:
        if language is not None and language not in Stemmer.algorithms():
            raise InvalidInput("language", f"{language!r} is not one of {', '.join(Stemmer.algorithms())}")
        self.language = language
        self.stop_words = stop_words
        self._stop_words = STOP_WORDS.get(language or "", frozenset()) if stop_words else frozenset()
        self._everything = Analyzer(language, stop_words=False) if self._stop_words else None
        self._lock = threading.Lock()
        self._stemmers: dict[str, Stemmer.Stemmer] = {}
        self._stems = _Cache(self._stem)
        self._terms_by_word = _Cache(self._analyse)
        self._identified = _Cache(self._identify)

    def terms(self, text: str) -> list[str]:
        """Return all terms with repetitions, in the order of the text."""
        terms = list(chain.from_iterable(map(self._terms_by_word.__getitem__, text.split())))
        if terms or self._everything is None:
            return terms
        return self._everything.terms(text)

    def identifiers(self, text: str) -> dict[str, tuple[str, ...]]:
        """Return the ids, versions, file names and similar tokens of a text, each with all its terms.

        An identifier has several terms, and has letters, seven digits or two dots; or it mixes letters and
        digits, or has seven digits. A word with one digit ("python3", "IL-6") is not an identifier.
        """
        return dict(chain.from_iterable(map(self._identified.__getitem__, text.split())))

    def _identify(self, word: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
        tokens = () if _PLAIN.fullmatch(word) else (match[0] for match in _TOKEN.finditer(_normalize(word)))
        return tuple(chain.from_iterable(map(self._identifiers, tokens)))

    def _identifiers(self, token: str) -> Iterator[tuple[str, tuple[str, ...]]]:
        terms = tuple(self._tokens(token))
        folded = _fold(_strip_clitic(token.partition("://")[2].rstrip(_AFTER_ADDRESS) or token))
        if terms and terms[0] in {_bound(folded), _bound(folded.strip("_")), self._stems[folded]}:
            if (_IDENTIFIER if len(terms) > 1 else _UNSPLIT_IDENTIFIER).search(folded):
                yield terms[0], terms
        elif "-" in token:
            yield from chain.from_iterable(map(self._identifiers, token.split("-")))

    def _analyse(self, word: str) -> tuple[str, ...]:
        plain = _PLAIN.fullmatch(word)
        return tuple(self._word(plain[1]) if plain else self._tokens(word))

    def _tokens(self, word: str) -> Iterator[str]:
        for token_match in _TOKEN.finditer(_normalize(word)):
            token = token_match[0]
            match token_match.lastgroup:
                case "emoji":
                    yield _bound(_INVISIBLE.sub("", token) if "\u200d" not in token else token)
                case "dense":
                    yield from _pair_clusters(token)
                case "language":
                    yield token.lower()
                case "address":
                    yield from self._address(token)
                case _:
                    yield from self._compound(token if token.isascii() else _INVISIBLE.sub("", token))

    def _address(self, token: str) -> Iterator[str]:
        address = token.rstrip(_AFTER_ADDRESS)
        scheme, _, rest = address.partition("://")
        if address_term := _bound(_fold(rest)):
            yield address_term
        yield _fold(scheme)
        yield from self._tokens(rest.replace("://", " "))

    def _compound(self, token: str) -> Iterator[str]:
        if token.isascii() and token.isalpha() and token.islower():
            yield from self._word(token)
        elif token.isalnum():
            yield from self._segment(token)
        else:
            yield from self._split_punctuated(token)

    def _split_punctuated(self, token: str) -> Iterator[str]:
        if token.startswith("."):
            yield _bound(_fold(token))
            token = token[1:]
        if _NUMBER.fullmatch(token):
            token = token.replace(",", "")
        token = _strip_clitic(token)
        dotted = _DOTTED.fullmatch(token)
        separator = next((mark for mark in _SEPARATORS if mark in token), None)
        if dotted:
            yield from self._split_dotted(dotted)
        elif separator is None:
            yield from self._segment(token)
        else:
            yield from self._split_joined(token, separator)

    def _split_joined(self, token: str, separator: str) -> Iterator[str]:
        parts = [part for part in token.split(separator) if part]
        if not parts:
            return
        if (
            separator == "."
            and all(len(part) == 1 for part in parts)
            and (token.isupper() or len(parts) == 2)
        ):
            yield from self._word("".join(parts))
            return
        if separator == "'":
            yield from self._word("".join(parts))
            parts = [] if parts[-1].lower() == "t" else parts
        elif separator in (".", "@", "::") or any(character.isdigit() for character in token):
            yield _bound(_fold(token))
        for part in parts:
            yield from self._compound(part)

    def _split_dotted(self, match: regex.Match[str]) -> Iterator[str]:
        before, number, after = match.groups()
        yield _bound(_fold(match[0]))
        if len(before) > 1:
            yield self._stems[_fold(before)]
        if before or after:
            yield _bound(number)
        parts = number.split(".", _MAX_VERSION_PARTS)
        for count in range(2, min(len(parts), _MAX_VERSION_PARTS)):
            yield _bound(".".join(parts[:count]))

    def _segment(self, token: str) -> Iterator[str]:
        special = token.startswith("__") and token.endswith("__")
        bare = token if token.isalnum() else token.strip("_")
        if not bare:
            return
        pieces = [piece for piece in bare.split("_") if piece]
        if len(pieces) > 1 or special:
            yield _bound(_fold(token if special else bare))
        for piece in pieces:
            yield from self._word(piece)
            yield from self._parts(piece)

    def _parts(self, piece: str) -> Iterator[str]:
        if len(piece) > MAX_TERM_LENGTH or (piece.isalpha() and (piece.islower() or piece.isupper())):
            return
        parts = _CASED_PARTS.findall(piece)
        if 1 < len(parts) <= _MAX_PARTS:
            yield from (self._stems[_fold(part)] for part in parts if len(part) > 1)

    def _word(self, word: str) -> tuple[str, ...]:
        folded = _fold(word)
        if folded in self._stop_words and (len(word) == 1 or not word.isupper()):
            return ()
        return (self._stems[folded],)

    def _stem(self, folded: str) -> str:
        if len(folded) > MAX_TERM_LENGTH or self.language is None or not _LETTERS_ONLY.fullmatch(folded):
            return _bound(folded)
        language = _language_of(folded[0], self.language)
        # A Snowball stemmer keeps its working buffer between calls and must not be shared unguarded.
        with self._lock:
            if language not in self._stemmers:
                self._stemmers[language] = Stemmer.Stemmer(language)
            stem: str = self._stemmers[language].stemWord(folded)
        return stem


@cache
def analyzer_for(language: str | None) -> Analyzer:
    """Return the shared analyzer of a language; it caches words."""
    return Analyzer(language)


class _Cache(dict[str, _Value]):
    """A cache that computes the value of each short key once, and is cleared when it is full."""

    __slots__ = ("_compute",)

    def __init__(self, compute: Callable[[str], _Value]) -> None:
        super().__init__()
        self._compute = compute

    def __missing__(self, key: str) -> _Value:
        value = self._compute(key)
        if len(key) <= MAX_TERM_LENGTH:
            if len(self) >= _CACHE_SIZE:
                self.clear()
            self[key] = value
        return value


def _language_of(letter: str, usual: str) -> str:
    """Return the language for stemming a word that begins with this letter."""
    using = next((languages for first, last, languages in _SCRIPTS if first <= letter <= last), (usual,))
    return usual if usual in using else using[0]


def _normalize(text: str) -> str:
    if text.isascii():
        return text
    return unicodedata.normalize("NFKC", text).replace("\u2019", "'")


def _fold(text: str) -> str:
    if text.isascii():
        return text.lower()
    opened = unicodedata.normalize("NFD", text.casefold().translate(_LETTERS))
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", opened))


def _strip_clitic(token: str) -> str:
    match = _ENGLISH_CLITIC.fullmatch(token) if "'" in token else None
    return match[1] if match else token


def _pair_clusters(run: str) -> Iterator[str]:
    clusters = regex.findall(r"\X", run)
    if len(clusters) == 1:
        yield _bound(run)
    for left, right in pairwise(clusters):
        yield _bound(left + right)


def _bound(term: str) -> str:
    if len(term) <= MAX_TERM_LENGTH:
        return term
    digest = hashlib.sha256(term.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return term[: MAX_TERM_LENGTH - 16] + digest


_ENGLISH = """
a an the this that these those some any no such
i me my we us our ours you your yours he him his she her hers it its they them their theirs
itself themselves who whom whose which what when where why how
and or but nor so if then than too also very not there here as
of in on at by for from to into onto with about
am is are was were be been being do does did doing has have had having
can could should would will shall may might must
cannot cant dont doesnt didnt isnt arent wasnt werent wont
"""

STOP_WORDS: Mapping[str, frozenset[str]] = MappingProxyType({"english": frozenset(_ENGLISH.split())})
ALL_STOP_WORDS = frozenset().union(*STOP_WORDS.values())
