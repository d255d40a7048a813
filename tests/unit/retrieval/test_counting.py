"""Questions for a number, and texts of threads that have better ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.retrieval.counting import (
    MAX_BETTER_TEXTS,
    REPEATED_THREAD_WEIGHT,
    asks_for_number,
    repeated_thread_penalty,
)


@pytest.mark.parametrize(
    "question",
    [
        "How many trips did I plan?",
        "how much did I spend on the boat in total",
        "Wie viele Reisen habe ich geplant?",
        "Wieviel kostet das insgesamt?",
        "Combien de voyages ai-je prévus ?",
        "¿Cuántas veces fui al lago?",
        "Between May and June, how often did I swim?",
    ],
)
def test_questions_for_a_number(question: str) -> None:
    assert asks_for_number(question)


@pytest.mark.parametrize(
    "question",
    [
        "",
        "How is the dog?",
        "Somehow many came?",
        "Wie weit ist es?",
        "I forgot how much I miss it.",
        "how many " * 200,
    ],
)
def test_other_texts_ask_for_no_number(question: str) -> None:
    assert not asks_for_number(question)


def test_each_better_text_of_a_thread_counts() -> None:
    scores, threads = np.array([0.9, 0.8, 0.7, 0.7, 0.6]), ["a", "b", "a", "a", None]
    penalties = repeated_thread_penalty(scores, threads, np.array([5, 6, 7, 8, 9]))
    assert penalties.tolist() == pytest.approx(
        [0.0, 0.0, -REPEATED_THREAD_WEIGHT, -2 * REPEATED_THREAD_WEIGHT, 0.0]
    )


@given(st.lists(st.tuples(st.integers(-100, 200), st.sampled_from(["a", "b", None])), max_size=40))
def test_penalties_are_bounded_and_keep_the_order_inside_a_thread(
    texts: list[tuple[int, str | None]],
) -> None:
    scores, threads = np.array([score / 100 for score, _ in texts]), [thread for _, thread in texts]
    ids = np.arange(len(texts))
    penalties = repeated_thread_penalty(scores, threads, ids)
    assert all(-MAX_BETTER_TEXTS * REPEATED_THREAD_WEIGHT <= penalty <= 0.0 for penalty in penalties)
    for name in ("a", "b"):
        inside = [position for position in ids.tolist() if threads[position] == name]
        before = sorted(inside, key=lambda position: (-scores[position], position))
        after = sorted(inside, key=lambda position: (-(scores + penalties)[position], position))
        assert before == after
