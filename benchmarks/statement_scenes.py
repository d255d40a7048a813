"""Statements of a person that later ones update, in eight languages, made from templates.

A scene is what one person and an assistant say in a conversation. Half of its subjects are updated later.
"""

import json
import random
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from conspectus import NewMemory

TEMPLATES: Final = Path(__file__).with_suffix(".json")
"""By language: subjects (statement, later statement, question), statements about relatives with questions,
other talk, fillers of an assistant, and values for `{0}`."""
KINDS: Final = ("city", "employer", "car", "number", "drink", "sport", "day", "person", "person")
"""The kinds of values of the subjects; relatives have the first two."""
VALUES: Final[Mapping[str, Sequence[str]]] = {
    "employer": ("Siemens", "Bosch", "Nestlé", "Airbus"),
    "car": ("Fiat 500", "Volvo", "Tesla", "VW Golf"),
    "number": ("0171 2345678", "0160 9988776", "0152 4411223", "0179 5566778"),
}
"""Values of all languages."""
START: Final = datetime(2026, 1, 5, 9, tzinfo=UTC)
STEP: Final = timedelta(hours=7)


class Question(NamedTuple):
    """A question, the statement that answers it, and the outdated one, if any."""

    text: str
    answer: str
    outdated: str | None


class Scene(NamedTuple):
    """The memories of a conversation in order, its questions, and the texts that say nothing."""

    memories: Sequence[NewMemory]
    questions: Sequence[Question]
    fillers: frozenset[str]


def read_templates() -> dict[str, Any]:
    """Return the templates of all languages."""
    templates: dict[str, Any] = json.loads(TEMPLATES.read_text(encoding="utf-8"))
    return templates


def scenes(templates: Mapping[str, Any], language: str, rounds: int) -> Iterator[Scene]:
    """Yield scenes of a language; in every second one the other half of the subjects is updated."""
    for number in range(rounds):
        yield _scene(templates, random.Random(f"{language} {number // 2}"), number % 2)


def small_scenes(templates: Mapping[str, Any], language: str, rounds: int) -> Iterator[Scene]:
    """Yield scenes of one to four statements and a question; about every second answer is updated."""
    values = {**VALUES, **templates["values"]}
    subjects = list(zip(templates["subjects"], KINDS, strict=True))
    random_numbers = random.Random(f"small {language}")
    for number in range(rounds * len(subjects)):
        (earlier, later, question), kind = subjects[number % len(subjects)]
        old, new = random_numbers.sample(values[kind], 2)
        first, updated = earlier.format(old), later.format(new)
        is_updated = random_numbers.random() < 0.5
        others = random_numbers.sample(_other_statements(templates, question, values), 3)
        texts = [first, *others[: random_numbers.randint(1 - is_updated, 3 - is_updated)]]
        if is_updated:
            texts.append(updated)
        memories = [
            NewMemory(text, role="user", at=START + position * STEP) for position, text in enumerate(texts)
        ]
        answer, outdated = (updated, first) if is_updated else (first, None)
        yield Scene(memories, [Question(question, answer, outdated)], frozenset())


def _other_statements(
    templates: Mapping[str, Any], question: str, values: Mapping[str, Sequence[str]]
) -> list[str]:
    """Return talk, and the first statements of other subjects."""
    subjects = zip(templates["subjects"], KINDS, strict=True)
    statements = [
        statement.format(values[kind][0])
        for (statement, _, subject_question), kind in subjects
        if subject_question != question
    ]
    return [*templates["talk"], *statements]


def _scene(templates: Mapping[str, Any], random: random.Random, half: int) -> Scene:
    """Make a scene: first statements, then updates and statements about relatives, with fillers between."""
    values = {**VALUES, **templates["values"]}
    subjects = list(zip(templates["subjects"], KINDS, strict=True))
    first, second, questions = [], [], []
    for rank, ((earlier, later, question), kind) in enumerate(random.sample(subjects, len(subjects))):
        old, new = random.sample(values[kind], 2)
        is_updated = rank % 2 == half
        first.append(earlier.format(old))
        if is_updated:
            second.append(later.format(new))
        answer = second[-1] if is_updated else first[-1]
        questions.append(Question(question, answer, first[-1] if is_updated else None))
    for (statement, question), kind in zip(templates["relatives"], KINDS, strict=False):
        second.append(statement.format(random.choice(values[kind])))
        questions.append(Question(question, second[-1], None))
    random.shuffle(second)
    talk = random.sample(templates["talk"], len(templates["talk"]))
    fillers = templates["fillers"]
    memories: list[NewMemory] = []
    for number, text in enumerate((*first, *talk, *second)):
        memories.append(NewMemory(text, role="user", at=START + 2 * number * STEP))
        filler = fillers[number % len(fillers)]
        memories.append(NewMemory(filler, role="assistant", at=START + (2 * number + 1) * STEP))
    return Scene(memories, questions, frozenset(fillers))
