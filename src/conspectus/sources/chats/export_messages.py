"""Channels from the messages of an export: names, keys, threads and the order of time."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, count

from conspectus.model.channels import NewMessage
from conspectus.sources.notices import Notices
from conspectus.text.clean import clean
from conspectus.text.hashing import content_hash

BEFORE_ALL = datetime.min.replace(tzinfo=UTC)
MAX_NAME_LENGTH = 200
MAX_KEY_LENGTH = 500
HASHED = 16
MAX_TOPIC_LENGTH = 2_000
MEMBERS_BYTES = 40_000
NO_TEXT = "messages without text, skipped"
JOINED = "members who join or leave, skipped"
DELETED = "messages deleted on the platform, skipped"
NO_TIME = "messages with an invalid time, kept without it"


class ExportUsers:
    """The names of authors by id. Names are unique."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._owners: dict[str, str] = {}

    def learn(self, person: str, display_name: str, handle: str = "") -> str:
        """Set the name of a user: the display name, with the handle if that name is taken."""
        if person in self._names:
            return self._names[person]
        plain = as_name(display_name or handle or person)
        candidates = [plain, *(f"{plain} ({as_name(suffix)})" for suffix in (handle, person) if suffix)]
        name = next(
            candidate for candidate in [*candidates, person] if self._owners.get(candidate, person) == person
        )
        self._owners[name] = person
        self._names[person] = name
        return name

    def name(self, person: str) -> str | None:
        """Return the name of a user, if it is known."""
        return self._names.get(person)


class ChannelNames:
    """Assigns unique names to channels."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, *candidates: str) -> str:
        """Return the first free candidate, else the last one with a number appended."""
        names = [as_name(candidate) for candidate in candidates if candidate.strip()] or ["unnamed"]
        numbered = (f"{names[-1]} ({number})" for number in count(2))
        free = next(name for name in chain(names, numbered) if name not in self._taken)
        self._taken.add(free)
        return free


def as_name(text: str) -> str:
    """Return a name on one line that can be stored."""
    return clean(" ".join(text.split()))[:MAX_NAME_LENGTH] or "unnamed"


def as_key(text: str) -> str:
    """Return a key that can be stored. A very long key is truncated and gets a hash."""
    key = clean(text)
    return key if len(key) <= MAX_KEY_LENGTH else f"{key[:MAX_KEY_LENGTH]}~{content_hash(key)[:HASHED]}"


def finish_messages(messages: Iterable[NewMessage], notices: Notices) -> tuple[NewMessage, ...]:
    """Return messages with unique keys, oldest first. Messages without a time keep their predecessor."""
    return sort_by_time(make_keys_unique(messages, notices))


def make_keys_unique(messages: Iterable[NewMessage], notices: Notices) -> list[NewMessage]:
    """Drop exact duplicates of messages, and rename other messages with a key that is taken."""
    messages_by_key: dict[str, NewMessage] = {}
    numbers: dict[str, int] = {}
    for message in messages:
        key = message.key or ""
        first = messages_by_key.get(key)
        if first is None:
            messages_by_key[key] = message
        elif first == message:
            notices.note("duplicate messages, kept once", key)
        else:
            free_key = _free_key(key, messages_by_key, numbers)
            notices.note("messages with a key that is taken, renumbered", key)
            messages_by_key[free_key] = replace(message, key=free_key)
    return list(messages_by_key.values())


def sort_by_time(messages: Sequence[NewMessage]) -> tuple[NewMessage, ...]:
    """Sort messages, oldest first."""
    moments = []
    latest = BEFORE_ALL
    for message in messages:
        latest = message.at if isinstance(message.at, datetime) else latest
        moments.append(latest)
    order = sorted(range(len(messages)), key=moments.__getitem__)
    return tuple(messages[position] for position in order)


def set_threads(messages: Iterable[NewMessage], threads: set[str]) -> list[NewMessage]:
    """Set the thread of messages that start a thread."""
    return [
        replace(message, thread=message.key) if message.thread is None and message.key in threads else message
        for message in messages
    ]


def member_names(names: Iterable[str], notices: Notices) -> list[str]:
    """Return as many distinct names as fit into the metadata of a channel."""
    room = MEMBERS_BYTES
    members = []
    for name in dict.fromkeys(names):
        room -= len(name.encode("utf-8", "surrogatepass")) + 4
        if room < 0:
            notices.note("channels with more members than can be stored", name)
            break
        members.append(name)
    return members


def channel_description(topic: str, purpose: str) -> dict[str, str]:
    """Return the topic and purpose of a channel as its metadata, without empty ones."""
    texts = {"topic": topic.strip()[:MAX_TOPIC_LENGTH], "purpose": purpose.strip()[:MAX_TOPIC_LENGTH]}
    return {name: clean(text) for name, text in texts.items() if text}


def _free_key(key: str, used_keys: dict[str, NewMessage], numbers: dict[str, int]) -> str:
    """Return the key with the first number that makes it unique; `numbers` has the last one of each key."""
    number = numbers.get(key, 1)
    candidate = key
    while candidate in used_keys:
        number += 1
        candidate = f"{key}~{number}"
    numbers[key] = number
    return candidate
