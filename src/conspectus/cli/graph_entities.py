"""graph: entities that chunks mention, entity linking and merges."""

from typing import Annotated

import typer

from conspectus.cli.graph import OfGraph, Reason
from conspectus.cli.options import Limit, Wait
from conspectus.cli.output import progress, rows_table
from conspectus.cli.session import Session
from conspectus.errors import InvalidInput

CANDIDATES = 3
Text = Annotated[str, typer.Argument(metavar="TEXT", help="Text with entities.")]


def entities(
    session: Session,
    *,
    prefix: Annotated[str, typer.Option(help="Prefix of the names.")] = "",
    limit: Limit = 100,
    source: Annotated[str | None, typer.Option(help="Source (name or id).")] = None,
) -> None:
    """List the entities that chunks mention, by frequency."""
    found = session.engine.graph.entities(
        collection=session.collection, prefix=prefix, limit=limit, source=source
    )
    rows = ((one.name, one.type, one.passages) for one in found)
    session.show_found(found, rows_table(("name", "type", "chunks"), rows), "no entities")


def enable_extraction(session: Session, *, wait: Wait = True) -> None:
    """Enable entity extraction for a collection."""
    with progress() as bars:
        home = session.engine.graph.extract_entities(True, collection=session.collection)
        read = (
            session.engine.graph.settle_entities(collection=session.collection, progress=bars) if wait else 0
        )
    session.show({"collection": home, "read": read}, f"enabled; {read:,} chunks processed")


def disable_extraction(session: Session) -> None:
    """Disable entity extraction and delete its results."""
    home = session.engine.graph.extract_entities(False, collection=session.collection)
    session.show({"collection": home, "read": 0}, "disabled")


def extract(text: Text, session: Session) -> None:
    """Show the entities in a text."""
    found = session.engine.graph.find_mentions(text, collection=session.collection)
    rows = ((one.text, one.type, str(one.start), str(one.end), one.key, f"{one.score:.2f}") for one in found)
    table = rows_table(("name", "type", "from", "to", "key", "score"), rows)
    session.show_found(found, table, "no entities in the text")


def link(
    text: Text,
    session: Session,
    of: OfGraph,
    *,
    mention: Annotated[
        str | None, typer.Option(help="Part of the text to link (default: all entities).")
    ] = None,
    threshold: Annotated[float | None, typer.Option(help="Minimum score of a link, 0 to 1.")] = None,
) -> None:
    """Link entities in a text to graph nodes."""
    span = None if mention is None else _span(text, mention)
    found = session.engine.graph.link(text, **of.place(session), mention=span, threshold=threshold)
    rows = (
        (
            one.mention.text, one.node.id if one.node else "-",
            [f"{each.node.id} {each.score:.2f}" for each in one.candidates[:CANDIDATES]],
        )
        for one in found
    )  # fmt: skip
    table = rows_table(("mention", "node", "candidates"), rows)
    session.show_found(found, table, "no entities in the text")


def merge(
    keep: Annotated[str, typer.Argument(metavar="NODE", help="Node to keep (id).")],
    others: Annotated[list[str], typer.Argument(metavar="OTHER...", help="Nodes to merge into it (ids).")],
    session: Session,
    of: OfGraph,
    *,
    reason: Reason = "",
) -> None:
    """Merge nodes and their edges into one."""
    node = session.engine.graph.merge_nodes(keep, others, reason=reason, **of.place(session))
    session.show(node, f"merged into {node.id}")


def undo_merge(
    number: Annotated[int, typer.Argument(metavar="MERGE", help="Number of a merge.")],
    session: Session,
    of: OfGraph,
    *,
    reason: Reason = "",
) -> None:
    """Undo a merge."""
    nodes = session.engine.graph.split_node(number, reason=reason, **of.place(session))
    session.show(nodes, f"restored {', '.join(each.id for each in nodes)}")


def merges(
    session: Session,
    of: OfGraph,
    *,
    limit: Limit = 100,
    node: Annotated[str | None, typer.Argument(metavar="[NODE]", help="Id of a node (default: all).")] = None,
) -> None:
    """List merges and undone merges."""
    found = session.engine.graph.node_history(node, **of.place(session))[:limit]
    rows = ((str(one.number), one.kind, one.at, one.by, one.before, one.after, one.reason) for one in found)
    columns = ("number", "kind", "time", "by", "before", "after", "reason")
    session.show_found(found, rows_table(columns, rows), "no merges")


def _span(text: str, mention: str) -> tuple[int, int]:
    """The position of a mention in a text. Raises InvalidInput."""
    start = text.find(mention)
    if not mention or start < 0:
        raise InvalidInput("mention", f"{mention!r} is not in the text")
    return start, start + len(mention)
