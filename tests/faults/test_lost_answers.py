"""Writes whose answers are lost on the way: the client sends them again, and the server does them once."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

import conspectus
from conspectus import NewDocument, RemoteEngine, Settings
from conspectus.errors import ServerUnavailable
from conspectus.model.access import Principal
from conspectus.model.jobs import Upload
from conspectus.model.records import Receipt
from conspectus.web.app import application
from tests.support.served import served

SETTINGS = replace(Settings(), embedder="none", log_level="critical")
BLOCK = 1 << 16


class Cable:
    """A way to a server that loses the next `losing` answers, after the server gave them."""

    def __init__(self, port: int) -> None:
        self.losing = 0
        self.lost = 0
        self._port = port
        self._talks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def laid(self) -> AsyncIterator[str]:
        async with await asyncio.start_server(self._accept, "127.0.0.1", 0) as server:
            yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            for talk in self._talks:
                talk.cancel()
            await asyncio.gather(*self._talks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.ensure_future(self._talk(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, requests = await asyncio.open_connection("127.0.0.1", self._port)
        asking = asyncio.create_task(pump(reader, requests))
        try:
            while answer := await answers.read(BLOCK):
                if self.losing:
                    self.losing, self.lost = self.losing - 1, self.lost + 1
                    return
                writer.write(answer)
                await writer.drain()
        finally:
            asking.cancel()
            for stream in (writer, requests):
                stream.close()
            await asyncio.gather(asking, return_exceptions=True)


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(BLOCK):
        writer.write(data)
        await writer.drain()


@asynccontextmanager
async def open_through_cable(folder: Path) -> AsyncIterator[tuple[RemoteEngine, Cable]]:
    async with conspectus.open(folder, settings=SETTINGS) as local:
        first = await local.keys.create_first()
        assert first is not None
        async with served(application(local, SETTINGS)) as url:
            cable = Cable(int(url.rpartition(":")[2]))
            async with (
                cable.laid() as way,
                conspectus.connect(way, api_key=first.secret, settings=SETTINGS) as remote,
            ):
                yield remote, cable


async def test_documents_are_written_once(tmp_path: Path) -> None:
    async with open_through_cable(tmp_path) as (engine, cable):
        await engine.collections.get_or_create()
        cable.losing = 2
        written = await engine.add(["the same text, twice", "the same text, twice"])
        assert [document.outcome for document in written] == ["added", "added"]
        assert (cable.lost, await engine.documents.count()) == (2, 2)
        read = await engine.documents.get(written[0].id)
        cable.losing = 1
        await engine.documents.update(read.id, if_match=read.fingerprint, title="changed")
        assert (await engine.documents.get(read.id)).title == "changed"
        cable.losing = 1
        assert await engine.documents.delete(read.id) == Receipt(documents=1, chunks=1)
        assert (cable.lost, await engine.documents.count()) == (4, 1)


async def test_names_are_taken_once(tmp_path: Path) -> None:
    async with open_through_cable(tmp_path) as (engine, cable):
        for number, write in enumerate(
            (
                engine.collections.create("wiki"),
                engine.people.create_user("ann"),
                engine.people.create_group("editors"),
                engine.collections.update("wiki", name="book"),
                engine.access.grant("book", Principal("user", "ann"), "viewer"),
            )
        ):
            cable.losing = 1
            await write
            assert cable.lost == number + 1
        cable.losing = 1
        assert await engine.access.revoke("book", Principal("user", "ann")) is True


async def test_files_are_taken_in_once(tmp_path: Path) -> None:
    async with open_through_cable(tmp_path / "data") as (engine, cable):
        cable.losing = 1
        job = await engine.jobs.ingest_files([Upload("a.md", b"# Ferries"), Upload("b.md", b"# Boats")])
        assert (await engine.jobs.wait(job.id)).state == "succeeded"
        assert [listed.id for listed in (await engine.jobs.list()).jobs] == [job.id]
        assert (cable.lost, await engine.documents.count()) == (1, 2)


async def test_a_key_that_was_lost_is_said_to_be(tmp_path: Path) -> None:
    async with open_through_cable(tmp_path) as (engine, cable):
        cable.losing = 1
        with pytest.raises(ServerUnavailable, match="the connection was lost"):
            await engine.keys.create(label="lost")
        assert [key.label for key in await engine.keys.list()] == ["first key", "lost"]


async def test_a_large_batch_goes_through_whole(tmp_path: Path) -> None:
    async with open_through_cable(tmp_path) as (engine, cable):
        await engine.collections.get_or_create()
        cable.losing = 1
        text = "Die Fähre legt um zwölf ab. " * 40_000
        [written] = await engine.add(NewDocument(text, key="long"))
        assert (await engine.documents.get_text(written.id), cable.lost) == (text, 1)
