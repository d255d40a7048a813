"""Evaluation sets of videos with captions, and questions about their moments."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput
from conspectus.evals.datasets import Row, rows, spread

ASKED_INSIDE = "questions.jsonl"
"""Questions about one video, each searched in that video."""
ASKED_OF_ALL = "queries.jsonl"
"""Descriptions without their video, searched in all videos."""


@dataclass(frozen=True, slots=True)
class TimedText:
    """A caption with its times in seconds."""

    text: str
    start: float
    end: float
    index: int | None


@dataclass(frozen=True, slots=True)
class TimedQuestion:
    """A question, the video that answers it, and the time range in seconds."""

    id: str
    text: str
    video: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class MomentSet:
    """The captions of each video in order of time, and questions.

    With `inside`, each question is searched only in its own video.
    """

    videos: Mapping[str, Sequence[TimedText]]
    questions: tuple[TimedQuestion, ...]
    inside: bool


def read_moment_set(directory: Path, *, limit: int | None = None) -> MomentSet:
    """Read `captions.jsonl` with `questions.jsonl` or `queries.jsonl`.

    `limit` is the maximum number of questions, evenly spread. Questions about a video without captions are
    left out, because they cannot be answered. Raises InvalidInput with file and line.
    """
    videos: dict[str, list[TimedText]] = {}
    for row in rows(directory / "captions.jsonl"):
        start, end = row.real("start_s"), row.real("end_s")
        if end < start:
            raise InvalidInput(row.position, "'end_s' is before 'start_s'")
        index = None if row.values.get("i") is None else row.number("i")
        videos.setdefault(row.id("video"), []).append(TimedText(row.text("text"), start, end, index))
    inside = (directory / ASKED_INSIDE).exists()
    name = ASKED_INSIDE if inside else ASKED_OF_ALL
    questions = [_read_question(row) for row in rows(directory / name)]
    answerable = [question for question in questions if question.video in videos]
    if not answerable:
        raise InvalidInput(name, "has no question about a video of captions.jsonl")
    in_order = {
        video: sorted(captions, key=lambda caption: (caption.start, caption.end))
        for video, captions in videos.items()
    }
    return MomentSet(in_order, tuple(spread(answerable, limit)), inside)


def _read_question(row: Row) -> TimedQuestion:
    window = row.items("window")
    if len(window) != 2:
        raise InvalidInput(row.position, "'window' must be a list of two times in seconds")
    start, end = (Row(row.position, {"window": seconds}).real("window") for seconds in window)
    text = row.text("question" if "question" in row.values else "query")
    return TimedQuestion(row.id("id"), text, row.id("video"), start, end)
