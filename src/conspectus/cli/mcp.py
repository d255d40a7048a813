"""mcp.

The server is loaded only here, as no other command should have to wait for it.
"""

import asyncio
import importlib
import sys
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from conspectus import bootstrap, client
from conspectus.cli.options import Common
from conspectus.cli.output import dump, note
from conspectus.errors import InvalidInput
from conspectus.model.memory import Scope
from conspectus.settings import Settings
from conspectus.web.loading import for_good

if TYPE_CHECKING:
    from conspectus.mcp.offer import AnyEngine, Options
    from conspectus.web.serve import Opened

OFFER = "conspectus.mcp.offer"
STDIO = "conspectus.mcp.stdio"
SERVER = "conspectus.web.serve"


@dataclass(frozen=True, slots=True)
class Fixed:
    """What no call can change."""

    user: Annotated[str | None, typer.Option(help="Work on memories of this user only.")] = None
    agent: Annotated[str | None, typer.Option(help="Work on memories of this agent only.")] = None
    conversation: Annotated[str | None, typer.Option(help="Work on memories of this conversation only.")] = (
        None
    )
    tokenizer: Annotated[
        str, typer.Option(help="Who counts results: o200k_base, cl100k_base, hf:PATH or an estimator.")
    ] = "o200k_base"
    max_tokens: Annotated[
        int | None,
        typer.Option(min=0, help="Most tokens of a result, and as many where a call names none. "
                     "Default: CONSPECTUS_MCP_TOKENS, else 8000."),
    ] = None  # fmt: skip

    def options(self, settings: Settings) -> "Options":
        """As the server takes it. Raises InvalidInput."""
        most = settings.mcp_tokens if self.max_tokens is None else self.max_tokens
        scope = Scope(self.user, self.agent, self.conversation)
        made: Options = importlib.import_module(OFFER).Options(most, scope, self.tokenizer)
        return made


@dataclass(frozen=True, slots=True)
class Listening:
    """Where it listens, if it does not speak over standard input and output."""

    http: Annotated[
        bool, typer.Option("--http", help="Listen on a port instead: each request brings its caller's key.")
    ] = False
    host: Annotated[
        str | None,
        typer.Option(help="With --http: address to listen on. Default: CONSPECTUS_HOST, else 127.0.0.1."),
    ] = None
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="With --http: port. Default: CONSPECTUS_PORT, else 8642. 0: any free one."
        ),
    ] = None
    keyless: Annotated[
        bool, typer.Option("--keyless", help="With --http: make no owner account; this machine needs no key.")
    ] = False


def mcp(common: Common, fixed: Fixed, listening: Listening) -> None:
    """Serve models by the Model Context Protocol, over standard input and output or over HTTP."""
    if common.collection is not None:
        raise InvalidInput("collection", "each call names the collection that it asks")
    settings = Settings.from_environment()
    options = fixed.options(settings)
    if listening.http:
        _listen(common, listening, settings, options)
    elif (listening.host, listening.port, listening.keyless) != (None, None, False):
        raise InvalidInput("http", "has to be given with --host, --port and --keyless")
    else:
        asyncio.run(_speak(common, settings, options))


async def _speak(common: Common, settings: Settings, options: "Options") -> None:
    async with _opened(common, settings) as engine:
        await importlib.import_module(STDIO).serve_stdio(engine, options)


def _opened(common: Common, settings: Settings) -> AbstractAsyncContextManager["AnyEngine"]:
    """The data, made if they are new, or the server that is named."""
    if common.url is not None and common.data is not None:
        raise InvalidInput("url", "give either --url or --data")
    url = common.url or (settings.url if common.data is None else "")
    if url:
        return client.open(url, settings=settings)
    return bootstrap.open(common.data or settings.path, settings=settings)


def _listen(common: Common, listening: Listening, settings: Settings, options: "Options") -> None:
    if common.url is not None:
        raise InvalidInput("url", "a server answers at /mcp itself; --http is for the data of this machine")
    chosen = replace(
        settings,
        host=settings.host if listening.host is None else listening.host,
        port=settings.port if listening.port is None else listening.port,
    )

    def announce(opened: "Opened") -> None:
        if common.json:
            dump(opened)
        elif opened.key is not None:
            print(f"The key of the owner account, shown this once: {opened.key}")
        sys.stdout.flush()
        note(f"listening on {opened.address}/mcp")

    with for_good():
        server = importlib.import_module(SERVER)
    asyncio.run(
        server.serve(
            chosen, path=common.data, keyless=listening.keyless, announce=announce, only_models=options
        )
    )
