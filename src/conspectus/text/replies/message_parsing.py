"""What a message says that tells whom it answers: its words, whom it names, and what kind it is."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from conspectus.text.replies.people import FUNCTION_WORDS, LONGEST_NAME, NameMatcher, Participants, addressed

LONGEST = 1000
MOST_WORDS = 60
_OPENING = 3
_GREETING = "hi hello hey howdy greetings hallo servus hola salut bonjour ciao privet"
_APPEAL = "anyone anybody someone somebody everyone everybody guys all folks jemand alguien qualcuno"
_REACTION = """
yes yeah yep yup ya no nope nah ok okay k kk sure right true exactly indeed agreed cool nice great good
thanks thank thx ty cheers welcome np sorry lol rofl haha heh hehe ah aha oh ohh hmm hm mm well so but and
or because then also maybe probably if it that its thats this they he she ja nein danke si oui merci non
gracias sim
"""
_GREETINGS, _APPEALS = frozenset(_GREETING.split()), frozenset(_APPEAL.split())
_REACTIONS = frozenset(_REACTION.split())
_QUESTION_MARKS = "?\uff1f\u061f"
_WORD = re.compile(r"\w+")
_DENSE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)


@dataclass(frozen=True, slots=True)
class Utterance:
    """One message as it was said. `system` marks lines such as "bob has joined", which answer nothing."""

    author: str | None
    text: str
    at: datetime | None
    system: bool = False


@dataclass(frozen=True, slots=True)
class MessageParser:
    """The beginning of a message, read.

    `named` has the remembered people that it names, `stranger` says that it addresses somebody else.
    """

    words: tuple[str, ...]
    length: int
    named: Mapping[int, NameMatcher]
    stranger: bool
    asks: bool
    commands: bool
    greets: bool
    appeals: bool
    reacts: bool

    @property
    def surest(self) -> NameMatcher:
        """How it names the person whom it most surely speaks to."""
        return max(self.named.values(), default=NameMatcher.ADDRESSED if self.stranger else NameMatcher.NOT)


def read(text: str, people: Participants, usage: Mapping[str, Sequence[int]]) -> MessageParser:
    """Read a message; `usage` has the remembered messages that hold a word."""
    text = text[:LONGEST]
    pieces = [piece[:LONGEST_NAME] for piece in text.casefold().split()[:MOST_WORDS]]
    named = people.named(pieces, usage)
    target = addressed(pieces) if NameMatcher.ADDRESSED not in named.values() else None
    meant = None if target is None else people.resembling(target)
    if meant is not None:
        named[meant] = NameMatcher.ADDRESSED
    spoken = pieces[1:] if target is not None or NameMatcher.ADDRESSED in named.values() else pieces
    words = list(_words(" ".join(spoken)))
    return MessageParser(
        words=tuple(dict.fromkeys(word for word in words if word not in FUNCTION_WORDS)),
        length=len(words),
        named=named,
        stranger=target is not None and meant is None,
        asks=any(mark in text for mark in _QUESTION_MARKS),
        commands=text.lstrip()[:1] in {"!", "/", "."},
        greets=not _GREETINGS.isdisjoint(words[:_OPENING]),
        appeals=not _APPEALS.isdisjoint(words[: 2 * _OPENING]),
        reacts=bool(words) and words[0] in _REACTIONS,
    )


def _words(text: str) -> Iterator[str]:
    """Words, and pairs of characters where a script leaves no spaces between them."""
    for run in _WORD.findall(text)[: 2 * MOST_WORDS]:
        if len(run) > 1 and not run.isascii() and _DENSE.search(run):
            yield from (run[place : place + 2] for place in range(len(run) - 1))
        else:
            yield run
