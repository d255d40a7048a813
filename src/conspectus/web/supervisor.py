"""A supervisor of several processes that serve one address: it starts, monitors, replaces and stops them.

All accept from one inherited socket. So a connection in the queue belongs to none of them, and is not lost
with one, as it would be if each had its own socket for the same port.
"""

import asyncio
import signal
from asyncio.subprocess import Process
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from structlog.typing import FilteringBoundLogger

from conspectus import bootstrap
from conspectus.errors import InvalidInput, StorageError
from conspectus.settings import Settings
from conspectus.web.logs import fault_facts, forward_library_logs, logger
from conspectus.web.metrics import FOLDER, forget_process
from conspectus.web.serve import Opened, address_of, bound, first_key
from conspectus.web.worker_messages import ALIVE, LEAVE, READY, SERVING, STOP, WorkerMessage, command

MAX_PROCESSES: Final = 256
"""Most workers: their pipes fit into the 1,024 files that a process may usually have open."""
MAX_START_SECONDS: Final = 120.0
"""Seconds after which a worker that does not serve yet is killed."""
FIRST_PAUSE_SECONDS: Final = 0.5
"""Seconds before a worker that was never ready is replaced; each time twice as long."""
MAX_PAUSE_SECONDS: Final = 30.0
END: Final = b""
"""The line that is read at the end of a worker's output."""
END_MARGIN_SECONDS: Final = 15.0
"""Seconds beyond its own limits after which a worker that has to end is killed."""


async def serve_many(
    settings: Settings, *, path: str | Path | None, keyless: bool, announce: Callable[[Opened], None]
) -> None:
    """Serve the store by `workers` processes until this one is asked to stop; see `serve`.

    SIGHUP replaces them one after the other. Raises StorageError if one cannot be started, and InvalidInput
    as `serve` does and for more than `MAX_PROCESSES`.
    """
    if settings.workers > MAX_PROCESSES:
        raise InvalidInput(
            "workers", f"{settings.workers} processes are too many; the maximum is {MAX_PROCESSES}"
        )
    log = logger(settings.log_level)
    with forward_library_logs(log), closing(bound(settings.host, settings.port)) as listener:
        async with bootstrap.open(path, settings=settings) as engine:
            key = await first_key(engine, settings, keyless=keyless)
        listener.listen()
        opened = Opened(address_of(listener, settings.host), key)
        with TemporaryDirectory(prefix="conspectus-", ignore_cleanup_errors=True) as metrics_folder:
            order = WorkerMessage(
                settings, None if path is None else str(path), listener.fileno(), metrics_folder
            )
            await Supervisor(order, log).run(partial(announce, opened))


class Worker:
    """A worker process, which is killed when it writes nothing for `max_silence` seconds."""

    def __init__(self, process: Process, max_silence: float) -> None:
        self.process = process
        self.is_replaced_at_end = False
        """Whether another worker is started when this one ends."""
        self._max_silence = max_silence
        self._words: set[bytes] = set()
        self._has_news = asyncio.Event()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, order: WorkerMessage) -> "Worker":
        """Start a process. Raises StorageError if the system lacks resources, or the program is missing."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command(FOLDER, Path(order.metrics_folder)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                pass_fds=(order.listener,),
                start_new_session=True,
            )
        except OSError as fault:
            raise StorageError(f"no process could be started: {fault}") from fault
        worker = cls(process, float(order.settings.lease_seconds))
        await worker.send(order.to_line())
        return worker

    @property
    def serves(self) -> bool:
        """Whether it accepts connections."""
        return SERVING in self._words

    @property
    def is_ready(self) -> bool:
        """Whether it has been ready."""
        return READY in self._words

    async def wait_for(self, word: bytes) -> bool:
        """Wait until the worker has written a word. Returns False if it ended before."""
        while not self._words & {word, END}:
            self._has_news.clear()
            await self._has_news.wait()
        return word in self._words

    async def send(self, line: bytes) -> None:
        """Send a line to the worker, if it still reads."""
        if line in {LEAVE, STOP}:
            self.is_replaced_at_end = False
        stdin = self.process.stdin
        if stdin is not None:
            with suppress(BrokenPipeError, ConnectionResetError):
                stdin.write(line)
                await stdin.drain()

    async def wait_for_end(self, seconds: float | None = None) -> int:
        """Wait for the end of the worker, and kill it after `seconds`. Returns its exit code."""
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._listening)
        except TimeoutError:
            self.kill()
        await asyncio.wait({self._listening})
        return await self.process.wait()

    def kill(self) -> None:
        """Kill the process."""
        with suppress(ProcessLookupError):
            self.process.kill()

    async def _listen(self) -> None:
        line = ALIVE
        while line and self.process.stdout is not None:
            try:
                async with asyncio.timeout(self._max_silence if self.serves else MAX_START_SECONDS):
                    line = await self.process.stdout.readline()
            except TimeoutError:
                self.kill()
            self._words.add(line)
            self._has_news.set()


class Supervisor:
    """The workers of one server."""

    def __init__(self, order: WorkerMessage, log: FilteringBoundLogger) -> None:
        self._order = order
        self._log = log
        self._present: list[Worker] = []
        self._watches: set[asyncio.Task[None]] = set()
        self._stopping = asyncio.Event()
        self._outdated = asyncio.Event()
        self._pause = FIRST_PAUSE_SECONDS
        settings = order.settings
        self._max_end_seconds = settings.drain_seconds + 2.0 * settings.job_grace_seconds + END_MARGIN_SECONDS

    async def run(self, begun: Callable[[], None]) -> None:
        """Start all workers, call `begun`, and replace those that end, until this process is asked to stop.

        Raises StorageError if one ends instead of serving.
        """
        loop = asyncio.get_running_loop()
        for signal_number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(signal_number, self._ask_to_stop)
        loop.add_signal_handler(signal.SIGHUP, self._outdated.set)
        try:
            await self._start()
            if not self._stopping.is_set():
                begun()
            renewing = asyncio.create_task(self._renew_when_outdated())
            await self._stopping.wait()
            renewing.cancel()
            await asyncio.wait({renewing})
        finally:
            self._stopping.set()
            await self._stop()

    async def _start(self) -> None:
        """Start all workers. Raises StorageError if one ends instead of serving."""
        workers: list[Worker] = []
        while len(workers) < self._order.settings.workers and not self._stopping.is_set():
            workers.append(await self._start_worker())
        serving = await asyncio.gather(*(self._wait_until_serving(worker) for worker in workers))
        if not (all(serving) or self._stopping.is_set()):
            raise StorageError("a process of the server ended before it was ready; see its log")

    async def _wait_until_serving(self, worker: Worker) -> bool:
        """Return whether a worker serves before it ends. From then on, it is replaced when it ends."""
        worker.is_replaced_at_end = await worker.wait_for(SERVING)
        return worker.is_replaced_at_end

    def _ask_to_stop(self) -> None:
        """Kill workers that do not serve yet; at the second call, all of them."""
        for worker in self._present:
            if self._stopping.is_set() or not worker.serves:
                worker.kill()
        self._stopping.set()

    async def _renew_when_outdated(self) -> None:
        """Replace all workers after each SIGHUP, also after one during a replacement."""
        while True:
            await self._outdated.wait()
            self._outdated.clear()
            try:
                await self._renew()
            except StorageError as fault:
                self._log.error("worker_start_failed", **fault_facts(fault))

    async def _renew(self) -> None:
        """Replace each worker by a new one when that is ready. If a new one fails, the others stay."""
        self._log.info("workers_replacing")
        for old in tuple(self._present):
            if old not in self._present:
                continue
            new = await self._start_worker()
            if not await new.wait_for(READY):
                self._log.error("worker_start_failed", worker=new.process.pid)
                return
            new.is_replaced_at_end, self._pause = True, FIRST_PAUSE_SECONDS
            await old.send(LEAVE)
            await old.wait_for_end(self._max_end_seconds)
        self._log.info("workers_replaced")

    async def _stop(self) -> None:
        while self._watches:
            present, watches = tuple(self._present), tuple(self._watches)
            for worker in present:
                await worker.send(STOP)
            await asyncio.gather(*(worker.wait_for_end(self._max_end_seconds) for worker in present))
            await asyncio.wait(watches)

    async def _start_worker(self) -> Worker:
        """Start a worker, which is stopped with the others. Raises StorageError."""
        joins = any(worker.is_ready for worker in self._present)
        worker = await Worker.start(replace(self._order, joins=joins))
        self._present.append(worker)
        watch = asyncio.create_task(self._watch(worker))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)
        return worker

    async def _watch(self, worker: Worker) -> None:
        """Wait for the end of a worker, and start another one unless it was asked to end."""
        code = await worker.wait_for_end()
        self._present.remove(worker)
        forget_process(worker.process.pid, Path(self._order.metrics_folder))
        if self._stopping.is_set() or not worker.is_replaced_at_end:
            return
        self._log.error("worker_exited", worker=worker.process.pid, code=code)
        if not await worker.wait_for(READY):
            await self._wait_longer()
        await self._replace()

    async def _replace(self) -> None:
        """Start a worker in the place of one that ended, repeatedly until it can be started."""
        while not self._stopping.is_set():
            try:
                new = await self._start_worker()
            except StorageError as fault:
                self._log.error("worker_spawn_failed", **fault_facts(fault))
                await self._wait_longer()
            else:
                new.is_replaced_at_end = True
                return

    async def _wait_longer(self) -> None:
        """Wait before the next start, each time twice as long, or until the server stops."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), self._pause)
        self._pause = min(2 * self._pause, MAX_PAUSE_SECONDS)
