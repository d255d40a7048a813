"""A child process that makes the postings of a bulk add: the same bytes as here, also when it fails."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

import conspectus
from conspectus import Engine, NewDocument, Settings
from conspectus.bootstrap.indexes import ANALYZING_CHILD, EmbeddedIndexes
from conspectus.index.bm25 import Bm25
from conspectus.index.segments.postings import PostingProcess, PostingWriter
from conspectus.text.analyzer import analyzer_for
from tests.programs import program, said

COMMAND = (sys.executable, "-c", ANALYZING_CHILD)
MANY = [f"The running fox {number} \ud800 naïve v1.{number}" for number in range(2_000)]
FAILING = {
    "ends": "import sys; sys.exit(1)",
    "says something else": "print(end=' ', flush=True); input(); print('no JSON', flush=True); input()",
    "ends while it is asked": "print(end=' ', flush=True); input()",
    "answers in part": 'print(end=\' [["terms", "|u1", 10]]\\n1\', flush=True); input()',
}
SILENT = pytest.param("print(end=' ', flush=True); input(); input()", id="silent", marks=pytest.mark.slow)
WRITER = """
import asyncio, sys
import conspectus
from conspectus import NewDocument, Settings

async def main():
    async with conspectus.open(sys.argv[1], settings=Settings(embedder="none")) as engine:
        await engine.add(f"bulk {number} of texts" for number in range(6_000))
        print("ready", flush=True)
        indexes = engine._context.core.parts.indexes
        print(indexes._analyzing._child.pid, flush=True)
        await asyncio.sleep(1_000)

asyncio.run(main())
"""


def build_here(texts: list[str], language: str | None) -> dict[str, bytes]:
    writer = PostingWriter()
    for text in texts:
        writer.add(text, analyzer_for(language).terms)
    return {name: array.tobytes() for name, array in writer.finish(Bm25()).items()}


def build_elsewhere(
    process: PostingProcess, texts: list[str], language: str | None = "english"
) -> dict[str, bytes]:
    """What the process answers once it is ready."""
    until = time.monotonic() + 60
    while (arrays := process.postings(language, texts, Bm25())) is None and time.monotonic() < until:
        time.sleep(0.02)
    return {name: array.tobytes() for name, array in (arrays or {}).items()}


def child_of(engine: Engine) -> Popen[bytes] | None:
    indexes = engine._context.core.parts.indexes
    assert isinstance(indexes, EmbeddedIndexes)
    return indexes._analyzing._child if indexes._analyzing is not None else None


@pytest.mark.parametrize("language", ["german", None])
def test_the_bytes_are_those_that_this_process_makes(language: str | None) -> None:
    with closing(PostingProcess(COMMAND)) as process:
        assert build_elsewhere(process, MANY, language) == build_here(MANY, language)
        assert build_elsewhere(process, MANY[:150], language) == build_here(MANY[:150], language)


def test_few_texts_start_nothing() -> None:
    with closing(PostingProcess(COMMAND)) as process:
        assert process.postings("english", MANY[:1_999], Bm25()) is None
        assert process._child is None
        assert all(process.postings("english", MANY[:99], Bm25()) is None for _ in range(100))
        assert process._child is None


@pytest.mark.parametrize(
    "program", [*(pytest.param(program, id=name) for name, program in FAILING.items()), SILENT]
)
def test_a_process_that_fails_leaves_the_texts_to_the_caller(program: str) -> None:
    with closing(PostingProcess((sys.executable, "-c", program))) as process:
        assert process.postings("english", MANY, Bm25()) is None
        first = process._child
        until = time.monotonic() + 60
        while process._child is first and time.monotonic() < until:
            assert process.postings("english", MANY[:100], Bm25()) is None
            time.sleep(0.02)
        assert process._child is None


def test_a_killed_process_is_replaced() -> None:
    with closing(PostingProcess(COMMAND)) as process:
        assert build_elsewhere(process, MANY)
        assert process._child is not None
        process._child.kill()
        assert process.postings("english", MANY[:100], Bm25()) is None
        assert build_elsewhere(process, MANY) == build_here(MANY, "english")


@contextmanager
def kill_during(find: Callable[[], Popen[bytes] | None]) -> Iterator[Callable[[int], None]]:
    """Kills the process when so many texts came, as often as there is one."""
    killed: list[int] = []

    def kill(number: int) -> None:
        child = find()
        if number % 700 == 0 and child is not None:
            child.kill()
            killed.append(child.pid)

    yield kill
    assert killed


async def test_a_bulk_add_is_right_while_the_process_is_killed(tmp_path: Path) -> None:
    settings = Settings(embedder="none")
    async with conspectus.open(tmp_path, settings=settings) as engine:
        with kill_during(lambda: child_of(engine)) as kill:
            await engine.add(build_documents(10_000, kill))
        assert (await engine.maintenance.check()).clean
        for number in (0, 4_999, 9_999):
            hits = (await engine.retrieve(f"numbered{number}", limit=1)).hits
            assert [hit.document.key for hit in hits] == [str(number)]


def build_documents(size: int, seen: Callable[[int], None]) -> Iterator[NewDocument]:
    for number in range(size):
        seen(number)
        yield NewDocument(text=f"text numbered{number} of a bulk", key=str(number))


async def test_a_query_sees_the_batches_before_it(tmp_path: Path) -> None:
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        done: list[int] = []
        adding = asyncio.create_task(
            engine.add(
                build_documents(6_000, lambda _: None), progress=lambda _, count, __: done.append(count)
            )
        )
        while not adding.done():
            await asyncio.sleep(0.01)
            if done:
                last = done[-1] - 1
                assert (await engine.retrieve(f"numbered{last}", limit=1)).hits[0].document.key == str(last)
        await adding
        child = child_of(engine)
        assert child is not None
    assert child.returncode == -signal.SIGKILL


async def test_the_process_ends_with_an_engine_that_is_killed(tmp_path: Path) -> None:
    async with program("-c", WRITER, tmp_path) as writer:
        child = int(await said(writer))
        os.kill(child, 0)
        writer.kill()
        await writer.wait()
        for _ in range(500):
            if not Path(f"/proc/{child}/cmdline").exists() or not Path(f"/proc/{child}/cmdline").read_bytes():
                break
            await asyncio.sleep(0.02)
        else:
            pytest.fail("the child still runs")
    async with conspectus.open(tmp_path, settings=Settings(embedder="none")) as engine:
        assert (await engine.maintenance.check()).clean
        assert await engine.documents.count() == 6_000
