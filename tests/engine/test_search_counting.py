"""A question for a number finds texts of several conversations."""

from pathlib import Path

from tests.stores import SETTINGS

import conspectus
from conspectus import NewDocument
from conspectus.retrieval.counting import REPEATED_THREAD_WEIGHT

MESSAGES = [
    NewDocument(
        "the tomato plant grew", key=f"{thread}{number}", kind="message", thread=thread, sequence=number
    )
    for thread in ("a", "b")
    for number in range(3)
]


async def test_texts_of_a_thread_that_has_better_ones_are_lowered(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=SETTINGS) as engine:
        await engine.add(MESSAGES, wait=True)
        counted = (await engine.retrieve("how many tomato plants grew?")).hits
        asked = (await engine.retrieve("which tomato plants grew?")).hits
    assert {hit.document.thread for hit in counted[:2]} == {"a", "b"}
    assert sorted(hit.parts["repeated_thread"] for hit in counted) == [
        -2 * REPEATED_THREAD_WEIGHT, -2 * REPEATED_THREAD_WEIGHT,
        -REPEATED_THREAD_WEIGHT, -REPEATED_THREAD_WEIGHT,
        0.0, 0.0,
    ]  # fmt: skip
    assert all("repeated_thread" not in hit.parts for hit in asked)
