"""serve, console, worker and mcp: run servers and workers.

The server is loaded only when a command needs it, so that other commands start fast.
"""

import asyncio
import importlib
import signal
import sys
import threading
import webbrowser
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from conspectus.cli.errors import FAILED
from conspectus.cli.options import ProjectPath, Tokenizer, agent_of
from conspectus.cli.output import dump, note
from conspectus.cli.session import Session
from conspectus.deferred import dataclass
from conspectus.errors import InvalidInput, optional
from conspectus.model.memory import Scope
from conspectus.settings import Settings
from conspectus.web.warmup import freeze_gc

if TYPE_CHECKING:
    from conspectus.engine.any_engine import AnyEngine
    from conspectus.mcp.tool import ToolOptions
    from conspectus.web.serve import Opened

SERVER = "conspectus.web.serve"
"""The module that serves in this process."""
SERVERS = "conspectus.web.supervisor"
"""The module that serves in several processes."""
LOGS = "conspectus.web.logs"
HEARTBEAT_SECONDS: Final = 1.0
"""Seconds between two updates of the heartbeat file."""
CONSOLE: Final = "/console"
TOOLS = "conspectus.mcp.tool"

NoAuth = Annotated[
    bool, typer.Option("--no-auth", help="Create no owner; requests from this machine need no key.")
]


@dataclass(frozen=True, slots=True)
class Fixed:
    """Options that tool calls cannot change."""

    user: Annotated[str | None, typer.Option(help="Restrict memories to this user.")] = None
    agent: Annotated[str | None, typer.Option(help="Restrict memories to this agent.")] = None
    conversation: Annotated[str | None, typer.Option(help="Restrict memories to this conversation.")] = None
    project: ProjectPath = None
    tokenizer: Tokenizer = "o200k_base"
    max_tokens: Annotated[
        int | None,
        typer.Option(min=0, help="Maximum and default tokens of a result "
                     "(default: CONSPECTUS_MCP_MAX_TOKENS, else 8000)."),
    ] = None  # fmt: skip

    def options(self, settings: Settings) -> "ToolOptions":
        """Return the options of the MCP server. Raises InvalidInput."""
        maximum = settings.mcp_max_tokens if self.max_tokens is None else self.max_tokens
        scope = Scope(self.user, agent_of(self.agent, self.project), self.conversation)
        tools = importlib.import_module(TOOLS)
        added = tools.split_names(settings.mcp_operations)
        options: ToolOptions = tools.ToolOptions(maximum, scope, self.tokenizer, added)
        return options


@dataclass(frozen=True, slots=True)
class Listening:
    """The HTTP address, if MCP is not served over standard input and output."""

    http: Annotated[bool, typer.Option("--http", help="Serve over HTTP instead of stdin and stdout.")] = False
    host: Annotated[
        str | None, typer.Option(help="Address for --http (default: CONSPECTUS_HOST, else 127.0.0.1).")
    ] = None
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port for --http; 0 is any (default: CONSPECTUS_PORT, else 8642)."
        ),
    ] = None
    no_auth: NoAuth = False


def serve(
    session: Session,
    *,
    host: Annotated[
        str | None, typer.Option(help="Address (default: CONSPECTUS_HOST, else 127.0.0.1).")
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            min=0, max=65535, help="Port; 0 is any free port (default: CONSPECTUS_PORT, else 8642)."
        ),
    ] = None,
    no_auth: NoAuth = False,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Server processes (default: CONSPECTUS_WORKERS, else 1).")
    ] = None,
    no_jobs: Annotated[
        bool, typer.Option("--no-jobs", help="Leave background jobs to `conspectus worker`.")
    ] = False,
) -> None:
    """Run the HTTP server. The first start prints the owner's API key."""
    session.require_here()
    base = _with_address(session.settings, host, port)
    settings = replace(
        base,
        workers=base.workers if workers is None else workers,
        run_background_jobs="off" if no_jobs else base.run_background_jobs,
    )
    with freeze_gc():
        server = importlib.import_module(SERVER if settings.workers <= 1 else SERVERS)
    serving = server.serve if settings.workers <= 1 else server.serve_many
    announce = partial(_announce, as_json=session.json)
    asyncio.run(serving(settings, path=session.common.data_dir, keyless=no_auth, announce=announce))


def console(
    session: Session,
    *,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port; 0 is any free port, which is the default.")
    ] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
) -> None:
    """Open the web console on this machine, until interrupted."""
    session.require_here()
    settings = replace(session.settings, host="127.0.0.1", port=port, log_level="warning")
    with freeze_gc():
        server = importlib.import_module(SERVER)
    announce = partial(_show_console, as_json=session.json, in_browser=not no_open)
    asyncio.run(server.serve(settings, path=session.common.data_dir, keyless=None, announce=announce))


def worker(
    session: Session,
    *,
    heartbeat_file: Annotated[
        Path | None, typer.Option(help="File to touch every second while the worker runs.")
    ] = None,
) -> None:
    """Run background jobs without serving HTTP."""
    session.require_here()
    if session.common.collection is not None:
        raise InvalidInput("collection", "is not an option of a worker, which serves all collections")
    settings = replace(session.settings, run_background_jobs="on")
    logs = importlib.import_module(LOGS)
    log = logs.logger(settings.log_level)

    def log_fault(fault: BaseException) -> None:
        log.error("worker_failed", **logs.fault_facts(fault))

    with logs.forward_library_logs(log):
        went_well = asyncio.run(
            _work(session.common.data_dir or settings.path, settings, heartbeat_file, log_fault)
        )
    if not went_well:
        raise typer.Exit(FAILED)


def mcp(session: Session, fixed: Fixed, listening: Listening) -> None:
    """Run an MCP server."""
    if session.common.collection is not None:
        raise InvalidInput("collection", "is not an option of mcp; each tool call names its collection")
    transports = optional("conspectus.mcp.stdio", "mcp", "mcp")
    options = fixed.options(session.settings)
    if listening.http:
        _serve_http(session, listening, options)
    elif (listening.host, listening.port, listening.no_auth) != (None, None, False):
        raise InvalidInput("http", "is required with --host, --port and --no-auth")
    else:
        asyncio.run(_serve_stdio(session, partial(transports.serve_stdio, options=options)))


def _with_address(settings: Settings, host: str | None, port: int | None) -> Settings:
    """Return the settings with the given address."""
    return replace(
        settings,
        host=settings.host if host is None else host,
        port=settings.port if port is None else port,
    )


def _announce(opened: "Opened", *, as_json: bool, path: str = "") -> None:
    if as_json:
        dump(opened)
    elif opened.key is not None:
        print(f"API key of the owner (shown once): {opened.key}")
    sys.stdout.flush()
    console = "" if path else f" (console: {opened.address}{CONSOLE})"
    note(f"listening on {opened.address}{path}{console}")


def _show_console(opened: "Opened", *, as_json: bool, in_browser: bool) -> None:
    """Print the address of the console, and open a browser once the server responds."""
    address = f"{opened.address}{CONSOLE}"
    if as_json:
        dump(opened)
    else:
        print(f"The console is at {address}; Ctrl+C ends it.")
    sys.stdout.flush()
    if in_browser:
        threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


async def _work(
    path: str, settings: Settings, heartbeat: Path | None, log_fault: Callable[[BaseException], None]
) -> bool:
    """Work until the process is stopped. Running jobs are then finished or released.

    Returns false if an error ended the work. It is logged at once, as closing the store may take a while.
    """
    from conspectus import bootstrap
    from conspectus.engine.background_work import run_background_work, start_work, watch_work

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, stopping.set)
    heartbeat_tasks = [] if heartbeat is None else [asyncio.create_task(_touch_heartbeat(heartbeat))]
    async with bootstrap.open(path, settings=settings) as engine:
        await start_work(engine, settings)
        note("working")
        working = [run_background_work(engine), watch_work(engine, settings), stopping.wait()]
        fault = await _first_fault([*heartbeat_tasks, *map(asyncio.ensure_future, working)])
        if fault is not None:
            log_fault(fault)
        return fault is None


async def _first_fault(tasks: Sequence[asyncio.Future[Any]]) -> BaseException | None:
    """Wait until one task ends and cancel the others; return the first error."""
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    faults = (task.exception() for task in tasks if not task.cancelled())
    return next((fault for fault in faults if fault is not None), None)


async def _touch_heartbeat(heartbeat: Path) -> None:
    """Touch the file as long as the event loop runs."""
    while True:
        await asyncio.to_thread(heartbeat.touch)
        await asyncio.sleep(HEARTBEAT_SECONDS)


async def _serve_stdio(session: Session, serve_stdio: Callable[["AnyEngine"], Awaitable[None]]) -> None:
    """Serve the data directory, created if it is new, or the server."""
    from conspectus import bootstrap, client

    path = session.common.data_dir or session.settings.path
    opened: AbstractAsyncContextManager[AnyEngine] = (
        client.open(url, settings=session.settings)
        if (url := session.url)
        else bootstrap.open(path, settings=session.settings)
    )
    async with opened as engine:
        await serve_stdio(engine)


def _serve_http(session: Session, listening: Listening, options: "ToolOptions") -> None:
    if session.common.url is not None:
        raise InvalidInput("url", "cannot be used with --http; a server serves MCP at /mcp itself")
    settings = _with_address(session.settings, listening.host, listening.port)
    announce = partial(_announce, as_json=session.json, path="/mcp")
    with freeze_gc():
        server = importlib.import_module(SERVER)
    asyncio.run(
        server.serve(
            settings,
            path=session.common.data_dir,
            keyless=listening.no_auth,
            announce=announce,
            mcp_only=options,
        )
    )
