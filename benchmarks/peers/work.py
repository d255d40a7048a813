"""The work of every engine: the same rows, vectors and queries, read from one folder."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 384
BUCKETS = 100
WANTED = 7
TOP = 10

Vector: TypeAlias = NDArray[np.float32]
Effort: TypeAlias = dict[str, int]
"""Settings of one search that trade time for recall, by the engine's own names; none: its defaults."""

Hits: TypeAlias = list[tuple[int, str]]
"""Row number and text of what was found, best first: a caller needs the text, so reading it is timed."""


@dataclass(frozen=True)
class Rows:
    """Texts with their unit vectors and a bucket each: one bucket of `BUCKETS` is a filter of 1 %."""

    numbers: range
    texts: list[str]
    vectors: Vector
    buckets: list[int]

    def __len__(self) -> int:
        return len(self.texts)

    def batches(self, size: int) -> Iterator["Rows"]:
        """The same rows, `size` at a time."""
        for start in range(0, len(self), size):
            yield self.part(start, min(start + size, len(self)))

    def part(self, start: int, end: int) -> "Rows":
        """Some of the rows."""
        return Rows(
            self.numbers[start:end],
            self.texts[start:end],
            self.vectors[start:end],
            self.buckets[start:end],
        )


@dataclass(frozen=True)
class Question:
    """Words and a unit vector."""

    text: str
    vector: Vector


class Peer(Protocol):
    """One engine. `efforts` and `filter_efforts` are tried from cheap to thorough.

    `inside` is the milliseconds that the last search spent in the index alone, where the engine says so.
    """

    package: str
    inside: float | None
    efforts: Sequence[Effort]
    filter_efforts: Sequence[Effort]

    def build(self, store: Path, rows: Rows) -> None:
        """Create a store in which hybrid search finds all rows, and leave it on disk."""
        ...

    def open(self, store: Path) -> None:
        """Open a store that was built before."""
        ...

    def hybrid(self, question: Question, effort: Effort) -> Hits | None:
        """The best hits of hybrid search; None if the engine has none."""
        ...

    def vectors(self, question: Question, effort: Effort) -> Hits:
        """The nearest by vectors alone."""
        ...

    def filtered(self, question: Question, effort: Effort) -> Hits:
        """The nearest by vectors alone in the bucket `WANTED`."""
        ...

    def insert(self, rows: Rows) -> None:
        """Add rows to an open store; they need not be searchable when it returns."""
        ...

    def close(self) -> None:
        """Release the store."""
        ...


def save(
    folder: Path, texts: list[str], vectors: Vector, questions: list[str], question_vectors: Vector
) -> None:
    """Write the work to files; the last file means that it is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "vectors.npy", vectors.astype(np.float16))
    np.save(folder / "questions.npy", question_vectors.astype(np.float16))
    (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
    (folder / "questions.json").write_text(json.dumps(questions), encoding="utf-8")


def complete(folder: Path) -> bool:
    """Whether the work is there."""
    return (folder / "questions.json").exists()


def load_rows(folder: Path) -> Rows:
    """All rows, including those reserved for single inserts (at the end)."""
    texts = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    buckets = np.random.default_rng(5).integers(0, BUCKETS, len(texts)).tolist()
    vectors = np.load(folder / "vectors.npy").astype(np.float32)
    return Rows(range(len(texts)), texts, vectors, buckets)


def load_questions(folder: Path) -> list[Question]:
    """The queries, in order."""
    texts = json.loads((folder / "questions.json").read_text(encoding="utf-8"))
    vectors = np.load(folder / "questions.npy").astype(np.float32)
    return [Question(text, vector) for text, vector in zip(texts, vectors, strict=True)]
