"""The last messages of a channel as columns."""

import math
from collections import defaultdict
from typing import Final

import numpy as np
from numpy.typing import NDArray

from conspectus.text.replies.message_parsing import MessageParser, NameMatcher, Participants

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
NO_PERSON: Final = -1
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
    """The last messages of a channel, at most `memory`, as columns.

    `past["author"]` has one number for each message. People and threads are numbers, too. `partner` is the
    person whom the author addressed, by name or by a reply. `usage` and `naming` have the sequence numbers of
    the messages with a word or with a name; the oldest message has `first`.
    """

    def __init__(self, memory: int) -> None:
        self.memory = memory
        self.first = 0
        self.people = Participants()
        self.keys: list[str] = []
        self.answers: list[str | None] = []
        self.confidences: list[float | None] = []
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
        """The time of each message in seconds; NaN if it is unknown."""
        instants: Floats = self._floats[0, self.memory - len(self.keys) :]
        return instants

    @property
    def silence(self) -> Floats:
        """Seconds between each message and the one before it."""
        seconds: Floats = self._floats[1, self.memory - len(self.keys) :]
        return seconds

    def add(
        self, key: str, author: str | None, at: float, *, reading: MessageParser, answers: str | None
    ) -> None:
        """Add a message; `answers` is the key of the message that it answers."""
        me = self.people.join(author)
        position = self.keys.index(answers) if answers in self.keys else None
        thread, root = self._thread(key, answers, position)
        answered = NO_PERSON if position is None else int(self["author"][position])
        addressee, partner = _find_addressees(me, answered, reading)
        if partner == me and position is not None:
            partner = int(self["partner"][position])
        before = float(self.at[-1]) if self.keys else math.nan
        self.turn += not self.keys or me == NO_PERSON or me != int(self["author"][-1])
        # The counts of earlier messages change by the new one.
        authors = self["author"]
        if me != NO_PERSON:
            self["later_by_author"][authors == me] += 1
        for person in reading.named:
            self["later_to_author"][authors == person] += 1
        self["later_in_thread"][self["thread"] == thread] += 1
        if len(self.keys) == self.memory:
            self._forget()
        self._integers[:, :-1] = self._integers[:, 1:]
        self._floats[:, :-1] = self._floats[:, 1:]
        content = (reading.surest, len(reading.words), reading.length, reading.asks, reading.commands)
        self._integers[:, -1] = (me, addressee, partner, answered, thread, self.turn, *content, 0, 0, 0)
        self._floats[:, -1] = at, at - before
        self._index_words(reading)
        self.keys.append(key)
        self.answers.append(answers)
        self.confidences.append(None)
        self.roots.append(root)

    def _thread(self, key: str, answers: str | None, position: int | None) -> tuple[int, str]:
        """Return the number of a message's conversation and the key of its first message."""
        root = key if answers is None else answers
        if position is None and root in self.roots:
            position = self.roots.index(root)
        if position is not None:
            return int(self["thread"][position]), self.roots[position]
        self._threads += 1
        return self._threads, root

    def _index_words(self, reading: MessageParser) -> None:
        sequence = self.first + len(self.keys)
        for word in reading.words:
            self.usage.setdefault(word, []).append(sequence)
        for person, how in reading.named.items():
            self.naming[person][sequence] = how
        self._readings.append(reading)

    def _forget(self) -> None:
        """Remove the oldest message, and its author if it was the last of that person."""
        oldest, author = self._readings.pop(0), int(self["author"][0])
        for word in oldest.words:
            self.usage[word].pop(0)
            if not self.usage[word]:
                del self.usage[word]
        for person in oldest.named:
            self.naming[person].pop(self.first, None)
        if author != NO_PERSON and self.people.leave(author):
            self.naming.pop(author, None)
            for column in ("addressee", "partner", "answered_author"):
                self[column][self[column] == author] = STRANGER
        del self.keys[0], self.answers[0], self.confidences[0], self.roots[0]
        self.first += 1


def _find_addressees(me: int, answered: int, reading: MessageParser) -> tuple[int, int]:
    """Return the person whom a message names most clearly, and the one whom its author addresses."""
    named = reading.named
    addressee = max(
        named, key=lambda person: named[person], default=STRANGER if reading.stranger else NO_PERSON
    )
    return addressee, addressee if reading.surest >= NameMatcher.LAST and addressee != me else answered
