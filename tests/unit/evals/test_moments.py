"""The evaluation of moments: what it reads, what it refuses, and what it counts."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from conspectus.errors import InvalidInput
from conspectus.evals.moment_sets import TimedQuestion, read_moment_set
from conspectus.evals.moments import Answer, moments, overlap
from conspectus.settings import Settings

WORDS_ONLY = Settings(embedder="none")
RECIPES = {
    "bread": ["mix flour and water", "knead the dough", "let the dough rise", "bake the bread"],
    "soup": ["peel the onions", "boil the stock", "add pepper", "serve the soup"],
}


def write_rows(folder: Path, name: str, rows: Iterable[Mapping[str, object]]) -> None:
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def build_caption(video: str, number: int, text: str, seconds: float = 60.0) -> dict[str, object]:
    return {
        "video": video,
        "i": number,
        "start_s": number * seconds,
        "end_s": (number + 1) * seconds,
        "text": text,
    }


def build_question(
    name: str, text: str, video: str, *window: float, field: str = "question"
) -> dict[str, object]:
    return {"id": name, "video": video, field: text, "window": list(window)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    captions = [
        build_caption(video, n, text) for video, texts in RECIPES.items() for n, text in enumerate(texts)
    ]
    write_rows(tmp_path, "captions.jsonl", captions)
    return tmp_path


async def test_questions_are_asked_inside_their_video(folder: Path) -> None:
    questions = [
        build_question("a", "when does the dough rise", "bread", 120, 180),
        build_question("b", "where is pepper", "soup", 120, 180),
    ]
    write_rows(folder, "questions.jsonl", questions)
    report = await moments(folder, settings=WORDS_ONLY)
    ours, plain = report["engine"], report["bm25"]
    assert list(report) == ["engine", "bm25"]
    assert ours["recall@1 iou 0.7"] == ours["miou"] == 100.0
    assert plain["recall@1 iou 0.3"] == 100.0
    assert plain["miou"] == pytest.approx(33.33)
    assert (ours["questions"], plain["questions"]) == (2, 2)
    assert "video_hit@1" not in ours


async def test_descriptions_are_asked_of_all_videos(folder: Path) -> None:
    queries = [
        build_question("a", "somebody kneads dough", "bread", 60, 120, field="query"),
        build_question("b", "pepper and dough rise", "soup", 120, 180, field="query"),
        build_question("c", "nothing of this", "soup", 0, 60, field="query"),
    ]
    write_rows(folder, "queries.jsonl", queries)
    report = (await moments(folder, settings=WORDS_ONLY))["engine"]
    assert report["video_hit@1"] == pytest.approx(33.33)
    assert report["video_hit@2"] == report["video_hit@10"] == pytest.approx(66.67)
    assert report["recall@1 iou 0.3"] == pytest.approx(33.33)
    assert report["recall@5 iou 0.3"] == pytest.approx(66.67)


async def test_the_figures_are_the_same_every_time(folder: Path) -> None:
    write_rows(folder, "queries.jsonl", [build_question("a", "the dough", "bread", 60, 120, field="query")])
    first, second = [(await moments(folder, settings=WORDS_ONLY))["engine"] for _ in range(2)]
    assert {**first, "ms": 0} == {**second, "ms": 0}


async def test_progress_is_told(folder: Path) -> None:
    write_rows(folder, "questions.jsonl", [build_question("a", "the dough", "bread", 60, 120)])
    steps: list[tuple[str, int, int]] = []
    await moments(folder, settings=WORDS_ONLY, progress=lambda *step: steps.append(step))
    assert {("writing videos", 2, 2), ("asking engine", 1, 1), ("asking bm25", 1, 1)} <= set(steps)


@pytest.mark.parametrize(
    ("answer", "share"),
    [
        (Answer("v", 0, 10), 1.0),
        (Answer("v", 5, 15), 1 / 3),
        (Answer("v", 10, 20), 0.0),
        (Answer("v", 50, 60), 0.0),
        (Answer("v", 3, 3), 0.0),
        (Answer("other", 0, 10), 0.0),
    ],
)
def test_overlap_is_what_both_share_of_what_they_cover(answer: Answer, share: float) -> None:
    assert overlap(answer, TimedQuestion("q", "?", "v", 0, 10)) == pytest.approx(share)
    assert overlap(Answer("v", 3, 3), TimedQuestion("q", "?", "v", 3, 3)) == 1.0


def test_a_limit_spreads_over_the_questions_and_unknown_videos_are_left_out(folder: Path) -> None:
    questions = [build_question(str(n), "?", "bread", 0, 1) for n in range(10)]
    write_rows(folder, "questions.jsonl", [build_question("lost", "?", "nowhere", 0, 1), *questions])
    assert [question.id for question in read_moment_set(folder, limit=3).questions] == ["0", "3", "6"]
    assert len(read_moment_set(folder, limit=99).questions) == 10


def test_captions_are_in_the_order_of_time_and_need_no_number(tmp_path: Path) -> None:
    rows = [{**build_caption("v", number, str(number)), "i": None} for number in (2, 0, 1)]
    write_rows(tmp_path, "captions.jsonl", rows)
    write_rows(tmp_path, "queries.jsonl", [build_question("a", "?", "v", 0, 1, field="query")])
    moment_set = read_moment_set(tmp_path)
    assert [caption.text for caption in moment_set.videos["v"]] == ["0", "1", "2"]
    assert not moment_set.inside


@pytest.mark.parametrize("window", [None, [1], [1, 2, 3], ["0", "1"], [0, float("nan")], 5])
def test_a_window_that_is_none_is_named(folder: Path, window: object) -> None:
    question = {**build_question("a", "?", "bread"), "window": window}
    write_rows(folder, "questions.jsonl", [build_question("fine", "?", "bread", 0, 1), question])
    with pytest.raises(InvalidInput, match=r"questions\.jsonl line 2"):
        read_moment_set(folder)


@pytest.mark.parametrize("broken", [{"start_s": 90.0}, {"end_s": None}, {"text": 3}, {"video": None}])
def test_a_caption_that_cannot_be_read_is_named(folder: Path, broken: dict[str, object]) -> None:
    write_rows(folder, "captions.jsonl", [{**build_caption("bread", 0, "x"), **broken}])
    with pytest.raises(InvalidInput, match=r"captions\.jsonl line 1"):
        read_moment_set(folder)


@pytest.mark.parametrize("present", ["captions.jsonl", "questions.jsonl"])
def test_a_folder_without_a_set_is_refused(tmp_path: Path, present: str) -> None:
    rows = (
        [build_caption("v", 0, "x")] if present == "captions.jsonl" else [build_question("a", "?", "v", 0, 1)]
    )
    write_rows(tmp_path, present, rows)
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_moment_set(tmp_path)


def test_questions_about_no_video_that_is_there_are_refused(folder: Path) -> None:
    write_rows(folder, "questions.jsonl", [build_question("lost", "?", "nowhere", 0, 1)])
    with pytest.raises(InvalidInput, match="no question about a video"):
        read_moment_set(folder)


@pytest.mark.data
@pytest.mark.slow
async def test_stretches_of_tutorials_are_found(evaluation) -> None:
    report = await moments(evaluation("tutorialvqa"), limit=300, settings=Settings())
    ours, plain = report["engine"], report["bm25"]
    assert ours["recall@1 iou 0.3"] >= max(50.0, plain["recall@1 iou 0.3"] + 10)
    assert ours["recall@5 iou 0.3"] >= 80.0
