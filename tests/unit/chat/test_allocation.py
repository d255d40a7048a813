"""Shares of a window: what the question takes, what a small window takes, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.chat.allocation import TokenAllowance, count_tokens_left
from conspectus.chat.request import draft_chat
from conspectus.errors import InvalidInput, TooLarge
from conspectus.model.chat import Allocation, ChatRequest
from conspectus.model.results import Message
from conspectus.providers.tokenizers import counter
from conspectus.settings import Settings
from conspectus.text.clean import clean
from conspectus.text.prompt_escaping import escape_delimiters
from conspectus.text.tokens import TOKENS_PER_MESSAGE

DEFAULT = Allocation()
COUNTERS = {name: counter(name) for name in ("o200k_base", "chars4_ceil", "chars4_floor", "bytes4_min1")}
TOKENS = st.one_of(st.just(0), st.integers(0, 40), st.integers(0, 3_000))
WORDS = st.text(max_size=60).map(clean)
TURNS = st.lists(
    st.tuples(st.sampled_from(["user", "assistant"]), WORDS, st.integers(1, 40)).map(
        lambda turn: Message(turn[0], turn[1] * turn[2])
    ),
    max_size=6,
).map(tuple)


def test_in_a_large_window_everything_has_its_share() -> None:
    assert count_tokens_left(DEFAULT, window=8_192, system=300, question=150) == TokenAllowance(2_000, 1_500)


@pytest.mark.parametrize(
    ("question", "left"),
    [(200, (2_000, 1_500)), (300, (1_900, 1_500)), (2_200, (0, 1_500)), (3_000, (0, 700)), (3_700, (0, 0))],
)
def test_a_long_question_takes_from_the_history_then_from_the_context(
    question: int, left: tuple[int, int]
) -> None:
    assert count_tokens_left(DEFAULT, window=8_192, system=0, question=question) == TokenAllowance(*left)


@pytest.mark.parametrize(("window", "left"), [(4_000, (1_500, 1_500)), (2_000, (0, 1_000)), (1_000, (0, 0))])
def test_a_small_window_shrinks_the_history_then_the_context_and_says_so(
    window: int, left: tuple[int, int]
) -> None:
    allowance = count_tokens_left(DEFAULT, window=window, system=100, question=100)
    assert (allowance.history, allowance.context) == left
    assert allowance.notice
    assert str(left[1]) in allowance.notice


def test_what_cannot_fit_is_refused_with_figures() -> None:
    with pytest.raises(TooLarge) as caught:
        count_tokens_left(DEFAULT, window=1_000, system=100, question=101)
    assert (caught.value.field, caught.value.size, caught.value.limit) == ("message", 101, 100)
    assert "instructions (100 tokens) and the answer (800) take the rest of 1000; shorten it" in str(
        caught.value
    )
    with pytest.raises(TooLarge) as caught:
        count_tokens_left(DEFAULT, window=8_192, system=501, question=1)
    assert (caught.value.field, caught.value.size, caught.value.limit) == ("instructions", 501, 500)
    with pytest.raises(InvalidInput, match="history: must be at least 0"):
        Allocation(history=-1)


def test_nothing_is_none() -> None:
    nothing = Allocation(system=0, context=0, question=0, answer=0, history=0)
    assert count_tokens_left(nothing, window=100, system=0, question=50) == TokenAllowance(0, 0)
    draft = draft_chat(ChatRequest("hi", allocation=nothing), Settings(), window=100, count=len)
    assert draft.prompt.with_context("") == (Message("user", "hi"),)
    assert draft.question == ""


REQUESTS = st.builds(
    ChatRequest,
    WORDS.filter(str.strip),
    history=TURNS,
    instructions=st.none() | WORDS,
    allocation=st.builds(Allocation, *[TOKENS] * 5),
)


@given(REQUESTS, st.integers(1, 9_000), WORDS.map(lambda text: text * 20), st.sampled_from(sorted(COUNTERS)))
def test_prompt_and_answer_never_exceed_the_window(
    request: ChatRequest, window: int, context: str, name: str
) -> None:
    count, shares = COUNTERS[name], request.allocation
    try:
        draft = draft_chat(request, Settings(), window=window, count=count)
    except TooLarge as refused:
        assert refused.size > refused.limit
        return
    sent = draft.prompt.with_context(context if draft.fits(context) else "")
    tokens = [TOKENS_PER_MESSAGE + count(message.role) + count(message.content) for message in sent]
    assert sum(tokens) + shares.answer <= window
    assert sent[-1].content.endswith(escape_delimiters(clean(request.message)))
    first = int(sent[0].role == "system")
    assert sum(tokens[:first]) <= shares.system
    assert sum(tokens[first:-1]) <= shares.history
    assert all(turn in request.history for turn in sent[first:-1])
    assert [turn.role for turn in sent[first:-1]][:1] in ([], ["user"])
