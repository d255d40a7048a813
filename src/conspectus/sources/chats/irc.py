"""IRC logs: each line is a message. Its key is the file name with the line number."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import field
from datetime import UTC, date, datetime, time, timedelta, timezone

from conspectus.deferred import dataclass
from conspectus.model.channels import ChannelArchive, NewMessage
from conspectus.sources.chats.export_files import (
    NO_TEXT,
    ChannelNames,
    Export,
    ExportFile,
    as_key,
    as_name,
    with_own_keys,
)
from conspectus.sources.json_values import Notices
from conspectus.text.clean import clean

FORMATTING = re.compile(
    "\x03(?:\\d{1,2}(?:,\\d{1,2})?)?|\x04(?:[0-9A-Fa-f]{6})?|\x1b\\[[0-9;]*m|[\x02\x0f\x11\x16\x1d\x1e\x1f]"
)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
MONTH = f"(?P<month>{'|'.join(MONTHS)})"
STAMP = re.compile(
    rf"""\s?[\[(]?
    (?:(?P<date>\d{{4}}[-/.]\d\d[-/.]\d\d)[T ]|{MONTH}[ ]{{1,2}}(?P<day>\d{{1,2}})[ ])?
    (?P<clock>\d{{1,2}}:\d\d(?::\d\d)?)(?:[.,](?P<fraction>\d{{1,6}})\d*)?
    (?:[ ]?(?P<half>[AaPp])[Mm])?
    (?:[ ]?(?P<zone>Z|[+-]\d\d:?\d\d))?
    [\])]?(?=[\s<])""",
    re.VERBOSE | re.ASCII | re.IGNORECASE,
)
MESSAGE = re.compile(r"\s*<\s{0,30}[~&@%+!]?\s?(?P<nick>[^<>\s][^<>]{0,99})>(?:\s(?P<text>.*))?", re.DOTALL)
DID = re.compile(r"\s*\*\s+(?P<nick>\S{1,100})\s(?P<text>.*)", re.DOTALL)
NOTICE = re.compile(r"\s*-(?P<nick>[^\s:-]\S{0,99}?)(?::\S{1,200})?-\s(?P<text>.*)", re.DOTALL)
EVENT = re.compile(r"\s*(?:\*\*\*|-!-|===|=!=|-->|<--|--|<-|->)\s+(?P<text>.*)", re.DOTALL)
NEWS = re.compile(
    r"\s*(?P<text>\S+ \(\S+@\S+\) (?:has )?(?:joined|left|quit)\b.*)|\s*---\s+(?P<rest>.*)", re.DOTALL
)
SERVED = (
    r"[(\[]\S+[)\]] has (?:joined|left|quit)\b", r"has (?:joined|left|quit)(?: [#&(\[]|$)",
    "is now known as ", "has changed the topic", "changes topic to ", "sets? mode", "sets the ",
    "was kicked by ", "(?:gives|removes) (?:voice|channel)",
)  # fmt: skip
SERVICE = re.compile(rf"\s*\*\s+(?P<text>(?:You are |Now talking |\S+ (?:{'|'.join(SERVED)})).*)", re.DOTALL)
COLUMNS = re.compile(r"\t(?P<nick>[^\t]{0,100})\t(?P<text>.*)", re.DOTALL)
ACTIONS, EVENTS = frozenset({"*"}), frozenset({"", "-->", "<--", "--", "=!="})
HEADER = re.compile(
    r"(?:--- (?:Log|Day)|\*{4} (?:BEGIN|ENDING) LOGGING|Session (?:Start|Time|Close|Ident))\b(?P<rest>.*)"
)
NAMED_DAY = re.compile(
    rf"\b{MONTH}\s+(?P<day>\d{{1,2}})\s+(?:(?P<clock>\d\d:\d\d(?::\d\d)?)\s+)?(?:[A-Z]{{2,5}}\s+)?(?P<year>\d{{4}})\b",
    re.ASCII,
)
WRITTEN_DAY = re.compile(r"(?<!\d)(\d{4})([-_./]?)(\d\d)\2(\d\d)(?!\d)", re.ASCII)
FIRST_YEAR, LAST_YEAR = 1988, 2100
BACKWARDS = timedelta(hours=2)
"""A clock may be set back by less than this; a larger step back means that a new day has begun."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The time at the start of a line, as far as given. `month` and `day` are set if it has no year."""

    at: time
    on: date | None = None
    month_day: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Header:
    """A line with a date that may be unreadable, and possibly a time."""

    on: date | None
    at: time | None = None


@dataclass(frozen=True, slots=True)
class IrcEntry:
    """A line with content: `event` is a message of the network, `action` an action of a user."""

    clock: Clock | None
    nick: str | None
    text: str
    event: bool = False
    action: bool = False


def parsed(line: str) -> IrcEntry | Header | None:
    """Return the content of a line; None if its format is unknown."""
    plain = FORMATTING.sub("", line)
    header = HEADER.match(plain)
    if header:
        rest = header["rest"]
        named = NAMED_DAY.search(rest)
        if named is None:
            return Header(written_day(rest))
        day = _day(int(named["year"]), MONTHS.index(named["month"]) + 1, int(named["day"]))
        return Header(day, _time(named["clock"], "", None) if named["clock"] else None)
    stamp = STAMP.match(plain)
    if stamp is None:
        return _entry(None, plain)
    clock = _clock(stamp)
    return None if clock is None else _entry(clock, plain[stamp.end() :])


def written_day(text: str) -> date | None:
    """Return the last date in a text in numbers, year first."""
    last_day = None
    for year, _, month, day in WRITTEN_DAY.findall(text):
        if FIRST_YEAR <= int(year) <= LAST_YEAR:
            last_day = _day(int(year), int(month), int(day)) or last_day
    return last_day


class Calendar:
    """Tracks the date while a log is read: lines without a date have that of the lines before."""

    def __init__(self, day: date | None) -> None:
        self._day = day
        self._last: time | None = None

    def turn_to(self, header: Header) -> None:
        """Continue with the date of a header."""
        if header.on is not None:
            self._day, self._last = header.on, header.at

    def moment(self, clock: Clock | None) -> datetime | None:
        """Return the time of a line, in UTC if it has no zone; None while the date is unknown."""
        if clock is None:
            return None
        if clock.on is not None or clock.month_day is not None:
            self._day = clock.on or self._in_year(clock.month_day)
        elif self._day is not None and self._last is not None:
            self._day = _next_if_backwards(self._day, self._last, clock.at)
        self._last = clock.at
        if self._day is None:
            return None
        try:
            moment = datetime.combine(self._day, clock.at)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
        except (OverflowError, ValueError):
            return None

    def _in_year(self, month_day: tuple[int, int] | None) -> date | None:
        """Return the day in the current year, or in the next one if the months start again."""
        if self._day is None or month_day is None:
            return None
        begun_anew = self._day.month - month_day[0] > 6
        return _day(self._day.year + begun_anew, *month_day)


def _next_if_backwards(day: date, last: time, now: time) -> date | None:
    earlier = datetime.combine(day, last.replace(tzinfo=None)) - datetime.combine(
        day, now.replace(tzinfo=None)
    )
    try:
        return day + timedelta(days=1) if earlier > BACKWARDS else day
    except OverflowError:
        return None


def _entry(clock: Clock | None, rest: str) -> IrcEntry | None:
    columns = COLUMNS.fullmatch(rest) if clock is not None else None
    if columns:
        return _from_columns(clock, columns["nick"].strip(), columns["text"])
    if match := MESSAGE.fullmatch(rest):
        return IrcEntry(clock, match["nick"].strip(), match["text"] or "")
    if (match := SERVICE.fullmatch(rest)) or (match := EVENT.fullmatch(rest)):
        return IrcEntry(clock, None, match["text"], event=True)
    if match := DID.fullmatch(rest):
        return IrcEntry(clock, match["nick"], match["text"], action=True)
    return _from_clocked(clock, rest) if clock is not None else None


def _from_clocked(clock: Clock, rest: str) -> IrcEntry | None:
    """Parse events that are recognized only after a time, because much other text looks like them."""
    if match := NEWS.fullmatch(rest):
        return IrcEntry(clock, None, match["text"] or match["rest"], event=True)
    match = NOTICE.fullmatch(rest)
    return IrcEntry(clock, match["nick"], match["text"]) if match else None


def _from_columns(clock: Clock | None, nick: str, text: str) -> IrcEntry:
    if nick in EVENTS:
        return IrcEntry(clock, None, text, event=True)
    if nick in ACTIONS:
        who, _, what = text.partition(" ")
        return IrcEntry(clock, who or None, what, action=True)
    return IrcEntry(clock, nick.lstrip("~&@%+ ") or nick, text)


def _clock(stamp: re.Match[str]) -> Clock | None:
    at = _time(stamp["clock"], stamp["fraction"] or "", stamp["half"], _zone(stamp["zone"]))
    if at is None:
        return None
    if stamp["date"]:
        day = _day(*map(int, re.split("[-/.]", stamp["date"])))
        return Clock(at, day) if day else None
    if stamp["month"]:
        return Clock(at, month_day=(MONTHS.index(stamp["month"].title()) + 1, int(stamp["day"])))
    return Clock(at)


def _time(clock: str, fraction: str, half: str | None, zone: timezone | None = None) -> time | None:
    hour, minute, second = (*map(int, clock.split(":")), 0)[:3]
    if half is not None:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half in "Pp" else 0)
    try:
        return time(
            hour, minute, min(second, 59) if second == 60 else second, int(fraction.ljust(6, "0")), zone
        )
    except ValueError:
        return None


def _zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text in "Zz":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone((-1 if text[0] == "-" else 1) * timedelta(minutes=minutes)) if minutes < 1440 else None


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


CHANNEL = re.compile(r"[#&]\S.*")
NICK = re.compile(r"[A-Za-z_\[\]\\`^{|}][\w\[\]\\`^{|}-]*")
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
    for part in sorted(parts, key=lambda part: (part.folder, written_day(part.base) or date.min, part.name)):
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
            yield ChannelArchive(name, {}, tuple(with_own_keys(channel.messages, notices)))


def looks_like_irc(lines: Iterable[str]) -> bool:
    """Return whether most lines look like a log. Output of other programs may look the same."""
    read = [parsed(line) for line in lines]
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
    stem = WRITTEN_DAY.sub("", stem).strip(BORDER)
    folder = part.folder
    if not stem:
        folder, _, stem = folder.rpartition("/")
    match = CHANNEL.search(stem)
    return as_name(match[0] if match else stem or export), folder


def _messages(text: str, part: ExportFile, notices: Notices) -> Iterator[NewMessage]:
    calendar = Calendar(written_day(part.base))
    unknown = []
    read = 0
    for number, line in enumerate(text.split("\n"), 1):
        content = parsed(line.rstrip("\r"))
        if isinstance(content, Header):
            calendar.turn_to(content)
        elif content is not None:
            read += 1
            yield from _message(content, calendar, f"{part.base}:{number}", notices)
        elif line.strip():
            unknown.append(number)
    for number in unknown if read else ():
        notices.damaged(NO_SHAPE, f"{part.name}:{number}")
    if unknown and not read:
        notices.damaged("files without messages, skipped", part.name)


def _message(entry: IrcEntry, calendar: Calendar, key: str, notices: Notices) -> Iterator[NewMessage]:
    moment = calendar.moment(entry.clock)
    text = clean(entry.text.strip())
    if not text:
        notices.note(NO_TEXT, key)
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
