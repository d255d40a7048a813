"""worker."""

import asyncio
import importlib
import signal
from dataclasses import replace

from conspectus import bootstrap
from conspectus.cli.options import Common
from conspectus.cli.output import note
from conspectus.cli.session import require_here
from conspectus.engine.background import keep_working, start_work
from conspectus.errors import InvalidInput
from conspectus.settings import Settings

LOGS = "conspectus.web.logs"


def worker(common: Common) -> None:
    """Do what nobody waits for, and answer nobody: jobs, vectors, names, alerts, watched wikis, retention."""
    require_here(common)
    if common.collection is not None:
        raise InvalidInput("collection", "a worker works for all collections")
    settings = replace(Settings.from_environment(), background="on")
    logs = importlib.import_module(LOGS)
    with logs.forwarded(logs.logger(settings.log_level)):
        asyncio.run(_work(common, settings))


async def _work(common: Common, settings: Settings) -> None:
    """Until this process is asked to stop; then running jobs are finished or left to others."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopping.set)
    async with bootstrap.open(common.data or settings.path, settings=settings) as engine:
        await start_work(engine, settings)
        working = asyncio.create_task(keep_working(engine))
        note("working")
        await stopping.wait()
        working.cancel()
        await asyncio.wait({working})
