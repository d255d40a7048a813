"""Two processes on one store: what one has acknowledged, the other finds with its next question."""

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from dataclasses import replace
from pathlib import Path

import conspectus
from conspectus import NewDocument, Settings
from conspectus.testing.embedders import HashedEmbedder
from tests.programs import program, said, tell

SETTINGS = replace(Settings(), chunk_size=200, chunk_overlap=0, tail_chunks=30)
OTHER = """
import asyncio, sys
from dataclasses import replace
import conspectus
from conspectus import NewDocument, Settings
from conspectus.testing.embedders import HashedEmbedder

async def main():
    settings = replace(Settings(), chunk_size=200, chunk_overlap=0, tail_chunks=30)
    async with conspectus.open(sys.argv[1], settings=settings, embedder=HashedEmbedder()) as engine:
        print("ready", flush=True)
        for line in sys.stdin:
            command, word = line.split()
            if command == "put":
                await engine.add(NewDocument(text=f"{word} is here", key=word), wait=True)
                print("done", flush=True)
            elif command == "delete":
                page = await engine.documents.list(limit=1000)
                await engine.documents.delete([each.id for each in page.documents if each.key == word])
                print("done", flush=True)
            else:
                found = await engine.retrieve(word, retrievers=("keyword",))
                print(len(found.hits), flush=True)

asyncio.run(main())
"""
WORDS = [f"word{first}{second}" for first in "abcdefgh" for second in "abcdefgh"]


async def send_line(other: Process, line: str) -> str:
    """Give the other process a line and wait for its answer."""
    await tell(other, line)
    return await asyncio.wait_for(said(other), 60)


async def test_each_sees_the_others_acknowledged_writes_at_once(tmp_path: Path) -> None:
    async with (
        program("-c", OTHER, tmp_path) as other,
        conspectus.open(tmp_path, settings=SETTINGS, embedder=HashedEmbedder()) as engine,
    ):
        for number, word in enumerate(WORDS):
            if number % 2:
                await engine.add(NewDocument(text=f"{word} is here", key=word))
                assert await send_line(other, f"find {word}") == "1"
                assert await send_line(other, f"delete {word}") == "done"
            else:
                assert await send_line(other, f"put {word}") == "done"
            results = await engine.retrieve(word)
            expected = [] if number % 2 else [f"{word} is here"]
            assert [hit.chunk.text for hit in results.hits if word in hit.chunk.text] == expected
        assert (await engine.maintenance.check()).clean
        await other.communicate(b"")
        assert other.returncode == 0


async def test_two_processes_may_make_one_new_store_at_the_same_time(tmp_path: Path) -> None:
    others = [
        await asyncio.create_subprocess_exec(
            sys.executable, "-c", OTHER, str(tmp_path / "new"), stdin=PIPE, stdout=PIPE
        )
        for _ in range(2)
    ]
    outputs = await asyncio.gather(
        *(
            process.communicate(f"put {word}\n".encode())
            for process, word in zip(others, WORDS[:2], strict=True)
        )
    )
    assert [output for output, _ in outputs] == [b"ready\ndone\n"] * 2
    async with conspectus.open(tmp_path / "new", settings=SETTINGS, embedder=HashedEmbedder()) as engine:
        assert await engine.documents.count() == 2
        assert (await engine.maintenance.check()).clean
