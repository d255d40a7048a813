"""Random callers, sizes, moments and failures: everyone gets what they would get alone."""

import asyncio
from dataclasses import dataclass

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.support.batches import CountingModel, ManualClock, row_of

from conspectus.errors import ProviderError, ProviderUnavailable
from conspectus.ingest.embedding_queue import BatchSharing, EmbedQueue
from conspectus.model.retries import RetryPolicy

ATTEMPTS = 5
FOREVER = 10_000.0


@dataclass(frozen=True)
class Caller:
    arrives: float
    poisoned: frozenset[int]
    size: int
    query: bool
    leaves: float | None

    def texts(self, number: int) -> list[str]:
        names = [f"caller {number} text {index}" for index in range(1 if self.query else self.size)]
        return [f"{name} poison" if index in self.poisoned else name for index, name in enumerate(names)]


moments = st.integers(0, 8).map(lambda steps: steps / 2)
callers = st.builds(
    Caller,
    arrives=moments,
    poisoned=st.frozensets(st.integers(0, 9), max_size=1),
    size=st.integers(0, 9),
    query=st.booleans(),
    leaves=st.one_of(st.none(), moments),
)
sharings = st.builds(
    BatchSharing, texts=st.integers(1, 7), wait=st.sampled_from([0.0, 0.5, 2.0]), at_once=st.integers(1, 3)
)


def unavailable(status: int) -> ProviderUnavailable:
    return ProviderUnavailable("counting", "planned", status=status)


async def embed_for(queue: EmbedQueue, clock: ManualClock, caller: Caller, texts: list[str]):
    await clock.sleep(caller.arrives)
    if caller.query:
        return [await queue.embed_query(texts[0])]
    return await queue.embed_documents(texts)


async def run_history(group: list[Caller], sharing: BatchSharing, model: CountingModel) -> list[object]:
    """What each caller got in the end; one that left got a CancelledError, if it was not served before."""
    clock = ManualClock()
    retry_policy = RetryPolicy(ATTEMPTS, sleep=clock.sleep, chance=lambda: 0.5)
    queue = EmbedQueue(model, sharing=sharing, retry_policy=retry_policy)

    async def leave(caller: Caller, task: asyncio.Task) -> None:
        if caller.leaves is not None:
            await clock.sleep(caller.leaves)
            task.cancel()

    tasks = [
        asyncio.create_task(embed_for(queue, clock, caller, caller.texts(n)))
        for n, caller in enumerate(group)
    ]
    leaving = [asyncio.create_task(leave(caller, task)) for caller, task in zip(group, tasks, strict=True)]
    await clock.advance(FOREVER)
    waiting = [task for task in (*tasks, *leaving) if not task.done()]
    await queue.close()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert waiting == []
    return answers


def check_answer(answer: object, caller: Caller, number: int) -> None:
    texts = caller.texts(number)
    if isinstance(answer, asyncio.CancelledError):
        assert caller.leaves is not None
    elif any("poison" in text for text in texts):
        assert isinstance(answer, ProviderError) and not isinstance(answer, ProviderUnavailable)
    else:
        kind = "query" if caller.query else "document"
        assert not isinstance(answer, BaseException)
        assert np.array_equal(answer, np.array([row_of(text, kind) for text in texts]).reshape(-1, 3))


def check_batches(model: CountingModel, sharing: BatchSharing, group: list[Caller]) -> None:
    kinds = {
        text: "query" if caller.query else "document"
        for n, caller in enumerate(group)
        for text in caller.texts(n)
    }
    for kind, texts in model.batches:
        assert 0 < len(texts) <= sharing.texts
        assert {kinds[text] for text in texts} == {kind}
    assert len(set(model.embedded)) == len(model.embedded)


@given(
    st.lists(callers, max_size=8),
    sharings,
    st.lists(st.sampled_from([429, 503, None]), max_size=ATTEMPTS - 1),
)
def test_passing_failures_are_not_noticed(
    group: list[Caller], sharing: BatchSharing, plan: list[int | None]
) -> None:
    model = CountingModel(*(status and unavailable(status) for status in plan))
    answers = asyncio.run(run_history(group, sharing, model))
    for number, (answer, caller) in enumerate(zip(answers, group, strict=True)):
        check_answer(answer, caller, number)
    check_batches(model, sharing, group)


@given(
    st.lists(callers, max_size=8),
    sharings,
    st.lists(st.sampled_from([429, 503, 500, 504, 401, None]), max_size=30),
)
def test_whoever_gets_an_answer_gets_the_right_one(
    group: list[Caller], sharing: BatchSharing, plan: list[int | None]
) -> None:
    refused = ProviderError("counting", "key", status=401)
    model = CountingModel(*(refused if status == 401 else status and unavailable(status) for status in plan))
    answers = asyncio.run(run_history(group, sharing, model))
    for number, (answer, caller) in enumerate(zip(answers, group, strict=True)):
        planned = isinstance(answer, ProviderUnavailable) or answer is refused
        if not planned:
            check_answer(answer, caller, number)
        assert not planned or any(plan)
    check_batches(model, sharing, group)
