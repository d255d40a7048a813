"""The words of time expressions as tables. `other_languages` has the calendar words of other languages."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from conspectus.text.analyzer import STOP_WORDS

Relation = Literal[
    "before", "until", "by", "after", "since", "from", "around", "about", "at", "in", "on", "between"
]
CalendarUnit = Literal["week", "weekend", "month", "year"]
MINUTE: Final = 60.0
HOUR: Final = 3_600.0
DAY: Final = 86_400.0
SECOND: Final = 1.0


def words_of(words: str) -> frozenset[str]:
    """Return words as a set."""
    return frozenset(words.split())


def number_words(words: str, first: int = 0, step: int = 1) -> dict[str, int]:
    """Map words to consecutive numbers. Words joined by `/` have the same number."""
    return {
        word: first + position * step
        for position, synonyms in enumerate(words.split())
        for word in synonyms.split("/")
    }


def phrases_of(meanings: Mapping[Relation, str]) -> dict[tuple[str, ...], Relation]:
    """Map the words of phrases, which are joined by `/`, to their meaning."""
    return {
        tuple(phrase.split()): meaning
        for meaning, phrases in meanings.items()
        for phrase in phrases.split("/")
    }


class Language:
    """The vocabulary of English in lower case. A subclass has other tables.

    Each table is a word class of the grammar: a set of words, or a mapping of words, or of tuples of words,
    to what they mean. `one` are the words that count one, `abbreviations` are units of one letter,
    `singular` are units that describe a thing after a number other than one ("a five minute timer").
    `asides` may follow a phrase that could otherwise continue ("five minutes in, what …"). `lengths` after
    an amount, and `lasting` before one, make it a duration instead of a position. `recordings` are names of
    a stream, which `begins` and `finishes`. `halves` are the hours of the day after which a time is,
    `sides` the sides of an hour ("quarter to nine"). Weekday names are numbered from Monday, 0. `parts` of
    a day are in seconds from its midnight. `unread_periods` are periods of which a query is told when the
    grammar reads no time from them; `before_amounts` are phrases before such an amount, as `ago` is behind
    one. `empties` are words of a query without content to search for.
    """

    numbers = MappingProxyType(
        number_words(
            "zero one/a/an two/couple three/few four five six seven eight nine ten eleven twelve/dozen "
            "thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
        )
        | number_words("twenty thirty forty fifty sixty seventy eighty ninety hundred", 20, 10)
    )
    one = words_of("one a an")
    ordinals = MappingProxyType(
        number_words(
            "first/opening/initial second third fourth fifth sixth seventh eighth ninth tenth eleventh "
            "twelfth",
            1,
        )
    )
    ordinal_endings = words_of("st nd rd th")
    minutes = words_of("minute minutes min mins")
    units = MappingProxyType(
        dict.fromkeys(["second", "seconds", "sec", "secs", "s"], SECOND)
        | dict.fromkeys(minutes, MINUTE)
        | dict.fromkeys(["hour", "hours", "hr", "hrs", "h"], HOUR)
        | dict.fromkeys(["day", "days"], DAY)
        | dict.fromkeys(["week", "weeks"], 7 * DAY)
    )
    abbreviations = words_of("s h")
    singular = words_of("second minute hour day week")
    fractions = MappingProxyType({"half": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4})
    half = words_of("half")
    thirds = words_of("third thirds")
    relations: Mapping[tuple[str, ...], Relation] = MappingProxyType(
        phrases_of(
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
    prepositions = MappingProxyType(
        {words[0]: meaning for words, meaning in relations.items() if len(words) == 1}
    )
    """Relations of one word."""
    relation_openers = frozenset(words[0] for words in relations)
    soon = words_of("just shortly right immediately directly")
    hedges = words_of("around about approximately roughly exactly precisely")
    articles = words_of("the its this that")
    conjunction = words_of("and &")
    of = words_of("of")
    at = words_of("at")
    joins = words_of("to until till through thru")
    onwards = words_of("on onward onwards forward")
    hows = words_of("how")
    does = words_of("does did do")
    beginnings = words_of("beginning start opening outset")
    ends = words_of("end ending close")
    begins = words_of("begin start open")
    finishes = words_of("end finish close conclude")
    stresses = words_of("very")
    middle = words_of("middle")
    middles = words_of("halfway midway")
    latest = words_of("last final closing past previous")
    into = words_of("into through")
    inside = words_of("in")
    ago = words_of("ago")
    marks = words_of("mark point")
    positions = words_of("timestamp timecode")
    recordings = words_of(
        "video videos recording stream livestream film movie clip footage episode talk lecture show session "
        "podcast lesson tutorial broadcast interview presentation webinar call meeting match game class "
        "audio tape feed it"
    )
    asides = words_of(
        "what who whom whose when where why how which is are was were does do did can could has had he she "
        "they it we you i and but or there"
    )
    lengths = words_of("of long old later earlier each per worth apart for longer shorter more less in from")
    lasting = words_of(
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
    dotted_meridiems = MappingProxyType({("a", ".", "m"): 0, ("p", ".", "m"): 12})
    sides = MappingProxyType({"past": 1, "to": -1})
    hours = words_of("o'clock oclock")
    universal = words_of("utc gmt")
    times = MappingProxyType({"noon": 12 * HOUR, "midday": 12 * HOUR, "midnight": 24 * HOUR})
    days = MappingProxyType({"today": 0, "tonight": 0, "yesterday": -1})
    weekdays = MappingProxyType(
        number_words("monday/mon tuesday/tue/tues wednesday thursday/thu/thurs friday/fri saturday sunday")
    )
    months = MappingProxyType(
        number_words(
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
    these = words_of("this last")
    period_offsets = MappingProxyType({"this": 0, "last": -1, "previous": -1, "next": 1})
    calendar_units: Mapping[str, CalendarUnit] = MappingProxyType(
        {
            "week": "week",
            "weekend": "weekend",
            "month": "month",
            "months": "month",
            "year": "year",
            "years": "year",
        }
    )
    unread_periods = words_of(
        "week weekend month year quarter fortnight decade century season semester spring summer autumn fall "
        "winter christmas easter"
    )
    before_amounts: tuple[tuple[str, ...], ...] = ()
    evidence = frozenset[str]()
    """Words that tell that a query is in this language, which another than English needs."""
    empties = STOP_WORDS["english"] | words_of(
        "happen happens happened happening go goes going went occur occurs occurred see sees seen show shows "
        "shown showed say says said tell tells told talk talks talked describe summarise summarize summary "
        "video recording stream clip something anything everything thing things please give take takes took "
        "place get gets up out all part s what's whats let us key main point points"
    )
    openers = relation_openers.union(
        soon,
        articles,
        these,
        latest,
        period_offsets,
        ordinals,
        numbers,
        fractions,
        middles,
        hows,
        positions,
        days,
        times,
        weekdays,
        months,
        units,
    )
    """Words that may begin a time expression."""


ENGLISH: Final = Language()
