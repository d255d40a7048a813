"""Servers killed with -9 under writers, deleters and purges over HTTP: every read fits what was done."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx
import pytest

import conspectus
from tests.faults.job_taker import SETTINGS
from tests.faults.registers import Outcome, Read, Register, Write
from tests.faults.test_server_killed import create_store_with_key, running_server
from tests.files import holding
from tests.waiting import until

REGISTERS: Final = 8
READERS: Final = 4
LIVES: Final = 8
WRITES_A_LIFE: Final = 60
AWAY: Final = ("storage_busy", "not_ready", "overloaded", "rate_limited")
"""Codes that say that nothing was done."""


@pytest.mark.parametrize(
    ("outcome", "value", "fits"),
    [
        ("done", "old", False),
        ("done", "new", True),
        ("unknown", "old", True),
        ("unknown", "new", True),
        ("refused", "old", True),
        ("refused", "new", False),
        ("done", "never", False),
        ("done", None, False),
    ],
)
def test_a_read_fits_what_was_done(outcome: Outcome, value: str | None, fits: bool) -> None:
    register = Register()
    register.writes += [Write("old", 0, 1, "done"), Write("new", 2, 3, outcome)]
    register.reads.append(Read(value, 4, 5))
    assert (register.faults() == []) is fits


@pytest.mark.parametrize(("first", "second", "fits"), [("new", "old", False), ("old", "new", True)])
def test_who_reads_later_reads_nothing_older(first: str, second: str, fits: bool) -> None:
    register = Register()
    register.writes += [Write("old", 0, 1, "done"), Write("new", 2, 9, "done")]
    register.reads += [Read(first, 3, 4), Read(second, 5, 6)]
    assert (register.faults() == []) is fits


@dataclass
class Site:
    """The servers that run, and what clients did to the registers."""

    key: str
    registers: list[Register] = field(default_factory=lambda: [Register() for _ in range(REGISTERS)])
    addresses: list[str] = field(default_factory=list)
    documents: dict[int, str] = field(default_factory=dict)
    purged: set[str] = field(default_factory=set)
    chance: random.Random = field(default_factory=lambda: random.Random(7))
    stopped: bool = False

    @property
    def done_writes(self) -> int:
        """How many writes were done."""
        return sum(write.outcome == "done" for register in self.registers for write in register.writes)

    async def wait_for_writes(self, goal: int) -> None:
        """Wait until so many writes were done."""
        await until(lambda: self.done_writes >= goal)

    async def request(self, method: str, path: str, **parts: Any) -> httpx.Response | None:
        """The answer of one of the servers; None if it was lost."""
        await until(lambda: bool(self.addresses) or self.stopped)
        if not self.addresses:
            return None
        headers = {"Authorization": f"Bearer {self.key}"}
        try:
            address = self.chance.choice(self.addresses)
            async with httpx.AsyncClient(base_url=address, headers=headers, timeout=60) as client:
                return await client.request(method, path, **parts)
        except httpx.TransportError:
            return None

    async def write(self, number: int) -> None:
        """Write, delete or purge one register, again and again."""
        register = self.registers[number]
        while not self.stopped:
            document, act = self.documents.get(number), self.chance.random()
            value = f"register{number} {uuid4().hex}" if document is None or act < 0.7 else None
            begun = time.monotonic()
            if value is not None:
                body = {"documents": [{"text": value, "key": f"register{number}"}]}
                answer = await self.request("POST", "/collections/default/documents", json=body)
            else:
                purge = {"purge": act > 0.95}
                answer = await self.request("DELETE", f"/documents/{document}", params=purge)
            outcome = outcome_of(answer)
            register.writes.append(Write(value, begun, time.monotonic(), outcome))
            if answer is not None and outcome == "done":
                self._noted(number, value, answer)

    def _noted(self, number: int, value: str | None, answer: httpx.Response) -> None:
        if value is not None:
            self.documents[number] = answer.json()[0]["id"]
        elif answer.json()["purged"]:
            values = (text.value for text in self.registers[number].writes)
            self.purged |= {text.split()[1] for text in values if text is not None}

    async def read(self) -> None:
        """Read registers by their ids and by their words."""
        while not self.stopped:
            number = self.chance.randrange(REGISTERS)
            if number not in self.documents:
                await asyncio.sleep(0.01)
                continue
            begun = time.monotonic()
            text = await (self.by_id if self.chance.random() < 0.5 else self.by_words)(number)
            if text is not LOST:
                self.registers[number].reads.append(Read(text, begun, time.monotonic()))

    async def by_id(self, number: int) -> str | None:
        """The text of a register, None if it is deleted."""
        answer = await self.request("GET", f"/documents/{self.documents[number]}/text")
        if answer is None or answer.status_code == 503:
            return LOST
        assert answer.status_code in {200, 404}, answer.text
        return answer.json()["text"] if answer.is_success else None

    async def by_words(self, number: int) -> str | None:
        """The same, as a search finds it."""
        question = {"query": f"register{number}", "limit": 1, "retrievers": ["keyword"]}
        answer = await self.request("POST", "/search", json=question)
        if answer is None or answer.status_code == 503:
            return LOST
        assert answer.is_success, answer.text
        hits = [hit["chunk"]["text"] for hit in answer.json()["hits"]]
        return next((text for text in hits if text.split()[0] == f"register{number}"), None)


LOST: Final = "lost"


def outcome_of(answer: httpx.Response | None) -> Outcome:
    """What an answer says of a write."""
    if answer is None or (not answer.is_success and answer.json()["code"] == "write_outcome_unknown"):
        return "unknown"
    assert answer.is_success or answer.json()["code"] in AWAY, answer.text
    return "done" if answer.is_success else "refused"


@asynccontextmanager
async def running_clients(site: Site) -> AsyncIterator[None]:
    """While clients write and read; one that is told what it should not be fails the test."""
    async with asyncio.TaskGroup() as group:
        for number in range(REGISTERS):
            group.create_task(site.write(number))
        for _ in range(READERS):
            group.create_task(site.read())
        try:
            yield
        finally:
            site.stopped = True


async def run_servers(site: Site, path: str | Path, servers: int) -> None:
    """Servers that are killed one by one under load, and replaced."""
    running: list[AsyncExitStack] = []
    for _ in range(LIVES + servers):
        running.append(AsyncExitStack())
        site.addresses.append(await running[-1].enter_async_context(running_server(path)))
        if len(running) == servers:
            await site.wait_for_writes(site.done_writes + WRITES_A_LIFE)
            site.addresses.pop(0)
            await running.pop(0).aclose()
    site.stopped = True
    for stack in running:
        await stack.aclose()


async def check_registers(site: Site, path: str | Path) -> None:
    """Every read fits, there were some of each kind, and index and records agree."""
    reads = [read for register in site.registers for read in register.reads]
    assert [fault for register in site.registers for fault in register.faults()] == []
    assert {read.value is None for read in reads} == {True, False}
    async with conspectus.open(path, settings=SETTINGS) as engine:
        assert (await engine.maintenance.check()).clean


@pytest.mark.slow
async def test_every_read_of_a_folder_fits_what_was_done(tmp_path: Path) -> None:
    path = tmp_path / "store"
    site = Site(await create_store_with_key(path))
    async with running_clients(site):
        await run_servers(site, path, 1)
    await check_registers(site, path)
    assert site.purged
    assert [value for value in site.purged if holding(path, value)] == []


@pytest.mark.slow
async def test_every_read_of_a_database_fits_what_was_done(postgres_url: str) -> None:
    site = Site(await create_store_with_key(postgres_url))
    async with running_clients(site):
        await run_servers(site, postgres_url, 2)
    await check_registers(site, postgres_url)
