"""Discord exports of DiscordChatExporter: JSON files, each with a channel, a thread, or a part of one.

A public thread becomes a thread of its channel; a private thread becomes a channel of its own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from conspectus.deferred import dataclass
from conspectus.model.channels import ChannelArchive, NewMessage
from conspectus.model.records import Json
from conspectus.sources.chats.export_files import Export, ExportFile
from conspectus.sources.chats.export_messages import (
    JOINED,
    NO_TEXT,
    NO_TIME,
    ChannelNames,
    ExportUsers,
    as_key,
    as_name,
    channel_description,
    finish_messages,
    member_names,
    set_threads,
)
from conspectus.sources.json_values import (
    as_mapping,
    count_names,
    items,
    list_names,
    load_part,
    mappings,
    moment_in,
    text_in,
    word_in,
)
from conspectus.sources.notices import Notices
from conspectus.text.clean import clean
from conspectus.text.times import canonical

MESSAGE_TYPES = frozenset(
    {"", "Default", "Reply", "ChatInputCommand", "ContextMenuCommand", "0", "19", "20", "23"}
)
JOINS = frozenset({"RecipientAdd", "RecipientRemove", "GuildMemberJoin", "1", "2", "7"})
REPLIES = frozenset({"Reply", "19"})
OPEN_THREADS = frozenset({"GuildPublicThread", "GuildNewsThread", "10", "11"})
CLOSED_THREADS = frozenset({"GuildPrivateThread", "12"})
DIRECT = frozenset({"DirectTextChat", "DirectGroupTextChat", "1", "3"})
MENTION = re.compile(r"<(?:@!?(?P<person>\d+)|a?:(?P<emoji>\w+):\d+)>")


@dataclass(frozen=True, slots=True)
class _DiscordChannel:
    """The channel of a file. `thread` is the id of a thread of the channel."""

    identifier: str
    name: str
    category: str
    guild: str
    topic: str
    private: bool
    thread: str | None = None
    title: str = ""

    def names(self) -> tuple[str, ...]:
        """Return possible names of the channel, from the shortest to one that is unique."""
        wider = " / ".join(filter(None, (self.category, self.name)))
        widest = " / ".join(filter(None, (self.guild, wider)))
        return self.name, wider, widest, f"{widest} ({self.identifier})"


@dataclass(slots=True)
class _ChannelMessages:
    """A channel with the messages read so far."""

    identity: _DiscordChannel
    messages: list[NewMessage] = field(default_factory=list)
    threads: set[str] = field(default_factory=set)
    handles: dict[str, None] = field(default_factory=dict)


def looks_like_discord(value: object) -> bool:
    """Return whether a JSON value is the export of a channel."""
    export = as_mapping(value)
    has_origin = isinstance(export.get("channel"), dict) or isinstance(export.get("guild"), dict)
    return has_origin and isinstance(export.get("messages"), list)


def read_discord(export: Export, parts: Iterable[ExportFile], notices: Notices) -> Iterator[ChannelArchive]:
    """Return the channels in these files."""
    channels: dict[str, _ChannelMessages] = {}
    reader = _Messages(ExportUsers(), notices)
    for part in parts:
        data = export.read(part)
        value = None if data is None else load_part(data, part.name, notices)
        if value is None:
            continue
        if not looks_like_discord(value):
            notices.count_damage("files without a channel, skipped", part.name)
            continue
        channel_of_part = _channel_of(as_mapping(value), part)
        channel = channels.setdefault(channel_of_part.identifier, _ChannelMessages(channel_of_part))
        if channel.identity.thread is not None and channel_of_part.thread is None:
            channel.identity = channel_of_part
        if channel_of_part.thread is not None:
            channel.threads.add(channel_of_part.thread)
        values = as_mapping(value).get("messages")
        handles = (text_in(message.get("author"), "name") for message in mappings(values))
        channel.handles |= dict.fromkeys(filter(None, handles))
        channel.messages += reader.read(values, channel_of_part, part.name)
    names = ChannelNames()
    for channel in channels.values():
        messages = finish_messages(set_threads(channel.messages, channel.threads), notices)
        if messages:
            identity = channel.identity
            metadata = _metadata(identity, messages, notices)
            members = tuple((handle,) for handle in channel.handles) if identity.private else ()
            yield ChannelArchive(names.take(*identity.names()), metadata, messages, members=members)
        else:
            notices.note("channels without messages, skipped", as_name(channel.identity.name))


def _channel_of(value: Mapping[str, object], part: ExportFile) -> _DiscordChannel:
    channel, guild = as_mapping(value.get("channel")), text_in(value.get("guild"), "name")
    kind, identifier = word_in(channel, "type"), word_in(channel, "id")
    name, category = text_in(channel, "name"), text_in(channel, "category")
    topic = text_in(channel, "topic")
    name = name or part.base.removesuffix(".json")
    identifier = identifier or f"{guild}/{category}/{name}"
    if kind in OPEN_THREADS and category:
        parent = word_in(channel, "categoryId") or f"{guild}//{category}"
        return _DiscordChannel(parent, category, "", guild, "", False, thread=as_key(identifier), title=name)
    private = kind in CLOSED_THREADS or kind in DIRECT
    if kind in CLOSED_THREADS:
        name, category = " / ".join(filter(None, (category, name))), ""
    return _DiscordChannel(identifier, name, category, guild, topic, private)


def _metadata(channel: _DiscordChannel, messages: Iterable[NewMessage], notices: Notices) -> dict[str, Json]:
    metadata: dict[str, Json] = {"private": channel.private}
    metadata |= channel_description(channel.topic, "")
    about = {"category": channel.category, "guild": channel.guild}
    metadata |= {name: as_name(text) for name, text in about.items() if text}
    if channel.private:
        metadata["members"] = list(
            member_names((message.author for message in messages if message.author), notices)
        )
    return metadata


class _Messages:
    """Reads the messages of the files."""

    def __init__(self, people: ExportUsers, notices: Notices) -> None:
        self._people = people
        self._notices = notices

    def read(self, values: object, channel: _DiscordChannel, file: str) -> Iterator[NewMessage]:
        for number, value in enumerate(items(values), 1):
            where = f"{file}#{number}"
            if word_in(as_mapping(value), "type") in JOINS:
                self._notices.note(JOINED, where)
                continue
            message = self._message(value, channel, where) if isinstance(value, dict) else None
            if not isinstance(value, dict):
                self._notices.note("entries that are not messages, skipped", where)
            elif message is None:
                self._notices.note(NO_TEXT, where)
            else:
                yield message

    def _message(
        self, value: Mapping[str, object], channel: _DiscordChannel, where: str
    ) -> NewMessage | None:
        identifier, kind = word_in(value, "id"), word_in(value, "type")
        text = self._full_text(value)
        if channel.title and identifier == channel.thread:
            text = f"{channel.title}\n\n{text}".strip()
        if not text:
            return None
        answered = word_in(value.get("reference"), "messageId") if kind in REPLIES else ""
        moment = moment_in(value, "timestamp")
        if moment is None:
            self._notices.note(NO_TIME, where)
        author, is_bot = self._author(as_mapping(value.get("author")))
        return NewMessage(
            clean(text),
            key=as_key(identifier or where.rpartition("/")[2]),
            author=author,
            at=moment,
            reply_to=as_key(answered) if answered else None,
            thread=channel.thread,
            role="system" if kind not in MESSAGE_TYPES else "bot" if is_bot else None,
            metadata=_extras(value, kind, channel.title),
        )

    def _author(self, author: Mapping[str, object]) -> tuple[str | None, bool]:
        handle = text_in(author, "name")
        identifier = word_in(author, "id") or handle
        if not identifier:
            return None, author.get("isBot") is True
        name = self._people.learn(identifier, text_in(author, "nickname") or handle, handle)
        return name, author.get("isBot") is True

    def _full_text(self, value: Mapping[str, object], *, forwarded: bool = False) -> str:
        """Return the text of a message, each part on lines of its own."""
        parts = [self._plain(text_in(value, "content"), value)]
        parts += map(_text_of_embed, mappings(value.get("embeds")))
        files = (text_in(file, "fileName") for file in mappings(value.get("attachments")))
        stickers = (text_in(sticker, "name") for sticker in mappings(value.get("stickers")))
        parts += [f"File: {name}" for name in files if name]
        parts += [f"Sticker: {name}" for name in stickers if name]
        parts += _poll(as_mapping(value.get("poll")))
        inner = as_mapping(value.get("forwardedMessage"))
        if inner and not forwarded:
            parts.append(self._full_text(inner, forwarded=True))
        return "\n".join(dict.fromkeys(filter(None, map(str.strip, parts))))

    def _plain(self, text: str, value: Mapping[str, object]) -> str:
        """Replace the mentions that the export left as ids by names."""
        if "<" not in text:
            return text
        mentioned = {word_in(mention, "id"): mention for mention in mappings(value.get("mentions"))}

        def mention_text(match: re.Match[str]) -> str:
            if match["emoji"]:
                return f":{match['emoji']}:"
            name = text_in(mentioned.get(match["person"]), "nickname", "name")
            return f"@{name or self._people.name(match['person']) or match['person']}"

        return MENTION.sub(mention_text, text)


def _poll(poll: Mapping[str, object]) -> Iterator[str]:
    """Return the question of a poll, and its answers."""
    yield text_in(poll.get("question"), "text")
    for answer in mappings(poll.get("answers")):
        text = text_in(answer, "text")
        yield f"- {text}" if text else ""


def _text_of_embed(embed: Mapping[str, object]) -> str:
    parts = [text_in(embed.get("author"), "name"), text_in(embed, "title"), text_in(embed, "description")]
    for embed_field in mappings(embed.get("fields")):
        parts.append(": ".join(filter(None, (text_in(embed_field, "name"), text_in(embed_field, "value")))))
    return "\n".join(filter(None, parts))


def _extras(value: Mapping[str, object], kind: str, title: str) -> dict[str, object]:
    extras: dict[str, object] = {} if kind in MESSAGE_TYPES else {"event": kind[:100]}
    edited = moment_in(value, "timestampEdited")
    raw_reactions = mappings(value.get("reactions"))
    reactions = count_names(
        (text_in(reaction.get("emoji"), "name", "code"), reaction.get("count")) for reaction in raw_reactions
    )
    files = list_names(text_in(file, "fileName") for file in mappings(value.get("attachments")))
    extras |= {"edited": canonical(edited)} if edited else {}
    extras |= {"reactions": reactions} if reactions else {}
    extras |= {"files": files} if files else {}
    extras |= {"pinned": True} if value.get("isPinned") is True else {}
    return extras | ({"thread_title": as_name(title)} if title else {})
