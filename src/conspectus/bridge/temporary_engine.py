"""An engine with a temporary store."""

import atexit
import os
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from conspectus import bootstrap
from conspectus.bridge.owned_engine import OwnedEngine
from conspectus.engine import Engine
from conspectus.settings import Settings

FOLDER_PREFIX = "conspectus-"


def temporary_engine(settings: Settings | None = None) -> OwnedEngine[Engine]:
    """Return an engine with a store that is created on first use (default settings: of the environment).

    The store is deleted when the engine is closed or no longer referenced, or when the program ends.
    """
    return OwnedEngine(partial(_open_temporary, settings))


@asynccontextmanager
async def _open_temporary(settings: Settings | None) -> AsyncIterator[Engine]:
    folder = Path(tempfile.mkdtemp(prefix=FOLDER_PREFIX))
    delete = partial(_delete, folder, os.getpid())
    atexit.register(delete)
    try:
        async with bootstrap.open(folder, settings=settings) as engine:
            yield engine
    finally:
        delete()
        atexit.unregister(delete)


def _delete(folder: Path, process: int) -> None:
    """Delete a folder, unless this process was forked from the one that uses it."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
