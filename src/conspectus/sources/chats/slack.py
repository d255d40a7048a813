"""Slack exports: lists of users and channels, and for each channel a folder with one file per day."""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta

from conspectus.deferred import dataclass
from conspectus.model.channels import ChannelArchive, NewMessage
from conspectus.model.records import Json
from conspectus.sources.chats.export_files import (
    NO_TEXT,
    NO_TIME,
    OTHERS,
    ChannelNames,
    Export,
    ExportFile,
    ExportUsers,
    as_key,
    as_name,
    described,
    finished,
    in_threads,
    member_names,
)
from conspectus.sources.json_values import (
    Notices,
    counted,
    items,
    listed,
    load_part,
    mapping,
    mappings,
    text_in,
)
from conspectus.text.clean import clean
from conspectus.text.times import canonical

TAG = re.compile(r"<([@#!][^<>]+|[A-Za-z][A-Za-z0-9+.-]*:[^<>]+)>")
ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"))
DEEPEST = 20
WORDED: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "text": ("{}", ("text",)),
    "emoji": (":{}:", ("name",)),
    "broadcast": ("@{}", ("range",)),
    "usergroup": ("@{}", ("usergroup_id",)),
    "date": ("{}", ("fallback",)),
    "color": ("{}", ("value",)),
}
BETWEEN: Mapping[str, str] = {"rich_text": "\n", "rich_text_list": "\n"}
PREVIEWS = ("plain_text", "preview_plain_text", "preview")
ABSENT = frozenset({"tombstone", "hidden_by_limit"})


class SlackText:
    """Replaces ids by names. `channels` are the names of channels by id."""

    def __init__(self, people: ExportUsers, channels: Mapping[str, str]) -> None:
        self._people = people
        self._channels = channels

    def full_text(self, message: Mapping[str, object]) -> str:
        """Return the text of a message, each part on lines of its own."""
        text = self.plain(text_in(message, "text")) or self.blocks(message.get("blocks"))
        if "attachments" not in message and "files" not in message and "file" not in message:
            return text.strip()
        parts = [text, *map(self._attachment, mappings(message.get("attachments")))]
        parts += [self._file(file) for file in files_of(message)]
        return "\n".join(dict.fromkeys(filter(None, map(str.strip, parts))))

    def plain(self, text: str) -> str:
        """Return text without markup of links and mentions."""
        if "<" in text:
            text = TAG.sub(self._tag, text)
        if "&" in text:
            for entity, character in ENTITIES:
                text = text.replace(entity, character)
        return text

    def blocks(self, value: object) -> str:
        """Return the text of layout blocks."""
        return "\n".join(filter(None, (self._block(block, 0) for block in mappings(value))))

    def person(self, identifier: str) -> str:
        """Return the name of a user, or the id if it is unknown."""
        return self._people.name(identifier) or identifier

    def _tag(self, match: re.Match[str]) -> str:
        target, _, label = match[1].partition("|")
        kind, rest = target[:1], target[1:]
        if kind == "@":
            return f"@{self._people.name(rest) or label or rest}"
        if kind == "#":
            return f"#{label or self._channels.get(rest, rest)}"
        if kind == "!":
            name, *details = rest.split("^")
            if name == "date":
                return label or details[0] if details else label
            return label or f"@{details[0] if details else name}"
        return _link(target, label)

    def _block(self, block: Mapping[str, object], depth: int) -> str:
        if depth > DEEPEST:
            return ""
        kind = text_in(block, "type")
        if kind in WORDED:
            form, names = WORDED[kind]
            return form.format(text_in(block, *names))
        text = self._own_text(block, kind)
        if text is not None:
            return text
        inner = [self._block(element, depth + 1) for element in mappings(block.get("elements"))]
        if kind == "rich_text_list":
            inner = [f"- {line}" for line in inner]
        if kind in {"", "context"}:
            return " ".join(filter(None, inner))
        return BETWEEN.get(kind, "").join(inner)

    def _own_text(self, block: Mapping[str, object], kind: str) -> str | None:
        """Return the text of a block without elements; None for a block that may have some."""
        makers: Mapping[str, Callable[[], str]] = {
            "user": lambda: f"@{self.person(text_in(block, 'user_id'))}",
            "channel": lambda: f"#{self._channels.get(named := text_in(block, 'channel_id'), named)}",
            "link": lambda: _link(text_in(block, "url"), text_in(block, "text")),
            "mrkdwn": lambda: self.plain(text_in(block, "text")),
            "plain_text": lambda: text_in(block, "text"),
            "markdown": lambda: text_in(block, "text"),
            "image": lambda: text_in(block, "alt_text"),
            "section": lambda: "\n".join(filter(None, self._section(block))),
            "header": lambda: text_in(block.get("text"), "text"),
        }
        return makers[kind]() if kind in makers else None

    def _section(self, block: Mapping[str, object]) -> Iterator[str]:
        yield self.plain(text_in(block.get("text"), "text"))
        for section_field in mappings(block.get("fields")):
            yield self.plain(text_in(section_field, "text"))

    def _attachment(self, attachment: Mapping[str, object]) -> str:
        parts = [text_in(attachment, name) for name in ("pretext", "author_name", "title", "text")]
        for attachment_field in mappings(attachment.get("fields")):
            parts.append(
                ": ".join(
                    filter(None, (text_in(attachment_field, "title"), text_in(attachment_field, "value")))
                )
            )
        paragraphs = [self.plain(part) for part in parts if part] or [self.blocks(attachment.get("blocks"))]
        return "\n".join(filter(None, paragraphs)) or self.plain(text_in(attachment, "fallback"))

    def _file(self, file: Mapping[str, object]) -> str:
        name, title = text_in(file, "name"), text_in(file, "title")
        if text_in(file, "mode") in ABSENT or not (name or title):
            return ""
        label = title if not name or name == title else f"{title} ({name})" if title else name
        preview = text_in(file, *PREVIEWS)
        return self.plain(f"File: {label}") + (f"\n{preview}" if preview else "")


def files_of(message: Mapping[str, object]) -> Iterable[Mapping[str, object]]:
    """Return the files of a message, in the newer and the older format."""
    one = mapping(message.get("file"))
    several = [mapping(file) for file in items(message.get("files"))]
    return [file for file in (*several, one) if file]


def _link(target: str, label: str) -> str:
    address = target.removeprefix("mailto:")
    return f"{label} ({address})" if label and label not in address else address


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
STAMP = re.compile(r"(\d{1,11})(?:\.(\d{1,6})\d*)?", re.ASCII)
SYSTEM = (
    "channel_", "group_", "mpim_", "bot_add", "bot_remove", "bot_enable", "bot_disable", "pinned_item",
    "unpinned_item", "joiner_notification", "app_conversation_", "huddle_", "sh_room_", "reminder_",
    "tabbed_canvas_", "canvas_", "ekm_", "list_record_",
)  # fmt: skip
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


def stamp_in(message: Mapping[str, object], name: str) -> str:
    """Return a timestamp in Slack's format, also if it was written as a number; empty if there is none."""
    value = message.get(name)
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e11:
        return f"{value:.6f}"
    return ""


class SlackMessages:
    """Reads the messages of one channel."""

    def __init__(self, people: ExportUsers, bots: set[str], text: SlackText, notices: Notices) -> None:
        self._people = people
        self._bots = bots
        self._text = text
        self._notices = notices
        self._bot_names: dict[str, str] = {}

    def read(self, located_values: Iterable[tuple[str, object]]) -> tuple[NewMessage, ...]:
        """Yield the messages among the values, each with its position."""
        read: list[NewMessage] = []
        shared: dict[str, str] = {}
        for location, value in located_values:
            fields = self._message_fields(value, location)
            message = None if fields is None else self._message(fields, location, shared)
            if fields is not None and message is not None:
                read.append(message)
                _remember_files(fields, message, shared)
        threads = {message.thread for message in read if message.thread is not None}
        return finished(in_threads(read, threads), self._notices)

    def _message_fields(self, value: object, location: str) -> Mapping[str, object] | None:
        if not isinstance(value, dict) or value.get("type", "message") != "message":
            self._notices.note("entries that are not messages, skipped", location)
            return None
        if value.get("subtype") == "tombstone":
            self._notices.note("messages deleted on the platform, skipped")
            return None
        if value.get("hidden") is True:
            self._notices.note("messages hidden by the platform, skipped")
            return None
        return value

    def _message(
        self, message: Mapping[str, object], location: str, shared: Mapping[str, str]
    ) -> NewMessage | None:
        kind = text_in(message, "subtype")
        comment = mapping(message.get("comment")) if kind == "file_comment" else {}
        text = self._text.plain(text_in(comment, "comment")).strip() or self._text.full_text(message)
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
            return (self._named(person, message) if person else None), "system"
        if person and kind != "bot_message":
            if bot and self._people.name(person) is None:
                self._bots.add(person)
            return self._named(person, message), "bot" if person in self._bots else None
        if bot or kind == "bot_message":
            username = text_in(message, "username") or text_in(message.get("bot_profile"), "name")
            return as_name(self._text.plain(username) or self._bot_names.get(bot) or bot or "bot"), "bot"
        username = self._text.plain(text_in(message, "username"))
        return as_name(username) if username else None, None

    def _named(self, person: str, message: Mapping[str, object]) -> str:
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
        moment = instant(stamp_in(mapping(message["edited"]), "ts"))
        metadata |= {} if moment is None else {"edited": canonical(moment)}
    if "reactions" in message:
        reactions = mappings(message["reactions"])
        counts = counted((text_in(reaction, "name"), _times(reaction)) for reaction in reactions)
        metadata |= {"reactions": counts} if counts else {}
    if "files" in message or "file" in message:
        present_files = (file for file in files_of(message) if text_in(file, "mode") not in ABSENT)
        names = listed(text_in(file, "name", "title") for file in present_files)
        metadata |= {"files": names} if names else {}
    return metadata


def _times(reaction: Mapping[str, object]) -> object:
    users = reaction.get("users")
    return len(users) if "count" not in reaction and isinstance(users, list) else reaction.get("count")


USERS = frozenset({"users.json", "org_users.json"})
PRIVATE = {"channels.json": False, "groups.json": True, "dms.json": True, "mpims.json": True}
DAY = re.compile(r"\d{4}-\d{2}-\d{2}.*\.json", re.IGNORECASE)
DIRECT = "dms.json"


@dataclass(frozen=True, slots=True)
class _Listed:
    """A channel in one of the lists."""

    identifier: str
    name: str
    private: bool
    topic: str = ""
    purpose: str = ""
    members: tuple[str, ...] = ()


@dataclass(slots=True)
class _Layout:
    """The files of an export by content. `days` are by channel folder."""

    users: list[ExportFile] = field(default_factory=list)
    lists: list[ExportFile] = field(default_factory=list)
    days: dict[str, list[ExportFile]] = field(default_factory=lambda: defaultdict(list))
    others: list[ExportFile] = field(default_factory=list)


def is_slack(export: Export) -> bool:
    """Return whether the export has the layout of Slack."""
    if any(part.base in PRIVATE for part in export.parts):
        return True
    days = (part for part in export.parts if DAY.fullmatch(part.base))
    return any(export.peek(part, 64).lstrip(b"\xef\xbb\xbf \r\n\t").startswith(b"[") for part in days)


def read_slack(export: Export, notices: Notices) -> Iterator[ChannelArchive]:
    """Return the channels of an export that have messages."""
    layout = _laid_out(export)
    for part in layout.others:
        notices.note(OTHERS, part.name)
    people, bots, handles = _people(export, layout.users, notices)
    channels = list(_channels(export, layout.lists, handles, notices))
    text = SlackText(people, {channel.identifier: channel.name for channel in channels if channel.identifier})
    reader = SlackMessages(people, bots, text, notices)
    names = ChannelNames()
    listed = {key: channel for channel in channels for key in _keys(channel)}
    for folder in sorted(layout.days):
        channel = listed.get(_folder(folder)) or _unlisted(folder, export, notices)
        messages = reader.read(_values(export, layout.days[folder], notices))
        if messages:
            yield ChannelArchive(
                names.take(channel.name, folder), _metadata(channel, text, notices), messages
            )
    folders = {_folder(folder) for folder in layout.days}
    for missing in sorted({channel.name for channel in channels if not folders & _keys(channel)}):
        notices.note("channels without messages, skipped", missing)


def _laid_out(export: Export) -> _Layout:
    layout = _Layout()
    folders = [part.folder for part in export.parts if part.base in PRIVATE or part.base in USERS]
    shallowest = min(folders, key=lambda folder: (folder.count("/") + bool(folder), folder), default="")
    root = f"{shallowest}/" if shallowest else ""
    for part in export.parts:
        inside = part.name.removeprefix(root)
        folder, _, base = inside.rpartition("/")
        if not part.name.startswith(root):
            layout.others.append(part)
        elif not folder and base in PRIVATE:
            layout.lists.append(part)
        elif not folder and base in USERS:
            layout.users.append(part)
        elif DAY.fullmatch(base):
            layout.days[folder].append(part)
        else:
            layout.others.append(part)
    return layout


def _people(
    export: Export, parts: Iterable[ExportFile], notices: Notices
) -> tuple[ExportUsers, set[str], Mapping[str, str]]:
    """Return the users of the workspace, the ids of bots, and the handle of each user by id."""
    people, handles = ExportUsers(), {}
    bots = {SLACKBOT}
    for user in _entries(export, parts, notices):
        identifier, handle = text_in(user, "id"), text_in(user, "name")
        if not identifier:
            notices.note("users without an id, skipped")
            continue
        display_name = text_in(user.get("profile"), "display_name", "real_name") or text_in(user, "real_name")
        people.learn(identifier, display_name, handle)
        handles[identifier] = handle or identifier
        if user.get("is_bot") is True:
            bots.add(identifier)
    people.learn(SLACKBOT, "Slackbot")
    return people, bots, handles


def _channels(
    export: Export, parts: Iterable[ExportFile], handles: Mapping[str, str], notices: Notices
) -> Iterator[_Listed]:
    for part in parts:
        for entry in _entries(export, [part], notices):
            identifier = text_in(entry, "id")
            members = tuple(member for member in items(entry.get("members")) if isinstance(member, str))
            name = text_in(entry, "name")
            if part.base == DIRECT and not name and members:
                name = f"dm-{'--'.join(sorted(handles.get(member, member) for member in members))}"
            if identifier or name:
                yield _Listed(
                    identifier,
                    as_name(name or identifier),
                    PRIVATE[part.base] or entry.get("is_private") is True,
                    text_in(entry.get("topic"), "value"),
                    text_in(entry.get("purpose"), "value"),
                    members,
                )
            else:
                notices.note("channels without a name or an id", part.name)


def _entries(export: Export, parts: Iterable[ExportFile], notices: Notices) -> Iterator[Mapping[str, object]]:
    for part in parts:
        yield from mappings(_load(export, part, notices))


def _values(export: Export, parts: Iterable[ExportFile], notices: Notices) -> Iterator[tuple[str, object]]:
    for part in parts:
        for number, value in enumerate(_load(export, part, notices), 1):
            yield f"{part.name}#{number}", value


def _load(export: Export, part: ExportFile, notices: Notices) -> list[object]:
    data = export.read(part)
    value = None if data is None else load_part(data, part.name, notices)
    if value is not None and not isinstance(value, list):
        notices.damaged("files without a list, skipped", part.name)
    return items(value)


def _unlisted(folder: str, export: Export, notices: Notices) -> _Listed:
    """Return a private channel for a folder that no list names."""
    name = folder or export.name
    notices.note("channels missing from the lists, imported as private", name)
    return _Listed("", name, private=True)


def _keys(channel: _Listed) -> set[str]:
    """Return possible folder names of a channel."""
    return {_folder(name) for name in (channel.identifier, channel.name) if name}


def _folder(name: str) -> str:
    return unicodedata.normalize("NFC", name)


def _metadata(channel: _Listed, text: SlackText, notices: Notices) -> dict[str, Json]:
    members = member_names((text.person(member) for member in channel.members), notices)
    metadata: dict[str, Json] = {"private": channel.private}
    metadata |= described(text.plain(channel.topic), text.plain(channel.purpose))
    return metadata | ({"members": list(members)} if members else {})
