"""IRC logs: a line is a message, its key the name of its file and its number there."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import date

from conspectus.model.channels import ChannelArchive, NewMessage
from conspectus.sources.chats.channel_builder import (
    NO_TEXT,
    ChannelNames,
    as_key,
    as_name,
    with_own_keys,
)
from conspectus.sources.chats.export_files import UNREADABLE, Export, ExportFile
from conspectus.sources.chats.irc_lines import WRITTEN_DAY, Calendar, Header, IrcEntry, parsed, written_day
from conspectus.sources.encoding import decode
from conspectus.sources.import_notices import Notices
from conspectus.text.clean import clean

CHANNEL = re.compile(r"[#&]\S.*")
NICK = re.compile(r"[A-Za-z_\[\]\\`^{|}][\w\[\]\\`^{|}-]*")
BORDER = " ._-"
NO_SHAPE = "lines of no shape known here, left out"
NO_DAY = "messages of which no date is known, kept without a time"
NO_ZONE = "messages whose time names no zone, taken as UTC"


@dataclass(slots=True)
class _Channel:
    """A channel with what its files hold so far; `folder` tells it from others of its name."""

    name: str
    folder: str
    messages: list[NewMessage] = field(default_factory=list)


def read_irc(export: Export, parts: Iterable[ExportFile], notices: Notices) -> Iterator[ChannelArchive]:
    """The channels that the files are named after."""
    channels: dict[tuple[str, str], _Channel] = {}
    for part in sorted(parts, key=_order):
        data = export.read(part)
        decoded = None if data is None else decode(data)
        if data is not None and decoded is None:
            notices.damaged(UNREADABLE, part.name)
        if decoded is None:
            continue
        if decoded.damaged:
            notices.note("files with damaged characters, which were replaced", part.name)
        name, folder = _channel(part, export.name)
        messages = list(_messages(decoded.text.removeprefix("\ufeff"), part, notices))
        channels.setdefault((folder, name), _Channel(name, folder)).messages += messages
    names = ChannelNames()
    for channel in channels.values():
        if channel.messages:
            name = names.take(channel.name, f"{channel.folder}/{channel.name}")
            yield ChannelArchive(name, {}, tuple(with_own_keys(channel.messages, notices)))


def looks_like_irc(lines: Iterable[str]) -> bool:
    """Whether most of these lines are of a log; what programs say looks much the same elsewhere."""
    read = [parsed(line) for line in lines]
    telling = [each for each in read if not (isinstance(each, IrcEntry) and each.event)]
    sure = sum(isinstance(each, Header) or (each is not None and _said(each)) for each in telling)
    return 0 < len(telling) <= 2 * sure


def _said(entry: IrcEntry) -> bool:
    """Whether somebody surely said it: a tag of a markup language looks like a name."""
    named = NICK.fullmatch(entry.nick or "") is not None and entry.text != "" and not entry.action
    return entry.clock is not None or named


def _order(part: ExportFile) -> tuple[str, date, str]:
    """The order in which the files of a channel were written."""
    return part.folder, written_day(part.base) or date.min, part.name


def _channel(part: ExportFile, export: str) -> tuple[str, str]:
    """The channel that a file is about, and the folder that holds it."""
    stem = part.base.rpartition(".")[0] or part.base
    stem = WRITTEN_DAY.sub("", stem).strip(BORDER)
    folder = part.folder
    if not stem:
        folder, _, stem = folder.rpartition("/")
    found = CHANNEL.search(stem)
    return as_name(found[0] if found else stem or export), folder


def _messages(text: str, part: ExportFile, notices: Notices) -> Iterator[NewMessage]:
    calendar = Calendar(written_day(part.base))
    unknown = []
    read = 0
    for number, line in enumerate(text.split("\n"), 1):
        said = parsed(line.rstrip("\r"))
        if isinstance(said, Header):
            calendar.turn_to(said)
        elif said is not None:
            read += 1
            yield from _message(said, calendar, f"{part.base}:{number}", notices)
        elif line.strip():
            unknown.append(number)
    for number in unknown if read else ():
        notices.damaged(NO_SHAPE, f"{part.name}:{number}")
    if unknown and not read:
        notices.damaged("files in which no line is a message, left out", part.name)


def _message(said: IrcEntry, calendar: Calendar, key: str, notices: Notices) -> Iterator[NewMessage]:
    moment = calendar.moment(said.clock)
    text = clean(said.text.strip())
    if not text:
        notices.note(NO_TEXT, key)
        return
    if moment is None:
        notices.note(NO_DAY)
    elif said.clock is not None and said.clock.at.tzinfo is None:
        notices.note(NO_ZONE)
    yield NewMessage(
        text,
        key=as_key(key),
        author=as_name(said.nick) if said.nick else None,
        at=moment,
        role="system" if said.event else None,
        metadata={"action": True} if said.action else {},
    )
