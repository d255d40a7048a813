"""Execution of a job on a ledger in memory, and leases between processes."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from tests.contracts.jobs_contract import Site
from tests.contracts.ledger_contract import job
from tests.support.in_memory_jobs import MemoryLedger

from conspectus.errors import (
    ConspectusError,
    FetchFailed,
    ForbiddenAddress,
    InvalidInput,
    LockLost,
    NotFound,
    Overloaded,
    PermissionDenied,
    ProviderError,
    ProviderUnavailable,
    StorageBusy,
    StorageError,
    TooLarge,
    UnreadableFile,
    UnsupportedContent,
)
from conspectus.ingest.in_process_jobs import InProcessJobs
from conspectus.ingest.job_execution import MAX_STARTS, Outcome, Runner, Tell, Work, fate
from conspectus.ingest.job_worker import ORPHAN_AGE, JobWorker
from conspectus.model.ids import JobId
from conspectus.model.jobs import FINISHED, Job, Upload
from conspectus.model.retries import RetryPolicy
from conspectus.ports.jobs import Jobs
from conspectus.records.jobs.locks import FileHold
from conspectus.sources.files.job_files import LocalJobFiles

ONE = JobId("one")


@dataclass
class Bench:
    """A runner with everything that can be seen of it."""

    ledger: MemoryLedger = field(default_factory=MemoryLedger)
    waits: list[float] = field(default_factory=list)
    cleaned: list[str] = field(default_factory=list)
    starts: int = 0
    refusals: int = 0

    def runner(self, work: Work) -> Runner:
        async def counted(job: Job, tell: Tell) -> Outcome:
            self.starts += 1
            return await work(job, tell)

        async def clean_up(job: JobId) -> None:
            self.cleaned.append(job)

        async def sleep(seconds: float) -> None:
            self.waits.append(seconds)

        retry_policy = RetryPolicy(3, first_wait=1.0, max_wait=5.0, sleep=sleep, chance=lambda: 1.0)
        return Runner(
            self.ledger, counted, clean_up, lambda: datetime.now(UTC), retry_policy, alone=self.alone
        )

    @asynccontextmanager
    async def alone(self, _: JobId) -> AsyncIterator[FileHold]:
        """The turn, after as many refusals as there should be."""
        self.refusals -= 1
        yield FileHold(mine=self.refusals < 0)

    async def run(self, work: Work) -> Job:
        await self.ledger.add(job("one"))
        await self.runner(work)(ONE)
        return await self.now()

    async def now(self) -> Job:
        job = await self.ledger.job(ONE)
        assert job is not None
        return job


def fail_first(*faults: Exception) -> Work:
    """Work that fails with each of these in turn, and then goes well."""
    left = list(faults)

    async def work(_: Job, tell: Tell) -> Outcome:
        if left:
            raise left.pop(0)
        return Outcome({"fine": True})

    return work


async def succeed(_: Job, tell: Tell) -> Outcome:
    return Outcome()


async def run_forever(_: Job, tell: Tell) -> Outcome:
    await asyncio.Event().wait()
    return Outcome()


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (FetchFailed("u", "r", status=500, passing=True), "again"),
        (FetchFailed("u", "r", passing=True), "again"),
        (FetchFailed("u", "r", status=429, passing=True), "again"), (FetchFailed("u", "r"), "failed"),
        (FetchFailed("u", "r", status=404), "cancelled"), (FetchFailed("u", "r", status=302), "failed"),
        (FetchFailed("u", "r", status=410, passing=True), "cancelled"), (ForbiddenAddress("u"), "failed"),
        (UnsupportedContent("p", "r"), "cancelled"), (UnreadableFile("p", "r"), "failed"),
        (ProviderUnavailable("p", "r"), "again"), (ProviderError("p", "r"), "failed"),
        (StorageBusy("s"), "again"), (StorageError("s"), "failed"), (Overloaded("o"), "again"),
        (InvalidInput("f", "r"), "failed"), (TooLarge("f", size=2, limit=1), "failed"),
        (NotFound("k", "n"), "failed"), (PermissionDenied("a", "n"), "failed"), (ValueError("x"), "failed"),
    ],
)  # fmt: skip
def test_every_error_has_its_fate(fault: Exception, expected: str) -> None:
    assert fate(fault) == expected


async def test_a_job_that_goes_well_has_a_result() -> None:
    bench = Bench()
    done = await bench.run(fail_first())
    assert (done.state, done.attempts, done.result, done.error) == ("succeeded", 1, {"fine": True}, None)
    assert done.started is not None and done.finished is not None
    assert (bench.waits, bench.cleaned) == ([], ["one"])


async def test_what_may_pass_is_tried_again_after_a_while() -> None:
    bench = Bench()
    done = await bench.run(fail_first(StorageBusy("busy"), ProviderUnavailable("p", "r", retry_after=99.0)))
    assert (done.state, done.attempts, done.code, done.error) == ("succeeded", 3, None, None)
    assert bench.waits == [1.0, 5.0]


async def test_patience_ends_with_the_last_error() -> None:
    bench = Bench()
    done = await bench.run(fail_first(*[Overloaded(f"busy {n}", retry_after=0.5) for n in range(9)]))
    assert (done.state, done.attempts, done.code) == ("failed", 3, "overloaded")
    assert done.error is not None and "busy 2" in done.error
    assert (bench.waits, bench.cleaned) == ([0.5, 0.5], ["one"])


async def test_a_fault_of_the_program_ends_the_job_without_its_words() -> None:
    bench = Bench()
    done = await bench.run(fail_first(KeyError("s3cr3t")))
    assert (done.state, done.code, bench.starts) == ("failed", "internal_error", 1)
    assert done.error is not None and "s3cr3t" not in done.error and "KeyError" in done.error


async def test_a_job_may_report_and_fail_all_the_same() -> None:
    async def work(_: Job, tell: Tell) -> Outcome:
        return Outcome({"failures": 3}, UnsupportedContent("a.png", "a picture"))

    done = await Bench().run(work)
    assert (done.state, done.code, done.result) == ("cancelled", "unsupported_content", {"failures": 3})


async def test_long_messages_are_cut() -> None:
    done = await Bench().run(fail_first(ConspectusError("x" * 10_000)))
    assert done.error is not None and len(done.error) == 500


async def test_progress_is_written_now_and_then() -> None:
    bench = Bench()
    changes = 0

    class Counting(MemoryLedger):
        async def change(self, job: JobId, **fields: object) -> Job:
            nonlocal changes
            changes += 1
            return await super().change(job, **fields)

    async def work(_: Job, tell: Tell) -> Outcome:
        for number in range(2_000):
            tell(number + 1, 2_000)
            await asyncio.sleep(0)
        return Outcome()

    bench.ledger = Counting()
    done = await bench.run(work)
    assert (done.state, done.done, done.total) == ("succeeded", 2_000, 2_000)
    assert changes < 100


async def test_a_job_hears_that_it_was_cancelled_elsewhere() -> None:
    bench = Bench()
    await bench.ledger.add(job("one"))
    running = asyncio.ensure_future(bench.runner(run_forever)(ONE))
    await Site().until(lambda: bench.starts > 0)
    await bench.ledger.change(ONE, state="cancelled", finished=datetime.now(UTC))
    await asyncio.wait_for(running, 30)
    assert ((await bench.now()).state, bench.cleaned) == ("cancelled", ["one"])


async def test_an_interrupted_job_waits_again_and_keeps_what_it_needs() -> None:
    bench = Bench()
    await bench.ledger.add(job("one"))
    running = asyncio.ensure_future(bench.runner(run_forever)(ONE))
    await Site().until(lambda: bench.starts > 0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ((await bench.now()).state, bench.cleaned) == ("queued", [])
    await bench.runner(fail_first())(ONE)
    assert ((await bench.now()).state, (await bench.now()).attempts) == ("succeeded", 2)


@pytest.mark.parametrize("state", sorted(FINISHED))
async def test_what_has_ended_is_left_alone(state: str) -> None:
    bench = Bench()
    await bench.ledger.add(job("one", state=state))
    await bench.runner(run_forever)(ONE)
    assert (bench.starts, bench.cleaned, (await bench.now()).state) == (0, ["one"], state)


async def test_a_job_that_is_gone_is_no_trouble() -> None:
    bench = Bench()
    await bench.runner(run_forever)(ONE)
    assert (bench.starts, bench.cleaned) == (0, ["one"])


async def test_a_job_that_takes_its_process_down_is_given_up() -> None:
    bench = Bench()
    await bench.ledger.add(job("one", attempts=MAX_STARTS, state="running"))
    await bench.runner(run_forever)(ONE)
    ended = await bench.now()
    assert (ended.state, bench.starts) == ("failed", 0)
    assert f"started {MAX_STARTS} times" in (ended.error or "")


@asynccontextmanager
async def take_turn() -> AsyncIterator[FileHold]:
    yield FileHold(mine=True)


def make_worker(bench: Bench, files: LocalJobFiles, *, ahead: timedelta = timedelta()) -> JobWorker:
    async def open_jobs() -> Jobs:
        return InProcessJobs(workers=2)

    def clock() -> datetime:
        return datetime.now(UTC) + ahead

    return JobWorker(bench.ledger, files, turn=take_turn, open_jobs=open_jobs, clock=clock)


async def test_jobs_that_nobody_submitted_are_found(tmp_path: Path) -> None:
    """As after a crash between the row and the queue; more of them than a page holds."""
    bench = Bench()
    for number in range(120):
        await bench.ledger.add(job(f"{number}", minute=number, state="queued" if number % 2 else "running"))
    serving = make_worker(bench, LocalJobFiles(tmp_path))
    await serving.start(bench.runner(fail_first()))
    await Site().until(lambda: bench.starts == 120)
    await serving.close(grace=30)
    assert sorted(bench.cleaned) == sorted(f"{number}" for number in range(120))


@pytest.mark.parametrize("ahead", [timedelta(), 2 * ORPHAN_AGE])
async def test_what_was_kept_for_nobody_is_swept_away(tmp_path: Path, ahead: timedelta) -> None:
    bench, files = Bench(), LocalJobFiles(tmp_path)
    await bench.ledger.add(job("ended", state="failed"))
    for name in ("ended", "never"):
        await files.store_secret(JobId(name), {"headers": {"a": "b"}})
        await files.store_files(JobId(name), [Upload("a", b"b")])
    serving = make_worker(bench, files, ahead=ahead)
    await serving.start(bench.runner(fail_first()))
    await Site().until(lambda: not (tmp_path / "secrets" / "ended").exists())
    await serving.close(grace=30)
    assert set(await files.holders()) == (set() if ahead else {"never"})


async def test_a_job_is_run_when_its_turn_comes() -> None:
    bench = Bench(refusals=2)
    assert (await bench.run(succeed)).state == "succeeded"
    assert (bench.starts, bench.refusals) == (1, -1)


async def run_overtaken(bench: Bench, then: Callable[[], None]) -> None:
    """Run a job that another process begins again meanwhile, as this one was not heard of."""

    async def slow(_: Job, tell: Tell) -> Outcome:
        await bench.ledger.change(ONE, attempts=2)
        then()
        await asyncio.sleep(60)
        return Outcome()

    await bench.ledger.add(job("one"))
    await bench.runner(slow)(ONE)


async def test_who_stood_still_leaves_a_job_to_whoever_took_it_over() -> None:
    bench = Bench()
    with pytest.raises(LockLost):
        await run_overtaken(bench, lambda: None)
    assert ((await bench.now()).state, (await bench.now()).attempts, bench.cleaned) == ("running", 2, [])


async def test_who_stood_still_does_not_give_back_what_another_runs() -> None:
    bench, begun = Bench(), asyncio.Event()
    running = asyncio.create_task(run_overtaken(bench, begun.set))
    await begun.wait()
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    assert ((await bench.now()).state, bench.cleaned) == ("running", [])


async def test_who_stood_still_finds_a_job_that_has_ended_and_changes_nothing() -> None:
    bench = Bench()

    async def late(_: Job, tell: Tell) -> Outcome:
        await bench.ledger.change(ONE, attempts=2, state="succeeded", result={"by": "another"})
        return Outcome({"by": "late"})

    assert (await bench.run(late)).result == {"by": "another"}
