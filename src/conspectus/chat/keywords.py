"""Which words of a message say what it is about: by rules for English, and by what all languages share."""

from collections.abc import Sequence
from typing import Final

import regex

from conspectus.text.analyzer import STOP_WORDS

READ: Final = 2_000
"""Characters of a message that are looked at."""

_SHORTENED = "im ive id ill hes shes theyre youre thats whats"
FUNCTION_WORDS: Final = STOP_WORDS["english"] | frozenset(_SHORTENED.split())
_TALK = """
know tell please want need like think say said mean give get got go going make made let see look help ask
question answer info information detail details more most much many lot thing things something anything
kind kinds type types sort way ways example examples really just only even still yet okay ok yes thanks
thank hi hello hey wow well sure sorry oops good great nice interested interesting wonder wondering
understand explain describe clarify list mention provide available specific regarding one ones another
other others same both each every all else stuff us
"""
TALK: Final = frozenset(_TALK.split())
"""Words of talking itself, which are about nothing."""

_DENSE = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_WORD: Final = regex.compile(r"[\p{L}\p{M}\p{N}]++(?:[.'\u2019@_:/+-][\p{L}\p{M}\p{N}]++)*+[+#]*+")
_IN_NAME = r"[\p{L}\p{M}\p{N}.'\u2019&-]*+"
_BETWEEN = r"[ \t]++(?:(?:of|the|de|von|van|and|for|in)[ \t]++)?+"
_NAME: Final = regex.compile(rf"\p{{Lu}}{_IN_NAME}(?:{_BETWEEN}[\p{{Lu}}\p{{N}}]{_IN_NAME})*+")
_OPENING, _CLOSING = r"\u201c\u201e\u00ab", r"\u201d\u00bb"
_QUOTED: Final = regex.compile(rf'["{_OPENING}]([^"{_OPENING}{_CLOSING}\n]{{2,60}})["{_CLOSING}\u201c]')
_DENSE_WORD: Final = regex.compile(_DENSE)
_ENGLISH_SHARE = 0.2


def words(text: str) -> list[str]:
    """The words of the beginning of a text, in its order."""
    return _WORD.findall(text[:READ])


def content_words(text: str) -> list[str]:
    """Those that say what it is about."""
    return [word for word in words(text) if _says_something(word)]


def names(text: str) -> list[str]:
    """What is quoted, and runs of words in capitals, without function words at their ends."""
    text = text[:READ]
    found = (_bare(run.rstrip(".").split()) for run in _NAME.findall(text))
    return [*_QUOTED.findall(text), *(" ".join(run) for run in found if run)]


def inner_names(text: str) -> list[str]:
    """The names after the first word, which has a capital whatever it is."""
    text = text.strip()
    first = _WORD.search(text[:READ])
    return names(text[first.end() :]) if first else []


def size(found: Sequence[str]) -> int:
    """How many words these are; in scripts without spaces, two characters are one."""
    return sum(-(-len(word) // 2) if _DENSE_WORD.search(word) else 1 for word in found)


def is_english(texts: Sequence[str]) -> bool:
    """Whether enough of the words are English function words."""
    found = [_plain(word) for text in texts for word in words(text)]
    known = sum(word in FUNCTION_WORDS for word in found)
    return known >= _ENGLISH_SHARE * len(found)


def _says_something(word: str) -> bool:
    plain = _plain(word)
    return (
        plain not in FUNCTION_WORDS
        and plain not in TALK
        and (len(word) > 1 or not word.isascii() or word.isdigit())
    )


def _plain(word: str) -> str:
    return word.lower().replace("'", "").replace("\u2019", "")


def _bare(run: list[str]) -> list[str]:
    while run and not _says_something(run[0]):
        run = run[1:]
    while run and not _says_something(run[-1]):
        run = run[:-1]
    return run
