"""Messages of a Slack channel, with their authors, threads and metadata."""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from conspectus.model.channels import NewMessage
from conspectus.sources.chats.export_messages import (
    JOINED,
    NO_TEXT,
    NO_TIME,
    ExportUsers,
    as_key,
    as_name,
    finish_messages,
    set_threads,
)
from conspectus.sources.chats.slack_changes import stamp_in
from conspectus.sources.chats.slack_text import ABSENT, SlackText, files_of
from conspectus.sources.json_values import (
    as_mapping,
    count_names,
    list_names,
    mappings,
    text_in,
)
from conspectus.sources.notices import Notices
from conspectus.text.clean import clean
from conspectus.text.times import canonical

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STAMP = re.compile(r"(\d{1,11})(?:\.(\d{1,6})\d*)?", re.ASCII)
SYSTEM = (
    "channel_", "group_", "mpim_", "bot_add", "bot_remove", "bot_enable", "bot_disable", "pinned_item",
    "unpinned_item", "joiner_notification", "app_conversation_", "huddle_", "sh_room_", "reminder_",
    "tabbed_canvas_", "canvas_", "ekm_", "list_record_",
)  # fmt: skip
JOINS = ("_join", "_leave", "joiner_notification")
BOT_ADDED = re.compile(r"/services/(B[A-Z0-9]+)\|([^<>|]+)>")
SLACKBOT = "USLACKBOT"


def instant(stamp: object) -> datetime | None:
    """Return the time of a timestamp, exact to the microsecond."""
    match = STAMP.fullmatch(stamp) if isinstance(stamp, str) else None
    if match is None:
        return None
    try:
        return EPOCH + timedelta(seconds=int(match[1]), microseconds=int((match[2] or "").ljust(6, "0")))
    except OverflowError:
        return None


class SlackMessages:
    """Reads the messages of one channel."""

    def __init__(self, people: ExportUsers, bots: set[str], text: SlackText, notices: Notices) -> None:
        self._people = people
        self._bots = bots
        self._text = text
        self._notices = notices
        self._bot_names: dict[str, str] = {}

    def read(self, entries: Iterable[tuple[str, object]]) -> tuple[NewMessage, ...]:
        """Return the messages among the entries, each with its position."""
        read: list[NewMessage] = []
        shared: dict[str, str] = {}
        for location, value in entries:
            fields = self._message_fields(value, location)
            message = None if fields is None else self._message(fields, location, shared)
            if fields is not None and message is not None:
                read.append(message)
                _remember_files(fields, message, shared)
        threads = {message.thread for message in read if message.thread is not None}
        return finish_messages(set_threads(read, threads), self._notices)

    def _message_fields(self, value: object, location: str) -> Mapping[str, object] | None:
        if not isinstance(value, dict) or value.get("type", "message") != "message":
            self._notices.note("entries that are not messages, skipped", location)
            return None
        if text_in(value, "subtype").endswith(JOINS):
            self._notices.note(JOINED, location)
            return None
        if value.get("hidden") is True:
            self._notices.note("messages hidden by the platform, skipped")
            return None
        return value

    def _message(
        self, message: Mapping[str, object], location: str, shared: Mapping[str, str]
    ) -> NewMessage | None:
        kind = text_in(message, "subtype")
        comment = as_mapping(message.get("comment")) if kind == "file_comment" else {}
        text = self._text.strip_markup(text_in(comment, "comment")).strip() or self._text.full_text(message)
        if not text:
            self._notices.note(NO_TEXT, location)
            return None
        stamp = stamp_in(message, "ts")
        moment = instant(stamp)
        if moment is None:
            self._notices.note(NO_TIME, location)
        if kind == "bot_add":
            bot = BOT_ADDED.search(text_in(message, "text"))
            if bot:
                self._bot_names.setdefault(bot[1], bot[2])
        thread = stamp_in(message, "thread_ts")
        if kind == "file_comment" and not thread:
            thread = next(
                (shared[identifier] for identifier in _file_ids(message) if identifier in shared), ""
            )
        author, role = self._author(message, comment, kind)
        return NewMessage(
            clean(text),
            key=as_key(stamp or location.rpartition("/")[2]),
            author=author,
            at=moment,
            reply_to=as_key(thread) if thread and thread != stamp else None,
            thread=as_key(thread) if thread else None,
            role=role,
            metadata=_message_metadata(message, kind),
        )

    def _author(
        self, message: Mapping[str, object], comment: Mapping[str, object], kind: str
    ) -> tuple[str | None, str | None]:
        person = text_in(comment, "user") or text_in(message, "user")
        bot = text_in(message, "bot_id")
        if kind.startswith(SYSTEM):
            return (self._name_person(person, message) if person else None), "system"
        if person and kind != "bot_message":
            if bot and self._people.name(person) is None:
                self._bots.add(person)
            return self._name_person(person, message), "bot" if person in self._bots else None
        if bot or kind == "bot_message":
            username = text_in(message, "username") or text_in(message.get("bot_profile"), "name")
            return as_name(
                self._text.strip_markup(username) or self._bot_names.get(bot) or bot or "bot"
            ), "bot"
        username = self._text.strip_markup(text_in(message, "username"))
        return as_name(username) if username else None, None

    def _name_person(self, person: str, message: Mapping[str, object]) -> str:
        name = self._people.name(person)
        if name is not None:
            return name
        profile = message.get("user_profile") or message.get("bot_profile")
        return self._people.learn(
            person, text_in(profile, "display_name", "real_name", "name"), text_in(profile, "name")
        )


def _remember_files(raw: Mapping[str, object], message: NewMessage, shared: dict[str, str]) -> None:
    """Remember which message a file was first shared with."""
    if raw.get("subtype") != "file_comment" and message.key is not None:
        for identifier in _file_ids(raw):
            shared.setdefault(identifier, message.key)


def _file_ids(message: Mapping[str, object]) -> list[str]:
    if "file" not in message and "files" not in message:
        return []
    return [identifier for file in files_of(message) if (identifier := text_in(file, "id"))]


def _message_metadata(message: Mapping[str, object], kind: str) -> dict[str, object]:
    metadata: dict[str, object] = {}
    if kind.startswith(SYSTEM):
        metadata["event"] = kind
    elif kind == "thread_broadcast":
        metadata["broadcast"] = True
    elif kind == "me_message":
        metadata["action"] = True
    if "edited" in message:
        moment = instant(stamp_in(as_mapping(message["edited"]), "ts"))
        metadata |= {} if moment is None else {"edited": canonical(moment)}
    if "reactions" in message:
        reactions = mappings(message["reactions"])
        counts = count_names((text_in(reaction, "name"), _times(reaction)) for reaction in reactions)
        metadata |= {"reactions": counts} if counts else {}
    if "files" in message or "file" in message:
        present_files = (file for file in files_of(message) if text_in(file, "mode") not in ABSENT)
        names = list_names(text_in(file, "name", "title") for file in present_files)
        metadata |= {"files": names} if names else {}
    return metadata


def _times(reaction: Mapping[str, object]) -> object:
    users = reaction.get("users")
    return len(users) if "count" not in reaction and isinstance(users, list) else reaction.get("count")
