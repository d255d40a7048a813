"""collections, sources and connections: manage them, and sync a collection from elsewhere."""

import json
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from conspectus.cli.documents import receipt_line
from conspectus.cli.errors import confirm
from conspectus.cli.jobs import Wait, jobs_table, report
from conspectus.cli.options import Limit, Purge, Yes
from conspectus.cli.output import cell, facts_table, moment, rows_table
from conspectus.cli.session import NewSession, Session
from conspectus.errors import InvalidInput
from conspectus.model.connections import Connection
from conspectus.model.files import expanded
from conspectus.model.filter import Eq
from conspectus.model.jobs import Job
from conspectus.model.records import Source

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name or id.")]
NewName = Annotated[str, typer.Argument(metavar="NEW_NAME", help="New name.")]


def list_collections(session: Session, *, limit: Limit = 100) -> None:
    """List collections."""
    collections = session.engine.collections.list()[:limit]
    rows = (
        (
            one.id, one.name, one.language or "none", one.space.name if one.space else "none",
            f"{one.created:%Y-%m-%d %H:%M}", cell(one.description, limit=60),
        )
        for one in collections
    )  # fmt: skip
    columns = ("id", "name", "language", "embedding model", "created", "description")
    session.show_or_exit(collections, rows_table(columns, rows), "no collections")


def create_collection(
    name: Name,
    session: NewSession,
    *,
    embedder: Annotated[
        str | None, typer.Option(help="Embedding model (default: CONSPECTUS_EMBEDDER).")
    ] = None,
    language: Annotated[str | None, typer.Option(help="Snowball language, or none.")] = None,
    description: Annotated[str, typer.Option(help="Description.")] = "",
) -> None:
    """Create a collection."""
    collection = session.engine.collections.create(
        name, embedder=embedder, language=language, description=description
    )
    session.show(collection, f"created {collection.name}")


def rename_collection(name: Name, new: NewName, session: Session) -> None:
    """Rename a collection."""
    changed = session.engine.collections.update(name, name=new)
    session.show(changed, f"renamed {name} to {changed.name}")


def delete_collection(name: Name, session: Session, *, purge: Purge = False, yes: Yes = False) -> None:
    """Delete a collection with all its documents."""
    collection = session.engine.collections.get(name)
    count = session.engine.documents.count(collection=collection.id)
    confirm(f"Delete the collection {collection.name} with {count} documents?", yes=yes)
    receipt = session.engine.collections.delete(collection.id, purge=purge)
    session.show(receipt, receipt_line(receipt))


def list_sources(session: Session, *, limit: Limit = 100) -> None:
    """List the sources of a collection."""
    sources = session.engine.collections.list_sources(collection=session.collection)[:limit]
    counts = {source.id: str(_count(session, source)) for source in sources} if not session.json else {}
    rows = ((source.id, source.name, source.kind, counts.get(source.id)) for source in sources)
    session.show_or_exit(sources, rows_table(("id", "name", "kind", "documents"), rows), "no sources")


def get_source(name: Name, session: Session) -> None:
    """Show a source."""
    source = session.engine.collections.get_source(name, collection=session.collection)
    facts = {"id": source.id, "name": source.name, "kind": source.kind, "documents": _count(session, source)}
    facts |= {name: str(value) for name, value in source.metadata.items()}
    session.show(source, facts_table(facts))


def create_source(name: Name, session: NewSession) -> None:
    """Create a source. Add documents with `add --source`."""
    source = session.engine.collections.get_or_create_source(name, collection=session.collection)
    session.show(source, f"created {source.name}")


def rename_source(name: Name, new: NewName, session: Session) -> None:
    """Rename a source."""
    changed = session.engine.collections.update_source(name, collection=session.collection, name=new)
    session.show(changed, f"renamed {name} to {changed.name}")


def delete_source(name: Name, session: Session, *, purge: Purge = False, yes: Yes = False) -> None:
    """Delete a source with all its documents."""
    source = session.engine.collections.get_source(name, collection=session.collection)
    count = _count(session, source)
    confirm(f"Delete the source {source.name} with {count} documents?", yes=yes)
    receipt = session.engine.collections.delete_source(source.id, collection=session.collection, purge=purge)
    session.show(receipt, receipt_line(receipt))


def _count(session: Session, source: Source) -> int:
    return session.engine.documents.count(collection=source.collection, filter=Eq("source", source.id))


TRUTH: Mapping[str, bool] = MappingProxyType({"true": True, "false": False})
ConnectionName = Annotated[str, typer.Argument(metavar="NAME", help="Name of a connection.")]


def add_connection(
    name: ConnectionName,
    connector: Annotated[str, typer.Argument(help="markdown, git or mediawiki.")],
    session: NewSession,
    *,
    option: Annotated[
        list[str] | None,
        typer.Option(help="KEY=VALUE (path=DIR, address=URL, branch=NAME, ...); repeatable."),
    ] = None,
) -> None:
    """Connect the collection to Git, MediaWiki or a folder."""
    connection = session.engine.connections.create(
        name, connector, _options(option or []), collection=session.collection
    )
    session.show(connection, _connections_table([connection]))


def list_connections(session: Session, *, limit: Limit = 100) -> None:
    """List the connections of the collection with their last runs."""
    connections = session.engine.connections.list(collection=session.collection)[:limit]
    session.show(connections, _connections_table(connections))


def sync(name: ConnectionName, session: Session, *, wait: Wait = True) -> None:
    """Sync a connection now."""
    report(session, [session.engine.connections.sync(name, collection=session.collection)], wait=wait)


def watch(name: ConnectionName, session: Session) -> None:
    """Sync a connection now and after every change of its folder."""
    session.require_here()

    def on_job(job: Job) -> None:
        session.show(job, jobs_table([job]))

    session.engine.connections.watch(name, collection=session.collection, on_job=on_job)


def delete_connection(
    name: ConnectionName,
    session: Session,
    *,
    documents: Annotated[bool, typer.Option("--documents", help="Delete its documents as well.")] = False,
    yes: Yes = False,
) -> None:
    """Delete a connection."""
    connections = session.engine.connections
    confirm("Delete all its documents?", yes=yes or not documents)
    receipt = connections.delete(name, collection=session.collection, delete=documents)
    session.show(receipt, f"deleted the connection {name} and {receipt.documents} documents")


def _connections_table(connections: Iterable[Connection]) -> RenderableType:
    rows = (
        (
            connection.name, connection.connector, connection.state, connection.access,
            moment(connection.last_run), json.dumps(dict(connection.options), ensure_ascii=False),
            connection.error,
        )
        for connection in connections
    )  # fmt: skip
    return rows_table(("name", "connector", "state", "access", "last run", "options", "error"), rows)


def _options(values: Sequence[str]) -> dict[str, Any]:
    """Parse KEY=VALUE pairs, with JSON lists, true and false. `path` is made absolute."""
    options: dict[str, Any] = {}
    for pair in values:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise InvalidInput("option", f"{pair!r} is not KEY=VALUE")
        options[name] = _list(value) if value.startswith("[") else TRUTH.get(value, value)
    if "path" in options:
        options["path"] = str(expanded(options["path"]).absolute())
    return options


def _list(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise InvalidInput("option", f"{text!r} is not a JSON list") from None
