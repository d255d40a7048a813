"""Quality of results: recall against exact search, and the setting nearest to a given recall."""

import re
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from peers.work import TOP, WANTED, Effort, Question, Rows, Vector

TIE = 1e-5
Answers: TypeAlias = list[list[int]] | None
Swept: TypeAlias = list[tuple[Effort, float]]


class Judge:
    """Knows the exact answers. What is as near as the last of the exact ten counts as found."""

    def __init__(self, rows: Rows, questions: Sequence[Question]) -> None:
        self._texts = [f" {' '.join(_words(text))} " for text in rows.texts]
        self._questions = [f" {' '.join(_words(question.text))} " for question in questions]
        self._vectors = rows.vectors
        self._asked = np.stack([question.vector for question in questions])
        allowed = np.asarray(rows.buckets) == WANTED
        scores = [rows.vectors @ vector for vector in self._asked]
        self._last = {
            "vectors": [_tenth(row) for row in scores],
            "filtered": [_tenth(row[allowed]) for row in scores],
        }
        self._allowed = {"vectors": np.ones_like(allowed), "filtered": allowed}

    def recall(self, kind: str, answers: list[list[int]]) -> float:
        """The share of the exact ten that was found; what the filter forbids counts nothing."""
        count = 0
        for position, numbers in enumerate(answers):
            distinct = [number for number in set(numbers) if self._allowed[kind][number]]
            scores = self._vectors[distinct] @ self._asked[position]
            count += min(int((scores >= self._last[kind][position] - TIE).sum()), TOP)
        return count / (TOP * len(answers))

    def sources(self, answers: Answers) -> float | None:
        """The share of queries whose run of words is in one of the texts found."""
        if answers is None:
            return None
        answered = [
            any(question in self._texts[number] for number in numbers)
            for question, numbers in zip(self._questions, answers, strict=True)
        ]
        return sum(answered) / len(answered)


def nearest(swept: Swept, recall: float) -> tuple[Effort, float]:
    """The setting whose recall is nearest; the cheaper one of two that are equally near."""
    return min(swept, key=lambda setting: round(abs(setting[1] - recall), 4))


def _tenth(scores: Vector) -> float:
    return float(np.partition(scores, -TOP)[-TOP])


def _words(text: str) -> list[str]:
    return re.findall(r"\w{2,}", text)
