"""The budget that a left-out passage needs, searched until a deadline."""

import random
from dataclasses import replace

import pytest
from tests.property.test_window_properties import Corpus, count

from conspectus.errors import InvalidInput
from conspectus.model.query import Budget
from conspectus.model.results import ContextWindow, Hit, Retrieval, TraceEntry
from conspectus.window.build import WindowOptions, build_window
from conspectus.window.checkpoints import proceed
from conspectus.window.render import renderer_by_name
from conspectus.window.stable import previous_of


class Ended(InvalidInput):
    """What a checkpoint raises in these tests."""


class Countdown:
    """Is over after so many calls."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def is_over(self) -> bool:
        self.left -= 1
        return self.left < 0

    def __call__(self) -> None:
        if self.is_over():
            raise Ended("time", "is over")


def build_explained(hits: list[Hit], tokens: int, checkpoint=proceed, **options) -> ContextWindow:
    retrieval = Retrieval("found", tuple(hits))
    window_options = WindowOptions(parts=True, **options)
    return build_window(
        retrieval, Budget(tokens), renderer_by_name("text"), count, window_options, checkpoint
    )


def trace_by_rank(window: ContextWindow) -> dict[int, TraceEntry]:
    return {candidate.rank: candidate for candidate in window.trace}


@pytest.fixture(scope="module")
def hits() -> list[Hit]:
    return Corpus(random.Random(7), longest=600).hits(25)


@pytest.mark.parametrize("calls", [0, 1, 60, 400, 1500])
def test_what_was_found_in_time_is_exact_and_the_rest_is_more_than_was_tried(hits, calls):
    window = build_explained(hits, 300, fits_from=20, is_over=Countdown(calls).is_over)
    missing = [candidate for candidate in window.trace if candidate.status in {"over_budget", "truncated"}][
        :20
    ]
    assert missing and {
        candidate.fits_from is None or candidate.fits_above is None for candidate in missing
    } == {True}
    if not calls:
        assert {candidate.fits_above for candidate in missing} == {300}
    for candidate in missing:
        if candidate.fits_from is not None:
            assert (
                trace_by_rank(build_explained(hits, candidate.fits_from))[candidate.rank].status == "included"
            )
            assert (
                trace_by_rank(build_explained(hits, candidate.fits_from - 1))[candidate.rank].status
                != "included"
            )
        elif candidate.fits_above is not None:
            assert (
                trace_by_rank(build_explained(hits, candidate.fits_above))[candidate.rank].status
                != "included"
            )


def test_no_budget_above_the_maximum_is_tried(hits):
    window = build_explained(hits, 300, fits_from=99, max_fitting_tokens=400)
    assert {400, None} == {candidate.fits_above for candidate in window.trace}
    assert max(candidate.fits_from or 0 for candidate in window.trace) <= 400


@pytest.mark.parametrize("form", ["text", "xml", "json", "messages", "guarded"])
def test_a_checkpoint_ends_a_window_wherever_it_is(hits, form):
    retrieval, renderer = Retrieval("found", tuple(hits)), renderer_by_name(form)
    calls = 0
    while True:
        try:
            build_window(
                retrieval,
                Budget(3_000),
                renderer,
                count,
                WindowOptions(parts=True, fits_from=3),
                Countdown(calls),
            )
        except Ended:
            calls += 1 + calls // 3
        else:
            break
    assert calls > 4 * len(hits)


def test_a_checkpoint_ends_a_window_that_begins_with_another_one(hits):
    retrieval, renderer = Retrieval("found", tuple(hits)), renderer_by_name("text")
    first = build_window(retrieval, Budget(2_000), renderer, count)
    by_id = {hit.chunk.id: hit for hit in hits}
    previous = replace(previous_of(first.state), hits=by_id)
    options = WindowOptions(previous=previous)
    calls = Countdown(10**9)
    packed = build_window(retrieval, Budget(2_000), renderer, count, options, calls)
    assert packed.text.startswith(first.text[:100])
    needed = 10**9 - calls.left
    for number in range(0, needed, max(1, needed // 20)):
        with pytest.raises(Ended):
            build_window(retrieval, Budget(2_000), renderer, count, options, Countdown(number))
