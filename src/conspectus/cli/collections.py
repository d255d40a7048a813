"""collections and sources: manage them."""

from collections.abc import Sequence
from typing import Final

from rich.console import RenderableType

from conspectus.cli.command import Arguments, Command
from conspectus.cli.documents import receipt_line
from conspectus.cli.errors import confirm
from conspectus.cli.options import Confirmation
from conspectus.cli.output import cell, facts_table, rows_table
from conspectus.cli.session import Opening, Session
from conspectus.model.filter import Eq
from conspectus.model.records import Collection, Source
from conspectus.text.counts import format_count


def _collections_table(collections: Sequence[Collection]) -> RenderableType:
    rows = (
        (
            collection.id, collection.name, collection.language or "none",
            collection.space.name if collection.space else "none",
            f"{collection.created:%Y-%m-%d %H:%M}", cell(collection.description, limit=60),
        )
        for collection in collections
    )  # fmt: skip
    return rows_table(("id", "name", "language", "embedding model", "created", "description"), rows)


def _confirm_collection(session: Session, arguments: Arguments) -> None:
    collection = session.engine.collections.get(arguments["collection"])
    count = session.engine.documents.count(collection=collection.id)
    confirm(
        f"Delete the collection {collection.name} with {format_count(count, 'document')}?",
        yes=arguments["extra"].yes,
    )
    arguments["collection"] = collection.id


def _show_sources(session: Session, sources: Sequence[Source], _: Arguments) -> None:
    counts = {source.id: str(_count(session, source)) for source in sources} if not session.json else {}
    rows = ((source.id, source.name, source.kind, counts.get(source.id)) for source in sources)
    session.show_or_exit(sources, rows_table(("id", "name", "kind", "documents"), rows), "no sources")


def _show_source(session: Session, source: Source, _: Arguments) -> None:
    facts = {"id": source.id, "name": source.name, "kind": source.kind, "documents": _count(session, source)}
    facts |= {name: str(value) for name, value in source.metadata.items()}
    session.show(source, facts_table(facts))


def _confirm_source(session: Session, arguments: Arguments) -> None:
    source = session.engine.collections.get_source(arguments["source"], collection=session.collection)
    count = _count(session, source)
    confirm(
        f"Delete the source {source.name} with {format_count(count, 'document')}?", yes=arguments["extra"].yes
    )
    arguments["source"] = source.id


def _count(session: Session, source: Source) -> int:
    return session.engine.documents.count(collection=source.collection, filter=Eq("source", source.id))


COLLECTIONS_COMMANDS: Final = {
    "list": Command(
        "collections:CollectionService.list", "List collections.", _collections_table, limit=100,
        nothing="no collections",
    ),
    "create": Command(
        "engine.collections:CollectionService.create", "Create a collection.", "created {result.name}",
        opening=Opening(new=True),
    ),
    "rename": Command(
        "collections:CollectionService.update", "Rename a collection.",
        "renamed {collection} to {result.name}", arguments={"collection": "NAME", "name": "NEW_NAME"},
        only="",
    ),
    "delete": Command(
        "collections:CollectionService.delete", "Delete a collection with all its documents.", receipt_line,
        arguments={"collection": "NAME"}, extra=Confirmation, prepare=_confirm_collection,
    ),
}  # fmt: skip

SOURCES_COMMANDS: Final = {
    "list": Command(
        "collections:CollectionService.list_sources", "List the sources of a collection.", show=_show_sources,
        limit=100,
    ),
    "get": Command("collections:CollectionService.get_source", "Show a source.", show=_show_source),
    "create": Command(
        "engine.collections:CollectionService.get_or_create_source",
        "Create a source. Add documents with `add --source`.", "created {result.name}", only="",
        opening=Opening(new=True),
    ),
    "rename": Command(
        "collections:CollectionService.update_source", "Rename a source.",
        "renamed {source} to {result.name}", arguments={"source": "NAME", "name": "NEW_NAME"}, only="",
    ),
    "delete": Command(
        "collections:CollectionService.delete_source", "Delete a source with all its documents.",
        receipt_line, extra=Confirmation, prepare=_confirm_source,
    ),
}  # fmt: skip
