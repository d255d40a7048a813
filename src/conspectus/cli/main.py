"""The program `conspectus`."""

import importlib
import io
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from types import ModuleType
from typing import Annotated

import typer

from conspectus.cli.command import Command
from conspectus.cli.errors import INTERRUPTED, INVALID, MEANINGS, fail
from conspectus.cli.options import Common
from conspectus.cli.session import PROGRAM, spread

EXIT_CODES = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items()) + "."

COMMANDS: Mapping[str, str] = {
    "add": "documents.add", "ask": "ask.ask", "search": "search.search", "context": "search.context",
    "explain": "search.explain", "list": "documents.list_documents", "delete": "documents.delete",
    "ls": "documents.list_files", "cat": "documents.read_file", "head": "documents.head",
    "find": "documents.find_files", "grep": "documents.grep", "status": "maintenance.status",
    "check": "maintenance.check", "scan": "maintenance.scan", "reindex": "maintenance.reindex",
    "reembed": "maintenance.reembed", "serve": "serve.serve", "console": "serve.console", "demo": "demo.demo",
    "worker": "serve.worker", "mcp": "serve.mcp", "version": "maintenance.show_version",
    "whoami": "people.whoami", "migrate": "maintenance.migrate", "backup": "maintenance.backup",
    "restore": "maintenance.restore", "ingest": "jobs.ingest", "export": "document_lines.export",
    "login": "login.login", "logout": "login.logout",
}  # fmt: skip
"""Module and name of each command without a group."""
GROUPS: Mapping[str, tuple[str, str]] = {
    "import": ("Import from mem0, LangGraph, Chroma, Qdrant and exports.", "imports"),
    "eval": ("Measure quality on an evaluation set.", "eval"),
    "collections": ("Manage collections.", "collections"),
    "answers": ("List and read what people were given.", "answers"),
    "experiments": (
        "Measure settings on questions, and make one the default.",
        "experiments",
    ),
    "feedback": ("Manage feedback on search results.", "search"),
    "sources": ("Manage the sources of a collection.", "collections"),
    "jobs": ("Manage background jobs.", "jobs"),
    "relations": ("Manage which documents supersede others.", "documents"),
    "quarantine": ("Review documents that match attack patterns.", "documents"),
    "requests": ("Log of model provider requests.", "jobs"),
    "connections": ("Sync a collection from Git, MediaWiki or a folder.", "connections"),
    "tasks": ("Manage and search tasks.", "tasks"),
    "messages": ("Manage the messages of channels.", "messages"),
    "streams": ("Manage and search streams of captions.", "streams stream_timeline"),
    "events": ("Manage the events of streams.", "events"),
    "alerts": ("Manage alerts for new captions.", "alerts"),
    "agent": ("Connect coding agents with their memory.", "agent"),
    "memory": ("Manage and search the memories of agents.", "memory memory_manage"),
    "memory retention": ("Manage the retention of memories.", "memory_manage"),
    "graph": ("Manage graphs and the entities in chunks.", "graph"),
    "graph extraction": ("Manage entity extraction for a collection.", "graph"),
    "users": ("Manage users.", "people"),
    "groups": ("Manage groups of users.", "people"),
    "keys": ("Manage API keys.", "keys"),
    "sessions": ("List and end the sessions of browsers.", "logins"),
    "invitations": ("Invite users without a key to log in.", "logins"),
    "identities": ("Manage who signs in with tokens of an identity provider.", "identities"),
    "grants": ("Manage roles on collections and sources.", "access"),
}
"""Help of each group by its path, and the modules with tables of its commands. A group follows its parent."""
SYNONYMS: Mapping[str, str] = {
    "query": "search", "retrieve": "search", "window": "context", "chat": "ask", "index": "add",
    "load": "add", "upload": "add", "rm": "delete", "remove": "delete", "fetch": "ingest", "start": "serve",
    "run": "serve", "dump": "export", "documents": "list", "remember": "memory add",
    "recall": "memory recall", "forget": "memory delete", "history": "memory versions",
    "nodes": "graph nodes", "edges": "graph edges", "get": "cat", "show": "cat", "read": "cat",
}  # fmt: skip
"""Names of commands in other programs, with the command that does it here."""
BESIDE_GROUPS: Mapping[str, str] = {
    "import": ". Exports of Slack, Discord and IRC: conspectus messages import FILE"
}
"""What belongs to a group for many people, and is a command of another one."""
ROOT_OPTIONS = {"--help", "--version"}
"""Options that end the program before a command."""


def main() -> None:
    """Run the program with the arguments of the process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    as_json = "--json" in arguments
    try:
        code = build_app(arguments)(arguments, prog_name=PROGRAM, standalone_mode=False)
    except typer.TyperException as error:
        fail("usage", _with_advice(error), facts={}, as_json=as_json)
        return INVALID
    except (typer.Abort, KeyboardInterrupt):
        fail("interrupted", "interrupted", facts={}, as_json=as_json)
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def _with_advice(error: typer.TyperException) -> str:
    """Return the message; about an unknown command, with the one that does it, or those of its group."""
    message = error.format_message().replace("Value error, ", "")
    unknown = re.match(r"No such command '([^']+)'", message)
    context = getattr(error, "ctx", None)
    if unknown is None or context is None:
        return message
    if context.parent is not None:
        names = ", ".join(context.command.list_commands(context))
        beside = BESIDE_GROUPS.get(context.info_name or "", "")
        return f"{message.rstrip('.')}. Commands of {context.info_name}: {names}{beside}"
    synonym = SYNONYMS.get(unknown[1])
    return message if synonym is None else f"{unknown[0]}. Use: conspectus {synonym}"


def build_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the program with the commands that these arguments may name, or with all if unknown."""
    command_names = {*ROOT_OPTIONS, *COMMANDS, *(path.partition(" ")[0] for path in GROUPS)}
    first = {*arguments[:1]} & command_names or {*arguments} & command_names
    app = _group("The context engine for language models.")
    for name, target in COMMANDS.items():
        if not first or name in first or first & ROOT_OPTIONS:
            module, _, attribute = target.partition(".")
            command = getattr(_module(module), attribute)
            is_listed_only = bool(first) and name not in first
            app.command(name)(_outline(command) if is_listed_only else spread(_function_of(command)))
    groups = {"": app}
    for path, (about, modules) in GROUPS.items():
        parent, _, group_name = path.rpartition(" ")
        groups[path] = _group(about)
        groups[parent].add_typer(groups[path], name=group_name)
        if not first or path.split()[0] in first:
            table = f"{path.upper().replace(' ', '_')}_COMMANDS"
            tables = (getattr(_module(module), table) for module in modules.split())
            for name, command in chain.from_iterable(commands.items() for commands in tables):
                groups[path].command(name)(spread(_function_of(command)))
    app.info.name, app.info.epilog = PROGRAM, EXIT_CODES
    app.callback(invoke_without_command=True)(_set_common_options)
    return app


def _group(about: str) -> typer.Typer:
    return typer.Typer(help=about, rich_markup_mode=None, pretty_exceptions_enable=False)


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"conspectus.cli.{name}")


def _outline(command: Command | Callable[..., None]) -> Callable[[], None]:
    """Return a function with the help of a command, whose options are not looked up."""

    def run() -> None:
        pass

    run.__doc__ = command.help if isinstance(command, Command) else command.__doc__
    return run


def _function_of(command: Command | Callable[..., None]) -> Callable[..., None]:
    """Return the function of a command. A declared one loads its operation."""
    if not isinstance(command, Command):
        return command
    from conspectus.cli.derived import Derivation

    return Derivation(command).function()


def _set_common_options(
    ctx: typer.Context,
    data_dir: Annotated[str | None, typer.Option(help="Data directory or database URL.")] = None,
    *,
    collection: Annotated[str | None, typer.Option(help="Collection.")] = None,
    url: Annotated[str | None, typer.Option(help="URL of a Conspectus server.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """The context engine for language models."""
    if version:
        from importlib.metadata import version as installed

        print(f"conspectus {installed('conspectus')}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
        raise typer.Exit(INVALID)
    ctx.obj = Common(data_dir, collection, json, url)
