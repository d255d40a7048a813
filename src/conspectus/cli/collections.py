"""collections and sources: list, create, rename and delete."""

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import RenderableType

from conspectus.cli.errors import FAILED, NOTHING
from conspectus.cli.options import Common
from conspectus.cli.output import cell, note, plain_table, show
from conspectus.cli.session import opened
from conspectus.model.filter import Eq
from conspectus.model.records import Collection, Receipt, Source
from conspectus.sync import BlockingEngine

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name or id.")]
NewName = Annotated[str, typer.Argument(metavar="NEW_NAME", help="New name.")]
Purge = Annotated[bool, typer.Option("--purge", help="Wait until no file holds the texts.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]


def list_collections(common: Common) -> None:
    """List collections."""
    with opened(common) as session:
        found = session.engine.collections()
    show(found, _collections_table(found), as_json=common.json)
    if not found:
        raise typer.Exit(NOTHING)


def create_collection(
    name: Name,
    common: Common,
    *,
    embedder: Annotated[
        str | None, typer.Option(help="Embedding model. Default: CONSPECTUS_EMBEDDER.")
    ] = None,
    language: Annotated[str | None, typer.Option(help="Snowball language of the texts, or none.")] = None,
    description: Annotated[str, typer.Option(help="Description.")] = "",
) -> None:
    """Create a collection."""
    with opened(common, new=True) as session:
        made = session.engine.create_collection(
            name, embedder=embedder, language=language, description=description
        )
    show(made, f"created {made.name}", as_json=common.json)


def rename_collection(name: Name, new: NewName, common: Common) -> None:
    """Rename a collection."""
    with opened(common) as session:
        changed = session.engine.update_collection(name, rename=new)
    show(changed, f"renamed {name} to {changed.name}", as_json=common.json)


def delete_collection(name: Name, common: Common, *, purge: Purge = False, yes: Yes = False) -> None:
    """Delete a collection with all its documents."""
    with opened(common) as session:
        found = session.engine.find_collection(name)
        count = session.engine.count(collection=found.id)
        _confirm(f"Delete the collection {found.name} with {count} documents?", yes=yes)
        receipt = session.engine.delete_collection(found.id, purge=purge)
    show(receipt, _receipt(receipt), as_json=common.json)


def list_sources(common: Common) -> None:
    """List the sources of a collection."""
    with opened(common) as session:
        found = session.engine.sources(collection=session.collection)
        counts = {each.id: _count(session.engine, each) for each in found} if not common.json else {}
    table = plain_table("id", "name", "kind", "documents")
    for each in found:
        table.add_row(cell(each.id), cell(each.name), each.kind, str(counts.get(each.id, "")))
    show(found, table, as_json=common.json)
    if not found:
        raise typer.Exit(NOTHING)


def create_source(name: Name, common: Common) -> None:
    """Create a source. Documents are added to it with `add --source`."""
    with opened(common, new=True) as session:
        made = session.engine.source(name, collection=session.collection)
    show(made, f"created {made.name}", as_json=common.json)


def rename_source(name: Name, new: NewName, common: Common) -> None:
    """Rename a source."""
    with opened(common) as session:
        changed = session.engine.update_source(name, collection=session.collection, rename=new)
    show(changed, f"renamed {name} to {changed.name}", as_json=common.json)


def delete_source(name: Name, common: Common, *, purge: Purge = False, yes: Yes = False) -> None:
    """Delete a source with all its documents."""
    with opened(common) as session:
        found = session.engine.find_source(name, collection=session.collection)
        count = _count(session.engine, found)
        _confirm(f"Delete the source {found.name} with {count} documents?", yes=yes)
        receipt = session.engine.delete_source(found.id, collection=session.collection, purge=purge)
    show(receipt, _receipt(receipt), as_json=common.json)


def _confirm(question: str, *, yes: bool) -> None:
    if not yes and not typer.confirm(question, err=True):
        note("nothing was deleted")
        raise typer.Exit(FAILED)


def _count(engine: BlockingEngine, source: Source) -> int:
    return engine.count(collection=source.collection, where=Eq("source", source.id))


def _receipt(receipt: Receipt) -> str:
    gone = f"deleted {receipt.documents} documents, {receipt.chunks} chunks, {receipt.vectors} vectors"
    return gone + ("; no file holds them any more" if receipt.purged else "")


def _collections_table(found: Sequence[Collection]) -> RenderableType:
    table = plain_table("id", "name", "language", "embedder", "created", "description")
    for each in found:
        table.add_row(
            cell(each.id),
            cell(each.name),
            each.language or "none",
            cell(each.space.name if each.space else "none"),
            f"{each.created:%Y-%m-%d %H:%M}",
            cell(each.description, limit=60),
        )
    return table
