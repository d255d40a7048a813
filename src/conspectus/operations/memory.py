"""The operations on memories and their retention, each declared once."""

from typing import Final

from conspectus.engine.memory import MemoryService
from conspectus.engine.retention import RetentionService
from conspectus.model.filter import EVERYTHING
from conspectus.model.memory import MemoryQuery, NewMemory
from conspectus.model.parameters import Text
from conspectus.operations.operation import Operation

_MEMORIES: Final = "/memories"
_MEMORY: Final = "/memories/{memory}"
_RETENTION: Final = "/memories/retention"

MEMORY_OPERATIONS: Final = (
    Operation(
        MemoryService.add,
        "POST",
        _MEMORIES,
        unhurried=True,
        status=201,
        listed={"memories": NewMemory},
        id="add_memories",
    ),
    Operation(
        MemoryService.list,
        "GET",
        _MEMORIES,
        defaults={"filter": EVERYTHING, "limit": 100, "newest_first": False},
        id="list_memories",
    ),
    Operation(
        MemoryService.count, "POST", f"{_MEMORIES}/count", reads=True, wrapped="count", id="count_memories"
    ),
    Operation(MemoryService.recall, "POST", f"{_MEMORIES}/recall", fields_of=MemoryQuery, reads=True),
    Operation(
        MemoryService.window,
        "POST",
        f"{_MEMORIES}/context",
        fields_of=MemoryQuery,
        reads=True,
        id="memory_context",
    ),
    Operation(MemoryService.list_recent, "GET", f"{_MEMORIES}/recent", id="list_recent_memories"),
    Operation(MemoryService.extract, "POST", f"{_MEMORIES}/extract", status=202, id="extract_facts"),
    Operation(MemoryService.forget, "POST", f"{_MEMORIES}/forget", spread="selection", unhurried=True),
    Operation(MemoryService.list_conversations, "GET", f"{_MEMORIES}/conversations"),
    Operation(MemoryService.stats, "GET", f"{_MEMORIES}/stats", id="memory_stats"),
    Operation(
        MemoryService.export,
        "GET",
        f"{_MEMORIES}/export",
        as_lines=True,
        id="export_memories",
        for_models="named",
    ),
    Operation(
        MemoryService.import_lines,
        "POST",
        f"{_MEMORIES}/import",
        unhurried=True,
        as_lines=True,
        listed={"lines": Text},
        id="import_memories",
        for_models="named",
    ),
    Operation(RetentionService.list, "GET", _RETENTION, id="list_retentions"),
    Operation(
        RetentionService.set,
        "PUT",
        _RETENTION,
        spread="retention",
        status=204,
        id="set_retention",
        for_models="named",
        audited=True,
    ),
    Operation(
        RetentionService.delete,
        "DELETE",
        _RETENTION,
        status=204,
        id="delete_retention",
        for_models="named",
        audited=True,
    ),
    Operation(
        RetentionService.apply,
        "POST",
        f"{_RETENTION}/apply",
        unhurried=True,
        id="apply_retention",
        for_models="named",
    ),
    Operation(
        RetentionService.start_job,
        "POST",
        f"{_RETENTION}/start",
        status=202,
        id="start_retention",
        for_models="named",
    ),
    Operation(MemoryService.get, "GET", _MEMORY, tagged=True, id="get_memory"),
    Operation(
        MemoryService.update,
        "PATCH",
        _MEMORY,
        query=("scope", "collection"),
        tagged=True,
        unhurried=True,
        id="update_memory",
    ),
    Operation(MemoryService.list_versions, "GET", f"{_MEMORY}/versions", id="list_memory_versions"),
)
"""In matching order: fixed segments come before `{memory}`."""
