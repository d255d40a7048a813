"""Messages as JSON Lines or a JSON list: objects with the field names of NewMessage or other common names."""

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from datetime import datetime

from conspectus.deferred import dataclass
from conspectus.model.channels import ANSWERS, ANSWERS_CONFIDENCE, REPLY_TO, ChannelArchive, NewMessage
from conspectus.settings import Settings
from conspectus.sources.chats.export_files import Export, ExportFile
from conspectus.sources.chats.export_messages import (
    DELETED,
    NO_TEXT,
    NO_TIME,
    ChannelNames,
    as_key,
    as_name,
    finish_messages,
)
from conspectus.sources.json_values import as_mapping, load_json, moment_of, text_in, word_in
from conspectus.sources.notices import Notices
from conspectus.text.clean import clean

TEXT = ("text", "content", "body")
AUTHOR = ("author", "user", "sender", "name")
TIME = ("at", "time", "timestamp", "ts", "date")
KEY = ("id", "key")
REPLY = (REPLY_TO, "parent", "in_reply_to")
THREAD = ("thread", "thread_id")
CHANNEL = ("channel", "room", "conv")
ROLE = ("role",)
DELETIONS = ("deleted", "is_deleted", "deleted_at", "delete_at")
EDITED = ("edited", "edited_at", "edit_date", "updated_at", "update_at")
METADATA = "metadata"
RESERVED = (REPLY_TO, ANSWERS, ANSWERS_CONFIDENCE)
PEOPLE = frozenset({"", "user", "human", "member", "person"})
MILLISECONDS = 1e11
MAX_JSON_LENGTH = 8
BAD_LINES = "lines without a message, skipped"


@dataclass(slots=True)
class _Fields:
    """The fields of one line. `used` are the names of the fields that became part of the message."""

    value: Mapping[str, object]
    used: set[str] = field(default_factory=set)

    def word(self, names: Iterable[str]) -> str:
        """Return the first of these fields that has a name, possibly in an object with a name field."""
        for name in names:
            word = word_in(self.value, name) or word_in(self.value.get(name), "name", "username", "id")
            if word:
                self.used.add(name)
                return word
        return ""

    def moment(self) -> datetime | None:
        """Return the time in the first field with a time, or in a date and a time of day.

        A date with a null time of day is no instant.
        """
        day, clock = self.value.get("date"), self.value.get("time")
        if isinstance(day, str) and isinstance(clock, str):
            both = moment_of(f"{day.strip()}T{clock.strip()}")
            if both is not None:
                self.used |= {"date", "time"}
                return both
        no_clock = "time" in self.value and clock is None
        for name in TIME[:-1] if no_clock else TIME:
            moment = moment_of(_seconds(self.value.get(name)))
            if moment is not None:
                self.used.add(name)
                return moment
        return None


def is_message(value: object) -> bool:
    """Return whether a JSON value can be read as a message."""
    return bool(text_in(value, *TEXT))


def starts_list_of_messages(text: str) -> bool:
    """Return whether a text begins a JSON list of messages. A day of Slack needs the rest of its export."""
    beginning = text.lstrip()
    if not beginning.startswith("["):
        return False
    try:
        first, _ = json.JSONDecoder().raw_decode(beginning, len(beginning) - len(beginning[1:].lstrip()))
    except (ValueError, RecursionError):
        return False
    return is_message(first) and not (as_mapping(first).get("type") == "message" and text_in(first, "ts"))


def read_jsonl(
    export: Export, parts: Iterable[ExportFile], notices: Notices, settings: Settings
) -> Iterator[ChannelArchive]:
    """Return the channels named in the lines. Lines without a channel belong to that of their file."""
    channels: dict[str, list[NewMessage]] = {}
    deleted: dict[str, dict[str, None]] = {}
    reader = _Lines(notices, settings, deleted)
    for part in parts:
        decoded = export.text(part)
        if decoded is not None:
            for channel, message in reader.read(decoded.text, part):
                channels.setdefault(channel, []).append(message)
    names = ChannelNames()
    for channel in dict.fromkeys((*channels, *deleted)):
        gone = deleted.get(channel, {})
        messages = [message for message in channels.get(channel, ()) if message.key not in gone]
        finished = finish_messages(_last_versions(messages), notices)
        yield ChannelArchive(names.take(channel), {}, finished, tuple(gone))


def _last_versions(messages: Iterable[NewMessage]) -> list[NewMessage]:
    """Return messages with edited ones in the place of those with the same key before them."""
    positions: dict[str | None, int] = {}
    latest: list[NewMessage] = []
    for message in messages:
        is_edit = message.key in positions and any(message.metadata.get(name) for name in EDITED)
        if is_edit:
            latest[positions[message.key]] = message
        else:
            positions[message.key] = len(latest)
            latest.append(message)
    return latest


def _numbered_values(text: str) -> Iterator[tuple[int, object, int]]:
    """Yield the elements of a JSON list, or the lines with text, with number and maximum length."""
    elements = load_json(text) if starts_list_of_messages(text) else None
    if isinstance(elements, list):
        for number, element in enumerate(elements, 1):
            yield number, element, len(text)
        return
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, load_json(line), len(line)


class _Lines:
    """Reads the messages of the files."""

    def __init__(self, notices: Notices, settings: Settings, deleted: dict[str, dict[str, None]]) -> None:
        self._notices = notices
        self._settings = settings
        self._deleted = deleted

    def read(self, text: str, part: ExportFile) -> Iterator[tuple[str, NewMessage]]:
        """Yield messages with their channels. Only a newline ends a line."""
        stem = part.base.rpartition(".")[0] or part.base
        for number, value, length in _numbered_values(text):
            where = f"{part.name}:{number}"
            if self._is_deletion(_Fields(as_mapping(value)), stem):
                self._notices.note(DELETED, where)
            elif is_message(value):
                yield self._message(_Fields(as_mapping(value)), where, stem, length)
            elif any(isinstance(as_mapping(value).get(name), str) for name in TEXT):
                self._notices.note(NO_TEXT, where)
            else:
                self._notices.count_damage(BAD_LINES, where)

    def _is_deletion(self, line: _Fields, stem: str) -> bool:
        """Return whether a line says that a message was deleted, and remember its key."""
        key = line.word(KEY)
        if not key or not any(line.value.get(name) for name in DELETIONS):
            return False
        self._deleted.setdefault(line.word(CHANNEL) or stem, {})[as_key(key)] = None
        return True

    def _message(self, line: _Fields, where: str, stem: str, length: int) -> tuple[str, NewMessage]:
        named = next(name for name in TEXT if text_in(line.value, name))
        line.used.add(named)
        key, reply, thread = line.word(KEY), line.word(REPLY), line.word(THREAD)
        author, role = line.word(AUTHOR), line.word(ROLE).lower()
        moment = line.moment()
        if moment is None and any(line.value.get(name) is not None for name in TIME):
            self._notices.note(NO_TIME, where)
        channel = line.word(CHANNEL) or stem
        message = NewMessage(
            clean(text_in(line.value, named)),
            key=as_key(key or where.rpartition("/")[2]),
            author=as_name(author) if author else None,
            at=moment,
            reply_to=as_key(reply) if reply else None,
            thread=as_key(thread) if thread else None,
            role=None if role in PEOPLE else as_name(role),
            metadata=self._metadata(line, where, length),
        )
        return channel, message

    def _metadata(self, line: _Fields, where: str, length: int) -> dict[str, object]:
        """Return the remaining fields, as far as they can be stored."""
        others = {name: value for name, value in line.value.items() if name not in line.used}
        nested = others.pop(METADATA, None)
        others |= as_mapping(nested) or ({} if nested is None or nested == {} else {METADATA: nested})
        metadata = {
            name: value
            for name, value in others.items()
            if value is not None and name not in RESERVED and _fits(value, self._settings.max_metadata_depth)
        }
        if len(metadata) < sum(value is not None for value in others.values()):
            self._notices.note("metadata that cannot be stored, skipped", where)
        limit = self._settings.max_metadata_bytes
        if length * MAX_JSON_LENGTH > limit and _size(metadata) > limit:
            self._notices.note("metadata over the size limit, skipped", where)
            return {}
        return metadata


def _seconds(value: object) -> object:
    """Return the value in seconds. Numbers that can only be milliseconds are converted."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) < 16:
        return value if int(value) < MILLISECONDS else int(value) / 1000
    if isinstance(value, int | float) and not isinstance(value, bool) and MILLISECONDS <= value < 1e16:
        return value / 1000
    return value


def _fits(value: object, depth: int) -> bool:
    """Return whether metadata may contain the value."""
    if depth <= 0:
        return False
    match value:
        case float():
            return math.isfinite(value)
        case list():
            return all(_fits(element, depth - 1) for element in value)
        case dict():
            return all(_fits(member, depth - 1) for member in value.values())
        case _:
            return True


def _size(metadata: Mapping[str, object]) -> int:
    return len(json.dumps(metadata, ensure_ascii=False).encode("utf-8", "surrogatepass"))
