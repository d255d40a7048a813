"""serve, worker and mcp.

The server is loaded only when a command needs it, so that other commands start fast.
"""

import asyncio
import importlib
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from conspectus import bootstrap, client
from conspectus.cli.errors import FAILED
from conspectus.cli.options import Common
from conspectus.cli.output import dump, note
from conspectus.cli.session import require_here
from conspectus.engine.background import keep_working, start_work, watch_work
from conspectus.errors import InvalidInput
from conspectus.model.memory import Scope
from conspectus.settings import Settings
from conspectus.web.warmup import for_good

if TYPE_CHECKING:
    from conspectus.mcp.tool import AnyEngine, ToolOptions
    from conspectus.web.serve import Opened

SERVER = "conspectus.web.serve"
SERVERS = "conspectus.web.supervisor"
LOGS = "conspectus.web.logs"
PULSE: Final = 1.0
"""Seconds between two touches of the file whose age says whether the process lives."""
OFFER = "conspectus.mcp.tool"
STDIO = "conspectus.mcp.stdio"


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
                     "Default: CONSPECTUS_MCP_MAX_TOKENS, else 8000."),
    ] = None  # fmt: skip

    def options(self, settings: Settings) -> "ToolOptions":
        """As the server takes it. Raises InvalidInput."""
        most = settings.mcp_max_tokens if self.max_tokens is None else self.max_tokens
        scope = Scope(self.user, self.agent, self.conversation)
        made: ToolOptions = importlib.import_module(OFFER).Options(most, scope, self.tokenizer)
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
        run_background_jobs="off" if no_jobs else given.run_background_jobs,
    )

    with for_good():
        server = importlib.import_module(SERVER if settings.workers <= 1 else SERVERS)
    serving = server.serve if settings.workers <= 1 else server.serve_many
    asyncio.run(
        serving(settings, path=common.data, keyless=keyless, announce=partial(_announce, as_json=common.json))
    )


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
    settings = replace(Settings.from_environment(), run_background_jobs="on")
    logs = importlib.import_module(LOGS)
    log = logs.logger(settings.log_level)

    def tell(fault: BaseException) -> None:
        log.error("a worker could not go on", **logs.fault_facts(fault))

    with logs.forwarded(log):
        went_well = asyncio.run(_work(common.data or settings.path, settings, pulse, tell))
    if not went_well:
        raise typer.Exit(FAILED)


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


def _announce(opened: "Opened", *, as_json: bool) -> None:
    if as_json:
        dump(opened)
    elif opened.key is not None:
        print(f"The key of the owner account, shown this once: {opened.key}")
    sys.stdout.flush()
    note(f"listening on {opened.address}")


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


async def _speak(common: Common, settings: Settings, options: "ToolOptions") -> None:
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


def _listen(common: Common, listening: Listening, settings: Settings, options: "ToolOptions") -> None:
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
