"""The words in which people speak of time, as data: another language is another table."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from conspectus.text.stopwords import STOP_WORDS

Relation = Literal[
    "before", "until", "by", "after", "since", "from", "around", "about", "at", "in", "on", "between"
]
MINUTE: Final = 60.0
HOUR: Final = 3_600.0
DAY: Final = 86_400.0
SECOND: Final = 1.0


@dataclass(frozen=True, slots=True)
class Language:
    """What words mean; all are lower case.

    `singular` are units that, after a number other than one, describe a thing ("a five minute timer").
    `asides` may follow a phrase that could otherwise go on ("five minutes in, what …"); `lengths` after an
    amount, and `lasting` before one, say that it is a length and no position. `recordings` are names of what
    a stream can be, which `begins` and `finishes`. `halves` say after which hour of the day a time is,
    `sides` on which of an hour ("quarter to nine"). `empties` are words of a question that say nothing to
    search for.
    """

    numbers: Mapping[str, int]
    ordinals: Mapping[str, int]
    ordinal_endings: frozenset[str]
    units: Mapping[str, float]
    singular: frozenset[str]
    fractions: Mapping[str, int]
    relations: Mapping[tuple[str, ...], Relation]
    soon: frozenset[str]
    hedges: frozenset[str]
    articles: frozenset[str]
    conjunction: frozenset[str]
    of: frozenset[str]
    at: frozenset[str]
    joins: frozenset[str]
    onwards: frozenset[str]
    hows: frozenset[str]
    does: frozenset[str]
    beginnings: frozenset[str]
    ends: frozenset[str]
    begins: frozenset[str]
    finishes: frozenset[str]
    stresses: frozenset[str]
    middle: frozenset[str]
    middles: frozenset[str]
    latest: frozenset[str]
    into: frozenset[str]
    inside: frozenset[str]
    ago: frozenset[str]
    marks: frozenset[str]
    positions: frozenset[str]
    recordings: frozenset[str]
    asides: frozenset[str]
    lengths: frozenset[str]
    lasting: frozenset[str]
    meridiems: Mapping[str, int]
    halves: Mapping[tuple[str, ...], int]
    sides: Mapping[str, int]
    hours: frozenset[str]
    universal: frozenset[str]
    times: Mapping[str, float]
    days: Mapping[str, int]
    weekdays: Mapping[str, int]
    months: Mapping[str, int]
    parts: Mapping[str, tuple[float, float]]
    these: frozenset[str]
    empties: frozenset[str]


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _counted(words: str, first: int = 0, step: int = 1) -> dict[str, int]:
    """Words that stand for one number after the other; those joined by `/` for the same."""
    return {
        word: first + place * step for place, same in enumerate(words.split()) for word in same.split("/")
    }


_ENGLISH_NUMBERS: Mapping[str, int] = MappingProxyType(
    _counted(
        "zero one/a/an two/couple three/few four five six seven eight nine ten eleven twelve/dozen thirteen "
        "fourteen fifteen sixteen seventeen eighteen nineteen"
    )
    | _counted("twenty thirty forty fifty sixty seventy eighty ninety hundred", 20, 10)
)
_ENGLISH_RELATIONS: Mapping[tuple[str, ...], Relation] = MappingProxyType(
    {
        ("before",): "before",
        ("prior", "to"): "before",
        ("earlier", "than"): "before",
        ("until",): "until",
        ("till",): "until",
        ("up", "to"): "until",
        ("up", "until"): "until",
        ("by",): "by",
        ("after",): "after",
        ("later", "than"): "after",
        ("since",): "since",
        ("starting", "at"): "since",
        ("starting", "from"): "since",
        ("beginning", "at"): "since",
        ("from",): "from",
        ("around",): "around",
        ("near",): "around",
        ("close", "to"): "around",
        ("approximately",): "around",
        ("roughly",): "around",
        ("circa",): "around",
        ("towards",): "around",
        ("toward",): "around",
        ("~",): "around",
        ("about",): "about",
        ("at",): "at",
        ("at", "time"): "at",
        ("@",): "at",
        ("in",): "in",
        ("during",): "in",
        ("within",): "in",
        ("throughout",): "in",
        ("over",): "in",
        ("for",): "in",
        ("on",): "on",
        ("between",): "between",
    }
)

ENGLISH: Final = Language(
    numbers=_ENGLISH_NUMBERS,
    ordinals=MappingProxyType(
        _counted(
            "first/opening/initial second third fourth fifth sixth seventh eighth ninth tenth eleventh "
            "twelfth",
            1,
        )
    ),
    ordinal_endings=_set("st nd rd th"),
    units=MappingProxyType(
        dict.fromkeys(["second", "seconds", "sec", "secs", "s"], SECOND)
        | dict.fromkeys(["minute", "minutes", "min", "mins"], MINUTE)
        | dict.fromkeys(["hour", "hours", "hr", "hrs", "h"], HOUR)
        | dict.fromkeys(["day", "days"], DAY)
        | dict.fromkeys(["week", "weeks"], 7 * DAY)
    ),
    singular=_set("second minute hour day week"),
    fractions=MappingProxyType({"half": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4}),
    relations=_ENGLISH_RELATIONS,
    soon=_set("just shortly right immediately directly"),
    hedges=_set("around about approximately roughly exactly precisely"),
    articles=_set("the its this that"),
    conjunction=_set("and &"),
    of=_set("of"),
    at=_set("at"),
    joins=_set("to until till through thru"),
    onwards=_set("on onward onwards forward"),
    hows=_set("how"),
    does=_set("does did do"),
    beginnings=_set("beginning start opening outset"),
    ends=_set("end ending close"),
    begins=_set("begin start open"),
    finishes=_set("end finish close conclude"),
    stresses=_set("very"),
    middle=_set("middle"),
    middles=_set("halfway midway"),
    latest=_set("last final closing past previous"),
    into=_set("into through"),
    inside=_set("in"),
    ago=_set("ago"),
    marks=_set("mark point"),
    positions=_set("timestamp timecode"),
    recordings=_set(
        "video videos recording stream livestream film movie clip footage episode talk lecture show session "
        "podcast lesson tutorial broadcast interview presentation webinar call meeting match game class "
        "audio tape feed it"
    ),
    asides=_set(
        "what who whom whose when where why how which is are was were does do did can could has had he she "
        "they it we you i and but or there"
    ),
    lengths=_set("of long old later earlier each per worth apart for longer shorter more less in from"),
    lasting=_set(
        "take takes took taking last lasts lasted wait waits waited waiting need needs needed for every is "
        "are be lasting costs bake boil cook simmer rest sleep run ran"
    ),
    meridiems=MappingProxyType({"am": 0, "pm": 12}),
    halves=MappingProxyType(
        {
            ("in", "the", "morning"): 0,
            ("in", "the", "afternoon"): 12,
            ("in", "the", "evening"): 12,
            ("at", "night"): 18,
        }
    ),
    sides=MappingProxyType({"past": 1, "to": -1}),
    hours=_set("o'clock oclock"),
    universal=_set("utc gmt"),
    times=MappingProxyType({"noon": 12 * HOUR, "midday": 12 * HOUR, "midnight": 24 * HOUR}),
    days=MappingProxyType({"today": 0, "tonight": 0, "yesterday": -1}),
    weekdays=MappingProxyType(
        _counted("monday/mon tuesday/tue/tues wednesday thursday/thu/thurs friday/fri saturday sunday")
    ),
    months=MappingProxyType(
        _counted(
            "january/jan february/feb march/mar april/apr may june/jun july/jul august/aug "
            "september/sep/sept october/oct november/nov december/dec",
            1,
        )
    ),
    parts=MappingProxyType(
        {
            "morning": (5 * HOUR, 12 * HOUR),
            "afternoon": (12 * HOUR, 18 * HOUR),
            "evening": (18 * HOUR, 24 * HOUR),
            "night": (20 * HOUR, 30 * HOUR),
            "tonight": (18 * HOUR, 30 * HOUR),
        }
    ),
    these=_set("this last"),
    empties=STOP_WORDS["english"]
    | _set(
        "happen happens happened happening go goes going went occur occurs occurred see sees seen show shows "
        "shown showed say says said tell tells told talk talks talked describe summarise summarize summary "
        "video recording stream clip something anything everything thing things please give take takes took "
        "place get gets up out all part s what's whats let us key main point points"
    ),
)
"""Weekday names count from Monday, 0, on; `parts` of a day are seconds from its midnight."""
