"""Which person may do what with memories, graphs and names: by every method that there is."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from conspectus.model.graph import NewEdge, NewNode, Traversal
from conspectus.model.memory import MemoryQuery, MemorySelection, NewMemory, Retention, Scope
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
        "recall": lambda view, name: view.recall(MemoryQuery("x", ANN, name)),
        "window": lambda view, name: view.memory_window(MemoryQuery("x", ANN, name), BUDGET),
        "last": lambda view, name: view.recent_memories(scope=ANN, collection=name),
        "memory": lambda view, name: view.memory("any", scope=ANN, collection=name),
        "versions": lambda view, name: view.memory_versions("any", scope=ANN, collection=name),
        "history": lambda view, name: view.memories(scope=ANN, collection=name),
        "how many": lambda view, name: view.count_memories(scope=ANN, collection=name),
        "change": lambda view, name: view.update_memory("any", scope=ANN, collection=name, text="x"),
        "forget": lambda view, name: view.forget(
            MemorySelection(everything=True), scope=ANN, collection=name
        ),
        "rules": lambda view, name: view.retentions(collection=name),
        "no rule": lambda view, name: view.retain(None, scope=ANN, collection=name),
        "apply": lambda view, name: view.apply_retention(collection=name),
        "start": lambda view, name: view.start_retention(collection=name),
        "conversations": lambda view, name: view.conversations(scope=ANN, collection=name),
        "stats": lambda view, name: view.memory_stats(scope=ANN, collection=name),
        "export": lambda view, name: view.export_memories(scope=ANN, collection=name),
        "graphs": lambda view, name: view.graphs(collection=name),
        "node": lambda view, name: view.node("ann", collection=name),
        "nodes": lambda view, name: view.nodes(collection=name),
        "edges": lambda view, name: view.edges(collection=name),
        "neighbours": lambda view, name: view.neighbours("ann", collection=name),
        "find": lambda view, name: view.find_nodes("ann", collection=name),
        "at": lambda view, name: view.graph_at(WHEN, collection=name),
        "drawn": lambda view, name: view.export_graph("svg", collection=name),
        "no graph": lambda view, name: view.delete_graph("default", collection=name),
        "no nodes": lambda view, name: view.delete_nodes(["ann"], collection=name),
        "no edges": lambda view, name: view.delete_edges(["any"], collection=name),
        "keep names": lambda view, name: view.keep_names(collection=name),
        "settle names": lambda view, name: view.settle_names(collection=name),
        "names": lambda view, name: view.names(collection=name),
        "find names": lambda view, name: view.find_names("Ann Lee", collection=name),
        "link": lambda view, name: view.link("Ann Lee", collection=name),
        "merge": lambda view, name: view.merge_nodes("ann", ["bo"], collection=name),
        "split": lambda view, name: view.split_node(1, collection=name),
        "events": lambda view, name: view.node_history(collection=name),
    }


READING: Mapping[str, Trial] = {
    "recall": lambda v, m: v.recall(MemoryQuery("tea", ANN, m.collection)),
    "memory_window": lambda v, m: v.memory_window(MemoryQuery("tea", ANN, m.collection), BUDGET),
    "recent_memories": lambda v, m: v.recent_memories(scope=ANN, collection=m.collection),
    "memory": lambda v, m: v.memory(m.mine, scope=ANN, collection=m.collection),
    "memory_versions": lambda v, m: v.memory_versions(m.mine, scope=ANN, collection=m.collection),
    "memories": lambda v, m: v.memories(scope=ANN, collection=m.collection),
    "count_memories": lambda v, m: v.count_memories(scope=ANN, collection=m.collection),
    "retentions": lambda v, m: v.retentions(collection=m.collection),
    "conversations": lambda v, m: v.conversations(scope=ANN, collection=m.collection),
    "memory_stats": lambda v, m: v.memory_stats(scope=ANN, collection=m.collection),
    "export_memories": lambda v, m: v.export_memories(scope=ANN, collection=m.collection),
    "graphs": lambda v, m: v.graphs(collection=m.collection),
    "settle_names": lambda v, m: v.settle_names(collection=m.collection),
    "names": lambda v, m: v.names(collection=m.collection),
    "find_names": lambda v, m: v.find_names("Ann Lee", collection=m.collection),
}
"""What whoever sees the memories may do."""

READING_A_GRAPH: Mapping[str, Trial] = {
    "node": lambda v, m: v.node("ann", **_graph(m)),
    "nodes": lambda v, m: v.nodes(**_graph(m)),
    "edges": lambda v, m: v.edges(**_graph(m)),
    "neighbours": lambda v, m: v.neighbours("ann", Traversal(2), **_graph(m)),
    "find_nodes": lambda v, m: v.find_nodes("Ann", **_graph(m)),
    "graph_at": lambda v, m: v.graph_at(WHEN, **_graph(m)),
    "export_graph": lambda v, m: v.export_graph(**_graph(m)),
    "link": lambda v, m: v.link("Ann Lee was here.", **_graph(m)),
    "node_history": lambda v, m: v.node_history(**_graph(m)),
}
"""What whoever sees the graph may do."""

CHANGING: Mapping[str, Trial] = {
    "remember": lambda v, m: v.remember(NewMemory("I like tea.", "t"), scope=ANN, collection=m.collection),
    "update_memory": lambda v, m: v.update_memory(m.mine, scope=ANN, collection=m.collection, role="user"),
    "import_memories": lambda v, m: v.import_memories(m.lines, collection=m.collection),
    "retain": lambda v, m: v.retain(Retention(most=0), scope=ANN, collection=m.collection),
    "apply_retention": lambda v, m: v.apply_retention(collection=m.collection, preview=True),
    "start_retention": lambda v, m: v.start_retention(collection=m.collection),
    "forget": lambda v, m: v.forget(MemorySelection(ids=(m.mine,)), scope=ANN, collection=m.collection),
}
"""What only editors of the memories may do, in an order in which all of it can be done."""

CHANGING_A_GRAPH: Mapping[str, Trial] = {
    "add_nodes": lambda v, m: v.add_nodes([NewNode("eve")], **_graph(m)),
    "add_edges": lambda v, m: v.add_edges([NewEdge("ann", "eve")], **_graph(m)),
    "split_node": lambda v, m: v.split_node(m.merge, **_graph(m)),
    "merge_nodes": lambda v, m: v.merge_nodes("ann", ["bo"], **_graph(m)),
    "delete_edges": lambda v, m: v.delete_edges([m.edge], **_graph(m)),
    "delete_nodes": lambda v, m: v.delete_nodes(["eve"], **_graph(m)),
}
"""What only editors of the graph may do."""

MANAGING: Mapping[str, Trial] = {
    "graph": lambda v, m: v.graph("another", collection=m.collection),
    "keep_names": lambda v, m: v.keep_names(collection=m.collection),
    "delete_graph": lambda v, m: v.delete_graph(HIDDEN_GRAPH, collection=m.collection),
}
"""What only managers may do."""

PRYING: Mapping[str, Trial] = {
    "recall": lambda v, m: v.recall(MemoryQuery(SECRET, BOB, m.collection)),
    "everybody's": lambda v, m: v.retrieve(SECRET, collection=m.collection),
    "memory_window": lambda v, m: v.memory_window(MemoryQuery(SECRET, BOB, m.collection), BUDGET),
    "recent_memories": lambda v, m: v.recent_memories(scope=BOB, collection=m.collection),
    "memory": lambda v, m: v.memory(m.others, scope=BOB, collection=m.collection),
    "memory_versions": lambda v, m: v.memory_versions(m.others, scope=BOB, collection=m.collection),
    "memories": lambda v, m: v.memories(scope=BOB, collection=m.collection),
    "conversations": lambda v, m: v.conversations(scope=BOB, collection=m.collection),
    "export_memories": lambda v, m: v.export_memories(scope=BOB, collection=m.collection),
    "forget": lambda v, m: v.forget(MemorySelection(everything=True), scope=BOB, collection=m.collection),
    "names": lambda v, m: v.names(collection=m.collection),
    "graphs": lambda v, m: v.graphs(collection=m.collection),
    "update_memory": lambda v, m: v.update_memory(m.others, scope=BOB, collection=m.collection, text="x"),
    **READING_A_GRAPH,
}
"""Ways to what somebody else remembers, and to a graph that is hidden."""


async def prepared(owner: Any, collection: str) -> Made:
    """Memories of two users and a graph, as the owner makes them; everything of the second is secret."""
    home = {"collection": collection}
    [mine] = await owner.remember(NewMemory("I like green tea.", "k"), scope=ANN, **home)
    [others] = await owner.remember(NewMemory(f"The password is {SECRET}.", "k"), scope=BOB, **home)
    await owner.retain(Retention(most=0), scope=ANN, **home)
    people = [NewNode("ann", name="Ann Lee"), NewNode("bo"), NewNode("bo2", name=SECRET)]
    await owner.add_nodes(people, graph=HIDDEN_GRAPH, **home)
    [edge] = await owner.add_edges([NewEdge("ann", "bo")], graph=HIDDEN_GRAPH, **home)
    await owner.merge_nodes("bo", ["bo2"], graph=HIDDEN_GRAPH, **home)
    [merge] = await owner.node_history(graph=HIDDEN_GRAPH, **home)
    await owner.settle(**home)
    await owner.settle_names(**home)
    page = await owner.export_memories(scope=ANN, **home)
    return Made(collection, mine.id, others.id, page.lines, edge.id, merge.number)


async def tried(view: Any, made: Made, trials: Mapping[str, Trial]) -> dict[str, str]:
    """What came of each: `ok`, or the name of the error."""
    return {name: (await outcome(trial(view, made)))[0] for name, trial in trials.items()}


async def told(view: Any, made: Made, trials: Mapping[str, Trial]) -> str:
    """All that the answers to these say."""
    return repr([(await outcome(trial(view, made)))[1] for trial in trials.values()])


def methods() -> frozenset[str]:
    """The names of the methods that are tried, by whoever may and whoever may not."""
    return frozenset().union(READING, READING_A_GRAPH, CHANGING, CHANGING_A_GRAPH, MANAGING)


def _graph(made: Made) -> dict[str, str]:
    return {"graph": HIDDEN_GRAPH, "collection": made.collection}
