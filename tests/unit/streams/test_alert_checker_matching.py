"""Captions and standing questions: by fields, by words, by phrase, by meaning."""

from dataclasses import replace

import numpy as np
import pytest
from tests.support.samples import prepared

from conspectus.model.filter import EVERYTHING, Eq
from conspectus.streams.alert_checker import Language, analyzed, question, reason

ENGLISH = Language("english")


def why(query: str, text: str, *, where=EVERYTHING, language: Language = ENGLISH, **fields) -> str | None:
    asked = question(query, where, language, min_similarity=None, vector=None)
    return reason(asked, analyzed(replace(CAPTION, **fields), text, language))


CAPTION = prepared("d", "x").document


def test_all_words_by_their_stems_in_any_order() -> None:
    assert why("falling cars", "A red CAR falls down.") == "words: car, fall"
    assert why("car crash", "a red car") is None


def test_words_are_whole() -> None:
    assert why("car", "the carpet is red") is None
    assert why("fire", "fireman") is None


@pytest.mark.parametrize("text", ["the red car", "Red car!", "a car, and it is red"])
def test_stop_words_of_a_question_do_not_matter(text: str) -> None:
    assert why("where is the red car?", text) is not None


def test_a_question_of_stop_words_only_is_a_phrase() -> None:
    assert why("who is it", "Hello? Who is it?") == "phrase: who is it"
    assert why("who is it", "is it the man who fell") is None
    assert why("who is it", "who is there") is None


def test_an_acronym_is_no_stop_word() -> None:
    assert why("WHO", "the WHO meets today") is not None
    assert why("WHO", "who is it") is None


@pytest.mark.parametrize(
    ("query", "text"),
    [("Zürich", "in ZÜRICH"), ("東京", "東京は今日"), ("🔥", "oh 🔥🔥"), ("naïve", "NAIVE")],
)
def test_words_of_every_script(query: str, text: str) -> None:
    assert why(query, text) is not None


def test_without_a_question_the_fields_decide() -> None:
    assert why("", "anything") == "its fields"
    assert why("  ", "", where=Eq("author", "ann"), author="ann") == "its fields"
    assert why("", "x", where=Eq("author", "ann"), author="bo") is None


def test_fields_and_words_both_have_to_agree() -> None:
    assert why("car", "a car", where=Eq("author", "ann"), author="bo") is None
    assert why("car", "a car", where=Eq(("place",), "gate"), metadata={"place": "gate"}) is not None


@pytest.mark.parametrize("query", ["?!", "…", "\u200b."])
def test_marks_alone_match_nothing(query: str) -> None:
    assert why(query, "?! … .") is None


def test_an_empty_caption_has_no_words() -> None:
    assert why("car", "") is None
    assert why("who is it", "") is None


def vectors(*cosines: float) -> tuple[bytes, ...]:
    return tuple(np.array([c, (1 - c * c) ** 0.5]).astype("<f2").tobytes() for c in cosines)


def near(floor: float | None, *cosines: float, query: str = "a fire") -> str | None:
    asked = question(
        query, EVERYTHING, ENGLISH, min_similarity=floor, vector=np.array([1, 0], dtype=np.float32)
    )
    return reason(asked, analyzed(CAPTION, "flames", ENGLISH, vectors=vectors(*cosines)))


def test_as_similar_as_the_floor_is_enough() -> None:
    assert near(0.5, 0.5) == "similarity: 0.50"
    assert near(0.5, 0.49) is None
    assert near(0.5, 0.1, 0.7) == "similarity: 0.70"


def test_without_vector_floor_or_question_nothing_is_similar() -> None:
    assert near(0.5) is None
    assert near(None, 0.9) is None
    asked = question("a fire", EVERYTHING, ENGLISH, min_similarity=0.5, vector=None)
    assert reason(asked, analyzed(CAPTION, "flames", ENGLISH, vectors=vectors(0.9))) is None


def test_without_stemming_words_are_as_they_are() -> None:
    plain = Language(None)
    assert why("cars", "two cars", language=plain) is not None
    assert why("cars", "a car", language=plain) is None
