"""Features of one message: its words, the people it names, and its kind."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from enum import IntEnum

from conspectus.deferred import dataclass
from conspectus.text.analyzer import STOP_WORDS
from conspectus.text.late_patterns import re_pattern

MAX_NAME_LENGTH = 80
FUNCTION_WORDS = STOP_WORDS["english"]
_SHORTEST_NAME = 3
_OFTEN = 4
_MAX_TYPOS = 2
_LETTERS_A_SLIP = 4
_LEADING = "@<(\"'`*"
_TRAILING = ":,;.!?>)\"'`*\u2026\uff0c\uff1a\u3001"
_ADDRESSING = ":,;>\uff0c\uff1a\u3001"


class NameMatcher(IntEnum):
    """How a message names a person; a higher value means a clearer address."""

    NOT = 0
    INSIDE = 1
    LAST = 2
    FIRST = 3
    MARKED = 4
    ADDRESSED = 5


class Participants:
    """The authors of remembered messages as small numbers, which are reused."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._messages: dict[int, int] = {}
        self._free: list[int] = []
        self._by_first: dict[str, list[tuple[tuple[str, ...], int]]] = {}

    def __len__(self) -> int:
        return len(self._names) + len(self._free)

    def find(self, author: str | None) -> int:
        """Return the number of an author, -1 for an unknown one."""
        return -1 if author is None else self._numbers.get(_fold_name(author), -1)

    def join(self, author: str | None) -> int:
        """Count one more message and return the number of its author, -1 for none."""
        if author is None:
            return -1
        name = _fold_name(author)
        number = self._numbers.get(name)
        if number is None:
            number = self._free.pop() if self._free else len(self._names)
            self._numbers[name], self._names[number], self._messages[number] = number, name, 0
            pieces = _pieces(name)
            self._by_first.setdefault(pieces[0], []).append((pieces, number))
        self._messages[number] += 1
        return number

    def leave(self, number: int) -> bool:
        """Count one message less and return whether it was the last of its author."""
        self._messages[number] -= 1
        if self._messages[number]:
            return False
        name = self._names.pop(number)
        del self._numbers[name], self._messages[number]
        pieces = _pieces(name)
        self._by_first[pieces[0]].remove((pieces, number))
        if not self._by_first[pieces[0]]:
            del self._by_first[pieces[0]]
        self._free.append(number)
        return True

    def find_named(self, pieces: Sequence[str], usage: Mapping[str, Sequence[int]]) -> dict[int, NameMatcher]:
        """Return the people that a text names, and how. `pieces` are its lower-case tokens.

        `usage` has the remembered messages with each word: a name that is also a word counts only with a mark
        or in a clear position.
        """
        people: dict[int, NameMatcher] = {}
        bare = tuple(_bare(piece) for piece in pieces)
        for start, first in enumerate(bare):
            for name, number in self._by_first.get(first, ()):
                end = start + len(name)
                if bare[start:end] != name:
                    continue
                how = _how(pieces, start, end)
                if how >= NameMatcher.MARKED or not _is_word(" ".join(name), usage):
                    people[number] = max(how, people.get(number, how))
        return people

    def find_resembling(self, name: str) -> int | None:
        """Return the person whose name is misspelled or abbreviated in this way; None without a match."""
        close = (number for person, number in self._numbers.items() if _is_similar(person, name))
        return next(close, None)


def find_addressed(pieces: Sequence[str]) -> str | None:
    """Return the name that a text addresses with a mark, also if it is unknown."""
    if not pieces or not (pieces[0].startswith("@") or pieces[0].endswith((":", "\uff1a"))):
        return None
    name = _bare(pieces[0])
    return name if len(name) >= _SHORTEST_NAME and name not in FUNCTION_WORDS else None


def _fold_name(author: str) -> str:
    return " ".join(author[:MAX_NAME_LENGTH].casefold().split())


def _pieces(name: str) -> tuple[str, ...]:
    return tuple(_bare(piece) for piece in name.split()) or ("",)


def _bare(piece: str) -> str:
    return piece.lstrip(_LEADING).rstrip(_TRAILING) or piece


def _how(pieces: Sequence[str], start: int, end: int) -> NameMatcher:
    marked = pieces[start].startswith(("@", "<@"))
    if start == 0:
        apart = end < len(pieces) and pieces[end] in _ADDRESSING
        return (
            NameMatcher.ADDRESSED
            if marked or apart or pieces[end - 1][-1] in _ADDRESSING
            else NameMatcher.FIRST
        )
    if marked:
        return NameMatcher.MARKED
    return NameMatcher.LAST if end == len(pieces) else NameMatcher.INSIDE


def _is_word(name: str, usage: Mapping[str, Sequence[int]]) -> bool:
    short = len(name) < _SHORTEST_NAME or name.isdigit()
    return short or name in FUNCTION_WORDS or len(usage.get(name, ())) > _OFTEN


def _is_similar(other_name: str, name: str) -> bool:
    longest = max(len(other_name), len(name))
    slips = min(_MAX_TYPOS, longest // _LETTERS_A_SLIP)
    if other_name[:_SHORTEST_NAME] != name[:_SHORTEST_NAME] or abs(len(other_name) - len(name)) > slips:
        return False
    pairs = tuple(zip(other_name, name, strict=False))
    before = next((at for at, (one, other) in enumerate(pairs) if one != other), len(pairs))
    ends = zip(reversed(other_name[before:]), reversed(name[before:]), strict=False)
    after = next((at for at, (one, other) in enumerate(ends) if one != other), len(pairs) - before)
    return before + after >= longest - slips


MAX_TEXT_LENGTH = 1000
MAX_WORDS = 60
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
_WORD = re_pattern(r"\w+")
_DENSE = re_pattern(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff]"
)


@dataclass(frozen=True, slots=True)
class Utterance:
    """One message. `system` marks lines such as "bob has joined", which answer nothing."""

    author: str | None
    text: str
    at: datetime | None
    system: bool = False


@dataclass(frozen=True, slots=True)
class MessageParser:
    """The features of the beginning of a message.

    `named` are the remembered people that it names, `stranger` says that it addresses an unknown person.
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
        """How it names the person whom it addresses most clearly."""
        return max(self.named.values(), default=NameMatcher.ADDRESSED if self.stranger else NameMatcher.NOT)


def read(text: str, people: Participants, usage: Mapping[str, Sequence[int]]) -> MessageParser:
    """Parse a message; `usage` has the remembered messages with each word."""
    text = text[:MAX_TEXT_LENGTH]
    pieces = [piece[:MAX_NAME_LENGTH] for piece in text.casefold().split()[:MAX_WORDS]]
    named = people.find_named(pieces, usage)
    target = find_addressed(pieces) if NameMatcher.ADDRESSED not in named.values() else None
    meant = None if target is None else people.find_resembling(target)
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
    """Yield words, and pairs of characters for scripts without spaces."""
    for run in _WORD.findall(text)[: 2 * MAX_WORDS]:
        if len(run) > 1 and not run.isascii() and _DENSE.search(run):
            yield from (run[start : start + 2] for start in range(len(run) - 1))
        else:
            yield run
