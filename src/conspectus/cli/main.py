"""The program `conspectus`."""

import importlib.metadata
import io
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from conspectus.cli import (
    alerts,
    ask,
    collections,
    connections,
    documents,
    eval,
    events,
    graph,
    graph_entities,
    jobs,
    maintenance,
    memory,
    memory_manage,
    messages,
    people,
    search,
    serve,
    stream_timeline,
    streams,
    tasks,
)
from conspectus.cli.errors import INTERRUPTED, INVALID, MEANINGS, fail
from conspectus.cli.options import Common, spread

EXIT_CODES = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items()) + "."

COMMANDS: Mapping[str, tuple[str, Mapping[str, Callable[..., None]]]] = {
    "": ("The context engine for language models.", {
        "add": documents.add, "ask": ask.ask, "search": search.search, "context": search.context,
        "explain": search.explain, "list": documents.list_documents, "delete": documents.delete,
        "status": maintenance.status, "check": maintenance.check, "reindex": maintenance.reindex,
        "reembed": maintenance.reembed, "serve": serve.serve, "worker": serve.worker, "mcp": serve.mcp,
        "migrate": maintenance.migrate, "backup": maintenance.backup, "restore": maintenance.restore,
        "ingest": jobs.ingest,
    }),
    "eval": ("Measure the product on an evaluation set.", {
        "retrieval": eval.retrieval, "evidence": eval.evidence, "conversation": eval.conversation,
        "turns": eval.turns, "moments": eval.moments, "similarity": eval.similarity,
    }),
    "collections": ("Manage collections.", {
        "list": collections.list_collections, "create": collections.create_collection,
        "rename": collections.rename_collection, "delete": collections.delete_collection,
    }),
    "sources": ("Manage the sources of a collection.", {
        "list": collections.list_sources, "create": collections.create_source,
        "rename": collections.rename_source, "delete": collections.delete_source,
    }),
    "jobs": ("Long work: what waits, runs, succeeded or failed.", {
        "list": jobs.list_jobs, "show": jobs.show_job, "cancel": jobs.cancel_job, "retry": jobs.retry_job,
        "report": jobs.report_jobs,
    }),
    "requests": ("Calls to vendors of embeddings and rerankers.", {
        "list": jobs.list_requests, "totals": jobs.total_requests,
    }),
    "wiki": ("Stores that a collection is kept in step with.", {
        "connect": connections.connect_wiki, "list": connections.list_wikis, "sync": connections.sync_wiki,
        "watch": connections.watch_wiki, "remove": connections.remove_wiki,
    }),
    "tasks": ("Tasks: what is to be done, found by meaning.", {
        "add": tasks.add, "update": tasks.update, "attach": tasks.attach, "list": tasks.list_tasks,
        "search": tasks.search, "show": tasks.show_task, "delete": tasks.delete,
        "import": tasks.import_tasks,
    }),
    "messages": ("Channels and what was said in them.", {
        "import": messages.import_archive, "send": messages.send, "latest": messages.latest,
        "chain": messages.chain, "context": messages.context, "delete": messages.delete,
    }),
    "video": ("Streams of captions, and what is seen and said in them.", {
        "import": streams.import_files, "streams": streams.list_streams, "captions": streams.captions,
        "ask": streams.ask, "summary": streams.summary, "timeline": stream_timeline.timeline,
        "delete": streams.delete,
    }),
    "video events": ("What happened in streams.", {"add": events.add, "list": events.list_events}),
    "video alerts": ("Standing questions.", {
        "add": alerts.add, "list": alerts.list_alerts, "delete": alerts.delete, "listen": alerts.listen,
    }),
    "memory": ("What agents remember, recall and forget.", {
        "add": memory.add, "recall": memory.recall, "context": memory.context, "recent": memory.recent,
        "history": memory_manage.history, "show": memory_manage.show_memory,
        "versions": memory_manage.versions, "update": memory_manage.update, "pin": memory_manage.pin,
        "forget": memory_manage.forget, "retain": memory_manage.retain,
        "conversations": memory_manage.conversations, "stats": memory_manage.stats,
        "export": memory_manage.export, "import": memory_manage.import_lines,
    }),
    "memory retention": ("How long memories are kept.", {
        "list": memory_manage.list_retentions, "apply": memory_manage.apply_retention,
    }),
    "graph": ("Graphs of entities, and the names in passages.", {
        "list": graph.list_graphs, "add-nodes": graph.add_nodes, "add-edges": graph.add_edges,
        "add-node": graph.add_node, "add-edge": graph.add_edge, "node": graph.show_node,
        "nodes": graph.nodes, "edges": graph.edges, "neighbours": graph.neighbours, "find": graph.find,
        "at": graph.at, "export": graph.export, "names": graph_entities.names,
        "keep-names": graph_entities.keep_names, "find-names": graph_entities.find_names,
        "link": graph_entities.link, "merge": graph_entities.merge, "split": graph_entities.split,
        "history": graph_entities.history, "delete": graph.delete,
    }),
    "users": ("Accounts of people and programs.", {
        "list": people.list_users, "add": people.add_user, "disable": people.disable_user,
        "enable": people.enable_user, "delete": people.delete_user,
    }),
    "groups": ("Groups of users.", {
        "list": people.list_groups, "add": people.add_group, "delete": people.delete_group,
        "members": people.members, "join": people.join, "leave": people.leave,
    }),
    "keys": ("Keys to come in with.", {
        "list": people.list_keys, "add": people.add_key, "revoke": people.revoke_key,
        "rotate": people.rotate_key,
    }),
    "grants": ("Roles on the collection.", {
        "list": people.list_grants, "add": people.add_grant, "remove": people.remove_grant,
    }),
}  # fmt: skip
"""Help and commands of each group by its name; "" is the program itself. A group follows its parent."""


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
        code = build_app()(arguments, prog_name="conspectus", standalone_mode=False)
    except typer.TyperException as error:
        fail("usage", error.format_message(), facts={}, as_json=as_json)
        return INVALID
    except (typer.Abort, KeyboardInterrupt):
        fail("interrupted", "interrupted", facts={}, as_json=as_json)
        return INTERRUPTED
    return code if isinstance(code, int) else 0


def build_app() -> typer.Typer:
    """The program with all its commands."""
    groups: dict[str, typer.Typer] = {}
    for path, (about, commands) in COMMANDS.items():
        group = typer.Typer(help=about, rich_markup_mode=None, pretty_exceptions_enable=False)
        for name, command in commands.items():
            group.command(name)(spread(command))
        groups[path] = group
        above, _, own = path.rpartition(" ")
        if own:
            groups[above].add_typer(group, name=own)
    app = groups[""]
    app.info.name, app.info.epilog = "conspectus", EXIT_CODES
    app.callback(invoke_without_command=True)(_before)
    return app


def _before(
    ctx: typer.Context,
    data: Annotated[str | None, typer.Option(help="Folder or URL of the data, for every command.")] = None,
    *,
    collection: Annotated[str | None, typer.Option(help="Collection, for every command.")] = None,
    url: Annotated[str | None, typer.Option(help="Server to ask, for every command.")] = None,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON document on stdout, for every command.")
    ] = False,
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    """The context engine for language models: find, rank, pack and explain context."""
    if version:
        print(f"conspectus {importlib.metadata.version('conspectus')}")
        raise typer.Exit
    if ctx.invoked_subcommand is None:
        print(ctx.get_help())
        raise typer.Exit(INVALID)
    ctx.obj = Common(data, collection, json, url)
