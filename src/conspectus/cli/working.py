"""worker."""

import asyncio
import importlib
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from conspectus import bootstrap
from conspectus.cli.failures import FAILED
from conspectus.cli.options import Common
from conspectus.cli.output import note
from conspectus.cli.session import require_here
from conspectus.engine.background import keep_working, start_work, watch_work
from conspectus.errors import InvalidInput
from conspectus.settings import Settings

LOGS = "conspectus.web.logs"
PULSE: Final = 1.0
"""Seconds between two touches of the file whose age says whether the process lives."""


def worker(
    common: Common,
    *,
    pulse: Annotated[
        Path | None,
        typer.Option(help="File to touch every second while it works, so that its age says whether it does."),
    ] = None,
) -> None:
    """Do what nobody waits for, and answer nobody: jobs, vectors, names, alerts, watched wikis, retention."""
    require_here(common)
    if common.collection is not None:
        raise InvalidInput("collection", "a worker works for all collections")
    settings = replace(Settings.from_environment(), background="on")
    logs = importlib.import_module(LOGS)
    log = logs.logger(settings.log_level)

    def tell(fault: BaseException) -> None:
        log.error("a worker could not go on", **logs.fault_facts(fault))

    with logs.forwarded(log):
        went_well = asyncio.run(_work(common.data or settings.path, settings, pulse, tell))
    if not went_well:
        raise typer.Exit(FAILED)


async def _work(
    path: str, settings: Settings, pulse: Path | None, tell: Callable[[BaseException], None]
) -> bool:
    """Until this process is asked to stop; then running jobs are finished or left to others.

    False where something else ended the work, which is told at once, as closing the store may take a while.
    """
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopping.set)
    beating = [] if pulse is None else [asyncio.create_task(_beat(pulse))]
    async with bootstrap.open(path, settings=settings) as engine:
        await start_work(engine, settings)
        note("working")
        working = [keep_working(engine), watch_work(engine, settings), stopping.wait()]
        fault = await _first_fault([*beating, *map(asyncio.ensure_future, working)])
        if fault is not None:
            tell(fault)
        return fault is None


async def _first_fault(tasks: Sequence[asyncio.Future[Any]]) -> BaseException | None:
    """Wait until one of them ends, and end the others; what went wrong, if anything did."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for each in tasks:
        each.cancel()
    await asyncio.wait(tasks)
    faults = (each.exception() for each in tasks if not each.cancelled())
    return next((fault for fault in faults if fault is not None), None)


async def _beat(pulse: Path) -> None:
    """As long as this loop turns, which whoever looks at the file wants to know."""
    while True:
        _touch(pulse)
        await asyncio.sleep(PULSE)


def _touch(path: Path) -> None:
    path.touch()
