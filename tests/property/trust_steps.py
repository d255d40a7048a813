"""Steps of trust histories: each writes, copies or deletes by an operation, and tells the model."""

import json
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from tests.property.trust_model import History, Key, Level, Row, is_fact, node_name

from conspectus import Engine, NewDocument
from conspectus.memory.scopes import graph_name
from conspectus.model.captions import NewCaption
from conspectus.model.channels import NewMessage
from conspectus.model.graph import Fact, NewEdge, NewNode
from conspectus.model.memory import MemorySelection, NewMemory, Scope
from conspectus.model.pages import pages
from conspectus.model.results import Message
from conspectus.model.stream_events import NewEvent
from conspectus.model.tasks import Attachment, Task, TaskStatus
from conspectus.model.trust import MIN_TRUST_LEVELS, least

Step = Callable[[History], Awaitable[None]]
GRAPH: Final = "default"
AT: Final = datetime(2026, 3, 1, tzinfo=UTC)
SHARED: Final = Level("standard", "trusted")
"""The highest level of what stands in a channel or a stream."""
MODEL: Final = Level("standard", "standard")
TOOL: Final = Level("untrusted", "untrusted")
STATUSES: Final[tuple[TaskStatus, ...]] = ("pending", "in_progress", "completed")


def found_facts(messages: list[Message]) -> list[str]:
    """Answer a prompt of the extraction with one fact that quotes the last word of the memory."""
    text = messages[-1].content.partition("\n</retrieved>")[0]
    fact = {"kind": "fact", "text": "It is so.", "quote": text.split()[-1]}
    return [json.dumps({"facts": [fact]})]


async def add_document(history: History) -> None:
    engine, level = history.writer()
    key = ("document", history.name())
    text = history.text(key)
    claim = history.chance.choice((None, None, None, *MIN_TRUST_LEVELS))
    (written,) = await engine.add(NewDocument(text, key=key[1], trust=claim), source="said")
    history.ids[key] = str(written.id)
    history.write(key, text, level, Level(least(claim), "trusted"))


async def add_twice(history: History) -> None:
    """Add two versions of a document in one batch, the first one with a lower level."""
    engine, level = history.writer()
    key = ("document", history.name())
    texts = [history.text(key) for _ in range(2)]
    claims = (history.chance.choice(MIN_TRUST_LEVELS), None)
    batch = [NewDocument(text, key=key[1], trust=claim) for text, claim in zip(texts, claims, strict=True)]
    written = await engine.add(batch, source="said")
    history.ids[key] = str(written[0].id)
    for text, claim in zip(texts, claims, strict=True):
        history.write(key, text, level, Level(least(claim), "trusted"))


async def update_document(history: History) -> None:
    for key in history.pick("document", "message"):
        engine, level = history.writer()
        text = history.text(key)
        await engine.documents.update(history.ids[key], text=text, trust="trusted", origin="user")
        history.write(key, text, level)


async def delete_chunks(history: History) -> None:
    for key in history.pick("document"):
        engine, level = history.writer()
        await engine.documents.delete_chunks(history.ids[key])
        history.write(key, "", level)


async def delete_document(history: History) -> None:
    for key in history.pick("document", is_hidden=None):
        await history.engine.documents.delete(history.ids[key])
        history.remove(key)


async def delete_by_key(history: History) -> None:
    for key in history.pick("document", is_hidden=None):
        await history.engine.documents.delete_by_key(key[1], source="said")
        history.remove(key)


async def release(history: History) -> None:
    for key in history.pick("document", "message", "memory", "attachment", is_hidden=True):
        await history.engine.documents.release_quarantined(history.ids[key])
        history.rows[key].is_hidden = False


async def add_message(history: History) -> None:
    engine, level = history.writer()
    key = ("message", history.name())
    text = history.text(key)
    message = NewMessage(text, key=key[1], author="bo", role="tool" if key[1].endswith("2") else None)
    (written,) = await engine.channels.add_messages(message, channel="chat")
    history.ids[key] = str(written.id)
    history.write(key, text, level, SHARED, role_level(key[1]))


def role_level(name: str) -> Level:
    """Return the level that the role of a text allows: those named 2 are of a tool."""
    return TOOL if name.endswith("2") else Level("trusted", "trusted")


async def add_memory(history: History) -> None:
    engine, level = history.writer()
    key = ("memory", history.name(4))
    await remember(history, key, history.text(key), engine, level)


async def add_fact(history: History) -> None:
    """Add a memory with a fact, which is an edge in the graph of its scope."""
    engine, level = history.writer()
    key = ("memory", f"{history.name(2)}f")
    await remember(history, key, history.text(key), engine, level)


async def remember(history: History, key: Key, text: str, engine: Engine, level: Level) -> None:
    stored = history.rows.get(key)
    fact = Fact(f"{key[1]}s", "knows", f"{key[1]}t", single=False) if is_fact(key[1]) else None
    role = "tool" if key[1].endswith("2") else None
    new = NewMemory(text, key=key[1], fact=fact, at=AT, role=role)
    (written,) = await engine.memory.add(new, scope=history.scope)
    history.ids[key] = str(written.id)
    if stored is None or stored.is_hidden or stored.text != text:
        history.write(key, text, level, role_level(key[1]))
    history.state_fact(key, graph_name(history.scope), level)


async def update_memory(history: History) -> None:
    for key in history.pick("memory"):
        engine, level = history.writer()
        text = history.text(key)
        changes: dict[str, Any] = {"text": text, "trust": "trusted", "origin": "user"}
        await engine.memory.update(history.ids[key], scope=history.scope, **changes)
        history.write(key, text, level)


async def forget(history: History) -> None:
    for key in history.pick("memory", is_hidden=None):
        await history.engine.memory.forget(MemorySelection((history.ids[key],)), scope=history.scope)
        history.remove(key)


async def extract(history: History) -> None:
    """Extract a fact from each memory, or replay the answers of an earlier run."""
    is_replay = history.chance.random() < 0.4
    job = await history.engine.memory.extract(scope=history.scope, replay=is_replay)
    await history.engine.jobs.wait(job.id)
    for key, row in list(history.rows.items()):
        if key[0] == "memory" and not row.is_hidden and (row.answered == row.text or not is_replay):
            history.write(("extracted", key[1]), "It is so.", row.level, MODEL)
            row.answered = row.text


async def export_memories(history: History) -> None:
    """Export the memories that were never quarantined, for a later import."""
    lines = {("memory", str(json.loads(line)["key"])): line for line in await exported_lines(history)}
    rows = {key: Row(row.level, row.text) for key, row in history.rows.items() if key in lines}
    clean = {key: row for key, row in rows.items() if key not in history.quarantined}
    history.exports.append(([lines[key] for key in clean], clean))


async def exported_lines(history: History) -> list[str]:
    """Return the lines of all memories, those of quarantined ones last."""
    exports = pages(history.engine.memory.export, scope=history.scope)
    return [line async for page in exports for line in page.lines]


async def import_again(history: History) -> None:
    """Import an earlier export into the same scope, as whoever: what was deleted comes back."""
    for lines, rows in history.exports[-1:]:
        engine, level = history.writer()
        clean = {key: row for key, row in rows.items() if key not in history.quarantined}
        lines = [line for line in lines if ("memory", json.loads(line)["key"]) in clean]
        await engine.memory.import_lines(lines, scope=history.scope)
        for key, row in clean.items():
            if key not in history.rows:
                history.write(key, row.text, level, row.level)
                history.state_fact(key, graph_name(history.scope), level)


async def copy_memories(history: History) -> None:
    """Export the memories, and import the lines for another user, as whoever."""
    engine, level = history.writer()
    lines = await exported_lines(history)
    scope = Scope(history.new_name())
    await engine.memory.import_lines(lines, scope=scope)
    for key, row in list(history.rows.items()):
        if key[0] == "memory":
            copy = ("copy", f"{scope.user}/{key[1]}")
            stored = Level("untrusted", row.level.origin) if row.is_hidden else row.level
            history.write(copy, row.text, level, stored)
            history.rows[copy].is_hidden |= row.is_hidden
            history.state_fact(copy, graph_name(scope), level)


async def add_caption(history: History) -> None:
    engine, level = history.writer()
    key = ("caption", history.new_name())
    await engine.streams.add_captions(NewCaption("Seen.", start=0, end=1, key=key[1]), stream="film")
    history.write(key, "Seen.", level, SHARED)


async def add_event(history: History) -> None:
    engine, level = history.writer()
    key = ("event", history.new_name())
    await engine.events.add(NewEvent("arrival", 0, 1, key=key[1]), stream="film")
    history.write(key, "arrival", level, SHARED)


async def put_task(history: History) -> None:
    engine, level = history.writer()
    key = ("task", history.name())
    title, status = f"Cut {history.chance.randrange(2)}", history.chance.choice(STATUSES)
    await engine.tasks.put(Task(id=key[1], title=title, status=status), wait=False)
    history.write(key, title, level)
    history.restate(key[1], level, status)


async def update_task(history: History) -> None:
    for key in history.pick("task"):
        engine, level = history.writer()
        status = history.chance.choice(STATUSES)
        await engine.tasks.update(key[1], status=status, wait=False)
        history.write(key, history.rows[key].text, level)
        history.restate(key[1], level, status)


async def attach(history: History) -> None:
    for task in history.pick("task"):
        engine, level = history.writer()
        key = ("attachment", f"{task[1]}/{history.chance.choice('ab')}")
        text = history.text(key)
        attachment = Attachment(id=key[1][-1], text=text)
        written = await engine.tasks.attach(task[1], attachment, wait=False)
        history.ids[key] = written.document
        history.write(task, history.rows[task].text, level)
        history.restate(task[1], level, history.rows[task].status, but=key[1])
        history.write(key, text, level)
        history.rows[key].status = history.rows[task].status


async def detach(history: History) -> None:
    for key in history.pick("attachment", is_hidden=None):
        engine, level = history.writer()
        task = ("task", key[1][:-2])
        await engine.tasks.detach(task[1], key[1][-1])
        history.remove(key)
        history.write(task, history.rows[task].text, level)
        history.restate(task[1], level, history.rows[task].status)


async def delete_task(history: History) -> None:
    for key in history.pick("task"):
        await history.engine.tasks.delete(key[1])
        attachments = (("attachment", f"{key[1]}/{letter}") for letter in "ab")
        history.remove(key, *(attachment for attachment in attachments if attachment in history.rows))


async def add_node(history: History) -> None:
    engine, level = history.writer()
    await put_node(history, history.name(), engine, level)


async def put_node(history: History, name: str, engine: Engine, level: Level) -> str:
    type = f"kind {history.chance.randrange(2)}"
    await engine.graph.add_nodes([NewNode(name, type=type)])
    history.put_node(node_name(GRAPH, name), type, level)
    return name


async def adopt_node(history: History) -> None:
    """Add a node that a fact made before, so that it stays without the fact."""
    facts = [key for key, row in history.rows.items() if row.rests and key[0] == "node"]
    if facts:
        engine, level = history.writer()
        graph, _, name = history.chance.choice(facts)[1].rpartition(" ")
        await engine.graph.add_nodes([NewNode(name, type="adopted")], graph=graph, collection="memory")
        history.put_node(node_name(graph, name), "adopted", level)


async def delete_nodes(history: History) -> None:
    for name in [history.name()]:
        key = ("node", node_name(GRAPH, name))
        if key in history.rows:
            await history.engine.graph.delete_nodes([name])
            history.remove(key)


async def add_edge(history: History) -> None:
    """Add an edge between two nodes, half of them with a document as evidence."""
    source, target = [await existing_node(history, history.name()) for _ in "st"]
    if source != target:
        await state(history, source, target)


async def add_single(history: History) -> None:
    """Add an edge of a subject that has one such edge at a time."""
    source = await existing_node(history, f"{history.prefix}p")
    await state(history, source, await existing_node(history, history.name()), is_single=True)


async def existing_node(history: History, name: str) -> str:
    if ("node", node_name(GRAPH, name)) in history.rows:
        return name
    return await put_node(history, name, *history.writer())


async def state(history: History, source: str, target: str, *, is_single: bool = False) -> None:
    """Add an edge, half of them with evidence."""
    engine, level = history.writer()
    weight = history.chance.choice([0.5, 1.0])
    proofs = history.pick("document", "message") if history.chance.random() < 0.6 else []
    evidence = proofs[0] if proofs else None
    document = None if evidence is None else history.ids[evidence]
    new = NewEdge(source, target, "lives", weight=weight, evidence=document, single=is_single)
    await engine.graph.add_edges([new])
    key = ("edge", f"{node_name(GRAPH, source)}>{node_name(GRAPH, target)}")
    history.put_edge(key, str(weight), level, evidence=evidence, is_single=is_single)


async def delete_edges(history: History) -> None:
    edges = [key for key in history.pick("edge") if key[1].startswith(GRAPH)]
    for key in edges:
        source, target = (end.removeprefix(f"{GRAPH} ") for end in key[1].split(">"))
        page = await history.engine.graph.list_edges(node=source)
        ids = [edge.id for edge in page.edges if (edge.source, edge.target) == (source, target)]
        await history.engine.graph.delete_edges(ids)
        history.remove_edge(key)


async def merge_nodes(history: History) -> None:
    """Merge two of three new nodes with edges between them."""
    name = history.new_name()
    survivor, merged, other = [
        await put_node(history, f"{name}{letter}", *history.writer()) for letter in "abc"
    ]
    for source, target in ((survivor, other), (merged, other), (survivor, merged)):
        if history.chance.random() < 0.7:
            await state(history, source, target)
    engine, level = history.writer()
    await engine.graph.merge_nodes(survivor, [merged])
    history.merge(node_name(GRAPH, survivor), node_name(GRAPH, merged), level)


async def undo_merge(history: History) -> None:
    for record in history.merges[:1]:
        engine, _ = history.writer()
        survivor = record.survivor.removeprefix(f"{GRAPH} ")
        (merge,) = await engine.graph.list_merges(survivor)
        await engine.graph.undo_merge(merge.number)
        history.undo(record)


STEPS: Mapping[str, tuple[Step, ...]] = {
    "DocumentService.add": (add_document, add_document, add_twice),
    "DocumentService.update": (update_document, update_document),
    "DocumentService.delete": (delete_document,),
    "DocumentService.delete_by_key": (delete_by_key,),
    "DocumentService.delete_chunks": (delete_chunks,),
    "DocumentService.release_quarantined": (release,),
    "ChannelService.add_messages": (add_message,),
    "MemoryService.add": (add_memory, add_fact),
    "MemoryService.update": (update_memory, update_memory),
    "MemoryService.forget": (forget,),
    "MemoryService.extract": (extract,),
    "MemoryService.import_lines": (copy_memories, export_memories, import_again),
    "StreamService.add_captions": (add_caption,),
    "EventService.add": (add_event,),
    "TaskService.put": (put_task, put_task),
    "TaskService.update": (update_task,),
    "TaskService.attach": (attach, attach),
    "TaskService.detach": (detach,),
    "TaskService.delete": (delete_task,),
    "GraphService.add_nodes": (add_node, adopt_node),
    "GraphService.add_edges": (add_edge, add_edge, add_single, add_single),
    "GraphService.delete_edges": (delete_edges,),
    "GraphService.merge_nodes": (merge_nodes, merge_nodes),
    "GraphService.undo_merge": (undo_merge,),
    "GraphService.delete_nodes": (delete_nodes,),
}
"""The steps of each operation; one that stands twice is taken twice as often."""
