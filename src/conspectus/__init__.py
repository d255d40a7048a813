"""Conspectus, the context engine for language models: find, rank, pack and explain context.

engine = conspectus.open("notes")
engine.add("The meeting moved to Thursday.", wait=True)
window = engine.window("When is the meeting?")
engine.close()

`with` closes it at the end of a block, and `async with` gives the same engine, awaited. With
`conspectus.connect("http://localhost:8642", api_key=...)` in place of `open`, the same code asks a server.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from conspectus.client import RemoteEngine
    from conspectus.engine import Engine
    from conspectus.errors import ConspectusError
    from conspectus.model.access import Principal
    from conspectus.model.alerts import NewAlert
    from conspectus.model.captions import CaptionRange, NewCaption
    from conspectus.model.channels import NewMessage
    from conspectus.model.chat import ChatRequest, Citations, Delta, Failure, Sources
    from conspectus.model.filter import And, Between, Contains, Eq, Exists, Filter, In, Not, Or, Overlaps
    from conspectus.model.graph import Fact, GraphExpansion, NewEdge, NewNode, Traversal
    from conspectus.model.memory import MemorySelection, NewMemory, Retention, Scope
    from conspectus.model.query import Budget, Query, QueryContext
    from conspectus.model.records import Document, NewDocument, Period
    from conspectus.model.results import ContextWindow, Hit, Message, Retrieval
    from conspectus.model.stream_events import NewEvent
    from conspectus.model.streams import NewStream
    from conspectus.model.tasks import Attachment, Task
    from conspectus.settings import Settings
    from conspectus.sync import BlockingEngine, connect, open

__all__ = [
    "And",
    "Attachment",
    "Between",
    "BlockingEngine",
    "Budget",
    "CaptionRange",
    "ChatRequest",
    "Citations",
    "ConspectusError",
    "Contains",
    "ContextWindow",
    "Delta",
    "Document",
    "Engine",
    "Eq",
    "Exists",
    "Fact",
    "Failure",
    "Filter",
    "GraphExpansion",
    "Hit",
    "In",
    "MemorySelection",
    "Message",
    "NewAlert",
    "NewCaption",
    "NewDocument",
    "NewEdge",
    "NewEvent",
    "NewMemory",
    "NewMessage",
    "NewNode",
    "NewStream",
    "Not",
    "Or",
    "Overlaps",
    "Period",
    "Principal",
    "Query",
    "QueryContext",
    "RemoteEngine",
    "Retention",
    "Retrieval",
    "Scope",
    "Settings",
    "Sources",
    "Task",
    "Traversal",
    "connect",
    "open",
]

_MODULES = frozenset({"bootstrap", "client", "engine", "errors", "model", "ports", "settings", "sync"})
_EXPORTS = {
    "client": ("RemoteEngine",),
    "engine": ("Engine",),
    "errors": ("ConspectusError",),
    "model.access": ("Principal",),
    "model.alerts": ("NewAlert",),
    "model.captions": ("CaptionRange", "NewCaption"),
    "model.channels": ("NewMessage",),
    "model.chat": ("ChatRequest", "Citations", "Delta", "Failure", "Sources"),
    "model.filter": ("And", "Between", "Contains", "Eq", "Exists", "Filter", "In", "Not", "Or", "Overlaps"),
    "model.graph": ("Fact", "GraphExpansion", "NewEdge", "NewNode", "Traversal"),
    "model.memory": ("MemorySelection", "NewMemory", "Retention", "Scope"),
    "model.query": ("Budget", "Query", "QueryContext"),
    "model.records": ("Document", "NewDocument", "Period"),
    "model.results": ("ContextWindow", "Hit", "Message", "Retrieval"),
    "model.stream_events": ("NewEvent",),
    "model.streams": ("NewStream",),
    "model.tasks": ("Attachment", "Task"),
    "settings": ("Settings",),
    "sync": ("BlockingEngine", "connect", "open"),
}
_MODULE_OF = {name: (module, name) for module, names in _EXPORTS.items() for name in names}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used: most programs need few of the modules."""
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name not in _MODULE_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, attribute = _MODULE_OF[name]
        value = getattr(importlib.import_module(f"{__name__}.{module}"), attribute)
        globals()[name] = value
        return value

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
