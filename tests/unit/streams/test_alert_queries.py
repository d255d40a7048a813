"""Alerts match captions by fields, words, phrases and similarity."""

from dataclasses import replace

import numpy as np
import pytest
from tests.support.samples import prepared

from conspectus.model.filter import EVERYTHING, Eq
from conspectus.streams.alert_queries import Language, analyze_caption, question, reason

ENGLISH = Language("english")


def matching_reason(
    query: str, text: str, *, condition=EVERYTHING, language: Language = ENGLISH, **fields
) -> str | None:
    alert_question = question(query, condition, language, min_similarity=None, vector=None)
    return reason(alert_question, analyze_caption(replace(CAPTION, **fields), text, language))


CAPTION = prepared("d", "x").document


def test_all_words_by_their_stems_in_any_order() -> None:
    assert matching_reason("falling cars", "A red CAR falls down.") == "words: car, fall"
    assert matching_reason("car crash", "a red car") is None


def test_words_are_whole() -> None:
    assert matching_reason("car", "the carpet is red") is None
    assert matching_reason("fire", "fireman") is None


@pytest.mark.parametrize("text", ["the red car", "Red car!", "a car, and it is red"])
def test_stop_words_of_a_question_do_not_matter(text: str) -> None:
    assert matching_reason("where is the red car?", text) is not None


def test_a_question_of_stop_words_only_is_a_phrase() -> None:
    assert matching_reason("who is it", "Hello? Who is it?") == "phrase: who is it"
    assert matching_reason("who is it", "is it the man who fell") is None
    assert matching_reason("who is it", "who is there") is None


def test_an_acronym_is_no_stop_word() -> None:
    assert matching_reason("WHO", "the WHO meets today") is not None
    assert matching_reason("WHO", "who is it") is None


@pytest.mark.parametrize(
    ("query", "text"),
    [("Zürich", "in ZÜRICH"), ("東京", "東京は今日"), ("🔥", "oh 🔥🔥"), ("naïve", "NAIVE")],
)
def test_words_of_every_script(query: str, text: str) -> None:
    assert matching_reason(query, text) is not None


def test_without_a_question_the_fields_decide() -> None:
    assert matching_reason("", "anything") == "its fields"
    assert matching_reason("  ", "", condition=Eq("author", "ann"), author="ann") == "its fields"
    assert matching_reason("", "x", condition=Eq("author", "ann"), author="bo") is None


def test_fields_and_words_both_have_to_agree() -> None:
    assert matching_reason("car", "a car", condition=Eq("author", "ann"), author="bo") is None
    assert (
        matching_reason("car", "a car", condition=Eq(("place",), "gate"), metadata={"place": "gate"})
        is not None
    )


@pytest.mark.parametrize("query", ["?!", "…", "\u200b."])
def test_marks_alone_match_nothing(query: str) -> None:
    assert matching_reason(query, "?! … .") is None


def test_an_empty_caption_has_no_words() -> None:
    assert matching_reason("car", "") is None
    assert matching_reason("who is it", "") is None


def pack_vectors(*cosines: float) -> tuple[bytes, ...]:
    return tuple(np.array([c, (1 - c * c) ** 0.5]).astype("<f2").tobytes() for c in cosines)


def reason_of_vectors(min_similarity: float | None, *cosines: float, query: str = "a fire") -> str | None:
    alert_question = question(
        query, EVERYTHING, ENGLISH, min_similarity=min_similarity, vector=np.array([1, 0], dtype=np.float32)
    )
    return reason(alert_question, analyze_caption(CAPTION, "flames", ENGLISH, vectors=pack_vectors(*cosines)))


def test_as_similar_as_the_floor_is_enough() -> None:
    assert reason_of_vectors(0.5, 0.5) == "similarity: 0.50"
    assert reason_of_vectors(0.5, 0.49) is None
    assert reason_of_vectors(0.5, 0.1, 0.7) == "similarity: 0.70"


def test_without_vector_floor_or_question_nothing_is_similar() -> None:
    assert reason_of_vectors(0.5) is None
    assert reason_of_vectors(None, 0.9) is None
    alert_question = question("a fire", EVERYTHING, ENGLISH, min_similarity=0.5, vector=None)
    assert (
        reason(alert_question, analyze_caption(CAPTION, "flames", ENGLISH, vectors=pack_vectors(0.9))) is None
    )


def test_without_stemming_words_are_as_they_are() -> None:
    plain = Language(None)
    assert matching_reason("cars", "two cars", language=plain) is not None
    assert matching_reason("cars", "a car", language=plain) is None
