"""From what was read to channels: names of people and channels, keys that are unique, the order of time."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from conspectus.model.channels import NewMessage
from conspectus.sources.import_notices import Notices
from conspectus.text.clean import clean
from conspectus.text.hashing import content_hash

BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
LONGEST_NAME = 200
LONGEST_KEY = 500
HASHED = 16
LONGEST_TOPIC = 2_000
MEMBERS_BYTES = 40_000
NO_TEXT = "messages without text, left out"
NO_TIME = "messages whose time cannot be read, kept without one"


class ExportUsers:
    """The names of authors by their ids; two people are never of one name."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._owners: dict[str, str] = {}

    def learn(self, person: str, shown: str, handle: str = "") -> str:
        """The name of a person from now on: what is shown, with the handle behind it where that is taken."""
        if person in self._names:
            return self._names[person]
        plain = as_name(shown or handle or person)
        candidates = [plain, *(f"{plain} ({as_name(each)})" for each in (handle, person) if each)]
        name = next(each for each in [*candidates, person] if self._owners.get(each, person) == person)
        self._owners[name] = person
        self._names[person] = name
        return name

    def name(self, person: str) -> str | None:
        """The name of a person, if it was learnt."""
        return self._names.get(person)


class ChannelNames:
    """Names of channels, each given once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, *candidates: str) -> str:
        """The first candidate that is still free, else the last one with a number behind it."""
        names = [as_name(each) for each in candidates if each.strip()] or ["unnamed"]
        free = next((name for name in names if name not in self._taken), None)
        number = 2
        while free is None:
            numbered = f"{names[-1]} ({number})"
            free = None if numbered in self._taken else numbered
            number += 1
        self._taken.add(free)
        return free


def as_name(text: str) -> str:
    """A name in one line that can be stored."""
    return clean(" ".join(text.split()))[:LONGEST_NAME] or "unnamed"


def as_key(text: str) -> str:
    """A key that can be stored: one that is very long is cut, and told from others by a hash."""
    key = clean(text)
    return key if len(key) <= LONGEST_KEY else f"{key[:LONGEST_KEY]}~{content_hash(key)[:HASHED]}"


def finished(messages: Iterable[NewMessage], notices: Notices) -> tuple[NewMessage, ...]:
    """Messages with keys of their own, oldest first; those without a time stay behind the one before."""
    return in_time(with_own_keys(messages, notices))


def with_own_keys(messages: Iterable[NewMessage], notices: Notices) -> list[NewMessage]:
    """A message that is written down again word for word is kept once, another one of its key is renamed."""
    kept: dict[str, NewMessage] = {}
    numbers: dict[str, int] = {}
    for message in messages:
        key = message.key or ""
        first = kept.get(key)
        if first is None:
            kept[key] = message
        elif first == message:
            notices.note("messages written down twice, kept once", key)
        else:
            own = _own_key(key, kept, numbers)
            notices.note("messages with the key of another, given a number", key)
            kept[own] = replace(message, key=own)
    return list(kept.values())


def in_time(messages: Sequence[NewMessage]) -> tuple[NewMessage, ...]:
    """Oldest first."""
    moments = []
    latest = BEFORE_ALL
    for message in messages:
        latest = message.at if isinstance(message.at, datetime) else latest
        moments.append(latest)
    order = sorted(range(len(messages)), key=moments.__getitem__)
    return tuple(messages[place] for place in order)


def in_threads(messages: Iterable[NewMessage], threads: set[str]) -> list[NewMessage]:
    """Messages, of which those that begin a thread stand in it."""
    return [
        replace(message, thread=message.key) if message.thread is None and message.key in threads else message
        for message in messages
    ]


def member_names(names: Iterable[str], notices: Notices) -> list[str]:
    """As many different names as the metadata of a channel can bear."""
    room = MEMBERS_BYTES
    members = []
    for name in dict.fromkeys(names):
        room -= len(name.encode()) + 4
        if room < 0:
            notices.note("channels with more members than can be kept", name)
            break
        members.append(name)
    return members


def described(topic: str, purpose: str) -> dict[str, str]:
    """The metadata that say what a channel is about."""
    texts = {"topic": topic.strip()[:LONGEST_TOPIC], "purpose": purpose.strip()[:LONGEST_TOPIC]}
    return {name: clean(text) for name, text in texts.items() if text}


def _own_key(key: str, kept: dict[str, NewMessage], numbers: dict[str, int]) -> str:
    number = numbers.get(key, 1)
    own = key
    while own in kept:
        number += 1
        own = f"{key}~{number}"
    numbers[key] = number
    return own
