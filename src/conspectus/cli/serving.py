"""serve.

The server is loaded only here, as no other command should have to wait for it.
"""

import asyncio
import importlib
import sys
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from conspectus.cli.options import Common
from conspectus.cli.output import dump, note
from conspectus.cli.session import require_here
from conspectus.settings import Settings
from conspectus.web.loading import for_good

if TYPE_CHECKING:
    from conspectus.web.serve import Opened

SERVER = "conspectus.web.serve"
SERVERS = "conspectus.web.workers"


def serve(
    common: Common,
    *,
    host: Annotated[
        str | None, typer.Option(help="Address to listen on. Default: CONSPECTUS_HOST, else 127.0.0.1.")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(min=0, max=65535, help="Port. Default: CONSPECTUS_PORT, else 8642. 0: any free one."),
    ] = None,
    keyless: Annotated[
        bool, typer.Option("--keyless", help="Make no owner account: this machine needs no key.")
    ] = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes that answer. Default: CONSPECTUS_WORKERS, else 1.")
    ] = None,
    no_jobs: Annotated[
        bool, typer.Option("--no-jobs", help="Leave jobs and what follows writes to `conspectus worker`.")
    ] = False,
) -> None:
    """Serve the data over HTTP; the first start makes the owner account and prints its key, once."""
    require_here(common)
    given = Settings.from_environment()
    settings = replace(
        given,
        host=given.host if host is None else host,
        port=given.port if port is None else port,
        workers=given.workers if workers is None else workers,
        background="off" if no_jobs else given.background,
    )

    with for_good():
        server = importlib.import_module(SERVER if settings.workers <= 1 else SERVERS)
    serving = server.serve if settings.workers <= 1 else server.serve_many
    asyncio.run(
        serving(settings, path=common.data, keyless=keyless, announce=partial(_announce, as_json=common.json))
    )


def _announce(opened: "Opened", *, as_json: bool) -> None:
    if as_json:
        dump(opened)
    elif opened.key is not None:
        print(f"The key of the owner account, shown this once: {opened.key}")
    sys.stdout.flush()
    note(f"listening on {opened.address}")
