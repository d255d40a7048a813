"""Work beside the event loop: users take turns, and a stop ends it."""

import asyncio
import threading
from time import perf_counter

import pytest
from tests.waiting import until

from conspectus.engine.long_work import (
    MAX_CREDIT_SECONDS,
    PAUSE_SECONDS,
    SLICE_SECONDS,
    LongWork,
    TurnKind,
    Work,
)
from conspectus.errors import InvalidInput, Overloaded
from conspectus.model.ids import UserId
from conspectus.providers.tokenizers import counter

ANN, BEN = UserId("ann"), UserId("ben")


class Steps:
    """A function that runs until it is released or ended, and the order in which such ran."""

    def __init__(self) -> None:
        self.released = threading.Event()
        self.order: list[str] = []
        self.running = self.most = 0

    def work_of(self, name: str):
        def run(work: Work) -> str:
            self.order.append(name)
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                while not self.released.wait(0.001):
                    work()
            finally:
                self.running -= 1
            return name

        return run


async def test_one_of_a_kind_runs_and_users_take_turns():
    long_work, steps = LongWork(), Steps()
    named = {"a1": ANN, "a2": ANN, "a3": ANN, "b1": BEN}
    tasks = []
    for name, user in named.items():
        tasks.append(asyncio.create_task(long_work.run(steps.work_of(name), kind="window", user=user)))
        await asyncio.sleep(0.01)
    steps.released.set()
    assert await asyncio.gather(*tasks) == list(named)
    assert (steps.most, steps.order[:2]) == (1, ["a1", "b1"])
    await long_work.close()


async def test_a_cancelled_call_ends_its_function_and_the_next_one_runs():
    long_work, steps = LongWork(), Steps()
    first = asyncio.create_task(long_work.run(steps.work_of("first"), user=ANN))
    second = asyncio.create_task(long_work.run(steps.work_of("second"), user=ANN))
    await until(lambda: steps.running)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    steps.released.set()
    assert await second == "second" and steps.most == 1
    assert long_work.running == 0
    await long_work.close()


async def test_a_call_that_waits_can_be_cancelled():
    long_work, steps = LongWork(), Steps()
    first = asyncio.create_task(long_work.run(steps.work_of("first"), user=ANN))
    second = asyncio.create_task(long_work.run(steps.work_of("second"), user=ANN))
    await asyncio.sleep(0.01)
    second.cancel()
    steps.released.set()
    assert await first == "first"
    assert steps.order == ["first"]
    await long_work.close()


async def test_after_a_stop_what_runs_is_hurried_and_nothing_begins():
    long_work = LongWork()
    begun = threading.Event()

    def work_to_the_end(work: Work) -> bool:
        begun.set()
        while not work.is_over(60):
            work()
        return True

    running = asyncio.create_task(long_work.run(work_to_the_end, user=ANN))
    waiting = asyncio.create_task(long_work.run(work_to_the_end, user=BEN))
    await asyncio.to_thread(begun.wait)
    long_work.stop()
    assert await running
    with pytest.raises(Overloaded):
        await waiting
    await long_work.close()


async def test_blocks_of_one_kind_take_turns():
    long_work, begun = LongWork(), list[str]()
    ended = asyncio.Event()

    async def begin(name: str, kind: TurnKind) -> None:
        async with long_work.take_turn(kind, ANN):
            begun.append(name)
            await ended.wait()

    first = asyncio.create_task(begin("first", "explained query"))
    second = asyncio.create_task(begin("second", "explained query"))
    other = asyncio.create_task(begin("other", "window"))
    await asyncio.sleep(0.01)
    assert begun == ["first", "other"]
    ended.set()
    await asyncio.gather(first, second, other)
    assert begun == ["first", "other", "second"]


class Clock:
    """A clock that work and its pauses move on."""

    def __init__(self) -> None:
        self.now = self.slept = 0.0

    def __call__(self) -> float:
        return self.now

    def pause(self, seconds: float) -> None:
        self.now += seconds
        self.slept += seconds


def test_work_waits_at_a_checkpoint_until_nobody_has_precedence():
    clock, answers = Clock(), [True] * 5 + [False] * 5
    work = Work(lambda: answers.pop(0), clock=clock, pause=clock.pause)
    clock.now += SLICE_SECONDS
    work()
    assert clock.slept == 0.0
    clock.now += SLICE_SECONDS
    work()
    assert clock.slept == pytest.approx(6 * PAUSE_SECONDS)
    assert answers == [False] * 4


def test_work_waits_hardly_longer_than_it_computes():
    clock, computed = Clock(), 0.0
    work = Work(lambda: True, clock=clock, pause=clock.pause)
    for _ in range(100):
        clock.now += 2 * SLICE_SECONDS
        computed += 2 * SLICE_SECONDS
        work()
    assert computed < clock.slept < computed + MAX_CREDIT_SECONDS + 100 * PAUSE_SECONDS


async def test_work_that_should_finish_waits_for_nobody():
    long_work, begun, questions = LongWork(), threading.Event(), list[bool]()

    def have_others_precedence() -> bool:
        questions.append(long_work.running > 0)
        return False

    def work_to_the_end(work: Work) -> int:
        while not questions:
            work()
        begun.set()
        while not work.is_hurried:
            pass
        before = len(questions)
        end = perf_counter() + 10 * SLICE_SECONDS
        while perf_counter() < end:
            work()
        return len(questions) - before

    long_work.have_others_precedence = have_others_precedence
    running = asyncio.create_task(long_work.run(work_to_the_end, user=ANN))
    await asyncio.to_thread(begun.wait)
    long_work.stop()
    assert await running == 0
    await long_work.close()


async def test_after_a_stop_no_block_gets_its_turn():
    long_work = LongWork()
    long_work.stop()
    with pytest.raises(Overloaded):
        async with long_work.take_turn("explained query", ANN):
            pass


async def test_errors_of_the_function_are_raised():
    def failing(_work: Work) -> None:
        raise InvalidInput("query", "is wrong")

    long_work = LongWork()
    with pytest.raises(InvalidInput):
        await long_work.run(failing, user=ANN)
    assert long_work.running == 0
    await long_work.close()


TEXT = "Words of a text, and\nlines of it: x = f(1) ... "


@pytest.mark.parametrize("tokenizer", ["o200k_base", "cl100k_base", "chars4_ceil"])
async def test_a_long_text_is_counted_in_parts_to_the_same_number(tokenizer):
    long_work, count, text = LongWork(), counter(tokenizer), TEXT * 2_000
    parts: list[int] = []

    def counted(part: str) -> int:
        parts.append(len(part))
        return count(part)

    tokens = await long_work.run_counting(
        lambda counting: counting(text), counted, characters=len(text), user=ANN, tokenizer=tokenizer
    )
    assert tokens == count(text)
    assert max(parts) < 30_000 or tokenizer == "chars4_ceil"
    await long_work.close()


async def test_counting_ends_with_its_caller():
    long_work, count, text = LongWork(), counter("o200k_base"), TEXT * 2_000
    begun = threading.Event()
    calls = 0

    def counted(counting) -> None:
        nonlocal calls
        while True:
            begun.set()
            counting(text)
            calls += 1

    counting = asyncio.create_task(long_work.run_counting(counted, count, characters=len(text), user=ANN))
    await asyncio.to_thread(begun.wait)
    counting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await counting
    ended = calls
    await asyncio.sleep(0.1)
    assert calls == ended
    await long_work.close()
