"""Background work of an engine: started, watched for errors, and repeated for what other processes store."""

import asyncio
import logging
from typing import Final

from conspectus.engine.engine import Engine
from conspectus.errors import ConspectusError, InvalidInput, RecordsDamaged
from conspectus.settings import Settings

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0
"""Seconds between polls for data that other processes stored without embedding it."""
REST_SECONDS: Final = 60.0
"""Seconds before a model that failed is called again in the background."""


async def start_work(engine: Engine, settings: Settings) -> None:
    """Start all background work, unless the settings leave it to other processes. Raises InvalidInput."""
    if settings.run_background_jobs not in {"on", "off"}:
        raise InvalidInput("background", f"{settings.run_background_jobs!r} is not on or off")
    if settings.run_background_jobs == "on":
        await engine.jobs.start()
        await engine.connections.start()
        await engine.alerts.start()
        await engine.retention.start()
        await engine.memory.start()
        await engine.identities.start()


async def watch_work(engine: Engine, settings: Settings) -> None:
    """Raise the error that ended background work of `start_work`; expected errors do not end it."""
    while True:
        await start_work(engine, settings)
        await asyncio.sleep(POLL_SECONDS)


async def run_background_work(engine: Engine) -> None:
    """Embed and extract entities from what any process stores, until this is cancelled."""
    while True:
        try:
            await engine.maintenance.resume(rest_seconds=REST_SECONDS)
        except RecordsDamaged:
            raise
        except ConspectusError as fault:
            logger.warning("resume_failed code=%(code)s", {"code": fault.code})
        await asyncio.sleep(POLL_SECONDS)
