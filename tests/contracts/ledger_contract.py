"""What every ledger, request log and keeper of answers must do.

Subclass a contract, give it its fixture, let pytest collect it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeAlias

import pytest

from conspectus.errors import Conflict, InvalidInput, LockLost, NotFound, WriteOutcomeUnknown
from conspectus.model.connections import Connection
from conspectus.model.ids import CollectionId, JobId, SourceId, UserId
from conspectus.model.jobs import FINISHED, EmbeddingRequest, Job, JobOutcome, JobRates
from conspectus.ports.jobs import IdempotencyStore, JobPlace, JobScope, JobStore, RequestLog
from tests.support.samples import NOON, NOTES, SHELF

OTHER = CollectionId("other")
LETTERS = SourceId("letters")
ANN, BOB = UserId("ann"), UserId("bob")
MINUTE = timedelta(minutes=1)
Store: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


def job(name: str, *, minute: int = 0, **fields: Any) -> Job:
    """A job of Ann's on the shelf, asked for some minutes after noon."""
    job = Job(JobId(name), "ingest_url", ANN, SHELF, NOTES, f"title of {name}", NOON + minute * MINUTE)
    return replace(job, **fields)


async def names(ledger: JobStore, scope: JobScope) -> list[str]:
    """The ids of all jobs in scope, read in pages of two."""
    ids: list[str] = []
    after: str | None = None
    while True:
        page = await ledger.jobs(scope, after=after, limit=2)
        ids += [job.id for job in page.jobs]
        after = page.next
        if after is None:
            return ids


class LedgerContract:
    """The behaviour of every ledger. Fixture to override: `ledger`, with collections `shelf` and `other`."""

    async def test_a_job_is_stored_as_it_is(self, ledger: JobStore) -> None:
        """Every field, also those that are empty, and text of any kind."""
        full = job(
            "ü🍏", title="a'b\nc", arguments={"a": [1, {"b": None}]}, state="failed", done=2, total=3,
            attempts=4, code="c", error="e", result={"r": 1.5}, started=NOON, finished=NOON + MINUTE,
        )  # fmt: skip
        for original in (full, job("plain", source=None)):
            assert await ledger.add(original) == original
            assert await ledger.job(original.id) == original

    async def test_adding_twice_is_adding_once(self, ledger: JobStore) -> None:
        """The stored one comes back, as it is by now."""
        await ledger.add(job("one"))
        await ledger.change(JobId("one"), state="running")
        assert (await ledger.add(job("one", title="another"))).state == "running"
        assert await names(ledger, JobScope()) == ["one"]

    async def test_fields_change_unless_the_state_forbids_it(self, ledger: JobStore) -> None:
        """What is forbidden is not an error: the job comes back as it is."""
        await ledger.add(job("one"))
        ended = tuple(FINISHED)
        changed = await ledger.change(JobId("one"), unless=ended, state="cancelled", finished=NOON)
        assert (changed.state, changed.finished) == ("cancelled", NOON)
        assert await ledger.change(JobId("one"), unless=ended, state="running", done=7) == changed
        again = await ledger.change(JobId("one"), state="queued", finished=None, result={"a": 1})
        assert again == replace(changed, state="queued", finished=None, result={"a": 1})

    async def test_what_is_unknown_is_an_error(self, ledger: JobStore) -> None:
        """A job, a field, a page; the service checks limits."""
        assert await ledger.job(JobId("none")) is None
        with pytest.raises(NotFound):
            await ledger.change(JobId("none"), state="running")
        await ledger.add(job("one"))
        with pytest.raises(InvalidInput):
            await ledger.change(JobId("one"), colour="red")
        with pytest.raises(InvalidInput):
            await ledger.jobs(JobScope(), after="no cursor")

    async def test_of_many_who_end_a_job_one_does(self, ledger: JobStore) -> None:
        """Whoever comes second changes nothing."""
        await ledger.add(job("one"))
        ended = tuple(FINISHED)
        await asyncio.gather(
            *(ledger.change(JobId("one"), unless=ended, state="cancelled", code=str(n)) for n in range(8))
        )
        final = await ledger.job(JobId("one"))
        assert final is not None and final.code is not None
        assert (await ledger.change(JobId("one"), unless=ended, code="late")).code == final.code

    async def test_of_many_who_begin_an_attempt_one_does(self, ledger: JobStore) -> None:
        """The others, and whoever holds an earlier attempt, are told that they lost their turn."""
        await ledger.add(job("one"))
        begun = await asyncio.gather(
            *(ledger.change(JobId("one"), attempt=0, attempts=1, code=str(n)) for n in range(8)),
            return_exceptions=True,
        )
        assert sum(isinstance(outcome, LockLost) for outcome in begun) == 7
        with pytest.raises(LockLost):
            await ledger.change(JobId("one"), attempt=0, state="queued")
        ended = await ledger.change(JobId("one"), attempt=1, state="failed")
        again = await ledger.change(JobId("one"), unless=("failed",), attempt=0, state="queued")
        assert (ended.state, again) == ("failed", ended)

    async def test_jobs_are_listed_newest_first(self, ledger: JobStore) -> None:
        """Of the same moment in a stable order, so that paging neither repeats nor forgets one."""
        for number in range(9):
            await ledger.add(job(f"{number}", minute=number // 3))
        listed = await names(ledger, JobScope())
        assert listed == sorted(listed, key=lambda name: (int(name) // 3, name), reverse=True)
        assert len(listed) == 9

    async def test_a_scope_is_a_union_of_places(self, ledger: JobStore) -> None:
        """Whole collections, single sources, own jobs, and states on top of it."""
        await ledger.add(job("a"))
        await ledger.add(job("b", source=LETTERS, minute=1, state="failed"))
        await ledger.add(job("c", source=None, owner=BOB, minute=2))
        await ledger.add(job("d", collection=OTHER, source=None, minute=3))
        for expected, places in {
            "dcba": None, "cba": (JobPlace(SHELF),), "d": (JobPlace(OTHER),), "": (),
            "b": (JobPlace(SHELF, (LETTERS,)),), "cb": (JobPlace(SHELF, (LETTERS,), BOB),),
            "c": (JobPlace(SHELF, (), BOB),), "da": (JobPlace(OTHER), JobPlace(SHELF, (NOTES,))),
        }.items():  # fmt: skip
            assert await names(ledger, JobScope(places)) == list(expected)
        assert await names(ledger, JobScope((JobPlace(SHELF, ()),))) == []
        assert await names(ledger, JobScope(states=("failed",))) == ["b"]
        assert await names(ledger, JobScope(states=())) == []

    async def test_an_outcome_tells_partial_success_from_success(self, ledger: JobStore) -> None:
        """Failures in the result of a job that succeeded; an empty list has none."""
        failure = {"name": "a.pdf", "code": "unreadable_file", "reason": "is encrypted"}
        ends: dict[str, dict[str, Any]] = {
            "all": {"state": "succeeded", "result": {"added": 2, "failures": []}},
            "bare": {"state": "succeeded", "result": None},
            "part": {"state": "succeeded", "result": {"added": 1, "failures": [failure]}},
            "none": {"state": "failed", "result": {"failures": [failure]}},
            "stopped": {"state": "cancelled"},
            "waits": {},
        }
        for minute, (name, fields) in enumerate(ends.items()):
            await ledger.add(job(name, minute=minute, **fields))
        outcomes: tuple[JobOutcome, ...] = ("complete", "partial", "failed", "cancelled")
        listed = {outcome: await names(ledger, JobScope(outcome=outcome)) for outcome in outcomes}
        assert listed == {
            "complete": ["bare", "all"], "partial": ["part"], "failed": ["none"], "cancelled": ["stopped"],
        }  # fmt: skip
        page = await ledger.jobs(JobScope())
        assert {
            outcome: [one.id for one in page.jobs if one.outcome == outcome] for outcome in outcomes
        } == listed
        assert (await ledger.report(JobScope(), now=NOON)).partial == 1

    async def test_a_report_counts_what_is_in_scope(self, ledger: JobStore) -> None:
        """States of all, rates of what ended in the span."""
        ends = {"fresh": 10, "hours": 600, "days": 6_000, "weeks": 60_000}
        for name, minutes in ends.items():
            ended = job(name, state="failed", attempts=3, finished=NOON - minutes * MINUTE)
            await ledger.add(ended)
        await ledger.add(job("good", state="succeeded", attempts=1, finished=NOON, source=LETTERS))
        await ledger.add(job("waits"))
        await ledger.add(job("elsewhere", collection=OTHER, state="failed", finished=NOON))
        report = await ledger.report(JobScope((JobPlace(SHELF),)), now=NOON)
        assert report.states == {"failed": 4, "succeeded": 1, "queued": 1}
        assert report.rates["1h"] == JobRates(2, 1, 1)
        assert report.rates["24h"] == JobRates(3, 2, 2)
        assert report.rates["7d"] == JobRates(4, 3, 3)
        assert report.sources == {NOTES: JobRates(3, 3, 3), LETTERS: JobRates(1, 0, 0)}

    async def test_a_report_on_nothing_is_all_zeros(self, ledger: JobStore) -> None:
        """No division by zero, no missing span."""
        report = await ledger.report(JobScope(()), now=NOON)
        assert (report.states, report.sources) == ({}, {})
        assert [report.rates[span].failure_rate for span in ("1h", "24h", "7d")] == [0.0] * 3

    async def test_connections_are_kept_by_name(self, ledger: JobStore) -> None:
        """PreconditionFailed by id; a name is taken once in a collection."""
        wiki = Connection("1", SHELF, ANN, "wiki", "markdown", {"path": "/ü"})
        docs = Connection("2", SHELF, BOB, "docs", "git", cursor="c", state="error", error="e", last_run=NOON)
        for connection in (wiki, docs):
            assert await ledger.put_connection(connection) == connection
        assert list(await ledger.connections(SHELF)) == [docs, wiki]
        assert list(await ledger.connections(OTHER)) == []
        await ledger.put_connection(replace(wiki, cursor="later", state="complete"))
        assert (await ledger.connections(SHELF))[1].cursor == "later"
        with pytest.raises(Conflict):
            await ledger.put_connection(replace(wiki, id="3"))
        assert [await ledger.delete_connection(connection) for connection in ("1", "1", "none")] == [
            True,
            False,
            False,
        ]

    async def test_credentials_stand_apart_from_their_connection(self, ledger: JobStore) -> None:
        """A sync that stores its connection keeps them, and only the ones that were read are replaced."""
        wiki = Connection("1", SHELF, ANN, "wiki", "imap")
        await ledger.put_connection(wiki, sealed="first")
        await ledger.put_connection(replace(wiki, id="2", name="open"))
        await ledger.put_connection(replace(wiki, cursor="later"))
        assert [await ledger.credentials(name) for name in ("1", "2", "none")] == ["first", None, None]
        assert [c.has_credentials for c in await ledger.connections(SHELF)] == [False, True]
        assert not await ledger.put_credentials("1", "third", replaced="second")
        assert await ledger.put_credentials("1", "second", replaced="first")
        assert await ledger.put_credentials("2", "new", replaced=None)
        assert not await ledger.put_credentials("none", "new", replaced=None)
        assert [await ledger.credentials(name) for name in ("1", "2")] == ["second", "new"]
        assert await ledger.put_credentials("1", None, replaced="second")
        assert [c.has_credentials for c in await ledger.connections(SHELF)] == [True, False]
        await ledger.delete_connection("2")
        assert await ledger.credentials("2") is None


class RequestLogContract:
    """The behaviour of every log of calls to providers. Fixture to override: `log`."""

    async def test_requests_are_read_newest_first(self, log: RequestLog) -> None:
        """With ids that grow, page by page."""
        first = EmbeddingRequest(
            "embed", "success", "m", 12.5, inputs=3, tokens=40, created=NOON, user_id="ada"
        )
        second = replace(first, kind="rerank", status="error", error="HTTP 503")
        await log.add([])
        await log.add([first, second])
        await log.add([first])
        stored = list(await log.page())
        assert [replace(request, id=0) for request in stored] == [first, second, first]
        assert [request.id for request in stored] == sorted({request.id for request in stored}, reverse=True)
        assert list(await log.page(limit=2)) == stored[:2]
        assert list(await log.page(after=stored[1].id)) == stored[2:]
        with pytest.raises(InvalidInput):
            await log.page(limit=0)

    async def test_totals_are_by_kind_and_model(self, log: RequestLog) -> None:
        """Since an instant, which is included."""
        one = EmbeddingRequest("embed", "success", "m", 10.0, inputs=1, tokens=5, created=NOON)
        await log.add([one, replace(one, status="error", latency=30.0), replace(one, model="n", inputs=7)])
        await log.add([replace(one, created=NOON - MINUTE, tokens=1_000)])
        m, n = await log.totals(NOON)
        assert (m.kind, m.model, m.requests, m.errors, m.inputs, m.tokens) == ("embed", "m", 2, 1, 2, 10)
        assert (m.mean_latency, m.error_rate, n.model, n.inputs, n.error_rate) == (20.0, 50.0, "n", 7, 0.0)
        assert list(await log.totals(NOON + MINUTE)) == []


class ReplaysContract:
    """The behaviour of every keeper of answers. Fixtures: `replays`, and `store`, which stores something;
    `ended`, another process whose claims end at once, and `store_elsewhere`, which stores something there.
    """

    async def test_the_second_request_gets_the_first_ones_answer(self, replays: IdempotencyStore) -> None:
        """By person and key; another request with the same key is a mistake."""
        answer = {"status": 201, "body": "ü", "headers": [["a", "b"]]}
        assert await replays.begin("ann", "k", "f", at=NOON) is None
        await replays.finish("ann", "k", answer)
        assert await replays.begin("ann", "k", "f", at=NOON) == answer
        assert await replays.begin("bob", "k", "other", at=NOON) is None
        with pytest.raises(Conflict):
            await replays.begin("ann", "k", "other", at=NOON)

    async def test_a_request_that_still_runs_is_not_started_again(self, replays: IdempotencyStore) -> None:
        """Of many at once, one may go on; given back, the key is free."""
        claims = [replays.begin("ann", "k", "f", at=NOON) for _ in range(8)]
        outcomes = await asyncio.gather(*claims, return_exceptions=True)
        assert sum(outcome is None for outcome in outcomes) == 1
        assert sum(isinstance(outcome, Conflict) for outcome in outcomes) == 7
        await replays.finish("ann", "k", None)
        assert await replays.begin("ann", "k", "other", at=NOON) is None

    async def test_old_answers_are_forgotten(self, replays: IdempotencyStore) -> None:
        """What is younger stays."""
        for minute, key in enumerate(("old", "young")):
            await replays.begin("ann", key, "f", at=NOON + minute * MINUTE)
            await replays.finish("ann", key, {})
        assert await replays.forget(NOON + MINUTE) == 1
        assert await replays.begin("ann", "old", "g", at=NOON) is None
        assert await replays.begin("ann", "young", "f", at=NOON) == {}

    @pytest.mark.parametrize("is_queried", [True, False])
    async def test_who_died_unanswered_gives_the_key_back(
        self, replays: IdempotencyStore, ended: IdempotencyStore, is_queried: bool
    ) -> None:
        """What is still being answered is not, and what was answered is kept."""
        await ended.begin("ann", "answered", "f", at=NOON)
        await ended.finish("ann", "answered", {})
        await ended.begin("ann", "open", "f", at=NOON)
        await replays.begin("ann", "other", "f", at=NOON)
        await replays.renew()
        if not is_queried:
            assert await replays.give_back() == 1
        assert await replays.begin("ann", "open", "g", at=NOON + MINUTE) is None
        assert await replays.begin("ann", "answered", "f", at=NOON) == {}
        for name, fingerprint in (("open", "g"), ("other", "f")):
            with pytest.raises(Conflict):
                await ended.begin("ann", name, fingerprint, at=NOON)

    async def test_who_lost_a_claim_stores_and_ends_nothing(
        self, replays: IdempotencyStore, ended: IdempotencyStore, store_elsewhere: Store
    ) -> None:
        """As a process that stood still for long goes on with a request that another one answers by now."""
        await ended.begin("ann", "k", "f", at=NOON)
        await replays.begin("ann", "k", "f", at=NOON + MINUTE)
        with (
            ended.record_claim("ann", "k", at=NOON),
            ended.count_commits() as commits,
            pytest.raises(LockLost),
        ):
            await store_elsewhere()
        assert commits.possible == 0
        await ended.finish("ann", "k", {"status": 500})
        await replays.finish("ann", "k", {"status": 201})
        assert await replays.begin("ann", "k", "f", at=NOON) == {"status": 201}

    @pytest.mark.parametrize("dies", [False, True])
    async def test_what_stored_something_and_was_not_answered_is_not_done_again(
        self,
        replays: IdempotencyStore,
        ended: IdempotencyStore,
        store: Store,
        store_elsewhere: Store,
        dies: bool,
    ) -> None:
        """By whatever was begun in the block, too; not by what others store."""
        first, keep = (ended, store_elsewhere) if dies else (replays, store)
        for key in ("stored", "began", "other"):
            await first.begin("ann", key, "f", at=NOON)
        with first.record_claim("ann", "stored", at=NOON):
            await keep()
            await keep()
        with first.record_claim("ann", "began", at=NOON):
            begun = asyncio.create_task(keep())
        await begun
        await keep()
        if dies:
            assert await replays.give_back() == 1
        else:
            for key in ("stored", "began", "other"):
                await replays.finish("ann", key, None)
        for key in ("stored", "began"):
            with pytest.raises(WriteOutcomeUnknown):
                await replays.begin("ann", key, "f", at=NOON + MINUTE)
            with pytest.raises(Conflict):
                await replays.begin("ann", key, "another", at=NOON + MINUTE)
        assert await replays.begin("ann", "other", "f", at=NOON + MINUTE) is None
        assert await replays.forget(NOON + 1.5 * MINUTE) == 3
        assert await replays.begin("ann", "stored", "f", at=NOON) is None

    async def test_what_a_block_stores_is_counted(self, replays: IdempotencyStore, store: Store) -> None:
        """Of what it starts, too, and not of what others store meanwhile."""
        with replays.count_commits() as commits:
            begun = asyncio.create_task(store())
        await begun
        await store()
        assert commits.possible == 1

    async def test_an_answer_counts_for_more_than_what_was_stored(
        self, replays: IdempotencyStore, store: Store
    ) -> None:
        """And what an earlier request goes on to store is not the next one's."""
        await replays.begin("ann", "k", "f", at=NOON)
        with replays.record_claim("ann", "k", at=NOON):
            await store()
        await replays.finish("ann", "k", {"status": 201})
        assert await replays.begin("ann", "k", "f", at=NOON) == {"status": 201}
        await replays.begin("ann", "again", "f", at=NOON)
        with replays.record_claim("ann", "again", at=NOON):
            await replays.finish("ann", "again", None)
            await replays.begin("ann", "again", "f", at=NOON + MINUTE)
            await store()
        await replays.finish("ann", "again", None)
        assert await replays.begin("ann", "again", "f", at=NOON) is None
