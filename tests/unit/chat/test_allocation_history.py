"""Which turns of a conversation go into the prompt."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.chat.allocation import trimmed
from conspectus.model.results import Message
from conspectus.providers.tokenizers import counter
from conspectus.text.tokens import TOKENS_PER_MESSAGE

TURNS = st.builds(Message, st.sampled_from(["user", "assistant"]), st.text(max_size=40))


def by_words(text: str) -> int:
    return len(text.split())


def turns(*contents: str) -> tuple[Message, ...]:
    roles = ("user", "assistant")
    return tuple(Message(roles[place % 2], content) for place, content in enumerate(contents))


def cost(messages: Sequence[Message]) -> int:
    return sum(TOKENS_PER_MESSAGE + by_words(each.role) + by_words(each.content) for each in messages)


def test_all_turns_where_they_fit_and_none_for_nothing() -> None:
    talk = turns("one two", "three", "four five six", "seven")
    assert trimmed(talk, by_words, cost(talk)) == talk
    assert trimmed(talk, by_words, 0) == trimmed(talk, by_words, -5) == ()
    assert trimmed((), by_words, 100) == ()


def test_the_newest_turns_from_one_of_the_users_on() -> None:
    talk = turns("one two", "three", "four five six", "seven")
    assert trimmed(talk, by_words, cost(talk) - 1) == talk[2:]
    assert trimmed(talk, by_words, cost(talk[2:])) == talk[2:]
    assert trimmed(talk, by_words, cost(talk[2:]) - 1) == ()


def test_no_turn_is_left_out_between_two() -> None:
    talk = turns("one", "two", "word " * 500, "four", "five", "six")
    assert trimmed(talk, by_words, 400) == talk[4:]


def test_an_answer_is_not_the_first() -> None:
    assert trimmed(turns("", "said")[1:], by_words, 100) == ()
    assert trimmed((*turns("", "said")[1:], *turns("asked")), by_words, 100) == turns("asked")


def test_no_more_is_counted_than_is_needed() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return by_words(text)

    talk = turns(*(f"{place} " + "word " * 2_000 for place in range(200)))
    assert trimmed(talk, count, 5_000) == talk[198:]
    assert len(counted) <= 6


@pytest.mark.parametrize("maximum", [100, 2_000, 100_000])
def test_long_histories_by_a_real_tokenizer(maximum: int) -> None:
    talk = turns(*("The quick brown fox jumps. " * 370 for _ in range(200)))
    count = counter("o200k_base")
    kept = trimmed(talk, count, maximum)
    assert kept == talk[len(talk) - len(kept) :]
    spent = sum(TOKENS_PER_MESSAGE + count(each.role) + count(each.content) for each in kept)
    assert spent <= maximum


@given(st.lists(TURNS, max_size=12), st.integers(-10, 200))
def test_what_is_kept_is_an_end_that_fits(talk: list[Message], maximum: int) -> None:
    kept = trimmed(talk, by_words, maximum)
    assert list(kept) == talk[len(talk) - len(kept) :]
    assert cost(kept) <= max(0, maximum)
    assert not kept or kept[0].role == "user"
    earlier = [place for place in range(len(talk) - len(kept)) if talk[place].role == "user"]
    assert not earlier or cost(talk[earlier[-1] :]) > maximum
