"""The features of a new message and of each earlier one that it may answer."""

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from conspectus.deferred import dataclass
from conspectus.text.replies.message_parsing import MessageParser
from conspectus.text.replies.past import NO_PERSON, Floats, Integers, Past

Truths = NDArray[np.bool_]
Figures = Floats | Integers | Truths | float
HALF_DAY = 43_200.0
"""Seconds of half a day."""
_BACKWARDS = 600.0
_RECENT = 20
_MAX_RARE_SHARE = 0.25
_MIN_MESSAGES = 20
_LATEST = 10
_MAX_LATELY = math.log1p(600.0)
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
    my_messages = np.flatnonzero(mine)
    last = int(my_messages[-1]) if len(my_messages) else None
    # A clock that jumps back counts as twelve hours.
    seconds = at - past.at
    seconds = np.where(seconds < -_BACKWARDS, seconds % HALF_DAY, np.maximum(seconds, 0.0))
    recent = past.silence[-_RECENT:]
    recent = recent[recent >= 0]
    since = np.log1p(seconds)
    pace = math.log1p(float(recent.mean())) if len(recent) else math.nan
    message = _message(past, reading, last, None if last is None else float(since[last]))
    alike = _weigh_shared_words(past, reading)
    lately = _activity(past, since)
    answer = {
        **lately,
        **_nearness(past, since, pace),
        **_find_named_authors(past, reading, me),
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
        "mine": float(len(my_messages)),
        "newest_mine": float(mine[-1]),
        "left_behind": UNKNOWN if last is None else float(past["later_in_thread"][my_messages].min()),
    }
    return Features(answer, start)


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
    timed = len(past) - np.count_nonzero(np.isnan(since))
    return {
        "remembered": float(len(past)),
        "lately": float(np.count_nonzero(since < _MAX_LATELY)) if timed else UNKNOWN,
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


def _find_named_authors(past: Past, reading: MessageParser, me: int) -> dict[str, Figures]:
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
    positions = np.arange(len(past))
    last_told = np.full(len(past.people) + 2, -1)
    last_told[past["addressee"][mine]] = positions[mine]
    mine_to_come = mine[::-1].cumsum()[::-1] - mine
    my_partner = NO_PERSON if last is None else int(partner[last])
    return {
        "same_author": mine,
        "my_last": mine & (mine_to_come == 0),
        "later_by_them": past["later_by_author"],
        "later_by_me": mine_to_come,
        "told_since": (last_told[author] > positions) & (author != NO_PERSON),
        "talks_to_me": (partner == me) & (me != NO_PERSON),
        "answers_me": (past["answered_author"] == me) & (me != NO_PERSON),
        "same_partner": np.where(partner < 0, 0, np.where(partner == my_partner, 1, -1)),
    }


def _weigh_shared_words(past: Past, reading: MessageParser) -> dict[str, Figures]:
    """Return shared rare words; words in more than a quarter of the messages do not count."""
    shared, rarest = [0.0] * len(past), [0.0] * len(past)
    maximum = _MAX_RARE_SHARE * len(past) + 2
    for word in reading.words:
        sequences = past.usage.get(word, ())
        if 0 < len(sequences) <= maximum:
            weight = math.log((max(len(past), _MIN_MESSAGES) + 1) / len(sequences))
            for sequence in sequences:
                position = sequence - past.first
                shared[position] += weight
                rarest[position] = max(rarest[position], weight)
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
