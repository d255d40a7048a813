"""connections: sync a collection from Git, MediaWiki or a folder."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from conspectus.cli.errors import confirm
from conspectus.cli.jobs import Wait, jobs_table, report
from conspectus.cli.options import Common, Limit, Yes
from conspectus.cli.output import cell, plain_table, show
from conspectus.cli.session import opened, require_here
from conspectus.errors import InvalidInput
from conspectus.model.connections import Connection
from conspectus.model.jobs import Job

TRUTH: Mapping[str, bool] = MappingProxyType({"true": True, "false": False})
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of a connection.")]


def add_connection(
    name: Name,
    connector: Annotated[str, typer.Argument(help="markdown, git or mediawiki.")],
    common: Common,
    *,
    option: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE (path=DIR, address=URL, branch=NAME, ...); repeatable."),
    ] = None,
) -> None:
    """Connect the collection to Git, MediaWiki or a folder."""
    with opened(common, new=True) as session:
        made = session.engine.connections.create(
            name, connector, _options(option or []), collection=session.collection
        )
    show(made, _connections_table([made]), as_json=common.json)


def list_connections(common: Common, *, limit: Limit = 100) -> None:
    """List the connections of the collection with their last runs."""
    with opened(common) as session:
        found = session.engine.connections.list(collection=session.collection)[:limit]
    show(found, _connections_table(found), as_json=common.json)


def sync(name: Name, common: Common, *, wait: Wait = True) -> None:
    """Sync a connection now."""
    with opened(common) as session:
        report(
            session, [session.engine.connections.sync(name, collection=session.collection)], common, wait=wait
        )


def watch(name: Name, common: Common) -> None:
    """Sync a connection now and after every change of its folder."""
    require_here(common)

    def told(job: Job) -> None:
        show(job, jobs_table([job]), as_json=common.json)

    with opened(common) as session:
        session.engine.connections.watch(name, collection=session.collection, told=told)


def delete_connection(
    name: Name,
    common: Common,
    *,
    documents: Annotated[bool, typer.Option("--documents", help="Delete its documents as well.")] = False,
    yes: Yes = False,
) -> None:
    """Delete a connection."""
    with opened(common) as session:
        confirm("Delete all its documents?", yes=yes or not documents)
        receipt = session.engine.connections.delete(name, collection=session.collection, delete=documents)
    show(receipt, f"deleted the connection {name} and {receipt.documents} documents", as_json=common.json)


def _connections_table(found: Iterable[Connection]) -> RenderableType:
    table = plain_table("name", "connector", "state", "last run", "options", "error")
    for each in found:
        ran = f"{each.ran:%Y-%m-%d %H:%M:%S}" if each.ran else "-"
        options = cell(json.dumps(dict(each.options), ensure_ascii=False))
        table.add_row(cell(each.name), each.connector, each.state, ran, options, cell(each.error or ""))
    return table


def _options(given: Sequence[str]) -> dict[str, Any]:
    """KEY=VALUE pairs; JSON lists, true and false are parsed, and `path` is made absolute."""
    options: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise InvalidInput("option", f"{each!r} is not KEY=VALUE")
        options[name] = _list(value) if value.startswith("[") else TRUTH.get(value, value)
    if "path" in options:
        options["path"] = str(Path(options["path"]).expanduser().absolute())
    return options


def _list(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidInput("option", f"{text!r} is not a JSON list") from None
