"""Questions for a first mention, and which text gets the part for it."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conspectus.retrieval.first_mention import (
    FIRST_MENTION_WEIGHT,
    INTRODUCTION_WEIGHT,
    MAX_QUESTION_CHARACTERS,
    MIN_SUBJECT_SHARE,
    first_mention_boost,
    first_mention_question,
)


@pytest.mark.parametrize(
    ("question", "subject"),
    [
        ("When does he first mention eigenvectors?", "eigenvectors"),
        ("At what point did we talk about the boat for the first time?", "the boat"),
        ("When does the speaker explain what a mask is?", "what a mask is"),
        ("Where is routing introduced?", "routing"),
        ("When was the dot product first mentioned?", "the dot product"),
        ("when does Bayes first come up", "Bayes"),
        ("Find the first mention of layer masks.", "layer masks"),
        ("In which section do they first introduce caching?", "caching"),
        ("Wann erwähnt er zum ersten Mal Matrizen?", "Matrizen"),
        ("Wo wird die Maske eingeführt?", "die Maske"),
        ("Wann führt sie die Maske ein?", "die Maske"),
        ("Quand parle-t-il pour la première fois de matrices ?", "matrices"),
        ("Quand explique-t-elle les matrices ?", "les matrices"),
        ("¿Cuándo menciona por primera vez las matrices?", "las matrices"),
        ("¿Dónde se explica la máscara?", "la máscara"),
    ],
)
def test_the_subject_of_a_question_for_a_first_mention(question: str, subject: str) -> None:
    parsed = first_mention_question(question)
    assert parsed is not None
    assert parsed.subject == subject


@pytest.mark.parametrize(
    "question",
    [
        "",
        "When did Apple introduce the iPod?",
        "When was Warsaw's first stock exchange established?",
        "When did Nate win his first video game tournament?",
        "Who first sent radio waves across the Atlantic?",
        "how do i select the first layer?",
        "explain masks",
        "Wann erklärte England Frankreich den Krieg?",
        "first mention",
        "When does he first mention " + "eigenvectors " * MAX_QUESTION_CHARACTERS,
    ],
)
def test_other_questions_ask_for_no_first_mention(question: str) -> None:
    assert first_mention_question(question) is None


def test_an_introduction_need_not_be_the_first_mention() -> None:
    weights = {
        question: parsed.weight
        for question in ("When does she first explain masks?", "When does she explain masks?")
        if (parsed := first_mention_question(question))
    }
    assert list(weights.values()) == [FIRST_MENTION_WEIGHT, INTRODUCTION_WEIGHT]


def test_the_first_text_with_the_subject_gets_most() -> None:
    shares = np.array([0.0, 1.0, 1.0, 1.0])
    boost = first_mention_boost(shares, ["a", "a", "a", "a"], [3, 0, 2, 1], weight=0.4)
    assert boost.tolist() == pytest.approx([0.0, 0.1, 0.2, 0.4])


def test_a_text_with_a_part_of_the_subject_is_no_mention_where_another_has_more() -> None:
    boost = first_mention_boost(np.array([0.6, 1.0, 0.6]), ["a", "a", "b"], [0, 1, 2], weight=0.4)
    assert boost.tolist() == pytest.approx([0.0, 0.4, 0.24])


def test_a_text_with_little_of_the_subject_is_no_mention() -> None:
    boost = first_mention_boost(np.array([MIN_SUBJECT_SHARE / 2]), ["a"], [0], weight=0.4)
    assert boost.tolist() == [0.0]


@given(
    st.lists(st.tuples(st.integers(0, 4), st.sampled_from("ab")), max_size=30),
    st.randoms(use_true_random=False),
)
def test_the_part_is_bounded_and_falls_with_time(texts: list[tuple[int, str]], chance: Random) -> None:
    shares = np.array([share / 4 for share, _ in texts])
    sequences = [sequence for _, sequence in texts]
    order = list(range(len(texts)))
    chance.shuffle(order)
    boost = first_mention_boost(shares, sequences, order, weight=0.4)
    assert ((boost >= 0.0) & (boost <= 0.4)).all()
    for sequence in "ab":
        mentions = [boost[position] for position in order if sequences[position] == sequence]
        mentions = [part for part in mentions if part]
        assert mentions == sorted(mentions, reverse=True)
