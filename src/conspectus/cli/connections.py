"""connections: sync a collection from Git, MediaWiki or a folder."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from conspectus.cli.errors import FAILED
from conspectus.cli.jobs import Wait, jobs_table, report
from conspectus.cli.options import Common
from conspectus.cli.output import cell, note, plain_table, show
from conspectus.cli.session import opened, require_here
from conspectus.errors import InvalidInput
from conspectus.model.connections import Connection
from conspectus.model.jobs import Job

TRUTH: Mapping[str, bool] = MappingProxyType({"true": True, "false": False})
WikiName = Annotated[str, typer.Argument(metavar="NAME", help="Name of a connection.")]


def connect_wiki(
    name: WikiName,
    connector: Annotated[str, typer.Argument(help="markdown, git or mediawiki.")],
    common: Common,
    *,
    option: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE, as path=DIR, address=URL, branch=NAME; may be repeated."),
    ] = None,
) -> None:
    """Connect the collection with a folder, a repository or a wiki; `wiki sync` brings it in step."""
    with opened(common, new=True) as session:
        made = session.engine.connect(name, connector, _options(option or []), collection=session.collection)
    show(made, _wikis_table([made]), as_json=common.json)


def list_wikis(common: Common) -> None:
    """List what the collection is connected with, and how the last run went."""
    with opened(common) as session:
        found = session.engine.connections(collection=session.collection)
    show(found, _wikis_table(found), as_json=common.json)


def sync_wiki(name: WikiName, common: Common, *, wait: Wait = True) -> None:
    """Bring the collection in step with what it is connected with."""
    with opened(common) as session:
        report(session, [session.engine.sync(name, collection=session.collection)], common, wait=wait)


def watch_wiki(name: WikiName, common: Common) -> None:
    """Bring the collection in step now and after every change of the folder, until interrupted."""
    require_here(common)

    def told(job: Job) -> None:
        show(job, jobs_table([job]), as_json=common.json)

    with opened(common) as session:
        session.engine.follow(name, collection=session.collection, told=told)


def remove_wiki(
    name: WikiName,
    common: Common,
    *,
    delete: Annotated[bool, typer.Option("--delete", help="Delete what it brought, too.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """End a connection."""
    with opened(common) as session:
        if delete and not yes and not typer.confirm("Delete all its documents?", err=True):
            note("nothing was changed")
            raise typer.Exit(FAILED)
        receipt = session.engine.disconnect(name, collection=session.collection, delete=delete)
    show(receipt, f"{name} is disconnected; deleted {receipt.documents} documents", as_json=common.json)


def _wikis_table(wikis: Iterable[Connection]) -> RenderableType:
    table = plain_table("name", "connector", "state", "ran", "options", "error")
    for each in wikis:
        ran = f"{each.ran:%Y-%m-%d %H:%M:%S}" if each.ran else "-"
        options = cell(json.dumps(dict(each.options), ensure_ascii=False))
        table.add_row(cell(each.name), each.connector, each.state, ran, options, cell(each.error or ""))
    return table


def _options(given: Sequence[str]) -> dict[str, Any]:
    """KEY=VALUE pairs: JSON lists, true and false are what they are, the rest is text, `path` a path."""
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
