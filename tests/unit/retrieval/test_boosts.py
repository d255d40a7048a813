"""Boosts: each has its effect within its weight, and none without its data."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.retrieval import thread_boosts
from conspectus.retrieval.boosts import question_penalty, role_boost, speaker_boost

NAMES = st.one_of(st.none(), st.text(max_size=12))


def thread_boost(scores, threads, **options):
    """The boost of scores that are compared with their median."""
    above = np.maximum(scores - np.median(scores), 0.0) if len(scores) else scores
    return thread_boosts.thread_boost(above, threads, **options)


def test_a_thread_of_good_texts_lifts_all_its_texts():
    shares = thread_boost(np.array([0.9, 0.8, 0.7, 0.1, 0.1]), ["a", "a", "a", "b", None], weight=0.3)
    np.testing.assert_allclose(shares, [0.03, 0.03, 0.03, 0.0, 0.0])


def test_one_good_text_lifts_its_thread_less_than_three_do():
    lone = thread_boost(np.array([0.9, 0.1, 0.1, 0.1]), ["a", "b", "b", "b"])[0]
    three = thread_boost(np.array([0.9, 0.9, 0.9, 0.1, 0.1, 0.1, 0.1]), [*"aaabbbb"])[0]
    assert 0.0 < lone < three


def test_only_the_best_three_of_a_thread_count():
    short = thread_boost(np.array([0.9, 0.8, 0.7, 0.5, 0.5, 0.5, 0.5]), [*"aaa", None, None, None, None])
    long = thread_boost(np.array([0.9, 0.8, 0.7, 0.0, 0.5, 0.5, 0.5]), [*"aaaa", None, None, None])
    assert long[0] == pytest.approx(short[0])


def test_threads_of_nothing_and_no_threads():
    assert len(thread_boost(np.zeros(0), [])) == 0
    np.testing.assert_array_equal(thread_boost(np.array([0.4, 0.9]), [None, None]), [0.0, 0.0])
    np.testing.assert_array_equal(thread_boost(np.array([0.4]), ["alone"]), [0.0])


@given(st.lists(st.tuples(st.floats(-1.0, 1.0), st.sampled_from(["a", "b", None])), max_size=20))
def test_thread_shares_are_bounded(candidates):
    scores = np.array([score for score, _ in candidates])
    shares = thread_boost(scores, [thread for _, thread in candidates], weight=0.3)
    assert (np.abs(shares) <= 0.3 * (float(np.ptp(scores)) if len(scores) else 0.0) + 1e-12).all()


@pytest.mark.parametrize(
    ("question", "lifted"),
    [
        ("What did Caroline research?", [True, False, False]),
        ("what is CAROLINE's plan", [True, False, False]),
        ("Where does José García live?", [False, True, False]),
        ("What did josé say", [False, True, False]),
        ("What did Caroline tell José?", [False, False, False]),
        ("What did they say?", [False, False, False]),
        ("Who are the carolines?", [False, False, False]),
        ("", [False, False, False]),
    ],
)
def test_the_one_speaker_a_question_names_is_lifted(question, lifted):
    shares = speaker_boost(question, ["Caroline", "José García", None], weight=0.1)
    np.testing.assert_array_equal(shares, 0.1 * np.array(lifted, dtype=float))


@pytest.mark.parametrize("author", ["user", "Assistant", "SYSTEM", "", "...", "👍"])
def test_roles_and_signs_are_no_names(author):
    assert not speaker_boost(f"what did the {author} say to the user and assistant", [author]).any()


def test_an_article_is_no_first_name():
    assert not speaker_boost("What is the plan?", ["The Editor"]).any()
    assert speaker_boost("What does the editor plan?", ["The Editor"]).all()


@given(st.text(max_size=60), st.lists(NAMES, max_size=8))
def test_a_speaker_is_worth_the_weight_or_nothing(question, authors):
    shares = speaker_boost(question, authors, weight=0.08)
    assert shares.shape == (len(authors),)
    assert set(shares.tolist()) <= {0.0, 0.08}


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("How are you?", True),
        ('She said: "why?"  ', True),
        ("Really?! 😊", True),
        ("什么时候\uff1f", True),
        ("متى؟", True),
        ("Why? Because it rained.", False),
        ("It rained.", False),
        ("?", True),
        ("", False),
    ],
)
def test_texts_that_end_in_a_question_are_held_back(text, asks):
    share = question_penalty([text], weight=0.1)[0]
    assert (share, np.signbit(share)) == ((-0.1, True) if asks else (0.0, False))


def test_only_the_role_is_lifted():
    np.testing.assert_array_equal(role_boost(["user", "assistant", None], weight=0.2), [0.2, 0.0, 0.0])
    np.testing.assert_array_equal(role_boost(["user", "tool"], role="tool", weight=0.2), [0.0, 0.2])
