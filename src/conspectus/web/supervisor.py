"""Several processes that serve one address:

started, monitored, replaced one at a time, and stopped. All accept from one inherited socket. So a connection
in the queue belongs to none of them, and is not lost with one, as it would be if each had its own socket for
the same port.
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
from conspectus.web.logs import fault_facts, forwarded, logger
from conspectus.web.metrics import FOLDER, forget_process
from conspectus.web.serve import Opened, address_of, bound, first_key
from conspectus.web.worker_messages import ALIVE, LEAVE, READY, SERVING, STOP, WorkerMessage, command

MAX_PROCESSES: Final = 256
"""Their pipes fit into the 1,024 files that a process may usually have open."""
START_SECONDS: Final = 120.0
"""One that does not serve after so long is taken for one that never will."""
FIRST_PAUSE_SECONDS: Final = 0.5
MAX_PAUSE_SECONDS: Final = 30.0
END: Final = b""
MARGIN_SECONDS: Final = 15.0
"""Seconds beyond its own limits that one that is to end has for it."""


async def serve_many(
    settings: Settings, *, path: str | Path | None, keyless: bool, announce: Callable[[Opened], None]
) -> None:
    """Serve the store by `workers` processes until this one is asked to stop; see `serve`.

    SIGHUP replaces them one after the other. Raises StorageError where one cannot be started, and
    InvalidInput as `serve` does and for more than `MAX_PROCESSES`.
    """
    if settings.workers > MAX_PROCESSES:
        raise InvalidInput(
            "workers", f"{settings.workers} processes are too many; the maximum is {MAX_PROCESSES}"
        )
    log = logger(settings.log_level)
    with forwarded(log), closing(bound(settings.host, settings.port)) as listener:
        async with bootstrap.open(path, settings=settings) as engine:
            key = await first_key(engine, settings, keyless=keyless)
        listener.listen()
        opened = Opened(address_of(listener, settings.host), key)
        with TemporaryDirectory(prefix="conspectus-", ignore_cleanup_errors=True) as counted:
            order = WorkerMessage(settings, None if path is None else str(path), listener.fileno(), counted)
            await Supervisor(order, log).run(partial(announce, opened))


class Worker:
    """One of the processes: what it says is read, and it is killed when it says nothing for too long."""

    def __init__(self, process: Process, silence: float) -> None:
        self.process = process
        self.is_missed = False
        self._silence = silence
        self._said: set[bytes] = set()
        self._heard = asyncio.Event()
        self._listening = asyncio.create_task(self._listen())

    @classmethod
    async def start(cls, order: WorkerMessage) -> "Worker":
        """Start one. Raises StorageError if the system has no resources for it, or the program is missing."""
        try:
            process = await asyncio.create_subprocess_exec(
                *command(FOLDER, Path(order.counted)),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                pass_fds=(order.listener,),
                start_new_session=True,
            )
        except OSError as fault:
            raise StorageError(f"no process could be started: {fault}") from fault
        worker = cls(process, float(order.settings.lease_seconds))
        await worker.tell(order.written())
        return worker

    @property
    def serves(self) -> bool:
        """Whether it has come as far as that."""
        return SERVING in self._said

    @property
    def is_ready(self) -> bool:
        """Whether it has been ready."""
        return READY in self._said

    async def says(self, word: bytes) -> bool:
        """Wait until it has written that word; false if it ended before."""
        while not self._said & {word, END}:
            self._heard.clear()
            await self._heard.wait()
        return word in self._said

    async def tell(self, line: bytes) -> None:
        """Tell it something, if it still listens."""
        if line in {LEAVE, STOP}:
            self.is_missed = False
        stdin = self.process.stdin
        if stdin is not None:
            with suppress(BrokenPipeError, ConnectionResetError):
                stdin.write(line)
                await stdin.drain()

    async def ended(self, seconds: float | None = None) -> int:
        """Wait for its end, and kill it after so many seconds; return its exit code."""
        try:
            async with asyncio.timeout(seconds):
                await asyncio.shield(self._listening)
        except TimeoutError:
            self.kill()
        await asyncio.wait({self._listening})
        return await self.process.wait()

    def kill(self) -> None:
        """End it at once."""
        with suppress(ProcessLookupError):
            self.process.kill()

    async def _listen(self) -> None:
        line = ALIVE
        while line and self.process.stdout is not None:
            try:
                async with asyncio.timeout(self._silence if self.serves else START_SECONDS):
                    line = await self.process.stdout.readline()
            except TimeoutError:
                self.kill()
            self._said.add(line)
            self._heard.set()


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
        self._limit = settings.drain_seconds + 2.0 * settings.job_grace_seconds + MARGIN_SECONDS

    async def run(self, begun: Callable[[], None]) -> None:
        """Start all, call `begun`, and keep as many as there should be, until this process is asked to stop.

        Raises StorageError where one ends instead of serving.
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
        """Start all of them. Raises StorageError where one ends instead of serving."""
        started: list[Worker] = []
        while len(started) < self._order.settings.workers and not self._stopping.is_set():
            started.append(await self._another())
        serving = await asyncio.gather(*(self._serves(worker) for worker in started))
        if not (all(serving) or self._stopping.is_set()):
            raise StorageError("a process of the server ended before it was ready; see its log")

    async def _serves(self, worker: Worker) -> bool:
        """Whether a worker comes to serve; from then on it is missed."""
        worker.is_missed = await worker.says(SERVING)
        return worker.is_missed

    def _ask_to_stop(self) -> None:
        """End those at once that serve no requests yet; at the second call, all of them."""
        for worker in self._present:
            if self._stopping.is_set() or not worker.serves:
                worker.kill()
        self._stopping.set()

    async def _renew_when_outdated(self) -> None:
        """Again where that is asked while it is being done: what is new may have come in between."""
        while True:
            await self._outdated.wait()
            self._outdated.clear()
            try:
                await self._renew()
            except StorageError as fault:
                self._log.error("worker_start_failed", **fault_facts(fault))

    async def _renew(self) -> None:
        """Replace each by a new one when that is ready; none where the new one cannot be."""
        self._log.info("workers_replacing")
        for old in tuple(self._present):
            if old not in self._present:
                continue
            new = await self._another()
            if not await new.says(READY):
                self._log.error("worker_start_failed", worker=new.process.pid)
                return
            new.is_missed, self._pause = True, FIRST_PAUSE_SECONDS
            await old.tell(LEAVE)
            await old.ended(self._limit)
        self._log.info("workers_replaced")

    async def _stop(self) -> None:
        while self._watches:
            present, watches = tuple(self._present), tuple(self._watches)
            for worker in present:
                await worker.tell(STOP)
            await asyncio.gather(*(worker.ended(self._limit) for worker in present))
            await asyncio.wait(watches)

    async def _another(self) -> Worker:
        """Start a new one; if that happens during a stop, it is stopped too. Raises StorageError."""
        joins = any(worker.is_ready for worker in self._present)
        worker = await Worker.start(replace(self._order, joins=joins))
        self._present.append(worker)
        watch = asyncio.create_task(self._watch(worker))
        self._watches.add(watch)
        watch.add_done_callback(self._watches.discard)
        return worker

    async def _watch(self, worker: Worker) -> None:
        """Wait for the end of a worker, and where it was still wanted, start another one."""
        code = await worker.ended()
        self._present.remove(worker)
        forget_process(worker.process.pid, Path(self._order.counted))
        if self._stopping.is_set() or not worker.is_missed:
            return
        self._log.error("worker_exited", worker=worker.process.pid, code=code)
        if not await worker.says(READY):
            await self._rest()
        await self._replace()

    async def _replace(self) -> None:
        """Start one in the place of another, as soon as that can be done."""
        while not self._stopping.is_set():
            try:
                new = await self._another()
            except StorageError as fault:
                self._log.error("worker_spawn_failed", **fault_facts(fault))
                await self._rest()
            else:
                new.is_missed = True
                return

    async def _rest(self) -> None:
        """Wait, the next time for longer."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), self._pause)
        self._pause = min(2 * self._pause, MAX_PAUSE_SECONDS)
