"""graph: entities that chunks mention, entity linking and merges."""

from collections.abc import Iterable
from typing import Annotated

import typer
from rich.console import RenderableType

from conspectus.cli.errors import show_found
from conspectus.cli.graph import OfGraph, Reason
from conspectus.cli.options import Common
from conspectus.cli.output import cell, plain_table, progress, show
from conspectus.cli.session import opened
from conspectus.errors import InvalidInput
from conspectus.model.graph import EntityCount, EntityLink, Mention, NodeEvent

CANDIDATES = 3
Text = Annotated[str, typer.Argument(metavar="TEXT", help="A text with names in it.")]


def names(
    common: Common,
    *,
    begins: Annotated[str, typer.Option(help="Only names that begin so.")] = "",
    limit: Annotated[int, typer.Option(min=1, help="Most names.")] = 100,
    source: Annotated[str | None, typer.Option(help="Only passages of this source (its name or id).")] = None,
) -> None:
    """List the names that passages mention, the most frequent first."""
    with opened(common) as session:
        found = session.engine.names(collection=session.collection, begins=begins, limit=limit, source=source)
    show_found(found, _names_table(found), "no names are known", as_json=common.json)


def keep_names(
    common: Common,
    *,
    off: Annotated[bool, typer.Option("--off", help="No more; what was found is forgotten.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="Return when all passages are looked through.")
    ] = True,
) -> None:
    """Look through the passages of a collection for names, from now on too."""
    with opened(common) as session, progress() as bars:
        home = session.engine.keep_names(not off, collection=session.collection)
        read = 0
        if wait and not off:
            read = session.engine.settle_names(collection=session.collection, progress=bars)
    told = "no names are kept any more" if off else f"names are kept; {read:,} passages looked through"
    show({"collection": home, "read": read}, told, as_json=common.json)


def find_names(text: Text, common: Common) -> None:
    """Show the names in a text, as they are found in passages."""
    with opened(common) as session:
        found = session.engine.find_names(text, collection=session.collection)
    show_found(found, _found_table(found), "there is no name in it", as_json=common.json)


def link(
    text: Text,
    common: Common,
    of: OfGraph,
    *,
    mention: Annotated[str | None, typer.Option(help="Only this name, as it stands in the text.")] = None,
    threshold: Annotated[float | None, typer.Option(help="How sure a node has to be, 0 to 1.")] = None,
) -> None:
    """Show which nodes the names in a text mean, with the candidates."""
    span = None if mention is None else _span(text, mention)
    with opened(common) as session:
        found = session.engine.link(
            text, graph=of.graph, collection=session.collection, mention=span, threshold=threshold
        )
    show_found(found, _links_table(found), "there is no name in it", as_json=common.json)


def merge(
    keep: Annotated[str, typer.Argument(metavar="NODE", help="Id of the node that stays.")],
    others: Annotated[list[str], typer.Argument(metavar="OTHER...", help="Ids of nodes that are the same.")],
    common: Common,
    of: OfGraph,
    *,
    reason: Reason = "",
) -> None:
    """Make nodes one, with the edges of all of them."""
    with opened(common) as session:
        place = {"graph": of.graph, "collection": session.collection}
        node = session.engine.merge_nodes(keep, others, reason=reason, **place)
    show(node, f"merged into {node.id}", as_json=common.json)


def split(
    number: Annotated[int, typer.Argument(metavar="MERGE", help="Number of a merge in the history.")],
    common: Common,
    of: OfGraph,
    *,
    reason: Reason = "",
) -> None:
    """Undo a merge."""
    with opened(common) as session:
        place = {"graph": of.graph, "collection": session.collection}
        nodes = session.engine.split_node(number, reason=reason, **place)
    show(nodes, f"split into {', '.join(each.id for each in nodes)}", as_json=common.json)


def history(
    common: Common,
    of: OfGraph,
    *,
    node: Annotated[str | None, typer.Argument(metavar="[NODE]", help="Id of a node. Default: all.")] = None,
) -> None:
    """List what was merged and split by hand."""
    with opened(common) as session:
        found = session.engine.node_history(node, graph=of.graph, collection=session.collection)
    show_found(found, _history_table(found), "nothing was merged or split", as_json=common.json)


def _span(text: str, mention: str) -> tuple[int, int]:
    """Where a name stands in a text. Raises InvalidInput."""
    start = text.find(mention)
    if not mention or start < 0:
        raise InvalidInput("mention", f"{mention!r} does not stand in the text")
    return start, start + len(mention)


def _names_table(found: Iterable[EntityCount]) -> RenderableType:
    table = plain_table("name", "type", "passages")
    for each in found:
        table.add_row(cell(each.name), cell(each.type), f"{each.passages:,}")
    return table


def _found_table(found: Iterable[Mention]) -> RenderableType:
    table = plain_table("name", "type", "from", "to", "key", "score")
    for each in found:
        ends = (str(each.start), str(each.end))
        table.add_row(cell(each.text), cell(each.type), *ends, cell(each.key), f"{each.score:.2f}")
    return table


def _links_table(found: Iterable[EntityLink]) -> RenderableType:
    table = plain_table("name", "means", "candidates")
    for each in found:
        others = ", ".join(f"{one.node.id} {one.score:.2f}" for one in each.candidates[:CANDIDATES])
        table.add_row(cell(each.mention.text), cell(each.node.id if each.node else "-"), cell(others))
    return table


def _history_table(found: Iterable[NodeEvent]) -> RenderableType:
    table = plain_table("number", "what", "when", "by", "before", "after", "reason")
    for each in found:
        nodes = [cell(", ".join(some)) for some in (each.before, each.after)]
        when = f"{each.at:%Y-%m-%d %H:%M:%S}"
        table.add_row(str(each.number), each.kind, when, cell(each.by), *nodes, cell(each.reason))
    return table
