"""IRC logs: each line is a message. Its key is the file name with the line number."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from datetime import date

from conspectus.deferred import dataclass
from conspectus.model.channels import ChannelArchive, NewMessage
from conspectus.sources.chats.export_files import Export, ExportFile
from conspectus.sources.chats.export_messages import (
    JOINED,
    NO_TEXT,
    ChannelNames,
    as_key,
    as_name,
    make_keys_unique,
)
from conspectus.sources.chats.irc_lines import (
    NUMERIC_DAY,
    Calendar,
    Header,
    IrcEntry,
    last_day_in,
    parse_line,
)
from conspectus.sources.notices import Notices
from conspectus.text.clean import clean

CHANNEL = re.compile(r"[#&]\S.*")
NICK = re.compile(r"[A-Za-z_\[\]\\`^{|}][\w\[\]\\`^{|}-]*")
JOINS = re.compile(r"\b(?:joined|left|quit)\b|^(?:Joins|Parts|Quits):")
BORDER = " ._-"
NO_SHAPE = "lines in an unknown format, skipped"
NO_DAY = "messages without a date, kept without a time"
NO_ZONE = "times without a time zone, read as UTC"


@dataclass(slots=True)
class _Channel:
    """A channel with the messages read so far. `folder` distinguishes channels of the same name."""

    name: str
    folder: str
    messages: list[NewMessage] = field(default_factory=list)


def read_irc(export: Export, parts: Iterable[ExportFile], notices: Notices) -> Iterator[ChannelArchive]:
    """Return the channels that the files are named after."""
    channels: dict[tuple[str, str], _Channel] = {}
    for part in sorted(parts, key=lambda part: (part.folder, last_day_in(part.base) or date.min, part.name)):
        decoded = export.text(part)
        if decoded is None:
            continue
        if decoded.damaged:
            notices.note("files with invalid characters, which were replaced", part.name)
        name, folder = _channel(part, export.name)
        messages = list(_messages(decoded.text, part, notices))
        channels.setdefault((folder, name), _Channel(name, folder)).messages += messages
    names = ChannelNames()
    for channel in channels.values():
        if channel.messages:
            name = names.take(channel.name, f"{channel.folder}/{channel.name}")
            yield ChannelArchive(name, {}, tuple(make_keys_unique(channel.messages, notices)))


def looks_like_irc(lines: Iterable[str]) -> bool:
    """Return whether most lines look like a log. Output of other programs may look the same."""
    read = [parse_line(line) for line in lines]
    telling = [entry for entry in read if not (isinstance(entry, IrcEntry) and entry.event)]
    sure = sum(isinstance(entry, Header) or (entry is not None and _has_speaker(entry)) for entry in telling)
    return 0 < len(telling) <= 2 * sure


def _has_speaker(entry: IrcEntry) -> bool:
    """Return whether the line has a speaker and not a tag of a markup language."""
    named = NICK.fullmatch(entry.nick or "") is not None and entry.text != "" and not entry.action
    return entry.clock is not None or named


def _channel(part: ExportFile, export: str) -> tuple[str, str]:
    """Return the channel of a file, and the folder that contains it."""
    stem = part.base.rpartition(".")[0] or part.base
    stem = NUMERIC_DAY.sub("", stem).strip(BORDER)
    folder = part.folder
    if not stem:
        folder, _, stem = folder.rpartition("/")
    match = CHANNEL.search(stem)
    return as_name(match[0] if match else stem or export), folder


def _messages(text: str, part: ExportFile, notices: Notices) -> Iterator[NewMessage]:
    calendar = Calendar(last_day_in(part.base))
    unknown = []
    read = 0
    for number, line in enumerate(text.split("\n"), 1):
        content = parse_line(line.rstrip("\r"))
        if isinstance(content, Header):
            calendar.turn_to(content)
        elif content is not None:
            read += 1
            yield from _message(content, calendar, f"{part.base}:{number}", notices)
        elif line.strip():
            unknown.append(number)
    for number in unknown if read else ():
        notices.count_damage(NO_SHAPE, f"{part.name}:{number}")
    if unknown and not read:
        notices.count_damage("files without messages, skipped", part.name)


def _message(entry: IrcEntry, calendar: Calendar, key: str, notices: Notices) -> Iterator[NewMessage]:
    moment = calendar.moment(entry.clock)
    text = clean(entry.text.strip())
    if not text or (entry.event and JOINS.search(text)):
        notices.note(JOINED if text else NO_TEXT, key)
        return
    if moment is None:
        notices.note(NO_DAY)
    elif entry.clock is not None and entry.clock.at.tzinfo is None:
        notices.note(NO_ZONE)
    yield NewMessage(
        text,
        key=as_key(key),
        author=as_name(entry.nick) if entry.nick else None,
        at=moment,
        role="system" if entry.event else None,
        metadata={"action": True} if entry.action else {},
    )
