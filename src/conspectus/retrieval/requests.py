"""What a request is about: `Can you list the order in which I brought up my trips?` is about `my trips`.

Retrievers look for the subject of a request: words that ask for it also occur in other requests, which are
not about it. Only a text that begins as a request is changed, so keywords and questions stay as they are.
"""

import re
from typing import Final

from conspectus.retrieval.request_words import REQUEST_WORDS, RequestWords
from conspectus.text.analyzer import STOP_WORDS
from conspectus.text.late_patterns import re_pattern

MAX_REQUEST_CHARACTERS: Final = 1_000
"""Longer texts are searched for as they are."""
_BEFORE: Final = r"[\s,:;¿¡]*"
_AFTER: Final = r"(?=[\s,.?!]|$)"
_END: Final = r"[\s,.:;?!]*$"
_EDGES: Final = " \t\n,.:;?!¿¡"


class _RequestGrammar:
    """Patterns for the words of a language, in the order in which they stand in a request."""

    def __init__(self, words: RequestWords) -> None:
        self._opening = _pattern(rf"{_BEFORE}(?:{words.openings}|{words.verbs}){_AFTER}")
        self._form = _pattern(rf"{_BEFORE}{words.forms}{_BEFORE}(?<=[\s,])(?:{words.links}){_AFTER}")
        self._parts = (
            _pattern(rf"{_BEFORE}(?:{words.mentions}){_AFTER}"),
            _pattern(rf"{_BEFORE}(?:{words.aspects}){_AFTER}"),
        )
        self._ending = _pattern(rf"[\s,](?:{words.endings}){_END}")
        self._style = _pattern(
            rf"[.?!]\s+(?:{words.styles})\b[^.!?\n]*\b(?:{words.measures})\b[^.!?\n]*[.?!]*\s*$"
        )

    def find_subject(self, text: str) -> str:
        """Return the subject of a request; empty if the text is no request in this language."""
        subject = text
        while opening := self._opening.match(subject):
            subject = subject[opening.end() :]
        if subject == text:
            return ""
        while style := self._style.search(subject):
            subject = subject[: style.start()]
        for pattern in (self._form, *self._parts):
            if words := pattern.match(subject):
                subject = subject[words.end() :]
        while ending := self._ending.search(subject):
            subject = subject[: ending.start()]
        return subject.strip(_EDGES)


def _pattern(text: str) -> re.Pattern[str]:
    return re_pattern(text, re.IGNORECASE)


_GRAMMARS: Final = tuple(map(_RequestGrammar, REQUEST_WORDS.values()))


def request_subject(text: str) -> str:
    """Return what a request is about, or the whole text if it is no request or would lose all its content."""
    if len(text) > MAX_REQUEST_CHARACTERS:
        return text
    for grammar in _GRAMMARS:
        subject = grammar.find_subject(text.replace("\u2019", "'"))
        if subject:
            words = subject.casefold().split()
            return text if STOP_WORDS["english"].issuperset(words) else subject
    return text
