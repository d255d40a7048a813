"""How many requests a key may have in a minute, and writes sent twice, over two servers of one store."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import httpx
import pytest
from sqlalchemy import select

from conspectus import bootstrap
from conspectus.records.core.database_clock import DatabaseTime
from conspectus.records.jobs.rates import MINUTE_MICROSECONDS, SqlRateCounters
from conspectus.records.store import SqlRecords, open_records
from conspectus.web.app import application
from conspectus.web.rate_limits import quota_step
from tests.web.conftest import SETTINGS, Site

LIMIT = 40
Sites: TypeAlias = list[Site]


@pytest.fixture(params=["folder", "postgresql"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A store for both servers."""
    if request.param == "folder":
        return str(tmp_path / "store")
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
async def sites(address: str, tmp_path: Path) -> AsyncIterator[Sites]:
    async with AsyncExitStack() as opened:
        both = []
        for name in ("one", "two"):
            cache = str(tmp_path / name)
            settings = replace(SETTINGS, cache=cache, key_requests_per_minute=LIMIT, database_connections=3)
            engine = await opened.enter_async_context(bootstrap.open(address, settings=settings))
            both.append(Site(application(engine, settings), engine, settings))
        await both[0].engine.people.create_user("ada")
        yield both


@pytest.fixture
async def records(address: str, tmp_path: Path) -> AsyncIterator[SqlRecords]:
    opened = await open_records(address if "://" in address else tmp_path / "records.sqlite", connections=3)
    yield opened
    await opened.close()


async def current_minute(store: SqlRecords) -> int:
    now = await store.transactions.read(
        lambda connection: connection.execute(select(DatabaseTime())).scalar_one()
    )
    return now // MINUTE_MICROSECONDS


async def ask_in_turn(sites: Sites, secret: str, times: int) -> list[httpx.Response]:
    """The answers to so many requests at once, to both servers in turn."""
    async with sites[0].client(secret) as one, sites[1].client(secret) as two:
        requests = [(one, two)[number % 2].get("/collections") for number in range(times)]
        return await asyncio.gather(*requests)


async def test_a_key_has_so_many_requests_of_all_servers_together(sites: Sites, records: SqlRecords) -> None:
    owner = sites[0].engine
    while True:
        began = await current_minute(records)
        secret, other = [(await owner.keys.create("ada")).secret for _ in range(2)]
        answers = await ask_in_turn(sites, secret, 2 * LIMIT)
        others = await ask_in_turn(sites, other, 2)
        if began == await current_minute(records):
            break
    assert Counter(answer.status_code for answer in answers) == {200: LIMIT, 429: LIMIT}
    refused = next(answer for answer in answers if answer.status_code == 429)
    assert refused.json()["code"] == "rate_limited"
    assert refused.json()["limit"] == LIMIT
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert [answer.status_code for answer in others] == [200, 200]


async def test_whoever_needs_no_key_is_not_counted(tmp_path: Path) -> None:
    settings = replace(SETTINGS, key_requests_per_minute=1)
    async with AsyncExitStack() as opened:
        engine = await opened.enter_async_context(bootstrap.open(tmp_path, settings=settings))
        site = Site(application(engine, settings), engine, settings)
        client = await opened.enter_async_context(site.client())
        for _ in range(3):
            assert (await client.get("/collections")).status_code == 200


async def test_no_more_is_given_than_there_is_and_each_minute_anew(records: SqlRecords) -> None:
    allowances = SqlRateCounters(records.transactions)
    while True:
        began = await current_minute(records)
        leases = await asyncio.gather(*(allowances.take(f"key {began}", 3, maximum=10) for _ in range(8)))
        other = await allowances.take(f"other {began}", 10, maximum=10)
        if began == await current_minute(records):
            break
    assert sorted(lease.granted for lease in leases) == [False] * 5 + [True] * 3
    assert all(0 < lease.seconds <= 60 for lease in leases)
    assert other.granted


@pytest.mark.parametrize("maximum", [1, 2, 19, 20, 40, 60, 97, 100, 600, 6_000])
def test_portions_leave_nothing_over(maximum: int) -> None:
    assert maximum % quota_step(maximum) == 0
    assert quota_step(maximum) <= max(1, maximum // 20)


async def test_a_write_that_comes_to_both_at_once_is_done_once(sites: Sites) -> None:
    secret = (await sites[0].engine.keys.create("ada")).secret
    async with sites[0].client(secret) as client:
        assert (await client.post("/collections", json={"name": "wiki"})).status_code == 201
    body = {"documents": [{"text": "said once"}]}
    for number in range(3):
        header = {"Idempotency-Key": f"k{number}"}
        async with sites[0].client(secret, **header) as one, sites[1].client(secret, **header) as two:
            answers = await asyncio.gather(
                *(client.post("/collections/wiki/documents", json=body) for client in (one, two) * 2)
            )
        codes = Counter(answer.status_code for answer in answers)
        assert codes.keys() <= {200, 201, 409}
        done = [answer for answer in answers if answer.status_code != 409]
        assert len({answer.text for answer in done}) == 1
    assert await sites[1].engine.documents.count(collection="ada/wiki") == 3
