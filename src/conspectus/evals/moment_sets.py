"""Evaluation sets of videos from a directory: captions with times, and questions with those of answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from conspectus.errors import InvalidInput
from conspectus.evals.rows import Row, rows

ASKED_INSIDE = "questions.jsonl"
"""Questions about one video, each asked inside it."""
ASKED_OF_ALL = "queries.jsonl"
"""Descriptions that do not say which video they are about, asked of all."""


@dataclass(frozen=True, slots=True)
class TimedText:
    """A caption, in seconds."""

    text: str
    start: float
    end: float
    index: int | None


@dataclass(frozen=True, slots=True)
class TimedQuestion:
    """A question, the video that answers it, and from when to when, in seconds."""

    id: str
    text: str
    video: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class MomentSet:
    """The captions of each video in the order of time, and questions.

    `inside` says that each is asked of its own video only.
    """

    videos: Mapping[str, Sequence[TimedText]]
    questions: tuple[TimedQuestion, ...]
    inside: bool


def read_moment_set(directory: Path, *, limit: int | None = None) -> MomentSet:
    """Read `captions.jsonl` with `questions.jsonl` or `queries.jsonl`; InvalidInput names file and line.

    With a `limit` so many of the questions, spread evenly. A question about a video without captions is
    left out: nothing could answer it.
    """
    videos: dict[str, list[TimedText]] = {}
    for row in rows(directory / "captions.jsonl"):
        videos.setdefault(row.id("video"), []).append(_caption(row))
    inside = (directory / ASKED_INSIDE).exists()
    name = ASKED_INSIDE if inside else ASKED_OF_ALL
    questions = [_question(row) for row in rows(directory / name)]
    known = [each for each in questions if each.video in videos]
    if not known:
        raise InvalidInput(name, "has no question about a video of captions.jsonl")
    in_order = {video: sorted(captions, key=_by_time) for video, captions in videos.items()}
    return MomentSet(in_order, tuple(_spread(known, limit)), inside)


def _caption(row: Row) -> TimedText:
    start, end = row.real("start_s"), row.real("end_s")
    if end < start:
        raise InvalidInput(row.place, "'end_s' is before 'start_s'")
    index = None if row.values.get("i") is None else row.number("i")
    return TimedText(row.text("text"), start, end, index)


def _question(row: Row) -> TimedQuestion:
    window = row.items("window")
    if len(window) != 2:
        raise InvalidInput(row.place, "'window' must be a list of two times in seconds")
    start, end = (Row(row.place, {"window": each}).real("window") for each in window)
    text = row.text("question" if "question" in row.values else "query")
    return TimedQuestion(row.id("id"), text, row.id("video"), start, end)


def _spread(questions: Sequence[TimedQuestion], limit: int | None) -> list[TimedQuestion]:
    """At most so many, the first and then one after every so many."""
    count = len(questions) if limit is None else min(limit, len(questions))
    return [questions[place * len(questions) // count] for place in range(count)]


def _by_time(caption: TimedText) -> tuple[float, float]:
    return caption.start, caption.end
