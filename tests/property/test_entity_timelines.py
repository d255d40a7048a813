"""When somebody is there, found through the index, is what reading every caption would say."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import Engine, Settings
from conspectus.engine.entity_names import contains_name, fold_name
from conspectus.engine.event_spans import Report, group_reports
from conspectus.model.captions import CaptionRange, NewCaption
from conspectus.model.stream_events import EntitySpan

SETTINGS = replace(Settings(), embedder="none", tail_chunks=50)
NAMES = ["Ann", "Bo", "the red car", "IT", "who", "Anna-Lena", "O'Neil", "R2-D2", "東京", "Zoë", "run"]
SAID = [
    "Ann and Bo walk", "ANN's red car", "the RED car stops", "it is who?", "who is it", "Anna-Lena sings",
    "o'neil\u2019s hat", "R2-D2 beeps", "東京都の夜", "Zoe\u0308 waves", "they run", "running late",
    "IT department", "", "nobody", "Annabel", "ann_1 joins", "Bo, Ann, Zoë", "bo.ann", "(Bo)",
]  # fmt: skip


def build_captions(count: int) -> list[NewCaption]:
    """Captions in which names stand in every way."""
    captions = []
    for number in range(count):
        entities = (NAMES[number % 11].upper(),) if number % 5 == 0 else ()
        speaker = NAMES[number % 7] if number % 11 == 0 else None
        text = f"{SAID[number % len(SAID)]} {SAID[(3 * number + 1) % len(SAID)]}"
        captions.append(
            NewCaption(text, 10 * number, 10 * number + number % 8, entities=entities, speaker=speaker)
        )
    return captions


def expected_ranges(
    captions: Sequence[NewCaption], name: str, start: float, end: float
) -> list[tuple[float, float]]:
    """The time ranges, by looking at every caption."""
    reports = []
    for number, caption in enumerate(captions):
        begins, ends = 10.0 * number, 10.0 * number + number % 8
        named = {fold_name(one) for one in (*caption.entities, caption.speaker or "")}
        inside = begins < end and (ends > start or begins >= start)
        if inside and (fold_name(name) in named or contains_name(name)(caption.text)):
            reports.append(Report(name, begins, ends, str(number)))
    return [(span.start, span.end) for span in group_reports(reports)]


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with conspectus.open(tmp_path, settings=SETTINGS) as opened:
        await opened.streams.add_captions(build_captions(300), stream="cam")
        await opened.streams.add_captions(build_captions(30), stream="other")
        yield opened


def time_ranges(spans: Sequence[EntitySpan]) -> list[tuple[float, float]]:
    return [(span.start, span.end) for span in spans]


async def test_the_index_leaves_out_nobody(engine: Engine) -> None:
    captions = build_captions(300)
    for name in NAMES:
        assert time_ranges(await engine.events.entity_timeline(name, stream="cam")) == expected_ranges(
            captions, name, 0, 1e9
        ), name
        within = CaptionRange(503, 1_207)
        spans = await engine.events.entity_timeline(name, stream="cam", range=within)
        assert time_ranges(spans) == expected_ranges(captions, name, 503, 1_207), name
