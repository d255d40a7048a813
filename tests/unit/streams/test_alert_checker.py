"""Alerts checked along the history of changes and delivered to a real receiver, on a real store."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.contracts.alerts_contract import ANNA, HOOK, PLAIN, at, matches_of
from tests.support.samples import NOON, SHELF, SPACE, notes, prepared, shelf
from tests.support.web_server import Answer, ScriptedServer

from conspectus.errors import ProviderError, ProviderUnavailable
from conspectus.model.alerts import Alert
from conspectus.model.filter import Eq
from conspectus.model.ids import ChunkId, DocumentId, SourceId
from conspectus.model.records import Collection, Document, PreparedDocument
from conspectus.model.retries import RetryPolicy
from conspectus.ports import Vectors
from conspectus.ports.streams import AlertMatch
from conspectus.records.jobs.locks import FileHold
from conspectus.records.store import SqlRecords, open_records
from conspectus.records.streams.alerts import SqlAlerts
from conspectus.sources.web.address_policy import AddressPolicy
from conspectus.sources.web.webhook_poster import WebhookPoster
from conspectus.streams.alert_checker import Checker
from conspectus.streams.alert_delivery import HIDDEN, Deliverer
from conspectus.text.vectors import pack_rows

FIRE = replace(PLAIN, query="a fire", min_similarity=0.5)
TOWARDS = np.array([1, 0, 0, 0], dtype=np.float32)


class Store:
    """A store with a checker whose world can be changed: who sees what, and what questions mean."""

    def __init__(self, records: SqlRecords) -> None:
        self.records = records
        self.alerts = SqlAlerts(records.transactions)
        self.shows: Callable[[Document], bool] | None = lambda _document: True
        self.fault: ProviderError | None = None
        self.meant = 0
        self.now = NOON
        self.checker = self.fresh_checker()

    def fresh_checker(self) -> Checker:
        return Checker(
            self.records,
            self.alerts,
            read_check=self.read_check,
            embed_query=self.embed_query,
            clock=lambda: self.now,
        )

    async def read_check(self, _alert: Alert) -> Callable[[Document], bool] | None:
        return self.shows

    async def embed_query(self, _home: Collection, _query: str) -> Vectors:
        self.meant += 1
        if self.fault is not None:
            raise self.fault
        return TOWARDS

    async def say(self, *captions: PreparedDocument) -> None:
        await self.records.write(captions)

    async def embed(self, *cosines: float) -> None:
        waiting = await self.records.list_unembedded(SHELF, SPACE, limit=len(cosines))
        rows = np.array([[c, (1 - c * c) ** 0.5, 0, 0] for c in cosines], dtype=np.float32)
        ids = [ChunkId(chunk.chunk.id) for chunk in waiting]
        await self.records.put_vectors(SHELF, SPACE, list(zip(ids, pack_rows(rows), strict=True)))

    async def check(self) -> list[str]:
        while await self.checker.round():
            pass
        return [match.document for match in await matches_of(self.alerts)]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    records = await open_records(tmp_path / "records.sqlite")
    await records.create_collection(shelf())
    await records.put_source(notes())
    yield Store(records)
    await records.close()


def build_caption(name: str, *texts: str, start: float = 0.0, **fields) -> PreparedDocument:
    return prepared(name, *texts, kind="caption", occurred=at(start, start + 5), **fields)


async def test_words_count_at_once_and_likeness_when_there_is_a_vector(store: Store) -> None:
    await store.alerts.put(FIRE, maximum=1)
    await store.say(
        build_caption("a", "a fire!"),
        build_caption("b", "flames", start=60),
        build_caption("c", "sea", start=120),
    )
    assert await store.check() == ["a"]
    assert store.meant == 0
    await store.embed(0.9, 0.6, 0.2)
    assert await store.check() == ["a", "b"]
    assert store.meant == 1
    assert [match.reason for match in await matches_of(store.alerts)] == ["words: fire", "similarity: 0.60"]


async def test_only_captions_and_only_what_came_later(store: Store) -> None:
    await store.say(build_caption("old", "a fire"))
    await store.alerts.put(FIRE, maximum=1)
    await store.embed(0.9)
    await store.say(prepared("page", "a fire"), prepared("event", "a fire", kind="event"))
    assert await store.check() == []
    await store.say(build_caption("new", "a fire", start=60))
    assert await store.check() == ["new"]


async def test_words_may_stand_in_different_pieces(store: Store) -> None:
    await store.alerts.put(replace(FIRE, query="smoke in the harbour"), maximum=1)
    await store.say(build_caption("a", "smoke over ", "the harbour"), build_caption("b", "smoke", start=60))
    assert await store.check() == ["a"]


async def test_fields_and_streams_narrow(store: Store) -> None:
    await store.records.put_source(notes("gate"))
    where = replace(FIRE, id="w", name="w", query="", filter=Eq(("n",), 2))
    await store.alerts.put(replace(FIRE, streams=(SourceId("gate"),)), maximum=2)
    await store.alerts.put(where, maximum=2)
    at_gate = build_caption("g", "a fire", source=SourceId("gate"))
    await store.say(build_caption("a", "a fire", metadata={"n": 2}), at_gate)
    assert await store.check() == ["g", "a"] or await store.check() == ["a", "g"]
    assert {match.document: match.alert.id for match in await matches_of(store.alerts)} == {
        "a": "w",
        "g": "a",
    }


async def test_what_the_owner_may_not_see_at_this_moment_is_passed_over(store: Store) -> None:
    await store.alerts.put(FIRE, maximum=1)
    store.shows = None
    await store.say(build_caption("a", "a fire"))
    assert await store.check() == []
    store.shows = lambda document: document.author == "ann"
    await store.say(build_caption("b", "a fire"), build_caption("c", "a fire", start=60, author="ann"))
    assert await store.check() == ["c"]
    store.shows = lambda _document: True
    assert await store.check() == ["c"]


async def test_a_provider_that_is_away_delays_and_loses_nothing(store: Store) -> None:
    await store.alerts.put(FIRE, maximum=1)
    store.fault = ProviderUnavailable("x", "is away")
    await store.say(build_caption("a", "a fire"), build_caption("b", "flames", start=60))
    await store.embed(0.1, 0.9)
    assert await store.check() == ["a"]
    assert await store.alerts.behind() != []
    store.fault = None
    store.checker = store.fresh_checker()
    assert await store.check() == ["a", "b"]
    assert await store.alerts.behind() == []


async def test_a_question_that_is_refused_still_has_its_words(store: Store) -> None:
    await store.alerts.put(FIRE, maximum=1)
    store.fault = ProviderError("x", "refused")
    await store.say(build_caption("a", "flames"), build_caption("b", "fire", start=60))
    await store.embed(0.9, 0.9)
    assert await store.check() == ["b"]
    assert await store.alerts.behind() == []


async def test_a_long_history_in_parts_and_captions_gone_meanwhile(store: Store) -> None:
    await store.alerts.put(FIRE, maximum=1)
    for number in range(450):
        await store.say(
            build_caption(f"{number:03}", "a fire" if number % 90 == 0 else "sea", start=60 * number)
        )
    await store.records.delete([DocumentId("090"), DocumentId("091")])
    assert await store.check() == ["000", "180", "270", "360"]


async def test_an_edit_is_looked_at_again_and_told_once(store: Store) -> None:
    await store.alerts.put(FIRE, maximum=1)
    await store.say(build_caption("a", "sea"))
    await store.say(build_caption("a", "a fire at sea"))
    assert await store.check() == ["a"]
    await store.say(build_caption("a", "a great fire at sea", title="another"))
    assert await store.check() == ["a"]


class Sending:
    """A deliverer to a local server, with a clock of its own."""

    def __init__(self, store: Store, server: ScriptedServer) -> None:
        self.store = store
        self.hook = f"{server.base}/hook"
        self.hidden: set[str] = set()
        self.poster = WebhookPoster(AddressPolicy.from_entries(["127.0.0.1"]), seconds=5)
        retry_policy = RetryPolicy(attempts=3, first_wait=10.0, chance=lambda: 1.0)
        self.deliverer = Deliverer(
            store.alerts, self.poster, body=self.body, retry_policy=retry_policy, clock=lambda: store.now
        )

    async def body(self, event: AlertMatch) -> bytes | None:
        return None if event.document in self.hidden else str(event.document).encode()

    async def round(self) -> list[tuple[str, int]]:
        await self.deliverer.round(FileHold(mine=True))
        for _ in range(1_000):
            if await self.store.alerts.due("a", now=self.store.now) is None:
                break
            await asyncio.sleep(0.01)
        await self.deliverer.stop(grace=60)
        return [(match.delivery, match.attempts) for match in await matches_of(self.store.alerts)]


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with ScriptedServer({"/hook": Answer(b"")}) as running:
        yield running


@pytest.fixture
async def sending(store: Store, server: ScriptedServer) -> AsyncIterator[Sending]:
    sender = Sending(store, server)
    await store.alerts.put(replace(FIRE, webhook=sender.hook), maximum=1)
    await store.say(build_caption("a", "a fire"))
    await store.check()
    yield sender
    await sender.poster.close()


async def test_what_is_delivered_is_sent_once(sending: Sending, server: ScriptedServer) -> None:
    assert await sending.round() == [("delivered", 1)]
    assert await sending.round() == [("delivered", 1)]
    [event] = await matches_of(sending.store.alerts)
    assert [(request.body, request.headers["conspectus-id"]) for request in server.requests] == [
        (b"a", event.id)
    ]


async def test_a_receiver_that_is_away_is_tried_again_and_then_no_more(
    sending: Sending, server: ScriptedServer
) -> None:
    server.answers["/hook"] = Answer(b"", 503)
    assert await sending.round() == [("pending", 1)]
    assert await sending.round() == [("pending", 1)]
    sending.store.now += timedelta(seconds=10)
    assert await sending.round() == [("pending", 2)]
    sending.store.now += timedelta(seconds=19)
    assert await sending.round() == [("pending", 2)]
    sending.store.now += timedelta(seconds=1)
    assert await sending.round() == [("failed", 3)]
    assert len({request.headers["conspectus-id"] for request in server.requests}) == 1
    assert len(server.requests) == 3
    assert "HTTP 503" in str((await matches_of(sending.store.alerts))[0].error)


async def test_a_refusal_for_good_fails_at_once(sending: Sending, server: ScriptedServer) -> None:
    server.answers["/hook"] = Answer(b"", 410)
    assert await sending.round() == [("failed", 1)]


async def test_what_may_not_be_seen_any_more_is_not_sent(sending: Sending, server: ScriptedServer) -> None:
    sending.hidden.add("a")
    assert await sending.round() == [("failed", 0)]
    assert (await matches_of(sending.store.alerts))[0].error == HIDDEN
    assert server.requests == []


async def test_one_slow_receiver_holds_up_no_other(sending: Sending, server: ScriptedServer) -> None:
    other = replace(FIRE, id="b", name="b", webhook=HOOK.replace("https://example.com", server.base))
    await sending.store.alerts.put(other, maximum=2)
    await sending.store.say(build_caption("b", "a fire", start=60))
    await sending.store.check()
    server.answers["/hook"] = lambda request: Answer(b"", delay=0.0 if "token" in request.target else 120)
    await sending.deliverer.round(FileHold(mine=True))
    for _ in range(500):
        await sending.deliverer.round(FileHold(mine=True))
        if server.count("/hook") == 2 and not await sending.store.alerts.due("b", now=sending.store.now):
            break
    deliveries = await matches_of(sending.store.alerts, alert="b")
    assert [match.delivery for match in deliveries] == ["delivered"]
    waiting = await matches_of(sending.store.alerts, alert="a")
    assert [match.delivery for match in waiting] == ["pending", "pending"]
    await sending.deliverer.stop(grace=0)
    assert [match.alert.owner for match in waiting] == [ANNA, ANNA]
