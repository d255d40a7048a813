"""The messages that are remembered, as columns in which the newest is last."""

import math
from collections import defaultdict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from conspectus.text.replies.message_parsing import MessageParser, NameMatcher, Participants

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NOBODY: Final = -1
STRANGER: Final = -2
_COLUMNS = (
    "author",
    "addressee",
    "partner",
    "answered_author",
    "thread",
    "turn",
    "surest",
    "words",
    "length",
    "asks",
    "commands",
    "later_by_author",
    "later_to_author",
    "later_in_thread",
)


class Past:
    """The last messages of a channel, at most `memory`.

    `past["author"]` is a column: one number for each message. People and threads are numbers too. `partner`
    is the one to whom the author was talking, by name or by answering. `usage` and `naming` have the
    sequence numbers of the messages that hold a word or name a person; the oldest message has `first`.
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.first = 0
        self.people = Participants()
        self.keys: list[str] = []
        self.answers: list[str | None] = []
        self.roots: list[str] = []
        self.usage: dict[str, list[int]] = {}
        self.naming: defaultdict[int, dict[int, NameMatcher]] = defaultdict(dict)
        self.turn = 0
        self._threads = 0
        self._readings: list[MessageParser] = []
        self._integers = np.zeros((len(_COLUMNS), memory), dtype=np.int64)
        self._floats = np.full((2, memory), math.nan)
        self._columns = dict(zip(_COLUMNS, self._integers, strict=True))

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, column: str) -> Integers:
        return self._columns[column][self.memory - len(self.keys) :]

    @property
    def at(self) -> Floats:
        """When each was said, in seconds; not a number where that is not known."""
        instants: Floats = self._floats[0, self.memory - len(self.keys) :]
        return instants

    @property
    def silence(self) -> Floats:
        """How many seconds had passed since the message before."""
        seconds: Floats = self._floats[1, self.memory - len(self.keys) :]
        return seconds

    def add(
        self, key: str, author: str | None, at: float, *, reading: MessageParser, answers: str | None
    ) -> None:
        """Remember a message; `answers` is the key of the one that it answers."""
        me = self.people.join(author)
        place = self.keys.index(answers) if answers in self.keys else None
        thread, root = self._thread(key, answers, place)
        answered = NOBODY if place is None else int(self["author"][place])
        addressee, partner = _talking(me, answered, reading)
        if partner == me and place is not None:
            partner = int(self["partner"][place])
        before = float(self.at[-1]) if self.keys else math.nan
        self.turn += not self.keys or me == NOBODY or me != int(self["author"][-1])
        self._note(me, thread, reading)
        if len(self.keys) == self.memory:
            self._forget()
        self._integers[:, :-1] = self._integers[:, 1:]
        self._floats[:, :-1] = self._floats[:, 1:]
        said = (reading.surest, len(reading.words), reading.length, reading.asks, reading.commands)
        self._integers[:, -1] = (me, addressee, partner, answered, thread, self.turn, *said, 0, 0, 0)
        self._floats[:, -1] = at, at - before
        self._enter(reading)
        self.keys.append(key)
        self.answers.append(answers)
        self.roots.append(root)

    def _thread(self, key: str, answers: str | None, place: int | None) -> tuple[int, str]:
        """The number and the first message of the conversation that a message belongs to."""
        root = key if answers is None else answers
        if place is None and root in self.roots:
            place = self.roots.index(root)
        if place is not None:
            return int(self["thread"][place]), self.roots[place]
        self._threads += 1
        return self._threads, root

    def _note(self, me: int, thread: int, reading: MessageParser) -> None:
        """Count a new message with those that it follows."""
        authors = self["author"]
        if me != NOBODY:
            self["later_by_author"][authors == me] += 1
        for person in reading.named:
            self["later_to_author"][authors == person] += 1
        self["later_in_thread"][self["thread"] == thread] += 1

    def _enter(self, reading: MessageParser) -> None:
        sequence = self.first + len(self.keys)
        for word in reading.words:
            self.usage.setdefault(word, []).append(sequence)
        for person, how in reading.named.items():
            self.naming[person][sequence] = how
        self._readings.append(reading)

    def _forget(self) -> None:
        """Forget the oldest message, and its author with the last one."""
        oldest, author = self._readings.pop(0), int(self["author"][0])
        for word in oldest.words:
            self.usage[word].pop(0)
            if not self.usage[word]:
                del self.usage[word]
        for person in oldest.named:
            self.naming[person].pop(self.first, None)
        if author != NOBODY and self.people.leave(author):
            self.naming.pop(author, None)
            for column in ("addressee", "partner", "answered_author"):
                self[column][self[column] == author] = STRANGER
        del self.keys[0], self.answers[0], self.roots[0]
        self.first += 1


def _talking(me: int, answered: int, reading: MessageParser) -> tuple[int, int]:
    """Whom a message names most surely, and to whom its author is talking."""
    named = reading.named
    addressee = max(named, key=lambda person: named[person], default=STRANGER if reading.stranger else NOBODY)
    return addressee, addressee if reading.surest >= NameMatcher.LAST and addressee != me else answered
