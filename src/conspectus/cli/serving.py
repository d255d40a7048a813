"""serve.

The server is loaded only here, as no other command should have to wait for it.
"""

import asyncio
import importlib
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from conspectus.cli.options import Common
from conspectus.cli.output import dump, note
from conspectus.cli.session import require_here
from conspectus.settings import Settings

if TYPE_CHECKING:
    from conspectus.web.serve import Opened

SERVER = "conspectus.web.serve"


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
) -> None:
    """Serve the data over HTTP; the first start makes the owner account and prints its key, once."""
    require_here(common)
    given = Settings.from_environment()
    settings = replace(
        given, host=given.host if host is None else host, port=given.port if port is None else port
    )

    def announce(opened: "Opened") -> None:
        if common.json:
            dump(opened)
        elif opened.key is not None:
            print(f"The key of the owner account, shown this once: {opened.key}")
        sys.stdout.flush()
        note(f"listening on {opened.address}")

    server = importlib.import_module(SERVER)
    asyncio.run(server.serve(settings, path=common.data, keyless=keyless, announce=announce))
