"""collections and sources: list, create, rename and delete."""

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
    return engine.documents.count(collection=source.collection, where=Eq("source", source.id))


def _collections_table(found: Sequence[Collection]) -> RenderableType:
    rows = (
        (
            one.id, one.name, one.language or "none", one.space.name if one.space else "none",
            f"{one.created:%Y-%m-%d %H:%M}", cell(one.description, limit=60),
        )
        for one in found
    )  # fmt: skip
    return rows_table(("id", "name", "language", "embedding model", "created", "description"), rows)
