"""Names of methods in other libraries, each with the call that does the same here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar, Final

ENGINE_CALLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        **dict.fromkeys(("query", "similarity_search", "get_relevant_documents"), "engine.search(QUERY)"),
        **dict.fromkeys(
            ("upsert", "insert", "add_texts", "add_documents", "write_documents"), "engine.add(TEXTS)"
        ),
        **dict.fromkeys(("context", "get_context"), "engine.window(QUERY, max_tokens)"),
        **dict.fromkeys(("add_files", "load", "ingest"), "engine.documents.add_files([PATH])"),
        "remember": "engine.memory.add(TEXT, user=USER)",
        "recall": "engine.memory.recall(QUERY, user=USER)",
        "get": "engine.documents.get(ID)",
        "delete": "engine.documents.delete(ID)",
        "count": "engine.documents.count()",
        "export": "engine.documents.export()",
        **dict.fromkeys(
            ("create_collection", "get_or_create_collection"), "engine.collections.get_or_create(NAME)"
        ),
        "list_collections": "engine.collections.list()",
    }
)
MEMORY_CALLS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "search": "engine.memory.recall(QUERY, user=USER)",
        "get_all": "engine.memory.list(user=USER)",
        "history": "engine.memory.list_versions(ID, user=USER)",
        "delete": "engine.memory.forget(conspectus.MemorySelection(ids=(ID,)), user=USER)",
        **dict.fromkeys(
            ("delete_all", "reset", "clear"),
            "engine.memory.forget(conspectus.MemorySelection(everything=True), user=USER)",
        ),
    }
)


class OtherNames:
    """Names the call of this library in the error about an attribute that another library has."""

    _calls_of_others: ClassVar[Mapping[str, str]] = ENGINE_CALLS

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            call = self._calls_of_others.get(name)
            raise AttributeError(f"{message}; use {call}" if call else message, name=name, obj=self)
