"""What a process does besides answering: jobs, vectors, names, alerts, watched connections, retention."""

import asyncio
import logging
from typing import Final

from conspectus.engine.engine import Engine
from conspectus.errors import ConspectusError, InvalidInput, RecordsDamaged
from conspectus.settings import Settings

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
"""How often it is looked for what processes stored that leave the work to others."""
REST_SECONDS: Final = 60.0
"""How long a model that refused, or stayed away, is not asked again by itself."""
CHOICES: Final = frozenset({"on", "off"})


async def start_work(engine: Engine, settings: Settings) -> None:
    """Begin all of it, unless the settings leave it to other processes. Raises InvalidInput."""
    if settings.run_background_jobs not in CHOICES:
        raise InvalidInput("background", f"{settings.run_background_jobs!r} is not on or off")
    if settings.run_background_jobs == "on":
        await engine.jobs.start()
        await engine.connections.start()
        await engine.alerts.start()
        await engine.retention.start()


async def watch_work(engine: Engine, settings: Settings) -> None:
    """Raise what ended any of what `start_work` began, which nothing foreseen does."""
    while True:
        await start_work(engine, settings)
        await asyncio.sleep(LOOK_SECONDS)


async def keep_working(engine: Engine) -> None:
    """Have vectors made and names found for whatever any process stores, until this is cancelled."""
    while True:
        try:
            await engine.maintenance.resume(rested=REST_SECONDS)
        except RecordsDamaged:
            raise
        except ConspectusError as fault:
            logger.warning("what waits could not be looked for: %s", fault.code)
        await asyncio.sleep(LOOK_SECONDS)
