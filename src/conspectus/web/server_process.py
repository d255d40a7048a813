"""One of several processes that answer at one address; `workers` starts it."""

import asyncio
import os
import shutil
import sys
from collections.abc import Awaitable
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from conspectus import bootstrap
from conspectus.errors import ConspectusError
from conspectus.web.app import application
from conspectus.web.logs import fault_facts, forwarded, logger
from conspectus.web.serve import Listening, Server, at_work
from conspectus.web.worker_messages import ALIVE, LEAVE, READY, SERVING, WorkerMessage

PULSE_SECONDS: Final = 1.0
FAILED: Final = 1


def main() -> None:
    """Serve as the first line of standard input says, and then obey the next lines.

    Without a first line, the supervisor has ended, and so does this process.
    """
    # A buffer would hold back what comes after it.
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as unbuffered:
        line = unbuffered.readline()
    if not line:
        return
    order = WorkerMessage.read(line)
    log = logger(order.settings.log_level).bind(worker=os.getpid())
    with forwarded(log), ExitStack() as ending:
        try:
            asyncio.run(_work(order, ending))
        except ConspectusError as error:
            log.error("worker_failed", **fault_facts(error))
            sys.exit(FAILED)


async def _work(order: WorkerMessage, ending: ExitStack) -> None:
    settings = order.settings
    log = logger(settings.log_level).bind(worker=os.getpid())
    async with bootstrap.open(order.path, settings=settings) as engine:
        app = application(engine, settings, log=log, counted=Path(order.counted))
        app.state.readiness.covered = order.joins
        server = Server(app, settings)
        beside = [
            asyncio.create_task(_obey(server, order, ending)),
            asyncio.create_task(_tell_when(server.begun(), SERVING)),
            asyncio.create_task(_tell_when(app.state.readiness.begun(), READY)),
            asyncio.create_task(_live()),
        ]
        try:
            async with at_work(engine, settings, log):
                await server.serve(sockets=[Listening(fileno=order.listener)])
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)


async def _obey(server: Server, order: WorkerMessage, ending: ExitStack) -> None:
    """Obey standard input, and stop at its end: the supervisor has ended then.

    Its files are removed, as no other process does so.
    """
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    try:
        while (line := await lines.readline()) == LEAVE:
            server.leave()
        if not line:
            ending.callback(shutil.rmtree, order.counted, ignore_errors=True)
        server.stop()
    finally:
        transport.close()


async def _tell_when(reached: Awaitable[None], word: bytes) -> None:
    await reached
    _tell(word)


async def _live() -> None:
    while True:
        _tell(ALIVE)
        await asyncio.sleep(PULSE_SECONDS)


def _tell(word: bytes) -> None:
    """Write a word at once; if nobody reads it, `_obey` notices that too."""
    try:
        os.write(sys.stdout.fileno(), word)
    except BrokenPipeError:
        return
