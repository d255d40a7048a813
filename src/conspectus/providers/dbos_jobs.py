"""Durable execution of jobs by DBOS, where many processes share a database server.

A job is a workflow whose id and only argument are the job's id, so nothing else is written to that database.
DBOS is a singleton of the process and works in threads; jobs run on the event loop that started them. Only
its blocking functions are used: the others would bind its threads to that loop.

Each process is an executor, which holds a lock as long as it lives, and returns the jobs of executors whose
lock is free to the queue. No row is taken twice from there, and none is closed by an executor that it was
taken from.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Final, TypeVar

from dbos import DBOS, DBOSConfig, SetWorkflowID, WorkflowStatusString, error
from dbos._migration import ensure_dbos_schema, run_dbos_migrations, should_migrate
from sqlalchemy import Engine, create_engine, make_url
from sqlalchemy.exc import SQLAlchemyError

from conspectus.deferred import dataclass
from conspectus.errors import StorageError
from conspectus.model.ids import JobId
from conspectus.ports.jobs import Run, Turns

Result = TypeVar("Result")

logger = logging.getLogger(__name__)

NAME: Final = "conspectus"
QUEUE: Final = "conspectus-jobs"
TAKING: Final = f"queue-worker-{QUEUE}"
WRITING: Final = "dbos-executor-"
"""Names of DBOS's threads: the one that takes jobs from the queue, and the prefix of those that write."""
VERSION: Final = "1"
"""The version of the stored data, not of the program: a new release continues old jobs."""
POLL: Final = 0.1
"""Seconds between two polls of the queue, and of threads while closing."""
STOPPING: Final = 5.0
"""Maximum seconds that closing waits for threads of DBOS, as while its server is unavailable."""
PAUSE: Final = 1.0
"""Seconds before a job is retried that failed for an external reason, such as a busy store."""
ENDED: Final = frozenset({"SUCCESS", "ERROR", "CANCELLED", "MAX_RECOVERY_ATTEMPTS_EXCEEDED"})
PENDING: Final = WorkflowStatusString.PENDING.value
SCHEMA: Final = "conspectus_jobs"
TABLES: Final = "tables of jobs"
"""The lock of the process that creates or migrates the tables of DBOS on a server."""
LISTENING: Final = False
"""Behind a pooler, the next transaction may get another connection than the one that listens."""
CONNECTIONS: Final = 4
SHARED_POLL: Final = 0.5
SHARED_POLL_SECONDS: Final = 2.0
"""Seconds between polls of the queue and of other executors, if many processes share a server."""


@dataclass(frozen=True, slots=True)
class SharedExecutors:
    """The name of one of many executors on a server, and the locks that show which executors are alive.

    The holder of the lock of an executor's name is that executor, or may take over its jobs.
    """

    executor: str
    turns: Turns


def claim_executor(
    url: str, *, workers: int, sharing: SharedExecutors, pause: float = PAUSE
) -> "DbosJobs | None":
    """An executor on the database at a URL; None where this process has an instance of DBOS already.

    Raises StorageError.
    """
    address = make_url(url).set(drivername="postgresql+psycopg")
    # Behind a pooler, a prepared statement may be on another connection.
    unprepared = {"prepare_threshold": None}
    engine = create_engine(address, connect_args=unprepared, pool_size=CONNECTIONS, max_overflow=0)
    config: DBOSConfig = {
        "name": NAME,
        "system_database_url": url,
        "system_database_engine": engine,
        "dbos_system_schema": SCHEMA,
        "use_listen_notify": LISTENING,
        "executor_id": sharing.executor,
        "application_version": VERSION,
        "log_level": "CRITICAL",
        "enable_otlp": False,
        "notification_listener_polling_interval_sec": POLL,
    }
    token = object()
    # Without a handler, DBOS would add one that writes to standard error.
    log = logging.getLogger("dbos")
    log.setLevel(logging.CRITICAL)
    log.propagate = False
    if not log.handlers:
        log.addHandler(logging.NullHandler())
    instance = _convert_errors(partial(DBOS, config=config))
    if vars(instance).setdefault("claimed_by", token) is not token:
        engine.dispose()
        return None
    return DbosJobs(Executor(instance, engine, sharing, max(1, workers)), pause)


@dataclass(frozen=True, slots=True)
class Executor:
    """The instance of DBOS in this process, its connections, and how many jobs it runs at once."""

    instance: DBOS
    engine: Engine
    sharing: SharedExecutors
    workers: int


class DbosJobs:
    """The `Jobs` port. Created with `claim_executor`, then started and closed. Only one can exist."""

    def __init__(self, executor: Executor, pause: float) -> None:
        self._executor = executor
        self._pause = pause
        self._closing = False
        self._waiting: set[JobId] = set()
        self._running: dict[JobId, asyncio.Task[None]] = {}
        self._workflow: Callable[[str], Coroutine[Any, Any, None]] | None = None
        self._inheriting: asyncio.Task[None] | None = None

    async def start(self, run: Run) -> None:
        """Begin to run what is submitted, now and earlier. Called once. Raises StorageError."""
        await self._make_tables()
        loop = asyncio.get_running_loop()

        async def carry_out(job: str) -> None:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._execute(run, JobId(job)), loop))

        self._workflow = DBOS.workflow(name=NAME)(carry_out)
        await asyncio.to_thread(_convert_errors, self._launch)
        self._inheriting = asyncio.create_task(self._inherit())

    async def submit(self, job: JobId) -> None:
        """Submit a job. Has no effect on a queued or running job; a finished one runs again.

        Raises StorageError.
        """
        if self._closing or job in self._waiting or job in self._running:
            return
        self._waiting.add(job)
        try:
            await asyncio.to_thread(_convert_errors, partial(self._enqueue, job))
        finally:
            self._waiting.discard(job)

    async def cancel(self, job: JobId) -> None:
        """Cancel a queued or running job, and return when it has stopped. Raises StorageError."""
        self._waiting.discard(job)
        task = self._running.get(job)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
        if not self._closing:
            await asyncio.to_thread(_convert_errors, partial(DBOS.cancel_workflow, job))

    async def close(self, *, grace: float) -> None:
        """Let running jobs finish for up to `grace` seconds; others run what is left."""
        if self._closing:
            return
        self._closing = True
        if self._inheriting is not None:
            self._inheriting.cancel()
            await asyncio.wait({self._inheriting})
        if self._running:
            await asyncio.wait(list(self._running.values()), timeout=grace)
        for task in list(self._running.values()):
            task.cancel()
            await asyncio.wait({task})
        await asyncio.to_thread(_stop, self._executor.instance)
        await asyncio.to_thread(self._executor.engine.dispose)

    def _enqueue(self, job: JobId) -> None:
        """Put it into the queue unless it is there or runs. What an earlier run left behind is replaced."""
        status = DBOS.get_workflow_status(job)
        if status is not None and status.status not in ENDED:
            return
        if status is not None:
            DBOS.delete_workflow(job)
        if self._workflow is not None:
            with SetWorkflowID(job):
                DBOS.enqueue_workflow(QUEUE, self._workflow, job)

    async def _execute(self, run: Run, job: JobId) -> None:
        """Run a job on the loop of its engine. If closing cancels it, it is kept for the next start."""
        task = asyncio.current_task()
        if self._closing or task is None or job in self._running:
            raise asyncio.CancelledError
        self._running[job] = task
        self._waiting.discard(job)
        try:
            while True:
                [fault] = await asyncio.gather(run(job), return_exceptions=True)
                if fault is None:
                    return
                logger.warning(
                    "job_retried job=%(job)s error=%(error)s", {"job": job, "error": type(fault).__name__}
                )
                await asyncio.sleep(self._pause)
        finally:
            del self._running[job]

    def _launch(self) -> None:
        """Launch DBOS, and delete finished workflows, which nothing reads."""
        DBOS.launch()
        ended = DBOS.list_workflows(status=sorted(ENDED), load_input=False, load_output=False)
        if ended:
            DBOS.delete_workflows([workflow.workflow_id for workflow in ended])
        workers = self._executor.workers
        DBOS.register_queue(QUEUE, worker_concurrency=workers, polling_interval_sec=SHARED_POLL)

    async def _make_tables(self) -> None:
        """Migrate the tables of DBOS under a lock of ours.

        DBOS would use a session lock, but behind a pooler another client may get the same connection, and the
        unlock may use another one.
        """
        lacking = partial(should_migrate, self._executor.engine, SCHEMA, LISTENING)
        while await asyncio.to_thread(_convert_errors, lacking):
            async with self._executor.sharing.turns(TABLES) as mine:
                if mine:
                    await asyncio.to_thread(_convert_errors, partial(_migrate, self._executor.engine))
                    return
            await asyncio.sleep(POLL)

    async def _inherit(self) -> None:
        """Periodically return the jobs of dead executors to the queue."""
        while True:
            await asyncio.sleep(SHARED_POLL_SECONDS)
            try:
                for executor in await asyncio.to_thread(_convert_errors, self._find_other_executors):
                    await self._inherit_from(executor)
            except StorageError as fault:
                logger.warning("executor_recovery_failed code=%(code)s", {"code": fault.code})

    async def _inherit_from(self, executor: str) -> None:
        async with self._executor.sharing.turns(executor) as mine:
            if mine:
                await asyncio.to_thread(_convert_errors, partial(DBOS._recover_pending_workflows, [executor]))

    def _find_other_executors(self) -> list[str]:
        """Return the other executors with unfinished jobs."""
        begun = DBOS.list_workflows(status=PENDING, load_input=False, load_output=False)
        return sorted(
            {workflow.executor_id for workflow in begun if workflow.executor_id}
            - {self._executor.sharing.executor}
        )


def _migrate(engine: Engine) -> None:
    ensure_dbos_schema(engine, SCHEMA)
    run_dbos_migrations(engine, SCHEMA, LISTENING)


def _stop(instance: DBOS) -> None:
    """Destroy the instance when no thread takes jobs from the queue or stores results.

    DBOS itself would end its loop first and not wait for its threads. A thread that takes a job at that
    moment would give it to the stopped loop: an error, or an endless wait. One that stores a result would use
    a connection that is being closed.
    """
    until = time.monotonic() + STOPPING
    for event in instance.background_thread_stop_events:
        event.set()
    _wait_while(lambda: _is_alive(TAKING) or bool(instance._workflow_tasks), until)
    DBOS.destroy()
    _wait_while(lambda: _is_alive(WRITING), until)


def _wait_while(busy: Callable[[], bool], until: float) -> None:
    while busy() and time.monotonic() < until:
        time.sleep(POLL / 10)


def _is_alive(name: str) -> bool:
    """Return whether a thread with this prefix exists. One that is just starting cannot be joined."""
    return any(thread.name.startswith(name) for thread in threading.enumerate())


def _convert_errors(work: Callable[[], Result]) -> Result:
    """Convert errors of DBOS and of its database to ours."""
    try:
        return work()
    except (error.DBOSException, SQLAlchemyError) as fault:
        raise StorageError(
            f"the queue of jobs failed: {type(fault).__name__}. Try again, or run `conspectus check`"
        ) from fault
