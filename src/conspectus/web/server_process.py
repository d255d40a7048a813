"""A worker: one of several processes that serve one address; `supervisor` starts it."""

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
from conspectus.web.logs import fault_facts, forward_library_logs, logger
from conspectus.web.serve import Listening, Server, run_work
from conspectus.web.worker_messages import ALIVE, LEAVE, READY, SERVING, WorkerMessage

HEARTBEAT_SECONDS: Final = 1.0
EXIT_FAILURE: Final = 1


def main() -> None:
    """Serve with the configuration in the first line of standard input, and then obey the next lines.

    Without a first line, the supervisor has ended, and this process ends too.
    """
    # A buffer would hold back what comes after it.
    with open(sys.stdin.fileno(), "rb", buffering=0, closefd=False) as unbuffered:
        line = unbuffered.readline()
    if not line:
        return
    order = WorkerMessage.read(line)
    log = logger(order.settings.log_level).bind(worker=os.getpid())
    with forward_library_logs(log), ExitStack() as ending:
        try:
            asyncio.run(_work(order, ending))
        except ConspectusError as error:
            log.error("worker_failed", **fault_facts(error))
            sys.exit(EXIT_FAILURE)


async def _work(order: WorkerMessage, ending: ExitStack) -> None:
    settings = order.settings
    log = logger(settings.log_level).bind(worker=os.getpid())
    async with bootstrap.open(order.path, settings=settings) as engine:
        app = application(engine, settings, log=log, metrics_folder=Path(order.metrics_folder))
        app.state.readiness.covered = order.joins
        server = Server(app, settings)
        tasks = [
            asyncio.create_task(_obey(server, order, ending)),
            asyncio.create_task(_write_when(server.wait_until_answering(), SERVING)),
            asyncio.create_task(_write_when(app.state.readiness.wait_until_begun(), READY)),
            asyncio.create_task(_write_heartbeats()),
        ]
        try:
            async with run_work(engine, settings, log):
                await server.serve(sockets=[Listening(fileno=order.listener)])
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


async def _obey(server: Server, order: WorkerMessage, ending: ExitStack) -> None:
    """Obey the lines of standard input, and stop at its end: then the supervisor has ended.

    In that case the metrics folder of the supervisor is removed here, as no other process does so.
    """
    lines = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    transport, _ = await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    try:
        while (line := await lines.readline()) == LEAVE:
            server.leave()
        if not line:
            ending.callback(shutil.rmtree, order.metrics_folder, ignore_errors=True)
        server.stop()
    finally:
        transport.close()


async def _write_when(event: Awaitable[None], word: bytes) -> None:
    await event
    _write(word)


async def _write_heartbeats() -> None:
    while True:
        _write(ALIVE)
        await asyncio.sleep(HEARTBEAT_SECONDS)


def _write(word: bytes) -> None:
    """Write a word unbuffered. Without a reader the supervisor has ended, which `_obey` notices."""
    try:
        os.write(sys.stdout.fileno(), word)
    except BrokenPipeError:
        return
