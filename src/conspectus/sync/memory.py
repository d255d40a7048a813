"""Memory and graphs, blocking."""

from conspectus.bridge.blocking_methods import blocking
from conspectus.engine.graph import GraphService
from conspectus.engine.memory import MemoryService
from conspectus.engine.retention import RetentionService
from conspectus.sync.blocking_service import BlockingService
from conspectus.sync.other_names import MEMORY_CALLS


class BlockingMemory(BlockingService[MemoryService]):
    """Memories of users, agents and conversations."""

    _calls_of_others = MEMORY_CALLS

    add = blocking(MemoryService.add)
    update = blocking(MemoryService.update)
    get = blocking(MemoryService.get)
    list_versions = blocking(MemoryService.list_versions)
    list = blocking(MemoryService.list)
    count = blocking(MemoryService.count)
    list_recent = blocking(MemoryService.list_recent)
    recall = blocking(MemoryService.recall)
    window = blocking(MemoryService.window)
    extract = blocking(MemoryService.extract)
    start = blocking(MemoryService.start)
    forget = blocking(MemoryService.forget)
    list_conversations = blocking(MemoryService.list_conversations)
    stats = blocking(MemoryService.stats)
    export = blocking(MemoryService.export)
    import_lines = blocking(MemoryService.import_lines)


class BlockingRetention(BlockingService[RetentionService]):
    """Retention rules, which delete old memories."""

    set = blocking(RetentionService.set)
    delete = blocking(RetentionService.delete)
    list = blocking(RetentionService.list)
    apply = blocking(RetentionService.apply)
    start_job = blocking(RetentionService.start_job)
    start = blocking(RetentionService.start)


class BlockingGraph(BlockingService[GraphService]):
    """Graphs: nodes, edges, traversal, and entity mentions in passages and texts."""

    get_or_create = blocking(GraphService.get_or_create)
    list = blocking(GraphService.list)
    delete = blocking(GraphService.delete)
    add_nodes = blocking(GraphService.add_nodes)
    add_edges = blocking(GraphService.add_edges)
    get_node = blocking(GraphService.get_node)
    list_nodes = blocking(GraphService.list_nodes)
    list_edges = blocking(GraphService.list_edges)
    delete_nodes = blocking(GraphService.delete_nodes)
    delete_edges = blocking(GraphService.delete_edges)
    neighbors = blocking(GraphService.neighbors)
    search_nodes = blocking(GraphService.search_nodes)
    snapshot = blocking(GraphService.snapshot)
    export = blocking(GraphService.export)
    set_entity_extraction = blocking(GraphService.set_entity_extraction)
    wait_until_extracted = blocking(GraphService.wait_until_extracted)
    list_entities = blocking(GraphService.list_entities)
    extract_entities = blocking(GraphService.extract_entities)
    link_entities = blocking(GraphService.link_entities)
    merge_nodes = blocking(GraphService.merge_nodes)
    undo_merge = blocking(GraphService.undo_merge)
    list_merges = blocking(GraphService.list_merges)
