"""Evaluate search for moments of streams."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

from conspectus.deferred import dataclass
from conspectus.engine import Engine
from conspectus.evals.measures import percent
from conspectus.evals.moment_sets import MomentSet, TimedQuestion, read_moment_set
from conspectus.evals.stores import fresh_engine
from conspectus.model.captions import NewCaption
from conspectus.model.filter import EVERYTHING, Eq
from conspectus.model.streams import StreamQueryOptions
from conspectus.ports import Progress
from conspectus.settings import Settings

LIMIT_INSIDE = 10
LIMIT_OF_ALL = 50
"""Limits of a search for moments. It is higher for all videos, to find ten different ones."""
CAPTIONS = 200
"""Number of captions that BM25 search returns."""
NEIGHBORS = 1
"""Number of captions before and after each that belong to its answer."""
DEPTHS = (1, 5)
THRESHOLDS = (0.3, 0.5, 0.7)
VIDEO_DEPTHS = (1, 2, 10)
MomentsReport: TypeAlias = dict[str, float | int]


@dataclass(frozen=True, slots=True)
class Answer:
    """A time range of a video in seconds."""

    video: str
    start: float
    end: float


Answered: TypeAlias = tuple[TimedQuestion, Sequence[Answer]]
Ask: TypeAlias = Callable[[TimedQuestion], Awaitable[Sequence[Answer]]]


async def moments(
    directory: str | Path,
    *,
    limit: int | None = None,
    settings: Settings | None = None,
    progress: Progress | None = None,
) -> dict[str, MomentsReport]:
    """Return recall at 1 and 5 by IoU with the true range, mean IoU and video hits, 0 to 100.

    `engine` is the search for moments. `bm25` returns the best captions by raw BM25, each with the one before
    and the one after. Questions of `questions.jsonl` are searched in their video, those of `queries.jsonl` in
    all videos, with video hits in the report. `ms` is the mean time of a question. Raises InvalidInput for a
    directory without such a set, or if a file is not readable.
    """
    data = read_moment_set(Path(directory), limit=limit)
    async with fresh_engine(settings or Settings.from_environment()) as engine:
        asker = await _store(engine, data, progress)
        ways: Mapping[str, Ask] = {"engine": asker.by_engine, "bm25": asker.by_words}
        return {name: await _measure(data, name, ask, progress) for name, ask in ways.items()}


def overlap(answer: Answer, question: TimedQuestion) -> float:
    """Return the intersection over union in time; 0 for another video, 1 for equal instants."""
    if answer.video != question.video:
        return 0.0
    shared = min(answer.end, question.end) - max(answer.start, question.start)
    together = max(answer.end, question.end) - min(answer.start, question.start)
    return max(shared, 0.0) / together if together > 0.0 else 1.0


@dataclass(frozen=True, slots=True)
class MomentSearch:
    """A filled engine: source ids by video, and the video and position of each stored caption."""

    engine: Engine
    moment_set: MomentSet
    sources: Mapping[str, str]
    positions: Mapping[str, tuple[str, int]]

    async def by_engine(self, question: TimedQuestion) -> list[Answer]:
        if self.moment_set.inside:
            within: StreamQueryOptions = {"streams": (question.video,), "limit": LIMIT_INSIDE}
        else:
            within = {"limit": LIMIT_OF_ALL}
        moments = await self.engine.streams.search(question.text, **within)
        return [Answer(moment.stream.name, moment.start, moment.end) for moment in moments.moments]

    async def by_words(self, question: TimedQuestion) -> list[Answer]:
        """Return the best captions by raw BM25, each with its neighbors."""
        where = Eq("source", self.sources[question.video]) if self.moment_set.inside else EVERYTHING
        retrieval = await self.engine.retrieve(
            question.text, filter=where, retrievers=("keyword",), limit=CAPTIONS
        )
        scored = [(-hit.bm25, hit.chunk.id, hit) for hit in retrieval.hits if hit.bm25]
        best = [hit for _, _, hit in sorted(scored, key=lambda scored_hit: scored_hit[:2])]
        return [self._answer_around(*self.positions[hit.document.id]) for hit in best]

    def _answer_around(self, video: str, position: int) -> Answer:
        captions = self.moment_set.videos[video][max(position - NEIGHBORS, 0) : position + NEIGHBORS + 1]
        return Answer(
            video, min(caption.start for caption in captions), max(caption.end for caption in captions)
        )


async def _store(engine: Engine, data: MomentSet, progress: Progress | None) -> MomentSearch:
    positions: dict[str, tuple[str, int]] = {}
    for done, (video, captions) in enumerate(data.videos.items(), start=1):
        new_captions = [
            NewCaption(caption.text, start=caption.start, end=caption.end, index=caption.index)
            for caption in captions
        ]
        written = await engine.streams.add_captions(new_captions, stream=video)
        positions |= {str(caption.id): (video, position) for position, caption in enumerate(written)}
        if progress is not None:
            progress("writing videos", done, len(data.videos))
    await engine.documents.wait_until_embedded(progress=progress)
    sources = {source.name: str(source.id) for source in await engine.collections.list_sources()}
    return MomentSearch(engine, data, sources, positions)


async def _measure(data: MomentSet, name: str, ask: Ask, progress: Progress | None) -> MomentsReport:
    answered = []
    started = perf_counter()
    for done, question in enumerate(data.questions, start=1):
        answered.append((question, await ask(question)))
        if progress is not None:
            progress(f"asking {name}", done, len(data.questions))
    took = (perf_counter() - started) * 1_000 / len(data.questions)
    report = _overlaps(answered)
    if not data.inside:
        report |= {f"video_hit@{depth}": _video_hits(answered, depth) for depth in VIDEO_DEPTHS}
    return {**report, "questions": len(answered), "ms": round(took, 2)}


def _overlaps(answered: Sequence[Answered]) -> MomentsReport:
    """Return recall by minimum IoU, and the IoU of the first answer."""
    shares = [[overlap(answer, question) for answer in answers] for question, answers in answered]
    recalls = {
        f"recall@{depth} iou {threshold}": percent(
            [float(max(overlaps[:depth], default=0.0) >= threshold) for overlaps in shares]
        )
        for depth in DEPTHS
        for threshold in THRESHOLDS
    }
    return {**recalls, "miou": percent([overlaps[0] if overlaps else 0.0 for overlaps in shares])}


def _video_hits(answered: Sequence[Answered], depth: int) -> float:
    """Return how often the correct video is among the first distinct videos."""
    return percent(
        [
            float(question.video in list(dict.fromkeys(answer.video for answer in answers))[:depth])
            for question, answers in answered
        ]
    )
