"""Every tool that shows a stored text marks an untrusted one, and a query demands a level."""

from typing import Any

import pytest

from conspectus.engine import Engine
from conspectus.mcp.operation_tools import TEXT_OPERATIONS
from conspectus.mcp.tool_list import TOOLS
from conspectus.model.captions import NewCaption
from conspectus.model.channels import NewMessage
from conspectus.model.graph import NewEdge, NewNode
from conspectus.model.memory import NewMemory, Scope
from conspectus.model.records import NewDocument
from conspectus.model.tasks import Task
from conspectus.model.trust import UNTRUSTED
from tests.mcp.conftest import answer_text, client

ANN = {"user": "ann"}
WORD = "quinces"
CALLS: dict[str, list[dict[str, Any]]] = {
    "search": [{"query": WORD}],
    "context": [{"query": WORD}, *({"query": WORD, "format": form} for form in ("xml", "guarded"))],
    "recall": [{"query": WORD, **ANN}, {"query": WORD, "window": True, **ANN}],
    "graph": [{"query": WORD}, {"node": "shelf"}, {"query": WORD, "of_memory": True, **ANN}],
    "read_document": [{"document": "?"}],
    "explain": [{"query": WORD}],
    "history": [ANN],
    "search_streams": [{"query": WORD}],
    "channel_context": [{"query": WORD, "channel": "garden"}],
    "search_tasks": [{"query": WORD}],
    "list_files": [{"path": "/default/default"}],
    "find_files": [{"path": "/default/default"}],
    "read_file": [{"path": "/default/default/d"}],
    "grep": [{"pattern": WORD, "path": "/default/default"}],
}
"""A call that shows the word, of each tool that shows texts."""
WITHOUT_TEXTS = {"remember", "update_memory", "forget", "add_facts", "operations", "list_collections"}
"""Tools that return ids, numbers and names of sources."""
DEMANDS = ("search", "context", "recall", "graph", "search_streams", "channel_context", "search_tasks")
"""Tools that take `min_trust`, except `explain`, which says what is left out; others read what is named."""


@pytest.fixture
async def document(engine: Engine) -> str:
    """A store in which everything was written by a crawler; the id of its document."""
    crawler = engine.with_origin("web")
    text = f"Cut the {WORD}."
    (written,) = await crawler.add(NewDocument(text, key="d", title=f"On {WORD}"), wait=True)
    await crawler.memory.add(NewMemory(text), scope=Scope("ann"), wait=True)
    await crawler.channels.add_messages(NewMessage(text, author="bo"), channel="garden", wait=True)
    await crawler.streams.add_captions(NewCaption(text, start=0), stream="film")
    await crawler.tasks.put(Task(id="t", title=f"The {WORD}", description=text))
    await crawler.graph.add_nodes([NewNode("shelf"), NewNode(WORD)])
    await crawler.graph.add_edges([NewEdge("shelf", WORD, "holds")])
    await crawler.documents.wait_until_embedded()
    return str(written.id)


def test_each_tool_has_a_call() -> None:
    """A new tool is added above."""
    assert {*TOOLS, *TEXT_OPERATIONS} == CALLS.keys() | WITHOUT_TEXTS


@pytest.mark.parametrize("name", CALLS)
async def test_a_tool_marks_untrusted_texts(engine: Engine, document: str, name: str) -> None:
    async with client(engine) as session:
        for arguments in CALLS[name]:
            filled = {**arguments, "document": document} if "document" in arguments else arguments
            answer = await answer_text(session, name, **filled)
            if WORD in answer:
                assert UNTRUSTED in answer or '"untrusted"' in answer, answer


@pytest.mark.parametrize("name", DEMANDS)
async def test_a_tool_demands_a_level(engine: Engine, document: str, name: str) -> None:
    async with client(engine) as session:
        for arguments in CALLS[name]:
            answer = await answer_text(session, name, **arguments, min_trust="standard")
            assert f"Cut the {WORD}" not in answer and UNTRUSTED not in answer, answer
