"""The queue that shares batches, with a clock that is moved by hand."""

import asyncio
from collections.abc import AsyncIterator, Callable

import numpy as np
import pytest
from tests.support.batches import CountingModel, ManualClock, row_of

from conspectus.errors import InvalidInput, ProviderError, ProviderUnavailable
from conspectus.ingest.embedding_queue import BatchSharing, EmbedQueue
from conspectus.model.retries import RetryPolicy
from conspectus.ports.jobs import CURRENT_USER, on_behalf_of

Make = Callable[..., EmbedQueue]


def build_busy_error(status: int = 429, retry_after: float | None = None) -> ProviderUnavailable:
    return ProviderUnavailable("counting", "busy", status=status, retry_after=retry_after)


def list_rows(*texts: str, kind: str = "document") -> list[list[float]]:
    return [row_of(text, kind) for text in texts]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
async def make(clock: ManualClock) -> AsyncIterator[Make]:
    created_queues = []

    def queue(model: CountingModel, *, attempts: int = 5, **sharing) -> EmbedQueue:
        retry_policy = RetryPolicy(attempts, sleep=clock.sleep, chance=lambda: 1.0)
        created_queues.append(
            EmbedQueue(
                model,
                sharing=BatchSharing(**{"texts": 5, "wait": 0.05, **sharing}),
                retry_policy=retry_policy,
            )
        )
        return created_queues[-1]

    yield queue
    for created in created_queues:
        await created.close()


async def test_callers_share_a_batch_and_get_their_own_slices(make: Make) -> None:
    model = CountingModel()
    queue = make(model)
    two, three = await asyncio.gather(
        queue.embed_documents(["a", "b"]), queue.embed_documents(["c", "d", "e"])
    )
    assert (two.tolist(), three.tolist()) == (list_rows("a", "b"), list_rows("c", "d", "e"))
    assert model.batches == [("document", ["a", "b", "c", "d", "e"])]


async def test_a_batch_that_is_not_full_leaves_when_its_first_text_has_waited(
    make: Make, clock: ManualClock
) -> None:
    model = CountingModel()
    queue = make(model)
    first = asyncio.create_task(queue.embed_documents(["a"]))
    await clock.advance(0.04)
    second = asyncio.create_task(queue.embed_documents(["b"]))
    await clock.advance(0.009)
    assert model.batches == []
    await clock.advance(0.001)
    assert model.batches == [("document", ["a", "b"])]
    assert [(await task).tolist() for task in (first, second)] == [list_rows("a"), list_rows("b")]
    third = asyncio.create_task(queue.embed_documents(["c"]))
    await clock.advance(0.049)
    assert len(model.batches) == 1
    await clock.advance(0.001)
    assert (await third).tolist() == list_rows("c")


async def test_a_batch_never_exceeds_its_size_and_a_large_caller_gets_its_rows_in_order(
    make: Make, clock: ManualClock
) -> None:
    model = CountingModel()
    texts = [f"text {number}" for number in range(12)]
    task = asyncio.create_task(make(model).embed_documents(texts))
    await clock.advance(0)
    assert model.sizes == [5, 5]
    await clock.advance(0.05)
    assert (await task).tolist() == list_rows(*texts)
    assert model.sizes == [5, 5, 2]


async def test_a_batch_is_no_larger_than_the_model_takes(make: Make, clock: ManualClock) -> None:
    class Small(CountingModel):
        @property
        def max_texts(self) -> int:
            return 2

    model = Small()
    task = asyncio.create_task(make(model).embed_documents(list("abc")))
    await clock.advance(0.05)
    assert (await task).tolist() == list_rows(*"abc")
    assert model.sizes == [2, 1]


async def test_documents_and_queries_never_share(make: Make, clock: ManualClock) -> None:
    model = CountingModel()
    queue = make(model)
    document = asyncio.create_task(queue.embed_documents(["same"]))
    assert (await queue.embed_query("same")).tolist() == row_of("same", "query")
    await clock.advance(0.05)
    assert (await document).tolist() == list_rows("same")
    assert model.batches == [("query", ["same"]), ("document", ["same"])]


async def test_queries_do_not_wait_for_company_but_share_with_what_is_there(
    make: Make, clock: ManualClock
) -> None:
    hold = asyncio.Event()
    model = CountingModel(hold)
    queue = make(model, at_once=1)
    tasks = [asyncio.create_task(queue.embed_query(text)) for text in ("a", "b")]
    await clock.settle()
    tasks += [asyncio.create_task(queue.embed_query(text)) for text in ("c", "d")]
    await clock.settle()
    hold.set()
    answers = [(await task).tolist() for task in tasks]
    assert answers == list_rows("a", "b", "c", "d", kind="query")
    assert model.batches == [("query", ["a", "b"]), ("query", ["c", "d"])]
    assert clock.slept == []


async def test_nothing_to_embed_asks_nobody(make: Make) -> None:
    model = CountingModel()
    assert (await make(model).embed_documents([])).shape == (0, 3)
    assert model.batches == []


@pytest.mark.parametrize("status", [429, 503])
async def test_a_busy_model_is_asked_again(make: Make, clock: ManualClock, status: int) -> None:
    model = CountingModel(build_busy_error(status))
    task = asyncio.create_task(make(model).embed_query("a"))
    await clock.advance(1)
    assert (await task).tolist() == row_of("a", "query")
    assert model.sizes == [1, 1]


async def test_waits_double_up_to_the_cap_and_then_the_error_goes_to_every_caller(
    make: Make, clock: ManualClock
) -> None:
    model = CountingModel(*[build_busy_error()] * 8)
    queue = make(model, attempts=8, wait=0)
    tasks = [asyncio.create_task(queue.embed_documents([text])) for text in "ab"]
    await clock.advance(200)
    assert [type(error) for error in await asyncio.gather(*tasks, return_exceptions=True)] == [
        ProviderUnavailable
    ] * 2
    assert clock.slept == [0, 1, 2, 4, 8, 16, 30, 30]
    assert model.sizes == [2] * 8


async def test_five_tries_in_all(make: Make, clock: ManualClock) -> None:
    model = CountingModel(*[build_busy_error()] * 9)
    task = asyncio.create_task(make(model).embed_query("a"))
    await clock.advance(100)
    with pytest.raises(ProviderUnavailable):
        await task
    assert len(model.batches) == 5


@pytest.mark.parametrize(("chance", "waits"), [(0.0, [0.5, 1.0]), (0.5, [0.75, 1.5])])
async def test_waits_are_shortened_by_chance(clock: ManualClock, chance: float, waits: list[float]) -> None:
    model = CountingModel(build_busy_error(), build_busy_error())
    queue = EmbedQueue(model, retry_policy=RetryPolicy(sleep=clock.sleep, chance=lambda: chance))
    task = asyncio.create_task(queue.embed_query("a"))
    await clock.advance(5)
    await task
    assert clock.slept == waits
    await queue.close()


@pytest.mark.parametrize("seconds", [0.0, 7.0, 30.0])
async def test_the_wait_that_was_asked_for_wins(make: Make, clock: ManualClock, seconds: float) -> None:
    task = asyncio.create_task(make(CountingModel(build_busy_error(retry_after=seconds))).embed_query("a"))
    await clock.advance(seconds)
    await task
    assert clock.slept == [seconds]


async def test_a_wait_beyond_the_cap_is_handed_on(make: Make) -> None:
    model = CountingModel(build_busy_error(503, retry_after=31.0))
    with pytest.raises(ProviderUnavailable) as raised:
        await make(model).embed_query("a")
    assert (raised.value.retry_after, len(model.batches)) == (31.0, 1)


@pytest.mark.parametrize("status", [None, 408, 500, 502, 504])
async def test_no_other_failure_is_tried_again_nor_taken_for_a_poisoned_text(
    make: Make, status: int | None
) -> None:
    model = CountingModel(ProviderUnavailable("counting", "gone", status=status))
    queue = make(model)
    calls = [queue.embed_documents(["a", "b"]), queue.embed_documents(["c", "d", "e"])]
    errors = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(error) for error in errors] == [ProviderUnavailable] * 2
    assert model.sizes == [5]


async def test_a_refused_text_fails_at_once(make: Make) -> None:
    model = CountingModel()
    with pytest.raises(ProviderError, match="refused a text"):
        await make(model).embed_query("poison")
    assert len(model.batches) == 1


async def test_a_poisoned_text_fails_alone(make: Make) -> None:
    model = CountingModel()
    queue = make(model)
    calls = [queue.embed_documents(texts) for texts in (["a"], ["b", "poison"], ["c", "d"])]
    first, second, third = await asyncio.gather(*calls, return_exceptions=True)
    assert np.array_equal(first, list_rows("a"))
    assert isinstance(second, ProviderError)
    assert np.array_equal(third, list_rows("c", "d"))
    assert sorted(model.embedded) == ["a", "b", "c", "d"]


async def test_what_else_a_failed_caller_wanted_is_not_paid_for(make: Make, clock: ManualClock) -> None:
    model = CountingModel()
    texts = ["poison"] + [f"text {number}" for number in range(11)]
    task = asyncio.create_task(make(model, at_once=1).embed_documents(texts))
    await clock.advance(1)
    with pytest.raises(ProviderError):
        await task
    assert (model.sizes, model.embedded) == ([5, 2, 1], [])


@pytest.mark.parametrize("status", [401, 403, 404])
async def test_a_refused_key_or_model_is_not_looked_for_in_the_texts(make: Make, status: int) -> None:
    model = CountingModel(ProviderError("counting", "no", status=status))
    queue = make(model)
    errors = await asyncio.gather(
        *(queue.embed_documents([text]) for text in "abcde"), return_exceptions=True
    )
    assert {getattr(error, "status", None) for error in errors} == {status}
    assert model.sizes == [5]


async def test_a_wrong_setting_goes_to_every_caller_at_once(make: Make) -> None:
    class Other(CountingModel):
        async def embed_batch(self, texts, kind):
            await super().embed_batch(texts, kind)
            raise InvalidInput("embedder", "has another size")

    model = Other()
    queue = make(model)
    errors = await asyncio.gather(
        *(queue.embed_documents([text]) for text in "abcde"), return_exceptions=True
    )
    assert [type(error) for error in errors] == [InvalidInput] * 5
    assert model.sizes == [5]


async def test_what_arrives_while_the_model_is_busy_waits_and_shares(make: Make, clock: ManualClock) -> None:
    model = CountingModel(build_busy_error())
    queue = make(model, at_once=1)
    tasks = [asyncio.create_task(queue.embed_documents(["a"]))]
    await clock.advance(0.1)
    tasks += [asyncio.create_task(queue.embed_documents([text])) for text in "bcd"]
    await clock.advance(0.5)
    assert model.sizes == [1]
    await clock.advance(1)
    assert [(await task).tolist() for task in tasks] == [list_rows(text) for text in "abcd"]
    assert [texts for _, texts in model.batches] == [["a"], ["a"], ["b", "c", "d"]]


async def test_no_more_batches_are_under_way_than_allowed(make: Make, clock: ManualClock) -> None:
    hold = asyncio.Event()
    model = CountingModel(hold, hold, hold, hold)
    task = asyncio.create_task(make(model, at_once=2).embed_documents([str(number) for number in range(20)]))
    await clock.settle()
    assert model.sizes == [5, 5]
    hold.set()
    assert (await task).shape == (20, 3)


async def test_a_caller_that_leaves_disturbs_nobody(make: Make, clock: ManualClock) -> None:
    hold = asyncio.Event()
    model = CountingModel(hold)
    queue = make(model, at_once=1)
    gone, stays, late = (asyncio.create_task(queue.embed_documents([text])) for text in ("a", "b", "c"))
    await clock.settle()
    late.cancel()
    await clock.advance(0.05)
    gone.cancel()
    hold.set()
    assert (await stays).tolist() == list_rows("b")
    assert model.batches == [("document", ["a", "b"])]
    assert gone.cancelled() and late.cancelled()


async def test_closing_fails_what_waits_and_what_is_under_way(make: Make, clock: ManualClock) -> None:
    model = CountingModel(asyncio.Event())
    queue = make(model, at_once=1)
    tasks = [asyncio.create_task(queue.embed_documents([str(number)])) for number in range(7)]
    tasks.append(asyncio.create_task(queue.embed_query("q")))
    await clock.settle()
    await queue.close()
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(error, ProviderUnavailable) for error in errors[:7])
    assert "is being closed" in str(errors[6])
    with pytest.raises(ProviderUnavailable, match="is being closed"):
        await queue.embed_documents(["late"])
    assert model.closed


async def test_a_defect_of_the_model_reaches_the_callers(make: Make) -> None:
    class Broken(CountingModel):
        async def embed_batch(self, texts, kind):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await make(Broken()).embed_query("a")


async def test_rows_of_another_shape_are_refused(make: Make) -> None:
    class Short(CountingModel):
        async def embed_batch(self, texts, kind):
            return (await super().embed_batch(texts, kind))[:, :2]

    with pytest.raises(ProviderError, match=r"shape \(1, 2\), not \(1, 3\)"):
        await make(Short(), attempts=1).embed_query("a")


async def test_real_time_needs_no_help() -> None:
    model = CountingModel(build_busy_error(retry_after=0.0))
    queue = EmbedQueue(model, sharing=BatchSharing(wait=0.01))
    assert (await queue.embed_documents(["a", "b"])).tolist() == list_rows("a", "b")
    assert queue.space == model.space
    await queue.close()


async def test_a_shared_call_is_for_a_user_only_if_all_its_texts_are(make: Make) -> None:
    users: list[str | None] = []

    class Noting(CountingModel):
        async def embed_batch(self, texts, kind):
            users.append(CURRENT_USER.get())
            return await super().embed_batch(texts, kind)

    queue = make(Noting())

    async def ask(user: str, text: str) -> None:
        with on_behalf_of(user):
            await queue.embed_query(text)

    await asyncio.gather(ask("ada", "a"), ask("ada", "b"))
    await asyncio.gather(ask("ada", "c"), ask("bo", "d"))
    assert users == ["ada", None]
    assert CURRENT_USER.get() is None
