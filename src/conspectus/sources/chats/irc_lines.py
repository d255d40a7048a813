"""Lines of IRC logs: their times in many formats, who wrote what, and events."""

import re
from datetime import UTC, date, datetime, time, timedelta, timezone

from conspectus.deferred import dataclass

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
ACTION = re.compile(r"\s*\*\s+(?P<nick>\S{1,100})\s(?P<text>.*)", re.DOTALL)
NOTICE = re.compile(r"\s*-(?P<nick>[^\s:-]\S{0,99}?)(?::\S{1,200})?-\s(?P<text>.*)", re.DOTALL)
EVENT = re.compile(r"\s*(?:\*\*\*|-!-|===|=!=|-->|<--|--|<-|->)\s+(?P<text>.*)", re.DOTALL)
BARE_EVENT = re.compile(
    r"\s*(?P<text>\S+ \(\S+@\S+\) (?:has )?(?:joined|left|quit)\b.*)|\s*---\s+(?P<rest>.*)", re.DOTALL
)
SERVICE_VERBS = (
    r"[(\[]\S+[)\]] has (?:joined|left|quit)\b", r"has (?:joined|left|quit)(?: [#&(\[]|$)",
    "is now known as ", "has changed the topic", "changes topic to ", "sets? mode", "sets the ",
    "was kicked by ", "(?:gives|removes) (?:voice|channel)",
)  # fmt: skip
SERVICE = re.compile(
    rf"\s*\*\s+(?P<text>(?:You are |Now talking |\S+ (?:{'|'.join(SERVICE_VERBS)})).*)", re.DOTALL
)
COLUMNS = re.compile(r"\t(?P<nick>[^\t]{0,100})\t(?P<text>.*)", re.DOTALL)
ACTION_NICKS, EVENT_NICKS = frozenset({"*"}), frozenset({"", "-->", "<--", "--", "=!="})
HEADER = re.compile(
    r"(?:--- (?:Log|Day)|\*{4} (?:BEGIN|ENDING) LOGGING|Session (?:Start|Time|Close|Ident))\b(?P<rest>.*)"
)
NAMED_DAY = re.compile(
    rf"\b{MONTH}\s+(?P<day>\d{{1,2}})\s+(?:(?P<clock>\d\d:\d\d(?::\d\d)?)\s+)?(?:[A-Z]{{2,5}}\s+)?(?P<year>\d{{4}})\b",
    re.ASCII,
)
NUMERIC_DAY = re.compile(r"(?<!\d)(\d{4})([-_./]?)(\d\d)\2(\d\d)(?!\d)", re.ASCII)
FIRST_YEAR, LAST_YEAR = 1988, 2100
MAX_STEP_BACK = timedelta(hours=2)
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


def parse_line(line: str) -> IrcEntry | Header | None:
    """Return the content of a line; None if its format is unknown."""
    plain = FORMATTING.sub("", line)
    header = HEADER.match(plain)
    if header:
        rest = header["rest"]
        named = NAMED_DAY.search(rest)
        if named is None:
            return Header(last_day_in(rest))
        day = _valid_day(int(named["year"]), MONTHS.index(named["month"]) + 1, int(named["day"]))
        return Header(day, _parse_time(named["clock"], "", None) if named["clock"] else None)
    stamp = STAMP.match(plain)
    if stamp is None:
        return _parse_content(None, plain)
    clock = _parse_stamp(stamp)
    return None if clock is None else _parse_content(clock, plain[stamp.end() :])


def last_day_in(text: str) -> date | None:
    """Return the last date in a text in numbers, year first."""
    last_day = None
    for year, _, month, day in NUMERIC_DAY.findall(text):
        if FIRST_YEAR <= int(year) <= LAST_YEAR:
            last_day = _valid_day(int(year), int(month), int(day)) or last_day
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
        return _valid_day(self._day.year + begun_anew, *month_day)


def _next_if_backwards(day: date, last: time, now: time) -> date | None:
    earlier = datetime.combine(day, last.replace(tzinfo=None)) - datetime.combine(
        day, now.replace(tzinfo=None)
    )
    try:
        return day + timedelta(days=1) if earlier > MAX_STEP_BACK else day
    except OverflowError:
        return None


def _parse_content(clock: Clock | None, rest: str) -> IrcEntry | None:
    columns = COLUMNS.fullmatch(rest) if clock is not None else None
    if columns:
        return _parse_columns(clock, columns["nick"].strip(), columns["text"])
    if match := MESSAGE.fullmatch(rest):
        return IrcEntry(clock, match["nick"].strip(), match["text"] or "")
    if (match := SERVICE.fullmatch(rest)) or (match := EVENT.fullmatch(rest)):
        return IrcEntry(clock, None, match["text"], event=True)
    if match := ACTION.fullmatch(rest):
        return IrcEntry(clock, match["nick"], match["text"], action=True)
    return _parse_ambiguous(clock, rest) if clock is not None else None


def _parse_ambiguous(clock: Clock, rest: str) -> IrcEntry | None:
    """Parse events that are recognized only after a time, because much other text looks like them."""
    if match := BARE_EVENT.fullmatch(rest):
        return IrcEntry(clock, None, match["text"] or match["rest"], event=True)
    match = NOTICE.fullmatch(rest)
    return IrcEntry(clock, match["nick"], match["text"]) if match else None


def _parse_columns(clock: Clock | None, nick: str, text: str) -> IrcEntry:
    if nick in EVENT_NICKS:
        return IrcEntry(clock, None, text, event=True)
    if nick in ACTION_NICKS:
        who, _, what = text.partition(" ")
        return IrcEntry(clock, who or None, what, action=True)
    return IrcEntry(clock, nick.lstrip("~&@%+ ") or nick, text)


def _parse_stamp(stamp: re.Match[str]) -> Clock | None:
    at = _parse_time(stamp["clock"], stamp["fraction"] or "", stamp["half"], _parse_zone(stamp["zone"]))
    if at is None:
        return None
    if stamp["date"]:
        day = _valid_day(*map(int, re.split("[-/.]", stamp["date"])))
        return Clock(at, day) if day else None
    if stamp["month"]:
        return Clock(at, month_day=(MONTHS.index(stamp["month"].title()) + 1, int(stamp["day"])))
    return Clock(at)


def _parse_time(clock: str, fraction: str, half: str | None, zone: timezone | None = None) -> time | None:
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


def _parse_zone(text: str | None) -> timezone | None:
    if text is None:
        return None
    if text in "Zz":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone((-1 if text[0] == "-" else 1) * timedelta(minutes=minutes)) if minutes < 1440 else None


def _valid_day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
