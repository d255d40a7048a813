"""The notation of grammar tables, each element with a grammar of its own."""

from collections.abc import Sequence
from typing import Any

import pytest

from conspectus.time_expressions.grammar import ENGLISH_GRAMMAR
from conspectus.time_expressions.interpreter import Grammar, Match, Parse, Rule
from conspectus.time_expressions.tokens import split_into_tokens
from conspectus.time_expressions.vocabulary import ENGLISH


def read_pattern(pattern: str, text: str, *, at: int = 0, more: Sequence[Rule] = ()) -> Match:
    """What a pattern reads of a text, from a token on."""
    guards = {"shouting": lambda context, captures: bool(context == "loud")}
    grammar = Grammar([Rule("start", pattern), *more], guards, ENGLISH)
    return Parse(grammar, split_into_tokens(text), "loud").read("start", at)


@pytest.mark.parametrize(
    ("pattern", "text", "value", "end"),
    [
        ("articles", "the end", True, 1),
        ("numbers", "twelve", 12, 1),
        ("relations", "prior to noon", "before", 2),
        ("relations(before after)", "later than noon", "after", 2),
        ("'end'", "end", True, 1),
        ("CLOCK", "12:30", "12:30", 1),
        ("DIGITS", "7", "7", 1),
        ("articles ends", "the end", True, 2),
        ("articles? ends", "end", True, 1),
        ("(joins | conjunction)", "and", True, 1),
        ("joins | numbers", "five", 5, 1),
        ("count=numbers units", "five minutes", 5, 2),
        ("numbers !units", "five apples", True, 1),
        ("NUMBER ^units", "5mins", 60.0, 1),
        ("@shouting numbers", "five", 5, 1),
        ("numbers END", "five, six", True, 1),
        ("FIRST numbers LAST", "five?", True, 1),
    ],
)
def test_an_element_reads_tokens(pattern: str, text: str, value: Any, end: int) -> None:
    assert read_pattern(pattern, text) == (value, end)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("articles", "end"),
        ("relations(before)", "after noon"),
        ("BARE_CLOCK", "12:30pm"),
        ("LONG_CLOCK", "12:30"),
        ("DIGITS", "7th"),
        ("!numbers units", "five"),
        ("numbers &units", "five apples"),
        ("NUMBER ^units", "5th"),
        ("numbers END", "five six"),
        ("numbers LAST", "five apples"),
    ],
)
def test_an_element_that_does_not_fit_reads_nothing(pattern: str, text: str) -> None:
    assert read_pattern(pattern, text) is None


def test_an_element_may_look_at_the_token_before() -> None:
    assert read_pattern("<at numbers", "at five", at=1) == (5, 2)
    assert read_pattern("<at numbers", "of five", at=1) is None
    assert read_pattern("!<DASH numbers", "- five", at=1) is None


def test_the_first_row_with_a_value_counts() -> None:
    rows = [
        Rule("count", "number=numbers", lambda context, number: number if number > 5 else None),
        Rule("count", "one", lambda context: "one"),
        Rule("count", "numbers units", lambda context: "amount"),
    ]
    assert read_pattern("count", "six", more=rows) == (6, 1)
    assert read_pattern("count", "one", more=rows) == ("one", 1)
    assert read_pattern("count", "five minutes", more=rows) == ("amount", 2)
    assert read_pattern("count", "five apples", more=rows) is None


def test_a_failed_alternative_captures_nothing() -> None:
    rows = [
        Rule("pair", "(low=numbers joins | high=numbers units)", lambda context, **captures: captures),
    ]
    assert read_pattern("pair", "five minutes", more=rows) == ({"high": 5}, 2)


@pytest.mark.parametrize("pattern", ["(articles", "articles ]", "+articles"])
def test_a_pattern_that_cannot_be_read_is_an_error(pattern: str) -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        read_pattern(pattern, "the")


def test_every_row_of_the_grammar_can_be_compiled() -> None:
    names = ENGLISH_GRAMMAR.names
    assert "phrase" in names
    for name in names:
        assert ENGLISH_GRAMMAR.rule(name).rows
