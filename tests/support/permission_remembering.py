"""Which person may do what with memories, graphs and names: by every method that there is."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from conspectus.model.graph import NewEdge, NewNode, Traversal
from conspectus.model.memory import MemorySelection, NewMemory, Retention, Scope
from conspectus.text.times import parse_instant
from tests.support.permission_doing import outcome

Attempt = Callable[[Any, str], Awaitable[Any]]
"""Something done with a view and the name of a collection."""
BUDGET = 300
ANN, BOB = Scope("ann", "helper", "one"), Scope("bob", "helper", "one")
SECRET = "xyzzy"
"""A word of what only the owner and those who see all of the collection may see."""
WHEN = parse_instant("2026-03-02T08:00:00Z")
HIDDEN_GRAPH = "people"


@dataclass(frozen=True, slots=True)
class Made:
    """What there is in the collection: a memory of each user, lines of an export, an edge, and a merge."""

    collection: str
    mine: str
    others: str
    lines: tuple[str, ...]
    edge: str
    merge: int


Trial = Callable[[Any, Made], Awaitable[Any]]
"""Something done with a view and what there is."""


def of_memories() -> Mapping[str, Attempt]:
    """Every method that takes a collection of memories or of graphs which has to be there."""
    return {
        "recall": lambda view, name: view.memory.recall("x", scope=ANN, collection=name),
        "window": lambda view, name: view.memory.window("x", BUDGET, scope=ANN, collection=name),
        "last": lambda view, name: view.memory.list_recent(scope=ANN, collection=name),
        "memory": lambda view, name: view.memory.get("any", scope=ANN, collection=name),
        "versions": lambda view, name: view.memory.list_versions("any", scope=ANN, collection=name),
        "history": lambda view, name: view.memory.list(scope=ANN, collection=name),
        "how many": lambda view, name: view.memory.count(scope=ANN, collection=name),
        "change": lambda view, name: view.memory.update("any", scope=ANN, collection=name, text="x"),
        "forget": lambda view, name: view.memory.forget(
            MemorySelection(everything=True), scope=ANN, collection=name
        ),
        "rules": lambda view, name: view.retention.list(collection=name),
        "no rule": lambda view, name: view.retention.delete(scope=ANN, collection=name),
        "apply": lambda view, name: view.retention.apply(collection=name),
        "start": lambda view, name: view.retention.start_job(collection=name),
        "conversations": lambda view, name: view.memory.list_conversations(scope=ANN, collection=name),
        "stats": lambda view, name: view.memory.stats(scope=ANN, collection=name),
        "export": lambda view, name: view.memory.export(scope=ANN, collection=name),
        "graphs": lambda view, name: view.graph.list(collection=name),
        "node": lambda view, name: view.graph.get_node("ann", collection=name),
        "nodes": lambda view, name: view.graph.list_nodes(collection=name),
        "edges": lambda view, name: view.graph.list_edges(collection=name),
        "neighbors": lambda view, name: view.graph.neighbors("ann", collection=name),
        "find": lambda view, name: view.graph.search_nodes("ann", collection=name),
        "at": lambda view, name: view.graph.snapshot(WHEN, collection=name),
        "drawn": lambda view, name: view.graph.export("svg", collection=name),
        "no graph": lambda view, name: view.graph.delete("default", collection=name),
        "no nodes": lambda view, name: view.graph.delete_nodes(["ann"], collection=name),
        "no edges": lambda view, name: view.graph.delete_edges(["any"], collection=name),
        "keep names": lambda view, name: view.graph.set_entity_extraction(collection=name),
        "settle names": lambda view, name: view.graph.wait_until_extracted(collection=name),
        "names": lambda view, name: view.graph.list_entities(collection=name),
        "find names": lambda view, name: view.graph.extract_entities("Ann Lee", collection=name),
        "link": lambda view, name: view.graph.link_entities("Ann Lee", collection=name),
        "merge": lambda view, name: view.graph.merge_nodes("ann", ["bo"], collection=name),
        "split": lambda view, name: view.graph.undo_merge(1, collection=name),
        "events": lambda view, name: view.graph.list_merges(collection=name),
    }


READING: Mapping[str, Trial] = {
    "memory.recall": lambda v, m: v.memory.recall("tea", scope=ANN, collection=m.collection),
    "memory.window": lambda v, m: v.memory.window("tea", BUDGET, scope=ANN, collection=m.collection),
    "memory.list_recent": lambda v, m: v.memory.list_recent(scope=ANN, collection=m.collection),
    "memory.get": lambda v, m: v.memory.get(m.mine, scope=ANN, collection=m.collection),
    "memory.list_versions": lambda v, m: v.memory.list_versions(m.mine, scope=ANN, collection=m.collection),
    "memory.list": lambda v, m: v.memory.list(scope=ANN, collection=m.collection),
    "memory.count": lambda v, m: v.memory.count(scope=ANN, collection=m.collection),
    "retention.list": lambda v, m: v.retention.list(collection=m.collection),
    "memory.list_conversations": lambda v, m: v.memory.list_conversations(scope=ANN, collection=m.collection),
    "memory.stats": lambda v, m: v.memory.stats(scope=ANN, collection=m.collection),
    "memory.export": lambda v, m: v.memory.export(scope=ANN, collection=m.collection),
    "graph.list": lambda v, m: v.graph.list(collection=m.collection),
    "graph.wait_until_extracted": lambda v, m: v.graph.wait_until_extracted(collection=m.collection),
    "graph.list_entities": lambda v, m: v.graph.list_entities(collection=m.collection),
    "graph.extract_entities": lambda v, m: v.graph.extract_entities("Ann Lee", collection=m.collection),
}
"""What whoever sees the memories may do."""

READING_A_GRAPH: Mapping[str, Trial] = {
    "graph.get_node": lambda v, m: v.graph.get_node("ann", **_graph(m)),
    "graph.list_nodes": lambda v, m: v.graph.list_nodes(**_graph(m)),
    "graph.list_edges": lambda v, m: v.graph.list_edges(**_graph(m)),
    "graph.neighbors": lambda v, m: v.graph.neighbors("ann", Traversal(2), **_graph(m)),
    "graph.search_nodes": lambda v, m: v.graph.search_nodes("Ann", **_graph(m)),
    "graph.snapshot": lambda v, m: v.graph.snapshot(WHEN, **_graph(m)),
    "graph.export": lambda v, m: v.graph.export(**_graph(m)),
    "graph.link_entities": lambda v, m: v.graph.link_entities("Ann Lee was here.", **_graph(m)),
    "graph.list_merges": lambda v, m: v.graph.list_merges(**_graph(m)),
}
"""What whoever sees the graph may do."""

CHANGING: Mapping[str, Trial] = {
    "memory.add": lambda v, m: v.memory.add(
        NewMemory("I like tea.", "t"), scope=ANN, collection=m.collection
    ),
    "memory.update": lambda v, m: v.memory.update(m.mine, scope=ANN, collection=m.collection, role="user"),
    "memory.import_lines": lambda v, m: v.memory.import_lines(m.lines, collection=m.collection),
    "memory.extract": lambda v, m: v.memory.extract(scope=ANN, collection=m.collection),
    "retention.set": lambda v, m: v.retention.set(Retention(max_count=0), scope=ANN, collection=m.collection),
    "retention.delete": lambda v, m: v.retention.delete(scope=ANN, collection=m.collection),
    "retention.apply": lambda v, m: v.retention.apply(collection=m.collection, dry_run=True),
    "retention.start_job": lambda v, m: v.retention.start_job(collection=m.collection),
    "memory.forget": lambda v, m: v.memory.forget(
        MemorySelection(ids=(m.mine,)), scope=ANN, collection=m.collection
    ),
}
"""What only editors of the memories may do, in an order in which all of it can be done."""

CHANGING_A_GRAPH: Mapping[str, Trial] = {
    "graph.add_nodes": lambda v, m: v.graph.add_nodes([NewNode("eve")], **_graph(m)),
    "graph.add_edges": lambda v, m: v.graph.add_edges([NewEdge("ann", "eve")], **_graph(m)),
    "graph.undo_merge": lambda v, m: v.graph.undo_merge(m.merge, **_graph(m)),
    "graph.merge_nodes": lambda v, m: v.graph.merge_nodes("ann", ["bo"], **_graph(m)),
    "graph.delete_edges": lambda v, m: v.graph.delete_edges([m.edge], **_graph(m)),
    "graph.delete_nodes": lambda v, m: v.graph.delete_nodes(["eve"], **_graph(m)),
}
"""What only editors of the graph may do."""

MANAGING: Mapping[str, Trial] = {
    "graph.get_or_create": lambda v, m: v.graph.get_or_create("another", collection=m.collection),
    "graph.set_entity_extraction": lambda v, m: v.graph.set_entity_extraction(collection=m.collection),
    "graph.delete": lambda v, m: v.graph.delete(HIDDEN_GRAPH, collection=m.collection),
}
"""What only managers may do."""

PRYING: Mapping[str, Trial] = {
    "memory.recall": lambda v, m: v.memory.recall(SECRET, scope=BOB, collection=m.collection),
    "everybody's": lambda v, m: v.retrieve(SECRET, collection=m.collection),
    "memory.window": lambda v, m: v.memory.window(SECRET, BUDGET, scope=BOB, collection=m.collection),
    "memory.list_recent": lambda v, m: v.memory.list_recent(scope=BOB, collection=m.collection),
    "memory.get": lambda v, m: v.memory.get(m.others, scope=BOB, collection=m.collection),
    "memory.list_versions": lambda v, m: v.memory.list_versions(m.others, scope=BOB, collection=m.collection),
    "memory.list": lambda v, m: v.memory.list(scope=BOB, collection=m.collection),
    "memory.list_conversations": lambda v, m: v.memory.list_conversations(scope=BOB, collection=m.collection),
    "memory.export": lambda v, m: v.memory.export(scope=BOB, collection=m.collection),
    "memory.forget": lambda v, m: v.memory.forget(
        MemorySelection(everything=True), scope=BOB, collection=m.collection
    ),
    "graph.list_entities": lambda v, m: v.graph.list_entities(collection=m.collection),
    "graph.list": lambda v, m: v.graph.list(collection=m.collection),
    "memory.update": lambda v, m: v.memory.update(m.others, scope=BOB, collection=m.collection, text="x"),
    **READING_A_GRAPH,
}
"""Ways to what somebody else remembers, and to a graph that is hidden."""


async def prepared(owner: Any, collection: str) -> Made:
    """Memories of two users and a graph, as the owner makes them; everything of the second is secret."""
    home = {"collection": collection}
    [mine] = await owner.memory.add(NewMemory("I like green tea.", "k"), scope=ANN, **home)
    [others] = await owner.memory.add(NewMemory(f"The password is {SECRET}.", "k"), scope=BOB, **home)
    await owner.retention.set(Retention(max_count=0), scope=ANN, **home)
    people = [NewNode("ann", name="Ann Lee"), NewNode("bo"), NewNode("bo2", name=SECRET)]
    await owner.graph.add_nodes(people, graph=HIDDEN_GRAPH, **home)
    [edge] = await owner.graph.add_edges([NewEdge("ann", "bo")], graph=HIDDEN_GRAPH, **home)
    await owner.graph.merge_nodes("bo", ["bo2"], graph=HIDDEN_GRAPH, **home)
    [merge] = await owner.graph.list_merges(graph=HIDDEN_GRAPH, **home)
    await owner.documents.wait_until_embedded(**home)
    await owner.graph.wait_until_extracted(**home)
    page = await owner.memory.export(scope=ANN, **home)
    return Made(collection, mine.id, others.id, page.lines, edge.id, merge.number)


async def tried(view: Any, ids: Made, trials: Mapping[str, Trial]) -> dict[str, str]:
    """What came of each: `ok`, or the name of the error."""
    return {name: (await outcome(trial(view, ids)))[0] for name, trial in trials.items()}


async def told(view: Any, ids: Made, trials: Mapping[str, Trial]) -> str:
    """All that the answers to these say."""
    return repr([(await outcome(trial(view, ids)))[1] for trial in trials.values()])


def methods() -> frozenset[str]:
    """The names of the methods that are tried, by whoever may and whoever may not."""
    return frozenset().union(READING, READING_A_GRAPH, CHANGING, CHANGING_A_GRAPH, MANAGING)


def _graph(ids: Made) -> dict[str, str]:
    return {"graph": HIDDEN_GRAPH, "collection": ids.collection}
