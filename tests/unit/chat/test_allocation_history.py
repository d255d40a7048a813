"""Which turns of a conversation go into the prompt."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.chat.allocation import trim_history
from conspectus.model.results import Message
from conspectus.providers.tokenizers import counter
from conspectus.text.tokens import TOKENS_PER_MESSAGE

TURNS = st.builds(Message, st.sampled_from(["user", "assistant"]), st.text(max_size=40))


def count_words(text: str) -> int:
    return len(text.split())


def build_turns(*contents: str) -> tuple[Message, ...]:
    roles = ("user", "assistant")
    return tuple(Message(roles[number % 2], content) for number, content in enumerate(contents))


def count_tokens(messages: Sequence[Message]) -> int:
    return sum(
        TOKENS_PER_MESSAGE + count_words(message.role) + count_words(message.content) for message in messages
    )


def test_all_turns_where_they_fit_and_none_for_nothing() -> None:
    talk = build_turns("one two", "three", "four five six", "seven")
    assert trim_history(talk, count_words, count_tokens(talk)) == talk
    assert trim_history(talk, count_words, 0) == trim_history(talk, count_words, -5) == ()
    assert trim_history((), count_words, 100) == ()


def test_the_newest_turns_from_one_of_the_users_on() -> None:
    talk = build_turns("one two", "three", "four five six", "seven")
    assert trim_history(talk, count_words, count_tokens(talk) - 1) == talk[2:]
    assert trim_history(talk, count_words, count_tokens(talk[2:])) == talk[2:]
    assert trim_history(talk, count_words, count_tokens(talk[2:]) - 1) == ()


def test_no_turn_is_left_out_between_two() -> None:
    talk = build_turns("one", "two", "word " * 500, "four", "five", "six")
    assert trim_history(talk, count_words, 400) == talk[4:]


def test_an_answer_is_not_the_first() -> None:
    assert trim_history(build_turns("", "said")[1:], count_words, 100) == ()
    assert trim_history(
        (*build_turns("", "said")[1:], *build_turns("asked")), count_words, 100
    ) == build_turns("asked")


def test_no_more_is_counted_than_is_needed() -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return count_words(text)

    talk = build_turns(*(f"{number} " + "word " * 2_000 for number in range(200)))
    assert trim_history(talk, count, 5_000) == talk[198:]
    assert len(counted) <= 6


@pytest.mark.parametrize("maximum", [100, 2_000, 100_000])
def test_long_histories_by_a_real_tokenizer(maximum: int) -> None:
    talk = build_turns(*("The quick brown fox jumps. " * 370 for _ in range(200)))
    count = counter("o200k_base")
    recent = trim_history(talk, count, maximum)
    assert recent == talk[len(talk) - len(recent) :]
    spent = sum(TOKENS_PER_MESSAGE + count(message.role) + count(message.content) for message in recent)
    assert spent <= maximum


@given(st.lists(TURNS, max_size=12), st.integers(-10, 200))
def test_what_is_kept_is_an_end_that_fits(talk: list[Message], maximum: int) -> None:
    recent = trim_history(talk, count_words, maximum)
    assert list(recent) == talk[len(talk) - len(recent) :]
    assert count_tokens(recent) <= max(0, maximum)
    assert not recent or recent[0].role == "user"
    earlier = [position for position in range(len(talk) - len(recent)) if talk[position].role == "user"]
    assert not earlier or count_tokens(talk[earlier[-1] :]) > maximum
