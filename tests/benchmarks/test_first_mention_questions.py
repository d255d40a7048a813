"""Questions for first mentions that are made from texts."""

from collections.abc import Sequence

from benchmarks.first_mention_questions import (
    INTRODUCTION,
    MENTION,
    TimedText,
    definitions,
    list_subjects,
    make_questions,
    overlaps,
    paragraphs_of,
)

SENTENCES = (
    "Today we talk about something new.",
    "An eigenvector keeps its direction.",
    "This is called an eigenvector of the matrix.",
    "Every eigenvector has a number.",
    "Draw the eigenvector here.",
    "The eigenvector again.",
    "And the eigenvector once more.",
)


def texts_of(sentences: Sequence[str]) -> list[TimedText]:
    return [TimedText(sentence, number, number + 1) for number, sentence in enumerate(sentences)]


def test_subjects_are_words_that_several_texts_have() -> None:
    assert list(list_subjects(texts_of(SENTENCES))) == ["eigenvector"]


def test_the_first_text_answers_a_question_for_a_mention_and_a_definition_one_for_an_introduction() -> None:
    questions = {question.kind: question for question in make_questions("video", texts_of(SENTENCES))}
    assert [answer.start for answer in questions[MENTION].answers] == [1]
    assert [answer.start for answer in questions[INTRODUCTION].answers] == [2]


def test_a_subject_that_most_texts_define_has_no_definition() -> None:
    assert definitions("keys", texts_of(["keys are the ends"] * 4)) == []


def test_a_range_has_the_beginning_of_an_answer_or_begins_in_it() -> None:
    answers = texts_of(SENTENCES)[2:3]
    assert overlaps(1.5, 2.5, answers)
    assert overlaps(2.5, 9.0, answers)
    assert not overlaps(3.0, 4.0, answers)


def test_paragraphs_keep_their_positions() -> None:
    text = "One.\n\nTwo\nlines.\n\n\n"
    assert [text[int(part.start) : int(part.end)].strip() for part in paragraphs_of(text)] == [
        "One.",
        "Two\nlines.",
    ]
