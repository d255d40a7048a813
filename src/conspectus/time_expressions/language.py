"""Words, numbers and amounts of time in a query, as tables. Another language is another table."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal

from conspectus.deferred import dataclass
from conspectus.text.analyzer import STOP_WORDS
from conspectus.text.late_patterns import re_pattern

Relation = Literal[
    "before", "until", "by", "after", "since", "from", "around", "about", "at", "in", "on", "between"
]
MINUTE: Final = 60.0
HOUR: Final = 3_600.0
DAY: Final = 86_400.0
SECOND: Final = 1.0


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _counted(words: str, first: int = 0, step: int = 1) -> dict[str, int]:
    """Map words to consecutive numbers. Words joined by `/` have the same number."""
    return {
        word: first + place * step for place, same in enumerate(words.split()) for word in same.split("/")
    }


def _phrases(meanings: Mapping[Relation, str]) -> dict[tuple[str, ...], Relation]:
    """Map the words of phrases, which are joined by `/`, to their meaning."""
    return {
        tuple(phrase.split()): meaning for meaning, same in meanings.items() for phrase in same.split("/")
    }


class Language:
    """The vocabulary of English in lower case. Another language is a subclass with other tables.

    `singular` are units that describe a thing after a number other than one ("a five minute timer"). `asides`
    may follow a phrase that could otherwise continue ("five minutes in, what …"). `lengths` after an amount,
    and `lasting` before one, make it a duration instead of a position. `recordings` are names of a stream,
    which `begins` and `finishes`. `halves` are the hours of the day after which a time is, `sides` the sides
    of an hour ("quarter to nine"). Weekday names are numbered from Monday, 0. `parts` of a day are in seconds
    from its midnight. `empties` are words of a query without content to search for.
    """

    numbers = MappingProxyType(
        _counted(
            "zero one/a/an two/couple three/few four five six seven eight nine ten eleven twelve/dozen "
            "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
        )
        | _counted("twenty thirty forty fifty sixty seventy eighty ninety hundred", 20, 10)
    )
    ordinals = MappingProxyType(
        _counted(
            "first/opening/initial second third fourth fifth sixth seventh eighth ninth tenth eleventh "
            "twelfth",
            1,
        )
    )
    ordinal_endings = _set("st nd rd th")
    units = MappingProxyType(
        dict.fromkeys(["second", "seconds", "sec", "secs", "s"], SECOND)
        | dict.fromkeys(["minute", "minutes", "min", "mins"], MINUTE)
        | dict.fromkeys(["hour", "hours", "hr", "hrs", "h"], HOUR)
        | dict.fromkeys(["day", "days"], DAY)
        | dict.fromkeys(["week", "weeks"], 7 * DAY)
    )
    singular = _set("second minute hour day week")
    fractions = MappingProxyType({"half": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4})
    relations: Mapping[tuple[str, ...], Relation] = MappingProxyType(
        _phrases(
            {
                "before": "before/prior to/earlier than",
                "until": "until/till/up to/up until",
                "by": "by",
                "after": "after/later than",
                "since": "since/starting at/starting from/beginning at",
                "from": "from",
                "around": "around/near/close to/approximately/roughly/circa/towards/toward/~",
                "about": "about",
                "at": "at/at time/@",
                "in": "in/during/within/throughout/over/for",
                "on": "on",
                "between": "between",
            }
        )
    )
    soon = _set("just shortly right immediately directly")
    hedges = _set("around about approximately roughly exactly precisely")
    articles = _set("the its this that")
    conjunction = _set("and &")
    of = _set("of")
    at = _set("at")
    joins = _set("to until till through thru")
    onwards = _set("on onward onwards forward")
    hows = _set("how")
    does = _set("does did do")
    beginnings = _set("beginning start opening outset")
    ends = _set("end ending close")
    begins = _set("begin start open")
    finishes = _set("end finish close conclude")
    stresses = _set("very")
    middle = _set("middle")
    middles = _set("halfway midway")
    latest = _set("last final closing past previous")
    into = _set("into through")
    inside = _set("in")
    ago = _set("ago")
    marks = _set("mark point")
    positions = _set("timestamp timecode")
    recordings = _set(
        "video videos recording stream livestream film movie clip footage episode talk lecture show session "
        "podcast lesson tutorial broadcast interview presentation webinar call meeting match game class "
        "audio tape feed it"
    )
    asides = _set(
        "what who whom whose when where why how which is are was were does do did can could has had he she "
        "they it we you i and but or there"
    )
    lengths = _set("of long old later earlier each per worth apart for longer shorter more less in from")
    lasting = _set(
        "take takes took taking last lasts lasted wait waits waited waiting need needs needed for every is "
        "are be lasting costs bake boil cook simmer rest sleep run ran"
    )
    meridiems = MappingProxyType({"am": 0, "pm": 12})
    halves = MappingProxyType(
        {
            ("in", "the", "morning"): 0,
            ("in", "the", "afternoon"): 12,
            ("in", "the", "evening"): 12,
            ("at", "night"): 18,
        }
    )
    sides = MappingProxyType({"past": 1, "to": -1})
    hours = _set("o'clock oclock")
    universal = _set("utc gmt")
    times = MappingProxyType({"noon": 12 * HOUR, "midday": 12 * HOUR, "midnight": 24 * HOUR})
    days = MappingProxyType({"today": 0, "tonight": 0, "yesterday": -1})
    weekdays = MappingProxyType(
        _counted("monday/mon tuesday/tue/tues wednesday thursday/thu/thurs friday/fri saturday sunday")
    )
    months = MappingProxyType(
        _counted(
            "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug "
            "september/sep/sept october/oct november/nov december/dec",
            1,
        )
    )
    parts = MappingProxyType(
        {
            "morning": (5 * HOUR, 12 * HOUR),
            "afternoon": (12 * HOUR, 18 * HOUR),
            "evening": (18 * HOUR, 24 * HOUR),
            "night": (20 * HOUR, 30 * HOUR),
            "tonight": (18 * HOUR, 30 * HOUR),
        }
    )
    these = _set("this last")
    empties = STOP_WORDS["english"] | _set(
        "happen happens happened happening go goes going went occur occurs occurred see sees seen show shows "
        "shown showed say says said tell tells told talk talks talked describe summarise summarize summary "
        "video recording stream clip something anything everything thing things please give take takes took "
        "place get gets up out all part s what's whats let us key main point points"
    )


ENGLISH: Final = Language()


TokenKind = Literal["date", "clock", "amount", "number", "dash", "word", "mark"]
MAX_READ: Final = 2_000
"""Maximum number of characters that are parsed; times after that are not recognized."""

_TOKEN: Final = re_pattern(
    r"""
    (?P<date>(?<![\w.-])[12][0-9]{3}(?:-[0-9]{2}){2}
        (?:[Tt\ ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,6})?)?(?:\ ?[Zz]|[+-][0-9]{2}:?[0-9]{2})?)?
        (?![\w:]))
    |(?P<clock>(?<![\w:./])[0-9]{1,3}:[0-5][0-9](?::[0-5][0-9])?(?:[.,][0-9]{1,6})?
        (?P<after_clock>[a-z]{2})?(?![\w:/]|\.[0-9]))
    |(?P<amount>(?<![\w.:])(?=[0-9])(?:[0-9]{1,6}h)?(?:[0-9]{1,6}m(?:in)?)?(?:[0-9]{1,6}(?:\.[0-9]{1,3})?s(?:ec)?)?(?!\w))
    |(?P<number>(?<![\w.:/])[0-9]{1,9}(?:\.[0-9]{1,6})?(?P<after_number>[a-z]{1,5})?(?![\w:/]|[.,][0-9]))
    |(?P<dash>[-\u2010-\u2015])
    |(?P<word>\w+(?:['\u2019]\w+)*)
    |(?P<mark>\S)
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Token:
    """`text` in lower case without `ending`, the letters directly after a number."""

    kind: TokenKind
    text: str
    ending: str
    start: int
    end: int


class Words:
    """The tokens of a query. Positions after the last one are empty tokens."""

    def __init__(self, question: str) -> None:
        self._tokens: Sequence[Token] = tuple(map(_token, _TOKEN.finditer(question[:MAX_READ])))

    def __len__(self) -> int:
        return len(self._tokens)

    def __getitem__(self, index: int) -> Token:
        return self._tokens[index]

    def kind(self, index: int) -> TokenKind | None:
        """Return the type of the token."""
        return self._tokens[index].kind if 0 <= index < len(self._tokens) else None

    def text(self, index: int) -> str:
        """Return the word, number or mark of the token."""
        return self._tokens[index].text if 0 <= index < len(self._tokens) else ""

    def ending(self, index: int) -> str:
        """Return the letters directly after a number."""
        return self._tokens[index].ending if 0 <= index < len(self._tokens) else ""

    def number(self, index: int) -> float | None:
        """Return the value of plain digits."""
        plain = self.kind(index) == "number" and not self.ending(index)
        return float(self.text(index)) if plain else None

    def over(self, index: int) -> bool:
        """Return whether a clause or sentence ends before the token."""
        return self.kind(index) in {None, "mark"}


def _token(found: re.Match[str]) -> Token:
    kind = next(name for name in _KINDS if found[name] is not None)
    ending = (found["after_clock"] or found["after_number"] or "").lower()
    text = found[0].lower().replace("\u2019", "'")
    return Token(kind, text.removesuffix(ending) if ending else text, ending, found.start(), found.end())


_KINDS: Final[tuple[TokenKind, ...]] = ("word", "number", "clock", "mark", "dash", "date", "amount")


_COMPACT: Final = re_pattern(r"(?:([0-9]+)h)?(?:([0-9]+)m(?:in)?)?(?:([0-9.]+)s(?:ec)?)?", re.IGNORECASE)
_FINER: Final = {7 * DAY: DAY, DAY: HOUR, HOUR: MINUTE}

_A_FEW: Final = 3


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of time. `unit` is the unit in the text; `describes` means attributive (`five minute`)."""

    seconds: float
    unit: float
    describes: bool = False


class AmountReader:
    """Reads amounts at a token position. Every method returns the value with the position after it."""

    def __init__(self, words: Words, language: Language) -> None:
        self._words = words
        self._language = language

    def number(self, index: int) -> tuple[float, int] | None:
        """Read digits or number words, with an optional `and a half`."""
        plain = self._words.number(index)
        read = self._spelt(index) if plain is None else (plain, index + 1)
        if read is None:
            return None
        half = self._half_behind(read[1])
        return read if half is None else (read[0] + 0.5, half)

    def amount(self, index: int, *, whole: bool = True) -> tuple[Amount, int] | None:
        """Read a number and a unit; with `whole`, also following smaller units."""
        read = self._one(index)
        while read is not None and whole:
            after = read[1] + (self._words.text(read[1]) in self._language.conjunction)
            more = self._one(after)
            if more is None or more[0].unit >= read[0].unit or read[0].describes:
                break
            total = Amount(read[0].seconds + more[0].seconds, more[0].unit, more[0].describes)
            read = total, more[1]
        return read

    def one(self, index: int) -> tuple[Amount, int] | None:
        """Read a unit without a number, as in `the last minute`. A plural, as in `minutes`, means a few."""
        unit = self.unit(index)
        if unit is None:
            return None
        half = self._half_behind(index + 1)
        if half is not None:
            return Amount(1.5 * unit, _FINER.get(unit, SECOND)), half
        one = self._words.text(index) in self._language.singular
        return Amount(unit if one else _A_FEW * unit, unit), index + 1

    def unit(self, index: int) -> float | None:
        """Return the seconds of a unit's name."""
        return self._language.units.get(self._words.text(index))

    def _one(self, index: int) -> tuple[Amount, int] | None:
        if self._words.kind(index) == "amount":
            return _compact(self._words.text(index)), index + 1
        return self._glued(index) or self._fraction(index) or self._plain(index)

    def _glued(self, index: int) -> tuple[Amount, int] | None:
        unit = self._language.units.get(self._words.ending(index))
        if self._words.kind(index) != "number" or unit is None:
            return None
        return Amount(float(self._words.text(index)) * unit, unit), index + 1

    def _fraction(self, index: int) -> tuple[Amount, int] | None:
        """Read `half an hour`, `a quarter of an hour`, `three quarters of an hour`."""
        count, after = self._spelt(index) or (1.0, index)
        parts = self._language.fractions.get(self._words.text(after))
        if parts is None:
            return None
        after += 1
        after += self._words.text(after) in self._language.of
        after += self._language.numbers.get(self._words.text(after)) == 1
        unit = self.unit(after)
        return None if unit is None else (Amount(count / parts * unit, _FINER.get(unit, SECOND)), after + 1)

    def _plain(self, index: int) -> tuple[Amount, int] | None:
        read = self.number(index)
        if read is None:
            return None
        number, after = read
        joined = self._words.kind(after) == "dash"
        unit = self.unit(after + joined)
        if unit is None:
            return None
        after += joined + 1
        finer = unit if number.is_integer() else _FINER.get(unit, SECOND)
        describes = joined or (number != 1 and self._words.text(after - 1) in self._language.singular)
        half = self._half_behind(after)
        if half:
            return Amount((number + 0.5) * unit, _FINER.get(unit, SECOND)), half
        return Amount(number * unit, finer, describes), after

    def _half_behind(self, index: int) -> int | None:
        """Return the position after `and a half`."""
        joined = self._words.text(index) in self._language.conjunction
        article = self._language.numbers.get(self._words.text(index + 1)) == 1
        half = self._language.fractions.get(self._words.text(index + 2)) == 2
        return index + 3 if joined and article and half else None

    def _spelt(self, index: int) -> tuple[float, int] | None:
        """Read `five`, `twenty-five`, `a hundred`, `a couple of`."""
        numbers = self._language.numbers
        value = numbers.get(self._words.text(index))
        if value is None:
            return None
        following = numbers.get(self._words.text(index + 1))
        if value == 1 and following is not None:
            return float(following), self._past_of(index + 2)
        after = index + 1 + (self._words.kind(index + 1) == "dash")
        ones = numbers.get(self._words.text(after), 0)
        if 20 <= value < 100 and 0 < ones < 10:
            return float(value + ones), after + 1
        return float(value), self._past_of(index + 1)

    def _past_of(self, index: int) -> int:
        """Return the position after the `of` of `a couple of minutes`."""
        of = self._words.text(index) in self._language.of and self.unit(index + 1) is not None
        return index + of


def _compact(text: str) -> Amount:
    found = _COMPACT.fullmatch(text)
    parts = found.groups() if found else ()
    said = [(float(part), unit) for part, unit in zip(parts, (HOUR, MINUTE, SECOND), strict=False) if part]
    return Amount(sum(number * unit for number, unit in said), said[-1][1] if said else SECOND)
