"""Questions for first mentions and introductions, made from the texts of a stream or document."""

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from conspectus.text.analyzer import STOP_WORDS

MIN_TEXTS = 4
MAX_TEXTS = 40
"""A subject is in so many captions or paragraphs."""
SUBJECTS = 6
"""Most subjects of a stream or document."""
MENTION, INTRODUCTION = "mention", "introduction"
FORMS: Mapping[str, Sequence[str]] = {
    MENTION: (
        "When does he first mention {}?",
        "When is {} first mentioned?",
        "At what point do they talk about {} for the first time?",
        "When does {} first come up?",
        "Where is the first mention of {}?",
    ),
    INTRODUCTION: (
        "When does he introduce {}?",
        "When does she explain what {} is?",
        "Where is {} introduced?",
        "When does the speaker explain {}?",
    ),
}
DEFINITION = (
    r"\b(?:called|call (?:it|this|that|them|these)|known as|named|refer(?:red)? to as|the (?:term|word|idea"
    r"|notion|concept)(?: of)?)\W+(?:an? |the )?{0}\b|\b(?:an? |the )?{0},? (?:is|are|means|refers to)"
    r" (?:an?|the|just|simply|basically|called|when|how|what)\b"
)
WORD = re.compile(r"[a-z]{5,}")
PARAGRAPH = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class TimedText:
    """A caption or paragraph: its text, and where it begins and ends, in seconds or characters."""

    text: str
    start: float
    end: float


@dataclass(frozen=True)
class Question:
    """A question about a stream or document, and the ranges that answer it."""

    kind: str
    text: str
    name: str
    answers: Sequence[TimedText]


def list_subjects(texts: Sequence[TimedText]) -> dict[str, list[TimedText]]:
    """Return the words and pairs of words that several texts have, with these texts in order."""
    with_subject: dict[str, list[TimedText]] = {}
    for text in texts:
        words = re.findall(r"[a-z]+|[^a-z\s]+", text.text.casefold())
        content = [bool(WORD.fullmatch(word)) and word not in STOP_WORDS["english"] for word in words]
        singles = [word for word, is_content in zip(words, content, strict=True) if is_content]
        pairs = [
            f"{words[number]} {words[number + 1]}"
            for number in range(len(words) - 1)
            if content[number] and content[number + 1]
        ]
        for subject in dict.fromkeys([*singles, *pairs]):
            with_subject.setdefault(subject, []).append(text)
    return {subject: those for subject, those in with_subject.items() if MIN_TEXTS <= len(those) <= MAX_TEXTS}


def make_questions(name: str, texts: Sequence[TimedText]) -> Iterator[Question]:
    """Return the questions about a stream or document: some subjects of it, chosen by chance."""
    chance = random.Random(name)
    subjects = list_subjects(texts)
    for subject in chance.sample(sorted(subjects), min(SUBJECTS, len(subjects))):
        form = chance.choice(FORMS[MENTION])
        yield Question(MENTION, form.format(subject), name, subjects[subject][:1])
    defined = {subject: definitions(subject, those) for subject, those in sorted(subjects.items())}
    defined = {subject: those for subject, those in defined.items() if those}
    for subject in chance.sample(sorted(defined), min(SUBJECTS, len(defined))):
        form = chance.choice(FORMS[INTRODUCTION])
        yield Question(INTRODUCTION, form.format(subject), name, defined[subject])


def all_questions(texts: Mapping[str, Sequence[TimedText]]) -> Iterator[Question]:
    """Return the questions about all streams or documents."""
    for name, of_one in texts.items():
        yield from make_questions(name, of_one)


def definitions(subject: str, texts: Sequence[TimedText]) -> list[TimedText]:
    """Return the texts that define a subject; none if most of those with it do."""
    pattern = re.compile(DEFINITION.format(re.escape(subject).replace(r"\ ", r"\s+")))
    defining = [text for text in texts if pattern.search(text.text.casefold())]
    return defining if len(defining) <= len(texts) // 3 else []


def paragraphs_of(text: str) -> list[TimedText]:
    """Return the paragraphs of a text with their positions."""
    borders = [0, *(match.end() for match in PARAGRAPH.finditer(text)), len(text)]
    return [
        TimedText(text[start:end], start, end) for start, end in pairwise(borders) if text[start:end].strip()
    ]


def overlaps(start: float, end: float, answers: Sequence[TimedText]) -> bool:
    """Return whether a range has the beginning of an answer, or the other way round."""
    return any(start <= answer.start < end or answer.start <= start < answer.end for answer in answers)
