"""Words of a message: content words, names, and function words."""

from collections.abc import Sequence
from typing import Final

from conspectus.text.analyzer import STOP_WORDS
from conspectus.text.late_patterns import regex_pattern

READ: Final = 2_000
"""Maximum characters of a message that are read."""
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
"""Conversational words without a subject."""
_DENSE = r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]"
_WORD: Final = regex_pattern(r"[\p{L}\p{M}\p{N}]++(?:[.'\u2019@_:/+-][\p{L}\p{M}\p{N}]++)*+[+#]*+")
_IN_NAME = r"[\p{L}\p{M}\p{N}.'\u2019&-]*+"
_BETWEEN = r"[ \t]++(?:(?:of|the|de|von|van|and|for|in)[ \t]++)?+"
_NAME: Final = regex_pattern(rf"\p{{Lu}}{_IN_NAME}(?:{_BETWEEN}[\p{{Lu}}\p{{N}}]{_IN_NAME})*+")
_OPENING, _CLOSING = r"\u201c\u201e\u00ab", r"\u201d\u00bb"
_QUOTED: Final = regex_pattern(rf'["{_OPENING}]([^"{_OPENING}{_CLOSING}\n]{{2,60}})["{_CLOSING}\u201c]')
_DENSE_WORD: Final = regex_pattern(_DENSE)
_ENGLISH_SHARE = 0.2


def words(text: str) -> list[str]:
    """Return the words at the start of a text, in order."""
    return _WORD.findall(text[:READ])


def content_words(text: str) -> list[str]:
    """Return the content words of a text."""
    return [word for word in words(text) if _has_content(word)]


def names(text: str) -> list[str]:
    """Return quoted terms and capitalized phrases, without function words at their ends."""
    text = text[:READ]
    runs = (_trim_function_words(run.rstrip(".").split()) for run in _NAME.findall(text))
    return [*_QUOTED.findall(text), *(" ".join(run) for run in runs if run)]


def inner_names(text: str) -> list[str]:
    """Return the names after the first word, which is always capitalized."""
    text = text.strip()
    first = _WORD.search(text[:READ])
    return names(text[first.end() :]) if first else []


def size(content: Sequence[str]) -> int:
    """Count words. In scripts without spaces, two characters count as one word."""
    return sum(-(-len(word) // 2) if _DENSE_WORD.search(word) else 1 for word in content)


def is_english(texts: Sequence[str]) -> bool:
    """Return whether enough of the words are English function words."""
    plain_words = [_plain(word) for text in texts for word in words(text)]
    function_words = sum(word in FUNCTION_WORDS for word in plain_words)
    return function_words >= _ENGLISH_SHARE * len(plain_words)


def _has_content(word: str) -> bool:
    plain = _plain(word)
    return (
        plain not in FUNCTION_WORDS
        and plain not in TALK
        and (len(word) > 1 or not word.isascii() or word.isdigit())
    )


def _plain(word: str) -> str:
    return word.lower().replace("'", "").replace("\u2019", "")


def _trim_function_words(run: list[str]) -> list[str]:
    while run and not _has_content(run[0]):
        run = run[1:]
    while run and not _has_content(run[-1]):
        run = run[:-1]
    return run
