"""Link each message to the earlier message that it answers, with a model over pairs of messages."""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.text.replies.message_parsing import MessageParser, NameMatcher, Participants, Utterance, read

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
        place = self.keys.index(answers) if answers in self.keys else None
        thread, root = self._thread(key, answers, place)
        answered = NO_PERSON if place is None else int(self["author"][place])
        addressee, partner = _addressees(me, answered, reading)
        if partner == me and place is not None:
            partner = int(self["partner"][place])
        before = float(self.at[-1]) if self.keys else math.nan
        self.turn += not self.keys or me == NO_PERSON or me != int(self["author"][-1])
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
        self.confidences.append(None)
        self.roots.append(root)

    def _thread(self, key: str, answers: str | None, place: int | None) -> tuple[int, str]:
        """Return the number of a message's conversation and the key of its first message."""
        root = key if answers is None else answers
        if place is None and root in self.roots:
            place = self.roots.index(root)
        if place is not None:
            return int(self["thread"][place]), self.roots[place]
        self._threads += 1
        return self._threads, root

    def _note(self, me: int, thread: int, reading: MessageParser) -> None:
        """Update the counts of earlier messages for a new one."""
        authors = self["author"]
        if me != NO_PERSON:
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


def _addressees(me: int, answered: int, reading: MessageParser) -> tuple[int, int]:
    """Return the person whom a message names most clearly, and the one whom its author addresses."""
    named = reading.named
    addressee = max(
        named, key=lambda person: named[person], default=STRANGER if reading.stranger else NO_PERSON
    )
    return addressee, addressee if reading.surest >= NameMatcher.LAST and addressee != me else answered


Truths = NDArray[np.bool_]
Figures = Floats | Integers | Truths | float

HALF_DAY = 43_200.0
_BACKWARDS = 600.0
_RECENT = 20
_RARE = 0.25
_FEW = 20
_LATEST = 10
_LATELY = math.log1p(600.0)
UNKNOWN = -1.0


@dataclass(frozen=True, slots=True)
class Features:
    """Features by name: of each earlier message, and of the new one as the start of a conversation."""

    answer: Mapping[str, Figures]
    start: Mapping[str, float]


def features(past: Past, reading: MessageParser, author: str | None, at: float) -> Features:
    """Return the features of a new message, given at least one earlier message."""
    me = past.people.find(author)
    mine = past["author"] == me if me != NO_PERSON else np.zeros(len(past), dtype=bool)
    own = np.flatnonzero(mine)
    last = int(own[-1]) if len(own) else None
    since, pace = _elapsed(past, at)
    message = _message(past, reading, last, None if last is None else float(since[last]))
    alike = _shared_words(past, reading)
    lately = _activity(past, since)
    answer = {
        **lately,
        **_nearness(past, since, pace),
        **_naming(past, reading, me),
        **_persons(past, me, mine, last),
        **alike,
        **_conversations(past, reading, mine, alike["shared"]),
        **{name: message[name] for name in ("my_length", "i_ask", "i_react", "my_silence")},
    }
    start = {
        **message,
        **lately,
        "channel_gap": float(since[-1]),
        "channel_gap_to_pace": float(since[-1]) - pace,
        "mine": float(len(own)),
        "newest_mine": float(mine[-1]),
        "left_behind": UNKNOWN if last is None else float(past["later_in_thread"][own].min()),
    }
    return Features(answer, start)


def _elapsed(past: Past, at: float) -> tuple[Floats, float]:
    """Return the logarithm of the seconds since each message, and of those between the latest two.

    A clock that jumps back counts as twelve hours.
    """
    seconds = at - past.at
    seconds = np.where(seconds < -_BACKWARDS, seconds % HALF_DAY, np.maximum(seconds, 0.0))
    recent = past.silence[-_RECENT:]
    recent = recent[recent >= 0]
    return np.log1p(seconds), math.log1p(float(recent.mean())) if len(recent) else math.nan


def _message(past: Past, reading: MessageParser, last: int | None, since: float | None) -> dict[str, float]:
    return {
        "i_name": float(reading.surest),
        "stranger": float(reading.stranger),
        "my_length": math.log1p(reading.length),
        "i_ask": float(reading.asks),
        "i_greet": float(reading.greets),
        "i_appeal": float(reading.appeals),
        "i_react": float(reading.reacts),
        "my_silence": UNKNOWN if last is None else float(len(past) - 1 - last),
        "my_gap": UNKNOWN if since is None else since,
    }


def _activity(past: Past, since: Floats) -> dict[str, float]:
    """Return the activity of the channel: with few conversations, a reply is more likely."""
    thread = past["thread"]
    known = len(past) - np.count_nonzero(np.isnan(since))
    return {
        "remembered": float(len(past)),
        "lately": float(np.count_nonzero(since < _LATELY)) if known else UNKNOWN,
        "voices": float(len(set(past["author"][-_LATEST:].tolist()))),
        "open": float(len(set(thread[-_LATEST:].tolist()))),
        "newest_asks": float(past["asks"][-1]),
        "newest_alone": float(np.count_nonzero(thread == thread[-1]) == 1),
    }


def _nearness(past: Past, since: Floats, pace: float) -> dict[str, Figures]:
    return {
        "between": np.arange(len(past) - 1, -1, -1),
        "turns": past.turn - past["turn"],
        "gap": since,
        "gap_to_pace": since - pace,
        "asks": past["asks"],
        "commands": past["commands"],
        "length": np.log1p(past["length"]),
    }


def _naming(past: Past, reading: MessageParser, me: int) -> dict[str, Figures]:
    """Return which message names whose author, from -1 or 0 to the clearest way."""
    named = np.zeros(len(past.people) + 1)
    for person, how in reading.named.items():
        named[person] = how
    names_them = named[past["author"]]
    names_me = np.zeros(len(past))
    for sequence, how in past.naming.get(me, {}).items():
        names_me[sequence - past.first] = how
    addressee = past["addressee"]
    to_me = (names_me > 0) | ((addressee == me) & (me != NO_PERSON))
    target = _target(reading)
    both = (addressee != NO_PERSON) & (target != NO_PERSON)
    return {
        "i_name_them": names_them,
        "i_name_another": np.where(names_them > 0, 0, int(reading.surest)),
        "they_name_me": names_me,
        "they_name_another": np.where(to_me, 0, past["surest"]),
        "same_addressee": np.where(both, np.where(addressee == target, 1, -1), 0),
        "later_to_them": past["later_to_author"],
    }


def _persons(past: Past, me: int, mine: Truths, last: int | None) -> dict[str, Figures]:
    """Return who has addressed whom, by name or by a reply."""
    author, partner = past["author"], past["partner"]
    places = np.arange(len(past))
    told = np.full(len(past.people) + 2, -1)
    told[past["addressee"][mine]] = places[mine]
    mine_to_come = mine[::-1].cumsum()[::-1] - mine
    my_partner = NO_PERSON if last is None else int(partner[last])
    return {
        "same_author": mine,
        "my_last": mine & (mine_to_come == 0),
        "later_by_them": past["later_by_author"],
        "later_by_me": mine_to_come,
        "told_since": (told[author] > places) & (author != NO_PERSON),
        "talks_to_me": (partner == me) & (me != NO_PERSON),
        "answers_me": (past["answered_author"] == me) & (me != NO_PERSON),
        "same_partner": np.where(partner < 0, 0, np.where(partner == my_partner, 1, -1)),
    }


def _shared_words(past: Past, reading: MessageParser) -> dict[str, Figures]:
    """Return shared rare words; words in more than a quarter of the messages do not count."""
    shared, rarest = [0.0] * len(past), [0.0] * len(past)
    maximum = _RARE * len(past) + 2
    for word in reading.words:
        found = past.usage.get(word, ())
        if 0 < len(found) <= maximum:
            weight = math.log((max(len(past), _FEW) + 1) / len(found))
            for sequence in found:
                place = sequence - past.first
                shared[place] += weight
                rarest[place] = max(rarest[place], weight)
    norms = np.sqrt(np.maximum(past["words"] * len(reading.words), 1))
    return {"shared": np.array(shared), "similar": np.array(shared) / norms, "rarest": np.array(rarest)}


def _conversations(past: Past, reading: MessageParser, mine: Truths, shared: Figures) -> dict[str, Figures]:
    """Return features of the conversation of each message, as far as it is known."""
    thread = past["thread"]
    _, members = np.unique(thread, return_inverse=True)
    target = _target(reading)
    theirs = np.bincount(members, weights=past["author"] == target)[members] if target >= 0 else UNKNOWN
    return {
        "later_in_thread": past["later_in_thread"],
        "thread_size": np.bincount(members)[members],
        "shared_in_thread": np.bincount(members, weights=shared)[members],
        "my_thread": thread == thread[mine][-1:] if mine.any() else 0.0,
        "mine_in_thread": np.bincount(members, weights=mine)[members],
        "theirs_in_thread": theirs,
    }


def _target(reading: MessageParser) -> int:
    """Return the person whom a message most clearly addresses."""
    return max(reading.named, key=lambda person: reading.named[person], default=NO_PERSON)


class Forest:
    """Decision trees of at most eight levels; each level compares one feature with a threshold.

    Args:
        names: the features that are read.
        features: the index of the feature, for each tree and level.
        thresholds: the threshold, for each tree and level.
        leaves: for each tree the value of each combination of comparisons; the first is the highest bit.
    """

    def __init__(
        self,
        names: Sequence[str],
        features: Sequence[Sequence[int]],
        *,
        thresholds: Sequence[Sequence[float]],
        leaves: Sequence[Sequence[float]],
    ) -> None:
        self.names = tuple(names)
        self._features = np.array(features, dtype=np.int64).T
        self._thresholds = np.array(thresholds, dtype=np.float32).T[..., np.newaxis]
        values = np.array(leaves, dtype=np.float32)
        self._offsets = np.arange(len(values))[:, np.newaxis] * values.shape[1]
        self._values = values.ravel()

    def sums(self, figures: Mapping[str, Figures], rows: int) -> Floats:
        """Return the sum over all trees for each row."""
        over = np.take(tabulated(figures, self.names, rows), self._features, axis=0) > self._thresholds
        leaf = np.zeros(over.shape[1:], dtype=np.uint8)
        for answers in over.view(np.uint8):
            leaf = leaf << 1 | answers
        found: Floats = np.take(self._values, self._offsets + leaf).sum(axis=0, dtype=np.float64)
        return found


def tabulated(figures: Mapping[str, Figures], names: Sequence[str], rows: int) -> NDArray[np.float32]:
    """Return the named features as rows of a matrix; unknown values are -1."""
    table = np.empty((len(names), rows), dtype=np.float32)
    for place, name in enumerate(names):
        table[place] = figures[name]
    np.copyto(table, UNKNOWN, where=np.isnan(table))
    return table


@dataclass(frozen=True, slots=True)
class Judge:
    """Chooses the message that a new one answers: `answer` rates earlier messages, `start` no answer."""

    answer: Forest
    start: Forest

    def choose(self, found: Features, count: int) -> tuple[int | None, float]:
        """Return the index of the answered message (None: none), and the probability of this choice."""
        rated = self.answer.sums(found.answer, count)
        begun = float(self.start.sums(found.start, 1)[0])
        best = int(rated.argmax())
        highest = max(float(rated[best]), begun)
        confidence = 1 / float(np.exp(rated - highest).sum() + np.exp(begun - highest))
        return (best if rated[best] > begun else None), confidence


def judge(weights: Mapping[str, Mapping[str, Any]]) -> Judge:
    """Load both forests from their JSON form."""
    return Judge(**{name: Forest(**parts) for name, parts in weights.items()})


@cache
def default_judge() -> Judge:
    """Load the included model, trained by `scripts/train_replies.py`."""
    text = (resources.files("conspectus.text.replies") / "weights.json").read_text(encoding="utf-8")
    return judge(json.loads(text))


MAX_MEMORY = 1000


class Linker:
    """Finds the earlier message of a channel that each message answers.

    Only the last `memory` messages are considered, so that a linker works for live channels and imports.
    Messages are passed in the order of time. A linker belongs to one channel and is not thread-safe.

    Args:
        memory: number of messages to consider, from 1 to 1000.
        judge: the model; default: the included one.

    Raises:
        InvalidInput: `memory` is out of range.
    """

    def __init__(self, *, memory: int = 100, judge: Judge | None = None) -> None:
        if not 1 <= memory <= MAX_MEMORY:
            raise InvalidInput("memory", f"must be from 1 to {MAX_MEMORY}, not {memory}")
        self._judge = judge or default_judge()
        self._past = Past(memory)

    def link(self, key: str, said: Utterance, *, answers: str | None = None) -> str | None:
        """Return the key of the message that this one answers; None if it starts a conversation.

        A known `answers` is returned; a message that is known to start a conversation answers itself. System
        messages answer nothing and are ignored. A repeated message keeps its link.
        """
        past = self._past
        if key in past.keys:
            return past.answers[past.keys.index(key)]
        begins = answers == key
        answers = None if begins else answers
        if said.system:
            return answers
        reading, at = read(said.text, past.people, past.usage), seconds(said.at)
        confidence = None
        if answers is None and not begins and len(past):
            place, confidence = self._judge.choose(features(past, reading, said.author, at), len(past))
            answers = None if place is None else past.keys[place]
        past.add(key, said.author, at, reading=reading, answers=answers)
        past.confidences[-1] = confidence
        return answers

    def confidence_of(self, key: str) -> float | None:
        """Return the probability of the choice for a message; None if its link was known or is forgotten."""
        past = self._past
        return past.confidences[past.keys.index(key)] if key in past.keys else None

    def thread_of(self, key: str) -> str:
        """Return the key of the first message of a conversation; the message's own key if it is forgotten."""
        past = self._past
        return past.roots[past.keys.index(key)] if key in past.keys else key


def seconds(at: datetime | None) -> float:
    """Return an instant in seconds, NaN for None; the default time zone is UTC."""
    if at is None:
        return math.nan
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()
