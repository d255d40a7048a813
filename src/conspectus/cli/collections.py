"""collections, sources and connections: manage them, and sync a collection from elsewhere."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from conspectus.cli.documents import receipt_line
from conspectus.cli.errors import confirm, show_found
from conspectus.cli.options import Common, Limit, Purge, Yes
from conspectus.cli.output import cell, plain_table, rows_table, show
from conspectus.cli.session import opened
from conspectus.model.filter import Eq
from conspectus.model.records import Collection, Source

if TYPE_CHECKING:
    from conspectus.sync import BlockingEngine
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from conspectus.cli.jobs import Wait, jobs_table, report
from conspectus.cli.session import require_here
from conspectus.errors import InvalidInput
from conspectus.model.connections import Connection
from conspectus.model.jobs import Job

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name or id.")]
NewName = Annotated[str, typer.Argument(metavar="NEW_NAME", help="New name.")]


def list_collections(common: Common, *, limit: Limit = 100) -> None:
    """List collections."""
    with opened(common) as session:
        found = session.engine.collections.list()[:limit]
    show_found(found, _collections_table(found), "no collections", as_json=common.json)


def create_collection(
    name: Name,
    common: Common,
    *,
    embedder: Annotated[
        str | None, typer.Option(help="Embedding model (default: CONSPECTUS_EMBEDDER).")
    ] = None,
    language: Annotated[str | None, typer.Option(help="Snowball language, or none.")] = None,
    description: Annotated[str, typer.Option(help="Description.")] = "",
) -> None:
    """Create a collection."""
    with opened(common, new=True) as session:
        made = session.engine.collections.create(
            name, embedder=embedder, language=language, description=description
        )
    show(made, f"created {made.name}", as_json=common.json)


def rename_collection(name: Name, new: NewName, common: Common) -> None:
    """Rename a collection."""
    with opened(common) as session:
        changed = session.engine.collections.update(name, rename=new)
    show(changed, f"renamed {name} to {changed.name}", as_json=common.json)


def delete_collection(name: Name, common: Common, *, purge: Purge = False, yes: Yes = False) -> None:
    """Delete a collection with all its documents."""
    with opened(common) as session:
        found = session.engine.collections.get(name)
        count = session.engine.documents.count(collection=found.id)
        confirm(f"Delete the collection {found.name} with {count} documents?", yes=yes)
        receipt = session.engine.collections.delete(found.id, purge=purge)
    show(receipt, receipt_line(receipt), as_json=common.json)


def list_sources(common: Common, *, limit: Limit = 100) -> None:
    """List the sources of a collection."""
    with opened(common) as session:
        found = session.engine.collections.sources(collection=session.collection)[:limit]
        counts = {each.id: _count(session.engine, each) for each in found} if not common.json else {}
    table = plain_table("id", "name", "kind", "documents")
    for each in found:
        table.add_row(cell(each.id), cell(each.name), each.kind, str(counts.get(each.id, "")))
    show_found(found, table, "no sources", as_json=common.json)


def get_source(name: Name, common: Common) -> None:
    """Show a source."""
    with opened(common) as session:
        found = session.engine.collections.get_source(name, collection=session.collection)
        count = _count(session.engine, found)
    table = plain_table("field", "value")
    facts = {
        "id": found.id, "name": found.name, "kind": found.kind, "documents": count,
        **found.metadata,
    }  # fmt: skip
    for field, value in facts.items():
        table.add_row(cell(field), cell(str(value)))
    show(found, table, as_json=common.json)


def create_source(name: Name, common: Common) -> None:
    """Create a source. Add documents with `add --source`."""
    with opened(common, new=True) as session:
        made = session.engine.collections.get_or_create_source(name, collection=session.collection)
    show(made, f"created {made.name}", as_json=common.json)


def rename_source(name: Name, new: NewName, common: Common) -> None:
    """Rename a source."""
    with opened(common) as session:
        changed = session.engine.collections.update_source(name, collection=session.collection, rename=new)
    show(changed, f"renamed {name} to {changed.name}", as_json=common.json)


def delete_source(name: Name, common: Common, *, purge: Purge = False, yes: Yes = False) -> None:
    """Delete a source with all its documents."""
    with opened(common) as session:
        found = session.engine.collections.get_source(name, collection=session.collection)
        count = _count(session.engine, found)
        confirm(f"Delete the source {found.name} with {count} documents?", yes=yes)
        receipt = session.engine.collections.delete_source(
            found.id, collection=session.collection, purge=purge
        )
    show(receipt, receipt_line(receipt), as_json=common.json)


def _count(engine: "BlockingEngine", source: Source) -> int:
    return engine.documents.count(collection=source.collection, filter=Eq("source", source.id))


def _collections_table(found: Sequence[Collection]) -> RenderableType:
    rows = (
        (
            one.id, one.name, one.language or "none", one.space.name if one.space else "none",
            f"{one.created:%Y-%m-%d %H:%M}", cell(one.description, limit=60),
        )
        for one in found
    )  # fmt: skip
    return rows_table(("id", "name", "language", "embedding model", "created", "description"), rows)


TRUTH: Mapping[str, bool] = MappingProxyType({"true": True, "false": False})
ConnectionName = Annotated[str, typer.Argument(metavar="NAME", help="Name of a connection.")]


def add_connection(
    name: ConnectionName,
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


def sync(name: ConnectionName, common: Common, *, wait: Wait = True) -> None:
    """Sync a connection now."""
    with opened(common) as session:
        report(
            session, [session.engine.connections.sync(name, collection=session.collection)], common, wait=wait
        )


def watch(name: ConnectionName, common: Common) -> None:
    """Sync a connection now and after every change of its folder."""
    require_here(common)

    def told(job: Job) -> None:
        show(job, jobs_table([job]), as_json=common.json)

    with opened(common) as session:
        session.engine.connections.watch(name, collection=session.collection, told=told)


def delete_connection(
    name: ConnectionName,
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
        ran = f"{each.last_run:%Y-%m-%d %H:%M:%S}" if each.last_run else "-"
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
