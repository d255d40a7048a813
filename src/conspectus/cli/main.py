"""The program `conspectus`."""

import importlib
import io
import logging
import sys
from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from conspectus.cli.errors import INTERRUPTED, INVALID, MEANINGS, fail
from conspectus.cli.options import Common
from conspectus.cli.session import PROGRAM, spread

EXIT_CODES = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items()) + "."

COMMANDS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "": ("The context engine for language models.", {
        "add": "documents.add", "ask": "ask.ask", "search": "search.search", "context": "search.context",
        "explain": "search.explain", "list": "documents.list_documents", "delete": "documents.delete",
        "ls": "documents.list_files", "cat": "documents.read_file", "head": "documents.head",
        "find": "documents.find_files", "grep": "documents.grep",
        "status": "maintenance.status", "check": "maintenance.check", "scan": "maintenance.scan",
        "reindex": "maintenance.reindex",
        "reembed": "maintenance.reembed", "serve": "serve.serve", "console": "serve.console",
        "demo": "demo.demo", "worker": "serve.worker", "mcp": "serve.mcp",
        "version": "maintenance.show_version", "whoami": "people.whoami",
        "migrate": "maintenance.migrate", "backup": "maintenance.backup", "restore": "maintenance.restore",
        "ingest": "jobs.ingest",
    }),
    "import": ("Import from mem0, LangGraph, Chroma, Qdrant and files.", {
        "mem0": "imports.mem0", "langgraph": "imports.langgraph", "chroma": "imports.chroma",
        "qdrant": "imports.qdrant", "memory-formats": "imports.memory_formats",
    }),
    "eval": ("Measure quality on an evaluation set.", {
        "init": "eval.init", "compare": "eval.compare",
        "retrieval": "eval.retrieval", "evidence": "eval.evidence", "conversation": "eval.conversation",
        "turns": "eval.turns", "moments": "eval.moments", "similarity": "eval.similarity",
        "trust": "eval.trust",
    }),
    "collections": ("Manage collections.", {
        "list": "collections.list_collections", "create": "collections.create_collection",
        "rename": "collections.rename_collection", "delete": "collections.delete_collection",
    }),
    "feedback": ("Manage feedback on search results.", {
        "add": "search.add_feedback", "list": "search.list_feedback", "revoke": "search.revoke_feedback",
    }),
    "sources": ("Manage the sources of a collection.", {
        "list": "collections.list_sources", "get": "collections.get_source",
        "create": "collections.create_source", "rename": "collections.rename_source",
        "delete": "collections.delete_source",
    }),
    "jobs": ("Manage background jobs.", {
        "list": "jobs.list_jobs", "get": "jobs.get_job", "cancel": "jobs.cancel_job",
        "retry": "jobs.retry_job", "report": "jobs.report_jobs",
    }),
    "quarantine": ("Review documents that match attack patterns.", {
        "list": "documents.list_quarantined", "release": "documents.release_quarantined",
    }),
    "requests": ("Log of model provider requests.", {
        "list": "jobs.list_requests", "summary": "jobs.summarize_requests",
    }),
    "connections": ("Sync a collection from Git, MediaWiki or a folder.", {
        "add": "collections.add_connection", "list": "collections.list_connections",
        "sync": "collections.sync", "watch": "collections.watch", "delete": "collections.delete_connection",
    }),
    "tasks": ("Manage and search tasks.", {
        "add": "tasks.add", "update": "tasks.update", "attach": "tasks.attach", "list": "tasks.list_tasks",
        "search": "tasks.search", "get": "tasks.get_task", "delete": "tasks.delete",
        "import": "tasks.import_tasks",
    }),
    "messages": ("Manage the messages of channels.", {
        "import": "messages.import_archive", "add": "messages.add", "list": "messages.list_messages",
        "thread": "messages.thread", "context": "messages.context", "delete": "messages.delete",
    }),
    "streams": ("Manage and search streams of captions.", {
        "import": "streams.import_files", "list": "streams.list_streams", "captions": "streams.captions",
        "search": "streams.search", "context": "streams.context", "summarize": "streams.summarize",
        "timeline": "stream_timeline.timeline", "delete": "streams.delete",
    }),
    "events": ("Manage the events of streams.", {"add": "streams.add_event", "list": "streams.list_events"}),
    "alerts": ("Manage alerts for new captions.", {
        "add": "streams.add_alert", "list": "streams.list_alerts", "delete": "streams.delete_alert",
        "watch": "streams.watch_alerts",
    }),
    "agent": ("Connect coding agents with their memory.", {
        "install": "agent.install", "uninstall": "agent.uninstall", "status": "agent.status",
    }),
    "memory": ("Manage and search the memories of agents.", {
        "add": "memory.add", "recall": "memory.recall", "context": "memory.context",
        "recent": "memory.recent", "list": "memory_manage.list_memories", "get": "memory_manage.get_memory",
        "versions": "memory_manage.versions", "update": "memory_manage.update", "pin": "memory_manage.pin",
        "unpin": "memory_manage.unpin", "delete": "memory_manage.delete",
        "conversations": "memory_manage.conversations", "stats": "memory_manage.stats",
        "export": "memory_manage.export", "import": "memory_manage.import_lines",
        "extract": "memory_manage.extract",
    }),
    "memory retention": ("Manage the retention of memories.", {
        "set": "memory_manage.set_retention", "list": "memory_manage.list_retentions",
        "apply": "memory_manage.apply_retention",
    }),
    "graph": ("Manage graphs and the entities in chunks.", {
        "list": "graph.list_graphs", "add-nodes": "graph.add_nodes", "add-edges": "graph.add_edges",
        "add-node": "graph.add_node", "add-edge": "graph.add_edge", "get-node": "graph.get_node",
        "nodes": "graph.nodes", "edges": "graph.edges", "neighbors": "graph.neighbors",
        "search": "graph.search", "snapshot": "graph.snapshot", "export": "graph.export",
        "entities": "graph.entities", "extract": "graph.extract",
        "link": "graph.link", "merge": "graph.merge",
        "undo-merge": "graph.undo_merge", "merges": "graph.merges",
        "delete": "graph.delete",
    }),
    "graph extraction": ("Manage entity extraction for a collection.", {
        "enable": "graph.enable_extraction", "disable": "graph.disable_extraction",
    }),
    "users": ("Manage users.", {
        "list": "people.list_users", "add": "people.add_user", "disable": "people.disable_user",
        "enable": "people.enable_user", "delete": "people.delete_user",
    }),
    "groups": ("Manage groups of users.", {
        "list": "people.list_groups", "add": "people.add_group", "delete": "people.delete_group",
        "members": "people.members", "add-member": "people.add_member",
        "remove-member": "people.remove_member",
    }),
    "keys": ("Manage API keys.", {
        "list": "people.list_keys", "create": "people.create_key", "revoke": "people.revoke_key",
        "rotate": "people.rotate_key",
    }),
    "grants": ("Manage roles on collections and sources.", {
        "list": "people.list_grants", "add": "people.add_grant", "remove": "people.remove_grant",
        "effective": "people.effective_roles", "readers": "people.list_readers",
        "audit": "people.list_audit",
    }),
}  # fmt: skip
"""Help of each group by its name, and where its commands are; "" is the program itself. A group follows its
parent."""


OWN = {"--help", "--version"}
"""Options that end the program before a command."""


def main() -> None:
    """Run the program with the arguments of the process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    as_json = "--json" in arguments
    try:
        code = build_app(arguments)(arguments, prog_name=PROGRAM, standalone_mode=False)
    except typer.TyperException as error:
        fail("usage", error.format_message(), facts={}, as_json=as_json)
        return INVALID
    except (typer.Abort, KeyboardInterrupt):
        fail("interrupted", "interrupted", facts={}, as_json=as_json)
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def build_app(arguments: Sequence[str] = ()) -> typer.Typer:
    """Return the program with the commands that these arguments may name, or with all if unknown."""
    command_names = {*OWN, *COMMANDS[""][1], *(path.partition(" ")[0] for path in COMMANDS)}
    first = {*arguments[:1]} & command_names or {*arguments} & command_names
    groups: dict[str, typer.Typer] = {}
    for path, (about, commands) in COMMANDS.items():
        group = typer.Typer(help=about, rich_markup_mode=None, pretty_exceptions_enable=False)
        for name, target in commands.items():
            if not first or (path or name).split()[0] in first or (not path and first & OWN):
                module, _, function = target.partition(".")
                command = getattr(importlib.import_module(f"conspectus.cli.{module}"), function)
                group.command(name)(spread(command))
        groups[path] = group
        above, _, group_name = path.rpartition(" ")
        if group_name:
            groups[above].add_typer(group, name=group_name)
    app = groups[""]
    app.info.name, app.info.epilog = PROGRAM, EXIT_CODES
    app.callback(invoke_without_command=True)(_before)
    return app


def _before(
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
