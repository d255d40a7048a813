"""From what was found to the context for a model."""

from collections.abc import Callable, Mapping
from datetime import tzinfo
from functools import partial

from conspectus.errors import InvalidInput
from conspectus.model.query import Budget
from conspectus.model.results import ContextWindow, Hit, Retrieval
from conspectus.text.clean import clean
from conspectus.window.cost_estimate import Estimator
from conspectus.window.focus import Focus
from conspectus.window.packer import pack
from conspectus.window.render import Renderer
from conspectus.window.thread_gaps import Threads
from conspectus.window.trace import citations, trace

_CHUNKS_COUNTED_WITH = "o200k_base"


def build_window(
    retrieval: Retrieval,
    budget: Budget,
    renderer: Renderer,
    count: Callable[[str], int],
    *,
    labels: Mapping[str, str] | None = None,
    zones: Mapping[str, tzinfo] | None = None,
) -> ContextWindow:
    """Pack, arrange, render, count and explain. The same input gives the same bytes.

    Args:
        retrieval: hits count by score; equal scores by document and place in it. Where its threads say
            that messages are left out between those shown, a mark counts them.
        budget: the window may cost what its tokens leave after system, question and answer are paid.
        renderer: from `renderer_named`.
        count: the counter that `budget.tokenizer` names.
        labels: what the sources of captions and events are called, by their ids; where a stream's documents
            have no title, this says which stream they are from.
        zones: in which the instants of captions and events are shown, by the ids of their sources; else UTC.

    Raises:
        InvalidInput: a number of the budget is negative.
    """
    allowed = _allowed(budget, count)
    hits = sorted(retrieval.hits, key=_rank)
    counted = budget.tokenizer == _CHUNKS_COUNTED_WITH
    threads = Threads(retrieval.threads, labels, zones)
    focus = Focus(retrieval.terms, retrieval.nearest)
    estimator = partial(
        Estimator, renderer=renderer, count=count, counted=counted, threads=threads, focus=focus
    )
    packed = pack(hits, allowed, renderer=renderer, count=count, estimator=estimator, threads=threads)
    below_floor = sorted(retrieval.below_floor, key=_rank)
    return ContextWindow(
        outcome=retrieval.outcome if hits else "nothing_relevant",
        text=packed.rendered.text,
        tokens=packed.tokens,
        allowed=allowed,
        tokenizer=budget.tokenizer,
        citations=citations(packed.layout),
        trace=trace(packed, hits, below_floor=below_floor, floor=retrieval.plan.get("floor")),
        messages=packed.rendered.messages,
        notices=retrieval.notices,
        timings=retrieval.timings,
    )


def _allowed(budget: Budget, count: Callable[[str], int]) -> int:
    for name, tokens in (("budget.tokens", budget.tokens), ("budget.answer", budget.answer)):
        if tokens < 0:
            raise InvalidInput(name, f"is {tokens}; a number of tokens cannot be negative")
    beside = sum(count(clean(text)) for text in (budget.system, budget.question) if text)
    return max(budget.tokens - beside - budget.answer, 0)


def _rank(hit: Hit) -> tuple[float, str, int, int]:
    return (-hit.score, hit.document.id, hit.chunk.start, hit.chunk.id)
