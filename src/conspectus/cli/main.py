"""The program `conspectus`."""

import importlib.metadata
import io
import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from conspectus.cli import (
    asking,
    chatting,
    collections,
    conversations,
    documents,
    evaluating,
    graph,
    mcp,
    memory,
    moving,
    people,
    serving,
    tasks,
    upkeep,
    video,
    work,
    working,
)
from conspectus.cli.failures import INTERRUPTED, INVALID, MEANINGS, fail
from conspectus.cli.options import Common, spread

EXIT_CODES = "Exit codes: " + "; ".join(f"{code} {meaning}" for code, meaning in MEANINGS.items()) + "."


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
    app = typer.Typer(
        name="conspectus", help="The context engine for language models.", epilog=EXIT_CODES,
        pretty_exceptions_enable=False, rich_markup_mode=None,
    )  # fmt: skip
    app.callback(invoke_without_command=True)(_before)
    commands: Mapping[str, Callable[..., None]] = {
        "add": documents.add, "ask": chatting.ask, "search": asking.search, "context": asking.context,
        "explain": asking.explain, "list": documents.list_documents, "delete": documents.delete,
        "status": upkeep.status, "check": upkeep.check, "reindex": upkeep.reindex,
        "reembed": upkeep.reembed, "serve": serving.serve, "worker": working.worker,
        "mcp": mcp.mcp, "migrate": moving.migrate,
        "backup": moving.backup, "restore": moving.restore,
    }  # fmt: skip
    evaluation = typer.Typer(help="Measure the product on an evaluation set.", rich_markup_mode=None)
    for name, command in commands.items():
        app.command(name)(spread(command))
    evaluation.command("retrieval")(spread(evaluating.retrieval))
    evaluation.command("evidence")(spread(evaluating.evidence))
    evaluation.command("conversation")(spread(evaluating.conversation))
    evaluation.command("turns")(spread(evaluating.turns))
    evaluation.command("threads")(spread(evaluating.threads))
    evaluation.command("moments")(spread(evaluating.moments))
    evaluation.command("entities")(spread(evaluating.entities))
    evaluation.command("parsing")(spread(evaluating.parsing))
    evaluation.command("similarity")(spread(evaluating.similarity))
    evaluation.command("injection")(spread(evaluating.injection))
    app.add_typer(evaluation, name="eval")
    collections.add_collections(app)
    work.add_work(app)
    tasks.add_tasks(app)
    conversations.add_messages(app)
    video.add_video(app)
    memory.add_memory(app)
    graph.add_graph(app)
    for name, group in people.groups_of_commands().items():
        app.add_typer(group, name=name)
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
