"""PostgreSQL goes away between a commit and the answer: no answer may say that nothing was done."""

import asyncio
import itertools
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import parse_qs, quote, urlsplit

import httpx
import psycopg
import pytest

from conspectus import Settings, bootstrap
from conspectus.testing.chat_models import ScriptedChatModel
from conspectus.testing.embedders import HashedEmbedder
from conspectus.web.app import application
from tests.web.operations import PREFIX, WRITES, World

SHARES: Final = 4
WRITING: Final = b"pg_advisory_xact_lock"
COMMITTED: Final = b"COMMIT\x00"
SOCKET: Final = ".s.PGSQL.5432"
ENDS: Final = re.compile(r"^DELETE|delete|split|merge|rotate|forget|cancel|retry|reembed|PATCH /users")
"""Requests that leave nothing of what they name for another one."""
BLOCK: Final = 1 << 16
APART: Final = ("allowances", "conspectus_indexes", "leases", "replays")
"""Tables that say nothing of what requests are about."""


class Wire:
    """The way to PostgreSQL, which breaks after the server's answer to one of the next commits that write."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._talks: set[asyncio.Task[None]] = set()
        self._left = 0
        self.broken = False

    def break_after(self, commits: int) -> None:
        """Let so many commits through, and nothing after the last of them."""
        self._left = commits

    def mend(self) -> None:
        """Let everything through."""
        self._left, self.broken = 0, False

    async def close(self) -> None:
        """End every talk."""
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection."""
        talk = asyncio.ensure_future(self._talk(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.broken:
            writer.close()
            return
        answers, requests = await asyncio.open_unix_connection(self._target)
        writes = asyncio.Event()
        both = [
            asyncio.create_task(self._pump_requests(reader, requests, writes)),
            asyncio.create_task(self._pump_answers(answers, writer, writes)),
        ]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in both:
                pump.cancel()
            await asyncio.gather(*both, return_exceptions=True)
            for end in (writer, requests):
                end.close()

    async def _pump_requests(
        self, reader: asyncio.StreamReader, to: asyncio.StreamWriter, writes: asyncio.Event
    ) -> None:
        while data := await reader.read(BLOCK):
            if WRITING in data:
                writes.set()
            to.write(data)
            await to.drain()

    async def _pump_answers(
        self, answers: asyncio.StreamReader, to: asyncio.StreamWriter, writes: asyncio.Event
    ) -> None:
        while data := await answers.read(BLOCK):
            to.write(data)
            await to.drain()
            if COMMITTED in data and writes.is_set():
                writes.clear()
                self._left -= 1
                if self._left == 0:
                    self._break()
                    return

    def _break(self) -> None:
        self.broken = True
        for talk in self._talks - {asyncio.current_task()}:
            talk.cancel()


@asynccontextmanager
async def running_wire(url: str, folder: Path) -> AsyncIterator[tuple[Wire, str]]:
    """A wire to the server of a URL, and the URL through it."""
    there = urlsplit(url)
    wire = Wire(f"{parse_qs(there.query)['host'][0]}/{SOCKET}")
    async with await asyncio.start_unix_server(wire.accept, folder / SOCKET):
        yield wire, f"{there.scheme}://{there.netloc}{there.path}?host={quote(str(folder), safe='')}"
        await wire.close()


@asynccontextmanager
async def open_as_owner(url: str, folder: Path) -> AsyncIterator[httpx.AsyncClient]:
    """The owner account of a store, which has all that operations ask for and does nothing by itself."""
    # A broken commit can leave a lease behind; the next request that needs it waits until it has run out.
    soon = {"lease_seconds": 1, "lock_timeout_seconds": 5}
    base_settings = Settings(embedder="none", run_background_jobs="off", log_level="critical", **soon)
    settings = replace(base_settings, cache=str(folder))
    models = {"embedder": HashedEmbedder(), "chat_model": ScriptedChatModel()}
    async with bootstrap.open(url, settings=settings, **models) as engine:
        owner = await engine.keys.create_first()
        headers = {"Authorization": f"Bearer {owner.secret}"}
        transport = httpx.ASGITransport(application(engine, settings))
        address = f"http://localhost{PREFIX}"
        async with httpx.AsyncClient(transport=transport, base_url=address, headers=headers) as client:
            yield client


def hash_tables(connection: psycopg.Connection) -> dict[str, str]:
    """A hash of every table that says what is stored."""
    tables = connection.execute(
        "SELECT relname FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    names = [name for (name,) in tables if name not in APART and not name.startswith("index_")]
    count = "SELECT coalesce(md5(string_agg(t::text, ',' ORDER BY t::text)), '') FROM {} t"
    return {name: connection.execute(count.format(name)).fetchone()[0] for name in names}


async def request_after(
    commits: int, label: str, world: World, wire: Wire, beside: psycopg.Connection
) -> str | None:
    """The answer to a request whose server loses its database after so many commits; None: it made fewer."""
    request = await world.request(label, WRITES[label])
    before = await asyncio.to_thread(hash_tables, beside)
    wire.break_after(commits)
    answer = await request.sent(world.client)
    broke = wire.broken
    wire.mend()
    if not broke:
        return None
    if answer.is_success:
        return "done"
    code: str = answer.json()["code"]
    changed = [
        name for name, row in (await asyncio.to_thread(hash_tables, beside)).items() if before[name] != row
    ]
    return f"{code} although {changed} changed" if changed and code != "write_outcome_unknown" else code


async def request_repeatedly(
    label: str, world: World, wire: Wire, beside: psycopg.Connection
) -> AsyncIterator[str]:
    """The answers to a request when its server loses its database after one commit, two, and so on."""
    for commits in itertools.count(1):
        once = World(world.client) if ENDS.search(label) else world
        answer = await request_after(commits, label, once, wire, beside)
        if answer is None:
            return
        yield f"{label}, commit {commits}: {answer}"


@pytest.mark.parametrize("share", range(SHARES))
async def test_no_answer_says_that_nothing_was_done(
    postgres_url: str, tmp_path_factory: pytest.TempPathFactory, share: int
) -> None:
    folder = tmp_path_factory.mktemp("s")
    beside = psycopg.connect(postgres_url, autocommit=True)
    async with running_wire(postgres_url, folder) as (wire, url), open_as_owner(url, folder) as client:
        assert (await client.get("/me")).is_success
        world = World(client)
        answers = [
            answer
            for label in list(WRITES)[share::SHARES]
            async for answer in request_repeatedly(label, world, wire, beside)
        ]
    beside.close()
    assert [answer for answer in answers if "although" in answer] == []
    assert any(answer.endswith("done") for answer in answers)
