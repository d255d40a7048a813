"""graph: entities that chunks mention, entity linking and merges."""

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import RenderableType

from conspectus.cli.errors import show_found
from conspectus.cli.graph import OfGraph, Reason
from conspectus.cli.options import Common, Limit, Wait
from conspectus.cli.output import cell, plain_table, progress, rows_table, show
from conspectus.cli.session import opened
from conspectus.errors import InvalidInput
from conspectus.model.graph import EntityCount, EntityLink, Mention, NodeEvent

CANDIDATES = 3
Text = Annotated[str, typer.Argument(metavar="TEXT", help="Text with entities.")]


def entities(
    common: Common,
    *,
    prefix: Annotated[str, typer.Option(help="Prefix of the names.")] = "",
    limit: Limit = 100,
    source: Annotated[str | None, typer.Option(help="Source (name or id).")] = None,
) -> None:
    """List the entities that chunks mention, by frequency."""
    with opened(common) as session:
        found = session.engine.graph.entities(
            collection=session.collection, prefix=prefix, limit=limit, source=source
        )
    show_found(found, _names_table(found), "no entities", as_json=common.json)


def enable_extraction(common: Common, *, wait: Wait = True) -> None:
    """Enable entity extraction for a collection."""
    with opened(common) as session, progress() as bars:
        home = session.engine.graph.extract_entities(True, collection=session.collection)
        read = (
            session.engine.graph.settle_entities(collection=session.collection, progress=bars) if wait else 0
        )
    show({"collection": home, "read": read}, f"enabled; {read:,} chunks processed", as_json=common.json)


def disable_extraction(common: Common) -> None:
    """Disable entity extraction and delete its results."""
    with opened(common) as session:
        home = session.engine.graph.extract_entities(False, collection=session.collection)
    show({"collection": home, "read": 0}, "disabled", as_json=common.json)


def extract(text: Text, common: Common) -> None:
    """Show the entities in a text."""
    with opened(common) as session:
        found = session.engine.graph.find_mentions(text, collection=session.collection)
    show_found(found, _found_table(found), "no entities in the text", as_json=common.json)


def link(
    text: Text,
    common: Common,
    of: OfGraph,
    *,
    mention: Annotated[
        str | None, typer.Option(help="Part of the text to link (default: all entities).")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Minimum score of a link, 0 to 1.")] = None,
) -> None:
    """Link entities in a text to graph nodes."""
    span = None if mention is None else _span(text, mention)
    with opened(common) as session:
        found = session.engine.graph.link(
            text, graph=of.graph, collection=session.collection, mention=span, threshold=threshold
        )
    show_found(found, _links_table(found), "no entities in the text", as_json=common.json)


def merge(
    keep: Annotated[str, typer.Argument(metavar="NODE", help="Node to keep (id).")],
    others: Annotated[list[str], typer.Argument(metavar="OTHER...", help="Nodes to merge into it (ids).")],
    common: Common,
    of: OfGraph,
    *,
    reason: Reason = "",
) -> None:
    """Merge nodes and their edges into one."""
    with opened(common) as session:
        place = {"graph": of.graph, "collection": session.collection}
        node = session.engine.graph.merge_nodes(keep, others, reason=reason, **place)
    show(node, f"merged into {node.id}", as_json=common.json)


def undo_merge(
    number: Annotated[int, typer.Argument(metavar="MERGE", help="Number of a merge.")],
    common: Common,
    of: OfGraph,
    *,
    reason: Reason = "",
) -> None:
    """Undo a merge."""
    with opened(common) as session:
        place = {"graph": of.graph, "collection": session.collection}
        nodes = session.engine.graph.split_node(number, reason=reason, **place)
    show(nodes, f"restored {', '.join(each.id for each in nodes)}", as_json=common.json)


def merges(
    common: Common,
    of: OfGraph,
    *,
    limit: Limit = 100,
    node: Annotated[str | None, typer.Argument(metavar="[NODE]", help="Id of a node (default: all).")] = None,
) -> None:
    """List merges and undone merges."""
    with opened(common) as session:
        found = session.engine.graph.node_history(node, graph=of.graph, collection=session.collection)[:limit]
    show_found(found, _history_table(found), "no merges", as_json=common.json)


def _span(text: str, mention: str) -> tuple[int, int]:
    """The position of a mention in a text. Raises InvalidInput."""
    start = text.find(mention)
    if not mention or start < 0:
        raise InvalidInput("mention", f"{mention!r} is not in the text")
    return start, start + len(mention)


def _names_table(found: Iterable[EntityCount]) -> RenderableType:
    return rows_table(
        ("name", "type", "chunks"), ((one.name, one.type, f"{one.passages:,}") for one in found)
    )


def _found_table(found: Iterable[Mention]) -> RenderableType:
    rows = ((one.text, one.type, str(one.start), str(one.end), one.key, f"{one.score:.2f}") for one in found)
    return rows_table(("name", "type", "from", "to", "key", "score"), rows)


def _links_table(found: Iterable[EntityLink]) -> RenderableType:
    table = plain_table("mention", "node", "candidates")
    for each in found:
        others = ", ".join(f"{one.node.id} {one.score:.2f}" for one in each.candidates[:CANDIDATES])
        table.add_row(cell(each.mention.text), cell(each.node.id if each.node else "-"), cell(others))
    return table


def _history_table(found: Iterable[NodeEvent]) -> RenderableType:
    table = plain_table("number", "kind", "time", "by", "before", "after", "reason")
    for each in found:
        nodes = [cell(", ".join(some)) for some in (each.before, each.after)]
        when = f"{each.at:%Y-%m-%d %H:%M:%S}"
        table.add_row(str(each.number), each.kind, when, cell(each.by), *nodes, cell(each.reason))
    return table
