"""The grammar of time expressions as a table. Its notation is that of the interpreter."""

from collections.abc import Sequence
from typing import Final

from conspectus.time_expressions import amounts, parts, periods, ranges, times_of_day
from conspectus.time_expressions.interpreter import Grammar, Guard, Rule
from conspectus.time_expressions.other_languages import OTHER_LANGUAGES
from conspectus.time_expressions.vocabulary import ENGLISH

START: Final = "phrase"
GUARDS: Final[dict[str, Guard]] = {
    "wall": lambda timeline, captures: timeline.face.wall,
    "recording": lambda timeline, captures: not timeline.face.wall,
    "suits": ranges.suits_preposition,
}

_AMOUNTS: Final = (
    Rule("half_after", "conjunction one half"),
    Rule("past_of", "of &units"),
    Rule("spelt", "one number=numbers past_of?", amounts.count_number),
    Rule("spelt", "tens=numbers DASH? ones=numbers", amounts.add_ones),
    Rule("spelt", "number=numbers past_of?", amounts.count_number),
    Rule("count", "count=(DIGITS | spelt) half=half_after?", amounts.count_with_half),
    Rule("simple_amount", "text=COMPACT", amounts.read_compact_amount),
    Rule("simple_amount", "count=NUMBER unit=^units", amounts.measure_in_units),
    Rule("simple_amount", "count=spelt? parts=fractions of? one? unit=units", amounts.take_fraction),
    Rule(
        "simple_amount",
        "count=count dash=DASH? singular=&singular? unit=units half=half_after?",
        amounts.measure,
    ),
    Rule("amount", "first=simple_amount conjunction? rest=amount", amounts.add_smaller_amount),
    Rule("amount", "simple_amount"),
    Rule("lone_unit", "unit=units half_after", amounts.measure_one_and_half),
    Rule("lone_unit", "&singular unit=units", amounts.measure_one),
    Rule("lone_unit", "unit=units", amounts.measure_few),
    Rule("length", "amount=amount", amounts.require_length),
    Rule("simple_length", "amount=simple_amount", amounts.require_length),
    Rule("distance", "articles amount=lone_unit", amounts.require_plausible),
    Rule("distance", "articles? amount=amount", amounts.require_plausible),
    Rule("unit_name", "!<NUMBER !<COMPACT !<numbers !abbreviations unit=units", amounts.require_clock_unit),
)

_TIMES_OF_DAY: Final = (
    Rule("clock", "positions? clock_time"),
    Rule("clock_time", "text=DATE", times_of_day.read_instant),
    Rule("clock_time", "@recording text=BARE_CLOCK", times_of_day.read_position),
    Rule("clock_time", "@wall seconds=times", times_of_day.read_named_time),
    Rule("clock_time", "@wall text=CLOCK half=half_day", times_of_day.read_clock_in_half),
    Rule("clock_time", "@wall text=BARE_CLOCK !half_day universal", times_of_day.read_universal_clock),
    Rule("clock_time", "@wall text=BARE_CLOCK !half_day", times_of_day.read_wall_clock),
    Rule(
        "clock_time",
        "@wall one? parts=fractions side=sides hour=count half=half_day?",
        times_of_day.read_fraction_beside_hour,
    ),
    Rule("clock_time", "@wall hour=NUMBER half=half_day", times_of_day.read_hour_in_half),
    Rule("clock_time", "@wall hour=DIGITS hours", times_of_day.read_full_hour),
    Rule("half_day", "^meridiems | meridiems | halves | half=dotted_meridiems '.'?"),
    Rule("numbered", "unit=unit_name count=DIGITS", times_of_day.count_position),
    Rule("numbered", "unit=unit_name time=clock", times_of_day.read_clock_of_minute),
)

_DAYS: Final = (
    Rule("part_day", "&latest these !days part=parts", times_of_day.take_part_of_yesterday),
    Rule("part_day", "these !days part=parts", times_of_day.take_part_of_today),
    Rule(
        "part_day",
        "articles !days part=parts of day=(near_day | weekday | month_day)",
        times_of_day.take_part_of_day,
    ),
    Rule("part_day", "articles !days part=parts !of", times_of_day.take_part_of_last_day),
    Rule("near_day", "part=&parts? offset=days", times_of_day.read_near_day),
    Rule("weekday", "these=these? number=weekdays", times_of_day.read_weekday),
    Rule("written_day", "text=DATE", times_of_day.read_written_day),
    Rule("month_day", "articles? month=months number=day_number year=year?", times_of_day.read_day_of_month),
    Rule(
        "month_day", "articles? number=day_number of? month=months year=year?", times_of_day.read_day_of_month
    ),
    Rule("day_number", "text=NUMBER ^ordinal_endings", times_of_day.read_day_number),
    Rule("day_number", "text=DIGITS", times_of_day.read_day_number),
    Rule("year", "','? text=DIGITS", times_of_day.read_year),
    Rule("named_day", "@wall (part_day | near_day | weekday | written_day | month_day)"),
    Rule("calendar_day", "day=named_day part=parts", times_of_day.take_following_part),
    Rule("calendar_day", "named_day"),
    Rule("day_comma", "',' | 't' | at"),
    Rule("day", "day=calendar_day day_comma? time=clock", times_of_day.place_on_day),
    Rule("day", "day=calendar_day day_comma? hour=DIGITS", times_of_day.place_hour_in_part),
    Rule("day", "day=calendar_day", times_of_day.span_day),
    Rule("day", "@wall period"),
    Rule("clock_with_day", "time=clock prepositions(on)? day=day", times_of_day.place_clock_on_day),
    Rule("clock_with_day", "clock"),
)

_PERIODS: Final = (
    Rule("period", "offset=period_offsets unit=calendar_units", periods.take_unit),
    Rule("period", "articles calendar_units(weekend)", periods.take_last_weekend),
    Rule("period", "!<NUMBER offset=period_offsets? month=months !day_number year=year?", periods.take_month),
    Rule("period", "!<NUMBER !<months year=year_number &year_end", periods.take_year),
    Rule("period", "articles? latest count=count unit=calendar_units(month year)", periods.take_last_units),
    Rule("period", "count=count unit=calendar_units(month year) ago", periods.count_units_back),
    Rule("year_number", "text=DIGITS", times_of_day.read_year),
    Rule("year_end", "edge_end | joins | DASH | ',' | '?' | '.' | '!' | ')'"),
)

_PARTS: Final = (
    Rule("aside", "END | asides"),
    Rule("recording", "(of | inside | into) articles? recordings"),
    Rule("into_recording", "(inside | into) articles? recordings"),
    Rule("of_another", "!recording of"),
    Rule("phrase_end", "aside | recording"),
    Rule("object_end", "aside | articles"),
    Rule("edge_end", "object_end | relation_openers | of | conjunction"),
    Rule("goes_in", "inside &aside"),
    Rule("goes_in", "into_recording"),
    Rule("duration", "!recording lengths"),
    Rule("counted_thing", "<ordinals !object_end"),
    Rule("ordinal", "latest", parts.count_last),
    Rule("ordinal", "middle &thirds", parts.count_second),
    Rule("ordinal", "text=NUMBER ^ordinal_endings", parts.read_ordinal),
    Rule("ordinal", "ordinals"),
    Rule("part", "articles order=ordinal !amount parts=fractions bare=&phrase_end?", parts.take_share),
    Rule("part", "articles order=ordinal length=lone_unit &phrase_end", parts.take_bare_stretch),
    Rule("part", "!calendar_period order=ordinal length=lone_unit &phrase_end", parts.take_stretch),
    Rule("calendar_period", "@wall period"),
    Rule("part", "articles? order=ordinal !lone_unit length=amount", parts.take_bare_stretch),
    Rule("part", "middles into &aside", parts.take_middle),
    Rule("part", "middles &phrase_end", parts.take_middle),
    Rule("part", "articles stresses? middle &recording", parts.take_middle),
    Rule("part", "articles stresses? beginnings &edge_end", parts.take_beginning),
    Rule("part", "articles stresses? ends &edge_end", parts.take_ending),
    Rule("start_or_end", "hows does articles? recordings begins &END", parts.take_beginning),
    Rule("start_or_end", "hows does articles? recordings finishes &END", parts.take_ending),
    Rule("place", "articles? length=amount marks", parts.place_amount),
    Rule("place", "articles? length=length ago", parts.count_back),
    Rule("place", "articles? length=length goes_in", parts.place_amount),
    Rule("plain_amount", "length=length !duration !counted_thing", parts.place_plain_amount),
    Rule("edge", "articles? beginnings", parts.take_first_instant),
    Rule("edge", "articles? ends", parts.take_last_instant),
)


def _pairs(name: str, join: str) -> Sequence[Rule]:
    """Return the rows of two points that are joined by `to` or the like."""
    return (
        Rule(name, f"unit=unit_name low=count {join} high=count", ranges.pair_named_positions),
        Rule(
            name, f"low=count {join} high=count unit=units position=goes_in?", ranges.pair_counted_positions
        ),
        Rule(name, f"hour=DIGITS {join} last=clock", ranges.pair_hours),
        Rule(name, f"first=side {join} last=side", ranges.pair_points),
        Rule(name, f"first=simple_side {join} last=side", ranges.pair_points),
    )


_PAIRS: Final = (
    Rule("point_side", "edge | part | day | clock_with_day | numbered | place"),
    Rule("length_side", "length=length", parts.place_plain_amount),
    Rule("simple_length_side", "length=simple_length", parts.place_plain_amount),
    Rule("side", "point_side | length_side"),
    Rule("simple_side", "point_side | simple_length_side"),
    *_pairs("pair", "(DASH | joins)"),
    *_pairs("pair_with_and", "(DASH | joins | conjunction)"),
)

_OPENING: Final = "soon=soon? relation=relations({}) hedge=&prepositions? hedged=hedges?"
_TARGET: Final = (
    "(point=part !of_another @suits | point=place @suits | point=day @suits"
    " | point=marked @suits | point=clock @suits | point=numbered @suits"
    " | point=plain_amount !of_another @suits)"
)

_PHRASES: Final = (
    Rule("marked", "articles? point=clock marks"),
    Rule("goes_onwards", "onwards !day"),
    Rule("anchor", "edge | day | clock | numbered"),
    Rule(
        "range",
        "lasting=<lasting? soon? relation=relations(between on) pair=pair_with_and goes_on=&duration?",
        ranges.span_pair,
    ),
    Rule(
        "range",
        "lasting=<lasting? soon? relation=relations(from in at around about) pair=pair goes_on=&duration?",
        ranges.span_pair,
    ),
    Rule("range", "!soon !relations pair=pair goes_on=&duration?", ranges.span_pair),
    Rule("compound", "soon? relations(in) length=distance of anchor=anchor", ranges.span_around),
    Rule(
        "compound",
        "soon? relation=relations(in at around about) article=&articles? length=distance"
        " side=prepositions(before after from) anchor=anchor",
        ranges.span_beside,
    ),
    Rule(
        "compound",
        "!soon !relations article=&articles? length=distance"
        " side=prepositions(before after from) anchor=anchor",
        ranges.span_beside,
    ),
    Rule("related", f"{_OPENING.format('until by')} !edge {_TARGET}", ranges.span_related),
    Rule(
        "related",
        f"{_OPENING.format('from since after')} {_TARGET} onwards=goes_onwards?",
        ranges.span_related,
    ),
    Rule("related", f"{_OPENING.format('before around about at in on')} {_TARGET}", ranges.span_related),
    Rule("lone_point", "!<at point=part !of_another", ranges.require_bare),
    Rule("lone_point", "start_or_end"),
    Rule("lone_point", "place"),
    Rule("lone_point", "marked"),
    Rule("lone_point", "!<articles !<prepositions(about) point=day", ranges.require_bare),
    Rule("lone_point", "&minutes numbered"),
    Rule("lone_point", "positions clock_time"),
    Rule("lone_point", "&LONG_CLOCK clock"),
    Rule("lone_point", "point=clock", ranges.require_dated),
    Rule("lone_point", "FIRST point=clock LAST"),
    Rule("alone", "!soon !relations point=lone_point", ranges.span_point),
    Rule("any_range", "range | compound | related | alone"),
    Rule(START, "range_=any_range (<CLOCK units)? recording?", ranges.require_bounds),
)

_RULES: Final = (*_AMOUNTS, *_TIMES_OF_DAY, *_DAYS, *_PERIODS, *_PARTS, *_PAIRS, *_PHRASES)
_OTHER_ORDER: Final = (
    Rule("period", "articles? unit=calendar_units offset=period_offsets", periods.take_unit),
    Rule("period", "calendar_units(weekend)", periods.take_last_weekend),
    Rule("period", "ago count=count unit=calendar_units(month year)", periods.count_units_back),
    Rule("place", "ago length=length", parts.count_back),
    Rule("year", "of text=DIGITS", times_of_day.read_year),
)
"""Rows for words in the order of other languages: "la semaine dernière", "vor zwei Tagen", "mayo de 2025"."""

ENGLISH_GRAMMAR: Final = Grammar(_RULES, GUARDS, ENGLISH)
OTHER_GRAMMARS: Final = tuple(
    Grammar((*_OTHER_ORDER, *_RULES), GUARDS, language) for language in OTHER_LANGUAGES
)
