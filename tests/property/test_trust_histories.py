"""Trust histories: writers of all origins write, change, copy and delete; a small model knows each level.

The writes are those of the operations table. After them every level is compared with the model: none above
it, none below, nothing missing.
"""

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.property.trust_model import ASIDE, History, Key, Level, node_name
from tests.property.trust_steps import GRAPH, STEPS, found_facts

import conspectus
from conspectus import Engine, Settings
from conspectus.engine.event_documents import PREFIX
from conspectus.engine.task_documents import task_key
from conspectus.memory.scopes import source_name
from conspectus.model.graph import NewNode
from conspectus.model.memory import Scope
from conspectus.model.pages import pages
from conspectus.model.tasks import Task
from conspectus.model.trust import HIGHEST
from conspectus.operations.table import OPERATIONS
from conspectus.testing.chat_models import ScriptedChatModel

SETTINGS = Settings(embedder="none", log_level="error")
WITHOUT_LEVELS = {
    **dict.fromkeys(
        ("AlertService", "AnswerService", "ExperimentService", "SearchService", "RetentionService"),
        "write no text for prompts",
    ),
    **dict.fromkeys(
        ("AccessService", "IdentityService", "KeyService", "LoginService", "PeopleService"),
        "write no text for prompts",
    ),
    **dict.fromkeys(
        ("CollectionService", "ConnectionService", "JobService"), "names and jobs; syncs write as import"
    ),
    **dict.fromkeys(("MaintenanceService", "SummaryService"), "make again what is stored"),
}
"""Services whose writes store no text with a level, or through the writers below."""
OTHERS = {
    "GraphService.set_entity_extraction": "finds names again",
    "GraphService.wait_until_extracted": "waits",
    "GraphService.get_or_create": "a name",
    "GraphService.delete": "deletes",
    "DocumentService.import_lines": "writes as `add` does, with the levels that its lines have",
    "DocumentService.wait_until_embedded": "waits",
    "DocumentService.relate": "writes a relation, whose levels test_document_relations has",
    "DocumentService.unrelate": "deletes",
    "StreamService.put": "a name",
    "StreamService.delete": "deletes",
    "StreamService.delete_captions": "deletes",
}


def test_the_histories_know_each_write_of_the_operations_table() -> None:
    """A new one gets a step above, or a reason."""
    writes = {key for key, operation in OPERATIONS.items() if operation.verb != "GET" and not operation.reads}
    unknown = {
        key for key in writes - STEPS.keys() - OTHERS.keys() if key.split(".")[0] not in WITHOUT_LEVELS
    }
    assert unknown == set()
    assert OTHERS.keys() <= writes


def key_in_store(kind: str, source: str, key: str, parent: str | None = None) -> Key:
    """Return the key of a stored document; that of a memory has its source."""
    if kind == "memory":
        return (kind, f"{source}/{key}") if parent is None else ("extracted", parent)
    if kind == "task" and "/" in key:
        return "attachment", key
    return "document" if kind == "page" else kind, key


async def levels_in(engine: Engine) -> dict[Key, tuple[Level, bool]]:
    """Return every level that the store has, and whether the text is quarantined."""
    levels: dict[Key, tuple[Level, bool]] = {}
    for collection in ("default", "tasks", "memory"):
        async for page in pages(engine.documents.list, collection=collection, limit=1_000):
            for document in page.documents:
                key = key_in_store(document.kind, document.source, document.key, document.parent)
                levels[key] = (Level(document.trust, HIGHEST[document.origin]), False)
        async for hidden in pages(engine.documents.list_quarantined, collection=collection, limit=1_000):
            for document in hidden.documents:
                key = key_in_store(document.kind, document.source, document.key)
                levels[key] = (Level(document.trust, HIGHEST[document.origin]), True)
    levels |= await levels_in_graph(engine, GRAPH, "default")
    for summary in await engine.graph.list(collection="memory"):
        levels |= await levels_in_graph(engine, summary.source.name, "memory")
    return levels


async def levels_in_graph(engine: Engine, graph: str, collection: str) -> dict[Key, tuple[Level, bool]]:
    """Return the levels of the nodes and edges of a graph."""
    exported = json.loads(await engine.graph.export(graph=graph, collection=collection))
    levels: dict[Key, tuple[Level, bool]] = {}
    for node in exported["nodes"]:
        level = Level(node["trust"], HIGHEST[node["origin"]])
        levels["node", node_name(graph, node["id"])] = (level, False)
    for edge in exported["edges"]:
        source, target = (node_name(graph, edge[end]) for end in ("source_id", "target_id"))
        level = Level(edge["trust"], HIGHEST[edge["origin"]])
        levels["edge", f"{source}>{target}"] = (level, False)
    return levels


def key_of_row(history: History, key: Key, sources: Mapping[str, str]) -> Key:
    """Return the key of the store for one of the model."""
    kind, name = key
    match kind:
        case "memory":
            return "memory", f"{sources[source_name(history.scope)]}/{name}"
        case "copy":
            user, _, memory_name = name.rpartition("/")
            return "memory", f"{sources[source_name(Scope(user))]}/{memory_name}"
        case "extracted":
            return kind, history.ids["memory", name]
        case "task":
            return kind, task_key(name)
        case "event":
            return kind, f"{PREFIX}{name}"
    return key


async def run(folder: Path, numbers: range, seed: int, steps: int = 24) -> tuple[int, list[str]]:
    """Run histories in one store; return the number of levels that were compared, and the differences."""
    choices = [step for several in STEPS.values() for step in several]
    model = ScriptedChatModel(found_facts)
    async with conspectus.open(folder, settings=SETTINGS, chat_model=model) as engine:
        await engine.memory.add("Begun.", scope=Scope("begun"))
        await engine.tasks.put(Task(id="begun", title="Begun"))
        await engine.graph.add_nodes([NewNode("begun")])
        before = (await levels_in(engine)).keys()
        histories = [History(engine, random.Random(f"{seed} {number}"), f"h{number}n") for number in numbers]
        for history in histories:
            for step in history.chance.choices(choices, k=steps):
                await step(history)
        levels = await levels_in(engine)
        listed = await engine.collections.list_sources(collection="memory")
    sources = {source.name: str(source.id) for source in listed}
    rows = {
        key_of_row(history, key, sources): row
        for history in histories
        for key, row in history.rows.items()
        if not key[0].startswith(ASIDE)
    }
    differences = [
        f"{key}: {levels.get(key)} is not {row}"
        for key, row in rows.items()
        if levels.get(key) != (row.level, row.is_hidden)
    ]
    surplus = {key for key in levels.keys() - rows.keys() - before if key[0] != "version"}
    differences += [f"{key}: is stored, and should not be" for key in surplus]
    return len(rows), differences


async def test_levels_are_those_of_the_model_after_histories(tmp_path: Path) -> None:
    compared, differences = await run(tmp_path, range(30), seed=1)
    assert "\n".join(differences) == ""
    assert compared > 200


@pytest.mark.slow
@pytest.mark.parametrize("part", range(40))
async def test_levels_are_those_of_the_model_after_many_histories(tmp_path: Path, part: int) -> None:
    """10,000 histories, 250 in a store."""
    compared, differences = await run(tmp_path, range(250 * part, 250 * part + 250), seed=2)
    assert "\n".join(differences) == ""
    assert compared > 2_000
